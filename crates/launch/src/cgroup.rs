//! The version-2 cgroup of a run: `pathcast-<id>` below the cgroup that we live in, so that limits set there still hold.
//!
//! The hierarchy is found in mountinfo. Where it is not mounted, or not for writing, it is mounted without a place in any
//! directory, which nobody else sees and which goes with its descriptor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::ending;
use crate::error::LaunchError;

const PREFIX: &str = "pathcast-";
/// How long a process that is just ending may still be in the list.
const LEAVING: Duration = Duration::from_millis(50);

/// Where the hierarchy can be reached.
struct Hierarchy {
    root: PathBuf,
    /// Of a private mount; `root` leads through it.
    _private: Option<OwnedFd>,
}

impl Hierarchy {
    fn mounted() -> Option<Hierarchy> {
        let text = fs::read("/proc/self/mountinfo").ok()?;
        text.split(|&b| b == b'\n').find_map(mount_point).map(|root| Hierarchy { root, _private: None })
    }

    fn private() -> io::Result<Hierarchy> {
        let checked = |n: libc::c_long| if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as libc::c_int) };
        // SAFETY: a string with a final zero; 1 is FSOPEN_CLOEXEC
        let context = checked(unsafe { libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), 1) })?;
        // SAFETY: just made, belongs to nobody else
        let context = unsafe { OwnedFd::from_raw_fd(context) };
        let null = std::ptr::null::<u8>();
        // SAFETY: FSCONFIG_CMD_CREATE (6) takes no key and no value
        checked(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), 6, null, null, 0) })?;
        // SAFETY: plain numbers; 1 is FSMOUNT_CLOEXEC
        let mount = checked(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })?;
        // SAFETY: as above
        let mount = unsafe { OwnedFd::from_raw_fd(mount) };
        Ok(Hierarchy { root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(), _private: Some(mount) })
    }

    /// Both ways to reach it, the mounted one first.
    fn each() -> impl Iterator<Item = io::Result<Hierarchy>> {
        Hierarchy::mounted().map(Ok).into_iter().chain(std::iter::once_with(Hierarchy::private))
    }
}

/// The mount point in a line of mountinfo, if it is the whole version-2 hierarchy.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    let dash = fields.iter().position(|f| *f == b"-")?;
    let whole = fields.get(3) == Some(&b"/".as_slice()) && fields.get(dash + 1) == Some(&b"cgroup2".as_slice());
    whole.then(|| PathBuf::from(std::ffi::OsString::from_vec(unescape(fields[4]))))
}

