//! Smoothed RTT and retransmission timeout: RFC 6298 with the gains applied per sample, and Linux's variant of it, in
//! which the least timeout bounds the variation and the variation decays once per window.

use super::config::Config;

/// The estimate of one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// 8 times the smoothed RTT [us].
    srtt8: u32,
    /// 4 times the mean deviation [us].
    mdev4: u32,
    /// Linux: the largest of this window and the variation in force, times 4 [us].
    most4: u32,
    var4: u32,
    /// The window ends when this segment is acknowledged.
    window_end: u64,
    /// Least sample [us]; 0 before the first.
    pub min_us: u32,
}

impl Rtt {
    pub(crate) fn srtt_us(&self) -> u32 {
        self.srtt8 >> 3
    }

    pub(crate) fn var_us(&self, config: &Config) -> u32 {
        if config.rto_linux { self.var4 >> 2 } else { self.mdev4 >> 2 }
    }

    /// A sample; `una` and `nxt` are segments.
    pub(crate) fn sample(&mut self, rtt_us: u32, una: u64, nxt: u64, config: &Config) {
        let rtt = rtt_us.clamp(1, 1 << 27);
        let least4 = (config.min_rto / 1000).min(1 << 30) as u32;
        if self.srtt8 == 0 {
            self.srtt8 = rtt << 3;
            self.mdev4 = rtt << 1;
            self.var4 = self.mdev4.max(least4);
            self.most4 = self.var4;
            self.window_end = nxt;
        } else {
            let srtt = self.srtt8 >> 3;
            let (below, off) = (rtt < srtt, rtt.abs_diff(srtt));
            self.srtt8 = (self.srtt8 + rtt - srtt).max(1);
            let mdev = self.mdev4 >> 2;
            if config.rto_linux && below && off > mdev {
                self.mdev4 += (off - mdev) >> 3; // a falling RTT should not raise the timeout
            } else {
                self.mdev4 = self.mdev4 + off - mdev;
            }
            if self.mdev4 > self.most4 {
                self.most4 = self.mdev4;
                self.var4 = self.var4.max(self.most4);
            }
            if una > self.window_end {
                self.var4 -= self.var4.saturating_sub(self.most4) >> 2;
                self.window_end = nxt;
                self.most4 = least4;
            }
        }
        self.min_us = if self.min_us == 0 { rtt } else { self.min_us.min(rtt) };
    }

    /// The timeout [ns], before any backoff.
    pub(crate) fn rto(&self, config: &Config) -> u64 {
        if self.srtt8 == 0 {
            return config.initial_rto;
        }
        let srtt = u64::from(self.srtt8 >> 3) * 1000;
        let rto = if config.rto_linux {
            srtt + u64::from(self.var4) * 1000
        } else {
            (srtt + u64::from(self.mdev4) * 1000).max(config.min_rto)
        };
        rto.min(config.max_rto)
    }
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::{Preset, Tcp};

    use super::*;

    fn config(preset: Preset) -> Config {
        Config::new(&Tcp { preset, ..Tcp::default() })
    }

