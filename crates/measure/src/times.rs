//! The two clocks of a measurement: exchanges of four stamps on a path, and what they say of offset, skew and delay.
//!
//! Exchanges come in groups, before, between and after the directions. Each group gives an offset with its bound
//! (`estimate/clock.rs`), if another group's, carried over by skew, has not a better one: a group may have met a long queue.
//! Between groups the offset lies on the line between theirs, so that skew does no harm; outside it may drift by [`DRIFT`].

use std::collections::BTreeMap;

use pathcast_base::Nanos;
use pathcast_estimate::clock::{self, Exchange, Offset};
use pathcast_estimate::delay::{OneWay, Waits, one_way};

use super::messages::{ClockInfo, Stamp};
use super::outcome::DelaySample;

/// Packets up to this size say what the delay is [IP bytes].
const SMALL: u16 = 200;
/// Two clocks drift apart by no more: 200 ppm.
const DRIFT: f64 = 2e-4;
/// Skew is told from exchanges so far apart at least [ns],
const LEVER: u64 = 1_000_000_000;
/// and if so many packets, early and late, were no slower than the floor and this [ns].
const SUPPORT: (usize, f64) = (3, 50e3);
/// Exchanges kept of a path.
const KEPT: usize = 1000;

#[derive(Clone, Copy)]
struct Asked {
    group: usize,
    size: u16,
    left: Option<Nanos>,
    answer: Option<(Stamp, Nanos)>,
}

/// All exchanges of one path.
#[derive(Default)]
pub(super) struct Times {
    open: BTreeMap<u32, Asked>,
    next: u32,
    group: usize,
    proven: bool,
    /// Group, size and stamps, in the order of the answers.
    done: Vec<(usize, u16, Exchange)>,
}

impl Times {
    /// Numbers its questions from one after `id` on. Who has not read a question cannot answer it, unless it guesses `id`.
    pub fn after(id: u32) -> Times {
        Times { next: id, ..Times::default() }
    }

