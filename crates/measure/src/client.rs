//! The client's end of a measurement: it opens a session, waits for its turn, lets its paths measure, and sums up.

mod pairs;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::delay::Waits;
use pathcast_estimate::{Budget, Effort, Value};
use pathcast_session::Entropy;

use super::bucket::Grant;
use super::client_path::{ClientPath, Outbox, Retry, SILENCE, TRIES};
use super::keys::{SessionKeys, greeting, is_of_before};
use super::ledger::Ledger;
use super::limits::MeasureLimits;
use super::messages::{ClockInfo, Cookie, Denial, Denied, Hello, Open, Opened, Queued};
use super::outcome::{Outcome, Reason};
use super::request::{Direction, Request};
use super::result::{Directions, Document, Path, Refusal, SharedWith, direction};
use super::source::Left;
use super::times::Times;
use super::wire::{BEFORE, Channel, Datagram, Kind, VERSION};
use crate::machine::{Action, Batch, Event, Machine, Progress};
use pairs::Pairs;

/// A client that waits, or has nothing else to say, shows so often that it is alive.
const ALIVE: Nanos = Nanos::secs(1);
/// So long the far end may let a client wait for its turn, whatever place it tells.
const QUEUE: Nanos = Nanos::secs(1800);
/// The same where bytes are dear: to wait costs some 200 of them a second.
const QUEUE_LIGHT: Nanos = Nanos::secs(60);
/// After so many greetings without an answer it is asked too whether the far end speaks the version before.
const PATIENT: u32 = 2;
/// Opens without an answer, and the cookie is given up; cookies given up, and the far end is.
const OPENS: u32 = 4;
const COOKIES: u32 = 3;
/// So often the goodbye is said until it is answered, and so long after each: one that is lost costs the next client of the
/// key a wait, one that nobody answers the user a half second.
const GOODBYES: u32 = 3;
const GOODBYE: Nanos = Nanos::millis(150);
/// More paths are not measured.
const PATHS: usize = 64;
/// From one word about progress to the next.
const TELL: Nanos = Nanos::millis(100);

enum Phase {
    /// Hello on all paths; the first cookie's path is the session's first.
    Hello(Retry),
    Opening {
        cookie: Cookie,
        retry: Retry,
    },
    /// Since when.
    Queued(Nanos),
    Measuring,
    /// The goodbye is not answered.
    Leaving {
        document: Vec<u8>,
        said: u32,
        due: Nanos,
    },
    Done,
}

/// The client. See [`crate::measure`].
pub struct Client {
    request: Request,
    entropy: Entropy,
    phase: Phase,
    /// Cookies given up.
    cookies: u32,
    keys: Option<SessionKeys>,
    /// Of the path on which the session was opened, until its `ClientPath` has it.
    channel: Option<Channel>,
    primary: u8,
    waits: Waits,
    /// When what is not answered yet was first said, for its round trip.
    said: Option<Nanos>,
    paths: Vec<ClientPath>,
    pairs: Pairs,
    theirs: ClockInfo,
    outbox: Outbox,
    started: Nanos,
    /// How long it waited in the far end's queue.
    queued: Nanos,
    /// What the far end grants in all, and what is left of that to a direction of a path.
    grants: Option<[Budget; 2]>,
    heard: Nanos,
    /// The last Poll.
    polled: Nanos,
    received_bytes: u64,
    /// Of the far end's probes, as they came.
    probed_bytes: u64,
    refused: Option<Refusal>,
    told: (Option<Progress>, Nanos),
    wake: Nanos,
}

