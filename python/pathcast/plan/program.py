"""When to use which way: a linear program over the stretches between which nothing of the lines' terms changes.

Its variables are the parts of the job that a way carries in a stretch. Aims come one after the other, each without
giving up what was reached before (lexicographic): as much as possible by the deadline; as little as possible at full
speed, where the job is to give way; as little money as possible, and lines of low rank, where that is asked for; as
soon as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pathcast.plan.terms import LineTerms, Way, Wish

# a job without a deadline is planned no further [s]
HORIZON_S = 92 * 86_400.0
# what is reached before is held by this [part of the job, or of the aim's value]
_SLACK = 1e-7
# nothing shorter is told [s], [part of the job]
_INSTANT_S, _CRUMB = 0.5, 1e-6
# ways that resend so little more are no dearer: it is not worth waiting for [share]
_ALIKE = 0.01


@dataclass(frozen=True)
class Phase:
    """From begin_s to end_s the lines carry `bytes` of the job, and line_bytes themselves (IP, both ways)."""

    begin_s: float
    end_s: float
    lines: tuple[str, ...]
    control: str
    background: bool
    bytes: int
    line_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """phases: each within a stretch, see `joined`; carried: part of the job, 0 to 1; end_s: when the last of it is
    through; money: what it costs."""

    phases: tuple[Phase, ...]
    carried: float
    end_s: float
    money: float

    @property
    def fits(self) -> bool:
        """Whether it is all of the job."""
        return self.carried >= 1 - _CRUMB

    def on(self, line: str) -> int:
        """What passes over a line [byte]."""
        return sum(dict(zip(p.lines, p.line_bytes, strict=True)).get(line, 0) for p in self.phases)


def schedule(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> Schedule:
    """The best that these ways do when their rates are at this quantile."""
    if wish.deadline_s is not None:
        return _scheduled(_Program(ways, lines, wish, level, wish.deadline_s))
    horizon_s = 7 * 86_400.0
    while True:
        made = _scheduled(_Program(ways, lines, wish, level, min(horizon_s, HORIZON_S)))
        if made.fits or horizon_s >= HORIZON_S:
            return made
        horizon_s *= 4


def carried(ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float) -> float:
    """What part of the job is through by the deadline (without one: within `HORIZON_S`), at most."""
    return _Program(ways, lines, wish, level, wish.deadline_s or HORIZON_S).most()


def least(
    ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float, of: str | None
) -> float | None:
    """Of a job that fits: the least that passes over a line [byte], or (None) the least money; else None."""
    program = _Program(ways, lines, wish, level, wish.deadline_s or HORIZON_S)
    if program.most() < 1 - _CRUMB:
        return None
    return program.aim(program.money() if of is None else program.load(of)) * wish.size_bytes


class _Program:
    """Variables x: parts of the job. Rows are held below bounds, which grow aim by aim."""

    def __init__(
        self, ways: Sequence[Way], lines: Mapping[str, LineTerms], wish: Wish, level: float, horizon_s: float
    ) -> None:
        self.wish, self.lines = wish, lines
        self.ways = [way for way in ways if wish.takes(way) and _rate(way, wish, level) > 0]
        self.stretches = _stretches(lines.values(), horizon_s)
        self.cells = [
            (at, way)
            for at, stretch in enumerate(self.stretches)
            for way in self.ways
            if all(lines[name].open(*stretch) and lines[name].told(stretch[0]) for name in way.lines)
        ]
        # seconds for all of the job
        self.whole_s = [wish.size_bytes * 8 / _rate(way, wish, level) for _, way in self.cells]
        self.rows: list[tuple[list[float], float]] = [([1.0] * len(self.cells), 1.0)]
        for at, (begin_s, end_s) in enumerate(self.stretches):
            self.rows.append((self._only(at), end_s - begin_s))
        for line in lines.values():
            load = self.load(line.name)
            if line.most_bytes is not None:
                self.rows.append((load, line.most_bytes / wish.size_bytes))
            for period in line.allowances:
                inside = [period.begin_s <= self.stretches[at][0] < period.end_s for at, _ in self.cells]
                row = [of if there else 0.0 for of, there in zip(load, inside, strict=True)]
                self.rows.append((row, max(period.bytes, 0) / wish.size_bytes))
        if wish.budget is not None:
            self.rows.append((self.money(), wish.budget / wish.size_bytes))
        self.closed: set[int] = set()
        self.found: list[float] = [0.0] * len(self.cells)

    def _only(self, at: int) -> list[float]:
        return [whole if cell[0] == at else 0.0 for whole, cell in zip(self.whole_s, self.cells, strict=True)]

    def load(self, line: str) -> list[float]:
        """Of every variable what passes over a line, for a byte of the job."""
        return [dict(zip(way.lines, way.loads, strict=True)).get(line, 0.0) for _, way in self.cells]

    def money(self) -> list[float]:
        """For a byte of the job."""
        prices = {name: line.price for name, line in self.lines.items()}
        return [sum(prices[n] * load for n, load in zip(w.lines, w.loads, strict=True)) for _, w in self.cells]

    def cost(self) -> list[float]:
        """Money by which ways are chosen: what one resends a little more than another is left out."""
        sums = [sum(way.loads) for _, way in self.cells]
        alike, least = {}, 0.0
        for of in sorted(sums):
            least = least if of <= least * (1 + _ALIKE) else of
            alike[of] = least / of
        return [money * alike[of] for money, of in zip(self.money(), sums, strict=True)]

    def rank(self) -> list[float]:
        """The mean of a way's lines, by what passes over each; lines without one come last."""
        last = 1 + max((line.rank or 0 for line in self.lines.values()), default=0)
        ranks = {name: line.rank or last for name, line in self.lines.items()}
        of = [sum(ranks[n] * load for n, load in zip(w.lines, w.loads, strict=True)) for _, w in self.cells]
        return [whole / sum(way.loads) for whole, (_, way) in zip(of, self.cells, strict=True)]

    def hurried(self) -> list[float]:
        """Seconds at full speed."""
        return [0.0 if way.background else whole for whole, (_, way) in zip(self.whole_s, self.cells, strict=True)]

    def most(self) -> float:
        """The first aim: all of the job, or as much as is possible; held from here on."""
        found = min(-self._solve([-1.0] * len(self.cells)), 1.0)
        # the last ten-millionth is nobody's, or rounding would leave no way for the aims to come
        self.rows.append(([-1.0] * len(self.cells), -(found - _SLACK)))
        return found

    def aim(self, row: list[float]) -> float:
        """The least that is possible; held from here on."""
        found = self._solve(row)
        self.rows.append((row, found + _SLACK * max(abs(found), max(row, default=0.0))))
        return found

    def soonest(self) -> None:
        """The last stretch that is needed, and the least of its time."""
        first, last = 0, len(self.stretches) - 1
        while first < last:
            middle = (first + last) // 2
            if self._within(middle):
                last = middle
            else:
                first = middle + 1
        if self._within(first):
            self._solve(self._only(first))

    def _within(self, last: int) -> bool:
        self.closed = {at for at, _ in self.cells if at > last}
        return self._try([0.0] * len(self.cells)) is not None

    def _solve(self, row: list[float]) -> float:
        found = self._try(row)
        return sum(c * x for c, x in zip(row, self.found, strict=True)) if found is None else found

    def _try(self, row: list[float]) -> float | None:
        """The least value of a row; None where nothing meets all bounds (then what was found last stays)."""
        if not self.cells:
            return 0.0
        from scipy.optimize import linprog

        limits = [(0.0, 0.0 if at in self.closed else 1.0) for at, _ in self.cells]
        scales = [max(map(abs, of)) or 1.0 for of, _ in self.rows]
        left = [[value / scale for value in of] for (of, _), scale in zip(self.rows, scales, strict=True)]
        right = [bound / scale for (_, bound), scale in zip(self.rows, scales, strict=True)]
        top = max(map(abs, row)) or 1.0
        done: Any = linprog([value / top for value in row], A_ub=left, b_ub=right, bounds=limits, method="highs-ds")
        if not done.success:
            return None
        self.found = [max(float(x), 0.0) for x in done.x]
        return float(done.fun) * top


