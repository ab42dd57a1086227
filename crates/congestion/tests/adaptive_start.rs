//! Adaptive start: where it ends, what subflows tell each other, first windows, pace, reductions.

mod world;

use pathcast_congestion::{Ack, INFINITE};
use world::{MS, World, close};

/// Every subflow's window is acked in a round of 100 ms: one after the other, or all at once, with `gap_us` between the
/// ACKs of a bottleneck, each with the RTT that `rtt_us` gives it.
fn round_of(w: &mut World, n: usize, together: bool, gap_us: u64, rtt_us: impl Fn(u32) -> u32) {
    let begun = (0..n).map(|i| w.flow(i).now_us).max().unwrap();
    let windows: Vec<u32> = (0..n).map(|i| w.flow(i).cwnd).collect();
    let mut acks: Vec<(u64, usize, u32)> = Vec::new();
    let mut before = 0;
    for (i, &window) in windows.iter().enumerate() {
        let from = if together { 0 } else { before };
        acks.extend((0..window).map(|packet| ((from + u64::from(packet)) * gap_us, i, packet)));
        before += u64::from(window);
    }
    acks.sort_unstable();
    for (at, i, packet) in acks {
        let late = begun + at - w.flow(i).now_us;
        w.wait(i, late);
        w.ack_and_grow(i, Ack::new(1, rtt_us(packet)));
    }
    for i in 0..n {
        let late = (begun + 100_000).saturating_sub(w.flow(i).now_us);
        w.wait(i, late);
    }
}

fn rounds(w: &mut World, n: usize, together: bool, gap_us: u64, count: usize) {
    for _ in 0..count {
        round_of(w, n, together, gap_us, |_| 100 * MS);
    }
}

fn windows(w: &World, n: usize) -> Vec<u32> {
    (0..n).map(|i| w.flow(i).cwnd).collect()
}

#[test]
fn slow_start_ends_at_what_the_path_holds() {
    // 500 packets a second: 50 in an RTT, and 4 more
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 2);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (40, INFINITE), "as TCP till then");
    rounds(&mut w, 1, true, 2000, 1);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (54, 54), "in the middle of the round");
    rounds(&mut w, 1, true, 2000, 1);
    assert_eq!(w.flow(0).cwnd, 55, "LIA, which is Reno for one subflow");
}

#[test]
fn subflows_of_a_bottleneck_end_together_however_their_trains_lie() {
    for n in [2, 4, 8] {
        let mut w = World::new("adaptive_start", &[], &vec![(3, 100 * MS); n]);
        for _ in 0..6 {
            rounds(&mut w, n, false, 1000, 1); // 1000 packets a second, one train behind the other
            w.report();
        }
        let total: u32 = windows(&w, n).iter().sum();
        assert!((100..=115).contains(&total), "{n} subflows: {:?}", windows(&w, n));
    }
}

#[test]
fn subflows_of_disjoint_paths_do_not_hold_each_other_back() {
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS), (10, 100 * MS)]);
    rounds(&mut w, 2, true, 2000, 4);
    for i in 0..2 {
        assert!((52..=58).contains(&w.flow(i).cwnd), "each holds 50: {:?}", windows(&w, 2));
    }
}

#[test]
fn jitter_and_a_delay_that_rises_do_not_end_slow_start() {
    // 10,000 packets a second: 1000 in an RTT
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    for round in 0..6 {
        round_of(&mut w, 1, true, 100, |packet| (100 + round + packet * 7 % 40) * MS);
    }
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (640, INFINITE));
}

#[test]
fn a_rate_that_was_taken_too_low_is_no_end() {
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 4);
    let stopped = w.flow(0).cwnd;
    rounds(&mut w, 1, true, 1000, 2); // the path is twice as fast
    assert!(stopped < 60 && w.flow(0).cwnd > 100, "{stopped}, then {}", w.flow(0).cwnd);
}

#[test]
fn it_paces_a_little_above_its_share() {
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    assert_eq!(w.pace(0), 0, "nothing is known yet");
    rounds(&mut w, 1, true, 2000, 2);
    assert!(close(w.pace(0) as f64, 550.0 * 1448.0, 1e-4), "{}", w.pace(0));
    rounds(&mut w, 1, true, 2000, 2);
    assert!(close(w.pace(0) as f64, 660.0 * 1448.0, 1e-4), "1.2 windows of 55 an RTT: {}", w.pace(0));
    let mut two = World::new("adaptive_start", &[], &[(40, 100 * MS), (40, 100 * MS)]);
    round_of(&mut two, 2, false, 200, |_| 100 * MS);
    two.report();
    round_of(&mut two, 2, false, 200, |_| 100 * MS);
    let share = 5000 * 1448 * 11 / 10 / 2;
    assert!(two.pace(1).abs_diff(share) < share / 100, "{} of {share}", two.pace(1));
}

