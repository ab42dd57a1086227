"""Managed queues beside stored runs of ns-3, docs/evidence/ns3-managed.csv."""

from __future__ import annotations

import managed
import pytest

CELLS = managed.cells()


def test_the_runs_are_whole():
    assert set(CELLS) == {(disc, flows) for disc in ("codel", "fq_codel", "pie", "red") for flows in (1, 4, 16)}
    # with a single flow codel and fq_codel draw nothing
    assert all(len(runs) == (1 if flows == 1 and "codel" in disc else 3) for (disc, flows), runs in CELLS.items())
    assert {run["ns3"] for runs in CELLS.values() for run in runs} == {"3.37-2"}


@pytest.mark.parametrize("cell", [pytest.param(cell, id=f"{cell[0]}-{cell[1]}") for cell in CELLS])
def test_a_queue_does_what_it_does_in_ns3(cell):
    runs = CELLS[cell]
    ours, theirs = managed.mean(map(managed.ours, runs)), managed.mean(map(managed.theirs, runs))
    if cell == ("fq_codel", 16):
        # its runs in ns-3 are of two kinds, by which flows are in step: between them, and a little
        spread = [managed.theirs(run) for run in runs]
        for name in ("goodput_mbit", "drops", "sojourn_ms"):
            values = [getattr(row, name) for row in spread]
            assert 0.95 * min(values) < getattr(ours, name) < 1.05 * max(values), name
        return
    assert ours.goodput_mbit == pytest.approx(theirs.goodput_mbit, rel=0.05)
    assert ours.sojourn_ms == pytest.approx(theirs.sojourn_ms, rel=0.05)
    # a packet more or less where there are few
    assert ours.drops == pytest.approx(theirs.drops, rel=0.05, abs=1)
