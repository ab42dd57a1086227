//! What good scenarios mean: defaults, resolved names, directions, changes, addresses.

use std::net::IpAddr;

use crate::common::{SMALL, after, good, instead};
use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Bucket, Cross, Fair, Jitter, Params, Queue};
use pathcast_scenario::{
    Changed, Direction, End, Hop, Join, PathAddresses, Place, Preset, Recovery, ScenarioError, Scheduler, Source, Tcp,
    Value, Web, Workload, addresses,
};

#[test]
fn defaults() {
    let s = good(SMALL);
    assert_eq!((s.name.as_str(), s.seed, s.end), ("scenario", 1, Some(Nanos::secs(10))));
    let default = Params::default();
    assert_eq!(s.links[0].ab, Params { rate: Some(Rate(5_000_000)), ..default });
    assert_eq!(s.links[0].ab, s.links[0].ba);
    let flow = &s.flows[0];
    assert_eq!((flow.subflows, flow.control.as_str(), flow.workload), (1, "cubic", Workload::Greedy));
    assert_eq!((flow.start, flow.stop, flow.is_multipath()), (Nanos::ZERO, None, false));
    assert_eq!((s.paths[0].ip, s.paths[0].server), (4, 0));
    assert_eq!(s.tcp, Tcp::default());
    assert!(s.traffic.is_empty() && s.changes.is_empty() && s.control.is_empty());
    assert_eq!(good(&instead("rate", "")).links[0].ab.rate, None);
}

#[test]
fn every_link_key_in_both_forms() {
    let link = |line: &str| good(&after("rate", line)).links.remove(0);
    assert_eq!(link("delay = \"3ms\"").ba.delay, Nanos::millis(3));
    let split = link("delay = { ba = \"3ms\" }");
    assert_eq!((split.ab.delay, split.ba.delay), (Nanos::ZERO, Nanos::millis(3)));
    assert_eq!(link("queue = \"50 packets\"").ab.queue, Queue::Packets(50));
    assert_eq!(link("queue = \"1 packet\"").ab.queue, Queue::Packets(1));
    assert_eq!(link("queue = { ab = \"150KB\" }").ab.queue, Queue::Bytes(Bytes(150_000)));
    assert_eq!(link("queue = { ab = \"150KB\" }").ba.queue, Queue::default());
    let red = "{ kind = \"red\", min = 5, max = 15, limit = 50 }";
    for (line, ba) in [(format!("queue = {red}"), true), (format!("queue = {{ ab = {red} }}"), false)] {
        let link = link(&line);
        let Queue::Red(red) = &link.ab.queue else { panic!("{:?}", link.ab.queue) };
        assert_eq!((red.min, red.max, red.limit, red.probability, red.weight), (5.0, 15.0, 50, 0.1, 0.002));
        assert_eq!(matches!(link.ba.queue, Queue::Red(_)), ba);
    }
    let fair = |packets, quantum| Queue::Fair(Fair { packets, quantum: Bytes(quantum) });
    assert_eq!(link("queue = { kind = \"fair\", packets = 100 }").ba.queue, fair(100, 1514));
    let one = link("queue = { ba = { kind = \"fair\", packets = 9, quantum = \"3KB\" } }");
    assert_eq!((one.ab.queue, one.ba.queue), (Queue::default(), fair(9, 3000)));
    assert_eq!(link("loss = 1").ab.loss, 1.0);
    assert_eq!(link("loss = { ab = 0.5, ba = 0.25 }").ba.loss, 0.25);
    assert_eq!(link("overhead = \"38B\"").ab.overhead, Bytes(38));
    let jitter = Jitter { amplitude: Nanos::millis(2), step: Nanos::millis(20) };
    assert_eq!(link("jitter = { amplitude = \"2ms\" }").ab.jitter, Some(jitter));
    assert_eq!(link("jitter = { ba = { amplitude = \"2ms\" } }").ba.jitter, Some(jitter));
    assert_eq!(link("jitter = { ba = { amplitude = \"2ms\" } }").ab.jitter, None);
    let bucket = Bucket { rate: Rate(1_000_000), burst: Bytes(10_000) };
    assert_eq!(link("bucket = { rate = \"1Mbit\", burst = \"10KB\" }").ba.bucket, Some(bucket));
    assert_eq!(link("chunk = { ab = \"100us\" }").ab.chunk, Nanos::micros(100));
    assert_eq!(link("chunk = { ab = \"100us\" }").ba.chunk, Params::default().chunk);
}

