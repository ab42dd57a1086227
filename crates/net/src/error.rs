//! Everything that can go wrong, what to do about it, and the exit status.

use std::io;
use std::net::{IpAddr, SocketAddr};

use pathcast_base::{Exit, Fault};
use pathcast_session::{Denial, KeyError, Rejection, SessionError};

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// An argument that cannot be meant.
    #[error("{0}")]
    Argument(String),
    /// A key that cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The kernel does not have this congestion controller.
    #[error("this kernel has no congestion controller `{name}`; it has: {available}")]
    UnknownControl {
        /// As asked for.
        name: String,
        /// Names with spaces between.
        available: String,
    },
    /// The controller exists, but not for this user.
    #[error("not permitted to use the congestion controller `{name}`")]
    ControlNotPermitted {
        /// As asked for.
        name: String,
    },
    /// The address is not one of this host's.
    #[error("{0} is not an address of this host")]
    LocalAddress(IpAddr),
    /// The kernel does not make MPTCP sockets.
    #[error("this kernel makes no MPTCP sockets here: {0}")]
    NoMptcp(io::Error),
    /// No connection came about.
    #[error("no connection to {to}{}: {source}", from.map(|a| format!(" from {a}")).unwrap_or_default())]
    Connect {
        /// The address bound to, if one was.
        from: Option<IpAddr>,
        /// The far end.
        to: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// No connection came about over any line.
    #[error("no connection{}", every(.tried))]
    NoWay {
        /// What was tried, the first choice first.
        tried: Vec<Untold>,
    },
    /// The far end said no.
    #[error("{to} refused: {}", say(.rejection))]
    Rejected {
        /// The far end.
        to: SocketAddr,
        /// What it said.
        rejection: Rejection,
    },
    /// What came is not what a far end with the key would say.
    #[error("{to} does not answer as pathcast with this key does: {source}")]
    Protocol {
        /// The far end.
        to: SocketAddr,
        /// What was wrong.
        source: SessionError,
    },
    /// The connection broke.
    #[error("the transfer over {paths} broke after {bytes_acked} bytes: {source}")]
    Broken {
        /// Names of the paths.
        paths: String,
        /// Payload that the far end had acknowledged [byte].
        bytes_acked: u64,
        /// Why.
        source: io::Error,
    },
    /// The network does not carry a flow over its path.
    #[error("the network carries no flow over path `{path}`: {reason}")]
    Fabric {
        /// Its name.
        path: String,
        /// What the network says.
        reason: String,
    },
    /// Nothing moved any more.
    #[error("stalled: nothing acknowledged over {paths} for {waited_s} s, after {bytes_acked} bytes")]
    Stalled {
        /// Names of the paths.
        paths: String,
        /// Payload that the far end had acknowledged [byte].
        bytes_acked: u64,
        /// How long nothing moved [s].
        waited_s: u64,
    },
    /// The control connection was lost.
    #[error("the control connection to {to} was lost: {source}")]
    Control {
        /// The far end.
        to: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A listener could not be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Something of the system failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A measurement's machine broke its contract.
    #[error("a bug in a prober: it {0}")]
    Prober(String),
    /// The caller's flag was raised.
    #[error("interrupted")]
    Interrupted,
}

/// A way over which nothing was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// From where, if the routes know.
    pub from: Option<IpAddr>,
    /// To which address of the far end.
    pub to: SocketAddr,
    /// Why.
    pub reason: String,
}

fn every(tried: &[Untold]) -> String {
    let of = |t: &Untold| {
        let from = t.from.map(|a| format!("from {a} ")).unwrap_or_default();
        format!("{from}to {}: {}", t.to, t.reason)
    };
    format!(" over any line: {}", tried.iter().map(of).collect::<Vec<_>>().join("; "))
}

fn say(rejection: &Rejection) -> String {
    match rejection {
        Rejection::Refused => "the key is not accepted, or the session is over".into(),
        Rejection::Version { theirs } => format!("it speaks version {theirs} of the protocol"),
        Rejection::Denied(denial) => match denial {
            Denial::Sessions => "too many sessions there",
            Denial::Transfers => "too many transfers at once",
            Denial::Size => "the transfer is larger than is allowed there",
            Denial::Replay => "the transfer's number was used before",
            Denial::Unsupported => "it does not know this kind of transfer",
        }
        .into(),
    }
}

