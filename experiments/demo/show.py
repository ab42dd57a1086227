"""Errors pooled and by seed, and how near the simulated transfers are to the emulated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import LABELS
from pathcast.units import bits

from .claims import NAMES, counted, demos, predicted

SHARES = (0, 10, 50, 90, 100)


def pooled(grid: str) -> Callable[[Results], Table]:
    def table(results: Results) -> Table:
        """Over the unseen rounds of all seeds; within 10 % of the truth, and relative prediction errors (RPE)."""
        from pathcast.predict import summarise

        header = ("predictor", "RMSE", "within 10 %", "median abs. RPE", "n")
        try:
            unseen = [one for one in counted(results, grid) if one["unseen"]]
        except Undecided:
            return header, []
        actual = [one["actual_bps"] for one in unseen]
        rows = []
        for name in NAMES:
            values = [predicted(one, name) for one in unseen]
            if unseen and all(values):
                e = summarise(values, actual)
                within, median = f"{100 * e['fraction_within_10pct']:.0f} %", f"{100 * e['median_abs_rpe']:.1f} %"
                rows.append((LABELS[name], bits(e["rmse_bps"]), within, median, str(e["n"])))
        return header, rows

    return table


def seeds(results: Results) -> Table:
    """A row a demo; regret: of the last round's choice of paths, in % of the best."""
    header = ("seed", "rates", "multi-probe", "single-probe", "CDF", "left out", "repeated", "regret", "time")
    rows = []
    for row in results.rows:
        if row["error"] is None:
            errors = (bits(row["errors"][name]["rmse_bps"]) for name in NAMES[:3])
            left, again = (str(row["counted"][name]) for name in ("left_out", "repeated"))
            regret = f"{100 * row['choice']['regret']:.1f} %"
            rates = "drawn" if row["vary_rate"] else "100 Mbit/s"
            rows.append((str(row["seed"]), rates, *errors, left, again, regret, f"{row['elapsed_s']:.0f} s"))
    return header, rows


def beside(results: Results) -> Table:
    """Simulated over emulated throughput of the same transfers."""
    header = ("transfer", "n", "least", "10 %", "median", "90 %", "most")
    found: dict[str, list[float]] = {}
    try:
        for demo in demos(results):
            for one in demo["beside"] or ():
                found.setdefault(one["kind"], []).append(one["ratio"])
    except Undecided:
        return header, []
    return header, [
        (kind, str(len(values)), *(f"{x:.2f}" for x in np.percentile(values, SHARES))) for kind, values in found.items()
    ]


TABLES: dict[str, Callable[[Results], Table]] = {
    "errors": pooled("rounds"),
    "errors-rates": pooled("rates"),
    "seeds": seeds,
    "beside": beside,
}
FIGURES: dict[str, Callable[[Results], Any]] = {}
ONLY = {"beside": "emu"}
