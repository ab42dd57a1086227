//! What the ride sends next: the train that keeps the queue at its target.

use pathcast_base::Nanos;

use super::super::capacity::TRAIN as TRAIN_SHORTEST;
use super::super::gather;
use super::super::{LARGE, Plan, Step};
use super::balance::{CROSS, ENDS};
use super::{
    BACKLOG_FIRST, BACKLOG_LEAST, BACKLOG_MOST, PACKET, PLANNED, PRIOR, Phase, ROOM_SHARE, Ride, SMALL_COUNT,
    SMALL_SIZE,
};

/// The gap of packets that make the queue longer, as a share of L/C. Not zero: a narrow link before the tight one would
/// queue them, and its queue says nothing.
const HURRY: f64 = 0.8;

/// Small packets are so many L/C apart: at least; usually on slow lines; and on fast ones, where that is no longer than the last
/// [s].
const APART_LEAST: f64 = 1.2;
const APART_SLOW: f64 = 1.5;
const APART_FAST: f64 = 2.5;
const APART_FAST_LONGEST: f64 = 0.01;
/// And where there are too few bytes for trains that show how a line lets packets gather at least this [s].
const APART_SCANT: f64 = 1e-3;
/// Each gap is drawn between these times the usual one, so that no periodic traffic is met in step.
const APART_JITTER: (f64, f64) = (0.7, 1.3);
/// They take no more than this share of the time left.
const APART_SHARE: f64 = 0.15;

/// The opening train lasts so long [s], within these numbers of packets.
const OPENING_TIME: f64 = 2e-3;
const OPENING: (usize, usize) = (12, 200);

/// The same where a link lets packets gather; trains last so many of its opportunities, and the queue holds what so many carry.
const OPENING_GATHERED: usize = 700;
const OPPORTUNITIES: f64 = 4.0;
const HELD: f64 = 2.0;

/// How long hosts at high rates gather packets before they hand them over [s].
const GATHERED: f64 = 0.3e-3;
/// A queue of so many times what delays scatter is seen.
const HIDES: f64 = 2.0;

/// Covered time after which A is roughly known [packets' time at the rate C].
const KNOWN: f64 = 50.0;

/// A train's packets at the rate A, usually and at least, and at the rate C, at most and as long as A is not known. It lasts no
/// less than this [s] (hosts have such timers), and this share of a report's time, so that reports are not more than trains.
const TRAIN: f64 = 12.0;
const TRAIN_LEAST: f64 = 4.0;
const TRAIN_MOST: f64 = 60.0;
const TRAIN_UNKNOWN: f64 = 40.0;
const TRAIN_TIME: f64 = 4e-3;
const TRAIN_LAGS: f64 = 0.5;
const TRAIN_LAGS_MOST: f64 = 0.1;

/// The surplus over A while it is not known: so many standard deviations of the packets at the ends of the covered time, and of
/// random traffic over it, as if so many packets' time were covered at least; not more than so many packets a report's time,
/// which is this long at least [s].
const SURPLUS_ENDS: f64 = 1.5;
const SURPLUS_RANDOM: f64 = 0.7;
const SURPLUS_COVERED: f64 = 10.0;
const SURPLUS_MOST: f64 = 10.0;
const SURPLUS_LAG: f64 = 1e-3;

/// A train of fewer packets says nothing.
const TRAIN_SENSE: f64 = 3.0;

/// Time for the last report, in reports' times.
const LAST_REPORT: f64 = 1.1;

impl Ride {
    /// Packets that the budget still has.
    fn left(&self) -> u64 {
        self.budget.bytes.0.saturating_sub(self.bytes + self.grains_bytes()) / u64::from(LARGE)
    }

    pub(super) fn opening(&mut self, now: Nanos) -> Step {
        self.find_base();
        self.lag = self.capacity.lag();
        self.first = self.next_id;
        self.counted = if self.is_far() { 1 } else { self.first };
        self.target = self.floor().max(BACKLOG_FIRST * PACKET).min(self.most());
        if self.is_far() {
            self.a = PRIOR * self.c;
            self.phase = Phase::Ride;
            return self.ride(now);
        }
        self.phase = Phase::Opening;
        let time = OPENING_TIME.max(OPPORTUNITIES * self.every);
        let most = if self.every > 0.0 { OPENING_GATHERED } else { OPENING.1 };
        let count = ((time * self.c / PACKET) as usize).clamp(OPENING.0, most).min(self.left() as usize);
        if count == 0 {
            self.phase = Phase::Drain;
            return self.drain(now);
        }
        let gap = PACKET / self.c;
        let at = Nanos::from_secs_f64(self.follow).max(now);
        self.follow = at.as_secs_f64() + gap * count as f64;
        let plan = Plan::even(self.first, at, count, gap, LARGE);
        self.send(plan)
    }

    /// A packet alone takes L/C even where every flow has its own queue; back to back it takes its share. They leave time for the
    /// capacity's last train to drain; where that is not to be had they are left out.
    pub(super) fn small(&mut self, now: Nanos) -> Step {
        self.c = self.capacity.capacity().unwrap_or(0.0);
        if let Some(every) = self.capacity.every() {
            self.every = every;
            self.trains.values_mut().for_each(|train| *train = gather::joined(train, every));
        }
        self.next_id = self.capacity.next_id;
        let least = APART_LEAST * PACKET / self.c;
        let time = self.deadline().saturating_sub(now).as_secs_f64() * APART_SHARE / SMALL_COUNT as f64;
        let scant = self.is_scant();
        if time < least || (self.left() < 2 * OPENING.0 as u64 && !scant) {
            return self.opening(now);
        }
        let usual = time.min((APART_FAST * PACKET / self.c).min(APART_FAST_LONGEST).max(APART_SLOW * PACKET / self.c));
        // what gathers is told by them alone
        let gap = if scant { usual.max(APART_SCANT) } else { usual };
        let stream = &mut self.stream;
        let gaps: Vec<Nanos> = (1..SMALL_COUNT)
            .map(|_| Nanos::from_secs_f64(gap * stream.between(APART_JITTER.0, APART_JITTER.1)))
            .collect();
        let plan = Plan { id: self.next_id, at: now, gaps, size: SMALL_SIZE };
        self.follow = (now + plan.duration()).as_secs_f64() + gap;
        self.phase = Phase::Small;
        self.send(plan)
    }