    #[test]
    fn the_first_sample_and_a_steady_one() {
        let rfc = config(Preset::Rfc);
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto(&rfc), 1_000_000_000);
        rtt.sample(400_000, 0, 10, &rfc);
        assert_eq!((rtt.srtt_us(), rtt.var_us(&rfc)), (400_000, 200_000));
        assert_eq!(rtt.rto(&rfc), 1_200_000_000);
        for _ in 0..100 {
            rtt.sample(400_000, 0, 10, &rfc);
        }
        assert_eq!((rtt.srtt_us(), rtt.rto(&rfc)), (400_000, 1_000_000_000));
    }

    /// The part of the variation above the least timeout of 200 ms falls to three quarters a window, whatever the number of
    /// samples in it: E = 2 RTT - 200 ms after the first sample, E (3/4)^n after n windows. E is 10 * 4^8 us here: exact.
    #[test]
    fn linuxs_variation_above_the_least_timeout_falls_by_a_quarter_a_window() {
        let linux = config(Preset::Linux);
        let mut rtt = Rtt::default();
        let us = (200_000 + 10 * (1 << 16)) / 2;
        rtt.sample(us, 0, 9, &linux); // this window ends with segment 9
        let rto = |excess: u64| (u64::from(us) + 200_000 + excess) * 1000;
        let excess = |n: u64| 10 * 3u64.pow(n as u32) * 4u64.pow(8 - n as u32);
        assert_eq!(rtt.rto(&linux), rto(excess(0)));
        for _ in 0..100 {
            rtt.sample(us, 9, 19, &linux); // segment 9 itself is not acknowledged yet
        }
        rtt.sample(us, 10, 19, &linux); // the first window's largest variation is its own: no decay
        assert_eq!(rtt.rto(&linux), rto(excess(0)));
        for n in 1..=8 {
            for _ in 0..50 {
                rtt.sample(us, 10 * n + 9, 10 * n + 19, &linux);
            }
            assert_eq!(rtt.rto(&linux), rto(excess(n - 1)), "within window {n}");
            rtt.sample(us, 10 * n + 10, 10 * n + 19, &linux);
            assert_eq!(rtt.rto(&linux), rto(excess(n)), "window {n}");
            assert_eq!(u64::from(rtt.var_us(&linux)), (200_000 + excess(n)) / 4);
        }
        assert_eq!(rtt.srtt_us(), us);
    }

    /// What a window's samples varied by, not the least timeout, is what the variation falls to when it ends.
    #[test]
    fn linuxs_variation_falls_to_the_largest_of_the_window() {
        let linux = config(Preset::Linux);
        let mut rtt = Rtt::default();
        rtt.sample(800_000, 0, 0, &linux); // 1600 ms
        (0..100).for_each(|_| rtt.sample(800_000, 0, 0, &linux)); // the mean deviation is gone but for 3 us of rounding
        rtt.sample(800_000, 1, 2, &linux);
        rtt.sample(1_200_000, 2, 2, &linux); // deviation 400 ms, 1/4 of which is in the mean; times 4
        rtt.sample(1_200_000, 3, 4, &linux); // 350 ms from 850: 3/4 of 400 and 350
        let largest = 3 + 400_000 + 350_000 - 100_000;
        assert_eq!(rtt.rto(&linux), (893_750 + 1_600_000 - (1_600_000 - largest) / 4) * 1000);
    }

    #[test]
    fn linuxs_variation_rises_at_once() {
        let linux = config(Preset::Linux);
        let mut rtt = Rtt::default();
        (0..100).for_each(|_| rtt.sample(100_000, 0, 0, &linux));
        rtt.sample(100_000, 1, 9, &linux); // in this window the largest counts from the least timeout on
        assert_eq!(rtt.rto(&linux), 300_000_000);
        rtt.sample(500_000, 2, 9, &linux);
        assert_eq!(rtt.rto(&linux), (150_000 + 3 + 400_000) * 1000);
    }

    /// A sample below the mean by more than the deviation counts an eighth of a rise (Linux, against a timeout that grows
    /// while the RTT falls); RFC 6298 has no such rule.
    #[test]
    fn a_falling_rtt_hardly_raises_linuxs_deviation() {
        for (us, linux_mdev4, rfc_mdev4) in
            [(180_000, 3 + 80_000, 3 + 80_000), (20_000, 3 + 10_000, 3 + 80_000), (100_000, 3, 3)]
        {
            for (preset, mdev4) in [(Preset::Linux, linux_mdev4), (Preset::Rfc, rfc_mdev4)] {
                let config = config(preset);
                let mut rtt = Rtt::default();
                (0..100).for_each(|_| rtt.sample(100_000, 0, 0, &config));
                rtt.sample(us, 0, 0, &config);
                assert_eq!(rtt.mdev4, mdev4, "{preset:?} after {us} us");
            }
        }
        // below the mean, but by less than the deviation: as RFC 6298 has it
        let mut rtt = Rtt::default();
        rtt.sample(100_000, 0, 0, &config(Preset::Linux)); // mean deviation 50 ms
        rtt.sample(70_000, 0, 0, &config(Preset::Linux));
        assert_eq!(rtt.mdev4, 200_000 - 50_000 + 30_000);
    }

    #[test]
    fn the_timeout_has_a_largest_value_and_the_least_rtt_is_kept() {
        for preset in [Preset::Linux, Preset::Rfc] {
            let config = config(preset);
            let mut rtt = Rtt::default();
            rtt.sample(100_000_000, 0, 0, &config);
            assert_eq!(rtt.rto(&config), 120_000_000_000, "{preset:?}");
            rtt.sample(0, 0, 0, &config);
            assert_eq!(rtt.min_us, 1);
            rtt.sample(5, 0, 0, &config);
            assert_eq!(rtt.min_us, 1);
        }
    }

    #[test]
    fn gains_are_an_eighth_and_a_quarter() {
        let rfc = config(Preset::Rfc);
        let mut rtt = Rtt::default();
        rtt.sample(80_000, 0, 1, &rfc);
        rtt.sample(160_000, 1, 2, &rfc);
        assert_eq!(rtt.srtt_us(), 90_000);
        assert_eq!(rtt.var_us(&rfc), 30_000 + 20_000);
        assert_eq!(rtt.min_us, 80_000);
    }
}
