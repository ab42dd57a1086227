"""A job that runs by a plan: what to change of it, look by look. Pure: it is told what has passed, and answers.

The plan is made anew again and again, with the rates that the job itself has shown, for what is left of job, time, caps
and money. So cheap lines and quiet controllers are gone on with for as long as the deadline allows, and no longer.
What is near its bound is dropped at once, and so is a line that carries nothing, which is tried again later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pathcast.plan.plan import CAREFUL
from pathcast.plan.program import Schedule, schedule
from pathcast.plan.renewed import Renewed
from pathcast.plan.terms import HIGH, LOW, OVERHEAD, Allowance, LineTerms, Way, Wish
from pathcast.plan.waiting import Wait, end_of
from pathcast.units import size, span

# between two plans [s], and of what is left of the job's time; before a change to what is slower [s]
ANEW_S, ANEW_SHARE, CALM_S = 10.0, 0.01, 30.0
# a line without a byte for so long, while others carry some, is dead; it is tried again after [s]
DEAD_S, RETRY_S = 10.0, 60.0
# where no line carries any, one is dead after so long with so many retransmission timeouts (RFC 6298): without them the
# program has nothing to send
SILENT_S, TIMEOUTS = 5.0, 2
# so much of a bound is left alone: what passes until a change is in force [s], of a slow machine so many times what was
# between two looks, and at least [byte]
REACTION_S, SLOW, LEAST_BYTES = 3.0, 2.0, 64_000
_FADING = 0.9
# what an unknown line is taken to carry, of what the deadline asks for, until it is seen
_ENOUGH = 4.0
# while it is new what the lines carry, and where the deadline is near, plans follow sooner: parts of the time until it
_ANEW_NEAR, _NEAR_S = 0.1, 30.0
# before the deadline all is to be through by [s], and by parts of what is left until then; the last at most
RESERVE_S, RESERVE_SHARE, RESERVE_MOST = 15.0, 0.02, 0.2


@dataclass(frozen=True)
class Seen:
    """Since the start, by line: job is the program's bytes, wire what passed (IP, both ways), of this job; counted: of
    everybody, where that is known; timeouts: of retransmission. None of job: lines that have no bytes stand for 0.
    unheard: whom it asks in vain, while nobody has answered yet."""

    job: Mapping[str, int]
    wire: Mapping[str, int]
    counted: Mapping[str, int] = field(default_factory=dict)
    timeouts: Mapping[str, int] = field(default_factory=dict)
    unheard: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """What is to be from now on. lines: over which; none: the program has to end. said: what changed and why.

    end_s: when all is through, since the start: median and interval; None where the size is not known, or never. wait:
    while nothing gets through. known: whether anything speaks for how fast the lines are.
    """

    lines: tuple[str, ...]
    control: str
    background: bool
    said: tuple[str, ...]
    done: float | None
    end_s: tuple[float | None, float | None, float | None]
    rates_bps: Mapping[str, float]
    wait: Wait | None = None
    known: bool = True


class Course:
    """lines: terms from the start on. wish: None of size: it goes on until the program ends. away: lines that did not
    answer a moment ago, tried like those that died."""

    def __init__(
        self,
        ways: Sequence[Way],
        lines: Mapping[str, LineTerms],
        wish: Wish,
        sized: bool = True,
        away: Iterable[str] = (),
    ) -> None:
        # a cheap line is tried before a dear one, though nobody knows yet whether it is enough
        needed_bps = None if wish.deadline_s is None else wish.size_bytes * 8 / wish.deadline_s
        enough_bps, deadline_s = needed_bps and _ENOUGH * needed_bps, wish.deadline_s or math.inf
        self._beliefs = Renewed(ways, enough_bps, deadline_s, wish.max_rate_bps)
        self._guesses, self._blind = any(way.guess for way in ways), False
        self._terms, self._wish, self._sized = dict(lines), wish, sized
        self._at_s = self._planned_s = self._changed_s = 0.0
        self._seen = Seen({}, {})
        self._moved_s = dict.fromkeys(lines, 0.0)
        self._unheard: dict[str, int] = {}
        self._wait: Wait | None = None
        self._dead: dict[str, float] = {}
        self._new: dict[str, LineTerms] = {}
        self._further: dict[str, LineTerms] = {}
        self._rates: dict[str, float] = {}
        self._used_s: dict[str, float] = {}
        # how fast each is when it is used, IP bits, at most: what is dropped near its bound does not come back for that
        self._fast = {name: _promised(name, ways) * OVERHEAD for name in lines}
        # what is left alone of the bounds of a line that is at one, and how long before the end of its hours: while
        # that bound holds it does not come back for less being left alone [byte, s]
        self._held: dict[str, tuple[int, float]] = {}
        # what had passed when a period began, of everybody and of others
        self._began: dict[tuple[str, float], tuple[int, int]] = {}
        # when it was told the terms: what begins then had begun before, nobody knows when
        self._from_s = dict.fromkeys(lines, 0.0)
        # what was paid until a price changed, and for how many bytes of the line
        self._paid: dict[str, tuple[float, int]] = {}
        self._way: Way | None = None
        self._end_s: tuple[float | None, float | None, float | None] = (None, None, None)
        self._late = False
        self._reaction_s, self._passed_s = REACTION_S, 0.0
        self._said: list[str] = []
        # one that may not be used was not asked
        self._dead |= {name: 0.0 for name in away if self._bound(name) is None}
        self._plan(0.0)

    def first(self) -> Step:
        """Before the start."""
        return self._step()

    def look(self, now_s: float, seen: Seen) -> Step:
        """So much has passed until now."""
        passed_s = now_s - self._at_s
        if passed_s <= 0:
            return self._step()
        self._passed_s = passed_s
        moved = {name: seen.job.get(name, 0) - self._seen.job.get(name, 0) for name in self._terms}
        self._rates = {name: bytes * 8 / passed_s for name, bytes in moved.items()}
        for name, bytes in moved.items():
            timeouts = seen.timeouts.get(name, 0) - self._seen.timeouts.get(name, 0)
            # those of somebody who turns out not to be the job's far end count no more
            self._unheard[name] = 0 if bytes > 0 else max(0, self._unheard.get(name, 0) + timeouts)
            if bytes > 0:
                self._moved_s[name] = now_s
                self._fast[name] = max(self._rates[name] * OVERHEAD, self._fast[name] * _FADING)
        if self._way is not None and any(moved.values()):
            # while all stand still it is the program that has nothing to send
            self._beliefs.look(self._way, passed_s, {name: max(bytes, 0) for name, bytes in moved.items()})
        self._used_s.update(dict.fromkeys(self._way.lines if self._way else (), now_s))
        self._at_s, self._seen = now_s, seen
        renewed = self._renews()
        self._periods()
        self._reaction_s = max(REACTION_S, SLOW * passed_s, self._reaction_s * _FADING)
        self._hold(self._bounds(self._terms))
        if broken := self._runs_over(moved):
            self._said.append(f"{broken} goes on carrying though it is dropped: the program has to end")
            self._way = None
            return self._step()
        if bounds := self._bounds(self._way.lines if self._way else ()):
            self._drop(now_s, bounds)
            return self._step()
        if self._wait is not None and now_s >= self._wait.end_s:
            self._said.append(f"nothing got through for {span(now_s - self._wait.since_s)}: the program has to end")
            self._way = None
            return self._step()
        forced = renewed | self._answers(moved) | self._dies(now_s) | self._returns(now_s) | (self._way is None)
        learnt = self._blind and self._way is not None and self._beliefs.known(self._way)
        left_s = (self._end_s[0] or now_s) - now_s
        apart_s = max(ANEW_S, ANEW_SHARE * left_s)
        if self._wish.deadline_s is not None and self._guesses:
            apart_s = min(apart_s, max(_ANEW_NEAR * (self._wish.deadline_s - now_s), 1.0))
        if forced or learnt or now_s - self._planned_s >= apart_s:
            self._plan(now_s, forced)
        return self._step()

    def renewed(self, lines: Mapping[str, LineTerms]) -> None:
        """Their user has changed what these may be used for, from the next look on; `most_bytes` stays."""
        self._new.update(lines)

    def further(self, lines: Mapping[str, LineTerms]) -> None:
        """The same terms, told anew: they reach further."""
        self._further.update(lines)

    def stepped(self, by_s: float, deadline: bool) -> None:
        """The clock was set: what is by the clock comes so much sooner [s], and so does the deadline if it is."""

        def moved(name: str, begin_s: float) -> float:
            return begin_s if begin_s == self._from_s[name] else begin_s - by_s

        for name, line in self._terms.items():
            hours = line.hours and tuple((moved(name, begin_s), end_s - by_s) for begin_s, end_s in line.hours)
            periods = tuple(replace(p, begin_s=moved(name, p.begin_s), end_s=p.end_s - by_s) for p in line.allowances)
            self._terms[name] = replace(line, hours=hours, allowances=periods)
        began = {(name, moved(name, begin_s)): bytes for (name, begin_s), bytes in self._began.items()}
        self._began = {key: bytes for key, bytes in began.items() if key[1] <= self._at_s}
        if deadline and self._wish.deadline_s is not None:
            # one that is past is looked at as such
            self._wish = replace(self._wish, deadline_s=max(self._wish.deadline_s - by_s, 1e-3))
            if self._wait is not None:
                self._wait = replace(self._wait, end_s=end_of(self._at_s, self._wish.deadline_s))
        self._planned_s = -math.inf

    def done(self, job: Mapping[str, int]) -> float | None:
        """Of the wish's size, when so many bytes are through by line: 0 to 1; never less than at a look before. None
        where no size is known."""
        bytes = max(sum(job.values()), sum(self._seen.job.values()))
        return min(bytes / self._wish.size_bytes, 1.0) if self._sized else None

    def left(self, wire: Mapping[str, int], ahead: bool = False) -> dict[str, Any]:
        """Of the job's own bounds, when so many bytes passed by line: `max_bytes` of each line that has one, and
        `budget`, money or None. What is left alone near a bound is nothing. ahead: without what passes until a change
        is in force."""
        bytes = {name: max(wire.get(name, 0), self._seen.wire.get(name, 0)) for name in self._terms}
        most = {
            name: int(_beyond(line.most_bytes - bytes[name], self._margin(name), ahead))
            for name, line in self._terms.items()
            if line.most_bytes is not None
        }
        budget = self._wish.budget
        if budget is not None:
            budget = _beyond(budget - self._spent(bytes), self._margin_money(), ahead)
        return {"max_bytes": most, "budget": budget}

    @property
    def spent(self) -> bool:
        """Whether the job's own bounds leave nothing to any line: no later time changes that."""
        return all(self._spent_of(name) is not None for name in self._terms)

    def _step(self) -> Step:
        said, self._said = tuple(self._said), []
        way = self._way
        return Step(
            way.lines if way else (),
            way.control if way else "",
            way.background if way else False,
            said,
            self.done({}),
            self._end_s,
            dict(self._rates),
            self._wait,
            not self._blind,
        )

    def _renews(self) -> bool:
        """Takes what it was told of lines, whose times count from now on: whether terms are new."""
        now_s = self._at_s
        renewed = {name: of for name, of in self._new.items() if name in self._terms}
        told = {name: of for name, of in (self._further | renewed).items() if name in self._terms}
        for name, of in told.items():
            self._paid[name] = self._cost(name, self._seen.wire), self._seen.wire.get(name, 0)
            hours = of.hours and tuple((begin + now_s, end + now_s) for begin, end in of.hours)
            periods = tuple(replace(p, begin_s=p.begin_s + now_s, end_s=p.end_s + now_s) for p in of.allowances)
            most = self._terms[name].most_bytes
            self._terms[name] = replace(of, hours=hours, allowances=periods, most_bytes=most)
            self._began = {key: bytes for key, bytes in self._began.items() if key[0] != name}
            self._from_s[name] = now_s
            if name not in renewed:
                continue
            self._held.pop(name, None)
            if name not in (self._way.lines if self._way else ()) and self._dead.pop(name, None) is not None:
                self._moved_s[name] = now_s
            left = f": {size(max(periods[0].bytes, 0))} of its cap are left" if periods else ""
            self._said.append(f"{name} has new terms{left}")
        self._new, self._further = {}, {}
        return bool(renewed)

    def _periods(self) -> None:
        """What had passed when each period began, as far as that was looked at."""
        for name, line in self._terms.items():
            for period in line.allowances:
                if period.begin_s <= self._at_s:
                    before = (self._used(name), self._beside(name)) if period.begin_s > 0 else (0, 0)
                    self._began.setdefault((name, period.begin_s), before)

    def _used(self, name: str) -> int:
        return max(self._seen.wire.get(name, 0), self._seen.counted.get(name, 0))

    def _beside(self, name: str) -> int:
        """What others sent, as far as that is known."""
        return self._used(name) - self._seen.wire.get(name, 0)

    def _left(self, name: str, period: Allowance) -> int:
        used, beside = self._began.get((name, period.begin_s), (0, 0))
        # what others were to send is left out of the period already: as it comes it takes nothing more
        foreseen = int(period.others_bps / 8 * max(self._at_s - period.begin_s, 0.0))
        came = min(foreseen, max(self._beside(name) - beside, 0))
        return period.bytes + came - (self._used(name) - used)

    def _spent(self, wire: Mapping[str, int] | None = None) -> float:
        return sum(self._cost(name, self._seen.wire if wire is None else wire) for name in self._terms)

    def _cost(self, name: str, wire: Mapping[str, int]) -> float:
        """Of a line, each byte at the price of its time."""
        paid, bytes = self._paid.get(name, (0.0, 0))
        return paid + self._terms[name].price * (wire.get(name, 0) - bytes)

    def _rest(self) -> dict[str, LineTerms]:
        """The terms from now on: what is left."""
        now_s, rest = self._at_s, {}
        for name, line in self._terms.items():
            margin = self._margin(name)
            periods = tuple(
                Allowance(
                    max(p.begin_s - now_s, 0.0),
                    p.end_s - now_s,
                    max(0, (self._left(name, p) if p.begin_s <= now_s else p.bytes) - margin),
                )
                for p in line.allowances
                if p.end_s > now_s or not line.told(now_s)
            )
            hours = line.hours and tuple((max(b - now_s, 0.0), e - now_s) for b, e in line.hours if e > now_s)
            most = line.most_bytes
            if most is not None:
                most = max(0, most - self._seen.wire.get(name, 0) - margin)
            rest[name] = replace(line, hours=hours, allowances=periods, most_bytes=most)
        return rest

    def _wished(self) -> Wish:
        """What is left of the wish. A deadline that is past is one no more: it goes on as fast as is allowed."""
        wish, now_s = self._wish, self._at_s
        left = max(1, wish.size_bytes - sum(self._seen.job.values())) if self._sized else wish.size_bytes
        budget = None if wish.budget is None else max(0.0, wish.budget - self._spent() - self._margin_money())
        deadline_s = None if wish.deadline_s is None else wish.deadline_s - now_s
        if deadline_s is not None and deadline_s <= 1.0:
            return replace(wish.late(), size_bytes=left, budget=budget)
        if deadline_s is not None:
            # what is found late is to be mended yet
            deadline_s -= min(RESERVE_S + RESERVE_SHARE * deadline_s, RESERVE_MOST * deadline_s)
        return replace(wish, size_bytes=left, budget=budget, deadline_s=deadline_s)

    def _margin_money(self) -> float:
        return sum(line.price * self._margin(name) for name, line in self._terms.items())

    def _margin(self, name: str) -> int:
        now = int(self._fast[name] / 8 * self._reaction_s) + LEAST_BYTES
        return max(now, self._held.get(name, (0, 0.0))[0])

    def _before(self, name: str) -> float:
        """How long before the end of its hours a line is dropped [s]."""
        return max(self._reaction_s, self._held.get(name, (0, 0.0))[1])

    def _hold(self, bounds: Iterable[str]) -> None:
        """What is left alone of the bounds that hold now stays so until they do no more."""
        self._held = {name: (self._margin(name), self._before(name)) for name in bounds}

    def _unlike(self, way: Way) -> tuple[bool, bool, float]:
        """The least of the way that goes on most like the one that was in use."""
        before = self._way
        if before is None:
            return (True, True, -way.rate.value)
        return (not set(way.lines) <= set(before.lines), way.background != before.background, -way.rate.value)

    def _bound(self, name: str) -> str | None:
        """Why a line may not be used now."""
        if name not in self._opened():
            later = any(begin_s > self._at_s for begin_s, _ in self._terms[name].hours or ())
            return "its hours are yet to come" if later and not self._used_s.get(name) else "its hours are over"
        return self._full(name)

    def _opened(self) -> set[str]:
        """By their hours. Where the hours of lines follow each other and no other is left, the one is used until the
        last look before its end, and the next from then on: without either the program would end."""
        now_s, next_s = self._at_s, self._at_s + self._passed_s
        found = {name for name in self._terms if self._holds(name, now_s)}
        if not all(self._full(name) for name in found):
            return found
        others = [name for name in self._terms if name not in found and not self._full(name)]
        for name in others:
            for end_s in (end_s for begin_s, end_s in self._terms[name].hours or () if begin_s <= now_s < end_s):
                if after := {other for other in others if self._holds(other, end_s)}:
                    found |= {name} if next_s <= end_s else after
        return found

    def _holds(self, name: str, at_s: float) -> bool:
        """Whether it may be used from then on for long enough."""
        return self._terms[name].open(at_s, at_s + self._before(name))

    def _full(self, name: str) -> str | None:
        """Which bound but its hours leaves nothing to a line now."""
        line, margin = self._terms[name], self._margin(name)
        if any(p.begin_s <= self._at_s < p.end_s and self._left(name, p) <= margin for p in line.allowances):
            return "its cap is reached"
        if not line.told(self._at_s):
            return "its cap is known no further"
        return self._spent_of(name)

    def _spent_of(self, name: str) -> str | None:
        """Which of the job's own bounds leaves nothing to a line."""
        line, margin = self._terms[name], self._margin(name)
        if line.most_bytes is not None and line.most_bytes - self._seen.wire.get(name, 0) <= margin:
            return "the most that it may carry of this job is reached"
        if line.price and self._wish.budget is not None and self._wish.budget - self._spent() <= self._margin_money():
            return "the budget is spent"
        return None

    def _runs_over(self, moved: Mapping[str, int]) -> str | None:
        """A line that was dropped at its bound and would be over it at the next look, since its connections go on."""
        used = self._way.lines if self._way else ()
        for name, bytes in moved.items():
            coming = 2 * int(bytes * OVERHEAD)
            # what is on its way may pass; over one that was never to be used nothing is
            since_s = self._at_s - self._used_s.get(name, 0.0)
            late = name not in used and since_s >= self._reaction_s / 2
            if late and bytes > LEAST_BYTES and self._least_left(name) <= coming:
                return name
        return None

    def _least_left(self, name: str) -> float:
        """Until the first of its bounds that holds now [byte]."""
        line = self._terms[name]
        left = [self._left(name, p) for p in line.allowances if p.begin_s <= self._at_s < p.end_s]
        if not line.told(self._at_s):
            left.append(0)
        if line.most_bytes is not None:
            left.append(line.most_bytes - self._seen.wire.get(name, 0))
        return min(left, default=math.inf)

    def _bounds(self, names: Iterable[str]) -> dict[str, str]:
        return {name: why for name in names if (why := self._bound(name))}

    def _drop(self, now_s: float, bounds: Mapping[str, str]) -> None:
        """At once, without a plan, which takes its time and is made by the next look."""
        barred = self._bounds(self._terms)
        usable = [way for way in self._beliefs.now() if self._wish.takes(way) and not set(way.lines) & set(barred)]
        self._take(now_s, min(usable, key=self._unlike, default=None), barred)
        self._planned_s = -math.inf

    def _dies(self, now_s: float) -> bool:
        used = self._way.lines if self._way else ()
        moves = any(self._moved_s[name] > now_s - DEAD_S / 2 for name in used)
        if not moves and max(self._unheard.values(), default=0) < TIMEOUTS:
            return False  # that is the program's doing, or nothing can be told
        found = []
        for name in (n for n in used if n not in self._dead):
            patience_s = DEAD_S if moves or self._unheard.get(name, 0) < TIMEOUTS else SILENT_S
            if now_s - max(self._moved_s[name], self._changed_s) >= patience_s:
                found.append(name)
        self._dead.update(dict.fromkeys(found, now_s))
        if moves or any(not set(way.lines) & set(self._dead) for way in self._usable()):
            self._said += [f"{name} carries nothing: it goes on without it" for name in found]
        return bool(found)

    def _answers(self, moved: Mapping[str, int]) -> bool:
        """Of what was waited for."""
        if self._wait is None:
            return False
        back = [name for name in self._dead if moved[name] > 0]
        for name in back:
            del self._dead[name]
        if back:
            waited = span(self._at_s - self._wait.since_s)
            self._said.append(f"{' and '.join(back)} answers again: it goes on, after {waited}")
            self._wait = None
        return bool(back)

    def _usable(self) -> list[Way]:
        barred = set(self._bounds(self._terms))
        return [way for way in self._beliefs.now() if self._wish.takes(way) and not set(way.lines) & barred]

    def _waits(self, now_s: float) -> bool:
        """Whether all that may be used is dead: then all of it is kept, since any of it may return."""
        usable = self._usable()
        if not self._dead or not usable or any(not set(way.lines) & set(self._dead) for way in usable):
            self._wait = None
            return False
        if self._wait is not None:
            return True
        widest = max(usable, key=lambda way: (len(way.lines), not self._hurries(way), way.rate.value))
        dead, barred = tuple(name for name in widest.lines if name in self._dead), self._bounds(self._terms)
        for name in set(widest.lines) - set(self._dead):
            self._dead[name] = now_s
        since_s = max(self._moved_s.values())
        self._wait = Wait(since_s, end_of(now_s, self._wish.deadline_s), dead or widest.lines, barred)
        self._said.append(self._wait.sentence(now_s, self._terms, self._seen.unheard))
        self._end_s = (None, None, None)
        if self._way is None or set(widest.lines) != set(self._way.lines):
            self._way, self._changed_s = widest, now_s
        return True

    def _returns(self, now_s: float) -> bool:
        if self._wait is not None:
            return False  # all are tried
        back = [name for name, since_s in self._dead.items() if now_s - since_s >= RETRY_S]
        for name in back:
            del self._dead[name]
            self._moved_s[name] = now_s
            self._said.append(f"{name} is tried again")
        return bool(back)

    def _plan(self, now_s: float, forced: bool = True) -> None:
        self._planned_s = now_s
        if self._waits(now_s):
            return
        bounds = self._bounds(self._terms)
        terms, wish = self._rest(), self._wished()
        ways = [way for way in self._beliefs.now() if not set(way.lines) & (set(self._dead))]
        ways = ways or self._beliefs.now()
        made = schedule(ways, terms, wish, CAREFUL)
        way = self._chosen(ways, made, bounds)
        self._blind = way is not None and not self._beliefs.known(way)
        self._expect(now_s, ways, terms, wish)
        self._warn(made, wish)
        before = self._way
        if before is not None and before.guess:  # as it is known now
            before = next((one for one in ways if (one.lines, one.control) == (before.lines, before.control)), before)
        slower = before is not None and way is not None and way.rate.value <= before.rate.value
        if slower and not forced and now_s - self._changed_s < self._calm_s():
            return
        self._take(now_s, way, bounds)

    def _calm_s(self) -> float:
        """Before a change to what is slower; a line that is taken again begins anew, for which a near deadline has no
        time."""
        deadline_s = self._wish.deadline_s or math.inf
        return CALM_S if not self._guesses or deadline_s < _NEAR_S else min(CALM_S, deadline_s / 4)

    def _chosen(self, ways: Sequence[Way], made: Schedule, bounds: Mapping[str, str]) -> Way | None:
        usable = [way for way in ways if self._wish.takes(way) and not set(way.lines) & set(bounds)]
        if not self._sized:  # as many lines as there are, the cheapest where that is asked for
            return min(usable, key=self._unsized, default=None)
        first = next((p for p in made.phases if p.begin_s < REACTION_S), None)
        if first is not None:
            return next(
                (way for way in usable if (way.lines, way.control) == (first.lines, first.control)),
                None,
            ) or min(usable, key=lambda way: (self._hurries(way), -way.rate.value), default=None)
        if made.phases:
            return None  # later
        return min(usable, key=lambda way: (self._hurries(way), -way.rate.value), default=None)

    def _unsized(self, way: Way) -> tuple[float, bool, float]:
        dear = max(self._terms[name].price for name in way.lines) if self._wish.cheap else 0.0
        return dear, self._hurries(way), -way.rate.value

    def _hurries(self, way: Way) -> bool:
        return self._wish.background and not way.background

    def _take(self, now_s: float, way: Way | None, bounds: Mapping[str, str]) -> None:
        before, self._way = self._way, way
        if (
            before is not None
            and way is not None
            and (set(before.lines), before.control) == (set(way.lines), way.control)
        ):
            return
        self._changed_s = now_s
        for name in before.lines if before else ():
            if name in bounds:
                self._said.append(f"{name} is dropped: {bounds[name]}")
        if way is None:
            why = "; ".join(f"{name}: {why}" for name, why in bounds.items()) or "its hours are yet to come"
            self._said.append(f"no line may be used now ({why})")
            return
        if before is not None:
            added = [name for name in way.lines if name not in before.lines]
            if added:
                for name in added:
                    self._moved_s[name] = now_s
                self._said.append(f"{', '.join(added)} {'is' if len(added) == 1 else 'are'} taken, too")
            gone = [n for n in before.lines if n not in way.lines and n not in bounds and n not in self._dead]
            if gone:
                self._said.append(f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not needed")
            if before.background and not way.background:
                self._said.append(f"full speed from now on ({way.control}): the deadline needs it")
            elif before.control != way.control and set(before.lines) == set(way.lines):
                self._said.append(f"{way.control} in place of {before.control}")

    def _expect(self, now_s: float, ways: Sequence[Way], terms: Mapping[str, LineTerms], wish: Wish) -> None:
        if not self._sized:
            return
        if self._blind:
            self._end_s = (None, None, None)
            return
        found = []
        for level in (0.5, HIGH, LOW):
            made = schedule(ways, terms, wish, level)
            if not made.fits and wish.deadline_s is not None:
                made = schedule(ways, terms, wish.late(), level)
            found.append(now_s + made.end_s if made.fits else None)
        self._end_s = (found[0], found[1], found[2])

    def _warn(self, made: Schedule, wish: Wish) -> None:
        late = self._sized and wish.deadline_s is not None and not made.fits and not self._blind
        middle = self._end_s[0]
        surely = late and (middle is None or middle > (self._wish.deadline_s or 0.0))
        if surely and not self._late:
            self._said.append("the deadline cannot be kept as it looks now: it goes on as fast as it may")
        self._late = surely


def _beyond(left: float, margin: float, ahead: bool) -> float:
    """What is left, none of it within the margin; ahead: without that."""
    if left <= margin:
        return 0
    return left - margin if ahead else left


def _promised(name: str, ways: Sequence[Way]) -> float:
    """The most that a way has forecast for a line [bit/s]."""
    shares = [w.rate.value * w.loads[w.lines.index(name)] / sum(w.loads) for w in ways if name in w.lines]
    return max(shares, default=0.0)
