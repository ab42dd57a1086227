"""What share of its packets a line loses at random, by what was counted: a prior with a spike at nothing, and a Poisson
likelihood of the probes that were lost while the queue had room, and of what transfers sent again."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from pathcast.worlds.measurement import Loss, Value

# before anything was counted: a share of lines has none; of the others it lies between, each decade as probable
_LOSSLESS, _RANGE, _STEPS = 0.6, (1e-6, 0.5), 91
# losses of a measurement that are none of the wire, though they look so (2 of 103 lossless lines of
# experiments/forecast/anywhere.py, seeds below 5000, showed any)
_MISTAKEN = 0.025
# where a queue may have dropped what was lost: how probable it is that it did
_QUEUES = 0.3
# of a normal distribution from its median to an end of its 90 % interval, in standard deviations
_TO_END = 1.6449
# a share of all packets is that of those that were lost, but for so much
_ALL = 0.1
# transfers that would have lost so little with no more than this probability, had the line lost what was counted, say
# nothing of it
_CONTRADICTS = 0.01
# no count tells more, and that many in a row are no chance
_MOST, _ROW_MOST = 1e6, 100.0


@dataclass(frozen=True)
class Counted:
    """So many packets, and how often the wire lost some of them, `row` at a time: to TCP they are one loss. Where
    `unsure` the queue may have dropped them, where `bound` somebody did."""

    packets: float
    lost: float
    unsure: bool = False
    bound: bool = False
    row: float = 1.0

    @classmethod
    def of(cls, loss: Loss) -> Counted:
        """What a measurement's share and its interval say; they may say less than so many packets alone would."""
        share, packets = loss.random, float(loss.packets)
        if share.value is None:
            return cls(packets, float(loss.lost), bound=loss.lost > 0)
        row = min(max(loss.row or 1.0, 1.0), _ROW_MOST)
        if share.high is None or share.low is None or share.high <= share.value:
            return cls(packets, share.value * packets / row, row=row)
        if not share.value:
            return cls(min(packets, math.log(20) / share.high), 0.0)
        # of what comes toward us nobody tells rows; but where all that was lost is counted they made the interval wider
        if loss.row is None and abs(share.value * packets - loss.lost) <= _ALL * loss.lost:
            row = _row(loss.lost / _count(share.high / share.value))
        lost = min(_count(share.high / share.value) * _inflation(row) / row, share.value * packets / row)
        return cls(lost * row / share.value, lost, share.low <= 0, share.high > 0.5, row)

    def share(self) -> Value:
        """The other way round."""
        if not self.packets:
            return Value(None, why="too-few")
        if not self.lost:
            return Value(0.0, 0.0, min(1.0, math.log(20) / self.packets))
        value, as_many = self.lost * self.row / self.packets, self.lost * self.row / _inflation(self.row)
        low = 0.0 if self.unsure or self.bound else value * _bound(as_many, -_TO_END) / as_many
        return Value(value, min(low, value), max(value, min(1.0, value * _bound(as_many + 1, _TO_END) / as_many)))


def _inflation(row: float) -> float:
    """As in crates/estimate/src/kinds/loss.rs, where little is lost."""
    return 2 * row - 1


def _row(inflation: float) -> float:
    """The other way round."""
    return min(max((inflation + 1) / 2, 1.0), _ROW_MOST)


def _count(ratio: float) -> float:
    """Of how many the upper end of the 90 % interval is so many times as much."""
    low, high = 1e-3, _MOST
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _bound(middle + 1, _TO_END) > ratio * middle else (low, middle)
    return low


def pooled(losses: Sequence[Loss]) -> Loss:
    """Of several measurements of a line as if they were one; those that lost packets and do not say whose they were
    count only where no other does, nor then those that do not say whose they would have been. All are as unsure as
    those that counted half of what was lost."""
    unknown = any(one.lost and one.random.value is None for one in losses)
    told = [one for one in losses if one.random.value is not None or not (one.lost or unknown)]
    if not told:
        return Loss(sum(one.lost for one in losses), sum(one.packets for one in losses))
    if len(told) == 1:
        return told[0]
    counted = [Counted.of(one) for one in told]
    lost = math.fsum(one.lost for one in counted)
    row = math.fsum(one.lost * one.row for one in counted) / lost if lost else 1.0
    unsure, bound = (
        2 * math.fsum(one.lost for one in counted if getattr(one, name)) >= lost > 0 for name in ("unsure", "bound")
    )
    both = Counted(math.fsum(one.packets for one in counted), lost, unsure, bound, row)
    return Loss(sum(one.lost for one in told), sum(one.packets for one in told), both.share(), row if lost else None)


def drawn(counted: Counted, carried: tuple[float, float], varies: bool, draw: random.Random) -> float:
    """One of the shares that it may be. carried: packets that transfers sent, and sent again, of which some was lost by
    full queues. varies: the rate falls by itself, so that a queue is full at once, and its drops look like the
    wire's."""
    low, high = (math.log(end) for end in _RANGE)
    steps = [math.exp(low + (high - low) * (k + 0.5) / _STEPS) for k in range(_STEPS)]
    bound = counted.bound or (counted.unsure and draw.random() < _QUEUES)
    probable = _at_most if counted.lost and (varies or bound) else _poisson
    likely = [_LOSSLESS * probable(counted.lost, _MISTAKEN)]
    likely += [(1 - _LOSSLESS) / _STEPS * probable(counted.lost, counted.packets * loss + _MISTAKEN) for loss in steps]
    sent, resent = carried
    if sent:
        both = [one * _at_most(resent, sent * loss) for one, loss in zip(likely, [0.0, *steps], strict=True)]
        # where those lost too little for what is counted now the line is not as it was
        likely = both if sum(both) > _CONTRADICTS * sum(likely) else likely
    if not sum(likely):
        return min(counted.lost * counted.row / max(counted.packets, 1.0), 0.5)
    found: float = draw.choices([0.0, *steps], likely)[0]
    return min(found * counted.row * math.exp((high - low) / _STEPS * draw.uniform(-0.5, 0.5)), 0.5)


def _bound(count: float, deviations: float) -> float:
    """A quantile of a gamma distribution with this shape (Wilson, Hilferty, 1931)."""
    return count * max(0.0, 1 - 1 / (9 * count) + deviations / (3 * math.sqrt(count))) ** 3 if count > 0 else 0.0


def _poisson(count: float, mean: float) -> float:
    """Its likelihood; a count need not be whole."""
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


def _at_most(count: float, mean: float) -> float:
    """How probable no more than `count` events are where `mean` are expected (Wilson, Hilferty, 1931)."""
    a = count + 1.0
    return 0.5 * math.erfc((math.cbrt(mean / a) - (1 - 1 / (9 * a))) * 3 * math.sqrt(a / 2))
