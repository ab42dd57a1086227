//! Limits as they are written: `NAME=VALUE`.

use std::fmt::Display;
use std::str::FromStr;

use pathcast_measure::MeasureLimits;

use crate::FarError;

/// The defaults with what was written over them.
///
/// # Errors
/// Usage for what is not `NAME=VALUE`, a name twice or unknown, a value that cannot be read.
pub fn limits(written: &[impl AsRef<str>]) -> Result<MeasureLimits, FarError> {
    fn value<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, FarError> {
        text.parse().map_err(|e| FarError::usage(format!("limit {name}={text}: {e}")))
    }
    let mut named: Vec<(&str, &str)> = Vec::new();
    for item in written.iter().map(AsRef::as_ref) {
        match item.split_once('=') {
            Some((name, value)) if named.iter().all(|(known, _)| *known != name) => named.push((name, value)),
            _ => return Err(FarError::usage(format!("--limit `{item}`: write NAME=VALUE, each name once"))),
        }
    }
    let mut limits = MeasureLimits::default();
    for (name, text) in named {
        match name {
            "sessions" => limits.sessions.in_all = value(name, text)?,
            "sessions-per-key" => limits.sessions.per_key = value(name, text)?,
            "sessions-per-source" => limits.sessions.per_source = value(name, text)?,
            "measuring" => limits.measuring = value(name, text)?,
            "paths" => limits.paths = value(name, text)?,
            "rate" => limits.rate = value(name, text)?,
            "time" => limits.time = value(name, text)?,
            "bytes" => limits.bytes = value(name, text)?,
            "memory" => limits.memory = value(name, text)?,
            "idle" => limits.idle = value(name, text)?,
            "pause" => limits.pause = value(name, text)?,
            _ => {
                return Err(FarError::usage(format!(
                    "limit `{name}`: allowed are sessions, sessions-per-key, sessions-per-source, measuring, paths, rate, time, \
                     bytes, memory, idle, pause"
                )));
            }
        }
    }
    if limits.measuring == 0 {
        let told = "limit measuring=0: everyone would wait for ever; to allow no measurement write time=0s";
        return Err(FarError::usage(told));
    }
    if limits.bytes.0 / 5 * 4 < MeasureLimits::LEAST_BYTES {
        let told = format!("limit bytes={}: no measurement fits; to allow none write time=0s", limits.bytes);
        return Err(FarError::usage(told));
    }
    if limits.memory.0 == 0 {
        return Err(FarError::usage(
            "limit memory=0B: nothing of a probe could be kept; to allow no measurement write time=0s",
        ));
    }
    if limits.idle.0 == 0 {
        return Err(FarError::usage("limit idle=0s: every session would be over at once"));
    }
    Ok(limits)
}
