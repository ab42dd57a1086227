"""Runs of one method in one case by seed, and what they have in the mean, with its interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pathcast.lab.experiment import Results, Undecided
from pathcast.lab.interval import Interval

CROSS = (0.0, 0.5, 1.5, 3.0)
LINES = ("adsl24", "adsl12")
NEW, IMPROVED, OLD, PATHLOAD = "new", "improved", "old", "slops"


@dataclass(frozen=True)
class Case:
    """A row of a table: what a point must have, and how it is told. Grids that have it are looked through in turn."""

    name: str
    grids: tuple[str, ...]
    about: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, name: str, grids: Iterable[str], **about: Any) -> Case:
        """By keyword."""
        return cls(name, tuple(grids), tuple(about.items()))


def table_5(cross: float) -> Case:
    """A row of table 5."""
    return Case.of(f"cross {cross:g}", ("table-5", "table-5-old", "table-5-slops"), cross=cross)


def adsl(line: str, direction: str) -> Case:
    """A line of tables 2, 3 and 6."""
    name = f"1 and {line.removeprefix('adsl')} Mbit/s, {direction}"
    return Case.of(name, ("adsl", "adsl-old"), network=line, direction=direction)


def table_1(direction: str) -> Case:
    """Table 1's network."""
    rate = {"out": "100 kbit/s", "in": "100 Mbit/s"}[direction]
    return Case.of(f"{rate}, {direction}", ("table-1", "table-1-in", "table-1-others"), direction=direction)


def exponents(method: str) -> str:
    """The old tool's range of the gap's exponent, as table 1 names it."""
    return f"0-{method.removeprefix('old').lstrip('-') or 15}"


def turned(cross: float) -> Case:
    """A row of table 5 the other way round."""
    return Case.of(f"cross {cross:g}, in", ("in",), cross=cross)


def poisson(cross: float) -> Case:
    """A row of table 5 with traffic that is not even."""
    return Case.of(f"Poisson {cross:g}", ("poisson",), cross=cross)


TABLE_5 = tuple(table_5(cross) for cross in CROSS)
ADSL_OUT = tuple(adsl(line, "out") for line in LINES)
INWARDS = (*(turned(cross) for cross in CROSS), *(adsl(line, "in") for line in LINES), table_1("in"))


def runs(results: Results, case: Case, method: str) -> pd.DataFrame:
    """The runs by seed, with `size`: |error|, 1 where there is no value. Raises Undecided if there are none."""
    by_grid = results.once(_by_grid)
    parts = [by_grid[grid, method] for grid in case.grids if (grid, method) in by_grid]
    found = pd.concat(parts) if parts else pd.DataFrame(columns=[key for key, _ in case.about])
    for key, value in case.about:
        found = found[found[key] == value]
    if found.empty:
        raise Undecided(f"no results of `{method}`: {case.name}")
    return found.set_index("seed").sort_index()


def some(results: Results, case: Case, method: str) -> pd.DataFrame | None:
    """The same, or None."""
    try:
        return runs(results, case, method)
    except Undecided:
        return None


def _by_grid(results: Results) -> dict[tuple[str, str], pd.DataFrame]:
    """By grid and method."""
    frame = results.frame
    if frame.empty:
        raise Undecided("no sample has a result")
    frame = frame.assign(relative_error=frame["relative_error"].astype(float))
    frame = frame.assign(size=frame["relative_error"].abs().fillna(1.0))
    return dict(iter(frame.groupby(["grid", "method"])))


def less(results: Results, case: Case, column: str, more: str, fewer: str) -> Interval:
    """How much less of a column one method has than the other, in pairs of the same seed."""
    one, other = _pairs(results, case, column, more, fewer)
    return Interval.mean(one - other)


def times(results: Results, case: Case, column: str, one: str, other: str) -> Interval:
    """How many times as much of a column one method has as the other, in pairs of the same seed."""
    first, second = _pairs(results, case, column, one, other)
    return Interval.mean(first / second)


def _pairs(results: Results, case: Case, column: str, *methods: str) -> tuple[pd.Series, pd.Series]:
    one, other = (runs(results, case, method)[column].astype(float) for method in methods)
    return one.align(other, join="inner")


def seen(found: pd.DataFrame) -> pd.DataFrame:
    """What runs without chance have alike: value, capacity [bit/s] and least delay [us]."""
    return pd.DataFrame({"value": found["value_bps"], "capacity": found["capacity_bps"], "us": 1e6 * found["delay_s"]})


def percent(share: float, sign: str = "") -> str:
    """`+3.1 %`."""
    return f"{100 * share:{sign}.1f} %"
