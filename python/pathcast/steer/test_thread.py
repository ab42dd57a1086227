"""The controller's thread and sockets, with switches that are bytes: answers that come too late, its own faults."""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from pathcast.errors import PathcastError
from pathcast.steer import controller as controlling
from pathcast.steer import left
from pathcast.steer import openflow as of
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller
from pathcast.steer.kept import load, place
from pathcast.steer.test_machine import ONE, PAIRS, TOLD, TWO
from pathcast.steer.testing import FakeSwitch

LINKS = [{"ends": [f"s{a.switch}:{a.port}", f"s{b.switch}:{b.port}"]} for a, b in PAIRS]


def until(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def connected(controller, *switches):
    """Has the switches connect, and a thread speak for them until the end of the block; yields what takes one away."""
    over = threading.Event()
    sockets, gone = {}, []
    for one in switches:
        one.connect()
        s = socket.socket(socket.AF_UNIX)
        s.connect(controller.listen.removeprefix("unix:"))
        sockets[s] = one

    def speak():
        while not over.is_set():
            for s in select.select(list(sockets), [], [], 0.02)[0]:
                sockets[s].take(s.recv(1 << 16))
            for s, one in list(sockets.items()):
                if one in gone:
                    s.close()
                    del sockets[s]
                    continue
                one.out, out = bytearray(), bytes(one.out)
                with suppress(OSError):  # who does not answer is sent away
                    s.sendall(out)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        until(lambda: all(one["connected"] for one in controller.state()["switches"]))
        yield gone.append
    finally:
        over.set()
        thread.join()
        for s in sockets:
            s.close()


def test_a_begin_that_is_answered_too_late_is_not_carried_out(tmp_path, monkeypatch):
    config = Config.of({**TOLD.document(), "link": LINKS, "listen": f"unix:{tmp_path}/of"})
    switches = [FakeSwitch(1, (1, 2, 3, 4)), FakeSwitch(2, (1, 2, 3, 4)), FakeSwitch(3, (1, 2))]
    with Controller(config) as controller, connected(controller, *switches):
        assert controller.begin({ONE: "path1"}) == {ONE: "path1"}
        switches[2].mute = True
        with monkeypatch.context() as patch:
            patch.setattr(controlling, "_ANSWER_S", 0.2)
            for plan in ({ONE: "path3"}, {TWO: "path2"}):  # under way, and behind it
                with pytest.raises(PathcastError, match="the controller has not answered within"):
                    controller.begin(plan)
        assert [(one["local_port"], one["planned"]) for one in controller.state()["flows"]] == [(40001, "path1")]
        switches[2].mute = False


@pytest.mark.parametrize("mute", [False, True])
def test_what_cannot_be_removed_at_its_end_is_named_and_remembered(tmp_path, monkeypatch, mute):
    config = Config.of({**TOLD.document(), "link": LINKS, "listen": f"unix:{tmp_path}/of"})
    switches = [FakeSwitch(1, (1, 2, 3, 4)), FakeSwitch(2, (1, 2, 3, 4)), FakeSwitch(3, (1, 2))]
    file = place(tmp_path, "one")
    controller = Controller(config, "one", file)
    with connected(controller, *switches) as take_away:
        controller.begin({ONE: "path3"})
        if mute:
            monkeypatch.setattr(controlling, "_SWEEP_S", 0.2)
            switches[2].mute = True
        else:
            take_away(switches[2])
            until(lambda: [one["connected"] for one in controller.state()["switches"]] == [True, True, False])
        assert controller.close() == ["s3"]
    assert [bool(one.table) for one in switches] == [False, False, True]
    assert load(file).switches == {"s3": 3}
    # nor does the next one of its name forget it
    assert Controller(Config(listen=config.listen), "one", file).close() == ["s3"]
    [told] = left.remove(tmp_path, [], 0.1)
    assert told.startswith("not removed: entries of steer one in s3: not connected to")
    # it comes again
    switches[2].mute = False
    controller = Controller(Config(listen=config.listen), "one", file)
    with connected(controller, switches[2]):
        assert controller.close() == []
    assert load(file) is None
    assert not switches[2].table


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_its_own_ends_every_connection(tmp_path, monkeypatch):
    with Controller(Config(listen=f"unix:{tmp_path}/of")) as controller:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(f"{tmp_path}/of")
            assert s.recv(8)
            monkeypatch.setattr(controller.machine, "received", lambda *_: 1 // 0)
            s.sendall(of.pack(of.Hello(), 1))
            while s.recv(4096):
                pass
        with socket.socket(socket.AF_UNIX) as s, pytest.raises(ConnectionRefusedError):
            s.connect(f"{tmp_path}/of")
        with pytest.raises(PathcastError, match=r"ended by a fault of its own: ZeroDivisionError") as caught:
            controller.state()
        assert caught.value.code == "gone"
