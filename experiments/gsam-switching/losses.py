"""What the authors suppose to be the cause of finding b: where MPTCP loses at the bottleneck, and where it does not."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from pathcast.lab.experiment import Finding
from pathcast.lab.interval import Interval
from pathcast.lab.plan import Claim
from pathcast.lab.verdict import Verdict

from .cells import Cell, paper_says, told


def lossy(claim: Claim, by_cell: Mapping[Cell, pd.DataFrame]) -> Finding:
    """Whether MPTCP loses in every transfer where it ought to, in none elsewhere: one that does otherwise says no.

    by_cell: `drops` and `completion_s` of its transfers; those that take the same time to the microsecond are one.
    """
    verdict, counts = Verdict(), {True: 0, False: 0}
    for cell, rows in by_cell.items():
        seen = rows["drops"] > 0
        share, ought = Interval.share(seen, rows["completion_s"]), paper_says(cell) < 0
        hits = int(seen.sum())
        against = hits > 0 if not ought else hits < len(seen)
        counts[ought] += not against
        rare = share.at_least(claim.threshold["with"]) if ought else share.at_most(claim.threshold["without"])
        verdict.needs(False if against else rare, f"{told(cell)}: drops in {hits} of {len(seen)} transfers")
    return verdict.finding(f"drops in all transfers of {counts[True]} cells, in none of {counts[False]}")
