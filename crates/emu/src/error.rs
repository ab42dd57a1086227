//! What can go wrong with an emulated network, and what its user can do.

use pathcast_base::{Exit, Fault};

/// Why an emulated network could not be made, changed or read.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// A privilege, a program or a kernel feature is missing.
    #[error("{what} is missing")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        mend: String,
    },
    /// A step of the set-up failed.
    #[error("{what} could not be set up: {why}")]
    Setup {
        /// What was being set up.
        what: String,
        /// What the system said.
        why: String,
    },
    /// A link parameter was refused.
    #[error("{0}")]
    Refused(String),
    /// The real-time thread ended.
    #[error("the emulator's thread for links {links} ended: {why}")]
    Thread {
        /// Its links.
        links: String,
        /// What is known.
        why: String,
    },
}

impl Fault for EmuError {
    fn code(&self) -> &'static str {
        match self {
            EmuError::Missing { .. } => "missing",
            EmuError::Setup { .. } => "setup",
            EmuError::Refused(_) => "refused",
            EmuError::Thread { .. } => "emulator",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            EmuError::Missing { mend, .. } => Some(mend.clone()),
            EmuError::Setup { .. } => Some("`pathcast doctor` shows what this machine can do".into()),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            EmuError::Missing { .. } => Exit::Missing,
            EmuError::Setup { .. } | EmuError::Thread { .. } => Exit::Runtime,
            EmuError::Refused(_) => Exit::Usage,
        }
    }
}
