//! What ImTCP measures and how soon, what ImTCP-bg takes and what it leaves, against the truth of the simulator.
//! Truth: the link's rate less the cross traffic, in IP bytes, times 1448 / 1500, as a result is a rate of payload.
//! Presets are linux: an ACK for two packets. `PATHCAST_EVIDENCE=1` takes more settings.

use crate::common::{Row, Text, shows};

const LINES: [(u64, u64); 4] = [(20, 20), (20, 100), (100, 20), (100, 100)]; // Mbit/s, RTT [ms]

/// A sender that hands over packet by packet: else trains leave bunched, in the simulator as in the kernel.
fn single(seed: u64, end: &str) -> Text {
    Text::new(seed, end).table("[host.client]", "send_segments = 1")
}

fn evidence() -> bool {
    std::env::var_os("PATHCAST_EVIDENCE").is_some()
}

/// A link with places for `bdp` products of rate and RTT.
fn link((mbit, ms): (u64, u64), bdp: f64) -> String {
    let queue = (mbit as f64 * ms as f64 * 1e3 / 8.0 / 1500.0 * bdp).round();
    format!("rate = \"{mbit}Mbit\"; delay = \"{}ms\"; queue = \"{queue} packets\"", ms / 2)
}

fn kbit(mbit: u64, share: f64) -> String {
    format!("rate = \"{}kbit\"", (mbit as f64 * share * 1000.0) as u64)
}

/// Virtual packets that take a share of the line.
fn cross((kind, packet): (&str, u64), mbit: u64, share: f64) -> String {
    let rate = kbit(mbit, share);
    format!("name = \"cross\"; kind = \"{kind}\"; packet = \"{packet}B\"; link = \"p\"; direction = \"ab\"; {rate}")
}

/// Payload that is left [byte/s].
fn truth(mbit: u64, share: f64) -> f64 {
    mbit as f64 * (1.0 - share) * 1e6 / 8.0 * 1448.0 / 1500.0
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)]
}

/// The rows in which there is a new result. Equal results one after another are one.
fn results(rows: &[Row]) -> Vec<Row> {
    rows.windows(2).filter(|w| w[1].word != w[0].word).map(|w| w[1]).collect()
}

/// Median, 10th and 90th percentile of the results after 10 s against the truth, and RTTs a result.
fn settled(traffic: (&str, u64), line: (u64, u64), share: f64, bdp: f64) -> [f64; 4] {
    let mut text = single(1, "40s").path("p", &link(line, bdp)).flow("f", &["p"], "imtcp", "");
    if share > 0.0 {
        text = text.table("[[traffic]]", &cross(traffic, line.0, share));
    }
    let rows: Vec<Row> = text.traced().1.of(0, 0);
    let mut late: Vec<Row> = results(&rows).into_iter().filter(|row| row.time > 10.0).collect();
    late.push(rows[rows.len() - 1]); // if all were equal
    let ratios: Vec<f64> = late.iter().map(|row| row.word as f64 / truth(line.0, share)).collect();
    let srtt: Vec<f64> = rows.iter().filter(|row| row.time > 10.0).map(|row| row.srtt).collect();
    let every = 30.0 / late.len() as f64 / quantile(&srtt, 0.5);
    [quantile(&ratios, 0.5), quantile(&ratios, 0.1), quantile(&ratios, 0.9), every]
}

/// The worst median, 10th and 90th percentile over all lines, buffers and loads.
fn worst_of(traffic: (&str, u64)) -> [f64; 3] {
    let buffers: &[f64] = if evidence() { &[1.0, 2.0, 4.0] } else { &[1.0, 4.0] };
    let mut worst = [0.0f64, 1.0, 1.0];
    for line in LINES {
        for share in [0.0, 0.2, 0.4, 0.6] {
            for &bdp in buffers {
                let [mid, low, high, every] = settled(traffic, line, share, bdp);
                let what = format!("{} {} B, {} Mbit/s, {} ms", traffic.0, traffic.1, line.0, line.1);
                shows(
                    &format!("{what}, {bdp} BDP, {share} of the line: median (10-90 %), RTTs a result"),
                    format!("{mid:.3} ({low:.3}-{high:.3}), {every:.1}"),
                );
                worst = [worst[0].max((mid - 1.0).abs()), worst[1].min(low), worst[2].max(high)];
            }
        }
    }
    shows(&format!("{} {} B: worst median error, least, most", traffic.0, traffic.1), format!("{worst:.3?}"));
    worst
}

#[test]
fn imtcp_finds_what_constant_traffic_leaves() {
    for packet in [1500, 200] {
        let [median, low, high] = worst_of(("constant", packet));
        assert!(median <= 0.1 && low >= 0.8 && high <= 1.2, "{packet} B: {median} {low} {high}");
    }
}

/// What a train of 10 ms meets of Poisson traffic is itself scattered.
#[test]
fn imtcp_finds_what_poisson_traffic_leaves() {
    let [median, ..] = worst_of(("poisson", 1500));
    assert!(median <= 0.35, "{median}");
}

