"""The client against a controller without switches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.steer.client import Client, Owner, plan_of
from pathcast.steer.rules import Flow
from pathcast.steer.testing import Fake

ONE, TWO = (Flow("10.0.0.2", "10.0.1.1", port, 5275) for port in (40001, 40002))


@pytest.fixture
def fake(tmp_path):
    with Fake(tmp_path / "s") as fake:
        yield fake


def test_flows_begin_move_and_end(fake):
    client = Client(fake.path)
    assert client.begin({ONE: "path1", TWO: "path2"}) == {ONE: "path1", TWO: "path2"}
    assert client.begin({ONE: "path2"}) == {ONE: "path2"}
    assert fake.plan == {ONE: "path2", TWO: "path2"}
    client.end([ONE, ONE])
    assert fake.plan == {TWO: "path2"}
    assert [one["name"] for one in client.state()["paths"]] == ["path1", "path2"]
    assert client.counters() == {"paths": [], "flows": []}


def test_flows_belong_to_the_process_that_begins_them_unless_it_says_otherwise(fake):
    client, other = Client(fake.path), Owner(1, 5)
    with client.carried({ONE: "path1"}):
        assert fake.plan
    assert not fake.plan
    client.begin({ONE: "path1"}, owner=other)
    client.begin({ONE: "path1"}, keep=True)
    owners = [asked["owner"] for asked in fake.asked if asked["verb"] == "begin"]
    assert owners == [vars(Owner.this_process()), vars(other), None]
    assert owners[0]["pid"] == os.getpid()


def test_what_the_controller_refuses_is_raised_as_it_says(fake):
    client = Client(fake.path)
    fake.refuse = PathcastError("switch", "switch `s1` refuses", "why", Exit.RUNTIME)
    with pytest.raises(PathcastError, match="switch `s1` refuses") as caught, client.carried({ONE: "path1"}):
        raise AssertionError("not reached")
    assert (caught.value.code, caught.value.hint, caught.value.exit) == ("switch", "why", Exit.RUNTIME)
    with pytest.raises(PathcastError, match="allowed: path1, path2") as caught:
        client.begin({ONE: "path9"})
    assert caught.value.exit == Exit.USAGE
    assert fake.plan == {}


def test_no_controller_is_said(tmp_path):
    with pytest.raises(PathcastError, match=r"no controller answers at .*: No such file") as caught:
        Client(tmp_path / "none").state()
    assert (caught.value.code, caught.value.exit) == ("gone", Exit.RUNTIME)


def test_an_owner_is_alive_as_long_as_its_process():
    with subprocess.Popen(["sleep", "60"]) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        owner = Owner(process.pid, int(stat.rpartition(")")[2].split()[19]))
        assert owner.alive
        assert not Owner(process.pid, owner.started + 1).alive  # another one of the same number
        process.kill()
    assert not owner.alive


@pytest.mark.parametrize(
    ("flows", "told"),
    [
        ([], "at least one"),
        ({}, "at least one"),
        ([{"local": "10.0.0.2", "path": "p"}], "Flow.remote"),
        ([{"local": "10.0.0.2", "remote": "10.0.1.1", "local_port": "7", "path": "p"}], "Flow.local_port"),
        ([{"local": "10.0.0.2", "remote": "10.0.1.1"}], "no path"),
        ([{"local": "10.0.0.2", "remote": "10.0.1.1", "path": 3}], "no path"),
        ([{"local": "10.0.0.2", "remote": "10.0.1.1", "path": p} for p in ("a", "b")], "twice"),
        ([{"local": "10.0.0.x", "remote": "10.0.1.1", "path": "a"}], "10.0.0.x"),
    ],
)
def test_plans_that_are_none_are_refused(flows, told):
    with pytest.raises(PathcastError, match=told) as caught:
        plan_of(flows)
    assert caught.value.exit == Exit.USAGE
