//! How far a packet's delay may lie above the smallest one where no queue is: hosts that wake late.
//!
//! The ride takes a wait for a queue; what is none makes an idle line look busy. Two marks of what is none:
//! - packets leave a bottleneck L/C apart at least: of two that arrive closer the first was late, whatever traffic there is;
//! - who finds the probes' own queue empty waits for others only, and usually for few.

use super::super::series::{NOISIEST, Segment, late, scatter};
use super::super::stat::quantile;
use super::{PACKET, Ride};

/// Packets that come closer by less than this share of L/C are no sign of a late host.
const SCATTERS: f64 = 0.05;

/// Delays reach so many times as far above the least as their median does; fewer say nothing.
const REACH: f64 = 2.0;
const ALONE: usize = 12;
/// What usually waits behind others is at a load of a half so many packets at the most.
const QUEUES: f64 = 1.0;
/// Where A is not known, or next to nothing.
const LOAD_MOST: f64 = 0.9;

impl Ride {
    /// A wait up to this may be none [s].
    pub(super) fn noise(&self, segments: &[Segment]) -> f64 {
        let before = || self.trains.range(..=self.first).map(|(_, train)| train);
        let load = if self.a > 0.0 { (1.0 - self.a / self.c).clamp(0.0, LOAD_MOST) } else { LOAD_MOST };
        let queues = QUEUES * load / (1.0 - load) * PACKET / self.c;
        // where stamps are exact all that waits has met somebody
        let reach = if scatter(before(), self.c) > SCATTERS * PACKET / self.c { reach(segments) - queues } else { 0.0 };
        late(before(), self.c).max(reach.min(NOISIEST))
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
