//! What a client makes of a far end that grants and tells what it likes.

use pathcast_session::Key;

use super::*;
use crate::forge::{self, Forge};

/// Measures the direction to the client with a far end that grants and tells what it likes, until it is stopped.
fn told(total: Budget, stamps: (u64, u64), outcome: &[u8]) -> serde_json::Value {
    let key = Key::new("one", vec![1; 32]).unwrap();
    let request = Request { directions: vec![Direction::In], ..Request::new(key.clone()) };
    let mut client = Client::new(request, Entropy { nonce: [5; 32], session: [6; 16] });
    let (mut now, mut forge, mut number) = (Nanos::secs(9), None, 0);
    client.handle(now, Event::Started);
    for _ in 0..1000 {
        let answer = match client.next(now) {
            Some(Action::Reply(reply)) => {
                client.handle(now, Event::Sent { path: 0, seq: reply.seq, at: now, handed: now });
                let Ok(said) = Datagram::parse(&reply.payload) else { continue }; // of the version before
                let [_, opened, _] = forge::bodies_of(0, total, 1, Nanos::ZERO, u64::MAX);
                let (kind, part, body) = match said.kind {
                    Kind::Hello => {
                        let (session, cookie) = Forge::cookie(&key, &reply.payload, [3; 32]).unwrap();
                        forge = Some(session);
                        let event = Event::Received {
                            path: 0,
                            packet: &cookie,
                            size: 100,
                            dscp: 0,
                            ecn: 0,
                            at: now,
                            batch: Batch::SINGLE,
                        };
                        client.handle(now, event);
                        continue;
                    }
                    Kind::Open => (Kind::Opened, 0, opened),
                    Kind::Time => {
                        let id = u32::from_be_bytes(said.body.try_into().unwrap());
                        (Kind::Stamp, 0, forge::stamp(id, Nanos(stamps.0), Nanos(stamps.1)))
                    }
                    Kind::Begin => (Kind::Outcome, said.part, outcome.to_vec()),
                    _ => continue,
                };
                number += 1;
                forge.as_ref().unwrap().say(false, kind as u8 - 1, 0, part, number, &body)
            }
            Some(Action::Done(result)) => return serde_json::from_slice(&result).unwrap(),
            Some(_) => continue,
            None => {
                now += Nanos::millis(5);
                client.handle(now, Event::Timer);
                continue;
            }
        };
        let event =
            Event::Received { path: 0, packet: &answer, size: 100, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE };
        client.handle(now, event);
    }
    client.handle(now, Event::Stop);
    let result = std::iter::from_fn(|| client.next(now)).find_map(|action| match action {
        Action::Done(result) => Some(result),
        _ => None,
    });
    serde_json::from_slice(&result.unwrap()).unwrap()
}

#[test]
fn a_far_end_that_grants_and_counts_without_end() {
    let total = Budget { bytes: Bytes(u64::MAX), time: Nanos::MAX };
    let outcome = forge::outcome([5e6, 4e6, 6e6], u64::MAX, &[(5, 7), (9, 8)]);
    let result = told(total, (100, 200), &outcome);
    assert_eq!(result["paths"][0]["directions"]["in"]["available_bps"]["value"], 5e6, "{result:#}");
    assert_eq!(result["probe_bytes"], u64::MAX);
}

#[test]
fn a_far_end_whose_clock_is_none() {
    let total = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(9) };
    for stamps in [(u64::MAX - 1, u64::MAX), (0, 1 << 62), (1 << 62, 1 << 62), (1 << 63, 1 << 63)] {
        for small in [(u64::MAX, i64::MIN), (1 << 62, i64::MAX), (0, -(1 << 62))] {
            let outcome = forge::outcome([5e6, 4e6, 6e6], 1, &[(0, 1 << 62), small]);
            let result = told(total, stamps, &outcome);
            assert!(result["paths"][0]["directions"]["in"].is_object(), "{result:#}");
        }
    }
}

fn asked(paths: usize) -> Request {
    Request { paths, directions: vec![Direction::In], ..Request::new(Key::new("one", vec![1; 32]).unwrap()) }
}

/// How long a far end that answers like this keeps a client, and why it went; none: it would wait for more than an hour.
fn kept(paths: usize, answer: impl FnMut(&Datagram) -> Vec<(Kind, Vec<u8>)>) -> Option<(Nanos, serde_json::Value)> {
    kept_by(asked(paths), Nanos::millis(5), answer)
}

/// The same of this request; each answer comes so late. It hears of a train the first packet.
fn kept_by(
    request: Request,
    late: Nanos,
    answer: impl FnMut(&Datagram) -> Vec<(Kind, Vec<u8>)>,
) -> Option<(Nanos, serde_json::Value)> {
    kept_probed(request, late, (0, 0, 1), answer)
}

