"""Each claim is about the cells of the grid of its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.parts import cells, judged
from pathcast.lab.plan import Claim

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


CLAIMS = dict.fromkeys(GRIDS, alike)
