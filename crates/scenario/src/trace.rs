//! Files of rates: packet delivery opportunities as Mahimahi records them, or CSV of seconds and rates. A refusal names
//! the file's line and the value; memory is bounded by the largest file that is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pathcast_base::{Nanos, Rate};
use pathcast_link::{Format, Schedule, Trace};
use sha2::{Digest, Sha256};

use crate::forms::TraceForm;

/// The largest file that is read.
const LARGEST: u64 = 32 << 20;
/// Times beyond these are refused, as everywhere in a scenario.
const LONGEST_S: f64 = 1000.0 * 3600.0;
/// No rate is larger [bit/s].
const FASTEST: f64 = 1e12;

/// What is wrong with a file, and what would be right.
#[derive(Debug)]
pub(crate) struct Bad {
    pub text: String,
    pub allowed: &'static str,
}

/// A file, and whether it is read as CSV.
type Key = (PathBuf, bool);
/// Digest and content.
type Content = (String, Arc<Schedule>);

/// The files that a scenario names, each read once.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    base: Option<PathBuf>,
    read: Mutex<BTreeMap<Key, Content>>,
}

impl Traces {
    /// Relative paths are relative to `base`, without one to the current directory.
    pub fn new(base: Option<&Path>) -> Self {
        Traces { base: base.map(Path::to_path_buf), ..Traces::default() }
    }

    pub fn load(&self, form: &TraceForm) -> Result<Trace, Bad> {
        let path = self.base.as_ref().map_or_else(|| PathBuf::from(&form.trace), |base| base.join(&form.trace));
        let csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let format = form.format.unwrap_or(if csv { Format::Csv } else { Format::Mahimahi });
        let (sha256, schedule) = self.open(&path, format)?;
        let (offset, scale) = (form.offset.unwrap_or_default(), form.scale.unwrap_or(1.0));
        Ok(Trace { offset, scale, ..Trace::new(path.display().to_string(), sha256, format, schedule) })
    }

