//! A far end to test against, and network namespaces to put it in.
#![allow(dead_code)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pathcast_net::{Client, Key, Limits, PathAddr, Server, ServerConfig, SocketMaker, TransferOptions, TransferReport};

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

/// By the kernel's scheduler alone: with the steering, a subflow that ends is a decision that hangs on rates measured here.
pub fn plain<'a>() -> TransferOptions<'a> {
    TransferOptions { plain: true, ..TransferOptions::default() }
}

/// The subflow over the path called `name`.
pub fn over<'a>(report: &'a TransferReport, name: &str) -> &'a pathcast_net::SubflowReport {
    report.subflows.iter().find(|s| s.path.as_deref() == Some(name)).unwrap_or_else(|| panic!("no {name}: {report:#?}"))
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
