//! connect() with an end, and the errors that it gives.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::error::NetError;
use crate::maker;
use crate::poll;

/// How long a connection may take to come about.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(15);
/// How often a flag is looked at while waiting.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Makes `socket` non-blocking and connects it, from `local` if given; within 15 s, and before `until`.
pub(crate) fn connect(
    socket: &Socket,
    local: Option<SocketAddr>,
    to: SocketAddr,
    cancel: Option<&AtomicBool>,
    until: Option<Instant>,
) -> Result<(), NetError> {
    let from = local.map(|local| local.ip());
    let failed = |source| NetError::Connect { from, to, source };
    socket.set_nonblocking(true).map_err(failed)?;
    if let Some(local) = local {
        maker::bind(socket, local).map_err(|e| match e.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => NetError::LocalAddress(local.ip()),
            _ => failed(e),
        })?;
    }
    let began = Instant::now();
    let deadline = until.map_or(began + CONNECT_DEADLINE, |until| until.min(began + CONNECT_DEADLINE));
    match socket.connect(&to.into()) {
        Err(e) if e.raw_os_error() != Some(libc::EINPROGRESS) => return Err(failed(e)),
        _ => {}
    }
    loop {
        check(cancel)?;
        let now = Instant::now();
        if now >= deadline {
            let waited = format!("no answer within {:.3} s", now.duration_since(began).as_secs_f64());
            return Err(failed(io::Error::new(io::ErrorKind::TimedOut, waited)));
        }
        let mut fds = [poll::want(socket.as_fd(), libc::POLLOUT)];
        if poll::wait(&mut fds, deadline.min(now + TICK)).map_err(failed)? {
            return match socket.take_error().map_err(failed)? {
                Some(e) => Err(failed(e)),
                None => Ok(()),
            };
        }
    }
}

/// Has the caller's flag been raised?
pub(crate) fn check(cancel: Option<&AtomicBool>) -> Result<(), NetError> {
    match cancel {
        Some(flag) if flag.load(Ordering::Relaxed) => Err(NetError::Interrupted),
        _ => Ok(()),
    }
}
