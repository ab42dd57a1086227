//! A host's clock: what it shows at a true time, and when it shows a time. Integers only, exact both ways.
//!
//! `local = EPOCH + offset + floor(true * (1 + skew))`, with the skew in parts per 10^12.

use pathcast_base::Nanos;
use pathcast_scenario::Host;

/// Parts of the skew.
const ONE: i64 = 1_000_000_000_000;

/// A clock that is wrong by an offset and goes wrong by a constant skew. It never goes back; where it is slow it shows some
/// nanoseconds twice, where it is fast it leaves some out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// What it shows at true time zero [ns].
    base: u64,
    /// How far it goes while `ONE` passes.
    pace: u64,
}

impl Clock {
    /// What a clock without offset shows at true time zero [ns]: 1000 h, so that one that is slow by as much shows a time.
    pub const EPOCH: Nanos = Nanos(3_600_000_000_000_000);

    /// A clock that shows `offset_ns` more than the true time at zero, at least `-EPOCH`, and goes faster by `skew_ppm`
    /// millionths, at most 10000 either way; the skew is rounded to a millionth of a millionth.
    ///
    /// # Panics
    /// If a value is out of range.
    pub fn new(offset_ns: i64, skew_ppm: f64) -> Clock {
        assert!(skew_ppm.abs() <= 10_000.0, "a skew of {skew_ppm} ppm");
        let base = Self::EPOCH.0.checked_add_signed(offset_ns).expect("an offset of at least -1000 h");
        Clock { base, pace: (ONE + (skew_ppm * 1e6).round() as i64) as u64 }
    }

    /// What it shows at a true time [ns].
    pub fn local(&self, time: Nanos) -> Nanos {
        if self.pace == ONE as u64 {
            return Nanos(self.base.saturating_add(time.0));
        }
        let passed = u128::from(time.0) * u128::from(self.pace) / ONE as u128;
        Nanos(u64::try_from(passed + u128::from(self.base)).unwrap_or(u64::MAX))
    }

    /// The first true time at which it shows `local` or more [ns]; zero if it does so from the start, and the end of time
    /// if that is too late to be told.
    pub fn time(&self, local: Nanos) -> Nanos {
        if local == Nanos::MAX {
            return Nanos::MAX;
        }
        let passed = local.0.saturating_sub(self.base);
        if self.pace == ONE as u64 {
            return Nanos(passed);
        }
        let time = (u128::from(passed) * ONE as u128).div_ceil(u128::from(self.pace));
        Nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new(0, 0.0)
    }
}

impl From<&Host> for Clock {
    fn from(host: &Host) -> Self {
        Clock::new(host.clock_offset_ns, host.clock_skew_ppm)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOURS_1000: u64 = Clock::EPOCH.0;

    #[test]
    fn by_hand() {
        assert_eq!(Clock::default().local(Nanos(7)), Nanos(HOURS_1000 + 7));
        assert_eq!(Clock::new(-5, 0.0).local(Nanos(7)), Nanos(HOURS_1000 + 2));
        assert_eq!(Clock::new(-5, 0.0).time(Nanos(HOURS_1000 + 2)), Nanos(7));
        // 50 ppm are 50 us a second
        assert_eq!(Clock::new(0, 50.0).local(Nanos::secs(1)), Nanos(HOURS_1000 + 1_000_050_000));
        assert_eq!(Clock::new(0, -50.0).local(Nanos::secs(1)), Nanos(HOURS_1000 + 999_950_000));
        // a time before the start has been since the start; the end of time never comes
        assert_eq!(Clock::new(0, 50.0).time(Nanos(0)), Nanos(0));
        assert_eq!(Clock::new(0, -50.0).time(Nanos::MAX), Nanos::MAX);
    }

    #[test]
    fn the_widest_values_over_1000_hours() {
        for (ppm, percent) in [(10_000.0, 101), (-10_000.0, 99)] {
            for offset in [-(HOURS_1000 as i64), 0, HOURS_1000 as i64] {
                let clock = Clock::new(offset, ppm);
                let end = Nanos(HOURS_1000);
                let shown = clock.local(end);
                let base = HOURS_1000.checked_add_signed(offset).unwrap();
                assert_eq!(shown, Nanos(base + HOURS_1000 / 100 * percent));
                assert_eq!(clock.time(shown), end);
            }
        }
    }

    #[test]
    fn a_slow_clock_repeats_and_a_fast_one_leaves_out() {
        let slow: Vec<u64> = (0..200).map(|t| Clock::new(0, -10_000.0).local(Nanos(t)).0 - HOURS_1000).collect();
        assert_eq!(slow.windows(2).filter(|w| w[0] == w[1]).count(), 2);
        let fast: Vec<u64> = (0..200).map(|t| Clock::new(0, 10_000.0).local(Nanos(t)).0 - HOURS_1000).collect();
        assert_eq!(fast.windows(2).filter(|w| w[0] + 2 == w[1]).count(), 1);
    }

    proptest! {
        #[test]
        fn there_and_back(
            offset in -(HOURS_1000 as i64)..=HOURS_1000 as i64,
            ppm in -10_000.0..=10_000.0f64,
            time in 0..=2 * HOURS_1000,
        ) {
            let clock = Clock::new(offset, ppm);
            let shown = clock.local(Nanos(time));
            prop_assert!(clock.local(Nanos(time + 1)) >= shown);
            // the first time at which it shows that, and not before
            let first = clock.time(shown);
            prop_assert!(first <= Nanos(time));
            prop_assert_eq!(clock.local(first), shown);
            if first.0 > 0 {
                prop_assert!(clock.local(Nanos(first.0 - 1)) < shown);
            }
            // a reading that is left out is passed by the next one
            let next = clock.time(Nanos(shown.0 + 1));
            prop_assert!(clock.local(next).0 - shown.0 <= 2 && next > first);
        }
    }
}
