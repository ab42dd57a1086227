"""Results and goodput by path."""

from __future__ import annotations

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.parts import cells, judged
from pathcast.lab.plan import Claim

_COLUMNS = {"inline": "median", "inline-goodput": "goodput"}


def near(results: Results, claim: Claim) -> Finding:
    column = _COLUMNS[claim.id]
    found = [
        (f"{rate} Mbit/s, {rtt} ms, {cross:.0%}", [row[column] for row in rows])
        for (rate, rtt, cross), rows in cells(results, "paths").items()
    ]
    return judged(found, claim.threshold["least"], claim.threshold["most"], "paths")


CLAIMS = dict.fromkeys(_COLUMNS, near)
