//! The simulator against arithmetic: when a transfer without losses ends, Reno's sawtooth, the square root law,
//! queueing delay, and what cross traffic leaves.

use crate::common::{Row, Text, mean_between, near, shows};

const MSS: f64 = 1448.0;

/// IW (2^n - 1) segments take n rounds; the last byte arrives half a round earlier, after one round for the handshake.
#[test]
fn slow_start_over_an_infinitely_fast_link_takes_whole_rounds() {
    for (window, rounds) in [(1u64, 1), (1, 7), (2, 5), (10, 1), (10, 4), (4, 8)] {
        let segments = window * ((1 << rounds) - 1);
        for (bytes, rounds) in [(segments * 1448, rounds), (segments * 1448 + 1, rounds + 1)] {
            let text = Text::new(1, "")
                .path("p", "delay = \"35ms\"")
                .flow("f", &["p"], "reno", &format!("bytes = \"{bytes}B\""))
                .table("[tcp]", &format!("preset = \"rfc\"; delayed_ack = 1; initial_window = {window}"));
            let flow = &text.run().flows[0];
            let ms = |time: Option<f64>| (time.unwrap() * 1e6).round() / 1e3;
            assert_eq!(ms(flow.delivered_s), f64::from(rounds * 70 + 35), "{bytes} bytes from a window of {window}");
            assert_eq!(ms(flow.completion_s), f64::from(rounds * 70 + 70));
        }
    }
}

/// How the receiver acknowledges, and how the sender counts it.
#[derive(Clone, Copy)]
struct Acks {
    /// Segments at the start that are acknowledged at once, segments per ACK, packets counted per ACK.
    quick: u64,
    each: u64,
    counted: u64,
    /// Bytes of a SYN.
    syn: u64,
}

/// When the last of `n` segments arrives [ns]: handshake, then every segment leaves when the window opens for it, both
/// directions are FIFO lines of `rate` bit/s.
fn arrival_of_the_last(n: u64, last_bytes: u64, window: u64, rate: u64, delay: u64, acks: Acks) -> u64 {
    let line = |bytes: u64| (bytes * 8 * 1_000_000_000).div_ceil(rate);
    let mut there = 0; // when the line to the server is free
    let mut back = 0;
    let cross = |free: &mut u64, at: u64, bytes: u64| {
        *free = at.max(*free) + line(bytes);
        *free + delay
    };
    let syn = cross(&mut there, 0, acks.syn);
    let start = cross(&mut back, syn, acks.syn);
    cross(&mut there, start, 52);
    // what the ACKs have allowed: times at which one more segment may leave, in order
    let mut allowed: std::collections::VecDeque<u64> = (0..window).map(|_| start).collect();
    let (mut pending, mut quick, mut arrival) = (0, acks.quick, 0);
    for i in 0..n {
        let at = allowed.pop_front().expect("something is always in flight");
        let bytes = 52 + if i + 1 == n { last_bytes } else { 1448 };
        arrival = cross(&mut there, at, bytes);
        pending += 1;
        let now = pending >= acks.each || quick > 0;
        if pending < acks.each && quick > 0 {
            quick -= 1;
        }
        if now {
            let ack = cross(&mut back, arrival, 52);
            let opened = pending + pending.min(acks.counted);
            allowed.extend((0..opened).map(|_| ack));
            pending = 0;
        }
    }
    arrival
}

#[test]
fn slow_start_over_a_line_to_the_nanosecond() {
    let every = Acks { quick: 0, each: 1, counted: 1, syn: 60 };
    let rfc = Acks { quick: 0, each: 2, counted: 1, syn: 60 };
    let linux = Acks { quick: 16, each: 2, counted: 65_535, syn: 60 };
    let ns3 = Acks { quick: 1, syn: 56, ..rfc };
    for (tcp, window, acks) in [
        ("preset = \"rfc\"; delayed_ack = 1", 10, every),
        ("preset = \"rfc\"; delayed_ack = 1; initial_window = 3", 3, every),
        ("preset = \"rfc\"", 10, rfc),
        ("preset = \"linux\"; autotuning = false; initial_window = 4", 4, linux),
        ("preset = \"linux\"; autotuning = false", 10, linux),
        ("preset = \"ns3\"", 10, ns3),
    ] {
        for (mbit, ms) in [(1, 5), (8, 40), (100, 80)] {
            for bytes in [1u64, 1448, 30_000, 400_000] {
                let text = Text::new(1, "")
                    .path("p", &format!("rate = \"{mbit}Mbit\"; delay = \"{ms}ms\"; queue = \"2000 packets\""))
                    .flow("f", &["p"], "reno", &format!("bytes = \"{bytes}B\""))
                    .table("[host.client]", "send_segments = 1")
                    .table("[tcp]", tcp);
                let n = bytes.div_ceil(1448);
                let last = bytes - (n - 1) * 1448;
                let expected = arrival_of_the_last(n, last, window, mbit * 1_000_000, ms * 1_000_000, acks);
                let report = text.run();
                let got = (report.flows[0].delivered_s.unwrap() * 1e9).round() as u64;
                assert_eq!(got, expected, "{tcp}: {bytes} bytes at {mbit} Mbit/s, {ms} ms");
                assert_eq!(report.packets.dropped, 0);
            }
        }
    }
}

