//! Controlled delay, flow queueing and the proportional integral controller: the RFCs' laws on whole links, and that the
//! simulator's way to drive a link and the emulator's find the same.

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{
    Codel, Cross, DeferredLink, Fair, FqCodel, LinkId, Mesh, Outcome, Params, Pie, Queue, Red, RouteId, Tag, Wire,
};
use proptest::prelude::*;

use crate::common::{aggregations, losses, policers, reorders, traces};

const MS: u64 = 1_000_000;

fn line(queue: Queue) -> Params {
    // 1500 bytes take a millisecond
    Params { rate: Some(Rate(12_000_000)), queue, ..Params::default() }
}

fn codel(ecn: bool) -> Queue {
    Queue::Codel(Codel { limit: 10_000, ecn, ..Codel::default() })
}

#[test]
fn what_manages_its_length_says_so() {
    let red = |ecn| Queue::Red(Red { min: 5.0, max: 15.0, limit: 60, probability: 0.1, weight: 0.002, ecn });
    for queue in [codel(false), Queue::FqCodel(FqCodel::default()), Queue::Pie(Pie::default()), red(true)] {
        assert!(queue.is_managed(), "{queue:?}");
    }
    let fair = Queue::Fair(Fair { packets: 10, quantum: Bytes(1514) });
    for queue in [Queue::Packets(10), Queue::Bytes(Bytes(15_000)), fair, red(false)] {
        assert!(!queue.is_managed(), "{queue:?}");
    }
}

#[test]
fn fq_codel_changes_while_it_runs_but_for_its_flows() {
    let flows = |flows, limit| Queue::FqCodel(FqCodel { flows, limit, ..FqCodel::default() });
    assert_eq!(flows(8, 100).may_become(&flows(8, 50)), Ok(()));
    assert_eq!(flows(8, 100).may_become(&flows(9, 100)), Err("a queue of kind fq_codel with flows = 8".into()));
    assert_eq!(codel(false).may_become(&flows(8, 100)), Err("a queue of kind codel".into()));
    assert_eq!(Queue::Pie(Pie::default()).may_become(&codel(false)), Err("a queue of kind pie".into()));
}

#[test]
fn what_waits_is_told_of_every_kind() {
    for queue in [Queue::Packets(10), codel(false), Queue::FqCodel(FqCodel::default()), Queue::Pie(Pie::default())] {
        let mut wire = Wire::new(line(queue), 1, "l");
        (0..4).for_each(|id| assert_eq!(wire.offer(Nanos(0), 1500, Tag::default(), id), None));
        let waiting = |wire: &mut Wire<u32>, at| (wire.backlog(Nanos(at)).packets, wire.backlog(Nanos(at)).bytes);
        assert_eq!(waiting(&mut wire, 0), (3, 4500), "one is on the line");
        assert_eq!(waiting(&mut wire, MS), (2, 3000));
        assert_eq!(waiting(&mut wire, 4 * MS), (0, 0));
    }
}

/// What became of a packet: when [ns], which, and whether it was lost and marked.
type Fate = (u64, u32, bool, bool);

fn drain(wire: &mut Wire<u32>, until: u64, out: &mut Vec<Fate>) {
    while let Some(due) = wire.next_due().filter(|due| due.0 <= until) {
        out.extend(wire.pop(due).map(|r| (r.at.0, r.packet, r.lost, r.marked)));
    }
}

/// Packets of 1500 bytes every half of their line time: twice what the line carries.
fn overload(queue: Queue, ect: bool, until: u64) -> (Wire<u32>, Vec<Fate>) {
    let (mut wire, mut out) = (Wire::new(line(queue), 1, "l"), Vec::new());
    for i in 0..until * 2 {
        let at = i * MS / 2;
        drain(&mut wire, at, &mut out);
        let _ = wire.offer(Nanos(at), 1500, Tag { flow: 0, ect }, i as u32);
    }
    (wire, out)
}

