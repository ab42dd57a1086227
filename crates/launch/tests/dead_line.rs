//! Privileged: a program over two lines, one of which is dead: its connections come about over the other one.

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::{SERVER, Sink, World};
use pathcast_launch::Launch;

const BYTES: u64 = 300_000;

fn launch(world: &World, command: &[&str]) -> Launch {
    let paths = vec!["10.8.1.1".parse().unwrap(), "10.8.2.1".parse().unwrap()];
    Launch { mptcp: true, paths, ..world.launch("out", command) }
}

/// The program's output and how long it took, while the far end's answers to line `dead` vanish.
fn run(world: &World, client: &str, what: &str, dead: u32, port: u16) -> (String, Duration, Vec<String>) {
    world.far(&format!("route add blackhole 10.8.{dead}.1/32"));
    let (port, bytes) = (port.to_string(), BYTES.to_string());
    let begun = Instant::now();
    let outcome = world.run(launch(world, &[client, what, SERVER, &port, &bytes])).unwrap();
    let took = begun.elapsed();
    world.far(&format!("route del blackhole 10.8.{dead}.1/32"));
    assert_eq!(outcome.status, 0, "{}", world.output("out"));
    (world.output("out"), took, outcome.report.notes)
}

#[test]
fn connections_come_about_over_the_line_that_lives() {
    let Some(world) = World::new("dead line") else { return };
    let Some(client) = world.client("dead line") else { return };
    for (dead, what, says) in [
        (1, "children", ["self 262", "child 262", "self 262"].as_slice()),
        (2, "transfer", &["self 262"]),
        (1, "poll", &["poll 262"]),
    ] {
        let sink = Sink::start(&world, 10);
        let (output, took, notes) = run(&world, &client, what, dead, sink.port);
        assert_eq!(output.lines().count(), says.len(), "{output}");
        assert!(output.lines().zip(says).all(|(line, start)| line.starts_with(start)), "{output}");
        // who asks beside is not seen by the far end's program, which may take one connection only
        let count = says.len() as u64;
        assert_eq!(sink.counts(), (count, count, count * BYTES), "{what}");
        // a second attempt of the kernel's would come after 1 s, the end of its patience after minutes
        assert!(took < Duration::from_secs(100), "{what}: {took:?}");
        let named = notes.iter().any(|note| note.contains("the line of 10.8.1.1 did not answer"));
        assert_eq!(named, dead == 1, "{notes:?}"); // the route is over the first
        println!("line {dead} dead: {what} took {took:.2?}");
    }
}

/// As the sockets of Java are.
#[test]
fn an_ipv6_socket_to_an_ipv4_host_has_the_other_line_too() {
    let Some(world) = World::new("mapped address") else { return };
    if Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED: mapped address: python3 is not installed");
        return;
    }
    let sink = Sink::start(&world, 10);
    let script = format!(
        "import socket; s = socket.socket(socket.AF_INET6); s.connect(('::ffff:{SERVER}', {})); s.sendall(b'x' * {BYTES}); \
         s.shutdown(1); print(len(s.recv(10, socket.MSG_WAITALL)), s.getsockname()[0])",
        sink.port
    );
    for dead in [1u64, 2] {
        world.far(&format!("route add blackhole 10.8.{dead}.1/32"));
        let outcome = world.run(launch(&world, &["python3", "-c", &script])).unwrap();
        world.far(&format!("route del blackhole 10.8.{dead}.1/32"));
        let lives = 3 - dead;
        assert_eq!((outcome.status, world.output("out")), (0, format!("10 ::ffff:10.8.{lives}.1\n")));
        assert_eq!(sink.counts().2, dead * BYTES);
    }
}

#[test]
fn without_a_dead_line_nothing_is_asked_beside() {
    let Some(world) = World::new("living lines") else { return };
    let Some(client) = world.client("living lines") else { return };
    let sink = Sink::start(&world, 10);
    let (port, bytes) = (sink.port.to_string(), BYTES.to_string());
    let outcome = world.run(launch(&world, &[&client, "children", SERVER, &port, &bytes])).unwrap();
    assert_eq!((outcome.status, sink.counts()), (0, (3, 3, 3 * BYTES)));
}

#[test]
fn hosts_that_do_not_answer_hold_up_nobody_else() {
    let Some(world) = World::new("silent hosts") else { return };
    let Some(client) = world.client("silent hosts") else { return };
    world.far("route add blackhole 10.9.0.0/24");
    let sink = Sink::start(&world, 1);
    let port = sink.port.to_string();
    let outcome = world.run(launch(&world, &[&client, "beside", SERVER, &port, "10"])).unwrap();
    let output = world.output("out");
    assert_eq!(outcome.status, 0, "{output}");
    // in one queue each of the ten would wait behind one of those
    let begun = output.strip_prefix("good 10 ended ").and_then(|n| n.trim().parse::<u32>().ok());
    assert!(begun.is_some_and(|n| n < 4), "{output}");
}

#[test]
fn no_other_line_of_the_family_is_no_wait() {
    let Some(world) = World::new("one of the family") else { return };
    let Some(client) = world.client("one of the family") else { return };
    world.far("route add blackhole 10.9.0.0/24");
    world.ip("addr add fd00:8::1/64 dev c2 nodad");
    let paths: Vec<_> = ["10.8.1.1", "fd00:8::1"].iter().map(|a| a.parse().unwrap()).collect();
    let begun = Instant::now();
    let outcome = world.run(Launch { paths, ..launch(&world, &[&client, "beside", SERVER, "9", "0"]) }).unwrap();
    let took = begun.elapsed();
    assert_eq!((outcome.status, world.output("out")), (0, "good 0 ended 20\n".into()));
    assert!(took < Duration::from_secs(15), "{took:?}"); // 20 times 1.5 s
}

#[test]
fn no_far_end_is_refused_as_without_us_and_no_line_is_no_hang() {
    let Some(world) = World::new("refused") else { return };
    let Some(client) = world.client("refused") else { return };
    let outcome = world.run(launch(&world, &[&client, "transfer", SERVER, "9", "1"])).unwrap();
    assert_eq!((outcome.status, world.output("out")), (1, "self failed Connection refused\n".into()));
    for table in ["main", "1", "2"] {
        world.ip(&format!("route add unreachable {SERVER}/32 table {table}"));
    }
    let outcome = world.run(launch(&world, &[&client, "transfer", SERVER, "9", "1"])).unwrap();
    assert_eq!((outcome.status, world.output("out")), (1, "self failed No route to host\n".into()));
}
