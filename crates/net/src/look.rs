//! What lies between two hosts, by real connections: what each end sees of the same one.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pathcast_base::{PathAddr, Protocol};
use pathcast_session::{ClientLook, Denial, HEARS, Rejection, Seen, SessionError, Transport};
use serde::Serialize;
use socket2::Socket;

use crate::client::Client;
use crate::connect::connect;
use crate::error::NetError;
use crate::info;
use crate::join_look::{self, Joined};
use crate::maker::{Family, SocketMaker, bind};
use crate::payload;
use crate::poll;
use crate::raw::{ACK, CWR, ECE, RST, RawTcp, SYN};

/// A SYN that is not answered is sent again after this.
const AGAIN: Duration = Duration::from_secs(1);
/// Options that [`able`] counts, by the names of their settings.
const SETTINGS: [(&str, u8); 4] =
    [("ipv4/tcp_timestamps", 1), ("ipv4/tcp_sack", 2), ("ipv4/tcp_window_scaling", 4), ("ipv4/tcp_ecn", 8)];
/// Beside them: MPTCP.
const MPTCP: u8 = 16;

/// One connection over one path.
#[derive(Clone, Debug, Serialize)]
pub struct LookPath {
    /// `answered`, `refused`, `silent`, `unreachable`, `old` (the far end does not know the question), `lost` or `foreign`.
    pub outcome: &'static str,
    /// In words, where it was not answered.
    pub reason: Option<String>,
    /// As this end sees it.
    pub near: Option<Seen>,
    /// As the far end sees it.
    pub far: Option<Seen>,
    /// The time of day here when it was asked, and when it had answered [ns since 1970].
    pub asked: (u64, u64),
    /// Timestamps of the last segment that came: the far end's, and this end's that it echoes. None: none came, or this
    /// process may not look at segments.
    pub timestamps: Option<(u32, u32)>,
    /// Of MPTCP: a further subflow over the same path.
    pub join: Option<Joined>,
}

/// What became of a connection that asks for explicit congestion notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ecn {
    /// `agreed`, `declined`, `refused`, `unreachable`, `silent`, or `untried`.
    pub outcome: &'static str,
    /// In words, where it was untried.
    pub reason: Option<String>,
}

/// What the kernel of `maker` would agree upon.
pub(crate) fn able(maker: &dyn SocketMaker, mptcp: bool) -> u8 {
    // without /proc, as in an empty root: Linux has them on
    let on = |name: &str| maker.sysctl(name).map_or(true, |value| value != "0");
    let settings = SETTINGS.iter().filter(|(name, _)| on(name)).map(|(_, bit)| bit).sum::<u8>();
    settings | if mptcp { MPTCP } else { 0 }
}

/// A connection as this end sees it.
pub(crate) fn seen(socket: &Socket, able: u8) -> Seen {
    let mptcp = socket.protocol().is_ok_and(|p| p == Some(socket2::Protocol::MPTCP));
    let connection = if mptcp { info::mptcp(socket).ok().flatten() } else { None };
    let first = connection.as_ref().and_then(|c| c.subflows.first().map(|s| s.tcp));
    // no open connection is without a largest segment: qemu's emulation of other processors passes 4 bytes, which say nothing
    let told = first.or_else(|| info::tcp(socket).ok()).filter(|tcp| tcp.mss > 0);
    let transport = match (&connection, mptcp) {
        (Some(c), _) if !c.fallback => Transport::Mptcp,
        // one that has fallen back tells of TCP
        (_, true) if told.is_none() => Transport::Unknown,
        (_, true) => Transport::Fallen,
        _ => Transport::Tcp,
    };
    let tcp = told.unwrap_or_default();
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
        time_of_day: Some(time_of_day()),
        timestamp: info::timestamp(socket).ok().filter(|_| tcp.options & 1 != 0),
        ..Seen::default()
    }
}

