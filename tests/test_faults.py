"""Processes that are killed or interrupted: what they made goes away, at once or at the next start."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pathcast.errors import PathcastError
from pathcast.processes import start_time
from pathcast.runtime import daemon

pytestmark = pytest.mark.privileged


def kill(pid):
    """It has ended as whoever starts next sees it: its environment is gone before it is."""
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while start_time(pid) is not None:
        assert time.monotonic() < end, pid
        time.sleep(0.01)


def left(names):
    return [n for n in names if Path("/run/netns", n).exists()]


@pytest.mark.parametrize("then", [["net", "list"], ["undo"], ["net", "up"]], ids=["net list", "undo", "another net up"])
def test_the_next_start_removes_what_a_killed_network_left(pathcast, net, site, small, wait_for, then):
    names = site.namespaces()
    assert len(names) == 2
    [pid] = site.processes()
    kill(pid)
    assert wait_for(lambda: not site.processes())
    assert left(names) == names  # nobody was there to remove them
    assert f"net {net} (left behind" in pathcast("doctor").stdout
    if then == ["net", "up"]:
        then = ["net", "up", small, "--name", f"{net}-b"]
    assert pathcast(*then).returncode == 0
    assert left(names) == []
    assert f"net-{net}.json" not in site.records()


def test_a_killed_networks_name_can_be_used_again(pathcast, net, site, small, wait_for, reach):
    kill(site.processes()[0])
    assert wait_for(lambda: not site.processes())
    assert pathcast("net", "up", small, "--name", net).returncode == 0
    assert reach(net, "10.77.1.1")
    assert pathcast("net", "down", net).returncode == 0
    assert site.empty()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_network_that_is_told_to_end_removes_itself(net, site, wait_for, number):
    names = site.namespaces()
    os.kill(site.processes()[0], number)
    assert wait_for(site.empty)
    assert left(names) == []


def test_a_network_that_hangs_is_said_with_what_to_do(net, site, wait_for, monkeypatch):
    monkeypatch.setattr(daemon, "PATIENCE_S", 1.0)
    [pid] = site.processes()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(PathcastError, match=f"process {pid} of net `{net}` does not end") as error:
            daemon.find("net", net).down()
        assert error.value.code == "gone"
        assert f"kill -9 {pid}" in error.value.hint
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(site.empty)  # the request was waiting for it


def demo(start, site, wait_for, tmp_path, lanes=2):
    """A demo whose networks are up, and that measures."""
    process = start("demo", "--paper", "--rounds", "10", "--lanes", lanes, "--out", tmp_path / "out")
    ready = wait_for(lambda: len([r for r in site.records() if r.endswith(".sock")]) == 2 * lanes)
    assert ready, process.poll()
    return process, site.namespaces()


def test_a_killed_demos_parts_end_by_themselves(start, site, wait_for, tmp_path):
    process, names = demo(start, site, wait_for, tmp_path)
    assert len(names) == 4
    process.kill()
    process.wait()
    assert wait_for(site.empty)
    assert left(names) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_leaves_nothing(start, site, wait_for, tmp_path, number, status):
    process, names = demo(start, site, wait_for, tmp_path)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert site.empty()
    assert left(names) == []
    assert "Traceback" not in err
    assert err.count("pathcast: ") == 1


def test_a_demo_that_is_interrupted_while_its_networks_are_built_leaves_nothing(start, site, wait_for, tmp_path):
    process = start("demo", "--out", tmp_path / "out")
    assert wait_for(lambda: site.records())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert site.empty()


def test_a_demo_whose_network_is_killed_fails_with_a_reason_and_leaves_nothing(start, site, wait_for, tmp_path):
    import json

    process, names = demo(start, site, wait_for, tmp_path)
    kill(next(json.loads(f.read_text())["pid"] for f in site.path.glob("net-*.json")))
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    assert site.empty()
    assert left(names) == []
