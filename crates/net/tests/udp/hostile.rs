//! A far end that stands in the open: rubbish while somebody measures, clients that die, and many at once.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, thread};

use pathcast_base::{Bytes, Nanos, Stream};
use pathcast_estimate::Budget;
use pathcast_measure::forge::{self, Forge, KINDS};
use pathcast_measure::machine::{Action, Event, Machine, Progress};
use pathcast_measure::{Client, Direction, FarEnd, MeasureCounters, MeasureLimits, Request};
use pathcast_net::udp::{DriveOptions, Driven, FarAddress, FarOptions, FarServer, SessionClock, drive};
use pathcast_net::{Key, PathAddr, SocketMaker};
use pathcast_session::{Entropy, KeyRing};
use serde_json::Value;

use super::common::netns::{Net, sweep};
use super::common::until;
use super::{at, common, host, path};

type Server = FarServer<FarEnd<FarAddress>>;
/// What somebody has said.
type Words = Arc<Mutex<Vec<Vec<u8>>>>;

fn entropy(byte: u8) -> Entropy {
    Entropy { nonce: [byte; 32], session: [byte; 16] }
}

fn serve(maker: &dyn SocketMaker, listen: &str) -> Server {
    let clock = SessionClock::start();
    let far = FarEnd::new(KeyRing::new([common::key()]), MeasureLimits::default(), clock.state(), entropy(2));
    FarServer::start(maker, FarOptions { listen: vec![listen.parse().unwrap()], clock, urgent: false }, far).unwrap()
}

/// Waits until the far end says so.
#[track_caller]
fn wait(server: &Server, so: impl Fn(&FarEnd<FarAddress>) -> bool) {
    assert!(until(|| server.with(&so)), "waited in vain: {:?}", server.with(FarEnd::counters));
}

/// A client whose words are overheard.
struct Overheard(Client, Words);

impl Machine for Overheard {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        self.0.handle(now, event);
    }

    fn next(&mut self, now: Nanos) -> Option<Action> {
        let action = self.0.next(now);
        let mut words = self.1.lock().unwrap();
        match &action {
            Some(Action::Reply(reply)) => words.push(reply.payload.clone()),
            Some(Action::SendTrain(train)) => words.extend((0..train.count()).map(|i| train.head(i).to_vec())),
            _ => {}
        }
        action
    }
}

/// Measures towards the far end.
fn measure(
    maker: &dyn SocketMaker,
    path: PathAddr,
    port: u16,
    seed: u8,
    budget: Budget,
    words: Words,
) -> (Value, Driven, Vec<Progress>) {
    let clock = SessionClock::start();
    let directions = vec![Direction::Out];
    let request = Request { directions, budget, clock: clock.state(), ..Request::new(common::key()) };
    let mut client = Overheard(Client::new(request, entropy(seed)), words);
    let mut told = Vec::new();
    let mut on_progress = |progress| told.push(progress);
    let options = DriveOptions { clock, urgent: false, on_progress: Some(&mut on_progress), ..DriveOptions::default() };
    let driven = drive(maker, &[path], port, &mut client, options).unwrap();
    (serde_json::from_slice(&driven.result).unwrap(), driven, told)
}

fn rejected(counters: &MeasureCounters) -> u64 {
    counters.malformed + counters.bad_tag + counters.replayed
}

/// A datagram that must not be answered. Some are made of what was overheard, and `none` if nothing was yet.
fn malformed(stream: &mut Stream, words: &Words) -> Option<Vec<u8>> {
    let mut random = |below: usize| (stream.bits() % below as u64) as usize;
    let (kind, which) = (random(7), random(1 << 30));
    let overheard = || {
        let words = words.lock().unwrap();
        (!words.is_empty()).then(|| words[which % words.len()].clone())
    };
    Some(match kind {
        0 => (0..random(1400)).map(|_| random(256) as u8).collect(),
        1 => {
            let word = overheard()?;
            word[..random(word.len())].to_vec()
        }
        2 => {
            let mut word = overheard()?;
            let bit = random(word.len() * 8);
            word[bit / 8] ^= 1 << (bit % 8);
            word
        }
        // a Hello that is said again is answered by a cookie, which is smaller: all else is not
        3 => overheard().filter(|word| word[3] != 1)?,
        4 => {
            let mut word = overheard()?;
            word[8 + random(8)] ^= 1 + random(255) as u8;
            word
        }
        5 => Forge::hello(&Key::new("test", [8 + random(200) as u8; 32]).unwrap(), [random(256) as u8; 32], 0),
        _ => {
            // another's session keys, and a session that is there
            let key = Key::new("test", [200; 32]).unwrap();
            let hello = Forge::hello(&key, [1; 32], 0);
            let (forge, _) = Forge::cookie(&key, &hello, [random(256) as u8; 32])?;
            let mut said = forge.say(true, random(KINDS.into()) as u8, 0, 1, random(100) as u64, &[0; 40]);
            if let Some(word) = overheard().filter(|word| word[3] != 1) {
                said[8..16].copy_from_slice(&word[8..16]);
            }
            said
        }
    })
}

