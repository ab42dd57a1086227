"""How much of a job is simulated, so that the answer comes in time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pathcast.forecast.belief import PathBelief
from pathcast.forecast.twin import Choice

# of a processor for a byte that a simulated link carries, of the job or of others' [s]
_COST_S = 0.3e-9
# two paths and one controller, and everything else [s]
FEW_S, MANY_S = 3.0, 10.0
# nothing was measured, so nobody waits anyway
QUICK_S = 0.6
_FEW_CHOICES, _FEW_BYTES = 3, 256_000_000
# as many draws as the 90 % interval of a sample asks for, and a few
_DRAWS = 24
# where others use the processors, it may take so many times as long
_PATIENCE = 4
# of the time, for the simulation
_SHARE = 0.7
_LEAST_BYTES = 1_000_000
# slow start and the first losses are over
_LEAST_S, _LEAST_RTTS = 1.0, 20.0


@dataclass(frozen=True)
class Effort:
    """Seconds for the whole race, and the most bytes of one simulated transfer: of these choices in whatever order of
    their paths, and of any other."""

    time_s: float
    most_bytes: int
    by_choice: Mapping[tuple[frozenset[str], str], int] = field(default_factory=dict)

    def of(self, choice: Choice) -> int:
        """The most bytes of one simulated transfer of a choice."""
        return self.by_choice.get(_unordered(choice), self.most_bytes)


def _unordered(choice: Choice) -> tuple[frozenset[str], str]:
    return frozenset(choice.paths), choice.control


def effort(
    beliefs: Sequence[PathBelief], choices: Sequence[Choice], size_bytes: int, time_s: float | None = None
) -> Effort:
    """For these choices on this machine, in `time_s` or as long as is usual; what one of them does not need the others
    have. It is as long as is usual, too, where less would show hardly more than a transfer's beginning."""
    few = len(choices) <= _FEW_CHOICES and size_bytes <= _FEW_BYTES
    usual_s = FEW_S if few else MANY_S
    asked = _within(beliefs, choices, size_bytes, time_s or usual_s)
    settled = all(asked.of(one) >= min(size_bytes, _settles(beliefs, one)) for one in choices)
    return asked if settled else _within(beliefs, choices, size_bytes, max(usual_s, asked.time_s))


def _settles(beliefs: Sequence[PathBelief], choice: Choice) -> float:
    """After how many bytes a transfer goes on about as it does."""
    of = [belief for belief in beliefs if belief.name in choice.paths]
    return math.fsum(one.available_bps / 8 * max(_LEAST_S, _LEAST_RTTS * one.rtt_s) for one in of)


def _within(beliefs: Sequence[PathBelief], choices: Sequence[Choice], size_bytes: int, time_s: float) -> Effort:
    # others' traffic is simulated on all paths for as long as the job takes
    carried = sum(belief.capacity_bps for belief in beliefs)
    left = {belief.name: belief.available_bps for belief in beliefs}
    cost_s = {one: _COST_S * carried / sum(left[name] for name in one.paths) for one in choices}
    rest_s, most = _SHARE * time_s * _processors() / _DRAWS, {}
    for n, choice in enumerate(sorted(choices, key=cost_s.__getitem__)):
        may = max(_LEAST_BYTES, round(rest_s / (len(choices) - n) / cost_s[choice]))
        most[_unordered(choice)] = may
        rest_s = max(0.0, rest_s - min(may, size_bytes) * cost_s[choice])
    return Effort(time_s, min(most.values()), most)


def clock() -> Callable[[], float]:
    """Of the processors' time that this process has taken, over their number [s]; where it gets too little of it, of a
    share of the time that passes."""
    wall, work = time.monotonic(), time.process_time()
    return lambda: max((time.process_time() - work) / _processors(), (time.monotonic() - wall) / _PATIENCE)


def _processors() -> int:
    return len(os.sched_getaffinity(0))
