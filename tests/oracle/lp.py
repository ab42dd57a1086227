"""TCP-LP. Kuzmanovic, Knightly, INFOCOM 2003.

sowd: delay smoothed with gamma = 1/8; indication: sowd > d_min + delta (d_max - d_min).
First indication: cwnd /= 2, and no growth for an inference phase of 3 RTT; another inside it: cwnd = 1. Else Reno.
Ours: the delay is the RTT until an ACK has the one-way delay, with which all begins anew, and ACKs without it say
nothing from then on (not with `owd` 0, with which RTTs begin anew); a further indication counts from ACKs of packets
sent after the cut, with which sowd begins anew, and starts the phase anew; a loss before such an ACK does not halve
again; d_max is of the last one to two windows of max_age; no indication while d_max - d_min < floor, nor while sowd -
d_min <= least or least_share of the smallest RTT; in slow start only with the smallest delay of the round so far, of
8 packets or the window, above the same bound, and then cwnd /= 4; from a receiver that acknowledges pairs an ACK of
one packet gives d_min only.
"""

import math

from oracle.pairs import Pairs
from oracle.tcp import Control, Event, whole


class Lp(Control):
    d_min = math.inf
    max_now = max_before = 0.0
    sowd = None
    high = one_way = False
    cut = -1  # byte that was next when the window was cut last
    until = -1  # end of the inference phase, us
    fresh = True  # a packet sent after the cut was acked
    round_min, acked = math.inf, 0  # of this round; packets

    def init(self) -> None:
        self.start()
        self.turned, self.end, self.pairs = self.flow.now, self.flow.nxt, Pairs()

    def ack(self, e: Event) -> None:
        f, p = self.flow, self.p
        held = self.pairs.held(f, e)
        self.high = False
        if f.una > self.end:
            self.end, self.round_min, self.acked = f.nxt, math.inf, 0
        one_way = bool(p["owd"] and e.owd)
        if one_way and not self.one_way:
            self.one_way, self.d_min, self.round_min, self.sowd = True, math.inf, math.inf, None
        elif self.one_way and not p["owd"]:  # set while the flow lives
            self.one_way, self.d_min, self.round_min, self.sowd = False, math.inf, math.inf, None
        # the origin of one-way delays means nothing; RTTs say nothing any more once they are known
        delay = e.owd + 2**30 if one_way else 0 if self.one_way else e.rtt_us
        if delay and held:
            self.d_min = min(self.d_min, delay) if self.sowd is not None else self.d_min
        elif delay:
            if self.sowd is None:
                self.max_now = self.max_before = 0.0
            if f.now - self.turned > p["max_age_s"] * 1e6:
                self.max_before, self.max_now, self.turned = self.max_now, 0.0, f.now
            self.sowd = delay if self.sowd is None else self.sowd + (delay - self.sowd) / 8
            if not self.fresh and f.una > self.cut:
                self.fresh, self.sowd = True, delay
            self.d_min, self.max_now = min(self.d_min, delay), max(self.max_now, delay)
            self.round_min, self.acked = min(self.round_min, delay), self.acked + e.acked
            most = max(self.max_now, self.max_before) - self.d_min
            share = 0 if self.one_way else p["least_share"] / 1000 * self.d_min
            queue = max(p["least_us"], share, p["delta"] / 1000 * most)
            self.high = most >= p["floor_us"] and self.ties.above(self.sowd, self.d_min + queue)
            if self.high and f.slow:
                self.high = self.acked >= min(f.w, 8) and self.ties.above(self.round_min, self.d_min + queue)

    def grow(self, e: Event) -> None:
        f, p = self.flow, self.p
        inside = f.now < self.until
        if self.high and (not inside or f.una > self.cut):
            f.cwnd, f.count = 1.0 if inside else max(whole(f.cwnd / (4 if f.slow else 2)), 1.0), 0.0
            f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))
            self.high = False  # until the next sample
            self.fresh = False
            self.until, self.cut = f.now + p["inference"] * f.srtt, f.nxt
        elif not inside:
            super().grow(e)

    def ssthresh(self) -> float:
        return super().ssthresh() if self.fresh else max(self.flow.w, 2.0)
