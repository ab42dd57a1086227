//! The same scenario gives the same report, bit for bit: in debug and release, on every machine, whatever runs beside
//! it.
//!
//! The values of `PINNED` change whenever TCP, a link or a controller changes what it does. A failing test prints the
//! new table: put it in the place of the old one, and say in the commit's message which change moved which row, and
//! why.

use crate::common::{Text, controllers, json};

/// Scenario by name, and the hash of its reports over all controllers but bbr3 and gleaner, which have their own.
const PINNED: [(&str, u64); 9] = [
    ("plain", 0x2bf2a72599f5dbaa),
    ("lossy-subflows", 0xb2fe0dc19e3bcc81),
    ("shared-bottleneck", 0x224e9d762e19dd05),
    ("changing", 0x1413f80d550de3e1),
    ("busy", 0xd90d4316b5576b5f),
    ("managed", 0x9f41b3599c636ef3),
    ("radio", 0x29d3f3e18fc9dd8e),
    ("unkind", 0xe3f208f3a4ff27da),
    ("kernel", 0xfcf93742ca5d4a48),
];

/// Controllers younger than these hashes, each with its own.
const YOUNGER: [(&str, u64); 2] = [("bbr3", 0xe9be_4b24_9ebe_5caf), ("gleaner", 0xf195_3969_0a26_63c7)];

/// Preset `linux` without what the other presets do not have.
const FIXED: &str =
    "autotuning = false\nfin = false\n[control.cubic]\nfirst = 0\nfriendly = 1000\n[host.client]\nsend_segments = 1";

