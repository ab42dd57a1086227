//! The engine: what happens next, and who is told.
//!
//! The rule for equal times: packets that reach the end of a link come first, in the order of the links in the file
//! (`ab` before `ba`); then what was planned (starts, changes, thinking clients, machines), in the order of planning;
//! then the hosts' batches; then timers, in the order of the subflows' slots: the sender's timer, its pacing, the
//! receiver's.
//! Within a link, departures come before arrivals of cross traffic and those before real ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathcast_base::Nanos;
use pathcast_scenario::{Changed, End, Scenario};

use crate::agenda::Agenda;
use crate::apps::{Client, Flow, Source};
use crate::closing::Ending;
use crate::conn::Conn;
use crate::error::SimError;
use crate::host::Host;
use crate::machines::Machines;
use crate::network::{Network, Step, wire};
use crate::observe::Observer;
use crate::packet::{Kind, Packet, Store};
use crate::setup::Setup;
use crate::tcp::{Config, Receiver, Sender};

/// What is planned for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plan {
    /// A change of the scenario, by index.
    Change(u32),
    /// A flow starts, stops.
    Start(u32),
    Stop(u32),
    /// The next connection of a traffic source.
    Connect(u32),
    /// A traffic source stops.
    Quiet(u32),
    /// A client has thought.
    Fetch(u32),
    /// A sample for the observer.
    Sample,
    /// A session of machines begins, by its slot.
    Begin(u32),
    /// A machine's timer: twice the session's slot, and one more on the server.
    Wake(u32),
    /// The next packet of a machine's train.
    Train(u32),
    /// A look at the timer of a connection, of this generation.
    Again(u32, u16),
    /// A look at what the subflows of a connection may be given, of this generation.
    Steer(u32, u16),
    /// A subflow is asked for again, in the place of one of this generation.
    Join(u32, u16),
}

/// Slots of the agenda of the rest: plans, two hosts, then three a subflow.
const PLANS: usize = 0;
const HOSTS: usize = 1;
const SUBFLOWS: usize = 3;

/// Slot of a subflow's timer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alarm {
    Sender = 0,
    Pace = 1,
    Receiver = 2,
}

/// What lies between the two halves of a subflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sub {
    pub conn: u32,
    pub generation: u16,
    pub live: bool,
    pub path: u32,
    /// Starts of the routes for data and for ACKs.
    pub forward: u32,
    pub back: u32,
    /// The sender opens; else the receiver does, as one who fetches a page.
    pub sender_opens: bool,
    /// A further subflow, whose handshake has a fourth packet.
    pub joins: bool,
    /// The first packet was answered; the subflow may carry data.
    pub answered: bool,
    pub open: bool,
    /// When the last packet of the handshake was sent [ns], and how often.
    pub asked: u64,
    pub tries: u32,
    /// When it opened, and the first in its place did [ns].
    pub opened: u64,
    pub joined: u64,
    /// How long it is left alone next before it is asked for again; 0: it never was [ns].
    pub pause: u64,
    /// How its receiver closes it.
    pub end: Ending,
}

/// Why a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The scenario's `end`, or all flows are done.
    Complete,
    /// The limit of events.
    Events,
    /// The limit of simulated time.
    Time,
    /// The caller's wish.
    Interrupted,
}

/// A simulation in some state. A copy goes on by itself from there.
#[derive(Clone)]
pub(crate) struct Sim<O> {
    pub now: u64,
    pub scenario: Scenario,
    pub setup: Setup,
    pub config: Config,
    pub network: Network,
    pub later: Agenda,
    pub plans: BinaryHeap<Reverse<(u64, u64, Plan)>>,
    planned: u64,
    pub hosts: [Host; 2],
    pub blocks: Store,
    pub machines: Machines,
    pub subs: Vec<Sub>,
    pub senders: Vec<Sender>,
    pub receivers: Vec<Receiver>,
    pub free_subs: Vec<u32>,
    pub conns: Vec<Conn>,
    pub free_conns: Vec<u32>,
    pub flows: Vec<Flow>,
    pub sources: Vec<Source>,
    pub clients: Vec<Client>,
    /// Flows that have neither ended nor will by a `stop`.
    pub unfinished: u32,
    pub events: u64,
    /// First drop of each link [ns].
    pub first_drop: Vec<Option<u64>>,
    /// Packets of connections that had ended when they arrived.
    pub stale: u64,
    pub observer: O,
}

