//! The reflector (RFC 8762 section 4.3): sends each packet back with its stamps, as large as it came.
//!
//! # What has no answer
//! - What is shorter than the base packet, so that no answer is larger than its request; what none of the modes reads.
//! - A reflection: a packet that has something where a sender's must be zero. The standard lets a reflector overlook what
//!   stands there, but then one packet with a forged source goes round between two reflectors for ever. It excludes senders of
//!   TWAMP Light that fill these bytes up at random.
//! - What came from a port below 1024, which is a service's and not a sender's, or from one of the ports of this far end; or
//!   from an address that no single host has.
//! - What is too much, of one source or of all.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use pathcast_base::Nanos;
use pathcast_session::address::{is_one_host, source};

use super::packet::{Mode, ReflectedPacket, TestPacket};
use super::time::{ErrorEstimate, Format};
use crate::bucket::Bucket;

/// Sessions whose packets a stateful reflector counts; the one that was silent the longest makes room.
pub const MAX_SESSIONS: usize = 1024;
/// Ports below are services'.
const SERVICES: u16 = 1024;
/// Sources are counted in so many groups.
const SOURCES: usize = 4096;

/// Flags of an extension (RFC 8972 section 4): not understood, as every sender sets it; cut off.
pub(super) const UNRECOGNISED: u8 = 0x80;
const MALFORMED: u8 = 0x40;
pub(super) const EXTRA_PADDING: u8 = 1;

/// What is known of the reflector's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReflectorClock {
    /// Whether it is kept right.
    pub synchronised: bool,
    /// Its largest error.
    pub error: Nanos,
}

/// Whom a reflector answers, and how often.
#[derive(Clone, Debug)]
pub struct ReflectorOptions {
    /// A packet that one of these reads is answered in it.
    pub modes: Vec<Mode>,
    /// Of its stamps.
    pub format: Format,
    /// Does it count its answers of each session, so that losses can be told by direction? Else they have the numbers of what
    /// they answer.
    pub stateful: bool,
    /// Ports that are not answered besides those below 1024: of the reflector itself, and of what else is served here.
    pub own_ports: Vec<u16>,
    /// Answers a second to one source (IPv6: one /64), and as many at once.
    pub per_source: u32,
    /// Answers a second in all, and a tenth of it at once.
    pub in_all: u32,
}

impl Default for ReflectorOptions {
    /// Nobody; NTP's format, counting, 250 answers a second to one source and 10,000 in all.
    fn default() -> Self {
        ReflectorOptions {
            modes: Vec::new(),
            format: Format::Ntp,
            stateful: true,
            own_ports: Vec::new(),
            per_source: 250,
            in_all: 10_000,
        }
    }
}

/// A sender's packet.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it came from.
    pub from: SocketAddr,
    /// The whole payload.
    pub packet: &'a [u8],
    /// Time to live or hop limit with which it came.
    pub ttl: u8,
    /// When it came [ns since 1970].
    pub at: Nanos,
}

/// Sender and session identifier.
type Session = (SocketAddr, u16);

/// Answers senders.
#[derive(Debug)]
pub struct Reflector {
    options: ReflectorOptions,
    /// By sender and session: the next number, and when it was last heard.
    counts: HashMap<Session, (u32, Nanos)>,
    limits: Limits,
}

impl Reflector {
    /// One that has answered nobody yet.
    pub fn new(options: ReflectorOptions) -> Reflector {
        let limits = Limits::new(&options);
        Reflector { options, counts: HashMap::new(), limits }
    }

