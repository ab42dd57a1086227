"""Coupled Slow Start, as we reconstruct it. Wang et al., GLOBECOM 2017 (aims only; the formulas are ours). Then LIA.

In slow start w_r += acked max_p(w_p) / sum_p(w_p), p over the subflows in slow start.
V: what one TCP over the best path would have: from V0, doubled at an ACK a smallest RTT or more after it last was,
until a subflow's RTT rises above RTT_min + max(RTT_min / 2^theta, floor). Once V has stopped and sum_p(w_p) >= V, or
when a subflow has a loss: ssthresh = max(w, 2) in all that are in slow start. After a loss of its own a subflow only
has the linked growth.
"""

import math

from oracle.lia import Lia
from oracle.tcp import Event


class Css(Lia):
    losses = 0.0
    known = 0.0  # losses of all that have been reacted to
    rtt_min = math.inf
    stopped = False
    credit = 0.0  # of the next packet, in slow start

    def init(self) -> None:
        self.start()
        self.rtt_min = self.flow.srtt or math.inf
        self.v, self.since = float(self.p["reference"]), self.flow.now
        self.known = self.heard()

    def heard(self) -> float:
        return sum(p.word[0] for slot, p in self.flow.peers.items() if slot != self.flow.slot)

    def ack(self, e: Event) -> None:
        if e.rtt_us:
            self.rtt_min = min(self.rtt_min, e.rtt_us)
            rise = max(self.rtt_min / 2 ** self.p["theta_shift"], self.p["theta_floor_us"])
            self.flow.word[1] = float(self.ties.reached(self.flow.srtt, self.rtt_min + rise))

    def ssthresh(self) -> float:
        self.losses += 1
        self.flow.word[0] = self.losses
        return super().ssthresh()

    def grow(self, e: Event) -> None:
        f = self.flow
        if not f.limited:
            return
        heard, self.known = self.heard() > self.known, self.heard()
        others = [p for slot, p in f.peers.items() if slot != f.slot]
        if f.slow:
            self.stopped = self.stopped or bool(f.word[1]) or any(p.word[1] for p in others)
            fastest = min(rtt for _, rtt in f.paths())
            if not self.stopped and f.now - self.since >= fastest:
                self.v, self.since = self.v * 2, f.now
            fast = self.stopped and f.w + sum(p.cwnd for p in others) >= self.v
            if not self.losses and (heard or fast):
                f.ssthresh = max(f.cwnd, 2.0)
        if f.slow:
            slow = [f.w, *(p.cwnd for p in others if p.cwnd < p.ssthresh)]
            packets, self.credit = self.split(self.credit + e.acked * max(slow) / sum(slow))
            f.slow_start(packets)
        else:
            self.avoid(e.acked)