/// Reno over a bottleneck of 1000 packets/s, RTT of `base` ms, queue of `queue` packets. The times at which recoveries
/// begin after the start, the rows, and the utilisation between the first and the last of those times.
fn sawtooth(base: u64, queue: u64) -> (Vec<f64>, Vec<Row>, f64) {
    let end = 300;
    let keys = format!("rate = \"12Mbit\"; delay = \"{}us\"; queue = \"{queue} packets\"", base * 500);
    let (_, rows) = Text::new(1, &format!("{end}s"))
        .path("p", &keys)
        .flow("f", &["p"], "reno", "")
        .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1; initial_ssthresh = \"60KB\"")
        .traced();
    let rows = rows.of(0, 0);
    let begins = |w: &[Row]| w[1].state == 3 && w[0].state != 3;
    let times: Vec<f64> = rows.windows(2).filter(|w| begins(w)).map(|w| w[1].time).skip(2).collect();
    let at = |time: f64| rows.iter().find(|row| row.time >= time).unwrap().acked as f64;
    let (first, last) = (times[0], times[times.len() - 1]);
    let carried = (at(last) - at(first)) / MSS;
    (times, rows, carried / (last - first) / 1000.0)
}

/// W goes from Wm/2 to Wm, Wm = BDP + queue; the line is busy while W is above the BDP. A round takes BDP packet times
/// while the queue is empty, W with it. Bounds: the loss is seen a round after it happened, so that Wm is one to two
/// packets larger, and the recovery takes a round more than the ramp: 6 % of the shortest period here.
#[test]
fn renos_sawtooth_has_its_period_mean_and_utilisation() {
    for (base, queue) in [(100u64, 20u64), (100, 50), (100, 110), (50, 100)] {
        let (times, rows, utilisation) = sawtooth(base, queue);
        // 1500 bytes and an ACK of 52 bytes on the line belong to the RTT
        let bdp = base as f64 + 1.0 + 52.0 / 1500.0;
        let top = bdp + queue as f64;
        let low = top / 2.0;
        let from = low.max(bdp);
        let below = (bdp - low).max(0.0);
        let time = below * bdp + (top * top - from * from) / 2.0;
        let sum = bdp * (from * from - low * low) / 2.0 + (top.powi(3) - from.powi(3)) / 3.0;
        let packets = (top * top - low * low) / 2.0;
        let what = format!("RTT {base} ms, queue {queue}");

        let (first, last) = (times[0], times[times.len() - 1]);
        let period = (last - first) / (times.len() - 1) as f64;
        let expected = (time + top) / 1000.0;
        shows(&format!("sawtooth, {what}: period [s] and closed form"), format!("{period:.3} {expected:.3}"));
        near(period, expected, 0.06, &what);

        let mean = mean_between(&rows, first, last, |row| row.cwnd as f64);
        shows(&format!("sawtooth, {what}: mean window and closed form"), format!("{mean:.1} {:.1}", sum / time));
        near(mean, sum / time, 0.03, &what);
        assert!((low..top).contains(&mean));

        let share = packets / time;
        shows(&format!("sawtooth, {what}: utilisation and closed form"), format!("{utilisation:.4} {share:.4}"));
        near(utilisation, share, 0.01, &what);
    }
}

