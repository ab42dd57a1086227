//! ImTCP and ImTCP-bg over a bottleneck with constant cross traffic: do they find what is free?

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::world::{MS, World};
use pathcast_congestion::{Ack, Event, Flow, Instance, Params, State, controller};

const MSS: u64 = 1448;
const RTT_US: f64 = 40_000.0;

/// What a run came to: the last results [byte/s], the final window, and the share of the bottleneck's time
/// with more than 5 ms of queue in the second half; and the flow, to go on with.
struct Run {
    results: Vec<f64>,
    cwnd: u32,
    queued: f64,
    flow: Flow,
    instance: Instance,
}

/// A bottleneck of `capacity` and `cross` byte/s with an endless queue, an ACK for every packet, `seconds` of greedy sending.
fn run(control: &str, params: &[(&str, u64)], capacity: f64, cross: f64, cwnd_max: u32, seconds: f64) -> Run {
    let mut values = Params::new(controller(control).unwrap());
    for &(name, value) in params {
        values.set(name, value).unwrap();
    }
    let mut instance = Instance::new(&values);
    let mut flow = Flow::new(MSS as u32, 10);
    flow.cwnd_max = cwnd_max;
    flow.srtt_us = RTT_US as u32;
    let mut now = 1e6;
    flow.now_us = now as u64;
    instance.init(&mut flow);
    let (mut free, mut next_cross, cross_gap) = (now, now, 1000.0 / cross * 1e6);
    let (mut departure, mut srtt) = (now, RTT_US);
    let mut acks: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new(); // when [ns], sent at [ns]
    let mut results = vec![0.0];
    let (mut late, mut all) = (0, 0);
    while now < 1e6 + seconds * 1e6 {
        flow.now_us = now as u64;
        while f64::from(flow.in_flight) < f64::from(flow.cwnd) && departure <= now {
            instance.send(&mut flow);
            while next_cross <= now {
                free = f64::max(free, next_cross) + 1000.0 / capacity * 1e6;
                next_cross += cross_gap;
            }
            free = free.max(now) + MSS as f64 / capacity * 1e6;
            acks.push(Reverse((((free + RTT_US) * 1e3) as u64, (now * 1e3) as u64)));
            flow.nxt += MSS;
            flow.in_flight += 1;
            if flow.pace_bytes_per_s > 0 {
                departure = now + MSS as f64 / flow.pace_bytes_per_s as f64 * 1e6;
            }
        }
        let ack_at = acks.peek().map_or(f64::INFINITY, |Reverse((at, _))| *at as f64 / 1e3);
        if flow.in_flight < flow.cwnd && departure > now && departure < ack_at {
            now = departure;
            continue;
        }
        let Reverse((at, sent)) = acks.pop().unwrap();
        now = now.max(at as f64 / 1e3);
        let rtt = (at - sent) as f64 / 1e3;
        srtt += (rtt - srtt) / 8.0;
        flow.now_us = now as u64;
        flow.srtt_us = srtt as u32;
        flow.una += MSS;
        flow.in_flight -= 1;
        let ack = Ack::new(1, rtt as u32);
        instance.ack(&mut flow, &ack);
        instance.grow(&mut flow, &ack);
        if flow.word[1] as usize >= results.len() {
            results.push(flow.word[0] as f64);
        }
        if now > 1e6 + seconds * 5e5 {
            all += 1;
            late += usize::from(rtt > RTT_US + 5_000.0);
        }
    }
    let queued = late as f64 / f64::max(all as f64, 1.0);
    Run { results: results.split_off(1), cwnd: flow.cwnd, queued, flow, instance }
}

