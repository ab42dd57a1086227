//! How far the scenario's flows had come, at regular times.

use pathcast_base::Nanos;
use serde::Serialize;

use crate::carried::SubReport;
use crate::observe::Observer;

/// A subflow at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SubflowSample {
    /// Payload acknowledged [byte].
    pub bytes_acked: u64,
    /// Window [packet].
    pub cwnd_packets: u32,
    /// Smoothed RTT [s]; absent until measured.
    pub rtt_s: Option<f64>,
    /// Payload sent again [byte].
    pub bytes_retransmitted: u64,
}

/// A flow at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSample {
    /// Since the start of the run [s].
    pub at_s: f64,
    /// Acknowledged at the level of the connection [byte].
    pub bytes_acked: u64,
    /// Its subflows, in the order of its paths; fewer as long as it has not made all of them.
    pub subflows: Vec<SubflowSample>,
}

/// Samples of every flow, by its index.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Series {
    #[serde(skip)]
    every: Nanos,
    flows: Vec<Vec<FlowSample>>,
}

impl Series {
    /// A sample `every` so often, which is above zero.
    pub(crate) fn new(every: Nanos) -> Self {
        Series { every, flows: Vec::new() }
    }

    /// Of the flow with that index; none before it starts, and none after its end.
    pub fn flow(&self, index: usize) -> &[FlowSample] {
        self.flows.get(index).map_or(&[], Vec::as_slice)
    }
}

impl Observer for Series {
    const ON: bool = false;
    const FLOWS: bool = true;

    fn interval(&self) -> Option<Nanos> {
        Some(self.every)
    }

    fn flow(&mut self, now: Nanos, index: usize, bytes_acked: u64, subs: &[SubReport]) {
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, Vec::new);
        }
        let subflow = |sub: &SubReport| SubflowSample {
            bytes_acked: sub.bytes,
            cwnd_packets: sub.cwnd,
            rtt_s: (sub.srtt_us > 0).then(|| f64::from(sub.srtt_us) / 1e6),
            bytes_retransmitted: sub.again_bytes,
        };
        let sample = FlowSample { at_s: now.as_secs_f64(), bytes_acked, subflows: subs.iter().map(subflow).collect() };
        let series = &mut self.flows[index];
        series.pop_if(|last| last.at_s >= sample.at_s); // the end of the run may fall on a sample
        series.push(sample);
    }
}
