//! The packets of STAMP: RFC 8762 sections 4.2 (sender) and 4.3 (reflector), open and authenticated; the session identifier
//! is RFC 8972's (section 3).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use pathcast_session::Key;
use sha2::Sha256;

use super::time::ErrorEstimate;

/// Where the fields are [byte]: in packets of the sender the first four, in those of the reflector all.
struct Layout {
    sequence: usize,
    timestamp: usize,
    error: usize,
    ssid: usize,
    received: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error: usize,
    sender_ttl: usize,
    length: usize,
}

const OPEN: Layout = Layout {
    sequence: 0,
    timestamp: 4,
    error: 12,
    ssid: 14,
    received: 16,
    sender_sequence: 24,
    sender_timestamp: 28,
    sender_error: 36,
    sender_ttl: 40,
    length: 44,
};

/// The last 16 bytes are the HMAC of all before.
const AUTHENTICATED: Layout = Layout {
    sequence: 0,
    timestamp: 16,
    error: 24,
    ssid: 26,
    received: 32,
    sender_sequence: 48,
    sender_timestamp: 64,
    sender_error: 72,
    sender_ttl: 80,
    length: 112,
};

const HMAC_AT: usize = 96;

/// A shared secret.
#[derive(Clone)]
pub struct StampKey(Hmac<Sha256>);

impl StampKey {
    /// What `key` gives to STAMP: HKDF-SHA256 of its secret, so that who learns it, such as a router, has no more of the key.
    pub fn of(key: &Key) -> StampKey {
        StampKey::new(&key.derive(b"", "stamp"))
    }

    /// Of any length; 32 random bytes are a good one.
    pub fn new(secret: &[u8]) -> StampKey {
        StampKey(Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"))
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 16] {
        let full = self.0.clone().chain_update(bytes).finalize().into_bytes();
        std::array::from_fn(|i| full[i])
    }
}

impl fmt::Debug for StampKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StampKey(…)")
    }
}

/// How packets are protected. Both ends must have the same.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    /// Not at all.
    #[default]
    Open,
    /// By HMAC-SHA-256, of which 128 bits travel.
    Authenticated(StampKey),
}

impl Mode {
    fn layout(&self) -> &'static Layout {
        match self {
            Mode::Open => &OPEN,
            Mode::Authenticated(_) => &AUTHENTICATED,
        }
    }

    /// The base packet of both ends [byte].
    pub fn length(&self) -> usize {
        self.layout().length
    }

    fn seal(&self, packet: &mut [u8]) {
        if let Mode::Authenticated(key) = self {
            let tag = key.sign(&packet[..HMAC_AT]);
            packet[HMAC_AT..AUTHENTICATED.length].copy_from_slice(&tag);
        }
    }

    /// Whether a base packet that could be read is a sender's: what a reflector writes is zero in it.
    pub(super) fn is_of_sender(&self, packet: &[u8]) -> bool {
        let end = if matches!(self, Mode::Open) { OPEN.length } else { HMAC_AT };
        packet[self.layout().ssid + 2..end].iter().all(|&byte| byte == 0)
    }

    /// The base packet, if there is one and it is authentic.
    fn open<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let base = packet.get(..self.length())?;
        if let Mode::Authenticated(key) = self {
            let (bytes, tag) = base.split_at(HMAC_AT);
            key.0.clone().chain_update(bytes).verify_truncated_left(tag).ok()?;
        }
        Some(base)
    }
}

/// What the sender sends, and the reflector sends back of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// From 0.
    pub sequence: u32,
    /// When it was sent, in the format that `error` says.
    pub timestamp: u64,
    /// Of the clock.
    pub error: ErrorEstimate,
    /// The session; 0: none.
    pub ssid: u16,
}

impl TestPacket {
    /// As it travels.
    pub fn write(&self, mode: &Mode) -> Vec<u8> {
        let at = mode.layout();
        let mut packet = vec![0; at.length];
        put(&mut packet, at.sequence, &self.sequence.to_be_bytes());
        put(&mut packet, at.timestamp, &self.timestamp.to_be_bytes());
        put(&mut packet, at.error, &self.error.to_bits().to_be_bytes());
        put(&mut packet, at.ssid, &self.ssid.to_be_bytes());
        mode.seal(&mut packet);
        packet
    }

    /// None if it is too short or not authentic.
    pub fn read(mode: &Mode, packet: &[u8]) -> Option<TestPacket> {
        let (base, at) = (mode.open(packet)?, mode.layout());
        Some(TestPacket {
            sequence: u32::from_be_bytes(take(base, at.sequence)),
            timestamp: u64::from_be_bytes(take(base, at.timestamp)),
            error: ErrorEstimate::from_bits(u16::from_be_bytes(take(base, at.error))),
            ssid: u16::from_be_bytes(take(base, at.ssid)),
        })
    }
}

/// What the reflector sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectedPacket {
    /// Its own: number, time of sending, clock; the session.
    pub own: TestPacket,
    /// When the sender's packet came to it, in its format.
    pub received: u64,
    /// The sender's, without the session, which is told once.
    pub sender: TestPacket,
    /// Time to live or hop limit with which the sender's packet came.
    pub sender_ttl: u8,
}

