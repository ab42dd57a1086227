//! Stops this process unless somebody has told it to go on meanwhile.

use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;

use libc::{SIG_DFL, SIG_IGN, SIGSTOP, SIGTTIN};

/// Stops this process, if `still` says so, until SIGCONT: what `still` says.
///
/// Where a shell has control of jobs, a SIGCONT that comes after the beginning of `still` is not lost: the signal that stops
/// waits in the meantime, and the kernel takes such a one away when it sends SIGCONT. SIGSTOP cannot wait; it is used where a
/// process group is orphaned, which no other signal stops.
///
/// # Errors
/// What `still` says; the process is not stopped then.
pub(crate) fn stop(still: impl FnOnce() -> io::Result<bool>) -> io::Result<bool> {
    if !has_shell() {
        let stops = still()?;
        if stops {
            raise(SIGSTOP);
        }
        return Ok(stops);
    }
    // SAFETY: the places are valid and zeros are valid values; mask and action are put back
    unsafe {
        let (mut set, mut mask): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGTTIN);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut mask);
        let (mut stopping, mut before): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
        stopping.sa_sigaction = SIG_DFL;
        libc::sigaction(SIGTTIN, &stopping, &mut before);
        raise(SIGTTIN);
        let stops = still();
        if !matches!(stops, Ok(true)) {
            stopping.sa_sigaction = SIG_IGN; // which takes away the one that waits
            libc::sigaction(SIGTTIN, &stopping, null_mut());
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, null_mut());
        libc::sigaction(SIGTTIN, &before, null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, null_mut());
        stops
    }
}

/// To this thread, or it could go on for a while, and with it the program, while another takes the signal.
fn raise(signal: i32) {
    // SAFETY: plain numbers
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
}

/// Whether our parent is a shell with job control, so that our process group is not orphaned: in our session, in another
/// group.
fn has_shell() -> bool {
    // SAFETY: plain numbers
    unsafe {
        let parent = libc::getppid();
        libc::getsid(parent) == libc::getsid(0) && libc::getpgid(parent) != libc::getpgrp()
    }
}
