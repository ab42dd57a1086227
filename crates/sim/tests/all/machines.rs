//! Hosts that carry machines: what they see is what the links and the clocks say, to the nanosecond.

use std::net::IpAddr;

use crate::scripted::{Log, Scripted, Seen};
use pathcast_base::{Bytes, Fault, Nanos, PathAddr, Protocol, Rate};
use pathcast_measure::machine::{Action, Batch, Event, Machine, Progress, Train};
use pathcast_scenario::{End, Scenario};
use pathcast_sim::{MachineError, Options, SessionReport, World};

fn world(text: &str) -> World {
    World::new(Scenario::parse(text, &[]).unwrap()).unwrap()
}

const LINE: &str = r#"
link = [{ name = "wire", a = "client", b = "server", rate = "10Mbit", delay = "20ms", queue = "100 packets" }]
path = [{ name = "p", links = ["wire"] }]
"#;
const DUMBBELL: &str = r#"
link = [
    { name = "in", a = "client", b = "r1", rate = "100Mbit", delay = "1ms", queue = "1000 packets" },
    { name = "mid", a = "r1", b = "r2", rate = "5Mbit", delay = "10ms", queue = "50 packets" },
    { name = "out", a = "r2", b = "server", rate = "100Mbit", delay = "1ms", queue = "1000 packets" },
]
path = [{ name = "p", links = ["in", "mid", "out"] }]
"#;

/// A train whose packets carry their numbers.
fn train(at: Nanos, count: usize, gap: Nanos, size: u16) -> Train {
    Train::even(0, 0, at, count, gap, size).with_heads(8, |seq, head| head.copy_from_slice(&seq.to_be_bytes()))
}

fn run(world: &mut World, client: Box<Scripted>, server: Box<Scripted>) -> SessionReport {
    let report = world.session(client, server, &[0], &Options::default(), |_| ()).unwrap();
    world.check().unwrap();
    report
}

fn sent(log: &Log) -> Vec<Nanos> {
    log.lock().unwrap().iter().filter_map(|seen| if let Seen::Sent(_, at) = seen { Some(*at) } else { None }).collect()
}

fn received(log: &Log) -> Vec<(u64, Nanos, Batch)> {
    let log = log.lock().unwrap();
    log.iter()
        .filter_map(|seen| match seen {
            Seen::Received { seq, at, batch, .. } => Some((*seq, *at, *batch)),
            _ => None,
        })
        .collect()
}

fn gaps(times: &[Nanos]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
}

#[test]
fn one_way_delay_is_serialisation_and_propagation() {
    let mut world = world(DUMBBELL);
    world.wait(Nanos::millis(3));
    let (client, sender) = Scripted::new(Nanos::secs(1), vec![Action::SendTrain(train(Nanos(0), 1, Nanos(0), 1500))]);
    let (server, receiver) = Scripted::listener();
    let report = run(&mut world, client, server);
    let line = |bits: u64| Rate(bits).time_for(1500).0;
    let delay = 2 * line(100_000_000) + line(5_000_000) + 12_000_000;
    let (from, to) = (sent(&sender)[0], received(&receiver)[0].1);
    assert_eq!(from, world.clock(End::Client).local(Nanos::millis(3)));
    assert_eq!(to - from, Nanos(delay));
    assert_eq!(report.elapsed, Nanos::secs(1));
    assert_eq!((report.client.sent_packets, report.client.sent_bytes, report.server.received_bytes), (1, 1500, 1500));
}

#[test]
fn wrong_clocks_show_exactly_what_they_should() {
    let text = format!(
        "{LINE}\n[host.client]\nclock_offset = \"-7s\"\nclock_skew_ppm = -3000.5\n\
         [host.server]\nclock_offset = \"250ms\"\nclock_skew_ppm = 10000"
    );
    let mut world = world(&text);
    world.wait(Nanos::secs(100));
    let script = vec![Action::SendTrain(train(Nanos(0), 50, Nanos::millis(30), 1500))];
    let (client, sender) = Scripted::new(Nanos::secs(3), script);
    let (server, receiver) = Scripted::echo();
    run(&mut world, client, server);
    let (here, there) = (world.clock(End::Client), world.clock(End::Server));
    let (out, at, back) = (sent(&sender), received(&receiver), received(&sender));
    assert_eq!((out.len(), at.len(), back.len()), (50, 50, 50));
    assert_eq!(out[0], here.local(Nanos::secs(100)));
    for i in 0..50 {
        // the first true instant at which the client's clock shows the time that was planned
        let time = here.time(out[0] + Nanos::millis(30) * i as u64);
        assert_eq!(out[i], here.local(time));
        assert_eq!(at[i].1, there.local(time + Nanos(21_200_000)));
        assert_eq!(back[i].1, here.local(time + Nanos(42_400_000)));
    }
}

