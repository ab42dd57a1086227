//! Waiting for file descriptors, with an end.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Instant;

/// What to wait for, and afterwards what has come (`revents`).
pub(crate) fn want(fd: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}

/// Waits until one of `fds` is ready, a signal or `deadline` has come; true when one is ready.
pub(crate) fn wait(fds: &mut [libc::pollfd], deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    // rounded up, or the last millisecond would be spent spinning
    let ms = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
    // SAFETY: the slice is valid for its length
    let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) };
    if n >= 0 {
        return Ok(n > 0);
    }
    let error = io::Error::last_os_error();
    // a signal may be Ctrl-C: the caller looks at its flag
    if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
}

/// Can `fd` be read before `deadline`?
pub(crate) fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> io::Result<bool> {
    loop {
        if wait(&mut [want(fd, libc::POLLIN)], deadline)? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
    }
}
