//! Background transports against their papers: Nice, TCP-LP, LEDBAT++.

use crate::world::{MS, World, close};
use pathcast_congestion::{Ack, Event, INFINITE, State};

#[test]
fn nice_reaches_one_48th_and_comes_back() {
    let mut w = World::new("nice", &[], &[(64, 40 * MS)]);
    w.set_rtt(0, 80 * MS); // the queue is full, and stays so
    let mut parts = Vec::new();
    for _ in 0..16 {
        w.round(0);
        let rate = w.pace(0);
        parts.push((w.flow(0).cwnd, (1448.0 * 1e6 / 80_000.0 / rate as f64).round() as u32));
    }
    assert_eq!(parts.last(), Some(&(1, 48)), "{parts:?}");
    assert!(parts.contains(&(1, 2)) && parts.contains(&(1, 32)), "{parts:?}");
    w.set_rtt(0, 40 * MS);
    for _ in 0..8 {
        w.round(0);
    }
    assert_eq!(w.pace(0), 0);
    assert!(w.flow(0).cwnd > 1);
}

#[test]
fn nice_halves_only_when_more_than_half_of_the_packets_see_a_queue() {
    for (share, halved) in [(40, false), (70, true)] {
        let mut w = World::new("nice", &[], &[(100, 40 * MS)]);
        w.flow_mut(0).ssthresh = 50;
        w.acked_with(0, 1, 80 * MS); // the full queue is known
        w.round(0);
        w.round(0);
        let before = w.flow(0).cwnd;
        w.round_of(0, |packet| if packet * 100 < before * share { 60 * MS } else { 40 * MS });
        w.acked(0, 1); // the round is judged by the first ACK of the next
        assert_eq!(w.flow(0).cwnd < before * 3 / 4, halved, "{share} %: {before} {}", w.flow(0).cwnd);
    }
}

#[test]
fn nice_leaves_slow_start_when_the_first_packets_of_a_round_wait() {
    let mut w = World::new("nice", &[], &[(10, 40 * MS)]);
    let bursts = |packet| if packet < 8 { 40 * MS } else { 80 * MS };
    let mut windows = Vec::new();
    for _ in 0..7 {
        w.round_of(0, bursts); // its own bursts wait
        windows.push(w.flow(0).cwnd);
    }
    let before = *windows.last().unwrap();
    assert!(windows.windows(2).filter(|pair| pair[0] == pair[1]).count() >= 3, "every other round: {windows:?}");
    assert!(before >= 80 && w.flow(0).ssthresh == INFINITE, "{windows:?}");
    w.set_rtt(0, 50 * MS);
    w.round(0); // 8 packets of a round that began before
    w.acked(0, 9);
    let after = w.flow(0).cwnd;
    assert_eq!(w.flow(0).ssthresh, after);
    assert!((before * 3 / 4..=(before + 20) * 4 / 5).contains(&after), "W minRTT / rtt: {before} {after}");
    w.round(0); // sent before
    assert_eq!(w.flow(0).cwnd, after);
}

#[test]
fn lp_leaves_slow_start_with_a_quarter_and_counts_a_window_of_trouble_once() {
    let mut w = World::new("lp", &[], &[(64, 40 * MS)]);
    w.round_of(0, |packet| if packet < 8 { 40 * MS } else { 80 * MS });
    w.acked_with(0, 8, 40 * MS);
    let before = w.flow(0).cwnd;
    assert!(before >= 128, "its own bursts wait: {before}");
    w.set_rtt(0, 80 * MS);
    w.round(0);
    w.acked(0, 9); // the first 8 packets of a round wait
    let cut = w.flow(0).cwnd;
    assert!((before / 4..=before / 2).contains(&cut), "{before} {cut}");
    assert_eq!(w.flow(0).ssthresh, cut);
    assert_eq!(w.ssthresh(0), cut, "a loss in the same window");
    for _ in 0..100 {
        w.acked(0, cut); // what was sent before the cut
        w.set_rtt(0, 40 * MS);
    }
    assert!(w.flow(0).cwnd >= cut, "what was smoothed before the cut is no second indication: {}", w.flow(0).cwnd);
    assert_eq!(w.ssthresh(0), w.flow(0).cwnd / 2);
}

