//! Losses of the wire, counted where the queue has room.

use super::counting::share;
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::Value;
use crate::WhyNot;

/// Waits up to this share of the longest are far from a full queue.
const ROOM: f64 = 0.6;
/// Where it polices only those behind which no queue was for so long [s], and where it is managed for so long: the
/// probability with which PIE and RED drop outlives the queue.
const CALM: f64 = 0.25;
const CALMER: f64 = 0.8;
/// Where no queue ever goes, the shortest waits, this share of them, show the wire's share best.
const SHORTEST: f64 = 0.3;
/// Fewer packets say little.
const ENOUGH: f64 = 60.0;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    /// Probes that waited less than this share of the longest wait, in all phases.
    Room,
    /// Only where less than what is free was sent, and no queue was for a while.
    Empty,
    /// The same without what the measurement before sent.
    After,
}

/// Packets and losses that are the wire's. `longest`: the queue's wait where it is full [s].
pub fn count(trail: &Trail, longest: f64, place: Where) -> (f64, f64) {
    let counts = |p: &&Point| {
        let share = p.wait / longest.max(1e-9);
        match place {
            Where::Room => share < ROOM,
            Where::Empty => p.calm >= CALMER && matches!(p.phase, None | Some(Phase::Listen | Phase::Count)),
            Where::After => p.calm >= CALM && matches!(p.phase, Some(Phase::Listen | Phase::Count)),
        }
    };
    let (mut n, mut k) = (0.0, 0.0);
    for p in trail.points.iter().filter(counts) {
        n += 1.0;
        k += f64::from(u8::from(p.lost));
    }
    (n, k)
}

/// What is taken for the wire's before anything else is known: where no queue was, or at the shortest waits.
pub fn baseline(trail: &Trail) -> (f64, f64) {
    let calm = count(trail, 0.0, Where::After);
    if calm.0 >= ENOUGH {
        return calm;
    }
    let of = |p: &&Point| matches!(p.phase, None | Some(Phase::Listen | Phase::Count)) && p.wait.is_finite();
    let waits: Vec<f64> = trail.points.iter().filter(of).map(|p| p.wait).collect();
    let most = crate::stat::quantile(&waits, SHORTEST).unwrap_or(0.0);
    let short = trail.points.iter().filter(of).filter(|p| p.wait <= most);
    let lost = short.clone().filter(|p| p.lost).count() as f64;
    (short.count() as f64, lost)
}

/// Counted.
pub fn random((n, k): (f64, f64)) -> Value {
    if n < 1.0 {
        return Value::none(WhyNot::NotSeen);
    }
    let (low, high) = share(k, n);
    Value::of(k / n, low, high)
}
