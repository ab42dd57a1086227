//! STAMP between our sender and our reflector.

use std::io::ErrorKind;
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use pathcast_base::{Fault, Nanos, Stream};
use pathcast_measure::stamp::{
    ErrorEstimate, Format, Mode, ReflectorOptions, SenderOptions, StampKey, StampReport, TestPacket,
};
use pathcast_net::udp::{StampReflector, stamp_measure};

use super::common::until;
use super::{at, host, plain};

fn start(listen: &str, options: ReflectorOptions) -> StampReflector {
    StampReflector::start(&*host(), &[listen.parse().unwrap()], options).unwrap()
}

fn reflect(listen: &str, mode: Mode) -> StampReflector {
    start(listen, ReflectorOptions { modes: vec![mode], ..ReflectorOptions::default() })
}

fn measure(address: &str, reflector: &StampReflector, sender: SenderOptions) -> StampReport {
    let to = at(address, reflector.local_addrs()[0].port());
    stamp_measure(&*host(), None, to, sender, plain()).unwrap()
}

/// Answers and what had none; an answer is counted after it has left.
fn count(reflector: &StampReflector, answered: u64, ignored: u64) {
    let counted = || (reflector.answered(), reflector.ignored());
    assert!(until(|| counted() == (answered, ignored)), "answers, and packets without one: {:?}", counted());
}

