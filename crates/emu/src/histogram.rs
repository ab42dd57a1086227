//! How far real releases lie from the modelled ones: a histogram of absolute errors, exact to a microsecond up to 1 ms.

use serde::Serialize;

const LINEAR: usize = 1024; // one bucket a microsecond, then one a quarter octave
const BUCKETS: usize = LINEAR + 4 * 20;

/// Counts of absolute errors.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    max_ns: u64,
}

/// A histogram in numbers [s].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Values counted.
    pub n: u64,
    /// Median [s].
    pub p50_s: f64,
    /// 99th percentile [s].
    pub p99_s: f64,
    /// Largest [s].
    pub max_s: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; BUCKETS].into(), max_ns: 0 }
    }
}

fn bucket(us: u64) -> usize {
    if us < LINEAR as u64 {
        return us as usize;
    }
    let octave = us.ilog2() - LINEAR.ilog2();
    let quarter = (us >> (us.ilog2() - 2)) & 3;
    (LINEAR + 4 * octave as usize + quarter as usize).min(BUCKETS - 1)
}

/// The largest value of a bucket [us].
fn upper(bucket: usize) -> u64 {
    if bucket < LINEAR {
        return bucket as u64 + 1;
    }
    let (octave, quarter) = ((bucket - LINEAR) / 4, (bucket - LINEAR) % 4);
    ((LINEAR as u64 * (5 + quarter as u64)) << octave) >> 2
}

impl Histogram {
    /// Counts one error [ns].
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket(ns / 1000)] += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Median, 99th percentile and maximum; each at most one bucket too high.
    pub fn summary(&self) -> Summary {
        let n: u64 = self.counts.iter().sum();
        let quantile = |q: f64| {
            let rank = (q * n as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            let at = self.counts.iter().position(|c| {
                seen += c;
                seen >= rank
            });
            at.map_or(0.0, |b| (upper(b) * 1000).min(self.max_ns) as f64 / 1e9)
        };
        Summary { n, p50_s: quantile(0.5), p99_s: quantile(0.99), max_s: self.max_ns as f64 / 1e9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for us in (0..5000).chain([1 << 20, (1 << 28) + 17]) {
            let b = bucket(us);
            assert!(us < upper(b) || (us == upper(b) && b >= LINEAR), "{us} {b}");
            assert!(b == 0 || us >= upper(b - 1), "{us} {b}");
        }
    }

    #[test]
    fn quantiles() {
        let mut h = Histogram::default();
        assert_eq!(h.summary(), Summary { n: 0, p50_s: 0.0, p99_s: 0.0, max_s: 0.0 });
        (1..=100).for_each(|i| h.record(i * 10_000));
        let s = h.summary();
        assert_eq!(s.n, 100);
        assert!((s.p50_s - 501e-6).abs() < 2e-6 && (s.p99_s - 991e-6).abs() < 2e-6 && s.max_s == 1e-3, "{s:?}");
    }
}
