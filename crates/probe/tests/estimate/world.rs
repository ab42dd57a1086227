//! A path in virtual time for estimators: one or several bottlenecks with queues, cross traffic and loss (`pathcast-link`),
//! a sender that is held up now and then, a receiver with a clock of its own that gathers packets, reports one way later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{Bucket, Cross, FairLink, Link, Offered, Params, Queue};
use pathcast_probe::estimate::{Estimate, Method, Plan, Seen, Step, TrainSeen};
use pathcast_probe::machine::Batch;

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
}

#[derive(Clone, Debug)]
pub struct Hop {
    pub params: Params,
    pub cross: Vec<Cross>,
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

enum Line {
    Shared(Link<u64>),
    Fair(FairLink<u64>),
}

impl Line {
    fn next_due(&self) -> Option<Nanos> {
        match self {
            Line::Shared(link) => link.next_due(),
            Line::Fair(link) => link.next_due(),
        }
    }
    /// The number of a packet that leaves at `now`, and whether it lives.
    fn pop(&mut self, now: Nanos) -> Option<(u64, Nanos, bool)> {
        let released = match self {
            Line::Shared(link) => link.pop(now),
            Line::Fair(link) => link.pop(now),
        }?;
        Some((released.packet, released.at, !released.lost))
    }
    fn offer(&mut self, now: Nanos, bytes: u32, packet: u64) -> Option<u64> {
        match self {
            Line::Shared(link) => link.offer(now, bytes, packet).err().map(|refused| refused.packet),
            Line::Fair(link) => match link.offer(now, bytes, 0, packet) {
                Offered::Taken => None,
                Offered::Refused(lost) | Offered::PushedOut(lost) => Some(lost),
            },
        }
    }
    /// Bytes of cross traffic that entered up to `now`.
    fn entered(&mut self, now: Nanos) -> u64 {
        match self {
            Line::Shared(link) => {
                link.advance(now);
                link.counters().cross.entered.bytes
            }
            Line::Fair(link) => {
                link.advance(now);
                link.counters().cross.entered.bytes
            }
        }
    }
}

struct Flying {
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

/// Runs a method to its end.
pub fn run(path: &Path, seed: u64, method: &mut dyn Method) -> Outcome {
    let mut stream = Stream::new(seed, "world");
    let mut lines: Vec<Line> = Vec::new();
    for (h, hop) in path.hops.iter().enumerate() {
        let name = format!("hop{h}");
        let mut line = match hop.params.queue {
            Queue::Fair(_) => Line::Fair(FairLink::new(hop.params.clone(), seed, &name)),
            _ => Line::Shared(Link::new(hop.params.clone(), seed, &name)),
        };
        for (c, cross) in hop.cross.iter().enumerate() {
            let start = Nanos::from_secs_f64(stream.uniform() * 0.2);
            match &mut line {
                Line::Shared(link) => _ = link.add_cross(&format!("c{c}"), cross, start, None),
                Line::Fair(link) => _ = link.add_cross(&format!("c{c}"), cross, start, None),
            }
        }
        lines.push(line);
    }
    let begin = Nanos::millis(1000) + Nanos::from_secs_f64(stream.uniform());
    let rates: Vec<f64> = path
        .hops
        .iter()
        .map(|hop| {
            let line = hop.params.rate.map_or(f64::INFINITY, |r| r.0 as f64);
            hop.params.bucket.map_or(line, |b| line.min(b.rate.0 as f64))
        })
        .collect();
    let before: Vec<u64> = lines.iter_mut().map(|line| line.entered(begin)).collect();

    let mut now = begin;
    let mut flying: Vec<Flying> = Vec::new();
    let mut trains: Vec<Sent> = Vec::new();
    let mut to_send: BinaryHeap<Reverse<(Nanos, u64)>> = BinaryHeap::new();
    let mut reports: BinaryHeap<Reverse<(Nanos, usize)>> = BinaryHeap::new();
    let mut sender_free = Nanos::ZERO;
    let mut stall = stall_after(path, &mut stream, begin);
    let mut gathered: (Nanos, Vec<u64>) = (Nanos::MAX, Vec::new());
    let mut sent_bytes = 0;
    let mut wake;
    let stamp = |at: Nanos, stream: &mut Stream| {
        let r = path.receiver;
        let local = at.0 as f64 * (1.0 + r.skew_ppm * 1e-6) + stream.uniform() * r.noise.0 as f64;
        Nanos(local as u64 + r.offset)
    };
    let mut idle = 0;
    'world: loop {
        loop {
            match method.next(now) {
                Step::Send(plan) => {
                    idle = 0;
                    let mut at = plan.at.max(now);
                    let seen = vec![
                        Seen { size: plan.size, sent: Nanos::ZERO, received: None, batch: Batch::SINGLE };
                        plan.count()
                    ];
                    for i in 0..plan.count() {
                        if i > 0 {
                            at += plan.gaps[i - 1];
                        }
                        to_send.push(Reverse((at, flying.len() as u64)));
                        flying.push(Flying { train: trains.len(), index: i, size: plan.size });
                    }
                    sent_bytes += plan.bytes();
                    trains.push(Sent { open: plan.count(), plan, seen, last: Nanos::ZERO });
                }
                Step::Wait(until) => {
                    idle += usize::from(until <= now);
                    assert!(idle < 1000, "it waits for the past: {until:?} at {now:?}");
                    wake = until;
                    break;
                }
                Step::Done => break 'world,
            }
        }
        // until something is told to the method
        loop {
            let hop = lines.iter().enumerate().filter_map(|(i, l)| Some((l.next_due()?, i))).min();
            let next_send = to_send.peek().map_or(Nanos::MAX, |r| r.0.0.max(sender_free));
            let next_report = reports.peek().map_or(Nanos::MAX, |r| r.0.0);
            let next_hop = hop.map_or(Nanos::MAX, |h| h.0);
            let next = next_send.min(next_report).min(next_hop).min(gathered.0).min(wake.max(now));
            now = now.max(next);
            if next_hop <= next {
                let (due, h) = hop.unwrap();
                let Some((packet, at, lives)) = lines[h].pop(due) else { continue };
                if !lives {
                    lost(packet, at, path, &flying, &mut trains, &mut reports);
                } else if h + 1 < lines.len() {
                    let size = u32::from(flying[packet as usize].size);
                    if let Some(refused) = lines[h + 1].offer(at, size, packet) {
                        lost(refused, at, path, &flying, &mut trains, &mut reports);
                    }
                } else if path.receiver.gather == Nanos::ZERO {
                    let at = stamp(at, &mut stream);
                    hand_over(&[packet], now, at, path, &flying, &mut trains, &mut reports);
                } else {
                    if gathered.1.is_empty() {
                        gathered.0 = at + path.receiver.gather;
                    }
                    gathered.1.push(packet);
                }
            } else if gathered.0 <= next {
                let at = stamp(gathered.0, &mut stream);
                hand_over(&gathered.1, gathered.0, at, path, &flying, &mut trains, &mut reports);
                gathered = (Nanos::MAX, Vec::new());
            } else if next_send <= next {
                let Reverse((_, packet)) = to_send.pop().unwrap();
                let f = &flying[packet as usize];
                let mut at = next;
                if at >= stall {
                    at += Nanos::from_secs_f64(stream.uniform() * path.stalls.1.as_secs_f64());
                    stall = stall_after(path, &mut stream, at);
                    if at > next {
                        // the whole host stands still
                        sender_free = at;
                        to_send.push(Reverse((at, packet)));
                        continue;
                    }
                }
                sender_free = at + path.access.time_for(u64::from(f.size));
                trains[f.train].seen[f.index].sent = at;
                trains[f.train].last = trains[f.train].last.max(at);
                let size = u32::from(f.size);
                if let Some(refused) = lines[0].offer(at, size, packet) {
                    lost(refused, at, path, &flying, &mut trains, &mut reports);
                }
            } else if next_report <= next {
                let Reverse((_, train)) = reports.pop().unwrap();
                let sent = &trains[train];
                method.observe(now, &TrainSeen { id: sent.plan.id, packets: sent.seen.clone() });
                break;
            } else {
                break; // the wait is over
            }
        }
    }
    let elapsed = now - begin;
    let mut truth = f64::INFINITY;
    for (h, line) in lines.iter_mut().enumerate() {
        let entered = line.entered(now) - before[h];
        truth = truth.min(rates[h] - entered as f64 * 8.0 / elapsed.as_secs_f64().max(1e-9));
    }
    let capacity = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Outcome { estimate: method.estimate(), truth, capacity, elapsed, sent_bytes }
}

fn stall_after(path: &Path, stream: &mut Stream, at: Nanos) -> Nanos {
    if path.stalls.0 == 0.0 {
        return Nanos::MAX;
    }
    at + Nanos::from_secs_f64(stream.exponential(1.0 / path.stalls.0))
}

fn decided(
    train: usize,
    at: Nanos,
    path: &Path,
    trains: &mut [Sent],
    reports: &mut BinaryHeap<Reverse<(Nanos, usize)>>,
) {
    let sent = &mut trains[train];
    sent.open -= 1;
    sent.last = sent.last.max(at);
    if sent.open == 0 {
        reports.push(Reverse((sent.last + path.delay * 2, train)));
    }
}

fn lost(
    packet: u64,
    at: Nanos,
    path: &Path,
    flying: &[Flying],
    trains: &mut [Sent],
    reports: &mut BinaryHeap<Reverse<(Nanos, usize)>>,
) {
    decided(flying[packet as usize].train, at, path, trains, reports);
}

fn hand_over(
    packets: &[u64],
    at: Nanos,
    stamp: Nanos,
    path: &Path,
    flying: &[Flying],
    trains: &mut [Sent],
    reports: &mut BinaryHeap<Reverse<(Nanos, usize)>>,
) {
    for (i, &packet) in packets.iter().enumerate() {
        let f = &flying[packet as usize];
        let seen = &mut trains[f.train].seen[f.index];
        seen.received = Some(stamp + path.delay);
        seen.batch = Batch { index: i as u32, of: packets.len() as u32 };
        decided(f.train, at, path, trains, reports);
    }
}
