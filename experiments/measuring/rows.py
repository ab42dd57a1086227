"""The rows of the bars: the runs of one network that a claim is about, and the worst of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pathcast.lab.experiment import Results
from pathcast.lab.interval import same
from pathcast.lab.plan import Claim

# quantity: its value, the truth and the ends of its 90 % interval
COLUMNS = {
    "available": ("value_bps", "truth_bps", "low_bps", "high_bps"),
    "capacity": ("capacity_bps", "capacity_truth_bps", "capacity_low_bps", "capacity_high_bps"),
    "delay": ("delay_s", "delay_truth_s", None, None),
}
_BAR = ("quantity", "limit", "bytes", "time_s")


@dataclass(frozen=True)
class Row:
    """The runs of one network that finished, and how many are missing or were late; errors relative, of `delay` [s]."""

    claim: Claim
    name: str
    runs: Sequence[Mapping[str, Any]]
    missing: int

    @property
    def quantity(self) -> str:
        return self.claim.threshold["quantity"]

    @property
    def errors(self) -> list[float]:
        """Of the runs with a value."""
        value, truth, *_ = COLUMNS[self.quantity]
        found = [(run[value], run[truth]) for run in self.runs if run.get(value) is not None]
        return [v - t if self.quantity == "delay" else v / t - 1 for v, t in found]

    @property
    def refused(self) -> int:
        """Runs without a value."""
        return len(self.runs) - len(self.errors)

    @property
    def alike(self) -> bool:
        """Whether nothing was left to chance: all runs have the same, which is one."""
        values = [run.get(COLUMNS[self.quantity][0]) for run in self.runs]
        return len(values) > 1 and None not in values and same(values)

    @property
    def of(self) -> str:
        """How many runs there are."""
        return f"the same in all {len(self.runs)} runs" if self.alike else f"{len(self.runs)} runs"

    @property
    def worst(self) -> float | None:
        return max(self.errors, key=abs, default=None)

    @property
    def mean(self) -> float | None:
        return math.fsum(self.errors) / len(self.errors) if self.errors else None

    @property
    def intervals(self) -> list[tuple[bool, float]]:
        """Of the runs with one: whether it holds the truth, and half of it over the capacity."""
        value, truth, low, high = COLUMNS[self.quantity]
        found = [run for run in self.runs if low and run.get(value) is not None]
        return [(r[low] <= r[truth] <= r[high], (r[high] - r[low]) / 2 / r["capacity_truth_bps"]) for r in found]

    def most(self, column: str) -> float:
        """The greatest of all runs."""
        return max((run[column] for run in self.runs if run.get(column) is not None), default=math.nan)

    def wrong(self) -> list[str]:
        """What the bar forbids."""
        bar, found = self.claim.threshold, []
        if self.refused:
            found.append(f"{self.refused} of {len(self.runs)} runs have no value")
        if self.worst is not None and abs(self.worst) > bar["limit"]:
            found.append(f"off by {told(self.quantity, self.worst)}")
        if self.runs and self.most("bytes") > bar.get("bytes", math.inf):
            found.append(f"{self.most('bytes') / 1e3:,.0f} kB")
        if self.runs and self.most("seconds") > bar.get("time_s", math.inf):
            found.append(f"{self.most('seconds'):.2f} s")
        return found


def rows(results: Results, claim: Claim) -> list[Row]:
    """The rows of a claim, in the plan's order; of networks without a finished run there are none."""
    wanted = {key: value for key, value in claim.threshold.items() if key not in _BAR}

    def chosen(row: Mapping[str, Any]) -> bool:
        return all(row.get(key) in (value if isinstance(value, list) else [value]) for key, value in wanted.items())

    names: dict[str, list[Mapping[str, Any]]] = {}
    for row in filter(chosen, results.rows):
        names.setdefault(_name(row), []).append(row)
    found = []
    for name, of in names.items():
        runs = [row for row in of if row["error"] is None]
        found.append(Row(claim, name, runs, len(set(claim.seeds) - {row["seed"] for row in runs})))
    return [row for row in found if row.runs]


def _name(row: Mapping[str, Any]) -> str:
    cross = f", {row['kind']} {row['cross']:g}" if row["cross"] else ""
    short = ", short" if row["budget"] == "short" else ""
    return f"{row['network']}{cross}{short}{', in' if row['direction'] == 'in' else ''}"


def told(quantity: str, value: float | None, sign: str = "+") -> str:
    """An error as people read it."""
    if value is None:
        return "-"
    return f"{value * 1e6:{sign}.0f} us" if quantity == "delay" else f"{value * 100:{sign}.2f} %"
