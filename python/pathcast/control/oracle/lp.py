"""TCP-LP. Kuzmanovic, Knightly, INFOCOM 2003.

sowd: delay smoothed with gamma = 1/8; indication: sowd > d_min + delta (d_max - d_min).
First indication: cwnd /= 2, and no growth for an inference phase of 3 RTT; another inside it: cwnd = 1. Else Reno.
Ours: the delay is the RTT (with `owd` the one-way delay, and ACKs without it say nothing); a further indication
counts from ACKs of packets sent after the cut, and starts the phase anew; slow start ends at an indication; d_max is
of the last one to two windows of max_age; no indication while d_max - d_min < floor, nor while sowd - d_min <= least;
from a receiver that has acknowledged two packets at once an ACK of one packet gives d_min only.
"""

import math

from pathcast.control.oracle.tcp import Control, Event, whole


class Lp(Control):
    d_min = math.inf
    max_now = max_before = 0.0
    sowd = None
    high = pairs = False
    cut = -1  # byte that was next when the window was cut last
    until = -1  # end of the inference phase, us

    def init(self) -> None:
        self.start()
        self.turned = self.flow.now

    def ack(self, e: Event) -> None:
        f, p = self.flow, self.p
        delay = max(e.owd - 1, 0) if p["owd"] else e.rtt_us
        self.pairs |= bool(delay) and e.acked > 1
        if delay and self.pairs and e.acked == 1:
            self.d_min = min(self.d_min, delay) if self.sowd is not None else self.d_min
        elif delay:
            if f.now - self.turned > p["max_age_s"] * 1e6:
                self.max_before, self.max_now, self.turned = self.max_now, 0.0, f.now
            self.sowd = delay if self.sowd is None else self.sowd + (delay - self.sowd) / 8
            self.d_min, self.max_now = min(self.d_min, delay), max(self.max_now, delay)
            most = max(self.max_now, self.max_before)
            bound = self.d_min + p["delta"] / 1000 * (most - self.d_min)
            large = self.ties.above(self.sowd, self.d_min + p["least_us"])
            self.high = most - self.d_min >= p["floor_us"] and large and self.ties.above(self.sowd, bound)

    def grow(self, e: Event) -> None:
        f, p = self.flow, self.p
        inside = f.now < self.until
        if self.high and (not inside or f.una > self.cut):
            f.cwnd, f.count = 1.0 if inside else max(whole(f.cwnd / 2), 1.0), 0.0
            f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))
            self.high = False  # until the next sample
            self.until, self.cut = f.now + p["inference"] * f.srtt, f.nxt
        elif not inside:
            super().grow(e)
