"""Entries of a switch's table as bytes: flow mods, flow statistics, and which entry a rule is. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import ClassVar

from pathcast.steer.match import FIELDS, Malformed, Match, pack_match, take_match
from pathcast.steer.openflow import ANY, CONTROLLER, NO_BUFFER, Answer, output
from pathcast.steer.rules import PROTOCOLS, Flow, Rule

IPV4, ARP, IPV6, LLDP = 0x0800, 0x0806, 0x86DD, 0x88CC
# what comes to the controller
WATCHED = {ARP: "ARP", LLDP: "LLDP"}

ADD, MODIFY, DELETE, DELETE_STRICT = 0, 2, 3, 4
_CHECK_OVERLAP = 2
_STATS = struct.Struct("!HBxIIHHHH4xQQQ")


@dataclass(frozen=True)
class FlowMod:
    """A change of a table: ADD (refused where another's entry overlaps, if `alone`), MODIFY, DELETE_STRICT.

    out: the port that packets leave by. DELETE: all entries with `cookie` under `mask`.
    """

    kind: ClassVar[int] = 14
    command: int
    match: Match | bytes
    priority: int
    cookie: int
    mask: int = 0
    out: int | None = None
    alone: bool = False

    def body(self) -> bytes:
        flags = _CHECK_OVERLAP if self.alone and self.command == ADD else 0
        table = 0xFF if self.command == DELETE else 0
        head = (self.cookie, self.mask, table, self.command, 0, 0, self.priority, NO_BUFFER, ANY, ANY, flags)
        instructions = b""
        if self.out is not None:
            action = output(self.out)
            instructions = struct.pack("!HH4x", 4, 8 + len(action)) + action
        match = self.match if isinstance(self.match, bytes) else pack_match(self.match)
        return struct.pack("!QQBBHHHIIIH2x", *head) + match + instructions


@dataclass(frozen=True)
class Stats:
    """An entry that a switch has, and what it has carried.

    raw: its match as bytes; out: None where it does anything but send by one port.
    """

    match: tuple[tuple[str, int], ...]
    raw: bytes
    priority: int
    cookie: int
    packets: int
    bytes: int
    out: int | None


def stats(answer: Answer) -> list[Stats]:
    """Of an answer about entries. Raises Malformed."""
    found, data = [], answer.data
    while data:
        if len(data) < _STATS.size:
            raise Malformed(f"{len(data)} bytes of an entry")
        length, _, _, _, priority, _, _, _, cookie, packets, carried = _STATS.unpack_from(data)
        if not _STATS.size <= length <= len(data):
            raise Malformed(f"an entry of {length} bytes")
        rest = data[_STATS.size : length]
        match, size = take_match(rest)
        out = _out(rest[size:])
        found.append(Stats(tuple(sorted(match.items())), rest[:size], priority, cookie, packets, carried, out))
        data = data[length:]
    return found


def _out(instructions: bytes) -> int | None:
    if len(instructions) != 24:
        return None
    kind, _, action, _, port = struct.unpack_from("!HH4xHHI", instructions)
    return port if (kind, action) == (4, 0) else None


_address = lru_cache(maxsize=1 << 14)(ip_address)


def match_of(rule: Rule) -> Match:
    """What packets a rule is for."""
    flow = rule.flow
    local, remote = _address(flow.local), _address(flow.remote)
    found: Match = {"in_port": rule.in_port}
    if flow.protocol == "arp":
        return {**found, "eth_type": ARP, "arp_spa": int(local), "arp_tpa": int(remote)}
    ip = f"ipv{local.version}"
    found |= {"eth_type": IPV4 if local.version == 4 else IPV6, f"{ip}_src": int(local), f"{ip}_dst": int(remote)}
    if flow.protocol != "ip":
        found["ip_proto"] = PROTOCOLS[flow.protocol]
        for end, port in (("src", flow.local_port), ("dst", flow.remote_port)):
            if port:
                found[f"{flow.protocol}_{end}"] = port
    return found


def rule_of(switch: int, entry: Stats) -> Rule | None:
    """The rule that an entry is, or None where it is none of a form that is made here."""
    match = dict(entry.match)
    kind = match.get("eth_type")
    if "in_port" not in match or entry.out is None or entry.out == CONTROLLER:
        return None
    if kind == ARP:
        names, protocol = ("arp_spa", "arp_tpa"), "arp"
    else:
        names = ("ipv4_src", "ipv4_dst") if kind == IPV4 else ("ipv6_src", "ipv6_dst")
        protocol = next((name for name, number in PROTOCOLS.items() if match.get("ip_proto") == number), "ip")
    if not all(name in match for name in names):
        return None
    local, remote = (str(ip_address(match[n].to_bytes(FIELDS[n][1], "big"))) for n in names)
    ports = (match.get(f"{protocol}_src", 0), match.get(f"{protocol}_dst", 0))
    rule = Rule(switch, Flow(local, remote, *ports, protocol), match["in_port"], entry.out)
    return rule if match_of(rule) == match and rule.priority == entry.priority else None


def equal(entry: Stats, rule: Rule) -> bool:
    """Whether an entry is in the place that a rule would take."""
    return entry.priority == rule.priority and dict(entry.match) == match_of(rule)


def watches(cookie: int) -> list[FlowMod]:
    """The entries by which ARP that nothing else matches and all LLDP come to the controller.

    Of a priority of each controller's own, below and above every rule, so that none removes another one's.
    """
    own = cookie & 63
    return [
        FlowMod(ADD, {"eth_type": kind}, at, cookie, out=CONTROLLER)
        for kind, at in zip(WATCHED, (own, 65535 - own), strict=True)
    ]


def watching(entry: Stats) -> bool:
    """Whether it is such a one of its controller."""
    return any((dict(entry.match), entry.priority) == (w.match, w.priority) for w in watches(entry.cookie))