#[test]
fn a_receiver_that_waits_for_a_second_packet_does_not_look_like_a_queue() {
    for control in ["nice", "lp"] {
        let mut w = World::new(control, &[], &[(2, 40 * MS)]);
        w.ack_and_grow(0, Ack::new(2, 40 * MS)); // it acknowledges pairs
        w.ack_and_grow(0, Ack::new(2, 90 * MS)); // the full queue
        w.flow_mut(0).cwnd = 1;
        w.flow_mut(0).ssthresh = 2;
        w.set_rtt(0, 40 * MS);
        for _ in 0..40 {
            w.wait(0, u64::from(80 * MS));
            w.ack_and_grow(0, Ack::new(1, 80 * MS)); // 40 ms of waiting
            assert_eq!(w.pace(0), 0, "{control}");
        }
        assert!(w.flow(0).cwnd >= 2, "{control}: {}", w.flow(0).cwnd);
    }
}

/// A receiver that acknowledges each packet: a lost ACK, or a hole that is filled, makes an ACK of several, too.
#[test]
fn an_ack_of_several_now_and_then_is_no_receiver_that_waits() {
    for control in ["nice", "lp"] {
        for state in [State::Open, State::Recovery] {
            let mut w = World::new(control, &[], &[(40, 40 * MS)]);
            w.acked_with(0, 1, 90 * MS); // the full queue
            w.flow_mut(0).ssthresh = 20;
            w.round(0);
            for _ in 0..5 {
                w.flow_mut(0).set_state(state);
                w.ack_and_grow(0, Ack::new(7, 40 * MS));
                w.flow_mut(0).set_state(State::Open);
                w.round(0);
            }
            let before = w.flow(0).cwnd;
            w.set_rtt(0, 80 * MS);
            w.round(0);
            w.round(0);
            assert!(w.flow(0).cwnd <= before * 3 / 5, "{control}, {state:?}: {before} {}", w.flow(0).cwnd);
        }
    }
}

#[test]
fn nice_is_vegas_while_there_is_no_signal() {
    let mut w = World::new("nice", &[], &[(100, 40 * MS)]);
    w.acked_with(0, 1, 140 * MS); // the full queue is 100 ms long, a signal begins at 10 ms
    w.flow_mut(0).ssthresh = 50;
    w.acked(0, 200);
    for (rtt, change) in [(40, 1i64), (42, -1), (40, 1)] {
        w.set_rtt(0, rtt * MS); // 100 * 2 / 42 = 4.8 packets queued
        w.round(0);
        w.round(0);
        let before = w.flow(0).cwnd;
        for _ in 0..5 {
            w.round(0);
        }
        assert_eq!(i64::from(w.flow(0).cwnd) - i64::from(before), 5 * change, "{rtt} ms");
    }
}

#[test]
fn nice_forgets_the_full_queue_slowly() {
    for (threshold, pauses, halved) in [(100, 1, false), (100, 2, true), (900, 2, true)] {
        let mut w = World::new("nice", &[("threshold", threshold), ("least_us", 0)], &[(100, 40 * MS)]);
        w.acked_with(0, 1, 140 * MS);
        w.flow_mut(0).ssthresh = 50;
        w.acked(0, 200);
        w.set_rtt(0, 43 * MS);
        for _ in 0..pauses {
            w.wait(0, 31_000_000);
            w.acked(0, 1);
        }
        let before = w.flow(0).cwnd;
        w.round(0);
        w.round(0);
        w.round(0);
        assert_eq!(w.flow(0).cwnd < before * 3 / 4, halved, "threshold {threshold}, {pauses} pauses");
    }
    // t decides what is a signal: 60 ms of 40 to 140
    for (threshold, halved) in [(190, true), (210, false)] {
        let mut w = World::new("nice", &[("threshold", threshold), ("beta", 100)], &[(100, 40 * MS)]);
        w.acked_with(0, 1, 140 * MS);
        w.flow_mut(0).ssthresh = 50;
        w.set_rtt(0, 60 * MS);
        for _ in 0..4 {
            w.round(0);
        }
        assert_eq!(w.flow(0).cwnd < 75, halved, "threshold {threshold}: {}", w.flow(0).cwnd);
    }
}

