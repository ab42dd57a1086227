//! Two hosts with two paths between them, in namespaces. Needs root; skipped with a reason otherwise.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::netns::{Deaf, Net, noise, sweep};
use common::{acked, client, config, key, looking, over, path, plain, slow_until_joined, tried, until};
use pathcast_base::{Exit, Fault};
use pathcast_net::{
    Client, NetError, PathManagerKind, PathManagerLimits, Progress, Server, ServerConfig, SocketMaker, TransferOptions,
    limits, paths, set_limits,
};

macro_rules! network {
    ($name:literal) => {{
        sweep();
        match Net::new($name) {
            Some(net) => net,
            None => return,
        }
    }};
}

fn serve(net: &Net, listen: &[&str]) -> Server {
    Server::start(net.server(), config(listen)).unwrap()
}

#[test]
fn both_subflows_carry_data() {
    let net = network!("both_subflows_carry_data");
    net.shape("40mbit", "40mbit");
    let server = serve(&net, &["0.0.0.0:5270", "[::]:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    let before = net.client().mptcp_sysctl("path_manager").unwrap();
    for (a, b) in [
        (path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")),
        (path("p1", "fd07:1::1", "fd07:3::1"), path("p2", "fd07:2::1", "fd07:4::1")),
    ] {
        let mut cubic = TransferOptions { control: Some("cubic"), ..plain() };
        tried(|| {
            let report = client.mptcp_transfer(&[a.clone(), b.clone()], 10_000_000, &mut cubic).unwrap();
            assert_eq!(
                (report.fallback, report.path_manager),
                (false, Some(PathManagerKind::Userspace)),
                "{report:#?}"
            );
            assert_eq!((report.subflows.len(), report.control.as_str()), (2, "cubic"));
            for (name, path) in [("p1", &a), ("p2", &b)] {
                let flow = over(&report, name);
                assert_eq!((flow.local, flow.remote, flow.remote_port), (path.local, path.remote, 5270));
                assert!(flow.alive && flow.note.is_none(), "{report:#?}");
            }
            let one = client.tcp_transfer(&a, 2_000_000, &mut cubic).unwrap();
            println!("{:.1} Mbit/s over one, {:.1} over both", one.throughput_bps / 1e6, report.throughput_bps / 1e6);
            assert!(one.throughput_bps < 40e6, "{one:#?}");
            // a second subflow that is some tenths of a second late spoils both
            let both = ["p1", "p2"].iter().all(|name| over(&report, name).bytes_acked > 2_000_000);
            if both && report.throughput_bps > 1.4 * one.throughput_bps {
                return Ok(());
            }
            Err(format!("{report:#?} {one:#?}"))
        });
    }
    assert_eq!(net.client().mptcp_sysctl("path_manager").unwrap(), before, "the setting is put back");
}

#[test]
fn two_lines_to_one_address_and_one_line_to_two() {
    let net = network!("two_lines_to_one_address_and_one_line_to_two");
    net.shape("40mbit", "40mbit");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    let all = [
        path("a", "10.7.1.1", "10.7.3.1"),
        path("b", "10.7.2.1", "10.7.3.1"),
        path("c", "10.7.1.1", "10.7.4.1"),
        path("d", "10.7.2.1", "10.7.4.1"),
    ];
    let mut slow = slow_until_joined(&["a", "b", "c", "d"]);
    let report = client.mptcp_transfer(&all, 10_000_000, &mut looking(&mut slow)).unwrap();
    for p in &all {
        assert!(over(&report, &p.name).alive, "{report:#?}");
    }
    assert!(all.iter().filter(|p| over(&report, &p.name).bytes_acked > 100_000).count() >= 3, "{report:#?}");
}

#[test]
fn the_far_end_is_surveyed() {
    let net = network!("the_far_end_is_surveyed");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    assert_eq!(client.server_addresses().len(), 2);
    let found = paths(&client).unwrap();
    let ends: Vec<_> = found.iter().map(|p| (p.name.as_str(), p.local.to_string(), p.remote.to_string())).collect();
    assert_eq!(ends[0], ("path1", "10.7.1.1".into(), "10.7.3.1".into()));
    assert_eq!(ends[1], ("path2", "10.7.2.1".into(), "10.7.4.1".into()));
    assert_eq!((ends.len(), found[1].interface.as_deref()), (4, Some("c2")));
    // without its routing rule the second address would leave by the first line
    assert!(net.ip("c", "-4 rule del from 10.7.2.1 table 2"));
    let survey = client.survey().unwrap();
    assert_eq!((survey.usable.len(), survey.unusable.len()), (2, 2), "{survey:#?}");
    assert!(survey.unusable[0].reason.contains("ip rule add from 10.7.2.1"), "{survey:#?}");
}

#[test]
fn addresses_that_come_and_go_are_told_to_who_comes_later() {
    let net = network!("addresses_that_come_and_go_are_told_to_who_comes_later");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let told = || {
        let addresses = client(&net.client(), &server, "10.7.3.1").server_addresses();
        assert!(until(|| server.sessions() == 0), "one at a time, however many it takes");
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(), ["10.7.3.1", "10.7.4.1"]);
    assert!(net.ip("s", "addr del 10.7.4.1/24 dev s2") && net.ip("s", "addr add 10.7.4.9/24 dev s2"));
    assert!(until(|| told() == ["10.7.3.1", "10.7.4.9"]), "{:?}", told());
}

#[test]
fn falling_back_is_told() {
    let net = network!("falling_back_is_told");
    net.server().set_mptcp_sysctl("enabled", "0").unwrap();
    let server = serve(&net, &["0.0.0.0:5270"]);
    assert!(!server.mptcp());
    let client = client(&net.client(), &server, "10.7.3.1");
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")];
    let report = client.mptcp_transfer(&both, 1_000_000, &mut plain()).unwrap();
    assert!(report.fallback && report.fallback_reason.as_deref() == Some("the far end has no MPTCP"), "{report:#?}");
    assert!(over(&report, "p1").alive && over(&report, "p1").bytes_acked >= 1_000_000, "{report:#?}");
    assert!(!over(&report, "p2").alive && over(&report, "p2").note.is_some());
    net.client().set_mptcp_sysctl("enabled", "0").unwrap();
    let error = client.mptcp_transfer(&[path("p1", "10.7.1.1", "10.7.3.1")], 1000, &mut plain()).unwrap_err();
    assert_eq!((error.exit(), error.code()), (Exit::Missing, "no-mptcp"), "{error}");
}

#[test]
fn ipv6_falls_back_too() {
    let net = network!("ipv6_falls_back_too");
    net.server().set_mptcp_sysctl("enabled", "0").unwrap();
    let server = serve(&net, &["[::]:5270"]);
    let client = client(&net.client(), &server, "fd07:3::1");
    let report = client.mptcp_transfer(&[path("p1", "fd07:1::1", "fd07:3::1")], 1_000_000, &mut plain()).unwrap();
    assert!(report.fallback && over(&report, "p1").bytes_acked >= 1_000_000, "{report:#?}");
}

#[test]
fn refused_and_impossible_joins_are_reported() {
    let net = network!("refused_and_impossible_joins_are_reported");
    net.shape("40mbit", "40mbit");
    set_limits(&*net.server(), PathManagerLimits { subflows: 0, add_addr_accepted: 0 }).unwrap();
    assert_eq!(limits(&*net.server()).unwrap().subflows, 0);
    let mut listening = config(&["0.0.0.0:5270"]);
    let warned = Arc::new(std::sync::Mutex::new(Vec::new()));
    let copy = warned.clone();
    listening.on_event = Some(Arc::new(move |e| copy.lock().unwrap().push(format!("{e:?}"))));
    let server = Server::start(net.server(), listening).unwrap();
    assert!(warned.lock().unwrap()[0].contains("limits set subflows 8"));
    let client = client(&net.client(), &server, "10.7.3.1");
    let three = [
        path("p1", "10.7.1.1", "10.7.3.1"),
        path("p2", "10.7.2.1", "10.7.4.1"),
        path("nowhere", "192.0.2.1", "10.7.4.1"),
    ];
    let report = client.mptcp_transfer(&three, 3_000_000, &mut plain()).unwrap();
    assert!(over(&report, "p1").alive);
    for name in ["p2", "nowhere"] {
        let flow = over(&report, name);
        println!("{name}: {:?}", flow.note);
        assert!(!flow.alive && flow.note.is_some(), "{report:#?}");
    }
}

/// One path dies without a word in mid-transfer: the rest goes over the other.
fn dies(name: &str, victim: u32) {
    sweep();
    let Some(net) = Net::new(name) else { return };
    net.shape("20mbit", "20mbit");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")];
    let mut killed: Option<Instant> = None;
    let (mut last, mut gap, mut moved) = (0, 0f64, 0f64);
    let (dead, living) = if victim == 1 { ("p1", "p2") } else { ("p2", "p1") };
    let mut known = false;
    let mut kill = |p: &Progress<'_>| {
        if killed.is_none() && ["p1", "p2"].iter().all(|name| acked(p, name) > 1_000_000) {
            net.kill(victim);
            killed = Some(Instant::now());
        }
        if killed.is_some() && !known && p.subflows.iter().any(|s| s.path.as_deref() == Some(dead) && !s.alive) {
            net.shape("1gbit", "1gbit"); // there is enough until then, and no more to wait for
            known = true;
        }
        if p.bytes_acked > last {
            (last, gap, moved) = (p.bytes_acked, gap.max(p.elapsed_s - moved), p.elapsed_s);
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut kill), ..plain() };
    let report = client.mptcp_transfer(&both, 30_000_000, &mut options).unwrap();
    let took = killed.expect("the path was killed").elapsed();
    println!("path {victim} dead: ended {took:.1?} later, longest standstill {gap:.1} s");
    assert!(took < Duration::from_secs(60), "{report:#?}");
    assert!(over(&report, living).alive, "{report:#?}");
    let note = over(&report, dead).note.clone().unwrap_or_default();
    assert!(!over(&report, dead).alive && note.contains("nothing acknowledged"), "{report:#?}");
}

#[test]
fn the_first_path_may_die() {
    dies("the_first_path_may_die", 1);
}

#[test]
fn the_second_path_may_die() {
    dies("the_second_path_may_die", 2);
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let net = network!("a_path_that_comes_back_is_used_again");
    net.shape("20mbit", "20mbit");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")];
    let (mut killed, mut healed, mut before, mut used) = (None, None, 0, false);
    let mut outage = |p: &Progress<'_>| {
        if killed.is_none() && p.bytes_acked > 2_000_000 && acked(p, "p2") > 0 {
            net.kill(2);
            killed = Some(Instant::now());
        }
        if healed.is_none() && killed.is_some_and(|k| k.elapsed() > Duration::from_secs(1)) {
            net.heal(2);
            healed = Some(Instant::now());
            before = acked(p, "p2");
        }
        if healed.is_some() && !used && acked(p, "p2") > before + 1_000_000 {
            net.shape("1gbit", "1gbit"); // there is enough until then, and no more to wait for
            used = true;
        }
    };
    let mut options = TransferOptions { on_sample: Some(&mut outage), plain: false, ..plain() };
    let report = client.mptcp_transfer(&both, 40_000_000, &mut options).unwrap();
    // at the very end the rule may close it
    assert!(healed.is_some() && over(&report, "p2").bytes_acked > before + 1_000_000, "{before} {report:#?}");
}

#[test]
fn all_paths_dead_is_a_stall() {
    let net = network!("all_paths_dead_is_a_stall");
    net.shape("20mbit", "20mbit");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let client = client(&net.client(), &server, "10.7.3.1");
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")];
    let mut killed = false;
    let mut kill = |p: &Progress<'_>| {
        if !killed && p.bytes_acked > 1_000_000 {
            (1..3).for_each(|n| net.kill(n));
            killed = true;
        }
    };
    let patience = Some(Duration::from_secs(3));
    let mut options = TransferOptions { on_sample: Some(&mut kill), patience, ..plain() };
    let error = client.mptcp_transfer(&both, 12_000_000, &mut options).unwrap_err();
    assert_eq!((error.exit(), error.code()), (Exit::Runtime, "stalled"), "{error}");
    assert!(error.to_string().contains("p1, p2"), "{error}");
}

