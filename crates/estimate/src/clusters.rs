//! Bottleneck capacity from packet pairs of several sizes by hierarchical clustering: PathTester, section 2, as far as the
//! paper goes; what it leaves open is chosen here and said so.
//!
//! Pairs of each size s are sent back to back, C_ij = 8 s / dispersion (s: size, j: the pair). Single-linkage clustering on
//! log C (in one dimension: merging neighbours in the order of their distances), cut at the largest jump between merge
//! distances. The paper takes the value from "the increasing tendency with packet size": at the bottleneck the dispersion
//! grows with s along a line through the origin, behind cross traffic it does not. So of the clusters with at least a third
//! of the largest one's members the one whose line leaves the smallest residue.

use pathcast_base::Nanos;

use super::stat::{deviation, median};
use super::turns::{InTurn, Turns};
use super::{Budget, Estimate, Step, TrainSeen, WhyNot};

/// The sizes [IP bytes], and pairs of each.
pub const SIZES: [u16; 7] = [200, 400, 600, 800, 1000, 1200, 1400];

/// Pairs of each size.
pub const PAIRS: usize = 10;

/// Clusters of values on a line by single linkage, cut at the largest jump between consecutive merge distances. Each cluster
/// holds indices of `values`, in rising order of value.
pub fn single_linkage(values: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let apart: Vec<f64> = order.windows(2).map(|w| values[w[1]] - values[w[0]]).collect();
    let mut merges = apart.clone();
    merges.sort_by(f64::total_cmp);
    let jump = merges.windows(2).max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
    let cut = jump.filter(|w| w[1] > w[0]).map_or(f64::INFINITY, |w| w[0]);
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for (k, &index) in order.iter().enumerate() {
        if k == 0 || apart[k - 1] > cut {
            clusters.push(Vec::new());
        }
        clusters.last_mut().expect("just pushed").push(index);
    }
    clusters
}

/// One pair: size [IP bytes] and dispersion [s].
pub type Pair = (f64, f64);

/// How badly a line through the origin explains the dispersions: the relative residue.
fn residue(pairs: &[Pair]) -> f64 {
    let slope = pairs.iter().map(|(s, d)| s * d).sum::<f64>() / pairs.iter().map(|(s, _)| s * s).sum::<f64>();
    let residues: Vec<f64> = pairs.iter().map(|(s, d)| (d - slope * s).abs() / (slope * s)).collect();
    median(&residues).unwrap_or(f64::INFINITY)
}

