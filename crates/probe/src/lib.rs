//! Measurement without a network: state machines, wire format, authentication and estimators. No clock, no sockets, no
//! random numbers inside; all three are arguments, so that the simulator, namespaces and real sockets drive the same code.
//!
//! [`machine`] is the contract between a measurement and whoever carries it; [`session`] the authenticated session of
//! transfers; [`estimate`] what a path's stamps say of delay, available bandwidth and capacity; [`measure`] the measurement
//! that asks both ends of all paths, in both directions; [`stamp`] the standard protocol for delay.

pub mod estimate;
pub mod machine;
pub mod measure;
pub mod session;
pub mod stamp;
