//! Sessions of machines in a network that stands.

use std::sync::atomic::Ordering;

use pathcast_base::Nanos;
use pathcast_measure::machine::{Event, Machine, Progress};
use pathcast_scenario::End;

use super::{Carried, Carrier, MachineError};
use crate::clock::Clock;
use crate::network::host;
use crate::observe::Nobody;
use crate::run::{Options, SLICE, World};
use crate::sim::{Plan, Sim, Stopped};

/// A session that was opened and not yet concluded.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a session goes on until it is concluded"]
pub struct Session {
    slot: u32,
    generation: u32,
}

/// Packets and IP bytes of one host's machine, over all paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTally {
    /// Packets that left the host.
    pub sent_packets: u64,
    /// Their size [IP byte].
    pub sent_bytes: u64,
    /// Packets that arrived at it.
    pub received_packets: u64,
    /// Their size [IP byte].
    pub received_bytes: u64,
}

impl HostTally {
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent_packets += 1;
        self.sent_bytes += bytes as u64;
    }

    pub(super) fn received(&mut self, bytes: usize) {
        self.received_packets += 1;
        self.received_bytes += bytes as u64;
    }
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// What the client's machine gave.
    pub result: Vec<u8>,
    /// From the opening to the end [ns of true time].
    pub elapsed: Nanos,
    /// The client's packets.
    pub client: HostTally,
    /// The server's.
    pub server: HostTally,
}

impl World {
    /// What a host's clock shows.
    pub fn clock(&self, end: End) -> Clock {
        self.sim.hosts[host(end)].clock
    }

    /// Lets a machine on the client and one on the server measure until the client's is done. Their path n is the
    /// scenario's `paths[n]`. Other sessions and cross traffic go on meanwhile. `progress` hears what the client's
    /// machine and the server's tell about it, a little later than they do.
    ///
    /// # Errors
    /// An unknown path, a limit of `options` (its `trace` means nothing here), the caller's wish to stop if the client's
    /// machine then has no result, or a machine that breaks the contract. The session is over then.
    pub fn session(
        &mut self,
        client: Box<dyn Machine>,
        server: Box<dyn Machine>,
        paths: &[usize],
        options: &Options,
        progress: impl FnMut(Progress),
    ) -> Result<SessionReport, MachineError> {
        let session = self.open_session(client, server, paths)?;
        self.conclude(session, options, progress)
    }

    /// Opens a session that begins now and goes on while time passes: beside transfers and other sessions.
    ///
    /// # Errors
    /// An unknown path.
    pub fn open_session(
        &mut self,
        client: Box<dyn Machine>,
        server: Box<dyn Machine>,
        paths: &[usize],
    ) -> Result<Session, MachineError> {
        let last = self.sim.scenario.paths.len() - 1;
        if let Some(&path) = paths.iter().find(|&&path| path > last) {
            return Err(MachineError::NoPath { path, last });
        }
        if paths.is_empty() {
            return Err(MachineError::NoPaths);
        }
        Ok(self.sim.open_session(client, server, paths))
    }

    /// Waits until a session is over, if it is not yet, and gives its result. The limits of `options` count from now on.
    ///
    /// # Errors
    /// As [`World::session`].
    ///
    /// # Panics
    /// If it is a session of another world.
    pub fn conclude(
        &mut self,
        session: Session,
        options: &Options,
        mut progress: impl FnMut(Progress),
    ) -> Result<SessionReport, MachineError> {
        let Session { slot, generation } = session;
        let sim = &mut self.sim;
        let carried = sim.carried(slot);
        assert!(carried.live && carried.generation == generation, "a session of this world");
        let until = sim.now.saturating_add(options.time.0);
        let last = sim.events.saturating_add(options.events);
        while !sim.is_over(slot) {
            let left = last - sim.events;
            let stopped = sim.run(until, left.min(SLICE), |sim| sim.is_over(slot));
            sim.carried(slot).progress.drain(..).for_each(&mut progress);
            if sim.is_over(slot) {
                break;
            }
            let phase = sim.carried(slot).phase;
            if options.stop.load(Ordering::Relaxed) {
                sim.tell(slot, 0, Event::Stop);
                sim.consult(slot, 0);
                sim.end_session(slot, Err(MachineError::Interrupted)); // unless it has given its result
            } else if stopped == Stopped::Complete {
                let error = match sim.now < until {
                    true => MachineError::Idle { phase },
                    false => MachineError::Time { limit: options.time, phase },
                };
                sim.end_session(slot, Err(error));
            } else if sim.events >= last {
                sim.end_session(slot, Err(MachineError::Events { limit: options.events, phase }));
            }
        }
        sim.carried(slot).progress.drain(..).for_each(&mut progress);
        sim.close_session(slot)
    }
}

impl Sim<Nobody> {
    fn open_session(&mut self, client: Box<dyn Machine>, server: Box<dyn Machine>, paths: &[usize]) -> Session {
        let sessions = &mut self.machines.sessions;
        let slot = sessions.iter().position(|carried| !carried.live).unwrap_or(sessions.len());
        let generation = sessions.get(slot).map_or(0, |carried| carried.generation + 1);
        let carried = Carried {
            generation,
            live: true,
            begun: false,
            paths: paths.to_vec(),
            ends: [client, server].map(|machine| Carrier::new(machine, paths.len())),
            progress: Vec::new(),
            phase: None,
            opened: self.now,
            ended: self.now,
            over: None,
        };
        if slot == sessions.len() {
            sessions.push(carried);
        } else {
            sessions[slot] = carried;
        }
        self.plan(self.now, Plan::Begin(slot as u32));
        Session { slot: slot as u32, generation }
    }

    fn close_session(&mut self, slot: u32) -> Result<SessionReport, MachineError> {
        let carried = self.carried(slot);
        carried.live = false;
        let elapsed = Nanos(carried.ended - carried.opened);
        let [client, server] = [0, 1].map(|host| carried.ends[host].tally);
        let result = carried.over.clone().unwrap_or(Err(MachineError::Interrupted))?;
        Ok(SessionReport { result, elapsed, client, server })
    }

    /// Checks that what is kept for packets is kept for those on their way.
    pub(crate) fn check_payloads(&self) -> Result<(), String> {
        let kept = self.machines.payloads.in_use() as u64;
        let held: u64 = self.hosts.iter().map(|host| host.held() as u64).sum();
        let inside = self.network.inside() + held;
        // without TCP all packets are machines'
        let balanced = if self.subs.is_empty() { kept == inside } else { kept <= inside };
        let blocks = self.blocks.in_use() as u64;
        if balanced && kept + blocks <= inside {
            return Ok(());
        }
        Err(format!("{kept} payloads and {blocks} SACK blocks of {inside} packets on their way"))
    }
}
