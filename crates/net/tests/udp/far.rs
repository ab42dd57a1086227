//! The far end: many addresses, strangers, rubbish.

use std::net::UdpSocket;
use std::time::Duration;

use pathcast_base::{Fault, Nanos, Stream};
use pathcast_measure::machine::Train;
use pathcast_measure::{FarAction, FarEvent};
use pathcast_net::udp::{FarAddress, FarMachine, FarOptions, FarServer, SessionClock, Tally};

use super::common::{tried, until};
use super::machines::{Echo, SESSION, Script};
use super::{at, echoes, host, path, port, run, serve};

fn client(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(at("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

#[track_caller]
fn wait<F: FarMachine + 'static>(server: &FarServer<F>, done: impl Fn(&F) -> bool) {
    assert!(until(|| server.with(&done)), "waited in vain");
}

/// Waits until its tally says so.
fn tell(server: &FarServer<Echo>, so: impl Fn(&Tally) -> bool) {
    assert!(until(|| so(&server.tally())), "{:?}", server.tally());
}

#[test]
fn a_wildcard_answers_from_the_address_that_was_asked() {
    let server = serve(&*host(), &["0.0.0.0:0", "[::]:0"], Echo::default());
    let paths = [path("127.0.0.1", "127.0.0.1"), path("127.0.0.2", "127.0.0.77"), path("::1", "::1")];
    let trains = (0..3).map(|p| echoes(p, 5, Nanos::micros(100), 100)).collect();
    let mut script = Script::new(trains, 15);
    run(&*host(), &paths, port(&server), &mut script);
    for (p, path) in paths.iter().enumerate() {
        assert_eq!(script.received(p).len(), 5, "sockets are connected, so that answers from elsewhere are not seen");
        let seen = server.with(|echo| echo.seen.iter().filter(|s| s.0.local == path.remote).count());
        assert_eq!(seen, 5, "{path:?}");
    }
}

#[test]
fn its_trains_are_told_and_stopped() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let client = client(port(&server));
    client.send(b"train").unwrap();
    wait(&server, |echo| echo.sent.len() == 10);
    let mut buffer = [0; 100];
    for _ in 0..10 {
        assert_eq!(client.recv(&mut buffer).unwrap(), 5);
    }
    let sent = server.with(|echo| echo.sent.clone());
    for (i, &(session, path, seq, _)) in sent.iter().enumerate() {
        assert_eq!((session, path, seq), (SESSION, 1, 100 + i as u64));
    }
    assert!(sent[9].3 >= sent[0].3 + Nanos::millis(8), "{sent:?}");
    assert_eq!(server.with(|echo| echo.timers), 1);
    client.send(b"slow").unwrap();
    client.send(b"stop").unwrap();
    client.send(b"anonymous").unwrap();
    while client.recv(&mut buffer).unwrap() != 9 {}
    assert_eq!(&buffer[..4], b"who?");
    std::thread::sleep(Duration::from_millis(1200)); // all of them would have left
    let before = server.with(|echo| echo.sent.len());
    assert!(before < 20, "the rest was dropped");
    // what leaves is told in its order
    client.send(b"echo........").unwrap();
    wait(&server, |echo| echo.sent.len() > before);
    assert!(server.with(|echo| echo.sent.iter().all(|s| s.0 == SESSION) && echo.unsent.is_empty()));
}

#[test]
fn rubbish_is_answered_with_nothing_and_others_go_on() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let stranger = client(port(&server));
    let mut stream = Stream::new(7, "rubbish");
    let mut payload = vec![0; 1500];
    for i in 0..10_000u32 {
        let length = (stream.bits() % 1473) as usize;
        payload.iter_mut().for_each(|b| *b = stream.bits() as u8);
        payload[0] |= 0x80; // none of the words that are answered
        stranger.send(&payload[..length]).unwrap();
        if i.is_multiple_of(64) {
            wait(&server, |echo| echo.seen.len() > i as usize); // a buffer without privilege holds some hundred
        }
    }
    let mut script = Script::new(vec![echoes(0, 50, Nanos::micros(200), 300)], 50);
    run(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut script);
    assert_eq!(script.received(0).len(), 50);
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut payload).is_err(), "answered");
    tell(&server, |tally| tally.received == 10_050 && tally.sent == 50);
}

#[test]
fn clients_that_are_gone_do_not_end_it() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    for _ in 0..20 {
        let gone = client(port(&server));
        gone.send(b"train").unwrap();
    }
    let asks = client(port(&server));
    let mut buffer = [0; 2000];
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(2));
        asks.send(b"echo........").unwrap();
        assert_eq!(asks.recv(&mut buffer).unwrap(), 20);
    }
    wait(&server, |echo| echo.sent.len() + echo.unsent.len() == 220);
    tell(&server, |tally| tally.errors > 0 && tally.last_error == Some(libc::ECONNREFUSED));
}

