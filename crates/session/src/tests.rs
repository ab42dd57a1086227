//! Both ends against each other over an in-memory stream, in virtual time.

use std::net::{IpAddr, Ipv4Addr};

use pathcast_base::Nanos;
use proptest::prelude::*;

use super::*;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn key(id: &str, byte: u8) -> Key {
    Key::new(id, vec![byte; 32]).unwrap()
}

fn service_with(limits: Limits) -> Service {
    let addresses = vec![SOURCE, "2001:db8::1".parse().unwrap()];
    Service::new(KeyRing::new([key("site", 7), key("other", 9)]), limits, Announcement { addresses, mptcp: true })
}

fn entropy(n: u8) -> Entropy {
    Entropy { nonce: [n; 32], session: [n; 16] }
}

fn connect(service: &mut Service, n: u8) -> Connection {
    service.accept(Nanos::ZERO, SOURCE, entropy(n)).0
}

/// Lets both control ends talk until neither has anything to say, in pieces of `piece` bytes.
fn talk(
    client: &mut ClientControl,
    server: &mut Connection,
    service: &mut Service,
    now: Nanos,
    piece: usize,
) -> Result<(), SessionError> {
    loop {
        let (up, down) = (client.output(), server.output());
        if up.is_empty() && down.is_empty() {
            return Ok(());
        }
        up.chunks(piece).for_each(|c| server.receive(now, c, service));
        for c in down.chunks(piece) {
            client.receive(c)?;
        }
    }
}

fn open(service: &mut Service, n: u8) -> (ClientControl, Connection) {
    let (mut client, mut server) = (ClientControl::new(&key("site", 7), [n; 32]), connect(service, n));
    talk(&mut client, &mut server, service, Nanos::ZERO, 4096).unwrap();
    assert!(client.session().is_some());
    (client, server)
}

fn transfer(client: &ClientControl, number: u64, bytes: u64) -> ClientTransfer {
    let (welcome, keys) = client.session().unwrap();
    ClientTransfer::new(welcome, keys, number, bytes, "cubic")
}

/// Sends a whole transfer; the client's view of the answer.
fn run(service: &mut Service, data: &mut ClientTransfer, payload: usize) -> Result<TransferStatus, SessionError> {
    let mut server = connect(service, 0);
    let stream = [data.attach(), &vec![0xa5; payload]].concat();
    server.receive(Nanos::millis(1), &stream, service);
    let out = server.output();
    server.end(service);
    data.receive(&out)
}

fn rejection(result: Result<impl std::fmt::Debug, SessionError>) -> Rejection {
    match result.unwrap_err() {
        SessionError::Rejected(r) => r,
        other => panic!("{other}"),
    }
}

#[test]
fn a_session_tells_what_is_granted_and_where() {
    let mut service = service_with(Limits::default());
    let (client, server) = open(&mut service, 1);
    let (welcome, keys) = client.session().unwrap();
    assert_eq!(welcome.addresses.len(), 2);
    assert!(welcome.mptcp && welcome.max_transfers == 16 && welcome.session == [1; 16]);
    assert_eq!(keys.subkey("x"), service.sessions[&[1; 16]].keys.subkey("x"), "both ends hold the same keys");
    assert!(!server.closing());
    assert_eq!((service.counters().connections, service.counters().sessions), (1, 1));
    assert_eq!(service.take_notes(), [Note::SessionOpened { key_id: "site".into(), source: SOURCE }]);
    assert!(service.take_notes().is_empty());
}

#[test]
fn a_denial_under_another_key_is_none() {
    let mut service = service_with(Limits::default());
    let (client, _server) = open(&mut service, 1);
    let (_, keys) = client.session().unwrap();
    let denial = Denial::Size.encode(1);
    for (tag, honest) in [(&keys.answer, true), (&keys.attach, false)] {
        let said = keys::signed(tag, frame::Kind::Denied, &denial);
        let found = transfer(&client, 1, 10).receive(said.bytes()).unwrap_err();
        assert_eq!(found == SessionError::Forged, !honest, "{found}");
    }
}

