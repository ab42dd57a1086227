"""What the lines of this host allow a plan: their hours, what is left of their caps, and their prices, from now on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

from pathcast.errors import PathcastError
from pathcast.lines import carried, config, counters, here
from pathcast.lines.config import Line
from pathcast.plan.hours import allowances, open_hours
from pathcast.plan.hours import since as seconds_to
from pathcast.plan.program import HORIZON_S
from pathcast.plan.terms import Allowance, LineTerms
from pathcast.zone import local, zone

# hours are told no further, as every one of them makes a plan slower [s], and of a cap no more periods
_HOURS_S, _PERIODS = 366 * 86_400.0, 400
# who runs for long is told anew so often [s]
_FURTHER_S = 7 * 86_400.0
# of so many days is kept what had been carried when each began: no period is longer, nor what a pace is taken from
_DAYS = 62


def terms(
    names: Iterable[str],
    lines: Mapping[str, Line],
    most: Mapping[str, int],
    now: datetime,
    own: Mapping[str, int] | None = None,
    told: Mapping[str, int] | None = None,
    before: Callable[[str, date], int] = lambda *_: 0,
    reach_s: float = HORIZON_S,
) -> dict[str, LineTerms]:
    """Of every name; one without a line in the user's file is free of all terms but `most` [byte]. own: what pathcast
    carries of what is not in the history yet [byte]; told: what of that is in the provider's figure; before: what of
    it had passed over a line when a day began. reach_s: how far ahead hours and caps are told. Hours and days are those
    of the machine, whoever asks."""
    now = now.astimezone(zone())
    with suppress(OSError):  # who may not write the books may read them
        carried.look(lines, now.timestamp())
    own, told = own or {}, told or {}

    def of(name: str) -> LineTerms:
        mine = Own(own.get(name, 0), told.get(name, 0), partial(before, name))
        return _terms(name, lines.get(name), most.get(name), now, mine, reach_s)

    return {name: of(name) for name in names}


@dataclass(frozen=True)
class Own:
    """What pathcast carries over a line and is not in the history yet [byte]. told: of that what is in the provider's
    figure. before: what had passed when a day began."""

    bytes: int
    told: int
    before: Callable[[date], int]

    def since(self, day: date) -> int:
        return max(0, self.bytes - self.before(day))

    def told_since(self, day: date) -> int:
        return max(0, self.told - self.before(day))


class Changes:
    """What its user changes of lines while a job runs over them. say: hears of lines that are no more. reach_s: as of
    `terms`."""

    def __init__(
        self,
        lines: Mapping[str, Line],
        say: Callable[[str], object] = lambda _: None,
        reach_s: float = HORIZON_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stamp: object = self._stamped()
        self._say = say
        self._lines, self._corrections = dict(lines), self._corrected(lines)
        self._gone: set[str] = set()
        # what the job had carried when the provider's figure was told
        self._told: dict[str, int] = {}
        self._clock_set = False
        self._reach_s, self._clock = reach_s, clock
        self._due_s = clock() + _FURTHER_S
        # what the job had carried when each day began
        self._days: dict[date, Mapping[str, int]] = {local().date(): {}}

    def stepped(self) -> None:
        """The clock was set: the next look tells hours and caps anew."""
        self._stamp, self._clock_set = None, True
        self._due_s = self._clock()

    def further(self, own: Mapping[str, int]) -> dict[str, LineTerms]:
        """Now and then hours and caps anew, long before what was told of them ends; also of a line that is no more.
        own: what the job has carried [byte]."""
        self._day(own)
        if self._clock() < self._due_s:
            return {}
        self._due_s = self._clock() + _FURTHER_S
        return self._told_anew([name for name, line in self._lines.items() if line.cap is not None or line.use], own)

    def look(self, own: Mapping[str, int]) -> dict[str, LineTerms]:
        """New terms from now on, of lines that changed since the last look; a line that is no more keeps its own, so
        that no cap is lost by a slip. own: what the job has carried [byte]. Raises PathcastError once where the file
        is wrong now."""
        self._day(own)
        if (stamp := self._stamped()) == self._stamp:
            return {}
        self._stamp = stamp
        known = config.load()
        lines = {name: line for name, of in self._lines.items() if (line := _same(name, of, known)) is not None}
        corrections = self._corrected(lines)
        other = [
            name
            for name, line in lines.items()
            if replace(line, name=name) != replace(self._lines[name], name=name)
            or corrections.get(name) != self._corrections.get(name)
            or (self._clock_set and (line.cap is not None or line.use))
        ]
        self._clock_set = False
        gone = self._lines.keys() - lines
        for name in sorted(gone - self._gone):
            self._say(f"{name} is no line any more: until this ends its terms stay as they were")
        self._gone = gone
        self._told |= {name: own.get(name, 0) for name in lines if corrections.get(name) != self._corrections.get(name)}
        self._lines |= lines
        self._corrections |= corrections
        return self._told_anew(other, own)

    def _told_anew(self, names: list[str], own: Mapping[str, int]) -> dict[str, LineTerms]:
        if not names:
            return {}
        return terms(names, self._lines, {}, datetime.now(UTC), own, self._told, self._before, self._reach_s)

    def _day(self, own: Mapping[str, int]) -> None:
        """A new day may be one of a new period: what passed until then is not to be spread over both."""
        if (today := local().date()) in self._days:
            return
        with suppress(OSError, PathcastError):
            carried.look(self._lines)
        self._days[today] = dict(own)
        for day in sorted(self._days)[:-_DAYS]:
            del self._days[day]

    def _before(self, name: str, day: date) -> int:
        known = [of for of in self._days if of <= day]
        return self._days[max(known)].get(name, 0) if known else 0

    def _stamped(self) -> object:
        return config.stamp(), config.stamp_of(carried.file())

    def _corrected(self, lines: Mapping[str, Line]) -> dict[str, int]:
        with suppress(OSError):
            return carried.corrections(lines)
        return {}


def _same(name: str, of: Line, known: Mapping[str, Line]) -> Line | None:
    """What a line is now, be it by another name."""
    if name in known:
        return known[name]
    for line in known.values():
        if (of.id is not None and line.id == of.id) or (of.addresses and of.addresses == line.addresses):
            return line
    return None


def account(line: Line, at: datetime) -> carried.Account:
    """Of the period that `at` (now) lies in. What counters have not, is what pathcast itself carried."""

    def own(beyond: carried.Beyond) -> int:
        if beyond.told is None:
            begin, _ = carried.period(line.cap, at.astimezone(zone()).date())
            return own_bytes(line, begin, beyond.since_s) or 0
        since, before = beyond.told
        return max(0, (own_bytes(line, since) or 0) - before)

    found = carried.account(line, at, own)
    return replace(found, bytes=own_bytes(line, found.begin) or 0) if found.since is None else found


def correct(line: Line, bytes: int, at: datetime) -> None:
    """As the provider says so many passed in the period of `at` until then; what pathcast carries later comes to it.
    Raises OSError."""
    begin, _ = carried.period(line.cap, at.astimezone(zone()).date())
    carried.correct(line, bytes, at, own_bytes(line, begin) or 0)


def room(names: Iterable[str], lines: Mapping[str, Line], now: datetime) -> dict[str, int]:
    """Of the lines that have a cap what is left of it now [byte], 0 or more."""
    with suppress(OSError):
        carried.look(lines, now.timestamp())
    capped = {name: line for name in sorted(set(names)) if (line := lines.get(name)) is not None}
    return {
        name: max(0, line.cap.bytes - account(line, now).bytes) for name, line in capped.items() if line.cap is not None
    }


def _terms(name: str, line: Line | None, most: int | None, now: datetime, own: Own, reach_s: float) -> LineTerms:
    if line is None:
        return LineTerms(name, most_bytes=most)
    periods: tuple[Allowance, ...] = ()
    if line.cap is not None:
        found = account(line, now)
        begins: list[date] = []
        day = found.end + timedelta(days=1)
        while (end_s := seconds_to(now, day, 0)) < reach_s and len(begins) < _PERIODS:
            begins.append(day)
            day = carried.period(line.cap, day)[1] + timedelta(days=1)
        booked = own.since if found.counted else own.told_since
        left = line.cap.bytes - found.bytes - max(0, own.since(found.begin) - booked(found.begin))
        others_bps = _others_bps(line, found, now, booked)
        periods = allowances(left, line.cap.bytes, begins, now, min(reach_s, end_s), others_bps)
    hours = open_hours(line.use, now, min(reach_s, _HOURS_S)) if line.use else None
    return LineTerms(name, hours, periods, most, line.price or 0.0, line.prefer)


def _others_bps(line: Line, found: carried.Account, now: datetime, own: Callable[[date], int]) -> float:
    """What passes over a line at its pace beside what pathcast itself carried [bit/s], on average. own: of what is
    booked since a day that which no history has yet [byte]."""
    if found.paced is None:
        return 0.0
    first, bytes = found.paced
    passed_s = now.timestamp() - datetime.combine(first, datetime.min.time(), now.tzinfo).timestamp()
    return max(0, bytes - (own_bytes(line, first) or 0) - own(first)) * 8 / passed_s


def passing(lines: Mapping[str, Line]) -> Callable[[], dict[str, int]]:
    """What the devices of lines carry from now on, both ways, whoever sends it [byte]; it never falls. Not of lines
    that share a device, nor of those whose device was never seen."""
    found = here.addresses()
    devices: dict[str, str] = {}
    for name, line in lines.items():
        if device := line.dev or next((one.dev for one in here.of_line(line, found)), None):
            devices[name] = device
    alone = {name: dev for name, dev in devices.items() if list(devices.values()).count(dev) == 1}

    last: dict[str, tuple[int, int]] = {}
    passed: dict[str, int] = {}

    def look() -> dict[str, int]:
        counted = counters.read()
        if not counted:
            return dict(passed)
        first = not last
        for name, device in alone.items():
            seen, before = counted.get(device, (0, 0)), last.get(name, (0, 0))
            # a device that was made anew, as one that was dialled again, began at 0; so did one that came later
            anew = any(now < then for now, then in zip(seen, before, strict=True))
            more = 0 if first else sum(seen) if anew else sum(seen) - sum(before)
            last[name] = seen
            if device in counted:
                passed[name] = passed.get(name, 0) + more
        return dict(passed)

    look()
    return look


def own_bytes(line: Line, since: date, begun_s: float = 0.0) -> int | None:
    """What pathcast itself has sent and received over a line since that day; None where no history tells. begun_s: by
    what began then [s since 1970] or later."""
    from pathcast.history.place import find
    from pathcast.history.read import Reader
    from pathcast.history.store import Store
    from pathcast.lines import ids

    try:
        place = find()
        if place is None or not (store := Store(place)).exists:
            return None
        begin = datetime.combine(since, datetime.min.time(), zone()).timestamp()
        hours = Reader(store).usage(ids.of_line(line), int(begin * 1e6), int(begun_s * 1e6))
        store.close()
    except PathcastError:
        return None
    return sum(of.bytes_out + of.bytes_in for of in hours if of.source == "pathcast")
