"""For tests: a controller without switches, for who speaks to one, and switches that are bytes, for the machine."""

from __future__ import annotations

import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pathcast.errors import PathcastError, usage
from pathcast.steer import entries
from pathcast.steer import openflow as of
from pathcast.steer.client import flow_of, plan_of
from pathcast.steer.machine import Machine, Ticket
from pathcast.steer.match import Match, pack_match, take_match
from pathcast.steer.ovs import Switches
from pathcast.steer.rules import Flow, Port, Rule
from pathcast.steer.switch import Session


class Fake:
    """A controller. In a `with`: serves the socket at `path`. `refuse`: what the next `begin` is answered with."""

    def __init__(self, path: Path, names: tuple[str, ...] = ("path1", "path2")) -> None:
        self.path, self.names = path, names
        self.plan: dict[Flow, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.refuse: PathcastError | None = None

    def begin(self, flows: Any, owner: Any) -> dict[str, Any]:
        plan = plan_of(flows)
        if wrong := [name for name in plan.values() if name not in self.names]:
            raise usage(f"there is no path `{wrong[0]}`; allowed: {', '.join(self.names)}")
        refuse, self.refuse = self.refuse, None
        if refuse is not None:
            raise refuse
        self.plan.update(plan)
        return {"paths": list(plan.values())}

    def end(self, flows: Any) -> dict[str, Any]:
        return {"ended": sum(self.plan.pop(flow_of(one), None) is not None for one in flows)}

    def state(self) -> dict[str, Any]:
        return {"paths": [{"name": name, "stands": True} for name in self.names]}

    def counters(self) -> dict[str, Any]:
        return {"paths": [], "flows": []}

    def __enter__(self) -> Fake:
        self._listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        self._listener.bind(str(self.path))
        os.umask(mask)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.path.unlink()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as stream:
                for line in stream:
                    request = json.loads(line)
                    self.asked.append(dict(request))
                    try:
                        answer = {"result": getattr(self, request.pop("verb"))(**request)}
                    except PathcastError as error:
                        answer = error.document()
                    stream.write(json.dumps(answer) + "\n")
                    stream.flush()


class FakeSwitch:
    """A switch as bytes: keeps a table by what it is sent, refuses when that is full, forwards by it.

    As Open vSwitch, it replaces an entry by its equal though it was asked to refuse what overlaps.
    """

    def __init__(self, id: int, ports: Iterable[int], most: int = 1000) -> None:
        self.id, self.ports, self.most = id, dict.fromkeys(ports, True), most
        self.table: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[int, int]] = {}
        self.out = bytearray()
        self.mute = False
        self.versions = frozenset({of.VERSION})
        self.packets: list[tuple[int, bytes]] = []
        self._buffer = bytearray()

    def connect(self) -> None:
        self.out, self._buffer = bytearray(), bytearray()
        self.say(of.Hello(self.versions))

    def say(self, message: Any, xid: int = 0) -> None:
        self.out += of.pack(message, xid)

    def status(self, port: int, up: bool) -> None:
        self.ports[port] = up
        self.say(of.PortStatus(False, self._about(port)))

    def _about(self, port: int) -> of.PortAbout:
        return of.PortAbout(port, f"s{self.id}-{port}", bytes((2, 0, 0, 0, self.id, port)), self.ports[port])

    def take(self, data: bytes) -> None:
        self._buffer += data
        for xid, message in list(of.take(self._buffer)):
            if not self.mute:
                self._do(xid, message)

    def _do(self, xid: int, message: Any) -> None:
        kind, body = (message.kind, message.body())
        if kind == of.EchoRequest.kind:
            self.say(of.EchoReply(body), xid)
        elif kind == of.FeaturesRequest.kind:
            self.say(of.Features(self.id), xid)
        elif kind == of.BarrierRequest.kind:
            self.say(of.BarrierReply(), xid)
        elif kind == of.Ask.kind:
            what = int.from_bytes(body[:2], "big")
            asked = take_match(body[40:])[0] if what == of.FLOW_STATS else {}
            for data, more in self._answer(what, asked):
                self.say(of.Answer(what, more, data), xid)
        elif kind == of.PacketOut.kind:
            length = int.from_bytes(body[8:10], "big")
            self.packets.append((int.from_bytes(body[20:24], "big"), body[16 + length :]))
        elif kind == entries.FlowMod.kind:
            self._mod(xid, body)

    def _answer(self, what: int, asked: Match) -> list[tuple[bytes, bool]]:
        if what == of.PORTS:
            own = of.PortAbout(of.LOCAL, f"s{self.id}", bytes(6), True)
            return [(b"".join(p.pack() for p in (own, *map(self._about, self.ports))), False)]
        if what == of.PORT_STATS:
            return [(b"".join(struct.pack("!I4x12Q8x", n, *range(12)) for n in self.ports), False)]
        parts = []
        for (priority, match), (cookie, out) in self.table.items():
            if not asked.items() <= dict(match).items():
                continue
            rest = pack_match(dict(match)) + struct.pack("!HH4x", 4, 24) + of.output(out)
            head = struct.pack("!HBxIIHHHH4xQQQ", 48 + len(rest), 0, 0, 0, priority, 0, 0, 0, cookie, 3, 300)
            parts.append((head + rest, True))
        return [*parts, (b"", False)]

    def _mod(self, xid: int, body: bytes) -> None:
        cookie, mask, _, command, _, _, priority, _, _, _, flags = struct.unpack_from("!QQBBHHHIIIH", body)
        match, size = take_match(body[40:])
        key = (priority, tuple(sorted(match.items())))
        if command == entries.DELETE:
            self.table = {k: v for k, v in self.table.items() if v[0] & mask != cookie & mask}
        elif command == entries.DELETE_STRICT:
            if key in self.table and self.table[key][0] & mask == cookie & mask:
                del self.table[key]
        else:
            out = int.from_bytes(body[40 + size + 12 : 40 + size + 16], "big")
            if command == entries.MODIFY:
                if key in self.table:
                    self.table[key] = (self.table[key][0], out)
            elif flags & 2 and key not in self.table and self._overlapped(priority, match):
                self.say(of.Error(5, 3, body[:64]), xid)
            elif key not in self.table and len(self.table) >= self.most:
                self.say(of.Error(5, 1, body[:64]), xid)
            else:
                self.table[key] = (cookie, out)

    def _overlapped(self, priority: int, match: Match) -> bool:
        return any(p == priority and _overlap(dict(m), match) for p, m in self.table)

    def forward(self, packet: dict[str, int]) -> int | None:
        """The port that a packet leaves by, by the entry of the highest priority."""
        found = [(p, out) for (p, m), (_, out) in self.table.items() if dict(m).items() <= packet.items()]
        return max(found, default=(0, None))[1]


