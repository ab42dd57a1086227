//! What a thorough measurement sends to see what kind of line it is: phases on end, with sparse small packets as a flow of
//! their own beside all of them.
//!
//! | phase | sends | shows |
//! |---|---|---|
//! | listen | the sparse flow alone | how often the line is busy by itself, the delay without a queue |
//! | push | more than what is free, until the queue overflows or is as long as it may be | depth, policer, whose queue it is |
//! | blast | more than the line carries, for a moment, if others send too | who gives way |
//! | hold | what is free, so that the queue stands at a half of that | who drops before the queue is full, while it is still on its guard |
//! | pause | the sparse flow alone | whether they have; the delay without a queue |
//! | count | less than what is free | losses of the wire |
//!
//! In a queue for every flow the sparse packets do not wait behind the others. What more than the free share is sent grows by
//! a share of the capacity, so that a queue grows by as much a second on any line, however slow.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Stream};

use super::heard::Heard;
use crate::{LARGE, Plan, Step, TrainSeen};

/// Bits of a large packet.
const PACKET: f64 = LARGE as f64 * 8.0;

/// A sparse packet [IP byte], its share of the capacity at the most while it is alone, and the least time from one to the next [s].
pub const SPARSE: u16 = 120;
const SPARSE_SHARE: f64 = 0.04;
const SPARSE_APART: f64 = 2e-3;
/// Beside the large ones one for so many of those that the line could carry: a queue of so many packets would else seem shorter.
const SPARSE_AMONG: f64 = 6.0;
/// But no longer apart [s].
const SPARSE_MOST: f64 = 50e-3;
/// A train of sparse packets lasts so long [s].
const SPARSE_TRAIN: f64 = 0.1;

/// How long the sparse flow is alone [s], and how long besides for a queue that was left behind.
const LISTEN: f64 = 0.7;

/// So much of the capacity is sent more than what is free, and so much more after each time [s] in which nothing came of it.
const EXCESS: f64 = 0.3;
const PATIENCE: f64 = 0.5;
/// Or so many times as much; at most this many times the capacity.
const FASTER: f64 = 1.6;
const MOST: f64 = 6.0;
/// The push lasts so long [s]: at least where losses are seen, since the first of them; at most.
const PUSH_LOSSES: f64 = 0.9;
const PUSH: f64 = 2.2;
/// And until so many were lost.
const LOSSES: usize = 30;
/// It sends this share of what may be sent at the most.
const PUSH_BYTES: f64 = 0.5;
/// It leaves so long for what comes behind it [s], but lasts so long at least.
const PUSH_LEAVES: f64 = 1.7;
const PUSH_LEAST: f64 = 1.2;

/// Where more than this share of the capacity is not free the blast follows: at so many times the capacity, so long [s], and so
/// many reports' times, up to so long [s], besides.
const OTHERS: f64 = 0.08;
const BLAST_RATE: f64 = 1.3;
const BLAST: f64 = 0.3;
/// Others answer after a round trip.
const BLAST_LAGS: f64 = 2.0;
const BLAST_MOST: f64 = 1.0;
/// The pause [s], behind what the queue takes to empty.
const PAUSE: f64 = 0.6;

/// A capacity that was none is so many times what came instead, and the push begins again.
const INSTEAD: f64 = 1.4;

/// The hold [s], and where the queue is held, as a share of the longest that was seen.
const HOLD: f64 = 1.6;
const LEVEL: f64 = 0.65;
/// Below this share of that there is no queue to speak of.
const EMPTY: f64 = 0.1;
/// A queue of fewer packets cannot be held.
const HELD: f64 = 4.0;

/// The count [s] and the share of what is free that it sends; and how many packets are enough.
const COUNT: f64 = 2.0;
const COUNTED: f64 = 0.7;
const COUNT_PACKETS: f64 = 20_000.0;

