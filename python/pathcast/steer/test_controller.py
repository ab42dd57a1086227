"""The controller with Open vSwitch: counted packets cross it while plans change, a cable is pulled, it dies."""

from __future__ import annotations

import json
import time

import pytest

from pathcast import machine
from pathcast.errors import Exit, PathcastError
from pathcast.steer.config import Config
from pathcast.steer.controller import Controller, cookie, listener
from pathcast.steer.machine import SETTLED_S
from pathcast.steer.rules import Flow, ours
from pathcast.steer.testing import ip

# numbered packets, some in flight at a time and none sent again, each echoed: N, from port, to port
PING = """
import socket, sys
count, here, there = map(int, sys.argv[1:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.9.0.1", here)); s.connect(("10.9.0.2", there)); s.settimeout(10)
sent, back = 0, set()
print("begun", flush=True)
while len(back) < count:
    while sent < count and sent - len(back) < 16:
        s.send(b"%d" % sent); sent += 1
    try:
        back.add(int(s.recv(99)))
    except TimeoutError:
        break
print(sent - len(back))
"""
ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.9.0.2", int(sys.argv[1])))
print("bound", flush=True)
while True:
    s.sendto(*s.recvfrom(99))
"""
SINK = """
import hashlib, socket, sys
s = socket.create_server(("10.9.0.2", int(sys.argv[1]))); print("bound", flush=True)
c, _ = s.accept(); h = hashlib.sha256(); n = 0
while data := c.recv(1 << 16):
    h.update(data); n += len(data)
c.sendall(h.hexdigest().encode()); c.close(); print(n)
"""
SEND = """
import hashlib, os, socket, sys
here, there, size = map(int, sys.argv[1:])
s = socket.socket(); s.bind(("10.9.0.1", here)); s.settimeout(60); s.connect(("10.9.0.2", there))
print("begun", flush=True)
h = hashlib.sha256(); piece = os.urandom(1 << 16)
for _ in range(size >> 16):
    h.update(piece); s.sendall(piece)
