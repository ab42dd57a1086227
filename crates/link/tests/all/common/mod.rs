//! Random parameters that every kind of link has.

use std::sync::Arc;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Aggregation, Format, GilbertElliott, Loss, Policer, Reorder, Schedule, Trace};
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

pub fn reorders() -> impl Strategy<Value = Option<Reorder>> {
    let reorder = (0.01..1.0, prop_oneof![Just(1_000_000u64), 1u64..5_000_000])
        .prop_map(|(share, distance)| Reorder { share, distance: Nanos(distance) });
    prop::option::weighted(0.3, reorder)
}

pub fn aggregations() -> impl Strategy<Value = Option<Aggregation>> {
    let aggregation = (prop_oneof![Just(1000u64), 10u64..4000], 1600u64..20_000)
        .prop_map(|(every, bytes)| Aggregation { every: Nanos::micros(every), bytes: Bytes(bytes) });
    prop::option::weighted(0.3, aggregation)
}

pub fn traces() -> impl Strategy<Value = Option<Trace>> {
    let opportunities =
        prop::collection::vec(prop_oneof![3 => 0u32..2, 1 => 0u32..30], 1..40).prop_filter_map("no period", |gaps| {
            let times = gaps.iter().scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            });
            Schedule::opportunities(times)
        });
    let rates = prop::collection::vec((1u64..20, prop_oneof![1 => Just(0u64), 4 => 500_000u64..50_000_000]), 1..8)
        .prop_filter_map("no rate", |steps| {
            let times = steps.iter().scan(0, |at, (gap, rate)| {
                *at += gap;
                Some((Nanos::millis(*at), Rate(*rate)))
            });
            Schedule::rates(times.collect())
        });
    let schedule = prop_oneof![opportunities, rates];
    let trace = (schedule, 0u64..40_000_000, prop_oneof![Just(1.0), 0.1..3.0]).prop_map(|(schedule, offset, scale)| {
        let trace = Trace::new("f".into(), String::new(), Format::Csv, Arc::new(schedule));
        Trace { offset: Nanos(offset), scale, ..trace }
    });
    prop::option::weighted(0.4, trace)
}
