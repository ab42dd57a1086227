//! Starts the program: in its cgroup, under its filters, as its user, and otherwise as if the shell had started it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::account::Account;
use crate::error::LaunchError;
use crate::filter;
use crate::listener::hand_over;
use crate::maker::Maker;
use crate::typing;

/// Steps between fork and exec; one that fails is told in the upper half of the error number.
const STEPS: [&str; 5] = [
    "joining the cgroup",
    "filtering system calls",
    "handing the filter to the socket maker",
    "changing the user",
    "ending with its steering process",
];

fn at_step<T>(step: i32, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|e| io::Error::from_raw_os_error((step + 1) << 16 | e.raw_os_error().unwrap_or(libc::EIO)))
}

/// What happens between fork and exec. Only system calls.
struct Preparation {
    processes: Option<File>,
    channel: Option<RawFd>,
    connects: bool,
    no_new_privs: bool,
    account: Option<Account>,
    /// Our process id, where the program is not to outlive us.
    parent: Option<libc::pid_t>,
}

impl Preparation {
    fn run(&self) -> io::Result<()> {
        if let Some(file) = &self.processes {
            let mut file = file;
            at_step(0, io::Write::write_all(&mut file, b"0"))?;
        }
        // SAFETY: plain numbers; an interpreter that holds us may ignore it, and programs expect it
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        // SAFETY: plain numbers
        if self.no_new_privs && unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return at_step(1, Err(io::Error::last_os_error()));
        }
        if let Some(channel) = self.channel {
            let listener = at_step(1, filter::install(self.connects))?;
            at_step(2, hand_over(channel, listener))?;
            // SAFETY: ours, and the maker has its own by now
            unsafe { libc::close(listener) };
        }
        if let Some(account) = &self.account {
            at_step(1, typing::forbid())?;
            at_step(3, account.assume())?;
            // what the caller has open is the caller's; without the call (before Linux 5.11) each goes that was so marked
            // SAFETY: plain numbers; the error of exec still finds its way
            unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        }
        if let Some(parent) = self.parent {
            // after the change of user, which takes it back
            // SAFETY: plain numbers
            unsafe {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0) != 0 {
                    return at_step(4, Err(io::Error::last_os_error()));
                }
                // 0: from another process namespace
                if ![0, parent].contains(&libc::getppid()) {
                    libc::_exit(128 + libc::SIGTERM); // we had died before
                }
            }
        }
        Ok(())
    }
}

/// Starts `command`; its process id. `ends_with_us`: SIGTERM reaches it when the calling thread has ended, or was killed.
///
/// # Errors
/// `Command` when there is no such program; what kept it from being prepared.
pub(crate) fn spawn(
    command: &[OsString],
    account: &Account,
    processes: Option<File>,
    maker: Option<&Maker>,
    no_new_privs: bool,
    ends_with_us: bool,
) -> Result<libc::pid_t, LaunchError> {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    let preparation = Preparation {
        processes,
        channel: maker.map(|m| m.channel.as_raw_fd()),
        connects: maker.is_some_and(|m| m.connects),
        no_new_privs,
        account: account.changes.then(|| account.clone()),
        parent: ends_with_us.then(|| std::process::id() as libc::pid_t),
    };
    if account.changes {
        child.envs(account.environment.iter().map(|(k, v)| (k, v)));
    }
    // SAFETY: only system calls are made after the fork
    unsafe { child.pre_exec(move || preparation.run()) };
    match child.spawn() {
        Ok(process) => Ok(process.id() as libc::pid_t),
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let source = io::Error::from_raw_os_error(number & 0xffff);
            Err(match STEPS.get(((number >> 16) as usize).wrapping_sub(1)) {
                Some(step) => refused(step, source),
                None if error.raw_os_error().is_none() => LaunchError::Argument(format!("the command: {error}")),
                None => LaunchError::Command {
                    command: command[0].to_string_lossy().into_owned(),
                    status: if number == libc::ENOENT { 127 } else { 126 },
                    source,
                },
            })
        }
    }
}

fn refused(step: &str, source: io::Error) -> LaunchError {
    if source.raw_os_error() == Some(libc::EBUSY) && step == STEPS[1] {
        return LaunchError::missing(
            "a place for the filter: this process is already under one with a listener (a sandbox, or another `run`)",
            "run outside of it, or without --mptcp",
        );
    }
    LaunchError::system(step)(source)
}
