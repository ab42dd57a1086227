//! A hop of the path: a link with one queue or with fair queueing, and the cross traffic that does not respond.

use pathcast_base::{Nanos, Stream};
use pathcast_link::{Cross, DeferredLink, Link, Offered, Params, Queue};

#[derive(Clone, Debug)]
pub struct Hop {
    pub params: Params,
    pub cross: Vec<Cross>,
}

impl Hop {
    /// At most so many bit/s.
    pub fn rate(&self) -> f64 {
        let line = self.params.rate.map_or(f64::INFINITY, |r| r.0 as f64);
        self.params.bucket.map_or(line, |bucket| line.min(bucket.rate.0 as f64))
    }
}

pub enum Line {
    Shared(Link<u64>),
    Fair(DeferredLink<u64>),
}

impl Line {
    pub fn new(hop: &Hop, number: usize, seed: u64, stream: &mut Stream) -> Line {
        let name = format!("hop{number}");
        let mut line = match hop.params.queue {
            Queue::Fair(_) => Line::Fair(DeferredLink::new(hop.params.clone(), seed, &name)),
            _ => Line::Shared(Link::new(hop.params.clone(), seed, &name)),
        };
        for (c, cross) in hop.cross.iter().enumerate() {
            let start = Nanos::from_secs_f64(stream.uniform() * 0.2);
            match &mut line {
                Line::Shared(link) => _ = link.add_cross(&format!("c{c}"), cross, start, None),
                Line::Fair(link) => _ = link.add_cross(&format!("c{c}"), cross, start, None),
            }
        }
        line
    }

    pub fn next_due(&self) -> Option<Nanos> {
        match self {
            Line::Shared(link) => link.next_due(),
            Line::Fair(link) => link.next_due(),
        }
    }
    /// The number of a packet that leaves at `now`, and whether it lives.
    pub fn pop(&mut self, now: Nanos) -> Option<(u64, Nanos, bool)> {
        let released = match self {
            Line::Shared(link) => link.pop(now),
            Line::Fair(link) => link.pop(now),
        }?;
        Some((released.packet, released.at, !released.lost))
    }
    /// The packet that found no place, if one did not. Flow 0 are the probes.
    pub fn offer(&mut self, now: Nanos, bytes: u32, flow: u32, packet: u64) -> Option<u64> {
        match self {
            Line::Shared(link) => link.offer(now, bytes, packet).err().map(|refused| refused.packet),
            Line::Fair(link) => match link.offer(now, bytes, flow, packet) {
                Offered::Taken => None,
                Offered::Refused(lost) | Offered::PushedOut(lost) => Some(lost),
            },
        }
    }

    /// Bytes of cross traffic without response that entered up to `now`.
    pub fn entered(&mut self, now: Nanos) -> u64 {
        match self {
            Line::Shared(link) => {
                link.advance(now);
                link.counters().cross.entered.bytes
            }
            Line::Fair(link) => {
                link.advance(now);
                link.counters().cross.entered.bytes
            }
        }
    }
}
