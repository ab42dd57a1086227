//! The client that looks what becomes of packets on one path: which sizes pass, what becomes of their traffic class, and how
//! the other end's clock goes. It measures no rates; `echo.rs` has the question.
//!
//! Each direction is asked for alone: the other's packets are small and unmarked. What is large is asked for at once with
//! what is small, so that a path that loses all is not taken for one that loses what is large. Where the largest packet does
//! not pass, the largest that does is searched for, three sizes at a time.

mod document;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::Budget;
use pathcast_estimate::delay::Waits;
use pathcast_session::{Entropy, Key, sign};

use super::echo::{Echo, Echoed};
use super::far_end::CONTROL;
use super::keys::{SessionKeys, greeting, is_of_before};
use super::messages::{ClockInfo, Cookie, Denied, Hello, Open, Opened, Queued, Stamp};
use super::request::{ClockState, Direction};
use super::times::Times;
use super::wire::{BEFORE, Channel, Datagram, Kind};
use crate::machine::{Action, Event, Machine, Reply};
use document::{Clock, Document, Small, Way};
use search::{Question, Search};

/// A packet of this size passes wherever any does [IP bytes].
pub const SMALL: u16 = 128;
/// What is not answered in the handshake is said again after this.
const AGAIN: Nanos = Nanos::millis(250);
/// So long others may measure before this one has its turn.
const TURN: Nanos = Nanos::secs(30);
/// A question of the first round is asked so often at most, and one of the search; one about marks is answered so often.
const TRIES: u32 = 8;
const FEW: u32 = 4;
const MARKED: usize = 3;
/// From one question to the next.
const SPACE: Nanos = Nanos::millis(10);
/// Between two askings, at least; more than the round trip.
const APART: Nanos = Nanos::millis(60);
/// Questions of the time: so long, so far apart, and when a group of them ends. The first and the last are more than a second
/// apart, from which a clock's rate can be told.
const CLOCKS: Nanos = Nanos::millis(1600);
const GROUPS: [Nanos; 2] = [Nanos::millis(300), Nanos::millis(1300)];
const TICK: Nanos = Nanos::millis(50);
/// No search takes longer.
const LONGEST: Nanos = Nanos::secs(20);
/// All that is asked and answered [IP bytes], and how long.
const BUDGET: Budget = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(60) };
/// Goodbyes, and so far apart.
const GOODBYES: u32 = 3;
const GOODBYE: Nanos = Nanos::millis(150);

/// What is to be looked at.
#[derive(Clone, Debug)]
pub struct EchoRequest {
    /// The secret that the far end knows too.
    pub key: Key,
    /// The largest packets that the hosts would send, out and in [IP bytes]; none: the far end does not know the question, and
    /// only its clock is asked for.
    pub sizes: Option<[u16; 2]>,
    /// Traffic classes: code point times 4, and congestion mark.
    pub classes: Vec<u8>,
    /// How long silence is waited for.
    pub patience: Nanos,
    /// Of this host.
    pub clock: ClockState,
}

enum Phase {
    Hello,
    Opening(Cookie),
    Queued,
    Asking,
    Leaving { document: Vec<u8>, said: u32 },
    Done,
}

/// See the [module](self).
pub struct Echoes {
    request: EchoRequest,
    entropy: Entropy,
    phase: Phase,
    keys: Option<SessionKeys>,
    channel: Option<Channel>,
    theirs: ClockInfo,
    times: Times,
    waits: Waits,
    /// Questions of this round, and where they stand by their numbers.
    round: Vec<Question>,
    ids: BTreeMap<u32, usize>,
    next_id: u32,
    /// Questions of the time by the numbers of their packets.
    asked: BTreeMap<u64, u32>,
    /// Their number before the first, how many were asked, and which of them, counted from 1, were answered.
    first: u32,
    timed: u32,
    answered: BTreeSet<u32>,
    told: Vec<Question>,
    /// Whose turn it is in the round.
    turn: usize,
    search: BTreeMap<Direction, Search>,
    /// Since when this phase, and when its next step is due; the same of the clocks.
    since: Nanos,
    due: Nanos,
    tick: Nanos,
    began: Nanos,
    /// Groups of the clocks' questions that are over.
    group: usize,
    heard: Nanos,
    actions: VecDeque<Action>,
    wake: Nanos,
}

