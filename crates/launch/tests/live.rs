//! Privileged: a run that is steered while it lasts: which lines, under which controller, how fast.

mod common;

use std::io::Write;
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{SERVER, Sink, World};
use pathcast_launch::{Launch, Live, PathUse, Stay};

const BYTES: u64 = 60_000_000;
/// Of each subflow [byte/s]: the program is not done before it is let go.
const PACE: u32 = 1_000_000;

fn wait_for(live: &Live, what: &str, is: impl Fn(&[PathUse]) -> bool) -> Vec<PathUse> {
    let begun = Instant::now();
    loop {
        let seen = live.seen();
        if let Some((paths, _)) = &seen
            && is(paths)
        {
            return seen.unwrap().0;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {seen:?}");
        sleep(Duration::from_millis(20));
    }
}

fn sent(paths: &[PathUse], line: IpAddr) -> u64 {
    paths.iter().filter(|p| p.local == line).map(|p| p.bytes_sent).sum()
}

/// A line that is dropped sends what it has taken already; after that it sends nothing, while the other one goes on.
fn wait_until_silent(live: &Live, dropped: IpAddr, other: IpAddr) {
    let begun = Instant::now();
    loop {
        let before = wait_for(live, "its end", |_| true);
        let after = wait_for(live, "going on", |paths| sent(paths, other) > sent(&before, other) + u64::from(PACE));
        if sent(&after, dropped) == sent(&before, dropped) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it goes on: {before:?} {after:?}");
    }
}

#[test]
fn an_endpoint_of_the_users_is_a_backup_while_its_line_is_dropped() {
    let Some(world) = World::new("foreign endpoint") else { return };
    let Some(client) = world.client("foreign endpoint") else { return };
    world.ip("mptcp endpoint add 10.8.2.1 dev c2 subflow");
    let [one, two]: [IpAddr; 2] = ["10.8.1.1", "10.8.2.1"].map(|a| a.parse().unwrap());
    let sink = Sink::start(&world, 10);
    let (port, bytes) = (sink.port.to_string(), BYTES.to_string());
    let live = Live::default();
    let launch = Launch {
        mptcp: true,
        steered: true,
        paths: vec![one, two],
        live: live.clone(),
        ..world.launch("out", &[&client, "transfer", SERVER, &port, &bytes])
    };
    let first = live.clone();
    let run = world.inside("c", move || {
        let begin = || {
            assert!(first.order("reno", Some(PACE)).unwrap());
            false
        };
        launch.run_unless(begin, |_| {})
    });
    wait_for(&live, "both lines", |paths| sent(paths, one) > 100_000 && sent(paths, two) > 100_000);
    let without = live.clone();
    assert_eq!(world.inside("c", move || without.allow(&[one]).unwrap()).join().unwrap().backups, [two]);
    assert!(world.ip("mptcp endpoint show").lines().any(|l| l.starts_with("10.8.2.1") && l.contains("backup")));
    wait_until_silent(&live, two, one);
    assert!(live.order("reno", None).unwrap());
    assert_eq!(run.join().unwrap().unwrap().unwrap().status, 0);
    let left = world.ip("mptcp endpoint show");
    assert!(left.starts_with("10.8.2.1") && !left.contains("backup"), "{left}");
}

/// A server that sends so much and waits for `end`: its port.
fn sends(world: &World, namespace: &str, at: &'static str, bytes: usize, end: mpsc::Receiver<()>) -> String {
    let (told, port) = mpsc::channel();
    world.inside(namespace, move || {
        let listener = TcpListener::bind((at, 0)).unwrap();
        told.send(listener.local_addr().unwrap().port()).unwrap();
        let mut connection = listener.accept().unwrap().0;
        connection.write_all(&vec![0; bytes]).unwrap();
        let _ = end.recv();
    });
    port.recv().unwrap().to_string()
}

/// Neither what comes in nor the other end's silence makes the kernel call us.
#[test]
fn what_comes_in_is_counted_while_the_connection_lasts() {
    let Some(world) = World::new("incoming") else { return };
    let Some(client) = world.client("incoming") else { return };
    let (end, ended) = mpsc::channel::<()>();
    let port = sends(&world, "s", SERVER, 3_000_000, ended);
    let live = Live::default();
    let launch = Launch { live: live.clone(), ..world.launch("out", &[&client, "transfer", SERVER, &port, "0"]) };
    let run = world.inside("c", move || launch.run());
    let looking = world.inside("c", move || {
        wait_for(&live, "all of it", |paths| paths.iter().map(|p| p.bytes_received).sum::<u64>() == 3_000_000)
    });
    looking.join().unwrap();
    drop(end);
    let report = run.join().unwrap().unwrap().report;
    assert_eq!((report.bytes_sent, report.bytes_received), (0, 3_000_000));
}

#[test]
fn what_stays_on_this_host_is_neither_open_to_others_nor_decided_by_a_far_end() {
    let Some(world) = World::new("inner") else { return };
    let Some(client) = world.client("inner") else { return };
    let far = "10.8.1.1".parse().unwrap();
    for (namespace, at, open) in [("c", "127.0.0.1", None), ("c", "10.8.1.1", None), ("s", "10.8.1.2", Some(1))] {
        let (end, ended) = mpsc::channel::<()>();
        let port = sends(&world, namespace, at, 3_000_000, ended);
        let live = Live::default();
        let control = Some("reno".into());
        let launch =
            Launch { control, live: live.clone(), ..world.launch("out", &[&client, "transfer", at, &port, "0"]) };
        let run = world.inside("c", move || launch.run());
        let looking = world.inside("c", move || {
            wait_for(&live, "all of it", |paths| paths.iter().map(|p| p.bytes_received).sum::<u64>() == 3_000_000);
            live.seen().unwrap().1
        });
        assert_eq!(looking.join().unwrap().get(&far).copied(), open, "{at}");
        drop(end);
        let report = run.join().unwrap().unwrap().report;
        assert_eq!(report.notes.iter().any(|n| n.contains("the far end decides")), open.is_some(), "{report:?}");
    }
}

#[test]
fn lines_controller_and_pace_change_while_it_runs() {
    let Some(world) = World::new("steering") else { return };
    let Some(client) = world.client("steering") else { return };
    let [one, two]: [IpAddr; 2] = ["10.8.1.1", "10.8.2.1"].map(|a| a.parse().unwrap());
    let sink = Sink::start(&world, 10);
    let (port, bytes) = (sink.port.to_string(), BYTES.to_string());
    let live = Live::default();
    let launch = Launch {
        mptcp: true,
        steered: true,
        paths: vec![one, two],
        control: Some("reno".into()),
        live: live.clone(),
        ..world.launch("out", &[&client, "transfer", SERVER, &port, &bytes])
    };
    assert!(live.seen().is_none() && !live.order("reno", None).unwrap(), "nothing runs yet");
    let first = live.clone();
    let run = world.inside("c", move || {
        let begin = || {
            assert!(first.order("reno", Some(PACE)).unwrap());
            assert_eq!(first.allow(&[two]).unwrap(), Stay::default());
            false
        };
        let ended = first.clone();
        launch.run_unless(begin, move |status| {
            assert_eq!(status, 0);
            let (paths, _) = ended.seen().expect("it can still be asked");
            assert!(paths.iter().map(|p| p.bytes_sent).sum::<u64>() >= BYTES);
        })
    });
    // the route is over the first line, the program's connection is not
    let paths = wait_for(&live, "the second line", |paths| sent(paths, two) > 100_000);
    assert_eq!(sent(&paths, one), 0, "{paths:?}");
    let begun = Instant::now(); // before the counters are read: who is delayed in between finds less time, not more bytes
    let before = sent(&live.seen().unwrap().0, two);
    let paths = wait_for(&live, "more", |paths| sent(paths, two) > before + u64::from(PACE));
    let most = f64::from(PACE) * 1.5 * begun.elapsed().as_secs_f64();
    assert!(((sent(&paths, two) - before) as f64) < most + 300_000.0, "{paths:?} in {:?}", begun.elapsed());

    let both = live.clone();
    world.inside("c", move || both.allow(&[one, two]).unwrap()).join().unwrap();
    assert!(world.ip("mptcp endpoint show").contains("10.8.1.1"));
    wait_for(&live, "both lines", |paths| sent(paths, one) > 100_000);

    let other = "cubic";
    assert!(live.order(other, Some(PACE)).unwrap());
    wait_for(&live, "the other controller", |paths| paths.iter().filter(|p| p.control == other).count() == 2);
    assert!(live.order("no-such", None).is_err());

    // the line of the first subflow goes
    let without = live.clone();
    world.inside("c", move || without.allow(&[one]).unwrap()).join().unwrap();
    assert!(!world.ip("mptcp endpoint show").contains("10.8.2.1"));
    wait_until_silent(&live, two, one);

    assert!(live.order(other, None).unwrap());
    let outcome = run.join().unwrap().unwrap().unwrap();
    assert_eq!((outcome.status, sink.counts()), (0, (1, 1, BYTES)), "{:?}", outcome.report);
    assert!(live.seen().is_none() && !live.end(), "it is over");
    assert_eq!(world.ip("mptcp endpoint show"), "");
}

/// As one that is dialled again has.
#[test]
fn a_line_that_gets_another_address_is_used_from_that() {
    let Some(world) = World::new("other address") else { return };
    let Some(client) = world.client("other address") else { return };
    let [one, two, other]: [IpAddr; 3] = ["10.8.1.1", "10.8.2.1", "10.8.2.77"].map(|a| a.parse().unwrap());
    let sink = Sink::start(&world, 10);
    let path = |name: &str| world.directory.join(name).display().to_string();
    let (gone, refused, go) = (path("gone"), path("refused"), path("go"));
    let script = format!(
        "until [ -e {gone} ]; do sleep 0.05; done; {client} transfer {SERVER} {port} 1000 >{refused}.new;
        mv {refused}.new {refused}; until [ -e {go} ]; do sleep 0.05; done; {client} transfer {SERVER} {port} 100000",
        port = sink.port
    );
    let live = Live::default();
    let launch = Launch {
        mptcp: true,
        steered: true,
        paths: vec![one, two],
        live: live.clone(),
        ..world.launch("out", &["sh", "-c", &script])
    };
    let first = live.clone();
    let run = world.inside("c", move || {
        let begin = || {
            assert_eq!(first.allow(&[two]).unwrap(), Stay::default());
            false
        };
        launch.run_unless(begin, |_| {})
    });
    world.ip("addr del 10.8.2.1/24 dev c2");
    world.ip("addr add 10.8.2.77/24 dev c2");
    world.ip("route add default via 10.8.2.2 dev c2 metric 2");
    world.ip("route replace default via 10.8.2.2 dev c2 table 2");
    world.ip("rule add from 10.8.2.77 table 2");
    std::fs::write(&gone, "").unwrap();
    let told = common::until("the first try", || std::fs::read_to_string(&refused).ok());
    assert!(told.contains("Network is unreachable"), "{told}"); // the other line is barred
    world.inside("c", move || {
        live.renew(&[one, other]);
        assert_eq!(live.allow(&[other]).unwrap(), Stay::default());
    });
    common::until("its endpoint", || world.ip("mptcp endpoint show").contains("10.8.2.77").then_some(()));
    assert!(!world.ip("mptcp endpoint show").contains("10.8.2.1 "));
    std::fs::write(&go, "").unwrap();
    let outcome = run.join().unwrap().unwrap().unwrap();
    let carried: Vec<_> = outcome.report.paths.iter().map(|p| (p.local, p.bytes_sent)).collect();
    assert_eq!((outcome.status, carried), (0, vec![(other, 100_000)]), "{:?}", outcome.report);
    assert_eq!(world.ip("mptcp endpoint show"), "");
}

#[test]
fn a_programs_own_pace_holds_beside_the_orders() {
    let Some(world) = World::new("own pace") else { return };
    let Some(client) = world.client("own pace") else { return };
    let sink = Sink::start(&world, 10);
    let port = sink.port.to_string();
    for (orders, says) in [
        ([None, None].as_slice(), "1000000\n"),
        (&[Some(5_000_000), None], "1000000\n"),
        (&[Some(500_000), Some(250_000), None], "1000000\n500000\n250000\n1000000\n"),
    ] {
        let live = Live::default();
        let command = [&client, "paced", SERVER, &port, "60000000"];
        let launch = Launch { control: Some("reno".into()), live: live.clone(), ..world.launch("out", &command) };
        let run = world.inside("c", move || launch.run());
        wait_for(&live, "its begin", |paths| paths.iter().any(|p| p.bytes_sent > 100_000));
        for (n, &pace) in orders.iter().enumerate() {
            let control = ["cubic", "reno"][n % 2];
            assert!(live.order(control, pace).unwrap());
            let seen = wait_for(&live, "the orders", |paths| paths.iter().any(|p| p.control == control));
            let sent: u64 = seen.iter().map(|p| p.bytes_sent).sum();
            // what it has written waits behind what is sent
            wait_for(&live, "more", |paths| paths.iter().map(|p| p.bytes_sent).sum::<u64>() > sent + 500_000);
        }
        assert!(live.end());
        run.join().unwrap().unwrap();
        assert_eq!(world.output("out"), says, "{orders:?}");
    }
}

#[test]
fn a_steered_run_leaves_by_its_lines_only_and_for_its_local_networks() {
    let Some(world) = World::new("no line's") else { return };
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("SKIPPED: no line's: python3 is not installed");
    }
    // a third network, which is none of the run's lines: by it the routes go to 10.8.10.1, and IPv6 goes anywhere
    world.far("addr add 10.8.10.1/32 dev lo");
    world.far("addr add fd00:9::1/128 dev lo");
    world.ip(&format!("link add c3 type veth peer name s3 netns {}s", world.name));
    world.far("link set s3 up");
    world.ip("link set c3 up");
    for (ours, theirs) in [("10.8.3.1/24", "10.8.3.2/24"), ("fd00:3::1/64 nodad", "fd00:3::2/64 nodad")] {
        world.ip(&format!("addr add {ours} dev c3"));
        world.far(&format!("addr add {theirs} dev s3"));
    }
    world.ip("route add 10.8.10.0/24 via 10.8.3.2 dev c3");
    world.ip("route add default via fd00:3::2 dev c3");
    let script = "
import socket, sys
port, *hosts = sys.argv[1:]
for to in hosts:
    with socket.socket(socket.AF_INET6 if ':' in to else socket.AF_INET) as s:
        s.settimeout(20)
        try:
            s.connect((to, int(port)))
            print(s.getsockname()[0].replace('10.8.2.1', '10.8.1.1'))
        except OSError as e:
            print(type(e).__name__, e.errno)
";
    let far = ["10.8.10.1", SERVER, "fd00:9::1", "10.8.3.2", "fd00:3::2", "10.8.3.1", "fd00:3::1", "127.0.0.1"];
    let refused = "ConnectionRefusedError 111";
    let said = ["10.8.1.1", "10.8.1.1", "OSError 101", "10.8.3.1", refused, refused, refused, refused];
    let sink = Sink::start(&world, 1);
    let port = sink.port.to_string();
    for (both, allowed) in [(true, 0), (true, 1), (false, 0)] {
        let mut paths: Vec<IpAddr> = ["10.8.1.1", "10.8.2.1"].iter().map(|a| a.parse().unwrap()).collect();
        paths.truncate(if both { 2 } else { 1 });
        let live = Live::default();
        let command: Vec<_> = ["python3", "-c", script, &port].into_iter().chain(far).collect();
        let launch = Launch {
            mptcp: true,
            steered: true,
            paths: paths.clone(),
            live: live.clone(),
            ..world.launch("out", &command)
        };
        let some = paths[..paths.len() - allowed].to_vec();
        let begin = move || {
            live.allow(&some).unwrap();
            false
        };
        let run = move || launch.run_unless(begin, |_| {}).unwrap().unwrap();
        let outcome = world.inside("c", run).join().unwrap();
        assert_eq!((outcome.status, world.output("out").lines().collect::<Vec<_>>()), (0, said.to_vec()));
    }
}
