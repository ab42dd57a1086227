//! A far end to test against, and network namespaces to put it in.
#![allow(dead_code)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pathcast_net::{
    Client, Key, Limits, PathAddr, Progress, Server, ServerConfig, SocketMaker, TransferOptions, TransferReport,
};

pub mod netns;

pub fn key() -> Key {
    Key::new("test", [7; 32]).unwrap()
}

pub fn config(listen: &[&str]) -> ServerConfig {
    ServerConfig {
        listen: listen.iter().map(|a| a.parse().unwrap()).collect(),
        keys: vec![key()],
        limits: Limits::default(),
        admission: None,
        announce: Vec::new(),
        stamp_port: 0,
        on_event: None,
    }
}

pub fn path(name: &str, local: &str, remote: &str) -> PathAddr {
    PathAddr::new(name, local.parse().unwrap(), remote.parse().unwrap())
}

pub fn client(maker: &Arc<dyn SocketMaker>, server: &Server, ip: &str) -> Client {
    let to = SocketAddr::new(ip.parse::<IpAddr>().unwrap(), server.local_addrs()[0].port());
    Client::connect(maker.clone(), to, key()).unwrap()
}

/// Waits until it is so, for at most half a minute; false if it never was.
pub fn until(so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !so() {
        if begun.elapsed() > Duration::from_secs(30) {
            return false;
        }
        sleep(Duration::from_millis(1));
    }
    true
}

/// Tries again until it is good, for at most a minute: a busy machine keeps one try waiting, but not each.
pub fn tried<T>(mut once: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match once() {
            Ok(good) => return good,
            Err(bad) => assert!(begun.elapsed() < Duration::from_secs(60), "{bad}"),
        }
    }
}

/// By the kernel's scheduler alone: with the steering, a subflow that ends is a decision that hangs on rates measured here.
pub fn plain<'a>() -> TransferOptions<'a> {
    TransferOptions { plain: true, ..TransferOptions::default() }
}

/// The subflow over the path called `name`.
pub fn over<'a>(report: &'a TransferReport, name: &str) -> &'a pathcast_net::SubflowReport {
    report.subflows.iter().find(|s| s.path.as_deref() == Some(name)).unwrap_or_else(|| panic!("no {name}: {report:#?}"))
}

/// What the subflow over the path called `name` has carried until now [byte].
pub fn acked(progress: &Progress<'_>, name: &str) -> u64 {
    progress.subflows.iter().find(|s| s.path.as_deref() == Some(name)).map_or(0, |s| s.bytes_acked)
}

/// A transfer that goes slowly until the paths called `names` have subflows: on a busy machine their joins may come later than
/// its end.
pub fn slow_until_joined<'a>(names: &'a [&str]) -> impl FnMut(&Progress<'_>) + 'a {
    |progress| {
        let joined =
            |name: &&str| progress.subflows.iter().any(|s| s.path.as_deref() == Some(name) && s.joined_s.is_some());
        if !names.iter().all(joined) && progress.elapsed_s < 30.0 {
            sleep(Duration::from_millis(100)); // in which nothing is written
        }
    }
}

/// Looked at so often that there is little time to write between two looks.
pub fn looking(on_sample: &mut dyn FnMut(&Progress<'_>)) -> TransferOptions<'_> {
    TransferOptions { on_sample: Some(on_sample), every: Some(Duration::from_millis(1)), ..plain() }
}

/// Runs `work` on a thread that has given up CAP_NET_ADMIN.
pub fn without_net_admin<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    const VERSION_3: u32 = 0x2008_0522;
    const NET_ADMIN: u32 = 12;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let header = [VERSION_3, 0];
            let mut sets = [[0u32; 3]; 2]; // effective, permitted, inheritable; low and high words
            // SAFETY: raw system calls on this thread, with the structures that version 3 asks for
            unsafe {
                assert_eq!(libc::syscall(libc::SYS_capget, &header, &mut sets), 0);
                sets[0][0] &= !(1 << NET_ADMIN);
                sets[0][1] &= !(1 << NET_ADMIN);
                assert_eq!(libc::syscall(libc::SYS_capset, &header, &sets), 0);
            }
            work()
        });
        thread.join().unwrap()
    })
}

/// Runs `work` on a thread for which the kernel is as before Linux 6.5: it does not know MPTCP_FULL_INFO.
pub fn without_subflow_statistics<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    const SOL_MPTCP: u32 = 284;
    const MPTCP_FULL_INFO: u32 = 4;
    // of struct seccomp_data: the system call's number, and the low halves of its arguments
    let argument = |n: u32| if cfg!(target_endian = "little") { 16 + 8 * n } else { 20 + 8 * n };
    let load = |k| libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k };
    let unless = |k, jf| libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf, k };
    let end = |k| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k };
    let mut filter = [
        load(0),
        unless(libc::SYS_getsockopt as u32, 5),
        load(argument(1)),
        unless(SOL_MPTCP, 3),
        load(argument(2)),
        unless(MPTCP_FULL_INFO, 1),
        end(libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            // SAFETY: of this thread alone, with a filter that outlives the call
            unsafe {
                assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
                assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
            }
            work()
        });
        thread.join().unwrap()
    })
}
