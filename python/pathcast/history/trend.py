"""A history over weeks: what each line was, by means of equal times, and when it was away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from sqlalchemy import case, func, select

from pathcast.history.browse import Browser
from pathcast.history.records import Event
from pathcast.history.tables import line, measurement, path

# why a line is in a gap that nobody has looked into
UNMEASURED = "nothing was measured"
# a line is away where it was not seen for so many usual intervals, and for so long [s]
_GAP, _LEAST_S = 3, 60.0


@dataclass(frozen=True)
class Mean:
    """Of one line, target and direction, of all measurements of a time that begins at `at_s` (UTC) [bit/s, s, 0 to 1].

    queue_s: how much longer than the least one-way delay of its measurement packets took, at the median.
    """

    at_s: float
    line_id: str
    target: str
    direction: str
    count: int
    down: int
    available_bps: float | None
    capacity_bps: float | None
    rtt_s: float | None
    delay_s: float | None
    queue_s: float | None
    loss: float | None


@dataclass(frozen=True)
class Gap:
    """A time in which nothing came over a line. until_s: None: it lasts."""

    line_id: str
    from_s: float
    until_s: float | None
    why: str


def means(browser: Browser, newer_than_s: float, width_s: float, world: str | None = None) -> list[Mean]:
    """The oldest first; world: of this one only. Raises PathcastError as faults.py tells them."""
    if not browser.store.exists:
        return []
    width = round(width_s * 1e6)
    # a remainder is taken in whole numbers by every database, which division is not
    begin = (measurement.c.at_us - measurement.c.at_us % width).label("begin")
    delay = measurement.c.knowledge["delay_s"]
    queue = delay["median"]["value"].as_float() - delay["minimum"]["value"].as_float()
    by = (begin, line.c.line_id, measurement.c.target, path.c.direction)
    of = [func.avg(getattr(measurement.c, name)) for name in ("available_bps", "capacity_bps", "rtt_s", "delay_s")]
    wanted = (
        select(*by, func.count(), func.sum(case((measurement.c.down, 1), else_=0)), *of)
        .add_columns(func.avg(queue), func.avg(measurement.c.loss))
        .select_from(measurement)
        .join(path, path.c.id == measurement.c.path)
        .join(line, line.c.id == path.c.line)
        .where(line.c.host_id == browser.host, measurement.c.valid.is_not(False))
        .where(measurement.c.at_us >= browser.at.utc_us - round(newer_than_s * 1e6))
        .where(*_of_world(world))
        .group_by(*by)
        .order_by(begin)
    )
    with browser.store.reading() as connection:
        rows = connection.execute(wanted).all()
    return [
        Mean(r[0] / 1e6, r[1], r[2] or "", r[3], r[4], int(r[5]), *(None if v is None else float(v) for v in r[6:]))
        for r in rows
    ]


def _of_world(world: str | None) -> list[Any]:
    return [] if world is None else [measurement.c.world == world]


def gaps(browser: Browser, newer_than_s: float, failed: Sequence[Event], world: str | None = None) -> list[Gap]:
    """The newest first. failed: events of that time, which tell why."""
    if not browser.store.exists:
        return []
    since_us = browser.at.utc_us - round(newer_than_s * 1e6)
    wanted = (
        select(line.c.line_id, measurement.c.at_us, measurement.c.down, measurement.c.target)
        .select_from(measurement)
        .join(path, path.c.id == measurement.c.path)
        .join(line, line.c.id == path.c.line)
        .where(line.c.host_id == browser.host, measurement.c.at_us >= since_us, path.c.direction == "out")
        .where(*_of_world(world))
        .order_by(measurement.c.at_us)
    )
    seen: dict[str, list[float]] = {}
    downs: dict[str, list[float]] = {}
    targets: dict[str, set[str | None]] = {}
    with browser.store.reading() as connection:
        for id, at_us, down, target in connection.execute(wanted):
            (downs if down else seen).setdefault(id, []).append(at_us / 1e6)
            targets.setdefault(id, {None}).add(target)
    failures = [(event.target, _seconds(event.at), event.text) for event in failed if event.kind == "failed"]
    now_s, found = browser.at.utc_us / 1e6, []
    for id in {*seen, *downs}:
        times = seen.get(id, [])
        # a far end that never answered over it tells nothing of the line
        told = [(at_s, text) for target, at_s, text in failures if target in targets[id]]
        every = sorted([*times, *downs.get(id, [])])
        apart = [later - sooner for sooner, later in pairwise(every) if later > sooner]
        least = max(_LEAST_S, _GAP * median(apart)) if apart else float("inf")
        ends = [*times, now_s] if times else [every[0], now_s]
        for sooner, later in pairwise(ends):
            if later - sooner > least:
                why = _why(sooner, later, downs.get(id, []), told)
                found.append(Gap(id, sooner, None if later == now_s else later, why))
    return sorted(found, key=lambda gap: gap.from_s, reverse=True)


def _why(from_s: float, until_s: float, downs: Sequence[float], told: Sequence[tuple[float, str]]) -> str:
    if texts := [text for at_s, text in told if from_s < at_s < until_s]:
        return max(set(texts), key=texts.count)
    if any(from_s <= at_s < until_s for at_s in downs):
        return "it answered no probe"
    return UNMEASURED


def _seconds(at: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:  # a clock of no calendar
        return 0.0
