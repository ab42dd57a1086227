//! Flow queueing with controlled delay: RFC 8290, section 4, and where the limit is reached Linux's fq_codel_drop
//! (net/sched/sch_fq_codel.c): half of the fattest queue, up to 64 packets, from its head.
//!
//! Every queue has a controller of its own that looks at its own bytes (Linux: at those of all queues). A new queue that is
//! empty becomes old, as there; in Linux not if no queue is old.

use std::collections::VecDeque;

use crate::FqCodel;
use crate::codel::{Control, Fifo};
use crate::discipline::{Fate, Waiting};
use crate::round::Flow;

/// Most packets that are dropped at once where the limit is reached.
const DROP_BATCH: u32 = 64;

#[derive(Clone, Debug)]
struct Bucket<T> {
    queue: Fifo<T>,
    control: Control,
    credits: i64,
    listed: bool,
}

/// All queues.
#[derive(Clone, Debug)]
pub(crate) struct FlowQueues<T> {
    pub(crate) params: FqCodel,
    key: u64,
    buckets: Vec<Bucket<T>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

impl<T> FlowQueues<T> {
    /// `key` perturbs the hash.
    pub(crate) fn new(params: FqCodel, key: u64) -> Self {
        let bucket = |_| Bucket { queue: Fifo::new(), control: Control::default(), credits: 0, listed: false };
        let buckets = (0..params.flows).map(bucket).collect();
        FlowQueues { params, key, buckets, new: VecDeque::new(), old: VecDeque::new(), packets: 0, bytes: 0 }
    }

    /// The queue of a flow; splitmix64 as the hash.
    pub(crate) fn bucket(&self, flow: Flow) -> u32 {
        let id = match flow {
            Flow::Real(id) => u64::from(id),
            Flow::Cross(id) => 1 << 32 | u64::from(id),
        };
        let mut z = self.key ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * self.buckets.len() as u128) >> 64) as u32
    }

    /// Nothing waits: all queues leave their lists, so that the next packet of each begins anew.
    pub(crate) fn rest(&mut self) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            let bucket = &mut self.buckets[index as usize];
            bucket.listed = false;
            bucket.control.rest();
        }
    }

    /// Puts a packet behind those of its queue.
    pub(crate) fn push(&mut self, flow: Flow, waiting: Waiting<T>) {
        let index = self.bucket(flow);
        self.packets += 1;
        self.bytes += u64::from(waiting.bytes);
        let bucket = &mut self.buckets[index as usize];
        bucket.queue.push(waiting);
        if !bucket.listed {
            bucket.listed = true;
            bucket.credits = self.params.quantum.0 as i64;
            self.new.push_back(index);
        }
    }

    /// Drops what is beyond the limits.
    pub(crate) fn shed(&mut self, out: &mut impl FnMut(Waiting<T>, Fate)) {
        while self.packets > self.params.limit || self.bytes > self.params.memory.0 {
            self.drop_fattest(out);
        }
    }

    fn drop_fattest(&mut self, out: &mut impl FnMut(Waiting<T>, Fate)) {
        let (mut most, mut fattest) = (0, 0);
        for (index, bucket) in self.buckets.iter().enumerate() {
            if bucket.queue.bytes > most {
                (most, fattest) = (bucket.queue.bytes, index);
            }
        }
        let bucket = &mut self.buckets[fattest];
        let (mut dropped, mut bytes) = (0, 0);
        while dropped < DROP_BATCH && (dropped == 0 || bytes < most / 2) {
            let Some(waiting) = bucket.queue.pop() else { break };
            dropped += 1;
            bytes += u64::from(waiting.bytes);
            out(waiting, Fate::Full);
        }
        bucket.control.count_more(dropped);
        self.packets -= dropped;
        self.bytes -= bytes;
    }

    /// Takes the packet whose turn it is. Every packet costs its flow `overhead` bytes more.
    pub(crate) fn next(
        &mut self,
        now: u64,
        overhead: u64,
        out: &mut impl FnMut(Waiting<T>, Fate),
    ) -> Option<Waiting<T>> {
        let codel = self.params.codel();
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let bucket = &mut self.buckets[index as usize];
            if bucket.credits <= 0 {
                bucket.credits += self.params.quantum.0 as i64;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (bucket.queue.packets.len() as u32, bucket.queue.bytes);
            let next = bucket.control.dequeue(&codel, now, &mut bucket.queue, &mut |waiting| out(waiting, Fate::Aqm));
            self.packets -= packets - bucket.queue.packets.len() as u32;
            self.bytes -= bytes - bucket.queue.bytes;
            let Some(waiting) = next else {
                list.pop_front();
                // else a flow that comes back at once would always be new, and starve the others
                if from_new {
                    self.old.push_back(index);
                } else {
                    bucket.listed = false;
                }
                continue;
            };
            bucket.credits -= (u64::from(waiting.bytes) + overhead) as i64;
            return Some(waiting);
        }
    }
}
