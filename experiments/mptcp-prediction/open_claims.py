"""What we claim of the problems that the paper leaves open: fewer probes than paths, and networks nearer to a WAN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.plan import Claim
from pathcast.predict import fraction_within
from pathcast.predict.resample import Reduction

from .evaluation import MULTI, SINGLE, Scores, judged_network, scores
from .open_problems import FEW, LAST, MEASURED, SETTINGS, samples, scale_key, wan_scores
from .telling import kbps, percent


def _over(found: Scores, label: str, other: str, network: str) -> tuple[Reduction, str]:
    """Reduction of the unseen RMSE, and how it is told."""
    value = found.reduction(label, other, network, unseen=True)
    one, two = found(label, network), found(other, network)
    return value, f"{value} lower ({kbps(one.unseen_rmse)} and {kbps(two.unseen_rmse)} KB/s)"


def few(label: str) -> Callable[[Results, Claim], Finding]:
    """A predictor with fewer probes than paths beside multi-probe."""

    def claim_few(results: Results, claim: Claim) -> Finding:
        found, network = scores(results), judged_network(results)
        value, ours = _over(found, label, MULTI, network)
        if value.low >= claim.threshold["least"]:
            return Finding(ours, True)
        one, two = found(label, network), found(MULTI, network)
        within = f"{percent(one.unseen_fraction)} and {percent(two.unseen_fraction)} within 10 %"
        return Finding(ours, False, f"it may be worse by more than {percent(-claim.threshold['least'])}; {within}")

    return claim_few


def wan(label: str, other: str) -> Callable[[Results, Claim], Finding]:
    """One predictor beside another on the WAN's samples."""

    def claim_wan(results: Results, claim: Claim) -> Finding:
        found, network = wan_scores(results), scale_key(results.plan.setup["wan"]["scales"][0])
        value, ours = _over(found, label, other, network)
        if value.low >= claim.threshold["least"]:
            return Finding(ours, True)
        return Finding(ours, False, _outlier(results, found, label, other) or _why(found, label, network))

    return claim_wan


def _why(found: Scores, label: str, network: str) -> str:
    """How little a small probe says; who knows everything, and who has seen such a transfer over the same paths."""
    one = found(label, network)
    told = f"the data follow path 1's probe by a rho of {one.rho:.2f}; its median error is {percent(one.unseen_median)}"
    know = f"who knows what the paths were drawn as has {percent(found(SETTINGS, network).unseen_median)}"
    return f"{told}, {know}, an earlier transfer {percent(found(LAST, network).unseen_median)}"


def _outlier(results: Results, found: Scores, label: str, other: str) -> str | None:
    """Whether one sample has most of the squared error, and how it is on the other scale."""
    first, *scales = results.plan.setup["wan"]["scales"]
    one = found(label, scale_key(first))
    squares = np.mean((one.found.unseen - one.actual) ** 2, axis=0)
    worst = int(np.argmax(squares))
    share = float(squares[worst] / squares.sum())
    if share < 0.5:
        return None
    least = samples(results)[["path1_available_bps", "path2_available_bps"]].iloc[worst].min()
    told = f"one sample of {len(squares)} has {percent(share)} of the squared error"
    if least < 1e5:
        told += f": on one path {least:.0f} bit/s were measured as available, whose logarithm is far from all others"
    elsewhere = (f"{scale} scale {found.reduction(label, other, scale_key(scale), unseen=True)}" for scale in scales)
    return f"{told}; reduction on the {', '.join(elsewhere)}" if scales else told


def past(results: Results, claim: Claim) -> Finding:
    """An earlier transfer, beside the best that is published on neighbouring problems."""
    found, network = wan_scores(results), scale_key(results.plan.setup["wan"]["scales"][0])
    one, limits = found(LAST, network), claim.threshold
    if "within" in limits:
        ours, holds = f"{percent(one.unseen_fraction)} within 10 %", one.unseen_fraction >= limits["within"]
        measure = fraction_within
    else:
        ours, holds = f"median error {percent(one.unseen_median)}", one.unseen_median <= limits["median"]
        measure = _median_error
    if holds:
        return Finding(ours, True)
    lossy = samples(results)[["path1_loss", "path2_loss"]].max(axis=1).to_numpy() > 0
    if lossy.all() or not lossy.any():
        return Finding(ours, False, "the next transfer loses other packets")
    kinds = (percent(measure(one.found.unseen[0][here], one.actual[here])) for here in (lossy, ~lossy))
    told = "{} where a path has random loss, {} where none has: the next transfer loses other packets"
    return Finding(ours, False, told.format(*kinds))


def _median_error(predicted: np.ndarray, actual: np.ndarray) -> float:
    return float(np.median(np.abs(predicted / actual - 1)))


CLAIMS: dict[str, Callable[[Results, Claim], Any]] = {
    "open-a": few(FEW),
    "open-a-rtt": few("rtt"),
    "open-b-multi": wan(MULTI, SINGLE),
    "open-b-measured": wan(MEASURED, MULTI),
    "open-b-past": past,
    "open-b-median": past,
}
