"""Several flows at once in the emulated network, with the real kernel."""

from __future__ import annotations

import threading
import time

import pytest
from conftest import PATIENCE_S, calm

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.emu import Emu, Topology
from pathcast.worlds.sim import Sim
from pathcast.worlds.testing import two_paths

pytestmark = pytest.mark.privileged

LINKS = 'name = "compete"\nend = "3s"\n' + two_paths("10Mbit", ("10ms", "15ms"), "50 packets")
FLOWS = """
[[flow]]
name = "first"
paths = ["path1"]
control = "reno"
[[flow]]
name = "second"
paths = ["path1"]
control = "cubic"
start = "500ms"
stop = "2500ms"
[[flow]]
name = "both"
paths = ["path1", "path2"]
control = "reno"
[[flow]]
name = "short"
paths = ["path2"]
bytes = "200KB"
start = "1s"
[[flow]]
name = "pages"
paths = ["path2"]
web = {}
"""
# what is told of a flow may say that it was so early: by what lies between two looks at the clock
EARLY_S, LATE_S = 1e-3, 0.3


@pytest.fixture(scope="module")
def world():
    with Emu(Topology.parse(LINKS + FLOWS)) as world:
        yield world


def counters(world):
    links = [link for group in world.ledger()["groups"] for link in group["links"]]
    return {link["name"]: link["counters"] for link in links}


def punctual(*times):
    """Whether the machine was in time for all; pairs of when something was and when it was planned."""
    return all(-EARLY_S < was - plan < LATE_S for was, plan in times)


def test_flows_share_a_link_between_their_times(world):
    def in_time(result):
        first, second, short = result.flows
        starts = (first.started_s, 0), (second.started_s, 0.5), (short.started_s, 1)
        return punctual(*starts, (first.stopped_s, 3), (second.stopped_s, 2.5))

    def shared(result):
        first, second, _ = result.flows
        # the payload's share of a full packet is 0.965
        return first.goodput(1, 2.4) + second.goodput(1, 2.4) == pytest.approx(9.6e6, rel=0.1)

    result = calm(lambda: world.flows(["first", "second", "short"]), lambda run: not (in_time(run) and shared(run)))
    first, second, short = result.flows
    assert result.world == "emu"
    assert in_time(result), result.flows
    assert shared(result), result.flows
    assert (first.finished_s, second.completion_s) == (None, None)
    assert (first.protocol, first.kernel_control, second.kernel_control) == ("tcp", "reno", "cubic")
    assert min(first.bytes_acked, second.bytes_acked) > 100_000
    assert first.samples[-1].bytes_acked == first.bytes_acked
    assert [s.bytes_acked for s in first.samples] == sorted(s.bytes_acked for s in first.samples)
    assert 15 <= len(first.samples) <= 33
    [subflow] = first.samples[-1].subflows
    assert subflow.path == "path1"
    assert subflow.cwnd_packets > 0
    assert subflow.rtt_s > 0.02
    assert (short.bytes_acked, short.stopped_s, short.error) == (200_000, None, None)
    assert short.finished_s == pytest.approx(short.started_s + short.completion_s)
    assert 0.03 <= short.connect_s < short.completion_s
    carried = result.link("wan1")
    assert carried.bytes >= first.bytes_acked + second.bytes_acked
    assert carried.drops > 0
    assert result.verdict.release_error["p50_s"] > 0


def test_the_links_are_those_of_the_scenario_in_its_order_in_both_worlds():
    link = '[[link]]\nname = "{}"\na = "client"\nb = "server"\nrate = "10Mbit"\n'
    path = '[[path]]\nname = "path{0}"\nlinks = ["wan{0}"]\n'
    names = ("wan2", "spare", "wan1")
    text = "".join(map(link.format, names)) + path.format(1) + path.format(2)
    topology = Topology.parse('name = "spare"\nend = "3s"\n' + text + FLOWS)
    with Sim(topology) as sim, Emu(topology) as emu:
        results = [world.flows(["first"], until=0.5) for world in (sim, emu)]
        links = [[(link.name, link.direction) for link in result.links] for result in results]
        assert links[0] == [(name, end) for name in names for end in ("ab", "ba")]
        assert links[1] == links[0]
        assert results[1].link("spare").packets == 0
        assert results[1].link("wan1").packets > 0
        emu.set("spare", delay="7ms")
        [spare] = [link for of in emu.ledger()["groups"] for link in of["links"] if link["name"] == "spare/ba"]
        assert spare["params"]["delay"] == "7ms"


