//! Slow starts against their papers and drafts: GSAM, the switch by subflows, LISA, HyStart++ (RFC 9406), CSS.

use crate::world::{MS, World, close};
use pathcast_congestion::{Ack, Event, INFINITE, State};

#[test]
fn gsam_enters_its_smooth_transition_at_the_threshold() {
    // RTT_min 160 ms: the threshold is 180 ms
    let mut w = World::new("gsam", &[], &[(10, 160 * MS)]);
    w.round(0);
    assert_eq!(w.flow(0).cwnd, 20);
    w.set_rtt(0, 179_999);
    w.round(0);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (40, INFINITE));
    w.set_rtt(0, 180_000);
    w.acked(0, 1);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (40, 80), "one of eight acked");
    w.acked(0, 7);
    assert_eq!(w.flow(0).cwnd, 41);
    w.acked(0, 8 * 39);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (80, 80), "ends at ssthresh");
    assert_eq!(w.need(0), 80.0, "then LIA, which is Reno for one subflow");
}

#[test]
fn gsam_waits_for_samples_and_knows_short_paths() {
    let mut w = World::new("gsam", &[], &[(10, 8 * MS)]);
    w.set_rtt(0, 11_999); // 8 ms + max(1, 4) ms
    w.round(0);
    assert_eq!(w.flow(0).ssthresh, INFINITE);
    w.set_rtt(0, 12_000);
    w.acked(0, 1);
    assert_eq!(w.flow(0).ssthresh, 40);
}

#[test]
fn gsam_does_not_judge_before_its_fourth_sample() {
    let mut w = World::new("gsam", &[], &[(10, 100 * MS)]); // the handshake's RTT is RTT_min
    w.set_rtt(0, 200 * MS);
    w.acked(0, 3);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (13, INFINITE));
    w.acked(0, 1);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (13, 26));
}

#[test]
fn gsam_uses_plain_slow_start_after_a_timeout() {
    for (after, expected) in [(0, 16), (1, 9)] {
        let mut w = World::new("gsam", &[("st_after_rto", after)], &[(100, 100 * MS)]);
        w.round(0);
        w.timeout(0);
        w.flow_mut(0).cwnd = 8;
        w.set_rtt(0, 200 * MS);
        w.acked(0, 8);
        assert_eq!(w.flow(0).cwnd, expected);
    }
}

/// A timeout that no hook told: one packet, and where it was half of before.
fn falls(w: &mut World, i: usize) {
    let ssthresh = w.ssthresh(i);
    let flow = w.flow_mut(i);
    (flow.cwnd, flow.ssthresh, flow.cwnd_cnt) = (1, ssthresh, 0);
    flow.set_state(State::Loss);
}

#[test]
fn slow_start_comes_back_where_no_hook_told_of_the_timeout() {
    for control in ["gsam", "subflow_switch"] {
        for n in [2, 3] {
            let mut w = World::new(control, &[("initial_ssthresh_bytes", 100 * 1448)], &vec![(100, 100 * MS); n]);
            w.round(0); // in congestion avoidance
            falls(&mut w, 0);
            for _ in 0..7 {
                w.round(0);
            }
            assert!(w.flow(0).cwnd >= 50, "{control}, {n} subflows: {}", w.flow(0).cwnd);
        }
        // in slow start, with a high RTT: no transition
        let mut w = World::new(control, &[], &[(100, 100 * MS); 3]);
        w.round(0);
        falls(&mut w, 0);
        w.set_rtt(0, 200 * MS);
        w.round(0);
        w.round(0);
        assert_eq!(w.flow(0).cwnd, 4, "{control}");
    }
}

#[test]
fn a_reduction_that_is_undone_leaves_slow_start_as_it_was() {
    // the timeout was for nothing: the transition may still come
    let mut w = World::new("gsam", &[], &[(10, 160 * MS)]);
    w.round(0);
    w.timeout(0);
    w.acked(0, 1);
    undone(&mut w, 20);
    w.set_rtt(0, 200 * MS);
    w.acked(0, 1);
    assert_eq!(w.flow(0).ssthresh, 40);

    for timeout in [false, true] {
        let mut w = World::new("hystartpp", &[], &[(10, 100 * MS)]);
        w.round(0);
        w.round(0);
        if timeout {
            w.timeout(0);
            w.acked(0, 1);
        } else {
            w.flow_mut(0).ssthresh = w.ssthresh(0);
        }
        undone(&mut w, 40);
        w.event(0, Event::Recovered); // Linux says that it is over, undone or not
        w.round(0);
        w.set_rtt(0, 140 * MS);
        w.round(0);
        w.round(0);
        // 320 without
        assert!(w.flow(0).cwnd < 250, "timeout {timeout}: conservative, {}", w.flow(0).cwnd);
        for _ in 0..6 {
            w.round(0);
        }
        assert!(w.flow(0).ssthresh < INFINITE, "timeout {timeout}");
    }
}

