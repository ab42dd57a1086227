//! The local addresses that further subflows may use.
//!
//! They are endpoints of the kernel's path manager, which belong to the network namespace and not to a program: while a
//! run has them, connections of other programs over Multipath TCP in the same namespace may get subflows from them too.
//! The alternative, the user-space path manager, would change a setting of the whole namespace at every socket(2) of the
//! program. Endpoints that exist are used and left alone; what was added is removed, by the last of the runs that use
//! it. Limits are never changed.
//!
//! The first subflow leaves from where the routes send it. An endpoint with its address adds nothing.

use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pathcast_base::lock::{self, Hold, LockError};
use pathcast_net::{HostSockets, SocketMaker};

use crate::error::LaunchError;

/// Another run has a file alone while it asks `ip` a few things.
const PATIENCE: Duration = Duration::from_secs(30);

/// Endpoints for which a run holds a lock; its file says that pathcast made the endpoint.
pub(crate) struct Endpoints {
    held: Vec<(IpAddr, PathBuf, File)>,
}

/// Refuses addresses that cannot serve, and more than this host allows.
///
/// # Errors
/// `LocalAddress`, `Limits`, `Argument`.
pub(crate) fn check(paths: &[IpAddr]) -> Result<(), LaunchError> {
    let interfaces = HostSockets.interfaces().map_err(LaunchError::system("listing this host's addresses"))?;
    for (i, &address) in paths.iter().enumerate() {
        if paths[..i].contains(&address) {
            return Err(LaunchError::Argument(format!("--paths names {address} twice")));
        }
        if !interfaces.iter().any(|i| i.address == address) {
            let mut available: Vec<_> =
                interfaces.iter().filter(|i| i.up && !i.loopback).map(|i| i.address.to_string()).collect();
            available.dedup();
            return Err(LaunchError::LocalAddress { address, available: available.join(" ") });
        }
    }
    // the address of the first subflow is most often one of them
    let need = (paths.len() as u32).saturating_sub(1);
    let have = pathcast_net::limits(&HostSockets).map_err(|e| {
        LaunchError::missing(format!("the kernel's MPTCP path manager ({e})"), "a kernel with CONFIG_MPTCP")
    })?;
    if need > have.subflows { Err(LaunchError::Limits { need, have: have.subflows }) } else { Ok(()) }
}

fn ip(arguments: &[&str]) -> Result<Vec<u8>, LaunchError> {
    let what = || format!("`ip {}`", arguments.join(" "));
    match Command::new("ip").args(arguments).output() {
        Ok(o) if o.status.success() => Ok(o.stdout),
        Ok(o) => {
            let text = String::from_utf8_lossy(&o.stderr).trim().to_owned();
            if text.contains("not permitted") {
                return Err(LaunchError::missing(format!("the privilege for {}", what()), "run as root"));
            }
            Err(LaunchError::System { what: what(), source: io::Error::other(text) })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(LaunchError::missing("the program `ip`", "install the Debian package iproute2"))
        }
        Err(source) => Err(LaunchError::System { what: what(), source }),
    }
}

/// (id, address) of every endpoint for subflows from any port.
fn present() -> Result<Vec<(u64, IpAddr)>, LaunchError> {
    let text = ip(&["-j", "mptcp", "endpoint", "show"])?;
    let all: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap_or_default();
    // a flag is a key, or a word in a list, depending on the version of `ip`
    let subflow = |e: &serde_json::Value| {
        e["subflow"] == true || e["flags"].as_array().is_some_and(|f| f.iter().any(|f| f == "subflow"))
    };
    let read = |e: &serde_json::Value| Some((e["id"].as_u64()?, e["address"].as_str()?.parse().ok()?));
    Ok(all.iter().filter(|e| subflow(e) && e["port"].is_null()).filter_map(read).collect())
}

fn add(address: IpAddr) -> Result<(), LaunchError> {
    let interfaces = HostSockets.interfaces().map_err(LaunchError::system("listing this host's addresses"))?;
    let device = interfaces.iter().find(|i| i.address == address).map(|i| i.name.as_str());
    let text = address.to_string();
    let mut arguments = vec!["mptcp", "endpoint", "add", &text, "subflow"];
    arguments.extend(device.iter().flat_map(|name| ["dev", name]));
    ip(&arguments).map(drop)
}

fn delete(address: IpAddr) -> Result<bool, LaunchError> {
    let Some((id, _)) = present()?.into_iter().find(|(_, a)| *a == address) else { return Ok(false) };
    ip(&["mptcp", "endpoint", "delete", "id", &id.to_string()]).map(|_| true)
}

/// One file an address and network namespace.
fn lock_path(directory: &Path, address: IpAddr) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(directory.join(format!("endpoint-{}-{namespace}", address.to_string().replace(':', "_"))))
}

/// Opens and locks the file, which another may remove just before.
fn lock(path: &Path, hold: Hold, patience: Duration) -> Result<File, LockError> {
    let failed = |source| LockError::System { path: path.into(), source };
    loop {
        let file = lock::open(path).map_err(failed)?;
        lock::take(&file, path, hold, patience)?;
        if fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|ours| now.ino() == ours.ino())) {
            return Ok(file);
        }
    }
}

