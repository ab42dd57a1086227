"""What claims, tables and figures ask of the runs: values by seed, and their means with 95 % intervals (Student's t).

Runs with the same seed saw the same pages at the same times, so that controllers are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Results, Undecided

NONE = "none"
# of a phase with a constant number of connections so much is left out: joins are up to 2 s late, and slow start
SETTLE_S = 20
BIN_S = 5
# loads [%] of E1: all of them, of which one is of no pages, and those with pages
EVERY, WITH_PAGES = range(0, 100), range(1, 100)


@dataclass(frozen=True)
class Cell:
    """A network of the plan, one or five background flows, and the seeds and loads that count."""

    network: str
    seeds: tuple[int, ...]
    connections: int = 1
    loads: Container[int] = EVERY


def link_bps(results: Results, network: str) -> float:
    """The bottleneck's rate [bit/s]."""
    return results.plan.setup["network"][network]["rate_mbit"] * 1e6


def _runs(results: Results) -> pd.DataFrame:
    frame = results.frame
    if frame.empty:
        raise Undecided("no sample has a result")
    if "delta" in frame:
        frame = frame[frame["delta"].isna()]
    return frame.set_index(["network", "connections", "control", "load", "seed"]).sort_index()


def runs(results: Results, cell: Cell, control: str) -> pd.DataFrame:
    """The runs of a controller by load and seed, all columns; raises Undecided if there are none."""
    try:
        found = results.once(_runs).loc[(cell.network, cell.connections, control)]
    except KeyError:
        raise Undecided(f"no results of {control} on network {cell.network}") from None
    found = found[[load in cell.loads and seed in cell.seeds for load, seed in found.index]]
    if found.empty:
        raise Undecided(f"no results of {control} on network {cell.network} with these seeds and loads")
    return found


def growth_by_load(results: Results, cell: Cell, control: str) -> pd.Series:
    """By load and seed: by how much the mean page time grows over no background; NaN at a load of no pages."""
    with_, without = (runs(results, cell, one)["page_s"].astype(float) for one in (control, NONE))
    return with_ / without - 1


def available(results: Results, cell: Cell) -> pd.Series:
    """By load and seed [bit/s]: the link's rate less what the foreground carried in the run without background."""
    return link_bps(results, cell.network) - runs(results, cell, NONE)["fg_bps"]


def apart_by_load(results: Results, cell: Cell, control: str) -> pd.Series:
    """By load and seed: |background throughput - available bandwidth| / link rate."""
    beside = runs(results, cell, control)["bg_bps"] - available(results, cell)
    return beside.abs() / link_bps(results, cell.network)


