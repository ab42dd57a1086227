"""The transfer verbs over a made-up client: what is asked of it, and what comes back."""

from __future__ import annotations

import json
import threading

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.worlds.host import address
from pathcast.worlds.results import Path
from pathcast.worlds.test_results import report, subflow
from pathcast.worlds.verbs import Verbs


class Client:
    """Keeps what it was asked; answers at once, or waits to be cancelled."""

    def __init__(self, waits=False):
        self.asked, self.waits, self.started = [], waits, threading.Event()

    def _answer(self, job, pairs, bytes, control):
        self.asked.append((pairs, bytes, control))
        self.started.set()
        for _ in range(300 if self.waits else 0):
            if job.cancelled:
                raise PathcastError("interrupted", "interrupted", None, 130)
            threading.Event().wait(0.05)
        return json.dumps(report(*(subflow(p["name"], 500) for p in pairs)))

    def tcp(self, job, path, bytes, control):
        return self._answer(job, [json.loads(path)], bytes, control)

    def mptcp(self, job, paths, bytes, control, plain):
        assert not plain
        return self._answer(job, json.loads(paths), bytes, control)


class Job:
    cancelled = False

    def acked(self):
        return 7

    def cancel(self):
        self.cancelled = True


@pytest.fixture
def world(monkeypatch):
    from pathcast import _native

    monkeypatch.setattr(_native, "Job", Job)

    class World(Verbs):
        paths = (Path("p1", ("10.0.1.2", "10.0.1.3"), "10.0.1.1"), Path("p2", ("10.0.2.2",), "10.0.2.1"))
        _client = Client()

    return World()


def test_a_named_path_gives_its_pair(world):
    transfer = world.tcp_probe("p2", 64_000, "reno")
    assert world._client.asked == [([{"name": "p2", "local": "10.0.2.2", "remote": "10.0.2.1"}], 64_000, "reno")]
    assert transfer.paths == ("p2",)


def test_paths_keep_their_order_and_a_repeated_one_takes_its_next_address(world):
    world.transfer(["p2", "p1", "p1"], 10)
    pairs, _, control = world._client.asked[0]
    assert [(p["name"], p["local"]) for p in pairs] == [("p2", "10.0.2.2"), ("p1", "10.0.1.2"), ("p1", "10.0.1.3")]
    assert control is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda w: w.tcp_probe("p3", 1), "no path `p3`; allowed: p1, p2"),
        (lambda w: w.transfer(["p1", "nope"], 1), "no path `nope`; allowed: p1, p2"),
        (lambda w: w.transfer([], 1), "no path was named"),
        (lambda w: w.transfer(["p2", "p2"], 1), "has 1 client addresses, 2 were asked for"),
        (lambda w: w.mptcp_probe(["p1"] * 3, 1), "has 2 client addresses, 3 were asked for"),
    ],
)
def test_paths_that_do_not_exist_are_refused(world, call, words):
    with pytest.raises(PathcastError, match=words) as error:
        call(world)
    assert error.value.exit == Exit.USAGE
    assert world._client.asked == []


def test_cancel_ends_what_runs_and_refuses_what_follows(world):
    world._client = Client(waits=True)
    caught = []

    def work():
        try:
            world.tcp_probe("p1", 1)
        except PathcastError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert world._client.started.wait(30)
    world.cancel()
    thread.join(30)
    assert [e.exit for e in caught] == [Exit.INTERRUPTED]
    with pytest.raises(PathcastError, match="interrupted"):
        world.transfer(["p1"], 1)
    assert len(world._client.asked) == 1


def test_an_interrupt_while_waiting_cancels_the_transfer(world):
    world._client = Client(waits=True)
    jobs = []

    def interrupt(acked):
        assert acked == 7
        jobs.append(True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.tcp_probe("p1", 1, progress=interrupt)
    assert jobs == [True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org", ("example.org", 5275)),
        ("example.org:80", ("example.org", 80)),
        ("192.0.2.1:65535", ("192.0.2.1", 65535)),
        ("::1", ("::1", 5275)),
        ("2001:db8::1", ("2001:db8::1", 5275)),
        ("[2001:db8::1]", ("2001:db8::1", 5275)),
        ("[2001:db8::1]:99", ("2001:db8::1", 99)),
    ],
)
def test_hosts_and_ports(text, expected):
    assert address(text, 5275) == expected


@pytest.mark.parametrize(
    "text", ["", ":80", "h:0", "h:65536", "h:x", "h:-1", "[::1", "[::1]80", "[]:80", "h:²", "h: 1"]
)
def test_what_is_no_host_is_refused(text):
    with pytest.raises(PathcastError) as error:
        address(text, 5275)
    assert error.value.exit == Exit.USAGE
