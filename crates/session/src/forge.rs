//! Either end of a session as it should not be: it holds the key and says whatever it likes. For fuzzing and tests only.

use super::frame::{Frame, Kind, MAX_BODY_BYTES};
use super::keys::{Key, OPEN_KEY, SessionKeys, Tag, sign, signed};
use super::message::{Attach, Denial, Hello, Receipt, Refusal, Welcome, sequence};
use super::seen::Seen;

/// Lets every parser read a body; what is understood must come back when it is written and read again.
///
/// # Panics
/// If it does not.
pub fn read(body: &[u8]) {
    if let Ok(hello) = Hello::decode(body) {
        assert_eq!(hello.encode(), body);
    }
    if let Ok(welcome) = Welcome::decode(body) {
        assert_eq!(welcome.encode(), body);
    }
    if let Ok(attach) = Attach::decode(body) {
        assert_eq!(attach.encode(), body);
    }
    if let Ok(receipt) = Receipt::decode(body) {
        assert_eq!(receipt.encode(), body);
    }
    if let Ok((refusal, _)) = Refusal::decode(body) {
        assert_eq!(refusal.encode()[0], body[0]);
    }
    if let Ok((transfer, denial)) = Denial::decode(body) {
        assert_eq!(denial.encode(transfer), body);
    }
    if let Some((number, seen)) = Seen::decode(body) {
        assert_eq!(Seen::decode(&seen.encode(number)), Some((number, seen)));
    }
    let _ = sequence(body);
}

fn cut(body: &[u8]) -> &[u8] {
    &body[..body.len().min(MAX_BODY_BYTES)]
}

fn tag(keys: &SessionKeys, which: u8) -> &Tag {
    [&keys.welcome, &keys.client_control, &keys.server_control, &keys.attach, &keys.answer, OPEN_KEY]
        [usize::from(which) % 6]
}

/// A message that is signed with one of a session's keys.
pub fn say(keys: &SessionKeys, which: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    signed(tag(keys, which), Kind::ALL[usize::from(kind) % Kind::ALL.len()], cut(body)).bytes().to_vec()
}

/// A Hello with the client's nonce `nonce`, or with any other body that is signed as one.
pub fn hello(key: &Key, nonce: [u8; 32], body: Option<&[u8]>) -> Vec<u8> {
    let own = Hello { key_id: key.id().into(), nonce }.encode();
    signed(&key.greeting(), Kind::Hello, cut(body.unwrap_or(&own))).bytes().to_vec()
}

/// The session's keys by both nonces.
pub fn keys(key: &Key, client: &[u8; 32], server: &[u8; 32]) -> SessionKeys {
    SessionKeys::new(key, client, server)
}

/// A Welcome with any body, signed as the answer to `hello`.
pub fn welcome(keys: &SessionKeys, hello: &[u8], body: &[u8]) -> Vec<u8> {
    Frame::new(Kind::Welcome, cut(body), |bytes| sign(&keys.welcome, &[hello, bytes])).bytes().to_vec()
}
