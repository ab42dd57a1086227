"""Random sequences of events that obey TCP's rules, made in a closed loop: the oracle's window fills a queue, the
queue makes the RTTs, and both make the next events. A sequence is what happened to one connection of 1 to 4 subflows.

Each subflow has a path of its own or all share one: base RTT 4 to 250 ms, a bottleneck of 4 to 400 packets of
bandwidth times delay, a queue of a quarter to twice that. ACKs come 3 to 20 times a round; losses come from the queue
and at random; there are timeouts, spurious reductions, stretches in which the application has nothing to send,
silence, joins and leaves.
`PacketMaker` makes sequences packet by packet instead, for controllers that space packets.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from oracle import tcp
from oracle.connection import Connection
from oracle.tcp import Control, Event

MSS = (536, 1200, 1424, 1448, 8948)


@dataclass
class Path:
    """One subflow's path, and what TCP knows of it."""

    base_us: float
    bdp: float  # packets
    queue: float  # packets
    loss: float  # chance of a loss at an ACK
    jitter: float  # share of the base RTT
    mss: int
    acks: float  # ACKs a round
    una: int = 1
    nxt: int = 1
    srtt8: int = 0
    var4: int = 0
    in_flight: int = 0
    due: float = 0.0  # time of the next ACK, us
    state: int = tcp.OPEN
    left: int = 0  # ACKs until recovery ends
    recover: int = 0  # in Loss: the byte up to which it lasts
    lazy: int = 0  # ACKs for which the application, not the window, is the limit
    delivered: int = 0  # since the start
    lost: int = 0

    def rtt(self, rng: np.random.Generator, window: float) -> int:
        waiting = min(max(window - self.bdp, 0.0), self.queue)
        return int(self.base_us * (1 + waiting / self.bdp + self.jitter * rng.exponential())) + 1

    def sample(self, rtt: int) -> None:
        """RFC 6298, gains per sample."""
        if not self.srtt8:
            self.srtt8, self.var4 = rtt * 8, rtt * 2
            return
        error = rtt - (self.srtt8 >> 3)
        self.srtt8 += error
        self.var4 += abs(error) - (self.var4 >> 2)

    @property
    def srtt(self) -> int:
        return self.srtt8 >> 3

    @property
    def rto(self) -> int:
        return self.srtt + max(self.var4, 200_000)


def path(rng: np.random.Generator) -> Path:
    bdp = float(np.exp(rng.uniform(math.log(4), math.log(400))))
    return Path(
        base_us=float(np.exp(rng.uniform(math.log(4e3), math.log(250e3)))),
        bdp=bdp,
        queue=max(bdp * float(np.exp(rng.uniform(math.log(0.25), math.log(2)))), 3.0),
        loss=float(rng.choice([0.0, 0.002, 0.02])),
        jitter=float(rng.choice([0.0, 0.002, 0.03])),
        mss=int(rng.choice(MSS)),
        acks=float(rng.uniform(3, 20)),
    )


