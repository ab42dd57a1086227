//! What a socket has received, with its batches.
//!
//! A network device tells of several packets at once (interrupt coalescing, NAPI): the kernel stamps them one after the other
//! as fast as it can, so that their stamps say when it got to them and not when they came. Such packets are told by stamps
//! that follow each other closely. How many a read returned says nothing: that depends on when this process was woken.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use pathcast_base::Nanos;
use pathcast_measure::machine::Batch;

use super::receive::Arrival;

/// Packets whose stamps follow each other this closely were handed over together [ns]. The kernel needs one or two
/// microseconds for a packet; 1500 bytes need 12 µs at 1 Gbit/s. Packets that really come at more than 3 Gbit/s look like
/// a batch as well.
pub(crate) const TOGETHER: Nanos = Nanos::micros(4);

/// A packet that has come.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub payload: Vec<u8>,
    pub from: SocketAddr,
    pub local: Option<IpAddr>,
    /// IP bytes.
    pub size: u16,
    pub dscp: u8,
    pub ecn: u8,
    pub at: Nanos,
    /// So many found no room between the packet before and this one.
    pub missed: u32,
}

/// A packet may still be on its way from its stamp to its socket: so long after the last stamp a batch is complete.
const STRAGGLERS: Nanos = Nanos::micros(20);

/// Where more than this waits, what is kept of each packet included, no more is read [byte]: the socket keeps it, with its
/// stamps, as far as there is room. Who is busy would else hold all of its buffer once more, and of empty packets any number.
const FULL: usize = 1 << 20;

/// Who has sent a packet, and to which address of this host.
type Sender = (SocketAddr, Option<IpAddr>);

/// Packets in the order in which they came. Those of a batch are given out when it is known to be complete.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: VecDeque<Datagram>,
    /// How many of them, from the first on, are in complete batches.
    complete: usize,
    /// Those of the batch that is being given out, by sender, in the order of the senders: given so far, and all.
    batch: Vec<(Sender, u32, u32)>,
    /// How many of the batch are still to be given out.
    rest: usize,
    spare: Vec<Vec<u8>>,
    /// Of what waits.
    bytes: usize,
    /// So many found no room up to the last packet; wraps.
    missed: u32,
}

impl Inbox {
    /// Adds a packet that came at `at`.
    pub fn add(&mut self, arrival: &Arrival<'_>, overhead: usize, at: Nanos) {
        if self.waiting.back().is_some_and(|last| !together(last.at, at)) {
            self.complete = self.waiting.len();
        }
        let mut payload = self.spare.pop().unwrap_or_default();
        payload.clear();
        payload.extend_from_slice(arrival.payload);
        self.bytes += room(&payload);
        self.waiting.push_back(Datagram {
            size: (payload.len() + overhead).min(usize::from(u16::MAX)) as u16,
            payload,
            from: arrival.from,
            local: arrival.local,
            dscp: arrival.dscp,
            ecn: arrival.ecn,
            at,
            missed: arrival.missed.wrapping_sub(std::mem::replace(&mut self.missed, arrival.missed)),
        });
    }

    /// Is there so much that no more is to be read? What is here is given out then, complete or not.
    pub fn is_full(&mut self) -> bool {
        let full = self.bytes > FULL;
        if full {
            self.complete = self.waiting.len();
        }
        full
    }

    /// There was nothing more to read at `looked`: a batch whose last packet is old enough is complete.
    pub fn settle(&mut self, looked: Nanos) {
        if self.waiting.back().is_some_and(|last| looked > last.at + STRAGGLERS) {
            self.complete = self.waiting.len();
        }
    }

    /// When the last batch is complete if nothing comes.
    pub fn until(&self) -> Option<Nanos> {
        let open = self.complete < self.waiting.len();
        self.waiting.back().filter(|_| open).map(|last| last.at + STRAGGLERS + Nanos(1))
    }

    /// Is there nothing, complete or not?
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Is there something to be taken?
    pub fn ready(&self) -> bool {
        self.complete > 0
    }

    /// The next packet and its place in its batch, which counts the packets of one sender to one address.
    pub fn take(&mut self) -> Option<(Datagram, Batch)> {
        if self.complete == 0 {
            return None;
        }
        if self.rest == 0 {
            self.count_batch();
        }
        let datagram = self.waiting.pop_front()?;
        self.bytes -= room(&datagram.payload);
        self.complete -= 1;
        self.rest -= 1;
        let who = (datagram.from, datagram.local);
        let place = self.batch.binary_search_by(|known| known.0.cmp(&who)).ok()?;
        let (_, given, of) = &mut self.batch[place];
        let batch = Batch { index: *given, of: *of };
        *given += 1;
        Some((datagram, batch))
    }

    fn count_batch(&mut self) {
        self.batch.clear();
        let mut last: Option<Nanos> = None;
        for datagram in self.waiting.iter().take(self.complete) {
            if last.is_some_and(|last| !together(last, datagram.at)) {
                break;
            }
            last = Some(datagram.at);
            self.rest += 1;
            let who = (datagram.from, datagram.local);
            match self.batch.last_mut().filter(|known| known.0 == who) {
                Some(known) => known.2 += 1,
                None => self.batch.push((who, 0, 1)),
            }
        }
        // senders may be as many as packets: they cost nothing to forge
        self.batch.sort_unstable();
        self.batch.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.2 += if same { later.2 } else { 0 };
            same
        });
    }

    /// Takes a packet's room back.
    pub fn recycle(&mut self, datagram: Datagram) {
        if self.spare.len() < super::receive::AT_ONCE {
            self.spare.push(datagram.payload);
        }
    }
}

