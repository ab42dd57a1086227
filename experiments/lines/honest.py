"""How often a measurement says what is not so, of rows that `fresh.py` has made.

    python experiments/lines/honest.py out.jsonl…  [--by wide cross effort]

Of each class and of capacity and available bandwidth: right (the interval holds the truth), told (it does not, or there
is none, and a reason is given), wrong (it does not, and none is). Of a fair queue beside TCP both what its flow gets
by its share and what the others left by the ledger are true.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from pathcast.lab.experiment import Experiment

HERE = Path(__file__).parent
# what a value is off by may be this share of its truth besides: a packet more or less, a clock's rate
SLACK = 0.01
ENTRIES = ("capacity", "available")


def truths(row: Mapping[str, Any], entry: str) -> tuple[float, float]:
    """The least and the most that is true [bit/s]."""
    if entry == "capacity":
        return row["rate_least_bps"], row["rate_most_bps"]
    both = Experiment(HERE).module("judged").available(row), row["available_truth_bps"]
    return min(both), max(both)


def verdict(row: Mapping[str, Any], entry: str) -> str:
    """right, told or wrong."""
    value, why = row.get(entry), row.get(f"{entry}_why")
    low, high = row.get(f"{entry}_low"), row.get(f"{entry}_high")
    if row.get("refused") or (value is None and why):
        return "told"
    least, most = truths(row, entry)
    holds = (low or 0.0) <= most * (1 + SLACK) and (high is None or high >= least * (1 - SLACK))
    return "right" if holds and not why else "told" if why else "wrong"


def table(rows: list[dict[str, Any]], by: list[str]) -> Iterator[str]:
    """CSV: a line a class, and one of all; widths and errors as shares of the rate."""
    classes: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        classes.setdefault(tuple(str(row.get(key)) for key in by), []).append(row)
    judged = Experiment(HERE).module("judged")
    numbers = (judged.half_width, lambda row: None if (off := judged.error(row)) is None else abs(off))
    words = ("right", "told", "wrong")
    heads = [f"{entry}_{word}" for entry in ENTRIES for word in words]
    yield ",".join([*by, "lines", *heads, "half_width_median", "error_median"])
    for name, of in [*sorted(classes.items()), (("all",) + ("",) * (len(by) - 1), rows)]:
        said = [verdict(row, entry) for entry in ENTRIES for row in of]
        halves = (said[: len(of)], said[len(of) :])
        counts = [str(half.count(word)) for half in halves for word in words]
        some = [[value for row in of if (value := number(row)) is not None] for number in numbers]
        yield ",".join([*name, str(len(of)), *counts, *(f"{median(one):.4f}" if one else "" for one in some)])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--by", nargs="+", default=["wide", "cross"])
    parser.add_argument("--wrong", action="store_true", help="each that is wrong, too")
    arguments = parser.parse_args()
    rows = [json.loads(line) for file in arguments.rows for line in file.open()]
    rows = [row for row in rows if row["error"] is None and "rate_mean_bps" in row]
    print("\n".join(table(rows, arguments.by)))
    if arguments.wrong:
        wrong = [row for row in rows if "wrong" in (verdict(row, "capacity"), verdict(row, "available"))]
        print("\n".join(Experiment(HERE).module("fresh").worst(wrong, len(wrong))))


if __name__ == "__main__":
    main()
