//! `flow.h` is frozen: recordings, the kernel's programs and the simulator rely on its layout and its numbers. A change
//! here means a change of all of them. What the kernel's calls look like is pinned by the test `hook_order` of
//! `pathcast-kernel`.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

use pathcast_congestion::{Ack, Event, Flow, Group, INFINITE, NOBODY, PEERS, Peer, State, WORDS};

type Fields<'a> = &'a [(&'a str, usize)];

const FLOW: [(&str, usize); 28] = [
    ("cwnd", 0),
    ("cwnd_cnt", 4),
    ("ssthresh", 8),
    ("burst", 12),
    ("pace_Bps", 16),
    ("word", 24),
    ("post_to", 40),
    ("post", 44),
    ("now_us", 48),
    ("una", 56),
    ("nxt", 64),
    ("mss", 72),
    ("in_flight", 76),
    ("srtt_us", 80),
    ("rttvar_us", 84),
    ("prior_cwnd", 88),
    ("state", 92),
    ("flags", 96),
    ("self", 100),
    ("mail", 104),
    ("cwnd_max", 108),
    ("forget", 112),
    ("group", 120),
    ("group.n", 120),
    ("group.joins", 124),
    ("delivered", 896),
    ("lost", 900),
    ("window", 904),
];
const FLOW_SIZE: usize = 912;
const PEER: [(&str, usize); 9] = [
    ("used", 0),
    ("id", 4),
    ("cwnd", 8),
    ("ssthresh", 12),
    ("srtt_us", 16),
    ("in_flight", 20),
    ("mail", 24),
    ("pad", 28),
    ("word", 32),
];
const PEER_SIZE: usize = 48;
const GROUP: [(&str, usize); 3] = [("n", 0), ("joins", 4), ("peer", 8)];
const GROUP_SIZE: usize = 776;
const ACK: [(&str, usize); 4] = [("acked", 0), ("rtt_us", 4), ("owd_us", 8), ("flags", 12)];
const ACK_SIZE: usize = 16;
const NUMBERS: [(&str, u32); 25] = [
    ("FLOW_PEERS", 16),
    ("FLOW_WORDS", 2),
    ("FLOW_INFINITE", 0x7fff_ffff),
    ("FLOW_NOBODY", 0xffff_ffff),
    ("FLOW_INIT", 1),
    ("FLOW_ACK", 2),
    ("FLOW_GROW", 4),
    ("FLOW_SSTHRESH", 8),
    ("FLOW_EVENT", 0x10),
    ("FLOW_SEND", 0x20),
    ("FLOW_UNDO", 0x40),
    ("FLOW_RELEASE", 0x80),
    ("FLOW_OPEN", 0),
    ("FLOW_DISORDER", 1),
    ("FLOW_CWR", 2),
    ("FLOW_RECOVERY", 3),
    ("FLOW_LOSS", 4),
    ("FLOW_TX_START", 0),
    ("FLOW_IDLE", 1),
    ("FLOW_RECOVERED", 2),
    ("FLOW_TIMEOUT", 3),
    ("FLOW_LIMITED", 1),
    ("FLOW_MULTIPATH", 2),
    ("FLOW_STARVED", 4),
    ("FLOW_ACK_OWD", 1),
];

fn at(table: Fields, field: &str) -> usize {
    table.iter().find(|(name, _)| *name == field).expect(field).1
}

#[test]
fn the_header_lies_in_memory_as_it_always_did() {
    let mut text = String::from("#include <stddef.h>\n#include \"flow.h\"\n");
    let structs: [(&str, Fields, usize); 4] = [
        ("flow", &FLOW, FLOW_SIZE),
        ("flow_peer", &PEER, PEER_SIZE),
        ("flow_group", &GROUP, GROUP_SIZE),
        ("flow_ack", &ACK, ACK_SIZE),
    ];
    for (name, fields, size) in structs {
        writeln!(text, "_Static_assert(sizeof(struct {name}) == {size}, \"size of {name}\");").unwrap();
        for (field, offset) in fields {
            writeln!(text, "_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{name}.{field}\");")
                .unwrap();
        }
    }
    for (name, value) in NUMBERS {
        writeln!(text, "_Static_assert((u32){name} == {value}u, \"{name}\");").unwrap();
    }
    let source = concat!(env!("CARGO_TARGET_TMPDIR"), "/frozen.c");
    std::fs::write(source, text).unwrap();
    let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/src/c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(compiler).args(["-std=c11", "-fsyntax-only", "-I", headers, source]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_mirror_lies_where_the_header_does() {
    macro_rules! same {
        ($table:ident, $of:ty, $($field:ident = $name:literal),+) => {
            $(assert_eq!(offset_of!($of, $field), at(&$table, $name), $name);)+
        };
    }
    same!(FLOW, Flow, cwnd = "cwnd", cwnd_cnt = "cwnd_cnt", ssthresh = "ssthresh", burst = "burst");
    same!(FLOW, Flow, pace_bytes_per_s = "pace_Bps", word = "word", post_to = "post_to", post = "post");
    same!(FLOW, Flow, now_us = "now_us", una = "una", nxt = "nxt", mss = "mss", in_flight = "in_flight");
    same!(FLOW, Flow, srtt_us = "srtt_us", rttvar_us = "rttvar_us", prior_cwnd = "prior_cwnd", slot = "self");
    same!(FLOW, Flow, mail = "mail", cwnd_max = "cwnd_max", group = "group");
    same!(FLOW, Flow, delivered = "delivered", lost = "lost", window = "window");
    same!(PEER, Peer, used = "used", id = "id", cwnd = "cwnd", ssthresh = "ssthresh", srtt_us = "srtt_us");
    same!(PEER, Peer, in_flight = "in_flight", mail = "mail", word = "word");
    same!(GROUP, Group, n = "n", joins = "joins", peer = "peer");
    same!(ACK, Ack, acked = "acked", rtt_us = "rtt_us");
    assert_eq!(
        [size_of::<Flow>(), size_of::<Peer>(), size_of::<Group>(), size_of::<Ack>()],
        [FLOW_SIZE, PEER_SIZE, GROUP_SIZE, ACK_SIZE]
    );
}

#[test]
fn the_mirrors_numbers_are_the_headers() {
    let numbers = [
        ("FLOW_PEERS", PEERS as u32),
        ("FLOW_WORDS", WORDS as u32),
        ("FLOW_INFINITE", INFINITE),
        ("FLOW_NOBODY", NOBODY),
        ("FLOW_OPEN", State::Open as u32),
        ("FLOW_DISORDER", State::Disorder as u32),
        ("FLOW_CWR", State::Cwr as u32),
        ("FLOW_RECOVERY", State::Recovery as u32),
        ("FLOW_LOSS", State::Loss as u32),
        ("FLOW_TX_START", Event::TxStart as u32),
        ("FLOW_IDLE", Event::Idle as u32),
        ("FLOW_RECOVERED", Event::Recovered as u32),
        ("FLOW_TIMEOUT", Event::Timeout as u32),
    ];
    for pair in numbers {
        assert!(NUMBERS.contains(&pair), "{pair:?}");
    }
}
