//! The far end of one connection: control or data, as its first message says.

use std::net::IpAddr;

use pathcast_base::Nanos;

use super::admission::Place;
use super::frame::{Frame, FrameError, FrameReader, Kind};
use super::keys::{OPEN_KEY, SessionKeys, sign, signed, verify};
use super::message::{Attach, Denial, Hello, MessageError, Receipt, Refusal, SessionId, Welcome, sequence};
use super::seen::{LOOK, Seen};
use super::service::{Note, Service, Session};

/// How long a finished connection is kept so that its last words are read before it goes.
const LINGER: Nanos = Nanos::secs(2);

/// Random bytes for one connection, from the system's generator.
#[derive(Clone, Copy)]
pub struct Entropy {
    /// The server's half of the salt.
    pub nonce: [u8; 32],
    /// The name of the session, should it become one.
    pub session: SessionId,
}

enum State {
    /// Nothing but noise so far.
    Fresh,
    /// Hello was right; the client has yet to show that it was not a replay.
    Greeted {
        keys: SessionKeys,
        key_id: String,
    },
    /// A session.
    Open {
        keys: SessionKeys,
        next: u64,
    },
    /// A transfer.
    Receiving {
        keys: SessionKeys,
        session: SessionId,
        transfer: u64,
        key_id: String,
        bytes: u64,
        received: u64,
        first: Option<Nanos>,
        /// Given back with the transfer.
        _place: Place,
    },
    /// Who looks for what lies between: asked for [`Seen`] by these numbers, which wait for an answer.
    Looking {
        keys: SessionKeys,
        session: SessionId,
        asked: Vec<u64>,
        /// What it sees itself.
        told: Option<Seen>,
        /// Given back with the connection.
        _place: Place,
    },
    /// The last words are said.
    Closing,
    Closed,
}

/// The far end of one connection. The driver brings bytes and time, sends [`Connection::output`], closes when
/// [`Connection::closing`] says so and its output is out, and calls [`Connection::end`] at the end in every case.
pub struct Connection {
    id: u64,
    source: IpAddr,
    entropy: Entropy,
    state: State,
    reader: FrameReader,
    output: Vec<u8>,
    /// Accepted, last progress or begin of closing, by state.
    since: Nanos,
}

/// Why a connection is closed: for the client in coarse words, for the log in fine ones.
enum CloseReason {
    Key(&'static str),
    Garbage(&'static str),
    Version,
}

impl From<FrameError> for CloseReason {
    fn from(e: FrameError) -> Self {
        match e {
            FrameError::Version { .. } => CloseReason::Version,
            FrameError::Magic => CloseReason::Garbage("not this protocol"),
            FrameError::Kind(_) => CloseReason::Garbage("unknown message type"),
            FrameError::TooLong(_) => CloseReason::Garbage("message too long"),
        }
    }
}
impl From<MessageError> for CloseReason {
    fn from(_: MessageError) -> Self {
        CloseReason::Garbage("malformed message")
    }
}

impl Connection {
    pub(super) fn new(id: u64, source: IpAddr, now: Nanos, entropy: Entropy) -> Connection {
        let (reader, output) = (FrameReader::default(), Vec::new());
        Connection { id, source, entropy, state: State::Fresh, reader, output, since: now }
    }

    /// The number that [`Service::accept`] names when it makes room.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What is to be sent.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Nothing more is to be said or heard, once the output is out.
    pub fn closing(&self) -> bool {
        matches!(self.state, State::Closing | State::Closed)
    }

    /// Is this a transfer that still awaits payload? Then [`Connection::absorb`] counts it without looking at it.
    pub fn receiving(&self) -> bool {
        matches!(self.state, State::Receiving { .. })
    }

    /// Payload that a transfer still awaits [byte]; 0 where this is none.
    pub fn awaited(&self) -> u64 {
        match self.state {
            State::Receiving { bytes, received, .. } => bytes.saturating_sub(received),
            _ => 0,
        }
    }

    /// When [`Connection::expire`] is to be called.
    pub fn deadline(&self, service: &Service) -> Nanos {
        let limits = &service.limits;
        let from = |start: Nanos, length: Nanos| Nanos(start.0.saturating_add(length.0));
        match &self.state {
            State::Fresh | State::Greeted { .. } => from(self.since, limits.handshake),
            State::Open { .. } => match service.sessions.get(&self.entropy.session) {
                Some(s) if s.active > 0 => from(self.since.max(s.last_active), limits.session_idle),
                Some(s) => from(s.last_active, limits.session_idle),
                None => Nanos::ZERO,
            },
            State::Receiving { .. } | State::Looking { .. } => from(self.since, limits.idle),
            State::Closing => from(self.since, LINGER),
            State::Closed => Nanos::ZERO,
        }
    }

    /// The time of the deadline has come.
    pub fn expire(&mut self, now: Nanos, service: &mut Service) {
        if now < self.deadline(service) {
            return;
        }
        let busy = service.sessions.get(&self.entropy.session).is_some_and(|s| s.active > 0);
        if matches!(self.state, State::Open { .. }) && busy {
            self.since = now; // its transfers have deadlines of their own
            return;
        }
        if !self.closing() {
            service.counters.timed_out += 1;
            service.notes.push(Note::TimedOut { source: self.source });
        }
        self.end(service);
    }

    /// The stream has ended or broken, or is to be closed. May be called again.
    pub fn end(&mut self, service: &mut Service) {
        service.settle(self.id);
        self.leave(service);
    }

    /// Gives back what the state holds, but does not take it from those that can make room.
    fn leave(&mut self, service: &mut Service) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open { .. } => {
                if let Some(session) = service.sessions.remove(&self.entropy.session) {
                    service.notes.push(Note::SessionClosed { key_id: session.key_id });
                }
            }
            State::Receiving { session, transfer, key_id, bytes, received, .. } => {
                release(service, &session, self.since);
                service.counters.broken += 1;
                service.counters.payload_bytes += received.min(bytes);
                service.notes.push(Note::TransferBroken { transfer, received, bytes, key_id, source: self.source });
            }
            State::Looking { session, .. } => release(service, &session, self.since),
            _ => {}
        }
    }

