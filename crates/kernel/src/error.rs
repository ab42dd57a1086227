//! What can go wrong with programs in the kernel, and what its user can do.

use std::path::PathBuf;

use pathcast_base::lock::LockError;
use pathcast_base::{Exit, Fault};
use pathcast_congestion::CongestionError;

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
    /// Another controller in this kernel has the name.
    #[error("a controller called `{name}` is in this kernel already")]
    InUse {
        /// The name given.
        name: String,
    },
    /// A controller that runs in the simulator only.
    #[error("`{name}` is not built for the kernel; allowed: {allowed}")]
    NotInKernel {
        /// The controller.
        name: String,
        /// All that are, separated by commas.
        allowed: String,
    },
    /// A parameter that does not exist, or a value out of range.
    #[error(transparent)]
    Parameter(#[from] CongestionError),
    /// Nothing is pinned there, or not the whole of a controller.
    #[error("no controller is pinned at {path}: {why}", path = path.display())]
    NotPinned {
        /// The directory.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A directory that cannot be a controller's.
    #[error("a controller cannot be pinned at {path}: {why}", path = path.display())]
    PinPath {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process keeps pins locked.
    #[error(transparent)]
    Lock(#[from] LockError),
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
            KernelError::InUse { .. } => "controller-in-use",
            KernelError::NotInKernel { .. } => "controller-not-in-kernel",
            KernelError::Parameter(error) => error.code(),
            KernelError::NotPinned { .. } => "not-pinned",
            KernelError::PinPath { .. } => "pin-path",
            KernelError::Lock(error) => error.code(),
            KernelError::Refused { .. } => "kernel-refused",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            KernelError::Missing { mend, .. } => Some(mend.clone()),
            KernelError::Name { .. } | KernelError::NotInKernel { .. } | KernelError::PinPath { .. } => None,
            KernelError::InUse { .. } => {
                Some("`pathcast control list` shows whose it is; unload it, or take another name".into())
            }
            KernelError::Parameter(error) => error.hint(),
            KernelError::NotPinned { .. } => Some("`pathcast control list` shows what is pinned".into()),
            KernelError::Lock(error) => error.hint(),
            KernelError::Refused { .. } => Some("`pathcast doctor` shows what this machine can do".into()),
        }
    }
    fn exit(&self) -> Exit {
        match self {
            KernelError::Missing { .. } => Exit::Missing,
            KernelError::Name { .. }
            | KernelError::InUse { .. }
            | KernelError::NotInKernel { .. }
            | KernelError::NotPinned { .. }
            | KernelError::PinPath { .. } => Exit::Usage,
            KernelError::Parameter(error) => error.exit(),
            KernelError::Lock(error) => error.exit(),
            KernelError::Refused { .. } => Exit::Runtime,
        }
    }
}
