//! What each slow start of a multipath connection is recognised by, in the simulator.

use crate::common::{Row, Text, near, shows};

/// ACK per packet, no other refinement: what the controllers' papers assume.
const PLAIN: &str = "preset = \"rfc\"; delayed_ack = 1";

/// 1000 packets of 1500 bytes a second.
fn line(ms: u32, queue: u32) -> String {
    format!("rate = \"12Mbit\"; delay = \"{ms}ms\"; queue = \"{queue} packets\"")
}

/// How the window grows from a row on while one window is acknowledged.
fn growth(rows: &[Row], from: usize) -> f64 {
    let start = rows[from];
    let end = rows.iter().find(|row| row.acked >= start.acked + start.cwnd * 1448).expect("the transfer goes on");
    end.cwnd as f64 / start.cwnd as f64
}

#[test]
fn gsam_goes_over_to_its_smooth_transition_at_its_threshold() {
    for (ms, floor) in [(50, 0.0), (15, 0.004)] {
        let tcp = format!("{PLAIN}; initial_window = 2");
        let (report, rows) =
            Text::new(1, "4s").path("p", &line(ms, 1000)).flow("f", &["p"], "gsam", "").table("[tcp]", &tcp).traced();
        let rows = rows.of(0, 0);
        let at = rows.iter().position(|row| row.ssthresh < 1 << 30).expect("a transition");
        let base = report.flows[0].subflows[0].min_rtt_s.unwrap();
        let threshold = base + f64::max(base / 8.0, floor);
        shows(
            &format!("gsam, RTT {} ms: srtt before and at the transition, threshold [ms]", 2 * ms),
            format!("{:.2} {:.2} {:.2}", rows[at - 1].srtt * 1e3, rows[at].srtt * 1e3, threshold * 1e3),
        );
        // the controller saw the first one below and this one at or above it; microseconds are rounded down
        assert!(rows[at].srtt >= threshold - 2e-6 && rows[at - 1].srtt < threshold + 1e-6);
        assert_eq!(rows[at].ssthresh, 2 * rows[at - 1].cwnd);
        let before = rows[..at].iter().rposition(|row| row.acked + 2 * row.cwnd * 1448 <= rows[at].acked).unwrap();
        let (slow, smooth) = (growth(&rows, before), growth(&rows, at));
        shows(
            &format!("gsam, RTT {} ms: growth per window, before and after", 2 * ms),
            format!("{slow:.3} {smooth:.3}"),
        );
        near(slow, 2.0, 0.02, "slow start");
        near(smooth, 1.125, 0.02, "smooth transition");
    }
}

/// The first subflow has 40 packets when the second joins: 10 in the second round, 20 in the third, 40 in the fourth,
/// which is from 0.3 to 0.4 s; the join is at 0.35 s.
#[test]
fn lisa_moves_a_window_of_40_to_30_and_10() {
    let windows = |control: &str| {
        let (_, rows) = Text::new(1, "1s")
            .path("a", "delay = \"50ms\"")
            .path("b", "delay = \"37500us\"")
            .flow("f", &["a", "b"], control, "")
            .table("[tcp]", &format!("{PLAIN}; receive_buffer = \"64MB\""))
            .traced();
        let (a, b) = (rows.of(0, 0), rows.of(0, 1));
        let joined = b[0].time - 0.075;
        let before = a.iter().rfind(|row| row.time < joined).unwrap().cwnd;
        let after: Vec<u64> = a.iter().filter(|row| row.time > joined && row.time < 0.42).map(|row| row.cwnd).collect();
        let second: Vec<u64> = b.iter().filter(|row| row.time < 0.44).map(|row| row.cwnd).collect();
        (joined, before, after, second)
    };
    let (joined, before, after, second) = windows("lisa");
    near(joined, 0.350, 1e-3, "the join");
    assert_eq!(before, 40);
    assert_eq!(after[0], 30, "the first subflow gave ten");
    // 40 were in flight: ten ACKs are to be passed over, the other thirty count; the controller, which learns of the
    // join with the first of these ACKs, counts one less
    shows("lisa: the first subflow's window a round after it gave", after[39]);
    assert_eq!((after.len(), after[8]), (40, 30), "{after:?}");
    assert_eq!(after[39], 60, "{after:?}");
    assert_eq!((second.len(), second[0], second[9]), (10, 11, 20), "{second:?}");
    let (_, before, after, second) = windows("lia");
    assert_eq!((before, after[0], after[39], second[0], second[9]), (40, 41, 80, 11, 20), "LIA takes nothing");
}

/// The same windows at every ACK as the controller that it switches to.
#[test]
fn subflow_switch_is_lia_up_to_two_subflows_and_gsam_from_three_on() {
    for subflows in 1..=5 {
        let rows = |control: &str| {
            let text = Text::new(1, "")
                .path("p", "rate = \"5Mbit\"; delay = \"75ms\"; queue = \"50 packets\"")
                .flow("f", &["p"], control, &format!("bytes = \"1MB\"; subflows = {subflows}"))
                .table("[tcp]", &format!("{PLAIN}; join = \"together\""));
            let rows = text.traced().1;
            rows.0.iter().map(|row| (row.time, row.subflow, row.cwnd, row.ssthresh)).collect::<Vec<_>>()
        };
        let (switch, lia, gsam) = (rows("subflow_switch"), rows("lia"), rows("gsam"));
        assert!(lia != gsam, "{subflows} subflows: the two differ");
        assert!(switch == if subflows <= 2 { lia } else { gsam }, "{subflows} subflows");
    }
}