impl NetError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> NetError {
        move |source| NetError::System { what, source }
    }

    pub(crate) fn session(to: SocketAddr, source: SessionError) -> NetError {
        match source {
            SessionError::Rejected(rejection) => NetError::Rejected { to, rejection },
            source => NetError::Protocol { to, source },
        }
    }
}

impl NetError {
    /// Has the host there said this, so that it is there?
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            NetError::Rejected { .. } | NetError::Protocol { .. } => true,
            NetError::Connect { source, .. } => source.raw_os_error() == Some(libc::ECONNREFUSED),
            _ => false,
        }
    }

    /// Is it what a dead line looks like?
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self, NetError::Connect { .. } | NetError::Control { .. }) && !self.is_answer()
    }

    /// What is behind it, without the addresses.
    pub fn reason(&self) -> String {
        match self {
            NetError::Connect { source, .. } | NetError::Control { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }
}

fn privilege(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

impl Fault for NetError {
    fn code(&self) -> &'static str {
        match self {
            NetError::Argument(_) => "bad-argument",
            NetError::Key(_) => "bad-key",
            NetError::UnknownControl { .. } => "unknown-control",
            NetError::ControlNotPermitted { .. } => "control-not-permitted",
            NetError::LocalAddress(_) => "not-local",
            NetError::NoMptcp(_) => "no-mptcp",
            NetError::Connect { .. } | NetError::NoWay { .. } => "no-connection",
            NetError::Rejected { rejection: Rejection::Version { .. }, .. } => "other-version",
            // as where a measurement is denied
            NetError::Rejected { rejection: Rejection::Denied(Denial::Sessions), .. } => "sessions",
            NetError::Rejected { .. } => "refused",
            NetError::Protocol { .. } => "protocol",
            NetError::Broken { .. } => "broken",
            NetError::Fabric { .. } => "switch",
            NetError::Stalled { .. } => "stalled",
            NetError::Control { .. } => "control-lost",
            NetError::Listen { .. } => "cannot-listen",
            NetError::System { .. } => "system",
            NetError::Prober(_) => "prober-misuse",
            NetError::Interrupted => "interrupted",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            NetError::ControlNotPermitted { name } => {
                return Some(format!(
                    "run with CAP_NET_ADMIN, or add `{name}` to the sysctl net.ipv4.tcp_allowed_congestion_control"
                ));
            }
            NetError::UnknownControl { .. } => {
                "load it (`pathcast control load NAME` or modprobe tcp_NAME), or choose another"
            }
            NetError::NoMptcp(_) => "a kernel with CONFIG_MPTCP and the sysctl net.mptcp.enabled=1",
            NetError::Connect { source, .. } if source.raw_os_error() == Some(libc::ECONNREFUSED) => {
                "is `pathcast serve` running there, on this port?"
            }
            NetError::Connect { .. } | NetError::NoWay { .. } => "look at the route and at firewalls on the way",
            NetError::Rejected { rejection: Rejection::Refused, .. } => {
                "both ends need the same key: --key-file FILE, a copy of the far end's"
            }
            NetError::Rejected { rejection: Rejection::Version { .. }, .. } => "install the same version at both ends",
            NetError::Rejected { rejection: Rejection::Denied(_), .. } => "ask for less, or raise the limit there",
            NetError::Protocol { .. } => "is it `pathcast serve`, with the same key?",
            NetError::Listen { source, .. } if privilege(source) => "choose a port above 1023",
            NetError::Prober(_) => "please report it with the command",
            _ => return None,
        };
        Some(text.into())
    }

    fn exit(&self) -> Exit {
        match self {
            NetError::Argument(_) | NetError::Key(_) | NetError::UnknownControl { .. } | NetError::LocalAddress(_) => {
                Exit::Usage
            }
            NetError::ControlNotPermitted { .. } | NetError::NoMptcp(_) => Exit::Missing,
            NetError::Rejected { rejection: Rejection::Version { .. }, .. } => Exit::Runtime,
            NetError::Rejected { .. } => Exit::Refused,
            NetError::Listen { source, .. } | NetError::System { source, .. } if privilege(source) => Exit::Missing,
            NetError::Interrupted => Exit::Interrupted,
            _ => Exit::Runtime,
        }
    }
}
