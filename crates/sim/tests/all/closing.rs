//! How connections end: the receiver's FIN and its answer, again where they are lost, and no connection for ever.

use crate::common::Text;
use pathcast_base::Nanos;
use pathcast_sim::{Options, Report};

fn transfer(paths: &[&str], loss: &str, fin: bool) -> Report {
    let mut text = Text::new(5, "60s");
    for name in paths {
        text = text.path(name, &format!("rate = \"10Mbit\"; delay = \"20ms\"{loss}"));
    }
    text.flow("f", paths, "reno", "bytes = \"100KB\"").table("[tcp]", &format!("fin = {fin}")).run()
}

/// One packet more in each direction and subflow; the transfer itself takes as long.
#[test]
fn every_subflow_is_closed_once() {
    for paths in [&["a"][..], &["a", "b"]] {
        let (without, with) = (transfer(paths, "", false), transfer(paths, "", true));
        assert_eq!(with.flows[0].completion_s, without.flows[0].completion_s);
        assert_eq!(with.packets.sent, without.packets.sent + 2 * paths.len() as u64);
        assert_eq!((with.packets.dropped, with.packets.in_flight), (0, 0));
    }
}

/// With a fifth of all packets lost FINs and their answers are, too: of 40 transfers all end, and each end takes a FIN and
/// its answer at least and nine FINs with as many answers at most.
#[test]
fn a_lost_fin_is_sent_again() {
    let mut again = 0;
    for seed in 0..40 {
        let text = Text::new(seed, "200s").path("a", "rate = \"10Mbit\"; delay = \"20ms\"; loss = 0.2").flow(
            "f",
            &["a"],
            "reno",
            "bytes = \"1KB\"",
        );
        let packets = |fin: bool| {
            let report = Text(text.0.clone()).table("[tcp]", &format!("fin = {fin}")).run();
            assert!(report.flows[0].completion_s.is_some(), "{seed}");
            report.packets.sent
        };
        let more = packets(true) as i64 - packets(false) as i64;
        assert!((-2..=18).contains(&more), "{seed}: {more}");
        again += i32::from(more > 2);
    }
    assert!(again > 5, "{again}");
}

/// A page's connection is one of many: their places are free again.
#[test]
fn pages_leave_nothing_behind() {
    let text = Text::new(1, "20s").path("p", "rate = \"10Mbit\"; delay = \"10ms\"").flow(
        "pages",
        &["p"],
        "cubic",
        "web = { page = \"20KB\", think = \"50ms\" }",
    );
    let report = pathcast_sim::simulate(
        pathcast_scenario::Scenario::parse(&text.0, &[]).unwrap(),
        &Options { time: Nanos::secs(30), ..Options::default() },
    )
    .unwrap()
    .report;
    assert!(report.flows[0].pages.as_ref().unwrap().pages > 50);
    assert_eq!(report.packets.dropped, 0);
}
