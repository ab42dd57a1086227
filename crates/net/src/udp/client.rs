//! The client's end on real sockets: carries a measurement's machine over its paths, by the rules of
//! [`pathcast_measure::machine`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pathcast_base::{Nanos, PathAddr};
use pathcast_measure::machine::{Action, Event, Machine, Progress, Reply, Train};
use pathcast_session::address::is_one_host;

use super::carrier::{Carrier, CarrierEvent, Tally};
use super::clock::SessionClock;
use super::socket::{Target, UdpSocket};
use super::urgency::Urgency;
use crate::error::NetError;
use crate::maker::SocketMaker;
use crate::places::{Fabric, FlowEnds, Transport};

/// How soon the caller's flag is noticed.
const TICK: Nanos = Nanos::millis(50);
/// How long a machine may take for its goodbye.
const GOODBYE: Nanos = Nanos::secs(1);
/// Actions of a machine between two events.
const ACTIONS: u32 = 1_000_000;

/// How a measurement is to be carried.
pub struct DriveOptions<'a> {
    /// The clock that the machine is told the time of.
    pub clock: SessionClock,
    /// Ends the measurement when it is raised.
    pub cancel: Option<&'a AtomicBool>,
    /// Hears how far it has come; called from the measuring thread, must not block.
    pub on_progress: Option<&'a mut (dyn FnMut(Progress) + Send)>,
    /// Asks for real-time scheduling and processors that stay awake while it lasts, where that is permitted.
    pub urgent: bool,
    /// Who is told which path each flow is to take, before its first packet; paths may then be the same address pair.
    pub fabric: Option<Arc<dyn Fabric>>,
}

impl Default for DriveOptions<'_> {
    /// A clock that starts now, urgent, with nobody listening.
    fn default() -> Self {
        DriveOptions { clock: SessionClock::start(), cancel: None, on_progress: None, urgent: true, fabric: None }
    }
}

/// A measurement that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driven {
    /// What the machine gave.
    pub result: Vec<u8>,
    /// What the sockets did.
    pub tally: Tally,
}

