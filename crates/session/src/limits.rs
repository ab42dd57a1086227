//! What a far end grants, and what it counts.

use pathcast_base::Nanos;
use serde::Serialize;

use super::admission::Quota;

/// What a far end grants. Every wait has an end, and everything that costs memory has a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: Quota,
    /// Transfers at once, of all sessions.
    pub transfers: Quota,
    /// Connections at once that have not proved anything yet, or whose last words are said; beyond it the oldest of the
    /// busiest source goes.
    pub max_expendable: usize,
    /// Payload of one transfer [byte].
    pub max_transfer_bytes: u64,
    /// Of them in one session.
    pub max_transfers: u16,
    /// From accept() to the proof.
    pub handshake: Nanos,
    /// How long a transfer may stand still.
    pub idle: Nanos,
    /// How long a session without transfers and messages lives.
    pub session_idle: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: Quota::SESSIONS,
            transfers: Quota::TRANSFERS,
            max_expendable: 64,
            max_transfer_bytes: 1_000_000_000_000,
            max_transfers: 16,
            handshake: Nanos::secs(10),
            idle: Nanos::secs(30),
            session_idle: Nanos::secs(600),
        }
    }
}

/// What a far end has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections accepted.
    pub connections: u64,
    /// Sessions opened.
    pub sessions: u64,
    /// Transfers whose last byte arrived.
    pub transfers: u64,
    /// Payload received, that of broken transfers included.
    pub payload_bytes: u64,
    /// Transfers that ended early.
    pub broken: u64,
    /// Refused: wrong key, unknown key id, unknown session or altered message.
    pub refused_key: u64,
    /// Refused: not this protocol, or nonsense within it.
    pub refused_garbage: u64,
    /// Refused: another version.
    pub refused_version: u64,
    /// Refused: a transfer number that was used before.
    pub refused_replay: u64,
    /// Denied by a limit.
    pub refused_limit: u64,
    /// Closed because a deadline passed.
    pub timed_out: u64,
    /// Closed to make room for newer connections.
    pub evicted: u64,
}
