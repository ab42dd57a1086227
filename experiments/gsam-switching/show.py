"""The tables and plots of the README and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.lab.interval import Interval
from pathcast.results.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

from . import emulated_show
from .adaptive_show import FIGURES as OPEN_FIGURES
from .adaptive_show import TABLES as OPEN_TABLES
from .calibration import agreement
from .cells import PAPER, SIZES, SUBFLOWS, Network, completions, difference, paper_says

NAMES = {
    "lia": "MPTCP (LIA)",
    "gsam": "GSAM, calibrated",
    "subflow_switch": "switch",
    "gsam_default": "GSAM, default",
    "lisa": "LISA",
    "css": "CSS",
    "hystartpp": "HyStart++",
}
NETWORKS: tuple[Network, ...] = (
    PAPER,
    ("paper", 300),
    ("together", 150),
    ("linux", 150),
    ("linux", 300),
    *((f"paper_{factor}", 150) for factor in ("iw10", "unlimited", "sack", "rto200")),
)
_COLOURS = dict(zip(NAMES, (BLUE, VERMILION, ORANGE, "#999999", GREEN, PURPLE, SKY), strict=True))
_SEEDS = range(1, 51)
_FACTORS = range(51, 71)  # the seeds of the networks of grid `factors`
_CALIBRATION = range(1001, 1011)
_SIGN = {1: "+", -1: "-", 0: "·"}
_N = [f"n = {n}" for n in SUBFLOWS]


def completion(network: Network) -> Callable[[Results], Table]:
    """Mean completion times with 95 % intervals."""

    def table(results: Results) -> Table:
        rows = []
        for size in SIZES:
            for control, name in NAMES.items():
                found = [_mean(results, network, size, n, control) for n in SUBFLOWS]
                rows.append((size, name, *("-" if one is None else one.told(form=".2f") for one in found)))
        return ("size", "controller", *_N), rows

    return table


def _mean(results: Results, network: Network, size: str, n: int, control: str) -> Interval | None:
    try:
        return Interval.mean(completions(results, network, (size, n), control, _SEEDS))
    except Undecided:
        return None


def sides(results: Results) -> Table:
    """Who is faster, in each network: + MPTCP, - GSAM, · neither for certain; beside the paper's findings."""
    header = ("network", "GSAM", *(f"{size}, n = 1..8" for size in SIZES))
    rows = [("the paper", "its own", *("".join(_SIGN[paper_says((size, n))] for n in SUBFLOWS) for size in SIZES))]
    for network in NETWORKS:
        for gsam in ("gsam", "gsam_default"):
            cells = ["".join(_side(results, network, size, n, gsam) for n in SUBFLOWS) for size in SIZES]
            rows.append((f"TCP `{network[0]}`, RTT {network[1]} ms", NAMES[gsam].split(", ")[1], *cells))
    return header, rows


def _side(results: Results, network: Network, size: str, n: int, gsam: str) -> str:
    try:
        seeds = _FACTORS if network[0].startswith("paper_") else _SEEDS
        return _SIGN[difference(results, network, (size, n), gsam, "lia", seeds).sign]
    except Undecided:
        return "?"


def calibration(results: Results) -> Table:
    """All parameters: the cells that agree with the paper, and which."""
    header = ("theta_shift", "theta_floor_us", "samples", "st_div", "agree", *(f"{size}, n = 1..8" for size in SIZES))
    rows = []
    for key, cells in agreement(results, _CALIBRATION).items():
        agree = sum(sign == paper_says(cell) for cell, sign in cells.items())
        signs = ("".join(_SIGN[cells[size, n]] for n in SUBFLOWS) for size in SIZES)
        rows.append((agree, (*map(str, key), str(agree), *signs)))
    return header, [row for _, row in sorted(rows, key=lambda row: -row[0])]


def drops(network: Network) -> Callable[[Results], Table]:
    """Mean drops and timeouts of a transfer."""

    def table(results: Results) -> Table:
        frame = results.frame
        frame = frame[(frame["grid"] == "main") & (frame["tcp"] == network[0]) & (frame["rtt_ms"] == network[1])]
        means = frame.groupby(["bytes", "control", "subflows"])[["drops", "timeouts"]].mean()
        rows = []
        for size in SIZES:
            for control in ("lia", "gsam", "gsam_default"):
                found = [means.loc[(size, control, n)] for n in SUBFLOWS]
                rows.append((size, NAMES[control], *(f"{m['drops']:.1f} ({m['timeouts']:.1f})" for m in found)))
        return ("size", "controller", *_N), rows

    return table


def _draw(ax: Any, results: Results, network: Network, size: str, controls: Iterable[str]) -> None:
    """Completion time over the number of subflows; bars are 95 % intervals."""
    for control in controls:
        found = [(n, one) for n in SUBFLOWS if (one := _mean(results, network, size, n, control)) is not None]
        x, y = [n for n, _ in found], [m.value for _, m in found]
        dashed = "--" if control == "gsam_default" else "-"
        ax.plot(x, y, f"o{dashed}", lw=1.2, ms=3, color=_COLOURS[control], label=NAMES[control])
        ax.vlines(x, [m.low for _, m in found], [m.high for _, m in found], color=_COLOURS[control])
    ax.set_title(size.replace("KB", " KB").replace("MB", " MB"))
    ax.set_ylim(bottom=0)


def plot(network: Network) -> Callable[[Results], Any]:
    """All controllers, a panel a size."""

    def figure(results: Results) -> Any:
        import matplotlib.pyplot as plt

        drawn, axes = plt.subplots(2, 3, figsize=(9.5, 5.4), sharex=True)
        for size, ax in zip(SIZES, axes.flat, strict=False):
            _draw(ax, results, network, size, NAMES)
        for ax in axes[:, 0]:
            ax.set_ylabel("completion time [s]")
        for ax in (axes[1, 0], axes[1, 1], axes[0, 2]):
            ax.set_xlabel("subflows")
            ax.tick_params(labelbottom=True)
        axes[1, 2].axis("off")
        axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center left")
        return drawn

    return figure


def figure_4(results: Results) -> Any:
    """The paper's figure 4: 750 KB."""
    import matplotlib.pyplot as plt

    drawn, ax = plt.subplots(figsize=(5.2, 3.4))
    _draw(ax, results, PAPER, "750KB", ("lia", "gsam", "subflow_switch"))
    ax.set_xlabel("subflows")
    ax.set_ylabel("completion time [s]")
    ax.legend()
    return drawn


TABLES: dict[str, Callable[[Results], Table]] = {
    "sides": sides,
    "completion-paper": completion(PAPER),
    "completion-linux": completion(("linux", 150)),
    "drops-paper": drops(PAPER),
    "drops-linux": drops(("linux", 150)),
    "calibration": calibration,
    **OPEN_TABLES,
}
FIGURES: dict[str, Callable[[Results], Any]] = {
    "figure-4": figure_4,
    "completion-paper": plot(PAPER),
    "completion-one-way": plot(("paper", 300)),
    "completion-linux": plot(("linux", 150)),
    **OPEN_FIGURES,
}
# which world each is of
ONLY = dict.fromkeys((*TABLES, *FIGURES), "sim")
TABLES |= emulated_show.tables(NAMES)
FIGURES |= emulated_show.figures(NAMES, _COLOURS)
ONLY |= {name: "emu" for name in (*TABLES, *FIGURES) if name not in ONLY}
