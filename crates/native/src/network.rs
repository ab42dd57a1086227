//! `Network`: an emulated network.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pathcast_base::Nanos;
use pathcast_scenario::Direction;
use pyo3::prelude::*;
use serde::Serialize;

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
pub fn of_direction(link: &str, new: Vec<(Direction, impl Serialize)>) -> String {
    let new: BTreeMap<_, _> = new.into_iter().map(|(direction, params)| (direction.name(), params)).collect();
    json(&serde_json::json!({ "link": link, "params": new }))
}

/// An emulated network that stands until `close`.
#[pyclass]
pub struct Network(Option<pathcast_emu::Network>);

impl Network {
    fn open(&mut self) -> Result<&mut pathcast_emu::Network, Failed> {
        self.0.as_mut().ok_or_else(|| Failed::runtime("closed", "the network is closed".into()))
    }
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (text, sets, id, base=None))]
    fn new(
        py: Python<'_>,
        text: String,
        sets: Vec<(String, String)>,
        id: String,
        base: Option<PathBuf>,
    ) -> PyResult<Self> {
        py.detach(|| pathcast_emu::Network::up_in(&text, &sets, base.as_deref(), &id).map_err(|e| Failed::of(&*e)))
            .map(|network| Network(Some(network)))
            .map_err(|e| e.into_py(py))
    }

    fn describe(&mut self, py: Python<'_>) -> PyResult<String> {
        self.open().map(|n| json(&n.describe())).map_err(|e| e.into_py(py))
    }

    /// New parameters by direction.
    fn set(
        &mut self,
        py: Python<'_>,
        link: String,
        direction: Option<String>,
        changes: Vec<(String, String)>,
    ) -> PyResult<String> {
        py.detach(|| {
            let direction = self::direction(direction.as_deref())?;
            let new = self.open()?.set(&link, direction, &changes).map_err(|e| Failed::of(&*e))?;
            Ok(of_direction(&link, new))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Begins the scenario's time anew in `lead_ns`; its zero on the monotonic clock [ns].
    fn restart(&mut self, py: Python<'_>, lead_ns: u64) -> PyResult<u64> {
        py.detach(|| self.open()?.restart(Nanos(lead_ns)).map(|at| at.0).map_err(|e| Failed::of(&*e)))
            .map_err(|e: Failed| e.into_py(py))
    }

    fn ledger(&mut self, py: Python<'_>, reset: bool) -> PyResult<String> {
        py.detach(|| self.open()?.ledger(reset).map(|l| json(&l)).map_err(Failed::new)).map_err(|e| e.into_py(py))
    }

    fn close(&mut self, py: Python<'_>) {
        let network = self.0.take();
        py.detach(|| drop(network));
    }
}

/// Removes a namespace that an earlier process left behind.
#[pyfunction]
pub fn remove_namespace(py: Python<'_>, name: String) -> PyResult<()> {
    pathcast_emu::remove(&name)
        .map_err(|e| Failed::runtime("undo", format!("cannot remove the namespace {name}: {e}")).into_py(py))
}
