//! One datagram: a head of 24 bytes, a body, and the first 16 bytes of an HMAC-SHA256 over both. What follows is filling
//! and means nothing.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | `"PM"` |
//! | 2 | version |
//! | 3 | kind |
//! | 4..6 | length without filling |
//! | 6 | path |
//! | 7 | part of the measurement |
//! | 8..16 | session; 0 before there is one |
//! | 16..24 | number, by path and sender; of a probe: train (4 bytes), index (2), packets of the train (2) |
//!
//! Trains of the flow beside the path's are numbered from [`BESIDE`] on, so that each flow's reports are in its own order.
//!
//! Integers are big-endian. A probe's body is how long its train goes on after it [µs, 4 bytes]: with the tag 44 bytes.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use pathcast_session::{ReplayWindow, Tag};

/// The version of the protocol that this code speaks.
pub(super) const VERSION: u8 = 2;
/// The one before: its greeting is the same, so that a far end that speaks no other can be told from one that is silent.
pub(super) const BEFORE: u8 = 1;
const MAGIC: &[u8; 2] = b"PM";
const HEAD: usize = 24;
const TAG: usize = 16;
/// No datagram is longer than this without filling, so that none is fragmented [byte].
pub(super) const LONGEST: usize = 1200;
/// What a datagram has besides its body, without filling [byte].
pub(super) const FRAME: usize = HEAD + TAG;
/// The longest body [byte].
pub(super) const BODY: usize = LONGEST - FRAME;
/// What a probe needs at least [byte].
pub(super) const PROBE: usize = HEAD + 4 + TAG;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        /// What a datagram is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(super) enum Kind {
            $($(#[$doc])* $name = $value,)*
        }
        impl Kind {
            pub(super) const ALL: &[Kind] = &[$(Kind::$name),*];
        }
    };
}

kinds! {
    /// Client: I hold a key. Signed with its greeting key.
    Hello = 1,
    /// Far end: then say so again from where you are.
    Cookie = 2,
    /// Client: the cookie, and what it wants to measure.
    Open = 3,
    /// Far end: go on, within these limits.
    Opened = 4,
    /// Far end: others measure; your place is this.
    Queued = 5,
    /// Far end: no, or no more.
    Denied = 6,
    /// Client: I am still here; how is it with me? The answer is Opened, Queued or Denied.
    Poll = 7,
    /// Client: a further path of the session.
    PathHello = 8,
    /// Far end: the same as Cookie for it.
    PathCookie = 9,
    /// Client: the cookie.
    PathJoin = 10,
    /// Far end: the path is known.
    PathJoined = 11,
    /// Client: what is your time?
    Time = 12,
    /// Far end: when it was asked, and when it answers. As large as the question.
    Stamp = 13,
    /// Client: measure the direction to me.
    Begin = 14,
    /// Either: one packet of a train.
    Probe = 15,
    /// Receiver of probes: what has arrived.
    Report = 16,
    /// Sender of probes: what became of these trains?
    Ask = 17,
    /// Far end: the result of the direction to the client.
    Outcome = 18,
    /// Client: I have it.
    Noted = 19,
    /// Client: that is all.
    Bye = 20,
    /// Client: the flow beside this path's comes from here. Probes of such trains go there.
    Beside = 21,
    /// Client: what comes of this packet?
    Echo = 22,
    /// Far end: this. As large and of the class that was asked for.
    Echoed = 23,
}

/// The first number of the trains beside the path's flow.
pub(super) const BESIDE: u32 = 1 << 31;

impl Kind {
    /// What a datagram is for, by its head; nothing is proved.
    pub fn in_head(packet: &[u8]) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|&kind| packet.get(3) == Some(&(kind as u8)))
    }
}

