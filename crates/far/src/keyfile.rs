//! Key files: 0600, lines `ID SECRET`, the secret 64 hexadecimal digits. Whoever could read, change or exchange one could
//! be any client, so that such a file is refused.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, remove_file};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use pathcast_session::Key;
use serde::Deserialize;

use crate::error::{FarError, plain};

/// Known to everyone: what a far end without a key file uses. It keeps strangers' garbage out, nobody else.
pub const OPEN_ID: &str = "open";
/// Some ten thousand keys; what follows is not read [byte].
pub const LARGEST_BYTES: u64 = 1 << 20;
/// More links than the kernel follows.
const STEPS: usize = 1000;

/// A key as it is written. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyText {
    /// By which both ends know it.
    pub id: String,
    /// Hexadecimal digits, in small letters.
    pub secret: String,
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

impl KeyText {
    /// The key that everyone knows.
    pub fn open() -> KeyText {
        KeyText { id: OPEN_ID.into(), secret: "00".repeat(32) }
    }

    /// The key itself.
    ///
    /// # Errors
    /// Usage for a secret that is not hexadecimal, and what [`Key::new`] refuses.
    pub fn key(&self) -> Result<Key, FarError> {
        let bad = |e: &dyn fmt::Display| FarError::usage(format!("key `{}`: {e}", self.id));
        let digits = &self.secret;
        if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
            return Err(bad(&"the secret is not hexadecimal"));
        }
        let bytes: Result<Vec<u8>, _> =
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16)).collect();
        Key::new(self.id.clone(), bytes.map_err(|e| bad(&e))?).map_err(|e| bad(&e))
    }
}

/// Every key of a file.
///
/// # Errors
/// Refused for a file that others may read, change or exchange; usage for one that cannot be read, and for malformed lines,
/// by number.
pub fn read(path: &Path) -> Result<Vec<KeyText>, FarError> {
    let text = checked(path)?.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::InvalidData => "it is not text".into(),
            _ => plain(&error.to_string()),
        };
        let hint =
            format!("copy the far end's here; at the far end: `pathcast serve --new-key {}` makes one", path.display());
        FarError::advised(format!("cannot read the key file `{}`: {reason}", path.display()), hint)
    })?;
    parse(&text, &format!("the key file `{}`", path.display()))
}

