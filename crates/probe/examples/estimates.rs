//! How good the estimators are: many random paths in virtual time, errors and coverage of the intervals by class, and the
//! worst of twenty seeds of each bar.
//!
//! `cargo run --release -p pathcast-probe --example estimates -- --cases 2000 --first-seed 1001`

#[path = "../tests/estimate/world.rs"]
mod world;

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{Cross, Fair, Queue};
use pathcast_probe::estimate::capacity::MiniTrains;
use pathcast_probe::estimate::clusters::Clusters;
use pathcast_probe::estimate::pathtester::PathTester;
use pathcast_probe::estimate::pathtester_old::OldPathTester;
use pathcast_probe::estimate::replay::Replay;
use pathcast_probe::estimate::ride::Ride;
use pathcast_probe::estimate::slops::Slops;
use pathcast_probe::estimate::{Budget, Discipline, Method};
use world::{Outcome, Path, Receiver, run};

const MBIT: u64 = 1_000_000;

fn constant(rate: u64) -> Vec<Cross> {
    if rate == 0 { vec![] } else { vec![Cross::Constant { rate: Rate(rate), packet: Bytes(1500) }] }
}
fn poisson(rate: u64) -> Vec<Cross> {
    vec![Cross::Poisson { rate: Rate(rate), packet: Bytes(1500) }]
}
fn onoff(rate: u64, peak: u64, on_ms: u64) -> Vec<Cross> {
    let on = Nanos::millis(on_ms);
    vec![Cross::ParetoOnoff { rate: Rate(rate), peak: Rate(peak), on, shape: 1.5, packet: Bytes(1500) }]
}
fn budget(kb: u64, ms: u64) -> Budget {
    Budget { bytes: Bytes(kb * 1000), time: Nanos::millis(ms) }
}

fn method(name: &str, budget: Budget, seed: u64) -> Box<dyn Method> {
    match name {
        "ride" => Box::new(Ride::new(budget, seed)),
        "replay" => Box::new(Replay::new(budget, 20, 30, seed)),
        "pathtester" => Box::new(PathTester::new(budget)),
        "pathtester-old" => Box::new(OldPathTester::new(budget, 15)),
        "slops" => Box::new(Slops::new(budget)),
        "clusters" => Box::new(Clusters::new(budget)),
        "capacity" => Box::new(MiniTrains::new(budget, 10, seed)),
        other => panic!("no method {other}"),
    }
}

/// What the method estimates is the truth.
fn judged(name: &str, outcome: Outcome) -> Outcome {
    let capacity = matches!(name, "capacity" | "clusters");
    Outcome { truth: if capacity { outcome.capacity } else { outcome.truth }, ..outcome }
}

fn error(outcome: &Outcome) -> f64 {
    outcome.estimate.value_bps.map_or(f64::NAN, |v| (v - outcome.truth) / outcome.truth)
}

fn bar(name: &str, what: &str, path: &Path, budget: Budget, limit: f64, first: u64) {
    let outcomes: Vec<Outcome> =
        (first..first + 20).map(|seed| judged(name, run(path, seed, method(name, budget, seed).as_mut()))).collect();
    let mut errors: Vec<f64> = outcomes.iter().map(error).collect();
    let none = errors.iter().filter(|e| e.is_nan()).count();
    errors.retain(|e| !e.is_nan());
    let worst = errors.iter().copied().fold(0.0, |w: f64, e| if e.abs() > w.abs() { e } else { w });
    let bias = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    let held = outcomes.iter().filter(|o| inside(o)).count();
    let bytes = outcomes.iter().map(|o| o.sent_bytes).max().unwrap_or(0);
    let time = outcomes.iter().map(|o| o.elapsed).max().unwrap_or_default();
    let verdict = if none == 0 && worst.abs() <= limit { "ok" } else { "FALLS SHORT" };
    println!(
        "{what:<46} worst {:+6.2} % of {:>4.1} %, mean {:+6.2} %, in interval {held:>2}/20, none {none}, {:>6.2} s {:>8} B  {verdict}",
        worst * 100.0,
        limit * 100.0,
        bias * 100.0,
        time.as_secs_f64(),
        bytes
    );
}

fn inside(o: &Outcome) -> bool {
    o.estimate.value_bps.is_some() && (o.estimate.low_bps..=o.estimate.high_bps).contains(&o.truth)
}

