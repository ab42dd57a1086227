//! Offset and skew of the receiver's clock against the sender's.
//!
//! Offset: NTP's four stamps (RFC 5905, section 8). t1 = request leaves, by our clock; t2 = it arrives, t3 = the answer
//! leaves, by the other clock; t4 = it arrives, by ours: theta = ((t2 - t1) + (t3 - t4)) / 2, and the truth lies within
//! delta/2 of it, delta = (t4 - t1) - (t3 - t2), whatever the path: how the round trip divides into there and back cannot be
//! seen.
//!
//! Skew: of all lines under the points (departure, delay) the one that minimises the sum of the distances (Moon, Skelly and
//! Towsley, INFOCOM 1999) carries the segment of the lower convex hull over the mean departure (Zhang, Liu and Xia, "Clock
//! synchronization algorithms for network measurements", INFOCOM 2002). One pass, O(n).

/// The four stamps of one exchange [ns].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request leaves, our clock.
    pub t1: u64,
    /// The request arrives, the other clock.
    pub t2: u64,
    /// The answer leaves, the other clock.
    pub t3: u64,
    /// The answer arrives, our clock.
    pub t4: u64,
}

/// The other clock less ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Other less ours [ns].
    pub theta: i64,
    /// The truth is within so much of it [ns].
    pub error: u64,
}

impl Exchange {
    /// Round trip without the time at the other end [ns]; none if the stamps contradict each other.
    pub fn round_trip(&self) -> Option<u64> {
        self.t4.checked_sub(self.t1)?.checked_sub(self.t3.checked_sub(self.t2)?)
    }

    /// What it says of the offset.
    pub fn offset(&self) -> Option<Offset> {
        let there = i128::from(self.t2) - i128::from(self.t1);
        let back = i128::from(self.t3) - i128::from(self.t4);
        let theta = i64::try_from((there + back) / 2).ok()?;
        // half a nanosecond was perhaps cut off
        Some(Offset { theta, error: self.round_trip()?.div_ceil(2) + 1 })
    }
}

/// The offset by the exchange with the smallest round trip.
pub fn offset(exchanges: &[Exchange]) -> Option<Offset> {
    let best = exchanges.iter().filter(|e| e.round_trip().is_some()).min_by_key(|e| e.round_trip())?;
    best.offset()
}

/// A line under all delays: what a packet's delay would be without queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Time at which `delay` holds, sender's clock [ns].
    pub at: u64,
    /// [ns], offset of the clocks included.
    pub delay: f64,
    /// The other clock's rate less ours: 1e-6 is one part in a million.
    pub skew: f64,
}

impl Floor {
    /// The line at a time of the sender's clock [ns].
    pub fn delay_at(&self, sent: u64) -> f64 {
        self.delay + self.skew * (sent as f64 - self.at as f64)
    }
}

/// The best line under points (departure, delay) [ns], in any order. None without two departures; with the
/// mean exactly on a corner of the hull the segment before it.
pub fn floor(points: &[(u64, i64)]) -> Option<Floor> {
    let mut points = points.to_vec();
    points.sort_by_key(|p| p.0);
    let origin = points.first()?.0;
    let mean = points.iter().map(|&(t, _)| (t - origin) as f64).sum::<f64>() / points.len() as f64;
    let mut hull: Vec<(i128, i128)> = Vec::new();
    for &(sent, delay) in &points {
        let p = (i128::from(sent - origin), i128::from(delay));
        if let Some(last) = hull.last_mut().filter(|last| last.0 == p.0) {
            if p.1 >= last.1 {
                continue;
            }
            hull.pop();
        }
        while let [.., a, b] = hull[..] {
            // b stays only if it lies below the line from a to p
            if (b.1 - a.1) * (p.0 - a.0) < (p.1 - a.1) * (b.0 - a.0) {
                break;
            }
            hull.pop();
        }
        hull.push(p);
    }
    let over = hull.windows(2).find(|w| w[1].0 as f64 >= mean)?;
    let skew = (over[1].1 - over[0].1) as f64 / (over[1].0 - over[0].0) as f64;
    Some(Floor { at: origin + over[0].0 as u64, delay: over[0].1 as f64, skew })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_base::Stream;
    use proptest::prelude::*;

    #[test]
    fn a_symmetric_path_gives_the_offset_itself() {
        let e = Exchange { t1: 1000, t2: 5_000_500, t3: 5_000_700, t4: 2200 };
        assert_eq!(e.round_trip(), Some(1000));
        assert_eq!(e.offset(), Some(Offset { theta: 4_999_000, error: 501 }));
        // the other clock ran back in between
        assert_eq!(Exchange { t1: 0, t2: 10, t3: 9, t4: 5 }.round_trip(), None);
    }

    #[test]
    fn the_shortest_exchange_counts() {
        let long = Exchange { t1: 0, t2: 900, t3: 900, t4: 1000 };
        let short = Exchange { t1: 2000, t2: 2050, t3: 2050, t4: 2100 };
        assert_eq!(offset(&[long, short]), Some(Offset { theta: 0, error: 51 }));
        assert_eq!(offset(&[]), None);
    }

    #[test]
    fn the_floor_of_a_skewed_clock_under_random_queues() {
        let mut s = Stream::new(5, "floor");
        let points: Vec<(u64, i64)> = (0..2000u64)
            .map(|i| {
                let sent = 7_000_000_000 + i * 10_000_000;
                let queue = if s.chance(0.3) { 0.0 } else { s.exponential(2e6) };
                (sent, (-3e9 + 50e-6 * (sent as f64 - 7e9) + queue) as i64)
            })
            .collect();
        let floor = floor(&points).unwrap();
        assert!((floor.skew - 50e-6).abs() < 1e-8, "{floor:?}");
        assert!((floor.delay_at(7_000_000_000) + 3e9).abs() < 2000.0, "{floor:?}");
    }

    #[test]
    fn few_points() {
        assert_eq!(floor(&[]), None);
        assert_eq!(floor(&[(5, 1), (5, 0)]), None);
        let line = floor(&[(0, 10), (100, 20)]).unwrap();
        assert_eq!((line.skew, line.delay_at(200)), (0.1, 30.0));
    }

    #[test]
    fn departures_need_not_be_in_order() {
        let line = floor(&[(5_000_000, 50), (1_000_000, 10), (2_000_000, 20)]).unwrap();
        assert_eq!((line.at, line.delay), (1_000_000, 10.0));
        assert!((line.skew - 1e-5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn within_the_bound_for_every_division_of_the_round_trip(
            there in 0u64..1_000_000, back in 0u64..1_000_000, away in -5_000_000_000i64..5_000_000_000, stay in 0u64..1000,
        ) {
            let t1 = 10_000_000_000u64;
            let t2 = (t1 + there).checked_add_signed(away).unwrap();
            let e = Exchange { t1, t2, t3: t2 + stay, t4: t1 + there + stay + back };
            let o = e.offset().unwrap();
            prop_assert!(o.theta.abs_diff(away) <= o.error);
        }

        #[test]
        fn no_point_lies_below_the_floor(delays in prop::collection::vec(0i64..1_000_000, 2..60)) {
            let points: Vec<(u64, i64)> = delays.iter().zip(0..).map(|(&d, i)| (i * 1000, d)).collect();
            let floor = floor(&points).unwrap();
            for (t, d) in points {
                prop_assert!(floor.delay_at(t) <= d as f64 + 1e-3);
            }
        }
    }
}
