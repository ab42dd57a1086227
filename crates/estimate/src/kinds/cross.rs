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
use crate::stat::{deviation, line, mean, median, student90};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A sparse probe that waited longer than this share of a packet's time and this long [s] found the line busy.
const BUSY: (f64, f64) = (0.02, 30e-6);
/// Fewer sparse probes say nothing.
const FEW: usize = 8;
/// The part of a loaded phase that counts: its end, when others have had the time to answer.
const END: f64 = 0.5;
/// Below this share of the capacity nobody else sends.
const NOBODY: f64 = 0.04;
/// The shortest wait of so long [s] is no jitter's, with so many probes at the least.
const BLOCK: (f64, usize) = (0.1, 3);
/// Such waits [packets] count in logarithms, between these.
const STANDING: (f64, f64) = (0.1, 30.0);

/// In one queue for all: ln of the odds, for what has given way of what they sent (as a share of it, of a load of this at the least; 0.5
/// says nothing; without a blast what the push says, and where that says nothing), the logarithm of the packets that always
/// stand in the queue, the share of the time in which the line is busy and that without which it says nothing, what they
/// take of the line likewise, and by how much less busy it is after the measurement has filled it. A logistic regression on
/// 96 lines of `experiments/lines`, seeds 1001 to 1024.
const GAVE: (f64, f64, f64) = (1.7, 0.5, 0.15);
const GAVE_PUSH: (f64, f64) = (0.4, 0.3);
const STANDS: f64 = 1.0;
const FILLS: (f64, f64) = (1.4, 0.7);
const TAKES: (f64, f64) = (1.8, 0.5);
const FALLS: f64 = 2.0;

/// In a queue for every flow: TCP keeps the line busy, whoever needs no more than his share does not. The share of the time that is
/// neither, and how fast it turns there.
const FULL: (f64, f64) = (0.6, 12.0);
/// Waits of which one is so much like the next (von Neumann's ratio, Annals of Mathematical Statistics 1941, over 2) wander by
/// themselves: then the line is full where the share that the probes had is all that was seen of it, to so much.
const WANDERS: f64 = 0.36;
const ALL: f64 = 0.07;
const ALL_SAYS: (f64, f64) = (1.5, -2.0);

/// What sparse probes of a phase wait while nobody but them probes: when they left, and how long [s], without those that waited for
/// what was sent before.
fn waits(trail: &Trail, phase: Phase) -> Vec<(f64, f64)> {
    let counts = |p: &&Point| !p.lost && p.wait.is_finite() && p.ahead == 0.0;
    trail.sparse(phase).filter(counts).map(|p| (p.left, p.wait)).collect()
}

fn long(c: f64) -> f64 {
    BUSY.1.max(BUSY.0 * PACKET / c)
}

/// The share of the time in which the line is busy while nobody but the sparse flow probes.
pub fn busy(trail: &Trail, phase: Phase, c: f64) -> Option<f64> {
    let waits = waits(trail, phase);
    let busy = waits.iter().filter(|wait| wait.1 > long(c)).count() as f64;
    (waits.len() >= FEW).then(|| busy / waits.len() as f64)
}

/// What always stands in the queue while nobody but the sparse flow probes [s].
fn standing(trail: &Trail, phase: Phase) -> f64 {
    let waits = waits(trail, phase);
    let block = |wait: &(f64, f64)| ((wait.0 - waits[0].0) / BLOCK.0) as u64;
    let blocks = waits.chunk_by(|one, other| block(one) == block(other)).filter(|of| of.len() >= BLOCK.1);
    let least: Vec<f64> = blocks.map(|of| of.iter().map(|wait| wait.1).fold(f64::INFINITY, f64::min)).collect();
    median(&least).unwrap_or(0.0)
}

/// Whether waits wander slowly.
fn wanders(waits: &[(f64, f64)]) -> bool {
    let Some(deviation) = deviation(&waits.iter().map(|wait| wait.1).collect::<Vec<f64>>()) else { return false };
    let steps = waits.windows(2).map(|w| (w[1].1 - w[0].1).powi(2)).sum::<f64>() / (waits.len() - 1) as f64;
    steps < WANDERS * 2.0 * deviation.powi(2)
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
    let load = (1.0 - a / c).max(0.0);
    if load.max(busy) < NOBODY {
        return Value::none(WhyNot::Absent);
    }
    Value::bare(logistic(if fair { apart(trail, c, load, busy) } else { together(trail, c, load, busy) }))
}

/// ln of the odds in a queue for every flow.
fn apart(trail: &Trail, c: f64, load: f64, busy: f64) -> f64 {
    if wanders(&waits(trail, Phase::Listen)) {
        return if load < ALL { ALL_SAYS.0 } else { ALL_SAYS.1 };
    }
    // a wait behind one packet is as long as any up to its time
    let seen = (1.0 - long(c) * c / PACKET).max(0.3);
    FULL.1 * ((busy / seen).min(1.0) - FULL.0)
}

/// And in one for all.
fn together(trail: &Trail, c: f64, load: f64, busy: f64) -> f64 {
    let gave = |sends: f64| ((load - sends / c) / load.max(GAVE.2)).clamp(-0.5, 1.0);
    let gives = match (under(trail, Phase::Blast, c), under(trail, Phase::Push, c)) {
        (Some(sends), _) => GAVE.0 * (gave(sends) - GAVE.1),
        (None, Some(sends)) => GAVE_PUSH.0 * (gave(sends) - GAVE_PUSH.1),
        (None, None) => 0.0,
    };
    let stands = (standing(trail, Phase::Listen) * c / PACKET).clamp(STANDING.0, STANDING.1).log10();
    let after = self::busy(trail, Phase::Pause, c).unwrap_or(busy);
    gives
        + STANDS * stands
        + FILLS.0 * (busy - FILLS.1)
        + TAKES.0 * (load - TAKES.1)
        + FALLS * (busy - after).clamp(-0.3, 0.6)
}

/// What others send now, by what is available, with its interval [bit/s].
pub fn load(c: f64, (low, a, high): (f64, f64, f64)) -> Value {
    let load = (c - a).max(0.0);
    Value::of(load, (c - high).max(0.0), (c - low).max(load))
}

/// What others send now, by the measurement before; and in the next minutes, by how that and the pauses differ.
pub fn find(trail: &Trail, c: f64, (low, a, high): (f64, f64, f64), fair: bool) -> Cross {
    let now = self::load(c, (low, a, high));
    let load = (c - a).max(0.0);
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
