//! The far end of all measurements: it answers who holds a key, and reports, sends and estimates for them.
//!
//! What is not signed with a key gets no answer. Until an address has proved itself by a cookie nothing is kept of it, and
//! what it gets is smaller than what it sent.

mod handshake;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use pathcast_base::Nanos;
use pathcast_estimate::Budget;
use pathcast_session::{Admission, Entropy, KeyRing, Place};

use super::bucket::Grant;
use super::client_path::HEADERS;
use super::cookie::CookieSigner;
use super::echo::{Echo, Echoed};
use super::far::{Address, FarAction, FarEvent};
use super::far_path::{FarPath, FarPathAction};
use super::keys::SessionKeys;
use super::limits::{MeasureCounters, MeasureLimits};
use super::messages::{Begin, ClockInfo, Denial, Denied, Opened, Queued, Stamp, decode_ask};
use super::note::{Ended, Happened, MeasureNote};
use super::queue::Queue;
use super::request::ClockState;
use super::room::{Room, Share};
use super::source::Left;
use super::wire::{BESIDE, Datagram, FRAME, Kind, ProbeHead, Rejected};
use crate::machine::{Batch, Reply};

/// Numbers of packets that are not probes have this bit.
pub(super) const CONTROL: u64 = 1 << 63;
/// A session is told no more than it sent and this, besides the probes that it was granted [IP bytes].
const TOLD: u64 = 64_000;
/// Questions of the time with their answers that are no probes [IP bytes].
const CLOCKS: u64 = 64_000;

/// Someone who has proved a key and an address.
struct Session<A> {
    key_id: String,
    keys: SessionKeys,
    paths: BTreeMap<u8, FarPath<A>>,
    /// The path that it was opened on, and how many it may have.
    primary: u8,
    allowed: u8,
    dscp: u8,
    granted: Budget,
    came: Nanos,
    measures: Option<Nanos>,
    heard: Nanos,
    /// Until when probes came or went, or since when it measures.
    probed: Nanos,
    /// Probes, both ways; questions of the time with their answers [IP bytes].
    bytes: u64,
    asked: u64,
    allowance: Allowance,
    share: Share,
    /// Given back with the session.
    _place: Place,
}

/// What may still be sent to a session.
struct Allowance {
    /// Probes and all else.
    rate: Grant,
    /// All that came, and what was told besides probes [IP bytes].
    came: u64,
    told: u64,
}

impl Allowance {
    /// Whether a message with this body may go out, and be filled up to `size` IP bytes.
    fn tell(&mut self, now: Nanos, body: &[u8], size: u16) -> bool {
        let bytes = (body.len() + FRAME + HEADERS).max(size.into()) as u64;
        let may = self.told + bytes <= self.came + TOLD && self.rate.take(now, bytes);
        self.told += if may { bytes } else { 0 };
        may
    }
}

/// What has come in, besides its payload.
struct Arrived<A> {
    from: A,
    size: u16,
    /// Code point and congestion mark.
    class: u8,
    at: Nanos,
    batch: Batch,
}

/// Hears what is worth a line in a log.
type Hear = Box<dyn Fn(&MeasureNote) + Send>;

/// See the [module](self).
pub struct FarEnd<A> {
    keys: KeyRing,
    limits: MeasureLimits,
    clock: ClockState,
    cookies: CookieSigner,
    sessions: BTreeMap<u64, Session<A>>,
    admission: Admission,
    room: Room,
    queue: Queue,
    counters: MeasureCounters,
    actions: VecDeque<FarAction<A>>,
    on_note: Option<Hear>,
    /// What the driver was told last.
    wake: Nanos,
    /// The session that is being attended to.
    serving: Option<u64>,
}

