"""The varying experiment: lines, their truth, claims true and false, the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SAMPLES, LINES = EXPERIMENT.plan, EXPERIMENT.module("samples"), EXPERIMENT.module("lines")


def row(point):
    found = {"value_bps": 4.1e6, "low_bps": 3.9e6, "high_bps": 4.3e6, "truth_bps": 4e6, "capacity_bps": 5.2e6}
    found |= {"rate_least_bps": 4e6, "rate_mean_bps": 5e6, "rate_most_bps": 6e6, "loss": 0.02, "loss_truth": 0.01}
    return {**point, **found, "seconds": 1.5, "bytes": 2_000_000, "error": None, "key": "k", "tries": 1}


def results(change=lambda row: {}):
    rows = [row(point) for point in PLAN.points("sim")]
    return Results([{**one, **change(one)} for one in rows], PLAN, "sim", False)


def test_every_line_is_a_scenario_and_the_same_each_time():
    for point in PLAN.points("sim"):
        if point["seed"] != 101:
            continue
        about = SAMPLES.scenario(point, {}, "sim")
        assert about == SAMPLES.scenario(point, {}, "sim")
        base = str(LINES.TOPOLOGIES) if "topology" in about else None
        Topology.parse(about["text"], base=base)
    with pytest.raises(PathcastError, match="aggregation"):
        LINES.draw("wireless", 0.0, 1)


def test_rates_over_time_begin_again_at_their_end():
    rates = [(0.0, 10.0), (15.0, 40.0), (30.0, 20.0)]
    assert LINES.between(rates, 0, 30) == (25.0, 10.0, 40.0)
    # 5 s at 20, 5 s at 10
    assert LINES.between(rates, 40, 50) == (15.0, 10.0, 20.0)
    assert LINES.between([(0.0, 7.0)], 3, 9) == (7.0, 7.0, 7.0)


def test_what_bounds_the_shipped_lines():
    assert LINES.shipped("policed", "out", 1, 1400)["rates"] == [(0.0, 20e6)]
    assert LINES.shipped("wifi", "in", 1, 1400)["rates"] == [(0.0, 300e6)]
    # PPPoE and the like are no IP bytes
    assert LINES.shipped("dsl", "out", 1, 1400)["rates"][0][1] == pytest.approx(40e6 * 1400 / 1434)
    # 9400 bytes a millisecond
    assert max(rate for _, rate in LINES.shipped("lte", "in", 1, 1400)["rates"]) <= 75.2e6
    assert len(LINES.shipped("5g", "out", 1, 1400)["rates"]) > 100


def test_a_still_line_is_measured_and_its_truth_is_the_ledgers():
    point = {"grid": "drawn", "line": "constant", "load": 0.5, "seed": 101}
    about = SAMPLES.scenario(point, {}, "sim")
    found = SAMPLES.sample(about, "sim")
    rate = about["rates"][0][1]
    assert found["rate_mean_bps"] == found["rate_most_bps"] == rate
    assert found["truth_bps"] == pytest.approx(rate / 2, rel=0.3)
    assert found["capacity_bps"] == pytest.approx(rate, rel=0.02)
    lossy = SAMPLES.sample(SAMPLES.scenario({**point, "line": "loss", "load": 0.0, "seed": 103}, {}, "sim"), "sim")
    assert lossy["loss_truth"] > 0


def test_claims_hold_on_good_runs_and_not_where_they_are_off():
    assert {name: one["holds"] for name, one in Verdicts(EXPERIMENT, results()).items()} == dict.fromkeys(
        ("capacity", "inside"), True
    )
    off = Verdicts(EXPERIMENT, results(lambda one: {"capacity_bps": 1e10} if one["line"] == "wifi" else {}))
    assert (off["capacity"]["holds"], off["capacity"]["reason"][-4:]) == (False, "wifi")
    off = Verdicts(EXPERIMENT, results(lambda one: {"low_bps": 4.05e6} if one["seed"] % 2 else {}))
    assert off["inside"]["holds"] is False
    none = Verdicts(EXPERIMENT, results(lambda one: {"value_bps": None, "capacity_bps": None}))
    assert {one["holds"] for one in none.values()} == {None}


def test_the_table_has_a_row_a_class():
    header, rows = EXPERIMENT.module("show").lines(results())
    assert len(rows) == 2 * len(LINES.CLASSES) + 16
    assert dict(zip(header, rows[0], strict=True)) == {
        "line": "constant, idle",
        "runs": "20",
        "no value": "0",
        "available off, median": "2.0 %",
        "bias": "+2.0 %",
        "inside": "20/20",
        "half-width": "4.0 %",
        "capacity off, median": "4.0 %",
        "absurd": "0",
        "loss off, mean [points]": "1.00",
        "most": "1.00",
        "s": "1.5",
        "MB": "2.0",
    }
