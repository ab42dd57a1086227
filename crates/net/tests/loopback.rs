//! The far end and its clients over loopback, without privileges.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{client, config, key, looking, over, path, plain, slow_until_joined, until};
use pathcast_base::{Exit, Fault, Nanos};
use pathcast_net::{
    Client, HostSockets, Key, Limits, NetError, PathManagerKind, Progress, Protocol, Server, SocketMaker,
    TransferOptions, paths,
};
use pathcast_session::Quota;

fn host() -> Arc<dyn SocketMaker> {
    Arc::new(HostSockets)
}

fn serve(listen: &[&str]) -> Server {
    Server::start(host(), config(listen)).unwrap()
}

#[test]
fn tcp_over_ipv4_and_ipv6() {
    let server = serve(&["127.0.0.1:0", "[::1]:0"]);
    assert_eq!(server.local_addrs()[0].port(), server.local_addrs()[1].port());
    for ip in ["127.0.0.1", "::1"] {
        let client = client(&host(), &server, ip);
        assert_eq!(client.server_addresses().len(), 2);
        let report = client.tcp_transfer(&path("lo", ip, ip), 20_000_000, &mut plain()).unwrap();
        assert_eq!((report.bytes, report.fallback, report.protocol), (20_000_000, false, Protocol::Tcp));
        assert!(report.connect_s < report.elapsed_s && report.receiver_s.is_some_and(|s| s <= report.elapsed_s));
        let flow = over(&report, "lo");
        assert!(flow.alive && flow.bytes_acked >= report.bytes && flow.bytes_sent >= report.bytes, "{report:#?}");
        assert!(flow.rtt_s.unwrap() > 0.0 && flow.cwnd_packets > 0 && flow.mss_bytes > 0);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((json["protocol"].as_str(), json["path_manager"].is_null()), (Some("tcp"), true));
    }
    let counters = server.counters();
    assert_eq!((counters.sessions, counters.transfers, counters.payload_bytes), (2, 2, 40_000_000));
}

#[test]
fn one_byte_is_a_transfer() {
    let server = serve(&["127.0.0.1:0"]);
    let report =
        client(&host(), &server, "127.0.0.1").tcp_transfer(&path("lo", "127.0.0.1", "127.0.0.1"), 1, &mut plain());
    assert_eq!(report.unwrap().bytes, 1);
}

#[test]
fn mptcp_over_two_loopback_addresses() {
    let server = serve(&["0.0.0.0:0"]);
    if !server.mptcp() {
        println!("SKIPPED: mptcp_over_two_loopback_addresses: this kernel has no MPTCP");
        return;
    }
    let client = client(&host(), &server, "127.0.0.1");
    let two = [path("a", "127.0.0.1", "127.0.0.1"), path("b", "127.0.0.2", "127.0.0.1")];
    let mut slow = slow_until_joined(&["b"]);
    let report = client.mptcp_transfer(&two, 100_000_000, &mut looking(&mut slow)).unwrap();
    assert!(!report.fallback, "{report:#?}");
    if report.path_manager == Some(PathManagerKind::Kernel) {
        // SAFETY: no arguments
        assert!(unsafe { libc::geteuid() } != 0, "root has the other path manager: {report:#?}");
        println!("SKIPPED: mptcp_over_two_loopback_addresses: {:?}", report.notes);
        return;
    }
    assert!(over(&report, "a").alive && over(&report, "a").bytes_sent > 0, "{report:#?}");
    assert!(over(&report, "b").alive && over(&report, "b").joined_s.is_some(), "{report:#?}");
}

