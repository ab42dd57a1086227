//! Shared secrets, and the keys that one session draws from them (HKDF-SHA256, RFC 5869).

use std::collections::BTreeMap;
use std::fmt;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::frame::{Frame, Kind};

/// A signature (HMAC-SHA256), or a key of one use.
pub type Tag = [u8; 32];
/// 32 random bytes that are used once.
pub type Nonce = [u8; 32];

const MAX_ID_BYTES: usize = 32;
const MIN_SECRET_BYTES: usize = 16;

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The name of the key.
    #[error("key id `{0}` must be 1 to {MAX_ID_BYTES} printable ASCII characters without spaces")]
    Id(String),
    /// The secret.
    #[error("a secret of {0} bytes can be guessed; take 32 random bytes (at least {MIN_SECRET_BYTES})")]
    Short(usize),
}

/// A secret that both ends share, and the name that they call it by. `Debug` does not show the secret.
#[derive(Clone)]
pub struct Key {
    id: String,
    secret: Vec<u8>,
}

impl Key {
    /// The key called `id`.
    ///
    /// # Errors
    /// An id that is empty, longer than 32 bytes or not printable ASCII; a secret shorter than 16 bytes.
    pub fn new(id: impl Into<String>, secret: impl Into<Vec<u8>>) -> Result<Key, KeyError> {
        let (id, secret) = (id.into(), secret.into());
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(KeyError::Id(id));
        }
        if secret.len() < MIN_SECRET_BYTES {
            return Err(KeyError::Short(secret.len()));
        }
        Ok(Key { id, secret })
    }

    /// The name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key of Hello, before there are nonces.
    pub(super) fn greeting(&self) -> Tag {
        self.derive(b"", "hello")
    }

    /// The key for the use called `label`, salted.
    pub fn derive(&self, salt: &[u8], label: &str) -> Tag {
        expand(salt, &self.secret, label)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys that a far end honours.
#[derive(Clone, Debug)]
pub struct KeyRing {
    keys: BTreeMap<String, Key>,
    /// Stands in for an unknown id, so that it takes the same time to refuse.
    decoy: Key,
}

impl KeyRing {
    /// All of `keys`; a later one replaces an earlier one of the same id.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> KeyRing {
        let keys = keys.into_iter().map(|k| (k.id.clone(), k)).collect();
        KeyRing { keys, decoy: Key { id: "-".into(), secret: vec![0; 32] } }
    }

    /// The key called `id` if `hello` is signed with it. An unknown id and a wrong key cannot be told apart.
    pub(super) fn verify(&self, id: &str, hello: &Frame) -> Option<&Key> {
        self.find(id, |key| verify(&key.greeting(), hello))
    }

    /// The key called `id` if `right` says so of it; an unknown id is asked about too, with a stand-in, and refused.
    pub fn find(&self, id: &str, right: impl FnOnce(&Key) -> bool) -> Option<&Key> {
        let known = self.keys.get(id);
        let right = right(known.unwrap_or(&self.decoy));
        known.filter(|_| right)
    }
}

/// The keys of one session; every use has its own. `Debug` does not show them.
#[derive(Clone)]
pub struct SessionKeys {
    master: Tag,
    pub(super) welcome: Tag,
    pub(super) client_control: Tag,
    pub(super) server_control: Tag,
    pub(super) attach: Tag,
    pub(super) answer: Tag,
}

impl SessionKeys {
    pub(super) fn new(key: &Key, client: &Nonce, server: &Nonce) -> SessionKeys {
        let salt = [client.as_slice(), server.as_slice()].concat();
        let of = |label| expand(&salt, &key.secret, label);
        SessionKeys {
            master: of("session"),
            welcome: of("welcome"),
            client_control: of("control c2s"),
            server_control: of("control s2c"),
            attach: of("data c2s"),
            answer: of("data s2c"),
        }
    }

    /// A further key of this session for the use called `label`, the same at both ends.
    pub fn subkey(&self, label: &str) -> [u8; 32] {
        expand(b"", &self.master, label)
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKeys(..)")
    }
}

fn expand(salt: &[u8], secret: &[u8], label: &str) -> Tag {
    let mut out = Tag::default();
    let info = [b"pathcast/1 ", label.as_bytes()].concat();
    Hkdf::<Sha256>::new(Some(salt), secret).expand(&info, &mut out).expect("32 bytes are within HKDF's limit");
    out
}

/// The signature of these parts, one after the other.
pub fn sign(key: &Tag, parts: &[&[u8]]) -> Tag {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Is `frame` signed with `key`?
pub(super) fn verify(key: &Tag, frame: &Frame) -> bool {
    verify_after(key, &[], frame)
}

/// Is `frame`, preceded by `transcript`, signed with `key`?
pub(super) fn verify_after(key: &Tag, transcript: &[u8], frame: &Frame) -> bool {
    sign(key, &[transcript, frame.signed()]).ct_eq(frame.tag()).into()
}

pub(super) fn signed(key: &Tag, kind: Kind, body: &[u8]) -> Frame {
    Frame::new(kind, body, |bytes| sign(key, &[bytes]))
}

/// Signs what is said before there is a key: a checksum, not a proof.
pub(super) const OPEN_KEY: &Tag = b"pathcast open messages: checksum";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_keys_are_refused() {
        assert_eq!(Key::new("", vec![0; 32]).unwrap_err(), KeyError::Id("".into()));
        assert!(Key::new("a b", vec![0; 32]).is_err() && Key::new("x".repeat(33), vec![0; 32]).is_err());
        assert_eq!(Key::new("a", vec![0; 15]).unwrap_err(), KeyError::Short(15));
        let printed = format!("{:?}", Key::new("a", *b"0123456789abcdef").unwrap());
        assert_eq!(printed, "Key { id: \"a\", .. }", "never the secret");
    }

    #[test]
    fn every_use_and_every_nonce_has_its_own_key() {
        let key = Key::new("a", vec![7; 32]).unwrap();
        let keys = SessionKeys::new(&key, &[1; 32], &[2; 32]);
        let all = [keys.welcome, keys.client_control, keys.server_control, keys.attach, keys.answer, keys.subkey("x")];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_ne!(keys.attach, SessionKeys::new(&key, &[2; 32], &[1; 32]).attach);
    }

    #[test]
    fn hkdf_is_rfc_5869() {
        // Extract and expand by hand, for one block: T(1) = HMAC(PRK, info | 0x01)
        let prk = sign_any(b"salt", &[b"secret"]);
        assert_eq!(expand(b"salt", b"secret", "hello"), sign_any(&prk, &[b"pathcast/1 hello", &[1]]));
    }
    fn sign_any(key: &[u8], parts: &[&[u8]]) -> Tag {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        parts.iter().for_each(|p| mac.update(p));
        mac.finalize().into_bytes().into()
    }
}
