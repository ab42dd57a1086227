"""What surrounds an oracle: events, a flow as its controller sees it, thresholds, and TCP's own rules in floats.

A window is a float of packets. TCP sends whole packets, so that formulas, siblings and decisions see `w`, the whole
ones of them; a fraction is credit towards the next packet, lost at a reduction, which leaves whole packets. In
congestion avoidance TCP counts the packets acked and adds one for each `per` of them (`Control.add`): `per` is 1 /
(the paper's increase), a float, and when it changes the count stays, which a sum of increases would not do.

RFC 5681 section 3.1 (slow start, congestion avoidance, ssthresh), section 4.1 (restart after idle time).
"""

from __future__ import annotations

import math
from typing import NamedTuple

JOIN, ACK, GROW, LOSS, RECOVERED, TIMEOUT, UNDO, TX_START, IDLE, SEND, LEAVE, SILENT = range(12)
OPEN, DISORDER, CWR, RECOVERY, IN_LOSS = range(5)
RESTART = 10.0  # packets, RFC 5681 section 4.1 with the first window of RFC 6928


class Event(NamedTuple):
    """A row of a sequence, as crates/native/src/controller.rs describes it."""

    kind: int
    subflow: int
    advance_us: int
    acked: int = 0
    rtt_us: int = 0
    owd: int = 0  # one more than the one-way delay, us; 0: none
    in_flight: int = 0
    una: int = 0
    nxt: int = 0
    srtt_us: int = 0
    rttvar_us: int = 0
    limited: int = 1  # and 2: starved
    state: int = OPEN
    mss: int = 1448
    delivered: int = 0
    lost: int = 0


def whole(window: float) -> float:
    """Whole packets of a window; what float arithmetic lost below one is no packet."""
    return float(math.floor(window + 1e-9))


class Ties:
    """Decisions by thresholds, and those that stood within rounding of the threshold.

    The C headers compute in whole microseconds and in fractions of a few bits, so that close to a threshold they may
    decide the other way. Such a tie is noted with its event; a comparison may ask for the other decision (`flips`).
    """

    SHARE = 1e-3

    def __init__(self, flips: frozenset[int] = frozenset()) -> None:
        self.flips = flips
        self.met: list[int] = []  # the event of each tie
        self.event = 0

    def reached(self, value: float, bound: float, rounding: float = 1.0) -> bool:
        """Whether `value` is at least `bound`; `rounding` in the unit of both, 1 for microseconds."""
        return self.tied(value >= bound, value, bound, rounding)

    def above(self, value: float, bound: float, rounding: float = 1.0) -> bool:
        """Whether `value` is more than `bound`."""
        return self.tied(value > bound, value, bound, rounding)

    def tied(self, answer: bool, value: float, bound: float, rounding: float) -> bool:
        if abs(value - bound) > max(rounding, self.SHARE * abs(bound)):
            return answer
        return not answer if self.flipped() else answer

    def flipped(self) -> bool:
        """Notes a tie; whether it shall be taken the other way."""
        self.met.append(self.event)
        return len(self.met) - 1 in self.flips


class Peer(NamedTuple):
    """One subflow as its siblings last heard of it."""

    cwnd: float
    ssthresh: float
    srtt: float
    in_flight: float
    mail: float
    word: tuple[float, float]
    told: tuple[float, ...] = ()  # what the header packs into its words


class Flow:
    """One subflow as a controller sees it; units as in flow.h."""

    def __init__(self, mss: int, cwnd: float) -> None:
        self.cwnd = cwnd
        self.count = 0.0  # packets acked towards the next packet of window
        self.ssthresh = math.inf
        self.word = [0.0, 0.0]
        self.told: tuple[float, ...] = ()
        self.pace = 0.0
        self.burst = 0
        self.post: tuple[int, float] | None = None
        self.prior = self.prior_ssthresh = 0.0
        self.undone = False
        self.mail = 0.0
        self.slot = 0
        self.mss = mss
        self.peers: dict[int, Peer] = {}  # the group as last seen
        self.joins = 1
        self.now = self.una = self.nxt = self.in_flight = self.srtt = self.state = 0
        self.delivered = self.lost = 0
        self.limited, self.starved = True, False

    def see(self, now: int, e: Event) -> None:
        self.now, self.una, self.nxt, self.in_flight = now, e.una, e.nxt, e.in_flight
        self.srtt, self.limited, self.starved = e.srtt_us, bool(e.limited & 1), bool(e.limited & 2)
        self.state, self.mss, self.delivered, self.lost = e.state, e.mss, e.delivered, e.lost

    @property
    def w(self) -> float:
        """The window in whole packets."""
        return whole(self.cwnd)

    @property
    def slow(self) -> bool:
        return self.cwnd < self.ssthresh

    def paths(self) -> list[tuple[float, float]]:
        """Window and RTT of all subflows whose RTT is known, oneself first."""
        others = [(p.cwnd, p.srtt) for slot, p in self.peers.items() if slot != self.slot and p.srtt]
        return [(self.w, self.srtt), *others]

    def slow_start(self, acked: float) -> float:
        """One packet for each acked up to ssthresh; what is left for congestion avoidance."""
        to = min(self.cwnd + acked, self.ssthresh)
        left = acked - (to - self.cwnd)
        self.cwnd = to
        return left


class Control:
    """Reno, of which every other oracle replaces what is its own."""

    def __init__(self, flow: Flow, params: dict[str, int], ties: Ties) -> None:
        self.flow, self.p, self.ties = flow, params, ties

    def init(self) -> None:
        self.start()

    def start(self) -> None:
        """The configured first ssthresh, at least two packets."""
        if self.p["initial_ssthresh_bytes"]:
            self.flow.ssthresh = max(whole(self.p["initial_ssthresh_bytes"] / self.flow.mss), 2.0)

    def ack(self, e: Event) -> None: ...

    def grow(self, e: Event) -> None:
        if self.flow.limited:
            left = self.flow.slow_start(e.acked) if self.flow.slow else float(e.acked)
            if left > 0:
                self.avoid(left)

    def avoid(self, acked: float) -> None:
        """Congestion avoidance: one packet per RTT."""
        self.add(self.flow.w, acked)

    def add(self, per: float, acked: float) -> None:
        """One packet for each `per` acked. A count that `per` has fallen below is worth one packet, as in Linux.

        The headers' `per` is whole packets, rounded down; that this decides otherwise is a tie.
        """
        f = self.flow
        if f.count >= per:
            f.cwnd, f.count = f.cwnd + 1, 0.0
        rounded = whole(per)
        if whole((f.count + acked) / rounded) != whole((f.count + acked) / per) and self.ties.flipped():
            per = rounded
        packets = whole((f.count + acked) / per)
        f.cwnd, f.count = f.cwnd + packets, f.count + acked - packets * per

    def split(self, total: float, rounding: float = Ties.SHARE) -> tuple[float, float]:
        """Whole packets and credit of a sum of shares; a sum within `rounding` of whole packets is a tie.

        The headers round each share down to 2^-16 packets.
        """
        packets = whole(total)
        if abs(total - round(total)) < rounding and self.ties.flipped():
            packets = round(total) - (packets == round(total))
        return float(packets), max(total - packets, 0.0)

    def ssthresh(self) -> float:
        return max(whole(self.flow.w / 2), 2.0)

    def undo(self) -> float:
        return max(self.flow.cwnd, self.flow.prior)

    def event(self, kind: int) -> None: ...

    def send(self) -> None: ...

    def window(self) -> float:
        """The window that is compared: whole packets, as the headers have it."""
        return self.flow.w
