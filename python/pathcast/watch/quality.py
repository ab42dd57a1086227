"""How a line was over a long time: what was usual, how long it was degraded, and in which hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pathcast.watch.seen import Level
from pathcast.watch.usual import FEWEST

# less than this share of what is usual is degraded
DEGRADED = 0.7
HOUR_S = 3600.0
# a measurement stands for the time until the next, but not for more than so many usual intervals
_STANDS = 3


@dataclass(frozen=True)
class Hour:
    """share: of what is usual, at the mean, in an hour that begins at `at_s` (UTC)."""

    at_s: float
    share: float


@dataclass(frozen=True)
class Quality:
    """usual_bps: the median; None: too little is known. judged_s: for how long it is known whether it was degraded,
    degraded_s: for how long it was. hours: the oldest first."""

    usual_bps: float | None
    judged_s: float
    degraded_s: float
    hours: tuple[Hour, ...]

    @property
    def share(self) -> float | None:
        """Of the time; None: nothing is known."""
        return self.degraded_s / self.judged_s if self.judged_s else None


def quality(seen: Sequence[tuple[float, Level]]) -> Quality:
    """seen: when [s] and what was available [bit/s] in one direction, the oldest first; nothing of times when it was
    down."""
    known = [value for _, level in seen if (value := level.sure) is not None]
    usual = median(known) if len(known) >= FEWEST else None
    if not usual:
        return Quality(None, 0.0, 0.0, ())
    apart = [later - sooner for (sooner, _), (later, _) in pairwise(seen)]
    most = _STANDS * median(apart)
    judged_s = degraded_s = 0.0
    hours: dict[float, list[float]] = {}
    for (at_s, level), after_s in zip(seen, [*apart, median(apart)], strict=True):
        bad = level.below(DEGRADED * usual)
        if bad is None:
            continue
        stands_s = min(after_s, most)
        judged_s += stands_s
        degraded_s += stands_s if bad else 0.0
        # where bounds have told it, the nearer one
        value = level.value if level.value is not None else level.high if bad else level.low
        assert value is not None
        hours.setdefault(at_s // HOUR_S * HOUR_S, []).append(value / usual)
    means = tuple(Hour(at_s, sum(of) / len(of)) for at_s, of in sorted(hours.items()))
    return Quality(usual, judged_s, degraded_s, means)
