//! Measurements between clients and a far end over a network that loses, doubles, delays, and is full of strangers.

mod net;

use net::{At, Line, Net, Packet};
use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::{Budget, Effort};
use pathcast_measure::{Client, ClockState, Direction, FarEnd, MeasureLimits, MethodName, Request};
use pathcast_session::{Entropy, Key, KeyRing, Quota};
use proptest::prelude::*;
use serde_json::Value;

fn key(id: &str, byte: u8) -> Key {
    Key::new(id, vec![byte; 32]).unwrap()
}

fn far(limits: MeasureLimits) -> FarEnd<At> {
    let keys = KeyRing::new([key("one", 1), key("two", 2)]);
    FarEnd::new(keys, limits, ClockState::default(), Entropy { nonce: [9; 32], session: [9; 16] })
}

fn request(kb: u64, ms: u64) -> Request {
    let budget = Budget { bytes: Bytes(kb * 1000), time: Nanos::millis(ms) };
    Request { budget, ..Request::new(key("one", 1)) }
}

fn client(byte: u8, request: Request) -> Client {
    Client::new(request, Entropy { nonce: [byte; 32], session: [byte; 16] })
}

fn net(line: Line, seed: u64) -> Net {
    Net::new(far(MeasureLimits::default()), line, seed)
}

fn one(line: Line, seed: u64, request: Request) -> Net {
    let mut net = net(line, seed);
    net.add(client(1, request), Nanos::secs(1));
    net
}

fn direction<'a>(result: &'a Value, path: usize, word: &str) -> &'a Value {
    &result["paths"][path]["directions"][word]
}

fn close(value: &Value, truth: f64, share: f64) {
    let got = value.as_f64().unwrap_or_else(|| panic!("{value}"));
    assert!((got / truth - 1.0).abs() < share, "{got} for {truth}");
}

#[test]
fn both_directions_and_what_they_cost() {
    let mut net = one(Line::default(), 1, request(500, 2000));
    net.finish(Nanos::secs(10));
    let result = net.result(0).clone();
    for word in ["out", "in"] {
        let d = direction(&result, 0, word);
        close(&d["capacity_bps"]["value"], 5e6, 0.01);
        close(&d["available_bps"]["value"], 5e6, 0.02);
        close(&d["delay_s"]["minimum"]["value"], 0.01 + 120.0 * 8.0 / 5e6, 0.02);
        assert_eq!(
            (d["loss"]["lost"].as_u64(), d["delay_s"]["clock"]["synchronised"].as_bool()),
            (Some(0), Some(false))
        );
        close(&d["delay_s"]["clock"]["offset_s"], 100.0, 1e-6);
        assert!(d["bytes"].as_u64().unwrap() <= 500_000);
    }
    let sent: u64 = net.log.iter().map(|(_, packet)| u64::from(packet.size)).sum();
    close(&result["probe_bytes"], sent as f64, 0.002);
    assert!(result["elapsed_s"].as_f64().unwrap() < 4.3, "{result}");
    assert_eq!((&result["method"], &result["refused"]), (&Value::from("ride"), &Value::Null));
    net.run(Nanos::secs(1));
    let counters = net.far.counters();
    assert_eq!((counters.opened, counters.ended, counters.timed_out, net.far.sessions()), (1, 1, 0, 0));
    assert_eq!((counters.bad_tag, counters.malformed, counters.replayed, counters.denied), (0, 0, 0, 0));
    let words: Vec<&str> = net.clients[0].progress.iter().map(|p| p.phase).collect();
    assert!(["hello", "clock", "out", "in"].iter().all(|word| words.contains(word)), "{words:?}");
}

/// Where answers take 0.2 s both directions go on while they are waited for, and at once; where they take 20 ms one by one.
#[test]
fn on_long_paths_the_waits_are_shared() {
    let elapsed = |delay| {
        let line = Line { delay, ..Line::default() };
        let mut net = one(line, 1, Request { sparing: true, ..request(20_000, 30_000) });
        net.finish(Nanos::secs(30));
        for word in ["out", "in"] {
            close(&direction(net.result(0), 0, word)["available_bps"]["value"], 5e6, 0.02);
        }
        let bytes = net.result(0)["probe_bytes"].as_u64().unwrap();
        (net.result(0)["elapsed_s"].as_f64().unwrap(), bytes)
    };
    let (long, short) = (elapsed(0.1), elapsed(0.01));
    assert!(long.0 < 2.6 && long.1 < 1_000_000, "{long:?}");
    assert!(short.0 > 3.0, "{short:?}");
}

