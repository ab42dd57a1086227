"""The switching experiment: scenarios, samples, and every claim against results with swapped labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.lab import worker
from pathcast.lab.experiment import Experiment, Results
from pathcast.lab.testing import Verdicts

HERE = Path(__file__).parent
CALIBRATED = (1001, 1002)


@pytest.fixture(scope="module")
def experiment():
    return Experiment(HERE)


def computed(experiment, points):
    """Their rows, computed in this process."""
    samples, setup = experiment.module("samples"), experiment.plan.setup
    rows = []
    for point in points:
        about = (str(HERE), experiment.code, "sim", "-", samples.scenario(point, setup, "sim"))
        _, outcome = worker.compute(*about)
        assert outcome["error"] is None
        rows.append({**point, **outcome["values"], "error": None, "key": "-"})
    return rows


def _kept(point):
    """Few seeds, but as many as the spread of a cell needs."""
    if point["grid"] == "main":
        seeds = range(1, 11) if (point["tcp"], point["rtt_ms"]) == ("paper", 150) else range(1, 4)
        return point["seed"] in seeds and point["control"] in ("lia", "gsam", "gsam_default", "subflow_switch")
    if point["grid"] == "calibration":
        chosen = (point["theta_floor_us"], point["samples"], point["st_div"]) == (1000, 4, 8)
        return chosen and point["theta_shift"] in (3, 6) and point["seed"] in CALIBRATED
    if point["grid"] == "factors":
        judged = point["subflows"] >= 3 and point["bytes"] not in ("50KB", "250KB")
        return judged and point["seed"] < 59 and point["control"] != "gsam_default"
    return point["grid"] == "calibration-lia" and point["seed"] in CALIBRATED


@pytest.fixture(scope="module")
def results(experiment):
    """Few seeds of what the claims ask for, as a quick run."""
    points = [point for point in experiment.plan.points("sim") if _kept(point)]
    return Results(computed(experiment, points), experiment.plan, "sim", True)


def verdicts(experiment, results):
    return Verdicts(experiment, results)


HOLD = (
    "core-a-few",
    "core-a-many",
    "core-b",
    "core-c",
    "core-d",
    "cause-border",
    "linux-b",
    "calibrated",
)


@pytest.mark.parametrize("claim", HOLD)
def test_a_claim_holds_with_few_seeds_and_says_what_it_found(experiment, results, claim):
    found = verdicts(experiment, results)[claim]
    assert found["holds"] is True, found["reason"]
    assert "cells" in found["ours"]


@pytest.mark.parametrize("claim", ["linux-a", "one-way-a"])
def test_a_claim_that_does_not_hold_has_its_reason(experiment, results, claim):
    found = verdicts(experiment, results)[claim]
    assert found["holds"] is False
    assert "n = 3" in found["reason"]


def test_that_few_seeds_have_no_other_drops_is_not_yet_certain(experiment, results):
    found = verdicts(experiment, results)["cause-b"]
    assert found["holds"] is None
    assert found["ours"] == "drops in all transfers of 18 cells, in none of 22; 10 of 50 seeds, 400 of 2000 samples"


def test_that_nothing_contradicts_is_not_that_it_holds(experiment, results):
    found = verdicts(experiment, results)["default"]
    assert found["holds"] is False
    assert "50 KB, n = 1: 0.000 s (the same in all 10 runs)" in found["reason"]
    assert "as the paper in 24 of 40 cells" in found["ours"]
    assert "against it in 0" in found["ours"]


# for each claim the two labels without whose difference it would say nothing
LABELS = {
    "core-a-few": ("lia", "gsam"),
    "core-a-many": ("lia", "gsam"),
    "core-b": ("lia", "gsam"),
    "core-c": ("gsam", "subflow_switch"),
    "core-d": ("lia", "subflow_switch"),
    "cause-b": ("lia", "gsam"),
    "cause-border": ("lia", "gsam"),
    "one-way-a": ("lia", "gsam"),
    "linux-a": ("lia", "gsam"),
    "linux-b": ("lia", "gsam"),
    "default": ("lia", "gsam_default"),
}


@pytest.mark.parametrize(("claim", "labels"), LABELS.items())
def test_a_claim_is_false_with_the_controllers_swapped(experiment, results, claim, labels):
    found = verdicts(experiment, results.swapped("control", *labels))[claim]
    assert found["holds"] is False
    assert found["reason"]
    assert claim != "default" or "against it in 24" in found["ours"]


def test_the_calibration_is_false_with_its_parameters_swapped(experiment, results):
    found = verdicts(experiment, results.swapped("theta_shift", 3, 6))["calibrated"]
    assert found["holds"] is False
    assert "(3, 1000, 4, 8)" in found["reason"]


def test_without_samples_every_claim_is_undecided(experiment):
    found = verdicts(experiment, Results([], experiment.plan, "sim", False))
    assert {one["holds"] for one in found.values()} == {None}
    assert set(found) == {*LABELS, "calibrated", *experiment.module("adaptive").CLAIMS}


def test_the_calibration_has_seeds_of_its_own(experiment):
    seeds = {"calibration": set(), "else": set()}
    for point in experiment.plan.points("sim"):
        seeds["calibration" if point["grid"].startswith("calibration") else "else"].add(point["seed"])
    assert not seeds["calibration"] & seeds["else"]
    for claim in experiment.plan.claims:
        assert set(claim.seeds) <= seeds["calibration" if claim.id == "calibrated" else "else"]


def test_quick_is_part_of_the_whole(experiment):
    def points(quick):
        return {tuple(point.items()) for point in experiment.plan.points("sim", quick)}

    assert points(True) < points(False)


def test_on_the_quick_subset_no_claim_fails_for_want_of_samples(experiment, results):
    quick = {tuple(sorted(point.items())) for point in experiment.plan.points("sim", quick=True)}
    own = ("completion_s", "drops", "timeouts", "retransmits", "error", "key")
    kept = [r for r in results.rows if tuple(sorted((k, v) for k, v in r.items() if k not in own)) in quick]
    found = verdicts(experiment, Results(kept, experiment.plan, "sim", True))
    undecided = {
        "one-way-a",
        "cause-b",
        "cause-border",
        *experiment.module("adaptive").CLAIMS,
    }  # test_adaptive.py has the latter
    assert {name for name, one in found.items() if one["holds"] is None} == undecided


def test_a_scenario_says_the_network_and_the_controller(experiment):
    samples, setup = experiment.module("samples"), experiment.plan.setup
    point = {"tcp": "paper", "rtt_ms": 300, "bytes": "1MB", "subflows": 3, "control": "gsam", "seed": 7}
    sets = dict(samples.scenario(point, setup, "sim")["sets"])
    assert sets["link.bottleneck.delay"] == "148000us"
    assert (sets["tcp.initial_ssthresh"], sets["tcp.sack"], sets["tcp.delayed_ack"]) == ("65535B", "false", "1")
    assert (sets["control.gsam.theta_shift"], sets["seed"], sets["bytes"]) == ("6", "7", "1MB")
    swept = dict(samples.scenario({**point, "theta_shift": 2}, setup, "sim")["sets"])
    assert swept["control.gsam.theta_shift"] == "2"
    # the same start for every controller: seeds are compared in pairs
    other = dict(samples.scenario({**point, "control": "lia"}, setup, "sim")["sets"])
    assert other["flow.bulk.start"] == sets["flow.bulk.start"]
    with pytest.raises(PathcastError, match=r"setup.tcp.nosuch"):
        samples.scenario({**point, "tcp": "nosuch"}, setup, "sim")


def test_without_a_queue_the_completion_time_is_that_of_slow_start(experiment):
    point = {"tcp": "paper", "rtt_ms": 150, "bytes": "50KB", "subflows": 1, "control": "lia", "seed": 1}
    (row,) = computed(experiment, [point])
    # handshake, then windows of 1, 2, 4, 8, 16 and 5 segments of 1400 B; 16 of them at 5 Mbit/s add their line time
    assert row["completion_s"] == pytest.approx(7 * 0.15, abs=0.05)
    assert (row["drops"], row["timeouts"], row["retransmits"]) == (0, 0, 0)


def test_tables_and_figures(experiment, results):
    import matplotlib.pyplot as plt

    from pathcast.results.style import style

    show = experiment.module("show")
    header, rows = show.TABLES["sides"](results)
    assert rows[0][2:] == ("++++++++",) * 2 + ("++------",) * 3
    ours = next(row for row in rows if row[:2] == ("TCP `paper`, RTT 150 ms", "calibrated"))
    assert ours[2:] == rows[0][2:]
    assert {len(row) for row in rows} == {len(header)}
    header, rows = show.TABLES["calibration"](results)
    assert [row[:5] for row in rows] == [("6", "1000", "4", "8", rows[0][4]), ("3", "1000", "4", "8", rows[1][4])]
    assert int(rows[0][4]) > int(rows[1][4])
    header, rows = show.TABLES["completion-paper"](results)
    assert len(rows) == 35
    assert rows[0][:2] == ("50KB", "MPTCP (LIA)")
    assert " ± " in rows[0][2]
    with style():
        figure = show.FIGURES["completion-paper"](results)
    assert len(figure.axes) == 6
    plt.close(figure)
