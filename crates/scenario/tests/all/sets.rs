//! `--set`: what it reaches, what it refuses.

use crate::common::{SMALL, refusal, sets};
use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Aggregation, Fair, GilbertElliott, Loss, Policer, Queue};
use pathcast_scenario::{Place, Preset, Scenario, Scheduler, Source, Value, Workload};

fn with(text: &str, set: &[(&str, &str)]) -> Scenario {
    Scenario::parse(text, &sets(set)).unwrap_or_else(|error| panic!("{error}"))
}

fn two_flows() -> String {
    SMALL.to_owned() + "[[flow]]\nname = \"other\"\npaths = [\"path1\"]\n"
}

#[test]
fn every_part_can_be_set() {
    let one = |key: &str, value: &str| with(SMALL, &[(key, value)]);
    assert_eq!(one("seed", "7").seed, 7);
    assert_eq!(one("end", "20s").end, Some(Nanos::secs(20)));
    assert_eq!(one("name", "7").name, "7");
    assert_eq!(one("flow.bulk.control", "lia").flows[0].control, "lia");
    assert_eq!(one("control", "lia").flows[0].control, "lia");
    assert_eq!(one("subflows", "4").flows[0].subflows, 4);
    assert_eq!(one("bytes", "1MB").flows[0].workload, Workload::Bytes(Bytes(1_000_000)));
    assert_eq!(one("link.wire.rate", "2Mbit").links[0].ba.rate, Some(Rate(2_000_000)));
    assert_eq!(one("link.wire.loss", "0").links[0].ab.loss, 0.0);
    assert_eq!(one("link.wire.loss", "0.25").links[0].ab.loss, 0.25);
    let bursts = one("link.wire.loss", "{ kind = \"gilbert-elliott\", p = 0.01, r = 1 }").links[0].ab.loss;
    assert_eq!(bursts, Loss::Bursts(GilbertElliott { p: 0.01, r: 1.0, good: 0.0, bad: 1.0 }));
    let policed = one("link.wire.policer", "{ rate = \"1Mbit\", burst = \"15KB\" }").links[0].ba.policer;
    let gathered = one("link.wire.aggregation", "{ every = \"4ms\", bytes = \"9KB\" }").links[0].ba.aggregation;
    assert_eq!(gathered, Some(Aggregation { every: Nanos::millis(4), bytes: Bytes(9000) }));
    assert_eq!(policed, Some(Policer { rate: Rate(1_000_000), burst: Bytes(15_000) }));
    assert_eq!(one("link.wire.queue", "20 packets").links[0].ab.queue, Queue::Packets(20));
    let red = one("link.wire.queue", "{ kind = \"red\", min = 5, max = 15, limit = 50 }");
    assert!(matches!(red.links[0].ab.queue, Queue::Red(_)));
    let fair = one("link.wire.queue", "{ kind = \"fair\", packets = 5, quantum = \"64B\" }");
    assert_eq!(fair.links[0].ba.queue, Queue::Fair(Fair { packets: 5, quantum: Bytes(64) }));
    assert_eq!(one("host.client.receive_batch", "50us").hosts.client.receive_batch, Nanos::micros(50));
    assert_eq!(one("host.client.send_segments", "1").hosts.client.send_segments, Some(1));
    assert_eq!(one("host.server.receive_batch_packets", "9").hosts.server.receive_batch_packets, 9);
    assert_eq!(one("host.server.clock_offset", "-1m").hosts.server.clock_offset_ns, -60_000_000_000);
    assert_eq!(one("host.client.clock_skew_ppm", "-20").hosts.client.clock_skew_ppm, -20.0);
    assert_eq!(one("tcp.rack", "true").tcp.rack, Some(true));
    assert_eq!(one("tcp.scheduler", "roundrobin").tcp.scheduler, Some(Scheduler::RoundRobin));
    assert_eq!(one("tcp.preset", "rfc").tcp.preset, Preset::Rfc);
    assert_eq!(one("tcp.sack", "false").tcp.sack, Some(false));
    assert_eq!(one("tcp.mss", "1400B").tcp.mss, Some(Bytes(1400)));
    let value = |text: &str| one("control.gsam.x", text).control["gsam"]["x"].clone();
    assert_eq!(value("3"), Value::Integer(3));
    assert_eq!(value("3.5"), Value::Float(3.5));
    assert_eq!(value("true"), Value::Bool(true));
    assert_eq!(value("3ms"), Value::Text("3ms".into()));
}

#[test]
fn one_direction_keeps_the_other() {
    let s = with(SMALL, &[("link.wire.rate.ab", "1Mbit"), ("link.wire.delay.ba", "3ms")]);
    assert_eq!((s.links[0].ab.rate, s.links[0].ba.rate), (Some(Rate(1_000_000)), Some(Rate(5_000_000))));
    assert_eq!((s.links[0].ab.delay, s.links[0].ba.delay), (Nanos::ZERO, Nanos::millis(3)));
}

