"""Emulated samples of the shipped experiments, as small as they can be, with the real kernel."""

from __future__ import annotations

import pytest
from conftest import ROOT

from pathcast.lab import worker
from pathcast.lab.experiment import Experiment

pytestmark = pytest.mark.privileged


def test_the_switching_experiments_settings_have_force_in_the_kernel():
    """50 KB in one subflow: TCP `paper` needs windows of 1, 2, 4, 8, 16 and 5 packets, TCP `linux` 10, 20 and 6."""
    experiment = Experiment(ROOT / "experiments" / "gsam-switching")
    setup = {**experiment.plan.setup, "emulated": {"controls": ["lia"], "pause_s": [0.0, 0.1]}}
    samples, took = experiment.module("samples"), {}
    for tcp in ("paper", "linux"):
        point = {"tcp": tcp, "rtt_ms": 150, "bytes": "50KB", "subflows": 1, "seed": 1}
        scenario = samples.scenario(point, setup, "emu")
        _, outcome = worker.compute(str(experiment.directory), experiment.code, "emu", "-", scenario)
        if outcome["error"] is not None and outcome["error"]["code"] == "late":
            pytest.skip("the emulator was late three times: this machine is too busy for it")
        assert outcome["error"] is None
        (row,) = outcome["values"]["transfers"]
        assert (row["drops"], row["timeouts"], row["retransmits"]) == (0, 0, 0)
        took[tcp] = row["completion_s"]
    # handshake and six rounds; handshake and three: late by what a busy machine takes, never early
    assert 7 * 0.15 <= took["paper"] < 7 * 0.15 + 0.4
    assert 4 * 0.15 <= took["linux"] < 4 * 0.15 + 0.3


def test_a_pathtester_row_is_measured_by_its_ledger():
    """5 Mbit/s with 1.5 of cross traffic, by no more than 300 kB."""
    experiment = Experiment(ROOT / "experiments" / "pathtester")
    point = {"network": "emulator", "direction": "out", "kind": "constant", "cross": 1.5, "method": "new-300kB"}
    scenario = experiment.module("samples").scenario({**point, "seed": 1}, experiment.plan.setup, "emu")
    _, outcome = worker.compute(str(experiment.directory), experiment.code, "emu", "-", scenario)
    if outcome["error"] is not None and outcome["error"]["code"] == "late":
        pytest.skip("the emulator was late three times: this machine is too busy for it")
    assert outcome["error"] is None
    found = outcome["values"]
    assert found["truth_bps"] == pytest.approx(3.5e6, rel=0.03)
    assert found["capacity_truth_bps"] == 5e6
    assert found["delay_s"] >= 0.999 * found["delay_truth_s"]
    assert found["bytes"] <= 300_000
    # a busy machine spoils the value, but not by so much
    assert found["value_bps"] is None or abs(found["relative_error"]) < 0.3
