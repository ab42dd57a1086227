//! The coupled increases against their formulas: LIA (RFC 6356), OLIA, BALIA.

use crate::world::{MS, World, close};
use pathcast_congestion::Ack;

fn avoid(control: &str, subflows: &[(u32, u32)]) -> World {
    let mut w = World::new(control, &[("initial_ssthresh_bytes", 2896)], subflows);
    for (i, &(cwnd, _)) in subflows.iter().enumerate() {
        w.flow_mut(i).cwnd = cwnd;
        w.flow_mut(i).ssthresh = 2;
    }
    w.report();
    w
}

/// (sum w/r)^2 / max(w/r^2), at least w_i: RFC 6356.
fn lia_oracle(subflows: &[(u32, u32)], i: usize) -> f64 {
    let rates: f64 = subflows.iter().map(|&(w, r)| f64::from(w) / f64::from(r)).sum();
    let best = subflows.iter().map(|&(w, r)| f64::from(w) / f64::from(r).powi(2)).fold(0.0, f64::max);
    (rates * rates / best).max(subflows[i].0.into())
}

#[test]
fn lia_has_the_closed_forms_of_rfc_6356() {
    // n equal subflows: alpha = 1/n, so n^2 w packets for one
    for n in 1..=8u32 {
        let subflows = vec![(30, 50 * MS); n as usize];
        assert_eq!(avoid("lia", &subflows).need(0), f64::from(n * n * 30));
    }
    for subflows in [
        [(20, 40 * MS), (100, 40 * MS)],
        [(20, 10 * MS), (20, 200 * MS)],
        [(500, 150 * MS), (7, 3 * MS)],
        [(1000, 300), (10, 300 * MS)],
        [(2, 40 * MS), (3, 41 * MS)],
    ] {
        for i in 0..2 {
            let (ours, theirs) = (avoid("lia", &subflows).need(i), lia_oracle(&subflows, i));
            assert!((ours - theirs).abs() <= 1.0 + 0.02 * theirs, "{subflows:?} {i}: {ours}, oracle {theirs}");
        }
    }
}

#[test]
fn olia_on_equal_paths_is_the_coupled_increase_alone() {
    for n in 2..=4u32 {
        let mut w = avoid("olia", &vec![(30, 50 * MS); n as usize]);
        let ours = w.need(0);
        assert!(close(ours, f64::from(n * n * 30), 0.01), "{n}: {ours}");
    }
    assert_eq!(avoid("olia", &[(30, 50 * MS)]).need(0), 30.0);
}

#[test]
fn olia_moves_window_to_the_best_path() {
    // the path with the smaller window has brought more bytes between losses: it is `collected`, the other loses
    let mut w = avoid("olia", &[(10, 50 * MS), (40, 50 * MS)]);
    w.acked(0, 10_000);
    for i in 0..2 {
        w.need(i); // leaves no fraction of a packet behind
    }
    let reset = |w: &mut World| {
        w.flow_mut(0).cwnd = 10;
        w.flow_mut(1).cwnd = 40;
        w.report();
    };
    reset(&mut w);
    // alpha_0 = 1 / (2 * 1): 10 / 50^2 + 1/2 / 10 packets for each acked
    let ours = w.need(0);
    let theirs = 1.0 / (10.0 / 2500.0 + 0.05);
    assert!((ours - theirs).abs() <= 2.0, "{ours}, oracle {theirs}");
    // alpha_1 = -1/2: 40 / 50^2 - 1/2 / 40 packets
    reset(&mut w);
    let gain = 40.0 / f64::powi(50.0, 2) - 0.5 / 40.0;
    let ours = w.need(1);
    assert!(close(ours, 1.0 / gain, 0.1), "{ours}, oracle {}", 1.0 / gain);
}

#[test]
fn olia_shares_the_loss_among_the_largest_windows() {
    let mut w = avoid("olia", &[(10, 50 * MS), (40, 50 * MS), (40, 50 * MS)]);
    w.acked(0, 10_000);
    w.flow_mut(0).cwnd = 10;
    w.report();
    // three subflows, two of them the largest: 40 / 90^2 - 1/6 / 40 for each packet, in ACKs of four
    let gain = 40.0 / f64::powi(90.0, 2) - 1.0 / 6.0 / 40.0;
    let mut acked = 0;
    while w.flow(1).cwnd == 40 {
        w.grow(1, Ack::new(4, 50 * MS));
        acked += 4;
        assert!(acked < 100_000);
    }
    assert!(close(acked.into(), 1.0 / gain, 0.05), "{acked}, oracle {}", 1.0 / gain);
}

#[test]
fn olia_remembers_what_came_between_the_last_two_losses() {
    let mut w = avoid("olia", &[(10, 50 * MS), (10, 50 * MS)]);
    for (packets, largest) in [(100, 100), (40, 100), (7, 40), (50, 50)] {
        w.acked(0, packets);
        assert_eq!(w.flow(0).word[0], largest * 1448);
        w.lose(0);
    }
}

#[test]
fn olia_can_shrink_a_window_but_not_below_one() {
    let mut w = avoid("olia", &[(90, 50 * MS), (100, 500 * MS)]);
    w.acked(0, 100_000);
    w.flow_mut(0).cwnd = 90;
    w.report();
    for _ in 0..300 {
        w.acked(1, 100);
    }
    assert!(w.flow(1).cwnd <= 100 && w.flow(1).cwnd >= 1, "{}", w.flow(1).cwnd);
}

/// T of BALIA: 10 (sum x)^2 / (x_r/rtt_r (1+a)(4+a)).
fn balia_oracle(subflows: &[(u32, u32)], i: usize) -> f64 {
    let x: Vec<f64> = subflows.iter().map(|&(w, r)| f64::from(w) / f64::from(r)).collect();
    let (sum, most): (f64, f64) = (x.iter().sum(), x.iter().copied().fold(0.0, f64::max));
    let a = most / x[i];
    10.0 * sum * sum / (x[i] / f64::from(subflows[i].1) * (1.0 + a) * (4.0 + a))
}

#[test]
fn balia_has_its_formula() {
    for n in 1..=8u32 {
        let ours = avoid("balia", &vec![(30, 50 * MS); n as usize]).need(0);
        assert!((ours - f64::from(n * n * 30)).abs() <= 1.0, "{n}: {ours}");
    }
    for subflows in [[(20, 40 * MS), (100, 40 * MS)], [(20, 10 * MS), (20, 200 * MS)], [(500, 150 * MS), (7, 3 * MS)]] {
        for i in 0..2 {
            let (ours, theirs) = (avoid("balia", &subflows).need(i), balia_oracle(&subflows, i));
            assert!((ours - theirs).abs() <= 1.0 + 0.02 * theirs, "{subflows:?} {i}: {ours}, oracle {theirs}");
        }
    }
    // loss: w/2 * min(a, 3/2)
    let mut w = avoid("balia", &[(40, 50 * MS), (40, 50 * MS)]);
    assert_eq!(w.ssthresh(0), 20);
    let mut w = avoid("balia", &[(40, 50 * MS), (400, 50 * MS)]);
    assert_eq!((w.ssthresh(0), w.ssthresh(1)), (10, 200));
    assert_eq!(avoid("balia", &[(1, 50 * MS), (400, 50 * MS)]).ssthresh(0), 1);
}
