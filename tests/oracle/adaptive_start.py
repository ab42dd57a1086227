"""Adaptive start: slow start that ends when the connection holds what its paths hold. Ours; docs/controllers.md.

The rate of a train of ACKs, from the first of a round on: of the own ACKs, and of all the connection's; the largest
counts. load = sum_p(w_p / RTT_min_p), a sibling's at most its own rate + extra packets an RTT_min. Full: load >= gain
rate + extra packets an RTT_min, or so with the own window and own rate. While not full one packet for each acked;
full: LIA, but windows below the mean may take from the largest.
In congestion avoidance that is not full the connection grows by a packet an RTT; after `refill` reductions a subflow
takes the load that siblings leave unused.
"""

import math
from typing import NamedTuple

from oracle.lia import Lia
from oracle.tcp import OPEN, Event, Peer, whole

START, HOLD, AVOID = range(3)
TICK = 64.0  # us, in which the time of joining is published


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
    idle: float  # load of what siblings' windows would let go and do not


class AdaptiveStart(Lia):
    phase = START
    delivered = own = every = 0.0
    fresh, trains = True, False
    losses = 0
    head = (0.0, 0.0, 0.0)  # of the train: time, delivered by the flow and by all
    limit = math.inf  # TCP's ssthresh

    def tell(self) -> None:
        self.flow.told = (self.delivered, self.rtt_min, self.every, self.joined, self.own)

    def siblings(self) -> list[tuple[int, Peer]]:
        return [(slot, p) for slot, p in sorted(self.flow.peers.items()) if slot != self.flow.slot]

    def init(self) -> None:
        f = self.flow
        self.start()
        self.end, self.rtt_min, self.joined, self.limit = f.nxt, f.srtt, f.now, f.ssthresh
        self.phase = START if f.slow else AVOID
        self.tell()
        others = [p for _, p in self.siblings()]
        old = [p for p in others if self.heard(p)]
        if not old:
            return
        most, least = max(self.p["first_most"], f.cwnd), max(self.p["first_least"], f.cwnd)
        room = sum(p.cwnd for p in old) - sum(p.cwnd for p in others if p not in old)
        load, rate = sum(per_time(p.cwnd, p.told[1]) for p in others), max(p.told[2] for p in others)
        if rate and self.ties.reached(load, rate * self.p["gain"] / 1000):
            f.cwnd = min(max(p.cwnd for p in old), float(self.p["first_most"]))
        else:
            f.cwnd = float(max(min(room, most), min(least, most)))
        f.cwnd = max(f.cwnd, 1.0)

    def heard(self, p: Peer) -> bool:
        """Whether a sibling has delivered something, or joined an RTT ago and so may have."""
        return bool(p.told[0]) or self.ties.reached(self.flow.now - p.told[3], p.told[1], TICK)

    def ack(self, e: Event) -> None:
        if self.flow.una > self.end:
            self.end, self.fresh = self.flow.nxt, True
        if e.rtt_us:
            self.rtt_min = min(self.rtt_min, e.rtt_us)

    def room(self, p: Peer) -> float:
        """What takes room of a sibling's window."""
        if p.told[0]:
            return max(min(p.cwnd, 4 * p.in_flight), p.in_flight)
        long = self.ties.reached(self.flow.now - p.told[3], 1.5 * p.told[1], TICK)
        return 0.0 if long else whole(0.1 * p.cwnd)

    def taken(self, p: Peer, load: float) -> float:
        """What a sibling's path takes of its load, once its rate is known: the rest stands in a queue."""
        return min(load, p.told[4] + per_time(self.p["extra"], self.rtt_min)) if p.told[4] else load

    def look(self, e: Event) -> View:
        f, acked = self.flow, e.acked
        delivered, window, rate = self.delivered, f.w, 0.0
        load, air = per_time(f.w, self.rtt_min), per_time(f.in_flight + acked, self.rtt_min)
        active, largest, most, idle = int(f.w > 2), -1, 0.0, 0.0
        for slot, p in self.siblings():
            w, rtt = self.room(p), p.told[1]
            delivered, window, active = delivered + p.told[0], window + w, active + (w > 2)
            load, air = load + self.taken(p, per_time(w, rtt)), air + per_time(p.in_flight, rtt)
            rate = max(rate, p.told[2])
            idle += per_time(max(p.cwnd - w, 0.0), rtt) if p.told[0] else 0.0
            if w > most:
                largest, most = slot, w
        return View(delivered, window, load, air, rate, active, largest, most, idle)

    def measure(self, every: float, window: float) -> None:
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
        if every >= (max(train, window / 4) if self.trains else train):
            self.every = max(self.every if self.trains else 0.0, per_time(every, time))
            self.trains = True
        elif not self.trains and every:
            self.every = per_time(every, time)

    def grow(self, e: Event) -> None:
        f = self.flow
        self.delivered += e.acked
        view = self.look(e)
        self.measure(view.delivered, view.window)
        self.tell()
        view = view._replace(rate=max(view.rate, self.every))
        mean = whole(view.window / view.active) if view.active else 0.0
        needy = f.w * 2 < mean
        if f.mail and self.phase != AVOID and f.w > mean:
            f.cwnd = max(f.cwnd - min(f.mail, f.w - mean), 2.0)
            self.phase = HOLD
        if not f.limited:
            return
        if self.phase == START and not f.slow:
            self.phase = AVOID
        gain, extra = self.p["gain"] / 1000, per_time(self.p["extra"], self.rtt_min)
        load = per_time(f.w, self.rtt_min)
        alone = bool(self.own) and self.ties.reached(load, self.own * gain + extra)
        bound = view.rate * gain + extra
        crowded = self.ties.reached(view.load, bound)
        full = alone or (bool(view.rate) and crowded)
        if self.phase == START and full:
            self.phase = HOLD
        if self.phase == HOLD:
            f.ssthresh = max(min(f.ssthresh, f.w), 2.0)
            poor = not alone and f.w + e.acked <= mean
            if full and poor:
                full = self.ties.reached(view.air, view.rate * (1.2 if needy else 0.9))
            if not full and f.w + e.acked <= self.limit:
                if poor and crowded and view.most > mean:
                    f.post = (view.largest, float(e.acked))
                f.cwnd += e.acked
                f.ssthresh = max(f.w, 2.0)
                return
        if full or f.slow:
            super().grow(e)
        elif self.losses <= self.p["refill"]:
            self.add(view.window, e.acked)
        elif not self.ties.reached(load, view.idle):
            f.cwnd += e.acked
        else:
            super().grow(e)

    def ssthresh(self) -> float:
        self.losses += 1
        self.phase = AVOID if self.losses > self.p["refill"] else HOLD
        return super().ssthresh()
