//! What every room of pathcast speaks: time, rate and size with their written forms, seeded random streams,
//! and how an error tells its user what to do.
//!
//! Inside, time is integer nanoseconds, a rate integer bits per second, a size integer bytes; a rate counts
//! IP bytes unless its name says otherwise.

mod fault;
mod quantity;
mod stream;

pub use fault::{Exit, Fault};
pub use quantity::{Bytes, Nanos, QuantityError, Rate};
pub use stream::Stream;
