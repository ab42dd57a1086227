//! Privileged: emulated networks with the real kernel's TCP and UDP in them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use pathcast_base::Nanos;
use pathcast_emu::{Network, inside};
use pathcast_scenario::Direction;

mod common;

use common::{burst, conserved, network, one_link};

/// Seconds from connect() until the server has read `bytes` and the client has its answer.
fn transfer(network: &Network, path: usize, bytes: usize) -> f64 {
    let d = network.describe();
    let (local, remote) = (d.paths[path].local[0], d.paths[path].remote);
    let listener = inside(&d.server, || TcpListener::bind(SocketAddr::new(remote, 0)).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut s, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), local);
        let mut buffer = vec![0; 1 << 20];
        let (mut got, mut sum) = (0, 0u64);
        while got < bytes {
            let n = s.read(&mut buffer).unwrap();
            assert!(n > 0, "closed after {got}");
            sum += buffer[..n].iter().map(|b| u64::from(*b)).sum::<u64>();
            got += n;
        }
        s.write_all(&sum.to_le_bytes()).unwrap();
    });
    let data: Vec<u8> = (0..bytes).map(|i| (i * 31 % 251) as u8).collect();
    let sum: u64 = data.iter().map(|b| u64::from(*b)).sum();
    let start = Instant::now();
    let mut s = inside(&d.client, || TcpStream::connect(SocketAddr::new(remote, port)).unwrap()).unwrap();
    s.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    s.write_all(&data).unwrap();
    let mut answer = [0; 8];
    s.read_exact(&mut answer).unwrap();
    assert_eq!(u64::from_le_bytes(answer), sum, "the bytes arrived changed");
    server.join().unwrap();
    start.elapsed().as_secs_f64()
}

#[test]
fn tcp_fills_the_link_and_nothing_is_lost_outside_the_model() {
    let Some(n) = network(&one_link("rate = \"50Mbit\"\ndelay = \"10ms\"\nqueue = \"400 packets\"")) else { return };
    let best = 10_000_000.0 * 8.0 * 1500.0 / 1448.0 / 50e6;
    // never faster than the line; how much slower depends on what else this machine does, so once is enough
    let start = Instant::now();
    loop {
        let seconds = transfer(&n, 0, 10_000_000);
        assert!(seconds > best, "{seconds} s against {best} s at line rate");
        if seconds < best + 10.0 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{seconds} s against {best} s at line rate");
    }
    let ledger = n.ledger(false).unwrap();
    conserved(&ledger);
    let ab = &ledger.groups[0].links.iter().find(|l| l.name == "wan/ab").unwrap();
    assert!(ab.counters.carried.bytes > 10_000_000, "{ab:?}");
}

/// A socket of Multipath TCP.
fn multipath() -> OwnedFd {
    // SAFETY: socket returns a new descriptor that nobody else owns, or -1, which is asked for.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    }
}

fn address(to: SocketAddr) -> (libc::sockaddr_in, libc::socklen_t) {
    let SocketAddr::V4(to) = to else { panic!("{to}") };
    let sin_addr = libc::in_addr { s_addr: u32::from(*to.ip()).to_be() };
    let family = libc::AF_INET as libc::sa_family_t;
    let address = libc::sockaddr_in { sin_family: family, sin_port: to.port().to_be(), sin_addr, sin_zero: [0; 8] };
    (address, size_of::<libc::sockaddr_in>() as libc::socklen_t)
}

/// Sends so many bytes by Multipath TCP to the first path's server, as a program does that knows nothing of paths.
fn send_by_multipath(n: &Network, bytes: usize) {
    let d = n.describe();
    let listener = inside(&d.server, || {
        let (fd, (any, size)) = (multipath(), address("0.0.0.0:0".parse().unwrap()));
        // SAFETY: a live descriptor and address.
        assert_eq!(unsafe { libc::bind(fd.as_raw_fd(), (&raw const any).cast(), size) }, 0);
        // SAFETY: a live descriptor.
        assert_eq!(unsafe { libc::listen(fd.as_raw_fd(), 1) }, 0);
        TcpListener::from(fd)
    });
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().unwrap();
        std::io::copy(&mut s, &mut std::io::sink()).unwrap()
    });
    inside(&d.client, || {
        let (fd, (to, size)) = (multipath(), address(SocketAddr::new(d.paths[0].remote, port)));
        // SAFETY: a live descriptor and address.
        assert_eq!(unsafe { libc::connect(fd.as_raw_fd(), (&raw const to).cast(), size) }, 0);
        TcpStream::from(fd).write_all(&vec![7; bytes]).unwrap();
    })
    .unwrap();
    assert_eq!(server.join().unwrap(), bytes as u64);
}

