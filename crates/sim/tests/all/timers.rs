//! Timers of the presets, as they show outside: held ACKs, quick ACKs, retransmission timeouts, giving up.

use crate::common::{Text, near, real, run, shows};
use pathcast_base::Nanos;
use pathcast_sim::Options;

/// One segment a round over an RTT of 100 ms: seconds for `n` segments. Every ACK that is held adds its timeout, but
/// the last segment is acknowledged at once.
fn stop_and_wait(tcp: &str, n: u64, mss: u64) -> f64 {
    let text = Text::new(1, "")
        .path("p", "delay = \"50ms\"")
        .flow("f", &["p"], "reno", &format!("bytes = \"{}B\"", n * mss))
        .table("[tcp]", &format!("{tcp}; receive_buffer = \"{mss}B\"; initial_window = 1"));
    text.run().flows[0].completion_s.unwrap()
}

#[test]
fn held_acks_and_quick_acks() {
    for (tcp, mss, held, quick) in [
        ("preset = \"linux\"; autotuning = false", 1448, 0.040, 16),
        ("preset = \"linux\"; quick_ack = false", 1448, 0.040, 0),
        ("preset = \"linux\"; autotuning = false; delayed_ack = 1", 1448, 0.0, 0),
        ("preset = \"rfc\"", 1448, 0.200, 0),
        ("preset = \"rfc\"; quick_ack = true", 1448, 0.200, 16),
        ("preset = \"rfc\"; delayed_ack_timeout = \"70ms\"", 1448, 0.070, 0),
        ("preset = \"ns3\"", 1448, 0.200, 1),
        ("preset = \"ns2\"", 1000, 0.0, 0),
    ] {
        for n in [1u64, 2, 16, 17, 18, 30] {
            let waits = (n - 1).saturating_sub(quick) as f64;
            let expected = 0.1 * (n + 1) as f64 + waits * held;
            near(stop_and_wait(tcp, n, mss), expected, 1e-9, &format!("{tcp}, {n} segments"));
        }
    }
}

/// The path swallows everything from 1 s on: the times at which what was sent together is lost, 50 ms after it left.
/// RTT: 100 ms exactly, with `window` segments in each.
fn silence(tcp: &str, window: u64) -> (Vec<f64>, bool, u64, f64) {
    let text = Text::new(1, "")
        .path("p", "delay = \"50ms\"")
        .flow("f", &["p"], "reno", "bytes = \"100MB\"")
        .table("[tcp]", &format!("{tcp}; receive_buffer = \"{}B\"", window * 1448))
        .table("[[change]]", "at = \"1s\"; link = \"p\"; loss = { ab = 1.0 }");
    let outcome = run(&text.0, &Options { trace: Some(Nanos(0)), ..Options::default() });
    let mut times = real(&outcome.trace.unwrap().drops(), "time_s");
    times.dedup();
    let flow = &outcome.report.flows[0];
    assert_eq!(outcome.report.stopped, None, "the connection is given up, and the run ends");
    (times, flow.failed, flow.timeouts, outcome.report.simulated_s)
}

/// A tail loss probe after two RTTs and 2 ms, or a lone segment's after two and the least timeout, if the timeout itself does
/// not come before; then timeouts, of which each is twice as long up to the largest, to the nanosecond.
#[test]
fn a_probe_of_the_tail_then_doubling_timeouts_until_the_connection_is_given_up() {
    for (tcp, window, probe, first, most) in [
        ("preset = \"rfc\"; delayed_ack = 1", 10, None, 1.0, 120.0),
        ("preset = \"rfc\"; delayed_ack = 1; min_rto = \"3s\"", 10, None, 3.0, 120.0),
        // Linux adds the least timeout to the RTT
        ("preset = \"linux\"; autotuning = false; delayed_ack = 1", 10, Some(0.202), 0.3, 120.0),
        ("preset = \"linux\"; autotuning = false; delayed_ack = 1; min_rto = \"700ms\"", 2, Some(0.202), 0.8, 120.0),
        ("preset = \"linux\"; autotuning = false; delayed_ack = 1", 1, Some(0.3), 0.3, 120.0),
        ("preset = \"linux\"; autotuning = false; delayed_ack = 1; rack = false", 10, None, 0.3, 120.0),
        ("preset = \"ns3\"; delayed_ack = 1", 10, None, 1.0, 60.0),
        ("preset = \"ns2\"", 10, None, 0.2, 120.0),
    ] {
        let (times, failed, timeouts, end) = silence(tcp, window);
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let told: Vec<String> = gaps.iter().map(|gap| format!("{gap:.3}")).collect();
        shows(&format!("silence from 1 s on ({tcp}): time between retransmissions [s]"), told.join(" "));
        assert!(failed);
        assert_eq!(timeouts, 16, "15 retries, and the one that gives up");
        let timeout = |k: u32| (first * f64::from(1 << k)).min(most);
        let expected: Vec<f64> = probe.into_iter().chain((0..15).map(timeout)).collect();
        assert_eq!(gaps.len(), expected.len(), "{tcp}: {gaps:?}");
        for (k, (gap, expected)) in gaps.iter().zip(&expected).enumerate() {
            near(*gap, *expected, 1e-9, &format!("{tcp}, gap {k}"));
        }
        shows(&format!("silence from 1 s on ({tcp}): given up after [s]"), format!("{end:.0}"));
        near(end, times[times.len() - 1] - 0.05 + timeout(15), 1e-9, "given up");
    }
}

/// A flow over a path that loses everything, until `up` after it began [s].
fn comes_up(tcp: &str, up: f64) -> Text {
    let change = format!("at = \"{}ms\"; link = \"p\"; loss = 0.0", (1000.0 * up).round());
    Text::new(1, "")
        .path("p", "delay = \"50ms\"; loss = 1.0")
        .flow("f", &["p"], "reno", "bytes = \"1KB\"")
        .table("[tcp]", tcp)
        .table("[[change]]", &change)
}

#[test]
fn a_handshake_is_repeated_with_doubled_waits() {
    for (tcp, first) in [("preset = \"ns3\"", 3.0), ("preset = \"rfc\"; initial_rto = \"500ms\"", 0.5)] {
        // the path comes up after the third SYN was lost: at 1 + 2 waits
        let flow = &comes_up(tcp, first * 3.0 + 0.1).run().flows[0];
        near(flow.subflows[0].joined_s.unwrap(), first * 7.0 + 0.1, 1e-9, tcp);
    }
}

/// Linux since 6.5 (`tcp_syn_linear_timeouts`): four repetitions a second apart before the waits are doubled.
#[test]
fn linux_repeats_a_handshake_four_times_before_it_waits_longer() {
    let times = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0];
    for pair in times.windows(2) {
        let flow = &comes_up("preset = \"linux\"", pair[0] + 0.1).run().flows[0];
        near(flow.subflows[0].joined_s.unwrap(), pair[1] + 0.1, 1e-9, "the next SYN after the path came up");
    }
    let report = comes_up("preset = \"linux\"", 1000.0).run();
    assert!(report.flows[0].failed);
    near(report.simulated_s, 131.0, 1e-9, "given up");
}
