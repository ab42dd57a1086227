//! Privileged: controllers loaded, read, changed and unloaded, with live flows under them.

mod live;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use live::{
    Bulk, NEW, TWO, able, able_multipath, defaults, multipath, name, network, protocols, scenario, skip, socket, until,
    until_released,
};
use pathcast_base::{Exit, Fault};
use pathcast_congestion::controller;
use pathcast_emu::{Namespace, inside};
use pathcast_kernel::{FlowView, Loaded, Request, controllers_in_kernel, free_name, registered};
use socket2::{Domain, Protocol, Socket, Type};

#[test]
fn flows_are_shown_and_their_bytes_are_counted() {
    let what = "the list of live flows";
    if !able(what) {
        return;
    }
    thread::scope(|scope| {
        for control in ["lia", "imtcp_bg", "gsam"] {
            scope.spawn(move || shown_and_counted(what, control));
        }
    });
}

fn shown_and_counted(what: &str, control: &str) {
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let d = network.describe();
    let addresses: Vec<_> = d.paths.iter().map(|path| (path.local[0], path.remote)).collect();
    for &protocol in protocols() {
        let loaded = Loaded::load(&name(), &defaults(control), None).unwrap();
        let bulk = Bulk::start(&network, protocol, loaded.name());
        let live = if protocol == Protocol::TCP { 1 } else { 2 };
        let coupled = if control == "imtcp_bg" { 1 } else { live as u32 };
        bulk.goes_on(3 * NEW);
        until("flows that carry, and know of each other", || {
            let flows = loaded.flows().unwrap();
            flows.len() == live && flows.iter().all(|flow| flow.bytes_acked > 10_000 && flow.subflows == coupled)
        });
        let flows = loaded.flows().unwrap();
        assert_eq!(flows.len(), live, "{flows:?}");
        for flow in &flows {
            let FlowView { local, remote, cwnd, srtt_us, bytes_acked, token, subflow, mss, .. } = flow;
            // which pair a further subflow has is for the path manager to say
            let ends =
                addresses.iter().any(|(l, _)| *l == local.ip()) && addresses.iter().any(|(_, r)| *r == remote.ip());
            assert!(ends && (live > 1 || addresses.contains(&(local.ip(), remote.ip()))), "{flow:?}");
            assert!(*cwnd > 0 && *srtt_us > 15_000 && *bytes_acked > 10_000 && (1300..1461).contains(mss), "{flow:?}");
            assert_eq!((token.is_some(), *subflow > 0), (live > 1, live > 1), "{flow:?}");
            assert_eq!(flow.state.len(), controller(control).unwrap().state_bytes);
            assert!(flow.available_bps.is_none() || control == "imtcp_bg", "{flow:?}");
            assert_eq!(flow.subflows, coupled, "{flow:?}");
        }
        assert!(flows.windows(2).all(|f| f[0].token == f[1].token && f[0].subflow != f[1].subflow), "{flows:?}");
        assert_eq!(loaded.connections(), usize::from(live > 1 && control != "imtcp_bg"));
        println!(
            "{control} {protocol:?}: {:?}",
            flows.iter().map(|f| (f.cwnd, f.phase, f.available_bps)).collect::<Vec<_>>()
        );
        let bytes = bulk.stop();
        until_released(&loaded);
        let counts = loaded.counts().unwrap();
        assert_eq!((counts.opened, counts.unstored, counts.ungrouped, counts.unlisted), (live as u64, 0, 0, 0));
        let paths = loaded.paths().unwrap();
        let acked: u64 = paths.iter().map(|path| path.bytes_acked).sum();
        assert_eq!((paths.len(), acked), (live, counts.bytes_acked), "{paths:?}");
        // MPTCP may send over the second path again what it has over the first
        let again = if live > 1 { bytes / 5 + NEW } else { 0 };
        assert!(acked >= bytes && acked <= bytes + again + 4, "{acked} acked of {bytes}");
        assert!(counts.bytes_sent + 4 >= counts.bytes_acked, "{counts:?}");
        loaded.unload().unwrap();
    }
}

