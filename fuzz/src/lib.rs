//! What the fuzzer's bytes mean, a target a file: for parsers they are the input, for machines a script of what happens to
//! them. `examples/seeds.rs` writes the inputs to begin with, `scripts/fuzz` runs all targets.

pub mod client;
pub mod datagram;
pub mod echoes;
pub mod far_end;
pub mod quantity;
pub mod scenario;
pub mod script;
pub mod session;
pub mod stamp;
