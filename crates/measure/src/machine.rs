//! The contract between a measurement and the world that carries it.
//!
//! A [`Machine`] decides what to send and what the answers mean. It has no clock, no socket and no random numbers: all of
//! that is told to it. A driver (the simulator, or sockets) carries one machine for each session and host; the machine
//! at the other end is reached by packets only, control messages among them.
//!
//! # Rules
//! - **Time.** `now` and every stamp are readings of the machine's own host's clock [ns]. Two hosts' clocks share neither
//!   origin nor rate; only differences on one clock are durations. Clocks never go back.
//! - **Order.** The first event is [`Event::Started`]. After it has told one or several events, the driver calls
//!   [`Machine::next`] until it gives none, and carries each action out before it asks for the next; what happens in
//!   doing so (a packet leaves) may be told between two calls of `next`. After [`Action::Done`] it tells and asks nothing.
//! - **The timer** is told after everything that came before its time, as far as the driver can: a packet that is missing
//!   then has not come.
//! - **The past.** What is due at or before `now` is done at once. A train that begins late keeps its gaps.
//! - **What was really sent.** Every packet of a train and every reply is answered by exactly one [`Event::Sent`] or
//!   [`Event::Unsent`], unless the session ends first.
//! - **Paths** are numbered from 0; number n is the same path at both ends. A packet may arrive over any of them, twice,
//!   changed, late, or never, and whoever knows the address can send one: a machine checks what it receives.
//! - **Sizes** count IP bytes; payloads are what UDP carries.
//! - **The end.** A session ends when the client's machine is done; the result is bytes of its own making. The server's is
//!   not told: it says what it has to say in packets, and is dropped.
//!
//! # Example
//! A far end that sends every packet back with its own stamp of the arrival after the first eight bytes:
//! ```
//! use pathcast_base::Nanos;
//! use pathcast_measure::machine::{Action, Batch, Event, Machine, Reply};
//!
//! #[derive(Default)]
//! struct Echo(Vec<Action>);
//!
//! impl Machine for Echo {
//!     fn handle(&mut self, _now: Nanos, event: Event<'_>) {
//!         if let Event::Received { path, packet, size, dscp, ecn, at, .. } = event {
//!             let Some(seq) = packet.first_chunk() else { return };
//!             let payload = [seq.as_slice(), &at.0.to_be_bytes()].concat();
//!             self.0.push(Action::Reply(Reply { path, seq: u64::from_be_bytes(*seq), size, dscp, ecn, payload }));
//!         }
//!     }
//!     fn next(&mut self, _now: Nanos) -> Option<Action> {
//!         self.0.pop()
//!     }
//! }
//!
//! let (mut echo, now) = (Echo::default(), Nanos::millis(5));
//! let packet = 7u64.to_be_bytes();
//! echo.handle(now, Event::Received { path: 0, packet: &packet, size: 36, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE });
//! let Some(Action::Reply(reply)) = echo.next(now) else { unreachable!() };
//! assert_eq!((reply.seq, reply.payload.len()), (7, 16));
//! assert_eq!(echo.next(now), None);
//! ```

use pathcast_base::{Nanos, Rate};
pub use pathcast_estimate::Batch;

/// One end of a measurement. See the [module](self) for the rules.
pub trait Machine: Send {
    /// Something has happened. `now` is not earlier than at any call before.
    fn handle(&mut self, now: Nanos, event: Event<'_>);

    /// What is to be done next; none: nothing until the next event.
    fn next(&mut self, now: Nanos) -> Option<Action>;
}

/// What a machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The session begins.
    Started,
    /// A packet of this machine has left the host.
    Sent {
        /// Over which path.
        path: usize,
        /// Its number, as the machine gave it.
        seq: u64,
        /// When [ns]: the best stamp that the host has.
        at: Nanos,
        /// When it was handed over [ns], if it waited in the host's own queue from then on; else the same.
        handed: Nanos,
    },
    /// A packet of this machine could not be sent: it is larger than the path or IP allows, or the host had no room.
    Unsent {
        /// Over which path.
        path: usize,
        /// Its number, as the machine gave it.
        seq: u64,
    },
    /// A packet has arrived.
    Received {
        /// The path, the way back to its sender.
        path: usize,
        /// The whole payload: what the other machine wrote, and filling after it whose content means nothing.
        packet: &'a [u8],
        /// IP bytes.
        size: u16,
        /// Differentiated services code point as it arrived (RFC 2474), 0 to 63.
        dscp: u8,
        /// Explicit congestion notification as it arrived (RFC 3168), 0 to 3.
        ecn: u8,
        /// When [ns]: the best stamp that the host has. Packets of one batch may share it.
        at: Nanos,
        /// Its place among the packets that the host handed over together.
        batch: Batch,
    },
    /// Packets arrived and found no room at this host, before the one that is told next.
    Missed {
        /// Over which path.
        path: usize,
        /// How many, others' among them where they share the room.
        packets: u32,
    },
    /// The time of the last [`Action::WakeAt`] has come.
    Timer,
    /// The user wants an end: the machine says goodbye and [`Action::Done`] with what it has, or it is dropped.
    Stop,
}

