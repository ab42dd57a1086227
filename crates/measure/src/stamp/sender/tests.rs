//! The sender against the reflector, over a way that delays, loses and doubles packets.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use proptest::prelude::*;

use super::*;
use crate::machine::Batch;
use crate::stamp::{Reflector, ReflectorClock, ReflectorOptions, Request, StampKey, TestPacket};

/// What the way does to a packet: lost before or after the reflector, or answered twice.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Fine,
    LostOut,
    LostIn,
    Twice,
    Unsent,
}

struct Way {
    fates: Vec<Fate>,
    /// What the reflector's clock shows less the sender's [ns].
    offset: i64,
    reflector: Reflector,
    clock: ReflectorClock,
}

const FROM: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4000));
const OUT: Nanos = Nanos::millis(3);
const BACK: Nanos = Nanos::millis(8);
const THERE: Nanos = Nanos::micros(500);

impl Way {
    fn new(fates: &[Fate], stateful: bool, mode: Mode) -> Way {
        let options = ReflectorOptions { modes: vec![mode], stateful, ..ReflectorOptions::default() };
        let reflector = Reflector::new(options);
        let clock = ReflectorClock { synchronised: true, error: Nanos::millis(2) };
        Way { fates: fates.to_vec(), offset: 0, reflector, clock }
    }

    fn run(&mut self, options: SenderOptions) -> StampReport {
        let mut sender = Sender::new(SenderOptions { count: self.fates.len() as u32, ..options });
        let mut now = Nanos::secs(1_700_000_000);
        let mut coming: Vec<(Nanos, Vec<u8>)> = Vec::new();
        sender.handle(now, Event::Started);
        loop {
            let mut wake = Nanos::MAX;
            while let Some(action) = sender.next(now) {
                match action {
                    Action::Done(_) => return sender.report(),
                    Action::WakeAt(at) => wake = at,
                    Action::Reply(reply) if self.fates[reply.seq as usize] == Fate::Unsent => {
                        sender.handle(now, Event::Unsent { path: 0, seq: reply.seq });
                    }
                    Action::Reply(reply) => {
                        self.answer(&reply, now, &mut coming);
                        sender.handle(now, Event::Sent { path: 0, seq: reply.seq, at: now + Nanos(700), handed: now });
                    }
                    _ => {}
                }
            }
            coming.sort();
            let first = coming.first().map_or(Nanos::MAX, |c| c.0);
            now = now.max(wake.min(first));
            if first <= wake {
                let packet = coming.remove(0).1;
                let (size, batch) = (packet.len() as u16 + 28, Batch::SINGLE);
                sender
                    .handle(now, Event::Received { path: 0, packet: &packet, size, dscp: 10, ecn: 0, at: now, batch });
            } else {
                sender.handle(now, Event::Timer);
            }
        }
    }

    fn answer(&mut self, reply: &Reply, now: Nanos, coming: &mut Vec<(Nanos, Vec<u8>)>) {
        let fate = self.fates[reply.seq as usize];
        if fate == Fate::LostOut {
            return;
        }
        let at = Nanos((now + Nanos(700) + OUT).0.saturating_add_signed(self.offset));
        let request = Request { from: FROM, packet: &reply.payload, ttl: 60, at };
        let answer = self.reflector.reflect(&request, at + THERE, self.clock).unwrap();
        let copies = match fate {
            Fate::Fine => 1,
            Fate::Twice => 2,
            Fate::LostOut | Fate::LostIn | Fate::Unsent => 0,
        };
        for copy in 0..copies {
            coming.push((now + Nanos(700) + OUT + THERE + BACK + Nanos(copy), answer.clone()));
        }
    }
}

fn synchronised() -> SenderOptions {
    SenderOptions { synchronised: true, error: Nanos::millis(1), ssid: 7, ..SenderOptions::default() }
}

fn is(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 3e-9
}

