"""A row a path and controller, and how many of the judged paths reach each bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from pathcast.lab.experiment import Results, Table

from .cells import ALONE, KEPT, REST, Path, shares

FOREGROUNDS = ("reno", "cubic")


def bars(results: Results) -> dict[tuple[str, str], tuple[float, float]]:
    """The least share and the least buffer by controller and quantity, from the claims."""
    thresholds = (claim.threshold for claim in results.plan.claims)
    return {(bar["control"], bar["share"]): (bar["least"], bar["buffer"]) for bar in thresholds}


def spread(values: Iterable[float]) -> str:
    """Median, and in brackets the least and the greatest where they differ."""
    found = sorted(values)
    if not found:
        return "-"
    ends = f"{found[0]:.2f} to {found[-1]:.2f}"
    return f"{median(found):.2f}" + (f" ({ends})" if len(set(ends.split(" to "))) > 1 else "")


def cells(grid: str) -> Callable[[Results], Table]:
    """Medians of the pairs."""

    def table(results: Results) -> Table:
        header = (
            "background",
            "Mbit/s",
            "RTT ms",
            "buffer BDP",
            "Reno keeps",
            "CUBIC keeps",
            "alone",
            "of the rest",
            "below a bar",
        )
        found = shares(results, grid)
        rows = []
        for control, path in dict.fromkeys((control, path) for control, path, *_ in found):
            kept = [spread(found.get((control, path, one, KEPT), {}).values()) for one in FOREGROUNDS]
            own = [spread(found.get((control, path, "reno", one), {}).values()) for one in (ALONE, REST)]
            if {*kept, *own} == {"-"}:
                continue
            below = ", ".join(missed(results, grid, control, path)) or "none"
            about = (control, str(path.rate_mbit), str(path.rtt_ms), f"{path.buffer:g}")
            rows.append((*about, *kept, *own, below if judged(results, path) else "not judged"))
        return header, rows

    return table


def judged(results: Results, path: Path) -> bool:
    """Whether a bar is about such a path."""
    return any(path.buffer >= buffer for _, buffer in bars(results).values())


def missed(results: Results, grid: str, control: str, path: Path) -> list[str]:
    """The bars that the median of the pairs does not reach, with either foreground."""
    found, wrong = shares(results, grid), []
    for quantity in (KEPT, ALONE, REST):
        least, _ = bars(results).get((control, quantity), (0.0, 0.0))
        of = [found.get((control, path, one, quantity), {}).values() for one in FOREGROUNDS]
        if any(values and median(values) < least for values in of):
            wrong.append(quantity)
    return wrong


def summary(grid: str) -> Callable[[Results], Table]:
    """Judged cells, of both foregrounds, whose median reaches each bar."""

    def table(results: Results) -> Table:
        found = shares(results, grid)
        header = ("background", "cells judged", "foreground keeps", "alone", "of the rest")
        rows = []
        for control in dict.fromkeys(control for control, *_ in found):
            row = [control]
            for quantity in (KEPT, ALONE, REST):
                bar = bars(results).get((control, quantity))
                of = [
                    median(values.values())
                    for (one, path, _, what), values in found.items()
                    if (one, what) == (control, quantity) and values and judged(results, path)
                ]
                if quantity == KEPT:
                    row.append(str(len(of)))
                row.append(f"{sum(value >= bar[0] for value in of)} (of {bar[0]:g})" if bar else "no bar")
            if row[1] != "0":
                rows.append(tuple(row))
        return header, rows

    return table


TABLES = {
    "summary": summary("pairs"),
    "summary-short": summary("short"),
    "cells": cells("pairs"),
    "cells-short": cells("short"),
}
FIGURES = {}
ONLY = {"summary-short": "sim", "cells-short": "sim"}
