//! One direction of one link whose queue is fair: every flow has a queue of its own, and they take turns by deficit
//! round robin (`round.rs`).
//!
//! Who is next is known only when the line is free, so a departure is decided when its time has come; [`Link`](crate::Link)
//! knows it at admission. Else the two are alike: with a single flow they do the same to the nanosecond.

use std::collections::VecDeque;

use pathcast_base::{Nanos, Stream};

use crate::cross::{CrossId, Sources};
use crate::jitter::Wander;
use crate::line::rescaled;
use crate::link::Inside;
use crate::loss::Losses;
use crate::policer::{self, Meter};
use crate::round::{Flow, Load, Round, Waiting};
use crate::{Counters, Cross, Fair, Params, Queue, Released, Tally};

/// What became of a packet that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Offered<T> {
    /// It is in.
    Taken,
    /// It exceeds the policer, or the queue is full and its own flow's queue would be the longest; here it is again.
    Refused(T),
    /// It is in; the queue was full, and this packet, the last of another flow, was dropped for it.
    PushedOut(T),
}

/// One direction of one link with a fair queue. Calls that take `now` are as those of [`Link`](crate::Link).
///
/// `packets` of the queue wait PLUS one in transmission. A full queue drops the last packet of the flow with the most
/// bytes waiting, the newcomer counted; of equal ones that of the lowest flow, cross traffic after real flows. Each
/// source of cross traffic is a flow. A quantum is in bytes of line time, `overhead` included.
#[derive(Clone, Debug)]
pub struct FairLink<T> {
    params: Params,
    fair: Fair,
    round: Round<T>,
    sources: Sources,
    wander: Option<Wander>,
    policer: Option<Meter>,
    loss: Losses,
    /// Departure of the packet that started last, and whether it is a real one.
    serving_until: u64,
    serving_real: bool,
    /// Line time of all packets that have started.
    started: u64,
    /// The last size and its line time: most packets in a row are equally long, and a division is dear.
    memo: (u64, u64),
    /// Real packets that have started, in due order.
    wire: VecDeque<Inside<T>>,
    /// Real packets that cross traffic has pushed out, to be handed back.
    pushed_out: VecDeque<Released<T>>,
    /// Due times of the packets that came on the wire last and went off it last.
    last_due: u64,
    last_out: u64,
    clock: u64,
    counters: Counters,
    seed: u64,
    name: String,
}

fn fair(params: &Params) -> Fair {
    match params.queue {
        Queue::Fair(fair) => fair,
        _ => panic!("the queue is {:?}; allowed: Queue::Fair, for others there is `Link`", params.queue),
    }
}

impl<T> FairLink<T> {
    /// An idle link. `params` must pass [`Params::check`]; the random streams are named as those of a
    /// [`Link`](crate::Link).
    ///
    /// # Panics
    /// If the queue is not [`Queue::Fair`].
    pub fn new(params: Params, seed: u64, name: &str) -> Self {
        debug_assert_eq!(params.check(), Ok(()));
        let stream = |purpose: &str| Stream::new(seed, &format!("{name}/{purpose}"));
        FairLink {
            fair: fair(&params),
            round: Round::new(),
            sources: Sources::default(),
            wander: params.jitter.map(|jitter| Wander::new(stream("jitter"), jitter)),
            policer: params.policer.map(Meter::new),
            loss: Losses::new(params.loss, stream("loss")),
            serving_until: 0,
            serving_real: false,
            started: 0,
            memo: (0, 0),
            wire: VecDeque::new(),
            pushed_out: VecDeque::new(),
            last_due: 0,
            last_out: 0,
            clock: 0,
            counters: Counters::default(),
            seed,
            name: name.into(),
            params,
        }
    }

    /// The parameters in force.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The name that it was made with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offers a packet of `bytes` IP bytes of a flow at `now`. Flows are numbered densely from 0 (memory grows with the
    /// largest number, by four bytes each); a number is free again when no packet of its flow waits.
    pub fn offer(&mut self, now: Nanos, bytes: u32, flow: u32, packet: T) -> Offered<T> {
        self.advance(now);
        self.counters.offered.add(bytes);
        if self.exceeds(self.clock, bytes) {
            self.counters.dropped.policer.add(bytes);
            return Offered::Refused(packet);
        }
        let flow = Flow::Real(flow);
        let Ok(victim) = self.make_place(self.clock, flow, bytes) else {
            self.counters.dropped.queue.add(bytes);
            return Offered::Refused(packet);
        };
        let lost = self.loss.strikes();
        self.enter(self.clock, flow, Waiting { bytes, load: Some(Load { packet, lost }) });
        match victim.and_then(|victim| victim.load) {
            Some(load) => Offered::PushedOut(load.packet),
            None => Offered::Taken,
        }
    }