/// RFC 8289, section 5.3: the n-th drop of a dropping state comes interval / sqrt(n) after the one before.
#[test]
fn codel_drops_faster_by_the_square_root() {
    let (_, out) = overload(codel(false), false, 2000);
    let drops: Vec<u64> = out.iter().filter(|fate| fate.2).map(|fate| fate.0).collect();
    // sojourn = at / 2 reaches 5 ms when packet 10 starts at 10 ms (it came at 5 ms), and is above for 100 ms at 110 ms
    assert_eq!(drops[0], 110 * MS);
    let mut law = drops[0] as f64;
    for (n, &drop) in drops.iter().enumerate().skip(1) {
        law += 100e6 / (n as f64).sqrt();
        // a drop waits for the next packet to leave, a millisecond apart
        assert!((0.0..1.001e6).contains(&(drop as f64 - law)), "drop {n} at {drop}, the law says {law}");
    }
    assert!(drops.len() > 80, "{}", drops.len());
}

#[test]
fn codel_marks_where_it_would_drop() {
    let (mut wire, out) = overload(codel(true), true, 1000);
    let marks: Vec<u64> = out.iter().filter(|fate| fate.3).map(|fate| fate.0).collect();
    assert!(out.iter().all(|fate| !fate.2));
    // marked at the begin of the transmission of a millisecond, and the same times as the first drops
    assert_eq!(marks[..3], [111 * MS, 211 * MS, 282 * MS]);
    wire.advance(Nanos::secs(1));
    assert_eq!((wire.counters().marked.packets, wire.counters().dropped.aqm.packets), (marks.len() as u64, 0));
    // what cannot be marked is dropped
    let (wire, _) = overload(codel(true), false, 1000);
    assert_eq!(wire.counters().marked.packets, 0);
    assert!(wire.counters().dropped.aqm.packets > 10);
}

/// A sender that sends a tenth less at a drop or a mark, at most every 20 ms, and else adds to its rate.
fn responsive(queue: Queue, ect: bool) -> Wire<u32> {
    let (mut wire, mut out, mut rate, mut at, mut seen) = (Wire::new(line(queue), 1, "l"), Vec::new(), 0.5, 0.0, 0u64);
    for i in 0..60_000 {
        at += 1.0 / rate;
        let now = (at * 1e6) as u64;
        drain(&mut wire, now, &mut out);
        let refused = wire.offer(Nanos(now), 1500, Tag { flow: 0, ect }, i).is_some();
        let signalled = out.drain(..).filter(|fate| fate.2 || fate.3).count() > 0 || refused;
        if signalled && now > seen + 20 * MS {
            (rate, seen) = (rate * 0.9, now);
        } else {
            rate += 0.0005;
        }
    }
    wire
}

#[test]
fn the_wait_converges_to_the_target_for_what_responds() {
    let pie = |ecn| Queue::Pie(Pie { ecn, ..Pie::default() });
    for (queue, ect, target) in
        [(codel(false), false, 5.0), (codel(true), true, 5.0), (pie(false), false, 15.0), (pie(true), true, 15.0)]
    {
        let wire = responsive(queue.clone(), ect);
        let c = wire.counters();
        let wait = c.waited.as_secs_f64() * 1e3 / c.carried.packets as f64;
        assert!((0.3 * target..2.0 * target).contains(&wait), "{queue:?}: {wait} ms");
        assert_eq!(c.dropped.queue.packets, 0);
        assert_eq!(c.marked.packets > 0, ect);
    }
}