const RUBBISH: u64 = 10_000;

#[test]
fn rubbish_is_not_answered_and_does_not_touch_who_measures() {
    sweep();
    let Some(net) = Net::new("rubbish_is_not_answered_and_does_not_touch_who_measures") else { return };
    net.narrow("5mbit");
    let server = serve(&*net.server(), "0.0.0.0:5275");
    let (words, over) = (Words::default(), AtomicBool::new(false));
    let measured = thread::scope(|scope| {
        // over the other path, so that it is no traffic on the measured one
        let flood = scope.spawn(|| {
            let mut socket = None;
            net.client().run(&mut || socket = UdpSocket::bind("10.7.2.1:0").ok()).unwrap();
            let socket = socket.unwrap();
            socket.connect(at("10.7.4.1", 5275)).unwrap();
            let (mut stream, mut sent) = (Stream::new(7, "rubbish"), 0);
            while sent < RUBBISH {
                let datagram = malformed(&mut stream, &words);
                sent += u64::from(datagram.is_some_and(|datagram| socket.send(&datagram).is_ok()));
                if sent.is_multiple_of(10) {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            over.store(true, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(200));
            socket.set_nonblocking(true).unwrap();
            assert!(socket.recv(&mut [0; 2000]).is_err(), "answered");
        });
        // again and again, as long as it lasts
        let mut measured = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let budget = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) };
            let path = path("10.7.1.1", "10.7.3.1");
            // what was overheard of a session that has ended can be replayed no more
            words.lock().unwrap().clear();
            measured.push(measure(&*net.client(), path, 5275, 3 + measured.len() as u8, budget, words.clone()));
        }
        flood.join().unwrap();
        measured
    });
    let (times, own) = (measured.len() as u64, measured.iter().map(|(_, driven, _)| driven.tally.sent).sum::<u64>());
    wait(&server, |far| rejected(&far.counters()) >= RUBBISH * 95 / 100); // the rest a buffer may have dropped
    wait(&server, |far| far.counters().ended >= times);
    until(|| server.tally().received * 100 >= (RUBBISH + own) * 95); // it is told in its turn
    let (counters, tally) = (server.with(FarEnd::counters), server.tally());
    // probes of a train that was given up, because this machine kept its sender waiting, are refused too
    assert!(rejected(&counters) <= RUBBISH + own, "{counters:?} of {own}");
    assert!(tally.received <= RUBBISH + own && tally.received * 100 >= (RUBBISH + own) * 95, "{tally:?} of {own}");
    for count in [counters.malformed, counters.bad_tag, counters.replayed] {
        assert!(count > RUBBISH / 20, "{counters:?}");
    }
    let MeasureCounters { cookies, opened, queued, denied, timed_out, ended, .. } = counters;
    assert_eq!((cookies, opened, queued, denied, timed_out, ended), (times, times, 0, 0, 0, times), "{counters:?}");
    // the bucket counts Ethernet headers; who else wants these processors may spoil a measurement, but hardly each of them
    let right = 5e6 * 1500.0 / 1514.0;
    let within = |result: &Value| {
        let out = &result["paths"][0]["directions"]["out"];
        let figure = |figure: &str, name: &str| Some(out[figure][name].as_f64()? / right);
        let [capacity, available] = ["capacity_bps", "available_bps"].map(|of| figure(of, "value"));
        println!("of the truth: capacity {capacity:.3?}, available {available:.3?}");
        let interval = figure("available_bps", "low").zip(figure("available_bps", "high"));
        capacity.is_some_and(|c| (c - 1.0).abs() < 0.05)
            && interval.is_some_and(|(low, high)| low < 1.05 && high > 0.95)
    };
    assert!(measured.iter().filter(|(result, _, _)| within(result)).count() > 0, "{measured:#?}");
}

