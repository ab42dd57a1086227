//! Multipath TCP's stream over its subflows: once, in order, whatever the paths do; who is asked first; when they join.

use crate::common::{Text, near, run, shows};
use pathcast_base::Nanos;
use pathcast_sim::{Options, Report};

const SCHEDULERS: [&str; 3] = ["minrtt", "roundrobin", "linux"];

/// Two paths of 10 Mbit/s, the second slower by `ms`; both lose `loss` of the packets towards the server.
fn two_paths(ms: u32, loss: f64, bytes: u64, tcp: &str) -> Text {
    let link = |ms: u32| format!("rate = \"10Mbit\"; delay = \"{ms}ms\"; loss = {{ ab = {loss} }}");
    Text::new(7, "")
        .path("a", &link(10))
        .path("b", &link(10 + ms))
        .flow("f", &["a", "b"], "lia", &format!("bytes = \"{bytes}B\""))
        .table("[tcp]", tcp)
}

fn limited(text: &Text, seconds: u64) -> Report {
    run(&text.0, &Options { time: Nanos::secs(seconds), ..Options::default() }).report
}

#[test]
fn every_byte_arrives_once_under_loss_and_reordering() {
    for preset in ["linux", "rfc", "ns3", "ns2"] {
        for scheduler in SCHEDULERS {
            for (ms, loss) in [(0, 0.0), (150, 0.0), (0, 0.02), (150, 0.02)] {
                let tcp = format!("preset = \"{preset}\"; scheduler = \"{scheduler}\"; join = \"together\"");
                let flow = &limited(&two_paths(ms, loss, 1_234_567, &tcp), 300).flows[0];
                assert!(flow.completion_s.is_some(), "{tcp}, {ms} ms, loss {loss}");
                assert_eq!(flow.bytes, 1_234_567);
                // segments that a subflow sent for the first time: those of the stream, and what another gave it
                let first: u64 = flow.subflows.iter().map(|sub| sub.sent - sub.retransmits).sum();
                let stream = 1_234_567u64.div_ceil(if preset == "ns2" { 1000 } else { 1424 });
                assert!(first >= stream);
                // the kernel's connection has a timer of its own, which waits for no subflow's timeout
                let own = preset == "linux" && scheduler == "linux";
                assert!(flow.duplicates == 0 || flow.timeouts > 0 || own, "duplicates without a timeout: {tcp}");
                if loss == 0.0 {
                    assert!(own || (flow.duplicates, first) == (0, stream), "{tcp}, {ms} ms: {flow:?}");
                }
                // the kernel's scheduler may queue so little all at one subflow
                if ms > 0 && scheduler != "linux" {
                    assert!(flow.reordered_most > 0, "unequal paths reorder the stream");
                }
            }
        }
    }
}

#[test]
fn without_reinjection_nothing_comes_twice() {
    for scheduler in SCHEDULERS {
        let tcp = format!("preset = \"rfc\"; reinjection = false; scheduler = \"{scheduler}\"");
        let flow = &limited(&two_paths(100, 0.05, 1_000_000, &tcp), 300).flows[0];
        assert!(flow.timeouts > 0, "the paths lose enough for timeouts");
        assert_eq!((flow.bytes, flow.duplicates), (1_000_000, 0));
    }
}

/// The second path loses everything from 0.5 s on.
fn dies(tcp: &str, back: bool) -> Text {
    let mut text = two_paths(20, 0.0, 3_000_000, tcp).table("[[change]]", "at = \"500ms\"; link = \"b\"; loss = 1.0");
    if back {
        text = text.table("[[change]]", "at = \"2500ms\"; link = \"b\"; loss = 0.0");
    }
    text
}

