//! A policer drops what exceeds its tokens and never queues (RFC 2697; Flach et al., "An Internet-wide analysis of traffic
//! policing", SIGCOMM 2016): under overload packets are lost that found no queue, and below the rate none are.
//!
//! With R = tokens a second, X = cross traffic through it, u = what is sent, b = share lost: what passes is
//! (1 - b) (u + X) = R, so that 1 / (1 - b) = (u + X) / R is a line in u.

use super::counting::logistic;
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::knowledge;
use crate::stat::median;
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// Beyond the wire's share at least this one is lost, in so many packets at least.
const HEAVY: f64 = 0.04;
const FEW: usize = 10;
/// Probes further apart than so many times the usual, and so long [s], have a pause between them, in which tokens
/// gather.
const PAUSE: (f64, f64) = (8.0, 0.05);
/// A probe that waits for so many packets found no queue.
const NO_QUEUE: f64 = 0.6;
/// Lost probes waited as those that came where the queue was empty: at most this share of pairs says they waited longer. And
/// of those no more than this share of what is lost under load is lost.
const ALIKE: f64 = 0.65;
const CLEAN: f64 = 0.25;
/// And they did not wait longer [s].
const SHORT: f64 = 6e-3;

/// How probable it is that what was lost found no queue. `wire`: the share that the wire loses.
pub fn probability(trail: &Trail, c: f64, wire: f64) -> f64 {
    let free: Vec<f64> = trail.large(Phase::Count).filter(|p| !p.lost && p.wait.is_finite()).map(|p| p.wait).collect();
    let counted = trail.large(Phase::Count).count();
    let loses = 1.0 - free.len() as f64 / counted.max(1) as f64;
    // the first that overloads says it: a managed queue goes on dropping when it is short again
    for phase in [Phase::Push, Phase::Blast, Phase::Hold] {
        let all = trail.large(phase).count();
        let lost: Vec<f64> = trail.large(phase).filter(|p| p.lost && p.wait.is_finite()).map(|p| p.wait).collect();
        let share = lost.len() as f64 / all.max(1) as f64;
        if lost.len() < FEW || share - wire < HEAVY {
            continue;
        }
        let wait = median(&lost).unwrap_or(f64::INFINITY) * c / PACKET;
        let longer = longer(&lost, &free);
        let alone = logistic(8.0 * (NO_QUEUE - wait));
        let alike = if free.len() >= FEW && wait * PACKET / c < SHORT && loses - wire < CLEAN * (share - wire) {
            logistic(20.0 * (ALIKE - longer))
        } else {
            0.0
        };
        return alone.max(alike);
    }
    0.0
}

/// The share of pairs of which the first is larger; a half of those that are equal.
fn longer(a: &[f64], b: &[f64]) -> f64 {
    let mut sorted = b.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |x: f64| sorted.partition_point(|&y| y < x) + sorted.partition_point(|&y| y <= x);
    a.iter().map(|&x| below(x) as f64).sum::<f64>() / (2.0 * a.len() as f64 * b.len() as f64)
}

/// Steps from one to the next, and their time [s], without pauses.
fn in_a_row(points: &[&Point]) -> (f64, f64) {
    let steps: Vec<f64> = points.windows(2).map(|w| w[1].left - w[0].left).collect();
    let pause = PAUSE.1.max(PAUSE.0 * median(&steps).unwrap_or(0.0));
    let row = || steps.iter().filter(|&&step| step <= pause);
    (row().count() as f64, row().sum())
}

