"""ImTCP-bg. Tsugawa, Hasegawa, Murata, APCC 2005, IEICE E89-B 2006; the measurement is `imtcp`.

Each RTT: RTTcur / RTTmin > delta: the measurement is inaccurate: cwnd *= RTTmin / RTTcur, maxcwnd stays.
Else A = (1 - gamma) A + gamma Acur; maxcwnd = A RTTmin; Reno with cwnd <= maxcwnd.
Ours: RTTcur is the last round's smallest RTT; never below 2; the first result is A; maxcwnd is made when a result
comes, and lifted when none has come for stale_s; slow start ends with an inaccurate round or at maxcwnd.
"""

import math

from pathcast.control.oracle.imtcp import Imtcp
from pathcast.control.oracle.tcp import Event, whole


class ImtcpBg(Imtcp):
    a = 0.0  # bytes/s
    most = math.inf  # maxcwnd, packets
    round_min = math.inf
    current = 0.0  # RTTcur, us; 0: none
    ended = False
    seen = updated = 0

    def init(self) -> None:
        super().init()
        self.rtt_min, self.round_end = float(self.flow.srtt), self.flow.nxt

    def ack(self, e: Event) -> None:
        if self.flow.una > self.round_end:
            self.round_end, self.ended = self.flow.nxt, True
            self.current = 0.0 if math.isinf(self.round_min) else self.round_min
            self.round_min = math.inf
        if e.rtt_us:
            self.rtt_min, self.round_min = min(self.rtt_min, e.rtt_us), min(self.round_min, e.rtt_us)
        super().ack(e)

    def grow(self, e: Event) -> None:
        f, p = self.flow, self.p
        inaccurate = self.ties.above(self.current, self.rtt_min * p["delta"] / 1000, 0)
        if self.results != self.seen:
            self.seen = self.results
            if not inaccurate:
                gamma = p["gamma"] / 1000 if self.a else 1.0
                self.a = (1 - gamma) * self.a + gamma * f.word[0]
                most = self.a * self.rtt_min / 1e6 / f.mss  # the header rounds to bytes before it divides by the mss
                self.most = max(self.split(most, 2 / f.mss)[0], 2.0)
                self.updated = f.now
        if f.now - self.updated > p["stale_s"] * 1e6:
            self.most = math.inf
        ended, self.ended = self.ended, False
        if ended and inaccurate:
            f.cwnd = max(whole(f.w * self.rtt_min / self.current), min(f.cwnd, 2.0))
            f.count = 0.0
            f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))
            return
        super().grow(e)
        if f.cwnd > self.most:
            f.cwnd = self.most
            f.ssthresh = min(f.ssthresh, f.w)
