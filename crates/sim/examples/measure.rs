//! How good whole measurements are: both machines, their datagrams, clocks and reports, in the simulator, the worst of
//! twenty seeds of each bar.
//!
//! `cargo run --release -p pathcast-sim --example measure -- [--seeds 20] [--method ride]`

use pathcast_base::{Bytes, Nanos};
use pathcast_probe::estimate::Budget;
use pathcast_probe::measure::{Client, ClockState, Direction, FarEnd, Lone, MeasureLimits, MethodName, Request};
use pathcast_probe::session::{Entropy, Key, KeyRing};
use pathcast_scenario::{Direction as Side, Scenario};
use pathcast_sim::{Options, World};
use serde_json::Value;

/// Link, what it leaves, and the bar.
struct Row {
    rate: f64,
    access: &'static str,
    delay: &'static str,
    queue: u32,
    kind: &'static str,
    cross: f64,
    kb: u64,
    ms: u64,
    bar: f64,
}

fn scenario(row: &Row, seed: u64) -> String {
    let traffic = match row.cross {
        0.0 => String::new(),
        cross => {
            let of = |direction, name| {
                format!(
                    r#"{{ name = "{name}", kind = "{}", link = "mid", direction = "{direction}", rate = "{cross}bit", packet = "1500B" }}"#,
                    row.kind
                )
            };
            format!("traffic = [{}, {}]", of("ab", "x"), of("ba", "y"))
        }
    };
    let Row { rate, access, delay, queue, .. } = row;
    format!(
        r#"
seed = {seed}
link = [
    {{ name = "in", a = "client", b = "r1", rate = "{access}", delay = "100us", queue = "10000 packets" }},
    {{ name = "mid", a = "r1", b = "r2", rate = "{rate}bit", delay = "{delay}", queue = "{queue} packets" }},
    {{ name = "out", a = "r2", b = "server", rate = "{access}", delay = "100us", queue = "10000 packets" }},
]
path = [{{ name = "p", links = ["in", "mid", "out"] }}]
{traffic}
[host.client]
clock_offset = "3s"
clock_skew_ppm = 20
[host.server]
clock_offset = "-1s"
clock_skew_ppm = -30
"#
    )
}