    fn exceeds(&mut self, at: u64, bytes: u32) -> bool {
        let size = u64::from(bytes) + self.params.overhead.0;
        self.policer.as_mut().is_some_and(|policer| !policer.passes(at, size))
    }

    /// Makes sure that a packet of `flow` has a place at `at`, whatever another flow loses for it. An error: it is the
    /// packet itself that has to go.
    fn make_place(&mut self, at: u64, flow: Flow, bytes: u32) -> Result<Option<Waiting<T>>, ()> {
        // a packet that need not wait needs no place
        if self.serving_until <= at || self.round.packets() < self.fair.packets {
            return Ok(None);
        }
        let longest = self.round.longest(flow, bytes);
        if longest == flow {
            return Err(());
        }
        let victim = self.round.drop_last(longest);
        if let Some(Waiting { bytes, load }) = &victim {
            match load {
                Some(_) => self.counters.dropped.queue.add(*bytes),
                None => {
                    self.counters.cross.entered.take_back(*bytes);
                    self.counters.cross.dropped.add(*bytes);
                }
            }
        }
        Ok(victim)
    }

    fn enter(&mut self, at: u64, flow: Flow, waiting: Waiting<T>) {
        if self.serving_until <= at {
            return self.start(at, waiting);
        }
        self.round.push(flow, waiting, self.fair.quantum.0);
        let most = &mut self.counters.queue_max;
        most.packets = most.packets.max(self.round.packets().into());
        most.bytes = most.bytes.max(self.round.bytes());
    }

    fn line_time(&mut self, bytes: u64) -> u64 {
        if self.memo.0 != bytes {
            self.memo = (bytes, self.params.rate.map_or(0, |rate| rate.time_for(bytes).0));
        }
        self.memo.1
    }

    fn start(&mut self, at: u64, waiting: Waiting<T>) {
        let time = self.line_time(u64::from(waiting.bytes) + self.params.overhead.0);
        let departure = at.saturating_add(time);
        self.started += departure - at;
        self.serving_until = departure;
        self.serving_real = waiting.load.is_some();
        if let Some(Load { packet, lost }) = waiting.load {
            let due = self.arrival(departure).max(self.last_due);
            self.last_due = due;
            self.wire.push_back(Inside { due, bytes: waiting.bytes, lost, packet });
        }
    }

    fn arrival(&mut self, departure: u64) -> u64 {
        let extra = self.wander.as_mut().map_or(0, |wander| wander.at(departure));
        departure.saturating_add(self.params.delay.0).saturating_add(extra)
    }

    /// When to call [`FairLink::pop`] next: a packet reaches the far end, or its loss becomes final, or a departure must
    /// be decided to know when that will be. It may lie in the past. Departures before the head of the wire is due need
    /// no call of their own: whichever call comes next makes them in their time.
    pub fn next_due(&self) -> Option<Nanos> {
        let pushed_out = self.pushed_out.front().map(|released| released.at);
        let ahead = match self.wire.front() {
            Some(head) => Some(Nanos(head.due)),
            None => (self.round.loads() > 0).then_some(Nanos(self.serving_until)),
        };
        pushed_out.into_iter().chain(ahead).min()
    }

    /// Takes the next packet that is due at or before `now`, or before the latest time seen, if that is later; none if
    /// only a departure was decided: ask [`FairLink::next_due`] again. A packet that cross traffic pushed out of the
    /// queue comes out as lost, at the time when that happened; the counters have it under `queue`.
    pub fn pop(&mut self, now: Nanos) -> Option<Released<T>> {
        self.advance(now.max(Nanos(self.clock)));
        let due = self.wire.front().map_or(u64::MAX, |head| head.due);
        if self.pushed_out.front().is_some_and(|released| released.at.0 <= due) {
            return self.pushed_out.pop_front();
        }
        if due > self.clock {
            return None;
        }
        let Inside { due, bytes, lost, packet } = self.wire.pop_front()?;
        self.last_out = due;
        if lost {
            self.counters.dropped.loss.add(bytes);
        } else {
            self.counters.carried.add(bytes);
        }
        Some(Released { at: Nanos(due), bytes, lost, packet })
    }

    /// Real packets inside, waiting or on the wire.
    pub fn len(&self) -> usize {
        self.wire.len() + self.round.loads() as usize
    }

