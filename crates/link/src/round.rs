//! Per-flow queues served by deficit round robin: M. Shreedhar and G. Varghese, "Efficient fair queuing using deficit
//! round-robin", IEEE/ACM ToN 4(3), 1996, section III.
//!
//! Their symbols: ActiveList = `ring`, DC = `deficit`, Q = `quantum`. The quantum of the next turn is given at the end of
//! a turn and not at its begin, so that packets can be asked for one at a time. All packets live in one pool, and a queue
//! is somebody's only while it holds packets.

use std::collections::VecDeque;

use crate::discipline::Waiting;

/// No slot, no queue.
const NONE: u32 = u32::MAX;

/// Whose packets a queue holds. Of equally long queues the lowest is the first to lose a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    /// A flow of real packets.
    Real(u32),
    /// A source of cross traffic.
    Cross(u32),
}

/// A place in the pool: a packet between its neighbours in its queue, or free, and then `behind` is the next free one.
#[derive(Clone, Debug)]
struct Slot<T> {
    waiting: Option<Waiting<T>>,
    before: u32,
    behind: u32,
}

#[derive(Clone, Debug)]
struct Queue {
    flow: Flow,
    first: u32,
    last: u32,
    bytes: u64,
    deficit: u64,
}

/// All queues.
#[derive(Clone, Debug)]
pub(crate) struct Round<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    queues: Vec<Queue>,
    unused: Vec<u32>,
    /// Queue of each flow and of each source; `NONE` while nothing of it waits.
    real: Vec<u32>,
    cross: Vec<u32>,
    ring: VecDeque<u32>,
}

impl<T> Round<T> {
    pub(crate) fn new() -> Self {
        Round {
            slots: Vec::new(),
            free: NONE,
            queues: Vec::new(),
            unused: Vec::new(),
            real: Vec::new(),
            cross: Vec::new(),
            ring: VecDeque::new(),
        }
    }

    fn home(&mut self, flow: Flow) -> &mut u32 {
        let (homes, index) = match flow {
            Flow::Real(id) => (&mut self.real, id as usize),
            Flow::Cross(id) => (&mut self.cross, id as usize),
        };
        if homes.len() <= index {
            homes.resize(index + 1, NONE);
        }
        &mut homes[index]
    }

    /// Puts a packet behind those of its flow; a flow that had none comes last in the round.
    pub(crate) fn push(&mut self, flow: Flow, waiting: Waiting<T>, quantum: u64) {
        let bytes = u64::from(waiting.bytes);
        let mut index = *self.home(flow);
        if index == NONE {
            index = self.open(Queue { flow, first: NONE, last: NONE, bytes: 0, deficit: quantum });
        }
        let last = self.queues[index as usize].last;
        let slot = self.settle(Slot { waiting: Some(waiting), before: last, behind: NONE });
        let queue = &mut self.queues[index as usize];
        queue.bytes += bytes;
        queue.last = slot;
        match last {
            NONE => queue.first = slot,
            last => self.slots[last as usize].behind = slot,
        }
    }

    fn open(&mut self, queue: Queue) -> u32 {
        let flow = queue.flow;
        let index = match self.unused.pop() {
            Some(index) => {
                self.queues[index as usize] = queue;
                index
            }
            None => {
                self.queues.push(queue);
                self.queues.len() as u32 - 1
            }
        };
        *self.home(flow) = index;
        self.ring.push_back(index);
        index
    }

    fn settle(&mut self, slot: Slot<T>) -> u32 {
        let free = self.free;
        if free == NONE {
            self.slots.push(slot);
            return self.slots.len() as u32 - 1;
        }
        let place = &mut self.slots[free as usize];
        self.free = place.behind;
        *place = slot;
        free
    }

    /// Takes the packet whose turn it is. Every packet costs its flow `overhead` bytes more.
    pub(crate) fn next(&mut self, quantum: u64, overhead: u64) -> Option<Waiting<T>> {
        loop {
            let index = *self.ring.front()?;
            let queue = &mut self.queues[index as usize];
            let first = queue.first;
            let waiting = self.slots[first as usize].waiting.as_ref().expect("a queue in the ring has a packet");
            let cost = u64::from(waiting.bytes) + overhead;
            if cost <= queue.deficit {
                queue.deficit -= cost;
                return Some(self.take(index, first));
            }
            queue.deficit += quantum;
            self.ring.rotate_left(1);
        }
    }

