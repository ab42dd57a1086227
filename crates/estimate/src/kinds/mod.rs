//! What kind of line it is: what a thorough measurement sends once capacity and available bandwidth are known, and what follows
//! from it.
//!
//! | file | says |
//! |---|---|
//! | [`probing`] | what is sent |
//! | `heard` | what its reports have said so far |
//! | [`trail`] | how long each probe waited, or would have |
//! | [`queue`] | how long it gets, whether every flow has its own, whether it is managed |
//! | [`policer`] | whether there is one, its rate and burst |
//! | [`loss`] | what the wire loses |
//! | [`passing`] | the same, of a measurement of the rates alone |
//! | [`cross`] | what others send, and whether it gives way |
//! | `overload` | what was available on the whole, with what this part took |
//! | [`variation`] | how the rate changes |
//! | [`counting`] | what can be concluded from counts |

pub mod counting;
pub mod cross;
mod heard;
pub mod loss;
mod overload;
pub mod passing;
pub mod policer;
pub mod probing;
pub mod queue;
pub mod trail;
pub mod variation;

use pathcast_base::{Bytes, Nanos};

use crate::stat::median;
use crate::{Budget, Estimate, Knowledge, LARGE, Step, TrainSeen, Value, WhyNot};
use overload::Overload;
use probing::{Given, Phase, Probing};
use trail::Trail;

/// Its trains are numbered from here on.
const FIRST: u64 = 1 << 32;

/// A longer wait than so many packets and this long [s] is a queue's.
const QUIET: (f64, f64) = (1.6, 2e-3);

/// So much of what is not known is taken for available where nothing is known of it; and the capacity where that is not [bit/s].
const HALF: f64 = 0.5;
const UNKNOWN: f64 = 1e6;
/// How long reports take where none came.
const LAG: Nanos = Nanos::millis(100);
/// Nobody else sends where this share of the capacity is available.
const ALONE: f64 = 0.93;
/// Of a train so many must have come for its rate to mean something.
const CAME: usize = 5;
/// And it is at most so many times what came over the whole time.
const OF_ALL: f64 = 3.0;

/// How probable a queue for every flow is where none was seen.
const FAIR_PRIOR: f64 = 0.1;

/// What comes behind a measurement of capacity and available bandwidth.
#[derive(Clone, Debug)]
pub struct Thorough {
    queue: Nanos,
    seed: u64,
    /// Of the measurement before.
    before: Vec<TrainSeen>,
    lag: Option<Nanos>,
    begun: Option<Probing>,
}

impl Thorough {
    /// Builds no queue longer than `queue`.
    pub fn new(queue: Nanos, seed: u64) -> Thorough {
        Thorough { queue, seed, before: Vec::new(), lag: None, begun: None }
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// From when on it fills the queue itself [s]; infinite: not yet.
    pub fn filled(&self) -> f64 {
        self.begun.as_ref().map_or(f64::INFINITY, Probing::filled)
    }

    /// From a train's end to its report.
    pub fn lag(&self) -> Nanos {
        self.lag.unwrap_or(LAG)
    }

    /// Begins, with what the measurement before has found; `budget`: what is left of bytes, and the time by which it has to end.
    pub fn begin(&mut self, now: Nanos, capacity: &Estimate, available: &Estimate, budget: Budget) {
        let c = capacity.value_bps.filter(|&c| c > 0.0).or_else(|| carried(&self.before)).unwrap_or(UNKNOWN);
        let given = Given {
            capacity: c,
            available: or_half(&free(available, c), c),
            lag: self.lag(),
            queue: self.queue,
            until: budget.time,
            bytes: budget.bytes,
        };
        let mut probing = Probing::new(now, given, FIRST, self.seed);
        self.before.iter().for_each(|train| probing.observe(now, train));
        self.begun = Some(probing);
    }

    /// Whether it has sent this train.
    pub fn owns(&self, train: &TrainSeen) -> bool {
        self.begun.is_some() && train.id >= FIRST
    }

    /// What is next, once it has begun.
    pub fn next(&mut self, now: Nanos) -> Step {
        self.begun.as_mut().map_or(Step::Done, |probing| probing.next(now))
    }

    /// The report of a train, of the measurement before too.
    pub fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        if let (false, Some(last)) = (self.owns(train), train.packets.last()) {
            let lag = now.saturating_sub(last.sent);
            self.lag = Some(self.lag.map_or(lag, |least| least.min(lag)));
            self.before.push(train.clone());
        }
        if let Some(probing) = &mut self.begun {
            probing.observe(now, train);
        }
    }

