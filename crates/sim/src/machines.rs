//! The driver of the machines that hosts carry: it keeps the rules of `pathcast_measure::machine` in simulated time.
//!
//! A session is a machine on each host. Their packets go through the network as all others do. Machines know their host's
//! clock only; the engine's plans are in true time. A plan that is due says merely that somebody must look again, so a
//! plan of something that has ended or was moved does no harm.

mod error;
mod payload;
mod world;

use std::sync::{Mutex, PoisonError};

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Batch, Event, Machine, Progress, Reply, Train};
use pathcast_scenario::{End, MAX_PATHS};

use crate::network::host;
use crate::observe::Observer;
use crate::packet::{Kind, NONE, Packet};
use crate::sim::{Plan, Sim};
pub use error::MachineError;
use payload::Payloads;
pub use world::{HostTally, Session, SessionReport};

/// Fair queues give machines' packets flows of their own, behind every number that a subflow can have.
const FLOWS: u32 = 1 << 16;
/// What a train sends beside its path's flow is one of these, behind those.
const BESIDE: u32 = 1 << 16;
/// Actions of one machine at one instant. A batch has up to 65535 packets, and each may have an answer.
const ACTIONS: u32 = 1_000_000;
/// The largest IP packet [byte].
const LARGEST: usize = 65_535;

/// All sessions, and what they have on its way.
#[derive(Clone, Default)]
pub(crate) struct Machines {
    pub payloads: Payloads,
    sessions: Vec<Carried>,
    /// Trains that are being sent, by the number that their plans have.
    flights: Vec<Option<Flight>>,
    /// Room for the payload that a machine is being shown.
    shown: Vec<u8>,
}

/// A session: its slot may have had others before.
#[derive(Clone)]
struct Carried {
    generation: u32,
    /// Taken; its result was not fetched.
    live: bool,
    begun: bool,
    /// Of the scenario.
    paths: Vec<usize>,
    ends: [Carrier; 2],
    progress: Vec<Progress>,
    phase: Option<&'static str>,
    /// True times [ns].
    opened: u64,
    ended: u64,
    over: Option<Result<Vec<u8>, MachineError>>,
}

/// One machine, and what its host does for it.
struct Carrier {
    /// Locked by nobody: a network is looked at by several threads only to be copied.
    machine: Mutex<Box<dyn Machine>>,
    done: bool,
    /// When it wants to be woken, on its clock [ns], and the earliest plan to do so, in true time.
    wake: Nanos,
    planned: u64,
    /// By path: the wake-up's packets so far, and all.
    batches: Vec<(u32, u32)>,
    tally: HostTally,
    /// Actions at one instant.
    instant: u64,
    actions: u32,
}

/// A train that is being sent.
#[derive(Clone)]
struct Flight {
    session: u32,
    from: usize,
    train: Train,
    next: usize,
    /// When the next packet is to leave, on the host's clock [ns], and the plan for it, in true time.
    due: Nanos,
    planned: u64,
}

impl Carrier {
    fn new(machine: Box<dyn Machine>, paths: usize) -> Self {
        let (batches, tally) = (vec![(0, 0); paths], HostTally::default());
        let machine = Mutex::new(machine);
        Carrier { machine, done: false, wake: Nanos::MAX, planned: u64::MAX, batches, tally, instant: 0, actions: 0 }
    }

    fn machine(&mut self) -> &mut dyn Machine {
        self.machine.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
    }
}

/// Only of a session that is over, whose machines are not asked any more: they themselves cannot be copied.
impl Clone for Carrier {
    fn clone(&self) -> Self {
        Carrier { machine: Mutex::new(Box::new(Ended)), batches: self.batches.clone(), ..*self }
    }
}

/// Stands for the machine of a session that is over.
struct Ended;

impl Machine for Ended {
    fn handle(&mut self, _: Nanos, _: Event<'_>) {}
    fn next(&mut self, _: Nanos) -> Option<Action> {
        None
    }
}

impl Machines {
    /// Whether a session goes on, or its result was not fetched.
    pub(crate) fn busy(&self) -> bool {
        self.sessions.iter().any(|session| session.live)
    }
}

fn name(host: usize) -> &'static str {
    ["client", "server"][host]
}

impl<O: Observer> Sim<O> {
    fn local(&self, host: usize) -> Nanos {
        self.hosts[host].clock.local(Nanos(self.now))
    }

    fn carried(&mut self, session: u32) -> &mut Carried {
        &mut self.machines.sessions[session as usize]
    }

    fn is_over(&self, session: u32) -> bool {
        self.machines.sessions[session as usize].over.is_some()
    }

