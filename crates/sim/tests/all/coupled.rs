//! Coupled congestion avoidance: a fair share of a bottleneck, and all of disjoint paths.

use crate::common::{Text, shows};

const COUPLED: [&str; 4] = ["lia", "olia", "balia", "adaptive_start"];

/// Goodput of a flow with two subflows over one path, against a Reno flow beside it: mean over seeds. The path loses
/// packets at random, so that all subflows see the same loss rate whatever they send.
fn share(control: &str, link: &str) -> f64 {
    let seeds = 4;
    let one = |seed: u64| {
        let report = Text::new(seed, "120s")
            .path("p", link)
            .flow("many", &["p"], control, "subflows = 2")
            .flow("one", &["p"], "reno", "")
            .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1")
            .run();
        report.flows[0].goodput_bps / report.flows[1].goodput_bps
    };
    (1..=seeds).map(one).sum::<f64>() / seeds as f64
}

#[test]
fn two_subflows_at_random_losses_take_about_one_flows_share() {
    let lossy = "delay = \"25ms\"; loss = { ab = 0.003 }";
    for control in COUPLED {
        let share = share(control, lossy);
        shows(&format!("{control}, 2 subflows, p = 0.003: share against one Reno flow"), format!("{share:.2}"));
        assert!((0.8..=1.3).contains(&share), "{control}: {share}");
    }
    let reno = share("reno", lossy);
    shows("reno, 2 uncoupled subflows, p = 0.003: share against one Reno flow", format!("{reno:.2}"));
    assert!((1.8..=2.2).contains(&reno), "{reno}");
}

#[test]
fn and_at_a_bottleneck_with_random_early_detection() {
    let red = "rate = \"10Mbit\"; delay = \"25ms\"; queue = { kind = \"red\", min = 10, max = 40, limit = 80 }";
    for control in COUPLED {
        let share = share(control, red);
        shows(&format!("{control}, 2 subflows, RED: share against one Reno flow"), format!("{share:.2}"));
        assert!((0.8..=1.3).contains(&share), "{control}: {share}");
    }
    let reno = share("reno", red);
    shows("reno, 2 uncoupled subflows, RED: share against one Reno flow", format!("{reno:.2}"));
    assert!((1.7..=2.2).contains(&reno), "{reno}");
}

/// Two paths of their own, alike and unlike, with queues of about a BDP.
#[test]
fn disjoint_paths_are_both_used() {
    for (a, b) in [((10, 20), (10, 20)), ((10, 20), (4, 60))] {
        for control in ["lia", "olia", "balia", "reno"] {
            let link = |(mbit, ms): (u64, u64)| {
                let queue = (mbit * ms / 6).max(20);
                format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"{queue} packets\"")
            };
            let report = Text::new(1, "120s")
                .path("a", &link(a))
                .path("b", &link(b))
                .flow("f", &["a", "b"], control, "")
                .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1")
                .run();
            let flow = &report.flows[0];
            let payload = 1424.0 / 1500.0;
            let all = flow.goodput_bps / ((a.0 + b.0) as f64 * 1e6 * payload);
            let slow = flow.subflows[1].bytes as f64 * 8.0 / 120.0 / (b.0 as f64 * 1e6 * payload);
            shows(
                &format!("{control}, {a:?} and {b:?} Mbit/s, ms: share of both paths, of the second"),
                format!("{all:.3} {slow:.3}"),
            );
            let least = if control == "olia" || control == "balia" { 0.8 } else { 0.9 };
            assert!(all >= least, "{control}: {all}");
            assert!(slow >= 0.5, "{control}: {slow}");
        }
    }
}
