"""What we claim of the problems that the paper leaves open: fewer probes than paths, and networks nearer to a WAN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .evaluation import MULTI, SINGLE, Scores, judged_network, scores, within
from .open_problems import FEW, LAST, MEASURED, SETTINGS, lacking, samples, scale_key, wan_scores
from .telling import kbps, percent


def _over(found: Scores, label: str, other: str, network: str) -> tuple[Interval, str]:
    """Reduction of the unseen RMSE, and how it is told."""
    value = found.reduction(label, other, network, unseen=True)
    one, two = found(label, network), found(other, network)
    return (
        value,
        f"{value.percent(False)} lower ({kbps(one.error(unseen=True))} and {kbps(two.error(unseen=True))} KB/s)",
    )


def few(label: str) -> Callable[[Results, Claim], Finding]:
    """A predictor with fewer probes than paths beside multi-probe."""

    def claim_few(results: Results, claim: Claim) -> Finding:
        found, network, verdict = scores(results), judged_network(results), Verdict()
        value, ours = _over(found, label, MULTI, network)
        one, two = found(label, network), found(MULTI, network)
        verdict.details = [f"{percent(one.fraction(unseen=True))} and {percent(two.fraction(unseen=True))} within 10 %"]
        verdict.needs(value.at_least(claim.threshold["least"]), f"{value.percent(False)} lower")
        return verdict.finding(ours)

    return claim_few


def wan(label: str, other: str) -> Callable[[Results, Claim], Finding]:
    """One predictor beside another on the WAN's samples."""

    def claim_wan(results: Results, claim: Claim) -> Finding:
        found, network, verdict = wan_scores(results), scale_key(results.plan.setup["wan"]["scales"][0]), Verdict()
        value, ours = _over(found, label, other, network)
        verdict.needs(value.at_least(claim.threshold["least"]), f"{value.percent(False)} lower")
        verdict.missing += filter(None, [lacking(results)])
        if not verdict.missed and not verdict.unsure:
            return verdict.finding(ours)
        verdict.details = [_outlier(results, found, label, other) or _why(found, label, network)]
        return verdict.finding(ours)

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
    elsewhere = (
        f"{scale} scale {found.reduction(label, other, scale_key(scale), unseen=True).percent()}" for scale in scales
    )
    return f"{told}; reduction on the {', '.join(elsewhere)}" if scales else told


def past(results: Results, claim: Claim) -> Finding:
    """An earlier transfer, beside the best that is published on neighbouring problems."""
    found, network = wan_scores(results), scale_key(results.plan.setup["wan"]["scales"][0])
    one, limits, verdict = found(LAST, network), claim.threshold, Verdict()
    guess = one.found.unseen[0]
    # every sample has paths of its own
    if "within" in limits:
        each, measure, form = within(guess, one.actual), np.mean, "{} within 10 %"
        value = Interval.share(each)
        met = value.at_least(limits["within"])
    else:
        each, measure, form = np.abs(guess / one.actual - 1), np.median, "median error {}"
        value = Interval.bootstrap(each, np.median)
        met = value.at_most(limits["median"])
    verdict.missing += filter(None, [lacking(results)])
    ours = form.format(value.percent(False))
    verdict.needs(met, ours)
    lossy = samples(results)[["path1_loss", "path2_loss"]].max(axis=1).to_numpy() > 0
    if lossy.any() and not lossy.all():
        kinds = (percent(float(measure(each[here]))) for here in (lossy, ~lossy))
        verdict.details.append("{} where a path has random loss, {} where none has".format(*kinds))
    return verdict.finding(ours, "the next transfer loses other packets")


CLAIMS: dict[str, Callable[[Results, Claim], Any]] = {
    "open-a": few(FEW),
    "open-a-rtt": few("rtt"),
    "open-b-multi": wan(MULTI, SINGLE),
    "open-b-measured": wan(MEASURED, MULTI),
    "open-b-past": past,
    "open-b-median": past,
}
