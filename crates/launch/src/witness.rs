//! A process of our group that does nothing but see which signals come to all of it: what has come to us, and to it too, has
//! come to the program. Whoever sends does not tell: timeout(1) signals its child and then its group, a shell without job
//! control its child alone, and all are in one group.
//!
//! Forked from a process that may have threads: only system calls, no allocation, as in `maker`.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

use crate::maker::pair;
use crate::race::now_ms;

/// A signal to the whole group is with all of it in this time, before or after [ms].
const TOGETHER_MS: u64 = 100;
const SIGNALS: usize = 32;

pub(crate) struct Witness {
    pub pid: libc::pid_t,
    /// Takes numbers of signals: of those that have come to us alone it sends the same to us.
    asks: OwnedFd,
}

impl Witness {
    /// # Errors
    /// The system's.
    pub fn start() -> io::Result<Witness> {
        let (asks, asked) = pair()?;
        // SAFETY: the sets are valid places; the child only makes system calls
        let pid = unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let us = libc::getpid();
            let pid = libc::fork();
            if pid == 0 {
                watch(asked.as_raw_fd(), us, &all);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
            pid
        };
        if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Witness { pid, asks }) }
    }

    /// Where a signal handler asks.
    pub fn channel(&self) -> RawFd {
        self.asks.as_raw_fd()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: a child of ours that was not waited for
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, null_mut(), 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// For a signal handler; whether it was taken.
pub(crate) fn ask(channel: RawFd, signal: i32) -> bool {
    // SAFETY: four bytes of ours
    unsafe {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        libc::send(channel, (&raw const signal).cast(), size_of_val(&signal), flags) == 4
    }
}

unsafe fn watch(asked: RawFd, us: libc::pid_t, all: &libc::sigset_t) -> ! {
    // SAFETY: system calls on our own descriptors and buffers
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"pathcast-signal".as_ptr(), 0, 0, 0);
        let asked = libc::dup2(asked, 0); // nothing else stays open because of us
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
        libc::chdir(c"/".as_ptr());
        let seen = libc::signalfd(-1, all, libc::SFD_NONBLOCK);
        let mut came = [0u64; SIGNALS];
        let mut due = [0u64; SIGNALS]; // 0: not asked for
        loop {
            let now = now_ms();
            let wait = due.iter().filter(|&&at| at > 0).map(|at| at.saturating_sub(now) as libc::c_int).min();
            let mut polls = [seen, asked].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            libc::poll(polls.as_mut_ptr(), 2, wait.unwrap_or(-1));
            let now = now_ms();
            let mut info: libc::signalfd_siginfo = zeroed();
            while libc::read(seen, (&raw mut info).cast(), size_of_val(&info)) == size_of_val(&info) as isize {
                if let Some(came) = came.get_mut(info.ssi_signo as usize) {
                    *came = now;
                }
            }
            let mut signal = 0i32;
            let read = libc::recv(asked, (&raw mut signal).cast(), size_of_val(&signal), libc::MSG_DONTWAIT);
            if read == 0 {
                libc::_exit(0); // the run has ended
            }
            if let Some(due) = due.get_mut(signal as usize).filter(|due| read == 4 && **due == 0) {
                *due = now + TOGETHER_MS;
            }
            for (signal, (due, came)) in due.iter_mut().zip(&came).enumerate().filter(|(_, (due, _))| **due > 0) {
                if *came + 2 * TOGETHER_MS > *due {
                    *due = 0; // it came to all
                } else if *due <= now {
                    *due = 0;
                    libc::kill(us, signal as i32);
                }
            }
        }
    }
}
