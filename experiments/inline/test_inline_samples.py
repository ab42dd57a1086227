"""What a sample of the inline experiment computes, of a flow that nobody ran and results that nobody measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment
from pathcast.worlds.testing import Ran, flow

SAMPLES = Experiment(Path(__file__).parent).module("samples")


POINT = {"grid": "paths", "rate_mbit": 20, "rtt_ms": 20, "cross": 0.4, "seed": 1}


def test_results_and_goodput_are_of_the_last_two_thirds_over_the_truth(monkeypatch):
    truth = 20e6 * 0.6 * 1448 / 1500

    class Watch:
        def __init__(self, part, every_s, see):
            assert part == "imtcp"
            # the clock begins at 100 s; a result is shown several times
            for at_s, number, over in (
                (105, 1, 9.0),
                (111, 2, 0.9),
                (112, 2, 7.0),
                (113, 3, 1.0),
                (114, 4, 1.3),
                (115, 5, 0),
            ):
                see(float(at_s), [{"words": [0, number], "available_bps": over * truth}])

        __enter__ = __exit__ = lambda *_: None

    monkeypatch.setattr("pathcast.control.watch.Watch", Watch)
    monkeypatch.setattr(SAMPLES.time, "monotonic", lambda: 100.0)
    acked = {0.0: [0], 10.0: [50_000_000], 30.0: [50_000_000 + round(0.8 * truth * 20 / 8)]}
    monkeypatch.setattr("pathcast.worlds.emu.Emu", Ran(flow("flow", acked), world="emu"))
    found = SAMPLES.sample(SAMPLES.scenario(POINT, {"end_s": {"20": 30}}, "emu"), "emu")
    assert found["results"] == pytest.approx([0.9, 1.0, 1.3])
    assert found["median"] == pytest.approx(1.0)
    assert found["a_second"] == pytest.approx(3 / 20)
    assert found["goodput"] == pytest.approx(0.8)


def test_a_scenario_says_its_path():
    text = SAMPLES.scenario(POINT, {"end_s": {"20": 30}}, "emu")["text"]
    for part in ('delay = "10000us"', 'queue = "33 packets"', 'rate = "8000kbit"', 'direction = "ab"'):
        assert part in text
