//! A program that runs as another user than we do shares our terminal, as with `su`; this seccomp filter keeps it from
//! typing there what our shell would run when the program has ended.
//!
//! Two requests do that: TIOCSTI pushes a byte into the input of the caller's controlling terminal, and TIOCLINUX pastes on
//! a virtual console. They are refused as Linux refuses them where `dev.tty.legacy_tiocsti` is 0 (EPERM), through every table of system calls that a process of this machine can enter. All that the program
//! starts is under the filter for good. A process that is not cannot help it: the kernel takes these requests for the
//! terminal of the caller's own session only, and nobody without CAP_SYS_ADMIN joins another session or takes its terminal.

use std::io;

use libc::sock_filter;

use crate::filter::{ARCH, MACHINE, NUMBER, and, apply, end, equals, load};

/// The low half of ioctl's second argument; the kernel looks at no more.
const REQUEST: u32 = 24;
/// A call of x32 on x86_64, which shares the number of the architecture.
const X32: u32 = 0x4000_0000;
const X32_IOCTL: u32 = 514;
/// Of i386 and arm; of riscv32.
const COMPAT_IOCTL: u32 = if cfg!(target_arch = "riscv64") { 29 } else { 54 };

const fn instructions(arch: u32) -> [sock_filter; 13] {
    [
        load(MACHINE),
        equals(arch, 2, 0),
        load(NUMBER), // of another machine
        equals(COMPAT_IOCTL, 4, 7),
        load(NUMBER), // of ours
        and(!X32),
        equals(libc::SYS_ioctl as u32, 1, 0),
        equals(X32_IOCTL, 0, 3),
        load(REQUEST),
        equals(libc::TIOCSTI as u32, 2, 0),
        equals(libc::TIOCLINUX as u32, 1, 0),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ]
}

static FILTER: [sock_filter; 13] = instructions(match ARCH {
    Some(arch) => arch,
    None => 0,
});

/// Puts the calling process, and all that it starts, under the filter. Where none of its standard streams leads to a
/// terminal it also loses the controlling one, but stays in our session and group, whose signals it goes on to get. For use
/// between fork and exec.
///
/// # Errors
/// The system's.
pub(crate) fn forbid() -> io::Result<()> {
    apply(&FILTER, 0)?;
    // SAFETY: plain numbers and a string with a final zero; what is opened is closed
    unsafe {
        if (0..3).any(|stream| libc::isatty(stream) == 1) {
            return Ok(());
        }
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK);
        if terminal < 0 {
            return Ok(()); // there is none
        }
        let given_up = libc::ioctl(terminal, libc::TIOCNOTTY);
        libc::close(terminal);
        if given_up == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::verdict;

    #[test]
    fn what_types_is_refused_through_every_table_and_nothing_else() {
        let Some(arch) = ARCH else { return };
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let (ioctl, compat, x32) = (libc::SYS_ioctl, i64::from(COMPAT_IOCTL), i64::from(X32 | X32_IOCTL));
        let other = 0x4000_0003; // i386
        for (number, arch) in [(ioctl, arch), (ioctl | i64::from(X32), arch), (x32, arch), (compat, other)] {
            for request in [libc::TIOCSTI, libc::TIOCLINUX] {
                assert_eq!(verdict(&FILTER, number, arch, [0, request as u32, 0]), refused, "{number} {arch:x}");
            }
            for request in [libc::TCSETS, libc::TIOCGWINSZ, libc::TIOCSCTTY] {
                assert_eq!(verdict(&FILTER, number, arch, [0, request as u32, 0]), libc::SECCOMP_RET_ALLOW);
            }
            let descriptor = libc::TIOCSTI as u32;
            assert_eq!(verdict(&FILTER, number, arch, [descriptor, 0, descriptor]), libc::SECCOMP_RET_ALLOW);
        }
        for (number, arch) in [(libc::SYS_read, arch), (compat, arch), (libc::SYS_ioctl + 1, arch), (compat + 1, other)]
        {
            assert_eq!(verdict(&FILTER, number, arch, [0, libc::TIOCSTI as u32, 0]), libc::SECCOMP_RET_ALLOW);
        }
    }
}