#[test]
fn a_train_leaves_the_bottleneck_with_its_spacing() {
    for (rate, arrives) in [(10_000_000, 2_240_000), (2_000_000, 5_600_000)] {
        let mut world = world(DUMBBELL);
        let heads = |seq: u64, head: &mut [u8]| head.copy_from_slice(&seq.to_be_bytes());
        let train = Train::paced(0, 0, Nanos(0), 20, Rate(rate), 1400).with_heads(8, heads);
        let (client, sender) = Scripted::new(Nanos::secs(1), vec![Action::SendTrain(train)]);
        let (server, receiver) = Scripted::listener();
        run(&mut world, client, server);
        assert_eq!(gaps(&sent(&sender)), vec![Rate(rate).time_for(1400).0; 19]);
        let at: Vec<Nanos> = received(&receiver).iter().map(|(_, at, _)| *at).collect();
        assert_eq!(gaps(&at), vec![arrives; 19], "sent at {rate} bit/s");
    }
}

#[test]
fn a_host_hands_over_batches() {
    let text = format!("{LINE}\n[host.server]\nreceive_batch = \"5ms\"\nreceive_batch_packets = 4");
    let mut world = world(&text);
    let script = vec![
        Action::SendTrain(train(Nanos(0), 6, Nanos(0), 1250)), // 1 ms each: a full batch of 4, and then 2
        Action::SendTrain(train(Nanos::millis(100), 3, Nanos::millis(4), 1250)), // at 0 and 4 ms, and at 8 ms
    ];
    let (client, _) = Scripted::new(Nanos::secs(1), script);
    let (server, receiver) = Scripted::listener();
    run(&mut world, client, server);
    let zero = world.clock(End::Server).local(Nanos(0));
    let expected = [(4, 24), (2, 30), (2, 126), (1, 134)];
    let mut seen = received(&receiver).into_iter();
    for (of, at_ms) in expected {
        for index in 0..of {
            let (_, at, batch) = seen.next().unwrap();
            assert_eq!((at - zero, batch), (Nanos::millis(at_ms), Batch { index, of }));
            assert_eq!(batch.is_last(), index + 1 == of);
        }
    }
    assert_eq!(seen.next(), None);
}

#[test]
fn what_is_dropped_never_arrives() {
    let mut world = world(&DUMBBELL.replace("50 packets", "3 packets"));
    let (client, sender) = Scripted::new(Nanos::secs(1), vec![Action::SendTrain(train(Nanos(0), 30, Nanos(0), 1500))]);
    let (server, receiver) = Scripted::listener();
    let report = run(&mut world, client, server);
    // 100 Mbit/s against 5: three wait and one is in transmission; one leaves while twenty come
    assert_eq!(received(&receiver).iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), [0, 1, 2, 3, 20]);
    assert_eq!(sent(&sender).len(), 30);
    assert_eq!((report.client.sent_packets, report.server.received_packets), (30, 5));
}

#[test]
fn sizes_marks_and_filling() {
    let text = r#"
        link = [
            { name = "four", a = "client", b = "server", rate = "1Gbit", delay = "1ms", queue = "1MB" },
            { name = "six", a = "client", b = "server", rate = "1Gbit", delay = "2ms", queue = "1MB" },
        ]
        path = [
            { name = "p4", links = ["four"], local = "192.0.2.1", remote = "192.0.2.2" },
            { name = "p6", links = ["six"], local = "2001:db8::1", remote = "2001:db8::2" },
        ]
    "#;
    let mut world = world(text);
    let one = |path, seq, size, dscp, length| {
        let train = Train::new(path, seq, Nanos::millis(seq * 10), Vec::new(), size).marked(dscp);
        Action::SendTrain(train.with_heads(length, |seq, head| head[..8].copy_from_slice(&seq.to_be_bytes())))
    };
    let script = vec![
        one(0, 1, 1500, 46, 8),
        one(0, 2, 0, 0, 20),
        one(1, 3, 0, 63, 20),
        one(1, 4, u16::MAX, 0, 8),
        one(0, 5, 0, 0, 65_507),
        one(0, 6, 0, 0, 65_508), // one too many
    ];
    let (client, sender) = Scripted::new(Nanos::secs(1), script);
    let (server, receiver) = Scripted::echo();
    // the session numbers the paths the other way round
    let swapped = |action| match action {
        Action::SendTrain(train) => Action::SendTrain(Train { path: 1 - train.path, ..train }),
        other => other,
    };
    let client = Box::new(Scripted { script: client.script.into_iter().map(swapped).collect(), ..*client });
    world.session(client, server, &[1, 0], &Options::default(), |_| ()).unwrap();
    world.check().unwrap();
    let facts = |log: &Log| -> Vec<_> {
        let log = log.lock().unwrap();
        let received = log.iter().filter_map(|seen| match *seen {
            Seen::Received { path, seq, payload, size, dscp, .. } => Some((path, seq, payload, size, dscp)),
            _ => None,
        });
        received.collect()
    };
    let expected = [
        (1, 1, 1472, 1500, 46),
        (1, 2, 20, 48, 0),
        (0, 3, 20, 68, 63),
        (0, 4, 65_487, 65_535, 0),
        (1, 5, 65_507, 65_535, 0),
    ];
    assert_eq!(facts(&receiver), expected);
    assert_eq!(facts(&sender), expected);
    assert!(sender.lock().unwrap().contains(&Seen::Unsent(6)));
}