#[test]
fn round_trips_and_one_way_delays() {
    for mode in [Mode::Open, Mode::Authenticated(StampKey::new(b"k"))] {
        let report = Way::new(&[Fate::Fine; 5], false, mode.clone()).run(SenderOptions { mode, ..synchronised() });
        assert_eq!((report.sent, report.received, report.lost, report.lost_out), (5, 5, 0, Some(0)));
        let (out, back) = (report.out_s.unwrap(), report.in_s.unwrap());
        assert!(is(report.round_trip_s.unwrap().median, 0.011), "{report:?}");
        assert!(is(out.minimum.unwrap(), 0.003) && is(back.minimum.unwrap(), 0.008), "{report:?}");
        assert!((out.error.unwrap() - 0.003).abs() < 2e-5, "{report:?}");
        assert_eq!((report.ttl_out, report.dscp_in), (Some(60), Some(10)));
    }
}

#[test]
fn without_synchronised_clocks_there_is_no_absolute_delay() {
    let mut way = Way::new(&[Fate::Fine; 3], false, Mode::Open);
    way.offset = -5_000_000_000;
    way.clock.synchronised = false;
    let report = way.run(synchronised());
    let out = report.out_s.unwrap();
    assert_eq!((out.synchronised, out.minimum, out.error), (false, None, None));
    assert!(is(report.round_trip_s.unwrap().p95, 0.011) && is(out.p95_above_minimum, 0.0), "{report:?}");
}

#[test]
fn a_counting_reflector_tells_where_packets_were_lost() {
    let fates = [Fate::Fine, Fate::LostOut, Fate::LostIn, Fate::LostOut, Fate::Twice, Fate::Fine];
    let report = Way::new(&fates, true, Mode::Open).run(synchronised());
    assert_eq!((report.sent, report.received, report.lost, report.duplicates), (6, 3, 3, 1));
    assert_eq!((report.lost_out, report.lost_in), (Some(2), Some(1)));
    let report = Way::new(&fates, false, Mode::Open).run(synchronised());
    assert_eq!((report.lost, report.lost_out, report.lost_in), (3, None, None));
}

#[test]
fn of_what_was_lost_behind_the_last_answer_nobody_knows_where() {
    let fates = [Fate::Fine, Fate::LostOut, Fate::Fine, Fate::LostOut];
    let report = Way::new(&fates, true, Mode::Open).run(synchronised());
    assert_eq!((report.lost, report.lost_out, report.lost_in, report.warnings), (2, None, None, vec![]));
}

#[test]
fn what_did_not_leave_was_not_lost_on_the_way() {
    for stateful in [true, false] {
        let fates = [Fate::Fine, Fate::Unsent, Fate::LostIn, Fate::LostOut, Fate::Fine];
        let report = Way::new(&fates, stateful, Mode::Open).run(synchronised());
        let told = stateful.then_some(1);
        assert_eq!((report.unsent, report.lost, report.lost_out, report.lost_in), (1, 2, told, told));
        assert_eq!(report.warnings, []);
    }
}

#[test]
fn silence_ends() {
    let report = Way::new(&[Fate::LostOut; 3], false, Mode::Open).run(synchronised());
    assert_eq!((report.sent, report.received, report.lost), (3, 0, 3));
    assert_eq!((report.round_trip_s, report.out_s, report.lost_out), (None, None, None));
}

#[test]
fn answers_to_others_are_not_taken() {
    let mut sender = Sender::new(SenderOptions::default());
    let now = Nanos::secs(1_700_000_000);
    sender.handle(now, Event::Started);
    let payload = std::iter::from_fn(|| sender.next(now)).find_map(|a| match a {
        Action::Reply(reply) => Some(reply.payload),
        _ => None,
    });
    let good = [payload.clone().unwrap(), vec![0; 16]].concat();
    let options = ReflectorOptions { modes: vec![Mode::Open], ..ReflectorOptions::default() };
    let mut reflector = Reflector::new(options);
    let clock = ReflectorClock { synchronised: true, error: Nanos(1) };
    let mut tell = |packet: &[u8]| {
        sender.receive(packet, 0, now);
        sender.report().received
    };
    assert_eq!(tell(&good), 0, "our own packet");
    for (at, value) in [(3, 5), (11, 1), (15, 9)] {
        let mut other = good.clone();
        other[at] ^= value; // number, time, session
        let request = Request { from: FROM, packet: &other, ttl: 1, at: now };
        assert_eq!(tell(&reflector.reflect(&request, now, clock).unwrap()), 0, "byte {at}");
    }
    let request = Request { from: FROM, packet: &good, ttl: 1, at: now };
    assert_eq!(tell(&reflector.reflect(&request, now, clock).unwrap()), 1);
}

