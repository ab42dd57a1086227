//! The reflector (RFC 8762 section 4.3): sends each packet back with its stamps, as large as it came. What is shorter than the
//! base packet has no answer, so that no answer is larger than its request.

use std::collections::HashMap;

use pathcast_base::Nanos;

use super::packet::{Mode, ReflectedPacket, TestPacket};
use super::time::{ErrorEstimate, Format};

/// Sessions whose packets a stateful reflector counts; the one that was silent the longest makes room.
pub const MAX_SESSIONS: usize = 1024;

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

/// A sender's packet.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it came from: address and port.
    pub from: &'a [u8],
    /// The whole payload.
    pub packet: &'a [u8],
    /// Time to live or hop limit with which it came.
    pub ttl: u8,
    /// When it came [ns since 1970].
    pub at: Nanos,
}

/// Sender and session identifier.
type Session = (Vec<u8>, u16);

/// Answers senders.
#[derive(Debug)]
pub struct Reflector {
    mode: Mode,
    format: Format,
    /// By sender and session: the next number, and when it was last heard. None: answers have the numbers of what they
    /// answer.
    counts: Option<HashMap<Session, (u32, Nanos)>>,
}

impl Reflector {
    /// A stateful one counts its answers of each session, so that losses can be told by direction.
    pub fn new(mode: Mode, format: Format, stateful: bool) -> Reflector {
        Reflector { mode, format, counts: stateful.then(HashMap::new) }
    }

    /// The answer, to be sent at `now`; none to what is no test packet.
    pub fn reflect(&mut self, request: &Request<'_>, now: Nanos, clock: ReflectorClock) -> Option<Vec<u8>> {
        let sender = TestPacket::read(&self.mode, request.packet)?;
        let sequence = self.count(request, sender);
        let error = ErrorEstimate::new(clock.synchronised, self.format, clock.error);
        let own = TestPacket { sequence, timestamp: self.format.write(now), error, ssid: sender.ssid };
        let received = self.format.write(request.at);
        let mut answer = ReflectedPacket { own, received, sender, sender_ttl: request.ttl }.write(&self.mode);
        let base = answer.len();
        answer.extend_from_slice(&request.packet[base..]);
        mark_extensions(&mut answer[base..]);
        Some(answer)
    }

    fn count(&mut self, request: &Request<'_>, sender: TestPacket) -> u32 {
        let Some(counts) = &mut self.counts else { return sender.sequence };
        let who = (request.from.to_vec(), sender.ssid);
        if counts.len() >= MAX_SESSIONS && !counts.contains_key(&who) {
            let silent = counts.iter().min_by_key(|(_, (_, last))| *last).map(|(who, _)| who.clone());
            silent.map(|who| counts.remove(&who));
        }
        let (next, last) = counts.entry(who).or_default();
        let number = *next;
        (*next, *last) = (next.wrapping_add(1), request.at);
        number
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

    fn reflect(reflector: &mut Reflector, from: &[u8], packet: &[u8], at: Nanos) -> Option<Vec<u8>> {
        reflector.reflect(&Request { from, packet, ttl: 61, at }, at + Nanos(40), CLOCK)
    }

    #[test]
    fn it_answers_with_its_stamps_and_what_it_got() {
        for mode in [Mode::Open, Mode::Authenticated(StampKey::new(b"k"))] {
            let packet = request(9, 4, &mode);
            let mut reflector = Reflector::new(mode.clone(), Format::Ntp, false);
            let answer = reflect(&mut reflector, b"a", &packet, Nanos::secs(100)).unwrap();
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
    fn a_stateful_one_counts_each_session() {
        let mut reflector = Reflector::new(Mode::Open, Format::Ntp, true);
        let mut number = |from: &[u8], sequence, ssid| {
            let answer = reflect(&mut reflector, from, &request(sequence, ssid, &Mode::Open), Nanos(sequence.into()));
            ReflectedPacket::read(&Mode::Open, &answer.unwrap()).unwrap().own.sequence
        };
        assert_eq!([number(b"a", 0, 1), number(b"a", 3, 1), number(b"b", 7, 1), number(b"a", 8, 2)], [0, 1, 0, 0]);
        for other in 0..MAX_SESSIONS as u32 {
            number(&other.to_be_bytes(), 100 + other, 1);
        }
        assert_eq!(number(b"a", 2000, 1), 0, "the oldest made room");
        assert_eq!(reflector.counts.unwrap().len(), MAX_SESSIONS);
    }

    #[test]
    fn extensions_are_marked_and_plain_padding_is_not() {
        let mut reflector = Reflector::new(Mode::Open, Format::Ntp, false);
        let mut answered = |rest: &[u8]| {
            let packet = [request(0, 0, &Mode::Open).as_slice(), rest].concat();
            reflect(&mut reflector, b"a", &packet, Nanos(0)).unwrap()[44..].to_vec()
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
        fn answers_are_as_large_as_requests_or_none(packet in proptest::collection::vec(any::<u8>(), 0..300), secret: bool) {
            let mode = if secret { Mode::Authenticated(StampKey::new(b"k")) } else { Mode::Open };
            let answer = reflect(&mut Reflector::new(mode, Format::Ptp, true), b"a", &packet, Nanos(0));
            let expected = (!secret && packet.len() >= 44).then_some(packet.len());
            prop_assert_eq!(answer.map(|a| a.len()), expected);
        }
    }
}