impl<A: Address> FarEnd<A> {
    /// A far end for those who hold one of `keys`. `entropy` comes from the system's generator and is used once.
    pub fn new(keys: KeyRing, limits: MeasureLimits, clock: ClockState, entropy: Entropy) -> Self {
        FarEnd {
            keys,
            limits,
            clock,
            cookies: CookieSigner::new(&entropy),
            sessions: BTreeMap::new(),
            admission: Admission::new(limits.sessions),
            room: Room::new(limits.memory.0, limits.sessions.in_all),
            queue: Queue::default(),
            counters: MeasureCounters::default(),
            actions: VecDeque::new(),
            on_note: None,
            wake: Nanos::MAX,
            serving: None,
        }
    }

    /// Counts its sessions together with those of others that have a clone of `admission`, in place of
    /// [`MeasureLimits::sessions`].
    pub fn admitting(self, admission: Admission) -> Self {
        FarEnd { admission, ..self }
    }

    /// Tells what happens to sessions; `hear` is called with the far end locked, and must not block.
    pub fn telling(self, hear: impl Fn(&MeasureNote) + Send + 'static) -> Self {
        FarEnd { on_note: Some(Box::new(hear)), ..self }
    }

    /// What is known of its clock from now on; sessions that begin later are told.
    pub fn set_clock(&mut self, clock: ClockState) {
        self.clock = clock;
    }

    fn note(&self, key_id: &str, source: IpAddr, what: Happened) {
        if let Some(hear) = &self.on_note {
            hear(&MeasureNote { key_id: key_id.into(), source, what });
        }
    }

    /// The same of a session.
    fn note_of(&self, session: &Session<A>, what: Happened) {
        if let Some(path) = session.paths.get(&session.primary) {
            self.note(&session.key_id, path.address.source(), what);
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> MeasureCounters {
        self.counters
    }

    /// Sessions, those that wait included.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// What is kept of packets [byte].
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.sessions.values().map(|session| session.share.own()).sum()
    }

    /// Something has happened. `now` is not earlier than at any call before.
    pub fn handle(&mut self, now: Nanos, event: FarEvent<'_, A>) {
        self.serving = None;
        match event {
            FarEvent::Received { from, packet, size, dscp, ecn, at, batch } => {
                let Ok(datagram) = Datagram::parse(packet) else {
                    self.counters.malformed += 1;
                    return;
                };
                let came = Arrived { from, size, class: dscp << 2 | ecn, at, batch };
                match datagram.kind {
                    Kind::Hello => self.hello(now, &datagram, came),
                    Kind::Open => self.open(now, &datagram, came),
                    Kind::PathHello | Kind::PathJoin => self.path(now, &datagram, came),
                    _ => self.message(now, &datagram, came),
                }
            }
            FarEvent::Sent { session, path, seq, at, handed } => {
                self.left(now, session, path, seq, Some(Left { at, handed }));
            }
            FarEvent::Unsent { session, path, seq } => self.left(now, session, path, seq, None),
            FarEvent::Missed { packets } => {
                let sessions = self.sessions.values_mut();
                sessions.flat_map(|session| session.paths.values_mut()).for_each(|path| path.missed(packets));
            }
            FarEvent::Timer => {
                let until = std::mem::replace(&mut self.wake, Nanos::MAX).min(now);
                self.timer(now, until);
            }
        }
    }

    /// The last call has panicked: ends the session that it was about, of which nothing can be relied on.
    pub fn recover(&mut self, now: Nanos) {
        let Some(id) = self.serving.take() else { return };
        let broken = self.sessions.remove(&id);
        self.actions.push_back(FarAction::Stop { session: id });
        self.queue.leave(now, id);
        self.promote(now);
        if let Some(session) = broken {
            let took = session.measures.map(|since| now.saturating_sub(since));
            let bytes = session.bytes + session.asked;
            self.note_of(&session, Happened::Ended { bytes, took, why: Some(Ended::Bug) });
        }
    }

    /// What is to be done next; none: nothing until the next event.
    pub fn next(&mut self, _now: Nanos) -> Option<FarAction<A>> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let wake = self.sessions.values().map(|session| self.due(session)).min().unwrap_or(Nanos::MAX);
        (wake != self.wake).then(|| {
            self.wake = wake;
            FarAction::WakeAt(wake)
        })
    }

