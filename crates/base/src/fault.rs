//! The one mapping from errors to exit codes, and what an error owes its user.

use std::error::Error;

/// How a command ends; the numbers are the process exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Exit {
    /// The machine or the network failed.
    Runtime = 1,
    /// The command or an input file is wrong.
    Usage = 2,
    /// Measured, but not to be trusted.
    Untrustworthy = 3,
    /// Refused by policy: a wrong key, a limit.
    Refused = 4,
    /// A kernel feature or a privilege is missing.
    Missing = 5,
    /// Interrupted by the user.
    Interrupted = 130,
}

/// An error that a user can act on: the `Display` text names the wrong value and the allowed ones.
pub trait Fault: Error {
    /// One stable lower-case word (or words joined by `-`) that programs can match on.
    fn code(&self) -> &'static str;
    /// What to do about it, if there is something to do.
    fn hint(&self) -> Option<String> {
        None
    }
    /// The exit status of a command that ends with this error.
    fn exit(&self) -> Exit;
}