/// If more than this share is lost of what the count sends, it was not below what is free: so much less, and again.
const COUNT_LOST: f64 = 0.08;
const COUNT_LESS: f64 = 0.6;
const COUNT_AGAINS: usize = 3;
/// It sends this share of the capacity at least.
const LEAST: f64 = 0.03;

/// What all phases send at the most, as a time at the capacity [byte per bit/s]; where that is too much they are as short as this.
const ALL: f64 = 0.6;
const LEAST_PART: f64 = 0.2;

/// A train lasts so long [s] or so many packets.
const TRAIN: f64 = 20e-3;
const TRAIN_PACKETS: f64 = 8.0;
/// It is planned so long before it is due [s]: a host that wakes up late sends no less for it. The hold wants the last report.
const AHEAD: f64 = 40e-3;
const AHEAD_HOLD: f64 = 10e-3;

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The sparse flow alone.
    Listen,
    /// More than what is free.
    Push,
    /// More than all.
    Blast,
    /// What is free.
    Hold,
    /// The sparse flow alone.
    Pause,
    /// Less.
    Count,
    /// The last reports.
    Drain,
    /// It has ended.
    Done,
}

impl Phase {
    /// Whether it sends what is free, or more.
    pub fn is_loaded(self) -> bool {
        matches!(self, Phase::Push | Phase::Blast | Phase::Hold)
    }
}

/// What a train was sent for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub phase: Phase,
    pub beside: bool,
    /// Bit/s.
    pub rate: f64,
}

/// What it has to go by.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Bit/s.
    pub capacity: f64,
    /// Bit/s.
    pub available: f64,
    /// From a train's end to its report.
    pub lag: Nanos,
    /// The longest queue that it may build.
    pub queue: Nanos,
    /// It has to end by then.
    pub until: Nanos,
    /// What it may send [IP byte].
    pub bytes: Bytes,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Probing {
    given: Given,
    stream: Stream,
    phase: Phase,
    /// When the phase began [s].
    since: f64,
    /// The next train's number.
    next_id: u64,
    /// What was sent, until it is reported; and what for.
    waits_for: BTreeMap<u64, f64>,
    pub(super) sent: BTreeMap<u64, Sent>,
    pub(super) trains: BTreeMap<u64, TrainSeen>,
    /// When the next packet of either flow is due [s].
    follow: f64,
    follow_sparse: f64,
    /// Bit/s.
    c: f64,
    a: f64,
    rate: f64,
    /// From a packet's departure to the report of it, lately [s].
    lag: f64,
    heard: Heard,
    /// When the push began [s], and when it first did.
    pushed: f64,
    filled: f64,
    /// And how much may have been sent when it ends [IP byte].
    push_bytes: u64,
    escalated: f64,
    corrected: bool,
    /// When the push began again [s].
    again: f64,
    /// Of the count: packets, lost, since when, how often it began again.
    counted: (usize, usize, f64, usize),
    /// Sent [IP byte].
    bytes: u64,
    /// Phases that send much last so much of their usual time.
    part: f64,
    /// The wait that the hold wants [s].
    target: f64,
}

impl Probing {
    /// Begins at `now`; numbers its trains from `first` on.
    pub fn new(now: Nanos, given: Given, first: u64, seed: u64) -> Probing {
        let at = now.as_secs_f64();
        Probing {
            given,
            stream: Stream::new(seed, "estimate/kinds"),
            phase: Phase::Listen,
            since: at,
            next_id: first,
            waits_for: BTreeMap::new(),
            sent: BTreeMap::new(),
            trains: BTreeMap::new(),
            follow: at,
            follow_sparse: at,
            c: given.capacity.max(1e4),
            a: given.available.clamp(0.02 * given.capacity, given.capacity),
            rate: 0.0,
            lag: given.lag.as_secs_f64(),
            heard: Heard::new(given.capacity.max(1e4)),
            pushed: at,
            filled: f64::INFINITY,
            push_bytes: 0,
            escalated: at,
            corrected: false,
            again: 0.0,
            counted: (0, 0, 0.0, 0),
            bytes: 0,
            part: (given.bytes.0 as f64 / (ALL * given.capacity.max(1e4))).clamp(LEAST_PART, 1.0),
            target: 0.0,
        }
    }

