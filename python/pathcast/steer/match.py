"""What an entry or a packet that came matches: OXM fields (OpenFlow 1.3, 7.2.3) as bytes. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping


class Malformed(ValueError):
    """Bytes that are no message of OpenFlow 1.3."""


# OXM fields that entries of ours match on, and that packets come with: number, bytes of the value
FIELDS = {
    "in_port": (0, 4),
    "eth_type": (5, 2),
    "ip_proto": (10, 1),
    "ipv4_src": (11, 4),
    "ipv4_dst": (12, 4),
    "tcp_src": (13, 2),
    "tcp_dst": (14, 2),
    "udp_src": (15, 2),
    "udp_dst": (16, 2),
    "arp_spa": (22, 4),
    "arp_tpa": (23, 4),
    "ipv6_src": (26, 16),
    "ipv6_dst": (27, 16),
}
_NAMES = {number: name for name, (number, _) in FIELDS.items()}
_BASIC = 0x8000

Match = dict[str, int]


def pack_match(match: Mapping[str, int]) -> bytes:
    """With its padding; fields in the order of their numbers, as prerequisites go first."""
    fields = b""
    for name in sorted(match, key=lambda name: FIELDS[name][0]):
        number, size = FIELDS[name]
        fields += struct.pack("!HBB", _BASIC, number << 1, size) + match[name].to_bytes(size, "big")
    length = 4 + len(fields)
    return struct.pack("!HH", 1, length) + fields + bytes(-length % 8)


def take_match(data: bytes) -> tuple[dict[str, int], int]:
    """The fields, those that are not ours under `oxm:CLASS:NUMBER`, and how many bytes it took. Raises Malformed."""
    if len(data) < 4:
        raise Malformed(f"{len(data)} bytes of a match")
    kind, length = struct.unpack_from("!HH", data)
    if kind != 1 or length < 4 or length > len(data):
        raise Malformed(f"a match of type {kind} and {length} bytes")
    found, at = {}, 4
    while at < length:
        if at + 4 > len(data):
            raise Malformed("a match that breaks off")
        of, field, size = struct.unpack_from("!HBB", data, at)
        value = int.from_bytes(data[at + 4 : at + 4 + size], "big")
        plain = of == _BASIC and not field & 1 and FIELDS.get(_NAMES.get(field >> 1, ""), (0, -1))[1] == size
        found[_NAMES[field >> 1] if plain else f"oxm:{of:x}:{field}"] = value
        at += 4 + size
    return found, length + 7 & ~7
