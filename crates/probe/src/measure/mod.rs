//! A measurement of paths in both directions: what two hosts say to each other in datagrams, who may say it, and what comes
//! of it. One-way delay, available bandwidth, capacity and loss, by [`crate::estimate`].
mod codec;
mod far;
mod keys;
mod limits;
mod messages;
mod report;
mod request;
mod wire;

pub use far::{Address, FarAction, FarEvent};
pub use limits::{MeasureCounters, MeasureLimits};
pub use request::{ClockState, Direction, MethodName, NoSuchMethod, Request};