#[test]
fn a_subflows_death_does_not_stop_the_stream() {
    for preset in ["linux", "rfc", "ns2"] {
        for scheduler in SCHEDULERS {
            for back in [false, true] {
                let tcp = format!("preset = \"{preset}\"; scheduler = \"{scheduler}\"");
                let flow = &limited(&dies(&tcp, back), 60).flows[0];
                let took = flow.completion_s.unwrap_or_else(|| panic!("{tcp}, back {back}: not complete"));
                assert_eq!(flow.bytes, 3_000_000);
                assert!(flow.subflows[1].timeouts > 0);
                shows(
                    &format!("3 MB, a path of two dies at 0.5 s ({tcp}, comes back: {back})"),
                    format!("{took:.2} s"),
                );
                // the other path alone takes 2.5 s; a timeout and its repair come on top
                assert!(took < 8.0, "{took}");
            }
        }
    }
}

#[test]
fn without_reinjection_a_dead_path_keeps_what_it_has() {
    let dead = limited(&dies("preset = \"rfc\"; reinjection = false", false), 60);
    assert_eq!((dead.stopped, dead.flows[0].completion_s), (Some("time-limit"), None));
    assert!(dead.flows[0].bytes < 3_000_000);
    assert_eq!(dead.flows[0].duplicates, 0);
    let back = limited(&dies("preset = \"rfc\"; reinjection = false", true), 60);
    assert_eq!((back.flows[0].bytes, back.flows[0].duplicates), (3_000_000, 0));
}

/// With paths of 20 and 400 ms and a buffer of B, what was sent over the slow one holds the window back until it
/// arrives: about B per slow RTT comes through when both are used in turn (at most 2 B: half of it goes over the fast
/// path), and at most B per fast RTT with min-RTT, which then does not need the slow one.
#[test]
fn a_small_receive_buffer_makes_the_slow_path_block_the_fast_one() {
    let goodput = |buffer: u64, scheduler: &str| {
        Text::new(1, "60s")
            .path("fast", "rate = \"50Mbit\"; delay = \"10ms\"")
            .path("slow", "rate = \"50Mbit\"; delay = \"200ms\"")
            .flow("f", &["fast", "slow"], "lia", "")
            .table("[tcp]", &format!("preset = \"rfc\"; scheduler = \"{scheduler}\"; receive_buffer = \"{buffer}B\""))
            .run()
            .flows[0]
            .goodput_bps
    };
    let small = 64_000;
    let law = small as f64 * 8.0 / 0.4;
    let (turns, least) = (goodput(small, "roundrobin"), goodput(small, "minrtt"));
    shows("64 KB buffer, 20 and 400 ms, in turn: goodput / (buffer / slow RTT)", format!("{:.2}", turns / law));
    shows("64 KB buffer, 20 and 400 ms, min-RTT: goodput / (buffer / slow RTT)", format!("{:.2}", least / law));
    let large = goodput(8_000_000, "roundrobin");
    shows("8 MB buffer, 20 and 400 ms, in turn: goodput [Mbit/s]", format!("{:.1}", large / 1e6));
    assert!((0.8 * law..2.0 * law).contains(&turns), "{turns}");
    assert!((15.0 * law..20.0 * law).contains(&least), "{least}");
    assert!(large > 10.0 * turns, "{large}");
}

/// While the window of the faster path has room, it gets everything.
#[test]
fn min_rtt_prefers_the_faster_path() {
    for (first, second, faster) in [(10, 40, 0), (40, 10, 1)] {
        let link = |ms: u32| format!("rate = \"100Mbit\"; delay = \"{ms}ms\"");
        let text = Text::new(1, "30s")
            .path("a", &link(first))
            .path("b", &link(second))
            // ten packets of buffer: less than the first window
            .flow("f", &["a", "b"], "reno", "")
            .table("[tcp]", "preset = \"rfc\"; receive_buffer = \"14240B\"; join = \"together\"");
        let subs = &text.run().flows[0].subflows;
        let other = subs[1 - faster].bytes as f64 / (subs[0].bytes + subs[1].bytes) as f64;
        shows(
            &format!("min-RTT, {first} and {second} ms, room in both windows: share of the slower path"),
            format!("{other:.4}"),
        );
        assert!(other < 0.01, "{other}");
        // with a buffer above both windows the slower one is used, too
        let full = Text(text.0.replace("14240B", "4MB").replace("100Mbit", "5Mbit"));
        let subs = &full.run().flows[0].subflows;
        assert!(subs[1 - faster].bytes as f64 > 0.4 * subs[faster].bytes as f64);
    }
}

