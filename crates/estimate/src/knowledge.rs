//! What is known of one direction of a path: the one record that an estimator fills, a far end tells, a result prints and a
//! forecast reads. Every entry is a [`Value`]: with its 90 % interval, or with the reason why there is none.
//!
//! It begins as [`Knowledge::default`], in which nothing was looked for; whoever looked says what was found, also that there
//! is nothing ([`WhyNot::Absent`]) or that it cannot be told. Names and units are those of the document.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Estimate;

/// Why there is no value, or none to be trusted. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WhyNot {
    /// No report has come, or every packet was lost.
    NoAnswer = 1,
    /// Too few packets arrived within the budget.
    TooFew = 2,
    /// The samples contradict each other: no value explains most of them.
    Inconsistent = 3,
    /// The sending or the receiving host disturbed most trains, or the sending one is slower than the line.
    HostTooSlow = 4,
    /// Reports ceased to come.
    FeedbackLost = 5,
    /// The far end does not grant so fast a train.
    RateLimit = 6,
    /// It was stopped.
    Stopped = 7,
    /// The session did not go on.
    SessionLost = 8,
    /// This mode does not look for it.
    NotLookedFor = 9,
    /// It was looked for, and there is none.
    Absent = 10,
    /// More than this measurement may try: the bounds say how far it went.
    BeyondLimit = 11,
    /// What was seen fits several answers.
    Ambiguous = 12,
    /// What was seen is too short for what is asked.
    TooShort = 13,
    /// No probe was lost, or none in a full queue, so that nothing shows it.
    NotSeen = 14,
}

impl WhyNot {
    /// All of them.
    pub const ALL: [WhyNot; 14] = [
        WhyNot::NoAnswer,
        WhyNot::TooFew,
        WhyNot::Inconsistent,
        WhyNot::HostTooSlow,
        WhyNot::FeedbackLost,
        WhyNot::RateLimit,
        WhyNot::Stopped,
        WhyNot::SessionLost,
        WhyNot::NotLookedFor,
        WhyNot::Absent,
        WhyNot::BeyondLimit,
        WhyNot::Ambiguous,
        WhyNot::TooShort,
        WhyNot::NotSeen,
    ];

    /// As results call it.
    pub fn word(self) -> &'static str {
        match self {
            WhyNot::NoAnswer => "no-answer",
            WhyNot::TooFew => "too-few",
            WhyNot::Inconsistent => "inconsistent",
            WhyNot::HostTooSlow => "host-too-slow",
            WhyNot::FeedbackLost => "feedback-lost",
            WhyNot::RateLimit => "rate-limit",
            WhyNot::Stopped => "stopped",
            WhyNot::SessionLost => "session-lost",
            WhyNot::NotLookedFor => "not-looked-for",
            WhyNot::Absent => "absent",
            WhyNot::BeyondLimit => "beyond-limit",
            WhyNot::Ambiguous => "ambiguous",
            WhyNot::TooShort => "too-short",
            WhyNot::NotSeen => "not-seen",
        }
    }

    /// The reason with this number.
    pub fn of(code: u8) -> Option<WhyNot> {
        Self::ALL.into_iter().find(|&why| why as u8 == code)
    }
}

impl Serialize for WhyNot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

/// What is available up to this share of what the host can send is perhaps more than that.
const HOST_FILLS: f64 = 0.9;

/// A number, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// None: see `why`.
    pub value: Option<f64>,
    /// Lower end of the 90 % interval; infinite (null in a document): no bound is known. A bound can be known without a value.
    pub low: f64,
    /// Upper end, likewise.
    pub high: f64,
    /// Why the value is absent or, beside one, not trustworthy.
    pub why: Option<WhyNot>,
}

impl Value {
    /// Neither a value nor a bound.
    pub const fn none(why: WhyNot) -> Value {
        Value { value: None, low: f64::NEG_INFINITY, high: f64::INFINITY, why: Some(why) }
    }

    /// A value in its interval, which is widened to contain it.
    pub fn of(value: f64, low: f64, high: f64) -> Value {
        Value { value: Some(value), low: low.min(value), high: high.max(value), why: None }
    }

    /// A value without an interval, such as a probability, which says itself how sure it is.
    pub const fn bare(value: f64) -> Value {
        Value { value: Some(value), low: f64::NEG_INFINITY, high: f64::INFINITY, why: None }
    }

    /// No value, but it is this at least.
    pub const fn at_least(low: f64, why: WhyNot) -> Value {
        Value { value: None, low, high: f64::INFINITY, why: Some(why) }
    }

