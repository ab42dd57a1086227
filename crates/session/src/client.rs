//! The client's end: opening and keeping a session, and one transfer.

use super::frame::{Frame, FrameError, FrameReader, Kind};
use super::keys::{Key, Nonce, OPEN_KEY, SessionKeys, signed, verify, verify_after};
use super::message::{Attach, Denial, Hello, MessageError, Receipt, Refusal, SessionId, Welcome, sequence};
use super::seen::{LOOK, Seen};

/// The far end's no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The key is wrong or unknown there, or the session is over. Anybody on the way could have said this.
    Refused,
    /// The far end speaks only another version.
    Version {
        /// Which one.
        theirs: u8,
    },
    /// A limit, told by one who holds the key.
    Denied(Denial),
}

/// Why a session or transfer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Not a message.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Not a body.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A tag is wrong: altered on the way, replayed, or the far end does not hold the key.
    #[error("the far end's message is not signed with the key")]
    Forged,
    /// A message that does not belong here.
    #[error("message {0:?} out of turn")]
    OutOfTurn(Kind),
    /// The receipt names another number of bytes.
    #[error("the far end counted {got} bytes of {want}")]
    Miscounted {
        /// Its count [byte].
        got: u64,
        /// Ours [byte].
        want: u64,
    },
    /// A proper no.
    #[error("rejected by the far end: {0:?}")]
    Rejected(Rejection),
}

/// Where the control connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlStatus {
    /// Hello is out.
    Greeting,
    /// The server has proved itself; its word that the session is open is missing.
    Confirming,
    /// Open.
    Open {
        /// Pings that were answered.
        answered: u64,
        /// Pings that were sent.
        sent: u64,
    },
}

/// The client's end of a control connection.
pub struct ClientControl {
    key: Key,
    nonce: Nonce,
    hello: Vec<u8>,
    reader: FrameReader,
    output: Vec<u8>,
    status: ControlStatus,
    session: Option<(Welcome, SessionKeys)>,
}

impl ClientControl {
    /// Begins; `nonce` comes from the system's generator and is used once.
    pub fn new(key: &Key, nonce: [u8; 32]) -> ClientControl {
        let body = Hello { key_id: key.id().into(), nonce }.encode();
        let hello = signed(&key.greeting(), Kind::Hello, &body).bytes().to_vec();
        ClientControl {
            key: key.clone(),
            nonce,
            output: hello.clone(),
            hello,
            reader: FrameReader::default(),
            status: ControlStatus::Greeting,
            session: None,
        }
    }

    /// What is to be sent.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Where it stands.
    pub fn status(&self) -> ControlStatus {
        self.status
    }

    /// What the server told, and the keys, once the session is open.
    pub fn session(&self) -> Option<(&Welcome, &SessionKeys)> {
        match self.status {
            ControlStatus::Open { .. } => self.session.as_ref().map(|(w, k)| (w, k)),
            _ => None,
        }
    }

    /// Asks whether the session is still open; nothing before it is.
    pub fn ping(&mut self) {
        if let (ControlStatus::Open { sent, .. }, Some((_, keys))) = (&mut self.status, &self.session) {
            *sent += 1;
            self.output.extend_from_slice(signed(&keys.client_control, Kind::Ping, &sent.to_be_bytes()).bytes());
        }
    }

    /// Ends the session.
    pub fn bye(&mut self) {
        if let (ControlStatus::Open { sent, .. }, Some((_, keys))) = (self.status, &self.session) {
            let next = (sent + 1).to_be_bytes();
            self.output.extend_from_slice(signed(&keys.client_control, Kind::Bye, &next).bytes());
        }
    }

    /// Bytes have arrived.
    ///
    /// # Errors
    /// The connection is of no use after an error.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<ControlStatus, SessionError> {
        self.reader.push(bytes);
        while let Some(frame) = self.reader.next_frame()? {
            self.message(&frame)?;
        }
        Ok(self.status)
    }

    fn message(&mut self, frame: &Frame) -> Result<(), SessionError> {
        match (self.status, frame.kind, &self.session) {
            (ControlStatus::Greeting, Kind::Welcome, None) => {
                let welcome = Welcome::decode(frame.body())?;
                let keys = SessionKeys::new(&self.key, &self.nonce, &welcome.nonce);
                if !verify_after(&keys.welcome, &self.hello, frame) {
                    return Err(SessionError::Forged);
                }
                let confirm = signed(&keys.client_control, Kind::Confirm, &0u64.to_be_bytes());
                self.output.extend_from_slice(confirm.bytes());
                self.session = Some((welcome, keys));
                self.status = ControlStatus::Confirming;
            }
            (ControlStatus::Confirming, Kind::Ready, Some((_, keys))) => {
                if !verify(&keys.server_control, frame) || sequence(frame.body())? != 0 {
                    return Err(SessionError::Forged);
                }
                self.status = ControlStatus::Open { answered: 0, sent: 0 };
            }
            (ControlStatus::Open { answered, sent }, Kind::Pong, Some((_, keys))) => {
                let next = answered + 1;
                if next > sent || !verify(&keys.server_control, frame) || sequence(frame.body())? != next {
                    return Err(SessionError::Forged);
                }
                self.status = ControlStatus::Open { answered: next, sent };
            }
            (_, Kind::Refused, _) => return Err(refused(frame)),
            (ControlStatus::Confirming, Kind::Denied, Some((_, keys))) => return Err(denied(frame, keys, 0)),
            _ => return Err(SessionError::OutOfTurn(frame.kind)),
        }
        Ok(())
    }
}

