"""Unlike lines in the worlds experiment: what is sent, claim and table, and the simulator itself beside the kernel."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts

EXPERIMENT = Experiment(Path(__file__).parent)
PLAN, SAMPLES, SHOW = EXPERIMENT.plan, EXPERIMENT.module("samples"), EXPERIMENT.module("show")
UNLIKE = import_module(SAMPLES.__name__.replace("samples", "unlike"))
POINTS = [point for point in PLAN.points("sim") if point["grid"] == "unlike"]


def results(factor=lambda about: 1.0):
    rows = []
    for point in POINTS:
        about = (point["lines"], point["bytes"], point["first"])
        least, _ = UNLIKE.kernel().get(about, (0.0, 0.0))
        rows.append({**point, "error": None, "key": "k", "tries": 1, "sim_bps": [factor(about) * least * 1e6]})
    return Results(rows, PLAN, "sim", False)


def test_every_stored_transfer_is_one_of_the_plan():
    asked = {(point["lines"], point["bytes"], point["first"]) for point in POINTS}
    assert len(UNLIKE.kernel()) == 15
    assert set(UNLIKE.kernel()) <= asked


def test_the_first_path_is_the_one_that_comes_first():
    about = SAMPLES.scenario(POINTS[0] | {"first": "slow", "lines": "2, 200, 100; 50, 40, 200"}, PLAN.setup, "sim")
    assert (about["paths"], about["bytes"]) == (["slow", "fast"], 16_000_000)
    links = {link["name"]: link["ab"] for link in SAMPLES.topology(about).scenario["links"]}
    assert {name: (link["rate"], link["delay"]) for name, link in links.items()} == {
        "slow": ("2Mbit", "100ms"),
        "fast": ("50Mbit", "20ms"),
    }


def test_the_claim_holds_where_all_are_near_and_not_where_one_is_off():
    far = ("100, 180, 1000; 100, 20, 1000", "16MB", "slow")
    for factor, holds in ((lambda about: 1.1, True), (lambda about: 0.8 if about == far else 1.0, False)):
        found = Verdicts(EXPERIMENT, results(factor))["unlike"]
        assert found["holds"] is holds
    assert found["ours"] == "14 of 15 transfers"
    assert Verdicts(EXPERIMENT, Results([], PLAN, "sim", False))["unlike"]["holds"] is None
    # between the least and the most is as near as can be
    assert UNLIKE.gap([40.0], (39.0, 46.2)) == 1.0
    assert UNLIKE.gap([50.6], (23.0, 46.0)) == pytest.approx(1.1)


def test_the_table_has_a_row_a_stored_transfer():
    header, rows = SHOW.TABLES["unlike"](results())
    assert len(rows) == 15
    assert {len(row) for row in rows} == {len(header)}


@pytest.mark.parametrize(
    ("first", "least", "most"),
    [("fast", 66, 84), ("slow", 35, 53), ("alone", 88, 91)],
)
def test_the_simulator_is_near_the_kernel_whichever_line_comes_first(first, least, most):
    """What the kernel offers follows the first subflow's packets: with the slower line first the other waits."""
    from pathcast.worlds.sim import Sim

    point = {"grid": "unlike", "lines": "100, 180, 1000; 100, 20, 1000", "bytes": "16MB", "first": first, "seed": 1}
    about = SAMPLES.scenario(point, PLAN.setup, "sim")
    with Sim(SAMPLES.topology(about)) as network:
        paths = about["paths"]
        done = (
            network.transfer(paths, about["bytes"], "cubic", plain=True)
            if len(paths) > 1
            else network.tcp_probe(paths[0], about["bytes"], "cubic")
        )
    assert least < done.throughput_bps / 1e6 < most
