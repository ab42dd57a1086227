//! The tests of what the build script takes the digest of stand beside it.

#[path = "../digest.rs"]
mod digest;
