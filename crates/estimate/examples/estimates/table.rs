//! What became of the cases, as a Markdown table by classes and as lines of CSV.

use std::fmt::Write;

use pathcast_estimate::{Discipline, WhyNot};

use super::cases::{Case, Classes};
use super::inside;
use super::world::Outcome;

/// One case and its outcome; rates in bit/s.
pub struct Row {
    pub seed: u64,
    pub classes: Classes,
    pub fair: bool,
    pub outcome: Outcome,
}

impl Row {
    pub fn new(seed: u64, case: &Case, outcome: Outcome) -> Row {
        Row { seed, classes: case.classes(), fair: case.fair(), outcome }
    }

    /// Estimate less truth, as a share of the capacity: a share of a bandwidth near zero says little.
    fn error(&self) -> Option<f64> {
        Some((self.outcome.estimate.value_bps? - self.outcome.truth) / self.outcome.capacity)
    }

    fn half_width(&self) -> f64 {
        (self.outcome.estimate.high_bps - self.outcome.estimate.low_bps) / 2.0 / self.outcome.capacity
    }
}

/// The `p` quantile; not a number of none.
fn quantile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values.get((last * p).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Lines of the table, by class: of all cases in common queues, then those of fair queues, which are in no other line.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| class | | cases | refused | error p5 | p50 | p95 | abs p50 | p95 | in interval | half-width p50 | p90 | said fair |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let common = || rows.iter().filter(|row| !row.fair);
    line(&mut text, "all", "", common());
    for k in 0..rows.first().map_or(0, |row| row.classes.len()) {
        let mut names: Vec<(&str, &str)> = rows.iter().map(|row| row.classes[k]).collect();
        names.sort_unstable();
        names.dedup();
        for (what, class) in names {
            line(&mut text, what, class, common().filter(|row| row.classes[k].1 == class));
        }
    }
    line(&mut text, "queueing", "fair", rows.iter().filter(|row| row.fair));
    text
}

fn line<'a>(text: &mut String, what: &str, class: &str, rows: impl Iterator<Item = &'a Row>) {
    let all: Vec<&Row> = rows.collect();
    let got: Vec<&Row> = all.iter().copied().filter(|row| row.error().is_some()).collect();
    let mut errors: Vec<f64> = got.iter().filter_map(|row| row.error()).map(|e| e * 100.0).collect();
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    let mut halves: Vec<f64> = got.iter().map(|row| row.half_width() * 100.0).collect();
    let held = got.iter().filter(|row| inside(&row.outcome)).count() as f64 / got.len().max(1) as f64 * 100.0;
    let fair = got.iter().filter(|row| row.outcome.estimate.discipline == Discipline::Fair).count();
    let mut q = |p| quantile(&mut errors, p);
    let (low, middle, high) = (q(0.05), q(0.5), q(0.95));
    let _ = writeln!(
        text,
        "| {what} | {class} | {} | {} | {low:.2} | {middle:.2} | {high:.2} | {:.2} | {:.2} | {held:.1} % | {:.2} | {:.2} | {fair} |",
        all.len(),
        all.len() - got.len(),
        quantile(&mut sizes, 0.5),
        quantile(&mut sizes, 0.95),
        quantile(&mut halves, 0.5),
        quantile(&mut halves, 0.9),
    );
}

/// All cases, one a line, with a header.
pub fn csv(rows: &[Row]) -> String {
    let mut text = String::from("seed");
    for (what, _) in rows.first().map_or(&[][..], |row| &row.classes) {
        let _ = write!(text, ",{what}");
    }
    text.push_str(",queueing,capacity_bps,truth_bps,value_bps,low_bps,high_bps,why_not,said,bytes,elapsed_s\n");
    for row in rows {
        let Outcome { estimate, truth, capacity, elapsed, sent_bytes } = &row.outcome;
        let _ = write!(text, "{}", row.seed);
        for (_, class) in row.classes {
            let _ = write!(text, ",{class}");
        }
        let why = |why: WhyNot| format!("{why:?}");
        let _ = writeln!(
            text,
            ",{},{capacity:.0},{truth:.0},{},{:.0},{:.0},{},{:?},{sent_bytes},{:.3}",
            if row.fair { "fair" } else { "shared" },
            estimate.value_bps.map_or(String::new(), |v| format!("{v:.0}")),
            estimate.low_bps,
            estimate.high_bps,
            estimate.why_not.map_or(String::new(), why),
            estimate.discipline,
            elapsed.as_secs_f64(),
        );
    }
    text
}
