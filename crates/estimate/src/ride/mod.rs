//! Available bandwidth by riding a short queue; the default method.
//!
//! 1. Capacity, from short trains (`capacity.rs`).
//! 2. Small packets, far apart: what a packet's size costs alone. An opening train at the rate C: a first A.
//! 3. Trains without a pause between them at the rate A, which keep a few packets in the bottleneck's queue. After each
//!    report the next train makes up for what the queue is too short, or too long. While the queue is not empty every byte
//!    of cross traffic is counted (`series.rs`), whatever its pattern: what is estimated is not a model's parameter, but the
//!    mean over the time of the ride.
//!
//! Why not trains above A with pauses, as the FIFO replay fit (`replay.rs`) and all of the older methods have them: between
//! trains the cross traffic is not seen, and with bursty traffic that is most of the error; and a queue that grows needs C
//! to be right and a buffer that is long.
//!
//! Where probes overflow the queue they take places from the cross traffic, which before and after is not short of them: the
//! mean over the whole measurement counts what was displaced (`balance.rs`, which has the interval too).

mod balance;
mod pace;
mod queueing;

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Stream};

use super::capacity::MiniTrains;
use super::clock::Floor;
use super::series::{self, Base, Losses, Segment};
use super::{Budget, Estimate, LARGE, Method, Plan, Step, TrainSeen, WhyNot};
use balance::Balance;

/// Bits of a probe.
const PACKET: f64 = LARGE as f64 * 8.0;

/// What the ride wants in the queue [packets]: at first; at least, so that a report that is late does not find it empty; at
/// most, unless stamps are so coarse that fewer cannot be seen.
const BACKLOG_FIRST: f64 = 6.0;
const BACKLOG_LEAST: f64 = 2.0;
const BACKLOG_MOST: f64 = 20.0;
/// The target is raised by this factor when the queue ran empty; it never takes more than this share of the room that the
/// queue was seen to have.
const BACKLOG_RAISE: f64 = 1.4;
const ROOM_SHARE: f64 = 0.5;

/// Small packets: how many, and their size [IP bytes].
const SMALL_COUNT: usize = 12;
const SMALL_SIZE: u16 = 120;

/// The capacity may cost this part of the budget's bytes (a third) and time (a half), with so many packets a train and so many
/// trains.
const CAPACITY_BYTES_PART: u64 = 3;
const CAPACITY_TIME_PART: u64 = 2;
const CAPACITY_TRAIN: u64 = 5;
const CAPACITY_TRAINS: (u64, u64) = (4, 7);

/// A may come out above C, whose error is then the larger of the two: what the probes got is a proof. At most this factor.
const ABOVE_CAPACITY: f64 = 1.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Capacity,
    Small,
    Opening,
    Ride,
    Drain,
    Done,
}

/// C is raised to what the path has carried if that is so many times as much: less is the stamps' error.
const PROOF: f64 = 1.01;

/// A sparing ride goes on while half of the interval is more than this share of C; up to so many times of what is sensible, and
/// so long in all [s].
const ROUGH: f64 = 0.025;
const EXTEND_TIMES: u64 = 3;
const EXTEND_LONGEST: f64 = 8.0;

/// A within these shares of C for planning: not zero, since a train must end, and hardly above C.
const PLANNED: (f64, f64) = (0.02, 1.02);

/// Of a train's time the line was perhaps idle: above the first share the target is raised, above the second the rate too, by
/// a step up to a limit; each train without halves it.
const IDLE_RAISES: f64 = 0.15;
const IDLE_BOOSTS: f64 = 0.3;
const BOOST_STEP: f64 = 0.05;
const BOOST_MOST: f64 = 0.3;
const BOOST_DECAY: f64 = 0.5;

/// A train is planned so much of its time before it is due, with the latest report that can be had.
const AHEAD: f64 = 0.25;

