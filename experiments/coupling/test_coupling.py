"""The coupling experiment: scenarios, a simulated sample, GSAM's threshold, every claim true, false, and swapped."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment, Results
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SETUP, SAMPLES = EXPERIMENT.plan, EXPERIMENT.plan.setup, EXPERIMENT.module("samples")
GOOD = {"lia": 1.0, "reno": 1.9, "olia": 0.7, "balia": 0.95}


def good(point):
    spread = 0.01 * point["seed"]
    found = {"share": None, "least_part": 0.5, "first_ratio": None, "error": None, "key": "k", "tries": 1}
    if point["grid"] == "shared":
        found["share"] = GOOD[point["control"]] + spread
    if point["grid"] == "disjoint":
        found["least_part"] = {"lia": 0.45, "reno": 0.1}.get(point["control"], 0.3) + spread / 10
    if point["grid"] == "transition":
        found["first_ratio"] = 1.1 + spread
    return {**point, **found}


def results(world, change=lambda row: {}):
    return Results([{**(row := good(p)), **change(row)} for p in PLAN.points(world)], PLAN, world, False)


def judged(of):
    return {one["id"]: one["holds"] for one in EXPERIMENT.findings(of)}


@pytest.mark.parametrize("point", {(p["grid"], p["control"]): p for p in PLAN.points("emu")}.values(), ids=str)
def test_every_cell_is_a_scenario(point):
    about = SAMPLES.scenario({**point, "seed": 7}, SETUP, "emu")
    scenario = Topology.parse(about["text"]).scenario
    assert scenario["seed"] == 7
    assert [flow["name"] for flow in scenario["flows"]] == ["coupled", "single"][: 1 + (point["grid"] == "shared")]
    assert about["watch"] == (point["grid"] == "transition")


def test_a_simulated_sample():
    about = SAMPLES.scenario({"grid": "shared", "control": "lia", "loss": 0.01, "seed": 1}, SETUP, "sim")
    short = {**about, "end_s": 10, "text": about["text"].replace('end = "60s"', 'end = "10s"')}
    found = SAMPLES.sample(short, "sim")
    assert 0.3 < found["share"] < 3
    assert 0 < found["least_part"] <= 0.5
    assert (found["transitions"], found["first_ratio"]) == ([], None)


def test_the_threshold_is_that_of_the_state():
    state = "".join(number.to_bytes(4, "little").hex() for number in (1, 40_000, 0, 0, 0, 0))
    assert SAMPLES.threshold_s(state) == 0.045


def test_every_claim_holds_on_good_runs_and_fails_with_labels_swapped():
    assert set(judged(results("emu")).values()) == {True}
    assert set(judged(results("sim")).values()) == {True}
    swapped = judged(results("emu").swapped("control", "lia", "reno"))
    assert [swapped[name] for name in ("fair", "uncoupled", "both-paths")] == [False] * 3
    early = judged(results("emu", lambda row: {"first_ratio": 0.9} if row.get("subflows") == 4 else {}))
    assert (early["transition"], early["fair"]) == (False, True)


@pytest.mark.parametrize("seeds", [range(1, 6), [3]])
def test_what_was_not_seen_is_undecided_be_it_in_one_run(seeds):
    def unseen(row):
        return {"first_ratio": None} if row.get("subflows") == 2 and row["seed"] in seeds else {}

    assert judged(results("emu", unseen))["transition"] is None


def test_a_run_that_failed_is_told_and_holds_up_its_claims():
    of = results("emu", lambda row: {"error": "late: by 2 ms"} if row.get("loss") == 0.01 and row["seed"] == 4 else {})
    (fair,) = (one for one in EXPERIMENT.findings(of) if one["id"] == "fair")
    assert (fair["holds"], fair["reason"]) == (None, "4 of 5 seeds complete, 1 of 10 samples missing")
    assert judged(of)["both-paths"] is True


def test_simulated_runs_over_paths_of_their_own_are_one_run():
    of = results("sim", lambda row: {"least_part": 0.45} if row["grid"] == "disjoint" else {})
    (found,) = (one for one in EXPERIMENT.findings(of) if one["id"] == "both-paths")
    assert (found["holds"], found["ours"]) == (None, "0.45 (the same in all 5 runs)")
    rows = EXPERIMENT.module("show").table(of)[1]
    assert {row[-1] for row in rows if row[0].startswith("disjoint")} == {"the same in all"}
    assert judged(results("sim", lambda row: {"least_part": 0.25}))["both-paths"] is False


def test_the_table_has_a_row_a_cell():
    show = EXPERIMENT.module("show")
    header, rows = show.table(results("emu"))
    assert {len(row) for row in rows} == {len(header)}
    assert len(rows) == 8 + 4 + 3
    assert rows[0][1:] == ("lia", "2", "0.5%", "5", "1.03", "1.01 to 1.05")
    assert show.table(Results([], PLAN, "emu", False))[1] == []
