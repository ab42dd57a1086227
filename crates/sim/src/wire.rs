//! One direction of a link: first come first served, or fair between subflows.

use pathcast_base::Nanos;
use pathcast_link::{Counters, Cross, CrossId, FairLink, Link, Offered, Params, Queue, Released, Tally};

use crate::packet::Packet;

/// One direction of a link.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub(crate) enum Wire {
    /// Departures are known at arrival.
    Fifo(Link<Packet>),
    /// Departures are decided when the line is free.
    Fair(Box<FairLink<Packet>>),
}

/// Calls the same method of whichever link it is.
macro_rules! either {
    ($wire:expr, $link:ident => $call:expr) => {
        match $wire {
            Wire::Fifo($link) => $call,
            Wire::Fair($link) => $call,
        }
    };
}

impl Wire {
    pub(crate) fn new(params: Params, seed: u64, name: &str) -> Self {
        if matches!(params.queue, Queue::Fair(_)) {
            Wire::Fair(Box::new(FairLink::new(params, seed, name)))
        } else {
            Wire::Fifo(Link::new(params, seed, name))
        }
    }

    /// Offers a packet; gives back the one that is dropped for it.
    #[inline]
    pub(crate) fn offer(&mut self, now: Nanos, packet: Packet) -> Option<Packet> {
        let bytes = u32::from(packet.bytes);
        match self {
            Wire::Fifo(link) => link.offer(now, bytes, packet).err().map(|refused| refused.packet),
            Wire::Fair(link) => match link.offer(now, bytes, packet.flow, packet) {
                Offered::Taken => None,
                Offered::Refused(packet) | Offered::PushedOut(packet) => Some(packet),
            },
        }
    }

    /// Takes what is due; none if there was only something to decide.
    #[inline]
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Released<Packet>> {
        either!(self, link => link.pop(now))
    }

    /// When something happens next [ns], not before `now`; the end of time if nothing will.
    #[inline]
    pub(crate) fn due(&self, now: u64) -> u64 {
        either!(self, link => link.next_due()).map_or(u64::MAX, |due| due.0.max(now))
    }

    /// The same after a packet was offered, if that may have changed it.
    #[inline]
    pub(crate) fn due_if_changed(&self, now: u64) -> Option<u64> {
        match self {
            Wire::Fifo(link) => (link.len() == 1).then(|| self.due(now)),
            Wire::Fair(_) => Some(self.due(now)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        either!(self, link => link.len())
    }

    pub(crate) fn advance(&mut self, now: Nanos) {
        either!(self, link => link.advance(now));
    }

    pub(crate) fn backlog(&mut self, now: Nanos) -> Tally {
        either!(self, link => link.backlog(now))
    }

    pub(crate) fn counters(&self) -> &Counters {
        either!(self, link => link.counters())
    }

    pub(crate) fn set(&mut self, now: Nanos, params: Params) {
        either!(self, link => link.set(now, params));
    }

    pub(crate) fn add_cross(&mut self, name: &str, cross: &Cross, start: Nanos, stop: Option<Nanos>) -> CrossId {
        either!(self, link => link.add_cross(name, cross, start, stop))
    }

    pub(crate) fn set_cross(&mut self, now: Nanos, id: CrossId, cross: &Cross) {
        either!(self, link => link.set_cross(now, id, cross));
    }
}