#[test]
fn a_stalled_client_disturbs_nobody() {
    let net = network!("a_stalled_client_disturbs_nobody");
    net.shape("100mbit", "100mbit");
    let server = serve(&net, &["0.0.0.0:5270"]);
    let stalled = client(&net.client(), &server, "10.7.4.1");
    let lively = client(&net.client(), &server, "10.7.3.1");
    let (cancel, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let stuck = scope.spawn(|| {
            let mut show = |p: &Progress<'_>| begun.store(p.bytes_acked > 0, Ordering::Relaxed);
            let mut options = TransferOptions { on_sample: Some(&mut show), cancel: Some(&cancel), ..plain() };
            stalled.tcp_transfer(&path("p2", "10.7.2.1", "10.7.4.1"), 100_000_000, &mut options)
        });
        assert!(until(|| begun.load(Ordering::Relaxed)));
        net.kill(2);
        let report = lively.tcp_transfer(&path("p1", "10.7.1.1", "10.7.3.1"), 5_000_000, &mut plain()).unwrap();
        assert!(report.elapsed_s < 20.0, "{report:#?}");
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(stuck.join().unwrap(), Err(NetError::Interrupted)));
    });
}

#[test]
fn nobody_answers() {
    let net = network!("nobody_answers");
    let server = serve(&net, &["0.0.0.0:5270"]);
    for table in ["main", "1", "2"] {
        assert!(net.ip("c", &format!("route add unreachable 10.7.4.1/32 table {table}")));
    }
    let to = "10.7.4.1:5270".parse().unwrap();
    let error = Client::connect(net.client(), to, key()).err().unwrap();
    assert_eq!((error.exit(), error.code()), (Exit::Runtime, "no-connection"), "{error}");
    drop(server);
}

