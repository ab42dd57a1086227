//! `[host.client]` and `[host.server]`: clocks and network cards of the end hosts.

use pathcast_base::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An end host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The node `client`.
    Client,
    /// The node `server`.
    Server,
}

/// Both end hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hosts {
    /// The node `client`.
    pub client: Host,
    /// The node `server`.
    pub server: Host,
}

impl Hosts {
    /// The host at one end.
    pub fn get(&self, end: End) -> &Host {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }
}

/// An end host. The default has a right clock, hands every packet over at once, and offloads as the kernel likes.
/// Clocks and batches are the simulator's; `send_segments` is the emulator's, and the simulator's with preset `linux`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// What its clock shows more than the true time at the start of the run, in ns, at most 1000 hours either way.
    pub clock_offset_ns: i64,
    /// How much faster than the true time its clock goes, in millionths, at most 10000 either way.
    pub clock_skew_ppm: f64,
    /// Interrupt coalescing: packets that arrive within this time of the first are handed over together; at most 1 s.
    pub receive_batch: Nanos,
    /// A batch is handed over early when it has so many packets, 1 to 65535.
    pub receive_batch_packets: u32,
    /// Most segments that TCP hands to a device at once (segmentation offload), 1 to 65535; none: the kernel's own.
    pub send_segments: Option<u32>,
}

impl Default for Host {
    fn default() -> Self {
        Host {
            clock_offset_ns: 0,
            clock_skew_ppm: 0.0,
            receive_batch: Nanos::ZERO,
            receive_batch_packets: 64,
            send_segments: None,
        }
    }
}
