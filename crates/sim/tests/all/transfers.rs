//! What a transfer in a standing network tells beside its throughput, and the limit of events.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use pathcast_base::{Exit, Fault, Nanos, PathAddr, Protocol, TransferReport};
use pathcast_sim::{Order, PauseError, TransferError, World};

const TEXT: &str = "seed = 3\n[[link]]\nname = \"p\"\na = \"client\"\nb = \"server\"\nrate = \"10Mbit\"\ndelay = \"20ms\"\n\
                    queue = \"40 packets\"\nloss = { ab = 0.002 }\n[[path]]\nname = \"p\"\nlinks = [\"p\"]\n\
                    [[link]]\nname = \"q\"\na = \"client\"\nb = \"server\"\nrate = \"4Mbit\"\ndelay = \"30ms\"\n\
                    [[path]]\nname = \"q\"\nlinks = [\"q\"]\n";

fn pairs(names: &[&str]) -> Vec<PathAddr> {
    names.iter().map(|name| PathAddr::new(*name, IpAddr::from([0; 4]), IpAddr::from([0; 4]))).collect()
}

fn carry(world: &mut World, names: &[&str], bytes: u64, every: Option<Nanos>) -> Result<TransferReport, TransferError> {
    let protocol = if names.len() > 1 { Protocol::Mptcp } else { Protocol::Tcp };
    world.carry(&Order { pairs: &pairs(names), bytes, control: None, protocol, every, plain: false }, |_| true)
}

#[test]
fn recoveries_and_timeouts_are_those_of_the_same_flow_of_a_scenario() {
    let text = format!(
        "{TEXT}[[flow]]\nname = \"f\"\npaths = [\"p\"]\nbytes = \"5MB\"\n[[change]]\nat = \"2s\"\nlink = \"p\"\n\
                        loss = {{ ab = 1.0 }}\n[[change]]\nat = \"3s\"\nlink = \"p\"\nloss = {{ ab = 0.002 }}\n"
    );
    let scenario = pathcast_scenario::Scenario::parse(&text, &[]).unwrap();
    let report = pathcast_sim::simulate(scenario, &pathcast_sim::Options::default()).unwrap().report;
    let found = carry(&mut World::open(&text, &[]).unwrap(), &["p"], 5_000_000, None).unwrap();
    let subflow = &found.subflows[0];
    let (timeouts, recoveries) = (u64::from(subflow.timeouts.unwrap()), u64::from(subflow.recoveries.unwrap()));
    assert_eq!((timeouts, recoveries), (report.flows[0].timeouts, report.flows[0].recoveries));
    assert!(timeouts > 0 && recoveries > 2, "{found:?}");
    assert!(found.samples.is_empty());
}

#[test]
fn samples_tell_the_progress_and_change_nothing() {
    for names in [&["p"][..], &["p", "q"]] {
        let plain = carry(&mut World::open(TEXT, &[]).unwrap(), names, 4_000_000, None).unwrap();
        let mut world = World::open(TEXT, &[]).unwrap();
        let found = carry(&mut world, names, 4_000_000, Some(Nanos::millis(50))).unwrap();
        assert_eq!(TransferReport { samples: Vec::new(), ..found.clone() }, plain);
        world.check().unwrap();
        assert_eq!(found.samples.len(), (found.elapsed_s / 0.05) as usize);
        let mut before = 0;
        for (n, sample) in found.samples.iter().enumerate() {
            assert!((sample.at_s - 0.05 * (n + 1) as f64).abs() < 1e-9);
            assert!((before..=4_000_000).contains(&sample.bytes));
            before = sample.bytes;
        }
        let last = found.samples.last().unwrap();
        assert_eq!(last.subflows.len(), names.len());
        assert!(last.subflows.iter().all(|sub| sub.cwnd_packets > 0 && sub.srtt_s.is_some_and(|rtt| rtt > 0.04)));
        let acked: u64 = last.subflows.iter().map(|sub| sub.bytes_acked).sum();
        assert!(before > 3_700_000 && acked > 3_700_000 && acked < 4_100_000, "{before} {acked}");
    }
}