/// Unpaced slow start sees the queue a round late, and conservative slow start still grows by 1.25^5: with a queue of
/// some BDPs HyStart++ leaves slow start without any loss, with a shorter one it loses less than Reno.
#[test]
fn hystart_leaves_slow_start_before_a_deep_queue_overflows() {
    for (ms, queue) in [(25, 800), (50, 1200), (25, 100), (25, 200), (50, 200), (100, 400)] {
        let first = |control: &str| {
            let (report, rows) = Text::new(1, "5s")
                .path("p", &line(ms, queue))
                .flow("f", &["p"], control, "")
                .table("[tcp]", PLAIN)
                .traced();
            let rows = rows.of(0, 0);
            let left = rows.iter().position(|row| row.ssthresh < 1 << 30).expect("slow start ends");
            let drop = report.links[0].first_drop_s.unwrap_or(f64::INFINITY);
            // one round of data before slow start ended or the queue overflowed
            let over = rows.iter().position(|row| row.time >= drop.min(rows[left].time)).unwrap();
            let round = rows[..over].iter().rposition(|row| row.acked + row.cwnd * 1448 <= rows[over].acked).unwrap();
            (rows[left], drop, report.links[0].drops, growth(&rows, round))
        };
        let (reno, hystart) = (first("reno"), first("hystartpp"));
        let told = |(row, drop, drops, growth): &(Row, f64, u64, f64)| {
            format!(
                "left at {:.2} s with {}, first drop at {drop:.2} s, {drops} drops, growth {growth:.2};",
                row.time, row.cwnd
            )
        };
        let what = format!("RTT {} ms, queue {queue}: reno, hystartpp", 2 * ms);
        shows(&what, format!("{} {}", told(&reno), told(&hystart)));
        assert!(reno.1 < reno.0.time, "Reno overflows the queue first");
        near(reno.3, 2.0, 0.02, "slow start");
        if queue >= 16 * ms {
            assert!(hystart.1 > hystart.0.time);
            near(hystart.3, 1.25, 0.02, "conservative slow start");
        } else {
            assert!(hystart.2 * 4 < reno.2 * 3, "{} of {} drops", hystart.2, reno.2);
        }
    }
}

/// Coupled slow start: n subflows together grow as one flow does, so that they overflow a queue by less.
#[test]
fn css_restrains_the_sum_of_the_windows() {
    let run = |control: &str, subflows: u32| {
        let (report, rows) = Text::new(1, "")
            .path("p", "rate = \"5Mbit\"; delay = \"75ms\"; queue = \"50 packets\"")
            .flow("f", &["p"], control, &format!("bytes = \"750KB\"; subflows = {subflows}"))
            .table("[tcp]", &format!("{PLAIN}; initial_window = 2"))
            .traced();
        // windows of all subflows, as far as they have opened, after 1 s
        let sum: u64 = (0..u64::from(subflows))
            .filter_map(|sub| rows.of(0, sub).iter().rfind(|row| row.time < 1.0).map(|row| row.cwnd))
            .sum();
        (report.links[0].drops, sum, report.flows[0].completion_s.unwrap())
    };
    for subflows in [2, 4, 8] {
        let (css, lia) = (run("css", subflows), run("lia", subflows));
        shows(
            &format!("css and lia, {subflows} subflows: drops, windows after 1 s, completion [s]"),
            format!("{css:?} {lia:?}"),
        );
        assert!(css.0 <= lia.0 && css.1 < lia.1, "{css:?} {lia:?}");
    }
}

/// Adaptive start ends before the paper's queue of 50 packets overflows, whatever the number of subflows, and is done
/// sooner than LIA; with a queue of a third of the path too, since it paces.
#[test]
fn adaptive_start_fills_a_path_without_a_loss() {
    for (ms, queue, subflows) in [(75, 50, 1), (75, 50, 3), (75, 50, 8), (150, 50, 8), (75, 20, 4)] {
        let run = |control: &str| {
            let report = Text::new(1, "")
                .path("p", &format!("rate = \"5Mbit\"; delay = \"{ms}ms\"; queue = \"{queue} packets\""))
                .flow("f", &["p"], control, &format!("bytes = \"1MB\"; subflows = {subflows}"))
                .table("[tcp]", &format!("{PLAIN}; initial_window = 1; sack = false"))
                .run();
            (report.links[0].drops, report.flows[0].completion_s.unwrap())
        };
        let (adaptive, lia) = (run("adaptive_start"), run("lia"));
        shows(
            &format!(
                "adaptive_start and lia, RTT {} ms, queue {queue}, {subflows} subflows: drops, completion [s]",
                2 * ms
            ),
            format!("{adaptive:?} {lia:?}"),
        );
        assert_eq!(adaptive.0, 0, "{subflows} subflows");
        assert!(lia.0 > 0 && adaptive.1 < lia.1, "{adaptive:?} {lia:?}");
    }
}
