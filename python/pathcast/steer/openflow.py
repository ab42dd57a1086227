"""Messages of OpenFlow 1.3 (ONF TS-006, version 0x04) as bytes: the dozen that steering needs. Pure.

A message is a dataclass; what a switch may send and is none of these is `Other`. Changes of tables are in `entries`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pathcast.steer.match import Malformed, pack_match, take_match

VERSION = 4
# of ports: everything, the controller, the switch itself
ANY, CONTROLLER, LOCAL = 0xFFFFFFFF, 0xFFFFFFFD, 0xFFFFFFFE
# above every port that packets come by
MOST = 0xFFFFFF00
NO_BUFFER = 0xFFFFFFFF
_HEADER = struct.Struct("!BBHI")
_PORT = struct.Struct("!I4x6s2x16sII24x")
_PORT_STATS = struct.Struct("!I4x12Q8x")

# what a switch says no with, by type and code: those that answer what we send
_ERRORS = {
    0: ("hello failed", {0: "no version in common", 1: "not permitted"}),
    1: ("bad request", {1: "unknown type", 5: "not permitted", 10: "another controller is its master"}),
    2: ("bad action", {4: "there is no such port"}),
    3: ("bad instruction", {}),
    4: ("bad match", {}),
    5: (
        "flow entry refused",
        {1: "its table is full", 3: "another entry of the same priority is in the way", 4: "not permitted"},
    ),
}


@dataclass(frozen=True)
class Hello:
    """The versions that its sender speaks."""

    kind: ClassVar[int] = 0
    versions: frozenset[int] = frozenset({VERSION})

    def body(self) -> bytes:
        bits = sum(1 << version for version in self.versions)
        return struct.pack("!HHI", 1, 8, bits)


@dataclass(frozen=True)
class Error:
    """A refusal; `data` is the beginning of what was refused."""

    kind: ClassVar[int] = 1
    type: int
    code: int
    data: bytes = b""

    def body(self) -> bytes:
        return struct.pack("!HH", self.type, self.code) + self.data

    def __str__(self) -> str:
        name, codes = _ERRORS.get(self.type, ("error", {}))
        return codes.get(self.code, f"{name} (type {self.type}, code {self.code})")


@dataclass(frozen=True)
class EchoRequest:
    """To be answered with the same data."""

    kind: ClassVar[int] = 2
    data: bytes = b""

    def body(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class EchoReply:
    kind: ClassVar[int] = 3
    data: bytes = b""

    def body(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class FeaturesRequest:
    kind: ClassVar[int] = 5

    def body(self) -> bytes:
        return b""


@dataclass(frozen=True)
class Features:
    """Who a switch is."""

    kind: ClassVar[int] = 6
    id: int
    tables: int = 1

    def body(self) -> bytes:
        return struct.pack("!QIBBxxII", self.id, 0, self.tables, 0, 0, 0)


@dataclass(frozen=True)
class SetConfig:
    """How much of a packet comes to the controller: everything."""

    kind: ClassVar[int] = 9

    def body(self) -> bytes:
        return struct.pack("!HH", 0, 0xFFFF)


@dataclass(frozen=True)
class PacketIn:
    """A packet that an entry sent to the controller, and the port by which it came."""

    kind: ClassVar[int] = 10
    in_port: int
    cookie: int
    data: bytes

    def body(self) -> bytes:
        head = struct.pack("!IHBBQ", NO_BUFFER, len(self.data), 1, 0, self.cookie)
        return head + pack_match({"in_port": self.in_port}) + bytes(2) + self.data


@dataclass(frozen=True)
class PortAbout:
    """A port: its number, name, address, and whether it carries packets."""

    number: int
    name: str
    address: bytes
    up: bool

    def pack(self) -> bytes:
        return _PORT.pack(self.number, self.address, self.name.encode(), 0, 0 if self.up else 1)


@dataclass(frozen=True)
class PortStatus:
    """A port has come, gone or changed."""

    kind: ClassVar[int] = 12
    gone: bool
    port: PortAbout

    def body(self) -> bytes:
        return struct.pack("!B7x", 1 if self.gone else 2) + self.port.pack()


@dataclass(frozen=True)
class PacketOut:
    """A packet that leaves by a port."""

    kind: ClassVar[int] = 13
    port: int
    data: bytes

    def body(self) -> bytes:
        action = output(self.port)
        return struct.pack("!IIH6x", NO_BUFFER, CONTROLLER, len(action)) + action + self.data


@dataclass(frozen=True)
class BarrierRequest:
    """Answered when all before it is done."""

    kind: ClassVar[int] = 20

    def body(self) -> bytes:
        return b""


@dataclass(frozen=True)
class BarrierReply:
    kind: ClassVar[int] = 21

    def body(self) -> bytes:
        return b""


FLOW_STATS, PORT_STATS, PORTS = 1, 4, 13


@dataclass(frozen=True)
class Ask:
    """A request for entries, ports' counters or ports (multipart types FLOW_STATS, PORT_STATS, PORTS).

    match: as bytes, of the entries asked for and of all that are narrower.
    """

    kind: ClassVar[int] = 18
    what: int
    match: bytes = pack_match({})

    def body(self) -> bytes:
        rest = b""
        if self.what == FLOW_STATS:
            rest = struct.pack("!B3xII4xQQ", 0xFF, ANY, ANY, 0, 0) + self.match
        elif self.what == PORT_STATS:
            rest = struct.pack("!I4x", ANY)
        return struct.pack("!HH4x", self.what, 0) + rest


@dataclass(frozen=True)
class Answer:
    """One part of what was asked for, as bytes; `more` parts may follow."""

    kind: ClassVar[int] = 19
    what: int
    more: bool
    data: bytes

    def body(self) -> bytes:
        return struct.pack("!HH4x", self.what, self.more) + self.data

    def ports(self) -> list[PortAbout]:
        """Of an answer about ports."""
        return [_port(self.data[at : at + _PORT.size]) for at in range(0, len(self.data), _PORT.size)]

    def counters(self) -> dict[int, PortCounters]:
        """Of an answer with ports' counters, by the port's number."""
        found = {}
        for at in range(0, len(self.data), _PORT_STATS.size):
            number, *counts = _unpack(_PORT_STATS, self.data[at : at + _PORT_STATS.size])
            found[number] = PortCounters(*counts[:8])
        return found


@dataclass(frozen=True)
class PortCounters:
    """What a port has carried and lost since it is there."""

    received_packets: int
    sent_packets: int
    received_bytes: int
    sent_bytes: int
    received_dropped: int
    sent_dropped: int
    received_errors: int
    sent_errors: int


@dataclass(frozen=True)
class Other:
    """A message that nobody here asked for."""

    kind: int
    data: bytes

    def body(self) -> bytes:
        return self.data


# of an entry where another's is; Open vSwitch refuses those that overlap so, and replaces the equal one
IN_THE_WAY = Error(5, 3)


def output(port: int) -> bytes:
    """The action that sends a packet out, to the controller whole."""
    return struct.pack("!HHIH6x", 0, 16, port, 0xFFFF)


def pack(message: Any, xid: int) -> bytes:
    """A message with its header; `xid` is repeated in what answers it."""
    body: bytes = message.body()
    return _HEADER.pack(VERSION, message.kind, _HEADER.size + len(body), xid) + body


def take(buffer: bytearray) -> Iterator[tuple[int, Any]]:
    """Takes the whole messages off a buffer of received bytes: xid and message. Raises Malformed.

    A hello may be of any version; others are 1.3, or they are malformed.
    """
    while len(buffer) >= _HEADER.size:
        version, kind, length, xid = _HEADER.unpack_from(buffer)
        if length < _HEADER.size:
            raise Malformed(f"a message of {length} bytes")
        if version != VERSION and kind not in (Hello.kind, Error.kind):
            raise Malformed(f"a message of OpenFlow's version {version}")
        if len(buffer) < length:
            return
        body = bytes(buffer[_HEADER.size : length])
        del buffer[:length]
        yield xid, parse(kind, body, version)


def parse(kind: int, body: bytes, version: int = VERSION) -> Any:
    """A message of its type and body. Raises Malformed."""
    try:
        return _parse(kind, body, version)
    except (struct.error, IndexError) as error:
        raise Malformed(f"a message of type {kind} with {len(body)} bytes: {error}") from None


def _parse(kind: int, body: bytes, version: int) -> Any:
    match kind:
        case Hello.kind:
            return _hello(body, version)
        case Error.kind:
            of, code = struct.unpack_from("!HH", body)
            return Error(of, code, body[4:])
        case EchoRequest.kind:
            return EchoRequest(body)
        case EchoReply.kind:
            return EchoReply(body)
        case Features.kind:
            return Features(*struct.unpack_from("!Q4xB", body))
        case PacketIn.kind:
            (cookie,) = struct.unpack_from("!Q", body, 8)
            match, size = take_match(body[16:])
            return PacketIn(int(match.get("in_port", 0)), cookie, body[16 + size + 2 :])
        case PortStatus.kind:
            return PortStatus(body[0] == 1, _port(body[8:72]))
        case BarrierReply.kind:
            return BarrierReply()
        case Answer.kind:
            what, flags = struct.unpack_from("!HH", body)
            return Answer(what, bool(flags & 1), body[8:])
    return Other(kind, body)


def _hello(body: bytes, version: int) -> Hello:
    while len(body) >= 4:
        kind, length = struct.unpack_from("!HH", body)
        if length < 4:
            raise Malformed(f"an element of {length} bytes in a hello")
        if kind == 1:
            (bits,) = struct.unpack_from("!I", body, 4)
            return Hello(frozenset(n for n in range(32) if bits >> n & 1))
        body = body[length + 7 & ~7 :]
    # without a bitmap: all up to its own
    return Hello(frozenset(range(1, version + 1)))


def _port(data: bytes) -> PortAbout:
    number, address, name, config, state = _unpack(_PORT, data)
    # it is printed, and a switch may say anything
    plain = "".join(c for c in name.decode("ascii", "ignore") if c.isalnum() or c in "._-")
    return PortAbout(number, plain, address, not (config | state) & 1)


def _unpack(form: struct.Struct, data: bytes) -> Any:
    if len(data) != form.size:
        raise Malformed(f"{len(data)} bytes where {form.size} belong")
    return form.unpack(data)