    fn tell(&mut self, session: u32, host: usize, event: Event<'_>) {
        let now = self.local(host);
        let carrier = &mut self.carried(session).ends[host];
        if !carrier.done {
            carrier.machine().handle(now, event);
        }
    }

    /// Ends a session; what it has on its way arrives at nobody.
    fn end_session(&mut self, session: u32, result: Result<Vec<u8>, MachineError>) {
        for flight in &mut self.machines.flights {
            flight.take_if(|flight| flight.session == session);
        }
        let now = self.now;
        let carried = self.carried(session);
        if carried.over.is_none() {
            carried.ended = now;
            carried.over = Some(result);
        }
    }

    /// Asks a machine what it wants until it wants nothing.
    fn consult(&mut self, session: u32, host: usize) {
        let (now, local) = (self.now, self.local(host));
        loop {
            let carried = self.carried(session);
            let carrier = &mut carried.ends[host];
            if carried.over.is_some() || carrier.done {
                return;
            }
            let Some(action) = carrier.machine().next(local) else { return };
            if carrier.instant != now {
                (carrier.instant, carrier.actions) = (now, 0);
            }
            carrier.actions += 1;
            if carrier.actions > ACTIONS {
                return self.end_session(session, Err(MachineError::Runaway { host: name(host), limit: ACTIONS }));
            }
            match action {
                Action::SendTrain(train) => self.begin_train(session, host, train),
                Action::Reply(Reply { path, seq, size, dscp, ecn, payload }) => {
                    let train = Train {
                        path,
                        seq,
                        at: local,
                        gaps: Vec::new(),
                        size,
                        dscp,
                        ecn,
                        beside: false,
                        heads: payload,
                    };
                    self.begin_train(session, host, train);
                }
                Action::WakeAt(at) => {
                    carrier.wake = at;
                    self.plan_wake(session, host);
                }
                Action::Progress(progress) => {
                    carried.phase = Some(progress.phase);
                    carried.progress.push(progress);
                }
                Action::Done(result) => {
                    carrier.done = true;
                    if host == 0 {
                        self.end_session(session, Ok(result));
                    }
                }
            }
        }
    }

    pub(crate) fn begin_session(&mut self, session: u32) {
        let carried = self.carried(session);
        if carried.begun || !carried.live {
            return;
        }
        carried.begun = true;
        for end in [End::Server, End::Client] {
            self.tell(session, host(end), Event::Started);
            self.consult(session, host(end));
        }
    }

    fn plan_wake(&mut self, session: u32, host: usize) {
        let clock = self.hosts[host].clock;
        let now = self.now;
        let carrier = &mut self.carried(session).ends[host];
        let due = clock.time(carrier.wake).0;
        if due < carrier.planned {
            carrier.planned = due.max(now);
            self.plan(due, Plan::Wake(2 * session + host as u32));
        }
    }

    /// A machine's timer may be due. The plan that says so may be of a time that the machine has moved.
    pub(crate) fn wake_machine(&mut self, which: u32) {
        let (session, host) = (which / 2, which as usize % 2);
        let (now, local) = (self.now, self.local(host));
        let carrier = &mut self.carried(session).ends[host];
        if carrier.planned <= now {
            carrier.planned = u64::MAX;
        }
        if carrier.wake > local {
            return self.plan_wake(session, host);
        }
        carrier.wake = Nanos::MAX;
        if !self.is_over(session) {
            self.tell(session, host, Event::Timer);
            self.consult(session, host);
        }
    }

    fn begin_train(&mut self, session: u32, from: usize, train: Train) {
        let paths = self.carried(session).paths.len();
        let problem = if train.path >= paths {
            format!("sends over path {} of {paths}", train.path)
        } else if train.dscp > 63 {
            format!("sends with the code point {}, and 63 is the largest", train.dscp)
        } else if train.ecn > 3 {
            format!("sends with the congestion mark {}, and 3 is the largest", train.ecn)
        } else if !train.heads.len().is_multiple_of(train.count()) {
            format!("sends {} packets with heads of {} bytes altogether", train.count(), train.heads.len())
        } else {
            let due = train.at.max(self.local(from));
            let flight = Flight { session, from, train, next: 0, due, planned: 0 };
            let free = self.machines.flights.iter().position(Option::is_none).unwrap_or_else(|| {
                self.machines.flights.push(None);
                self.machines.flights.len() - 1
            });
            self.machines.flights[free] = Some(flight);
            return self.fly(free as u32);
        };
        self.end_session(session, Err(MachineError::Misuse { host: name(from), problem }));
    }

    /// A train may be due.
    pub(crate) fn send_train(&mut self, index: u32) {
        let Some(flight) = &self.machines.flights[index as usize] else { return };
        if flight.planned > self.now {
            return; // the plan was one of another train, which has ended
        }
        let (session, from) = (flight.session, flight.from);
        self.fly(index);
        self.consult(session, from);
    }

