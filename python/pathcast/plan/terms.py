"""What a plan is made from: the lines' terms, the ways that a forecast gives rates for, and what is wanted.

Times are seconds from the moment of planning, bytes of lines are IP bytes both ways, as providers count them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pathcast.errors import usage
from pathcast.overhead import ACKS, DATA

# IP bytes both ways for a byte of the job, at most
OVERHEAD = DATA + ACKS
# the ends of a forecast's interval
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True)
class Rate:
    """A rate of the job's bytes [bit/s]: median and 90 % interval."""

    value: float
    low: float
    high: float

    def at(self, level: float) -> float:
        """The quantile, linear between the three; beyond the interval its ends."""
        if level >= 0.5:
            return self.value + (self.high - self.value) * min(level - 0.5, HIGH - 0.5) / (HIGH - 0.5)
        return self.value + (self.low - self.value) * min(0.5 - level, 0.5 - LOW) / (0.5 - LOW)


@dataclass(frozen=True)
class Allowance:
    """What may yet pass over a line between two times [byte], without what others are to send until its end
    (`others_bps`); below 0: so much more it would have to be before anything may."""

    begin_s: float
    end_s: float
    bytes: int
    others_bps: float = 0.0


@dataclass(frozen=True)
class LineTerms:
    """What a line may be used for.

    hours: when it may be used; None: always. allowances: one for every period of its cap, side by side. most_bytes: for
    this job. price: money for a byte. rank: 1 first.
    """

    name: str
    hours: tuple[tuple[float, float], ...] | None = None
    allowances: tuple[Allowance, ...] = ()
    most_bytes: int | None = None
    price: float = 0.0
    rank: int | None = None

    def open(self, begin_s: float, end_s: float) -> bool:
        """Whether it may be used all that time."""
        return self.hours is None or any(begin <= begin_s and end_s <= end for begin, end in self.hours)

    def told(self, at_s: float) -> bool:
        """Whether its cap, if it has one, is known then: beyond its last period nothing is allowed."""
        return not self.allowances or any(at_s < period.end_s for period in self.allowances)


@dataclass(frozen=True)
class Way:
    """Lines that carry the job together under a controller, and how fast.

    loads: IP bytes on each of the lines for a byte of the job. background: the controller gives way to all others.
    guess: nothing is known of these lines, whatever the rate says.
    """

    lines: tuple[str, ...]
    control: str
    rate: Rate
    loads: tuple[float, ...]
    background: bool = False
    guess: bool = False


@dataclass(frozen=True)
class Wish:
    """A job, and what its user allows.

    cheap: as little money as the deadline allows, rather than as soon as possible. background: give way to others;
    hurry: but go at full speed for as long as the deadline needs it.
    """

    size_bytes: int
    deadline_s: float | None = None
    budget: float | None = None
    max_rate_bps: float | None = None
    cheap: bool = False
    background: bool = False
    hurry: bool = False

    def __post_init__(self) -> None:
        if self.size_bytes < 1:
            raise usage(f"--size {self.size_bytes}B: a transfer has at least one byte")
        if self.deadline_s is not None and self.deadline_s <= 0:
            raise usage(f"--by: that is {-self.deadline_s:.0f} s ago; give a time to come")
        if self.budget is not None and not 0 <= self.budget < math.inf:
            raise usage(f"--budget {self.budget}: allowed is an amount of money, 0 or more")
        if self.max_rate_bps is not None and self.max_rate_bps <= 0:
            raise usage(f"--max-rate {self.max_rate_bps:g} bit/s: allowed is a rate above zero, such as 5Mbit")

    def late(self) -> Wish:
        """The same when its deadline cannot be kept: as fast as is allowed."""
        return replace(self, deadline_s=None, cheap=False, background=self.background and not self.hurry)

    def takes(self, way: Way) -> bool:
        """Whether the user allows it."""
        return not self.background or way.background or self.hurry


def ways_of(options: Sequence[Mapping[str, Any]], line_of: Mapping[str, str], background: Sequence[str]) -> list[Way]:
    """The options of a forecast (`pathcast.predict`) as ways: of each set of lines, in the background and not, the one
    that is expected to be fastest. line_of: of every path its line. background: controllers that give way."""
    found: dict[tuple[frozenset[str], bool], Way] = {}
    for option in options:  # the fastest first
        carried = sum(option["bytes_by_path"])
        if not carried or option["throughput_bps"]["value"] is None:
            continue
        again = 1 + (option["resent_bytes"] or 0) / carried
        loads: dict[str, float] = {}
        for path, of in zip(option["paths"], option["bytes_by_path"], strict=True):
            line = line_of.get(path, path)
            loads[line] = loads.get(line, 0.0) + of / carried * OVERHEAD * again
        rate = option["throughput_bps"]
        quiet = option["control"] in background
        way = Way(
            tuple(loads),
            option["control"],
            Rate(rate["value"], rate["low"] or 0.0, rate["high"] or rate["value"]),
            tuple(loads.values()),
            quiet,
        )
        found.setdefault((frozenset(loads), quiet), way)
    return list(found.values())