    /// Every train that was reported, with its phase, whether it was of the sparse flow, and its rate [bit/s].
    pub fn seen(&self) -> impl Iterator<Item = (&TrainSeen, Phase, bool, f64)> + Clone {
        self.sent.iter().filter_map(|(id, sent)| {
            let train = self.trains.get(id)?;
            // a count that was too fast is one of what is free at the most
            let left = train.packets.first()?.sent.as_secs_f64();
            let early = sent.phase == Phase::Count && left < self.counted.2;
            Some((train, if early { Phase::Hold } else { sent.phase }, sent.beside, sent.rate))
        })
    }

    /// Trains that rode the queue before it overflowed, and those that held it.
    pub fn busy(&self) -> impl Iterator<Item = &TrainSeen> {
        let full = self.overflowed();
        self.seen()
            .filter(move |(train, phase, sparse, _)| {
                let early = train.packets.last().is_some_and(|p| p.sent.as_secs_f64() < full);
                !sparse && (*phase == Phase::Hold || (*phase == Phase::Push && early))
            })
            .map(|seen| seen.0)
    }

    /// When a packet was lost first under overload that may be no wire's [s]; infinite where none was.
    pub fn overflowed(&self) -> f64 {
        self.heard.first_loss.unwrap_or(f64::INFINITY)
    }

    /// From when on it fills the queue itself [s]; infinite: not yet.
    pub fn filled(&self) -> f64 {
        self.filled
    }

    /// When the push began again because the capacity was none [s]; 0: it did not.
    pub fn again(&self) -> f64 {
        self.again
    }

