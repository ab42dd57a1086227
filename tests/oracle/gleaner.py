"""Gleaner, ours: a paced background below the available bandwidth that its own packets measure.

Over half of an RTT of packets: D = bytes / time between their ACKs, s = rise of the RTT / time between their
departures. A = D - s (C - D). Packets that left within 0.2 ms are a bunch: the bytes behind its first ACK over the
time to its last, 0.3 ms at least, are C, told when the next ACK comes, or a loss is seen; the mean gives the new
one a quarter. C is what bunches tell, at least D (a measurement raises it by an eighth at most), and what is above
it goes by a quarter with each bunch and by 1/256 a second; so does all of it a minute after the last bunch. The
largest C told is where A has been; if the first window told it, START is over with A half of it. A queue stands
when the smallest RTT of two slots is above the least one by max(least, packets of C, share of the RTT). In START
that ends it. In RUN it begins YIELD: where A measured is below `near` of A and of C others came, and A gives
`gamma` of the difference up, else A is the measured one, but falls by `fall` at most. Back to RUN when the queue is
below 4/5 of that; after a loss, once the line could have carried `wait` packets. A round without a queue, of which
the rate was at least 4/5 of the pace, raises A: a quarter of what is missing to where it has been, or `step` C
2^rounds, at most `step_most` C; and A <= C (1 + over max(n, 8) / 8). The pace is run A (1 - scarce (1 - A / C)),
less `room` packets an RTT (a quarter at most) while others were seen; in YIELD (1 - q / RTT yield (1 + small mss /
(C RTT))) of it, the last factor for others only; at least two packets in max(gap RTT, an eighth of the yield) times
C / A, from 1 to `rare`. The window is 5/4 of the pace times RTT and two thresholds, and 6 packets; 4 packets where
YIELD leaves no more than the least pace. A round has no queue below 1/7 + (calm - 1/7) (1 - A / C) / (1 + small mss
/ (C RTT)) of the threshold and a bunch.

A loss is random if the largest delay of one to two RTTs is below that threshold and below 1/shown of the longest ever
seen, which is three times what can be seen (max(see, 1.5 packets)) or more: there is no silence, and where the
longest is `shown` thresholds or more, and a share of `gone` at most is lost (see below), `random` of A is kept, and
the window. Else that delay is the queue's depth (the mean gives the new one a quarter). A queue less deep than
`tight` thresholds is short: the threshold is depth / deep, at least what can be seen; a queue of the depth takes all
of the pace; each YIELD waits for `tight_wait` packets, for 8 hold_ms at most; A grows by `tight_step` at most, to
tight_over C (less by `tight_fall` after a loss above 7/8 of it, by a fifth of C or down to two packets a
millisecond), and what leaves in a millisecond fits into the depth, or packets leave one by one; C is not forgotten,
nor asked for. A loss there silences for hold_ms, twice as long each time, up to hold_most_ms; after calm_holds
silences the next is half as long, and `tight_rise` is given back. Where the depth is three packets or less, half a
packet of delay beyond a bunch begins YIELD, 3 RTTs after the last.

A loss looks like the wire's if since the one before no more than 4 packets were lost, and twice two windows' share
of them (means of packets lost and delivered from one loss to the next, an eighth for the new one; the first counts
100 delivered), which is `wire` at most; and if the largest delay was below what can be seen and a bunch. One at 3/4
of the longest queue or more takes one of these away, a row all of them; where there were enough, twice as many are
needed then, 24 at most, and A <= C from then on. A single one is no queue's, while no depth is known, in START or
until C was told. `single` of them are the wire's where a random loss may be: outside of START there is no depth and
no silence then, `random` of A is kept, and the window; YIELD if the delay is above the threshold.

An RTT after a loss tells of a policer if then no queue stands, eight packets came, and more than four and `gone` of
what was in flight at the loss did not, and packets were lost in each quarter of it. If a bunch told C, what came is
below `police` of C, and it differs by `alike` at most from what came at the last such loss (forgotten by `unlike` of
which that is not so, in a row), their mean is tried, or the mean (a quarter for the new one) of what came, below
`police` of C, after `same` losses in a row that differed by `alike` from it at most, hold_ms after the last such
trial, twice as long each time, up to hold_most_ms: a loss in RUN after the first such one changes nothing until this
RTT is over, and does then what any loss does if there is no trial. A trial's pace is `trial` of the mean, no less
than A and no more than C, until `trial_fill` of the mean is in flight (an RTT at least, four at most); losses change
nothing. If more than four and twice `gone` of what is in flight then does not come in an RTT, it is a loss, and the
mean is what is let through: C is that at most, every loss silences as in a short queue, A <= tight_over C less what
losses took, and the threshold is the usual one; else what was lost meanwhile does not count. Each further such loss
moves it by a quarter (up) or an eighth of the difference; without losses a fiftieth is added every loosen_s; `mild`
losses of which that is not so, in a row, end it.
"""

