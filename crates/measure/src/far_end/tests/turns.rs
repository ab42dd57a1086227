//! Whose turn it is to measure, and how long one who measures nothing keeps it.

use std::net::IpAddr;

use super::*;
use crate::forge::{self, Forge};

/// The last byte of an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Host(u8);

impl Address for Host {
    fn bytes(&self) -> Vec<u8> {
        vec![self.0]
    }
    fn source(&self) -> IpAddr {
        [192, 0, 2, self.0].into()
    }
}

/// Clients of one far end: the key, the host and the keys of each session.
struct Crowd {
    far: FarEnd<Host>,
    now: Nanos,
    clients: Vec<(Host, Forge)>,
    numbers: u64,
    wake: Nanos,
    /// When the last train ends.
    trains: Nanos,
}

impl Crowd {
    fn new(limits: MeasureLimits) -> Crowd {
        let keys = KeyRing::new(["one", "two"].map(|id| Key::new(id, vec![1; 32]).unwrap()));
        let far = FarEnd::new(keys, limits, ClockState::default(), Entropy { nonce: [3; 32], session: [4; 16] });
        Crowd { far, now: NOW, clients: Vec::new(), numbers: 0, wake: Nanos::MAX, trains: Nanos::ZERO }
    }

    /// What somebody is told.
    fn say(&mut self, from: Host, packet: &[u8]) -> Vec<(Host, Vec<u8>)> {
        let size = packet.len() as u16 + 28;
        let (at, batch) = (self.now, Batch::SINGLE);
        self.far.handle(self.now, FarEvent::Received { from, packet, size, dscp: 0, ecn: 0, at, batch });
        self.listen()
    }

    fn listen(&mut self) -> Vec<(Host, Vec<u8>)> {
        let mut told = Vec::new();
        while let Some(action) = self.far.next(self.now) {
            match action {
                FarAction::Reply { to, reply, .. } => told.push((to, reply.payload)),
                FarAction::WakeAt(at) => self.wake = at,
                FarAction::SendTrain { train, .. } => self.trains = self.now + train.duration(),
                _ => {}
            }
        }
        told
    }

    /// A client's number, and what it is told first.
    fn open(&mut self, key: &str, host: u8) -> (usize, Kind) {
        let (key, host) = (Key::new(key, vec![1; 32]).unwrap(), Host(host));
        let nonce = [self.clients.len() as u8; 32];
        let cookie = self.say(host, &Forge::hello(&key, nonce, 0)).remove(0).1;
        let total = Budget { bytes: Bytes(1_000_000_000), time: Nanos::secs(300) };
        let (forge, open) = Forge::open(&key, nonce, &cookie, 1, total).unwrap();
        let told = self.say(host, &open);
        let told: Vec<_> = told.into_iter().filter(|(_, said)| session_of(said) == forge.session()).collect();
        self.clients.push((host, forge));
        (self.clients.len() - 1, Datagram::parse(&told[0].1).unwrap().kind)
    }

    fn kind(&mut self, client: usize, kind: Kind, part: u8, body: &[u8]) -> Vec<(usize, Kind)> {
        self.numbers += 1;
        let (host, forge) = &self.clients[client];
        let (host, packet) = (*host, forge.say(true, kind as u8 - 1, 0, part, self.numbers, body));
        let told = self.say(host, &packet);
        self.name(&told)
    }

    /// To whom what was said.
    fn name(&self, told: &[(Host, Vec<u8>)]) -> Vec<(usize, Kind)> {
        let who = |said: &Vec<u8>| self.clients.iter().position(|(_, forge)| forge.session() == session_of(said));
        told.iter().map(|(_, said)| (who(said).unwrap(), Datagram::parse(said).unwrap().kind)).collect()
    }

    /// Time passes, and everybody shows that he is there.
    fn second(&mut self, also: impl Fn(&mut Crowd)) -> Vec<(usize, Kind)> {
        self.now += Nanos::secs(1);
        let mut told = Vec::new();
        if self.wake <= self.now {
            self.far.handle(self.now, FarEvent::Timer);
            let said = self.listen();
            told = self.name(&said);
        }
        also(self);
        for client in 0..self.clients.len() {
            self.kind(client, Kind::Poll, 0, &[]);
        }
        told
    }
}

