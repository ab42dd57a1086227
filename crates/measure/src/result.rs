//! The result of a measurement as one JSON document. Rates in IP bit/s, times in seconds; null where nothing is known, and
//! `why` then says the reason in one word.

use pathcast_estimate::Discipline;
use pathcast_estimate::delay::OneWay;
use serde::Serialize;

use super::client_path::QUESTIONS;
use super::outcome::{Figure, Outcome};
use super::request::Direction;
use super::times::Comparison;

#[derive(Serialize)]
pub(super) struct Document {
    pub paths: Vec<Path>,
    /// IP bytes of everything that was sent by both ends.
    pub probe_bytes: u64,
    pub elapsed_s: f64,
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
    pub directions: Directions,
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
    capacity_bps: Interval,
    available_bps: Available,
    delay_s: Delay,
    loss: Option<f64>,
    reordered: u64,
    trains: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Interval {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    why: Option<&'static str>,
}

#[derive(Serialize)]
struct Available {
    #[serde(flatten)]
    interval: Interval,
    discipline: &'static str,
}

#[derive(Serialize)]
struct Delay {
    minimum: Option<f64>,
    median: Option<f64>,
    p95: Option<f64>,
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

impl From<&Figure> for Interval {
    fn from(figure: &Figure) -> Interval {
        let known = |bound: f64| figure.value.and(Some(bound)).filter(|bound| bound.is_finite());
        Interval {
            value: figure.value,
            low: known(figure.low),
            high: known(figure.high),
            why: figure.why.map(|why| why.word()),
        }
    }
}

/// One direction's part of the document.
pub(super) fn direction(outcome: &Outcome, delay: Option<OneWay>, clocks: &Comparison) -> OneDirection {
    let seconds = |ns: f64| ns / 1e9;
    let available = &outcome.available;
    OneDirection {
        capacity_bps: (&outcome.capacity).into(),
        available_bps: Available {
            interval: available.into(),
            discipline: match available.discipline {
                Discipline::Unknown => "unknown",
                Discipline::Shared => "shared",
                Discipline::Fair => "fair",
            },
        },
        delay_s: Delay {
            minimum: delay.map(|d| seconds(d.minimum)),
            median: delay.map(|d| seconds(d.median)),
            p95: delay.map(|d| seconds(d.p95)),
            error: delay.and_then(|d| Some(seconds(d.error? as f64))),
            packets: delay.map_or(0, |d| d.count),
            packet_bytes: QUESTIONS.1,
            clock: Clock {
                synchronised: clocks.synchronised,
                offset_s: clocks.offset.map(seconds),
                skew_ppm: clocks.skew.map(|skew| skew * 1e6),
            },
        },
        loss: (outcome.probes > 0).then(|| outcome.lost as f64 / outcome.probes as f64),
        reordered: outcome.reordered,
        trains: outcome.trains,
        bytes: outcome.bytes,
    }
}
