"""Every forecaster's errors, intervals and choices, and what the twin's error is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import BLUE, VERMILION

from .claims import FORECASTERS, by_source, chosen, forecasts

OFF = 0.1
NAMES = {
    "twin": "the twin",
    "sum": "sum of what is available",
    "constant": "a constant",
    "floor": "the floor",
    "all": "always both",
}
_COLUMNS = ("sources", "error p50", "p90", "within 10 %", "bias", "inside", "width")


def _frame(results: Results, **of: Any) -> pd.DataFrame:
    try:
        frame = forecasts(results)
    except Undecided:
        return pd.DataFrame(columns=["grid", "effort", "told", "paths", "forecaster"])
    for key, value in of.items():
        frame = frame[frame[key] == value]
    return frame


def errors(results: Results) -> Table:
    """Medians and shares of each source's pairs; of the sources the median, of shares the mean."""
    rows = []
    frame = _frame(results, grid="judged", told="nothing")
    for (effort, paths), here in frame.groupby(["effort", "paths"]):
        for forecaster in FORECASTERS:
            if len(one := here[here["forecaster"] == forecaster]):
                rows.append((effort, _paths(paths), NAMES[forecaster], *_figures(one)))
    return ("measured", "paths", "forecast", *_COLUMNS), rows


def made_of(results: Results) -> Table:
    """The tuning half, by what the twin was told beside its measurement."""
    rows = []
    frame = _frame(results, grid="tuning", forecaster="twin")
    for (effort, paths, told), here in frame.groupby(["effort", "paths", "told"], sort=False):
        rows.append((effort, _paths(paths), told, *_figures(here)))
    return ("measured", "paths", "told", *_COLUMNS), rows


def regrets(results: Results) -> Table:
    """Of each source's pairs in the mean, of the sources the mean; the largest of ten choices."""
    rows = []
    frame = _frame(results, grid="judged", told="nothing")
    for effort, here in frame.groupby("effort"):
        for forecaster in ("twin", "sum", "floor", "all"):
            of = chosen(here, forecaster)
            mean = by_source(of, "regret", np.mean).mean()
            rows.append((effort, NAMES[forecaster], f"{mean * 100:.2f} %", f"{of['regret'].quantile(0.9) * 100:.1f} %"))
    return ("measured", "chosen by", "regret", "p90"), rows


def _paths(number: int) -> str:
    return "one, cubic" if number == 1 else "two, LIA"


def _figures(here: pd.DataFrame) -> tuple[str, ...]:
    signed = here["value_bps"].astype(float) / here["truth_bps"] - 1
    here = here.assign(signed=signed, so=(here["off"] <= OFF).astype(float), hit=here["inside"].astype(float))
    off = by_source(here, "off", np.median)
    return (
        str(len(off)),
        _percent(off.median()),
        _percent(float(np.quantile(here["off"], 0.9, method="nearest"))),
        f"{by_source(here, 'so', np.mean).mean() * 100:.0f} %",
        _percent(by_source(here, "signed", np.nanmedian).median(), "+"),
        f"{by_source(here, 'hit', np.mean).mean() * 100:.0f} %" if here["width"].notna().any() else "-",
        _percent(here["width"].median()),
    )


def _percent(value: float, sign: str = "") -> str:
    return f"{value * 100:{sign}.1f} %" if np.isfinite(value) else "-"


def distribution(results: Results) -> Any:
    """Two paths, thorough: how errors are distributed, beside the floor's; forecast against truth."""
    import matplotlib.pyplot as plt

    plot, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    frame = _frame(results, grid="judged", told="nothing", paths=2)
    efforts = [one for one in ("thorough", "usual", "light") if len(frame) and (frame["effort"] == one).any()]
    for forecaster, colour in (("sum", "grey"), ("twin", VERMILION), ("floor", BLUE)):
        here = frame[frame["forecaster"] == forecaster]
        here = here[here["effort"] == efforts[0]] if efforts else here
        if len(here):
            size = np.sort(here["off"] * 100)
            left.plot(size, np.arange(1, len(size) + 1) / len(size), label=NAMES[forecaster], color=colour)
        if len(here) and forecaster != "sum":
            right.scatter(
                here["truth_bps"] / 1e6,
                here["value_bps"].astype(float) / 1e6,
                s=10,
                color=colour,
                label=NAMES[forecaster],
            )
    left.axvline(OFF * 100, color="grey", linewidth=0.8)
    left.set(xscale="log", xlim=(0.1, 200), ylim=(0, 1), xlabel="|error| [% of the truth]", ylabel="share of pairs")
    right.set(xscale="log", yscale="log", xlabel="what came [Mbit/s]", ylabel="forecast [Mbit/s]")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    return plot


TABLES: dict[str, Callable[[Results], Table]] = {"errors": errors, "made-of": made_of, "regrets": regrets}
FIGURES: dict[str, Callable[[Results], Any]] = {"distribution": distribution}