#[test]
fn padding() {
    let open = |payload| pad(vec![9; 44], payload, &Mode::Open);
    assert_eq!((open(0).len(), open(47).len(), open(47)[44..].to_vec()), (44, 47, vec![0; 3]));
    assert_eq!(open(50)[44..], [0x80, 1, 0, 2, 0, 0]);
    let closed = pad(vec![9; 112], 120, &Mode::Authenticated(StampKey::new(b"k")));
    assert_eq!((closed.len(), &closed[112..]), (120, &[0; 8][..]));
}

/// What a reflector says in an answer: its number, when the packet came and when the answer left, and of its clock.
type Said = (u32, u64, u64, u16);

/// When the first packet leaves, how long each is away and from one to the next.
const BEGAN: Nanos = Nanos::secs(1_700_000_000);
const AWAY: Nanos = Nanos::millis(12);
const APART: Nanos = Nanos::millis(100);

/// What is found if the packets are answered like this after 12 ms, none: not at all.
fn told(options: &SenderOptions, answers: &[Option<Said>]) -> StampReport {
    let mut sender = Sender::new(SenderOptions { count: answers.len() as u32, ..options.clone() });
    sender.handle(BEGAN, Event::Started);
    let mut now = BEGAN;
    for (number, answer) in (0u32..).zip(answers) {
        while sender.next(now).is_some() {}
        sender.handle(now, Event::Sent { path: 0, seq: number.into(), at: now, handed: now });
        if let &Some((sequence, received, timestamp, error)) = answer {
            let error = ErrorEstimate::from_bits(error);
            let own = TestPacket { sequence, timestamp, error, ssid: options.ssid };
            let sent = TestPacket { sequence: number, timestamp: Format::Ntp.write(now), ..own };
            let packet = ReflectedPacket { own, received, sender: sent, sender_ttl: 9 }.write(&options.mode);
            let at = now + AWAY;
            let batch = Batch::SINGLE;
            sender.handle(at, Event::Received { path: 0, packet: &packet, size: 72, dscp: 0, ecn: 0, at, batch });
        }
        now += APART;
        sender.handle(now, Event::Timer);
    }
    sender.report()
}

/// An honest answer to a packet: 3 ms out, half a millisecond there, by a clock that is wrong by so much.
fn honest(number: u32, wrong_ns: i64) -> Said {
    let came = (BEGAN + APART * u64::from(number) + OUT).0.saturating_add_signed(wrong_ns);
    let clock = ErrorEstimate::new(true, Format::Ntp, Nanos::millis(2)).to_bits();
    (number, Format::Ntp.write(Nanos(came)), Format::Ntp.write(Nanos(came) + THERE), clock)
}

#[test]
fn stamps_that_cannot_be_are_in_no_delay() {
    let fine = told(&synchronised(), &[0, 1, 2].map(|i| Some(honest(i, 0))));
    assert_eq!(fine.warnings, []);
    let (number, came, left, clock) = honest(1, 0);
    // 1900, 2036, the wrong way round, half a minute there
    for (came, left) in [(0, left), (came, u64::MAX), (left, came - (1 << 30)), (came, left + (30 << 32))] {
        let odd = Some((number, came, left, clock));
        let report = told(&synchronised(), &[Some(honest(0, 0)), odd, Some(honest(2, 0))]);
        assert_eq!((report.received, &report.warnings[..]), (3, &[Warning::Stamps][..]), "{came:x} {left:x}");
        assert_eq!((report.round_trip_s, report.out_s), (fine.round_trip_s, fine.out_s));
        let report = told(&synchronised(), &[odd, odd]);
        assert_eq!((report.round_trip_s, report.out_s, report.in_s), (None, None, None));
    }
}

#[test]
fn a_clock_that_is_set_meanwhile_tells_no_delays() {
    let year = 31_557_600_000_000_000;
    for wrong in [-123 * year, -50 * year, -5_000_000_000, 40_000_000, 60 * year] {
        let report = told(&synchronised(), &[honest(0, 0), honest(1, wrong), honest(2, 0)].map(Some));
        assert_eq!((&report.warnings[..], report.out_s), (&[Warning::Clock][..], None), "{wrong}");
        assert!(is(report.round_trip_s.unwrap().p95, 0.0115), "it needs no clock: {report:?}");
    }
}