impl Client {
    /// A measurement that begins when it is started. `entropy` comes from the system's generator and is used once.
    pub fn new(request: Request, entropy: Entropy) -> Client {
        let request = Request { paths: request.paths.clamp(1, PATHS), dscp: request.dscp.min(63), ..request };
        let mut directions: Vec<Direction> = Vec::new();
        for direction in &request.directions {
            if !directions.contains(direction) {
                directions.push(*direction);
            }
        }
        Client {
            outbox: Outbox {
                actions: VecDeque::new(),
                bytes: 0,
                last: Nanos::ZERO,
                dscp: request.dscp,
                granted: Grant::new(Rate(0)),
                ledger: Ledger::new(request.effort),
            },
            request: Request { directions, ..request },
            entropy,
            phase: Phase::Hello(Retry::default()),
            cookies: 0,
            keys: None,
            channel: None,
            primary: 0,
            waits: Waits::default(),
            said: None,
            paths: Vec::new(),
            pairs: Pairs::default(),
            theirs: ClockInfo::default(),
            started: Nanos::ZERO,
            queued: Nanos::ZERO,
            grants: None,
            heard: Nanos::ZERO,
            polled: Nanos::ZERO,
            received_bytes: 0,
            probed_bytes: 0,
            refused: None,
            told: (None, Nanos::ZERO),
            wake: Nanos::MAX,
        }
    }

    fn hello(&self) -> Hello {
        Hello { key_id: self.request.key.id().into(), nonce: self.entropy.nonce }
    }

    fn ours(&self, keys: &SessionKeys) -> ClockInfo {
        ClockInfo::new(&self.request.clock, |host| keys.clock_digest(host))
    }

    /// What all parts may take, with room for what a far end counts otherwise.
    fn total(&self) -> Budget {
        let parts = self.request.parts();
        let Budget { bytes, time } = self.request.budget;
        Budget {
            bytes: Bytes((bytes.0 * parts).saturating_mul(5) / 4 + 100_000),
            time: Nanos((time.0 * parts).saturating_mul(5) / 2) + Nanos::secs(20),
        }
    }

    fn progress(&mut self, now: Nanos, phase: &'static str, done: u64, of: u64) {
        let progress = Progress { phase, done, of };
        let (last, at) = self.told;
        if last.is_none_or(|last| last.phase != phase || (last != progress && now >= at + TELL)) {
            self.told = (Some(progress), now);
            self.outbox.actions.push_back(Action::Progress(progress));
        }
    }

    fn refuse(&mut self, now: Nanos, code: &'static str, message: String, limit: Option<u64>) {
        self.refused = Some(Refusal { code, message, limit });
        self.finish(now, Reason::SessionLost);
    }

    fn denied(&mut self, now: Nanos, denied: &Denied) {
        self.refuse(now, denied.denial.code(), denied.denial.message(denied.limit), Some(denied.limit));
    }

    fn no_answer(&mut self, now: Nanos, what: &str) {
        let key = self.request.key.id();
        let message = format!("{what}: is the far end running, its UDP port reachable, and the key `{key}` its own?");
        self.refuse(now, "no-answer", message, None);
    }

