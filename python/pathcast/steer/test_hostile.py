"""What strangers may do to the controller: those who reach its port, and hosts behind the switches."""

from __future__ import annotations

import random
import socket

import pytest

from pathcast.errors import PathcastError
from pathcast.steer import openflow as of
from pathcast.steer.config import Config
from pathcast.steer.controller import MOST_SWITCHES, Controller
from pathcast.steer.discovery import MOST_AT, MOST_HOSTS
from pathcast.steer.machine import Machine
from pathcast.steer.plan import MOST_PAIRS
from pathcast.steer.switch import Ended, Session
from pathcast.steer.switches import MOST_KNOWN
from pathcast.steer.test_machine import CLIENT, ONE, SERVER, TOLD, arp, begin, fabric, path_of, tables


def greeted(session):
    return [event for _, event in session.received(of.pack(of.Hello(), 1), 0.0)]


def test_answers_to_nothing_are_not_kept():
    session = Session(0.0)
    greeted(session)
    part = of.Answer(of.FLOW_STATS, True, bytes(60_000))
    for xid in range(2000):
        assert [event for _, event in session.received(of.pack(part, 1000 + xid), 0.0)] == []
    assert session._parts == {}


def test_an_answer_without_end_ends_the_connection():
    session = Session(0.0)
    greeted(session)
    xid = session.send(of.Ask(of.FLOW_STATS))
    part = of.pack(of.Answer(of.FLOW_STATS, True, bytes(60_000)), xid)
    count = 0
    while count < 3000:
        count += 1
        if any(isinstance(event, Ended) for _, event in session.received(part, 0.0)):
            break
    assert count * 60_000 < 100e6


def test_a_flood_of_forged_addresses_leaves_the_others_as_they_are():
    net = fabric()
    begin(net, {ONE: "path3"})
    before, draw = tables(net), random.Random(1)
    for _ in range(3000):
        forged = f"172.16.{draw.randrange(256)}.{draw.randrange(256)}"
        net.switches[1].say(of.PacketIn(1, 0, arp(forged, SERVER)))
        net.switches[1].say(of.PacketIn(1, 0, arp(SERVER, CLIENT)))  # whose place was told
    net.settle(3.0)
    state = net.machine.state()
    assert sum(host["at"] == "s1:1" for host in state["hosts"]) <= MOST_AT
    assert {host["address"]: host["at"] for host in state["hosts"] if host["known"] == "told"} == {
        CLIENT: "s1:1",
        SERVER: "s2:1",
    }
    assert any("more than" in note for note in state["notes"])
    assert path_of(net, ONE) == "path3"
    for switch, entries in before.items():
        assert entries.items() <= tables(net)[switch].items()
    assert len(net.switches[1].table) < 6 * MOST_AT + 50


def test_hosts_and_pairs_have_an_end():
    machine = Machine(Config(), 1, b"k" * 16)
    from pathcast.steer.rules import Port

    for switch in range(1, 200):
        port = Port(switch, 1)
        machine.discovery.port(port, True, 0.0)
        for host in range(20):
            machine.discovery.spoke(f"10.{switch % 256}.0.{host}", port, 5.0)
    assert len(machine.discovery.network().client) == MOST_HOSTS
    for number in range(MOST_PAIRS + 100):
        machine.plan.meet("10.0.0.1", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(machine.plan.pairs) == MOST_PAIRS


def test_names_of_switches_that_come_and_go_have_an_end():
    machine = Machine(TOLD, 1, b"k" * 16)
    for id in range(100, 100 + 2 * MOST_KNOWN):
        session = machine.connected(0.0)
        machine.received(session, of.pack(of.Hello(), 1) + of.pack(of.Features(id), 2), 0.0)
        machine.lost(session, "it closed the connection", 0.0)
    assert len(machine.switches.by_id) <= MOST_KNOWN
    assert {1, 2, 3} <= set(machine.switches.by_id)


def test_connections_that_say_nothing_do_not_keep_a_switch_out():
    with Controller(Config(listen="tcp:127.0.0.1:0")) as controller:
        port = int(controller.listen.rpartition(":")[2])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_SWITCHES + 20)]
        with socket.create_connection(("127.0.0.1", port)) as switch:
            switch.settimeout(20)
            assert switch.recv(8)[:2] == of.pack(of.Hello(), 1)[:2]
            switch.sendall(of.pack(of.Hello(), 1))
            assert switch.recv(4096)  # it goes on to ask who that is
        assert len(controller._connections) <= MOST_SWITCHES
        for one in silent:
            one.close()


@pytest.mark.parametrize("seed", range(6))
def test_what_strangers_say_over_a_socket_ends_their_connection_at_most(seed):
    draw = random.Random(seed)
    with Controller(Config(listen="tcp:127.0.0.1:0")) as controller:
        port = int(controller.listen.rpartition(":")[2])
        for _ in range(40):
            words = b""
            for _ in range(draw.randint(1, 6)):
                kind, length = draw.randrange(30), draw.choice((0, 3, 8, 12, 24, 56, 400, 65535))
                head = bytes((draw.choice((4, 4, 4, 1, 6)), kind)) + length.to_bytes(2, "big") + draw.randbytes(4)
                words += head + draw.randbytes(draw.choice((0, 4, 16, max(0, length - 8))))
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                try:
                    stranger.sendall(draw.choice((b"", of.pack(of.Hello(), 1))) + words)
                except OSError:
                    continue
        assert controller.state()["links"] == []
        with pytest.raises(PathcastError):
            controller.begin({ONE: "path1"})