#[test]
fn a_wrong_key_is_refused() {
    let server = serve(&["127.0.0.1:0"]);
    for wrong in [Key::new("test", [8; 32]).unwrap(), Key::new("nobody", [7; 32]).unwrap()] {
        let error = Client::connect(host(), server.local_addrs()[0], wrong).err().unwrap();
        assert_eq!((error.exit(), error.code()), (Exit::Refused, "refused"), "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!((server.counters().refused_key, server.sessions()), (2, 0));
}

#[test]
fn nobody_there() {
    let server = serve(&["127.0.0.1:0"]);
    let at = server.local_addrs()[0];
    server.stop();
    let error = Client::connect(host(), at, key()).err().unwrap();
    assert_eq!((error.exit(), error.code()), (Exit::Runtime, "no-connection"), "{error}");
}

#[test]
fn arguments_that_cannot_be_meant() {
    let server = serve(&["127.0.0.1:0"]);
    let client = client(&host(), &server, "127.0.0.1");
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    let usage = |result: Result<_, NetError>| {
        let error = result.map(|_: pathcast_net::TransferReport| ()).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage, "{error}");
        error.to_string()
    };
    assert_eq!(client.check_control("vegemite").unwrap_err().exit(), Exit::Usage);
    client.check_control("reno").unwrap();
    let mut unknown = TransferOptions { control: Some("vegemite"), ..plain() };
    let text = usage(client.tcp_transfer(&lo, 1000, &mut unknown));
    assert!(text.contains("vegemite") && text.contains("reno"), "{text}");
    usage(client.tcp_transfer(&lo, 0, &mut plain()));
    usage(client.tcp_transfer(&path("far", "192.0.2.77", "127.0.0.1"), 10, &mut plain()));
    usage(client.mptcp_transfer(&[], 10, &mut plain()));
    usage(client.mptcp_transfer(&[lo.clone(), lo], 10, &mut plain()));
}

#[test]
fn the_control_is_the_kernels_by_name() {
    let server = serve(&["127.0.0.1:0"]);
    let client = client(&host(), &server, "127.0.0.1");
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    let mut reno = TransferOptions { control: Some("reno"), ..plain() };
    assert_eq!(client.tcp_transfer(&lo, 1000, &mut reno).unwrap().control, "reno");
    if server.mptcp() {
        assert_eq!(client.mptcp_transfer(&[lo], 1000, &mut reno).unwrap().control, "reno");
    }
}

#[test]
fn garbage_and_stalled_clients_disturb_nobody() {
    let mut config = config(&["127.0.0.1:0"]);
    config.limits.handshake = Nanos::secs(1);
    config.limits.idle = Nanos::secs(1);
    config.limits.max_expendable = 8;
    let server = Server::start(host(), config).unwrap();
    let at = server.local_addrs()[0];
    let client = client(&host(), &server, "127.0.0.1");
    let mut garbage = TcpStream::connect(at).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // else the others may drive it out before it is read
    assert!(until(|| server.counters().refused_garbage == 1), "{:?}", server.counters());
    let mut mute: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(at).unwrap()).collect();
    let started = Instant::now();
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    for _ in 0..5 {
        assert_eq!(client.tcp_transfer(&lo, 1_000_000, &mut plain()).unwrap().bytes, 1_000_000);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    garbage.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(!matches!(garbage.read(&mut [0; 64]), Ok(n) if n > 0), "not a word to who does not speak the protocol");
    for stream in &mut mute {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0)), "closed by the deadline, or to make room");
    }
    let counters = server.counters();
    assert_eq!(counters.refused_garbage, 1);
    assert!(counters.evicted >= 20 && counters.timed_out >= 1, "{counters:?}");
}

#[test]
fn limits_are_told_and_kept() {
    let mut config = config(&["127.0.0.1:0"]);
    let sessions = Quota { in_all: 1, ..Quota::SESSIONS };
    config.limits = Limits { sessions, max_transfers: 1, max_transfer_bytes: 200_000_000_000, ..config.limits };
    let server = Server::start(host(), config).unwrap();
    let client = client(&host(), &server, "127.0.0.1");
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    let refused = |error: NetError| assert_eq!(error.exit(), Exit::Refused, "{error}");
    let full = Client::connect(host(), server.local_addrs()[0], key()).err().unwrap();
    assert_eq!(full.code(), "sessions");
    refused(full);
    refused(client.tcp_transfer(&lo, 200_000_000_001, &mut plain()).unwrap_err());
    let (cancel, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let mut show = |p: &Progress<'_>| moved.store(p.bytes_acked, Ordering::Relaxed);
            let mut options = TransferOptions { on_sample: Some(&mut show), cancel: Some(&cancel), ..plain() };
            client.tcp_transfer(&lo, 200_000_000_000, &mut options)
        });
        // more than waits for a far end that has not admitted it yet
        let begun = until(|| moved.load(Ordering::Relaxed) > 50_000_000);
        let second = client.tcp_transfer(&lo, 50_000_000, &mut plain());
        let raised = Instant::now();
        cancel.store(true, Ordering::Relaxed); // before anything fails here, which would wait for all of it
        assert!(begun, "the first one does not begin");
        refused(second.unwrap_err());
        assert_eq!(long.join().unwrap().unwrap_err().exit(), Exit::Interrupted);
        assert!(raised.elapsed() < Duration::from_secs(5), "{:?}", raised.elapsed());
    });
}

#[test]
fn progress_is_shown_and_the_flag_is_heard() {
    let server = serve(&["127.0.0.1:0"]);
    let client = client(&host(), &server, "127.0.0.1");
    let cancel = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut show = |p: &Progress<'_>| {
        seen.push((p.elapsed_s, p.bytes_acked, p.subflows.len()));
        if seen.len() == 3 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut show), cancel: Some(&cancel), ..plain() };
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    let error = client.tcp_transfer(&lo, 900_000_000_000, &mut options).unwrap_err();
    assert_eq!(error.exit(), Exit::Interrupted);
    assert!(seen.len() == 3 && seen[2].1 > seen[0].1 && seen[0].2 == 1, "{seen:?}");
    assert_eq!(client.tcp_transfer(&lo, 1000, &mut plain()).unwrap().bytes, 1000, "the session lives on");
}

