//! Locks between processes, flock(2) on a file that only its owner can open: waited for so long and no longer.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Exit, Fault};

/// Between two attempts.
const POLL: Duration = Duration::from_millis(5);

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// By one.
    Alone,
    /// By several together.
    Shared,
}

/// Why a lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{} is locked by {holder}, for {} s by now", path.display(), waited.as_secs())]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who has it, for people.
        holder: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The file cannot be opened or locked.
    #[error("cannot lock {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Fault for LockError {
    fn code(&self) -> &'static str {
        match self {
            LockError::Busy { .. } => "busy",
            LockError::System { .. } => "system",
        }
    }
    fn hint(&self) -> Option<String> {
        matches!(self, LockError::Busy { .. }).then(|| "wait for its end, or end it, if it hangs".into())
    }
    fn exit(&self) -> Exit {
        match self {
            LockError::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Exit::Missing,
            _ => Exit::Runtime,
        }
    }
}

/// Opens the file of a lock, made if it is not there: 0600, so that nobody else can open and hold it. Follows no link.
///
/// # Errors
/// The system's; ELOOP for a link.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?; // of a version that let others open it
    }
    Ok(file)
}

/// Takes the lock of an open file, which `path` is said to be; it goes with the file.
///
/// # Errors
/// `Busy` after `patience`.
pub fn take(file: &File, path: &Path, hold: Hold, patience: Duration) -> Result<(), LockError> {
    let kind = if hold == Hold::Alone { libc::LOCK_EX } else { libc::LOCK_SH };
    let start = Instant::now();
    loop {
        // SAFETY: an open descriptor
        if unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let source = io::Error::last_os_error();
        match source.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock if start.elapsed() >= patience => {
                return Err(LockError::Busy { path: path.into(), holder: holder(file), waited: start.elapsed() });
            }
            io::ErrorKind::WouldBlock => sleep(POLL),
            _ => return Err(LockError::System { path: path.into(), source }),
        }
    }
}

/// A lock that one process holds alone, until this is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closed, it gives the lock up")] File);

impl Lock {
    /// Opens the file as [`open`] does, and takes it as [`take`].
    ///
    /// # Errors
    /// As these.
    pub fn alone(path: &Path, patience: Duration) -> Result<Lock, LockError> {
        let file = open(path).map_err(|source| LockError::System { path: path.into(), source })?;
        take(&file, path, Hold::Alone, patience)?;
        Ok(Lock(file))
    }
}

struct Holder {
    pid: u32,
    name: String,
    uid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({}, of user {})", self.pid, self.name.trim_end(), self.uid)
    }
}

/// Who holds the lock of a file, from `/proc/locks`, which knows the files by their numbers only.
fn holder(file: &File) -> String {
    let found = file.metadata().ok().and_then(|about| {
        let device = (libc::major(about.dev()), libc::minor(about.dev()), about.ino());
        let pid = fs::read_to_string("/proc/locks").ok()?.lines().find_map(|line| holder_in(line, device))?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(Holder { pid, name, uid: fs::metadata(format!("/proc/{pid}")).ok()?.uid() })
    });
    found.map_or_else(|| "another process".into(), |holder| holder.to_string())
}

/// The process in a line such as `1: FLOCK  ADVISORY  WRITE 5059 fe:00:10027300 0 EOF`, if it is of that file; lines of
/// those who wait have an arrow in the second place.
fn holder_in(line: &str, (major, minor, inode): (u32, u32, u64)) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = words[..] else { return None };
    let mut parts = place.split(':');
    let hexadecimal = |text: Option<&str>| u32::from_str_radix(text?, 16).ok();
    let same = hexadecimal(parts.next())? == major && hexadecimal(parts.next())? == minor;
    (same && parts.next()?.parse::<u64>().ok()? == inode).then(|| pid.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("pathcast-lock-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn one_that_another_process_holds_is_given_up_after_patience_with_its_holder_named() {
        let place = Place::new("held");
        let path = place.0.join("lock");
        drop(open(&path).unwrap());
        let mut holder = Command::new("flock")
            .args(["--exclusive", "--no-fork"])
            .arg(&path)
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // once it answers it holds the lock, and is called cat
        io::Write::write_all(holder.stdin.as_mut().unwrap(), b"held\n").unwrap();
        io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
        let start = Instant::now();
        let error = Lock::alone(&path, Duration::from_millis(200)).unwrap_err();
        assert!(start.elapsed() >= Duration::from_millis(200));
        assert!(matches!(error, LockError::Busy { .. }), "{error}");
        assert!(error.to_string().contains(&format!("process {} (cat, of user ", holder.id())), "{error}");
        // one that ends meanwhile is waited for
        drop(holder.stdin.take());
        Lock::alone(&path, Duration::from_secs(60)).unwrap();
        holder.wait().unwrap();
    }

    #[test]
    fn nobody_else_can_open_it() {
        let place = Place::new("mode");
        let (path, old) = (place.0.join("lock"), place.0.join("old"));
        fs::write(&old, "").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        for path in [path, old] {
            drop(Lock::alone(&path, Duration::ZERO).unwrap());
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn links_are_not_followed() {
        let place = Place::new("link");
        std::os::unix::fs::symlink(place.0.join("target"), place.0.join("lock")).unwrap();
        let error = Lock::alone(&place.0.join("lock"), Duration::ZERO).unwrap_err();
        assert!(matches!(error, LockError::System { .. }), "{error}");
        assert!(!place.0.join("target").exists());
    }

    #[test]
    fn holders_are_read_from_lines() {
        let line = "12: FLOCK  ADVISORY  WRITE 5059 fe:00:10027300 0 EOF";
        assert_eq!(holder_in(line, (0xfe, 0, 10_027_300)), Some(5059));
        assert_eq!(holder_in(line, (0xfe, 1, 10_027_300)), None);
        assert_eq!(holder_in(&line.replace("FLOCK ", "-> FLOCK"), (0xfe, 0, 10_027_300)), None);
        assert_eq!(holder_in("1: POSIX  ADVISORY  READ 1 fe:00:10027300 0 EOF", (0xfe, 0, 10_027_300)), None);
        assert_eq!(holder_in("", (0xfe, 0, 1)), None);
    }
}
