"""What would have to change, one thing at a time, so that a job fits; all of them together where none does alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

from pathcast.plan.program import HORIZON_S, carried, least, schedule
from pathcast.plan.terms import LineTerms, Way, Wish
from pathcast.units import bits, size, span

_ALL = 1 - 1e-6
# asked for is a little more than would do [share]
_SPARE = 1.01
# so near is a cap found [share]
_NEAR = 1e-7


@dataclass(frozen=True)
class Change:
    """what: size, deadline, cap, most, hours, budget, background, max-rate or all. to: byte, s, money or bit/s;
    null where there is no number."""

    what: str
    line: str | None
    to: float | None
    sentence: str


def changes(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> tuple[Change, ...]:
    """Those that would do, with rates at this quantile; what there is less of always: the size."""
    found = [*_later(ways, lines, wish, level), *_faster(ways, lines, wish, level)]
    for line in lines.values():
        if any(line.name in way.lines for way in ways):
            found += _of(line, ways, lines, wish, level)
    if wish.budget is not None:
        money = least(ways, lines, replace(wish, budget=None), level, None)
        if money is not None and money > wish.budget:
            to = _enough(money * _SPARE)
            found.append(Change("budget", None, float(to), f"a budget of {to}"))
    part = carried(ways, lines, wish, level)
    if not found and part < _ALL:
        free = {name: LineTerms(name, price=line.price) for name, line in lines.items()}
        if carried(ways, free, replace(wish, budget=None, max_rate_bps=None, background=False), level) >= _ALL:
            found.append(Change("all", None, None, "only several of caps, hours, budget and controllers together"))
    if 0 < part < _ALL:
        bytes = int(part * wish.size_bytes)
        found.append(Change("size", None, bytes, f"{size(bytes)} in place of {size(wish.size_bytes)}"))
    return tuple(found)


def _later(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> list[Change]:
    if wish.deadline_s is None:
        return []
    made = schedule(ways, lines, wish.late(), level)
    if not made.fits or made.end_s > HORIZON_S or made.end_s <= wish.deadline_s:
        return []
    later_s = made.end_s - wish.deadline_s
    return [Change("deadline", None, made.end_s, f"{span(later_s)} more time ({span(made.end_s)} from now)")]


def _faster(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> list[Change]:
    found = []
    if wish.background and not wish.hurry and _fits(ways, lines, replace(wish, background=False), level):
        found.append(Change("background", None, None, "full speed rather than in the background, if need be"))
    if wish.max_rate_bps is not None and _fits(ways, lines, replace(wish, max_rate_bps=None), level):
        low, high = wish.max_rate_bps, max(way.rate.at(level) for way in ways)
        while high > low * 1.01:
            middle = (low * high) ** 0.5
            low, high = (
                (low, middle) if _fits(ways, lines, replace(wish, max_rate_bps=middle), level) else (middle, high)
            )
        found.append(Change("max-rate", None, high, f"at most {bits(high)}"))
    return found


def _of(line: LineTerms, ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> list[Change]:
    found = []

    def needed(other: LineTerms) -> int | None:
        bytes = least(ways, {**lines, line.name: other}, wish, level, line.name)
        return None if bytes is None else math.ceil(bytes * _SPARE)

    if line.most_bytes is not None:
        bytes = needed(replace(line, most_bytes=None))
        if bytes is not None and bytes > line.most_bytes:
            found.append(Change("most", line.name, bytes, f"{size(bytes)} over {line.name}"))
    if line.allowances and (more := _more(line, ways, lines, wish, level)) is not None:
        found.append(Change("cap", line.name, more, f"{size(more)} more of {line.name}'s cap"))
    if line.hours is not None and needed(replace(line, hours=None)) is not None:
        found.append(Change("hours", line.name, None, f"{line.name} at all hours"))
    return found


def _more(line: LineTerms, ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> int | None:
    """By how much its cap has to be raised, in every period; None where that is no help, or not needed."""
    free = {**lines, line.name: replace(line, allowances=())}
    bytes = least(ways, free, wish, level, line.name)
    if bytes is None:
        return None
    whole = carried(ways, free, wish, level) - _NEAR

    def fits(more: float) -> bool:
        periods = tuple(replace(period, bytes=int(period.bytes + more)) for period in line.allowances)
        return carried(ways, {**lines, line.name: replace(line, allowances=periods)}, wish, level) >= whole

    # what a later period allows comes too late; one of less than nothing grows to nothing first: that is not linear
    until_s = wish.deadline_s or HORIZON_S
    allowed = [period.bytes for period in line.allowances if period.begin_s < until_s]
    low, high = 0.0, bytes - min(allowed, default=0)
    if high <= 0 or fits(low):
        return None
    while high - low > max(_NEAR * bytes, 1):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return math.ceil(high + (_SPARE - 1) * min(bytes, max(allowed) + high))


def _enough(money: float) -> str:
    """An amount that is no less, as it is typed: to the cent, of little with two digits."""
    places = 2 if money >= 0.1 else 1 - math.floor(math.log10(money))
    least, exact = Decimal(1).scaleb(-places), Context(prec=400)
    text = f"{Decimal(repr(money)).quantize(least, ROUND_CEILING, exact):f}"
    return text.rstrip("0").rstrip(".")


def _fits(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> bool:
    return carried(ways, lines, wish, level) >= _ALL
