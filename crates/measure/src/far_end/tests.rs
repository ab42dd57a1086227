//! What a far end grants, and when it ends a session.

mod amplification;
mod turns;

use pathcast_base::Bytes;
use pathcast_session::Key;

use super::*;
use crate::keys::greeting;
use crate::messages::{Cookie, Hello, Open, encode_ask};
use crate::report;
use crate::request::MethodName;
use crate::wire::{Channel, PROBE, ProbeHead};

const NOW: Nanos = Nanos::secs(50);

fn key() -> Key {
    Key::new("one", vec![1; 32]).unwrap()
}

/// A far end, and the client's channel of a session with it.
fn opened(limits: MeasureLimits) -> (FarEnd<usize>, Channel) {
    let entropy = Entropy { nonce: [3; 32], session: [4; 16] };
    let mut far = FarEnd::new(KeyRing::new([key()]), limits, ClockState::default(), entropy);
    let (channel, answers) = open(&mut far, 5);
    assert_eq!(answers, [Kind::Opened]);
    (far, channel)
}

/// A session of a client with this nonce, and what it is told.
fn open(far: &mut FarEnd<usize>, nonce: u8) -> (Channel, Vec<Kind>) {
    let hello = Hello { key_id: "one".into(), nonce: [nonce; 32] };
    let said = greeting(&key()).seal(Kind::Hello, 0, 0, 0, &hello.encode());
    let answer = said_to(far, NOW, &said).remove(0);
    let cookie = Cookie::decode(Datagram::parse(&answer).unwrap().body).unwrap();
    let keys = SessionKeys::new(&key(), &hello.nonce, &cookie.digest);
    let total = Budget { bytes: Bytes(1_000_000_000), time: Nanos::secs(100) };
    let open = Open { hello, cookie, paths: 1, dscp: 0, total, clock: ClockInfo::default() };
    let said = keys.client.seal(Kind::Open, 0, keys.session, 0, &open.encode());
    let answers = kinds(&said_to(far, NOW, &said));
    (Channel::new(keys.session, 0, keys.client, keys.far_end), answers)
}

/// Payloads of what the far end answers.
fn said_to(far: &mut FarEnd<usize>, now: Nanos, packet: &[u8]) -> Vec<Vec<u8>> {
    let size = packet.len() as u16 + 28;
    far.handle(now, FarEvent::Received { from: 0, packet, size, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE });
    replies(far, now)
}

fn replies(far: &mut FarEnd<usize>, now: Nanos) -> Vec<Vec<u8>> {
    let actions = std::iter::from_fn(|| far.next(now));
    actions.filter_map(|a| if let FarAction::Reply { reply, .. } = a { Some(reply.payload) } else { None }).collect()
}

fn kinds(payloads: &[Vec<u8>]) -> Vec<Kind> {
    payloads.iter().map(|payload| Datagram::parse(payload).unwrap().kind).collect()
}

#[test]
fn a_session_ends_with_its_time_however_alive_it_is() {
    let limits = MeasureLimits { time: Nanos::secs(9), ..MeasureLimits::default() };
    let (mut far, mut channel) = opened(limits);
    for second in 1..9 {
        let now = NOW + Nanos::secs(second);
        assert_eq!(kinds(&said_to(&mut far, now, &channel.seal(Kind::Poll, 0, &[]).1)), [Kind::Opened]);
    }
    let now = NOW + Nanos::secs(9);
    far.handle(now, FarEvent::Timer);
    assert_eq!(kinds(&replies(&mut far, now)), [Kind::Denied]);
    assert_eq!((far.sessions(), far.counters().denied), (0, 1));
    assert!(said_to(&mut far, now, &channel.seal(Kind::Poll, 0, &[]).1).is_empty());
}

/// A far end, and the lines that it has for a log.
fn told(limits: MeasureLimits) -> (FarEnd<usize>, std::sync::mpsc::Receiver<String>) {
    let (tell, lines) = std::sync::mpsc::channel();
    let entropy = Entropy { nonce: [3; 32], session: [4; 16] };
    let far = FarEnd::new(KeyRing::new([key()]), limits, ClockState::default(), entropy);
    (far.telling(move |note| tell.send(note.to_string()).unwrap()), lines)
}

#[test]
fn a_log_has_who_measures_how_much_and_who_waits_or_is_denied() {
    let sessions = pathcast_session::Quota { in_all: 2, per_key: 2, per_source: 2 };
    let (mut far, lines) = told(MeasureLimits { sessions, bytes: Bytes(100_000), ..MeasureLimits::default() });
    let (channel, _) = open(&mut far, 5);
    assert_eq!(open(&mut far, 6).1, [Kind::Queued]);
    assert_eq!(open(&mut far, 7).1, [Kind::Denied]);
    for index in 0..72 {
        let mut packet = vec![0; 1372];
        let head = ProbeHead { train: 0, index, count: 100, rest: 0 };
        channel.send.probe(0, 1, channel.session, head, &mut packet[..PROBE]);
        said_to(&mut far, NOW + Nanos::millis(1500), &packet);
    }
    let silent = NOW + Nanos::secs(8);
    far.handle(silent, FarEvent::Timer);
    let of = "measurement of `one` from 0.0.0.0";
    let expected = [
        "begun",
        "waits at place 1 of the queue",
        "denied: sessions-per-key=2",
        "ended by bytes=100KB: 100800 B in 1.500 s",
        "begun after 1.500 s in the queue",
        "ended, its client fell silent: 0 B in 6.500 s",
    ];
    assert_eq!(lines.try_iter().collect::<Vec<_>>(), expected.map(|line| format!("{of} {line}")));
}