    fn receive(&mut self, now: Nanos, path: usize, packet: &[u8], at: Nanos, batch: Batch) -> Option<()> {
        if matches!(self.phase, Phase::Hello(_)) && is_of_before(&self.request.key, &self.entropy.nonce, packet) {
            self.speaks_before(now);
            return Some(());
        }
        let datagram = Datagram::parse(packet).ok().filter(|datagram| usize::from(datagram.path) == path)?;
        match (&mut self.phase, datagram.kind) {
            (Phase::Hello(_), Kind::Cookie) => {
                let cookie = Cookie::decode(datagram.body)?;
                let keys = SessionKeys::new(&self.request.key, &self.entropy.nonce, &cookie.digest);
                if !datagram.is_signed(&keys.far_end) || datagram.session != keys.session {
                    return None;
                }
                self.primary = datagram.path;
                self.channel =
                    Some(Channel::new(keys.session, datagram.path, keys.client.clone(), keys.far_end.clone()));
                self.keys = Some(keys);
                self.round_trip(now);
                self.phase = Phase::Opening { cookie, retry: Retry::default() };
            }
            (Phase::Hello(_) | Phase::Done, _) => return None,
            (Phase::Leaving { .. }, kind) => {
                let keys = self.keys.as_ref()?;
                if kind == Kind::Bye && datagram.session == keys.session && datagram.is_signed(&keys.far_end) {
                    self.left();
                }
                return None; // the account is closed
            }
            (_, Kind::Denied) => {
                let keys = self.keys.as_ref()?;
                if datagram.session != keys.session || !datagram.is_signed(&keys.far_end) {
                    return None;
                }
                self.denied(now, &Denied::decode(datagram.body)?);
            }
            (Phase::Opening { .. } | Phase::Queued(_), kind) => {
                let channel = self.channel.as_mut().filter(|channel| channel.session == datagram.session)?;
                if channel.path != datagram.path || channel.accept(&datagram).is_err() {
                    return None;
                }
                self.heard = now;
                match kind {
                    Kind::Queued => {
                        let queued = Queued::decode(datagram.body)?;
                        self.round_trip(now);
                        if !matches!(self.phase, Phase::Queued(_)) {
                            self.phase = Phase::Queued(now);
                        }
                        let place = u64::from(queued.ahead) + 1;
                        self.progress(now, "queue", 0, place);
                    }
                    Kind::Opened => self.measure(now, &Opened::decode(datagram.body)?),
                    _ => {}
                }
            }
            (Phase::Measuring, _) => {
                let session = self.keys.as_ref()?.session;
                let client_path = self.paths.get_mut(path).filter(|_| datagram.session == session)?;
                if !client_path.receive(now, &datagram, at, batch, &mut self.outbox) {
                    return None;
                }
                self.heard = now;
            }
        }
        Some(())
    }

    fn speaks_before(&mut self, now: Nanos) {
        let message = format!(
            "the far end speaks version {BEFORE} of the measurement's protocol, this end version {VERSION}: install the \
             same pathcast at both ends"
        );
        self.refuse(now, "other-version", message, None);
    }

    /// An answer has come to what was said once.
    fn round_trip(&mut self, now: Nanos) {
        if let Some(said) = self.said.take() {
            self.waits.answered(200, now.saturating_sub(said));
        }
    }

    fn measure(&mut self, now: Nanos, opened: &Opened) {
        let queued = matches!(self.phase, Phase::Queued(_));
        if let Phase::Queued(since) = self.phase {
            self.queued = now.saturating_sub(since);
        }
        self.round_trip(now);
        let (granted, parts) = (opened.total.bytes, self.request.parts());
        let (share, wanted) = (MeasureLimits::share(opened.total, parts), self.request.budget);
        let least = MeasureLimits::LEAST_BYTES.min(wanted.bytes.0);
        if share.bytes.0 < least {
            let least = Bytes(least * 5 / 4 * parts);
            let message = format!("the far end allows {granted} for a session, and these paths need {least} at least");
            return self.refuse(now, Denial::Bytes.code(), message, Some(granted.0));
        }
        self.grants = Some([opened.total, share]);
        let (Some(channel), Some(keys)) = (self.channel.take(), &self.keys) else { return };
        self.theirs = opened.clock;
        self.outbox.granted = Grant::new(opened.rate);
        for path in 0..self.request.paths as u8 {
            let channel = match path == self.primary {
                true => channel.clone(),
                false => Channel::new(keys.session, path, keys.client.clone(), keys.far_end.clone()),
            };
            self.paths.push(ClientPath::new(&self.request, opened, channel, self.waits.clone(), &self.entropy));
        }
        self.phase = Phase::Measuring;
        // the handshake counts too, but not the time in the queue
        self.begin_paths(now, if queued { now } else { self.started });
    }

    /// Lets paths begin whose turn it is.
    fn begin_paths(&mut self, now: Nanos, since: Nanos) {
        let busy = self.paths.iter().any(|client_path| !client_path.is_waiting() && !client_path.is_finished());
        if busy && !self.request.at_once {
            return;
        }
        let most = if self.request.at_once { self.paths.len() } else { 1 };
        let primary = usize::from(self.primary);
        let waiting = self.paths.iter_mut().enumerate().filter(|(_, client_path)| client_path.is_waiting());
        waiting.take(most).for_each(|(path, client_path)| client_path.begin(now, since, path == primary));
    }