/// The cluster that is the bottleneck's: its pairs; empty without pairs.
pub fn bottleneck(pairs: &[Pair]) -> Vec<Pair> {
    let logs: Vec<f64> = pairs.iter().map(|(s, d)| (8.0 * s / d).ln()).collect();
    let clusters = single_linkage(&logs);
    let largest = clusters.iter().map(Vec::len).max().unwrap_or(0);
    let candidates = clusters.into_iter().filter(|c| c.len() * 3 >= largest);
    let candidates = candidates.map(|c| c.into_iter().map(|i| pairs[i]).collect::<Vec<Pair>>());
    // a cluster of few sizes fits any line
    let sizes = |c: &[Pair]| {
        let mut sizes: Vec<u64> = c.iter().map(|p| p.0 as u64).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    };
    let cost = |c: &Vec<Pair>| residue(c) + 0.3 / sizes(c) as f64 + 0.3 / c.len() as f64;
    candidates.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_default()
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Clusters {
    turns: Turns,
    sent: usize,
    pairs: Vec<Pair>,
}

impl Clusters {
    /// Within the budget: all pairs take 112 kB.
    pub fn new(budget: Budget) -> Self {
        Clusters { turns: Turns::new(budget), sent: 0, pairs: Vec::new() }
    }
}

impl InTurn for Clusters {
    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    fn took(&mut self, answer: Option<&TrainSeen>) {
        if let Some([a, b]) = answer.map(|train| &train.packets[..])
            // in a batch only the last one's stamp is right
            && a.own_delay().is_some()
            && b.own_delay().is_some()
            && let (Some(first), Some(second)) = (a.received, b.received)
            && second > first
        {
            self.pairs.push((f64::from(b.size), (second - first).as_secs_f64()));
        }
    }

    fn step(&mut self, now: Nanos) -> Step {
        let size = SIZES[self.sent % SIZES.len()];
        if self.sent == SIZES.len() * PAIRS || !self.turns.affords(now, 2 * u64::from(size)) {
            return Step::Done;
        }
        self.sent += 1;
        let patience = self.turns.patience();
        self.turns.send(now, 2, 0.0, size, patience)
    }

    /// The interval is 1.645 standard errors of the cluster's values.
    fn result(&self) -> Estimate {
        let cluster = bottleneck(&self.pairs);
        let rates: Vec<f64> = cluster.iter().map(|(s, d)| 8.0 * s / d).collect();
        let Some(value) = median(&rates) else {
            let why = if self.turns.answered() == 0 { WhyNot::NoAnswer } else { WhyNot::TooFew };
            return Estimate::none(why, self.turns.bytes());
        };
        let half = 1.645 * deviation(&rates).unwrap_or(value) / (rates.len() as f64).sqrt();
        let mut estimate = Estimate::of(value, value - half, value + half, self.turns.bytes());
        if rates.len() * 5 < self.pairs.len() {
            estimate.why_not = Some(WhyNot::Inconsistent);
        }
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fluid;
    use super::*;
    use pathcast_base::{Bytes, Stream};

    #[test]
    fn the_cut_is_at_the_largest_jump_of_the_merge_distances() {
        // distances 1, 1, 8, 2: the jump from 2 to 8
        let clusters = single_linkage(&[12.0, 0.0, 1.0, 10.0, 2.0]);
        assert_eq!(clusters, [vec![1, 2, 4], vec![3, 0]]);
        assert_eq!(single_linkage(&[3.0, 3.0, 3.0]), [vec![0, 1, 2]]);
        assert!(single_linkage(&[]).is_empty());
    }

    #[test]
    fn the_line_through_the_origin_wins_over_a_cluster_of_equal_dispersions() {
        let mut s = Stream::new(2, "pairs");
        let mut pairs: Vec<Pair> = Vec::new();
        for size in SIZES {
            for j in 0..PAIRS {
                let own = f64::from(size) * 8.0 / 5e6 * s.between(0.999, 1.001);
                // half of the pairs have one packet of 1500 bytes between them
                pairs.push((f64::from(size), if j % 2 == 0 { own } else { own + 12_000.0 / 5e6 }));
            }
        }
        let cluster = bottleneck(&pairs);
        let rates: Vec<f64> = cluster.iter().map(|(s, d)| 8.0 * s / d).collect();
        assert!((median(&rates).unwrap() / 5e6 - 1.0).abs() < 0.002, "{rates:?}");
    }

    #[test]
    fn no_pair_is_begun_that_cannot_be_paid_for() {
        for (bytes, sent) in [(399, 0), (400, 400), (1199, 400), (1200, 1200)] {
            let budget = Budget { bytes: Bytes(bytes), time: Nanos::secs(200) };
            let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut Clusters::new(budget));
            assert_eq!(estimate.bytes, Bytes(sent), "of {bytes}");
        }
    }

    #[test]
    fn pairs_that_a_host_handed_over_together_say_nothing() {
        let mut method = Clusters::new(Budget { bytes: Bytes(200_000), time: Nanos::secs(10) });
        let mut pair = super::super::testing::train(0, 1400, &[0, 0], &[Some(1_000_000), Some(1_300_000)]);
        for (index, p) in pair.packets.iter_mut().enumerate() {
            p.batch = super::super::Batch { index: index as u32, of: 2 };
        }
        method.turns.send(Nanos::ZERO, 2, 0.0, 1400, Nanos::secs(1));
        method.turns.observe(Nanos::millis(2), &pair);
        method.took(Some(&pair));
        assert_eq!((method.pairs.len(), method.result().why_not), (0, Some(WhyNot::TooFew)));
        pair.packets.iter_mut().for_each(|p| p.batch = super::super::Batch::SINGLE);
        method.took(Some(&pair));
        assert_eq!(method.pairs.len(), 1);
    }

    #[test]
    fn the_interval_is_1_645_standard_errors() {
        let mut method = Clusters::new(Budget { bytes: Bytes(200_000), time: Nanos::secs(10) });
        // one cluster, whose deviation is sqrt(2) 0.1
        method.pairs = [4.9, 5.1].map(|rate| (1000.0, 8000.0 / (rate * 1e6))).to_vec();
        let estimate = method.result();
        let half = 1.645 * 0.1e6;
        for (ours, exact) in [(estimate.low_bps, 5e6 - half), (estimate.high_bps, 5e6 + half)] {
            assert!((ours - exact).abs() < 1.0, "{estimate:?} {exact}");
        }
    }

    #[test]
    fn an_idle_link_gives_its_rate() {
        let budget = Budget { bytes: Bytes(200_000), time: Nanos::secs(10) };
        let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut Clusters::new(budget));
        assert!((estimate.value_bps.unwrap() / 5e6 - 1.0).abs() < 1e-4, "{estimate:?}");
        assert_eq!(estimate.bytes, Bytes(112_000));
    }
}
