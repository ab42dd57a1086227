//! Both ends in one thread, and between them whatever becomes of a packet.

use pathcast_base::Nanos;
use pathcast_session::{Entropy, Key, KeyRing};
use serde_json::Value;

use super::*;
use crate::machine::Batch;
use crate::{FarAction, FarEnd, FarEvent, MeasureLimits};

const DELAY: Nanos = Nanos::millis(10);
const CLASSES: [u8; 4] = [1, 2, 3, 46 << 2];

/// To the far end?, size, class: the class that arrives, if the packet does.
type Middle = fn(bool, u16, u8) -> Option<u8>;

fn key(byte: u8) -> Key {
    Key::new("one", vec![byte; 32]).unwrap()
}

struct Look {
    middle: Middle,
    sizes: Option<[u16; 2]>,
    /// The far end's clock: ahead by so much, and faster by so many parts of a million.
    ahead: Nanos,
    ppm: u64,
    secret: u8,
    /// What becomes of the far end's answers to such kinds.
    deaf: Option<Kind>,
}

impl Default for Look {
    fn default() -> Look {
        let middle: Middle = |_, _, class| Some(class);
        Look { middle, sizes: Some([1500, 1500]), ahead: Nanos::secs(3600), ppm: 0, secret: 1, deaf: None }
    }
}

impl Look {
    /// The document, and when it was there.
    fn run(self) -> (Value, Nanos) {
        let entropy = |byte| Entropy { nonce: [byte; 32], session: [byte; 16] };
        let ring = KeyRing::new([key(self.secret)]);
        let mut far: FarEnd<usize> = FarEnd::new(ring, MeasureLimits::default(), ClockState::default(), entropy(3));
        let (patience, clock) = (Nanos::secs(2), ClockState::default());
        let request = EchoRequest { key: key(1), sizes: self.sizes, classes: CLASSES.to_vec(), patience, clock };
        let mut near = Echoes::new(request, entropy(5));
        let (mut now, mut wake, mut far_wake) = (Nanos::secs(1000), Nanos::MAX, Nanos::MAX);
        let there = |t: Nanos| t + self.ahead + Nanos(t.0 / 1_000_000 * self.ppm);
        let mut coming: Vec<(Nanos, bool, Reply)> = Vec::new();
        near.handle(now, Event::Started);
        loop {
            while let Some(action) = near.next(now) {
                match action {
                    Action::Reply(reply) => {
                        near.handle(now, Event::Sent { path: 0, seq: reply.seq, at: now, handed: now });
                        coming.push((now + DELAY, true, reply));
                    }
                    Action::WakeAt(at) => wake = at,
                    Action::Done(document) => return (serde_json::from_slice(&document).unwrap(), now),
                    action => panic!("{action:?}"),
                }
            }
            while let Some(action) = far.next(there(now)) {
                match action {
                    FarAction::Reply { reply, .. } => coming.push((now + DELAY, false, reply)),
                    FarAction::WakeAt(at) => far_wake = at,
                    _ => {}
                }
            }
            coming.sort_by_key(|c| c.0);
            let first = coming.first().map_or(Nanos::MAX, |c| c.0);
            assert!(wake.min(first) < Nanos::MAX, "it sleeps for ever");
            now = now.max(wake.min(first));
            assert!(now < Nanos::secs(1100), "it does not end");
            if there(now) >= far_wake {
                far_wake = Nanos::MAX;
                far.handle(there(now), FarEvent::Timer);
            } else if first <= wake {
                let (_, to_far, reply) = coming.remove(0);
                let size = reply.size.max(reply.payload.len() as u16 + 28);
                let mut packet = reply.payload;
                packet.resize(usize::from(size) - 28, 0);
                let kind = Kind::in_head(&packet);
                let Some(class) = (self.middle)(to_far, size, reply.dscp << 2 | reply.ecn) else { continue };
                if self.deaf.is_some() && kind == self.deaf {
                    continue;
                }
                let (dscp, ecn, batch) = (class >> 2, class & 3, Batch::SINGLE);
                if to_far {
                    let at = there(now);
                    far.handle(at, FarEvent::Received { from: 0, packet: &packet, size, dscp, ecn, at, batch });
                } else {
                    near.handle(now, Event::Received { path: 0, packet: &packet, size, dscp, ecn, at: now, batch });
                }
            } else {
                wake = Nanos::MAX;
                near.handle(now, Event::Timer);
            }
        }
    }
}

fn marks(document: &Value, way: &str) -> Vec<(u64, Vec<u64>)> {
    let number = |v: &Value| v.as_u64().unwrap();
    let all = document[way]["marks"].as_array().unwrap().iter();
    all.map(|m| (number(&m["sent"]), m["came"].as_array().unwrap().iter().map(number).collect())).collect()
}

