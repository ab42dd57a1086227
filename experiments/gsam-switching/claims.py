"""The paper's findings a to d, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from . import emulated_claims
from .adaptive import CLAIMS as OPEN
from .calibration import Parameters, agreement, register
from .cells import (
    FEW,
    LARGE,
    MANY,
    PAPER,
    SIZES,
    SMALL,
    SUBFLOWS,
    Cell,
    Network,
    cells,
    completions,
    difference,
    paper_says,
    parameters,
    told,
)
from .losses import lossy

LINUX: Network = ("linux", 150)
ONE_WAY: Network = ("paper", 300)
Pairs = list[tuple[Cell, str, str]]


def _faster(results: Results, claim: Claim, network: Network, pairs: Pairs, why: str) -> Finding:
    """Whether in every cell the first control takes longer than the second."""
    verdict = Verdict()
    told = faster(verdict, results, claim, network, pairs)
    return verdict.finding(told, why)


def faster(verdict: Verdict, results: Results, claim: Claim, network: Network, pairs: Pairs) -> str:
    """Asks that of a verdict; returns in how many cells it is so, and by how much."""
    so = []
    for cell, slower, quicker in pairs:
        found = difference(results, network, cell, slower, quicker, claim.seeds)
        if verdict.needs(found.above(claim.threshold["least_s"]), f"{told(cell)}: {found.told(unit=' s')}"):
            so.append(found.value / completions(results, network, cell, quicker, claim.seeds).mean())
    by = f", by {100 * min(so):.1f} to {100 * max(so):.0f} %" if so else ""
    return f"so in {len(so)} of {len(pairs)} cells{by}"


def _against(cell_list: Iterable[Cell], slower: str, faster: str) -> Pairs:
    return [(cell, slower, faster) for cell in cell_list]


def _both_ways() -> Pairs:
    few = _against(cells(LARGE, FEW), "gsam", "lia")
    return few + _against(cells(LARGE, MANY), "lia", "gsam")


def few(results: Results, claim: Claim) -> Finding:
    """Finding a, n <= 2."""
    why = "Where no queue builds, GSAM's threshold is not reached and the two are the same."
    return _faster(results, claim, PAPER, _against(cells(LARGE, FEW), "gsam", "lia"), why)


def many(results: Results, claim: Claim) -> Finding:
    """Finding a, n >= 3."""
    why = "GSAM slows down too late there, or too much, for what MPTCP's losses cost."
    return _faster(results, claim, PAPER, _against(cells(LARGE, MANY), "lia", "gsam"), why)


def small(results: Results, claim: Claim) -> Finding:
    """Finding b."""
    why = "The transfer is over before GSAM's threshold is reached: the two are the same."
    return _faster(results, claim, PAPER, _against(cells(SMALL, SUBFLOWS), "gsam", "lia"), why)


def switch(results: Results, claim: Claim) -> Finding:
    """Finding c."""
    verdict, most, equal = Verdict(), 0.0, claim.threshold["equal"]
    better = faster(verdict, results, claim, PAPER, _against(cells(SIZES, FEW), "gsam", "subflow_switch"))
    for control, numbers in (("lia", FEW), ("gsam", MANY)):
        for cell in cells(SIZES, numbers):
            own, other = (completions(results, PAPER, cell, one, claim.seeds) for one in ("subflow_switch", control))
            apart = float((own / other - 1).abs().max())
            most = max(most, apart)
            verdict.needs(apart <= equal, f"{told(cell)}: {100 * apart:.1f} % from {control}")
    return verdict.finding(f"n <= 2, faster than GSAM: {better}; else equal to within {100 * most:.2f} %")


def not_mended(results: Results, claim: Claim) -> Finding:
    """Finding d."""
    why = "There the switch costs nothing."
    return _faster(results, claim, PAPER, _against(cells(SMALL, MANY), "subflow_switch", "lia"), why)


def losses(results: Results, claim: Claim) -> Finding:
    """What the authors suppose to be the cause of b."""
    frame = _lost(results, claim, PAPER, cells(SIZES, SUBFLOWS))
    by_cell = dict(iter(frame.groupby(["bytes", "subflows"])))
    missing = [cell for cell in cells(SIZES, SUBFLOWS) if cell not in by_cell]
    if missing:
        raise Undecided(f"no results of lia at {told(missing[0])}")
    return lossy(claim, by_cell)


def one_way(results: Results, claim: Claim) -> Finding:
    """Finding a at an RTT of 300 ms."""
    lost = _lost(results, claim, ONE_WAY, cells(LARGE, (3,)))
    why = (
        f"At 300 ms the path holds 125 packets and 50 in its queue: three subflows of at most 46 fit (MPTCP's drops "
        f"at n = 3: {lost.drops.mean():.1f}). Above, MPTCP loses packets, but GSAM's early transition costs a small "
        f"transfer more, since every round trip is twice as long."
    )
    return _faster(results, claim, ONE_WAY, _both_ways(), why)


def linux_large(results: Results, claim: Claim) -> Finding:
    """Finding a with today's TCP."""
    lost = _lost(results, claim, LINUX, cells(LARGE, SUBFLOWS))
    why = (
        f"MPTCP's losses are no fewer ({lost.drops.mean():.0f} drops a transfer), already with one subflow, since slow "
        f"start has no limit; but SACK mends them without waiting: {lost.timeouts.mean():.2f} timeouts a transfer. See "
        f"cause-border."
    )
    return _faster(results, claim, LINUX, _both_ways(), why)


