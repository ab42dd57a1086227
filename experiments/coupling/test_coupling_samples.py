"""What a sample of the coupling experiment computes, of flows that nobody ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment
from pathcast.worlds.testing import Ran, flow

SAMPLES = Experiment(Path(__file__).parent).module("samples")


def test_shares_are_of_the_last_three_quarters(monkeypatch):
    # until 15 s 9 and 1 MB; then 20 Mbit/s of 30 MB and 10 MB, and 10 Mbit/s beside
    coupled = flow("coupled", {0.0: [0, 0], 15.0: [9_000_000, 1_000_000], 60.0: [39_000_000, 11_000_000]})
    single = flow("single", {0.0: [0], 15.0: [50_000_000], 60.0: [70_000_000]})
    monkeypatch.setattr("pathcast.worlds.sim.Sim", Ran(coupled, single))
    about = SAMPLES.scenario(
        {"grid": "shared", "control": "lia", "loss": 0.01, "seed": 1}, {"end_s": {"shared": 60}}, "sim"
    )
    found = SAMPLES.sample(about, "sim")
    assert found["coupled_bps"] == pytest.approx(40e6 * 8 / 45)
    assert found["share"] == pytest.approx(2.0)
    assert found["least_part"] == pytest.approx(0.25)


def test_alone_there_is_no_share_and_the_smaller_part_may_be_either(monkeypatch):
    monkeypatch.setattr(
        "pathcast.worlds.sim.Sim", Ran(flow("coupled", {0.0: [0, 0], 15.0: [0, 0], 60.0: [1_000_000, 4_000_000]}))
    )
    about = SAMPLES.scenario({"grid": "disjoint", "control": "lia", "seed": 1}, {"end_s": {"disjoint": 60}}, "sim")
    found = SAMPLES.sample(about, "sim")
    assert (found["share"], found["least_part"]) == (None, 0.2)


def test_the_first_subflows_transition_is_over_its_own_threshold(monkeypatch):
    state = "".join(number.to_bytes(4, "little").hex() for number in (1, 40_000, 0, 0, 0, 0))
    shown = [
        {"phase": "smooth-transition", "id": n, "subflow": n, "rtt_s": 0.045 + n / 1e3, "state": state} for n in (2, 1)
    ]

    class Watch:
        def __init__(self, part, every_s, see):
            assert (part, every_s) == ("gsam", SAMPLES.LOOK_S)
            see(0.0, [{**one, "phase": "slow-start", "rtt_s": 0.04} for one in shown])
            see(1.0, shown)
            see(2.0, [{**one, "rtt_s": 9.0} for one in shown])

        __enter__ = __exit__ = lambda *_: None

    monkeypatch.setattr("pathcast.control.watch.Watch", Watch)
    monkeypatch.setattr("pathcast.worlds.emu.Emu", Ran(flow("coupled", {0.0: [0], 1.25: [1], 5.0: [9]}), world="emu"))
    point = {"grid": "transition", "control": "gsam", "subflows": 2, "seed": 1}
    found = SAMPLES.sample(SAMPLES.scenario(point, {"end_s": {"transition": 5}}, "emu"), "emu")
    assert found["first_ratio"] == pytest.approx(0.046 / 0.045)
    assert found["transitions"][0] == {"subflow": 2, "rtt_s": 0.047, "threshold_s": 0.045}


def test_a_scenario_says_delay_queue_and_loss_of_its_network():
    text = SAMPLES.scenario(
        {"grid": "shared", "control": "lia", "loss": 0.01, "seed": 1}, {"end_s": {"shared": 60}}, "sim"
    )["text"]
    for part in ('rate = "20Mbit"', 'delay = "20000us"', 'queue = "200 packets"', "loss = { ab = 0.01, ba = 0.0 }"):
        assert part in text
