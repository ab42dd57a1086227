"""`--by`: when a transfer is to be done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from pathcast import zone
from pathcast.cli import quantity
from pathcast.errors import usage

_ALLOWED = "a time of day (06:00), a date and time (2027-03-01T06:00), or from now on (8h)"
# the wall clock against the monotonic one, from where on it was set [s]
_STEP_S = 2.0


@dataclass(frozen=True)
class Deadline:
    """A time by the wall clock, or so long from the start on."""

    at: datetime | None
    after_s: float
    began_s: tuple[float, float]

    def left_s(self, elapsed_s: float | None) -> float:
        """Until then; below zero when it is past. elapsed_s: since the start by a clock that is not the machine's."""
        if elapsed_s is not None:
            return (self.after_s if self.at is None else self.at.timestamp() - self.began_s[0]) - elapsed_s
        if self.at is not None:
            return self.at.timestamp() - time.time()
        return self.after_s - (time.monotonic() - self.began_s[1])

    def step(self) -> str | None:
        """A sentence where the wall clock was set since the start."""
        wall, steady = time.time() - self.began_s[0], time.monotonic() - self.began_s[1]
        off = wall - steady
        if self.at is None or abs(off) < _STEP_S:
            return None
        return f"the clock was set by {off:+.0f} s meanwhile: the deadline is by the clock as it is now"

    def written(self) -> str:
        """ISO 8601, with the offset to UTC, to the second."""
        at = self.at or zone.local(self.began_s[0] + self.after_s)
        return at.isoformat(timespec="seconds")


def deadline(text: str, now: datetime | None = None, late: bool = False) -> Deadline:
    """Parses `06:00` (the next one), ISO 8601 (the machine's time unless it says more), `8h`; refuses what is past,
    but where it may be late."""
    began = (time.time(), time.monotonic())
    now = zone.local(None if now is None else now.timestamp())
    word = text.strip()
    if word[:1].isdigit() and word[-1:].isalpha() and "T" not in word[:-1].upper():
        after_s = quantity.duration_s("--by", word)
        if after_s <= 0:
            raise usage(f"--by {text}: that is now; give a time to come")
        return Deadline(None, after_s, began)
    at = _clock(word, now) or _date(word)
    if at is None:
        raise usage(f"--by `{text}` is no time; allowed: {_ALLOWED}")
    if at <= now and not late:
        raise usage(f"--by {text} is past: it is {now.isoformat(timespec='seconds')}")
    return Deadline(at, 0.0, began)


def _clock(word: str, now: datetime) -> datetime | None:
    for form in ("%H:%M", "%H:%M:%S"):
        try:
            of = datetime.strptime(word, form).time()
        except ValueError:
            continue
        # by the wall clock, also where a day has 23 or 25 hours
        for days in (0, 1):
            for at in _local(datetime.combine((now + timedelta(days=days)).date(), of)):
                if at > now:
                    return at
    return None


def _date(word: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(word)
        # of one that names no offset the first time that it is so late here
        return _local(at)[0] if at.tzinfo is None else zone.local(at.timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _local(naive: datetime) -> list[datetime]:
    """When it is so late here: twice where the clock is set back over it; where it is set forward over it, so much
    later (RFC 5545, 3.3.5)."""
    here = zone.zone()
    first, second = (zone.local(naive.replace(tzinfo=here, fold=fold).timestamp(), here) for fold in (0, 1))
    there = first.replace(tzinfo=None, fold=0) == naive.replace(fold=0)
    return [first, second] if there and second > first else [first]
