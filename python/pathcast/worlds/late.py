"""An emulated network that did not keep its time shows nothing: late, so again.

Whoever measures in one asks `judged`, here or of the world, and lets `again` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pathcast.errors import PathcastError
from pathcast.worlds.turns import turn

if TYPE_CHECKING:
    from pathcast.worlds.measurement import Measurement, Request
    from pathcast.worlds.results import Verdict
    from pathcast.worlds.world import World

ATTEMPTS = 3
LATE = "late"

T = TypeVar("T")


def again(
    work: Callable[[], T], good: Callable[[T], bool] = lambda _: True, cancelled: Callable[[], bool] = lambda: False
) -> tuple[T, int]:
    """What `work` returned, and how often it was called: three times at most, while it is not good or raises `late`.

    Each call has a turn on this machine, from the second on the machine for itself. What the last one returns or raises
    counts, whatever it is. Raises PathcastError (`interrupted`) when `cancelled` while it waits for a turn.
    """
    for attempt in range(1, ATTEMPTS + 1):
        last = attempt == ATTEMPTS
        with turn(attempt > 1, cancelled):
            try:
                found = work()
            except PathcastError as error:
                if error.code != LATE or last:
                    raise
                continue
        if last or good(found):
            break
    return found, attempt


def measured(
    world: World,
    paths: Sequence[str] | None = None,
    request: Request | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Measurement:
    """`world.measure`, again where an emulated network was late; if it never was in time, a note says by how much."""

    def once() -> tuple[Measurement, Verdict]:
        with world.judged() as verdict:
            found = world.measure(paths, request, progress)
        return found, verdict

    (found, verdict), _ = world.again(once, lambda made: made[1].valid)
    if verdict.fault is None:
        return found
    return replace(found, notes=(*found.notes, may_be_off(verdict.fault)))


def may_be_off(fault: str) -> str:
    """What a late network's measurement is worth, in words."""
    return f"what was measured may be off: {fault}"
