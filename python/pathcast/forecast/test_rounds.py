"""Rounds: what is sent in which order, and which count."""

from __future__ import annotations

from pathcast.forecast.rounds import Task, measure
from pathcast.forecast.testing import SIZE, Emulated, World


def test_what_a_round_sends_and_in_which_order():
    world, heard = World(), []
    task = Task(("path1", "path2"), SIZE, 64_000, "reno", (("path2", "path1"),), {"a": "b"})
    with world() as open:
        found = measure(open, {"path1": "path1", "path2": "path2"}, task, heard.append)
    both, one, two = ("path1", "path2"), ("path1",), ("path2",)
    small = [(one, 64_000), (two, 64_000), (both, 128_000)]
    assert world.sent == [*small, (both, SIZE), (one, SIZE), (two, SIZE), (("path2", "path1"), SIZE)]
    assert found.sent_bytes == task.sent_bytes == heard[-1] == sum(n for _, n in world.sent)
    assert heard == sorted(heard)
    assert found.control == "reno"
    assert found.set == found.document()["set"] == {"a": "b"}
    assert len(found.probes_bps) == len(found.tcp_bps) == len(found.subflow_bytes) == 2
    assert found.subset_bps[0].paths == ("path2", "path1")


def test_a_single_path_needs_no_multipath_tcp():
    world = World()
    task = Task(("path1",), SIZE, 64_000)
    with world() as open:
        found = measure(open, {"path1": "path1"}, task)
    assert world.sent == [(("path1",), 64_000), (("path1",), SIZE)]
    assert found.sent_bytes == task.sent_bytes
    assert found.actual_bps is found.mptcp_probe_bps is None


def test_a_late_round_is_measured_again_and_then_left_out():
    task = Task(("path1",), SIZE, 64_000)
    for late, attempts, counts in (([0.002], 2, True), ([0.002] * 3, 3, False)):
        world = Emulated()
        world.late = late
        with world() as open:
            found = measure(open, {"path1": "path1"}, task)
        assert found.attempts == attempts
        assert (found.left_out is None) == counts
        assert found.sent_bytes == attempts * task.sent_bytes
