"""Gleaner, ours: a paced background below the available bandwidth that its own packets measure.

Over half of an RTT of packets: D = bytes / time between their ACKs, s = rise of the RTT / time between their
departures. C is the largest D (a measurement raises it by an eighth at most, a second takes 1/256). A = D - s (C -
D). A queue stands when the smallest RTT of two slots is above the least one by max(least, packets of C, share of
the RTT). In START that ends it. In RUN it begins YIELD: where A measured is below `near` of A others came, and A
gives `gamma` of the difference up, else A is the measured one. Back to RUN when the queue is below 4/5 of that;
after a loss, once the line could have carried `wait` packets. A round without a queue, of which the rate was at
least 4/5 of the pace, raises A: a quarter of what is missing to where it has been, or `step` C 2^rounds, at most
`step_most` C; and A <= C (1 + over max(n, 8) / 8). The pace is run A (1 - scarce (1 - A / C)), less `room` packets
an RTT (a quarter at most) while others were seen; in YIELD (1 - q / RTT yield (1 + small mss / (C RTT))) of it, the
last factor for others only; at least two packets in max(gap RTT, an eighth of the yield) times C / A, from 1 to
`rare`. The window is 5/4 of the pace times RTT and two thresholds, and 6 packets.
"""

from __future__ import annotations

import math

from oracle.pairs import Pairs
from oracle.tcp import OPEN, TX_START, Control, Event, whole

START, RUN, YIELD = range(3)
RATE_MOST, RTT_MOST = 2.0**36, 2.0**24


