//! Reno and CUBIC against RFC 5681 and RFC 9438, and what holds for every controller.

use crate::world::{MS, World};
use pathcast_congestion::{Event, INFINITE, State};

#[test]
fn reno_doubles_in_slow_start_and_adds_one_per_rtt_after_it() {
    let mut w = World::new("reno", &[], &[(10, 40 * MS)]);
    for expected in [20, 40, 80] {
        w.round(0);
        assert_eq!(w.flow(0).cwnd, expected);
    }
    w.lose(0);
    assert_eq!((w.flow(0).cwnd, w.flow(0).ssthresh), (40, 40));
    for expected in 41..60 {
        w.round(0);
        assert_eq!(w.flow(0).cwnd, expected);
    }
}

#[test]
fn an_initial_ssthresh_ends_slow_start_for_every_controller_that_grows_by_doubling() {
    for info in pathcast_congestion::controllers() {
        let w = World::new(info.name, &[("initial_ssthresh_bytes", 20 * 1448)], &[(2, 40 * MS)]);
        assert_eq!(w.flow(0).ssthresh, 20, "{}", info.name);
        let w = World::new(info.name, &[("initial_ssthresh_bytes", 1)], &[(2, 40 * MS)]);
        assert_eq!(w.flow(0).ssthresh, 2, "{}", info.name);
        assert_eq!(World::new(info.name, &[], &[(2, 40 * MS)]).flow(0).ssthresh, INFINITE, "{}", info.name);
    }
}

#[test]
fn an_idle_application_does_not_open_the_window() {
    for info in pathcast_congestion::controllers() {
        let mut w = World::new(info.name, &[], &[(2, 40 * MS)]);
        w.flow_mut(0).set_limited(false);
        w.flow_mut(0).set_starved(true);
        // BBR's least window is four packets
        let most = w.flow(0).cwnd.max(if info.name == "bbr3" { 4 } else { 0 });
        for _ in 0..20 {
            w.round(0);
        }
        assert!(w.flow(0).cwnd <= most, "{}: {}", info.name, w.flow(0).cwnd);
    }
}

#[test]
fn cubic_follows_the_curve_of_rfc_9438() {
    let (c, beta, rtt) = (0.4, 0.7, 0.1);
    let mut w = World::new("cubic", &[], &[(1000, 100 * MS)]);
    w.lose(0);
    assert_eq!(w.flow(0).cwnd, 700);
    let k = f64::cbrt((1000.0 - 700.0) / c);
    w.round(0); // the epoch begins with its first ACK
    for round in 2..200 {
        w.round(0);
        let t = f64::from(round) * rtt;
        let curve: f64 = c * (t - k).powi(3) + 1000.0;
        let friendly = 1000.0 * beta + 9.0 / 17.0 * t / rtt;
        let expected = curve.max(friendly);
        // target is the curve one RTT ahead, and it is followed with a lag of about one RTT
        let lead = 3.0 * c * (t - k).powi(2) * rtt + 2.0;
        let ours = f64::from(w.flow(0).cwnd);
        assert!((ours - expected).abs() <= lead, "t {t}: {ours}, curve {expected}");
    }
    assert!(w.flow(0).cwnd > 1500, "{}", w.flow(0).cwnd);
}

/// Linux's growth before the first loss: 5 % of the window in every RTT, as seen after HyStart ended the slow start of a kernel's
/// flow at 250 packets (292, 333, 374 in steps of 200 ms, RTT 60 to 85 ms). After a loss the curve holds alone.
#[test]
fn cubic_grows_by_a_share_of_its_window_before_the_first_loss() {
    let grown = |first: u64, lose: bool, rounds: u32| {
        let mut w = World::new("cubic", &[("first", first)], &[(1000, 100 * MS)]);
        if lose {
            w.lose(0);
        } else {
            w.flow_mut(0).ssthresh = 1000;
        }
        (0..rounds).for_each(|_| w.round(0));
        w.flow(0).cwnd
    };
    assert!(grown(0, false, 10) < 1010);
    for rounds in [1, 5, 10] {
        let expected = 1000.0 * 1.05f64.powi(rounds as i32);
        let ours = f64::from(grown(50, false, rounds));
        assert!((ours / expected - 1.0).abs() < 0.01, "{rounds}: {ours} {expected}");
    }
    assert_eq!(grown(50, true, 30), grown(0, true, 30));
}

#[test]
fn cubic_is_no_slower_than_reno_on_short_paths() {
    let mut w = World::new("cubic", &[], &[(20, 10 * MS)]);
    w.lose(0);
    let start = f64::from(w.flow(0).cwnd);
    for round in 1..=10 {
        w.round(0);
        let friendly = start + 9.0 / 17.0 * f64::from(round);
        assert!(f64::from(w.flow(0).cwnd) >= (friendly - 1.0).floor(), "round {round}: {}", w.flow(0).cwnd);
    }
}

