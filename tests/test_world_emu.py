"""World `emu`: transfers over emulated paths with the real kernel."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading

import pytest
from conftest import ROOT, SMALL, calm

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.emu import Emu, Topology
from pathcast.worlds.measurement import Request

pytestmark = pytest.mark.privileged

BOTH = ["path1", "path2"]
MB = 1_000_000
# for some seconds: also the last of the subflows joins while there are bytes for it, where all is busy
LONG = 16 * MB


@pytest.fixture(scope="module")
def world():
    with Emu(Topology.parse(SMALL)) as world:
        yield world


@pytest.fixture
def own():
    """A world of the test's own."""
    opened = []

    def own(text, sets=()):
        opened.append(Emu(Topology.parse(text, sets)))
        return opened[-1].__enter__()

    yield own
    for one in opened:
        one.__exit__(None, None, None)


def check(transfer, bytes, paths):
    """What holds for every transfer."""
    assert transfer.bytes == bytes
    assert transfer.paths == tuple(dict.fromkeys(paths))
    assert 0 < transfer.connect_s < transfer.elapsed_s
    assert transfer.throughput_bps == pytest.approx(bytes * 8 / transfer.elapsed_s)
    assert transfer.fallback is None
    # the proof of belonging to the session goes before the payload; data of a lost subflow is sent on another
    carried = sum(transfer.bytes_by_path(list(transfer.paths)))
    assert bytes <= carried <= 1.05 * bytes + 4096


@pytest.mark.parametrize("path", BOTH)
def test_a_tcp_probe_takes_the_path_that_was_named(world, path):
    before = carried(world)
    probe = world.tcp_probe(path, 64_000)
    check(probe, 64_000, [path])
    assert probe.protocol == "tcp"
    [subflow] = probe.subflows
    assert subflow.path == path
    assert subflow.remote == world.path(path).remote
    assert subflow.rtt_s >= (0.010 if path == "path1" else 0.016)
    after = carried(world)
    link, other = ("wan1/ab", "wan2/ab") if path == "path1" else ("wan2/ab", "wan1/ab")
    assert after[link] - before[link] >= 64_000
    assert after[other] - before[other] < 10_000  # at most the session's own words


def carried(world):
    links = [link for group in world.ledger()["groups"] for link in group["links"]]
    return {link["name"]: link["counters"]["carried"]["bytes"] for link in links}


def test_a_transfer_over_both_paths_uses_both(world):
    seen = []
    transfer = world.transfer(BOTH, LONG, progress=seen.append, plain=True)  # steered, one may end early
    check(transfer, LONG, BOTH)
    assert transfer.protocol == "mptcp"
    assert transfer.path_manager == "userspace"
    assert min(transfer.bytes_by_path(BOTH)) > 0.02 * LONG
    assert [s.path for s in transfer.subflows] == BOTH
    assert all(s.alive and s.joined_s is not None for s in transfer.subflows)
    assert seen == sorted(seen)
    assert max(seen) <= LONG


@pytest.mark.parametrize("first", [["path1"], ["path2"], ["path2", "path1"]])
def test_the_chosen_paths_in_the_chosen_order(world, first):
    transfer = world.transfer(first, MB)
    check(transfer, MB, first)
    assert [s.path for s in transfer.subflows] == first
    assert transfer.subflows[0].local == world.path(first[0]).local[0]


@pytest.mark.parametrize("control", ["reno", "cubic", "lia", "imtcp_bg"])
def test_the_controller_is_the_one_that_was_named(world, control):
    assert world.tcp_probe("path1", 10_000, control).control == control
    assert world.mptcp_probe(BOTH, 10_000, control).control == control


def test_unknown_names_are_refused_with_the_known_ones(world):
    with pytest.raises(PathcastError, match="no path `path3`; allowed: path1, path2"):
        world.transfer(["path3"], MB)
    with pytest.raises(PathcastError, match=r"no congestion controller `nosuch`; it has: .*reno") as error:
        world.tcp_probe("path1", MB, "nosuch")
    assert (error.value.code, error.value.exit) == ("unknown-control", Exit.USAGE)
    with pytest.raises(PathcastError, match="1 client addresses, 2 were asked for"):
        world.transfer(["path1", "path1"], MB)
    with pytest.raises(PathcastError, match="0 bytes") as error:
        world.tcp_probe("path1", 0)
    assert error.value.exit == Exit.USAGE
    check(world.tcp_probe("path1", 10_000), 10_000, ["path1"])  # nothing was harmed


def test_an_unknown_controller_over_mptcp_is_refused_too(world):
    with pytest.raises(PathcastError, match="nosuch"):
        world.transfer(BOTH, 10_000, "nosuch")


