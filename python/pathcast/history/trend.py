"""A history over weeks: what each line was, by means of equal times, and when it was away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from sqlalchemy import case, func, select

from pathcast.history.browse import Browser
from pathcast.history.records import Event
from pathcast.history.tables import line, measurement, path, transfer, transfer_path

# why a line is in a gap that nobody has looked into, and in one of which no failure was told
UNMEASURED, SILENT = "nothing was measured", "it answered no probe"
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
    """A time (UTC) in which nothing came over a line. until_s: None: it lasts."""

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
    """The newest first: from the first failure after the last sign of life on, be that a transfer; what is before it
    was not measured. failed: events of that time, which tell why. Raises PathcastError as faults.py tells them."""
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
    failures = [(one.target, one.line_id, _seconds(one.at), one.text) for one in failed if one.kind == "failed"]
    now_s, found = browser.at.utc_us / 1e6, []
    sent = _sent(browser, since_us, world)
    for id in {*seen, *downs}:
        lost = downs.get(id, [])
        # a far end that never answered over it tells nothing of the line, nor does what failed over another one
        told = [(at_s, text) for target, of, at_s, text in failures if target in targets[id] and of in (None, id)]
        every = sorted([*seen.get(id, []), *lost])
        apart = [later - sooner for sooner, later in pairwise(every) if later > sooner]
        least = max(_LEAST_S, _GAP * median(apart)) if apart else float("inf")
        for sooner, later in _between(every[0], seen.get(id, []), sent.get(id, []), lost, now_s):
            if later - sooner > least:
                silent = [(at_s, SILENT) for at_s in lost if sooner <= at_s < later]
                why = [(at_s, text) for at_s, text in told if sooner < at_s < later]
                first_s = min((at_s for at_s, _ in silent + why), default=later)
                until_s = None if later == now_s else later
                if first_s == later:
                    found.append(Gap(id, sooner, until_s, UNMEASURED))
                    continue
                if first_s - sooner > least:
                    found.append(Gap(id, sooner, first_s, UNMEASURED))
                texts = [text for _, text in why or silent]
                found.append(Gap(id, first_s, until_s, max(set(texts), key=texts.count)))
    return sorted(found, key=lambda gap: gap.from_s, reverse=True)


def _sent(browser: Browser, since_us: int, world: str | None) -> dict[str, list[tuple[float, float, bool]]]:
    """Of every line the transfers that it carried a part of: begin and end [s], and whether it carried all."""
    wanted = (
        select(transfer.c.id, transfer.c.at_us, transfer.c.elapsed_s, line.c.line_id)
        .select_from(transfer)
        .join(transfer_path, transfer_path.c.transfer_id == transfer.c.id)
        .join(path, path.c.id == transfer_path.c.path)
        .join(line, line.c.id == path.c.line)
        .where(line.c.host_id == browser.host, transfer.c.at_us >= since_us, transfer_path.c.bytes > 0)
        .where(*([] if world is None else [transfer.c.world == world]))
    )
    over: dict[tuple[str, float, float], set[str]] = {}
    with browser.store.reading() as connection:
        for id, at_us, elapsed_s, line_id in connection.execute(wanted):
            over.setdefault((id, at_us / 1e6, at_us / 1e6 + elapsed_s), set()).add(line_id)
    found: dict[str, list[tuple[float, float, bool]]] = {}
    for (_, begin_s, end_s), lines in over.items():
        for line_id in lines:
            found.setdefault(line_id, []).append((begin_s, end_s, len(lines) == 1))
    return found


def _between(
    begin_s: float,
    seen: Sequence[float],
    sent: Sequence[tuple[float, float, bool]],
    lost: Sequence[float],
    now_s: float,
) -> Iterator[tuple[float, float]]:
    """The times from `begin_s` to now between signs of life: measurements, and transfers for as long as they lasted."""
    spans = [(at_s, at_s) for at_s in seen]
    for from_s, until_s, alone in sent:
        # of several lines any may have carried the end of it
        known_s = until_s if alone else min((at_s for at_s in lost if from_s < at_s < until_s), default=until_s)
        spans.append((from_s, known_s))
    reach_s = begin_s
    for from_s, until_s in [*sorted(spans), (now_s, now_s)]:
        if from_s > reach_s:
            yield reach_s, from_s
        reach_s = max(reach_s, until_s)


def _seconds(at: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:  # a clock of no calendar
        return 0.0
