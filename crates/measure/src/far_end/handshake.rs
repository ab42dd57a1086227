//! How an address proves itself: hello, cookie, open; and the same for a session's further paths.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pathcast_base::Nanos;
use pathcast_estimate::Budget;
use pathcast_session::address::source;
use pathcast_session::{Full, Place};

use super::super::bucket::Grant;
use super::super::far::{Address, FarAction};
use super::super::far_path::FarPath;
use super::super::keys::{SessionKeys, greeting};
use super::super::messages::{Cookie, Denial, Denied, Hello, Open, PADDED};
use super::super::note::Happened;
use super::super::wire::{Channel, Datagram, Kind};
use super::{Allowance, Arrived, CONTROL, FarEnd, Session};
use crate::machine::Reply;

impl<A: Address> FarEnd<A> {
    /// Anybody may say hello who holds a key.
    pub(super) fn hello(&mut self, now: Nanos, datagram: &Datagram, came: Arrived<A>) {
        let Some(hello) = Hello::decode(datagram.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(key) = self.keys.find(&hello.key_id, |key| datagram.is_signed(&greeting(key))) else {
            self.counters.bad_tag += 1;
            return;
        };
        let cookie = self.cookies.issue(now, &came.from.bytes(), &[&hello.nonce, hello.key_id.as_bytes()]);
        let keys = SessionKeys::new(key, &hello.nonce, &cookie.digest);
        self.counters.cookies += 1;
        let payload = keys.far_end.seal(Kind::Cookie, datagram.path, keys.session, 0, &cookie.encode());
        self.reply_stateless(came.from, datagram.path, payload);
    }

    /// An answer outside of sessions.
    pub(super) fn reply_stateless(&mut self, to: A, path: u8, payload: Vec<u8>) {
        let reply = Reply { path: path.into(), seq: CONTROL, size: 0, dscp: 0, ecn: 0, payload };
        self.actions.push_back(FarAction::Reply { session: 0, to, reply });
    }

    /// Who holds a key and a cookie for its address gets a session, at once or in its turn, or a no.
    pub(super) fn open(&mut self, now: Nanos, datagram: &Datagram, came: Arrived<A>) {
        let Some(open) = Open::decode(datagram.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Hello { key_id, nonce } = &open.hello;
        // whoever sent it knows as well as we do whether it is ours, so that this may be told by the time that it takes
        if !self.cookies.is_ours(now, &open.cookie, &came.from.bytes(), &[nonce, key_id.as_bytes()]) {
            self.counters.bad_tag += 1;
            return;
        }
        let mut keys = None;
        let key = self.keys.find(key_id, |key| {
            let of = SessionKeys::new(key, nonce, &open.cookie.digest);
            let right = datagram.is_signed(&of.client) && datagram.session == of.session;
            keys = Some(of);
            right
        });
        let (Some(_), Some(keys)) = (key, keys) else {
            self.counters.bad_tag += 1;
            return;
        };
        let id = keys.session;
        if let Some(session) = self.sessions.get_mut(&id) {
            // its answer was lost
            session.heard = now;
            return self.answer(now, id, datagram.path);
        }
        if self.queue.is_gone(id) {
            self.counters.replayed += 1;
            return;
        }
        let place = match self.admit(key_id, came.from.source(), open.paths) {
            Ok(place) => place,
            Err(denied) => {
                self.counters.denied += 1;
                self.note(key_id, came.from.source(), Happened::Denied(denied.into()));
                let payload = keys.far_end.seal(Kind::Denied, datagram.path, id, 0, &denied.encode());
                return self.reply_stateless(came.from, datagram.path, payload);
            }
        };
        let from = came.from.source();
        self.serving = Some(id);
        self.queue.enter(id, key_id, source(from));
        let total =
            Budget { bytes: open.total.bytes.min(self.limits.bytes), time: open.total.time.min(self.limits.time) };
        let channel = Channel::new(id, datagram.path, keys.far_end.clone(), keys.client.clone());
        let share = self.room.share();
        let session = Session {
            key_id: key_id.clone(),
            came: now,
            keys,
            paths: BTreeMap::from([(datagram.path, FarPath::new(came.from, channel, share.clone()))]),
            share,
            primary: datagram.path,
            allowed: open.paths,
            dscp: open.dscp,
            granted: total,
            measures: None,
            heard: now,
            probed: now,
            bytes: 0,
            asked: 0,
            _place: place,
            allowance: Allowance { rate: Grant::new(self.limits.rate), came: 0, told: 0 },
        };
        self.sessions.insert(id, session);
        self.promote(now);
        if self.sessions.get(&id).is_some_and(|session| session.measures.is_none()) {
            self.counters.queued += 1;
            self.answer(now, id, datagram.path);
            let ahead = self.queue.order().into_iter().take_while(|&waits| waits != id).count();
            self.note(key_id, from, Happened::Waits { ahead });
        }
    }

    fn admit(&self, key_id: &str, from: IpAddr, paths: u8) -> Result<Place, Denied> {
        if paths > self.limits.paths {
            return Err(Denied { denial: Denial::Paths, limit: self.limits.paths.into() });
        }
        self.admission.enter(key_id, from).map_err(|full| {
            let (denial, limit) = match full {
                Full::OfKey(limit) => (Denial::KeySessions, limit),
                Full::OfSource(limit) => (Denial::SourceSessions, limit),
                Full::InAll(limit) => (Denial::Sessions, limit),
            };
            Denied { denial, limit: limit as u64 }
        })
    }

    /// A further path proves its address as the first one did.
    pub(super) fn path(&mut self, now: Nanos, datagram: &Datagram, came: Arrived<A>) {
        let Some(session) = self.sessions.get_mut(&datagram.session) else {
            self.counters.bad_tag += 1;
            return;
        };
        if !datagram.is_signed(&session.keys.client) {
            self.counters.bad_tag += 1;
            return;
        }
        self.serving = Some(datagram.session);
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
            let cookie = self.cookies.issue(now, &address, &words);
            let payload =
                session.keys.far_end.seal(Kind::PathCookie, datagram.path, datagram.session, 0, &cookie.encode());
            self.counters.cookies += 1;
            return self.reply_stateless(came.from, datagram.path, payload);
        }
        let cookie = Cookie::decode(datagram.body).filter(|c| self.cookies.is_ours(now, c, &address, &words));
        if cookie.is_some() && !session.paths.contains_key(&datagram.path) {
            let SessionKeys { client, far_end, .. } = &session.keys;
            let channel = Channel::new(datagram.session, datagram.path, far_end.clone(), client.clone());
            session.paths.insert(datagram.path, FarPath::new(came.from, channel, session.share.clone()));
            joined = true;
        }
        if cookie.is_none() || !joined {
            self.counters.bad_tag += 1;
            return;
        }
        session.heard = now;
        self.say(now, datagram.session, datagram.path, Kind::PathJoined, 0, 0, &[]);
    }
}
