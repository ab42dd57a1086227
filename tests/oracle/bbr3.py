"""BBR version 3. draft-ietf-ccwg-bbr (August 2026), sections 4.1 and 5; the methods have the draft's order.

Ours: what was delivered, lost and in flight when a packet left is noted for at most 8 transmit opportunities that wait
for their ACK, at least an eighth of the smoothed RTT apart; a sample is since the newest of them that had left before
the newest packet that the ACK tells of, which left at now - rtt. Rounds are by those times. ACKs that tell of losses
count in place of lost ranges. A round with marks (TCP in CWR) has lost too much; then what may be in flight in the
short term is ecn_beta of the lesser of what it was and what was delivered. Extra ACKs are of half to all of
extra_rounds. After a timeout the window grows by what is acked until all is repaired. Volumes are whole packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from oracle.tcp import CWR, IN_LOSS, RECOVERY, TX_START, Control, Event, whole

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
PROBE_BW = (DOWN, CRUISE, REFILL, UP)
QUIET, REFILLING, STARTING, FEEDBACK, STOPPING = range(5)
PENDING = 8
WORD = 1 << 32


class Mark(NamedTuple):
    sent: int
    delivered: int
    delivered_at: int
    first: int  # when the newest packet delivered by then had left
    lost: int
    in_flight: int
    starved: bool


@dataclass
class Sample:
    rate: float = 0.0  # packets per us
    sent: int | None = None
    delivered: int = 0
    in_flight: int = 0
    lost: int = 0
    starved: bool = False
    newly: int = 0
    newly_lost: int = 0


@dataclass
class Sampler:
    delivered: int = 0
    delivered_at: int = 0
    first: int = 0
    lost: int = 0
    marked_at: int = 0
    bubble: int | None = None
    marks: list[Mark] = field(default_factory=list)
    current: Mark | None = None


class Bbr3(Control):
    def init(self) -> None:
        self.start()
        f, now = self.flow, self.flow.now
        self.volume = self.prior = self.first = f.w  # C.cwnd
        self.started = f.delivered
        self.min_rtt = self.probe_min = float(f.srtt or math.inf)
        self.min_at = self.probe_at = self.extra_at = self.cycle_at = now
        self.round_from = self.loss_from = now
        self.hi = self.lo = self.bw_lo = self.per = math.inf
        self.saved = (math.inf, math.inf, math.inf)  # bw_lo, lo, hi
        self.undo_phase: int | None = None
        self.phase, self.acks = STARTUP, QUIET
        self.bw = self.bw_old = self.bw_new = self.bw_latest = self.full_bw = 0.0
        self.latest = self.rounds = self.since_up = self.drain_round = self.full_count = self.loss_acks = 0
        self.up_acked = self.up_rounds = self.wait = self.extra_sum = self.extra_round = self.done_at = 0
        self.extra = [0.0, 0.0]
        self.full_now = self.full_ever = self.loss = self.mark = self.reduces = self.probing = False
        self.too_high = self.precaution = self.idle = self.expired = self.round_done = False
        self.seed = (now ^ f.srtt << 12 ^ f.slot << 28) % WORD
        self.timed = f.srtt > 0
        self.sampler = Sampler(f.delivered, lost=f.lost)
        self.restart_sampler()
        self.pace = 0.0  # bytes/s
        self.first_pace()

    # ---- samples ----
    def note(self) -> None:
        f, s = self.flow, self.sampler
        s.marked_at = f.now
        starved = f.starved or s.bubble is not None
        s.marks.append(Mark(f.now, s.delivered, s.delivered_at, s.first, s.lost, f.in_flight + 1, starved))

    def restart_sampler(self) -> None:
        s = self.sampler
        s.first = s.delivered_at = self.flow.now
        s.marks, s.current = [], None
        self.note()

    def sample(self, e: Event) -> Sample:
        f, s = self.flow, self.sampler
        o = Sample(newly=f.delivered - s.delivered, newly_lost=f.lost - s.lost)
        s.delivered, s.lost = f.delivered, f.lost
        if o.newly:
            s.delivered_at = f.now
        if s.bubble is not None and f.delivered > s.bubble:
            s.bubble = None
        if e.rtt_us and o.newly:
            o.sent = f.now - e.rtt_us
            s.first = max(s.first, o.sent)
            while s.marks and s.marks[0].sent <= o.sent:
                s.current = s.marks.pop(0)
        o.starved = f.starved
        if m := s.current:
            o.delivered, o.lost = f.delivered - m.delivered, f.lost - m.lost
            o.in_flight, o.starved = m.in_flight, m.starved
            span = max(f.now - m.delivered_at, s.first - m.first)
            if o.sent is not None and span > 0 and (math.isinf(self.min_rtt) or span >= self.min_rtt):
                o.rate = min(o.delivered / span, 64.0)
        return o

    # ---- what the model says ----
    @property
    def max_bw(self) -> float:
        return max(self.bw_old, self.bw_new)

    def bdp(self, bw: float, percent: float) -> float:
        if math.isinf(self.min_rtt):
            return self.first
        return float(math.ceil(bw * self.min_rtt * percent / 100 - 2e-5))

    def budget(self, volume: float) -> float:
        quantum = max(whole(min(self.pace / 1000, 65536.0) / self.flow.mss), 2.0)
        return max(volume, 3 * quantum, self.p["cwnd_least"]) + (2 if self.phase == UP else 0)

    def with_headroom(self) -> float:
        if math.isinf(self.hi):
            return math.inf
        room = max(whole(self.hi * self.p["headroom"] / 100), 1.0)
        return max(self.hi - min(room, self.hi), self.p["cwnd_least"])

    def target(self) -> float:
        return min(self.bdp(self.bw, 100), self.volume)

    def probe_volume(self) -> float:
        return max(self.bdp(self.bw, self.p["rtt_probe_cwnd"]), self.p["cwnd_least"])

    def in_flight_within(self, most: float) -> bool:
        return math.isinf(most) or not self.ties.above(self.flow.in_flight, most, 1.0)

    def draw(self, most: int) -> int:
        self.seed = ((self.seed ^ self.flow.now ^ self.flow.delivered) % WORD * 1664525 + 1013904223) % WORD
        return (self.seed >> 8) % (most + 1)

    def first_pace(self) -> None:
        f = self.flow
        self.pace = min(f.w / (f.srtt or 1000), 64.0) * 1e6 * f.mss * self.p["startup_pacing"] / 100

    def set_pace(self, percent: float) -> None:
        rate = self.bw * 1e6 * self.flow.mss * percent / 100 * (1 - self.p["margin"] / 100)
        if self.full_ever or rate > self.pace:
            self.pace = rate

    def reset_full(self, bw: float = 0.0) -> None:
        self.full_bw, self.full_count, self.full_now = bw, 0, False

    def save(self) -> None:
        self.prior = max(self.prior, self.volume) if self.phase == PROBE_RTT else self.volume
        self.undo_phase, self.saved = None, (self.bw_lo, self.lo, self.hi)

    # ---- phases ----
    def enter_down(self) -> None:
        self.loss = self.mark = False
        self.bw_latest, self.latest = 0.0, 0
        self.per = math.inf
        self.since_up = self.draw(1)
        self.wait = self.p["wait_ms"] * 1000 + self.draw(self.p["wait_random_ms"] * 1000)
        self.cycle_at = self.round_from = self.flow.now
        self.acks, self.phase = STOPPING, DOWN

    def enter_refill(self) -> None:
        self.bw_lo = self.lo = math.inf
        self.up_rounds = self.up_acked = 0
        self.precaution = False
        self.acks, self.phase, self.round_from = REFILLING, REFILL, self.flow.now

    def steeper(self) -> None:
        self.per = max(whole(self.volume / 2**self.up_rounds), 1.0)
        self.up_rounds = min(self.up_rounds + 1, 30)

    def leave_probe_rtt(self) -> None:
        self.probe_at = self.flow.now
        self.volume = max(self.volume, self.prior)
        self.bw_lo = self.lo = math.inf
        if self.full_ever:
            self.enter_down()
            self.phase = CRUISE
        else:
            self.phase = STARTUP

    # ---- losses ----
    def lost_too_much(self, o: Sample) -> bool:
        return self.mark or self.ties.above(o.lost * 1000, o.in_flight * self.p["loss"], 0)

    def note_losses(self, o: Sample) -> None:
        marks, self.reduces = self.reduces and self.flow.state == CWR, False
        if not o.newly_lost and not marks:
            return
        if not self.loss and not self.mark:
            self.loss_from = self.flow.now
            self.save()
        self.mark = self.mark or marks
        if o.newly_lost:
            self.loss = True
            self.loss_acks = min(self.loss_acks + 1, 255)
        if self.probing and self.lost_too_much(o):
            self.too_high, self.probing = True, False
            if not o.starved:
                before, lost, share = max(o.in_flight - 1, 0), max(o.lost - 1, 0), self.p["loss"] / 1000
                prefix = max(whole((share * before - lost) / (1 - min(share, 0.999))), 0.0)
                self.hi = max(before + prefix, whole(self.target() * self.p["beta"] / 100))
            if self.phase == UP:
                self.undo_phase = UP
                self.enter_down()

    # ---- each ACK ----
    def ack(self, e: Event) -> None:
        f, p = self.flow, self.p
        if not self.timed and f.srtt:
            self.timed = True
            self.first_pace()
        o = self.sample(e)
        self.note_losses(o)

        self.bw_latest, self.latest = max(self.bw_latest, o.rate), max(self.latest, o.delivered)
        loss_round = o.sent is not None and o.sent >= self.loss_from
        if loss_round:
            self.loss_from = f.now
        new_round = o.sent is not None and o.sent >= self.round_from
        if new_round:
            self.round_from = f.now
            self.rounds += 1
            self.since_up += 1
        if o.rate and (o.rate >= self.max_bw or not o.starved):
            self.bw_new = max(self.bw_new, o.rate)

        if loss_round:
            much = f.state == RECOVERY and self.loss_acks >= p["full_losses"] and self.lost_too_much(o)
            if self.phase == STARTUP and (much or self.mark):
                self.undo_phase, self.full_ever = STARTUP, True
                self.hi = max(self.bdp(self.bw, 100), float(self.latest))
            self.loss_acks = 0
            self.lower()
        self.aggregate(o, new_round)
        if not self.full_now and new_round and not o.starved and o.rate:
            if self.ties.reached(o.rate, self.full_bw * p["full_growth"] / 100, 0):
                self.reset_full(o.rate)
            else:
                self.full_count += 1
                if self.full_count >= p["full_rounds"]:
                    self.full_now = self.full_ever = True
        if self.phase == STARTUP and self.full_ever:
            self.phase, self.drain_round = DRAIN, self.rounds
        if self.phase == DRAIN and (
            self.in_flight_within(self.budget(self.bdp(self.bw, 100))) or self.rounds - self.drain_round > 3
        ):
            self.enter_down()
        if self.full_ever:
            self.cycle(o, new_round)
        self.least_rtt(e.rtt_us)
        self.probe_rtt(new_round)
        if o.newly:
            self.idle = False
        if loss_round:
            self.bw_latest, self.latest = o.rate, o.delivered
        self.bw = min(self.max_bw, self.bw_lo)
        if self.bw:
            gains = {STARTUP: "startup_pacing", DRAIN: "drain_pacing", DOWN: "down_pacing", UP: "up_pacing"}
            self.set_pace(p[gains[self.phase]] if self.phase in gains else 100)
        self.set_volume(o)
        self.flow.word[0] = max(self.bw * 1e6 * f.mss, 1.0) * 8 + self.phase

    def lower(self) -> None:
        if (self.loss or self.mark) and self.phase not in (STARTUP, REFILL, UP):
            beta = self.p["beta"] / 100
            lo = self.volume if math.isinf(self.lo) else self.lo
            self.bw_lo = max(self.bw_latest, beta * (self.max_bw if math.isinf(self.bw_lo) else self.bw_lo))
            if self.mark:
                self.lo = whole(min(lo, self.latest) * self.p["ecn_beta"] / 100)
            else:
                self.lo = max(float(self.latest), whole(beta * lo))
        self.loss = self.mark = False

    def aggregate(self, o: Sample, new_round: bool) -> None:
        now = self.flow.now
        expected = self.bw * (now - self.extra_at)
        if not self.ties.above(self.extra_sum, expected, 1.0):
            self.extra_sum, self.extra_at, expected = 0, now, 0.0
        self.extra_sum += o.newly
        if new_round and self.rounds - self.extra_round >= (self.p["extra_rounds"] // 2 if self.full_ever else 1):
            self.extra_round = self.rounds
            self.extra = [self.extra[1], 0.0]
        extra = float(math.ceil(self.extra_sum - expected - 1e-9))
        self.extra[1] = max(self.extra[1], min(extra, self.volume))

    def adapt_upper(self, o: Sample, new_round: bool) -> bool:
        if self.acks == STARTING and new_round:
            self.acks = FEEDBACK
        if self.acks == STOPPING and new_round:
            self.probing, self.acks = False, QUIET
            if self.phase in PROBE_BW:
                if not o.starved and self.bw_new:
                    self.bw_old, self.bw_new = self.bw_new, 0.0
                if self.precaution and not self.too_high:
                    self.enter_refill()
                    return True
        if self.lost_too_much(o) or math.isinf(self.hi):
            return False
        self.hi = max(self.hi, float(o.in_flight))
        if self.phase == UP and self.flow.limited and self.volume >= self.hi:
            self.up_acked += o.newly
            if self.up_acked >= self.per:
                more = whole(self.up_acked / self.per)
                self.up_acked -= int(more * self.per)
                self.hi += more
            if new_round:
                self.steeper()
        return False

    def cycle(self, o: Sample, new_round: bool) -> None:
        f = self.flow
        if self.adapt_upper(o, new_round) or self.phase not in PROBE_BW:
            return
        if self.phase == REFILL:
            if new_round:
                self.probing, self.acks, self.phase, self.round_from = True, STARTING, UP, f.now
                self.reset_full(o.rate)
                self.steeper()
        elif self.phase == UP:
            if self.too_high and f.in_flight >= self.hi:
                self.precaution, down = True, True
            elif f.limited and self.volume >= self.hi:
                self.reset_full(o.rate)
                down = False
            else:
                down = self.full_now
            if down:
                self.too_high = False
                self.enter_down()
        elif f.now > self.cycle_at + self.wait or self.ties.reached(
            self.since_up, min(self.target(), self.p["wait_rounds"]), 1.0 if self.target() < 64 else 0
        ):
            self.enter_refill()
        elif (
            self.phase == DOWN
            and f.in_flight <= self.with_headroom()
            and self.in_flight_within(self.budget(self.bdp(self.max_bw, 100)))
        ):
            self.phase = CRUISE

    def least_rtt(self, rtt: int) -> None:
        now = self.flow.now
        self.expired = now > self.probe_at + self.p["rtt_probe_ms"] * 1000
        if rtt and (rtt < self.probe_min or self.expired):
            self.probe_min, self.probe_at = float(rtt), now
        if self.probe_min < self.min_rtt or now > self.min_at + self.p["min_rtt_ms"] * 1000:
            self.min_rtt, self.min_at = self.probe_min, self.probe_at

    def probe_rtt(self, new_round: bool) -> None:
        f = self.flow
        if self.phase != PROBE_RTT and self.expired and not self.idle:
            self.prior, self.phase, self.done_at = self.volume, PROBE_RTT, 0
            self.acks, self.round_from = STOPPING, f.now
        if self.phase != PROBE_RTT:
            return
        self.sampler.bubble = f.delivered + f.in_flight
        if not self.done_at:
            if self.in_flight_within(self.probe_volume()):
                self.done_at = f.now + self.p["rtt_probe_hold_ms"] * 1000
                self.round_done, self.round_from = False, f.now
            return
        self.round_done = self.round_done or new_round
        if self.round_done and f.now > self.done_at:
            self.leave_probe_rtt()

    def set_volume(self, o: Sample) -> None:
        p = self.p
        gain = {UP: "up_cwnd", PROBE_RTT: "rtt_probe_cwnd"}.get(self.phase, "cwnd_gain")
        most = self.budget(self.bdp(self.bw, p[gain]) + max(self.extra))
        if self.full_ever:
            self.volume = min(self.volume + o.newly, most)
        elif self.volume < most or self.flow.delivered - self.started < self.first:
            self.volume += o.newly
        self.volume = max(self.volume, p["cwnd_least"])
        cap = math.inf
        if self.phase in (CRUISE, PROBE_RTT):
            cap = self.with_headroom()
        elif self.phase in PROBE_BW:
            cap = self.hi
        if self.phase == PROBE_RTT:
            self.volume = min(self.volume, self.probe_volume())
        self.volume = min(self.volume, max(cap if cap < self.lo else self.lo, p["cwnd_least"]))

    # ---- TCP's calls ----
    def grow(self, e: Event) -> None:
        f = self.flow
        f.cwnd = min(f.w + e.acked, self.volume) if f.state == IN_LOSS else self.volume
        f.ssthresh = f.cwnd

    def ssthresh(self) -> float:
        self.reduces = True
        if not self.loss and not self.mark:
            self.save()
        return max(self.volume, 1.0)

    def undo(self) -> float:
        self.volume = max(self.volume, self.prior)
        self.loss = False
        self.reset_full()
        bw_lo, lo, hi = self.saved
        self.bw_lo, self.lo, self.hi = max(self.bw_lo, bw_lo), max(self.lo, lo), max(self.hi, hi)
        if self.undo_phase == STARTUP:
            self.full_ever = False
            if self.phase != PROBE_RTT:
                self.phase = STARTUP
        elif self.undo_phase == UP and self.phase not in (UP, PROBE_RTT):
            self.enter_refill()
        self.undo_phase = None
        return self.volume

    def event(self, kind: int) -> None:
        if kind != TX_START:
            return
        self.restart_sampler()
        if not self.flow.starved and self.sampler.bubble is None:
            return
        self.idle, self.extra_at, self.extra_sum = True, self.flow.now, 0
        if self.phase in PROBE_BW:
            self.set_pace(100)
        elif self.phase == PROBE_RTT and self.done_at and self.flow.now > self.done_at:
            self.leave_probe_rtt()

    def send(self) -> None:
        f, s = self.flow, self.sampler
        if len(s.marks) < PENDING and f.now - s.marked_at >= f.srtt // PENDING:
            self.note()
        f.burst, f.pace = 0, self.pace