def throughput(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed [bit/s]: the background's, mean over loads."""
    return over_loads(runs(results, cell, control)["bg_bps"])


def growth(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed: growth of the mean page time, mean over loads."""
    return over_loads(growth_by_load(results, cell, control))


def apart(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed: distance from the available bandwidth, mean over loads."""
    return over_loads(apart_by_load(results, cell, control))


def over_loads(values: pd.Series) -> pd.Series:
    """The mean over loads of what is by load and seed: by seed, NaN where a load is missing that other seeds have."""
    table = values.unstack("load").dropna(axis=1, how="all")
    if not table.notna().all(axis=1).any():
        raise Undecided("no seed has results of every load")
    return table.mean(axis=1, skipna=False)


# --- several flows


@dataclass(frozen=True)
class Phase:
    """Seconds `begin` to `end` of a run in which these connections are there, from 0."""

    begin: int
    end: int
    connections: tuple[int, ...]


def phases(results: Results, cell: Cell) -> list[Phase]:
    """Of a run with several flows: they join one after another, and leave in the same order."""
    step, n = results.plan.setup["network"][cell.network]["several"]["step_s"], cell.connections
    there = [tuple(range(max(0, k - n + 1), min(k, n - 1) + 1)) for k in range(2 * n - 1)]
    return [Phase(k * step + SETTLE_S, (k + 1) * step, one) for k, one in enumerate(there)]


def rates(row: Any) -> np.ndarray:
    """Throughput of each connection by second [kbit/s]."""
    return np.array([np.asarray(one, dtype=float) for one in row["bg_kbps"]])


def _each(results: Results, cell: Cell, control: str) -> Iterable[tuple[Any, Any, Any]]:
    """Seed, run, and the run without background of that seed."""
    found, without = (runs(results, cell, one) for one in (control, NONE))
    for key, row in found.iterrows():
        if key in without.index:
            yield key[1], row, without.loc[key]


def share(results: Results, cell: Cell, control: str, n: int) -> pd.Series:
    """By seed: of the bandwidth available while `n` connections are there, what they have together."""
    link = link_bps(results, cell.network) / 1e3
    values = {}
    for seed, row, without in _each(results, cell, control):
        own, fg = rates(row), np.asarray(without["carried_kbps"], dtype=float)
        wanted = [phase for phase in phases(results, cell) if len(phase.connections) == n]
        used = sum(own[:, p.begin : p.end].sum() for p in wanted)
        values[seed] = used / sum((link - fg[p.begin : p.end]).sum() for p in wanted)
    return pd.Series(values)


def _several(results: Results, cell: Cell, control: str, value: Any) -> pd.Series:
    """By seed: mean of `value(rates of the connections, by second)` over phases of two connections or more; NaN where
    one has none."""
    wanted = [phase for phase in phases(results, cell) if len(phase.connections) > 1]
    values = {}
    for seed, row, _ in _each(results, cell, control):
        own = rates(row)
        values[seed] = float(np.mean([value(own[list(p.connections), p.begin : p.end]) for p in wanted]))
    return pd.Series(values)


def fluctuation(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed: coefficient of variation of a connection's throughput, bins of 5 s; mean over connections and phases."""
    return _several(results, cell, control, lambda own: np.mean(_variation(own)))


def _variation(own: np.ndarray) -> np.ndarray:
    """Of each connection; NaN of one that has nothing."""
    n = own.shape[1] // BIN_S
    bins = own[:, : n * BIN_S].reshape(len(own), n, BIN_S).mean(axis=2)
    mean = bins.mean(axis=1)
    return np.where(mean > 0, bins.std(axis=1, ddof=1) / np.where(mean > 0, mean, 1), np.nan)


def fairness(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed: Jain's index of the connections' throughputs, mean over phases."""
    return _several(results, cell, control, lambda own: jain(own.mean(axis=1)))


def jain(x: np.ndarray) -> float:
    """(sum x)^2 / (n sum x^2): 1 where all are equal, 1/n where one has all; of nothing, nan."""
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if x.any() else float("nan")


def start(results: Results, cell: Cell, control: str) -> pd.Series:
    """By seed: a joining connection's throughput in its first 20 s over the mean of those that were there; mean over
    joins."""
    step = results.plan.setup["network"][cell.network]["several"]["step_s"]
    values = {}
    for seed, row, _ in _each(results, cell, control):
        own, found = rates(row), []
        for n in range(1, cell.connections):
            begin = n * step + int(np.argmax(own[n, n * step :] > 0))
            seen = own[: n + 1, begin : begin + 20].mean(axis=1)
            found.append(seen[n] / seen[:n].mean())
        values[seed] = float(np.mean(found))
    return pd.Series(values)


def losses(results: Results, cell: Cell, control: str) -> pd.DataFrame:
    """By seed: segments of the background lost in the 5 s `before` and `after` a join, means over joins; and the share
    of joins `with` such a loss."""
    found = runs(results, cell, control)
    before, after = (
        np.array([np.asarray(one, dtype=float) for one in found[f"drops_{when}"]]) for when in ("before", "after")
    )
    seeds = found.index.get_level_values("seed")
    columns = {"before": before.mean(axis=1), "after": after.mean(axis=1), "with": (after > 0).mean(axis=1)}
    return pd.DataFrame(columns, index=seeds)
