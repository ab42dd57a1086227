//! Controllers that outlive the command that loaded them: a directory each below a mounted bpffs, with the link and the
//! maps as pins. The link is pinned last and removed first, so a directory without one is stale.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libbpf_rs::{Link, MapHandle};
use pathcast_base::lock::{self, Hold};

use crate::error::KernelError;
use crate::maps::{GROUPS, MAPS, Maps};
use crate::object::{check_name, ready};

const LINK: &str = "link";
/// Where a bpffs is mounted if there is none.
const OURS: &str = "/run/pathcast/bpf";
/// Another process has a directory of pins for the moments of a load.
const PATIENCE: Duration = Duration::from_secs(30);

/// One controller that is pinned, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Its name in the kernel.
    pub name: String,
    /// The directory.
    pub path: PathBuf,
    /// The controller, by the name of its header, and the version of pathcast that loaded it; `None`: stale, with
    /// nothing in force.
    pub of: Option<(String, String)>,
}

/// The directory `name` for pins below a mounted bpffs: of those in `/proc/self/mountinfo` the first that can be written;
/// if there is none, one of our own is mounted at `/run/pathcast/bpf`.
///
/// # Errors
/// Missing: the privilege, or a kernel with bpffs. Runtime: the directory cannot be made.
pub fn pin_root(name: &str) -> Result<PathBuf, KernelError> {
    ready()?;
    let of_others = mounted().filter(|mount| mount != Path::new(OURS));
    let (mount, _lock) = match of_others {
        Some(mount) => (mount, None),
        None => {
            let lock = lock_ours()?; // another process may be about to mount it, or to take it away
            (mounted().map_or_else(mount_ours, Ok)?, Some(lock))
        }
    };
    let root = mount.join(name);
    match DirBuilder::new().mode(0o700).create(&root) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(KernelError::refused(at("making", &root), e)),
        _ if !ours(&root) => {
            let why = "the directory is another user's, or a link".into();
            Err(KernelError::PinPath { path: root, why })
        }
        _ => Ok(root),
    }
}

/// In a bpffs that everybody may write to (mode 1777, its default) others could have made the directory, or lock it.
fn ours(root: &Path) -> bool {
    // SAFETY: no arguments
    let own = fs::symlink_metadata(root).is_ok_and(|m| m.is_dir() && m.uid() == unsafe { libc::geteuid() });
    own && fs::set_permissions(root, Permissions::from_mode(0o700)).is_ok()
}

/// What is pinned below `root`, by name; nothing if there is no such directory.
///
/// # Errors
/// Runtime: the directory cannot be read.
pub fn pinned(root: &Path) -> Result<Vec<Pinned>, KernelError> {
    let entries = match fs::read_dir(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| KernelError::refused(at("reading", root), e))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| KernelError::refused(at("reading", root), e))?.path();
        if !path.is_dir() {
            continue; // the kernel may put files of its own into a new bpffs
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let about = open(&path).and_then(|(_, maps)| Maps(maps).about());
        found.push(Pinned { name, path, of: about.ok().map(|(_, controller, version)| (controller, version)) });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The directory of [`pin_root`] if it is there already.
pub fn pin_root_if_any(name: &str) -> Option<PathBuf> {
    Some(mounted()?.join(name)).filter(|root| ours(root))
}

/// Unregisters what is pinned at `path`, whatever pinned it, and removes the directory; also a stale one.
///
/// # Errors
/// Usage: there is no such directory. Runtime: a pin cannot be removed.
pub fn remove(path: &Path) -> Result<(), KernelError> {
    let root = path.parent().unwrap_or(Path::new("/"));
    let last = {
        let _lock = Lock::of(root)?;
        clear(path)?;
        // while nobody makes a directory in it
        root.starts_with(OURS) && fs::remove_dir(root).is_ok()
    };
    if last {
        // the last one out of the last directory
        let _lock = lock_ours()?;
        if no_directories(Path::new(OURS)) {
            let ours = CString::new(OURS).expect("no zeros in it");
            // SAFETY: a valid C string
            unsafe { libc::umount2(ours.as_ptr(), 0) };
            let _ = fs::remove_dir(OURS); // not if it is still mounted
        }
    }
    Ok(())
}

/// Whether nobody has pins there; the kernel may put files of its own into a new bpffs.
fn no_directories(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|entries| !entries.flatten().any(|entry| entry.path().is_dir()))
}

