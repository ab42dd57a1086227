//! Bottleneck capacity from short trains, robust to cross traffic and to small token buckets.
//!
//! Packets that leave the bottleneck back to back are L/C apart. What lies between them when they have been in the queue
//! with cross traffic is filtered as in CapProbe (Kapoor, Chen, Lao, Gerla, Sanadidi, "CapProbe: a simple and accurate
//! capacity estimation technique", SIGCOMM 2004): of all pairs the one with the smallest sum of delays has waited for
//! nobody. A token bucket lets a pair's first packets pass on saved tokens, so trains of five are sent instead of pairs, the
//! first gap of each is dropped, every other gap's position is filtered on its own, and the positions' median counts.
//!
//! Symbols: L = packet size, C = capacity, k = position of a gap in its train.

use pathcast_base::{Nanos, Stream};

pub use super::dispersion::Filter;
use super::gather::{self, Gather, at_once};
use super::series::NOTHING;
use super::stat::{median, quantile};
use super::{Budget, Estimate, LARGE, Method, Plan, Step, TrainSeen, WhyNot};

/// Packets of a train.
pub const TRAIN: usize = 5;

/// What two clocks' rates may differ, and the share of the stamps' noise that is left in a median of positions.
const CLOCKS: f64 = 1e-4;
const STAMPS: f64 = 0.4;

/// As long as no train has a gap the next one is twice as long, so often: where some were lost, and where all came.
const DOUBLED: [usize; 2] = [4, 7];

/// Fewer trains are not to be trusted.
const LEAST: usize = 3;

/// From one train to the next at least, twice as long each time up to a limit [s]: delays that wander do so for some time, and all trains
/// of it are stretched alike.
const APART_FIRST: f64 = 0.75e-3;
const APART: f64 = 20e-3;

/// See [`MiniTrains::is_brief`].
const BRIEF: usize = 3;

/// A link that lets packets gather is known by so many times as many trains at the most, of so many packets at the most.
const GATHERED_TRAINS: usize = 3;
const GATHERED_MOST: usize = 700;
/// A train that is to tell whether it does has so many at least.
const HINTED: usize = 20;

/// Packets of a train at a rate [bit/s]: five, and at high rates so many that they last several times as long as the
/// receiving host may gather packets before it stamps them.
pub fn train_length(capacity: f64) -> usize {
    let gather = 1.5e-3;
    ((gather * capacity / (f64::from(LARGE) * 8.0)) as usize).clamp(TRAIN, 125)
}

/// The trains: one alone, to learn the rate; then the others as closely as the queue they make allows.
#[derive(Clone, Debug)]
pub struct MiniTrains {
    budget: Budget,
    trains: usize,
    /// See [`MiniTrains::limited`].
    queue: f64,
    stream: Stream,
    filter: Filter,
    gather: Gather,
    started: Option<Nanos>,
    /// When the next train may be sent.
    free_at: Nanos,
    sent: usize,
    seen: usize,
    /// Packets of the longest train, and whether it was sent for those before it were brief: it has as much time again.
    longest: usize,
    again: bool,
    /// Trains that were answered or given up before the rate was known.
    lost: usize,
    last_end: Nanos,
    /// From a train's last packet to its report, the longest so far [ns].
    lag: Nanos,
    /// And the shortest [ns].
    least_lag: Nanos,
    bytes: u64,
    pub(super) next_id: u64,
}

impl MiniTrains {
    /// `trains` trains, and more if they leave it open, within the budget.
    pub fn new(budget: Budget, trains: usize, seed: u64) -> Self {
        MiniTrains {
            budget,
            trains,
            queue: f64::INFINITY,
            stream: Stream::new(seed, "estimate/capacity"),
            filter: Filter::default(),
            gather: Gather::default(),
            started: None,
            free_at: Nanos::ZERO,
            sent: 0,
            seen: 0,
            longest: 0,
            again: false,
            lost: 0,
            last_end: Nanos::ZERO,
            lag: Nanos::ZERO,
            least_lag: Nanos::MAX,
            bytes: 0,
            next_id: 0,
        }
    }

    /// The same, but no train has more packets than leave in so long [s], as far as that is known, or the shortest has.
    pub(super) fn limited(self, queue: f64) -> Self {
        MiniTrains { queue, ..self }
    }

    /// Another budget and number of trains from now on.
    pub fn bound(&mut self, budget: Budget, trains: usize) {
        (self.budget, self.trains) = (budget, trains);
    }

    /// What was seen so far.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// C as far as it is known [bit/s].
    pub fn capacity(&self) -> Option<f64> {
        if self.every().is_some() { self.gather.capacity() } else { self.filter.capacity() }
    }

