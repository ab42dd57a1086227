//! A far end as a machine for one client, for drivers that carry a pair of machines, as the simulator does.

use std::collections::HashMap;

use pathcast_base::Nanos;

use super::far::{FarAction, FarEvent};
use super::far_end::FarEnd;
use crate::machine::{Action, Event, Machine};

/// See the [module](self). A client's address is the number of its path.
pub struct FarEndMachine {
    far_end: FarEnd<usize>,
    /// Whose packets are on their way out of the host, by path and number.
    sent: HashMap<(usize, u64), u64>,
}

impl FarEndMachine {
    /// Carries this far end.
    pub fn new(far_end: FarEnd<usize>) -> FarEndMachine {
        FarEndMachine { far_end, sent: HashMap::new() }
    }
}

impl Machine for FarEndMachine {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        let event = match event {
            Event::Received { path, packet, size, dscp, ecn, at, batch } => {
                FarEvent::Received { from: path, packet, size, dscp, ecn, at, batch }
            }
            Event::Sent { path, seq, at, handed } => match self.sent.remove(&(path, seq)) {
                Some(session) => FarEvent::Sent { session, path, seq, at, handed },
                None => return,
            },
            Event::Unsent { path, seq } => match self.sent.remove(&(path, seq)) {
                Some(session) => FarEvent::Unsent { session, path, seq },
                None => return,
            },
            Event::Missed { packets, .. } => FarEvent::Missed { packets },
            Event::Timer => FarEvent::Timer,
            Event::Started | Event::Stop => return,
        };
        self.far_end.handle(now, event);
    }

    fn next(&mut self, now: Nanos) -> Option<Action> {
        loop {
            return Some(match self.far_end.next(now)? {
                FarAction::SendTrain { session, train, .. } => {
                    let numbers = (0..train.count() as u64).map(|i| (train.path, train.seq + i));
                    self.sent.extend(numbers.map(|number| (number, session)));
                    Action::SendTrain(train)
                }
                FarAction::Reply { session, reply, .. } => {
                    if session != 0 {
                        self.sent.insert((reply.path, reply.seq), session);
                    }
                    Action::Reply(reply)
                }
                FarAction::Stop { session } => {
                    self.sent.retain(|_, of| *of != session);
                    continue;
                }
                FarAction::WakeAt(at) => Action::WakeAt(at),
            });
        }
    }
}
