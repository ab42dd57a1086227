//! What is wrong with what a far end is told, or keeps it from running.

use pathcast_base::{Exit, Fault};
use pathcast_net::NetError;

/// Why there is no far end.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// An argument or a file that cannot be meant.
    #[error("{message}")]
    Usage {
        /// Names the wrong value and the allowed ones.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A key file that others could read or exchange.
    #[error("{message}")]
    KeyFile {
        /// What is wrong with it.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// Of the sockets.
    #[error(transparent)]
    Net(#[from] NetError),
}

impl FarError {
    /// Of an argument or file, without advice.
    pub fn usage(message: impl Into<String>) -> FarError {
        FarError::Usage { message: message.into(), hint: None }
    }

    /// Of an argument or file.
    pub fn advised(message: impl Into<String>, hint: impl Into<String>) -> FarError {
        FarError::Usage { message: message.into(), hint: Some(hint.into()) }
    }
}

impl Fault for FarError {
    fn code(&self) -> &'static str {
        match self {
            FarError::Usage { .. } => "usage",
            FarError::KeyFile { .. } => "key-file",
            FarError::Net(error) => error.code(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FarError::Usage { hint, .. } => hint.clone(),
            FarError::KeyFile { hint, .. } => Some(hint.clone()),
            FarError::Net(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            FarError::Usage { .. } => Exit::Usage,
            FarError::KeyFile { .. } => Exit::Refused,
            FarError::Net(error) => error.exit(),
        }
    }
}

/// A message without the numbers that Rust puts after the system's words.
pub fn plain(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(')'))
}
