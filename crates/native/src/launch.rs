//! `Launch`: a program run under a controller, over Multipath TCP where asked.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use pathcast_launch::{Launch as Run, LaunchError, Live, Steered};
use pyo3::prelude::*;

use crate::error::{Failed, json};
use crate::fabric::PyFabric;

/// A program, and how its TCP is to be run.
#[pyclass(frozen)]
pub struct Launch(Run);

#[pymethods]
impl Launch {
    /// network: who is told of the subflows of a steered network (`PyFabric`), and its paths' names.
    #[new]
    #[pyo3(signature = (id, command, directory, control=None, mptcp=false, paths=vec![], user=None, steered=false, network=None))]
    #[allow(clippy::too_many_arguments)] // they have names
    fn new(
        id: String,
        command: Vec<OsString>,
        directory: PathBuf,
        control: Option<String>,
        mptcp: bool,
        paths: Vec<IpAddr>,
        user: Option<String>,
        steered: bool,
        network: Option<(Py<PyAny>, Vec<String>)>,
    ) -> Self {
        let network = network.map(|(fabric, paths)| Steered { fabric: Arc::new(PyFabric(fabric)), paths });
        Launch(Run { id, command, control, mptcp, paths, user, steered, network, live: Live::default(), directory })
    }

    /// What the program has sent and received until now, by pair of addresses, and how many connections to other hosts it
    /// has open, by address of this one; from any thread; None where it does not run.
    fn seen(&self, py: Python<'_>) -> Option<String> {
        let seen = py.detach(|| self.0.live.seen());
        seen.map(|(paths, open)| json(&serde_json::json!({ "paths": paths, "open": open })))
    }

    /// Another controller, as the kernel calls it, and a bound for the rate of each connection [byte/s].
    #[pyo3(signature = (control, pace=None))]
    fn order(&self, py: Python<'_>, control: &str, pace: Option<u32>) -> PyResult<bool> {
        py.detach(|| self.0.live.order(control, pace)).map_err(|e| Failed::new(e).into_py(py))
    }

    /// The addresses that the lines have now, for the next `allow`.
    fn renew(&self, addresses: Vec<IpAddr>) {
        self.0.live.renew(&addresses);
    }

    /// The addresses that connections may use from now on, of those of the run; of the others those whose endpoints are the
    /// user's, and are backups, and those whose endpoints another run uses.
    fn allow(&self, py: Python<'_>, addresses: Vec<IpAddr>) -> PyResult<(Vec<String>, Vec<String>)> {
        let stay = py.detach(|| self.0.live.allow(&addresses)).map_err(|e| Failed::new(e).into_py(py))?;
        let told = |addresses: Vec<IpAddr>| addresses.iter().map(IpAddr::to_string).collect();
        Ok((told(stay.backups), told(stay.shared)))
    }

    /// Tells the program, and what it has started, to end (SIGTERM); says whether it was there.
    fn end(&self) -> bool {
        self.0.live.end()
    }

    /// Kills them; says whether the program was there.
    fn kill(&self) -> bool {
        self.0.live.kill()
    }

    /// What `run` will make, for a state record. Called on the thread that calls `run`.
    fn made(&self) -> String {
        json(&self.0.made())
    }

    /// Runs the program to its end: its exit status and the report. A signal that Python has noted until then is raised
    /// in place of the program's start; later ones go to the program.
    ///
    /// first, pace: what `allow` and `order` are told before the program begins. ended: is called with the exit status as
    /// soon as the program has ended; what it raises is raised in the end.
    #[pyo3(signature = (first=None, pace=None, ended=None))]
    fn run(
        &self,
        py: Python<'_>,
        first: Option<Vec<IpAddr>>,
        pace: Option<u32>,
        ended: Option<Py<PyAny>>,
    ) -> PyResult<(i32, String)> {
        let (mut noted, mut told) = (Ok(()), Ok(()));
        let tell = |status: i32| {
            if let Some(ended) = ended {
                told = Python::attach(|py| ended.call1(py, (status,)).map(drop));
            }
        };
        let begin = || {
            if let Some(addresses) = &first {
                self.0.live.allow(addresses)?;
            }
            if pace.is_some() {
                self.0.live.order(self.0.control.as_deref().unwrap_or_default(), pace)?;
            }
            Ok::<(), LaunchError>(())
        };
        let done = py.detach(|| {
            let called_off = || {
                let begun = begin();
                noted = Python::attach(|py| {
                    py.check_signals()?;
                    begun.map_err(|e| fail(py, e))
                });
                noted.is_err()
            };
            self.0.run_unless(called_off, tell)
        });
        let outcome = done.map_err(|e| fail(py, e))?;
        noted?;
        told?;
        let outcome = outcome.expect("only a signal calls it off");
        Ok((outcome.status, json(&outcome.report)))
    }
}

/// The exit status of a command that cannot be run (126, 127) is carried beside the error, as shells have it.
fn fail(py: Python<'_>, error: LaunchError) -> PyErr {
    let status = error.status();
    let raised = Failed::new(error).into_py(py);
    // a number on an exception object cannot fail
    let _ = raised.value(py).setattr("status", status);
    raised
}

/// Opens the file of a report, as the user whom the program will run as: the descriptor, which is the caller's to close, and
/// whether the file is the report's alone.
#[pyfunction]
#[pyo3(signature = (path, user=None))]
pub fn open_report(py: Python<'_>, path: PathBuf, user: Option<String>) -> PyResult<(i32, bool)> {
    let opened = py.detach(|| pathcast_launch::open_report(&path, user.as_deref()));
    opened.map(|(file, alone)| (file.into_raw_fd(), alone)).map_err(|e| Failed::new(e).into_py(py))
}

/// Removes a cgroup that an earlier run has left behind; says whether there was one.
#[pyfunction]
pub fn remove_cgroup(py: Python<'_>, path: String) -> PyResult<bool> {
    py.detach(|| pathcast_launch::remove(&path)).map_err(|e| Failed::new(e).into_py(py))
}

/// Ends what an earlier run has left running in its cgroup; says how many processes there were.
#[pyfunction]
pub fn end_cgroup(py: Python<'_>, path: String) -> PyResult<usize> {
    py.detach(|| pathcast_launch::end(&path)).map_err(|e| Failed::new(e).into_py(py))
}

/// Removes the endpoint that an earlier run has left behind, in a network namespace (its name, or a path that begins
/// with `/`) or in this one; says whether there was one.
#[pyfunction]
pub fn remove_endpoint(
    py: Python<'_>,
    address: IpAddr,
    directory: PathBuf,
    namespace: Option<String>,
) -> PyResult<bool> {
    py.detach(|| {
        let mut done = Ok(false);
        let mut work = || done = pathcast_launch::remove_endpoint(address, &directory);
        match &namespace {
            Some(name) => pathcast_emu::inside(name, &mut work)
                .map_err(|e| Failed::runtime("undo", format!("cannot enter the namespace {name}: {e}")))?,
            None => work(),
        }
        done.map_err(Failed::new)
    })
    .map_err(|e| e.into_py(py))
}
