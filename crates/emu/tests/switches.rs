//! Privileged: links between the ports of switches. Bridges of the kernel stand for the switches.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use pathcast_emu::{Network, inside};

mod common;

use common::{burst, conserved, network, one_link, wan};

const SWITCHED: &str = r#"
[[switch]]
name = "left"
ports = 2
[[switch]]
name = "right"
ports = 2
[[link]]
name = "in"
a = "client"
b = "left:1"
[[link]]
name = "wan"
a = "left:2"
b = "right:1"
rate = "8Mbit"
delay = "20ms"
queue = "9 packets"
[[link]]
name = "out"
a = "right:2"
b = "server"
[[path]]
name = "path1"
links = ["in", "wan", "out"]
"#;

fn bridged(text: &str) -> Option<Network> {
    let n = network(text)?;
    let switch = n.describe().switch.unwrap();
    for (bridge, ports) in [("left", ["sw1p1", "sw1p2"]), ("right", ["sw2p1", "sw2p2"])] {
        let mut commands = vec![format!("link add {bridge} type bridge mcast_snooping 0")];
        commands.extend(ports.map(|port| format!("link set {port} master {bridge}")));
        commands.push(format!("link set {bridge} up"));
        for command in commands {
            let done = Command::new("ip").args(["-n", &switch]).args(command.split_whitespace()).output().unwrap();
            assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
    Some(n)
}

#[test]
fn a_link_between_switches_treats_packets_as_one_between_hosts() {
    let direct = one_link("rate = \"8Mbit\"\ndelay = \"20ms\"\nqueue = \"9 packets\"");
    for ip in ["ip = 4\n", "ip = 6\n"] {
        let (Some(switched), Some(plain)) = (bridged(&format!("{SWITCHED}{ip}")), network(&format!("{direct}{ip}")))
        else {
            return;
        };
        for n in [&switched, &plain] {
            let arrivals = burst(n);
            let (first, last) = (arrivals[0].1, arrivals[arrivals.len() - 1].1);
            assert!(first >= 0.021 && last >= 0.020 + arrivals.len() as f64 * 1e-3, "{arrivals:?}");
            conserved(&n.ledger(false).unwrap());
            let carried = wan(n).carried;
            assert_eq!(carried.bytes, 1000 * carried.packets);
        }
    }
}

#[test]
fn streams_pass_unchanged_in_super_packets() {
    let text = SWITCHED.replace("8Mbit", "400Mbit").replace("9 packets", "2000 packets");
    let Some(n) = bridged(&text) else { return };
    let d = n.describe();
    let remote = d.paths[0].remote;
    let listener = inside(&d.server, || TcpListener::bind(SocketAddr::new(remote, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let sent: Vec<u8> = (0..6_000_000u32).map(|i| (i * 31 % 251) as u8).collect();
    let mut before = (0, 0);
    let start = Instant::now();
    // on a busy machine TCP may send segment by segment, as it is acknowledged: then once more
    loop {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut got = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
                got
            });
            let mut client = inside(&d.client, || TcpStream::connect(to).unwrap()).unwrap();
            client.write_all(&sent).unwrap();
            drop(client);
            assert!(server.join().unwrap() == sent, "the bytes arrived changed");
        });
        let ledger = n.ledger(false).unwrap();
        conserved(&ledger);
        let frames: u64 = ledger.groups.iter().map(|g| g.reads).sum();
        let packets: u64 = ledger.groups.iter().flat_map(|g| &g.links).map(|l| l.counters.offered.packets).sum();
        if packets - before.1 > 2 * (frames - before.0) {
            break;
        }
        let of = format!("{frames} frames of {packets} packets, before {before:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "{of}");
        before = (frames, packets);
    }
}
