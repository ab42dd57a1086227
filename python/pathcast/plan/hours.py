"""A line's hours and its cap's periods as seconds from now: by the wall clock, also where a day has 23 or 25 hours.

`now` has the zone whose hours and days these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from pathcast.plan.terms import Allowance


def open_hours(use: Sequence[tuple[int, int]], now: datetime, horizon_s: float) -> tuple[tuple[float, float], ...]:
    """Windows of the day (minutes, from and to; over midnight where `to` is not later) until then; what overlaps is
    one."""
    days = int(horizon_s // 86_400) + 3
    found = []
    for day in (now.date() + timedelta(days=n) for n in range(-1, days)):
        for begin, end in use:
            ends_on = day if end > begin else day + timedelta(days=1)
            found.append((since(now, day, begin), since(now, ends_on, end)))
    merged: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(found):
        begin_s, end_s = max(begin_s, 0.0), min(end_s, horizon_s)
        if end_s <= begin_s:
            continue
        if merged and begin_s <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        else:
            merged.append((begin_s, end_s))
    return tuple(merged)


def allowances(
    left_bytes: int, cap_bytes: int, begins: Sequence[date], now: datetime, horizon_s: float, others_bps: float = 0.0
) -> tuple[Allowance, ...]:
    """What is left of this period, and the whole cap of the next ones, without what others will send meanwhile; it may
    be less than nothing.

    begins: the first days of the next periods. others_bps: what others send over the line, on average [bit/s].
    """
    times = [0.0, *(at for at in (since(now, day, 0) for day in begins) if 0 < at < horizon_s), horizon_s]
    found = []
    for number, (begin_s, end_s) in enumerate(pairwise(times)):
        whole = cap_bytes if number else left_bytes
        bytes = int(whole - others_bps / 8 * (end_s - begin_s))
        found.append(Allowance(begin_s, end_s, bytes, others_bps))
    return tuple(found)


def since(now: datetime, day: date, minutes: int) -> float:
    """Seconds from now until so many minutes of a day have passed by the wall clock there."""
    full, rest = divmod(minutes, 24 * 60)
    at = datetime.combine(day + timedelta(days=full), time(rest // 60, rest % 60), now.tzinfo)
    return at.timestamp() - now.timestamp()
