"""What each line carried, by day, from its interface's counters: a small file in the state directory.

Counters are looked at whenever a command uses the lines, and when a run over them ends. What passed between two looks
is spread evenly over the days between, however the clock was set. After a reboot, or where the device was made anew,
its new counters have what passed since then; what passed before that and after the last look is not known. Counted is
what the device carried both ways, whoever sent it: that is what a provider counts too, give or take headers below IP.
Days are those of the machine's zone, so that a cap is the same for every command.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError
from pathcast.history.place import ROOT_STATE, state_directory
from pathcast.lines import config, counters, here
from pathcast.lines.config import Cap, Line
from pathcast.runtime.state import await_lock
from pathcast.say import say
from pathcast.zone import zone

# days that are kept; a pace is of the period, and of so many days at least, where they were counted
KEPT, _PACE_DAYS = 400, 7
# what is looked at for less is no pace [s, part of the period]
_LEAST_S, _LEAST_PART = 3600.0, 1 / 30
# two zones are no further apart: older books have days of whichever one a command was told
_APART = timedelta(days=2)
# counters that were read within this time have all [s]
_FRESH_S = 60.0
# who may only read the books cannot open their lock, and so not hold it; a group that writes them can
_LOCK_MODE = 0o622


@dataclass(frozen=True)
class Account:
    """What a line carried in the period of its cap (without a cap: in this month).

    since: the first day of it that was counted; None: nothing was, and bytes are at most pathcast's own. begin, end:
    its first and last day. full: the day on which the cap is reached at this pace, within the period. by_end: what it
    will have carried by then. own: of the bytes those that no counter has, only pathcast's own records. counted: False
    where no counter has what passes now. paced: the day since which its pace is taken, and the bytes since then; None:
    it has none yet.
    """

    line: str
    bytes: int
    since: date | None
    begin: date
    end: date
    cap: Cap | None = None
    full: date | None = None
    by_end: int | None = None
    own: int = 0
    counted: bool = True
    paced: tuple[date, int] | None = None

    def sentence(self) -> str:
        """For people: `412 GB of 1 TB, full on the 19th at this pace`."""
        from pathcast.units import size

        told = size(self.bytes)
        if self.cap is not None:
            told += f" of {size(self.cap.bytes)}"
        if self.own:
            told += f" ({size(self.own)} of it only what pathcast itself carried)"
        if self.cap is not None and self.bytes >= self.cap.bytes:
            told += f", full, until {self.end + timedelta(days=1)}"
        elif self.full is not None:
            told += f", full on the {_ordinal(self.full.day)} at this pace"
        elif self.by_end is not None:
            told += f", {size(self.by_end)} on the {_ordinal(self.end.day)} at this pace"
        if self.since is None:
            return f"{told}; {'only what pathcast itself carried' if self.bytes else 'nothing'} is counted yet"
        return told if self.since <= self.begin else f"{told} (counted since {self.since})"


@dataclass(frozen=True)
class Beyond:
    """What counters have not: all since a time [s since 1970], or what comes to the own bytes that pathcast had carried
    since a day when the provider's figure was told."""

    since_s: float
    told: tuple[date, int] | None


def file() -> Path:
    """Where it is kept."""
    return state_directory() / "lines.json"


def look(lines: Mapping[str, Line], at: float | None = None) -> dict[str, str]:
    """Books what has passed since the last look. Lines without a device now are left as they are. Of those whose device
    is there but has no counters that can be read: its name.

    Raises OSError where the file cannot be written.
    """
    if not lines:
        return {}
    found = here.addresses()
    there = {one.dev for one in found}
    now = time.time() if at is None else at
    devices = {name: device for name, line in lines.items() if (device := _device(line, found)) is not None}
    with _open() as books:
        counted = counters.read()  # alone: older ones would be taken for those of another device
        for name, device in devices.items():
            if device in counted and (of := _counters(device, counted[device])):
                _book(books.setdefault(key(lines[name]), {}), of, now)
    return {name: device for name, device in devices.items() if device in there and device not in counted}


def apart(lines: Mapping[str, Line]) -> str | None:
    """A sentence where these lines are root's and have a cap, and this user counts alone what of it is used."""
    if os.geteuid() == 0 or state_directory() == ROOT_STATE or config.source() != config.SYSTEM:
        return None
    if all(line.cap is None for line in lines.values()):
        return None
    told = f"the lines are those of {config.SYSTEM}, but what they carried is this user's own count ({file()})"
    return f"{told}: what root's jobs have used of a cap may be missing; `sudo pathcast line list` has it"


def key(line: Line) -> str:
    """What its bytes are booked under."""
    return line.known_by


