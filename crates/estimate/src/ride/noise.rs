//! How far a packet's delay may lie above the smallest one where no queue is: hosts that wake late.
//!
//! The ride takes a wait for a queue; what is none makes an idle line look busy. Two marks of what is none:
//! - packets leave a bottleneck L/C apart at least: of two that arrive closer the first was late, whatever traffic there is;
//! - who finds the probes' own queue empty waits for others only, and usually for few.

use super::super::TrainSeen;
use super::super::series::Segment;
use super::super::stat::quantile;
use super::{PACKET, Ride};

/// The share of gaps that are closer than the scatter, and the delays that it stands for: of a gap two delays differ, and the floor is
/// the least of thousands.
const CLOSER: f64 = 0.9;
const SCATTER: f64 = 3.5;

/// Packets that come closer by less than this share of L/C are no sign of a late host.
const SCATTERS: f64 = 0.05;

/// C is known so far.
const EXACT: f64 = 0.98;

/// Delays reach so many times as far above the least as their median does; fewer say nothing.
const REACH: f64 = 2.0;
const ALONE: usize = 12;
/// What usually waits behind others is at a load of a half so many packets at the most.
const QUEUES: f64 = 1.0;
/// Where A is not known, or next to nothing.
const LOAD_MOST: f64 = 0.9;

/// Hosts are no noisier, unless they are stopped [s]; what a queue behind the bottleneck gathers on slow lines is.
const MOST: f64 = 0.5e-3;

/// By how much packets came closer than they can have left the bottleneck [s].
fn scatter<'a>(trains: impl Iterator<Item = &'a TrainSeen>, capacity: f64) -> f64 {
    let mut closer = Vec::new();
    for train in trains {
        for pair in train.packets.windows(2) {
            let alone = pair.iter().all(|p| p.batch.of <= 1);
            if let (true, Some(before), Some(received)) = (alone, pair[0].received, pair[1].received) {
                let gap = (received.0 as f64 - before.0 as f64) / 1e9;
                closer.push(EXACT * f64::from(pair[1].size) * 8.0 / capacity - gap);
            }
        }
    }
    quantile(&closer, CLOSER).unwrap_or(0.0).max(0.0)
}

impl Ride {
    /// A wait up to this may be none [s].
    pub(super) fn noise(&self, segments: &[Segment]) -> f64 {
        let before = self.trains.range(..=self.first).map(|(_, train)| train);
        let load = if self.a > 0.0 { (1.0 - self.a / self.c).clamp(0.0, LOAD_MOST) } else { LOAD_MOST };
        let queues = QUEUES * load / (1.0 - load) * PACKET / self.c;
        let scatter = scatter(before, self.c);
        // where stamps are exact all that waits has met somebody
        let reach = if scatter > SCATTERS * PACKET / self.c { reach(segments) - queues } else { 0.0 };
        (SCATTER * scatter).max(reach).min(MOST)
    }
}

/// How far the delays of those reach that found no probe before them [s].
fn reach(segments: &[Segment]) -> f64 {
    let alone: Vec<f64> = segments.iter().filter(|s| !s.joined && s.lost == 0).map(|s| s.wait).collect();
    if alone.len() < ALONE { 0.0 } else { REACH * quantile(&alone, 0.5).unwrap_or(0.0) }
}

#[cfg(test)]
mod tests {
    use pathcast_base::{Bytes, Nanos};

    use super::super::super::Budget;
    use super::super::super::testing::train;
    use super::*;

    /// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
    #[test]
    fn who_comes_too_close_was_late() {
        let of = |received: &[Option<u64>]| {
            let sent: Vec<u64> = (0..received.len() as u64).collect();
            scatter([train(0, 1000, &sent, received)].iter(), 8e6)
        };
        let us = |us: u64| Some(us * 1000);
        assert_eq!(of(&[us(1000), us(2000), us(5000), None, us(6000)]), 0.0, "others came between, one was lost");
        // 0.3 ms late, which the next one's gap tells; C may be 2 % off
        let late: Vec<Option<u64>> = (1..=9).map(|i| us(i * 1000 + if i % 2 == 0 { 300 } else { 0 })).collect();
        assert!((of(&late) - 0.28e-3).abs() < 1e-9, "{}", of(&late));
    }
    /// Beside others all may wait. If stamps are exact, which packets that left together show, that is no noise.
    #[test]
    fn whoever_waits_where_stamps_are_exact_has_met_somebody() {
        let of = |late: u64| {
            let mut ride = Ride::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) }, 1);
            ride.c = 1e9;
            let came: Vec<_> = (1..=40).map(|k| Some(k * 11_200 + if k % 2 == 0 { late } else { 0 })).collect();
            ride.trains.insert(0, train(0, 1400, &[0; 40], &came));
            let waits = |wait| Segment {
                from: 0.0,
                time: 50e-6,
                low: 0.0,
                high: 0.0,
                joined: false,
                hidden: 10e-6,
                wait,
                before: 0.0,
                bits: PACKET,
                lost: 0,
                unsure: 0.0,
            };
            ride.noise(&[waits(60e-6); 20])
        };
        assert_eq!(of(0), 0.0);
        assert!(of(5_000) > 15e-6, "{}", of(5_000));
    }
}
