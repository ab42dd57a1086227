"""What `measure` is asked for and what it returns, the same in every world.

Rates are IP bits per second, times seconds. Every value comes with its 90 % interval, or with the reason why there is
none. The record is that of `crates/estimate/src/knowledge.rs`, under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pathcast import codec
from pathcast.errors import Exit, PathcastError, usage
from pathcast.steer.fabric import SwitchCount
from pathcast.units import seconds, span
from pathcast.worlds import arguments

METHODS = ("ride", "replay", "pathtester", "pathtester-old", "slops")
# the old PathTester with the wider gaps of its paper's table 1: up to 2^16 to 2^20 us
WIDER = tuple(f"pathtester-old-{iunit}" for iunit in range(16, 21))
DIRECTIONS = ("out", "in")
EFFORTS = ("light", "usual", "thorough")
# the reasons that a far end and the estimators give, in words
REASONS = {
    "no-answer": "no probe was answered",
    "too-few": "too few probes arrived within the budget",
    "inconsistent": "the samples contradict each other",
    "host-too-slow": "this or the far host is slower than the line, or disturbed most of the probes",
    "feedback-lost": "reports of the probes ceased to come",
    "rate-limit": "the far end does not grant so fast a train",
    "stopped": "it was stopped",
    "session-lost": "the far end ended the session",
    "not-looked-for": "this mode does not look for it",
    "absent": "there is none",
    "beyond-limit": "more than this measurement may try",
    "ambiguous": "what was seen fits several answers",
    "too-short": "what was seen is too short for it",
    "not-seen": "nothing was seen of it",
}
# a round trip that is longer is not waited for (`SILENCE`, crates/measure/src/client_path.rs) [s]
LONGEST_S = 5.0
# beside a value: so short a look cannot tell what a policer lets through for longer
GLANCE = "too-short"
# what more time and bytes would mend
_MENDED_BY_MORE = ("too-few", "inconsistent", "too-short")


@dataclass(frozen=True)
class Value:
    """A number and its 90 % interval; of `value` None, or of one not to be trusted, `why` says why.

    A bound that is not known is None. Bounds can be known without a value.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str | None = None

    @property
    def trusted(self) -> bool:
        """Whether there is a value, and nothing against it."""
        return self.value is not None and self.why is None

    @property
    def at_a_glance(self) -> Value:
        """The same as what was so just then, however short the look was."""
        return replace(self, why=None) if self.why == GLANCE else self

    @property
    def sure(self) -> float | None:
        """The value, if it is to be trusted."""
        return self.value if self.trusted else None


# of what an older record does not have
_NOT_LOOKED_FOR = Value(None, why="not-looked-for")


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

    minimum: Value
    median: Value
    p95: Value
    error: float | None
    clock: Clock
    packet_bytes: int | None = None


@dataclass(frozen=True)
class Queue:
    """The queue in front of the bottleneck: the longest wait in it [s, IP byte], of a managed or fair one the standing
    delay of a flow that fills it; how probable it is that every flow has its own (`discipline`: fair, else fifo), and
    that it is managed."""

    depth_s: Value = _NOT_LOOKED_FOR
    depth_bytes: Value = _NOT_LOOKED_FOR
    discipline: str | None = None
    fair: Value = _NOT_LOOKED_FOR
    managed: Value = _NOT_LOOKED_FOR


@dataclass(frozen=True)
class Policer:
    """A token bucket that drops: how probable it is, its rate [bit/s] and its burst [IP byte]."""

    probability: Value = _NOT_LOOKED_FOR
    rate_bps: Value = _NOT_LOOKED_FOR
    burst_bytes: Value = _NOT_LOOKED_FOR


@dataclass(frozen=True)
class Loss:
    """Probes lost of those accounted for; random: the share that is lost whatever the queue holds, row: so many of
    these one after the other, on average."""

    lost: int
    packets: int
    random: Value = _NOT_LOOKED_FOR
    row: float | None = None

    @property
    def share(self) -> float | None:
        """Of the probes, 0 to 1."""
        return self.lost / self.packets if self.packets else None


@dataclass(frozen=True)
class Cross:
    """What others send: now, in the mean of the next minutes [bit/s]; the share that gives way as TCP does, 0 to 1;
    what a new TCP flow would get beside it [bit/s]."""

    load_bps: Value = _NOT_LOOKED_FOR
    mean_bps: Value = _NOT_LOOKED_FOR
    elastic: Value = _NOT_LOOKED_FOR
    tcp_bps: Value = _NOT_LOOKED_FOR


