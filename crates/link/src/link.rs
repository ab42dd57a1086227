//! One direction of one link, with the packets that travel on it.

use pathcast_base::{Nanos, Stream};

use crate::counters::Cause;
use crate::cross::{CrossId, Sources};
use crate::flight::{Flight, Inside};
use crate::line::Line;
use crate::policer::{self, Meter};
use crate::{Counters, Cross, Params, Tally};

/// A packet that the link did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<T> {
    /// Why; never `Loss`.
    pub cause: Cause,
    /// The packet, given back.
    pub packet: T,
}

/// A packet that has reached the far end, or would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// When it was due, by the model; not when it was asked for.
    pub at: Nanos,
    /// Its IP bytes.
    pub bytes: u32,
    /// Lost on the wire (it used its place and its line time) or dropped from the queue; it comes out only to be freed.
    pub lost: bool,
    /// Marked by active queue management: congestion was experienced.
    pub marked: bool,
    /// The packet.
    pub packet: T,
}

/// One direction of one link. Every call that takes `now` brings the link up to that time; `now` never decreases
/// (in a release build an earlier one counts as the latest seen).
///
/// A packet passes the policer, waits for the serialiser (and for tokens, if there is a bucket), takes `(bytes + overhead) * 8 / rate` of
/// line time, and is due `delay` plus jitter after its departure. `n` packets or bytes wait PLUS one packet in
/// transmission. An infinitely fast link has no queue unless a bucket makes packets wait.
#[derive(Clone, Debug)]
pub struct Link<T> {
    params: Params,
    line: Line,
    sources: Sources,
    policer: Option<Meter>,
    flight: Flight<T>,
    /// Where its time begins: that of traces and opportunities.
    zero: u64,
    clock: u64,
    counters: Counters,
    seed: u64,
    name: String,
}

/// Who is next is not known at admission in other queues.
fn fused(params: &Params, name: &str) {
    assert!(!params.queue.is_deferred(), "{name}: {:?} needs a DeferredLink, not a Link", params.queue);
}

impl<T> Link<T> {
    /// An idle link with a full bucket. `params` must pass [`Params::check`]; a queue that decides late
    /// needs a [`DeferredLink`](crate::DeferredLink). Its random streams depend on the seed, its name and their purpose only
    /// (`<name>/loss`, `<name>/red`, …), so give every direction a name of its own.
    ///
    /// # Panics
    /// If the queue [is deferred](crate::Queue::is_deferred).
    pub fn new(params: Params, seed: u64, name: &str) -> Self {
        debug_assert_eq!(params.check(), Ok(()));
        fused(&params, name);
        Link {
            line: Line::new(&params, Stream::new(seed, &format!("{name}/red"))),
            sources: Sources::default(),
            policer: params.policer.map(Meter::new),
            flight: Flight::new(&params, seed, name),
            zero: 0,
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

    /// Offers a packet of `bytes` IP bytes at `now`.
    ///
    /// # Errors
    /// The packet, if the policer or the queue does not take it.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: u32, packet: T) -> Result<(), Refused<T>> {
        self.offer_tagged(now, bytes, false, packet)
    }

    /// The same of a packet that can be marked (`ect`: its IP header says so).
    ///
    /// # Errors
    /// The packet, if the queue does not take it.
    #[inline]
    pub fn offer_tagged(&mut self, now: Nanos, bytes: u32, ect: bool, packet: T) -> Result<(), Refused<T>> {
        self.advance(now);
        self.counters.offered.add(bytes);
        match self.admit(self.clock, bytes, (true, ect)) {
            Ok((departure, marked)) => {
                let (lost, late) = self.flight.fate();
                self.flight.push(departure, Inside { due: 0, bytes, lost, marked, late, packet });
                if marked {
                    self.counters.marked.add(bytes);
                }
                Ok(())
            }
            Err(cause) => {
                self.counters.dropped.count(cause, bytes);
                Err(Refused { cause, packet })
            }
        }
    }

    #[inline]
    fn admit(&mut self, at: u64, bytes: u32, (real, ect): (bool, bool)) -> Result<(u64, bool), Cause> {
        if let Some(policer) = &mut self.policer
            && !policer.passes(at, u64::from(bytes) + self.params.overhead.0)
        {
            return Err(Cause::Policer);
        }
        self.line.admit(at, bytes, (real, ect), &mut self.counters)
    }

    /// When to call [`Link::pop`] next: a packet reaches the far end, or its loss becomes final, or others begin to
    /// overtake it.
    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        self.flight.next_due().map(Nanos)
    }