/// Why a datagram is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A datagram that has the right form; nothing is proved yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub kind: Kind,
    pub path: u8,
    pub part: u8,
    pub session: u64,
    pub number: u64,
    pub body: &'a [u8],
    signed: &'a [u8],
    tag: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub fn parse(packet: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        Self::of_version(VERSION, packet).ok_or(Malformed)
    }

    /// The same of another version, whose head is the same.
    pub fn of_version(version: u8, packet: &'a [u8]) -> Option<Datagram<'a>> {
        let head: &[u8; HEAD] = packet.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        if &head[..2] != MAGIC || head[2] != version || !(HEAD + TAG..=LONGEST).contains(&length) {
            return None;
        }
        let kind = Kind::in_head(head)?;
        let (signed, tag) = packet.get(..length)?.split_at(length - TAG);
        let word = |at: usize| head[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let (path, part) = (head[6], head[7]);
        Some(Datagram { kind, path, part, session: word(8), number: word(16), body: &signed[HEAD..], signed, tag })
    }

    pub fn is_signed(&self, signer: &Signer) -> bool {
        let mut mac = signer.0.clone();
        mac.update(self.signed);
        mac.verify_truncated_left(self.tag).is_ok()
    }
}

/// The place of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProbeHead {
    pub train: u32,
    pub index: u16,
    /// Packets of its train.
    pub count: u16,
    /// From its start to the start of the train's last packet [µs].
    pub rest: u32,
}

impl ProbeHead {
    pub fn of(datagram: &Datagram) -> Option<ProbeHead> {
        let rest = u32::from_be_bytes(datagram.body.try_into().ok()?);
        let number = datagram.number;
        let head = ProbeHead { train: (number >> 32) as u32, index: (number >> 16) as u16, count: number as u16, rest };
        (head.index < head.count).then_some(head)
    }

    pub fn number(&self) -> u64 {
        u64::from(self.train) << 32 | u64::from(self.index) << 16 | u64::from(self.count)
    }
}

/// A key that is ready to sign.
#[derive(Clone)]
pub(super) struct Signer(Hmac<Sha256>);

impl Signer {
    pub fn new(key: &Tag) -> Signer {
        Signer(Hmac::new_from_slice(key).expect("HMAC takes any key length"))
    }

    /// Writes a whole datagram into `out`, which must have its length: [`HEAD`] + body + [`TAG`].
    #[allow(clippy::too_many_arguments)] // they are the fields of the head, in its order
    fn write(&self, kind: Kind, path: u8, part: u8, session: u64, number: u64, body: &[u8], out: &mut [u8]) {
        let length = HEAD + body.len() + TAG;
        out[..2].copy_from_slice(MAGIC);
        out[2..4].copy_from_slice(&[VERSION, kind as u8]);
        out[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        out[6..8].copy_from_slice(&[path, part]);
        out[8..16].copy_from_slice(&session.to_be_bytes());
        out[16..24].copy_from_slice(&number.to_be_bytes());
        out[HEAD..HEAD + body.len()].copy_from_slice(body);
        let mut mac = self.0.clone();
        mac.update(&out[..HEAD + body.len()]);
        out[HEAD + body.len()..length].copy_from_slice(&mac.finalize().into_bytes()[..TAG]);
    }

    /// A datagram of its own number.
    pub fn seal(&self, kind: Kind, path: u8, session: u64, number: u64, body: &[u8]) -> Vec<u8> {
        self.seal_part(kind, path, 0, session, number, body)
    }

    pub fn seal_part(&self, kind: Kind, path: u8, part: u8, session: u64, number: u64, body: &[u8]) -> Vec<u8> {
        debug_assert!(body.len() <= BODY, "{kind:?} of {} bytes", body.len());
        let mut out = vec![0; HEAD + body.len() + TAG];
        self.write(kind, path, part, session, number, body, &mut out);
        out
    }

    /// A datagram as another version would say it.
    pub fn as_of(&self, version: u8, mut packet: Vec<u8>) -> Vec<u8> {
        packet[2] = version;
        let end = packet.len() - TAG;
        let (signed, tag) = packet.split_at_mut(end);
        let mut mac = self.0.clone();
        mac.update(signed);
        tag.copy_from_slice(&mac.finalize().into_bytes()[..TAG]);
        packet
    }

    /// A probe's payload; `out` has [`PROBE`] bytes.
    pub fn probe(&self, path: u8, part: u8, session: u64, head: ProbeHead, out: &mut [u8]) {
        self.write(Kind::Probe, path, part, session, head.number(), &head.rest.to_be_bytes(), out);
    }
}

/// Why a datagram of a session is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// Not signed by the other end: forged, or changed on its way.
    Tag,
    /// Heard before.
    Replayed,
}

