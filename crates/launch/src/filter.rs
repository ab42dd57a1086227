//! The seccomp filter of a program over Multipath TCP: its calls of socket(2) for TCP, and, where it has several lines,
//! of connect(2), wait for the socket maker.
//!
//! Only `socket` of this machine's own system call table for IPv4 and IPv6 streams is stopped, and its `connect`.
//! Everything else runs at full speed and untouched, other architectures (32-bit programs) included.

use std::io;
use std::os::fd::RawFd;

use libc::sock_filter;

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCH: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCH: Option<u32> = Some(0xc000_00b7);
#[cfg(target_arch = "riscv64")]
pub(crate) const ARCH: Option<u32> = Some(0xc000_00f3);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(crate) const ARCH: Option<u32> = None;

// offsets in struct seccomp_data on a little-endian machine: the number, the architecture, low halves of arguments
pub(crate) const NUMBER: u32 = 0;
pub(crate) const MACHINE: u32 = 4;
const DOMAIN: u32 = 16;
const KIND: u32 = 24;
const PROTOCOL: u32 = 32;

/// SOCK_STREAM and its like, without the flags.
const KIND_MASK: u32 = 0xf;

pub(crate) const fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}
/// Jumps so many instructions ahead when the accumulator is `k`, or is not.
pub(crate) const fn equals(k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: yes, jf: no, k }
}
pub(crate) const fn and(k: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16, jt: 0, jf: 0, k }
}
pub(crate) const fn end(k: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k }
}

const LENGTH: usize = 16;

/// `connects`: connect(2) too.
const fn instructions(arch: u32, connects: bool) -> [sock_filter; LENGTH] {
    [
        load(MACHINE),
        equals(arch, 0, 12),
        load(NUMBER),
        equals(libc::SYS_connect as u32, if connects { 11 } else { 10 }, 0),
        equals(libc::SYS_socket as u32, 0, 9),
        load(DOMAIN),
        equals(libc::AF_INET as u32, 1, 0),
        equals(libc::AF_INET6 as u32, 0, 6),
        load(KIND),
        and(KIND_MASK),
        equals(libc::SOCK_STREAM as u32, 0, 3),
        load(PROTOCOL),
        equals(0, 2, 0),
        equals(libc::IPPROTO_TCP as u32, 1, 0),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_USER_NOTIF),
    ]
}

const HERE: u32 = match ARCH {
    Some(arch) => arch,
    None => 0,
};
static FILTER: [sock_filter; LENGTH] = instructions(HERE, false);
static CONNECTS_TOO: [sock_filter; LENGTH] = instructions(HERE, true);

/// For every filter: a machine whose calls we know.
pub(crate) fn unknown_machine() -> Option<(String, &'static str)> {
    let unknown = ARCH.is_none() || cfg!(target_endian = "big");
    unknown.then(|| ("a filter of system calls for this machine's architecture".into(), "x86_64, aarch64 or riscv64"))
}

/// What the kernel must have; says what is missing.
pub(crate) fn missing() -> Option<(String, &'static str)> {
    if let Some(missing) = unknown_machine() {
        return Some(missing);
    }
    const GET_ACTION_AVAIL: libc::c_ulong = 2;
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the pointer is to the action's number
    let known = unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) } == 0;
    // SECCOMP_ADDFD_FLAG_SEND cannot be asked for without a process that waits
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if known && version(&release) >= (5, 14) {
        return None;
    }
    Some(("seccomp user notification with SECCOMP_ADDFD_FLAG_SEND".into(), "Linux 5.14 or later with CONFIG_SECCOMP"))
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Puts the calling thread, and all that it starts, under a filter; what the system call returns. Only system calls.
pub(crate) fn apply(filter: &[sock_filter], flags: libc::c_ulong) -> io::Result<RawFd> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program and does not write to it
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
}

