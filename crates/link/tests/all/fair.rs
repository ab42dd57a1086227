//! A link with a fair queue: who loses a packet, what flows share, how long a thin flow waits.

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Cross, DeferredLink, Fair, Link, Offered, Params, Queue};
use proptest::prelude::*;

fn fair(packets: u32, quantum: u64) -> Queue {
    Queue::Fair(Fair { packets, quantum: Bytes(quantum) })
}

/// 12 Mbit/s: 1500 bytes take 1 ms.
fn line(queue: Queue) -> Params {
    Params { rate: Some(Rate(12_000_000)), queue, ..Params::default() }
}

fn drain(link: &mut DeferredLink<u32>) -> Vec<(u64, u32, bool)> {
    let mut all = Vec::new();
    while let Some(due) = link.next_due() {
        all.extend(link.pop(due).map(|r| (r.at.0, r.packet, r.lost)));
    }
    all
}

fn packets(link: &mut DeferredLink<u32>) -> Vec<u32> {
    drain(link).into_iter().map(|(_, packet, _)| packet).collect()
}

#[test]
fn flows_take_turns() {
    let mut link = DeferredLink::new(line(fair(100, 1500)), 1, "l");
    for i in 0..3 {
        assert_eq!(link.offer(Nanos(0), 1500, 0, i), Offered::Taken);
    }
    for i in 10..13 {
        assert_eq!(link.offer(Nanos(0), 1500, 7, i), Offered::Taken);
    }
    assert_eq!(link.len(), 6);
    assert_eq!(link.backlog(Nanos(0)).packets, 5);
    let expected = [0, 1, 10, 2, 11, 12].into_iter().zip(1u64..).map(|(id, k)| (k * 1_000_000, id, false));
    assert_eq!(drain(&mut link), expected.collect::<Vec<_>>());
    assert_eq!(link.counters().busy, Nanos::millis(6));
    assert_eq!((link.counters().queue_max.packets, link.counters().queue_max.bytes), (5, 7500));
}

#[test]
fn a_full_queue_drops_from_the_tail_of_the_longest() {
    let mut link = DeferredLink::new(line(fair(3, 1500)), 1, "l");
    for i in 0..4 {
        assert_eq!(link.offer(Nanos(0), 1000, 1, i), Offered::Taken);
    }
    // its own would be the longest
    assert_eq!(link.offer(Nanos(0), 1000, 1, 4), Offered::Refused(4));
    assert_eq!(link.offer(Nanos(0), 1500, 9, 5), Offered::PushedOut(3));
    // 2000 bytes each: the lower number loses
    assert_eq!(link.offer(Nanos(0), 500, 9, 6), Offered::PushedOut(2));
    assert_eq!(link.offer(Nanos(0), 2000, 0, 7), Offered::Refused(7));
    assert_eq!(link.offer(Nanos(0), 1999, 0, 8), Offered::PushedOut(6));
    let c = *link.counters();
    assert_eq!((c.offered.packets, c.dropped.queue.packets, c.dropped.queue.bytes), (9, 5, 5500));
    assert_eq!(packets(&mut link), [0, 1, 5, 8]);
    assert_eq!(link.counters().carried.packets, 4);
}

#[test]
fn a_source_of_cross_traffic_is_a_flow_and_pushes_out() {
    let mut link = DeferredLink::new(line(fair(4, 1500)), 1, "l");
    let cross = Cross::Constant { rate: Rate(12_000_000), packet: Bytes(1500) };
    let id = link.add_cross("load", &cross, Nanos(1), None);
    for i in 0..5 {
        assert_eq!(link.offer(Nanos(0), 1500, 0, i), Offered::Taken);
    }
    // the virtual packet of 1 ns pushes 4 out; from then on both take turns
    let out = |link: &mut DeferredLink<u32>, now| link.pop(Nanos(now)).map(|r| (r.at.0, r.packet, r.lost));
    assert_eq!(out(&mut link, 999_999), Some((1, 4, true)));
    assert_eq!(out(&mut link, 999_999), None);
    let rest = drain(&mut link);
    assert_eq!(rest, [(1_000_000, 0, false), (2_000_000, 1, false), (4_000_000, 2, false), (6_000_000, 3, false)]);
    link.remove_cross(Nanos::millis(6), id);
    let c = link.counters();
    assert_eq!((c.dropped.queue.packets, c.dropped.loss.packets), (1, 0));
    assert_eq!((c.cross.offered.packets, c.cross.entered.packets, c.cross.dropped.packets), (6, 6, 0));
}

