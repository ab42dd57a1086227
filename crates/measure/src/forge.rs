//! Either end of a measurement as it should not be: it holds the key and says whatever it likes. For fuzzing and tests only.

use pathcast_base::Nanos;
use pathcast_estimate::{Budget, Effort, Value, WhyNot};
use pathcast_session::codec::LATEST;
use pathcast_session::{Key, Nonce};

use super::echo::{Echo, Echoed};
use super::keys::{SessionKeys, greeting};
use super::messages::{Begin, ClockInfo, Cookie, Denied, Hello, Open, Opened, PADDED, Queued, Stamp, decode_ask};
use super::outcome::Outcome;
use super::report::{self, Arrival, Fate, TrainArrivals};
use super::wire::{BEFORE, Datagram, Kind, PROBE, ProbeHead, Signer};
use crate::machine::Batch;

/// The kinds of messages, by their numbers on the wire.
pub const KINDS: u8 = Kind::ALL.len() as u8;

/// What a datagram says, if it has the right form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of the head
pub struct ParsedDatagram {
    pub kind: u8,
    pub path: u8,
    pub part: u8,
    pub session: u64,
    pub number: u64,
    pub body: Vec<u8>,
}

/// Lets every parser read a datagram and, as if it were one, its body; what is understood must come back when it is
/// written and read again.
///
/// # Panics
/// If it does not.
pub fn read(packet: &[u8]) -> Option<ParsedDatagram> {
    bodies(packet);
    let d = Datagram::parse(packet).ok()?;
    bodies(d.body);
    if let Some(head) = ProbeHead::of(&d) {
        assert_eq!(head.number(), d.number);
    }
    let said = ParsedDatagram {
        kind: d.kind as u8,
        path: d.path,
        part: d.part,
        session: d.session,
        number: d.number,
        body: d.body.to_vec(),
    };
    let signer = Signer::new(&[7; 32]);
    let (mut again, right) = (vec![0; packet.len()], !d.is_signed(&signer));
    assert!(right, "nobody signed it with this key");
    let sealed = signer.seal(d.kind, d.path, d.session, d.number, d.body);
    again[..sealed.len()].copy_from_slice(&sealed);
    let again = Datagram::parse(&again).expect("what is written is read");
    assert!(again.is_signed(&signer) && again.body == d.body && again.number == d.number);
    Some(said)
}

/// Whether it is a greeting of the version before, which a client sends to whom it has not heard.
pub fn is_of_before(packet: &[u8]) -> bool {
    Datagram::of_version(BEFORE, packet).is_some_and(|datagram| datagram.kind == Kind::Hello)
}

/// Whether the body is one of its kind, as far as the far end sends any.
pub fn is_sound(said: &ParsedDatagram) -> bool {
    let body = &said.body;
    match Kind::ALL[usize::from(said.kind - 1)] {
        Kind::Cookie | Kind::PathCookie => Cookie::decode(body).is_some(),
        Kind::Opened => Opened::decode(body).is_some(),
        Kind::Queued => Queued::decode(body).is_some(),
        Kind::Denied => Denied::decode(body).is_some(),
        Kind::Stamp => Stamp::decode(body).is_some(),
        Kind::Echoed => Echoed::decode(body).is_some(),
        Kind::Report => report::decode(body).is_some(),
        Kind::Ask => decode_ask(body).is_some(),
        Kind::Outcome => Outcome::decode(body).is_some(),
        Kind::PathJoined | Kind::Bye => body.is_empty(),
        _ => false,
    }
}

fn bodies(body: &[u8]) {
    macro_rules! back {
        ($($name:ident)*) => {$(
            if let Some(said) = $name::decode(body) {
                assert_eq!($name::decode(&said.encode()), Some(said), stringify!($name));
            }
        )*};
    }
    back!(Hello Cookie Open Opened Queued Denied Stamp Begin Echo Echoed);
    if let Some(outcome) = Outcome::decode(body) {
        assert_eq!(Outcome::decode(&outcome.encode()).map(|again| format!("{again:?}")), Some(format!("{outcome:?}")));
    }
    decode_ask(body);
    for piece in report::decode(body).into_iter().flatten() {
        let blank = piece.count == 0 && piece.first == 1 && piece.fates.is_empty();
        assert!(blank || usize::from(piece.first) + piece.fates.len() <= piece.count.into());
        for fate in piece.fates {
            assert!(!matches!(fate, Fate::Came(arrival) if arrival.batch.index >= arrival.batch.of));
        }
    }
}

/// The keys of one session.
pub struct Forge(SessionKeys);

impl Forge {
    /// A client's first word, in `path`.
    pub fn hello(key: &Key, nonce: Nonce, path: u8) -> Vec<u8> {
        let body = Hello { key_id: key.id().into(), nonce }.encode();
        greeting(key).seal(Kind::Hello, path, 0, 0, &body)
    }

