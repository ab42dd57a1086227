"""A row a class of lines: errors, intervals, losses and costs.

Errors and half-widths are shares of the line's mean rate meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from pathcast.lab.experiment import Results, Table

from .claims import absurd, holds

_HEADER = (
    "line",
    "runs",
    "no value",
    "available off, median",
    "bias",
    "inside",
    "half-width",
    "capacity off, median",
    "absurd",
    "loss off, mean [points]",
    "most",
    "s",
    "MB",
)
# a capacity that is so many times off is absurd
_FACTOR = 2.0


def lines(results: Results) -> Table:
    """Those with their load, and those of `topologies/` with their direction."""
    classes: dict[str, list[Mapping[str, Any]]] = {}
    for row in results.rows:
        if row["error"] is None:
            end = row["direction"] if row["grid"] == "shipped" else "loaded" if row["load"] else "idle"
            classes.setdefault(f"{row['line']}, {end}", []).append(row)
    return _HEADER, [_row(name, rows) for name, rows in classes.items()]


def _row(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    good = [row for row in rows if row.get("value_bps") is not None]
    known = [row for row in rows if row.get("capacity_bps") is not None]
    error = [(row["value_bps"] - row["truth_bps"]) / row["rate_mean_bps"] for row in good]
    width = [(row["high_bps"] - row["low_bps"]) / 2 / row["rate_mean_bps"] for row in good]
    capacity = [abs(row["capacity_bps"] / row["rate_mean_bps"] - 1) for row in known]
    loss = [abs(row["loss"] - row["loss_truth"]) * 100 for row in rows if row.get("loss") is not None]
    done = [row for row in rows if row.get("seconds") is not None]
    return (
        name,
        str(len(rows)),
        str(len(rows) - len(good)),
        _share([abs(one) for one in error]),
        _share(error, "+"),
        f"{sum(map(holds, good))}/{len(good)}",
        _share(width),
        _share(capacity),
        str(sum(absurd(row, _FACTOR) for row in known)),
        f"{fmean(loss):.2f}" if loss else "-",
        f"{max(loss):.2f}" if loss else "-",
        f"{median(row['seconds'] for row in done):.1f}" if done else "-",
        f"{median(row['bytes'] for row in done) / 1e6:.1f}" if done else "-",
    )


def _share(values: Sequence[float], sign: str = "") -> str:
    return f"{median(values) * 100:{sign}.1f} %" if values else "-"


TABLES: dict[str, Callable[[Results], Table]] = {"lines": lines}
FIGURES: dict[str, Callable[[Results], Any]] = {}
