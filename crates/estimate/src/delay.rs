//! One-way delay, and how long to wait for an answer.
//!
//! PathTester's wait scales the whole of a round trip with the size of the probe: `Timeout(s) = Timeout * s / 1400`. The
//! propagation is scaled too, so that small probes time out for distance, and only late ones count: its open problem 2. Here
//! the round trip is `RTT(s) = a + b s`: a = distance, b = what a byte costs on all links. The line is fitted to the smallest
//! round trip of each size, the variation above it is RFC 6298's RTTVAR, and the wait is `a + b s + 4 RTTVAR`, doubled for
//! every wait in vain. The delay itself never depends on the wait.

use std::collections::BTreeMap;

use pathcast_base::Nanos;

use super::clock::Offset;
use super::stat;

/// One-way delay over a number of packets [ns].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneWay {
    /// The smallest: propagation and transmission without a queue.
    pub minimum: f64,
    /// The middle one.
    pub median: f64,
    /// 95 of 100 are below.
    pub p95: f64,
    /// The truth is within so much of each of them: the offset's error. None: the clocks are not compared, and the delays mean
    /// nothing but by their differences.
    pub error: Option<u64>,
    /// How many packets.
    pub count: usize,
}

/// Sums up delays [ns] (arrival by the other clock less departure by ours); none without one.
pub fn one_way(delays: &[i64], offset: Option<Offset>) -> Option<OneWay> {
    let theta = offset.map_or(0, |o| o.theta);
    let own: Vec<f64> = delays.iter().map(|&d| (i128::from(d) - i128::from(theta)) as f64).collect();
    Some(OneWay {
        minimum: own.iter().copied().reduce(f64::min)?,
        median: stat::median(&own)?,
        p95: stat::quantile(&own, 0.95)?,
        error: offset.map(|o| o.error),
        count: own.len(),
    })
}

/// The least that the wait adds to the line: RFC 6298's clock granularity G [ns].
const GRANULARITY: f64 = 1e6;

/// The wait before anything is known: RFC 6298, section 2.1.
const FIRST: Nanos = Nanos::secs(1);

/// The longest wait.
const LONGEST: Nanos = Nanos::secs(60);

/// Round trips by size, and the wait that follows from them.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// The smallest round trip of each size [ns], and the line through them.
    least: BTreeMap<u16, f64>,
    fitted: Option<(f64, f64)>,
    /// RTTVAR: how much a round trip differs from the line, smoothed [ns].
    variation: Option<f64>,
    /// Waits in vain in a row.
    vain: u32,
}

impl Waits {
    /// A packet of `size` IP bytes was answered after `rtt`, in time or late.
    pub fn answered(&mut self, size: u16, rtt: Nanos) {
        let rtt = rtt.0 as f64;
        let least = self.least.entry(size).or_insert(rtt);
        *least = least.min(rtt);
        self.fitted = self.fit_anew();
        let above = (rtt - self.line(size).unwrap_or(rtt)).abs();
        self.variation = Some(self.variation.map_or(rtt / 2.0, |old| 0.75 * old + 0.25 * above));
        self.vain = 0;
    }

    /// A wait was over before the answer came.
    pub fn in_vain(&mut self) {
        self.vain += 1;
    }

    /// (a [ns], b [ns a byte]); with one size only, b = 0.
    pub fn fit(&self) -> Option<(f64, f64)> {
        self.fitted
    }

    fn fit_anew(&self) -> Option<(f64, f64)> {
        let points: Vec<(f64, f64)> = self.least.iter().map(|(&size, &rtt)| (f64::from(size), rtt)).collect();
        let smallest = points.iter().map(|p| p.1).reduce(f64::min)?;
        match stat::line(&points) {
            // a larger packet is not faster, nor the distance negative: then it is noise
            Some((a, b)) if b > 0.0 && a >= 0.0 => Some((a, b)),
            Some((_, b)) if b > 0.0 => {
                Some((0.0, points.iter().map(|p| p.1).sum::<f64>() / points.iter().map(|p| p.0).sum::<f64>()))
            }
            _ => Some((smallest, 0.0)),
        }
    }

