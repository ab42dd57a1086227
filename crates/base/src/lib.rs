//! What every room of pathcast speaks: time, rate and size with their written forms, seeded random streams, the record of a
//! transfer, how an error tells its user what to do, and locks between processes.
//!
//! Inside, time is integer nanoseconds, a rate integer bits per second, a size integer bytes; a rate counts
//! IP bytes unless its name says otherwise.

mod fault;
pub mod lock;
mod quantity;
mod stream;
mod transfer;

pub use fault::{Exit, Fault};
pub use quantity::{Bytes, Nanos, QuantityError, Rate};
pub use stream::Stream;
pub use transfer::{PathAddr, PathManagerKind, Protocol, SubflowReport, SubflowSample, TransferReport, TransferSample};