#[test]
fn a_session_ends_with_its_bytes() {
    let (mut far, channel) = opened(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
    let mut denied = None;
    for index in 0..100 {
        let mut packet = vec![0; 1372];
        let head = ProbeHead { train: 0, index, count: 100, rest: 0 };
        channel.send.probe(0, 1, channel.session, head, &mut packet[..PROBE]);
        if kinds(&said_to(&mut far, NOW, &packet)).contains(&Kind::Denied) {
            denied = Some(index);
        }
    }
    assert_eq!((denied, far.sessions()), (Some(71), 0), "100,000 bytes are 71.4 packets");
}

#[test]
fn a_probe_that_somebody_repeats_uses_nothing_up() {
    let (mut far, channel) = opened(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
    let mut packet = vec![0; 1372];
    channel.send.probe(
        0,
        1,
        channel.session,
        ProbeHead { train: 0, index: 0, count: 2, rest: 0 },
        &mut packet[..PROBE],
    );
    for _ in 0..100 {
        said_to(&mut far, NOW, &packet);
    }
    let session = far.sessions.values().next().expect("it is not over");
    assert_eq!((session.bytes, session.allowance.came), (1400, 1400));
    assert_eq!(far.counters().replayed, 99);
}

#[test]
fn a_panic_ends_the_session_that_it_is_about_and_the_next_one_has_its_turn() {
    let (mut far, lines) = told(MeasureLimits { bytes: Bytes(100_000), ..MeasureLimits::default() });
    let (channel, _) = open(&mut far, 5);
    assert_eq!(open(&mut far, 6).1, [Kind::Queued]);
    drop(lines); // so that the next line cannot be told
    let mut end = || {
        for index in 0..100 {
            let mut packet = vec![0; 1372];
            let head = ProbeHead { train: 0, index, count: 100, rest: 0 };
            channel.send.probe(0, 1, channel.session, head, &mut packet[..PROBE]);
            said_to(&mut far, NOW, &packet);
        }
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut end)).is_err());
    far.on_note = None;
    far.recover(NOW);
    let mut actions = std::iter::from_fn(|| far.next(NOW));
    assert!(actions.any(|action| matches!(action, FarAction::Stop { session } if session == channel.session)));
    assert!(far.sessions.values().all(|session| session.measures.is_some()), "the other one measures");
    assert_eq!((far.sessions(), far.admission.taken(), far.queue.is_waiting()), (1, 1, false));
    far.recover(NOW);
    assert_eq!(far.sessions(), 1, "it was not about that one");
}

#[test]
fn a_session_ends_with_the_bytes_that_it_was_sent() {
    let limit = 100_000;
    let (mut far, mut channel) = opened(MeasureLimits { bytes: Bytes(limit), ..MeasureLimits::default() });
    let budget = Budget { bytes: Bytes(u64::MAX), time: Nanos::secs(100) };
    let (mut sent, mut denied) = (vec![], None);
    for part in 1..=90 {
        let begin = Begin {
            method: MethodName::Ride,
            budget,
            sparing: false,
            effort: pathcast_estimate::Effort::Usual,
            seed: 1,
            wait: Nanos::secs(5),
        };
        let (packet, now) =
            (channel.seal(Kind::Begin, part, &begin.encode()).1, NOW + Nanos::secs(1) * u64::from(part));
        let size = packet.len() as u16 + 28;
        let batch = Batch::SINGLE;
        far.handle(now, FarEvent::Received { from: 0, packet: &packet, size, dscp: 0, ecn: 0, at: now, batch });
        far.handle(now, FarEvent::Timer);
        while let Some(action) = far.next(now) {
            match action {
                FarAction::SendTrain { train, .. } => sent.push(train.count() as u64 * u64::from(train.size)),
                FarAction::Reply { reply, .. } => {
                    let said = Datagram::parse(&reply.payload).unwrap();
                    denied = denied.or_else(|| Denied::decode(said.body).filter(|_| said.kind == Kind::Denied));
                }
                _ => {}
            }
        }
    }
    assert_eq!(denied, Some(Denied { denial: Denial::Bytes, limit }), "after {sent:?}");
    let (all, last): (u64, u64) = (sent.iter().sum(), sent[sent.len() - 1]);
    assert!(all > limit && all - last <= limit && sent.len() > 2, "{sent:?}");
    assert_eq!(far.sessions(), 0);
}

