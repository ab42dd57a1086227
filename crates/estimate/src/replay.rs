//! Available bandwidth by replaying a first-come-first-served queue under each train.
//!
//! With the times t_i at which packets were really sent, `q_i = max(0, q_(i-1) - A (t_i - t_(i-1))) + L` is what lies in the
//! queue behind packet i if the link leaves A to the probes, and q_i / C its delay, up to an offset that is the train's
//! own (so that the clocks need not agree). A is what makes the sum of |delay_i - q_i / C - offset| least. The trains' own A
//! are averaged, all with the same weight: weights by fit would pick the idle moments of bursty traffic. A train is cut at
//! its first loss, behind which the queue was full and the replay is wrong.
//!
//! It needs few trains and leaves the path alone between them, which is also its limit: it sees only what happens during
//! trains. `ride.rs` is the default.

use pathcast_base::{Bytes, Nanos, Stream};

use super::capacity::{MiniTrains, train_length};
use super::stat::{deviation, mean, median, student90};
use super::turns::{Answer, Turns};
use super::{Budget, Estimate, LARGE, Method, Plan, Step, TrainSeen, WhyNot};

/// A may be so much above C in the fit, so that noise around A = C averages to C and not below.
const ABOVE: f64 = 1.1;

/// Trains leave at so many times C where less than this share of it is used, else so far from A to C.
const FULL: f64 = 0.1;
const AT_FULL: (f64, f64) = (0.95, 1.07);
const BETWEEN: (f64, f64) = (0.35, 0.85);

/// A of one train [bit/s]; none if too few packets came, or the host held the train up. `capacity` in bit/s.
pub fn fit(train: &TrainSeen, capacity: f64) -> Option<f64> {
    let first_loss = train.packets.iter().position(crate::Seen::lost);
    let packets = &train.packets[..first_loss.unwrap_or(train.packets.len())];
    if packets.len() < 5 || held_up(packets.iter().map(|p| p.sent.0)) {
        return None;
    }
    let origin = packets[0].delay()?;
    let points: Vec<(f64, f64, Option<f64>)> = packets
        .iter()
        .map(|p| (p.sent.as_secs_f64(), f64::from(p.size) * 8.0, p.own_delay().map(|d| (d - origin) as f64 / 1e9)))
        .collect();
    let cost = |a: f64| {
        let (mut queue, mut time) = (0.0f64, points[0].0);
        let residues: Vec<f64> = points
            .iter()
            .filter_map(|&(sent, bits, delay)| {
                queue = (queue - a * (sent - time)).max(0.0) + bits;
                time = sent;
                delay.map(|delay| delay - queue / capacity)
            })
            .collect();
        let offset = median(&residues).unwrap_or(0.0);
        residues.iter().map(|r| (r - offset).abs()).sum::<f64>()
    };
    // a grid first: the cost need not have one valley
    let step = ABOVE * capacity / 40.0;
    let best = (0..=40).map(|k| k as f64 * step).min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
    let (mut low, mut high) = ((best - step).max(0.0), best + step);
    for _ in 0..30 {
        let (a, b) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
        if cost(a) <= cost(b) { high = b } else { low = a }
    }
    Some((low + high) / 2.0)
}

