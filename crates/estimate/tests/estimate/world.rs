//! A path in virtual time for estimators: one or several bottlenecks with queues, cross traffic (`pathcast-link`, and TCP) and
//! loss, a sender that is held up now and then, a receiver with a clock of its own that gathers packets, reports one way
//! later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_estimate::Batch;
use pathcast_estimate::{Estimate, Method, Plan, Seen, Step, TrainSeen};
use pathcast_link::{Bucket, Cross, Params, Queue};

use super::line::{Hop, Line};
use super::tcp::{self, Flow, Tcp};

/// One direction of the path.
#[derive(Clone, Debug)]
pub struct Path {
    pub hops: Vec<Hop>,
    /// One way, besides the hops' transmission times.
    pub delay: Nanos,
    /// The sender's own line.
    pub access: Rate,
    pub receiver: Receiver,
    /// How often the sending host is held up, a second, and for how long at most.
    pub stalls: (f64, Nanos),
    /// Flows that cross the first hop.
    pub tcp: Vec<Tcp>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Receiver {
    pub offset: u64,
    pub skew_ppm: f64,
    /// Packets are handed over so long after the first of them.
    pub gather: Nanos,
    /// Stamps are late by up to this.
    pub noise: Nanos,
}

impl Path {
    pub fn one(rate: Rate, queue: u32, cross: Vec<Cross>) -> Path {
        let params = Params { rate: Some(rate), queue: Queue::Packets(queue), ..Params::default() };
        Path {
            hops: vec![Hop { params, cross }],
            delay: Nanos::millis(10),
            access: Rate((rate.0 * 10).max(100_000_000)),
            receiver: Receiver { offset: 7_000_000_000, skew_ppm: 20.0, ..Receiver::default() },
            stalls: (0.0, Nanos::ZERO),
            tcp: vec![],
        }
    }

    pub fn bucket(mut self, rate: Rate, burst: Bytes) -> Path {
        self.hops[0].params.bucket = Some(Bucket { rate, burst });
        self.hops[0].params.rate = Some(Rate(rate.0 * 20));
        self
    }
}

/// What a measurement has come to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub estimate: Estimate,
    /// Link rate less cross traffic that entered, the least of all hops [bit/s].
    pub truth: f64,
    /// The least rate of all hops [bit/s].
    pub capacity: f64,
    pub elapsed: Nanos,
    pub sent_bytes: u64,
}

/// A probe's train and its place there.
#[derive(Clone, Copy)]
struct Place {
    train: usize,
    index: usize,
    size: u16,
}

struct Sent {
    plan: Plan,
    seen: Vec<Seen>,
    open: usize,
    /// When its last packet was decided, by true time.
    last: Nanos,
}

/// The number of a packet of TCP: this bit, its flow above the 40 bits of its own number.
const TCP: u64 = 1 << 63;

fn flow_of(packet: u64) -> (usize, u64) {
    ((packet >> 40 & 0xffff) as usize, packet & ((1 << 40) - 1))
}

struct World<'a> {
    path: &'a Path,
    stream: Stream,
    lines: Vec<Line>,
    now: Nanos,
    places: Vec<Place>,
    trains: Vec<Sent>,
    to_send: BinaryHeap<Reverse<(Nanos, u64)>>,
    reports: BinaryHeap<Reverse<(Nanos, usize)>>,
    sender_free: Nanos,
    stall: Nanos,
    /// What the receiving host has not yet handed over, and when it will.
    gathered: (Nanos, Vec<u64>),
    sent_bytes: u64,
    flows: Vec<Flow>,
    /// Of the flows: packets that are acknowledged, and when.
    acks: BinaryHeap<Reverse<(Nanos, u64)>>,
    /// Bytes of the flows that entered.
    tcp_bytes: u64,
}