#[test]
fn a_newcomer_starts_with_what_is_free() {
    let joined = |old: u32, first: u32, rtt: u32, gap_us: u64| {
        let mut w = World::new("adaptive_start", &[], &[(old, 100 * MS)]);
        w.set_rtt(0, 100 * MS);
        for _ in 0..6 {
            w.wait(0, gap_us);
            w.ack_and_grow(0, Ack::new(1, 100 * MS));
        }
        w.flow_mut(0).cwnd = old;
        w.report();
        w.join(first, rtt);
        w.join(first, rtt);
        [w.flow(1).cwnd, w.flow(2).cwnd]
    };
    assert_eq!(joined(2, 1, 100 * MS, 100), [3, 3], "LISA's least");
    assert_eq!(joined(16, 1, 100 * MS, 100), [10, 6], "no more than double together");
    assert_eq!(joined(16, 10, 100 * MS, 100), [10, 6]);
    assert_eq!(joined(100, 1, 100 * MS, 100), [10, 10]);
    assert_eq!(joined(100, 1, 126 * MS, 100), [2, 2], "farther away");
    assert_eq!(joined(100, 10, 126 * MS, 100), [10, 10], "but not less than TCP's");
    assert_eq!(joined(100, 1, 100 * MS, 1000), [1, 1], "the path is full: as TCP starts");
    assert_eq!(joined(100, 10, 100 * MS, 1000), [3, 3]);
}

#[test]
fn a_small_window_asks_the_largest_once_all_is_full() {
    let mut w = World::new("adaptive_start", &[], &[(90, 100 * MS), (20, 100 * MS), (6, 100 * MS)]);
    round_of(&mut w, 3, false, 2000, |_| 100 * MS); // 50 in an RTT
    w.grow(0, Ack::new(0, 100 * MS));
    w.report();
    let before = windows(&w, 3);
    let asked = |w: &World, i: usize| w.group().peer[i].mail;
    w.grow(2, Ack::new(2, 100 * MS));
    assert_eq!([asked(&w, 0), asked(&w, 1)], [2, 0]);
    assert_eq!(w.flow(2).cwnd, before[2], "it grows when there is room");
    w.grow(1, Ack::new(2, 100 * MS));
    assert_eq!(asked(&w, 0), 4, "this one is below the mean too");
    w.grow(0, Ack::new(1, 100 * MS));
    assert_eq!((w.flow(0).cwnd, asked(&w, 0)), (before[0] - 4, 0));
    for _ in 0..60 {
        w.grow(2, Ack::new(1, 100 * MS));
    }
    w.grow(0, Ack::new(1, 100 * MS));
    assert!(w.flow(0).cwnd >= windows(&w, 3).iter().sum::<u32>() / 3, "never below the mean: {:?}", windows(&w, 3));
}

#[test]
fn the_first_reduction_keeps_what_the_path_holds_and_the_fourth_ends_the_start() {
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 3);
    w.flow_mut(0).cwnd = 60;
    w.wait(0, 1000);
    w.ack_and_grow(0, Ack::new(1, 100 * MS));
    let window = w.flow(0).cwnd;
    w.lose(0);
    assert!(w.flow(0).cwnd.abs_diff(window * 50 / 60) <= 1, "rate / load, not a half: {}", w.flow(0).cwnd);
    for lost in 2..=5 {
        w.flow_mut(0).cwnd = 40;
        w.lose(0);
        assert_eq!(w.flow(0).cwnd, 20);
        rounds(&mut w, 1, true, 2000, 1);
        let grown = w.flow(0).cwnd;
        assert_eq!(grown > 30, lost <= 3, "{lost} reductions: {grown}");
        assert_eq!(w.pace(0) > 0, lost <= 3);
    }
}

#[test]
fn in_congestion_avoidance_its_windows_are_lias() {
    let mut worlds = ["adaptive_start", "lia"].map(|control| {
        let ssthresh = [("initial_ssthresh_bytes", 20 * 1448)];
        World::new(control, &ssthresh, &[(20, 100 * MS), (25, 60 * MS), (40, 180 * MS)])
    });
    let traces = worlds.each_mut().map(|w| {
        let mut trace = Vec::new();
        for step in 0..3000 {
            w.acked(step % 3, 1 + step as u32 % 2);
            trace.push(windows(w, 3));
        }
        trace
    });
    assert_eq!(traces[0], traces[1]);
    assert!(traces[0].last() > traces[0].first());
}