/// A far end that has not heard of a second port sends nothing as if there were one, and knows nothing that only that shows.
#[test]
fn a_lost_word_of_the_second_port_makes_no_fair_queue_one_for_all() {
    const BESIDE: u8 = 21;
    for lost in [1, usize::MAX] {
        let effort = Effort::Thorough { queue: Nanos::millis(500) };
        let asked = Request { directions: vec![Direction::In], effort, sparing: true, ..request(20_000, 10_000) };
        let mut net = one(Line::default(), 1, asked);
        let mut said = 0;
        net.filter = Box::new(move |_, packet| {
            let beside = packet.to_far && packet.payload[3] == BESIDE;
            said += usize::from(beside);
            !beside || said > lost
        });
        net.finish(Nanos::secs(30));
        let probes = net.log.iter().filter(|(_, packet)| !packet.to_far && packet.payload[3] == 15);
        let beside = probes.filter(|(_, packet)| packet.payload[16] & 0x80 != 0).count();
        let queue = &direction(net.result(0), 0, "in")["queue"];
        let not_seen = ["fair", "managed"].map(|of| queue[of]["value"].is_null() && queue[of]["why"] == "not-seen");
        let all_lost = lost == usize::MAX;
        assert_eq!((beside == 0, not_seen), (all_lost, [all_lost; 2]), "{beside} {queue}");
        let told = net.log.iter().filter(|(_, packet)| packet.to_far && packet.payload[3] == BESIDE).count();
        assert!((2..=8).contains(&told), "{told}");
    }
}

#[test]
fn every_method_both_ways() {
    for method in MethodName::ALL {
        let mut net = one(Line::default(), 2, Request { method, ..request(2000, 60_000) });
        net.finish(Nanos::secs(200));
        for word in ["out", "in"] {
            let d = direction(net.result(0), 0, word);
            close(&d["capacity_bps"]["value"], 5e6, 0.02);
            let a = &d["available_bps"];
            let (low, high) = (a["low"].as_f64().unwrap(), a["high"].as_f64().unwrap());
            assert!(low < 5.1e6 && high > 4.9e6, "{method} {word}: {a}");
        }
    }
}