#[test]
fn a_real_packet_pushes_out_a_virtual_one() {
    let mut link = DeferredLink::new(line(fair(2, 1500)), 1, "l");
    let cross = Cross::Constant { rate: Rate(120_000_000), packet: Bytes(1500) };
    link.add_cross("load", &cross, Nanos(0), Some(Nanos::micros(250)));
    // one in transmission, two wait
    link.advance(Nanos::micros(250));
    assert_eq!(link.offer(Nanos::micros(250), 1500, 0, 0), Offered::Taken);
    let c = link.counters();
    assert_eq!((c.cross.offered.packets, c.cross.entered.packets, c.cross.dropped.packets), (3, 2, 1));
    assert_eq!(c.cross.dropped.bytes, 1500);
    // when it will be due is only known when the packets before it have left
    assert_eq!(link.next_due(), Some(Nanos::millis(1)));
    assert_eq!(drain(&mut link), [(3_000_000, 0, false)]);
}

#[test]
fn without_a_rate_it_is_a_wire() {
    let mut link =
        DeferredLink::new(Params { delay: Nanos::millis(3), queue: fair(0, 64), ..Params::default() }, 1, "l");
    assert!((0..100).all(|i| link.offer(Nanos(7), 1500, i % 5, i) == Offered::Taken));
    let expected: Vec<_> = (0..100).map(|i| (3_000_007, i, false)).collect();
    assert_eq!(drain(&mut link), expected);
}

#[test]
#[should_panic(expected = "which needs a `Link`")]
fn another_queue_is_refused() {
    drop(DeferredLink::<()>::new(line(Queue::Packets(1)), 1, "l"));
}

#[test]
#[should_panic(expected = "needs a DeferredLink, not a Link")]
fn the_plain_link_refuses_a_fair_queue() {
    drop(Link::<()>::new(line(fair(9, 1514)), 1, "l"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Two flows that always have packets waiting: after any packet the line time they got differs by no more than a
    /// quantum and the largest packets (the paper's theorem: quantum + 2 max, the first one in service included).
    #[test]
    fn greedy_flows_share_within_a_quantum(
        quantum in 64u64..5000,
        sizes in prop::collection::vec((40u32..1500, 40u32..1500), 50..200),
        overhead in 0u64..50,
    ) {
        let params = Params { overhead: Bytes(overhead), ..line(fair(10_000, quantum)) };
        let mut link = DeferredLink::new(params, 1, "l");
        for (i, (a, b)) in sizes.iter().enumerate() {
            prop_assert_eq!(link.offer(Nanos(0), *a, 0, 2 * i as u32), Offered::Taken);
            prop_assert_eq!(link.offer(Nanos(0), *b, 1, 2 * i as u32 + 1), Offered::Taken);
        }
        let mut sent = [0i64; 2];
        let mut left = [sizes.len(); 2];
        while left.iter().all(|&left| left > 0) {
            let Some(released) = link.pop(link.next_due().unwrap()) else { continue };
            let flow = released.packet as usize % 2;
            sent[flow] += i64::from(released.bytes) + overhead as i64;
            left[flow] -= 1;
            let most = quantum as i64 + 2 * (1500 + overhead as i64);
            prop_assert!((sent[0] - sent[1]).abs() <= most, "{:?}", sent);
        }
    }

    /// A packet of a flow that has none waiting waits for the packet in service and for one turn of every other flow.
    #[test]
    fn a_thin_flow_waits_a_round(flows in 1u32..8, quantum in 1500u64..4000, at in 0u64..20_000_000, bytes in 40u32..1500) {
        let mut link = DeferredLink::new(line(fair(10_000, quantum)), 1, "l");
        for i in 0..400 {
            prop_assert_eq!(link.offer(Nanos(0), 700 + i % 801, i % flows, i), Offered::Taken);
        }
        prop_assert_eq!(link.offer(Nanos(at), bytes, flows, 1000), Offered::Taken);
        let out = drain(&mut link);
        let thin = out.iter().find(|(_, packet, _)| *packet == 1000).unwrap();
        let round = u64::from(flows) * (quantum + 1500) + 1500 + u64::from(bytes);
        prop_assert!(thin.0 - at <= Rate(12_000_000).time_for(round).0);
    }
}