#[test]
fn wrong_key_and_unknown_id_look_alike() {
    let mut service = service_with(Limits::default());
    let mut answers = Vec::new();
    for wrong in [key("site", 8), key("nobody", 7), key("nobody", 0)] {
        let mut server = connect(&mut service, 1);
        let mut client = ClientControl::new(&wrong, [1; 32]);
        server.receive(Nanos::ZERO, &client.output(), &mut service);
        assert!(server.closing());
        let out = server.output();
        assert_eq!(rejection(client.receive(&out)), Rejection::Refused);
        answers.push(out);
    }
    assert!(answers.iter().all(|a| *a == answers[0]));
    assert_eq!((service.counters().refused_key, service.sessions()), (3, 0));
}

#[test]
fn a_replayed_hello_opens_nothing() {
    let mut service = service_with(Limits::default());
    let (mut client, mut first, mut second) =
        (ClientControl::new(&key("site", 7), [1; 32]), connect(&mut service, 1), connect(&mut service, 2));
    let hello = client.output();
    first.receive(Nanos::ZERO, &hello, &mut service);
    client.receive(&first.output()).unwrap();
    let confirm = client.output();
    second.receive(Nanos::ZERO, &hello, &mut service);
    second.output();
    second.receive(Nanos::ZERO, &confirm, &mut service);
    assert!(second.closing() && service.sessions() == 0, "the confirmation is bound to the other nonce");
}

#[test]
fn an_impostor_is_found_out() {
    let mut other = Service::new(KeyRing::new([key("site", 8)]), Limits::default(), Announcement::default());
    // an impostor may skip the check of Hello, but cannot sign Welcome
    let mut client = ClientControl::new(&key("site", 7), [1; 32]);
    let mut lookalike = ClientControl::new(&key("site", 8), [1; 32]);
    let mut server = connect(&mut other, 1);
    server.receive(Nanos::ZERO, &lookalike.output(), &mut other);
    client.output();
    assert_eq!(client.receive(&server.output()).unwrap_err(), SessionError::Forged);
}

#[test]
fn another_version_is_answered_with_ours() {
    let mut service = service_with(Limits::default());
    let mut server = connect(&mut service, 1);
    let mut client = ClientControl::new(&key("site", 7), [1; 32]);
    let mut hello = client.output();
    hello[4] = 9;
    server.receive(Nanos::ZERO, &hello, &mut service);
    assert_eq!(rejection(client.receive(&server.output())), Rejection::Version { theirs: VERSION });
    assert_eq!(service.counters().refused_version, 1);
}

#[test]
fn a_transfer_is_measured_at_the_receiver() {
    let mut service = service_with(Limits::default());
    let (client, _server) = open(&mut service, 1);
    let mut data = transfer(&client, 1, 1000);
    let mut server = connect(&mut service, 2);
    server.receive(Nanos::millis(5), data.attach(), &mut service);
    server.receive(Nanos::millis(10), &[0; 400], &mut service);
    assert!(server.receiving() && server.output().is_empty());
    assert_eq!((server.awaited(), connect(&mut service, 3).awaited()), (600, 0));
    server.receive(Nanos::millis(30), &[0; 600], &mut service);
    let receipt = Receipt { transfer: 1, bytes: 1000, duration_ns: 20_000_000 };
    assert_eq!(data.receive(&server.output()), Ok(TransferStatus::Done(receipt)));
    assert_eq!((service.counters().transfers, service.counters().payload_bytes), (1, 1000));
}

#[test]
fn what_is_not_granted_is_denied_with_its_reason() {
    let mut service = service_with(Limits { max_transfer_bytes: 10, max_transfers: 1, ..Limits::default() });
    let (client, _server) = open(&mut service, 1);
    let denied = |r| match rejection(r) {
        Rejection::Denied(d) => d,
        other => panic!("{other:?}"),
    };
    assert_eq!(denied(run(&mut service, &mut transfer(&client, 1, 11), 0)), Denial::Size);
    let mut busy = connect(&mut service, 3);
    busy.receive(Nanos::ZERO, transfer(&client, 2, 10).attach(), &mut service);
    // what is on its way behind the head is no message
    assert_eq!(denied(run(&mut service, &mut transfer(&client, 3, 10), 5000)), Denial::Transfers);
    busy.end(&mut service);
    assert!(run(&mut service, &mut transfer(&client, 4, 10), 10).is_ok());
    assert_eq!(denied(run(&mut service, &mut transfer(&client, 4, 10), 10)), Denial::Replay);
    let counted = service.counters();
    assert_eq!((counted.broken, counted.refused_limit, counted.refused_replay), (1, 2, 1));
    assert_eq!(counted.refused_garbage, 0);
}