    /// Sent [IP byte].
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The capacity that it went by [bit/s].
    pub fn capacity(&self) -> f64 {
        self.c
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    fn enter(&mut self, phase: Phase, at: f64) {
        (self.phase, self.since) = (phase, at);
        self.follow = self.follow.max(at);
        match phase {
            Phase::Push => {
                // a shorter one as long a queue
                let queue = self.given.queue.as_secs_f64().min(EXCESS * PUSH);
                let lasts = self.longest_push(at).min(self.part * PUSH);
                self.rate = self.a + (queue / lasts).max(EXCESS) * self.c;
                self.push_bytes =
                    self.bytes + (PUSH_BYTES * self.given.bytes.0.saturating_sub(self.bytes) as f64) as u64;
                (self.pushed, self.escalated, self.filled) = (at, at, self.filled.min(at));
            }
            Phase::Blast => {
                // what passes under overload is a bound of what is free
                if let Some(passes) = self.heard.passes() {
                    self.a = self.a.min(passes);
                }
                let short = at + PUSH_LEAVES > self.end();
                if short || self.a > (1.0 - OTHERS) * self.c || self.is_policed() || self.is_long(at) {
                    return self.enter(Phase::Hold, at);
                }
                self.rate = BLAST_RATE * self.c;
            }
            Phase::Hold => {
                let part = (self.end() - at - PAUSE) / (HOLD + self.count());
                let left = 8.0 * self.given.bytes.0.saturating_sub(self.bytes) as f64 / self.c;
                self.part = part.min(left / (HOLD + COUNTED * self.count())).clamp(LEAST_PART, 1.0);
                self.target = (LEVEL * self.heard.longest).max(HELD * PACKET / self.c);
                if part < LEAST_PART || self.target > self.heard.longest || self.is_policed() {
                    self.enter(Phase::Pause, at);
                }
            }
            Phase::Count => {
                if let (true, Some(came)) = (self.is_policed(), self.heard.share()) {
                    self.a = self.a.min(self.rate * came);
                }
                self.rate = (COUNTED * self.a).max(LEAST * self.c);
            }
            _ => {}
        }
    }

    /// What is next.
    pub fn next(&mut self, now: Nanos) -> Step {
        let at = now.as_secs_f64();
        if self.phase < Phase::Drain && (at >= self.end() || self.bytes >= self.given.bytes.0) {
            self.enter(Phase::Drain, at);
        }
        self.turn(at);
        match self.phase {
            Phase::Done => return Step::Done,
            Phase::Drain => {
                let until = self.since + 2.0 * self.lag + 0.1;
                if self.waits_for.is_empty() || at >= until {
                    self.phase = Phase::Done;
                    return Step::Done;
                }
                return Step::Wait(Nanos::from_secs_f64(until));
            }
            _ => {}
        }
        if at >= self.follow_sparse - SPARSE_TRAIN / 4.0 {
            return self.sparse(now);
        }
        let mut wake = self.follow_sparse - SPARSE_TRAIN / 4.0;
        if !self.is_silent() {
            let ahead = if self.phase == Phase::Hold { AHEAD_HOLD } else { AHEAD };
            if at >= self.follow - ahead {
                return self.train(now);
            }
            wake = wake.min(self.follow - ahead);
        }
        Step::Wait(Nanos::from_secs_f64(wake))
    }

    /// What is sent later is not reported in time [s].
    fn end(&self) -> f64 {
        self.given.until.as_secs_f64() - self.lag
    }

    /// How long the push may take that begins then [s].
    fn longest_push(&self, since: f64) -> f64 {
        (self.end() - PUSH_LEAVES - since).clamp(PUSH_LEAST, PUSH)
    }

    /// How long the count takes where there is time for all [s].
    fn count(&self) -> f64 {
        COUNT.min(COUNT_PACKETS * PACKET / (COUNTED * self.c))
    }

    fn is_silent(&self) -> bool {
        matches!(self.phase, Phase::Listen | Phase::Pause)
    }

    /// Goes on to the next phase if it is time.
    fn turn(&mut self, at: f64) {
        let lasted = at - self.since;
        match self.phase {
            Phase::Listen if lasted >= LISTEN => self.enter(Phase::Push, at),
            Phase::Push => {
                let lossy = self
                    .heard
                    .first_loss
                    .is_some_and(|first| at - first >= self.part * PUSH_LOSSES.max(2.0 * self.lag));
                let most = PUSH.min(self.part * PUSH + 2.0 * self.lag);
                if lasted >= most.min(self.longest_push(self.since))
                    || (lossy && self.heard.losses >= LOSSES)
                    || self.is_long(at)
                    || self.bytes >= self.push_bytes
                {
                    self.enter(Phase::Blast, at);
                } else if at - self.escalated >= PATIENCE + self.lag && !self.heard.is_lossy() {
                    let small = 4.0 * PACKET / self.c + 5e-3;
                    // of what a busy host has not sent yet nothing can have come
                    let heard = self.heard.wait.is_some_and(|(_, left)| left >= self.escalated);
                    let short = self.heard.falls_short(self.rate);
                    if heard && self.heard.longest < small && self.rate < MOST * self.c {
                        self.rate = (self.rate + EXCESS * self.c).max(FASTER * self.rate);
                    } else if heard {
                        self.rate = (self.rate * short.min(FASTER)).min(MOST * self.c).max(self.rate);
                    }
                    self.escalated = at;
                }
            }
            Phase::Blast if lasted >= BLAST + (BLAST_LAGS * self.lag).min(BLAST_MOST) || self.is_long(at) => {
                self.enter(Phase::Hold, at)
            }
            Phase::Hold if lasted >= self.part * HOLD => self.enter(Phase::Pause, at),
            Phase::Pause if lasted >= PAUSE + (LEVEL * self.heard.longest).min(0.6) => self.enter(Phase::Count, at),
            Phase::Count if lasted >= self.part * self.count() => self.enter(Phase::Drain, at),
            _ => {}
        }
    }

    fn is_policed(&self) -> bool {
        self.heard.is_policed(self.c)
    }

    /// Whether the queue is about to be longer than it may be.
    fn is_long(&self, at: f64) -> bool {
        let grows = (self.rate - self.a) / self.c;
        self.heard.wait.is_some_and(|(wait, left)| {
            wait + (at - left.max(self.pushed)).max(0.0) * grows + 0.02 >= self.given.queue.as_secs_f64()
        })
    }

    fn sparse(&mut self, now: Nanos) -> Step {
        let alone = f64::from(SPARSE) * 8.0 / SPARSE_SHARE;
        let least = if self.is_silent() { alone } else { SPARSE_AMONG * PACKET } / self.c;
        let gap = least.clamp(SPARSE_APART, SPARSE_MOST);
        let count = ((SPARSE_TRAIN / gap).round() as usize).max(2);
        let start = self.follow_sparse.max(now.as_secs_f64());
        let mut gaps = Vec::new();
        let mut lasts = 0.0;
        for _ in 0..count {
            let one = gap * self.stream.between(0.5, 1.5);
            lasts += one;
            gaps.push(Nanos::from_secs_f64(one));
        }
        gaps.pop();
        self.follow_sparse = start + lasts;
        let plan = Plan { id: self.next_id, at: Nanos::from_secs_f64(start), gaps, size: SPARSE };
        self.note(&plan, true, 0.0);
        Step::Beside(plan)
    }

    fn train(&mut self, now: Nanos) -> Step {
        let at = now.as_secs_f64();
        if self.phase == Phase::Hold {
            let ahead = self.heard.wait.map_or(self.target, |(wait, left)| {
                // what was sent since, less what is free
                let sent: f64 = self.unreported(left);
                (wait + (sent - self.a * (self.follow - left).max(0.0)) / self.c).max(0.0)
            });
            let over = (4.0 * self.lag).max(0.25);
            self.rate = (self.a + (self.target - ahead) * self.c / over).clamp(0.02 * self.c, 1.3 * self.c);
        }
        let start = self.follow.max(at);
        let gap = PACKET / self.rate;
        let count = (TRAIN / gap).max(TRAIN_PACKETS).round() as usize;
        let plan = Plan::even(self.next_id, Nanos::from_secs_f64(start), count, gap, LARGE);
        self.follow = start + count as f64 * gap;
        let rate = self.rate;
        self.note(&plan, false, rate);
        Step::Send(plan)
    }

    /// Bits of the large packets that left after `left`.
    fn unreported(&self, left: f64) -> f64 {
        let mut bits = 0.0;
        for (id, sent) in self.sent.iter().rev().filter(|(_, sent)| !sent.beside) {
            let Some(&ends) = self.waits_for.get(id) else { continue };
            bits += sent.rate * (ends - left).clamp(0.0, TRAIN.max(TRAIN_PACKETS * PACKET / sent.rate));
        }
        bits
    }

    fn note(&mut self, plan: &Plan, beside: bool, rate: f64) {
        self.next_id += 1;
        self.bytes += plan.bytes();
        self.waits_for.insert(plan.id, (plan.at + plan.duration()).as_secs_f64());
        self.sent.insert(plan.id, Sent { phase: self.phase, beside, rate });
    }

    /// The report of a train, of either flow.
    pub fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        self.trains.insert(train.id, train.clone());
        let left = train.packets.first().map_or(0.0, |p| p.sent.as_secs_f64());
        let Some(&Sent { phase, beside, rate }) = self.sent.get(&train.id) else {
            self.heard.before(train);
            return;
        };
        self.waits_for.remove(&train.id);
        if beside {
            return;
        }
        if left < self.again {
            return; // sent before
        }
        self.heard.lower(train);
        let waits = self.heard.waits(train);
        if let Some(&(left, wait)) = waits.last() {
            self.lag = (now.as_secs_f64() - left).max(0.8 * self.lag);
            let lost = train.packets.iter().any(|p| p.lost());
            if phase == Phase::Hold && wait < EMPTY * self.target {
                // there is no queue: more is free
                self.a = self.a.max(rate.min(self.c));
            } else if let (Phase::Hold, false, Some((before, then))) = (phase, lost, self.heard.wait)
                && before > 0.0
                && left > then
            {
                let free = rate - self.c * (wait - before) / (left - then);
                self.a = (0.7 * self.a + 0.3 * free).clamp(0.02 * self.c, self.c);
            }
            self.heard.wait = Some((wait, left));
        }
        if matches!(phase, Phase::Push | Phase::Blast) {
            self.heard.overload(train, &waits);
            self.correct(now.as_secs_f64());
        }
        if phase == Phase::Count && train.packets[0].sent.as_secs_f64() >= self.counted.2 {
            self.counted.0 += train.packets.len();
            self.counted.1 += train.packets.iter().filter(|p| p.lost()).count();
            let (of, lost, _, again) = self.counted;
            let queued = self
                .heard
                .wait
                .is_some_and(|(wait, _)| wait > 0.5 * self.heard.longest && wait > 3.0 * PACKET / self.c);
            if of >= 40 && lost as f64 > COUNT_LOST * of as f64 && again < COUNT_AGAINS && !queued {
                self.rate = (COUNT_LESS * self.rate).max(LEAST * self.c);
                let at = now.as_secs_f64();
                self.counted = (0, 0, at, again + 1);
                self.since = at;
            }
        }
    }

