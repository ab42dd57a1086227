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
        let (rfc, linux) = (config(Preset::Rfc), config(Preset::Linux));
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto(&rfc), 1_000_000_000);
        rtt.sample(400_000, 0, 10, &rfc);
        assert_eq!((rtt.srtt_us(), rtt.var_us(&rfc)), (400_000, 200_000));
        assert_eq!(rtt.rto(&rfc), 1_200_000_000);
        for round in 0..100 {
            rtt.sample(400_000, 11 * round, 11 * round + 10, &linux);
        }
        assert_eq!(rtt.srtt_us(), 400_000);
        assert_eq!(rtt.rto(&rfc), 1_000_000_000);
        let rto = rtt.rto(&linux);
        assert!((600_000_000..=601_000_000).contains(&rto), "{rto}");
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