#[test]
fn sessions_are_limited_and_end_with_their_connection() {
    let mut service = service_with(Limits { sessions: Quota { in_all: 1, ..Quota::SESSIONS }, ..Limits::default() });
    let (mut client, mut server) = open(&mut service, 1);
    let (mut late, mut refused) = (ClientControl::new(&key("other", 9), [2; 32]), connect(&mut service, 2));
    let said = talk(&mut late, &mut refused, &mut service, Nanos::ZERO, 9);
    assert_eq!(rejection(said), Rejection::Denied(Denial::Sessions));
    let mut data = transfer(&client, 1, 1);
    client.bye();
    talk(&mut client, &mut server, &mut service, Nanos::ZERO, 9).unwrap();
    assert!(server.closing() && service.sessions() == 0);
    assert_eq!(rejection(run(&mut service, &mut data, 1)), Rejection::Refused);
}

#[test]
fn bytes_after_the_end_void_a_transfer() {
    let mut service = service_with(Limits::default());
    let (client, _server) = open(&mut service, 1);
    assert_eq!(run(&mut service, &mut transfer(&client, 1, 10), 11), Ok(TransferStatus::Pending));
    assert_eq!((service.counters().transfers, service.counters().broken), (0, 1));
}

#[test]
fn every_wait_ends() {
    let limits = Limits::default();
    let mut service = service_with(limits);
    let mut mute = connect(&mut service, 9);
    assert_eq!(mute.deadline(&service), limits.handshake);
    mute.expire(limits.handshake, &mut service);
    assert!(mute.closing());

    // it has said who it is, and never that it has read the answer
    let mut greeted = connect(&mut service, 8);
    greeted.receive(Nanos::secs(3), &ClientControl::new(&key("site", 7), [8; 32]).output(), &mut service);
    assert!(!greeted.output().is_empty() && !greeted.closing());
    assert_eq!(greeted.deadline(&service), limits.handshake, "what is said does not put it off");
    greeted.expire(limits.handshake - Nanos(1), &mut service);
    assert!(!greeted.closing());
    greeted.expire(limits.handshake, &mut service);
    assert!(greeted.closing() && service.expendable() == 0);

    // its last words are not read, and it does not go
    let mut refused = connect(&mut service, 7);
    refused.receive(Nanos::secs(5), &ClientControl::new(&key("site", 1), [7; 32]).output(), &mut service);
    assert!(refused.closing() && !refused.output().is_empty());
    let lingers = refused.deadline(&service);
    assert_eq!((lingers, service.expendable()), (Nanos::secs(7), 1));
    refused.receive(Nanos::secs(6), b"more", &mut service);
    assert_eq!(refused.deadline(&service), lingers, "nor does what is said then");
    refused.expire(lingers, &mut service);
    assert_eq!((refused.deadline(&service), service.expendable()), (Nanos::ZERO, 0), "it is gone");

    let (mut client, mut server) = open(&mut service, 1);
    assert_eq!(server.deadline(&service), limits.session_idle);
    client.ping();
    talk(&mut client, &mut server, &mut service, Nanos::secs(100), 1).unwrap();
    assert_eq!(client.status(), ControlStatus::Open { answered: 1, sent: 1 });
    assert_eq!(server.deadline(&service), limits.session_idle + Nanos::secs(100));

    let mut stalled = connect(&mut service, 2);
    stalled.receive(Nanos::secs(690), transfer(&client, 1, 10).attach(), &mut service);
    server.expire(Nanos::secs(700), &mut service);
    assert!(!server.closing(), "a session with a transfer is not idle");
    stalled.receive(Nanos::secs(700), b"x", &mut service);
    assert_eq!(stalled.deadline(&service), Nanos::secs(730));
    stalled.expire(Nanos::secs(730), &mut service);
    assert!(stalled.closing());
    server.expire(Nanos::secs(1500), &mut service);
    assert!(server.closing());
    assert_eq!((service.sessions(), service.counters().timed_out), (0, 4));
}

