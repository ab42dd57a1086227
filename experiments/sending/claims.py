"""Each claim over the cells."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

if TYPE_CHECKING:
    from pandas import DataFrame


def _of(results: Results, grid: str) -> DataFrame:
    frame = results.frame
    # where no sample finished there are no columns either
    rows = frame if frame.empty else frame[frame["grid"] == grid]
    if rows.empty:
        raise Undecided("none of its runs is there")
    return rows


def never_slower(results: Results, claim: Claim) -> Finding:
    rows, least = _of(results, claim.samples["grid"][0]), claim.threshold["least"][results.world]
    good = [bool(bound >= claim.threshold["ratio"]) for bound in rows["bound"]]
    share, verdict = Interval.share(good), Verdict()
    for control, of in rows.groupby("control"):
        part = sum(of["bound"] >= claim.threshold["ratio"])
        verdict.details.append(f"{control}: {part} of {len(of)} cells; the least {of['ratio'].min():.2f}")
    verdict.needs(share.at_least(least), f"{len(good) - sum(good)} of {len(good)} cells are below")
    return verdict.finding(
        f"{sum(good)} of {len(good)} cells; the 1st percentile of ratios {rows['ratio'].quantile(0.01):.2f}"
    )


def both_used(results: Results, claim: Claim) -> Finding:
    rows = _of(results, "cells")
    like = rows[(rows["times"] < 5) & (rows["bdps"] >= 100)]
    like = like[(like["control"] != "lia") | ((like["loss"] == 0) & (like["queue_bdp"] >= 1))]
    parts, verdict = [float(part) for part in like["part"]], Verdict()
    if len(parts) < 2:
        verdict.missing.append("cells of that kind")
        return verdict.finding(f"{len(parts)} cells")
    found = Interval.bootstrap(parts, lambda drawn: float(median(drawn)))
    verdict.needs(found.at_least(claim.threshold["least"]), f"the median is {found.told(form='.2f')}")
    return verdict.finding(f"{found.told(form='.2f')} in {len(parts)} cells")


def kernel_alone(results: Results, claim: Claim) -> Finding:
    ratios = _of(results, "cells")["plain_ratio"]
    slow = [bool(ratio < claim.threshold["ratio"]) for ratio in ratios]
    verdict = Verdict()
    verdict.needs(Interval.share(slow).at_least(claim.threshold["least"]), "it may be fewer")
    return verdict.finding(f"{sum(slow)} of {len(slow)} cells; the least {ratios.min():.2f}")


CLAIMS = {
    "never-slower": never_slower,
    "four": never_slower,
    "fast": never_slower,
    "sum": both_used,
    "kernel-alone": kernel_alone,
}
