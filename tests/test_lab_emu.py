"""Emulated samples of the shipped experiments, as small as they can be, with the real kernel."""

from __future__ import annotations

import time

import pytest
from conftest import ROOT

from pathcast.lab import worker
from pathcast.lab.experiment import Experiment

pytestmark = pytest.mark.privileged

# how long a busy machine has for one try that is in time
PATIENCE_S = 60


def samples(experiment, scenario):
    """Values of one sample after the other, for a minute; those in which the emulator was late are passed over."""
    end, found = time.monotonic() + PATIENCE_S, 0
    while not found or time.monotonic() < end:
        _, outcome = worker.compute(str(experiment.directory), experiment.code, "emu", "-", scenario)
        late = outcome["error"] is not None and outcome["error"]["code"] == "late"
        if late and time.monotonic() < end:
            continue
        assert outcome["error"] is None
        found += 1
        yield outcome["values"]


@pytest.mark.parametrize(("tcp", "windows", "slack_s"), [("paper", 6, 0.4), ("linux", 3, 0.3)])
def test_the_switching_experiments_settings_have_force_in_the_kernel(tcp, windows, slack_s):
    """50 KB in one subflow: TCP `paper` needs windows of 1, 2, 4, 8, 16 and 5 packets, TCP `linux` 10, 20 and 6."""
    experiment = Experiment(ROOT / "experiments" / "gsam-switching")
    setup = {**experiment.plan.setup, "emulated": {"controls": ["lia"], "pause_s": [0.0, 0.1]}}
    point = {"tcp": tcp, "rtt_ms": 150, "bytes": "50KB", "subflows": 1, "seed": 1}
    least_s = (1 + windows) * 0.15  # the handshake, then a round for each
    for values in samples(experiment, experiment.module("samples").scenario(point, setup, "emu")):
        (row,) = values["transfers"]
        assert (row["drops"], row["timeouts"], row["retransmits"]) == (0, 0, 0)
        assert row["completion_s"] >= least_s  # never early
        if row["completion_s"] < least_s + slack_s:
            return
    raise AssertionError(f"it took {row['completion_s']} s")


def test_a_pathtester_row_is_measured_by_its_ledger():
    """5 Mbit/s with 1.5 of cross traffic, by no more than 300 kB."""
    experiment = Experiment(ROOT / "experiments" / "pathtester")
    point = {"network": "emulator", "direction": "out", "kind": "constant", "cross": 1.5, "method": "new-300kB"}
    scenario = experiment.module("samples").scenario({**point, "seed": 1}, experiment.plan.setup, "emu")
    for found in samples(experiment, scenario):
        assert found["truth_bps"] == pytest.approx(3.5e6, rel=0.03)
        assert found["capacity_truth_bps"] == 5e6
        assert found["delay_s"] >= found["delay_truth_s"] - 20e-6  # the emulator may be so early (worker.rs, EARLY)
        assert found["bytes"] <= 300_000
        # a busy machine may spoil the value; then the next one is judged
        if found["value_bps"] is not None and abs(found["relative_error"]) < 0.3:
            return
    raise AssertionError(f"the last of them: {found}")
