//! What the line was left with while no probe of the ride saw it: before, in the trains that told the capacity, and around the
//! method, in a session's hellos and comparisons of clocks.
//!
//! Traffic that does not react goes on there as during the ride. TCP does not: it had filled the line, and gave way to the probes
//! only. What tells the two apart is weighed by Bayes' rule, and what remains open is in the interval:
//! - probes that are alone find the line busy as often as it is (Poisson arrivals see time averages): as often as the ride says, or
//!   nearly always;
//! - between the probes that told the capacity as much came in as during the ride, or nearly as much as the line carries;
//! - what gives way is neither as even as packets by a clock nor as uneven as bursts.

use super::super::series::{self, Base};
use super::super::stat::{deviation, median};
use super::super::{Discipline, TrainSeen};
use super::balance::{Balance, CROSS, ENDS};
use super::{PACKET, Ride};

/// What a session takes around a method: the clocks' questions [s], and so many round trips.
const AROUND: f64 = 0.13;
const AROUND_TRIPS: f64 = 4.0;

/// How probable it is beforehand that what uses a line gives way.
const GIVES_WAY: f64 = 0.4;
/// So many probes that are near each other in time say as much as one.
const ALIKE: f64 = 2.0;
/// Fewer say nothing.
const FEW: usize = 4;
/// Below this load there is nobody to give way.
const NOBODY: f64 = 0.1;
/// What gives way had filled the line for this share of the time at least, and left it idle for so large a share on average.
const FILLS: f64 = 0.7;
const IDLE: f64 = 0.06;
/// What comes in between the first probes then, as a share of C, and its deviation; and how far what C is known from blurs it.
const CAME: (f64, f64) = (0.92, 0.25);
const BLUR: f64 = 0.03;
/// Where the ride begins without an opening a queue shorter than this may be delays that wander [s], unless trains come no closer
/// than C allows, but for this share of L/C.
const STANDING: f64 = 6e-3;
const EXACT: f64 = 0.01;
/// Nothing of that is more convincing than this, in logarithms.
const SURE: f64 = 7.0;
/// And an opening train no more than this factor.
const OPENING: f64 = 4.0;
/// The deviation between blocks of the ride over that of as many packets at random: what gives way is seldom below the first or above
/// the second, so many times as seldom as other traffic.
const SPREAD: (f64, f64) = (0.5, 3.0);
const SELDOM: f64 = 0.2;
const BLOCKS: usize = 10;
/// Of the share of C that others use no less is looked at.
const LOAD_LEAST: f64 = 0.05;
/// The share of busy times is integrated in so many steps.
const STEPS: usize = 100;

/// Of the time without probes of the ride.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unseen {
    /// How probable it is that others had not given way yet.
    pub(super) full: f64,
    /// The share of it in which the line was idle, if so; and its standard deviation.
    pub(super) idle: f64,
    pub(super) deviation: f64,
}

