//! The far end of all measurements: it answers who holds a key, and reports, sends and estimates for them.
//!
//! What is not signed with a key gets no answer. Until an address has proved itself by a cookie nothing is kept of it, and
//! what it gets is smaller than what it sent.

use std::collections::{BTreeMap, VecDeque};

use pathcast_base::Nanos;

use super::admission::Admission;
use super::cookie::Baker;
use super::far::{Address, FarAction, FarEvent};
use super::far_path::{FarPath, Say};
use super::keys::{SessionKeys, greeting};
use super::limits::{MeasureCounters, MeasureLimits};
use super::messages::{
    Begin, ClockWord, Cookie, Denial, Denied, Hello, Open, Opened, PADDED, Queued, Stamp, decode_ask,
};
use super::request::ClockState;
use super::wire::{Channel, Datagram, Deaf, Kind};
use crate::estimate::Budget;
use crate::machine::{Batch, Reply};
use crate::session::{Entropy, KeyRing};

/// Numbers of packets that are not probes have this bit.
pub(super) const CONTROL: u64 = 1 << 63;

/// Someone who has proved a key and an address.
struct Session<A> {
    keys: SessionKeys,
    paths: BTreeMap<u8, FarPath<A>>,
    /// The path that it was opened on, and how many it may have.
    primary: u8,
    allowed: u8,
    dscp: u8,
    granted: Budget,
    measures: Option<Nanos>,
    heard: Nanos,
    /// Probes, both ways.
    bytes: u64,
    /// What was said of them: as many bytes again, so that reports cannot be drawn without end.
    said: u64,
}

/// What has come in, besides its payload.
struct Came<A> {
    from: A,
    size: u16,
    at: Nanos,
    batch: Batch,
}

/// See the [module](self).
pub struct FarEnd<A> {
    keys: KeyRing,
    limits: MeasureLimits,
    clock: ClockState,
    baker: Baker,
    sessions: BTreeMap<u64, Session<A>>,
    admission: Admission,
    counters: MeasureCounters,
    actions: VecDeque<FarAction<A>>,
    /// What the driver was told last.
    wake: Nanos,
}

