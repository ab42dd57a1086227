//! What a thorough measurement sends to see what kind of line it is: phases on end, with sparse small packets as a flow of
//! their own beside all of them.
//!
//! | phase | sends | shows |
//! |---|---|---|
//! | listen | the sparse flow alone | how often the line is busy by itself, the delay without a queue |
//! | push | more than what is free, until the queue overflows or is as long as it may be | depth, policer, whose queue it is |
//! | blast | more than the line carries, for a moment, if others send too | who gives way |
//! | pause | the sparse flow alone | whether they have; the delay without a queue |
//! | hold | what is free, so that the queue stands at a half of that | who drops before the queue is full |
//! | count | less than what is free | losses of the wire |
//!
//! In a queue for every flow the sparse packets do not wait behind the others. What more than the free share is sent grows by
//! a share of the capacity, so that a queue grows by as much a second on any line, however slow.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Stream};

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
/// At most this many times the capacity.
const MOST: f64 = 4.0;
/// The push lasts so long [s]: at least where losses are seen, since the first of them; at most.
const PUSH_LOSSES: f64 = 0.9;
const PUSH: f64 = 2.2;
/// And until so many were lost.
const LOSSES: usize = 30;

/// Where more than this share of the capacity is not free the blast follows: at so many times the capacity, so long [s] and a
/// report's time besides.
const OTHERS: f64 = 0.08;
const BLAST_RATE: f64 = 1.3;
const BLAST: f64 = 0.3;
/// The pause [s], behind what the queue takes to empty.
const PAUSE: f64 = 0.6;

/// Where more than this share is lost the capacity was none: it is so many times what came, and the push begins again.
const ABSURD: f64 = 0.6;
const ABSURD_PACKETS: f64 = 60.0;
const INSTEAD: f64 = 1.4;

/// The hold [s], and where the queue is held, as a share of the longest that was seen.
const HOLD: f64 = 1.6;
const LEVEL: f64 = 0.5;
/// A queue of fewer packets cannot be held.
const HELD: f64 = 4.0;

/// The count [s] and the share of what is free that it sends.
const COUNT: f64 = 2.0;
const COUNTED: f64 = 0.7;

/// If more than this share is lost of what the count sends, it was not below what is free: so much less, and again.
const COUNT_LOST: f64 = 0.08;
const COUNT_LESS: f64 = 0.6;
const COUNT_AGAINS: usize = 3;
/// It sends this share of the capacity at least.
const LEAST: f64 = 0.03;

/// Losses beyond this share, at waits below so many packets: a policer.
const POLICED: f64 = 0.05;
const POLICED_WAIT: f64 = 3.0;

/// What all phases send at the most, as a time at the capacity [byte per bit/s]; where that is too much they are as short as this.
const ALL: f64 = 0.6;
const LEAST_PART: f64 = 0.2;

/// A train lasts so long [s] or so many packets.
const TRAIN: f64 = 20e-3;
const TRAIN_PACKETS: f64 = 8.0;

