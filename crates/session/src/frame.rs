//! One message on the wire: `"PCST"`, version, type, body length, body, HMAC-SHA256 tag over all before it.

use super::keys::Tag;

/// The version of the protocol that this code speaks.
pub const VERSION: u8 = 1;
/// The longest message, header and tag included [byte].
pub const MAX_FRAME_BYTES: usize = 4096;
const MAGIC: &[u8; 4] = b"PCST";
const HEADER_BYTES: usize = 8;
const TAG_BYTES: usize = 32;
pub(super) const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - HEADER_BYTES - TAG_BYTES;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Client to server, first: key id and nonce.
    Hello = 1,
    /// Server's answer: nonce, session, limits, addresses.
    Welcome = 2,
    /// Server's answer to what it does not trust; says nothing but a class of reason.
    Refused = 3,
    /// Client's proof that it holds the key now.
    Confirm = 4,
    /// Server: the session is open.
    Ready = 5,
    /// Client: is the session still open?
    Ping = 6,
    /// Server: it is.
    Pong = 7,
    /// Either side ends the session.
    Bye = 8,
    /// Client to server, first on a data connection: what follows belongs to this session.
    Attach = 16,
    /// Server: all bytes have arrived.
    Receipt = 17,
    /// Server, inside a session: not this one, and why.
    Denied = 18,
    /// Server: what it sees of this connection, to who asks with [`LOOK`](crate::LOOK). Client, behind that: what it sees, if
    /// the server hears it.
    Seen = 19,
}

impl Kind {
    pub(super) const ALL: [Kind; 12] = [
        Kind::Hello,
        Kind::Welcome,
        Kind::Refused,
        Kind::Confirm,
        Kind::Ready,
        Kind::Ping,
        Kind::Pong,
        Kind::Bye,
        Kind::Attach,
        Kind::Receipt,
        Kind::Denied,
        Kind::Seen,
    ];
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first four bytes are not the protocol's.
    #[error("this is not the pathcast protocol")]
    Magic,
    /// Another version.
    #[error("the other end speaks version {theirs} of the protocol, this end {VERSION}")]
    Version {
        /// The version in the message.
        theirs: u8,
    },
    /// A type that this version does not have.
    #[error("unknown message type {0}")]
    Kind(u8),
    /// Longer than any message may be.
    #[error("a message body of {0} bytes is longer than {MAX_BODY_BYTES}")]
    TooLong(usize),
}

/// A message whose tag has not been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: Kind,
    bytes: Vec<u8>,
}

impl Frame {
    /// A message signed by `sign`, which gets the bytes to be signed.
    pub(super) fn new(kind: Kind, body: &[u8], sign: impl FnOnce(&[u8]) -> Tag) -> Frame {
        assert!(body.len() <= MAX_BODY_BYTES, "bodies are bounded where they are built");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() + TAG_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[VERSION, kind as u8]);
        bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
        bytes.extend_from_slice(body);
        let tag = sign(&bytes);
        bytes.extend_from_slice(&tag);
        Frame { kind, bytes }
    }

    /// The whole message as it goes on the wire.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// The part between header and tag.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..self.bytes.len() - TAG_BYTES]
    }
    pub(super) fn signed(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - TAG_BYTES]
    }
    pub(super) fn tag(&self) -> &[u8] {
        &self.bytes[self.bytes.len() - TAG_BYTES..]
    }
}

/// Cuts a byte stream into messages. Holds at most one message more than it was given.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
}

impl FrameReader {
    /// Takes in what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, or `None` until more bytes arrive.
    ///
    /// # Errors
    /// As soon as the bytes cannot become a message; the stream is of no use then.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let have = self.bytes.len();
        if !MAGIC.starts_with(&self.bytes[..have.min(4)]) {
            return Err(FrameError::Magic);
        }
        if have > 4 && self.bytes[4] != VERSION {
            return Err(FrameError::Version { theirs: self.bytes[4] });
        }
        let kind = match self.bytes.get(5) {
            None => return Ok(None),
            Some(&byte) => Kind::ALL.into_iter().find(|k| *k as u8 == byte).ok_or(FrameError::Kind(byte))?,
        };
        if have < HEADER_BYTES {
            return Ok(None);
        }
        let body = usize::from(u16::from_be_bytes([self.bytes[6], self.bytes[7]]));
        if body > MAX_BODY_BYTES {
            return Err(FrameError::TooLong(body));
        }
        let total = HEADER_BYTES + body + TAG_BYTES;
        if have < total {
            return Ok(None);
        }
        let rest = self.bytes.split_off(total);
        Ok(Some(Frame { kind, bytes: std::mem::replace(&mut self.bytes, rest) }))
    }

    /// Takes out what has not been cut into messages.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_body_is_read_and_none_beyond_it() {
        let header = |body: usize| {
            let [high, low] = (body as u16).to_be_bytes();
            [&MAGIC[..], &[VERSION, Kind::Hello as u8, high, low]].concat()
        };
        let mut whole = FrameReader::default();
        whole.push(&header(MAX_BODY_BYTES));
        assert!(matches!(whole.next_frame(), Ok(None)));
        whole.push(&vec![0; MAX_BODY_BYTES + TAG_BYTES]);
        let longest = whole.next_frame().unwrap().unwrap();
        assert_eq!(longest.bytes().len(), MAX_FRAME_BYTES);
        for body in [MAX_BODY_BYTES + 1, MAX_BODY_BYTES + 2, 0xffff] {
            let mut reader = FrameReader::default();
            reader.push(&header(body));
            assert!(matches!(reader.next_frame(), Err(FrameError::TooLong(n)) if n == body), "{body}");
        }
    }
}
