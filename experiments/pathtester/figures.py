"""The tables as plots: table 5, the old tool's lower end, delay and distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathcast.lab.experiment import Results
from pathcast.results.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

from .cells import CROSS, IMPROVED, NEW, OLD, PATHLOAD, Case, some, table_5

_GREY = "#999999"
# label, colour; the paper's own are crosses in the colour of ours
_TOOLS = {
    PATHLOAD: ("Pathload", PURPLE),
    OLD: ("old", VERMILION),
    IMPROVED: ("improved", ORANGE),
    "new-300kB": ("new, 300 kB", SKY),
    NEW: ("new", BLUE),
}
_PAPER = {PATHLOAD: ((2.68, 1.83, 1.84, 0.87), (34.4, 76.0, 75.6, 129.2))}
_PAPER[IMPROVED] = ((4.48, 3.54, 2.65, 1.36), (69.2, 69.1, 69.6, 69.4))


def figure_5(results: Results) -> Any:
    """What each tool said against the truth, how long it took and what it sent; bars: least to most."""
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(1, 3, figsize=(11.5, 3.6))
    left, middle, right = axes
    left.axhline(0, color=_GREY, lw=0.8)
    for n, (method, (name, colour)) in enumerate(_TOOLS.items()):
        cases = [(i, some(results, table_5(cross), method)) for i, cross in enumerate(CROSS)]
        known = [(i + 0.12 * (n - 2), found) for i, found in cases if found is not None]
        for ax, column, scale in ((left, "relative_error", 100), (middle, "seconds", 1), (right, "bytes", 1e-6)):
            x = [i for i, _ in known]
            values = [scale * found[column].astype(float) for _, found in known]
            ax.plot(x, [v.mean() for v in values], "o", ms=4, color=colour, label=name)
            ax.vlines(x, [v.min() for v in values], [v.max() for v in values], color=colour)
        if method in _PAPER:
            said, time_s = _PAPER[method]
            x = [i + 0.12 * (n - 2) for i in range(len(CROSS))]
            errors = [100 * (value / (5 - cross) - 1) for value, cross in zip(said, CROSS, strict=True)]
            left.plot(x, errors, "x", ms=6, color=colour, label=f"{name}, paper")
            middle.plot(x, time_s, "x", ms=6, color=colour)
    for ax in axes:
        ax.set_xticks(range(len(CROSS)), [f"{cross:g}" for cross in CROSS])
        ax.set_xlabel("cross traffic [Mbit/s] of 5")
    left.set_ylabel("error [%]")
    middle.set_ylabel("time [s]")
    middle.set_yscale("log")
    right.set_ylabel("sent [MB]")
    right.set_ylim(bottom=0)
    drawn.legend(*left.get_legend_handles_labels(), loc="outside right center")
    return drawn


_RATES = {"100kbit": 0.1, "200kbit": 0.2, "300kbit": 0.3, "400kbit": 0.4, "500kbit": 0.5, "600kbit": 0.6, "1Mbit": 1.0}


def slow(results: Results) -> Any:
    """What was found on idle slow lines; at the bottom, where nothing was."""
    import matplotlib.pyplot as plt

    drawn, ax = plt.subplots(figsize=(5.6, 3.4))
    ax.plot([0, 1.05], [0, 1.05], color=_GREY, lw=0.8, label="the line's rate")
    for method, colour in ((OLD, VERMILION), (IMPROVED, ORANGE)):
        found = [(rate, some(results, Case.of(key, ("slow",), out=key), method)) for key, rate in _RATES.items()]
        known = [(rate, one["value_bps"].mean() / 1e6) for rate, one in found if one is not None]
        values = [(rate, value) for rate, value in known if value == value]
        ax.plot([r for r, _ in values], [v for _, v in values], "o", ms=5, color=colour, label=method)
        none = [rate for rate, value in known if value != value]
        if none:
            ax.plot(none, [0] * len(none), "x", ms=6, color=colour, label=f"{method}: no answer")
    ax.set_xlabel("line [Mbit/s]")
    ax.set_ylabel("found [Mbit/s]")
    ax.legend()
    return drawn


def distance(results: Results) -> Any:
    """How long a packet of 120 octets is under way and back, and how long the paper's rule waits for it."""
    import matplotlib.pyplot as plt

    drawn, ax = plt.subplots(figsize=(7.6, 3.4))
    found = some(results, Case.of("distance", ("distance",)), NEW)
    if found is None:
        ax.set_axis_off()
        ax.text(0, 1, "no results", va="top")
        return drawn
    means = found.groupby("delay")[["delay_truth_s", "delay_s", "rtt_small_s", "rtt_large_s"]].mean() * 1e3
    means = means.sort_values("delay_truth_s")
    x = means["delay_truth_s"]
    ax.plot(x, means["rtt_small_s"], "-", color=_GREY, label="round trip of 120 octets")
    ax.plot(x, means["rtt_large_s"] * 120 / 1400, "x--", color=ORANGE, label="the paper's wait for it, at least")
    ax.plot(x, means["delay_s"], "o", ms=4, color=BLUE, label="one way, as found by the new method")
    ax.plot(x, x, "-", lw=0.8, color=GREEN, label="one way, the truth")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("one way [ms]")
    ax.set_ylabel("[ms]")
    drawn.legend(loc="outside right center")
    return drawn


FIGURES: dict[str, Callable[[Results], Any]] = {"table-5": figure_5, "slow": slow, "distance": distance}
