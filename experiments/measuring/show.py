"""The bars row by row, and errors and intervals by what random paths are like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import BLUE, GREEN, PURPLE, SKY, VERMILION

from .cases import KINDS
from .claims import cases, paths
from .rows import COLUMNS, Row, rows, told

# class of paths: condition on its column
CLASSES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "all": lambda f: f["rate_bps"] > 0,
    **{kind: lambda f, kind=kind: f["kind"] == kind for kind in KINDS},
    "100 kbit/s to 1 Mbit/s": lambda f: f["rate_bps"] < 1e6,
    "1 to 10 Mbit/s": lambda f: f["rate_bps"].between(1e6, 1e7, "left"),
    "10 to 100 Mbit/s": lambda f: f["rate_bps"].between(1e7, 1e8, "left"),
    "100 Mbit/s to 1 Gbit/s": lambda f: f["rate_bps"] >= 1e8,
    "RTT to 10 ms": lambda f: f["rtt_s"] < 0.01,
    "RTT of 10 to 100 ms": lambda f: f["rtt_s"].between(0.01, 0.1, "left"),
    "RTT of 100 to 600 ms": lambda f: f["rtt_s"] >= 0.1,
    "queue to 30 packets": lambda f: f["queue"] < 30,
    "queue of 30 to 1000": lambda f: f["queue"] >= 30,
    "no loss": lambda f: f["loss_rate"] == 0,
    "loss of 0.01 to 5 %": lambda f: f["loss_rate"] > 0,
    "one bottleneck": lambda f: f["second"].isna(),
    "two": lambda f: f["second"].notna(),
}


def bars(results: Results) -> Table:
    """Every row, judged where its bar is this world's."""
    header = ("case [Mbit/s]", "of", "bar", "worst", "mean", "in the interval", "half-width", "most", "longest", "")
    judged = [claim for claim in results.plan.claims if claim.threshold.get("quantity") in COLUMNS]
    return header, [_row(results.world, row) for claim in judged for row in rows(results, claim)]


def _row(world: str, row: Row) -> tuple[str, ...]:
    missing = [f"{n} {word}" for n, word in ((row.refused, "refused"), (row.missing, "not there")) if n]
    held, widths = zip(*row.intervals, strict=True) if row.intervals else ((), ())
    word = "reported"
    if world in row.claim.worlds and row.claim.uncounted is None:
        word = "**missed**" if row.wrong() else "held" if not row.missing else "undecided"
    return (
        row.name,
        row.quantity,
        told(row.quantity, row.claim.threshold["limit"], ""),
        ", ".join([told(row.quantity, row.worst), *missing]),
        told(row.quantity, row.mean),
        f"{sum(held)}/{len(held)}{', all the same' if row.alike else ''}" if held else "",
        f"{quantile(widths, 0.5) * 100:.1f} %" if widths else "",
        f"{row.most('bytes') / 1e3:,.0f} kB",
        f"{row.most('seconds'):.2f} s",
        word,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def random(results: Results) -> Table:
    """Errors and half-widths as shares of the capacity."""
    header = ("class", "cases", "no value", "|error| p50", "p90", "p95", "bias", "inside", "half-width p50")
    try:
        good = cases(results)
    except Undecided:
        return header, []
    every = paths(results)
    found = []
    for name, condition in CLASSES.items():
        of, here = every[condition(every)], good[condition(good)]
        if here.empty:
            continue
        sizes = (f"{quantile(list(here['size']), share):.2%}" for share in (0.5, 0.9, 0.95))
        bias, width = quantile(list(here["error"]), 0.5), quantile(list(here["half_width"]), 0.5)
        row = (*sizes, f"{bias:+.2%}", f"{here['inside'].mean():.1%}", f"{width:.2%}")
        found.append((name, str(len(of)), str(len(of) - len(here)), *(cell.replace("%", " %") for cell in row)))
    return header, found


def others(results: Results) -> Table:
    """What the same random paths say of capacity and least delay."""
    header = ("of", "cases", "|error| p50", "p90", "p95")
    try:
        every = paths(results)
    except Undecided:
        return header, []
    capacity = list(every["capacity_error"].dropna().abs() * 100)
    delay = list((every["delay_s"] - every["delay_truth_s"]).dropna().abs() * 1e6)
    rows = (("capacity", capacity, ".4f", "%"), ("least delay", delay, ".1f", "us"))
    return header, [
        (name, str(len(values)), *(f"{quantile(values, share):{form}} {unit}" for share in (0.5, 0.9, 0.95)))
        for name, values, form, unit in rows
        if values
    ]


def errors(results: Results) -> Any:
    """How errors over random paths are distributed, a line a kind of cross traffic."""
    import matplotlib.pyplot as plt

    plot, axes = plt.subplots(figsize=(7, 4))
    for kind, colour in zip(KINDS, (SKY, BLUE, GREEN, VERMILION, PURPLE), strict=True):
        try:
            size = sorted(cases(results, kind)["size"] * 100)
        except Undecided:
            continue
        axes.plot(size, [(i + 1) / len(size) for i in range(len(size))], label=f"{kind} ({len(size)})", color=colour)
    axes.set(xscale="log", xlim=(1e-3, 100), ylim=(0, 1), xlabel="|error| [% of the capacity]", ylabel="share of cases")
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(title="cross traffic")
    return plot


TABLES: dict[str, Callable[[Results], Table]] = {"bars": bars, "random": random, "random-others": others}
FIGURES: dict[str, Callable[[Results], Any]] = {"errors": errors}
ONLY = dict.fromkeys(("random", "random-others", "errors"), "sim")
