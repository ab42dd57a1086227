//! Emulated networks with the real kernel: two namespaces, TUN devices with segmentation offload between them (TAP devices,
//! and a third namespace, where switches are), and
//! real-time threads that let `pathcast-link` decide about every packet.
//!
//! Design and measured pitfalls: per-packet decisions inside super-packets, departures chained in virtual time,
//! release errors counted per packet. Nothing else is needed of the kernel than TUN and namespaces.

mod error;
#[cfg(test)]
mod exact;
mod fit;
mod group;
mod histogram;
mod layout;
mod ledger;
mod namespace;
mod network;
mod orders;
mod packet;
mod release;
mod switched;
mod time;
mod tun;
mod worker;

pub use error::EmuError;
pub use histogram::Summary;
pub use ledger::{DeviceLedger, GroupLedger, Ledger};
pub use namespace::{Namespace, inside, remove};
pub use network::{Description, Network, PathDescription};
