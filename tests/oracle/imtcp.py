"""ImTCP, as we reconstruct it. Man, Hasegawa, Murata, Computer Communications 29 (2006): idea; the rest is ours.

Reno that measures. After one packet with a gap behind it, as long as the window needs to open for the train at the own
rate cwnd mss / srtt, n packets leave: half at `low` A, half at `high` A, and the next train follows its last ACK.
While a queue is not empty C d = b - A t + constant (delay, byte, departure), so that lines through the means of the
train's quarters give 1 / C, as the bend between the halves, and A = r - C s: of the second half, or of the whole train
if that is not clearly above the first half's rate. 1 / C is an average over trains, first a plain one;
C is from once to 16 times what the train came out with.
A within `flat` of the second half's rate is a lower bound. A quarter without an ACK, or flat delays at a rate short
of what was asked by more than `late`, say nothing; a loss, a timeout, silence or 1 s too much of waiting ends a train.
"""

from oracle.tcp import DISORDER, OPEN, RECOVERED, Control, Event

PASS, HOLD, TRAIN, WAIT = range(4)
RATE_MOST = 2.0**36  # bytes/s
STEEP = 100.0  # largest slope
CLEAR = 0.05  # a slope that is no accident
WHOLE = 1.0  # thresholds of rates are of whole bytes per second


class Imtcp(Control):
    phase = PASS
    a = inverse = slow = fast = hold = extra = 0.0  # bytes/s, s per byte, us, packets
    start_at = 0.0  # no train before this time, us
    begun = begin = end = bends = results = 0
    bound = False

    def init(self) -> None:
        self.start()
        self.quarters: list[list[tuple[int, int, int]]] = []  # departure, byte, RTT

    def over(self) -> None:
        self.phase = PASS
        self.start_at = self.flow.now + self.flow.srtt * self.p["pause"] / 1000

    def event(self, kind: int) -> None:
        if kind != RECOVERED and self.phase != PASS:
            self.over()

    def train(self) -> int:
        """Packets of a train in the present window; 0: it is too small."""
        w, p = int(self.flow.w), self.p
        n = min(max(w // 8, p["train"]), 64, w * p["share"] // 1000)
        return max(n // 4 * 4, 8) if w >= 12 else 0

    def prepare(self, n: int) -> None:
        f, p = self.flow, self.p
        w = f.w if f.limited else min(f.w, f.in_flight + 1)
        most = min(f.mss / 8e-6, RATE_MOST)  # 8 us a packet
        own = min(max(w * f.mss / (f.srtt / 1e6), 2.0 * f.mss), most)
        base = (self.results and self.a) or own
        self.slow = min(max(base * p["low"] / 1000, own), most)
        self.fast = min(max(base * p["high"] / 1000, self.slow * 1.5), most)
        needs = n - n / 2 * (own / self.slow + own / self.fast)  # packets beyond what ACKs free
        self.hold = min((needs + 2) * f.mss * 1e6 / own, p["hold_most_us"])
        self.extra = self.split(needs, 2 / f.mss)[0] + 2  # the header rounds to bytes first
        self.quarters = [[], [], [], []]
        self.phase, self.begun, self.begin, self.end = HOLD, f.now, f.nxt, f.nxt + n * f.mss

    def send(self) -> None:
        f, p = self.flow, self.p
        f.pace, f.burst = 0.0, 0
        size = self.end - self.begin
        train_us = size * 1e6 / (self.slow or 1)
        if self.phase in (HOLD, TRAIN) and self.ties.above(f.now - self.begun, self.hold + 2 * train_us + 1e6):
            self.over()
        far = f.srtt >= max(p["rtt_least_us"], 1)
        full = f.limited or f.in_flight * 5 >= f.w * 2
        if self.phase == PASS and self.ties.reached(f.now - self.start_at, 0) and f.state == OPEN and far and full:
            n = self.train()
            if n:
                self.prepare(n)
                size = n * f.mss
        if self.phase == HOLD and f.nxt > self.begin:
            self.phase, self.begin, self.end = TRAIN, f.nxt, f.nxt + size
        if self.phase == TRAIN and f.nxt >= self.end:
            self.phase = WAIT
        if self.phase == HOLD:
            f.burst, f.pace = 1, f.mss * 1e6 / self.hold
        elif self.phase == TRAIN:
            f.burst, f.pace = 1, self.slow if f.nxt - self.begin < size / 2 else self.fast

    def ack(self, e: Event) -> None:
        f = self.flow
        if self.phase not in (TRAIN, WAIT):
            return
        if f.state not in (OPEN, DISORDER):
            self.over()
            return
        if e.rtt_us and e.acked and self.begin < f.una <= self.end:
            sample = (max(f.now - e.rtt_us - self.begun, 0), f.una - self.begin, e.rtt_us)
            self.quarters[(f.una - self.begin - 1) * 4 // (self.end - self.begin)].append(sample)
        if f.una >= self.end:
            if all(self.quarters):
                self.judge()
            self.over()

    def judge(self) -> None:
        p, ties = self.p, self.ties
        means = [[sum(column) / len(quarter) for column in zip(*quarter, strict=True)] for quarter in self.quarters]
        lines = [line(means[i], means[k]) for i, k in ((0, 1), (2, 3), (0, 3))]
        if not all(rate for rate, _ in lines):
            return
        (r12, s12), (r34, s34), (r14, s14) = lines
        a = self.free(r34, s34) if self.bends else r34
        if self.bends:
            queued = ties.above(s12, CLEAR, 1e-6) or not ties.above(a, r12, WHOLE)
        else:
            queued = ties.above(s34, CLEAR, 1e-6)
        if queued and ties.reached(r34, r12 * 1.25, WHOLE):
            before = s12 if self.bends else max(s12, 0.0)
            gain = max(p["gain"] / 1000, 1000 // (self.bends + 1) / 1000)
            self.inverse += gain * (max(s34 - before, 0.0) / (r34 - r12) - self.inverse)
            out = r14 / (1 + max(s14, 0.0))  # what the train came out with
            self.inverse = min(max(self.inverse, 1 / out / 16), 1 / out)
            self.bends = min(self.bends + 1, 1000)
            a = self.free(r34, s34)
        self.bound = ties.above(a, r34 * (1 - p["flat"] / 1000), WHOLE)
        if self.bound and ties.above(self.fast * (1 - p["late"] / 1000), r34, WHOLE):
            return
        if not ties.above(a, r12 * (1 + 3 * self.flow.mss / (self.end - self.begin)), WHOLE):
            a = self.free(r14, s14) if self.bends else r14
        self.a = min(max(a, r12 / 4, 1.0), RATE_MOST)
        self.results += 1
        self.flow.word = [self.a, float(self.results)]

    def free(self, rate: float, slope: float) -> float:
        """r - C s, not negative; falling delays raise r by a quarter at most."""
        return min(max(rate - slope / self.inverse, 0.0), rate * 1.25)


def line(one: list[float], other: list[float]) -> tuple[float, float]:
    """Rate [byte/s] and slope of the delays between two means; rate 0: not in order."""
    took, size = other[0] - one[0], other[1] - one[1]
    if took <= 0 or size <= 0:
        return 0.0, 0.0
    return min(size * 1e6 / took, RATE_MOST), min(max((other[2] - one[2]) / took, -STEEP), STEEP)
