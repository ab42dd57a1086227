//! The bodies of control messages; `wire.rs` has the head. Nothing may follow a body but filling.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::{Budget, Effort};
use pathcast_session::Nonce;
use pathcast_session::codec::{Reader, push_text, whole};

use super::request::{ClockState, MethodName};
use super::wire::BODY;

/// The longest name of a key [byte].
const KEY_ID: usize = 32;

/// Hello and PathHello have bodies of this length, so that the answer is smaller [byte].
pub(super) const PADDED: usize = 120;

/// Client: who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub key_id: String,
    pub nonce: Nonce,
}

impl Hello {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.nonce.to_vec();
        push_text(&mut out, &self.key_id);
        out.resize(PADDED, 0);
        out
    }
    pub fn decode(body: &[u8]) -> Option<Hello> {
        if body.len() != PADDED {
            return None;
        }
        let mut r = Reader::new(body);
        Some(Hello { nonce: r.array()?, key_id: r.text(KEY_ID)? })
    }
}

/// A proof of address: a number of the time in which it is good, and a digest under the far end's own secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub epoch: u32,
    pub digest: Nonce,
}

impl Cookie {
    pub fn encode(&self) -> Vec<u8> {
        [&self.epoch.to_be_bytes()[..], &self.digest].concat()
    }
    fn read(r: &mut Reader<'_>) -> Option<Cookie> {
        Some(Cookie { epoch: r.u32()?, digest: r.array()? })
    }
    pub fn decode(body: &[u8]) -> Option<Cookie> {
        whole(body, Cookie::read)
    }
}

/// What one end tells of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockInfo {
    /// See [`super::keys::SessionKeys::clock_digest`].
    pub host: Option<[u8; 16]>,
    pub synchronised: bool,
    pub max_error: Nanos,
}

impl ClockInfo {
    pub fn new(state: &ClockState, digest: impl Fn(&[u8; 32]) -> [u8; 16]) -> ClockInfo {
        let ClockState { host, synchronised, max_error } = state;
        ClockInfo { host: host.as_ref().map(digest), synchronised: *synchronised, max_error: *max_error }
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.host.is_some().into());
        out.extend(self.host.unwrap_or_default());
        out.push(self.synchronised.into());
        out.extend(self.max_error.0.to_be_bytes());
    }
    fn read(r: &mut Reader<'_>) -> Option<ClockInfo> {
        let (known, host) = (r.flag()?, r.array()?);
        Some(ClockInfo { host: known.then_some(host), synchronised: r.flag()?, max_error: Nanos(r.u64()?) })
    }
}

/// Client: what it wants. Signed with the session's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub hello: Hello,
    pub cookie: Cookie,
    pub paths: u8,
    pub dscp: u8,
    /// Of all paths and directions.
    pub total: Budget,
    pub clock: ClockInfo,
}

impl Open {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.hello.nonce.to_vec();
        push_text(&mut out, &self.hello.key_id);
        out.extend(self.cookie.encode());
        out.extend([self.paths, self.dscp]);
        write_budget(&mut out, &self.total);
        self.clock.write(&mut out);
        out
    }
    pub fn decode(body: &[u8]) -> Option<Open> {
        whole(body, |r| {
            let hello = Hello { nonce: r.array()?, key_id: r.text(KEY_ID)? };
            let (cookie, paths, dscp) = (Cookie::read(r)?, r.u8()?, r.u8()?);
            let (total, clock) = (read_budget(r)?, ClockInfo::read(r)?);
            (paths > 0 && dscp < 64).then_some(Open { hello, cookie, paths, dscp, total, clock })
        })
    }
}

fn write_budget(out: &mut Vec<u8>, budget: &Budget) {
    out.extend(budget.bytes.0.to_be_bytes());
    out.extend(budget.time.0.to_be_bytes());
}

fn read_budget(r: &mut Reader<'_>) -> Option<Budget> {
    Some(Budget { bytes: Bytes(r.u64()?), time: Nanos(r.u64()?) })
}

/// Far end: what it grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub total: Budget,
    pub rate: Rate,
    pub clock: ClockInfo,
}

impl Opened {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_budget(&mut out, &self.total);
        out.extend(self.rate.0.to_be_bytes());
        self.clock.write(&mut out);
        out
    }
    pub fn decode(body: &[u8]) -> Option<Opened> {
        whole(body, |r| Some(Opened { total: read_budget(r)?, rate: Rate(r.u64()?), clock: ClockInfo::read(r)? }))
    }
}