    /// From one opportunity of a link that lets packets gather to the next [s].
    pub fn every(&self) -> Option<f64> {
        self.gather.every()
    }

    /// C and half of its 90 % interval [bit/s], where the way stretches trains and compresses them.
    pub(super) fn stretched(&self) -> Option<(f64, f64)> {
        self.filter.stretched().filter(|_| self.every().is_none())
    }

    /// Whether packets came in clumps, of which more would be needed to know how often.
    pub(super) fn is_clumped(&self) -> bool {
        self.gather.is_clumped()
    }

    /// From a train's last packet to its report, the longest so far [ns].
    pub fn lag(&self) -> Nanos {
        self.lag
    }

    /// The same, the shortest; none: no time [ns].
    pub(super) fn least_lag(&self) -> Nanos {
        self.least_lag.min(self.lag)
    }

    /// Whether the rate is known, and the trains that were to be sent have gone out over the line.
    pub(super) fn is_sent(&self, now: Nanos) -> bool {
        let gathers = self.every().is_some() || self.gather.is_hinted();
        self.filter.capacity().is_some() && !gathers && now >= self.free_at
    }

    /// Whether all trains are the shortest, or what a hint asked for, and the rate asks for so many times as long ones: the first had shown a
    /// lower rate, and what came at one opportunity of a link that lets packets gather is then no rate.
    pub(super) fn is_brief(&self) -> bool {
        let most = if self.gather.was_hinted() { HINTED } else { TRAIN };
        self.longest <= most && self.capacity().is_some_and(|c| BRIEF * self.longest < train_length(c))
    }

    /// How long to wait for a report that does not come.
    fn patience(&self) -> Nanos {
        if self.seen == 0 { Nanos::millis(2000) } else { Nanos(self.lag.0 * 2) + Nanos::millis(50) }
    }

    fn send(&mut self, now: Nanos) -> Step {
        let capacity = self.capacity();
        let left = (self.budget.bytes.0.saturating_sub(self.bytes) / u64::from(LARGE)) as usize;
        let count = match self.gather.train_length() {
            Some(length) => length.min(GATHERED_MOST).min(left).max(TRAIN),
            None if self.gather.is_hinted() => capacity.map_or(TRAIN, train_length).max(HINTED),
            // what comes in one batch has no gap: the next one is longer, and longest where nobody lost any
            None => capacity.map_or(TRAIN << self.sent.min(DOUBLED[usize::from(self.lost == 0)]), train_length),
        };
        // what is left is for three trains at least
        let count = count.min(left / LEAST.saturating_sub(self.sent).max(1));
        let most = capacity.map_or(usize::MAX, |c| (self.queue * c / (f64::from(LARGE) * 8.0)) as usize);
        let count = count.min(most).max(TRAIN);
        let gap = capacity.map_or(0.0, |c| count as f64 * f64::from(LARGE) * 8.0 / c);
        let at = now.max(self.free_at);
        // half again its own time on the line, with a random part so that no period of the cross traffic is met in step
        let apart = gap.max(APART.min(APART_FIRST * f64::from(1u32 << self.sent.min(10))));
        self.free_at = at + Nanos::from_secs_f64(apart * self.stream.between(1.2, 1.8));
        let plan = Plan { id: self.next_id, at, gaps: vec![Nanos::ZERO; count - 1], size: LARGE };
        self.last_end = at;
        self.next_id += 1;
        self.sent += 1;
        self.longest = self.longest.max(count);
        self.bytes += plan.bytes();
        Step::Send(plan)
    }
}

impl Method for MiniTrains {
    fn next(&mut self, now: Nanos) -> Step {
        let started = *self.started.get_or_insert(now);
        let patience = self.last_end + self.patience();
        let affordable = self.bytes + (TRAIN as u64 * u64::from(LARGE)) <= self.budget.bytes.0;
        let brief = self.is_brief() && self.seen == self.sent;
        let until = started + self.budget.time * if brief || self.again { 2 } else { 1 };
        let late = now >= until;
        if late || (self.lost >= 3 && self.seen == 0) {
            return Step::Done;
        }
        if self.sent == 0 {
            return self.send(now);
        }
        let gathers = self.every().is_some();
        let trains = if gathers { GATHERED_TRAINS * self.trains } else { self.trains };
        if self.capacity().is_none() || (gathers && self.gather.rates().len() < gather::TRAINS) {
            // alone until one is answered
            if now < patience && self.seen + self.lost < self.sent {
                return Step::Wait(patience);
            }
            self.lost = self.sent - self.seen;
            if !affordable || self.sent >= trains {
                return Step::Done;
            }
            return self.send(now);
        }
        let time_left = self.free_at + self.lag < until;
        if self.sent < self.trains && affordable && time_left {
            return self.send(now);
        }
        // more, and twice as many for positions that differ, only if those in flight do not settle it, as far as they can be waited for without losing time
        let known = self.seen == self.sent || self.lag > Nanos::millis(200);
        let ask = !gathers
            && (self.is_brief() || !self.filter.settled() || (self.sent < 2 * self.trains && !self.filter.agrees()));
        if known && self.seen >= self.trains && ask && affordable && time_left {
            self.again |= brief;
            return self.send(now);
        }
        if self.seen < self.sent && now < patience.max(self.free_at) {
            // whoever does not wait for the reports is asked when the line is free
            return Step::Wait(if now < self.free_at { self.free_at } else { patience });
        }
        Step::Done
    }

    fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        let last = train.packets.last().map_or(now, |packet| packet.sent);
        let lag = now.saturating_sub(last);
        (self.lag, self.least_lag) = (self.lag.max(lag), self.least_lag.min(lag));
        self.seen += 1;
        let train = at_once(train);
        self.filter.add(&train);
        self.gather.add(&train);
    }

    /// The interval is that of the positions, and never less than the stamps and the clocks allow.
    fn estimate(&self) -> Estimate {
        let gathers = self.every().is_some();
        let rates = if gathers { self.gather.rates() } else { self.filter.by_position() };
        // of trains that are too short one by one
        let pooled = self.gather.pooled().filter(|_| gathers && rates.len() < gather::TRAINS);
        let first = if gathers { self.capacity() } else { median(&rates) };
        let Some(value) = first else {
            let why = if self.seen == 0 { WhyNot::NoAnswer } else { WhyNot::TooFew };
            return Estimate::none(why, self.bytes);
        };
        let (low, high) = (quantile(&rates, 0.05).unwrap_or(value), quantile(&rates, 0.95).unwrap_or(value));
        let agreed = self.filter.agreed().filter(|_| !gathers);
        let (value, low, high) = match (agreed, self.stretched().or(pooled)) {
            (Some(value), _) => (value, value, value),
            (None, Some((value, half))) => (value, value - half, value + half),
            (None, None) => (value, low, high),
        };
        let service = f64::from(LARGE) * 8.0 / value;
        let least = (CLOCKS + STAMPS * NOTHING / service).min(0.005);
        let mut estimate =
            Estimate::of(value, low.min(value * (1.0 - least)), high.max(value * (1.0 + least)), self.bytes);
        if self.seen < LEAST {
            estimate.why_not = Some(WhyNot::TooFew);
        } else if high > 1.3 * low && median(&rates).is_some_and(|m| high > 1.15 * m && low < 0.85 * m) {
            estimate.why_not = Some(WhyNot::Inconsistent);
        }
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fluid, train};
    use super::*;
    use pathcast_base::Bytes;

    #[test]
    fn from_100_kbit_to_1_gbit_within_the_budget() {
        for capacity in [100e3, 5e6, 100e6, 1e9] {
            let budget = Budget { bytes: Bytes(80_000), time: Nanos::secs(10) };
            let (estimate, _) = Fluid::new(capacity, 0.0, 0.01).run(&mut MiniTrains::new(budget, 8, 1));
            assert!((estimate.value_bps.unwrap() / capacity - 1.0).abs() < 1e-3, "{capacity} {estimate:?}");
            assert!(estimate.bytes <= Bytes(80_000 + 125 * 1400), "{estimate:?}");
        }
    }

    /// Two clocks' rates, and what is left of the stamps' noise: of 20 us beside L/C = 2.24 ms.
    #[test]
    fn the_interval_is_never_less_than_stamps_and_clocks_allow() {
        let budget = Budget { bytes: Bytes(80_000), time: Nanos::secs(10) };
        let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut MiniTrains::new(budget, 8, 1));
        let least = 1e-4 + 0.4 * 20e-6 / 2.24e-3;
        for (ours, exact) in [(estimate.low_bps, 5e6 * (1.0 - least)), (estimate.high_bps, 5e6 * (1.0 + least))] {
            assert!((ours / exact - 1.0).abs() < 1e-5, "{estimate:?} {exact}");
        }
    }

    /// The second train's report is waited for twice as long as the first one took, and 50 ms.
    #[test]
    fn patience_follows_the_first_report() {
        let mut method = MiniTrains::new(Budget { bytes: Bytes(80_000), time: Nanos::secs(60) }, 8, 1);
        assert!(matches!(method.next(Nanos(0)), Step::Send(_)));
        // all in one batch: no gap, so no capacity
        let mut seen = train(0, LARGE, &[0, 0, 0, 0, 0], &[Some(1_000_000); 5]);
        for (index, packet) in (0..5).zip(&mut seen.packets) {
            packet.batch = crate::Batch { index, of: 5 };
        }
        method.observe(Nanos::secs(1), &seen);
        assert!(matches!(method.next(Nanos::secs(1)), Step::Send(_)));
        assert_eq!(method.next(Nanos::millis(1600)), Step::Wait(Nanos::millis(3050)));
    }

    #[test]
    fn a_train_lasts_as_long_as_hosts_gather() {
        // 1.5 ms, and five packets at least
        assert_eq!([1e6, 5e6, 100e6, 500e6, 1e9].map(train_length), [5, 5, 13, 66, 125]);
    }

    /// Of positions that differ by more than a third, to both sides of the middle, none is believed.
    #[test]
    fn positions_that_contradict_each_other_are_said() {
        let of = |rates: [f64; 3]| {
            let budget = Budget { bytes: Bytes(80_000), time: Nanos::secs(10) };
            let mut method = MiniTrains::new(budget, 3, 1);
            let mut at = vec![Some(0), Some(1_000_000)];
            let mut last = 1e6;
            for rate in rates {
                last += 1400.0 * 8e9 / rate;
                at.push(Some(last as u64));
            }
            for id in 0..3 {
                method.observe(Nanos::secs(1), &train(id, 1400, &[0; 5], &at));
            }
            method.estimate().why_not
        };
        assert_eq!(of([4e6, 5e6, 6.5e6]), Some(WhyNot::Inconsistent));
        assert_eq!(of([4e6, 5e6, 5.4e6]), None, "high / low is 1.31, but the upper end is near");
        assert_eq!(of([4.7e6, 5e6, 6.5e6]), None, "the lower end is near");
        assert_eq!(of([4.6e6, 5e6, 5.6e6]), None);
    }

    /// Where no pair has waited for nobody more trains are asked for once all are answered, or at once if an answer takes long.
    #[test]
    fn more_trains_are_asked_for_at_once_only_on_a_long_path() {
        let gap = 2_240_000;
        for (lag, seen, more) in [(201, 2, true), (200, 2, false), (200, 3, true)] {
            let budget = Budget { bytes: Bytes(80_000), time: Nanos::secs(10) };
            let mut method = MiniTrains::new(budget, 2, 1);
            for odd in [0, 1] {
                let at = (0..5).map(|k| Some(1_000_000 + k * gap + if k % 2 == odd { 0 } else { gap / 10 }));
                method.filter.add(&train(0, 1400, &[0; 5], &at.collect::<Vec<_>>()));
            }
            assert!(!method.filter.settled());
            (method.sent, method.seen, method.lag) = (3, seen, Nanos::millis(lag));
            let step = method.next(Nanos::secs(1));
            assert_eq!(matches!(step, Step::Send(_)), more, "{lag} ms, {seen} of 3: {step:?}");
        }
    }

    /// Two trains of which a part or all came at once, at one opportunity: the first one showed 8.4 Mbit/s by its pause.
    #[test]
    fn trains_that_were_too_short_for_what_they_show_are_followed_by_a_long_one() {
        let of = |second: [u64; 5]| {
            let budget = Budget { bytes: Bytes(800_000), time: Nanos::secs(10) };
            let mut method = MiniTrains::new(budget, 2, 1);
            for (id, came) in [[0, 1_000, 4_000_000, 4_001_000, 4_002_000], second].into_iter().enumerate() {
                // what came together after a pause asks for a longer one
                let wanted = [TRAIN, HINTED][id];
                assert!(matches!(method.next(Nanos::secs(id as u64)), Step::Send(plan) if plan.count() == wanted));
                method.observe(Nanos::secs(id as u64), &train(id as u64, LARGE, &[0; 5], &came.map(Some)));
            }
            match method.next(Nanos::secs(2)) {
                Step::Send(plan) => plan.count(),
                _ => 0,
            }
        };
        assert!(of([0, 1_000, 2_000, 3_000, 4_000]) >= 15 * TRAIN);
        assert!(of([0, 1_330_000, 2_660_000, 4_000_000, 5_330_000]) <= HINTED);
    }

    #[test]
    fn no_answer_is_said() {
        let mut method = MiniTrains::new(Budget { bytes: Bytes(80_000), time: Nanos::secs(60) }, 8, 1);
        let mut now = Nanos(0);
        loop {
            match method.next(now) {
                Step::Send(_) | Step::Beside(_) => {}
                Step::Wait(until) => now = until,
                Step::Done => break,
            }
        }
        assert_eq!(method.estimate().why_not, Some(WhyNot::NoAnswer));
        assert!(now < Nanos::secs(10));
    }
}
