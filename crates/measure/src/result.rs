//! The result of a measurement as one JSON document. Rates in IP bit/s, times in seconds; null where nothing is known, and
//! `why` then says the reason in one word.

use pathcast_estimate::delay::OneWay;
use pathcast_estimate::{Knowledge, Value, WhyNot};
use serde::Serialize;

use super::client_path::QUESTIONS;
use super::outcome::Outcome;
use super::request::{Direction, MethodName};
use super::times::Comparison;

#[derive(Serialize)]
pub(super) struct Document {
    pub paths: Vec<Path>,
    /// IP bytes of everything that was sent by both ends.
    pub probe_bytes: u64,
    pub elapsed_s: f64,
    /// Of that, in the far end's queue.
    pub queued_s: f64,
    /// Sentences for its user.
    pub notes: Vec<String>,
    pub method: String,
    pub refused: Option<Refusal>,
}

/// Why there is no measurement, or less than was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    pub code: &'static str,
    pub message: String,
    /// The limit that the far end named.
    pub limit: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Path {
    /// The least of a small packet's round trips.
    pub rtt_s: Value,
    /// Nothing has ever come back over it.
    pub down: Option<Down>,
    pub shared_with: Vec<SharedWith>,
    pub directions: Directions,
}

/// A path on which no question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Down {
    /// Questions.
    pub probes: u32,
    /// From the first one to when it was given up, in tenths, rounded up [s].
    pub seconds: f64,
}

/// Another path of the measurement that has perhaps the same bottleneck in this direction.
#[derive(Serialize)]
pub(super) struct SharedWith {
    /// Its number.
    pub path: usize,
    pub direction: &'static str,
    pub probability: Value,
}

#[derive(Default, Serialize)]
pub(super) struct Directions {
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<OneDirection>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    back: Option<OneDirection>,
}

impl Directions {
    pub fn put(&mut self, direction: Direction, result: OneDirection) {
        *match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.back,
        } = Some(result);
    }
}

#[derive(Serialize)]
pub(super) struct OneDirection {
    #[serde(flatten)]
    known: Knowledge,
    /// From its first probe to its last, since the measurement began; null: there was none.
    probed_s: Option<[f64; 2]>,
    delay_s: Delay,
    reordered: u64,
    trains: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Delay {
    minimum: Value,
    median: Value,
    p95: Value,
    /// How far each of them may be off; null: no bound is known.
    error: Option<f64>,
    packets: usize,
    /// Size of the packets that the minimum is of [IP bytes].
    packet_bytes: u16,
    clock: Clock,
}

#[derive(Serialize)]
struct Clock {
    synchronised: bool,
    offset_s: Option<f64>,
    skew_ppm: Option<f64>,
}

/// One direction's part of the document.
pub(super) fn direction(
    outcome: &Outcome,
    method: MethodName,
    delay: Option<OneWay>,
    clocks: &Comparison,
    probed_s: Option<[f64; 2]>,
) -> OneDirection {
    let seconds = |ns: f64| ns / 1e9;
    let error = delay.and_then(|d| Some(seconds(d.error? as f64)));
    let within = |of: fn(&OneWay) -> f64| match delay.as_ref().map(|d| seconds(of(d))) {
        Some(value) => error.map_or(Value::bare(value), |error| Value::of(value, value - error, value + error)),
        None => Value::none(WhyNot::NoAnswer),
    };
    OneDirection {
        // what others published is told as it comes out
        known: match method {
            MethodName::Ride | MethodName::Replay => outcome.known.within_capacity(),
            _ => outcome.known,
        },
        probed_s,
        delay_s: Delay {
            minimum: within(|d| d.minimum),
            median: within(|d| d.median),
            p95: within(|d| d.p95),
            error,
            packets: delay.map_or(0, |d| d.count),
            packet_bytes: QUESTIONS.1,
            clock: Clock {
                synchronised: clocks.synchronised,
                offset_s: clocks.offset.map(seconds),
                skew_ppm: clocks.skew.map(|skew| skew * 1e6),
            },
        },
        reordered: outcome.reordered,
        trains: outcome.trains,
        bytes: outcome.bytes,
    }
}