#[test]
fn a_session_lasts_as_long_as_its_transfer() {
    let limits = Limits::default();
    let mut service = service_with(limits);
    let (client, mut server) = open(&mut service, 1);
    let mut data = connect(&mut service, 2);
    data.receive(Nanos::secs(100), transfer(&client, 1, 10).attach(), &mut service);
    for look in 1..4 {
        let due = Nanos::secs(100) + limits.session_idle * look;
        assert_eq!(server.deadline(&service), due);
        server.expire(due, &mut service);
        assert!(!server.closing());
    }
    data.end(&mut service);
    server.expire(server.deadline(&service), &mut service);
    assert!(server.closing());
}

#[test]
fn a_noisy_source_displaces_only_itself() {
    let mut service = service_with(Limits { max_expendable: 4, ..Limits::default() });
    let quiet: IpAddr = "192.0.2.99".parse().unwrap();
    let (mut served, _) = service.accept(Nanos::ZERO, quiet, entropy(1));
    let noisy: Vec<u64> = (0..3).map(|_| service.accept(Nanos::ZERO, SOURCE, entropy(0)).0.id()).collect();
    assert_eq!(service.accept(Nanos::ZERO, SOURCE, entropy(0)).1, [noisy[0]]);
    assert_eq!(service.accept(Nanos::ZERO, quiet, entropy(0)).1, [noisy[1]]);
    let mut client = ClientControl::new(&key("site", 7), [1; 32]);
    talk(&mut client, &mut served, &mut service, Nanos::ZERO, 4096).unwrap();
    assert!(client.session().is_some());
    assert_eq!(service.counters().evicted, 2);
}

fn connect_from(service: &mut Service, from: IpAddr, n: u8) -> Connection {
    service.accept(Nanos::ZERO, from, entropy(n)).0
}

#[test]
fn one_source_and_one_key_do_not_take_all_sessions() {
    let mut service = service_with(Limits::default());
    let mut held = Vec::new();
    let mut opened = |service: &mut Service, key: &Key, from: [u8; 4], n: u8| {
        let (mut client, mut server) = (ClientControl::new(key, [n; 32]), connect_from(service, from.into(), n));
        let done = talk(&mut client, &mut server, service, Nanos::ZERO, 4096);
        held.push(server);
        done.is_ok()
    };
    let (site, other) = (key("site", 7), key("other", 9));
    let from_one = (0..40).filter(|&n| opened(&mut service, &site, [192, 0, 2, 1], n)).count();
    assert_eq!((from_one, service.sessions()), (16, 16));
    let with_one = (40..100).filter(|&n| opened(&mut service, &site, [192, 0, 2, n], n)).count();
    assert_eq!((with_one, service.sessions()), (16, 32), "and the key has its 32");
    assert!(opened(&mut service, &other, [192, 0, 2, 200], 200));
}

#[test]
fn sessions_of_both_protocols_are_counted_together() {
    let measurements = Admission::new(Quota { in_all: 9, per_key: 9, per_source: 2 });
    let mut service = service_with(Limits::default()).admitting(measurements.clone());
    let _measures = measurements.enter("site", SOURCE).unwrap();
    let (_client, _server) = open(&mut service, 1);
    let (mut late, mut refused) = (ClientControl::new(&key("site", 7), [2; 32]), connect(&mut service, 2));
    let said = talk(&mut late, &mut refused, &mut service, Nanos::ZERO, 4096);
    assert_eq!(rejection(said), Rejection::Denied(Denial::Sessions));
    assert!(measurements.enter("site", SOURCE).is_err());
}

#[test]
fn what_lingers_makes_room_and_what_is_received_has_places_too() {
    let mut service = service_with(Limits { max_expendable: 8, ..Limits::default() });
    let (client, _server) = open(&mut service, 1);
    let mut lingering = Vec::new();
    let mut evicted = 0;
    for number in 1..=100 {
        let (mut server, old) = service.accept(Nanos::ZERO, SOURCE, entropy(2));
        evicted += old.len();
        server.receive(Nanos::ZERO, transfer(&client, number, 0).attach(), &mut service);
        assert!(server.closing() && !server.output().is_empty(), "it has its receipt");
        lingering.push(server);
    }
    assert_eq!(evicted, 92, "a transfer of nothing holds no more than one that has proved nothing");
    let mut receiving = Vec::new();
    for session in 2..=4 {
        let (client, server) = open(&mut service, session);
        receiving.push(server);
        for number in 1..=16 {
            let mut server = connect(&mut service, 0);
            server.receive(Nanos::ZERO, transfer(&client, number, 10).attach(), &mut service);
            receiving.push(server);
        }
    }
    assert_eq!(receiving.iter().filter(|server| server.receiving()).count(), 32, "one source has 32 transfers");
}

