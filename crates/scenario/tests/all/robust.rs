//! No text and no set panics, and what is read reads back.

use crate::common::SMALL;
use pathcast_scenario::Scenario;
use proptest::prelude::*;

/// Texts that get past the parser: good scenarios with a line exchanged for another of the format.
fn mutated() -> impl Strategy<Value = String> {
    let lines = prop::sample::select(vec![
        "seed = 9223372036854775807",
        "end = \"1ms\"",
        "[[link]]",
        "[[path]]",
        "loss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.1 }",
        "policer = { rate = \"1Mbit\", burst = \"9KB\" }",
        "[[flow]]",
        "[[traffic]]",
        "[[change]]",
        "[tcp]",
        "[control.x]",
        "name = \"x\"",
        "a = \"client\"",
        "b = \"server\"",
        "b = \"r\"",
        "links = [\"wire\", \"x\"]",
        "link = \"wire\"",
        "rate = { ab = \"1Mbit\" }",
        "rate = \"18446744073709551615bit\"",
        "delay = \"1h\"",
        "queue = { kind = \"red\", min = 1 }",
        "queue = \"2000000 packets\"",
        "loss = 0.3",
        "loss = -inf",
        "bucket = { rate = \"1bit\", burst = \"1500B\" }",
        "kind = \"pareto-onoff\"",
        "kind = \"web\"",
        "kind = []",
        "direction = \"ab\"",
        "path = \"path1\"",
        "peak = \"2Mbit\"",
        "on = \"5124095h\"",
        "shape = 1e308",
        "packet = \"40B\"",
        "at = \"5124095h\"",
        "subflows = 8",
        "paths = []",
        "bytes = \"1TB\"",
        "stop = \"5124095h\"",
        "start = \"5124095h\"",
        "local = \"10.0.0.250\"",
        "local = \"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\"",
        "remote = \"10.0.1.1\"",
        "remote = \"path1\"",
        "ip = 6",
        "web = {}",
        "preset = \"ns2\"",
        "join = \"together\"",
        "abc_limit = 65535",
        "queue = { kind = \"fair\", packets = 0 }",
        "[host.client]",
        "clock_offset = \"-1ns\"",
        "clock_offset = \"-5124095h\"",
        "clock_skew_ppm = -0.1",
        "receive_batch = \"1s\"",
        "mss = \"64B\"",
        "",
    ]);
    let edits = prop::collection::vec((0usize..14, any::<bool>(), lines), 0..12);
    edits.prop_map(|edits| {
        let mut text: Vec<&str> = SMALL.lines().collect();
        for (at, replace, line) in edits {
            let at = at % text.len();
            if replace {
                text[at] = line;
            } else {
                text.insert(at + 1, line);
            }
        }
        text.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = Scenario::parse(&text, &[]);
    }

    #[test]
    fn no_set_panics(key in "[a-z.]{0,20}|(link\\.wire|flow\\.bulk|tcp|host\\.client|control\\.x)(\\.[a-z]{1,10}){0,3}", value in ".{0,20}") {
        let _ = Scenario::parse(SMALL, &[(key, value)]);
    }

    #[test]
    fn whatever_passes_reads_back(text in mutated()) {
        match Scenario::parse(&text, &[]) {
            Ok(scenario) => {
                prop_assert_eq!(pathcast_scenario::addresses(&scenario, 255).len(), scenario.paths.len());
                for (path, found) in pathcast_scenario::addresses(&scenario, 0).iter().enumerate() {
                    let most = scenario.flows.iter().map(|f| f.subflow_paths().filter(|&p| p == path).count()).max();
                    prop_assert_eq!(found.local.len(), most.unwrap_or(0).max(1));
                }
                let json = scenario.to_json();
                prop_assert_eq!(Scenario::from_json(&json).unwrap(), scenario);
            }
            Err(error) => {
                prop_assert!(error.line().is_some(), "{}", error);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