/// RTTs from a step of the cross traffic until a result within 20 % of the new truth, of those in which no loss was
/// being repaired; `None`: never.
fn follows(line: (u64, u64), bdp: f64, (from, to): (f64, f64), seed: u64) -> Option<(f64, bool)> {
    let at = 15.0 + 0.37 * seed as f64;
    let rows: Vec<Row> = single(seed, "30s")
        .path("p", &link(line, bdp))
        .flow("f", &["p"], "imtcp", "")
        .table("[[traffic]]", &cross(("constant", 1500), line.0, from))
        .table("[[change]]", &format!("at = \"{}ms\"; traffic = \"cross\"; {}", at * 1e3, kbit(line.0, to)))
        .traced()
        .1
        .of(0, 0);
    let near = |row: &Row| (row.word as f64 / truth(line.0, to) - 1.0).abs() <= 0.2;
    let hit = results(&rows).into_iter().find(|row| row.time > at && near(row))?;
    let until: Vec<&Row> = rows.iter().filter(|row| row.time >= at && row.time <= hit.time).collect();
    let rtt = quantile(&until.iter().map(|row| row.srtt).collect::<Vec<f64>>(), 0.5);
    let lost = until.iter().any(|row| row.state >= 2);
    Some(((hit.time - at) / rtt, lost))
}

#[test]
fn imtcps_estimate_follows_a_step_within_four_rtts() {
    let seeds = if evidence() { 10 } else { 3 };
    for bdp in [1.0, 4.0] {
        let (mut clean, mut lossy) = (Vec::new(), Vec::new());
        for change in [(0.4, 0.1), (0.1, 0.4), (0.2, 0.7), (0.7, 0.2)] {
            for line in LINES {
                for seed in 0..seeds {
                    let (rtts, lost) = follows(line, bdp, change, seed).expect("a result within 20 %");
                    if lost { &mut lossy } else { &mut clean }.push(rtts);
                }
            }
        }
        let within = |rtts: &[f64]| rtts.iter().filter(|&&rtts| rtts <= 4.0).count() as f64 / rtts.len() as f64;
        for (kind, rtts) in [("without a loss", &clean), ("with a loss", &lossy)] {
            if !rtts.is_empty() {
                shows(
                    &format!("step, {bdp} BDP, {kind}: runs, within 4 RTT, median, 90 %, most RTTs"),
                    format!(
                        "{} {:.3} {:.1} {:.1} {:.1}",
                        rtts.len(),
                        within(rtts),
                        quantile(rtts, 0.5),
                        quantile(rtts, 0.9),
                        quantile(rtts, 1.0)
                    ),
                );
            }
        }
        assert!(within(&clean) >= 0.85 && quantile(&clean, 0.5) <= 3.0, "{clean:?}");
        assert!(lossy.is_empty() || quantile(&lossy, 0.5) <= 12.0, "{lossy:?}");
    }
}

/// On paths of few packets two packets sent in a row, or an ACK that a timer delays, look like somebody's queue.
#[test]
fn imtcp_bg_comes_back_to_a_small_path_that_was_left() {
    for line in [(10, 40), (5, 80), (20, 20), (5, 40), (2, 80), (10, 10)] {
        for start in ["0s", "7s"] {
            let report = single(1, "120s")
                .path("p", &link(line, 1.0))
                .flow("back", &["p"], "imtcp_bg", &format!("start = \"{start}\""))
                .flow("front", &["p"], "reno", "start = \"5s\"; stop = \"30s\"")
                .run();
            let used = report.flows[0].goodput_bps / (truth(line.0, 0.0) * 8.0);
            let what =
                format!("imtcp_bg from {start}, {} Mbit/s, {} ms, reno from 5 to 30 s: share of 120 s", line.0, line.1);
            shows(&what, format!("{used:.3}"));
            assert!(used >= 0.65, "{what}: {used}"); // 90 s are 0.75
        }
    }
}

#[test]
fn imtcp_bg_takes_what_is_free_and_leaves_the_rest() {
    let starts: &[&str] = if evidence() { &["5s", "6700ms", "9300ms"] } else { &["5s"] };
    for line in LINES {
        let full = truth(line.0, 0.0) * 8.0;
        // there are no bars at 0.25 BDP (experiments/background): what comes out is told
        for bdp in [0.25, 1.0, 4.0] {
            let what = format!("imtcp_bg, {} Mbit/s, {} ms, {bdp} BDP", line.0, line.1);
            let base = single(1, "120s").path("p", &link(line, bdp));
            let own = base.clone().flow("back", &["p"], "imtcp_bg", "");
            let alone = own.run().flows[0].goodput_bps / full;
            let half = own.table("[[traffic]]", &cross(("constant", 1500), line.0, 0.5)).run();
            let half = half.flows[0].goodput_bps / full * 2.0;
            shows(&format!("{what}: alone, beside half"), format!("{alone:.3} {half:.3}"));
            if bdp >= 1.0 {
                assert!(alone >= 0.9 && half >= 0.8, "{what}: {alone} {half}");
            }
            for front in ["reno", "cubic"] {
                let text = base.clone().flow("front", &["p"], front, "");
                let before = text.run().flows[0].goodput_bps;
                for start in starts {
                    let both = text.clone().flow("back", &["p"], "imtcp_bg", &format!("start = \"{start}\"")).run();
                    let kept = both.flows[0].goodput_bps / before;
                    let got = both.flows[1].goodput_bps / full;
                    shows(&format!("{what}, {start}: {front} keeps, background"), format!("{kept:.3} {got:.3}"));
                    assert!(bdp < 1.0 || kept >= 0.95, "{what} beside {front}: {kept}");
                }
            }
        }
    }
}
