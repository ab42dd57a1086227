//! Emulated networks for the tests of this directory.
#![allow(dead_code)] // every test uses a part of it

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pathcast_emu::{Ledger, Network, inside};
use pathcast_link::Counters;

/// A network, or the reason why this machine cannot have one, printed.
pub fn network(text: &str) -> Option<Network> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let id = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match Network::up(text, &[], &id) {
        Ok(network) => Some(network),
        Err(error) if error.exit() == pathcast_base::Exit::Missing => {
            println!("SKIPPED: emulated network: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn one_link(rest: &str) -> String {
    format!(
        "name = \"one\"\n[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n{rest}\n\
         [[path]]\nname = \"path1\"\nlinks = [\"wan\"]\n"
    )
}

/// The ledger's sums hold, and nothing was lost outside of the model.
pub fn conserved(ledger: &Ledger) {
    for link in ledger.groups.iter().flat_map(|g| &g.links) {
        let c = &link.counters;
        let dropped = c.dropped.all().packets;
        assert!(c.offered.packets >= c.carried.packets + dropped, "{link:?}");
    }
    assert!(ledger.groups.iter().all(|g| g.write_failures == 0), "{ledger:?}");
    assert!(ledger.devices.iter().all(|d| d.dropped == 0), "{ledger:?}");
}

/// What the link `wan` has counted from client to server.
pub fn wan(n: &Network) -> Counters {
    let ledger = n.ledger(false).unwrap();
    let mut links = ledger.groups.iter().flat_map(|group| &group.links);
    links.find(|link| link.name == "wan/ab").expect("it has a ledger").counters
}

/// Which of 30 datagrams arrive that are sent at once over `wan`, 1 ms each at its rate, and when since the first was sent
/// [s]. One is in transmission and nine wait; what leaves before the last is offered makes room. Where whoever sends or
/// carries them was stopped meanwhile, that is more than a few: then once more.
pub fn burst(n: &Network) -> Vec<(u8, f64)> {
    let start = Instant::now();
    loop {
        let arrivals = burst_once(n);
        assert!(arrivals.len() >= 10, "{arrivals:?}");
        if arrivals.len() < 14 {
            return arrivals;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{arrivals:?}");
    }
}

/// Until a datagram of this size arrives, and all that were sent for it are carried: on a busy machine the kernel may drop what comes in
/// the first milliseconds of an address, with nothing lost on the link.
fn greet(n: &Network, bytes: usize, client: &UdpSocket, server: &UdpSocket) {
    let (before, start, mut sent, mut got) = (wan(n).carried.packets, Instant::now(), 0, 0);
    while got == 0 || wan(n).carried.packets - before < sent || server.recv(&mut [0]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "{got} of {sent}: {:?}", n.ledger(false).unwrap());
        if got == 0 {
            client.send(&vec![255; bytes]).unwrap();
            sent += 1;
        }
        got += u64::from(server.recv(&mut [0]).is_ok());
    }
}

fn burst_once(n: &Network) -> Vec<(u8, f64)> {
    let d = n.describe();
    let (local, remote) = (d.paths[0].local[0], d.paths[0].remote);
    let server = inside(&d.server, || UdpSocket::bind(SocketAddr::new(remote, 0)).unwrap()).unwrap();
    let client = inside(&d.client, || UdpSocket::bind(SocketAddr::new(local, 0)).unwrap()).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    let bytes = 1000 - if local.is_ipv4() { 28 } else { 48 };
    greet(n, bytes, &client, &server);
    let before = wan(n);
    let sent = Instant::now();
    for i in 0..30u8 {
        client.send(&vec![i; bytes]).unwrap();
    }
    let (mut arrivals, mut buffer) = (Vec::new(), [0; 2000]);
    // until all are accounted for: the thread that carries them may not have run for longer than a wait
    loop {
        if let Ok(got) = server.recv(&mut buffer) {
            assert!(got == bytes && buffer[..got].iter().all(|b| *b == buffer[0]), "a datagram is as it was");
            arrivals.push((buffer[0], sent.elapsed().as_secs_f64()));
            continue;
        }
        let now = wan(n);
        let dropped = now.dropped.queue.packets - before.dropped.queue.packets;
        if arrivals.len() as u64 + dropped >= 30 {
            assert_eq!(now.offered.packets - before.offered.packets, 30);
            assert_eq!(now.carried.packets - before.carried.packets, arrivals.len() as u64);
            assert_eq!(dropped, 30 - arrivals.len() as u64);
            break;
        }
        assert!(sent.elapsed() < Duration::from_secs(60), "{arrivals:?} of {:?}", n.ledger(false).unwrap());
    }
    assert!(arrivals.windows(2).all(|two| two[0].0 < two[1].0), "{arrivals:?}");
    arrivals
}
