"""What is believed of a path, as distributions: what was measured, widened by what may change until a transfer is over.

Widths that no measurement gives are fitted to half `a` of the real paths (experiments/real-paths/profiles.py).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from pathcast.worlds.measurement import Direction, PathMeasured, Value

# of a normal distribution from its median to an end of its 90 % interval, in standard deviations
_TO_END = 1.6449
_PACKET_BYTES = 1500

# how far the mean load of the next half minute is from that of the measured seconds, over the rate: Student's t with so
# many degrees of freedom and this scale; of the real paths the median is 0.035, the 90th percentile 0.17
_LOAD_CHANGE = (1.3, 0.03)
# no queue was seen to be full: its depth [packets], median and deviation of its logarithm
_DEPTH_UNKNOWN = (130.0, 0.9)
# a capacity or a load whose interval is not known [share of the value]
_UNKNOWN_WIDTH = 0.1
# beyond it nothing is left to forecast
_LOAD_MOST = 0.97
# random loss before anything was counted: a share of lines has none; of the others the logarithm of it is even between
_LOSSLESS, _LOSS_RANGE = 0.8, (1e-6, 1e-2)


@dataclass(frozen=True)
class Line:
    """One line that a path may be: rates [bit/s] forward (the job's way) and back, round trip of small packets [s],
    queue [byte], share of packets lost at random, and what others send forward: at a rate that does not give way
    [bit/s], and as so many greedy connections."""

    rate_bps: float
    back_bps: float
    rtt_s: float
    queue_bytes: float
    queue_kind: str
    loss: float
    cross_bps: float
    elastic_flows: int


@dataclass(frozen=True)
class PathBelief:
    """A path in the direction of a job: `forward` is its way, `back` the other one."""

    name: str
    forward: Direction
    back: Direction | None
    rtt_s: float

    @classmethod
    def of(cls, path: PathMeasured, direction: str = "out") -> PathBelief | None:
        """From a measurement; None: too little is known of it to simulate anything."""
        other = {"out": "in", "in": "out"}[direction]
        forward = path.directions.get(direction)
        rtt_s = _rtt(path)
        if path.down or forward is None or forward.capacity_bps.value is None or rtt_s is None:
            return None
        return cls(path.name, forward, path.directions.get(other), rtt_s)

    @property
    def capacity_bps(self) -> float:
        """As measured."""
        return self.forward.capacity_bps.value or 0.0

    @property
    def available_bps(self) -> float:
        """As measured, or in the middle of what it may be; never nothing."""
        left = self.forward.available_bps
        if left.value is None:
            low, high = left.low or 0.0, min(left.high or self.capacity_bps, self.capacity_bps)
            return max((low + high) / 2, (1 - _LOAD_MOST) * self.capacity_bps)
        return min(max(left.value, (1 - _LOAD_MOST) * self.capacity_bps), self.capacity_bps)

    def draw(self, random: random.Random) -> Line:
        """One line of those that it may be."""
        rate = _log_normal(self.forward.capacity_bps, random)
        load = self._load(rate, random)
        elastic = random.random() < (self.forward.cross.elastic.value or 0.0)
        back = self.back.capacity_bps if self.back and self.back.capacity_bps.value else None
        return Line(
            rate_bps=rate,
            back_bps=_log_normal(back, random) if back else rate,
            rtt_s=self.rtt_s,
            queue_bytes=self._depth(rate, random),
            queue_kind=self._kind(random),
            loss=self._loss(random),
            cross_bps=0.0 if elastic else load * rate,
            elastic_flows=1 if elastic else 0,
        )

    def _load(self, rate_bps: float, random: random.Random) -> float:
        """The mean of what others send, over the rate."""
        mean = self.forward.cross.mean_bps
        if mean.value is not None:
            return min(max(_normal(mean, random) / rate_bps, 0.0), _LOAD_MOST)
        left = self.forward.available_bps
        if left.value is None:
            low, high = left.low or 0.0, min(left.high or rate_bps, rate_bps)
            now = 1 - random.uniform(low, max(low, high)) / rate_bps
        else:
            now = 1 - _normal(left, random) / rate_bps
        freedom, scale = _LOAD_CHANGE
        # Student's t by a normal and a chi-squared one
        change = random.gauss(0, 1) / math.sqrt(random.gammavariate(freedom / 2, 2) / freedom)
        return min(max(now + scale * change, 0.0), _LOAD_MOST)

    def _depth(self, rate_bps: float, random: random.Random) -> float:
        depth = self.forward.queue.depth_bytes
        if depth.value is not None:
            return max(_log_normal(depth, random), 2 * _PACKET_BYTES)
        packets, deviation = _DEPTH_UNKNOWN
        drawn = packets * _PACKET_BYTES * math.exp(random.gauss(0, deviation))
        return max(drawn, depth.low or 0.0, 2 * _PACKET_BYTES)

    def _kind(self, random: random.Random) -> str:
        queue = self.forward.queue
        fair = random.random() < (queue.fair.value or 0.0)
        managed = random.random() < (queue.managed.value or 0.0)
        return {(False, False): "fifo", (True, False): "fair", (False, True): "codel", (True, True): "fq_codel"}[
            fair, managed
        ]

    def _loss(self, random: random.Random) -> float:
        """By a prior with a spike at zero, and a Poisson likelihood of what was counted."""
        known = self.forward.loss.random
        if known.value is not None and known.value > 0:
            return min(_log_normal(known, random), 0.5)
        low, high = (math.log(end) for end in _LOSS_RANGE)
        packets = self.forward.loss.packets
        # of so many packets none was lost at random: the larger losses are the less likely
        steps = [math.exp(low + (high - low) * (k + 0.5) / 64) for k in range(64)]
        weights = [(1 - _LOSSLESS) / 64 * math.exp(-packets * loss) for loss in steps]
        return random.choices([0.0, *steps], [_LOSSLESS, *weights])[0]


def _rtt(path: PathMeasured) -> float | None:
    if path.rtt_s.value is not None:
        return path.rtt_s.value
    least = [of.delay_s.minimum.value for of in path.directions.values()]
    return math.fsum(one for one in least if one is not None) if len(least) == 2 and None not in least else None


def _deviation(low: float | None, high: float | None, unknown: float) -> float:
    """Of the normal distribution with this 90 % interval."""
    return unknown if low is None or high is None else max(high - low, 0.0) / (2 * _TO_END)


def _normal(of: Value, random: random.Random) -> float:
    assert of.value is not None
    return random.gauss(of.value, _deviation(of.low, of.high, _UNKNOWN_WIDTH * abs(of.value)))


def _log_normal(of: Value, random: random.Random) -> float:
    """Above zero, with the value as its median."""
    assert of.value is not None
    low, high = (math.log(end) if end is not None and end > 0 else None for end in (of.low, of.high))
    return of.value * math.exp(random.gauss(0, min(_deviation(low, high, _UNKNOWN_WIDTH), 1.0)))
