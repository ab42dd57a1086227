"""Findings a to d by the real kernel, and the simulator beside it. plan.toml states each claim (`…-kernel`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.mean import Mean
from pathcast.lab.plan import Claim

from .cells import FEW, MANY, SUBFLOWS, Cell, cells, paper_says, told

SMALL, LARGE = ("250KB",), ("750KB",)
SIZES = (*SMALL, *LARGE)
SETTINGS = ("paper", "linux")
# cell, who is slower, who is faster
Pair = tuple[Cell, str, str]


def transfers(results: Results) -> pd.DataFrame:
    """A row for each transfer of the samples that did not fail: the point's keys, and what became of it."""
    return results.once(_transfers)


def _transfers(results: Results) -> pd.DataFrame:
    keys = ("tcp", "bytes", "subflows", "seed")
    rows = [row for row in results.rows if row["error"] is None]
    return pd.DataFrame([{key: row[key] for key in keys} | one for row in rows for one in row["transfers"]])


def of(results: Results, tcp: str, cell: Cell, control: str, seeds: Iterable[int]) -> pd.DataFrame:
    """One controller's transfers in a cell, by seed; raises Undecided if there are none."""
    frame, (size, n) = transfers(results), cell
    if not frame.empty:
        here = (frame["tcp"] == tcp) & (frame["bytes"] == size) & (frame["subflows"] == n)
        frame = frame[here & (frame["control"] == control) & frame["seed"].isin(tuple(seeds))]
    if frame.empty:
        raise Undecided(f"no results of {control} with TCP {tcp}, {told(cell)}")
    return frame.set_index("seed")


def difference(results: Results, tcp: str, pair: Pair, seeds: Iterable[int], column: str = "completion_s") -> Mean:
    """How much longer the first controller takes than the second [s], in pairs of the same seed."""
    cell, slower, faster = pair
    one, other = (of(results, tcp, cell, control, seeds)[column] for control in (slower, faster))
    return Mean.of((one - other).dropna())


def _pairs(sizes: Iterable[str], subflows: Iterable[int], slower: str, faster: str) -> list[Pair]:
    return [(cell, slower, faster) for cell in cells(sizes, subflows)]


def _judged(results: Results, claim: Claim, tcp: str, pairs: list[Pair], why: str) -> Finding:
    """Whether the first controller is the slower one in every cell; undecided where no cell is against it."""
    beyond, against, unsure = [], [], []
    for pair in pairs:
        found = difference(results, tcp, pair, claim.seeds)
        over = Mean(found.mean - claim.threshold["least_s"], found.half, found.n)
        kind = {1: beyond, -1: against, 0: unsure}[over.sign]
        kind.append((pair, found, found.mean / of(results, tcp, pair[0], pair[2], claim.seeds)["completion_s"].mean()))
    ours = f"so in {len(beyond)} of {len(pairs)} cells"
    if beyond:
        every = [relative for *_, relative in beyond]
        ours += f", by {100 * min(every):.1f} to {100 * max(every):.0f} % ({beyond[0][1].n} seeds)"
    if len(beyond) == len(pairs):
        return Finding(ours, True)
    reasons = [
        f"not at {_listed(against)}" if against else "",
        f"not for certain at {_listed(unsure)}" if unsure else "",
    ]
    lost = "; ".join(_lost(results, claim, tcp, [pair for pair, *_ in (against or unsure)]))
    return Finding(
        ours, False if against else None, f"{'; '.join(filter(None, reasons))}. {why} In these cells {lost}."
    )


def _listed(found: list[tuple[Pair, Mean, float]]) -> str:
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return "; ".join(f"{told(pair[0])}: {mean} s" for pair, mean, _ in found[:4]) + more


def _lost(results: Results, claim: Claim, tcp: str, pairs: list[Pair]) -> Iterator[str]:
    """What the two controllers lost in those cells."""
    for control in (pairs[0][1], pairs[0][2]):
        mine = [pair[0] for pair in pairs if control in pair[1:]]
        frame = pd.concat([of(results, tcp, cell, control, claim.seeds) for cell in mine])
        drops, timeouts = frame["drops"].mean(), frame["timeouts"].mean()
        yield f"{control} has {drops:.1f} drops and {timeouts:.1f} timeouts a transfer"


def few(results: Results, claim: Claim) -> Finding:
    """Finding a, n <= 2."""
    why = "The two come near each other where MPTCP loses packets, or GSAM's threshold is reached late."
    return _judged(results, claim, "paper", _pairs(LARGE, FEW, "gsam", "lia"), why)


def many(results: Results, claim: Claim) -> Finding:
    """Finding a, n >= 3."""
    why = "What MPTCP's losses cost differs from run to run, and may be less than GSAM's slow growth."
    return _judged(results, claim, "paper", _pairs(LARGE, MANY, "lia", "gsam"), why)


def small(results: Results, claim: Claim) -> Finding:
    """Finding b."""
    why = "MPTCP loses packets, or GSAM's threshold is reached late."
    return _judged(results, claim, "paper", _pairs(SMALL, SUBFLOWS, "gsam", "lia"), why)


