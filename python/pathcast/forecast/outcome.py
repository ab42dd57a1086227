"""What became of a job in one drawn network; of a long one, from the part of it that was simulated.

A transfer that goes on for long is stationary: what follows the part that was simulated goes as fast as that part did
once its slow start was over. (Wormhole, NSDI 2026, skips steady states of a simulation so.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pathcast.worlds.results import Progress, Transfer

# what is stationary of a simulated part: neither its first share, by time, nor its last, by bytes, in which subflows
# wait for each other
_FIRST, _LAST = 0.3, 0.95
_BATCHES = 8
# one whose halves' rates are so far apart (logarithm) has not settled, and may go on so; where it grew its second half
# counts
_UNSETTLED = 0.4
# what lines that vary give until the end hangs on when that is
_ROUNDS = 3


@dataclass(frozen=True)
class Outcome:
    """duration_s of the whole job, what each path of the choice carried and what was sent again in it [byte].

    simulated_bytes: of the job; error: standard error of the rate of the rest, over the rate, by its batches; rest_s:
    what of the duration the rest took, where that part tells it badly: else its own chance is in the draws already.
    """

    duration_s: float
    bytes_by_path: tuple[float, ...]
    resent_bytes: float
    simulated_bytes: int
    error: float = 0.0
    rest_s: float = 0.0

    def off(self, deviations: float) -> Outcome:
        """With a rest that went on so many of its errors more slowly."""
        more_s = self.rest_s * (math.exp(self.error * deviations) - 1)
        return replace(self, duration_s=self.duration_s + more_s, rest_s=self.rest_s + more_s)

    def times(self, factor: float) -> Outcome:
        """The same, but so many times as long."""
        return replace(self, duration_s=self.duration_s * factor, rest_s=self.rest_s * factor)


def outcome(
    transfer: Transfer,
    paths: Sequence[str],
    size_bytes: int,
    mean_bps: Callable[[float, float], float] | None = None,
) -> Outcome:
    """Of a transfer of the job's bytes, or of its first ones, with samples. mean_bps: what its lines give in the mean
    of a time since it began [s]; None: always the same."""
    carried = transfer.bytes_by_path(paths)
    resent = sum(subflow.bytes_retransmitted for subflow in transfer.subflows)
    left = size_bytes - transfer.bytes
    if left <= 0:
        return Outcome(transfer.elapsed_s, tuple(carried), resent, transfer.bytes)
    steady = [
        one
        for one in transfer.samples
        if one.at_s >= _FIRST * transfer.elapsed_s and one.bytes <= _LAST * transfer.bytes
    ]
    more = size_bytes / transfer.bytes
    if len(steady) < 2 or steady[-1].bytes <= steady[0].bytes:
        whole = tuple(one * more for one in carried)
        rest_s = transfer.elapsed_s * (more - 1)
        return Outcome(transfer.elapsed_s * more, whole, resent * more, transfer.bytes, 1.0, rest_s)
    error = _error([(one.at_s, one.bytes) for one in steady])
    half, settled = len(steady) // 2 if len(steady) > 2 else 0, True
    lines_bps = mean_bps or (lambda from_s, to_s: 1.0)
    # what the lines do themselves does not go on
    trend = math.log(_over(steady[half:], lines_bps) / _over(steady[: half + 1], lines_bps)) if half else 0.0
    if abs(trend) > _UNSETTLED:
        error, settled = min(abs(trend), 1.0), False
        if trend > 0:
            steady = steady[half:]
    first, last, rate = steady[0], steady[-1], _rate(steady)
    for _ in range(_ROUNDS):
        ends_s = transfer.elapsed_s + left / rate
        rate = _over(steady, lines_bps) * lines_bps(transfer.elapsed_s, ends_s)
    added = dict.fromkeys(paths, 0)
    for subflow, before, after in zip(transfer.subflows, first.subflows, last.subflows, strict=False):
        if subflow.path in added:
            added[subflow.path] += after.bytes_acked - before.bytes_acked
    shares = [one / max(1, sum(added.values())) for one in added.values()]
    return Outcome(
        transfer.elapsed_s + left / rate,
        tuple(one + share * left for one, share in zip(carried, shares, strict=True)),
        resent * more,
        transfer.bytes,
        error,
        0.0 if settled else left / rate,
    )


def _rate(steady: Sequence[Progress]) -> float:
    """In byte/s; never nothing."""
    return max(1, steady[-1].bytes - steady[0].bytes) / max(1e-9, steady[-1].at_s - steady[0].at_s)


def _over(steady: Sequence[Progress], lines_bps: Callable[[float, float], float]) -> float:
    """The rate over what the lines gave meanwhile."""
    return _rate(steady) / max(1e-9, lines_bps(steady[0].at_s, steady[-1].at_s))


def _error(steady: Sequence[tuple[float, int]]) -> float:
    """Standard error of the mean rate over it, by the method of batch means (Law, Kelton: Simulation Modeling)."""
    step = max(1, (len(steady) - 1) // _BATCHES)
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(steady[::step])]
    if len(rates) < 2:
        return 1.0
    mean = math.fsum(rates) / len(rates)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in rates) / (len(rates) - 1))
    return spread / math.sqrt(len(rates)) / mean if mean else 1.0