impl Echoes {
    /// A look that begins when it is started. `entropy` comes from the system's generator and is used once.
    pub fn new(request: EchoRequest, entropy: Entropy) -> Echoes {
        let number = sign(&entropy.nonce, &[b"first question", &entropy.session]);
        let first = u32::from_be_bytes(number[..4].try_into().expect("four bytes"));
        Echoes {
            request,
            entropy,
            phase: Phase::Hello,
            keys: None,
            channel: None,
            theirs: ClockInfo::default(),
            times: Times::after(first),
            waits: Waits::default(),
            round: Vec::new(),
            ids: BTreeMap::new(),
            next_id: first,
            asked: BTreeMap::new(),
            first,
            timed: 0,
            answered: BTreeSet::new(),
            told: Vec::new(),
            turn: 0,
            search: BTreeMap::new(),
            since: Nanos::ZERO,
            due: Nanos::ZERO,
            tick: Nanos::MAX,
            began: Nanos::ZERO,
            group: 0,
            heard: Nanos::ZERO,
            actions: VecDeque::new(),
            wake: Nanos::MAX,
        }
    }

    fn put(&mut self, seq: u64, size: u16, class: u8, payload: Vec<u8>) {
        let (dscp, ecn) = (class >> 2, class & 3);
        self.actions.push_back(Action::Reply(Reply { path: 0, seq: CONTROL | seq, size, dscp, ecn, payload }));
    }

    fn say(&mut self, kind: Kind, size: u16, class: u8, body: &[u8]) -> u64 {
        let Some(channel) = &mut self.channel else { return 0 };
        let (seq, payload) = channel.seal(kind, 0, body);
        self.put(seq, size, class, payload);
        seq
    }

    fn hello(&self) -> Hello {
        Hello { key_id: self.request.key.id().into(), nonce: self.entropy.nonce }
    }

    fn enter(&mut self, now: Nanos, phase: Phase) {
        (self.phase, self.since, self.due) = (phase, now, now);
    }

    fn receive(&mut self, now: Nanos, packet: &[u8], size: u16, class: u8, at: Nanos) -> Option<()> {
        if matches!(self.phase, Phase::Hello) && is_of_before(&self.request.key, &self.entropy.nonce, packet) {
            let message = "the far end speaks an older version of the measurement's protocol".to_owned();
            self.finish(now, "other-version", Some(message));
            return Some(());
        }
        let datagram = Datagram::parse(packet).ok()?;
        if let (Phase::Hello, Kind::Cookie) = (&self.phase, datagram.kind) {
            let cookie = Cookie::decode(datagram.body)?;
            let keys = SessionKeys::new(&self.request.key, &self.entropy.nonce, &cookie.digest);
            if !datagram.is_signed(&keys.far_end) || datagram.session != keys.session {
                return None;
            }
            self.channel = Some(Channel::new(keys.session, 0, keys.client.clone(), keys.far_end.clone()));
            self.keys = Some(keys);
            self.enter(now, Phase::Opening(cookie));
            return Some(());
        }
        let channel = self.channel.as_mut().filter(|channel| channel.session == datagram.session)?;
        // the last words of a session have no number
        if matches!(datagram.kind, Kind::Denied | Kind::Bye) {
            if !datagram.is_signed(&channel.receive) {
                return None;
            }
            match (&mut self.phase, datagram.kind) {
                (Phase::Leaving { said, .. }, Kind::Bye) => (*said, self.due) = (GOODBYES, now),
                (Phase::Leaving { .. } | Phase::Done, _) | (_, Kind::Bye) => return None,
                _ => {
                    let denied = Denied::decode(datagram.body)?;
                    self.finish(now, "refused", Some(denied.denial.message(denied.limit)));
                }
            }
            return Some(());
        }
        channel.accept(&datagram).ok()?;
        self.heard = now;
        match (&self.phase, datagram.kind) {
            (Phase::Opening(_) | Phase::Queued, Kind::Opened) => {
                self.theirs = Opened::decode(datagram.body)?.clock;
                (self.began, self.tick) = (now, now);
                self.enter(now, Phase::Asking);
                self.begin();
            }
            (Phase::Opening(_), Kind::Queued) => {
                Queued::decode(datagram.body)?;
                self.enter(now, Phase::Queued);
                self.due = now + Nanos::secs(1);
            }
            (Phase::Asking, Kind::Stamp) => {
                let stamp = Stamp::decode(datagram.body)?;
                let number = stamp.id.wrapping_sub(self.first);
                if (1..=self.timed).contains(&number) {
                    self.answered.insert(number);
                }
                self.times.answered(stamp, at, &mut self.waits);
            }
            (Phase::Asking, Kind::Echoed) => {
                let echoed = Echoed::decode(datagram.body)?;
                let question = self.round.get_mut(*self.ids.get(&echoed.id)?)?;
                question.came.push_back(match question.way {
                    Direction::Out => (echoed.size, echoed.class),
                    Direction::In => (size, class),
                });
            }
            _ => {}
        }
        Some(())
    }

