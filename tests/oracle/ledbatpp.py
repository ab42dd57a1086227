"""LEDBAT++. draft-irtf-iccrg-ledbat-plus-plus-01, section 4.

q = min of the last 4 RTTs - base; GAIN = 1 / min(16, ceil(2 TARGET / base)).
Slow start: first window 2, W += GAIN acked; the first one ends when q > 3/4 TARGET.
Each RTT: q < TARGET: W += GAIN; q > TARGET: W += max(GAIN - W (q / TARGET - 1), -W / 2); W >= 2.
Slowdown: 2 RTT after the first slow start ends ssthresh = W, W = 2 for 2 RTT, slow start to ssthresh; the next 9
times the duration of this one later.
Ours: base is the smallest RTT of the last one to two halves of base_window; an RTT has passed when the data sent at
its start is acked; a loss is TCP's halving, in a hold of the window before it; a first window below IW stays; a window
that q lowered is no slow start; a loss ends the first slow start, unless it is undone, or a hold, and the next slowdown
comes 2 RTT later; q does not end the slow start after a slowdown; a slowdown within a slow start leaves ssthresh as
it is; idle time is no part of a slowdown.
"""

import math
from collections import deque

from oracle.tcp import RECOVERED, TIMEOUT, TX_START, Control, Event, whole

FIRST, AVOID, HOLD, RAMP = range(4)


class LedbatPP(Control):
    base_now = base_before = math.inf
    phase = FIRST
    next = None  # the next slowdown, or the end of the hold, us
    began = 0  # the slowdown that goes on, us
    before = 0.0  # the window before it
    credit = 0.0  # of the next packet
    passed = False  # a round has ended that is not yet judged

    def init(self) -> None:
        self.start()
        f = self.flow
        f.cwnd = float(min(f.cwnd, self.p["first_window"]))
        self.end, self.turned, self.seen = f.nxt, f.now, f.now
        self.rtts: deque[int] = deque(maxlen=4)

    def ack(self, e: Event) -> None:
        f = self.flow
        self.seen = f.now
        if f.una > self.end:
            self.end, self.passed = f.nxt, True
        if not e.rtt_us:
            return
        self.rtts.append(e.rtt_us)
        if f.now - self.turned > self.p["base_window_s"] * 1e6 / 2:
            self.base_before, self.base_now, self.turned = self.base_now, math.inf, f.now
        self.base_now = min(self.base_now, e.rtt_us)

    def plan(self) -> None:
        """What the end of the first slow start brings."""
        self.phase = AVOID
        self.next = self.flow.now + 2 * self.flow.srtt if self.p["slowdown"] else None

    def grow(self, e: Event) -> None:
        f, target = self.flow, self.p["target_us"]
        base = min(self.base_now, self.base_before)
        q = min(self.rtts) - base if self.rtts else 0.0
        gain = 1 / (min(self.p["gain_most"], math.ceil(2 * target / base)) if self.rtts else self.p["gain_most"])
        passed, self.passed = self.passed, False
        if math.isinf(f.ssthresh):
            self.phase = FIRST
        if self.phase == FIRST and (self.ties.above(q, 0.75 * target, 0) or not f.slow):
            f.ssthresh = min(f.ssthresh, max(f.cwnd, 2.0))
            self.plan()
        if self.phase == AVOID and self.next is not None and f.now >= self.next:
            self.phase, self.began, self.next = HOLD, f.now, f.now + 2 * f.srtt
            self.before, f.ssthresh = f.cwnd, max(f.ssthresh, f.cwnd, 2.0)
            f.cwnd, self.credit = min(f.cwnd, 2.0), 0.0
        if self.phase == HOLD:
            if f.now < self.next:
                return
            self.phase = RAMP
        if self.phase == RAMP and not f.slow:
            self.phase = AVOID
            paused = self.p["slowdown_ratio"] * (f.now - self.began)
            self.next = f.now + paused if self.p["slowdown"] else None
        total = f.cwnd + self.credit
        if f.slow:
            if f.limited:
                packets, self.credit = self.split(total + e.acked * gain)
                f.cwnd = min(packets, f.ssthresh)
        elif passed:
            change = gain
            if q > target:
                change = max(gain - total * (q / target - 1), -total / 2)
            if change < 0 or f.limited:
                total = max(total + change, 2.0)
            f.cwnd, self.credit = self.split(total)
            f.ssthresh = min(f.ssthresh, f.cwnd)

    def ssthresh(self) -> float:
        return max(whole(self.before / 2), 2.0) if self.phase == HOLD else super().ssthresh()

    def event(self, kind: int) -> None:
        if kind == TX_START and self.flow.una == self.flow.nxt:
            self.began += self.flow.now - self.seen
            self.seen = self.flow.now
        if kind in (TIMEOUT, RECOVERED) and self.phase in (FIRST, HOLD):
            self.plan()