#[test]
fn lp_halves_then_drops_to_one_inside_its_inference_phase() {
    let mut w = World::new("lp", &[], &[(100, 40 * MS)]);
    w.flow_mut(0).ssthresh = 50;
    w.round(0);
    w.acked_with(0, 1, 140 * MS); // d_max; the smoothed delay is 12.5 ms above d_min, below 15 % of 100 ms
    assert_eq!(w.flow(0).cwnd, 101);
    w.set_rtt(0, 80 * MS);
    w.acked(0, 1); // now 15.9 ms
    assert_eq!(w.flow(0).cwnd, 50, "first indication");
    w.acked_with(0, 1, 80 * MS);
    assert_eq!(w.flow(0).cwnd, 50, "of a packet sent before the cut");
    w.round(0);
    w.round(0);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (1, 2), "second indication");
    w.set_rtt(0, 40 * MS);
    let mut rounds = 0;
    while w.flow(0).cwnd == 1 {
        w.round(0);
        rounds += 1;
        assert!(rounds < 40);
    }
    for _ in 0..20 {
        w.round(0);
    }
    assert!(w.flow(0).cwnd > 10, "additive increase again");
}

#[test]
fn lp_takes_one_way_delays_of_any_offset() {
    for offset in [0u32, 5_000_000, 0x8000_0000, 0xffff_ffff] {
        let mut w = World::new("lp", &[("owd", 1)], &[(100, 40 * MS)]);
        w.flow_mut(0).ssthresh = 50;
        for delay in [20, 20, 120, 60, 60].map(|ms| offset.wrapping_add(ms * MS)) {
            w.ack_and_grow(0, Ack::new(1, 40 * MS).with_one_way_delay(delay));
        }
        assert_eq!(w.flow(0).cwnd, 50, "offset {offset}");
    }
}

/// The offset of two clocks may let the sum pass through zero: a delay that grew by little, not by 2^32 us less.
#[test]
fn lp_takes_one_way_delays_that_pass_through_zero() {
    let mut w = World::new("lp", &[("owd", 1)], &[(100, 40 * MS)]);
    w.flow_mut(0).ssthresh = 50;
    for delay in [20, 20, 20, 20, 31, 31] {
        w.ack_and_grow(0, Ack::new(1, 40 * MS).with_one_way_delay((delay * MS).wrapping_sub(30 * MS)));
    }
    assert!(w.flow(0).cwnd >= 100, "{}", w.flow(0).cwnd);
}

#[test]
fn lp_returns_to_the_rtt_where_one_way_delays_are_switched_off() {
    let mut w = World::new("lp", &[("owd", 1)], &[(100, 40 * MS)]);
    w.flow_mut(0).ssthresh = 50;
    for delay in [20, 20, 120] {
        w.ack_and_grow(0, Ack::new(1, 40 * MS).with_one_way_delay(delay * MS));
    }
    w.set("owd", 0);
    for rtt in [40, 40, 140, 80, 80] {
        w.ack_and_grow(0, Ack::new(1, rtt * MS).with_one_way_delay(20 * MS));
    }
    assert_eq!(w.flow(0).cwnd, 50, "the queue that RTTs show");
}

#[test]
fn ledbatpp_has_its_gain_and_holds_its_target() {
    // base 20 ms: GAIN = 1 / ceil(120 / 20) = 1/6
    let mut w = World::new("ledbatpp", &[("slowdown", 0)], &[(10, 20 * MS)]);
    assert_eq!(w.flow(0).cwnd, 2);
    w.acked(0, 61); // one more than 6 * 10: sixths are rounded down
    assert_eq!(w.flow(0).cwnd, 12);
    w.set_rtt(0, 20 * MS + 45_001); // above 3/4 TARGET once all four samples say so
    w.acked(0, 1);
    for _ in 0..4 {
        w.acked(0, 1);
    }
    let ssthresh = w.flow(0).ssthresh;
    assert!(ssthresh < INFINITE);
    let start = w.flow(0).cwnd;
    for _ in 0..60 {
        w.round(0);
    }
    assert!(w.flow(0).cwnd.abs_diff(start + 10) <= 1, "{start} {}", w.flow(0).cwnd);
    w.set_rtt(0, 20 * MS + 180 * MS); // q = 3 TARGET: half per RTT at most
    w.round(0);
    let before = w.flow(0).cwnd;
    w.round(0);
    assert!(w.flow(0).cwnd.abs_diff(before / 2) <= 1);
    for _ in 0..20 {
        w.round(0);
    }
    assert_eq!(w.flow(0).cwnd, 2);
}

