//! `Network`: an emulated network.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pathcast_base::Nanos;
use pathcast_scenario::{Direction, Template};
use pyo3::prelude::*;
use serde::Serialize;

use crate::NAME;
use crate::error::{Failed, json};

/// A direction as it is written; none: both.
pub fn direction(text: Option<&str>) -> Result<Option<Direction>, Failed> {
    match text {
        None => Ok(None),
        Some("ab") => Ok(Some(Direction::Ab)),
        Some("ba") => Ok(Some(Direction::Ba)),
        Some(other) => Err(Failed::usage(format!("direction `{other}`: allowed are ab, ba"))),
    }
}

/// A link's new parameters as a document.
fn of_direction(link: &str, new: Vec<(Direction, impl Serialize)>) -> String {
    let new: BTreeMap<_, _> = new.into_iter().map(|(direction, params)| (direction.name(), params)).collect();
    json(&serde_json::json!({ "link": link, "params": new }))
}

/// An emulated network that stands until `close`. Threads may share it: they take turns.
#[pyclass(frozen)]
pub struct Network(Mutex<Option<pathcast_emu::Network>>);

impl Network {
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut pathcast_emu::Network) -> Result<T, Failed> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        py.detach(|| {
            let mut network = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            work(network.as_mut().ok_or_else(|| Failed::runtime("closed", "the network is closed".into()))?)
        })
        .map_err(|e| e.into_py(py))
    }
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (text, sets, id, base=None, name=NAME))]
    fn new(
        py: Python<'_>,
        text: String,
        sets: Vec<(String, String)>,
        id: String,
        base: Option<PathBuf>,
        name: &str,
    ) -> PyResult<Self> {
        py.detach(|| {
            let template = Template::named(&text, name, base.as_deref()).map_err(Failed::new)?;
            pathcast_emu::Network::of(template, &sets, &id).map_err(|e| Failed::of(&*e))
        })
        .map(|network| Network(Mutex::new(Some(network))))
        .map_err(|e| e.into_py(py))
    }

    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |network| Ok(json(&network.describe())))
    }

    /// New parameters by direction.
    fn set(
        &self,
        py: Python<'_>,
        link: String,
        direction: Option<String>,
        changes: Vec<(String, String)>,
    ) -> PyResult<String> {
        self.with(py, |network| {
            let direction = self::direction(direction.as_deref())?;
            let new = network.set(&link, direction, &changes).map_err(|e| Failed::of(&*e))?;
            Ok(of_direction(&link, new))
        })
    }

    /// Begins the scenario's time anew in `lead_ns`; its zero on the monotonic clock [ns].
    fn restart(&self, py: Python<'_>, lead_ns: u64) -> PyResult<u64> {
        self.with(py, |network| network.restart(Nanos(lead_ns)).map(|at| at.0).map_err(|e| Failed::of(&*e)))
    }

    fn ledger(&self, py: Python<'_>, reset: bool) -> PyResult<String> {
        self.with(py, |network| network.ledger(reset).map(|l| json(&l)).map_err(Failed::new))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

/// Removes a namespace that an earlier process left behind.
#[pyfunction]
pub fn remove_namespace(py: Python<'_>, name: String) -> PyResult<()> {
    pathcast_emu::remove(&name)
        .map_err(|e| Failed::runtime("undo", format!("cannot remove the namespace {name}: {e}")).into_py(py))
}
