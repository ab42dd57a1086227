"""An emulated network that did not keep its time shows nothing: late, so again.

Whoever measures in one asks `judged`, here or of the world, and lets `again` call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pathcast.errors import PathcastError
from pathcast.worlds.turns import turn

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
