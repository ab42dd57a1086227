//! Privileged: what goes wrong around a controller in the kernel, and what must go on all the same. `loader.rs` has the
//! rest: unloading in use, a killed loader without a pin, full maps, a peer without MPTCP.

mod kernel_log;
mod live;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use kernel_log::KernelLog;
use live::{
    Bulk, NEW, TWO, able, able_multipath, counted, defaults, multipath, name, network, protocols, scenario, set, until,
    until_released,
};
use pathcast_base::{Exit, Fault};
use pathcast_congestion::controller;
use pathcast_emu::inside;
use pathcast_kernel::{Loaded, free_name, pin_root, ready, registered};
use pathcast_scenario::Direction;
use socket2::Protocol;

/// Not a test of its own: the process that the next one kills.
#[test]
fn pins_a_controller_until_it_is_killed() {
    let Ok(name) = std::env::var("PATHCAST_TEST_PIN") else { return };
    let at = pin_root("pathcast-test").unwrap().join(&name);
    let _loaded = Loaded::load(&name, &defaults("lia"), Some(&at)).unwrap();
    println!("pinned");
    sleep(Duration::from_secs(60));
}

#[test]
fn a_pinned_controller_outlives_a_killed_loader_with_its_flows() {
    let what = "a killed loader with a pin";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let log = KernelLog::open();
    let kernel = name();
    let mut loader = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pins_a_controller_until_it_is_killed", "--nocapture"])
        .env("PATHCAST_TEST_PIN", &kernel)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(loader.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.into_iter().any(|line| line.ends_with("pinned")), "the loader has pinned it");
    let protocol = if multipath() { Protocol::MPTCP } else { Protocol::TCP };
    let bulk = Bulk::start(&network, protocol, &kernel);
    bulk.goes_on(100_000);
    loader.kill().unwrap();
    loader.wait().unwrap();
    let opened = Loaded::open(&pin_root("pathcast-test").unwrap().join(&kernel)).unwrap();
    let acked = || opened.flows().unwrap().iter().map(|flow| flow.bytes_acked).sum::<u64>();
    let before = acked();
    bulk.goes_on(NEW);
    until("its flows are shown, and go on", || acked() > before + 50_000);
    assert!(registered().contains(&kernel));
    let second = Bulk::start(&network, protocol, &kernel);
    for bulk in [&bulk, &second] {
        bulk.goes_on(NEW);
    }
    for bulk in [bulk, second] {
        bulk.stop();
    }
    until_released(&opened);
    opened.unload().unwrap();
    until("the name is free", || !registered().contains(&kernel));
    log.quiet();
}

#[test]
fn the_name_of_an_unloaded_controller_is_free_while_flows_still_use_it() {
    let what = "the name of a controller in use";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO[..1], "50 packets")) else { return };
    let log = KernelLog::open();
    let kernel = name();
    let first = Loaded::load(&kernel, &defaults("imtcp_bg"), None).unwrap();
    let old = Bulk::start(&network, Protocol::TCP, &kernel);
    old.goes_on(100_000);
    first.unload().unwrap();
    // flows of the first one live on under it, beside flows of the second
    let second = Loaded::load(&kernel, &defaults("ledbatpp"), None).unwrap();
    let new = Bulk::start(&network, Protocol::TCP, &kernel);
    for bulk in [&old, &new] {
        bulk.goes_on(NEW);
    }
    assert_eq!((second.counts().unwrap().opened, second.flows().unwrap().len()), (1, 1), "the new flow only");
    for bulk in [old, new] {
        bulk.stop();
    }
    until_released(&second);
    assert_eq!(second.counts().unwrap().closed, 1);
    second.unload().unwrap();
    assert!(free_name(controller("ledbatpp").unwrap()).is_ok());
    log.quiet();
}

#[test]
fn a_path_that_dies_leaves_the_transfer_to_the_other() {
    let what = "a subflow that dies";
    if !able(what) || !able_multipath(what) {
        return;
    }
    let log = KernelLog::open();
    thread::scope(|scope| {
        for control in ["lia", "imtcp_bg"] {
            scope.spawn(move || second_path_dies(what, control));
        }
    });
    log.quiet();
}