fn clear(path: &Path) -> Result<(), KernelError> {
    let entries = fs::read_dir(path)
        .map_err(|e| KernelError::NotPinned { path: path.into(), why: e.to_string() })?
        .filter_map(|entry| Some(entry.ok()?.path()));
    let link = path.join(LINK);
    for pin in [link.clone()].into_iter().chain(entries.filter(|pin| *pin != link)) {
        match fs::remove_file(&pin) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(KernelError::refused(at("removing", &pin), e)),
            _ => {}
        }
    }
    fs::remove_dir(path).map_err(|e| KernelError::refused(at("removing", path), e))
}

/// The link and the maps that are pinned at `path`.
pub(crate) fn open(path: &Path) -> Result<(Link, BTreeMap<&'static str, MapHandle>), KernelError> {
    let not = |why: String| KernelError::NotPinned { path: path.into(), why };
    if !path.is_dir() {
        return Err(not("there is no such directory".into()));
    }
    if !path.join(LINK).exists() {
        return Err(not("it has no link: what pinned it has died half way".into()));
    }
    let link = Link::open(path.join(LINK)).map_err(|e| not(format!("its link: {e}")))?;
    let mut maps = BTreeMap::new();
    for (name, _) in MAPS {
        if name == GROUPS && !path.join(name).exists() {
            continue;
        }
        let map = MapHandle::from_pinned_path(path.join(name)).map_err(|e| not(format!("its map `{name}`: {e}")))?;
        maps.insert(name, map);
    }
    Ok((link, maps))
}

/// A directory that is about to be filled; if that fails it is removed again.
pub(crate) struct Pin {
    path: PathBuf,
    done: std::cell::Cell<bool>,
    _lock: Lock,
}

impl Pin {
    /// Makes the directory `path`, which must be named as the controller; what is stale there is removed.
    pub(crate) fn reserve(path: &Path, name: &str) -> Result<Pin, KernelError> {
        check_name(name)?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        if path.file_name().is_none_or(|last| last != name) {
            let why = format!("the last part must be `{name}`, the name of the controller");
            return Err(KernelError::PinPath { path: path.into(), why });
        }
        let lock = Lock::of_lasting(parent)?;
        if path.is_dir() {
            if path.join(LINK).exists() && Link::open(path.join(LINK)).is_ok() {
                return Err(KernelError::InUse { name: name.into() });
            }
            clear(path)?;
        }
        fs::create_dir(path).map_err(|e| KernelError::refused(at("making", path), e))?;
        Ok(Pin { path: path.into(), done: false.into(), _lock: lock })
    }

    /// Pins the maps, and last the link.
    pub(crate) fn fill(&self, maps: &BTreeMap<&'static str, MapHandle>, link: &mut Link) -> Result<(), KernelError> {
        let failed = |what: &str, e| KernelError::refused(at("pinning", &self.path.join(what)), e);
        for (name, map) in maps {
            let mut map = MapHandle::try_from(map).map_err(|e| failed(name, e))?;
            map.pin(self.path.join(name)).map_err(|e| failed(name, e))?;
        }
        link.pin(self.path.join(LINK)).map_err(|e| failed(LINK, e))?;
        self.done.set(true);
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if !self.done.get() {
            let _ = clear(&self.path); // what stays is stale, and the next one removes it
        }
    }
}

/// Keeps other processes from a directory of pins while this one changes it.
struct Lock(File); // closed, it gives the lock up

impl Lock {
    fn of(root: &Path) -> Result<Lock, KernelError> {
        let file = File::open(root).map_err(|e| KernelError::refused(at("locking", root), e))?;
        lock::take(&file, root, Hold::Alone, PATIENCE)?;
        Ok(Lock(file))
    }

