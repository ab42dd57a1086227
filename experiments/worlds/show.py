"""A row a flow of a cell, and the spread of all ratios by grid; the drawn scenarios by class, one by one, and what the
kernel gave, which world `sim` compares itself with."""

from __future__ import annotations

from math import log
from statistics import mean, median

from pathcast.lab.experiment import Results, Table

from . import unlike
from .claims import GRIDS, flows, name
from .drawn import CLASSES
from .pairs import COLUMNS, pairs


def table(results: Results) -> Table:
    """Medians over the runs; goodput in Mbit/s."""
    header = ("what", "flow", "runs", "sim", "kernel", "least to most", "sent again", "sim/kernel")
    found = []
    for grid in GRIDS:
        for cell, n, rows in flows(results, grid):
            if not rows:
                continue
            sim, kernel = ([row[f"{world}_bps"][n] / 1e6 for row in rows] for world in ("sim", "emu"))
            again = (f"{median(row[f'{world}_again'][n] for row in rows):.2%}" for world in ("sim", "emu"))
            spread, ratio = f"{min(kernel):.2f} to {max(kernel):.2f}", median(sim) / median(kernel)
            rates = (f"{median(sim):.2f}", f"{median(kernel):.2f}", spread)
            found.append((grid, name(cell, n), str(len(rows)), *rates, ", ".join(again), f"{ratio:.2f}"))
    return header, found


def summary(results: Results) -> Table:
    """How far cells are apart."""
    header, rows = ("what", "flows", "least", "median", "most"), table(results)[1]
    found = []
    for grid in GRIDS:
        ratios = [float(row[-1]) for row in rows if row[0] == grid]
        if ratios:
            numbers = (min(ratios), median(ratios), max(ratios))
            found.append((grid, str(len(ratios)), *(f"{number:.2f}" for number in numbers)))
    return header, found


def gaps(results: Results) -> Table:
    """The drawn scenarios by class, the widest gaps first: median throughput in the simulator over that in the kernel;
    spread: of repeated transfers, mean standard deviation of the logarithm."""
    header = ("class", "scenarios", "near", "sim/kernel", "least to most", "spread, sim", "kernel", "farthest")
    found = []
    for kind in dict.fromkeys(CLASSES):
        of = [one for one in pairs(results) if one.of.kind == kind]
        if not of:
            continue
        ratios, far = [one.ratio for one in of], max(of, key=lambda one: abs(log(one.ratio)))
        near = sum(
            abs(ratio - 1) <= (0.10 if one.of.multipath else 0.05) for one, ratio in zip(of, ratios, strict=True)
        )
        spreads = [one.spreads for one in of if one.spreads is not None]
        both = (f"{mean(side):.1%}" for side in zip(*spreads, strict=True)) if spreads else ("-", "-")
        apart = mean(abs(log(ratio)) for ratio in ratios)
        least_most = f"{min(ratios):.2f} to {max(ratios):.2f}"
        last = f"{far.of.control} ({far.number})"
        found.append((apart, (kind, str(len(of)), str(near), f"{median(ratios):.2f}", least_most, *both, last)))
    return header, [row for _, row in sorted(found, key=lambda one: -one[0])]


def drawn(results: Results) -> Table:
    """Each drawn scenario: throughput in Mbit/s, medians of its transfers; the share that was sent again."""
    header = ("number", "class", "network", "control", "bytes", "runs", "sim", "kernel", "sim/kernel", "sent again")
    found = []
    for one in pairs(results):
        sim, emu = (f"{bps / 1e6:.2f}" for bps in (one.simulated, median(one.emu_bps)))
        again = ", ".join(f"{share:.2%}" for share in one.again)
        about = (
            str(one.number),
            one.of.kind,
            one.of.topology,
            one.of.control,
            str(one.of.bytes),
            str(len(one.emu_bps)),
        )
        found.append((*about, sim, emu, f"{one.ratio:.3f}", again))
    return header, found


def kernel(results: Results) -> Table:
    """What the kernel gave."""
    found = []
    for row in results.rows:
        if row["grid"] == "drawn" and row["error"] is None and row.get("emu_bps"):
            values = (f"{row[f'emu_{key}'][0]:.6g}" for key in ("bps", "s", "again"))
            by_path = "+".join(str(bytes) for bytes in row["emu_by_path"])
            found.append((str(row["case"]), str(row["seed"]), row["digest"], *values, by_path, f"{row['late_s']:.2g}"))
    return COLUMNS, found


TABLES = {"summary": summary, "cells": table, "gaps": gaps, "drawn": drawn, "kernel": kernel, "unlike": unlike.table}
FIGURES = {}
ONLY = {"summary": "emu", "cells": "emu", "kernel": "emu", "unlike": "sim"}
