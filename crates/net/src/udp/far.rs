//! The far end on real sockets: one thread that listens on all addresses and carries what answers the clients.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pathcast_base::Nanos;
use pathcast_measure::machine::{Reply, Train};
use pathcast_measure::{Address, ClockState, FarAction, FarEnd, FarEvent};

use super::carrier::{Carrier, CarrierEvent, Tally};
use super::client::{check, check_marks};
use super::clock::SessionClock;
use super::socket::{Target, UdpSocket};
use super::urgency::Urgency;
use crate::error::NetError;
use crate::maker::SocketMaker;
use crate::netlink::octets;

/// How soon the thread notices that it is to stop.
const TICK: Nanos = Nanos::millis(100);
/// After a panic: one that comes again and again leaves the processor to others.
const PAUSE: Duration = Duration::from_millis(10);
/// How often it looks at what the kernel says of its clock.
const LOOK: Nanos = Nanos::secs(1);
/// Actions between two events.
const ACTIONS: u32 = 1_000_000;

/// A client as the far end sees it, and the way back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FarAddress {
    /// The address of this host that it sends to, and that it is answered from.
    pub local: IpAddr,
    /// Where it sends from.
    pub remote: SocketAddr,
    /// Which of the addresses listened on has it.
    socket: usize,
}

impl Address for FarAddress {
    fn bytes(&self) -> Vec<u8> {
        [octets(self.remote.ip()), self.remote.port().to_be_bytes().to_vec()].concat()
    }

    fn source(&self) -> IpAddr {
        self.remote.ip()
    }
}

/// What answers the clients. It has no clock and no sockets.
pub trait FarMachine: Send {
    /// Something has happened.
    fn handle(&mut self, now: Nanos, event: FarEvent<'_, FarAddress>);
    /// What is to be done next; none: nothing until the next event.
    fn next(&mut self, now: Nanos) -> Option<FarAction<FarAddress>>;
    /// Sessions that are open: while there are any, the thread is urgent.
    fn sessions(&self) -> usize;
    /// It has panicked, which has been told: drops what that was about.
    fn recover(&mut self, _now: Nanos) {}
    /// What is known of its clock, every second.
    fn set_clock(&mut self, _clock: ClockState) {}
}

impl FarMachine for FarEnd<FarAddress> {
    fn handle(&mut self, now: Nanos, event: FarEvent<'_, FarAddress>) {
        FarEnd::handle(self, now, event);
    }
    fn next(&mut self, now: Nanos) -> Option<FarAction<FarAddress>> {
        FarEnd::next(self, now)
    }
    fn sessions(&self) -> usize {
        FarEnd::sessions(self)
    }
    fn recover(&mut self, now: Nanos) {
        FarEnd::recover(self, now);
    }
    fn set_clock(&mut self, clock: ClockState) {
        FarEnd::set_clock(self, clock);
    }
}

/// How a far end is to run.
#[derive(Clone, Debug)]
pub struct FarOptions {
    /// Where to listen. Port 0: the system chooses one, the same for all.
    pub listen: Vec<SocketAddr>,
    /// The clock that it is told the time of.
    pub clock: SessionClock,
    /// Asks for real-time scheduling and processors that stay awake while there are sessions, where that is permitted.
    pub urgent: bool,
}

/// A running far end; stops when dropped.
pub struct FarServer<F> {
    local: Vec<SocketAddr>,
    shared: Arc<Shared<F>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<F> {
    far: Mutex<F>,
    tally: Mutex<Tally>,
    stop: AtomicBool,
    stale: AtomicBool,
    faults: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: FarMachine + 'static> FarServer<F> {
    /// Listens on all addresses and lets `far` answer.
    ///
    /// # Errors
    /// Usage without an address, Runtime when one cannot be listened on.
    pub fn start(maker: &dyn SocketMaker, options: FarOptions, far: F) -> Result<FarServer<F>, NetError> {
        let (sockets, local) = listen(maker, &options.listen)?;
        let shared = Shared {
            far: Mutex::new(far),
            tally: Mutex::default(),
            stop: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            faults: AtomicU64::new(0),
        };
        let shared = Arc::new(shared);
        let (with, addresses) = (shared.clone(), local.clone());
        let work = move || {
            let carrier = Carrier::new(options.clock, sockets);
            let urgency = Urgency::new(options.urgent);
            Loop { shared: with, carrier, local: addresses, wake: Nanos::MAX, looked: Nanos::ZERO, urgency }.run();
        };
        let thread = thread::Builder::new().name("pathcast-far".into()).spawn(work);
        let thread = Some(thread.map_err(NetError::system("starting a thread"))?);
        Ok(FarServer { local, shared, thread })
    }

    /// Where it listens, the chosen port included.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Looks at what answers; it does nothing meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(&F) -> T) -> T {
        look(&locked(&self.shared.far))
    }

    /// What its sockets did.
    pub fn tally(&self) -> Tally {
        locked(&self.shared.tally).clone()
    }

    /// Was the system's clock stepped since the start? The clock given to [`FarServer::start`] then goes on as if not, and no
    /// longer shows the time of day; a far end that is started again, when it has no sessions, does.
    pub fn is_stale(&self) -> bool {
        self.shared.stale.load(Ordering::Relaxed)
    }

