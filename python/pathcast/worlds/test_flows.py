"""Several flows at once: which are run and for how long, their results in the simulator, goodput between samples."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.flows import Sample, plans
from pathcast.worlds.results import Verdict
from pathcast.worlds.sim import Sim
from pathcast.worlds.testing import two_paths
from pathcast.worlds.topology import Topology

LINKS = 'name = "compete"\nseed = 5\nend = "6s"\n' + two_paths("10Mbit", ("10ms", "15ms"), "50 packets")
FLOWS = """
[[flow]]
name = "first"
paths = ["path1"]
control = "reno"
[[flow]]
name = "second"
paths = ["path1"]
control = "reno"
start = "1s"
stop = "5s"
[[flow]]
name = "both"
paths = ["path1", "path2"]
control = "lia"
bytes = "3MB"
subflows = 3
[[flow]]
name = "pages"
paths = ["path2"]
web = { page = "20KB", think = "100ms" }
"""


def topology(*sets):
    return Topology.parse(LINKS + FLOWS, sets)


@pytest.fixture
def world():
    with Sim(topology()) as world:
        yield world


def test_plans_are_those_of_the_scenario():
    of = {plan.name: plan for plan in plans(topology().scenario, None, None)}
    assert list(of) == ["first", "second", "both", "pages"]
    assert [(p.start_s, p.stop_s, p.bytes, p.web) for p in of.values()] == [
        (0.0, 6.0, None, False),
        (1.0, 5.0, None, False),
        (0.0, 6.0, 3_000_000, False),
        (0.0, 6.0, None, True),
    ]
    assert of["both"].paths == ("path1", "path2", "path1")
    assert [p.multipath for p in of.values()] == [False, False, True, False]
    [second] = plans(topology().scenario, ["second"], 3.5)
    assert (second.start_s, second.stop_s) == (1.0, 3.5)
    endless = topology("end=", "flow.first.stop=2s", "flow.pages.stop=2s").scenario
    assert [plan.stop_s for plan in plans(endless, None, None)] == [2.0, 5.0, None, 2.0]


@pytest.mark.parametrize(
    ("names", "until", "words"),
    [
        (["third"], None, "no flow `third`; allowed: first, second, both, pages"),
        ([], None, "name one or more, each once"),
        (["first", "first"], None, "each once"),
        (None, 0.0, "allowed are times above 0"),
        (None, float("nan"), "allowed are times above 0"),
        (["first", "second"], 0.5, "`second` starts at 1 s, but the run ends at 0.5 s"),
    ],
)
def test_what_cannot_be_run_is_refused(world, names, until, words):
    with pytest.raises(PathcastError, match=words) as error:
        world.flows(names, until)
    assert error.value.exit == Exit.USAGE


def test_wrong_times_between_samples_and_scenarios_without_flows_are_refused(world):
    for every in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(PathcastError, match=r"allowed are 0\.001 to 3600"):
            world.flows(every_s=every)
    bare = Topology.parse(LINKS)
    with Sim(bare) as other, pytest.raises(PathcastError, match="`compete` has no"):
        other.flows()


def test_flows_share_a_link_between_their_times(world):
    result = world.flows(["first", "second"])
    first, second = result.flows
    assert (result.world, result.scenario, result.seed, result.ended_s) == ("sim", "compete", 5, 6.0)
    assert (first.started_s, first.stopped_s, first.finished_s) == (0.0, 6.0, None)
    assert (second.started_s, second.stopped_s, second.completion_s) == (1.0, 5.0, None)
    assert first.goodput(1.5, 5) + second.goodput(1.5, 5) == pytest.approx(9.6e6, rel=0.05)
    assert first.goodput(0.5, 1) > 9e6
    assert second.goodput(0, 1) == 0
    assert second.goodput(5, 6) == 0
    assert [s.t_s for s in first.samples] == pytest.approx([0.1 * n for n in range(1, 61)])
    assert first.samples[-1].bytes_acked == first.bytes_acked
    assert first.bytes_retransmitted > 0
    assert 0.02 <= first.connect_s < second.connect_s
    assert result.link("wan1").bytes > first.bytes_acked + second.bytes_acked
    assert result.link("wan1").drops > 0
    assert result.link("wan2").packets == 0
    with pytest.raises(PathcastError, match="allowed: first, second"):
        result.flow("both")


def test_a_flow_with_an_end_over_several_subflows(world):
    [both] = world.flows(["both"], every_s=0.25).flows
    assert (both.protocol, both.paths, both.bytes_acked) == ("mptcp", ("path1", "path2", "path1"), 3_000_000)
    assert both.finished_s == both.completion_s < 6
    assert both.stopped_s is None
    assert both.goodput_bps == pytest.approx(3_000_000 * 8 / both.completion_s)
    assert all([s.path for s in sample.subflows] == list(both.paths) for sample in both.samples)
    last = both.samples[-1]
    assert last.t_s == both.finished_s
    assert all(s.bytes_acked > 0 and s.cwnd_packets > 0 and s.rtt_s > 0.02 for s in last.subflows)
    # all is there; the last acknowledgements of a subflow may be on their way
    assert sum(s.bytes_acked for s in last.subflows) >= 3_000_000 - 3 * 10 * 1448


def test_pages_are_a_flow_too(world):
    [pages] = world.flows(["pages"]).flows
    assert pages.bytes_acked > 100_000
    assert pages.goodput(0, 6) == pytest.approx(pages.bytes_acked * 8 / 6, rel=0.01)


def test_the_document_is_json(world):
    document = world.flows(until=2.0).document()
    assert next(iter(document)) == "schema"
    assert json.loads(json.dumps(document))["schema"] == "pathcast.flows/1"
    assert document["ended_s"] == 2.0
    assert all("run_ended_s" not in flow for flow in document["flows"])
    assert document["verdict"]["valid"] is True


def test_a_run_is_the_same_again_and_has_what_was_set(world):
    def acked():
        return [flow.bytes_acked for flow in world.flows().flows]

    before = acked()
    world.wait(3.0)
    assert acked() == before
    world.set("wan1", "ab", rate="2Mbit")
    world.set("wan2", rate="1Mbit")
    slow = world.flows()
    assert slow.link("wan1").bytes * 8 < 6 * 2e6
    assert slow.link("wan2").bytes * 8 < 6 * 1e6
    world.set("wan1", rate='{ ab = "1Mbit" }')
    assert world.flows().link("wan1").bytes * 8 < 6 * 1e6
    world.fresh(0)
    assert acked() == before


@pytest.mark.parametrize("source", [None, "<text>", "", "elsewhere/lines"])
def test_a_trace_is_found_from_another_directory(tmp_path, monkeypatch, source):
    rate, text = "10Mbit", LINKS + FLOWS
    (tmp_path / "rates.csv").write_text(f"0,{rate}\n1,{rate}\n")
    text = text.replace(f'rate = "{rate}"', 'rate = { trace = "rates.csv" }')
    (tmp_path / "lines.toml").write_text(text)
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path)
    read = Topology.load("lines.toml") if source is None else Topology.parse(text, (), source, str(tmp_path))
    monkeypatch.chdir("away")
    with Sim(read) as world:
        assert world.flows(["first"], 1.0).flows[0].bytes_acked > 0


def test_goodput_between_samples():
    with Sim(topology()) as world:
        [flow] = world.flows(["first"], until=1.0).flows
    assert flow.run_ended_s == 1.0
    samples = (Sample(2.0, 1000, ()), Sample(4.0, 1000, ()), Sample(5.0, 3000, ()))
    flow = replace(flow, run_ended_s=10.0, started_s=1.0, samples=samples)
    times = (0.0, 1.0, 1.5, 2.0, 3.0, 4.25, 5.0, 9.0)
    assert [flow.acked(t) for t in times] == [0, 0, 500, 1000, 1000, 1500, 3000, 3000]
    assert flow.goodput(4, 5) == 16_000
    assert flow.goodput(0, 10) == 2400
    with pytest.raises(PathcastError, match="no time lies between"):
        flow.goodput(2, 2)
    for times, value in (((0, 1000), "1000 s"), ((-1, 5), "-1 s"), ((-3, -2), "-3 s"), ((0, float("inf")), "inf s")):
        with pytest.raises(PathcastError, match=rf"^{value} is not in the run: it lasted from 0 s to 10\.0 s"):
            flow.goodput(*times)


def test_a_result_that_says_nothing_is_refused(world):
    done = world.flows(["first"], until=1.0)
    done.check()
    failed = replace(done, flows=(replace(done.flows[0], error="refused"),))
    with pytest.raises(PathcastError, match="first: refused") as caught:
        failed.check()
    assert caught.value.code == "transfer"
    with pytest.raises(PathcastError, match="late"):
        replace(done, verdict=Verdict({"p99_s": 0.002})).check()
