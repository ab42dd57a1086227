//! Trains for tests: given stamps, or through a first-come-first-served queue with a steady flow beside them.

use pathcast_base::Nanos;

use super::{Estimate, Method, Plan, Seen, Step, TrainSeen};
use crate::Batch;

/// A train of these stamps [ns].
pub fn train(id: u64, size: u16, sent: &[u64], received: &[Option<u64>]) -> TrainSeen {
    let seen = |(&sent, &received): (&u64, &Option<u64>)| Seen {
        size,
        sent: Nanos(sent),
        received: received.map(Nanos),
        batch: Batch::SINGLE,
        missed: false,
    };
    TrainSeen { id, packets: sent.iter().zip(received).map(seen).collect() }
}

/// A queue that a fluid of `cross` bit/s shares; what a packet finds in it is exact.
pub struct Fluid {
    /// [bit/s].
    pub capacity: f64,
    /// What flows beside the trains [bit/s].
    pub cross: f64,
    /// One way [s].
    pub delay: f64,
    /// Bits in the queue at `time` [s].
    backlog: f64,
    time: f64,
}

impl Fluid {
    /// An empty queue; rates in bit/s, `delay` in seconds.
    pub fn new(capacity: f64, cross: f64, delay: f64) -> Self {
        Fluid { capacity, cross, delay, backlog: 0.0, time: 0.0 }
    }

    /// What becomes of a train.
    pub fn carry(&mut self, plan: &Plan) -> TrainSeen {
        let (mut sent, mut received) = (vec![plan.at.0], Vec::new());
        for gap in &plan.gaps {
            sent.push(sent[sent.len() - 1] + gap.0);
        }
        for &at in &sent {
            let at = at as f64 / 1e9;
            self.backlog = (self.backlog - (self.capacity - self.cross) * (at - self.time)).max(0.0);
            self.time = at;
            self.backlog += f64::from(plan.size) * 8.0;
            let leaves = at + self.backlog / self.capacity;
            received.push(Some(((leaves + self.delay) * 1e9) as u64 + OFFSET));
        }
        train(plan.id, plan.size, &sent, &received)
    }

    /// Runs a method to its end, as [`run`] does.
    pub fn run(&mut self, method: &mut dyn Method) -> (Estimate, Nanos) {
        let delay = Nanos::from_secs_f64(self.delay);
        run(|plan| self.carry(plan), delay, method)
    }
}

/// A host that hands over a packet no sooner than so long after the one before, to a [`Fluid`].
pub struct SlowHost {
    /// [s].
    pub takes: f64,
    /// What it sends over.
    pub line: Fluid,
}

impl SlowHost {
    /// Runs a method to its end, as [`run`] does.
    pub fn run(&mut self, method: &mut dyn Method) -> (Estimate, Nanos) {
        let SlowHost { takes, line } = self;
        let (takes, delay) = (Nanos::from_secs_f64(*takes), Nanos::from_secs_f64(line.delay));
        let mut handed = Nanos::ZERO;
        let carry = |plan: &Plan| {
            let mut due = plan.at;
            let mut times = Vec::new();
            for gap in plan.gaps.iter().copied().chain([Nanos::ZERO]) {
                handed = due.max(handed + takes);
                times.push(handed);
                due += gap;
            }
            let gaps = times.windows(2).map(|w| w[1] - w[0]).collect();
            line.carry(&Plan { at: times[0], gaps, ..plan.clone() })
        };
        run(carry, delay, method)
    }
}

/// The receiver's clock less the sender's [ns].
pub const OFFSET: u64 = 1_000_000_000_000;

/// A first-come-first-served link that lets packets gather: what it is done with leaves at the next multiple of `every`, all at
/// once; what a bucket of `police` (rate [bit/s], burst [bit]) has no tokens for it drops before.
pub struct Gathering {
    /// [bit/s].
    pub capacity: f64,
    /// [s]; zero: nothing gathers.
    pub every: f64,
    /// One way [s].
    pub delay: f64,
    /// Rate [bit/s] and burst [bit].
    pub police: Option<(f64, f64)>,
    /// Until when it is busy, and tokens at a time.
    free: f64,
    tokens: (f64, f64),
}

impl Gathering {
    /// An idle link with a full bucket.
    pub fn new(capacity: f64, every: f64, delay: f64, police: Option<(f64, f64)>) -> Self {
        Gathering { capacity, every, delay, police, free: 0.0, tokens: (0.0, police.map_or(0.0, |police| police.1)) }
    }

    /// What becomes of a train.
    pub fn carry(&mut self, plan: &Plan) -> TrainSeen {
        let (mut sent, mut received) = (vec![plan.at.0], Vec::new());
        for gap in &plan.gaps {
            sent.push(sent[sent.len() - 1] + gap.0);
        }
        let bits = f64::from(plan.size) * 8.0;
        for &at in &sent {
            let at = at as f64 / 1e9;
            if let Some((rate, burst)) = self.police {
                let tokens = (self.tokens.1 + rate * (at - self.tokens.0)).min(burst);
                self.tokens = (at, if tokens < bits { tokens } else { tokens - bits });
                if tokens < bits {
                    received.push(None);
                    continue;
                }
            }
            self.free = self.free.max(at) + bits / self.capacity;
            let leaves = if self.every > 0.0 { (self.free / self.every).ceil() * self.every } else { self.free };
            received.push(Some(((leaves + self.delay) * 1e9) as u64 + OFFSET));
        }
        train(plan.id, plan.size, &sent, &received)
    }

    /// Runs a method to its end, as [`run`] does.
    pub fn run(&mut self, method: &mut dyn Method) -> (Estimate, Nanos) {
        let delay = Nanos::from_secs_f64(self.delay);
        run(|plan| self.carry(plan), delay, method)
    }
}

/// Runs a method to its end; it never waits longer than it asked for. Reports take `delay`; a train of which nothing came has none.
///
/// # Panics
/// If it does not end.
pub(crate) fn run(
    mut carry: impl FnMut(&Plan) -> TrainSeen,
    delay: Nanos,
    method: &mut dyn Method,
) -> (Estimate, Nanos) {
    let mut now = Nanos::secs(1);
    let mut reports: Vec<(Nanos, TrainSeen)> = Vec::new();
    for _ in 0..200_000 {
        match method.next(now) {
            Step::Send(plan) | Step::Beside(plan) => {
                let plan = Plan { at: plan.at.max(now), ..plan };
                let seen = carry(&plan);
                if let Some(last) = seen.packets.iter().filter_map(|packet| packet.received).max() {
                    reports.push((Nanos(last.0 - OFFSET) + delay, seen));
                }
                reports.sort_by_key(|r| r.0);
            }
            Step::Wait(until) => match reports.first().filter(|r| r.0 <= until) {
                Some(_) => {
                    let (at, seen) = reports.remove(0);
                    now = now.max(at);
                    method.observe(now, &seen);
                }
                None => now = now.max(until),
            },
            Step::Done => return (method.estimate(), now),
        }
    }
    panic!("it does not end");
}