    /// The first round: what is small and unmarked, what is large, and what is marked.
    fn begin(&mut self) {
        let Some([out, back]) = self.request.sizes else { return };
        self.round.push(Question::new(Direction::Out, SMALL, 0, 1, TRIES));
        for (way, largest) in [(Direction::Out, out), (Direction::In, back)] {
            self.search.insert(way, Search::up_to(largest));
            if largest > SMALL {
                self.round.push(Question::new(way, largest, 0, 1, TRIES));
            }
            self.round
                .extend(self.request.classes.iter().map(|&class| Question::new(way, SMALL, class, MARKED, TRIES)));
        }
    }

    /// Asks the next thing that this round lacks, or ends it. One at a time: a burst of questions fills the queue before a
    /// narrow line, and what stands last in it is lost each time.
    fn ask(&mut self, now: Nanos) {
        // round trips are known from the clocks' questions, which come first
        let apart = APART.max(Nanos(self.waits.wait(SMALL).0 * 3 / 2));
        let count = self.round.len();
        let mut due = None;
        for index in (0..count).map(|i| (self.turn + i) % count) {
            let question = &mut self.round[index];
            let again = question.last.map_or(now, |last| last + apart);
            if question.is_content() || (question.asked >= question.tries && now >= again) {
                continue;
            }
            if question.asked >= question.tries || now < again {
                due = Some(due.map_or(again, |due: Nanos| due.min(again)));
                continue;
            }
            question.asked += 1;
            question.last = Some(now);
            self.turn = index + 1;
            self.next_id = self.next_id.wrapping_add(1);
            self.ids.insert(self.next_id, index);
            let own = (question.size, question.class);
            let ((size, class), (answer, marked)) = match question.way {
                Direction::Out => (own, (0, 0)),
                Direction::In => ((SMALL, 0), own),
            };
            let body = Echo { id: self.next_id, size: answer, class: marked }.encode();
            self.say(Kind::Echo, size, class, &body);
            self.due = now + SPACE;
            return;
        }
        match due {
            Some(due) => self.due = due,
            None => {
                self.close_round();
                self.due = if self.round.is_empty() { now + TICK } else { now };
            }
        }
    }

    fn close_round(&mut self) {
        self.ids.clear();
        self.turn = 0;
        for question in std::mem::take(&mut self.round) {
            if question.class == 0
                && let Some(search) = self.search.get_mut(&question.way)
            {
                let fits = |&(size, _): &(u16, u8)| size == question.size;
                search.learn(question.size, question.came.iter().any(fits));
            }
            self.told.push(question);
        }
        // the plain one was of the way out; an answer proves the way back as well
        let plain = self.search.get(&Direction::Out).and_then(|search| search.passes);
        if let (Some(passes), Some(back)) = (plain, self.search.get_mut(&Direction::In)) {
            back.passes = back.passes.max(Some(passes.min(SMALL)));
        }
        for (&way, search) in &self.search {
            self.round.extend(search.next().into_iter().map(|size| Question::new(way, size, 0, 1, FEW)));
        }
    }

    fn is_content(&self, now: Nanos) -> bool {
        (now >= self.began + CLOCKS && self.round.is_empty()) || now >= self.began + LONGEST
    }

