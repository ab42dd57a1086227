//! What holds for every link with a fair queue under every script, and that with a single flow it is the plain link.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Counters, Cross, DeferredLink, Fair, Jitter, Link, Offered, Params, Queue, Released};
use proptest::prelude::*;

use crate::common::{aggregations, losses, policers, reorders, traces};

fn params() -> impl Strategy<Value = Params> {
    let queue = (0u32..8, 64u64..4000).prop_map(|(packets, q)| Queue::Fair(Fair { packets, quantum: Bytes(q) }));
    let rate = prop_oneof![Just(12_000_000), 500_000u64..50_000_000].prop_map(Rate);
    let jitter = (0u64..4_000_000).prop_map(|amplitude| Jitter { amplitude: Nanos(amplitude), step: Nanos::millis(1) });
    let (rate, jitter) = (prop::option::weighted(0.9, rate), prop::option::of(jitter));
    let delay = prop_oneof![Just(0), Just(1_000_000), 0u64..5_000_000];
    let overhead = prop_oneof![Just(0u64), Just(38)];
    let special = (traces(), aggregations(), reorders());
    (rate, queue, delay, jitter, losses(), overhead, policers(), special).prop_map(
        |(rate, queue, delay, jitter, loss, overhead, policer, (trace, aggregation, reorder))| Params {
            rate: if trace.is_some() { None } else { rate },
            trace,
            aggregation,
            reorder,
            queue,
            delay: Nanos(delay),
            jitter,
            loss,
            policer,
            overhead: Bytes(overhead),
            ..Params::default()
        },
    )
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // a script has few of the small ones
enum Step {
    Offer { bytes: u32, flow: u32 },
    Pop,
    Look,
    Set(Params),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => (1u64..8).prop_map(|n| n * 250_000), 2 => 0u64..1_000_000];
    let bytes = prop_oneof![Just(1500u32), 1u32..3000];
    let step = prop_oneof![
        12 => (bytes, 0u32..5).prop_map(|(bytes, flow)| Step::Offer { bytes, flow }),
        4 => Just(Step::Pop),
        2 => params().prop_map(Step::Set),
    ];
    prop::collection::vec((gap, step), 1..150)
}

/// What a script brought about: what came out, what was not taken or pushed out, the counters after each step.
#[derive(Debug, Default, PartialEq)]
struct Run {
    out: Vec<Released<u32>>,
    gone: Vec<u32>,
    counters: Vec<Counters>,
}