#[test]
fn a_clean_path_has_all_and_both_clocks_are_compared() {
    let (found, ended) = Look { ppm: 80, ..Look::default() }.run();
    assert_eq!(found["outcome"], "answered");
    for way in ["out", "in"] {
        assert_eq!((&found[way]["largest"], &found[way]["passes"]), (&1500.into(), &1500.into()));
        assert_eq!(marks(&found, way), CLASSES.map(|class| (class.into(), vec![class.into(); MARKED])).to_vec());
    }
    let clock = |name: &str| found["clock"][name].as_f64().unwrap();
    // after 1000 s of 80 ppm
    assert!((clock("offset_s") - 3600.08).abs() <= clock("error_s") && clock("error_s") <= 0.011, "{found}");
    assert!((clock("skew_ppm") - 80.0).abs() < 5.0, "{found}");
    assert!(ended < Nanos::secs(1003), "{ended:?}");
    assert_eq!(found["small"]["asked"], found["small"]["answered"], "none is lost: {found}");
}

#[test]
fn each_direction_is_asked_for_alone() {
    let (found, _) =
        Look { middle: |to_far, size, class| (!to_far || size <= 1400).then_some(class), ..Look::default() }.run();
    assert_eq!((&found["out"]["passes"], &found["in"]["passes"]), (&1400.into(), &1500.into()));
    let (found, _) =
        Look { middle: |to_far, size, class| (to_far || size <= 577).then_some(class), ..Look::default() }.run();
    assert_eq!((&found["out"]["passes"], &found["in"]["passes"]), (&1500.into(), &577.into()));
    let bleached: Middle = |to_far, _, class| Some(if to_far { class & !3 } else { class });
    let (found, _) = Look { middle: bleached, ..Look::default() }.run();
    assert_eq!(marks(&found, "out")[..3], [1, 2, 3].map(|class| (class, vec![0; MARKED])));
    assert_eq!(marks(&found, "in")[..3], [1, 2, 3].map(|class| (class, vec![class; MARKED])));
    let drops: Middle = |to_far, _, class| (to_far || class & 3 == 0).then_some(class & 3);
    let (found, _) = Look { middle: drops, ..Look::default() }.run();
    assert_eq!(marks(&found, "in"), [(1, vec![]), (2, vec![]), (3, vec![]), (184, vec![0; MARKED])]);
    assert_eq!(marks(&found, "out")[3], (184, vec![0; MARKED]));
}

#[test]
fn silence_another_key_and_an_older_far_end_are_told_apart() {
    let (found, ended) = Look { middle: |_, _, _| None, ..Look::default() }.run();
    assert_eq!((&found["outcome"], ended), (&"silent".into(), Nanos::secs(1002)));
    assert_eq!(Look { secret: 2, ..Look::default() }.run().0["outcome"], "silent");
    // of a far end that does not know the question only the clock is asked for
    let (found, _) = Look { sizes: None, deaf: Some(Kind::Echo), ..Look::default() }.run();
    assert_eq!((&found["outcome"], &found["out"]["largest"]), (&"answered".into(), &Value::Null));
    assert!((found["clock"]["offset_s"].as_f64().unwrap() - 3600.0).abs() < 0.01);
    let (found, _) = Look { deaf: Some(Kind::Echo), ..Look::default() }.run();
    assert_eq!((&found["outcome"], &found["plain"]), (&"answered".into(), &0.into()));
    assert_eq!(found["out"]["passes"], Value::Null);
    let (found, _) = Look { deaf: Some(Kind::Stamp), ..Look::default() }.run();
    assert_eq!(found["outcome"], "lost");
}

#[test]
fn losses_that_come_in_step_with_the_questions_hide_no_mark() {
    // every third packet of either way is lost
    thread_local!(static LAST: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    let middle: Middle = |_, _, class| {
        let count = LAST.get() + 1;
        LAST.set(count);
        (!count.is_multiple_of(3)).then_some(class)
    };
    let (found, _) = Look { middle, ..Look::default() }.run();
    let small = |name: &str| found["small"][name].as_u64().unwrap();
    assert!(small("asked") >= 25, "{found}");
    // of either way a third
    assert!((0.3..0.65).contains(&(small("answered") as f64 / small("asked") as f64)), "{found}");
    for way in ["out", "in"] {
        assert_eq!(found[way]["passes"], 1500);
        assert!(found[way]["asked"].as_u64().unwrap() >= 1, "{found}");
        assert!(marks(&found, way).iter().all(|(sent, came)| came.contains(sent)), "{found}");
    }
}