#[test]
fn timers_and_late_trains() {
    let mut world = world(LINE);
    let script = vec![
        Action::WakeAt(Nanos::millis(300)),
        Action::WakeAt(Nanos::millis(100)),
        Action::WakeAt(Nanos::MAX),
        Action::WakeAt(Nanos::millis(200)), // the last word
    ];
    let machine = Scripted { script, ..Scripted::default() };
    let server = machine.log.clone();
    // due long ago: it leaves at once, and keeps its gaps
    let script = vec![Action::SendTrain(train(Nanos(1), 3, Nanos::millis(5), 100))];
    let (client, log) = Scripted::new(Nanos::secs(1), script);
    let client = Box::new(Scripted { absolute: true, ..*client });
    run(&mut world, client, Box::new(machine));
    let start = world.clock(End::Server).local(Nanos(0));
    let timers: Vec<Seen> =
        server.lock().unwrap().iter().filter(|seen| matches!(seen, Seen::Timer(_))).cloned().collect();
    assert_eq!(timers, [Seen::Timer(start + Nanos::millis(200))]);
    assert_eq!(sent(&log), [0, 5, 10].map(|ms| start + Nanos::millis(ms)));
}

/// A machine that wants the same thing again and again.
struct Again(fn(Nanos) -> Option<Action>, bool);

impl Machine for Again {
    fn handle(&mut self, _: Nanos, event: Event<'_>) {
        self.1 |= matches!(event, Event::Started | Event::Timer);
    }
    fn next(&mut self, now: Nanos) -> Option<Action> {
        std::mem::take(&mut self.1).then(|| (self.0)(now)).flatten()
    }
}

/// One that does not even wait for an event.
struct Mad;