/// What a machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends packets at their times. Trains may overlap; packets of two trains that are due together leave in any order.
    SendTrain(Train),
    /// Sends one packet at once.
    Reply(Reply),
    /// Tells [`Event::Timer`] once at this time [ns]. There is one timer: a new time replaces the old one, and
    /// [`Nanos::MAX`] takes it off.
    WakeAt(Nanos),
    /// How far the measurement has come.
    Progress(Progress),
    /// The end, with the result.
    Done(Vec<u8>),
}

/// Packets of one size over one path. Packet i has the number `seq + i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// Which path.
    pub path: usize,
    /// The first packet's number; the machine's own count.
    pub seq: u64,
    /// When the first packet is to leave [ns].
    pub at: Nanos,
    /// From the start of each packet to the start of the next one [ns]; zero: back to back. One less than packets.
    pub gaps: Vec<Nanos>,
    /// IP bytes of each packet. What the payload needs more, it gets: 0 means as small as possible.
    pub size: u16,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification, 0 to 3.
    pub ecn: u8,
    /// Whether it leaves as a flow of its own, beside the path's: from another port, so that a queue for every flow tells
    /// them apart. A driver that cannot says [`Event::Unsent`].
    pub beside: bool,
    /// How the packets' payloads begin: all of one length, one after the other. The driver fills them up to `size`.
    pub heads: Vec<u8>,
}

impl Train {
    /// One packet and one more for each gap, without heads.
    pub fn new(path: usize, seq: u64, at: Nanos, gaps: Vec<Nanos>, size: u16) -> Train {
        Train { path, seq, at, gaps, size, dscp: 0, ecn: 0, beside: false, heads: Vec::new() }
    }

    /// `count` packets (at least one), `gap` apart.
    pub fn even(path: usize, seq: u64, at: Nanos, count: usize, gap: Nanos, size: u16) -> Train {
        Train::new(path, seq, at, vec![gap; count.saturating_sub(1)], size)
    }

    /// `count` packets (at least one) of `size` IP bytes at `rate`, which must not be zero. Each leaves at its own time
    /// rounded to the nanosecond, so that the roundings of the gaps do not add up.
    pub fn paced(path: usize, seq: u64, at: Nanos, count: usize, rate: Rate, size: u16) -> Train {
        let start = |i: usize| rate.time_for(i as u64 * u64::from(size));
        Train::new(path, seq, at, (1..count).map(|i| start(i) - start(i - 1)).collect(), size)
    }

    /// The same with a code point.
    pub fn marked(self, dscp: u8) -> Train {
        Train { dscp, ..self }
    }

    /// The same as a flow of its own.
    pub fn beside(self) -> Train {
        Train { beside: true, ..self }
    }

    /// The same with heads of `length` bytes: `write` gets each packet's number and its head, all zero.
    pub fn with_heads(mut self, length: usize, mut write: impl FnMut(u64, &mut [u8])) -> Train {
        self.heads = vec![0; length * self.count()];
        if length > 0 {
            self.heads.chunks_mut(length).zip(self.seq..).for_each(|(head, seq)| write(seq, head));
        }
        self
    }

    /// Packets.
    pub fn count(&self) -> usize {
        self.gaps.len() + 1
    }

    /// How the payload of packet `i` begins.
    ///
    /// # Panics
    /// If there is no such packet.
    pub fn head(&self, i: usize) -> &[u8] {
        assert!(i < self.count(), "packet {i} of {}", self.count());
        let length = self.heads.len() / self.count();
        &self.heads[i * length..(i + 1) * length]
    }

    /// From the first packet's start to the last one's [ns].
    pub fn duration(&self) -> Nanos {
        Nanos(self.gaps.iter().map(|gap| gap.0).sum())
    }
}

/// One packet, sent at once: an answer, or a control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Which path.
    pub path: usize,
    /// Its number; the machine's own count.
    pub seq: u64,
    /// IP bytes. What the payload needs more, it gets: 0 means as small as possible.
    pub size: u16,
    /// Differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification, 0 to 3.
    pub ecn: u8,
    /// How its payload begins. The driver fills it up to `size`.
    pub payload: Vec<u8>,
}

/// How far a measurement has come, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is about: one word.
    pub phase: &'static str,
    /// Steps of this phase that are done.
    pub done: u64,
    /// How many there are; 0: unknown.
    pub of: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundings_of_a_paced_train_do_not_add_up() {
        let train = Train::paced(0, 0, Nanos(0), 1001, Rate(3_000_000), 1000); // 2666666.67 ns a packet
        assert_eq!(train.count(), 1001);
        assert_eq!(train.duration(), Nanos(2_666_666_667));
        assert!(train.gaps.iter().all(|gap| (2_666_666..=2_666_667).contains(&gap.0)));
    }

    #[test]
    fn each_packet_has_its_own_head() {
        let train = Train::even(1, 40, Nanos(0), 3, Nanos(7), 100).with_heads(8, |seq, head| {
            head.copy_from_slice(&seq.to_be_bytes());
        });
        assert_eq!([0, 1, 2].map(|i| train.head(i).to_vec()), [40u64, 41, 42].map(|seq| seq.to_be_bytes().to_vec()));
        assert_eq!(train.duration(), Nanos(14));
        assert_eq!(Train::even(1, 40, Nanos(0), 3, Nanos(7), 100).head(2), b"");
        assert_eq!(Train::even(0, 0, Nanos(0), 0, Nanos(7), 100).count(), 1);
    }
}
