//! Which paths share a bottleneck: when all have been measured, two at a time are filled with pulses.

use std::collections::VecDeque;

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::delay::Waits;
use pathcast_estimate::knowledge::{Knowledge, Shared};
use pathcast_estimate::shared::{likelihood_ratio, probability, pulses};
use pathcast_estimate::{Value, WhyNot};

use crate::client_path::{ClientPath, QUESTIONS};
use crate::request::{Direction, Request};

/// What is filled: what is left of a path, or this share of its capacity if that is more, as beside TCP, which gives way.
const LEAST_SHARE: f64 = 0.3;
/// A slot [s]. No longer, for what exceeds a shared bottleneck in all of them would wait for half a second; on fast paths so
/// much shorter that an attempt costs a path no more than so many bytes, nor a third of what a direction may; but no shorter
/// than the second.
const SLOT: (f64, f64) = (25e-3, 1e-3);
const MOST: Bytes = Bytes(60_000_000);
/// The whole lasts at least so many round trips, that the paths may be of different lengths.
const ROUND_TRIPS: f64 = 4.0;
/// A round trip that is not known [ns].
const ROUND_TRIP: f64 = 200e6;

/// Attempts at a pair, and how many times what seems free they fill: what was taken for less than it is shows nothing.
const ATTEMPTS: [f64; 3] = [1.0, 1.25, 1.0];
/// A pair is known once the probability is below, or above.
const KNOWN: (f64, f64) = (0.02, 0.98);

/// Two paths, and what the attempts at them have come to.
struct Pair {
    direction: Direction,
    paths: [usize; 2],
    ratios: Vec<f64>,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Pairs {
    begun: bool,
    left: VecDeque<Pair>,
    current: Option<Pair>,
    attempts: u64,
}

impl Pairs {
    /// Takes what the last attempt has come to, and begins the next one; false: there is none.
    pub fn next(&mut self, now: Nanos, request: &Request, paths: &mut [ClientPath]) -> bool {
        if !self.begun {
            self.begun = true;
            let paired = request.paired();
            for &direction in &request.directions {
                let pairs = (0..paired).flat_map(|i| (i + 1..paired).map(move |j| [i, j]));
                self.left.extend(pairs.map(|paths| Pair { direction, paths, ratios: Vec::new() }));
            }
        }
        if let Some(mut pair) = self.current.take() {
            let ratio = judge(&pair, paths);
            pair.ratios.extend(ratio);
            let found = probability(&pair.ratios);
            let unknown = (KNOWN.0..KNOWN.1).contains(&found) && pair.ratios.len() < ATTEMPTS.len();
            match (ratio, unknown) {
                (Some(_), true) => self.left.push_front(pair),
                // an attempt that shows nothing does not undo the ones before
                _ if !pair.ratios.is_empty() => learn(&pair, paths, Value::bare(found)),
                _ => learn(&pair, paths, Value::none(WhyNot::TooFew)),
            }
        }
        while let Some(pair) = self.left.pop_front() {
            let rates = pair.paths.map(|path| rate(pair.direction, &paths[path]));
            let times = ATTEMPTS[pair.ratios.len()];
            let most = MOST.min(Bytes(request.budget.bytes.0 / ATTEMPTS.len() as u64));
            let trips = pair.paths.map(|path| round_trip(&paths[path].waits));
            let (Some(one), Some(other)) = rates.into() else {
                learn(&pair, paths, Value::none(WhyNot::TooFew));
                continue;
            };
            let Some(time) = time(times * one.max(other), most, trips) else {
                learn(&pair, paths, Value::none(WhyNot::TooFew));
                continue;
            };
            self.attempts += 1;
            for (second, (path, rate)) in pair.paths.into_iter().zip([one, other]).enumerate() {
                // even: filled steadily at first
                let seed = (request.seed ^ self.attempts << 33 ^ (second as u64) << 32) & !1 | second as u64;
                paths[path].pulse(now, pair.direction, pulses::budget(times * rate, time), seed);
            }
            self.current = Some(pair);
            return true;
        }
        false
    }
}

fn learn(pair: &Pair, paths: &mut [ClientPath], probability: Value) {
    let [one, other] = pair.paths;
    for (path, beside) in [(one, other), (other, one)] {
        paths[path].shared.entry(pair.direction).or_default().push(Shared { path: beside, probability });
    }
}

fn knowledge(direction: Direction, path: &ClientPath) -> Option<&Knowledge> {
    path.outcomes.get(&direction).map(|outcome| &outcome.known)
}

/// What a path lets through for good [bit/s]: behind a policer, where no capacity is found, its rate.
fn capacity(direction: Direction, path: &ClientPath) -> Option<f64> {
    let known = knowledge(direction, path)?;
    let policed = known.policer.probability.value.is_some_and(|p| p > 0.5);
    let rate = known.policer.rate_bps.value.filter(|_| policed);
    rate.or(known.capacity_bps.value).or(known.available_bps.value).filter(|&c| c > 0.0)
}

/// What the pulses are to fill [bit/s].
fn rate(direction: Direction, path: &ClientPath) -> Option<f64> {
    let capacity = capacity(direction, path)?;
    let available = knowledge(direction, path)?.available_bps.value.unwrap_or(capacity);
    Some(available.clamp(LEAST_SHARE * capacity, capacity))
}

fn round_trip(waits: &Waits) -> f64 {
    waits.line(QUESTIONS.1).unwrap_or(ROUND_TRIP) / 1e9
}

/// How long two paths are filled, the faster one with so many bit/s; none: too short to tell anything.
fn time(fills: f64, most: Bytes, round_trips: [f64; 2]) -> Option<Nanos> {
    let a_second = pulses::budget(fills, Nanos::secs(1)).bytes.0.max(1) as f64;
    let slot = (most.0 as f64 / a_second / pulses::SLOTS as f64).min(SLOT.0);
    let whole = (slot * pulses::SLOTS as f64).max(ROUND_TRIPS * round_trips[0].max(round_trips[1]));
    let paid = whole.min(most.0 as f64 / a_second);
    (slot >= SLOT.1).then(|| Nanos::from_secs_f64(paid))
}

fn judge(pair: &Pair, paths: &[ClientPath]) -> Option<f64> {
    let [one, other] = pair.paths.map(|path| &paths[path]);
    let capacities = [capacity(pair.direction, one)?, capacity(pair.direction, other)?];
    let lag = Nanos::from_secs_f64(round_trip(&one.waits).max(round_trip(&other.waits)) / 2.0);
    likelihood_ratio([one.response.as_ref()?, other.response.as_ref()?], capacities, lag)
}
