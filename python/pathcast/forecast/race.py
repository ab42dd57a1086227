"""Which choices are worth further draws: those that may still be the fastest."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from pathcast.forecast.outcome import Outcome
from pathcast.forecast.twin import Choice

# a choice is given up when it is slower than the best by so many standard errors of their paired difference
_GIVEN_UP = 3.0
# or when it ends more rarely, which chance does so often: as those errors
_CHANCE = 0.00135


@dataclass
class Runner:
    """A choice and what became of it in each draw, in their order, to the one after which it was given up. Of what the
    history taught (lessons.py): told: how the durations came about, for the document; compared: those that choices are
    compared by, where they are others; error: how far they may be off [logarithm]."""

    choice: Choice
    outcomes: list[Outcome | None] = field(default_factory=list)
    running: bool = True
    told: dict[str, Any] = field(default_factory=dict)
    compared: list[float] = field(default_factory=list)
    error: float = 0.0

    def durations_s(self) -> list[float]:
        """Of each draw; infinite where the transfer did not end."""
        return [one.duration_s if one else math.inf for one in self.outcomes]

    def compared_s(self) -> list[float]:
        """Of each draw, to compare choices by."""
        return self.compared or self.durations_s()

    @property
    def place(self) -> tuple[float, float]:
        """To compare by: the share of draws in which the transfer did not end, and the mean of the others [s]."""
        return placed(self.compared_s())


def placed(durations: Sequence[float]) -> tuple[float, float]:
    """As `Runner.place`."""
    ended = [one for one in durations if one < math.inf]
    return 1 - len(ended) / max(1, len(durations)), fmean(ended) if ended else math.inf


def race(
    choices: Sequence[Choice],
    run: Callable[[Sequence[int], Sequence[Choice]], list[list[Outcome | None]]],
    draws: int,
    batch: int,
    least: int = 0,
    time_s: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> list[Runner]:
    """Draws in batches until there are so many, or the time is over; the first batch is always made.

    least: no choice is given up before so many.
    run: of seeds and choices the outcomes, a list for every seed.
    """
    runners = [Runner(choice) for choice in choices]
    began, done = clock(), 0
    while done < draws and (not done or clock() - began < time_s * done / (done + batch)):
        seeds = range(done + 1, min(done + batch, draws) + 1)
        left = [runner for runner in runners if runner.running]
        for outcomes in run(seeds, [runner.choice for runner in left]):
            for runner, outcome in zip(left, outcomes, strict=True):
                runner.outcomes.append(outcome)
        done = seeds[-1]
        if done >= least:
            _give_up(left)
    return runners


def _give_up(runners: Sequence[Runner]) -> None:
    best = min(runners, key=lambda runner: runner.place)
    for runner in runners:
        if runner is not best:
            pairs = list(zip(runner.durations_s(), best.durations_s(), strict=True))
            later = [own - bests for own, bests in pairs if max(own, bests) < math.inf]
            fails = sum(bests < own == math.inf for own, bests in pairs)
            ends = sum(own < bests == math.inf for own, bests in pairs)
            runner.running = not _more_often(fails, ends) and not _above_zero(later)


def _more_often(one: int, other: int) -> bool:
    """Whether the one of two that are as probable is so much more frequent by no chance (sign test)."""
    cases = one + other
    return sum(math.comb(cases, n) for n in range(one, cases + 1)) < _CHANCE * (1 << cases)


def _above_zero(differences: Sequence[float]) -> bool:
    if len(differences) < 2:
        return False
    error = stdev(differences) / math.sqrt(len(differences))
    return fmean(differences) > _GIVEN_UP * error
