"""What must hold on every line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict


def absurd(row: Mapping[str, Any], factor: float) -> bool:
    """Whether its capacity is so many times the line's greatest rate, or below the least by as much."""
    value = row.get("capacity_bps")
    return value is not None and not row["rate_least_bps"] / factor <= value <= factor * row["rate_most_bps"]


def holds(row: Mapping[str, Any]) -> bool:
    """Whether the interval of the available bandwidth holds the truth."""
    return bool(row["low_bps"] <= row["truth_bps"] <= row["high_bps"])


def capacity(results: Results, claim: Claim) -> Finding:
    """Every run decides."""
    found = [row for row in results.rows if row["error"] is None and row.get("capacity_bps") is not None]
    if not found:
        raise Undecided("no run has a capacity")
    wrong = [row for row in found if absurd(row, claim.threshold["factor"])]
    verdict = Verdict()
    lines = sorted({row["line"] for row in wrong})
    verdict.needs(not wrong, f"absurd in {len(wrong)}: {', '.join(lines)}")
    return verdict.finding(f"{len(found) - len(wrong)} of {len(found)}")


def inside(results: Results, claim: Claim) -> Finding:
    """Cases are independent."""
    found = [holds(row) for row in results.rows if row["error"] is None and row.get("value_bps") is not None]
    if not found:
        raise Undecided("no run has a value")
    share, verdict = Interval.share(found), Verdict()
    verdict.needs(share.at_least(claim.threshold["least"]), f"not {claim.threshold['least']:.0%} for certain")
    return verdict.finding(f"{share.percent(sign=False)} of {share.n}")


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {"capacity": capacity, "inside": inside}
