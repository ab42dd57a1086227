//! The bodies of the messages. Integers are big-endian; a text is one length byte and ASCII; nothing may follow a body.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::codec::{self, Reader, push_text};
use super::frame::VERSION;
use super::keys::Nonce;

/// The name of a session.
pub type SessionId = [u8; 16];

/// The longest name of a congestion controller in Linux (TCP_CA_NAME_MAX without the final zero) [byte].
const MAX_CONTROL_BYTES: usize = 15;
/// More addresses than this are not announced.
const MAX_ADDRESSES: usize = 64;

/// A body that breaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0} message")]
pub struct MessageError(pub &'static str);

/// Why a server would not talk. Deliberately coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The proof was wrong; no more is said.
    Refused = 1,
    /// The version is not spoken here.
    Version = 2,
}

/// Why a server denies something to a client that has proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Denial {
    /// Too many sessions.
    Sessions = 1,
    /// Too many transfers at once.
    Transfers = 2,
    /// A transfer larger than is allowed.
    Size = 3,
    /// A transfer number that was used before.
    Replay = 4,
    /// A kind of transfer that this server does not know.
    Unsupported = 5,
}

/// What a server tells a client that holds the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The server's half of the session's salt.
    pub(super) nonce: Nonce,
    /// The name of the session.
    pub session: SessionId,
    /// Payload of one transfer at most [byte].
    pub max_transfer_bytes: u64,
    /// Transfers at once.
    pub max_transfers: u16,
    /// Does the server listen with MPTCP?
    pub mptcp: bool,
    /// The addresses under which the server can be reached, the best first.
    pub addresses: Vec<IpAddr>,
}

/// The announcement of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The session that it belongs to.
    pub session: SessionId,
    /// Its number in the session: never twice, from 1 up.
    pub transfer: u64,
    /// The payload that follows [byte].
    pub bytes: u64,
    /// 0: payload follows; [`LOOK`](crate::LOOK): none does, and the far end is to say what it sees of this connection.
    pub flags: u8,
    /// The sender's congestion controller, for the server's log; may be empty.
    pub control: String,
}

/// The receiver's word that all has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Which transfer.
    pub transfer: u64,
    /// Payload received [byte].
    pub bytes: u64,
    /// From the first byte to the last, on the receiver's clock [ns].
    pub duration_ns: u64,
}

pub(super) struct Hello {
    pub key_id: String,
    pub nonce: Nonce,
}

/// Reads a whole body: an error when `read` fails or leaves something over.
fn whole<'a, T>(
    name: &'static str,
    body: &'a [u8],
    read: impl FnOnce(&mut Reader<'a>) -> Option<T>,
) -> Result<T, MessageError> {
    codec::whole(body, read).ok_or(MessageError(name))
}

impl Hello {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(&mut out, &self.key_id);
        out.extend_from_slice(&self.nonce);
        out
    }
    pub fn decode(body: &[u8]) -> Result<Hello, MessageError> {
        whole("Hello", body, |r| Some(Hello { key_id: r.text(32)?, nonce: r.array()? }))
    }
}

impl Welcome {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.session);
        out.extend_from_slice(&self.max_transfer_bytes.to_be_bytes());
        out.extend_from_slice(&self.max_transfers.to_be_bytes());
        out.push(u8::from(self.mptcp));
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        out.push(addresses.len() as u8);
        for address in addresses {
            match address {
                IpAddr::V4(a) => {
                    out.push(4);
                    out.extend_from_slice(&a.octets());
                }
                IpAddr::V6(a) => {
                    out.push(6);
                    out.extend_from_slice(&a.octets());
                }
            }
        }
        out
    }
    pub(super) fn decode(body: &[u8]) -> Result<Welcome, MessageError> {
        whole("Welcome", body, |r| {
            let (nonce, session) = (r.array()?, r.array()?);
            let (max_transfer_bytes, max_transfers) = (r.u64()?, r.u16()?);
            let mptcp = match r.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let n = usize::from(r.u8()?);
            if n > MAX_ADDRESSES {
                return None;
            }
            let mut addresses = Vec::with_capacity(n);
            for _ in 0..n {
                addresses.push(match r.u8()? {
                    4 => IpAddr::V4(Ipv4Addr::from(r.array::<4>()?)),
                    6 => IpAddr::V6(Ipv6Addr::from(r.array::<16>()?)),
                    _ => return None,
                });
            }
            Some(Welcome { nonce, session, max_transfer_bytes, max_transfers, mptcp, addresses })
        })
    }
}