def _overlap(a: dict[str, int], b: dict[str, int]) -> bool:
    return all(a[name] == b[name] for name in a.keys() & b.keys())


class Fabric:
    """Switches, links and hosts around a machine, in one thread and with a clock of its own."""

    def __init__(self, machine: Machine, switches: Iterable[FakeSwitch], wires: dict[Port, Port]) -> None:
        self.machine, self.wires, self.now = machine, wires, 0.0
        self.switches = {one.id: one for one in switches}
        self.sessions: dict[int, Session] = {}
        self.dead: set[Port] = set()
        self.answered: list[Ticket] = []

    def connect(self, *ids: int) -> None:
        for id in ids or tuple(self.switches):
            self.switches[id].connect()
            self.sessions[id] = self.machine.connected(self.now)

    def disconnect(self, id: int, why: str = "it closed the connection") -> None:
        self.machine.lost(self.sessions.pop(id), why, self.now)

    def settle(self, seconds: float = 0.0) -> None:
        """Passes bytes and packets on until nothing happens, then time, until that many seconds have passed."""
        end = self.now + seconds
        while True:
            while self._pass():
                pass
            self.answered += self.machine.settled
            self.machine.settled.clear()
            self.machine.closing.clear()
            due = max(self.machine.wake_at(), self.now + 1e-3)
            if due > end:
                self.now = max(self.now, end)
                return
            self.now = due
            self.machine.tick(self.now)

    def _pass(self) -> bool:
        busy = False
        for session in self.machine.closing:
            self.sessions = {id: one for id, one in self.sessions.items() if one is not session}
        for id, session in list(self.sessions.items()):
            switch = self.switches[id]
            data, session.out = bytes(session.out), bytearray()
            switch.take(data)
            for out, frame in switch.packets:
                self._deliver(Port(id, out), frame)
            switch.packets.clear()
            back, switch.out = bytes(switch.out), bytearray()
            if back:
                self.machine.received(session, back, self.now)
            busy |= bool(data or back)
        return busy

    def _deliver(self, left: Port, frame: bytes) -> None:
        """A frame that a controller sends crosses a wire, and comes to it again."""
        came = self.wires.get(left)
        if came is None or {left, came} & self.dead or came.switch not in self.sessions:
            return
        far = self.switches[came.switch]
        if self.switches[left.switch].ports[left.port] and far.ports[came.port] and not far.mute:
            far.say(of.PacketIn(came.port, 0, frame))

    def send(self, flow: Flow, at: Port) -> Port | None:
        """Where a packet of a flow that comes in by a port leaves the network; None where it is dropped."""
        for _ in range(20):
            match = entries.match_of(Rule(at.switch, flow, at.port, 0))
            out = self.switches[at.switch].forward(match)
            if out is None or out == of.CONTROLLER:
                return None
            left = Port(at.switch, out)
            if left not in self.wires:
                return left
            if {left, self.wires[left]} & self.dead or not self.switches[left.switch].ports[left.port]:
                return None
            at = self.wires[left]
        raise AssertionError("a loop")


