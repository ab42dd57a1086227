//! The bars: the worst of twenty seeds of fixed paths.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_estimate::Budget;
use pathcast_link::Cross;

use super::traffic::{constant, poisson};
use super::world::{Outcome, Path, run};
use super::{inside, method};

const MBIT: u64 = 1_000_000;

fn budget(kb: u64, ms: u64) -> Budget {
    Budget { bytes: Bytes(kb * 1000), time: Nanos::millis(ms) }
}

/// What the method estimates is the truth.
pub fn judged(name: &str, outcome: Outcome) -> Outcome {
    let capacity = matches!(name, "capacity" | "clusters");
    Outcome { truth: if capacity { outcome.capacity } else { outcome.truth }, ..outcome }
}

fn error(outcome: &Outcome) -> f64 {
    outcome.estimate.value_bps.map_or(f64::NAN, |v| (v - outcome.truth) / outcome.truth)
}

fn bar(name: &str, what: &str, path: &Path, budget: Budget, limit: f64, first: u64) -> String {
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
    format!(
        "{what:<46} worst {:+6.2} % of {:>4.1} %, mean {:+6.2} %, in interval {held:>2}/20, none {none}, {:>6.2} s {:>8} B  {verdict}\n",
        worst * 100.0,
        limit * 100.0,
        bias * 100.0,
        time.as_secs_f64(),
        bytes
    )
}

pub fn all(name: &str, first: u64) -> String {
    let mut text = String::new();
    let five = |cross: Vec<Cross>| Path::one(Rate(5 * MBIT), 50, cross);
    for cross in [0, 500_000, 1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, constant {:.1}, 1 MB 3 s", cross as f64 / 1e6);
        text += &bar(name, &what, &five(constant(cross, 1500)), budget(1000, 3000), 0.02, first);
    }
    for cross in [0, 500_000, 1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, constant {:.1}, 350 kB 1.5 s", cross as f64 / 1e6);
        text += &bar(name, &what, &five(constant(cross, 1500)), budget(350, 1500), 0.04, first);
    }
    for cross in [0, 30_000] {
        let what = format!("100 kbit/s, constant {cross}, 150 kB 20 s");
        text +=
            &bar(name, &what, &Path::one(Rate(100_000), 50, constant(cross, 1500)), budget(150, 20_000), 0.03, first);
    }
    let hundred = Path::one(Rate(100 * MBIT), 50, constant(30 * MBIT, 1500));
    text += &bar(name, "100 Mbit/s, constant 30, 1 s 4 MB", &hundred, budget(4000, 1000), 0.02, first);
    for cross in [1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, Poisson {:.1}, 1 MB 3 s", cross as f64 / 1e6);
        text += &bar(name, &what, &five(poisson(cross, 1500)), budget(1000, 3000), 0.08, first);
    }
    for (kind, cross) in [("constant", constant(3 * MBIT, 1500)), ("Poisson", poisson(3 * MBIT, 1500))] {
        let mut two = Path::one(Rate(3 * MBIT), 50, vec![]);
        two.hops.push(five(cross).hops[0].clone());
        text += &bar(name, &format!("3 then 5 Mbit/s with {kind} 3, 1 MB 3 s"), &two, budget(1000, 3000), 0.07, first);
    }
    for cross in [1_500_000, 3_000_000] {
        let what = format!("5 Mbit/s, queue of 8, constant {:.1}", cross as f64 / 1e6);
        text +=
            &bar(name, &what, &Path::one(Rate(5 * MBIT), 8, constant(cross, 1500)), budget(1000, 3000), 0.08, first);
    }
    let mut giga = Path::one(Rate(1000 * MBIT), 1000, constant(300 * MBIT, 1500));
    giga.access = Rate(2_500 * MBIT);
    text += &bar(name, "1 Gbit/s, constant 300, 10 MB 1 s", &giga, budget(10_000, 1000), 0.05, first);
    giga.receiver.gather = Nanos::micros(50);
    giga.stalls = (50.0, Nanos::millis(3));
    text += &bar(name, "the same, gathered 50 us, stalls of 3 ms", &giga, budget(10_000, 1000), 0.05, first);
    let plain = five(constant(1_500_000, 1500));
    text += &bar(
        "capacity",
        "C of 5 Mbit/s, constant 1.5, 80 kB 1 s",
        &Path { ..plain.clone() },
        budget(80, 1000),
        0.01,
        first,
    );
    let bucket = five(vec![]).bucket(Rate(5 * MBIT), Bytes(1600));
    text += &bar("capacity", "C of a bucket of 5 Mbit/s, 1600 B", &bucket, budget(80, 1000), 0.01, first);
    let bucket = five(constant(1_500_000, 1500)).bucket(Rate(5 * MBIT), Bytes(1600));
    text += &bar(name, "A of a bucket of 5 Mbit/s, constant 1.5", &bucket, budget(1000, 3000), 0.02, first);
    text
}