impl Endpoints {
    /// Adds those of `paths` that are not there. The files that say what pathcast made are in `directory`.
    ///
    /// # Errors
    /// What `ip` says; nothing is left added then.
    pub fn add(paths: &[IpAddr], directory: &Path) -> Result<Endpoints, LaunchError> {
        let mut endpoints = Endpoints { held: Vec::new() };
        let failed = |e| LaunchError::system(format!("locking a file in {}", directory.display()))(e);
        fs::create_dir_all(directory).map_err(failed)?;
        for &address in paths {
            let path = lock_path(directory, address).map_err(failed)?;
            // alone while it is decided whether the endpoint is there
            let file = lock_alone(&path)?;
            endpoints.held.push((address, path.clone(), file)); // from here on a failure undoes it
            if !present()?.iter().any(|(_, a)| *a == address) {
                Mark::Made.write(&path)?;
                add(address)?;
            }
            // before the next address is locked, or two runs could wait for each other
            let (_, path, file) = endpoints.held.last().expect("just pushed");
            lock::take(file, path, Hold::Shared, PATIENCE)?;
        }
        Ok(endpoints)
    }
}

impl Endpoints {
    /// Has endpoints of these addresses only, of those that it holds; subflows come and go with them. Those that pathcast
    /// has not made stay, as backups, which carry nothing for as long as another subflow can: their addresses.
    ///
    /// # Errors
    /// What `ip` says; the system's.
    pub fn keep(&self, wanted: &[IpAddr]) -> Result<Vec<IpAddr>, LaunchError> {
        let there = present()?;
        let mut foreign = Vec::new();
        for (address, path, _) in &self.held {
            let (has, wants) = (there.iter().any(|(_, a)| a == address), wanted.contains(address));
            match Mark::of(path) {
                Mark::Quiet if has && wants => {
                    change(*address, "nobackup")?;
                    Mark::Foreign.write(path)?;
                }
                Mark::Foreign | Mark::Quiet if has && !wants => {
                    Mark::Quiet.write(path)?;
                    change(*address, "backup")?;
                    foreign.push(*address);
                }
                Mark::Made if has && !wants => {
                    delete(*address)?;
                    // the first subflow of a connection, which may have begun before the endpoint was there
                    let _ = ip(&["mptcp", "endpoint", "delete", "id", "0", &address.to_string()]);
                }
                _ if wants && !has => {
                    Mark::Made.write(path)?;
                    add(*address)?;
                }
                _ => {}
            }
        }
        Ok(foreign)
    }
}

/// What the file of an endpoint says of it, also to those who find it after a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// It was there, and is as it was.
    Foreign,
    /// It was there, and pathcast has made it a backup.
    Quiet,
    /// pathcast has made it.
    Made,
}

impl Mark {
    const QUIET: &str = "made a backup by pathcast\n";
    const MADE: &str = "made by pathcast\n";

    fn of(path: &Path) -> Mark {
        match fs::read_to_string(path).unwrap_or_default().as_str() {
            "" => Mark::Foreign,
            Mark::QUIET => Mark::Quiet,
            _ => Mark::Made,
        }
    }

    fn write(self, path: &Path) -> Result<(), LaunchError> {
        let text = match self {
            Mark::Foreign => "",
            Mark::Quiet => Mark::QUIET,
            Mark::Made => Mark::MADE,
        };
        fs::write(path, text).map_err(LaunchError::system("marking an endpoint"))
    }
}

fn change(address: IpAddr, flag: &str) -> Result<bool, LaunchError> {
    let Some((id, _)) = present()?.into_iter().find(|(_, a)| *a == address) else { return Ok(false) };
    ip(&["mptcp", "endpoint", "change", "id", &id.to_string(), flag]).map(|_| true)
}

/// Alone, or, where another run has it, together with that one, which keeps the endpoint there.
fn lock_alone(path: &Path) -> Result<File, LockError> {
    match lock(path, Hold::Alone, Duration::ZERO) {
        Err(LockError::Busy { .. }) => lock(path, Hold::Shared, PATIENCE),
        other => other,
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        for (address, path, file) in self.held.drain(..) {
            let _ = release(address, &path, &file); // a later `remove_endpoint` says what is in the way
        }
    }
}

/// Deletes the endpoint if it is pathcast's and no other run holds it.
fn release(address: IpAddr, path: &Path, file: &File) -> Result<bool, LaunchError> {
    if lock::take(file, path, Hold::Alone, Duration::ZERO).is_err() {
        return Ok(false); // the last one does it
    }
    let removed = match Mark::of(path) {
        Mark::Made => delete(address)?,
        Mark::Quiet => change(address, "nobackup")?,
        Mark::Foreign => false,
    };
    let _ = fs::remove_file(path);
    Ok(removed)
}

/// Removes the endpoint that a killed run has added in this network namespace, unless another run uses it; says whether
/// it was removed. `directory` is that of the run ([`crate::Launch::directory`]).
///
/// # Errors
/// What `ip` says; the system's.
pub fn remove_endpoint(address: IpAddr, directory: &Path) -> Result<bool, LaunchError> {
    let failed = || LaunchError::system(format!("removing the endpoint {address}"));
    let path = lock_path(directory, address).map_err(failed())?;
    if !path.exists() {
        return Ok(false);
    }
    let file = lock(&path, Hold::Shared, PATIENCE)?;
    release(address, &path, &file)
}
