//! The Python extension: conversions, errors and the release of the GIL; no logic. Structured values cross as JSON.

mod client;
mod controller;
mod error;
mod fabric;
mod kernel;
mod launch;
mod look;
mod many;
mod measure;
mod network;
mod server;
mod simulator;
mod sockets;
mod world;

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error::{Failed, json};

/// The name of a scenario that does not say it, if nobody else does.
pub(crate) const NAME: &str = "scenario";

/// A checked scenario as JSON; files that it names are relative to `base`, and `name` is its own if it does not say it.
#[pyfunction]
#[pyo3(signature = (text, sets, base=None, name=NAME))]
fn scenario(
    py: Python<'_>,
    text: String,
    sets: Vec<(String, String)>,
    base: Option<PathBuf>,
    name: &str,
) -> PyResult<String> {
    py.detach(|| {
        let template = pathcast_scenario::Template::named(&text, name, base.as_deref()).map_err(Failed::new)?;
        Ok(json(&template.scenario(&sets).map_err(Failed::new)?))
    })
    .map_err(|e: Failed| e.into_py(py))
}

/// The JSON schema of the scenario format.
#[pyfunction]
fn scenario_schema() -> String {
    json(&pathcast_scenario::schema())
}

/// Bytes of a written size, such as `256MB`.
#[pyfunction]
fn parse_bytes(py: Python<'_>, text: &str) -> PyResult<u64> {
    text.parse::<pathcast_base::Bytes>().map(|b| b.0).map_err(|e| Failed::usage(e.to_string()).into_py(py))
}

/// Nanoseconds of a written duration, such as `150ms`.
#[pyfunction]
fn parse_duration(py: Python<'_>, text: &str) -> PyResult<u64> {
    text.parse::<pathcast_base::Nanos>().map(|t| t.0).map_err(|e| Failed::usage(e.to_string()).into_py(py))
}

/// Bits a second of a written rate, such as `10Mbit`.
#[pyfunction]
fn parse_rate(py: Python<'_>, text: &str) -> PyResult<u64> {
    text.parse::<pathcast_base::Rate>().map(|r| r.0).map_err(|e| Failed::usage(e.to_string()).into_py(py))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("SOURCE_DIGEST", env!("PATHCAST_SOURCE_DIGEST"))?;
    module.add_function(wrap_pyfunction!(scenario, module)?)?;
    module.add_function(wrap_pyfunction!(scenario_schema, module)?)?;
    module.add_function(wrap_pyfunction!(parse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(parse_duration, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(controller::controllers, module)?)?;
    module.add_function(wrap_pyfunction!(controller::parse_parameter, module)?)?;
    module.add_function(wrap_pyfunction!(controller::replay, module)?)?;
    module.add_function(wrap_pyfunction!(simulator::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulator::simulate_flows, module)?)?;
    module.add_function(wrap_pyfunction!(simulator::simulate_many, module)?)?;
    module.add_function(wrap_pyfunction!(many::draws, module)?)?;
    module.add_function(wrap_pyfunction!(measure::stamp, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measure_costs, module)?)?;
    module.add_function(wrap_pyfunction!(network::remove_namespace, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::controllers_in_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::kernel_ready, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::free_controller_name, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::pin_root, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::pinned, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::unpin, module)?)?;
    module.add_function(wrap_pyfunction!(launch::open_report, module)?)?;
    module.add_function(wrap_pyfunction!(launch::end_cgroup, module)?)?;
    module.add_function(wrap_pyfunction!(launch::remove_cgroup, module)?)?;
    module.add_function(wrap_pyfunction!(launch::remove_endpoint, module)?)?;
    module.add_class::<kernel::Controller>()?;
    module.add_class::<launch::Launch>()?;
    module.add_class::<network::Network>()?;
    module.add_class::<server::Server>()?;
    module.add_function(wrap_pyfunction!(server::read_keys, module)?)?;
    module.add_function(wrap_pyfunction!(server::parse_keys, module)?)?;
    module.add_function(wrap_pyfunction!(server::write_key, module)?)?;
    module.add_class::<simulator::Stop>()?;
    module.add_class::<client::Client>()?;
    module.add_class::<client::Job>()?;
    module.add_class::<world::World>()
}