@pytest.mark.parametrize(
    ("link", "changes", "words"),
    [
        ("wan3", {"rate": "1Mbit"}, "allowed: wan1, wan2"),
        ("wan1", {"speed": "1"}, "allowed: rate"),
        ("wan1", {"loss": "7"}, "loss"),
    ],
)
def test_changes_that_cannot_be_are_refused(world, link, changes, words):
    with pytest.raises(PathcastError, match=words) as error:
        world.set(link, **changes)
    assert error.value.exit == Exit.USAGE


def test_the_ledger_counts_and_a_judgement_covers_its_block(world):
    before = carried(world)
    with world.judged() as verdict:
        world.transfer(BOTH, MB)
    after = carried(world)
    for link in ("wan1/ab", "wan2/ab", "wan1/ba", "wan2/ba"):
        assert after[link] > before[link]
    total = sum(after[f"{wan}/ab"] - before[f"{wan}/ab"] for wan in ("wan1", "wan2"))
    assert MB < total < 1.3 * MB
    assert 0 <= verdict.release_error["p50_s"] <= verdict.release_error["p99_s"]
    assert verdict.release_error["p99_s"] > 0
    assert verdict.dropped_unmodelled >= 0
    assert isinstance(verdict.realtime, bool)


def test_a_slower_line_and_a_longer_way_are_felt(own):
    world = own(SMALL)
    world.set("wan1", rate="2Mbit", delay="60ms")
    slow = world.tcp_probe("path1", 500_000)
    assert slow.throughput_bps < 2e6  # no test of speed: a line cannot carry more than its rate
    assert slow.subflows[0].min_rtt_s >= 0.120


def test_a_path_that_goes_down_in_the_middle(own):
    """What was under way on it is carried to the end by the other one."""
    world, cut = own(SMALL, ["link.wan1.rate=10Mbit", "link.wan2.rate=10Mbit"]), threading.Event()

    def progress(acked):
        if acked > MB and not cut.is_set():
            cut.set()
            world.set("wan1", loss="1")

    transfer = world.transfer(BOTH, 6 * MB, progress=progress)
    assert cut.is_set()
    assert transfer.bytes == 6 * MB
    assert transfer.elapsed_s < 60
    first, second = transfer.bytes_by_path(BOTH)
    assert first > 0
    assert second > first
    dead = next(s for s in transfer.subflows if s.path == "path1")
    assert not dead.alive or dead.note


def test_cancel_ends_a_transfer_and_refuses_further_ones(own):
    world = own(SMALL, ["link.wan1.rate=1Mbit", "link.wan2.rate=1Mbit"])

    def progress(acked):
        if acked > 0:
            world.cancel()

    for _ in range(2):
        with pytest.raises(PathcastError) as error:
            world.transfer(BOTH, 1000 * MB, progress=progress)
        assert (error.value.code, error.value.exit) == ("interrupted", Exit.INTERRUPTED)


def test_ipv6(own):
    world = own(re.sub(r'(name = "path\d")', r"\1\nip = 6", SMALL))
    assert all(":" in p.remote for p in world.paths)
    transfer = world.transfer(BOTH, LONG, plain=True)
    check(transfer, LONG, BOTH)
    assert min(transfer.bytes_by_path(BOTH)) > 0
    check(world.tcp_probe("path2", 64_000), 64_000, ["path2"])


def test_two_lines_at_home_and_one_address_at_the_far_end(own):
    world = own((ROOT / "topologies" / "two-wan.toml").read_text())
    assert len({p.remote for p in world.paths}) == 1
    assert len({p.local[0] for p in world.paths}) == 2
    transfer = world.transfer(BOTH, LONG, plain=True)
    check(transfer, LONG, BOTH)
    assert min(transfer.bytes_by_path(BOTH)) > 0
    for path in BOTH:
        probe = world.tcp_probe(path, 64_000)
        assert [(s.path, s.local) for s in probe.subflows] == [(path, world.path(path).local[0])]


def test_three_paths(own):
    world = own((ROOT / "topologies" / "three-path.toml").read_text())
    every = ["path1", "path2", "path3"]
    transfer = world.transfer(every, LONG, plain=True)
    check(transfer, LONG, every)
    assert min(transfer.bytes_by_path(every)) > 0
    two = world.transfer(["path3", "path1"], 2 * MB)
    assert {s.path for s in two.subflows} == {"path1", "path3"}


def test_a_path_named_again_gets_a_further_address(own):
    flow = '[[flow]]\nname = "bulk"\npaths = ["path1", "path2"]\nsubflows = 4\n'
    world = own(SMALL.replace('name = "small"', 'name = "small"\nend = "60s"') + flow)
    assert [len(p.local) for p in world.paths] == [2, 2]
    four = ["path1", "path2", "path1", "path2"]
    transfer = world.transfer(four, LONG, plain=True)
    check(transfer, LONG, four)
    assert sorted(s.path for s in transfer.subflows) == sorted(four)
    assert len({s.local for s in transfer.subflows}) == 4
    assert all(s.bytes_sent > 0 for s in transfer.subflows)
    with pytest.raises(PathcastError, match="2 client addresses, 3 were asked for"):
        world.transfer(["path1"] * 3, MB)


