"""Paths on which `measure` was once wrong, in the simulator: what it says of them now, beside the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathcast.lab.experiment import Experiment
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.topology import Topology

EXPERIMENT = Experiment(Path(__file__).parent)
SAMPLES, CASES, NETWORK = (EXPERIMENT.module(name) for name in ("samples", "cases", "network"))


def drawn(seed):
    return SAMPLES.sample(SAMPLES.scenario({"grid": "random", "seed": seed}, {}, "sim"), "sim")


def holds(row):
    return row["value_bps"] is not None and row["low_bps"] <= row["truth_bps"] <= row["high_bps"]


@pytest.mark.parametrize("seed", [10106, 10230, 10212])
def test_idle_fast_lines_are_idle(seed):
    row = drawn(seed)
    assert holds(row)
    assert abs(row["relative_error"]) < 0.003


@pytest.mark.parametrize("seed", [12166, 12500])
def test_even_traffic_between_all_packets_of_a_train_is_no_capacity(seed):
    assert abs(drawn(seed)["capacity_error"]) < 0.01


def test_a_loaded_line_with_a_short_queue_is_not_idle():
    row = drawn(11199)
    assert row["refused"] or abs(row["value_bps"] - row["truth_bps"]) < 0.2 * row["capacity_truth_bps"]


def test_a_full_queue_is_no_policer():
    """Bursts of more than the rate; a policer's losses would refute the capacity."""
    assert abs(drawn(10046)["capacity_error"]) < 0.01


def test_what_gives_way_to_probes_is_said_beside_them_and_without():
    """Near lines beside TCP: the mean of the whole measurement, of which probes see a part."""
    cases = (CASES.draw(seed) for seed in range(10001, 10400))
    near = [case.seed for case in cases if case.kind == "tcp" and case.rate_bps > 2e6 and case.rtt_s < 0.05]
    held = [holds(drawn(seed)) for seed in near[:20]]
    assert sum(held) >= 15, held


@pytest.mark.parametrize("seed", [1, 2])
def test_delays_that_wander_are_no_load(seed):
    jittery = NETWORK.Link('"200Mbit"', more='jitter = { amplitude = "2ms" }\n')
    with Sim(Topology.parse(NETWORK.toml((jittery,), '"1Gbit"', seed))) as network:
        network.wait(0.5)
        found = network.measure(request=Request(seed=seed)).paths[0].directions
    for direction in found.values():
        for rate in (direction.available_bps, direction.capacity_bps):
            assert rate.low <= 200e6 <= rate.high
            assert rate.value == pytest.approx(200e6, rel=0.03)


def test_a_queue_that_grows_leaves_nothing_and_not_less():
    def ledger(at_s, entered):
        counters = {"cross": {"entered": {"bytes": entered}}}
        link = {"name": "l1/ab", "params": {"rate": "8Mbit", "delay": "5ms"}, "counters": counters}
        return {"groups": [{"since_start_s": at_s, "links": [link]}]}

    assert NETWORK.truth(ledger(0, 0), ledger(1, 2_000_000), "out").available_bps == 0
