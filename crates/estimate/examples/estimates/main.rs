//! How good the estimators are: many random paths in virtual time, errors and coverage of the intervals by class, and the
//! worst of twenty seeds of each bar.
//!
//! `cargo run --release -p pathcast-estimate --example estimates -- --cases 3000 --first-seed 1001 --out DIR` prints the tables, and
//! leaves them in DIR: `bars.txt`, `cases.md`, `cases.csv`. `--method NAME` for another one than the default.

mod bars;
mod cases;
#[path = "../../tests/estimate/line.rs"]
mod line;
mod table;
#[path = "../../tests/estimate/tcp.rs"]
mod tcp;
mod traffic;
#[path = "../../tests/estimate/world.rs"]
mod world;

use std::path::Path;

use pathcast_estimate::capacity::MiniTrains;
use pathcast_estimate::clusters::Clusters;
use pathcast_estimate::pathtester::PathTester;
use pathcast_estimate::pathtester_old::OldPathTester;
use pathcast_estimate::replay::Replay;
use pathcast_estimate::ride::Ride;
use pathcast_estimate::slops::Slops;
use pathcast_estimate::{Budget, Method};
use world::{Outcome, run};

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

fn inside(o: &Outcome) -> bool {
    o.estimate.value_bps.is_some() && (o.estimate.low_bps..=o.estimate.high_bps).contains(&o.truth)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |key: &str| args.iter().position(|a| a == key).and_then(|i| args.get(i + 1));
    let number = |key: &str, default: u64| option(key).map_or(default, |v| v.parse().expect("a number"));
    let name = option("--method").map_or("ride", String::as_str);
    let (first, count) = (number("--first-seed", 1001), number("--cases", 1000));
    let bars = if args.iter().any(|a| a == "--no-bars") { String::new() } else { bars::all(name, first) };
    print!("{bars}");
    let rows: Vec<table::Row> = (first..first + count)
        .map(|seed| {
            let case = cases::Case::random(seed);
            let outcome = run(&case.path, seed, method(name, case.budget, seed).as_mut());
            table::Row::new(seed, &case, bars::judged(name, outcome))
        })
        .collect();
    let table = table::markdown(&rows);
    print!("{table}");
    if let Some(directory) = option("--out") {
        let write =
            |file: &str, text: &str| std::fs::write(Path::new(directory).join(file), text).expect("DIR is writable");
        write("bars.txt", &bars);
        write("cases.md", &table);
        write("cases.csv", &table::csv(&rows));
    }
}