#[test]
fn a_limit_of_events_ends_a_transfer_and_a_pause_and_names_itself() {
    let mut world = World::open(TEXT, &[]).unwrap();
    world.limit(3_000);
    let error = carry(&mut world, &["p"], 4_000_000, Some(Nanos::millis(1))).unwrap_err();
    assert!(error.to_string().contains("after 3000 events of the simulator, the limit"), "{error}");
    assert_eq!((error.code(), error.exit()), ("event-limit", Exit::Runtime));
    assert!(error.hint().unwrap().contains("--limit-events"));
    // what was on its way goes on, and the next has a limit of its own
    carry(&mut world, &["q"], 100_000, None).unwrap();
    world.check().unwrap();
    let busy = format!("{TEXT}[[traffic]]\nkind = \"tcp\"\npath = \"p\"\n");
    let mut world = World::open(&busy, &[]).unwrap();
    world.limit(500);
    let error = world.pass(Nanos::secs(60), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(error, PauseError::Events { time: Nanos::secs(60), limit: 500 });
    assert_eq!(error.to_string(), "60s of simulated time had not passed after 500 events of the simulator, the limit");
    world.limit(u64::MAX);
    world.pass(Nanos::secs(1), &AtomicBool::new(true)).unwrap();
    assert_eq!(world.pass(Nanos::secs(100), &AtomicBool::new(true)), Err(PauseError::Interrupted));
}

#[test]
fn a_transfer_that_nobody_waits_for_leaves_a_network_that_goes_on() {
    let mut world = World::open(TEXT, &[]).unwrap();
    let mut asked = 0;
    let stop = |_| {
        asked += 1;
        asked < 3
    };
    let order = Order {
        pairs: &pairs(&["p"]),
        bytes: 900_000_000,
        control: None,
        protocol: Protocol::Tcp,
        every: None,
        plain: false,
    };
    assert_eq!(world.carry(&order, stop), Err(TransferError::Interrupted));
    carry(&mut world, &["p", "q"], 100_000, None).unwrap();
    world.check().unwrap();
}

/// An hour is not enough at the rate that the link has come to, or comes to; only a transfer that stands still is late.
#[test]
fn a_transfer_may_take_what_the_rates_of_its_time_need() {
    let text = |rate: &str, change: &str| {
        format!(
            "[[link]]\nname = \"p\"\na = \"client\"\nb = \"server\"\nrate = \"{rate}\"\ndelay = \"20ms\"\nqueue = \"40 packets\"\n\
             [[path]]\nname = \"p\"\nlinks = [\"p\"]\n{change}"
        )
    };
    let bytes = 8_000_000; // 6400 s at 10 kbit/s
    let change = "[[change]]\nat = \"2s\"\nlink = \"p\"\nrate = \"10kbit\"\n";
    for (before, amends) in [(0, false), (20, false), (0, true), (20, true)] {
        let mut world = World::open(&text("10Mbit", if amends { "" } else { change }), &[]).unwrap();
        world.wait(Nanos::secs(before));
        if amends {
            world.amend("p", None, &[("rate".into(), "10kbit".into())]).unwrap();
        }
        let took = carry(&mut world, &["p"], bytes, None).map(|report| report.elapsed_s);
        assert!(took.as_ref().is_ok_and(|&s| s > 3600.0), "after {before} s, amended {amends}: {took:?}");
    }

    // no change of a slow past, nor one of another link
    let others = text("10kbit", "[[change]]\nat = \"2s\"\nlink = \"p\"\nrate = \"10Mbit\"\n");
    let cut = "[[change]]\nat = \"21s\"\nlink = \"p\"\nloss = 1.0\n[[link]]\nname = \"q\"\na = \"client\"\nb = \"server\"\n\
               rate = \"1kbit\"\n[[traffic]]\nkind = \"poisson\"\nlink = \"q\"\ndirection = \"ab\"\nrate = \"100bit\"\n";
    let mut world = World::open(&(others + cut), &[]).unwrap();
    world.wait(Nanos::secs(20));
    let error = carry(&mut world, &["p"], bytes, None).unwrap_err();
    assert!(world.now() < Nanos::secs(20 + 3601), "{error} at {}", world.now());
}
