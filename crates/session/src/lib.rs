//! The authenticated session between a client and a far end, and the transfers that it admits.
//!
//! One control connection opens a session (four messages, two round trips). Each transfer is a connection of its own whose
//! first bytes, sent together with the data, prove that it belongs to the session: a transfer pays no round trip for
//! authentication. `docs/protocol.md` has the bytes on the wire.
//!
//! What it protects: nobody without the key can make the far end receive data or tell its addresses, and no message can
//! be forged, altered or replayed. What it does not: the payload is random filling and is neither encrypted nor
//! authenticated, and whoever can drop packets can stop a session.

pub mod address;
mod admission;
mod client;
pub mod codec;
mod connection;
#[cfg(any(test, feature = "fuzz"))]
pub mod forge;
mod frame;
#[cfg(test)]
mod golden;
mod keys;
mod limits;
mod message;
mod seen;
mod service;
pub mod steer;
#[cfg(test)]
mod tests;
mod window;

pub use admission::{Admission, Full, Place, Quota};
pub use client::{ClientControl, ClientLook, ClientTransfer, ControlStatus, Rejection, SessionError, TransferStatus};
pub use connection::{Connection, Entropy};
pub use frame::{Frame, FrameError, FrameReader, Kind, MAX_FRAME_BYTES, VERSION};
pub use keys::{Key, KeyError, KeyRing, Nonce, SessionKeys, Tag, sign};
pub use limits::{Counters, Limits};
pub use message::{Attach, Denial, MessageError, Receipt, Refusal, SessionId, Welcome};
pub use seen::{ECHO, HEARS, LOOK, Seen, Transport};
pub use service::{Announcement, Note, Service};
pub use window::ReplayWindow;

/// The TCP port of a far end unless another is chosen; no well-known service uses it.
pub const DEFAULT_PORT: u16 = 5275;