/// RFC 9438 section 4.3: W_est grows by 9/17 of a packet an RTT up to the window of the loss, by a whole one beyond it; in Linux by
/// 8/15 of one everywhere.
#[test]
fn cubic_adds_one_per_rtt_where_reno_would_be_beyond_the_last_loss() {
    for friendly in [1000, 533] {
        let mut w = World::new("cubic", &[("friendly", friendly)], &[(20, 10 * MS)]);
        w.lose(0);
        let below = (20.0 - 14.0) * 17.0 / 9.0; // RTTs
        for round in 1..=40 {
            w.round(0);
            let beyond = f64::from(round) - below;
            let exact = 14.0 + f64::from(round) * 9.0 / 17.0;
            let expected = if beyond > 0.0 { 20.0 + beyond * friendly as f64 / 1000.0 } else { exact };
            let ours = f64::from(w.flow(0).cwnd);
            assert!((ours - expected).abs() <= 1.5, "{friendly}, round {round}: {ours}, {expected}");
        }
    }
}

/// Who lost at the same window again has not given way: the plateau is that window (section 4.7: below the last W_max only).
#[test]
fn cubic_keeps_its_maximum_where_it_lost_before() {
    let mut w = World::new("cubic", &[], &[(1000, 100 * MS)]);
    w.lose(0);
    w.flow_mut(0).cwnd = 1000;
    w.lose(0);
    (0..95).for_each(|_| w.round(0)); // K is 9.1 s
    assert!(w.flow(0).cwnd.abs_diff(1000) <= 2, "{}", w.flow(0).cwnd);
}

/// Fast convergence: the plateau of a second loss is at (1 + beta) / 2 of the window at it, not at the window itself.
#[test]
fn cubic_lowers_its_maximum_further_when_it_falls() {
    let (c, beta, rtt) = (0.4, 0.7, 0.1);
    let second = 1000.0 * beta; // the window at the second loss
    for (fast, plateau) in [(1, second * (1.0 + beta) / 2.0), (0, second)] {
        let mut w = World::new("cubic", &[("fast_convergence", fast)], &[(1000, 100 * MS)]);
        w.lose(0);
        w.lose(0);
        assert_eq!(w.flow(0).cwnd, 490);
        let k = f64::cbrt((plateau - second * beta) / c);
        w.round(0);
        for round in 2..=100 {
            w.round(0);
            let t = f64::from(round) * rtt;
            let curve = c * (t - k).powi(3) + plateau;
            let ours = f64::from(w.flow(0).cwnd);
            // one RTT ahead, with a lag of about one RTT
            let lead = 3.0 * c * (t - k).powi(2) * rtt + 2.0;
            assert!((ours - curve).abs() <= lead, "fast_convergence {fast}, t {t}: {ours}, curve {curve}");
        }
    }
}

#[test]
fn cubic_starts_from_its_own_window_after_a_timeout() {
    let mut w = World::new("cubic", &[], &[(1000, 100 * MS)]);
    w.timeout(0);
    w.flow_mut(0).cwnd = 700;
    for _ in 0..50 {
        w.round(0);
    }
    // K = 0, W_max = 700: 0.4 * 5^3 + 700, followed with a lag of up to one RTT; with the old W_max it would be near 970
    assert!((748..=751).contains(&w.flow(0).cwnd), "{}", w.flow(0).cwnd);
}

/// As in Linux, which resets it whenever the loss state is entered (cubictcp_state).
#[test]
fn cubic_starts_from_its_own_window_after_a_timeout_in_a_recovery() {
    let mut w = World::new("cubic", &[], &[(1000, 100 * MS)]);
    w.lose(0);
    w.flow_mut(0).set_state(State::Loss); // for the same window: no further threshold
    w.acked(0, 1);
    w.flow_mut(0).set_state(State::Open);
    w.flow_mut(0).cwnd = 700;
    (0..50).for_each(|_| w.round(0));
    assert!((748..=751).contains(&w.flow(0).cwnd), "{}", w.flow(0).cwnd);
}

#[test]
fn a_spurious_timeout_is_undone() {
    for info in pathcast_congestion::controllers() {
        let mut w = World::new(info.name, &[], &[(40, 40 * MS)]);
        let before = w.flow(0).cwnd;
        w.timeout(0);
        assert_eq!(w.undo(0), before, "{}", info.name);
    }
}

#[test]
fn idle_time_is_no_time_for_cubic() {
    let run = |idle| {
        let mut w = World::new("cubic", &[], &[(1000, 100 * MS)]);
        w.lose(0);
        for _ in 0..20 {
            w.round(0);
        }
        w.wait(0, idle);
        w.event(0, Event::TxStart);
        w.round(0);
        w.flow(0).cwnd
    };
    assert!(run(60_000_000).abs_diff(run(0)) <= 2);
}
