//! Every parameter of queues, policers, aggregation and bursts at and beyond its ends: a refusal names the key, the value
//! and the range.

use crate::common::{after, good, refusal};

/// A place where a value goes, its key, values that are taken, values that are refused, and what a refusal allows.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], &'static str);

const WAITING: &str = "at most 2000000";
const FLOWS: &str = "1 to 65536";
const QUANTUM: &str = "64B to 65535B";
const LONG: &str = "above 0s, at most 10s";
const BELOW: &str = "above 0s, below the interval (100ms)";
const BURST: &str = "1500B (1500B and the overhead) to 2GB";
const SHARE: &str = "above 0, at most 1";
const PROBABILITY: &str = "0 to 1";

/// What no count can be.
const NO_COUNT: &[&str] = &["-1", "2000001", "1.5", "4294967296", "18446744073709551616", "true"];

const ROWS: &[Row] = &[
    ("queue = { kind = \"codel\", limit = ? }", "queue.limit", &["0", "2000000", "\"9 packets\""], NO_COUNT, WAITING),
    (
        "queue = { kind = \"codel\", target = ? }",
        "queue.target",
        &["\"1ns\"", "\"99ms\""],
        &["\"0s\"", "\"100ms\""],
        BELOW,
    ),
    (
        "queue = { kind = \"codel\", interval = ? }",
        "queue.interval",
        &["\"6ms\"", "\"10s\""],
        &["\"0s\"", "\"10001ms\""],
        LONG,
    ),
    ("queue = { kind = \"fq_codel\", limit = ? }", "queue.limit", &["0", "2000000"], NO_COUNT, WAITING),
    (
        "queue = { kind = \"fq_codel\", target = ? }",
        "queue.target",
        &["\"1ns\"", "\"99ms\""],
        &["\"0s\"", "\"2h\""],
        BELOW,
    ),
    ("queue = { kind = \"fq_codel\", interval = ? }", "queue.interval", &["\"10s\""], &["\"0s\"", "\"10001ms\""], LONG),
    (
        "queue = { kind = \"fq_codel\", flows = ? }",
        "queue.flows",
        &["1", "65536"],
        &["0", "65537", "-1", "1.5", "4294967296"],
        FLOWS,
    ),
    (
        "queue = { kind = \"fq_codel\", quantum = ? }",
        "queue.quantum",
        &["\"64B\"", "\"65535B\""],
        &["\"63B\"", "\"64KiB\""],
        QUANTUM,
    ),
    (
        "queue = { kind = \"fq_codel\", memory = ? }",
        "queue.memory",
        &["\"0B\"", "\"3GB\""],
        &["\"3000000001B\""],
        "at most 3GB",
    ),
    ("queue = { kind = \"pie\", limit = ? }", "queue.limit", &["0", "2000000"], NO_COUNT, WAITING),
    (
        "queue = { kind = \"pie\", target = ? }",
        "queue.target",
        &["\"1ns\"", "\"10s\""],
        &["\"0s\"", "\"10001ms\""],
        "1ns to 10s",
    ),
    (
        "queue = { kind = \"pie\", t_update = ? }",
        "queue.t_update",
        &["\"1ms\"", "\"10s\""],
        &["\"999us\"", "\"11s\""],
        "1ms to 10s",
    ),
    ("queue = { kind = \"pie\", alpha = ? }", "queue.alpha", &["0", "32"], &["-0.1", "32.1", "nan", "inf"], "0 to 32"),
    ("queue = { kind = \"pie\", beta = ? }", "queue.beta", &["0", "32.0"], &["-0.1", "32.1", "nan", "-inf"], "0 to 32"),
    (
        "queue = { kind = \"pie\", max_burst = ? }",
        "queue.max_burst",
        &["\"0s\"", "\"10s\""],
        &["\"10001ms\""],
        "to 10s",
    ),
    ("queue = { kind = \"fair\", packets = ? }", "queue.packets", &["0", "2000000"], NO_COUNT, WAITING),
    (
        "queue = { kind = \"fair\", packets = 9, quantum = ? }",
        "queue.quantum",
        &["\"64B\""],
        &["\"63B\"", "\"65536B\""],
        QUANTUM,
    ),
    ("queue = { kind = \"red\", min = 1, max = 2, limit = ? }", "queue.limit", &["2", "2000000"], NO_COUNT, WAITING),
    ("policer = { burst = \"9KB\", rate = ? }", "policer.rate", &["\"1bit\""], &["\"0bit\""], "at least 1bit"),
    (
        "policer = { rate = \"1Mbit\", burst = ? }",
        "policer.burst",
        &["\"1500B\"", "\"2GB\""],
        &["\"1499B\"", "\"2000000001B\""],
        BURST,
    ),
    (
        "aggregation = { bytes = \"9KB\", every = ? }",
        "aggregation.every",
        &["\"10us\"", "\"1s\""],
        &["\"0s\"", "\"9us\"", "\"1001ms\""],
        "10us to 1s",
    ),
    (
        "aggregation = { every = \"1ms\", bytes = ? }",
        "aggregation.bytes",
        &["\"1500B\"", "\"2GB\""],
        &["\"1499B\"", "\"2000000001B\""],
        BURST,
    ),
    (
        "loss = { kind = \"gilbert-elliott\", r = 0.5, p = ? }",
        "loss.p",
        &["1e-9", "1"],
        &["0", "-0.1", "1.1", "nan", "inf"],
        SHARE,
    ),
    (
        "loss = { kind = \"gilbert-elliott\", p = 0.5, r = ? }",
        "loss.r",
        &["1e-9", "1"],
        &["0", "-0.1", "1.1", "nan", "inf"],
        SHARE,
    ),
    (
        "loss = { kind = \"gilbert-elliott\", p = 0.5, r = 0.5, good = ? }",
        "loss.good",
        &["0", "1"],
        &["-0.1", "1.1", "nan"],
        PROBABILITY,
    ),
    (
        "loss = { kind = \"gilbert-elliott\", p = 0.5, r = 0.5, bad = ? }",
        "loss.bad",
        &["0", "1"],
        &["-0.1", "1.1", "nan"],
        PROBABILITY,
    ),
];