    /// Of a directory that is still there: who removes the last pin in it removes it too, also after [`pin_root`] has made it.
    fn of_lasting(root: &Path) -> Result<Lock, KernelError> {
        loop {
            if let (Some(OURS), Some(name)) = (root.parent().and_then(Path::to_str), root.file_name())
                && !root.exists()
                && pin_root(&name.to_string_lossy())? != root
            {
                return Lock::of(root); // another bpffs has been mounted, and this is the refusal
            }
            let lock = Lock::of(root);
            let same = |lock: &Lock| {
                let number = |m: fs::Metadata| (m.dev(), m.ino());
                fs::metadata(root).ok().map(number) == lock.0.metadata().ok().map(number)
            };
            if root.parent() != Some(Path::new(OURS)) || lock.as_ref().is_ok_and(same) {
                return lock;
            }
            match lock {
                Err(error) if root.exists() => return Err(error),
                _ => {}
            }
        }
    }
}

/// Of the place of our own bpffs.
fn lock_ours() -> Result<Lock, KernelError> {
    let above = Path::new(OURS).parent().expect("it is no root");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(above);
    made.map_err(|e| KernelError::refused(at("making", above), e))?;
    Lock::of(above)
}

fn at(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

fn mounted() -> Option<PathBuf> {
    mounts_of(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(), "bpf")
        .into_iter()
        .find(|mount| writable(mount))
}

fn writable(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: a valid C string
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// Where file systems of a kind are mounted as a whole, from the text of `/proc/self/mountinfo`.
fn mounts_of(text: &str, kind: &str) -> Vec<PathBuf> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3); // of: id, parent, device, root, mount point, options
        let (root, point) = (fields.next()?, fields.next()?);
        (right.split(' ').next() == Some(kind) && root == "/").then(|| PathBuf::from(unescape(point)))
    };
    text.lines().filter_map(mount).collect()
}

/// The kernel writes blanks, tabs, line ends and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn mount_ours() -> Result<PathBuf, KernelError> {
    let mut private = DirBuilder::new();
    private
        .recursive(true)
        .mode(0o700)
        .create(OURS)
        .map_err(|e| KernelError::refused(at("making", Path::new(OURS)), e))?;
    let (kind, target) = (c"bpf", CString::new(OURS).expect("no zeros in it"));
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: valid C strings
    let failed =
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, c"mode=0700".as_ptr().cast()) };
    if failed == 0 {
        return Ok(OURS.into());
    }
    let error = io::Error::last_os_error();
    Err(match error.raw_os_error() {
        Some(libc::EPERM) => KernelError::missing(
            format!("a bpffs, and the privilege to mount one ({error})"),
            "mount -t bpf bpf /sys/fs/bpf, or load without --pin",
        ),
        Some(libc::ENODEV) => KernelError::missing("bpffs", "a kernel with CONFIG_BPF_SYSCALL"),
        _ => KernelError::refused(at("mounting a bpffs at", Path::new(OURS)), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_keep_no_mount() {
        let at = std::env::temp_dir().join(format!("pathcast-pins-{}", std::process::id()));
        fs::create_dir_all(at.join("pathcast")).unwrap();
        fs::write(at.join("maps.debug"), "").unwrap();
        assert!(!no_directories(&at));
        fs::remove_dir(at.join("pathcast")).unwrap();
        assert!(no_directories(&at));
        fs::remove_dir_all(&at).unwrap();
    }

    #[test]
    fn a_directory_that_others_have_made_or_may_open_is_not_used_as_it_is() {
        let at = std::env::temp_dir().join(format!("pathcast-ours-{}", std::process::id()));
        let (own, link) = (at.join("own"), at.join("link"));
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(ours(&own) && !ours(&link));
        assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700, "none but its owner can open and lock it");
        if std::os::unix::fs::chown(&own, Some(65534), None).is_ok() {
            assert!(!ours(&own));
        } else {
            println!("SKIPPED: a directory of another user: needs root");
        }
        fs::remove_dir_all(at).unwrap();
    }

    #[test]
    fn mounts_are_found_in_mountinfo() {
        let text = "22 27 0:20 / /proc rw,nosuid - proc proc rw\n\
                    36 27 0:31 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700\n\
                    37 27 0:31 /pathcast /mnt/part rw - bpf bpf rw\n\
                    38 27 0:32 / /mnt/a\\040b rw - bpf none rw\n\
                    39 27 0:33 / /mnt/bpf rw - tmpfs bpf rw\n";
        assert_eq!(mounts_of(text, "bpf"), [PathBuf::from("/sys/fs/bpf"), PathBuf::from("/mnt/a b")]);
        assert_eq!(mounts_of("", "bpf"), Vec::<PathBuf>::new());
    }
}
