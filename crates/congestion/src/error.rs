//! What can be wrong with the name of a controller or with a parameter.

use pathcast_base::{Exit, Fault};

/// A controller or a parameter that does not exist, or a value out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionError {
    /// No controller has this name.
    #[error("`{name}` is no congestion controller; allowed: {allowed}")]
    UnknownController {
        /// The name asked for.
        name: String,
        /// All names, separated by commas.
        allowed: String,
    },
    /// The controller has no such parameter.
    #[error("`{controller}` has no parameter `{name}`; allowed: {allowed}")]
    UnknownParameter {
        /// The controller.
        controller: &'static str,
        /// The name asked for.
        name: String,
        /// All names, separated by commas.
        allowed: String,
    },
    /// The value is outside the parameter's range.
    #[error("`{controller}.{name}` is {value}; allowed: {least} to {most}")]
    OutOfRange {
        /// The controller.
        controller: &'static str,
        /// The parameter.
        name: &'static str,
        /// The wrong value.
        value: u64,
        /// The least allowed value.
        least: u32,
        /// The largest allowed value.
        most: u32,
    },
}

impl Fault for CongestionError {
    fn code(&self) -> &'static str {
        match self {
            CongestionError::UnknownController { .. } => "unknown-controller",
            CongestionError::UnknownParameter { .. } => "unknown-parameter",
            CongestionError::OutOfRange { .. } => "controller-parameter",
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}
