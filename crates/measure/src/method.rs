//! A method by its name, with an estimate of the capacity beside that of the available bandwidth: the method's own, or for
//! those of the literature PathTester's clusters, which come first and have a third of the budget.

use std::collections::BTreeSet;

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::clusters::Clusters;
use pathcast_estimate::handover::HandOver;
use pathcast_estimate::kinds::Thorough;
use pathcast_estimate::pathtester::PathTester;
use pathcast_estimate::pathtester_old::OldPathTester;
use pathcast_estimate::replay::Replay;
use pathcast_estimate::ride::Ride;
use pathcast_estimate::shared::{Pulses, Response};
use pathcast_estimate::slops::Slops;
use pathcast_estimate::{
    Budget, Discipline, Effort, Estimate, Knowledge, LARGE, Method, Plan, Step, TrainSeen, Value, WhyNot,
};

use super::request::MethodName;

/// The replay fit's trains and their length.
const REPLAY: (usize, usize) = (20, 30);

/// An interval of the available bandwidth wider than this share of the capacity says nothing. The methods of the literature give
/// their values whatever their spread.
const SAYS_NOTHING: f64 = 0.8;
/// How sure it is how a bottleneck queues that gave it away: never wrong in 40 lines (`tests/estimate`).
const SURE: f64 = 0.95;

enum Parts {
    Ride(Box<Ride>),
    Replay(Box<Replay>),
    Pulses(Box<Pulses>),
    Behind { clusters: Clusters, main: Box<dyn Method + Send> },
}

/// See the [module](self).
pub(super) struct MeasureMethod {
    main: Parts,
    /// Plans of the clusters; the main method's numbers follow.
    first: u64,
    clustered: bool,
    /// What comes behind the main method, and what it may use.
    thorough: Option<Thorough>,
    budget: Budget,
    started: Option<Nanos>,
    /// Trains of large packets on their way that were to leave at once, and what those that came say of this host: it takes as long for
    /// a small one.
    at_once: BTreeSet<u64>,
    hand_over: HandOver,
}

/// Of a thorough measurement's bytes and time the main method gets this part; and of the time what it takes unasked, as far as
/// what comes behind it is left so long, and so many reports' times, or it has no more than so much itself.
const MAIN_PART: u64 = 3;
const BEHIND: (Nanos, u64) = (Nanos::millis(6200), 1);
const AT_LEAST: (Nanos, u64) = (Nanos::millis(1400), 2);

impl MeasureMethod {
    pub fn new(method: MethodName, effort: Effort, budget: Budget, sparing: bool, seed: u64) -> MeasureMethod {
        let thorough = match effort {
            Effort::Thorough { queue } => Some(Thorough::new(queue, seed)),
            Effort::Light | Effort::Usual => None,
        };
        let whole = budget;
        let part = if thorough.is_some() { MAIN_PART } else { 1 };
        let budget = Budget { bytes: Bytes(whole.bytes.0 / part), time: Nanos(whole.time.0 / part) };
        let third = Budget { bytes: Bytes(budget.bytes.0 / 3), time: Nanos(budget.time.0 / 3) };
        let rest = Budget { bytes: Bytes(budget.bytes.0 - third.bytes.0), time: Nanos(budget.time.0 - third.time.0) };
        let behind = |main| Parts::Behind { clusters: Clusters::new(third), main };
        let main = match method {
            MethodName::Ride => {
                let ride = match (sparing, thorough.is_some()) {
                    (true, true) => {
                        let ride = Ride::sparing(Budget { time: whole.time, ..budget }, seed);
                        ride.leaving(BEHIND, AT_LEAST).extended_to(budget.time)
                    }
                    (true, false) => Ride::sparing(budget, seed),
                    (false, _) => Ride::new(budget, seed),
                };
                let ride = match effort {
                    Effort::Thorough { queue } => ride.limited(queue),
                    Effort::Light | Effort::Usual => ride,
                };
                Parts::Ride(Box::new(ride.of_session()))
            }
            MethodName::Replay => Parts::Replay(Box::new(Replay::new(budget, REPLAY.0, REPLAY.1, seed))),
            MethodName::PathTester => behind(Box::new(PathTester::new(rest))),
            MethodName::PathTesterOld(iunit) => behind(Box::new(OldPathTester::new(rest, iunit.last()))),
            MethodName::Slops => behind(Box::new(Slops::new(rest))),
            MethodName::Pulses => Parts::Pulses(Box::new(Pulses::new(budget, seed, seed & 1 == 0))),
        };
        MeasureMethod {
            main,
            first: 0,
            clustered: false,
            thorough,
            budget: whole,
            started: None,
            at_once: BTreeSet::new(),
            hand_over: HandOver::default(),
        }
    }