#[test]
fn imtcp_finds_what_cross_traffic_leaves() {
    for (capacity, cross) in [(2.5e6, 1.0), (2.5e6, 1.0e6), (12.5e6, 5.0e6)] {
        let free = capacity - cross;
        let window = (free * RTT_US / 1e6 / MSS as f64 * 0.8) as u32;
        let run = run("imtcp", &[], capacity, cross, window, 30.0);
        assert!(run.results.len() >= 30_000_000 / (4 * RTT_US as usize), "{} results", run.results.len());
        let settled = &run.results[8..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        assert!((mean / free - 1.0).abs() < 0.05, "free {free}: mean {mean}, {:?}", run.results);
    }
}

#[test]
fn imtcp_bg_takes_what_is_free_and_leaves_the_queue_empty() {
    let run = run("imtcp_bg", &[], 2.5e6, 1.0e6, 1000, 30.0);
    let fair = 1.5e6 * RTT_US / 1e6 / MSS as f64 + 8.0; // and what a train needs beyond its share
    assert!((f64::from(run.cwnd) / fair - 1.0).abs() < 0.08, "{}, free {fair}, {:?}", run.cwnd, run.results);
    assert!(run.queued < 0.3, "{}", run.queued); // behind its trains
}

#[test]
fn imtcp_bg_weighs_new_results_by_gamma() {
    let cwnd = |gamma| run("imtcp_bg", &[("gamma", gamma), ("stale_s", 3600)], 12.5e6, 5.0e6, 1000, 30.0).cwnd;
    let (never, default) = (cwnd(1), cwnd(125));
    assert!(never < default, "{never} {default}");
}

/// One more packet's ACK, of a flow that always has a window's data outstanding.
fn acked(run: &mut Run, rtt_us: u32) -> u32 {
    let (flow, ack) = (&mut run.flow, Ack::new(1, rtt_us));
    flow.una += MSS;
    flow.nxt = flow.nxt.max(flow.una + u64::from(flow.cwnd) * MSS);
    flow.now_us += u64::from(rtt_us / flow.cwnd);
    run.instance.ack(flow, &ack);
    run.instance.grow(flow, &ack);
    flow.cwnd
}

/// A queue that stays is somebody's: W RTTmin / RTTcur by the paper. On a small path the queueing delay counts `yield` times, and
/// nothing grows in the round after.
#[test]
fn imtcp_bg_yields_to_a_queue_by_its_length() {
    for (params, capacity, weight) in [
        (&[][..], 1.25e6, 2.5), // 35 packets
        (&[("yield", 4000)], 1.25e6, 4.0),
        (&[("small", 20)], 1.25e6, 1.0),
        (&[("small", 0)], 1.25e6, 1.0),
        (&[], 12.5e6, 1.0), // 350
    ] {
        let mut run = run("imtcp_bg", params, capacity, capacity / 5.0, 1000, 20.0);
        let least = (RTT_US + MSS as f64 / capacity * 1e6).floor();
        let high = least * 1.5;
        run.instance.event(&mut run.flow, Event::Idle); // no further result moves the bound
        for _ in 0..3 * run.flow.cwnd {
            acked(&mut run, least as u32); // nor is the last round one of a queue
        }
        let (mut before, mut after) = (run.flow.cwnd, run.flow.cwnd);
        for _ in 0..4 * run.flow.cwnd {
            before = after;
            after = acked(&mut run, high as u32);
            if after < before {
                break;
            }
        }
        let exact = (f64::from(before) * least / (least + weight * (high - least))) as u32;
        assert_eq!(after, exact, "{params:?}, {capacity} byte/s, from {before}");
        let round = (run.flow.nxt - run.flow.una) / MSS;
        let held = (0..round).all(|_| acked(&mut run, least as u32) == after);
        assert_eq!(held, weight > 1.0, "{params:?}, {capacity} byte/s: grows in the round after");
    }
}

/// Large enough for a thousandth of the queueing delay to show.
#[test]
fn imtcp_bg_reduces_a_wide_window_to_the_packet() {
    let mut w = World::new("imtcp_bg", &[], &[(100_000, 40 * MS)]);
    w.flow_mut(0).ssthresh = 100_000;
    for rtt in [40, 40, 60, 60] {
        w.ack_and_grow(0, Ack::new(100_100, rtt * MS));
    }
    let before = w.flow(0).cwnd;
    w.ack_and_grow(0, Ack::new(100_100, 60 * MS));
    assert_eq!(w.flow(0).cwnd, before * 2 / 3, "from {before}");
}

/// Two packets in a row are a queue of their own on a path of few: a window too small for a train leaves packet by packet.
/// Of a round trip of 13 us each of 11 packets has less than one.
#[test]
fn imtcp_bg_does_not_stop_where_the_gap_is_below_a_microsecond() {
    let mut w = World::new("imtcp_bg", &[("rtt_least_us", 0)], &[(11, 13)]);
    w.flow_mut(0).ssthresh = 5;
    let pace = w.pace(0);
    assert!(pace == 0 || pace >= 1448 * 1_000_000, "{pace}");
}

#[test]
fn imtcp_bg_spaces_the_packets_of_a_small_window() {
    for (small, window, gap_us) in [(50, 4, 8_333), (50, 2, 10_000), (50, 11, 3_030), (0, 4, 0), (0, 2, 0)] {
        let mut w = World::new("imtcp_bg", &[("small", small)], &[(window, 40 * MS)]);
        assert_eq!((w.pace(0), w.flow(0).burst), (0, 0), "slow start");
        w.flow_mut(0).ssthresh = window;
        let pace = 1_448_000_000u64.checked_div(gap_us).unwrap_or(0);
        assert_eq!((w.pace(0), w.flow(0).burst), (pace, u32::from(gap_us > 0)), "small {small}, {window} packets");
    }
}

/// The line takes longer for full packets than for a handshake's.
#[test]
fn imtcp_bg_takes_the_least_rtt_of_full_packets() {
    for (small, windows) in [(50, 20..=20), (0, 2..=4)] {
        let mut w = World::new("imtcp_bg", &[("small", small)], &[(10, 40 * MS)]);
        w.flow_mut(0).ssthresh = 10;
        w.set_rtt(0, 60 * MS);
        for _ in 0..10 {
            w.round(0);
        }
        assert!(windows.contains(&w.flow(0).cwnd), "small {small}: {}", w.flow(0).cwnd);
    }
}

/// Wherever the stream's positions begin, the ACK of a few bytes is none of a full packet.
#[test]
fn imtcp_bg_knows_a_first_short_packet_at_any_position() {
    for origin in [0, 1 << 40] {
        let mut instance = Instance::new(&Params::new(controller("imtcp_bg").unwrap()));
        let mut flow = Flow::new(MSS as u32, 10);
        (flow.ssthresh, flow.now_us, flow.una, flow.nxt) = (10, 1_000_000, origin, origin);
        instance.init(&mut flow);
        let mut acked = |bytes: u64, rtt_us: u32| {
            (flow.una, flow.nxt) = (flow.una + bytes, flow.una + bytes + 10 * MSS);
            flow.now_us += 5_000;
            let ack = Ack::new(1, rtt_us);
            instance.ack(&mut flow, &ack);
            instance.grow(&mut flow, &ack);
            flow.cwnd
        };
        acked(100, 40 * MS);
        let windows = [(); 200].map(|()| acked(MSS, 60 * MS));
        assert!(windows[199] > 10, "from {origin}: {windows:?}");
    }
}

/// What looks like a queue for ever leaves two packets, and three once in `stuck` rounds; by the paper two.
#[test]
fn imtcp_bg_is_not_held_at_two_packets() {
    for (small, stuck, above) in
        [(50, 16, &[18, 35, 52][..]), (50, 5, &[7, 13, 19, 25, 31, 37, 43, 49, 55]), (0, 5, &[])]
    {
        let mut w = World::new("imtcp_bg", &[("small", small), ("stuck", stuck)], &[(2, 40 * MS)]);
        w.flow_mut(0).ssthresh = 2;
        w.acked(0, 3);
        let windows = [(); 60].map(|()| {
            w.ack_and_grow(0, Ack::new(3, 70 * MS)); // more than was outstanding at the last: a round each
            w.flow(0).cwnd
        });
        let at = |packets| (4..60).filter(|&n: &usize| windows[n] == packets).collect::<Vec<_>>();
        assert_eq!(
            (at(3), at(2).len()),
            (above.to_vec(), 56 - above.len()),
            "small {small}, stuck {stuck}: {windows:?}"
        );
    }
}

#[test]
fn a_small_window_measures_nothing() {
    let run = run("imtcp", &[], 2.5e6, 1.0, 11, 10.0);
    assert!(run.results.is_empty());
}

#[test]
fn a_bound_too_small_to_measure_with_is_lifted() {
    // 0.3 Mbyte/s are free, 8 packets: fewer than a train
    let results = |stale| {
        let params = [("stale_s", stale), ("delta", 3000)];
        run("imtcp_bg", &params, 2.5e6, 2.2e6, 1000, 60.0).results.len()
    };
    assert!(results(5) > results(3600), "{} {}", results(5), results(3600));
}

/// The paces of a flow's next transmit opportunities [byte/s] until it is not paced; nothing where no train begins.
fn train(cwnd: u32, in_flight: u32, limited: bool, params: &[(&str, u64)]) -> Vec<u64> {
    let mut values = Params::new(controller("imtcp").unwrap());
    for &(name, value) in params {
        values.set(name, value).unwrap();
    }
    let mut instance = Instance::new(&values);
    let mut flow = Flow::new(MSS as u32, cwnd);
    (flow.srtt_us, flow.now_us, flow.in_flight) = (RTT_US as u32, 1_000_000, in_flight);
    flow.set_limited(limited);
    instance.init(&mut flow);
    let mut paces = Vec::new();
    loop {
        instance.send(&mut flow);
        assert_eq!(flow.burst, u32::from(flow.pace_bytes_per_s > 0));
        if flow.pace_bytes_per_s == 0 {
            return paces;
        }
        paces.push(flow.pace_bytes_per_s);
        flow.nxt += MSS;
    }
}

/// A packet with a gap behind it, so long that the window opens for the train; then n packets, half at 1.1 times the own rate, half at
/// half as much again.
#[test]
fn a_train_is_as_long_as_its_window_allows_and_its_gap_as_it_needs() {
    // packets of the window, in flight, and those that count; of the train
    for (cwnd, in_flight, limited, w, n) in [
        (12, 12, true, 12, 8),
        (40, 40, true, 40, 24),
        (100, 40, false, 41, 24),
        (232, 232, true, 232, 28),
        (600, 600, true, 600, 64),
    ] {
        let own = f64::from(w) * MSS as f64 / RTT_US * 1e6;
        let (slow, fast) = (1.1 * own, 1.65 * own);
        let needs = f64::from(n) * (1.0 - 0.5 * (own / slow + own / fast));
        let hold = ((needs + 2.0) * MSS as f64 / own * 1e6).min(100_000.0).floor();
        let paces = train(cwnd, in_flight, limited, &[]);
        assert_eq!(paces.len(), 1 + n as usize, "{cwnd} {in_flight}");
        let exact = [MSS as f64 / hold * 1e6].into_iter().chain((0..n).map(|k| if k < n / 2 { slow } else { fast }));
        for (&pace, exact) in paces.iter().zip(exact) {
            assert!((pace as f64 / exact - 1.0).abs() < 3e-4, "{cwnd} {in_flight}: {pace} {exact}");
        }
    }
    // too small a window; too little in flight; a share of the window
    assert!(train(11, 11, true, &[]).is_empty() && train(100, 39, false, &[]).is_empty());
    assert_eq!(train(40, 40, true, &[("share", 300)]).len(), 1 + 12);
    assert_eq!(train(40, 40, true, &[("share", 100)]).len(), 1 + 8);
    // 8 us a packet at the least
    let most = train(1 << 20, 1 << 20, true, &[("train", 64)]);
    assert_eq!((most[1], most[64]), (125_000 * MSS, 125_000 * MSS));
}

#[test]
fn a_loss_ends_a_train() {
    let mut instance = Instance::new(&Params::new(controller("imtcp").unwrap()));
    let mut flow = Flow::new(MSS as u32, 100);
    (flow.srtt_us, flow.now_us, flow.in_flight) = (RTT_US as u32, 1_000_000, 50);
    instance.init(&mut flow);
    for _ in 0..5 {
        instance.send(&mut flow);
        assert_eq!(flow.burst, 1);
        flow.nxt += MSS;
    }
    assert!(flow.pace_bytes_per_s > 0);
    flow.set_state(State::Recovery);
    instance.ack(&mut flow, &Ack::new(1, RTT_US as u32));
    instance.send(&mut flow);
    assert_eq!((flow.burst, flow.pace_bytes_per_s), (0, 0));
    flow.set_state(State::Open);
    instance.send(&mut flow);
    assert_eq!(flow.burst, 1, "the next one when it is repaired");
}