    /// The round trip of a packet of this size without queues [ns].
    pub fn line(&self, size: u16) -> Option<f64> {
        self.fit().map(|(a, b)| a + b * f64::from(size))
    }

    /// How long to wait for the answer to a packet of this size.
    pub fn wait(&self, size: u16) -> Nanos {
        let wait = match (self.line(size), self.variation) {
            (Some(line), Some(variation)) => Nanos((line + (4.0 * variation).max(GRANULARITY)) as u64),
            _ => FIRST,
        };
        Nanos(wait.0.saturating_mul(1 << self.vain.min(20))).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u16; 4] = [100, 500, 900, 1400];

    /// 40 ms of distance, 100 kbit/s there and back: 160 us a byte.
    fn rtt(size: u16) -> Nanos {
        Nanos::millis(40) + Nanos::micros(160) * u64::from(size)
    }

    #[test]
    fn the_line_is_found_and_small_packets_are_waited_for_long_enough() {
        let mut waits = Waits::default();
        assert_eq!(waits.wait(100), FIRST);
        for i in 0..50u64 {
            // queues come and go
            let queue = Nanos::micros((i * 7919) % 3000 * u64::from(i % 3 != 0));
            waits.answered(SIZES[i as usize % 4], rtt(SIZES[i as usize % 4]) + queue);
        }
        let (a, b) = waits.fit().unwrap();
        assert!((a - 40e6).abs() < 1e5 && (b - 160e3).abs() < 500.0, "{a} {b}");
        for size in SIZES {
            assert!(waits.wait(size) >= rtt(size) + Nanos::millis(1), "{size}");
            assert!(waits.wait(size) <= rtt(size) + Nanos::millis(15), "{size} {:?}", waits.wait(size));
        }
        // the paper's own scaling would have waited 264 ms * 100 / 1400 = 19 ms for 56 ms
        assert!(rtt(100) > Nanos(rtt(1400).0 * 100 / 1400) * 2);
    }

    #[test]
    fn the_wait_backs_off_and_recovers() {
        let mut waits = Waits::default();
        (0..20).for_each(|_| waits.answered(1400, Nanos::millis(50)));
        let wait = waits.wait(1400);
        assert!(wait <= Nanos::millis(52), "{wait:?}");
        waits.in_vain();
        waits.in_vain();
        assert_eq!(waits.wait(1400), wait * 4);
        (0..100).for_each(|_| waits.in_vain());
        assert_eq!(waits.wait(1400), LONGEST);
        waits.answered(1400, Nanos::millis(50));
        assert!(waits.wait(1400) <= wait);
    }

    /// RFC 6298: RTTVAR begins at half of the first round trip, then three quarters of it and one of what is above the line.
    #[test]
    fn the_variation_is_smoothed() {
        let mut waits = Waits::default();
        waits.answered(1400, Nanos::millis(80));
        assert_eq!(waits.wait(1400), Nanos::millis(80 + 4 * 40));
        waits.answered(1400, Nanos::millis(120));
        assert_eq!(waits.wait(1400), Nanos::millis(80 + 4 * (30 + 10)));
        waits.answered(1400, Nanos::millis(80));
        assert_eq!(waits.wait(1400), Nanos::millis(80 + 4 * 30));
    }

    #[test]
    fn noise_does_not_make_large_packets_faster() {
        let mut waits = Waits::default();
        waits.answered(100, Nanos::micros(900));
        waits.answered(1400, Nanos::micros(800));
        assert_eq!(waits.fit(), Some((800_000.0, 0.0)));
        let mut steep = Waits::default();
        steep.answered(100, Nanos::micros(1));
        steep.answered(1400, Nanos::micros(1000));
        assert_eq!(steep.fit().unwrap().0, 0.0);
    }

    #[test]
    fn delays_carry_the_error_of_the_offset() {
        let offset = Offset { theta: 1_000_000, error: 300 };
        let d = one_way(&[1_005_000, 1_004_000, 1_009_000], Some(offset)).unwrap();
        assert_eq!((d.minimum, d.median, d.error, d.count), (4000.0, 5000.0, Some(300), 3));
        assert_eq!(one_way(&[5, 7], None).unwrap().error, None);
        assert_eq!(one_way(&[], None), None);
    }
}
