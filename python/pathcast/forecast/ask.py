"""A forecast of a world's paths: they are measured, looked at for a while, and the job is tried on what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.forecast.forecast import Forecast, Job, forecast
from pathcast.forecast.watch import Watched, watch
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.world import World


@dataclass(frozen=True)
class Answer:
    """A forecast and what it was made of.

    fault: a sentence where the emulator was late meanwhile. elapsed_s, wall_s: on the world's clock, in which computing
    takes time only where it is the machine's, and on the machine's.
    """

    forecast: Forecast
    seen: Watched
    fault: str | None
    elapsed_s: float
    wall_s: float

    @property
    def probe_bytes(self) -> int:
        """IP bytes that were sent to measure."""
        return self.seen.measured.probe_bytes + self.seen.probe_bytes

    def document(self, deadline_s: float | None = None) -> dict[str, Any]:
        """For JSON. deadline_s: how long until then."""
        told = self.forecast.document(deadline_s)
        notes = [*told.pop("notes"), *self.seen.measured.notes, *filter(None, (self.fault,))]
        return {
            **told,
            "measured": self.seen.measured.document(),
            "loads": {name: list(of) for name, of in self.seen.loads.items()},
            "probe_bytes": self.probe_bytes,
            "elapsed_s": self.elapsed_s,
            "wall_s": self.wall_s,
            "notes": notes,
        }


def ask(
    world: World,
    job: Job,
    request: Request | None = None,
    only: Sequence[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Answer:
    """Measures all paths, or `only` those, and answers.

    Raises PathcastError: exit 1 where nobody answers, 3 where nothing can be said.
    """
    began = time.monotonic()
    asked = request or Request()

    def once() -> tuple[Watched, Any]:
        with world.judged() as verdict:
            found: Measurement = world.measure(only, asked, progress)
            seen = watch(world, found, job.direction, job.size_bytes)
        return seen, verdict

    (seen, verdict), _ = world.again(once, lambda made: made[1].valid)
    fault = None if verdict.valid else f"what was measured may be off: {verdict.fault}"
    answer = forecast(seen.measured, job, seen.loads)
    wall_s = time.monotonic() - began
    elapsed_s = wall_s if world.real_time else seen.measured.elapsed_s + seen.elapsed_s
    return Answer(answer, seen, fault, elapsed_s, wall_s)