#[test]
fn a_transfer_begins_and_stops_at_its_times() {
    let server = serve(&["127.0.0.1:0"]);
    let client = client(&host(), &server, "127.0.0.1");
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    let mut seen = Vec::new();
    let mut show = |p: &Progress<'_>| seen.push((p.elapsed_s, p.bytes_acked));
    let now = Instant::now();
    let mut options = TransferOptions {
        on_sample: Some(&mut show),
        every: Some(Duration::from_millis(20)),
        start: Some(now + Duration::from_millis(300)),
        until: Some(now + Duration::from_millis(1300)),
        ..plain()
    };
    let report = client.tcp_transfer(&lo, 900_000_000_000, &mut options).unwrap();
    assert!(report.stopped && report.receiver_s.is_none() && report.bytes > 0, "{report:?}");
    assert!(report.waited_s >= 0.3 && report.waited_s < 1.3, "{report:?}");
    assert!(report.elapsed_s > 0.0 && report.waited_s + report.elapsed_s >= 1.29, "{report:?}");
    assert!(seen.len() > 2 && seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&(report.elapsed_s, report.bytes)), "the last sample is of the stop");
    assert!(until(|| server.counters().broken == 1), "the far end has noticed");
    let whole = TransferOptions { until: Some(Instant::now() + Duration::from_secs(20)), ..plain() };
    let report = client.tcp_transfer(&lo, 1000, &mut { whole }).unwrap();
    assert_eq!((report.stopped, report.bytes), (false, 1000), "what ends before its time is whole");
}

#[test]
fn a_lost_session_is_opened_again() {
    let server = serve(&["127.0.0.1:0"]);
    let at = server.local_addrs()[0];
    let client = client(&host(), &server, "127.0.0.1");
    server.stop();
    let lo = path("lo", "127.0.0.1", "127.0.0.1");
    assert_eq!(client.tcp_transfer(&lo, 1000, &mut plain()).unwrap_err().exit(), Exit::Runtime);
    let _again = Server::start(host(), config(&[&SocketAddr::to_string(&at)])).unwrap();
    assert_eq!(client.tcp_transfer(&lo, 1000, &mut plain()).unwrap().bytes, 1000);
}

/// A relay before a far end with room for one session holds back what comes over the first connection.
#[test]
fn a_slow_answer_of_the_own_session_is_waited_for_where_there_is_no_room_for_another() {
    let mut config = config(&["127.0.0.1:0"]);
    config.limits.sessions = Quota { per_source: 1, ..Quota::SESSIONS };
    let server = Server::start(host(), config).unwrap();
    let held = Arc::new(AtomicBool::new(false));
    let relay = relay(server.local_addrs()[0], held.clone());
    let client = Client::connect(host(), relay, key()).unwrap();
    held.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let lo = path("lo", "127.0.0.1", "127.0.0.1");
        let transfer = scope.spawn(move || client.tcp_transfer(&lo, 1000, &mut plain()));
        let denied = until(|| server.counters().refused_limit > 0);
        held.store(false, Ordering::Relaxed);
        assert!(denied, "{:?}", server.counters());
        assert_eq!(transfer.join().unwrap().unwrap().bytes, 1000);
    });
    assert_eq!(server.counters().sessions, 1);
}

/// Passes on what comes to the address that it returns; of the first connection not while `held`.
fn relay(to: SocketAddr, held: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (near, n) in listener.incoming().zip(0..) {
            let (mut near, mut far) = (near.unwrap(), TcpStream::connect(to).unwrap());
            let (mut back, mut forth) = (far.try_clone().unwrap(), near.try_clone().unwrap());
            let held = held.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(heard @ 1..) = near.read(&mut buffer) {
                    while n == 0 && held.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if far.write_all(&buffer[..heard]).is_err() {
                        break;
                    }
                }
                let _ = far.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut back, &mut forth);
                let _ = forth.shutdown(Shutdown::Write);
            });
        }
    });
    at
}

#[test]
fn loopback_paths_of_a_loopback_far_end() {
    let server = serve(&["127.0.0.1:0"]);
    let found = paths(&client(&host(), &server, "127.0.0.1")).unwrap();
    assert!(found.iter().any(|p| p.name == "path1" && p.local.is_loopback() && p.interface.as_deref() == Some("lo")));
}
