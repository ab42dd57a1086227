//! How fast links of all kinds are beside the plain one, in the same run: `cargo run --release --example speed [KIND [TURNS]]`. Time a
//! packet, as the simulator drives a link; the kinds take turns, and the least of each is what counts.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{
    Aggregation, Codel, Fair, Format, FqCodel, GilbertElliott, Loss, Params, Pie, Policer, Queue, Red, Reorder,
    Schedule, Tag, Trace, Wire,
};

const PACKETS: u32 = 400_000;
const FLOWS: u64 = 8;

fn trace(schedule: Option<Schedule>) -> Option<Trace> {
    schedule.map(|schedule| Trace::new("f".into(), String::new(), Format::Csv, Arc::new(schedule)))
}

/// What a bar says, if there is one: at most so many times the plain link's time.
fn kinds() -> Vec<(&'static str, Params, Option<f64>)> {
    let plain = Params { rate: Some(Rate(100_000_000)), queue: Queue::Packets(100), ..Params::default() };
    let queue = |queue| Params { queue, ..plain.clone() };
    let steps = (0..100).map(|s| (Nanos::secs(s), Rate(90_000_000 + 200_000 * s))).collect();
    // 8.33 packets a millisecond
    let opportunities = (1..=12_000u32).map(|n| n * 3 / 25 + 1);
    vec![
        ("plain: a rate, 100 packets", plain.clone(), None),
        (
            "rates from a file, a step a second",
            Params { rate: None, trace: trace(Schedule::rates(steps)), ..plain.clone() },
            Some(1.1),
        ),
        (
            "opportunities",
            Params { rate: None, trace: trace(Schedule::opportunities(opportunities)), ..plain.clone() },
            None,
        ),
        (
            "aggregation",
            Params {
                aggregation: Some(Aggregation { every: Nanos::millis(4), bytes: Bytes(60_000) }),
                ..plain.clone()
            },
            None,
        ),
        (
            "reorder",
            Params { reorder: Some(Reorder { share: 0.01, distance: Nanos::millis(1) }), ..plain.clone() },
            None,
        ),
        (
            "policer",
            Params { policer: Some(Policer { rate: Rate(99_000_000), burst: Bytes(60_000) }), ..plain.clone() },
            None,
        ),
        (
            "loss in bursts",
            Params { loss: Loss::Bursts(GilbertElliott { p: 0.001, r: 0.2, good: 0.0, bad: 1.0 }), ..plain.clone() },
            None,
        ),
        (
            "red",
            queue(Queue::Red(Red { min: 20.0, max: 60.0, limit: 100, probability: 0.1, weight: 0.002, ecn: false })),
            None,
        ),
        ("fair", queue(Queue::Fair(Fair { packets: 100, quantum: Bytes(1514) })), None),
        ("codel", queue(Queue::Codel(Codel::default())), None),
        ("fq_codel", queue(Queue::FqCodel(FqCodel::default())), Some(2.0)),
        ("pie", queue(Queue::Pie(Pie::default())), None),
    ]
}

/// Nanoseconds a packet. Arrivals are random, on average 1 % more than the line carries.
fn run(params: &Params, arrivals: &[(u64, u32)]) -> f64 {
    let mut wire = Wire::new(params.clone(), 1, "l");
    let mut carried = 0u64;
    let begin = Instant::now();
    for &(at, flow) in arrivals {
        while let Some(due) = wire.next_due().filter(|due| due.0 <= at) {
            carried += wire.pop(due).map_or(0, |released| u64::from(released.packet));
        }
        black_box(wire.offer(Nanos(at), 1500, Tag { flow, ect: false }, flow));
    }
    black_box(carried);
    begin.elapsed().as_nanos() as f64 / arrivals.len() as f64
}

fn main() {
    let mut stream = Stream::new(1, "speed");
    let mut at = 0.0;
    let arrivals: Vec<(u64, u32)> = (0..PACKETS)
        .map(|_| {
            at += stream.exponential(120_000.0 / 1.01);
            (at as u64, (stream.bits() % FLOWS) as u32)
        })
        .collect();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let kinds: Vec<_> = kinds()
        .into_iter()
        .filter(|kind| kind.2.is_none() && kind.0.starts_with("plain") || kind.0.contains(&wanted))
        .collect();
    let mut times = vec![Vec::new(); kinds.len()];
    let turns = std::env::args().nth(2).map_or(15, |turns| turns.parse().expect("a number of turns"));
    for _ in 0..turns {
        for ((_, params, _), times) in kinds.iter().zip(&mut times) {
            times.push(run(params, &arrivals));
        }
    }
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let plain = least(&times[0]);
    println!("       {:44} {:>12} {:>8}", "", "ns a packet", "times");
    for ((name, _, bar), times) in kinds.iter().zip(&times) {
        let time = least(times);
        let mark = bar.map_or("      ", |bar| if time <= bar * plain { "ok    " } else { "FAILED" });
        let bar = bar.map_or(String::new(), |bar| format!("<= {bar}"));
        println!("{mark} {name:44} {time:12.1} {:8.2} {bar}", time / plain);
    }
}
