//! Scenarios and traces for the tests of this directory.

use std::fmt::Write;

use pathcast_base::Nanos;
use pathcast_scenario::Scenario;
use pathcast_sim::{Column, Options, Outcome, Report, Table, simulate};

/// Every controller of the register, in its order.
pub fn controllers() -> Vec<&'static str> {
    pathcast_congestion::controllers().iter().map(|info| info.name).collect()
}

/// A scenario's text, put together piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Text(pub String);

impl Text {
    /// A seed and, if it is not empty, the end of the run.
    pub fn new(seed: u64, end: &str) -> Text {
        let mut text = format!("seed = {seed}\n");
        if !end.is_empty() {
            writeln!(text, "end = \"{end}\"").unwrap();
        }
        Text(text)
    }
    /// A link from client to server, and a path of the same name over it. `rest`: its other keys, as in a file.
    pub fn path(mut self, name: &str, rest: &str) -> Text {
        writeln!(self.0, "[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\n{}", lines(rest)).unwrap();
        writeln!(self.0, "[[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]").unwrap();
        self
    }
    /// A flow over paths; `rest`: its other keys.
    pub fn flow(mut self, name: &str, paths: &[&str], control: &str, rest: &str) -> Text {
        let rest = lines(rest);
        writeln!(self.0, "[[flow]]\nname = \"{name}\"\npaths = {paths:?}\ncontrol = \"{control}\"\n{rest}").unwrap();
        self
    }
    /// A table with its keys: `[tcp]`, `[[change]]`, `[[traffic]]`, …
    pub fn table(mut self, header: &str, rest: &str) -> Text {
        writeln!(self.0, "{header}\n{}", lines(rest)).unwrap();
        self
    }
    /// Runs it.
    pub fn run(&self) -> Report {
        run(&self.0, &Options::default()).report
    }
    /// Runs it with a row of the trace at every ACK.
    pub fn traced(&self) -> (Report, Rows) {
        let outcome = run(&self.0, &Options { trace: Some(Nanos(0)), ..Options::default() });
        (outcome.report, Rows::new(&outcome.trace.expect("asked for").windows()))
    }
}

/// `a = 1; b = 2` on lines of their own.
fn lines(rest: &str) -> String {
    rest.split(';').map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Runs a text.
pub fn run(text: &str, options: &Options) -> Outcome {
    let scenario = Scenario::parse(text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    simulate(scenario, options).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The report as JSON without what the machine took for it.
pub fn json(report: &Report) -> String {
    let report = Report { cpu_s: 0.0, wall_s: 0.0, ..report.clone() };
    serde_json::to_string(&report).expect("a report is JSON")
}

/// A column of whole numbers.
pub fn whole(table: &Table, name: &str) -> Vec<u64> {
    match table.iter().find(|(n, _)| *n == name) {
        Some((_, Column::Whole(values))) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// A column of numbers.
pub fn real(table: &Table, name: &str) -> Vec<f64> {
    match table.iter().find(|(n, _)| *n == name) {
        Some((_, Column::Real(values))) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// One row of a subflow's trace.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub time: f64,
    pub flow: u64,
    pub subflow: u64,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub in_flight: u64,
    pub srtt: f64,
    pub state: u64,
    pub acked: u64,
    pub word: u64,
}

/// A trace by rows.
#[derive(Clone, Debug)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    fn new(table: &Table) -> Rows {
        let [time, srtt] = ["time_s", "srtt_s"].map(|name| real(table, name));
        let names = ["flow", "subflow", "cwnd_packets", "ssthresh_packets", "in_flight_packets", "state"];
        let [flow, subflow, cwnd, ssthresh, in_flight, state] = names.map(|name| whole(table, name));
        let [acked, word] = ["acked_bytes", "control_word"].map(|name| whole(table, name));
        let row = |i: usize| Row {
            time: time[i],
            flow: flow[i],
            subflow: subflow[i],
            cwnd: cwnd[i],
            ssthresh: ssthresh[i],
            in_flight: in_flight[i],
            srtt: srtt[i],
            state: state[i],
            acked: acked[i],
            word: word[i],
        };
        Rows((0..time.len()).map(row).collect())
    }
    /// Those of one subflow of a flow.
    pub fn of(&self, flow: u64, subflow: u64) -> Vec<Row> {
        self.0.iter().filter(|row| row.flow == flow && row.subflow == subflow).copied().collect()
    }
}

/// The mean over time of a value that holds until the next row, between two times.
pub fn mean_between(rows: &[Row], from: f64, to: f64, value: impl Fn(&Row) -> f64) -> f64 {
    let inside: Vec<&Row> = rows.iter().filter(|row| row.time >= from && row.time < to).collect();
    let sum: f64 = inside.windows(2).map(|w| value(w[0]) * (w[1].time - w[0].time)).sum();
    sum / (inside[inside.len() - 1].time - inside[0].time)
}

/// Whether a value is within a share of what was expected.
#[track_caller]
pub fn near(value: f64, expected: f64, share: f64, what: &str) {
    assert!((value / expected - 1.0).abs() <= share, "{what}: {value} is not within {share} of {expected}");
}

/// Shows a measured value with `--nocapture`, for `docs/evidence/simulator.md`.
pub fn shows(what: &str, value: impl std::fmt::Display) {
    println!("MEASURED {what}: {value}");
}