/// A sparse flow finds at most a quantum of every other flow before it, and the packet in transmission (RFC 8290).
#[test]
fn fq_codel_isolates_a_sparse_flow() {
    let queue = Queue::FqCodel(FqCodel { limit: 500, ..FqCodel::default() });
    let (mut wire, mut out, mut sent) = (Wire::new(line(queue), 3, "l"), Vec::new(), Vec::new());
    for i in 0..20_000u32 {
        let at = u64::from(i) * MS / 4;
        drain(&mut wire, at, &mut out);
        let sparse = i % 200 == 199;
        // flow 1000 is the sparse one, of 5 heavy ones
        let flow = if sparse { 1000 } else { i % 5 };
        assert!(wire.offer(Nanos(at), 1500, Tag { flow, ect: false }, i).is_none());
        sent.extend(sparse.then_some((i, at)));
    }
    assert!(wire.counters().queue_max.packets <= 500);
    for (packet, at) in sent.iter().take(sent.len() - 1) {
        let (left, _, lost, _) = out.iter().find(|fate| fate.1 == *packet).expect("it came out");
        assert!(!lost && left - at <= (5 + 2) * MS, "packet {packet} took {} ns", left - at);
    }
}

/// Where the limit is passed, half of the fattest queue goes, from its head, and no more than 64 packets.
#[test]
fn fq_codel_drops_from_the_fattest_head() {
    let fq = |limit| Queue::FqCodel(FqCodel { limit, ..FqCodel::default() });
    let dropped = |limit: u32, fat: u32| {
        let mut wire = Wire::new(line(fq(limit)), 3, "l");
        for i in 0..=fat {
            assert!(wire.offer(Nanos(0), 1500, Tag { flow: 0, ect: false }, i).is_none());
        }
        let mut out = Vec::new();
        drain(&mut wire, 0, &mut out);
        assert!(out.iter().all(|fate| fate.2));
        assert_eq!(wire.counters().dropped.queue.packets, out.len() as u64);
        out.iter().map(|fate| fate.1).collect::<Vec<_>>()
    };
    // packet 0 is in transmission; of eleven the half is 5.5, which six exceed
    assert_eq!(dropped(10, 11), [1, 2, 3, 4, 5, 6]);
    assert_eq!(dropped(10, 10), [0; 0]);
    assert_eq!(dropped(400, 401), (1..=64).collect::<Vec<_>>());
    assert_eq!(dropped(0, 1), [1]);
}

