//! Why a session of machines has no result.

use pathcast_base::{Exit, Fault, Nanos};

use crate::error::LIMIT_HINT;

/// Why a session of machines has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// A session needs a path, and one that there is.
    #[error("path {path}: the scenario has paths 0 to {last}")]
    NoPath {
        /// The wrong one.
        path: usize,
        /// The last one that there is.
        last: usize,
    },
    /// A session without a path.
    #[error("a session needs at least one path")]
    NoPaths,
    /// Too much simulated time.
    #[error("the measurement had not ended after {limit} of simulated time, the limit{}", after(.phase))]
    Time {
        /// The limit.
        limit: Nanos,
        /// The phase that it was in, if it told.
        phase: Option<&'static str>,
    },
    /// Too many events.
    #[error("the measurement had not ended after {limit} events of the simulator, the limit{}", after(.phase))]
    Events {
        /// The limit.
        limit: u64,
        /// The phase that it was in, if it told.
        phase: Option<&'static str>,
    },
    /// Nothing more will happen in this world.
    #[error("a bug in a prober: it waits, but no packet is on its way and no timer is set{}", after(.phase))]
    Idle {
        /// The phase that it was in, if it told.
        phase: Option<&'static str>,
    },
    /// A machine always wants one thing more, at the same instant.
    #[error("a bug in a prober: the {host}'s machine wants more than {limit} things done at one instant")]
    Runaway {
        /// `client` or `server`.
        host: &'static str,
        /// The limit.
        limit: u32,
    },
    /// An action that breaks the contract.
    #[error("a bug in a prober: the {host}'s machine {problem}")]
    Misuse {
        /// `client` or `server`.
        host: &'static str,
        /// What it did.
        problem: String,
    },
    /// The caller's wish, and the machine had no result to give.
    #[error("the measurement was stopped")]
    Interrupted,
}

fn after(phase: &Option<&'static str>) -> String {
    phase.map_or_else(String::new, |phase| format!("; it was in the phase `{phase}`"))
}

impl Fault for MachineError {
    fn code(&self) -> &'static str {
        match self {
            MachineError::NoPath { .. } | MachineError::NoPaths => "path",
            MachineError::Time { .. } => "time-limit",
            MachineError::Events { .. } => "event-limit",
            MachineError::Idle { .. } => "prober-idle",
            MachineError::Runaway { .. } => "prober-runaway",
            MachineError::Misuse { .. } => "prober-misuse",
            MachineError::Interrupted => "interrupted",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            MachineError::Events { .. } => Some(LIMIT_HINT.into()),
            MachineError::Time { .. } => {
                Some("raise the limit, or look whether packets arrive at all over these paths".into())
            }
            MachineError::Idle { .. } | MachineError::Runaway { .. } | MachineError::Misuse { .. } => {
                Some("please report it with the scenario".into())
            }
            MachineError::NoPath { .. } | MachineError::NoPaths | MachineError::Interrupted => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            MachineError::NoPath { .. } | MachineError::NoPaths => Exit::Usage,
            MachineError::Interrupted => Exit::Interrupted,
            _ => Exit::Runtime,
        }
    }
}
