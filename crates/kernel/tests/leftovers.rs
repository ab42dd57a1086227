//! Privileged: of ten thousand connections under controllers nothing is left: no entry in a map, and after unloading no
//! program, map, link or pin; no socket, and no warning in the kernel's log.

mod kernel_log;
mod live;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};

use kernel_log::KernelLog;
use libbpf_sys::{bpf_link_info, bpf_obj_get_info_by_fd, bpf_prog_info};
use live::{able, defaults, multipath, skip, socket, until, until_released};
use pathcast_emu::{Namespace, inside};
use pathcast_kernel::{Loaded, pin_root, pinned, registered};
use socket2::Protocol;

/// Opens and closes connections over the loopback, in batches that are open together.
fn churn(protocol: Protocol, control: &str, batches: usize, batch: usize) {
    let listener = socket(protocol, Some(control)); // its children have the controller too
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(batch as i32).unwrap();
    let listener = TcpListener::from(listener);
    let to = listener.local_addr().unwrap();
    for _ in 0..batches {
        let mut open = Vec::with_capacity(batch);
        for _ in 0..batch {
            let near = socket(protocol, Some(control));
            near.set_linger(Some(Duration::ZERO)).unwrap(); // a reset: no port waits
            near.connect(&to.into()).unwrap();
            open.push((near, listener.accept().unwrap().0));
        }
        for (near, far) in &mut open {
            (&*near).write_all(b"x").unwrap();
            far.read_exact(&mut [0]).unwrap();
        }
    }
}

/// What a loaded controller is made of: the kernel's numbers of its programs, maps and link.
struct Parts {
    programs: Vec<u32>,
    maps: Vec<u32>,
    link: u32,
}

/// A descriptor by which something can be asked, or the end of it.
fn opened(fd: i32) -> Option<OwnedFd> {
    // SAFETY: the kernel has just given it to us
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
fn program(id: u32) -> Option<OwnedFd> {
    // SAFETY: a call with a number
    opened(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) })
}
fn map(id: u32) -> Option<OwnedFd> {
    // SAFETY: a call with a number
    opened(unsafe { libbpf_sys::bpf_map_get_fd_by_id(id) })
}
fn link(id: u32) -> Option<OwnedFd> {
    // SAFETY: a call with a number
    opened(unsafe { libbpf_sys::bpf_link_get_fd_by_id(id) })
}

impl Parts {
    fn of(loaded: &Loaded) -> Parts {
        let programs: Vec<u32> = loaded.costs().iter().map(|cost| cost.id).collect();
        let mut maps = Vec::new();
        for &id in &programs {
            let mut ids = [0u32; 16];
            // SAFETY: a struct of integers and pointers, for which all zero is valid
            let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
            (info.nr_map_ids, info.map_ids) = (ids.len() as u32, ids.as_mut_ptr() as u64);
            let mut length = size_of_val(&info) as u32;
            let fd = program(id).expect("it is loaded");
            // SAFETY: an open descriptor, a struct of as many bytes as `length` says, and room for 16 numbers
            let failed = unsafe { bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
            assert_eq!(failed, 0);
            maps.extend(ids[..info.nr_map_ids as usize].iter().copied());
        }
        maps.sort_unstable();
        maps.dedup();
        // SAFETY: as above
        let mut info: bpf_link_info = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&info) as u32;
        let fd = loaded.link_fd().as_raw_fd();
        // SAFETY: as above
        assert_eq!(unsafe { bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut length) }, 0);
        Parts { programs, maps, link: info.id }
    }

    /// How many are in the kernel: programs, maps, links.
    fn alive(&self) -> (usize, usize, usize) {
        let programs = self.programs.iter().filter(|id| program(**id).is_some()).count();
        let maps = self.maps.iter().filter(|id| map(**id).is_some()).count();
        (programs, maps, usize::from(link(self.link).is_some()))
    }
}

/// What a namespace counts: TCP sockets in use, orphaned ones included, and MPTCP endpoints.
fn sockets(namespace: &str) -> String {
    let text = inside(namespace, || fs::read_to_string("/proc/thread-self/net/sockstat").unwrap()).unwrap();
    let tcp = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let words: Vec<&str> = tcp.split(' ').take(3).collect(); // the number of orphans is of all namespaces
    let endpoints = match multipath() {
        true => Command::new("ip").args(["-n", namespace, "mptcp", "endpoint", "show"]).output().unwrap().stdout,
        false => Vec::new(),
    };
    format!("{} endpoints {}", words.join(" "), String::from_utf8_lossy(&endpoints))
}

#[test]
fn ten_thousand_connections_leave_nothing_behind() {
    let what = "leftovers of many connections";
    if !able(what) {
        return;
    }
    let id = std::process::id();
    let namespace = match Namespace::create(&format!("pc-pcn{id}")) {
        Ok(namespace) => namespace,
        Err(error) => return skip(what, &error),
    };
    let (log, before) = (KernelLog::open(), sockets(namespace.name()));
    let mut unloaded = Vec::new();
    for (n, (control, protocol, batches)) in [
        ("imtcp_bg", Protocol::TCP, 40),
        ("lisa", Protocol::MPTCP, 60),
        ("lia", Protocol::TCP, 30),
        ("nice", Protocol::MPTCP, 40),
        ("olia", Protocol::TCP, 30),
    ]
    .into_iter()
    .enumerate()
    {
        if protocol == Protocol::MPTCP && !multipath() {
            continue;
        }
        let (start, name) = (Instant::now(), format!("pcn{id}_{n}"));
        let at = (n % 2 == 0).then(|| pin_root("pathcast-test").unwrap().join(&name));
        let loaded = Loaded::load(&name, &defaults(control), at.as_deref()).unwrap();
        let parts = Parts::of(&loaded);
        let (programs, maps, links) = parts.alive();
        assert!(programs >= 5 && maps >= 5 && links == 1, "all that was loaded is found");
        inside(namespace.name(), || churn(protocol, loaded.name(), batches, 50)).unwrap();
        until_released(&loaded);
        let counts = loaded.counts().unwrap();
        println!("{control} {protocol:?}, {programs} programs, {maps} maps, {:?}: {counts:?}", start.elapsed());
        assert_eq!(counts.opened, 2 * 50 * batches as u64, "both ends");
        assert_eq!((counts.unstored, counts.ungrouped, counts.unlisted), (0, 0, 0));
        loaded.unload().unwrap();
        unloaded.push((name, parts));
    }
    // the kernel frees late, and all of them at once
    for (name, parts) in unloaded {
        until("the end of its programs, maps and link", || parts.alive() == (0, 0, 0));
        until("the end of the registration", || !registered().contains(&name));
    }
    assert!(
        !pinned(&pin_root("pathcast-test").unwrap())
            .unwrap()
            .iter()
            .any(|pin| pin.name.starts_with(&format!("pcn{id}_")))
    );
    until("the end of all sockets", || sockets(namespace.name()) == before);
    log.quiet();
    let name = namespace.name().to_owned();
    drop(namespace);
    assert!(!fs::exists(format!("/run/netns/{name}")).unwrap());
}
