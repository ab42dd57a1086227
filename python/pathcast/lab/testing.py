"""What the tests of experiments share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathcast.lab.experiment import Experiment, Results


class Verdicts(Mapping[str, dict[str, Any]]):
    """The findings on results by claim; one is judged when it is asked for, since all of them take seconds."""

    def __init__(self, experiment: Experiment, results: Results) -> None:
        self.experiment = experiment
        self.results = results

    def __getitem__(self, claim: str) -> dict[str, Any]:
        for found in self.experiment.findings(self.results, {claim}):
            return found
        raise KeyError(claim)

    def __iter__(self) -> Iterator[str]:
        return (one.id for one in self.experiment.plan.claims if self.results.world in one.worlds)

    def __len__(self) -> int:
        return sum(1 for _ in self)
