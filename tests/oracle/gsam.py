"""GSAM, as we reconstruct it. Dong et al., IEEE Access 7 (2019) 6010-6024: phases; thresholds and growth are ours.

SS: slow start. ST begins when srtt >= RTT_min + max(RTT_min / 2^theta, floor), after `samples` RTT samples; then
ssthresh = 2 cwnd if there was none. ST: cwnd += acked / st_div (acked / cwnd with st_div 0), up to ssthresh. CA: LIA.
After a timeout or an idle time: SS, without ST where ssthresh is known unless `st_after_rto`. The same where the window
is below ssthresh again and no event told why; a reduction that is undone bars nothing.
"""

import math

from oracle.lia import Lia
from oracle.tcp import IDLE, IN_LOSS, TIMEOUT, Event, whole

SS, ST, CA = range(3)


class Gsam(Lia):
    phase, samples, barred = SS, 0, False
    counted = 0.0  # packets acked in ST towards the next of window

    def init(self) -> None:
        self.start()
        self.phase = SS if self.flow.slow else CA
        self.rtt_min = self.flow.srtt or math.inf

    def ack(self, e: Event) -> None:
        if e.rtt_us:
            self.rtt_min = min(self.rtt_min, e.rtt_us)
            self.samples += 1

    def allowed(self) -> bool:
        """Whether ST may begin, whatever the RTT."""
        return not self.barred and self.samples >= self.p["samples"]

    def look(self) -> None:
        f, lost = self.flow, self.flow.state == IN_LOSS
        if f.slow and (self.phase == CA or (lost and not self.p["st_after_rto"])):
            self.phase = SS
            self.barred = not self.p["st_after_rto"] and (lost or not math.isinf(f.ssthresh))
        elif not lost and math.isinf(f.ssthresh):
            self.barred = False

    def grow(self, e: Event) -> None:
        f = self.flow
        self.look()
        if not f.limited:
            return
        if self.phase != CA and not f.slow:
            self.phase = CA
        if self.phase == SS and self.allowed():
            rise = max(self.rtt_min / 2 ** self.p["theta_shift"], self.p["theta_floor_us"])
            if self.ties.reached(f.srtt, self.rtt_min + rise):
                self.phase, self.counted = ST, 0.0
                if math.isinf(f.ssthresh):
                    f.ssthresh = 2 * f.w
        if self.phase == SS:
            left = f.slow_start(e.acked)
            if left > 0:
                self.phase = CA
                self.avoid(left)
        elif self.phase == ST:
            per = self.p["st_div"] or f.w
            packets = whole((self.counted + e.acked) / per)
            self.counted += e.acked - packets * per
            f.cwnd = min(f.cwnd + packets, f.ssthresh)
            if not f.slow:
                self.phase = CA
        else:
            self.avoid(e.acked)

    def event(self, kind: int) -> None:
        if kind in (TIMEOUT, IDLE):
            known = kind == TIMEOUT or not math.isinf(self.flow.ssthresh)
            self.phase, self.barred = SS, known and not self.p["st_after_rto"]