/// Somebody who waits long for an answer.
fn somebody(local: impl ToSocketAddrs) -> UdpSocket {
    let socket = UdpSocket::bind(local).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// Nothing is there to be read. To be asked when what might have been answered is counted, and the answer would be there.
fn has_nothing(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let nothing = socket.recv(&mut [0; 2000]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
    nothing
}

fn sender(mode: Mode) -> SenderOptions {
    SenderOptions {
        count: 20,
        interval: Nanos::millis(2),
        dscp: 34,
        ssid: 77,
        mode,
        wait: Nanos::secs(30),
        ..SenderOptions::default()
    }
}

#[test]
fn delays_over_ipv4_and_ipv6_open_and_with_a_key() {
    let key = Mode::Authenticated(StampKey::new(b"shared"));
    for (listen, address) in [("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "::1")] {
        for mode in [Mode::Open, key.clone()] {
            let reflector = reflect(listen, mode.clone());
            let report = measure(address, &reflector, SenderOptions { payload: 300, ..sender(mode) });
            assert_eq!((report.sent, report.received, report.lost, report.unsent), (20, 20, 0, 0), "{report:?}");
            assert_eq!((report.dscp_in, report.ttl_out), (Some(34), Some(64)), "{report:?}");
            let round = report.round_trip_s.unwrap();
            assert!(round.minimum > 0.0 && round.minimum < 0.5 && round.p95 >= round.median, "{report:?}");
            let out = report.out_s.unwrap();
            assert_eq!(out.minimum.is_some(), out.synchronised);
            count(&reflector, 20, 0);
        }
    }
}

#[test]
fn nobody_answers_the_wrong_key_or_rubbish() {
    let reflector = reflect("127.0.0.1:0", Mode::Authenticated(StampKey::new(b"right")));
    let quick = |mode| SenderOptions { wait: Nanos::millis(50), ..sender(mode) };
    for mode in [Mode::Open, Mode::Authenticated(StampKey::new(b"wrong"))] {
        let report = measure("127.0.0.1", &reflector, quick(mode));
        assert_eq!((report.sent, report.received, report.lost), (20, 0, 20), "{report:?}");
    }
    let stranger = somebody("127.0.0.1:0");
    stranger.connect(reflector.local_addrs()[0]).unwrap();
    let mut stream = Stream::new(7, "rubbish");
    for sent in 1..=500 {
        let bytes: Vec<u8> = (0..stream.bits() % 300).map(|_| stream.bits() as u8).collect();
        stranger.send(&bytes).unwrap();
        if sent % 50 == 0 {
            count(&reflector, 0, 40 + sent); // a buffer without privilege holds some hundred
        }
    }
    let right = measure("127.0.0.1", &reflector, sender(Mode::Authenticated(StampKey::new(b"right"))));
    assert_eq!(right.received, 20);
    count(&reflector, 20, 540);
    assert!(has_nothing(&stranger));
}

#[test]
fn an_answer_is_never_larger_than_what_it_answers() {
    let reflector = reflect("127.0.0.1:0", Mode::Open);
    let stranger = somebody("127.0.0.1:0");
    stranger.connect(reflector.local_addrs()[0]).unwrap();
    let mut buffer = [0; 2000];
    for length in [0, 14, 43] {
        stranger.send(&vec![0; length]).unwrap();
    }
    for length in [44, 45, 1000, 1472] {
        stranger.send(&vec![0; length]).unwrap();
        assert_eq!(stranger.recv(&mut buffer).unwrap(), length);
    }
    count(&reflector, 4, 3);
    assert!(has_nothing(&stranger));
}

#[test]
fn more_than_the_limit_has_no_answer_and_wrong_arguments_are_errors() {
    let options = ReflectorOptions { modes: vec![Mode::Open], per_source: 1, ..ReflectorOptions::default() };
    let reflector = start("127.0.0.1:0", options);
    let quick = SenderOptions { wait: Nanos::millis(50), interval: Nanos::micros(100), ..sender(Mode::Open) };
    let began = Instant::now();
    let report = measure("127.0.0.1", &reflector, quick);
    assert!(until(|| reflector.answered() + reflector.ignored() == 20), "{} answered", reflector.answered());
    // the first, and one more for each whole second that the 20 packets took
    let most = 1 + began.elapsed().as_secs();
    assert!((1..=most).contains(&reflector.answered()), "{} answered of {most}", reflector.answered());
    assert!(report.received <= reflector.answered() && report.lost == 20 - report.received, "{report:?}");
    let wrong = SenderOptions { dscp: 64, ..sender(Mode::Open) };
    let error = stamp_measure(&*host(), None, reflector.local_addrs()[0], wrong, plain()).unwrap_err();
    assert_eq!(error.code(), "bad-argument");
    let taken = StampReflector::start(&*host(), reflector.local_addrs(), ReflectorOptions::default());
    assert_eq!(taken.map(drop).unwrap_err().code(), "cannot-listen");
}

#[test]
fn a_reflection_is_not_reflected_and_no_packet_goes_round() {
    let key = Mode::Authenticated(StampKey::new(b"shared"));
    for mode in [Mode::Open, key] {
        let (here, there) = (reflect("127.0.0.1:0", mode.clone()), reflect("127.0.0.2:0", mode.clone()));
        let forger = somebody("127.0.0.1:0");
        let error = ErrorEstimate::new(false, Format::Ntp, Nanos(1));
        let test = TestPacket { sequence: 1, timestamp: 2, error, ssid: 3 }.write(&mode);
        forger.send_to(&test, here.local_addrs()[0]).unwrap();
        let mut answer = [0; 2000];
        let length = forger.recv(&mut answer).unwrap();
        for reflector in [&here, &there] {
            forger.send_to(&answer[..length], reflector.local_addrs()[0]).unwrap();
        }
        count(&here, 1, 1);
        count(&there, 0, 1);
        assert!(has_nothing(&forger), "{mode:?}: reflected again");
    }
}

#[test]
fn a_packet_from_a_reflectors_own_port_has_no_answer() {
    let reflector = reflect("127.0.0.1:0", Mode::Open);
    // an address that no other test has ports of
    let forger = somebody(("127.0.0.5", reflector.local_addrs()[0].port()));
    forger.send_to(&[0; 44], reflector.local_addrs()[0]).unwrap();
    count(&reflector, 0, 1);
    assert!(has_nothing(&forger));
}
