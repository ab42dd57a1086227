"""The controller as a machine, with switches that are bytes, and a clock of the test's."""

from __future__ import annotations

import random

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.steer import entries, frames
from pathcast.steer import openflow as of
from pathcast.steer.client import Owner
from pathcast.steer.config import Config
from pathcast.steer.kept import Kept
from pathcast.steer.machine import Machine
from pathcast.steer.rules import COOKIE, Flow, Port
from pathcast.steer.testing import Fabric, FakeSwitch

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
AT, END = Port(1, 1), Port(2, 1)
PAIRS = [(Port(1, 2), Port(2, 2)), (Port(1, 3), Port(2, 3)), (Port(1, 4), Port(3, 1)), (Port(3, 2), Port(2, 4))]
WIRES = {a: b for one, two in PAIRS for a, b in ((one, two), (two, one))}
PATHS = {"path1": Port(1, 2), "path2": Port(1, 3), "path3": Port(1, 4)}
MARK = COOKIE | 7
ONE, TWO = (Flow(CLIENT, SERVER, port, 5001) for port in (40001, 40002))
TOLD = Config.of(
    {
        "switch": [{"name": f"s{n}", "id": n} for n in (1, 2, 3)],
        "host": [{"address": CLIENT, "at": "s1:1"}, {"address": SERVER, "at": "s2:1"}],
        "path": [
            {"name": n, "via": v} for n, v in (("path1", ["s1:2"]), ("path2", ["s1:3"]), ("path3", ["s1:4", "s3:2"]))
        ],
    }
)


def fabric(config=TOLD, kept=None, most=1000, tables=None):
    machine = Machine(config, MARK, b"k" * 16, kept)
    switches = [FakeSwitch(1, (1, 2, 3, 4)), FakeSwitch(2, (1, 2, 3, 4)), FakeSwitch(3, (1, 2), most)]
    for one in switches:
        one.table = (tables or {}).get(one.id, {})
    found = Fabric(machine, switches, WIRES)
    found.connect()
    found.settle(3.0)
    return found


@pytest.fixture
def net():
    return fabric()


def begin(net, plan, owner=None):
    ticket = net.machine.begin(plan, owner, net.now)
    net.settle()
    if ticket.error:
        raise ticket.error
    return dict(zip(plan, ticket.result["paths"], strict=True))


def end(net, *flows):
    net.machine.end(flows, net.now)
    net.settle(2.0)


def path_of(net, flow):
    """The path whose first port a flow leaves by, both ways being whole."""
    assert net.send(flow, AT) == END, flow
    assert net.send(flow.back(), END) == AT, flow
    out = net.switches[1].forward(entries.match_of(entries.Rule(1, flow, 1, 0)))
    return next(name for name, port in PATHS.items() if port.port == out)


def tables(net):
    return {id: dict(one.table) for id, one in net.switches.items()}


def down(net, port, up=False):
    """Both ends see it, as of a cable that is pulled."""
    for end in (port, WIRES[port]):
        net.switches[end.switch].status(end.port, up)
    net.settle()


def test_flows_go_over_their_paths_and_leave_nothing(net):
    before = tables(net)
    assert path_of(net, ONE) == "path1"  # what has no path of its own
    assert begin(net, {ONE: "path2", TWO: "path3"}) == {ONE: "path2", TWO: "path3"}
    assert [path_of(net, flow) for flow in (ONE, TWO)] == ["path2", "path3"]
    assert begin(net, {ONE: "path3"}) == {ONE: "path3"}
    assert [path_of(net, flow) for flow in (ONE, TWO)] == ["path3", "path3"]
    end(net, ONE, TWO, Flow(CLIENT, SERVER, 9, 9))
    assert tables(net) == before
    assert path_of(net, ONE) == "path1"


def test_flows_end_with_their_process(net):
    before = tables(net)
    begin(net, {ONE: "path2"}, Owner(1 << 22, 1))
    begin(net, {TWO: "path2"}, Owner.this_process())
    net.settle(3.0)
    assert list(net.machine.plan.flows) == [TWO]
    end(net, TWO)
    assert tables(net) == before


