//! How the bottleneck's rate changes by itself: while its queue is not empty and nobody else sends, packets leave as fast as it
//! carries them. Where others send too, or in a queue for every flow, what changes may be they.

use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::knowledge::RateVariation;
use crate::stat::{deviation, mean};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A window [s] or so many packets at the capacity; so many windows at least.
const WINDOW: f64 = 50e-3;
const PACKETS: f64 = 12.0;
const WINDOWS: usize = 8;
/// The likeness of one window to the next is reckoned with up to this, and below the second there is none.
const ALIKE: (f64, f64) = (0.95, 0.1);
/// Where one is more like the next than 1 less so many in all, the rate has changed too slowly to show by how much: of
/// rates that wander freely hardly a tenth are less so.
const SHOWS: f64 = 12.0;
/// The normal distribution's 95 % quantile.
const NORMAL: f64 = 1.645;

/// From what left the queue while it was not empty: waits above `quiet` [s]. `c`: the capacity [bit/s].
pub fn find(trail: &Trail, c: f64, quiet: f64) -> RateVariation {
    let window = WINDOW.max(PACKETS * PACKET / c);
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for phase in [Phase::Push, Phase::Blast, Phase::Hold] {
        let came: Vec<&Point> = trail.large(phase).filter(|p| !p.lost && p.wait.is_finite()).collect();
        // in a row without an empty queue
        for row in came.split(|p| p.wait < quiet) {
            let mut of = Vec::new();
            let Some(mut first) = row.first().map(|p| p.left + p.wait) else { continue };
            let mut count = 0.0;
            for p in &row[1..] {
                count += 1.0;
                let at = p.left + p.wait;
                if at >= first + window {
                    of.push(count * PACKET / (at - first));
                    (first, count) = (at, 0.0);
                }
            }
            rates.push(of);
        }
    }
    let all: Vec<f64> = rates.iter().flatten().copied().collect();
    let (Some(mean), Some(deviation)) = (mean(&all), deviation(&all)) else { return none(WhyNot::TooFew) };
    if all.len() < WINDOWS {
        return none(WhyNot::TooFew);
    }
    let n = all.len() as f64;
    let pairs = || rates.iter().flat_map(|row| row.windows(2));
    let together: f64 = pairs().map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / pairs().count().max(1) as f64;
    let likeness = together / deviation.powi(2).max(1e-12);
    let scale = match likeness {
        x if x > 0.9 => Value::at_least(10.0 * window, WhyNot::TooShort),
        x if x > ALIKE.1 => Value::bare(-window / x.ln()),
        _ => Value::none(WhyNot::NotSeen),
    };
    // a delay that wanders makes a window longer or shorter, at both of its ends
    let jitter = 2.0 * idle(trail) / window.powi(2);
    let most = deviation / mean;
    let cv = (most.powi(2) - jitter).max(0.0).sqrt();
    let rho = likeness.clamp(0.0, ALIKE.0).powi(2);
    let (least, greatest) = bounds(n * (1.0 - rho) / (1.0 + rho) - 1.0);
    // what one window has of the next has none of the window's ends
    let low = if likeness > ALIKE.1 { least * cv } else { 0.0 };
    if likeness > 1.0 - SHOWS / n {
        let cv = Value { why: Some(WhyNot::TooShort), ..Value::of(cv, low, f64::INFINITY) };
        return RateVariation { cv, scale_s: scale };
    }
    RateVariation { cv: Value::of(cv, low, greatest * most), scale_s: scale }
}

/// The variance of the delay while nobody waits for the probes [s^2].
fn idle(trail: &Trail) -> f64 {
    let of = |phase| deviation(&trail.idle(phase)).map(|deviation| deviation.powi(2));
    // what only one of them saw was others' queue
    [Phase::Listen, Phase::Pause].into_iter().filter_map(of).reduce(f64::min).unwrap_or(0.0)
}

/// By how many times as much as a sample's a deviation may be less and more, to 90 %: by the chi-square distribution
/// (Wilson and Hilferty, PNAS 1931), of so many degrees of freedom; at least one.
fn bounds(freedom: f64) -> (f64, f64) {
    let (mean, spread) = (1.0 - 2.0 / (9.0 * freedom.max(1.0)), (2.0 / (9.0 * freedom.max(1.0))).sqrt());
    let times = |z: f64| (mean + z * spread).max(0.0).powf(-1.5);
    (times(NORMAL), times(-NORMAL))
}

