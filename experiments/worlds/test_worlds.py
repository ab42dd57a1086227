"""The worlds experiment: scenarios, every claim true and false, the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SAMPLES = EXPERIMENT.plan, EXPERIMENT.module("samples")


def results(change=lambda row, n: 1.0):
    rows = []
    for point in PLAN.points("emu"):
        if point["grid"] == "drawn":
            continue
        n = len(point["control"].split("+"))
        ratio = [change(point, i) * (1 + 0.001 * point["seed"]) for i in range(n)]
        found = {"ratio": ratio, "sim_bps": [one * 1e7 for one in ratio], "emu_bps": [1e7] * n}
        found |= {"sim_again": [0.0] * n, "emu_again": [0.01] * n, "error": None, "key": "k", "tries": 1}
        rows.append({**point, **found})
    return Results(rows, PLAN, "emu", False)


def judged(of):
    return Verdicts(EXPERIMENT, of)


OF_CELLS = EXPERIMENT.module("claims").GRIDS


def holds(of):
    """By the claims about cells: what became of each."""
    found = judged(of)
    return {name: found[name]["holds"] for name in OF_CELLS}


@pytest.mark.parametrize("grid", OF_CELLS)
def test_every_cell_is_a_scenario(grid):
    for point in PLAN.points("emu"):
        if point["grid"] == grid and point["seed"] == 1:
            scenario = Topology.parse(SAMPLES.scenario(point, PLAN.setup, "emu")).scenario
            assert len(scenario["paths"]) == len(point["rtts_ms"].split("+"))
            assert [flow["control"] for flow in scenario["flows"]] == point["control"].split("+")
            assert bool(scenario["end"]) == (grid != "short")


def test_claims_hold_where_the_worlds_agree_and_not_where_one_flow_is_off():
    assert set(holds(results()).values()) == {True}
    for grid in OF_CELLS:
        off = holds(results(lambda point, n, grid=grid: 0.8 if point["grid"] == grid and n == 0 else 1.0))
        assert {name for name, one in off.items() if one is not True} == {grid}
        assert off[grid] is False
    pair = judged(results(lambda point, n: 1.3 if point["control"] == "cubic+reno" and n == 1 else 1.0))["pair"]
    assert pair["reason"].startswith("reno beside cubic, 20 Mbit/s, 50 ms, 0.25 BDP: 1.30")


def test_three_runs_have_the_interval_of_three_runs():
    """Student's t of two degrees of freedom is 4.303: 1.05 +- 0.124 may be more than 1.15."""
    wide = results(lambda point, n: 1 + 0.05 * (point["seed"] - 1))
    assert set(holds(wide).values()) == {None}
    assert "1.05 ± 0.13" in judged(wide)["single"]["reason"]
    # three flows that came to the same thing are one
    assert set(holds(results(lambda point, n: 1 / (1 + 0.001 * point["seed"]))).values()) == {None}


def test_a_flow_without_goodput_in_the_kernel_is_told():
    def lost(point, n):
        return float("nan") if (point["grid"], point["seed"], n) == ("short", 2, 0) else 1.0

    assert [name for name, one in holds(results(lost)).items() if one is None] == ["short"]
    assert "(2 of 3 seeds)" in judged(results(lost))["short"]["reason"]


def test_tables():
    show = EXPERIMENT.module("show")
    for of in (results(), Results([], PLAN, "emu", False)):
        for make in show.TABLES.values():
            header, rows = make(of)
            assert {len(row) for row in rows} <= {len(header)}
    assert show.summary(results())[1][0] == ("single", "36", "1.00", "1.00", "1.00")
    row = show.table(results())[1][-1]
    assert row[:3] == ("short", "cubic, 100 Mbit/s, 100 ms, 1MB", "3")
    assert row[-2:] == ("0.00%, 1.00%", "1.00")