/// What a file holds, if its owner, its mode and the way to it are right: outside is what is refused, inside what failed.
fn checked(path: &Path) -> Result<io::Result<String>, FarError> {
    let descriptor = is_descriptor(path);
    if !descriptor {
        match others_link(path) {
            Ok(None) => {}
            Ok(Some(link)) => {
                let problem = format!("is reached by a link of another user's, `{}`", link.display());
                return Err(refused(path, &problem, "name the file itself".into()));
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    let opened = open(path, descriptor).and_then(|file| file.metadata().map(|about| (file, about)));
    let (file, about) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    check(path, descriptor, &about)?;
    let mut text = String::new();
    Ok(file.take(LARGEST_BYTES).read_to_string(&mut text).map(|_| text))
}

/// Opens a file to read; not a pipe with a name, which would be waited for.
fn open(path: &Path, descriptor: bool) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.file_type().is_fifo() && !descriptor {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, and those are read as /dev/fd/N only"));
    }
    // SAFETY: calls on a descriptor that is open; they touch no memory
    let done = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

fn check(path: &Path, descriptor: bool, about: &Metadata) -> Result<(), FarError> {
    if about.is_dir() {
        // before its mode: what would mend a file's makes a directory useless
        let message = format!("cannot read the key file `{}`: it is a directory", path.display());
        return Err(FarError::advised(message, "name the file in it"));
    }
    if !descriptor && !trusted(about.uid()) {
        let hint = format!("if you trust them: install -m 600 {} FILE, and give that", path.display());
        return Err(refused(path, &format!("belongs to another user ({})", about.uid()), hint));
    }
    if about.file_type().is_char_device() && !descriptor {
        // its mode is everybody's business
        let message = format!("cannot read the key file `{}`: it is a device", path.display());
        return Err(FarError::advised(
            message,
            "name a file of lines `ID SECRET`; `pathcast serve --new-key FILE` makes one",
        ));
    }
    let mut others = 0o077;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    if about.uid() == 0 && credentials.is_some_and(|place| path.parent() == Some(Path::new(&place))) {
        // systemd lets a service read it by an access list, whose mask stands in the group's place
        others &= !0o040;
    }
    if about.mode() & others != 0 {
        return Err(refused(path, "can be read or changed by others", format!("chmod 600 {}", path.display())));
    }
    Ok(())
}

fn refused(path: &Path, problem: &str, hint: String) -> FarError {
    FarError::KeyFile { message: format!("the key file `{}` {problem}", path.display()), hint }
}

/// Whether it names one of our own descriptors, as the shell's `<(…)` does.
fn is_descriptor(path: &Path) -> bool {
    let parent = path.parent();
    path == Path::new("/dev/stdin") || [Some(Path::new("/dev/fd")), Some(Path::new("/proc/self/fd"))].contains(&parent)
}

/// Whether this user's files are as good as our own: ours, root's and, as root, those of who called sudo.
fn trusted(user: u32) -> bool {
    // SAFETY: it only returns a number
    let us = unsafe { libc::geteuid() };
    let caller = std::env::var("SUDO_UID").ok().filter(|_| us == 0).and_then(|id| id.parse().ok());
    user == us || user == 0 || Some(user) == caller
}

/// The first link on the way to a file that somebody else may lead elsewhere.
fn others_link(path: &Path) -> io::Result<Option<PathBuf>> {
    let parts = |path: &Path| -> Vec<PathBuf> {
        let kept = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
        kept.map(|part| PathBuf::from(part.as_os_str())).rev().collect()
    };
    let (mut place, mut ahead) = (PathBuf::from("/"), parts(&std::path::absolute(path)?));
    for _ in 0..STEPS {
        let Some(part) = ahead.pop() else { break };
        if part == Path::new("..") {
            place.pop();
            continue;
        }
        let step = place.join(part);
        let about = step.symlink_metadata()?;
        if !about.file_type().is_symlink() {
            place = step;
            continue;
        }
        if !trusted(about.uid()) {
            return Ok(Some(step));
        }
        let target = step.read_link()?;
        if target.is_absolute() {
            place = PathBuf::from("/");
        }
        ahead.extend(parts(&target));
    }
    Ok(None)
}

/// Every key of lines `ID SECRET`; `source` is what errors call the text.
///
/// # Errors
/// Usage for malformed lines, by number, for an id twice, for none.
pub fn parse(text: &str, source: &str) -> Result<Vec<KeyText>, FarError> {
    let mut keys: Vec<KeyText> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = parse_line(line).ok_or_else(|| {
            FarError::usage(format!("line {} of {source} is not `ID SECRET` with 64 hexadecimal digits", number + 1))
        })?;
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(FarError::usage(format!("{source} holds no key")));
    }
    let mut ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(FarError::usage(format!("{source} names an id twice")));
    }
    Ok(keys)
}

fn parse_line(line: &str) -> Option<KeyText> {
    let mut words = line.split_whitespace();
    let (id, secret, end) = (words.next()?, words.next()?, words.next());
    let named = (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let hidden = secret.len() == 64 && secret.bytes().all(|b| b.is_ascii_hexdigit());
    (named && hidden && end.is_none()).then(|| KeyText { id: id.into(), secret: secret.to_ascii_lowercase() })
}

/// Makes a key file with one fresh key; what is there is never overwritten.
///
/// # Errors
/// Usage where there is something already, or nothing can be written.
pub fn write(path: &Path, id: &str) -> Result<KeyText, FarError> {
    let failed = |error: io::Error| {
        FarError::usage(format!("cannot write the key file `{}`: {}", path.display(), plain(&error.to_string())))
    };
    let nonce = pathcast_net::entropy()?.nonce;
    let key = KeyText { id: id.into(), secret: nonce.iter().map(|byte| format!("{byte:02x}")).collect() };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            FarError::usage(format!("`{}` is there already; a key file is never overwritten", path.display()))
        }
        _ => failed(error),
    })?;
    let written = writeln!(file, "{} {}", key.id, key.secret).and_then(|()| file.sync_all());
    written.map_err(|error| {
        let _ = remove_file(path); // or it would stay without its key, and never be overwritten
        failed(error)
    })?;
    Ok(key)
}