/// Whether a gap is longer than 6 times the median one and 3 ms.
fn held_up(sent: impl Iterator<Item = u64> + Clone) -> bool {
    let gaps: Vec<f64> = sent.clone().zip(sent.skip(1)).map(|(a, b)| b.saturating_sub(a) as f64).collect();
    let usual = median(&gaps).unwrap_or(0.0);
    gaps.iter().any(|&gap| gap > 6.0 * usual && gap > 3e6)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Replay {
    capacity: MiniTrains,
    turns: Turns,
    stream: Stream,
    trains: usize,
    length: usize,
    measured: Vec<f64>,
    answered: usize,
    c: Option<f64>,
    free_at: Nanos,
    /// Its time, and until when no train may last longer.
    time: Nanos,
    until: Option<Nanos>,
}

impl Replay {
    /// A fifth of the budget for the capacity, then `trains` trains of `length` packets (longer at high rates).
    pub fn new(budget: Budget, trains: usize, length: usize, seed: u64) -> Self {
        let fifth = Bytes(budget.bytes.0 / 5);
        Replay {
            capacity: MiniTrains::new(Budget { bytes: fifth, ..budget }, 8, seed),
            turns: Turns::new(Budget { bytes: Bytes(budget.bytes.0 - fifth.0), ..budget }),
            stream: Stream::new(seed, "estimate/replay"),
            trains,
            length,
            measured: Vec::new(),
            answered: 0,
            c: None,
            free_at: Nanos::ZERO,
            time: budget.time,
            until: None,
        }
    }

    /// The capacity that it has found.
    pub fn capacity(&self) -> Estimate {
        self.capacity.estimate()
    }
}

impl Method for Replay {
    fn next(&mut self, now: Nanos) -> Step {
        let until = *self.until.get_or_insert(now + self.time);
        let c = match self.c {
            Some(c) => c,
            None => match self.capacity.next(now) {
                Step::Done => match self.capacity.filter().capacity() {
                    Some(c) => *self.c.insert(c),
                    None => return Step::Done,
                },
                step => return step,
            },
        };
        match self.turns.answer(now) {
            Answer::Wait(until) => return Step::Wait(until),
            Answer::Took(Some(train)) => {
                self.answered += 1;
                self.measured.extend(fit(&train, c));
            }
            Answer::Took(None) | Answer::Idle => {}
        }
        let length = self.length.max(if c >= 5e7 { train_length(c).max(100) } else { 0 });
        let a = mean(&self.measured).unwrap_or(c / 2.0).clamp(0.0, c);
        let full = c - a < FULL * c;
        let slowest = if full { AT_FULL.0 * c } else { a + BETWEEN.0 * (c - a) };
        let lasts = Nanos::from_secs_f64(f64::from(LARGE) * 8.0 * length as f64 / slowest);
        let done = self.answered >= self.trains || now.max(self.free_at) + lasts > until;
        if done || !self.turns.affords(now, length as u64 * u64::from(LARGE)) {
            return Step::Done;
        }
        if now < self.free_at {
            return Step::Wait(self.free_at);
        }
        let rate = if full {
            self.stream.between(AT_FULL.0, AT_FULL.1) * c
        } else {
            a + self.stream.between(BETWEEN.0, BETWEEN.1) * (c - a)
        };
        let gap = f64::from(LARGE) * 8.0 / rate;
        let pause = gap * length as f64 * self.stream.between(1.3, 1.7);
        self.free_at = now + Nanos::from_secs_f64(pause);
        let patience = self.turns.patience();
        self.turns.send(now, length, gap, LARGE, patience).with_id(|id| id + self.capacity.next_id)
    }

    fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        match train.id.checked_sub(self.capacity.next_id) {
            Some(id) => self.turns.observe(now, &TrainSeen { id, ..train.clone() }),
            None => self.capacity.observe(now, train),
        }
    }

    /// The interval is that of a mean over trains.
    fn estimate(&self) -> Estimate {
        let bytes = self.capacity.estimate().bytes.0 + self.turns.bytes();
        let (Some(value), Some(c)) = (mean(&self.measured), self.c) else {
            let why = match self.answered {
                0 => WhyNot::NoAnswer,
                _ => WhyNot::HostTooSlow,
            };
            return Estimate::none(why, bytes);
        };
        let n = self.measured.len();
        let half = student90(n - 1) * deviation(&self.measured).unwrap_or(value) / (n as f64).sqrt() + 0.005 * c;
        let mut estimate = Estimate::of(value.min(c), (value - half).max(0.0), (value + half).min(ABOVE * c), bytes);
        estimate.why_not = match n {
            0..3 => Some(WhyNot::TooFew),
            _ if n * 2 < self.answered => Some(WhyNot::HostTooSlow),
            _ => None,
        };
        estimate
    }
}

