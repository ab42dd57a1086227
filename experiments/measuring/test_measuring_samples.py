"""What a sample of the measuring and pathtester experiments computes, of a measurement that nobody made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as N

import pytest

from pathcast.lab.experiment import Experiment

EXPERIMENT = Experiment(Path(__file__).parent)
MEASURED, NETWORK = EXPERIMENT.module("measured"), EXPERIMENT.module("network")


def direction(value, packet_bytes=120):
    rate = N(value=value and value, low=0.9, high=1.1, why=None if value else "few")
    capacity = N(value=10.0, low=9.0, high=11.0)
    return N(
        available_bps=rate,
        capacity_bps=capacity,
        delay_s=N(minimum=N(value=0.02), error=1e-5, packet_bytes=packet_bytes),
        loss=N(share=0.25),
        bytes=7,
    )


def columns(value=4.0, packet_bytes=120):
    found = N(paths=[N(directions={"in": direction(value, packet_bytes)})], elapsed_s=3.0, probe_bytes=900)
    # truths: available, capacity, propagation [s], seconds a bit
    return MEASURED.columns(found, "in", NETWORK.Truth(5.0, 8.0, 0.01, 1e-5), NETWORK.Truth(1.0, 1.0, 0.1, 1e-4))


def test_every_column_is_what_it_says():
    found = columns()
    assert (found["value_bps"], found["low_bps"], found["high_bps"], found["truth_bps"]) == (4.0, 0.9, 1.1, 5.0)
    assert (found["capacity_bps"], found["capacity_low_bps"], found["capacity_high_bps"]) == (10.0, 9.0, 11.0)
    assert (found["capacity_truth_bps"], found["capacity_error"]) == (8.0, pytest.approx(0.25))
    assert found["relative_error"] == pytest.approx(-0.2)
    assert (found["loss"], found["seconds"], found["bytes"], found["refused"]) == (0.25, 3.0, 900, None)
    assert (found["delay_s"], found["delay_bound_s"]) == (0.02, 1e-5)
    assert found["delay_truth_s"] == pytest.approx(0.01 + 120 * 8e-5)
    assert columns(packet_bytes=1400)["delay_truth_s"] == pytest.approx(0.01 + 1400 * 8e-5)
    assert columns(packet_bytes=None)["delay_truth_s"] == found["delay_truth_s"]
    # there and back
    assert found["rtt_small_s"] == pytest.approx(0.11 + 120 * 8 * 1.1e-4)
    assert found["rtt_large_s"] == pytest.approx(0.11 + 1400 * 8 * 1.1e-4)


def test_without_a_value_there_is_no_interval():
    found = columns(value=None)
    assert (found["value_bps"], found["low_bps"], found["high_bps"], found["relative_error"]) == (None,) * 4
    assert (found["refused"], found["truth_bps"]) == ("few", 5.0)


def test_what_other_real_packets_took_counts_only_where_it_is_asked_for():
    def ledger(at_s, entered, offered, dropped):
        counters = {"cross": {"entered": {"bytes": entered}}, "offered": {"bytes": offered}}
        counters["dropped"] = {"queue": {"bytes": dropped}}
        link = {"name": "l1/ab", "params": {"rate": "8Mbit", "delay": "5ms"}, "counters": counters}
        return {"groups": [{"since_start_s": at_s, "links": [link]}]}

    before, after = ledger(1.0, 1000, 5000, 500), ledger(3.0, 251_000, 1_305_000, 50_500)
    assert NETWORK.truth(before, after, "out").available_bps == 7e6
    # 1.25 MB came in two seconds, of which 250 kB were the measurement's own
    assert NETWORK.truth(before, after, "out", 250_000).available_bps == 3e6