fn bars(name: &str, first: u64) {
    let five = |cross: Vec<Cross>| Path::one(Rate(5 * MBIT), 50, cross);
    for cross in [0, 500_000, 1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, constant {:.1}, 1 MB 3 s", cross as f64 / 1e6);
        bar(name, &what, &five(constant(cross)), budget(1000, 3000), 0.02, first);
    }
    for cross in [0, 500_000, 1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, constant {:.1}, 350 kB 1.5 s", cross as f64 / 1e6);
        bar(name, &what, &five(constant(cross)), budget(350, 1500), 0.04, first);
    }
    for cross in [0, 30_000] {
        let what = format!("100 kbit/s, constant {cross}, 150 kB 20 s");
        bar(name, &what, &Path::one(Rate(100_000), 50, constant(cross)), budget(150, 20_000), 0.03, first);
    }
    let hundred = Path::one(Rate(100 * MBIT), 50, constant(30 * MBIT));
    bar(name, "100 Mbit/s, constant 30, 1 s 4 MB", &hundred, budget(4000, 1000), 0.02, first);
    for cross in [1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, Poisson {:.1}, 1 MB 3 s", cross as f64 / 1e6);
        bar(name, &what, &five(poisson(cross)), budget(1000, 3000), 0.08, first);
    }
    for (kind, cross) in [("constant", constant(3 * MBIT)), ("Poisson", poisson(3 * MBIT))] {
        let mut two = Path::one(Rate(3 * MBIT), 50, vec![]);
        two.hops.push(five(cross).hops[0].clone());
        bar(name, &format!("3 then 5 Mbit/s with {kind} 3, 1 MB 3 s"), &two, budget(1000, 3000), 0.07, first);
    }
    for cross in [1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, queue of 8, constant {:.1}", cross as f64 / 1e6);
        bar(name, &what, &Path::one(Rate(5 * MBIT), 8, constant(cross)), budget(1000, 3000), 0.08, first);
    }
    let mut giga = Path::one(Rate(1000 * MBIT), 1000, constant(300 * MBIT));
    giga.access = Rate(2_500 * MBIT);
    bar(name, "1 Gbit/s, constant 300, 10 MB 1 s", &giga, budget(10_000, 1000), 0.05, first);
    giga.receiver.gather = Nanos::micros(50);
    giga.stalls = (50.0, Nanos::millis(3));
    bar(name, "the same, gathered 50 us, stalls of 3 ms", &giga, budget(10_000, 1000), 0.05, first);
    let plain = five(constant(1_500_000));
    bar("capacity", "C of 5 Mbit/s, constant 1.5, 80 kB 1 s", &Path { ..plain.clone() }, budget(80, 1000), 0.01, first);
    let bucket = five(vec![]).bucket(Rate(5 * MBIT), Bytes(1600));
    bar("capacity", "C of a bucket of 5 Mbit/s, 1600 B", &bucket, budget(80, 1000), 0.01, first);
    let bucket = five(constant(1_500_000)).bucket(Rate(5 * MBIT), Bytes(1600));
    bar(name, "A of a bucket of 5 Mbit/s, constant 1.5", &bucket, budget(1000, 3000), 0.02, first);
}

