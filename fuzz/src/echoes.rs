//! The client that looks what becomes of packets, and a far end that holds the key and answers as it likes.

use std::collections::VecDeque;

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::Budget;
use pathcast_measure::forge::{self, Forge, ParsedDatagram};
use pathcast_measure::machine::{Action, Batch, Event, Machine, Reply};
use pathcast_measure::{ClockState, EchoRequest, Echoes};
use pathcast_session::{Entropy, Key};

use crate::script::Script;

/// The far end's clock is ahead by this.
const AHEAD: Nanos = Nanos::secs(100);
/// It says no more, whatever it hears [byte].
const MOST: u64 = 3_000_000;

struct World {
    client: Echoes,
    key: Key,
    now: Nanos,
    wake: Nanos,
    forge: Option<Forge>,
    next: u64,
    asked: VecDeque<(Reply, ParsedDatagram)>,
    said: u64,
    result: Option<Vec<u8>>,
}

impl World {
    fn tell(&mut self, event: Event<'_>) {
        if self.result.is_some() {
            return;
        }
        self.client.handle(self.now, event);
        for turn in 0.. {
            let Some(action) = self.client.next(self.now) else { return };
            assert!(turn < 1000, "it does not come to rest");
            match action {
                Action::Reply(reply) => {
                    self.said += u64::from(reply.size).max(reply.payload.len() as u64 + 28);
                    assert!(self.said < MOST, "it does not stop asking");
                    let said = forge::read(&reply.payload);
                    assert!(said.is_some() || forge::is_of_before(&reply.payload), "its own words");
                    self.client.handle(self.now, Event::Sent { path: 0, seq: reply.seq, at: self.now });
                    if let Some(said) = said.filter(|_| self.asked.len() < 500) {
                        self.asked.push_back((reply, said));
                    }
                }
                Action::WakeAt(at) => self.wake = at,
                Action::Done(result) => {
                    self.result = Some(result);
                    return;
                }
                action => panic!("{action:?}"),
            }
        }
    }

    fn receive(&mut self, packet: &[u8], size: u16, class: u8) {
        let (dscp, ecn, at) = (class >> 2, class & 3, self.now);
        self.tell(Event::Received { path: 0, packet, size, dscp, ecn, at, batch: Batch::SINGLE });
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
            let rests = self.now > before || self.wake > self.now || wake < before || self.result.is_some();
            assert!(rests, "it is woken for nothing, again and again");
        }
        self.now = end;
    }

    fn say(&mut self, kind: u8, number: Option<u64>, body: &[u8], size: u16, class: u8) {
        let Some(forge) = &self.forge else { return };
        self.next += 1;
        let packet = forge.say(false, kind, 0, 0, number.unwrap_or(self.next), body);
        self.receive(&packet, size, class);
    }

    /// Answers what was asked first, in the right form.
    fn answer(&mut self, script: &mut Script<'_>) -> Option<()> {
        let (reply, said) = self.asked.pop_front()?;
        match said.kind - 1 {
            0 => {
                let (forge, cookie) = Forge::cookie(&self.key, &reply.payload, [3; 32])?;
                self.forge.get_or_insert(forge);
                self.receive(&cookie, 104, 0);
            }
            2 | 6 => {
                let total = Budget { bytes: Bytes(2_000_000), time: Nanos::secs(30) };
                let [_, opened, queued] = forge::bodies_of(0, total, 1, Nanos::ZERO, 1_000_000_000);
                match script.byte()? % 4 {
                    0 => self.say(4, None, &queued, 76, 0),
                    _ => self.say(3, None, &opened, 122, 0),
                }
            }
            11 => {
                let id = u32::from_be_bytes(said.body.try_into().ok()?);
                let came = if script.byte()? > 230 { Nanos(script.u64()? / 2) } else { self.now + AHEAD };
                self.say(12, None, &forge::stamp(id, came, came), reply.size, 0);
            }
            21 => {
                let [a, b, c, d, size @ .., class] = <[u8; 7]>::try_from(said.body).ok()?;
                let (mut own, mut came) = ((u16::from_be_bytes(size), class), (reply.size, reply.dscp << 2 | reply.ecn));
                let how = script.byte()?;
                // what a middlebox may do
                if how & 1 == 1 && own.0.max(came.0) > 128 + u16::from(how) * 6 {
                    return Some(());
                }
                if how & 2 == 2 {
                    (own.1, came.1) = (own.1 & how, came.1 & !how);
                }
                if how >= 250 {
                    came = (script.u16()?, script.byte()?);
                }
                let id = u32::from_be_bytes([a, b, c, d]);
                let body = forge::echoed(id, came.0, came.1, self.now + AHEAD, self.now + AHEAD);
                self.say(22, None, &body, own.0, own.1);
            }
            _ => {}
        }
        Some(())
    }
}

pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let (Some(how), Some(out), Some(back)) = (script.byte(), script.u16(), script.u16()) else { return };
    let key = Key::new("one", vec![1; 32]).expect("a good key");
    let request = EchoRequest {
        key: key.clone(),
        sizes: (how & 1 == 1).then_some([out, back]),
        classes: vec![1, 2, 3, 184, how],
        patience: Nanos::secs(u64::from(how % 4) + 1),
        clock: ClockState::default(),
    };
    let mut world = World {
        client: Echoes::new(request, Entropy { nonce: [5; 32], session: [6; 16] }),
        key,
        now: Nanos::secs(1000),
        wake: Nanos::MAX,
        forge: None,
        next: 0,
        asked: VecDeque::new(),
        said: 0,
        result: None,
    };
    world.tell(Event::Started);
    let _ = play(&mut world, script);
    // nobody answers any more: it ends by its clock
    let until = world.now + Nanos::secs(120);
    while world.result.is_none() {
        assert!(world.now < until, "it does not end");
        world.pass(Nanos::secs(1));
    }
    let result: serde_json::Value =
        serde_json::from_slice(&world.result.expect("it is over")).expect("a document");
    for way in ["out", "in"] {
        let [passes, largest] = ["passes", "largest"].map(|name| result[way][name].as_u64());
        assert!(passes.is_none_or(|passes| passes <= largest.unwrap_or(0).max(128)), "{result}");
        for mark in result[way]["marks"].as_array().expect("marks") {
            assert!(mark["came"].as_array().expect("classes").len() as u64 <= mark["asked"].as_u64().expect("a number"));
        }
    }
}

fn play(world: &mut World, mut script: Script<'_>) -> Option<()> {
    for _ in 0..2000 {
        if world.result.is_some() {
            return None;
        }
        match script.byte()? % 8 {
            0..=3 => {
                let _ = world.answer(&mut script);
            }
            4 => world.pass(script.time()?),
            5 => {
                let (kind, number) = (script.byte()? % forge::KINDS, script.number()?);
                let (size, class) = (script.u16()?, script.byte()?);
                world.say(kind, Some(number), script.bytes()?, size, class);
            }
            6 => {
                let bytes = script.bytes()?;
                world.receive(bytes, bytes.len() as u16 + 28, 0);
            }
            _ => drop(world.asked.pop_front()),
        }
        if world.next % 97 == 96 {
            world.tell(Event::Unsent { path: 0, seq: world.next });
        }
    }
    None
}