    /// How often it has panicked, each time over one event, and gone on.
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Stops listening.
    pub fn stop(self) {}
}

impl<F> Drop for FarServer<F> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sockets on all addresses, and what they are bound to.
pub(super) fn listen(
    maker: &dyn SocketMaker,
    addresses: &[SocketAddr],
) -> Result<(Vec<UdpSocket>, Vec<SocketAddr>), NetError> {
    if addresses.is_empty() {
        return Err(NetError::Argument("no address to listen on".into()));
    }
    let mut sockets = Vec::new();
    let mut local: Vec<SocketAddr> = Vec::new();
    for &address in addresses {
        let mut address = address;
        if let (0, Some(first)) = (address.port(), local.first()) {
            address.set_port(first.port());
        }
        let failed = |source| NetError::Listen { address, source };
        let socket = UdpSocket::bind(maker, address).map_err(failed)?;
        local.push(socket.local_addr().map_err(failed)?);
        sockets.push(socket);
    }
    Ok((sockets, local))
}

/// Whose a packet is: the session and its path.
type Key = (u64, usize);

struct Loop<F> {
    shared: Arc<Shared<F>>,
    carrier: Carrier<Key>,
    local: Vec<SocketAddr>,
    wake: Nanos,
    looked: Nanos,
    urgency: Urgency,
}

impl<F: FarMachine> Loop<F> {
    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            // a panic ends what it is about, and not all measuring
            if catch_unwind(AssertUnwindSafe(|| self.turn())).is_err() {
                self.shared.faults.fetch_add(1, Ordering::Relaxed);
                let _ = catch_unwind(AssertUnwindSafe(|| self.recover()));
                thread::sleep(PAUSE);
            }
        }
    }

    fn turn(&mut self) {
        let now = self.carrier.clock.now();
        if self.wake <= now && self.carrier.caught_up(self.wake) {
            self.wake = Nanos::MAX;
            self.tell(FarEvent::Timer);
        } else {
            self.carrier.turn(self.wake.min(now + TICK));
            self.handle_events();
        }
        self.urgency.rest(now);
        let was_stale = self.shared.stale.swap(self.carrier.clock.is_stale(), Ordering::Relaxed);
        if now.saturating_sub(self.looked) > LOOK || was_stale != self.carrier.clock.is_stale() {
            self.looked = now;
            locked(&self.shared.far).set_clock(self.carrier.clock.state());
        }
    }

    fn recover(&mut self) {
        let now = self.carrier.clock.now();
        self.wake = now; // soon asked what it wants
        locked(&self.shared.far).recover(now);
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.carrier.next_event() {
            match event {
                CarrierEvent::Sent { key: (0, _), .. } | CarrierEvent::Unsent { key: (0, _), .. } => {}
                CarrierEvent::Sent { key: (session, path), seq, at, handed } => {
                    self.tell(FarEvent::Sent { session, path, seq, at, handed })
                }
                CarrierEvent::Unsent { key: (session, path), seq } => {
                    self.tell(FarEvent::Unsent { session, path, seq })
                }
                CarrierEvent::Received { socket, datagram, batch } => {
                    if datagram.missed > 0 {
                        self.tell(FarEvent::Missed { packets: datagram.missed });
                    }
                    // none: it was sent to many, and must not be answered
                    if let Some(local) = datagram.local {
                        let from = FarAddress { local, remote: datagram.from, socket };
                        let (packet, size) = (datagram.payload.as_slice(), datagram.size);
                        let (dscp, ecn, at) = (datagram.dscp, datagram.ecn, datagram.at);
                        self.tell(FarEvent::Received { from, packet, size, dscp, ecn, at, batch });
                    }
                    self.carrier.recycle(socket, datagram);
                }
            }
            if self.carrier.interrupts() {
                break;
            }
        }
        if !self.carrier.busy() {
            locked(&self.shared.tally).clone_from(&self.carrier.tally);
        }
    }

    fn tell(&mut self, event: FarEvent<'_, FarAddress>) {
        let shared = self.shared.clone();
        let mut far = locked(&shared.far);
        let now = self.carrier.clock.now(); // one instant for all that follows from it
        far.handle(now, event);
        for _ in 0..ACTIONS {
            let Some(action) = far.next(now) else { break };
            match action {
                FarAction::SendTrain { session, to, train } => self.send(session, to, train),
                FarAction::Reply { session, to, reply } => self.say(session, to, reply),
                FarAction::Stop { session } => self.carrier.retain(|&(whose, _)| whose != session),
                FarAction::WakeAt(at) => self.wake = at,
            }
        }
        if far.sessions() > 0 {
            self.urgency.need(now);
        }
    }

    fn say(&mut self, session: u64, to: FarAddress, reply: Reply) {
        debug_assert_eq!(check_marks(reply.dscp, reply.ecn), Ok(()), "a bug in a far end");
        if to.socket < self.local.len() && check_marks(reply.dscp, reply.ecn).is_ok() {
            let target = Target { remote: to.remote, local: Some(to.local) };
            self.carrier.say((session, reply.path), to.socket, Some(target), reply);
        }
    }

    fn send(&mut self, session: u64, to: FarAddress, train: Train) {
        debug_assert_eq!(check(&train), Ok(()), "a bug in a far end");
        if to.socket < self.local.len() && check(&train).is_ok() {
            let target = Target { remote: to.remote, local: Some(to.local) };
            self.carrier.launch((session, train.path), to.socket, Some(target), train);
        }
    }
}
