"""The tables and plots of the kernel's runs. Names and colours of the controllers are show.py's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pathcast.lab.experiment import Results, Table, Undecided
from pathcast.lab.interval import Interval

from .cells import SUBFLOWS, paper_says
from .emulated_claims import SETTINGS, SIZES, difference, of

_SIGN = {1: "+", -1: "-", 0: "·"}
_N = [f"n = {n}" for n in SUBFLOWS]
# finding a: left of it MPTCP is the faster one at 750 KB, right of it GSAM
_BORDER = 2.5
_KERNEL, _SIMULATED = "completion_s", "simulated_completion_s"


def _seeds(results: Results) -> set[int]:
    return {row["seed"] for row in results.rows}


def sides(results: Results) -> Table:
    """Who is faster: + MPTCP, - GSAM, · neither for certain; kernel and simulator beside the paper's findings."""
    rows = [("the paper", "ns-3", *("".join(_SIGN[paper_says((size, n))] for n in SUBFLOWS) for size in SIZES))]
    for tcp in SETTINGS:
        for world, column in (("kernel", _KERNEL), ("simulator", _SIMULATED)):
            signs = ("".join(_side(results, tcp, size, n, column) for n in SUBFLOWS) for size in SIZES)
            rows.append((f"TCP `{tcp}`", world, *signs))
    return ("network", "by", *(f"{size}, n = 1..8" for size in SIZES)), rows


def _side(results: Results, tcp: str, size: str, n: int, column: str) -> str:
    try:
        return _SIGN[difference(results, tcp, ((size, n), "gsam", "lia"), _seeds(results), column).sign]
    except Undecided:
        return "?"


def _mean(results: Results, tcp: str, size: str, n: int, control: str, column: str = _KERNEL) -> Interval | None:
    try:
        return Interval.mean(of(results, tcp, (size, n), control, _seeds(results))[column])
    except Undecided:
        return None


def completion(tcp: str, names: Mapping[str, str]) -> Callable[[Results], Table]:
    """The kernel's mean completion times with 95 % intervals, and the simulator's means."""

    def cell(results: Results, size: str, n: int, control: str) -> str:
        found, ours = (_mean(results, tcp, size, n, control, column) for column in (_KERNEL, _SIMULATED))
        return "-" if found is None or ours is None else f"{found.told(form='.2f')} ({ours.value:.2f})"

    def table(results: Results) -> Table:
        labels = results.plan.setup["emulated"]["controls"]
        rows = [
            (size, names[control], *(cell(results, size, n, control) for n in SUBFLOWS))
            for size in SIZES
            for control in labels
        ]
        return ("size", "controller", *_N), rows

    return table


def losses(tcp: str, names: Mapping[str, str]) -> Callable[[Results], Table]:
    """Mean drops and timeouts of a transfer in the kernel, and in the simulator."""

    def cell(results: Results, size: str, n: int, control: str) -> str:
        try:
            found = of(results, tcp, (size, n), control, _seeds(results)).mean(numeric_only=True)
        except Undecided:
            return "-"
        kernel = f"{found['drops']:.1f}, {found['timeouts']:.1f}"
        return f"{kernel} ({found['simulated_drops']:.1f}, {found['simulated_timeouts']:.1f})"

    def table(results: Results) -> Table:
        rows = [
            (size, names[control], *(cell(results, size, n, control) for n in SUBFLOWS))
            for size in SIZES
            for control in ("lia", "gsam", "lisa")
        ]
        return ("size", "controller", *_N), rows

    return table


def plot(tcp: str, names: Mapping[str, str], colours: Mapping[str, str]) -> Callable[[Results], Any]:
    """The kernel's completion times with 95 % intervals, the simulator's as dotted lines, and the paper's border."""

    def figure(results: Results) -> Any:
        import matplotlib.pyplot as plt

        drawn, axes = plt.subplots(1, 2, figsize=(10.5, 3.6))
        for size, ax in zip(SIZES, axes, strict=True):
            for control in results.plan.setup["emulated"]["controls"]:
                _draw(ax, results, tcp, size, control, names[control], colours[control])
            ax.set_title(size.replace("KB", " KB"))
            ax.set_xlabel("subflows")
            ax.set_ylim(bottom=0)
        axes[0].set_ylabel("completion time [s]")
        axes[1].axvline(_BORDER, ls="--", lw=1, color="#555555", label="the paper's border")
        axes[1].plot([], [], ":", color="#555555", label="simulated")
        axes[1].legend(loc="upper left", bbox_to_anchor=(1.02, 1))
        return drawn

    return figure


def _draw(ax: Any, results: Results, tcp: str, size: str, control: str, name: str, colour: str) -> None:
    for column, style in ((_KERNEL, "o-"), (_SIMULATED, ":")):
        found = [(n, one) for n in SUBFLOWS if (one := _mean(results, tcp, size, n, control, column)) is not None]
        x, y = [n for n, _ in found], [m.value for _, m in found]
        label = name if column == _KERNEL else None
        ax.plot(x, y, style, lw=1.2, ms=3, color=colour, label=label)
        if column == _KERNEL:
            ax.vlines(x, [m.low for _, m in found], [m.high for _, m in found], color=colour)


def tables(names: Mapping[str, str]) -> dict[str, Callable[[Results], Table]]:
    """All of them, by what the README calls them."""
    found: dict[str, Callable[[Results], Table]] = {"kernel-sides": sides}
    found |= {f"kernel-completion-{tcp}": completion(tcp, names) for tcp in SETTINGS}
    return found | {f"kernel-losses-{tcp}": losses(tcp, names) for tcp in SETTINGS}


def figures(names: Mapping[str, str], colours: Mapping[str, str]) -> dict[str, Callable[[Results], Any]]:
    """As `tables`."""
    return {f"kernel-{tcp}": plot(tcp, names, colours) for tcp in SETTINGS}
