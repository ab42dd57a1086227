//! What an emulated network carried, dropped and released late.

use pathcast_link::LinkLedger;
use serde::Serialize;

use crate::histogram::Summary;

/// One thread and its links.
#[derive(Clone, Debug, Serialize)]
pub struct GroupLedger {
    /// Every direction of every link.
    pub links: Vec<LinkLedger>,
    /// Age of the network [s].
    pub since_start_s: f64,
    /// Whether the thread has real-time priority; without it the release errors are far larger.
    pub realtime: bool,
    /// Whether the processors are kept from sleeping deeply while there is traffic; else wake-ups come late.
    pub processors_kept_awake: bool,
    /// |real - modelled| release time per packet, since the last reset.
    pub release_error: Summary,
    /// CPU time of the thread [s].
    pub cpu_s: f64,
    /// Frames read from the devices.
    pub reads: u64,
    /// Frames written to the devices.
    pub writes: u64,
    /// Frames that a device refused.
    pub write_failures: u64,
    /// Devices that somebody has removed: nothing comes by them any more.
    pub devices_removed: u64,
    /// Packets of address pairs that are no path, multicast included.
    pub unroutable: u64,
}

/// A device inside a namespace.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceLedger {
    /// `client`, `server` or `switch`.
    pub host: String,
    /// Its name there.
    pub name: String,
    /// Packets that the kernel dropped before the emulator could read them; the model knows nothing of them.
    pub dropped: u64,
}

/// A whole network.
#[derive(Clone, Debug, Serialize)]
pub struct Ledger {
    /// One for each thread.
    pub groups: Vec<GroupLedger>,
    /// One for each device.
    pub devices: Vec<DeviceLedger>,
}
