"""A row a flow of a cell, and the spread of all ratios by grid."""

from __future__ import annotations

from statistics import median

from pathcast.lab.experiment import Results, Table

from .claims import GRIDS, flows, name


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


TABLES = {"summary": summary, "cells": table}
FIGURES = {}