def correct(line: Line, bytes: int, at: datetime, own: int = 0) -> None:
    """From elsewhere it is known that so many bytes passed in the period of `at` until then. own: what pathcast itself
    has recorded of it. Raises OSError."""
    begin, _ = period(line.cap, at.astimezone(zone()).date())
    with _open() as books:
        book = books.setdefault(key(line), {})
        days: dict[str, int] = book.setdefault("days", {})
        for day in [day for day in days if day >= begin.isoformat()]:
            del days[day]
        days[begin.isoformat()] = bytes
        book["corrections"] = book.get("corrections", 0) + 1
        book["told"] = {"at": at.timestamp(), "own": own, "since": begin.isoformat()}


def corrections(lines: Mapping[str, Line]) -> dict[str, int]:
    """How often `correct` was called of each. Raises OSError."""
    with _open(write=False) as books:
        return {name: books.get(key(line), {}).get("corrections", 0) for name, line in lines.items()}


def account(line: Line, at: datetime, own: Callable[[Beyond], int] = lambda _: 0) -> Account:
    """Of the period that `at` (now) lies in; what is booked ahead in it, or soon after it, counts: it has passed. own:
    what pathcast itself has recorded of what counters have not."""
    at = at.astimezone(zone())
    today = at.date()
    begin, end = period(line.cap, today)
    with _open(write=False) as books:
        book = books.get(key(line), {})
        days = {date.fromisoformat(day): count for day, count in book.get("days", {}).items()}
    now = {day: count for day, count in days.items() if begin <= day <= max(end, today + _APART)}
    if not now:
        return Account(line.name, 0, None, begin, end, line.cap, counted=False)
    beyond = _beyond(book, begin, at.timestamp())
    more = 0 if beyond is None else own(beyond)
    total, since = sum(now.values()) + more, min(today, *now)
    after = _begin(end + timedelta(days=1), at.tzinfo)
    left = (after - at.timestamp()) / 86_400
    first = since
    while (today - first).days < _PACE_DAYS and first - timedelta(days=1) in days:
        first -= timedelta(days=1)
    passed_s = at.timestamp() - _begin(first, at.tzinfo)
    paced = None
    if passed_s >= max(_LEAST_S, _LEAST_PART * (after - _begin(begin, at.tzinfo))):
        paced = first, total + sum(count for day, count in days.items() if first <= day < begin)
    full = by_end = None
    # of the first day nobody knows when counting began
    if paced is not None and not begin < first == today:
        pace = paced[1] / passed_s * 86_400
        by_end = round(total + pace * left)
        if line.cap is not None and total < line.cap.bytes <= by_end:
            full = (at + timedelta(days=(line.cap.bytes - total) / pace)).date()
    counted = beyond is None or not beyond.told
    return Account(line.name, total, since, begin, end, line.cap, full, by_end, more, counted, paced)


def _beyond(book: Mapping[str, Any], begin: date, now: float) -> Beyond | None:
    """None: counters were just read."""
    last = book["last"]["at"] if book.get("last") else None
    told = book.get("told")
    if told is not None and (last is None or told["at"] >= last) and date.fromisoformat(told["since"]) >= begin:
        return Beyond(told["at"], (date.fromisoformat(told["since"]), told["own"]))
    return None if last is None or now - last <= _FRESH_S else Beyond(last, None)


def period(cap: Cap | None, day: date) -> tuple[date, date]:
    """First and last day of the period that a day lies in; without a cap, of the month."""
    kind, reset = (cap.period, cap.reset) if cap else ("month", 1)
    if kind == "day":
        return day, day
    if kind == "week":
        begin = day - timedelta(days=(day.isoweekday() - reset) % 7)
        return begin, begin + timedelta(days=6)
    begin = day.replace(day=reset)
    if begin > day:
        begin = (day.replace(day=1) - timedelta(days=1)).replace(day=reset)
    following = (begin.replace(day=1) + timedelta(days=32)).replace(day=reset)
    return begin, following - timedelta(days=1)


def _device(line: Line, found: list[here.Address]) -> str | None:
    return line.dev or next((one.dev for one in here.of_line(line, found)), None)


