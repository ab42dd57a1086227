//! `[host.client]` and `[host.server]`: ranges and defaults.

use pathcast_base::Nanos;

use super::params;
use super::place::Spot;
use crate::error::Problem;
use crate::host::{Host, Hosts};
use crate::raw;

const MOST_OFFSET_NS: u64 = 1000 * 3600 * 1_000_000_000;
const MOST_SKEW_PPM: f64 = 10_000.0;

pub(super) fn hosts(spot: &Spot, raw: &raw::Hosts) -> Result<Hosts, Problem> {
    Ok(Hosts { client: host(&spot.key("client"), &raw.client)?, server: host(&spot.key("server"), &raw.server)? })
}

fn host(spot: &Spot, raw: &raw::Host) -> Result<Host, Problem> {
    let default = Host::default();
    let host = Host {
        clock_offset_ns: raw.clock_offset.map_or(default.clock_offset_ns, |offset| offset.0),
        clock_skew_ppm: raw.clock_skew_ppm.unwrap_or(default.clock_skew_ppm),
        receive_batch: raw.receive_batch.unwrap_or(default.receive_batch),
        receive_batch_packets: raw.receive_batch_packets.unwrap_or(default.receive_batch_packets),
        send_segments: raw.send_segments,
    };
    if host.clock_offset_ns.unsigned_abs() > MOST_OFFSET_NS {
        return Err(spot.key("clock_offset").refuse("out of range").allowed("-1000h to 1000h"));
    }
    // false for NaN
    if !(-MOST_SKEW_PPM..=MOST_SKEW_PPM).contains(&host.clock_skew_ppm) {
        let problem = spot.key("clock_skew_ppm").refuse("out of range");
        return Err(problem.allowed(format!("-{MOST_SKEW_PPM} to {MOST_SKEW_PPM}")));
    }
    if host.receive_batch > Nanos::secs(1) {
        return Err(spot.key("receive_batch").refuse("too long").allowed("0s to 1s"));
    }
    params::within(&spot.key("receive_batch_packets"), host.receive_batch_packets.into(), 1, 65_535, "")?;
    if let Some(segments) = host.send_segments {
        params::within(&spot.key("send_segments"), segments.into(), 1, 65_535, "")?;
    }
    Ok(host)
}
