//! What every room of pathcast speaks: time, rate and size with their written forms, seeded random streams, the record of a
//! transfer, and how an error tells its user what to do.
//!
//! Inside, time is integer nanoseconds, a rate integer bits per second, a size integer bytes; a rate counts
//! IP bytes unless its name says otherwise.

mod fault;
mod quantity;
mod stream;
mod transfer;

pub use fault::{Exit, Fault};
pub use quantity::{Bytes, Nanos, QuantityError, Rate};
pub use stream::Stream;
pub use transfer::{PathAddr, PathManagerKind, Protocol, SubflowReport, TransferReport};
