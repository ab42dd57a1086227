//! Available bandwidth by riding a short queue; the default method.
//!
//! 1. Capacity, from short trains (`capacity.rs`).
//! 2. Small packets, far apart: what a packet's size costs alone. An opening train at the rate C: a first A.
//! 3. Trains without a pause between them at the rate A, which keep a few packets in the bottleneck's queue. After each
//!    report the next train makes up for what the queue is too short, or too long. While the queue is not empty every byte
//!    of cross traffic is counted (`series.rs`), whatever its pattern: what is estimated is not a model's parameter, but the
//!    mean over the time of the ride.
//!
//! Where reports take long 2. has no opening and 3. does not wait: trains go out at half of C until the first reports come, and
//! those that told C count too.
//!
//! Why not trains above A with pauses, as the FIFO replay fit (`replay.rs`) and all of the older methods have them: between
//! trains the cross traffic is not seen, and with bursty traffic that is most of the error; and a queue that grows needs C
//! to be right and a buffer that is long.
//!
//! Where probes overflow the queue they take places from the cross traffic, which before and after is not short of them: the
//! mean over the whole measurement counts what was displaced (`balance.rs`, which has the interval too).

mod balance;
mod grains;
mod noise;
mod pace;
mod proof;
mod queueing;
mod unseen;
mod wander;

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Stream};

use super::capacity::MiniTrains;
use super::clock::Floor;
use super::gather;
use super::kinds;
use super::series::{self, Base, Losses, Segment};
use super::{Budget, Estimate, Knowledge, LARGE, Method, Plan, Step, TrainSeen, Value, WhyNot, is_far};
use balance::Balance;
use unseen::Unseen;

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
/// Where bytes are few it may cost a half of them for so many trains, without which it is not to be trusted; and most of them where
/// they are less than this part of what is sensible, or where that is not known less than so many [IP bytes].
const CAPACITY_LEAST: u64 = 3;
const SCANT_PART: u64 = 100;
const SCANT: u64 = 100_000;

/// Where so little was sent that at the rate C it takes less than this [s] a policer may have let all of it pass on saved tokens: bursts of
/// a tenth of a second and longer are usual. What is available for longer is then not known.
const SHORTEST: f64 = 0.1;
/// Where bytes are few and more than a tenth of the gaps are shorter than C allows by this share delays wander, or packets gather: then C is
/// no better known than by whole trains, a packet more or less. `ambiguous` where it may be so many times as much.
const CLOSER: f64 = 0.05;
const UNLIKE: f64 = 1.3;

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
/// The same where packets gather, since there the ride knows C better than the trains do.
const ROUGH_GATHERED: f64 = 0.015;
const EXTEND_TIMES: u64 = 3;
const EXTEND_LONGEST: f64 = 8.0;

/// An interval whose half is this share of C says nothing: where the trains settle C, and where they do not.
const HALF_MOST: [f64; 2] = [0.9, 0.3];

/// Where the ride offered as much as A, but for this factor, and more than this share was lost, A cannot be so many times what
/// arrived: whoever drops so much lets no more through, and is no queue (a policer, which carries its burst at the line's rate).
const OFFERED_MOST: f64 = 1.2;
const LOST_MOST: f64 = 0.2;
const GOT_MOST: f64 = 1.5;
/// Unless this share of what the probes left of the line where they were lost is others': a queue was full, and not for want of rate.
const OTHERS: f64 = 0.5;

/// Of a ride that was refuted so many packets that came while others were lost tell how much passes, but for this factor.
const PASSED_LEAST: f64 = 30.0;
const PASSED_MOST: f64 = 1.1;
/// And C is no more than so many times that.
const ABSURD: f64 = 2.0;

/// A within these shares of C for planning: not zero, since a train must end, and hardly above C.
const PLANNED: (f64, f64) = (0.02, 1.02);