    /// Is it asked what is seen of this connection? Then [`Connection::show`] answers.
    pub fn is_asked(&self) -> bool {
        matches!(&self.state, State::Looking { asked, .. } if !asked.is_empty())
    }

    /// What the client has said that it sees of this connection, once.
    pub fn take_told(&mut self) -> Option<Seen> {
        if let State::Looking { told, .. } = &mut self.state { told.take() } else { None }
    }

    /// Answers what was asked.
    pub fn show(&mut self, seen: &Seen) {
        if let State::Looking { keys, asked, .. } = &mut self.state {
            for number in std::mem::take(asked) {
                self.output.extend_from_slice(signed(&keys.answer, Kind::Seen, &seen.encode(number)).bytes());
            }
        }
    }

    /// Bytes have arrived.
    pub fn receive(&mut self, now: Nanos, bytes: &[u8], service: &mut Service) {
        if self.receiving() {
            if self.absorb(now, bytes.len() as u64) {
                self.settle(now, service);
            }
            return;
        }
        if self.closing() {
            return;
        }
        self.reader.push(bytes);
        if let Err(reason) = self.messages(now, service) {
            self.refuse(now, reason, service);
        }
    }

    /// `n` bytes of payload have arrived. True: it is time for [`Connection::settle`].
    pub fn absorb(&mut self, now: Nanos, n: u64) -> bool {
        let State::Receiving { bytes, received, first, .. } = &mut self.state else { return false };
        if n > 0 {
            first.get_or_insert(now);
            *received += n;
            self.since = now;
        }
        *received >= *bytes
    }

    /// Answers a transfer whose bytes are all there.
    pub fn settle(&mut self, now: Nanos, service: &mut Service) {
        let State::Receiving { keys, session, transfer, key_id, bytes, received, first, .. } = &self.state else {
            return;
        };
        let (session, transfer, key_id, bytes) = (*session, *transfer, key_id.clone(), *bytes);
        if *received > bytes {
            return self.refuse(now, CloseReason::Garbage("bytes after the end of a transfer"), service);
        }
        let duration_ns = self.since.saturating_sub(first.unwrap_or(self.since)).0;
        let receipt = Receipt { transfer, bytes, duration_ns };
        self.output.extend_from_slice(signed(&keys.answer, Kind::Receipt, &receipt.encode()).bytes());
        release(service, &session, now);
        service.counters.transfers += 1;
        service.counters.payload_bytes += bytes;
        service.notes.push(Note::TransferDone { transfer, bytes, duration_ns, key_id, source: self.source });
        self.linger(now, service);
    }