/// A report that is missing is waited for so many times as long as reports have taken, and this long besides: hosts that
/// are busy. After the opening more, since no plan can be made without it.
const REPORT_LAGS: u64 = 2;
const REPORT_GRACE: Nanos = Nanos::millis(30);
const OPENING_LAGS: u64 = 3;
const OPENING_GRACE: Nanos = Nanos::millis(50);

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Ride {
    budget: Budget,
    /// What it may use at the most, if it is to take no more than the capacity asks for.
    most: Option<Budget>,
    capacity: MiniTrains,
    stream: Stream,
    phase: Phase,
    started: Option<Nanos>,
    trains: BTreeMap<u64, TrainSeen>,
    /// The first train of the opening.
    first: u64,
    /// The train of small packets.
    small: Option<TrainSeen>,
    next_id: u64,
    /// Packets planned and not reported, by train: when each leaves [s].
    pending: BTreeMap<u64, Vec<f64>>,
    /// When the next packet would follow the last one [s].
    follow: f64,
    last_end: Nanos,
    bytes: u64,
    lag: Nanos,
    now: Nanos,
    /// Bit/s.
    c: f64,
    /// What the path was seen to carry where that was more than the trains had shown [bit/s].
    proven: f64,
    /// A packet's delay without a queue.
    base: Base,
    /// Bits that are to wait.
    target: f64,
    /// Bits above which the queue overflows, as far as is known.
    limit: f64,
    /// Available bandwidth so far, between its bounds for planning [bit/s].
    a: f64,
    /// How much time it is known from [s].
    covered: f64,
    /// The first train that was planned since the target was raised.
    raised: u64,
    /// How much faster than A it rides, because the queue ran empty in spite of all.
    boost: f64,
}

/// What the ride takes A for before it has seen anything, and for how many packets' time at the rate C that counts: an
/// opening train may meet a burst, and a ride at a tenth of A would not recover within its budget.
const PRIOR: f64 = 0.5;
const PRIOR_PACKETS: f64 = 8.0;

impl Ride {
    /// Both phases within the budget.
    pub fn new(budget: Budget, seed: u64) -> Self {
        let (share, trains) = Self::share(budget);
        Ride {
            budget,
            most: None,
            capacity: MiniTrains::new(share, trains, seed),
            stream: Stream::new(seed, "estimate/ride"),
            phase: Phase::Capacity,
            started: None,
            trains: BTreeMap::new(),
            first: 0,
            small: None,
            next_id: 0,
            pending: BTreeMap::new(),
            follow: 0.0,
            last_end: Nanos::ZERO,
            bytes: 0,
            lag: Nanos::ZERO,
            now: Nanos::ZERO,
            c: 0.0,
            proven: 0.0,
            base: Base { floor: Floor { at: 0, delay: 0.0, skew: 0.0 }, drift: 0.0, late: 0.0 },
            target: 0.0,
            limit: f64::INFINITY,
            a: 0.0,
            covered: 0.0,
            raised: 0,
            boost: 0.0,
        }
    }

    /// The same, but with no more than [`Budget::sensible`] of the budget.
    pub fn sparing(budget: Budget, seed: u64) -> Self {
        Ride { most: Some(budget), ..Ride::new(budget, seed) }
    }

    /// What the capacity may cost, and by how many trains.
    fn share(budget: Budget) -> (Budget, usize) {
        let bytes = Bytes(budget.bytes.0 / CAPACITY_BYTES_PART);
        let time = Nanos(budget.time.0 / CAPACITY_TIME_PART);
        // a fifth of the bytes for trains of the first length leaves room for longer ones
        let trains = budget.bytes.0 / 5 / (CAPACITY_TRAIN * u64::from(LARGE));
        (Budget { bytes, time }, trains.clamp(CAPACITY_TRAINS.0, CAPACITY_TRAINS.1) as usize)
    }

    /// The capacity that it has found: what the trains showed, and no less than what the path was seen to carry.
    pub fn capacity(&self) -> Estimate {
        let estimate = self.capacity.estimate();
        match estimate.value_bps {
            Some(value) if value < self.proven => Estimate::of(
                self.proven,
                self.proven,
                estimate.high_bps.max(ABOVE_CAPACITY * self.proven),
                estimate.bytes.0,
            ),
            _ => estimate,
        }
    }

