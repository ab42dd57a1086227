//! One direction of a link of any kind.

use std::collections::vec_deque;

use pathcast_base::Nanos;

use crate::counters::Cause;
use crate::deferred::Offered;
use crate::flight::{Flight, Inside};
use crate::link::Refused;
use crate::{Counters, Cross, CrossId, DeferredLink, Link, Params, Released, Tally};

/// What a queue may look at in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Its flow, numbered as [`DeferredLink::offer`] says.
    pub flow: u32,
    /// It can be marked: the ECN field of its IP header is not 0 (RFC 3168).
    pub ect: bool,
}

/// One direction of a link: the [`Link`] or [`DeferredLink`] that its queue needs.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Wire<T> {
    /// Departures are known at arrival.
    Fused(Link<T>),
    /// Departures are decided when the line is free.
    Deferred(Box<DeferredLink<T>>),
}

/// Calls the same method of whichever link it is.
macro_rules! either {
    ($wire:expr, $link:ident => $call:expr) => {
        match $wire {
            Wire::Fused($link) => $call,
            Wire::Deferred($link) => $call,
        }
    };
}

impl<T> Wire<T> {
    /// An idle link; as [`Link::new`].
    pub fn new(params: Params, seed: u64, name: &str) -> Self {
        if params.queue.is_deferred() {
            Wire::Deferred(Box::new(DeferredLink::new(params, seed, name)))
        } else {
            Wire::Fused(Link::new(params, seed, name))
        }
    }

    /// The parameters in force.
    pub fn params(&self) -> &Params {
        either!(self, link => link.params())
    }

    /// The name that it was made with.
    pub fn name(&self) -> &str {
        either!(self, link => link.name())
    }

    /// Offers a packet of `bytes` IP bytes; gives back the one that is dropped for it, if that is known at once.
    #[inline]
    pub fn offer(&mut self, now: Nanos, bytes: u32, tag: Tag, packet: T) -> Option<T> {
        match self {
            Wire::Fused(link) => link.offer_tagged(now, bytes, tag.ect, packet).err().map(|refused| refused.packet),
            Wire::Deferred(link) => match link.offer_or(now, bytes, tag, packet) {
                Offered::Taken => None,
                Offered::Refused(packet) | Offered::PushedOut(packet) => Some(packet),
            },
        }
    }

    /// Offers a packet; another that is dropped for it comes out of [`Wire::pop`] as lost.
    ///
    /// # Errors
    /// The packet, if the queue does not take it.
    #[inline]
    pub fn offer_tagged(&mut self, now: Nanos, bytes: u32, tag: Tag, packet: T) -> Result<(), Refused<T>> {
        match self {
            Wire::Fused(link) => link.offer_tagged(now, bytes, tag.ect, packet),
            Wire::Deferred(link) => link.offer_tagged(now, bytes, tag, packet),
        }
    }

    /// When to call [`Wire::pop`] next.
    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        either!(self, link => link.next_due())
    }

    /// When something happens next [ns], not before `now`; the end of time if nothing will.
    #[inline]
    pub fn due(&self, now: u64) -> u64 {
        self.next_due().map_or(u64::MAX, |due| due.0.max(now))
    }

    /// The same after a packet was offered, if that may have changed it.
    #[inline]
    pub fn due_if_changed(&self, now: u64) -> Option<u64> {
        match self {
            Wire::Fused(link) => (link.flight().ordered().len() == 1).then(|| self.due(now)),
            Wire::Deferred(_) => Some(self.due(now)),
        }
    }

    /// Takes what is due; none if there was only something to decide.
    #[inline]
    pub fn pop(&mut self, now: Nanos) -> Option<Released<T>> {
        either!(self, link => link.pop(now))
    }

    /// The same, with the cause of what is lost.
    pub(crate) fn pop_cause(&mut self, now: Nanos) -> Option<(Released<T>, Cause)> {
        match self {
            Wire::Fused(link) => link.pop(now).map(|released| (released, Cause::Loss)),
            Wire::Deferred(link) => link.pop_cause(now),
        }
    }

    pub(crate) fn pop_early(&mut self, latest: Nanos) -> Option<Released<T>> {
        either!(self, link => link.pop_early(latest))
    }

    fn flight(&self) -> &Flight<T> {
        either!(self, link => link.flight())
    }

    /// Packets whose due times are known and that nobody has overtaken yet, in their order.
    pub(crate) fn inside(&self) -> vec_deque::Iter<'_, Inside<T>> {
        self.flight().ordered().iter()
    }

    /// When the next packet that was overtaken arrives [ns].
    pub(crate) fn next_late(&self) -> Option<u64> {
        self.flight().next_late()
    }

    /// Real packets inside, waiting or on the wire.
    pub fn len(&self) -> usize {
        either!(self, link => link.len())
    }

    /// Whether no real packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the next virtual packet arrives.
    pub(crate) fn next_cross(&self) -> Option<Nanos> {
        either!(self, link => link.next_cross())
    }

    /// As [`Link::begin`].
    pub fn begin(&mut self, zero: Nanos) {
        either!(self, link => link.begin(zero));
    }

    /// Brings departures, cross traffic and counters up to `now`.
    pub fn advance(&mut self, now: Nanos) {
        either!(self, link => link.advance(now));
    }

    /// Packets and IP bytes that wait at `now`, cross traffic included, the packet in transmission not.
    pub fn backlog(&mut self, now: Nanos) -> Tally {
        either!(self, link => link.backlog(now))
    }

    /// What the link has done up to the latest `now`.
    pub fn counters(&self) -> &Counters {
        either!(self, link => link.counters())
    }

    /// Changes the parameters at `now`, as the link itself says.
    ///
    /// # Panics
    /// If the queue [may not become](crate::Queue::may_become) the new one.
    pub fn set(&mut self, now: Nanos, params: Params) {
        either!(self, link => link.set(now, params));
    }

    /// As [`Link::reseed`].
    pub fn reseed(&mut self, now: Nanos, seed: u64) {
        either!(self, link => link.reseed(now, seed));
    }

    /// As [`Link::add_cross`].
    pub fn add_cross(&mut self, name: &str, cross: &Cross, start: Nanos, stop: Option<Nanos>) -> CrossId {
        either!(self, link => link.add_cross(name, cross, start, stop))
    }

    /// As [`Link::set_cross`].
    pub fn set_cross(&mut self, now: Nanos, id: CrossId, cross: &Cross) {
        either!(self, link => link.set_cross(now, id, cross));
    }

    /// As [`Link::remove_cross`].
    pub fn remove_cross(&mut self, now: Nanos, id: CrossId) {
        either!(self, link => link.remove_cross(now, id));
    }
}
