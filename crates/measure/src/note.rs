//! What happens at a far end that is worth a line in a log.

use std::fmt;
use std::net::IpAddr;

use pathcast_base::{Bytes, Nanos};

use super::messages::{Denial, Denied};

/// Whose, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureNote {
    /// Which key.
    pub key_id: String,
    /// From where.
    pub source: IpAddr,
    /// What happened.
    pub what: Happened,
}

/// To a session, or to who asked for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It waits for its turn.
    Waits {
        /// How many wait before it.
        ahead: usize,
    },
    /// It measures.
    Begun {
        /// How long it waited [ns].
        waited: Nanos,
    },
    /// It is over.
    Ended {
        /// Probes and questions of the time, both ways [IP bytes].
        bytes: u64,
        /// Since it measured; none: it never did [ns].
        took: Option<Nanos>,
        /// Why, if its client did not say so.
        why: Option<Ended>,
    },
    /// There was no room for it.
    Denied(Limit),
}

/// What ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing was heard of its client.
    Silent,
    /// It ran into a limit.
    Limit(Limit),
    /// The far end panicked over it.
    Bug,
}

/// A limit by its name, and its value in bytes or nanoseconds or as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(Denied);

impl From<Denied> for Limit {
    fn from(denied: Denied) -> Limit {
        Limit(denied)
    }
}

/// As it is written: `NAME=VALUE`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Denied { denial, limit } = self.0;
        write!(f, "{}=", denial.code())?;
        match denial {
            Denial::Bytes => write!(f, "{}", Bytes(limit)),
            Denial::Time | Denial::Pause => write!(f, "{}", Nanos(limit)),
            _ => write!(f, "{limit}"),
        }
    }
}

/// A line for people: who, from where, how much.
impl fmt::Display for MeasureNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MeasureNote { key_id, source, what } = self;
        write!(f, "measurement of `{key_id}` from {source} ")?;
        match what {
            Happened::Waits { ahead } => write!(f, "waits at place {} of the queue", ahead + 1),
            Happened::Begun { waited: Nanos::ZERO } => write!(f, "begun"),
            Happened::Begun { waited } => write!(f, "begun after {:.3} s in the queue", waited.as_secs_f64()),
            Happened::Denied(limit) => write!(f, "denied: {limit}"),
            Happened::Ended { bytes, took, why } => {
                match why {
                    None => write!(f, "done")?,
                    Some(Ended::Silent) => write!(f, "ended, its client fell silent")?,
                    Some(Ended::Bug) => write!(f, "ended by a bug of this far end")?,
                    Some(Ended::Limit(limit)) => write!(f, "ended by {limit}")?,
                }
                match took {
                    Some(took) => write!(f, ": {bytes} B in {:.3} s", took.as_secs_f64()),
                    None => write!(f, " while it waited"),
                }
            }
        }
    }
}
