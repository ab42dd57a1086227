"""TCP Nice. Venkataramani, Kokku, Dahlin, OSDI 2002, section 4.

numCong: packets of a round with rtt > (1 - t) minRTT + t maxRTT. numCong > f W: W /= 2. Else Vegas:
diff = W (rtt - minRTT) / rtt: below alpha W += 1, above beta W -= 1; slow start doubles W in every other round and
ends above gamma. W below 1: one packet each `parts` RTTs, by the pace that is set when packets are sent. Loss: Reno.
Ours: W in f W is the packets acked in the round, rtt in diff the round's smallest; no signal while maxRTT - minRTT <
floor, nor with rtt - minRTT <= least; from a receiver that acknowledges pairs an ACK of one packet gives
minRTT only, and with it a window of one grows by one after a round without a signal; maxRTT is of the last one to two
windows of max_age; below one packet W doubles after a round without a signal. In slow start no signals: it ends when
the smallest RTT of the round so far, of 8 packets or the window, is more than least above minRTT and diff above
gamma; W is then W minRTT / rtt, and the round whose packets were sent before is not judged.
"""

import math

from oracle.pairs import Pairs
from oracle.tcp import Control, Event, whole


class Nice(Control):
    round_min = math.inf
    max_before = 0.0  # largest RTT of the window of time before this one
    acked = congested = 0  # packets of this round
    done: tuple[float, int, int] | None = None  # the last round until it is judged: smallest RTT, acked, congested
    hold = False  # hold: the round neither doubles W nor is judged
    parts = paced = 1.0  # now, and when a packet was sent last

    def init(self) -> None:
        self.start()
        self.end, self.turned, self.pairs = self.flow.nxt, self.flow.now, Pairs()
        self.rtt_min = self.max_now = float(self.flow.srtt)

    def ack(self, e: Event) -> None:
        f, p = self.flow, self.p
        held = self.pairs.held(f, e)
        if f.una > self.end:
            self.done = (self.round_min, self.acked, self.congested)
            self.end, self.round_min, self.acked, self.congested = f.nxt, math.inf, 0, 0
        if f.now - self.turned > p["max_age_s"] * 1e6:
            self.max_before, self.max_now, self.turned = self.max_now, 0.0, f.now
        if e.rtt_us:
            self.rtt_min = min(self.rtt_min, e.rtt_us)
        if held:
            return
        self.acked += e.acked
        if not e.rtt_us:
            return
        self.max_now = max(self.max_now, e.rtt_us)
        self.round_min = min(self.round_min, e.rtt_us)
        most, t = max(self.max_now, self.max_before), p["threshold"] / 1000
        high = self.ties.above(e.rtt_us, (1 - t) * self.rtt_min + t * most, 0)
        large = e.rtt_us - self.rtt_min > p["least_us"]
        if most - self.rtt_min >= max(p["floor_us"], 1) and large and high:
            self.congested += e.acked

    def grow(self, e: Event) -> None:
        f = self.flow
        done, self.done = self.done, None
        if self.parts == 1 and f.slow:
            self.hold ^= done is not None
            if self.full():
                f.cwnd = f.ssthresh = max(whole(f.w * self.rtt_min / self.round_min), 2.0)
                self.end, self.round_min, self.acked, self.congested = f.nxt, math.inf, 0, 0
                f.count, self.hold = 0.0, True
            elif not self.hold and f.limited:
                f.slow_start(e.acked)
        elif done and self.hold:
            self.hold = False
        elif done:
            self.judge(*done)

    def full(self) -> bool:
        """In slow start: whether the path is full."""
        if self.acked < min(self.flow.w, 8) or math.isinf(self.round_min):
            return False
        waited = self.round_min - self.rtt_min
        return waited > self.p["least_us"] and self.ties.above(
            self.flow.w * waited / self.round_min, self.p["gamma"], 0
        )

    def judge(self, rtt: float, acked: int, congested: int) -> None:
        """The end of a round."""
        f, p = self.flow, self.p
        if congested > p["fraction"] / 1000 * acked:
            if f.cwnd > 1:
                f.cwnd = whole(f.cwnd / 2)
            else:
                self.parts = min(self.parts * 2, p["parts_most"])
            f.ssthresh = min(f.ssthresh, f.cwnd)
        elif self.parts > 1:
            self.parts = whole(self.parts / 2)
        elif self.pairs and f.cwnd == 1:
            f.cwnd = 2.0
        elif not math.isinf(rtt):
            diff = f.cwnd * (rtt - self.rtt_min) / rtt
            if self.ties.above(diff, p["beta"], 0):
                f.cwnd = max(f.cwnd - 1, 1.0)
                f.ssthresh = min(f.ssthresh, f.cwnd)
            elif self.ties.above(p["alpha"], diff, 0) and f.limited:
                f.cwnd += 1

    def send(self) -> None:
        self.paced = self.parts

    def window(self) -> float:
        return 1 / self.paced if self.paced > 1 else self.flow.w