CHECKSUMS_OFF = """
import ctypes, fcntl, socket, struct, sys
for device in sys.argv[1:]:  # ETHTOOL_STXCSUM: a veth leaves checksums to a card, which a datapath of user space is not
    value = ctypes.create_string_buffer(struct.pack("II", 0x17, 0))
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8946, struct.pack("16sP", device.encode(), ctypes.addressof(value)))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Bed:
    """Open vSwitch in a namespace, and a host at either end: s1 and s2 with two links, and a way over s3, a small one.

    Ports: 1 the hosts', then the links a, b, and c (s1 to s3), d (s3 to s2). In a `with`; `directory` is made.
    """

    CLIENT, SERVER = "10.9.0.1", "10.9.0.2"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        stem = f"steer-{secrets.token_hex(3)}"
        self.switch, self.client, self.server = self.namespaces = [f"{stem}-{end}" for end in ("sw", "c", "s")]
        self.switches = Switches(self.switch, directory / "o")

    def __enter__(self) -> Bed:
        self.directory.mkdir()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.switches.close()
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)

    def _build(self) -> None:
        for name in self.namespaces:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        hosts = ((self.client, "h1", self.CLIENT), (self.server, "h2", self.SERVER))
        for host, device, address in hosts:
            ip("-n", self.switch, "link", "add", device, "type", "veth", "peer", "name", "eth", "netns", host)
            ip("-n", self.switch, "link", "set", device, "up")
            ip("-n", host, "address", "add", f"{address}/24", "dev", "eth")
            ip("-n", host, "link", "set", "eth", "up")
            self.python(host, CHECKSUMS_OFF, "eth").communicate()
        for link in "abcd":
            ip("-n", self.switch, "link", "add", f"{link}1", "type", "veth", "peer", "name", f"{link}2")
            for end in "12":
                ip("-n", self.switch, "link", "set", f"{link}{end}", "up")
        self.switches.up()
        self.switches.add("s1", ["h1", "a1", "b1", "c1"], number=1)
        self.switches.add("s2", ["h2", "a2", "b2", "d2"], number=2)
        self.switches.add("s3", ["c2", "d1"], number=3, flows=4)  # two for discovery, two for one flow

    def told(self, links: bool = False) -> dict[str, Any]:
        """The controller's configuration. links: they are told, too: a busy machine may lose probes."""
        pairs = (("s1:2", "s2:2"), ("s1:3", "s2:3"), ("s1:4", "s3:1"), ("s3:2", "s2:4"))
        return {
            "link": [{"ends": ends} for ends in pairs if links],
            "listen": f"unix:{self.directory}/of",
            "switch": [{"name": f"s{n}", "id": n} for n in (1, 2, 3)],
            "host": [{"address": self.CLIENT, "at": "s1:1"}, {"address": self.SERVER, "at": "s2:1"}],
            "path": [
                {"name": "path1", "via": ["s1:2"]},
                {"name": "path2", "via": ["s1:3"]},
                {"name": "path3", "via": ["s1:4", "s3:2"]},
            ],
        }

    def connect(self, *further: str) -> None:
        """Tells the switches their controller, and further ones that listen at `unix:PATH`."""
        for bridge in self.switches.bridges:
            self.switches.control(bridge, self.told()["listen"], *further)

    def python(self, host: str, program: str, *arguments: object) -> subprocess.Popen[str]:
        """Runs a program on a host."""
        command = ["ip", "netns", "exec", host, sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def link(self, device: str, state: str) -> None:
        ip("-n", self.switch, "link", "set", device, state)

    def ofctl(self, verb: str, bridge: str, *words: str) -> list[str]:
        """What ovs-ofctl says of a switch, by line."""
        command = ["ovs-ofctl", "-O", "OpenFlow13", "--no-stats", verb, self.switches.management(bridge), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line.strip() for line in done.stdout.splitlines() if line.strip()]

    def entries(self) -> dict[str, list[str]]:
        return {bridge: sorted(self.ofctl("dump-flows", bridge)) for bridge in self.switches.bridges}
