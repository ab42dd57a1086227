//! What one direction of a link has done: a row of a network's ledger, simulated or emulated.

use serde::Serialize;

use crate::counters::{Counters, Tally};
use crate::params::Params;

/// One direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkLedger {
    /// `wan1/ab`.
    pub name: String,
    /// As they are now.
    pub params: Params,
    /// Since the start.
    pub counters: Counters,
    /// What waits now.
    pub backlog: Tally,
}
