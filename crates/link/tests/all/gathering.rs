//! Packets that gather until the link's next opportunity: exact departures, the rate that follows, and what a change does.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Aggregation, Link, Params, Queue};
use proptest::prelude::*;

fn gathering(every_us: u64, bytes: u64, rate: Option<u64>, queue: u32) -> Params {
    let aggregation = Some(Aggregation { every: Nanos::micros(every_us), bytes: Bytes(bytes) });
    let params = Params { aggregation, rate: rate.map(Rate), queue: Queue::Packets(queue), ..Params::default() };
    assert_eq!(params.check(), Ok(()));
    params
}

fn dues(link: &Link<u32>) -> Vec<u64> {
    link.upcoming().map(|(due, _)| due.0 / 1000).collect()
}

#[test]
fn what_was_sent_by_then_leaves_together() {
    // a packet a millisecond, an opportunity every four
    let mut link = Link::new(gathering(4000, 60_000, Some(12_000_000), 1000), 1, "l");
    (0..9).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    assert_eq!(dues(&link), [4000, 4000, 4000, 4000, 8000, 8000, 8000, 8000, 12_000]);
    // alone, it waits for the next
    let mut link = Link::new(Params { delay: Nanos::millis(10), ..gathering(4000, 60_000, None, 0) }, 1, "l");
    for (at, due) in [(1, 14), (3, 14), (4, 14), (5, 18)] {
        link.offer(Nanos::millis(at), 1500, 0).unwrap();
        assert_eq!(link.upcoming().next_back().unwrap().0, Nanos::millis(due));
    }
    link.begin(Nanos::millis(3));
    link.offer(Nanos::millis(30), 1500, 0).unwrap();
    assert_eq!(link.upcoming().next_back().unwrap().0, Nanos::millis(31 + 10));
}

#[test]
fn no_more_than_its_bytes_leave_at_one() {
    // three of 1500 bytes fit into 5000
    let mut link = Link::new(gathering(4000, 5000, None, 1000), 1, "l");
    (0..10).for_each(|i| link.offer(Nanos(1), 1500, i).unwrap());
    assert_eq!(dues(&link), [4000, 4000, 4000, 8000, 8000, 8000, 12_000, 12_000, 12_000, 16_000]);
    // three gather, and a fourth holds the serialiser until they have gone
    assert_eq!(link.backlog(Nanos(1)).packets, 6);
    let mut small = Link::new(gathering(4000, 5000, None, 2), 1, "l");
    assert_eq!((0..20).filter(|&i| small.offer(Nanos(1), 1500, i).is_ok()).count(), 6);
}

#[test]
fn the_long_run_rate_is_the_smaller_of_the_two() {
    for (rate, bytes, expected) in
        [(Some(12_000_000), 60_000, 12e6), (Some(100_000_000), 15_000, 30e6), (None, 15_000, 30e6)]
    {
        let mut link = Link::new(gathering(4000, bytes, rate, 1_000_000), 1, "l");
        (0..100_000).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
        let last = link.upcoming().next_back().unwrap().0.as_secs_f64();
        let got = 100_000.0 * 12_000.0 / last;
        assert!((got / expected - 1.0).abs() < 1e-3, "{got} of {expected}");
    }
}

#[test]
fn what_gathers_keeps_its_opportunity() {
    let old = gathering(4000, 60_000, Some(12_000_000), 1000);
    let mut link = Link::new(old.clone(), 1, "l");
    (0..6).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    // two have been sent, one is half sent, three wait; these are now sent within 3 ms
    link.set(Nanos(2_500_000), Params { rate: Some(Rate(120_000_000)), ..old.clone() });
    assert_eq!(dues(&link), [4000, 4000, 4000, 4000, 4000, 4000]);
    // without opportunities those that wait leave as they are sent
    let mut link = Link::new(old.clone(), 1, "l");
    (0..6).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    link.set(Nanos(2_500_000), Params { aggregation: None, ..old });
    assert_eq!(dues(&link), [4000, 4000, 4000, 4000, 5000, 6000]);
}

fn steps() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..500_000, 1 => 0u64..9_000_000];
    prop::collection::vec((gap, prop_oneof![3 => Just(1500u32), 1 => 40u32..3000]), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_departure_is_an_opportunity_with_room(script in steps(), every in 10u64..5000, bytes in 1500u64..30_000,
                                                   rate in prop::option::of(1_000_000u64..500_000_000), set in any::<bool>()) {
        let params = gathering(every, bytes, rate, 50);
        let mut link = Link::new(params.clone(), 1, "l");
        let plainly = Params { aggregation: None, ..params };
        let mut plain = Link::new(plainly, 1, "l");
        let (mut now, mut out) = (0, Vec::new());
        for (id, &(gap, size)) in script.iter().enumerate() {
            now += gap;
            if set {
                link.set(Nanos(now), link.params().clone());
            }
            let taken = link.offer(Nanos(now), size, id as u32).is_ok();
            // gathering makes no packet earlier than it would be
            if taken && plain.offer(Nanos(now), size, id as u32).is_ok() {
                let due = |link: &Link<u32>| link.upcoming().next_back().unwrap().0;
                prop_assert!(due(&link) >= due(&plain));
            }
        }
        let c = *link.counters();
        prop_assert_eq!(c.offered.packets, c.dropped.all().packets + link.len() as u64);
        while let Some(due) = link.next_due() {
            out.push(link.pop(due.max(Nanos(now))).unwrap());
        }
        prop_assert!(out.is_sorted_by(|a, b| a.at <= b.at && a.packet < b.packet));
        let mut at = 0;
        while at < out.len() {
            prop_assert_eq!(out[at].at.0 % (every * 1000), 0);
            let same = out[at..].iter().take_while(|r| r.at == out[at].at).count();
            let sum: u64 = out[at..at + same].iter().map(|r| u64::from(r.bytes)).sum();
            prop_assert!(sum <= bytes || same == 1);
            at += same;
        }
    }
}