#[test]
fn a_timer_is_set_once_however_late_it_is() {
    let (mut far, _) = opened(MeasureLimits::default());
    for late in [6, 7] {
        let now = NOW + Nanos::secs(late);
        far.handle(
            now,
            FarEvent::Received { from: 0, packet: b"", size: 28, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE },
        );
        assert_eq!(far.next(now), None, "a new time would put it off");
    }
}

#[test]
fn a_train_is_given_up_by_its_timer_and_not_by_what_is_read_first() {
    let (mut far, mut channel) = opened(MeasureLimits::default());
    let mut came = 0;
    let mut listen = |said: Vec<Vec<u8>>| {
        for packet in said {
            let datagram = Datagram::parse(&packet).unwrap();
            let pieces = report::decode(datagram.body).filter(|_| datagram.kind == Kind::Report);
            came += pieces
                .into_iter()
                .flatten()
                .map(|piece| piece.fates.iter().filter(|fate| matches!(fate, report::Fate::Came(_))).count())
                .sum::<usize>();
        }
        came
    };
    let probe = |index| {
        let mut packet = vec![0; PROBE];
        channel.send.probe(0, 1, channel.session, ProbeHead { train: 0, index, count: 2, rest: 0 }, &mut packet);
        packet
    };
    let (first, second) = (probe(0), probe(1));
    let late = NOW + Nanos::secs(4);
    assert_eq!(listen(said_to(&mut far, NOW, &first)), 0);
    let question = channel.seal(Kind::Ask, 1, &encode_ask(&[])).1;
    assert_eq!(listen(said_to(&mut far, late, &question)), 0);
    assert_eq!(listen(said_to(&mut far, late, &second)), 2);
}

#[test]
fn a_silent_session_is_over_and_its_opening_not_good_again() {
    let (mut far, _) = opened(MeasureLimits::default());
    let now = NOW + Nanos::secs(5);
    far.handle(now, FarEvent::Timer);
    assert_eq!((far.sessions(), far.counters().timed_out), (0, 1));
    assert_eq!(std::iter::from_fn(|| far.next(now)).filter(|a| matches!(a, FarAction::Stop { .. })).count(), 1);
}

/// Somebody kept the clock right when it started, and no longer does.
#[test]
fn each_session_is_told_how_it_is_with_the_clock_then() {
    let right = ClockState { synchronised: true, max_error: Nanos::millis(1), ..ClockState::default() };
    let entropy = Entropy { nonce: [3; 32], session: [4; 16] };
    let limits = MeasureLimits { measuring: 2, ..MeasureLimits::default() };
    let mut far = FarEnd::new(KeyRing::new([key()]), limits, right, entropy);
    let told = |far: &mut FarEnd<usize>, nonce| {
        let (mut channel, _) = open(far, nonce);
        let answer = said_to(far, NOW, &channel.seal(Kind::Poll, 0, &[]).1).remove(0);
        Opened::decode(Datagram::parse(&answer).unwrap().body).unwrap().clock.synchronised
    };
    assert!(told(&mut far, 5));
    far.set_clock(ClockState { synchronised: false, ..right });
    assert!(!told(&mut far, 6));
}

/// Sessions that send the first packets of many long trains, without end, and one that comes after them.
#[test]
fn what_sessions_make_it_keep_has_a_bound_and_who_comes_later_finds_room() {
    const EACH: usize = 8;
    let limits = MeasureLimits {
        sessions: pathcast_session::Quota { in_all: 64, per_key: 64, per_source: 64 },
        measuring: 64,
        memory: Bytes(400_000),
        ..MeasureLimits::default()
    };
    let (mut far, first) = opened(limits);
    let mut channels = vec![first];
    channels.extend((0..31).map(|nonce| open(&mut far, 100 + nonce).0));
    let tell = |far: &mut FarEnd<usize>, channel: &Channel, train: u32, index: u16, count: u16| {
        let mut packet = vec![0; PROBE];
        channel.send.probe(0, 1, channel.session, ProbeHead { train, index, count, rest: 0 }, &mut packet);
        said_to(far, NOW, &packet)
    };
    let mut most = 0;
    for train in 0..40 {
        for channel in &channels {
            (0..400).step_by(400 / EACH).for_each(|index| drop(tell(&mut far, channel, train, index, 60_000)));
        }
        most = most.max(far.kept());
    }
    assert!(most > 200_000 && most <= 400_000, "{most}");
    let (late, _) = open(&mut far, 99);
    let told: Vec<Kind> = (0..20).flat_map(|index| kinds(&tell(&mut far, &late, 0, index, 20))).collect();
    assert_eq!(told, [Kind::Report, Kind::Report], "a sign of life, and the train as a whole");
    let now = NOW + Nanos::secs(9);
    far.handle(now, FarEvent::Timer);
    assert_eq!((far.sessions(), far.kept()), (0, 0), "it is given back");
}
