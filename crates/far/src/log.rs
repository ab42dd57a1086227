//! The log: what sessions and transfers did, and who was refused. Strangers can be refused as often as they like: beyond a
//! few lines they are counted, so that they neither fill a disc nor push out what others did.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What happened, with when [s since 1970].
pub type LogLine = (f64, String);

/// Lines that nobody has fetched are forgotten beyond so many.
const LINES: usize = 4096;
/// Of refusals so many have lines of their own at once …
const REFUSALS: f64 = 20.0;
/// … and so many a second in the long run.
const RATE: f64 = 0.2;

struct Inner {
    lines: VecDeque<LogLine>,
    /// Refusals that may be told one by one, as of `at`.
    room: f64,
    at: f64,
    untold: u64,
}

/// Lines until they are fetched.
pub(crate) struct Log(Mutex<Inner>);

impl Default for Log {
    fn default() -> Log {
        Log(Mutex::new(Inner { lines: VecDeque::new(), room: REFUSALS, at: 0.0, untold: 0 }))
    }
}

pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Log {
    /// Something that a client did.
    pub fn keep(&self, line: String, now: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line, now);
    }

    /// Somebody was refused.
    pub fn refused(&self, line: String, now: f64) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.fill(now);
        if inner.room < 1.0 {
            inner.untold += 1;
            return;
        }
        inner.tell(now);
        inner.room -= 1.0;
        inner.push(line, now);
    }

    /// The lines since the last call, oldest first.
    pub fn take(&self, now: f64) -> Vec<LogLine> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.fill(now);
        if inner.room >= 1.0 {
            inner.tell(now);
        }
        inner.lines.drain(..).collect()
    }
}

impl Inner {
    fn push(&mut self, line: String, now: f64) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back((now, line));
    }

    fn fill(&mut self, now: f64) {
        // a clock that was set back fills nothing
        self.room = (self.room + (now - self.at).max(0.0) * RATE).min(REFUSALS);
        self.at = now;
    }

    /// How many had no line.
    fn tell(&mut self, now: f64) {
        if self.untold > 0 {
            self.room -= 1.0;
            let told = format!("{} more refused", std::mem::take(&mut self.untold));
            self.push(told, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_fill_no_log_and_push_nothing_out() {
        let log = Log::default();
        log.keep("session opened".into(), 1000.0);
        for i in 0..100_000 {
            log.refused(format!("refused {i}"), 1000.0 + f64::from(i) * 1e-3);
        }
        log.keep("session closed".into(), 1100.0);
        let lines = log.take(1100.0);
        assert!(lines.len() < 70, "{}", lines.len());
        assert_eq!((lines[0].1.as_str(), lines[1].1.as_str()), ("session opened", "refused 0"));
        assert!(lines.iter().any(|(_, line)| line == "session closed"));
        // all are accounted for, at the latest when it is quiet again
        let rest = log.take(1110.0);
        let all = lines.iter().chain(&rest);
        let count = |line: &str| match line.strip_suffix(" more refused") {
            Some(number) => number.parse().unwrap(),
            None => u64::from(line.starts_with("refused")),
        };
        assert_eq!(all.map(|(_, line)| count(line)).sum::<u64>(), 100_000);
        assert_eq!(log.take(1200.0), []);
    }

    #[test]
    fn a_few_refusals_are_told_one_by_one_whatever_the_clock() {
        let log = Log::default();
        for at in [5.0, 4.0, 1e9, 3.0] {
            log.refused("refused".into(), at);
        }
        assert_eq!(log.take(2.0).len(), 4);
    }
}
