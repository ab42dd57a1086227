"""Ethernet frames of discovery: LLDP (IEEE 802.1AB) that says who sent it, by a key, and ARP. Pure."""

from __future__ import annotations

import hmac
import struct
from ipaddress import IPv4Address

from pathcast.steer.rules import Port

_NEAREST = bytes.fromhex("0180c200000e")
_END, _CHASSIS, _PORT, _TTL, _OWN = 0, 1, 2, 3, 127
_LOCALLY = b"\x07"
# of organisations, that which belongs to nobody
_NOBODY = b"\x00\x00\x00\x01"
_DIGEST = 16


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!H", kind << 9 | len(value)) + value


def _digest(key: bytes, port: Port) -> bytes:
    return hmac.digest(key, struct.pack("!QI", port.switch, port.port), "sha256")[:_DIGEST]


def lldp(port: Port, address: bytes, key: bytes, ttl_s: int) -> bytes:
    """What leaves by a port; `address` is the port's own. Without the key nobody says that a link is where none is."""
    tlvs = _tlv(_CHASSIS, _LOCALLY + b"%016x" % port.switch) + _tlv(_PORT, _LOCALLY + b"%d" % port.port)
    tlvs += _tlv(_TTL, struct.pack("!H", ttl_s)) + _tlv(_OWN, _NOBODY + _digest(key, port)) + _tlv(_END, b"")
    return (_NEAREST + address + b"\x88\xcc" + tlvs).ljust(60, b"\0")


def sender(frame: bytes, key: bytes) -> Port | None:
    """The port that an LLDP frame of ours left by; None for others' frames, and for forged ones."""
    if frame[12:14] != b"\x88\xcc":
        return None
    found: dict[int, bytes] = {}
    rest = frame[14:]
    while len(rest) >= 2:
        head = int.from_bytes(rest[:2], "big")
        kind, length = head >> 9, head & 511
        if kind == _END:
            break
        found[kind] = rest[2 : 2 + length]
        rest = rest[2 + length :]
    try:
        port = Port(int(found[_CHASSIS][1:], 16), int(found[_PORT][1:]))
        right = hmac.compare_digest(found[_OWN], _NOBODY + _digest(key, port))
    except (KeyError, ValueError, struct.error):
        return None
    return port if right else None


def arp(frame: bytes) -> tuple[str, str] | None:
    """Who asks or answers, and whom, as addresses; None for what is no ARP over Ethernet for IPv4."""
    if frame[12:14] != b"\x08\x06" or len(frame) < 42 or frame[14:20] != b"\x00\x01\x08\x00\x06\x04":
        return None
    return str(IPv4Address(frame[28:32])), str(IPv4Address(frame[38:42]))
