//! Waits for the program, and stops and goes on with it.

use std::io;
use std::mem::zeroed;

use crate::signals::Passing;
use crate::terminal::Terminal;

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

/// Waits until the program has ended: its exit status, 128 + n after signal n.
///
/// When it is stopped, this process stops itself, so that the shell has its terminal back; when this process goes on, so
/// does the program.
///
/// # Errors
/// The system's.
pub(crate) fn wait(pid: libc::pid_t, passing: &Passing, terminal: &Terminal) -> io::Result<i32> {
    loop {
        let info = next(pid, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
        if matches!(info.si_code, libc::CLD_STOPPED | libc::CLD_TRAPPED) {
            let now = next(pid, libc::WSTOPPED | libc::WNOHANG)?;
            // SAFETY: filled in by waitid, or zero when it goes on already
            if unsafe { now.si_pid() } == pid {
                let group = terminal.suspend(pid);
                // to this thread, or it could go on for a while, and with it the program, while another takes the signal
                // SAFETY: plain numbers; the signal cannot be caught and stops the whole process
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), libc::SIGSTOP) };
                terminal.resume(group);
                // SAFETY: as above; not yet waited for
                unsafe { libc::kill(pid, libc::SIGCONT) };
            }
            continue;
        }
        passing.ended();
        let info = next(pid, libc::WEXITED)?;
        // SAFETY: filled in by waitid
        let number = unsafe { info.si_status() };
        return Ok(if info.si_code == libc::CLD_EXITED { number } else { 128 + number });
    }
}
