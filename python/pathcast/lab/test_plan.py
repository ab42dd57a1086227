"""Plans: points, ranges, worlds, the quick subset, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.plan import Plan

PLAN = """
schema = "pathcast.plan/1"
title = "A title"
paper = "A paper"
worlds = ["sim", "emu"]

[[grid]]
name = "main"
[grid.over]
size = ["1KB", "2KB"]
n = "1..3"
seed = "1..10"
[grid.quick]
seed = 1
[grid.emu]
size = "1KB"

[[grid]]
name = "more"
worlds = ["sim"]
quick = false
[grid.over]
x = 0.5

[[claim]]
id = "core-one"
kind = "paper"
text = "it is so"
paper = "yes"
statistic = "a mean"
threshold = 0.1
seeds = ["1..3", 7]
"""


def test_points_are_the_product_the_last_key_the_fastest():
    plan = Plan.parse(PLAN)
    points = list(plan.points("sim"))
    assert len(points) == 2 * 3 * 10 + 1
    assert points[0] == {"grid": "main", "size": "1KB", "n": 1, "seed": 1}
    assert points[1]["seed"] == 2
    assert points[-1] == {"grid": "more", "x": 0.5}


def test_worlds_and_the_quick_subset():
    plan = Plan.parse(PLAN)
    assert len(list(plan.points("emu"))) == 30
    assert len(list(plan.points("sim", quick=True))) == 6
    quick = [tuple(point.items()) for point in plan.points("emu", quick=True)]
    assert set(quick) < {tuple(point.items()) for point in plan.points("emu")}


def test_the_quick_subset_may_differ_in_a_world():
    own = PLAN.replace("[grid.emu]", "[grid.quick.emu]\nn = 2\n[grid.emu]")
    plan = Plan.parse(own)
    assert [len(list(plan.points(world, quick=True))) for world in ("sim", "emu")] == [6, 1]
    plan = Plan.parse(own.replace("[grid.quick.emu]\nn = 2", "emu = false"))
    assert [len(list(plan.points(world, quick=True))) for world in ("sim", "emu")] == [6, 0]
    for bad, words in ((own.replace("n = 2", "m = 2"), "`m`"), (own.replace("n = 2", "n = []"), "`n` has no value")):
        with pytest.raises(ValueError, match=words):
            Plan.parse(bad)


def test_a_list_of_samples_py_has_the_values_of_its_name():
    own = PLAN.replace('size = ["1KB", "2KB"]', 'size = { from = "sizes" }').replace(
        'size = "1KB"', 'size = { from = "one" }'
    )
    plan = replace(Plan.parse(own), named={"sizes": ["3KB", "4KB"], "one": ["4KB"]}.__getitem__)
    assert plan.lists() == ["sizes", "one"]
    assert [next(plan.points(world))["size"] for world in plan.worlds] == ["3KB", "4KB"]
    assert len(list(plan.points("sim"))) == 2 * 3 * 10 + 1
    with pytest.raises(PathcastError, match="`sizes` is of samples"):
        next(Plan.parse(own).points("sim"))
    for bad in ("{ form = 'sizes' }", "{ from = 1 }"):
        with pytest.raises(ValueError, match=r"grid `main`: `size` is .* are wanted"):
            Plan.parse(own.replace('{ from = "sizes" }', bad))


def test_claims_have_their_seeds_and_worlds():
    (claim,) = Plan.parse(PLAN).claims
    assert claim.seeds == (1, 2, 3, 7)
    assert claim.worlds == ("sim", "emu")
    assert claim.threshold == 0.1


def test_a_claim_says_what_it_is_and_may_differ_by_world():
    (claim,) = Plan.parse(PLAN).claims
    assert (claim.kind, claim.uncounted) == ({"sim": "paper", "emu": "paper"}, None)
    own = PLAN.replace('kind = "paper"', 'kind = { sim = "calibrated", emu = "ours" }\nuncounted = "by construction"')
    (claim,) = Plan.parse(own).claims
    assert (claim.kind, claim.uncounted) == ({"sim": "calibrated", "emu": "ours"}, "by construction")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("pathcast.plan/1", "pathcast.plan/2", "pathcast.plan/2"),
        ('title = "A title"', "", "lacks `title`"),
        ('title = "A title"', 'titel = "A title"', "titel"),
        ('["sim", "emu"]', '["host"]', "host"),
        ('["sim", "emu"]', "[]", "worlds"),
        ('worlds = ["sim"]', 'worlds = ["host"]', "grid `more`"),
        ('name = "more"', 'name = "main"', "name of its own"),
        ('n = "1..3"', "n = []", "`n` has no value"),
        ("seed = 1\n", "sed = 1\n", "sed"),
        ("quick = false", "quick = true", "not a table"),
        ('statistic = "a mean"', "", "lacks `statistic`"),
        ('kind = "paper"\n', "", "claim `core-one` lacks `kind`"),
        ('kind = "paper"', 'kind = "true"', "claim `core-one`: kind is 'true'; allowed: paper, calibrated, ours"),
        ('kind = "paper"', 'kind = { sim = "paper" }', "kind is for sim; the claim's are sim, emu"),
        ('kind = "paper"', 'kind = "paper"\nuncounted = false', "the reason is wanted"),
        ('paper = "A paper"', 'paper = "A paper"\nreconstruction = "GSAM"', "reconstruction is 'GSAM'; a list"),
        ("x = 0.5", "x = 0.5\nseed = 'one'", "`seed` is text in one place and a number in another: 'one'"),
        ("[[claim]]", "[[clame]]", "clame"),
        ("[grid.over]\nx", "[grid.under]\nx", "under"),
        ('title = "A title"', "title =", "line 3"),
    ],
)
def test_plans_that_are_refused_name_what_is_wrong(tmp_path, old, new, words):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN.replace(old, new))
    with pytest.raises(PathcastError, match=words) as error:
        Plan.load(file)
    assert error.value.exit == 2
    assert str(file) in error.value.message


def test_a_plan_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(PathcastError, match="cannot read"):
        Plan.load(tmp_path / "plan.toml")