    /// The same, but without its value where the bounds are so far apart that it says nothing.
    pub fn unless_wider(self, than: f64) -> Value {
        let wide = self.value.is_some() && self.high - self.low > than;
        if wide { Value { value: None, why: self.why.or(Some(WhyNot::TooFew)), ..self } } else { self }
    }

    /// The same, so much more; infinite bounds stay.
    pub fn shifted(self, by: f64) -> Value {
        Value { value: self.value.map(|value| value + by), low: self.low + by, high: self.high + by, ..self }
    }

    /// The same, so many times as much.
    pub fn times(self, factor: f64) -> Value {
        Value { value: self.value.map(|v| v * factor), low: self.low * factor, high: self.high * factor, ..self }
    }

    /// The same, but not to be trusted, or given up, for this reason if there is one.
    pub fn but(self, why: Option<WhyNot>) -> Value {
        Value { why: why.or(self.why), ..self }
    }
}

/// Not looked for.
impl Default for Value {
    fn default() -> Value {
        Value::none(WhyNot::NotLookedFor)
    }
}

impl From<&Estimate> for Value {
    fn from(estimate: &Estimate) -> Value {
        match estimate.value_bps {
            Some(value) => Value::of(value, estimate.low_bps, estimate.high_bps).but(estimate.why_not),
            None => Value::none(estimate.why_not.unwrap_or(WhyNot::TooFew)),
        }
    }
}

/// The queue in front of the bottleneck. In a document it has a word besides, `discipline`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// The longest wait in it [s]; of a managed or fair queue the standing delay of a flow that fills it.
    pub depth_s: Value,
    /// The same [IP byte].
    pub depth_bytes: Value,
    /// How probable it is that every flow has a queue of its own; else first come, first served.
    pub fair: Value,
    /// How probable it is that it is managed (CoDel, PIE, RED and their kind) and does not merely overflow.
    pub managed: Value,
}

impl Queue {
    /// What is more probable: `fair`, or first in, first out; none: nothing is known.
    pub fn discipline(&self) -> Option<&'static str> {
        self.fair.value.map(|fair| if fair > 0.5 { "fair" } else { "fifo" })
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_struct("Queue", 5)?;
        map.serialize_field("depth_s", &self.depth_s)?;
        map.serialize_field("depth_bytes", &self.depth_bytes)?;
        map.serialize_field("discipline", &self.discipline())?;
        map.serialize_field("fair", &self.fair)?;
        map.serialize_field("managed", &self.managed)?;
        map.end()
    }
}

/// A token bucket that drops what exceeds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Policer {
    /// How probable it is that there is one.
    pub probability: Value,
    /// What it lets through for good [bit/s].
    pub rate_bps: Value,
    /// What it lets through at once besides [IP byte].
    pub burst_bytes: Value,
}

/// Probes that did not arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Loss {
    /// Share of the packets that is lost whatever the queue holds.
    pub random: Value,
    /// So many of these in a row, on average; none: not known.
    pub row: Option<f64>,
    /// Probes that did not arrive, for whatever reason.
    pub lost: u64,
    /// Probes that were sent and accounted for.
    pub packets: u64,
}

/// What others send over the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cross {
    /// While it was measured [bit/s].
    pub load_bps: Value,
    /// The mean over the next minutes, by how it varied [bit/s].
    pub mean_bps: Value,
    /// The share of it that gives way as TCP does, 0 to 1.
    pub elastic: Value,
    /// What a new TCP flow would get beside it [bit/s].
    pub tcp_bps: Value,
}

/// How the bottleneck's rate changes by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RateVariation {
    /// Standard deviation over mean.
    pub cv: Value,
    /// How long a change lasts [s].
    pub scale_s: Value,
}

/// One direction of a path. See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Knowledge {
    /// What the narrowest link carries [IP bit/s].
    pub capacity_bps: Value,
    /// What cross traffic leaves of the tight link [IP bit/s].
    pub available_bps: Value,
    /// The bottleneck's rate.
    pub rate_variation: RateVariation,
    /// The bottleneck's queue.
    pub queue: Queue,
    /// A policer on the way.
    pub policer: Policer,
    /// Losses.
    pub loss: Loss,
    /// Cross traffic.
    pub cross: Cross,
    /// How long packets gather until the link hands them over together [s].
    pub aggregation_s: Value,
}

impl Knowledge {
    /// Every value, in the order of the wire: new ones come at the end.
    pub fn values_mut(&mut self) -> [&mut Value; 17] {
        let Knowledge { capacity_bps, available_bps, rate_variation, queue, policer, loss, cross, aggregation_s } =
            self;
        [
            capacity_bps,
            available_bps,
            &mut rate_variation.cv,
            &mut rate_variation.scale_s,
            &mut queue.depth_s,
            &mut queue.depth_bytes,
            &mut queue.fair,
            &mut queue.managed,
            &mut policer.probability,
            &mut policer.rate_bps,
            &mut policer.burst_bytes,
            &mut loss.random,
            &mut cross.load_bps,
            &mut cross.mean_bps,
            &mut cross.elastic,
            &mut cross.tcp_bps,
            aggregation_s,
        ]
    }