/// Every message of a session and a transfer, with a bit flipped: nothing is opened, nothing is received.
#[test]
fn every_flipped_bit_is_refused() {
    let mut service = service_with(Limits::default());
    let mut client = ClientControl::new(&key("site", 7), [1; 32]);
    let hello = client.output();
    let mut server = connect(&mut service, 1);
    server.receive(Nanos::ZERO, &hello, &mut service);
    let welcome = server.output();
    client.receive(&welcome).unwrap();
    let confirm = client.output();
    let flips = |message: &[u8]| {
        let message = message.to_vec();
        (0..message.len() * 8).map(move |i| {
            let mut m = message.clone();
            m[i / 8] ^= 1 << (i % 8);
            m
        })
    };
    for m in flips(&hello) {
        let mut s = service_with(Limits::default());
        let mut server = connect(&mut s, 1);
        server.receive(Nanos::ZERO, &m, &mut s);
        let answer = server.output();
        assert!(!answer.windows(2).any(|w| w == [VERSION, Kind::Welcome as u8]), "no Welcome");
    }
    for m in flips(&welcome) {
        let mut c = ClientControl::new(&key("site", 7), [1; 32]);
        assert!(!matches!(c.receive(&m), Ok(ControlStatus::Confirming)));
    }
    for m in flips(&confirm) {
        let mut s = service_with(Limits::default());
        let mut server = connect(&mut s, 1);
        server.receive(Nanos::ZERO, &hello, &mut s);
        server.receive(Nanos::ZERO, &m, &mut s);
        assert_eq!(s.sessions(), 0);
    }
    let mut s = service_with(Limits::default());
    let (client, _server) = open(&mut s, 1);
    for m in flips(transfer(&client, 1, 0).attach()) {
        let mut server = connect(&mut s, 2);
        server.receive(Nanos::ZERO, &m, &mut s);
        assert!(!server.receiving() && s.counters().transfers == 0);
    }
    let mut data = transfer(&client, 1, 0);
    let mut server = connect(&mut s, 2);
    server.receive(Nanos::ZERO, data.attach(), &mut s);
    let receipt = server.output();
    for m in flips(&receipt) {
        assert!(!matches!(transfer(&client, 1, 0).receive(&m), Ok(TransferStatus::Done(_))));
    }
    assert!(matches!(data.receive(&receipt), Ok(TransferStatus::Done(_))));
}

#[test]
fn every_ping_is_answered_by_its_number() {
    let mut service = service_with(Limits::default());
    let (mut client, mut server) = open(&mut service, 1);
    for sent in 1..4 {
        client.ping();
        talk(&mut client, &mut server, &mut service, Nanos::ZERO, 4096).unwrap();
        assert_eq!(client.status(), ControlStatus::Open { answered: sent, sent });
    }
}

#[test]
fn an_answer_to_a_ping_needs_the_key_and_the_number() {
    let mut service = service_with(Limits::default());
    for (own_key, number) in [(true, 2), (false, 1), (true, 1)] {
        let (mut client, _server) = open(&mut service, 1);
        client.ping();
        client.output();
        let (_, keys) = client.session().unwrap();
        let tag = if own_key { &keys.server_control } else { &keys.client_control };
        let pong = keys::signed(tag, frame::Kind::Pong, &u64::to_be_bytes(number));
        let taken = client.receive(pong.bytes());
        assert_eq!(taken.is_ok(), (own_key, number) == (true, 1), "{own_key} {number} {taken:?}");
    }
}

#[test]
fn replayed_control_messages_are_refused() {
    let mut service = service_with(Limits::default());
    let (mut client, mut server) = open(&mut service, 1);
    client.ping();
    let ping = client.output();
    server.receive(Nanos::ZERO, &ping, &mut service);
    let pong = server.output();
    client.receive(&pong).unwrap();
    assert_eq!(client.receive(&pong).unwrap_err(), SessionError::Forged);
    server.receive(Nanos::ZERO, &ping, &mut service);
    assert!(server.closing());
}

