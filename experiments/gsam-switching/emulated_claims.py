"""Findings a to d by the real kernel, and the simulator beside it. plan.toml states each claim (`…-kernel`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from pathcast.lab.experiment import Finding, Results, Undecided
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .cells import FEW, MANY, SUBFLOWS, Cell, cells, told
from .losses import lossy

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


def difference(results: Results, tcp: str, pair: Pair, seeds: Iterable[int], column: str = "completion_s") -> Interval:
    """How much longer the first controller takes than the second [s], in pairs of the same seed."""
    cell, slower, faster = pair
    one, other = (of(results, tcp, cell, control, seeds)[column] for control in (slower, faster))
    return Interval.mean(one - other)


def _pairs(sizes: Iterable[str], subflows: Iterable[int], slower: str, faster: str) -> list[Pair]:
    return [(cell, slower, faster) for cell in cells(sizes, subflows)]


def _judged(results: Results, claim: Claim, tcp: str, pairs: list[Pair], why: str) -> Finding:
    """Whether the first controller is the slower one in every cell."""
    verdict = Verdict()
    ours, others = _faster(verdict, results, claim, tcp, pairs)
    if others:
        verdict.details.append(f"in the other cells {'; '.join(_lost(results, claim, tcp, others))}")
    return verdict.finding(ours, why)


def _faster(verdict: Verdict, results: Results, claim: Claim, tcp: str, pairs: list[Pair]) -> tuple[str, list[Pair]]:
    """Asks that of a verdict; returns in how many cells it is so, and those in which it is not."""
    so, others = [], []
    for pair in pairs:
        found = difference(results, tcp, pair, claim.seeds)
        if verdict.needs(found.above(claim.threshold["least_s"]), f"{told(pair[0])}: {found.told(unit=' s')}"):
            so.append(found.value / of(results, tcp, pair[0], pair[2], claim.seeds)["completion_s"].mean())
        else:
            others.append(pair)
    by = f", by {100 * min(so):.0f} to {100 * max(so):.0f} %" if so else ""
    return f"so in {len(so)} of {len(pairs)} cells{by}", others


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
    verdict, equal, most = Verdict(), claim.threshold["equal"], 0.0
    better, _ = _faster(verdict, results, claim, "paper", _pairs(SIZES, FEW, "gsam", "subflow_switch"))
    for control, numbers in (("lia", FEW), ("gsam", MANY)):
        for cell in cells(SIZES, numbers):
            other = of(results, "paper", cell, control, claim.seeds)["completion_s"].mean()
            found = difference(results, "paper", (cell, "subflow_switch", control), claim.seeds).times(1 / other)
            most = max(most, abs(found.value))
            verdict.needs(found.within(-equal, equal), f"{told(cell)}: {found.percent()} from {control}")
    return verdict.finding(f"n <= 2, faster than GSAM: {better}; else equal to within {100 * most:.1f} %")


def not_mended(results: Results, claim: Claim) -> Finding:
    """Finding d."""
    why = "What the switch costs is less than what the runs differ by."
    return _judged(results, claim, "paper", _pairs(SMALL, MANY, "subflow_switch", "lia"), why)


def losses(results: Results, claim: Claim) -> Finding:
    """What the authors suppose to be the cause of b."""
    return lossy(claim, {cell: of(results, "paper", cell, "lia", claim.seeds) for cell in _all()})


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


def ratio(results: Results, tcp: str, cell: Cell, control: str, seeds: Iterable[int]) -> Interval:
    """Mean completion time of the simulator over that of the kernel."""
    frame = of(results, tcp, cell, control, seeds)
    kernel, value = frame["completion_s"].mean(), frame["simulated_completion_s"].mean() / frame["completion_s"].mean()
    # to the first order a ratio of means errs by the mean of this over the kernel's
    errors = Interval.mean(frame["simulated_completion_s"] - value * frame["completion_s"]).times(1 / kernel)
    return Interval(float(value), float(value + errors.low), float(value + errors.high), errors.n, errors.but)


def simulator(results: Results, claim: Claim) -> Finding:
    """The simulator beside the kernel."""
    controls, most, verdict = results.plan.setup["emulated"]["controls"], claim.threshold["within"], Verdict()
    every = [(tcp, cell, control) for tcp in SETTINGS for cell in _all() for control in controls]
    found = {one: ratio(results, *one, claim.seeds) for one in every}
    known = [one.within(1 - most, 1 + most) for one in found.values()]
    means = sum(abs(one.value - 1) <= most for one in found.values())
    share = Interval(
        means / len(every), known.count(True) / len(every), 1 - known.count(False) / len(every), len(every)
    )
    verdict.needs(share.at_least(claim.threshold["cells"]), f"{share.percent(sign=False)} of the cells")
    worst = sorted(every, key=lambda one: -abs(found[one].value - 1))[:8]
    verdict.details = [
        f"{control}, TCP {tcp}, {told(cell)}: {found[tcp, cell, control]}" for tcp, cell, control in worst
    ]
    values = [one.value for one in found.values()]
    ours = f"{means} of {len(every)} cells within {100 * most:.0f} %, for certain {known.count(True)}; "
    return verdict.finding(f"{ours}{min(values):.2f} to {max(values):.2f} times")


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
