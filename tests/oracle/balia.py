"""BALIA. Peng, Walid, Hwang, Low: Multipath TCP: analysis, design and implementation, IEEE/ACM ToN 24 (2016); section
on the implementation of draft-walid-mptcp-congestion-control.

x_p = w_p / rtt_p, a = max_p(x_p) / x_r
per packet acked: w_r += x_r / (rtt_r (sum_p x_p)^2) (1 + a) / 2 (4 + a) / 5
loss: w_r -= w_r / 2 min(a, 3/2), at least 1 left; what is taken is whole packets (ours). One subflow: Reno.
"""

from oracle.tcp import Control, whole


class Balia(Control):
    def share(self) -> tuple[float, float, float]:
        """x_r, the sum of x, a."""
        rates = [w / rtt for w, rtt in self.flow.paths()]
        return rates[0], sum(rates), max(rates) / rates[0]

    def avoid(self, acked: float) -> None:
        own, total, a = self.share()
        self.add(1 / (own / (self.flow.srtt * total**2) * (1 + a) / 2 * (4 + a) / 5), acked)

    def ssthresh(self) -> float:
        if len(self.flow.peers) == 1:
            return super().ssthresh()
        return max(self.flow.w - whole(self.flow.w / 2 * min(self.share()[2], 1.5)), 1.0)
