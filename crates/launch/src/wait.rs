//! Waits for the program, and stops and goes on with it.

use std::io;
use std::mem::zeroed;
use std::thread;
use std::time::Duration;

use crate::signals::{Passing, continued};
use crate::stop::stop;
use crate::terminal::Terminal;

/// How long a program that is stopped may take to show it.
const SETTLING: Duration = Duration::from_millis(2);

fn next(pid: libc::pid_t, flags: i32) -> io::Result<libc::siginfo_t> {
    loop {
        // SAFETY: zeros are a valid siginfo
        let mut info: libc::siginfo_t = unsafe { zeroed() };
        // SAFETY: a child of ours, not yet waited for
        if unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) } == 0 {
            return Ok(info);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether there is such a report of the program now; taken unless `flags` have `WNOWAIT`.
fn reported(pid: libc::pid_t, flags: i32) -> io::Result<bool> {
    match next(pid, flags | libc::WNOHANG) {
        // SAFETY: filled in by waitid, or zero
        Ok(info) => Ok(unsafe { info.si_pid() } == pid),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(false), // it has ended meanwhile
        Err(error) => Err(error),
    }
}

/// Whether the program has gone on by the signal that let us go on; it may be stopped again by now. Asked twice, since the
/// kernel may be about to replace the one report by the other, and a SIGCONT too many undoes a stop.
fn went_on(pid: libc::pid_t) -> io::Result<bool> {
    let any = libc::WSTOPPED | libc::WCONTINUED | libc::WNOWAIT;
    Ok(reported(pid, any)? || {
        thread::sleep(SETTLING);
        reported(pid, any)?
    })
}

/// Waits until the program has ended: its exit status, 128 + n after signal n. `ended` is called before its number can be
/// given to another process.
///
/// When it is stopped, this process stops itself, so that the shell has its terminal back; when this process goes on, so
/// does the program.
///
/// # Errors
/// The system's.
pub(crate) fn wait(pid: libc::pid_t, passing: &Passing, terminal: &Terminal, ended: impl FnOnce()) -> io::Result<i32> {
    loop {
        let before = continued();
        let info = next(pid, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
        if matches!(info.si_code, libc::CLD_STOPPED | libc::CLD_TRAPPED) {
            let group = terminal.suspend(pid);
            let stopped = stop(|| {
                // a shell that has continued the program meanwhile has done so with us
                Ok(reported(pid, libc::WSTOPPED | libc::WNOWAIT)?
                    && continued() == before
                    && reported(pid, libc::WSTOPPED)?)
            })?;
            terminal.resume(group);
            if stopped && !went_on(pid)? {
                // SAFETY: not yet waited for
                unsafe { libc::kill(pid, libc::SIGCONT) };
            }
            continue;
        }
        passing.ended();
        ended();
        let info = next(pid, libc::WEXITED)?;
        // SAFETY: filled in by waitid
        let number = unsafe { info.si_status() };
        return Ok(if info.si_code == libc::CLD_EXITED { number } else { 128 + number });
    }
}