    /// When a session needs attention.
    fn due(&self, session: &Session<A>) -> Nanos {
        let paths = session.paths.values().map(FarPath::wake).min().unwrap_or(Nanos::MAX);
        let end = session.measures.map_or(Nanos::MAX, |since| since + session.granted.time);
        paths.min(end).min(session.heard + self.limits.idle).min(self.paused(session))
    }

    /// When a session gives its turn up to those who wait, having measured nothing.
    fn paused(&self, session: &Session<A>) -> Nanos {
        match session.measures.is_some() && self.queue.is_waiting() {
            true => session.probed + self.limits.pause,
            false => Nanos::MAX,
        }
    }

    /// All that came before `until` is told.
    fn timer(&mut self, now: Nanos, until: Nanos) {
        let all: Vec<u64> = self.sessions.keys().copied().collect();
        for id in all {
            self.serving = Some(id);
            let paused = self.sessions.get(&id).is_some_and(|session| self.paused(session) <= now);
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            if session.heard + self.limits.idle <= now {
                self.counters.timed_out += 1;
                self.end(now, id, Some(Ended::Silent));
            } else if paused {
                self.refuse(now, id, Denied { denial: Denial::Pause, limit: self.limits.pause.0 });
            } else if session.measures.is_some_and(|since| since + session.granted.time <= now) {
                let limit = session.granted.time.0;
                self.refuse(now, id, Denied { denial: Denial::Time, limit });
            } else {
                session.paths.values_mut().for_each(|path| path.timer(now, until));
                self.pump(now, id);
            }
        }
    }

    fn left(&mut self, now: Nanos, session: u64, path: usize, seq: u64, left: Option<Left>) {
        let Some(of) = self.sessions.get_mut(&session) else { return };
        self.serving = Some(session);
        let path = u8::try_from(path).ok().and_then(|path| of.paths.get_mut(&path));
        if let Some(path) = path.filter(|_| seq & CONTROL == 0) {
            path.left(now, seq, left);
            self.pump(now, session);
        }
    }

    /// Lets those measure for whom there is room.
    fn promote(&mut self, now: Nanos) {
        while let Some(id) = self.queue.promote(self.limits.measuring) {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            (session.measures, session.probed) = (Some(now), now);
            self.counters.opened += 1;
            let (primary, waited) = (session.primary, now.saturating_sub(session.came));
            self.answer(now, id, primary);
            if let Some(session) = self.sessions.get(&id) {
                self.note_of(session, Happened::Begun { waited });
            }
        }
    }

    /// Tells a client how it is with its session.
    fn answer(&mut self, now: Nanos, id: u64, path: u8) {
        let Some(session) = self.sessions.get(&id) else { return };
        let (kind, body) = if session.measures.is_some() {
            let clock = ClockInfo::new(&self.clock, |host| session.keys.clock_digest(host));
            (Kind::Opened, Opened { total: session.granted, rate: self.limits.rate, clock }.encode())
        } else {
            let ahead = self.queue.order().into_iter().take_while(|&waits| waits != id).count() as u32;
            let measuring = self.queue.measuring() as u32;
            (Kind::Queued, Queued { ahead, measuring }.encode())
        };
        self.say(now, id, path, kind, 0, 0, &body);
    }

    /// Sends a control message of a session.
    #[allow(clippy::too_many_arguments)] // they are the fields of the head, in its order
    fn say(&mut self, now: Nanos, id: u64, path: u8, kind: Kind, part: u8, size: u16, body: &[u8]) {
        let Some(dscp) = self.sessions.get(&id).map(|session| session.dscp) else { return };
        self.say_marked(now, id, path, kind, part, size, dscp << 2, body);
    }