    /// The capacity, if most of the push is lost.
    fn correct(&mut self, at: f64) {
        let Some(carries) = self.heard.refutes().filter(|_| !self.corrected) else { return };
        self.corrected = true;
        self.a = carries;
        self.c = self.c.min(INSTEAD * self.a);
        self.heard.begin_again();
        self.enter(Phase::Push, at);
        self.again = at;
        self.follow = at + 0.3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> Probing {
        let given = Given {
            capacity: 10e6,
            available: 9e6,
            lag: Nanos::millis(20),
            queue: Nanos::millis(500),
            until: Nanos::secs(10),
            bytes: Bytes(50_000_000),
        };
        Probing::new(Nanos::ZERO, given, 0, 1)
    }

    /// A host that cannot send so fast reports nothing: that says nothing of a queue.
    #[test]
    fn without_reports_the_push_is_no_faster() {
        let (mut probing, mut now, mut rates) = (idle(), Nanos::ZERO, Vec::new());
        while probing.phase() <= Phase::Push {
            match probing.next(now) {
                Step::Send(plan) => rates.push(PACKET * 1e9 / plan.gaps[0].0 as f64),
                Step::Wait(until) => now = until.max(now + Nanos::millis(1)),
                _ => {}
            }
        }
        assert!(now > Nanos::secs(2) && rates.iter().all(|rate| (rate / 12e6 - 1.0).abs() < 1e-3), "{now:?} {rates:?}");
    }

    /// On a busy host, that wakes up 30 ms late, the push is as fast as it is to be.
    #[test]
    fn a_host_that_is_late_sends_no_less() {
        let mut probing = idle();
        let (mut now, mut sent) = (Nanos::ZERO, Vec::new());
        while probing.phase() <= Phase::Push {
            match probing.next(now) {
                Step::Send(plan) => sent.push((plan.at.as_secs_f64(), plan.count() as f64)),
                Step::Wait(until) => now = until.max(now) + Nanos::millis(30),
                _ => {}
            }
            // nothing is ever reported: it goes on at the first rate for the time of patience
            if sent.last().is_some_and(|last| last.0 > 1.0) {
                break;
            }
        }
        let packets: f64 = sent[..sent.len() - 1].iter().map(|of| of.1).sum();
        let rate = packets * PACKET / (sent[sent.len() - 1].0 - sent[0].0);
        assert!(rate > 0.95 * 12e6, "{rate}");
    }
}
