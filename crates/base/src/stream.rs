//! Seeded random streams. Logarithms and powers come from `libm`, so that every machine draws the same numbers.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A random stream that depends only on a seed and a name, so that adding one consumer never shifts another's draws.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream called `name` of the experiment seeded with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a, fixed here because a library's hash may change between releases and with it every result.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Stream::of([seed, hash, !seed, hash.rotate_left(31)])
    }

    fn of(words: [u64; 4]) -> Self {
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let mut pcg = Pcg64::from_seed(bytes);
        pcg.next_u64(); // the first output still shows the seed's structure
        Stream(pcg)
    }

    /// Goes on with other numbers, which depend on `seed` and on where the stream stands: streams that differed go on
    /// to differ.
    pub fn reseed(&mut self, seed: u64) {
        let (a, b) = (self.bits(), self.bits());
        *self = Stream::of([seed, a, !seed, b]);
    }

    /// Uniform over all `u64`.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// True with probability `p`; always for `p >= 1`, never for `p <= 0`. Draws one number in every case.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Pareto with the given shape (> 1 for a finite mean) and mean.
    pub fn pareto(&mut self, shape: f64, mean: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        scale * libm::pow(1.0 - self.uniform(), -1.0 / shape)
    }

    /// Standard normal (Box and Muller, one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: u32, mut draw: impl FnMut() -> f64) -> f64 {
        (0..n).map(|_| draw()).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn the_same_name_and_seed_draw_the_same_numbers_for_ever() {
        // These words are part of the contract: a change of them changes every stored result.
        let mut s = Stream::new(1, "bottleneck/loss");
        let drawn: Vec<u64> = (0..3).map(|_| s.bits()).collect();
        assert_eq!(drawn, PINNED);
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(1, "b").bits());
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(2, "a").bits());
    }
    const PINNED: [u64; 3] = [2_445_520_821_415_808_160, 10_200_627_429_599_537_035, 8_602_624_767_477_495_293];

    #[test]
    fn distributions_have_their_means() {
        let mut s = Stream::new(7, "means");
        let n = 200_000;
        assert!((mean(n, || s.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(n, || s.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!((mean(n, || s.pareto(2.5, 10.0)) - 10.0).abs() < 0.3);
        assert!(mean(n, || s.normal()).abs() < 0.01);
        assert!((mean(n, || s.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(n, || f64::from(u8::from(s.chance(0.2)))) - 0.2).abs() < 0.005);
    }

    #[test]
    fn seeded_anew_it_depends_on_the_seed_and_on_where_it_stood() {
        let after = |name: &str, drawn: u32, seed: u64| {
            let mut stream = Stream::new(1, name);
            (0..drawn).for_each(|_| _ = stream.bits());
            stream.reseed(seed);
            (stream.bits(), stream.bits())
        };
        let all = [after("a", 0, 1), after("a", 0, 2), after("a", 1, 1), after("b", 0, 1)];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])), "{all:?}");
        assert_eq!(after("a", 0, 1), all[0]);
    }

    #[test]
    fn certain_and_impossible_chances() {
        let mut s = Stream::new(3, "chance");
        assert!((0..1000).all(|_| s.chance(1.0) && !s.chance(0.0)));
    }
}
