//! `[host.client]` and `[host.server]`: what they mean and what is refused.

use crate::common::{SMALL, after, good, refusal};
use pathcast_base::Nanos;
use pathcast_scenario::{End, Host, Hosts, Place, Scenario};

/// The text, then the line, the key, the value and a part of the message.
fn check(text: &str, line: usize, key: &str, value: &str, message: &str) {
    let refusal = refusal(text, &[]);
    let shown = refusal.to_string();
    assert_eq!((refusal.place, refusal.key.as_str()), (Place::Line(line), key), "{shown}");
    assert!(shown.contains(value) && shown.contains(message), "{shown}: no {message}");
}

#[test]
fn values_and_defaults() {
    let s = good(&after(
        "paths",
        "[host.client]\nclock_offset = \"-3ms\"\nclock_skew_ppm = -12.5\nreceive_batch = \"50us\"\n\
         receive_batch_packets = 8\nsend_segments = 1\n[host.server]\nclock_offset = \"1000h\"\n",
    ));
    let client = Host {
        clock_offset_ns: -3_000_000,
        clock_skew_ppm: -12.5,
        receive_batch: Nanos::micros(50),
        receive_batch_packets: 8,
        send_segments: Some(1),
    };
    let server = Host { clock_offset_ns: 3_600_000_000_000_000, ..Host::default() };
    assert_eq!(s.hosts, Hosts { client, server });
    assert_eq!((s.hosts.get(End::Client), s.hosts.get(End::Server)), (&client, &server));
    let whole = good(&after("paths", "[host.server]\nclock_skew_ppm = 10000\nclock_offset = \"0\""));
    assert_eq!(whole.hosts.server, Host { clock_skew_ppm: 10_000.0, ..Host::default() });
    let none = good(SMALL);
    assert_eq!(none.hosts, Hosts::default());
    assert_eq!((none.hosts.client.receive_batch, none.hosts.client.receive_batch_packets), (Nanos::ZERO, 64));
    // documents that were written before there were hosts
    let mut json: serde_json::Value = serde_json::from_str(&none.to_json()).unwrap();
    assert!(json.as_object_mut().unwrap().remove("hosts").is_some());
    assert_eq!(Scenario::from_json(&json.to_string()).unwrap(), none);
    assert_eq!(Scenario::from_json(&s.to_json()).unwrap(), s);
}

#[test]
fn refusals() {
    let host = |line: &str, key: &str, value: &str, message: &str| {
        check(&after("paths", &format!("[host.client]\n{line}")), 14, &format!("host.client.{key}"), value, message);
    };
    host("clock_offset = 3", "clock_offset", "3", "a duration such as `-3ms`");
    host("clock_offset = \"--3ms\"", "clock_offset", "--3ms", "negative");
    host("clock_offset = \"-3\"", "clock_offset", "-3", "the unit is missing");
    host("clock_offset = \"1001h\"", "clock_offset", "1001h", "allowed: -1000h to 1000h");
    host("clock_offset = \"-5124095h\"", "clock_offset", "-5124095h", "allowed: -1000h to 1000h");
    host("clock_skew_ppm = 10001", "clock_skew_ppm", "10001", "allowed: -10000 to 10000");
    host("clock_skew_ppm = nan", "clock_skew_ppm", "NaN", "allowed: -10000 to 10000");
    host("receive_batch = \"-1us\"", "receive_batch", "-1us", "it is negative");
    host("receive_batch = \"1001ms\"", "receive_batch", "1001ms", "allowed: 0s to 1s");
    host("receive_batch_packets = 0", "receive_batch_packets", "0", "1 to 65535");
    host("receive_batch_packets = 65536", "receive_batch_packets", "65536", "1 to 65535");
    host("send_segments = 0", "send_segments", "0", "1 to 65535");
    host("receive = 1", "receive", "1", "allowed: clock_offset, clock_skew_ppm, receive_batch, receive_batch_packets");
    check(&after("paths", "[host.router]"), 13, "host.router", "", "allowed: client, server");
    check(&after("paths", "host = 3"), 13, "flow.bulk.host", "3", "unknown key");
    check(&after("end", "host = 3"), 2, "host", "3", "a table");
}
