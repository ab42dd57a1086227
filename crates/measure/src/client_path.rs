//! The client's work on one path: it proves its address, compares the clocks, measures each direction, and compares the
//! clocks again after each. On long paths, where most of that is waiting, both directions are measured at once, and begin with the
//! first of the clocks' answers.

use std::collections::{BTreeMap, VecDeque};

use pathcast_base::{Bytes, Nanos, Stream};
use pathcast_estimate::delay::Waits;
use pathcast_estimate::knowledge::Shared;
use pathcast_estimate::shared::Response;
use pathcast_estimate::{Budget, Effort, LARGE};
use pathcast_session::{Entropy, sign};

use super::bucket::Grant;
use super::far_end::CONTROL;
use super::ledger::Ledger;
use super::limits::MeasureLimits;
use super::messages::{Begin, Cookie, Opened, PADDED, Stamp, decode_ask};
use super::outcome::{Outcome, Reason};
use super::report;
use super::request::{Direction, MethodName, Request};
use super::result::Down;
use super::room::Room;
use super::sink::Sink;
use super::source::{Left, Source, SourceAction, Spec};
use super::times::Times;
use super::wire::{BESIDE, Channel, Datagram, Kind, ProbeHead};
use crate::machine::{Action, Batch, Reply, Train};

/// Small questions of a group, and their size: that of the probes which say what the delay is [IP bytes].
pub(super) const QUESTIONS: (usize, u16) = (8, 120);
/// Larger ones at the beginning, for what a byte costs [IP bytes].
const SIZES: [u16; 2] = [700, LARGE];
/// Mean time between two questions: this share of the budget's time, within bounds.
const APART: (u64, Nanos, Nanos) = (300, Nanos::millis(3), Nanos::millis(15));
/// The same where the time is not known beforehand.
const SPARING: Nanos = Nanos::millis(8);
/// What a direction takes besides its trains, and a fiftieth for the reports [IP bytes].
const OVERHEAD: u64 = 10_000;
/// Answers are not waited for longer than this share of the budget's time; where the round trip is longer, the bound on the
/// offset is so wide that a second comparison adds nothing.
const WAITED: u64 = 20;
/// From this round trip on the waits are shared.
const LONG: Nanos = Nanos::millis(100);
/// A far end that has said nothing for so long is gone.
pub(super) const SILENCE: Nanos = Nanos::secs(5);
/// A question is repeated after no more than this.
const PATIENCE: Nanos = Nanos::secs(2);
/// And so often.
pub(super) const TRIES: u32 = 8;
/// Of a further path, whose far end has answered elsewhere, more are not made once it was silent for as long.
const FEW_TRIES: u32 = 4;

/// When a message is to be said again.
#[derive(Clone, Copy, Default)]
pub(super) struct Retry {
    pub due: Nanos,
    pub tries: u32,
}

impl Retry {
    /// True when it is time; the next time is twice as far off.
    pub fn is_due(&mut self, now: Nanos, waits: &Waits, size: u16) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + Nanos(waits.wait(size).0 << self.tries.min(4)).min(PATIENCE.max(waits.wait(size)));
        self.tries += 1;
        true
    }
}

/// What the client says, with an account of it.
pub(super) struct Outbox {
    pub actions: VecDeque<Action>,
    pub bytes: u64,
    pub last: Nanos,
    pub dscp: u8,
    /// What the far end grants of trains.
    pub granted: Grant,
    /// Bytes by path, and what no path may exceed.
    pub ledger: Ledger,
}

/// IP and UDP headers, as they are counted where the driver has not said it [byte].
pub(super) const HEADERS: usize = 28;

impl Outbox {
    pub fn payload(&mut self, now: Nanos, path: u8, seq: u64, size: u16, payload: Vec<u8>) {
        let bytes = (payload.len() + HEADERS).max(size.into()) as u64;
        if !self.ledger.say(path, bytes, &payload) {
            return;
        }
        self.bytes += bytes;
        self.last = now;
        let reply = Reply { path: path.into(), seq: CONTROL | seq, size, dscp: self.dscp, ecn: 0, payload };
        self.actions.push_back(Action::Reply(reply));
    }

