//! Random scenarios of everything that the format has: the run ends, of itself where nothing tells it when; nothing is made or
//! lost between the sender's count, the links' and the engine's; the same comes out twice.

use crate::common::{Text, controllers, json, run};
use pathcast_base::{Bytes, Nanos, PathAddr, Protocol};
use pathcast_scenario::{Flow, Scenario, Source, Workload};
use pathcast_sim::{FlowReport, Options, Report, World};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

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

/// `[tcp]`; without reinjection a dead path keeps what it has for ever, and a run needs an end.
fn tcp(ends: bool) -> impl Strategy<Value = String> {
    let single = prop_oneof![
        3 => Just(""),
        1 => Just("; sack = false; rack = false"),
        1 => Just("; pacing = true"),
        1 => Just("; recovery = \"prr\"; rack = false"),
        1 => Just("; recovery = \"classic\"; limited_transmit = false"),
        u32::from(ends) => Just("; reinjection = false"),
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

/// What a flow does: bytes or a stop; in a run with an end also neither, or pages.
fn work(ends: bool) -> impl Strategy<Value = String> {
    let endless = u32::from(ends);
    prop_oneof![
        4 => (1u32..400_000).prop_map(|bytes| format!("bytes = \"{bytes}B\"")),
        1 => (2000u32..4000).prop_map(|ms| format!("stop = \"{ms}ms\"")),
        endless => Just(String::new()),
        endless => Just("web = { page = \"20KB\", think = \"200ms\" }".to_string()),
    ]
}

/// Beside a run without an end it stops, as its flows may wait for hours.
fn traffic(paths: usize, ends: bool) -> impl Strategy<Value = String> {
    let path = 0..paths;
    let virtually = (0..paths, prop_oneof![Just("ab"), Just("ba")], 10u32..3000, 0u32..3).prop_map(
        move |(link, direction, kbit, kind)| {
            let (kind, more) = match kind {
                0 => ("constant", "packet = \"700B\"".to_string()),
                1 => ("poisson", "packet = \"1500B\"".to_string()),
                _ => ("pareto-onoff", format!("peak = \"{}kbit\"; on = \"500ms\"", 3 * kbit)),
            };
            let stop = if ends { "" } else { "; stop = \"20s\"" };
            let link = format!("link = \"p{link}\"; direction = \"{direction}\"");
            format!("kind = \"{kind}\"; {link}; rate = \"{kbit}kbit\"; {more}{stop}")
        },
    );
    let real = (path, prop_oneof![Just("client"), Just("server")], any::<bool>(), 1u32..4).prop_map(
        move |(path, to, web, n)| {
            let more = if web {
                let stop = if ends { "" } else { "; stop = \"20s\"" };
                format!("kind = \"web\"; clients = {n}; think = \"500ms\"; page = \"15KB\"{stop}")
            } else {
                format!("kind = \"tcp\"; flows = {n}; stagger = \"70ms\"; stop = \"3s\"")
            };
            format!("path = \"p{path}\"; to = \"{to}\"; control = \"reno\"; {more}")
        },
    );
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

fn flows(paths: usize, ends: bool) -> impl Strategy<Value = Vec<(usize, u32, usize, u32, String)>> {
    let one = (1..paths + 1, 1u32..9, 0..controllers().len(), 0u32..1000, work(ends));
    prop::collection::vec(one, 1..4)
}

/// A scenario with an end after 5 s, or with flows of which each ends and one at least has bytes.
fn scenario(ends: bool) -> impl Strategy<Value = Text> {
    let parts = move |paths: usize| {
        (
            prop::collection::vec(link(), paths),
            flows(paths, ends),
            tcp(ends),
            prop::collection::vec(traffic(paths, ends), 0..3),
            prop::collection::vec(change(paths), 0..4),
            (any::<bool>(), any::<bool>(), 0u64..1000),
        )
    };
    (1usize..4).prop_flat_map(parts).prop_map(move |(links, flows, tcp, traffic, changes, (batch, six, seed))| {
        let mut text = Text::new(seed, if ends { "5s" } else { "" });
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
        if !ends {
            text = text.flow("last", &["p0"], "reno", "bytes = \"30KB\"; start = \"1s\"");
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

/// Segments that a flow's bytes are, and the most of the handshake that a subflow sends from its first end: a SYN that is
/// repeated six times, and as often what answers its answer.
const HANDSHAKE: u64 = 7 + 7;

/// What each layer counts of its own must be the same packets.
fn balance(report: &Report, text: &Text) {
    let scenario = Scenario::parse(&text.0, &[]).unwrap();
    let world = World::new(scenario.clone()).unwrap();
    let p = report.packets;
    // paths of one link: what a link carried has arrived
    let carried: u64 = report.links.iter().map(|link| link.packets).sum();
    let drops: u64 = report.links.iter().map(|link| link.drops).sum();
    assert_eq!((carried, carried, drops), (p.delivered, report.packets_forwarded, p.dropped), "{}", text.0);
    assert_eq!(p.sent, p.delivered + p.dropped + p.in_flight, "{}", text.0);
    for link in &report.links {
        assert!(link.utilisation <= 1.0 + 1e-9, "{}", text.0);
        assert!((40 * link.packets..=1520 * link.packets).contains(&link.bytes), "{} {}", link.name, text.0);
    }
    assert_eq!(report.flows.len(), scenario.flows.len());
    for (wanted, flow) in scenario.flows.iter().zip(&report.flows) {
        stream(wanted, flow, |multipath| u64::from(world.mss(wanted.paths[0], multipath)), text);
    }
    // where flows alone send from the client, its links were offered their segments and their handshakes
    let pages = scenario.flows.iter().any(|flow| matches!(flow.workload, Workload::Web { .. }));
    let others = scenario.traffic.iter().any(|traffic| !matches!(traffic.source, Source::Virtual { .. }));
    if !pages && !others {
        let subflows: Vec<_> = report.flows.iter().flat_map(|flow| &flow.subflows).collect();
        let sent: u64 = subflows.iter().map(|sub| sub.sent).sum();
        let out: u64 = report.links.iter().filter(|l| l.direction == "ab").map(|l| l.packets + l.drops).sum();
        let most = sent + HANDSHAKE * subflows.len() as u64;
        assert!(
            sent <= out + p.in_flight && out <= most,
            "{sent} sent, links had {out} and {}: {}",
            p.in_flight,
            text.0
        );
    }
}

/// A flow's bytes against its segments.
fn stream(wanted: &Flow, flow: &FlowReport, mss: impl Fn(bool) -> u64, text: &Text) {
    let what = || format!("{}: {flow:?}\n{}", flow.name, text.0);
    let sum = |get: fn(&pathcast_sim::SubflowReport) -> u64| flow.subflows.iter().map(get).sum::<u64>();
    let (sent, again, drops, acked) = (sum(|s| s.sent), sum(|s| s.retransmits), sum(|s| s.drops), sum(|s| s.bytes));
    assert_eq!((again, sum(|s| s.timeouts)), (flow.retransmits, flow.timeouts), "{}", what());
    let multipath = wanted.paths.len() * wanted.subflows as usize > 1;
    let mss = mss(multipath);
    if matches!(wanted.workload, Workload::Web { .. }) {
        return;
    }
    assert!(flow.bytes <= (sent - drops) * mss, "more than arrived: {}", what());
    let Workload::Bytes(Bytes(bytes)) = wanted.workload else { return };
    assert!(flow.bytes <= bytes, "{}", what());
    assert!(flow.completion_s.is_none() || !flow.failed, "{}", what());
    if flow.completion_s.is_none() {
        return;
    }
    assert_eq!(flow.bytes, bytes, "{}", what());
    assert!(flow.delivered_s <= flow.completion_s, "{}", what());
    let segments = bytes.div_ceil(mss);
    // of every segment a copy has arrived
    assert!(sent - drops >= segments, "{segments} segments: {}", what());
    if multipath {
        assert!(sent - again >= segments && flow.duplicates <= sent - segments, "{segments} segments: {}", what());
    } else {
        assert_eq!((sent - again, acked), (segments, bytes), "{}", what());
    }
}

/// The same scenarios each time; others, and more of them, as evidence.
fn cases() -> ProptestConfig {
    let evidence = std::env::var_os("PATHCAST_EVIDENCE").is_some();
    let (cases, rng_seed) = if evidence { (2000, RngSeed::Random) } else { (96, RngSeed::Fixed(1)) };
    ProptestConfig { cases, rng_seed, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]
    #[test]
    fn random_scenarios_balance(text in scenario(true)) {
        let options = Options { events: EVENTS, time: Nanos::secs(1000), ..Options::default() };
        let report = run(&text.0, &options).report;
        assert_eq!((report.stopped, report.simulated_s), (None, 5.0), "{} events: {}", report.events, text.0);
        balance(&report, &text);
        // a trace looks on only
        let again = run(&text.0, &Options { trace: Some(Nanos::millis(50)), ..options }).report;
        let events = |report: &Report| Report { events: 0, ..report.clone() };
        prop_assert_eq!(json(&events(&report)), json(&events(&again)));
        prop_assert_eq!(json(&report), json(&run(&text.0, &Options { events: EVENTS, ..Options::default() }).report));
    }

    /// Nothing but its flows ends the run: each has its bytes in the end, or was given up after timeouts on every path.
    #[test]
    fn random_scenarios_without_an_end_end(text in scenario(false)) {
        let report = run(&text.0, &Options { events: EVENTS, ..Options::default() }).report;
        assert_eq!(report.stopped, None, "{} events, {} s: {}", report.events, report.simulated_s, text.0);
        balance(&report, &text);
        let scenario = Scenario::parse(&text.0, &[]).unwrap();
        for (wanted, flow) in scenario.flows.iter().zip(&report.flows) {
            let done = flow.completion_s.is_some() || flow.failed || !matches!(wanted.workload, Workload::Bytes(_));
            assert!(done, "{flow:?} {}", text.0);
        }
    }

    /// A network goes on from a copy as it would have without one, wherever it stands: while connections send, before a
    /// change, behind the end of traffic.
    #[test]
    fn random_networks_go_on_from_copies(text in scenario(true), at in 0u64..4_000, bytes in 1u64..200_000) {
        let on = |mut world: World| {
            let pair = |path: &pathcast_scenario::Path| PathAddr::new(path.name.clone(), [0; 4].into(), [0; 4].into());
            let paths: Vec<PathAddr> = world.scenario().paths.iter().map(pair).collect();
            let found = world.transfer(&paths[..1], bytes, Some("reno"), Protocol::Tcp, |_| true);
            let both = world.transfer(&paths, bytes, None, Protocol::Mptcp, |_| true);
            world.check().unwrap();
            (format!("{found:?} {both:?}"), serde_json::to_string(&world.ledger()).unwrap(), world.now())
        };
        let begin = || {
            let mut world = World::open(&text.0.replace("ip = 6\n", ""), &[]).unwrap();
            world.wait(Nanos::millis(at));
            world
        };
        let network = begin();
        let copy = network.copy().unwrap();
        let expected = on(begin());
        prop_assert_eq!(&on(copy), &expected, "{}", text.0);
        prop_assert_eq!(&on(network), &expected, "{}", text.0);
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

/// Found by the random scenarios: what the last subflow had given to the others stood before what it was to take from them,
/// and the transfer never ended.
#[test]
fn the_last_subflow_takes_over_what_the_others_had() {
    let mut died = 0;
    for tcp in ["ns3", "linux", "rfc"] {
        for scheduler in ["linux", "minrtt", "roundrobin"] {
            for seed in 0..10 {
                let report = Text::new(seed, "")
                    .path("stays", "rate = \"4590kbit\"; delay = \"19ms\"; loss = 0.21")
                    .path("dies", "rate = \"401kbit\"; delay = \"77ms\"")
                    .flow("f", &["stays", "dies"], "reno", "bytes = \"180KB\"")
                    .table("[tcp]", &format!("preset = \"{tcp}\"; scheduler = \"{scheduler}\""))
                    .table("[[change]]", "at = \"800ms\"; link = \"dies\"; loss = 1.0")
                    .run();
                let flow = &report.flows[0];
                let what = format!("{tcp}, {scheduler}, {seed}: {flow:?}");
                assert_eq!((report.stopped, flow.bytes, flow.failed), (None, 180_000, false), "{what}");
                died += u32::from(!flow.subflows[1].alive);
            }
        }
    }
    assert!(died >= 30, "{died}");
}

/// What timed out while nobody else was open is given to who joins later, before the first subflow is given up and after.
#[test]
fn who_joins_late_takes_over_what_timed_out_before() {
    for (tcp, opens) in [("linux", 2.1), ("ns3", 3.1)] {
        let report = Text::new(1, "")
            .path("dies", "delay = \"10ms\"")
            .path("late", "delay = \"50ms\"; loss = 1.0")
            .flow("f", &["dies", "late"], "reno", "bytes = \"1KB\"")
            .table("[tcp]", &format!("preset = \"{tcp}\"; join = \"together\""))
            .table("[[change]]", "at = \"15ms\"; link = \"dies\"; loss = { ab = 1.0 }")
            .table("[[change]]", "at = \"2s\"; link = \"late\"; loss = 0.0")
            .run();
        let flow = &report.flows[0];
        assert_eq!(flow.subflows[1].joined_s, Some(opens), "{tcp}: {flow:?}");
        assert_eq!((report.stopped, flow.bytes, flow.subflows[1].sent), (None, 1000, 1), "{tcp}: {flow:?}");
        assert!(flow.timeouts > 1 && flow.completion_s < Some(10.0), "{tcp}: {flow:?}");
    }
}
