//! Privileged: a link of every kind between the real kernel's sockets. What a busy machine does to the times of the
//! datagrams changes none of what is asked here: bounds are those that lateness only makes safer.

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use common::{conserved, network};
use pathcast_emu::{Network, inside};
use pathcast_link::Counters;

/// Datagrams of 1000 IP bytes.
const BYTES: usize = 1000;

/// Links between the hosts, each with a path over it. The way back is an ideal wire.
fn links(kinds: &[(&str, &str)]) -> String {
    let link = |(name, rest): &(&str, &str)| {
        format!(
            "[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\n{}\n\
             [[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n",
            rest.replace("; ", "\n")
        )
    };
    format!("name = \"kinds\"\n{}", kinds.iter().map(link).collect::<String>())
}

/// What arrived, in its order, and when since the first was sent; how long sending took; what the link counted.
struct Seen {
    order: Vec<u8>,
    last: Duration,
    sending: Duration,
    counters: Counters,
}

/// Sends datagrams at once over a path; they say that they can be marked.
fn burst(n: &Network, path: usize, name: &str, datagrams: u8) -> Seen {
    spaced(n, path, name, datagrams, Duration::ZERO)
}

/// The same, with so much between two of them.
fn spaced(n: &Network, path: usize, name: &str, datagrams: u8, gap: Duration) -> Seen {
    let d = n.describe();
    let (local, remote) = (d.paths[path].local[0], d.paths[path].remote);
    let server = inside(&d.server, || UdpSocket::bind(SocketAddr::new(remote, 0)).unwrap()).unwrap();
    let client = inside(&d.client, || UdpSocket::bind(SocketAddr::new(local, 0)).unwrap()).unwrap();
    ect(&client);
    client.connect(server.local_addr().unwrap()).unwrap();
    let start = Instant::now();
    for i in 0..datagrams {
        client.send(&[i; BYTES - 28]).unwrap();
        std::thread::sleep(gap);
    }
    let (sending, mut order, mut last) = (start.elapsed(), Vec::new(), Duration::ZERO);
    let count = || {
        let ledger = n.ledger(false).unwrap();
        let mut links = ledger.groups.iter().flat_map(|group| &group.links);
        links.find(|link| link.name == format!("{name}/ab")).expect("it has a ledger").counters
    };
    server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut buffer = [0; 2000];
    loop {
        while server.recv(&mut buffer).is_ok() {
            order.push(buffer[0]);
            last = start.elapsed();
        }
        let counters = count();
        let gone = counters.carried.packets + counters.dropped.all().packets;
        if gone == u64::from(datagrams) && order.len() as u64 == counters.carried.packets {
            return Seen { order, last, sending, counters };
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{name}: {} arrived of {counters:?}", order.len());
    }
}

/// Sets ECT(0) in the IP headers of what is sent.
fn ect(socket: &UdpSocket) {
    use std::os::fd::AsRawFd;
    let tos: libc::c_int = 2;
    // SAFETY: an option of four bytes from a live variable.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_TOS, (&raw const tos).cast(), 4) };
    assert_eq!(done, 0);
}

#[test]
fn what_polices_loses_reorders_and_gathers() {
    let trace = std::env::temp_dir().join(format!("pathcast-kinds-{}", std::process::id()));
    std::fs::write(&trace, "40\n80\n120\n160\n200\n").unwrap();
    let rate = format!("rate = {{ ab = {{ trace = {trace:?}, format = \"mahimahi\" }} }}");
    let found = network(&links(&[
        ("reorder", "reorder = { ab = { share = 0.5, distance = \"60ms\" } }"),
        ("policed", "policer = { ab = { rate = \"8kbit\", burst = \"3500B\" } }"),
        ("bursts", "loss = { ab = { kind = \"gilbert-elliott\", p = 1, r = 1 } }"),
        ("gathers", "aggregation = { ab = { every = \"40ms\", bytes = \"1500B\" } }"),
        ("traced", &rate),
    ]));
    std::fs::remove_file(&trace).unwrap();
    let Some(n) = found else { return };
    let seen = burst(&n, 0, "reorder", 60);
    assert!(seen.order.len() == 60 && (!seen.order.is_sorted() || seen.sending > Duration::from_millis(500)));
    let mut all = seen.order.clone();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..60), "{:?}", seen.order);

    // three fill the bucket, and a second brings tokens for one
    let seen = burst(&n, 1, "policed", 30);
    let most = 3 + seen.sending.as_secs() + 1;
    assert!((3..=most).contains(&(seen.order.len() as u64)), "{:?}", seen.order);
    assert_eq!(seen.counters.dropped.policer.packets, 30 - seen.order.len() as u64);

    // the state changes after every packet
    let seen = burst(&n, 2, "bursts", 30);
    assert_eq!((seen.order.len(), seen.counters.dropped.loss.packets), (15, 15));
    assert!(seen.order.windows(2).all(|two| two[1] - two[0] == 2), "{:?}", seen.order);

    // one at each opportunity, so the last comes five later than the first
    let seen = burst(&n, 3, "gathers", 6);
    assert!(seen.order.is_sorted() && seen.last >= Duration::from_micros(5 * 40_000 - 100), "{:?}", seen.last);

    // two thirds of an opportunity each: 4000 bytes are gone at the third, so two lie between
    let seen = burst(&n, 4, "traced", 4);
    assert!(seen.order.is_sorted() && seen.last >= Duration::from_micros(2 * 40_000 - 100), "{:?}", seen.last);
    conserved(&n.ledger(false).unwrap());
}