    /// Sends what is due of a train, and plans the rest.
    fn fly(&mut self, index: u32) {
        let Some(mut flight) = self.machines.flights[index as usize].take() else { return };
        let clock = self.hosts[flight.from].clock;
        loop {
            let due = clock.time(flight.due).0;
            if due > self.now {
                flight.planned = due;
                self.machines.flights[index as usize] = Some(flight);
                return self.plan(due, Plan::Train(index));
            }
            self.send_probe(&flight);
            let Some(&gap) = flight.train.gaps.get(flight.next) else { return };
            flight.next += 1;
            flight.due = Nanos(flight.due.0.saturating_add(gap.0));
        }
    }

    /// Sends the next packet of a train.
    fn send_probe(&mut self, flight: &Flight) {
        let &Flight { session, from, ref train, next, .. } = flight;
        let (path, seq, head) = (train.path, train.seq.wrapping_add(next as u64), train.head(next));
        let of_scenario = self.carried(session).paths[path];
        let bytes = (self.overhead(of_scenario) + head.len()).max(usize::from(train.size));
        if bytes > LARGEST {
            return self.tell(session, from, Event::Unsent { path, seq });
        }
        let to = 1 - from;
        let generation = self.carried(session).generation;
        let (extra, payload) = self.machines.payloads.place();
        (payload.session, payload.generation, payload.to) = (session, generation, to);
        (payload.path, payload.dscp, payload.ecn) = (path, train.dscp, train.ecn);
        payload.head.clear();
        payload.head.extend_from_slice(head);
        self.carried(session).ends[from].tally.sent(bytes);
        self.send(Packet {
            seq,
            dsn: 0,
            stamp: self.now,
            hop: self.network.route(of_scenario, if to == host(End::Server) { End::Server } else { End::Client }),
            flow: FLOWS + if train.beside { BESIDE } else { 0 } + session * MAX_PATHS as u32 + of_scenario as u32,
            extra,
            window: 0,
            bytes: bytes as u16,
            generation: 0,
            kind: Kind::Probe,
            flags: 0,
        });
        let at = self.local(from);
        self.tell(session, from, Event::Sent { path, seq, at, handed: at });
    }

    /// IP and UDP headers on a path of the scenario [byte].
    fn overhead(&self, path: usize) -> usize {
        if self.scenario.paths[path].ip == 6 { 48 } else { 28 }
    }

    /// The session of a packet that has arrived or is handed over, if it goes on.
    fn session_of(&self, packet: &Packet) -> Option<u32> {
        let payload = self.machines.payloads.get(packet.extra);
        let carried = &self.machines.sessions[payload.session as usize];
        (carried.generation == payload.generation && carried.live && carried.over.is_none()).then_some(payload.session)
    }

    /// Several packets are about to be handed over: counts those of each machine and path.
    pub(crate) fn count_batch(&mut self, batch: &[Packet]) {
        for packet in batch.iter().filter(|packet| packet.kind == Kind::Probe) {
            let Some(session) = self.session_of(packet) else { continue };
            let payload = self.machines.payloads.get(packet.extra);
            let (to, path) = (payload.to, payload.path);
            self.carried(session).ends[to].batches[path].1 += 1;
        }
    }

    #[cold]
    pub(crate) fn receive_probe(&mut self, packet: Packet) {
        debug_assert!(packet.extra != NONE);
        let Some(session) = self.session_of(&packet) else {
            self.stale += 1;
            return self.machines.payloads.release(packet.extra);
        };
        let mut shown = std::mem::take(&mut self.machines.shown);
        let payload = self.machines.payloads.get(packet.extra);
        let (to, path, dscp, ecn) = (payload.to, payload.path, payload.dscp, payload.ecn);
        shown.clear();
        shown.extend_from_slice(&payload.head);
        self.machines.payloads.release(packet.extra);
        let overhead = self.overhead(self.machines.sessions[session as usize].paths[path]);
        shown.resize(usize::from(packet.bytes) - overhead, 0);
        let at = self.local(to);
        let carrier = &mut self.carried(session).ends[to];
        carrier.tally.received(packet.bytes.into());
        let (seen, of) = &mut carrier.batches[path];
        let batch = Batch { index: *seen, of: (*of).max(1) };
        *seen += 1;
        if batch.is_last() {
            (*seen, *of) = (0, 0);
        }
        let event = Event::Received { path, packet: &shown, size: packet.bytes, dscp, ecn, at, batch };
        self.tell(session, to, event);
        self.machines.shown = shown;
        self.consult(session, to);
    }
}

#[cfg(test)]
mod tests;
