//! What lies between two hosts, by real connections: what each end sees of the same one.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pathcast_base::{PathAddr, Protocol};
use pathcast_session::{ClientLook, Denial, Rejection, Seen, SessionError, Transport};
use serde::Serialize;
use socket2::Socket;

use crate::client::Client;
use crate::connect::connect;
use crate::error::NetError;
use crate::info;
use crate::maker::{Family, SocketMaker};
use crate::poll;

/// Two attempts of TCP, and a round trip of half a second.
const PATIENCE: Duration = Duration::from_secs(4);
/// Options that [`able`] counts, by the names of their settings.
const SETTINGS: [(&str, u8); 3] = [("ipv4/tcp_timestamps", 1), ("ipv4/tcp_sack", 2), ("ipv4/tcp_window_scaling", 4)];
/// Beside them: MPTCP.
const MPTCP: u8 = 16;

/// One end of a connection.
#[derive(Clone, Debug, Serialize)]
pub struct Look {
    /// Where this end says that the connection comes from and goes to, by its own addresses.
    pub peer: Option<SocketAddr>,
    /// This end's own address and port.
    pub local: Option<SocketAddr>,
    /// `tcp`, `mptcp`, `fallen` or `unknown`.
    pub transport: &'static str,
    /// As in TCP_INFO: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    pub options: u8,
    /// What the other end's window and its own are scaled by [bit].
    pub scales: (u8, u8),
    /// What it sends at most in a segment, and what it has announced to take [byte].
    pub mss: (u32, u32),
    /// The path MTU that its kernel believes in [byte].
    pub pmtu: u32,
    /// What its kernel would agree upon, as `options`, and 16: MPTCP.
    pub able: u8,
    /// STAMP's port; 0: none.
    pub stamp_port: u16,
}

/// One connection over one path.
#[derive(Clone, Debug, Serialize)]
pub struct LookPath {
    /// `answered`, `refused`, `silent`, `unreachable`, `old` (the far end does not know the question), `lost` or `foreign`.
    pub outcome: &'static str,
    /// In words, where it was not answered.
    pub reason: Option<String>,
    /// As this end sees it.
    pub near: Option<Look>,
    /// As the far end sees it.
    pub far: Option<Look>,
}

/// What the kernel of `maker` would agree upon.
pub(crate) fn able(maker: &dyn SocketMaker, mptcp: bool) -> u8 {
    // without /proc, as in an empty root: Linux has them on
    let on = |name: &str| maker.sysctl(name).map_or(true, |value| value != "0");
    let settings = SETTINGS.iter().filter(|(name, _)| on(name)).map(|(_, bit)| bit).sum::<u8>();
    settings | if mptcp { MPTCP } else { 0 }
}

/// A connection as this end sees it.
pub(crate) fn seen(socket: &Socket, able: u8, stamp_port: u16) -> Seen {
    let mptcp = socket.protocol().is_ok_and(|p| p == Some(socket2::Protocol::MPTCP));
    let connection = if mptcp { info::mptcp(socket).ok().flatten() } else { None };
    let transport = match (&connection, mptcp) {
        (Some(c), _) if !c.fallback => Transport::Mptcp,
        (_, true) => Transport::Fallen,
        _ => Transport::Tcp,
    };
    let first = connection.as_ref().and_then(|c| c.subflows.first().map(|s| s.tcp));
    let tcp = first.or_else(|| info::tcp(socket).ok()).unwrap_or_default();
    let canonical = |a: SocketAddr| SocketAddr::new(a.ip().to_canonical(), a.port());
    Seen {
        peer: socket.peer_addr().ok().and_then(|a| a.as_socket()).map(canonical),
        local: socket.local_addr().ok().and_then(|a| a.as_socket()).map(canonical),
        transport,
        subflows: connection.map_or(0, |c| c.subflows.len().min(255) as u8),
        options: tcp.options,
        scales: tcp.scales,
        mss: (tcp.mss, tcp.advertised_mss),
        pmtu: tcp.pmtu,
        able,
        stamp_port,
    }
}

fn told(seen: &Seen) -> Look {
    let transport = match seen.transport {
        Transport::Tcp => "tcp",
        Transport::Mptcp => "mptcp",
        Transport::Fallen => "fallen",
        Transport::Unknown => "unknown",
    };
    let Seen { peer, local, options, scales, mss, pmtu, able, stamp_port, .. } = *seen;
    Look { peer, local, transport, options, scales, mss, pmtu, able, stamp_port }
}

impl Client {
    /// Makes a connection over `path` and lets both ends say what they see of it, twice, so that options which are lost
    /// from data are missed, too.
    ///
    /// # Errors
    /// The system's, and a path that cannot be; what the network does is no error.
    pub fn look(&self, path: &PathAddr, protocol: Protocol) -> Result<LookPath, NetError> {
        let to = SocketAddr::new(path.remote, self.server().port());
        let socket = self.maker().tcp(Family::of(to.ip()), protocol).map_err(match protocol {
            Protocol::Mptcp => NetError::NoMptcp,
            Protocol::Tcp => |source| NetError::System { what: "making a TCP socket", source },
        })?;
        let nothing = |outcome, reason: String| LookPath { outcome, reason: Some(reason), near: None, far: None };
        let until = Instant::now() + PATIENCE;
        match connect(&socket, Some(SocketAddr::new(path.local, 0)), to, None, Some(until)) {
            Ok(()) => {}
            Err(NetError::Connect { source, .. }) => return Ok(nothing(outcome(&source), source.to_string())),
            Err(error) => return Err(error),
        }
        let (mut machine, first) = self.next_look();
        let mut far = None;
        for number in [first, self.look_number()] {
            match ask(&socket, &mut machine, number, until) {
                Ok(seen) => far = Some(seen),
                Err(Unanswered::Session(SessionError::Rejected(Rejection::Denied(Denial::Unsupported)))) => {
                    return Ok(nothing("old", "the far end does not know this question".into()));
                }
                Err(Unanswered::Session(error)) => return Ok(nothing("foreign", error.to_string())),
                Err(Unanswered::Stream(error)) => return Ok(nothing("lost", error.to_string())),
            }
        }
        let near = seen(&socket, able(self.maker(), true), 0);
        Ok(LookPath { outcome: "answered", reason: None, near: Some(told(&near)), far: far.as_ref().map(told) })
    }
}

fn outcome(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED | libc::ECONNRESET) => "refused",
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EACCES | libc::EPERM) => "unreachable",
        _ => "silent",
    }
}

enum Unanswered {
    Stream(io::Error),
    Session(SessionError),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Unanswered {
        Unanswered::Stream(error)
    }
}

fn ask(socket: &Socket, machine: &mut ClientLook, number: u64, until: Instant) -> Result<Seen, Unanswered> {
    // some hundred bytes, which a fresh socket takes at once
    socket.send_with_flags(&machine.ask(number), libc::MSG_NOSIGNAL)?;
    let mut buffer = [0; 4096];
    loop {
        if !poll::readable(socket.as_fd(), until)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer").into());
        }
        match (&*socket).read(&mut buffer) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed").into()),
            Ok(n) => {
                if let Some(seen) = machine.receive(&buffer[..n]).map_err(Unanswered::Session)? {
                    return Ok(seen);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
    }
}