    /// Half of what is sensible more, if the estimate is still rough and more is allowed.
    fn extend(&mut self) -> bool {
        let Some(most) = self.most else { return false };
        let sensible = Budget::sensible(self.c, self.capacity.lag());
        let limit = most.min(Budget {
            bytes: Bytes(sensible.bytes.0 * EXTEND_TIMES),
            time: Nanos(sensible.time.0 * EXTEND_TIMES).min(Nanos::from_secs_f64(EXTEND_LONGEST)),
        });
        let more = Budget {
            bytes: Bytes(self.budget.bytes.0 + sensible.bytes.0 / 2).min(limit.bytes),
            time: Nanos(self.budget.time.0 + sensible.time.0 / 2).min(limit.time),
        };
        let estimate = self.estimate();
        let rough = estimate.high_bps - estimate.low_bps > 2.0 * ROUGH * self.c;
        // one of them is spent, the other must not be what ends it at once
        if !rough || more.bytes <= self.budget.bytes || more.time <= self.budget.time {
            return false;
        }
        self.budget = more;
        true
    }

    fn send(&mut self, plan: Plan) -> Step {
        let mut at = plan.at.0 as f64 / 1e9;
        let mut times = vec![at];
        for gap in &plan.gaps {
            at += gap.as_secs_f64();
            times.push(at);
        }
        self.pending.insert(plan.id, times);
        self.last_end = plan.at + plan.duration();
        self.bytes += plan.bytes();
        self.next_id = plan.id + 1;
        Step::Send(plan)
    }

    fn deadline(&self) -> Nanos {
        self.started.unwrap_or_default() + self.budget.time
    }

    fn drain(&mut self, now: Nanos) -> Step {
        let until = (self.last_end + Nanos(self.lag.0 * REPORT_LAGS) + REPORT_GRACE)
            .min(self.deadline().max(self.last_end + self.lag));
        if self.pending.is_empty() || now >= until {
            self.phase = Phase::Done;
            return Step::Done;
        }
        Step::Wait(until)
    }

    fn segments(&self) -> (Vec<Segment>, Losses) {
        let trains = self.trains.range(self.first..).map(|(_, train)| train);
        let mut segments = series::segments(trains, self.c, self.base);
        let losses = series::settle_losses(&mut segments);
        (segments, losses)
    }

    fn find_base(&mut self) {
        if let Some(base) = series::base(self.trains.values()) {
            self.base = Base { late: self.blur(), ..base };
        }
    }

    fn blur(&self) -> f64 {
        series::blur(self.trains.values(), self.c)
    }

    fn learn(&mut self, train: &TrainSeen) {
        self.find_base();
        let (mut segments, mut losses) = self.segments();
        let carried = series::carried(&segments, self.c, self.blur());
        if let Some(carried) = carried.filter(|&carried| carried > PROOF * self.c) {
            (self.c, self.proven) = (carried, carried);
            (segments, losses) = self.segments();
        }
        if let Some(balance) = Balance::of(&segments, losses, self.c, self.blur()) {
            self.covered = balance.time;
            let known = PRIOR_PACKETS * PACKET / self.c;
            let a = (balance.available * balance.time + PRIOR * self.c * known) / (balance.time + known);
            self.a = a.clamp(PLANNED.0 * self.c, PLANNED.1 * self.c);
        }
        self.refine();
        let from = train.packets[0].sent.as_secs_f64();
        let (mut time, mut open) = (0.0, 0.0);
        for segment in segments.iter().filter(|s| s.from >= from) {
            time += segment.time;
            open += if segment.joined { 0.0 } else { segment.time };
        }
        self.limit = losses.room.map_or(f64::INFINITY, |room| room * self.c);
        if self.limit.is_finite() {
            self.target = self.target.min(self.limit * ROOM_SHARE).max(BACKLOG_LEAST * PACKET);
        }
        let least = self.floor();
        if train.id < self.raised {
            return;
        }
        if open > IDLE_BOOSTS * time {
            self.boost = (self.boost + BOOST_STEP).min(BOOST_MOST);
            self.raised = self.next_id;
        } else {
            self.boost *= BOOST_DECAY;
        }
        if open > IDLE_RAISES * time {
            self.raised = self.next_id;
            self.target =
                (self.target * BACKLOG_RAISE).min(least.max(BACKLOG_MOST * PACKET)).min(self.limit * ROOM_SHARE);
        }
    }
}

