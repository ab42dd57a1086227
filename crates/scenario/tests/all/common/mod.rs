//! What the tests of the format share.

use pathcast_scenario::{Refusal, Scenario, ScenarioError};

/// The smallest good scenario with a flow; tests add to it.
pub const SMALL: &str = r#"end = "10s"
[[link]]
name = "wire"
a = "client"
b = "server"
rate = "5Mbit"
[[path]]
name = "path1"
links = ["wire"]
[[flow]]
name = "bulk"
paths = ["path1"]
"#;

/// `SMALL` with `line` after the line that starts with `after`.
pub fn after(after: &str, line: &str) -> String {
    let mut done = false;
    let mut text = String::new();
    for old in SMALL.lines() {
        text += old;
        text.push('\n');
        if old.starts_with(after) && !done {
            text += line;
            text.push('\n');
            done = true;
        }
    }
    assert!(done, "no line starts with {after}");
    text
}

/// `SMALL` with the line that starts with `from` replaced.
pub fn instead(from: &str, line: &str) -> String {
    let found = SMALL.lines().position(|old| old.starts_with(from)).expect("a line to replace");
    SMALL.lines().enumerate().map(|(i, old)| format!("{}\n", if i == found { line } else { old })).collect()
}

pub fn sets(sets: &[(&str, &str)]) -> Vec<(String, String)> {
    sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn good(text: &str) -> Scenario {
    Scenario::parse(text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn refusal(text: &str, set: &[(&str, &str)]) -> Refusal {
    match Scenario::parse(text, &sets(set)) {
        Err(ScenarioError::Refused(refusal)) => *refusal,
        other => panic!("expected a refusal, got {other:?}\n{text}\n{set:?}"),
    }
}
