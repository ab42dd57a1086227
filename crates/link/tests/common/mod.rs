//! Random parameters that every kind of link has.

use pathcast_base::{Bytes, Rate};
use pathcast_link::{GilbertElliott, Loss, Policer};
use proptest::prelude::*;

pub fn losses() -> impl Strategy<Value = Loss> {
    let bursts = (0.01..1.0, 0.01..1.0, 0.0..0.5, 0.5..1.0)
        .prop_map(|(p, r, good, bad)| Loss::Bursts(GilbertElliott { p, r, good, bad }));
    prop_oneof![2 => Just(Loss::Random(0.0)), 1 => (0.0..1.0).prop_map(Loss::Random), 1 => bursts]
}

pub fn policers() -> impl Strategy<Value = Option<Policer>> {
    let policer = (500_000u64..50_000_000, 1600u64..20_000)
        .prop_map(|(rate, burst)| Policer { rate: Rate(rate), burst: Bytes(burst) });
    prop::option::weighted(0.3, policer)
}
