//! What BBR version 3 is recognised by, in the simulator: its probes, its answer to losses, its share beside CUBIC.

use crate::common::{Row, Rows, Text, near, shows};
use pathcast_sim::Report;

const STARTUP: u64 = 0;
const DRAIN: u64 = 1;
const DOWN: u64 = 2;
const CRUISE: u64 = 3;
const REFILL: u64 = 4;
const UP: u64 = 5;
const PROBE_RTT: u64 = 6;

/// 20 Mbit/s, a round trip of 40 ms, two of its products of queue; rest: the link's other keys.
fn line(end: &str, rest: &str) -> Text {
    let link = format!("rate = \"20Mbit\"; delay = \"20ms\"; queue = \"133 packets\"; {rest}");
    Text::new(1, end).path("p", &link).table("[tcp]", "preset = \"linux\"")
}

/// A stretch of one phase.
#[derive(Clone, Copy, Debug)]
struct Phase {
    phase: u64,
    from: f64,
    to: f64,
    least_in_flight: u64,
    most_in_flight: u64,
    least_srtt: f64,
}

fn phases(rows: &Rows) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for row in rows.of(0, 0) {
        let Row { time, in_flight, srtt, word, .. } = row;
        match phases.last_mut() {
            Some(last) if last.phase == word & 7 => {
                last.to = time;
                last.least_in_flight = last.least_in_flight.min(in_flight);
                last.most_in_flight = last.most_in_flight.max(in_flight);
                last.least_srtt = last.least_srtt.min(srtt);
            }
            _ => phases.push(Phase {
                phase: word & 7,
                from: time,
                to: time,
                least_in_flight: in_flight,
                most_in_flight: in_flight,
                least_srtt: srtt,
            }),
        }
    }
    phases
}

fn resent(report: &Report) -> f64 {
    let flow = &report.flows[0].subflows[0];
    flow.retransmits as f64 / flow.sent as f64
}

/// Startup, Drain, then cycles of CRUISE, one round of REFILL, UP, DOWN, every 2 to 3 s or 63 rounds; between the probes no
/// queue stands. Every 5 s half of the window for 200 ms and a round.
#[test]
fn probes_come_when_they_should() {
    let (report, rows) = line("60s", "").flow("f", &["p"], "bbr3", "").traced();
    let phases = phases(&rows);
    let order: Vec<u64> = phases.iter().map(|phase| phase.phase).collect();
    assert_eq!(order[..2], [STARTUP, DRAIN]);
    near(phases[0].to, 0.45, 0.25, "the end of Startup: 6 doublings of 10 packets and 3 rounds");
    let (round, bdp) = (0.0412, 67.0);
    for window in phases[2..].windows(2) {
        let next = window[1].phase;
        let allowed: &[u64] = match window[0].phase {
            DOWN => &[CRUISE, PROBE_RTT],
            CRUISE => &[REFILL, PROBE_RTT],
            REFILL => &[UP, PROBE_RTT],
            UP => &[DOWN, PROBE_RTT],
            _ => &[CRUISE],
        };
        assert!(allowed.contains(&next), "{window:?}");
    }
    let of = |phase: u64| phases.iter().filter(move |p| p.phase == phase);
    let lasts = |phase: &Phase| phase.to - phase.from;
    assert!(of(CRUISE).all(|p| lasts(p) < 3.01), "3 s at most");
    assert!(of(REFILL).filter(|p| p.to < 59.0).all(|p| (0.9 * round..1.2 * round).contains(&lasts(p))), "one round");
    let ups: Vec<&Phase> = of(UP).collect();
    let between: Vec<f64> = ups.windows(2).map(|w| w[1].from - w[0].from).collect();
    shows("bbr3: seconds between bandwidth probes", format!("{between:.2?}"));
    assert!(ups.len() >= 10 && between.iter().all(|s| (1.9..5.7).contains(s)), "{between:?}");
    assert!(ups.iter().all(|p| p.most_in_flight as f64 > 1.2 * bdp), "a probe fills the queue");
    let probes: Vec<&Phase> = of(PROBE_RTT).collect();
    let between: Vec<f64> = probes.windows(2).map(|w| w[1].from - w[0].from).collect();
    shows("bbr3: seconds between probes of the RTT", format!("{between:.2?}"));
    assert!((9..=12).contains(&probes.len()), "{}", probes.len());
    assert!(between.iter().all(|s| (5.0..5.6).contains(s)), "{between:?}");
    for probe in probes {
        assert!((0.2..0.2 + 4.0 * round).contains(&lasts(probe)), "{probe:?}");
        assert!((0.4 * bdp..0.6 * bdp).contains(&(probe.least_in_flight as f64)), "{probe:?}");
        assert!(probe.least_srtt < 0.0415, "{probe:?}");
    }
    let queues: Vec<f64> = rows.of(0, 0).iter().filter(|r| r.word & 7 == CRUISE).map(|r| r.srtt - 0.0406).collect();
    let queue = queues.iter().sum::<f64>() / queues.len() as f64;
    shows(
        "bbr3 alone: utilisation, mean queueing delay in CRUISE [ms]",
        format!("{:.3} {:.2}", report.links[0].utilisation, queue * 1e3),
    );
    assert!(report.links[0].utilisation > 0.95 && queue < 0.002);
    assert_eq!(report.flows[0].subflows[0].retransmits, 0);
}

