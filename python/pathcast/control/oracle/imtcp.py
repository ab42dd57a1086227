"""ImTCP, as we reconstruct it. Man, Hasegawa, Murata, Computer Communications 29 (2006): idea and trend test; the
rest is ours.

Reno that measures. A train of n packets at rate R comes after one packet with a gap of n mss (1/own - 1/R) and two
packets behind it, own = cwnd mss / srtt. A round has three rates R_k = lo + (hi - lo) (k + 1) / 4, one train each.
Trend of the RTTs by Pathload (PCT above 0.66 or PDT above 0.55: rising; below 0.54 and 0.45: flat), flat if the rise
is below `rise` of the train's time. The split of 0..3 with the most votes (flat below it, rising from it on), the
lowest if equal, gives A: the middle of its quarter of the range, hi if nothing rose, lo if everything did; then the
range is A +- max((hi - lo) / 4, A width / 2000), or moves up by 3/4 of its width, or down by half of it, keeping 3/4.
First range: own / 2 to 4 own.
A train counts with 3 samples, its sending time within `span` of what was asked, and not slower by `late` with flat
delays; a rate that failed four times is left undecided. A loss, a timeout, silence or 1 s too much of waiting ends a
train.
"""

from itertools import pairwise

from pathcast.control.oracle.tcp import DISORDER, OPEN, RECOVERED, Control, Event

PASS, HOLD, TRAIN, WAIT = range(4)
UNDECIDED, RISING, FLAT = range(3)
RATE_MOST = 2.0**36  # bytes/s


class Imtcp(Control):
    phase = PASS
    lo = hi = rate = hold = 0.0
    start_at = 0.0  # no train before this time, us
    begun = begin = end = tries = results = 0

    def init(self) -> None:
        self.start()
        self.votes: list[int] = []
        self.samples: list[tuple[int, int, int]] = []  # una, sent at, RTT

    def over(self) -> None:
        self.phase = PASS
        self.start_at = self.flow.now + self.flow.srtt * self.p["pause"] / 1000

    def event(self, kind: int) -> None:
        if kind != RECOVERED and self.phase != PASS:
            self.over()

    def bounds(self, lo: float, hi: float) -> None:
        self.lo = max(lo, 2.0 * self.flow.mss)
        self.hi = min(max(hi, self.lo * 17 / 16 + 4), RATE_MOST)
        self.lo = min(self.lo, self.hi)

    def send(self) -> None:
        f, n = self.flow, self.p["train"]
        f.pace, f.burst = 0.0, 0
        train_us = (self.end - self.begin) * 1e6 / (self.rate or 1)
        if self.phase in (HOLD, TRAIN) and self.ties.above(f.now - self.begun, self.hold + 2 * train_us + 1e6):
            self.over()
        ready = self.ties.reached(f.now - self.start_at, 0) and f.state == OPEN and f.w >= n + 2 and f.limited
        if self.phase == PASS and ready:
            own = min(max(f.w * f.mss / (f.srtt / 1e6), 1.0), RATE_MOST)
            if not self.hi:
                self.bounds(own / 2, own * 4)
            self.rate = self.lo + (self.hi - self.lo) / 4 * (len(self.votes) + 1)
            gap = n * f.mss * (1 / own - 1 / self.rate) * 1e6
            self.hold = min(gap + 2 * f.mss / own * 1e6, self.p["hold_most_us"]) if gap > 0 else 0.0
            self.phase = HOLD if self.hold > 0 else TRAIN
            self.samples, self.begun, self.begin, self.end = [], f.now, f.nxt, f.nxt + n * f.mss
        if self.phase == HOLD and f.nxt > self.begin:
            self.phase, self.begin, self.end = TRAIN, f.nxt, f.nxt + n * f.mss
        if self.phase == TRAIN and f.nxt >= self.end:
            self.phase = WAIT
        if self.phase in (HOLD, TRAIN):
            f.burst = 1
            f.pace = self.rate if self.phase == TRAIN else f.mss * 1e6 / self.hold

    def ack(self, e: Event) -> None:
        f = self.flow
        if self.phase not in (TRAIN, WAIT):
            return
        if f.state not in (OPEN, DISORDER):
            self.over()
            return
        if e.rtt_us and e.acked and self.begin < f.una <= self.end:
            self.samples.append((f.una, f.now - e.rtt_us, e.rtt_us))
        if f.una >= self.end:
            vote = self.judge()
            if vote is not None or self.tries >= 3:
                self.votes.append(UNDECIDED if vote is None else vote)
                self.tries = 0
            else:
                self.tries += 1
            if len(self.votes) == 3:
                self.decide(*self.votes)
                self.votes = []
            self.over()

    def judge(self) -> int | None:
        """The train's vote; None: it does not count."""
        if len(self.samples) < 3:
            return None
        (una0, sent0, rtt0), (una1, sent1, rtt1) = self.samples[0], self.samples[-1]
        asked = (una1 - una0) / self.rate * 1e6
        took = max(sent1 - sent0, 0)
        if asked < 1 or self.ties.above(abs(took - asked), asked * self.p["span"] / 1000):
            return None
        vote = self.trend([rtt for _, _, rtt in self.samples], rtt1 - rtt0, took)
        slow = vote == FLAT and self.ties.above(took, asked * (1 + self.p["late"] / 1000))
        return None if slow else vote

    def trend(self, rtts: list[int], rise: int, span: int) -> int:
        steps = [b - a for a, b in pairwise(rtts)]
        rise = max(rise, 0)
        if not self.ties.reached(rise, span * self.p["rise"] / 1000, 0):
            return FLAT
        pct = sum(step > 0 for step in steps) / len(steps)
        pdt = rise / (sum(abs(step) for step in steps) or 1)
        if self.ties.above(pct, 0.66, 0) or self.ties.above(pdt, 0.55, 0):
            return RISING
        if self.ties.above(0.54, pct, 0) and self.ties.above(0.45, pdt, 0):
            return FLAT
        return UNDECIDED

    def decide(self, *votes: int) -> None:
        if not any(votes):
            return
        lo, hi = self.lo, self.hi
        quarter = (hi - lo) / 4
        scores = [sum(v == (FLAT if k < split else RISING) for k, v in enumerate(votes)) for split in range(4)]
        split = scores.index(max(scores))
        if split == 0:
            a = lo
            self.bounds(lo - 2 * quarter, hi - quarter)
        elif split == 3:
            a = hi
            self.bounds(lo + quarter, hi + 3 * quarter)
        else:
            a = lo + quarter * (split + 0.5)
            half = max(quarter, a * self.p["width"] / 2000)
            self.bounds(a - half, a + half)
        self.results += 1
        self.flow.word = [a, float(self.results)]
