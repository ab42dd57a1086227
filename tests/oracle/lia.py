"""LIA. RFC 6356 section 3.

alpha = cwnd_total max_p(cwnd_p / rtt_p^2) / (sum_p cwnd_p / rtt_p)^2
per packet acked on i: cwnd_i += min(alpha / cwnd_total, 1 / cwnd_i)
"""

from oracle.tcp import Control


class Lia(Control):
    def avoid(self, acked: float) -> None:
        paths = self.flow.paths()
        total = sum(w for w, _ in paths)
        best = max(w / rtt**2 for w, rtt in paths)
        alpha = total * best / sum(w / rtt for w, rtt in paths) ** 2
        self.add(1 / min(alpha / total, 1 / self.flow.w), acked)