/// Below the 2 % that a probe allows it keeps the rate, far above not: there it asks what the path can hold.
#[test]
fn random_losses_below_the_threshold_leave_the_rate() {
    let mut rates = Vec::new();
    for loss in ["0.01", "0.02", "0.1"] {
        let [ours, cubic] = ["bbr3", "cubic"].map(|control| {
            let text = line("40s", &format!("loss = {{ ab = {loss}, ba = 0 }}")).flow("f", &["p"], control, "");
            text.run().flows[0].goodput_bps * 1500.0 / 1448.0 / 20e6
        });
        shows(&format!("share of the line at a loss of {loss}: bbr3, cubic"), format!("{ours:.2} {cubic:.2}"));
        rates.push((ours, cubic));
    }
    assert!(rates[0].0 > 0.8 && rates[0].0 > 3.0 * rates[0].1, "{rates:?}");
    assert!(rates[1].0 > 0.4, "{rates:?}");
    assert!(rates[2].0 < 0.2, "{rates:?}");
}

/// A policer of a fifth of the line drops what exceeds it, and no queue tells beforehand: the rate goes down to the policer's.
#[test]
fn a_policer_is_met_at_its_rate() {
    for burst in ["15KB", "250KB"] {
        let policer = format!("policer = {{ rate = \"4Mbit\", burst = \"{burst}\" }}");
        let report = line("60s", &policer).flow("f", &["p"], "bbr3", "").run();
        let share = report.flows[0].goodput_bps * 1500.0 / 1448.0 / 4e6;
        let what = format!("bbr3 behind a policer of 4 Mbit/s, burst {burst}: share of it, share sent again");
        shows(&what, format!("{share:.2} {:.3}", resent(&report)));
        assert!(share > 0.8 && resent(&report) < 0.14, "{share} {}", resent(&report));
        let subflow = &report.flows[0].subflows[0];
        assert!(subflow.retransmits <= subflow.drops, "nothing was late: {subflow:?}");
    }
}