from __future__ import annotations

import math

from oracle.pairs import Pairs
from oracle.tcp import OPEN, TX_START, Control, Event, whole

START, RUN, YIELD = range(3)
FIRST, SHUT, BUNCH = 10, 4, 8  # packets: of the first window, of the window while silent, of what is sent to learn C
AT_ONCE_US, SPREAD_US, ASK_US, OLD_US = 200, 300, 10e6, 60e6
RATE_MOST, RTT_MOST = 2.0**36, 2.0**24


class Gleaner(Control):
    phase = START
    a = peak = rate = most = slope = 0.0  # bytes/s; slope as a share
    first: tuple[int, int, int] | None = None  # of the measurement: when it left, the byte behind it, its RTT
    slot = cut = low = 0
    high = high_before = 0.0  # largest RTT of this RTT and of the one before
    rtt_at = held = hold = eased = 0  # us
    deep = shown = 0.0  # depth at losses (0: none), longest queue seen
    below = 0.0
    single = proof = 0  # losses that look like the wire's; so many are, if more than the parameter
    lost_was = delivered_was = 0
    policed = guess = 0.0  # what a policer lets through, bytes/s (0: there is none); at the last loss like one
    mark: tuple[int, int, int] | None = None  # a loss whose RTT is not over: when, delivered and in flight by then
    mark_lost = quarter = lossy = 0  # lost by that RTT's last quarter; which it is; quarters that lost
    loosened = mild = 0  # us; losses in a row that were no policer's
    kept = judged = False  # a loss changed nothing yet; what left in the trial comes
    trial: tuple[int, float] | None = None  # since when, and its pace
    trial_lost = trial_delivered = 0  # by then
    comes = 0.0  # after losses, mean, bytes/s
    same = next = waits = 0  # losses in a row with that; a trial for its sake is from, after so long [us]
    losses = between = 0  # sixteenths
    now_min = before_min = math.inf
    recent = math.inf
    full = stood = others = lost = False
    seen: int | None = None  # when others were seen last
    clear = credit = 0
    told = known = 0.0  # C by bunches, bytes/s; the largest of it
    told_at = asked = 0
    bunch: tuple[int, int, int] | None = None  # its first ACK: when its packet left, when it came, the byte behind it
    span = spread = 0  # us and bytes from there to its last ACK

    def init(self) -> None:
        f = self.flow
        self.start()
        self.pairs = Pairs()
        self.base = min(float(f.srtt), RTT_MOST)
        self.una = self.round_una = f.una
        self.turned = self.round_at = f.now
        self.end, self.since = f.nxt, 0

    # --- the line

    def queue(self) -> float:
        rtt = min(self.now_min, self.before_min)
        return 0.0 if math.isinf(rtt) else max(rtt - self.base, 0.0)

    def highest(self) -> float:
        rtt = max(self.high, self.high_before)
        return max(rtt - self.base, 0.0)

    def least(self, e: Event) -> None:
        f, rtt = self.flow, min(float(e.rtt_us), RTT_MOST)
        full = e.acked > 0 and f.una - self.una >= e.acked * f.mss
        if f.now - self.turned > self.p["base_window_s"] * 1e6:
            self.turned = f.now
            if not math.isinf(self.recent):
                self.base = self.recent
            self.recent = math.inf
        if full and not self.full:
            self.base, self.recent, self.full = rtt, math.inf, True
        if self.full and not full:
            return
        self.base = min(self.base, rtt) if self.base else rtt
        self.recent = min(self.recent, rtt)

    def measure(self, e: Event) -> None:
        f = self.flow
        sent = f.now - e.rtt_us
        if self.first and 0 < self.first[0] <= sent:
            at, byte, rtt = self.first
            span, acked = f.now - (at + rtt), f.una - byte
            if self.ties.above(self.base / 2, span, 1.0) or acked < 8 * f.mss:
                return
            self.rate = min(acked * 1e6 / span, RATE_MOST) if span > 0 else 0.0
            if self.rate > self.most:
                self.most = min(self.rate, self.most * 9 / 8 + f.mss) if self.most else self.rate
            self.slope = min(max(e.rtt_us - rtt, 0) / (sent - at), 1.0) if sent > at else 0.0
        self.first = (sent, f.una, e.rtt_us)

    def bunched(self, e: Event) -> None:
        f = self.flow
        sent = f.now - e.rtt_us
        if self.bunch and 0 < self.bunch[0] <= sent <= self.bunch[0] + AT_ONCE_US:
            self.span, self.spread = f.now - self.bunch[1], f.una - self.bunch[2]
            return
        self.tell()
        self.bunch = (sent, f.now, f.una)

    def tell(self) -> None:
        """The bunch is over."""
        f = self.flow
        if self.spread >= f.mss and self.span >= SPREAD_US:
            rate = min(self.spread * 1e6 / self.span, RATE_MOST)
            # whole, else it creeps up for ever where the header's stands, and is where A has been each time
            whole_rate = float(math.floor(rate))
            self.told = self.told - self.told // 4 + whole_rate // 4 if self.told else whole_rate
            self.told_at = f.now
            self.most = max(self.most * 3 / 4 + self.told / 4, self.told)
        self.bunch, self.span, self.spread = None, 0, 0

    def asks(self) -> bool:
        f = self.flow
        again = ASK_US / 8 if self.told else min(8 * self.base, ASK_US / 8)
        return f.state == OPEN and (not self.told or f.now - self.told_at > ASK_US) and f.now - self.asked > again

    def hear(self, e: Event) -> None:
        f = self.flow
        held = self.pairs.held(f, e)
        if e.rtt_us and (not held or e.rtt_us < self.queue() + self.base):
            self.least(e)
            if f.now - self.slot >= math.floor(self.base * self.p["filter"] / 1000):
                self.slot, self.before_min, self.now_min = f.now, self.now_min, math.inf
            self.now_min = min(self.now_min, e.rtt_us, RTT_MOST)
            if f.now - self.rtt_at >= self.base:
                self.rtt_at, self.high_before, self.high = f.now, self.high, 0.0
            self.high = max(self.high, min(float(e.rtt_us), RTT_MOST))
            if f.state != OPEN:
                self.tell()
                self.first = None
            elif e.acked:
                self.measure(e)
                self.bunched(e)
        self.una = f.una

    # --- the rate

    @property
    def rtt(self) -> float:
        return max(self.base, 100.0)

    def packets(self, packets: float) -> float:
        """Their time on the line."""
        return min(self.flow.mss * packets * 1e6 / self.most, 1e6) if self.most >= 1 else 1e6

    def usual(self) -> float:
        share = min(self.base * self.p["share"] / 1000, self.p["share_us"])
        return max(self.p["least_us"], share, self.packets(self.p["packets"] / 1000))

    def tight(self) -> bool:
        if self.policed or not self.deep:
            return False
        return not self.ties.reached(self.deep, self.usual() * self.p["tight"], 16.0)

    def narrow(self) -> bool:
        return self.policed > 0 or self.tight()

    def visible(self) -> float:
        return max(self.p["see_us"], self.packets(1.5))

    def threshold(self) -> float:
        if not self.tight():
            return self.usual()
        return min(self.usual(), max(self.deep / self.p["deep"], self.visible()))

    def ceiling(self) -> float:
        most = self.most * max(self.p["tight_over"] - self.below, 0.0) / 1000
        if self.policed:
            return most
        return min(most, max(self.most * min(self.deep, 2000.0) / 1000, 2000.0 * self.flow.mss - 1))

    def measured(self) -> float:
        return max(self.rate - (max(self.most, self.rate) - self.rate) * self.slope, 0.0)

    def turn(self) -> None:
        """To YIELD."""
        f, now = self.flow, self.measured()
        self.phase, self.since, self.stood = YIELD, f.now, True
        self.others = self.ties.above(min(self.a, self.most) * self.p["near"] / 1000, now, 1.0)
        if self.others:
            self.seen = f.now
        if f.now - self.cut < f.srtt:
            return
        self.cut, self.peak = f.now, max(self.peak, self.a)
        if self.others:
            self.a -= (self.a - min(now, self.a)) * self.p["gamma"] / 1000
        else:
            self.a = max(min(now, self.a), self.a * (1 - self.p["fall"] / 1000))

    def more(self) -> float:
        return min(self.p["small"] * self.flow.mss / max(self.most * self.rtt / 1e6, 1.0), 2**20 / 1000)

    def slowest(self) -> float:
        p = self.p
        gap = self.rtt * p["gap"] / 1000
        if self.phase == YIELD:
            gap = max(gap, (self.flow.now - self.since) / 8)
        gap *= max(min(self.most / max(self.a, 1.0), p["rare"]), 1.0)
        return 2e6 * self.flow.mss / max(min(gap, 1e6), 1.0)

    def left(self) -> float:
        f, p = self.flow, self.p
        pace = self.a * p["run"] / 1000
        if self.a < self.most:
            pace *= 1 - (1 - self.a / self.most) * p["scarce"] / 1000
        if self.seen is not None and f.now - self.seen < p["quiet_s"] * 1e6:
            pace -= min(pace / 4, p["room"] * f.mss * 1e6 / self.rtt)
        if f.now < self.held:
            return 0.0
        if self.phase == YIELD:
            more = self.more() if self.others else 0.0
            full = min(self.rtt, max(self.deep, 100.0)) if self.tight() else self.rtt
            pace *= 1 - min(self.queue() / full * p["yield"] / 1000 * (1 + more), 1.0)
        return min(pace, RATE_MOST)

    def paced(self) -> float:
        f = self.flow
        if self.trial and not self.judged:
            return self.trial[1]
        if self.phase == START:
            return min(f.w * f.mss * 1.2e6 / self.rtt, RATE_MOST)
        return max(self.left(), self.slowest())

    def apart(self, pace: float) -> bool:
        """So far apart that an ACK would wait for the next packet: they leave in pairs."""
        return pace < self.flow.mss / 0.02

    def rise(self) -> None:
        p = self.p
        self.clear = min(self.clear + 1, 64)
        step = self.most * p["step"] / 1000
        if self.ties.above(self.peak, self.a * 65 / 64, 2.0):
            step = max((self.peak - self.a) / 4, step)
        else:
            step *= 2 ** min(self.clear, 8)
        tight = self.narrow()
        self.a += min(step, self.most * p["tight_step" if tight else "step_most"] / 1000)
        over = 0.0 if self.proof else p["over"] / 1000 * max(self.clear, 8) / 8
        most = self.ceiling() if tight else self.most * (1 + over)
        self.a = min(self.a, most)

    def round(self) -> None:
        f, p = self.flow, self.p
        took = f.now - self.round_at
        rate = (f.una - self.round_una) * 1e6 / took if took else 0.0
        self.round_at, self.round_una, self.end = f.now, f.una, f.nxt
        if not self.narrow() and (self.most > self.told or f.now - self.told_at > OLD_US):
            self.most -= self.most / 256 * min(took, 1e6) / 1e6
        self.peak = max(self.peak - self.peak / p["fade"], self.a)
        if self.phase == START:
            self.a = max(self.a, min(rate, RATE_MOST))
            self.most = max(self.most, self.a)
        if self.told > self.known:
            self.known = self.told
            self.peak = max(self.peak, self.known)
            if self.phase == START and f.delivered > FIRST:
                self.phase, self.since = RUN, f.now
                self.a = max(self.a, self.known / 2)
        if self.phase == YIELD and f.now - self.since > p["patience"] * f.srtt:
            self.a = max(self.a * (1 - p["age"] / 1000), 2.0 * f.mss)
        if self.eased <= f.now and f.now - self.eased >= self.hold * p["calm_holds"]:
            self.eased, self.hold = f.now, self.hold // 2
            if self.policed and not self.below and f.now - self.loosened > p["loosen_s"] * 1e6:
                self.policed, self.loosened = self.policed * 51 / 50, f.now
            self.below = max(self.below - p["tight_rise"], 0.0)
        if self.stood or self.phase != RUN:
            self.stood, self.clear = self.phase == YIELD, 0
            return
        pace = self.paced()
        bunch = self.bunch_delay(pace)
        free = 1 - min(self.a / self.most if self.most >= 1 else 0.0, 1.0)
        share = 143 + free * (p["calm"] - 143) / (1 + self.more())
        # the header has the share, and what it is made of, in thousandths
        most = self.threshold()
        if self.ties.above(self.queue(), most * share / 1000 + bunch, 4.0 + most / 500):
            self.clear = 0
        elif self.ties.reached(rate, pace * 0.8, 2.0 + self.a / 100):  # a small A is whole bytes
            self.rise()

    def bunch_delay(self, pace: float) -> float:
        """Of the last packet of what leaves at once."""
        if self.most < 1:
            return 0.0
        if self.apart(pace):
            return min(self.flow.mss * 1e6 / self.most, 1e6)
        return min(max(pace / 1000 - self.flow.mss, 0.0) * 1e6 / self.most, 1000.0)

    def meets(self) -> bool:
        f = self.flow
        if not self.tight() or self.ties.above(self.deep, self.packets(3.0), 4.0) or f.now - self.since < 3 * f.srtt:
            return False
        pace = self.paced()
        if self.apart(pace / 2) and (self.apart(pace) or not self.ties.reached(self.a, self.most * 3 / 4, 2.0)):
            return False
        least = max(self.p["see_us"], self.packets(0.5)) + self.bunch_delay(pace)
        return self.ties.above(self.highest(), least, 2.0)

    def ack(self, e: Event) -> None:
        f = self.flow
        self.hear(e)
        self.police()
        if self.policed:
            self.most = min(self.most, self.policed)
        self.shown = max(self.shown, self.highest())
        queue, most = self.queue(), self.threshold()
        above, low = self.ties.above(queue, most, 2.0), not self.ties.above(queue, most * 0.8, 2.0)
        if self.phase == START and above and self.full and f.delivered > FIRST:
            self.a = max(self.a, self.rate)
            self.most, self.cut = max(self.most, self.a), f.now
            self.turn()
        elif self.phase == RUN and (above or self.meets()):
            self.turn()
        elif self.phase == YIELD and low:
            self.low = self.low or f.now
            carried, tight = (f.now - self.low) * self.most / 1e6, self.narrow()
            wait = self.p["tight_wait" if tight else "wait"] * f.mss
            waits = tight or (self.lost and self.others)
            enough = self.ties.reached(carried, wait, 2.0) or (tight and f.now - self.low >= 8000 * self.p["hold_ms"])
            if not waits or (f.now >= self.held and enough):
                self.phase, self.since, self.end, self.lost = RUN, f.now, f.nxt, False
        elif self.phase == YIELD and self.ties.above(queue, 2 * most, 2.0):
            self.others = True
        if self.phase != YIELD or not low:
            self.low = 0
        if f.una > self.end:
            self.round()
        f.word[0] = self.a

    def grow(self, e: Event) -> None:
        f = self.flow
        if self.phase == START and f.slow:
            if f.limited or not f.starved:
                self.credit += e.acked * self.p["start"]
                f.cwnd += self.credit // 1000
                self.credit %= 1000
            return
        if self.phase == START:
            self.phase, self.since = RUN, f.now
            self.a = max(self.a, min(f.w * f.mss * 1e6 / self.rtt, RATE_MOST))
            self.peak = self.a
        wide = self.paced() * (self.base + 2 * self.threshold()) / 1e6 * 5 / 4
        # of the pace the header knows what a queue leaves by a thousandth, and a small A is whole bytes
        silent = (
            self.phase == YIELD
            and not self.trial
            and not self.ties.above(self.left(), self.slowest(), 2.0 + self.a / 300)
        )
        f.cwnd = f.ssthresh = SHUT if silent else whole(wide / f.mss) + 6
        f.count = 0.0

    def hold_back(self) -> None:
        """After a loss that is not random."""
        f, p, queue = self.flow, self.p, max(self.highest(), 1.0)
        if not self.policed:
            self.deep = self.deep * 3 / 4 + queue / 4 if self.deep else queue
        if not self.narrow():
            return
        self.hold = min(max(2 * self.hold, p["hold_ms"] * 1000), p["hold_most_ms"] * 1000)
        if self.ties.above(self.a, self.ceiling() * 7 / 8, 2.0):
            single = min(2e6 * f.mss / self.most if self.most >= 1 else 0.0, 800.0, p["tight_over"])
            self.below = min(self.below + p["tight_fall"], p["tight_over"] - single)
        self.held = self.eased = f.now + self.hold
        self.peak = self.a

    def marks(self) -> None:
        f = self.flow
        self.mark = (f.now, f.delivered, f.in_flight)
        self.mark_lost, self.quarter, self.lossy = f.lost, 0, 0

    def came(self, share: int) -> tuple[int, bool] | None:
        """An RTT after a mark: what came since, in packets, and whether `share` [1/1000] of the flight is missing."""
        f = self.flow
        if not self.mark:
            return None
        at, delivered, flight = self.mark
        quarter = min(math.floor((f.now - at) * 4 / self.rtt), 4)
        if quarter > self.quarter:
            self.lossy += f.lost != self.mark_lost
            self.mark_lost, self.quarter = f.lost, quarter
        if quarter < 4:
            return None
        self.mark = None
        came = min((f.delivered - delivered) % 2**32, 2**24)
        return came, came + 4 < flight and (flight - came) * 1000 >= flight * share

    def police(self) -> None:
        """An RTT after a loss."""
        f, p = self.flow, self.p
        if self.trial:
            return self.tried(self.trial[0])
        found = self.came(p["gone"])
        if not found:
            return
        came, missing = found
        kept, self.kept = self.kept, False
        empty, like = not self.ties.reached(self.highest(), self.usual(), 2.0), missing and self.lossy >= 4
        if came < 8 or not empty:
            if kept:
                self.gives()
            return
        self.mild = 0 if like else self.mild + 1
        if self.mild >= p["mild" if self.policed else "unlike"]:
            self.policed, self.guess, self.mild = 0.0, 0.0, 0
        rate = min(came * f.mss * 1e6 / self.rtt, RATE_MOST)
        if self.policed:
            if like:
                self.policed += (rate - self.policed) / (4 if rate > self.policed else 8)
        elif self.told and not self.ties.reached(rate, self.most * p["police"] / 1000, 2.0):
            self.same = self.same + 1 if self.alike(rate, self.comes) else 0
            self.comes = self.comes * 3 / 4 + rate / 4 if self.same else rate
            if like and self.guess and self.alike(rate, self.guess):
                return self.tries((rate + self.guess) / 2)
            if self.same >= p["same"] and f.now >= self.next:
                self.waits = min(max(2 * self.waits, p["hold_ms"] * 1000), p["hold_most_ms"] * 1000)
                self.next = f.now + self.waits
                return self.tries(self.comes)
            if like:
                self.guess = rate
        if kept:
            self.gives()

    def alike(self, a: float, b: float) -> bool:
        return not self.ties.above(abs(a - b), b * self.p["alike"] / 1000, 12.0)  # a mean of whole bytes

    def tries(self, rate: float) -> None:
        f = self.flow
        self.guess, self.same, self.judged = rate, 0, False
        self.trial = f.now, min(max(self.a, rate * self.p["trial"] / 1000), self.most)
        self.trial_lost, self.trial_delivered = f.lost, f.delivered

    def tried(self, since: int) -> None:
        f, p = self.flow, self.p
        if not self.judged:
            fills = min(f.in_flight * f.mss * 1e6 / self.rtt, RATE_MOST)
            waits = not self.ties.reached(fills, self.guess * p["trial_fill"] / 1000, 2.0)
            if f.now - since >= self.rtt and (f.now - since >= 4 * self.rtt or not waits):
                self.judged = True
                self.marks()
            return
        found = self.came(2 * p["gone"])
        if not found:
            return
        self.trial = None
        lost, came = (f.lost - self.trial_lost) % 2**32, (f.delivered - self.trial_delivered) % 2**32
        if found[1] or min(lost, 2**24) * 500 > min(came, 2**24) * p["gone"]:
            self.policed = self.most = self.guess
            self.loosened, self.below, self.deep, self.waits = f.now, 0.0, 0.0, 0
            self.a = min(self.a, self.policed)
            self.guess = 0.0
            self.gives()
        else:
            self.lost_was, self.delivered_was = f.lost, f.delivered
            self.guess = 0.0

    def wire(self) -> bool:
        f, p, queue = self.flow, self.p, self.highest()
        lost = min((f.lost - self.lost_was) % 2**32, 2**16)
        came = min((f.delivered - self.delivered_was) % 2**32, 2**24)
        likely = 2 * min(f.in_flight, 2**20) * self.losses // self.between if self.between else 0
        few = lost <= 4 + 2 * likely and self.losses * 1000 <= self.between * p["wire"]
        enough = max(self.proof, p["single"])
        self.lost_was, self.delivered_was = f.lost, f.delivered
        self.losses, self.between = (
            (self.losses - self.losses // 8 + 2 * lost, self.between - self.between // 8 + 2 * came)
            if self.between
            else (16, 16 * max(came, 100))
        )
        if not few:
            if self.single >= enough:
                self.proof = min(2 * enough, 24)
            self.single = 0
        elif not self.ties.reached(queue, self.visible() + self.bunch_delay(self.paced()), 4.0):
            self.single = min(self.single + 1, 8 * p["single"])
        elif self.ties.reached(queue * 4, self.shown * 3, 4.0):
            self.single -= min(self.single, 1)
        return self.ties.reached(self.shown, 3 * self.visible(), 4.0) and self.single >= max(self.proof, p["single"])

    def gives(self) -> bool:
        """Way, after a loss; False: it is the wire's."""
        f = self.flow
        early = not self.deep and (self.phase == START or not self.told) and (f.lost - self.lost_was) % 2**32 <= 1
        wire = self.wire()
        if wire and self.phase != START and not self.policed:
            self.deep = self.below = 0.0
            self.hold = self.held = 0
            if self.ties.reached(self.highest(), self.usual(), 2.0):
                self.turn()
            self.a = max(self.a * self.p["random"] / 1000, 2.0 * f.mss)
            return False
        queue, seen = self.highest(), self.ties.reached(self.shown, 3 * self.visible(), 4.0)
        small = not self.ties.reached(queue, self.usual(), 2.0)
        free = small and seen and not self.ties.reached(queue * self.p["shown"], self.shown, 2.0)
        few = self.losses * 1000 <= self.between * self.p["gone"]
        if free and few and not self.policed and self.ties.reached(self.shown, self.usual() * self.p["shown"], 4.0):
            self.a = max(self.a * self.p["random"] / 1000, 2.0 * f.mss)
            return False
        if self.phase == START:
            self.a = max(self.rate, self.a / 2, min(f.w * f.mss * 5e5 / self.rtt, RATE_MOST))
            self.most = max(self.most, self.a)
        if self.policed or (not free and not early):
            self.hold_back()
        self.turn()
        self.lost = self.lost or not early
        self.a = max(self.a * self.p["keep"] / 1000, 2.0 * f.mss)
        return True

    def ssthresh(self) -> float:
        f = self.flow
        if self.trial or self.kept:
            return f.w
        if not self.mark:
            self.marks()
            self.kept = bool(self.guess and not self.policed and self.told and self.phase == RUN)
            if self.kept:
                return f.w
        cut = self.gives()
        f.word[0] = self.a
        return max(whole(f.w * self.p["keep"] / 1000) if cut else f.w, 2.0)

    def event(self, kind: int) -> None:
        if kind != TX_START or self.flow.starved:
            self.first = None

    def send(self) -> None:
        f = self.flow
        f.pace = self.paced()
        if self.phase == YIELD and f.in_flight > SHUT:
            f.pace = max(f.pace, 8e6 * f.mss / self.rtt)
        f.burst = 0 if f.pace >= 2000 * f.mss else 2 if self.phase == YIELD or self.apart(f.pace) else 1
        if self.phase == START and f.delivered < FIRST:
            f.burst = 0
        elif not self.narrow() and self.asks() and f.in_flight + BUNCH <= f.w:
            f.burst, self.asked = BUNCH, f.now