def test_several_worlds_at_once_do_not_meet(world, own):
    other = own(SMALL, ["link.wan1.rate=1Mbit"])
    before = carried(world)
    other.transfer(["path1"], 100_000)
    assert carried(world) == before


def test_a_scenarios_name_need_not_be_a_networks(own):
    world = own(SMALL.replace('"small"', '"My_Great_WAN"'))
    assert world.name.startswith("my-great-wan-")


def test_a_world_leaves_nothing(site):
    with Emu(Topology.parse(SMALL)) as world:
        assert len(site.namespaces()) == 2
        assert len(site.processes()) == 2
        world.tcp_probe("path1", 1000)
    assert site.empty()


def test_nor_one_whose_body_fails(site):
    with pytest.raises(RuntimeError), Emu(Topology.parse(SMALL)):
        raise RuntimeError
    assert site.empty()


UNEQUAL = """
name = "unequal"
[[link]]
name = "long"
a = "client"
b = "server"
rate = "100Mbit"
delay = "150ms"
[[link]]
name = "short"
a = "client"
b = "server"
rate = "100Mbit"
delay = "5ms"
[[path]]
name = "path1"
links = ["long"]
[[path]]
name = "path2"
links = ["short"]
"""


def test_what_comes_early_over_a_short_path_leaves_room_for_the_rest():
    """Linux 6.18 stands still when early data fills the receive buffer, which then takes not even what is missing."""
    with Emu(Topology.parse(UNEQUAL)) as world:
        server = world._net.record.about["hosts"]["server"]
        buffers = []

        def look(_acked):
            shown = subprocess.run(["ip", "netns", "exec", server, "ss", "-MnmO"], capture_output=True, text=True)
            buffers.extend(int(b) for b in re.findall(r"ESTAB.*?:\(r\d+,rb(\d+)", shown.stdout))

        for _ in range(4):
            check(world.transfer(BOTH, 8 * MB, "cubic", progress=look), 8 * MB, BOTH)
        assert max(buffers) > 16 * MB  # automatic tuning starts at 128 KB


def test_a_far_slower_line_is_tried_with_what_it_may_have_and_no_chunk_more():
    """It joins while the fast one starts, and has the shorter round trip: 64 KiB are half of the time on it."""
    unlike = UNEQUAL.replace('"100Mbit"\ndelay = "150ms"', '"80Mbit"\nqueue = "420 packets"\ndelay = "18ms"').replace(
        '"100Mbit"\ndelay = "5ms"', '"1.8Mbit"\nqueue = "4 packets"\ndelay = "11.6ms"'
    )
    with Emu(Topology.parse(unlike)) as world:
        sent = []
        for _ in range(5):
            transfer = world.transfer(BOTH, 3_726_067, "cubic")
            check(transfer, 3_726_067, BOTH)
            sent.append(transfer.subflows[1].bytes_sent)
        assert sorted(sent)[2] < 80_000, sent


# every flow leaves by a port of the translator's own, and by another one when it was silent for a second
TRANSLATOR = """
table ip nat {
  chain post {
    type nat hook postrouting priority 100
    oifname != lo masquerade fully-random
  }
}
"""
FORGETS = "cd /proc/sys/net/netfilter && echo 1 >nf_conntrack_udp_timeout && echo 1 >nf_conntrack_udp_timeout_stream"


@pytest.mark.skipif(shutil.which("nft") is None, reason="missing: nftables (no program `nft`)")
def test_a_measurement_outlives_a_translator_that_soon_forgets(own):
    # the second path waits for so long and more, while the first one is measured
    world = own(SMALL)
    inside = ["ip", "netns", "exec", world._net.record.about["hosts"]["client"]]
    subprocess.run([*inside, "nft", "-f", "-"], input=TRANSLATOR, text=True, check=True)
    subprocess.run([*inside, "sh", "-c", FORGETS], check=True)
    wish = Request(directions=("out",), time_s=2.0, seed=1)

    def untold(found):
        """A busy machine keeps it from saying how fast a path is."""
        ways = [of for path in found.paths if path.down is None for of in path.directions.values()]
        return any(of.capacity_bps.value is None for of in ways)

    for path in calm(lambda: world.measure(BOTH, wish), untold).paths:
        assert path.down is None
        for of in path.directions.values():
            assert of.capacity_bps.value == pytest.approx(40e6, rel=0.2)
            assert of.loss.lost < of.loss.packets / 4
