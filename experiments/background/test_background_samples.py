"""What a sample of the background experiment computes, of traces and flows that nobody ran."""

from __future__ import annotations

from pathlib import Path

from pathcast.lab.experiment import Experiment
from pathcast.worlds.testing import Ran, flow

SAMPLES = Experiment(Path(__file__).parent).module("samples")


POINT = {"grid": "pairs", "role": "beside", "control": "nice", "rate_mbit": 20, "rtt_ms": 100, "buffer": 1.0}
POINT |= {"foreground": "reno", "seed": 3}
SETUP = {"control": {"nice": {"control": "nice"}}}


def test_bytes_are_those_between_the_two_times_of_each_flow(monkeypatch):
    import numpy as np

    windows = {
        "flow": np.array([1, 0, 1, 0, 1, 0, 1]),
        "time_s": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
        "acked_bytes": np.array([10, 100, 20, 300, 40, 700, 80]),
    }
    report = {"flows": [{"name": "foreground"}, {"name": "background"}]}
    monkeypatch.setattr("pathcast.simulation.run.simulate", lambda *_, **__: (report, {"windows": windows}))
    monkeypatch.setattr("pathcast.scenario.Scenario", lambda text: text)
    found = SAMPLES.sample({"text": "", "from_s": 3.0, "to_s": 6.5}, "sim")
    # the last ACK before 3 s was of 100 and 20 bytes, before 6.5 s of 700 and 40
    assert found == {"foreground_bytes": 600, "background_bytes": 20, "span_s": 3.5}


def test_emulated_bytes_are_linear_between_looks(monkeypatch):
    flows = (flow("foreground", {0.0: [0], 10.0: [1000], 20.0: [3000]}), flow("background", {0.0: [0], 20.0: [400]}))
    monkeypatch.setattr("pathcast.worlds.emu.Emu", Ran(*flows, world="emu"))
    about = {**SAMPLES.scenario(POINT, SETUP, "emu"), "from_s": 5.0, "to_s": 15.0}
    found = SAMPLES.sample(about, "emu")
    assert found == {"foreground_bytes": 1500, "background_bytes": 200, "span_s": 10.0}


def test_the_first_third_is_left_out_and_durations_are_reno_s():
    about = SAMPLES.scenario(POINT, SETUP, "emu")
    assert (about["from_s"], about["to_s"]) == (13.333, 40.0)
    # three periods of 1.5 RTT a packet, but 60 to 240 s
    assert [SAMPLES.duration_s(packets, 100, short=False) for packets in (100, 200, 1000)] == [60, 90, 240]
    assert [SAMPLES.duration_s(9, rtt, short=True) for rtt in (20, 100)] == [20, 40]
