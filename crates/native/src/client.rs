//! `Client`: a session with a far end, and transfers to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pathcast_base::{Nanos, PathAddr, Protocol, TransferReport};
use pathcast_far::{KeyText, plain};
use pathcast_net::udp::{DriveOptions, SessionClock, drive};
use pathcast_net::{Fabric, Key, Progress, SocketMaker, TransferOptions, entropy};
use pyo3::prelude::*;

use crate::error::{Failed, json, read};
use crate::fabric::PyFabric;
use crate::look;
use crate::measure;
use crate::sockets::sockets;

/// A handle on one transfer, for another thread: its progress, and the wish to break it off.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Job {
    pub(crate) acked: AtomicU64,
    /// Shared with a simulation, which looks at it between its events.
    pub(crate) cancelled: Arc<AtomicBool>,
    samples: Mutex<Vec<serde_json::Value>>,
    phase: Mutex<Option<(String, u64, u64)>>,
}

impl Job {
    pub(crate) fn set_phase(&self, phase: &str, done: u64, of: u64) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = Some((phase.into(), done, of));
    }
}

#[pymethods]
impl Job {
    #[new]
    fn new() -> Job {
        Job::default()
    }
    /// Application bytes acknowledged so far.
    fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }
    /// The samples of a flow so far, as JSON; their times are since connect().
    fn samples(&self, py: Python<'_>) -> String {
        py.detach(|| json(&*self.samples.lock().unwrap_or_else(PoisonError::into_inner)))
    }
    /// Of a measurement: its phase, steps of it that are done, how many there are (0: unknown).
    fn phase(&self) -> Option<(String, u64, u64)> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A session with a far end.
#[pyclass(frozen)]
pub struct Client {
    session: Mutex<Option<Arc<pathcast_net::Client>>>,
    sockets: Arc<dyn SocketMaker>,
    port: u16,
    key: Key,
    fabric: Option<Arc<dyn Fabric>>,
}

impl Client {
    fn open(&self) -> Result<Arc<pathcast_net::Client>, Failed> {
        let client = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        client.clone().ok_or_else(|| Failed::runtime("closed", "the session is closed".into()))
    }

    fn measured(&self, job: &Job, request: &str) -> Result<String, Failed> {
        let request: measure::Request = read(request)?;
        let clock = SessionClock::start();
        let mut machine = request.machine(self.key.clone(), clock.state(), entropy().map_err(Failed::new)?)?;
        let mut told = |progress| measure::tell(job, progress);
        let options = DriveOptions {
            clock,
            cancel: Some(&job.cancelled),
            on_progress: Some(&mut told),
            urgent: true,
            fabric: self.fabric.clone(),
        };
        let driven = drive(&*self.sockets, &request.paths, self.port, &mut machine, options).map_err(Failed::new)?;
        measure::document(&driven.result, driven.tally.notes())
    }

    fn transfer(
        &self,
        job: &Job,
        control: Option<&str>,
        run: impl FnOnce(&pathcast_net::Client, &mut TransferOptions<'_>) -> Result<TransferReport, pathcast_net::NetError>,
    ) -> Result<String, Failed> {
        let client = self.open()?;
        let mut sample = |p: &Progress<'_>| job.acked.store(p.bytes_acked, Ordering::Relaxed);
        let mut options = TransferOptions {
            control,
            on_sample: Some(&mut sample),
            cancel: Some(&job.cancelled),
            fabric: self.fabric.clone(),
            ..Default::default()
        };
        run(&client, &mut options).map(|report| json(&report)).map_err(Failed::new)
    }
}

#[pymethods]
impl Client {
    /// fabric: who is told which path every flow of the transfers is to take (`PyFabric`).
    #[new]
    #[pyo3(signature = (namespace, addresses, port, key_id, secret, fabric=None))]
    fn new(
        py: Python<'_>,
        namespace: Option<String>,
        addresses: Vec<String>,
        port: u16,
        key_id: String,
        secret: String,
        fabric: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let fabric = fabric.map(|object| Arc::new(PyFabric(object)) as Arc<dyn Fabric>);
        let connect = || {
            let mut servers = Vec::new();
            for address in &addresses {
                let ip: IpAddr = address.parse().map_err(|e| Failed::usage(format!("address `{address}`: {e}")))?;
                servers.push(SocketAddr::new(ip, port));
            }
            let key = KeyText { id: key_id, secret }.key().map_err(Failed::new)?;
            let sockets = sockets(namespace);
            let client = pathcast_net::Client::connect_any(sockets.clone(), &servers, key.clone());
            let session = Mutex::new(Some(Arc::new(client.map_err(Failed::new)?)));
            Ok(Client { session, sockets, port, key, fabric })
        };
        py.detach(connect).map_err(|e: Failed| e.into_py(py))
    }

    /// A measurement of paths, over UDP; the far end listens at the port of the session.
    fn measure(&self, py: Python<'_>, job: Py<Job>, request: String) -> PyResult<String> {
        let job = job.get();
        py.detach(|| self.open().and_then(|_| self.measured(job, &request))).map_err(|e| e.into_py(py))
    }

