//! Cross traffic that responds: TCP flows with Reno's window over the link that the probes cross.
//!
//! Slow start, one more packet a round trip, half the window after a loss (RFC 5681), losses seen by three later
//! acknowledgments with as many repairs a round trip as it takes (RFC 6675), and a timeout (RFC 6298, at least 200 ms). Every
//! packet sent has a number of its own; a lost one is sent again under a new number.

use std::collections::BTreeMap;

use pathcast_base::{Nanos, Stream};

/// IP bytes of every packet.
pub const PACKET: u32 = 1500;

/// What a flow has to send.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// Round trip without the queue.
    pub rtt: Nanos,
    /// Mean packets of a transfer (Pareto, shape 1.5), and the mean pause after it (exponential); none: without end.
    pub transfers: Option<(f64, Nanos)>,
}

/// One flow.
pub struct Flow {
    tcp: Tcp,
    stream: Stream,
    window: f64,
    threshold: f64,
    /// Sent and neither acknowledged nor taken for lost: number and time.
    flying: BTreeMap<u64, Nanos>,
    next: u64,
    /// Losses of packets below this number have been answered.
    recover: u64,
    /// Packets of this transfer still to be sent.
    left: u64,
    smoothed: f64,
    /// When the next transfer begins.
    begins: Nanos,
    timeout: Nanos,
}

impl Flow {
    pub fn new(tcp: Tcp, begins: Nanos, stream: Stream) -> Flow {
        Flow {
            tcp,
            stream,
            window: 10.0,
            threshold: f64::INFINITY,
            flying: BTreeMap::new(),
            next: 0,
            recover: 0,
            left: 0,
            smoothed: tcp.rtt.as_secs_f64(),
            begins,
            timeout: Nanos::MAX,
        }
    }

    /// When it has to be asked, if no acknowledgment comes.
    pub fn wake(&self) -> Nanos {
        self.begins.min(self.timeout)
    }

    /// The numbers of the packets that it sends now.
    pub fn send(&mut self, now: Nanos) -> std::ops::Range<u64> {
        if now >= self.begins {
            self.begins = Nanos::MAX;
            self.left = match self.tcp.transfers {
                Some((mean, _)) => (self.stream.pareto(1.5, mean) as u64).max(1),
                None => u64::MAX / 2,
            };
            (self.window, self.threshold) = (10.0, self.threshold.max(10.0));
        }
        if now >= self.timeout {
            self.left += self.flying.len() as u64;
            self.flying.clear();
            (self.threshold, self.window, self.recover) = ((self.window / 2.0).max(2.0), 1.0, self.next);
        }
        let room = (self.window as u64).saturating_sub(self.flying.len() as u64).min(self.left);
        let from = self.next;
        self.next += room;
        self.left -= room;
        self.flying.extend((from..self.next).map(|number| (number, now)));
        if room > 0 || now >= self.timeout {
            self.arm(now);
        }
        from..self.next
    }

    fn arm(&mut self, now: Nanos) {
        let wait = (2.0 * self.smoothed).max(0.2);
        self.timeout = if self.flying.is_empty() { Nanos::MAX } else { now + Nanos::from_secs_f64(wait) };
    }

    /// The acknowledgment of a packet; those sent more than two before it are lost.
    pub fn acknowledged(&mut self, number: u64, now: Nanos) {
        let Some(sent) = self.flying.remove(&number) else { return };
        self.smoothed += 0.125 * (now.saturating_sub(sent).as_secs_f64() - self.smoothed);
        let later = self.flying.split_off(&number.saturating_sub(2));
        let lost = std::mem::replace(&mut self.flying, later);
        self.left += lost.len() as u64;
        if lost.keys().any(|&lost| lost >= self.recover) {
            self.threshold = (self.window / 2.0).max(2.0);
            (self.window, self.recover) = (self.threshold, self.next);
        } else if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.window += 1.0 / self.window;
        }
        self.arm(now);
        if self.left == 0
            && self.flying.is_empty()
            && let Some((_, pause)) = self.tcp.transfers
        {
            self.begins = now + Nanos::from_secs_f64(self.stream.exponential(pause.as_secs_f64()));
        }
    }
}