    /// Has any question been answered: is there somebody at the other address?
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    /// A question of `size` IP bytes: its number.
    pub fn ask(&mut self, size: u16) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.open.insert(self.next, Asked { group: self.group, size, left: None, answer: None });
        self.next
    }

    pub fn left(&mut self, id: u32, at: Nanos, waits: &mut Waits) {
        if let Some(asked) = self.open.get_mut(&id) {
            asked.left = Some(at);
            self.join(id, waits);
        }
    }

    pub fn answered(&mut self, stamp: Stamp, at: Nanos, waits: &mut Waits) {
        if let Some(asked) = self.open.get_mut(&stamp.id) {
            asked.answer.get_or_insert((stamp, at));
            self.proven = true;
            self.join(stamp.id, waits);
        }
    }

    fn join(&mut self, id: u32, waits: &mut Waits) {
        let Some(&Asked { group, size, left: Some(left), answer: Some((stamp, at)) }) = self.open.get(&id) else {
            return;
        };
        self.open.remove(&id);
        let exchange = Exchange { t1: left.0, t2: stamp.came.0, t3: stamp.leaves.0, t4: at.0 };
        if let Some(round_trip) = exchange.round_trip()
            && self.done.len() < KEPT
        {
            waits.answered(size, Nanos(round_trip));
            self.done.push((group, size, exchange));
        }
    }

    /// The least of the small packets' round trips [s].
    pub fn round_trip(&self) -> Option<f64> {
        let small = self.done.iter().filter(|done| done.1 <= SMALL);
        small.filter_map(|done| done.2.round_trip()).min().map(|ns| ns as f64 / 1e9)
    }

    /// Ends a group; answers may still come.
    pub fn end_group(&mut self) {
        self.group += 1;
    }

    /// Whether a question of this group has no answer yet.
    pub fn is_pending(&self) -> bool {
        self.open.values().any(|asked| asked.group == self.group)
    }

    /// Of small packets: departures by the sender's clock, and delays with the offset in them, there and back.
    pub fn delays(&self) -> [Vec<DelaySample>; 2] {
        let small = || self.done.iter().filter(|done| done.1 <= SMALL).map(|done| done.2);
        let there = small().map(|e| (e.t1, e.t2 as i64 - e.t1 as i64)).collect();
        let back = small().map(|e| (e.t3, e.t4 as i64 - e.t3 as i64)).collect();
        [there, back]
    }

    /// The other clock against ours.
    pub fn compare(&self, ours: ClockInfo, theirs: ClockInfo) -> Comparison {
        let mut anchors: Vec<Anchor> = Vec::new();
        for group in 0..=self.group {
            let of = || self.done.iter().filter(|done| done.0 == group).map(|done| done.2);
            let best = of().min_by_key(|exchange| exchange.round_trip());
            anchors.extend(best.and_then(|e| Some(Anchor { at: e.t1 / 2 + e.t4 / 2, offset: e.offset()? })));
        }
        let sum = ours.max_error.0.saturating_add(theirs.max_error.0);
        let both = ours.synchronised && theirs.synchronised;
        let agrees = |a: &Anchor| a.offset.theta.unsigned_abs() <= a.offset.error.saturating_add(sum);
        if ours.host.is_some() && ours.host == theirs.host {
            return Comparison { synchronised: true, offset: Some(0.0), skew: Some(0.0), anchors, fixed: Some(0) };
        }
        if both && !anchors.is_empty() && anchors.iter().all(agrees) {
            return Comparison { synchronised: true, offset: Some(0.0), skew: None, anchors, fixed: Some(sum) };
        }
        let skew = self.skew(&anchors);
        let best = anchors.iter().min_by_key(|a| a.offset.error);
        let offset = best.map(|a| a.offset.theta as f64);
        let carried = |to: &Anchor| {
            let at = to.at;
            anchors.iter().map(|from| from.carried(at, skew.unwrap_or(0.0))).min_by_key(|a| a.offset.error)
        };
        let anchors = anchors.iter().filter_map(carried).collect();
        Comparison { synchronised: false, offset, skew, anchors, fixed: None }
    }

    /// The other clock's rate less ours, by the floors under both ways' delays: what queues add to the one and the other.
    fn skew(&self, anchors: &[Anchor]) -> Option<f64> {
        let (first, last) = (anchors.first()?, anchors.last()?);
        if last.at.saturating_sub(first.at) < LEVER {
            return None;
        }
        let slope = |delays: &[DelaySample]| {
            let mut delays = delays.to_vec();
            delays.sort_unstable();
            let floor = clock::floor(&delays)?;
            let (from, to) = (delays.first()?.0, delays.last()?.0);
            let third = (to - from) / 3;
            let rests = |p: &&DelaySample| p.1 as f64 - floor.delay_at(p.0) < SUPPORT.1;
            let early = delays.iter().take_while(|p| p.0 <= from + third).filter(rests).count();
            let late = delays.iter().skip_while(|p| p.0 < to - third).filter(rests).count();
            (early >= SUPPORT.0 && late >= SUPPORT.0).then_some(floor.skew)
        };
        let [there, back] = self.delays();
        Some((slope(&there)? - slope(&back)?) / 2.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Anchor {
    /// By our clock [ns].
    at: u64,
    offset: Offset,
}

impl Anchor {
    /// What it says of another time.
    fn carried(&self, at: u64, skew: f64) -> Anchor {
        let time = at as f64 - self.at as f64;
        let Offset { theta, error } = self.offset;
        let offset = Offset { theta: theta + (skew * time) as i64, error: error + (DRIFT * time.abs()) as u64 };
        Anchor { at, offset }
    }
}

/// The other clock less ours, over the time of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    /// Whether delays mean something beyond their differences.
    pub synchronised: bool,
    /// [ns]
    pub offset: Option<f64>,
    /// [s/s]
    pub skew: Option<f64>,
    anchors: Vec<Anchor>,
    /// The clocks agree within so much, whatever the exchanges say [ns].
    fixed: Option<u64>,
}

impl Comparison {
    /// How far the offset may be off [ns].
    pub fn error(&self) -> Option<u64> {
        self.fixed.or_else(|| self.anchors.iter().map(|a| a.offset.error).min())
    }

    /// At a time of our clock: offset and bound [ns].
    fn at(&self, time: u64) -> Option<(f64, f64)> {
        if let Some(error) = self.fixed {
            return Some((0.0, error as f64));
        }
        let after = self.anchors.partition_point(|a| a.at < time);
        let beyond = |a: &Anchor| (a.offset.theta as f64, a.offset.error as f64 + DRIFT * a.at.abs_diff(time) as f64);
        match (after.checked_sub(1).and_then(|i| self.anchors.get(i)), self.anchors.get(after)) {
            (Some(a), Some(b)) => {
                let share = (time - a.at) as f64 / (b.at - a.at).max(1) as f64;
                let step = (b.offset.theta - a.offset.theta) as f64;
                Some((a.offset.theta as f64 + share * step, a.offset.error.max(b.offset.error) as f64))
            }
            (Some(a), None) | (None, Some(a)) => Some(beyond(a)),
            (None, None) => None,
        }
    }

    fn sum_up(&self, delays: impl Iterator<Item = (u64, i64)>, sign: f64) -> Option<OneWay> {
        let mut most = Some(0.0f64);
        let own: Vec<i64> = delays
            .map(|(time, delay)| {
                let (theta, error) = self.at(time).unzip();
                most = most.zip(error).map(|(most, error)| most.max(error));
                delay.saturating_sub((sign * theta.unwrap_or(0.0)) as i64)
            })
            .collect();
        one_way(&own, most.map(|error| Offset { theta: 0, error: error.ceil() as u64 }))
    }

    /// Delays of packets from us to the other end.
    pub fn there(&self, delays: &[DelaySample]) -> Option<OneWay> {
        self.sum_up(delays.iter().copied(), 1.0)
    }

    /// And back; the departures are by the other clock.
    pub fn back(&self, delays: &[DelaySample]) -> Option<OneWay> {
        let offset = self.offset.unwrap_or(0.0) as i64;
        self.sum_up(delays.iter().map(|&(sent, delay)| (sent.saturating_add_signed(-offset), delay)), -1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of exchanges 10 s apart; the other clock is 7 s ahead and gains 50 ppm; 30 ms there, 10 ms back.
    fn skewed() -> (Times, Waits) {
        let (mut times, mut waits) = (Times::default(), Waits::default());
        let other = |t: u64| Nanos(t + 7_000_000_000 + t / 20_000);
        for start in [1_000_000_000u64, 11_000_000_000] {
            for i in 0..10 {
                let t = start + i * 10_000_000;
                let queue = i % 3 * 1_000_000;
                let id = times.ask(120);
                let arrives = t + 30_000_000 + queue;
                times.answered(
                    Stamp { id, came: other(arrives), leaves: other(arrives) },
                    Nanos(arrives + 10_000_000),
                    &mut waits,
                );
                times.left(id, Nanos(t), &mut waits);
            }
            assert!(!times.is_pending());
            times.end_group();
        }
        (times, waits)
    }

    #[test]
    fn delays_lie_within_their_bound_in_spite_of_offset_and_skew() {
        let (times, waits) = skewed();
        let clocks = times.compare(ClockInfo::default(), ClockInfo::default());
        assert!(!clocks.synchronised && (clocks.skew.unwrap() - 50e-6).abs() < 1e-6, "{clocks:?}");
        let [there, back] = times.delays();
        for (got, truth) in [(clocks.there(&there).unwrap(), 30e6), (clocks.back(&back).unwrap(), 10e6)] {
            let error = got.error.unwrap() as f64;
            assert!(error < 20.2e6 && (got.minimum - truth).abs() <= error, "{got:?}");
        }
        assert!((waits.fit().unwrap().0 - 40e6).abs() < 1e4);
    }

    #[test]
    fn one_clock_has_no_error_and_disciplined_ones_their_own_unless_they_contradict_the_exchange() {
        let (mut times, mut waits) = (Times::default(), Waits::default());
        let id = times.ask(120);
        times.left(id, Nanos(1000), &mut waits);
        times.answered(Stamp { id, came: Nanos(4000), leaves: Nanos(4000) }, Nanos(5000), &mut waits);
        times.end_group();
        let [there, _] = times.delays();
        let host = ClockInfo { host: Some([1; 16]), ..ClockInfo::default() };
        let one = times.compare(host, host);
        assert_eq!((one.synchronised, one.there(&there).unwrap().error), (true, Some(0)));
        let word = |max_error| ClockInfo { host: None, synchronised: true, max_error: Nanos(max_error) };
        let both = times.compare(word(100), word(50));
        let delay = both.there(&there).unwrap();
        assert_eq!((both.synchronised, delay.error, delay.minimum), (true, Some(150), 3000.0));
        // the exchange says 1000 +- 2001, and a clock an hour off is not disciplined
        let (mut times, mut waits) = (Times::default(), Waits::default());
        let id = times.ask(120);
        times.left(id, Nanos(1000), &mut waits);
        let came = Nanos(3_600_000_000_000);
        times.answered(Stamp { id, came, leaves: came }, Nanos(5000), &mut waits);
        let off = times.compare(word(100), word(50));
        assert!(!off.synchronised && off.offset.unwrap() > 3.5e12);
    }

    #[test]
    fn without_an_exchange_delays_have_no_bound() {
        let none = Times::default().compare(ClockInfo::default(), ClockInfo::default());
        assert_eq!(none.there(&[(5, 7)]).unwrap().error, None);
    }
}
