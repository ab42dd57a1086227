//! Random scripts on a link with a fair queue and on the same written again, brute force, with the paper's own order of
//! steps: a flow gets its quantum when its turn begins, and sends until the next packet does not fit.

use std::collections::{BTreeMap, VecDeque};

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{DeferredLink, Fair, Offered, Params, Queue};
use proptest::prelude::*;

struct Naive {
    rate: Rate,
    overhead: u64,
    delay: u64,
    fair: Fair,
    /// Numbers and bytes of what waits.
    queues: BTreeMap<u32, VecDeque<(u32, u32)>>,
    deficits: BTreeMap<u32, u64>,
    active: VecDeque<u32>,
    /// The first of `active` has had its quantum.
    begun: bool,
    free_at: u64,
    wire: VecDeque<(u64, u32)>,
}

impl Naive {
    fn run(&mut self, now: u64) {
        while self.free_at <= now && !self.active.is_empty() {
            let flow = self.active[0];
            let deficit = self.deficits.entry(flow).or_default();
            if !self.begun {
                *deficit += self.fair.quantum.0;
                self.begun = true;
            }
            let queue = self.queues.get_mut(&flow).unwrap();
            let (id, bytes) = queue[0];
            let cost = u64::from(bytes) + self.overhead;
            if cost > *deficit {
                self.begun = false;
                self.active.rotate_left(1);
                continue;
            }
            *deficit -= cost;
            queue.pop_front();
            self.serve(self.free_at, id, bytes);
            self.forget_empty(flow);
        }
    }

    fn forget_empty(&mut self, flow: u32) {
        if self.queues[&flow].is_empty() {
            self.begun &= self.active[0] != flow;
            self.deficits.remove(&flow);
            self.active.retain(|&other| other != flow);
        }
    }

    fn serve(&mut self, start: u64, id: u32, bytes: u32) {
        self.free_at = start + self.rate.time_for(u64::from(bytes) + self.overhead).0;
        self.wire.push_back((self.free_at + self.delay, id));
    }

    fn offer(&mut self, now: u64, bytes: u32, flow: u32, id: u32) -> Offered<u32> {
        self.run(now);
        if self.free_at <= now {
            self.serve(now, id, bytes);
            return Offered::Taken;
        }
        let waiting: usize = self.queues.values().map(VecDeque::len).sum();
        self.queues.entry(flow).or_default().push_back((id, bytes));
        if !self.active.contains(&flow) {
            self.active.push_back(flow);
        }
        if (waiting as u32) < self.fair.packets {
            return Offered::Taken;
        }
        let length = |queue: &VecDeque<(u32, u32)>| queue.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>();
        let most = self.queues.values().map(length).max().unwrap();
        let longest = *self.queues.iter().find(|(_, queue)| length(queue) == most).unwrap().0;
        let (victim, _) = self.queues.get_mut(&longest).unwrap().pop_back().unwrap();
        self.forget_empty(longest);
        if victim == id { Offered::Refused(id) } else { Offered::PushedOut(victim) }
    }

    fn pop(&mut self, now: u64) -> Option<(u64, u32)> {
        self.run(now);
        (self.wire.front()?.0 <= now).then(|| self.wire.pop_front())?
    }
}

fn steps() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => (1u64..8).prop_map(|n| n * 250_000), 2 => 0u64..2_000_000];
    let bytes = prop_oneof![3 => Just(1500u32), 1 => Just(500u32), 1 => 1u32..4000];
    prop::collection::vec((gap, bytes, 0u32..6), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn equals_the_paper(
        rate in prop_oneof![Just(12_000_000u64), Just(24_000_000), 500_000u64..50_000_000],
        packets in 0u32..12,
        quantum in prop_oneof![Just(1500u64), Just(64), 64u64..6000],
        overhead in prop_oneof![Just(0u64), Just(38)],
        delay in prop_oneof![Just(0u64), 0u64..3_000_000],
        script in steps(),
    ) {
        let (rate, fair) = (Rate(rate), Fair { packets, quantum: Bytes(quantum) });
        let params = Params {
            rate: Some(rate),
            delay: Nanos(delay),
            queue: Queue::Fair(fair),
            overhead: Bytes(overhead),
            ..Params::default()
        };
        let mut link = DeferredLink::new(params, 1, "model");
        let mut model = Naive {
            rate,
            overhead,
            delay,
            fair,
            queues: BTreeMap::new(),
            deficits: BTreeMap::new(),
            active: VecDeque::new(),
            begun: false,
            free_at: 0,
            wire: VecDeque::new(),
        };
        let mut now = 0;
        for (id, (gap, bytes, flow)) in script.into_iter().enumerate() {
            now += gap;
            let id = id as u32;
            prop_assert_eq!(link.offer(Nanos(now), bytes, flow, id), model.offer(now, bytes, flow, id), "at {}", now);
            if id.is_multiple_of(3) {
                while let Some(expected) = model.pop(now) {
                    prop_assert_eq!(link.pop(Nanos(now)).map(|r| (r.at.0, r.packet)), Some(expected));
                }
            }
        }
        while let Some(due) = link.next_due() {
            now = now.max(due.0);
            prop_assert_eq!(link.pop(Nanos(now)).map(|r| (r.at.0, r.packet)), model.pop(now));
        }
        prop_assert_eq!(model.pop(u64::MAX), None);
    }
}
