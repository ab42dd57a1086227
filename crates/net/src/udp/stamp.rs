//! STAMP (RFC 8762) on real sockets: the reflector that answers, and the sender that measures.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_base::{Nanos, PathAddr};
use pathcast_measure::stamp::{Format, Mode, Reflector, ReflectorClock, Request, Sender, SenderOptions, StampReport};

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

/// How a reflector is to run.
#[derive(Clone, Debug)]
pub struct ReflectOptions {
    /// Where to listen; the standard's port is [`pathcast_measure::stamp::STAMP_PORT`], which needs a privilege. Port 0: the
    /// system chooses one, the same for all.
    pub listen: Vec<SocketAddr>,
    /// Whom it answers: everyone, or those with the key.
    pub mode: Mode,
    /// Does it count its answers of each session, so that senders can tell losses by direction?
    pub stateful: bool,
    /// Answers a second; what comes beyond has none.
    pub most_per_second: u32,
}

impl Default for ReflectOptions {
    /// Open, counting, ten thousand answers a second; listens nowhere.
    fn default() -> Self {
        ReflectOptions { listen: Vec::new(), mode: Mode::Open, stateful: true, most_per_second: 10_000 }
    }
}

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
    /// Listens on all addresses.
    ///
    /// # Errors
    /// Usage without an address, Runtime when one cannot be listened on, Missing for a port below 1024 without the privilege.
    pub fn start(maker: &dyn SocketMaker, options: ReflectOptions) -> Result<StampReflector, NetError> {
        let (sockets, local) = listen(maker, &options.listen)?;
        let shared = Arc::new(Shared::default());
        let with = shared.clone();
        let work = move || {
            let clock = SessionClock::start();
            let reflector = Reflector::new(options.mode, Format::Ntp, options.stateful);
            let limit = Limit::new(options.most_per_second);
            Loop { looked: clock.now(), state: state(&clock), clock, reflector, limit, shared: with }.run(&sockets);
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

    /// Packets that had none: no test packets, not authentic, sent to many, or too many.
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
    limit: Limit,
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
        let from = arrival.from.to_string();
        let request = Request { from: from.as_bytes(), packet: arrival.payload, ttl: arrival.ttl, at };
        let now = self.clock.now();
        let answer = self.reflector.reflect(&request, now, self.state)?;
        self.limit.take(now)?;
        let to = Some(Target { remote: arrival.from, local });
        let packet = Outgoing { to, head: &answer, filling: &[], dscp: arrival.dscp };
        // the second try is for an error of an earlier packet, which is over when it has been told
        socket.send(&packet).or_else(|_| socket.send(&packet)).ok()
    }
}

fn fd(socket: &UdpSocket) -> BorrowedFd<'_> {
    // SAFETY: the socket is open for as long as it is borrowed
    unsafe { BorrowedFd::borrow_raw(socket.fd()) }
}

/// So many a second, and as many at once as a tenth of a second gives.
struct Limit {
    per_second: u64,
    /// What is left [1e-9 of one], and when that was.
    left: u64,
    at: Nanos,
}

impl Limit {
    const ONE: u64 = 1_000_000_000;

    fn new(per_second: u32) -> Limit {
        Limit { per_second: per_second.into(), left: u64::MAX, at: Nanos::ZERO }
    }

    fn take(&mut self, now: Nanos) -> Option<()> {
        let gained = now.saturating_sub(self.at).0.saturating_mul(self.per_second);
        let most = (self.per_second * (Self::ONE / 10)).max(Self::ONE);
        let left = self.left.saturating_add(gained).min(most);
        (self.left, self.at) = (left, now);
        self.left = left.checked_sub(Self::ONE)?;
        Some(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_no_more() {
        let mut limit = Limit::new(100);
        let mut taken = |ms| (0..50).filter(|_| limit.take(Nanos::millis(ms)).is_some()).count();
        assert_eq!([taken(1000), taken(1050), taken(1051), taken(9000)], [10, 5, 0, 10]);
        let mut one = Limit::new(1);
        assert_eq!([0, 999, 1000].map(|ms| one.take(Nanos::millis(5000 + ms)).is_some()), [true, false, true]);
    }
}