def test_a_multipath_flow_fills_both_paths(world):
    [both] = world.flows(["both"], every_s=0.05).flows
    assert (both.protocol, both.paths, both.notes) == ("mptcp", ("path1", "path2"), ())
    assert both.goodput(1, 2.9) > 1.3 * 9.6e6
    last = both.samples[-1]
    assert [s.path for s in last.subflows] == ["path1", "path2"]
    assert min(s.bytes_acked for s in last.subflows) > 300_000
    assert len(both.samples) > 30


def test_what_is_broken_off_is_not_sent_any_more():
    slow = [f"link.{link}.{value}" for link in ("wan1", "wan2") for value in ("rate=1Mbit", "queue=8 packets")]
    with Emu(Topology.parse(LINKS + FLOWS, slow)) as world:
        for name in ("first", "both"):
            world.flows([name], until=1.5)
            before = counters(world)
            time.sleep(1)
            for link, after in counters(world).items():
                # the queue, and what is on its way: up to 20; sent on, a second would carry 80
                assert after["carried"]["packets"] - before[link]["carried"]["packets"] < 40, (name, link)
        assert world.tcp_probe("path1", 1000).bytes == 1000


def test_refusals(world):
    for names, words in ((["third"], "no flow `third`; allowed: first, "), (["pages"], "`pages` is made of pages")):
        with pytest.raises(PathcastError, match=words) as error:
            world.flows(names)
        assert error.value.exit == Exit.USAGE
    with pytest.raises(PathcastError, match="no congestion controller `nosuch`") as error:
        world.flows(["first", "second"], controls={"reno": "nosuch"})
    assert error.value.code == "unknown-control"


def test_the_kernel_may_have_another_name_for_a_controller(world):
    def in_time(result):
        return punctual((result.flows[0].stopped_s, 0.5))

    result = calm(lambda: world.flows(["first"], until=0.5, controls={"reno": "cubic"}), lambda run: not in_time(run))
    [first] = result.flows
    assert (first.control, first.kernel_control) == ("reno", "cubic")
    assert in_time(result), first


def test_changes_come_again_with_every_run():
    change = '\n[[change]]\nat = "1s"\nlink = "wan1"\nrate = "2Mbit"\n'
    with Emu(Topology.parse(LINKS + FLOWS + change)) as world:
        time.sleep(1.2)
        for _ in range(2):
            [first] = world.flows(["first"], until=2.5).flows
            assert first.goodput(0.3, 1.0) > 6e6
            assert first.goodput(1.5, 2.5) < 2.5e6


def test_a_flow_whose_way_is_dead_has_an_error_and_the_others_go_on():
    with Emu(Topology.parse(LINKS + FLOWS, ["link.wan2.loss=1"])) as world:
        first, short = world.flows(["first", "short"]).flows
        assert first.error is None
        assert first.bytes_acked > 1_000_000
        assert "no answer" in short.error
        assert (short.bytes_acked, short.finished_s) == (0, None)


def test_many_flows_at_once():
    flows = "".join(f'[[flow]]\nname = "f{n}"\npaths = ["path{1 + n % 2}"]\ncontrol = "reno"\n' for n in range(16))
    with Emu(Topology.parse(LINKS + flows)) as world:

        def full(result):
            assert [flow.error for flow in result.flows] == [None] * 16
            return sum(flow.goodput(1, 2.9) for flow in result.flows) == pytest.approx(2 * 9.6e6, rel=0.15)

        result = calm(world.flows, lambda run: not full(run))
        assert full(result), [flow.goodput(1, 2.9) for flow in result.flows]


def test_cancel_ends_a_run():
    with Emu(Topology.parse(LINKS + FLOWS)) as world:
        threading.Timer(1.0, world.cancel).start()
        began = time.monotonic()
        with pytest.raises(PathcastError) as error:
            world.flows(["first", "second"], until=600)
        assert error.value.exit == Exit.INTERRUPTED
        assert time.monotonic() - began < PATIENCE_S


def test_the_simulator_gives_the_same_document(world):
    def keys(value):
        if isinstance(value, dict):
            return {key: keys(of) for key, of in value.items() if key != "release_error"}
        return [keys(value[0])] if isinstance(value, list | tuple) and value else None

    names = ["first", "both"]
    with Sim(Topology.parse(LINKS + FLOWS)) as sim:
        assert keys(sim.flows(names, until=1).document()) == keys(world.flows(names, until=1).document())
