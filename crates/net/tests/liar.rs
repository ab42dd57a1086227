//! Far ends that hold the key: one says that it has all of a transfer as soon as it hears of one, another greets and is gone.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{key, path, plain};
use pathcast_base::{Fault, Nanos};
use pathcast_net::{Client, HostSockets, Limits};
use pathcast_session::{Announcement, Entropy, KeyRing, Service};

/// Serves for a minute, and reads no payload.
fn liar() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let announcement = Announcement { addresses: vec![at.ip()], mptcp: false };
        let mut service = Service::new(KeyRing::new([key()]), Limits::default(), announcement);
        let mut open = Vec::new();
        let mut buffer = [0; 4096];
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if let Ok((stream, from)) = listener.accept() {
                stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
                let n = open.len() as u8;
                let entropy = Entropy { nonce: [n; 32], session: [n; 16] };
                open.push((stream, service.accept(Nanos::ZERO, from.ip(), entropy).0));
            }
            for (stream, connection) in open.iter_mut().filter(|(_, connection)| !connection.closing()) {
                let Ok(heard) = stream.read(&mut buffer) else { continue };
                connection.receive(Nanos::ZERO, &buffer[..heard], &mut service);
                let awaited = connection.awaited();
                if connection.receiving() && connection.absorb(Nanos(1), awaited) {
                    connection.settle(Nanos(1), &mut service);
                }
                let _ = stream.write_all(&connection.output());
            }
        }
    });
    at
}

#[test]
fn a_receipt_for_what_was_not_sent_is_no_throughput() {
    let at = liar();
    let client = Client::connect(Arc::new(HostSockets), at, key()).unwrap();
    let error = client.tcp_transfer(&path("lo", "127.0.0.1", "127.0.0.1"), 200_000_000, &mut plain()).unwrap_err();
    assert!(error.to_string().contains("counted 200000000 bytes of"), "{error}");
    assert_eq!(error.code(), "protocol");
}

/// Of a network that dies between the two: what it ran into was forgotten, and there was "no address".
#[test]
fn a_far_end_that_greets_and_is_gone_was_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        let announcement = Announcement { addresses: vec![at.ip()], mptcp: false };
        let mut service = Service::new(KeyRing::new([key()]), Limits::default(), announcement);
        let mut buffer = [0; 4096];
        for (stream, n) in listener.incoming().zip(0..) {
            let mut stream = stream.unwrap();
            let entropy = Entropy { nonce: [n; 32], session: [n; 16] };
            let mut connection = service.accept(Nanos::ZERO, at.ip(), entropy).0;
            let heard = stream.read(&mut buffer).unwrap();
            connection.receive(Nanos::ZERO, &buffer[..heard], &mut service);
            stream.write_all(&connection.output()).unwrap();
            let _ = stream.read(&mut buffer);
        }
    });
    let error = Client::connect(Arc::new(HostSockets), at, key()).err().expect("it is gone");
    assert_eq!(error.code(), "control-lost", "{error}");
    assert!(error.to_string().contains(&at.to_string()), "{error}");
}
