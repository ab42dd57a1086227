"""The tables and plots of the README and the page."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.lab.interval import Interval
from pathcast.results.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

from .cells import (
    EVERY,
    NONE,
    WITH_PAGES,
    Cell,
    apart,
    available,
    fairness,
    fluctuation,
    growth,
    growth_by_load,
    link_bps,
    losses,
    phases,
    rates,
    runs,
    share,
    start,
    throughput,
)
from .claims import FIVE, NAMES, OURS, PLAIN, UNYIELDING
from .recommend import sweep

BACKGROUND = tuple(name for name in NAMES if name not in (NONE, PLAIN, UNYIELDING))
COLOURS = dict(zip(NAMES, ("#777777", VERMILION, ORANGE, GREEN, PURPLE, BLUE, SKY, "#000000", "#000000"), strict=True))
_SEEDS = tuple(range(1, 21))
_CHECK = tuple(range(2001, 2011))
_CHECKED = ("5, 80 ms", "20, 20 ms", "20", "50, 100 ms")


def _or_dash(make: Callable[[], str]) -> str:
    """What it makes, or a dash where the runs are not there."""
    try:
        return make()
    except (Undecided, KeyError):
        return "-"


def _loads(results: Results, cell: Cell) -> list[int]:
    try:
        return sorted(set(runs(results, cell, NONE).index.get_level_values("load")))
    except Undecided:
        return []


def _nodes(results: Results, cell: Cell, load: int) -> int:
    per_mbit = results.plan.setup["web"]["nodes_per_mbit"]
    return round(load / 100 * link_bps(results, cell.network) / 1e6 * per_mbit)


def one(network: str) -> Callable[[Results], Table]:
    """E1, by number of nodes: available bandwidth, and of each controller throughput and growth of page times."""

    def table(results: Results) -> Table:
        cell = Cell(network, _SEEDS)
        header = ("nodes", "page time, no background [ms]", "available [Mbit/s]", *(NAMES[name] for name in BACKGROUND))
        rows = []
        for load in _loads(results, cell):
            page = runs(results, cell, NONE)["page_s"].loc[load].mean()
            left = available(results, cell).loc[load].mean() / 1e6
            cells = [_or_dash(lambda name=name, load=load: _both(results, cell, name, load)) for name in BACKGROUND]
            page_ms = "-" if load == 0 else f"{1e3 * page:.0f}"
            rows.append((str(_nodes(results, cell, load)), page_ms, f"{left:.2f}", *cells))
        return header, rows

    return table


def _both(results: Results, cell: Cell, control: str, load: int) -> str:
    rate = runs(results, cell, control)["bg_bps"].loc[load].mean() / 1e6
    if load == 0:
        return f"{rate:.2f}"
    return f"{rate:.2f} ({Interval.mean(growth_by_load(results, cell, control).loc[load]).percent()})"


def summary(
    networks: tuple[str, ...], seeds: tuple[int, ...], controls: tuple[str, ...], loads: Container[int] = EVERY
) -> Callable[[Results], Table]:
    """E1 over loads."""

    def table(results: Results) -> Table:
        header = ("network", "controller", "page time grows", "from available [% of the link]", "uses of available")
        header = (*header, "of available in its own run", "seeds")
        rows = []
        for network in networks:
            cell = Cell(network, seeds, loads=loads)
            rows += [
                (network, NAMES[name], *found)
                for name in controls
                if (found := _summary(results, cell, name)) is not None
            ]
        return header, rows

    return table


def _summary(results: Results, cell: Cell, control: str) -> tuple[str, ...] | None:
    try:
        grown, away = (Interval.mean(of(results, cell, control)) for of in (growth, apart))
        found = runs(results, cell, control)
        used = found["bg_bps"].mean() / available(results, cell).mean()
        own = found["bg_bps"].mean() / (link_bps(results, cell.network) - found["fg_bps"]).mean()
    except Undecided:
        return None
    return (grown.percent(), away.percent(sign=False), f"{100 * used:.0f} %", f"{100 * own:.0f} %", str(grown.n))


def busy(networks: tuple[str, ...], seeds: tuple[int, ...], controls: tuple[str, ...]) -> Callable[[Results], Table]:
    """E1 over the loads that have pages."""

    def table(results: Results) -> Table:
        header = (
            "network",
            "controller",
            "from available [% of the link]",
            "further than ImTCP-bg",
            "uses of available",
        )
        rows = []
        for network in networks:
            cell = Cell(network, seeds, loads=WITH_PAGES)
            for name in controls:
                if (found := _summary(results, cell, name)) is not None:
                    _, away, used, *_ = found
                    further = _or_dash(lambda cell=cell, name=name: _further(results, cell, name))
                    rows.append((network, NAMES[name], away, "" if name == OURS else further, used))
        return header, rows

    return table


def _further(results: Results, cell: Cell, control: str) -> str:
    """Than ImTCP-bg from the available bandwidth."""
    return Interval.mean(apart(results, cell, control) - apart(results, cell, OURS)).percent()


def several(networks: tuple[str, ...], seeds: tuple[int, ...], controls: tuple[str, ...]) -> Callable[[Results], Table]:
    """E2."""

    def table(results: Results) -> Table:
        return _several_table(results, networks, seeds, controls)

    return table


def _several_table(
    results: Results, networks: tuple[str, ...], seeds: tuple[int, ...], controls: tuple[str, ...]
) -> Table:
    header = ("network", "controller", "page time grows", "in all [Mbit/s]")
    header += tuple(f"of available, {n}" for n in range(1, FIVE + 1))
    header += ("fluctuation", "Jain's index", "lost before, after a join", "joins with losses", "first 20 s")
    rows = []
    for network in networks:
        cell = Cell(network, seeds, FIVE)
        for name in controls:
            try:
                rows.append((network, NAMES[name], *_several(results, cell, name)))
            except Undecided:
                continue
    return header, rows


def _several(results: Results, cell: Cell, control: str) -> list[str]:
    lost = losses(results, cell, control)
    return [
        Interval.mean(growth(results, cell, control)).percent(),
        f"{throughput(results, cell, control).mean() / 1e6:.2f}",
        *(f"{100 * share(results, cell, control, n).mean():.0f} %" for n in range(1, FIVE + 1)),
        *(str(Interval.mean(of(results, cell, control))) for of in (fluctuation, fairness)),
        f"{lost['before'].mean():.1f}, {lost['after'].mean():.1f}",
        f"{100 * lost['with'].mean():.0f} %",
        f"{start(results, cell, control).mean():.2f}",
    ]


def settings(results: Results) -> Table:
    """The sweep: growth of page times, and distance from the available bandwidth, in % of the link."""
    try:
        table = sweep(results)
    except Undecided:
        return ("network", "delta"), []
    deltas, gammas = (sorted(set(table.index.get_level_values(key))) for key in ("delta", "gamma"))
    header = ("network", "delta", *(f"gamma {gamma / 1000:g}" for gamma in gammas))
    rows = []
    for network in dict.fromkeys(table.index.get_level_values("network")):
        for delta in deltas:
            cells = [
                _or_dash(lambda key=(network, delta, gamma): "{growth:+.1%}, {apart:.1%}".format(**table.loc[key]))
                for gamma in gammas
            ]
            if set(cells) != {"-"}:
                rows.append((network, f"{delta / 1000:g}", *(one.replace("%", " %") for one in cells)))
    return header, rows


def figure_one(network: str) -> Callable[[Results], Any]:
    """The slides' two figures of E1: throughput and page time over the number of nodes."""

    def figure(results: Results) -> Any:
        import matplotlib.pyplot as plt

        drawn, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
        cell = Cell(network, _SEEDS)
        loads = _loads(results, cell)
        nodes = [_nodes(results, cell, load) for load in loads]
        if loads:
            truth = available(results, cell).groupby("load").mean() / 1e6
            left.plot(nodes, truth.loc[loads], "--", color=COLOURS[NONE], label="available")
        for name in NAMES:
            try:
                found = runs(results, cell, name)
            except Undecided:
                continue
            if name != NONE:
                _line(left, results, cell, found["bg_bps"] / 1e6, name)
            _line(right, results, cell, 1e3 * found["page_s"].dropna(), name)
        left.set_ylabel("background throughput [Mbit/s]")
        right.set_ylabel("mean page time [ms]")
        for ax in (left, right):
            ax.set_xlabel("web nodes")
            ax.set_ylim(bottom=0)
        _legend(left)
        _legend(right)
        return drawn

    return figure