    /// The address pairs to the far end, usable ones and the others with the reason.
    fn paths(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let survey = self.open()?.survey().map_err(Failed::new)?;
            Ok(json(&serde_json::json!({ "usable": survey.usable, "unusable": survey.unusable })))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Asks the far end over each of `paths` side by side: a list of what is in the way of each, or null.
    fn reach(&self, py: Python<'_>, paths: String) -> PyResult<String> {
        py.detach(|| {
            let paths: Vec<PathAddr> = read(&paths)?;
            let answers = self.open()?.reach(&paths);
            Ok(json(&answers.iter().map(|a| a.as_ref().err().map(|e| e.reason())).collect::<Vec<_>>()))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// What both ends see of a connection over `path`, over Multipath TCP or plain TCP.
    fn look(&self, py: Python<'_>, path: String, multipath: bool, patience_s: f64) -> PyResult<String> {
        py.detach(|| {
            let path: PathAddr = read(&path)?;
            let protocol = if multipath { Protocol::Mptcp } else { Protocol::Tcp };
            Ok(plain(&json(&self.open()?.look(&path, protocol, look::seconds(patience_s)).map_err(Failed::new)?)))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// What becomes of a TCP connection over `path` that asks for explicit congestion notification.
    fn look_ecn(&self, py: Python<'_>, path: String, patience_s: f64) -> PyResult<String> {
        py.detach(|| {
            let path: PathAddr = read(&path)?;
            Ok(plain(&json(&self.open()?.look_ecn(&path, look::seconds(patience_s)).map_err(Failed::new)?)))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// What becomes of packets over a path, by UDP.
    fn echo(&self, py: Python<'_>, job: Py<Job>, request: String) -> PyResult<String> {
        let job = job.get();
        py.detach(|| self.open().and_then(|_| look::echo(&*self.sockets, self.port, self.key.clone(), job, &request)))
            .map_err(|e| e.into_py(py))
    }

    /// How many answers a few questions to the STAMP reflector at `port` have, over `path`.
    fn stamp(&self, py: Python<'_>, path: String, port: u16, wait_s: f64) -> PyResult<String> {
        py.detach(|| {
            let path: PathAddr = read(&path)?;
            look::stamp(&*self.sockets, port, &self.key, &path, Nanos::from_secs_f64(wait_s))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// A TCP transfer over one path.
    #[pyo3(signature = (job, path, bytes, control=None))]
    fn tcp(&self, py: Python<'_>, job: Py<Job>, path: String, bytes: u64, control: Option<String>) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let path: PathAddr = read(&path)?;
            self.transfer(job, control.as_deref(), |c, options| c.tcp_transfer(&path, bytes, options))
        })
        .map_err(|e| e.into_py(py))
    }

    /// An MPTCP transfer over several paths, the first subflow on the first.
    #[pyo3(signature = (job, paths, bytes, control=None, plain=false))]
    fn mptcp(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        paths: String,
        bytes: u64,
        control: Option<String>,
        plain: bool,
    ) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let paths: Vec<PathAddr> = read(&paths)?;
            self.transfer(job, control.as_deref(), |c, options| {
                options.plain = plain;
                c.mptcp_transfer(&paths, bytes, options)
            })
        })
        .map_err(|e| e.into_py(py))
    }

    /// Refuses a congestion controller that transfers here cannot have.
    fn check_control(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.open()?.check_control(name).map_err(Failed::new)).map_err(|e: Failed| e.into_py(py))
    }

    /// A flow that connects in `start_ns` and is broken off in `stop_ns` if it is not done; without `bytes` it has no end
    /// of its own. The job keeps a sample every `every_ns`.
    #[pyo3(signature = (job, paths, multipath, bytes, control, start_ns, stop_ns, every_ns))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn flow(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        paths: String,
        multipath: bool,
        bytes: Option<u64>,
        control: Option<String>,
        start_ns: u64,
        stop_ns: Option<u64>,
        every_ns: u64,
    ) -> PyResult<String> {
        let now = Instant::now();
        let job = job.get();
        py.detach(|| {
            let paths: Vec<PathAddr> = read(&paths)?;
            let client = self.open()?;
            let bytes = bytes.unwrap_or_else(|| client.session().0.max_transfer_bytes);
            let mut sample = |p: &Progress<'_>| {
                let sample = serde_json::json!({
                    "at_s": p.elapsed_s, "bytes_acked": p.bytes_acked, "subflows": p.subflows,
                });
                job.samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
                job.acked.store(p.bytes_acked, Ordering::Relaxed);
            };
            let mut options = TransferOptions {
                control: control.as_deref(),
                on_sample: Some(&mut sample),
                every: Some(Duration::from_nanos(every_ns)),
                start: Some(now + Duration::from_nanos(start_ns)),
                until: stop_ns.map(|ns| now + Duration::from_nanos(ns)),
                cancel: Some(&job.cancelled),
                plain: true, // a scenario's flow is any program's
                fabric: self.fabric.clone(),
                ..Default::default()
            };
            let report = if multipath {
                client.mptcp_transfer(&paths, bytes, &mut options)
            } else {
                let [path] = &paths[..] else { return Err(Failed::usage("TCP has one path".into())) };
                client.tcp_transfer(path, bytes, &mut options)
            };
            report.map(|report| json(&report)).map_err(Failed::new)
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    fn close(&self, py: Python<'_>) {
        let client = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(client));
    }
}