impl<A: Address> FarEnd<A> {
    /// A far end for those who hold one of `keys`. `entropy` comes from the system's generator and is used once.
    pub fn new(keys: KeyRing, limits: MeasureLimits, clock: ClockState, entropy: Entropy) -> Self {
        FarEnd {
            keys,
            limits,
            clock,
            baker: Baker::new(&entropy),
            sessions: BTreeMap::new(),
            admission: Admission::default(),
            counters: MeasureCounters::default(),
            actions: VecDeque::new(),
            wake: Nanos::MAX,
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

    /// Something has happened. `now` is not earlier than at any call before.
    pub fn handle(&mut self, now: Nanos, event: FarEvent<'_, A>) {
        match event {
            FarEvent::Received { from, packet, size, at, batch, .. } => {
                let Ok(datagram) = Datagram::parse(packet) else {
                    self.counters.malformed += 1;
                    return;
                };
                let came = Came { from, size, at, batch };
                match datagram.kind {
                    Kind::Hello => self.hello(now, &datagram, came),
                    Kind::Open => self.open(now, &datagram, came),
                    Kind::PathHello | Kind::PathJoin => self.path(now, &datagram, came),
                    _ => self.message(now, &datagram, came),
                }
            }
            FarEvent::Sent { session, path, seq, at } => self.left(now, session, path, seq, Some(at)),
            FarEvent::Unsent { session, path, seq } => self.left(now, session, path, seq, None),
            FarEvent::Timer => {
                let until = std::mem::replace(&mut self.wake, Nanos::MAX).min(now);
                self.timer(now, until);
            }
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
        paths.min(end).min(session.heard + self.limits.idle)
    }

    /// All that came before `until` is told.
    fn timer(&mut self, now: Nanos, until: Nanos) {
        let all: Vec<u64> = self.sessions.keys().copied().collect();
        for id in all {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            if session.heard + self.limits.idle <= now {
                self.counters.timed_out += 1;
                self.end(now, id);
            } else if session.measures.is_some_and(|since| since + session.granted.time <= now) {
                let limit = session.granted.time.0;
                self.refuse(now, id, Denied { denial: Denial::Time, limit });
            } else {
                session.paths.values_mut().for_each(|path| path.timer(now, until));
                self.pump(now, id);
            }
        }
    }

    fn left(&mut self, now: Nanos, session: u64, path: usize, seq: u64, at: Option<Nanos>) {
        let Some(of) = self.sessions.get_mut(&session) else { return };
        let path = u8::try_from(path).ok().and_then(|path| of.paths.get_mut(&path));
        if let Some(path) = path.filter(|_| seq & CONTROL == 0) {
            path.left(now, seq, at);
            self.pump(now, session);
        }
    }

    /// Anybody may say hello who holds a key.
    fn hello(&mut self, now: Nanos, datagram: &Datagram, came: Came<A>) {
        let Some(hello) = Hello::decode(datagram.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(key) = self.keys.find(&hello.key_id, |key| datagram.is_signed(&greeting(key))) else {
            self.counters.bad_tag += 1;
            return;
        };
        let cookie = self.baker.bake(now, &came.from.bytes(), &[&hello.nonce, hello.key_id.as_bytes()]);
        let keys = SessionKeys::new(key, &hello.nonce, &cookie.digest);
        self.counters.cookies += 1;
        let payload = keys.far_end.seal(Kind::Cookie, datagram.path, keys.session, 0, &cookie.encode());
        self.reply_stateless(came.from, datagram.path, payload);
    }

    /// An answer outside of sessions.
    fn reply_stateless(&mut self, to: A, path: u8, payload: Vec<u8>) {
        let reply = Reply { path: path.into(), seq: CONTROL, size: 0, dscp: 0, payload };
        self.actions.push_back(FarAction::Reply { session: 0, to, reply });
    }

    /// Who holds a key and a cookie for its address gets a session, at once or in its turn, or a no.
    fn open(&mut self, now: Nanos, datagram: &Datagram, came: Came<A>) {
        let Some(open) = Open::decode(datagram.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Hello { key_id, nonce } = &open.hello;
        let ours = self.baker.is_ours(now, &open.cookie, &came.from.bytes(), &[nonce, key_id.as_bytes()]);
        let mut keys = None;
        let key = self.keys.find(key_id, |key| {
            let of = SessionKeys::new(key, nonce, &open.cookie.digest);
            let right = datagram.is_signed(&of.client) && datagram.session == of.session;
            keys = Some(of);
            right
        });
        let (true, Some(_), Some(keys)) = (ours, key, keys) else {
            self.counters.bad_tag += 1;
            return;
        };
        let id = keys.session;
        if let Some(session) = self.sessions.get_mut(&id) {
            // its answer was lost
            session.heard = now;
            return self.answer(id, datagram.path);
        }
        if self.admission.is_gone(id) {
            self.counters.replayed += 1;
            return;
        }
        if let Err(denied) = self.admission.enter(&self.limits, id, key_id, came.from.source(), open.paths) {
            self.counters.denied += 1;
            let payload = keys.far_end.seal(Kind::Denied, datagram.path, id, 0, &denied.encode());
            return self.reply_stateless(came.from, datagram.path, payload);
        }
        let total =
            Budget { bytes: open.total.bytes.min(self.limits.bytes), time: open.total.time.min(self.limits.time) };
        let channel = Channel::new(id, datagram.path, keys.far_end.clone(), keys.client.clone());
        let session = Session {
            keys,
            paths: BTreeMap::from([(datagram.path, FarPath::new(came.from, channel))]),
            primary: datagram.path,
            allowed: open.paths,
            dscp: open.dscp,
            granted: total,
            measures: None,
            heard: now,
            bytes: 0,
            said: 0,
        };
        self.sessions.insert(id, session);
        self.promote(now);
        if self.sessions.get(&id).is_some_and(|session| session.measures.is_none()) {
            self.counters.queued += 1;
            self.answer(id, datagram.path);
        }
    }

    /// Lets those measure for whom there is room.
    fn promote(&mut self, now: Nanos) {
        while let Some(id) = self.admission.promote(&self.limits) {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            session.measures = Some(now);
            self.counters.opened += 1;
            let primary = session.primary;
            self.answer(id, primary);
        }
    }

    /// Tells a client how it is with its session.
    fn answer(&mut self, id: u64, path: u8) {
        let Some(session) = self.sessions.get(&id) else { return };
        let (kind, body) = if session.measures.is_some() {
            let clock = ClockWord::new(&self.clock, |host| session.keys.clock_digest(host));
            (Kind::Opened, Opened { total: session.granted, rate: self.limits.rate, clock }.encode())
        } else {
            let (ahead, measuring) = (self.admission.ahead(id) as u32, self.admission.measuring() as u32);
            (Kind::Queued, Queued { ahead, measuring }.encode())
        };
        self.say(id, path, kind, 0, 0, &body);
    }

    /// Sends a control message of a session.
    #[allow(clippy::too_many_arguments)] // they are the fields of the head, in its order
    fn say(&mut self, id: u64, path: u8, kind: Kind, part: u8, size: u16, body: &[u8]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(of) = session.paths.get_mut(&path) else { return };
        let (number, payload) = of.channel.seal(kind, part, body);
        let reply = Reply { path: path.into(), seq: CONTROL | number, size, dscp: session.dscp, payload };
        self.actions.push_back(FarAction::Reply { session: id, to: of.address.clone(), reply });
    }

    /// A further path proves its address as the first one did.
    fn path(&mut self, now: Nanos, datagram: &Datagram, came: Came<A>) {
        let Some(session) = self.sessions.get_mut(&datagram.session) else {
            self.counters.bad_tag += 1;
            return;
        };
        if !datagram.is_signed(&session.keys.client) {
            self.counters.bad_tag += 1;
            return;
        }
        if datagram.path >= session.allowed {
            self.counters.malformed += 1;
            return;
        }
        let address = came.from.bytes();
        let id = datagram.session.to_be_bytes();
        let words: [&[u8]; 2] = [&id, &[datagram.path]];
        let mut joined = session.paths.get(&datagram.path).is_some_and(|path| path.address == came.from);
        if datagram.kind == Kind::PathHello {
            if datagram.body.len() != PADDED {
                self.counters.malformed += 1;
                return;
            }
            let cookie = self.baker.bake(now, &address, &words);
            let payload =
                session.keys.far_end.seal(Kind::PathCookie, datagram.path, datagram.session, 0, &cookie.encode());
            self.counters.cookies += 1;
            return self.reply_stateless(came.from, datagram.path, payload);
        }
        let cookie = Cookie::decode(datagram.body).filter(|c| self.baker.is_ours(now, c, &address, &words));
        if cookie.is_some() && !session.paths.contains_key(&datagram.path) {
            let SessionKeys { client, far_end, .. } = &session.keys;
            let channel = Channel::new(datagram.session, datagram.path, far_end.clone(), client.clone());
            session.paths.insert(datagram.path, FarPath::new(came.from, channel));
            joined = true;
        }
        if cookie.is_none() || !joined {
            self.counters.bad_tag += 1;
            return;
        }
        session.heard = now;
        self.say(datagram.session, datagram.path, Kind::PathJoined, 0, 0, &[]);
    }

    /// What is said within a session.
    fn message(&mut self, now: Nanos, datagram: &Datagram, came: Came<A>) {
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
        let heard = match path.address == came.from {
            true => path.channel.hear(datagram),
            false if datagram.is_signed(&path.channel.receive) => Err(Deaf::Replayed),
            false => Err(Deaf::Tag),
        };
        match heard {
            Ok(()) => {}
            Err(Deaf::Replayed) => {
                self.counters.replayed += 1;
                return;
            }
            Err(Deaf::Tag) => {
                self.counters.bad_tag += 1;
                return;
            }
        }
        self.counters.received_bytes += u64::from(came.size);
        let (part, body, measures) = (datagram.part, datagram.body, session.measures.is_some());
        let grants = (session.granted, self.limits.rate);
        let sound = match datagram.kind {
            Kind::Bye => {
                self.counters.ended += 1;
                return self.end(now, id);
            }
            Kind::Poll => {
                session.heard = now;
                return self.answer(id, datagram.path);
            }
            _ if !measures => return,
            Kind::Probe => {
                session.bytes += u64::from(came.size);
                let fresh = path.probe(now, datagram, came.at, came.batch);
                self.counters.replayed += u64::from(!fresh);
                if !fresh {
                    return;
                }
                true
            }
            Kind::Time => match body.try_into().map(u32::from_be_bytes) {
                Ok(question) => {
                    session.heard = now;
                    let stamp = Stamp { id: question, came: came.at, leaves: now };
                    return self.say(id, datagram.path, Kind::Stamp, part, came.size, &stamp.encode());
                }
                Err(_) => false,
            },
            Kind::Begin => {
                Begin::decode(body).map(|begin| path.begin(now, part, &begin, grants, session.dscp)).is_some()
            }
            Kind::Ask => decode_ask(body).map(|trains| path.ask(now, part, &trains)).is_some(),
            Kind::Report => path.report(now, part, body),
            Kind::Noted => {
                path.noted(part);
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
            while let Some(say) = path.next(now) {
                let to = path.address.clone();
                self.actions.push_back(match say {
                    Say::Train(train) => {
                        let bytes = train.count() as u64 * u64::from(train.size);
                        session.bytes += bytes;
                        self.counters.probe_bytes += bytes;
                        FarAction::SendTrain { session: id, to, train }
                    }
                    Say::Message(kind, part, body) => {
                        let (seq, payload) = path.channel.seal(kind, part, &body);
                        session.said += payload.len() as u64;
                        let seq = CONTROL | seq;
                        let reply = Reply { path: number.into(), seq, size: 0, dscp, payload };
                        FarAction::Reply { session: id, to, reply }
                    }
                });
            }
        }
        let limit = session.granted.bytes.0;
        if session.bytes.max(session.said) > limit {
            self.refuse(now, id, Denied { denial: Denial::Bytes, limit });
        }
    }

    /// A session has had what it was granted.
    fn refuse(&mut self, now: Nanos, id: u64, denied: Denied) {
        let Some(session) = self.sessions.get(&id) else { return };
        let primary = session.primary;
        self.counters.denied += 1;
        self.say(id, primary, Kind::Denied, 0, 0, &denied.encode());
        self.end(now, id);
    }

    fn end(&mut self, now: Nanos, id: u64) {
        if self.sessions.remove(&id).is_some() {
            self.actions.push_back(FarAction::Stop { session: id });
            self.admission.leave(now, id);
            self.promote(now);
            // the others have moved up
            let waiting = self.sessions.iter().filter(|(_, session)| session.measures.is_none());
            let waiting: Vec<(u64, u8)> = waiting.map(|(&id, session)| (id, session.primary)).collect();
            waiting.into_iter().for_each(|(id, path)| self.answer(id, path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::messages::encode_ask;
    use crate::measure::report;
    use crate::measure::wire::{PROBE, ProbeHead};
    use crate::session::Key;
    use pathcast_base::Bytes;

    const NOW: Nanos = Nanos::secs(50);

    fn key() -> Key {
        Key::new("one", vec![1; 32]).unwrap()
    }

    /// A far end, and the client's channel of a session with it.
    fn opened(limits: MeasureLimits) -> (FarEnd<usize>, Channel) {
        let entropy = Entropy { nonce: [3; 32], session: [4; 16] };
        let mut far = FarEnd::new(KeyRing::new([key()]), limits, ClockState::default(), entropy);
        let hello = Hello { key_id: "one".into(), nonce: [5; 32] };
        let said = greeting(&key()).seal(Kind::Hello, 0, 0, 0, &hello.encode());
        let answer = said_to(&mut far, NOW, &said).remove(0);
        let cookie = Cookie::decode(Datagram::parse(&answer).unwrap().body).unwrap();
        let keys = SessionKeys::new(&key(), &hello.nonce, &cookie.digest);
        let total = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(100) };
        let open = Open { hello, cookie, paths: 1, dscp: 0, total, clock: ClockWord::default() };
        let said = keys.client.seal(Kind::Open, 0, keys.session, 0, &open.encode());
        assert_eq!(kinds(&said_to(&mut far, NOW, &said)), [Kind::Opened]);
        (far, Channel::new(keys.session, 0, keys.client, keys.far_end))
    }

    /// Payloads of what the far end answers.
    fn said_to(far: &mut FarEnd<usize>, now: Nanos, packet: &[u8]) -> Vec<Vec<u8>> {
        let size = packet.len() as u16 + 28;
        far.handle(now, FarEvent::Received { from: 0, packet, size, dscp: 0, at: now, batch: Batch::SINGLE });
        replies(far, now)
    }

    fn replies(far: &mut FarEnd<usize>, now: Nanos) -> Vec<Vec<u8>> {
        let actions = std::iter::from_fn(|| far.next(now));
        actions
            .filter_map(|a| if let FarAction::Reply { reply, .. } = a { Some(reply.payload) } else { None })
            .collect()
    }

    fn kinds(payloads: &[Vec<u8>]) -> Vec<Kind> {
        payloads.iter().map(|payload| Datagram::parse(payload).unwrap().kind).collect()
    }

    #[test]
    fn a_session_ends_with_its_time_however_alive_it_is() {
        let limits = MeasureLimits { time: Nanos::secs(9), ..MeasureLimits::default() };
        let (mut far, mut channel) = opened(limits);
        for second in 1..9 {
            let now = NOW + Nanos::secs(second);
            assert_eq!(kinds(&said_to(&mut far, now, &channel.seal(Kind::Poll, 0, &[]).1)), [Kind::Opened]);
        }
        let now = NOW + Nanos::secs(9);
        far.handle(now, FarEvent::Timer);
        assert_eq!(kinds(&replies(&mut far, now)), [Kind::Denied]);
        assert_eq!((far.sessions(), far.counters().denied), (0, 1));
        assert!(said_to(&mut far, now, &channel.seal(Kind::Poll, 0, &[]).1).is_empty());
    }

    #[test]
    fn a_session_ends_with_its_bytes() {
        let (mut far, channel) = opened(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
        let mut denied = None;
        for index in 0..100 {
            let mut packet = vec![0; 1372];
            let head = ProbeHead { train: 0, index, count: 100, rest: 0 };
            channel.send.probe(0, 1, channel.session, head, &mut packet[..PROBE]);
            if kinds(&said_to(&mut far, NOW, &packet)).contains(&Kind::Denied) {
                denied = Some(index);
            }
        }
        assert_eq!((denied, far.sessions()), (Some(71), 0), "100,000 bytes are 71.4 packets");
    }

    #[test]
    fn reports_that_are_asked_for_again_and_again_are_bounded_too() {
        let (mut far, mut channel) = opened(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
        let mut packet = vec![0; PROBE];
        for index in 0..100 {
            let head = ProbeHead { train: 0, index, count: 100, rest: 0 };
            channel.send.probe(0, 1, channel.session, head, &mut packet);
            said_to(&mut far, NOW, &packet);
        }
        let mut drawn = 0;
        while far.sessions() == 1 {
            let said = said_to(&mut far, NOW, &channel.seal(Kind::Ask, 1, &encode_ask(&[0])).1);
            drawn += said.iter().map(|payload| payload.len() as u64).sum::<u64>();
            assert!(drawn < 110_000, "of 100,000");
        }
        assert!(drawn > 90_000, "{drawn}");
    }

    #[test]
    fn a_timer_is_set_once_however_late_it_is() {
        let (mut far, _) = opened(MeasureLimits::default());
        for late in [6, 7] {
            let now = NOW + Nanos::secs(late);
            far.handle(
                now,
                FarEvent::Received { from: 0, packet: b"", size: 28, dscp: 0, at: now, batch: Batch::SINGLE },
            );
            assert_eq!(far.next(now), None, "a new time would put it off");
        }
    }

    #[test]
    fn a_train_is_given_up_by_its_timer_and_not_by_what_is_read_first() {
        let (mut far, mut channel) = opened(MeasureLimits::default());
        let mut came = 0;
        let mut listen = |said: Vec<Vec<u8>>| {
            for packet in said {
                let datagram = Datagram::parse(&packet).unwrap();
                let pieces = report::decode(datagram.body).filter(|_| datagram.kind == Kind::Report);
                came +=
                    pieces.into_iter().flatten().map(|piece| piece.arrivals.iter().flatten().count()).sum::<usize>();
            }
            came
        };
        let probe = |index| {
            let mut packet = vec![0; PROBE];
            channel.send.probe(0, 1, channel.session, ProbeHead { train: 0, index, count: 2, rest: 0 }, &mut packet);
            packet
        };
        let (first, second) = (probe(0), probe(1));
        let late = NOW + Nanos::secs(4);
        assert_eq!(listen(said_to(&mut far, NOW, &first)), 0);
        let question = channel.seal(Kind::Ask, 1, &encode_ask(&[])).1;
        assert_eq!(listen(said_to(&mut far, late, &question)), 0);
        assert_eq!(listen(said_to(&mut far, late, &second)), 2);
    }

    #[test]
    fn a_silent_session_is_over_and_its_opening_not_good_again() {
        let (mut far, _) = opened(MeasureLimits::default());
        let now = NOW + Nanos::secs(5);
        far.handle(now, FarEvent::Timer);
        assert_eq!((far.sessions(), far.counters().timed_out), (0, 1));
        assert_eq!(std::iter::from_fn(|| far.next(now)).filter(|a| matches!(a, FarAction::Stop { .. })).count(), 1);
    }
}
