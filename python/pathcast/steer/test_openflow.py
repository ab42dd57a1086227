"""Messages and frames as bytes: back and forth, as Open vSwitch sent them, and as ovs-ofctl reads what is written."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathcast.steer import entries
from pathcast.steer import openflow as of
from pathcast.steer.frames import arp, lldp, sender
from pathcast.steer.match import FIELDS, Malformed, pack_match, take_match
from pathcast.steer.rules import COOKIE, MASK, Flow, Port, Rule

FLOW = Flow("10.0.0.1", "10.0.1.1", 7, 8)
RULES = [
    Rule(1, FLOW, 2, 3),
    Rule(1, Flow("10.0.0.1", "10.0.1.1", 7, 8, "udp"), 2, 3),
    Rule(1, Flow("10.0.0.1", "10.0.1.1", 0, 8), 2, 3),
    Rule(1, Flow("10.0.0.1", "10.0.1.1", protocol="ip"), 2, 3),
    Rule(1, Flow("10.0.0.1", "10.0.1.1", protocol="arp"), 2, 3),
    Rule(1, Flow("fd00::1", "fd00::2", 7, 8), 2, 3),
    Rule(1, Flow("::1", "::2", protocol="ip"), 2, 3),
]


def mod(rule, command=entries.ADD, **more):
    return entries.FlowMod(command, entries.match_of(rule), rule.priority, COOKIE | 5, **more)


def add(rule):
    return mod(rule, out=rule.out, alone=True)


# what ovs-ofctl prints for what is packed here
HEAD = "OFPT_FLOW_MOD (OF1.3) (xid=0x9): "
PRINTED = [
    (of.Hello(), "OFPT_HELLO (OF1.3) (xid=0x9):\n version bitmap: 0x04"),
    (of.Error(0, 0, b"why"), "OFPT_ERROR (OF1.3) (xid=0x9): OFPHFC_INCOMPATIBLE\nwhy"),
    (of.FeaturesRequest(), "OFPT_FEATURES_REQUEST (OF1.3) (xid=0x9):"),
    (of.SetConfig(), "OFPT_SET_CONFIG (OF1.3) (xid=0x9): frags=normal miss_send_len=65535"),
    (of.BarrierRequest(), "OFPT_BARRIER_REQUEST (OF1.3) (xid=0x9):"),
    (of.Ask(of.FLOW_STATS), "OFPST_FLOW request (OF1.3) (xid=0x9):"),
    (of.Ask(of.PORT_STATS), "OFPST_PORT request (OF1.3) (xid=0x9): port_no=ANY"),
    (of.Ask(of.PORTS), "OFPST_PORT_DESC request (OF1.3) (xid=0x9): port=ANY"),
    (
        of.PacketOut(4, bytes(12) + b"\x88\xcc" + bytes(46)),
        "OFPT_PACKET_OUT (OF1.3) (xid=0x9): in_port=CONTROLLER actions=output:4 data_len=60\n"
        "vlan_tci=0x0000,dl_src=00:00:00:00:00:00,dl_dst=00:00:00:00:00:00,dl_type=0x88cc",
    ),
    (
        add(RULES[0]),
        HEAD + "ADD priority=103,tcp,in_port=2,nw_src=10.0.0.1,nw_dst=10.0.1.1,tp_src=7,tp_dst=8"
        " cookie:0x7061746800000005 check_overlap actions=output:3",
    ),
    (
        mod(RULES[1], entries.MODIFY, out=4),
        HEAD + "MOD_STRICT priority=103,udp,in_port=2,nw_src=10.0.0.1,nw_dst=10.0.1.1,tp_src=7,"
        "tp_dst=8 actions=output:4",
    ),
    (
        mod(RULES[4], entries.DELETE_STRICT, mask=MASK),
        HEAD + "DEL_STRICT priority=100,arp,in_port=2,arp_spa=10.0.0.1,arp_tpa=10.0.1.1"
        " cookie:0x7061746800000005/0xffffffff00000000 actions=drop",
    ),
    (
        mod(RULES[5], entries.DELETE_STRICT, mask=MASK),
        HEAD + "DEL_STRICT priority=103,tcp6,in_port=2,ipv6_src=fd00::1,ipv6_dst=fd00::2,tp_src=7,"
        "tp_dst=8 cookie:0x7061746800000005/0xffffffff00000000 actions=drop",
    ),
    (
        entries.watches(COOKIE)[1],
        HEAD + "ADD priority=65535,dl_type=0x88cc cookie:0x7061746800000000 actions=CONTROLLER:65535",
    ),
]


@pytest.mark.parametrize(("message", "printed"), PRINTED, ids=[type(one[0]).__name__ for one in PRINTED])
def test_open_vswitch_reads_what_is_written(message, printed):
    if shutil.which("ovs-ofctl") is None:
        pytest.skip("openvswitch: no ovs-ofctl")
    done = subprocess.run(["ovs-ofctl", "ofp-print", of.pack(message, 9).hex()], capture_output=True, text=True)
    assert done.stdout.strip() == printed
    assert not done.stderr


# as an Open vSwitch 3.1 sent them
HELLO = "0400001000000008 0001000800000010"


def take(hexed):
    return list(of.take(bytearray(bytes.fromhex(hexed))))


def test_greetings_with_and_without_a_bitmap():
    assert take(HELLO) == [(8, of.Hello())]
    assert take("0600000800000001") == [(1, of.Hello(frozenset(range(1, 7))))]
    assert take("0100000800000001") == [(1, of.Hello(frozenset({1})))]


@pytest.mark.parametrize(
    "message",
    [
        of.Hello(frozenset({1, 4})),
        of.Error(5, 1, b"x" * 64),
        of.EchoRequest(b"x"),
        of.EchoReply(),
        of.Features(0xFFFF_0000_0000_0001, 254),
        of.PacketIn(3, 7, b"y" * 60),
        of.PortStatus(True, of.PortAbout(2, "a-port", b"abcdef", False)),
        of.BarrierReply(),
        of.Answer(of.PORTS, True, b"z" * 64),
    ],
)
def test_messages_come_back_as_they_were(message):
    buffer = bytearray(of.pack(message, 77) * 2)
    rest = buffer[-1:]
    del buffer[-1:]
    assert list(of.take(buffer)) == [(77, message)]
    buffer += rest
    assert list(of.take(buffer)) == [(77, message)]
    assert not buffer


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_found_in_what_the_switch_says_of_it(rule):
    match = pack_match(entries.match_of(rule))
    told = match + bytes.fromhex("0004001800000000") + of.output(rule.out)
    head = "00" * 10 + f"{rule.priority:04x}" + "00" * 10 + f"{COOKIE | 5:016x}" + f"{3:016x}" + f"{300:016x}"
    data = (48 + len(told)).to_bytes(2, "big") + bytes(1) + bytes.fromhex(head)[1:]
    [entry] = entries.stats(of.Answer(of.FLOW_STATS, False, data + told))
    assert (entry.cookie, entry.packets, entry.bytes, entry.raw) == (COOKIE | 5, 3, 300, match)
    assert entries.rule_of(1, entry) == rule


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), st.integers(0, 255)))
def test_matches_come_back_as_they_were(match):
    packed = pack_match(match)
    assert len(packed) % 8 == 0
    assert take_match(packed + b"rest") == (match, len(packed))


def test_names_of_ports_command_no_terminal():
    port = of.PortAbout(2, "a\x1b[31m]\nb", b"abcdef", True)
    assert of.Answer(of.PORTS, False, port.pack()).ports()[0].name == "a31mb"


@settings(deadline=None)
@given(st.integers(0, 40), st.binary(max_size=120))
def test_bytes_that_are_no_message_are_malformed_or_harmless(kind, body):
    buffer = bytearray(b"\x04" + bytes((kind,)) + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body)
    with contextlib.suppress(Malformed):
        for _, message in of.take(buffer):
            if isinstance(message, of.Answer):
                message.ports()


@settings(deadline=None)
@given(st.sampled_from([entries.stats, of.Answer.ports, of.Answer.counters]), st.binary(max_size=150))
def test_answers_that_break_off_are_malformed_or_harmless(read, body):
    with contextlib.suppress(Malformed):
        read(of.Answer(0, False, body))


@pytest.mark.parametrize("hexed", ["0400000400000000", "0105000800000000", "04060008" + "00" * 4])
def test_wrong_headers_are_malformed(hexed):
    with pytest.raises(Malformed):
        take(hexed)


def test_lldp_says_who_sent_it_and_only_with_the_key():
    frame = lldp(Port(5, 3), b"abcdef", b"key", 120)
    assert sender(frame, b"key") == Port(5, 3)
    assert sender(frame, b"other") is None
    assert sender(frame.replace(b"\x073", b"\x074"), b"key") is None
    assert len(frame) >= 60


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_frames_of_others_are_passed_over(data):
    assert sender(bytes(12) + b"\x88\xcc" + data, b"key") is None
    arp(bytes(12) + b"\x08\x06" + data)


def test_arp_says_who_asks_for_whom():
    told = "ffffffffffff26d0b8f9d4990806000108000604000126d0b8f9d4990a0900010000000000000a090002"
    assert arp(bytes.fromhex(told)) == ("10.9.0.1", "10.9.0.2")
    assert arp(bytes.fromhex(told)[:41]) is None
