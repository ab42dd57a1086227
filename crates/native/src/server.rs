//! `Server`: the far end.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use pathcast_net::{Key, Limits, ServerConfig, ServerEvent};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{Failed, json, read};
use crate::sockets::sockets;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Addresses to listen on; none: all.
    bind: Vec<IpAddr>,
    port: u16,
    keys: Vec<KeyText>,
    /// Addresses to announce; none: those listened on.
    addresses: Vec<IpAddr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyText {
    pub id: String,
    pub secret: String,
}

impl KeyText {
    pub fn key(&self) -> Result<Key, Failed> {
        let bad = |e: &dyn std::fmt::Display| Failed::usage(format!("key `{}`: {e}", self.id));
        let digits = &self.secret;
        if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
            return Err(bad(&"the secret is not hexadecimal"));
        }
        let bytes: Result<Vec<u8>, _> =
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16)).collect();
        Key::new(self.id.clone(), bytes.map_err(|e| bad(&e))?).map_err(|e| bad(&e))
    }
}

/// A running far end.
#[pyclass]
pub struct Server {
    server: Option<pathcast_net::Server>,
    notes: Arc<Mutex<Vec<String>>>,
}

#[pymethods]
impl Server {
    #[new]
    fn new(py: Python<'_>, namespace: Option<String>, config: &str) -> PyResult<Self> {
        start(py, namespace, config).map_err(|e| e.into_py(py))
    }

    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let Some(server) = &self.server else {
            return Err(Failed::runtime("closed", "the far end has stopped".into()).into_py(py));
        };
        let notes = self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Ok(json(&serde_json::json!({
            "listening": server.local_addrs(),
            "mptcp": server.mptcp(),
            "sessions": server.sessions(),
            "counters": server.counters(),
            "notes": notes,
        })))
    }

    fn stop(&mut self, py: Python<'_>) {
        let server = self.server.take();
        py.detach(|| server.map(pathcast_net::Server::stop));
    }
}

fn start(py: Python<'_>, namespace: Option<String>, config: &str) -> Result<Server, Failed> {
    let config: Config = read(config)?;
    let keys = config.keys.iter().map(KeyText::key).collect::<Result<_, _>>()?;
    let listen = if config.bind.is_empty() {
        vec![SocketAddr::from(([0; 4], config.port)), SocketAddr::from(([0u16; 8], config.port))]
    } else {
        config.bind.iter().map(|a| SocketAddr::new(*a, config.port)).collect()
    };
    let notes = Arc::new(Mutex::new(Vec::new()));
    let heard = notes.clone();
    let config = ServerConfig {
        listen,
        keys,
        limits: Limits::default(),
        announce: config.addresses,
        on_event: Some(Arc::new(move |event: &ServerEvent| {
            // what the protocol meets is counted; what the system lacks is said
            if let ServerEvent::Warning(note) = event {
                heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(note.clone());
            }
        })),
    };
    let server = py.detach(|| pathcast_net::Server::start(sockets(namespace), config)).map_err(Failed::new)?;
    Ok(Server { server: Some(server), notes })
}