#[test]
fn values_at_their_ends_are_taken() {
    for (place, _, taken, _, _) in ROWS {
        for value in *taken {
            good(&after("rate", &place.replace('?', value)));
        }
    }
}

#[test]
fn values_beyond_their_ends_are_refused_with_key_value_and_range() {
    for (place, key, _, refused, allowed) in ROWS {
        for value in *refused {
            let refusal = refusal(&after("rate", &place.replace('?', value)), &[]);
            let shown = refusal.to_string();
            assert_eq!(refusal.key, format!("link.wire.{key}"), "{shown}");
            let named = refusal.value.as_deref().unwrap_or_default().to_lowercase();
            assert!(named.contains(&value.to_lowercase()), "{shown}: no {value}");
            assert!(refusal.allowed.as_deref().unwrap_or_default().contains(allowed), "{shown}: not {allowed}");
        }
    }
}

/// A burst holds a packet with what the link adds to it.
#[test]
fn the_overhead_raises_the_least_burst() {
    for (place, key) in [
        ("policer = { rate = \"1Mbit\", burst = \"1537B\" }", "link.wire.policer.burst"),
        ("aggregation = { every = \"1ms\", bytes = \"1537B\" }", "link.wire.aggregation.bytes"),
    ] {
        let text = after("rate", &format!("overhead = \"38B\"\n{place}"));
        let refusal = refusal(&text, &[]);
        assert_eq!((refusal.key.as_str(), refusal.value.as_deref()), (key, Some("\"1537B\"")), "{refusal}");
        assert!(refusal.allowed.as_deref().unwrap_or_default().starts_with("1538B"), "{refusal}");
        good(&text.replace("1537B", "1538B"));
    }
}