def _rate(way: Way, wish: Wish, level: float) -> float:
    rate = way.rate.at(level)
    return rate if wish.max_rate_bps is None else min(rate, wish.max_rate_bps)


def _stretches(lines: Any, horizon_s: float) -> list[tuple[float, float]]:
    """Between all times at which something begins or ends."""
    times = {0.0, horizon_s}
    for line in lines:
        for pair in line.hours or ():
            times.update(pair)
        for period in line.allowances:
            times.update((period.begin_s, period.end_s))
    return list(pairwise(sorted(at for at in times if 0 <= at <= horizon_s)))


def _scheduled(program: _Program) -> Schedule:
    program.most()
    if program.wish.background and program.wish.hurry:
        program.aim(program.hurried())
    if program.wish.cheap:
        for row in (program.cost(), program.rank()):
            if max(row, default=0.0) - min(row, default=0.0) > _SLACK * max(row, default=0.0):  # else all are alike
                program.aim(row)
    program.soonest()
    _within_caps(program)
    cost = program.cost()
    phases: list[Phase] = []
    size = program.wish.size_bytes
    for at, (begin_s, end_s) in enumerate(program.stretches):
        here = [(way, cost[i], i) for i, (of, way) in enumerate(program.cells) if of == at]
        here.sort(key=lambda one: _first(one[0], one[1], program.wish))
        now_s = begin_s
        for way, _, i in here:
            part = program.found[i]
            until_s = min(now_s + part * program.whole_s[i], end_s)
            if part < _CRUMB and until_s - now_s < _INSTANT_S:
                continue
            bytes = tuple(int(part * size * load) for load in way.loads)
            phases.append(Phase(now_s, until_s, way.lines, way.control, way.background, round(part * size), bytes))
            now_s = until_s
    spent = sum(program.lines[n].price * b for p in phases for n, b in zip(p.lines, p.line_bytes, strict=True))
    whole = sum(program.found)
    return Schedule(tuple(phases), min(whole, 1.0), max((p.end_s for p in phases), default=0.0), spent)