    /// The flow with the most bytes waiting if `flow` had `bytes` more.
    pub(crate) fn longest(&self, flow: Flow, bytes: u32) -> Flow {
        let bytes = u64::from(bytes);
        let (mut most, mut longest) = (bytes, flow);
        for &index in &self.ring {
            let queue = &self.queues[index as usize];
            let length = queue.bytes + if queue.flow == flow { bytes } else { 0 };
            if length > most || length == most && queue.flow < longest {
                (most, longest) = (length, queue.flow);
            }
        }
        longest
    }

    /// Takes the last packet of a flow.
    pub(crate) fn drop_last(&mut self, flow: Flow) -> Option<Waiting<T>> {
        let index = *self.home(flow);
        let last = self.queues.get(index as usize)?.last;
        Some(self.take(index, last))
    }

    /// Takes the packet in `slot` out of a queue's front or end.
    fn take(&mut self, index: u32, slot: u32) -> Waiting<T> {
        let place = &mut self.slots[slot as usize];
        let waiting = place.waiting.take().expect("only what waits is taken");
        let (before, behind) = (place.before, place.behind);
        place.behind = std::mem::replace(&mut self.free, slot);
        let queue = &mut self.queues[index as usize];
        queue.bytes -= u64::from(waiting.bytes);
        match before {
            NONE => queue.first = behind,
            before => self.slots[before as usize].behind = behind,
        }
        match behind {
            NONE => queue.last = before,
            behind => self.slots[behind as usize].before = before,
        }
        if queue.first == NONE {
            let flow = queue.flow;
            *self.home(flow) = NONE;
            self.unused.push(index);
            // nearly always the first
            let turn = self.ring.iter().position(|&other| other == index).expect("it had a packet");
            self.ring.remove(turn);
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Load;

    fn push(round: &mut Round<u32>, flow: Flow, bytes: u32, packet: u32) {
        let load = Some(Load { packet, lost: false, late: false, ect: false, marked: false });
        round.push(flow, Waiting { arrived: 0, bytes, load }, 1500);
    }

    fn next(round: &mut Round<u32>) -> Option<u32> {
        round.next(1500, 0).map(|waiting| waiting.load.unwrap().packet)
    }

    #[test]
    fn a_quantum_a_turn_and_the_rest_is_kept() {
        let mut round = Round::new();
        for i in 0..4 {
            push(&mut round, Flow::Real(7), 1000, i);
            push(&mut round, Flow::Real(3), 600, 10 + i);
        }
        // 7: 1500 - 1000, then 2000 - 2000; 3: 1500 - 1200, then 1800 - 1200
        let order: Vec<u32> = std::iter::from_fn(|| next(&mut round)).collect();
        assert_eq!(order, [0, 10, 11, 1, 2, 12, 13, 3]);
        assert!(round.ring.is_empty());
    }

    #[test]
    fn the_longest_counts_the_newcomer_and_ties_go_by_number() {
        let mut round = Round::new();
        assert_eq!(round.longest(Flow::Real(9), 1), Flow::Real(9));
        push(&mut round, Flow::Cross(0), 1000, 0);
        push(&mut round, Flow::Real(5), 500, 1);
        assert_eq!(round.longest(Flow::Real(5), 499), Flow::Cross(0));
        assert_eq!(round.longest(Flow::Real(5), 500), Flow::Real(5));
        assert_eq!(round.longest(Flow::Real(6), 1000), Flow::Real(6));
        assert_eq!(round.longest(Flow::Cross(1), 1000), Flow::Cross(0));
        assert_eq!(round.drop_last(Flow::Real(5)).unwrap().bytes, 500);
        assert!(round.drop_last(Flow::Real(5)).is_none());
        assert_eq!((next(&mut round), next(&mut round)), (Some(0), None));
    }

    #[test]
    fn pools_are_used_again() {
        let mut round = Round::new();
        for flow in 0..1000 {
            for i in 0..5 {
                push(&mut round, Flow::Real(flow), 100, i);
            }
            assert_eq!(round.drop_last(Flow::Real(flow)).unwrap().load.unwrap().packet, 4);
            assert_eq!(std::iter::from_fn(|| next(&mut round)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        }
        assert_eq!((round.slots.len(), round.queues.len()), (5, 1));
    }
}