/// One end of one path of a session: what it signs with, and what it has heard. Probes have no place in the window: their
/// receiver knows which ones it has had.
#[derive(Clone)]
pub(super) struct Channel {
    pub session: u64,
    pub path: u8,
    pub send: Signer,
    pub receive: Signer,
    /// The number of the next control message.
    next: u64,
    window: ReplayWindow,
}

impl Channel {
    pub fn new(session: u64, path: u8, send: Signer, receive: Signer) -> Channel {
        Channel { session, path, send, receive, next: 1, window: ReplayWindow::default() }
    }

    /// A control message and its number.
    pub fn seal(&mut self, kind: Kind, part: u8, body: &[u8]) -> (u64, Vec<u8>) {
        let number = self.next;
        self.next += 1;
        (number, self.send.seal_part(kind, self.path, part, self.session, number, body))
    }

    /// Whether the other end has said this, and for the first time.
    pub fn accept(&mut self, datagram: &Datagram) -> Result<(), Rejected> {
        if !datagram.is_signed(&self.receive) {
            return Err(Rejected::Tag);
        }
        let fresh = datagram.kind == Kind::Probe || self.window.accept(datagram.number);
        if fresh { Ok(()) } else { Err(Rejected::Replayed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signer(byte: u8) -> Signer {
        Signer::new(&[byte; 32])
    }

    #[test]
    fn a_datagram_comes_back_whatever_fills_it_up() {
        let mut packet = signer(1).seal_part(Kind::Ask, 3, 9, 77, 5, b"body");
        packet.resize(500, 0xff);
        let d = Datagram::parse(&packet).unwrap();
        assert_eq!((d.kind, d.path, d.part, d.session, d.number, d.body), (Kind::Ask, 3, 9, 77, 5, &b"body"[..]));
        assert!(d.is_signed(&signer(1)) && !d.is_signed(&signer(2)));
    }

    #[test]
    fn a_probe_fits_the_smallest_packets() {
        let head = ProbeHead { train: 7, index: 2, count: 4, rest: 1000 };
        let mut out = [0; PROBE];
        signer(1).probe(1, 2, 3, head, &mut out);
        const { assert!(PROBE + 28 <= 92 && PROBE + 48 <= 120) };
        let d = Datagram::parse(&out).unwrap();
        assert_eq!((d.part, ProbeHead::of(&d)), (2, Some(head)));
        signer(1).probe(1, 2, 3, ProbeHead { index: 4, ..head }, &mut out);
        assert_eq!(ProbeHead::of(&Datagram::parse(&out).unwrap()), None);
    }

    #[test]
    fn a_changed_bit_is_noticed_wherever_it_is() {
        let packet = signer(1).seal(Kind::Poll, 0, 77, 5, b"body");
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!Datagram::parse(&changed).is_ok_and(|d| d.is_signed(&signer(1))), "bit {bit}");
        }
    }

    #[test]
    fn a_channel_hears_everything_once() {
        let mut here = Channel::new(7, 0, signer(1), signer(2));
        let mut there = Channel::new(7, 0, signer(2), signer(1));
        let (number, packet) = here.seal(Kind::Poll, 0, b"");
        let said = Datagram::parse(&packet).unwrap();
        assert_eq!((number, there.accept(&said), there.accept(&said)), (1, Ok(()), Err(Rejected::Replayed)));
        assert_eq!(here.accept(&said), Err(Rejected::Tag), "its own words");
    }

    proptest! {
        #[test]
        fn random_bytes_are_read_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), real in any::<bool>()) {
            if real && bytes.len() > 6 {
                bytes[..4].copy_from_slice(&[b'P', b'M', VERSION, Kind::Probe as u8]);
                bytes[4] = 0;
            }
            if let Ok(datagram) = Datagram::parse(&bytes) {
                let _ = (ProbeHead::of(&datagram), datagram.is_signed(&signer(1)));
            }
        }
    }
}