class Gleaner(Control):
    phase = START
    a = peak = rate = most = slope = 0.0  # bytes/s; slope as a share
    first: tuple[int, int, int] | None = None  # of the measurement: when it left, the byte behind it, its RTT
    slot = cut = low = 0
    now_min = before_min = math.inf
    recent = math.inf
    full = stood = others = lost = False
    seen: int | None = None  # when others were seen last
    clear = credit = 0

    def init(self) -> None:
        f = self.flow
        self.start()
        self.pairs = Pairs()
        self.base = min(float(f.srtt), RTT_MOST)
        self.una = self.round_una = f.una
        self.turned = self.round_at = f.now
        self.end, self.since = f.nxt, 0

    # --- the line

    def queue(self) -> float:
        rtt = min(self.now_min, self.before_min)
        return 0.0 if math.isinf(rtt) else max(rtt - self.base, 0.0)

    def least(self, e: Event) -> None:
        f, rtt = self.flow, min(float(e.rtt_us), RTT_MOST)
        full = e.acked > 0 and f.una - self.una >= e.acked * f.mss
        if f.now - self.turned > self.p["base_window_s"] * 1e6:
            self.turned = f.now
            if not math.isinf(self.recent):
                self.base = self.recent
            self.recent = math.inf
        if full and not self.full:
            self.base, self.recent, self.full = rtt, math.inf, True
        if self.full and not full:
            return
        self.base = min(self.base, rtt) if self.base else rtt
        self.recent = min(self.recent, rtt)

    def measure(self, e: Event) -> None:
        f = self.flow
        sent = f.now - e.rtt_us
        if self.first and 0 < self.first[0] <= sent:
            at, byte, rtt = self.first
            span, acked = f.now - (at + rtt), f.una - byte
            if self.ties.above(self.base / 2, span, 1.0) or acked < 8 * f.mss:
                return
            self.rate = min(acked * 1e6 / span, RATE_MOST) if span > 0 else 0.0
            if self.rate > self.most:
                self.most = min(self.rate, self.most * 9 / 8 + f.mss) if self.most else self.rate
            self.slope = min(max(e.rtt_us - rtt, 0) / (sent - at), 1.0) if sent > at else 0.0
        self.first = (sent, f.una, e.rtt_us)

    def hear(self, e: Event) -> None:
        f = self.flow
        held = self.pairs.held(f, e)
        if e.rtt_us and (not held or e.rtt_us < self.queue() + self.base):
            self.least(e)
            if f.now - self.slot >= math.floor(self.base * self.p["filter"] / 1000):
                self.slot, self.before_min, self.now_min = f.now, self.now_min, math.inf
            self.now_min = min(self.now_min, e.rtt_us, RTT_MOST)
            if f.state != OPEN:
                self.first = None
            elif e.acked:
                self.measure(e)
        self.una = f.una

    # --- the rate

    @property
    def rtt(self) -> float:
        return max(self.base, 100.0)

    def threshold(self) -> float:
        packets = min(self.flow.mss * self.p["packets"] * 1e3 / self.most, 1e6) if self.most >= 1 else 1e6
        return max(self.p["least_us"], self.base * self.p["share"] / 1000, packets)

    def measured(self) -> float:
        return max(self.rate - (max(self.most, self.rate) - self.rate) * self.slope, 0.0)

    def turn(self) -> None:
        """To YIELD."""
        f, now = self.flow, self.measured()
        self.phase, self.since, self.stood = YIELD, f.now, True
        self.others = self.ties.above(self.a * self.p["near"] / 1000, now, 1.0)
        if self.others:
            self.seen = f.now
        if f.now - self.cut < f.srtt:
            return
        self.cut, self.peak = f.now, max(self.peak, self.a)
        self.a = self.a - (self.a - now) * self.p["gamma"] / 1000 if self.others else now

    def paced(self) -> float:
        f, p = self.flow, self.p
        if self.phase == START:
            return min(f.w * f.mss * 1.2e6 / self.rtt, RATE_MOST)
        pace, gap = self.a * p["run"] / 1000, self.rtt * p["gap"] / 1000
        if self.a < self.most:
            pace *= 1 - (1 - self.a / self.most) * p["scarce"] / 1000
        if self.seen is not None and f.now - self.seen < p["quiet_s"] * 1e6:
            pace -= min(pace / 4, p["room"] * f.mss * 1e6 / self.rtt)
        if self.phase == YIELD:
            more = p["small"] * f.mss / max(self.most * self.rtt / 1e6, 1.0) if self.others else 0.0
            pace *= 1 - min(self.queue() / self.rtt * p["yield"] / 1000 * (1 + more), 1.0)
            gap = max(gap, (f.now - self.since) / 8)
        gap *= max(min(self.most / max(self.a, 1.0), p["rare"]), 1.0)
        return max(min(pace, RATE_MOST), 2e6 * f.mss / max(min(gap, 1e6), 1.0))

    def apart(self, pace: float) -> bool:
        """So far apart that an ACK would wait for the next packet: they leave in pairs."""
        return pace < self.flow.mss / 0.02

    def rise(self) -> None:
        p = self.p
        self.clear = min(self.clear + 1, 64)
        step = self.most * p["step"] / 1000
        if self.ties.above(self.peak, self.a * 65 / 64, 2.0):
            step = max((self.peak - self.a) / 4, step)
        else:
            step *= 2 ** min(self.clear, 8)
        self.a += min(step, self.most * p["step_most"] / 1000)
        self.a = min(self.a, self.most * (1 + p["over"] / 1000 * max(self.clear, 8) / 8))

    def round(self) -> None:
        f, p = self.flow, self.p
        took = f.now - self.round_at
        rate = (f.una - self.round_una) * 1e6 / took if took else 0.0
        self.round_at, self.round_una, self.end = f.now, f.una, f.nxt
        self.most -= self.most / 256 * min(took, 1e6) / 1e6
        self.peak = max(self.peak - self.peak / p["fade"], self.a)
        if self.phase == START:
            self.a = max(self.a, min(rate, RATE_MOST))
            self.most = max(self.most, self.a)
        if self.phase == YIELD and f.now - self.since > p["patience"] * f.srtt:
            self.a = max(self.a * (1 - p["age"] / 1000), 2.0 * f.mss)
        if self.stood or self.phase != RUN:
            self.stood, self.clear = self.phase == YIELD, 0
            return
        pace = self.paced()
        bunch = 0.0
        if self.most >= 1 and self.apart(pace):
            bunch = min(f.mss * 1e6 / self.most, 1e6)
        elif self.most >= 1:
            bunch = min(max(pace / 1000 - f.mss, 0.0) * 1e6 / self.most, 1000.0)
        if self.ties.above(self.queue(), math.floor(self.threshold()) // 7 + bunch, 2.0):
            self.clear = 0
        elif self.ties.reached(rate, pace * 0.8, 1.0):
            self.rise()

    def ack(self, e: Event) -> None:
        f = self.flow
        self.hear(e)
        queue, most = self.queue(), self.threshold()
        above, low = self.ties.above(queue, most, 2.0), not self.ties.above(queue, most * 0.8, 2.0)
        if self.phase == START and above and self.full:
            self.a = max(self.a, self.rate)
            self.most, self.cut = max(self.most, self.a), f.now
            self.turn()
        elif self.phase == RUN and above:
            self.turn()
        elif self.phase == YIELD and low:
            self.low = self.low or f.now
            carried = (f.now - self.low) * self.most / 1e6
            if not (self.lost and self.others) or self.ties.reached(carried, self.p["wait"] * f.mss, 2.0):
                self.phase, self.since, self.end, self.lost = RUN, f.now, f.nxt, False
        elif self.phase == YIELD and self.ties.above(queue, 2 * most, 2.0):
            self.others = True
        if self.phase != YIELD or not low:
            self.low = 0
        if f.una > self.end:
            self.round()
        f.word[0] = self.a

    def grow(self, e: Event) -> None:
        f = self.flow
        if self.phase == START and f.slow:
            if f.limited or not f.starved:
                self.credit += e.acked * self.p["start"]
                f.cwnd += self.credit // 1000
                self.credit %= 1000
            return
        if self.phase == START:
            self.phase, self.since = RUN, f.now
            self.a = max(self.a, min(f.w * f.mss * 1e6 / self.rtt, RATE_MOST))
            self.peak = self.a
        wide = self.paced() * (self.base + 2 * self.threshold()) / 1e6 * 5 / 4
        f.cwnd = f.ssthresh = whole(wide / f.mss) + 6
        f.count = 0.0

    def ssthresh(self) -> float:
        f, keep = self.flow, self.p["keep"] / 1000
        if self.phase == START:
            self.a = max(self.rate, self.a / 2)
            self.most = max(self.most, self.a)
        self.turn()
        self.lost = True
        self.a = max(self.a * keep, 2.0 * f.mss)
        f.word[0] = self.a
        return max(whole(f.w * keep), 2.0)

    def event(self, kind: int) -> None:
        if kind != TX_START or self.flow.starved:
            self.first = None

    def send(self) -> None:
        f = self.flow
        f.pace = self.paced()
        f.burst = 0 if f.pace >= 2000 * f.mss else 2 if self.phase == YIELD or self.apart(f.pace) else 1
