//! Random early detection: S. Floyd and V. Jacobson, "Random early detection gateways for congestion avoidance",
//! IEEE/ACM ToN 1(4), 1993, figure 2; with the gentle ramp of Floyd's recommendation of 2000.
//!
//! Their symbols: avg = `average`, w_q = `weight`, min_th = `min`, max_th = `max`, max_p = `probability`,
//! count = `count`, s = `typical`, m = the packets that could have left while the line was idle.

use pathcast_base::Stream;

use crate::Red;

/// The average queue and the spacing of drops. It outlives a change of the parameters.
#[derive(Clone, Debug)]
pub(crate) struct Early {
    average: f64,
    /// Packets since the last drop; -1: below `min`.
    count: i64,
    aged_until: u64,
    stream: Stream,
}

impl Early {
    pub(crate) fn new(stream: Stream) -> Self {
        Early { average: 0.0, count: -1, aged_until: 0, stream }
    }

    pub(crate) fn reseed(&mut self, seed: u64) {
        self.stream.reseed(seed);
    }

    /// Whether a packet that arrives at `now` [ns] is dropped early, or marked if it can be; `None`: it passes,
    /// `Some(true)`: the average is so high that it is dropped in any case. `waiting`: packets in the queue; `idle_since`: the
    /// line is idle since then [ns]; `typical`: transmission time of a 1500-byte packet [ns].
    pub(crate) fn drops(
        &mut self,
        red: &Red,
        now: u64,
        waiting: u32,
        idle_since: Option<u64>,
        typical: u64,
    ) -> Option<bool> {
        match idle_since {
            None => self.average += red.weight * (f64::from(waiting) - self.average),
            Some(since) => {
                // a packet dropped on an idle line must not age the same time twice
                let idle = now - since.max(self.aged_until).min(now);
                let m = idle as f64 / typical.max(1) as f64;
                self.average *= libm::pow(1.0 - red.weight, m);
                self.aged_until = now;
            }
        }
        if self.average < red.min {
            self.count = -1;
            return None;
        }
        self.count += 1;
        let base = if self.average < red.max {
            red.probability * (self.average - red.min) / (red.max - red.min)
        } else {
            red.probability + (1.0 - red.probability) * (self.average - red.max) / red.max
        };
        // uniform gaps between drops instead of geometric ones: p_a = p_b / (1 - count * p_b)
        let left = 1.0 - self.count as f64 * base;
        let forced = self.average >= 2.0 * red.max;
        let drop = forced || left <= 0.0 || self.stream.chance(base / left);
        if drop {
            self.count = 0;
        }
        drop.then_some(forced)
    }

    #[cfg(test)]
    pub(crate) fn average(&mut self) -> &mut f64 {
        &mut self.average
    }

    /// A full queue dropped a packet.
    pub(crate) fn overflowed(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Red = Red { min: 5.0, max: 15.0, limit: 60, probability: 0.1, weight: 0.5, ecn: false };

    fn early() -> Early {
        Early::new(Stream::new(1, "test/red"))
    }

    /// Share of packets dropped while the queue stands at `waiting`, and the largest gap between two drops.
    fn standing(red: &Red, waiting: u32) -> (f64, u32) {
        let mut early = early();
        let (n, mut dropped, mut gap, mut widest) = (100_000, 0, 0, 0);
        for i in 0..n + 100 {
            let drop = early.drops(red, i, waiting, None, 1).is_some();
            if i >= 100 {
                dropped += u32::from(drop);
                gap = if drop { 0 } else { gap + 1 };
                widest = widest.max(gap);
            }
        }
        (f64::from(dropped) / n as f64, widest)
    }

    #[test]
    fn drop_rate_follows_the_thresholds() {
        assert_eq!(standing(&RED, 4).0, 0.0);
        // p_b = 0.05 at 10 packets; count starts at 1, so a drop comes after 1 to 1/p_b - 1 packets, all as likely
        let (rate, widest) = standing(&RED, 10);
        assert!((rate - 0.1).abs() < 0.002, "{rate}");
        assert!(widest <= 19, "{widest}");
        let (rate, _) = standing(&RED, 20);
        assert!((0.4..1.0).contains(&rate), "{rate}"); // p_b = 0.1 + 0.9/3
        assert_eq!(standing(&RED, 30).0, 1.0);
    }

    #[test]
    fn far_above_the_thresholds_a_drop_is_forced() {
        let mut early = early();
        let verdicts =
            |early: &mut Early, waiting| (0..100).map(|i| early.drops(&RED, i, waiting, None, 1)).collect::<Vec<_>>();
        assert!(verdicts(&mut early, 29).iter().all(|verdict| *verdict != Some(true)));
        assert_eq!(verdicts(&mut early, 31).last(), Some(&Some(true)));
    }

    #[test]
    fn an_idle_line_ages_the_average_once() {
        let mut early = early();
        early.average = 16.0;
        early.drops(&RED, 1000, 0, Some(980), 10);
        assert!((early.average - 4.0).abs() < 1e-9);
        early.drops(&RED, 1010, 0, Some(980), 10);
        assert!((early.average - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_average_filters_bursts() {
        let slow = Red { weight: 0.002, ..RED };
        let mut early = early();
        assert!((0..50).all(|i| early.drops(&slow, i, i as u32, None, 1).is_none()));
    }
}
