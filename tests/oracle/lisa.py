"""LISA. draft-barik-mptcp-lisa-01, section 3; congestion avoidance is LIA.

Before a new subflow sends: old = the subflow in slow start with the largest cwnd / rtt. None: new = 10.
old >= 20: old -= 10, new = 10. old >= 6: new = old / 2, old -= new. Else new = 3, nothing taken.
Then old does not grow for inflight - old packets acked.
Ours: old gives at its next growth, not after slow start, not below 3; what others asked for is taken off first.
"""

from oracle.lia import Lia
from oracle.tcp import IN_LOSS, Event, whole


class Lisa(Lia):
    ignore = 0.0

    def init(self) -> None:
        self.start()
        f, least = self.flow, self.p["first_least"]
        most = max(self.p["first_most"], least)
        if len(f.peers) == 1:
            return
        others = [(slot, p) for slot, p in f.peers.items() if slot != f.slot and p.srtt]
        slow = [((p.cwnd - p.mail) / p.srtt, -slot) for slot, p in others if p.cwnd < p.ssthresh]
        if not slow:
            f.cwnd = float(most)
            return
        slot = -max(slow)[1]
        old = f.peers[slot].cwnd - f.peers[slot].mail
        if old >= 2 * most:
            f.cwnd, f.post = float(most), (slot, float(most))
        elif old >= 2 * least:
            f.cwnd = whole(old / 2)
            f.post = (slot, f.cwnd)
        else:
            f.cwnd = float(least)

    def grow(self, e: Event) -> None:
        f = self.flow
        if f.mail and f.slow:
            before = f.cwnd
            f.cwnd = max(f.cwnd - f.mail, min(f.cwnd, self.p["first_least"]))
            # what this ACK acknowledges was in flight too
            if f.cwnd < before and f.in_flight + e.acked > f.w:
                self.ignore = f.in_flight + e.acked - f.w
        if f.state == IN_LOSS:
            self.ignore = 0.0
        skipped = min(self.ignore, e.acked)
        self.ignore -= skipped
        if e.acked > skipped:
            super().grow(e._replace(acked=e.acked - skipped))
