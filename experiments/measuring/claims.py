"""The bars, judged by the worst run, and what holds over random paths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .rows import rows, told


def bar(results: Results, claim: Claim) -> Finding:
    """Every run within the limits. A part of the runs can show that it does not hold, only all of them that it does."""
    found, quantity, verdict = rows(results, claim), claim.threshold["quantity"], Verdict()
    if not found:
        raise Undecided("none of its runs is there")
    for row in found:
        verdict.details.append(f"{row.name}: {told(quantity, row.worst)} at worst, {row.of}")
        verdict.needs(not row.wrong(), f"{row.name}: {', '.join(row.wrong())}")
        if row.missing:
            verdict.missing.append(f"{row.name}: {row.missing} runs")
    planned = {_key(point) for point in results.plan.points(results.world) if _of(claim, point)}
    if len(found) < len(planned):
        verdict.missing.append(f"{len(planned) - len(found)} networks")
    worst = max((row.worst for row in found if row.worst is not None), key=abs, default=None)
    alike = sum(row.alike for row in found)
    return verdict.finding(
        f"{told(quantity, worst)} at worst" + (f"; {alike} of {len(found)} rows without spread" if alike else "")
    )


def _of(claim: Claim, point: dict) -> bool:
    wanted = {key: value for key, value in claim.threshold.items() if key in point}
    return all(point[key] in (value if isinstance(value, list) else [value]) for key, value in wanted.items())


def _key(point: dict) -> tuple:
    return tuple(value for key, value in point.items() if key != "seed")


def paths(results: Results) -> pd.DataFrame:
    """All random paths; raises Undecided if there are none."""
    frame = results.frame
    if frame.empty or (frame := frame[frame["grid"] == "random"]).empty:
        raise Undecided("none of its runs is there")
    return frame


def cases(results: Results, kind: str | None = None) -> pd.DataFrame:
    """The random paths with a value, with `size` (|error|) and `half_width`, both over the capacity, and `inside`."""
    frame = paths(results)
    frame = frame[frame["value_bps"].notna() & (kind is None or frame["kind"] == kind)]
    if frame.empty:
        raise Undecided("none of its runs has a value")
    error = (frame["value_bps"] - frame["truth_bps"]) / frame["capacity_truth_bps"]
    half = (frame["high_bps"] - frame["low_bps"]) / 2 / frame["capacity_truth_bps"]
    inside = (frame["low_bps"] <= frame["truth_bps"]) & (frame["truth_bps"] <= frame["high_bps"])
    return frame.assign(error=error, size=error.abs(), half_width=half, inside=inside)


def inside(results: Results, claim: Claim) -> Finding:
    """Cases are independent."""
    share, verdict = Interval.share(cases(results)["inside"]), Verdict()
    least, most = claim.threshold["least"], claim.threshold["most"]
    verdict.needs(share.within(least, most), f"not {least:.0%} to {most:.0%} for certain")
    return verdict.finding(f"{share.percent(sign=False)} of {share.n}")


def half_width(results: Results, claim: Claim) -> Finding:
    """The median's."""
    widths = cases(results, claim.threshold["kind"])["half_width"]
    middle, verdict, most = Interval.bootstrap(widths, np.median), Verdict(), claim.threshold["most"]
    verdict.needs(middle.at_most(most), f"more than {most:.1%}")
    return verdict.finding(middle.percent(sign=False))


def delay(results: Results, claim: Claim) -> Finding:
    """Every one decides."""
    frame = paths(results)
    frame = frame[frame["delay_s"].notna() & frame["delay_bound_s"].notna()]
    if frame.empty:
        raise Undecided("no case has a delay with a bound")
    held = int(((frame["delay_s"] - frame["delay_truth_s"]).abs() <= frame["delay_bound_s"]).sum())
    verdict = Verdict()
    verdict.needs(held >= claim.threshold["least"] * len(frame), f"beyond it in {len(frame) - held}")
    return verdict.finding(f"{held} of {len(frame)}")


_BARS = ("constant", "short", "slow", "fast", "gigabit", "poisson", "two", "shallow", "asymmetric", "capacity")
CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **dict.fromkeys((*_BARS, "capacity-bucket", "delay"), bar),
    "random-inside": inside,
    "random-constant": half_width,
    "random-bursts": half_width,
    "random-delay": delay,
}
