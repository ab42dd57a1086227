"""The bars, judged by the worst run, and what holds over random paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.plan import Claim

from .rows import rows, told

# of the standard normal distribution, two-sided 95 %
_Z = 1.959964


def bar(results: Results, claim: Claim) -> Finding:
    """Every run within the limits. A part of the runs can show that it does not hold, only all of them that it does."""
    found = rows(results, claim)
    if not found:
        raise Undecided("none of its runs is there")
    quantity = claim.threshold["quantity"]
    ours = ", ".join(f"{row.name}: {told(quantity, row.worst)}" for row in found)
    wrong = [f"{row.name}: {', '.join(row.wrong())}" for row in found if row.wrong()]
    if wrong:
        return Finding(ours, False, "; ".join(wrong))
    missing = [f"{row.name}: {row.missing} runs" for row in found if row.missing]
    planned = {_key(point) for point in results.plan.points(results.world) if _of(claim, point)}
    if len(found) < len(planned):
        missing.append(f"{len(planned) - len(found)} networks")
    return Finding(ours, None, f"late or not run: {', '.join(missing)}") if missing else Finding(ours, True)


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


def share_interval(held: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    p, z2 = held / of, _Z**2
    middle = (p + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * math.sqrt(p * (1 - p) / of + z2 / (4 * of**2)) / (1 + z2 / of)
    return middle - half, middle + half


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a median by order statistics, with the binomial's normal approximation."""
    ordered = sorted(values)
    n, half = len(ordered), _Z * math.sqrt(len(ordered)) / 2
    return ordered[max(0, math.floor(n / 2 - half))], ordered[min(n - 1, math.ceil(n / 2 + half))]


def inside(results: Results, claim: Claim) -> Finding:
    frame = cases(results)
    held, (low, high) = int(frame["inside"].sum()), share_interval(int(frame["inside"].sum()), len(frame))
    ours = f"{held / len(frame):.1%} of {len(frame)} (95 %: {low:.1%} to {high:.1%})"
    least, most = claim.threshold["least"], claim.threshold["most"]
    if least <= low and high <= most:
        return Finding(ours, True)
    share = held / len(frame)
    return Finding(
        ours, None if least <= share <= most else False, f"the interval is not inside {least:.0%} to {most:.0%}"
    )


def half_width(results: Results, claim: Claim) -> Finding:
    widths = list(cases(results, claim.threshold["kind"])["half_width"])
    middle, (low, high) = median(widths), median_interval(widths)
    ours = f"{middle:.1%} (95 %: {low:.1%} to {high:.1%})"
    if high <= claim.threshold["most"]:
        return Finding(ours, True)
    return Finding(ours, None if low <= claim.threshold["most"] else False, f"above {claim.threshold['most']:.1%}")


def delay(results: Results, claim: Claim) -> Finding:
    frame = paths(results)
    frame = frame[frame["delay_s"].notna() & frame["delay_bound_s"].notna()]
    if frame.empty:
        raise Undecided("no case has a delay with a bound")
    held = int(((frame["delay_s"] - frame["delay_truth_s"]).abs() <= frame["delay_bound_s"]).sum())
    ours = f"{held} of {len(frame)}"
    if held >= claim.threshold["least"] * len(frame):
        return Finding(ours, True)
    return Finding(ours, False, f"beyond it in {len(frame) - held}")


_BARS = ("constant", "short", "slow", "fast", "gigabit", "poisson", "two", "shallow", "asymmetric", "capacity")
CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **dict.fromkeys((*_BARS, "capacity-bucket", "delay"), bar),
    "random-inside": inside,
    "random-constant": half_width,
    "random-bursts": half_width,
    "random-delay": delay,
}
