//! Measuring over UDP: sockets whose packets the kernel stamps, the client's end that carries a
//! [`Machine`](pathcast_measure::machine::Machine), the far end for many clients, and STAMP.
//!
//! Sizes count IP bytes, stamps are of a [`SessionClock`].

mod carrier;
mod client;
mod clock;
mod control;
mod far;
mod flights;
mod inbox;
mod receive;
mod socket;
mod stamp;
mod stamps;
mod urgency;

pub use carrier::Tally;
pub use client::{DriveOptions, Driven, drive};
pub use clock::SessionClock;
pub use far::{FarAddress, FarMachine, FarOptions, FarServer};
pub use stamp::{StampReflector, stamp_measure};