    /// Does what is due.
    fn pump(&mut self, now: Nanos) {
        match &mut self.phase {
            Phase::Hello(retry) => {
                if !retry.is_due(now, &self.waits, 200) {
                    return;
                }
                if retry.tries > TRIES {
                    let waited = now.saturating_sub(self.started).as_secs_f64();
                    return self.no_answer(now, &format!("no answer within {waited:.1} s"));
                }
                // of a repeated question nobody knows which one was answered (Karn)
                self.said = (retry.tries == 1).then_some(now);
                let ask_before = retry.tries > PATIENT;
                let signer = greeting(&self.request.key);
                let body = self.hello().encode();
                for path in 0..self.request.paths as u8 {
                    self.outbox.payload(now, path, 0, 0, signer.seal(Kind::Hello, path, 0, 0, &body));
                }
                if ask_before {
                    let hello = signer.seal(Kind::Hello, 0, 0, 0, &body);
                    self.outbox.payload(now, 0, 0, 0, signer.as_of(BEFORE, hello));
                }
                self.progress(now, "hello", 0, 0);
            }
            Phase::Opening { cookie, retry } => {
                if !retry.is_due(now, &self.waits, 200) {
                    return;
                }
                if retry.tries > OPENS {
                    self.cookies += 1;
                    if self.cookies == COOKIES {
                        return self.no_answer(now, "the far end greets and does not open a session");
                    }
                    // perhaps too old, or of a far end that has begun anew
                    self.phase = Phase::Hello(Retry { due: now, tries: OPENS });
                    return self.pump(now);
                }
                self.said = (retry.tries == 1).then_some(now);
                let cookie = *cookie;
                let Some(keys) = &self.keys else { return };
                let open = Open {
                    hello: self.hello(),
                    cookie,
                    paths: self.request.paths as u8,
                    dscp: self.request.dscp,
                    total: self.total(),
                    clock: self.ours(keys),
                };
                let payload = keys.client.seal(Kind::Open, self.primary, keys.session, 0, &open.encode());
                self.outbox.payload(now, self.primary, 0, 0, payload);
            }
            Phase::Queued(since) => {
                let most = if self.request.effort == Effort::Light { QUEUE_LIGHT } else { QUEUE };
                if now >= *since + most {
                    let waited = most.as_secs_f64() / 60.0;
                    let message = format!("the far end lets others measure for {waited:.0} min now: try again later");
                    return self.refuse(now, "queue", message, None);
                }
                if now >= self.heard + SILENCE * 2 {
                    return self.no_answer(now, "the far end fell silent");
                }
                self.poll(now);
            }
            Phase::Measuring => {
                for client_path in &mut self.paths {
                    client_path.pump(now, &mut self.outbox);
                }
                self.begin_paths(now, now);
                self.paths.iter_mut().for_each(|client_path| client_path.pump(now, &mut self.outbox));
                if self.paths.iter().all(ClientPath::is_finished)
                    && !self.pairs.next(now, &self.request, &mut self.paths)
                {
                    return self.finish(now, Reason::Stopped);
                }
                self.paths.iter_mut().for_each(|client_path| client_path.pump(now, &mut self.outbox));
                let active =
                    self.paths.iter().filter(|client_path| !client_path.is_waiting() && !client_path.is_finished());
                if let Some((phase, done)) = active.map(ClientPath::progress).next() {
                    self.progress(now, phase, done, 0);
                }
                self.poll(now);
            }
            Phase::Leaving { said, due, .. } => {
                if now < *due {
                    return;
                }
                if *said == GOODBYES {
                    return self.left();
                }
                (*said, *due) = (*said + 1, now + GOODBYE);
                self.bye(now);
            }
            Phase::Done => {}
        }
    }