/// RFC 8033: no drops in the first 150 ms, and few while the probability is small.
#[test]
fn pie_lets_a_burst_pass() {
    let (_, out) = overload(Queue::Pie(Pie::default()), false, 140);
    let wire = overload(Queue::Pie(Pie::default()), false, 140).0;
    assert_eq!(wire.counters().dropped.all().packets, 0);
    assert!(!out.is_empty());
    let wire = overload(Queue::Pie(Pie::default()), false, 20_000).0;
    let c = wire.counters();
    // half of all has to go
    let share = c.dropped.aqm.packets as f64 / c.offered.packets as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

#[test]
fn red_marks_below_twice_max_and_drops_above() {
    let red = |ecn| Queue::Red(Red { min: 5.0, max: 20.0, limit: 1000, probability: 0.1, weight: 0.1, ecn });
    let (wire, _) = overload(red(true), true, 30);
    let c = wire.counters();
    assert!(c.marked.packets > 2 && c.dropped.aqm.packets == 0, "{c:?}");
    let c = *overload(red(true), true, 200).0.counters();
    assert!(c.dropped.aqm.packets > 10, "{c:?}");
    assert_eq!(overload(red(false), true, 200).0.counters().marked.packets, 0);
}

#[test]
fn a_source_of_cross_traffic_is_a_flow_and_is_never_marked() {
    let mut link = DeferredLink::<u32>::new(line(Queue::FqCodel(FqCodel::default())), 1, "l");
    link.add_cross("x", &Cross::Constant { rate: Rate(24_000_000), packet: Bytes(1500) }, Nanos(0), None);
    for i in 0..100 {
        let now = Nanos::millis(20 * i + 1000);
        while link.next_due().is_some_and(|due| due <= now) {
            let due = link.next_due().unwrap();
            let Some(released) = link.pop(due) else { continue };
            // behind one packet in transmission and at most one that had its turn before
            assert!(released.at.0 <= (20 * u64::from(released.packet) + 1000 + 3) * MS);
        }
        link.offer_tagged(now, 1500, Tag { flow: 7, ect: true }, i as u32).unwrap();
    }
    let c = link.counters();
    assert_eq!(c.marked.packets, 0);
    assert!(c.cross.dropped.packets > 20, "{c:?}");
    assert_eq!(c.cross.offered.packets, c.cross.entered.packets + c.cross.dropped.packets);
}

fn queues() -> impl Strategy<Value = Queue> {
    let (target, interval) = (Nanos::millis(2), Nanos::millis(10));
    let limits = || prop_oneof![Just(3u32), Just(20), Just(1000)];
    prop_oneof![
        limits().prop_map(Queue::Packets),
        (limits(), any::<bool>()).prop_map(|(limit, ecn)| {
            Queue::Red(Red { min: 1.0, max: 3.0, limit, probability: 0.2, weight: 0.3, ecn })
        }),
        limits().prop_map(|packets| Queue::Fair(Fair { packets, quantum: Bytes(1514) })),
        (limits(), any::<bool>()).prop_map(move |(limit, ecn)| Queue::Codel(Codel { limit, target, interval, ecn })),
        (limits(), any::<bool>(), 1u32..6, 2000u64..40_000).prop_map(move |(limit, ecn, flows, memory)| {
            let (quantum, memory) = (Bytes(1000), Bytes(memory));
            Queue::FqCodel(FqCodel { limit, flows, quantum, target, interval, ecn, memory })
        }),
        (limits(), any::<bool>()).prop_map(|(limit, ecn)| {
            let time = Nanos::millis(3);
            Queue::Pie(Pie { limit, target: time, t_update: time, max_burst: time, ecn, alpha: 2.0, beta: 20.0 })
        }),
    ]
}

/// Gaps, bytes, flows and whether a packet can be marked.
fn packets() -> impl Strategy<Value = Vec<(u64, u32, u32, bool)>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => 0u64..800_000, 1 => 0u64..20_000_000];
    prop::collection::vec((gap, 40u32..1500, 0u32..4, any::<bool>()), 1..300)
}

/// Long after everything.
const END: u64 = 1 << 60;

fn with_cross<T>(params: &Params, cross: bool, stop: u64) -> Wire<T> {
    let mut wire = Wire::new(params.clone(), 5, "l");
    if cross {
        wire.add_cross("x", &Cross::Poisson { rate: Rate(4_000_000), packet: Bytes(700) }, Nanos(0), Some(Nanos(stop)));
    }
    wire
}

