//! What is asked of a measurement.

use std::fmt;
use std::str::FromStr;

use pathcast_base::{Bytes, Nanos};

use crate::estimate::Budget;
use crate::session::Key;

/// Which way probes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the far end.
    Out,
    /// From the far end to the client.
    In,
}

impl Direction {
    /// As results call it.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Out => "out",
            Direction::In => "in",
        }
    }
}

/// How the available bandwidth is estimated; see [`crate::estimate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum MethodName {
    /// A short queue kept in front of the bottleneck.
    #[default]
    Ride = 1,
    /// The FIFO replay fit.
    Replay = 2,
    /// PathTester as its paper improved it.
    PathTester = 3,
    /// PathTester before.
    PathTesterOld = 4,
    /// Self-loading periodic streams, as Pathload sends them.
    Slops = 5,
}

/// No method is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no method `{0}`: take ride, replay, pathtester, pathtester-old or slops")]
pub struct NoSuchMethod(String);

impl MethodName {
    /// All of them, the default first.
    pub const ALL: [MethodName; 5] =
        [MethodName::Ride, MethodName::Replay, MethodName::PathTester, MethodName::PathTesterOld, MethodName::Slops];

    /// As commands and results call it.
    pub fn word(self) -> &'static str {
        match self {
            MethodName::Ride => "ride",
            MethodName::Replay => "replay",
            MethodName::PathTester => "pathtester",
            MethodName::PathTesterOld => "pathtester-old",
            MethodName::Slops => "slops",
        }
    }

    pub(super) fn of(code: u8) -> Option<MethodName> {
        Self::ALL.into_iter().find(|&method| method as u8 == code)
    }
}

impl FromStr for MethodName {
    type Err = NoSuchMethod;

    fn from_str(word: &str) -> Result<Self, NoSuchMethod> {
        Self::ALL.into_iter().find(|method| method.word() == word).ok_or_else(|| NoSuchMethod(word.into()))
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a host knows of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// A digest of what only processes on the same kernel and clock know, such as the boot's id; equal at both ends: one
    /// clock. It is told only as a digest under the session's key.
    pub host: Option<[u8; 32]>,
    /// Whether the kernel says that the clock is disciplined (adjtimex).
    pub synchronised: bool,
    /// How far it is from the truth at most, as the kernel says [ns].
    pub max_error: Nanos,
}

/// What a client wants measured.
#[derive(Clone, Debug)]
pub struct Request {
    /// The secret that the far end knows too.
    pub key: Key,
    /// How many paths, 1 to 64.
    pub paths: usize,
    /// Which ways, in this order; none twice.
    pub directions: Vec<Direction>,
    /// How.
    pub method: MethodName,
    /// For each path and direction, all that it takes included.
    pub budget: Budget,
    /// Whether the default method takes no more of it than the capacity that it finds asks for
    /// ([`Budget::sensible`](crate::estimate::Budget::sensible)).
    pub sparing: bool,
    /// Differentiated services code point of all packets, both ways: 0 to 63.
    pub dscp: u8,
    /// All paths at once instead of one after the other.
    pub at_once: bool,
    /// Of this host.
    pub clock: ClockState,
    /// For the random parts of trains.
    pub seed: u64,
}

impl Request {
    /// Both directions of one path with the default method, 1 MB and 3 s each.
    pub fn new(key: Key) -> Request {
        Request {
            key,
            paths: 1,
            directions: vec![Direction::Out, Direction::In],
            method: MethodName::default(),
            budget: Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) },
            sparing: false,
            dscp: 0,
            at_once: false,
            clock: ClockState::default(),
            seed: 1,
        }
    }
}