def switch(results: Results, claim: Claim) -> Finding:
    """Finding c."""
    why = "Up to 2 subflows the switch is MPTCP."
    better = _judged(results, claim, "paper", _pairs(SIZES, FEW, "gsam", "subflow_switch"), why)
    equal, apart, unsure, most = claim.threshold["equal"], [], [], 0.0
    for control, numbers in (("lia", FEW), ("gsam", MANY)):
        for cell in cells(SIZES, numbers):
            other = of(results, "paper", cell, control, claim.seeds)["completion_s"].mean()
            found = difference(results, "paper", (cell, "subflow_switch", control), claim.seeds)
            most = max(most, abs(found.mean) / other)
            if abs(found.mean) > equal * other:
                certain = abs(found.mean) - found.half > equal * other
                (apart if certain else unsure).append(f"{told(cell)}: {found} s from {control}")
    ours = f"n <= 2, faster than GSAM: {better.ours}; equal to within {100 * most:.1f} % in all cells"
    if better.holds and not apart and not unsure:
        return Finding(ours, True)
    holds = False if better.holds is False or apart else None
    listed = [
        f"apart at {'; '.join(apart[:4])}" if apart else "",
        f"perhaps at {'; '.join(unsure[:4])}" if unsure else "",
    ]
    return Finding(ours, holds, "; ".join(filter(None, (better.reason, *listed))))


def not_mended(results: Results, claim: Claim) -> Finding:
    """Finding d."""
    why = "What the switch costs is less than what the runs differ by."
    return _judged(results, claim, "paper", _pairs(SMALL, MANY, "subflow_switch", "lia"), why)


def losses(results: Results, claim: Claim) -> Finding:
    """What the authors suppose to be the cause of b."""
    shares = {cell: (of(results, "paper", cell, "lia", claim.seeds)["drops"] > 0).mean() for cell in _all()}
    wrong = [
        f"{told(cell)}: drops in {100 * share:.0f} % of the runs"
        for cell, share in shares.items()
        if share != claim.threshold["without" if paper_says(cell) > 0 else "with"]
    ]
    every = list(shares.values())
    ours = f"drops in all runs of {every.count(1)} cells, in none of {every.count(0)}"
    return Finding(ours, True) if not wrong else Finding(ours, False, "; ".join(wrong[:4]))


def _all() -> list[Cell]:
    return cells(SIZES, SUBFLOWS)


def linux_large(results: Results, claim: Claim) -> Finding:
    """Finding a with the kernel's own settings."""
    why = "SACK mends MPTCP's losses within a round trip or two, so that they cost less than GSAM's slow growth."
    pairs = [*_pairs(LARGE, FEW, "gsam", "lia"), *_pairs(LARGE, MANY, "lia", "gsam")]
    return _judged(results, claim, "linux", pairs, why)


def linux_small(results: Results, claim: Claim) -> Finding:
    """Finding b with the kernel's own settings."""
    why = "Subflows begin with windows of 10 packets each, which meet a queue of 50 that the first one is filling."
    return _judged(results, claim, "linux", _pairs(SMALL, SUBFLOWS, "gsam", "lia"), why)


def ratio(results: Results, tcp: str, cell: Cell, control: str, seeds: Iterable[int]) -> float:
    """Mean completion time of the simulator over that of the kernel."""
    frame = of(results, tcp, cell, control, seeds)
    return float(frame["simulated_completion_s"].mean() / frame["completion_s"].mean())


def simulator(results: Results, claim: Claim) -> Finding:
    """The simulator beside the kernel."""
    controls = results.plan.setup["emulated"]["controls"]
    every = [(tcp, cell, control) for tcp in SETTINGS for cell in _all() for control in controls]
    found = pd.Series({one: ratio(results, *one, claim.seeds) for one in every})
    within = (found - 1).abs() <= claim.threshold["within"]
    ours = (
        f"{int(within.sum())} of {len(found)} cells within {100 * claim.threshold['within']:.0f} %: "
        + ", ".join(
            f"{int(part.sum())} of {len(part)} with TCP {tcp}" for tcp, part in within.groupby(level=0, sort=False)
        )
        + f"; median {found.median():.2f}, least {found.min():.2f}, most {found.max():.2f}"
    )
    if within.mean() >= claim.threshold["cells"]:
        return Finding(ours, True)
    worst = (found - 1).abs().sort_values(ascending=False).index[:4]
    listed = "; ".join(
        f"{control}, TCP {tcp}, {told(cell)}: {found[tcp, cell, control]:.2f}" for tcp, cell, control in worst
    )
    return Finding(ours, False, f"furthest apart at {listed}")


CLAIMS: dict[str, Callable[[Results, Claim], Finding]] = {
    "core-a-few-kernel": few,
    "core-a-many-kernel": many,
    "core-b-kernel": small,
    "core-c-kernel": switch,
    "core-d-kernel": not_mended,
    "cause-b-kernel": losses,
    "linux-a-kernel": linux_large,
    "linux-b-kernel": linux_small,
    "simulator": simulator,
}
