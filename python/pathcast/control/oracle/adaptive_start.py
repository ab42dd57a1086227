"""Adaptive start: slow start that ends when the connection holds what its paths hold. Ours; docs/controllers.md.

The rate of a train of ACKs, from the first of a round on: of the own ACKs, and of all the connection's; the largest
counts. load = sum_p(w_p / RTT_min_p). Full: load >= gain rate + extra packets an RTT_min, or so with the own window
and own rate. While not full one packet for each acked; full: LIA, and windows below the mean take from the largest.
The first reduction keeps rate / load of the window, at least half.
"""

import math
from typing import NamedTuple

from pathcast.control.oracle.lia import Lia
from pathcast.control.oracle.tcp import OPEN, Event, Peer, whole

START, HOLD, AVOID = range(3)
TICK = 1024.0  # us, in which the time of joining is published


def per_time(packets: float, us: float) -> float:
    """Packets per 2^30 us."""
    return packets * 2.0**30 / us


class View(NamedTuple):
    """The connection as one subflow sees it; rates and loads in packets per 2^30 us."""

    delivered: float
    window: float
    load: float
    air: float
    rate: float
    active: int
    largest: int
    most: float
    joint: bool  # a sibling's queue may be this flow's too


class AdaptiveStart(Lia):
    phase = START
    delivered = own = every = 0.0
    fresh, trains = True, False
    losses = 0
    load = rate = 0.0  # as last seen
    head = (0.0, 0.0, 0.0)  # of the train: time, delivered by the flow and by all
    limit = math.inf  # TCP's ssthresh

    def tell(self) -> None:
        self.flow.told = (self.delivered, self.rtt_min, self.own, self.every, self.joined)

    def siblings(self) -> list[tuple[int, Peer]]:
        return [(slot, p) for slot, p in sorted(self.flow.peers.items()) if slot != self.flow.slot]

    def init(self) -> None:
        f = self.flow
        self.start()
        self.end, self.rtt_min, self.joined, self.limit = f.nxt, f.srtt, f.now, f.ssthresh
        self.phase = START if f.slow else AVOID
        self.tell()
        others = [p for _, p in self.siblings()]
        old = [p for p in others if p.told[0]]
        if not old:
            return
        far = f.srtt > 1.25 * min(p.told[1] for p in others)
        most = self.p["first_far" if far else "first_most"]
        room = sum(p.cwnd for p in old) - sum(p.cwnd for p in others if not p.told[0])
        load, rate = sum(per_time(p.cwnd, p.told[1]) for p in others), max(p.told[3] for p in old)
        if rate and self.ties.reached(load, rate * self.p["gain"] / 1000):
            most, room = 0, 0.0
        most = max(most, f.cwnd)
        f.cwnd = max(min(room, most), min(self.p["first_least"], most), 1.0)

    def ack(self, e: Event) -> None:
        if self.flow.una > self.end:
            self.end, self.fresh = self.flow.nxt, True
        if e.rtt_us:
            self.rtt_min = min(self.rtt_min, e.rtt_us)

    def room(self, p: Peer) -> float:
        """What takes room of a sibling's window."""
        if p.told[0]:
            return max(min(p.cwnd, 4 * p.in_flight), p.in_flight)
        long = self.ties.reached(self.flow.now - p.told[4], 1.5 * p.told[1], TICK)
        return 0.0 if long else whole(0.3 * p.cwnd)

    def shares(self, p: Peer, now: float) -> bool:
        """Whether the queue that a sibling sees may be this flow's too."""
        queue, own = max(p.srtt - p.told[1], 0.0), max(now - self.rtt_min, 0.0)
        apart = self.ties.above(queue, 2 * own + p.told[1] / 16 + 1000, 2.0)
        return not apart or self.ties.reached(queue, 4 * abs(now - p.srtt))

    def look(self, e: Event) -> View:
        f, acked, joint = self.flow, e.acked, False
        delivered, window, rate = self.delivered, f.w, 0.0
        load, air = per_time(f.w, self.rtt_min), per_time(f.in_flight + acked, self.rtt_min)
        active, largest, most = int(f.w > 2), -1, 0.0
        for slot, p in self.siblings():
            w, rtt = self.room(p), p.told[1]
            delivered, window, active = delivered + p.told[0], window + w, active + (w > 2)
            load, air = load + per_time(w, rtt), air + per_time(p.in_flight, rtt)
            rate = max(rate, p.told[3])
            joint = (w > 2 and self.shares(p, max(f.srtt, e.rtt_us))) or joint
            if w > most:
                largest, most = slot, w
        return View(delivered, window, load, air, rate, active, largest, most, joint or most <= 2)

    def measure(self, every: float) -> None:
        f = self.flow
        if self.fresh or f.state != OPEN or every < self.head[2]:
            self.fresh = f.state != OPEN
            self.head = (f.now, self.delivered, every)
        time, own, every = f.now - self.head[0], self.delivered - self.head[1], every - self.head[2]
        if time <= 0:
            return
        train = self.p["train"]
        if own >= (max(train, f.w / 2) if self.own else train):
            self.own = max(self.own, per_time(own, time))
        if every >= train:
            self.every = max(self.every if self.trains else 0.0, per_time(every, time))
            self.trains = True
        elif not self.trains and every:
            self.every = per_time(every, time)

    def grow(self, e: Event) -> None:
        f = self.flow
        self.delivered += e.acked
        view = self.look(e)
        self.measure(view.delivered)
        self.tell()
        self.rate, self.load = max(view.rate, self.every), view.load
        mean = whole(view.window / view.active) if view.active else 0.0
        needy = f.w * 2 < mean
        if f.mail and self.phase != AVOID and f.w > mean:
            f.cwnd = max(f.cwnd - min(f.mail, f.w - mean), 2.0)
            self.phase = HOLD
        if not f.limited:
            return
        if self.phase == START and not f.slow:
            self.phase = AVOID
        if self.phase == AVOID or not self.fill(view, e.acked, mean, needy):
            super().grow(e)

    def fill(self, view: View, acked: float, mean: float, needy: bool) -> bool:
        """Whether the window has grown by what was acked."""
        f, gain = self.flow, self.p["gain"] / 1000
        extra = per_time(self.p["extra"], self.rtt_min)
        alone = bool(self.own) and self.ties.reached(per_time(f.w, self.rtt_min), self.own * gain + extra)
        poor = not alone and f.w + acked <= mean
        together = view.joint and bool(self.rate)
        full = alone or (together and self.ties.reached(view.load, self.rate * gain + extra))
        if self.phase == START and full:
            self.phase = HOLD
        if self.phase != HOLD:
            return False
        f.ssthresh = max(min(f.ssthresh, f.w), 2.0)
        if full and poor:
            if view.most > mean:
                f.post = (view.largest, float(acked))
            full = self.ties.reached(view.air, self.rate * (1.1 if needy else 0.9))
        if full or f.w + acked > self.limit:
            return False
        f.cwnd += acked
        f.ssthresh = max(f.w, 2.0)
        return True

    def ssthresh(self) -> float:
        half = super().ssthresh()
        self.losses += 1
        self.phase = AVOID if self.losses > self.p["refill"] else HOLD
        if self.losses > 1 or not self.load:
            return half
        return max(min(whole(self.flow.w * self.rate / self.load), self.flow.w), half)