/// A phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The sparse flow alone.
    Listen,
    /// More than what is free.
    Push,
    /// More than all.
    Blast,
    /// The sparse flow alone.
    Pause,
    /// What is free.
    Hold,
    /// Less.
    Count,
    /// The last reports.
    Drain,
    /// It has ended.
    Done,
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
    /// The smallest delay of a large packet [ns].
    floor: Option<i64>,
    /// The last wait [s] and when its packet left.
    wait: Option<(f64, f64)>,
    /// The longest wait of the push.
    longest: f64,
    /// Since the push began: when the first loss left [s], and how many.
    first_loss: Option<f64>,
    losses: usize,
    escalated: f64,
    /// Of the push: large packets sent and received since the first loss; and waits at losses [s].
    pushed: Option<(f64, f64)>,
    lost_at: Vec<f64>,
    /// When the first and the last of those arrived, by the other clock [s].
    span: (f64, f64),
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
            floor: None,
            wait: None,
            longest: 0.0,
            first_loss: None,
            losses: 0,
            escalated: at,
            pushed: None,
            lost_at: Vec::new(),
            span: (f64::INFINITY, 0.0),
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
                self.rate = self.a + EXCESS * self.c;
                self.escalated = at;
            }
            Phase::Blast => {
                if self.a > (1.0 - OTHERS) * self.c || self.is_policed() || self.is_long(at) {
                    return self.enter(Phase::Pause, at);
                }
                self.rate = BLAST_RATE * self.c;
            }
            Phase::Hold => {
                self.target = (LEVEL * self.longest).max(HELD * PACKET / self.c);
                if self.target > self.longest || self.is_policed() {
                    self.enter(Phase::Count, at);
                }
            }
            Phase::Count => {
                if let (true, Some((sent, came))) = (self.is_policed(), self.pushed) {
                    self.a = self.a.min(self.rate * came / sent);
                }
                self.rate = (COUNTED * self.a).max(LEAST * self.c);
            }
            _ => {}
        }
    }

    /// What is next.
    pub fn next(&mut self, now: Nanos) -> Step {
        let at = now.as_secs_f64();
        let end = self.given.until.as_secs_f64() - self.lag;
        if self.phase < Phase::Drain && (at >= end || self.bytes >= self.given.bytes.0) {
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
            let ahead = TRAIN / 4.0;
            if at >= self.follow - ahead {
                return self.train(now);
            }
            wake = wake.min(self.follow - ahead);
        }
        Step::Wait(Nanos::from_secs_f64(wake))
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
                let lossy =
                    self.first_loss.is_some_and(|first| at - first >= self.part * PUSH_LOSSES.max(2.0 * self.lag));
                if lasted >= PUSH.min(self.part * PUSH + 2.0 * self.lag)
                    || (lossy && self.losses >= LOSSES)
                    || self.is_long(at)
                {
                    self.enter(Phase::Blast, at);
                } else if at - self.escalated >= PATIENCE + self.lag && !self.is_lossy() {
                    let small = 4.0 * PACKET / self.c + 5e-3;
                    if self.longest < small && self.rate < MOST * self.c {
                        self.rate += EXCESS * self.c;
                    }
                    self.escalated = at;
                }
            }
            Phase::Blast if lasted >= BLAST + self.lag || self.is_long(at) => self.enter(Phase::Pause, at),
            Phase::Pause if lasted >= PAUSE + self.longest.min(0.6) => self.enter(Phase::Hold, at),
            Phase::Hold if lasted >= self.part * HOLD => self.enter(Phase::Count, at),
            Phase::Count if lasted >= self.part * COUNT => self.enter(Phase::Drain, at),
            _ => {}
        }
    }

    /// Whether more than a wire loses was lost in the push.
    fn is_lossy(&self) -> bool {
        self.pushed.is_some_and(|(sent, came)| sent - came > 1.0 + POLICED * sent)
    }

    /// Whether what was lost in the push found no queue.
    fn is_policed(&self) -> bool {
        let wait = crate::stat::median(&self.lost_at);
        let share = self.pushed.map_or(0.0, |(sent, came)| 1.0 - came / sent);
        share > POLICED && wait.is_some_and(|wait| wait < POLICED_WAIT * PACKET / self.c)
    }

    /// Whether the queue is about to be longer than it may be.
    fn is_long(&self, at: f64) -> bool {
        let grows = (self.rate - self.a) / self.c;
        self.wait
            .is_some_and(|(wait, left)| wait + (at - left).max(0.0) * grows + 0.02 >= self.given.queue.as_secs_f64())
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
            let ahead = self.wait.map_or(self.target, |(wait, left)| {
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
            // of the measurement before: the floor
            self.lower(train);
            return;
        };
        self.waits_for.remove(&train.id);
        if beside {
            return;
        }
        if left < self.again {
            return; // sent before
        }
        self.lower(train);
        let floor = self.floor.unwrap_or_default();
        let waits: Vec<(f64, f64)> = train
            .packets
            .iter()
            .filter_map(|p| Some((p.sent.as_secs_f64(), (p.own_delay()? - floor) as f64 / 1e9)))
            .collect();
        if let Some(&(left, wait)) = waits.last() {
            self.lag = (now.as_secs_f64() - left).max(0.8 * self.lag);
            let lost = train.packets.iter().any(|p| p.received.is_none());
            if let (Phase::Hold, false, Some((before, then))) = (phase, lost, self.wait)
                && before > 0.0
                && left > then
            {
                let free = rate - self.c * (wait - before) / (left - then);
                self.a = (0.7 * self.a + 0.3 * free).clamp(0.02 * self.c, self.c);
            }
            self.wait = Some((wait, left));
        }
        if matches!(phase, Phase::Push | Phase::Blast) {
            let most = waits.iter().map(|w| w.1).fold(0.0, f64::max);
            self.longest = self.longest.max(most);
            let lost = train.packets.iter().filter(|p| p.received.is_none());
            for p in lost {
                let left = p.sent.as_secs_f64();
                self.losses += 1;
                self.first_loss.get_or_insert(left);
                let near = waits.iter().min_by(|a, b| (a.0 - left).abs().total_cmp(&(b.0 - left).abs()));
                self.lost_at.extend(near.or(self.wait.as_ref().map(|w| (w.1, w.0)).as_ref()).map(|w| w.1));
            }
            if self.first_loss.is_some() {
                let (sent, came) = self.pushed.get_or_insert((0.0, 0.0));
                *sent += train.packets.len() as f64;
                *came += waits.len() as f64;
            }
            self.correct(now.as_secs_f64(), train);
        }
        if phase == Phase::Count && train.packets[0].sent.as_secs_f64() >= self.counted.2 {
            self.counted.0 += train.packets.len();
            self.counted.1 += train.packets.iter().filter(|p| p.received.is_none()).count();
            let (of, lost, _, again) = self.counted;
            let queued = self.wait.is_some_and(|(wait, _)| wait > 0.5 * self.longest && wait > 3.0 * PACKET / self.c);
            if of >= 40 && lost as f64 > COUNT_LOST * of as f64 && again < COUNT_AGAINS && !queued {
                self.rate = (COUNT_LESS * self.rate).max(LEAST * self.c);
                let at = now.as_secs_f64();
                self.counted = (0, 0, at, again + 1);
                self.since = at;
            }
        }
    }

    /// The capacity, if most of the push is lost.
    fn correct(&mut self, at: f64, train: &TrainSeen) {
        let Some((sent, came)) = self.pushed else { return };
        let came_at = |p: &crate::Seen| p.received.map(|at| at.as_secs_f64());
        let (Some(first), Some(last)) =
            (train.packets.iter().find_map(came_at), train.packets.iter().rev().find_map(came_at))
        else {
            return;
        };
        self.span.0 = self.span.0.min(first);
        self.span.1 = self.span.1.max(last);
        let time = self.span.1 - self.span.0;
        if self.corrected || sent < ABSURD_PACKETS || came > (1.0 - ABSURD) * sent || time <= 0.0 || came < 8.0 {
            return;
        }
        self.corrected = true;
        self.a = came * PACKET / time;
        self.c = self.c.min(INSTEAD * self.a);
        (self.pushed, self.first_loss, self.losses, self.longest) = (None, None, 0, 0.0);
        self.lost_at.clear();
        self.enter(Phase::Push, at);
        self.again = at;
        self.follow = at + 0.3;
    }

    fn lower(&mut self, train: &TrainSeen) {
        let large = train.packets.iter().filter(|p| p.size == LARGE);
        let least = large.filter_map(|p| p.own_delay()).min();
        self.floor = self.floor.into_iter().chain(least).min();
    }
}
