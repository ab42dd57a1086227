"""What failed or was never run is told in the finding, and no claim holds without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.lab.coverage import covered
from pathcast.lab.experiment import Finding, Results
from pathcast.lab.plan import Plan

PLAN = Plan.parse("""
schema = "pathcast.plan/1"
title = "-"
paper = "-"
worlds = ["sim", "emu"]
[[grid]]
name = "main"
over = { control = ["lia", "reno"], seed = "1..3" }
quick = { seed = "1..2" }
emu = { seed = "2..3" }
[[grid]]
name = "other"
worlds = ["sim"]
over = { control = "lia", size = 5, seed = "2..9" }
[[claim]]
id = "all"
kind = "ours"
text = "-"
paper = "-"
statistic = "-"
threshold = 0
[[claim]]
id = "reno"
kind = "ours"
text = "-"
paper = "-"
statistic = "-"
threshold = 0
samples = { grid = "main", control = "reno" }
[[claim]]
id = "seeds"
kind = "ours"
text = "-"
paper = "-"
statistic = "-"
threshold = 0
samples = { grid = ["main", "other"], control = "lia" }
seeds = ["1..3"]
""")
YES, NO, PERHAPS = Finding("2", True), Finding("2", False, "it is 2"), Finding("2", None, "not certain")


def results(world="sim", quick=False, change=lambda point: {}):
    rows = [{**point, "error": None, **change(point)} for point in PLAN.points(world, quick)]
    return Results([row for row in rows if row["error"] != "gone"], PLAN, world, quick)


def told(of, claim, found=YES):
    judged = covered(of, PLAN.claims)[claim].judged(found)
    return judged.ours, judged.holds, judged.reason


def lost(error, **where):
    return lambda point: {"error": error} if where.items() <= point.items() else {}


@pytest.mark.parametrize("world", ["sim", "emu"])
@pytest.mark.parametrize("claim", ["all", "reno", "seeds"])
def test_where_nothing_is_missing_nothing_is_said(world, claim):
    assert told(results(world), claim) == ("2", True, None)
    assert told(results(world), claim, NO) == ("2", False, "it is 2")


@pytest.mark.parametrize("error", ["late: by 2 ms", "gone"])
def test_a_sample_that_failed_or_is_not_there_lets_nothing_hold(error):
    of = results(change=lost(error, grid="main", control="reno", seed=2))
    lacks = "2 of 3 seeds complete, 1 of 3 samples missing"
    assert told(of, "reno") == (f"2; {lacks}", None, lacks)
    assert told(of, "reno", PERHAPS) == (f"2; {lacks}", None, "not certain")
    # what is there may say no
    assert told(of, "reno", NO) == (f"2; {lacks}", False, "it is 2")
    assert told(of, "all")[0] == "2; 8 of 9 seeds complete, 1 of 14 samples missing"
    assert told(of, "seeds") == ("2", True, None)


def test_only_the_claims_own_seeds_count():
    assert told(results(change=lost("x: y", grid="other", seed=9)), "seeds") == ("2", True, None)
    found = told(results(change=lost("x: y", grid="other", seed=3)), "seeds")
    assert found[0] == "2; 2 of 3 seeds complete, 1 of 5 samples missing"


def test_a_part_of_the_plan_says_how_much_it_has_and_may_hold():
    assert told(results(quick=True), "reno") == ("2; 2 of 3 seeds, 2 of 3 samples", True, None)
    of = results(quick=True, change=lost("late: by 2 ms", control="reno", seed=2))
    assert told(of, "reno")[:2] == (
        "2; 1 of 2 seeds complete, 1 of 2 samples missing; 2 of 3 seeds, 2 of 3 samples",
        None,
    )
    chosen = results(quick=True, change=lost("gone", control="lia"))
    assert told(chosen, "all")[0] == "2; 2 of 9 seeds, 2 of 14 samples"
    assert told(replace(results(), quick=True), "all") == ("2", True, None)
    # of every seed, but not of every controller
    of = replace(results(change=lost("gone", grid="main", control="lia")), quick=True)
    assert told(of, "seeds")[0] == "2; 2 of 3 seeds, 2 of 5 samples"
    assert told(of, "all")[0] == "2; 11 of 14 samples"


def test_without_any_sample_and_of_grids_that_are_gone_nothing_is_counted():
    assert told(Results([], PLAN, "sim", False), "all") == ("2", True, None)
    row = {"grid": "older", "error": None}
    assert told(Results([*results().rows, row], PLAN, "sim", False), "all") == ("2", True, None)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ('{ contrl = "reno" }', "no key `contrl`"),
        ('{ control = "cubic" }', "no sample has control = 'cubic'"),
        ('{ grid = "third" }', "no sample has grid = 'third'"),
    ],
)
def test_samples_that_no_grid_has_are_refused(samples, words):
    text = PLAN.text.replace('{ grid = "main", control = "reno" }', samples)
    with pytest.raises(ValueError, match=words):
        Plan.parse(text)
