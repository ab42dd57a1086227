"""When a job is due, and whether one that was broken off is started again: pure, the time is passed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

# before it is started again: doubled from the first on [s]; one that may use no line now waits the last
FIRST_S, MOST_S = 10.0, 600.0
# a program that cannot be started; wrong words of ours
_HOPELESS = (126, 127)
# one without a deadline begins so late at most
_ALLOWED = timedelta(minutes=15)
# a time that was so near when the job was added is meant, though the command takes a moment
_NEAR = timedelta(minutes=2)


@dataclass(frozen=True)
class Attempt:
    """How one run of the program ended. barred: since no line might be used; final: nor may any later, by its own
    bounds."""

    status: int
    elapsed_s: float
    barred: bool = False
    final: bool = False


def wait_s(attempts: Sequence[Attempt], retries: int, left_s: float) -> float | None:
    """How long until the program is started again; None: it is done, or given up. left_s: until the deadline; a job
    that is late is started again, too, since what it has begun is worth an end."""
    last = attempts[-1]
    if last.status == 0 or last.final or (last.status in _HOPELESS and not last.barred):
        return None
    failed = sum(not one.barred for one in attempts)
    if failed > retries or (last.barred and left_s <= 0):
        return None
    if last.barred:
        return min(MOST_S, max(left_s, FIRST_S))
    # one that went on for long has got somewhere: it begins to count anew
    in_a_row = 0
    for one in reversed(attempts):
        in_a_row += 1
        if one.elapsed_s > MOST_S:
            break
    return float(min(FIRST_S * 2.0 ** (in_a_row - 1), MOST_S))


def last_due(at: Sequence[time], now: datetime) -> datetime:
    """The latest of its times of day that is not after now; naive local times."""
    times = [datetime.combine(now.date() - timedelta(days=days), of) for days in (0, 1) for of in at]
    return max(one for one in times if one <= now)


def next_due(at: Sequence[time], now: datetime) -> datetime:
    """The next of its times of day."""
    times = [datetime.combine(now.date() + timedelta(days=days), of) for days in (0, 1) for of in at]
    return min(one for one in times if one > now)


def is_due(
    at: Sequence[time],
    now: datetime,
    begun: datetime | None,
    until: time | timedelta | None,
    added: datetime | None = None,
) -> bool:
    """Whether it is to begin now: its time has come since it was added, it has not begun since, and its deadline is not
    past.

    now: with its zone; begun and added are by the clock there. until: the deadline, a time of day or from its time on;
    None: a quarter of an hour. added: None: long ago.
    """
    clock = now.replace(tzinfo=None)
    due = last_due(at, clock)
    if added is not None and due + _NEAR <= added < clock + timedelta(days=1):  # else by a clock that was wrong
        return False
    # what has begun in a day from now did so by a clock that was wrong
    if begun is not None and due <= begun < clock + timedelta(days=1):
        return False
    if isinstance(until, time):
        end = datetime.combine(due.date(), until)
        return clock < (end if end > due else end + timedelta(days=1))
    # the clock may have been changed since; a time that it leaped over counts from where it would have been, so that
    # it has passed when the clock leaps, and no timer is too late for it
    passed_s = now.timestamp() - due.replace(tzinfo=now.tzinfo).timestamp()
    return passed_s < (_ALLOWED if until is None else until).total_seconds()
