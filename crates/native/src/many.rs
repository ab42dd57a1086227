//! `draws`: transfers in many networks of one text. What is asked for and what came of it, of these and of continuations.

use std::path::PathBuf;

use pathcast_base::{Fault, Nanos, Protocol};
use pathcast_scenario::Template;
use pathcast_sim::{Continuation, Continued, Draw, processors};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Job;
use crate::error::{Failed, json as text, read};

/// A transfer as Python asks for it.
#[derive(Deserialize)]
pub struct Wanted {
    paths: Vec<String>,
    multipath: bool,
    bytes: u64,
    control: Option<String>,
    every_ns: Option<u64>,
    #[serde(default)]
    plain: bool,
    seed: Option<u64>,
}

#[derive(Deserialize)]
struct WantedDraw {
    sets: Vec<(String, String)>,
    wait_ns: u64,
    transfers: Vec<Wanted>,
}

/// Of all that are wanted.
pub fn continuations(wanted: Vec<Wanted>) -> Vec<Continuation> {
    let continuation = |one: Wanted| Continuation {
        paths: one.paths,
        protocol: if one.multipath { Protocol::Mptcp } else { Protocol::Tcp },
        bytes: one.bytes,
        control: one.control,
        every: one.every_ns.map(Nanos),
        plain: one.plain,
        seed: one.seed,
    };
    wanted.into_iter().map(continuation).collect()
}

/// `{"report": …}` or `{"error": …}`.
pub fn outcome<T: Serialize>(found: Result<T, Failed>) -> String {
    text(&found.map_or_else(|error| json!({ "error": error.document() }), |report| json!({ "report": report })))
}

/// The same of transfers.
pub fn outcomes(found: Continued) -> Vec<Value> {
    let of = |error: &dyn Fault| json!({ "error": Failed::of(error).document() });
    found.into_iter().map(|one| one.map_or_else(|error| of(&error), |report| json!({ "report": report }))).collect()
}

/// Transfers in networks of one text, by so many threads or as many as there are processors: of each network, in their
/// order, a list of outcomes, or `{"error": …}`.
#[pyfunction]
#[pyo3(signature = (text, base, job, draws, events, threads=None))]
pub fn draws(
    py: Python<'_>,
    text: String,
    base: Option<PathBuf>,
    job: Py<Job>,
    draws: String,
    events: u64,
    threads: Option<usize>,
) -> PyResult<String> {
    let job = job.get();
    py.detach(|| {
        let wanted: Vec<WantedDraw> = read(&draws)?;
        let draw =
            |one: WantedDraw| Draw { sets: one.sets, wait: Nanos(one.wait_ns), then: continuations(one.transfers) };
        let all: Vec<Draw> = wanted.into_iter().map(draw).collect();
        let template = Template::parse_in(&text, base.as_deref()).map_err(Failed::new)?;
        let found = pathcast_sim::draws(&template, &all, events, threads.unwrap_or_else(processors), &job.cancelled);
        let of = |one: Result<Continued, Box<dyn Fault + Send + Sync>>| match one {
            Ok(found) => json!(outcomes(found)),
            Err(error) => json!({ "error": Failed::of(&*error).document() }),
        };
        Ok(self::text(&found.into_iter().map(of).collect::<Vec<_>>()))
    })
    .map_err(|e: Failed| e.into_py(py))
}
