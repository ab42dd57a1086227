//! What a far end warns of while it runs: said once, and again when it has come twice as often.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Different ones that are kept; the oldest makes room.
const KEPT: usize = 64;

struct Warning {
    text: String,
    times: u64,
    told: u64,
}

/// See the [module](self). Filled by any thread.
#[derive(Default)]
pub struct Warnings(Mutex<VecDeque<Warning>>);

impl Warnings {
    /// It has come once more.
    pub fn add(&self, text: &str) {
        self.count(text, 1);
    }

    /// It holds, as it may have done before.
    pub fn add_once(&self, text: &str) {
        self.count(text, 0);
    }

    fn count(&self, text: &str, again: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.iter_mut().find(|warning| warning.text == text) {
            known.times += again;
            return;
        }
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Warning { text: text.into(), times: 1, told: 0 });
    }

    /// All that are kept.
    pub fn all(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|warning| warning.text.clone()).collect()
    }

    /// Those that are to be said now.
    pub fn due(&self) -> Vec<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = kept.iter_mut().filter(|warning| warning.times >= 2 * warning.told.max(1) || warning.told == 0);
        due.map(|warning| {
            warning.told = warning.times;
            match warning.times {
                1 => warning.text.clone(),
                times => format!("{} ({times} times)", warning.text),
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_that_comes_again_and_again_is_said_now_and_then() {
        let warnings = Warnings::default();
        let mut said = Vec::new();
        for _ in 0..1000 {
            warnings.add("no room");
            said.extend(warnings.due());
        }
        assert_eq!((said.len(), said[0].as_str(), said[9].as_str()), (10, "no room", "no room (512 times)"));
        assert_eq!(warnings.all(), ["no room"]);
    }

    #[test]
    fn many_different_ones_need_no_more_room() {
        let warnings = Warnings::default();
        (0..1000).for_each(|i| warnings.add(&format!("{i}")));
        assert_eq!((warnings.all().len(), warnings.due().len(), warnings.due().len()), (KEPT, KEPT, 0));
        assert_eq!(warnings.all()[0], "936");
    }
}