impl Attach {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.session);
        out.extend_from_slice(&self.transfer.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.push(self.flags);
        // a name that Linux cannot have is not worth a failure: it only serves the other end's log
        push_text(&mut out, if control_fits(&self.control) { &self.control } else { "" });
        out
    }
    pub(super) fn decode(body: &[u8]) -> Result<Attach, MessageError> {
        whole("Attach", body, |r| {
            Some(Attach {
                session: r.array()?,
                transfer: r.u64()?,
                bytes: r.u64()?,
                flags: r.u8()?,
                control: r.text(MAX_CONTROL_BYTES)?,
            })
        })
    }
}

fn control_fits(name: &str) -> bool {
    name.len() <= MAX_CONTROL_BYTES && name.bytes().all(|b| b.is_ascii_graphic())
}

impl Receipt {
    pub(super) fn encode(&self) -> Vec<u8> {
        [self.transfer, self.bytes, self.duration_ns].iter().flat_map(|n| n.to_be_bytes()).collect()
    }
    pub(super) fn decode(body: &[u8]) -> Result<Receipt, MessageError> {
        whole("Receipt", body, |r| Some(Receipt { transfer: r.u64()?, bytes: r.u64()?, duration_ns: r.u64()? }))
    }
}

impl Refusal {
    pub(super) fn encode(self) -> Vec<u8> {
        vec![self as u8, VERSION]
    }
    pub(super) fn decode(body: &[u8]) -> Result<(Refusal, u8), MessageError> {
        whole("Refused", body, |r| {
            let code = r.u8()?;
            let reason = [Refusal::Refused, Refusal::Version].into_iter().find(|x| *x as u8 == code)?;
            Some((reason, r.u8()?))
        })
    }
}

impl Denial {
    /// `transfer` is 0 when the session itself is denied.
    pub(super) fn encode(self, transfer: u64) -> Vec<u8> {
        let mut out = transfer.to_be_bytes().to_vec();
        out.push(self as u8);
        out
    }
    pub(super) fn decode(body: &[u8]) -> Result<(u64, Denial), MessageError> {
        use Denial::{Replay, Sessions, Size, Transfers, Unsupported};
        whole("Denied", body, |r| {
            let transfer = r.u64()?;
            let code = r.u8()?;
            let denial = [Sessions, Transfers, Size, Replay, Unsupported].into_iter().find(|x| *x as u8 == code)?;
            Some((transfer, denial))
        })
    }
}

/// The body of a control message that carries nothing but its place in the stream.
pub(super) fn sequence(body: &[u8]) -> Result<u64, MessageError> {
    whole("control", body, |r| r.u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_64_addresses_are_read() {
        let addresses = vec!["192.0.2.1".parse().unwrap(); MAX_ADDRESSES];
        let welcome = Welcome {
            nonce: [1; 32],
            session: [2; 16],
            max_transfer_bytes: 3,
            max_transfers: 4,
            mptcp: true,
            addresses,
        };
        let mut body = welcome.encode();
        assert_eq!(Welcome::decode(&body).unwrap(), welcome);
        let count = body.len() - 5 * MAX_ADDRESSES - 1;
        body[count] += 1;
        body.extend([4, 192, 0, 2, 1]);
        assert!(Welcome::decode(&body).is_err());
    }

    #[test]
    fn a_controller_that_no_kernel_has_is_not_named() {
        let longest = "c".repeat(MAX_CONTROL_BYTES);
        for (control, told) in
            [(&*longest, &*longest), (&*format!("{longest}c"), ""), ("two words", ""), ("ümlaut", "")]
        {
            let attach = Attach { session: [1; 16], transfer: 2, bytes: 3, flags: 0, control: control.into() };
            assert_eq!(Attach::decode(&attach.encode()).unwrap().control, told, "{control}");
        }
    }
}
