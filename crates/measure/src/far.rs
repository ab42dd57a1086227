//! The contract between a far end and the loop that carries it: many clients over many addresses.
//!
//! The rules of [`crate::machine`] hold: time, order, the past, sizes, and that every packet of a session's trains and
//! replies is answered by exactly one Sent or Unsent. `A` is how the loop names a way back: for sockets the local and the
//! remote address.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};

use pathcast_base::Nanos;

use crate::machine::{Batch, Reply, Train};

/// Where a datagram came from, and where its answer goes.
pub trait Address: Clone + Eq + Hash + Send {
    /// What a cookie proves: the remote address and port.
    fn bytes(&self) -> Vec<u8>;

    /// What limits are counted by: the remote address without the port.
    fn source(&self) -> IpAddr;
}

/// The simulator's addresses: the number of a path. All come from one source.
impl Address for usize {
    fn bytes(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn source(&self) -> IpAddr {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// What a far end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEvent<'a, A> {
    /// A packet has arrived.
    Received {
        /// The way back to its sender.
        from: A,
        /// The whole payload.
        packet: &'a [u8],
        /// IP bytes.
        size: u16,
        /// Differentiated services code point as it arrived, 0 to 63.
        dscp: u8,
        /// Explicit congestion notification as it arrived (RFC 3168), 0 to 3.
        ecn: u8,
        /// When [ns]: the best stamp that the host has.
        at: Nanos,
        /// Its place among the packets that the host handed over together.
        batch: Batch,
    },
    /// Packets arrived and found no room at this host, before the one that is told next; of which sessions nobody knows.
    Missed {
        /// How many.
        packets: u32,
    },
    /// A packet of a session has left the host.
    Sent {
        /// Whose.
        session: u64,
        /// Over which of its paths.
        path: usize,
        /// Its number, as the far end gave it.
        seq: u64,
        /// When [ns]: the best stamp that the host has.
        at: Nanos,
        /// When it was handed over [ns], if it waited in the host's own queue from then on; else the same.
        handed: Nanos,
    },
    /// A packet of a session could not be sent.
    Unsent {
        /// Whose.
        session: u64,
        /// Over which of its paths.
        path: usize,
        /// Its number, as the far end gave it.
        seq: u64,
    },
    /// The time of the last [`FarAction::WakeAt`] has come.
    Timer,
}

/// What a far end wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarAction<A> {
    /// Sends packets at their times.
    SendTrain {
        /// Whose they are.
        session: u64,
        /// Where they go.
        to: A,
        /// The packets.
        train: Train,
    },
    /// Sends one packet at once.
    Reply {
        /// Whose it is; 0: there is no session yet, and its Sent is not told.
        session: u64,
        /// Where it goes.
        to: A,
        /// The packet.
        reply: Reply,
    },
    /// A session is over: what is left of its trains is not sent.
    Stop {
        /// Which.
        session: u64,
    },
    /// Tells [`FarEvent::Timer`] once at this time [ns]; a new time replaces the old one, [`Nanos::MAX`] takes it off.
    WakeAt(Nanos),
}
