//! The far end of measurements: clients that hold the key and say anything, and strangers.

use std::collections::VecDeque;
use std::net::IpAddr;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::Budget;
use pathcast_measure::machine::Batch;
use pathcast_measure::forge::{self, Forge};
use pathcast_measure::{Address, ClockState, FarAction, FarEnd, FarEvent, MeasureLimits};
use pathcast_session::{Entropy, Key, KeyRing, Quota};

use crate::script::Script;

/// A host and one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct At(u8, u8);

impl Address for At {
    fn bytes(&self) -> Vec<u8> {
        vec![self.0, self.1]
    }
    fn source(&self) -> IpAddr {
        [192, 0, 2, self.0].into()
    }
}

/// The kinds of a session's last word: the far end's no, and its goodbye.
const LAST: [u8; 2] = [6, 20];

const LIMITS: MeasureLimits = MeasureLimits {
    sessions: Quota { in_all: 4, per_key: 3, per_source: 2 },
    measuring: 2,
    paths: 4,
    rate: Rate(1_000_000_000),
    time: Nanos::secs(60),
    bytes: Bytes(3_000_000),
    idle: Nanos::secs(5),
    pause: Nanos::secs(2),
};
/// Packets that have not left yet are kept up to here.
const KEPT: usize = 20_000;
/// Actions that one event may lead to.
const ACTIONS: usize = 50_000;

struct Client {
    key: Key,
    nonce: [u8; 32],
    forge: Option<Forge>,
    next: u64,
}

/// A probe of the far end.
struct Probe {
    session: u64,
    path: usize,
    seq: u64,
    due: Nanos,
    /// Part, train, packets of the train.
    place: (u8, u32, u16),
}

struct World {
    far: FarEnd<At>,
    now: Nanos,
    wake: Nanos,
    clients: Vec<Client>,
    said: VecDeque<(At, Vec<u8>)>,
    replies: Vec<(At, Vec<u8>)>,
    probes: VecDeque<Probe>,
    left: VecDeque<Probe>,
}

impl World {
    fn tell(&mut self, event: FarEvent<'_, At>) {
        let asked = if let FarEvent::Received { from, packet, .. } = event { Some((from, packet.len())) } else { None };
        self.far.handle(self.now, event);
        self.replies.clear();
        let (mut stateless, mut stopped) = (Vec::new(), Vec::new());
        for turn in 0.. {
            let Some(action) = self.far.next(self.now) else { break };
            assert!(turn < ACTIONS, "it does not come to rest");
            if let FarAction::Reply { reply, .. } = &action {
                let said = forge::read(&reply.payload).expect("its own words");
                assert!(forge::is_sound(&said), "{said:?}");
            }
            match action {
                FarAction::Reply { session: 0, to, reply } => {
                    stateless.push((to, reply.size, reply.payload.clone()));
                    self.replies.push((to, reply.payload));
                }
                FarAction::Reply { to, reply, .. } => self.replies.push((to, reply.payload)),
                FarAction::SendTrain { session, train, .. } => {
                    assert!(
                        train.count() * usize::from(train.size) <= LIMITS.bytes.0 as usize * 5 / 4,
                        "{}",
                        train.count()
                    );
                    let mut due = train.at.max(self.now);
                    for i in 0..train.count() {
                        let head = forge::read(train.head(i)).expect("its own probe");
                        let place = (head.part, (head.number >> 32) as u32, head.number as u16);
                        if self.probes.len() < KEPT {
                            self.probes.push_back(Probe {
                                session,
                                path: train.path,
                                seq: train.seq + i as u64,
                                due,
                                place,
                            });
                        }
                        due += train.gaps.get(i).copied().unwrap_or_default();
                    }
                }
                FarAction::Stop { session } => {
                    self.probes.retain(|probe| probe.session != session);
                    stopped.push(session);
                }
                FarAction::WakeAt(at) => self.wake = at,
            }
        }
        assert!(self.far.sessions() <= LIMITS.sessions.in_all);
        // the last word to a session that is over, once; else one answer, to whoever asked, smaller than the question
        stateless.retain(|(_, _, payload)| {
            let said = forge::read(payload).expect("its own words");
            let of = stopped.iter().position(|&session| LAST.contains(&said.kind) && session == said.session);
            of.map(|index| stopped.swap_remove(index)).is_none()
        });
        assert!(stateless.len() <= 1, "{} answers", stateless.len());
        for (to, size, payload) in stateless {
            let (from, length) = asked.expect("an answer to nobody");
            assert!(from == to && payload.len() < length, "{} for {length}", payload.len());
            assert!(usize::from(size) <= length + 28);
        }
    }

