//! The measurement itself on real sockets: that both ends find each other and come to an end, over every kind of path. How
//! good its numbers are is the business of the emulator's evidence.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::Budget;
use pathcast_measure::{Client, Direction, FarEnd, MeasureLimits, Request};
use pathcast_net::udp::{DriveOptions, Driven, FarAddress, FarOptions, FarServer, SessionClock, drive};
use pathcast_net::{PathAddr, SocketMaker};
use pathcast_session::{Entropy, Key, KeyRing};
use serde_json::Value;

use super::common::netns::{Net, sweep};
use super::common::{tried, until};
use super::{common, host, path};

type Server = FarServer<FarEnd<FarAddress>>;

fn entropy(byte: u8) -> Entropy {
    Entropy { nonce: [byte; 32], session: [byte; 16] }
}

fn serve(maker: &dyn SocketMaker, listen: &[&str]) -> Server {
    let clock = SessionClock::start();
    let far = FarEnd::new(KeyRing::new([common::key()]), MeasureLimits::default(), clock.state(), entropy(2));
    let listen = listen.iter().map(|a| a.parse().unwrap()).collect();
    FarServer::start(maker, FarOptions { listen, clock, urgent: false }, far).unwrap()
}

/// Measures for at most half a minute; with the wrong key it would wait for longer.
fn measure(maker: &dyn SocketMaker, paths: &[PathAddr], port: u16, key: Key, seed: u8) -> (Value, Driven) {
    limited(maker, paths, port, key, seed, Duration::from_secs(30))
}

fn limited(
    maker: &dyn SocketMaker,
    paths: &[PathAddr],
    port: u16,
    key: Key,
    seed: u8,
    limit: Duration,
) -> (Value, Driven) {
    let clock = SessionClock::start();
    let budget = Budget { bytes: Bytes(200_000), time: Nanos::secs(1) };
    let request = Request { paths: paths.len(), budget, clock: clock.state(), dscp: 10, ..Request::new(key) };
    let mut client = Client::new(request, entropy(seed));
    let (cancel, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let driven = std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + limit;
            while Instant::now() < until && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.store(true, Ordering::Relaxed);
        });
        let options = DriveOptions { clock, urgent: false, cancel: Some(&cancel), ..DriveOptions::default() };
        let driven = drive(maker, paths, port, &mut client, options);
        ended.store(true, Ordering::Relaxed);
        driven.unwrap()
    });
    (serde_json::from_slice(&driven.result).unwrap(), driven)
}

fn check(result: &Value, paths: usize) {
    assert!(result["refused"].is_null(), "{result:#}");
    assert_eq!(result["paths"].as_array().unwrap().len(), paths, "{result:#}");
    for path in result["paths"].as_array().unwrap() {
        for direction in ["out", "in"] {
            let delay = &path["directions"][direction]["delay_s"];
            // one host: its two clocks are one, and delays are absolute
            let minimum = delay["minimum"]["value"].as_f64().unwrap_or_else(|| panic!("{result:#}"));
            assert!(minimum > 0.0 && minimum < 0.1, "{direction} {result:#}");
        }
    }
}

#[test]
fn both_directions_on_loopback_and_many_clients() {
    tried(|| {
        let server = serve(&*host(), &["127.0.0.1:0", "[::1]:0"]);
        let port = server.local_addrs()[0].port();
        std::thread::scope(|scope| {
            for (seed, address) in [(1, "127.0.0.1"), (3, "::1")] {
                scope.spawn(move || {
                    let (result, driven) = measure(&*host(), &[path(address, address)], port, common::key(), seed);
                    assert_eq!(driven.tally.unsent, 0, "{:?}", driven.tally);
                    check(&result, 1);
                });
            }
        });
        assert!(until(|| server.with(FarEnd::sessions) == 0), "the goodbye is on its way");
        let counters = server.with(FarEnd::counters);
        assert_eq!((counters.opened, counters.ended, counters.malformed), (2, 2, 0), "{counters:?}");
        // a goodbye that is not answered in 150 ms is said again, of a session that has ended then
        if counters.bad_tag == 0 { Ok(()) } else { Err(format!("{counters:?}")) }
    });
}

