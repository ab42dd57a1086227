//! Keys of measurements: every use has its own, none is one of the TCP session's.

use pathcast_session::{Key, Nonce, Tag, sign};

use super::messages::Cookie;
use super::wire::{BEFORE, Datagram, Kind, Signer};

/// What Hello is signed with.
pub(super) fn greeting(key: &Key) -> Signer {
    Signer::new(&key.derive(b"", "measure hello"))
}

/// The keys of one session, drawn from the client's nonce and the far end's cookie.
#[derive(Clone)]
pub(super) struct SessionKeys {
    /// The session's number, never 0.
    pub session: u64,
    pub client: Signer,
    pub far_end: Signer,
    clock: Tag,
}

impl SessionKeys {
    pub fn new(key: &Key, nonce: &Nonce, cookie: &Nonce) -> SessionKeys {
        let salt = [nonce.as_slice(), cookie.as_slice()].concat();
        let of = |label| key.derive(&salt, label);
        let id = of("measure session");
        let session = id[..8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        SessionKeys {
            session: session.max(1),
            client: Signer::new(&of("measure c2s")),
            far_end: Signer::new(&of("measure s2c")),
            clock: of("measure clock"),
        }
    }

    /// What is told of a host's clock: equal for equal ones, and nothing else can be learnt from it.
    pub fn clock_digest(&self, host: &[u8; 32]) -> [u8; 16] {
        sign(&self.clock, &[host]).first_chunk().copied().expect("a tag is longer")
    }
}

/// Whether a packet is the answer of a far end with our key to a greeting of the version before.
pub(super) fn is_of_before(key: &Key, nonce: &Nonce, packet: &[u8]) -> bool {
    let cookie = Datagram::of_version(BEFORE, packet).filter(|datagram| datagram.kind == Kind::Cookie);
    cookie.is_some_and(|datagram| {
        Cookie::decode(datagram.body).is_some_and(|cookie| {
            let keys = SessionKeys::new(key, nonce, &cookie.digest);
            datagram.is_signed(&keys.far_end) && datagram.session == keys.session
        })
    })
}