    /// The answer, to be sent at `now`; none to what is to have none.
    pub fn reflect(&mut self, request: &Request<'_>, now: Nanos, clock: ReflectorClock) -> Option<Vec<u8>> {
        let from = request.from;
        if from.port() < SERVICES || self.options.own_ports.contains(&from.port()) || !is_one_host(from.ip()) {
            return None;
        }
        let read = |mode| TestPacket::read(mode, request.packet).map(|sender| (mode, sender));
        let (mode, sender) = self.options.modes.iter().find_map(read)?;
        if !mode.is_of_sender(request.packet) || !self.limits.allow(now, from.ip()) {
            return None;
        }
        let format = self.options.format;
        let sequence = match self.options.stateful {
            true => count(&mut self.counts, (from, sender.ssid), request.at),
            false => sender.sequence,
        };
        let error = ErrorEstimate::new(clock.synchronised, format, clock.error);
        let own = TestPacket { sequence, timestamp: format.write(now), error, ssid: sender.ssid };
        let received = format.write(request.at);
        let mut answer = ReflectedPacket { own, received, sender, sender_ttl: request.ttl }.write(mode);
        let base = answer.len();
        answer.extend_from_slice(&request.packet[base..]);
        mark_extensions(&mut answer[base..]);
        Some(answer)
    }
}

fn count(counts: &mut HashMap<Session, (u32, Nanos)>, who: Session, at: Nanos) -> u32 {
    if counts.len() >= MAX_SESSIONS && !counts.contains_key(&who) {
        let silent = counts.iter().min_by_key(|(_, (_, last))| *last).map(|(&who, _)| who);
        silent.map(|who| counts.remove(&who));
    }
    let (next, last) = counts.entry(who).or_default();
    let number = *next;
    (*next, *last) = (next.wrapping_add(1), at);
    number
}

/// How many answers there may be.
#[derive(Debug)]
struct Limits {
    in_all: Bucket,
    /// By a number that is made of the source: what is forged from everywhere needs no more memory.
    sources: Vec<Bucket>,
    /// To begin anew when the clock was put back.
    full: (Bucket, Bucket),
    latest: Nanos,
}

impl Limits {
    fn new(options: &ReflectorOptions) -> Limits {
        let in_all = Bucket::new(options.in_all.into(), (options.in_all / 10).max(1).into());
        let each = Bucket::new(options.per_source.into(), options.per_source.into());
        Limits { in_all, sources: vec![each; SOURCES], full: (in_all, each), latest: Nanos::ZERO }
    }

    fn allow(&mut self, now: Nanos, from: IpAddr) -> bool {
        if now < self.latest {
            self.in_all = self.full.0;
            self.sources.fill(self.full.1);
        }
        self.latest = now;
        let mut hasher = DefaultHasher::new();
        source(from).hash(&mut hasher);
        let group = hasher.finish() as usize % SOURCES;
        self.sources[group].take(now, 1) && self.in_all.take(now, 1)
    }
}

