//! ImTCP and ImTCP-bg over a bottleneck with constant cross traffic: do they find what is free?

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pathcast_congestion::{Ack, Flow, Instance, Params, State, controller};

const MSS: u64 = 1448;
const RTT_US: f64 = 40_000.0;

/// What a run came to: the last results [byte/s], the final window, and the share of the bottleneck's time
/// with more than 5 ms of queue in the second half.
struct Run {
    results: Vec<f64>,
    cwnd: u32,
    queued: f64,
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
    Run { results: results.split_off(1), cwnd: flow.cwnd, queued: late as f64 / f64::max(all as f64, 1.0) }
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
