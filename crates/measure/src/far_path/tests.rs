//! A far end's part of a path, on the memory that a session alone has.

use pathcast_base::{Bytes, Rate};
use pathcast_estimate::testing::{Fluid, OFFSET};
use pathcast_estimate::{LARGE, Plan};

use super::*;
use crate::keys::SessionKeys;
use crate::outcome::Outcome;
use crate::report::{Arrival, TrainArrivals};
use crate::request::MethodName;
use crate::room::Room;
use crate::wire::BESIDE;

const DELAY: f64 = 0.01;
const C: f64 = 200e6;

fn path(share: Share) -> FarPath<usize> {
    let key = pathcast_session::Key::new("k", vec![1; 32]).unwrap();
    let keys = SessionKeys::new(&key, &[2; 32], &[3; 32]);
    let path = FarPath::new(0, Channel::new(keys.session, 0, keys.far_end, keys.client), share);
    FarPath { beside: Some(1), ..path }
}

/// A thorough part, to its result; with the rates of its large trains [bit/s].
fn thorough(path: &mut FarPath<usize>, part: u8, c: f64) -> (Outcome, Vec<f64>) {
    let all = Budget { bytes: Bytes(200_000_000), time: Nanos::secs(10) };
    let effort = Effort::Thorough { queue: Nanos::millis(500) };
    let wait = Nanos::millis(100);
    let begin = Begin { method: MethodName::Ride, budget: all, sparing: true, effort, seed: 1, wait };
    let mut now = Nanos::secs(100);
    path.begin(now, part, &begin, all, 0);
    let (mut line, mut reports, mut rates) = (Fluid::new(c, 0.0, DELAY), Vec::<(Nanos, Vec<u8>)>::new(), Vec::new());
    let (mut granted, mut next) = (Grant::new(Rate(10_000_000_000)), [0, BESIDE]);
    loop {
        match path.next(now, &mut granted) {
            Some(FarPathAction::Train(train)) => {
                let plan = Plan { id: 0, at: train.at.max(now), gaps: train.gaps.clone(), size: train.size };
                if plan.size == LARGE && plan.duration() > Nanos::ZERO {
                    rates.push(f64::from(LARGE) * 8.0 * plan.gaps.len() as f64 / plan.duration().as_secs_f64());
                }
                let mut came = TrainArrivals::of(plan.count() as u16);
                let mut last = Nanos::ZERO;
                for (k, packet) in line.carry(&plan).packets.into_iter().enumerate() {
                    path.left(now, train.seq + k as u64, Some(Left { at: packet.sent, handed: packet.sent }));
                    last = packet.received.unwrap();
                    came.add(k as u16, Arrival { at: last, batch: packet.batch });
                }
                came.close();
                let number = &mut next[usize::from(train.beside)];
                let at = Nanos(last.0 - OFFSET) + Nanos::from_secs_f64(DELAY);
                reports.extend(report::encode(*number, &came).into_iter().map(|body| (at, body)));
                reports.sort_by_key(|report| report.0);
                *number += 1;
            }
            Some(FarPathAction::Message(Kind::Outcome, of, body)) => {
                assert_eq!(of, part);
                path.noted(part);
                return (Outcome::decode(&body).unwrap(), rates);
            }
            Some(FarPathAction::Message(..)) => {}
            None => match reports.first().filter(|report| report.0 <= path.wake()) {
                Some(_) => {
                    let (at, body) = reports.remove(0);
                    now = now.max(at);
                    path.report(now, at, part, &body);
                }
                None => now = now.max(path.wake()),
            },
        }
    }
}

/// What came of the direction before takes the room of this one no longer, and the phases are as short as the rest allows.
#[test]
fn a_thorough_measurement_comes_to_its_end_with_the_memory_that_there_is() {
    let share = Room::new(16_000_000, 64).share();
    let mut path = path(share.clone());
    for train in 0..800 {
        for index in 0..100 {
            let mut payload = vec![0; crate::wire::PROBE];
            let head = ProbeHead { train, index, count: 100, rest: 0 };
            path.channel.receive.probe(0, 1, path.channel.session, head, &mut payload);
            path.probe(Nanos::secs(1), &Datagram::parse(&payload).unwrap(), Nanos::secs(1), Batch::SINGLE);
        }
    }
    assert!(share.own() > 1_500_000, "{}", share.own());
    let (outcome, rates) = thorough(&mut path, 2, C);
    // it counts what is lost below what is free
    let last = *rates.last().unwrap();
    assert!((last / (0.7 * C) - 1.0).abs() < 0.1, "{last}");
    assert_eq!((outcome.trains, outcome.known.capacity_bps.why), (outcome.reported, None));
    assert!(outcome.known.loss.random.value.is_some(), "{:?}", outcome.known.loss);
    assert!(share.own() == 0, "{}", share.own());
}

/// On slow lines few small packets leave before the queue is filled.
#[test]
fn no_delay_is_of_a_queue_that_the_measurement_itself_has_built() {
    let c = 512e3;
    let mut path = path(Room::boundless().share());
    let (outcome, _) = thorough(&mut path, 1, c);
    let late = |delay: i64| (delay - OFFSET as i64) as f64 / 1e9 - DELAY - 120.0 * 8.0 / c;
    let waits: Vec<f64> = outcome.small.iter().map(|small| late(small.1)).collect();
    assert!(waits.len() >= 20 && waits.iter().all(|wait| (-1e-6..0.05).contains(wait)), "{waits:?}");
}
