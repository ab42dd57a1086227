//! The client of a measurement, and a far end that holds the key and answers as it likes.

use std::collections::VecDeque;

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::{Budget, Effort};
use pathcast_measure::forge::{self, Forge, ParsedDatagram};
use pathcast_measure::machine::{Action, Batch, Event, Machine};
use pathcast_measure::{Client, Direction, MethodName, Request};
use pathcast_session::{Entropy, Key};

use crate::script::Script;

/// The far end's clock is ahead by this.
const AHEAD: Nanos = Nanos::secs(100);
const KEPT: usize = 20_000;
const ACTIONS: usize = 50_000;

struct Probe {
    path: usize,
    seq: u64,
    due: Nanos,
    /// Part, train, packets of the train; none: a control message.
    place: Option<(u8, u32, u16)>,
}

struct World {
    client: Client,
    key: Key,
    now: Nanos,
    wake: Nanos,
    forge: Option<Forge>,
    next: u64,
    /// What the client has said and nobody has answered.
    asked: VecDeque<(usize, Vec<u8>, ParsedDatagram)>,
    packets: VecDeque<Probe>,
    left: VecDeque<Probe>,
    answers: VecDeque<(usize, Vec<u8>)>,
    result: Option<Vec<u8>>,
    /// The far end has told a result.
    estimated: bool,
}

impl World {
    fn tell(&mut self, event: Event<'_>) {
        if self.result.is_some() {
            return;
        }
        self.client.handle(self.now, event);
        for turn in 0.. {
            let Some(action) = self.client.next(self.now) else { return };
            assert!(turn < ACTIONS, "it does not come to rest");
            match action {
                Action::SendTrain(train) => {
                    let mut due = train.at.max(self.now);
                    for i in 0..train.count() {
                        let head = forge::read(train.head(i)).expect("its own probe");
                        let place = Some((head.part, (head.number >> 32) as u32, head.number as u16));
                        if self.packets.len() < KEPT {
                            self.packets.push_back(Probe { path: train.path, seq: train.seq + i as u64, due, place });
                        }
                        due += train.gaps.get(i).copied().unwrap_or_default();
                    }
                }
                Action::Reply(reply) => {
                    let said = forge::read(&reply.payload);
                    assert!(said.is_some() || forge::is_of_before(&reply.payload), "its own words");
                    if let Some(said) = said.filter(|_| self.asked.len() < 200) {
                        self.asked.push_back((reply.path, reply.payload, said));
                    }
                    self.packets.push_back(Probe { path: reply.path, seq: reply.seq, due: self.now, place: None });
                }
                Action::WakeAt(at) => self.wake = at,
                Action::Progress(_) => {}
                Action::Done(result) => {
                    self.result = Some(result);
                    return;
                }
            }
        }
    }

    fn receive(&mut self, path: usize, packet: Vec<u8>) {
        let size = (packet.len() + 28).min(65_535) as u16;
        let at = self.now;
        self.tell(Event::Received { path, packet: &packet, size, dscp: 0, ecn: 0, at, batch: Batch::SINGLE });
        if self.answers.len() == 64 {
            self.answers.pop_front();
        }
        self.answers.push_back((path, packet));
    }

    fn pass(&mut self, time: Nanos) {
        let end = self.now + time;
        for _ in 0..5000 {
            if self.wake > end || self.result.is_some() {
                break;
            }
            let (before, wake) = (self.now, self.wake);
            self.now = self.now.max(wake);
            self.wake = Nanos::MAX;
            self.tell(Event::Timer);
            assert!(
                self.now > before || self.wake > self.now || wake < before,
                "it is woken for nothing, again and again"
            );
        }
        self.now = end;
    }

    fn say(&mut self, kind: u8, path: usize, part: u8, number: Option<u64>, body: &[u8]) {
        let Some(forge) = &self.forge else { return };
        self.next += 1;
        self.estimated |= kind == 17;
        let packet = forge.say(false, kind, path as u8, part, number.unwrap_or(self.next), body);
        self.receive(path, packet);
    }

