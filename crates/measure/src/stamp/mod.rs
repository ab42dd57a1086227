//! STAMP, the Simple Two-Way Active Measurement Protocol (RFC 8762), with session identifiers and extra padding of RFC 8972:
//! what routers and other tools speak. Round trips, one-way delays where both clocks are kept right, loss by direction where
//! the reflector counts.
//!
//! The machines here know their host's clock as all machines do, and that it counts nanoseconds since 1970 (UTC).

mod packet;
mod reflector;
mod report;
mod sender;
mod time;

pub use packet::{Mode, ReflectedPacket, StampKey, TestPacket};
pub use reflector::{MAX_SESSIONS, Reflector, ReflectorClock, ReflectorOptions, Request};
pub use report::{OneWay, Spread, StampReport, Warning};
pub use sender::{Sender, SenderOptions};
pub use time::{ErrorEstimate, Format};

/// The port that IANA gave to it.
pub const STAMP_PORT: u16 = 862;
