"""Claims about cells: which are planned, when a mean is between its bounds, what the cells make of the claim."""

from __future__ import annotations

import math

import pytest

from pathcast.lab.experiment import Results, Undecided
from pathcast.lab.parts import cells, judged
from pathcast.lab.plan import Plan

PLAN = Plan.parse("""
schema = "pathcast.plan/1"
title = "-"
paper = "-"
worlds = ["sim"]
[[grid]]
name = "main"
over = { control = ["lia", "reno"], loss = [0.0, 0.1], seed = "1..3" }
[[grid]]
name = "other"
over = { control = "lia", seed = 1 }
""")
# mean 1, 95 % interval 0.75 to 1.25
ONE = (1.0, 1.1, 0.9)


def row(control, loss, seed, error=None):
    return {"grid": "main", "control": control, "loss": loss, "seed": seed, "error": error}


def test_cells_are_those_of_the_plan_and_hold_what_finished():
    rows = [row("reno", 0, 1), row("lia", 0.1, 1), row("lia", 0.1, 2, "late: by 2 ms")]
    rows += [{"grid": "other", "control": "lia", "loss": None, "seed": 1, "error": None}]
    found = cells(Results(rows, PLAN, "sim", False), "main")
    assert list(found) == [("lia", 0.0), ("lia", 0.1), ("reno", 0.0), ("reno", 0.1)]
    assert [len(of) for of in found.values()] == [0, 1, 1, 0]
    assert list(cells(Results(rows, PLAN, "sim", False), "other").values()) == [[rows[-1]]]
    assert cells(Results(rows, PLAN, "sim", False), "third") == {}


def test_rows_of_cells_that_are_planned_no_more_are_passed_over():
    rows = [row("cubic", 0.1, 1), row("lia", 0.2, 1), row("lia", 0.1, 1)]
    rows += [{"grid": "main", "control": "lia", "seed": 1, "error": None}]
    found = cells(Results(rows, PLAN, "sim", False), "main")
    assert [len(of) for of in found.values()] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("least", "most", "holds"),
    [(0.7, 1.3, True), (0.7, math.inf, True), (0.9, 1.3, None), (1.3, 1.5, False), (0.5, 0.7, False), (0.7, 1.1, None)],
)
def test_a_mean_is_between_its_bounds_if_its_whole_interval_is(least, most, holds):
    found = judged([("a", ONE), ("b", ONE)], least, most)
    assert (found.ours, found.holds) == ("1.00 ± 0.25, 1.00 ± 0.25", holds)


OFF, NEAR = (2.0, 2.1, 1.9), (1.2, 1.3, 1.1)


@pytest.mark.parametrize(
    ("values", "verdict", "reason"),
    [
        ((ONE, ONE), True, None),
        ((ONE, OFF, NEAR), False, "c1: 2.00 ± 0.25"),
        ((ONE, NEAR), None, "not certain: c1: 1.20 ± 0.25"),
        ((ONE, (1.0,)), None, "not certain: c1: 1.00 in one run"),
        ((ONE, (1.0, None, None)), None, "not certain: c1: 1.00 in one run (1 of 3 seeds)"),
        ((ONE, (*ONE, None)), None, "not certain: c1: 1.00 ± 0.25 (3 of 4 seeds)"),
        ((ONE, (*OFF, None)), False, "c1: 2.00 ± 0.25 (3 of 4 seeds)"),
        ((ONE, (1.0, 1.0, 1.0)), None, "not certain: c1: 1.00 (the same in all 3 runs)"),
        ((ONE, (2.0, 2.0, 2.0)), False, "c1: 2.00 (the same in all 3 runs)"),
        ((ONE, ()), None, "not run: 1 of 2 cells"),
        ((NEAR, ()), None, "not certain: c0: 1.20 ± 0.25. not run: 1 of 2 cells"),
        ((OFF,) * 5, False, "c0: 2.00 ± 0.25; c1: 2.00 ± 0.25; c2: 2.00 ± 0.25 and 2 more"),
    ],
)
def test_a_claim_holds_if_every_cell_does(values, verdict, reason):
    found = judged([(f"c{n}", of) for n, of in enumerate(values)], 0.7, 1.3)
    assert (found.holds, found.reason) == (verdict, reason)
    told = [line for line in found.details if not line.startswith(("missed", "not certain"))]
    assert len(told) == sum(bool(of) for of in values)


def test_many_cells_are_counted_and_none_is_undecided():
    assert judged([(f"c{n}", ONE if n else OFF) for n in range(5)], 0.7, 1.3, "paths").ours == "4 of 5 paths"
    with pytest.raises(Undecided, match="none of its runs"):
        judged([("a", ()), ("b", (None,))], 0.7, 1.3)
