"""The open problem's tables and plots: adaptive start over the best of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.results.style import BLUE, ORANGE

from .adaptive import NETWORKS, seeds, slower
from .adaptive import judged as cells_of
from .cells import SIZES, SUBFLOWS
from .networks import SHAPES

_COLOURS = {"paper": BLUE, "linux": ORANGE}
_LIMIT = 1.02
# the grids beside the first, with a claim about each, or the seeds to choose and to judge on: one each decides nothing
_GRIDS: dict[str, str | Mapping[str, Any]] = {
    "fourth": "open-fourth-grid",
    "fourth-large": "open-fourth-100MB",
    "third": "open-third-grid",
    "third-large": {"choose": (303, 303), "judge": (304, 304)},
    "second": "open-second-grid",
    "large": {"choose": (203, 203), "judge": (204, 204)},
}
_TITLES = {
    "fourth": "grid fourth",
    "fourth-large": "grid fourth-large (100 MB)",
    "third": "grid third (development)",
    "third-large": "grid third-large (100 MB, development)",
    "second": "grid second (development)",
    "large": "grid large (100 MB, development)",
}
# what the distribution shows, in percent; what is beyond is counted at the edge
_SHOWN = (-40, 30)


def _cells(results: Results, of: str | Mapping[str, Any], grid: str, tcp: str) -> pd.DataFrame:
    """The cells of a claim, or of such seeds."""
    if isinstance(of, str):
        (of,) = (one.threshold for one in results.plan.claims if one.id == of)
    try:
        return cells_of(results, of, grid, None, tcp)
    except Undecided:
        return pd.DataFrame()


def _first(results: Results, tcp: str, rtt_ms: int) -> pd.DataFrame:
    found = _cells(results, "open-small", "open", tcp)
    return found if found.empty else found[found["rtt_ms"] == rtt_ms]


def ratio_table(results: Results) -> Table:
    """In percent, with the 95 % interval and the best other; one row a network and size."""
    rows = []
    for tcp, rtt_ms in NETWORKS:
        found = _first(results, tcp, rtt_ms)
        for size in SIZES:
            row = []
            for n in SUBFLOWS:
                cell = found if found.empty else found[(found["bytes"] == size) & (found["subflows"] == n)]
                row.append("-" if cell.empty else _over(cell.iloc[0]))
            judged = "-" if found.empty else seeds(found)
            rows.append((f"TCP `{tcp}`, RTT {rtt_ms} ms", size, judged, *row))
    return ("network", "size", "seeds", *(f"n = {n}" for n in SUBFLOWS)), rows


def _over(cell: pd.Series) -> str:
    """`+0.4 ± 0.1 lisa`, in percent."""
    return f"{slower(cell.ratio, cell.half).removesuffix(' %')} {cell.best}"


def _summary(found: pd.DataFrame) -> tuple[str, ...]:
    ratio, other = found["ratio"], found["exchanged"].dropna()
    worst = found.loc[ratio.idxmax()]
    certain = int((ratio - found["half"] > _LIMIT).sum())
    return (
        seeds(found),
        str(len(found)),
        f"{100 * (ratio <= _LIMIT).mean():.1f} %",
        "-" if found["seeds"].max() == 1 else str(certain),
        str(int((ratio > 1.1).sum())),
        *(slower(ratio.quantile(q)) for q in (0, 0.5, 0.95)),
        slower(worst.ratio, worst.half),
        "-" if other.empty else f"{100 * (other <= _LIMIT).mean():.1f} %, {slower(other.max())}",
    )


_SUMMARY = (
    *("seeds", "cells", "within 2 %", "for certain not", "beyond 10 %", "best", "median", "95th percentile", "worst"),
    "seeds exchanged: within 2 %, worst",
)


def _others(results: Results) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Grid, TCP and cells of the grids beside the first, where there are any."""
    for grid, of in _GRIDS.items():
        for tcp in _COLOURS:
            found = _cells(results, of, grid, tcp)
            if not found.empty:
                yield grid, tcp, found


def second_table(results: Results) -> Table:
    """The grids beside the first, by paths."""
    rows = []
    for grid, tcp, found in _others(results):
        for shape in SHAPES:
            part = found[found["shape"] == shape]
            if not part.empty:
                rows.append((grid, f"`{tcp}`", shape, *_summary(part)))
        rows.append((grid, f"`{tcp}`", "all", *_summary(found)))
    return ("grid", "TCP", "paths", *_SUMMARY), rows