#[test]
fn parameters_change_while_flows_live() {
    let what = "live parameters";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO[..1], "200 packets")) else { return };
    let mut params = defaults("ledbatpp");
    params.set("target_us", 30_000).unwrap();
    params.set("slowdown", 0).unwrap(); // it would make the window small by itself
    let loaded = Loaded::load(&name(), &params, None).unwrap();
    assert_eq!(loaded.params().unwrap().values(), params.values());
    for (key, value) in [("target", 1), ("target_us", 999), ("target_us", 1 << 40)] {
        assert_eq!(loaded.set(&[("gain_most", 3), (key, value)]).unwrap_err().exit(), Exit::Usage);
    }
    assert_eq!(loaded.params().unwrap().values(), params.values(), "a refused change changes nothing");
    let bulk = Bulk::start(&network, Protocol::TCP, loaded.name());
    let cwnd = || loaded.flows().unwrap().first().map_or(0, |flow| flow.cwnd);
    // a path of 34 packets, and 50 in its queue at a target of 30 ms
    until("a window for the large target", || cwnd() > 70);
    let before = cwnd();
    loaded.set(&[("target_us", 1000), ("slowdown", 0)]).unwrap();
    assert_eq!(loaded.params().unwrap().value("target_us").unwrap(), 1000);
    until("a smaller target makes a smaller window", || cwnd() < 40);
    println!("target 30 ms: {before} packets; 1 ms: {}", cwnd());
    bulk.stop();
}

#[test]
fn a_controller_that_is_unloaded_serves_its_flows_to_the_end() {
    let what = "unloading a controller in use";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let protocol = if multipath() { Protocol::MPTCP } else { Protocol::TCP };
    for control in ["lia", "nice"] {
        let loaded = Loaded::load(&name(), &defaults(control), None).unwrap();
        let kernel = loaded.name().to_owned();
        let bulk = Bulk::start(&network, protocol, &kernel);
        bulk.goes_on(100_000);
        loaded.unload().unwrap();
        until("the end of the registration", || !registered().contains(&kernel));
        bulk.goes_on(NEW);
        bulk.stop();
    }
}

/// Not a test of its own: the process that the next one kills.
#[test]
fn holds_a_controller_until_it_is_killed() {
    let Ok(name) = std::env::var("PATHCAST_TEST_HOLD") else { return };
    let _loaded = Loaded::load(&name, &defaults("imtcp_bg"), None).unwrap();
    println!("held");
    sleep(Duration::from_secs(60));
}

#[test]
fn a_controller_whose_loader_is_killed_serves_its_flows_to_the_end() {
    let what = "a killed loader";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let kernel = name();
    let mut loader = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_controller_until_it_is_killed", "--nocapture"])
        .env("PATHCAST_TEST_HOLD", &kernel)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the controller", || registered().contains(&kernel));
    let bulk = Bulk::start(&network, Protocol::TCP, &kernel);
    bulk.goes_on(100_000);
    loader.kill().unwrap();
    loader.wait().unwrap();
    until("the end of the registration", || !registered().contains(&kernel));
    bulk.goes_on(NEW);
    bulk.stop();
}

#[test]
fn a_socket_may_be_connected_twice_and_over_ipv6() {
    let what = "a socket that is connected twice";
    if !able(what) {
        return;
    }
    let namespace = match Namespace::create(&format!("pc-{}", name())) {
        Ok(namespace) => namespace,
        Err(error) => return skip(what, &error),
    };
    let loaded = Loaded::load(&name(), &defaults("lia"), None).unwrap();
    inside(namespace.name(), || {
        let listener = match TcpListener::bind("[::1]:0") {
            Ok(listener) => listener,
            Err(error) => {
                let lacking = [libc::EAFNOSUPPORT, libc::EADDRNOTAVAIL]; // no IPv6, or it is switched off
                assert!(error.raw_os_error().is_some_and(|number| lacking.contains(&number)), "{error}");
                return println!("SKIPPED: {what}: no IPv6 here: {error}; mend: a kernel with IPv6");
            }
        };
        let to = listener.local_addr().unwrap();
        let near = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)).unwrap();
        near.set_tcp_congestion(loaded.name().as_bytes()).unwrap();
        for round in 1..=2u64 {
            near.connect(&to.into()).unwrap();
            let mut far = listener.accept().unwrap().0;
            (&near).write_all(&[7; 5000]).unwrap();
            far.read_exact(&mut [0; 5000]).unwrap();
            let flows = loaded.flows().unwrap();
            assert_eq!((flows.len(), flows[0].id), (1, round));
            assert_eq!((flows[0].remote, flows[0].local.ip()), (to, to.ip()));
            let none = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
            // SAFETY: an open descriptor and an address of the size given
            let failed = unsafe { libc::connect(near.as_raw_fd(), &raw const none, size_of_val(&none) as u32) };
            assert_eq!(failed, 0, "disconnecting");
            let counts = loaded.counts().unwrap();
            assert_eq!((counts.opened, counts.closed, loaded.flows().unwrap().len()), (round, round, 0));
        }
        let counts = loaded.counts().unwrap();
        // what was not acked when it was cut off may be missing, and what came after the last row was written
        println!("  {counts:?}");
        assert!(counts.bytes_acked <= 10_004, "{counts:?}");
    })
    .unwrap();
}