#[test]
fn ledbatpp_slows_down_every_so_many_durations() {
    let holds = |ratio| {
        let mut w = World::new("ledbatpp", &[("slowdown_ratio", ratio)], &[(10, 100 * MS)]);
        w.acked(0, 200);
        w.lose(0); // the first slow start has ended
        let (mut holds, mut low) = (Vec::new(), false);
        for round in 0..400 {
            w.round(0);
            let now = w.flow(0).cwnd == 2;
            if now && !low {
                holds.push(round);
            }
            low = now;
        }
        holds
    };
    let (nine, one) = (holds(9), holds(1));
    assert!(nine[0] <= 4 && one[0] == nine[0], "two RTTs after slow start: {nine:?}");
    // from one to the next: its duration, and 9 times or once the same as a pause
    let share = f64::from(nine[1] - nine[0]) / f64::from(one[1] - one[0]);
    assert!(close(share, 5.0, 0.2), "{nine:?} {one:?}");
}

#[test]
fn ledbatpp_halves_the_window_before_a_slowdown_that_loses() {
    let mut w = World::new("ledbatpp", &[("initial_ssthresh_bytes", 100 * 1448)], &[(100, 100 * MS)]);
    w.flow_mut(0).cwnd = 100;
    w.round(0);
    let before = w.flow(0).cwnd;
    for _ in 0..4 {
        if w.flow(0).cwnd == 2 {
            break;
        }
        w.round(0);
    }
    assert_eq!(w.flow(0).cwnd, 2, "the hold");
    let half = w.flow(0).ssthresh / 2;
    assert!((before / 2..=before / 2 + 2).contains(&half), "{before} {half}");
    assert_eq!(w.ssthresh(0), half);
}

/// TCP's restart after idle time (RFC 5681, section 4.1).
fn idle(w: &mut World, us: u64) {
    w.wait(0, us);
    w.event(0, Event::Idle);
    let flow = w.flow_mut(0);
    flow.una = flow.nxt;
    flow.in_flight = 0;
    flow.ssthresh = flow.ssthresh.max(flow.cwnd / 2 + flow.cwnd / 4);
    flow.cwnd = flow.cwnd.min(10);
    w.event(0, Event::TxStart);
}

#[test]
fn ledbatpp_finds_its_window_again_when_a_slowdown_falls_into_a_slow_start() {
    let begun = || {
        let mut w = World::new("ledbatpp", &[("initial_ssthresh_bytes", 333 * 1448)], &[(333, 100 * MS)]);
        w.flow_mut(0).cwnd = 333;
        w.round(0); // the next slowdown is planned
        w
    };
    let most = |w: &mut World| {
        let mut most = 0;
        for _ in 0..30 {
            w.round(0);
            most = most.max(w.flow(0).cwnd);
        }
        most
    };
    let mut w = begun();
    idle(&mut w, 10_000_000);
    assert!(most(&mut w) >= 249, "after idle time: 3/4 of 333");
    let mut w = begun();
    w.timeout(0);
    assert!(most(&mut w) >= 166, "after a timeout: half of 333");
    let mut w = begun();
    w.flow_mut(0).cwnd_max = 100;
    idle(&mut w, 10_000_000);
    assert_eq!(most(&mut w), 100);
    assert_eq!(w.flow(0).ssthresh, 100, "which is as far as it goes");

    // within the hold: the window before it
    let mut w = begun();
    idle(&mut w, 10_000_000);
    w.acked(0, 1);
    assert_eq!((w.flow(0).cwnd, w.ssthresh(0)), (2, 5));
}

#[test]
fn ledbatpp_does_not_count_idle_time_as_a_slowdowns() {
    let rounds = |idle_us| {
        let mut w = World::new("ledbatpp", &[("initial_ssthresh_bytes", 20 * 1448)], &[(20, 100 * MS)]);
        w.flow_mut(0).cwnd = 20;
        let wait = |w: &mut World, low: bool| {
            let rounds = (0..2000).take_while(|_| {
                (w.flow(0).cwnd == 2) != low && {
                    w.round(0);
                    true
                }
            });
            rounds.count()
        };
        wait(&mut w, true);
        wait(&mut w, false); // the ramp
        if idle_us > 0 {
            idle(&mut w, idle_us);
        }
        wait(&mut w, true)
    };
    let (busy, rested) = (rounds(0), rounds(3_600_000_000));
    assert!(busy < 200 && rested.abs_diff(busy) <= 10, "{busy} {rested}");
}

#[test]
fn ledbatpp_is_in_its_first_slow_start_until_a_loss_that_stands() {
    let mut w = World::new("ledbatpp", &[], &[(10, 100 * MS)]);
    w.event(0, Event::Recovered); // of a reduction that TCP has taken back
    w.round(0);
    w.set_rtt(0, 160 * MS);
    w.acked(0, 4); // the least of four
    assert!(w.flow(0).ssthresh < 10, "the queue ends it: {}", w.flow(0).ssthresh);
}