s.shutdown(socket.SHUT_WR)
print("same" if s.recv(99) == h.hexdigest().encode() else "other")
"""

pytestmark = pytest.mark.privileged


def until(asked, patience_s=60.0):
    deadline = time.monotonic() + patience_s
    while not asked():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stands(controller):
    state = controller.state()
    links = [link["stands"] for link in state["links"]]
    return len(links) == 4 and all(links) and all(s["connected"] for s in state["switches"])


def settled(controller):
    """It is sure of what there is."""
    return time.monotonic() - controller.machine.discovery.changed_at >= SETTLED_S


def swept(controller):
    """It has removed what is spare."""
    until(lambda: settled(controller))
    controller.end([])  # before it answers it looks for what is spare
    until(lambda: not controller.machine.tables._gone)  # packets may be on their way over the rest
    controller.end([])


@pytest.fixture
def controller(bed, tmp_path):
    with Controller(Config.of(bed.told(links=True)), file=tmp_path / "kept") as controller:
        bed.connect()
        until(lambda: stands(controller))
        yield controller


@pytest.fixture
def program(bed):
    """Starts programs on hosts, and waits for their first line; ends them after the test."""
    running = []

    def program(host, text, *arguments):
        running.append(bed.python(host, text, *arguments))
        assert running[-1].stdout.readline()
        return running[-1]

    yield program
    for one in running:
        one.kill()
        one.communicate()


def test_controllers_of_one_name_on_hosts_of_one_name_have_marks_of_their_own(tmp_path, monkeypatch):
    files = [tmp_path / name for name in ("one", "other", "none")]
    for file in files[:2]:
        file.write_text(f"{file.name}\n")
    marks = []
    for file in (*files, files[0]):
        monkeypatch.setattr(machine, "MACHINE_IDS", (str(file),))
        marks.append(cookie("steer"))
    assert marks[0] == marks[3]
    assert len(set(marks)) == 3
    assert all(ours(mark) for mark in marks)
    assert cookie("other") != marks[0]


def test_a_change_of_plan_loses_no_packet(bed, controller, program):
    flow = Flow(bed.CLIENT, bed.SERVER, 40001, 5001, "udp")
    program(bed.server, ECHO, 5001)
    controller.begin({flow: "path1"})
    ping = program(bed.client, PING, 20_000, 40001, 5001)
    moves = 0
    while ping.poll() is None:
        name = ("path2", "path3", "path1")[moves % 3]
        assert controller.begin({flow: name}) == {flow: name}
        moves += 1
        time.sleep(0.02)
    assert ping.stdout.read() == "0\n"
    assert moves >= 3

    def counted():
        [one] = controller.counters()["flows"]
        return one["sent_packets"], one["received_packets"]

    until(lambda: counted() == (20_000, 20_000))  # the switch counts late
    controller.end([flow])


def test_a_pulled_cable_moves_flows_that_run(bed, controller, program):
    flow = Flow(bed.CLIENT, bed.SERVER, 40002, 5002)
    sink = program(bed.server, SINK, 5002)
    controller.begin({flow: "path2"})
    send = program(bed.client, SEND, 40002, 5002, 64 << 20)
    bed.link("b1", "down")
    try:
        until(lambda: controller.state()["flows"][0]["path"] != "path2")
        assert send.stdout.read() == "same\n", send.stderr.read()
        assert sink.stdout.read() == f"{64 << 20}\n"
        assert controller.begin({flow: "path2"})[flow] != "path2"
    finally:
        bed.link("b1", "up")
    until(lambda: controller.state()["flows"][0]["path"] == "path2")
    controller.end([flow])


def test_a_full_table_is_named_and_nothing_is_half_done(bed, controller):
    one, two = (Flow(bed.CLIENT, bed.SERVER, port, 5003) for port in (1, 2))
    controller.begin({one: "path3"})
    before = bed.entries()
    with pytest.raises(
        PathcastError, match=r"switch `s3` does not take the entry `tcp 10\.9.*: its table is full"
    ) as caught:
        controller.begin({two: "path3"})
    assert caught.value.exit == Exit.RUNTIME
    assert bed.entries() == before
    controller.end([one])
    until(lambda: controller.begin({two: "path3"}) == {two: "path3"} if len(bed.entries()["s3"]) == 2 else False)


def test_flows_outlive_the_controller_and_the_next_one_takes_them_over(bed, controller, program, tmp_path):
    flow, gone = (Flow(bed.CLIENT, bed.SERVER, port, 5004, "udp") for port in (40004, 40005))
    program(bed.server, ECHO, 5004)
    controller.begin({flow: "path3"})
    bed.ofctl("add-flow", "s1", "priority=7,udp,tp_src=9,actions=drop")
    controller.close(keep=True)
    before = bed.entries()
    assert program(bed.client, PING, 100, 40004, 5004).stdout.read() == "0\n"
    with Controller(Config.of(bed.told(links=True)), file=tmp_path / "kept") as again:
        until(lambda: stands(again))
        swept(again)
        assert bed.entries() == before
        again.begin({gone: "path1"})
    assert bed.entries() == {"s1": ["priority=7,udp,tp_src=9 actions=drop"], "s2": [], "s3": []}
    bed.ofctl("del-flows", "s1")


def test_anothers_entry_in_the_same_place_stays(bed, controller):
    flow = Flow(bed.CLIENT, bed.SERVER, 40007, 5007)
    fields = "priority=103,tcp,in_port=1,nw_src=10.9.0.1,nw_dst=10.9.0.2,tp_src=40007,tp_dst=5007"
    controller.begin({flow: "path2"})
    assert any(f"{fields} actions=output:3" in entry for entry in bed.entries()["s1"])
    controller.end([flow])
    until(lambda: "5007" not in str(bed.entries()))
    bed.ofctl("add-flow", "s1", f"{fields},cookie=5,actions=output:2")
    before = bed.entries()
    with pytest.raises(PathcastError, match=r"`s1` does not take .* another entry of the same priority is in the way"):
        controller.begin({flow: "path2"})
    assert bed.entries() == before
    bed.ofctl("del-flows", "s1", "cookie=5/-1")
    assert controller.begin({flow: "path2"}) == {flow: "path2"}
    controller.end([flow])


def test_two_controllers_of_one_network_leave_each_other_their_entries(bed, controller, tmp_path):
    flows = [Flow(bed.CLIENT, bed.SERVER, port, 5008) for port in (40008, 40009)]
    told = {**bed.told(links=True), "listen": f"unix:{tmp_path}/of"}
    controller.begin({flows[0]: "path2"})
    try:
        with Controller(Config.of(told), "other") as other:
            bed.connect(other.listen)
            until(lambda: stands(other))
            with pytest.raises(PathcastError, match="another entry of the same priority is in the way"):
                other.begin({flows[0]: "path1"})
            assert other.begin({flows[1]: "path1"}) == {flows[1]: "path1"}
            assert any("another controller of pathcast's" in note for note in other.state()["notes"])
            assert controller.state()["flows"][0]["path"] == "path2"

            def counts():
                marks = [entry.split(",")[0] for entry in bed.entries()["s1"] if "priority=103" in entry]
                return sorted(marks.count(mark) for mark in set(marks))

            swept(other)
            until(lambda: counts() == [2, 2])  # what was begun in vain is gone
        assert len({entry.split(",")[0] for entry in bed.entries()["s1"]}) == 1
    finally:
        bed.connect()
    controller.end([flows[0]])


def test_what_nobody_told_is_found(bed, program):
    with Controller(Config(listen=bed.told()["listen"])) as controller:
        bed.connect()
        until(lambda: stands(controller))
        swept(controller)  # hosts are no switches; what another test's controller left may carry the first packets
        program(bed.server, ECHO, 5005)
        for host in (bed.client, bed.server):
            # what waits for an answer is given up after 3 s, which a busy machine may take
            ip("-n", host, "ntable", "change", "name", "arp_cache", "dev", "eth", "mcast_probes", "30")
            ip("-n", host, "neighbour", "flush", "dev", "eth")

        def lost(count):
            return program(bed.client, PING, count, 40006, 5005).stdout.read()

        # Open vSwitch drops by what it decided for another test's packets until a moment after it has said that the
        # entries are there
        until(lambda: lost(1) == "0\n")
        assert lost(10) == "0\n", json.dumps(controller.state())
        until(lambda: len(controller.state()["paths"]) == 3)
        state = controller.state()
        assert {one["known"] for one in state["links"]} == {"heard"}
        assert {one["address"]: one["at"] for one in state["hosts"]} == {bed.CLIENT: "s1:1", bed.SERVER: "s2:1"}


@pytest.mark.parametrize("place", ["tcp:127.0.0.1:0", "unix:of"])
def test_two_controllers_at_one_place_are_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    first, target = listener(place)
    with first, pytest.raises(PathcastError, match="somebody listens at") as caught:
        listener(target)
    assert (caught.value.code, caught.value.exit) == ("in-use", Exit.RUNTIME)
    if place.startswith("unix"):
        listener(target)[0].close()  # of one that is dead


@pytest.mark.parametrize(
    "place", ["", "tcp:", "tcp:localhost:1", "tcp:127.0.0.1", "tcp:127.0.0.1:65536", "unix:", "ssl:::1:1"]
)
def test_places_that_are_none_are_refused(place):
    with pytest.raises(PathcastError, match="no place to listen at: allowed are tcp:") as caught:
        listener(place)
    assert caught.value.exit == Exit.USAGE
