"""What a sample of the switching experiment computes, of reports that nobody simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment

SAMPLES = Experiment(Path(__file__).parent).module("samples")


def test_a_sample_has_the_flows_own_counts(monkeypatch):
    subflows = [{"drops": 3, "timeouts": 9}, {"drops": 4, "timeouts": 9}]
    flow = {"completion_s": 2.5, "timeouts": 2, "retransmits": 8, "subflows": subflows}
    monkeypatch.setattr(SAMPLES, "simulate", lambda *_: ({"flows": [flow]}, {}))
    monkeypatch.setattr(SAMPLES, "Scenario", lambda *_: None)
    found = SAMPLES.sample({"text": "", "sets": []}, "sim")
    assert found == {"completion_s": 2.5, "drops": 7, "timeouts": 2, "retransmits": 8}
    flow["completion_s"] = None
    with pytest.raises(Exception, match="had not ended"):
        SAMPLES.sample({"text": "", "sets": []}, "sim")


def test_the_bottleneck_has_the_round_trip_less_its_access_links():
    setup = Experiment(Path(__file__).parent).plan.setup
    point = {"tcp": "paper", "rtt_ms": 150, "bytes": "1MB", "subflows": 3, "control": "lia", "seed": 1}
    sets = dict(SAMPLES.scenario(point, setup, "sim")["sets"])
    assert (sets["link.bottleneck.delay"], sets["subflows"], sets["end"]) == ("73000us", "3", "600s")
    assert sets["link.c-r1.jitter"] == '{ amplitude = "500us" }'
