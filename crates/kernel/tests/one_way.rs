//! Privileged: LP takes the one-way delay where the routes of both ends count timestamps in microseconds, else the RTT.

mod live;
mod microseconds;

use live::{Bulk, able, defaults, name, network, scenario, until};
use pathcast_kernel::Loaded;
use socket2::Protocol;

/// Where `lp.h` has `min_us`, `max_us` and `owd_known` in its state.
const STATE: [usize; 3] = [40, 44, 56];
/// A one-way delay's origin is moved to it, RTTs are far below.
const ORIGIN_US: u32 = 1 << 30;

/// Smallest and largest delay, and whether they are one-way delays.
fn delays(loaded: &Loaded) -> (u32, u32, bool) {
    let flows = loaded.flows().unwrap();
    let [flow] = flows.as_slice() else { panic!("{flows:?}") };
    let [min, max, known] = STATE.map(|at| u32::from_ne_bytes(flow.state[at..at + 4].try_into().unwrap()));
    (min, max, known == 1)
}

#[test]
fn lp_takes_one_way_delays_where_both_ends_count_in_microseconds() {
    let what = "LP's one-way delay";
    if !able(what) {
        return;
    }
    if !microseconds::known() {
        return println!("SKIPPED: {what}: timestamps in microseconds are missing; mend: a kernel from 6.7 on");
    }
    for feature in [false, true] {
        let name = name();
        let Some(network) = network(what, &name, &scenario(&[("20Mbit", "20ms")], "60 packets")) else { return };
        if feature {
            microseconds::both_ends_count(&network);
        }
        let loaded = Loaded::load(&name, &defaults("lp"), None).unwrap();
        let bulk = Bulk::start(&network, Protocol::TCP, loaded.name());
        bulk.goes_on(1_000_000); // the first ACK of data tells which it is
        until("delays of two sizes", || {
            let (min, max, _) = delays(&loaded);
            max > min
        });
        let (min, max, one_way) = delays(&loaded);
        println!("microseconds: {feature}; one-way: {one_way}; smallest {min}, largest {max}");
        bulk.stop();
        assert_eq!(one_way, feature);
        assert_eq!(min > ORIGIN_US / 2, feature, "an RTT is far below the origin of one-way delays");
        assert!(max > min && max - min < 2_000_000, "a queue of 60 packets is 36 ms");
    }
}
