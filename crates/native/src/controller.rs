//! The controllers: their register, and the replay of a whole sequence of events in one call.

use pathcast_congestion::{Params, controller, controllers as register, parse_value};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Failed, json};

/// All controllers with their parameters, as JSON.
#[pyfunction]
pub fn controllers() -> String {
    let rows = register().iter().map(|info| {
        let params = info.params.iter().map(|p| {
            serde_json::json!({
                "name": p.name, "default": p.default, "least": p.least, "most": p.most, "text": p.text, "source": p.source,
            })
        });
        serde_json::json!({
            "name": info.name, "kernel_name": info.kernel_name, "paper": info.paper, "basis": info.basis,
            "params": params.collect::<Vec<_>>(), "state_bytes": info.state_bytes, "hooks": info.hooks.0,
        })
    });
    json(&rows.collect::<Vec<_>>())
}

/// The value of a controller's parameter as it is written, such as `10KB` of one in bytes.
#[pyfunction]
pub fn parse_parameter(py: Python<'_>, name: &str, text: &str) -> PyResult<u64> {
    parse_value(name, text).map_err(|reason| Failed::usage(reason).into_py(py))
}

/// The parameters of a controller, `params` being those that differ from the default.
pub fn params(control: &str, params: &[(String, u64)]) -> Result<Params, Failed> {
    let mut values = Params::new(controller(control).map_err(Failed::new)?);
    for (name, value) in params {
        values.set(name, *value).map_err(Failed::new)?;
    }
    Ok(values)
}

/// Replays `events` with a controller: rows of numbers as `pathcast_congestion::replay` has them.
#[pyfunction]
pub fn replay<'py>(
    py: Python<'py>,
    control: String,
    params: Vec<(String, u64)>,
    events: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let run = || {
        let params = self::params(&control, &params)?;
        pathcast_congestion::replay(&params, events).map_err(|e| Failed::usage(e.to_string()))
    };
    Ok(PyBytes::new(py, &py.detach(run).map_err(|e| e.into_py(py))?))
}
