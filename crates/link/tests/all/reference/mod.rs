//! The same link written again, brute force and event-driven: a queue, a server, tokens; every start and every end of a
//! service is an event, and nothing is known ahead. Slow and plain, to be compared with.

use std::collections::VecDeque;

use pathcast_base::{Bytes, Rate};
use pathcast_link::{Params, Queue};

const UNITS: i128 = 8_000_000_000;

/// A packet: real ones have a number.
#[derive(Clone, Copy, Debug)]
struct Packet {
    id: Option<u32>,
    bytes: u32,
}

/// Constant cross traffic: packet `sent` arrives at start + sent * packet / rate.
struct Stamped {
    start: u64,
    rate: Rate,
    packet: Bytes,
    sent: u64,
    alive: bool,
}

impl Stamped {
    fn next(&self) -> u64 {
        if !self.alive {
            return u64::MAX;
        }
        let bits = u128::from(self.sent) * u128::from(self.packet.0) * 8_000_000_000;
        self.start + (bits / u128::from(self.rate.0)) as u64
    }
}

/// What a script can compare.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub waiting: (u64, u64),
    pub most: (u64, u64),
    pub busy: u64,
    pub cross_entered: u64,
    pub cross_dropped: u64,
}

pub struct Reference {
    params: Params,
    now: u64,
    queue: VecDeque<Packet>,
    /// The packet in service and when its service ends.
    service: Option<(Packet, u64)>,
    tokens: i128,
    tokens_at: u64,
    cross: Vec<Stamped>,
    /// (due, id), in order.
    wire: VecDeque<(u64, u32)>,
    last_due: u64,
    totals: Totals,
}

impl Reference {
    pub fn new(params: Params) -> Self {
        let tokens = params.bucket.map_or(0, |b| i128::from(b.burst.0) * UNITS);
        Reference {
            params,
            now: 0,
            queue: VecDeque::new(),
            service: None,
            tokens,
            tokens_at: 0,
            cross: Vec::new(),
            wire: VecDeque::new(),
            last_due: 0,
            totals: Totals::default(),
        }
    }

    fn size(&self, packet: Packet) -> u64 {
        u64::from(packet.bytes) + self.params.overhead.0
    }

    fn refill(&mut self, to: u64) {
        if let Some(bucket) = self.params.bucket {
            let full = i128::from(bucket.burst.0) * UNITS;
            self.tokens = (self.tokens + i128::from(bucket.rate.0) * i128::from(to - self.tokens_at)).min(full);
        }
        self.tokens_at = to;
    }

    /// Tokens still lacking before the packet may start.
    fn lacking(&self, packet: Packet) -> i128 {
        match self.params.bucket {
            None => 0,
            Some(bucket) => (i128::from(self.size(packet).min(bucket.burst.0)) * UNITS - self.tokens).max(0),
        }
    }

    fn move_clock(&mut self, to: u64) {
        if self.service.is_some() {
            self.totals.busy += to - self.now;
        }
        self.refill(to);
        self.now = to;
    }

    /// Starts whatever can start now.
    fn serve(&mut self) {
        while self.service.is_none() {
            let Some(&head) = self.queue.front() else { return };
            if self.lacking(head) > 0 {
                return;
            }
            self.queue.pop_front();
            self.tokens -= i128::from(self.size(head)) * UNITS;
            let time = self.params.rate.map_or(0, |rate| rate.time_for(self.size(head)).0);
            if time == 0 { self.depart(head) } else { self.service = Some((head, self.now + time)) }
        }
    }

    fn depart(&mut self, packet: Packet) {
        if let Some(id) = packet.id {
            self.last_due = self.last_due.max(self.now + self.params.delay.0);
            self.wire.push_back((self.last_due, id));
        }
    }

    fn next_service(&self) -> u64 {
        match (self.service, self.queue.front()) {
            (Some((_, end)), _) => end,
            (None, Some(&head)) => {
                let rate = i128::from(self.params.bucket.expect("only tokens can lack").rate.0);
                self.now + ((self.lacking(head) + rate - 1) / rate) as u64
            }
            (None, None) => u64::MAX,
        }
    }

