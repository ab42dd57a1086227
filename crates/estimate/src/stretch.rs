//! What trains say of the capacity where delays wander while they are on their way, as over radio: the way stretches one of them and
//! compresses another, all gaps of each by nearly the same factor. No pair is then C's, whatever it waited; in the mean over trains
//! the factor is one.
//!
//! Packets leave the bottleneck L/C apart at least. That some trains come faster than others which met nobody either tells that it is
//! so.

use super::stat::{mean, median, median90, quantile};

/// Gaps up to so many times the train's short ones have nobody between them.
const BETWEEN: f64 = 1.3;
const SHORT: f64 = 0.2;
/// So many of a train's gaps have nobody between them where it met nobody.
const NOBODY: f64 = 0.9;
/// Trains differ by more than this share, and by more than their stamps can be late. So many do, and this share of them.
const DIFFER: f64 = 0.005;
const SOME: (usize, f64) = (2, 0.2);
/// So long trains that agree on less than this share of what the pairs say [s/bit] are right.
const MANY: usize = 8;
const DIVIDED: f64 = 0.9;
/// Fewer say nothing of how they differ.
const LEAST: usize = 3;

/// Such gaps of a train are alike within this factor: hosts that are late are so for each packet anew.
const ALIKE: f64 = 1.05;
/// Of fewer that cannot be said.
const FEW: usize = 3;

/// A train: seconds a bit between those packets that nobody came between, in how many gaps, and whether it met nobody at all, so that its
/// gaps are alike.
struct Pace {
    pace: f64,
    gaps: usize,
    alone: bool,
    /// Those are alike; and nobody was met.
    even: bool,
    alike: bool,
}

fn pace(gaps: &[f64]) -> Option<Pace> {
    let short = quantile(gaps, SHORT)?;
    let near: Vec<f64> = gaps.iter().copied().filter(|&gap| gap <= BETWEEN * short).collect();
    let alone = near.len() as f64 >= NOBODY * gaps.len() as f64;
    let even = quantile(&near, 1.0 - SHORT)? <= ALIKE * short;
    Some(Pace { pace: mean(&near)?, gaps: near.len(), alone, even, alike: even && alone && gaps.len() >= FEW })
}

/// What all long trains agree on by those gaps that nobody came between, where that is more than the pairs say, `usual` [bit/s]: even
/// traffic comes between the same packets of each. `trains`: each one's gaps from one packet to the next [s/bit].
pub(super) fn agreed(trains: &[Vec<f64>], usual: f64) -> Option<f64> {
    let paces = trains.iter().filter_map(|gaps| pace(gaps));
    let long: Vec<f64> = paces.filter(|p| p.gaps >= MANY && p.even).map(|p| p.pace).collect();
    let (least, most) = (quantile(&long, 0.0)?, quantile(&long, 1.0)?);
    let agree = long.len() >= LEAST && most <= (1.0 + DIFFER) * least;
    median(&long).filter(|pace| agree && pace * usual < DIVIDED).map(|pace| 1.0 / pace)
}