/// Mountinfo writes blanks and backslashes as a backslash and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        match octal {
            Some(byte) if *first == b'\\' => {
                out.push(byte);
                rest = &after[3..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// The cgroup that a run named `id` has: its path in the hierarchy, such as `/pathcast-a1`.
pub(crate) fn path_of(id: &str) -> String {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    // outside of the root of our cgroup namespace, or already removed: the root is what there is
    let own = if own.contains("/..") || own.ends_with(" (deleted)") { "/" } else { own };
    format!("{}/{PREFIX}{id}", own.trim_end_matches('/'))
}

/// The cgroup of a run. Dropped, it is removed, and what still runs in it goes back to where the run began.
pub(crate) struct Cgroup {
    directory: PathBuf,
    /// All in it were killed.
    killed: AtomicBool,
    _hierarchy: Hierarchy,
}

impl Cgroup {
    /// Makes it; `path` comes from [`path_of`].
    ///
    /// # Errors
    /// Missing without the privilege or the feature; `Argument` for a name in use.
    pub fn create(path: &str) -> Result<Cgroup, LaunchError> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for hierarchy in Hierarchy::each() {
            let made = hierarchy.and_then(|h| {
                let directory = h.root.join(path.trim_start_matches('/'));
                fs::create_dir(&directory).map(|()| Cgroup { directory, killed: AtomicBool::new(false), _hierarchy: h })
            });
            match made {
                Ok(cgroup) => return Ok(cgroup),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(LaunchError::Argument(format!(
                        "the cgroup `{path}` is there already: another run has this id, or `pathcast undo` removes it"
                    )));
                }
                Err(e) => last = e,
            }
        }
        match last.raw_os_error() {
            Some(libc::ENODEV | libc::ENOSYS | libc::ENOENT) => Err(LaunchError::missing(
                format!("a version-2 cgroup hierarchy ({last})"),
                "a kernel with CONFIG_CGROUPS and CONFIG_CGROUP_BPF",
            )),
            Some(libc::EROFS) => {
                Err(LaunchError::missing("a writable version-2 cgroup hierarchy", "run outside of the container"))
            }
            _ => Err(LaunchError::system("making a cgroup")(last)),
        }
    }

    /// Its directory, open.
    pub fn open(&self) -> Result<File, LaunchError> {
        File::open(&self.directory).map_err(LaunchError::system("opening the cgroup"))
    }

    /// A process that writes `0` here joins.
    pub fn processes(&self) -> Result<File, LaunchError> {
        let path = self.directory.join("cgroup.procs");
        OpenOptions::new().write(true).open(path).map_err(LaunchError::system("opening the cgroup"))
    }

    /// Processes that are left in it, more than `own` of ours: those that are just ending have a moment to leave it, those
    /// that were killed as long as the kernel may take.
    pub fn left_behind(&self, own: usize) -> usize {
        let begun = Instant::now();
        let patience = if self.killed.load(Ordering::SeqCst) { ending::PATIENCE } else { LEAVING };
        loop {
            let left = ending::members(&self.directory).len();
            if left <= own || begun.elapsed() >= patience {
                return left;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// The file that kills all of them, where the kernel has it.
    pub fn killer(&self) -> Option<File> {
        OpenOptions::new().write(true).open(self.directory.join(ending::KILL)).ok()
    }

    /// Sends a signal to all of them but `spared`.
    pub fn tell(&self, signal: i32, spared: libc::pid_t) {
        ending::tell(&self.directory, signal, Some(spared));
    }

    /// Kills all of them.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        ending::kill(&self.directory);
    }

    /// Ends all of them, in the way of [`end`].
    pub fn end(&self) -> bool {
        ending::end(&self.directory)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = empty_and_remove(&self.directory); // a later `remove` says what is in the way
    }
}

/// Removes the cgroup of a run that was killed, and with it the program that is attached to it; says whether it was there.
/// Processes that are still in it go on in its parent: their open connections keep the controller, new ones get the
/// system's.
///
/// # Errors
/// `Argument` for a path that is none of ours; the system's.
pub fn remove(cgroup: &str) -> Result<bool, LaunchError> {
    let removed = at(cgroup, |directory| empty_and_remove(directory).map(|()| true))?;
    Ok(removed.unwrap_or(false))
}

/// Ends what a killed run has left in its cgroup: SIGTERM, and a second later SIGKILL. Says how many processes there were.
///
/// # Errors
/// As [`remove`]; `System` where they do not end.
pub fn end(cgroup: &str) -> Result<usize, LaunchError> {
    let ended = at(cgroup, |directory| {
        let there = ending::members(directory).len();
        if there == 0 || ending::end(directory) {
            return Ok(there);
        }
        let left = ending::members(directory).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(io::Error::other(format!("the kernel does not end the killed processes {left}")))
    })?;
    Ok(ended.unwrap_or(0))
}

/// Does something with the directory of a run's cgroup; none where it is not there.
fn at<T>(cgroup: &str, work: impl Fn(&Path) -> io::Result<T>) -> Result<Option<T>, LaunchError> {
    let path = Path::new(cgroup.trim_start_matches('/'));
    let ours = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(PREFIX));
    if !ours || cgroup.split('/').any(|part| part == "..") {
        return Err(LaunchError::Argument(format!("`{cgroup}` is not the cgroup of a run")));
    }
    let mut last = None;
    for hierarchy in Hierarchy::each() {
        let done = hierarchy.and_then(|h| {
            let directory = h.root.join(path);
            if directory.exists() { work(&directory).map(Some) } else { Ok(None) }
        });
        match done {
            Ok(found) => return Ok(found),
            Err(e) => last = last.or(Some(e)),
        }
    }
    last.map_or(Ok(None), |e| Err(LaunchError::system(format!("removing the cgroup `{cgroup}`"))(e)))
}

/// Moves the processes of a cgroup, and of those below it, to its parent, and removes it.
fn empty_and_remove(directory: &Path) -> io::Result<()> {
    let parent = directory.parent().ok_or(io::ErrorKind::NotFound)?.join("cgroup.procs");
    let begun = Instant::now();
    loop {
        evacuate(directory, &parent)?;
        match fs::remove_dir(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            // a process that is just ending, or was just born
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && begun.elapsed() < ending::PATIENCE => {}
            other => return other,
        }
        sleep(Duration::from_millis(10));
    }
}

fn evacuate(directory: &Path, to: &Path) -> io::Result<()> {
    let below = match fs::read_dir(directory) {
        Ok(entries) => entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in below {
        evacuate(&entry.path(), to)?;
        let _ = fs::remove_dir(entry.path()); // the parent's removal says if it was in the way
    }
    let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines() {
        match OpenOptions::new().write(true).open(to)?.write_all(pid.as_bytes()) {
            Err(e) if e.raw_os_error() != Some(libc::ESRCH) => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read() {
        let line = b"41 31 0:38 / /sys/fs/cgroup/a\\040b rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(mount_point(line).unwrap(), Path::new("/sys/fs/cgroup/a b"));
        for other in [
            b"40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd".as_slice(),
            b"41 31 0:38 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            b"",
        ] {
            assert_eq!(mount_point(other), None);
        }
    }

    #[test]
    fn a_private_mount_serves_as_well() {
        match Hierarchy::private() {
            Ok(hierarchy) => {
                let name = format!("{PREFIX}private-{}", std::process::id());
                let directory = hierarchy.root.join(&name);
                fs::create_dir(&directory).unwrap();
                assert!(directory.join("cgroup.procs").exists());
                assert!(remove(&name).unwrap() && !directory.exists(), "the same hierarchy wherever it is mounted");
            }
            Err(e) => {
                let lacking = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENODEV];
                assert!(e.raw_os_error().is_some_and(|number| lacking.contains(&number)), "{e}");
                println!("SKIPPED: a private mount of the cgroup hierarchy: {e}");
            }
        }
    }

    /// On a busy machine the kernel takes its time with those that are killed.
    #[test]
    fn who_is_killed_is_not_left_behind() {
        let directory = std::env::temp_dir().join(format!("pclaunch-killed-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let list = directory.join("cgroup.procs");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(&list, format!("{}\n", child.id())).unwrap();
        let hierarchy = Hierarchy { root: directory.clone(), _private: None };
        let cgroup = Cgroup { directory: directory.clone(), killed: AtomicBool::new(false), _hierarchy: hierarchy };
        assert_eq!((cgroup.left_behind(0), cgroup.left_behind(1)), (1, 1));
        cgroup.kill();
        assert!(!child.wait().unwrap().success());
        let leaves = std::thread::spawn(move || {
            sleep(4 * LEAVING);
            fs::write(list, "").unwrap();
        });
        assert_eq!(cgroup.left_behind(0), 0);
        leaves.join().unwrap();
        drop(cgroup);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// As one is whose process has much memory to give back. A mount in its place is in the way in the same manner.
    #[test]
    fn one_that_is_busy_for_long_is_removed() {
        let directory = std::env::temp_dir().join(format!("pclaunch-busy-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()).unwrap();
        let apart = move || {
            let (none, type_) = (std::ptr::null(), c"tmpfs".as_ptr());
            // SAFETY: strings with a final zero and plain numbers; of this thread, and those that it makes, alone
            let mounted = unsafe {
                libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(type_, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
                    && libc::mount(type_, path.as_ptr(), type_, 0, none.cast()) == 0
            };
            if !mounted {
                return println!("SKIPPED: a busy cgroup: needs root for a mount namespace");
            }
            std::thread::scope(|scope| {
                let removal = scope.spawn(|| empty_and_remove(&directory));
                sleep(Duration::from_millis(800));
                // SAFETY: a string with a final zero
                assert_eq!(unsafe { libc::umount2(path.as_ptr(), 0) }, 0);
                removal.join().unwrap().unwrap();
            });
            assert!(!directory.exists());
        };
        std::thread::spawn(apart).join().unwrap();
    }

    #[test]
    fn only_our_cgroups_are_removed() {
        for foreign in ["/", "", "/user.slice", "/pathcast-a/..", "/../pathcast-a", "/pathcast-a/user"] {
            assert!(matches!(remove(foreign), Err(LaunchError::Argument(_))), "{foreign}");
        }
    }
}