    fn leave(&mut self, count: usize, unsent: bool) {
        for _ in 0..count {
            let Some(packet) = self.packets.pop_front() else { return };
            if packet.due > self.now {
                self.pass(packet.due - self.now);
            }
            let Probe { path, seq, due, place } = packet;
            match unsent {
                true => self.tell(Event::Unsent { path, seq }),
                false => self.tell(Event::Sent { path, seq, at: due }),
            }
            if place.is_some() && self.left.len() < KEPT {
                self.left.push_back(packet);
            }
        }
    }

    fn report(&mut self, script: &mut Script<'_>) -> Option<()> {
        let first = self.left.front()?;
        let (place, path) = (first.place, first.path);
        let (base, far) = (script.time()?, script.byte()? < 230);
        let ahead = if far { AHEAD } else { Nanos(script.u64()? / 2) };
        let pattern = script.bytes()?;
        let mut arrivals = Vec::new();
        let mut last = ahead;
        while self.left.front().is_some_and(|p| (p.place, p.path) == (place, path)) {
            let probe = self.left.pop_front()?;
            let how = pattern.get(arrivals.len()).or(pattern.last()).copied().unwrap_or(1);
            last = last.max(probe.due + base + ahead) + Nanos(u64::from(how) << (how % 16));
            let of = u32::from(how % 3) + 1;
            arrivals.push((how != 0).then_some((last, arrivals.len() as u32 % of, of)));
        }
        let (part, train, count) = place?;
        arrivals.resize(arrivals.len().max(count.into()), None);
        if script.flag()? {
            self.pass(base);
        }
        for body in forge::reports(train, &arrivals) {
            self.say(15, path, part, None, &body);
        }
        Some(())
    }

    /// Answers what was asked first, in the right form.
    fn answer(&mut self, script: &mut Script<'_>) -> Option<()> {
        let (path, packet, said) = self.asked.pop_front()?;
        let kind = said.kind - 1;
        match kind {
            0 => {
                let (forge, cookie) = Forge::cookie(&self.key, &packet, [script.byte()?; 32])?;
                self.forge = Some(forge);
                self.receive(path, cookie);
            }
            2 | 6 => {
                let how = script.byte()?;
                let huge = how >= 200;
                let total = match huge {
                    true => Budget { bytes: Bytes(script.u64()?), time: Nanos(script.u64()?) },
                    false => Budget { bytes: Bytes(2_000_000), time: Nanos::secs(30) },
                };
                let rate = if huge { script.u64()? } else { 1_000_000_000 };
                let [_, opened, queued] = forge::bodies_of(0, total, how.into(), Nanos::ZERO, rate);
                match how % 4 {
                    0 => self.say(4, path, 0, None, &queued),
                    _ => self.say(3, path, 0, None, &opened),
                }
            }
            7 => self.say(8, path, 0, None, &[said.session.to_be_bytes().as_slice(), &[0; 28]].concat()),
            9 => self.say(10, path, 0, None, &[]),
            11 => {
                let id = u32::from_be_bytes(said.body.try_into().ok()?);
                let (mut came, wait) = (self.now + AHEAD, script.time()?);
                if script.byte()? > 230 {
                    came = Nanos(script.u64()? / 2);
                }
                self.say(12, path, 0, None, &forge::stamp(id, came, came + wait));
            }
            _ => {}
        }
        Some(())
    }
}

pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let Some(how) = script.byte() else { return };
    let key = Key::new("one", vec![1; 32]).expect("a good key");
    let directions = match how % 3 {
        0 => vec![Direction::Out],
        1 => vec![Direction::In],
        _ => vec![Direction::Out, Direction::In],
    };
    let queue = Nanos::millis(500);
    let efforts = [Effort::Usual, Effort::Usual, Effort::Usual, Effort::Light, Effort::Thorough { queue }];
    let request = Request {
        paths: usize::from(how / 3 % 3) + 1,
        effort: efforts[usize::from(how % 5)],
        directions,
        method: MethodName::ALL[usize::from(how / 9) % 5],
        budget: Budget { bytes: Bytes(300_000), time: Nanos::secs(2) },
        at_once: how / 45 % 2 == 1,
        ..Request::new(key.clone())
    };
    let mut world = World {
        client: Client::new(request, Entropy { nonce: [5; 32], session: [6; 16] }),
        key,
        now: Nanos::secs(1000),
        wake: Nanos::MAX,
        forge: None,
        next: 0,
        asked: VecDeque::new(),
        packets: VecDeque::new(),
        left: VecDeque::new(),
        answers: VecDeque::new(),
        result: None,
        estimated: false,
    };
    world.tell(Event::Started);
    let _ = play(&mut world, script);
    // nobody answers any more: it ends by its clock
    let until = world.now + Nanos::secs(3600);
    while world.result.is_none() {
        assert!(world.now < until, "it does not end");
        world.pass(Nanos::secs(1));
    }
    let result: serde_json::Value =
        serde_json::from_slice(&world.result.as_ref().expect("it is over")).expect("a document");
    for path in result["paths"].as_array().expect("paths") {
        for of in path["directions"].as_object().expect("directions").values() {
            for figure in [&of["capacity_bps"], &of["available_bps"]] {
                let [low, value, high] = ["low", "value", "high"].map(|name| figure[name].as_f64());
                let value = value.or(low).unwrap_or(0.0);
                assert!(low.is_none_or(|low| low >= 0.0), "{figure}");
                // what the far end says of its direction is its own business
                let own =
                    world.estimated || (low.is_none_or(|low| low <= value) && high.is_none_or(|high| value <= high));
                assert!(own, "{figure}");
            }
        }
    }
}

fn play(world: &mut World, mut script: Script<'_>) -> Option<()> {
    for _ in 0..400 {
        if world.result.is_some() {
            return None;
        }
        let op = script.byte()?;
        let path = usize::from(op >> 6) % 3;
        match op % 13 {
            0 => world.receive(path, script.bytes()?.to_vec()),
            1..=3 => {
                let _ = world.answer(&mut script);
            }
            4 => {
                let (kind, part) = (script.byte()? % forge::KINDS, script.byte()? % 8);
                let number = if script.flag()? { Some(script.u64()?) } else { None };
                world.say(kind, path, part, number, script.bytes()?);
            }
            5 => {
                let (part, train) = (script.byte()? % 8, script.number()? as u32);
                let (index, count, rest) = (script.number()? as u16, script.number()? as u16, script.number()? as u32);
                if let Some(forge) = &world.forge {
                    let packet = forge.probe(false, path as u8, part, (train, index, count), rest);
                    world.receive(path, packet);
                }
            }
            6 => world.pass(script.time()?),
            7 | 8 => world.leave(usize::from(script.byte()?), op % 13 == 8 && op & 32 != 0),
            9 | 10 => {
                let _ = world.report(&mut script);
            }
            11 => {
                let back = usize::from(script.byte()?) % world.answers.len().max(1);
                let Some((path, mut packet)) = world.answers.iter().rev().nth(back).cloned() else { continue };
                let bit = usize::from(script.u16()?);
                if bit < packet.len() * 8 {
                    packet[bit / 8] ^= 1 << (bit % 8);
                }
                world.receive(path, packet);
            }
            _ if op == 12 => world.tell(Event::Stop),
            _ => {
                let rates = [script.u64()?, script.u64()?, script.u64()?].map(f64::from_bits);
                let (bytes, sent) = (script.number()?, script.u64()?);
                let small = [(sent, script.u64()? as i64), (sent.wrapping_add(5), 7)];
                world.say(17, path, script.byte()? % 8, None, &forge::outcome(rates, bytes, &small));
            }
        }
    }
    None
}
