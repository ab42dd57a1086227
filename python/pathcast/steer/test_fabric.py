"""What is read of switches for a measurement: late counts, a flow that was moved, a controller that has gone."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pathcast.errors import PathcastError
from pathcast.steer import fabric
from pathcast.steer.fabric import Fabric, SwitchCount
from pathcast.steer.rules import Flow

ONE, BESIDE = (("udp", "10.0.0.2", port, "10.0.1.1", 5275) for port in (40001, 40002))


class Controller:
    """Counts late: what `counts` holds next, at each look."""

    def __init__(self, *counts, path="path2"):
        self.counts, self.path, self.ended = list(counts), path, []

    def begin(self, plan):
        return plan

    def end(self, flows):
        self.ended += flows

    def counters(self):
        found = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
        if found is None:
            raise PathcastError("gone", "no controller answers")
        keys = ("protocol", "local", "local_port", "remote", "remote_port")
        row = {"switch": "s1", "out_packets": found, "out_bytes": 60 * found, "in_packets": 1, "in_bytes": 60}
        flow = lambda ends: {**dict(zip(keys, ends, strict=True)), "path": self.path, "switches": [row]}  # noqa: E731
        return {"flows": [flow(ONE), flow(BESIDE)]}


class Time:
    """A clock that goes on when somebody sleeps: a busy machine would look too late to see that a count goes on."""

    now_s = 0.0

    def monotonic(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


@pytest.fixture
def of(monkeypatch):
    monkeypatch.setattr(fabric, "time", Time())
    return Fabric


def measured(made):
    with made.counting() as counts:
        for flow in (ONE, BESIDE):
            made.begin(flow, "path2")
        for flow in (ONE, BESIDE):
            made.end(flow)
    return counts


def test_a_late_count_is_waited_for_and_both_flows_of_a_path_are_one(of):
    controller = Controller(0, 7, 7, 30)
    counts = measured(of(controller))
    assert counts.by_path == {"path2": (SwitchCount("s1", 60, 3600, 2, 120),)}
    assert counts.notes == []
    assert [flow.local_port for flow in controller.ended] == [40001, 40002]
    made = of(controller)
    made.begin(ONE, "path2")  # a transfer's is not counted
    made.end(ONE)
    assert controller.ended[-1] == Flow("10.0.0.2", "10.0.1.1", 40001, 5275, "udp")


def test_a_flow_that_was_moved_and_a_controller_that_has_gone_are_said(of):
    counts = measured(of(Controller(5, path="path1")))
    assert counts.notes == ["path `path2` went down meanwhile: its packets went over `path1`"]
    assert asdict(counts.by_path["path2"][0])["out_packets"] == 10
    counts = measured(of(Controller(None)))
    assert (counts.by_path, counts.notes) == (
        {},
        ["what the switches have counted is not known: no controller answers"],
    )
