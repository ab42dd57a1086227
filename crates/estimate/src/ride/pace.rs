//! What the ride sends next: the train that keeps the queue at its target.

use pathcast_base::Nanos;

use super::super::{LARGE, Plan, Step};
use super::balance::{CROSS, ENDS};
use super::{BACKLOG, PACKET, Phase, Ride, SMALL};

/// The gap of packets that make the queue longer, as a share of L/C. Not zero: a narrow link before the tight one would
/// queue them, and its queue says nothing.
const HURRY: f64 = 0.8;

/// Small packets are so many L/C apart: at least; usually on slow lines and on fast ones; and take no more than this share of the time
/// left.
const ALONE: (f64, (f64, f64), f64) = (1.2, (1.5, 2.5), 0.15);

/// Where that is no longer than this [s] they may be as far apart as on fast lines.
const SOON: f64 = 0.01;

/// Packets of the opening train, at least and at most.
const OPENING: (usize, usize) = (12, 200);

impl Ride {
    /// Packets that the budget still has.
    fn left(&self) -> u64 {
        self.budget.bytes.0.saturating_sub(self.bytes) / u64::from(LARGE)
    }

    pub(super) fn opening(&mut self, now: Nanos) -> Step {
        self.find_base();
        self.lag = self.capacity.lag();
        self.first = self.next_id;
        self.target = self.floor().max(BACKLOG.0 * PACKET);
        self.phase = Phase::Opening;
        let count = ((2e-3 * self.c / PACKET) as usize).clamp(OPENING.0, OPENING.1).min(self.left() as usize);
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
        self.c = self.capacity.filter().capacity().unwrap_or(0.0);
        self.next_id = self.capacity.next_id;
        let least = ALONE.0 * PACKET / self.c;
        let time = self.deadline().saturating_sub(now).as_secs_f64() * ALONE.2 / SMALL.0 as f64;
        if time < least || self.left() < 2 * OPENING.0 as u64 {
            return self.opening(now);
        }
        let gap = time.min((ALONE.1.1 * PACKET / self.c).min(SOON).max(ALONE.1.0 * PACKET / self.c));
        let stream = &mut self.stream;
        let gaps: Vec<Nanos> = (1..SMALL.0).map(|_| Nanos::from_secs_f64(gap * stream.between(0.7, 1.3))).collect();
        let plan = Plan { id: self.next_id, at: now, gaps, size: SMALL.1 };
        self.follow = (now + plan.duration()).as_secs_f64() + gap;
        self.phase = Phase::Small;
        self.send(plan)
    }

    /// Bits that hide how a host at high rates gathers packets.
    pub(super) fn floor(&self) -> f64 {
        (0.3e-3 * self.c).max(BACKLOG.1 * PACKET)
    }

    /// After so much covered time A is roughly known [s].
    pub(super) fn known(&self) -> f64 {
        50.0 * PACKET / self.c
    }

    /// How long a train lasts [s].
    pub(super) fn train_time(&self) -> f64 {
        let packets = (12.0 * PACKET / self.a).min(60.0 * PACKET / self.c).max(4.0 * PACKET / self.a);
        let whole = packets.max(4e-3).max(0.5 * self.lag.as_secs_f64());
        // what the opening said may be far off
        if self.covered < self.known() { whole.min(40.0 * PACKET / self.c).max(4e-3) } else { whole }
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
        let covered = self.covered.max(10.0 * PACKET / self.c);
        let known = self.known();
        let random = ((self.c - self.a).max(0.0) * CROSS / covered).sqrt() * known / (known + covered);
        let more = (1.5 * ENDS * CROSS / covered).max(0.7 * random);
        let more = more.min(10.0 * PACKET / self.lag.as_secs_f64().max(1e-3));
        // at C the queue does not run empty: if it does all the same C is more
        let rate = ((self.a + more) * (1.0 + self.boost)).min((1.02 + self.boost) * self.c);
        let step = PACKET / rate;
        let start = self.follow.max(now.as_secs_f64());
        let time = self.train_time();
        let left = self.left();
        let end = self.deadline().as_secs_f64() - self.lag.as_secs_f64() * 1.1;
        if left < 3 || start + 3.0 * step > end {
            if self.extend() {
                return self.ride(now);
            }
            self.phase = Phase::Drain;
            return self.drain(now);
        }
        let even = (time / step).min((end - start) / step).max(3.0);
        // until a report comes the queue drifts by the error of A
        let drift = (more * self.lag.as_secs_f64()).min(BACKLOG.2 * PACKET);
        let missing = (self.target + drift).min(0.5 * self.limit) - self.backlog(start);
        let mut gaps: Vec<f64> = Vec::new();
        let mut gap = step;
        if missing > 0.0 {
            let each = PACKET * (1.0 - HURRY * (self.a / self.c).min(1.0));
            gaps.resize((missing / each) as usize, HURRY * PACKET / self.c);
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
