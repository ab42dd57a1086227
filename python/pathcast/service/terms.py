"""What the lines of this host allow a plan: their hours, what is left of their caps, and their prices, from now on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from pathcast.errors import PathcastError
from pathcast.lines import carried, config, counters, here
from pathcast.lines.config import Line
from pathcast.plan.hours import allowances, open_hours
from pathcast.plan.program import HORIZON_S
from pathcast.plan.terms import Allowance, LineTerms
from pathcast.zone import zone

# less says nothing of what others send over a line [s]
_LEAST_S = 3600.0


def terms(
    names: Iterable[str],
    lines: Mapping[str, Line],
    most: Mapping[str, int],
    now: datetime,
    own: Mapping[str, int] | None = None,
    told: Mapping[str, int] | None = None,
) -> dict[str, LineTerms]:
    """Of every name; one without a line in the user's file is free of all terms but `most` [byte]. own: what pathcast
    carries of what is not in the history yet [byte]; told: what of that is in the provider's figure. Hours and days are
    those of the machine, whoever asks."""
    now = now.astimezone(zone())
    with suppress(OSError):  # who may not write the books may read them
        carried.look(lines, now.timestamp())
    own, told = own or {}, told or {}
    return {
        name: _terms(name, lines.get(name), most.get(name), now, own.get(name, 0), told.get(name, 0)) for name in names
    }


class Changes:
    """What its user changes of lines while a job runs over them. say: hears of lines that are no more."""

    def __init__(self, lines: Mapping[str, Line], say: Callable[[str], object] = lambda _: None) -> None:
        self._stamp: object = self._stamped()
        self._say = say
        self._lines, self._corrections = dict(lines), self._corrected(lines)
        self._gone: set[str] = set()
        # what the job had carried when the provider's figure was told
        self._told: dict[str, int] = {}
        self._clock_set = False

    def stepped(self) -> None:
        """The clock was set: the next look tells hours and caps anew."""
        self._stamp, self._clock_set = None, True

    def look(self, own: Mapping[str, int]) -> dict[str, LineTerms]:
        """New terms from now on, of lines that changed since the last look; a line that is no more keeps its own, so
        that no cap is lost by a slip. own: what the job has carried [byte]. Raises PathcastError once where the file
        is wrong now."""
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
        return terms(other, lines, {}, datetime.now(UTC), own, self._told) if other else {}

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


def _terms(name: str, line: Line | None, most: int | None, now: datetime, own: int, told: int) -> LineTerms:
    if line is None:
        return LineTerms(name, most_bytes=most)
    periods: tuple[Allowance, ...] = ()
    if line.cap is not None:
        found = account(line, now)
        begins, last = [], now.date() + timedelta(seconds=HORIZON_S)
        day = found.end + timedelta(days=1)
        while day <= last:
            begins.append(day)
            day = carried.period(line.cap, day)[1] + timedelta(days=1)
        booked = own if found.counted else told
        left = line.cap.bytes - found.bytes - max(0, own - booked)
        periods = allowances(left, line.cap.bytes, begins, now, HORIZON_S, _others_bps(line, found, now, booked))
    hours = open_hours(line.use, now, HORIZON_S) if line.use else None
    return LineTerms(name, hours, periods, most, line.price or 0.0, line.prefer)


def _others_bps(line: Line, found: carried.Account, now: datetime, own: int) -> float:
    """What passes over a line in this period beside what pathcast itself carried [bit/s], on average. own: of what is
    booked that which no history has yet [byte]."""
    if found.since is None:
        return 0.0
    passed_s = now.timestamp() - datetime.combine(found.since, datetime.min.time(), now.tzinfo).timestamp()
    if passed_s < _LEAST_S:
        return 0.0
    return max(0, found.bytes - (own_bytes(line, found.since) or 0) - own) * 8 / passed_s


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
