//! Adaptive start: where it ends, what subflows tell each other, first windows, pace, reductions.

use crate::world::{MS, World, close};
use pathcast_congestion::{Ack, INFINITE};

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
    // 500 packets a second: 50 in an RTT, and 6 more
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 2);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (40, INFINITE), "as TCP till then");
    rounds(&mut w, 1, true, 2000, 1);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (56, 56), "in the middle of the round");
    rounds(&mut w, 1, true, 2000, 1);
    assert_eq!(w.flow(0).cwnd, 57, "LIA, which is Reno for one subflow");
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
        assert!((52..=60).contains(&w.flow(i).cwnd), "each holds 50: {:?}", windows(&w, 2));
    }
}

#[test]
fn a_near_path_with_a_queue_does_not_hold_a_far_one_back() {
    // near: 100 packets a second, 2 in 20 ms, and a queue that makes its RTT the far one's; far: 40 in 100 ms
    let mut w = World::new("adaptive_start", &[], &[(10, 20 * MS)]);
    w.set_rtt(0, 100 * MS);
    let near = |w: &mut World| {
        w.wait(0, 10_000);
        w.ack_and_grow(0, Ack::new(1, 100 * MS));
    };
    (0..20).for_each(|_| near(&mut w));
    w.join_late(1, 100 * MS, 200_000);
    w.report();
    for _ in 0..10 {
        let window = w.flow(1).cwnd;
        for packet in 0..40 {
            w.wait(1, 2_500);
            if packet < window {
                w.ack_and_grow(1, Ack::new(1, 100 * MS));
            }
            if packet % 4 == 3 {
                near(&mut w);
            }
        }
    }
    assert!((40..=52).contains(&w.flow(1).cwnd), "{:?}", windows(&w, 2));
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
    assert!(close(w.pace(0) as f64, 684.0 * 1448.0, 1e-4), "1.2 windows of 57 an RTT: {}", w.pace(0));
    let mut two = World::new("adaptive_start", &[], &[(40, 100 * MS), (40, 100 * MS)]);
    round_of(&mut two, 2, false, 200, |_| 100 * MS);
    two.report();
    round_of(&mut two, 2, false, 200, |_| 100 * MS);
    let share = 5000 * 1448 * 11 / 10 / 2;
    assert!(two.pace(1).abs_diff(share) < share / 100, "{} of {share}", two.pace(1));
}

#[test]
fn a_newcomer_starts_with_what_is_free() {
    let joined = |old: u32, first: u32, gap_us: u64| {
        let mut w = World::new("adaptive_start", &[], &[(old, 100 * MS)]);
        w.set_rtt(0, 100 * MS);
        for _ in 0..6 {
            w.wait(0, gap_us);
            w.ack_and_grow(0, Ack::new(1, 100 * MS));
        }
        w.flow_mut(0).cwnd = old;
        w.report();
        w.join(first, 100 * MS);
        w.join(first, 100 * MS);
        [w.flow(1).cwnd, w.flow(2).cwnd]
    };
    assert_eq!(joined(2, 1, 100), [3, 3], "LISA's least");
    assert_eq!(joined(16, 1, 100), [10, 6], "no more than double together");
    assert_eq!(joined(16, 10, 100), [10, 10], "but not less than TCP's");
    assert_eq!(joined(100, 1, 100), [10, 10]);
    assert_eq!(joined(8, 1, 20_000), [8, 8], "the path is full: the largest window");
    assert_eq!(joined(100, 10, 1000), [10, 10]);
}

#[test]
fn a_newcomer_counts_a_sibling_that_it_has_not_heard_of_for_an_rtt() {
    let joined = |late_us: u64| {
        let mut w = World::new("adaptive_start", &[], &[(2, 100 * MS)]);
        w.join_late(1, 100 * MS, late_us);
        w.flow(1).cwnd
    };
    assert_eq!([joined(0), joined(120_000)], [1, 3], "both begin together; one was there");
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
    assert_eq!((asked(&w, 0), w.flow(2).cwnd), (0, before[2]), "what is in flight fills the path");
    for i in 0..3 {
        w.flow_mut(i).in_flight = 12;
    }
    w.report();
    w.grow(2, Ack::new(2, 100 * MS));
    assert_eq!(([asked(&w, 0), asked(&w, 1)], w.flow(2).cwnd), ([2, 0], before[2] + 2));
    w.grow(0, Ack::new(1, 100 * MS));
    assert_eq!((w.flow(0).cwnd, asked(&w, 0)), (before[0] - 2, 0));
    for _ in 0..60 {
        w.grow(2, Ack::new(1, 100 * MS));
    }
    w.grow(0, Ack::new(1, 100 * MS));
    assert!(w.flow(0).cwnd >= windows(&w, 3).iter().sum::<u32>() / 3, "never below the mean: {:?}", windows(&w, 3));
}

