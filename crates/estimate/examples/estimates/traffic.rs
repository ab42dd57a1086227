//! Cross traffic in short words.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::Cross;

pub fn constant(rate: u64, packet: u64) -> Vec<Cross> {
    if rate == 0 { vec![] } else { vec![Cross::Constant { rate: Rate(rate), packet: Bytes(packet) }] }
}

pub fn poisson(rate: u64, packet: u64) -> Vec<Cross> {
    vec![Cross::Poisson { rate: Rate(rate), packet: Bytes(packet) }]
}

pub fn onoff(rate: u64, peak: u64, on: Nanos) -> Vec<Cross> {
    vec![Cross::ParetoOnoff { rate: Rate(rate), peak: Rate(peak), on, shape: 1.5, packet: Bytes(1500) }]
}
