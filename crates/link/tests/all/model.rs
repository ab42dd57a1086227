//! Random scripts on a link and on the reference model: every release, refusal and counter must be equal, to the
//! nanosecond.

use crate::reference::{Reference, Totals};
use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Bucket, Cause, Cross, CrossId, Link, Params, Queue};
use proptest::prelude::*;

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
enum Step {
    Offer(u32),
    Pop,
    Advance,
    Set(Params),
    AddCross { after: u64, cross: (Rate, Bytes) },
    SetCross { index: usize, cross: (Rate, Bytes) },
    RemoveCross { index: usize },
}

/// Round numbers beside odd ones: round ones make events meet.
fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![Just(12_000_000), Just(8_000_000), Just(24_000_000), Just(7_000_003), 100_000u64..50_000_000]
        .prop_map(Rate)
}

fn sizes() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(1500u32), 1 => Just(500u32), 1 => 1u32..9000]
}

fn params() -> impl Strategy<Value = Params> {
    let queue =
        prop_oneof![(0u32..8).prop_map(Queue::Packets), (0u64..12_000).prop_map(|bytes| Queue::Bytes(Bytes(bytes))),];
    let bucket = (rates(), prop_oneof![Just(3000u64), 1600u64..20_000])
        .prop_map(|(rate, burst)| Bucket { rate, burst: Bytes(burst) });
    let delay = prop_oneof![Just(0), Just(1_000_000), 0u64..5_000_000];
    let overhead = prop_oneof![Just(0u64), Just(38)];
    (prop::option::weighted(0.8, rates()), queue, prop::option::weighted(0.4, bucket), delay, overhead).prop_map(
        |(rate, queue, bucket, delay, overhead)| Params {
            rate,
            queue,
            bucket,
            delay: Nanos(delay),
            overhead: Bytes(overhead),
            ..Params::default()
        },
    )
}

fn cross() -> impl Strategy<Value = (Rate, Bytes)> {
    (rates(), sizes()).prop_map(|(rate, bytes)| (Rate(rate.0 / 2), Bytes(u64::from(bytes.max(300)))))
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let gap = prop_oneof![3 => Just(0u64), 4 => (1u64..8).prop_map(|n| n * 250_000), 2 => 0u64..3_000_000];
    let step = prop_oneof![
        12 => sizes().prop_map(Step::Offer),
        4 => Just(Step::Pop),
        1 => Just(Step::Advance),
        3 => params().prop_map(Step::Set),
        1 => (0u64..3_000_000, cross()).prop_map(|(after, cross)| Step::AddCross { after, cross }),
        1 => (0usize..3, cross()).prop_map(|(index, cross)| Step::SetCross { index, cross }),
        1 => (0usize..3).prop_map(|index| Step::RemoveCross { index }),
    ];
    prop::collection::vec((gap, step), 1..120)
}

fn totals(link: &mut Link<u32>, now: Nanos) -> Totals {
    let waiting = link.backlog(now);
    let counters = link.counters();
    Totals {
        waiting: (waiting.packets, waiting.bytes),
        most: (counters.queue_max.packets, counters.queue_max.bytes),
        busy: counters.busy.0,
        cross_entered: counters.cross.entered.packets,
        cross_dropped: counters.cross.dropped.packets,
    }
}

fn constant((rate, packet): (Rate, Bytes)) -> Cross {
    Cross::Constant { rate, packet }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]
    #[test]
    fn equals_the_reference(first in params(), script in steps()) {
        let mut link = Link::new(first.clone(), 1, "model");
        let mut model = Reference::new(first);
        let mut sources: Vec<CrossId> = Vec::new();
        let mut now = 0;
        for (id, (gap, step)) in script.into_iter().enumerate() {
            now += gap;
            let (id, at) = (id as u32, Nanos(now));
            match step {
                Step::Offer(bytes) => {
                    let refused = link.offer(at, bytes, id).err();
                    prop_assert!(refused.as_ref().is_none_or(|r| r.cause == Cause::Queue && r.packet == id));
                    prop_assert_eq!(refused.is_none(), model.offer(now, bytes, id));
                }
                Step::Pop => {
                    while let Some(expected) = model.pop(now) {
                        let got = link.pop(at).map(|r| (r.at.0, r.packet));
                        prop_assert_eq!(got, Some(expected));
                    }
                    prop_assert!(link.pop(at).is_none());
                }
                Step::Advance => link.advance(at),
                Step::Set(params) => {
                    link.set(at, params.clone());
                    model.set(now, params);
                }
                Step::AddCross { after, cross } if sources.len() < 3 => {
                    link.advance(at);
                    model.run(now);
                    sources.push(link.add_cross("cross", &constant(cross), Nanos(now + after), None));
                    model.add_cross(now + after, cross.0, cross.1);
                }
                Step::SetCross { index, cross } if index < sources.len() => {
                    link.set_cross(at, sources[index], &constant(cross));
                    model.set_cross(now, index, cross.0, cross.1);
                }
                Step::RemoveCross { index } if index < sources.len() => {
                    link.remove_cross(at, sources[index]);
                    model.remove_cross(now, index);
                }
                _ => {}
            }
            model.run(now);
            prop_assert_eq!(totals(&mut link, at), model.totals(), "at {}", now);
        }
        for (index, &id) in sources.iter().enumerate() {
            link.remove_cross(Nanos(now), id);
            model.remove_cross(now, index);
        }
        while let Some(due) = link.next_due() {
            now = now.max(due.0);
            let got = link.pop(Nanos(now)).map(|r| (r.at.0, r.packet));
            prop_assert_eq!(got, model.pop(now));
        }
        prop_assert_eq!(model.pop(now + 1_000_000_000_000), None);
    }
}