#[test]
fn paths_know_their_directions() {
    let s = good(
        "[[link]]\nname = \"1\"\na = \"r\"\nb = \"client\"\n[[link]]\nname = \"2\"\na = \"r\"\nb = \"server\"\n\
         [[path]]\nname = \"p\"\nlinks = [\"1\", \"2\"]\n",
    );
    let hop = |link, direction| Hop { link, direction };
    assert_eq!(s.paths[0].hops, [hop(0, Direction::Ba), hop(1, Direction::Ab)]);
    assert_eq!(s.paths[0].hops_to(End::Server), s.paths[0].hops);
    assert_eq!(s.paths[0].hops_to(End::Client), [hop(1, Direction::Ba), hop(0, Direction::Ab)]);
    assert_eq!(s.links[0].nodes(Direction::Ba), ("client", "r"));
}

#[test]
fn traffic_of_every_kind() {
    let text = SMALL.to_owned()
        + r#"
[[traffic]]
kind = "constant"
link = "wire"
direction = "ba"
rate = "1Mbit"
[[traffic]]
kind = "poisson"
name = "voice"
link = "wire"
direction = "ab"
rate = "2.4Mbit"
packet = "200B"
start = "1s"
stop = "2s"
[[traffic]]
kind = "pareto-onoff"
link = "wire"
direction = "ab"
rate = "1Mbit"
peak = "2Mbit"
on = "500ms"
[[traffic]]
kind = "tcp"
path = "path1"
flows = 3
stagger = "100ms"
control = "reno"
[[traffic]]
kind = "web"
path = "path1"
to = "client"
clients = 20
"#;
    let s = good(&text);
    let names: Vec<&str> = s.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["traffic1", "voice", "traffic3", "traffic4", "traffic5"]);
    let cross = |i: usize| match &s.traffic[i].source {
        Source::Virtual { link: 0, direction, cross } => (*direction, cross.clone()),
        other => panic!("{other:?}"),
    };
    let packet = Bytes(1500);
    let rate = Rate(1_000_000);
    assert_eq!(cross(0), (Direction::Ba, Cross::Constant { rate, packet }));
    assert_eq!(cross(1), (Direction::Ab, Cross::Poisson { rate: Rate(2_400_000), packet: Bytes(200) }));
    assert_eq!((s.traffic[1].start, s.traffic[1].stop), (Nanos::secs(1), Some(Nanos::secs(2))));
    let (peak, on) = (Rate(2_000_000), Nanos::millis(500));
    assert_eq!(cross(2).1, Cross::ParetoOnoff { rate, peak, on, shape: 1.5, packet });
    let (path, to, stagger) = (0, End::Server, Nanos::millis(100));
    assert_eq!(s.traffic[3].source, Source::Tcp { path, to, flows: 3, stagger, control: "reno".into() });
    let web = Web { page: Bytes(60_000), shape: 1.2, think: Nanos::secs(15) };
    let source = Source::Web { path, to: End::Client, clients: 20, control: "cubic".into(), web };
    assert_eq!(s.traffic[4].source, source);
    assert_eq!(s.controls().into_iter().collect::<Vec<_>>(), ["cubic", "reno"]);
}

