"""What a sample of the imtcp-bg experiment computes, of traces and pages that nobody ran."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from pathcast.lab.experiment import Experiment

SAMPLES = Experiment(Path(__file__).parent).module("samples")
SIMULATED = sys.modules[f"{SAMPLES.__package__}.simulated"]
ABOUT = {"from_s": 10, "pages_s": 30, "mss": 1448, "packet": 1500}


def test_a_summary_is_of_the_pages_and_bytes_within_its_times():
    times = [(9.9, 50.0, True), (10.0, 1.0, True), (20.0, 2.0, True), (25.0, 3.0, True), (30.0, 10.0, False)]
    times.append((30.1, 70.0, True))
    at = np.arange(0, 31)
    # 8 Mbit/s in all and 2 of the background; more of both before 10 s
    total, own = (np.where(at < 10, 9e6 * at, 90e6 + rate * (at - 10)) for rate in (1e6, 0.25e6))
    found = SIMULATED.summary(ABOUT, times, at, total, own)
    assert (found["bg_bps"], found["fg_bps"]) == (2e6, 6e6)
    assert (found["pages"], found["unfinished"]) == (4, 1)
    assert (found["page_s"], found["page_median_s"]) == (4.0, 2.5)
    assert found["page_p95_s"] == pytest.approx(8.95)


def test_acknowledged_bytes_are_those_of_the_flow_by_its_last_ack():
    windows = {
        "flow": np.array([0, 1, 0, 1]),
        "time_s": np.array([1.0, 1.5, 2.0, 3.0]),
        "acked_bytes": np.array([10, 100, 30, 300]),
    }
    assert SIMULATED._acked(windows, 0, np.array([0.0, 1.0, 1.9, 2.0, 9.0])).tolist() == [0, 10, 10, 30, 30]
    assert SIMULATED._acked(windows, 1, np.array([1.4, 2.9, 3.0])).tolist() == [0, 100, 300]


def test_by_second_are_kilobits():
    assert SIMULATED._by_second(np.array([0.0, 125_000.0, 125_500.0])) == [1000, 4]


def test_drops_are_the_backgrounds_at_the_bottleneck_five_seconds_before_and_after_a_join():
    drops = {
        "time_s": np.array([4.9, 5.0, 5.0, 9.9, 10.0, 14.9, 15.0, 12.0, 12.0]),
        "flow": np.array([0, 2, 1, 4, 0, 1, 0, 5, 0]),  # 5: a page
        "link": np.array([0, 0, 0, 0, 0, 0, 0, 0, 1]),  # 1: the way back
    }
    assert SIMULATED._around(drops, 5, [10.0]) == {"drops_before": [3], "drops_after": [2]}


@pytest.mark.parametrize("several", [False, True])
def test_a_run_reads_the_traces(monkeypatch, several):
    windows = {
        "flow": np.array([0, 0]),
        "time_s": np.array([10.0, 30.0]),
        "acked_bytes": np.array([1_448_000, 3 * 1_448_000]),
    }
    queues = {  # the second link direction is the way back
        "link": np.array([0, 1, 0, 1]),
        "time_s": np.array([10.0, 10.0, 30.0, 30.0]),
        "carried_bytes": np.array([2e6, 9e9, 7e6, 9e9]),
    }
    drops = {"time_s": np.array([12.0]), "flow": np.array([0]), "link": np.array([0])}
    flows = [{"name": "bg1", "retransmits": 7, "completion_s": None}]
    flows += [
        {"name": "page1", "retransmits": 9, "completion_s": 0.5},
        {"name": "page2", "retransmits": 9, "completion_s": None},
    ]
    monkeypatch.setattr(SIMULATED, "asked", lambda about: [(11.0, 1000), (20.0, 1000)])
    monkeypatch.setattr(SIMULATED, "_text", lambda *_: "")
    monkeypatch.setattr(SIMULATED, "Scenario", lambda text: text)
    traces = {"windows": windows, "queues": queues, "drops": drops}
    monkeypatch.setattr(SIMULATED, "simulate", lambda *_, **__: ({"flows": flows}, traces))
    more = {"end_s": 40, "joins_s": [0.0, 10.0], "leaves_s": [30.0, 35.0] if several else None}
    found = SIMULATED.run({**ABOUT, **more})
    # 2000 packets of 1500 B in 20 s; the bottleneck carried 5 MB
    assert (found["bg_bps"], found["fg_bps"]) == (1.2e6, 0.8e6)
    assert (found["pages"], found["unfinished"], found["page_s"], found["retransmits"]) == (2, 1, (0.5 + 20) / 2, 7)
    assert ("carried_kbps" in found) is several
    if several:
        assert found["carried_kbps"][15] == 2000
        assert found["bg_kbps"][0][9] == 12_000
        assert (found["drops_before"], found["drops_after"]) == ([0], [1])
