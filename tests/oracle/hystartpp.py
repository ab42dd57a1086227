"""HyStart++. RFC 9406 section 4.2; congestion avoidance is LIA.

A round ends when the data sent up to its start is acked. SS: after N_RTT_SAMPLE samples, if currentRoundMinRTT >=
lastRoundMinRTT + clamp(lastRoundMinRTT / 8, 4 ms, 16 ms): cssBaselineMinRtt = currentRoundMinRTT, CSS begins.
CSS: growth / 4; SS again if the round's RTT falls below the baseline; after CSS_ROUNDS rounds ssthresh = cwnd.
An ACK counts for at most L packets. Only in the first slow start, which no reduction has ended that still stands; a
timeout's counts once Loss is over, and until then slow start is plain.
"""

import math

from oracle.lia import Lia
from oracle.tcp import IN_LOSS, Event, whole


class HyStartPP(Lia):
    css = False
    ended = False  # the first slow start
    samples = rounds = 0
    counted = 0.0  # packets acked in CSS towards the next of window
    last = current = baseline = math.inf

    def init(self) -> None:
        self.start()
        self.end, self.first = self.flow.nxt, self.flow.ssthresh

    def ack(self, e: Event) -> None:
        if self.flow.una > self.end:
            self.end, self.last, self.current, self.samples = self.flow.nxt, self.current, math.inf, 0
            self.rounds += self.css
        if e.rtt_us:
            self.current = min(self.current, e.rtt_us)
            self.samples += 1

    def judge(self) -> None:
        if self.samples < self.p["samples"]:
            return
        if not self.css and not math.isinf(self.last):
            low, high = self.p["rtt_thresh_min_us"], self.p["rtt_thresh_max_us"]
            rise = max(low, min(self.last / self.p["rtt_divisor"], high))
            if self.ties.reached(self.current, self.last + rise):
                self.css, self.rounds, self.counted, self.baseline = True, 0, 0.0, self.current
        elif self.css and self.current < self.baseline:
            self.css, self.baseline = False, math.inf

    def grow(self, e: Event) -> None:
        f = self.flow
        if not f.limited:
            return
        if f.state == IN_LOSS or f.ssthresh < self.first:
            super().grow(e)
            return
        self.ended = self.ended or not f.slow
        if self.ended:
            super().grow(e)
            return
        self.judge()
        if self.css and self.rounds >= self.p["rounds"]:
            f.cwnd = f.ssthresh = max(f.w, 2.0)
            self.ended = True
            self.avoid(e.acked)
            return
        counted = min(e.acked, self.p["limit"])
        if self.css:
            packets = whole((self.counted + counted) / self.p["growth_divisor"])
            self.counted += counted - packets * self.p["growth_divisor"]
            f.cwnd = min(f.cwnd + packets, f.ssthresh)
        else:
            left = f.slow_start(counted)
            if left > 0:
                self.avoid(left)
