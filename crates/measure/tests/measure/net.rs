//! The smallest network for measurements: clients and one far end, a line each way for every path, and whatever a test
//! wants done to a packet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pathcast_base::{Nanos, Stream};
use pathcast_measure::machine::{Action, Batch, Event, Machine, Progress, Train};
use pathcast_measure::{Address, Client, FarAction, FarEnd, FarEvent};
use serde_json::Value;

/// Which client, and which of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At(pub usize, pub usize);

impl Address for At {
    fn bytes(&self) -> Vec<u8> {
        vec![self.0 as u8, self.1 as u8]
    }
    fn source(&self) -> IpAddr {
        [192, 0, 2, self.0 as u8].into()
    }
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Packet {
    pub at: At,
    pub to_far: bool,
    pub payload: Vec<u8>,
    pub size: u16,
}

/// Says of a packet that leaves whether it lives.
pub type Filter = Box<dyn FnMut(Nanos, &Packet) -> bool>;

/// What becomes of packets; times in seconds, rates in bit/s.
#[derive(Clone, Copy)]
pub struct Line {
    pub delay: f64,
    pub rate: f64,
    pub loss: f64,
    pub twice: f64,
    /// Late by up to this, so that others pass.
    pub jitter: f64,
}

impl Default for Line {
    fn default() -> Line {
        Line { delay: 0.01, rate: 5e6, loss: 0.0, twice: 0.0, jitter: 0.0 }
    }
}

pub struct Carried {
    machine: Client,
    wake: Nanos,
    pub alive: bool,
    pub result: Option<Value>,
    pub ended: Nanos,
    pub progress: Vec<Progress>,
}

enum Due {
    Start(usize),
    Stop(usize),
    Leaves { packet: Packet, seq: u64, session: u64 },
    Arrives(Packet),
    WakeClient(usize),
    WakeFar,
}

pub struct Net {
    pub far: FarEnd<At>,
    pub clients: Vec<Carried>,
    pub line: Line,
    /// Says whether a packet lives.
    pub filter: Filter,
    /// All that left, and when.
    pub log: Vec<(Nanos, Packet)>,
    pub now: Nanos,
    stream: Stream,
    due: BTreeMap<(Nanos, u64), Due>,
    planned: u64,
    free: BTreeMap<(At, bool), f64>,
    far_wake: Nanos,
    dead: Vec<u64>,
}

/// The far end's clock is ahead by this.
const AHEAD: Nanos = Nanos::secs(100);

impl Net {
    pub fn new(far: FarEnd<At>, line: Line, seed: u64) -> Net {
        Net {
            far,
            clients: Vec::new(),
            line,
            filter: Box::new(|_, _| true),
            log: Vec::new(),
            now: Nanos::secs(1),
            stream: Stream::new(seed, "net"),
            due: BTreeMap::new(),
            planned: 0,
            free: BTreeMap::new(),
            far_wake: Nanos::MAX,
            dead: Vec::new(),
        }
    }

    fn plan(&mut self, time: Nanos, due: Due) {
        self.planned += 1;
        self.due.insert((time.max(self.now), self.planned), due);
    }

    pub fn add(&mut self, machine: Client, start: Nanos) {
        let carried =
            Carried { machine, wake: Nanos::MAX, alive: true, result: None, ended: Nanos::ZERO, progress: Vec::new() };
        self.clients.push(carried);
        self.plan(start, Due::Start(self.clients.len() - 1));
    }

    pub fn stop(&mut self, client: usize, at: Nanos) {
        self.plan(at, Due::Stop(client));
    }

    fn train(&mut self, at: At, to_far: bool, session: u64, train: &Train, offset: Nanos) {
        let mut time = Nanos(train.at.0.saturating_sub(offset.0)).max(self.now);
        for i in 0..train.count() {
            let mut payload = train.head(i).to_vec();
            payload.resize(payload.len().max(usize::from(train.size).saturating_sub(28)), 0xaa);
            let size = payload.len() as u16 + 28;
            let packet = Packet { at, to_far, payload, size };
            self.plan(time, Due::Leaves { packet, seq: train.seq + i as u64, session });
            time += train.gaps.get(i).copied().unwrap_or_default();
        }
    }

    fn consult_client(&mut self, client: usize) {
        let now = self.now;
        while self.clients[client].alive && self.clients[client].result.is_none() {
            let carried = &mut self.clients[client];
            let Some(action) = carried.machine.next(now) else { return };
            match action {
                Action::SendTrain(train) => self.train(At(client, train.path), true, 0, &train, Nanos::ZERO),
                Action::Reply(reply) => {
                    let mut train = Train::new(reply.path, reply.seq, now, Vec::new(), reply.size);
                    train.heads = reply.payload;
                    self.train(At(client, reply.path), true, 0, &train, Nanos::ZERO);
                }
                Action::WakeAt(at) => {
                    carried.wake = at;
                    if at != Nanos::MAX {
                        self.plan(at, Due::WakeClient(client));
                    }
                }
                Action::Progress(progress) => carried.progress.push(progress),
                Action::Done(result) => {
                    carried.result = Some(serde_json::from_slice(&result).unwrap());
                    carried.ended = now;
                }
            }
        }
    }