fn fnv(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn scenario(name: &str, control: &str) -> Text {
    match name {
        "plain" => Text::new(1, "")
            .path("p", "rate = \"5Mbit\"; delay = \"20ms\"; queue = \"30 packets\"")
            .flow("f", &["p"], control, "bytes = \"1MB\"")
            .table("[tcp]", FIXED),
        "lossy-subflows" => Text::new(2, "")
            .path("a", "rate = \"4Mbit\"; delay = \"10ms\"; loss = 0.01")
            .path("b", "rate = \"2Mbit\"; delay = \"60ms\"; loss = 0.02; jitter = { amplitude = \"5ms\" }")
            .flow("f", &["a", "b"], control, "bytes = \"1MB\"; subflows = 4")
            .table("[tcp]", "preset = \"rfc\"; scheduler = \"roundrobin\""),
        "shared-bottleneck" => Text::new(3, "")
            .path("p", "rate = \"5Mbit\"; delay = \"75ms\"; queue = \"50 packets\"")
            .flow("f", &["p"], control, "bytes = \"750KB\"; subflows = 8")
            .table("[tcp]", "preset = \"ns3\"; join = \"together\""),
        "changing" => Text::new(4, "12s")
            .path("p", "rate = \"4Mbit\"; delay = \"15ms\"; queue = { kind = \"red\", min = 5, max = 25, limit = 40 }")
            .flow("f", &["p"], control, "")
            .flow("late", &["p"], "reno", "start = \"3s\"; stop = \"8s\"")
            .table("[tcp]", "preset = \"ns2\"")
            .table("[[change]]", "at = \"4s\"; link = \"p\"; rate = \"1Mbit\"; delay = \"40ms\"")
            .table("[[change]]", "at = \"6s\"; link = \"p\"; loss = 1.0")
            .table("[[change]]", "at = \"7s\"; link = \"p\"; loss = 0.001; rate = \"8Mbit\""),
        "busy" => Text::new(5, "10s")
            .path("p", "rate = \"6Mbit\"; delay = \"25ms\"; queue = { kind = \"fair\", packets = 60 }")
            .flow("f", &["p"], control, "")
            .flow("pages", &["p"], "cubic", "web = { page = \"30KB\", think = \"100ms\" }")
            .table("[[traffic]]", "kind = \"web\"; path = \"p\"; to = \"client\"; clients = 3; think = \"300ms\"")
            .table("[[traffic]]", "kind = \"poisson\"; link = \"p\"; direction = \"ab\"; rate = \"500kbit\"")
            .table(
                "[[traffic]]",
                "kind = \"pareto-onoff\"; link = \"p\"; direction = \"ab\"; rate = \"500kbit\"; peak = \"2Mbit\"; \
                 on = \"200ms\"",
            )
            .table("[tcp]", FIXED)
            .table("[host.server]", "receive_batch = \"1ms\"; receive_batch_packets = 8; send_segments = 1"),
        "managed" => Text::new(6, "8s")
            .path("a", "rate = \"4Mbit\"; delay = \"15ms\"; queue = { kind = \"codel\" }")
            .path("b", "rate = \"4Mbit\"; delay = \"25ms\"; queue = { kind = \"pie\", ecn = true }")
            .path("c", "rate = \"4Mbit\"; delay = \"5ms\"; queue = { kind = \"fq_codel\", limit = 40, flows = 8 }")
            .flow("f", &["a", "b", "c"], control, "")
            .flow("other", &["c"], "cubic", "start = \"1s\"")
            .table("[[traffic]]", "kind = \"poisson\"; link = \"c\"; direction = \"ab\"; rate = \"1Mbit\"")
            .table("[tcp]", "preset = \"rfc\""),
        "radio" => Text::new(7, "8s")
            .path(
                "a",
                "rate = { trace = \"../../topologies/lte-up.csv\", offset = \"30s\", scale = 0.5 }; delay = \"20ms\"; \
                 queue = { kind = \"fq_codel\" }",
            )
            .path(
                "b",
                "rate = \"6Mbit\"; delay = \"5ms\"; aggregation = { every = \"4ms\", bytes = \"9KB\" }; \
                 queue = { kind = \"fair\", packets = 60 }",
            )
            .flow("f", &["a", "b"], control, "")
            .table("[tcp]", "preset = \"rfc\""),
        "unkind" => Text::new(8, "8s")
            .path("a", "rate = \"6Mbit\"; delay = \"20ms\"; reorder = { share = 0.02, distance = \"7ms\" }")
            .path(
                "b",
                "rate = \"20Mbit\"; delay = \"9ms\"; policer = { rate = \"4Mbit\", burst = \"30KB\" }; \
                 loss = { kind = \"gilbert-elliott\", p = 0.002, r = 0.3 }",
            )
            .flow("f", &["a", "b"], control, "")
            .table("[tcp]", "preset = \"rfc\""),
        "kernel" => Text::new(6, "")
            .path("fast", "rate = \"20Mbit\"; delay = \"10ms\"; queue = { kind = \"codel\", ecn = true }")
            .path("slow", "rate = \"2Mbit\"; delay = \"60ms\"; queue = \"40 packets\"")
            .flow("f", &["slow", "fast"], control, "bytes = \"3MB\"")
            .flow("beside", &["fast"], "cubic", "bytes = \"2MB\"; start = \"500ms\"")
            .table("[tcp]", "ecn = true")
            .table("[[change]]", "at = \"700ms\"; link = \"slow\"; loss = 1.0"),
        _ => unreachable!("{name}"),
    }
}

fn hashes() -> Vec<(&'static str, u64)> {
    let all = |name| {
        controllers()
            .iter()
            .filter(|control| !YOUNGER.iter().any(|(name, _)| name == *control))
            .fold(0xcbf2_9ce4_8422_2325, |hash, control| fnv(hash, &json(&scenario(name, control).run())))
    };
    PINNED.iter().map(|&(name, _)| (name, all(name))).collect()
}

#[test]
fn reports_are_what_they_were_on_any_number_of_threads() {
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(hashes)).collect();
    let seen: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(seen.iter().all(|one| *one == seen[0]), "threads disagree: {seen:#x?}");
    let table: String = seen[0].iter().map(|(name, hash)| format!("    (\"{name}\", {hash:#018x}),\n")).collect();
    assert!(
        seen[0] == PINNED,
        "reports have changed. If that is meant, PINNED becomes\n{table}and the commit says why."
    );
}

#[test]
fn reports_of_younger_controllers_are_what_they_were() {
    for (control, pinned) in YOUNGER {
        let hash = PINNED
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash, (name, _)| fnv(hash, &json(&scenario(name, control).run())));
        assert_eq!(hash, pinned, "reports of {control} have changed: {hash:#018x}");
    }
}