    fn receive(&mut self, from: At, packet: Vec<u8>) {
        let size = (packet.len() + 28).min(65_535) as u16;
        let (at, batch) = (self.now, Batch::SINGLE);
        self.tell(FarEvent::Received { from, packet: &packet, size, dscp: 0, ecn: 0, at, batch });
        if self.said.len() == 64 {
            self.said.pop_front();
        }
        self.said.push_back((from, packet));
    }

    /// Lets time pass, with the timers that fall due in it.
    fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        for _ in 0..5000 {
            if self.wake > end {
                break;
            }
            let (before, wake) = (self.now, self.wake);
            self.now = self.now.max(wake);
            self.wake = Nanos::MAX;
            self.tell(FarEvent::Timer);
            assert!(
                self.now > before || self.wake > self.now || wake < before,
                "it is woken for nothing, again and again"
            );
        }
        self.now = end;
    }

    /// Hello and Open from the client's own address.
    fn open(&mut self, which: usize, from: At, path: u8, paths: u8, total: Budget) {
        let client = &self.clients[which];
        let hello = Forge::hello(&client.key, client.nonce, path);
        let (key, nonce) = (client.key.clone(), client.nonce);
        self.receive(from, hello);
        let Some((_, answer)) = self.replies.first().cloned() else { return };
        let Some((forge, open)) = Forge::open(&key, nonce, &answer, paths, total) else { return };
        self.clients[which].forge = Some(forge);
        self.receive(from, open);
    }

    fn say(&mut self, which: usize, from: At, kind: u8, path: u8, part: u8, number: Option<u64>, body: &[u8]) {
        let client = &mut self.clients[which];
        let Some(forge) = &client.forge else { return };
        client.next += 1;
        let packet = forge.say(true, kind, path, part, number.unwrap_or(client.next), body);
        self.receive(from, packet);
    }

    /// The next packets leave, at their times.
    fn leave(&mut self, count: usize, unsent: bool) {
        for _ in 0..count {
            let Some(probe) = self.probes.pop_front() else { return };
            if probe.due > self.now {
                self.pass(probe.due - self.now);
            }
            let Probe { session, path, seq, due, .. } = probe;
            match unsent {
                true => self.tell(FarEvent::Unsent { session, path, seq }),
                false => self.tell(FarEvent::Sent { session, path, seq, at: self.now.max(due) }),
            }
            if self.left.len() < KEPT {
                self.left.push_back(probe);
            }
        }
    }

    /// The client reports the oldest train that has left: one byte of the script for each packet, the last one for the rest.
    fn report(&mut self, which: usize, from: At, script: &mut Script<'_>) {
        let Some(first) = self.left.front() else { return };
        let (place, path, session) = (first.place, first.path, first.session);
        let Some(base) = script.time() else { return };
        let pattern = script.bytes().unwrap_or_default();
        let mut arrivals = Vec::new();
        let mut last = self.now + base;
        while self.left.front().is_some_and(|p| (p.place, p.path, p.session) == (place, path, session)) {
            let probe = self.left.pop_front().expect("it was just there");
            let how = pattern.get(arrivals.len()).or(pattern.last()).copied().unwrap_or(1);
            last = last.max(probe.due + base) + Nanos(u64::from(how) << (how % 16));
            let of = u32::from(how % 3) + 1;
            arrivals.push((how != 0).then_some((last, arrivals.len() as u32 % of, of)));
        }
        arrivals.resize(arrivals.len().max(place.2.into()), None);
        if script.flag().unwrap_or(false) {
            self.pass(base);
        }
        for body in forge::reports(place.1, &arrivals) {
            self.say(which, from, 15, path as u8, place.0, None, &body);
        }
    }
}