/// [ns since 1970]
fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl Client {
    /// Makes a connection over `path` and lets both ends say what they see of it, twice, so that options which are lost
    /// from data are missed, too. Over MPTCP, where this process may choose subflows, it asks for a further one. Silence is
    /// waited for so long as `patience` says.
    ///
    /// # Errors
    /// The system's, and a path that cannot be; what the network does is no error.
    pub fn look(&self, path: &PathAddr, protocol: Protocol, patience: Duration) -> Result<LookPath, NetError> {
        let to = SocketAddr::new(path.remote, self.server().port());
        let family = Family::of(to.ip());
        let (socket, joiner) = match protocol {
            Protocol::Mptcp => {
                let (socket, joiner) = join_look::make(self.maker(), family).map_err(NetError::NoMptcp)?;
                (socket, Some(joiner))
            }
            Protocol::Tcp => {
                (self.maker().tcp(family, protocol).map_err(NetError::system("making a TCP socket"))?, None)
            }
        };
        // made before there is anything to hear
        let raw = RawTcp::open(self.maker(), path.local, path.remote).ok();
        let until = Instant::now() + patience;
        match connect(&socket, Some(SocketAddr::new(path.local, 0)), to, None, Some(until)) {
            Ok(()) => {}
            Err(NetError::Connect { source, .. }) => return Ok(LookPath::nothing(outcome(&source), source)),
            Err(error) => return Err(error),
        }
        let (mut machine, first) = self.next_look();
        let (mut far, mut asked) = (None, (0, 0));
        for number in [first, self.look_number()] {
            asked.0 = time_of_day();
            match ask(&socket, &mut machine, number, until) {
                Ok(seen) => far = Some(seen),
                Err(Unanswered::Session(SessionError::Rejected(Rejection::Denied(Denial::Unsupported)))) => {
                    return Ok(LookPath::nothing("old", "the far end does not know this question"));
                }
                Err(Unanswered::Session(error)) => return Ok(LookPath::nothing("foreign", error)),
                Err(Unanswered::Stream(error)) => return Ok(LookPath::nothing("lost", error)),
            }
            asked.1 = time_of_day();
        }
        let near = seen(&socket, able(self.maker(), true));
        if far.as_ref().and_then(|far| far.knows).is_some_and(|knows| knows & HEARS != 0) {
            // a courtesy to who runs the far end
            let _ = socket.send_with_flags(&machine.tell(&near), libc::MSG_NOSIGNAL);
        }
        let timestamps = raw.and_then(|raw| last_timestamps(&raw, to.port(), near.local?.port()));
        let join = joiner.map(|joiner| match joiner {
            Ok(mut joiner) if near.transport == Transport::Mptcp => joiner.join(&socket, Instant::now() + patience),
            Ok(_) => Joined { outcome: "untried", reason: Some("the connection is not MPTCP".into()) },
            Err(untried) => untried,
        });
        Ok(LookPath { outcome: "answered", reason: None, near: Some(near), far, asked, timestamps, join })
    }

    /// Asks for a connection with explicit congestion notification over `path` (RFC 3168, section 6.1.1), which is not
    /// completed.
    ///
    /// # Errors
    /// A path that cannot be.
    pub fn look_ecn(&self, path: &PathAddr, patience: Duration) -> Result<Ecn, NetError> {
        let untried = |why: io::Error| Ok(Ecn { outcome: "untried", reason: Some(why.to_string()) });
        let raw = match RawTcp::open(self.maker(), path.local, path.remote) {
            Ok(raw) => raw,
            Err(error) => return untried(error),
        };
        // a port that nobody else has: the kernel answers what comes to it with a reset, which is the connection's end
        let place = self.maker().tcp(Family::of(path.local), Protocol::Tcp);
        let place = place.and_then(|socket| bind(&socket, SocketAddr::new(path.local, 0)).map(|()| socket));
        let place = place.map_err(NetError::system("binding a TCP socket"))?;
        let own = place.local_addr().ok().and_then(|a| a.as_socket()).map_or(0, |a| a.port());
        let port = self.server().port();
        let sequence = u32::from_be_bytes(payload::random().map_err(NetError::system("drawing a number"))?);
        let end = Instant::now() + patience;
        while Instant::now() < end {
            match raw.send_syn(own, port, sequence, ECE | CWR) {
                Ok(()) => {}
                Err(error) if is_networks(&error) => return Ok(Ecn { outcome: outcome(&error), reason: None }),
                Err(error) => return untried(error),
            }
            let until = end.min(Instant::now() + AGAIN);
            loop {
                let segment = match raw.next(until) {
                    Ok(Some(segment)) => segment,
                    Ok(None) => break,
                    Err(error) => return Ok(Ecn { outcome: outcome(&error), reason: None }),
                };
                if (segment.source, segment.target) != (port, own) {
                    continue;
                }
                let outcome = match segment.flags {
                    flags if flags & RST != 0 => "refused",
                    flags if flags & (SYN | ACK) != SYN | ACK => continue,
                    flags if flags & (ECE | CWR) == ECE => "agreed",
                    _ => "declined",
                };
                return Ok(Ecn { outcome, reason: None });
            }
        }
        Ok(Ecn { outcome: "silent", reason: None })
    }
}

impl LookPath {
    fn nothing(outcome: &'static str, reason: impl ToString) -> LookPath {
        let reason = Some(reason.to_string());
        LookPath { outcome, reason, near: None, far: None, asked: (0, 0), timestamps: None, join: None }
    }
}

/// Of the segments that have come by now, those of the last one that has any.
fn last_timestamps(raw: &RawTcp, from: u16, to: u16) -> Option<(u32, u32)> {
    let mut last = None;
    while let Ok(Some(segment)) = raw.next(Instant::now()) {
        if (segment.source, segment.target) == (from, to) {
            last = segment.timestamps.or(last);
        }
    }
    last
}

fn outcome(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED | libc::ECONNRESET) => "refused",
        None | Some(libc::ETIMEDOUT) => "silent",
        // whatever else ICMP says, as that the host has no TCP
        Some(_) => "unreachable",
    }
}

/// Whether it is one that ICMP brought, as to an earlier packet of the same socket.
fn is_networks(error: &io::Error) -> bool {
    let of_icmp = [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ENOPROTOOPT];
    error.raw_os_error().is_some_and(|code| of_icmp.contains(&code))
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