/// So many of `all` probes found the line busy, which the ride says it was for a share `load` of the time; `odds`: what else speaks
/// for traffic that gives way.
fn weigh(busy: usize, all: usize, load: f64, odds: f64) -> Unseen {
    let none = Unseen { full: 0.0, idle: 1.0 - load, deviation: 0.0 };
    if all < FEW || !(NOBODY..1.0).contains(&load) {
        return none;
    }
    let (busy, free) = (busy as f64 / ALIKE, (all - busy) as f64 / ALIKE);
    let least = load.max(FILLS);
    let likely = |share: f64| share.powf(busy) * (1.0 - share).powf(free);
    let (mut all, mut sum, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
    for step in 0..STEPS {
        let share = least + (1.0 - least) * (step as f64 + 0.5) / STEPS as f64;
        let before = (-(1.0 - share) / IDLE).exp();
        let weight = likely(share) * before;
        all += before;
        sum += weight;
        first += weight * (1.0 - share);
        second += weight * (1.0 - share).powi(2);
    }
    if sum <= 0.0 {
        return none;
    }
    let idle = first / sum;
    let gives_way = odds * GIVES_WAY * sum / all;
    let full = gives_way / (gives_way + (1.0 - GIVES_WAY) * likely(load));
    Unseen { full, idle, deviation: (second / sum - idle * idle).max(0.0).sqrt() }
}

/// Whom probes have met: those of which it can be told. Who leaves when the one before it has left the bottleneck meets others only;
/// who leaves sooner has met others if it waits longer than all probes take that may be in the queue.
#[derive(Default)]
struct Met {
    found: Vec<bool>,
    /// What probes may have in the queue, and when the last of them leaves it [s].
    own: f64,
    leaves: f64,
}

impl Met {
    /// A probe that left at `sent` and waited so long; `unsure`: so long it may be by chance [s].
    fn probe(&mut self, sent: f64, wait: f64, unsure: f64) {
        if sent > self.leaves {
            self.own = 0.0;
        }
        if wait > self.own + unsure {
            self.found.push(true);
        } else if self.own == 0.0 {
            self.found.push(false);
        }
        self.leaves = self.leaves.max(sent + wait.max(0.0));
    }
}

/// By the firsts of trains, and by small ones behind them.
pub(super) fn met<'a>(
    trains: impl Iterator<Item = &'a TrainSeen>,
    small: Option<&TrainSeen>,
    base: Base,
    c: f64,
) -> Vec<bool> {
    let mut met = Met::default();
    for train in trains {
        for (k, packet) in train.packets.iter().enumerate() {
            let sent = packet.sent.as_secs_f64();
            if let Some(delay) = packet.own_delay() {
                let wait = (delay as f64 - base.floor.delay_at(packet.sent.0)) / 1e9;
                if k == 0 {
                    met.probe(sent, wait, base.unsure(packet.sent.0));
                }
                met.leaves = met.leaves.max(sent + wait.max(0.0));
            }
            met.own += PACKET / c;
        }
    }
    let Some((small, floor)) = small.and_then(|small| Some((small, series::base(std::iter::once(small))?.floor)))
    else {
        return met.found;
    };
    // the least of the small ones has waited too, if it took as long as a large one on an idle line
    let stood = (floor.delay - base.floor.delay_at(floor.at)).max(0.0);
    for packet in &small.packets {
        if let Some(delay) = packet.own_delay() {
            let wait = (delay as f64 - floor.delay_at(packet.sent.0) + stood) / 1e9;
            met.probe(packet.sent.as_secs_f64(), wait, base.unsure(packet.sent.0));
        }
    }
    met.found
}

impl Ride {
    /// What a session takes besides the method [s].
    pub(super) fn around(&self) -> f64 {
        if self.session { AROUND + AROUND_TRIPS * self.capacity.least_lag().as_secs_f64() } else { 0.0 }
    }

    /// What the line was left with while the ride did not see it.
    pub(super) fn unseen(&self, balance: &Balance) -> Unseen {
        let before = || self.trains.range(..self.first).map(|(_, train)| train);
        let met = met(before(), self.small.as_ref(), self.base, self.c);
        let busy = met.iter().filter(|&&busy| busy).count();
        // who is late without a queue has met nobody, and one flow's share of a line is not what others leave
        let far = self.is_far();
        let stands =
            if far { self.stands() >= STANDING || (self.wander == 0.0 && self.is_exact()) } else { self.wander == 0.0 };
        if !stands || self.discipline() == Some(Discipline::Fair) {
            return weigh(0, 0, 0.0, 1.0);
        }
        let between = |trains: &[&TrainSeen]| came(trains.iter().copied(), balance, self.base, self.c);
        let mut odds = pattern(balance, self.c) * between(&before().collect::<Vec<_>>()).1;
        if let (false, Some(opening)) = (self.is_far(), self.trains.get(&self.first)) {
            let (share, more) = between(&[opening]);
            // it is short: that little came says little, but that nobody did
            odds *= if share < NOBODY { (-SURE).exp() } else { more.clamp(1.0 / OPENING, OPENING) };
        }
        weigh(busy, met.len(), 1.0 - balance.available / self.c, odds)
    }
}

impl Ride {
    /// Whether packets never come closer than C allows, so that all that wait have met somebody.
    pub(super) fn is_exact(&self) -> bool {
        let before = self.trains.range(..=self.first).map(|(_, train)| train);
        series::scatter(before, self.c) <= EXACT * PACKET / self.c
    }

    /// How long small probes waited [s].
    fn stands(&self) -> f64 {
        let small = self.small.iter().flat_map(|train| &train.packets);
        let waits = small.filter_map(|p| Some((p.own_delay()? as f64 - self.base.floor.delay_at(p.sent.0)) / 1e9));
        median(&waits.collect::<Vec<f64>>()).unwrap_or(0.0)
    }
}

/// How the ride's blocks differ [share of C].
fn spread(balance: &Balance, c: f64) -> f64 {
    deviation(&balance.blocks(BLOCKS)).unwrap_or(c / 3.0) / c
}

