//! Why a transfer has no result.

use pathcast_base::{Exit, Fault};
use pathcast_scenario::MAX_SUBFLOWS;

use crate::error::{LIMIT_HINT, SimError};

/// How far a transfer has come that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// The paths' names.
    pub paths: String,
    /// Application bytes that had arrived.
    pub arrived: u64,
    /// Application bytes that were asked for.
    pub bytes: u64,
    /// Simulated time that it took [s].
    pub after_s: f64,
}

/// Why a transfer has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransferError {
    /// Too few or too many paths.
    #[error("{0} paths: allowed are 1 to {MAX_SUBFLOWS}")]
    Paths(usize),
    /// A path that the scenario does not have.
    #[error("there is no path `{name}`; allowed: {allowed}")]
    NoPath {
        /// Its name.
        name: String,
        /// Those that there are.
        allowed: String,
    },
    /// More subflows over a path than it has client addresses.
    #[error("path `{name}` has {has} client addresses, {asked} were asked for")]
    TooOften {
        /// Its name.
        name: String,
        /// So many it has.
        has: usize,
        /// How often it was named.
        asked: usize,
    },
    /// Nothing to send.
    #[error("a transfer of 0 bytes measures nothing")]
    Empty,
    /// An unknown controller.
    #[error(transparent)]
    Refused(#[from] SimError),
    /// The caller's wish.
    #[error("interrupted")]
    Interrupted,
    /// No path answers.
    #[error(
        "the transfer over {} was given up after {:.0} s of simulated time, since no path answered any more: {} of {} bytes \
         had arrived", .0.paths, .0.after_s, .0.arrived, .0.bytes
    )]
    GivenUp(Unfinished),
    /// Too many events.
    #[error(
        "the transfer over {} had not ended after {limit} events of the simulator, the limit: {} of {} bytes had arrived",
        .far.paths, .far.arrived, .far.bytes
    )]
    Events {
        /// How far it had come.
        far: Unfinished,
        /// The limit.
        limit: u64,
    },
    /// Too much simulated time.
    #[error(
        "the transfer over {} had not ended after {:.0} s of simulated time, the limit: {} of {} bytes had arrived",
        .0.paths, .0.after_s, .0.arrived, .0.bytes
    )]
    Late(Unfinished),
}

impl Fault for TransferError {
    fn code(&self) -> &'static str {
        match self {
            TransferError::Paths(_)
            | TransferError::NoPath { .. }
            | TransferError::TooOften { .. }
            | TransferError::Empty => "usage",
            TransferError::Refused(error) => error.code(),
            TransferError::Interrupted => "interrupted",
            TransferError::GivenUp(_) => "given-up",
            TransferError::Late(_) => "stalled",
            TransferError::Events { .. } => "event-limit",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            TransferError::Refused(error) => error.hint(),
            TransferError::GivenUp(_) | TransferError::Late(_) => {
                Some("look at the rates and losses of these paths' links".into())
            }
            TransferError::Events { .. } => Some(LIMIT_HINT.into()),
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            TransferError::Paths(_)
            | TransferError::NoPath { .. }
            | TransferError::TooOften { .. }
            | TransferError::Empty => Exit::Usage,
            TransferError::Refused(error) => error.exit(),
            TransferError::Interrupted => Exit::Interrupted,
            TransferError::GivenUp(_) | TransferError::Late(_) | TransferError::Events { .. } => Exit::Runtime,
        }
    }
}
