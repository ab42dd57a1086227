//! `simulate`: a scenario in the simulator, from its text to its report and its traces; `simulate_flows`: to its report
//! and the progress of its flows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pathcast_base::{Exit, Nanos};
use pathcast_scenario::{Scenario, ScenarioError, Template};
use pathcast_sim::{Column, Options, SimError, Table, each, processors};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Failed, json};
use crate::many::outcome;

/// A handle on one simulation, for another thread: the wish to break it off.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Table, column, type (`u64` or `f64`) and little-endian values of one traced column.
type Traced<'py> = (&'static str, &'static str, &'static str, Bound<'py, PyBytes>);

/// Runs a scenario. `source` is its file, for errors and for the name of one that does not say it; `events` and `time_ns`
/// end a run early; traces have a row at most every `trace_ns`, zero: at every ACK. The answer is the report as JSON and
/// the traced columns.
#[pyfunction]
#[pyo3(signature = (text, sets, source, job, events, time_ns, trace_ns=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn simulate<'py>(
    py: Python<'py>,
    text: String,
    sets: Vec<(String, String)>,
    source: Option<PathBuf>,
    job: Py<Stop>,
    events: u64,
    time_ns: u64,
    trace_ns: Option<u64>,
) -> PyResult<(String, Vec<Traced<'py>>)> {
    let options = Options { events, time: Nanos(time_ns), trace: trace_ns.map(Nanos), stop: job.get().0.clone() };
    let run = || {
        let scenario = Scenario::from_text(&text, &sets, source.as_deref()).map_err(Failed::new)?;
        let outcome = pathcast_sim::simulate(scenario, &options)
            .map_err(|error| failed(&text, &sets, source.as_deref(), error))?;
        let traces = outcome.trace.map_or_else(Vec::new, |trace| {
            let named = [("windows", trace.windows()), ("queues", trace.queues()), ("drops", trace.drops())];
            named.into_iter().flat_map(columns).collect()
        });
        Ok((json(&outcome.report), traces))
    };
    let (report, traces) = py.detach(run).map_err(|e: Failed| e.into_py(py))?;
    let traces = traces.into_iter().map(|(table, name, kind, data)| (table, name, kind, PyBytes::new(py, &data)));
    Ok((report, traces.collect()))
}

/// Runs a scenario with each of `runs` over `sets`, by so many threads or as many as there are processors; its text is
/// read once. The answer is of each, in their order, `{"report": …}` or `{"error": …}`.
#[pyfunction]
#[pyo3(signature = (text, sets, source, job, runs, events, time_ns, threads=None))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn simulate_many(
    py: Python<'_>,
    text: String,
    sets: Vec<(String, String)>,
    source: Option<PathBuf>,
    job: Py<Stop>,
    runs: Vec<Vec<(String, String)>>,
    events: u64,
    time_ns: u64,
    threads: Option<usize>,
) -> PyResult<Vec<String>> {
    let options = Options { events, time: Nanos(time_ns), trace: None, stop: job.get().0.clone() };
    let run = || {
        let template = Template::from_text(&text, source.as_deref()).map_err(Failed::new)?;
        Ok(each(&runs, threads.unwrap_or_else(processors), |own| {
            let sets: Vec<_> = sets.iter().chain(own).cloned().collect();
            if options.stop.load(Ordering::Relaxed) {
                return outcome::<()>(Err(Failed::with("interrupted", "interrupted".into(), Exit::Interrupted)));
            }
            let report = template.scenario(&sets).map_err(Failed::new).and_then(|scenario| {
                pathcast_sim::simulate(scenario, &options)
                    .map_err(|error| failed(&text, &sets, source.as_deref(), error))
            });
            outcome(report.map(|outcome| outcome.report))
        }))
    };
    py.detach(run).map_err(|e: Failed| e.into_py(py))
}

/// Runs only the named flows of a scenario, which is called `name` if it does not say it; files that it names are relative
/// to `base`. The answer is the report, and of every flow a list of samples, one every `every_ns`, both as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn simulate_flows(
    py: Python<'_>,
    text: String,
    sets: Vec<(String, String)>,
    base: Option<PathBuf>,
    name: &str,
    job: Py<Stop>,
    names: Vec<String>,
    every_ns: u64,
    events: u64,
) -> PyResult<(String, String)> {
    let options = Options { events, stop: job.get().0.clone(), ..Options::default() };
    let run = || {
        let template = Template::named(&text, name, base.as_deref()).map_err(Failed::new)?;
        let mut scenario = template.scenario(&sets).map_err(Failed::new)?;
        scenario.keep_flows(&names);
        let (report, series) = pathcast_sim::sampled(scenario, &options, Nanos(every_ns))
            .map_err(|error| failed(&text, &sets, None, error))?;
        Ok((json(&report), json(&series)))
    };
    py.detach(run).map_err(|e: Failed| e.into_py(py))
}

fn failed(text: &str, sets: &[(String, String)], source: Option<&Path>, error: SimError) -> Failed {
    match error {
        SimError::Refused { key, problem, allowed } => {
            Failed::new(ScenarioError::refused(text, sets, source, key, problem, allowed))
        }
        other => Failed::new(other),
    }
}

type Raw = (&'static str, &'static str, &'static str, Vec<u8>);

fn columns((table, columns): (&'static str, Table)) -> impl Iterator<Item = Raw> {
    columns.into_iter().map(move |(name, column)| match column {
        Column::Whole(values) => (table, name, "u64", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Column::Real(values) => (table, name, "f64", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    })
}