@dataclass(frozen=True)
class RateVariation:
    """How the bottleneck's rate changes by itself: standard deviation over mean, and how long a change lasts [s]."""

    cv: Value = _NOT_LOOKED_FOR
    scale_s: Value = _NOT_LOOKED_FOR

    @property
    def looked(self) -> bool:
        """Whether only looks tell that it does: the capacity is what they found to be had."""
        return self.cv.value is not None and self.cv.low is None and self.scale_s.value is None


@dataclass(frozen=True)
class Direction:
    """What is known of one direction of a path. bytes: of its probes [IP byte]; probed_s: when the first and the
    last of them were seen, since the measurement began [s]."""

    capacity_bps: Value
    available_bps: Value
    delay_s: Delay
    loss: Loss
    bytes: int
    rate_variation: RateVariation = RateVariation()
    queue: Queue = Queue()
    policer: Policer = Policer()
    cross: Cross = Cross()
    aggregation_s: Value = _NOT_LOOKED_FOR
    trains: int = 0
    reordered: int = 0
    probed_s: tuple[float, ...] | None = None

    @property
    def trustworthy(self) -> bool:
        """Whether available bandwidth and capacity were found."""
        return self.available_bps.value is not None and self.capacity_bps.value is not None


@dataclass(frozen=True)
class Shared:
    """How probable it is that another path has the same bottleneck in a direction."""

    path: str
    direction: str
    probability: Value


@dataclass(frozen=True)
class Down:
    """Nothing came back over a path: of how many probes, in how long [s]."""

    probes: int
    seconds: float

    @property
    def said(self) -> str:
        """As part of a sentence. Older records have whole seconds: none are less than one."""
        within = span(self.seconds) if self.seconds else "less than 1 s"
        return f"no answer to {self.probes} probe{'' if self.probes == 1 else 's'} in {within}"


@dataclass(frozen=True)
class Away:
    """A path that was there before and could not be measured, since this host has it no more, and why."""

    path: str
    reason: str

    @property
    def sentence(self) -> str:
        """For people."""
        return f"{self.path} is down: {self.reason}"


@dataclass(frozen=True)
class PathMeasured:
    """A path and its directions: `out` from this host to the far end, `in` back. rtt_s: the least that was seen.

    switches: those that carried it, from this host on; None where nothing steers it.
    """

    name: str
    local: str
    remote: str
    directions: dict[str, Direction]
    rtt_s: Value = _NOT_LOOKED_FOR
    shared_with: tuple[Shared, ...] = ()
    down: Down | None = None
    switches: tuple[SwitchCount, ...] | None = None

    @property
    def trustworthy(self) -> bool:
        """Whether any value of it can be trusted."""
        return any(
            value.trusted
            for of in self.directions.values()
            for value in (of.capacity_bps, of.available_bps, of.delay_s.minimum)
        )


