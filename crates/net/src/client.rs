//! A session with a far end, kept open between transfers and opened again where it was lost.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pathcast_base::{PathAddr, Protocol, TransferReport};
use pathcast_session::{ClientControl, ClientTransfer, ControlStatus, Denial, Key, Rejection, SessionKeys, Welcome};
use socket2::Socket;

use crate::connect::{check, connect};
use crate::error::NetError;
use crate::maker::{Family, SocketMaker};
use crate::paths::{self, PathSurvey};
use crate::payload;
use crate::poll;
use crate::transfer::{self, TransferOptions, check_control};

/// How long the far end may take to answer a control message.
const ANSWER: Duration = Duration::from_secs(10);

/// A client with an open session. Its methods may be called from several threads at once.
pub struct Client {
    maker: Arc<dyn SocketMaker>,
    server: SocketAddr,
    key: Key,
    control: Mutex<Control>,
    /// Far addresses at which somebody has proved that he holds the key.
    proven: Mutex<BTreeSet<IpAddr>>,
    next_transfer: AtomicU64,
}

struct Control {
    socket: Socket,
    machine: ClientControl,
    local: IpAddr,
}

impl Client {
    /// Opens a session with the far end at `server`.
    ///
    /// # Errors
    /// Runtime when it cannot be reached, Refused when it does not accept the key or a limit is reached.
    pub fn connect(maker: Arc<dyn SocketMaker>, server: SocketAddr, key: Key) -> Result<Client, NetError> {
        let control = Mutex::new(open(&*maker, server, &key)?);
        let proven = Mutex::new(BTreeSet::from([server.ip()]));
        Ok(Client { maker, server, key, control, proven, next_transfer: AtomicU64::new(1) })
    }

    /// The address that was connected to.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// What the far end told when the session was opened: its addresses and limits, and the keys of the session.
    pub fn session(&self) -> (Welcome, SessionKeys) {
        let control = locked(&self.control);
        let (welcome, keys) = control.machine.session().expect("a session is opened before a client exists");
        (welcome.clone(), keys.clone())
    }

    /// The addresses under which the far end says that it can be reached, the best first.
    pub fn server_addresses(&self) -> Vec<IpAddr> {
        self.session().0.addresses
    }

    /// This host's addresses paired with the far end's: which pairs can be paths, and why the others cannot.
    ///
    /// A pair is usable when the kernel has a route for it that leaves by the interface of its local address.
    ///
    /// # Errors
    /// The system's.
    pub fn survey(&self) -> Result<PathSurvey, NetError> {
        let local = locked(&self.control).local;
        paths::survey(&*self.maker, (local, self.server), &self.server_addresses())
    }

    /// Sends `bytes` over one path by plain TCP; with few bytes, a probe.
    ///
    /// # Errors
    /// Usage for an unknown controller or a foreign address, Refused by a limit, Runtime when it breaks or stalls,
    /// Interrupted by the caller's flag.
    pub fn tcp_transfer(
        &self,
        path: &PathAddr,
        bytes: u64,
        options: &mut TransferOptions<'_>,
    ) -> Result<TransferReport, NetError> {
        transfer::run(self, std::slice::from_ref(path), bytes, Protocol::Tcp, options)
    }

    /// Sends `bytes` by MPTCP over all `paths`, the first of which carries the first subflow; with few bytes, a probe.
    ///
    /// # Errors
    /// As [`Client::tcp_transfer`]; Missing where the kernel makes no MPTCP sockets. A path that could not be joined is
    /// no error: the report says why.
    pub fn mptcp_transfer(
        &self,
        paths: &[PathAddr],
        bytes: u64,
        options: &mut TransferOptions<'_>,
    ) -> Result<TransferReport, NetError> {
        transfer::run(self, paths, bytes, Protocol::Mptcp, options)
    }

    /// Can a transfer have this congestion controller?
    ///
    /// # Errors
    /// Usage for one that the kernel does not have, Missing for one that this user may not choose.
    pub fn check_control(&self, name: &str) -> Result<(), NetError> {
        check_control(self.maker(), Family::of(self.server.ip()), name)
    }

    pub(crate) fn maker(&self) -> &dyn SocketMaker {
        &*self.maker
    }

