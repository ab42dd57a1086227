"""Every measurement of a time as a few numbers, and what measuring has cost: for reports."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from pathcast.history.browse import Browser
from pathcast.history.tables import line, measurement, path


@dataclass(frozen=True)
class Round:
    """One direction of a path in one measurement, which began at `at_s` (UTC) [bit/s, s, 0 to 1].

    low_bps, high_bps: what is known of the available bandwidth where there is no value.
    """

    at_s: float
    line_id: str
    target: str
    direction: str
    down: bool
    available_bps: float | None
    low_bps: float | None
    high_bps: float | None
    rtt_s: float | None
    queue_s: float | None
    loss: float | None


@dataclass(frozen=True)
class Spent:
    """Probes' IP bytes over a line, both directions, of measurements by one command."""

    line_id: str
    command: str
    measurements: int
    bytes: int


def rounds(browser: Browser, newer_than_s: float, world: str) -> list[Round]:
    """The oldest first; none that came too late. Raises PathcastError as faults.py tells them."""
    if not browser.store.exists:
        return []
    m = measurement.c
    delay, available = m.knowledge["delay_s"], m.knowledge["available_bps"]
    queue = delay["median"]["value"].as_float() - delay["minimum"]["value"].as_float()
    bounds = [available[name].as_float() for name in ("low", "high")]
    wanted = (
        select(m.at_us, line.c.line_id, m.target, path.c.direction, m.down, m.available_bps, *bounds, m.rtt_s)
        .add_columns(queue, m.loss)
        .select_from(measurement)
        .join(path, path.c.id == m.path)
        .join(line, line.c.id == path.c.line)
        .where(line.c.host_id == browser.host, m.valid.is_not(False), m.world == world)
        .where(m.at_us >= browser.at.utc_us - round(newer_than_s * 1e6), m.at_us <= browser.at.utc_us)
        .order_by(m.at_us)
    )
    with browser.store.reading() as connection:
        rows = connection.execute(wanted).all()
    return [Round(r[0] / 1e6, r[1], r[2] or "", r[3], bool(r[4]), *r[5:]) for r in rows]


def spent(browser: Browser, newer_than_s: float, world: str) -> list[Spent]:
    """The dearest first; also those of measurements that came too late."""
    if not browser.store.exists:
        return []
    m = measurement.c
    total = func.sum(m.probe_bytes)
    wanted = (
        select(line.c.line_id, m.command, func.count(func.distinct(m.act)), total)
        .select_from(measurement)
        .join(path, path.c.id == m.path)
        .join(line, line.c.id == path.c.line)
        .where(line.c.host_id == browser.host, m.world == world)
        .where(m.at_us >= browser.at.utc_us - round(newer_than_s * 1e6), m.at_us <= browser.at.utc_us)
        .group_by(line.c.line_id, m.command)
        .order_by(total.desc())
    )
    with browser.store.reading() as connection:
        rows = connection.execute(wanted).all()
    return [Spent(r[0], r[1] or "", int(r[2]), int(r[3])) for r in rows]