    /// The same, but of a host that is slower than the line, which carries so much at least [bit/s]: what follows from the capacity is
    /// not known either. What is available is, where it is less than the host could send.
    pub fn by_slow_host(mut self, carried: f64) -> Knowledge {
        let why = WhyNot::HostTooSlow;
        if self.capacity_bps.value.is_some() {
            self.capacity_bps = Value::at_least(carried, why);
        }
        let free = &mut self.available_bps;
        if free.high.is_finite() && free.high >= HOST_FILLS * carried {
            *free = Value::at_least(free.low.min(carried), why);
        }
        let RateVariation { cv, scale_s } = &mut self.rate_variation;
        let Cross { load_bps, mean_bps, tcp_bps, .. } = &mut self.cross;
        let follow = [cv, scale_s, load_bps, mean_bps, tcp_bps, &mut self.queue.depth_bytes];
        let bounded = |value: &Value| value.value.is_some() || value.low.is_finite() || value.high.is_finite();
        follow.into_iter().filter(|value| bounded(value)).for_each(|value| *value = Value::none(why));
        self
    }

    /// The same, but with what is available within the capacity. Of two that contradict each other the one that is doubted yields; where
    /// neither is, the line carries perhaps what the end of the interval says: an end that is too low would be the worse lie.
    pub fn within_capacity(mut self) -> Knowledge {
        let (capacity, free) = (&mut self.capacity_bps, &mut self.available_bps);
        let Some(carried) = capacity.value else { return self };
        let sure = free.value.filter(|_| free.why.is_none());
        let most = if capacity.why.is_some() { sure.map_or(carried, |value| value.max(carried)) } else { carried };
        (capacity.value, capacity.high) = (Some(most), capacity.high.max(most));
        if free.high.is_finite() {
            if sure.is_some() {
                capacity.high = capacity.high.max(free.high);
            } else {
                free.high = free.high.min(capacity.high);
            }
        }
        free.value = free.value.map(|value| value.min(most));
        free.low = free.low.min(free.value.unwrap_or(free.high));
        self
    }
}