impl Method for Ride {
    fn next(&mut self, now: Nanos) -> Step {
        self.now = now;
        self.started.get_or_insert(now);
        match self.phase {
            Phase::Capacity => match self.capacity.next(now) {
                Step::Done if self.capacity.filter().capacity().is_some() => self.small(now),
                Step::Done => {
                    self.phase = Phase::Done;
                    Step::Done
                }
                Step::Send(plan) => {
                    self.bytes += plan.bytes();
                    Step::Send(plan)
                }
                wait => wait,
            },
            Phase::Small => self.opening(now),
            Phase::Opening => {
                let until = self.last_end + Nanos(self.lag.0 * OPENING_LAGS) + OPENING_GRACE;
                if self.a == 0.0 && now < until {
                    return Step::Wait(until);
                }
                if self.a == 0.0 {
                    self.a = PRIOR * self.c;
                }
                self.phase = Phase::Ride;
                self.ride(now)
            }
            Phase::Ride => {
                let ahead = Nanos::from_secs_f64(AHEAD * self.train_time());
                let due = Nanos::from_secs_f64(self.follow).saturating_sub(ahead);
                if now < due {
                    return Step::Wait(due);
                }
                self.ride(now)
            }
            Phase::Drain => self.drain(now),
            Phase::Done => Step::Done,
        }
    }

    fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        self.now = now;
        if train.packets.is_empty() {
            return;
        }
        if train.packets[0].size == SMALL_SIZE {
            self.pending.remove(&train.id);
            self.small = Some(train.clone());
            return;
        }
        self.trains.insert(train.id, train.clone());
        if self.phase == Phase::Capacity {
            self.capacity.observe(now, train);
            if let (Some(most), Some(c)) = (self.most, self.capacity.filter().capacity()) {
                self.budget = most.min(Budget::sensible(c, self.capacity.lag()));
                let (share, trains) = Self::share(self.budget);
                self.capacity.bound(share, trains);
            }
            return;
        }
        self.pending.remove(&train.id);
        let last = train.packets.last().map_or(now, |packet| packet.sent);
        self.lag = now.saturating_sub(last).max(Nanos(self.lag.0 / 2));
        self.learn(train);
    }

    fn estimate(&self) -> Estimate {
        if self.c == 0.0 {
            return Estimate::none(self.capacity.estimate().why_not.unwrap_or(WhyNot::TooFew), self.bytes);
        }
        let (segments, losses) = self.segments();
        let Some(balance) = Balance::of(&segments, losses, self.c, self.blur()) else {
            return Estimate::none(WhyNot::TooFew, self.bytes);
        };
        let begun = self.started.unwrap_or_default();
        let whole = self.last_end.saturating_sub(begun).as_secs_f64().max(balance.time);
        let value = balance.over(whole).clamp(0.0, ABOVE_CAPACITY * self.c);
        let half = balance.half_width(self.c, whole);
        Estimate {
            discipline: self.discipline().unwrap_or_default(),
            ..Estimate::of(value, (value - half).max(0.0), (value + half).min(ABOVE_CAPACITY * self.c), self.bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fluid, train};
    use super::*;

    fn budget(kb: u64, time: Nanos) -> Budget {
        Budget { bytes: Bytes(kb * 1000), time }
    }

    #[test]
    fn a_fluid_is_met_at_every_load_and_the_budget_is_kept() {
        for cross in [0.0, 0.5e6, 1.5e6, 3e6, 4.5e6] {
            let budget = budget(350, Nanos::millis(1500));
            let (estimate, end) = Fluid::new(5e6, cross, 0.02).run(&mut Ride::new(budget, 1));
            let value = estimate.value_bps.unwrap();
            // a fluid shows no packet that is waited for: as long as the queue is empty it looks like no traffic
            assert!((value - (5e6 - cross)).abs() < 0.015 * 5e6, "{cross}: {estimate:?}");
            assert!((estimate.low_bps..=estimate.high_bps).contains(&(5e6 - cross)), "{cross}: {estimate:?}");
            assert!(estimate.bytes <= budget.bytes && end <= Nanos::millis(2700), "{cross}: {estimate:?} {end:?}");
        }
    }

    #[test]
    fn slow_and_fast() {
        for (capacity, delay, kb, time) in [
            (100e3, 0.01, 150, Nanos::secs(20)),
            (100e6, 0.01, 4000, Nanos::secs(1)),
            (1e9, 0.001, 10_000, Nanos::secs(1)),
        ] {
            let (estimate, _) = Fluid::new(capacity, 0.3 * capacity, delay).run(&mut Ride::new(budget(kb, time), 1));
            let value = estimate.value_bps.unwrap();
            assert!((value / capacity - 0.7).abs() < 0.02, "{capacity} {delay}: {estimate:?}");
        }
    }

    /// A ride that takes the capacity for `c` [bit/s] and learns from one train: 1400 bytes every `apart` [ns], which come a packet's
    /// time at 4 Mbit/s apart; `room`: so many fit the queue.
    fn learnt(c: f64, apart: u64, room: u64) -> Ride {
        let service = 2_800_000;
        let (mut sent, mut received, mut free) = (Vec::new(), Vec::new(), 0);
        for k in 0..201 {
            let at = k * apart;
            let place = free <= at + room * service;
            free = if place { free.max(at) + service } else { free };
            sent.push(at);
            received.push(place.then_some(free + 10_000_000));
        }
        let train = train(0, LARGE, &sent, &received);
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        (ride.c, ride.target) = (c, 20.0 * PACKET);
        ride.trains.insert(0, train.clone());
        ride.learn(&train);
        ride
    }

    #[test]
    fn what_the_path_carries_proves_more_than_the_trains_showed_by_one_in_a_hundred() {
        for (less, proven) in [(1.005, 0.0), (1.02, 4e6)] {
            let ride = learnt(4e6 / less, 2_800_000, 50);
            assert!((ride.proven - proven).abs() < 1.0, "{less}: {}", ride.proven);
            // all of 0.56 s was the probes', before it half of C for eight packets' time
            let (seen, known) = (200.0 * 2.8e-3, 8.0 * PACKET / ride.c);
            let a = (4e6 * seen + 0.5 * ride.c * known) / (seen + known);
            assert!((ride.a / a - 1.0).abs() < 1e-6, "{less}: {} {a}", ride.a);
        }
    }

    #[test]
    fn a_third_of_the_bytes_and_half_of_the_time_are_the_capacitys() {
        for (kb, trains) in [(1000, 7), (200, 5), (100, 4), (140, 4), (175, 5), (245, 7), (244, 6)] {
            let (share, count) = Ride::share(budget(kb, Nanos::secs(3)));
            assert_eq!(
                (share, count),
                (Budget { bytes: Bytes(kb * 1000 / 3), time: Nanos::millis(1500) }, trains),
                "{kb}"
            );
        }
    }

    /// By half of what is sensible each time, up to three times as much, and no more than is allowed.
    #[test]
    fn a_rough_estimate_is_worth_more() {
        let extended = |kb, time| {
            let most = budget(kb, Nanos::millis(time));
            let mut ride = Ride::sparing(most, 1);
            ride.c = 5e6; // sensible: 930 kB and 2.4 s; nothing is known yet, which is rough
            ride.budget = most.min(Budget::sensible(5e6, Nanos::ZERO));
            let times = (0..20).take_while(|_| ride.extend()).count();
            (times, (ride.budget.bytes.0 + 500) / 1000, (ride.budget.time.0 + 500_000) / 1_000_000)
        };
        assert_eq!(extended(20_000, 30_000), (4, 2790, 7200));
        assert_eq!(extended(1_500, 30_000), (2, 1500, 4800));
        assert_eq!(extended(20_000, 3_000), (1, 1395, 3000));
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        ride.c = 5e6;
        assert!(!ride.extend());
    }

    /// A queue that grows for all of the ride leaves an interval of that; rough is one of more than a twentieth of C.
    #[test]
    fn an_interval_of_a_twentieth_is_not_rough() {
        for (apart, rough) in [(2_700_000, false), (2_650_000, true)] {
            let mut ride = learnt(4e6, apart, 100);
            (ride.most, ride.budget) = (Some(budget(20_000, Nanos::secs(30))), Budget::sensible(4e6, Nanos::ZERO));
            let estimate = ride.estimate();
            let width = (estimate.high_bps - estimate.low_bps) / ride.c;
            assert!((0.03..0.08).contains(&width) && (width > 0.05) == rough, "{apart}: {width}");
            assert_eq!(ride.extend(), rough, "{apart}: {width}");
        }
    }

    /// What a ride is at work with, to ask it what it does next: 5 Mbit/s of which 3 are free, and reports that take 20 ms.
    fn riding(phase: Phase) -> Ride {
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        (ride.c, ride.a, ride.phase) = (5e6, 3e6, phase);
        (ride.started, ride.lag) = (Some(Nanos::ZERO), Nanos::millis(20));
        ride.target = 6.0 * PACKET;
        ride
    }

    #[test]
    fn reports_are_waited_for_twice_as_long_as_they_took() {
        let mut ride = riding(Phase::Drain);
        ride.pending.insert(7, vec![1.0]);
        ride.last_end = Nanos::millis(1000);
        let until = Nanos::millis(1000 + 2 * 20 + 30);
        assert_eq!((ride.next(Nanos::millis(1001)), ride.next(until)), (Step::Wait(until), Step::Done));
        // not beyond the budget's end, but as long as one takes
        let mut ride = riding(Phase::Drain);
        ride.pending.insert(7, vec![1.0]);
        ride.last_end = Nanos::millis(2990);
        assert_eq!(ride.next(Nanos::millis(2991)), Step::Wait(Nanos::millis(3010)));
        ride.pending.clear();
        assert_eq!(ride.next(Nanos::millis(2992)), Step::Done);
        // the opening's three times
        let mut ride = riding(Phase::Opening);
        (ride.a, ride.last_end) = (0.0, Nanos::millis(1000));
        let until = Nanos::millis(1000 + 3 * 20 + 50);
        assert_eq!(ride.next(Nanos::millis(1001)), Step::Wait(until));
        assert!(matches!(ride.next(until), Step::Send(_)));
        assert_eq!((ride.a, ride.phase), (2.5e6, Phase::Ride));
    }

    /// What came last waited 20 ms, so that 100 kbit and itself are there; then two more leave, and A drains the queue.
    #[test]
    fn what_waits_follows_from_the_last_report_and_what_was_sent_since() {
        let mut ride = riding(Phase::Ride);
        ride.base.floor.delay = 10e6;
        ride.trains.insert(0, train(0, LARGE, &[1_000_000_000], &[Some(1_030_000_000)]));
        let there = 100e3 + PACKET;
        assert!((ride.backlog(1.0) - there).abs() < 1e-6);
        assert!((ride.backlog(1.01) - (there - 30e3)).abs() < 1e-3);
        ride.pending.insert(1, vec![0.999, 1.004, 1.008, 1.5]);
        assert!((ride.backlog(1.01) - (there - 30e3 + 2.0 * PACKET)).abs() < 1e-3);
        assert_eq!(ride.backlog(1.4), 0.0);
        // the next train adds what is missing in a hurry
        assert_eq!(riding(Phase::Ride).backlog(1.0), 0.0);
    }

    /// 67 kbit are missing; each packet 0.8 L/C behind the one before adds itself less what drains in between.
    #[test]
    fn what_is_missing_comes_first_and_in_a_hurry() {
        let mut ride = riding(Phase::Ride);
        ride.covered = 10.0; // A is well known: the surplus over it is 738 bit/s
        let Step::Send(plan) = ride.next(Nanos::secs(1)) else { panic!("no train") };
        let missing = 6.0 * PACKET + 738.0 * 0.02;
        let hurried = (missing / (PACKET * (1.0 - 0.8 * 0.6))) as usize;
        assert_eq!((hurried, plan.gaps.len()), (11, 11 + 12 - 1));
        for (k, gap) in plan.gaps.iter().enumerate() {
            let exact = if k < hurried { 0.8 * PACKET / 5e6 } else { PACKET / (3e6 + 738.0) };
            assert!((gap.as_secs_f64() / exact - 1.0).abs() < 1e-5, "{k}: {gap:?} {exact}");
        }
    }

    #[test]
    fn a_train_is_twelve_packets_at_the_rate_that_is_free() {
        let mut ride = riding(Phase::Ride);
        let packet = |rate: f64| PACKET / rate;
        assert!((ride.known() - 50.0 * packet(5e6)).abs() < 1e-12);
        ride.covered = 1.0;
        let time = |ride: &mut Ride, a: f64| {
            ride.a = a;
            ride.train_time()
        };
        assert!((time(&mut ride, 3e6) - 12.0 * packet(3e6)).abs() < 1e-12);
        assert!((time(&mut ride, 0.5e6) - 60.0 * packet(5e6)).abs() < 1e-12, "60 at the rate C at the most");
        assert!((time(&mut ride, 0.2e6) - 4.0 * packet(0.2e6)).abs() < 1e-12, "four at the least");
        ride.lag = Nanos::millis(200);
        assert!((time(&mut ride, 3e6) - 0.1).abs() < 1e-12, "half of a report's time");
        ride.covered = 0.0;
        assert!((time(&mut ride, 3e6) - 40.0 * packet(5e6)).abs() < 1e-12, "as long as little is known");
        (ride.c, ride.lag) = (1e9, Nanos::ZERO);
        assert!((time(&mut ride, 0.9e9) - 4e-3).abs() < 1e-12);
    }

    #[test]
    fn the_queue_is_two_packets_or_what_a_host_gathers_at_least() {
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        for (c, bits) in [(5e6, 2.0 * PACKET), (1e9, 300e3)] {
            ride.c = c;
            assert!((ride.floor() / bits - 1.0).abs() < 1e-9, "{c}");
        }
    }

    #[test]
    fn it_takes_half_of_the_room_that_it_has_seen() {
        let ride = learnt(4e6, 2_000_000, 10);
        let room = ride.limit / PACKET;
        assert!((9.0..=11.0).contains(&room), "{room}");
        assert!((ride.target / ride.limit - 0.5).abs() < 1e-9, "{} {}", ride.target, ride.limit);
        // two packets at least
        let ride = learnt(4e6, 2_000_000, 3);
        assert!((ride.target / PACKET - 2.0).abs() < 1e-9, "{} {}", ride.target / PACKET, ride.limit / PACKET);
        assert!(learnt(4e6, 2_800_000, 50).limit.is_infinite());
    }

    #[test]
    fn without_an_answer_it_says_so() {
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        let mut now = Nanos(0);
        loop {
            match ride.next(now) {
                Step::Send(_) => {}
                Step::Wait(until) => now = until,
                Step::Done => break,
            }
        }
        assert_eq!((ride.estimate().value_bps, ride.estimate().why_not), (None, Some(WhyNot::NoAnswer)));
    }
}