#[test]
fn flows_repeat_their_paths_in_turn() {
    let two = SMALL.to_owned().replace("[[flow]]", "[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\n[[flow]]");
    let flow = |keys: &str| good(&two.replace("paths = [\"path1\"]", keys)).flows.remove(0);
    let both = flow("paths = [\"path2\", \"path1\"]");
    assert_eq!((both.subflows, both.is_multipath()), (2, true));
    assert_eq!(both.subflow_paths().collect::<Vec<_>>(), [1, 0]);
    let five = flow("paths = [\"path1\", \"path2\"]\nsubflows = 5");
    assert_eq!(five.subflow_paths().collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    let one = flow("paths = [\"path1\", \"path2\"]\nsubflows = 1");
    assert_eq!((one.subflow_paths().collect::<Vec<_>>(), one.is_multipath()), (vec![0], true));
    let bulk = flow("paths = [\"path1\"]\nbytes = \"750KB\"\nstart = \"2s\"");
    assert_eq!((bulk.workload, bulk.start), (Workload::Bytes(Bytes(750_000)), Nanos::secs(2)));
    let web = flow("paths = [\"path1\"]\nweb = { think = \"1s\" }\nstop = \"9s\"").workload;
    assert_eq!(web, Workload::Web(Web { page: Bytes(60_000), shape: 1.2, think: Nanos::secs(1) }));
    // with an end of its own a flow needs none of the run
    let s = good(&after("paths", "bytes = \"1MB\"").replace("end = \"10s\"\n", ""));
    assert_eq!(s.end, None);
}

#[test]
fn tcp_and_control() {
    let s = good(&after(
        "paths",
        "[tcp]\npreset = \"ns3\"\ninitial_window = 1\nmss = \"1400B\"\ninitial_ssthresh = \"65535B\"\nsack = false\n\
         delayed_ack = 1\ndelayed_ack_timeout = \"40ms\"\nmin_rto = \"1s\"\ninitial_rto = \"3s\"\n\
         receive_buffer = \"4MiB\"\nsend_buffer = \"4MiB\"\npacing = true\nlimited_transmit = true\nrecovery = \"classic\"\n\
         rack = false\nundo = false\nquick_ack = false\nwindow_validation = true\nidle_restart = false\nusec_timestamps = true\nabc_limit = 2\n\
         autotuning = true\necn = true\nfin = true\n\
         scheduler = \"roundrobin\"\njoin = \"together\"\nreinjection = true\nsteering = true\n\
         [control.gsam]\ntheta = 3\ngain = 0.5\nresume = true\nhold = \"100ms\"\n",
    ));
    let all = Tcp {
        preset: Preset::Ns3,
        initial_window: Some(1),
        mss: Some(Bytes(1400)),
        initial_ssthresh: Some(Bytes(65_535)),
        sack: Some(false),
        delayed_ack: Some(1),
        delayed_ack_timeout: Some(Nanos::millis(40)),
        min_rto: Some(Nanos::secs(1)),
        initial_rto: Some(Nanos::secs(3)),
        receive_buffer: Some(Bytes(4 << 20)),
        send_buffer: Some(Bytes(4 << 20)),
        pacing: Some(true),
        limited_transmit: Some(true),
        recovery: Some(Recovery::Classic),
        rack: Some(false),
        undo: Some(false),
        quick_ack: Some(false),
        window_validation: Some(true),
        idle_restart: Some(false),
        usec_timestamps: Some(true),
        abc_limit: Some(2),
        autotuning: Some(true),
        ecn: Some(true),
        fin: Some(true),
        scheduler: Some(Scheduler::RoundRobin),
        join: Some(Join::Together),
        reinjection: Some(true),
        steering: Some(true),
    };
    assert_eq!(s.tcp, all);
    let one = |line: &str| good(&after("paths", &format!("[tcp]\n{line}"))).tcp;
    assert_eq!(one("scheduler = \"minrtt\"").scheduler, Some(Scheduler::MinRtt));
    assert_eq!(one("join = \"handshake\"").join, Some(Join::Handshake));
    assert_eq!(one("abc_limit = 65535").abc_limit, Some(65_535));
    assert_eq!((one("rack = true").rack, one("sack = false").rack), (Some(true), None));
    let gsam = &s.control["gsam"];
    assert_eq!(gsam["theta"], Value::Integer(3));
    assert_eq!(gsam["gain"], Value::Float(0.5));
    assert_eq!(gsam["resume"], Value::Bool(true));
    assert_eq!(gsam["hold"], Value::Text("100ms".into()));
    assert!(s.controls().contains("gsam"));
}

#[test]
fn a_fair_queue_can_change_its_limit() {
    let text = after("rate", "queue = { ab = { kind = \"fair\", packets = 9 } }")
        + "[[change]]\nat = \"1s\"\nlink = \"wire\"\ndirection = \"ab\"\nqueue = { kind = \"fair\", packets = 5 }\n\
           [[change]]\nat = \"2s\"\nlink = \"wire\"\nqueue = { ba = \"3 packets\" }\n";
    let s = good(&text);
    let queue = |i: usize| match &s.changes[i].what {
        Changed::Link { params, .. } => params.queue.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(queue(0), Queue::Fair(Fair { packets: 5, quantum: Bytes(1514) }));
    assert_eq!(queue(1), Queue::Packets(3));
}

#[test]
fn changes_accumulate_in_order_of_time() {
    let text = SMALL.to_owned()
        + r#"
[[traffic]]
kind = "poisson"
link = "wire"
direction = "ab"
rate = "1Mbit"
[[change]]
at = "3s"
link = "wire"
loss = { ba = 0.5 }
[[change]]
at = "1s"
link = "wire"
direction = "ab"
rate = "2Mbit"
[[change]]
at = "2s"
link = "wire"
delay = "9ms"
[[change]]
at = "2s"
traffic = "traffic1"
packet = "500B"
[[change]]
at = "2s"
link = "wire"
direction = "ab"
delay = "8ms"
"#;
    let s = good(&text);
    let link = |i: usize| match &s.changes[i].what {
        Changed::Link { link: 0, direction, params, .. } => (s.changes[i].at.0 / 1_000_000_000, *direction, params),
        other => panic!("{other:?}"),
    };
    let base = s.links[0].ab.clone();
    let slow = Params { rate: Some(Rate(2_000_000)), ..base.clone() };
    assert_eq!(link(0), (1, Direction::Ab, &slow));
    let late = |params: &Params, ms: u64| Params { delay: Nanos::millis(ms), ..params.clone() };
    assert_eq!(link(1), (2, Direction::Ab, &late(&slow, 9)));
    assert_eq!(link(2), (2, Direction::Ba, &late(&base, 9)));
    let cross = Cross::Poisson { rate: Rate(1_000_000), packet: Bytes(500) };
    assert_eq!(s.changes[3].what, Changed::Traffic { traffic: 0, cross });
    assert_eq!(link(4), (2, Direction::Ab, &late(&slow, 8)));
    assert_eq!(link(5), (3, Direction::Ba, &Params { loss: 0.5.into(), ..late(&base, 9) }));
    assert_eq!(s.changes.len(), 6);
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn generated_addresses() {
    let three = SMALL.to_owned()
        + "subflows = 3\n[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\nremote = \"path3\"\n\
           [[path]]\nname = \"path3\"\nlinks = [\"wire\"]\n\
           [[path]]\nname = \"path4\"\nlinks = [\"wire\"]\nip = 6\n";
    let found = addresses(&good(&three), 9);
    let path = |local: &[&str], remote: &str, prefix, on_link| PathAddresses {
        local: local.iter().map(|text| ip(text)).collect(),
        remote: ip(remote),
        prefix,
        on_link,
    };
    assert_eq!(found[0], path(&["10.9.1.2", "10.9.1.3", "10.9.1.4"], "10.9.1.1", 24, true));
    assert_eq!(found[1], path(&["10.9.2.2"], "10.9.103.1", 24, false));
    assert_eq!(found[2], path(&["10.9.3.2"], "10.9.103.1", 24, false));
    assert_eq!(found[3], path(&["fd70:6174:6809:4::2"], "fd70:6174:6809:4::1", 64, true));
}

#[test]
fn given_addresses() {
    let text = after("links", "local = \"192.0.2.7\"\nremote = \"198.51.100.1\"") + "subflows = 2\n";
    let s = good(&text);
    assert_eq!(addresses(&s, 9)[0].local, [ip("192.0.2.7"), ip("192.0.2.8")]);
    assert!(!addresses(&s, 9)[0].on_link);
    // the same literal shares the server too, and the family follows from the literal
    let six = after("links", "local = \"fd01::7\"\nremote = \"fd09::1\"")
        + "[[path]]\nname = \"path2\"\nlinks = [\"wire\"]\nlocal = \"fd02::7\"\nremote = \"fd09::1\"\n";
    let s = good(&six);
    assert_eq!((s.paths[0].ip, s.paths[1].ip, s.paths[1].server), (6, 6, 0));
}

#[test]
fn refusals_of_other_rooms_have_their_line_or_set() {
    let place = |text: &str, sets: &[(&str, &str)], key: &str| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        match ScenarioError::refused(text, &sets, None, key.into(), "wrong".into(), "right".into()) {
            ScenarioError::Refused(refusal) => refusal.place,
            other => panic!("{other}"),
        }
    };
    let line = |text: &str, key: &str| place(text, &[], key);
    assert_eq!(line(SMALL, "flow.bulk.paths"), Place::Line(12));
    assert_eq!(line(SMALL, "end"), Place::Line(1));
    assert_eq!(line(SMALL, "flow.bulk"), Place::Line(10));
    assert_eq!(line(SMALL, "flow.bulk.control"), Place::Line(1)); // it is not there
    assert_eq!(
        line(&after("paths", "[host.client]\nclock_skew_ppm = 1"), "host.client.clock_skew_ppm"),
        Place::Line(14)
    );
    assert_eq!(line(&after("paths", "[control.gsam]\nx = 1"), "control.gsam.x"), Place::Line(14));
    let set = |text: &str| Place::Set(text.into());
    assert_eq!(place(SMALL, &[("control", "x"), ("end", "1s")], "flow.bulk.control"), set("control=x"));
    assert_eq!(
        place(SMALL, &[("flow.bulk.paths", "a"), ("flow.bulk.paths", "b")], "flow.bulk.paths"),
        set("flow.bulk.paths=b")
    );
}