#[test]
fn names_are_refused_with_the_reason() {
    if !able("names of controllers") {
        return;
    }
    let params = defaults("reno");
    let loaded = Loaded::load(&name(), &params, None).unwrap();
    for (name, code) in [
        (loaded.name(), "controller-in-use"),
        ("cubic", "controller-in-use"),
        ("sixteen_letters_", "controller-name"),
        ("", "controller-name"),
    ] {
        let error = Loaded::load(name, &params, None).unwrap_err();
        assert_eq!((error.code(), error.exit()), (code, Exit::Usage), "{error}");
    }
    let error = Loaded::load(&name(), &defaults("css"), None).unwrap_err();
    assert_eq!((error.code(), error.exit()), ("controller-not-in-kernel", Exit::Usage), "{error}");
    assert!(error.to_string().contains("imtcp_bg"), "{error}");
    for info in controllers_in_kernel() {
        let free = free_name(info).expect("nobody has loaded it 99 times");
        assert!(free.starts_with(info.kernel_name) && free.len() < 16, "{free}");
    }
}

#[test]
fn full_maps_stop_nobody() {
    let what = "full maps";
    if !able(what) || !able_multipath(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let loaded = Request::new(&name(), &defaults("lia")).entries(1).load().unwrap();
    let bulks: Vec<_> = (0..3).map(|_| Bulk::start(&network, Protocol::MPTCP, loaded.name())).collect();
    // of three connections with two subflows each
    until("subflows without room", || {
        let counts = loaded.counts().unwrap();
        counts.ungrouped >= 3 && counts.unlisted >= 3
    });
    println!("{:?}", loaded.counts().unwrap());
    assert!(loaded.connections() <= 1 && loaded.flows().unwrap().len() <= 1);
    for bulk in &bulks {
        bulk.goes_on(NEW);
    }
    for bulk in bulks {
        bulk.stop();
    }
    until_released(&loaded);
    let counts = loaded.counts().unwrap();
    assert!(counts.ungrouped >= 3 && counts.unlisted >= 3 && counts.unstored == 0, "{counts:?}");
}

#[test]
fn a_connection_that_falls_back_to_tcp_goes_on() {
    let what = "MPTCP to a peer without it";
    if !able(what) || !able_multipath(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO[..1], "50 packets")) else { return };
    let server = network.describe().server;
    inside(&server, || fs::write("/proc/sys/net/mptcp/enabled", "0")).unwrap().unwrap();
    let loaded = Loaded::load(&name(), &defaults("lia"), None).unwrap();
    let d = network.describe();
    let listener = inside(&server, || TcpListener::bind(SocketAddr::new(d.paths[0].remote, 0)).unwrap()).unwrap();
    let near = inside(&d.client, || {
        let near = socket(Protocol::MPTCP, Some(loaded.name()));
        near.connect(&listener.local_addr().unwrap().into()).unwrap();
        near
    })
    .unwrap();
    let mut far = listener.accept().unwrap().0;
    (&near).write_all(&[7; 100_000]).unwrap();
    far.read_exact(&mut vec![0; 100_000]).unwrap();
    let flows = loaded.flows().unwrap();
    assert_eq!((flows.len(), flows[0].subflows), (1, 1), "{flows:?}");
    drop((near, far));
    until_released(&loaded);
}