/// The same; a Probe without a body is this one of its train.
fn kept_probed(
    request: Request,
    late: Nanos,
    probe: (u32, u16, u16),
    mut answer: impl FnMut(&Datagram) -> Vec<(Kind, Vec<u8>)>,
) -> Option<(Nanos, serde_json::Value)> {
    let (key, began) = (request.key.clone(), Nanos::secs(9));
    let mut client = Client::new(request, Entropy { nonce: [5; 32], session: [6; 16] });
    let (mut now, mut forge, mut number, mut wake) = (began, None, 0, Nanos::MAX);
    client.handle(now, Event::Started);
    while now < began + Nanos::secs(4000) {
        let (path, answers) = match client.next(now) {
            Some(Action::Reply(reply)) => {
                client.handle(now, Event::Sent { path: reply.path, seq: reply.seq, at: now, handed: now });
                let Ok(said) = Datagram::parse(&reply.payload) else { continue }; // of the version before
                let answers = if said.kind == Kind::Hello {
                    let (session, cookie) = Forge::cookie(&key, &reply.payload, [3; 32]).unwrap();
                    forge = Some(session);
                    vec![cookie]
                } else {
                    let session: &Forge = forge.as_ref().unwrap();
                    let mut say = |(kind, body): (Kind, Vec<u8>)| {
                        if kind == Kind::Probe && body.is_empty() {
                            return session.probe(false, said.path, said.part, probe, 0);
                        }
                        number += 1;
                        session.say(false, kind as u8 - 1, said.path, said.part, number, &body)
                    };
                    answer(&said).into_iter().map(&mut say).collect()
                };
                (reply.path, answers)
            }
            Some(Action::SendTrain(train)) => {
                answer(&Datagram::parse(train.head(0)).unwrap());
                continue;
            }
            Some(Action::Done(result)) => {
                let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
                return Some((now - began, result));
            }
            Some(Action::WakeAt(at)) => {
                wake = at;
                continue;
            }
            Some(_) => continue,
            None => {
                now = wake.clamp(now + Nanos::millis(1), now + Nanos::secs(1));
                client.handle(now, Event::Timer);
                continue;
            }
        };
        for packet in answers {
            now += late;
            let event =
                Event::Received { path, packet: &packet, size: 100, dscp: 0, ecn: 0, at: now, batch: Batch::SINGLE };
            client.handle(now, event);
        }
    }
    None
}

fn opened() -> Vec<u8> {
    granting(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(9) })
}

fn granting(total: Budget) -> Vec<u8> {
    let [_, opened, _] = forge::bodies_of(0, total, 1, Nanos::ZERO, 1 << 30);
    opened
}

/// The answer to Time.
fn stamped(said: &Datagram) -> (Kind, Vec<u8>) {
    (Kind::Stamp, forge::stamp(u32::from_be_bytes(said.body.try_into().unwrap()), Nanos(100), Nanos(200)))
}

/// What a client says of a far end that speaks the version before, and of one that forges its words.
#[test]
fn a_far_end_of_the_version_before_is_told_from_a_silent_one() {
    for (holds_key, code) in [(true, "other-version"), (false, "no-answer")] {
        let key = Key::new("one", vec![1; 32]).unwrap();
        let mut client = Client::new(Request::new(key.clone()), Entropy { nonce: [5; 32], session: [6; 16] });
        let mut now = Nanos::secs(9);
        client.handle(now, Event::Started);
        let result = loop {
            match client.next(now) {
                Some(Action::Done(result)) => break serde_json::from_slice::<serde_json::Value>(&result).unwrap(),
                Some(Action::Reply(reply)) => {
                    let Some(hello) = Datagram::of_version(BEFORE, &reply.payload) else { continue };
                    assert!(hello.is_signed(&greeting(&key)));
                    let theirs = if holds_key { key.clone() } else { Key::new("one", vec![2; 32]).unwrap() };
                    let keys = SessionKeys::new(&theirs, &[5; 32], &[3; 32]);
                    let body = Cookie { epoch: 0, digest: [3; 32] }.encode();
                    let cookie = keys.far_end.seal(Kind::Cookie, 0, keys.session, 0, &body);
                    let packet = &keys.far_end.as_of(BEFORE, cookie)[..];
                    let batch = Batch::SINGLE;
                    client.handle(now, Event::Received { path: 0, packet, size: 104, dscp: 0, ecn: 0, at: now, batch });
                }
                Some(_) => {}
                None => {
                    now += Nanos::millis(100);
                    assert!(now < Nanos::secs(100), "it waits for ever");
                    client.handle(now, Event::Timer);
                }
            }
        };
        assert_eq!(result["refused"]["code"], code, "{result}");
    }
}