def test_a_port_that_goes_down_moves_flows_and_brings_them_back(net):
    begin(net, {ONE: "path1", TWO: "path2"})
    down(net, Port(1, 2))
    assert path_of(net, ONE) in ("path2", "path3")
    assert path_of(net, TWO) == "path2"
    assert path_of(net, Flow(CLIENT, SERVER, 1, 1)) != "path1"  # what has none of its own moves, too
    down(net, Port(1, 2), up=True)
    net.settle(2.0)
    assert [path_of(net, flow) for flow in (ONE, TWO)] == ["path1", "path2"]


def test_what_is_said_of_a_port_holds_no_longer_than_it_is_down(net):
    net.switches[1].status(2, False)
    net.switches[1].status(3, False)
    net.settle()
    assert [note.partition(" (")[0] for note in net.machine.state()["notes"]] == ["port 2", "port 3"]
    net.switches[1].status(2, True)
    net.settle()
    [note] = net.machine.state()["notes"]
    assert note.startswith("port 3 ")


def test_one_end_that_says_so_is_enough(net):
    begin(net, {ONE: "path3"})
    net.switches[3].status(2, False)
    net.settle()
    assert path_of(net, ONE) != "path3"


def test_a_link_that_is_silent_is_left_and_taken_again(net):
    begin(net, {ONE: "path2"})
    net.dead = {Port(2, 3)}
    net.settle(4.0)
    assert net.machine.plan.chosen[ONE] == "path2"  # some probes may be lost
    net.settle(4.0)
    assert path_of(net, ONE) != "path2"
    net.dead = set()
    net.settle(3.0)
    assert path_of(net, ONE) == "path2"


def test_a_link_that_was_told_is_believed_though_it_is_not_heard():
    links = [{"ends": [f"s{a.switch}:{a.port}", f"s{b.switch}:{b.port}"]} for a, b in PAIRS]
    net = fabric(Config.of({**TOLD.document(), "link": links}))
    begin(net, {ONE: "path2"})
    net.dead = {Port(2, 3)}
    net.settle(15.0)
    assert net.machine.plan.chosen[ONE] == "path2"
    down(net, Port(1, 3))
    assert path_of(net, ONE) != "path2"
    net.dead = set()
    down(net, Port(1, 3), up=True)
    assert path_of(net, ONE) == "path2"


def test_no_path_that_is_left_is_an_error_and_its_end_is_noticed(net):
    begin(net, {ONE: "path1"})
    for name in ("path1", "path2", "path3"):
        down(net, PATHS[name])
    assert net.machine.state()["without_path"]
    with pytest.raises(PathcastError, match="no path is left from 10"):
        begin(net, {TWO: "path1"})
    assert list(net.machine.plan.flows) == [ONE]
    down(net, PATHS["path2"], up=True)
    net.settle(2.0)
    assert path_of(net, ONE) == "path2"


def test_a_full_table_refuses_all_of_a_request_and_leaves_nothing():
    net = fabric(most=4)  # two of them for ARP and LLDP
    begin(net, {ONE: "path3"})
    before, plan = tables(net), dict(net.machine.plan.flows)
    for request in ({TWO: "path3"}, {TWO: "path2", Flow(CLIENT, SERVER, 7, 7): "path3"}):
        with pytest.raises(PathcastError, match=r"switch `s3` does not take the entry `tcp 10.* is full") as caught:
            begin(net, request)
        assert (caught.value.code, caught.value.exit) == ("switch", Exit.RUNTIME)
        assert tables(net) == before
        assert net.machine.plan.flows == plan
    begin(net, {TWO: "path1"})
    before = tables(net)
    with pytest.raises(PathcastError, match="is full"):
        begin(net, {TWO: "path3"})
    assert path_of(net, TWO) == "path1"  # a move that fails leaves it where it was
    net.settle(2.0)
    assert tables(net) == before
    end(net, ONE)
    assert begin(net, {TWO: "path3"}) == {TWO: "path3"}


def test_a_table_that_does_not_even_hold_what_finds_links_is_named():
    net = fabric(most=1)
    [note] = net.machine.state()["notes"]
    assert note == "switch `s3` does not take the entry that brings LLDP to the controller: its table is full"
    net.switches[3].most = 1000
    net.settle(12.0)
    assert begin(net, {ONE: "path3"}) == {ONE: "path3"}


