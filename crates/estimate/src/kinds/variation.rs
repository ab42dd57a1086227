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
    let cv = deviation / mean;
    let n = all.len() as f64;
    // of a normal sample's deviation: 1 / sqrt(2 n)
    let half = 1.645 * cv / (2.0 * n).sqrt();
    let pairs = || rates.iter().flat_map(|row| row.windows(2));
    let together: f64 = pairs().map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / pairs().count().max(1) as f64;
    let likeness = together / deviation.powi(2).max(1e-12);
    let scale = match likeness {
        x if x > 0.9 => Value::at_least(10.0 * window, WhyNot::TooShort),
        x if x > 0.1 => Value::bare(-window / x.ln()),
        _ => Value::none(WhyNot::NotSeen),
    };
    RateVariation { cv: Value::of(cv, (cv - half).max(0.0), cv + half), scale_s: scale }
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
}