const PORT: &str = "PATHCAST_TEST_MEASURE_PORT";

/// The process that [`a_dead_client_frees_its_place_and_those_who_wait_are_told_theirs`] kills; nothing by itself.
#[test]
fn one_that_will_be_killed() {
    let Ok(port) = env::var(PORT) else { return };
    let budget = Budget { bytes: Bytes(1_000_000_000), time: Nanos::secs(60) };
    measure(&*host(), path("127.0.0.1", "127.0.0.1"), port.parse().unwrap(), 9, budget, Words::default());
}

#[test]
fn a_dead_client_frees_its_place_and_those_who_wait_are_told_theirs() {
    const WAITING: u8 = 5;
    let server = serve(&*host(), "127.0.0.1:0");
    let port = server.local_addrs()[0].port();
    let mut dies = Command::new(env::current_exe().unwrap())
        .args(["--exact", "hostile::one_that_will_be_killed"])
        .env(PORT, port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait(&server, |far| far.counters().opened == 1);
    let all = thread::scope(|scope| {
        let clients: Vec<_> = (0..WAITING)
            .map(|i| {
                let measured = scope.spawn(move || {
                    let budget = Budget { bytes: Bytes(100_000), time: Nanos::millis(500) };
                    measure(&*host(), path("127.0.0.1", "127.0.0.1"), port, 10 + i, budget, Words::default())
                });
                wait(&server, |far| far.counters().queued > i.into());
                measured
            })
            .collect();
        dies.kill().unwrap(); // SIGKILL
        dies.wait().unwrap();
        let dead = Instant::now();
        wait(&server, |far| far.counters().opened > 1);
        // it is missed after 5 s; who says nothing of use has 20 s
        assert!(dead.elapsed() < Duration::from_secs(15), "{:?}", dead.elapsed());
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for (before, (result, _, told)) in all.iter().enumerate() {
        assert!(result["refused"].is_null(), "{result:#}");
        let places: Vec<u64> = told.iter().filter(|p| p.phase == "queue").map(|p| p.of).collect();
        assert_eq!(places.first(), Some(&(before as u64 + 1)), "{told:?}");
        assert!(places.is_sorted_by(|a, b| a >= b), "it moves up: {places:?}");
    }
    let counters = server.with(FarEnd::counters);
    let waited = u64::from(WAITING);
    assert_eq!((counters.opened, counters.queued, counters.timed_out), (waited + 1, waited, 1), "{counters:?}");
}

/// A client that says what it likes: its socket, and the keys of its session.
fn opened(server: &Server, from: &str, nonce: u8, total: Budget) -> (UdpSocket, Forge) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.connect(server.local_addrs()[0]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.send(&Forge::hello(&common::key(), [nonce; 32], 0)).unwrap();
    let mut answer = [0; 2000];
    let length = socket.recv(&mut answer).unwrap();
    let (forge, open) = Forge::open(&common::key(), [nonce; 32], &answer[..length], 1, total).unwrap();
    socket.send(&open).unwrap();
    socket.recv(&mut answer).unwrap();
    (socket, forge)
}

#[test]
fn who_has_had_enough_is_told_so() {
    let server = serve(&*host(), "127.0.0.1:0");
    let (socket, forge) = opened(&server, "127.0.0.1", 1, Budget { bytes: Bytes(20_000), time: Nanos::secs(9) });
    for index in 0..40 {
        let mut probe = forge.probe(true, 0, 1, (0, index, 40), 0);
        probe.resize(1000, 0);
        socket.send(&probe).unwrap();
    }
    let mut answer = [0; 2000];
    loop {
        let length = socket.recv(&mut answer).expect("it is not told that the session is over");
        if forge::read(&answer[..length]).unwrap().kind == 6 {
            return;
        }
    }
}