/// TCP takes a reduction back.
fn undone(w: &mut World, cwnd: u32) {
    let flow = w.flow_mut(0);
    (flow.cwnd, flow.ssthresh) = (cwnd, INFINITE);
    flow.set_state(State::Open);
}

#[test]
fn hystartpp_keeps_the_threshold_of_a_timeout() {
    let mut w = World::new("hystartpp", &[], &[(10, 100 * MS)]);
    for rtt in [100, 100, 140] {
        w.set_rtt(0, rtt * MS);
        w.round(0);
    }
    w.flow_mut(0).cwnd = 100;
    falls(&mut w, 0);
    for _ in 0..6 {
        w.round(0);
    }
    assert_eq!(w.flow(0).ssthresh, 50);
    assert!(w.flow(0).cwnd >= 32, "{}", w.flow(0).cwnd);
}

#[test]
fn the_switch_is_plain_up_to_two_subflows_and_gsam_beyond() {
    for n in 1..=4usize {
        let mut w = World::new("subflow_switch", &[], &vec![(10, 160 * MS); n]);
        w.round(0);
        w.set_rtt(0, 200 * MS);
        w.round(0);
        let grown = w.flow(0).cwnd;
        assert_eq!(grown > 24, n <= 2, "{n} subflows: {grown}");
        assert_eq!(w.flow(0).ssthresh == INFINITE, n <= 2);
    }
    let mut w = World::new("subflow_switch", &[("subflows", 4)], &[(10, 160 * MS); 4]);
    w.set_rtt(0, 200 * MS);
    w.round(0);
    assert_eq!(w.flow(0).cwnd, 20);
}

#[test]
fn the_switch_does_not_leave_a_transition_when_subflows_go() {
    let mut w = World::new("subflow_switch", &[], &[(16, 160 * MS); 3]);
    w.round(0);
    w.set_rtt(0, 200 * MS);
    w.acked(0, 8);
    assert_eq!(w.flow(0).cwnd, 33);
    w.leave(2);
    w.acked(0, 8);
    assert_eq!(w.flow(0).cwnd, 34);
    assert_eq!(w.flow(0).group.n, 2);
}

#[test]
fn lisa_takes_the_newcomers_window_from_the_fastest() {
    // the draft's example: 40 becomes 30 + 10
    for (old, left, new) in [(40, 30, 10), (20, 10, 10), (19, 10, 9), (6, 3, 3), (5, 5, 3)] {
        let mut w = World::new("lisa", &[], &[(old, 50 * MS)]);
        w.flow_mut(0).in_flight = old;
        w.report();
        w.join(2, 50 * MS);
        assert_eq!(w.flow(1).cwnd, new, "old {old}");
        w.flow_mut(0).in_flight = left;
        w.grow(0, Ack::new(0, 0));
        assert_eq!(w.flow(0).cwnd, left, "old {old}");
    }
    // nobody in slow start: 10
    let mut w = World::new("lisa", &[], &[(40, 50 * MS)]);
    w.flow_mut(0).ssthresh = 20;
    w.report();
    w.join(2, 50 * MS);
    assert_eq!((w.flow(0).cwnd, w.flow(1).cwnd), (40, 10));
}

#[test]
fn lisa_gives_nothing_once_slow_start_is_over() {
    let mut w = World::new("lisa", &[], &[(40, 50 * MS)]);
    w.join(10, 50 * MS);
    w.flow_mut(0).ssthresh = 20;
    w.grow(0, Ack::new(0, 0));
    assert_eq!(w.flow(0).cwnd, 40);
}

#[test]
fn lisa_ignores_acks_of_what_is_too_much_in_flight() {
    let mut w = World::new("lisa", &[], &[(40, 50 * MS)]);
    w.join(10, 50 * MS);
    w.flow_mut(0).in_flight = 39;
    w.grow(0, Ack::new(1, 0)); // 40 were in flight: gives 10, and of 10 acks that are not counted this one is the first
    assert_eq!(w.flow(0).cwnd, 30);
    w.grow(0, Ack::new(8, 0));
    assert_eq!(w.flow(0).cwnd, 30);
    w.grow(0, Ack::new(2, 0));
    assert_eq!(w.flow(0).cwnd, 31);
}

#[test]
fn lisa_ignores_nothing_after_a_timeout() {
    let mut w = World::new("lisa", &[], &[(40, 50 * MS)]);
    w.join(10, 50 * MS);
    w.flow_mut(0).in_flight = 39;
    w.grow(0, Ack::new(1, 0));
    w.timeout(0);
    for _ in 0..4 {
        w.round(0);
    }
    assert_eq!(w.flow(0).cwnd, 15, "slow start to half of 30");
}