fn play(first: &Params, script: &[(u64, Step)], mut look: impl FnMut(&mut DeferredLink<u32>, Nanos)) -> Run {
    let mut link = DeferredLink::new(first.clone(), 7, "script");
    for (name, rate, packet) in [("poisson", 4_000_000, 700), ("more", 2_000_000, 1500)] {
        let cross = Cross::Poisson { rate: Rate(rate), packet: Bytes(packet) };
        link.add_cross(name, &cross, Nanos(0), Some(Nanos::millis(50)));
    }
    let mut run = Run::default();
    let mut now = Nanos(0);
    for (id, (gap, step)) in script.iter().enumerate() {
        now += Nanos(*gap);
        match step {
            Step::Offer { bytes, flow } => match link.offer(now, *bytes, *flow, id as u32) {
                Offered::Taken => {}
                Offered::Refused(packet) | Offered::PushedOut(packet) => run.gone.push(packet),
            },
            Step::Pop => run.out.extend(std::iter::from_fn(|| link.pop(now))),
            Step::Look => drop(link.backlog(now)),
            Step::Set(params) => link.set(now, params.clone()),
        }
        look(&mut link, now);
        run.counters.push(*link.counters());
    }
    while let Some(due) = link.next_due() {
        now = now.max(due);
        run.out.extend(link.pop(now));
    }
    assert!(link.is_empty());
    run.counters.push(*link.counters());
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn nothing_is_lost_or_made_and_no_flow_is_reordered(first in params(), script in steps()) {
        let reorders = script.iter().any(|(_, step)| matches!(step, Step::Set(params) if params.reorder.is_some()));
        let reorders = reorders || first.reorder.is_some();
        let check = |link: &mut DeferredLink<u32>, now: Nanos| {
            let c = *link.counters();
            let dropped = c.dropped.all().packets;
            assert_eq!(c.offered.packets, c.carried.packets + dropped + link.len() as u64);
            assert_eq!(c.cross.offered.packets, c.cross.entered.packets + c.cross.dropped.packets);
            assert_eq!(c.cross.offered.bytes, c.cross.entered.bytes + c.cross.dropped.bytes);
            assert!(c.busy <= now);
        };
        let run = play(&first, &script, check);
        let c = run.counters.last().unwrap();
        let dropped = c.dropped.all().bytes;
        prop_assert_eq!(c.offered.bytes, c.carried.bytes + dropped);
        // every packet comes back once
        let mut all: Vec<u32> = run.out.iter().map(|r| r.packet).chain(run.gone.iter().copied()).collect();
        all.sort_unstable();
        let offers = script.iter().enumerate().filter(|(_, (_, step))| matches!(step, Step::Offer { .. }));
        prop_assert_eq!(all, offers.map(|(i, _)| i as u32).collect::<Vec<_>>());
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for released in run.out.iter().filter(|r| !r.lost) {
            let Step::Offer { bytes, flow } = script[released.packet as usize].1 else { panic!("{released:?}") };
            prop_assert_eq!(bytes, released.bytes);
            let in_order = last.insert(flow, released.packet).is_none_or(|before| before < released.packet);
            prop_assert!(in_order || reorders);
        }
        prop_assert!(run.out.iter().filter(|r| !r.lost).is_sorted_by_key(|r| r.at));
        let lost = run.out.iter().filter(|r| r.lost).count() as u64;
        prop_assert_eq!(lost + run.gone.len() as u64, c.dropped.all().packets);
    }

    /// Cross traffic and departures are made lazily; when is nobody's business.
    #[test]
    fn looking_in_between_changes_nothing(first in params(), script in steps()) {
        let halves = |(gap, step): &(u64, Step)| [(gap / 2, Step::Look), (gap - gap / 2, step.clone())];
        let split: Vec<_> = script.iter().flat_map(halves).collect();
        let plain = play(&first, &script, |_, _| ());
        let mut looked = play(&first, &split, |_, _| ());
        looked.out.iter_mut().for_each(|released| released.packet /= 2);
        looked.gone.iter_mut().for_each(|packet| *packet /= 2);
        prop_assert_eq!(&plain.out, &looked.out);
        prop_assert_eq!(&plain.gone, &looked.gone);
        prop_assert_eq!(plain.counters.last(), looked.counters.last());
    }

    #[test]
    fn setting_the_same_parameters_changes_nothing(first in params(), script in steps()) {
        let plain = play(&first, &script, |_, _| ());
        prop_assert_eq!(&plain, &play(&first, &script, |_, _| ()));
        let set = play(&first, &script, |link, now| link.set(now, link.params().clone()));
        prop_assert_eq!(&plain, &set);
    }

    /// Every refusal, release and counter, at every step.
    #[test]
    fn a_single_flow_finds_the_plain_link(first in params(), script in steps()) {
        let plainly = |params: &Params| {
            let Queue::Fair(fair) = &params.queue else { panic!("{params:?}") };
            Params { queue: Queue::Packets(fair.packets), ..params.clone() }
        };
        let special = |params: &Params| params.trace.is_some() || params.aggregation.is_some();
        // who decides late may then have to before anything is due
        let mut decides = special(&first);
        let mut link = Link::new(plainly(&first), 7, "script");
        let mut fair = DeferredLink::new(first, 7, "script");
        let mut now = Nanos(0);
        for (id, (gap, step)) in script.iter().enumerate() {
            now += Nanos(*gap);
            match step {
                Step::Offer { bytes, .. } => {
                    let expected = match link.offer(now, *bytes, id as u32) {
                        Ok(()) => Offered::Taken,
                        Err(refused) => Offered::Refused(refused.packet),
                    };
                    prop_assert_eq!(fair.offer(now, *bytes, 3, id as u32), expected);
                }
                Step::Pop => loop {
                    let released = link.pop(now);
                    prop_assert_eq!(&fair.pop(now), &released);
                    if released.is_none() {
                        break;
                    }
                },
                Step::Look => {}
                Step::Set(params) => {
                    decides |= special(params);
                    link.set(now, plainly(params));
                    fair.set(now, params.clone());
                }
            }
            prop_assert_eq!(fair.backlog(now), link.backlog(now));
            prop_assert_eq!(fair.counters(), link.counters());
            let next = (fair.next_due(), link.next_due());
            prop_assert!(next.0 == next.1 || decides && next.0.is_some() && next.0 < next.1, "{:?}", next);
            prop_assert_eq!(fair.len(), link.len());
        }
        while let Some(due) = link.next_due() {
            now = now.max(due);
            prop_assert_eq!(fair.pop(now), link.pop(now));
        }
        prop_assert!(fair.is_empty());
        prop_assert_eq!(fair.counters(), link.counters());
    }
}