/// Of a train's time the line was perhaps idle: above the first share the target is raised, above the second the rate too, by
/// a step up to a limit; each train without halves it.
const IDLE_RAISES: f64 = 0.15;
const IDLE_BOOSTS: f64 = 0.3;
const BOOST_STEP: f64 = 0.05;
const BOOST_MOST: f64 = 0.3;
const BOOST_DECAY: f64 = 0.5;
/// The limit where C may be more: it was once, delays wander, or packets gather.
const VARIES_MOST: f64 = 0.8;

/// Half of the interval holds so much of what C was shown to be more than the trains said, by the root of the share of the time not seen.
const CHANGED: f64 = 0.8;

/// A line of which a ride got this share is perhaps idle, and C no more than that.
const EMPTY: f64 = 0.9;

/// So much of how delays wander is left at the ends of the ride, of what stamps are late.
const WANDERED: f64 = 0.1;

/// Of what is not known of the time without probes so many standard deviations are in the interval.
const UNSEEN: f64 = 1.8;

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
    /// See [`Ride::leaving`].
    leaves: Option<[(Nanos, u64); 2]>,
    /// It is not extended beyond so long in all [s].
    longest: f64,
    /// So long its own packets may wait for each other [s].
    queue: f64,
    /// Whether it is part of a session, which takes time besides.
    session: bool,
    capacity: MiniTrains,
    stream: Stream,
    phase: Phase,
    started: Option<Nanos>,
    trains: BTreeMap<u64, TrainSeen>,
    /// The first train of the opening.
    first: u64,
    /// The first train whose packets are a part of the ride.
    counted: u64,
    /// The train of small packets.
    small: Option<TrainSeen>,
    /// The number of the train behind the ride, when it leaves, and what became of it.
    grains: Option<u64>,
    last_grain: Nanos,
    grain_train: Option<TrainSeen>,
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
    /// A wait up to this may be none [s].
    noise: f64,
    /// By how much delays wander without a queue, as far as the queue is held longer for it, and in all [s].
    wander: f64,
    late: f64,
    /// From one opportunity of a link that lets packets gather to the next, else none [s].
    every: f64,
    /// How long it was not known that the link does so, and what came at once was taken for its rate [ns].
    misled: Nanos,
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
        let (share, trains) = Self::share(budget, false);
        Ride {
            budget,
            most: None,
            leaves: None,
            longest: EXTEND_LONGEST,
            queue: f64::INFINITY,
            session: false,
            capacity: MiniTrains::new(share, trains, seed),
            stream: Stream::new(seed, "estimate/ride"),
            phase: Phase::Capacity,
            started: None,
            trains: BTreeMap::new(),
            first: 0,
            counted: 0,
            small: None,
            grains: None,
            last_grain: Nanos::ZERO,
            grain_train: None,
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
            noise: 0.0,
            wander: 0.0,
            late: 0.0,
            every: 0.0,
            misled: Nanos::ZERO,
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

    /// The same, but with something behind it: for that it leaves so long, and so many reports' times, if it has `least`, likewise,
    /// itself; and where reports take long it does not wait for the last of them.
    pub fn leaving(self, behind: (Nanos, u64), least: (Nanos, u64)) -> Self {
        Ride { leaves: Some([behind, least]), ..self }
    }

    /// Whether what comes behind it begins while its last reports are on their way.
    fn overlaps(&self) -> bool {
        self.leaves.is_some() && self.is_far()
    }

    /// The same, but where that leaves the estimate rough it goes on for no longer than this in all.
    pub fn extended_to(self, longest: Nanos) -> Self {
        Ride { longest: longest.as_secs_f64(), ..self }
    }

    /// The same, but of its own packets no more are to wait than leave in this time, or than a train has at least.
    pub fn limited(mut self, queue: Nanos) -> Self {
        self.queue = queue.as_secs_f64();
        self.capacity = self.capacity.limited(self.queue);
        self
    }

    /// The same as part of a session: what is estimated is the mean over all of that.
    pub fn of_session(self) -> Self {
        Ride { session: true, ..self }
    }

    /// What the capacity may cost, and by how many trains; `scant`: a ride would say next to nothing for what there is.
    fn share(budget: Budget, scant: bool) -> (Budget, usize) {
        let three = CAPACITY_LEAST * CAPACITY_TRAIN * u64::from(LARGE);
        let bytes = match scant {
            true => budget.bytes.0 / 5 * 4,
            false => (budget.bytes.0 / CAPACITY_BYTES_PART).max(three.min(budget.bytes.0 / 2)),
        };
        let bytes = Bytes(bytes);
        let time = Nanos(budget.time.0 / CAPACITY_TIME_PART);
        // a fifth of the bytes for trains of the first length leaves room for longer ones
        let trains = budget.bytes.0 / 5 / (CAPACITY_TRAIN * u64::from(LARGE));
        (Budget { bytes, time }, trains.clamp(CAPACITY_TRAINS.0, CAPACITY_TRAINS.1) as usize)
    }

    /// Whether there are so few bytes that nearly all of them are needed for the capacity: on fast lines, and where packets gather or
    /// perhaps do.
    fn is_scant(&self) -> bool {
        let enough = match self.capacity.capacity().filter(|_| self.capacity.every().is_none()) {
            Some(c) => Budget::sensible(c, Nanos::ZERO).bytes.0 / SCANT_PART,
            None => SCANT,
        };
        self.budget.bytes.0 < enough
    }

    /// The capacity that it has found: what the trains showed, and no less than what the path was seen to carry. None where the
    /// ride refutes it, and where neither the trains nor the ride can be trusted.
    pub fn capacity(&self) -> Estimate {
        self.borne_out(self.by_trains())
    }

    /// The same by the trains, and as far as the ride belies them.
    fn by_trains(&self) -> Estimate {
        let estimate = self.capacity.estimate();
        let ride = self.judge(self.around());
        let doubtful = estimate.why_not.is_some() && ride.why_not.is_some();
        // what came through of a ride that lost much is no part of such a line
        let far = |passed: f64| ride.why_not.is_some() && self.c > ABSURD * passed;
        if self.refuted() || ride.value_bps.is_some_and(far) || (doubtful && estimate.value_bps.is_some()) {
            return Estimate::none(WhyNot::Inconsistent, estimate.bytes.0);
        }
        if (self.is_scant() && self.may_gather()) || self.capacity.is_brief() {
            return Estimate::none(WhyNot::Ambiguous, estimate.bytes.0);
        }
        // of a few clumps one packet more or less is much
        if self.budget.bytes.0 < SCANT && self.every == 0.0 && self.capacity.is_clumped() {
            return Estimate { why_not: estimate.why_not.or(Some(WhyNot::Ambiguous)), ..estimate };
        }
        if let Some((low, high)) = self.rough() {
            let (low, high) = (low.min(estimate.low_bps), high.max(estimate.high_bps));
            let why_not = estimate.why_not.or((high > UNLIKE * low).then_some(WhyNot::Ambiguous));
            return Estimate { low_bps: low, high_bps: high, why_not, ..estimate };
        }
        if let (true, Some((value, half))) = (self.wander > 0.0, self.wandering_capacity()) {
            // what the ride got of it is known better than what single trains say
            let ride = self.estimate();
            let got = ride.value_bps.unwrap_or(0.0);
            let value = value.max(self.proven).max(got);
            let low = if got > EMPTY * value { ride.low_bps.min(value - half) } else { value - half };
            return Estimate::of(value, low, value + half, estimate.bytes.0);
        }
        match estimate.value_bps {
            Some(value) if value < self.proven => {
                let least = self.proven * (1.0 - series::CARRIED);
                let most = estimate.high_bps.max(ABOVE_CAPACITY * self.proven);
                Estimate { why_not: estimate.why_not, ..Estimate::of(self.proven, least, most, estimate.bytes.0) }
            }
            _ => estimate,
        }
    }

    /// Between what rates C is, where few trains cannot tell it better [bit/s]; see [`CLOSER`].
    fn rough(&self) -> Option<(f64, f64)> {
        let trains = || self.trains.range(..self.first).map(|(_, train)| train);
        let few = self.c > 0.0 && self.budget.bytes.0 < SCANT && self.every == 0.0;
        if !few || series::scatter(trains(), self.c) < CLOSER * PACKET / self.c {
            return None;
        }
        let rates: Vec<(f64, f64)> = trains()
            .filter_map(|train| {
                let (rate, gaps) = (wander::whole(train)?, train.packets.len() as f64 - 2.0);
                Some((rate * (1.0 - 1.0 / gaps), rate * (1.0 + 1.0 / gaps)))
            })
            .collect();
        rates.into_iter().reduce(|(low, high), (least, most)| (low.min(least), high.max(most)))
    }

    fn passing(&self) -> kinds::passing::Passing {
        kinds::passing::find(self.trains.values(), self.c, self.every)
    }

    /// Whether too little was sent to tell a policer's burst from its line.
    fn is_short(&self) -> bool {
        self.budget.bytes.0 < SCANT && (self.bytes as f64) * 8.0 < SHORTEST * self.c
    }

    /// Half of what is sensible more, if the estimate is still rough and more is allowed.
    fn extend(&mut self) -> bool {
        let Some(most) = self.most.filter(|_| !self.is_far()) else { return false };
        let sensible = Budget::sensible(self.c, self.capacity.lag());
        let limit = most.min(Budget {
            bytes: Bytes(sensible.bytes.0 * EXTEND_TIMES),
            time: Nanos(sensible.time.0 * EXTEND_TIMES).min(Nanos::from_secs_f64(self.longest)),
        });
        let more = Budget {
            bytes: Bytes(self.budget.bytes.0 + sensible.bytes.0 / 2).min(limit.bytes),
            time: Nanos(self.budget.time.0 + sensible.time.0 / 2).min(limit.time),
        };
        // what goes by besides is not seen for longer by riding longer
        let estimate = self.judge(0.0);
        let enough = if self.every > 0.0 { ROUGH_GATHERED } else { ROUGH };
        let rough = estimate.high_bps - estimate.low_bps > 2.0 * enough * self.c;
        // one of them is spent, the other must not be what ends it at once
        if !rough || more.bytes <= self.budget.bytes || more.time <= self.budget.time {
            return false;
        }
        self.budget = more;
        true
    }

    /// The same as if it had sent these trains too, in which the queue was kept from running empty, after its own.
    pub fn with<'a>(&self, more: impl Iterator<Item = &'a TrainSeen>) -> Self {
        let mut ride = self.clone();
        for train in more {
            ride.trains.insert(train.id, ride.joined(train));
            ride.last_end = train.packets.last().map_or(ride.last_end, |p| ride.last_end.max(p.sent));
        }
        ride.find_base();
        ride
    }

    fn joined(&self, train: &TrainSeen) -> TrainSeen {
        if self.every > 0.0 { gather::joined(train, self.every) } else { train.clone() }
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
        if let Some(step) = self.grains(now) {
            return step;
        }
        let until = if self.overlaps() { self.last_end } else { self.until() };
        if self.pending.is_empty() || now >= until {
            self.phase = Phase::Done;
            return Step::Done;
        }
        Step::Wait(until)
    }

    /// The last report is waited for until then.
    fn until(&self) -> Nanos {
        let end = self.last_end.max(self.last_grain);
        (end + Nanos(self.lag.0 * REPORT_LAGS) + REPORT_GRACE).min(self.deadline().max(end + self.lag))
    }

    fn segments(&self) -> (Vec<Segment>, Losses) {
        let trains = self.trains.range(self.counted..).map(|(_, train)| train);
        let mut segments = series::segments(trains, self.c, self.base);
        let losses = series::settle_losses(&mut segments);
        (segments, losses)
    }

    fn balance(&self, segments: &[Segment], losses: Losses) -> Option<Balance> {
        let balance = Balance::of(segments, losses, self.c, self.blur())?;
        // an opportunity's last packet waited for it: what the stamps say is late by that packet's time at most
        let late = if self.every > 0.0 { PACKET / self.c } else { balance.late }.max(WANDERED * self.wander);
        Some(Balance { late: if self.is_lost() { late.max(self.late) } else { late }, ..balance })
    }

    /// Whether what arrived of the ride shows that neither C nor A can be as large as they look.
    fn refuted(&self) -> bool {
        let (segments, losses) = self.segments();
        self.balance(&segments, losses).is_some_and(|balance| self.c > 0.0 && self.refutes(&segments, &balance))
    }

    /// What is known so far, of a measurement that takes `around` [s] besides.
    fn judge(&self, around: f64) -> Estimate {
        if self.c == 0.0 {
            return Estimate::none(self.capacity.estimate().why_not.unwrap_or(WhyNot::TooFew), self.bytes);
        }
        let (segments, losses) = self.segments();
        let Some(balance) = self.balance(&segments, losses) else {
            return Estimate::none(WhyNot::TooFew, self.bytes);
        };
        let begun = self.started.unwrap_or_default();
        let whole = (self.last_end.saturating_sub(begun).as_secs_f64() + around).max(balance.time);
        let unseen = self.unseen(&balance);
        let (value, half) = self.over(&balance, whole, unseen);
        let most = HALF_MOST[usize::from(self.capacity.estimate().why_not.is_some())];
        if half >= most * self.c || self.refutes(&segments, &balance) {
            return match self.passed(&segments) {
                Some(got) => {
                    let all = Estimate::of(got, 0.0, PASSED_MOST * got, self.bytes);
                    Estimate { why_not: Some(WhyNot::Inconsistent), ..all }
                }
                None if self.is_scant() => Estimate::none(WhyNot::TooFew, self.bytes),
                None => Estimate::none(WhyNot::Inconsistent, self.bytes),
            };
        }
        // who has seen it rise does not know how far it goes on
        let ends = if self.proven > 0.0 { f64::INFINITY } else { ABOVE_CAPACITY * self.c };
        Estimate {
            discipline: self.discipline().unwrap_or_default(),
            ..Estimate::of(value, (value - half).max(0.0), (value + half).min(ends), self.bytes)
        }
    }

    /// What came through while much was lost, whoever dropped it [bit/s]: who takes a share of a line that is overloaded gets more
    /// than others leave of it, and where there are none, all of it.
    fn passed(&self, segments: &[Segment]) -> Option<f64> {
        let from = self.trains.get(&self.first)?.packets[0].sent.as_secs_f64();
        let ride = || segments.iter().filter(|s| s.from >= from);
        let first = ride().find(|s| s.lost > 0)?.from;
        let (mut bits, mut lost, mut time) = (0.0, 0.0, 0.0);
        for s in ride().filter(|s| s.from >= first) {
            bits += s.bits;
            lost += f64::from(s.lost) * PACKET;
            time += s.time;
        }
        let enough = bits >= PASSED_LEAST * PACKET && time > 0.0 && lost > LOST_MOST * (bits + lost);
        enough.then(|| bits / time)
    }

    /// The mean over a measurement of `whole` [s], and half of its 90 % interval [bit/s].
    fn over(&self, balance: &Balance, whole: f64, unseen: Unseen) -> (f64, f64) {
        let share = (1.0 - balance.time / whole).max(0.0);
        let goes_on = balance.over(whole);
        // a line that is always busy is left with what the probes carried
        let own = (self.received() - balance.own).max(0.0) / whole;
        // and what others have put into the queue besides, which is longer than the ride would have it
        let grown = (self.c * (self.grown() - balance.grown) - 2.0 * self.target).max(0.0) / whole;
        let full = balance.available * (1.0 - share) + own - grown + self.c * unseen.idle * share;
        let full = full.clamp(0.0, goes_on.max(0.0));
        let value = goes_on + unseen.full * (full - goes_on);
        let open = (unseen.full * (1.0 - unseen.full)).sqrt() * (goes_on - full);
        let random = unseen.full * unseen.deviation * self.c * share;
        let half = balance.half_width(self.c, whole);
        let changed = CHANGED * (self.proven - self.capacity.capacity().unwrap_or(self.proven)).max(0.0) * share.sqrt();
        let rough = self.rough().map_or(0.0, |(low, high)| (high - self.c).max(self.c - low).max(0.0));
        let half =
            (half.powi(2) + changed.powi(2) + rough.powi(2) + UNSEEN.powi(2) * (open.powi(2) + random.powi(2))).sqrt();
        (value.clamp(0.0, ABOVE_CAPACITY * self.c), half)
    }

    /// How much longer the last large probe waited than the first one [s].
    fn grown(&self) -> f64 {
        let mut packets = self.trains.values().flat_map(|train| &train.packets);
        let above = |p: &super::Seen| Some((p.own_delay()? as f64 - self.base.floor.delay_at(p.sent.0)) / 1e9);
        let first = packets.find_map(above);
        let mut packets = self.trains.values().rev().flat_map(|train| train.packets.iter().rev());
        first.zip(packets.find_map(above)).map_or(0.0, |(first, last)| last - first)
    }

    /// Bits of all large probes that came.
    fn received(&self) -> f64 {
        let packets = self.trains.values().flat_map(|train| &train.packets);
        packets.filter(|p| p.received.is_some()).count() as f64 * PACKET
    }

    /// Whether reports take long.
    fn is_far(&self) -> bool {
        self.capacity.capacity().is_some_and(|c| is_far(c, self.capacity.lag()))
    }

    /// Whether so much of a ride was lost, and so much less than what is available arrived, that it is not what the path lets through.
    fn refutes(&self, segments: &[Segment], balance: &Balance) -> bool {
        let losing = balance.covered.iter().filter(|(s, _)| s.lost > 0);
        let (left, others) =
            losing.fold((0.0, 0.0), |(left, others), (s, cross)| (left + self.c * s.time - s.bits, others + cross));
        if others > OTHERS * left {
            return false;
        }
        let (mut bits, mut lost, mut time) = (0.0, 0.0, 0.0);
        // trains that leave at once may find no room in any queue
        let from = self.trains.get(&self.first).map_or(0.0, |train| train.packets[0].sent.as_secs_f64());
        for segment in segments.iter().filter(|segment| segment.from >= from) {
            bits += segment.bits;
            lost += f64::from(segment.lost) * PACKET;
            time += segment.time;
        }
        let (offered, would) = (bits + lost, balance.available * time);
        lost > LOST_MOST * offered && would > GOT_MOST * bits && would < OFFERED_MOST * offered
    }

    fn find_base(&mut self) {
        if let Some(base) = series::base(self.trains.values()) {
            self.base = Base { late: self.blur().max(self.noise).max(self.wander), ..base };
        }
    }

    fn blur(&self) -> f64 {
        series::blur(self.trains.values(), self.c).max(self.every)
    }

    fn learn(&mut self, train: &TrainSeen) {
        self.find_base();
        let (mut segments, mut losses) = self.segments();
        let late = self.noise(&segments);
        let carried = series::carried(&segments, self.c, self.blur().max(self.wander), late);
        if let Some(carried) = carried.filter(|&carried| carried > PROOF * self.c) {
            (self.c, self.proven) = (carried, carried);
            (segments, losses) = self.segments();
        }
        if let Some(balance) = self.balance(&segments, losses) {
            self.covered = balance.time;
            let known = PRIOR_PACKETS * PACKET / self.c;
            let a = (balance.available * balance.time + PRIOR * self.c * known) / (balance.time + known);
            self.a = a.clamp(PLANNED.0 * self.c, PLANNED.1 * self.c);
        }
        self.refine();
        self.noise = self.noise(&segments);
        let from = train.packets[0].sent.as_secs_f64();
        let (mut time, mut open) = (0.0, 0.0);
        // where C was shown to be more, or may be, a queue that is missing though it was aimed at says so, too: at the
        // rate C nobody is apart from the one before
        let varies = self.proven > 0.0 || self.wander > 0.0 || self.every > 0.0;
        let missed = |s: &Segment| varies && s.wait <= s.unsure && self.target > s.unsure * self.c;
        for segment in segments.iter().filter(|s| s.from >= from) {
            time += segment.time;
            open += if segment.joined && !missed(segment) { 0.0 } else { segment.time };
        }
        self.limit = losses.room.map_or(f64::INFINITY, |room| room * self.c);
        if self.limit.is_finite() {
            self.target = self.target.min(self.limit * ROOM_SHARE).max(BACKLOG_LEAST * PACKET);
        }
        let least = self.floor();
        self.target = self.target.max(least.min(self.limit * ROOM_SHARE));
        if train.id < self.raised {
            return;
        }
        if open > IDLE_BOOSTS * time {
            // there it is sought in fewer steps
            let (step, most) =
                if varies { (self.boost.max(BOOST_STEP), VARIES_MOST) } else { (BOOST_STEP, BOOST_MOST) };
            self.boost = (self.boost + step).min(most);
            self.raised = self.next_id;
        } else {
            self.boost *= BOOST_DECAY;
        }
        if open > IDLE_RAISES * time {
            self.raised = self.next_id;
            self.target =
                (self.target * BACKLOG_RAISE).min(least.max(BACKLOG_MOST * PACKET)).min(self.limit * ROOM_SHARE);
            self.target = self.target.min(self.most());
        }
    }
}