def test_a_failover_to_a_switch_that_is_full_takes_another_path():
    net = fabric(most=2)
    begin(net, {ONE: "path1"})
    down(net, Port(1, 3))
    down(net, Port(1, 2))
    assert net.send(ONE, AT) is None  # only the full one is left
    assert any("is full" in note for note in net.machine.state()["notes"])
    net.switches[3].most = 1000
    net.settle(11.0)
    assert path_of(net, ONE) == "path3"


def test_anothers_entries_are_neither_removed_nor_replaced():
    rule = entries.Rule(1, ONE, 1, 3)
    alien = {(rule.priority, tuple(sorted(entries.match_of(rule).items()))): (99, 4)}
    net = fabric(tables={1: dict(alien)})
    with pytest.raises(PathcastError, match=r"`s1` does not take .* another entry of the same priority is in the way"):
        begin(net, {ONE: "path2"})
    net.settle(3.0)
    assert net.switches[1].table.items() >= alien.items()
    assert net.machine.state()["switches"][0]["others_entries"] == 1
    net.machine.clear(net.now)
    net.settle(3.0)
    assert tables(net) == {1: alien, 2: {}, 3: {}}


def test_a_new_controller_takes_over_what_the_last_one_left(net):
    begin(net, {ONE: "path3"}, Owner.this_process())
    begin(net, {TWO: "path2"}, Owner(1 << 22, 1))
    left = tables(net)
    strange = (101, tuple(sorted({"in_port": 1, "eth_type": 0x0800, "ip_proto": 6}.items())))
    left[1][strange] = (MARK, 2)  # ours, but of no form of ours
    sent = []
    again = Machine(TOLD, MARK, b"n" * 16, net.machine.kept())
    fresh = Fabric(again, [FakeSwitch(1, (1, 2, 3, 4)), FakeSwitch(2, (1, 2, 3, 4)), FakeSwitch(3, (1, 2))], WIRES)
    for id, one in fresh.switches.items():
        one.table = left[id]
        act = one._mod
        one._mod = lambda xid, body, act=act: (sent.append(body), act(xid, body))
    fresh.connect(1, 2)
    fresh.settle(9.0)  # the third one is late
    assert path_of(fresh, ONE) == "path3"
    fresh.connect(3)
    fresh.settle(4.0)
    assert path_of(fresh, ONE) == "path3"
    assert strange not in fresh.switches[1].table
    assert not any(dict(match).get("tcp_src") == 40002 for _, match in fresh.switches[1].table)
    assert all(body[17] in (entries.DELETE_STRICT,) for body in sent)  # what is wanted was there, and stayed


def test_a_link_that_is_told_to_lead_elsewhere_than_before_a_restart_does_so():
    kept = Kept(link=((Port(1, 2), Port(2, 3)), (Port(1, 3), Port(2, 2)), (Port(1, 4), Port(3, 1))))
    links = [{"ends": ["s1:2", "s2:2"]}]
    net = fabric(Config.of({**TOLD.document(), "link": links}), kept)
    assert net.machine.discovery.network().links == WIRES


def test_without_what_it_knew_entries_of_ours_are_removed_once_the_network_is_known(net):
    begin(net, {ONE: "path3"})
    left = tables(net)
    fresh = fabric(Config(), tables=left)
    fresh.settle(3.0)
    assert all(len(table) == 2 for table in tables(fresh).values())


def test_a_switch_that_is_away_keeps_its_flows_and_refuses_new_ones(net):
    begin(net, {ONE: "path3"})
    net.disconnect(3)
    net.settle(3.0)
    assert path_of(net, ONE) == "path3"
    with pytest.raises(PathcastError, match="`s3` is not connected; path `path3` needs it"):
        begin(net, {TWO: "path3"})
    assert begin(net, {TWO: "path2"}) == {TWO: "path2"}
    down(net, Port(1, 3))  # a failover does not go there either
    assert path_of(net, TWO) == "path1"
    net.switches[3].table.clear()
    net.connect(3)
    net.settle(3.0)
    assert path_of(net, ONE) == "path3"


def test_a_switch_that_does_not_answer_is_sent_away_and_its_request_undone(net):
    before = tables(net)
    net.switches[3].mute = True
    ticket = net.machine.begin({ONE: "path3"}, None, net.now)
    net.settle(6.0)
    assert "switch `s3` does not take" in str(ticket.error)
    assert "it answered no barrier for 5 s" in str(ticket.error)
    assert tables(net) == before
    assert path_of(net, ONE) == "path1"


