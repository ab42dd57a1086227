//! Passes on the signals that pathcast gets to the program that it runs.
//!
//! The program stays in our process group, so the terminal's signals (interrupt, quit, stop, a changed window) reach it
//! without us; only those that another process sent to us alone are passed on: a `witness` tells which. Signals are the
//! business of a whole process: the handlers serve every run that is under way in it, and go with the last.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use libc::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGWINCH};

use crate::witness::{self, Witness};

const PASSED: [i32; 12] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT];

/// Runs at once in one process.
const SLOTS: usize = 64;
const FREE: i32 = 0;
/// The program is not started yet: what comes is remembered in `WAITING`.
const STARTING: i32 = -1;

static PROGRAMS: [AtomicI32; SLOTS] = [const { AtomicI32::new(FREE) }; SLOTS];
static WAITING: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static CONTINUED: AtomicU64 = AtomicU64::new(0);

/// How often this process was told to go on.
pub(crate) fn continued() -> u64 {
    CONTINUED.load(Ordering::SeqCst)
}

/// Its number, and where it is asked; 0 and -1: there is none.
static WITNESS: (AtomicI32, AtomicI32) = (AtomicI32::new(0), AtomicI32::new(-1));

struct Installed {
    runs: usize,
    witness: Option<Witness>,
    before: Vec<(i32, libc::sigaction)>,
}

static INSTALLED: Mutex<Installed> = Mutex::new(Installed { runs: 0, witness: None, before: Vec::new() });

/// Only what a signal handler may do.
extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid siginfo; all calls are system calls that a handler may make
    unsafe {
        let errno = *libc::__errno_location();
        let by_kernel = (*info).si_code == libc::SI_KERNEL;
        let sender = (*info).si_pid();
        if signal == SIGCONT {
            CONTINUED.fetch_add(1, Ordering::SeqCst);
        }
        // of a sender in our group, or one that has gone, it does not show whether the program has it too
        let witness = WITNESS.0.load(Ordering::SeqCst);
        let asked = sender == witness && witness != 0;
        let unclear = !by_kernel && !asked && sender != 0 && [-1, libc::getpgrp()].contains(&libc::getpgid(sender));
        let mut asks = false;
        for (program, waiting) in PROGRAMS.iter().zip(&WAITING) {
            match program.load(Ordering::SeqCst) {
                FREE => {}
                STARTING => {
                    waiting.fetch_or(1 << signal, Ordering::SeqCst);
                }
                pid => {
                    // from the terminal, and to go on from a shell: to the whole group, so the program has it too if it
                    // is still in ours, and once more, later, would undo its next stop; `wait` sees to one that has not
                    let to_all = by_kernel || signal == SIGCONT;
                    let with_us = libc::getpgid(pid) == libc::getpgrp();
                    if to_all || asked {
                        if with_us == asked {
                            libc::kill(pid, signal);
                        }
                    } else if sender != pid {
                        let ask =
                            unclear && with_us && (asks || witness::ask(WITNESS.1.load(Ordering::SeqCst), signal));
                        asks |= ask;
                        if !ask {
                            libc::kill(pid, signal);
                        }
                    }
                }
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// While it lives, signals are passed on.
pub(crate) struct Passing {
    slot: usize,
}

impl Passing {
    /// Before the program is started. None when 64 runs are under way in this process.
    pub fn begin() -> Option<Passing> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |p: &AtomicI32| p.compare_exchange(FREE, STARTING, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        let slot = PROGRAMS.iter().position(taken)?;
        WAITING[slot].store(0, Ordering::SeqCst);
        installed.runs += 1;
        if installed.runs == 1 {
            // without it what comes to the group is passed on too
            installed.witness = Witness::start().ok();
            if let Some(witness) = &installed.witness {
                WITNESS.0.store(witness.pid, Ordering::SeqCst);
                WITNESS.1.store(witness.channel(), Ordering::SeqCst);
            }
            installed.before = install();
        }
        Some(Passing { slot })
    }

    /// The program is started; what came meanwhile goes to it.
    pub fn started(&self, pid: libc::pid_t) {
        PROGRAMS[self.slot].store(pid, Ordering::SeqCst);
        let waiting = WAITING[self.slot].swap(0, Ordering::SeqCst);
        for signal in PASSED.into_iter().filter(|s| waiting >> s & 1 == 1) {
            // SAFETY: plain numbers; the program is not yet waited for, so the number is its own
            unsafe { libc::kill(pid, signal) };
        }
    }

    /// The program has ended and is about to be waited for, after which its number may be another's.
    pub fn ended(&self) {
        PROGRAMS[self.slot].store(STARTING, Ordering::SeqCst);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        PROGRAMS[self.slot].store(FREE, Ordering::SeqCst);
        installed.runs -= 1;
        if installed.runs == 0 {
            for (signal, before) in installed.before.drain(..) {
                // SAFETY: what sigaction gave
                unsafe { libc::sigaction(signal, &before, null_mut()) };
            }
            WITNESS.0.store(0, Ordering::SeqCst);
            WITNESS.1.store(-1, Ordering::SeqCst);
            installed.witness = None;
        }
    }
}

fn install() -> Vec<(i32, libc::sigaction)> {
    let mut before = Vec::new();
    // SAFETY: zeros are a valid sigaction, and the handler has the signature that SA_SIGINFO asks for
    unsafe {
        let mut ours: libc::sigaction = zeroed();
        ours.sa_sigaction = pass_on as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for signal in PASSED {
            let mut old: libc::sigaction = zeroed();
            libc::sigaction(signal, null_mut(), &mut old);
            if old.sa_sigaction == libc::SIG_IGN && signal != SIGTTOU {
                continue; // nohup: the program inherits it
            }
            libc::sigaction(signal, &ours, null_mut());
            before.push((signal, old));
        }
        // who ignores it gets no exit status, and the program would inherit that
        let mut old: libc::sigaction = zeroed();
        libc::sigaction(libc::SIGCHLD, null_mut(), &mut old);
        if old.sa_sigaction == libc::SIG_IGN {
            libc::sigaction(libc::SIGCHLD, &zeroed(), null_mut());
            before.push((libc::SIGCHLD, old));
        }
    }
    before
}
