//! Random scenarios of everything that the format has: the run ends, nothing is made or lost, the same comes out twice.

mod common;

use common::{Text, controllers, json, run};
use pathcast_base::Nanos;
use pathcast_sim::{Options, Report};
use proptest::prelude::*;

/// Far above what the largest of these scenarios needs; who meets it runs in circles.
const EVENTS: u64 = 20_000_000;

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u32..60).prop_map(|n| format!("queue = \"{n} packets\"")),
        (1600u32..80_000).prop_map(|n| format!("queue = \"{n}B\"")),
        (1u32..10, 1u32..30, 0u32..30).prop_map(|(min, more, room)| format!(
            "queue = {{ kind = \"red\", min = {min}, max = {}, limit = {} }}",
            min + more,
            min + more + room
        )),
        (1u32..60).prop_map(|n| format!("queue = {{ kind = \"fair\", packets = {n} }}")),
    ]
}

/// The keys of a link. A fair queue has no bucket.
fn link() -> impl Strategy<Value = String> {
    let rate = prop_oneof![4 => (100u32..12_000).prop_map(Some), 1 => Just(None)];
    let loss = prop_oneof![2 => Just(0.0), 2 => 0.0..0.05f64, 1 => 0.05..0.5f64];
    let jitter = prop_oneof![2 => Just(0u32), 1 => 1u32..30];
    let bucket = prop_oneof![3 => Just(0u32), 1 => 100u32..4000];
    (rate, 0u32..120, queue(), loss, jitter, bucket, 0u32..60).prop_map(
        |(rate, ms, queue, loss, jitter, bucket, over)| {
            // without a rate only delay and losses bound what a greedy flow does in a second
            let (ms, loss) = if rate.is_some() { (ms, loss) } else { (ms + 10, loss.max(0.01)) };
            let mut keys = format!("delay = \"{ms}ms\"; {queue}; loss = {loss:.4}; overhead = \"{over}B\"");
            if let Some(kbit) = rate {
                keys += &format!("; rate = \"{kbit}kbit\"");
            }
            if jitter > 0 {
                keys += &format!("; jitter = {{ amplitude = \"{jitter}ms\", step = \"5ms\" }}");
            }
            if bucket > 0 && !queue.contains("fair") {
                keys += &format!("; bucket = {{ rate = \"{bucket}kbit\", burst = \"9KB\" }}");
            }
            keys
        },
    )
}

fn tcp() -> impl Strategy<Value = String> {
    let single = prop_oneof![
        3 => Just(""),
        1 => Just("; sack = false; rack = false"),
        1 => Just("; pacing = true"),
        1 => Just("; recovery = \"prr\"; rack = false"),
        1 => Just("; recovery = \"classic\"; limited_transmit = false"),
        1 => Just("; reinjection = false"),
        1 => Just("; receive_buffer = \"20KB\""),
        1 => Just("; initial_window = 1; mss = \"536B\"; delayed_ack = 1"),
        1 => Just("; abc_limit = 2; window_validation = true; undo = true"),
    ];
    let word = |a: &'static str, b: &'static str| prop_oneof![Just(a), Just(b)];
    let preset = prop_oneof![Just("linux"), Just("rfc"), Just("ns3"), Just("ns2")];
    let scheduler = prop_oneof![Just("minrtt"), Just("roundrobin"), Just("linux")];
    (preset, scheduler, word("handshake", "together"), single).prop_map(|(preset, scheduler, join, single)| {
        format!("preset = \"{preset}\"; scheduler = \"{scheduler}\"; join = \"{join}\"{single}")
    })
}

/// What a flow does: bytes, a stop, neither, or pages.
fn work() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (1u32..400_000).prop_map(|bytes| format!("bytes = \"{bytes}B\"")),
        1 => (2000u32..4000).prop_map(|ms| format!("stop = \"{ms}ms\"")),
        1 => Just(String::new()),
        1 => Just("web = { page = \"20KB\", think = \"200ms\" }".to_string()),
    ]
}

