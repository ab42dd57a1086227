"""The paper's figures 4 to 8, drawn from our samples. Throughputs as there: KB/s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pathcast.lab.experiment import Results, Undecided
from pathcast.results.style import BLUE, ORANGE, VERMILION

from .evaluation import MULTI, judged_network, scores, shares

_PAIRS = {"150/150": BLUE, "150/120": VERMILION, "120/150": ORANGE}
# of the paper there is this one number
_PAPER_SHARE = 0.339
_KBPS = 8e3


def _too_few(ax: Any, reason: Undecided) -> None:
    ax.set_axis_off()
    ax.text(0, 1, str(reason), va="top") if ax.name != "3d" else ax.text2D(0, 1, str(reason), va="top")


def figure_4(results: Results) -> Any:
    """Share of subflow 1 against the bytes sent; bars from the least to the most of the seeds."""
    import matplotlib.pyplot as plt

    drawn, ax = plt.subplots(figsize=(5.6, 3.4))
    try:
        frame = shares(results, judged_network(results))
    except Undecided as reason:
        _too_few(ax, reason)
        return drawn
    sizes = list(frame.columns)
    for pair, colour in _PAIRS.items():
        if pair in frame.index:
            rows = 100 * frame.loc[[pair]]
            ax.plot(range(len(sizes)), rows.mean(), "o-", ms=3, lw=1.2, color=colour, label=f"RTTs {pair} ms")
            ax.vlines(range(len(sizes)), rows.min(), rows.max(), color=colour)
    ax.plot(len(sizes) - 1, 100 * _PAPER_SHARE, "x", color=_PAIRS["150/120"], label="the paper, 150/120 ms, 256 MB")
    ax.set_xticks(range(len(sizes)), [size.replace("KB", " KB").replace("MB", " MB") for size in sizes], rotation=45)
    ax.set_xlabel("bytes sent")
    ax.set_ylabel("share of subflow 1 [%]")
    ax.set_ylim(0, 104)
    ax.legend()
    return drawn


def line(label: str, what: str) -> Callable[[Results], Any]:
    """One probe against the data, and the fitted curve."""

    def figure(results: Results) -> Any:
        import matplotlib.pyplot as plt

        drawn, ax = plt.subplots(figsize=(4.6, 3.4))
        try:
            one = scores(results)(label, judged_network(results))
        except Undecided as reason:
            _too_few(ax, reason)
            return drawn
        x = np.linspace(one.probes.min(), one.probes.max(), 200)
        ax.plot(
            one.probes[:, 0] / _KBPS, one.actual / _KBPS, ".", ms=3, color="#999999", rasterized=True, label="a sample"
        )
        ax.plot(x / _KBPS, one.found.model.predict(x[:, None]) / _KBPS, color=BLUE, label="the SVR fitted to them")
        ax.set_xlabel("probe [KB/s]")
        ax.set_ylabel(f"{what} [KB/s]")
        ax.set_ylim(bottom=0)
        ax.legend(loc="lower right")
        return drawn

    return figure


def _space(results: Results) -> tuple[Any, Any, Any]:
    import matplotlib.pyplot as plt

    drawn, ax = plt.subplots(figsize=(5.4, 4.4), subplot_kw={"projection": "3d"})
    try:
        one = scores(results)(MULTI, judged_network(results))
    except Undecided as reason:
        _too_few(ax, reason)
        return drawn, ax, None
    ax.set_xlabel("probe, path 1 [KB/s]")
    ax.set_ylabel("probe, path 2 [KB/s]")
    ax.set_zlabel("data [MB/s]")
    return drawn, ax, one


def figure_7(results: Results) -> Any:
    """Both probes and the data."""
    drawn, ax, one = _space(results)
    if one is not None:
        ax.scatter(one.probes[:, 0] / _KBPS, one.probes[:, 1] / _KBPS, one.actual / 8e6, s=4, color=BLUE)
    return drawn


def figure_8(results: Results) -> Any:
    """The fitted surface."""
    drawn, ax, one = _space(results)
    if one is not None:
        low, high = one.probes.min(axis=0), one.probes.max(axis=0)
        x, y = np.meshgrid(np.linspace(low[0], high[0], 30), np.linspace(low[1], high[1], 30))
        z = one.found.model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
        ax.plot_surface(x / _KBPS, y / _KBPS, z / 8e6, cmap="viridis", linewidth=0)
    return drawn


FIGURES: dict[str, Callable[[Results], Any]] = {
    "figure-4": figure_4,
    "figure-5": line("single 64KB", "MPTCP data"),
    "figure-6": line("tcp 64KB", "TCP data"),
    "figure-7": figure_7,
    "figure-8": figure_8,
}
