//! A far end that would have payload sent to somebody else: it may name any address.

mod common;

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{client, config, path, plain};
use pathcast_base::{Fault, Nanos};
use pathcast_measure::machine::{Action, Event, Machine};
use pathcast_net::udp::{DriveOptions, drive};
use pathcast_net::{HostSockets, Server, SocketMaker};

fn host() -> Arc<dyn SocketMaker> {
    Arc::new(HostSockets)
}

fn naming(addresses: &[&str]) -> Server {
    let mut config = config(&["127.0.0.1:0"]);
    config.announce = addresses.iter().map(|a| a.parse().unwrap()).collect();
    Server::start(host(), config).unwrap()
}

/// What somebody who takes every connection gets of the first one, within two seconds after which it ends [byte].
fn bystander(at: SocketAddr) -> thread::JoinHandle<usize> {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let (mut got, until) = (0, Instant::now() + Duration::from_secs(2));
        let mut buffer = vec![0; 1 << 16];
        while Instant::now() < until && got < 1 << 20 {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(_) => {}
            }
        }
        got
    })
}

#[test]
fn payload_goes_nowhere_before_the_key_is_proved_there() {
    let server = naming(&["127.0.0.1", "127.0.0.9"]);
    let port = server.local_addrs()[0].port();
    let client = client(&host(), &server, "127.0.0.1");
    let victim = bystander(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 9), port)));
    let steered = path("path2", "127.0.0.1", "127.0.0.9");
    let error = client.tcp_transfer(&steered, 50_000_000, &mut plain()).unwrap_err();
    assert_eq!(error.code(), "control-lost", "{error}");
    let got = victim.join().unwrap();
    assert!(got <= 200, "a host that does not hold the key got {got} bytes");
    assert_eq!(client.tcp_transfer(&path("path1", "127.0.0.1", "127.0.0.1"), 9, &mut plain()).unwrap().bytes, 9);
}

#[test]
fn an_address_is_proved_once() {
    let server = Server::start(host(), config(&["127.0.0.1:0", "127.0.0.2:0"])).unwrap();
    let client = client(&host(), &server, "127.0.0.1");
    for remote in ["127.0.0.1", "127.0.0.2", "127.0.0.2", "127.0.0.2"] {
        let lo = path("lo", "127.0.0.1", remote);
        assert_eq!(client.tcp_transfer(&lo, 1000, &mut plain()).unwrap().bytes, 1000);
    }
    let counters = server.counters();
    assert_eq!((counters.connections, counters.sessions, counters.transfers), (6, 1, 4), "{counters:?}");
}

/// Sends nothing.
struct Silent;

impl Machine for Silent {
    fn handle(&mut self, _: Nanos, _: Event<'_>) {}
    fn next(&mut self, _: Nanos) -> Option<Action> {
        Some(Action::Done(Vec::new()))
    }
}

#[test]
fn addresses_of_nobody_and_of_many_are_no_paths() {
    let nobody = ["224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0", "0.0.0.7"];
    let server = naming(&nobody);
    let client = client(&host(), &server, "127.0.0.1");
    let survey = client.survey().unwrap();
    for remote in nobody {
        let of = |other: std::net::IpAddr| other == remote.parse::<std::net::IpAddr>().unwrap();
        assert!(!survey.usable.iter().any(|path| of(path.remote)), "{remote}: {:?}", survey.usable);
        let lo = path("lo", "127.0.0.1", remote);
        let error = client.tcp_transfer(&lo, 1000, &mut plain()).unwrap_err();
        assert!(error.code() == "bad-argument" && error.to_string().contains(remote), "{error}");
        let error = drive(&*host(), &[lo], 5275, &mut Silent, DriveOptions::default()).unwrap_err();
        assert!(error.code() == "bad-argument" && error.to_string().contains(remote), "{error}");
    }
}
