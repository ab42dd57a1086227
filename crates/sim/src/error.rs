//! What a simulation refuses.

use pathcast_base::{Exit, Fault};

/// What to do about a limit of events.
pub(crate) const LIMIT_HINT: &str =
    "raise the limit (--limit-events), or look whether packets arrive at all over these paths";

/// Why a simulation cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A value of the scenario that only the simulator can judge.
    #[error("{key}: {problem}; allowed: {allowed}")]
    Refused {
        /// The key, as `--set` writes it.
        key: String,
        /// What is wrong with its value.
        problem: String,
        /// What would be right.
        allowed: String,
    },
    /// Nothing to simulate.
    #[error("the scenario has nothing that ends: no flow with `bytes` or `stop`, and no `end`")]
    Endless,
    /// The packets do not add up.
    #[error("a bug in the simulator: {0}")]
    Unbalanced(String),
}

impl SimError {
    /// The key that is refused, as `--set` writes it.
    pub fn key(&self) -> Option<&str> {
        match self {
            SimError::Refused { key, .. } => Some(key),
            _ => None,
        }
    }
}

impl Fault for SimError {
    fn code(&self) -> &'static str {
        match self {
            SimError::Refused { .. } => "scenario",
            SimError::Endless => "endless",
            SimError::Unbalanced(_) => "unbalanced",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            SimError::Endless => Some("give the scenario an `end`, for example --set end=60s".into()),
            SimError::Unbalanced(_) => Some("please report it with the scenario".into()),
            SimError::Refused { .. } => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            SimError::Unbalanced(_) => Exit::Runtime,
            _ => Exit::Usage,
        }
    }
}