def test_many_switches_that_come_together_miss_no_link():
    """Each one that comes has all of them probed, and no probe is heard before the last one has come."""
    ring = [(Port(n, 1), Port(n % 9 + 1, 2)) for n in range(1, 10)]
    wires = {a: b for one, two in ring for a, b in ((one, two), (two, one))}
    machine = Machine(Config(), MARK, b"k" * 16, Kept(link=tuple(tuple(sorted(ends)) for ends in ring)))
    net = Fabric(machine, [FakeSwitch(n, (1, 2)) for n in range(1, 10)], wires)
    net.dead = set(wires)
    net.connect()
    net.settle(0.1)
    assert len(machine.switches.ready()) == 9
    assert machine.discovery.network().links == wires
    net.dead = set()
    net.settle(3.0)
    assert {link["known"] for link in machine.state()["links"]} == {"heard"}
    net.dead = set(wires)
    net.settle(10.0)
    assert machine.discovery.network().links == {}


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_switch_that_comes_back_with_fewer_ports_has_no_others(forgotten):
    ports = {1: (1, 2), 2: (1, 2, 3)}
    net = Fabric(Machine(Config(), MARK, b"k" * 16), [FakeSwitch(n, some) for n, some in ports.items()], {})
    net.connect()
    net.settle(1.0)
    net.disconnect(2)
    if forgotten:
        assert net.machine.switches.forget()
    del net.switches[2].ports[3]
    net.connect(2)
    net.settle(3.0)
    assert net.machine.discovery.edges() == {Port(1, 1), Port(1, 2), Port(2, 1), Port(2, 2)}
    [about] = [one["ports"] for one in net.machine.state()["switches"] if one["id"] == 2]
    assert [port["port"] for port in about] == [1, 2]


def test_a_forgotten_switch_may_say_its_entries_before_its_ports():
    net = Fabric(Machine(Config(), MARK, b"k" * 16), [FakeSwitch(1, (1, 2))], {})
    net.connect()
    net.settle(1.0)
    net.disconnect(1)
    assert net.machine.switches.forget()
    late, say = [], net.switches[1].say

    def entries_first(message, xid=0):
        if isinstance(message, of.Answer) and message.what == of.PORTS:
            late.append((message, xid))
        else:
            say(message, xid)

    net.switches[1].say = entries_first
    net.connect(1)
    net.settle()
    assert late
    say(*late.pop())
    net.settle(3.0)
    assert net.machine.discovery.edges() == {Port(1, 1), Port(1, 2)}


def test_a_silent_switch_is_away_after_some_seconds(net):
    net.switches[2].mute = True
    net.settle(5.0)
    assert net.machine.switches.is_ready(2)
    net.settle(6.0)
    assert not net.machine.switches.is_ready(2)


def test_entries_that_somebody_removed_come_again(net):
    begin(net, {ONE: "path3"})
    before = tables(net)
    net.switches[3].table.clear()
    net.settle(12.0)
    net.switches[3].table.update({k: v for k, v in before[3].items() if k[0] in (0, 65535)})
    assert tables(net) == before


@pytest.mark.parametrize(
    ("plan", "code", "told"),
    [
        ({ONE: "path9"}, Exit.USAGE, "no path `path9`; allowed: path1, path2, path3"),
        ({Flow("10.0.0.9", SERVER, 1, 1): "path1"}, Exit.RUNTIME, r"nobody knows where 10\.0\.0\.9 is"),
        ({Flow(CLIENT, SERVER, protocol="arp"): "path1"}, Exit.USAGE, "allowed are tcp, udp"),
    ],
)
def test_requests_that_make_no_sense_are_refused(net, plan, code, told):
    before = tables(net)
    with pytest.raises(PathcastError, match=told) as caught:
        begin(net, {TWO: "path1", **plan})
    assert caught.value.exit == code
    net.settle(2.0)
    assert tables(net) == before