class Maker:
    """Makes one sequence; `windows` are what the oracle says after each event."""

    policers = False

    def __init__(self, rng: np.random.Generator, control: type[Control], params: dict[str, int]) -> None:
        self.rng, self.world = rng, Connection(control, params)
        self.now = 0.0
        self.told = 0  # time of the last event, us
        self.events: list[Event] = []
        self.windows: list[tuple[float, float]] = []  # and the first word that it publishes
        self.paths: dict[int, Path] = {}
        self.shared = path(rng) if rng.random() < 0.5 else None
        self.rare = rng.spawn(1)[0]  # what was drawn before is drawn as before

    def emit(self, number: int, kind: int, acked: int = 0, rtt: int = 0, owd: int = 0, limited: bool = True) -> None:
        p = self.paths[number]
        now = max(int(self.now), self.told)
        view = (p.in_flight, p.una, p.nxt, p.srtt, p.var4 >> 2, 1 if limited else 2, p.state, p.mss)
        event = Event(kind, number, now - self.told, acked, rtt, owd, *view, p.delivered, p.lost)
        self.told = now
        self.events.append(event)
        self.windows.append(self.world.step(event))

    def window(self, number: int) -> float:
        return self.world.subflows[number].flow.cwnd

    def join(self, number: int) -> None:
        p = path(self.rng)
        if self.shared:
            p.base_us, p.bdp, p.queue = (
                self.shared.base_us * float(self.rng.uniform(1, 1.3)),
                self.shared.bdp,
                self.shared.queue,
            )
        self.paths[number] = p
        p.sample(p.rtt(self.rng, 0))
        self.emit(number, tcp.JOIN, acked=int(self.rng.choice([1, 2, 3, 10, 10, 10, 32])))
        self.fill(number)
        p.due = self.now + p.srtt

    def fill(self, number: int, share: float = 1.0) -> None:
        """Sends what the window allows, or that share of it."""
        p = self.paths[number]
        p.in_flight = max(int(self.window(number) * share), p.in_flight, 1)
        p.nxt = max(p.nxt, p.una + p.in_flight * p.mss)

    def load(self, number: int) -> float:
        """Packets on the path of this subflow."""
        if not self.shared:
            return self.window(number)
        return sum(self.window(n) for n in self.paths)

    def acknowledge(self, number: int) -> None:
        """The next ACK of a subflow and what follows from it."""
        rng, p = self.rng, self.paths[number]
        window, load = self.window(number), self.load(number)
        rtt = p.rtt(rng, load)
        packets = min(max(round(window / p.acks * float(rng.uniform(0.5, 1.5))), 1), max(p.in_flight, 1))
        p.una = min(p.una + packets * p.mss, p.nxt)
        p.in_flight = max(p.in_flight - packets, 0)
        p.delivered += packets
        known = rng.random() > 0.02
        if known:
            p.sample(rtt)
        owd = rtt // 2 + 5_000_000 if known else 0
        shown = rtt if known else 0
        if p.state == tcp.RECOVERY:
            self.emit(number, tcp.ACK, packets, shown, owd)
            p.left -= 1
            if p.left <= 0:
                self.leave_recovery(number)
        else:
            limited = p.lazy <= 0
            p.lazy -= 1
            self.emit(number, tcp.GROW, packets, shown, owd, limited)
            if p.state == tcp.IN_LOSS and p.una >= p.recover:
                p.state = tcp.OPEN
            self.fill(number, 1.0 if limited else float(rng.uniform(0.2, 0.8)))
            self.emit(number, tcp.SEND, limited=limited)
            if p.state == tcp.OPEN:
                self.maybe_lose(number, load)
        window = max(self.window(number), 1.0)
        p.due = self.now + rtt * min(max(packets / window, 1 / 64), 1.0) + 1

    def maybe_lose(self, number: int, load: float) -> None:
        rng, p = self.rng, self.paths[number]
        if rng.random() < p.loss or (load > p.bdp + p.queue and rng.random() < 0.3):
            p.lost += 1 + p.una % 3
            self.emit(number, tcp.LOSS)
            p.state, p.left = tcp.RECOVERY, int(rng.integers(1, 5))
        elif rng.random() < 0.004:
            self.silence(number)
        elif rng.random() < 0.02 and p.lazy <= 0:
            p.lazy = int(rng.integers(2, 12))
        elif rng.random() < 0.01:
            self.pause(number)

    def leave_recovery(self, number: int) -> None:
        p = self.paths[number]
        undone = self.rng.random() < 0.1
        if self.rare.random() < 0.05:
            self.silence(number, tcp.SILENT)
            return
        p.state = tcp.OPEN
        self.emit(number, tcp.UNDO if undone else tcp.RECOVERED)
        if undone and self.rare.random() < 0.5:  # Linux says that this recovery is over too
            self.emit(number, tcp.RECOVERED)
        p.in_flight = min(p.in_flight, max(int(self.window(number)), 1))
        self.fill(number)

    def silence(self, number: int, kind: int = tcp.TIMEOUT) -> None:
        """Nothing comes back until the retransmission timer strikes; within a recovery no hook tells it."""
        p = self.paths[number]
        self.now += p.rto
        p.lost += p.in_flight
        self.emit(number, kind)
        p.state, p.recover, p.in_flight = tcp.IN_LOSS, p.nxt, 1
        if kind == tcp.TIMEOUT and self.rng.random() < 0.15:
            self.emit(number, tcp.UNDO)
            p.state = tcp.OPEN
            self.fill(number)

    def pause(self, number: int) -> None:
        """The application is silent, all is acked, then it sends again."""
        p = self.paths[number]
        p.una, p.in_flight = p.nxt, 0
        waited = p.srtt * float(self.rng.uniform(0.1, 20))
        self.now += waited
        if waited > p.rto:
            self.emit(number, tcp.IDLE, acked=int(waited // p.rto), limited=False)
        self.emit(number, tcp.TX_START, limited=False)
        self.fill(number)

    def run(self, length: int) -> None:
        rng = self.rng
        most = int(rng.integers(1, 5))
        self.join(0)
        while len(self.events) < length:
            if len(self.paths) < most and rng.random() < 0.05:
                self.now += float(rng.uniform(0, 5000))
                self.join(next(n for n in range(4) if n not in self.paths))
            elif len(self.paths) > 1 and rng.random() < 0.002:
                number = int(rng.choice(list(self.paths)))
                self.emit(number, tcp.LEAVE)
                del self.paths[number]
            number = min(self.paths, key=lambda n: self.paths[n].due)
            self.now = max(self.now, self.paths[number].due)
            self.acknowledge(number)


@dataclass
class Wire:
    """A path packet by packet: one queue, and the ACKs on their way."""

    free: float  # packets per second that other traffic leaves
    last: float = 0.0  # when the queue is empty, us
    send_at: float = 0.0  # pacing
    lost: int = 0  # packets, since the last loss that was told
    # time, packets, RTT of the newest or 0, those of them that never came
    acks: deque[tuple[float, int, int, int]] = field(default_factory=deque)
    policer: float = 0.0  # packets per second that it lets through, 0: there is none
    burst: float = 0.0  # packets
    tokens: float = 0.0
    filled: float = 0.0  # us

    def polices(self, now: float) -> bool:
        """Whether a packet that comes now is dropped."""
        if not self.policer:
            return False
        self.tokens = min(self.tokens + (now - self.filled) * self.policer / 1e6, self.burst)
        self.filled = now
        if self.tokens < 1.0:
            return True
        self.tokens -= 1.0
        return False


class PacketMaker(Maker):
    """The same packet by packet, for controllers that space their packets: a train sees its own queue. With
    `policers` a third of the paths has one, and those sequences are longer: it is known after some losses."""

    def __init__(self, rng: np.random.Generator, control: type[Control], params: dict[str, int]) -> None:
        super().__init__(rng, control, params)
        self.wires: dict[int, Wire] = {}
        self.shared = None

    def fill(self, number: int, share: float = 1.0) -> None:
        """Packets are sent one by one, see `transmit`."""

    def transmit(self, number: int) -> None:
        rng, p, wire = self.rng, self.paths[number], self.wires[number]
        self.emit(number, tcp.SEND, limited=p.lazy <= 0)
        flow = self.world.subflows[number].flow
        packets = max(min(int(flow.cwnd) - p.in_flight, max(flow.burst, 1) if flow.pace else 8), 1)
        for _ in range(packets):
            gone = int(wire.polices(self.now))
            wire.last = max(wire.last, self.now) + (1 - gone) * 1e6 / wire.free
            waiting = wire.last - self.now
            if not gone and (waiting > p.queue / wire.free * 1e6 or rng.random() < p.loss / 20):
                wire.lost, wire.last = max(wire.lost, 1), wire.last - 1e6 / wire.free
                waiting = 0.0
            rtt = int(p.base_us * (1 + p.jitter * rng.exponential()) + waiting) + 1
            due = max(self.now + rtt, wire.acks[-1][0] if wire.acks else 0.0)
            if wire.acks and not flow.pace and wire.acks[-1][1] < 4 and due - wire.acks[-1][0] < 2e6 / wire.free:
                wire.acks[-1] = (due, wire.acks[-1][1] + 1, int(due - self.now), wire.acks[-1][3] + gone)
            else:
                wire.acks.append((due, 1, int(due - self.now), gone))
        p.nxt += packets * p.mss
        p.in_flight += packets
        wire.send_at = self.now + (packets * p.mss * 1e6 / flow.pace if flow.pace else 1.0)

    def silence(self, number: int, kind: int = tcp.TIMEOUT) -> None:
        super().silence(number, kind)
        wire = self.wires[number]
        outstanding = sum(packets for _, packets, *_ in wire.acks)
        wire.acks = deque([(self.now + self.paths[number].srtt, max(outstanding, 1), 0, 0)])

    def acknowledge(self, number: int) -> None:
        rng, p, wire = self.rng, self.paths[number], self.wires[number]
        _, packets, rtt, gone = wire.acks.popleft()
        p.una = min(p.una + packets * p.mss, p.nxt)
        p.in_flight = max(p.in_flight - packets, 0)
        p.delivered += packets - gone
        if p.state == tcp.RECOVERY:
            p.lost += gone
        else:
            wire.lost += gone
        rtt = rtt if rng.random() > 0.01 else 0
        if rtt:
            p.sample(rtt)
        if p.state == tcp.RECOVERY:
            self.emit(number, tcp.ACK, packets, rtt)
            if p.una >= p.recover:
                self.leave_recovery(number)
            return
        p.lazy -= 1
        self.emit(number, tcp.GROW, packets, rtt, limited=p.lazy < 0)
        if p.state == tcp.IN_LOSS and p.una >= p.recover:
            p.state = tcp.OPEN
        if p.state != tcp.OPEN:
            return
        if wire.lost:
            p.lost += wire.lost
            wire.lost = 0
            self.emit(number, tcp.LOSS)
            p.state, p.recover = tcp.RECOVERY, p.nxt
        elif rng.random() < 0.0005:
            self.silence(number)
        elif rng.random() < 0.002:
            p.lazy = int(rng.integers(2, 30))
        elif rng.random() < 0.001:
            wire.acks.clear()
            self.pause(number)
            p.in_flight = 0

    def wire(self, p: Path) -> Wire:
        free = p.bdp / p.base_us * 1e6
        found = Wire(free, send_at=self.now)
        draw = np.random.default_rng(int(p.base_us * 1e3))  # what was drawn before is drawn as before
        if self.policers and draw.random() < 1 / 3:
            found.policer = free * float(draw.uniform(0.03, 0.6))
            found.burst = found.tokens = float(draw.uniform(8, 40))
            found.filled = self.now
        return found

    def run(self, length: int) -> None:
        most = int(self.rng.integers(1, 3))
        while len(self.events) < length * (4 if any(wire.policer for wire in self.wires.values()) else 1):
            if len(self.paths) < most:
                number = len(self.paths)
                self.join(number)
                p = self.paths[number]
                self.wires[number] = self.wire(p)
            choices = []
            for number, p in self.paths.items():
                wire = self.wires[number]
                if wire.acks:
                    choices.append((wire.acks[0][0], 0, number))
                share = 0.5 if p.lazy > 0 else 1.0
                waits = p.state == tcp.RECOVERY and not wire.policer
                if p.in_flight < max(int(self.window(number) * share), 1) and not waits:
                    choices.append((max(wire.send_at, self.now), 1, number))
            if not choices:
                return
            at, sends, number = min(choices)
            self.now = max(self.now, at)
            (self.transmit if sends else self.acknowledge)(number)


def vary(rng: np.random.Generator, table: list[dict]) -> dict[str, int]:
    """Other values for a controller's parameters, within a factor of four of their defaults and within their ranges."""
    changed = {}
    for row in table:
        name, least, most = row["name"], row["least"], row["most"]
        if name == "initial_ssthresh_bytes":
            value = int(rng.choice([0, 0, rng.integers(2_000, 400_000)]))
        elif name in ("max_age_s", "base_window_s", "stale_s"):
            value = int(rng.integers(1, 4))
        elif most == 1:
            value = int(rng.integers(0, 2))
        else:
            value = round(row["default"] * float(np.exp(rng.uniform(-1, 1) * math.log(4))))
        changed[name] = min(max(value, least), most)
    return changed


def rows(events: list[Event]) -> bytes:
    """The events as `_native.replay` takes them."""
    return np.array(events, dtype="<u8").tobytes()
