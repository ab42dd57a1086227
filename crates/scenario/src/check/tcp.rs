//! `[tcp]` and `[control.NAME]`: ranges, and names that can be names.

use std::collections::BTreeMap;

use super::params;
use super::place::{self, Spot};
use crate::error::Problem;
use crate::model::Value;
use crate::tcp::Tcp;

pub(super) fn tcp(spot: &Spot, tcp: &Tcp) -> Result<(), Problem> {
    let mss = tcp.mss.map(|mss| mss.0);
    let ranges = [
        ("initial_window", tcp.initial_window.map(u64::from), 1, 1000, ""),
        ("mss", mss, 64, 65_439, "B"), // with the headers of Multipath TCP over IPv6 a packet of 65,535 B
        ("initial_ssthresh", tcp.initial_ssthresh.map(|bytes| bytes.0), 1, 1 << 40, "B"),
        ("delayed_ack", tcp.delayed_ack.map(u64::from), 1, 2, ""),
        ("abc_limit", tcp.abc_limit.map(u64::from), 1, 65_535, ""),
        ("receive_buffer", tcp.receive_buffer.map(|bytes| bytes.0), mss.unwrap_or(1), 1 << 40, "B"),
        ("send_buffer", tcp.send_buffer.map(|bytes| bytes.0), mss.unwrap_or(1), 1 << 40, "B"),
    ];
    for (key, value, low, high, unit) in ranges {
        if let Some(value) = value {
            params::within(&spot.key(key), value, low, high, unit)?;
        }
    }
    let times =
        [("delayed_ack_timeout", tcp.delayed_ack_timeout), ("min_rto", tcp.min_rto), ("initial_rto", tcp.initial_rto)];
    for (key, time) in times {
        if time.is_some_and(|time| !(1..=120_000_000_000).contains(&time.0)) {
            return Err(spot.key(key).refuse("out of range").allowed("above 0s, at most 120s"));
        }
    }
    if tcp.rack == Some(true) && tcp.sack == Some(false) {
        // RFC 8985, section 4
        return Err(spot.key("rack").refuse("works with SACK only").allowed("false, or sack = true"));
    }
    Ok(())
}

pub(super) fn control(spot: &Spot, control: &BTreeMap<String, BTreeMap<String, Value>>) -> Result<(), Problem> {
    for (name, values) in control {
        let spot = spot.key(name);
        place::name(&spot, name)?;
        for (key, value) in values {
            place::name(&spot.key(key), key)?;
            if matches!(value, Value::Float(x) if !x.is_finite()) {
                return Err(spot.key(key).refuse("not a number").allowed("a finite number, true, false or a text"));
            }
        }
    }
    Ok(())
}