#[test]
fn lists_and_empty_values() {
    let text = SMALL.to_owned() + "[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\n";
    for value in ["path2,path1", "path2, path1", "[\"path2\", \"path1\"]"] {
        assert_eq!(with(&text, &[("flow.bulk.paths", value)]).flows[0].paths, [1, 0]);
    }
    assert_eq!(with(SMALL, &[("link.wire.rate", "")]).links[0].ab.rate, None);
}

#[test]
fn later_sets_win_and_build_on_earlier_ones() {
    let s = with(SMALL, &[("seed", "2"), ("seed", "3"), ("flow.bulk.web.think", "1s"), ("flow.bulk.web.shape", "2")]);
    assert_eq!(s.seed, 3);
    assert!(matches!(s.flows[0].workload, Workload::Web(web) if web.shape == 2.0 && web.think == Nanos::secs(1)));
}

#[test]
fn unnamed_tables_have_numbers() {
    let text = SMALL.to_owned()
        + "[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n[[change]]\nat = \"1s\"\nlink = \"wire\"\nloss = 0\n";
    let s = with(&text, &[("traffic.traffic1.flows", "5"), ("change.1.at", "2s")]);
    assert!(matches!(s.traffic[0].source, Source::Tcp { flows: 5, .. }));
    assert_eq!(s.changes[0].at, Nanos::secs(2));
}

#[test]
fn refusals_name_the_set() {
    let two = two_flows();
    for (text, key, value, message) in [
        (SMALL, "sed", "7", "allowed: name, seed, end, control, subflows, bytes, link.wire.KEY"),
        (SMALL, "", "7", "a name is missing"),
        (SMALL, "link..rate", "7", "a name is missing"),
        (SMALL, "link", "7", "as in `link.wire.KEY`"),
        (SMALL, "link.wire", "7", "a key of the link is missing"),
        (SMALL, "link.wier.rate", "1Mbit", "there is no link `wier`; allowed: wire"),
        (SMALL, "link.wire.name", "w", "cannot be set"),
        (SMALL, "link.wire.speed", "1Mbit", "allowed: name, a, b, rate"),
        (SMALL, "link.wire.rate", "fast", "it does not start with a number"),
        (SMALL, "link.wire.rate.up", "1Mbit", "but the file has \"5Mbit\" there"),
        (SMALL, "link.wire.loss", "2", "0 to 1"),
        (SMALL, "link.wire.loss", "high", "a number"),
        (SMALL, "link.wire.queue", "{ kind", "not TOML"),
        (SMALL, "flow.bulk.paths", "path1,path9", "there is no path `path9`; allowed: path1"),
        (SMALL, "flow.other.control", "lia", "there is no flow `other`; allowed: bulk"),
        (SMALL, "subflows", "9", "1 to 8"),
        (SMALL, "subflows", "many", "a whole number"),
        (SMALL, "seed", "1.5", "a whole number"),
        (SMALL, "seed.x", "1", "there is no key `seed.x`"),
        (SMALL, "tcp", "rfc", "`tcp` is not a key that can be set"),
        (SMALL, "tcp.preset", "bsd", "allowed: linux, ns3, ns2, rfc"),
        (SMALL, "tcp.sack", "maybe", "true or false"),
        (SMALL, "control.gsam", "3", "control.NAME.KEY"),
        (SMALL, "host.client", "3", "`host.client` is not a key that can be set"),
        (SMALL, "host.clock_skew_ppm", "3", "host.client.KEY, host.server.KEY"),
        (SMALL, "host.router.clock_skew_ppm", "3", "allowed: client, server"),
        (SMALL, "host.client.clock", "3", "allowed: clock_offset, clock_skew_ppm, receive_batch"),
        (SMALL, "host.client.receive_batch", "2s", "0s to 1s"),
        (&two, "control", "lia", "allowed: flow.bulk.control, flow.other.control"),
    ] {
        let refusal = refusal(text, &[(key, value)]);
        let shown = refusal.to_string();
        assert_eq!(refusal.place, Place::Set(format!("{key}={value}")), "{shown}");
        assert!(shown.starts_with(&format!("--set {key}={value}: ")), "{shown}");
        assert!(shown.contains(message), "{shown}: no {message}");
    }
    let hint = |key: &str, value: &str| refusal(SMALL, &[(key, value)]).hint.unwrap_or_default();
    assert_eq!(hint("lnik.wire.rate", "1Mbit"), "did you mean `link`?");
    assert_eq!(hint("link.wire.rat", "1Mbit"), "did you mean `rate`?");
}

#[test]
fn the_short_forms_need_a_flow() {
    let none = SMALL.split("[[flow]]").next().unwrap();
    assert!(refusal(none, &[("control", "lia")]).to_string().contains("has no flow"));
}
