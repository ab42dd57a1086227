//! One direction of one link whose queue decides when the line is free who goes next, and perhaps who goes not at all:
//! queues per flow and controlled delay (`discipline.rs`).
//!
//! A departure is decided when its time has come; [`Link`](crate::Link) knows it at admission. Else the two are alike:
//! with a single flow, and nothing dropped but at a full queue, they do the same to the nanosecond.

use std::collections::VecDeque;

use pathcast_base::{Nanos, Stream};

use crate::counters::Cause;
use crate::cross::{CrossId, Sources};
use crate::discipline::{Discipline, Fate, Load, Waiting};
use crate::flight::{Flight, Inside};
use crate::line::unserved;
use crate::link::Refused;
use crate::policer::{self, Meter};
use crate::round::Flow;
use crate::special::Special;
use crate::wire::Tag;
use crate::{Counters, Cross, Params, Released, Tally};

/// What became of a packet that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Offered<T> {
    /// It is in.
    Taken,
    /// The policer or the queue does not take it; here it is again.
    Refused(T),
    /// It is in; the queue was full, and this packet, the last of another flow, was dropped for it.
    PushedOut(T),
}

/// One direction of one link with a queue that [is deferred](crate::Queue::is_deferred). Calls that take `now` are as
/// those of [`Link`](crate::Link).
///
/// `packets` of the queue wait PLUS one in transmission. A full fair queue drops the last packet of the flow with the
/// most bytes waiting, the newcomer counted; of equal ones that of the lowest flow, cross traffic after real flows. Each
/// source of cross traffic is a flow. A quantum is in bytes of line time, `overhead` included.
#[derive(Clone, Debug)]
pub struct DeferredLink<T> {
    params: Params,
    discipline: Discipline<T>,
    sources: Sources,
    policer: Option<Meter>,
    special: Option<Box<Special>>,
    /// When the packet that started last lets the serialiser go, and whether it is a real one.
    serving_until: u64,
    serving_real: bool,
    /// When the next one may start: then, or at the next opportunity of a trace.
    free_at: u64,
    /// Line time of all packets that have started.
    started: u64,
    /// That of the packet that started last, if it counts when the packet has left and not as time goes by.
    whole: Option<u64>,
    /// The last size and its line time: most packets in a row are equally long, and a division is dear.
    memo: (u64, u64),
    /// Real packets that have started.
    flight: Flight<T>,
    books: Books<T>,
    /// Where its time begins: that of traces and opportunities.
    zero: u64,
    clock: u64,
    seed: u64,
    name: String,
}

/// What waits and what was dropped, in numbers and, of real packets, to be handed back.
#[derive(Clone, Debug)]
struct Books<T> {
    counters: Counters,
    packets: u32,
    loads: u32,
    bytes: u64,
    dropped: VecDeque<(Released<T>, Cause)>,
}

impl<T> Books<T> {
    fn enter(&mut self, waiting: &Waiting<T>) {
        self.packets += 1;
        self.loads += u32::from(waiting.load.is_some());
        self.bytes += u64::from(waiting.bytes);
    }

    fn leave(&mut self, waiting: &Waiting<T>) {
        self.packets -= 1;
        self.loads -= u32::from(waiting.load.is_some());
        self.bytes -= u64::from(waiting.bytes);
    }

    /// A packet that was in goes no further.
    fn drop(&mut self, at: u64, waiting: Waiting<T>, fate: Fate) {
        self.leave(&waiting);
        let bytes = waiting.bytes;
        let Some(Load { packet, .. }) = waiting.load else {
            self.counters.cross.entered.take_back(bytes);
            self.counters.cross.dropped.add(bytes);
            return;
        };
        let (cause, tally) = match fate {
            Fate::Full => (Cause::Queue, &mut self.counters.dropped.queue),
            Fate::Aqm => (Cause::Aqm, &mut self.counters.dropped.aqm),
        };
        tally.add(bytes);
        self.dropped.push_back((Released { at: Nanos(at), bytes, lost: true, marked: false, packet }, cause));
    }
}

