//! A Python object as the fabric that carries flows over paths.

use pathcast_net::{Fabric, FlowEnds};
use pyo3::prelude::*;

/// An object with `begin(flow, path)`, which returns when the flow's packets take the path, and `end(flow)`; a flow is
/// (`tcp` or `udp`, local, local_port, remote, remote_port).
pub struct PyFabric(pub Py<PyAny>);

type Flow = (&'static str, String, u16, String, u16);

fn ends(flow: FlowEnds) -> Flow {
    (
        flow.transport.name(),
        flow.local.ip().to_string(),
        flow.local.port(),
        flow.remote.ip().to_string(),
        flow.remote.port(),
    )
}

impl Fabric for PyFabric {
    fn begin(&self, flow: FlowEnds, path: &str) -> Result<(), String> {
        Python::attach(|py| {
            let done = self.0.call_method1(py, "begin", (ends(flow), path));
            // a PathcastError's text is its message
            done.map(drop).map_err(|e| e.value(py).to_string())
        })
    }

    fn end(&self, flow: FlowEnds) {
        Python::attach(|py| {
            if let Err(e) = self.0.call_method1(py, "end", (ends(flow),)) {
                e.write_unraisable(py, None); // a transfer that is over cannot fail of it
            }
        });
    }
}
