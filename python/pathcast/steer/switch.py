"""One switch's connection, from the hello on: sans-I/O, as all machines here are; time is an argument."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pathcast.steer import openflow as of
from pathcast.steer.match import Malformed

# silence after which a switch is asked for a sign of life, and how long that may take
QUIET_S = 2.0
ANSWER_S = 5.0
# of the answers that are not whole yet [byte]: some 400,000 entries
_MOST_PARTS = 1 << 26


@dataclass(frozen=True)
class Ended:
    """The connection is over, by its other end's fault or ours; why."""

    why: str


@dataclass(frozen=True)
class Told:
    """A switch has said its ports or entries: all of an answer's parts, joined."""

    what: int
    parts: tuple[of.Answer, ...]


class Session:
    """What arrives becomes events; what is to be sent gathers in `out`."""

    def __init__(self, now: float) -> None:
        self.out = bytearray()
        self.id: int | None = None
        self._buffer = bytearray()
        self._heard_at = now
        self._asked_at: float | None = None
        self._xid = 0
        self._greeted = False
        # what was asked for, and what has come of it
        self._parts: dict[int, list[of.Answer]] = {}
        self._held = 0
        self.send(of.Hello())

    def send(self, message: Any) -> int:
        """Queues a message; returns the xid that its answer will have."""
        self._xid = self._xid % 0xFFFFFFFF + 1
        self.out += of.pack(message, self._xid)
        if isinstance(message, of.Ask):
            self._parts[self._xid] = []
        return self._xid

    def received(self, data: bytes, now: float) -> Iterator[tuple[int, Any]]:
        """What the bytes hold, each with its xid: Features, Told, PacketIn, PortStatus, BarrierReply, Error;
        Ended is the last.
        """
        self._heard_at, self._asked_at = now, None
        self._buffer += data
        try:
            for xid, message in of.take(self._buffer):
                event = self._event(xid, message)
                if event is not None:
                    yield xid, event
                if isinstance(event, Ended):
                    return
        except Malformed as error:
            yield 0, Ended(f"it sent {error}")

    def _event(self, xid: int, message: Any) -> Any:
        if not self._greeted:
            return self._greet(message)
        match message:
            case of.EchoRequest():
                self.out += of.pack(of.EchoReply(message.data), xid)
            case of.Features() if self.id is None:
                self.id = message.id
                return message
            case of.Answer() if xid in self._parts:
                parts = self._parts[xid]
                parts.append(message)
                # an empty part is not free
                self._held += len(message.data) + 100
                if self._held > _MOST_PARTS:
                    return Ended("its answers have no end")
                if not message.more:
                    self._held -= sum(len(part.data) + 100 for part in parts)
                    return Told(message.what, tuple(self._parts.pop(xid)))
            case of.PacketIn() | of.PortStatus() | of.BarrierReply() | of.Error():
                return message
        return None

    def _greet(self, message: Any) -> Ended | None:
        if not isinstance(message, of.Hello):
            return Ended(f"it refused the greeting: {message}" if isinstance(message, of.Error) else "it did not greet")
        if of.VERSION not in message.versions:
            self.send(of.Error(0, 0, b"OpenFlow 1.3 only"))
            spoken = ", ".join(f"1.{n - 1}" for n in sorted(message.versions) if n) or "nothing"
            return Ended(f"it speaks OpenFlow {spoken}, not 1.3")
        self._greeted = True
        self.send(of.FeaturesRequest())
        self.send(of.SetConfig())
        return None

    def tick(self, now: float) -> Ended | None:
        """Asks a silent switch for a sign of life; Ended when none came. To be called when all was read."""
        if self._asked_at is not None and now - self._asked_at >= ANSWER_S:
            return Ended(f"it gave no sign of life for {ANSWER_S:.0f} s")
        if self._asked_at is None and now - self._heard_at >= QUIET_S:
            self._asked_at = now
            if self._greeted:
                self.send(of.EchoRequest())
        return None