/// Says of each extension whether it was understood. Padding of a sender that knows none has no flag and stays as it is.
fn mark_extensions(mut rest: &mut [u8]) {
    while let [flags, kind, high, low, after @ ..] = rest {
        if *flags & UNRECOGNISED == 0 {
            return;
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length > after.len() {
            *flags |= MALFORMED;
            return;
        }
        if *kind == EXTRA_PADDING {
            *flags &= !UNRECOGNISED;
        }
        rest = &mut after[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::packet::StampKey;
    use proptest::prelude::*;

    const CLOCK: ReflectorClock = ReflectorClock { synchronised: true, error: Nanos::millis(1) };

    fn request(sequence: u32, ssid: u16, mode: &Mode) -> Vec<u8> {
        let error = ErrorEstimate::new(false, Format::Ptp, Nanos(5));
        TestPacket { sequence, timestamp: 77, error, ssid }.write(mode)
    }

    fn reflector(mode: &Mode) -> Reflector {
        Reflector::new(ReflectorOptions { modes: vec![mode.clone()], stateful: false, ..ReflectorOptions::default() })
    }

    fn both() -> [Mode; 2] {
        [Mode::Open, Mode::Authenticated(StampKey::new(b"k"))]
    }

    fn reflect_from(reflector: &mut Reflector, from: &str, packet: &[u8], at: Nanos) -> Option<Vec<u8>> {
        let from = from.parse().unwrap();
        reflector.reflect(&Request { from, packet, ttl: 61, at }, at + Nanos(40), CLOCK)
    }

    fn reflect(reflector: &mut Reflector, packet: &[u8], at: Nanos) -> Option<Vec<u8>> {
        reflect_from(reflector, "192.0.2.1:40000", packet, at)
    }

    #[test]
    fn it_answers_with_its_stamps_and_what_it_got() {
        for mode in both() {
            let packet = request(9, 4, &mode);
            let answer = reflect(&mut reflector(&mode), &packet, Nanos::secs(100)).unwrap();
            assert_eq!(answer.len(), packet.len());
            let read = ReflectedPacket::read(&mode, &answer).unwrap();
            let (near, ntp) = (Nanos::secs(90), Format::Ntp);
            assert_eq!(ntp.read(read.received, near), Nanos::secs(100));
            assert_eq!(ntp.read(read.own.timestamp, near), Nanos::secs(100) + Nanos(40));
            assert_eq!((read.own.sequence, read.own.ssid, read.sender_ttl), (9, 4, 61));
            assert!(read.own.error.synchronised && read.own.error.error() >= Some(CLOCK.error));
            assert_eq!(Some(read.sender), TestPacket::read(&mode, &packet));
        }
    }

    #[test]
    fn one_packet_does_not_go_round_between_two_reflectors() {
        for mode in both() {
            let (mut here, mut there) = (reflector(&mode), reflector(&mode));
            let padded = [request(9, 4, &mode), vec![0; 300]].concat();
            for forged in [request(9, 4, &mode), padded] {
                let answer = reflect_from(&mut here, "192.0.2.2:8620", &forged, Nanos::secs(100)).unwrap();
                assert_eq!(reflect_from(&mut there, "192.0.2.1:8620", &answer, Nanos::secs(101)), None, "{mode:?}");
            }
        }
    }

    #[test]
    fn neither_services_nor_itself_nor_many_are_answered() {
        let packet = request(9, 4, &Mode::Open);
        let own_ports = vec![8620, 5275];
        let options = ReflectorOptions { modes: vec![Mode::Open], own_ports, ..ReflectorOptions::default() };
        let mut reflector = Reflector::new(options);
        for nobody in [
            "192.0.2.1:0",
            "192.0.2.1:7",
            "192.0.2.1:53",
            "192.0.2.1:862",
            "[2001:db8::1]:1023",
            "192.0.2.1:8620",
            "192.0.2.1:5275",
            "0.0.0.0:4000",
            "255.255.255.255:4000",
            "224.0.0.1:4000",
            "[ff02::1]:4000",
            "[::]:4000",
        ] {
            assert_eq!(reflect_from(&mut reflector, nobody, &packet, Nanos(0)), None, "{nobody}");
        }
        for sender in ["192.0.2.1:1024", "[2001:db8::1]:65535"] {
            assert!(reflect_from(&mut reflector, sender, &packet, Nanos(0)).is_some(), "{sender}");
        }
    }

    #[test]
    fn one_source_gets_so_many_answers_and_others_theirs() {
        let packet = request(9, 4, &Mode::Open);
        let options = ReflectorOptions { modes: vec![Mode::Open], per_source: 50, ..ReflectorOptions::default() };
        let mut reflector = Reflector::new(options);
        let mut answered = |from: &dyn Fn(u32) -> String, at| {
            (0..1000).filter(|&i| reflect_from(&mut reflector, &from(i), &packet, at).is_some()).count()
        };
        let one = |i: u32| format!("192.0.2.1:{}", 2000 + i);
        let network = |i: u32| format!("[2001:db8::{i:x}]:5000");
        let everywhere = |i: u32| format!("198.18.{}.{}:5000", i / 250, i % 250);
        assert_eq!(answered(&one, Nanos::secs(5)), 50);
        assert_eq!(answered(&network, Nanos::secs(5)), 50);
        assert_eq!(answered(&everywhere, Nanos::secs(5)), 900, "what is left of a tenth of a second of all");
        assert_eq!(answered(&one, Nanos::millis(5500)), 25);
        assert_eq!(answered(&one, Nanos::secs(1)), 50, "the clock was put back");
    }

    #[test]
    fn it_answers_whoever_has_one_of_the_keys() {
        let mode = |key: &[u8]| Mode::Authenticated(StampKey::new(key));
        let modes = vec![mode(b"one"), mode(b"two")];
        let mut reflector = Reflector::new(ReflectorOptions { modes, ..ReflectorOptions::default() });
        for key in [&b"one"[..], b"two"] {
            let answer = reflect(&mut reflector, &request(1, 0, &mode(key)), Nanos::secs(9)).unwrap();
            assert!(ReflectedPacket::read(&mode(key), &answer).is_some());
        }
        for stranger in [request(1, 0, &mode(b"three")), [request(1, 0, &Mode::Open), vec![0; 99]].concat()] {
            assert_eq!(reflect(&mut reflector, &stranger, Nanos::secs(9)), None);
        }
    }

    #[test]
    fn a_stateful_one_counts_each_session() {
        let options = ReflectorOptions { modes: vec![Mode::Open], in_all: 1_000_000, ..ReflectorOptions::default() };
        let mut reflector = Reflector::new(options);
        let mut number = |from: u32, sequence, ssid| {
            let from = SocketAddr::from(([10, 0, (from >> 8) as u8, from as u8], 4000));
            let packet = request(sequence, ssid, &Mode::Open);
            let request = Request { from, packet: &packet, ttl: 61, at: Nanos(sequence.into()) };
            let answer = reflector.reflect(&request, Nanos(sequence.into()), CLOCK);
            ReflectedPacket::read(&Mode::Open, &answer.unwrap()).unwrap().own.sequence
        };
        assert_eq!([number(1, 0, 1), number(1, 3, 1), number(2, 7, 1), number(1, 8, 2)], [0, 1, 0, 0]);
        for other in 0..MAX_SESSIONS as u32 {
            number(256 + other, 100 + other, 1);
        }
        assert_eq!(number(1, 2000, 1), 0, "the oldest made room");
        assert_eq!(reflector.counts.len(), MAX_SESSIONS);
    }

    #[test]
    fn extensions_are_marked_and_plain_padding_is_not() {
        let mut reflector = reflector(&Mode::Open);
        let mut answered = |rest: &[u8]| {
            let packet = [request(0, 0, &Mode::Open).as_slice(), rest].concat();
            reflect(&mut reflector, &packet, Nanos(0)).unwrap()[44..].to_vec()
        };
        assert_eq!(answered(&[0; 9]), [0; 9]);
        // extra padding, one that is unknown, one that is cut off
        let sent = [0x80, 1, 0, 2, 5, 5, 0x80, 200, 0, 1, 6, 0x80, 1, 0, 9, 1];
        let back = [0x00, 1, 0, 2, 5, 5, 0x80, 200, 0, 1, 6, 0xc0, 1, 0, 9, 1];
        assert_eq!(answered(&sent), back);
        assert_eq!(answered(&[0x80, 1, 0]), [0x80, 1, 0]);
    }

    proptest! {
        #[test]
        fn answers_are_as_large_as_requests_or_none(
            mut packet in proptest::collection::vec(any::<u8>(), 0..300), secret: bool, sender: bool) {
            if sender && packet.len() >= 44 {
                packet[16..44].fill(0);
            }
            let mode = both()[usize::from(secret)].clone();
            let answer = reflect(&mut reflector(&mode), &packet, Nanos(0));
            let right = !secret && packet.get(16..44).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
            prop_assert_eq!(answer.map(|a| a.len()), right.then_some(packet.len()));
        }
    }
}
