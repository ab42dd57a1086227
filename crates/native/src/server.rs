//! `Server`: the far end; and key files.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pathcast_far::{Far, KeyText, LogLine, Said, keyfile};
use pathcast_net::Key;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{Failed, json, read};
use crate::sockets::sockets;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    bind: Vec<IpAddr>,
    #[serde(default)]
    loopback: bool,
    port: u16,
    keys: Vec<KeyText>,
    addresses: Vec<IpAddr>,
    /// As written, `NAME=VALUE`.
    #[serde(default)]
    limits: Vec<String>,
    #[serde(default)]
    stamp_port: Option<u16>,
    #[serde(default)]
    stamp_open: bool,
    #[serde(default)]
    log: bool,
}

impl Config {
    fn checked(self) -> Result<pathcast_far::Config, Failed> {
        let keys: Vec<Key> = self.keys.iter().map(KeyText::key).collect::<Result<_, _>>().map_err(Failed::new)?;
        Ok(pathcast_far::Config {
            bind: self.bind,
            loopback: self.loopback,
            port: self.port,
            keys,
            announce: self.addresses,
            limits: pathcast_far::limits(&self.limits).map_err(Failed::new)?,
            stamp_port: self.stamp_port,
            stamp_open: self.stamp_open,
            log: self.log,
        })
    }
}

/// A running far end.
#[pyclass]
pub struct Server {
    /// None: it has stopped. Behind a lock, since one thread may ask while another one stops it.
    running: Mutex<Option<Far>>,
    said: Said,
}

#[pymethods]
impl Server {
    #[new]
    fn new(py: Python<'_>, namespace: Option<String>, config: &str) -> PyResult<Self> {
        let started = read::<Config>(config)
            .and_then(Config::checked)
            .and_then(|config| py.detach(|| Far::start(sockets(namespace), config)).map_err(Failed::new));
        let far = started.map_err(|e| e.into_py(py))?;
        Ok(Server { said: far.said(), running: Mutex::new(Some(far)) })
    }

    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        match &*self.running() {
            Some(far) => Ok(json(&far.describe())),
            None => Err(Failed::runtime("closed", "the far end has stopped".into()).into_py(py)),
        }
    }

    /// Whether its limits let anybody in.
    fn serves(&self) -> bool {
        self.running().as_ref().is_some_and(Far::serves)
    }

    /// What is to be said to whoever runs it, since the last call.
    fn warnings(&self) -> Vec<String> {
        if let Some(far) = &*self.running() {
            far.look();
        }
        self.said.warnings()
    }

    /// Sessions and transfers since the last call, oldest first, with when [s since 1970]; none unless asked for.
    fn log(&self) -> Vec<LogLine> {
        self.said.log()
    }

    fn stop(&self, py: Python<'_>) {
        let running = self.running().take();
        py.detach(|| drop(running));
    }
}

impl Server {
    fn running(&self) -> MutexGuard<'_, Option<Far>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Id and secret of every key, in the file's order.
type Keys = Vec<(String, String)>;

fn keys(py: Python<'_>, read: Result<Vec<KeyText>, pathcast_far::FarError>) -> PyResult<Keys> {
    let pairs = read.map(|keys| keys.into_iter().map(|key| (key.id, key.secret)).collect());
    pairs.map_err(|e| Failed::new(e).into_py(py))
}

/// The keys of a file that nobody else can read, change or exchange.
#[pyfunction]
pub fn read_keys(py: Python<'_>, path: PathBuf) -> PyResult<Keys> {
    keys(py, py.detach(|| keyfile::read(&path)))
}

/// The keys of lines `ID SECRET`; `source` is what errors call them.
#[pyfunction]
pub fn parse_keys(py: Python<'_>, text: &str, source: &str) -> PyResult<Keys> {
    keys(py, keyfile::parse(text, source))
}

/// The secret of the fresh key in a new file.
#[pyfunction]
pub fn write_key(py: Python<'_>, path: PathBuf, id: &str) -> PyResult<String> {
    keyfile::write(&path, id).map(|key| key.secret).map_err(|e| Failed::new(e).into_py(py))
}
