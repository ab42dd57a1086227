//! A control connection: its greeting, by which the other end proves that it holds the key, and what is said on it.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pathcast_base::Protocol;
use pathcast_session::{ClientControl, ControlStatus, Key};
use socket2::Socket;

use crate::connect::{TICK, check, connect};
use crate::error::NetError;
use crate::maker::{Family, SocketMaker};
use crate::payload;
use crate::poll;

/// How long the far end may take to answer a control message.
const ANSWER: Duration = Duration::from_secs(10);

pub(crate) struct Control {
    pub socket: Socket,
    pub machine: ClientControl,
    unsent: Vec<u8>,
}

/// A connection whose other end has proved that it holds the key.
pub(crate) fn greet(
    maker: &dyn SocketMaker,
    from: Option<IpAddr>,
    to: SocketAddr,
    key: &Key,
    cancel: Option<&AtomicBool>,
    until: Option<Instant>,
) -> Result<Control, NetError> {
    let failed = |source| NetError::Connect { from, to, source };
    let socket = maker.tcp(Family::of(to.ip()), Protocol::Tcp).map_err(failed)?;
    connect(&socket, from.map(|from| SocketAddr::new(from, 0)), to, cancel, until)?;
    let nonce = payload::random().map_err(NetError::system("drawing a nonce"))?;
    let mut control = Control { socket, machine: ClientControl::new(key, nonce), unsent: Vec::new() };
    let greeted = |status| status != ControlStatus::Greeting;
    match until {
        None => control.exchange(to, cancel, greeted)?,
        Some(until) if control.talk(to, until, cancel, greeted)? => {}
        Some(_) => return Err(NetError::Control { to, source: io::Error::new(io::ErrorKind::TimedOut, "no answer") }),
    }
    Ok(control)
}

impl Control {
    /// Opens the session.
    ///
    /// # Errors
    /// Refused by a limit of the far end, or lost.
    pub fn open(&mut self, to: SocketAddr) -> Result<(), NetError> {
        self.exchange(to, None, |status| matches!(status, ControlStatus::Open { .. }))
    }

    /// Asks whether the session is open; to be waited for by [`Control::answered`].
    pub fn ping(&mut self) {
        self.machine.ping();
    }

    /// Whether all pings are answered before `until`.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn answered(&mut self, to: SocketAddr, until: Instant) -> Result<bool, NetError> {
        self.talk(
            to,
            until,
            None,
            |status| matches!(status, ControlStatus::Open { answered, sent } if answered == sent),
        )
    }

    /// Talks until `done`, or for 10 s.
    fn exchange(
        &mut self,
        to: SocketAddr,
        cancel: Option<&AtomicBool>,
        done: impl Fn(ControlStatus) -> bool,
    ) -> Result<(), NetError> {
        if self.talk(to, Instant::now() + ANSWER, cancel, done)? {
            return Ok(());
        }
        let source = io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s");
        Err(NetError::Control { to, source })
    }

    /// Talks until `done`, which it says, or the deadline.
    fn talk(
        &mut self,
        to: SocketAddr,
        deadline: Instant,
        cancel: Option<&AtomicBool>,
        done: impl Fn(ControlStatus) -> bool,
    ) -> Result<bool, NetError> {
        let lost = |source| NetError::Control { to, source };
        let mut buffer = [0; 4096];
        loop {
            if self.unsent.is_empty() && done(self.machine.status()) {
                return Ok(true);
            }
            check(cancel)?;
            self.unsent.append(&mut self.machine.output());
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            let events = if self.unsent.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
            let mut fds = [poll::want(self.socket.as_fd(), events)];
            let wake = if cancel.is_some() { deadline.min(now + TICK) } else { deadline };
            poll::wait(&mut fds, wake).map_err(lost)?;
            if fds[0].revents & !libc::POLLOUT != 0 {
                match self.socket.read(&mut buffer) {
                    Ok(0) => return Err(lost(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the far end"))),
                    Ok(n) => drop(self.machine.receive(&buffer[..n]).map_err(|e| NetError::session(to, e))?),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(lost(e)),
                }
            }
            if fds[0].revents & libc::POLLOUT != 0 && !self.unsent.is_empty() {
                match self.socket.send_with_flags(&self.unsent, libc::MSG_NOSIGNAL) {
                    Ok(n) => drop(self.unsent.drain(..n)),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(lost(e)),
                }
            }
        }
    }
}