def _first(way: Way, cost: float, wish: Wish) -> tuple[Any, ...]:
    """What disturbs and costs less comes first, where that is asked for: if the lines are faster than believed the rest
    is not needed. Else what is fastest."""
    quiet = wish.background and not way.background
    return (quiet, cost if wish.cheap else 0.0, -len(way.lines), -way.rate.value, way.lines)


def _within_caps(program: _Program) -> None:
    """A solver's bounds are kept to its tolerance, a cap to the byte."""
    for row, bound in program.rows[1:]:
        if bound < 0:
            continue
        used = sum(of * x for of, x in zip(row, program.found, strict=True))
        if used > bound:
            program.found = [x * bound / used if of > 0 else x for of, x in zip(row, program.found, strict=True)]


def joined(phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """Those that go on as they were are one."""
    made: list[Phase] = []
    for phase in phases:
        before = made[-1] if made else None
        same = before is not None and (before.lines, before.control) == (phase.lines, phase.control)
        if before is not None and same and phase.begin_s - before.end_s < _INSTANT_S:
            both = tuple(a + b for a, b in zip(before.line_bytes, phase.line_bytes, strict=True))
            made[-1] = replace(before, end_s=phase.end_s, bytes=before.bytes + phase.bytes, line_bytes=both)
        else:
            made.append(phase)
    return tuple(made)