impl ReflectedPacket {
    /// As it travels.
    pub fn write(&self, mode: &Mode) -> Vec<u8> {
        let at = mode.layout();
        let mut packet = self.own.write(mode);
        put(&mut packet, at.received, &self.received.to_be_bytes());
        put(&mut packet, at.sender_sequence, &self.sender.sequence.to_be_bytes());
        put(&mut packet, at.sender_timestamp, &self.sender.timestamp.to_be_bytes());
        put(&mut packet, at.sender_error, &self.sender.error.to_bits().to_be_bytes());
        put(&mut packet, at.sender_ttl, &[self.sender_ttl]);
        mode.seal(&mut packet);
        packet
    }

    /// None if it is too short or not authentic.
    pub fn read(mode: &Mode, packet: &[u8]) -> Option<ReflectedPacket> {
        let own = TestPacket::read(mode, packet)?;
        let at = mode.layout();
        let sender = TestPacket {
            sequence: u32::from_be_bytes(take(packet, at.sender_sequence)),
            timestamp: u64::from_be_bytes(take(packet, at.sender_timestamp)),
            error: ErrorEstimate::from_bits(u16::from_be_bytes(take(packet, at.sender_error))),
            ssid: own.ssid,
        };
        let received = u64::from_be_bytes(take(packet, at.received));
        Some(ReflectedPacket { own, received, sender, sender_ttl: packet[at.sender_ttl] })
    }
}

fn put(packet: &mut [u8], at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

fn take<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| packet[at + i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> Mode {
        Mode::Authenticated(StampKey::new(b"secret"))
    }

    fn test(sequence: u32, timestamp: u64, error: u16, ssid: u16) -> TestPacket {
        TestPacket { sequence, timestamp, error: ErrorEstimate::from_bits(error), ssid }
    }

    fn reflected() -> ReflectedPacket {
        let own = test(0x0102_0304, 0x1112_1314_1516_1718, 0x2122, 0x2324);
        let sender = test(0x4142_4344, 0x5152_5354_5556_5758, 0x6162, 0x2324);
        ReflectedPacket { own, received: 0x3132_3334_3536_3738, sender, sender_ttl: 0x71 }
    }

    /// The figures of RFC 8762, word by word; `..` is zero.
    const FIGURE_OPEN: &str =
        "01020304 11121314 15161718 21222324 31323334 35363738 41424344 51525354 55565758 6162.... 71......";
    const FIGURE_AUTHENTICATED: &str = "01020304 ........ ........ ........ 11121314 15161718 21222324 ........ 31323334 35363738 \
        ........ ........ 41424344 ........ ........ ........ 51525354 55565758 6162.... ........ 71...... ........ ........ ........";

    fn bytes(figure: &str) -> Vec<u8> {
        let digits: Vec<char> = figure.chars().filter(|c| !c.is_whitespace()).collect();
        digits
            .chunks(2)
            .map(|d| u8::from_str_radix(&d.iter().collect::<String>().replace('.', "0"), 16).unwrap())
            .collect()
    }

    #[test]
    fn the_layout_is_the_standards() {
        assert_eq!(reflected().write(&Mode::Open), bytes(FIGURE_OPEN));
        let sealed = reflected().write(&key());
        assert_eq!(sealed[..96], bytes(FIGURE_AUTHENTICATED));
        assert_eq!((sealed.len(), bytes(FIGURE_OPEN).len()), (112, 44));
        let own = reflected().own.write(&Mode::Open);
        assert_eq!((&own[..16], &own[16..]), (&bytes(FIGURE_OPEN)[..16], &[0; 28][..]));
        let own = reflected().own.write(&key());
        assert_eq!((&own[..28], &own[28..96]), (&bytes(FIGURE_AUTHENTICATED)[..28], &[0; 68][..]));
    }

    #[test]
    fn the_tag_is_hmac_sha256_cut_to_128_bits() {
        // RFC 4231, test case 2
        let key = StampKey::new(b"Jefe");
        let tag = key.sign(b"what do ya want for nothing?");
        assert_eq!(tag.to_vec(), bytes("5bdcc146bf60754e6a042426089575c7"));
        assert!(!format!("{:?}", Mode::Authenticated(key)).contains("Jefe"));
    }

    #[test]
    fn what_was_changed_is_not_read() {
        let good = reflected().write(&key());
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert_eq!(ReflectedPacket::read(&key(), &bad), None, "byte {i}");
        }
        assert_eq!(TestPacket::read(&Mode::Authenticated(StampKey::new(b"other")), &good), None);
        assert_eq!(ReflectedPacket::read(&key(), &good[..111]), None);
        assert_eq!(TestPacket::read(&Mode::Open, &[0; 43]), None);
    }

    proptest! {
        #[test]
        fn packets_read_back(sequence: u32, timestamp: u64, error: u16, ssid: u16, received: u64, ttl: u8, secret: bool,
            padding in 0usize..100) {
            let mode = if secret { key() } else { Mode::Open };
            let own = test(sequence, timestamp, error, ssid);
            let sender = test(sequence.wrapping_mul(3), !timestamp, !error, ssid);
            let all = ReflectedPacket { own, received, sender, sender_ttl: ttl };
            let mut packet = all.write(&mode);
            packet.resize(packet.len() + padding, 7);
            prop_assert_eq!(ReflectedPacket::read(&mode, &packet), Some(all));
            prop_assert_eq!(TestPacket::read(&mode, &own.write(&mode)), Some(own));
        }
        #[test]
        fn no_bytes_panic(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            let open = ReflectedPacket::read(&Mode::Open, &packet);
            prop_assert_eq!(open.is_some(), packet.len() >= 44);
            prop_assert_eq!(ReflectedPacket::read(&key(), &packet), None);
        }
    }
}