#[test]
fn lisa_asks_the_largest_rate_and_counts_what_is_asked_already() {
    let mut w = World::new("lisa", &[], &[(40, 100 * MS), (30, 10 * MS)]);
    for i in 0..2 {
        w.grow(i, Ack::new(0, 0)); // the second took from the first
    }
    w.flow_mut(0).cwnd = 40;
    w.flow_mut(1).cwnd = 25;
    w.report();
    let mailed = |w: &World| [w.group().peer[0].mail, w.group().peer[1].mail];
    w.join(10, 10 * MS);
    assert_eq!(mailed(&w), [0, 10]);
    w.join(10, 10 * MS); // 25 - 10 = 15 are left, halved
    assert_eq!(mailed(&w), [0, 17]);
}

#[test]
fn hystartpp_slows_down_when_a_round_is_slower_and_resumes_when_it_was_nothing() {
    let mut w = World::new("hystartpp", &[], &[(10, 100 * MS)]);
    w.round(0);
    w.round(0);
    assert_eq!(w.flow(0).cwnd, 40);
    w.set_rtt(0, 100 * MS + 12_499); // below 100 + 100/8
    w.round(0);
    assert_eq!(w.flow(0).cwnd, 80);
    w.set_rtt(0, 140 * MS);
    w.round(0); // eight samples of slow start, then a quarter
    assert!((88..=110).contains(&w.flow(0).cwnd), "{}", w.flow(0).cwnd);
    let before = w.flow(0).cwnd;
    w.round(0);
    let grown = f64::from(w.flow(0).cwnd) / f64::from(before);
    assert!(close(grown, 1.25, 0.02), "{grown}");
    assert_eq!(w.flow(0).ssthresh, INFINITE);
    let mut resumed = w.clone();
    resumed.set_rtt(0, 100 * MS);
    let before = resumed.flow(0).cwnd;
    resumed.round(0);
    resumed.round(0);
    assert!(resumed.flow(0).cwnd > before * 3, "{before} {}", resumed.flow(0).cwnd);
    for _ in 0..5 {
        w.round(0);
    }
    assert!(w.flow(0).ssthresh < INFINITE, "congestion avoidance after five rounds");
}

#[test]
fn hystartpp_counts_eight_packets_of_an_ack_at_most() {
    let mut w = World::new("hystartpp", &[], &[(40, 100 * MS)]);
    w.ack_and_grow(0, Ack::new(30, 100 * MS));
    assert_eq!(w.flow(0).cwnd, 48);
    w.round(0);
    w.set_rtt(0, 140 * MS);
    w.round(0); // conservative from now on
    let before = w.flow(0).cwnd;
    w.ack_and_grow(0, Ack::new(40, 140 * MS));
    assert!(w.flow(0).cwnd - before <= 3, "{before} {}", w.flow(0).cwnd);
}

#[test]
fn what_an_ack_has_beyond_slow_start_counts_in_avoidance() {
    for control in ["reno", "hystartpp"] {
        let mut w = World::new(control, &[("initial_ssthresh_bytes", 12 * 1448)], &[(10, 100 * MS)]);
        w.ack_and_grow(0, Ack::new(6, 100 * MS));
        assert_eq!((w.flow(0).cwnd, w.flow(0).cwnd_cnt), (12, 4), "{control}");
    }
}

#[test]
fn css_together_grows_as_fast_as_one() {
    for n in 1..=4usize {
        let mut w = World::new("css", &[], &vec![(16, 100 * MS); n]);
        for i in 0..n {
            w.acked(i, 16);
        }
        w.report();
        let total: u32 = (0..n).map(|i| w.flow(i).cwnd).sum();
        let expected = 16 * n as u32 + 16;
        assert!(total.abs_diff(expected) <= n as u32 * 2, "{n}: {total}, expected {expected}");
    }
}

#[test]
fn css_ends_every_slow_start_at_one_loss() {
    let mut w = World::new("css", &[], &[(16, 100 * MS), (16, 100 * MS)]);
    w.lose(1);
    assert_eq!(w.flow(0).ssthresh, INFINITE);
    w.acked(0, 1);
    assert_eq!(w.flow(0).ssthresh, 16);
}

#[test]
fn css_starts_slowly_again_after_its_own_timeout() {
    let mut w = World::new("css", &[], &[(40, 100 * MS)]);
    w.set_rtt(0, 200 * MS); // the reference flow stops
    w.acked(0, 1);
    assert_eq!(w.flow(0).ssthresh, 40);
    w.flow_mut(0).cwnd = 40;
    w.timeout(0);
    for expected in [2, 4, 8, 16] {
        w.round(0);
        assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (expected, 20));
    }
}
