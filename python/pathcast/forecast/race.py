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


@dataclass
class Runner:
    """A choice and what became of it in each draw, in their order, to the one after which it was given up; told: how
    the durations came about, for the document (lessons.py)."""

    choice: Choice
    outcomes: list[Outcome | None] = field(default_factory=list)
    running: bool = True
    told: dict[str, Any] = field(default_factory=dict)

    def durations_s(self) -> list[float]:
        """Of each draw; infinite where the transfer did not end."""
        return [one.duration_s if one else math.inf for one in self.outcomes]


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
    durations = {id(runner): runner.durations_s() for runner in runners}
    best = min(runners, key=lambda runner: fmean(durations[id(runner)]))
    for runner in runners:
        if runner is not best:
            pairs = zip(durations[id(runner)], durations[id(best)], strict=True)
            later = [own - bests for own, bests in pairs if bests < math.inf]
            runner.running = not later or not _above_zero(later)


def _above_zero(differences: Sequence[float]) -> bool:
    if math.inf in differences:
        return True
    if len(differences) < 2:
        return False
    error = stdev(differences) / math.sqrt(len(differences))
    return fmean(differences) > _GIVEN_UP * error