impl<T> DeferredLink<T> {
    /// An idle link. `params` must pass [`Params::check`]; the random streams are named as those of a
    /// [`Link`](crate::Link).
    ///
    /// # Panics
    /// If the queue is one of a [`Link`](crate::Link).
    pub fn new(params: Params, seed: u64, name: &str) -> Self {
        debug_assert_eq!(params.check(), Ok(()));
        DeferredLink {
            discipline: Discipline::new(&params, seed, name),
            sources: Sources::default(),
            policer: params.policer.map(Meter::new),
            special: Special::new(&params, 0),
            serving_until: 0,
            serving_real: false,
            free_at: 0,
            started: 0,
            whole: None,
            memo: (0, 0),
            flight: Flight::new(&params, seed, name),
            books: Books { counters: Counters::default(), packets: 0, loads: 0, bytes: 0, dropped: VecDeque::new() },
            zero: 0,
            clock: 0,
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

    /// Offers a packet of `bytes` IP bytes of a flow at `now`; it cannot be marked. Flows are numbered densely from 0 (of
    /// a fair queue memory grows with the largest number, by four bytes each); a number is free again when no packet of
    /// its flow waits.
    pub fn offer(&mut self, now: Nanos, bytes: u32, flow: u32, packet: T) -> Offered<T> {
        self.offer_or(now, bytes, Tag { flow, ect: false }, packet)
    }

    /// The same, of a packet that perhaps can be marked. Only a packet pushed out of a fair queue is handed back at once.
    pub(crate) fn offer_or(&mut self, now: Nanos, bytes: u32, tag: Tag, packet: T) -> Offered<T> {
        self.advance(now);
        let before = self.books.dropped.len();
        match self.take(bytes, tag, packet) {
            Err(refused) => Offered::Refused(refused.packet),
            Ok(()) if self.books.dropped.len() > before && matches!(self.discipline, Discipline::Fair(..)) => {
                let (released, _) = self.books.dropped.pop_back().expect("it has grown");
                Offered::PushedOut(released.packet)
            }
            Ok(()) => Offered::Taken,
        }
    }

    /// Offers a packet; one that is in and is dropped later, for it or for another, comes out of [`DeferredLink::pop`] as
    /// lost.
    ///
    /// # Errors
    /// The packet, if the queue does not take it.
    pub fn offer_tagged(&mut self, now: Nanos, bytes: u32, tag: Tag, packet: T) -> Result<(), Refused<T>> {
        self.advance(now);
        self.take(bytes, tag, packet)
    }

    /// The same at the time that the link was brought to.
    #[inline]
    fn take(&mut self, bytes: u32, tag: Tag, packet: T) -> Result<(), Refused<T>> {
        let now = self.clock;
        self.books.counters.offered.add(bytes);
        let flow = Flow::Real(tag.flow);
        let marked = match self.admit(now, flow, bytes, tag.ect) {
            Ok(marked) => marked,
            Err(cause) => {
                self.books.counters.dropped.count(cause, bytes);
                return Err(Refused { cause, packet });
            }
        };
        if marked {
            self.books.counters.marked.add(bytes);
        }
        let (lost, late) = self.flight.fate();
        let load = Some(Load { packet, lost, late, ect: tag.ect && !marked, marked });
        self.enter(now, flow, Waiting { arrived: now, bytes, load });
        Ok(())
    }

    /// Makes sure that a packet of `flow` has a place at `at`, whatever another flow loses for it; whether it is to be
    /// marked. An error: it is the packet itself that has to go.
    fn admit(&mut self, at: u64, flow: Flow, bytes: u32, ect: bool) -> Result<bool, Cause> {
        let size = u64::from(bytes) + self.params.overhead.0;
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(at, size)) {
            return Err(Cause::Policer);
        }
        // nothing waits then: else it would have started
        if self.free_at <= at {
            self.discipline.rest();
            self.free_at = self.special.as_mut().map_or(at, |special| special.ready(at, at));
        }
        // a packet that need not wait needs no place
        if self.free_at <= at {
            return Ok(false);
        }
        let packets = self.books.packets;
        let books = &mut self.books;
        self.discipline.admit(at, flow, bytes, ect, packets, &mut |victim, fate| books.drop(at, victim, fate))
    }

    fn enter(&mut self, at: u64, flow: Flow, waiting: Waiting<T>) {
        if self.free_at <= at {
            let waiting = self.discipline.pass(at, self.params.overhead.0, flow, waiting);
            return self.start(at, waiting);
        }
        let books = &mut self.books;
        books.enter(&waiting);
        self.discipline.push(flow, waiting, &mut |victim, fate| books.drop(at, victim, fate));
        let most = &mut books.counters.queue_max;
        most.packets = most.packets.max(books.packets.into());
        most.bytes = most.bytes.max(books.bytes);
    }

    fn line_time(&mut self, bytes: u64) -> u64 {
        if self.memo.0 != bytes {
            self.memo = (bytes, self.params.rate.map_or(0, |rate| rate.time_for(bytes).0));
        }
        self.memo.1
    }

    fn start(&mut self, at: u64, waiting: Waiting<T>) {
        let size = u64::from(waiting.bytes) + self.params.overhead.0;
        let time = self.line_time(size);
        let mut leaves = at.saturating_add(time);
        self.serving_until = leaves;
        self.free_at = leaves;
        if let Some(special) = &mut self.special {
            let (times, state) = special.plan(at.saturating_sub(1), at, size, time);
            special.start(state, size);
            self.whole = special.used();
            (self.serving_until, leaves) = (times.departure, times.leaves);
            self.free_at = special.ready(0, times.departure);
        }
        self.started += self.whole.unwrap_or(self.serving_until - at);
        self.serving_real = waiting.load.is_some();
        if let Some(Load { packet, lost, late, marked, .. }) = waiting.load {
            let waited = &mut self.books.counters.waited.0;
            *waited = waited.saturating_add(at - waiting.arrived);
            self.flight.push(leaves, Inside { due: 0, bytes: waiting.bytes, lost, marked, late, packet });
        }
    }

    /// When to call [`DeferredLink::pop`] next: a packet reaches the far end, or its loss becomes final, or a departure must
    /// be decided to know when that will be. It may lie in the past. Departures before the head of the wire is due need
    /// no call of their own: whichever call comes next makes them in their time.
    pub fn next_due(&self) -> Option<Nanos> {
        let mut next = self.flight.next_due().unwrap_or(u64::MAX);
        if self.books.loads > 0 && self.flight.ordered().is_empty() {
            next = next.min(self.free_at);
        }
        if let Some((released, _)) = self.books.dropped.front() {
            next = next.min(released.at.0);
        }
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Takes the next packet that is due at or before `now`, or before the latest time seen, if that is later; none if
    /// only a departure was decided: ask [`DeferredLink::next_due`] again. A packet that was dropped when it was in comes
    /// out as lost, at the time when that happened; the counters have it under its cause.
    pub fn pop(&mut self, now: Nanos) -> Option<Released<T>> {
        self.pop_cause(now).map(|(released, _)| released)
    }

    /// The same, with the cause of what is lost.
    pub(crate) fn pop_cause(&mut self, now: Nanos) -> Option<(Released<T>, Cause)> {
        self.advance(now.max(Nanos(self.clock)));
        let due = self.flight.next_due().unwrap_or(u64::MAX);
        if self.books.dropped.front().is_some_and(|(released, _)| released.at.0 <= due) {
            return self.books.dropped.pop_front();
        }
        let released = self.flight.pop(self.clock, &mut self.books.counters)?;
        Some((released, Cause::Loss))
    }

    /// Takes the next packet on the wire that is due by `latest`, without bringing the link there.
    pub(crate) fn pop_early(&mut self, latest: Nanos) -> Option<Released<T>> {
        self.flight.pop_early(latest.0, &mut self.books.counters)
    }

    pub(crate) fn flight(&self) -> &Flight<T> {
        &self.flight
    }

    pub(crate) fn next_cross(&self) -> Option<Nanos> {
        Some(Nanos(self.sources.next())).filter(|next| next.0 != u64::MAX)
    }

    /// Real packets inside, waiting or on the wire.
    pub fn len(&self) -> usize {
        self.flight.len() + self.books.loads as usize
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
            if self.books.packets > 0 && self.free_at <= now.min(cross) {
                self.start_next();
            } else if cross > now || !self.cross_arrives() {
                break;
            }
        }
        self.clock = now;
        self.books.counters.busy = Nanos(self.busy(now));
    }

    fn start_next(&mut self) {
        let (at, books) = (self.free_at, &mut self.books);
        let next = self.discipline.next(at, self.params.overhead.0, &mut |victim, fate| books.drop(at, victim, fate));
        // else all that waited was dropped
        if let Some(waiting) = next {
            books.leave(&waiting);
            if let Some(Load { ect: true, marked: true, .. }) = &waiting.load {
                books.counters.marked.add(waiting.bytes);
            }
            self.start(at, waiting);
        }
    }

    fn busy(&self, now: u64) -> u64 {
        self.started - unserved(self.whole, self.serving_until, now)
    }

    /// Whether there was a virtual packet to come.
    #[cold]
    fn cross_arrives(&mut self) -> bool {
        let Some((at, bytes, source)) = self.sources.pop_from() else { return false };
        self.books.counters.cross.offered.add(bytes);
        let flow = Flow::Cross(source.0);
        if self.admit(at, flow, bytes, false).is_err() {
            self.books.counters.cross.dropped.add(bytes);
            return true;
        }
        self.books.counters.cross.entered.add(bytes);
        self.enter(at, flow, Waiting { arrived: at, bytes, load: None });
        true
    }

    /// Changes the parameters at `now`. Packets that wait, and the rest of the one in transmission, go on under the new
    /// rate, overhead, delay, jitter and parameters of the queue; packets on the wire keep their due times, and no packet overtakes there.
    /// Loss and the queue's limit apply to packets offered from now on; what waits beyond a smaller limit stays until then.
    ///
    /// # Panics
    /// If the queue [may not become](crate::Queue::may_become) the new one.
    pub fn set(&mut self, now: Nanos, params: Params) {
        debug_assert_eq!(params.check(), Ok(()));
        self.advance(now);
        let now = self.clock;
        self.discipline.set(now, &params.queue, &self.name);
        policer::change(&mut self.policer, now, params.policer);
        self.flight.change(&params, self.seed, &self.name);
        let old = std::mem::replace(&mut self.params, params);
        self.memo = (0, 0);
        let left = self.serving_until.saturating_sub(now);
        self.started = self.busy(now);
        let was = self.special.take();
        let gathered = was.as_ref().is_some_and(|special| special.gathers());
        (self.special, self.serving_until) =
            Special::change(was, &self.params, self.zero, now, self.serving_until, old.rate);
        self.whole = self.special.as_ref().and_then(|special| special.used());
        // what gathers has its time, and perhaps has gone before the serialiser is free; what else is in transmission is the
        // last on the wire, and not yet on its way
        self.serving_real &= !gathered;
        let unsent = left > 0 && self.serving_real;
        if left > 0 {
            self.started += self.whole.unwrap_or(self.serving_until - now);
        }
        let mut departs = self.flight.reschedule(usize::from(unsent));
        if unsent {
            departs(self.serving_until);
        }
        drop(departs);
        let free_at = self.serving_until.max(now);
        self.free_at = self.special.as_mut().map_or(free_at, |special| special.ready(now, free_at));
        self.advance(Nanos(now));
    }

    /// As [`Link::begin`](crate::Link::begin).
    pub fn begin(&mut self, zero: Nanos) {
        self.zero = zero.0;
        self.set(Nanos(self.clock), self.params.clone());
    }

    /// Random numbers from now on depend on `seed` too, and else nothing changes: where the streams stand, what is known
    /// already (the next packet of cross traffic, the jitter's present knots, the hash of fq_codel) stays.
    pub fn reseed(&mut self, now: Nanos, seed: u64) {
        self.advance(now);
        self.seed = seed;
        self.flight.reseed(self.clock, seed);
        self.sources.reseed(seed);
        self.discipline.reseed(seed);
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
        Tally { packets: u64::from(self.books.packets), bytes: self.books.bytes }
    }

    /// What the link has done up to the latest `now`.
    pub fn counters(&self) -> &Counters {
        &self.books.counters
    }
}