/// What a packet that waits takes [byte].
fn room(payload: &[u8]) -> usize {
    size_of::<Datagram>() + payload.len()
}

fn together(earlier: Nanos, later: Nanos) -> bool {
    later.0.abs_diff(earlier.0) <= TOGETHER.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "192.0.2.1:1";
    const B: &str = "192.0.2.2:1";

    fn add(inbox: &mut Inbox, from: &str, at: u64) {
        let from = from.parse().unwrap();
        let arrival =
            Arrival { from, local: None, payload: &[7; 72], dscp: 46, ecn: 0, ttl: 64, stamp: None, missed: 0 };
        inbox.add(&arrival, 28, Nanos(at));
    }

    fn taken(inbox: &mut Inbox) -> Vec<(u64, u32, u32)> {
        std::iter::from_fn(|| inbox.take()).map(|(d, b)| (d.at.0, b.index, b.of)).collect()
    }

    #[test]
    fn stamps_that_follow_closely_are_a_batch() {
        let mut inbox = Inbox::default();
        for at in [10_000, 22_000, 34_000, 34_900, 36_000, 60_000] {
            add(&mut inbox, A, at);
        }
        // the last one may have followers
        let first = [(10_000, 0, 1), (22_000, 0, 1), (34_000, 0, 3), (34_900, 1, 3), (36_000, 2, 3)];
        assert_eq!(taken(&mut inbox), first);
        assert_eq!(inbox.until(), Some(Nanos(80_001)));
        inbox.settle(Nanos(80_000));
        assert_eq!(taken(&mut inbox), []);
        add(&mut inbox, A, 63_000);
        inbox.settle(Nanos(83_001));
        assert_eq!((inbox.until(), inbox.ready()), (None, true));
        assert_eq!(taken(&mut inbox), [(60_000, 0, 2), (63_000, 1, 2)]);
    }

    #[test]
    fn what_is_full_is_given_out_even_if_all_of_it_may_be_one_batch() {
        let mut inbox = Inbox::default();
        let (from, payload) = (A.parse().unwrap(), vec![7; 60_000]);
        let arrival =
            Arrival { from, local: None, payload: &payload, dscp: 0, ecn: 0, ttl: 64, stamp: None, missed: 0 };
        let mut count = 0;
        while !inbox.is_full() {
            inbox.add(&arrival, 28, Nanos(count * 1000));
            count += 1;
        }
        assert_eq!((count, inbox.ready()), (FULL as u64 / 60_000 + 1, true));
        inbox.take();
        assert!(!inbox.is_full());
        assert_eq!(taken(&mut inbox).len() as u64, count - 1);
        assert_eq!(inbox.bytes, 0);
    }

    #[test]
    fn packets_of_no_payload_from_forged_senders_fill_it_too() {
        let mut inbox = Inbox::default();
        let local = None;
        let mut count: u32 = 0;
        while !inbox.is_full() {
            let from = SocketAddr::from(([192, 0, 2, 1], (count * 7919 % 5003) as u16));
            let arrival = Arrival { from, local, payload: &[], dscp: 0, ecn: 0, ttl: 64, stamp: None, missed: 0 };
            inbox.add(&arrival, 28, Nanos(u64::from(count) * 1000));
            count += 1;
            assert!(count < 20_000, "it is never full");
        }
        let mut given = std::collections::HashMap::new();
        for _ in 0..count {
            let (datagram, batch) = inbox.take().unwrap();
            let (seen, of) = given.entry(datagram.from).or_insert((0, batch.of));
            assert_eq!((*seen, *of), (batch.index, batch.of));
            *seen += 1;
        }
        assert!(given.len() > 4000 && given.values().all(|(seen, of)| seen == of));
        assert_eq!((inbox.bytes, inbox.ready()), (0, false));
    }

    #[test]
    fn each_sender_has_its_own_count_in_what_came_together() {
        let mut inbox = Inbox::default();
        for (from, at) in [(A, 0), (B, 3_000), (B, 6_000), (A, 9_000), (A, 90_000)] {
            add(&mut inbox, from, at);
        }
        inbox.settle(Nanos(120_000));
        let all = [(0, 0, 2), (3_000, 0, 2), (6_000, 1, 2), (9_000, 1, 2), (90_000, 0, 1)];
        assert_eq!(taken(&mut inbox), all);
    }

    #[test]
    fn what_found_no_room_is_told_with_the_next_packet_also_when_the_count_wraps() {
        let mut inbox = Inbox::default();
        for (at, missed) in [(0, u32::MAX - 1), (50_000, u32::MAX - 1), (100_000, 2)] {
            let (from, payload) = (A.parse().unwrap(), [7; 72].as_slice());
            inbox.add(
                &Arrival { from, local: None, payload, dscp: 0, ecn: 0, ttl: 64, stamp: None, missed },
                28,
                Nanos(at),
            );
        }
        inbox.settle(Nanos(200_000));
        let told: Vec<u32> = std::iter::from_fn(|| inbox.take()).map(|(datagram, _)| datagram.missed).collect();
        assert_eq!(told, [u32::MAX - 1, 0, 4]);
    }

    #[test]
    fn a_packet_and_its_room() {
        let mut inbox = Inbox::default();
        add(&mut inbox, A, 5);
        inbox.settle(Nanos(50_000));
        let (datagram, batch) = inbox.take().unwrap();
        assert_eq!((datagram.size, datagram.payload.len(), datagram.dscp), (100, 72, 46));
        assert_eq!((datagram.from, batch), (A.parse().unwrap(), Batch::SINGLE));
        inbox.recycle(datagram);
        assert_eq!(inbox.spare.len(), 1);
    }
}