/// A queue of an eighth of the product: Startup ends by loss, and the volume in flight is bounded from then on.
#[test]
fn a_shallow_queue_bounds_what_is_in_flight() {
    let (report, rows) = Text::new(1, "30s")
        .path("p", "rate = \"20Mbit\"; delay = \"20ms\"; queue = \"8 packets\"")
        .flow("f", &["p"], "bbr3", "")
        .table("[tcp]", "preset = \"linux\"")
        .traced();
    let phases = phases(&rows);
    let bound = phases.iter().filter(|p| p.phase == CRUISE && p.from > 5.0).map(|p| p.most_in_flight).max().unwrap();
    shows(
        "bbr3, queue of 8 packets: utilisation, share sent again, most in flight in CRUISE",
        format!("{:.3} {:.4} {bound}", report.links[0].utilisation, resent(&report)),
    );
    assert!(report.links[0].utilisation > 0.9 && resent(&report) < 0.02 && bound < 80);
}

/// The line falls to a fifth, and rises to twice what it was: the model follows within its cycles.
#[test]
fn the_rate_follows_the_line() {
    let text = line("60s", "").flow("f", &["p"], "bbr3", "");
    let (_, rows) = text
        .table("[[change]]", "at = \"20s\"; link = \"p\"; rate = \"4Mbit\"")
        .table("[[change]]", "at = \"40s\"; link = \"p\"; rate = \"40Mbit\"")
        .traced();
    let rows = rows.of(0, 0);
    let rate = |from: f64, to: f64| {
        let inside: Vec<&Row> = rows.iter().filter(|r| r.time >= from && r.time < to).collect();
        let (first, last) = (inside[0], inside[inside.len() - 1]);
        (last.acked - first.acked) as f64 * 8e-6 / (last.time - first.time) * 1500.0 / 1448.0
    };
    let [before, low, high] = [rate(10.0, 20.0), rate(30.0, 40.0), rate(50.0, 60.0)];
    shows(
        "bbr3: Mbit/s before, 10 s after a fall to 4, 10 s after a rise to 40",
        format!("{before:.1} {low:.1} {high:.1}"),
    );
    assert!(before > 18.0 && low > 3.6 && high > 34.0);
}

/// CoDel that marks: nothing is lost, and the queue stays where CoDel wants it.
#[test]
fn marks_are_answered_like_losses() {
    let [(ours, queue), (cubic, _)] = ["bbr3", "cubic"].map(|control| {
        let (report, rows) = Text::new(1, "40s")
            .path("p", "rate = \"20Mbit\"; delay = \"20ms\"; queue = { kind = \"codel\", ecn = true }")
            .flow("f", &["p"], control, "")
            .table("[tcp]", "preset = \"linux\"; ecn = true")
            .traced();
        let late: Vec<f64> = rows.of(0, 0).iter().filter(|r| r.time > 5.0).map(|r| r.srtt - 0.0406).collect();
        assert_eq!(report.flows[0].subflows[0].retransmits, 0);
        assert!(report.links[0].managed.unwrap().marks > 0);
        (report.links[0].utilisation, late.iter().sum::<f64>() / late.len() as f64)
    });
    shows(
        "marks: utilisation of bbr3 and cubic, mean queueing delay of bbr3 [ms]",
        format!("{ours:.3} {cubic:.3} {:.2}", queue * 1e3),
    );
    assert!(ours > 0.85 && queue < 0.01, "{ours} {queue}");
}

/// An application that pauses: no probe of the RTT is needed, and the rate is there at once.
#[test]
fn pauses_take_the_place_of_probes_of_the_rtt() {
    let web = "web = { page = \"400KB\", think = \"700ms\" }";
    let (_, rows) = line("40s", "").flow("f", &["p"], "bbr3", web).traced();
    let probes = phases(&rows).iter().filter(|p| p.phase == PROBE_RTT).count();
    shows("bbr3, pages of 400 KB: probes of the RTT in 40 s", probes);
    assert!(probes <= 1, "{probes}");
}