    /// Says that it is still here, if nothing else did.
    fn poll(&mut self, now: Nanos) {
        if now < self.outbox.last.max(self.polled) + ALIVE {
            return;
        }
        self.polled = now;
        let primary = usize::from(self.primary);
        match (&mut self.channel, self.paths.get_mut(primary)) {
            (Some(channel), _) => self.outbox.say(now, channel, Kind::Poll, 0, &[]),
            (None, Some(client_path)) => client_path.say(now, Kind::Poll, &mut self.outbox),
            (None, None) => {}
        }
    }

    /// Ends with what is known: of an open session when that has been said.
    fn finish(&mut self, now: Nanos, why: Reason) {
        let opened = matches!(self.phase, Phase::Queued(_) | Phase::Measuring);
        self.paths.iter_mut().for_each(|client_path| client_path.give_up(why));
        self.phase = Phase::Leaving { document: self.document(now), said: 0, due: now };
        match opened {
            true => self.pump(now),
            false => self.left(),
        }
    }

    fn bye(&mut self, now: Nanos) {
        let primary = usize::from(self.primary);
        match (&mut self.channel, self.paths.get_mut(primary)) {
            (Some(channel), _) => self.outbox.say(now, channel, Kind::Bye, 0, &[]),
            (None, Some(client_path)) => client_path.say(now, Kind::Bye, &mut self.outbox),
            (None, None) => {}
        }
    }

    /// The far end knows, or never will.
    fn left(&mut self) {
        if let Phase::Leaving { document, .. } = std::mem::replace(&mut self.phase, Phase::Done) {
            self.outbox.actions.push_back(Action::Done(document));
        }
    }

    /// What is known of every other path's bottlenecks.
    fn shared_with(&self, path: usize) -> Vec<SharedWith> {
        let mut all = Vec::new();
        for &way in &self.request.directions {
            let known = self.paths.get(path).and_then(|client_path| client_path.shared.get(&way));
            for other in (0..self.request.paths).filter(|&other| other != path) {
                let found = known.and_then(|known| known.iter().find(|shared| shared.path == other));
                let probability = found.map_or(Value::default(), |shared| shared.probability);
                all.push(SharedWith { path: other, direction: way.word(), probability });
            }
        }
        all
    }

    fn document(&self, now: Nanos) -> Vec<u8> {
        let none = (Times::default(), Default::default());
        let (mut far_bytes, mut dearest) = (0u64, 0u64);
        let paths = (0..self.request.paths).map(|path| {
            let client_path = self.paths.get(path);
            let (times, outcomes) =
                client_path.map_or((&none.0, &none.1), |client_path| (&client_path.times, &client_path.outcomes));
            let ours = self.keys.as_ref().map_or(ClockInfo::default(), |keys| self.ours(keys));
            let clocks = times.compare(ours, self.theirs);
            let [there, back] = times.delays();
            let mut directions = Directions::default();
            for &which in &self.request.directions {
                let unknown = Outcome::none(Reason::NoAnswer);
                let outcome = outcomes.get(&which).unwrap_or(&unknown);
                dearest = dearest.max(outcome.bytes);
                let small = outcome.small.iter().copied();
                let delay = match which {
                    Direction::Out => clocks.there(&there.iter().copied().chain(small).collect::<Vec<_>>()),
                    Direction::In => {
                        far_bytes = far_bytes.saturating_add(outcome.bytes);
                        clocks.back(&back.iter().copied().chain(small).collect::<Vec<_>>())
                    }
                };
                let since = |at: Nanos| at.saturating_sub(self.started).as_secs_f64();
                let probed = client_path.and_then(|client_path| client_path.probed.get(&which));
                let probed = probed.map(|&(first, last)| [since(first), since(last)]);
                directions.put(which, direction(outcome, self.request.method, delay, &clocks, probed));
            }
            far_bytes = far_bytes.saturating_add(client_path.map_or(0, |client_path| client_path.pulsed_bytes));
            let rtt_s = times.round_trip().map_or(Value::none(Reason::NoAnswer), Value::bare);
            let down = client_path.and_then(|client_path| client_path.down);
            Path { rtt_s, down, shared_with: self.shared_with(path), directions }
        });
        let paths = paths.collect();
        let longest = self.paths.iter().map(|client_path| client_path.longest).max().unwrap_or_default();
        let wanted = self.request.budget;
        let less = self.grants.into_iter().flat_map(|[all, share]| {
            let bytes = share.bytes < wanted.bytes && dearest > share.bytes.0 / 2;
            let time = share.time < wanted.time && longest.0 > share.time.0 / 2;
            let bytes = bytes.then(|| ("bytes", all.bytes.to_string(), share.bytes.to_string()));
            bytes.into_iter().chain(time.then(|| ("time", all.time.to_string(), share.time.to_string())))
        });
        let told = |(limit, granted, share)| {
            format!(
                "the far end grants {granted} for a measurement (its limit `{limit}`), {share} for each direction of a path: \
                 fewer paths, or a higher limit, tell more"
            )
        };
        let document = Document {
            paths,
            probe_bytes: (self.outbox.bytes + self.received_bytes).saturating_add(far_bytes.max(self.probed_bytes)),
            elapsed_s: now.saturating_sub(self.started).as_secs_f64(),
            queued_s: self.queued.as_secs_f64(),
            notes: less.map(told).collect(),
            method: self.request.method.to_string(),
            refused: self.refused.clone(),
        };
        serde_json::to_vec(&document).expect("text, numbers and words only")
    }