    fn foretell(&self, before: f64, known: &mut Knowledge) {
        if let Some(probing) = &self.begun {
            let c = probing.capacity();
            known.cross.mean_bps = cross::later(known, c, c - before);
            known.cross.tcp_bps = cross::tcp(known, c, self.lag().as_secs_f64());
        }
    }

    /// Trains between which the queue was never empty, nor full, if they say what others send besides: in one queue for all, which
    /// merely overflows, beside traffic that does not give way.
    pub fn busy<'a>(&'a self, known: &Knowledge) -> Option<impl Iterator<Item = &'a TrainSeen> + use<'a>> {
        let is = |value: &Value| value.value.is_some_and(|p| p > 0.5);
        let other = [&known.queue.fair, &known.queue.managed, &known.policer.probability, &known.cross.elastic];
        let probing = self.begun.as_ref().filter(|_| !other.into_iter().any(is))?;
        Some(probing.busy())
    }

    /// What was available over all of the measurement, with the trains that kept the queue busy, in place of what was `before`.
    pub fn revise(&self, before: &Estimate, available: &Estimate, known: &mut Knowledge) {
        let (Some(probing), Some(_)) = (&self.begun, available.value_bps) else { return };
        let c = probing.capacity();
        known.available_bps = Value::from(available);
        known.cross.load_bps = cross::load(c, known.available_bps);
        self.foretell(or_half(&free(before, c), c), known);
    }

    /// In place of what was available while nothing was overloaded what was so on the whole: who gives way, or loses at a full queue,
    /// left more. In a queue for every flow nobody does. Who gives way is not known where that is not known of what was `available`:
    /// it was told at a half.
    pub fn reckon(&self, available: &Estimate, known: &mut Knowledge) {
        if let (None, Value { value: None, why: Some(why), .. }) = (available.value_bps, known.available_bps) {
            known.cross.elastic = Value::none(why);
            return;
        }
        let is = |value: &Value| value.value.is_some_and(|p| p > 0.5);
        let Some(probing) = &self.begun else { return };
        if is(&known.queue.fair) || is(&known.policer.probability) {
            return;
        }
        let trains = probing.seen().map(|(train, phase, _, _)| (train, Some(phase)));
        let trains = self.before.iter().map(|train| (train, None)).chain(trains);
        let gives_way = is(&known.cross.elastic);
        // a managed queue drops before it is full
        let since = if gives_way || is(&known.queue.managed) { f64::NEG_INFINITY } else { probing.overflowed() };
        let lost = known.loss.random.value.unwrap_or(0.0);
        if let Some(overload) = Overload::of(trains, since, gives_way, lost) {
            let c = probing.capacity();
            known.available_bps = overload.over_all(known.available_bps, c);
            if known.available_bps.value.is_some() {
                known.cross.load_bps = cross::load(c, known.available_bps);
            }
        }
    }

    /// IP bytes sent since it has begun.
    pub fn bytes(&self) -> Bytes {
        self.begun.as_ref().map_or(Bytes(0), |probing| Bytes(probing.bytes()))
    }

    /// Adds what it has found; `available`: by the measurement before.
    pub fn tell(&self, available: &Estimate, known: &mut Knowledge) {
        let Some(probing) = &self.begun else { return };
        let c = probing.capacity();
        let available = free(available, c);
        let before = self.before.iter().map(|train| (train, None, false, 0.0));
        let trains = probing.seen().map(|(train, phase, sparse, rate)| (train, Some(phase), sparse, rate));
        let trail = Trail { again: probing.again(), ..Trail::of(before.chain(trains), c, quiet(c)) };
        judge(&trail, c, available, known);
        if let Value { value: None, why, .. } = known.available_bps {
            known.cross.load_bps = Value { value: None, why, ..known.cross.load_bps };
        }
        self.foretell(or_half(&available, c), known);
    }
}

/// What is available of `c`, the capacity [bit/s].
fn free(available: &Estimate, c: f64) -> Value {
    let found = Value::from(available);
    match found.value {
        Some(a) => Value { value: Some(a.min(c)), high: found.high.min(c), ..found },
        None => Value { low: 0.0, high: c, ..found },
    }
}

