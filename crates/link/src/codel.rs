//! Controlled delay: RFC 8289, section 5. Names are those of its pseudocode; marking is as in Linux
//! (include/net/codel_impl.h): where it would drop it marks, and the packet goes.

use std::collections::VecDeque;

use crate::Codel;
use crate::discipline::{Fate, Waiting};

/// Of common packets; where larger ones come, the largest seen counts.
const MAXPACKET: u32 = 1500;

/// First in, first out, with the bytes in it.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    pub(crate) packets: VecDeque<Waiting<T>>,
    pub(crate) bytes: u64,
}

impl<T> Fifo<T> {
    pub(crate) fn new() -> Self {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn push(&mut self, waiting: Waiting<T>) {
        self.bytes += u64::from(waiting.bytes);
        self.packets.push_back(waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.bytes);
        Some(waiting)
    }
}

/// The state of the control law; times in ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    maxpacket: u32,
}

fn control_law(t: u64, interval: u64, count: u32) -> u64 {
    // the square root is correctly rounded, so the same on every machine
    t.saturating_add((interval as f64 / f64::from(count).sqrt()) as u64)
}

impl Control {
    /// Takes the next packet off `queue`, and whether it may be dropped.
    fn dodequeue<T>(&mut self, params: &Codel, now: u64, queue: &mut Fifo<T>) -> Option<(Waiting<T>, bool)> {
        let Some(waiting) = queue.pop() else {
            self.first_above_time = 0;
            return None;
        };
        self.maxpacket = self.maxpacket.max(waiting.bytes).max(MAXPACKET);
        let sojourn = now - waiting.arrived;
        let mut ok_to_drop = false;
        if sojourn < params.target.0 || queue.bytes <= u64::from(self.maxpacket) {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now.saturating_add(params.interval.0);
        } else {
            ok_to_drop = now >= self.first_above_time;
        }
        Some((waiting, ok_to_drop))
    }

    /// Takes the packet off `queue` that goes on the line at `now`; those before it that do not go to `out`.
    pub(crate) fn dequeue<T>(
        &mut self,
        params: &Codel,
        now: u64,
        queue: &mut Fifo<T>,
        out: &mut impl FnMut(Waiting<T>),
    ) -> Option<Waiting<T>> {
        let (mut waiting, mut ok_to_drop) = match self.dodequeue(params, now, queue) {
            Some(taken) => taken,
            None => {
                self.dropping = false;
                return None;
            }
        };
        let interval = params.interval.0;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if params.ecn && waiting.mark() {
                    self.drop_next = control_law(self.drop_next, interval, self.count);
                    break;
                }
                out(waiting);
                match self.dodequeue(params, now, queue) {
                    Some(taken) => (waiting, ok_to_drop) = taken,
                    None => {
                        self.dropping = false;
                        return None;
                    }
                }
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, interval, self.count);
                }
            }
            return Some(waiting);
        }
        if !ok_to_drop {
            return Some(waiting);
        }
        let mut next = None;
        if params.ecn && waiting.mark() {
            next = Some(waiting);
        } else {
            out(waiting);
            if let Some((waiting, _)) = self.dodequeue(params, now, queue) {
                next = Some(waiting);
            }
        }
        self.dropping = true;
        // the rate that controlled the queue just before is a good one to begin with
        let delta = self.count - self.lastcount;
        self.count = if delta > 1 && now.saturating_sub(self.drop_next) < 16 * interval { delta } else { 1 };
        self.drop_next = control_law(now, interval, self.count);
        self.lastcount = self.count;
        next
    }

    /// As [`Control::dequeue`] of an empty queue.
    pub(crate) fn rest(&mut self) {
        (self.first_above_time, self.dropping) = (0, false);
    }

    /// Counts packets that were dropped otherwise, as Linux's fq_codel does.
    pub(crate) fn count_more(&mut self, dropped: u32) {
        self.count = self.count.saturating_add(dropped);
    }
}

/// One queue under controlled delay.
#[derive(Clone, Debug)]
pub(crate) struct CodelQueue<T> {
    pub(crate) params: Codel,
    queue: Fifo<T>,
    control: Control,
}

impl<T> CodelQueue<T> {
    pub(crate) fn new(params: Codel) -> Self {
        CodelQueue { params, queue: Fifo::new(), control: Control::default() }
    }

    pub(crate) fn push(&mut self, waiting: Waiting<T>) {
        self.queue.push(waiting);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.packets.len() >= self.params.limit as usize
    }

    pub(crate) fn next(&mut self, now: u64, out: &mut impl FnMut(Waiting<T>, Fate)) -> Option<Waiting<T>> {
        self.control.dequeue(&self.params, now, &mut self.queue, &mut |waiting| out(waiting, Fate::Aqm))
    }
}