    fn consult_far(&mut self) {
        let now = self.now + AHEAD;
        while let Some(action) = self.far.next(now) {
            match action {
                FarAction::SendTrain { session, to, train } => self.train(to, false, session, &train, AHEAD),
                FarAction::Reply { session, to, reply } => {
                    let mut train = Train::new(reply.path, reply.seq, now, Vec::new(), reply.size);
                    train.heads = reply.payload;
                    self.train(to, false, session, &train, AHEAD);
                }
                FarAction::Stop { session } => self.dead.push(session),
                FarAction::WakeAt(at) => {
                    self.far_wake = at;
                    if at != Nanos::MAX {
                        self.plan(Nanos(at.0.saturating_sub(AHEAD.0)), Due::WakeFar);
                    }
                }
            }
        }
    }

    fn leaves(&mut self, packet: Packet, seq: u64, session: u64) {
        let (now, path) = (self.now, packet.at.1);
        if packet.to_far {
            let carried = &mut self.clients[packet.at.0];
            if !carried.alive {
                return;
            }
            if carried.result.is_none() {
                carried.machine.handle(now, Event::Sent { path, seq, at: now, handed: now });
            }
        } else if session != 0 {
            if self.dead.contains(&session) && seq >> 63 == 0 {
                return;
            }
            let at = now + AHEAD;
            self.far.handle(at, FarEvent::Sent { session, path, seq, at, handed: at });
        }
        self.log.push((now, packet.clone()));
        let Line { delay, rate, loss, twice, jitter } = self.line;
        let lives = (self.filter)(now, &packet) && !self.stream.chance(loss);
        let copies = if self.stream.chance(twice) { 2 } else { 1 };
        let (to_far, at) = (packet.to_far, packet.at);
        if lives {
            for _ in 0..copies {
                let free = self.free.entry((at, to_far)).or_default();
                *free = free.max(now.as_secs_f64()) + f64::from(packet.size) * 8.0 / rate;
                let arrives = *free + delay + self.stream.uniform() * jitter;
                self.plan(Nanos::from_secs_f64(arrives), Due::Arrives(packet.clone()));
            }
        }
        match to_far {
            true => self.consult_client(at.0),
            false => self.consult_far(),
        }
    }

    /// A datagram arrives, whoever sent it.
    pub fn arrive(&mut self, packet: &Packet) {
        let Packet { at: from, to_far, payload, size } = packet;
        let batch = Batch::SINGLE;
        if *to_far {
            let at = self.now + AHEAD;
            let event = FarEvent::Received { from: *from, packet: payload, size: *size, dscp: 0, ecn: 0, at, batch };
            self.far.handle(at, event);
            self.consult_far();
        } else if let Some(carried) = self.clients.get_mut(from.0).filter(|c| c.alive && c.result.is_none()) {
            let event =
                Event::Received { path: from.1, packet: payload, size: *size, dscp: 0, ecn: 0, at: self.now, batch };
            carried.machine.handle(self.now, event);
            self.consult_client(from.0);
        }
    }

    /// Goes on for so long, or until nothing more happens.
    pub fn run(&mut self, time: Nanos) {
        let end = self.now + time;
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), due) = entry.remove_entry();
            self.now = at;
            match due {
                Due::Start(client) => {
                    self.clients[client].machine.handle(at, Event::Started);
                    self.consult_client(client);
                }
                Due::Stop(client) => {
                    self.clients[client].machine.handle(at, Event::Stop);
                    self.consult_client(client);
                }
                Due::Leaves { packet, seq, session } => self.leaves(packet, seq, session),
                Due::Arrives(packet) => self.arrive(&packet),
                Due::WakeClient(client) => {
                    let carried = &mut self.clients[client];
                    if carried.wake <= at && carried.alive && carried.result.is_none() {
                        carried.wake = Nanos::MAX;
                        carried.machine.handle(at, Event::Timer);
                        self.consult_client(client);
                    }
                }
                Due::WakeFar => {
                    if self.far_wake <= at + AHEAD {
                        self.far_wake = Nanos::MAX;
                        self.far.handle(at + AHEAD, FarEvent::Timer);
                        self.consult_far();
                    }
                }
            }
        }
        self.now = end;
    }

    /// Until all clients that live have a result.
    pub fn finish(&mut self, most: Nanos) {
        let end = self.now + most;
        while self.clients.iter().any(|c| c.alive && c.result.is_none()) {
            assert!(self.now < end, "not over after {most:?}: {:?}", self.clients[0].progress.last());
            self.run(Nanos::millis(200));
        }
    }

    pub fn result(&self, client: usize) -> &Value {
        self.clients[client].result.as_ref().expect("a result")
    }
}