impl<O: Observer> Sim<O> {
    pub(crate) fn new(scenario: Scenario, observer: O) -> Result<Self, SimError> {
        let setup = Setup::new(&scenario)?;
        let network = Network::new(&scenario);
        let mut sim = Sim {
            now: 0,
            config: Config::new(&scenario.tcp),
            first_drop: vec![None; network.wires.len()],
            network,
            later: Agenda::new(SUBFLOWS + 8 * 3),
            plans: BinaryHeap::new(),
            planned: 0,
            hosts: Host::pair(&scenario),
            blocks: Store::default(),
            machines: Machines::default(),
            subs: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            free_subs: Vec::new(),
            conns: Vec::new(),
            free_conns: Vec::new(),
            flows: Vec::new(),
            sources: Vec::new(),
            clients: Vec::new(),
            unfinished: 0,
            events: 0,
            stale: 0,
            observer,
            setup,
            scenario,
        };
        for i in 0..sim.scenario.changes.len() {
            sim.plan(sim.scenario.changes[i].at.0, Plan::Change(i as u32));
        }
        sim.make_sources();
        if let Some(interval) = sim.observer.interval() {
            sim.plan(interval.0, Plan::Sample);
        }
        Ok(sim)
    }

    pub(crate) fn plan(&mut self, at: u64, plan: Plan) {
        self.plans.push(Reverse((at.max(self.now), self.planned, plan)));
        self.planned += 1;
        self.later.by(PLANS, at.max(self.now));
    }

    /// Makes sure that the agenda has room for subflow `sub`.
    pub(crate) fn seat(&mut self, sub: usize) {
        self.later.grow(SUBFLOWS + 3 * (sub + 1));
    }

    #[inline]
    pub(crate) fn alarm(&mut self, sub: u32, alarm: Alarm, at: u64) {
        debug_assert!(at >= self.now, "alarm {} of {sub} at {at}, now {}", alarm as usize, self.now);
        self.later.by(SUBFLOWS + 3 * sub as usize + alarm as usize, at.max(self.now));
    }

    /// Runs until `until` (included), until `done` says so, or for `events` events.
    pub(crate) fn run(&mut self, until: u64, events: u64, done: impl Fn(&Self) -> bool) -> Stopped {
        let last = self.events.saturating_add(events);
        loop {
            let (near, wire) = self.network.agenda.first();
            let (far, slot) = self.later.first();
            let at = near.min(far);
            if at > until || at == u64::MAX {
                if at != u64::MAX {
                    self.now = self.now.max(until);
                }
                return Stopped::Complete;
            }
            if self.events >= last {
                return Stopped::Events;
            }
            self.events += 1;
            debug_assert!(at >= self.now);
            self.now = at;
            if near <= far {
                match self.network.step(at, wire) {
                    Step::Onward => continue,
                    Step::Arrived(host, packet) => self.arrive(host, packet),
                    Step::Dropped(wire, packet) => self.drop(wire, packet),
                }
            } else {
                self.wake(slot);
            }
            if done(self) {
                return Stopped::Complete;
            }
        }
    }

    fn wake(&mut self, slot: usize) {
        self.later.set(slot, u64::MAX);
        match slot {
            PLANS => self.carry_out(),
            1 | 2 => self.hand_over(slot - HOSTS),
            _ => {
                let (sub, alarm) = (((slot - SUBFLOWS) / 3) as u32, (slot - SUBFLOWS) % 3);
                if !self.subs[sub as usize].live {
                    return;
                }
                match alarm {
                    0 => self.sender_timer(sub),
                    1 => self.push(self.subs[sub as usize].conn),
                    _ => self.receiver_timer(sub),
                }
            }
        }
    }