/// Throughput = sqrt(3 / (2 p)) MSS / RTT. Bound 15 %: the law is of evenly spaced losses; with independent ones the
/// mean window is 1.31 / sqrt(p) in place of 1.22 (Ott, Kemperman, Mathis 1996), 7 % more; against that every recovery
/// takes a round without growth, windows are halved downwards, and with windows about 12 (p = 0.01) there are timeouts
/// of 1 s.
#[test]
fn the_square_root_law() {
    for p in [0.001, 0.003, 0.01] {
        let (mut sum, mut timeouts) = (0.0, 0);
        let seeds = 6;
        for seed in 0..seeds {
            let flow = &Text::new(seed, "200s")
                .path("p", &format!("delay = \"25ms\"; loss = {{ ab = {p} }}"))
                .flow("f", &["p"], "reno", "")
                .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1")
                .run()
                .flows[0];
            sum += flow.goodput_bps / seeds as f64;
            timeouts += flow.timeouts;
        }
        let law = (1.5f64 / p).sqrt() * MSS * 8.0 / 0.05;
        shows(&format!("1/sqrt(p), p = {p}: throughput / law, timeouts"), format!("{:.3} {timeouts}", sum / law));
        near(sum, law, 0.15, &format!("p = {p}"));
    }
}

/// A window of w packets, held by the receive buffer, keeps w - BDP in the queue: srtt is w packet times.
#[test]
fn a_fixed_window_waits_in_the_queue_for_what_it_is_above_the_bdp() {
    for (window, delayed) in [(20, 1), (60, 1), (100, 1), (60, 2)] {
        let (report, rows) = Text::new(1, "20s")
            .path("p", "rate = \"12Mbit\"; delay = \"20ms\"; queue = \"500 packets\"")
            .flow("f", &["p"], "reno", "")
            .table(
                "[tcp]",
                &format!("preset = \"rfc\"; delayed_ack = {delayed}; receive_buffer = \"{}B\"", window * 1448),
            )
            .traced();
        let rtt = (0.040 + 0.001 + 52.0 / 1500.0 * 0.001_f64).max(f64::from(window) * 0.001);
        let rows = rows.of(0, 0);
        let srtt = mean_between(&rows, 10.0, 20.0, |row| row.srtt);
        // with delayed ACKs a sample is of the older of two segments
        near(srtt, rtt, 0.001, &format!("window {window}, one ACK for {delayed}"));
        near(report.flows[0].goodput_bps, f64::from(window) * MSS * 8.0 / rtt, 0.03, "throughput");
        let (low, high) = rows
            .iter()
            .filter(|row| row.time > 10.0)
            .fold((1.0f64, 0.0f64), |(low, high), row| (low.min(row.srtt), high.max(row.srtt)));
        assert!(high - low < 0.002, "{low} to {high}");
    }
}

/// At a full queue srtt is base + queue: 500 packets wait before the first loss.
#[test]
fn a_full_queue_is_seen_in_srtt() {
    let (report, rows) = Text::new(1, "30s")
        .path("p", "rate = \"12Mbit\"; delay = \"20ms\"; queue = \"100 packets\"")
        .flow("f", &["p"], "reno", "")
        .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1; initial_ssthresh = \"60KB\"")
        .traced();
    let most = rows.of(0, 0).iter().map(|row| row.srtt).fold(0.0, f64::max);
    near(most, 0.041 + 0.100, 0.01, "the largest srtt");
    assert_eq!(report.links[0].queue_max_packets, 100);
}

/// Virtual traffic that is never dropped gets what it sends, and a greedy flow the rest of the line.
#[test]
fn constant_cross_traffic_takes_exactly_its_share() {
    for (kbit, size) in [(2000u64, 1500u64), (4000, 500), (7000, 1500)] {
        let report = Text::new(1, "60s")
            .path("p", "rate = \"10Mbit\"; delay = \"20ms\"; queue = \"400 packets\"")
            .flow("f", &["p"], "reno", "")
            .table("[tcp]", "preset = \"rfc\"; delayed_ack = 1; receive_buffer = \"150KB\"")
            .table(
                "[[traffic]]",
                &format!(
                    "kind = \"constant\"; link = \"p\"; direction = \"ab\"; rate = \"{kbit}kbit\"; packet = \"{size}B\""
                ),
            )
            .run();
        let link = &report.links[0];
        let sent = 60 * kbit * 1000 / 8 / size;
        assert!(link.cross_packets.abs_diff(sent) <= 1, "{} of {sent}", link.cross_packets);
        assert_eq!((link.cross_drops, link.drops), (0, 0));
        let left = (10_000 - kbit) as f64 * 1000.0;
        // the first second is slow start
        near(report.flows[0].goodput_bps * 1500.0 / 1448.0, left, 0.015, "the flow");
        assert!(link.utilisation > 0.985);
    }
}