fn second_path_dies(what: &str, control: &str) {
    let Some(mut network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let loaded = Loaded::load(&name(), &defaults(control), None).unwrap();
    let bulk = Bulk::start(&network, Protocol::MPTCP, loaded.name());
    until("data over both paths", || {
        let flows = loaded.flows().unwrap();
        flows.len() == 2 && flows.iter().all(|flow| flow.bytes_acked > 100_000)
    });
    let flows = loaded.flows().unwrap();
    assert_eq!(flows.len(), 2, "{flows:?}");
    // nothing gets through the second path any more, and nobody is told
    network.set("l1", None, &[("loss".into(), "1".into())]).unwrap();
    let first: IpAddr = network.describe().paths[0].remote;
    let acked = || {
        let flows = loaded.flows().unwrap();
        flows.iter().find(|flow| flow.remote.ip() == first).map_or(0, |flow| flow.bytes_acked)
    };
    let (start, before) = (Instant::now(), acked());
    bulk.goes_on(NEW); // what was under way there has timed out, and came the other way
    until("acks over the path that is left", || acked() > before + 200_000);
    println!("{control}: {} bytes in {:?} over the path that is left", acked() - before, start.elapsed());
    // its address goes: the subflow is closed; when its FIN is given up the slot is free, and the rest goes on
    let (server, client) = (network.describe().server, network.describe().client);
    inside(&client, || fs::write("/proc/sys/net/ipv4/tcp_orphan_retries", "1")).unwrap().unwrap();
    let done = Command::new("ip").args(["-n", &server, "mptcp", "endpoint", "flush"]).status().unwrap();
    assert!(done.success());
    until("the end of the dead subflow", || loaded.flows().unwrap().len() == 1);
    let before = acked();
    bulk.goes_on(NEW);
    until("acks over it after that", || acked() > before);
    let flows = loaded.flows().unwrap();
    assert_eq!((flows.len(), flows[0].subflows), (1, 1), "its slot is free: {flows:?}");
    bulk.stop();
    set(&mut network, 2, "loss", "0");
    until_released(&loaded);
}

#[test]
fn the_children_of_a_listener_are_under_its_controller() {
    let what = "children of a listener";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let log = KernelLog::open();
    for &protocol in protocols() {
        let loaded = Loaded::load(&name(), &defaults("lia"), None).unwrap();
        let bulks: Vec<_> = (0..3).map(|_| Bulk::of(&network, protocol, Direction::Ba, loaded.name())).collect();
        let each = if protocol == Protocol::TCP { 1 } else { 2 };
        until("all subflows, in the rows of all", || {
            let flows = loaded.flows().unwrap();
            flows.len() == 3 * each && flows.iter().all(|flow| flow.subflows as usize == each)
        });
        for bulk in &bulks {
            bulk.goes_on(NEW);
        }
        let flows = loaded.flows().unwrap();
        assert_eq!(flows.len(), 3 * each, "{}; {flows:?}", counted(&network));
        assert_eq!(loaded.connections(), if protocol == Protocol::TCP { 0 } else { 3 });
        assert!(flows.iter().all(|flow| flow.subflows as usize == each), "{flows:?}");
        let servers: Vec<IpAddr> = network.describe().paths.iter().map(|path| path.remote).collect();
        assert!(flows.iter().all(|flow| servers.contains(&flow.local.ip())), "the server's end: {flows:?}");
        let bytes: u64 = bulks.into_iter().map(Bulk::stop).sum();
        until_released(&loaded);
        let counts = loaded.counts().unwrap();
        assert_eq!((counts.opened, counts.unstored, counts.ungrouped), (3 * each as u64, 0, 0));
        assert!(counts.bytes_acked >= bytes, "{counts:?}, {bytes} written");
    }
    log.quiet();
}

#[test]
fn flows_without_memory_run_as_reno() {
    let what = "flows without memory for a state";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let log = KernelLog::open();
    // what a socket may keep besides its buffers; the state counts towards it
    let bounded = inside(&network.describe().client, || fs::write("/proc/sys/net/core/optmem_max", "256")).unwrap();
    if let Err(error) = bounded {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        return println!("SKIPPED: {what}: net.core.optmem_max of a namespace: {error}; mend: a kernel from 6.7 on");
    }
    for &protocol in protocols() {
        for control in ["nice", "lia"] {
            let loaded = Loaded::load(&name(), &defaults(control), None).unwrap();
            let bulk = Bulk::start(&network, protocol, loaded.name());
            let each = if protocol == Protocol::TCP { 1 } else { 2 };
            until("flows without a state", || loaded.counts().unwrap().unstored >= each);
            bulk.goes_on(NEW);
            bulk.stop();
            let counts = loaded.counts().unwrap();
            println!("{control} {protocol:?}: {counts:?}");
            assert_eq!((counts.unstored, counts.opened), (each, 0), "{counts:?}");
            assert_eq!((loaded.connections(), loaded.flows().unwrap().len()), (0, 0));
        }
    }
    log.quiet();
}

#[test]
fn without_privilege_it_says_what_is_missing() {
    // credentials are a thread's own as far as the kernel goes
    let unprivileged = thread::spawn(|| {
        let id: libc::uid_t = 65534;
        // SAFETY: plain numbers; the raw call changes this thread alone, which ends with the closure
        let failed = unsafe { libc::syscall(libc::SYS_setresuid, id, id, id) };
        assert!(failed == 0 || ready().is_err(), "either root, which can change, or without privilege already");
        let kernel = name();
        let load = Loaded::load(&kernel, &defaults("lia"), None).map(drop);
        [("ready", ready()), ("load", load), ("pin_root", pin_root("pathcast-test").map(drop))]
    });
    for (step, result) in unprivileged.join().unwrap() {
        let error = result.expect_err(step);
        println!("{step}: {error}; {}", error.hint().unwrap_or_default());
        assert_eq!(
            (error.code(), error.exit(), Exit::Missing as i32),
            ("missing", Exit::Missing, 5),
            "{step}: {error}"
        );
        assert!(!error.hint().unwrap().is_empty(), "{step}");
    }
}
