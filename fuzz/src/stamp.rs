//! STAMP: packets, the reflector's answers, and a sender whose answers are anybody's.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use pathcast_base::Nanos;
use pathcast_measure::machine::{Action, Batch, Event, Machine};
use pathcast_measure::stamp::{
    Format, Mode, ReflectedPacket, Reflector, ReflectorClock, ReflectorOptions, Request, Sender, SenderOptions, StampKey, TestPacket,
};

use crate::script::Script;

const CLOCK: ReflectorClock = ReflectorClock { synchronised: true, error: Nanos::millis(1) };
/// Where packets come from.
const FROM: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4000));
const NOW: Nanos = Nanos::secs(1_700_000_000);

pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let Some(first) = script.byte() else { return };
    let mode = if first & 1 == 0 { Mode::Open } else { Mode::Authenticated(StampKey::new(b"key")) };
    let format = if first & 2 == 0 { Format::Ntp } else { Format::Ptp };
    if first & 4 == 0 {
        packet(script.0, &mode, format, first & 8 == 0);
    } else {
        sender(script, mode, format);
    }
}

fn reflector(mode: &Mode, format: Format, stateful: bool) -> Reflector {
    let options = ReflectorOptions { modes: vec![mode.clone()], format, stateful, ..ReflectorOptions::default() };
    Reflector::new(options)
}

/// `bytes` as a packet of either end, once as they are and once signed.
fn packet(bytes: &[u8], mode: &Mode, format: Format, stateful: bool) {
    let mut packets = vec![bytes.to_vec()];
    if let Some(read) = TestPacket::read(&Mode::Open, bytes) {
        let mut signed = read.write(mode);
        signed.extend_from_slice(bytes.get(signed.len()..).unwrap_or_default());
        packets.push(signed);
    }
    if let Some(read) = ReflectedPacket::read(&Mode::Open, bytes) {
        packets.push(read.write(mode));
    }
    let mut reflector = reflector(mode, format, stateful);
    for packet in &packets {
        let request = Request { from: FROM, packet, ttl: 64, at: NOW };
        let answer = reflector.reflect(&request, NOW + Nanos(1000), CLOCK);
        assert!(answer.is_none() || TestPacket::read(mode, packet).is_some());
        if let Some(answer) = answer {
            let again = Request { from: FROM, packet: &answer, ttl: 64, at: NOW };
            assert_eq!(reflector.reflect(&again, NOW + Nanos(2000), CLOCK), None, "a reflection is not reflected");
            assert_eq!(answer.len(), packet.len(), "no answer is larger than its request");
            let (sent, back) = (TestPacket::read(mode, packet).unwrap(), ReflectedPacket::read(mode, &answer).unwrap());
            assert_eq!((back.sender.sequence, back.sender.timestamp), (sent.sequence, sent.timestamp));
        }
        if let Some(read) = ReflectedPacket::read(mode, packet) {
            assert_eq!(ReflectedPacket::read(mode, &read.write(mode)), Some(read));
        }
    }
}

fn sender(mut script: Script<'_>, mode: Mode, format: Format) {
    let options = SenderOptions { count: 6, mode: mode.clone(), ..SenderOptions::default() };
    let mut sender = Sender::new(options);
    let (mut now, mut wake, mut done) = (NOW, Nanos::MAX, false);
    let mut sent: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut reflector = reflector(&mode, format, true);
    let mut tell =
        |sender: &mut Sender, now: Nanos, wake: &mut Nanos, sent: &mut Vec<(u64, Vec<u8>)>, event: Event<'_>| {
            sender.handle(now, event);
            while let (false, Some(action)) = (done, sender.next(now)) {
                match action {
                    Action::Reply(reply) => sent.push((reply.seq, reply.payload)),
                    Action::WakeAt(at) => *wake = at,
                    Action::Done(_) => done = true,
                    Action::Progress(_) | Action::SendTrain(_) => {}
                }
            }
            done
        };
    let mut told: HashMap<u64, bool> = HashMap::new();
    let mut over = tell(&mut sender, now, &mut wake, &mut sent, Event::Started);
    while !over {
        let Some(op) = script.byte() else { break };
        // every packet is told once to have left or not, and only one that has left is answered
        let last = sent.iter().rev().find(|(seq, _)| (told.get(seq) == Some(&true)) == (op % 5 == 2)).cloned();
        let last = last.filter(|(seq, _)| op % 5 == 2 || !told.contains_key(seq));
        if let Some((seq, _)) = last.as_ref().filter(|_| op % 5 < 2) {
            told.insert(*seq, op % 5 == 0);
        }
        let (event, packet);
        match (op % 5, last) {
            (0, Some((seq, _))) => event = Event::Sent { path: 0, seq, at: now },
            (1, Some((seq, _))) => event = Event::Unsent { path: 0, seq },
            (2, Some((_, last))) => {
                // an honest answer, in which some bytes are changed before it is signed
                let request = Request { from: FROM, packet: &last, ttl: 9, at: now };
                let Some(mut answer) = reflector.reflect(&request, now, CLOCK) else { break };
                for _ in 0..script.byte().unwrap_or(0) % 8 {
                    let (Some(at), Some(value)) = (script.byte(), script.byte()) else { break };
                    let place = usize::from(at) % answer.len();
                    answer[place] = value;
                }
                if matches!(mode, Mode::Authenticated(_)) && op & 128 == 0 {
                    let mut padded = vec![0; 44];
                    padded.copy_from_slice(&answer[..44]);
                    if let Some(read) = ReflectedPacket::read(&Mode::Open, &padded) {
                        answer = read.write(&mode);
                    }
                }
                packet = answer;
                event = Event::Received { path: 0, packet: &packet, size: 100, dscp: 1, ecn: 0, at: now, batch: Batch::SINGLE };
            }
            (3, _) => {
                let Some(bytes) = script.bytes() else { break };
                event = Event::Received { path: 0, packet: bytes, size: 100, dscp: 1, ecn: 0, at: now, batch: Batch::SINGLE };
            }
            _ => {
                now = (now + script.time().unwrap_or_default()).min(wake.max(now));
                if now < wake {
                    continue;
                }
                wake = Nanos::MAX;
                event = Event::Timer;
            }
        }
        over = tell(&mut sender, now, &mut wake, &mut sent, event);
    }
    for _ in 0..100 {
        if over {
            break;
        }
        now = now.max(wake);
        wake = Nanos::MAX;
        over = tell(&mut sender, now, &mut wake, &mut sent, Event::Timer);
    }
    assert!(over, "it ends by its clock");
    let report = sender.report();
    assert!(report.received <= report.sent);
    let _ = serde_json::to_string(&report).expect("numbers");
}
