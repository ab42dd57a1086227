//! `Controller`: a congestion controller in the kernel, held or pinned.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pathcast_congestion::controller;
use pathcast_kernel::{FlowView, Loaded, Request};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::{Failed, json as text};

/// A loaded controller. Closed or dropped, it is unregistered unless it is pinned.
#[pyclass(frozen)]
pub struct Controller(Mutex<Option<Loaded>>);

impl Controller {
    fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&Loaded) -> Result<T, Failed> + Send) -> PyResult<T>
    where
        T: Send,
    {
        py.detach(|| {
            let loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            work(loaded.as_ref().ok_or_else(|| Failed::runtime("closed", "the controller is unloaded".into()))?)
        })
        .map_err(|e| e.into_py(py))
    }
}

#[pymethods]
impl Controller {
    /// Loads `control` with `params` over its defaults as `name`, below `root` if it is to be pinned.
    #[staticmethod]
    #[pyo3(signature = (control, params, name, root=None, entries=None))]
    fn load(
        py: Python<'_>,
        control: &str,
        params: Vec<(String, u64)>,
        name: &str,
        root: Option<PathBuf>,
        entries: Option<u32>,
    ) -> PyResult<Self> {
        py.detach(|| {
            let values = crate::controller::params(control, &params)?;
            let mut request = Request::new(name, &values);
            if let Some(root) = root {
                request = request.pin(root.join(name));
            }
            if let Some(entries) = entries {
                request = request.entries(entries);
            }
            request.load().map(|loaded| Controller(Mutex::new(Some(loaded)))).map_err(Failed::new)
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// The controller that is pinned at `path`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Loaded::open(&path).map(|loaded| Controller(Mutex::new(Some(loaded)))).map_err(Failed::new))
            .map_err(|e| e.into_py(py))
    }

    /// What it is, with the parameters in force and what was counted since it was loaded.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loaded| {
            let params = loaded.params().map_err(Failed::new)?;
            let values = params.info().params.iter().zip(params.values());
            let counts = loaded.counts().map_err(Failed::new)?;
            Ok(text(&json!({
                "kernel_name": loaded.name(),
                "name": loaded.controller(),
                "version": loaded.version(),
                "pinned": loaded.pinned(),
                "parameters": values.map(|(p, v)| (p.name.to_owned(), Value::from(*v))).collect::<serde_json::Map<_, _>>(),
                "connections": loaded.connections(),
                "counts": {
                    "opened": counts.opened, "closed": counts.closed, "unstored": counts.unstored,
                    "ungrouped": counts.ungrouped, "unlisted": counts.unlisted, "bytes_acked": counts.bytes_acked,
                    "bytes_sent": counts.bytes_sent, "bytes_received": counts.bytes_received,
                },
            })))
        })
    }

    /// Its live flows, and what those that have ended did, by path.
    fn flows(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loaded| {
            let flows = loaded.flows().map_err(Failed::new)?;
            let paths = loaded.paths().map_err(Failed::new)?;
            let ended = paths.iter().map(|p| {
                json!({
                    "local": p.local, "remote": p.remote, "flows": p.flows, "bytes_acked": p.bytes_acked,
                    "bytes_sent": p.bytes_sent, "bytes_received": p.bytes_received,
                    "packets_retransmitted": p.retransmitted,
                })
            });
            Ok(text(&json!({
                "flows": flows.iter().map(flow).collect::<Vec<_>>(), "ended": ended.collect::<Vec<_>>(),
            })))
        })
    }

    /// Changes parameters for living and later flows; returns what `describe` does.
    fn set(&self, py: Python<'_>, changes: Vec<(String, u64)>) -> PyResult<String> {
        self.with(py, |loaded| {
            let changes: Vec<_> = changes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            loaded.set(&changes).map_err(Failed::new).map(drop)
        })?;
        self.describe(py)
    }

    /// Unregisters it, and removes its pins.
    fn unload(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(loaded) => loaded.unload().map_err(Failed::new),
            None => Ok(()),
        })
        .map_err(|e| e.into_py(py))
    }

    /// Lets it go: a pinned one stays.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

fn flow(view: &FlowView) -> Value {
    let seconds = |us: u64| us as f64 / 1e6;
    json!({
        "id": view.id, "token": view.token, "subflow": view.subflow, "subflows": view.subflows,
        "local": view.local, "remote": view.remote,
        "age_s": seconds(view.updated_us.saturating_sub(view.opened_us)), "updated_s": seconds(view.updated_us),
        "bytes_acked": view.bytes_acked, "bytes_sent": view.bytes_sent, "bytes_received": view.bytes_received,
        "packets_retransmitted": view.retransmitted, "cwnd_packets": view.cwnd, "ssthresh_packets": view.ssthresh,
        "rtt_s": (view.srtt_us > 0).then(|| seconds(view.srtt_us.into())), "in_flight_packets": view.in_flight,
        "mss_bytes": view.mss, "recovery": view.recovery.map(|state| format!("{state:?}").to_lowercase()),
        "pace_bps": (view.pace_bytes_per_s > 0).then(|| view.pace_bytes_per_s.saturating_mul(8)), "phase": view.phase,
        "available_bps": view.available_bps, "words": view.words,
        "state": view.state.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
    })
}

/// The names of the controllers that can run in the kernel.
#[pyfunction]
pub fn controllers_in_kernel() -> Vec<&'static str> {
    pathcast_kernel::controllers_in_kernel().map(|info| info.name).collect()
}

/// Raises what is missing here for controllers in the kernel.
#[pyfunction]
pub fn kernel_ready(py: Python<'_>) -> PyResult<()> {
    py.detach(pathcast_kernel::ready).map_err(|e| Failed::new(e).into_py(py))
}

/// A name under which `control` can be registered now.
#[pyfunction]
pub fn free_controller_name(py: Python<'_>, control: &str) -> PyResult<String> {
    let info = controller(control).map_err(|e| Failed::new(e).into_py(py))?;
    pathcast_kernel::free_name(info).map_err(|e| Failed::new(e).into_py(py))
}

/// The directory of that name for pins; a bpffs is mounted if there is none.
#[pyfunction]
pub fn pin_root(py: Python<'_>, name: &str) -> PyResult<PathBuf> {
    py.detach(|| pathcast_kernel::pin_root(name)).map_err(|e| Failed::new(e).into_py(py))
}

/// What is pinned in the directory of that name: kernel name, path, and the controller and version, or neither where it is stale.
#[pyfunction]
pub fn pinned(py: Python<'_>, name: &str) -> PyResult<String> {
    py.detach(|| {
        let Some(root) = pathcast_kernel::pin_root_if_any(name) else { return Ok("[]".to_owned()) };
        let rows = pathcast_kernel::pinned(&root).map_err(Failed::new)?;
        let rows = rows.iter().map(|pin| {
            let (name, version) = pin.of.clone().unzip();
            json!({ "kernel_name": pin.name, "path": pin.path, "name": name, "version": version })
        });
        Ok(text(&rows.collect::<Vec<_>>()))
    })
    .map_err(|e: Failed| e.into_py(py))
}

/// Unregisters what is pinned at `path`, also what is stale there.
#[pyfunction]
pub fn unpin(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| pathcast_kernel::remove(&path)).map_err(|e| Failed::new(e).into_py(py))
}
