"""Errors, intervals and costs by what the paths are like, and source by source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import BLUE, VERMILION

from .claims import CLASSES, runs
from .samples import DIRECTIONS

OFF = 0.05
# of a class of rates: condition on a run
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "all judged": lambda f: f["judged"],
    "cross to 5 % of the rate": lambda f: f["judged"] & (f["load"] < 0.05),
    "5 to 20 %": lambda f: f["judged"] & f["load"].between(0.05, 0.2, "left"),
    "20 to 90 %": lambda f: f["judged"] & (f["load"] >= 0.2),
    "one-way delay below 100 ms": lambda f: f["judged"] & (f["one_way_s"] < 0.1),
    "100 ms and more": lambda f: f["judged"] & (f["one_way_s"] >= 0.1),
    "half a": lambda f: f["judged"] & (f["half"] == "a"),
    "half b": lambda f: f["judged"] & (f["half"] == "b"),
    "90 % and more, not judged": lambda f: ~f["judged"],
}
_COLUMNS = ("paths", "no value", "within 5 %", "error p50", "p90", "bias", "inside", "half-width", "time", "kB")


def _frames(results: Results) -> dict[str, pd.DataFrame]:
    found = {}
    for directions in DIRECTIONS:
        try:
            found[directions] = runs(results, directions).astype({"judged": bool})
        except Undecided:
            continue
    return found


def classes(results: Results) -> Table:
    """Of each source the share or the median of its runs; of the sources the mean of shares, the median else."""
    rows = []
    for directions, frame in _frames(results).items():
        for rate, of_rate in CLASSES.items():
            for name, condition in KINDS.items():
                here = frame[of_rate(frame) & condition(frame)]
                if len(here):
                    rows.append((directions, rate, name, *_figures(here)))
    return ("measured", "rate", "paths that have", "sources", *_COLUMNS), rows


def sources(results: Results) -> Table:
    """Source by source."""
    rows = []
    for directions, frame in _frames(results).items():
        for (source, judged), here in frame.groupby(["source", "judged"]):
            about = (f"{here['rate_bps'].median() / 1e6:.3f}", f"{here['load'].median():.2f}", f"{bool(judged)}")
            rows.append((directions, source, *about, *_figures(here)[1:]))
    return ("measured", "source", "rate [Mbit/s]", "load", "judged", *_COLUMNS), rows


def _figures(here: pd.DataFrame) -> tuple[str, ...]:
    of = here.groupby("source")
    signed = (here["value_bps"].astype(float) / here["truth_bps"] - 1).groupby(here["source"])
    width = (here["half_width"] / here["truth_bps"]).groupby(here["source"])

    def mean(so: pd.Series) -> str:
        return f"{so.groupby(here['source']).mean().mean() * 100:.0f} %"

    def percent(values: pd.Series, sign: str = "") -> str:
        middle = float(np.median(values))
        return f"{middle * 100:{sign}.1f} %" if np.isfinite(middle) else "-"

    return (
        str(of.ngroups),
        str(here["profile"].nunique()),
        str(int(np.isinf(here["off"]).sum())),
        mean(here["off"] <= OFF),
        percent(of["off"].median()),
        percent(of["off"].quantile(0.9, interpolation="nearest")),
        percent(signed.median(), "+"),
        mean(here["inside"]),
        percent(width.median()),
        f"{of['seconds'].median().median():.1f} s",
        f"{of['bytes'].median().median() / 1e3:,.0f}",
    )


def errors(results: Results) -> Any:
    """How errors are distributed over judged runs, and what a run costs, each source a point."""
    import matplotlib.pyplot as plt

    plot, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    frame = next(iter(_frames(results).values()), None)
    for (name, condition), colour in zip(CLASSES.items(), (VERMILION, BLUE), strict=True):
        if frame is None or (here := frame[condition(frame) & frame["judged"]]).empty:
            continue
        size = np.sort(here["off"] * 100)
        left.plot(size, np.arange(1, len(size) + 1) / len(size), label=f"{name} ({len(size)} runs)", color=colour)
        middle = here.groupby("source")[["seconds", "bytes"]].median()
        right.scatter(middle["seconds"], middle["bytes"] / 1e6, label=name, color=colour, s=14)
    left.axvline(OFF * 100, color="grey", linewidth=0.8)
    left.set(xscale="log", xlim=(0.01, 100), ylim=(0, 1), xlabel="|error| [% of the truth]", ylabel="share of runs")
    right.set(xlabel="time of both directions [s]", ylabel="IP bytes of both [MB]", xlim=(0, None), ylim=(0, None))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    return plot


TABLES: dict[str, Callable[[Results], Table]] = {"classes": classes, "sources": sources}
FIGURES: dict[str, Callable[[Results], Any]] = {"errors": errors}
