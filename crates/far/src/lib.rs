//! The far end as a whole: what it is told, whom it trusts, what it grants; transfers over TCP, measurements over UDP at the
//! same port, and STAMP. `pathcast serve` runs it in the Python extension, the program `pathcast-far` without Python.

mod error;
mod far;
pub mod keyfile;
mod limits;
mod log;

pub use error::{FarError, plain};
pub use far::{Config, Far, Said};
pub use keyfile::KeyText;
pub use limits::limits;
pub use log::LogLine;