#[test]
fn a_program_that_knows_no_paths_uses_all() {
    if !std::fs::exists("/proc/sys/net/mptcp").unwrap_or(false) {
        return println!("SKIPPED: this kernel has no Multipath TCP");
    }
    // of each path the one whose server address it shares
    for servers in [&[1, 2][..], &[1, 1], &[1, 2, 2], &[1, 2, 3, 3], &[1, 2, 2, 1, 5]] {
        let mut text = String::from("name = \"many\"\n");
        for (path, server) in (1..).zip(servers) {
            text += &format!(
                "[[link]]\nname = \"wan{path}\"\na = \"client\"\nb = \"server\"\nrate = \"20Mbit\"\ndelay = \"5ms\"\n\
                 queue = \"100 packets\"\n[[path]]\nname = \"path{path}\"\nlinks = [\"wan{path}\"]\n"
            );
            if *server < path {
                text += &format!("remote = \"path{server}\"\n");
            }
        }
        let Some(n) = network(&text) else { return };
        let start = Instant::now();
        loop {
            send_by_multipath(&n, 4_000_000 * servers.len());
            let ledger = n.ledger(false).unwrap();
            let links = ledger.groups.iter().flat_map(|group| &group.links).filter(|link| link.name.ends_with("/ab"));
            let carried: Vec<_> = links.map(|link| (link.name.clone(), link.counters.carried.bytes)).collect();
            if carried.iter().all(|(_, bytes)| *bytes > 200_000) {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{servers:?}: {carried:?}");
        }
    }
}

#[test]
fn datagrams_are_delayed_dropped_and_in_order() {
    for ip in [4, 6] {
        let text = one_link("rate = \"8Mbit\"\ndelay = \"20ms\"\nqueue = \"9 packets\"") + &format!("ip = {ip}\n");
        let Some(n) = network(&text) else { return };
        let arrivals = burst(&n);
        assert!(arrivals[0].1 > 0.0205 && arrivals[9].1 > 0.0295, "{arrivals:?}");
        conserved(&n.ledger(false).unwrap());
    }
}

#[test]
fn super_packets_lose_single_segments_and_tcp_recovers() {
    let Some(n) = network(&one_link("rate = \"200Mbit\"\ndelay = \"2ms\"\nloss = 0.01")) else { return };
    transfer(&n, 0, 4_000_000);
    let ledger = n.ledger(false).unwrap();
    conserved(&ledger);
    let ab = &ledger.groups[0].links.iter().find(|l| l.name == "wan/ab").unwrap().counters;
    let share = ab.dropped.loss.packets as f64 / ab.offered.packets as f64;
    assert!(share > 0.004 && share < 0.02, "{ab:?}");
}

#[test]
fn a_link_changes_while_it_runs() {
    let Some(mut n) = network(&one_link("rate = \"10Mbit\"\ndelay = \"5ms\"")) else { return };
    let slow = transfer(&n, 0, 1_000_000);
    assert!(slow > 0.8, "{slow}");
    let new = n.set("wan", None, &[("rate".into(), "100Mbit".into())]).unwrap();
    assert_eq!(new.len(), 2);
    assert_eq!(new[0].1.delay, pathcast_base::Nanos::millis(5));
    // at the old rate never, whatever else this machine does
    let start = Instant::now();
    while transfer(&n, 0, 1_000_000) >= 0.8 {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    n.set("wan", Some(Direction::Ba), &[("delay".into(), "50ms".into())]).unwrap();
    assert!(transfer(&n, 0, 1000) > 0.11);

    for (link, key, value, says) in [
        ("lan", "rate", "1Mbit", "wan"),
        ("wan", "speed", "1Mbit", "rate"),
        ("wan", "rate", "fast", "Mbit"),
        ("wan", "loss", "1.5", "1"),
        ("wan", "queue", "{ kind = \"fair\", packets = 9 }", "cannot become one of another kind"),
    ] {
        let error = n.set(link, None, &[(key.into(), value.into())]).unwrap_err();
        assert_eq!(error.exit(), pathcast_base::Exit::Usage);
        let text = error.to_string();
        assert!(text.contains(says) && (text.contains(value) || text.contains(key) || text.contains(link)), "{text}");
    }
}

#[test]
fn a_change_is_judged_by_those_before_it_and_needs_no_file_again() {
    let folder = std::env::temp_dir().join(format!("pathcast-set-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("rates.csv");
    std::fs::write(&file, "0,5Mbit\n1,2Mbit\n").unwrap();
    let Some(mut n) = network(&one_link(&format!("rate = {{ trace = \"{}\" }}", file.display()))) else { return };
    let sha256 = |n: &pathcast_emu::Network| {
        let ledger = n.ledger(false).unwrap();
        ledger.groups[0].links[0].params.trace.as_ref().map(|trace| trace.sha256.clone())
    };
    let before = sha256(&n);
    assert!(before.is_some());
    std::fs::write(&file, "0,1Mbit\n1,2Mbit\n").unwrap();
    n.set("wan", None, &[("delay".into(), "1ms".into())]).unwrap();
    n.restart(Nanos::ZERO).unwrap();
    assert_eq!(sha256(&n), before, "an edited file is another network's");
    std::fs::remove_dir_all(&folder).unwrap();
    n.set("wan", None, &[("rate".into(), "5Mbit".into())]).unwrap();
    n.set("wan", None, &[("bucket".into(), "{ rate = \"1Mbit\", burst = \"60KB\" }".into())]).unwrap();
    n.restart(Nanos::ZERO).unwrap();
    assert_eq!(sha256(&n), None);
}

#[test]
fn what_was_set_outlasts_the_scenarios_changes_that_do_not_name_it() {
    let rest = "rate = \"10Mbit\"\n[[change]]\nat = \"2s\"\nlink = \"wan\"\nrate = \"5Mbit\"\n\
                [[change]]\nat = \"3s\"\nlink = \"wan\"\ndelay = \"1ms\"\n";
    let set = |n: &mut Network, key: &str, value: &str| n.set("wan", None, &[(key.into(), value.into())]).unwrap();
    let look = |n: &Network| {
        let ledger = n.ledger(false).unwrap();
        ledger.groups[0].links.iter().map(|l| (l.params.rate.unwrap().0, l.params.delay)).collect::<Vec<_>>()
    };
    let start = Instant::now();
    let n = loop {
        let Some(mut n) = network(&one_link(rest)) else { return };
        set(&mut n, "loss", "1");
        set(&mut n, "rate", "{ ab = \"7Mbit\" }");
        let seen = look(&n);
        // before the first change, which a busy machine may miss
        if n.ledger(false).unwrap().groups[0].since_start_s < 2.0 {
            assert_eq!(seen, [(7_000_000, Nanos::ZERO), (10_000_000, Nanos::ZERO)]);
            break n;
        }
        assert!(start.elapsed() < Duration::from_secs(60));
    };
    let start = Instant::now();
    while look(&n)[0].1 == Nanos::ZERO {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", look(&n));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(look(&n), [(5_000_000, Nanos::millis(1)); 2]);
    assert!(n.ledger(false).unwrap().groups[0].links.iter().all(|l| l.params.loss == 1.0));
}

/// A removed device is ready for ever: a thread that looked each time would have no other.
#[test]
fn a_device_that_somebody_removes_costs_nothing() {
    let Some(n) = network(&one_link("rate = \"10Mbit\"")) else { return };
    let client = n.describe().client;
    let device = n.ledger(false).unwrap().devices.iter().find(|d| d.host == "client").unwrap().name.clone();
    let done = std::process::Command::new("ip").args(["-n", &client, "link", "delete", &device]).status().unwrap();
    assert!(done.success());
    let look = || n.ledger(false).unwrap().groups.swap_remove(0);
    let start = Instant::now();
    while look().devices_removed == 0 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    let before = look().cpu_s;
    std::thread::sleep(Duration::from_secs(1));
    let after = look();
    assert!(after.cpu_s - before < 0.1, "{before} s, then {} s", after.cpu_s);
    assert_eq!(after.devices_removed, 1);
}

#[test]
fn the_scenarios_time_begins_anew() {
    let rest = "rate = \"100Mbit\"\n[[traffic]]\nkind = \"constant\"\nlink = \"wan\"\ndirection = \"ab\"\n\
                rate = \"12Mbit\"\nstop = \"500ms\"\n[[change]]\nat = \"1ms\"\nlink = \"wan\"\nloss = 0.5";
    let Some(mut n) = network(&one_link(rest)) else { return };
    let look = |n: &Network| {
        let link = n.ledger(false).unwrap().groups[0].links.iter().find(|l| l.name == "wan/ab").unwrap().clone();
        (link.params.loss == 0.5, link.counters.cross.offered.packets)
    };
    // a packet a millisecond until the stop, and none after it
    let come = |n: &Network, packets: u64| {
        let start = Instant::now();
        while look(n) != (true, packets) {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?}, not {packets}", look(n));
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(look(n), (true, packets));
    };
    come(&n, 500);
    n.set("wan", Some(Direction::Ab), &[("rate".into(), "200Mbit".into())]).unwrap();
    // longer than this test takes
    let far = Nanos::secs(3600);
    n.restart(far).unwrap();
    assert_eq!(look(&n), (false, 500), "before its zero nothing of it has happened");
    let now = n.restart(Nanos::ZERO).unwrap();
    let later = n.restart(far).unwrap();
    assert!(later > now + far);
    let (loss, before) = look(&n);
    assert!(!loss && (500..=1000).contains(&before), "{before}: what came between the two");
    // it comes again from its beginning, and to its end
    let (lead, start) = (Nanos::secs(1), Instant::now());
    n.restart(lead).unwrap();
    come(&n, before + 500);
    assert!(start.elapsed() >= Duration::from_millis(1499), "{:?}", start.elapsed());
    let rate = n.ledger(false).unwrap().groups[0].links[0].params.rate.unwrap();
    assert_eq!(rate, "200Mbit".parse().unwrap(), "what was set holds from the beginning");
}

/// The thread that carries the link hears of it when the first change is past; on a busy machine that is a millisecond and more.
#[test]
fn a_time_that_began_before_its_first_change_was_heard_of_stands() {
    let rest = "rate = \"100Mbit\"\n[[change]]\nat = \"1ns\"\nlink = \"wan\"\nloss = 0.5";
    let Some(mut n) = network(&one_link(rest)) else { return };
    for _ in 0..5 {
        n.restart(Nanos::ZERO).unwrap();
        assert_eq!(n.ledger(false).unwrap().groups[0].links[0].params.loss, 0.5);
    }
}

#[test]
fn a_host_may_hand_over_its_segments_one_by_one() {
    for (segments, whole) in [("", false), ("[host.client]\nsend_segments = 1", true)] {
        let Some(n) = network(&format!("{}{segments}", one_link("rate = \"200Mbit\"\ndelay = \"10ms\""))) else {
            return;
        };
        transfer(&n, 0, 4_000_000);
        let ledger = n.ledger(false).unwrap();
        let group = &ledger.groups[0];
        let packets: u64 = group.links.iter().map(|l| l.counters.offered.packets).sum();
        assert_eq!(group.reads == packets + group.unroutable, whole, "{} frames, {packets} packets", group.reads);
    }
}

#[test]
fn two_paths_share_a_server_address_and_other_pairs_fail_at_once() {
    let text = "name = \"wan\"
        [[link]]\nname = \"a\"\na = \"client\"\nb = \"server\"\nrate = \"20Mbit\"\ndelay = \"5ms\"
        [[link]]\nname = \"b\"\na = \"client\"\nb = \"server\"\nrate = \"5Mbit\"\ndelay = \"30ms\"
        [[path]]\nname = \"path1\"\nlinks = [\"a\"]
        [[path]]\nname = \"path2\"\nlinks = [\"b\"]\nremote = \"path1\"\n";
    let Some(n) = network(text) else { return };
    let d = n.describe();
    assert_eq!(d.paths[0].remote, d.paths[1].remote);
    transfer(&n, 0, 500_000);
    let ledger = n.ledger(false).unwrap();
    assert_eq!(ledger.groups.len(), 1, "they share a device, so one thread");
    let carried = |name: &str| {
        let links = ledger.groups[0].links.iter();
        links.filter(|l| l.name.starts_with(name)).map(|l| l.counters.carried.bytes).sum::<u64>()
    };
    assert!(carried("a/") > 500_000);
    assert_eq!(carried("b/"), 0);
}

#[test]
fn a_scenario_that_cannot_run_leaves_nothing_behind() {
    let text = one_link("rate = \"5Mbit\"") + "[[traffic]]\nkind = \"tcp\"\npath = \"path1\"\n";
    let error = Network::up(&text, &[], "never").err().expect("tcp traffic is not for emu");
    assert_eq!(error.exit(), pathcast_base::Exit::Usage);
    assert!(error.to_string().contains("poisson"), "{error}");
    assert!(!std::path::Path::new("/run/netns/pc-never-client").exists());
}

/// Super-packets of which some segments are marked leave in parts, and the real TCP takes them.
#[test]
fn queues_that_decide_late_carry_real_transfers_and_mark_them() {
    for (queue, managed) in [
        ("{ kind = \"fair\", packets = 100 }", false),
        ("{ kind = \"codel\", target = \"1ms\", interval = \"20ms\", ecn = true }", true),
        ("{ kind = \"fq_codel\", target = \"1ms\", interval = \"20ms\" }", true),
        ("{ kind = \"pie\", target = \"1ms\", t_update = \"1ms\", max_burst = \"0s\", ecn = true }", true),
    ] {
        let rest = format!("rate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = {{ ab = {queue} }}");
        let Some(n) = network(&one_link(&rest)) else { return };
        for host in [&n.describe().client, &n.describe().server] {
            inside(host, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap()).unwrap();
        }
        // a slow start that ends early may leave too short a queue for PIE to mark: then once more
        for tries in 1.. {
            assert!(transfer(&n, 0, 2_000_000) > 0.8);
            let ledger = n.ledger(false).unwrap();
            conserved(&ledger);
            let c = ledger.groups[0].links.iter().find(|l| l.name == "wan/ab").unwrap().counters;
            if !managed || c.marked.packets > 0 || tries == 10 {
                assert_eq!(c.marked.packets > 0, managed, "{queue}: {c:?}");
                break;
            }
        }
    }
}
