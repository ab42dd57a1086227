//! `Client`: a session with a far end, and transfers to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pathcast_net::{PathAddr, Progress, TransferOptions, TransferReport};
use pyo3::prelude::*;

use crate::error::{Failed, json, read};
use crate::server::KeyText;
use crate::sockets::sockets;

/// A handle on one transfer, for another thread: its progress, and the wish to break it off.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Job {
    pub(crate) acked: AtomicU64,
    pub(crate) cancelled: AtomicBool,
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
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A session with a far end.
#[pyclass(frozen)]
pub struct Client(std::sync::Mutex<Option<Arc<pathcast_net::Client>>>);

impl Client {
    fn open(&self) -> Result<Arc<pathcast_net::Client>, Failed> {
        let client = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        client.clone().ok_or_else(|| Failed::runtime("closed", "the session is closed".into()))
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
            ..Default::default()
        };
        run(&client, &mut options).map(|report| json(&report)).map_err(Failed::new)
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(
        py: Python<'_>,
        namespace: Option<String>,
        address: &str,
        port: u16,
        key_id: String,
        secret: String,
    ) -> PyResult<Self> {
        let connect = || {
            let ip: IpAddr = address.parse().map_err(|e| Failed::usage(format!("address `{address}`: {e}")))?;
            let key = KeyText { id: key_id, secret }.key()?;
            pathcast_net::Client::connect(sockets(namespace), SocketAddr::new(ip, port), key).map_err(Failed::new)
        };
        py.detach(connect)
            .map(|client| Client(std::sync::Mutex::new(Some(Arc::new(client)))))
            .map_err(|e| e.into_py(py))
    }

    /// The address pairs to the far end, usable ones and the others with the reason.
    fn paths(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let survey = self.open()?.survey().map_err(Failed::new)?;
            Ok(json(&serde_json::json!({ "usable": survey.usable, "unusable": survey.unusable })))
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
    #[pyo3(signature = (job, paths, bytes, control=None))]
    fn mptcp(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        paths: String,
        bytes: u64,
        control: Option<String>,
    ) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let paths: Vec<PathAddr> = read(&paths)?;
            self.transfer(job, control.as_deref(), |c, options| c.mptcp_transfer(&paths, bytes, options))
        })
        .map_err(|e| e.into_py(py))
    }

    fn close(&self, py: Python<'_>) {
        let client = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        py.detach(|| drop(client));
    }
}
