//! Ends whatever is in the cgroup of a run. Where the kernel has no `cgroup.kill` (before 5.14), process by process.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long programs may take to end by SIGTERM before they are killed.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// How long the kernel may take to end what is killed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// The file that kills all of a cgroup, and of those below it, by a `1`.
pub(crate) const KILL: &str = "cgroup.kill";

/// Processes of a cgroup and of those below it.
pub(crate) fn members(directory: &Path) -> Vec<libc::pid_t> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<_> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        found.extend(members(&entry.path()));
    }
    found
}

/// Sends a signal to all of them but `spared`.
pub(crate) fn tell(directory: &Path, signal: i32, spared: Option<libc::pid_t>) {
    for pid in members(directory).into_iter().filter(|&pid| Some(pid) != spared) {
        // SAFETY: plain numbers
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as libc::c_int;
        if fd < 0 {
            continue; // it has ended
        }
        // SAFETY: just made, belongs to nobody else
        let process = unsafe { OwnedFd::from_raw_fd(fd) };
        // its number was not another's when it was opened, if it is listed still
        if members(directory).contains(&pid) {
            let none = std::ptr::null::<libc::siginfo_t>();
            // SAFETY: an open descriptor and plain numbers
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, none, 0) };
        }
    }
}

/// Kills all of them; those that are born meanwhile, too.
pub(crate) fn kill(directory: &Path) {
    let file = OpenOptions::new().write(true).open(directory.join(KILL));
    match file.and_then(|mut file| file.write_all(b"1")) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => tell(directory, libc::SIGKILL, None),
        _ => {} // who waits for their end sees what is left
    }
}

/// SIGTERM to all of them, and SIGKILL to those that are there after [`GRACE`]; whether all have ended.
pub(crate) fn end(directory: &Path) -> bool {
    tell(directory, libc::SIGTERM, None);
    within(directory, GRACE, || {}) || within(directory, PATIENCE, || kill(directory))
}

fn within(directory: &Path, most: Duration, each: impl Fn()) -> bool {
    let begun = Instant::now();
    loop {
        each();
        if members(directory).is_empty() {
            return true;
        }
        if begun.elapsed() > most {
            return false;
        }
        sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn without_the_kernels_help_each_process_is_told() {
        let directory = std::env::temp_dir().join(format!("pclaunch-ending-{}", std::process::id()));
        let below = directory.join("below");
        fs::create_dir_all(&below).unwrap();
        let [mut one, mut two, mut other] = [0; 3].map(|_| Command::new("sleep").arg("60").spawn().unwrap());
        fs::write(directory.join("cgroup.procs"), format!("{}\n", one.id())).unwrap();
        fs::write(below.join("cgroup.procs"), format!("{}\n", two.id())).unwrap();
        tell(&directory, libc::SIGTERM, Some(two.id() as libc::pid_t));
        assert!(!one.wait().unwrap().success());
        assert!(two.try_wait().unwrap().is_none());
        fs::remove_file(directory.join("cgroup.procs")).unwrap();
        kill(&directory);
        assert!(!two.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }
}