    /// The same of a traffic class of its own.
    #[allow(clippy::too_many_arguments)] // as above
    fn say_marked(&mut self, now: Nanos, id: u64, path: u8, kind: Kind, part: u8, size: u16, class: u8, body: &[u8]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(of) = session.paths.get_mut(&path) else { return };
        if !session.allowance.tell(now, body, size) {
            self.counters.withheld += 1;
            return;
        }
        let (number, payload) = of.channel.seal(kind, part, body);
        let (dscp, ecn) = (class >> 2, class & 3);
        let reply = Reply { path: path.into(), seq: CONTROL | number, size, dscp, ecn, payload };
        self.actions.push_back(FarAction::Reply { session: id, to: of.address.clone(), reply });
    }

    /// What is said within a session.
    fn message(&mut self, now: Nanos, datagram: &Datagram, came: Arrived<A>) {
        let id = datagram.session;
        let Some(session) = self.sessions.get_mut(&id) else {
            self.counters.bad_tag += 1;
            return;
        };
        let Some(path) = session.paths.get_mut(&datagram.path) else {
            self.counters.bad_tag += 1;
            return;
        };
        // a copy from elsewhere must not use up the number of what it copies
        let beside = match datagram.kind {
            Kind::Beside => true,
            Kind::Probe => ProbeHead::of(datagram).is_some_and(|head| head.train & BESIDE != 0),
            _ => false,
        };
        // another port of the same host
        let of_host = path.address == came.from || beside && path.address.source() == came.from.source();
        let heard = match of_host {
            true => path.channel.accept(datagram),
            false if datagram.is_signed(&path.channel.receive) => Err(Rejected::Replayed),
            false => Err(Rejected::Tag),
        };
        match heard {
            Ok(()) => {}
            Err(Rejected::Replayed) => {
                self.counters.replayed += 1;
                return;
            }
            Err(Rejected::Tag) => {
                self.counters.bad_tag += 1;
                return;
            }
        }
        self.counters.received_bytes += u64::from(came.size);
        // a probe has no number of its channel: whether it is new is known below
        if datagram.kind != Kind::Probe {
            session.allowance.came += u64::from(came.size);
        }
        self.serving = Some(id);
        let (part, body, measures) = (datagram.part, datagram.body, session.measures.is_some());
        let granted = session.granted;
        let sound = match datagram.kind {
            Kind::Bye => {
                self.counters.ended += 1;
                return self.close(now, id, datagram.path, Kind::Bye, &[], None);
            }
            Kind::Poll => {
                session.heard = now;
                return self.answer(now, id, datagram.path);
            }
            _ if !measures => return,
            Kind::Probe => {
                // a copy, which anybody can send who hears it, must not use up what was granted
                if !path.probe(now, datagram, came.at, came.batch) {
                    self.counters.replayed += 1;
                    return;
                }
                session.bytes += u64::from(came.size);
                session.allowance.came += u64::from(came.size);
                session.probed = session.probed.max(now);
                true
            }
            Kind::Time => match body.try_into().map(u32::from_be_bytes) {
                Ok(question) => {
                    session.heard = now;
                    session.asked += 2 * u64::from(came.size);
                    let stamp = Stamp { id: question, came: came.at, leaves: now };
                    self.say(now, id, datagram.path, Kind::Stamp, part, came.size, &stamp.encode());
                    return self.bound(now, id);
                }
                Err(_) => false,
            },
            Kind::Echo => match Echo::decode(body) {
                Some(Echo { id: question, size, class }) => {
                    session.heard = now;
                    session.asked += u64::from(came.size) + u64::from(size);
                    let echoed =
                        Echoed { id: question, size: came.size, class: came.class, came: came.at, leaves: now };
                    self.say_marked(now, id, datagram.path, Kind::Echoed, part, size, class, &echoed.encode());
                    return self.bound(now, id);
                }
                None => false,
            },
            Kind::Begin => {
                Begin::decode(body).map(|begin| path.begin(now, part, &begin, granted, session.dscp)).is_some()
            }
            Kind::Ask => decode_ask(body).map(|trains| path.ask(now, part, &trains)).is_some(),
            Kind::Report => path.report(now, came.at, part, body),
            Kind::Noted => {
                path.noted(part);
                true
            }
            Kind::Beside => {
                path.beside = Some(came.from);
                true
            }
            _ => false,
        };
        if !sound {
            self.counters.malformed += 1;
            return;
        }
        session.heard = now;
        self.pump(now, id);
    }

