"""What must hold over the unseen rounds of all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict
from pathcast.predict import rpe

# what predicts, and the same multi-probe predictor fed with another round's probes
NAMES = ("multi", "single", "cdf", "placebo")


def demos(results: Results, grid: str = "rounds") -> list[Mapping[str, Any]]:
    """The finished demos; raises Undecided if there are none."""
    found = [row for row in results.rows if row["grid"] == grid and row["error"] is None]
    if not found:
        raise Undecided("none of its runs is there")
    return found


def counted(results: Results, grid: str = "rounds") -> Iterator[Mapping[str, Any]]:
    """The rounds that were not left out."""
    for demo in demos(results, grid):
        yield from (one for one in demo["rounds"] if one["left_out"] is None)


def predicted(one: Mapping[str, Any], name: str) -> float | None:
    """[bit/s]."""
    return one["placebo_bps"] if name == "placebo" else one["predicted_bps"][name]


def errors(results: Results, *names: str) -> np.ndarray:
    """Predicted less actual [bit/s] of the unseen rounds, a column a predictor."""
    unseen = [one for one in counted(results) if one["unseen"]]
    rows = [[predicted(one, name) for name in names] for one in unseen]
    if not rows or any(value is None for row in rows for value in row):
        raise Undecided("no unseen round has all predictions")
    return np.array(rows) - np.array([[one["actual_bps"]] for one in unseen])


def rmse(of: np.ndarray) -> np.ndarray:
    """By column."""
    return np.sqrt((of**2).mean(axis=0))


def _finding(met: bool | None, ours: str, otherwise: str) -> Finding:
    verdict = Verdict()
    verdict.needs(met, otherwise)
    return verdict.finding(ours)


def multi(results: Results, claim: Claim) -> Finding:
    def ratio(of: np.ndarray) -> float:
        own, other = rmse(of)
        return float(own / other)

    found = Interval.bootstrap(errors(results, "multi", "single"), ratio)
    return _finding(found.at_most(claim.threshold), found.told(form=".2f"), f"more than {claim.threshold}")


def within(results: Results, claim: Claim) -> Finding:
    actual = np.array([one["actual_bps"] for one in counted(results) if one["unseen"]])
    # as in the table: over the smaller of both, and what is on the bound is outside
    found = Interval.share(np.abs(rpe(actual + errors(results, "multi")[:, 0], actual)) < 0.1)
    ours = f"{found.percent(sign=False)} of {found.n}"
    return _finding(found.at_least(claim.threshold), ours, f"less than {claim.threshold:.0%}")


def placebo(results: Results, claim: Claim) -> Finding:
    def more(of: np.ndarray) -> float:
        own, *others = rmse(of)
        return float(own - max(others))

    found = Interval.bootstrap(errors(results, "placebo", "multi", "single"), more)
    return _finding(found.above(claim.threshold), f"{found.told(1e-6, '+.1f')} Mbit/s", "not worse")


def fallback(results: Results, claim: Claim) -> Finding:
    every = list(counted(results))
    found = sum(bool(one["fallback"]) for one in every)
    return _finding(found <= claim.threshold, f"{found} of {len(every)}", f"{found} did")


def both_paths(results: Results, claim: Claim) -> Finding:
    least = min(min(one["subflow_bytes"]) / sum(one["subflow_bytes"]) for one in counted(results))
    return _finding(least >= claim.threshold, f"{least:.1%} at least", f"one had {least:.1%}")


CLAIMS = {"multi": multi, "within": within, "placebo": placebo, "fallback": fallback, "both-paths": both_paths}
