//! Machines and far ends to test with.

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Batch, Event, Machine, Reply, Train};
use pathcast_measure::{ClockState, FarAction, FarEvent};
use pathcast_net::udp::{FarAddress, FarMachine};

/// What a machine was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Sent { path: usize, seq: u64, at: Nanos },
    Unsent { path: usize, seq: u64 },
    Received { path: usize, payload: Vec<u8>, size: u16, dscp: u8, at: Nanos, batch: Batch },
    Stop,
}

/// Sends trains and writes down what it is told, until it has seen enough or its time is over.
pub struct Script {
    /// Their times count from the start.
    trains: Vec<Train>,
    /// Ends after so many packets were told of as sent or unsent, and so many have come.
    enough: (usize, usize),
    time: Nanos,
    /// Does it end when it is told to?
    polite: bool,
    pub started: Nanos,
    pub seen: Vec<Seen>,
    /// Packets that found no room.
    pub missed: u32,
    wants: Vec<Action>,
}

impl Script {
    /// Waits for all of its packets and `replies` others, for at most half a minute.
    pub fn new(trains: Vec<Train>, replies: usize) -> Script {
        let enough = (trains.iter().map(Train::count).sum(), replies);
        Script {
            trains,
            enough,
            time: Nanos::secs(30),
            polite: true,
            started: Nanos::ZERO,
            seen: Vec::new(),
            missed: 0,
            wants: Vec::new(),
        }
    }

    /// Never ends by itself.
    pub fn endless(polite: bool) -> Script {
        Script { polite, time: Nanos::secs(3600), ..Script::new(Vec::new(), usize::MAX) }
    }

    pub fn sent(&self, path: usize) -> Vec<(u64, Nanos)> {
        let mut all: Vec<_> = self
            .seen
            .iter()
            .filter_map(|s| match s {
                Seen::Sent { path: p, seq, at } if *p == path => Some((*seq, *at)),
                _ => None,
            })
            .collect();
        all.sort_unstable();
        all
    }

    pub fn unsent(&self, path: usize) -> Vec<u64> {
        let mut all: Vec<_> = self
            .seen
            .iter()
            .filter_map(|s| match s {
                Seen::Unsent { path: p, seq } if *p == path => Some(*seq),
                _ => None,
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// Payloads, code points, times and batches of what came over a path.
    pub fn received(&self, of: usize) -> Vec<(&[u8], u16, u8, Nanos, Batch)> {
        let mut all = Vec::new();
        for seen in &self.seen {
            match seen {
                Seen::Received { path, payload, size, dscp, at, batch } if *path == of => {
                    all.push((payload.as_slice(), *size, *dscp, *at, *batch));
                }
                _ => {}
            }
        }
        all
    }

    fn end_if_enough(&mut self) {
        let told = self.seen.iter().filter(|s| matches!(s, Seen::Sent { .. } | Seen::Unsent { .. })).count();
        let came = self.seen.iter().filter(|s| matches!(s, Seen::Received { .. })).count();
        if told >= self.enough.0 && came >= self.enough.1 {
            self.wants.push(Action::Done(b"enough".to_vec()));
        }
    }
}

impl Machine for Script {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => {
                self.started = now;
                let later = |train: Train| Action::SendTrain(Train { at: now + train.at, ..train });
                self.wants = vec![Action::WakeAt(now + self.time)];
                self.wants.extend(std::mem::take(&mut self.trains).into_iter().map(later));
            }
            Event::Timer => self.wants.push(Action::Done(b"time".to_vec())),
            Event::Missed { packets, .. } => self.missed += packets,
            Event::Stop => {
                self.seen.push(Seen::Stop);
                if self.polite {
                    self.wants.push(Action::Done(b"stopped".to_vec()));
                }
            }
            Event::Sent { path, seq, at, .. } => self.seen.push(Seen::Sent { path, seq, at }),
            Event::Unsent { path, seq } => self.seen.push(Seen::Unsent { path, seq }),
            Event::Received { path, packet, size, dscp, at, batch, .. } => {
                assert!(at <= now, "a stamp of the future");
                self.seen.push(Seen::Received { path, payload: packet.to_vec(), size, dscp, at, batch });
            }
        }
        self.end_if_enough();
    }

    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop()
    }
}

/// Answers what begins with `echo` by a packet like it, with the stamp of its arrival after the first twelve bytes; what
/// begins with `train` by ten packets 1 ms apart, with `slow` by ten 100 ms apart; it drops their rest when it gets `stop`.
#[derive(Default)]
pub struct Echo {
    pub seen: Vec<(FarAddress, u8, Batch)>,
    pub sent: Vec<(u64, usize, u64, Nanos)>,
    pub unsent: Vec<(u64, usize, u64)>,
    pub timers: usize,
    pub clock: Option<ClockState>,
    answered: u64,
    wants: Vec<FarAction<FarAddress>>,
}

/// The session that a packet of the client belongs to.
pub const SESSION: u64 = 5;

impl FarMachine for Echo {
    fn handle(&mut self, now: Nanos, event: FarEvent<'_, FarAddress>) {
        match event {
            FarEvent::Received { from, packet, size, dscp, ecn, at, batch } => {
                self.seen.push((from, dscp, batch));
                self.answered += 1;
                let (path, seq) = (0, self.answered);
                if packet.starts_with(b"echo") && packet.len() >= 12 {
                    let payload = [&packet[..12], &at.0.to_be_bytes()].concat();
                    let reply = Reply { path, seq, size, dscp, ecn, payload };
                    self.wants.push(FarAction::Reply { session: SESSION, to: from, reply });
                } else if packet.starts_with(b"train") || packet.starts_with(b"slow") {
                    let gap = Nanos::millis(if packet.starts_with(b"slow") { 100 } else { 1 });
                    let train = Train::even(1, 100, now, 10, gap, size).marked(dscp);
                    self.wants.push(FarAction::SendTrain { session: SESSION, to: from, train });
                    self.wants.push(FarAction::WakeAt(now));
                } else if packet.starts_with(b"stop") {
                    self.wants.push(FarAction::Stop { session: SESSION });
                } else if packet.starts_with(b"anonymous") {
                    let reply = Reply { path, seq, size, dscp, ecn, payload: b"who?".to_vec() };
                    self.wants.push(FarAction::Reply { session: 0, to: from, reply });
                }
            }
            FarEvent::Sent { session, path, seq, at, .. } => self.sent.push((session, path, seq, at)),
            FarEvent::Unsent { session, path, seq } => self.unsent.push((session, path, seq)),
            FarEvent::Missed { .. } => {}
            FarEvent::Timer => self.timers += 1,
        }
    }
    fn set_clock(&mut self, clock: ClockState) {
        self.clock = Some(clock);
    }
    fn next(&mut self, _now: Nanos) -> Option<FarAction<FarAddress>> {
        self.wants.pop()
    }
    fn sessions(&self) -> usize {
        0
    }
}