/// Of a line that polices: its rate and burst.
pub fn find(trail: &Trail, c: f64, wire: f64) -> knowledge::Policer {
    let probability = self::probability(trail, c, wire);
    let mut found = knowledge::Policer { probability: Value::bare(probability), ..Default::default() };
    if probability < 0.5 {
        found.rate_bps = Value::none(WhyNot::Absent);
        found.burst_bytes = Value::none(WhyNot::Absent);
        return found;
    }
    // of each phase behind its first loss: what was sent, the share that passed
    let mut rates = Vec::new();
    let mut first = None;
    for phase in [Phase::Push, Phase::Hold] {
        let points: Vec<_> = trail.large(phase).collect();
        let Some(lost) = points.iter().position(|p| p.lost) else { continue };
        if phase == Phase::Push {
            first = Some((points[0].left, points[lost].left, lost));
        }
        // a push that began again was sent too fast before, and left tokens for a burst
        let points: Vec<_> = points.into_iter().filter(|p| p.left >= trail.again).collect();
        let Some(lost) = points.iter().position(|p| p.lost) else { continue };
        let after = &points[lost..];
        let (steps, time) = in_a_row(after);
        if after.len() >= 2 * FEW && time > 0.0 {
            let sent = steps * PACKET / time;
            let came = after.iter().filter(|p| !p.lost).count() as f64 / after.len() as f64;
            rates.push((sent, came));
        }
    }
    let passed: Vec<f64> = rates.iter().map(|(sent, came)| sent * came).collect();
    match median(&passed) {
        Some(rate) => {
            let (least, most) = passed.iter().fold((rate, rate), |b, &r| (b.0.min(r), b.1.max(r)));
            // what others pass through it is not known
            found.rate_bps = Value::of(rate, 0.97 * least, 1.1 * most);
            found.burst_bytes = match first {
                Some((begin, lost, count)) => {
                    let burst = (count as f64 * PACKET - rate * (lost - begin)).max(PACKET) / 8.0;
                    Value::of(burst, 0.5 * burst, 2.0 * burst)
                }
                None => Value::none(WhyNot::NotSeen),
            };
        }
        None => {
            found.rate_bps = Value::none(WhyNot::TooShort);
            found.burst_bytes = Value::none(WhyNot::TooShort);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(phase: Phase, wait: f64, of: usize, lost: usize) -> impl Iterator<Item = Point> {
        let point = move |k: usize| Point { phase: Some(phase), wait, lost: k % of < lost, ..Point::default() };
        (0..200).map(point)
    }

    /// 40 Mbit/s, of which 10 pass, with a hole in which nothing was sent; before it the bucket was full, behind it it
    /// has filled up again.
    #[test]
    fn a_pause_is_no_part_of_the_rate() {
        let point = |left: f64, k: usize| Point {
            phase: Some(Phase::Push),
            left,
            lost: !k.is_multiple_of(4),
            ..Point::default()
        };
        let step = PACKET / 40e6;
        let part = |from: f64, time: f64| (0..(time / step) as usize).map(move |k| point(from + k as f64 * step, k));
        let pushed: Vec<Point> = part(1.0, 0.1).chain(part(1.4, 0.9)).collect();
        let whole = Trail { points: pushed.clone(), ..Trail::default() };
        let burst = part(1.4, 0.9).map(|p| Point { lost: p.lost && p.left > 1.6, ..p });
        let again = Trail { points: part(1.0, 0.1).chain(burst).collect(), again: 1.3, ..Trail::default() };
        for trail in [whole, again] {
            let rate = find(&trail, 40e6, 0.0).rate_bps;
            assert!(rate.low <= 10e6 && 10e6 <= rate.high, "{rate:?}");
            assert!((rate.value.unwrap() / 10e6 - 1.0).abs() < 0.02, "{rate:?}");
        }
    }

    /// PIE's probability outlives the queue by far (RFC 8033, 4.2).
    #[test]
    fn a_managed_queue_that_goes_on_dropping_is_no_policer() {
        let hold = || points(Phase::Hold, 0.0, 10, 2).chain(points(Phase::Count, 0.0, 1, 0));
        let queued = Trail { points: points(Phase::Push, 0.1, 10, 3).chain(hold()).collect(), ..Trail::default() };
        assert_eq!(self::probability(&queued, 10e6, 0.0).round(), 0.0);
        // where nothing was lost before, nothing waited
        let policed = Trail { points: points(Phase::Push, 0.0, 1, 0).chain(hold()).collect(), ..Trail::default() };
        assert_eq!(self::probability(&policed, 10e6, 0.0).round(), 1.0);
    }
}
