//! Extra delay that is a function of time, so that a rescheduled packet may ask for any time again.

use pathcast_base::Stream;

use crate::Jitter;

/// Piecewise linear between knots at k * `step`; knot k is a hash of the key and k.
#[derive(Clone, Debug)]
pub(crate) struct Wander {
    key: u64,
    /// The key of knots before this one, where it was another.
    before: (u64, u64),
    jitter: Jitter,
    /// The segment asked for last: k, the knot at its begin, the knot at its end [ns].
    segment: (u64, u64, u64),
}

impl Wander {
    pub(crate) fn new(mut stream: Stream, jitter: Jitter) -> Self {
        let mut wander = Wander { key: stream.bits(), before: (0, 0), jitter, segment: (0, 0, 0) };
        wander.change(jitter);
        wander
    }

    pub(crate) fn change(&mut self, jitter: Jitter) {
        self.jitter = jitter;
        self.segment = (0, self.knot(0), self.knot(1));
    }

    /// Knots behind those that are known by `now` [ns] depend on `seed` too.
    pub(crate) fn reseed(&mut self, now: u64, seed: u64) {
        let known = self.segment.0.max(now / self.jitter.step.0) + 2;
        self.before = (known, self.key);
        self.key = hash(self.key ^ hash(seed));
    }

    /// Extra delay of a packet that leaves the serialiser at `time` [ns].
    pub(crate) fn at(&mut self, time: u64) -> u64 {
        let step = self.jitter.step.0;
        let k = time / step;
        if k != self.segment.0 {
            self.segment = (k, self.knot(k), self.knot(k + 1));
        }
        let (_, begin, end) = self.segment;
        let into = time - k * step;
        let part = |height: u64| (u128::from(height) * u128::from(into) / u128::from(step)) as u64;
        if end >= begin { begin + part(end - begin) } else { begin - part(begin - end) }
    }

    /// Uniform in 0..=amplitude.
    fn knot(&self, k: u64) -> u64 {
        let key = if k < self.before.0 { self.before.1 } else { self.key };
        let z = hash(key.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        ((u128::from(z) * (u128::from(self.jitter.amplitude.0) + 1)) >> 64) as u64
    }
}

/// The hash of splitmix64.
fn hash(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_base::Nanos;

    fn wander(seed: u64) -> Wander {
        let jitter = Jitter { amplitude: Nanos::millis(5), step: Nanos::millis(20) };
        Wander::new(Stream::new(seed, "test/jitter"), jitter)
    }

    #[test]
    fn knots_are_uniform_and_segments_straight() {
        let mut w = wander(1);
        let n = 20_000;
        let knots: Vec<u64> = (0..n).map(|k| w.at(k * 20_000_000)).collect();
        assert!(knots.iter().all(|&d| d <= 5_000_000));
        let mean = knots.iter().sum::<u64>() as f64 / n as f64;
        assert!((mean - 2_500_000.0).abs() < 40_000.0, "{mean}");
        let below = knots.iter().filter(|&&d| d < 500_000).count() as f64 / n as f64;
        assert!((below - 0.1).abs() < 0.01, "{below}");
        let middle = w.at(30_000_000);
        assert!(middle.abs_diff((knots[1] + knots[2]) / 2) <= 1);
    }

    #[test]
    fn seeded_anew_it_goes_on_from_the_knots_that_are_known() {
        let (mut one, mut two) = (wander(1), wander(1));
        assert_eq!(one.at(50_000_000), two.at(50_000_000));
        one.reseed(50_000_000, 7);
        // knots 2 and 3 are known at 50 ms
        assert!((0..60).all(|ms| one.at(ms * 1_000_000) == two.at(ms * 1_000_000)));
        assert!((4..40).all(|k| one.at(k * 20_000_000) != two.at(k * 20_000_000)));
        let mut again = wander(1);
        again.reseed(50_000_000, 7);
        assert!((0..400).all(|ms| one.at(ms * 1_000_000) == again.at(ms * 1_000_000)));
    }

    #[test]
    fn looking_back_gives_the_same_and_seeds_differ() {
        let mut w = wander(1);
        let first = w.at(123_456_789);
        w.at(9_999_999_999);
        assert_eq!(w.at(123_456_789), first);
        assert_ne!(wander(2).at(123_456_789), first);
    }
}