/// The share that BBR takes of an equal one beside CUBIC: three starts for each seed, in order.
fn shares(mbit: u64, rtt: u64, quarters: u64, seeds: u64, seconds: u64) -> Vec<f64> {
    let queue = (mbit * rtt * 1000 / 12_000 * quarters / 4).max(4);
    let link = format!("rate = \"{mbit}Mbit\"; delay = \"{}ms\"; queue = \"{queue} packets\"", rtt / 2);
    let mut shares = Vec::new();
    for seed in 1..=seeds {
        for (one, other) in [(0, 0), (0, 5000), (5000, 0)] {
            let report = Text::new(seed, &format!("{seconds}s"))
                .path("p", &link)
                .flow("bbr", &["p"], "bbr3", &format!("start = \"{}ms\"", one + 7 * seed))
                .flow("cubic", &["p"], "cubic", &format!("start = \"{}ms\"", other + 3 * seed))
                .table("[tcp]", "preset = \"linux\"")
                .run();
            let [bbr, cubic] = [0, 1].map(|i| report.flows[i].goodput_bps);
            shares.push(2.0 * bbr / (bbr + cubic));
        }
    }
    shares.sort_by(f64::total_cmp);
    shares
}

/// Beside CUBIC, with a queue of four products and of one. PATHCAST_EVIDENCE: on more lines.
#[test]
fn it_lives_beside_cubic() {
    if std::env::var_os("PATHCAST_EVIDENCE").is_none() {
        for (mbit, rtt, quarters) in [(10, 40, 4), (10, 40, 16), (50, 20, 16)] {
            let shares = shares(mbit, rtt, quarters, 1, 60);
            shows(&format!("bbr3 beside cubic, {mbit} Mbit/s, {rtt} ms, {quarters}/4 BDP"), format!("{shares:.2?}"));
            assert!(shares[0] > 0.5 && shares[2] < 1.5, "{shares:?}");
        }
        return;
    }
    println!("quarters of a BDP,Mbit/s,RTT [ms],least,median,most,within 0.5 to 1.5 of 9");
    for quarters in [2, 4, 8, 16] {
        for (mbit, rtt) in [(10, 20), (10, 40), (10, 100), (50, 20), (50, 40), (50, 100)] {
            let shares = shares(mbit, rtt, quarters, 3, 90);
            let within = shares.iter().filter(|share| (0.5..=1.5).contains(*share)).count();
            println!("{quarters},{mbit},{rtt},{:.2},{:.2},{:.2},{within}", shares[0], shares[4], shares[8]);
            assert!((0.3..1.9).contains(&shares[4]), "{shares:?}");
        }
    }
}

/// Two subflows over one bottleneck beside a CUBIC flow take what two flows take, for BBR is not coupled; over lines of their
/// own they take both.
#[test]
fn two_subflows_are_two_flows() {
    let link = "rate = \"20Mbit\"; delay = \"20ms\"; queue = \"133 packets\"";
    for (subflows, least, most) in [(1, 0.4, 0.7), (2, 0.5, 0.85)] {
        let report = Text::new(1, "60s")
            .path("p", link)
            .flow("bbr", &["p"], "bbr3", &format!("subflows = {subflows}"))
            .flow("cubic", &["p"], "cubic", "start = \"1s\"")
            .table("[tcp]", "preset = \"linux\"")
            .run();
        let [bbr, cubic] = [0, 1].map(|i| report.flows[i].goodput_bps);
        let share = bbr / (bbr + cubic);
        shows(
            &format!("bbr3 over {subflows} subflows beside cubic, 20 Mbit/s, 40 ms, 2 BDP: share of the line"),
            format!("{share:.2}"),
        );
        assert!((least..most).contains(&share), "{share}");
    }
    let report = Text::new(1, "60s")
        .path("p", link)
        .path("q", "rate = \"10Mbit\"; delay = \"40ms\"; queue = \"133 packets\"")
        .flow("bbr", &["p", "q"], "bbr3", "")
        .table("[tcp]", "preset = \"linux\"")
        .run();
    let share = report.flows[0].goodput_bps * 1500.0 / 1424.0 / 30e6;
    shows("bbr3 over lines of 20 and 10 Mbit/s: share of both", format!("{share:.2}"));
    assert!(share > 0.85, "{share}");
}