proptest! {
    #[test]
    fn noise_never_panics_and_opens_nothing(chunks in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..200), 0..8), header in any::<bool>(), kind in 0u8..20) {
        let mut service = service_with(Limits::default());
        let (good, _control) = open(&mut service, 1);
        let mut server = connect(&mut service, 2);
        let mut client = ClientControl::new(&key("site", 7), [3; 32]);
        let mut data = transfer(&good, 1, 5);
        let mut stream = if header { [b"PCST".as_slice(), &[VERSION, kind, 0, 60]].concat() } else { vec![] };
        for chunk in chunks {
            stream.extend(chunk);
            server.receive(Nanos::ZERO, &stream, &mut service);
            let _ = client.receive(&stream);
            let _ = data.receive(&stream);
            stream.clear();
        }
        prop_assert!(service.sessions() == 1 && client.session().is_none() && !server.receiving());
    }

    #[test]
    fn bodies_never_panic(body in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = (message::Hello::decode(&body), message::Attach::decode(&body), Receipt::decode(&body));
        let _ = (Refusal::decode(&body), Denial::decode(&body), message::sequence(&body));
        if let Ok(w) = Welcome::decode(&body) {
            prop_assert_eq!(w.encode(), body, "one body, one meaning");
        }
    }

    #[test]
    fn fragmentation_does_not_matter(piece in 1usize..300, cuts in 1usize..90, bytes in 0usize..5000) {
        let mut service = service_with(Limits::default());
        let (mut client, mut control) = (ClientControl::new(&key("site", 7), [1; 32]), connect(&mut service, 1));
        talk(&mut client, &mut control, &mut service, Nanos::ZERO, piece).unwrap();
        let mut data = transfer(&client, 1, bytes as u64);
        let mut server = connect(&mut service, 2);
        let stream = [data.attach(), &vec![1; bytes]].concat();
        stream.chunks(cuts).for_each(|c| server.receive(Nanos::ZERO, c, &mut service));
        let mut status = TransferStatus::Pending;
        for c in server.output().chunks(cuts) {
            status = data.receive(c).unwrap();
        }
        prop_assert!(matches!(status, TransferStatus::Done(r) if r.bytes == bytes as u64));
    }
}

#[test]
fn who_holds_the_key_is_told_what_is_seen_and_a_flag_without_a_meaning_is_denied() {
    let mut service = service_with(Limits::default());
    let (client, _control) = open(&mut service, 1);
    let (welcome, keys) = client.session().unwrap();
    let mut server = connect(&mut service, 2);
    let mut look = ClientLook::new(welcome, keys);
    for number in [1, 2] {
        let seen = Seen { pmtu: 1500, transport: Transport::Mptcp, ..Seen::default() };
        server.receive(Nanos::ZERO, &look.ask(number), &mut service);
        assert!(server.is_asked() && !server.receiving());
        server.show(&seen);
        assert!(!server.is_asked());
        assert_eq!(look.receive(&server.output()).unwrap(), Some(seen));
    }
    let seen = Seen { peer: "192.0.2.1:7".parse().ok(), ..Seen::default() };
    server.receive(Nanos::ZERO, &look.tell(&seen), &mut service);
    assert_eq!((server.take_told(), server.take_told(), server.closing()), (Some(seen), None, false));
    server.receive(Nanos::ZERO, &look.ask(2), &mut service);
    assert_eq!(rejection(look.receive(&server.output())), Rejection::Denied(Denial::Replay));
    server.end(&mut service);
    assert_eq!(service.sessions[&[1; 16]].active, 0, "its place is free again");
    let mut server = connect(&mut service, 4);
    server.receive(Nanos::ZERO, &look.ask(3), &mut service);
    let forged = keys::signed(&keys.answer, frame::Kind::Seen, &[0; 8]);
    server.receive(Nanos::ZERO, forged.bytes(), &mut service);
    assert!(server.closing() && server.take_told().is_none(), "not the client's word");
    server.end(&mut service);
    // what 0.1.0 says to a flag that it does not know
    let mut server = connect(&mut service, 3);
    let attach = Attach { session: [1; 16], transfer: 9, bytes: 0, flags: 2, control: String::new() };
    let said = keys::signed(&keys.attach, frame::Kind::Attach, &attach.encode());
    server.receive(Nanos::ZERO, said.bytes(), &mut service);
    let answer = transfer(&client, 9, 0).receive(&server.output());
    assert_eq!(rejection(answer), Rejection::Denied(Denial::Unsupported));
}
