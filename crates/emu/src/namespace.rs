//! Named network namespaces, as `ip netns` makes them, and threads that work inside.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::EmuError;

/// The kernel's work queue is not kept waiting for so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// include/uapi/linux/ipv6_route.h
const RTF_LOCAL: u32 = 1 << 31;

/// A named network namespace that this value owns: dropped, it is removed.
pub struct Namespace {
    name: String,
}

/// Where `ip netns` keeps them.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(name)
}

/// Runs `work` in a thread of its own inside the namespace `name`, or that of an absolute path, and waits for it.
pub fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let target = File::open(file(name))?;
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // SAFETY: the descriptor is open; setns changes only the calling thread, which ends below.
            if unsafe { libc::setns(target.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(work())
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Removes the namespace `name`; one that is gone is no error, and a path is no name.
pub fn remove(name: &str) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not the name of a namespace")));
    }
    let path = file(name);
    if !path.exists() {
        return Ok(());
    }
    let bytes = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: a valid C string; a lazy unmount is what `ip netns delete` does.
    unsafe { libc::umount2(bytes.as_ptr(), libc::MNT_DETACH) };
    fs::remove_file(path)
}

/// Runs `ip FAMILY -n NAMESPACE -batch -` on `commands`, one a line; the family is `-4`, `-6` or, for neither, `-0`.
pub fn ip(name: &str, family: &str, commands: &[String]) -> Result<(), EmuError> {
    if commands.is_empty() {
        return Ok(());
    }
    let failed = |why: String| EmuError::Setup { what: format!("ip in namespace {name}"), why };
    let mut child = Command::new("ip")
        .args([family, "-n", name, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => EmuError::Missing {
                what: "the program `ip`".into(),
                mend: "install the Debian package iproute2".into(),
            },
            _ => failed(e.to_string()),
        })?;
    let input = commands.join("\n") + "\n";
    child.stdin.take().expect("stdin was asked for").write_all(input.as_bytes()).map_err(|e| failed(e.to_string()))?;
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{}; commands: {}", String::from_utf8_lossy(&output.stderr).trim(), commands.join("; "))))
}

impl Namespace {
    /// Makes the namespace `name`, which must not exist, with its loopback up.
    pub fn create(name: &str) -> Result<Namespace, EmuError> {
        let output = Command::new("ip").args(["netns", "add", name]).output();
        let failed = |why: String| EmuError::Setup { what: format!("the network namespace {name}"), why };
        match output {
            Ok(o) if o.status.success() => {}
            Ok(o) => {
                let why = String::from_utf8_lossy(&o.stderr).trim().to_owned();
                return Err(if why.contains("not permitted") || why.contains("Permission denied") {
                    EmuError::Missing {
                        what: format!("the privilege to make network namespaces ({why})"),
                        mend: "run as root; the simulator needs none (`pathcast sim`, `--world sim`)".into(),
                    }
                } else {
                    failed(why)
                });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(EmuError::Missing {
                    what: "the program `ip`".into(),
                    mend: "install the Debian package iproute2".into(),
                });
            }
            Err(e) => return Err(failed(e.to_string())),
        }
        let made = Namespace { name: name.into() };
        ip(name, "-4", &["link set lo up".into()])?;
        Ok(made)
    }

    /// Its name, as in `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes settings below `/proc/sys`; those that this kernel does not have are left out where `optional`.
    pub fn sysctl(&self, settings: &[(&str, &str, bool)]) -> Result<(), EmuError> {
        let failed = |what: &str, e: io::Error| EmuError::Setup { what: what.to_owned(), why: e.to_string() };
        inside(&self.name, || {
            for (key, value, optional) in settings {
                let path = format!("/proc/sys/{}", key.replace('.', "/"));
                match fs::write(&path, value) {
                    Err(e) if *optional && e.kind() == io::ErrorKind::NotFound => {}
                    result => result.map_err(|e| failed(&format!("{key}={value} in {}", self.name), e))?,
                }
            }
            Ok(())
        })
        .map_err(|e| failed(&self.name, e))?
    }

    /// Returns when packets to each IPv6 address that was added come in: the kernel makes that route a moment after the address
    /// (`addrconf_dad_work`), and drops what comes before.
    pub fn settle(&self) -> Result<(), EmuError> {
        let failed = |why: String| EmuError::Setup { what: format!("IPv6 in {}", self.name), why };
        let begun = Instant::now();
        loop {
            let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
            let missing = inside(&self.name, || unreached(&read("if_inet6"), &read("ipv6_route")))
                .map_err(|e| failed(e.to_string()))?;
            let Some(address) = missing else { return Ok(()) };
            if begun.elapsed() > PATIENCE {
                return Err(failed(format!("packets to {address} do not come in")));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The first address that was added (`nodad`), in 32 hexadecimal digits, without a local route.
fn unreached(addresses: &str, routes: &str) -> Option<String> {
    let is_local = |line: &str, address: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some(address)
            && words.nth(7).and_then(|flags| u32::from_str_radix(flags, 16).ok()).is_some_and(|f| f & RTF_LOCAL != 0)
    };
    let is_added = |line: &&str| {
        let flags = line.split_whitespace().nth(4).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        flags.is_some_and(|flags| flags & libc::IFA_F_NODAD != 0)
    };
    let mut added = addresses.lines().filter(is_added).filter_map(|line| line.split_whitespace().next());
    added.find(|address| !routes.lines().any(|line| is_local(line, address))).map(str::to_owned)
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = remove(&self.name); // nothing better can be done here; the next start removes what is stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reached_by_a_local_route() {
        let [one, two] = ["fd070001000000000000000000000001", "fd070002000000000000000000000001"];
        let address = |of, flags| format!("{of} 02 40 00 {flags}       p1\n");
        let route = |of, flags| format!("{of} 80 {:032} 00 {:032} 00000000 00000001 00000000 {flags}       p1\n", 0, 0);
        let both = address(one, "82") + &address(two, "82");
        assert_eq!(unreached(&both, &(route(one, "80200001") + &route(two, "00000001"))).as_deref(), Some(two));
        assert_eq!(unreached(&both, &(route(two, "80200001") + &route(one, "80200001"))), None);
        assert_eq!(unreached(&address(one, "c0"), ""), None, "the kernel's own, whose duplicates are looked for");
    }

    #[test]
    fn what_is_removed_has_a_name_and_not_a_path() {
        let precious = std::env::temp_dir().join(format!("pathcast-precious-{}", std::process::id()));
        fs::write(&precious, "mine").unwrap();
        let above = format!("../..{}", precious.display());
        for name in [precious.to_str().unwrap(), &above, "", ".", "..", "a/", "./a", "a/b"] {
            assert_eq!(remove(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(precious.exists());
        fs::remove_file(precious).unwrap();
        remove("pc-there-is-none").unwrap();
    }
}
