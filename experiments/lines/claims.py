"""The bars. What was not said counts as missed."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy.stats import binomtest, chi2

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .judged import PROPERTIES, Row, available, by_class, error, half_width, holds, measured

DRAWN = ("queues", "policed")


def told(results: Results, claim: Claim) -> Finding:
    """Recall and precision of both classes. These are as large as each other, so that precisions need no weights."""
    about, verdict = PROPERTIES[claim.id], Verdict()
    pairs = about.rows(results.rows)
    if not pairs:
        raise Undecided("none of its runs is there")
    least, shares = claim.threshold[results.world], []
    for word, which in zip(about.words, (True, False), strict=True):
        recall = [said is which for so, said in pairs if so is which]
        precision = [so is which for so, said in pairs if said is which]
        for name, hits in (("recall", recall), ("precision", precision)):
            if not hits:
                verdict.needs(False, f"{word}: no {name}, nothing was said")
                shares.append(0.0)
                continue
            share = Interval.share(hits)
            shares.append(share.value)
            verdict.details.append(f"{word}: {name} {share.percent(sign=False)} of {share.n}")
            verdict.needs(share.at_least(least), f"{word}: {name} {share.value:.0%}")
    unknown = sum(said is None for _, said in pairs)
    return verdict.finding(f"{min(shares):.0%} at worst; nothing said of {unknown} of {len(pairs)}")


def depth(results: Results, claim: Claim) -> Finding:
    """Deeper than what may be built: the bound that was reached must be told, and be no more than the truth."""
    verdict, limit = Verdict(), claim.threshold
    fifo = claim.id == "depth"
    rows = [row for row in measured(results.rows, ("queues",)) if (row["queue"] == "drop-tail") == fifo]
    if not rows:
        raise Undecided("none of its runs is there")
    near = [found_depth(row, limit["off"], limit["built_s"]) for row in rows]
    share = Interval.share(near)
    verdict.needs(share.at_least(limit["least"]), f"not {limit['least']:.0%} for certain")
    return verdict.finding(f"{share.percent(sign=False)} of {share.n}")


def true_depth(row: Row) -> float:
    """The longest wait, or the standing delay where the queue is managed or fair [s]."""
    return float(row["depth_s"] if row["queue"] == "drop-tail" else row.get("standing_s") or 0.0)


def found_depth(row: Row, off: float, built_s: float) -> bool:
    """Whether the depth is right within `off`, or bounded from below where more than `built_s` were to be built."""
    truth, value, low = true_depth(row), row.get("depth"), row.get("depth_low")
    if value is not None:
        return bool(abs(value - truth) <= off * truth)
    return truth > built_s * (1 - off) and low is not None and built_s * (1 - off) <= low <= truth * (1 + off)


def losses(results: Results, claim: Claim) -> Finding:
    """The share lost at random, on lines that lose so and on those that lose nothing."""
    verdict, limit = Verdict(), claim.threshold
    rows = [row for row in measured(results.rows, DRAWN) if row.get("probes")]
    if not rows:
        raise Undecided("no run counted packets")
    if claim.id == "loss-inside":
        for name, part in (("none", "plain"), ("alone", "loss"), ("in bursts", "gilbert-elliott")):
            some = [holds(row, "random_loss", row["loss_rate"]) for row in rows if row["shape"] == part]
            if some:
                share = Interval.share(some)
                verdict.details.append(f"{name}: {share.percent(sign=False)} of {share.n}")
                verdict.needs(share.at_least(limit["least"]), f"{name}: {share.value:.0%}")
        return verdict.finding("; ".join(verdict.details))
    lossy = [row for row in rows if row["shape"] == "loss"]
    if claim.id == "loss-width":
        wide = [wider(row) for row in lossy]
        middle = Interval.share([one is not None and one <= limit["factor"] for one in wide])
        verdict.needs(middle.at_least(limit["least"]), f"not {limit['least']:.0%} for certain")
        return verdict.finding(f"{middle.percent(sign=False)} of {middle.n}")
    near = []
    for row in lossy:
        if row["loss_rate"] * row["probes"] >= limit["expected"]:
            value = row.get("random_loss") or 0.0
            near.append(1 / limit["factor"] <= value / row["loss_rate"] <= limit["factor"])
    if not near:
        raise Undecided("nowhere were so many losses to be expected")
    share = Interval.share(near)
    verdict.needs(share.at_least(limit["least"]), f"not {limit['least']:.0%} for certain")
    return verdict.finding(f"{share.percent(sign=False)} of {share.n}")


def wider(row: Row) -> float | None:
    """How many times as wide as counting allows: the exact 90 % interval of as many losses as were to be expected."""
    low, high = row.get("random_loss_low"), row.get("random_loss_high")
    if low is None or high is None:
        return None
    n = row["probes"]
    k = round(row["loss_rate"] * n)
    counted = chi2.ppf(0.95, 2 * (k + 1)) / 2 / n - (chi2.ppf(0.05, 2 * k) / 2 / n if k else 0.0)
    # and as many as there happened to be
    happened = max(row["lost"], k)
    return float((high - low) / (counted * max(1.0, sqrt((happened + 1) / (k + 1)))))


def inside(results: Results, claim: Claim) -> Finding:
    """Each class: large ones by the share, small ones if they are not below it for certain. A value that was not given
    is a miss. Above the upper limit an interval is too wide unless it is narrow all the same."""
    verdict, limit = Verdict(), claim.threshold
    rows = measured(results.rows, DRAWN if claim.id == "inside" else ("usual-queues", "shipped"))
    if not rows:
        raise Undecided("none of its runs is there")
    worst = 1.0
    for name, some in by_class(rows).items():
        held = [holds(row, "available", available(row)) for row in some]
        share = sum(held) / len(held)
        widths = [width for row in some if (width := half_width(row)) is not None]
        width = float(np.median(widths)) if widths else 1.0
        worst = min(worst, share)
        verdict.details.append(f"{name}: {sum(held)} of {len(held)}, half-width {width:.1%}")
        if len(held) >= limit["large"]:
            verdict.needs(share >= limit["least"], f"{name}: {share:.0%}")
        else:
            low = binomtest(sum(held), len(held), limit["least"], "less").pvalue < limit["p"]
            verdict.needs(not low, f"{name}: {share:.0%}")
        wide = binomtest(sum(held), len(held), limit["most"], "greater").pvalue < limit["p"] and width > limit["narrow"]
        verdict.needs(not wide, f"{name}: {share:.0%} with {width:.0%} on both sides")
    return verdict.finding(f"{worst:.0%} in the worst class")


def near(results: Results, claim: Claim) -> Finding:
    """The median of |error|, as a share of the line's mean rate; no value is an error of 1."""
    rows = measured(results.rows, ("queues",))
    part: dict[str, Callable[[Row], bool]] = {
        "available-still": lambda row: row["queue"] == "drop-tail" and row["shape"] == "plain",
        "available-trace": lambda row: row["shape"] == "trace",
        "available-fair": lambda row: row["fair"],
    }
    errors = [abs(one) if (one := error(row)) is not None else 1.0 for row in rows if part[claim.id](row)]
    middle, verdict = Interval.bootstrap(errors, np.median), Verdict()
    verdict.needs(middle.at_most(claim.threshold["most"]), f"more than {claim.threshold['most']:.1%}")
    return verdict.finding(f"{middle.percent(sign=False)} of {middle.n}")