    /// Bits that hide how a host at high rates gathers packets, and by how much their delays scatter.
    pub(super) fn floor(&self) -> f64 {
        let least = GATHERED.max(HIDES * self.noise.max(self.wander)).max(HELD * self.every) * self.c;
        least.max(BACKLOG_LEAST * PACKET).min(self.most())
    }

    /// Bits of its own that may wait; see [`Ride::limited`].
    pub(super) fn most(&self) -> f64 {
        (self.queue * self.c).max(TRAIN_SHORTEST as f64 * PACKET)
    }

    /// After so much covered time A is roughly known [s].
    pub(super) fn known(&self) -> f64 {
        KNOWN * PACKET / self.c
    }

    /// How long a train lasts [s].
    pub(super) fn train_time(&self) -> f64 {
        let packets = (TRAIN * PACKET / self.a).min(TRAIN_MOST * PACKET / self.c).max(TRAIN_LEAST * PACKET / self.a);
        let whole = packets
            .max(TRAIN_TIME)
            .max((TRAIN_LAGS * self.lag.as_secs_f64()).min(TRAIN_LAGS_MOST))
            .max(OPPORTUNITIES * self.every);
        // what the opening said may be far off
        if self.covered < self.known() { whole.min(TRAIN_UNKNOWN * PACKET / self.c).max(TRAIN_TIME) } else { whole }
    }

    /// What waits at the bottleneck at time `at` [bit], from the last report and what was sent since.
    pub(super) fn backlog(&self, at: f64) -> f64 {
        let last = self.trains.values().rev().flat_map(|train| train.packets.iter().rev());
        let Some((sent, delay)) = last.filter_map(|p| Some((p.sent, p.own_delay()?))).next() else {
            return 0.0;
        };
        let mut bits = (delay as f64 - self.base.floor.delay_at(sent.0)) / 1e9 * self.c + PACKET;
        let sent = sent.as_secs_f64();
        let mut time = sent;
        for &next in self.pending.values().flatten().filter(|&&next| next > sent && next < at) {
            bits = (bits - self.a * (next - time)).max(0.0) + PACKET;
            time = next;
        }
        (bits - self.a * (at - time)).max(0.0)
    }

    pub(super) fn ride(&mut self, now: Nanos) -> Step {
        // as long as little is known, rather too fast: a queue that is too long is seen and mended, an empty one hides
        let covered = self.covered.max(SURPLUS_COVERED * PACKET / self.c);
        let known = self.known();
        let random = ((self.c - self.a).max(0.0) * CROSS / covered).sqrt() * known / (known + covered);
        let more = (SURPLUS_ENDS * ENDS * CROSS / covered).max(SURPLUS_RANDOM * random);
        let more = more.min(SURPLUS_MOST * PACKET / self.lag.as_secs_f64().max(SURPLUS_LAG));
        // at C the queue does not run empty: if it does all the same C is more
        let rate = ((self.a + more) * (1.0 + self.boost)).min((PLANNED.1 + self.boost) * self.c);
        let step = PACKET / rate;
        let start = self.follow.max(now.as_secs_f64());
        let time = self.train_time();
        let left = self.left() as f64;
        let last = if self.overlaps() { 0.0 } else { self.lag.as_secs_f64() * LAST_REPORT };
        let end = self.deadline().as_secs_f64() - last;
        if left < TRAIN_SENSE || start + TRAIN_SENSE * step > end {
            if self.extend() {
                return self.ride(now);
            }
            self.phase = Phase::Drain;
            return self.drain(now);
        }
        let mut even = (time / step).min((end - start) / step).max(TRAIN_SENSE).min(left);
        // until a report comes the queue drifts by the error of A
        let drift = (more * self.lag.as_secs_f64()).min(BACKLOG_MOST * PACKET);
        let missing = (self.target + drift).min(ROOM_SHARE * self.limit).min(self.most()) - self.backlog(start);
        let mut gaps: Vec<f64> = Vec::new();
        let mut gap = step;
        if missing > 0.0 {
            let each = PACKET * (1.0 - HURRY * (self.a / self.c).min(1.0));
            // whoever reports may claim that any number is missing
            gaps.resize((missing / each).min(left) as usize, HURRY * PACKET / self.c);
            even = even.min((end - start - gaps.iter().sum::<f64>()) / step).max(TRAIN_SENSE);
        } else {
            // no slower than half, so that an error in the prediction does not leave the queue empty for long
            gap = (step - missing / self.a / even).min(step * (1.0 + covered / (known + covered)));
        }
        gaps.resize(gaps.len() + even as usize, gap);
        gaps.truncate(left as usize);
        self.follow = start + gaps.iter().sum::<f64>();
        gaps.pop();
        let at = Nanos::from_secs_f64(start);
        let mut sum = 0.0;
        let mut before = at;
        let gaps = gaps.into_iter().map(|gap| {
            sum += gap;
            let time = Nanos::from_secs_f64(start + sum);
            let gap = time.saturating_sub(before);
            before = time;
            gap
        });
        let plan = Plan { id: self.next_id, at, gaps: gaps.collect(), size: LARGE };
        self.send(plan)
    }
}
