//! The terminal, if there is one: left as it was found when the program did not do so itself.

use std::fs::{File, OpenOptions};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;

/// The controlling terminal and how it was before the program.
pub(crate) struct Terminal(Option<(File, libc::termios)>);

/// Runs `work` while SIGTTOU is blocked, which would stop whoever changes the terminal from the background.
fn unstopped<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are valid places, and the mask is put back
    unsafe {
        let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        result
    }
}

fn group() -> libc::pid_t {
    // SAFETY: no arguments
    unsafe { libc::getpgrp() }
}

fn foreground(terminal: RawFd) -> libc::pid_t {
    // SAFETY: an open descriptor
    unsafe { libc::tcgetpgrp(terminal) }
}

fn give(terminal: RawFd, to: libc::pid_t) {
    // SAFETY: an open descriptor; a group that is gone is refused
    unstopped(|| unsafe { libc::tcsetpgrp(terminal, to) });
}

impl Terminal {
    /// Remembers it, if it is ours to use.
    pub fn remember() -> Terminal {
        let open = OpenOptions::new().read(true).write(true).open("/dev/tty");
        Terminal(open.ok().filter(|file| foreground(file.as_raw_fd()) == group()).and_then(|file| {
            // SAFETY: an open descriptor, and zeros are a valid termios
            let (done, settings) = unsafe {
                let mut settings: libc::termios = zeroed();
                (libc::tcgetattr(file.as_raw_fd(), &mut settings), settings)
            };
            (done == 0).then_some((file, settings))
        }))
    }

    /// Takes it from the program's own process group, if that has it; gives that group.
    pub fn suspend(&self, program: libc::pid_t) -> Option<libc::pid_t> {
        let (file, _) = self.0.as_ref()?;
        // SAFETY: a child of ours
        let theirs = unsafe { libc::getpgid(program) };
        let has_it = theirs != group() && foreground(file.as_raw_fd()) == theirs;
        has_it.then(|| {
            give(file.as_raw_fd(), group());
            theirs
        })
    }

    /// Gives it back, if we are in the foreground.
    pub fn resume(&self, to: Option<libc::pid_t>) {
        if let (Some((file, _)), Some(theirs)) = (&self.0, to)
            && foreground(file.as_raw_fd()) == group()
        {
            give(file.as_raw_fd(), theirs);
        }
    }

    /// After the program: takes it back from a group that is gone, and, after one that was `killed`, undoes its settings.
    pub fn restore(&self, killed: bool) {
        let Some((file, settings)) = &self.0 else { return };
        let owner = foreground(file.as_raw_fd());
        // SAFETY: signal 0 only asks whether anybody is there
        let nobody = owner > 0 && owner != group() && unsafe { libc::kill(-owner, 0) } != 0;
        if nobody {
            give(file.as_raw_fd(), group());
        }
        if killed && foreground(file.as_raw_fd()) == group() {
            // SAFETY: an open descriptor and what tcgetattr gave
            unstopped(|| unsafe { libc::tcsetattr(file.as_raw_fd(), libc::TCSADRAIN, settings) });
        }
    }
}
