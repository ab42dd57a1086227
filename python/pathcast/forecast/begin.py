"""Over which of its paths a transfer over several begins: that path has the first round trips to itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import fmean

from pathcast.forecast.outcome import Outcome
from pathcast.forecast.race import Runner
from pathcast.forecast.twin import Choice

# what is not faster in so many of the same draws is not tried in the others
_LOOKS = 8


def begun(
    runners: Sequence[Runner],
    run: Callable[[Sequence[int], Choice], list[Outcome | None]],
    unknown: Collection[str] = (),
) -> list[Runner]:
    """The runners of a race, the best of those of several paths in place of itself with its fastest beginning.

    run: of seeds and a choice an outcome for every seed. unknown: paths that are better not begun over.
    """
    several = [one for one in runners if len(one.choice.paths) > 1 and one.running and any(one.outcomes)]
    if not several:
        return list(runners)
    usual = min(several, key=lambda one: _mean(one.outcomes))
    seeds = range(1, len(usual.outcomes) + 1)
    others = [other for other in _others(usual.choice) if other.paths[0] not in unknown]
    looks = [(run(seeds[:_LOOKS], other), other) for other in others]
    if not looks:
        return list(runners)
    first, other = min(looks, key=lambda look: _mean(look[0]))
    if _mean(first) >= _mean(usual.outcomes[:_LOOKS]):
        return list(runners)
    outcomes = [*first, *run(seeds[_LOOKS:], other)]
    if _mean(outcomes) >= _mean(usual.outcomes):
        return list(runners)
    better = replace(usual, choice=other, outcomes=outcomes)
    return [better if one is usual else one for one in runners]


def further(runners: Sequence[Runner]) -> int:
    """How many transfers `begun` simulates at most, besides those of the race."""
    several = [one for one in runners if len(one.choice.paths) > 1]
    return max((_LOOKS * (len(one.choice.paths) - 2) + len(one.outcomes) for one in several), default=0)


def _others(choice: Choice) -> list[Choice]:
    """The same paths, each of the others first: the order of those behind it hardly counts."""
    paths = choice.paths
    return [replace(choice, paths=(name, *(one for one in paths if one != name))) for name in paths[1:]]


def _mean(outcomes: Sequence[Outcome | None]) -> tuple[int, float]:
    """To compare by: how many did not end, and the mean time of the others [s]."""
    ended = [one.duration_s for one in outcomes if one]
    return len(outcomes) - len(ended), fmean(ended) if ended else 0.0