#[test]
fn who_is_asked_for_more_than_it_has_keeps_two_packets() {
    let w = World::new("adaptive_start", &[], &[(2, 100 * MS), (2, 100 * MS)]);
    let (mut flow, mut instance) = w.taken(0);
    flow.mail = 5;
    instance.grow(&mut flow, &Ack::new(0, 100 * MS));
    assert_eq!(flow.cwnd, 2);
}

#[test]
fn a_reduction_halves_and_the_second_ends_the_start() {
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 3);
    for lost in 1..=3 {
        w.flow_mut(0).cwnd = 40;
        w.lose(0);
        assert_eq!(w.flow(0).cwnd, 20);
        rounds(&mut w, 1, true, 2000, 1);
        let grown = w.flow(0).cwnd;
        assert_eq!(grown > 30, lost <= 1, "{lost} reductions: {grown}");
        assert_eq!(w.pace(0) > 0, lost <= 1);
    }
}

#[test]
fn a_few_acks_held_up_together_are_no_rate() {
    let mut w = World::new("adaptive_start", &[], &[(40, 100 * MS)]);
    rounds(&mut w, 1, true, 2000, 2);
    let known = w.group().peer[0].word[1] & 0xffff_ffff;
    for packet in 0..8 {
        w.wait(0, if packet == 0 { 100_000 } else { 100 });
        w.ack_and_grow(0, Ack::new(1, 100 * MS));
    }
    assert_eq!(w.group().peer[0].word[1] & 0xffff_ffff, known);
}

#[test]
fn what_siblings_leave_unused_is_free_after_the_start_too() {
    let mut w = World::new("adaptive_start", &[], &[(40, 100 * MS), (40, 100 * MS)]);
    rounds(&mut w, 2, false, 1000, 2);
    for i in 0..2 {
        for _ in 0..2 {
            w.flow_mut(i).cwnd = 20;
            w.lose(i);
        }
    }
    let grown = |w: &World| {
        let mut w = w.clone();
        (w.flow_mut(0).cwnd, w.flow_mut(0).ssthresh) = (6, 6);
        rounds(&mut w, 1, true, 2000, 1);
        w.flow(0).cwnd
    };
    w.flow_mut(1).in_flight = 10;
    w.report();
    assert!(grown(&w) <= 7, "its sibling sends");
    w.flow_mut(1).in_flight = 0;
    w.report();
    assert!((10..=11).contains(&grown(&w)), "up to the sibling's window: {}", grown(&w));
}

#[test]
fn a_path_that_is_not_full_lets_the_connection_grow_as_one_flow() {
    let ssthresh = [("initial_ssthresh_bytes", 20 * 1448)];
    let mut w = World::new("adaptive_start", &ssthresh, &[(20, 100 * MS), (20, 100 * MS)]);
    let before: u32 = windows(&w, 2).iter().sum();
    rounds(&mut w, 2, true, 100, 10);
    let grown = windows(&w, 2).iter().sum::<u32>() - before;
    assert!((9..=11).contains(&grown), "{grown} packets in ten rounds");
}

#[test]
fn after_the_start_its_windows_are_lias() {
    let mut worlds = ["adaptive_start", "lia"].map(|control| {
        let ssthresh = [("initial_ssthresh_bytes", 20 * 1448)];
        World::new(control, &ssthresh, &[(20, 100 * MS), (25, 60 * MS), (40, 180 * MS)])
    });
    let traces = worlds.each_mut().map(|w| {
        for i in 0..3 {
            for _ in 0..2 {
                w.flow_mut(i).cwnd = [40, 50, 80][i];
                w.lose(i);
            }
        }
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

#[test]
fn rates_stay_where_a_siblings_count_of_packets_begins_anew() {
    // 20 bits of it are published: in the middle of a train the sum of all falls by a million packets
    let mut w = World::new("adaptive_start", &[], &[(10, 100 * MS), (10, 100 * MS)]);
    rounds(&mut w, 2, true, 2000, 10);
    let all = |w: &World| w.flow(0).word[1] & 0xffff_ffff;
    let (before, mut delivered) = (all(&w), 0_u64);
    assert!(close(before as f64, 1000.0 * 1073.741824, 0.1), "two paths of 500 packets a second: {before}");
    while delivered < 3 << 19 {
        delivered += u64::from(w.flow(1).cwnd);
        rounds(&mut w, 2, true, 2000, 1);
    }
    assert!(all(&w) <= before * 11 / 10, "{} for {before}", all(&w));
}
