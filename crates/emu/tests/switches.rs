//! Privileged: links between the ports of switches. Bridges of the kernel stand for the switches.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use pathcast_emu::{Network, inside};

mod common;

use common::{conserved, network, one_link};

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

/// How many of 30 datagrams of 1000 IP bytes arrive, and when the first and the last [ms].
fn datagrams(n: &Network) -> (usize, f64, f64) {
    let d = n.describe();
    let (local, remote) = (d.paths[0].local[0], d.paths[0].remote);
    let server = inside(&d.server, || UdpSocket::bind(SocketAddr::new(remote, 0)).unwrap()).unwrap();
    let client = inside(&d.client, || UdpSocket::bind(SocketAddr::new(local, 0)).unwrap()).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    let sent = Instant::now();
    for i in 0..30u8 {
        client.send(&vec![i; 1000 - if local.is_ipv4() { 28 } else { 48 }]).unwrap();
    }
    let (mut at, mut buffer) = (Vec::new(), [0; 2000]);
    while let Ok(bytes) = server.recv(&mut buffer) {
        assert!(buffer[..bytes].iter().all(|b| *b == buffer[0]), "a datagram is as it was");
        at.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    (at.len(), at[0], *at.last().unwrap())
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
            let (count, first, last) = datagrams(n);
            // one in transmission and nine waiting; what leaves while the rest is being sent makes room
            assert!((10..14).contains(&count), "{count}");
            assert!(first >= 21.0 && last >= 20.0 + count as f64, "{first} {last}");
            let ledger = n.ledger(false).unwrap();
            conserved(&ledger);
            let wan = ledger.groups.iter().flat_map(|g| &g.links).find(|l| l.name == "wan/ab").unwrap();
            assert_eq!(wan.counters.carried.bytes, 1000 * wan.counters.carried.packets, "{wan:?}");
            assert_eq!((wan.counters.carried.packets, wan.counters.offered.packets), (count as u64, 30));
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
    let server = std::thread::spawn(move || {
        let mut got = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got
    });
    let mut client = inside(&d.client, || TcpStream::connect(to).unwrap()).unwrap();
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(server.join().unwrap() == sent, "the bytes arrived changed");
    let ledger = n.ledger(false).unwrap();
    conserved(&ledger);
    let frames: u64 = ledger.groups.iter().map(|g| g.reads).sum();
    let packets: u64 = ledger.groups.iter().flat_map(|g| &g.links).map(|l| l.counters.offered.packets).sum();
    assert!(packets > 2 * frames, "{frames} frames of {packets} packets");
}