/// The result, what was left by the cross traffic that entered the queue [bit/s], the time [s] and what was sent by both [byte].
fn run(row: &Row, seed: u64, method: MethodName, direction: Direction) -> (Value, f64, f64, u64) {
    let key = Key::new("tester", *b"a secret of the right length....").expect("a key");
    let entropy = |byte| Entropy { nonce: [byte; 32], session: [byte; 16] };
    let far = FarEnd::new(KeyRing::new([key.clone()]), MeasureLimits::default(), ClockState::default(), entropy(2));
    let budget = Budget { bytes: Bytes(row.kb * 1000), time: Nanos::millis(row.ms) };
    let request = Request { budget, method, seed, directions: vec![direction], ..Request::new(key) };
    let mut world = World::new(Scenario::parse(&scenario(row, seed), &[]).expect("a scenario")).expect("a world");
    world.wait(Nanos::millis(1000 + seed * 37));
    let side = if direction == Direction::Out { Side::Ab } else { Side::Ba };
    let before = world.counters(1, side).cross.entered.bytes;
    let client = Box::new(Client::new(request, entropy(1)));
    let report = world.session(client, Box::new(Lone::new(far)), &[0], &Options::default(), |_| ()).expect("a result");
    let bytes = report.client.sent_bytes + report.server.sent_bytes;
    let (elapsed, entered) = (report.elapsed.as_secs_f64(), world.counters(1, side).cross.entered.bytes - before);
    let left = row.rate - entered as f64 * 8.0 / elapsed;
    (serde_json::from_slice(&report.result).expect("JSON"), left, elapsed, bytes)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let word = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
    let seeds: u64 = word("--seeds").map_or(20, |n| n.parse().expect("a number of seeds"));
    let method: MethodName = word("--method").map_or(MethodName::Ride, |name| name.parse().expect("a method"));
    let base = Row {
        rate: 5e6,
        access: "100Mbit",
        delay: "10ms",
        queue: 50,
        kind: "constant",
        cross: 0.0,
        kb: 1000,
        ms: 3000,
        bar: 0.02,
    };
    let mut rows = Vec::new();
    for (kb, ms, bar) in [(1000, 3000, 0.02), (350, 1500, 0.04)] {
        rows.extend([0.0, 0.5e6, 1.5e6, 3e6].map(|cross| Row { cross, kb, ms, bar, ..base }));
    }
    rows.extend([0.0, 30e3].map(|cross| Row { rate: 100e3, cross, kb: 150, ms: 20_000, bar: 0.03, ..base }));
    rows.push(Row { rate: 100e6, access: "1Gbit", cross: 30e6, kb: 4000, ms: 1000, ..base });
    rows.extend([1.5e6, 3e6].map(|cross| Row { kind: "poisson", cross, bar: 0.08, ..base }));
    rows.extend([1.5e6, 3e6].map(|cross| Row { queue: 8, cross, bar: 0.08, ..base }));
    rows.push(Row { delay: "300ms", cross: 2e6, ms: 5000, bar: 0.1, ..base });
    rows.push(Row {
        rate: 1e9,
        access: "2500Mbit",
        queue: 1000,
        cross: 300e6,
        kb: 10_000,
        ms: 1000,
        bar: 0.05,
        ..base
    });
    for row in &rows {
        let mut errors: [Vec<f64>; 2] = Default::default();
        let (mut none, mut held, mut slowest, mut most, mut c_worst, mut d_worst, mut fair) =
            (0, 0, 0f64, 0, 0f64, 0f64, 0);
        for seed in 1..=seeds {
            for (which, direction) in [Direction::Out, Direction::In].into_iter().enumerate() {
                let (result, truth, elapsed, bytes) = run(row, seed, method, direction);
                (slowest, most) = (slowest.max(elapsed), most.max(bytes));
                let d = &result["paths"][0]["directions"][direction.word()];
                match d["available_bps"]["value"].as_f64().filter(|_| d["available_bps"]["why"].is_null()) {
                    Some(value) => errors[which].push(value / truth - 1.0),
                    None => none += 1,
                }
                fair += u32::from(d["available_bps"]["discipline"] == "fair");
                let bound = |name: &str| d["available_bps"][name].as_f64().unwrap_or(f64::NAN);
                held += usize::from((bound("low")..=bound("high")).contains(&truth));
                c_worst = c_worst.max((d["capacity_bps"]["value"].as_f64().unwrap_or(0.0) / row.rate - 1.0).abs());
                d_worst = d_worst.max(
                    d["delay_s"]["minimum"].as_f64().map_or(f64::INFINITY, |minimum| (minimum - least(row)).abs()),
                );
            }
        }
        let worst =
            |errors: &[f64]| errors.iter().copied().fold(0.0, |w: f64, e| if e.abs() > w.abs() { e } else { w });
        let all: f64 = errors.iter().map(|e| worst(e).abs()).fold(0.0, f64::max);
        println!(
            "{:>6.1} Mbit/s {:<8} {:>6.2}, {:>5} kB {:>5} ms, queue {:>4}, {:>5}: worst out {:+6.2} in {:+6.2} % of {:>4.1} %, in interval {held}/{}, none {none}, C {:.2} %, delay {:>7.1} us, fair {fair}, {:>5.2} s {:>8} B  {}",
            row.rate / 1e6,
            row.kind,
            row.cross / 1e6,
            row.kb,
            row.ms,
            row.queue,
            row.delay,
            worst(&errors[0]) * 100.0,
            worst(&errors[1]) * 100.0,
            row.bar * 100.0,
            2 * seeds,
            c_worst * 100.0,
            d_worst * 1e6,
            slowest,
            most,
            if none == 0 && all <= row.bar { "ok" } else { "FALLS SHORT" }
        );
    }
}

/// The delay of a small packet without a queue [s].
fn least(row: &Row) -> f64 {
    let access = match row.access {
        "100Mbit" => 100e6,
        "1Gbit" => 1e9,
        _ => 2.5e9,
    };
    let delay = if row.delay == "300ms" { 0.3 } else { 0.01 };
    delay + 2e-4 + 120.0 * 8.0 * (1.0 / row.rate + 2.0 / access)
}