    /// Does what is due.
    fn pump(&mut self, now: Nanos) {
        if now >= self.tick && matches!(self.phase, Phase::Asking) {
            self.tick = now + TICK;
            if GROUPS.get(self.group).is_some_and(|&end| now >= self.began + end) {
                self.group += 1;
                self.times.end_group();
            }
            let id = self.times.ask(SMALL);
            self.timed += 1;
            let seq = self.say(Kind::Time, SMALL, 0, &id.to_be_bytes());
            self.asked.insert(CONTROL | seq, id);
        }
        if now < self.due {
            return;
        }
        let over = now >= self.since + self.request.patience;
        let content = self.is_content(now);
        match &mut self.phase {
            Phase::Hello | Phase::Opening(_) if over => self.finish(now, "silent", None),
            Phase::Hello => {
                let signer = greeting(&self.request.key);
                let hello = signer.seal(Kind::Hello, 0, 0, 0, &self.hello().encode());
                if now > self.since {
                    self.put(0, 0, 0, signer.as_of(BEFORE, hello.clone()));
                }
                self.put(0, 0, 0, hello);
                self.due = now + AGAIN;
            }
            &mut Phase::Opening(cookie) => {
                let Some(keys) = &self.keys else { return };
                let clock = ClockInfo::new(&self.request.clock, |host| keys.clock_digest(host));
                let open = Open { hello: self.hello(), cookie, paths: 1, dscp: 0, total: BUDGET, clock };
                let payload = keys.client.seal(Kind::Open, 0, keys.session, 0, &open.encode());
                self.put(0, 0, 0, payload);
                self.due = now + AGAIN;
            }
            Phase::Queued if now >= self.since + TURN => self.finish(now, "busy", None),
            Phase::Queued => {
                self.say(Kind::Poll, 0, 0, &[]);
                self.due = now + Nanos::secs(1);
            }
            Phase::Asking if now >= self.heard + self.request.patience => self.finish(now, "lost", None),
            Phase::Asking if content => self.finish(now, "answered", None),
            // the first question of the time is answered before anything large is sent
            Phase::Asking if self.times.is_proven() && !(self.round.is_empty()) => self.ask(now),
            Phase::Asking => self.due = now + TICK,
            Phase::Leaving { document, said } if *said >= GOODBYES => {
                let document = std::mem::take(document);
                self.phase = Phase::Done;
                self.actions.push_back(Action::Done(document));
            }
            Phase::Leaving { said, .. } => {
                *said += 1;
                self.due = now + GOODBYE;
                self.say(Kind::Bye, 0, 0, &[]);
            }
            Phase::Done => {}
        }
    }

    fn finish(&mut self, now: Nanos, outcome: &'static str, message: Option<String>) {
        self.close_round();
        let document = serde_json::to_vec(&self.document(outcome, message)).expect("text, numbers and words only");
        // who has no session has nobody to say goodbye to
        let said = if matches!(outcome, "answered" | "busy") { 0 } else { GOODBYES };
        self.enter(now, Phase::Leaving { document, said });
        if said == GOODBYES {
            self.pump(now);
        }
    }

    fn document(&self, outcome: &'static str, message: Option<String>) -> Document {
        let ours = self
            .keys
            .as_ref()
            .map_or(ClockInfo::default(), |keys| ClockInfo::new(&self.request.clock, |host| keys.clock_digest(host)));
        let plain = self.told.iter().filter(|q| q.class == 0 && q.size == SMALL).map(|q| q.came.len() as u32).sum();
        Document {
            outcome,
            message,
            plain,
            small: Small {
                asked: self.answered.last().copied().unwrap_or_default(),
                answered: self.answered.len() as u32,
            },
            out: Way::of(Direction::Out, self.search.get(&Direction::Out), &self.told),
            back: Way::of(Direction::In, self.search.get(&Direction::In), &self.told),
            rtt_s: self.times.round_trip(),
            clock: Clock::of(&self.times, ours, self.theirs),
        }
    }
}

impl Machine for Echoes {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => (self.since, self.due, self.heard) = (now, now, now),
            Event::Sent { seq, at, .. } => {
                if let Some(id) = self.asked.remove(&seq) {
                    self.times.left(id, at, &mut self.waits);
                }
            }
            Event::Received { packet, size, dscp, ecn, at, .. } => {
                let _ = self.receive(now, packet, size, dscp << 2 | ecn, at);
            }
            Event::Stop => {
                if !matches!(self.phase, Phase::Leaving { .. } | Phase::Done) {
                    self.finish(now, "lost", None);
                }
            }
            Event::Unsent { .. } | Event::Missed { .. } => {}
            Event::Timer => self.wake = Nanos::MAX,
        }
        self.pump(now);
    }

    fn next(&mut self, _now: Nanos) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let due = match self.phase {
            Phase::Done => Nanos::MAX,
            Phase::Asking => self.due.min(self.tick),
            _ => self.due,
        };
        (due != self.wake).then(|| {
            self.wake = due;
            Action::WakeAt(due)
        })
    }
}
