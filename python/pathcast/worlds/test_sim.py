"""The simulated world: the verbs' results, its clock, changes of links, fresh beginnings, what cannot end."""

from __future__ import annotations

import threading
import time

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.measurement import Request
from pathcast.worlds.sim import Sim
from pathcast.worlds.testing import two_paths
from pathcast.worlds.topology import Topology

TWO = 'name = "two"\n' + two_paths("20Mbit", ("10ms", "25ms"), "100 packets")
CROSS = '[[traffic]]\nkind = "poisson"\nlink = "wan1"\ndirection = "ab"\nrate = "1Mbit"\npacket = "1500B"\n'
TCP = '[[traffic]]\nkind = "tcp"\npath = "path2"\n'


def sim(more="", *sets):
    return Sim(Topology.parse(TWO + more, sets))


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Needs neither a run directory nor a privilege."""
    monkeypatch.setenv("PATHCAST_RUN_DIR", str(tmp_path / "run"))
    with sim() as world:
        yield world
    assert not (tmp_path / "run").exists()


def refused(call, words, exit=Exit.USAGE):
    with pytest.raises(PathcastError, match=words) as caught:
        call()
    assert caught.value.exit == exit
    return caught.value


def test_a_transfer_has_the_same_fields_as_over_real_sockets(world):
    transfer = world.tcp_probe("path1", 5_000_000, "reno")
    assert (transfer.paths, transfer.bytes, transfer.protocol, transfer.control) == (
        ("path1",),
        5_000_000,
        "tcp",
        "reno",
    )
    assert (transfer.fallback, transfer.path_manager, transfer.notes) == (None, None, ())
    # a SYN and its answer, 20 ms of propagation and a little for the line
    assert 0.020 < transfer.connect_s < 0.021
    assert transfer.throughput_bps == pytest.approx(8 * transfer.bytes / transfer.elapsed_s)
    assert 10e6 < transfer.throughput_bps < 20e6 * 1448 / 1500
    [subflow] = transfer.subflows
    assert (subflow.path, subflow.local, subflow.remote) == ("path1", "10.78.1.2", "10.78.1.1")
    assert subflow.bytes_acked == subflow.bytes_sent - subflow.bytes_retransmitted == 5_000_000
    assert subflow.rtt_s >= subflow.min_rtt_s >= 0.020
    assert subflow.alive
    assert subflow.note is None


def test_over_both_paths(world):
    transfer = world.transfer(["path2", "path1"], 10_000_000)
    assert (transfer.protocol, transfer.path_manager, transfer.control) == ("mptcp", "userspace", "cubic")
    assert transfer.throughput_bps > 22e6
    assert [s.path for s in transfer.subflows] == ["path2", "path1"]
    first, second = transfer.subflows
    assert first.joined_s == transfer.connect_s < second.joined_s
    assert sum(transfer.bytes_by_path(["path1", "path2"])) >= 10_000_000
    assert world.mptcp_probe(["path1"], 64_000).protocol == "mptcp"  # one subflow, but Multipath TCP all the same


def test_repeated_subflows_have_addresses_of_their_own():
    flow = '[[flow]]\nname = "f"\npaths = ["path1"]\nsubflows = 3\nbytes = "1MB"\n'
    with sim(flow) as world:
        transfer = world.transfer(["path1"] * 3, 1_000_000)
        assert [s.local for s in transfer.subflows] == ["10.78.1.2", "10.78.1.3", "10.78.1.4"]
        refused(lambda: world.transfer(["path2"] * 2, 1), "has 1 client addresses, 2 were asked for")


def test_its_time_passes_in_transfers_and_waits_only(world):
    assert world.now() == 0
    transfer = world.tcp_probe("path1", 50_000_000)
    assert world.now() == pytest.approx(transfer.elapsed_s)
    assert 0 < transfer.wall_s < transfer.elapsed_s
    before, started = world.now(), time.monotonic()
    world.wait(3600)
    assert world.now() == pytest.approx(before + 3600)
    assert time.monotonic() - started < 60
    refused(lambda: world.wait(-1), "cannot wait for -1 s")


def test_a_link_changes_from_now_on(world):
    fast = world.tcp_probe("path1", 1_000_000)
    world.set("wan1", rate="2Mbit")
    world.set("wan1", "ba", delay="110ms")
    slow = world.tcp_probe("path1", 1_000_000)
    assert 0.120 < slow.connect_s < 0.122
    assert slow.elapsed_s > 4 > fast.elapsed_s
    refused(lambda: world.set("wan9", rate="1Mbit"), "link `wan9` is not in this network; allowed: wan1, wan2")
    refused(lambda: world.set("wan1", speed="1Mbit"), "`speed` .* allowed: rate, delay")
    refused(lambda: world.set("wan1", loss="2"), "allowed: 0 to 1")
    refused(lambda: world.set("wan1", "up", loss="0"), "direction `up`: allowed are ab, ba")


def test_the_same_seed_and_index_give_the_same_and_another_index_another():
    def bps(world, index):
        world.fresh(index)
        return world.tcp_probe("path1", 2_000_000).throughput_bps

    with sim("", "link.wan1.loss=0.01") as one, sim("", "link.wan1.loss=0.01") as two:
        first = one.tcp_probe("path1", 2_000_000).throughput_bps
        one.set("wan1", rate="1Mbit")
        assert bps(one, 0) == first  # what was set is gone
        found = [bps(one, index) for index in range(5)]
        assert [bps(two, index) for index in (4, 3, 2, 1, 0)] == found[::-1]
        assert len(set(found)) == 5
        assert one.now() < 60
    with sim("", "link.wan1.loss=0.01", "seed=2") as other:
        assert bps(other, 1) not in found


def test_a_measurement_is_repeated_by_the_scenario_s_seed_and_no_two_in_a_row_are_alike():
    def measured(index=0, copied=None):
        with sim(CROSS) as world:
            world.fresh(index)
            with world.copy(copied) as one:
                looks = [one.measure(["path1"], Request(effort="light")).document() for _ in range(2)]
        return looks

    first = measured()
    assert first == measured()
    assert first[0] != first[1]
    assert first != measured(index=1)
    assert first != measured(copied=1)


class Deaf:
    """Computes, whatever it is told, and is closed when it is done."""

    def __init__(self):
        self.done, self.begun = threading.Event(), threading.Event()

    def measure(self, job, request):
        self.begun.set()
        assert self.done.wait(60)
        return "{}"

    def close(self):
        assert self.done.wait(60)


def test_what_computes_and_hears_nothing_does_not_hold_an_interrupt():
    deaf = Deaf()

    def progress(*_):
        assert deaf.begun.wait(60)
        raise KeyboardInterrupt

    def interrupted(world):
        world._client.close()
        world._client = deaf
        world._native_work(lambda job: deaf.measure(job, "{}"), progress)

    began = time.monotonic()
    world = sim()
    with pytest.raises(KeyboardInterrupt), world:
        interrupted(world)
    took_s = time.monotonic() - began
    deaf.done.set()
    assert took_s < 30


@pytest.mark.parametrize("more", ["", TCP], ids=["alone", "with-others"])
def test_a_path_that_loses_everything_ends_with_an_error_and_the_world_goes_on(more):
    with sim(more, "link.wan1.loss.ab=1", "link.wan2.rate=500kbit") as world:
        error = refused(lambda: world.tcp_probe("path1", 64_000), "was given up after", Exit.RUNTIME)
        assert "over path1" in error.message
        assert "of simulated time" in error.message
        assert "0 of 64000 bytes had arrived" in error.message
        assert "losses" in error.hint
        assert world.tcp_probe("path2", 64_000).bytes == 64_000
        both = world.transfer(["path2", "path1"], 1_000_000)
        assert [s.alive for s in both.subflows] == [True, False]
        assert both.subflows[1].note == "the far end did not answer the join in time"


def test_a_transfer_that_does_not_end_in_ten_times_its_time_is_an_error():
    with sim(TCP + "flows = 50\n", "link.wan2.rate=100kbit") as world:
        words = r"over path2 had not ended after 8000 s of simulated time, the limit: \d+ of 10000000 bytes had arrived"
        assert refused(lambda: world.tcp_probe("path2", 10_000_000), words, Exit.RUNTIME).code == "stalled"
        assert world.tcp_probe("path1", 64_000).bytes == 64_000


def test_a_long_transfer_over_a_slow_line_is_not_cut_off():
    with sim("", "link.wan1.rate=100kbit") as world:
        assert world.tcp_probe("path1", 60_000_000).elapsed_s > 3600


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda w: w.tcp_probe("path1", 1, "nosuch"), "no controller `nosuch`; allowed: reno, cubic"),
        (lambda w: w.tcp_probe("path1", 0), "a transfer of 0 bytes"),
        (lambda w: w.tcp_probe("path9", 1), "no path `path9`; allowed: path1, path2"),
    ],
)
def test_what_is_no_transfer(world, call, words):
    refused(lambda: call(world), words)


def test_a_scenario_that_only_the_simulator_can_refuse():
    flow = '[[flow]]\nname = "f"\npaths = ["path1"]\nbytes = "1MB"\ncontrol = "nosuch"\n'
    refused(sim(flow).__enter__, "nosuch")


def test_what_only_a_simulation_can_do():
    with sim(TCP, 'link.wan2.queue={ kind = "fair", packets = 50 }') as world:
        world.wait(10)
        # half of the line each
        assert 7e6 < world.tcp_probe("path2", 10_000_000).throughput_bps < 13e6


def test_threads_take_turns(world):
    found, errors = [], []

    def work(path):
        try:
            found.extend(world.tcp_probe(path, 1_000_000) for _ in range(10))
        except PathcastError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(path,)) for path in ("path1", "path2") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(found) == 40
    assert world.now() == pytest.approx(sum(t.elapsed_s for t in found))


def test_progress_is_heard_and_cancel_ends_a_long_one(world):
    heard, errors = [], []

    def work():
        try:
            world.tcp_probe("path1", 10**13, progress=heard.append)
        except PathcastError as error:
            errors.append(error.exit)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 60
    while not any(heard) and time.monotonic() < deadline:
        time.sleep(0.01)
    world.cancel()
    thread.join(60)
    assert errors == [Exit.INTERRUPTED]
    assert any(heard)
    assert heard == sorted(heard)


def test_it_is_never_late(world):
    with world.judged() as verdict:
        world.tcp_probe("path1", 64_000)
    assert verdict.valid
    assert (world.world, world.name, world.real_time) == ("sim", "two", False)


def test_a_closed_one():
    with sim() as world:
        pass
    refused(lambda: world.tcp_probe("path1", 1), "closed", Exit.RUNTIME)


def test_wrong_arguments_are_refused_by_their_value_and_what_is_allowed(world):
    bytes_allowed = r"allowed are whole numbers from 1 to 2\^64-1"
    for bytes in (-5, 10**30, 2.5, "5"):
        refused(lambda: world.tcp_probe("path1", bytes), f"bytes {bytes!r}: {bytes_allowed}")  # noqa: B023
        refused(lambda: world.transfer(["path1"], bytes), f"bytes {bytes!r}: {bytes_allowed}")  # noqa: B023
    refused(lambda: world.transfer("path1", 1000), "paths 'path1': a list of names is needed")
    refused(lambda: world.measure("path1"), "paths 'path1': a list of names is needed")
    for seed in (-1, 1 << 64, "x"):
        refused(lambda: Request(seed=seed), f"seed {seed!r}: allowed are whole numbers from 0")  # noqa: B023
        refused(lambda: world.copy(seed), f"seed {seed!r}: allowed are whole numbers from 0")  # noqa: B023
    for index in (-1, "a"):
        refused(lambda: world.fresh(index), f"index {index!r}: allowed are whole numbers from 0")  # noqa: B023
    refused(lambda: Sim("two-path"), "network 'two-path': a Topology is needed")
    assert str(refused(lambda: world.set("wan1", rate="5"), "the unit is missing")).startswith("link.wan1.rate=5: ")
    refused(lambda: world.set("wan1", rate=5), "rate 5: a text with a unit is needed")
    assert world.transfer(["path1"], 1000).bytes == 1000
