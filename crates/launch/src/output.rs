//! The file of a run's report: opened before the program runs, with the rights of the program's user, and what the program
//! then puts in its place is nothing to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::account;
use crate::error::LaunchError;

/// Opens `path` for a report of a run as `user`, as [`Launch::user`](crate::Launch::user) has it; what is in it stays for
/// now. `/dev/fd/N`, `/dev/stdout` and `/dev/stderr` are descriptors of ours, whosever they are: what is in their files may
/// be the program's. Says whether the file is the report's alone.
///
/// # Errors
/// `Report`: it cannot be opened by that user, or leads elsewhere by a link or a second name, or nobody reads that pipe;
/// as [`Launch::run`](crate::Launch::run) for the user.
pub fn open_report(path: &Path, user: Option<&str>) -> Result<(File, bool), LaunchError> {
    let account = account::choose(user)?;
    let number = descriptor(path);
    let opened = match number {
        Some(number) => duplicate(number),
        None => account.act(|| open(path)),
    };
    opened.map(|file| (file, number.is_none())).map_err(|source| LaunchError::Report {
        path: path.into(),
        user: (account.changes && source.kind() == io::ErrorKind::PermissionDenied).then_some(account.name),
        source,
    })
}

fn descriptor(path: &Path) -> Option<RawFd> {
    match path.to_str()? {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => text.strip_prefix("/dev/fd/").or_else(|| text.strip_prefix("/proc/self/fd/"))?.parse().ok(),
    }
}

/// Of our own; the program does not get it.
fn duplicate(number: RawFd) -> io::Result<File> {
    // SAFETY: plain numbers; one that is not open is refused
    let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if own < 0 {
        return Err(io::Error::last_os_error());
    }
    if number > 2 {
        // SAFETY: as above
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: just made, belongs to nobody else
    Ok(unsafe { File::from_raw_fd(own) })
}

fn open(path: &Path) -> io::Result<File> {
    // O_NONBLOCK: a pipe that nobody reads would keep us for ever
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if about.is_file() && about.nlink() > 1 {
        return Err(io::Error::other("it has a second name"));
    }
    // SAFETY: an open descriptor. A pipe whose reader has stopped must not keep us either: it takes what it has room for
    if about.is_file() && unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}