/// What packets join to leave together: those of one flow.
fn joins(a: &(u32, u32), b: &(u32, u32)) -> bool {
    a.0 == b.0
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// The simulator pops at due times; the emulator steps a mesh when it wakes, late or for nothing, and lets runs leave
    /// early: the same packets have the same fates at the same modelled times, and the ledgers agree, whatever the link has.
    /// And no packet is lost or made, and the limit holds.
    #[test]
    fn both_worlds_find_the_same(
        queue in queues(),
        special in (traces(), aggregations(), reorders(), policers(), losses()),
        packets in packets(),
        late in 0u64..3_000_000,
        chunk in 0u64..2_000_000,
        cross: bool,
    ) {
        let most = match &queue {
            Queue::Packets(limit) => *limit,
            Queue::Red(red) => red.limit,
            Queue::Fair(fair) => fair.packets,
            Queue::Codel(codel) => codel.limit,
            Queue::FqCodel(fq) => fq.limit,
            Queue::Pie(pie) => pie.limit,
            Queue::Bytes(_) => unreachable!("not drawn"),
        };
        let (trace, aggregation, reorder, policer, loss) = special;
        let rate = if trace.is_some() { None } else { Some(Rate(12_000_000)) };
        let (delay, chunk) = (Nanos::millis(4), Nanos(chunk));
        let params =
            Params { rate, trace, aggregation, reorder, policer, loss, queue, delay, chunk, ..Params::default() };
        prop_assert_eq!(params.check(), Ok(()));
        let stop = packets.iter().map(|packet| packet.0).sum::<u64>() + 1;
        let (mut wire, mut simulated) = (with_cross(&params, cross, stop), Vec::new());
        let mut at = 0;
        for (i, &(gap, bytes, flow, ect)) in packets.iter().enumerate() {
            at += gap;
            drain(&mut wire, at, &mut simulated);
            let tag = Tag { flow, ect };
            if wire.offer_tagged(Nanos(at), bytes, tag, i as u32).is_err() {
                simulated.push((at, i as u32, true, false));
            }
            let c = wire.counters();
            prop_assert_eq!(c.offered.packets, c.carried.packets + c.dropped.all().packets + wire.len() as u64);
            prop_assert_eq!(c.cross.offered.packets, c.cross.entered.packets + c.cross.dropped.packets);
        }
        drain(&mut wire, END, &mut simulated);
        prop_assert_eq!(simulated.len(), packets.len());
        prop_assert!(wire.counters().queue_max.packets <= most.into());

        let mut mesh = Mesh::new(vec![with_cross(&params, cross, stop)], vec![vec![LinkId(0)]]).unwrap();
        let mut emulated = Vec::new();
        let keep = |out: &mut Vec<Fate>, outcome: Outcome<(u32, u32)>| match outcome {
            Outcome::Arrived { at, marked, packet, .. } => out.push((at.0, packet.1, false, marked)),
            Outcome::Dropped { at, packet, .. } => out.push((at.0, packet.1, true, false)),
        };
        let mut clock = Nanos(0);
        at = 0;
        for (i, &(gap, bytes, flow, ect)) in packets.iter().enumerate() {
            at += gap;
            while let Some(wake) = mesh.next_wake(joins).map(|wake| wake.max(clock) + Nanos(late)).filter(|w| w.0 < at) {
                clock = wake + Nanos(1);
                mesh.step(wake, &mut |outcome| keep(&mut emulated, outcome));
                mesh.release_early(wake, Nanos::micros(20), joins, &mut |at, _, marked, packet| {
                    emulated.push((at.0, packet.1, false, marked));
                });
            }
            clock = Nanos(at);
            mesh.step(clock, &mut |outcome| keep(&mut emulated, outcome));
            if mesh.offer_tagged(clock, RouteId(0), bytes, Tag { flow, ect }, (flow, i as u32)).is_err() {
                emulated.push((at, i as u32, true, false));
            }
        }
        mesh.step(Nanos(END), &mut |outcome| keep(&mut emulated, outcome));
        // losses come out when something else does
        let by_packet = |fates: &mut Vec<Fate>| fates.sort_by_key(|fate| fate.1);
        by_packet(&mut simulated);
        by_packet(&mut emulated);
        let times = |fates: &[Fate]| fates.iter().map(|f| (f.0, f.1, f.2, f.3 && !f.2)).collect::<Vec<_>>();
        prop_assert_eq!(times(&simulated), times(&emulated));
        wire.advance(Nanos(END));
        mesh.advance(Nanos(END));
        prop_assert_eq!(wire.counters(), mesh.link(LinkId(0)).counters());
    }
}

#[test]
fn the_same_seed_hashes_alike_and_another_does_not() {
    let order = |seed| {
        let mut wire = Wire::new(line(Queue::FqCodel(FqCodel { flows: 4, ..FqCodel::default() })), seed, "l");
        for i in 0..40 {
            assert!(wire.offer(Nanos(0), 1500, Tag { flow: i % 20, ect: false }, i).is_none());
        }
        let mut out = Vec::new();
        drain(&mut wire, 1000 * MS, &mut out);
        out
    };
    assert_eq!(order(1), order(1));
    let mut seeds = Stream::new(1, "seeds");
    assert!((0..5).any(|_| order(seeds.bits()) != order(1)));
}
