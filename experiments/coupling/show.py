"""A row a cell."""

from __future__ import annotations

from statistics import median

from pathcast.lab.experiment import Results, Table
from pathcast.lab.interval import same
from pathcast.lab.parts import cells

from .claims import COLUMNS

TOLD = {
    "shared": "shared bottleneck: throughput over that of Reno",
    "disjoint": "disjoint paths: the smaller path's part",
    "transition": "smooth transition: the first subflow's RTT at its begin over the threshold",
}


def table(results: Results) -> Table:
    """Medians, the least and the greatest of the runs."""
    header = ("network", "controller", "subflows", "loss", "runs", "median", "least to most")
    found = []
    for grid, told in TOLD.items():
        for (control, *rest), rows in cells(results, grid).items():
            values = [row[COLUMNS[grid]] for row in rows if row[COLUMNS[grid]] is not None]
            if not values:
                continue
            subflows = str(rest[0]) if grid == "transition" else "2"
            loss = f"{rest[0]:.1%}" if grid == "shared" else "-"
            alike = len(values) > 1 and same(values)
            spread = "the same in all" if alike else f"{min(values):.2f} to {max(values):.2f}"
            found.append((told, control, subflows, loss, str(len(values)), f"{median(values):.2f}", spread))
    return header, found


TABLES = {"cells": table}
FIGURES = {}
