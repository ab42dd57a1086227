"""An alert in words: `cable: available 4 of usually 17 Mbit/s since 19:40; queue 300 ms; loss none`."""

from __future__ import annotations

from datetime import datetime

from pathcast.units import bits, seconds, span
from pathcast.watch.expression import RATES, TIMES, Expression
from pathcast.watch.seen import Level, Seen
from pathcast.zone import mark

_BESIDE = ("available", "queue", "loss")


def said(
    of: Expression,
    name: str,
    state: str,
    seen: Seen,
    usual: float | None,
    since: datetime,
    now: datetime,
    lasted_s: float,
) -> str:
    """One sentence. usual: of what was asked for. since, now: local times; lasted_s: between them."""
    who = name if of.direction == "out" else f"{name} in"
    when = f"since {clock(since, now)}" if state == "firing" else f"again after {span(lasted_s)}"
    if of.what == "down":
        first = f"down {when}" + (f" ({seen.down})" if seen.down else "") if state == "firing" else f"up {when}"
    else:
        first = f"{of.what} {_level(of.what, getattr(seen, of.what), usual)} {when}"
    beside = [f"{what} {_level(what, getattr(seen, what), None)}" for what in _BESIDE if what != of.what]
    return "; ".join([f"{who}: {first}", *(beside if seen.down is None else ())])


def _level(what: str, level: Level, usual: float | None) -> str:
    if level.value is None and level.low is None and level.high is None:
        return "unknown"
    if level.value is not None:
        prefix, number = "", level.value
    elif level.low is not None:
        prefix, number = "at least ", level.low
    else:
        assert level.high is not None
        prefix, number = "at most ", level.high
    now = prefix + _number(what, number)
    if usual is None:
        return now
    then = _number(what, usual)
    (amount, unit), (_, other) = now.rsplit(" ", 1), then.rsplit(" ", 1)
    return f"{amount if unit == other else now} of usually {then}"


def _number(what: str, value: float) -> str:
    if what in RATES:
        return bits(value)
    if what in TIMES:
        return "none" if what == "queue" and value < 1e-3 else seconds(value)
    return f"{value * 100:.2g} %" if value else "none"


def clock(at: datetime, now: datetime) -> str:
    """A local time: `19:40`, on another day than now with its date."""
    told = f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"
    return told + mark(at)