def arp(local, remote):
    from ipaddress import ip_address

    sides = (bytes(6) + ip_address(local).packed, bytes(6) + ip_address(remote).packed)
    return (bytes(12) + b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01" + b"".join(sides)).ljust(60, b"\0")


def test_hosts_and_paths_are_found_without_being_told():
    net = fabric(Config())
    with pytest.raises(PathcastError, match="none is known yet"):
        begin(net, {ONE: "path1"})
    net.switches[1].say(of.PacketIn(1, 0, arp(CLIENT, SERVER)))
    net.settle()
    net.switches[2].say(of.PacketIn(1, 0, arp(SERVER, CLIENT)))
    net.settle(3.0)
    assert {name: list(chain) for name, chain in net.machine.plan.paths.items()} == {
        "path1": [Port(1, 2)],
        "path2": [Port(1, 3)],
        "path3": [Port(1, 4), Port(3, 2)],
    }
    assert path_of(net, Flow(CLIENT, SERVER, protocol="arp")) == "path1"
    assert begin(net, {ONE: "path3"}) == {ONE: "path3"}
    assert begin(net, {TWO.back(): "path2"}) == {TWO.back(): "path2"}  # told from the other end
    assert path_of(net, TWO) == "path2"
    assert {h["known"] for h in net.machine.state()["hosts"]} == {"arp"}
    assert {one["known"] for one in net.machine.state()["links"]} == {"heard"}


def test_who_asks_again_is_answered_no_sooner_than_packets_pass():
    """A host without an answer asks again after a second, when its entries are chosen, but not yet in all switches."""
    net = fabric(Config())
    flow = Flow(CLIENT, SERVER, protocol="ip")
    answered = []

    class Packets(list):
        def append(self, packet):
            if packet[0] == 1 and frames.arp(packet[1]) is not None:
                answered.append((net.send(flow, Port(1, 1)), net.send(flow.back(), Port(2, 1))))
            super().append(packet)

    net.switches[1].say(of.PacketIn(1, 0, arp(CLIENT, SERVER)))
    net.settle()
    net.switches[1].packets = Packets()
    for _ in range(30):
        net.switches[2].say(of.PacketIn(1, 0, arp(SERVER, CLIENT)))
        net._pass()
        net.now += 0.05
        net.machine.tick(net.now)
    net.settle(3.0)
    assert answered == [(Port(2, 1), Port(1, 1))] * len(answered)
    assert len(answered) >= 20


def test_arp_on_a_link_makes_no_host_of_it():
    net = fabric(Config())
    net.switches[1].say(of.PacketIn(2, 0, arp(CLIENT, SERVER)))
    net.settle(1.0)
    assert net.machine.state()["hosts"] == []


def test_forged_lldp_makes_no_link(net):
    from pathcast.steer.frames import lldp

    before = net.machine.state()["links"]
    net.switches[1].say(of.PacketIn(1, 0, lldp(END, bytes(6), b"x" * 16, 120)))
    net.settle(1.0)
    assert net.machine.state()["links"] == before


@pytest.mark.parametrize(("left", "told"), [(3, "s1:3 comes back by s1:1"), (1, "s1:1 comes back by s1:1")])
def test_what_comes_back_to_its_own_switch_is_no_link(net, left, told):
    """A cable between two ports of a switch, a host that reflects."""
    begin(net, {ONE: "path3"})
    before = net.machine.state()["links"]
    net.switches[1].say(of.PacketIn(1, 0, frames.lldp(Port(1, left), bytes(6), b"k" * 16, 120)))
    net.settle(3.0)
    state = net.machine.state()
    assert state["links"] == before
    assert state["notes"] == [f"what leaves by the port {told}"]
    assert path_of(net, ONE) == "path3"


def test_wires_other_than_told_are_noted_and_believed():
    told = {**{"switch": [{"name": f"s{n}", "id": n} for n in (1, 2)]}, "link": [{"ends": ["s1:2", "s2:3"]}]}
    net = fabric(Config.of(told))
    assert net.machine.discovery.network().links[Port(1, 2)] == Port(2, 2)
    assert any("other than told" in note for note in net.machine.state()["notes"])


def test_other_versions_are_sent_away_with_the_reason():
    machine = Machine(TOLD, MARK, b"k" * 16)
    old = FakeSwitch(1, (1,))
    old.versions = frozenset({1})
    net = Fabric(machine, [old], {})
    net.connect()
    net.settle(1.0)
    assert any("it speaks OpenFlow 1.0, not 1.3" in note for note in machine.state()["notes"])


def test_a_flow_has_one_path_whichever_end_tells_it(net):
    begin(net, {ONE: "path2"})
    for plan in ({ONE.back(): "path1"}, {TWO: "path1", TWO.back(): "path2"}):
        with pytest.raises(PathcastError, match="from its other end already") as caught:
            begin(net, plan)
        assert caught.value.exit == Exit.USAGE
    assert path_of(net, ONE) == "path2"


def test_a_link_that_is_not_heard_is_better_than_none(net):
    begin(net, {ONE: "path2"})
    for name in ("path1", "path3"):
        down(net, PATHS[name])
    net.switches[2].say = lambda message, xid=0, say=net.switches[2].say: (
        None if isinstance(message, of.PacketIn) else say(message, xid)
    )
    net.settle(12.0)
    assert net.machine.plan.lost
    assert path_of(net, ONE) == "path2"


def test_two_controllers_of_two_names_do_not_take_each_others_entries(net):
    other = COOKIE | 8
    for watch in entries.watches(other):
        net.switches[1].table[watch.priority, tuple(watch.match.items())] = (other, of.CONTROLLER)
    net.machine.clear(net.now)
    net.settle(1.0)
    assert {cookie for cookie, _ in net.switches[1].table.values()} == {other}
    assert len(net.switches[1].table) == 2


def test_a_second_controller_of_the_same_mark_is_noted(net):
    begin(net, {ONE: "path3"})
    net.settle(12.0)
    assert not any("this controller's mark" in note for note in net.machine.state()["notes"])
    rule = entries.Rule(1, TWO, 1, 2)
    net.switches[1].table[rule.priority, tuple(sorted(entries.match_of(rule).items()))] = (MARK, 2)
    net.settle(12.0)
    [note] = [note for note in net.machine.state()["notes"] if "this controller's mark" in note]
    assert "switch `s1` got entries" in note


def test_a_request_meets_the_end_of_all(net):
    """What was asked for when all entries are removed leaves none behind."""
    net.switches[1].mute = True
    ticket = net.machine.begin({ONE: "path3"}, None, net.now)
    net.machine.clear(net.now)
    net.switches[1].mute = False
    net.settle(1.0)
    assert ticket.error is not None or net.machine.plan.flows == {}
    assert {id: len(table) for id, table in tables(net).items()} in ({1: 0, 2: 0, 3: 0}, {1: 2, 2: 2, 3: 2})


def test_who_does_not_say_what_it_is_is_sent_away(net):
    session = net.machine.connected(net.now)
    net.machine.tick(net.now + 4)
    assert session not in net.machine.closing
    net.machine.tick(net.now + 6)
    assert session in net.machine.closing


@pytest.mark.parametrize("seed", range(8))
def test_bytes_that_are_no_openflow_end_one_connection(seed):
    draw = random.Random(seed)
    net = fabric()
    begin(net, {ONE: "path1"})
    good = bytes(of.pack(of.Answer(of.FLOW_STATS, False, draw.randbytes(draw.randint(0, 200))), 3))
    bad = bytearray(good if seed % 2 else draw.randbytes(draw.randint(8, 300)))
    for _ in range(draw.randint(0, 3)):
        bad[draw.randrange(len(bad))] = draw.randrange(256)
    net.switches[1].out += bad
    net.settle(1.0)
    net.connect(1)
    net.settle(3.0)
    assert path_of(net, ONE) == "path1"


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_flows_end_up_where_they_can_be(seed):
    """Drawn at random: begins, ends, ports, switches that come and go, small tables, restarts of the controller."""
    draw = random.Random(seed)
    net = fabric(most=draw.choice((4, 8, 1000)))
    flows = [Flow(CLIENT, SERVER, port, 5001) for port in range(1, 6)]
    for _ in range(40):
        what = draw.choice(("begin", "begin", "end", "port", "port", "away", "silent", "mute", "time", "restart"))
        if what == "begin":
            chosen = draw.sample(flows, draw.randint(1, 3))
            net.machine.begin({f: draw.choice(sorted(PATHS)) for f in chosen}, None, net.now)
        elif what == "end":
            net.machine.end([draw.choice(flows)], net.now)
        elif what == "port":
            port = draw.choice(sorted(WIRES))
            for one in (port, WIRES[port]):
                net.switches[one.switch].status(one.port, not net.switches[port.switch].ports[port.port])
        elif what == "away" and len(net.sessions) == 3:
            net.disconnect(draw.choice(sorted(net.sessions)))
        elif what == "silent":
            net.dead ^= {draw.choice(sorted(WIRES))}
        elif what == "mute":
            one = draw.choice(list(net.switches.values()))
            one.mute = not one.mute
        elif what == "restart":
            net.machine = Machine(TOLD, MARK, draw.randbytes(16), net.machine.kept(), net.now)
            net.sessions = {}
            net.connect()
        net.settle(draw.choice((0.0, 0.0, 0.3, 3.0)))
        if len(net.sessions) < 3 and draw.random() < 0.5:
            net.connect(*(set(net.switches) - set(net.sessions)))
    net.dead = set()
    for one in net.switches.values():
        one.mute = False
    net.connect(*net.switches)
    for port in WIRES:
        net.switches[port.switch].status(port.port, True)
    net.switches[3].most = 1000
    net.settle(25.0)
    planned = {flow: name for flow, (name, _) in net.machine.plan.flows.items()}
    assert {flow: path_of(net, flow) for flow in planned} == planned
    assert not net.machine.plan.lost
    net.machine.end(flows, net.now)
    net.settle(5.0)
    assert tables(net) == tables(fabric())


def test_counters_are_those_of_the_switches(net):
    begin(net, {ONE: "path3", TWO: "path2"})
    ticket = net.machine.count(net.now)
    net.settle()
    found = {path["name"]: path for path in ticket.result["paths"]}
    assert [found[name]["flows"] for name in PATHS] == [0, 1, 1]
    assert found["path3"]["sent_bytes"] == 300
    assert [link["ends"] for link in found["path3"]["links"]] == [["s1:4", "s3:1"], ["s3:2", "s2:4"]]
    assert found["path3"]["links"][0]["there"] == {"bytes": 3, "packets": 1, "dropped": 5, "errors": 7}
    assert {one["sent_packets"] for one in ticket.result["flows"]} == {3}


def test_counters_while_a_link_fails_are_told(net):
    begin(net, {ONE: "path3", TWO: "path2"})
    ticket = net.machine.count(net.now)
    net.switches[3].status(1, False)
    net.settle()
    found = {one["local_port"]: one["switches"] for one in ticket.result["flows"]}
    assert (found[40001], len(found[40002])) == ([], 2)


def test_a_request_that_nobody_waits_for_is_undone(net):
    before = tables(net)
    net.switches[3].mute = True
    first = net.machine.begin({ONE: "path3"}, None, net.now)
    second = net.machine.begin({TWO: "path2"}, None, net.now)
    net.settle(1.0)
    for one in (first, second):
        net.machine.withdraw(one, net.now)
    net.settle(6.0)
    assert net.machine.plan.flows == {}
    net.switches[3].mute = False
    net.connect(3)
    net.settle(3.0)
    assert tables(net) == before
    # be it in force already, but not what came after it
    late = net.machine.begin({ONE: "path2", TWO: "path2"}, None, net.now)
    net.settle()
    begin(net, {TWO: "path3"})
    net.machine.withdraw(late, net.now)
    net.settle(3.0)
    assert {flow: name for flow, (name, _) in net.machine.plan.flows.items()} == {TWO: "path3"}
    assert begin(net, {ONE: "path3"}) == {ONE: "path3"}


def test_what_is_kept_is_read_again(net, tmp_path):
    from pathcast.steer.kept import load, store

    begin(net, {ONE: "path3"}, Owner.this_process())
    kept = net.machine.kept()
    store(tmp_path / "k", kept)
    assert load(tmp_path / "k") == kept
    assert load(tmp_path / "none") is None
    for text in ("", "{", "[]", '{"flows": [{"flow": {"local": "x", "remote": "y"}, "path": "p"}]}'):
        (tmp_path / "k").write_text(text)
        with pytest.raises(PathcastError, match="cannot be read"):
            load(tmp_path / "k")
    assert isinstance(kept, Kept)