/// The same, or a half where it is not known.
fn or_half(free: &Value, c: f64) -> f64 {
    free.value.unwrap_or(HALF * c)
}

/// How fast trains came, usually [bit/s]: for a capacity where none could be trusted.
fn carried(trains: &[TrainSeen]) -> Option<f64> {
    let rate = |train: &TrainSeen| {
        let came: Vec<_> = train.packets.iter().filter_map(|p| Some((p.received?, f64::from(p.size) * 8.0))).collect();
        let (first, last) = (came.first()?.0, came.last()?.0);
        let bits: f64 = came[1..].iter().map(|p| p.1).sum();
        let time = last.saturating_sub(first).as_secs_f64();
        (came.len() >= CAME && time > 0.0).then(|| bits / time)
    };
    let usual = median(&trains.iter().filter_map(rate).collect::<Vec<f64>>())?;
    // what gathers on its way comes at once: no more than a few times what came in all
    let came = || trains.iter().flat_map(|train| &train.packets).filter_map(|p| Some((p.received?, p.size)));
    let (first, last) = (came().map(|p| p.0).min()?, came().map(|p| p.0).max()?);
    let bits: f64 = came().map(|p| f64::from(p.1) * 8.0).sum();
    Some(usual.min(OF_ALL * bits / last.saturating_sub(first).as_secs_f64().max(1e-3)))
}

/// See [`QUIET`]. `c`: the capacity [bit/s].
fn quiet(c: f64) -> f64 {
    QUIET.0 * f64::from(LARGE) * 8.0 / c + QUIET.1
}