#[test]
fn the_kernels_path_manager_does_when_ours_may_not() {
    let net = network!("the_kernels_path_manager_does_when_ours_may_not");
    net.shape("40mbit", "40mbit");
    let server = Server::start(net.server(), ServerConfig { ..config(&["0.0.0.0:5270"]) }).unwrap();
    assert!(net.ip("c", "mptcp limits set subflows 8"));
    assert!(net.ip("c", "mptcp endpoint add 10.7.2.1 dev c2 subflow"));
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.3.1")];
    let client = client(&net.client(), &server, "10.7.3.1");
    let report = common::without_net_admin(|| {
        let mut slow = slow_until_joined(&["p2"]);
        client.mptcp_transfer(&both, 10_000_000, &mut looking(&mut slow))
    });
    let report = report.unwrap();
    assert_eq!(report.path_manager, Some(PathManagerKind::Kernel), "{report:#?}");
    assert!(report.notes[0].contains("CAP_NET_ADMIN") && over(&report, "p2").alive, "{report:#?}");
}

#[test]
fn further_subflows_are_asked_for_also_where_events_were_lost() {
    let net = network!("also_where_events_were_lost");
    net.shape("40mbit", "40mbit");
    let both = [path("p1", "10.7.1.1", "10.7.3.1"), path("p2", "10.7.2.1", "10.7.4.1")];
    let server = serve(&net, &["0.0.0.0:5270"]);
    let deaf: Arc<dyn SocketMaker> = Arc::new(Deaf(net.client()));
    let client = client(&deaf, &server, "10.7.3.1");
    let mut begun = false;
    let mut slow = slow_until_joined(&["p2"]);
    let mut once = |p: &Progress<'_>| {
        if !std::mem::replace(&mut begun, true) {
            noise(&net, 30);
        }
        slow(p);
    };
    let report = client.mptcp_transfer(&both, 10_000_000, &mut looking(&mut once)).unwrap();
    for name in ["p1", "p2"] {
        assert!(over(&report, name).bytes_acked > 100_000, "{report:#?}");
    }
}
