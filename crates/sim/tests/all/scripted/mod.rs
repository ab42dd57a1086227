//! A machine that does what it was told at the start, and keeps what it saw.

use std::sync::{Arc, Mutex};

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Batch, Event, Machine, Reply};

/// What a machine saw, on its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Started(Nanos),
    Sent(u64, Nanos),
    Unsent(u64),
    Received { path: usize, seq: u64, payload: usize, size: u16, dscp: u8, at: Nanos, batch: Batch },
    Timer(Nanos),
    Stop,
}

pub type Log = Arc<Mutex<Vec<Seen>>>;

/// Does what it was told at the start, and is done some time after it. Answers each packet if it is an echo.
#[derive(Default)]
pub struct Scripted {
    pub log: Log,
    pub echo: bool,
    /// The times in the script are the clock's, not since the start.
    pub absolute: bool,
    pub lasts: Option<Nanos>,
    pub script: Vec<Action>,
    pub wanted: Vec<Action>,
    pub until: Nanos,
}

impl Scripted {
    /// A machine whose times count from its start.
    pub fn new(lasts: Nanos, script: Vec<Action>) -> (Box<Scripted>, Log) {
        let machine = Scripted { lasts: Some(lasts), script, ..Scripted::default() };
        let log = machine.log.clone();
        (Box::new(machine), log)
    }

    pub fn listener() -> (Box<Scripted>, Log) {
        let machine = Scripted::default();
        let log = machine.log.clone();
        (Box::new(machine), log)
    }

    pub fn echo() -> (Box<Scripted>, Log) {
        let (machine, log) = Scripted::listener();
        (Box::new(Scripted { echo: true, ..*machine }), log)
    }
}

impl Machine for Scripted {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        let seen = match event {
            Event::Started => {
                self.wanted = std::mem::take(&mut self.script);
                for action in self.wanted.iter_mut().filter(|_| !self.absolute) {
                    match action {
                        Action::SendTrain(train) => train.at += now,
                        Action::WakeAt(at) if *at != Nanos::MAX => *at += now,
                        _ => {}
                    }
                }
                if let Some(lasts) = self.lasts {
                    self.until = now + lasts;
                    self.wanted.push(Action::WakeAt(self.until));
                }
                Seen::Started(now)
            }
            Event::Sent { seq, at, .. } => Seen::Sent(seq, at),
            Event::Unsent { seq, .. } => Seen::Unsent(seq),
            Event::Received { path, packet, size, dscp, ecn, at, batch } => {
                let seq = packet.first_chunk().map_or(u64::MAX, |seq| u64::from_be_bytes(*seq));
                if self.echo {
                    let payload = packet[..8].to_vec();
                    self.wanted.push(Action::Reply(Reply { path, seq, size, dscp, ecn, payload }));
                }
                Seen::Received { path, seq, payload: packet.len(), size, dscp, at, batch }
            }
            Event::Missed { .. } => return,
            Event::Timer => {
                if self.lasts.is_some() && now >= self.until {
                    let log = format!("{:?}", self.log.lock().unwrap());
                    self.wanted.push(Action::Done(log.into_bytes()));
                }
                Seen::Timer(now)
            }
            Event::Stop => {
                self.wanted.push(Action::Done(b"stopped".to_vec()));
                Seen::Stop
            }
        };
        self.log.lock().unwrap().push(seen);
    }

    fn next(&mut self, _now: Nanos) -> Option<Action> {
        (!self.wanted.is_empty()).then(|| self.wanted.remove(0))
    }
}
