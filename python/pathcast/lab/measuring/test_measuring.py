"""What measurements are judged by: the truth from ledgers, verdicts over runs, what peers printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathcast.lab.measuring.bars import Sample, judge, markdown, sample
from pathcast.lab.measuring.network import Cross, Link, Truth, toml, truth
from pathcast.lab.measuring.peers import iperf3, nuttcp, pathload, stored
from pathcast.lab.measuring.rows import ROWS, Row
from pathcast.worlds.measurement import Measurement
from pathcast.worlds.test_measurement import direction, document
from pathcast.worlds.topology import Topology


def link(name, rate, entered, delay="5ms", **more):
    counters = {"cross": {"entered": {"bytes": entered}}}
    return {"name": name, "params": {"rate": rate, "delay": delay, **more}, "counters": counters}


def ledger(at_s, *links):
    return {"groups": [{"since_start_s": at_s, "links": list(links)}]}


def test_the_truth_is_what_cross_traffic_left():
    before = ledger(10.0, link("a/ab", "3Mbit", 0), link("b/ab", "5Mbit", 1000), link("b/ba", "9Mbit", 0))
    after = ledger(12.0, link("a/ab", "3Mbit", 0), link("b/ab", "5Mbit", 751_000), link("b/ba", "9Mbit", 0))
    found = truth(before, after, "out")
    # 3 Mbit/s of 5 are taken, so that the second link leaves less than the first one can carry
    assert (found.available_bps, found.capacity_bps) == (2e6, 3e6)
    assert found.delay_s(1500) == pytest.approx(10e-3 + 12e-3 / 3 + 12e-3 / 5)
    assert truth(before, after, "in").available_bps == 9e6


def test_a_bucket_bounds_the_capacity():
    of = link("a/ab", "100Mbit", 0, bucket={"rate": "5Mbit", "burst": "1600B"})
    assert truth(ledger(0.0, of), ledger(1.0, of), "out").capacity_bps == 5e6


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_a_scenario(row):
    checked = Topology.parse(row.scenario(7)).scenario
    assert checked["seed"] == 7
    assert len(checked["paths"][0]["hops"]) == len(row.links) + 2


def test_links_keep_their_order_and_traffic():
    text = toml((Link('"3Mbit"'), Link('"5Mbit"', cross=(Cross("poisson", "1Mbit"), Cross("constant", "1Mbit")))))
    checked = Topology.parse(text).scenario
    assert [traffic["name"] for traffic in checked["traffic"]] == ["l2-0", "l2-1"]


def one(row, value, true=4e6, **cost):
    of = (
        direction(value) if value else {**direction(), "available_bps": {**direction()["available_bps"], "value": None}}
    )
    whole = {**document({"out": of}), **cost}
    found = Measurement.read([{"name": "p", "local": "a", "remote": "b"}], whole)
    return sample(row, "sim", 1, found, Truth(true, 5e6, 0.01, 2e-7))


def test_the_worst_run_decides_and_a_refusal_is_a_miss():
    row = Row("r", (Link('"5Mbit"'),), 0.02, bytes=3000, time_s=2)
    good = [one(row, v) for v in (4.0e6, 4.05e6, 3.95e6)]
    assert judge(row, "sim", good).holds
    assert judge(row, "sim", good).worst == pytest.approx(0.0125)
    assert not judge(row, "sim", [*good, one(row, 4.2e6)]).holds
    refused = judge(row, "sim", [*good, one(row, None)])
    assert (refused.refused, refused.holds) == (1, False)
    assert "1 refused" in markdown(refused)
    assert "**missed**" in markdown(refused)
    assert not judge(row, "sim", [*good, one(row, 4e6, probe_bytes=3001)]).holds
    assert not judge(row, "sim", [*good, one(row, 4e6, elapsed_s=2.1)]).holds
    assert not judge(row, "sim", [one(row, None)]).holds
    late = judge(row, "sim", [*good, replace(good[0], value=None, error=None, why="late")])
    assert (late.refused, late.late, late.holds) == (1, 1, False)
    assert "1 late" in markdown(late)
    assert "refused" not in markdown(late)
    assert [s.covered for s in good] == [True, True, True]
    assert one(row, 4e6, true=4.2e6).covered is False


def test_a_delay_is_judged_in_seconds():
    row = Row("d", (Link('"5Mbit"'),), 50e-6, "delay")
    found = one(row, 4e6)
    # 120 bytes at 2e-7 s a bit
    assert found.true == pytest.approx(0.010192)
    assert found.error == pytest.approx(-192e-6)
    assert not judge(row, "sim", [found]).holds
    assert "-192 µs" in markdown(judge(row, "sim", [found]))
    assert isinstance(found, Sample)


def test_what_peers_print():
    said = pathload("\t*****  RESULT *****\nAvailable bandwidth range : 4.55 - 4.70 (Mbps)\nMeasurements finished\n")
    assert (said.low, said.high, said.value) == (4.55e6, 4.70e6, pytest.approx(4.625e6))
    assert pathload("Available bandwidth range : 43.31 - 19.00 (Mbps)").low == 19e6
    assert pathload("terminated due to frequent CS @ sender") is None
    assert iperf3('{"end": {"sum_received": {"bits_per_second": 4781000.0}}}').value == 4.781e6
    assert iperf3('{"error": "unable to connect"}') is None
    assert iperf3("") is None
    assert nuttcp("    5.9973 MB /  10.52 sec =    4.7837 Mbps 0 %TX 1 %RX").value == 4.7837e6
    assert nuttcp("    0.0000 MB /   5.00 sec =    0.0000 Mbps") is None


def test_stored_figures():
    rows = stored()
    assert {row["capacity_mbps"] for row in rows} == {0.1, 5.0, 100.0}
    worst = max(abs(row["low_mbps"] / row["true_mbps"] - 1) for row in rows if row["tool"] == "PTR 2.2")
    assert worst > 0.2
