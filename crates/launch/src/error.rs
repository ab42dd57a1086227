//! Everything that can keep a program from being run as asked, and what its user can do.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use pathcast_base::lock::LockError;
use pathcast_base::{Exit, Fault};

/// Why a program was not run, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A privilege, a package or a kernel feature is missing.
    #[error("{what} is missing")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        mend: String,
    },
    /// An argument that cannot be meant.
    #[error("{0}")]
    Argument(String),
    /// The kernel has no such controller.
    #[error("this kernel has no congestion controller `{name}`; it has: {available}")]
    UnknownControl {
        /// As asked for.
        name: String,
        /// Names with spaces between.
        available: String,
    },
    /// There is no such user.
    #[error("there is no user `{0}` on this host")]
    UnknownUser(String),
    /// An address for subflows that this host does not have.
    #[error("{address} is not an address of this host; it has: {available}")]
    LocalAddress {
        /// As asked for.
        address: IpAddr,
        /// Addresses with spaces between.
        available: String,
    },
    /// The kernel's path manager would not make so many subflows.
    #[error("{need} further subflows are asked for, and this host allows a connection {have}")]
    Limits {
        /// Local addresses given.
        need: u32,
        /// `ip mptcp limits`, subflows.
        have: u32,
    },
    /// The program cannot be started; as shells do, `status` is 127 if it is not there, else 126.
    #[error("{command}: {source}")]
    Command {
        /// As given.
        command: String,
        /// Exit status of `run`.
        status: i32,
        /// Why.
        source: io::Error,
    },
    /// The file for the report cannot be written.
    #[error("cannot write the report to `{}`{}: {}", path.display(), user.as_ref().map(|u| format!(" as the user `{u}`")).unwrap_or_default(), bare(source))]
    Report {
        /// As given.
        path: PathBuf,
        /// Who may not, if it is not who we are.
        user: Option<String>,
        /// Why.
        source: io::Error,
    },
    /// A file that another run locks, or that cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something of the system failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// Why.
        source: io::Error,
    },
}

/// What the system says, without the number.
fn bare(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

impl LaunchError {
    /// The exit status of a `run` that ends with this error: as [`Fault::exit`], but for a program that cannot be
    /// started.
    pub fn status(&self) -> i32 {
        match self {
            LaunchError::Command { status, .. } => *status,
            other => other.exit() as i32,
        }
    }

    pub(crate) fn missing(what: impl Into<String>, mend: impl Into<String>) -> LaunchError {
        LaunchError::Missing { what: what.into(), mend: mend.into() }
    }

    /// For `map_err`; a permission that lacks becomes [`LaunchError::Missing`].
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> LaunchError {
        let what = what.into();
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                LaunchError::missing(format!("the privilege for {what} ({source})"), "run as root")
            }
            _ => LaunchError::System { what, source },
        }
    }
}

impl Fault for LaunchError {
    fn code(&self) -> &'static str {
        match self {
            LaunchError::Missing { .. } => "missing",
            LaunchError::Argument(_) => "usage",
            LaunchError::UnknownControl { .. } => "unknown-control",
            LaunchError::UnknownUser(_) => "unknown-user",
            LaunchError::LocalAddress { .. } => "local-address",
            LaunchError::Limits { .. } => "mptcp-limits",
            LaunchError::Command { .. } => "command",
            LaunchError::Report { .. } => "report",
            LaunchError::Lock(error) => error.code(),
            LaunchError::System { .. } => "system",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            LaunchError::Missing { mend, .. } => Some(mend.clone()),
            LaunchError::UnknownControl { .. } => Some("those of pathcast: `pathcast control list`".into()),
            LaunchError::Limits { need, .. } => Some(format!(
                "the limit holds for every program on this host, so it is not changed here: `ip mptcp limits set \
                 subflows {need}`, or fewer --paths"
            )),
            LaunchError::Report { user: Some(_), .. } => Some(
                "it is written with the rights of whom CMD runs as; for one of your own: --report /dev/fd/3 3>FILE"
                    .into(),
            ),
            LaunchError::Report { source, .. } => match source.raw_os_error() {
                Some(libc::ELOOP) => Some("links are not followed: name the file itself".into()),
                Some(libc::ENXIO) => Some("nobody reads this pipe: start its reader first".into()),
                _ => None,
            },
            LaunchError::Lock(error) => error.hint(),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            LaunchError::Missing { .. } => Exit::Missing,
            LaunchError::Limits { .. } => Exit::Refused,
            LaunchError::Lock(error) => error.exit(),
            LaunchError::System { .. } => Exit::Runtime,
            _ => Exit::Usage,
        }
    }
}
