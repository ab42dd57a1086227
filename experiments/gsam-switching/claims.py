"""The paper's findings a to d, and what we add to them, as functions of the results. plan.toml states each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.plan import Claim

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

LINUX: Network = ("linux", 150)
ONE_WAY: Network = ("paper", 300)
Pairs = list[tuple[Cell, str, str]]


def _faster(results: Results, claim: Claim, network: Network, pairs: Pairs, why: str) -> Finding:
    """Whether in every cell the first control takes longer than the second, the whole interval above the threshold."""
    holds, not_so = [], []
    for cell, slower, faster in pairs:
        found = difference(results, network, cell, slower, faster, claim.seeds)
        relative = found.mean / completions(results, network, cell, faster, claim.seeds).mean()
        beyond = found.mean - found.half > claim.threshold["least_s"]
        (holds if beyond else not_so).append((cell, found, relative))
    ours = f"so in {len(holds)} of {len(pairs)} cells"
    if holds:
        every = [relative for _, _, relative in holds]
        ours += f", by {100 * min(every):.1f} to {100 * max(every):.0f} % ({holds[0][1].n} seeds)"
    if not not_so:
        return Finding(ours, True)
    listed = "; ".join(f"{told(cell)}: {found} s" for cell, found, _ in not_so[:4])
    more = f" and {len(not_so) - 4} more" if len(not_so) > 4 else ""
    return Finding(ours, False, f"not at {listed}{more}. {why}")


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
    better = _faster(results, claim, PAPER, _against(cells(SIZES, FEW), "gsam", "subflow_switch"), "")
    unequal, most = [], 0.0
    for control, numbers in (("lia", FEW), ("gsam", MANY)):
        for cell in cells(SIZES, numbers):
            other = completions(results, PAPER, cell, control, claim.seeds).mean()
            apart = abs(difference(results, PAPER, cell, "subflow_switch", control, claim.seeds).mean) / other
            most = max(most, apart)
            if apart > claim.threshold["equal"]:
                unequal.append(f"{told(cell)}: {100 * apart:.1f} % from {control}")
    ours = f"n <= 2, faster than GSAM: {better.ours}; equal to within {100 * most:.2f} % in all cells"
    if better.holds and not unequal:
        return Finding(ours, True)
    return Finding(ours, False, "; ".join(filter(None, (better.reason, *unequal[:4]))))


def not_mended(results: Results, claim: Claim) -> Finding:
    """Finding d."""
    why = "There the switch costs nothing."
    return _faster(results, claim, PAPER, _against(cells(SMALL, MANY), "subflow_switch", "lia"), why)


def losses(results: Results, claim: Claim) -> Finding:
    """What the authors suppose to be the cause of b."""
    frame = _lost(results, claim, PAPER, cells(SIZES, SUBFLOWS))
    shares = (frame["drops"] > 0).groupby([frame["bytes"], frame["subflows"]]).mean()
    wrong = []
    for cell in cells(SIZES, SUBFLOWS):
        wanted = claim.threshold["without" if paper_says(cell) > 0 else "with"]
        if cell not in shares.index:
            raise Undecided(f"no results of lia at {told(cell)}")
        if shares[cell] != wanted:
            wrong.append(f"{told(cell)}: drops in {100 * shares[cell]:.0f} % of the runs")
    lossy = int((shares == 1).sum())
    ours = f"drops in all runs of {lossy} cells, in none of {int((shares == 0).sum())}"
    return Finding(ours, True) if not wrong else Finding(ours, False, "; ".join(wrong[:4]))


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
    faster = {}
    for tcp in claim.threshold:
        pairs = _against(cells(LARGE, MANY), "lia", "gsam")
        found = [difference(results, (tcp, 150), *pair, claim.seeds) for pair in pairs]
        faster[tcp] = sum(one.sign > 0 for one in found)
    ours = ", ".join(f"{tcp.removeprefix('paper_')}: {count} of 18 cells" for tcp, count in faster.items())
    wrong = [tcp for tcp, (least, most) in claim.threshold.items() if not least <= faster[tcp] <= most]
    if not wrong:
        return Finding(ours, True)
    return Finding(ours, False, f"outside of what the plan has for {', '.join(wrong)}")


def default(results: Results, claim: Claim) -> Finding:
    """Findings a and b with the parameters that were chosen by analysis, before any calibration."""
    against, same = [], 0
    for cell in cells(SIZES, SUBFLOWS):
        found = difference(results, PAPER, cell, "gsam_default", "lia", claim.seeds)
        if found.sign == -paper_says(cell) or (found.sign == 0 and paper_says(cell) < 0):
            against.append(f"{told(cell)}: {found} s")
        same += found.sign == 0
    ours = f"{len(against)} of 40 cells against it; in {same} of the 22 for MPTCP the two do not differ for certain"
    if len(against) <= claim.threshold["against"]:
        return Finding(ours, True)
    return Finding(ours, False, "; ".join(against[:4]))


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
