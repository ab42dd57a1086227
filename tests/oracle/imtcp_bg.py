"""ImTCP-bg. Tsugawa, Hasegawa, Murata, APCC 2005, IEICE E89-B 2006; the measurement is `imtcp`.

Each RTT: RTTcur / RTTmin > delta: the measurement is inaccurate: cwnd *= RTTmin / RTTcur, maxcwnd stays.
Else A = (1 - gamma) A + gamma Acur; maxcwnd = A RTTmin; Reno with cwnd <= maxcwnd.
Ours: RTTcur is the smallest RTT of the last two rounds, and inaccurate only if above RTTmin by more than least; never
below 2. The first result is A, and so is a lower bound above A; maxcwnd has the last train's extra packets added, is
made when a result comes, and lifted when none has come for stale_s; slow start ends with an inaccurate round or at
maxcwnd; after `quiet` rounds the window climbs to maxcwnd by one packet for `climb` acked.
Ours for paths of few packets, unless `small` is 0: RTTmin is of full packets once there is one; 3 packets after `stuck`
inaccurate rounds at 2; a window too small for a train is paced, one packet each 5/6 RTTmin / cwnd but at least each
10 ms. On a small path (largest A times RTTmin below `small` packets), unless `quiet` rounds had no loss and high RTT:
RTTcur is of one round, its excess over RTTmin counts `yield` times, and nothing grows in the round after.
"""

import math

from oracle.imtcp import PASS, Imtcp
from oracle.tcp import DISORDER, OPEN, Event, whole

GAP_MOST = 10_000.0  # us


class ImtcpBg(Imtcp):
    mean = largest = 0.0  # A, and its largest, bytes/s
    most = math.inf  # maxcwnd, packets
    round_min = last_min = math.inf  # us
    current = 0.0  # RTTcur, us; 0: none
    ended = full = held = False
    seen = updated = quiet = stuck = 0

    def init(self) -> None:
        super().init()
        self.rtt_min, self.round_end, self.una = float(self.flow.srtt), self.flow.nxt, self.flow.una

    def high(self, rtt: float) -> bool:
        return self.ties.above(rtt, max(self.rtt_min * self.p["delta"] / 1000, self.rtt_min + self.p["least_us"]), 0)

    def near(self) -> bool:
        """Whether others compete on a small path."""
        path = self.largest * self.rtt_min / 1e6 / self.flow.mss
        return self.quiet < self.p["quiet"] and path > 0 and not self.ties.reached(path, self.p["small"], 0)

    def round(self) -> None:
        one, two = (0.0 if math.isinf(rtt) else rtt for rtt in (self.round_min, min(self.round_min, self.last_min)))
        self.quiet = 0 if self.high(two) else self.quiet + 1
        self.current = one if self.near() else two
        self.last_min, self.round_min = self.round_min, math.inf
        self.round_end, self.ended = self.flow.nxt, True

    def ack(self, e: Event) -> None:
        f = self.flow
        full = self.p["small"] > 0 and e.acked > 0 and f.una - self.una >= e.acked * f.mss
        if f.una > self.round_end:
            self.round()
        if e.rtt_us:
            if not self.rtt_min or (full and not self.full):
                self.rtt_min = e.rtt_us
            elif full == self.full:
                self.rtt_min = min(self.rtt_min, e.rtt_us)
            self.full = self.full or full
            self.round_min = min(self.round_min, e.rtt_us)
        self.una = f.una
        if f.state not in (OPEN, DISORDER):
            self.quiet = 0
        super().ack(e)

    def send(self) -> None:
        super().send()
        f = self.flow
        far = self.rtt_min >= max(self.p["rtt_least_us"], 1)
        if self.p["small"] and self.phase == PASS and not self.train() and not f.slow and far:
            f.burst, f.pace = 1, f.mss * 1e6 / min(self.rtt_min * 5 / 6 / f.w, GAP_MOST)

    def lower(self) -> None:
        """An inaccurate round."""
        f, p, near = self.flow, self.p, self.near()
        queue = (self.current - self.rtt_min) * (p["yield"] / 1000 if near else 1)
        self.stuck = self.stuck + 1 if p["small"] and f.w <= 2 else 0
        self.held = near
        if self.stuck >= p["stuck"]:
            self.stuck = 0
            f.cwnd = f.w + 1
        else:
            f.cwnd = max(whole(f.w * self.rtt_min / (self.rtt_min + queue)), min(f.cwnd, 2.0))
        f.count = 0.0
        f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))

    def grow(self, e: Event) -> None:
        f, p = self.flow, self.p
        inaccurate = self.high(self.current)
        if self.results != self.seen:
            self.seen = self.results
            if not inaccurate:
                at_once = not self.mean or (self.bound and self.ties.above(self.a, self.mean))
                self.mean += (1 if at_once else p["gamma"] / 1000) * (self.a - self.mean)
                self.largest = max(self.largest, self.mean)
                most = self.mean * self.rtt_min / 1e6 / f.mss  # the header rounds to bytes before it divides by the mss
                self.most = self.split(most, 2 / f.mss)[0] + self.extra
                self.updated = f.now
        if f.now - self.updated > p["stale_s"] * 1e6:
            self.most = math.inf
        if self.ended:
            self.ended = False
            if inaccurate:
                self.lower()
                return
            self.held, self.stuck = False, 0
        if self.held:
            return
        below = not math.isinf(self.most) and f.cwnd < self.most
        if below and not f.slow and f.limited and self.quiet >= p["quiet"]:
            self.add(float(p["climb"]), e.acked)
        else:
            super().grow(e)
        if f.cwnd > self.most:
            f.cwnd = self.most
            f.ssthresh = min(f.ssthresh, f.w)