    fn open(&self, path: &Path, format: Format) -> Result<Content, Bad> {
        let key = (path.to_path_buf(), format == Format::Csv);
        if let Some(read) = self.known().get(&key) {
            return Ok(read.clone());
        }
        let data = bytes(path)?;
        let schedule = match format {
            Format::Mahimahi => opportunities(&data),
            Format::Csv => rates(&data),
        };
        let schedule = schedule.map_err(|bad| Bad { text: format!("{}, {}", path.display(), bad.text), ..bad })?;
        let read = (hex(&Sha256::digest(&data)), Arc::new(schedule));
        self.known().insert(key, read.clone());
        Ok(read)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Content>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file of `trace` anew at its next use; what was known of it.
    pub fn forget(&self, trace: &Trace) -> Option<(Key, Content)> {
        self.known().remove_entry(&(PathBuf::from(&trace.file), trace.format == Format::Csv))
    }

    /// Takes back what was forgotten.
    pub fn keep(&self, known: Vec<(Key, Content)>) {
        self.known().extend(known);
    }

    /// Reads the file of a trace that came without its schedule again.
    pub fn restore(&self, trace: &mut Trace) -> Result<(), String> {
        let (sha256, schedule) = self.open(Path::new(&trace.file), trace.format).map_err(|bad| bad.text)?;
        if sha256 != trace.sha256 {
            return Err(format!("{} is no longer the file of the digest {}", trace.file, trace.sha256));
        }
        trace.schedule = schedule;
        Ok(())
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(path: &Path) -> Result<Vec<u8>, Bad> {
    let bad = |why: String| Bad { text: format!("cannot read {}: {why}", path.display()), allowed: "a file of rates" };
    // a pipe or a device has no end
    let about = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?;
    if !about.is_file() {
        return Err(bad("it is no regular file".into()));
    }
    let large =
        |size: u64| Bad { text: format!("{} has {size} bytes", path.display()), allowed: "a file of at most 32 MiB" };
    if about.len() > LARGEST {
        return Err(large(about.len()));
    }
    let mut data = Vec::new();
    let file = File::open(path).map_err(|error| bad(error.to_string()))?;
    file.take(LARGEST + 1).read_to_end(&mut data).map_err(|error| bad(error.to_string()))?;
    if data.len() as u64 > LARGEST { Err(large(data.len() as u64)) } else { Ok(data) }
}

/// Lines with their numbers, without the empty ones.
fn lines(data: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    data.split(|byte| *byte == b'\n').enumerate().filter_map(|(at, line)| {
        let line = line.trim_ascii();
        (!line.is_empty()).then_some((at + 1, line))
    })
}

fn wrong(line: usize, value: &[u8], what: &str, allowed: &'static str) -> Bad {
    let shown: String = String::from_utf8_lossy(&value[..value.len().min(40)]).escape_debug().collect();
    Bad { text: format!("line {line}: `{shown}` {what}"), allowed }
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn opportunities(data: &[u8]) -> Result<Schedule, Bad> {
    const TIMES: &str = "a whole number of milliseconds in each line, not below the one before, at most 1000 h";
    let (mut times, mut last) = (Vec::new(), 0u32);
    for (at, line) in lines(data) {
        let time: u32 = number(line).ok_or_else(|| wrong(at, line, "is no time in milliseconds", TIMES))?;
        if f64::from(time) > LONGEST_S * 1e3 {
            return Err(wrong(at, line, "is too late", TIMES));
        }
        if time < last {
            return Err(wrong(at, line, &format!("comes after {last}"), TIMES));
        }
        last = time;
        times.push(time);
    }
    if times.is_empty() {
        return Err(Bad { text: "line 1: the file is empty".into(), allowed: TIMES });
    }
    let number = times.len();
    Schedule::opportunities(times).ok_or_else(|| Bad {
        text: format!("line {number}: `{last}` is the end of a period of no length"),
        allowed: "a last line above 0",
    })
}

fn rates(data: &[u8]) -> Result<Schedule, Bad> {
    const ROWS: &str = "lines of seconds and rate, ascending, such as `0,5Mbit`, or in the unit of a first line \
                        `s,bps`, `s,kbps` or `s,mbps`";
    let mut unit = None;
    let mut all: Vec<(Nanos, Rate)> = Vec::new();
    let mut end = 1;
    for (at, line) in lines(data) {
        end = at;
        let mut fields = line.splitn(2, |byte| *byte == b',').map(<[u8]>::trim_ascii);
        let (first, second) = (fields.next().unwrap_or_default(), fields.next());
        let Some(second) = second else { return Err(wrong(at, line, "has no rate", ROWS)) };
        if all.is_empty() && unit.is_none() {
            unit = match second {
                b"bps" => Some(1.0),
                b"kbps" => Some(1e3),
                b"mbps" => Some(1e6),
                _ => None,
            };
            if unit.is_some() {
                continue;
            }
        }
        let seconds = number::<f64>(first).filter(|s| (0.0..=LONGEST_S).contains(s));
        let seconds = seconds.ok_or_else(|| wrong(at, first, "is no time in seconds up to 1000 h", ROWS))?;
        let time = Nanos((seconds * 1e9).round() as u64);
        if let Some((last, _)) = all.last().filter(|(last, _)| *last >= time) {
            return Err(wrong(at, first, &format!("is not after {}", last.as_secs_f64()), ROWS));
        }
        let rate = match unit {
            Some(unit) => number::<f64>(second).map(|rate| rate * unit),
            None => number::<Rate>(second).map(|rate| rate.0 as f64),
        };
        let rate = rate.filter(|rate| (0.0..=FASTEST).contains(rate));
        let rate = rate.ok_or_else(|| wrong(at, second, "is no rate from 0 to 1000 Gbit/s", ROWS))?;
        all.push((time, Rate(rate.round() as u64)));
    }
    if all.is_empty() {
        return Err(Bad { text: format!("line {end}: the file has no rates"), allowed: ROWS });
    }
    Schedule::rates(all).ok_or_else(|| Bad {
        text: format!("line {end}: all rates are zero up to here"),
        allowed: "a rate above zero in some line",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(format: Format, text: &[u8]) -> Result<Schedule, Bad> {
        match format {
            Format::Mahimahi => opportunities(text),
            Format::Csv => rates(text),
        }
    }

    #[test]
    fn good_files() {
        let every = of(Format::Mahimahi, b"0\n0\n5\r\n\n10\n").unwrap();
        assert_eq!(every.period(), Nanos::millis(10));
        assert_eq!(every, Schedule::opportunities([0, 0, 5, 10]).unwrap());
        let expected = Schedule::rates(vec![(Nanos::secs(0), Rate(5_000_000)), (Nanos::secs(2), Rate(0))]).unwrap();
        assert_eq!(expected.period(), Nanos::secs(4));
        for text in ["0,5Mbit\n2,0bit\n", "s,mbps\n0,5\n2, 0\n", "s,bps\n7, 5e6\n9,0", "s,kbps\n1,5000\n3.0,0\n"] {
            assert_eq!(of(Format::Csv, text.as_bytes()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn bad_files_are_refused_with_line_and_value() {
        use Format::{Csv, Mahimahi};
        for (format, text, says) in [
            (Mahimahi, &b""[..], "line 1: the file is empty"),
            (Mahimahi, b"0\n0\n", "line 2: `0` is the end of a period of no length"),
            (Mahimahi, b"1\n5\n\n4\n", "line 4: `4` comes after 5"),
            (Mahimahi, b"1\n-5\n", "line 2: `-5` is no time"),
            (Mahimahi, b"1.5\n", "line 1: `1.5` is no time"),
            (Mahimahi, b"4000000000\n", "line 1: `4000000000` is too late"),
            (Mahimahi, b"\x7fELF\x02\x01\0\0\n", "line 1: `\\u{7f}ELF"),
            (Csv, b"", "line 1: the file has no rates"),
            (Csv, b"s,mbps\n", "line 1: the file has no rates"),
            (Csv, b"0,0bit\n1,0bit\n", "line 2: all rates are zero"),
            (Csv, b"0,5Mbit\n0,6Mbit\n", "line 2: `0` is not after 0"),
            (Csv, b"s,mbps\n0,-5\n", "line 2: `-5` is no rate"),
            (Csv, b"s,mbps\n0,nan\n", "line 2: `nan` is no rate"),
            (Csv, b"s,mbps\n0,inf\n", "line 2: `inf` is no rate"),
            (Csv, b"0,5\n", "line 1: `5` is no rate"),
            (Csv, b"nan,5Mbit\n", "line 1: `nan` is no time"),
            (Csv, b"-1,5Mbit\n", "line 1: `-1` is no time"),
            (Csv, b"0,5Mbit\n1\n", "line 2: `1` has no rate"),
            (Csv, b"\0\xff,\xfe\n", "line 1: `\\0"),
        ] {
            let bad = of(format, text).unwrap_err();
            assert!(bad.text.starts_with(says), "{} is not {says}", bad.text);
        }
    }
}