#[test]
fn a_far_end_that_greets_and_never_opens() {
    let (held, result) = kept(1, |_| vec![]).expect("it waits for ever");
    assert_eq!(result["refused"]["code"], "no-answer");
    assert!(held < Nanos::secs(60), "{held:?}");
}

#[test]
fn a_far_end_whose_queue_never_ends() {
    for moves in [false, true] {
        let mut ahead = u32::MAX;
        let answer = |_: &Datagram| {
            ahead -= u32::from(moves);
            vec![(Kind::Queued, Queued { ahead, measuring: 1 }.encode())]
        };
        let (held, result) = kept(1, answer).expect("it waits for ever");
        assert_eq!(result["refused"]["code"], "queue", "{result}");
        assert!(held > Nanos::secs(600) && held <= QUEUE + Nanos::secs(60), "{held:?}");
    }
}

#[test]
fn a_far_end_that_opens_and_measures_nothing() {
    for paths in [1, 4] {
        let answer = |said: &Datagram| match said.kind {
            Kind::Open => vec![(Kind::Opened, opened())],
            // a sign of life
            Kind::Poll | Kind::Begin | Kind::Time => vec![(Kind::Opened, opened())],
            Kind::PathJoin => vec![(Kind::PathJoined, vec![])],
            Kind::PathHello => vec![(Kind::PathCookie, Cookie { epoch: 1, digest: [7; 32] }.encode())],
            _ => vec![],
        };
        let (held, result) = kept(paths, answer).expect("it waits for ever");
        assert!(held < Nanos::secs(60) * paths as u64, "{held:?} {result}");
    }
}

#[test]
fn a_far_end_that_has_always_another_cookie_for_a_path() {
    let mut epoch = 0;
    let answer = |said: &Datagram| match said.kind {
        Kind::Open => vec![(Kind::Opened, opened())],
        Kind::PathHello | Kind::PathJoin => {
            epoch += 1;
            vec![(Kind::PathCookie, Cookie { epoch, digest: [7; 32] }.encode())]
        }
        _ => vec![(Kind::Opened, opened())],
    };
    let (held, result) = kept(2, answer).expect("it waits for ever");
    assert_eq!(result["paths"][1]["directions"]["in"]["available_bps"]["why"], "no-answer");
    assert!(held < Nanos::secs(120), "{held:?}");
}

#[test]
fn a_far_end_that_sends_more_than_it_says() {
    for probes in [0, 100] {
        let answer = |said: &Datagram| match said.kind {
            Kind::Open => vec![(Kind::Opened, opened())],
            Kind::Time => {
                let id = u32::from_be_bytes(said.body.try_into().unwrap());
                vec![(Kind::Stamp, forge::stamp(id, Nanos(100), Nanos(200)))]
            }
            Kind::Begin => {
                let mut answers = vec![(Kind::Probe, vec![0; 4]); probes];
                answers.push((Kind::Outcome, forge::outcome([5e6, 4e6, 6e6], 1, &[])));
                answers
            }
            _ => vec![],
        };
        let (_, result) = kept(1, answer).expect("it waits for ever");
        assert_eq!(result["paths"][0]["directions"]["in"]["available_bps"]["value"], 5e6, "{result:#}");
        let more = result["probe_bytes"].as_u64().unwrap() >= 100 * 100;
        assert_eq!(more, probes == 100, "a probe has 100 bytes here: {result:#}");
    }
}

/// A far end that forges the words of another address hears nothing of what is said there.
#[test]
fn nothing_is_sent_to_an_address_that_reads_no_questions() {
    let cases = [5, 120].map(Nanos::millis).into_iter().flat_map(|late| [(late, false, false), (late, true, true)]);
    for (late, reads, proven) in cases {
        let mut probes = 0;
        let answer = |said: &Datagram| {
            probes += u32::from(said.path == 1 && matches!(said.kind, Kind::Begin | Kind::Probe));
            match said.kind {
                Kind::Open => vec![(Kind::Opened, opened())],
                Kind::PathHello => vec![(Kind::PathCookie, Cookie { epoch: 1, digest: [7; 32] }.encode())],
                Kind::PathJoin => vec![(Kind::PathJoined, vec![])],
                Kind::Time if said.path == 0 || reads => vec![stamped(said)],
                Kind::Time => {
                    (1..=12).map(|id| (Kind::Stamp, forge::stamp(id, Nanos(100), Nanos(200)))).collect::<Vec<_>>()
                }
                Kind::Begin => vec![(Kind::Outcome, forge::outcome([5e6, 4e6, 6e6], 1, &[]))],
                _ => vec![],
            }
        };
        let request = Request { directions: vec![Direction::Out, Direction::In], ..asked(2) };
        let (_, result) = kept_by(request, late, answer).expect("it waits for ever");
        let [near, far] = [0, 1].map(|path| &result["paths"][path]["directions"]["in"]["available_bps"]);
        assert_eq!(near["value"], 5e6, "{late:?} {result:#}");
        assert_eq!((probes > 0, far["value"] == 5e6), (proven, proven), "{late:?} {probes} {result:#}");
        assert_eq!(result["paths"][1]["down"].is_null(), proven, "{late:?} {result:#}");
    }
}

