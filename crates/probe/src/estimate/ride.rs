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
//! The interval's parts: cross traffic in the time not covered (from the spread between blocks of the covered time), whole
//! packets at both ends of what was counted, the time in which the line was perhaps idle, what the queue has grown (which
//! depends on C), and lost packets.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Stream};

use super::capacity::MiniTrains;
use super::clock::Floor;
use super::series::{self, Segment};
use super::stat::{deviation, median, quantile, student90};
use super::{Budget, Discipline, Estimate, LARGE, Method, Plan, Seen, Step, TrainSeen, WhyNot};

/// Bits of a probe.
const PACKET: f64 = LARGE as f64 * 8.0;

/// Packets that the ride wants in the queue: at first, at least, at most.
const BACKLOG: (f64, f64, f64) = (6.0, 2.0, 20.0);

/// Small packets: how many, and their size [IP bytes].
const SMALL: (usize, u16) = (12, 120);

/// A may come out above C, whose error is then the larger of the two: what the probes got is a proof. At most so far.
const MOST: f64 = 1.1;

/// The gap of packets that make the queue longer, as a share of L/C. Not zero: a narrow link before the tight one would
/// queue them, and its queue says nothing.
const HURRY: f64 = 0.8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Capacity,
    Small,
    Opening,
    Ride,
    Drain,
    Done,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Ride {
    budget: Budget,
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
    /// A packet's delay without a queue.
    base: Floor,
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
const PRIOR: (f64, f64) = (0.5, 8.0);

impl Ride {
    /// Both phases within the budget.
    pub fn new(budget: Budget, seed: u64) -> Self {
        let share = Budget { bytes: Bytes(budget.bytes.0 / 3), time: Nanos(budget.time.0 / 2) };
        let trains = (budget.bytes.0 / 5 / (5 * u64::from(LARGE))).clamp(4, 7) as usize;
        Ride {
            budget,
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
            base: Floor { at: 0, delay: 0.0, skew: 0.0 },
            target: 0.0,
            limit: f64::INFINITY,
            a: 0.0,
            covered: 0.0,
            raised: 0,
            boost: 0.0,
        }
    }

    /// The capacity that it has found.
    pub fn capacity(&self) -> Estimate {
        self.capacity.estimate()
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

    fn opening(&mut self, now: Nanos) -> Step {
        self.base = series::base(self.trains.values()).unwrap_or(self.base);
        self.lag = self.capacity.lag();
        self.first = self.next_id;
        self.target = self.floor().max(BACKLOG.0 * PACKET);
        self.phase = Phase::Opening;
        let count = ((2e-3 * self.c / PACKET) as usize).clamp(12, 200);
        let gap = PACKET / self.c;
        let at = Nanos::from_secs_f64(self.follow).max(now);
        self.follow = at.as_secs_f64() + gap * count as f64;
        let plan = Plan::even(self.first, at, count, gap, LARGE);
        self.send(plan)
    }

    /// A packet alone takes L/C even where every flow has its own queue; back to back it takes its share.
    fn small(&mut self, now: Nanos) -> Step {
        self.c = self.capacity.filter().capacity().unwrap_or(0.0);
        let gap = 1.5 * PACKET / self.c;
        let stream = &mut self.stream;
        let gaps: Vec<Nanos> = (1..SMALL.0).map(|_| Nanos::from_secs_f64(gap * stream.between(0.8, 1.2))).collect();
        let plan = Plan { id: self.capacity.next_id, at: now, gaps, size: SMALL.1 };
        self.follow = (now + plan.duration()).as_secs_f64() + gap;
        self.phase = Phase::Small;
        self.send(plan)
    }

    /// Bits that hide how a host at high rates gathers packets.
    fn floor(&self) -> f64 {
        (0.3e-3 * self.c).max(BACKLOG.1 * PACKET)
    }

    /// After so much covered time A is roughly known [s].
    fn known(&self) -> f64 {
        50.0 * PACKET / self.c
    }

    fn deadline(&self) -> Nanos {
        self.started.unwrap_or_default() + self.budget.time
    }

    /// How long a train lasts [s].
    fn train_time(&self) -> f64 {
        let packets = (12.0 * PACKET / self.a).min(60.0 * PACKET / self.c).max(4.0 * PACKET / self.a);
        let whole = packets.max(4e-3).max(0.5 * self.lag.as_secs_f64());
        // what the opening said may be far off
        if self.covered < self.known() { whole.min(40.0 * PACKET / self.c).max(4e-3) } else { whole }
    }

    /// What waits at the bottleneck at time `at` [bit], from the last report and what was sent since.
    fn backlog(&self, at: f64) -> f64 {
        let last = self.trains.values().rev().flat_map(|train| train.packets.iter().rev());
        let Some((sent, delay)) = last.filter_map(|p| Some((p.sent, p.own_delay()?))).next() else {
            return 0.0;
        };
        let mut bits = (delay as f64 - self.base.delay_at(sent.0)) / 1e9 * self.c + PACKET;
        let sent = sent.as_secs_f64();
        let mut time = sent;
        for &next in self.pending.values().flatten().filter(|&&next| next > sent && next < at) {
            bits = (bits - self.a * (next - time)).max(0.0) + PACKET;
            time = next;
        }
        (bits - self.a * (at - time)).max(0.0)
    }

    fn ride(&mut self, now: Nanos) -> Step {
        // as long as little is known, rather too fast: a queue that is too long is seen and mended, an empty one hides
        let covered = self.covered.max(10.0 * PACKET / self.c);
        let known = self.known();
        let random = ((self.c - self.a).max(0.0) * CROSS / covered).sqrt() * known / (known + covered);
        let more = (1.5 * ENDS * CROSS / covered).max(0.7 * random);
        let more = more.min(10.0 * PACKET / self.lag.as_secs_f64().max(1e-3));
        let rate = ((self.a + more) * (1.0 + self.boost)).min(1.02 * self.c);
        let step = PACKET / rate;
        let start = self.follow.max(now.as_secs_f64());
        let time = self.train_time();
        let left = self.budget.bytes.0.saturating_sub(self.bytes) / u64::from(LARGE);
        let end = self.deadline().as_secs_f64() - self.lag.as_secs_f64() * 1.1;
        if left < 3 || start + 3.0 * step > end {
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

    fn drain(&mut self, now: Nanos) -> Step {
        let until = (self.last_end + Nanos(self.lag.0 * 2) + Nanos::millis(30))
            .min(self.deadline().max(self.last_end + self.lag));
        if self.pending.is_empty() || now >= until {
            self.phase = Phase::Done;
            return Step::Done;
        }
        Step::Wait(until)
    }

    fn segments(&self) -> Vec<Segment> {
        series::segments(self.trains.range(self.first..).map(|(_, train)| train), self.c, self.base)
    }

    fn blur(&self) -> f64 {
        series::blur(self.trains.values(), self.c)
    }

    /// C again, where the receiver gathers packets: from whole trains, now that A is known.
    fn refine(&mut self) {
        if self.blur() <= 2.0 * PACKET / self.c {
            return;
        }
        let trains = self.trains.range(..self.first);
        let whole: Vec<f64> = trains.filter_map(|(_, train)| self.whole(train)).collect();
        if let Some(c) = median(&whole).filter(|_| whole.len() > 2) {
            self.c = c;
        }
    }

    /// What a whole train, sent at u and received at r, says of C when A is known: r = u C / (u + C - A).
    fn whole(&self, train: &TrainSeen) -> Option<f64> {
        let own: Vec<&Seen> = train.packets.iter().filter(|p| p.own_delay().is_some()).collect();
        let (first, last) = (own.first()?, own.last()?);
        let spoilt = train.packets.windows(2).any(|w| w[1].sent.0 - w[0].sent.0 > 300_000);
        let lost = train.packets.iter().any(|p| p.received.is_none());
        let count = train.packets.iter().filter(|p| p.sent > first.sent && p.sent <= last.sent).count();
        let bits = count as f64 * PACKET;
        let (sent, received) = (last.sent.0 - first.sent.0, last.received?.0 - first.received?.0);
        if spoilt || lost || count < 20 || received == 0 {
            return None;
        }
        let (u, r) = (bits * 1e9 / sent.max(1) as f64, bits * 1e9 / received as f64);
        Some(if u > 1.2 * r { r * (u - self.a) / (u - r) } else { r })
    }

    fn discipline(&self) -> Option<Discipline> {
        let small = series::base(self.small.iter())?;
        let slope = (self.base.delay_at(small.at) - small.delay) / 1e9 / (f64::from(LARGE - SMALL.1) * 8.0);
        let trains = self.trains.range(..self.first).map(|(_, train)| &train.packets);
        let gaps = trains.filter_map(|p| Some(p.get(1)?.received?.saturating_sub(p[0].received?).as_secs_f64()));
        // on a bucket's line nearly all of them, in a fair queue those that nobody came between
        let first = PACKET / quantile(&gaps.collect::<Vec<f64>>(), 0.8)?.max(1e-9);
        Some(discipline(self.c, slope, first, self.blur() + series::NOTHING))
    }

    fn learn(&mut self, train: &TrainSeen) {
        self.base = series::base(self.trains.values()).unwrap_or(self.base);
        let segments = self.segments();
        if let Some(balance) = Balance::of(&segments, self.c, self.blur()) {
            let (share, packets) = PRIOR;
            self.covered = balance.time;
            let known = packets * PACKET / self.c;
            let a = (balance.available * balance.time + share * self.c * known) / (balance.time + known);
            self.a = a.clamp(0.02 * self.c, 1.02 * self.c);
        }
        self.refine();
        let from = train.packets[0].sent.as_secs_f64();
        let (mut time, mut open) = (0.0, 0.0);
        let longest = segments.iter().map(|s| s.wait).fold(0.0, f64::max);
        for segment in segments.iter().filter(|s| s.from >= from) {
            time += segment.time;
            open += if segment.joined { 0.0 } else { segment.time };
            if segment.lost > 0 && segment.wait > 0.5 * longest {
                self.limit = self.limit.min(segment.wait * self.c);
            }
        }
        if self.limit.is_finite() {
            self.target = self.target.min(self.limit * 0.5).max(BACKLOG.1 * PACKET);
        }
        let least = self.floor();
        if train.id < self.raised {
            return;
        }
        if open > 0.3 * time {
            self.boost = (self.boost + 0.05).min(0.3);
            self.raised = self.next_id;
        } else {
            self.boost *= 0.5;
        }
        if open > 0.15 * time {
            self.raised = self.next_id;
            self.target = (self.target * 1.4).min(least.max(BACKLOG.2 * PACKET)).min(self.limit * 0.5);
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
                let until = self.last_end + Nanos(self.lag.0 * 3) + Nanos::millis(50);
                if self.a == 0.0 && now < until {
                    return Step::Wait(until);
                }
                if self.a == 0.0 {
                    self.a = 0.5 * self.c;
                }
                self.phase = Phase::Ride;
                self.ride(now)
            }
            Phase::Ride => {
                // planned a little ahead, with the latest report that can be had
                let ahead = Nanos::from_secs_f64(0.25 * self.train_time());
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
        if train.packets[0].size == SMALL.1 {
            self.pending.remove(&train.id);
            self.small = Some(train.clone());
            return;
        }
        self.trains.insert(train.id, train.clone());
        if self.phase == Phase::Capacity {
            return self.capacity.observe(now, train);
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
        let segments = self.segments();
        let Some(balance) = Balance::of(&segments, self.c, self.blur()) else {
            return Estimate::none(WhyNot::TooFew, self.bytes);
        };
        let value = balance.available.clamp(0.0, MOST * self.c);
        let begun = self.started.unwrap_or_default();
        let whole = self.last_end.saturating_sub(begun).as_secs_f64();
        let half = balance.half_width(self.c, whole);
        Estimate {
            discipline: self.discipline().unwrap_or_default(),
            ..Estimate::of(value, (value - half).max(0.0), (value + half).min(MOST * self.c), self.bytes)
        }
    }
}

/// Cross traffic over all segments.
#[derive(Clone, Debug)]
struct Balance {
    available: f64,
    /// Covered time [s].
    time: f64,
    /// Of it the line was perhaps idle [s].
    open: f64,
    /// How much longer the queue is at the end [s of service].
    grown: f64,
    /// Packets lost.
    lost: u32,
    /// Stretches of covered time.
    runs: usize,
    /// Segments and the cross traffic in them [bit].
    covered: Vec<(Segment, f64)>,
}

/// A segment that is not joined and longer than this many packets at the mean rate is a pause (of the sending host, of the
/// method), not a part of the ride.
const PAUSE: f64 = 4.0;

/// Bits of a packet of cross traffic, as far as it matters: one more or less at the ends of a stretch.
const CROSS: f64 = 12_000.0;

/// The standard deviation of a sum that is one packet more or less by the place of its ends.
const ENDS: f64 = 0.41;

/// How far the ends of the ride may be cut off to have the queue as long at the end as at the beginning.
const TRIM: f64 = 0.2;

impl Balance {
    fn of(segments: &[Segment], c: f64, blur: f64) -> Option<Balance> {
        let total: f64 = segments.iter().map(|s| s.time).sum();
        let joined: f64 = segments.iter().filter(|s| s.joined).map(|s| s.time).sum();
        let exact: f64 = segments.iter().filter(|s| s.joined).map(|s| s.low).sum();
        if total <= 0.0 {
            return None;
        }
        let rough = if joined > 0.0 { (exact / joined).clamp(0.0, 0.98 * c) } else { 0.5 * c };
        let pause = PAUSE * PACKET / (c - rough);
        let kept = |s: &Segment| s.joined || s.time < pause;
        let bits = series::filled(segments, c, rough, blur);
        let covered: Vec<(Segment, f64)> = segments.iter().copied().zip(bits).filter(|(s, _)| kept(s)).collect();
        let covered = trimmed(&covered);
        let time: f64 = covered.iter().map(|(s, _)| s.time).sum();
        if time <= 0.0 {
            return None;
        }
        let cross: f64 = covered.iter().map(|(_, bits)| bits).sum();
        let open = covered.iter().filter(|(s, _)| !s.joined).map(|(s, _)| s.hidden).sum();
        let lost = covered.iter().map(|(s, _)| s.lost).sum();
        let grown = covered.iter().map(|(s, _)| s.wait - s.before).sum();
        let runs = 1 + segments.iter().filter(|s| !kept(s)).count();
        Some(Balance { available: c - cross / time, time, open, grown, lost, runs, covered })
    }

    /// Half of the 90 % interval [bit/s]; `whole` is how long the measurement took [s].
    fn half_width(&self, c: f64, whole: f64) -> f64 {
        let rate = c - self.available;
        let each = self.time / 10.0;
        let mut rates = Vec::new();
        let (mut time, mut bits) = (0.0, 0.0);
        for (s, cross) in &self.covered {
            time += s.time;
            bits += cross;
            if time >= each {
                rates.push(bits / time);
                (time, bits) = (0.0, 0.0);
            }
        }
        let packets = ENDS * CROSS.min(rate * self.time);
        let spread = deviation(&rates).unwrap_or(rate).powi(2) - (packets / each).powi(2);
        let unseen = (whole / self.time - 1.0).max(0.0);
        let parts = [
            (spread.max(0.0) * unseen / rates.len().max(1) as f64).sqrt(),
            packets * (self.runs as f64).sqrt() / self.time,
            0.4 * c * self.open / self.time,
            (0.1 * c + 0.7 * rate) * self.grown / self.time,
            0.4 * PACKET * f64::from(self.lost).sqrt() / self.time,
            0.0006 * c,
        ];
        let all: f64 = parts.iter().map(|part| part * part).sum();
        student90(rates.len().saturating_sub(1)) * all.sqrt()
    }
}

/// Cuts the ends so that what the queue has grown, which alone of all depends on C, is least.
fn trimmed(covered: &[(Segment, f64)]) -> Vec<(Segment, f64)> {
    let total: f64 = covered.iter().map(|(s, _)| s.time).sum();
    let mut marks = vec![(0.0, 0.0)]; // time and growth [s] up to each segment
    for (s, _) in covered {
        let &(time, grown) = marks.last().expect("one at least");
        marks.push((time + s.time, grown + s.wait - s.before));
    }
    // one in so many places is tried
    let step = covered.len() / 200 + 1;
    let mut best = (f64::INFINITY, 0, covered.len());
    for from in (0..marks.len()).step_by(step).take_while(|&i| marks[i].0 <= TRIM * total) {
        for to in (0..marks.len()).rev().step_by(step).take_while(|&i| marks[i].0 >= (1.0 - TRIM) * total) {
            let cost = 0.3 * (marks[to].1 - marks[from].1).abs() + 0.05 * (total - marks[to].0 + marks[from].0);
            if cost < best.0 && from < to {
                best = (cost, from, to);
            }
        }
    }
    covered[best.1..best.2].to_vec()
}

/// Alone a packet takes so much less than in a row, as a share, where each flow has a queue of its own and others wait.
const ALONE: (f64, f64) = (0.7, 0.85);

/// How the bottleneck queues. `slope` [s a bit]: what a bit of a packet costs that is alone; `first` [bit/s]: the rate of a
/// train's first two packets, usually; `least` [s]: what stamps can tell apart. In a common queue back-to-back packets leave back to
/// back, each after L/C. In a fair one the others' packets come between, every time, and L/C cannot be seen but alone. A token
/// bucket does the same from the second packet on; there the first gap is short.
fn discipline(c: f64, slope: f64, first: f64, least: f64) -> Discipline {
    if slope * PACKET < 5.0 * least || first > 1.2 * c {
        return Discipline::Unknown;
    }
    match slope * c {
        share if share < ALONE.0 => Discipline::Fair,
        share if share > ALONE.1 => Discipline::Shared,
        _ => Discipline::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fluid;
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
            assert!((value - (5e6 - cross)).abs() < 0.01 * 5e6, "{cross}: {estimate:?}");
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

    #[test]
    fn the_ends_are_cut_where_the_queue_is_as_long() {
        let segment = Segment {
            from: 0.0,
            time: 1e-3,
            low: 0.0,
            high: 0.0,
            joined: true,
            hidden: 0.0,
            wait: 0.0,
            before: 0.0,
            bits: 8000.0,
            lost: 0,
        };
        // the first five of a hundred fill the queue, then it stays
        let wait = |k: usize| k.min(5) as f64 * 10e-3;
        let filling = |k: usize| Segment { before: wait(k), wait: wait(k + 1), ..segment };
        let covered: Vec<(Segment, f64)> = (0..100).map(|k| (filling(k), 0.0)).collect();
        let left = trimmed(&covered);
        assert_eq!(left.len(), 95);
        assert_eq!(left[0].0.before, wait(5));
    }

    #[test]
    fn a_packet_alone_tells_a_fair_queue_from_a_slow_link() {
        assert_eq!(discipline(5e6, 1.0 / 5e6, 5e6, 20e-6), Discipline::Shared);
        // two flows take turns on 5 Mbit/s
        assert_eq!(discipline(2.5e6, 1.0 / 5e6, 2.5e6, 20e-6), Discipline::Fair);
        // a bucket of 2.5 Mbit/s on a line of 100
        assert_eq!(discipline(2.5e6, 1.0 / 100e6, 100e6, 20e-6), Discipline::Unknown);
        // two links, one behind the other
        assert_eq!(discipline(3e6, 1.0 / 3e6 + 1.0 / 5e6, 3e6, 20e-6), Discipline::Shared);
        // 1 Gbit/s: 11 us are within the noise
        assert_eq!(discipline(1e9, 1e-9, 1e9, 20e-6), Discipline::Unknown);
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