/// C and half of its 90 % interval [bit/s]; none where all trains that met nobody agree. `trains`: each one's gaps [s/bit]; `usual`: C by
/// the pairs that waited least; `noise`: what a stamp may be late [s/bit]; `single`: a gap is from one packet to the next, in which
/// somebody else's shows. Over three even traffic makes all gaps of a train alike.
pub(super) fn capacity(trains: &[Vec<f64>], usual: f64, noise: f64, single: bool) -> Option<(f64, f64)> {
    let paces: Vec<Pace> = trains.iter().filter_map(|gaps| pace(gaps)).collect();
    if paces.len() < LEAST {
        return None;
    }
    let apart = |p: &Pace| DIFFER / usual + noise / p.gaps as f64;
    let faster = |p: &Pace| p.alike && p.pace < 1.0 / usual - apart(p);
    let slower = |p: &Pace| single && p.alike && p.pace > 1.0 / usual + apart(p) && p.pace < BETWEEN / usual;
    let differ: Vec<f64> = paces.iter().filter(|p| faster(p) || slower(p)).map(|p| p.pace).collect();
    if differ.len() < SOME.0 || (differ.len() as f64) < SOME.1 * paces.len() as f64 {
        return None;
    }
    // all by the same: they agree, and the pairs are wrong, or somebody comes in step with them
    let any = paces.iter().any(faster) && paces.iter().any(|p| !faster(p));
    if !any && quantile(&differ, 1.0) <= quantile(&differ, 0.0).map(|least| (1.0 + DIFFER) * least) {
        return None;
    }
    // who met somebody all the time looks slow
    let alone: Vec<f64> = paces.iter().filter(|p| p.alone).map(|p| p.pace).collect();
    let all: Vec<f64> = paces.iter().map(|p| p.pace).collect();
    let of = if alone.len() >= LEAST { alone } else { all };
    let (middle, half) = median90(&of)?;
    let c = 1.0 / middle;
    Some((c, c * half / middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: f64 = 8e6;

    /// Trains of twelve gaps, all so many times as long as C's; in every third gap of the last `met` of them there is somebody as large.
    fn trains(times: &[f64], met: usize) -> Vec<Vec<f64>> {
        let gap = |k: usize, i: usize, time: f64| {
            time * if k + met >= times.len() && i.is_multiple_of(3) { 2.0 } else { 1.0 } / USUAL
        };
        times.iter().enumerate().map(|(k, &time)| (0..12).map(|i| gap(k, i, time)).collect()).collect()
    }

    #[test]
    fn trains_that_differ_are_stretched_and_c_is_their_median() {
        let (c, half) = capacity(&trains(&[0.9, 0.95, 1.0, 1.05, 1.1], 0), USUAL / 0.9, 0.0, true).unwrap();
        assert!((c / USUAL - 1.0).abs() < 1e-9);
        // 2.13 s / sqrt(5), s = 0.079, and the median of five is known 1.198 times worse than their mean
        assert!((half / c - 1.198 * 2.132 * 0.0790569 / 5f64.sqrt()).abs() < 1e-3, "{half}");
        let (with, _) = capacity(&trains(&[0.9, 0.95, 1.05, 1.1, 1.0], 1), USUAL / 0.9, 0.0, true).unwrap();
        let between = 1.0 / ((0.95 + 1.05) / 2.0);
        assert!((with / USUAL - between).abs() < 1e-9, "who met somebody does not count: {with}");
    }

    /// Nine in ten intervals hold C, whatever the paces' spread.
    #[test]
    fn the_interval_is_a_medians() {
        let mut stream = pathcast_base::Stream::new(1, "paces");
        for (trains, draws) in [(3, 3_000), (5, 3_000), (7, 10_000), (12, 3_000)] {
            let mut held = 0;
            for _ in 0..draws {
                let normal = (0..trains).map(|_| (0..12).map(|_| stream.uniform()).sum::<f64>() - 6.0);
                let (middle, half) = median90(&normal.collect::<Vec<f64>>()).unwrap();
                held += usize::from(middle.abs() <= half);
            }
            let share = held as f64 / f64::from(draws);
            assert!((0.885..0.93).contains(&share), "{trains}: {share}");
            assert!(trains != 7 || share >= 0.89, "{share}");
        }
    }

    #[test]
    fn trains_that_agree_are_not_stretched_whoever_comes_between() {
        for met in 0..=4 {
            assert_eq!(capacity(&trains(&[1.0; 4], met), USUAL, 0.0, true), None, "{met}");
        }
        // periodic traffic of small packets, in every gap of two trains
        assert_eq!(capacity(&trains(&[1.0, 1.0, 1.2, 1.2], 0), USUAL, 0.0, true), None);
        assert_eq!(capacity(&trains(&[1.0, 1.0, 1.2, 1.25], 0), USUAL, 0.0, false), None, "over three gaps");
        assert!(capacity(&trains(&[1.0, 1.0, 1.2, 1.25], 0), USUAL, 0.0, true).is_some());
        assert_eq!(capacity(&trains(&[0.9; 4], 0), USUAL, 0.0, true), None, "faster than the pairs say, all of them");
        assert_eq!(capacity(&trains(&[0.9, 1.1], 0), USUAL, 0.0, true), None, "too few");
    }

    #[test]
    fn what_long_trains_agree_on_is_c_though_pairs_met_somebody() {
        let met = trains(&[1.0; 4], 4);
        assert_eq!(agreed(&met, USUAL / 1.2).map(f64::round), Some(USUAL));
        assert_eq!(agreed(&met, USUAL / 1.1), None);
        let short: Vec<_> = met.iter().map(|gaps| gaps[..9].to_vec()).collect();
        assert_eq!(agreed(&short, USUAL / 1.2), None, "six gaps of nine");
        assert_eq!(agreed(&trains(&[1.0, 1.01, 1.0], 0), USUAL / 1.2), None);
    }

    #[test]
    fn what_stamps_are_late_is_no_stretching() {
        let of = |noise| capacity(&trains(&[0.98, 1.0, 1.02, 1.0], 0), USUAL, noise / USUAL, true).is_some();
        assert!(of(0.1) && !of(0.2), "a tenth of it counts, of twelve gaps");
    }
}
