//! Scenario files, with one `--set` behind a NUL: what passes reads back, what does not says where.

use pathcast_scenario::{Scenario, addresses};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut pieces = text.splitn(3, '\0');
    let file = pieces.next().unwrap_or_default();
    let sets: Vec<(String, String)> =
        pieces.next().zip(pieces.next()).map(|(k, v)| (k.into(), v.into())).into_iter().collect();
    match Scenario::parse(file, &sets) {
        Ok(scenario) => {
            assert_eq!(addresses(&scenario, 255).len(), scenario.paths.len());
            assert_eq!(Scenario::from_json(&scenario.to_json()).expect("our own words"), scenario);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