def linux_small(results: Results, claim: Claim) -> Finding:
    """Finding b with today's TCP."""
    why = "The transfer is over before GSAM's threshold is reached."
    return _faster(results, claim, LINUX, _against(cells(SMALL, SUBFLOWS), "gsam", "lia"), why)


def _lost(results: Results, claim: Claim, network: Network, of: list[Cell]) -> pd.DataFrame:
    """What MPTCP's transfers lost in those cells."""
    frame = results.frame
    if frame.empty:
        raise Undecided("no sample has a result")
    frame = frame[(frame["grid"] == "main") & (frame["control"] == "lia") & frame["seed"].isin(claim.seeds)]
    frame = frame[(frame["tcp"] == network[0]) & (frame["rtt_ms"] == network[1])]
    if frame.empty:
        raise Undecided(f"no results of lia with TCP {network[0]}, RTT {network[1]} ms")
    return frame[[cell in of for cell in zip(frame["bytes"], frame["subflows"], strict=True)]]


def calibrated(results: Results, claim: Claim) -> Finding:
    """Whether the plan's parameters are the best of the calibration, which is on seeds of its own."""
    scores = agreement(results, claim.seeds)
    chosen = parameters(results.plan.setup["control"]["gsam"])
    if chosen not in scores:
        raise Undecided("the plan's parameters are not in the calibration")
    agree = {key: sum(sign == paper_says(cell) for cell, sign in row.items()) for key, row in scores.items()}
    usual = register()

    def rank(key: Parameters) -> tuple[int, int]:
        return agree[key], -sum(a != b for a, b in zip(key, usual, strict=True))

    better = [key for key in agree if rank(key) > rank(chosen)]
    equal = sum(count == agree[chosen] for count in agree.values()) - 1
    more = sum(count > agree[chosen] for count in agree.values())
    ours = f"{agree[chosen]} of 40 cells; of {len(agree) - 1} others {more} agree in more, {equal} in as many"
    if len(better) <= claim.threshold["better"]:
        return Finding(ours, True)
    best = max(better, key=rank)
    return Finding(ours, False, f"(theta_shift, theta_floor_us, samples, st_div) = {best}: {agree[best]} cells")


def border(results: Results, claim: Claim) -> Finding:
    """Which of the paper's TCP settings makes the border, one at a time."""
    verdict, told_ = Verdict(), []
    pairs = _against(cells(LARGE, MANY), "lia", "gsam")
    for tcp, (least, most) in claim.threshold.items():
        found = [difference(results, (tcp, 150), *pair, claim.seeds) for pair in pairs]
        # between the cells in which it is so for certain and those in which it may be
        met = [one.above(0) for one in found]
        certain, possible = met.count(True), len(met) - met.count(False)
        count = Interval(sum(one.value > 0 for one in found), certain, possible, len(found))
        told_.append(f"{tcp.removeprefix('paper_')} {certain}")
        verdict.needs(count.within(least, most), f"{tcp}: {certain} to {possible} cells")
    return verdict.finding(f"for certain in cells of 18: {', '.join(told_)}")


def default(results: Results, claim: Claim) -> Finding:
    """Findings a and b with the parameters that were chosen by analysis, before any calibration."""
    verdict, counts = Verdict(), {1: 0, 0: 0, -1: 0}
    for cell in cells(SIZES, SUBFLOWS):
        found = difference(results, PAPER, cell, "gsam_default", "lia", claim.seeds).times(paper_says(cell))
        counts[found.sign] += 1
        verdict.needs(found.above(0), f"{told(cell)}: {found.told(unit=' s')}")
    why = "Where no queue of any size builds up its threshold is not met, and GSAM is MPTCP."
    found = f"as the paper in {counts[1]} of 40 cells, equal or unsure in {counts[0]}, against it in {counts[-1]}"
    return verdict.finding(found, why)


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    "core-a-few": few,
    "core-a-many": many,
    "core-b": small,
    "core-c": switch,
    "core-d": not_mended,
    "cause-b": losses,
    "one-way-a": one_way,
    "linux-a": linux_large,
    "linux-b": linux_small,
    "cause-border": border,
    "calibrated": calibrated,
    "default": default,
    **emulated_claims.CLAIMS,
    **OPEN,
}