fn refused(frame: &Frame) -> SessionError {
    if !verify(OPEN_KEY, frame) {
        return SessionError::Forged;
    }
    match Refusal::decode(frame.body()) {
        Ok((Refusal::Refused, _)) => SessionError::Rejected(Rejection::Refused),
        Ok((Refusal::Version, theirs)) => SessionError::Rejected(Rejection::Version { theirs }),
        Err(e) => e.into(),
    }
}

fn denied(frame: &Frame, keys: &SessionKeys, transfer: u64) -> SessionError {
    match Denial::decode(frame.body()) {
        _ if !verify(&keys.answer, frame) => SessionError::Forged,
        Ok((of, denial)) if of == transfer => SessionError::Rejected(Rejection::Denied(denial)),
        Ok(_) => SessionError::Forged,
        Err(e) => e.into(),
    }
}

/// The client's end of a connection that looks for what lies between.
pub struct ClientLook {
    keys: SessionKeys,
    session: SessionId,
    asked: u64,
    reader: FrameReader,
}

impl ClientLook {
    /// In the session of `welcome`.
    pub fn new(welcome: &Welcome, keys: &SessionKeys) -> ClientLook {
        ClientLook { keys: keys.clone(), session: welcome.session, asked: 0, reader: FrameReader::default() }
    }

    /// What is to be sent to ask, with a number of the session's transfers.
    pub fn ask(&mut self, number: u64) -> Vec<u8> {
        self.asked = number;
        let (session, control) = (self.session, String::new());
        let body = Attach { session, transfer: number, bytes: 0, flags: LOOK, control }.encode();
        signed(&self.keys.attach, Kind::Attach, &body).bytes().to_vec()
    }

    /// What is to be sent to tell what this end sees, to a far end that hears it ([`HEARS`](crate::HEARS)).
    pub fn tell(&self, seen: &Seen) -> Vec<u8> {
        signed(&self.keys.attach, Kind::Seen, &seen.encode(self.asked)).bytes().to_vec()
    }

    /// Bytes have arrived; what the far end sees, once that is there.
    ///
    /// # Errors
    /// The far end said no ([`Denial::Unsupported`]: it is older than this question), or what came is not its word.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<Seen>, SessionError> {
        self.reader.push(bytes);
        let Some(frame) = self.reader.next_frame()? else { return Ok(None) };
        match frame.kind {
            Kind::Seen if !verify(&self.keys.answer, &frame) => Err(SessionError::Forged),
            Kind::Seen => match Seen::decode(frame.body()) {
                Some((number, seen)) if number == self.asked => Ok(Some(seen)),
                Some(_) => Err(SessionError::Forged),
                None => Err(MessageError("Seen").into()),
            },
            Kind::Denied => Err(denied(&frame, &self.keys, self.asked)),
            Kind::Refused => Err(refused(&frame)),
            kind => Err(SessionError::OutOfTurn(kind)),
        }
    }
}

/// How far a transfer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// No receipt yet.
    Pending,
    /// All bytes are there.
    Done(Receipt),
}

/// The client's end of one data connection.
pub struct ClientTransfer {
    keys: SessionKeys,
    transfer: u64,
    bytes: u64,
    attach: Vec<u8>,
    reader: FrameReader,
}

impl ClientTransfer {
    /// Transfer number `transfer` (from 1 up, never twice) of `bytes` bytes in the session of `welcome`.
    pub fn new(welcome: &Welcome, keys: &SessionKeys, transfer: u64, bytes: u64, control: &str) -> ClientTransfer {
        let body = Attach { session: welcome.session, transfer, bytes, flags: 0, control: control.into() }.encode();
        let attach = signed(&keys.attach, Kind::Attach, &body).bytes().to_vec();
        ClientTransfer { keys: keys.clone(), transfer, bytes, attach, reader: FrameReader::default() }
    }

    /// What goes out before the payload, in the same write.
    pub fn attach(&self) -> &[u8] {
        &self.attach
    }

    /// Bytes have arrived.
    ///
    /// # Errors
    /// The far end said no, or what came is not its word.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<TransferStatus, SessionError> {
        self.reader.push(bytes);
        let Some(frame) = self.reader.next_frame()? else { return Ok(TransferStatus::Pending) };
        match frame.kind {
            Kind::Receipt => {
                if !verify(&self.keys.answer, &frame) {
                    return Err(SessionError::Forged);
                }
                let receipt = Receipt::decode(frame.body())?;
                if receipt.transfer != self.transfer {
                    return Err(SessionError::Forged);
                }
                if receipt.bytes != self.bytes {
                    return Err(SessionError::Miscounted { got: receipt.bytes, want: self.bytes });
                }
                Ok(TransferStatus::Done(receipt))
            }
            Kind::Denied => Err(denied(&frame, &self.keys, self.transfer)),
            Kind::Refused => Err(refused(&frame)),
            kind => Err(SessionError::OutOfTurn(kind)),
        }
    }
}
