//! What decides who waits, who goes next, and who goes not at all, in a link whose departures are decided when the line
//! is free.

use pathcast_base::Stream;

use crate::codel::CodelQueue;
use crate::counters::Cause;
use crate::fq_codel::FlowQueues;
use crate::pie::{PieQueue, Verdict};
use crate::round::{Flow, Round};
use crate::{Fair, Params, Queue};

/// A real packet, and what will have become of it.
#[derive(Clone, Debug)]
pub(crate) struct Load<T> {
    pub(crate) packet: T,
    /// The wire will lose it.
    pub(crate) lost: bool,
    /// Others will overtake it.
    pub(crate) late: bool,
    /// It can be marked.
    pub(crate) ect: bool,
    pub(crate) marked: bool,
}

/// A packet that waits since `arrived`; a virtual one carries nothing.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) arrived: u64,
    pub(crate) bytes: u32,
    pub(crate) load: Option<Load<T>>,
}

impl<T> Waiting<T> {
    /// Marks it, if it can be marked.
    pub(crate) fn mark(&mut self) -> bool {
        match &mut self.load {
            Some(load) if load.ect => {
                load.marked = true;
                true
            }
            _ => false,
        }
    }
}

/// Why a packet that was in had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Full,
    Aqm,
}

/// The queue of a [`DeferredLink`](crate::DeferredLink).
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // there is one a link
pub(crate) enum Discipline<T> {
    Fair(Fair, Round<T>),
    Codel(CodelQueue<T>),
    FqCodel(FlowQueues<T>),
    Pie(PieQueue<T>),
}

impl<T> Discipline<T> {
    /// # Panics
    /// If the queue is one of a `Link`.
    pub(crate) fn new(params: &Params, seed: u64, name: &str) -> Self {
        let stream = |purpose: &str| Stream::new(seed, &format!("{name}/{purpose}"));
        match params.queue {
            Queue::Fair(fair) => Discipline::Fair(fair, Round::new()),
            Queue::Codel(codel) => Discipline::Codel(CodelQueue::new(codel)),
            Queue::FqCodel(params) => Discipline::FqCodel(FlowQueues::new(params, stream("fq_codel").bits())),
            Queue::Pie(params) => Discipline::Pie(PieQueue::new(params, stream("pie"))),
            _ => panic!("{name}: the queue is {:?}, which needs a `Link`", params.queue),
        }
    }

    /// Other random numbers; the hash of fq_codel stays, by which its packets wait.
    pub(crate) fn reseed(&mut self, seed: u64) {
        if let Discipline::Pie(queue) = self {
            queue.reseed(seed);
        }
    }

    /// # Panics
    /// If the queue is of another kind, or one of fq_codel with another number of flows.
    pub(crate) fn set(&mut self, now: u64, queue: &Queue, name: &str) {
        match (self, queue) {
            (Discipline::Fair(fair, _), Queue::Fair(new)) => *fair = *new,
            (Discipline::Codel(queue), Queue::Codel(new)) => queue.params = *new,
            (Discipline::FqCodel(queue), Queue::FqCodel(new)) if queue.params.flows == new.flows => {
                queue.params = *new;
            }
            (Discipline::Pie(queue), Queue::Pie(new)) => queue.set(now, *new),
            _ => panic!("{name}: the queue cannot become {queue:?}"),
        }
    }

    /// Whether a packet that has to wait may; whatever must go for it goes to `out`. An error: it is the packet itself
    /// that has to go. Whether it is to be marked.
    pub(crate) fn admit(
        &mut self,
        now: u64,
        flow: Flow,
        bytes: u32,
        ect: bool,
        packets: u32,
        out: &mut impl FnMut(Waiting<T>, Fate),
    ) -> Result<bool, Cause> {
        match self {
            Discipline::Fair(fair, _) if packets < fair.packets => Ok(false),
            Discipline::Fair(_, round) => {
                let longest = round.longest(flow, bytes);
                if longest == flow {
                    return Err(Cause::Queue);
                }
                if let Some(victim) = round.drop_last(longest) {
                    out(victim, Fate::Full);
                }
                Ok(false)
            }
            Discipline::Codel(queue) if queue.is_full() => Err(Cause::Queue),
            Discipline::Codel(_) | Discipline::FqCodel(_) => Ok(false),
            Discipline::Pie(queue) => match queue.judge(now, ect) {
                Verdict::Pass => Ok(false),
                Verdict::Mark => Ok(true),
                Verdict::Drop => Err(Cause::Aqm),
                Verdict::Full => Err(Cause::Queue),
            },
        }
    }

    /// Puts a packet in. What goes because of it goes to `out`, the packet itself perhaps.
    pub(crate) fn push(&mut self, flow: Flow, waiting: Waiting<T>, out: &mut impl FnMut(Waiting<T>, Fate)) {
        match self {
            Discipline::Fair(fair, round) => round.push(flow, waiting, fair.quantum.0),
            Discipline::Codel(queue) => queue.push(waiting),
            Discipline::FqCodel(queues) => {
                queues.push(flow, waiting);
                queues.shed(out);
            }
            Discipline::Pie(queue) => queue.push(waiting),
        }
    }

    /// The line has asked for a packet since the last one, and there was none.
    pub(crate) fn rest(&mut self) {
        if let Discipline::FqCodel(queues) = self {
            queues.rest();
        }
    }

    /// What a packet does that finds the line free, and so nobody waiting: it is in and out at once.
    pub(crate) fn pass(&mut self, now: u64, overhead: u64, flow: Flow, waiting: Waiting<T>) -> Waiting<T> {
        let passed = match self {
            // a queue per flow keeps nothing of a flow of which nothing waits
            Discipline::Fair(..) => return waiting,
            Discipline::Codel(queue) => {
                queue.push(waiting);
                queue.next(now, &mut |_, _| unreachable!("it has not waited"))
            }
            Discipline::FqCodel(queues) => {
                queues.push(flow, waiting);
                queues.next(now, overhead, &mut |_, _| unreachable!("it has not waited"))
            }
            Discipline::Pie(queue) => {
                queue.push(waiting);
                queue.next(now)
            }
        };
        passed.expect("it was put in")
    }

    /// Takes the packet that goes on the line at `now`. Every packet costs its flow `overhead` bytes more.
    pub(crate) fn next(
        &mut self,
        now: u64,
        overhead: u64,
        out: &mut impl FnMut(Waiting<T>, Fate),
    ) -> Option<Waiting<T>> {
        match self {
            Discipline::Fair(fair, round) => round.next(fair.quantum.0, overhead),
            Discipline::Codel(queue) => queue.next(now, out),
            Discipline::FqCodel(queues) => queues.next(now, overhead, out),
            Discipline::Pie(queue) => queue.next(now),
        }
    }
}
