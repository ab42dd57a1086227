//! A pair of machines that measures the one-way delay, and the smallest driver that keeps the contract.

use std::collections::BTreeMap;

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Batch, Event, Machine, Progress, Reply, Train};

/// Sends a train and asks for the stamps of its packets until they come; its result is the least difference of stamps [ns].
struct Client {
    count: u64,
    sent: Vec<u64>,
    wants: Vec<Action>,
}

/// Keeps the stamps of what arrives and tells them to whoever asks.
#[derive(Default)]
struct Server {
    stamps: BTreeMap<u64, u64>,
    wants: Vec<Action>,
}

const ASK: u64 = u64::MAX;

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

impl Machine for Client {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        let wait = Action::WakeAt(now + Nanos::millis(100));
        match event {
            Event::Started => {
                let train = Train::even(0, 0, now, self.count as usize, Nanos::millis(1), 1500);
                let train = train.with_heads(8, |seq, head| head.copy_from_slice(&seq.to_be_bytes()));
                self.wants = vec![wait, Action::SendTrain(train)];
            }
            Event::Sent { seq, at, .. } if seq != ASK => self.sent.push(at.0),
            Event::Timer => {
                let payload = ASK.to_be_bytes().to_vec();
                self.wants = vec![wait, Action::Reply(Reply { path: 0, seq: ASK, size: 0, dscp: 0, ecn: 0, payload })];
            }
            Event::Received { packet, .. } if packet.len() >= 16 => {
                let stamps = packet.chunks_exact(16).map(|pair| (number(pair), number(&pair[8..])));
                let least = stamps.map(|(seq, at)| at as i64 - self.sent[seq as usize] as i64).min().unwrap();
                self.wants = vec![Action::Done(least.to_be_bytes().to_vec())];
                self.wants.push(Action::Progress(Progress { phase: "delay", done: 1, of: 1 }));
            }
            _ => {}
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop()
    }
}

impl Machine for Server {
    fn handle(&mut self, _now: Nanos, event: Event<'_>) {
        let Event::Received { path, packet, at, .. } = event else { return };
        match number(packet) {
            ASK => {
                let pairs = self.stamps.iter().flat_map(|(seq, at)| [seq.to_be_bytes(), at.to_be_bytes()]);
                let payload = pairs.flatten().collect();
                self.wants.push(Action::Reply(Reply { path, seq: 0, size: 0, dscp: 0, ecn: 0, payload }));
            }
            seq => drop(self.stamps.insert(seq, at.0)),
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop()
    }
}

/// What happens at a true time, at a host.
enum Due {
    Leaves { seq: u64, packet: Vec<u8> },
    Arrives(Vec<u8>),
    Wakes,
}

/// Two hosts whose clocks differ, one path with a delay each way, and a packet of each that is lost.
struct Driver {
    machines: [Box<dyn Machine>; 2],
    offset: [u64; 2],
    delay: u64,
    lost: [u64; 2],
    count: [u64; 2],
    wake: [u64; 2],
    due: BTreeMap<(u64, u64), (usize, Due)>,
    planned: u64,
}

impl Driver {
    fn plan(&mut self, time: u64, host: usize, due: Due) {
        self.due.insert((time, self.planned), (host, due));
        self.planned += 1;
    }

    fn tell(&mut self, time: u64, host: usize, event: Event<'_>) -> Option<Vec<u8>> {
        let now = Nanos(time + self.offset[host]);
        self.machines[host].handle(now, event);
        while let Some(action) = self.machines[host].next(now) {
            match action {
                Action::SendTrain(train) => {
                    let mut at = train.at.max(now).0 - self.offset[host];
                    for i in 0..train.count() {
                        let mut packet = train.head(i).to_vec();
                        packet.resize(packet.len().max(usize::from(train.size) - 28), 0);
                        self.plan(at, host, Due::Leaves { seq: train.seq + i as u64, packet });
                        at += train.gaps.get(i).map_or(0, |gap| gap.0);
                    }
                }
                Action::Reply(reply) => self.plan(time, host, Due::Leaves { seq: reply.seq, packet: reply.payload }),
                Action::WakeAt(at) => {
                    self.wake[host] = at.0;
                    self.plan(at.max(now).0 - self.offset[host], host, Due::Wakes);
                }
                Action::Progress(progress) => assert_eq!(progress.phase, "delay"),
                Action::Done(result) => return Some(result),
            }
        }
        None
    }

    fn run(&mut self) -> Vec<u8> {
        self.tell(0, 1, Event::Started);
        self.tell(0, 0, Event::Started);
        while let Some(((time, _), (host, due))) = self.due.pop_first() {
            let at = Nanos(time + self.offset[host]);
            let done = match due {
                Due::Leaves { seq, packet } => {
                    if self.count[host] != self.lost[host] {
                        self.plan(time + self.delay, 1 - host, Due::Arrives(packet));
                    }
                    self.count[host] += 1;
                    self.tell(time, host, Event::Sent { path: 0, seq, at, handed: at })
                }
                Due::Arrives(packet) => {
                    let size = packet.len() as u16 + 28;
                    let packet = packet.as_slice();
                    let batch = Batch::SINGLE;
                    self.tell(time, host, Event::Received { path: 0, packet, size, dscp: 0, ecn: 0, at, batch })
                }
                Due::Wakes if self.wake[host] <= at.0 => {
                    self.wake[host] = u64::MAX;
                    self.tell(time, host, Event::Timer)
                }
                Due::Wakes => None,
            };
            if let Some(result) = done {
                return result;
            }
        }
        panic!("nothing more happens")
    }
}

#[test]
fn one_way_delay_over_a_lossy_path() {
    let client = Client { count: 10, sent: Vec::new(), wants: Vec::new() };
    let mut driver = Driver {
        machines: [Box::new(client), Box::<Server>::default()],
        offset: [5_000_000_000, 2_000_000_000],
        delay: 30_000_000,
        lost: [3, 0], // one of the train, and the first answer
        count: [0, 0],
        wake: [u64::MAX; 2],
        due: BTreeMap::new(),
        planned: 0,
    };
    let result = driver.run();
    assert_eq!(i64::from_be_bytes(result.try_into().unwrap()), 30_000_000 - 3_000_000_000);
    assert_eq!(driver.count, [12, 2]); // asked twice
}
