//! The sender against the reflector, over a way that delays, loses and doubles packets.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::*;
use crate::machine::Batch;
use crate::stamp::{Reflector, ReflectorClock, ReflectorOptions, Request, StampKey};

/// What the way does to a packet: lost before or after the reflector, or answered twice.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Fine,
    LostOut,
    LostIn,
    Twice,
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
                    Action::Reply(reply) => {
                        self.answer(&reply, now, &mut coming);
                        sender.handle(now, Event::Sent { path: 0, seq: reply.seq, at: now + Nanos(700) });
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
                sender.handle(now, Event::Received { path: 0, packet: &packet, size, dscp: 10, at: now, batch });
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
            Fate::LostOut | Fate::LostIn => 0,
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