def worst_table(results: Results) -> Table:
    """The cells of the grids beside the first in which it is furthest behind, by more than 2 %; losses of both."""
    rows = []
    for grid, tcp, found in _others(results):
        for _, row in found[found["ratio"] > _LIMIT].nlargest(8, "ratio").iterrows():
            times = f"{row.ours_s:.2f}", f"{row.best_s:.2f}", row.best
            lost = f"{row.drops:.0f} ({row.timeouts:.1f})", f"{row.best_drops:.0f} ({row.best_timeouts:.1f})"
            rows.append((grid, f"`{tcp}`", row.cell, f"{row.seeds}", *times, slower(row.ratio, row.half), *lost))
    header = ("grid", "TCP", "cell", "seeds", "adaptive start [s]", "best other [s]", "which", "slower by")
    return (*header, "drops (timeouts)", "the best's"), rows


def heat_map(results: Results) -> Any:
    """Completion time over that of the best other, by size and number of subflows; a panel a network."""
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(1, 4, figsize=(11.5, 2.9), sharey=True, layout="constrained")
    image = None
    for (tcp, rtt_ms), ax in zip(NETWORKS, axes, strict=True):
        found = _first(results, tcp, rtt_ms)
        shown = np.full((len(SIZES), len(SUBFLOWS)), np.nan)
        if not found.empty:
            table = found.pivot_table(index="bytes", columns="subflows", values="ratio")
            shown = 100 * (table.reindex(index=list(SIZES), columns=list(SUBFLOWS)).to_numpy(dtype=float) - 1)
        image = ax.imshow(shown, cmap="RdBu_r", vmin=-20, vmax=20, aspect="auto", origin="lower")
        for (i, j), value in np.ndenumerate(shown):
            if not np.isnan(value):
                dark = "white" if abs(value) > 12 else "black"
                ax.text(j, i, f"{value:+.0f}", ha="center", va="center", fontsize=7, color=dark)
        ax.set_xticks(range(len(SUBFLOWS)), [str(n) for n in SUBFLOWS])
        ax.set_title(f"TCP {tcp}, RTT {rtt_ms} ms")
        ax.set_xlabel("subflows")
        ax.grid(False)
    axes[0].set_yticks(range(len(SIZES)), [size.replace("KB", " KB").replace("MB", " MB") for size in SIZES])
    drawn.colorbar(image, ax=axes, label="slower than the best other [%]")
    return drawn


def distribution(results: Results) -> Any:
    """The share of cells of the grids beside the first that are no slower than so much; cells outside are counted."""
    import matplotlib.pyplot as plt

    # small transfers above, of 100 MB below
    drawn, axes = plt.subplots(2, len(_GRIDS) // 2, figsize=(9.5, 5.6), sharex=True, sharey=True, layout="constrained")
    panels = dict(zip(_GRIDS, axes.T.flat, strict=True))
    for grid, tcp, found in _others(results):
        x = np.sort(100 * (found["ratio"].to_numpy(dtype=float) - 1))
        y = 100 * np.arange(1, len(x) + 1) / len(x)
        panels[grid].step(x, y, where="post", color=_COLOURS[tcp], label=f"TCP {tcp}")
        _outside(panels[grid], x, tcp)
    for grid, ax in panels.items():
        for bound in (2, 10):
            ax.axvline(bound, color="#999999", lw=0.8, ls=":")
        ax.axhline(95, color="#999999", lw=0.8, ls=":")
        ax.set_xlim(*_SHOWN)
        ax.set_ylim(0, 108)
        ax.set_title(_TITLES[grid], fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("slower than the best other [%]")
    for ax in axes[:, 0]:
        ax.set_ylabel("cells [%]")
    axes[0, 0].legend(loc="center left")
    return drawn


def _outside(ax: Any, x: np.ndarray, tcp: str) -> None:
    """At both edges: how many cells are beyond it, and how far the furthest."""
    row = list(_COLOURS).index(tcp)
    for edge, beyond, marker, y in ((_SHOWN[0], x[x < _SHOWN[0]], "<", 75), (_SHOWN[1], x[x > _SHOWN[1]], ">", 60)):
        if len(beyond):
            y += 9 * row
            left = edge == _SHOWN[0]
            ax.plot([edge], [y], marker, color=_COLOURS[tcp], ms=5, clip_on=False)
            ax.annotate(
                f"{len(beyond)} beyond, to {beyond[0 if left else -1]:+.0f} %",
                (edge, y),
                (6 if left else -6, 0),
                textcoords="offset points",
                ha="left" if left else "right",
                va="center",
                fontsize=7,
                color=_COLOURS[tcp],
            )


TABLES: dict[str, Callable[[Results], Table]] = {
    "open-ratio": ratio_table,
    "open-second": second_table,
    "open-worst": worst_table,
}
FIGURES: dict[str, Callable[[Results], Any]] = {"open-ratio": heat_map, "open-second": distribution}
