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

    /// Takes `amount` tokens at `at`, if there are as many.
    pub fn take(&mut self, at: Nanos, amount: u64) -> bool {
        self.pass(at, 0);
        let left = self.left - i128::from(amount) * ONE;
        if left >= 0 {
            self.left = left;
        }
        left >= 0
    }

    /// Time goes on to `at`, while so much goes out evenly [1e-9 of a token].
    fn pass(&mut self, at: Nanos, out: i128) {
        let gain = i128::from(self.per_second) * i128::from(at.saturating_sub(self.at).0);
        self.left = (self.left + gain - out).min(self.most);
        self.at = self.at.max(at);
    }
}

/// What a session is granted of IP bytes, at a rate that is a mean over 50 ms.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    bucket: Bucket,
    /// What goes out evenly: until when, and how much of it has not yet [1e-9 of a token].
    going: Vec<(Nanos, i128)>,
}

impl Grant {
    pub fn new(rate: Rate) -> Grant {
        let per_second = rate.0 / 8;
        let over = u128::from(per_second) * u128::from(RATE_OVER.0) / 1_000_000_000;
        let at_once = BURST.max(over.try_into().unwrap_or(u64::MAX));
        Grant { bucket: Bucket::new(per_second, at_once), going: Vec::new() }
    }

    /// Takes `amount` bytes at `at`, if there are as many.
    pub fn take(&mut self, at: Nanos, amount: u64) -> bool {
        self.take_over(at, amount, Nanos::ZERO)
    }

    /// Takes what goes out evenly from `at` on for as long as `lasting`, beside what else does then.
    pub fn take_over(&mut self, at: Nanos, amount: u64, lasting: Nanos) -> bool {
        self.pass(at);
        let amount = i128::from(amount) * ONE;
        let mut then = self.clone();
        match lasting {
            Nanos::ZERO => then.bucket.left -= amount,
            _ => then.going.push((then.bucket.at + lasting, amount)),
        }
        let next = then.clone();
        // none of them may find it empty
        while then.bucket.left >= 0
            && let Some(end) = then.ends()
        {
            then.pass(end);
        }
        let holds = then.bucket.left >= 0;
        if holds {
            *self = next;
        }
        holds
    }

    /// When the first of those that go out has.
    fn ends(&self) -> Option<Nanos> {
        self.going.iter().map(|going| going.0).min()
    }

    /// Time goes on to `at`.
    fn pass(&mut self, at: Nanos) {
        while self.bucket.at < at {
            let until = self.ends().map_or(at, |end| end.min(at));
            let time = until.saturating_sub(self.bucket.at);
            let mut out = 0;
            for (end, left) in &mut self.going {
                let part = *left * i128::from(time.0) / i128::from(end.saturating_sub(self.bucket.at).0);
                *left -= part;
                out += part;
            }
            self.bucket.pass(until, out);
            self.going.retain(|&(end, _)| end > until);
        }
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
        let mut bucket = Grant::new(Rate(8_000_000));
        for second in 0..100 {
            assert!(bucket.take_over(Nanos::secs(second), 1_000_000, Nanos::secs(1)));
        }
        let at = Nanos::secs(100);
        assert!(!bucket.take(at, BURST + 1) && bucket.take(at, BURST) && !bucket.take(at, 1));
        assert!(!bucket.take(Nanos::secs(50), 1), "time does not go back");
    }

    /// As the paths of a session send theirs.
    #[test]
    fn what_goes_out_at_once_has_the_rate_together() {
        let (at, second) = (Nanos::secs(9), Nanos::secs(1));
        let mut bucket = Grant::new(Rate(8_000_000));
        assert!(bucket.take_over(at, 1_000_000, second));
        assert!(!bucket.take_over(at, 1_000_000, second), "no second is granted twice");
        assert!(!bucket.take_over(at + Nanos::millis(500), 1_000_000, second));
        assert!(bucket.take(at, BURST) && !bucket.take(at, 1), "it takes no more than its time brings");
        // a slow one leaves the rest to others
        let mut bucket = Grant::new(Rate(8_000_000));
        assert!(bucket.take_over(at, 100_000, second));
        assert!(!bucket.take(at, BURST + 1), "what is to come is not there yet");
        assert!(bucket.take_over(at, 900_000, second) && bucket.take(at, BURST) && !bucket.take(at, 1));
        // nor may one at once take what another goes on to need
        let mut bucket = Grant::new(Rate(8_000_000));
        assert!(bucket.take_over(at, 1_000_000 + BURST, second) && !bucket.take(at, BURST));
        assert!(!bucket.take(at + Nanos::millis(900), BURST) && bucket.take(at + Nanos::secs(2), BURST));
    }
}
