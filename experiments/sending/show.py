"""Shares of cells by kind, the slowest of them, and both rules beside each other."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pathcast.lab.experiment import Results, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

# columns by whose value cells are grouped, and where the groups end
KINDS = {
    "times": (1, 5, 15, 50.1),
    "bdps": (0, 10, 30, 100, 1e9),
    "loss": (0, 1e-9, 1e-3, 1),
    "queue_bdp": (0.25, 0.5, 1, 4.1),
}


def _two(results: Results) -> DataFrame:
    """The cells of two lines; where no sample finished there are no columns either."""
    frame = results.frame
    return frame if frame.empty else frame[frame["grid"] == "cells"]


def kinds(results: Results) -> Table:
    """Cells whose median over both is below 0.95 of the better path alone, by pathcast's rule and by the kernel's."""
    header = ("cells with", "how many", "slower", "slower by the kernel alone", "median ratio", "of the sum")
    rows, found = _two(results), []
    if rows.empty:
        return header, found
    groups = [(control, of) for control, of in rows.groupby("control")]
    for column, ends in KINDS.items():
        for low, high in pairwise(ends):
            groups.append((f"{column} {low:g} to {high:g}", rows[(rows[column] >= low) & (rows[column] < high)]))
    for name, of in groups:
        slower, alone = sum(of["ratio"] < 0.95), sum(of["plain_ratio"] < 0.95)
        middle = [f"{of[column].median():.2f}" if len(of) else "-" for column in ("ratio", "part")]
        found.append((str(name), str(len(of)), str(slower), str(alone), *middle))
    return header, found


def slowest(results: Results) -> Table:
    """The ten cells with the least ratio."""
    header = ("case", "controller", "MB", "times", "BDPs", "loss", "queue", "ratio", "bound", "kernel alone")
    rows, found = _two(results), []
    if rows.empty:
        return header, found
    for _, row in rows.sort_values("ratio").head(10).iterrows():
        numbers = (f"{row['times']:.1f}", f"{row['bdps']:.0f}", f"{row['loss']:.5f}", f"{row['queue_bdp']:.2f}")
        ratios = (f"{row[column]:.2f}" for column in ("ratio", "bound", "plain_ratio"))
        found.append((str(row["case"]), row["control"], f"{row['bytes'] / 1e6:.1f}", *numbers, *ratios))
    return header, found


def ratios(results: Results) -> Figure:
    """Both over the better path alone, in all cells from the least on: by the rule and by the kernel's scheduler."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5))
    for column, name in (("plain_ratio", "the kernel's scheduler alone"), ("ratio", "pathcast's rule")):
        values = sorted(_two(results).get(column, ()))
        axes.plot([(n + 1) / len(values) for n in range(len(values))], values, label=name)
    axes.axhline(1, color="grey", linewidth=0.5)
    axes.set(xlabel="share of cells", ylabel="both paths over the better alone", ylim=(0, 2.1), xlim=(0, 1))
    axes.legend()
    return figure


TABLES = {"kinds": kinds, "slowest": slowest}
FIGURES = {"ratios": ratios}
