"""What is believed of a path, as distributions: what was measured, widened by what may change until a transfer is over.

Widths that no measurement gives are fitted to half `a` of the real paths (experiments/real-paths/profiles.py).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pathcast.forecast.load import drawn_load
from pathcast.forecast.losses import Counted, drawn
from pathcast.worlds.measurement import Direction, Loss, PathMeasured, Policer, RateVariation, Value

# of a normal distribution from its median to an end of its 90 % interval, in standard deviations
_TO_END = 1.6449
_PACKET_BYTES = 1500

# a greedy connection takes more than this of a line that it has to itself
_GREEDY = 0.4
# whether others give way where nobody looked: probably where packets that meet nobody's trains wait for so many of the
# line's packets, or for so many times what a queue of others that do not has on average at such a load; hardly else
_WAITS, _TIMES, _STOOD, _ELSE = 2.5, 3.0, 0.75, 0.01
# of how many connections they are then, one of these [as often as it stands here]
_FLOWS = (1, 1, 1, 2, 2, 3, 4)
# who has so much of a line to himself waits for nobody else, but for the line's own gathering
_ALONE = 0.93
# no queue was seen to be full: in what time it drains [s], median and deviation of its logarithm; some are quite other
_DRAINS_S, _DRAINS, _OTHER, _OTHERS = 0.235, 0.35, 0.12, 1.2
# how probable it is that a queue which nobody looked at is managed, and where it drops more than this share of probes
# though the wire does not; that such a one, or another, is fair (experiments/forecast/anywhere.py, seeds 201 to 359)
_MANAGED, _MANAGED_DROPS, _DROPS, _BOTH, _FAIR = 0.06, 0.2, 0.03, 0.6, 0.02
# whose least round trip is longer than that has a queue that never is empty, and much longer ones [s]
_DEEP_RTT_S, _DEEP_S = 0.6, 7.3
# lines that are faster than those of which the depth is known have queues that drain in less time [bit/s]
_KNOWN_RATE_BPS = 20e6
# of a depth, or a burst, that was measured: deviation of its logarithm, at most
_DEPTHS = 1.0
# draws of a depth that is above a bound
_TRIES = 50
# a capacity or a load whose interval is not known [share of the value]
_UNKNOWN_WIDTH = 0.1
# end of the interval of a capacity that nobody found, over its median, which is that of the other paths
_GUESS = 5.0
# the line in front of a policer, over the policer's rate, where nothing is known of it; where nobody looked for one
_BEHIND, _BEHIND_SOME = 5.0, (2.0, 50.0)
# how long a rate that varies by itself stays about the same, where that was not seen [s]
_VARIES_S = 10.0
# and so many times it changes while the job goes on, at most; where only looks tell that it does, no less quickly at
# first, and then so often over all that is left
_CHANGES, _LATER = 100, 50
# what a radio line gives in the time ahead, over what is expected: deviation of the logarithm, a + b cv of looks, and
# so much for every e-fold of that time from the one to the other [s] (every other one of 23 drives over four operators)
_AHEAD, _AHEAD_CV, _AHEAD_LONG, _LONG_S = 0.3, 0.7, 0.18, (10.0, 100.0)
# that was of so many looks; the mean of fewer is off by so much more, which is how far apart single ones are there
_LOOKS, _ONE_LOOK = 5, 0.7
# of a line that perhaps is one: its cv is exponential with this mean
_PERHAPS_CV = 0.25
# what is less probable than this, an end of a 90 % interval does not show
_END = 0.05
# a rate that varies so much by itself drops packets that seem to be lost at random
_VARIES = 0.1
# of all that was lost, so much was lost while the queue had room
_WIRE = 0.5
# acknowledgements stand for each other, where no more of them are lost
_FELT = 0.02
# who drops so much more than a full queue would, and has no queue that overflows, polices at about the rate of what
# came through; with bursts of so long [s], of packets no fewer. Else what TCP gets of what came through
_MUCH, _POLICES, _MOST_OF = 0.15, Value(0.9), 0.85
_BURSTS_S, _BURST_PACKETS = (0.01, 1.0), 10
_THROUGH = (0.9, 1.1)
# whoever floods it has nearly all tokens, TCP what others leave: how probable it is that they take any, and how many
_TAKES_TOKENS, _MOST_TOKENS = 0.4, 0.9
# beyond it nothing is left to forecast
_LOAD_MOST = 0.97
# of a line that is faster than its host sends probes, which go one by one: TCP hands over many packets at once
_FASTER = 4.0


@dataclass(frozen=True)
class Line:
    """One line that a path may be: rates [bit/s] forward (the job's way) and back, round trip of small packets [s],
    queue [byte], share of packets lost at random, and what others send forward: at a rate that does not give way
    [bit/s], and as so many greedy connections. policer: rate [bit/s] and burst [byte] of one that drops forward. row:
    so many packets are lost one after the other, on average. back_loss: the share of acknowledgements that is lost."""

    rate_bps: float
    back_bps: float
    rtt_s: float
    queue_bytes: float
    queue_kind: str
    loss: float
    cross_bps: float
    elastic_flows: int
    policer: tuple[float, float] | None = None
    row: float = 1.0
    # how the rate goes on from there: from when on which [s since the job began]
    rates: tuple[tuple[float, float], ...] = ()
    back_loss: float = 0.0

    def mean_bps(self, from_s: float, to_s: float) -> float:
        """Its rate in the mean of that time."""
        return _mean_bps(self.rates, from_s, to_s) if self.rates else self.rate_bps


@dataclass(frozen=True)
class PathBelief:
    """A path in the direction of a job: `forward` is its way, `back` the other one."""

    name: str
    forward: Direction
    back: Direction | None
    rtt_s: float
    loads: tuple[float, ...] = ()
    horizon_s: float = 30.0
    # with which other paths it shares its bottleneck, and how probably
    shared: tuple[tuple[str, float], ...] = ()
    carried: tuple[float, float] = (0, 0)
    # its capacity is nothing that was measured
    guessed: bool = False

    @classmethod
    def of(
        cls,
        path: PathMeasured,
        direction: str = "out",
        loads: Sequence[float] = (),
        carried: tuple[float, float] = (0, 0),
    ) -> PathBelief | None:
        """From a measurement; None: too little is known of it to simulate anything.

        loads: looks at what others sent, over the rate. horizon_s: about how long the job takes. carried: packets that
        earlier transfers sent over it, and sent again, for whatever reason.
        """
        other = {"out": "in", "in": "out"}[direction]
        forward = path.directions.get(direction)
        rtt_s = _rtt(path)
        if forward is not None and _policed(forward):
            # what passes is all that a flow can have, whatever the line behind it
            forward = replace(forward, capacity_bps=forward.policer.rate_bps, available_bps=forward.policer.rate_bps)
        if forward is not None and (passed := _passed(forward)) is not None:
            policer = forward.policer
            if forward.queue.depth_bytes.value is None:
                policer = polices(forward.available_bps.value or 0.0)
                passed = policer.rate_bps
            forward = replace(forward, capacity_bps=passed, available_bps=passed, policer=policer)
        if forward is not None and forward.capacity_bps.value is None and wires(forward.loss):
            # a wire that loses much hides its rate, of which it leaves TCP little
            forward = replace(forward, capacity_bps=forward.available_bps)
        if forward is not None and (least := _beyond(forward)) is not None:
            forward = replace(forward, capacity_bps=least, available_bps=least)
        if path.down or forward is None or forward.capacity_bps.value is None or rtt_s is None:
            return None
        forward = _doubted(forward)
        shared = tuple(
            (one.path, _surer(one.probability.value))
            for one in path.shared_with
            if one.direction == direction and one.probability.value is not None
        )
        return cls(path.name, forward, path.directions.get(other), rtt_s, tuple(loads), shared=shared, carried=carried)

    @classmethod
    def guess(cls, path: PathMeasured, direction: str, like: Sequence[PathBelief]) -> PathBelief | None:
        """Of a path that answers, but whose capacity was not found: as that of the others, within a factor of five
        either way, whatever others send. None: not even its round trip is known."""
        forward, rtt_s = path.directions.get(direction), _rtt(path)
        if path.down or forward is None or rtt_s is None or not like:
            return None
        middle = math.exp(fmean(math.log(one.capacity_bps) for one in like))
        wide = Value(middle, middle / _GUESS, middle * _GUESS)
        unknown = replace(forward, capacity_bps=wide, available_bps=Value(None))
        return cls(path.name, unknown, None, rtt_s, guessed=True)

    @property
    def capacity_bps(self) -> float:
        """As measured."""
        return self.forward.capacity_bps.value or 0.0

    @property
    def available_bps(self) -> float:
        """As measured, in the mean of all looks, or in the middle of what it may be; never nothing."""
        left = self.forward.available_bps
        if self.loads:
            return (1 - min(fmean(self.loads), _LOAD_MOST)) * self.capacity_bps
        if left.value is None:
            low, high = left.low or 0.0, min(left.high or self.capacity_bps, self.capacity_bps)
            return max((low + high) / 2, (1 - _LOAD_MOST) * self.capacity_bps)
        return min(max(left.value, (1 - _LOAD_MOST) * self.capacity_bps), self.capacity_bps)

    def managed(self) -> PathBelief:
        """The same with a queue that is managed, whatever is known of that."""
        queue = replace(self.forward.queue, managed=Value(1.0))
        return replace(self, forward=replace(self.forward, queue=queue))

    def draw(self, random: random.Random) -> Line:
        """One line of those that it may be."""
        varies = _probability(self.forward.rate_variation.cv)
        return (self._varying(random) if varies and random.random() < varies else self)._line(random)

    def _varying(self, random: random.Random) -> PathBelief:
        """The same as one whose rate varies by itself, though its looks hardly differ: what was taken for others'
        traffic was that, too."""
        cv, looks = random.expovariate(1 / _PERHAPS_CV), max(1, len(self.loads))
        rate, wide = math.sqrt(self.capacity_bps * self.available_bps), ahead(0.0, self.horizon_s, looks)
        capacity = Value(rate, rate / wide, rate * wide)
        variation = RateVariation(Value(cv))
        forward = replace(self.forward, capacity_bps=capacity, available_bps=capacity, rate_variation=variation)
        return replace(self, forward=forward, loads=(0.0,) * looks)

    def _line(self, random: random.Random) -> Line:
        rate = _log_normal(self.forward.capacity_bps, random)
        rates = self._rates(rate, random)
        policer = (rate, self._burst(rate, random)) if _policed(self.forward) else None
        load = self._load(random)
        elastic = random.random() < self._elastic()
        back = self.back.capacity_bps if self.back and self.back.capacity_bps.value else None
        return Line(
            rate_bps=rate * self._behind(random) if policer else rates[0][1] if rates else rate,
            back_bps=_log_normal(back, random) if back else rate,
            rtt_s=self.rtt_s,
            queue_bytes=self._depth(rate, random),
            queue_kind=self._kind(random),
            loss=self._loss(random),
            cross_bps=0.0 if elastic else load * rate,
            elastic_flows=random.choice(_FLOWS) if elastic else 0,
            policer=policer,
            row=Counted.of(self.forward.loss).row,
            rates=() if policer else rates,
            back_loss=self._back_loss(),
        )

    def _rates(self, mean_bps: float, random: random.Random) -> tuple[tuple[float, float], ...]:
        """Of a rate that varies by itself how it does so over the job and as long again: a first-order autoregressive
        process in logarithms. Where only looks tell that it does, the capacity is already what is expected of the job's
        time (watch.py), which the process keeps to."""
        variation = self.forward.rate_variation
        if not variation.cv.value:
            return ()
        looked = variation.looked
        scale_s = variation.scale_s.value or _VARIES_S
        deviation = math.sqrt(math.log1p(variation.cv.value**2))
        at_s, state, found = 0.0, random.gauss(0, 1), []
        for step_s in self._steps(scale_s, looked):
            # the mean of a long step varies less
            wide = deviation * math.sqrt(min(1.0, scale_s / step_s)) if looked else deviation
            found.append((at_s, mean_bps * math.exp(wide * state - wide**2 / 2)))
            stays = math.exp(-2 * step_s / scale_s)
            state = stays * state + math.sqrt(1 - stays**2) * random.gauss(0, 1)
            at_s += step_s
        if looked:
            times = mean_bps / _mean_bps(found, 0.0, self.horizon_s)
            found = [(at, bps * times) for at, bps in found]
        return tuple(found)

    def _steps(self, scale_s: float, looked: bool) -> list[float]:
        """How long each rate lasts [s], over twice the job's time."""
        most_s = 2 * self.horizon_s
        short_s = scale_s / 5
        if looked and most_s > _CHANGES * short_s:
            # the part of a long job that is simulated meets changes as they are
            return [short_s] * _CHANGES + [(most_s - _CHANGES * short_s) / _LATER] * _LATER
        step_s = max(short_s, most_s / _CHANGES)
        return [step_s] * (math.ceil(most_s / step_s) + 1)

    def _behind(self, random: random.Random) -> float:
        """How many times as fast the line of a policer is."""
        return math.exp(random.uniform(*map(math.log, _BEHIND_SOME))) if self._in_passing() else _BEHIND

    def _in_passing(self) -> bool:
        """Whether somebody polices, and nobody looked for more than that."""
        return _policed(self.forward) and self.forward.policer.burst_bytes.value is None

    def _burst(self, rate_bps: float, random: random.Random) -> float:
        """What a policer lets through at once [byte]."""
        found = self.forward.policer.burst_bytes
        if found.value is not None:
            return max(_log_normal(found, random, _DEPTHS), 2 * _PACKET_BYTES)
        seconds = math.exp(random.uniform(*(math.log(end) for end in _BURSTS_S)))
        return max(seconds * rate_bps / 8, _BURST_PACKETS * _PACKET_BYTES)

    def _elastic(self) -> float:
        """How probable it is that others give way."""
        load = 1 - self.available_bps / self.capacity_bps
        if (told := self.forward.cross.elastic.value) is not None:
            return told if load > _GREEDY else 0.0
        delay = self.forward.delay_s
        if delay.median.value is None or delay.minimum.value is None or load < 1 - _ALONE:
            return 0.0
        waits = (delay.median.value - delay.minimum.value) * self.capacity_bps / (8 * _PACKET_BYTES)
        # M/D/1
        return _STOOD if waits > _WAITS + _TIMES * load / (2 * (1 - load)) else _ELSE

    def _load(self, random: random.Random) -> float:
        """The mean of what others send during the job, over the rate."""
        left = self.forward.available_bps
        if self._in_passing():
            return random.uniform(0.0, _MOST_TOKENS) if random.random() < _TAKES_TOKENS else 0.0
        if self.loads:
            return drawn_load(self.loads, self.horizon_s, 0.0, random)
        if left.value is None:
            low, high = left.low or 0.0, min(left.high or self.capacity_bps, self.capacity_bps)
            now = 1 - random.uniform(low, max(low, high)) / self.capacity_bps
            return drawn_load([now], self.horizon_s, 0.0, random)
        off = _deviation(left.low, left.high, _UNKNOWN_WIDTH * left.value) / self.capacity_bps
        return drawn_load([1 - self.available_bps / self.capacity_bps], self.horizon_s, off, random)

    def _depth(self, rate_bps: float, random: random.Random) -> float:
        depth = self.forward.queue.depth_bytes
        if depth.value is not None:
            return max(_log_normal(depth, random, _DEPTHS), 2 * _PACKET_BYTES)
        drains_s = _DRAINS_S if self.rtt_s < _DEEP_RTT_S else _DEEP_S
        drains_s /= math.sqrt(max(1.0, rate_bps / _KNOWN_RATE_BPS))
        least = max(self._held(), 2 * _PACKET_BYTES)
        drawn = 0.0
        # what was in the queue without a loss is a lower bound: the rest of the prior is what is left
        for _ in range(_TRIES):
            deviation = _OTHERS if random.random() < _OTHER else _DRAINS
            drawn = drains_s * rate_bps / 8 * math.exp(random.gauss(0, deviation))
            if drawn >= least:
                break
        return max(drawn, least)

    def _held(self) -> float:
        """The most that the queue was seen to hold [byte]."""
        return self.forward.queue.depth_bytes.low or 0.0

    def _drops(self) -> bool:
        """Whether the queue dropped much of what little was sent to measure."""
        loss = self.forward.loss
        return (loss.share or 0.0) - (loss.random.value or 0.0) > _DROPS

    def _kind(self, random: random.Random) -> str:
        queue = self.forward.queue
        # whoever found whether it is managed looked for this, too
        looked = queue.managed.value is not None
        usual = 0.0 if looked else _MANAGED_DROPS if self._drops() else _MANAGED
        managed = random.random() < (usual if queue.managed.value is None else _surer(queue.managed.value))
        usual = _BOTH if managed else 0.0 if looked else _FAIR
        fair = random.random() < (usual if queue.fair.value is None else _surer(queue.fair.value))
        return {(False, False): "fifo", (True, False): "fair", (False, True): "codel", (True, True): "fq_codel"}[
            fair, managed
        ]

    def _loss(self, draw: random.Random) -> float:
        # of who drops much nobody knows what the wire loses besides
        counted = Counted(0.0, 0.0) if self._in_passing() else Counted.of(self.forward.loss)
        # but where hardly anything else was lost it is the wire (Starlink)
        varies = (self.forward.rate_variation.cv.value or 0.0) > _VARIES and not wires(self.forward.loss)
        return drawn(counted, self.carried, varies, draw)

    def _back_loss(self) -> float:
        """What the wire loses of what comes back, where that is so much that TCP feels it."""
        random = self.back.loss.random if self.back else Value(None)
        return random.value or 0.0 if (random.low or 0.0) >= _FELT else 0.0


def _doubted(of: Direction) -> Direction:
    """Of values that are not to be trusted: a capacity no better than a guess, of what is available the bounds."""
    capacity, left = of.capacity_bps, of.available_bps
    if capacity.value is not None and not capacity.trusted:
        capacity = Value(capacity.value, capacity.value / _GUESS, capacity.value * _GUESS)
    if not left.trusted:
        left = replace(left, value=None)
    return replace(of, capacity_bps=capacity, available_bps=left)


def _beyond(of: Direction) -> Value | None:
    """What a line may carry that is faster than its host, of which no more than that is known."""
    line = of.capacity_bps
    if line.value is not None or line.why != "host-too-slow" or not line.low:
        return None
    return Value(line.low * math.sqrt(_FASTER), line.low, line.low * _FASTER)


def _passed(of: Direction) -> Value | None:
    """What a transfer has where no capacity was found since much was lost: most of what came through, be it that
    somebody polices."""
    left = of.available_bps.value
    if of.capacity_bps.value is not None or not left or (of.loss.share or 0.0) < _MUCH or wires(of.loss):
        return None
    return Value(_MOST_OF * left, left / 3, 1.1 * left)


def ahead(cv: float, ahead_s: float, looks: int) -> float:
    """The end of the 90 % interval of what a line whose rate varies gives in the time ahead, over what is expected by
    so many looks that differ so much."""
    few = _ONE_LOOK * math.sqrt(max(0.0, 1 / looks - 1 / _LOOKS))
    long = _AHEAD_LONG * math.log(min(max(ahead_s, _LONG_S[0]), _LONG_S[1]) / _LONG_S[0])
    return math.exp(_TO_END * math.hypot(_AHEAD + _AHEAD_CV * cv + long, few))


def perhaps(probability: float) -> Value:
    """The cv of a rate that varies by itself with this probability: 0, else exponential."""
    if probability <= _END:
        return Value(None, why="not-seen")
    return Value(None, 0.0, _PERHAPS_CV * math.log(probability / _END), "ambiguous")


def _probability(cv: Value) -> float:
    """The other way round."""
    if cv.value is not None or cv.high is None:
        return 0.0
    return min(_END * math.exp(cv.high / _PERHAPS_CV), 1.0)


def wires(loss: Loss) -> bool:
    """Whether most of what was lost is the wire's."""
    return bool(loss.lost) and (loss.random.value or 0.0) >= _WIRE * (loss.share or 0.0)


def polices(through_bps: float) -> Policer:
    """Who let so much through and dropped the rest, though nothing waited."""
    low, high = _THROUGH
    return Policer(_POLICES, Value(through_bps, low * through_bps, high * through_bps))


def _policed(of: Direction) -> bool:
    """Whether a token bucket is what limits it."""
    there, rate = of.policer.probability.value, of.policer.rate_bps.value
    line = of.capacity_bps.value
    return there is not None and there > 0.5 and rate is not None and (line is None or rate <= line)


def _surer(probability: float) -> float:
    """Odds squared: of what `measure` says with its probabilities 93 to 100 % were right (docs/measure.md)."""
    yes, no = probability**2, (1 - probability) ** 2
    return yes / (yes + no)


def _rtt(path: PathMeasured) -> float | None:
    """The least that was seen; of an idle line with what its packets usually wait besides, for opportunities to be
    sent (others' queues are simulated)."""
    least = [of.delay_s.minimum.value for of in path.directions.values()]
    both = math.fsum(one for one in least if one is not None) if len(least) == 2 and None not in least else None
    rtt_s = path.rtt_s.value if path.rtt_s.value is not None else both
    return None if rtt_s is None else rtt_s + math.fsum(_gathers(of) for of in path.directions.values())


def _gathers(of: Direction) -> float:
    """What packets wait for nobody [s]."""
    delay, left, line = of.delay_s, of.available_bps.value, of.capacity_bps.value
    if delay.median.value is None or delay.minimum.value is None or left is None or not line or left < _ALONE * line:
        return 0.0
    return max(delay.median.value - delay.minimum.value, 0.0)


def _deviation(low: float | None, high: float | None, unknown: float) -> float:
    """Of the normal distribution with this 90 % interval."""
    return unknown if low is None or high is None else max(high - low, 0.0) / (2 * _TO_END)


def _mean_bps(rates: Sequence[tuple[float, float]], from_s: float, to_s: float) -> float:
    """Of a rate that changes, in the mean of a time; `rates`: from when on which, the first from the beginning."""
    ends = [*(at for at, _ in rates[1:]), math.inf]
    to_s = max(to_s, from_s + 1e-9)
    moved = [bps * max(0.0, min(end, to_s) - max(at, from_s)) for (at, bps), end in zip(rates, ends, strict=True)]
    return math.fsum(moved) / (to_s - from_s)


def _normal(of: Value, random: random.Random) -> float:
    assert of.value is not None
    return random.gauss(of.value, _deviation(of.low, of.high, _UNKNOWN_WIDTH * abs(of.value)))


def _log_normal(of: Value, random: random.Random, most: float = math.inf) -> float:
    """Above zero, with the value as its median; most: deviation of the logarithm."""
    assert of.value is not None
    low, high = (math.log(end) if end is not None and end > 0 else None for end in (of.low, of.high))
    return of.value * math.exp(random.gauss(0, min(_deviation(low, high, _UNKNOWN_WIDTH), most)))