    /// A message that shows where the flow beside the path's comes from.
    pub fn beside(&mut self, now: Nanos, path: u8, seq: u64, payload: Vec<u8>) {
        self.bytes += (payload.len() + HEADERS) as u64;
        let train = Train::new(path.into(), CONTROL | seq, now, Vec::new(), 0).marked(self.dscp).beside();
        self.actions.push_back(Action::SendTrain(Train { heads: payload, ..train }));
    }

    pub fn say(&mut self, now: Nanos, channel: &mut Channel, kind: Kind, part: u8, body: &[u8]) {
        let (seq, payload) = channel.seal(kind, part, body);
        self.payload(now, channel.path, seq, 0, payload);
    }
}

enum Stage {
    Waiting,
    Joining {
        cookie: Option<Cookie>,
        retry: Retry,
    },
    /// The answers are waited for until `until`; the first answer of all, without which nothing more is sent, until `gone`.
    Clocks {
        questions: VecDeque<(Nanos, u16)>,
        until: Nanos,
        gone: Nanos,
    },
    /// What is being measured.
    Parts {
        out: Option<Box<Source>>,
        back: Option<Box<Back>>,
    },
    Finished,
}

/// The direction from the far end, as this end has it.
struct Back {
    part: u8,
    sink: Sink,
    begin: Begin,
    retry: Retry,
    begun: bool,
    /// Where the flow beside the path's comes from: none, if there is to be none, or its probes have come.
    beside: Option<Retry>,
    ends: Nanos,
}

/// See the [module](self).
pub(super) struct ClientPath {
    channel: Channel,
    stage: Stage,
    pub waits: Waits,
    pub times: Times,
    stream: Stream,
    /// Directions that are still to be measured.
    left: VecDeque<Direction>,
    part: u8,
    /// Since when this part's time runs.
    since: Nanos,
    /// Questions on their way out of the host, by the number of their packet.
    asked: BTreeMap<u64, u32>,
    pub outcomes: BTreeMap<Direction, Outcome>,
    /// From a direction's first probe to its last, as this host saw them leave or come.
    pub probed: BTreeMap<Direction, (Nanos, Nanos)>,
    /// The longest that a direction took, all included.
    pub longest: Nanos,
    /// By direction what is known of other paths' bottlenecks.
    pub shared: BTreeMap<Direction, Vec<Shared>>,
    /// When it began, how many questions it has asked, and what it was given up for before any was answered.
    began: Nanos,
    questions: u32,
    pub down: Option<Down>,
    /// Whether pulses are sent now, and what became of the last ones.
    pulsing: bool,
    pub response: Option<Response>,
    /// Of the far end's pulses [IP byte].
    pub pulsed_bytes: u64,
    heard: Nanos,
    request: Request,
    granted: Budget,
}

impl ClientPath {
    /// `entropy`: the client's, of which the far end knows the nonce only.
    pub fn new(request: &Request, granted: &Opened, channel: Channel, waits: Waits, entropy: &Entropy) -> ClientPath {
        let number = sign(&entropy.nonce, &[b"first question", &entropy.session, &[channel.path]]);
        // the far end's grants are for all parts
        let share = MeasureLimits::share(granted.total, request.parts());
        let budget = Budget { bytes: request.budget.bytes.min(share.bytes), time: request.budget.time.min(share.time) };
        ClientPath {
            stage: Stage::Waiting,
            waits,
            times: Times::after(u32::from_be_bytes(number[..4].try_into().expect("four bytes"))),
            stream: Stream::new(request.seed, &format!("measure/path{}", channel.path)),
            left: request.directions.iter().copied().collect(),
            part: 0,
            since: Nanos::ZERO,
            asked: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            probed: BTreeMap::new(),
            longest: Nanos::ZERO,
            shared: BTreeMap::new(),
            began: Nanos::ZERO,
            questions: 0,
            down: None,
            pulsing: false,
            response: None,
            pulsed_bytes: 0,
            heard: Nanos::ZERO,
            request: request.clone(),
            granted: budget,
            channel,
        }
    }