    /// Takes the next packet that is due at or before `now`, or before the latest time seen, if that is later; none if
    /// others only began to overtake one: ask [`Link::next_due`] again.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Released<T>> {
        self.advance(now.max(Nanos(self.clock)));
        self.flight.pop(self.clock, &mut self.counters)
    }

    /// Takes the next packet that is due by `latest`, without bringing the link there.
    pub(crate) fn pop_early(&mut self, latest: Nanos) -> Option<Released<T>> {
        self.flight.pop_early(latest.0, &mut self.counters)
    }

    /// The packets inside that nobody has overtaken yet with their due times, in due order; lost ones too.
    pub fn upcoming(&self) -> impl DoubleEndedIterator<Item = (Nanos, &T)> + ExactSizeIterator {
        self.flight.ordered().iter().map(|p| (Nanos(p.due), &p.packet))
    }

    pub(crate) fn flight(&self) -> &Flight<T> {
        &self.flight
    }

    pub(crate) fn next_cross(&self) -> Option<Nanos> {
        Some(Nanos(self.sources.next())).filter(|next| next.0 != u64::MAX)
    }

    /// Real packets inside, waiting or on the wire.
    pub fn len(&self) -> usize {
        self.flight.len()
    }

    /// Whether no real packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Brings departures, cross traffic and counters up to `now`. The work grows with the virtual packets since the
    /// last call.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        debug_assert!(now.0 >= self.clock, "{}: {now} is before {}", self.name, Nanos(self.clock));
        let now = now.0.max(self.clock);
        if self.sources.next() <= now {
            self.cross_until(now);
        }
        self.line.depart(now);
        self.clock = now;
        self.counters.busy = Nanos(self.line.busy(now));
        self.counters.waited = Nanos(self.line.waited());
    }

    #[cold]
    fn cross_until(&mut self, now: u64) {
        while self.sources.next() <= now {
            let Some((at, bytes)) = self.sources.pop() else { return };
            self.line.depart(at);
            let cross = match self.admit(at, bytes, (false, false)) {
                Ok(_) => &mut self.counters.cross.entered,
                Err(_) => &mut self.counters.cross.dropped,
            };
            cross.add(bytes);
            self.counters.cross.offered.add(bytes);
        }
    }

    /// Changes the parameters at `now`. Packets that wait, and the rest of the one in transmission, go on under the new
    /// rate, overhead, bucket, delay and jitter (the latter anew if it comes from or to a trace); packets on the wire keep their due times, and no packet overtakes for it.
    /// Loss, policer and queue apply to packets offered from now on; tokens and the average of RED survive.
    ///
    /// # Panics
    /// If the queue [is deferred](crate::Queue::is_deferred).
    pub fn set(&mut self, now: Nanos, params: Params) {
        debug_assert_eq!(params.check(), Ok(()));
        fused(&params, &self.name);
        self.advance(now);
        let now = self.clock;
        policer::change(&mut self.policer, now, params.policer);
        self.flight.change(&params, self.seed, &self.name);
        let departs = self.flight.reschedule(self.line.unsent(now));
        self.line.change(now, &params, self.zero, departs);
        self.params = params;
        self.counters.busy = Nanos(self.line.busy(now));
        self.counters.waited = Nanos(self.line.waited());
    }

    /// Lets the link's time begin at `zero`, which may lie before or after the latest `now`: a trace is at its offset
    /// then, and opportunities to leave are whole multiples of their distance from it. The default is 0.
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
        self.line.reseed(seed);
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
        Tally { packets: u64::from(self.line.packets()), bytes: self.line.bytes() }
    }

    /// What the link has done up to the latest `now`.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
