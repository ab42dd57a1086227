"""ImTCP-bg. Tsugawa, Hasegawa, Murata, APCC 2005, IEICE E89-B 2006; the measurement is `imtcp`.

Each RTT: RTTcur / RTTmin > delta: the measurement is inaccurate: cwnd *= RTTmin / RTTcur, maxcwnd stays.
Else A = (1 - gamma) A + gamma Acur; maxcwnd = A RTTmin; Reno with cwnd <= maxcwnd.
Ours: RTTcur is the smallest RTT of the last two rounds, and inaccurate only if above RTTmin by more than least; never
below 2; the first result is A, and so is a lower bound above A; maxcwnd has the last train's extra packets added, is
made when a result comes, and lifted when none has come for stale_s; slow start ends with an inaccurate round or at
maxcwnd; after `quiet` rounds without loss and high RTT the window climbs to maxcwnd by one packet for `climb` acked.
"""

import math

from pathcast.control.oracle.imtcp import Imtcp
from pathcast.control.oracle.tcp import DISORDER, OPEN, Event, whole


class ImtcpBg(Imtcp):
    mean = 0.0  # A, bytes/s
    most = math.inf  # maxcwnd, packets
    round_min = last_min = math.inf  # us
    current = 0.0  # RTTcur, us; 0: none
    ended = False
    seen = updated = quiet = 0

    def init(self) -> None:
        super().init()
        self.rtt_min, self.round_end = float(self.flow.srtt), self.flow.nxt

    def ack(self, e: Event) -> None:
        if self.flow.una > self.round_end:
            self.round_end, self.ended = self.flow.nxt, True
            least = min(self.round_min, self.last_min)
            self.current = 0.0 if math.isinf(least) else least
            self.last_min, self.round_min = self.round_min, math.inf
        if e.rtt_us:
            self.rtt_min, self.round_min = min(self.rtt_min, e.rtt_us), min(self.round_min, e.rtt_us)
        if self.flow.state not in (OPEN, DISORDER):
            self.quiet = 0
        super().ack(e)

    def grow(self, e: Event) -> None:
        f, p = self.flow, self.p
        high = max(self.rtt_min * p["delta"] / 1000, self.rtt_min + p["least_us"])
        inaccurate = self.ties.above(self.current, high, 0)
        if self.results != self.seen:
            self.seen = self.results
            if not inaccurate:
                at_once = not self.mean or (self.bound and self.ties.above(self.a, self.mean))
                self.mean += (1 if at_once else p["gamma"] / 1000) * (self.a - self.mean)
                most = self.mean * self.rtt_min / 1e6 / f.mss  # the header rounds to bytes before it divides by the mss
                self.most = self.split(most, 2 / f.mss)[0] + self.extra
                self.updated = f.now
        if f.now - self.updated > p["stale_s"] * 1e6:
            self.most = math.inf
        ended, self.ended = self.ended, False
        if ended:
            self.quiet = 0 if inaccurate else self.quiet + 1
            if inaccurate:
                f.cwnd = max(whole(f.w * self.rtt_min / self.current), min(f.cwnd, 2.0))
                f.count = 0.0
                f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))
                return
        below = not math.isinf(self.most) and f.cwnd < self.most
        if below and not f.slow and f.limited and self.quiet >= p["quiet"]:
            self.add(float(p["climb"]), e.acked)
        else:
            super().grow(e)
        if f.cwnd > self.most:
            f.cwnd = self.most
            f.ssthresh = min(f.ssthresh, f.w)