    fn messages(&mut self, now: Nanos, service: &mut Service) -> Result<(), CloseReason> {
        while let Some(frame) = self.reader.next_frame()? {
            match (&mut self.state, frame.kind) {
                (State::Fresh, Kind::Hello) => self.hello(&frame, service)?,
                (State::Fresh, Kind::Attach) => {
                    self.attach(now, &frame, service)?;
                    // what follows a question is the next one; behind a transfer's head, denied or not, comes its payload
                    if matches!(self.state, State::Looking { .. }) {
                        continue;
                    }
                    let rest = self.reader.take_rest();
                    if self.absorb(now, rest.len() as u64) {
                        self.settle(now, service);
                    }
                    return Ok(());
                }
                (State::Greeted { .. }, Kind::Confirm) => self.confirm(now, &frame, service)?,
                (State::Open { keys, next }, Kind::Ping | Kind::Bye) => {
                    if !verify(&keys.client_control, &frame) || sequence(frame.body())? != *next {
                        return Err(CloseReason::Key("altered or replayed control message"));
                    }
                    if frame.kind == Kind::Bye {
                        self.end(service);
                        return Ok(());
                    }
                    let answer = signed(&keys.server_control, Kind::Pong, &next.to_be_bytes());
                    self.output.extend_from_slice(answer.bytes());
                    *next += 1;
                    if let Some(session) = service.sessions.get_mut(&self.entropy.session) {
                        session.last_active = now;
                    }
                }
                (State::Looking { .. }, Kind::Attach) => self.look_again(now, &frame, service)?,
                (State::Looking { keys, told, .. }, Kind::Seen) => {
                    if !verify(&keys.attach, &frame) {
                        return Err(CloseReason::Key("what a client sees, with a wrong proof"));
                    }
                    let (_, seen) = Seen::decode(frame.body()).ok_or(MessageError("Seen"))?;
                    *told = Some(seen);
                }
                _ => return Err(CloseReason::Garbage("message out of turn")),
            }
            if self.closing() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn hello(&mut self, frame: &Frame, service: &mut Service) -> Result<(), CloseReason> {
        let hello = Hello::decode(frame.body())?;
        let key = service.keys.verify(&hello.key_id, frame).ok_or(CloseReason::Key("wrong key or unknown key id"))?;
        let keys = SessionKeys::new(key, &hello.nonce, &self.entropy.nonce);
        let welcome = Welcome {
            nonce: self.entropy.nonce,
            session: self.entropy.session,
            max_transfer_bytes: service.limits.max_transfer_bytes,
            max_transfers: service.limits.max_transfers,
            mptcp: service.announcement.mptcp,
            addresses: service.announcement.addresses.clone(),
        };
        let answer = Frame::new(Kind::Welcome, &welcome.encode(), |bytes| sign(&keys.welcome, &[frame.bytes(), bytes]));
        self.output.extend_from_slice(answer.bytes());
        self.state = State::Greeted { keys, key_id: hello.key_id };
        Ok(())
    }

    fn confirm(&mut self, now: Nanos, frame: &Frame, service: &mut Service) -> Result<(), CloseReason> {
        let State::Greeted { keys, key_id } = &self.state else { return Ok(()) };
        let (keys, key_id) = (keys.clone(), key_id.clone());
        if !verify(&keys.client_control, frame) || sequence(frame.body())? != 0 {
            return Err(CloseReason::Key("confirmation with a wrong key"));
        }
        if !service.settle(self.id) {
            self.end(service); // made room for another a moment ago
            return Ok(());
        }
        let Ok(place) = service.admission.enter(&key_id, self.source) else {
            self.deny(now, &keys, 0, Denial::Sessions, service);
            return Ok(());
        };
        self.output.extend_from_slice(signed(&keys.server_control, Kind::Ready, &0u64.to_be_bytes()).bytes());
        service.counters.sessions += 1;
        service.notes.push(Note::SessionOpened { key_id: key_id.clone(), source: self.source });
        let window = Default::default();
        let session = Session { keys: keys.clone(), key_id, window, active: 0, last_active: now, _place: place };
        service.sessions.insert(self.entropy.session, session);
        self.state = State::Open { keys, next: 1 };
        Ok(())
    }

    fn attach(&mut self, now: Nanos, frame: &Frame, service: &mut Service) -> Result<(), CloseReason> {
        let attach = Attach::decode(frame.body())?;
        let limits = service.limits;
        let session =
            service.sessions.get_mut(&attach.session).ok_or(CloseReason::Key("transfer of an unknown session"))?;
        if !verify(&session.keys.attach, frame) {
            return Err(CloseReason::Key("transfer with a wrong proof"));
        }
        let keys = session.keys.clone();
        let key_id = session.key_id.clone();
        let place = if !session.window.accept(attach.transfer) {
            Err(Denial::Replay)
        } else if attach.flags & !LOOK != 0 || (attach.flags == LOOK && attach.bytes != 0) {
            Err(Denial::Unsupported)
        } else if attach.bytes > limits.max_transfer_bytes {
            Err(Denial::Size)
        } else if session.active >= limits.max_transfers {
            Err(Denial::Transfers)
        } else {
            service.transfers.enter(&key_id, self.source).map_err(|_| Denial::Transfers)
        };
        let place = match place {
            Ok(place) => place,
            Err(denial) => {
                self.deny(now, &keys, attach.transfer, denial, service);
                return Ok(());
            }
        };
        session.active += 1;
        session.last_active = now;
        if !service.settle(self.id) {
            release(service, &attach.session, now);
            self.end(service);
            return Ok(());
        }
        let Attach { session, transfer, bytes, control, flags } = attach;
        self.since = now;
        if flags == LOOK {
            self.state = State::Looking { keys, session, asked: vec![transfer], told: None, _place: place };
            return Ok(());
        }
        service.notes.push(Note::TransferStarted { transfer, bytes, control, key_id: key_id.clone() });
        self.state =
            State::Receiving { keys, session, transfer, key_id, bytes, received: 0, first: None, _place: place };
        Ok(())
    }

    /// A further question on a connection of who looks.
    fn look_again(&mut self, now: Nanos, frame: &Frame, service: &mut Service) -> Result<(), CloseReason> {
        let State::Looking { keys, session, asked, .. } = &mut self.state else { return Ok(()) };
        let attach = Attach::decode(frame.body())?;
        if !verify(&keys.attach, frame) || attach.session != *session {
            return Err(CloseReason::Key("question with a wrong proof"));
        }
        let open = service.sessions.get_mut(session).ok_or(CloseReason::Key("question of an unknown session"))?;
        let denial = if !open.window.accept(attach.transfer) {
            Denial::Replay
        } else if attach.flags != LOOK || attach.bytes != 0 {
            Denial::Unsupported
        } else {
            asked.push(attach.transfer);
            open.last_active = now;
            self.since = now;
            return Ok(());
        };
        let keys = keys.clone();
        self.deny(now, &keys, attach.transfer, denial, service);
        Ok(())
    }

    fn deny(&mut self, now: Nanos, keys: &SessionKeys, transfer: u64, denial: Denial, service: &mut Service) {
        self.output.extend_from_slice(signed(&keys.answer, Kind::Denied, &denial.encode(transfer)).bytes());
        match denial {
            Denial::Replay => service.counters.refused_replay += 1,
            _ => service.counters.refused_limit += 1,
        }
        service.notes.push(Note::Denied { denial, source: self.source });
        self.close(now, service);
    }

    fn refuse(&mut self, now: Nanos, reason: CloseReason, service: &mut Service) {
        let (refusal, why) = match reason {
            CloseReason::Key(why) => {
                service.counters.refused_key += 1;
                (Some(Refusal::Refused), why)
            }
            CloseReason::Version => {
                service.counters.refused_version += 1;
                (Some(Refusal::Version), "another version of the protocol")
            }
            // whoever does not speak the protocol gets no word of it
            CloseReason::Garbage(why) => {
                service.counters.refused_garbage += 1;
                (None, why)
            }
        };
        service.notes.push(Note::Refused { source: self.source, why });
        match refusal {
            Some(refusal) => {
                self.output.extend_from_slice(signed(OPEN_KEY, Kind::Refused, &refusal.encode()).bytes());
                self.close(now, service);
            }
            None => self.end(service),
        }
    }

    fn close(&mut self, now: Nanos, service: &mut Service) {
        self.leave(service);
        self.linger(now, service);
    }

    /// The last words are said; until they are read this connection can make room for others.
    fn linger(&mut self, now: Nanos, service: &mut Service) {
        (self.state, self.since) = (State::Closing, now);
        service.linger(self.id, self.source);
    }
}

/// A transfer of `session` is over.
fn release(service: &mut Service, session: &SessionId, now: Nanos) {
    if let Some(session) = service.sessions.get_mut(session) {
        session.active -= 1;
        session.last_active = now;
    }
}