    /// Whether no real packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Brings departures, cross traffic and counters up to `now`. The work grows with the packets that start, and with
    /// the virtual ones that arrive, since the last call.
    pub fn advance(&mut self, now: Nanos) {
        debug_assert!(now.0 >= self.clock, "{}: {now} is before {}", self.name, Nanos(self.clock));
        let now = now.0.max(self.clock);
        loop {
            let cross = self.sources.next();
            if self.round.packets() > 0 && self.serving_until <= now.min(cross) {
                let waiting = self.round.next(self.fair.quantum.0, self.params.overhead.0);
                self.start(self.serving_until, waiting.expect("packets wait"));
            } else if cross > now || !self.cross_arrives() {
                break;
            }
        }
        self.clock = now;
        self.counters.busy = Nanos(self.busy(now));
    }

    fn busy(&self, now: u64) -> u64 {
        self.started - self.serving_until.saturating_sub(now)
    }

    /// Whether there was a virtual packet to come.
    #[cold]
    fn cross_arrives(&mut self) -> bool {
        let Some((at, bytes, source)) = self.sources.pop_from() else { return false };
        self.counters.cross.offered.add(bytes);
        let flow = Flow::Cross(source.0);
        if self.exceeds(at, bytes) {
            self.counters.cross.dropped.add(bytes);
            return true;
        }
        let Ok(victim) = self.make_place(at, flow, bytes) else {
            self.counters.cross.dropped.add(bytes);
            return true;
        };
        if let Some(Waiting { bytes, load: Some(Load { packet, .. }) }) = victim {
            self.pushed_out.push_back(Released { at: Nanos(at), bytes, lost: true, packet });
        }
        self.counters.cross.entered.add(bytes);
        self.enter(at, flow, Waiting { bytes, load: None });
        true
    }

    /// Changes the parameters at `now`. Packets that wait, and the rest of the one in transmission, go on under the new
    /// rate, overhead, quantum, delay and jitter; packets on the wire keep their due times, and no packet overtakes there.
    /// Loss and the queue's limit apply to packets offered from now on; what waits beyond a smaller limit stays.
    ///
    /// # Panics
    /// If the queue is not [`Queue::Fair`].
    pub fn set(&mut self, now: Nanos, params: Params) {
        debug_assert_eq!(params.check(), Ok(()));
        self.advance(now);
        let now = self.clock;
        self.fair = fair(&params);
        self.loss.change(params.loss);
        policer::change(&mut self.policer, now, params.policer);
        match (&mut self.wander, params.jitter) {
            (Some(wander), Some(jitter)) => wander.change(jitter),
            (wander, jitter) => {
                let stream = Stream::new(self.seed, &format!("{}/jitter", self.name));
                *wander = jitter.map(|jitter| Wander::new(stream, jitter));
            }
        }
        let old = std::mem::replace(&mut self.params, params);
        self.memo = (0, 0);
        let left = self.serving_until.saturating_sub(now);
        if left > 0 {
            self.serving_until = now.saturating_add(rescaled(left, old.rate, self.params.rate));
            self.started = self.started - left + (self.serving_until - now);
        }
        // what is in transmission is the last on the wire, and not yet on its way
        let unsent = if left > 0 && self.serving_real { self.wire.pop_back() } else { None };
        self.last_due = self.wire.back().map_or(self.last_out, |last| last.due);
        if let Some(inside) = unsent {
            self.last_due = self.arrival(self.serving_until).max(self.last_due);
            self.wire.push_back(Inside { due: self.last_due, ..inside });
        }
        self.advance(Nanos(now));
    }

    /// Adds cross traffic between `start` and before `stop`; a `start` in the past counts as now. Its random stream is
    /// `<link>/cross/<name>`. `cross` must pass [`Cross::check`].
    pub fn add_cross(&mut self, name: &str, cross: &Cross, start: Nanos, stop: Option<Nanos>) -> CrossId {
        debug_assert_eq!(cross.check(), Ok(()));
        let stream = Stream::new(self.seed, &format!("{}/cross/{name}", self.name));
        self.sources.add(stream, cross, start.0.max(self.clock), stop)
    }

    /// Changes cross traffic at `now`: it starts anew then (or at its start, if that is later), with the same stop.
    /// Nothing happens to traffic that was removed.
    pub fn set_cross(&mut self, now: Nanos, id: CrossId, cross: &Cross) {
        debug_assert_eq!(cross.check(), Ok(()));
        self.advance(now);
        self.sources.set(self.clock, id, cross);
    }

    /// Ends cross traffic at `now`; its packets inside go on.
    pub fn remove_cross(&mut self, now: Nanos, id: CrossId) {
        self.advance(now);
        self.sources.remove(id);
    }

    /// Packets and IP bytes that wait at `now`, cross traffic included, the packet in transmission not.
    pub fn backlog(&mut self, now: Nanos) -> Tally {
        self.advance(now);
        Tally { packets: u64::from(self.round.packets()), bytes: self.round.bytes() }
    }

    /// What the link has done up to the latest `now`.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
