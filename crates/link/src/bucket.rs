//! A token bucket, exact: tokens are counted in units of 1/8e9 byte, of which a rate of r bit/s brings exactly r in a
//! nanosecond, so that no rounding adds up.
//!
//! The state is the deficit against a full bucket at one time, as in the virtual scheduling form of the GCRA
//! (ITU-T I.371): no work between packets.

use pathcast_base::Nanos;

use crate::Bucket;

/// Units in a byte: bit/s times ns.
pub(crate) const BYTE: u64 = 8_000_000_000;

/// How many units a bucket lacked at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    at: u64,
    deficit: u64,
}

/// A bucket and its level, both after the packets that have started and after those that only will.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    rate: u64,
    burst: u64,
    started: Level,
    scheduled: Level,
}

impl Tokens {
    /// A full bucket.
    pub(crate) fn new(bucket: Bucket) -> Self {
        let full = Level::default();
        Tokens { rate: bucket.rate.0, burst: bucket.burst.0.saturating_mul(BYTE), started: full, scheduled: full }
    }

    /// Schedules a packet of `bytes` not before `from`; returns when it may start. One larger than the bucket starts
    /// when the bucket is full, and leaves a debt.
    pub(crate) fn schedule(&mut self, from: u64, bytes: u64) -> u64 {
        let cost = bytes.saturating_mul(BYTE);
        let start = self.ready(from, cost);
        self.take_scheduled(start, cost);
        start
    }

    /// When a packet of `bytes` could start, not before `from`.
    pub(crate) fn earliest(&self, from: u64, bytes: u64) -> u64 {
        self.ready(from, bytes.saturating_mul(BYTE))
    }

    fn ready(&self, from: u64, cost: u64) -> u64 {
        let excess = self.scheduled.deficit.saturating_sub(self.burst.saturating_sub(cost));
        from.max(self.scheduled.at.saturating_add(excess.div_ceil(self.rate)))
    }

    fn take_scheduled(&mut self, start: u64, cost: u64) {
        self.scheduled = taken(self.scheduled, self.rate, start, cost);
    }

    /// A scheduled packet starts.
    pub(crate) fn start(&mut self, at: u64, bytes: u64) {
        self.started = taken(self.started, self.rate, at, bytes.saturating_mul(BYTE));
    }

    /// Forgets what was scheduled and has not started, and changes rate and size from `now` on; the tokens stay.
    pub(crate) fn change(&mut self, now: u64, bucket: Bucket) {
        let deficit = taken(self.started, self.rate, now, 0).deficit;
        let burst = bucket.burst.0.saturating_mul(BYTE);
        let deficit = match self.burst.checked_sub(deficit) {
            Some(tokens) => burst.saturating_sub(tokens),
            None => burst.saturating_add(deficit - self.burst),
        };
        let level = Level { at: now, deficit };
        *self = Tokens { rate: bucket.rate.0, burst, started: level, scheduled: level };
    }

    /// The time that the tokens for `bytes` take to come.
    pub(crate) fn time_for(&self, bytes: u64) -> Nanos {
        pathcast_base::Rate(self.rate).time_for(bytes)
    }
}

fn taken(level: Level, rate: u64, at: u64, cost: u64) -> Level {
    let come = rate.saturating_mul(at - level.at);
    Level { at, deficit: level.deficit.saturating_sub(come).saturating_add(cost) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_base::{Bytes, Rate};
    use proptest::prelude::*;

    fn tokens(rate: u64, burst: u64) -> Tokens {
        Tokens::new(Bucket { rate: Rate(rate), burst: Bytes(burst) })
    }

    #[test]
    fn a_burst_passes_at_once_even_at_an_odd_rate() {
        let mut bucket = tokens(7_000_001, 15_000);
        assert!((0..10).all(|_| bucket.schedule(5, 1500) == 5));
        assert_eq!(bucket.schedule(5, 1500), 5 + Rate(7_000_001).time_for(1500).0);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_pays_its_debt() {
        let mut bucket = tokens(8_000_000, 1500);
        assert_eq!(bucket.schedule(0, 9000), 0);
        assert_eq!(bucket.schedule(0, 1500), 9_000_000);
    }

    #[test]
    fn the_tokens_survive_a_change() {
        let mut bucket = tokens(8_000_000, 3000);
        bucket.schedule(0, 2000);
        bucket.start(0, 2000);
        bucket.change(500_000, Bucket { rate: Rate(16_000_000), burst: Bytes(6000) });
        // 1500 bytes were there, 3000 lack at 2 bytes a microsecond
        assert_eq!(bucket.schedule(500_000, 4500), 2_000_000);
    }

    proptest! {
        /// In any interval no more than burst + rate * time leaves, and a backlogged bucket wastes nothing.
        #[test]
        fn conforms(rate in 1_000u64..10_000_000_000, sizes in prop::collection::vec(40u64..1500, 2..60)) {
            let mut bucket = tokens(rate, 3000);
            let mut sent = 0;
            for size in sizes {
                sent += size;
                let start = bucket.schedule(0, size);
                let come = |t: u64| u128::from(rate) * u128::from(t) + 3000 * u128::from(BYTE);
                prop_assert!(u128::from(sent * BYTE) <= come(start));
                prop_assert!(start == 0 || u128::from(sent * BYTE) > come(start - 1));
            }
        }
    }
}
