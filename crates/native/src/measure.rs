//! `measure`: a request from Python to the client's machine, and its document back.

use std::net::{IpAddr, SocketAddr};

use pathcast_base::{Bytes, Exit, Nanos, PathAddr, Stream};
use pathcast_estimate::{Budget, Effort};
use pathcast_far::KeyText;
use pathcast_measure::machine::Progress;
use pathcast_measure::stamp::{Mode, SenderOptions, StampKey};
use pathcast_measure::{ClockState, Direction, MethodName};
use pathcast_net::udp::{DriveOptions, stamp_measure};
use pathcast_session::{Entropy, Key};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Job;
use crate::error::{Failed, json, read};
use crate::sockets::sockets;

/// As `pathcast.worlds.measurement.Request` writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub paths: Vec<PathAddr>,
    directions: Vec<String>,
    method: String,
    bytes: Option<u64>,
    time_s: Option<f64>,
    dscp: u8,
    at_once: bool,
    seed: u64,
    effort: String,
    queue_s: f64,
    whole: bool,
}

impl Request {
    /// The client's machine; `clock` is what is known of this host's.
    pub fn machine(&self, key: Key, clock: ClockState, entropy: Entropy) -> Result<pathcast_measure::Client, Failed> {
        let direction = |word: &String| {
            let known = [Direction::Out, Direction::In].into_iter().find(|direction| direction.word() == word);
            known.ok_or_else(|| Failed::usage(format!("direction `{word}`: allowed are out, in")))
        };
        let directions = self.directions.iter().map(direction).collect::<Result<_, _>>()?;
        let method = self.method.parse().map_err(|e: pathcast_measure::NoSuchMethod| Failed::usage(e.to_string()))?;
        let queue = Nanos::from_secs_f64(self.queue_s);
        // the default method chooses itself within wide bounds; the others end by themselves
        let (effort, bytes, time) = match (self.effort.as_str(), method) {
            ("light", _) => (Effort::Light, Effort::LIGHT_BYTES, LIGHT_S),
            ("thorough", _) => (Effort::Thorough { queue }, THOROUGH_BYTES, Effort::THOROUGH_TIME.as_secs_f64()),
            ("usual", MethodName::Ride) => (Effort::Usual, USUAL.0, USUAL.1),
            ("usual", _) => (Effort::Usual, 50_000_000, 120.0),
            (word, _) => return Err(Failed::usage(format!("effort `{word}`: allowed are light, usual, thorough"))),
        };
        let budget = Budget {
            bytes: Bytes(self.bytes.unwrap_or(bytes)),
            time: Nanos::from_secs_f64(self.time_s.unwrap_or(time)),
        };
        // limits are no less limits for being two
        let sparing = !self.whole || self.bytes.is_none() || self.time_s.is_none();
        let (paths, dscp, at_once, seed) = (self.paths.len(), self.dscp, self.at_once, self.seed);
        let request = pathcast_measure::Request {
            key,
            paths,
            directions,
            method,
            budget,
            sparing,
            effort,
            dscp,
            at_once,
            clock,
            seed,
        };
        Ok(pathcast_measure::Client::new(request, entropy))
    }

    /// What a simulated session takes for the system's generator.
    pub fn drawn(&self, name: &str) -> Entropy {
        let mut stream = Stream::new(self.seed, name);
        let mut entropy = Entropy { nonce: [0; 32], session: [0; 16] };
        for chunk in entropy.nonce.chunks_mut(8).chain(entropy.session.chunks_mut(8)) {
            chunk.copy_from_slice(&stream.bits().to_be_bytes());
        }
        entropy
    }
}

/// The machine's document for Python, with `notes` for its user after its own.
///
/// # Errors
/// What the far end refused.
pub fn document(result: &[u8], notes: Vec<String>) -> Result<String, Failed> {
    let text = std::str::from_utf8(result).unwrap_or_default();
    let mut document: Value = read(text)?;
    let refused = document.as_object_mut().and_then(|map| map.remove("refused")).unwrap_or_default();
    if let (Some(code), Some(message)) = (refused["code"].as_str(), refused["message"].as_str()) {
        let exit = if matches!(code, "no-answer" | "other-version") { Exit::Runtime } else { Exit::Refused };
        return Err(Failed::with(code, message.into(), exit));
    }
    if let Some(told) = document["notes"].as_array_mut() {
        told.extend(notes.into_iter().map(Value::from));
    }
    Ok(json(&document))
}

/// Of [`Effort::Usual`] and [`Effort::Thorough`] what a direction may take where nothing else is said [IP byte, s].
const USUAL: (u64, f64) = (20_000_000, 30.0);
const THOROUGH_BYTES: u64 = 200_000_000;
const LIGHT_S: f64 = 10.0;

/// What measuring costs, as far as it is known before: of usual ones what capacities [bit/s] ask for of
/// each direction, and the most of light, usual and thorough ones [IP byte, s]; the bytes of light ones are of a path.
#[pyfunction]
pub fn measure_costs() -> String {
    let usual: Vec<_> = pathcast_estimate::SENSIBLE.iter().map(|row| [row.0, row.1, row.2]).collect();
    json(&serde_json::json!({
        "light_most": (Effort::LIGHT_BYTES, LIGHT_S),
        "usual": usual,
        "usual_most": USUAL,
        "thorough_most": (THOROUGH_BYTES, Effort::THOROUGH_TIME.as_secs_f64()),
    }))
}

/// Tells a job how far a measurement has come.
pub fn tell(job: &Job, progress: Progress) {
    job.set_phase(progress.phase, progress.done, progress.of);
}

/// Asks a STAMP reflector (RFC 8762) `count` times, every `interval_ns`; authenticated with `key` (id and secret in
/// hexadecimal), else open.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn stamp(
    py: Python<'_>,
    job: Py<Job>,
    namespace: Option<String>,
    address: String,
    port: u16,
    count: u32,
    interval_ns: u64,
    dscp: u8,
    key: Option<(String, String)>,
) -> PyResult<String> {
    let job = job.get();
    py.detach(|| {
        let ip: IpAddr = address.parse().map_err(|e| Failed::usage(format!("address `{address}`: {e}")))?;
        let mode = match key {
            Some((id, secret)) => {
                Mode::Authenticated(StampKey::of(&KeyText { id, secret }.key().map_err(Failed::new)?))
            }
            None => Mode::Open,
        };
        let sender = SenderOptions { count, interval: Nanos(interval_ns), dscp, mode, ..SenderOptions::default() };
        let mut told = |progress| tell(job, progress);
        let options =
            DriveOptions { cancel: Some(&job.cancelled), on_progress: Some(&mut told), ..DriveOptions::default() };
        let report = stamp_measure(&*sockets(namespace), None, SocketAddr::new(ip, port), sender, options);
        report.map(|report| json(&report)).map_err(Failed::new)
    })
    .map_err(|e: Failed| e.into_py(py))
}
