//! What all connections of one far end share: keys, sessions, limits, counters.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use pathcast_base::Nanos;

use super::address::source;
use super::admission::{Admission, Place};
use super::connection::{Connection, Entropy};
use super::keys::{KeyRing, SessionKeys};
use super::limits::{Counters, Limits};
use super::message::{Denial, SessionId};
use super::window::ReplayWindow;

/// What a far end tells those who hold a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Where it can be reached, the best address first; at most 64 are told.
    pub addresses: Vec<IpAddr>,
    /// Does it listen with MPTCP?
    pub mptcp: bool,
}

/// Something worth a line in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A client has proved that it holds a key.
    SessionOpened {
        /// Which key.
        key_id: String,
        /// From where.
        source: IpAddr,
    },
    /// A session has ended.
    SessionClosed {
        /// Which key.
        key_id: String,
    },
    /// A transfer was admitted.
    TransferStarted {
        /// Its number in the session.
        transfer: u64,
        /// Its announced payload [byte].
        bytes: u64,
        /// The sender's congestion controller as the sender calls it; may be empty.
        control: String,
        /// Which key.
        key_id: String,
    },
    /// All bytes of a transfer have arrived.
    TransferDone {
        /// Its number in the session.
        transfer: u64,
        /// Payload [byte].
        bytes: u64,
        /// First byte to last [ns].
        duration_ns: u64,
        /// Which key.
        key_id: String,
        /// From where.
        source: IpAddr,
    },
    /// A transfer ended early.
    TransferBroken {
        /// Its number in the session.
        transfer: u64,
        /// Payload that came [byte].
        received: u64,
        /// Payload that was announced [byte].
        bytes: u64,
        /// Which key.
        key_id: String,
        /// From where.
        source: IpAddr,
    },
    /// A connection was refused.
    Refused {
        /// From where.
        source: IpAddr,
        /// For the server's own log; the client is not told.
        why: &'static str,
    },
    /// A limit denied something to a client that holds a key.
    Denied {
        /// Which limit.
        denial: Denial,
        /// From where.
        source: IpAddr,
    },
    /// A deadline passed.
    TimedOut {
        /// From where.
        source: IpAddr,
    },
}

/// A line for people: who, from where, how much.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::SessionOpened { key_id, source } => write!(f, "session of `{key_id}` from {source} opened"),
            Note::SessionClosed { key_id } => write!(f, "session of `{key_id}` closed"),
            Note::TransferStarted { transfer, bytes, control, key_id } => {
                let control = if control.is_empty() { "its system's controller" } else { control };
                write!(f, "transfer {transfer} of `{key_id}` begun: {bytes} B under {control}")
            }
            Note::TransferDone { transfer, bytes, duration_ns, key_id, source } => {
                let seconds = *duration_ns as f64 / 1e9;
                write!(f, "transfer {transfer} of `{key_id}` from {source} done: {bytes} B in {seconds:.3} s")
            }
            Note::TransferBroken { transfer, received, bytes, key_id, source } => {
                write!(f, "transfer {transfer} of `{key_id}` from {source} broken: {received} of {bytes} B")
            }
            Note::Refused { source, why } => write!(f, "{source} refused: {why}"),
            Note::Denied { denial, source } => write!(f, "{source} denied: {denial:?}"),
            Note::TimedOut { source } => write!(f, "{source} timed out"),
        }
    }
}

pub(super) struct Session {
    pub keys: SessionKeys,
    pub key_id: String,
    pub window: ReplayWindow,
    pub active: u16,
    pub last_active: Nanos,
    /// Given back with the session.
    pub _place: Place,
}

/// The shared half of a far end; [`Connection`] is the half of one connection.
pub struct Service {
    pub(super) keys: KeyRing,
    pub(super) limits: Limits,
    pub(super) announcement: Announcement,
    pub(super) sessions: HashMap<SessionId, Session>,
    pub(super) counters: Counters,
    pub(super) notes: Vec<Note>,
    /// Places of sessions and of transfers.
    pub(super) admission: Admission,
    pub(super) transfers: Admission,
    /// Connections that can make room, by number, and their sources: those that have proved nothing yet, and those that
    /// wait for their last words to be read.
    expendable: BTreeMap<u64, IpAddr>,
    next_connection: u64,
}

impl Service {
    /// A far end that honours `keys`.
    pub fn new(keys: KeyRing, limits: Limits, announcement: Announcement) -> Service {
        Service {
            keys,
            limits,
            announcement,
            sessions: HashMap::new(),
            counters: Counters::default(),
            notes: Vec::new(),
            admission: Admission::new(limits.sessions),
            transfers: Admission::new(limits.transfers),
            expendable: BTreeMap::new(),
            next_connection: 1,
        }
    }

    /// Counts its sessions together with those of others that have a clone of `admission`, in place of
    /// [`Limits::sessions`].
    pub fn admitting(self, admission: Admission) -> Service {
        Service { admission, ..self }
    }

    /// Tells those who come from now on that it can be reached at these addresses, the best first.
    pub fn announce(&mut self, addresses: Vec<IpAddr>) {
        self.announcement.addresses = addresses;
    }

    /// A connection has come in from `from`. With it come the numbers of connections that must be closed to make room:
    /// of those that have proved nothing yet or have nothing more to say the oldest of the source that has most of them, so
    /// that one noisy source displaces only itself.
    pub fn accept(&mut self, now: Nanos, from: IpAddr, entropy: Entropy) -> (Connection, Vec<u64>) {
        let mut evicted = Vec::new();
        while let Some(id) = self.busiest().filter(|_| self.expendable.len() >= self.limits.max_expendable) {
            self.expendable.remove(&id);
            self.counters.evicted += 1;
            evicted.push(id);
        }
        let id = self.next_connection;
        self.next_connection += 1;
        self.expendable.insert(id, from);
        self.counters.connections += 1;
        (Connection::new(id, from, now, entropy), evicted)
    }

    fn busiest(&self) -> Option<u64> {
        let mut by_source: HashMap<IpAddr, (usize, u64)> = HashMap::new();
        for (&id, &from) in &self.expendable {
            by_source.entry(source(from)).or_insert((0, id)).0 += 1;
        }
        by_source.values().max_by_key(|&&(count, oldest)| (count, u64::MAX - oldest)).map(|&(_, oldest)| oldest)
    }

    #[cfg(test)]
    pub(super) fn expendable(&self) -> usize {
        self.expendable.len()
    }

    /// `id` has proved itself or is gone; false when it had been evicted before.
    pub(super) fn settle(&mut self, id: u64) -> bool {
        self.expendable.remove(&id).is_some()
    }

    /// `id` has said its last words.
    pub(super) fn linger(&mut self, id: u64, from: IpAddr) {
        self.expendable.insert(id, from);
    }

    /// What has been done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Sessions that are open.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// What has happened since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}
