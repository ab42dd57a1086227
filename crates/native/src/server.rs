//! `Server`: the far end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pathcast_measure::stamp::{Mode, ReflectorOptions, StampKey};
use pathcast_measure::{FarEnd, MeasureLimits};
use pathcast_net::udp::{FarAddress, FarOptions, FarServer, SessionClock, StampReflector};
use pathcast_net::{Key, Limits, ServerConfig, ServerEvent, Warnings, entropy};
use pathcast_session::{Admission, KeyRing};
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
    /// What measurements are granted, by name, as written; what is not named is the default.
    #[serde(default)]
    limits: BTreeMap<String, String>,
    /// Port of a STAMP reflector; none: there is none.
    #[serde(default)]
    stamp_port: Option<u16>,
    /// Whether it answers everyone, and not only who has one of the keys.
    #[serde(default)]
    stamp_open: bool,
    /// Whether sessions and transfers are kept for [`Server::log`].
    #[serde(default)]
    log: bool,
}

/// Lines that nobody has fetched are forgotten beyond so many.
const LINES: usize = 4096;

/// What happened, with when [s since 1970].
type Log = Arc<Mutex<VecDeque<(f64, String)>>>;

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

/// A running far end: transfers over TCP, measurements over UDP at the same port, and STAMP where asked for.
#[pyclass]
pub struct Server {
    /// None: it has stopped. Behind a lock, since one thread may ask while another one stops it.
    running: Mutex<Option<Running>>,
    warnings: Arc<Warnings>,
    log: Log,
    stamp_open: bool,
}

struct Running {
    transfers: pathcast_net::Server,
    measurements: FarServer<FarEnd<FarAddress>>,
    stamp: Option<StampReflector>,
}

#[pymethods]
impl Server {
    #[new]
    fn new(py: Python<'_>, namespace: Option<String>, config: &str) -> PyResult<Self> {
        start(py, namespace, config).map_err(|e| e.into_py(py))
    }

    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        let running = self.running();
        let Some(Running { transfers, measurements, stamp }) = &*running else {
            return Err(Failed::runtime("closed", "the far end has stopped".into()).into_py(py));
        };
        let (measuring, measured) = measurements.with(|far| (far.sessions(), far.counters()));
        let stamp = stamp.as_ref().map(|reflector| {
            serde_json::json!({
                "listening": reflector.local_addrs(),
                "mode": if self.stamp_open { "open" } else { "authenticated" },
                "answered": reflector.answered(),
                "ignored": reflector.ignored(),
            })
        });
        Ok(json(&serde_json::json!({
            "listening": transfers.local_addrs(),
            "mptcp": transfers.mptcp(),
            "sessions": transfers.sessions(),
            "counters": transfers.counters(),
            "measurements": { "sessions": measuring, "counters": measured },
            "stamp": stamp,
            "notes": self.warnings.all(),
        })))
    }

    /// What is to be said to whoever runs it, since the last call.
    fn warnings(&self) -> Vec<String> {
        if self.running().as_ref().is_some_and(|running| running.measurements.is_stale()) {
            self.warnings.add_once("the system's clock was set: start again, or one-way delays are off by as much");
        }
        self.warnings.due()
    }

    /// Sessions and transfers since the last call, oldest first, with when [s since 1970]; none unless asked for.
    fn log(&self) -> Vec<(f64, String)> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    fn stop(&self, py: Python<'_>) {
        let running = self.running().take();
        py.detach(|| drop(running));
    }
}

impl Server {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(py: Python<'_>, namespace: Option<String>, config: &str) -> Result<Server, Failed> {
    let config: Config = read(config)?;
    let keys: Vec<Key> = config.keys.iter().map(KeyText::key).collect::<Result<_, _>>()?;
    let limits = limits(&config.limits)?;
    let admission = Admission::new(limits.sessions);
    let listen = if config.bind.is_empty() {
        vec![SocketAddr::from(([0; 4], config.port)), SocketAddr::from(([0u16; 8], config.port))]
    } else {
        config.bind.iter().map(|a| SocketAddr::new(*a, config.port)).collect()
    };
    let warnings = Arc::new(Warnings::default());
    let heard = warnings.clone();
    let (log, logging) = (Log::default(), config.log);
    let kept = log.clone();
    let transfers = ServerConfig {
        listen,
        keys: keys.clone(),
        limits: Limits::default(),
        admission: Some(admission.clone()),
        announce: config.addresses,
        on_event: Some(Arc::new(move |event: &ServerEvent| {
            // what the protocol meets is counted; what the system lacks is said
            match event {
                ServerEvent::Warning(text) => heard.add(text),
                ServerEvent::Session(note) if logging => keep(&kept, note.to_string()),
                ServerEvent::Session(_) => {}
            }
        })),
    };
    let modes = match config.stamp_open {
        true => vec![Mode::Open],
        false => keys.iter().map(|key| Mode::Authenticated(StampKey::of(key))).collect(),
    };
    let running = py.detach(|| -> Result<Running, Failed> {
        let maker = sockets(namespace);
        let transfers = pathcast_net::Server::start(maker.clone(), transfers).map_err(Failed::new)?;
        let listen = transfers.local_addrs().to_vec();
        let clock = SessionClock::start();
        let far_end = FarEnd::new(KeyRing::new(keys), limits, clock.state(), entropy().map_err(Failed::new)?)
            .admitting(admission);
        let stamp = config.stamp_port.map(|port| {
            let on: Vec<_> = listen.iter().map(|address| SocketAddr::new(address.ip(), port)).collect();
            let own_ports = listen.iter().map(SocketAddr::port).collect();
            StampReflector::start(&*maker, &on, ReflectorOptions { modes, own_ports, ..ReflectorOptions::default() })
        });
        let stamp = stamp.transpose().map_err(Failed::new)?;
        let options = FarOptions { listen, clock, urgent: true };
        let measurements = FarServer::start(&*maker, options, far_end).map_err(Failed::new)?;
        Ok(Running { transfers, measurements, stamp })
    })?;
    Ok(Server { running: Mutex::new(Some(running)), warnings, log, stamp_open: config.stamp_open })
}

fn keep(log: &Mutex<VecDeque<(f64, String)>>, line: String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut kept = log.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == LINES {
        kept.pop_front();
    }
    kept.push_back((now, line));
}

/// The defaults with what was written over them.
fn limits(written: &BTreeMap<String, String>) -> Result<MeasureLimits, Failed> {
    fn value<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Failed> {
        text.parse().map_err(|e| Failed::usage(format!("limit {name}={text}: {e}")))
    }
    let mut limits = MeasureLimits::default();
    for (name, text) in written {
        match name.as_str() {
            "sessions" => limits.sessions.in_all = value(name, text)?,
            "sessions-per-key" => limits.sessions.per_key = value(name, text)?,
            "sessions-per-source" => limits.sessions.per_source = value(name, text)?,
            "measuring" => limits.measuring = value(name, text)?,
            "paths" => limits.paths = value(name, text)?,
            "rate" => limits.rate = value(name, text)?,
            "time" => limits.time = value(name, text)?,
            "bytes" => limits.bytes = value(name, text)?,
            "idle" => limits.idle = value(name, text)?,
            "pause" => limits.pause = value(name, text)?,
            _ => {
                return Err(Failed::usage(format!(
                    "limit `{name}`: allowed are sessions, sessions-per-key, sessions-per-source, measuring, paths, rate, time, \
                     bytes, idle, pause"
                )));
            }
        }
    }
    Ok(limits)
}