fn session_of(said: &[u8]) -> u64 {
    Datagram::parse(said).unwrap().session
}

#[test]
fn who_has_many_sessions_has_no_more_turns_than_who_has_one() {
    let mut crowd = Crowd::new(MeasureLimits::default());
    let many: Vec<usize> = (0..8).map(|_| crowd.open("one", 1).0).collect();
    let (neighbour, stranger) = (crowd.open("one", 2).0, crowd.open("two", 1).0);
    let mut measures = many[0];
    let mut turns = Vec::new();
    for _ in 0..4 {
        let told = crowd.kind(measures, Kind::Bye, 0, &[]);
        measures = told.iter().find(|(_, kind)| *kind == Kind::Opened).unwrap().0;
        turns.push(measures);
    }
    assert_eq!(turns, [stranger, neighbour, many[1], many[2]]);
}

#[test]
fn a_turn_in_which_nothing_is_measured_ends_where_others_wait() {
    let limits = MeasureLimits::default();
    let mut crowd = Crowd::new(limits);
    let (idle, told) = crowd.open("one", 1);
    assert_eq!(told, Kind::Opened);
    for _ in 0..60 {
        assert_eq!(crowd.second(|_| ()), [], "nobody is kept from anything");
    }
    let (waits, told) = crowd.open("two", 2);
    // its turn is over at once: it has done nothing for a minute
    assert_eq!(told, Kind::Queued);
    assert_eq!(crowd.second(|_| ()), [(idle, Kind::Denied), (waits, Kind::Opened)]);
    let (next, _) = crowd.open("one", 3);
    let questions = |crowd: &mut Crowd| {
        crowd.kind(waits, Kind::Ask, 1, &encode_ask(&[1, 2, 3]));
        crowd.kind(waits, Kind::Time, 0, &7u32.to_be_bytes());
    };
    let ended = (1..).find(|_| !crowd.second(questions).is_empty()).unwrap();
    assert_eq!(ended, limits.pause.0 / 1_000_000_000, "questions are no measurement");
    assert_eq!(crowd.far.counters().denied, 2);
    assert_eq!(crowd.kind(next, Kind::Poll, 0, &[]), [(next, Kind::Opened)]);
}

#[test]
fn who_measures_keeps_its_turn_until_its_time() {
    let mut crowd = Crowd::new(MeasureLimits { time: Nanos::secs(90), ..MeasureLimits::default() });
    let (measures, _) = crowd.open("one", 1);
    crowd.open("two", 2);
    let probe = |crowd: &mut Crowd| {
        let second = (crowd.now - NOW).0 / 1_000_000_000;
        let (host, forge) = &crowd.clients[measures];
        if second.is_multiple_of(15) {
            let packet = forge.probe(true, 0, 1, (second as u32, 0, 2), 0);
            crowd.say(*host, &packet);
        }
    };
    let ended = (1..).find(|_| crowd.second(probe).contains(&(measures, Kind::Denied)));
    assert_eq!(ended, Some(90));
}

#[test]
fn a_train_that_takes_long_is_no_pause() {
    let mut crowd = Crowd::new(MeasureLimits { time: Nanos::secs(90), ..MeasureLimits::default() });
    let (measures, _) = crowd.open("one", 1);
    crowd.open("two", 2);
    let [begin, ..] = forge::bodies_of(3, Budget { bytes: Bytes(1 << 40), time: Nanos::secs(90) }, 2, NOW, 0);
    crowd.kind(measures, Kind::Begin, 1, &begin);
    let ended = (1..).find(|_| crowd.second(|_| ()).contains(&(measures, Kind::Denied))).unwrap();
    let (trains, pause) = (crowd.trains - NOW, crowd.now - crowd.trains);
    assert!(trains > Nanos::secs(5) && ended < 90, "{trains:?}");
    assert!(pause >= Nanos::secs(20) && pause < Nanos::secs(21), "{trains:?} {pause:?}");
}
