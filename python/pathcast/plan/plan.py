"""A plan: what fits, over which lines and when, what it takes of caps and money, and what would make it fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pathcast.plan.changes import Change, changes
from pathcast.plan.program import Schedule, carried, joined, schedule
from pathcast.plan.terms import HIGH, LOW, LineTerms, Way, Wish

# planned is with rates that are exceeded in nine of ten cases; so probable a job fits, and does not
CAREFUL = 0.1
KEPT, MISSED = 0.9, 0.1
_HALVINGS = 6


@dataclass(frozen=True)
class Span:
    """Median, and the ends of the 90 % interval; null: never, under these terms."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Part:
    """What a line carries of the job, IP bytes both ways; left_bytes: of its tightest bound afterwards; null: none."""

    line: str
    line_bytes: int
    money: float
    left_bytes: int | None


@dataclass(frozen=True)
class Stage:
    """From begin_s to end_s, since now, these lines under this controller carry `bytes` of the job."""

    begin_s: float
    end_s: float
    lines: list[str]
    control: str
    background: bool
    bytes: int


@dataclass(frozen=True)
class Plan:
    """fits: yes, no, or perhaps; probability: that all of it is through by the deadline (1 or 0 without one).

    carried_bytes: what is through by then with rates that are exceeded in nine of ten cases, by which `stages`, `parts`
    and `money` are planned. duration_s: from now until all is through. changes: each of them alone makes it fit.
    """

    size_bytes: int
    deadline_s: float | None
    fits: str
    probability: float
    carried_bytes: int
    duration_s: Span
    money: float
    stages: tuple[Stage, ...]
    parts: tuple[Part, ...]
    changes: tuple[Change, ...]


def plan(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish) -> Plan:
    """The plan. lines: the terms of every line of the ways; caps, `most_bytes` and the budget are never exceeded."""
    careful = schedule(ways, lines, wish, CAREFUL)
    likely = _probability(ways, lines, wish)
    fits = "yes" if likely >= KEPT else "no" if likely <= MISSED else "perhaps"
    took = Span(*(_duration_s(ways, lines, wish, level) for level in (0.5, HIGH, LOW)))
    parts = tuple(_part(line, careful) for line in lines.values() if any(line.name in way.lines for way in ways))
    phases = joined(careful.phases)
    stages = tuple(Stage(p.begin_s, p.end_s, list(p.lines), p.control, p.background, p.bytes) for p in phases)
    return Plan(
        wish.size_bytes,
        wish.deadline_s,
        fits,
        likely,
        int(careful.carried * wish.size_bytes) if not careful.fits else wish.size_bytes,
        took,
        careful.money,
        stages,
        parts,
        () if fits == "yes" else changes(ways, lines, wish, CAREFUL),
    )


def _duration_s(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> float | None:
    made = schedule(ways, lines, wish, level)
    if not made.fits and wish.deadline_s is not None:
        made = schedule(ways, lines, wish.late(), level)
    return made.end_s if made.fits else None


def _probability(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish) -> float:
    """At which quantile of all rates, taken together, the job just fits."""

    def fits(level: float) -> bool:
        return carried(ways, lines, wish, level) >= 1 - 1e-6

    if fits(LOW):
        # a cap, hours and a budget are certain; rates are not
        return 1 - LOW if wish.deadline_s is not None else 1.0
    if not fits(HIGH):
        return 1 - HIGH if carried(_without_end(ways), lines, wish, HIGH) >= 1 - 1e-6 else 0.0
    low, high = LOW, HIGH
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return 1 - high


def _without_end(ways: Sequence[Way]) -> list[Way]:
    """Were there no bound to how fast they are."""
    return [replace(way, rate=replace(way.rate, high=way.rate.high * 1e3)) for way in ways]


def _part(line: LineTerms, made: Schedule) -> Part:
    bytes = made.on(line.name)
    left = [] if line.most_bytes is None else [line.most_bytes - bytes]
    for period in line.allowances:
        inside = [p for p in made.phases if period.begin_s <= p.begin_s < period.end_s and line.name in p.lines]
        if inside or not period.begin_s:
            left.append(max(period.bytes, 0) - sum(p.line_bytes[p.lines.index(line.name)] for p in inside))
    return Part(line.name, bytes, bytes * line.price, min(left, default=None))
