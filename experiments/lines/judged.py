"""Rows as they are judged: what a line is and what was said of it, and the classes that rows belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]

# a property is said to be there from this probability on, or from this share of the load on
SAID = 0.5
# others' load below this share of the rate is none
NOBODY = 0.05


@dataclass(frozen=True)
class Property:
    """What a line is or is not. of: whether a row counts; so: whether it is; column: what was said, 0 to 1."""

    words: tuple[str, str]
    of: Callable[[Row], bool]
    so: Callable[[Row], bool]
    column: str

    def said(self, row: Row) -> bool | None:
        """None: nothing."""
        value = row.get(self.column)
        if value is None and self.column == "elastic" and _nobody(row):
            return False
        return None if value is None else value >= SAID

    def rows(self, rows: Sequence[Row]) -> list[tuple[bool, bool | None]]:
        """What is so, and what was said, of the rows that count."""
        return [(self.so(row), self.said(row)) for row in rows if row["error"] is None and self.of(row)]


def _nobody(row: Row) -> bool:
    """Whether it was said that there is no load, whose elasticity is no question then."""
    load = row.get("load_now")
    return load is not None and load < NOBODY * row["rate_mean_bps"]


def _every(row: Row, of: int, most: int) -> bool:
    """So many of the seeds, that classes are as large as each other."""
    return bool((row["seed"] - 1) % of < most)


# drawn lines by grid: 1800 of `queues`, 600 of `policed` and of `pairs`; quick runs have them in about the same shares
PROPERTIES: Mapping[str, Property] = {
    "fair": Property(("fair", "fifo"), lambda row: row["grid"] == "queues", lambda row: row["fair"], "is_fair"),
    "managed": Property(
        ("managed", "unmanaged"), lambda row: row["grid"] == "queues", lambda row: row["managed"], "is_managed"
    ),
    "policed": Property(
        ("policed", "not policed"),
        lambda row: row["grid"] == "policed" or (row["grid"] == "queues" and _every(row, 3, 1)),
        lambda row: row["grid"] == "policed",
        "is_policed",
    ),
    "elastic": Property(
        ("elastic", "inelastic or idle"),
        lambda row: row["grid"] == "queues" and (row["cross"] == "tcp" or _every(row, 2, 1)),
        lambda row: row["cross"] == "tcp",
        "elastic",
    ),
    "shared": Property(
        ("shared", "separate"), lambda row: row["grid"] == "pairs", lambda row: row["shared"], "is_shared"
    ),
}


def measured(rows: Sequence[Row], grids: Sequence[str]) -> list[Row]:
    """Rows of these grids that have a truth."""
    return [row for row in rows if row["error"] is None and row["grid"] in grids and "rate_mean_bps" in row]


def available(row: Row) -> float:
    """What is left of the line; of a fair queue what a further flow gets: its share, where the others are greedy."""
    truth: float = row["available_truth_bps"]
    if row.get("queue") in ("fair", "fq_codel") and row.get("flows"):
        return float(row["rate_mean_bps"]) / (row["flows"] + 1)
    return truth


def error(row: Row) -> float | None:
    """Of the available bandwidth, as a share of the line's mean rate."""
    value = row.get("available")
    return None if value is None else float((value - available(row)) / row["rate_mean_bps"])


def half_width(row: Row) -> float | None:
    """Of its interval, likewise; None too where it has no end."""
    low, high = row.get("available_low"), row.get("available_high")
    return None if low is None or high is None else float((high - low) / 2 / row["rate_mean_bps"])


def holds(row: Row, entry: str, truth: float) -> bool:
    """Whether an interval holds the truth. An end that is not there is no bound; no end at all holds nothing."""
    low, high = row.get(f"{entry}_low"), row.get(f"{entry}_high")
    if low is None and high is None:
        return False
    # rounding
    slack = 1e-9 * abs(truth)
    return (low is None or low <= truth + slack) and (high is None or truth - slack <= high)


def classes(row: Row) -> Iterator[str]:
    """Those that a drawn line is in, of which each must keep the bars."""
    if row["grid"] == "shipped":
        yield f"{row['line']}, {row['direction']}"
        return
    if row.get("policed_bps"):
        yield "policed"
    else:
        yield f"queue {row['queue']}"
        yield f"shape {row['shape']}"
    yield f"cross {row['kind']}"
    yield "above 100 Mbit/s" if row["rate_mean_bps"] > 100e6 else "up to 100 Mbit/s"


def by_class(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by class, in the order of their names."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for name in classes(row):
            found.setdefault(name, []).append(row)
    return dict(sorted(found.items()))
