"""CUBIC. RFC 9438 section 4.

W_cubic(t) = C (t - K)^3 + W_max, K = cbrt((W_max - cwnd_epoch) / C)                                     4.2
target = W_cubic(t + RTT) in [cwnd, 1.5 cwnd]; cwnd += (target - cwnd) / cwnd for each packet acked      4.2, 4.4, 4.5
W_est += alpha acked / cwnd, alpha = 3 (1 - beta) / (1 + beta), 1 (`friendly` / 1000) once W_est >= cwnd_prior;
cwnd = max(cwnd, W_est) where W_cubic(t) < W_est                                                         4.3
loss: ssthresh = beta cwnd; W_max = cwnd, or cwnd (1 + beta) / 2 if below the last W_max                 4.6, 4.7
timeout, also one in a recovery: the next epoch has K = 0 and W_max = cwnd                               4.8
slow start ends as in Linux's HyStart (Ha, Rhee, 2011), at windows of 16 and more: when ACKs at most 2 ms apart have
come for half of (least RTT + 1 ms), or when the round's least RTT, of 8 samples before the last, is above the least of
all by an eighth of it, held in 4..16 ms. ACKs in the first second of an epoch say nothing
t without idle time, as in Linux: time from the last growth to the first packet after silence is taken out.
"""

import math

from oracle.tcp import IN_LOSS, TIMEOUT, TX_START, Control, Event, whole


class Cubic(Control):
    epoch = None  # start of the epoch, us; None: none has begun
    w_max = 0.0  # of the loss; 0: none, or a timeout
    origin = w_est = k = prior = 0.0
    seen = 0  # time of the last growth, us
    round_end, begun, train = 0, 0, 0  # HyStart's round: its end, when it began; the last ACK of the train, us
    round_rtt = least = math.inf
    samples = 0
    found: bool | None = False  # None: slow start was left
    lost = False  # this loss state has been seen

    def reset(self) -> None:
        self.w_max, self.epoch, self.lost = 0.0, None, True
        self.found, self.least, self.round_end = False, math.inf, self.flow.una

    def ack(self, e: Event) -> None:
        f = self.flow
        if f.state == IN_LOSS and not self.lost:
            self.reset()
        self.lost = f.state == IN_LOSS
        if not self.p["hystart"] or not e.rtt_us or (self.epoch is not None and f.now - self.epoch < 1e6):
            return
        self.least = min(self.least, e.rtt_us)
        if self.found is not False or not f.slow:
            return
        if f.una > self.round_end:
            self.round_end, self.begun, self.train, self.round_rtt, self.samples = f.nxt, f.now, f.now, math.inf, 0
        if f.w < 16:
            return
        if f.now - self.train <= 2000:
            self.train = f.now
            self.found = self.ties.above(f.now - self.begun, (self.least + 1000) / 2)
        self.round_rtt = min(self.round_rtt, e.rtt_us)
        if self.samples < 8:
            self.samples += 1
        elif self.ties.above(self.round_rtt, self.least + min(max(self.least / 8, 4000), 16000)):
            self.found = True

    def grow(self, e: Event) -> None:
        f = self.flow
        if f.limited:
            self.seen = f.now
            if self.found:
                f.ssthresh = min(f.ssthresh, f.w) if f.slow else f.ssthresh
                self.found = None
        super().grow(e)

    def avoid(self, acked: float) -> None:
        f, c, beta = self.flow, self.p["c"] / 1000, self.p["beta"] / 1000
        if self.epoch is None:
            f.cwnd = f.w
            self.epoch, self.w_est, self.origin = f.now, f.w, max(self.w_max, f.w)
            self.k = math.cbrt((self.origin - f.w) / c)
        t = (f.now - self.epoch) / 1e6
        alpha = self.p["friendly"] / 1000 if self.w_est >= self.prior else 3 * (1 - beta) / (1 + beta)
        self.w_est += alpha * acked / f.w
        target = c * (t + f.srtt / 1e6 - self.k) ** 3 + self.origin
        target = min(max(target, f.cwnd), 1.5 * f.cwnd)
        if not self.w_max:  # before the first loss at least `first` in an RTT, as in Linux
            target = max(target, f.cwnd + f.w * self.p["first"] / 1000)
        f.cwnd += acked * (target - f.cwnd) / f.w
        if self.ties.above(self.w_est, c * (t - self.k) ** 3 + self.origin, 0):
            f.cwnd = max(f.cwnd, self.w_est)
        near = float(
            round(f.cwnd)
        )  # the header has 2^-20 packets: within rounding of a whole one it may be on either side
        if abs(f.cwnd - near) < self.ties.SHARE and self.ties.flipped():
            f.cwnd = near - self.ties.SHARE if f.cwnd >= near else near

    def ssthresh(self) -> float:
        w, beta = self.flow.w, self.p["beta"] / 1000
        self.prior, self.epoch = w, None
        self.w_max = whole(w * (1 + beta) / 2) if self.p["fast_convergence"] and w < self.w_max else w
        return max(whole(w * beta), 2.0)

    def event(self, kind: int) -> None:
        if kind == TIMEOUT:
            self.reset()
        elif kind == TX_START and self.epoch is not None:
            self.epoch += self.flow.now - self.seen
            self.seen = self.flow.now
