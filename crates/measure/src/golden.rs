//! Every datagram of version 2 of the protocol as 0.1.0 says it, byte for byte, and the greeting of version 1: a far end or a
//! client of that release hears it.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::{Budget, Effort, Value, WhyNot};
use pathcast_session::Key;

use super::echo::{Echo, Echoed};
use super::forge;
use super::keys::{SessionKeys, greeting};
use super::messages::{
    Begin, ClockInfo, Cookie, Denial, Denied, Hello, Open, Opened, PADDED, Queued, Stamp, encode_ask,
};
use super::outcome::Outcome;
use super::report::{Arrival, TrainArrivals, encode};
use super::request::MethodName;
use super::wire::{BEFORE, BESIDE, Datagram, Kind, PROBE, ProbeHead, Signer, VERSION};
use crate::machine::Batch;

const RECORDED: &str = include_str!("golden-0.1.0.txt");
const PATH: u8 = 1;

/// What is said, and by whom it is signed.
struct Said {
    packet: Vec<u8>,
    signer: Signer,
}

fn said() -> Vec<Said> {
    let key = Key::new("site", [7; 32]).unwrap();
    let keys = SessionKeys::new(&key, &[1; 32], &[2; 32]);
    let mut all = Vec::new();
    let hello = Hello { key_id: "site".into(), nonce: [1; 32] };
    let cookie = Cookie { epoch: 5, digest: [2; 32] };
    let clock = ClockInfo { host: Some([3; 16]), synchronised: true, max_error: Nanos(1_000_000) };
    let total = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(30) };
    let hi = greeting(&key);
    let greeted = hi.seal(Kind::Hello, PATH, 0, 0, &hello.encode());
    let answered = keys.far_end.seal(Kind::Cookie, PATH, keys.session, 0, &cookie.encode());
    for (signer, packet) in [(&hi, &greeted), (&keys.far_end, &answered)] {
        all.push(Said { packet: signer.as_of(BEFORE, packet.clone()), signer: signer.clone() });
        all.push(Said { packet: packet.clone(), signer: signer.clone() });
    }
    let mut number = 0;
    let mut say = |by_client: bool, kind, part, body: &[u8]| {
        number += 1;
        let signer = if by_client { keys.client.clone() } else { keys.far_end.clone() };
        let packet = signer.seal_part(kind, PATH, part, keys.session, number, body);
        all.push(Said { packet, signer });
    };
    say(true, Kind::Open, 0, &Open { hello, cookie, paths: 2, dscp: 46, total, clock }.encode());
    say(false, Kind::Opened, 0, &Opened { total, rate: Rate(1_000_000_000), clock: ClockInfo::default() }.encode());
    say(false, Kind::Queued, 0, &Queued { ahead: 3, measuring: 1 }.encode());
    for denial in Denial::ALL {
        say(false, Kind::Denied, 0, &Denied { denial, limit: 64 }.encode());
    }
    say(true, Kind::Poll, 0, &[]);
    say(true, Kind::PathHello, 0, &[0; PADDED]);
    say(false, Kind::PathCookie, 0, &cookie.encode());
    say(true, Kind::PathJoin, 0, &cookie.encode());
    say(false, Kind::PathJoined, 0, &[]);
    say(true, Kind::Time, 1, &9u32.to_be_bytes());
    let (came, leaves) = (Nanos(1_700_000_000_000_000_000), Nanos(1_700_000_000_000_050_000));
    say(false, Kind::Stamp, 1, &Stamp { id: 9, came, leaves }.encode());
    for effort in [Effort::Light, Effort::Usual, Effort::Thorough { queue: Nanos::millis(500) }] {
        let (method, budget, wait) = (MethodName::Ride, total, Nanos::millis(80));
        say(true, Kind::Begin, 2, &Begin { method, budget, sparing: true, effort, seed: 12, wait }.encode());
    }
    let mut arrivals = TrainArrivals::of(4);
    for (index, at, batch) in [(0, came, Batch::SINGLE), (2, leaves, Batch { index: 0, of: 2 })] {
        assert!(arrivals.add(index, Arrival { at, batch }));
    }
    encode(7, &arrivals).iter().for_each(|body| say(true, Kind::Report, 1, body));
    say(true, Kind::Ask, 1, &encode_ask(&[7, BESIDE + 1]));
    let mut outcome = Outcome { bytes: 123_456, small: vec![(came.0, 1_000_000)], ..Outcome::none(WhyNot::TooFew) };
    outcome.known.capacity_bps = Value::of(1e8, 9.9e7, 1.01e8);
    say(false, Kind::Outcome, 2, &outcome.encode());
    say(true, Kind::Noted, 2, &[]);
    say(true, Kind::Beside, 2, &[]);
    say(true, Kind::Bye, 0, &[]);
    say(true, Kind::Echo, 0, &Echo { id: 9, size: 1500, class: 46 << 2 | 2 }.encode());
    say(false, Kind::Echoed, 0, &Echoed { id: 9, size: 1400, class: 46 << 2, came, leaves }.encode());
    let mut probe = vec![0; PROBE];
    keys.client.probe(PATH, 1, keys.session, ProbeHead { train: 7, index: 2, count: 4, rest: 1000 }, &mut probe);
    all.push(Said { packet: probe, signer: keys.client.clone() });
    all
}

#[test]
fn what_0_1_0_says_is_said_and_read_byte_for_byte() {
    let all = said();
    let named = |said: &Said| {
        let hex: String = said.packet.iter().map(|b| format!("{b:02x}")).collect();
        format!("{:?} {hex}", Kind::in_head(&said.packet).unwrap())
    };
    let now: Vec<_> = all.iter().map(named).collect();
    let recorded: Vec<_> = RECORDED.lines().collect();
    assert_eq!(now, recorded, "a release that is out does not understand this:\n{}", now.join("\n"));
    let kinds: std::collections::HashSet<_> = all.iter().map(|said| said.packet[3]).collect();
    assert_eq!(kinds.len(), Kind::ALL.len(), "each kind is recorded");
    for Said { packet, signer } in &all {
        let version = packet[2];
        let datagram = Datagram::of_version(version, packet).unwrap();
        assert!(datagram.is_signed(signer) && datagram.path == PATH);
        assert_eq!(version == VERSION, forge::read(packet).is_some(), "read, and written again");
    }
}
