//! A far end that one client wants for itself: sessions without end, transfers of nothing that nobody closes, and a client
//! that speaks and does not listen.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{client, config, key, path, plain};
use pathcast_base::Nanos;
use pathcast_net::{HostSockets, Limits, Server, SocketMaker};
use pathcast_session::{ClientControl, ClientTransfer, ControlStatus, Quota, SessionError};
use socket2::{Domain, Socket, Type};

fn host() -> Arc<dyn SocketMaker> {
    Arc::new(HostSockets)
}

fn serve(limits: Limits) -> Server {
    let mut config = config(&["127.0.0.1:0"]);
    config.limits = limits;
    Server::start(host(), config).unwrap()
}

fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    // small, so that what is not read is soon too much
    socket.set_recv_buffer_size(4096).unwrap();
    socket.set_tcp_nodelay(true).unwrap();
    socket.bind(&SocketAddr::new(from.parse::<IpAddr>().unwrap(), 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.into()
}

/// A session that somebody opens from this address.
fn open(from: &str, to: SocketAddr, nonce: u8) -> Result<(TcpStream, ClientControl), SessionError> {
    let (mut stream, mut control) = (connect(from, to), ClientControl::new(&key(), [nonce; 32]));
    let mut buffer = [0; 4096];
    while !matches!(control.status(), ControlStatus::Open { .. }) {
        stream.write_all(&control.output()).unwrap();
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "closed");
        control.receive(&buffer[..n])?;
    }
    Ok((stream, control))
}

#[test]
fn one_address_does_not_take_all_sessions() {
    let server = serve(Limits::default());
    let at = server.local_addrs()[0];
    let held: Vec<_> = (0..64).filter_map(|nonce| open("127.0.0.1", at, nonce).ok()).collect();
    assert_eq!((held.len(), server.sessions()), (16, 16));
    assert!(open("127.0.0.2", at, 99).is_ok());
}

#[test]
fn transfers_of_nothing_that_nobody_closes_do_not_crowd_the_others_out() {
    let server = serve(Limits::default());
    let at = server.local_addrs()[0];
    let (_stream, control) = open("127.0.0.1", at, 1).unwrap();
    let (welcome, keys) = control.session().unwrap();
    let mut held = Vec::new();
    let mut most = 0;
    for number in 1..=600 {
        let mut stream = connect("127.0.0.1", at);
        stream.write_all(ClientTransfer::new(welcome, keys, number, 0, "").attach()).unwrap();
        held.push(stream);
        most = most.max(server.connections());
    }
    let until = Instant::now() + Duration::from_secs(60);
    while server.counters().transfers < 500 && Instant::now() < until {
        most = most.max(server.connections());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(server.counters().transfers >= 500, "{:?}", server.counters());
    assert!(most <= 321, "{most} threads");
    let lo = path("lo", "127.0.0.2", "127.0.0.1");
    let report = client(&host(), &server, "127.0.0.1").tcp_transfer(&lo, 1_000_000, &mut plain());
    assert_eq!(report.unwrap().bytes, 1_000_000);
}

#[test]
fn transfers_that_trickle_leave_places_for_others() {
    let server = serve(Limits::default());
    let at = server.local_addrs()[0];
    let mut held = Vec::new();
    for session in 1..=8 {
        let (stream, control) = open("127.0.0.1", at, session).unwrap();
        let (welcome, keys) = control.session().unwrap();
        for number in 1..=16 {
            let mut stream = connect("127.0.0.1", at);
            stream.write_all(ClientTransfer::new(welcome, keys, number, 1000, "").attach()).unwrap();
            stream.write_all(b"x").unwrap();
            held.push(stream);
        }
        held.push(stream);
    }
    let (_stream, control) = open("127.0.0.2", at, 9).unwrap();
    let (welcome, keys) = control.session().unwrap();
    let mut data = ClientTransfer::new(welcome, keys, 1, 1000, "");
    let mut stream = connect("127.0.0.2", at);
    stream.write_all(&[data.attach(), &[7; 1000]].concat()).unwrap();
    let mut buffer = [0; 4096];
    let n = stream.read(&mut buffer).unwrap();
    data.receive(&buffer[..n]).unwrap();
    // each is refused by a thread of its own, which on a busy machine comes to it later
    let until = Instant::now() + Duration::from_secs(60);
    while server.counters().refused_limit < 96 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(server.counters().refused_limit, 96, "of 128 transfers of one address 32 have a place");
}

#[test]
fn a_transfer_that_has_become_slow_does_not_stand_still() {
    const FAST: usize = 10_000_000;
    const SLOW: usize = 20;
    let server = serve(Limits { idle: Nanos::secs(2), ..Limits::default() });
    let at = server.local_addrs()[0];
    let (_stream, control) = open("127.0.0.1", at, 1).unwrap();
    let (welcome, keys) = control.session().unwrap();
    let mut data = ClientTransfer::new(welcome, keys, 1, (FAST + 10 * SLOW) as u64, "");
    let mut stream = connect("127.0.0.1", at);
    stream.write_all(data.attach()).unwrap();
    stream.write_all(&vec![7; FAST]).unwrap();
    for _ in 0..SLOW {
        std::thread::sleep(Duration::from_millis(250));
        stream.write_all(&[7; 10]).expect("it is still there");
    }
    let mut buffer = [0; 4096];
    let n = stream.read(&mut buffer).unwrap();
    data.receive(&buffer[..n]).unwrap();
    let counters = server.counters();
    assert_eq!((counters.transfers, counters.broken, counters.timed_out), (1, 0, 0));
}

#[test]
fn more_sessions_than_usual_leave_room_for_their_transfers() {
    const MANY: usize = 340;
    let sessions = Quota { in_all: MANY, per_key: MANY, per_source: MANY };
    let server = serve(Limits { sessions, ..Limits::default() });
    let at = server.local_addrs()[0];
    let held: Vec<_> = (0..MANY).map(|nonce| open("127.0.0.1", at, nonce as u8).unwrap()).collect();
    assert_eq!(server.sessions(), MANY);
    let (welcome, keys) = held[0].1.session().unwrap();
    let mut data = ClientTransfer::new(welcome, keys, 1, 1000, "");
    let mut stream = connect("127.0.0.1", at);
    stream.write_all(&[data.attach(), &[7; 1000]].concat()).unwrap();
    let mut buffer = [0; 4096];
    let n = stream.read(&mut buffer).unwrap();
    data.receive(&buffer[..n]).unwrap();
    assert_eq!(server.counters().transfers, 1);
}

#[test]
fn who_does_not_listen_is_not_listened_to() {
    let server = serve(Limits { session_idle: Nanos::secs(600), ..Limits::default() });
    let (mut stream, mut control) = open("127.0.0.1", server.local_addrs()[0], 1).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut said = 0;
    let error = loop {
        (0..1000).for_each(|_| control.ping());
        let pings = control.output();
        match stream.write_all(&pings) {
            Ok(()) => said += pings.len(),
            Err(error) => break error,
        }
        assert!(said < 8_000_000, "it has answers of {said} bytes in its memory");
    };
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
}