#[test]
fn it_is_told_how_it_is_with_its_clock() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    wait(&server, |echo| echo.clock.is_some_and(|clock| clock.host.is_some()));
}

#[test]
fn the_port_is_one_for_all_and_free_after_it() {
    let server = serve(&*host(), &["127.0.0.1:0", "[::1]:0"], Echo::default());
    let addresses = server.local_addrs().to_vec();
    assert_eq!(addresses[0].port(), addresses[1].port());
    let again = FarOptions { listen: addresses.clone(), clock: SessionClock::start(), urgent: false };
    let refused = FarServer::start(&*host(), again.clone(), Echo::default()).map(drop).unwrap_err();
    assert_eq!(refused.code(), "cannot-listen");
    server.stop();
    // a child that another test has just begotten may hold the port for the moment until its `exec`
    let free = || FarServer::start(&*host(), again.clone(), Echo::default()).map_err(|e| e.to_string());
    tried(free).stop();
    let nowhere = FarOptions { listen: Vec::new(), clock: SessionClock::start(), urgent: false };
    assert_eq!(FarServer::start(&*host(), nowhere, Echo::default()).map(drop).unwrap_err().code(), "bad-argument");
}

/// Panics over a packet that asks for it.
#[derive(Default)]
struct Fragile {
    echo: Echo,
    recovered: usize,
}

impl FarMachine for Fragile {
    fn handle(&mut self, now: Nanos, event: FarEvent<'_, FarAddress>) {
        assert!(!matches!(event, FarEvent::Received { packet: b"panic", .. }), "as a test wants it");
        self.echo.handle(now, event);
    }
    fn next(&mut self, now: Nanos) -> Option<FarAction<FarAddress>> {
        self.echo.next(now)
    }
    fn sessions(&self) -> usize {
        0
    }
    fn recover(&mut self, _now: Nanos) {
        self.recovered += 1;
    }
}

#[test]
fn a_panic_ends_what_it_is_about_and_nothing_else() {
    let server = super::serve(&*host(), &["127.0.0.1:0"], Fragile::default());
    let asks = client(server.local_addrs()[0].port());
    for _ in 0..3 {
        asks.send(b"panic").unwrap();
        asks.send(b"echo........").unwrap();
        assert_eq!(asks.recv(&mut [0; 100]).expect("no answer"), 20);
    }
    assert_eq!((server.faults(), server.with(|far| far.recovered)), (3, 3));
    assert!(server.with(|far| far.echo.timers) > 0, "it is asked what it wants after that");
}

/// More packets than leave in the time in which a question is answered.
const MANY: usize = 400_000;

/// Sends without a pause to whom it hears first, and answers the others.
#[derive(Default)]
struct Busy {
    echo: Echo,
    begun: Option<FarAction<FarAddress>>,
    /// When the last of them left that it was told of, and when somebody else asked.
    last: Nanos,
    asked: Nanos,
}

impl FarMachine for Busy {
    fn handle(&mut self, now: Nanos, event: FarEvent<'_, FarAddress>) {
        match event {
            FarEvent::Received { from, packet: b"busy", .. } => {
                let train = Train::even(1, 0, now, MANY, Nanos::micros(1), 60);
                self.begun = Some(FarAction::SendTrain { session: SESSION, to: from, train });
            }
            FarEvent::Sent { session: SESSION, path: 1, at, .. } => self.last = self.last.max(at),
            event => {
                if matches!(event, FarEvent::Received { .. }) {
                    self.asked = now;
                }
                self.echo.handle(now, event);
            }
        }
    }
    fn next(&mut self, now: Nanos) -> Option<FarAction<FarAddress>> {
        self.begun.take().or_else(|| self.echo.next(now))
    }
    fn sessions(&self) -> usize {
        0
    }
}

#[test]
fn who_is_sent_to_without_a_pause_does_not_keep_others_waiting() {
    let server = super::serve(&*host(), &["127.0.0.1:0"], Busy::default());
    let port = server.local_addrs()[0].port();
    let asks = client(port);
    // who asks may be kept waiting by this machine until the last packet has left
    tried(|| {
        let greedy = client(port);
        greedy.send(b"busy").unwrap();
        greedy.recv(&mut [0; 100]).unwrap();
        asks.send(b"echo........").unwrap();
        asks.recv(&mut [0; 100]).expect("no answer");
        // it is told of what leaves some time later
        let told = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            server.with(|busy| busy.last > busy.asked)
        });
        if told { Ok(()) } else { Err("nobody was answered before the last packet had left".into()) }
    });
}
