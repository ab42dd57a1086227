//! Limits as they are written: `NAME=VALUE`.

use std::fmt::Display;
use std::str::FromStr;

use pathcast_base::Bytes;
use pathcast_measure::MeasureLimits;
use pathcast_session::Quota;

use crate::FarError;

/// Of numbers: more than any host has.
const MOST: usize = u32::MAX as usize;
/// What one measurement takes: a session over TCP, by which its paths are found, and one over UDP.
const SESSIONS: usize = 2;

/// Sentences of limits that let nobody measure, or shut out everybody.
pub(crate) fn hollow(limits: &MeasureLimits) -> Vec<String> {
    let Quota { in_all, per_key, per_source } = limits.sessions;
    let of = [("sessions", in_all), ("sessions-per-key", per_key), ("sessions-per-source", per_source)];
    let mut told: Vec<String> = of
        .into_iter()
        .filter(|(_, most)| *most < SESSIONS)
        .map(|(name, most)| match most {
            0 => format!("limit {name}=0: nobody is served"),
            _ => {
                format!("limit {name}={most}: nobody can measure, which takes {SESSIONS} sessions; transfers take one")
            }
        })
        .collect();
    if limits.time.0 == 0 {
        told.push("limit time=0s: nobody can measure".into());
    }
    if limits.rate.0 == 0 {
        told.push("limit rate=0bit: nobody can measure".into());
    }
    if limits.paths == 0 {
        told.push("limit paths=0: nobody can measure".into());
    }
    told
}

/// The defaults with what was written over them.
///
/// # Errors
/// Usage for what is not `NAME=VALUE`, a name twice or unknown, a value that cannot be read.
pub fn limits(written: &[impl AsRef<str>]) -> Result<MeasureLimits, FarError> {
    fn value<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, FarError> {
        text.parse().map_err(|e| FarError::usage(format!("limit {name}={text}: {e}")))
    }
    let count = |name: &str, text: &str, most: usize| {
        let number = text.parse().ok().filter(|number| *number <= most);
        number
            .ok_or_else(|| FarError::usage(format!("limit {name}={text}: allowed are whole numbers from 0 to {most}")))
    };
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
            "sessions" => limits.sessions.in_all = count(name, text, MOST)?,
            "sessions-per-key" => limits.sessions.per_key = count(name, text, MOST)?,
            "sessions-per-source" => limits.sessions.per_source = count(name, text, MOST)?,
            "measuring" => limits.measuring = count(name, text, MOST)?,
            "paths" => limits.paths = count(name, text, u8::MAX.into())? as u8,
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
        let least = Bytes(MeasureLimits::LEAST_BYTES / 4 * 5);
        let told = format!(
            "limit bytes={}: no measurement fits; allowed are {least} and more for each direction of a path, and to allow no \
             measurement write time=0s",
            limits.bytes
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(written: &[&str]) -> Vec<String> {
        hollow(&limits(written).unwrap())
    }

    #[test]
    fn limits_under_which_nobody_can_measure_are_told() {
        assert_eq!(said(&[]), Vec::<String>::new());
        assert_eq!(said(&["sessions=2", "sessions-per-key=2", "sessions-per-source=2"]), Vec::<String>::new());
        assert_eq!(said(&["sessions=0"]), ["limit sessions=0: nobody is served"]);
        let [one] = <[String; 1]>::try_from(said(&["sessions-per-key=1"])).unwrap();
        assert!(one.starts_with("limit sessions-per-key=1: nobody can measure"), "{one}");
        assert_eq!(said(&["time=0s"]), ["limit time=0s: nobody can measure"]);
        assert_eq!(said(&["paths=0"]), ["limit paths=0: nobody can measure"]);
    }

    #[test]
    fn a_wrong_value_is_told_with_the_allowed_ones() {
        for (written, words) in [
            ("sessions=-1", "limit sessions=-1: allowed are whole numbers from 0 to 4294967295"),
            ("sessions=99999999999999999999", "whole numbers from 0 to 4294967295"),
            ("paths=256", "limit paths=256: allowed are whole numbers from 0 to 255"),
            ("bytes=1kB", "allowed are 12500B and more for each direction of a path"),
        ] {
            let message = limits(&[written]).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
