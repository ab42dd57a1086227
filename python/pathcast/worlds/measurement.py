"""What `measure` is asked for and what it returns, the same in every world.

Rates are IP bits per second, times seconds. Every value comes with its 90 % interval, or with the reason why there is
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pathcast import codec
from pathcast.errors import Exit, PathcastError, usage

METHODS = ("ride", "replay", "pathtester", "pathtester-old", "slops")
# the old PathTester with the wider gaps of its paper's table 1: up to 2^16 to 2^20 us
WIDER = tuple(f"pathtester-old-{iunit}" for iunit in range(16, 21))
DIRECTIONS = ("out", "in")
# the reasons that a far end and the estimators give, in words
REASONS = {
    "no-answer": "no probe was answered",
    "too-few": "too few probes arrived within the budget",
    "inconsistent": "the samples contradict each other",
    "host-too-slow": "this or the far host disturbed most of the probes",
    "feedback-lost": "reports of the probes ceased to come",
    "rate-limit": "the far end does not grant so fast a train",
    "stopped": "it was stopped",
    "session-lost": "the far end ended the session",
}


@dataclass(frozen=True)
class Rate:
    """A rate and its 90 % interval [bit/s]; `value` is None where nothing trustworthy was found, `why` says why."""

    value: float | None
    low: float | None
    high: float | None
    why: str | None = None
    # `shared`, `fair` (every flow has a queue of its own, the value is the probes' share), None where it cannot be told
    discipline: str | None = None


@dataclass(frozen=True)
class Clock:
    """How the two clocks were compared. Without synchronised clocks the delays hold within their error only."""

    synchronised: bool
    # the far clock less ours
    offset_s: float | None
    skew_ppm: float | None = None


@dataclass(frozen=True)
class Delay:
    """One-way delay [s]: the truth of each is within `error`; None: no bound is known.

    packet_bytes: size of the packets that the minimum is of [IP byte].
    """

    minimum: float | None
    median: float | None
    p95: float | None
    error: float | None
    clock: Clock
    packet_bytes: int | None = None


@dataclass(frozen=True)
class Direction:
    """One direction of a path. `loss`: share of its probes that did not arrive."""

    capacity_bps: Rate
    available_bps: Rate
    delay_s: Delay
    loss: float | None
    bytes: int

    @property
    def trustworthy(self) -> bool:
        """Whether available bandwidth and capacity were found."""
        return self.available_bps.value is not None and self.capacity_bps.value is not None


@dataclass(frozen=True)
class PathMeasured:
    """A path and its directions: `out` from this host to the far end, `in` back."""

    name: str
    local: str
    remote: str
    directions: dict[str, Direction]


@dataclass(frozen=True)
class Measurement:
    """A measurement of one or several paths. probe_bytes: IP bytes of all packets that it sent, both ways."""

    paths: tuple[PathMeasured, ...]
    probe_bytes: int
    elapsed_s: float
    method: str
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, pairs: Sequence[dict[str, str]], document: dict[str, Any]) -> Measurement:
        """From the machine's document, whose paths are those of `pairs`."""

        def directions(of: dict[str, Any]) -> dict[str, Any]:
            return {name: of[name] for name in DIRECTIONS if name in of}

        found = zip(pairs, document["paths"], strict=True)
        paths = [{**pair, "directions": directions(of["directions"])} for pair, of in found]
        return codec.read(cls, {**document, "paths": paths})

    def path(self, name: str) -> PathMeasured:
        """The path of that name."""
        for path in self.paths:
            if path.name == name:
                return path
        raise usage(f"path `{name}` was not measured; measured: {', '.join(p.name for p in self.paths)}")

    @property
    def untrustworthy(self) -> PathcastError | None:
        """Exit 3 with the first reason if some direction has no trustworthy value."""
        missing = [
            (path, direction, what, rate.why)
            for path in self.paths
            for direction, of in path.directions.items()
            for what, rate in (("capacity", of.capacity_bps), ("available bandwidth", of.available_bps))
            if rate.value is None
        ]
        if not missing:
            return None
        path, direction, what, why = missing[0]
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        return PathcastError(
            "untrustworthy",
            f"no {what} of path `{path.name}` {direction}: {REASONS.get(why or '', why or 'unknown reason')}{more}",
            "give more --time and --budget, or measure when the hosts are less busy",
            Exit.UNTRUSTWORTHY,
        )

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Request:
    """What is to be measured.

    bytes, time_s: limits of each direction of each path, IP bytes and seconds; None: by the capacity that is found.
    at_once: all paths at the same time, which shows what they share, instead of one after the other.
    """

    directions: tuple[str, ...] = DIRECTIONS
    method: str = METHODS[0]
    bytes: int | None = None
    time_s: float | None = None
    dscp: int = 0
    at_once: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.directions or set(self.directions) - set(DIRECTIONS):
            raise usage(f"direction `{','.join(self.directions)}`: allowed are {', '.join(DIRECTIONS)}, both")
        if self.method not in (*METHODS, *WIDER):
            raise usage(f"method `{self.method}`: allowed are {', '.join(METHODS)}")
        if self.bytes is not None and not 10_000 <= self.bytes <= 10**12:
            raise usage(f"a budget of {self.bytes} B: allowed are 10kB to 1TB for each direction of a path")
        if self.time_s is not None and not 0.1 <= self.time_s <= 600:
            raise usage(f"a time of {self.time_s:g} s: allowed are 100ms to 600s for each direction of a path")
        if not 0 <= self.dscp <= 63:
            raise usage(f"DSCP {self.dscp}: allowed are 0 to 63")

    def document(self) -> dict[str, Any]:
        """For the machine."""
        return asdict(self)