#[test]
fn loss_copies_and_disorder_do_not_stop_it() {
    for seed in 0..12 {
        let line = Line { loss: 0.15, twice: 0.1, jitter: 0.02, ..Line::default() };
        let mut net = one(line, seed, request(300, 4000));
        net.finish(Nanos::secs(60));
        let result = net.result(0);
        assert_eq!(result["refused"], Value::Null, "{seed}");
        for word in ["out", "in"] {
            let d = direction(result, 0, word);
            let loss = d["loss"]["lost"].as_f64().unwrap() / d["loss"]["packets"].as_f64().unwrap();
            assert!((0.03..0.4).contains(&loss), "{seed} {d}");
            assert!(d["delay_s"]["minimum"]["value"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn paths_in_turn_and_at_once() {
    let mut spans = Vec::new();
    for at_once in [false, true] {
        let mut net = one(Line::default(), 3, Request { paths: 3, at_once, ..request(300, 1500) });
        net.finish(Nanos::secs(30));
        for path in 0..3 {
            for word in ["out", "in"] {
                close(&direction(net.result(0), path, word)["available_bps"]["value"], 5e6, 0.03);
            }
        }
        spans.push(net.result(0)["elapsed_s"].as_f64().unwrap());
    }
    assert!(spans[0] > 2.5 * spans[1], "{spans:?}");
}

#[test]
fn a_path_that_leads_nowhere_does_not_stop_the_others() {
    for dead in [0, 1] {
        let mut net = one(Line::default(), 4, Request { paths: 2, ..request(300, 1500) });
        net.filter = Box::new(move |_, packet| packet.at.1 != dead);
        net.finish(Nanos::secs(60));
        close(&direction(net.result(0), 1 - dead, "in")["available_bps"]["value"], 5e6, 0.03);
        assert_eq!(direction(net.result(0), dead, "out")["available_bps"]["why"], "no-answer");
        assert_eq!(net.result(0)["refused"], Value::Null);
    }
}

#[test]
fn others_wait_in_the_order_in_which_they_came_and_are_told_so() {
    let mut net = net(Line::default(), 5);
    for i in 0..3u8 {
        let start = Nanos::secs(1) + Nanos::millis(300 * u64::from(i));
        net.add(client(i + 1, Request { directions: vec![Direction::Out], ..request(300, 1500) }), start);
    }
    net.finish(Nanos::secs(30));
    let ends: Vec<Nanos> = net.clients.iter().map(|c| c.ended).collect();
    assert!(ends.is_sorted() && ends[2].as_secs_f64() > 3.0, "{ends:?}");
    let places: Vec<u64> = net.clients[2].progress.iter().filter(|p| p.phase == "queue").map(|p| p.of).collect();
    assert_eq!(places, [2, 1]);
    for i in 0..3 {
        close(&direction(net.result(i), 0, "out")["available_bps"]["value"], 5e6, 0.03);
    }
    let counters = net.far.counters();
    assert_eq!((counters.opened, counters.queued, counters.timed_out), (3, 2, 0));
}

#[test]
fn a_dead_client_frees_its_place_within_seconds() {
    let mut net = net(Line::default(), 6);
    net.add(client(1, request(3000, 30_000)), Nanos::secs(1));
    net.add(client(2, Request { directions: vec![Direction::In], ..request(300, 1500) }), Nanos::secs(2));
    net.run(Nanos::secs(3));
    net.clients[0].alive = false;
    let died = net.now;
    net.finish(Nanos::secs(20));
    assert!(net.clients[1].ended < died + Nanos::secs(8), "{:?}", net.clients[1].ended);
    close(&direction(net.result(1), 0, "in")["available_bps"]["value"], 5e6, 0.03);
    assert_eq!(net.far.counters().timed_out, 1);
}

#[test]
fn without_feedback_the_sender_stops_within_seconds() {
    for (to_far, word) in [(false, "out"), (true, "in")] {
        let directions = vec![if to_far { Direction::In } else { Direction::Out }];
        let mut net = one(Line::default(), 7, Request { directions, ..request(20_000, 30_000) });
        // the way that reports take
        let cut = Nanos::secs(5);
        net.filter = Box::new(move |now, packet| now < cut || packet.to_far != to_far);
        net.run(Nanos::secs(30));
        let probes = net.log.iter().filter(|(_, p)| p.to_far != to_far && p.size == 1400);
        let last = probes.map(|(at, _)| *at).max().unwrap();
        assert!(last > cut && last < cut + Nanos::millis(1500), "{word}: {last:?}");
        net.finish(Nanos::secs(30));
        let d = direction(net.result(0), 0, word);
        assert_eq!(d["available_bps"]["why"], "feedback-lost", "{d}");
    }
}

#[test]
fn what_is_lost_for_seconds_from_the_first_probe_on_does_not_stop_it() {
    for (to_far, word) in [(true, "out"), (false, "in")] {
        let directions = vec![if to_far { Direction::Out } else { Direction::In }];
        let mut net = one(Line::default(), 8, Request { directions, ..request(500, 10_000) });
        let mut since = None;
        net.filter = Box::new(move |now, packet| {
            if packet.to_far == to_far && packet.size == 1400 {
                since.get_or_insert(now);
            }
            packet.to_far != to_far || since.is_none_or(|since| now > since + Nanos::secs(3))
        });
        net.finish(Nanos::secs(30));
        close(&direction(net.result(0), 0, word)["capacity_bps"]["value"], 5e6, 0.01);
    }
}

#[test]
fn limits_are_kept_and_named() {
    let denied = |limits: MeasureLimits, paths: usize| {
        let mut net = Net::new(far(limits), Line::default(), 8);
        net.add(client(1, request(300, 5000)), Nanos::secs(1));
        net.add(client(2, Request { paths, ..request(300, 1500) }), Nanos::secs(2));
        net.run(Nanos::secs(3));
        let refused = net.result(1)["refused"].clone();
        assert!(refused["message"].as_str().unwrap().contains("far end"));
        assert_eq!(net.far.counters().denied, 1);
        refused["code"].as_str().unwrap().to_string()
    };
    let limits = MeasureLimits::default();
    assert_eq!(denied(MeasureLimits { sessions: Quota { in_all: 1, ..limits.sessions }, ..limits }, 1), "sessions");
    assert_eq!(
        denied(MeasureLimits { sessions: Quota { per_key: 1, ..limits.sessions }, ..limits }, 1),
        "sessions-per-key"
    );
    assert_eq!(denied(MeasureLimits { paths: 2, ..limits }, 3), "paths");

    // less than was asked for: it measures with less
    let small = MeasureLimits { bytes: Bytes(500_000), time: Nanos::secs(6), ..limits };
    let mut net = Net::new(far(small), Line::default(), 9);
    net.add(client(1, request(1000, 5000)), Nanos::secs(1));
    net.finish(Nanos::secs(20));
    assert_eq!(net.result(0)["refused"], Value::Null, "{}", net.result(0));
    assert!(net.result(0)["probe_bytes"].as_u64().unwrap() < 520_000);
    close(&direction(net.result(0), 0, "in")["available_bps"]["value"], 5e6, 0.03);

    // too little for any probe: that is said, and it is not that nobody answered
    let tiny = MeasureLimits { bytes: Bytes(10_000), ..limits };
    let mut net = Net::new(far(tiny), Line::default(), 9);
    net.add(client(1, request(1000, 5000)), Nanos::secs(1));
    net.finish(Nanos::secs(20));
    let refused = &net.result(0)["refused"];
    assert_eq!((&refused["code"], &refused["limit"]), (&"bytes".into(), &10_000.into()), "{}", net.result(0));
    assert!(refused["message"].as_str().unwrap().contains("allows 10KB for a session"), "{refused}");

    // a rate that is not granted is not sent
    let slow = MeasureLimits { rate: pathcast_base::Rate(1_000_000), ..limits };
    let mut net = Net::new(far(slow), Line { rate: 50e6, ..Line::default() }, 9);
    net.add(client(1, request(5000, 2000)), Nanos::secs(1));
    net.finish(Nanos::secs(20));
    assert_eq!(direction(net.result(0), 0, "out")["available_bps"]["why"], "rate-limit", "{}", net.result(0));
}

#[test]
fn who_wants_an_end_gets_what_is_known() {
    for (ms, known) in [(20, false), (2500, true)] {
        let mut net = one(Line::default(), 10, request(3000, 10_000));
        net.stop(0, Nanos::secs(1) + Nanos::millis(ms));
        net.finish(Nanos::secs(4));
        let out = &direction(net.result(0), 0, "out")["available_bps"];
        assert_eq!(out["value"].is_number(), known, "{out}");
        assert!(out["why"].is_string(), "{out}");
        net.run(Nanos::secs(1));
        assert_eq!(net.far.sessions(), 0);
    }
}

#[test]
fn one_clock_is_known_by_its_digest_which_does_not_leak() {
    let clock = ClockState { host: Some([7; 32]), ..ClockState::default() };
    let keys = KeyRing::new([key("one", 1)]);
    let far = FarEnd::new(keys, MeasureLimits::default(), clock, Entropy { nonce: [9; 32], session: [9; 16] });
    let mut net = Net::new(far, Line::default(), 11);
    net.add(client(1, Request { clock, ..request(300, 1500) }), Nanos::secs(1));
    net.finish(Nanos::secs(20));
    let delay = &direction(net.result(0), 0, "out")["delay_s"];
    assert_eq!((&delay["error"], delay["clock"]["synchronised"].as_bool()), (&Value::from(0.0), Some(true)));
    assert!(net.log.iter().all(|(_, packet)| !packet.payload.windows(16).any(|bytes| bytes == [7; 16])));
}

#[test]
fn a_wrong_key_and_an_unknown_one_get_no_answer_at_all() {
    for stranger in [key("one", 77), key("nobody", 1)] {
        let mut net = net(Line::default(), 12);
        net.add(client(1, Request { key: stranger, ..request(300, 1500) }), Nanos::secs(1));
        net.finish(Nanos::secs(60));
        assert_eq!(net.result(0)["refused"]["code"], "no-answer");
        assert!(net.log.iter().all(|(_, packet)| packet.to_far));
        let counters = net.far.counters();
        assert!(counters.bad_tag >= 5 && counters.cookies == 0, "{counters:?}");
    }
}

/// A whole measurement over two paths, all that was said in it, and the network that it leaves behind.
fn overheard(whole: bool) -> (Net, Vec<Packet>) {
    let mut net = one(Line::default(), 13, Request { paths: 2, ..request(100, 800) });
    if whole {
        net.finish(Nanos::secs(20));
        net.run(Nanos::secs(1));
    } else {
        net.run(Nanos::millis(900)); // in the middle of it
        net.clients[0].alive = false;
        net.run(Nanos::millis(100)); // what is on its way arrives
    }
    let said = net.log.iter().map(|(_, packet)| packet.clone()).collect();
    net.log.clear();
    (net, said)
}

/// What the far end says to one datagram.
fn answers(net: &mut Net, packet: &Packet) -> Vec<Packet> {
    let before = net.log.len();
    net.arrive(&Packet { to_far: true, ..packet.clone() });
    net.run(Nanos(0));
    net.log.split_off(before).into_iter().map(|(_, packet)| packet).collect()
}

const HELLO: u8 = 1;

#[test]
fn what_was_said_once_is_not_answered_twice() {
    let (mut net, said) = overheard(true);
    assert!(said.len() > 150);
    for packet in &said {
        let answers = answers(&mut net, packet);
        let hello = packet.to_far && packet.payload[3] == HELLO;
        assert_eq!(answers.len(), usize::from(hello), "{packet:?}");
        assert!(answers.iter().all(|answer| answer.size < packet.size));
    }
    assert_eq!(net.far.sessions(), 0);
    // nor while the session lives: but a question how it is may be lost in a changed order, and that is all
    let (mut net, said) = overheard(false);
    assert_eq!(net.far.sessions(), 1);
    let counted = net.far.counters();
    for packet in said.iter().filter(|packet| packet.to_far && packet.payload[3] > 3) {
        for from in [packet.at, At(5, 5)] {
            let path_hello = [8, 10].contains(&packet.payload[3]);
            let answers = answers(&mut net, &Packet { at: from, ..packet.clone() });
            assert!(path_hello || answers.is_empty(), "{packet:?} {answers:?}");
            assert!(answers.iter().all(|answer| answer.size < packet.size));
        }
    }
    assert!(net.far.counters().replayed > counted.replayed + 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever strangers send from addresses of their own: never more comes back to one than it has sent.
    #[test]
    fn strangers_learn_nothing_and_gain_nothing(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, any::<prop::sample::Index>(), 0u8..4), 1..200),
        noise in prop::collection::vec(any::<u8>(), 0..300),
        live in any::<bool>(),
    ) {
        let (mut net, said) = overheard(!live);
        let (mut sent, mut got) = ([0u64; 4], [0u64; 4]);
        for (which, stranger, bit, change) in &picks {
            let mut packet = which.get(&said).clone();
            packet.at = At(100 + stranger, packet.at.1);
            match change {
                0 => {}
                1 => {
                    let bit = bit.index(packet.payload.len() * 8);
                    packet.payload[bit / 8] ^= 1 << (bit % 8);
                }
                2 => packet.payload.truncate(bit.index(packet.payload.len())),
                _ => packet.payload = noise.clone(),
            }
            packet.size = packet.payload.len() as u16 + 28;
            sent[*stranger] += u64::from(packet.size);
            got[*stranger] += answers(&mut net, &packet).iter().map(|answer| u64::from(answer.size)).sum::<u64>();
            prop_assert!(got[*stranger] <= sent[*stranger]);
        }
        prop_assert!(net.far.sessions() <= 1);
    }

    /// And the client does not mind them either.
    #[test]
    fn a_client_survives_noise_in_its_own_session(seed in 0u64..1000, noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut net = one(Line::default(), seed, Request { directions: vec![Direction::In], ..request(60, 600) });
        for _ in 0..20 {
            net.run(Nanos::millis(30));
            let last: Vec<Packet> = net.log.iter().rev().take(4).map(|(_, packet)| packet.clone()).collect();
            for mut packet in last {
                // within what is signed: a copy with other filling is the same packet
                let at = seed as usize % usize::from(u16::from_be_bytes([packet.payload[4], packet.payload[5]]));
                packet.payload[at] ^= 0x40;
                net.arrive(&packet);
                net.arrive(&Packet { payload: noise.clone(), ..packet });
            }
        }
        net.finish(Nanos::secs(20));
        close(&direction(net.result(0), 0, "in")["capacity_bps"]["value"], 5e6, 0.02);
    }
}