/// Runs a method to its end.
pub fn run(path: &Path, seed: u64, method: &mut dyn Method) -> Outcome {
    let mut world = World::new(path, seed);
    // flows need time to find their share
    let warm = Nanos::millis(if path.tcp.is_empty() { 1000 } else { 4000 });
    let begin = warm + Nanos::from_secs_f64(world.stream.uniform());
    while world.step(begin).is_some() {}
    world.now = begin;
    world.stall = world.stall_after(begin);
    let before = world.entered();
    let mut idle = 0;
    loop {
        match method.next(world.now) {
            Step::Send(plan) | Step::Beside(plan) => {
                idle = 0;
                world.plan(plan);
            }
            Step::Wait(until) => {
                idle += usize::from(until <= world.now);
                assert!(idle < 1000, "it waits for the past: {until:?} at {:?}", world.now);
                let report = loop {
                    match world.step(until.max(world.now)) {
                        Some(Some(train)) => break Some(train),
                        Some(None) => {}
                        None => break None,
                    }
                };
                match report {
                    Some(train) => {
                        let sent = &world.trains[train];
                        method.observe(world.now, &TrainSeen { id: sent.plan.id, packets: sent.seen.clone() });
                    }
                    None => world.now = world.now.max(until),
                }
            }
            Step::Done => break,
        }
    }
    let elapsed = world.now - begin;
    let rates: Vec<f64> = path.hops.iter().map(Hop::rate).collect();
    let cross = world.entered().into_iter().zip(before).map(|(after, before)| (after - before) as f64 * 8.0);
    let left = rates.iter().zip(cross).map(|(rate, bits)| rate - bits / elapsed.as_secs_f64().max(1e-9));
    let truth = left.fold(f64::INFINITY, f64::min);
    let capacity = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Outcome { estimate: method.estimate(), truth, capacity, elapsed, sent_bytes: world.sent_bytes }
}

impl<'a> World<'a> {
    fn new(path: &'a Path, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "world");
        let lines = path.hops.iter().enumerate().map(|(h, hop)| Line::new(hop, h, seed, &mut stream)).collect();
        let mut flow = |(f, &tcp): (usize, &Tcp)| {
            let begins = Nanos::from_secs_f64(stream.uniform() * 0.2);
            Flow::new(tcp, begins, Stream::new(seed, &format!("tcp{f}")))
        };
        World {
            flows: path.tcp.iter().enumerate().map(&mut flow).collect(),
            path,
            stream,
            lines,
            now: Nanos::ZERO,
            places: Vec::new(),
            trains: Vec::new(),
            to_send: BinaryHeap::new(),
            reports: BinaryHeap::new(),
            sender_free: Nanos::ZERO,
            stall: Nanos::MAX,
            gathered: (Nanos::MAX, Vec::new()),
            sent_bytes: 0,
            acks: BinaryHeap::new(),
            tcp_bytes: 0,
        }
    }

    /// Bytes of cross traffic that entered each hop so far.
    fn entered(&mut self) -> Vec<u64> {
        let mut entered: Vec<u64> = self.lines.iter_mut().map(|line| line.entered(self.now)).collect();
        entered[0] += self.tcp_bytes;
        entered
    }

    fn plan(&mut self, plan: Plan) {
        let mut at = plan.at.max(self.now);
        for index in 0..plan.count() {
            if index > 0 {
                at += plan.gaps[index - 1];
            }
            self.to_send.push(Reverse((at, self.places.len() as u64)));
            self.places.push(Place { train: self.trains.len(), index, size: plan.size });
        }
        self.sent_bytes += plan.bytes();
        let unsent = Seen { size: plan.size, sent: Nanos::ZERO, received: None, batch: Batch::SINGLE, missed: false };
        self.trains.push(Sent { open: plan.count(), seen: vec![unsent; plan.count()], plan, last: Nanos::ZERO });
    }

    /// The next event not after `until`; none: there is none. A train, if it was its report.
    fn step(&mut self, until: Nanos) -> Option<Option<usize>> {
        let hop = self.lines.iter().enumerate().filter_map(|(i, line)| Some((line.next_due()?, i))).min();
        let next_hop = hop.map_or(Nanos::MAX, |hop| hop.0);
        let next_send = self.to_send.peek().map_or(Nanos::MAX, |r| r.0.0.max(self.sender_free));
        let next_report = self.reports.peek().map_or(Nanos::MAX, |r| r.0.0);
        let next_ack = self.acks.peek().map_or(Nanos::MAX, |r| r.0.0);
        let flow = self.flows.iter().enumerate().map(|(f, flow)| (flow.wake(), f)).min();
        let next_flow = flow.map_or(Nanos::MAX, |flow| flow.0);
        let next = next_hop.min(self.gathered.0).min(next_send).min(next_report).min(next_ack).min(next_flow);
        if next > until || next == Nanos::MAX {
            return None;
        }
        self.now = self.now.max(next);
        if let Some((due, h)) = hop.filter(|hop| hop.0 <= next) {
            self.passes(h, due);
        } else if self.gathered.0 <= next {
            let (at, packets) = std::mem::replace(&mut self.gathered, (Nanos::MAX, Vec::new()));
            self.hand_over(&packets, at);
        } else if next_send <= next {
            self.leaves(next);
        } else if next_ack <= next {
            let Reverse((_, packet)) = self.acks.pop()?;
            let (f, number) = flow_of(packet);
            self.flows[f].acknowledged(number, next);
            self.flow_sends(f);
        } else if let Some((_, f)) = flow.filter(|flow| flow.0 <= next) {
            self.flow_sends(f);
        } else {
            let Reverse((_, train)) = self.reports.pop()?;
            return Some(Some(train));
        }
        Some(None)
    }