/// Carries `machine` to its end; its path n is `paths[n]`, towards `port` there.
///
/// A path that has no route is no error: its packets are told to be unsent.
///
/// # Errors
/// Usage for an address that is not this host's, Interrupted when the flag was raised and the machine gave no result within
/// a second, Runtime for failures of the system and for a machine that breaks its contract.
pub fn drive(
    maker: &dyn SocketMaker,
    paths: &[PathAddr],
    port: u16,
    machine: &mut dyn Machine,
    options: DriveOptions<'_>,
) -> Result<Driven, NetError> {
    let mut sockets = Vec::new();
    let mut targets = Vec::new();
    let mut begun = Begun { fabric: options.fabric.clone(), flows: Vec::new() };
    // a second socket for each path, from whose port leaves what goes beside the path's flow
    for path in paths.iter().chain(paths) {
        if !is_one_host(path.remote) {
            return Err(NetError::Argument(format!("{} is an address that no single host has", path.remote)));
        }
        let remote = SocketAddr::new(path.remote, port);
        let socket = UdpSocket::bind(maker, SocketAddr::new(path.local, 0)).map_err(|e| match e.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => NetError::LocalAddress(path.local),
            _ => NetError::System { what: "making a UDP socket", source: e },
        })?;
        // without a route each packet is tried for itself: there may be one later
        targets.push(socket.connect(remote).err().map(|_| Target { remote, local: None }));
        begun.begin(&socket, remote, path)?;
        sockets.push(socket);
    }
    let remotes = paths.iter().map(|path| SocketAddr::new(path.remote, port)).collect();
    let DriveOptions { clock, cancel, on_progress, urgent, fabric: _ } = options;
    // a thread of its own, because scheduling is a thread's
    thread::scope(|scope| {
        let work = move || {
            let carrier = Carrier::new(clock, sockets);
            let urgency = Urgency::new(urgent);
            let wake = Nanos::MAX;
            Session { machine, carrier, targets, remotes, wake, on_progress, cancel, urgency }.run()
        };
        let thread = thread::Builder::new().name("pathcast-probe".into()).spawn_scoped(scope, work);
        let thread = thread.map_err(NetError::system("starting a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What a fabric was told of; it is told of the end when this is dropped.
struct Begun {
    fabric: Option<Arc<dyn Fabric>>,
    flows: Vec<FlowEnds>,
}

impl Begun {
    fn begin(&mut self, socket: &UdpSocket, remote: SocketAddr, path: &PathAddr) -> Result<(), NetError> {
        let Some(fabric) = &self.fabric else { return Ok(()) };
        let bound = socket.local_addr().map_err(NetError::system("reading a UDP socket's port"))?;
        let local = SocketAddr::new(path.local, bound.port());
        let flow = FlowEnds { transport: Transport::Udp, local, remote };
        fabric.begin(flow, &path.name).map_err(|reason| NetError::Fabric { path: path.name.clone(), reason })?;
        self.flows.push(flow);
        Ok(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(fabric) = &self.fabric {
            self.flows.iter().for_each(|flow| fabric.end(*flow));
        }
    }
}

struct Session<'m, 'a> {
    machine: &'m mut dyn Machine,
    carrier: Carrier<usize>,
    /// By socket, those of the paths and those beside them: where it sends, if it is not connected.
    targets: Vec<Option<Target>>,
    remotes: Vec<SocketAddr>,
    /// When the machine wants to be woken.
    wake: Nanos,
    on_progress: Option<&'a mut (dyn FnMut(Progress) + Send)>,
    cancel: Option<&'a AtomicBool>,
    urgency: Urgency,
}

impl Session<'_, '_> {
    fn run(mut self) -> Result<Driven, NetError> {
        let mut stopped: Option<Nanos> = None;
        let mut result = self.tell(Event::Started)?;
        while result.is_none() {
            let now = self.carrier.clock.now();
            self.urgency.need(now);
            let cancelled = self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed));
            if self.wake <= now && self.carrier.caught_up(self.wake) {
                self.wake = Nanos::MAX;
                result = self.tell(Event::Timer)?;
            } else if cancelled && stopped.is_none() {
                stopped = Some(now);
                result = self.tell(Event::Stop)?;
            } else if stopped.is_some_and(|stopped| now > stopped + GOODBYE) {
                return Err(NetError::Interrupted);
            } else {
                self.carrier.turn(self.wake.min(now + TICK));
                result = self.handle_events()?;
            }
        }
        // what was said last leaves before the sockets close
        while self.carrier.pressed() {
            self.carrier.turn(Nanos::ZERO);
        }
        Ok(Driven { result: result.unwrap_or_default(), tally: self.carrier.tally })
    }

    /// Tells what has happened, as long as nothing is about to leave.
    fn handle_events(&mut self) -> Result<Option<Vec<u8>>, NetError> {
        while let Some(event) = self.carrier.next_event() {
            let result = match event {
                CarrierEvent::Sent { key: path, seq, at, handed } => {
                    self.tell(Event::Sent { path, seq, at, handed })?
                }
                CarrierEvent::Unsent { key: path, seq } => self.tell(Event::Unsent { path, seq })?,
                CarrierEvent::Received { socket, datagram, batch } => {
                    let path = socket % self.remotes.len();
                    let (packet, size) = (datagram.payload.as_slice(), datagram.size);
                    let event = Event::Received {
                        path,
                        packet,
                        size,
                        dscp: datagram.dscp,
                        ecn: datagram.ecn,
                        at: datagram.at,
                        batch,
                    };
                    let known = datagram.from == self.remotes[path];
                    let mut result = None;
                    if datagram.missed > 0 {
                        result = self.tell(Event::Missed { path, packets: datagram.missed })?;
                    }
                    if known && result.is_none() {
                        result = self.tell(event)?;
                    }
                    self.carrier.recycle(socket, datagram);
                    result
                }
            };
            if result.is_some() || self.carrier.interrupts() {
                return Ok(result);
            }
        }
        Ok(None)
    }

    /// Tells the machine something and does what it wants then; its result if that is the end.
    fn tell(&mut self, event: Event<'_>) -> Result<Option<Vec<u8>>, NetError> {
        let now = self.carrier.clock.now(); // one instant for all that follows from it
        self.machine.handle(now, event);
        for _ in 0..ACTIONS {
            let Some(action) = self.machine.next(now) else { return Ok(None) };
            match action {
                Action::SendTrain(train) => self.send(train)?,
                Action::Reply(reply) => self.say(reply)?,
                Action::WakeAt(at) => self.wake = at,
                Action::Progress(progress) => {
                    if let Some(on_progress) = &mut self.on_progress {
                        on_progress(progress);
                    }
                }
                Action::Done(result) => return Ok(Some(result)),
            }
        }
        Err(NetError::Prober(format!("wants more than {ACTIONS} things done at once")))
    }

    fn known(&self, path: usize) -> Result<(), NetError> {
        let paths = self.remotes.len();
        if path >= paths {
            return Err(NetError::Prober(format!("sends over path {path} of {paths}")));
        }
        Ok(())
    }

    fn say(&mut self, reply: Reply) -> Result<(), NetError> {
        let path = reply.path;
        self.known(path)?;
        check_marks(reply.dscp, reply.ecn).map_err(NetError::Prober)?;
        self.carrier.say(path, path, self.targets[path], reply);
        Ok(())
    }

    fn send(&mut self, train: Train) -> Result<(), NetError> {
        let (path, paths) = (train.path, self.remotes.len());
        self.known(path)?;
        check(&train).map_err(NetError::Prober)?;
        let socket = if train.beside { paths + path } else { path };
        self.carrier.launch(path, socket, self.targets[socket], train);
        Ok(())
    }
}

/// What the contract asks of every packet's traffic class.
pub(super) fn check_marks(dscp: u8, ecn: u8) -> Result<(), String> {
    if dscp > 63 {
        return Err(format!("sends with the code point {dscp}, and 63 is the largest"));
    }
    if ecn > 3 {
        return Err(format!("sends with the congestion mark {ecn}, and 3 is the largest"));
    }
    Ok(())
}

/// What the contract asks of a train.
pub(super) fn check(train: &Train) -> Result<(), String> {
    let (packets, bytes) = (train.count(), train.heads.len());
    check_marks(train.dscp, train.ecn)?;
    if !bytes.is_multiple_of(packets) {
        return Err(format!("sends {packets} packets with heads of {bytes} bytes altogether"));
    }
    Ok(())
}