    /// When it wants to be woken.
    fn due(&self) -> Nanos {
        let alive = self.outbox.last.max(self.polled) + ALIVE;
        match &self.phase {
            Phase::Hello(retry) | Phase::Opening { retry, .. } => retry.due,
            Phase::Queued(since) => alive.min(self.heard + SILENCE * 2).min(*since + QUEUE),
            Phase::Measuring => self.paths.iter().map(ClientPath::wake).min().unwrap_or(Nanos::MAX).min(alive),
            Phase::Leaving { due, .. } => *due,
            Phase::Done => Nanos::MAX,
        }
    }
}

impl Machine for Client {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => (self.started, self.heard) = (now, now),
            Event::Sent { path, seq, at, handed } => {
                if let Some(client_path) = self.paths.get_mut(path) {
                    client_path.left(now, seq, Some(Left { at, handed }));
                }
            }
            Event::Unsent { path, seq } => {
                if let Some(client_path) = self.paths.get_mut(path) {
                    client_path.left(now, seq, None);
                }
            }
            Event::Received { path, packet, size, at, batch, .. } => {
                // probes are counted by those who send them, but not below what came
                let probe = Datagram::parse(packet).is_ok_and(|datagram| datagram.kind == Kind::Probe);
                if self.receive(now, path, packet, at, batch).is_some() {
                    self.outbox.ledger.heard(path, size, packet);
                    *(if probe { &mut self.probed_bytes } else { &mut self.received_bytes }) += u64::from(size);
                }
            }
            Event::Missed { path, packets } => {
                if let Some(client_path) = self.paths.get_mut(path) {
                    client_path.missed(packets);
                }
            }
            Event::Timer => {
                let until = std::mem::replace(&mut self.wake, Nanos::MAX).min(now);
                self.paths.iter_mut().for_each(|client_path| client_path.timer(now, until));
            }
            Event::Stop => {
                if !matches!(self.phase, Phase::Leaving { .. } | Phase::Done) {
                    self.finish(now, Reason::Stopped);
                }
                self.left(); // who stops it does not wait
            }
        }
        self.pump(now);
    }

    fn next(&mut self, _now: Nanos) -> Option<Action> {
        if let Some(action) = self.outbox.actions.pop_front() {
            return Some(action);
        }
        let due = self.due();
        (due != self.wake).then(|| {
            self.wake = due;
            Action::WakeAt(due)
        })
    }
}
