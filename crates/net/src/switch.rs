//! MPTCP sockets whose subflows user space chooses.
//!
//! The kernel has no socket option for it: a socket takes the path manager that the sysctl names at its creation. So the
//! sysctl is changed for the instant of socket(2) and put back, one thread and one process at a time.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pathcast_base::Protocol;
use pathcast_base::lock::{Lock, LockError};
use socket2::Socket;

use crate::maker::{Family, SocketMaker, make_tcp, within};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const RUN: &str = "/run/pathcast";
const LOCK: &str = "mptcp-path-manager.lock";
/// Whoever has the lock has it for one system call.
const PATIENCE: Duration = Duration::from_secs(10);

/// (setting, its value for user space): new kernels by name, those before 6.15 by number.
const SETTINGS: [(&str, &str); 2] = [("path_manager", "userspace"), ("pm_type", "1")];

/// An MPTCP socket, and why it is managed by the kernel if it is.
pub(crate) struct Made {
    pub socket: Socket,
    pub kernel_managed: Option<String>,
}

/// Makes an MPTCP socket with the user-space path manager, or with the kernel's where that may not be chosen.
///
/// # Errors
/// Only when there is no MPTCP socket at all.
pub(crate) fn make(maker: &dyn SocketMaker, family: Family) -> io::Result<Made> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _across = lock_file(Path::new(RUN), PATIENCE)?;
    within(maker, || {
        let read = |name: &str| std::fs::read_to_string(setting(name)).map(|v| v.trim_end().to_owned());
        let found = SETTINGS.iter().find_map(|&(name, user)| read(name).ok().map(|old| (name, user, old)));
        let Some((name, user, old)) = found else {
            let socket = make_tcp(family, Protocol::Mptcp)?;
            return Ok(Made { socket, kernel_managed: Some("this kernel has no user-space path manager".into()) });
        };
        if old == user {
            return Ok(Made { socket: make_tcp(family, Protocol::Mptcp)?, kernel_managed: None });
        }
        if let Err(e) = std::fs::write(setting(name), user) {
            let socket = make_tcp(family, Protocol::Mptcp)?;
            return Ok(Made { socket, kernel_managed: Some(format!("net.mptcp.{name} cannot be set: {e}")) });
        }
        let restore = Restore { name, old };
        let socket = make_tcp(family, Protocol::Mptcp);
        drop(restore);
        Ok(Made { socket: socket?, kernel_managed: None })
    })
}

/// The file that whoever changes the setting holds.
pub fn setting_lock() -> std::path::PathBuf {
    Path::new(RUN).join(LOCK)
}

/// The setting by which the kernel gives the sockets of this network namespace a path manager: its file, and the value for
/// one in user space. None where the kernel has no such path manager.
pub fn user_setting() -> Option<(std::path::PathBuf, &'static str)> {
    SETTINGS.iter().map(|&(name, user)| (setting(name), user)).find(|(file, _)| file.exists())
}

fn setting(name: &str) -> std::path::PathBuf {
    Path::new("/proc/sys/net/mptcp").join(name)
}

/// Puts the setting back, on a panic too.
struct Restore {
    name: &'static str,
    old: String,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // cannot be reported better: a moment ago the same write succeeded
        let _ = std::fs::write(setting(self.name), &self.old);
    }
}

/// Held until dropped. `None` where pathcast has no run directory: then no other process of it changes this host.
///
/// # Errors
/// Another process has it for longer than the moment that it takes.
fn lock_file(directory: &Path, patience: Duration) -> io::Result<Option<Lock>> {
    match Lock::alone(&directory.join(LOCK), patience) {
        Ok(lock) => Ok(Some(lock)),
        Err(error @ LockError::Busy { .. }) => Err(io::Error::other(error)),
        Err(LockError::System { .. }) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_an_error_that_says_by_whom_and_not_for_ever() {
        let directory = std::env::temp_dir().join(format!("pathcast-switch-{}", std::process::id()));
        assert!(lock_file(&directory, Duration::ZERO).unwrap().is_none(), "no directory, nobody to exclude");
        std::fs::create_dir(&directory).unwrap();
        let held = lock_file(&directory, Duration::ZERO).unwrap().expect("nobody has it");
        let error = lock_file(&directory, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains(&format!("locked by process {}", std::process::id())), "{error}");
        drop(held);
        assert!(lock_file(&directory, Duration::ZERO).unwrap().is_some());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