    /// All events up to `until`, it included.
    pub fn run(&mut self, until: u64) {
        loop {
            let service = self.next_service();
            let source = (0..self.cross.len()).min_by_key(|&i| (self.cross[i].next(), i));
            let arrival = source.map_or(u64::MAX, |i| self.cross[i].next());
            if service.min(arrival) > until {
                break;
            }
            if service <= arrival {
                self.move_clock(service);
                if let Some((packet, _)) = self.service.take() {
                    self.depart(packet);
                }
                self.serve();
            } else {
                self.move_clock(arrival);
                let source = &mut self.cross[source.unwrap()];
                source.sent += 1;
                let packet = Packet { id: None, bytes: source.packet.0 as u32 };
                if self.arrive(packet) { self.totals.cross_entered += 1 } else { self.totals.cross_dropped += 1 }
            }
        }
        self.move_clock(until);
    }

    fn arrive(&mut self, packet: Packet) -> bool {
        let at_once = self.service.is_none() && self.queue.is_empty() && self.lacking(packet) == 0;
        let waiting_bytes: u64 = self.queue.iter().map(|p| u64::from(p.bytes)).sum();
        let room = match &self.params.queue {
            Queue::Packets(limit) => self.queue.len() < *limit as usize,
            Queue::Bytes(limit) => waiting_bytes + u64::from(packet.bytes) <= limit.0,
            _ => unreachable!("drop-tail only"),
        };
        if !at_once && !room {
            return false;
        }
        self.queue.push_back(packet);
        if !at_once {
            let (packets, bytes) = self.totals.most;
            let now_bytes = waiting_bytes + u64::from(packet.bytes);
            self.totals.most = (packets.max(self.queue.len() as u64), bytes.max(now_bytes));
        }
        self.serve();
        true
    }

    pub fn offer(&mut self, now: u64, bytes: u32, id: u32) -> bool {
        self.run(now);
        self.arrive(Packet { id: Some(id), bytes })
    }

    pub fn set(&mut self, now: u64, params: Params) {
        self.run(now);
        if let Some((packet, end)) = self.service.take() {
            let left = match (self.params.rate, params.rate) {
                (Some(old), Some(new)) => u128::from(end - now) * u128::from(old.0) / u128::from(new.0),
                _ => 0,
            };
            let whole = match (self.params.rate, params.rate) {
                (Some(old), Some(new)) => u128::from(end - now) * u128::from(old.0) % u128::from(new.0) == 0,
                _ => true,
            };
            self.service = Some((packet, now + left as u64 + u64::from(!whole)));
        }
        let full = params.bucket.map_or(0, |b| i128::from(b.burst.0) * UNITS);
        self.tokens = if self.params.bucket.is_some() { self.tokens.min(full) } else { full };
        self.params = params;
        self.serve();
        self.run(now);
    }

    pub fn add_cross(&mut self, start: u64, rate: Rate, packet: Bytes) {
        self.cross.push(Stamped { start, rate, packet, sent: 0, alive: true });
    }

    pub fn set_cross(&mut self, now: u64, index: usize, rate: Rate, packet: Bytes) {
        self.run(now);
        let old = &mut self.cross[index];
        *old = Stamped { start: now.max(old.start), rate, packet, sent: 0, alive: old.alive };
    }

    pub fn remove_cross(&mut self, now: u64, index: usize) {
        self.run(now);
        self.cross[index].alive = false;
    }

    /// What reaches the far end up to `now`.
    pub fn pop(&mut self, now: u64) -> Option<(u64, u32)> {
        self.run(now);
        if self.wire.front()?.0 > now { None } else { self.wire.pop_front() }
    }

    pub fn totals(&self) -> Totals {
        let bytes = self.queue.iter().map(|p| u64::from(p.bytes)).sum();
        Totals { waiting: (self.queue.len() as u64, bytes), ..self.totals }
    }
}