impl Step {
    fn with_id(self, id: impl Fn(u64) -> u64) -> Step {
        match self {
            Step::Send(plan) => Step::Send(Plan { id: id(plan.id), ..plan }),
            step => step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fluid, train};
    use super::*;

    /// Student's t times the standard error of the trains' mean, and half a percent of C.
    #[test]
    fn the_interval_is_that_of_a_mean() {
        let mut replay = Replay::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(10) }, 20, 30, 1);
        (replay.c, replay.measured, replay.answered) = (Some(5e6), vec![2.9e6, 3e6, 3.1e6], 6);
        let estimate = replay.estimate();
        let half = 2.920 * 0.1e6 / 3f64.sqrt() + 0.005 * 5e6;
        let exact = [3e6, 3e6 - half, 3e6 + half];
        for (ours, exact) in [estimate.value_bps.unwrap(), estimate.low_bps, estimate.high_bps].into_iter().zip(exact) {
            assert!((ours - exact).abs() < 1.0, "{estimate:?} {exact}");
        }
        // half of the trains that were answered must say something, and three at least
        assert_eq!(estimate.why_not, None);
        replay.answered = 7;
        assert_eq!(replay.estimate().why_not, Some(WhyNot::HostTooSlow));
        (replay.measured, replay.answered) = (vec![3e6; 2], 2);
        assert_eq!(replay.estimate().why_not, Some(WhyNot::TooFew));
        // no more than C, nor an end above what the fit may find
        replay.measured = vec![5.4e6; 4];
        let estimate = replay.estimate();
        assert_eq!((estimate.value_bps, estimate.high_bps), (Some(5e6), 5e6 * ABOVE.min(1.085)));
    }

    /// Trains leave between A and C, nearer to neither end than a seventh of what is between; where A is C about it.
    #[test]
    fn trains_leave_between_what_is_free_and_the_capacity() {
        for (a, low, high) in [(3e6, 3.7e6, 4.7e6), (4.8e6, 4.75e6, 5.35e6)] {
            let rates: Vec<f64> = (0..50)
                .map(|seed| {
                    let budget = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(10) };
                    let mut replay = Replay::new(budget, 20, 30, seed);
                    (replay.c, replay.measured) = (Some(5e6), vec![a]);
                    let Step::Send(plan) = replay.next(Nanos::secs(1)) else { panic!("no train") };
                    assert_eq!(plan.gaps.len(), 29);
                    f64::from(LARGE) * 8.0 / plan.gaps[0].as_secs_f64()
                })
                .collect();
            let (least, most) =
                (rates.iter().copied().fold(f64::MAX, f64::min), rates.iter().copied().fold(0.0, f64::max));
            let wide = high - low;
            assert!((low - 1e3..low + 0.2 * wide).contains(&least), "{a}: {least} to {most}");
            assert!((high - 0.2 * wide..high + 1e3).contains(&most), "{a}: {least} to {most}");
        }
    }

    #[test]
    fn a_fluid_is_fitted_exactly_at_any_rate_above_it() {
        for (cross, rate) in [(0.0, 5.2e6), (1.5e6, 4e6), (3e6, 2.5e6), (3e6, 5e6)] {
            let plan = Plan::even(0, Nanos::secs(1), 30, f64::from(LARGE) * 8.0 / rate, LARGE);
            let a = fit(&Fluid::new(5e6, cross, 0.02).carry(&plan), 5e6).unwrap();
            assert!((a - (5e6 - cross)).abs() < 2e4, "{cross} {rate}: {a}");
        }
    }

    #[test]
    fn a_train_is_cut_at_its_first_loss_and_dropped_when_held_up() {
        let plan = Plan::even(0, Nanos::secs(1), 30, f64::from(LARGE) * 8.0 / 4e6, LARGE);
        let mut seen = Fluid::new(5e6, 2e6, 0.02).carry(&plan);
        for packet in &mut seen.packets[20..] {
            packet.received = packet.received.map(|at| at - Nanos::millis(3));
        }
        seen.packets[20].received = None;
        assert!((fit(&seen, 5e6).unwrap() - 3e6).abs() < 2e4);
        seen.packets[3].received = None;
        assert_eq!(fit(&seen, 5e6), None);
        let sent: Vec<u64> = (0..10).map(|i| i * 100_000 + u64::from(i > 5) * 4_000_000).collect();
        let received: Vec<_> = sent.iter().map(|&t| Some(t + 1000)).collect();
        assert_eq!(fit(&train(0, 1400, &sent, &received), 5e6), None);
    }

    /// At 30 kbit/s the capacity takes most of the time.
    #[test]
    fn the_time_is_for_all_of_it() {
        for (c, time) in [(30e3, 20), (30e3, 30), (100e3, 12), (5e6, 2)] {
            let budget = Budget { bytes: Bytes(2_000_000), time: Nanos::secs(time) };
            let (_, end) = Fluid::new(c, 0.3 * c, 0.02).run(&mut Replay::new(budget, 200, 20, 1));
            // it begins at 1 s, and waits for the last report
            let took = end.as_secs_f64() - 1.0;
            assert!(took < 1.1 * time as f64, "{c} {time}: {took}");
        }
    }

    #[test]
    fn the_method_finds_a_and_keeps_to_its_budget() {
        let budget = Budget { bytes: Bytes(900_000), time: Nanos::secs(5) };
        let (estimate, _) = Fluid::new(5e6, 1.5e6, 0.02).run(&mut Replay::new(budget, 10, 20, 1));
        assert!((estimate.value_bps.unwrap() / 3.5e6 - 1.0).abs() < 0.005, "{estimate:?}");
        assert!(estimate.bytes <= budget.bytes && estimate.why_not.is_none());
    }
}