#[test]
fn without_the_key_there_is_no_answer() {
    let server = serve(&*host(), &["127.0.0.1:0"]);
    let key = Key::new("test", [8; 32]).unwrap();
    let (port, paths) = (server.local_addrs()[0].port(), [path("127.0.0.1", "127.0.0.1")]);
    let (result, driven) = limited(&*host(), &paths, port, key, 5, Duration::from_millis(500));
    assert!(driven.tally.sent > 0 && driven.tally.received == 0, "{:?}", driven.tally);
    assert!(result["paths"][0]["directions"]["out"]["delay_s"]["minimum"]["value"].is_null(), "{result:#}");
    assert!(until(|| server.with(|far| far.counters().bad_tag) > 0));
    assert_eq!(server.tally().sent, 0);
}

#[test]
fn two_paths_between_namespaces() {
    sweep();
    let Some(net) = Net::new("two_paths_between_namespaces") else { return };
    net.shape("20mbit", "50mbit");
    let server: Arc<dyn SocketMaker> = net.server();
    let _server = serve(&*server, &["0.0.0.0:5275"]);
    let paths = [path("10.7.1.1", "10.7.3.1"), path("10.7.2.1", "10.7.4.1")];
    let (result, driven) = measure(&*net.client(), &paths, 5275, common::key(), 7);
    check(&result, 2);
    assert_eq!(driven.tally.unsent, 0, "{:?}", driven.tally);
}

/// The direction towards the far end, with what there is to be known.
fn out(maker: &dyn SocketMaker, path: PathAddr, port: u16, seed: u8) -> Value {
    let clock = SessionClock::start();
    let budget = Budget { bytes: Bytes(3_000_000), time: Nanos::secs(3) };
    let directions = vec![Direction::Out];
    let request = Request { directions, budget, clock: clock.state(), ..Request::new(common::key()) };
    let mut client = Client::new(request, entropy(seed));
    let options = DriveOptions { clock, urgent: false, ..DriveOptions::default() };
    let driven = drive(maker, &[path], port, &mut client, options).unwrap();
    let result: Value = serde_json::from_slice(&driven.result).unwrap();
    result["paths"][0]["directions"]["out"].clone()
}

/// Loopback is as fast as whoever sends.
#[test]
fn a_line_faster_than_its_host_has_no_capacity() {
    let server = serve(&*host(), &["127.0.0.1:0"]);
    let port = server.local_addrs()[0].port();
    let mut seed = 20;
    tried(|| {
        seed += 1;
        let found = out(&*host(), path("127.0.0.1", "127.0.0.1"), port, seed);
        let [capacity, available] = ["capacity_bps", "available_bps"].map(|of| &found[of]);
        let none = |of: &Value| of["value"].is_null() && of["high"].is_null() && of["why"] == "host-too-slow";
        let carried = capacity["low"].as_f64().is_some_and(|low| low > 1e6);
        if none(capacity) && none(available) && carried { Ok(()) } else { Err(format!("{capacity} {available}")) }
    });
}

/// Half of what leaves the client's own queue, the narrowest of the path, is somebody else's.
#[test]
fn a_queue_of_the_senders_own_is_one_of_the_paths() {
    sweep();
    let Some(net) = Net::new("a_queue_of_the_senders_own_is_one_of_the_paths") else { return };
    net.shape_client("20mbit");
    let server: Arc<dyn SocketMaker> = net.server();
    let _server = serve(&*server, &["0.0.0.0:5275"]);
    let mut socket = None;
    net.client().run(&mut || socket = UdpSocket::bind("10.7.1.1:0").ok()).unwrap();
    let (socket, over) = (socket.unwrap(), AtomicBool::new(false));
    // the bucket counts Ethernet headers
    let (share, apart) = (1400.0 / 1414.0, Duration::from_nanos(1414 * 8 * 100));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut due = Instant::now();
            while !over.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[0; 1372], "10.7.3.1:9");
                due += apart;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        let mut seed = 40;
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tried(|| {
                seed += 1;
                let found = out(&*net.client(), path("10.7.1.1", "10.7.3.1"), 5275, seed);
                let [capacity, available] = ["capacity_bps", "available_bps"].map(|of| &found[of]);
                println!("{capacity} {available}");
                let near = |of: &Value, name: &str, rate: f64| Some((of[name].as_f64()? / (rate * share) - 1.0).abs());
                let c = near(capacity, "value", 20e6).is_some_and(|off| off < 0.05);
                let a = near(available, "value", 10e6).is_some_and(|off| off < 0.25);
                if c && a { Ok(()) } else { Err(format!("{capacity} {available}")) }
            });
        }));
        over.store(true, Ordering::Relaxed);
        right.unwrap();
    });
}