    /// Begins; the first part's time runs since `since`. The session's first path is known to the far end already.
    pub fn begin(&mut self, now: Nanos, since: Nanos, is_known: bool) {
        self.since = since;
        self.heard = now;
        self.began = now;
        if is_known {
            self.clocks(now);
        } else {
            self.stage = Stage::Joining { cookie: None, retry: Retry::default() };
        }
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    /// One word, and how many trains have been reported.
    pub fn progress(&self) -> (&'static str, u64) {
        match &self.stage {
            Stage::Waiting | Stage::Finished => ("wait", 0),
            Stage::Joining { .. } => ("path", 0),
            Stage::Clocks { .. } => ("clock", 0),
            Stage::Parts { out: Some(source), .. } => ("out", source.reported()),
            Stage::Parts { back: Some(back), .. } => ("in", back.sink.trains()),
            Stage::Parts { .. } => ("wait", 0),
        }
    }

    /// What the group of questions takes [ns], without the way.
    fn apart(&self) -> Nanos {
        let (share, least, most) = APART;
        if self.request.sparing {
            return SPARING;
        }
        Nanos(self.granted.time.0 / share).clamp(least, most)
    }

    fn clocks(&mut self, now: Nanos) {
        let apart = self.apart().as_secs_f64();
        let light = self.request.effort == Effort::Light;
        let sizes = (0..QUESTIONS.0).map(|_| QUESTIONS.1);
        let larger = SIZES.into_iter().filter(|_| self.part == 0 && !light);
        let mut at = now;
        let stream = &mut self.stream;
        // at random, so that no period of the cross traffic is met in step
        let questions = sizes.chain(larger).map(|size| {
            let due = at;
            at += Nanos::from_secs_f64(apart * stream.between(0.5, 1.5));
            (due, size)
        });
        self.stage = Stage::Clocks { questions: questions.collect(), until: Nanos::MAX, gone: Nanos::MAX };
    }

    /// Whether waits are shared, see [`LONG`]. The other methods fill a direction, reports and all; a light measurement counts what
    /// is left after each, a thorough one fills the queue.
    fn overlaps(&self) -> bool {
        // a handshake that was repeated, for a loss or since it took so long, says nothing
        let long = self.waits.line(QUESTIONS.1).is_none_or(|rtt| rtt >= LONG.0 as f64);
        long && self.request.method == MethodName::Ride && self.request.effort == Effort::Usual
    }

    /// Goes on to the next direction, or to both, or is finished.
    fn parts(&mut self, now: Nanos, outbox: &mut Outbox) {
        let overlaps = self.overlaps();
        let count = if overlaps { self.left.len() } else { self.left.len().min(1) };
        if count == 0 {
            self.stage = Stage::Finished;
            return;
        }
        let used = now.saturating_sub(self.since);
        let used = if self.left.len() == count { used + self.closing() } else { used };
        self.stage = Stage::Parts { out: None, back: None };
        for direction in self.left.iter().take(count).copied().collect::<Vec<_>>() {
            self.part += 1;
            let limit = self.granted;
            let bytes = match self.request.effort {
                Effort::Light => outbox.ledger.share(self.channel.path, self.left.len() as u64).min(limit.bytes.0),
                _ => (limit.bytes.0 - limit.bytes.0 / 50).saturating_sub(OVERHEAD).max(limit.bytes.0 * 3 / 4),
            };
            // a long handshake leaves a thorough one nearly all of its time, in which it has to wait for reports too
            let least = match self.request.effort {
                Effort::Thorough { .. } => limit.time.0 / 20 * 19,
                _ => limit.time.0 / 2,
            };
            let time = limit.time.saturating_sub(used).max(Nanos(least));
            let budget = Budget { bytes: Bytes(bytes), time };
            if direction == Direction::In {
                outbox.ledger.expect(self.channel.path, bytes);
            }
            let Request { method, sparing, effort, .. } = self.request;
            let seed = self.request.seed ^ u64::from(self.part) << 32 ^ u64::from(self.channel.path) << 40;
            self.probe(now, direction, budget, seed, (method, sparing, effort));
        }
    }

    /// Pulses beside those of another path, once all directions are measured; an even seed: it is filled steadily at first.
    pub fn pulse(&mut self, now: Nanos, direction: Direction, budget: Budget, seed: u64) {
        self.part += 1;
        (self.pulsing, self.response, self.heard) = (true, None, now);
        self.stage = Stage::Parts { out: None, back: None };
        self.probe(now, direction, budget, seed, (MethodName::Pulses, false, Effort::Usual));
    }

    /// Begins this part's direction.
    fn probe(
        &mut self,
        now: Nanos,
        direction: Direction,
        budget: Budget,
        seed: u64,
        (method, sparing, effort): (MethodName, bool, Effort),
    ) {
        let handshake = if self.waits.line(LARGE).is_none() { now.saturating_sub(self.since) } else { Nanos::ZERO };
        let wait = self.waits.wait(LARGE).max(handshake);
        let Stage::Parts { out, back } = &mut self.stage else { return };
        match direction {
            Direction::Out => {
                let (session, path, part) = (self.channel.session, self.channel.path, self.part);
                let (signer, dscp) = (self.channel.send.clone(), self.request.dscp);
                let spec = Spec { session, path, part, signer, method, budget, sparing, effort, seed, dscp, wait };
                *out = Some(Box::new(Source::new(now, spec, &Room::boundless().share())));
            }
            Direction::In => {
                *back = Some(Box::new(Back {
                    part: self.part,
                    sink: Sink::new(&Room::boundless().share()),
                    begin: Begin { method, budget, sparing, effort, seed, wait },
                    retry: Retry::default(),
                    begun: false,
                    beside: matches!(effort, Effort::Thorough { .. }).then(Retry::default),
                    ends: now + budget.time * 2 + SILENCE * 2,
                }));
            }
        }
    }

    /// How long the last comparison of the clocks takes.
    fn closing(&self) -> Nanos {
        match self.is_far() {
            true => Nanos::ZERO,
            false => self.apart() * QUESTIONS.0 as u64 + self.waits.wait(QUESTIONS.1),
        }
    }

    /// See [`WAITED`].
    fn is_far(&self) -> bool {
        self.waits.line(QUESTIONS.1).is_some_and(|rtt| rtt > (self.granted.time.0 / WAITED) as f64)
    }

    /// A direction has come to this.
    fn conclude(&mut self, now: Nanos, direction: Direction, outcome: Outcome, outbox: &mut Outbox) {
        if std::mem::take(&mut self.pulsing) {
            if direction == Direction::In {
                self.pulsed_bytes = self.pulsed_bytes.saturating_add(outcome.bytes);
            }
            self.response = outcome.response;
            self.stage = Stage::Finished;
            return;
        }
        self.left.retain(|left| *left != direction);
        self.outcomes.insert(direction, outcome);
        self.longest = self.longest.max(now.saturating_sub(self.since));
        if let Stage::Parts { out, back } = &mut self.stage {
            match direction {
                Direction::Out => *out = None,
                Direction::In => *back = None,
            }
            if out.is_some() || back.is_some() {
                return;
            }
        }
        self.since = now;
        self.times.end_group();
        match self.is_far() {
            true => self.parts(now, outbox),
            false => self.clocks(now),
        }
    }

    /// The path is of no use, or the measurement is over: what is not known will not be.
    pub fn give_up(&mut self, why: Reason) {
        if std::mem::take(&mut self.pulsing) {
            self.stage = Stage::Finished;
            return;
        }
        if let Stage::Parts { out: Some(source), .. } = &mut self.stage {
            source.stop(why);
            self.left.retain(|left| *left != Direction::Out);
            self.outcomes.extend(source.outcome().map(|outcome| (Direction::Out, outcome)));
        }
        self.outcomes.extend(self.left.drain(..).map(|direction| (direction, Outcome::none(why))));
        self.times.end_group();
        self.stage = Stage::Finished;
    }

    /// Nothing has come back.
    fn is_down(&mut self, now: Nanos) {
        let seconds = (now.saturating_sub(self.began).as_secs_f64() * 10.0).ceil() / 10.0;
        self.down = Some(Down { probes: self.questions, seconds });
        self.give_up(Reason::NoAnswer);
    }

    /// A probe of a direction has left this host or come to it.
    fn saw(&mut self, direction: Direction, at: Nanos) {
        if !self.pulsing {
            let (first, last) = self.probed.entry(direction).or_insert((at, at));
            (*first, *last) = ((*first).min(at), (*last).max(at));
        }
    }

    /// A packet has left, or never will.
    pub fn left(&mut self, now: Nanos, seq: u64, left: Option<Left>) {
        if seq & CONTROL == 0 {
            if let Stage::Parts { out: Some(source), .. } = &mut self.stage {
                source.left(now, seq, left);
                if let Some(Left { at, .. }) = left {
                    self.saw(Direction::Out, at);
                }
            }
        } else if let Some(id) = self.asked.remove(&seq)
            && let Some(Left { at, .. }) = left
        {
            self.times.left(id, at, &mut self.waits);
        }
    }

    /// A datagram of this path's session has come; false if it is not the far end's, or not new.
    pub fn receive(&mut self, now: Nanos, datagram: &Datagram, at: Nanos, batch: Batch, outbox: &mut Outbox) -> bool {
        if datagram.kind == Kind::PathCookie {
            // said before there is state at the other end: without a number
            let right = datagram.is_signed(&self.channel.receive);
            if let (true, Stage::Joining { cookie: cookie @ None, retry }) = (right, &mut self.stage) {
                *cookie = Cookie::decode(datagram.body);
                *retry = Retry::default();
            }
            return right;
        }
        if self.channel.accept(datagram).is_err() {
            return false;
        }
        self.heard = now;
        let part = datagram.part;
        match (datagram.kind, &mut self.stage) {
            (Kind::PathJoined, Stage::Joining { .. }) => self.clocks(now),
            (Kind::Stamp, _) => {
                if let Some(stamp) = Stamp::decode(datagram.body) {
                    self.times.answered(stamp, at, &mut self.waits);
                }
            }
            (Kind::Report, Stage::Parts { out: Some(source), .. }) if part == source.part() => {
                if let Some(pieces) = report::decode(datagram.body) {
                    source.report(now, at, &pieces);
                }
            }
            (Kind::Probe, Stage::Parts { back: Some(back), .. }) if part == back.part => {
                back.begun = true;
                if let Some(head) = ProbeHead::of(datagram) {
                    back.beside.take_if(|_| head.train & BESIDE != 0);
                    back.sink.probe(now, head, at, batch);
                    self.saw(Direction::In, at);
                }
            }
            (Kind::Ask, Stage::Parts { back: Some(back), .. }) if part == back.part => {
                back.begun = true;
                if let Some(trains) = decode_ask(datagram.body) {
                    back.sink.ask(now, &trains);
                }
            }
            (Kind::Outcome, stage) => {
                let current = matches!(stage, Stage::Parts { back: Some(back), .. } if part == back.part);
                if let Some(outcome) = Outcome::decode(datagram.body) {
                    self.say_beside(now, Kind::Noted, part, &[], outbox);
                    if current {
                        self.conclude(now, Direction::In, outcome, outbox);
                    }
                }
            }
            _ => {}
        }
        true
    }

    /// Says something that goes the same way as the probes, if there are any.
    fn say_beside(&mut self, now: Nanos, kind: Kind, part: u8, body: &[u8], outbox: &mut Outbox) {
        let before = outbox.bytes;
        outbox.say(now, &mut self.channel, kind, part, body);
        if let Stage::Parts { out: Some(source), .. } = &mut self.stage {
            source.beside(outbox.bytes - before);
        }
    }

    /// Says something without a body.
    pub fn say(&mut self, now: Nanos, kind: Kind, outbox: &mut Outbox) {
        outbox.say(now, &mut self.channel, kind, 0, &[]);
    }

    /// This host had no room for so many packets.
    pub fn missed(&mut self, packets: u32) {
        if let Stage::Parts { back: Some(back), .. } = &mut self.stage {
            back.sink.missed(packets);
        }
    }

    /// All that came before `until` is told.
    pub fn timer(&mut self, now: Nanos, until: Nanos) {
        if let Stage::Parts { back: Some(back), .. } = &mut self.stage {
            back.sink.timer(now, until);
        }
    }

    /// Does what is due.
    pub fn pump(&mut self, now: Nanos, outbox: &mut Outbox) {
        while self.step(now, outbox) {}
    }

    /// One thing; false if there is nothing to do now.
    fn step(&mut self, now: Nanos, outbox: &mut Outbox) -> bool {
        let path = self.channel.path;
        let overlaps = self.overlaps() && !self.left.is_empty();
        match &mut self.stage {
            Stage::Waiting | Stage::Finished => false,
            Stage::Joining { cookie, retry } => {
                if !retry.is_due(now, &self.waits, QUESTIONS.1) {
                    return false;
                }
                if retry.tries > TRIES || (retry.tries > FEW_TRIES && now >= self.began + SILENCE) {
                    self.is_down(now);
                    return true;
                }
                self.questions += 1;
                let (kind, body) = match cookie {
                    Some(cookie) => (Kind::PathJoin, cookie.encode()),
                    None => (Kind::PathHello, vec![0; PADDED]),
                };
                outbox.say(now, &mut self.channel, kind, 0, &body);
                true
            }
            Stage::Clocks { questions, until, gone } => {
                if let Some(&(due, size)) = questions.front() {
                    if due > now {
                        return false;
                    }
                    questions.pop_front();
                    let id = self.times.ask(size);
                    self.questions += 1;
                    let (seq, payload) = self.channel.seal(Kind::Time, 0, &id.to_be_bytes());
                    self.asked.insert(CONTROL | seq, id);
                    outbox.payload(now, path, seq, size, payload);
                    if questions.is_empty() {
                        let most = Nanos(self.granted.time.0 / WAITED);
                        *until = now + self.waits.wait(size).max(self.waits.wait(LARGE)).min(most);
                        *gone = now + SILENCE;
                    }
                    return true;
                }
                if !self.times.is_proven() {
                    if now < *gone {
                        return false;
                    }
                    self.is_down(now);
                    return true;
                }
                if !overlaps {
                    if self.times.is_pending() && now < *until {
                        return false;
                    }
                    self.times.end_group();
                }
                self.parts(now, outbox);
                true
            }
            Stage::Parts { .. } => self.step_out(now, outbox) || self.step_back(now, outbox),
        }
    }

    /// The same of the direction out.
    fn step_out(&mut self, now: Nanos, outbox: &mut Outbox) -> bool {
        let Stage::Parts { out: Some(source), .. } = &mut self.stage else { return false };
        let part = source.part();
        match source.next(now, &mut outbox.granted) {
            Some(SourceAction::Train(train)) => {
                let bytes = train.count() as u64 * u64::from(train.size);
                outbox.ledger.expect(self.channel.path, bytes);
                outbox.bytes += bytes;
                outbox.last = now + train.duration();
                outbox.actions.push_back(Action::SendTrain(train));
            }
            Some(SourceAction::Ask(body)) => outbox.say(now, &mut self.channel, Kind::Ask, part, &body),
            None => match source.outcome() {
                Some(outcome) => self.conclude(now, Direction::Out, outcome, outbox),
                None => return false,
            },
        }
        true
    }

    /// And of the other.
    fn step_back(&mut self, now: Nanos, outbox: &mut Outbox) -> bool {
        let wait = self.waits.wait(LARGE);
        let Stage::Parts { back: Some(back), .. } = &mut self.stage else { return false };
        let part = back.part;
        if let Some(body) = back.sink.next() {
            self.say_beside(now, Kind::Report, part, &body, outbox);
            return true;
        }
        if now >= back.ends || now >= self.heard + SILENCE + wait {
            let why = if back.begun { Reason::FeedbackLost } else { Reason::NoAnswer };
            self.conclude(now, Direction::In, Outcome::none(why), outbox);
            return true;
        }
        if !back.begun && back.retry.is_due(now, &self.waits, LARGE) {
            let body = back.begin.encode();
            outbox.say(now, &mut self.channel, Kind::Begin, part, &body);
            return true;
        }
        // one that is lost would leave the probes beside without a way of their own
        if let Some(retry) = back.beside.as_mut().filter(|retry| retry.tries < TRIES)
            && retry.is_due(now, &self.waits, LARGE)
        {
            let (seq, payload) = self.channel.seal(Kind::Beside, part, &[]);
            outbox.beside(now, self.channel.path, seq, payload);
            return true;
        }
        false
    }

    /// When [`ClientPath::pump`] is due.
    pub fn wake(&self) -> Nanos {
        match &self.stage {
            Stage::Waiting | Stage::Finished => Nanos::MAX,
            Stage::Joining { retry, .. } => retry.due,
            Stage::Clocks { questions, until, gone } => {
                let end = if self.times.is_proven() { *until } else { *gone };
                questions.front().map_or(end, |question| question.0)
            }
            Stage::Parts { out, back } => {
                let source = out.as_ref().map_or(Nanos::MAX, |source| source.wake());
                back.as_ref().map_or(Nanos::MAX, |back| self.wake_back(back)).min(source)
            }
        }
    }

    fn wake_back(&self, back: &Back) -> Nanos {
        let begin = if back.begun { Nanos::MAX } else { back.retry.due };
        let beside = back.beside.filter(|retry| retry.tries < TRIES).map_or(Nanos::MAX, |retry| retry.due);
        let silent = self.heard + SILENCE + self.waits.wait(LARGE);
        back.sink.wake().min(begin).min(beside).min(back.ends).min(silent)
    }
}
