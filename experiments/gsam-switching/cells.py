"""Cells of the grid, and pairs of controllers in them: means over seeds with their intervals."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pandas as pd

from pathcast.lab.experiment import Results, Undecided
from pathcast.lab.interval import Interval

SIZES = ("50KB", "250KB", "500KB", "750KB", "1MB")
SMALL, LARGE = SIZES[:2], SIZES[2:]
SUBFLOWS = tuple(range(1, 9))
FEW, MANY = SUBFLOWS[:2], SUBFLOWS[2:]
# tcp, RTT [ms]
Network = tuple[str, int]
PAPER: Network = ("paper", 150)
Cell = tuple[str, int]


def times(results: Results) -> pd.Series:
    """Completion times [s] of the grids without parameters, by network, size, subflows, control, seed."""
    return results.once(_times)


def _times(results: Results) -> pd.Series:
    frame = results.frame
    if frame.empty:
        raise Undecided("no sample has a result")
    frame = frame[frame["grid"].isin(("main", "together", "factors", "calibration-lia", "open"))]
    keys = ["tcp", "rtt_ms", "bytes", "subflows", "control", "seed"]
    return frame.set_index(keys)["completion_s"].sort_index()


def completions(results: Results, network: Network, cell: Cell, control: str, seeds: Iterable[int]) -> pd.Series:
    """Completion times [s] by seed; raises Undecided if there are none."""
    try:
        found = times(results).loc[(*network, *cell, control)]
    except KeyError:
        size, n = cell
        raise Undecided(f"no results of {control} with TCP {network[0]}, {size}, {n} subflows") from None
    return found[found.index.isin(tuple(seeds))]


def difference(
    results: Results, network: Network, cell: Cell, slower: str, faster: str, seeds: Iterable[int]
) -> Interval:
    """How much longer `slower` takes than `faster` [s], in pairs of the same seed."""
    one, other = (completions(results, network, cell, control, seeds) for control in (slower, faster))
    return Interval.mean(one - other)


def cells(sizes: Iterable[str], subflows: Iterable[int]) -> list[Cell]:
    """All of them."""
    return list(product(sizes, subflows))


def paper_says(cell: Cell) -> int:
    """Findings a and b: 1 where MPTCP is faster than GSAM, -1 where GSAM is."""
    size, n = cell
    return 1 if size in SMALL or n in FEW else -1


def told(cell: Cell) -> str:
    """`250 KB, n = 3`."""
    size, n = cell
    return f"{size.replace('KB', ' KB').replace('MB', ' MB')}, n = {n}"


def parameters(row: Any) -> tuple[int, ...]:
    """The reconstruction's four parameters of a row or a table."""
    return tuple(int(row[key]) for key in ("theta_shift", "theta_floor_us", "samples", "st_div"))