/// Far end: the client has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// How many wait before it.
    pub ahead: u32,
    /// How many measure now.
    pub measuring: u32,
}

impl Queued {
    pub fn encode(&self) -> Vec<u8> {
        [self.ahead.to_be_bytes(), self.measuring.to_be_bytes()].concat()
    }
    pub fn decode(body: &[u8]) -> Option<Queued> {
        whole(body, |r| Some(Queued { ahead: r.u32()?, measuring: r.u32()? }))
    }
}

/// Why a far end does not measure, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Denial {
    /// Too many sessions in all.
    Sessions = 1,
    /// With this key.
    KeySessions = 2,
    /// From this source.
    SourceSessions = 3,
    /// More paths than are allowed.
    Paths = 4,
    /// The session's bytes are used up.
    Bytes = 5,
    /// Its time is.
    Time = 6,
    /// It measured nothing, and others wait.
    Pause = 7,
}

impl Denial {
    pub(super) const ALL: [Denial; 7] = [
        Denial::Sessions,
        Denial::KeySessions,
        Denial::SourceSessions,
        Denial::Paths,
        Denial::Bytes,
        Denial::Time,
        Denial::Pause,
    ];

    /// As results call it.
    pub fn code(self) -> &'static str {
        match self {
            Denial::Sessions => "sessions",
            Denial::KeySessions => "sessions-per-key",
            Denial::SourceSessions => "sessions-per-source",
            Denial::Paths => "paths",
            Denial::Bytes => "bytes",
            Denial::Time => "time",
            Denial::Pause => "pause",
        }
    }

    /// With the limit that it ran into.
    pub fn message(self, limit: u64) -> String {
        match self {
            Denial::Sessions | Denial::KeySessions | Denial::SourceSessions if limit == 0 => {
                format!("the far end serves nobody: its limit {}=0", self.code())
            }
            // the client's session over TCP has it
            Denial::Sessions | Denial::KeySessions | Denial::SourceSessions if limit == 1 => {
                format!("the far end lets nobody measure: that takes 2 sessions, and its limit is {}=1", self.code())
            }
            Denial::Paths if limit == 0 => "the far end allows no measurement: its limit paths=0".into(),
            Denial::Time if limit == 0 => "the far end allows no measurement: its limit time=0s".into(),
            Denial::Sessions => format!("the far end has its {limit} sessions: try again later"),
            Denial::KeySessions => format!("the far end has its {limit} sessions with this key: try again later"),
            Denial::SourceSessions => {
                format!("the far end has its {limit} sessions from this address: try again later")
            }
            Denial::Paths => format!("the far end allows {limit} paths in a session: take fewer"),
            Denial::Bytes => format!("the far end allows {} for a session: ask for a smaller budget", Bytes(limit)),
            Denial::Time => format!("the far end allows {} for a session: ask for a shorter time", Nanos(limit)),
            Denial::Pause => {
                let paused = Nanos(limit);
                format!("no probe went over the paths for {paused}, and the far end lets others measure: try again")
            }
        }
    }
}

/// Far end: no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub denial: Denial,
    pub limit: u64,
}

impl Denied {
    pub fn encode(&self) -> Vec<u8> {
        [&[self.denial as u8][..], &self.limit.to_be_bytes()].concat()
    }
    pub fn decode(body: &[u8]) -> Option<Denied> {
        whole(body, |r| {
            let code = r.u8()?;
            let denial = Denial::ALL.into_iter().find(|&denial| denial as u8 == code)?;
            Some(Denied { denial, limit: r.u64()? })
        })
    }
}

/// Far end: an answer to Time, which carries the same id and filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub id: u32,
    /// When the question came, and when the answer leaves, by the far end's clock [ns].
    pub came: Nanos,
    pub leaves: Nanos,
}

impl Stamp {
    pub fn encode(&self) -> Vec<u8> {
        [&self.id.to_be_bytes()[..], &self.came.0.to_be_bytes(), &self.leaves.0.to_be_bytes()].concat()
    }
    pub fn decode(body: &[u8]) -> Option<Stamp> {
        whole(body, |r| Some(Stamp { id: r.u32()?, came: r.time()?, leaves: r.time()? }))
    }
}

/// Client: measure towards me.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub method: MethodName,
    pub budget: Budget,
    pub sparing: bool,
    pub effort: Effort,
    pub seed: u64,
    /// How long an answer to a large packet takes at most, as far as the client knows [ns].
    pub wait: Nanos,
}

