"""What a sample of the worlds experiment computes, of flows that nobody ran."""

from __future__ import annotations

from pathlib import Path

from pathcast.lab.experiment import Experiment
from pathcast.worlds.testing import Ran, flow

SAMPLES = Experiment(Path(__file__).parent).module("samples")


def test_a_ratio_is_the_simulators_over_the_kernels(monkeypatch):
    one, two = ({0.0: [0], 10.0: [acked]} for acked in (2_000_000, 1_000_000))
    sim = Ran(flow("flow1", one, bytes_retransmitted=20_000), flow("flow2", two, completion_s=3.0))
    emu = Ran(flow("flow1", two), flow("flow2", one, bytes_retransmitted=100_000, completion_s=4.0), world="emu")
    monkeypatch.setattr("pathcast.worlds.sim.Sim", sim)
    monkeypatch.setattr("pathcast.worlds.emu.Emu", emu)
    point = {"grid": "pair", "control": "cubic+reno", "rate_mbit": 20, "rtts_ms": "50", "buffer": 1.0, "seed": 1}
    found = SAMPLES.sample(SAMPLES.scenario(point, {"end_s": {"pair": 60}}, "emu"), "emu")
    assert found["ratio"] == [2.0, 0.5]
    assert found["sim_bps"] == [1.6e6, 0.8e6]
    assert found["emu_bps"] == [0.8e6, 1.6e6]
    assert (found["sim_again"], found["emu_again"]) == ([0.01, 0.0], [0.0, 0.05])
    assert (found["sim_s"], found["emu_s"]) == ([None, 3.0], [None, 4.0])


def test_a_flow_without_goodput_in_the_kernel_has_no_ratio(monkeypatch):
    monkeypatch.setattr("pathcast.worlds.sim.Sim", Ran(flow("flow1", {0.0: [0], 10.0: [9]})))
    monkeypatch.setattr("pathcast.worlds.emu.Emu", Ran(flow("flow1", {0.0: [0], 10.0: [0]}), world="emu"))
    point = {"grid": "single", "control": "reno", "rate_mbit": 20, "rtts_ms": "50", "buffer": 4.0, "seed": 1}
    about = SAMPLES.scenario(point, {"end_s": {"single": 15}}, "emu")
    assert SAMPLES.sample(about, "emu")["ratio"] == [None]
    # 20 Mbit/s of 50 ms are 83 packets
    for part in ('queue = { ab = "333 packets"', 'delay = "25000us"', 'end = "15s"'):
        assert part in about
