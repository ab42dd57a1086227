//! What others send, and whether it gives way.
//!
//! Under load a first-come-first-served queue balances: C = capacity, X = what others send, u = what is sent, p = the share of it
//! that passes, w' = the growth of the wait [s/s]: C (1 + w') = p (u + X), so X = C (1 + w') / p - u. TCP has given way when X
//! is far below what it was; what a schedule sends has not. Where every flow has its queue nothing has to give way: there it is
//! told by the line's being busy when nobody probes, since TCP fills what it is given. After Nimbus (Goyal et al.,
//! SIGCOMM 2022), which pulses its rate and looks for the answer.

use super::counting::logistic;
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::knowledge::Cross;
use crate::stat::{deviation, line, mean, student90};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A sparse probe that waited longer than this share of a packet's time and this long [s] found the line busy.
const BUSY: (f64, f64) = (0.02, 30e-6);
/// Fewer sparse probes say nothing.
const FEW: usize = 8;
/// The part of a loaded phase that counts: its end, when others have had the time to answer.
const END: f64 = 0.5;
/// Delays that always and only are shorter than this may be the path's own [s].
const WANDERS: f64 = 3.5e-3;
/// Below this share of the capacity nobody else sends.
const NOBODY: f64 = 0.04;

/// The share of the time in which the line is busy while nobody but the sparse flow probes.
pub fn busy(trail: &Trail, phase: Phase, c: f64) -> Option<f64> {
    let waits: Vec<f64> =
        trail.sparse(phase).filter(|p| !p.lost && p.wait.is_finite() && p.calm.is_finite()).map(|p| p.wait).collect();
    let long = BUSY.1.max(BUSY.0 * PACKET / c);
    (waits.len() >= FEW).then(|| waits.iter().filter(|&&wait| wait > long).count() as f64 / waits.len() as f64)
}

/// What others sent at the end of a loaded phase [bit/s].
fn under(trail: &Trail, phase: Phase, c: f64) -> Option<f64> {
    let all: Vec<&Point> = trail.large(phase).collect();
    let (first, last) = (**all.first()?, **all.last()?);
    let from = last.left - END * (last.left - first.left);
    let part: Vec<&Point> = all.into_iter().filter(|p| p.left >= from).collect();
    let came: Vec<(f64, f64)> =
        part.iter().filter(|p| !p.lost && p.wait.is_finite()).map(|p| (p.left, p.wait)).collect();
    if came.len() < 2 * FEW {
        return None;
    }
    let passes = came.len() as f64 / part.len() as f64;
    let sent = (part.len() - 1) as f64 * PACKET / (last.left - part[0].left);
    let grows = line(&came)?.1;
    Some((c * (1.0 + grows) / passes - sent).max(0.0))
}

/// What share of it gives way, 0 to 1; none: nobody sends enough to tell. `a`: what is available [bit/s].
pub fn elastic(trail: &Trail, c: f64, a: f64, fair: bool) -> Value {
    let Some(busy) = busy(trail, Phase::Listen, c) else { return Value::none(WhyNot::TooFew) };
    let load = (1.0 - a / c).max(busy);
    if load < NOBODY {
        return Value::none(WhyNot::Absent);
    }
    // where delays wander without a queue every probe seems to have waited
    let calm = trail.sparse(Phase::Listen).filter(|p| p.wait < WANDERS).count() as f64;
    let wanders = busy > 0.97 && calm > 0.9 * trail.sparse(Phase::Listen).count() as f64 && WANDERS * c > PACKET;
    let full = if wanders { 0.0 } else { 6.0 * (busy - 0.8) };
    if fair && !wanders {
        return Value::bare(logistic(3.0 * full));
    }
    let loaded = under(trail, Phase::Blast, c).or_else(|| under(trail, Phase::Push, c));
    let gives = loaded.map(|x| (1.0 - x / (load * c)).clamp(-0.5, 1.0));
    Value::bare(logistic(gives.map_or(0.0, |gives| 7.0 * (gives - 0.5)) + full))
}

/// What others send now, by the measurement before; and in the next minutes, by how that and the pauses differ.
pub fn find(trail: &Trail, c: f64, (low, a, high): (f64, f64, f64), fair: bool) -> Cross {
    let load = (c - a).max(0.0);
    let now = Value::of(load, (c - high).max(0.0), (c - low).max(load));
    let mut seen = vec![load];
    seen.extend([Phase::Listen, Phase::Pause].iter().filter_map(|&phase| busy(trail, phase, c)).map(|busy| busy * c));
    let later = match (mean(&seen), deviation(&seen)) {
        (Some(mean), Some(deviation)) if seen.len() > 2 => {
            let half = student90(seen.len() - 1) * deviation * (1.0 + 1.0 / seen.len() as f64).sqrt();
            Value::of(mean, (mean - half).max(0.0), (mean + half).min(c))
        }
        _ => Value::none(WhyNot::TooShort),
    };
    Cross { load_bps: now, mean_bps: later, elastic: elastic(trail, c, a, fair), ..Cross::default() }
}
