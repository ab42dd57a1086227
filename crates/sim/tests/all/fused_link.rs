//! The fused link, which knows a departure when the packet arrives, against the plain one: a queue, a transmission, an
//! event when it is done.

use std::collections::VecDeque;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Link, Params, Queue};
use proptest::prelude::*;

/// A drop-tail queue before a transmitter, with its two events.
struct Plain {
    rate: u64,
    overhead: u64,
    packets: usize,
    bytes: u64,
    waiting: VecDeque<(u32, u64)>,
    /// Packet in transmission and when it is done.
    sending: Option<(u32, u64)>,
    departed: Vec<(u64, u32)>,
    dropped: Vec<u32>,
}

impl Plain {
    fn start(&mut self, now: u64, id: u32, bytes: u64) {
        let bits = u128::from(bytes + self.overhead) * 8_000_000_000;
        self.sending = Some((id, now + bits.div_ceil(u128::from(self.rate)) as u64));
    }
    /// The written rule: at equal times a departure comes before an arrival.
    fn until(&mut self, now: u64) {
        while let Some((id, done)) = self.sending.filter(|&(_, done)| done <= now) {
            self.departed.push((done, id));
            self.sending = None;
            if let Some((next, bytes)) = self.waiting.pop_front() {
                self.start(done, next, bytes);
            }
        }
    }
    fn arrive(&mut self, now: u64, id: u32, bytes: u64) {
        self.until(now);
        let held: u64 = self.waiting.iter().map(|(_, bytes)| bytes).sum();
        if self.sending.is_none() {
            self.start(now, id, bytes);
        } else if self.waiting.len() < self.packets && held + bytes <= self.bytes {
            self.waiting.push_back((id, bytes));
        } else {
            self.dropped.push(id);
        }
    }
}

fn compare(rate: u64, delay: u64, overhead: u64, queue: Queue, arrivals: &[(u64, u64)]) -> (usize, usize) {
    let (packets, bytes) = match &queue {
        Queue::Packets(n) => (*n as usize, u64::MAX / 2),
        Queue::Bytes(n) => (usize::MAX, n.0),
        _ => unreachable!(),
    };
    let (waiting, departed, dropped) = (VecDeque::new(), Vec::new(), Vec::new());
    let mut plain = Plain { rate, overhead, packets, bytes, waiting, sending: None, departed, dropped };
    let params =
        Params { rate: Some(Rate(rate)), delay: Nanos(delay), overhead: Bytes(overhead), queue, ..Params::default() };
    let mut link = Link::new(params, 1, "l");
    let (mut dropped, mut out) = (Vec::new(), Vec::new());
    let mut now = 0;
    for (id, &(gap, bytes)) in arrivals.iter().enumerate() {
        now += gap;
        plain.arrive(now, id as u32, bytes);
        while let Some(released) = link.pop(Nanos(now)) {
            out.push((released.at.0, released.packet));
        }
        if link.offer(Nanos(now), bytes as u32, id as u32).is_err() {
            dropped.push(id as u32);
        }
        let held: u64 = plain.waiting.iter().map(|(_, bytes)| bytes).sum();
        let backlog = link.backlog(Nanos(now));
        assert_eq!((backlog.packets, backlog.bytes), (plain.waiting.len() as u64, held), "waiting at {now}");
    }
    plain.until(u64::MAX);
    while let Some(due) = link.next_due() {
        let released = link.pop(due).unwrap();
        out.push((released.at.0, released.packet));
    }
    let expected: Vec<(u64, u32)> = plain.departed.iter().map(|&(at, id)| (at + delay, id)).collect();
    assert_eq!(out, expected);
    assert_eq!(dropped, plain.dropped);
    (out.len(), dropped.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_arrivals_leave_alike(
        rate in 1000u64..10_000_000_000,
        delay in 0u64..100_000_000,
        overhead in 0u64..60,
        limit in 0u32..20,
        load in 0.3..3.0f64,
        bytewise in any::<bool>(),
        arrivals in prop::collection::vec((0.0..2.0f64, 40u64..1501), 1..200),
    ) {
        let queue = if bytewise { Queue::Bytes(Bytes(u64::from(limit) * 700)) } else { Queue::Packets(limit) };
        let mean = 770.0 * 8e9 / rate as f64 / load;
        let arrivals: Vec<_> = arrivals.iter().map(|&(gap, bytes)| ((gap * mean) as u64, bytes)).collect();
        compare(rate, delay, overhead, queue, &arrivals);
    }

    /// Packets of one length that come at multiples of half their line time: most events fall on equal times.
    #[test]
    fn equal_times_follow_the_written_rule(
        limit in 0u32..6,
        arrivals in prop::collection::vec(0u64..4, 1..300),
    ) {
        let arrivals: Vec<_> = arrivals.iter().map(|&halves| (halves * 500_000, 1500)).collect();
        compare(12_000_000, 0, 0, Queue::Packets(limit), &arrivals);
    }
}

#[test]
fn a_full_queue_at_the_instant_of_a_departure() {
    // a packet takes 1 ms; at 1 ms one place is free again, a nanosecond before it is not
    let arrivals = |last: u64| [(0, 1500), (0, 1500), (last, 1500)];
    assert_eq!(compare(12_000_000, 0, 0, Queue::Packets(1), &arrivals(999_999)), (2, 1));
    assert_eq!(compare(12_000_000, 0, 0, Queue::Packets(1), &arrivals(1_000_000)), (3, 0));
}