    /// The capacity.
    pub fn capacity(&self) -> Estimate {
        match &self.main {
            Parts::Ride(ride) => ride.capacity(),
            Parts::Replay(replay) => replay.capacity(),
            Parts::Pulses(pulses) => pulses.estimate(),
            Parts::Behind { clusters, .. } => clusters.estimate(),
        }
    }
}

impl MeasureMethod {
    /// What became of pulses; none of other methods.
    pub fn response(&self) -> Option<Response> {
        match &self.main {
            Parts::Pulses(pulses) => pulses.response(),
            _ => None,
        }
    }

    /// Whether what left then met a queue that it filled itself, so that its delay is not the path's.
    pub fn fills(&self, left: Nanos) -> bool {
        self.thorough.as_ref().is_some_and(|thorough| left.as_secs_f64() >= thorough.filled())
    }

    /// All that it has found, without the losses that it does not count.
    pub fn knowledge(&self) -> Knowledge {
        let (capacity, estimate) = (self.capacity(), self.estimate());
        let line = match &self.main {
            Parts::Ride(ride) => ride.of_line(capacity),
            _ => capacity,
        };
        let mut known = Knowledge { capacity_bps: (&line).into(), ..Knowledge::default() };
        known.available_bps = Value::from(&estimate);
        if let (Parts::Ride(_), Some(c)) = (&self.main, capacity.value_bps) {
            known.available_bps = known.available_bps.unless_wider(SAYS_NOTHING * c);
            // no more than there is, whatever is not known of it
            let most = Value { low: 0.0, high: line.high_bps, ..known.available_bps };
            if known.available_bps.value.is_none()
                && known.available_bps.high == f64::INFINITY
                && line.why_not.is_none()
            {
                known.available_bps = most;
            }
        }
        known.queue.fair = match estimate.discipline {
            Discipline::Unknown => known.queue.fair,
            Discipline::Shared => Value::bare(1.0 - SURE),
            Discipline::Fair => Value::bare(SURE),
        };
        match &self.main {
            Parts::Ride(ride) => ride.tell(&mut known),
            Parts::Replay(replay) => replay.tell(&mut known),
            Parts::Pulses(pulses) => pulses.tell(&mut known),
            Parts::Behind { main, .. } => main.tell(&mut known),
        }
        if let Some(thorough) = &self.thorough {
            thorough.tell(&estimate, &mut known);
            if let (Parts::Ride(ride), Some(trains)) = (&self.main, thorough.busy(&known)) {
                thorough.revise(&estimate, &ride.with(trains).estimate(), &mut known);
            }
            thorough.reckon(&estimate, &mut known);
        }
        let Some(carried) = self.hand_over.carried() else { return known };
        if !matches!(self.main, Parts::Ride(_)) && known.available_bps.value.is_some() {
            // theirs follows from the capacity, or from gaps that this host did not keep
            known.available_bps = Value::at_least(known.available_bps.low.min(carried), WhyNot::HostTooSlow);
        }
        known.by_slow_host(carried)
    }
}

impl MeasureMethod {
    fn main_next(&mut self, now: Nanos) -> Step {
        match &mut self.main {
            Parts::Ride(ride) => ride.next(now),
            Parts::Replay(replay) => replay.next(now),
            Parts::Pulses(pulses) => pulses.next(now),
            Parts::Behind { clusters, main } => {
                if !self.clustered {
                    match clusters.next(now) {
                        Step::Done => self.clustered = true,
                        Step::Send(plan) => {
                            self.first = plan.id + 1;
                            return Step::Send(plan);
                        }
                        wait => return wait,
                    }
                }
                match main.next(now) {
                    Step::Send(plan) => Step::Send(Plan { id: plan.id + self.first, ..plan }),
                    step => step,
                }
            }
        }
    }
}

impl MeasureMethod {
    fn whole_next(&mut self, now: Nanos) -> Step {
        let started = *self.started.get_or_insert(now);
        if self.thorough.as_ref().is_none_or(|thorough| !thorough.has_begun()) {
            match self.main_next(now) {
                Step::Done => {}
                step => return step,
            }
        }
        let (capacity, available) = (self.capacity(), self.estimate());
        let Some(thorough) = &mut self.thorough else { return Step::Done };
        if !thorough.has_begun() {
            let bytes = Bytes(self.budget.bytes.0.saturating_sub(available.bytes.0));
            let time = self.budget.time;
            thorough.begin(now, &capacity, &available, Budget { bytes, time: started + time });
        }
        thorough.next(now)
    }
}

impl Method for MeasureMethod {
    fn next(&mut self, now: Nanos) -> Step {
        let step = self.whole_next(now);
        if let Step::Send(plan) = &step
            && plan.duration() == Nanos::ZERO
            && plan.size == LARGE
        {
            self.at_once.insert(plan.id);
        }
        step
    }

    fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        if self.at_once.remove(&train.id) {
            self.hand_over.add(train);
        }
        if let Some(thorough) = &mut self.thorough {
            thorough.observe(now, train);
            if thorough.owns(train) {
                return;
            }
        }
        match &mut self.main {
            Parts::Ride(ride) => ride.observe(now, train),
            Parts::Replay(replay) => replay.observe(now, train),
            Parts::Pulses(pulses) => pulses.observe(now, train),
            Parts::Behind { clusters, main } => match train.id.checked_sub(self.first) {
                Some(id) if self.clustered => main.observe(now, &TrainSeen { id, packets: train.packets.clone() }),
                _ => clusters.observe(now, train),
            },
        }
    }

    /// The available bandwidth.
    fn estimate(&self) -> Estimate {
        match &self.main {
            Parts::Ride(ride) => ride.estimate(),
            Parts::Replay(replay) => replay.estimate(),
            Parts::Pulses(pulses) => pulses.estimate(),
            Parts::Behind { main, .. } => main.estimate(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_estimate::testing::{Fluid, Gathering, OFFSET, SlowHost};

    #[test]
    fn every_method_gives_both_rates_of_a_fluid() {
        let budget = Budget { bytes: Bytes(2_000_000), time: Nanos::secs(200) };
        for name in MethodName::ALL {
            let mut method = MeasureMethod::new(name, Effort::Usual, budget, false, 1);
            let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut method);
            let capacity = method.capacity().value_bps.unwrap();
            assert!((capacity / 5e6 - 1.0).abs() < 0.01, "{name}: {capacity}");
            assert!(estimate.low_bps <= 5.05e6 && estimate.high_bps >= 4.95e6, "{name}: {estimate:?}");
        }
    }

    /// A host that hands over 2.8 Gbit/s: of a line of 10 Gbit/s it finds that, of one of 1 Gbit/s the line.
    #[test]
    fn a_line_faster_than_the_host_has_no_capacity_and_a_slower_one_has_its_own() {
        let budget = Budget { bytes: Bytes(20_000_000), time: Nanos::secs(200) };
        for name in MethodName::ALL.into_iter().filter(|&name| name != MethodName::Pulses) {
            let found = |c: f64| {
                let mut method = MeasureMethod::new(name, Effort::Usual, budget, true, 1);
                SlowHost { takes: 4e-6, line: Fluid::new(c, 0.0, 0.01) }.run(&mut method);
                method.knowledge()
            };
            let fast = found(10e9);
            for value in [fast.capacity_bps, fast.available_bps] {
                assert_eq!(
                    (value.value, value.high, value.why),
                    (None, f64::INFINITY, Some(WhyNot::HostTooSlow)),
                    "{name}"
                );
                assert!(value.low < 2.9e9, "{name}: {value:?}");
            }
            assert!((fast.capacity_bps.low / 2.8e9 - 1.0).abs() < 0.01, "{name}: {:?}", fast.capacity_bps);
            let slow = found(1e9).capacity_bps;
            assert!((slow.value.unwrap() / 1e9 - 1.0).abs() < 0.01 && slow.why.is_none(), "{name}: {slow:?}");
        }
    }

    /// What `--queue` allows binds the part before the overload, too: up to a train of five packets.
    #[test]
    fn a_bound_on_the_queue_binds_all_of_a_thorough_measurement() {
        let queue = Nanos::millis(20);
        let budget = Budget { bytes: Bytes(20_000_000), time: Nanos::secs(10) };
        let mut method = MeasureMethod::new(MethodName::Ride, Effort::Thorough { queue }, budget, true, 1);
        let mut link = Gathering::new(1e6, 0.0, 0.02, None);
        let (mut now, mut reports, mut most) = (Nanos::secs(1), Vec::<(Nanos, TrainSeen)>::new(), 0);
        while !method.thorough.as_ref().is_some_and(Thorough::has_begun) {
            match method.next(now) {
                Step::Send(plan) if !method.thorough.as_ref().is_some_and(Thorough::has_begun) => {
                    let seen = link.carry(&Plan { at: plan.at.max(now), ..plan });
                    most = seen.packets.iter().filter_map(|p| p.delay()).fold(most, i64::max);
                    let at = seen.packets.iter().filter_map(|p| p.received).max().unwrap_or_default();
                    reports.push((Nanos(at.0 - OFFSET) + Nanos::millis(20), seen));
                }
                Step::Wait(until) => match reports.first().filter(|(at, _)| *at <= until) {
                    Some(_) => {
                        let (at, seen) = reports.remove(0);
                        now = now.max(at);
                        method.observe(now, &seen);
                    }
                    None => now = now.max(until),
                },
                _ => break,
            }
        }
        let waited = most as f64 / 1e9 - OFFSET as f64 / 1e9 - 0.02;
        assert!((0.02..=0.02 + 5.0 * 0.0112).contains(&waited), "{waited}");
    }
}