    fn carry_out(&mut self) {
        while let Some(&Reverse((at, _, plan))) = self.plans.peek() {
            if at > self.now {
                self.later.set(PLANS, at);
                return;
            }
            self.plans.pop();
            match plan {
                Plan::Change(i) => self.change(i as usize),
                Plan::Start(flow) => self.start_flow(flow),
                Plan::Stop(flow) => self.stop_flow(flow),
                Plan::Connect(source) => self.connect_source(source),
                Plan::Quiet(source) => self.quiet_source(source),
                Plan::Fetch(client) => self.fetch(client),
                Plan::Sample => self.sample(),
                Plan::Begin(session) => self.begin_session(session),
                Plan::Wake(machine) => self.wake_machine(machine),
                Plan::Train(train) => self.send_train(train),
                Plan::Again(conn, generation) => self.data_timer(conn, generation),
                Plan::Steer(conn, generation) => self.steer(conn, generation),
                Plan::Join(flow, generation) => self.join_again(flow, generation),
            }
        }
    }

    fn change(&mut self, index: usize) {
        match &self.scenario.changes[index].what {
            Changed::Link { link, direction, params, .. } => {
                self.network.set(self.now, wire(*link, *direction), params.clone());
            }
            Changed::Traffic { traffic, cross } => self.network.set_cross(self.now, *traffic, cross),
        }
    }

    fn sample(&mut self) {
        let Some(interval) = self.observer.interval() else { return };
        self.observe();
        self.plan(self.now + interval.0, Plan::Sample);
    }

    /// Shows the observer where everything stands.
    pub(crate) fn observe(&mut self) {
        let now = Nanos(self.now);
        for (index, wire) in self.network.wires.iter_mut().enumerate() {
            let backlog = wire.backlog(now);
            self.observer.link(now, index, backlog, wire.counters());
        }
        if O::FLOWS {
            (0..self.flows.len()).for_each(|index| self.observe_flow(index));
        }
    }

    /// Shows the observer where a flow stands.
    pub(crate) fn observe_flow(&mut self, index: usize) {
        if let Some((acked, subs)) = self.standing(index) {
            self.observer.flow(Nanos(self.now), index, acked, &subs);
        }
    }

    /// A packet has reached a host, which may gather several before it looks at them.
    #[inline]
    fn arrive(&mut self, host: usize, packet: Packet) {
        if self.hosts[host].batches() {
            if let Some(at) = self.hosts[host].hold(self.now, packet) {
                self.later.set(HOSTS + host, at);
            }
        } else {
            self.receive(packet);
        }
    }

    fn hand_over(&mut self, host: usize) {
        let mut batch = self.hosts[host].take();
        self.count_batch(&batch);
        for packet in batch.drain(..) {
            self.receive(packet);
        }
        self.hosts[host].give_back(batch);
    }

    #[inline]
    fn receive(&mut self, packet: Packet) {
        if packet.kind == Kind::Probe {
            return self.receive_probe(packet);
        }
        let sub = &self.subs[packet.flow as usize];
        if sub.generation != packet.generation || !sub.live {
            self.stale += 1;
            self.blocks.take(packet.extra);
            return;
        }
        match packet.kind {
            Kind::Data => self.receive_data(packet),
            Kind::Ack => self.receive_ack(packet),
            Kind::Fin => self.receive_fin(packet),
            Kind::FinAck => self.receive_fin_ack(packet),
            _ => self.receive_handshake(packet),
        }
    }

    /// A link has dropped a packet.
    #[cold]
    pub(crate) fn drop(&mut self, wire: usize, packet: Packet) {
        self.first_drop[wire].get_or_insert(self.now);
        if packet.kind == Kind::Probe {
            return self.machines.payloads.release(packet.extra);
        }
        self.blocks.take(packet.extra);
        let sub = &self.subs[packet.flow as usize];
        if packet.kind == Kind::Data && sub.generation == packet.generation && sub.live {
            self.senders[packet.flow as usize].stats.drops += 1;
        }
        self.observer.dropped(Nanos(self.now), wire, packet.flow);
    }

    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        if let Some((wire, packet)) = self.network.send(self.now, packet) {
            self.drop(wire, packet);
        }
    }

    /// The host that data of a subflow goes to.
    pub(crate) fn receiver_end(&self, sub: u32) -> End {
        let sub = &self.subs[sub as usize];
        if sub.forward == self.network.route(sub.path as usize, End::Server) { End::Server } else { End::Client }
    }
}
