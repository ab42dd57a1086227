"""OLIA. draft-khalili-mptcp-congestion-control-05, section 3; `best` as in its Linux code.

l = max(bytes between the last two losses, bytes since the last)
best = argmax l_p / rtt_p^2; maxw = argmax w_p; collected = best without maxw
per packet acked: w_r += (w_r / rtt_r^2) / (sum_p w_p / rtt_p)^2 + alpha_r / w_r
alpha_r = 1 / (n |collected|) in collected; -1 / (n |maxw|) in maxw if collected is not empty; else 0
"""

from oracle.tcp import Control, Event, whole


class Olia(Control):
    between = since = 0.0
    credit = 0.0  # of the next packet; increases may be negative, so that no count of ACKs would do
    una = 0

    def init(self) -> None:
        self.start()
        self.una = self.flow.una

    def ack(self, e: Event) -> None:
        self.since += self.flow.una - self.una
        self.una = self.flow.una
        self.flow.word[0] = max(self.between, self.since)

    def ssthresh(self) -> float:
        self.between, self.since = self.since, 0.0
        self.flow.word[0] = self.between
        return max(whole(self.flow.cwnd / 2), 1.0 if len(self.flow.peers) > 1 else 2.0)

    def avoid(self, acked: float) -> None:
        f = self.flow
        peers = [p for slot, p in f.peers.items() if slot != f.slot and p.srtt]
        paths = [(f.w, f.srtt, f.word[0]), *((p.cwnd, p.srtt, p.word[0]) for p in peers)]
        n = len(paths)
        if n == 1:
            self.add(f.w, acked)
            return
        quality = [got / rtt**2 for _, rtt, got in paths]
        top = max(quality)
        best = {i for i in range(n) if self.ties.tied(quality[i] == top, quality[i], top, 0)} if top else set(range(n))
        widest = max(w for w, _, _ in paths)
        maxw = {i for i in range(n) if paths[i][0] == widest}
        collected = best - maxw
        alpha = 0.0
        if collected:
            alpha = 1 / (n * len(collected)) if 0 in collected else -1 / (n * len(maxw)) if 0 in maxw else 0.0
        coupled = (f.w / f.srtt**2) / sum(w / rtt for w, rtt, _ in paths) ** 2
        total = max(f.w + self.credit + acked * (coupled + alpha / f.w), 1.0)
        f.cwnd, self.credit = whole(total), total - whole(total)