    /// What a client has once its Hello is answered: the session's keys, and Open.
    pub fn open(key: &Key, nonce: Nonce, answer: &[u8], paths: u8, total: Budget) -> Option<(Forge, Vec<u8>)> {
        let answer = Datagram::parse(answer).ok()?;
        let cookie = Cookie::decode(answer.body)?;
        let keys = SessionKeys::new(key, &nonce, &cookie.digest);
        let hello = Hello { key_id: key.id().into(), nonce };
        let open = Open { hello, cookie, paths, dscp: 0, total, clock: ClockInfo::default() };
        let packet = keys.client.seal(Kind::Open, answer.path, keys.session, 0, &open.encode());
        Some((Forge(keys), packet))
    }

    /// What a far end has that is asked with Hello: the session's keys, and Cookie.
    pub fn cookie(key: &Key, hello: &[u8], digest: Nonce) -> Option<(Forge, Vec<u8>)> {
        let hello = Datagram::parse(hello).ok()?;
        let nonce = Hello::decode(hello.body)?.nonce;
        let keys = SessionKeys::new(key, &nonce, &digest);
        let body = Cookie { epoch: 0, digest }.encode();
        let packet = keys.far_end.seal(Kind::Cookie, hello.path, keys.session, 0, &body);
        Some((Forge(keys), packet))
    }

    /// The session's number.
    pub fn session(&self) -> u64 {
        self.0.session
    }

    /// A datagram that is signed by the client or by the far end; `kind` counts from 0.
    pub fn say(&self, by_client: bool, kind: u8, path: u8, part: u8, number: u64, body: &[u8]) -> Vec<u8> {
        let signer = if by_client { &self.0.client } else { &self.0.far_end };
        let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
        signer.seal_part(kind, path, part, self.0.session, number, &body[..body.len().min(super::wire::BODY)])
    }

    /// A probe: its place is (train, index, count), and `rest` how long its train goes on [µs].
    pub fn probe(&self, by_client: bool, path: u8, part: u8, place: (u32, u16, u16), rest: u32) -> Vec<u8> {
        let signer = if by_client { &self.0.client } else { &self.0.far_end };
        let mut out = vec![0; PROBE];
        let (train, index, count) = place;
        signer.probe(path, part, self.0.session, ProbeHead { train, index, count, rest }, &mut out);
        out
    }
}

/// The bodies of the reports of a train: of each packet when it came, or none, and the index and number of its batch.
pub fn reports(train: u32, arrivals: &[Option<(Nanos, u32, u32)>]) -> Vec<Vec<u8>> {
    let arrival = |&(at, index, of): &(Nanos, u32, u32)| Arrival { at, batch: Batch { index, of } };
    let mut came = TrainArrivals::of(arrivals.len() as u16);
    for (index, a) in (0..).zip(arrivals) {
        a.iter().for_each(|a| assert!(came.add(index, arrival(a))));
    }
    let reports = report::encode(train, &came);
    if arrivals.iter().flatten().all(|arrival| arrival.0 <= LATEST) {
        let pieces = reports.iter().flat_map(|body| report::decode(body).expect("what is written is read"));
        let told: usize = pieces.map(|piece| piece.fates.len()).sum();
        assert!(told == arrivals.len() || (told == 0 && came.packets() < arrivals.len()));
    }
    reports
}

/// The bodies of a Begin, an Opened and a Queued.
pub fn bodies_of(method: u8, total: Budget, seed: u64, wait: Nanos, rate: u64) -> [Vec<u8>; 3] {
    let method = super::request::MethodName::ALL[usize::from(method) % 5];
    let effort = Effort::default();
    let begin = Begin { method, budget: total, sparing: seed % 2 == 1, effort, seed, wait }.encode();
    let opened = Opened { total, rate: pathcast_base::Rate(rate), clock: ClockInfo::default() }.encode();
    [begin, opened, Queued { ahead: seed as u32, measuring: 1 }.encode()]
}

/// The body of an Outcome with these rates, of so many bytes.
pub fn outcome(rates: [f64; 3], bytes: u64, small: &[(u64, i64)]) -> Vec<u8> {
    let [value, low, high] = rates;
    let value = Value { value: Some(value), low, high, why: None };
    let mut outcome = Outcome { bytes, small: small.to_vec(), ..Outcome::none(WhyNot::TooFew) };
    (outcome.known.capacity_bps, outcome.known.available_bps) = (value, value);
    outcome.encode()
}

/// The body of a Stamp.
pub fn stamp(id: u32, came: Nanos, leaves: Nanos) -> Vec<u8> {
    Stamp { id, came, leaves }.encode()
}

/// The body of an Echo: of which number, and how large and of which class the answer is to be.
pub fn echo(id: u32, size: u16, class: u8) -> Vec<u8> {
    Echo { id, size, class }.encode()
}

/// The body of an Echoed.
pub fn echoed(id: u32, size: u16, class: u8, came: Nanos, leaves: Nanos) -> Vec<u8> {
    Echoed { id, size, class, came, leaves }.encode()
}

/// The body of a PathHello.
pub fn path_hello() -> Vec<u8> {
    vec![0; PADDED]
}
