"""Each claim is about the cells of the grid of its name; the last four about drawn scenarios and unlike lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.interval import Interval
from pathcast.lab.parts import cells, judged
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from . import unlike
from .pairs import lacking, pairs

GRIDS = ("single", "shallow", "pair", "multipath", "short")


def flows(results: Results, grid: str) -> Iterator[tuple[tuple[Any, ...], int, list[Mapping[str, Any]]]]:
    """Cell, number of a flow in it, and the cell's samples."""
    for cell, rows in cells(results, grid).items():
        for n in range(len(cell[0].split("+"))):
            yield cell, n, rows


def name(cell: tuple[Any, ...], n: int) -> str:
    """`cubic beside reno, 20 Mbit/s, 50 ms, 4 BDP`."""
    control, rate, rtt, last = cell
    own, *others = (one := control.split("+"))[n : n + 1] + one[:n] + one[n + 1 :]
    beside = f" beside {others[0]}" if others else ""
    return f"{own}{beside}, {rate} Mbit/s, {rtt} ms, {last if isinstance(last, str) else f'{last:g} BDP'}"


def alike(results: Results, claim: Claim) -> Finding:
    found = [(name(cell, n), [row["ratio"][n] for row in rows]) for cell, n, rows in flows(results, claim.id)]
    return judged(found, 1 - claim.threshold, 1 + claim.threshold, "flows")


def near(results: Results, claim: Claim) -> Finding:
    """The share of the drawn scenarios of one transport in which the worlds are alike."""
    multipath, within = claim.threshold["transport"] == "mptcp", claim.threshold["within"]
    found = [one for one in pairs(results) if one.of.multipath == multipath]
    ratios = [one.ratio for one in found]
    share = Interval.share((abs(ratio - 1) <= within for ratio in ratios), ratios)
    verdict = Verdict()
    verdict.missing += lacking(results, multipath)
    told = share.told(100, ".0f", " %")
    verdict.needs(share.at_least(claim.threshold["share"]), f"{told} of {len(found)} scenarios")
    off = sorted((one for one in found if abs(one.ratio - 1) > within), key=lambda one: -abs(np.log(one.ratio)))
    verdict.details += [f"{one.of.kind}, {one.of.control} ({one.number}): {one.ratio:.2f}" for one in off]
    return verdict.finding(f"{told} of {len(found)} scenarios")


def spread(results: Results, claim: Claim) -> Finding:
    """Mean deviation of the logarithm of throughput over repeated transfers, the simulator's over the kernel's."""
    verdict, told = Verdict(), []
    for name, multipath in (("TCP", False), ("Multipath TCP", True)):
        both = [one.spreads for one in pairs(results) if one.of.multipath == multipath]
        ratio = Interval.bootstrap([of for of in both if of is not None], _over)
        told.append(f"{name} {ratio.told(form='.2f')}")
        verdict.missing += lacking(results, multipath)
        verdict.needs(ratio.within(1 / claim.threshold, claim.threshold), told[-1])
    return verdict.finding(", ".join(told))


def _over(spreads: np.ndarray) -> float:
    sim, emu = spreads.mean(axis=0)
    return float(sim / emu)


CLAIMS = {
    **dict.fromkeys(GRIDS, alike),
    "drawn-tcp": near,
    "drawn-mptcp": near,
    "drawn-spread": spread,
    "unlike": unlike.near,
}