    /// A packet leaves hop `h`.
    fn passes(&mut self, h: usize, due: Nanos) {
        let Some((packet, at, lives)) = self.lines[h].pop(due) else { return };
        if packet & TCP != 0 {
            if lives {
                self.acks.push(Reverse((at + self.path.tcp[flow_of(packet).0].rtt, packet)));
            }
        } else if !lives {
            self.decided(packet, at);
        } else if h + 1 < self.lines.len() {
            self.enters(h + 1, at, packet);
        } else if self.path.receiver.gather == Nanos::ZERO {
            self.hand_over(&[packet], at);
        } else {
            if self.gathered.1.is_empty() {
                self.gathered.0 = at + self.path.receiver.gather;
            }
            self.gathered.1.push(packet);
        }
    }

    /// A packet is offered to hop `h`.
    fn enters(&mut self, h: usize, at: Nanos, packet: u64) {
        let (size, flow) = if packet & TCP == 0 {
            (u32::from(self.places[packet as usize].size), 0)
        } else {
            self.tcp_bytes += u64::from(tcp::PACKET);
            (tcp::PACKET, flow_of(packet).0 as u32 + 1)
        };
        match self.lines[h].offer(at, size, flow, packet) {
            Some(refused) if refused & TCP != 0 => self.tcp_bytes -= u64::from(tcp::PACKET),
            Some(refused) => self.decided(refused, at),
            None => {}
        }
    }

    fn flow_sends(&mut self, f: usize) {
        for number in self.flows[f].send(self.now) {
            self.enters(0, self.now, TCP | (f as u64) << 40 | number);
        }
    }

    /// The sending host sends its next packet, unless it stands still.
    fn leaves(&mut self, mut at: Nanos) {
        let Some(&Reverse((_, packet))) = self.to_send.peek() else { return };
        if at >= self.stall {
            at += Nanos::from_secs_f64(self.stream.uniform() * self.path.stalls.1.as_secs_f64());
            self.stall = self.stall_after(at);
            self.sender_free = at;
            return;
        }
        self.to_send.pop();
        let Place { train, index, size } = self.places[packet as usize];
        self.sender_free = at + self.path.access.time_for(u64::from(size));
        self.trains[train].seen[index].sent = at;
        self.trains[train].last = self.trains[train].last.max(at);
        self.enters(0, at, packet);
    }

    fn stall_after(&mut self, at: Nanos) -> Nanos {
        match self.path.stalls.0 {
            0.0 => Nanos::MAX,
            often => at + Nanos::from_secs_f64(self.stream.exponential(1.0 / often)),
        }
    }

    /// By the receiver's clock.
    fn stamp(&mut self, at: Nanos) -> Nanos {
        let receiver = self.path.receiver;
        let local = at.0 as f64 * (1.0 + receiver.skew_ppm * 1e-6) + self.stream.uniform() * receiver.noise.0 as f64;
        Nanos(local as u64 + receiver.offset)
    }

    fn hand_over(&mut self, packets: &[u64], at: Nanos) {
        let received = Some(self.stamp(at) + self.path.delay);
        for (index, &packet) in (0..).zip(packets) {
            let place = self.places[packet as usize];
            let seen = &mut self.trains[place.train].seen[place.index];
            seen.received = received;
            seen.batch = Batch { index, of: packets.len() as u32 };
            self.decided(packet, at);
        }
    }

    /// It is known what became of a packet; with a train's last one its report goes back.
    fn decided(&mut self, packet: u64, at: Nanos) {
        let train = self.places[packet as usize].train;
        let sent = &mut self.trains[train];
        sent.open -= 1;
        sent.last = sent.last.max(at);
        if sent.open == 0 {
            self.reports.push(Reverse((sent.last + self.path.delay * 2, train)));
        }
    }
}
