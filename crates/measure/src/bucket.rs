//! A token bucket: so much a second in the mean, and some at once.

use pathcast_base::{Nanos, Rate};

/// Over so long a granted rate is a mean; a short train is as fast as the host.
const RATE_OVER: Nanos = Nanos::millis(50);
/// And this much is always allowed at once [IP bytes].
const BURST: u64 = 256_000;
/// Tokens are counted in this part of one, so that none is lost between two nanoseconds.
const ONE: i128 = 1_000_000_000;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    per_second: u64,
    /// When full, and now [1e-9 of a token].
    most: i128,
    left: i128,
    at: Nanos,
}

impl Bucket {
    /// Full: `at_once` tokens, and `per_second` more in time, up to `at_once`.
    pub fn new(per_second: u64, at_once: u64) -> Bucket {
        let most = i128::from(at_once) * ONE;
        Bucket { per_second, most, left: most, at: Nanos::ZERO }
    }

    /// IP bytes at `rate`, which is a mean over 50 ms.
    pub(crate) fn of_bytes(rate: Rate) -> Bucket {
        let per_second = rate.0 / 8;
        let over = u128::from(per_second) * u128::from(RATE_OVER.0) / 1_000_000_000;
        Bucket::new(per_second, BURST.max(over.try_into().unwrap_or(u64::MAX)))
    }

    /// Takes `amount` tokens at `at`, if there are as many.
    pub fn take(&mut self, at: Nanos, amount: u64) -> bool {
        self.take_over(at, amount, Nanos::ZERO)
    }

    /// Takes what goes out evenly from `at` on for as long as `lasting`.
    pub(crate) fn take_over(&mut self, at: Nanos, amount: u64, lasting: Nanos) -> bool {
        let left = (self.left + self.gain(at.saturating_sub(self.at))).min(self.most);
        let used = i128::from(amount) * ONE - self.gain(lasting);
        if used > left {
            return false;
        }
        self.left = (left - used).min(self.most);
        self.at = self.at.max(at + lasting);
        true
    }

    fn gain(&self, time: Nanos) -> i128 {
        i128::from(self.per_second) * i128::from(time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_no_more() {
        let mut bucket = Bucket::new(100, 10);
        let mut taken = |ms| (0..50).filter(|_| bucket.take(Nanos::millis(ms), 1)).count();
        assert_eq!([taken(1000), taken(1050), taken(1051), taken(9000)], [10, 5, 0, 10]);
    }

    #[test]
    fn what_is_as_slow_as_the_rate_takes_nothing() {
        let mut bucket = Bucket::of_bytes(Rate(8_000_000));
        for second in 0..100 {
            assert!(bucket.take_over(Nanos::secs(second), 1_000_000, Nanos::secs(1)));
        }
        let at = Nanos::secs(100);
        assert!(!bucket.take(at, BURST + 1) && bucket.take(at, BURST) && !bucket.take(at, 1));
        assert!(!bucket.take(Nanos::secs(50), 1), "time does not go back");
    }
}