def bursts(results: Results, claim: Claim) -> Finding:
    """The median half-width, as a share of the line's mean rate."""
    rows = [row for row in measured(results.rows, DRAWN) if row["kind"] == "pareto-onoff"]
    widths = [one for row in rows if (one := half_width(row)) is not None]
    middle, verdict = Interval.bootstrap(widths, np.median), Verdict()
    verdict.needs(middle.at_most(claim.threshold["most"]), f"more than {claim.threshold['most']:.1%}")
    return verdict.finding(f"{middle.percent(sign=False)} of {middle.n}")


def following(results: Results, claim: Claim) -> Finding:
    """Of lines that others use, and of what TCP would get of all lines."""
    entry, truth = {"next": ("load_next", "next_truth_bps"), "tcp": ("tcp", "tcp_truth_bps")}[claim.id]
    rows = [row for row in measured(results.rows, DRAWN) if row.get(truth) is not None]
    if not rows:
        raise Undecided("none of its runs is there")
    share = Interval.share([holds(row, entry, row[truth]) for row in rows])
    verdict = Verdict()
    verdict.needs(share.at_least(claim.threshold["least"]), f"not {claim.threshold['least']:.0%} for certain")
    return verdict.finding(f"{share.percent(sign=False)} of {share.n}")


def absurd(row: Row, factor: float) -> bool:
    """Whether its capacity is so many times the line's greatest rate, or below the least by as much."""
    value = row.get("capacity")
    return value is not None and not row["rate_least_bps"] / factor <= value <= factor * row["rate_most_bps"]


def capacity(results: Results, claim: Claim) -> Finding:
    """Every run decides."""
    grids = (*DRAWN, "usual-queues", "shipped")
    found = [row for row in measured(results.rows, grids) if row.get("capacity") is not None]
    if not found:
        raise Undecided("no run has a capacity")
    wrong = [row for row in found if absurd(row, claim.threshold["factor"])]
    counts = {name: len(some) for name, some in by_class(wrong).items()}
    verdict = Verdict()
    verdict.needs(not wrong, f"absurd in {len(wrong)}: {_most(counts)}")
    return verdict.finding(f"{len(found) - len(wrong)} of {len(found)}")


def _most(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda one: -one[1])[:6])


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    **dict.fromkeys(PROPERTIES, told),
    **dict.fromkeys(("depth", "standing"), depth),
    **dict.fromkeys(("loss-inside", "loss-width", "loss-value"), losses),
    **dict.fromkeys(("available-still", "available-trace", "available-fair"), near),
    **dict.fromkeys(("inside", "inside-usual"), inside),
    "bursts": bursts,
    "next": following,
    "tcp": following,
    "capacity": capacity,
}