pub fn run(data: &[u8]) {
    let key = |id: &str, byte| Key::new(id, vec![byte; 32]).expect("a good key");
    let keys = [key("one", 1), key("one", 1), key("two", 2), key("one", 9)];
    let client = |(i, key): (usize, Key)| Client { key, nonce: [i as u8; 32], forge: None, next: 0 };
    let mut world = World {
        far: FarEnd::new(
            KeyRing::new([keys[0].clone(), keys[2].clone()]),
            LIMITS,
            ClockState::default(),
            Entropy { nonce: [5; 32], session: [6; 16] },
        ),
        now: Nanos::secs(1000),
        wake: Nanos::MAX,
        clients: keys.into_iter().enumerate().map(client).collect(),
        said: VecDeque::new(),
        replies: Vec::new(),
        probes: VecDeque::new(),
        left: VecDeque::new(),
    };
    let _ = play(&mut world, Script(data));
    // whoever says nothing more is gone within seconds
    world.pass(Nanos::secs(6));
    assert_eq!(world.far.sessions(), 0);
    assert!(
        world.far.counters().timed_out + world.far.counters().ended + world.far.counters().denied > 0
            || world.far.counters().opened == 0
    );
}

fn play(world: &mut World, mut script: Script<'_>) -> Option<()> {
    for _ in 0..400 {
        let op = script.byte()?;
        let which = usize::from(op >> 6);
        // its own address, or from elsewhere
        let from = if op & 32 == 0 { At(which as u8, 0) } else { At(script.byte()? % 4, script.byte()? % 4) };
        match op % 14 {
            0 => world.receive(from, script.bytes()?.to_vec()),
            1 => {
                let (path, paths) = (script.byte()? % 5, script.byte()? % 6);
                let total = Budget { bytes: Bytes(script.u32()?.into()), time: script.time()? };
                world.open(which, from, path, paths, total);
            }
            2 => {
                let (kind, path, part) = (script.byte()? % forge::KINDS, script.byte()? % 6, script.byte()?);
                let number = if script.flag()? { Some(script.u64()?) } else { None };
                let body = script.bytes()?;
                world.say(which, from, kind, path, part, number, body);
            }
            3 => {
                let (path, part, train) = (script.byte()? % 3, script.byte()?, script.number()? as u32);
                let (index, count, rest) = (script.number()? as u16, script.number()? as u16, script.number()? as u32);
                if let Some(forge) = &world.clients[which].forge {
                    let mut packet = forge.probe(true, path, part, (train, index, count), rest);
                    packet.resize(packet.len() + usize::from(script.byte()?) * 5, 0);
                    world.receive(from, packet);
                }
            }
            4 | 5 => {
                let back = usize::from(script.byte()?) % world.said.len().max(1);
                let Some((whose, mut packet)) = world.said.iter().rev().nth(back).cloned() else { continue };
                if op % 14 == 4 {
                    let bit = usize::from(script.u16()?) % (packet.len() * 8).max(1);
                    if let Some(byte) = packet.get_mut(bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                }
                world.receive(if op & 32 == 0 { whose } else { from }, packet);
            }
            6 => world.pass(script.time()?),
            7 | 8 => world.leave(usize::from(script.byte()?), op % 14 == 8),
            9 | 10 => world.report(which, from, &mut script),
            11 => {
                let (session, path, seq) = (script.flag()?, script.byte()?, script.number()?);
                let session = world.clients[which].forge.as_ref().filter(|_| session).map_or(7, Forge::session);
                let at = world.now;
                world.tell(FarEvent::Sent { session, path: path.into(), seq, at });
            }
            12 => {
                let (method, path, part) = (script.byte()?, script.byte()? % 3, script.byte()?);
                let budget = Budget { bytes: Bytes(script.u32()?.into()), time: script.time()? };
                let [begin, ..] = forge::bodies_of(method, budget, 1, script.time()?, 0);
                world.say(which, from, 13, path, part, None, &begin);
            }
            _ => {
                let path = script.byte()? % 5;
                world.say(which, from, 7, path, 0, None, &forge::path_hello());
                let cookie = world.replies.last().and_then(|(_, packet)| forge::read(packet));
                if let Some(cookie) = cookie {
                    world.say(which, from, 9, path, 0, None, &cookie.body);
                }
            }
        }
    }
    None
}