#[test]
fn round_robin_alternates() {
    let link = "rate = \"100Mbit\"; delay = \"10ms\"";
    let text = Text::new(1, "")
        .path("a", link)
        .path("b", &link.replace("10ms", "25ms"))
        .path("c", link)
        .flow("f", &["a", "b", "c"], "reno", "bytes = \"900KB\"")
        .table(
            "[tcp]",
            "preset = \"rfc\"; receive_buffer = \"14240B\"; join = \"together\"; scheduler = \"roundrobin\"",
        );
    let sent: Vec<u64> = text.run().flows[0].subflows.iter().map(|sub| sub.sent).collect();
    shows("round robin over three paths: segments", format!("{sent:?}"));
    let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
    // the first subflows up send alone until the slower one has joined
    assert!(most - least <= 20, "{sent:?}");
}

#[test]
fn the_kernels_scheduler_fills_the_send_buffer_that_is_set() {
    let goodput = |buffer: &str| {
        let link = "rate = \"1Gbit\"; delay = \"75ms\"; queue = \"12500 packets\"";
        let tcp = format!("scheduler = \"linux\"; receive_buffer = \"200MB\"; send_buffer = \"{buffer}\"");
        let text = Text::new(7, "").path("a", link).path("b", link);
        let text = text.flow("f", &["a", "b"], "lia", "bytes = \"256MB\"").table("[tcp]", &tcp);
        limited(&text, 60).flows[0].goodput_bps
    };
    // the connection's buffer is the sum of its subflows': no more than two of 4 MiB every 150 ms, each byte in a packet's memory
    let small = goodput("4MiB");
    assert!((0.3..1.0).contains(&(small / (8.0 * 2.0 * 4_194_304.0 / 0.15))), "{small}");
    // six times that over the two lines, less the slow start
    let large = goodput("200MB");
    assert!(large > 500e6, "{large}");
}

/// Seen in the kernel with six subflows of 150 ms: the program has filled the first one's buffer with three fragments, 69 segments.
/// It writes on when the joins' first packets are answered, which make more room, and all the rest goes over those. So
/// nothing is lost at their common queue; it took 1.135 to 1.138 s.
#[test]
fn a_join_that_is_answered_gives_the_program_room() {
    let text = Text::new(1, "").path("p", "rate = \"5Mbit\"; delay = \"75ms\"; queue = \"50 packets\"").flow(
        "f",
        &["p"],
        "lia",
        "bytes = \"250KB\"; subflows = 6",
    );
    let flow = &text.run().flows[0];
    assert!((69 * 1424..=73 * 1424).contains(&flow.subflows[0].bytes) && flow.retransmits == 0, "{flow:?}");
    near(flow.completion_s.unwrap(), 1.136, 0.04, "completion");
}

/// Handshake: the first subflow opens after one RTT, its first data is acknowledged after another (that tells that the
/// server speaks MPTCP), and a join has four packets: two RTTs of its own path. Together: all at once.
#[test]
fn joins_take_their_handshakes() {
    for (first, second) in [(10u64, 50u64), (50, 10), (30, 30)] {
        for (join, expected) in [("handshake", 2 * first + 2 * second), ("together", second)] {
            let text = Text::new(1, "")
                .path("a", &format!("delay = \"{}us\"", first * 500))
                .path("b", &format!("delay = \"{}us\"", second * 500))
                .flow("f", &["a", "b"], "lia", "bytes = \"1MB\"")
                .table(
                    "[tcp]",
                    &format!("preset = \"rfc\"; delayed_ack = 1; receive_buffer = \"14240B\"; join = \"{join}\""),
                );
            let subs = &text.run().flows[0].subflows;
            near(subs[0].joined_s.unwrap(), first as f64 / 1000.0, 1e-9, "the first subflow");
            near(subs[1].joined_s.unwrap(), expected as f64 / 1000.0, 1e-9, join);
        }
    }
}