#[test]
fn managed_queues_mark_and_drop() {
    let Some(n) = network(&links(&[
        ("fair", "rate = { ab = \"80kbit\" }; queue = { ab = { kind = \"fair\", packets = 4 } }"),
        ("codel", "rate = { ab = \"400kbit\" }; queue = { ab = { kind = \"codel\", ecn = true } }"),
        ("fq_codel", "rate = { ab = \"400kbit\" }; queue = { ab = { kind = \"fq_codel\" } }"),
        (
            "pie",
            "rate = { ab = \"400kbit\" }; queue = { ab = { kind = \"pie\", target = \"1ms\", t_update = \"1ms\", \
             max_burst = \"0s\" } }",
        ),
        (
            "red",
            "rate = { ab = \"400kbit\" }; queue = { ab = { kind = \"red\", min = 1, max = 4, limit = 90, weight = 1, \
             ecn = true } }",
        ),
    ])) else {
        return;
    };
    // a tenth of a second each, and four wait
    let seen = burst(&n, 0, "fair", 10);
    let most = 5 + (seen.sending.as_millis() / 100) as usize + 1;
    assert!((5..=most).contains(&seen.order.len()) && seen.order.is_sorted(), "{:?}", seen.order);
    assert_eq!(seen.counters.dropped.queue.packets, 10 - seen.order.len() as u64);

    // 30 stand for 600 ms, where 5 are the target: marks after 100 ms, and no drop
    for (path, name) in [(1, "codel"), (2, "fq_codel")] {
        let seen = burst(&n, path, name, 30);
        assert_eq!(seen.order.len(), 30);
        let marked = seen.counters.marked.packets;
        assert!(marked > 1 || seen.sending > Duration::from_millis(400), "{name}: {:?}", seen.counters);
    }
    // neither's law is one of the datagrams' times once some wait
    let seen = burst(&n, 4, "red", 30);
    let signals = seen.counters.marked.packets + seen.counters.dropped.aqm.packets;
    assert!(signals > 5 || seen.sending > Duration::from_millis(200), "red: {:?}", seen.counters);
    // its probability moves while a queue stands
    let seen = spaced(&n, 3, "pie", 60, Duration::from_millis(3));
    let signals = seen.counters.marked.packets + seen.counters.dropped.aqm.packets;
    assert!(signals > 0 || seen.sending > Duration::from_millis(600), "pie: {:?}", seen.counters);
    conserved(&n.ledger(false).unwrap());
}
