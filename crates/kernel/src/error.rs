//! What can go wrong with programs in the kernel, and what its user can do.

use pathcast_base::{Exit, Fault};

/// Why a program could not be brought into the kernel, or its records not be read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A privilege, a package or a kernel feature is missing.
    #[error("{what} is missing")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        mend: String,
    },
    /// A name that the kernel cannot take for a controller.
    #[error("`{name}` cannot name a controller in the kernel; allowed: 1 to 15 of a-z, 0-9, `_` and `-`")]
    Name {
        /// The name given.
        name: String,
    },
    /// The kernel refused a step.
    #[error("{what} failed: {why}")]
    Refused {
        /// The step.
        what: String,
        /// What the kernel said.
        why: String,
    },
}

impl KernelError {
    pub(crate) fn refused(what: impl Into<String>, why: impl std::fmt::Display) -> KernelError {
        KernelError::Refused { what: what.into(), why: why.to_string() }
    }
    pub(crate) fn missing(what: impl Into<String>, mend: impl Into<String>) -> KernelError {
        KernelError::Missing { what: what.into(), mend: mend.into() }
    }
}

impl Fault for KernelError {
    fn code(&self) -> &'static str {
        match self {
            KernelError::Missing { .. } => "missing",
            KernelError::Name { .. } => "controller-name",
            KernelError::Refused { .. } => "kernel-refused",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            KernelError::Missing { mend, .. } => Some(mend.clone()),
            KernelError::Name { .. } => None,
            KernelError::Refused { .. } => Some("`pathcast doctor` shows what this machine can do".into()),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            KernelError::Missing { .. } => Exit::Missing,
            KernelError::Name { .. } => Exit::Usage,
            KernelError::Refused { .. } => Exit::Runtime,
        }
    }
}