/// What came in between these probes [share of C], and how much more probable that is if it had not given way yet.
fn came<'a>(trains: impl Iterator<Item = &'a TrainSeen> + Clone, balance: &Balance, base: Base, c: f64) -> (f64, f64) {
    let segments = series::segments(trains.clone(), c, base);
    let trains = trains.count();
    let known = segments.iter().filter(|s| s.joined && s.lost == 0);
    let (time, bits) = known.fold((0.0, 0.0), |(time, bits), s| (time + s.time, bits + s.low));
    let load = 1.0 - balance.available / c;
    if time <= 0.0 {
        return (load, 1.0);
    }
    let ends = ENDS * CROSS * (trains as f64).sqrt() / c / time;
    let chance = (spread(balance, c).powi(2) * balance.time / BLOCKS as f64 / time).max(ends.powi(2)) + BLUR.powi(2);
    let share = bits / time / c;
    // less than during the ride speaks for nobody who gives way
    let log = |mean: f64, variance: f64| -(share.max(load) - mean).powi(2) / 2.0 / variance - variance.ln() / 2.0;
    (share, (log(CAME.0, chance + CAME.1.powi(2)) - log(load, chance)).clamp(-SURE, SURE).exp())
}

/// The same of how it varied.
fn pattern(balance: &Balance, c: f64) -> f64 {
    let load = (1.0 - balance.available / c).max(LOAD_LEAST);
    let packets = balance.time * c * load / CROSS / BLOCKS as f64;
    let against = spread(balance, c) / load * packets.max(1.0).sqrt();
    if (SPREAD.0..SPREAD.1).contains(&against) { 1.0 } else { SELDOM }
}

#[cfg(test)]
mod tests {
    use super::super::super::clock::Floor;
    use super::super::super::testing::train;
    use super::*;

    #[test]
    fn who_always_finds_the_line_busy_met_traffic_that_had_not_given_way() {
        // a ride that found a half free
        let all = weigh(14, 14, 0.5, 1.0);
        assert!(all.full > 0.9 && all.idle < 0.12, "{all:?}");
        // TCP seldom leaves a line idle, and who found it so now and then met others' gaps
        assert!(all.idle < 0.06 && weigh(12, 14, 0.5, 1.0).full < 0.8 * all.full, "{all:?}");
        // as often as that says
        let half = weigh(7, 14, 0.5, 1.0);
        assert!(half.full < 0.1, "{half:?}");
        // and where other signs speak against it
        assert!(weigh(14, 14, 0.5, 1e-3).full < 0.1);
        // nobody, or too few
        assert_eq!([weigh(14, 14, 0.05, 1.0).full, weigh(3, 3, 0.5, 1.0).full], [0.0, 0.0]);
    }

    #[test]
    fn who_waits_has_met_others_unless_it_may_be_the_probes_before_it() {
        let base = Base { floor: Floor { at: 0, delay: 1e6, skew: 0.0 }, drift: 0.0, late: 0.0 };
        let ms = |ms: f64| (ms * 1e6) as u64;
        // a large packet takes 1.4 ms at 8 Mbit/s; when trains of two leave, and how long their packets wait
        let of = |trains: &[(f64, f64)], small: &[(f64, f64)]| {
            let large = |(id, &(at, wait)): (usize, &(f64, f64))| {
                let came = [0.0, 1.4].map(|behind| Some(ms(at + 1.0 + wait + behind)));
                train(id as u64, 1400, &[ms(at); 2], &came)
            };
            let large: Vec<TrainSeen> = trains.iter().enumerate().map(large).collect();
            let (sent, came): (Vec<u64>, Vec<_>) =
                small.iter().map(|&(at, wait)| (ms(at), Some(ms(at + wait)))).unzip();
            let small = (!small.is_empty()).then(|| train(9, 120, &sent, &came));
            met(large.iter(), small.as_ref(), base, 8e6)
        };
        assert_eq!(of(&[(0.0, 0.5), (9.0, 0.0), (12.0, 0.3)], &[]), [true, false, true]);
        // 1 ms behind two, it waits for less than they take, or for more
        assert_eq!(of(&[(0.0, 0.0), (1.0, 1.8)], &[]), [false]);
        assert_eq!(of(&[(0.0, 0.0), (1.0, 2.9)], &[]), [false, true]);
        // small ones: the least takes less than a large one, or as long
        assert_eq!(of(&[], &[(0.0, 0.2), (5.0, 0.3), (9.0, 0.2)]), [false, true, false]);
        assert_eq!(of(&[], &[(0.0, 1.2), (5.0, 1.3), (9.0, 1.2)]), [true; 3]);
        // as long as they wait behind a large one's train nothing is told
        assert_eq!(of(&[(0.0, 0.0)], &[(0.5, 1.3), (5.0, 0.3), (9.0, 0.2)]), [false, true, false]);
    }
}
