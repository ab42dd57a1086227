//! Ranges of numbers and times; those of links and virtual traffic are the link's own.

use pathcast_base::Nanos;
use pathcast_link::{Cross, ParamError, Params};

use super::place::Spot;
use crate::error::Problem;

/// Sums of a few of these stay far from the end of 64-bit nanoseconds.
const LONGEST: Nanos = Nanos::secs(1000 * 3600);

/// A time in the run or a duration.
pub(super) fn time(spot: &Spot, time: Nanos) -> Result<(), Problem> {
    if time <= LONGEST { Ok(()) } else { Err(spot.refuse("too long").allowed("0s to 1000h")) }
}

pub(super) fn above_zero(spot: &Spot, value: u64) -> Result<(), Problem> {
    if value > 0 { Ok(()) } else { Err(spot.refuse("must be above zero").allowed("above 0")) }
}

pub(super) fn within(spot: &Spot, value: u64, low: u64, high: u64, unit: &str) -> Result<(), Problem> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(spot.refuse("out of range").allowed(format!("{low}{unit} to {high}{unit}")))
}

/// `start` and `stop` of anything; the default of `start` is 0.
pub(super) fn span(spot: &Spot, start: Option<Nanos>, stop: Option<Nanos>) -> Result<Nanos, Problem> {
    time(&spot.key("start"), start.unwrap_or_default())?;
    if let Some(stop) = stop {
        time(&spot.key("stop"), stop)?;
        if stop <= start.unwrap_or_default() {
            let after = start.unwrap_or_default();
            return Err(spot.key("stop").refuse("not after `start`").allowed(format!("above {after}")));
        }
    }
    Ok(start.unwrap_or_default())
}

/// The ranges of one direction of a link. A wrong key is found by `at`.
pub(super) fn link(params: &Params, at: impl Fn(&str) -> Spot) -> Result<(), Problem> {
    params.check().map_err(|error| wrong(&at, &error))?;
    // times beyond these would overflow in sums, which the link itself cannot know
    let mut times = vec![("delay", params.delay)];
    times.extend(params.jitter.iter().flat_map(|j| [("jitter.amplitude", j.amplitude), ("jitter.step", j.step)]));
    match times.iter().find(|(_, time)| *time > Nanos::secs(3600)) {
        Some((key, time)) => Err(at(key).refuse(format!("{time} is out of range")).allowed("at most 1h")),
        None => Ok(()),
    }
}

/// The ranges of virtual traffic.
pub(super) fn cross(cross: &Cross, spot: &Spot) -> Result<(), Problem> {
    cross.check().map_err(|error| wrong(&|key| spot.key(key), &error))?;
    match cross {
        Cross::ParetoOnoff { on, .. } => time(&spot.key("on"), *on),
        _ => Ok(()),
    }
}

fn wrong(at: &dyn Fn(&str) -> Spot, error: &ParamError) -> Problem {
    // in the file the kind of the queue is a key of its own
    let kinds = ["queue.red.", "queue.fair.", "queue.codel.", "queue.fq_codel.", "queue.pie."];
    let key = kinds.iter().fold(error.key.to_owned(), |key, kind| key.replace(kind, "queue."));
    let text = match error.key {
        "bucket" if error.allowed.contains("queue") => format!("{} does not go together with the queue", error.value),
        "bucket" if error.value.starts_with("a ") => {
            format!("{} does not go together with the rest of the link", error.value)
        }
        _ => format!("{} is out of range", error.value),
    };
    at(&key).refuse(text).allowed(error.allowed.replace("queue.red.", ""))
}