/// Where the flow beside the path's comes from is said until probes of it come, and no longer.
#[test]
fn what_shows_the_second_port_is_said_again_where_it_was_lost() {
    for (probe, least, most) in [((0, 0, 1), 2, TRIES), ((1 << 31, 0, 1), 1, 1)] {
        let mut beside = 0;
        let answer = |said: &Datagram| {
            beside += u32::from(said.kind == Kind::Beside);
            match said.kind {
                Kind::Open | Kind::Poll => vec![(Kind::Opened, opened())],
                Kind::Time => vec![stamped(said)],
                Kind::Begin => vec![(Kind::Probe, vec![])],
                _ => vec![],
            }
        };
        let request = Request { effort: Effort::Thorough { queue: Nanos::millis(500) }, ..asked(1) };
        kept_probed(request, Nanos::millis(5), probe, answer).expect("it waits for ever");
        assert!((least..=most).contains(&beside), "{beside}");
    }
}

#[test]
fn less_time_than_was_asked_for_is_said_where_it_was_needed() {
    for (begins, said) in [(1500, true), (1, false)] {
        let mut begun = 0;
        let answer = |said: &Datagram| match said.kind {
            Kind::Open | Kind::Poll => {
                vec![(Kind::Opened, granting(Budget { bytes: Bytes(10_000_000), time: Nanos::secs(300) }))]
            }
            Kind::Time => vec![stamped(said)],
            Kind::Begin => {
                begun += 1;
                let outcome = forge::outcome([5e6, 4e6, 6e6], 1, &[]);
                vec![if begun < begins { (Kind::Queued, vec![]) } else { (Kind::Outcome, outcome) }]
            }
            _ => vec![],
        };
        let budget = Budget { time: Nanos::secs(600), ..asked(1).budget };
        let (held, result) = kept_by(Request { budget, ..asked(1) }, Nanos::millis(5), answer).unwrap();
        let notes = result["notes"].as_array().unwrap();
        assert_eq!(notes.len(), usize::from(said), "{held:?} {notes:?}");
        let told = notes.iter().all(|note| {
            let note = note.as_str().unwrap();
            note.contains("its limit `time`") && note.contains("300s") && note.contains("240s")
        });
        assert!(told, "{notes:?}");
    }
}

/// How often a client says goodbye to a far end that answers the `answered`th, and how long that takes.
fn goodbyes(answered: u32) -> (u32, Nanos) {
    let mut said = 0;
    let answer = |datagram: &Datagram| match datagram.kind {
        Kind::Open => vec![(Kind::Opened, opened())],
        Kind::Time => {
            let id = u32::from_be_bytes(datagram.body.try_into().unwrap());
            vec![(Kind::Stamp, forge::stamp(id, Nanos(100), Nanos(200)))]
        }
        Kind::Begin => vec![(Kind::Outcome, forge::outcome([5e6, 4e6, 6e6], 1, &[]))],
        Kind::Bye => {
            said += 1;
            if said == answered { vec![(Kind::Bye, vec![])] } else { vec![] }
        }
        _ => vec![],
    };
    let (held, result) = kept(1, answer).expect("it waits for ever");
    let measured = Nanos((result["elapsed_s"].as_f64().unwrap() * 1e9) as u64);
    (said, held.saturating_sub(measured))
}

#[test]
fn a_goodbye_is_said_until_it_is_answered_and_three_times_at_most() {
    for answered in 1..=3 {
        let (said, took) = goodbyes(answered);
        assert_eq!(said, answered);
        assert!(took < GOODBYE * u64::from(answered), "{took:?}");
    }
    let (said, took) = goodbyes(9);
    assert_eq!(said, GOODBYES);
    assert!(took >= GOODBYE * 3 && took < GOODBYE * 3 + Nanos::millis(20), "{took:?}");
}
