//! The queue in front of the bottleneck: whose it is, whether it is managed, and how long it gets.
//!
//! - **Fair.** While the large probes wait, do the sparse ones, a flow of their own, wait with them?
//! - **Managed.** A queue that merely overflows loses nothing beyond the wire's share while it has room. CoDel (RFC 8289) drops
//!   as soon as waits have been long for a while, PIE (RFC 8033) and RED (Floyd and Jacobson 1993) at random before it is full.

use super::counting::{ln_count, logistic};
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::stat::{median, quantile};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A queue of fewer packets says nothing of whose it is.
const SOME: f64 = 3.0;
/// Sparse probes count while the large ones wait at least this share of the longest wait.
const WAITING: f64 = 0.4;
/// Half-way between waiting with the others and not at all; how fast the probability turns there; probes that are enough.
const TOGETHER: f64 = 0.5;
const TURNS: f64 = 14.0;
const ENOUGH: usize = 4;
/// Where no queue was seen.
const FAIR_PRIOR: f64 = 0.1;

/// How probable it is that every flow has a queue of its own.
pub fn fair(trail: &Trail, c: f64) -> f64 {
    let pairs = trail.beside();
    let longest = pairs.iter().map(|pair| pair.1).fold(0.0, f64::max);
    let waiting = |pair: &&(f64, f64)| pair.1 > SOME * PACKET / c && pair.1 >= WAITING * longest;
    let ratios: Vec<f64> = pairs.iter().filter(waiting).map(|(sparse, large)| sparse / large).collect();
    match median(&ratios) {
        Some(ratio) if ratios.len() >= ENOUGH => logistic(TURNS * (TOGETHER - ratio)),
        _ => FAIR_PRIOR,
    }
}

/// How long the queue is when it overflows, as far as it did: near the longest at which probes were lost, else the longest.
pub fn ceiling(trail: &Trail, length: impl Fn(&Point) -> f64) -> f64 {
    let of = |lost: bool| -> Vec<f64> {
        trail.loaded().filter(|p| p.lost == lost).map(&length).filter(|x| x.is_finite()).collect()
    };
    let (lost, all) = (of(true), of(false));
    let most = quantile(&all, 0.98).unwrap_or(0.0);
    if lost.len() < 5 { most } else { quantile(&lost, 0.9).unwrap_or(most).min(most.max(1e-9) * 1.2) }
}

/// Below this share of the ceiling a queue has room, whatever sizes wait in it; where flows have queues of their own that share
/// their room below this one.
const ROOM: f64 = 0.7;
const ROOM_FAIR: f64 = 0.35;
/// The wire's losses before anything was seen: packets, losses.
const WIRE: (f64, f64) = (40.0, 0.3);
const ROOM_WIDE: f64 = 0.45;
/// So many of those lost in a full queue may look as if it had room, or had much.
const LEAK: f64 = 0.05;
const LEAK_WIDE: f64 = 0.01;
/// Shares that a managed queue may drop there.
const DROPS: [f64; 8] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4];

/// How probable it is that it drops before it is full. `wire`: packets and losses where the queue was empty. Full is where it
/// is longest: in time, or where its rate changes in packets. `shared`: others' queues have a part of its room.
pub fn managed(trail: &Trail, wire: (f64, f64), shared: bool) -> f64 {
    let rooms: &[(f64, f64)] = if shared { &[(ROOM_FAIR, LEAK)] } else { &[(ROOM, LEAK), (ROOM_WIDE, LEAK_WIDE)] };
    let of = |&room| early(trail, wire, room, |p| p.wait).min(early(trail, wire, room, |p| p.ahead + 1.0));
    rooms.iter().map(of).fold(0.0, f64::max)
}

/// The same by one measure of the queue.
fn early(trail: &Trail, wire: (f64, f64), (room, leaks): (f64, f64), length: impl Fn(&Point) -> f64) -> f64 {
    let ceiling = ceiling(trail, &length);
    let (mut n, mut k, mut full) = (0.0, 0.0, 0.0);
    for p in trail.loaded().filter(|p| length(p).is_finite()) {
        if length(p) < room * ceiling {
            n += 1.0;
            k += f64::from(u8::from(p.lost));
        } else {
            full += f64::from(u8::from(p.lost));
        }
    }
    let (of, lost) = (wire.0 + WIRE.0, wire.1 + WIRE.1);
    let times = n / of;
    let leak = leaks * full;
    let (mean, variance) = (times * lost + leak, times * lost * (1.0 + times) + leak * (1.0 + leak));
    let plain = ln_count(k, mean, variance);
    let drops = |drop: &f64| ln_count(k, mean + drop * n, variance + drop * n * (1.0 + 0.2 * drop * n));
    let each: Vec<f64> = DROPS.iter().map(drops).collect();
    let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let managed = most + (each.iter().map(|ln| (ln - most).exp()).sum::<f64>() / DROPS.len() as f64).ln();
    logistic((managed - plain).clamp(-30.0, 30.0))
}

/// So many losses beyond the wire's near its longest say that it was full.
const FULL: f64 = 5.0;

/// The wait of a flow that fills the queue [s] with an interval: where it overflows; where it is managed what it stands at. What
/// never overflowed is longer. `wire`: the share that the wire loses.
pub fn depth(trail: &Trail, ceiling: f64, managed: bool, wire: f64) -> Value {
    if !managed {
        let near: Vec<&Point> = trail.loaded().filter(|p| p.wait >= ROOM * ceiling).collect();
        let lost = near.iter().filter(|p| p.lost).count() as f64;
        if lost < FULL + 2.0 * wire * near.len() as f64 {
            return Value::at_least(ceiling, WhyNot::BeyondLimit);
        }
        return Value::of(ceiling, 0.9 * ceiling, 1.1 * ceiling);
    }
    let waits: Vec<f64> = trail
        .large(Phase::Hold)
        .chain(trail.large(Phase::Push))
        .filter(|p| !p.lost && p.wait.is_finite())
        .map(|p| p.wait)
        .collect();
    let at = |p| quantile(&waits, p).unwrap_or(0.0);
    Value::of(median(&waits).unwrap_or(0.0), at(0.05), at(0.95))
}