@dataclass(frozen=True)
class Measurement:
    """A measurement of one or several paths: what `history` keeps and a forecast reads.

    probe_bytes: IP bytes of all packets that it sent, both ways. queued_s: of elapsed_s, in the far end's queue.
    measured_at: when it began (UTC, ISO 8601), by the machine's clock.
    """

    paths: tuple[PathMeasured, ...]
    probe_bytes: int
    elapsed_s: float
    method: str
    effort: str = "usual"
    measured_at: str | None = None
    notes: tuple[str, ...] = ()
    away: tuple[Away, ...] = ()
    queued_s: float = 0.0

    @classmethod
    def read(cls, pairs: Sequence[dict[str, str]], document: dict[str, Any]) -> Measurement:
        """From the machine's document, whose paths are those of `pairs`."""

        def path(pair: dict[str, str], of: dict[str, Any]) -> dict[str, Any]:
            directions = {name: of["directions"][name] for name in DIRECTIONS if name in of["directions"]}
            shared = [{**one, "path": pairs[one["path"]]["name"]} for one in of.get("shared_with", ())]
            return {**pair, **of, "directions": directions, "shared_with": shared}

        paths = [path(pair, of) for pair, of in zip(pairs, document["paths"], strict=True)]
        return codec.read(cls, {**document, "paths": paths})

    def counted(self, by_path: Mapping[str, tuple[SwitchCount, ...]], notes: Sequence[str]) -> Measurement:
        """With what switches have counted."""
        paths = tuple(replace(path, switches=by_path.get(path.name)) for path in self.paths)
        return replace(self, paths=paths, notes=(*self.notes, *notes))

    def path(self, name: str) -> PathMeasured:
        """The path of that name that was measured."""
        for path in self.paths:
            if path.name == name:
                return path
        raise usage(f"path `{name}` was not measured; measured: {', '.join(p.name for p in self.paths)}")

    @property
    def missing(self) -> list[str]:
        """A sentence for every path that is down, and for every rate that is not to be trusted."""
        said = [one.sentence for one in self.away]
        for path in self.paths:
            if path.down:
                said.append(f"{path.name} is down: {path.down.said}")
                continue
            for direction, of in path.directions.items():
                for what, rate in (("capacity", of.capacity_bps), ("available bandwidth", of.available_bps)):
                    if not rate.trusted:
                        no = "no" if rate.value is None else "doubtful"
                        said.append(f"{no} {what} of path `{path.name}` {direction}: {_reason(rate.why, path.rtt_s)}")
        return said

    @property
    def untrustworthy(self) -> PathcastError | None:
        """Exit 3 with the reasons if no value of any path can be trusted."""
        if any(path.trustworthy for path in self.paths):
            return None
        up = [path for path in self.paths if path.down is None]
        whys = {rate.why for p in up for of in p.directions.values() for rate in (of.capacity_bps, of.available_bps)}
        if not up:
            hint = "is the far end running, and does its UDP port let packets through?"
        elif whys & set(_MENDED_BY_MORE):
            hint = "give more --time and --budget, raise the far end's limits if it grants less, or wait for idle hosts"
        else:
            hint = "measure again when the path answers; `pathcast paths` shows the others"
        return PathcastError("untrustworthy", "; ".join(self.missing), hint, Exit.UNTRUSTWORTHY)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _reason(why: str | None, rtt_s: Value) -> str:
    if why == "no-answer" and rtt_s.value is not None and rtt_s.value > LONGEST_S:
        return f"answers take {rtt_s.value:.1f} s, and those of more than {LONGEST_S:.0f} s are too late"
    return REASONS.get(why or "", why or "unknown reason")


@dataclass(frozen=True)
class Request:
    """What is to be measured.

    bytes, time_s: limits of each direction of each path, IP bytes and seconds; None: by the capacity that is found.
    whole: where both are given, the default method takes all of them, whatever the capacity asks for.
    at_once: all paths at the same time, which shows what they share, instead of one after the other.
    effort: light (at most 116 kB a path), usual, or thorough (up to 10 s a direction: loss and the queue's depth too,
    of which no more than queue_s is built).
    """

    directions: tuple[str, ...] = DIRECTIONS
    method: str = METHODS[0]
    bytes: int | None = None
    time_s: float | None = None
    dscp: int = 0
    at_once: bool = False
    seed: int | None = None
    effort: str = "usual"
    queue_s: float = 0.5
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.directions or set(self.directions) - set(DIRECTIONS):
            raise usage(f"direction `{','.join(self.directions)}`: allowed are {', '.join(DIRECTIONS)}, both")
        if self.method not in (*METHODS, *WIDER):
            raise usage(f"method `{self.method}`: allowed are {', '.join(METHODS)}")
        if self.bytes is not None and not 10_000 <= self.bytes <= 10**12:
            raise usage(f"--budget {self.bytes}B: allowed are 10kB to 1TB for each direction of a path")
        if self.time_s is not None and not 0.1 <= self.time_s <= 600:
            raise usage(f"--time {seconds(self.time_s)}: allowed are 100ms to 600s for each direction of a path")
        if self.effort not in EFFORTS:
            raise usage(f"effort `{self.effort}`: allowed are {', '.join(EFFORTS)}")
        if self.effort == "thorough" and self.method != METHODS[0]:
            raise usage(f"a thorough measurement goes with method {METHODS[0]}, not {self.method}")
        if not 0.01 <= self.queue_s <= 10:
            raise usage(f"--queue {seconds(self.queue_s)}: allowed are 10ms to 10s")
        if not 0 <= self.dscp <= 63:
            raise usage(f"DSCP {self.dscp}: allowed are 0 to 63")
        if self.seed is not None:
            arguments.whole("seed", self.seed)

    def document(self) -> dict[str, Any]:
        """For the machine."""
        return asdict(self)
