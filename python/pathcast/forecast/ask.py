"""A forecast of a world's paths: they are measured, looked at for a while, and the job is tried on what was found; or
the history still holds a measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pathcast.forecast import fresh
from pathcast.forecast.effort import QUICK_S
from pathcast.forecast.forecast import Forecast, Job, forecast
from pathcast.forecast.means import Means, horizon, joined, means
from pathcast.forecast.past import Past
from pathcast.forecast.watch import Watched, watch
from pathcast.units import span
from pathcast.worlds.late import may_be_off
from pathcast.worlds.measurement import Measurement, Request
from pathcast.worlds.world import World


@dataclass(frozen=True)
class Answer:
    """A forecast and what it was made of.

    fault: a sentence where the emulator was late meanwhile. elapsed_s, wall_s: on the world's clock, in which computing
    takes time only where it is the machine's, and on the machine's. age_s: of a measurement that the history held,
    where nothing was measured. made_from: keys of the history's measurements behind it. bounded: what caps left no room
    for. idle: lines that have no path, as worlds tell them.
    """

    forecast: Forecast
    seen: Watched
    fault: str | None
    elapsed_s: float
    wall_s: float
    age_s: float | None = None
    made_from: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()
    idle: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def probe_bytes(self) -> int:
        """IP bytes that were sent to measure."""
        return self.seen.measured.probe_bytes + self.seen.probe_bytes

    @property
    def remarks(self) -> list[str]:
        """Of lines that have no path now, and of those that caps left no room to measure."""
        away = [one.sentence for one in self.seen.measured.away]
        return list(dict.fromkeys([*away, *self.idle, *self.bounded]))

    def document(self, deadline_s: float | None = None) -> dict[str, Any]:
        """For JSON. deadline_s: how long until then."""
        told = self.forecast.document(deadline_s)
        measured = self.seen.measured
        # a measurement tells of idle lines as well
        notes = list(dict.fromkeys([*told["notes"], *measured.notes, *self.remarks, *filter(None, (self.fault,))]))
        away = [*(one.path for one in measured.away), *filter(None, self.idle.values())]
        if self.age_s is not None:
            notes.insert(0, f"measured {span(self.age_s)} ago, by the history; --fresh measures again")
        return {
            **told,
            "down": list(dict.fromkeys([*told["down"], *away])),
            "measured": measured.document(),
            "measured_age_s": self.age_s,
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
    past: Past | None = None,
    anew: bool = False,
    within_s: float | None = None,
    by: Means | None = None,
) -> Answer:
    """Measures all paths, or `only` those, and answers; where `past` holds a fresh measurement of them it measures
    nothing, unless `anew`. within_s: where time is short, how long the looks and about how long the draws may take.
    by: how it comes to know these paths, where that is settled already.

    Raises PathcastError: exit 1 where nobody answers, 3 where nothing can be said.
    """
    began = time.monotonic()
    asked = request or Request()
    names = [world.path(name).name for name in only] if only is not None else [path.name for path in world.paths]
    by = means(world, names, job, asked, past, anew) if by is None else by
    known = [] if by.known is None else [by.known]
    made_from = () if past is None or not known else _keys(past, [path.name for path in known[0].measured.paths])
    if past is not None and known and not by.sends:
        seen = joined(known, names, by.away)
        age_s = known[0].age_s
        if progress is not None:
            progress("trying the job in simulated networks", 0, 0)
        answer = forecast(seen.measured, job, seen.loads, past=past, time_s=QUICK_S)
        wall_s = time.monotonic() - began
        return Answer(
            answer, seen, None, wall_s if world.real_time else 0.0, wall_s, age_s, made_from, by.notes, world.idle
        )

    def look(paths: Sequence[str] | None, request: Request) -> Watched:
        measured: Measurement = world.measure(paths, request, progress)
        if progress is not None:
            progress("looking how the load varies", 0, 0)
        return watch(world, measured, job.direction, job.size_bytes, time_s=within_s, progress=progress)

    def once() -> tuple[list[Watched], Any]:
        with world.judged() as verdict:
            whole = len(by.measured) == len(names)
            seen = [look(only if whole else by.measured, asked)] if by.measured else []
            seen += [look(by.light, replace(asked, effort="light"))] if by.light else []
        return seen, verdict

    (parts, verdict), _ = world.again(once, lambda made: made[1].valid)
    fault = None if verdict.fault is None else may_be_off(verdict.fault)
    if progress is not None:
        progress("trying the job in simulated networks", 0, 0)
    if past is not None:
        parts = [replace(part, loads=_with_earlier(part, past, job)) for part in parts]
    seen = joined([*parts, *known], names, by.away)
    answer = forecast(seen.measured, job, seen.loads, past=past, time_s=None if within_s is None else within_s / 4)
    wall_s = time.monotonic() - began
    elapsed_s = wall_s if world.real_time else seen.measured.elapsed_s + seen.elapsed_s
    return Answer(answer, seen, fault, elapsed_s, wall_s, None, made_from, by.notes, world.idle)


def _keys(past: Past, names: Sequence[str]) -> tuple[str, ...]:
    """Of the history's fresh measurements of these paths."""
    return tuple(dict.fromkeys(one.id for name in names for one in past.of(name) if one.age_s <= fresh.FRESH_S))


def _with_earlier(seen: Watched, past: Past, job: Job) -> dict[str, tuple[float, ...]]:
    """Looks of the time before, too: of a long job as many hours as it will take, else of the last minutes. Not of a
    line whose looks tell that it varies: what others took is in its capacity."""
    horizon_s = horizon(seen.measured, job)

    def earlier(name: str) -> tuple[float, ...]:
        path = seen.measured.path(name)
        if path.directions[job.direction].rate_variation.looked:
            return ()
        return fresh.loads(past, name, job.direction, horizon_s, path)

    return {name: (*earlier(name), *of) for name, of in seen.loads.items()}