def _legend(ax: Any, **how: Any) -> None:
    """If there is anything to name: in a world without such runs there is not."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, **how)


def _line(ax: Any, results: Results, cell: Cell, values: Any, name: str) -> None:
    """Means over seeds with 95 % intervals."""
    x, y, half = [], [], []
    for load, of in values.groupby("load"):
        x.append(_nodes(results, cell, load))
        y.append(float(of.mean()))
        half.append(Interval.mean(of).half if len(of) > 1 else 0.0)
    style = {NONE: "--", "recommended": ":"}.get(name, "-")
    ax.errorbar(x, y, half, fmt=f"o{style}", lw=1.2, ms=3, capsize=2, color=COLOURS[name], label=NAMES[name])


def figure_several(network: str) -> Callable[[Results], Any]:
    """The slides' figures of E2: throughput over time of each connection, one seed."""

    def figure(results: Results) -> Any:
        import matplotlib.pyplot as plt

        controls = [name for name in BACKGROUND if name != "recommended"]
        drawn, axes = plt.subplots(len(controls), 1, figsize=(9.5, 9.5), sharex=True, sharey=True)
        cell = Cell(network, (1,), FIVE)
        for name, ax in zip(controls, axes, strict=True):
            ax.set_title(NAMES[name], loc="left", fontsize=9)
            ax.set_ylabel("Mbit/s")
            try:
                row, without = (runs(results, cell, of).iloc[0] for of in (name, NONE))
            except Undecided:
                continue
            free = link_bps(results, network) / 1e6 - _bins(np.asarray(without["carried_kbps"], dtype=float))
            at = 5 * np.arange(len(free)) + 2.5
            ax.plot(at, free, color="#bbbbbb", lw=0.8, label="available")
            for n, own in enumerate(rates(row)):
                there = [p for p in phases(results, cell) if n in p.connections]
                inside = (at >= there[0].begin - 20) & (at <= there[-1].end + 5)
                colour = (BLUE, VERMILION, GREEN, ORANGE, PURPLE)[n]
                ax.plot(at[inside], _bins(own)[inside], color=colour, lw=1, label=f"connection {n + 1}")
        _legend(axes[0], ncols=6, loc="lower right", bbox_to_anchor=(1, 1))
        axes[-1].set_xlabel("time [s]")
        return drawn

    return figure


