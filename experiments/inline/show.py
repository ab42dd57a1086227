"""A row a path: medians of the runs, their least and greatest, and all results of all runs."""

from __future__ import annotations

from statistics import median

from pathcast.lab.experiment import Results, Table
from pathcast.lab.parts import cells

from .samples import tenths


def table(results: Results) -> Table:
    """Everything but rates over the truth."""
    header = (
        "Mbit/s",
        "RTT ms",
        "cross",
        "runs",
        "results a second",
        "result / truth",
        "runs' medians",
        "10 to 90 %",
        "goodput / truth",
    )
    found = []
    for (rate, rtt, cross), rows in cells(results, "paths").items():
        good = [row for row in rows if row["results"]]
        if not good:
            continue
        everything, medians = [one for row in good for one in row["results"]], [row["median"] for row in good]
        low, high = tenths(everything)
        cells_ = (
            f"{sum(row['a_second'] for row in good) / len(good):.1f}",
            f"{median(everything):.2f}",
            f"{min(medians):.2f} to {max(medians):.2f}",
            f"{low:.2f} to {high:.2f}",
            f"{median(row['goodput'] for row in good):.2f}",
        )
        found.append((str(rate), str(rtt), f"{cross:.0%}", str(len(good)), *cells_))
    return header, found


TABLES = {"paths": table}
FIGURES = {}
