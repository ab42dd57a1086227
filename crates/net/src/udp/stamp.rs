//! STAMP (RFC 8762) on real sockets: the reflector that answers, and the sender that measures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_base::{Nanos, PathAddr};
use pathcast_measure::stamp::{
    Reflector, ReflectorClock, ReflectorOptions, Request, Sender, SenderOptions, StampReport,
};

use super::client::{DriveOptions, drive};
use super::clock::SessionClock;
use super::far::listen;
use super::receive::{AT_ONCE, Arrival, Reader};
use super::socket::{Outgoing, Target, UdpSocket};
use crate::error::NetError;
use crate::maker::SocketMaker;
use crate::poll;

/// How soon a reflector notices that it is to stop.
const TICK: Duration = Duration::from_millis(100);
/// How often it looks at what the kernel says of its clock.
const LOOK: Nanos = Nanos::secs(1);

/// A running reflector; stops when dropped.
pub struct StampReflector {
    local: Vec<SocketAddr>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
    ignored: AtomicU64,
}

impl StampReflector {
    /// Listens on all addresses. The standard's port is [`pathcast_measure::stamp::STAMP_PORT`], which needs a privilege; port
    /// 0: the system chooses one, the same for all. What comes from these ports has no answer.
    ///
    /// # Errors
    /// Usage without an address, Runtime when one cannot be listened on, Missing for a port below 1024 without the privilege.
    pub fn start(
        maker: &dyn SocketMaker,
        listen_on: &[SocketAddr],
        mut options: ReflectorOptions,
    ) -> Result<StampReflector, NetError> {
        let (sockets, local) = listen(maker, listen_on)?;
        options.own_ports.extend(local.iter().map(SocketAddr::port));
        let shared = Arc::new(Shared::default());
        let with = shared.clone();
        let work = move || {
            let clock = SessionClock::start();
            let reflector = Reflector::new(options);
            Loop { looked: clock.now(), state: state(&clock), clock, reflector, shared: with }.run(&sockets);
        };
        let thread = thread::Builder::new().name("pathcast-stamp".into()).spawn(work);
        let thread = Some(thread.map_err(NetError::system("starting a thread"))?);
        Ok(StampReflector { local, shared, thread })
    }

    /// Where it listens, the chosen port included.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Packets that had an answer.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Packets that had none: see [`Reflector`], and what was sent to many.
    pub fn ignored(&self) -> u64 {
        self.shared.ignored.load(Ordering::Relaxed)
    }

    /// Stops listening.
    pub fn stop(self) {}
}

impl Drop for StampReflector {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it has said why, if it panicked
        }
    }
}

fn state(clock: &SessionClock) -> ReflectorClock {
    let host = clock.state();
    ReflectorClock { synchronised: host.synchronised, error: host.max_error }
}

struct Loop {
    clock: SessionClock,
    state: ReflectorClock,
    looked: Nanos,
    reflector: Reflector,
    shared: Arc<Shared>,
}

impl Loop {
    fn run(mut self, sockets: &[UdpSocket]) {
        let mut reader = Reader::new();
        let mut polled: Vec<_> = sockets.iter().map(|s| poll::want(fd(s), libc::POLLIN)).collect();
        while !self.shared.stop.load(Ordering::Relaxed) {
            // whatever it says, the sockets are read: an error of one is over when it has been told
            let _ = poll::wait(&mut polled, Instant::now() + TICK);
            self.look_at_clock();
            for socket in sockets {
                let _ = reader.packets(socket, AT_ONCE, |arrival| self.answer(socket, &arrival));
                // stamps and errors of what was sent are not needed, but would keep the thread awake
                while matches!(reader.told(socket, AT_ONCE, |_| ()), Ok(AT_ONCE)) {}
            }
        }
    }

    fn look_at_clock(&mut self) {
        self.clock.refresh();
        if self.clock.is_stale() {
            self.clock = SessionClock::start(); // senders want to know the time of day
            self.looked = Nanos::ZERO;
        }
        let now = self.clock.now();
        if now.saturating_sub(self.looked) > LOOK {
            (self.looked, self.state) = (now, state(&self.clock));
        }
    }

    fn answer(&mut self, socket: &UdpSocket, arrival: &Arrival<'_>) {
        let sent = self.try_answer(socket, arrival).is_some();
        let count = if sent { &self.shared.answered } else { &self.shared.ignored };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn try_answer(&mut self, socket: &UdpSocket, arrival: &Arrival<'_>) -> Option<()> {
        let local = Some(arrival.local?); // none: it was sent to many, and must not be answered
        let at = arrival.stamp.and_then(|stamp| self.clock.of_kernel(stamp)).unwrap_or_else(|| self.clock.now());
        let request = Request { from: arrival.from, packet: arrival.payload, ttl: arrival.ttl, at };
        let answer = self.reflector.reflect(&request, self.clock.now(), self.state)?;
        let to = Some(Target { remote: arrival.from, local });
        let packet = Outgoing { to, head: &answer, filling: &[], dscp: arrival.dscp, ecn: 0 };
        // the second try is for an error of an earlier packet, which is over when it has been told
        socket.send(&packet).or_else(|_| socket.send(&packet)).ok()
    }
}

fn fd(socket: &UdpSocket) -> BorrowedFd<'_> {
    // SAFETY: the socket is open for as long as it is borrowed
    unsafe { BorrowedFd::borrow_raw(socket.fd()) }
}

/// Measures towards a reflector at `to`, from `local` or whatever address the kernel chooses. What `sender` says of this
/// host's clock is replaced by what the kernel says of it.
///
/// # Errors
/// As [`drive`], and Usage for a code point above 63. That nobody answers is no error.
pub fn stamp_measure(
    maker: &dyn SocketMaker,
    local: Option<IpAddr>,
    to: SocketAddr,
    sender: SenderOptions,
    options: DriveOptions<'_>,
) -> Result<StampReport, NetError> {
    if sender.dscp > 63 {
        return Err(NetError::Argument(format!("code point {}: 63 is the largest", sender.dscp)));
    }
    let any = if to.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let path = PathAddr::new("stamp", local.unwrap_or(any), to.ip());
    let host = options.clock.state();
    let sender = SenderOptions { synchronised: host.synchronised, error: host.max_error, ..sender };
    let mut sender = Sender::new(sender);
    drive(maker, std::slice::from_ref(&path), to.port(), &mut sender, options)?;
    Ok(sender.report())
}