/// Adds all that the trail says. `c`: the capacity, `free`: what is available of it [bit/s].
fn judge(trail: &Trail, c: f64, free: Value, known: &mut Knowledge) {
    let a = or_half(&free, c);
    if trail.large(Phase::Push).next().is_none() {
        for value in [&mut known.queue.managed, &mut known.policer.probability] {
            *value = Value::none(WhyNot::TooShort);
        }
        return;
    }
    let ceiling = queue::ceiling(trail, |p| p.wait);
    let empty = loss::baseline(trail);
    let after = loss::count(trail, ceiling, loss::Where::After);
    let wire = (after.lost + 0.1) / (after.packets + 10.0);
    known.policer = policer::find(trail, c, wire);
    let policed = known.policer.probability.value.unwrap_or(0.0);
    let told = queue::fair(trail, c);
    let fair = told.unwrap_or(FAIR_PRIOR);
    let others = a < ALONE * c;
    let managed = queue::managed(trail, c, &empty, fair > 0.5 && others, fair <= 0.5 && others) * (1.0 - policed);
    known.queue.fair = match told {
        // what is policed builds no queue
        None if policed < 0.5 => Value::none(WhyNot::NotSeen),
        _ => Value::bare(fair * (1.0 - policed)),
    };
    known.queue.managed = Value::bare(managed);
    if !trail.points.iter().any(|p| p.sparse) {
        // it had no flow of its own
        (known.queue.fair, known.queue.managed) = (Value::none(WhyNot::NotSeen), Value::none(WhyNot::NotSeen));
    }
    known.cross = cross::find(trail, c, free, a, fair > 0.5);
    if policed > 0.5 {
        // what it drops is perhaps nobody's
        known.cross.load_bps = Value { low: 0.0, why: Some(WhyNot::Ambiguous), ..known.cross.load_bps };
    }
    let gives_way = known.cross.elastic.value.is_some_and(|p| p > 0.5);
    let idle = match (gives_way, others) {
        (false, false) => queue::Idle::Ways,
        (false, true) if cross::wanders(trail) => queue::Idle::Either,
        _ => queue::Idle::Others,
    };
    known.queue.depth_s = match policed > 0.5 {
        true => Value::none(WhyNot::NotSeen),
        false => queue::depth(trail, ceiling, (fair > 0.5, managed > 0.5), c, wire, idle),
    };
    if fair < 0.5 && gives_way && cross::stands(trail, c) {
        // TCP never let it run empty: the delay without a queue is not known
        let depth = known.queue.depth_s;
        known.queue.depth_s = Value { high: f64::INFINITY, why: depth.why.or(Some(WhyNot::Ambiguous)), ..depth };
    }
    let bytes = |s: f64| s * c / 8.0;
    let depth = known.queue.depth_s;
    known.queue.depth_bytes =
        Value { value: depth.value.map(bytes), low: bytes(depth.low), high: bytes(depth.high), ..depth };
    let alone = a > ALONE * c && known.cross.elastic.value.is_none_or(|elastic| elastic < 0.5);
    known.rate_variation = match alone && policed < 0.5 && managed < 0.5 {
        true => variation::find(trail, c, quiet(c)),
        false => variation::ambiguous(),
    };
    known.loss.random = loss::find(trail, ceiling, managed, policed);
    known.loss.row = loss::count(trail, ceiling, loss::place(managed, policed)).row();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::trail::Point;

    const C: f64 = 10e6;

    /// A push of which one in so many is lost without a wait, and what is judged of it.
    fn judged(free: &Estimate, lost: usize) -> Knowledge {
        let point = |phase, k: usize| Point {
            phase: Some(phase),
            left: k as f64 * 1e-3,
            lost: phase == Phase::Push && k % lost == lost - 1,
            ..Point::default()
        };
        let points = (0..600).map(|k| point(if k < 300 { Phase::Push } else { Phase::Count }, k)).collect();
        let mut known = Knowledge::default();
        judge(&Trail { points, ..Trail::default() }, C, self::free(free, C), &mut known);
        known.cross.mean_bps = cross::later(&known, C, 0.0);
        known
    }

    #[test]
    fn what_others_send_is_as_doubtful_as_what_is_available() {
        let sure = Estimate::of(6e6, 5e6, 7e6, 1);
        for of in [judged(&sure, 1000).cross.load_bps, judged(&sure, 1000).cross.mean_bps] {
            assert_eq!((of.value, of.why), (Some(4e6), None));
        }
        let doubtful = Estimate { why_not: Some(WhyNot::Ambiguous), ..sure };
        for of in [judged(&doubtful, 1000).cross.load_bps, judged(&doubtful, 1000).cross.mean_bps] {
            assert_eq!((of.value, of.why), (Some(4e6), Some(WhyNot::Ambiguous)));
        }
        let unknown = judged(&Estimate::none(WhyNot::TooFew, 0), 1000).cross;
        assert_eq!(unknown.load_bps, Value { value: None, low: 0.0, high: C, why: Some(WhyNot::TooFew) });
        assert_eq!((unknown.mean_bps.value, unknown.mean_bps.why), (None, Some(WhyNot::TooFew)));
    }

    #[test]
    fn what_tcp_would_get_and_who_gives_way_are_as_doubtful_too() {
        let gets = |free: &Estimate, lost| {
            let mut known = judged(free, lost);
            known.available_bps = Value::from(free);
            cross::tcp(&known, C, 0.05)
        };
        let sure = Estimate::of(6e6, 5e6, 7e6, 1);
        let doubtful = Estimate { why_not: Some(WhyNot::Inconsistent), ..sure };
        assert_eq!(gets(&sure, 1000).why, None);
        assert_eq!(gets(&doubtful, 1000).why, Some(WhyNot::Inconsistent));
        assert!(gets(&doubtful, 1000).value.is_some());
        assert_eq!(gets(&sure, 4).why, Some(WhyNot::Ambiguous), "policed");
        let unknown = Estimate::none(WhyNot::TooFew, 0);
        assert_eq!((gets(&unknown, 1000).value, gets(&unknown, 1000).why), (None, Some(WhyNot::TooFew)));
        let mut known = Knowledge { available_bps: Value::from(&unknown), ..judged(&unknown, 1000) };
        known.cross.elastic = Value::bare(0.9);
        Thorough::new(Nanos::millis(500), 1).reckon(&unknown, &mut known);
        assert_eq!(known.cross.elastic, Value::none(WhyNot::TooFew));
        known.cross.elastic = Value::bare(0.9);
        // what is too rough to be told is known all the same
        Thorough::new(Nanos::millis(500), 1).reckon(&sure, &mut known);
        assert_eq!(known.cross.elastic.value, Some(0.9));
    }

    #[test]
    fn what_a_policer_drops_is_not_said_to_be_others() {
        let known = judged(&Estimate::of(6e6, 5e6, 7e6, 1), 4);
        assert!(known.policer.probability.value.unwrap() > 0.5, "{:?}", known.policer);
        for of in [known.cross.load_bps, known.cross.mean_bps] {
            assert_eq!((of.low, of.why), (0.0, Some(WhyNot::Ambiguous)));
        }
    }
}