    /// Carries out what a session's paths want.
    fn pump(&mut self, now: Nanos, id: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let dscp = session.dscp;
        for (&number, path) in &mut session.paths {
            while let Some(say) = path.next(now, &mut session.allowance.rate) {
                let to = path.address.clone();
                self.actions.push_back(match say {
                    FarPathAction::Train(train) => {
                        let to = path.beside.clone().filter(|_| train.beside).unwrap_or(to);
                        let bytes = train.count() as u64 * u64::from(train.size);
                        session.bytes += bytes;
                        self.counters.probe_bytes += bytes;
                        session.probed = session.probed.max(now + train.duration());
                        FarAction::SendTrain { session: id, to, train }
                    }
                    FarPathAction::Message(kind, part, body) => {
                        if !session.allowance.tell(now, &body, 0) {
                            self.counters.withheld += 1;
                            continue;
                        }
                        let (seq, payload) = path.channel.seal(kind, part, &body);
                        let seq = CONTROL | seq;
                        let reply = Reply { path: number.into(), seq, size: 0, dscp, ecn: 0, payload };
                        FarAction::Reply { session: id, to, reply }
                    }
                });
            }
        }
        self.bound(now, id);
    }

    /// Ends a session that has had its bytes.
    fn bound(&mut self, now: Nanos, id: u64) {
        let Some(session) = self.sessions.get(&id) else { return };
        let limit = session.granted.bytes.0;
        // to compare the clocks takes some bytes; more than that are probes by another name
        if session.bytes + session.asked.saturating_sub(CLOCKS) > limit {
            self.refuse(now, id, Denied { denial: Denial::Bytes, limit });
        }
    }

    /// A session has had what it was granted.
    fn refuse(&mut self, now: Nanos, id: u64, denied: Denied) {
        let Some(session) = self.sessions.get(&id) else { return };
        self.counters.denied += 1;
        let why = Some(Ended::Limit(denied.into()));
        self.close(now, id, session.primary, Kind::Denied, &denied.encode(), why);
    }

    /// The last word of a session, over a path.
    fn close(&mut self, now: Nanos, id: u64, path: u8, kind: Kind, body: &[u8], why: Option<Ended>) {
        let last = self.sessions.get_mut(&id).and_then(|session| session.paths.get_mut(&path));
        if let Some(of) = last {
            let (_, payload) = of.channel.seal(kind, 0, body);
            let to = of.address.clone();
            // of no session any more, with which it would be dropped
            self.reply_stateless(to, path, payload);
        }
        self.end(now, id, why);
    }

    fn end(&mut self, now: Nanos, id: u64, why: Option<Ended>) {
        let before = self.queue.order();
        if let Some(session) = self.sessions.remove(&id) {
            let took = session.measures.map(|since| now.saturating_sub(since));
            self.note_of(&session, Happened::Ended { bytes: session.bytes + session.asked, took, why });
            drop(session);
            self.actions.push_back(FarAction::Stop { session: id });
            self.queue.leave(now, id);
            self.promote(now);
            // those who have moved up
            for (place, id) in self.queue.order().into_iter().enumerate() {
                let moved = before.iter().position(|&waits| waits == id).is_some_and(|before| place < before);
                if let Some(session) = self.sessions.get(&id).filter(|_| moved) {
                    self.answer(now, id, session.primary);
                }
            }
        }
    }
}