/// This filter, with or without connect(2); gives the listener. For use between fork and exec.
///
/// # Errors
/// The system's; EBUSY under another filter with a listener.
pub(crate) fn install(connects: bool) -> io::Result<RawFd> {
    let filter = if connects { &CONNECTS_TOO } else { &FILTER };
    let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // a signal that is handled must not break a call that the maker has seen (Linux 5.19)
    match apply(filter, listen | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => apply(filter, listen),
        result => result,
    }
}

/// Runs a filter on a call.
#[cfg(test)]
pub(crate) fn verdict(filter: &[sock_filter], number: i64, arch: u32, arguments: [u32; 3]) -> u32 {
    let mut data = [0u8; 64];
    data[..4].copy_from_slice(&(number as u32).to_le_bytes());
    data[4..8].copy_from_slice(&arch.to_le_bytes());
    for (i, a) in arguments.iter().enumerate() {
        data[16 + 8 * i..][..4].copy_from_slice(&a.to_le_bytes());
        data[20 + 8 * i..][..4].copy_from_slice(&[0xff; 4]); // upper halves, which the kernel ignores in an int
    }
    let (mut at, mut a) = (0, 0);
    loop {
        let i = &filter[at];
        at += 1;
        match u32::from(i.code) & 7 {
            libc::BPF_LD => a = u32::from_le_bytes(data[i.k as usize..][..4].try_into().unwrap()),
            libc::BPF_ALU => a &= i.k,
            libc::BPF_JMP => at += usize::from(if a == i.k { i.jt } else { i.jf }),
            _ => return i.k,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(number: i64, arch: u32, arguments: [u32; 3]) -> u32 {
        super::verdict(&FILTER, number, arch, arguments)
    }

    #[test]
    fn only_tcp_sockets_of_this_machine_are_stopped() {
        let Some(arch) = ARCH else { return };
        let (stream, inet, inet6) = (libc::SOCK_STREAM as u32, libc::AF_INET as u32, libc::AF_INET6 as u32);
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
        for tcp in [[inet, stream, 0], [inet6, stream | flags, 6], [inet, stream | flags, 6], [inet6, stream, 0]] {
            assert_eq!(verdict(libc::SYS_socket, arch, tcp), libc::SECCOMP_RET_USER_NOTIF, "{tcp:?}");
            assert_eq!(verdict(libc::SYS_connect, arch, tcp), libc::SECCOMP_RET_ALLOW);
            assert_eq!(verdict(libc::SYS_socket, 0x4000_0003, tcp), libc::SECCOMP_RET_ALLOW, "32 bits");
            assert_eq!(verdict(libc::SYS_socket | 0x4000_0000, arch, tcp), libc::SECCOMP_RET_ALLOW, "x32");
        }
        for (filter, connect) in [(&FILTER, libc::SECCOMP_RET_ALLOW), (&CONNECTS_TOO, libc::SECCOMP_RET_USER_NOTIF)] {
            assert_eq!(super::verdict(filter, libc::SYS_connect, arch, [3, 0, 16]), connect);
            assert_eq!(super::verdict(filter, libc::SYS_connect, 0x4000_0003, [3, 0, 16]), libc::SECCOMP_RET_ALLOW);
            assert_eq!(super::verdict(filter, libc::SYS_socket, arch, [inet, stream, 0]), libc::SECCOMP_RET_USER_NOTIF);
            assert_eq!(super::verdict(filter, libc::SYS_read, arch, [inet, stream, 0]), libc::SECCOMP_RET_ALLOW);
        }
        for other in [[inet, libc::SOCK_DGRAM as u32, 0], [1, stream, 0], [16, stream, 0], [inet, stream, 262]] {
            assert_eq!(verdict(libc::SYS_socket, arch, other), libc::SECCOMP_RET_ALLOW, "{other:?}");
        }
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-x\n"), (6, 18));
        assert!(version("5.9.0") < (5, 14) && version("5.14") >= (5, 14) && version("") < (5, 14));
    }
}