impl Machine for Mad {
    fn handle(&mut self, _: Nanos, _: Event<'_>) {}
    fn next(&mut self, _: Nanos) -> Option<Action> {
        Some(Action::Progress(Progress { phase: "madness", done: 0, of: 0 }))
    }
}

#[test]
fn a_machine_that_never_ends_is_stopped() {
    let mut world = world(LINE);
    let start = |world: &mut World, client: Box<dyn Machine>, options: &Options| {
        let error = world.session(client, Scripted::listener().0, &[0], options, |_| ()).unwrap_err();
        world.check().unwrap();
        error
    };
    let each_ms = |now| Some(Action::WakeAt(now + Nanos::millis(1)));
    let short = Options { time: Nanos::secs(2), ..Options::default() };
    let error = start(&mut world, Box::new(Again(each_ms, false)), &short);
    assert_eq!(error, MachineError::Time { limit: Nanos::secs(2), phase: None });
    assert_eq!(error.code(), "time-limit");
    assert!(error.to_string().contains("2s of simulated time"), "{error}");
    assert_eq!(world.now(), Nanos::secs(2));

    let few = Options { events: 1000, ..Options::default() };
    let error = start(&mut world, Box::new(Again(each_ms, false)), &few);
    assert_eq!(error, MachineError::Events { limit: 1000, phase: None });

    let error = start(&mut world, Box::new(Again(|_| None, false)), &Options::default());
    assert_eq!(error, MachineError::Idle { phase: None });
    let error = start(&mut world, Box::new(Again(|now| Some(Action::WakeAt(now)), false)), &Options::default());
    assert!(matches!(error, MachineError::Runaway { host: "client", .. }), "{error}");
    let error = start(&mut world, Box::new(Mad), &Options::default());
    assert!(matches!(error, MachineError::Runaway { host: "client", .. }), "{error}");
    let wrong = |_| Some(Action::SendTrain(Train::even(1, 0, Nanos(0), 2, Nanos(0), 100)));
    let error = start(&mut world, Box::new(Again(wrong, false)), &Options::default());
    assert_eq!(error.to_string(), "a bug in a prober: the client's machine sends over path 1 of 1");

    let stopped = Options::default();
    stopped.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = start(&mut world, Box::new(Again(each_ms, false)), &stopped);
    assert_eq!(error, MachineError::Interrupted);
    // one that answers to it keeps what it has
    let client = Scripted::new(Nanos::secs(1_000_000), Vec::new()).0;
    let forever = Box::new(Again(|now| Some(Action::WakeAt(now + Nanos::millis(1))), false));
    let report = world.session(client, forever, &[0], &stopped, |_| ()).unwrap();
    assert_eq!(report.result, b"stopped");

    let paths = |world: &mut World, paths: &[usize]| {
        world.session(Scripted::listener().0, Scripted::listener().0, paths, &short, |_| ()).unwrap_err()
    };
    assert_eq!(paths(&mut world, &[0, 1]), MachineError::NoPath { path: 1, last: 0 });
    assert_eq!(paths(&mut world, &[]), MachineError::NoPaths);
}

#[test]
fn what_an_ended_session_leaves_behind_does_no_harm() {
    let mut world = world(LINE);
    for _ in 0..5 {
        // it ends with packets in the network, a train half sent and a timer set
        let script = vec![
            Action::SendTrain(train(Nanos(0), 30, Nanos(0), 1500)),
            Action::SendTrain(train(Nanos(0), 30, Nanos::millis(2), 1500)),
        ];
        let (client, _) = Scripted::new(Nanos::millis(25), script);
        let later = Scripted { script: vec![Action::WakeAt(Nanos::millis(30))], ..Scripted::default() };
        let report = run(&mut world, client, Box::new(later));
        assert_eq!((report.client.sent_packets, report.server.received_packets), (43, 4));
        // the next one sees nothing of that
        let script = vec![Action::SendTrain(train(Nanos::millis(100), 2, Nanos::millis(50), 1500))];
        let (client, sender) = Scripted::new(Nanos::millis(200), script);
        let (server, receiver) = Scripted::listener();
        let start = world.clock(End::Client).local(world.now());
        run(&mut world, client, server);
        assert_eq!(sent(&sender), [start + Nanos::millis(100), start + Nanos::millis(150)]);
        let log = receiver.lock().unwrap().clone();
        assert_eq!(log.len(), 3, "{log:?}");
    }
    world.wait(Nanos::secs(1));
    world.check().unwrap();
}

/// Two sessions beside a transfer and cross traffic; everything that they saw.
fn busy(queue: &str) -> (Vec<u8>, Vec<u8>) {
    let text = DUMBBELL.replace("\"50 packets\"", queue).replace("delay = \"10ms\"", "delay = \"10ms\", loss = 0.02")
        + r#"traffic = [{ name = "x", kind = "poisson", link = "mid", direction = "ab", rate = "2Mbit", packet = "1000B" }]"#;
    let mut world = world(&text);
    let many = |gap| vec![Action::SendTrain(train(Nanos(0), 500, gap, 400))];
    let first =
        world.open_session(Scripted::new(Nanos::secs(4), many(Nanos::millis(5))).0, Scripted::echo().0, &[0]).unwrap();
    let second =
        world.open_session(Scripted::new(Nanos::secs(3), many(Nanos::millis(4))).0, Scripted::echo().0, &[0]).unwrap();
    let bytes = Bytes(300_000).0;
    let path = PathAddr::new("p", IpAddr::from([0; 4]), IpAddr::from([0; 4]));
    let flow = world.transfer(&[path], bytes, None, Protocol::Tcp, |_| true).unwrap();
    assert_eq!(flow.bytes, bytes);
    let second = world.conclude(second, &Options::default(), |_| ()).unwrap();
    let first = world.conclude(first, &Options::default(), |_| ()).unwrap();
    assert_eq!((first.elapsed, second.elapsed), (Nanos::secs(4), Nanos::secs(3)));
    for report in [&first, &second] {
        assert_eq!(report.client.sent_packets, 500);
        assert!(report.server.received_packets < 500 && report.client.received_packets > 300, "{:?}", report.client);
    }
    world.check().unwrap();
    (first.result, second.result)
}

#[test]
fn two_sessions_at_once_and_the_same_bytes_again() {
    for queue in ["\"50 packets\"", "{ kind = \"fair\", packets = 50 }"] {
        let (first, second) = busy(queue);
        assert_ne!(first, second);
        assert_eq!(busy(queue), (first, second));
    }
}