    /// Makes sure that somebody at the far address of `path` holds the key. A far end can name any address, and payload for it
    /// would go to a host that has not asked for it.
    pub(crate) fn prove(&self, path: &PathAddr, cancel: Option<&AtomicBool>) -> Result<(), NetError> {
        if locked(&self.proven).contains(&path.remote) {
            return Ok(());
        }
        let to = SocketAddr::new(path.remote, self.server.port());
        // it is told no more than Hello: no session is opened
        greet(&*self.maker, Some(path.local), to, &self.key, cancel)?;
        locked(&self.proven).insert(path.remote);
        Ok(())
    }

    /// Makes sure that the session is open, and gives the next transfer in it.
    pub(crate) fn next_transfer(
        &self,
        bytes: u64,
        options: &TransferOptions<'_>,
    ) -> Result<(ClientTransfer, bool), NetError> {
        let mut control = locked(&self.control);
        if control.ping(self.server).is_err() {
            check(options.cancel)?;
            *control = open(&*self.maker, self.server, &self.key)?;
        }
        let (welcome, keys) = control.machine.session().expect("it has just been opened or has answered");
        if bytes > welcome.max_transfer_bytes {
            let rejection = Rejection::Denied(Denial::Size);
            return Err(NetError::Rejected { to: self.server, rejection });
        }
        let number = self.next_transfer.fetch_add(1, Ordering::Relaxed);
        let name = options.control.unwrap_or_default();
        Ok((ClientTransfer::new(welcome, keys, number, bytes, name), welcome.mptcp))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let control = self.control.get_mut().unwrap_or_else(PoisonError::into_inner);
        control.machine.bye();
        // a courtesy: the far end notices the closed connection as well
        let _ = control.socket.write(&control.machine.output());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(maker: &dyn SocketMaker, server: SocketAddr, key: &Key) -> Result<Control, NetError> {
    let mut control = greet(maker, None, server, key, None)?;
    control.exchange(server, |status| matches!(status, ControlStatus::Open { .. }))?;
    Ok(control)
}

/// A connection whose other end has proved that it holds the key.
fn greet(
    maker: &dyn SocketMaker,
    from: Option<IpAddr>,
    to: SocketAddr,
    key: &Key,
    cancel: Option<&AtomicBool>,
) -> Result<Control, NetError> {
    let failed = |source| NetError::Connect { from, to, source };
    let socket = maker.tcp(Family::of(to.ip()), Protocol::Tcp).map_err(failed)?;
    connect(&socket, from, to, cancel, None)?;
    let local = socket.local_addr().map_err(failed)?.as_socket().map(|a| a.ip());
    let local = local.ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
    let nonce = payload::random().map_err(NetError::system("drawing a nonce"))?;
    let mut control = Control { socket, machine: ClientControl::new(key, nonce), local };
    control.exchange(to, |status| status != ControlStatus::Greeting)?;
    Ok(control)
}

impl Control {
    fn ping(&mut self, to: SocketAddr) -> Result<(), NetError> {
        self.machine.ping();
        self.exchange(to, |status| matches!(status, ControlStatus::Open { answered, sent } if answered == sent))
    }

    /// Talks until `done`, or for 10 s.
    fn exchange(&mut self, to: SocketAddr, done: impl Fn(ControlStatus) -> bool) -> Result<(), NetError> {
        let lost = |source| NetError::Control { to, source };
        let deadline = Instant::now() + ANSWER;
        let mut unsent = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if unsent.is_empty() && done(self.machine.status()) {
                return Ok(());
            }
            unsent.append(&mut self.machine.output());
            if Instant::now() >= deadline {
                return Err(lost(io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s")));
            }
            let events = if unsent.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
            let mut fds = [poll::want(self.socket.as_fd(), events)];
            poll::wait(&mut fds, deadline).map_err(lost)?;
            if fds[0].revents & !libc::POLLOUT != 0 {
                match self.socket.read(&mut buffer) {
                    Ok(0) => return Err(lost(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the far end"))),
                    Ok(n) => drop(self.machine.receive(&buffer[..n]).map_err(|e| NetError::session(to, e))?),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(lost(e)),
                }
            }
            if fds[0].revents & libc::POLLOUT != 0 && !unsent.is_empty() {
                match self.socket.send_with_flags(&unsent, libc::MSG_NOSIGNAL) {
                    Ok(n) => drop(unsent.drain(..n)),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(lost(e)),
                }
            }
        }
    }
}