impl Method for Ride {
    fn next(&mut self, now: Nanos) -> Step {
        self.now = now;
        self.started.get_or_insert(now);
        match self.phase {
            Phase::Capacity => match self.capacity.next(now) {
                Step::Done if self.capacity.capacity().is_some() => self.small(now),
                Step::Done => {
                    self.phase = Phase::Done;
                    Step::Done
                }
                Step::Send(plan) => {
                    self.bytes += plan.bytes();
                    Step::Send(plan)
                }
                Step::Wait(_) if self.is_far() && self.capacity.is_sent(now) => self.small(now),
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
        if self.grains == Some(train.id) {
            self.pending.remove(&train.id);
            self.grain_train = Some(train.clone());
            return;
        }
        self.trains.insert(train.id, self.joined(train));
        if train.id < self.capacity.next_id {
            self.capacity.observe(now, train);
        }
        if self.phase == Phase::Capacity {
            if let Some(most) = self.most {
                let takes = |(time, reports): (Nanos, u64)| time + self.capacity.lag() * reports;
                let left = |[behind, least]: [_; 2]| most.time.saturating_sub(takes(behind)).max(takes(least));
                let left = self.leaves.map_or(most.time, left);
                let most = Budget { time: most.time.min(left), ..most };
                self.budget = match self.capacity.capacity() {
                    Some(c) => {
                        let Budget { bytes, time } = Budget::sensible(c, self.capacity.lag());
                        most.min(Budget { bytes, time: time + self.misled })
                    }
                    None => most,
                };
                let (share, trains) = Self::share(self.budget, self.is_scant());
                self.capacity.bound(share, trains);
            }
            if self.misled == Nanos::ZERO && self.capacity.every().is_some() {
                self.misled = now.saturating_sub(self.started.unwrap_or_default());
            }
            return;
        }
        if train.id < self.capacity.next_id && self.proven == 0.0 && !self.capacity.is_brief() {
            self.c = self.capacity.capacity().unwrap_or(self.c);
        }
        self.pending.remove(&train.id);
        let last = train.packets.last().map_or(now, |packet| packet.sent);
        self.lag = now.saturating_sub(last).max(Nanos(self.lag.0 / 2));
        self.learn(train);
    }

    fn estimate(&self) -> Estimate {
        let found = self.judge(self.around());
        if found.value_bps.is_none() || found.why_not.is_some() {
            return found;
        }
        let policed = || self.passing().policed;
        let unsure = || self.is_lost() || policed();
        let why_not = if self.is_short() { Some(WhyNot::TooShort) } else { unsure().then_some(WhyNot::Ambiguous) };
        Estimate { why_not, ..found }
    }

    fn tell(&self, known: &mut Knowledge) {
        if self.c <= 0.0 {
            known.loss.random = Value::none(WhyNot::TooFew);
            return;
        }
        let passing = self.passing();
        (known.loss.random, known.loss.row) = (passing.random, passing.row);
        known.queue.depth_s = passing.depth_s;
        known.queue.depth_bytes = passing.depth_s.times(self.c / 8.0);
    }
}

#[cfg(test)]
mod tests;