fn traffic(paths: usize) -> impl Strategy<Value = String> {
    let path = 0..paths;
    let virtually = (0..paths, prop_oneof![Just("ab"), Just("ba")], 10u32..3000, 0u32..3).prop_map(
        |(link, direction, kbit, kind)| {
            let (kind, more) = match kind {
                0 => ("constant", "packet = \"700B\"".to_string()),
                1 => ("poisson", "packet = \"1500B\"".to_string()),
                _ => ("pareto-onoff", format!("peak = \"{}kbit\"; on = \"500ms\"", 3 * kbit)),
            };
            format!("kind = \"{kind}\"; link = \"p{link}\"; direction = \"{direction}\"; rate = \"{kbit}kbit\"; {more}")
        },
    );
    let real =
        (path, prop_oneof![Just("client"), Just("server")], any::<bool>(), 1u32..4).prop_map(|(path, to, web, n)| {
            let more = if web {
                format!("kind = \"web\"; clients = {n}; think = \"500ms\"; page = \"15KB\"")
            } else {
                format!("kind = \"tcp\"; flows = {n}; stagger = \"70ms\"; stop = \"3s\"")
            };
            format!("path = \"p{path}\"; to = \"{to}\"; control = \"reno\"; {more}")
        });
    prop_oneof![virtually, real]
}

fn change(paths: usize) -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("loss = 1.0".to_string()),
        Just("loss = 0.01".to_string()),
        (50u32..8000).prop_map(|kbit| format!("rate = \"{kbit}kbit\"")),
        (5u32..200).prop_map(|ms| format!("delay = \"{ms}ms\"")),
        Just("loss = { ab = 0.3 }; overhead = \"20B\"".to_string()),
    ];
    (10u32..4000, 0..paths, value).prop_map(|(ms, link, value)| format!("at = \"{ms}ms\"; link = \"p{link}\"; {value}"))
}

fn flows(paths: usize) -> impl Strategy<Value = Vec<(usize, u32, usize, u32, String)>> {
    let one = (1..paths + 1, 1u32..9, 0..controllers().len(), 0u32..1000, work());
    prop::collection::vec(one, 1..4)
}

fn scenario() -> impl Strategy<Value = Text> {
    let parts = |paths: usize| {
        (
            prop::collection::vec(link(), paths),
            flows(paths),
            tcp(),
            prop::collection::vec(traffic(paths), 0..3),
            prop::collection::vec(change(paths), 0..4),
            (any::<bool>(), any::<bool>(), 0u64..1000),
        )
    };
    (1usize..4).prop_flat_map(parts).prop_map(|(links, flows, tcp, traffic, changes, (batch, six, seed))| {
        let mut text = Text::new(seed, "5s");
        for (i, link) in links.iter().enumerate() {
            text = text.path(&format!("p{i}"), link);
            if six && i == 0 {
                text.0 += "ip = 6\n";
            }
        }
        for (i, (count, subflows, control, start, work)) in flows.iter().enumerate() {
            // IPv4 and IPv6 are mixed in no connection
            let first = usize::from(six && *count > 1);
            let paths: Vec<String> = (first..*count).map(|i| format!("p{i}")).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let keys = format!("subflows = {subflows}; start = \"{start}ms\"; {work}");
            text = text.flow(&format!("f{i}"), &paths, controllers()[*control], keys.trim_end_matches("; "));
        }
        text = text.table("[tcp]", &tcp);
        for keys in &traffic {
            text = text.table("[[traffic]]", keys);
        }
        for keys in &changes {
            text = text.table("[[change]]", keys);
        }
        if batch {
            text = text.table("[host.server]", "receive_batch = \"2ms\"; receive_batch_packets = 5");
            text = text.table("[host.client]", "receive_batch = \"300us\"");
        }
        text
    })
}

fn balance(report: &Report, text: &Text) {
    let p = report.packets;
    assert_eq!(p.sent, p.delivered + p.dropped + p.in_flight, "{}", text.0);
    for flow in &report.flows {
        let wanted =
            text.0.split("[[flow]]").skip(1).find(|part| part.contains(&format!("\"{}\"", flow.name))).unwrap();
        let wanted = wanted.split("\n[").next().unwrap_or("");
        let bytes =
            wanted.split("bytes = \"").nth(1).map(|rest| rest.split('B').next().unwrap().parse::<u64>().unwrap());
        if let (Some(bytes), true) = (bytes, flow.completion_s.is_some()) {
            assert_eq!(flow.bytes, bytes, "{}", text.0);
            assert!(flow.delivered_s <= flow.completion_s);
        }
        let drops: u64 = flow.subflows.iter().map(|sub| sub.drops).sum();
        let sent: u64 = flow.subflows.iter().map(|sub| sub.sent).sum();
        assert!(drops <= sent, "{}", text.0);
    }
    for link in &report.links {
        assert!(link.utilisation <= 1.0 + 1e-9, "{}", text.0);
    }
    let drops: u64 = report.links.iter().map(|link| link.drops).sum();
    assert_eq!(drops, p.dropped);
}