fn none(why: WhyNot) -> RateVariation {
    RateVariation { cv: Value::none(why), scale_s: Value::none(why) }
}

/// Nobody but the probes may have made it.
pub fn ambiguous() -> RateVariation {
    none(WhyNot::Ambiguous)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that is never empty, served at 8 and 12 Mbit/s in turn, 0.4 s each.
    #[test]
    fn steps_of_the_rate() {
        let (mut trail, mut out) = (Trail::default(), 1.0);
        for i in 0..2000 {
            let left = f64::from(i) * 1e-3;
            out += PACKET / if ((out / 0.4) as u32).is_multiple_of(2) { 8e6 } else { 12e6 };
            let point = Point { phase: Some(Phase::Push), left, wait: out - left, rate: 10e6, ..Point::default() };
            trail.points.push(point);
        }
        let found = find(&trail, 10e6, 5e-3);
        let cv = found.cv.value.unwrap();
        assert!((cv - 0.2).abs() < 0.03, "{cv}");
        let scale = found.scale_s.value.unwrap();
        assert!((0.1..0.5).contains(&scale), "{scale}");
        assert_eq!(find(&Trail::default(), 10e6, 5e-3).cv.why, Some(WhyNot::TooFew));
    }

    /// Packets every ms for `time` [s] through a queue that is never empty, at this rate [bit/s] by the time; then
    /// sparse ones, that find nobody. `late`: how much later each comes [s].
    fn pushed(time: f64, mut rate: impl FnMut(f64) -> f64, late: impl Fn(f64) -> f64) -> Trail {
        let (mut trail, mut out) = (Trail::default(), 1.0);
        for i in 0..(time * 1e3) as u32 {
            let left = f64::from(i) * 1e-3;
            out += PACKET / rate(out);
            let (phase, wait) = (Some(Phase::Push), out - left + late(out));
            trail.points.push(Point { phase, left, wait, rate: 20e6, ..Point::default() });
        }
        for i in 0..300 {
            let left = out + f64::from(i) * 2e-3;
            let (phase, wait) = (Some(Phase::Pause), late(left));
            trail.points.push(Point { phase, sparse: true, left, wait, ..Point::default() });
        }
        trail
    }

    #[test]
    fn the_interval_holds_what_changes_slowly_and_fast() {
        for scale in [0.25, 0.5, 4.0] {
            let held = |seed: &u64| {
                let mut noise = pathcast_base::Stream::new(*seed, "a rate");
                let mut normal = move || (0..12).map(|_| noise.between(-0.5, 0.5)).sum::<f64>();
                let (step, mut at, mut off) = (10e-3, 1.0, normal());
                let like = f64::exp(-step / scale);
                let rate = |out: f64| {
                    while at < out {
                        off = like * off + (1.0 - like * like).sqrt() * normal();
                        at += step;
                    }
                    20e6 * (1.0 + 0.15 * off)
                };
                let cv = find(&pushed(3.0, rate, |_| 0.0), 20e6, 5e-3).cv;
                cv.low <= 0.15 && 0.15 <= cv.high
            };
            let held = (0..100).filter(held).count();
            assert!(held >= 85, "{scale}: {held}");
        }
    }

    /// Knots of a delay every 50 ms, between 0 and 10 ms, and evenly from one to the next.
    #[test]
    fn a_delay_that_wanders_is_no_rate_that_changes() {
        for seed in 0..20 {
            let mut noise = pathcast_base::Stream::new(seed, "a delay");
            let knots: Vec<f64> = (0..200).map(|_| noise.between(0.0, 10e-3)).collect();
            let late = |at: f64| {
                let (k, share) = ((at / 50e-3) as usize, (at / 50e-3).fract());
                knots[k] + (knots[k + 1] - knots[k]) * share
            };
            let found = find(&pushed(2.0, |_| 20e6, late), 20e6, 5e-3);
            assert!(found.cv.low == 0.0 || found.cv.why.is_some(), "{found:?}");
            assert!(found.cv.value.unwrap() < 0.1, "{found:?}");
        }
    }
}