#[test]
fn a_clock_that_is_not_as_right_as_it_claims_is_not_believed() {
    let answers = |wrong| [0, 1, 2].map(|i| Some(honest(i, wrong)));
    // both hosts admit 3 ms; the round trip takes 11.5 ms
    for (wrong, fine) in [(2_900_000, true), (-6_900_000, true), (30_000_000, false), (-86_400_000_000_000, false)] {
        let report = told(&synchronised(), &answers(wrong));
        assert_eq!(report.out_s.unwrap().synchronised, fine, "{wrong}: {report:?}");
        assert_eq!(report.warnings.contains(&Warning::Claim), !fine, "{wrong}");
    }
    for error in [0xbfff, 0x8000 | 30 << 8 | 255] {
        let report = told(&synchronised(), &answers(0).map(|said| said.map(|said| (said.0, said.1, said.2, error))));
        assert_eq!(report.warnings, [Warning::Claim], "584 years, or a minute: {report:?}");
    }
}

#[test]
fn numbers_that_count_nothing_tell_nothing() {
    let said = |theirs: &[Option<u32>]| {
        let answers: Vec<_> = (0u32..)
            .zip(theirs)
            .map(|(i, n)| {
                n.map(|n| {
                    let (_, came, left, clock) = honest(i, 0);
                    (n, came, left, clock)
                })
            })
            .collect();
        told(&synchronised(), &answers)
    };
    let fine = said(&[Some(0), None, Some(1), None, Some(3)]);
    assert_eq!((fine.lost_out, fine.lost_in, &fine.warnings[..]), (Some(1), Some(1), &[][..]));
    for theirs in [[Some(0), None, Some(u32::MAX)], [Some(7), None, Some(7)], [Some(1), None, Some(1 << 31)]] {
        let report = said(&theirs);
        assert_eq!((report.lost_out, &report.warnings[..]), (None, &[Warning::Numbers][..]), "{theirs:?}");
    }
}

/// Stamps near the truth, at the edges of what can be written, and anything.
fn stamp() -> impl Strategy<Value = u64> {
    let now = Format::Ntp.write(BEGAN);
    prop_oneof![
        (0u64..4 << 32).prop_map(move |off| now + off),
        prop_oneof![
            Just(0),
            Just(u64::MAX),
            Just(1 << 63),
            Just(now ^ 1 << 63),
            Just(0xffff_ffff),
            Just(u64::MAX << 32)
        ],
        any::<u64>(),
    ]
}

proptest! {
    #[test]
    fn whatever_a_reflector_says_no_delay_is_absurd(
        answers in prop::collection::vec(prop::option::of((any::<u32>(), stamp(), stamp(), any::<u16>())), 1..12),
        honest_ones in 0usize..4,
        kept_right: bool,
    ) {
        let honest_ones = (0..honest_ones as u32).map(|i| Some(honest(i, 0)));
        let all: Vec<_> = honest_ones.chain(answers).collect();
        let report = told(&SenderOptions { synchronised: kept_right, ..synchronised() }, &all);
        let answered = all.iter().flatten().count() as u64;
        prop_assert_eq!((report.sent, report.received + report.lost), (all.len() as u64, all.len() as u64));
        prop_assert_eq!(report.received, answered);
        let whole = AWAY.as_secs_f64() + 0.001;
        if let Some(round) = report.round_trip_s {
            prop_assert!(0.0 <= round.minimum && round.minimum <= round.median && round.p95 <= whole, "{:?}", report);
        } else {
            prop_assert!(answered == 0 || report.warnings.contains(&Warning::Stamps));
        }
        for way in [report.out_s, report.in_s].into_iter().flatten() {
            let above = [way.median_above_minimum, way.p95_above_minimum];
            prop_assert!(above.iter().all(|&above| (0.0..whole + 0.003).contains(&above)), "{:?}", way);
            prop_assert_eq!(way.synchronised, way.minimum.is_some());
            if let (Some(minimum), Some(error)) = (way.minimum, way.error) {
                prop_assert!(kept_right && error <= 16.1 && minimum.abs() <= whole + error + 0.001, "{:?}", way);
            }
        }
        prop_assert_eq!(report.lost_out.map(|out| report.lost - out), report.lost_in);
        prop_assert!(serde_json::to_value(&report).is_ok());
    }
}