/// Another path whose bottleneck, in the same direction, is perhaps the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// The other path's number in the measurement.
    pub path: usize,
    /// How probable it is.
    pub probability: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_word_and_its_number() {
        let words: std::collections::BTreeSet<_> = WhyNot::ALL.iter().map(|why| why.word()).collect();
        assert_eq!(words.len(), WhyNot::ALL.len());
        assert!((0..=255).all(|code| WhyNot::of(code).is_none_or(|why| why as u8 == code)));
        assert_eq!((1..=14).filter_map(WhyNot::of).collect::<Vec<_>>(), WhyNot::ALL);
    }

    #[test]
    fn at_first_nothing_was_looked_for() {
        let document = serde_json::to_value(Knowledge::default()).unwrap();
        let nothing = serde_json::json!({"value": null, "low": null, "high": null, "why": "not-looked-for"});
        for entry in ["/capacity_bps", "/queue/depth_s", "/policer/probability", "/loss/random", "/cross/elastic"] {
            assert_eq!(document.pointer(entry), Some(&nothing), "{entry}");
        }
    }

    #[test]
    fn a_queue_is_called_what_it_probably_is() {
        let called = |fair| serde_json::to_value(Queue { fair, ..Queue::default() }).unwrap()["discipline"].clone();
        let (fair, fifo, unknown) = (called(Value::bare(0.9)), called(Value::bare(0.1)), called(Value::default()));
        assert_eq!(
            [fair, fifo, unknown],
            [serde_json::json!("fair"), serde_json::json!("fifo"), serde_json::Value::Null]
        );
    }

    #[test]
    fn a_value_lies_in_its_interval_and_a_bound_needs_no_value() {
        assert_eq!(Value::of(2.0, 3.0, 1.0), Value { value: Some(2.0), low: 2.0, high: 2.0, why: None });
        let deep = serde_json::to_value(Value::at_least(0.5, WhyNot::BeyondLimit)).unwrap();
        assert_eq!(deep, serde_json::json!({"value": null, "low": 0.5, "high": null, "why": "beyond-limit"}));
        let doubted = Value::from(&Estimate { why_not: Some(WhyNot::Inconsistent), ..Estimate::of(5.0, 4.0, 6.0, 1) });
        assert_eq!((doubted.value, doubted.low, doubted.why), (Some(5.0), 4.0, Some(WhyNot::Inconsistent)));
        let wide = Value { value: None, low: 0.0, high: 249e6, why: Some(WhyNot::TooFew) };
        assert_eq!(Value::of(242e6, 0.0, 249e6).unless_wider(200e6), wide);
        assert_eq!(Value::of(242e6, 0.0, 249e6).unless_wider(249e6).value, Some(242e6));
    }

    #[test]
    fn no_more_is_available_than_the_capacity() {
        let of = |capacity: Value, free: Value| {
            let known = Knowledge { capacity_bps: capacity, available_bps: free, ..Knowledge::default() };
            let known = known.within_capacity();
            let [capacity, free] = [known.capacity_bps, known.available_bps];
            assert!(free.value.is_none_or(|value| free.low <= value && value <= free.high), "{free:?}");
            assert!(capacity.value.is_none_or(|most| free.value.is_none_or(|value| value <= most)), "{known:?}");
            assert!(!free.high.is_finite() || free.high <= capacity.high, "{known:?}");
            (capacity, free)
        };
        let doubted = |value: Value| value.but(Some(WhyNot::Inconsistent));
        let (capacity, free) = (Value::of(48.2, 48.0, 48.5), Value::of(53.0, 33.8, 53.0));
        assert_eq!(of(capacity, free), (Value::of(48.2, 48.0, 53.0), Value::of(48.2, 33.8, 53.0)));
        // all of it above
        assert_eq!(
            of(capacity, Value::of(53.0, 50.0, 54.0)),
            (Value::of(48.2, 48.0, 54.0), Value::of(48.2, 48.2, 54.0))
        );
        assert_eq!(of(capacity, doubted(free)), (capacity, doubted(Value::of(48.2, 33.8, 48.5))));
        assert_eq!(of(doubted(capacity), free), (doubted(Value::of(53.0, 48.0, 53.0)), free));
        let (bounds, cut) = [(0.0, 90.0), (0.0, 48.5)]
            .map(|(low, high)| Value { value: None, low, high, why: Some(WhyNot::TooFew) })
            .into();
        assert_eq!(of(capacity, bounds), (capacity, cut));
        // what fits, and where nothing is known of either, stays
        for (capacity, free) in [
            (capacity, Value::of(48.2, 40.0, 48.4)),
            (capacity, Value::none(WhyNot::TooFew)),
            (Value::bare(48.2), Value::bare(5.0)),
            (Value::none(WhyNot::Inconsistent), free),
        ] {
            assert_eq!(of(capacity, free), (capacity, free));
        }
    }

    #[test]
    fn of_a_line_that_is_faster_than_the_host_no_more_is_known_than_what_it_carried() {
        let [mut known, mut all] = [Knowledge::default(); 2];
        all.values_mut().into_iter().for_each(|value| *value = Value::of(2e9, 1.9e9, 2.1e9));
        (known.capacity_bps, known.available_bps) = (all.capacity_bps, Value::of(1.7e9, 1.6e9, 1.8e9));
        let known = known.by_slow_host(2e9);
        let why = WhyNot::HostTooSlow;
        assert_eq!(known.capacity_bps, Value::at_least(2e9, why));
        assert_eq!(known.available_bps, Value::at_least(1.6e9, why));
        assert_eq!(known.cross, Cross::default(), "it was not looked for");
        let all = all.by_slow_host(1.5e9);
        assert_eq!((all.available_bps.low, all.cross.load_bps), (1.5e9, Value::none(why)));
        let less = Knowledge { capacity_bps: Value::none(WhyNot::Inconsistent), ..known };
        let less = Knowledge { available_bps: Value::of(1e9, 0.8e9, 1.3e9), ..less };
        assert_eq!(less.by_slow_host(1.5e9), less, "it is not the host that leaves no more");
        assert_eq!((all.queue.depth_bytes, all.queue.depth_s.why), (Value::none(why), None));
    }

    #[test]
    fn every_value_of_a_document_is_among_those_of_the_wire() {
        let mut known = Knowledge::default();
        let count = known.values_mut().len();
        (1..).zip(known.values_mut()).for_each(|(n, value)| *value = Value::bare(f64::from(n)));
        fn numbers(of: &serde_json::Value, found: &mut Vec<u64>) {
            let Some(map) = of.as_object() else { return };
            found.extend(map.get("value").and_then(|v| Some(v.as_f64()? as u64)));
            map.values().for_each(|inner| numbers(inner, found));
        }
        let mut found = Vec::new();
        numbers(&serde_json::to_value(known).unwrap(), &mut found);
        found.sort_unstable();
        assert_eq!(found, (1..=count as u64).collect::<Vec<_>>());
    }
}
