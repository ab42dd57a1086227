//! What holds for every link under every script: conservation, order, determinism, bounded jitter.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Bucket, Counters, Cross, Jitter, Link, Params, Queue, Red, Released};
use proptest::prelude::*;

use crate::common::{aggregations, losses, policers, reorders, traces};

fn params() -> impl Strategy<Value = Params> {
    let red = Red { min: 1.0, max: 4.0, limit: 10, probability: 0.2, weight: 0.3, ecn: false };
    let queue = prop_oneof![
        (0u32..8).prop_map(Queue::Packets),
        (0u64..12_000).prop_map(|bytes| Queue::Bytes(Bytes(bytes))),
        Just(Queue::Red(red)),
    ];
    let rate = || (500_000u64..50_000_000).prop_map(Rate);
    let bucket = (rate(), 1600u64..20_000).prop_map(|(rate, burst)| Bucket { rate, burst: Bytes(burst) });
    let jitter = (0u64..4_000_000).prop_map(|amplitude| Jitter { amplitude: Nanos(amplitude), step: Nanos::millis(1) });
    let (rate, bucket) = (prop::option::weighted(0.8, rate()), prop::option::weighted(0.3, bucket));
    let special = (traces(), aggregations(), reorders());
    (rate, queue, bucket, 0u64..5_000_000, prop::option::of(jitter), losses(), policers(), special).prop_map(
        |(rate, queue, bucket, delay, jitter, loss, policer, (trace, aggregation, reorder))| Params {
            rate: if trace.is_some() { None } else { rate },
            queue,
            bucket: if trace.is_some() || aggregation.is_some() { None } else { bucket },
            trace,
            aggregation,
            reorder,
            delay: Nanos(delay),
            jitter,
            loss,
            policer,
            ..Params::default()
        },
    )
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // a script has few of the small ones
enum Step {
    Offer(u32),
    Pop,
    Look,
    Set(Params),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let gap = prop_oneof![Just(0u64), 0u64..1_000_000];
    let step =
        prop_oneof![12 => (1u32..3000).prop_map(Step::Offer), 4 => Just(Step::Pop), 2 => params().prop_map(Step::Set)];
    prop::collection::vec((gap, step), 1..150)
}

/// Plays a script; returns what came out and the counters after each step. `look` sees the link after each step.
fn play(
    first: &Params,
    script: &[(u64, Step)],
    mut look: impl FnMut(&mut Link<u32>, Nanos),
) -> (Vec<Released<u32>>, Vec<Counters>) {
    let mut link = Link::new(first.clone(), 7, "script");
    for (name, cross) in [
        ("poisson", Cross::Poisson { rate: Rate(4_000_000), packet: Bytes(700) }),
        (
            "bursts",
            Cross::ParetoOnoff {
                rate: Rate(1_000_000),
                peak: Rate(8_000_000),
                on: Nanos::millis(3),
                shape: 1.5,
                packet: Bytes(1500),
            },
        ),
    ] {
        link.add_cross(name, &cross, Nanos(0), Some(Nanos::millis(50)));
    }
    let (mut out, mut counters) = (Vec::new(), Vec::new());
    let mut now = Nanos(0);
    for (id, (gap, step)) in script.iter().enumerate() {
        now += Nanos(*gap);
        match step {
            Step::Offer(bytes) => drop(link.offer(now, *bytes, id as u32)),
            Step::Pop => out.extend(std::iter::from_fn(|| link.pop(now))),
            Step::Look => drop(link.backlog(now)),
            Step::Set(params) => link.set(now, params.clone()),
        }
        look(&mut link, now);
        counters.push(*link.counters());
    }
    while let Some(due) = link.next_due() {
        out.extend(link.pop(due.max(now)));
    }
    counters.push(*link.counters());
    (out, counters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_is_lost_or_made_and_nothing_overtakes_unasked(first in params(), script in steps()) {
        let reorders = script.iter().any(|(_, step)| matches!(step, Step::Set(params) if params.reorder.is_some()));
        let reorders = reorders || first.reorder.is_some();
        let check = |link: &mut Link<u32>, now| {
            let c = *link.counters();
            let dropped = c.dropped.all().packets;
            assert_eq!(c.offered.packets, c.carried.packets + dropped + link.len() as u64);
            assert_eq!(c.cross.offered.packets, c.cross.entered.packets + c.cross.dropped.packets);
            assert_eq!(c.cross.offered.bytes, c.cross.entered.bytes + c.cross.dropped.bytes);
            assert!(c.busy <= now);
            let dues: Vec<Nanos> = link.upcoming().map(|(due, _)| due).collect();
            assert!(dues.is_sorted());
            assert!(link.next_due() == dues.first().copied() || reorders);
        };
        let (out, counters) = play(&first, &script, check);
        prop_assert!(out.is_sorted_by_key(|r| r.at));
        prop_assert!(reorders || out.is_sorted_by(|a, b| a.packet < b.packet));
        let c = counters.last().unwrap();
        let dropped = c.dropped.all().bytes;
        prop_assert_eq!(c.offered.bytes, c.carried.bytes + dropped);
        prop_assert_eq!(out.iter().filter(|r| r.lost).count() as u64, c.dropped.loss.packets);
        prop_assert!(out.iter().all(|r| matches!(script[r.packet as usize].1, Step::Offer(b) if b == r.bytes)));
    }

    #[test]
    fn the_same_script_gives_the_same(first in params(), script in steps()) {
        prop_assert_eq!(play(&first, &script, |_, _| ()), play(&first, &script, |_, _| ()));
    }

    /// Cross traffic and departures are made lazily; when is nobody's business.
    #[test]
    fn looking_in_between_changes_nothing(first in params(), script in steps()) {
        let halves = |(gap, step): &(u64, Step)| [(gap / 2, Step::Look), (gap - gap / 2, step.clone())];
        let split: Vec<_> = script.iter().flat_map(halves).collect();
        let (plain, plain_counters) = play(&first, &script, |_, _| ());
        let (mut looked, looked_counters) = play(&first, &split, |_, _| ());
        for released in &mut looked {
            released.packet /= 2;
        }
        prop_assert_eq!(plain, looked);
        prop_assert_eq!(&plain_counters[0], &looked_counters[1]);
        prop_assert_eq!(plain_counters.last(), looked_counters.last());
    }

    #[test]
    fn setting_the_same_parameters_changes_nothing(first in params(), script in steps()) {
        let plain = play(&first, &script, |_, _| ());
        let set = play(&first, &script, |link, now| link.set(now, link.params().clone()));
        prop_assert_eq!(&plain, &set);
    }

    /// The same link without jitter is never later, and with it no more than the amplitude later.
    #[test]
    fn jitter_only_adds_and_no_more_than_its_amplitude(first in params(), script in steps()) {
        let jitter = Some(Jitter { amplitude: Nanos::millis(3), step: Nanos::millis(1) });
        let with = |jitter| {
            let first = Params { jitter, reorder: None, ..first.clone() };
            let script: Vec<_> = script.iter().cloned().map(|(gap, step)| match step {
                Step::Set(params) => (gap, Step::Set(Params { jitter, reorder: None, ..params })),
                other => (gap, other),
            }).collect();
            play(&first, &script, |_, _| ()).0
        };
        let (plain, moved) = (with(None), with(jitter));
        prop_assert_eq!(plain.len(), moved.len());
        for (plain, moved) in plain.iter().zip(&moved) {
            prop_assert!(plain.at <= moved.at && moved.at <= plain.at + Nanos::millis(3));
        }
    }
}
