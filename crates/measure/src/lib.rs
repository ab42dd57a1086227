//! A measurement of paths in both directions: what two hosts say to each other in datagrams, who may say it, and what comes
//! of it. One-way delay, available bandwidth, capacity and loss, by [`pathcast_estimate`].
//!
//! [`Client`] is a [`machine::Machine`]; [`FarEnd`] serves many clients, and [`FarEndMachine`] makes a machine of it for one.
//!
//! # Order
//! Hello, signed with the key; Cookie, smaller, for the address; Open with the cookie, signed with keys that both nonces
//! make; Opened, Queued or Denied. Further paths prove their addresses in the same way. On each path: the clocks are
//! compared, and for each direction trains go one way and reports the other, until the sender's method is content.
//! The far end sends what it has found of the direction to the client until that is noted. Bye, until it
//! is answered, three times at most.
//!
//! # What it protects
//! Nobody without the key gets an answer, and nobody can forge, change or replay what is said, probes included. An address
//! that has not returned a cookie gets fewer bytes than it sent, and nothing is kept of it. A Hello that was overheard can be
//! said again within its key's life, and is answered by a cookie; that is all that comes of it. Nothing is encrypted, and
//! whoever can drop packets can stop a measurement.

mod bucket;
mod client;
mod client_path;
mod cookie;
mod echo;
mod echoes;
mod far;
mod far_end;
mod far_end_machine;
mod far_path;
#[cfg(any(test, feature = "fuzz"))]
pub mod forge;
#[cfg(test)]
mod golden;
mod keys;
mod ledger;
mod limits;
pub mod machine;
mod messages;
mod method;
mod note;
mod outcome;
mod queue;
mod report;
mod request;
mod result;
mod room;
mod sink;
mod source;
pub mod stamp;
mod times;
mod wire;

pub use bucket::Bucket;
pub use client::Client;
pub use echoes::{EchoRequest, Echoes};
pub use far::{Address, FarAction, FarEvent};
pub use far_end::FarEnd;
pub use far_end_machine::FarEndMachine;
pub use limits::{MeasureCounters, MeasureLimits};
pub use note::{Ended, Happened, Limit, MeasureNote};
pub use request::{ClockState, Direction, Iunit, MethodName, NoSuchMethod, Request};
