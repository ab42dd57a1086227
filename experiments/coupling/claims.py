"""Each claim about the cells of a grid, by their means over seeds."""

from __future__ import annotations

from pathcast.lab.experiment import Finding, Results
from pathcast.lab.parts import cells, judged
from pathcast.lab.plan import Claim

# what of a sample each grid is about
COLUMNS = {"shared": "share", "disjoint": "least_part", "transition": "first_ratio"}
GRIDS = {"fair": "shared", "uncoupled": "shared", "both-paths": "disjoint", "transition": "transition"}


def mean(results: Results, claim: Claim) -> Finding:
    grid, bar = GRIDS[claim.id], claim.threshold
    column = COLUMNS[grid]
    found = []
    for (control, *rest), rows in cells(results, grid).items():
        if control != bar.get("control", control):
            continue
        name = f"loss {rest[0]:.1%}" if grid == "shared" else f"subflows {rest[0]}" if rest else control
        found.append((name, [row[column] for row in rows]))
    return judged(found, bar["least"], bar["most"])


CLAIMS = dict.fromkeys(GRIDS, mean)
