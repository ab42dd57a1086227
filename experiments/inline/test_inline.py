"""The inline experiment: scenarios, every claim true and false, the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SAMPLES = EXPERIMENT.plan, EXPERIMENT.module("samples")


def results(change=lambda row: {}):
    def good(point):
        middle = 1.0 + 0.01 * point["seed"]
        found = {
            "results": [0.9, middle, 1.3],
            "median": middle,
            "a_second": 10.0,
            "goodput": middle - 0.05,
            "error": None,
        }
        row = {**point, **found, "key": "k", "tries": 1}
        return {**row, **change(row)}

    return Results([good(point) for point in PLAN.points("emu")], PLAN, "emu", False)


def judged(of):
    return Verdicts(EXPERIMENT, of)


def test_every_path_is_a_scenario():
    for point in PLAN.points("emu"):
        about = SAMPLES.scenario(point, PLAN.setup, "emu")
        scenario = Topology.parse(about["text"]).scenario
        assert scenario["flows"][0]["control"] == "imtcp"
        assert len(scenario["traffic"]) == bool(point["cross"])
        assert about["end_s"] == {20: 30, 100: 60}[point["rtt_ms"]]
    assert about["truth_bps"] == pytest.approx(100e6 * 0.4 * 1448 / 1500)


def test_claims_hold_on_good_runs_and_not_where_one_path_is_off():
    assert {one["holds"] for one in judged(results()).values()} == {True}
    off = judged(
        results(lambda row: {"median": 1.2, "goodput": 0.8} if (row["rtt_ms"], row["cross"]) == (20, 0.6) else {})
    )
    assert {one["holds"] for one in off.values()} == {False}
    assert off["inline"]["reason"].startswith("20 Mbit/s, 20 ms, 60%: 1.20")
    none = judged(results(lambda row: {"median": None, "results": []} if row["cross"] == 0.2 else {}))
    assert (none["inline"]["holds"], none["inline"]["reason"]) == (None, "not run: 4 of 16 paths")


def test_the_table_tells_everything_over_the_truth():
    show = EXPERIMENT.module("show")
    header, rows = show.table(results())
    assert {len(row) for row in rows} == {len(header)}
    assert rows[0] == ("20", "20", "0%", "3", "10.0", "1.02", "1.01 to 1.03", "0.90 to 1.30", "0.97")
    assert show.table(results(lambda row: {"results": [], "median": None}))[1] == []
    assert SAMPLES.tenths([1.0]) == (1.0, 1.0)