impl Begin {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.method.code()];
        write_budget(&mut out, &self.budget);
        out.push(self.sparing.into());
        let (effort, queue) = match self.effort {
            Effort::Light => (1, Nanos::ZERO),
            Effort::Usual => (2, Nanos::ZERO),
            Effort::Thorough { queue } => (3, queue),
        };
        out.push(effort);
        out.extend(queue.0.to_be_bytes());
        out.extend(self.seed.to_be_bytes());
        out.extend(self.wait.0.to_be_bytes());
        out
    }
    pub fn decode(body: &[u8]) -> Option<Begin> {
        whole(body, |r| {
            let method = MethodName::of(r.u8()?)?;
            let budget = read_budget(r)?;
            let sparing = match r.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let effort = match (r.u8()?, Nanos(r.u64()?)) {
                (1, Nanos::ZERO) => Effort::Light,
                (2, Nanos::ZERO) => Effort::Usual,
                (3, queue) => Effort::Thorough { queue },
                _ => return None,
            };
            Some(Begin { method, budget, sparing, effort, seed: r.u64()?, wait: Nanos(r.u64()?) })
        })
    }
}

/// Trains that one Ask can name.
pub(super) const ASKED: usize = 32;

/// Which trains an Ask names.
pub(super) fn encode_ask(trains: &[u32]) -> Vec<u8> {
    const { assert!(ASKED * 4 <= BODY) };
    trains.iter().flat_map(|train| train.to_be_bytes()).collect()
}

pub(super) fn decode_ask(body: &[u8]) -> Option<Vec<u32>> {
    let whole = body.len().is_multiple_of(4) && body.len() <= 4 * ASKED;
    whole.then(|| body.chunks_exact(4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello { key_id: "somebody".into(), nonce: [7; 32] }
    }

    #[test]
    fn bodies_come_back() {
        let cookie = Cookie { epoch: 5, digest: [9; 32] };
        let total = Budget { bytes: Bytes(6), time: Nanos(7) };
        let clock = ClockInfo { host: Some([1; 16]), synchronised: true, max_error: Nanos(8) };
        let open = Open { hello: hello(), cookie, paths: 2, dscp: 46, total, clock };
        let opened = Opened { total, rate: Rate(3), clock: ClockInfo { host: None, ..clock } };
        let queued = Queued { ahead: 3, measuring: 1 };
        let stamp = Stamp { id: 9, came: Nanos(10), leaves: Nanos(11) };
        let effort = Effort::Thorough { queue: Nanos(14) };
        let begin =
            Begin { method: MethodName::Slops, budget: total, sparing: true, effort, seed: 12, wait: Nanos(13) };
        for effort in [Effort::Light, Effort::Usual] {
            let begin = Begin { effort, ..begin };
            assert_eq!(Begin::decode(&begin.encode()), Some(begin));
        }
        assert_eq!(Hello::decode(&hello().encode()), Some(hello()));
        assert_eq!(Cookie::decode(&cookie.encode()), Some(cookie));
        assert_eq!(Open::decode(&open.encode()), Some(open));
        assert_eq!(Opened::decode(&opened.encode()), Some(opened));
        assert_eq!(Queued::decode(&queued.encode()), Some(queued));
        assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp));
        assert_eq!(Begin::decode(&begin.encode()), Some(begin));
        for limit in [0, 1] {
            let message = Denial::KeySessions.message(limit);
            assert!(message.contains(&format!("sessions-per-key={limit}")) && !message.contains("later"), "{message}");
        }
        assert_eq!(Denial::Time.message(0), "the far end allows no measurement: its limit time=0s");
        for denial in Denial::ALL {
            let denied = Denied { denial, limit: 4 };
            assert_eq!(Denied::decode(&denied.encode()), Some(denied));
            assert!(denial.message(4).contains("far end") && !denial.code().is_empty());
        }
        assert_eq!(decode_ask(&encode_ask(&[1, 70_000])), Some(vec![1, 70_000]));
    }

    #[test]
    fn the_answer_to_a_hello_is_smaller() {
        assert!(Cookie { epoch: 0, digest: [0; 32] }.encode().len() < PADDED);
        let longest = Hello { key_id: "k".repeat(KEY_ID), nonce: [0; 32] };
        assert_eq!(Hello::decode(&longest.encode()), Some(longest));
    }

    proptest! {
        #[test]
        fn random_bodies_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Hello::decode(&body), Cookie::decode(&body), Open::decode(&body), Opened::decode(&body));
            let _ = (Queued::decode(&body), Denied::decode(&body), Stamp::decode(&body), Begin::decode(&body));
            let _ = decode_ask(&body);
        }
    }
}