def _bins(kbps: np.ndarray) -> np.ndarray:
    """Means of 5 s [Mbit/s]."""
    n = len(kbps) // 5
    return kbps[: 5 * n].reshape(n, 5).mean(axis=1) / 1e3


def figure_sweep(results: Results) -> Any:
    """Every setting: what it costs the pages, and how far from the available bandwidth it is."""
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
    for network, ax in zip(("10", "100"), axes, strict=True):
        ax.set_title(f"{network} Mbit/s", loc="left", fontsize=9)
        ax.set_xlabel("page time grows [%]")
        ax.axvline(10, color="#bbbbbb", lw=0.8)
        try:
            table = 100 * sweep(results).loc[network]
        except (Undecided, KeyError):
            continue
        colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(set(table.index.get_level_values("delta")))))
        for colour, (delta, of) in zip(colours, table.groupby("delta"), strict=True):
            ax.plot(of["growth"], of["apart"], "-", lw=0.8, color=colour)
            sizes = [14 + 60 * gamma / 1000 for gamma in of.index.get_level_values("gamma")]
            ax.scatter(of["growth"], of["apart"], s=sizes, color=colour, label=f"delta {delta / 1000:g}")
    axes[0].set_ylabel("from available [% of the link]")
    _legend(axes[1], title="small to large: gamma 0.063 to 1", title_fontsize=8)
    return drawn


# the emulated runs, of which the simulator has the same
_REAL = {"networks": ("20",), "seeds": (1, 2, 3, 4), "loads": (30, 60, 90), "controls": BACKGROUND[:-1]}
_CHECKS = ("nice", "lp", "imtcp_bg", "recommended")
_ROOM = tuple(range(21, 31))
_ROOMS = ("nice", "lp", "imtcp_bg", UNYIELDING)
TABLES: dict[str, Callable[[Results], Table]] = {
    "summary": summary(("10", "20", "100", "10, ns-2"), _SEEDS, BACKGROUND),
    "busy": busy(("10", "20", "100", "10, ns-2"), _SEEDS, BACKGROUND),
    "as-emulated": summary(**_REAL),
    "one-10": one("10"),
    "one-20": one("20"),
    "one-100": one("100"),
    "one-ns2": one("10, ns-2"),
    "several": several(("10", "100"), _SEEDS, BACKGROUND),
    "sweep": settings,
    "room": summary(("10",), _ROOM, _ROOMS),
    "room-several": several(("10",), _ROOM, _ROOMS),
    "check": summary(_CHECKED, _CHECK, _CHECKS),
}
FIGURES: dict[str, Callable[[Results], Any]] = {
    "one-10": figure_one("10"),
    "one-20": figure_one("20"),
    "one-100": figure_one("100"),
    "several-10": figure_several("10"),
    "several-100": figure_several("100"),
    "sweep": figure_sweep,
}
# the emulator has one network
ONLY = {name: "sim" for name in (*TABLES, *FIGURES) if name not in ("summary", "one-20")}
