//! What a far end grants those who measure, and what it counts.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::Budget;
use pathcast_session::Quota;
use serde::Serialize;

/// What a far end grants. Everything that costs memory has a bound, and every session an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureLimits {
    /// Sessions at once, those that wait included.
    pub sessions: Quota,
    /// How many measure at once; the others wait for their turn.
    pub measuring: usize,
    /// Paths of a session.
    pub paths: u8,
    /// Mean rate of all that is sent to a session, and of the probes that it may send, over more than 50 ms [bit/s].
    pub rate: Rate,
    /// How long a session may measure [ns].
    pub time: Nanos,
    /// Probes of a session, and questions of the time with their answers beyond 64 kB, both ways [IP bytes].
    pub bytes: Bytes,
    /// What is kept of packets, of all sessions together [byte].
    pub memory: Bytes,
    /// A session from which nothing was heard for so long is over [ns].
    pub idle: Nanos,
    /// Whose turn it is and of whom no probe came or went for so long is over, if others wait [ns].
    pub pause: Nanos,
}

impl MeasureLimits {
    /// With less for a direction of a path no train can be sent that tells anything [IP byte].
    pub const LEAST_BYTES: u64 = 10_000;

    /// What a direction of a path has of what a session was granted, with room for what the far end counts otherwise.
    pub(super) fn share(granted: Budget, parts: u64) -> Budget {
        let of = |all: u64| all / parts.max(1) / 5 * 4;
        Budget { bytes: Bytes(of(granted.bytes.0)), time: Nanos(of(granted.time.0)) }
    }
}

impl Default for MeasureLimits {
    fn default() -> Self {
        MeasureLimits {
            sessions: Quota::SESSIONS,
            measuring: 1,
            paths: 16,
            rate: Rate(10_000_000_000),
            time: Nanos::secs(300),
            bytes: Bytes(1_000_000_000),
            memory: Bytes(16_000_000),
            idle: Nanos::secs(5),
            pause: Nanos::secs(20),
        }
    }
}

/// What a far end has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MeasureCounters {
    /// Datagrams that are none of this protocol and version, or nonsense within it.
    pub malformed: u64,
    /// Datagrams not signed with a key of ours: forged, changed, or of a session that is over.
    pub bad_tag: u64,
    /// Datagrams of a session that had been heard before, or came from an address that is not its path's.
    pub replayed: u64,
    /// Cookies given out.
    pub cookies: u64,
    /// Sessions that began to measure.
    pub opened: u64,
    /// Sessions that had to wait first.
    pub queued: u64,
    /// Denied by a limit.
    pub denied: u64,
    /// Messages of sessions that were not sent: beyond the granted rate, or beyond what came of that session.
    pub withheld: u64,
    /// Sessions whose client fell silent.
    pub timed_out: u64,
    /// Sessions that said goodbye.
    pub ended: u64,
    /// IP bytes heard in sessions.
    pub received_bytes: u64,
    /// IP bytes of probes sent.
    pub probe_bytes: u64,
}
