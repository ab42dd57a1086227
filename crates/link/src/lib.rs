//! When a packet leaves a link and whether it is dropped. Pure: no clock, no I/O; time is an argument.

mod params;

pub use params::{Bucket, Cross, Jitter, Params, Queue, Red};