fn cases() -> u32 {
    if std::env::var_os("PATHCAST_EVIDENCE").is_some() { 2000 } else { 96 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_scenarios_end_and_balance(text in scenario()) {
        let options = Options { events: EVENTS, time: Nanos::secs(1000), ..Options::default() };
        let report = run(&text.0, &options).report;
        assert_eq!(report.stopped, None, "{} events: {}", report.events, text.0);
        balance(&report, &text);
        // a trace looks on only
        let again = run(&text.0, &Options { trace: Some(Nanos::millis(50)), ..options }).report;
        let events = |report: &Report| Report { events: 0, ..report.clone() };
        prop_assert_eq!(json(&events(&report)), json(&events(&again)));
        prop_assert_eq!(json(&report), json(&run(&text.0, &Options { events: EVENTS, ..Options::default() }).report));
    }
}

#[test]
fn a_limit_ends_the_run_and_is_told() {
    let text = Text::new(1, "20s").path("p", "rate = \"5Mbit\"; delay = \"10ms\"").flow("f", &["p"], "reno", "");
    let events = run(&text.0, &Options { events: 1000, ..Options::default() }).report;
    assert_eq!((events.stopped, events.events), (Some("event-limit"), 1000));
    let time = run(&text.0, &Options { time: Nanos::secs(2), ..Options::default() }).report;
    assert_eq!((time.stopped, time.simulated_s), (Some("time-limit"), 2.0));
    let text = Text(text.0.replace("end = \"20s\"\n", "").replace("\"reno\"", "\"reno\"\nbytes = \"1MB\""));
    let dead = Text(text.0.replace("delay", "loss = 1.0\ndelay"));
    let time = run(&dead.0, &Options { time: Nanos::secs(30), ..Options::default() }).report;
    assert_eq!((time.stopped, time.flows[0].completion_s, time.flows[0].bytes), (Some("time-limit"), None, 0));
}

/// A scenario's `end` is the end of the run, also when its flows have finished and nothing is left to do: rates and
/// utilisation are of that time, and virtual traffic goes on.
#[test]
fn a_run_lasts_until_its_end() {
    let report = Text::new(1, "10s")
        .path("p", "rate = \"8Mbit\"; delay = \"10ms\"")
        .flow("f", &["p"], "reno", "bytes = \"100KB\"")
        .table(
            "[[traffic]]",
            "kind = \"constant\"; link = \"p\"; direction = \"ab\"; rate = \"2Mbit\"; packet = \"500B\"",
        )
        .run();
    assert!(report.flows[0].completion_s.unwrap() < 1.0);
    assert_eq!((report.simulated_s, report.links[0].cross_packets), (10.0, 5001));
    // 250 kB a second for ten, and the flow's 100 kB with their headers, over 1 MB a second
    assert!((report.links[0].utilisation - 0.26).abs() < 0.001, "{}", report.links[0].utilisation);
}

/// Found by the random scenarios: duplicate ACKs of segments that had been sent again were counted as segments that have
/// left the network until there were more of them than segments out.
#[test]
fn duplicate_acks_stand_for_no_more_than_what_is_out() {
    let red = "queue = { kind = \"red\", min = 1, max = 2, limit = 8 }";
    for seed in 780..820 {
        let report = Text::new(seed, "")
            .path("p1", &format!("rate = \"1720kbit\"; delay = \"62ms\"; {red}; loss = 0.0498"))
            .flow("f", &["p1"], "lia", "bytes = \"88001B\"")
            .table("[tcp]", "preset = \"ns2\"; abc_limit = 2; window_validation = true; undo = true")
            .run();
        assert_eq!(report.flows[0].bytes, 88_001);
    }
}