def _counters(device: str, counted: tuple[int, int]) -> dict[str, Any] | None:
    try:
        about = {"device": device, "index": socket.if_nametoindex(device), "boot": _boot(), "boottime": _boottime()}
    except OSError:  # it is gone meanwhile
        return None
    return {**about, "rx": counted[0], "tx": counted[1]}


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _boottime() -> float:
    """Since the boot [s], by a clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _book(book: dict[str, Any], seen: dict[str, Any], now: float) -> None:
    last = book.get("last")
    days: dict[str, int] = book.setdefault("days", {})
    tz = zone()
    passed = _passed(last, seen)
    if last is not None and passed is not None:
        since = _since(last, seen, now)
        if last["at"] < since:
            _spread(days, 0, last["at"], since, tz)  # counted, too: nothing passed
        _spread(days, passed, since, now, tz)
    else:
        days.setdefault(_day(now, tz).isoformat(), 0)  # from here on it is counted
    for day in sorted(days)[:-KEPT]:
        del days[day]
    book["last"] = {**seen, "at": now}


def _since(last: Mapping[str, Any], seen: Mapping[str, Any], now: float) -> float:
    """From when on that passed, by the clock as it is now."""
    # without the time since boot nobody knows when, where the clock was set back
    by_clock: float = min(last["at"], now)
    if "boottime" not in seen:
        return by_clock
    if last.get("boot") != seen["boot"]:  # after it, not while the machine was off
        return min(now, max(by_clock, now - float(seen["boottime"])))
    if "boottime" not in last:
        return by_clock
    return now - max(0.0, float(seen["boottime"] - last["boottime"]))


def _passed(last: Mapping[str, Any] | None, seen: Mapping[str, Any]) -> int | None:
    """What counters have of the time since the last look [byte]; None: they are another device's, and begin now."""
    if last is None or last.get("device") != seen["device"]:
        return None
    now, before = (int(of["rx"] + of["tx"]) for of in (seen, last))
    if last.get("boot") != seen["boot"]:
        return now
    if seen["index"] < last["index"]:
        return None  # indices grow: it had another name when the line was last looked at
    if seen["index"] == last["index"] and all(seen[name] >= last[name] for name in ("rx", "tx")):
        return now - before
    return now  # made anew, as a PPP device is at every dial-in: it began at 0


def _spread(days: dict[str, int], bytes: int, since: float, until: float, tz: tzinfo) -> None:
    rest, begin = bytes, since
    while True:
        today = _day(begin, tz)
        tomorrow = _begin(today + timedelta(days=1), tz)
        last = tomorrow >= until
        part = rest if last else round(bytes * (tomorrow - begin) / (until - since))
        days[today.isoformat()] = days.get(today.isoformat(), 0) + part
        if last:
            return
        rest, begin = rest - part, tomorrow


def _day(at: float, tz: tzinfo) -> date:
    return datetime.fromtimestamp(at, tz).date()


def _begin(day: date, tz: tzinfo | None) -> float:
    """The first moment of a day [s since 1970]."""
    return datetime.combine(day, datetime.min.time(), tz).timestamp()


@contextlib.contextmanager
def _open(write: bool = True) -> Iterator[dict[str, Any]]:
    """The books, alone; written back at the end. What is none of ours in them begins anew, the old file beside it.
    Raises PathcastError where it cannot be read, or is held by another process (`busy`)."""
    path = file()
    if not write:  # it is replaced whole, so who reads needs no lock, nor the right to make one
        yield _read(path)[0]
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    with _alone(path.with_suffix(".lock")):
        books, broken = _read(path)
        if broken:
            aside = path.with_suffix(".broken")
            os.replace(path, aside)
            lost = "lines that are missing count from now on: `pathcast line set NAME --used` corrects it"
            say(f"`{path}` was broken, and is now `{aside}`; {lost}")
        yield books
        temporary = path.with_suffix(".new")
        try:
            with open(temporary, "w") as new:
                new.write(json.dumps(books))
                new.flush()
                os.fsync(new.fileno())  # an empty file after a power cut would have every cap begin anew
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _LOCK_MODE)
    try:
        if (mode := os.fstat(fd).st_mode & 0o777) & ~_LOCK_MODE:
            with contextlib.suppress(PermissionError):  # its owner will
                os.fchmod(fd, mode & _LOCK_MODE)
        await_lock(fd, lock)
        yield
    finally:
        os.close(fd)


def _read(path: Path) -> tuple[dict[str, Any], bool]:
    """What is booked, and whether there was something that is none of ours. Raises PathcastError."""
    try:
        books = json.loads(path.read_text())
    except FileNotFoundError:
        return {}, False
    except OSError as error:
        told = f"cannot read `{path}`: {error.strerror}"
        raise PathcastError("books", told, "it says what the lines have carried: let this user read it") from None
    except (ValueError, RecursionError):
        return {}, True
    if not isinstance(books, dict):
        return {}, True
    good = {name: book for name, book in books.items() if _is_book(book)}
    return good, len(good) < len(books)


def _is_book(book: Any) -> bool:
    try:
        days, last = book.get("days", {}), book.get("last")
        for day, count in days.items():
            date.fromisoformat(day)
            if type(count) is not int or count < 0:
                return False
        names = ("rx", "tx", "at", "index", *(("boottime",) if last and "boottime" in last else ()))
        numbers = last is None or all(math.isfinite(last[name] + 0) for name in names)
        told = book.get("told")
        if told is not None:
            date.fromisoformat(told["since"])
            numbers = numbers and math.isfinite(told["at"] + 0) and type(told["own"]) is int and told["own"] >= 0
        return numbers and type(book.get("corrections", 0)) is int
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False


def _ordinal(day: int) -> str:
    ending = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"