/// A random path of a class.
fn random(class: &str, s: &mut Stream) -> (Path, Budget) {
    let rate = if s.chance(0.5) { 5e6 } else { 10f64.powf(s.between(6.0, 8.0)) } as u64;
    let load = s.between(0.05, 0.75);
    let cross = ((rate as f64 * load) as u64).max(1);
    let queue = s.between(30.0, 200.0) as u32;
    let traffic = match class {
        "idle" => vec![],
        "poisson" => poisson(cross),
        "onoff" => {
            let peak = (rate as f64 * s.between(load + 0.05, 1.0)) as u64;
            onoff(cross.min(peak - 1), peak, s.between(20.0, 200.0) as u64)
        }
        _ => {
            let packet = Bytes([1500, 1500, 600, 200][(s.uniform() * 4.0) as usize]);
            vec![Cross::Constant { rate: Rate(cross), packet }]
        }
    };
    let mut path = Path::one(Rate(rate), queue, traffic);
    path.delay = Nanos::from_secs_f64(10f64.powf(s.between(-3.3, -1.3)));
    path.receiver.skew_ppm = s.between(-50.0, 50.0);
    path.receiver.noise = Nanos::micros(20);
    let mut time = 3000;
    match class {
        "far" => (path.delay, time) = (Nanos::millis(300), 5000),
        "small queue" => path.hops[0].params.queue = Queue::Packets(s.between(5.0, 15.0) as u32),
        "loss" => path.hops[0].params.loss = s.between(0.001, 0.03),
        "host" => {
            path.stalls = (s.between(5.0, 50.0), Nanos::millis(5));
            path.receiver.gather = Nanos::micros(s.between(10.0, 200.0) as u64);
        }
        "two" => {
            let narrow = (rate as f64 * s.between(1.0 - load * 0.8, 1.0)) as u64;
            let hop = Path::one(Rate(narrow), queue, vec![]).hops[0].clone();
            let place = usize::from(s.chance(0.5));
            path.hops.insert(place, hop);
        }
        "fair" => path.hops[0].params.queue = Queue::Fair(Fair { packets: queue, quantum: Bytes(1514) }),
        _ => {}
    }
    let bytes = (0.22 * rate as f64 / 8.0 * 8.0 / 1000.0 / 1.1) as u64;
    (path, budget(bytes.clamp(350, 8000), time))
}

const CLASSES: [&str; 10] =
    ["idle", "constant", "poisson", "onoff", "far", "small queue", "loss", "host", "two", "fair"];

fn cases(name: &str, first: u64, cases: u64) {
    println!(
        "{:<12} {:>5} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7}  {:>8} {:>9} {:>6} fair",
        "class", "cases", "none", "p5 %", "p50 %", "p95 %", "|p50|%", "|p95|%", "inside %", "half/C %", "time s"
    );
    let mut by: BTreeMap<usize, Vec<(Outcome, f64)>> = BTreeMap::new();
    for seed in first..first + cases {
        let class = (seed % CLASSES.len() as u64) as usize;
        let mut s = Stream::new(seed, "case");
        let (path, budget) = random(CLASSES[class], &mut s);
        let c = path.hops.iter().filter_map(|hop| hop.params.rate).min().unwrap().0 as f64;
        by.entry(class).or_default().push((run(&path, seed, method(name, budget, seed).as_mut()), c));
    }
    for (class, all) in by {
        let got: Vec<&(Outcome, f64)> = all.iter().filter(|o| o.0.estimate.value_bps.is_some()).collect();
        // against C: a share of a bandwidth near zero says little
        let mut errors: Vec<f64> =
            got.iter().map(|(o, c)| (o.estimate.value_bps.unwrap() - o.truth) / c * 100.0).collect();
        errors.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let q = |v: &[f64], p: f64| v.get(((v.len() - 1) as f64 * p) as usize).copied().unwrap_or(f64::NAN);
        let held = got.iter().filter(|(o, _)| inside(o)).count() as f64 / got.len() as f64 * 100.0;
        let mut halves: Vec<f64> =
            got.iter().map(|(o, c)| (o.estimate.high_bps - o.estimate.low_bps) / 2.0 / c * 100.0).collect();
        halves.sort_by(f64::total_cmp);
        let time = got.iter().map(|(o, _)| o.elapsed.as_secs_f64()).sum::<f64>() / got.len() as f64;
        let fair = got.iter().filter(|(o, _)| o.estimate.discipline == Discipline::Fair).count();
        println!(
            "{:<12} {:>5} {:>5} {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>7.2}  {:>8.1} {:>9.2} {:>6.2} {fair}",
            CLASSES[class],
            all.len(),
            all.len() - got.len(),
            q(&errors, 0.05),
            q(&errors, 0.5),
            q(&errors, 0.95),
            q(&sizes, 0.5),
            q(&sizes, 0.95),
            held,
            q(&halves, 0.5),
            time
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |key: &str, default: u64| {
        let at = args.iter().position(|a| a == key);
        at.and_then(|i| args.get(i + 1)).map_or(default, |v| v.parse().expect("a number"))
    };
    let at = args.iter().position(|a| a == "--method");
    let name = at.and_then(|i| args.get(i + 1)).map_or("ride", String::as_str);
    let first = value("--first-seed", 1001);
    bars(name, first);
    cases(name, first, value("--cases", 1000));
    let _ = Receiver::default();
}
