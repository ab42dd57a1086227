//! Packets that gather until the link's next opportunity, as Wi-Fi frames, LTE grants and DOCSIS request cycles make them:
//! all that the serialiser has sent by then leave at one time.
//!
//! Opportunities come at whole multiples of `every`. Where more than `bytes` would leave at one of them, a packet waits
//! for the next, and the serialiser with it until the one before has gone.

use crate::Aggregation;

/// The opportunity at which the last packet leaves, and the bytes that leave then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fill {
    number: u64,
    bytes: u64,
}

/// The opportunities on a link's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    every: u64,
    bytes: u64,
    /// Time of the opportunities less that of the link.
    shift: u64,
}

impl Gather {
    /// `zero`: the time of an opportunity.
    pub(crate) fn new(aggregation: Aggregation, zero: u64) -> Self {
        let every = aggregation.every.0;
        Gather { every, bytes: aggregation.bytes.0, shift: every - zero % every }
    }

    /// When the serialiser is free again, and when the packet leaves that it sent until `departure`.
    pub(crate) fn pass(&self, fill: &mut Fill, departure: u64, bytes: u64) -> (u64, u64) {
        let at = departure.saturating_add(self.shift);
        let mut number = at.div_ceil(self.every).max(fill.number);
        let mut free = at;
        if number == fill.number && fill.bytes > 0 && fill.bytes + bytes > self.bytes {
            free = free.max(number * self.every);
            number += 1;
        }
        fill.bytes = if number == fill.number { fill.bytes + bytes } else { bytes };
        fill.number = number;
        (free - self.shift, number * self.every - self.shift)
    }

    /// Mean time of a packet on a link that nothing else limits [ns].
    pub(crate) fn typical(&self, bytes: u64) -> u64 {
        self.every * bytes / self.bytes
    }
}
