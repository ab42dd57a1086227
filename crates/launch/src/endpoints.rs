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
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pathcast_base::lock::{self, Hold, LockError};
use pathcast_net::{HostSockets, SocketMaker};

use crate::error::LaunchError;

/// The kernel has no more endpoints.
const MOST: usize = 8;
/// Another run has a file alone while it asks `ip` a few things.
const PATIENCE: Duration = Duration::from_secs(30);

/// Endpoints of a run, each with the lock of a file, which says that pathcast made the endpoint.
pub(crate) struct Endpoints {
    held: Mutex<Vec<Held>>,
    directory: PathBuf,
}

struct Held {
    address: IpAddr,
    path: PathBuf,
    /// Locked for as long as the run uses the endpoint.
    file: Option<File>,
}

/// Addresses that a run has dropped, and whose endpoints stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stay {
    /// Of the user: as backups, which carry nothing for as long as another subflow can.
    pub backups: Vec<IpAddr>,
    /// Another run uses them: until that ends, this one's connections have subflows over them too.
    pub shared: Vec<IpAddr>,
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
    // the address of the first subflow is most often one of them, and the others are of its family
    let v4 = paths.iter().filter(|address| address.is_ipv4()).count();
    let need = (v4.max(paths.len() - v4) as u32).saturating_sub(1);
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

/// An endpoint that is there.
struct Present {
    id: u64,
    address: IpAddr,
    backup: bool,
}

/// Every endpoint for subflows from any port.
fn present() -> Result<Vec<Present>, LaunchError> {
    let text = ip(&["-j", "mptcp", "endpoint", "show"])?;
    let all: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap_or_default();
    // a flag is a key, or a word in a list, depending on the version of `ip`
    let has = |e: &serde_json::Value, flag: &str| {
        e[flag] == true || e["flags"].as_array().is_some_and(|f| f.iter().any(|f| f == flag))
    };
    let read = |e: &serde_json::Value| {
        let address = e["address"].as_str()?.parse().ok()?;
        Some(Present { id: e["id"].as_u64()?, address, backup: has(e, "backup") })
    };
    Ok(all.iter().filter(|e| has(e, "subflow") && e["port"].is_null()).filter_map(read).collect())
}

fn find(address: IpAddr) -> Result<Option<Present>, LaunchError> {
    Ok(present()?.into_iter().find(|e| e.address == address))
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
    let Some(Present { id, .. }) = find(address)? else { return Ok(false) };
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
        let mut endpoints = Endpoints { held: Mutex::default(), directory: directory.into() };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let held = endpoints.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        for &address in paths {
            held.push(Held::new(address, directory)?);
            held.last_mut().expect("just pushed").take()?;
        }
        Ok(endpoints)
    }
}

fn failed(directory: &Path) -> impl FnOnce(io::Error) -> LaunchError {
    LaunchError::system(format!("locking a file in {}", directory.display()))
}

impl Endpoints {
    /// Has endpoints of these addresses only, which may be new; subflows come and go with them. Those that pathcast has
    /// not made stay, as backups, and those that another run uses as they are.
    ///
    /// # Errors
    /// What `ip` says; the system's.
    pub fn keep(&self, wanted: &[IpAddr]) -> Result<Stay, LaunchError> {
        let there = present()?;
        let mut stay = Stay::default();
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        for held in all.iter_mut() {
            let has = there.iter().find(|e| e.address == held.address);
            match (wanted.contains(&held.address), held.file.is_some()) {
                (true, true) => held.want(has.is_some())?,
                (true, false) => held.take()?,
                (false, true) => held.leave(has, &mut stay)?,
                (false, false) if has.is_some() => stay.shared.push(held.address),
                (false, false) => {}
            }
        }
        for &address in wanted {
            if all.iter().any(|held| held.address == address) {
                continue;
            }
            if present()?.len() >= MOST {
                break; // connections begin from it all the same
            }
            all.push(Held::new(address, &self.directory)?);
            all.last_mut().expect("just pushed").take()?;
        }
        Ok(stay)
    }
}

impl Held {
    fn new(address: IpAddr, directory: &Path) -> Result<Held, LaunchError> {
        let path = lock_path(directory, address).map_err(failed(directory))?;
        Ok(Held { address, path, file: None })
    }

    /// Uses the endpoint, which is made if it is not there.
    fn take(&mut self) -> Result<(), LaunchError> {
        // alone while it is decided whether the endpoint is there
        let file = self.file.insert(lock_alone(&self.path)?); // from here on a failure undoes it
        if find(self.address)?.is_none() {
            Mark::Made.write(&self.path)?;
            add(self.address)?;
        }
        // before the next address is locked, or two runs could wait for each other
        Ok(lock::take(file, &self.path, Hold::Shared, PATIENCE)?)
    }

    /// Goes on using it, or uses it again.
    fn want(&self, has: bool) -> Result<(), LaunchError> {
        match Mark::of(&self.path) {
            Mark::Quiet if has => {
                change(self.address, "nobackup")?;
                Mark::Foreign.write(&self.path)
            }
            _ if !has => {
                Mark::Made.write(&self.path)?;
                add(self.address)
            }
            _ => Ok(()),
        }
    }

    /// Does without it, unless another run uses it.
    fn leave(&mut self, has: Option<&Present>, stay: &mut Stay) -> Result<(), LaunchError> {
        let Some(file) = &self.file else { return Ok(()) };
        if lock::take(file, &self.path, Hold::Alone, Duration::ZERO).is_err() {
            // the last of the others removes it. Until then our subflows stay too: endpoints are of all connections of
            // the namespace, and the kernel closes a single subflow only for a path manager in user space
            self.file = None;
            stay.shared.extend(has.map(|e| e.address));
            return Ok(());
        }
        let done = self.leave_alone(has, stay);
        if let Some(file) = &self.file {
            lock::take(file, &self.path, Hold::Shared, PATIENCE)?;
        }
        done
    }

    /// The same, locked alone.
    fn leave_alone(&mut self, has: Option<&Present>, stay: &mut Stay) -> Result<(), LaunchError> {
        match (Mark::of(&self.path), &self.file, has) {
            (Mark::Made, Some(file), _) => {
                if release(self.address, &self.path, file)? {
                    // the first subflow of a connection, which may have begun before the endpoint was there
                    let _ = ip(&["mptcp", "endpoint", "delete", "id", "0", &self.address.to_string()]);
                }
                self.file = None;
            }
            (_, _, Some(there)) => {
                if !there.backup {
                    Mark::Quiet.write(&self.path)?;
                    change(self.address, "backup")?;
                }
                stay.backups.push(self.address);
            }
            _ => {}
        }
        Ok(())
    }
}

/// What the file of an endpoint says of it, also to those who find it after a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// It was there, and is as it was.
    Foreign,
    /// It was there and no backup, and pathcast has made it one.
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
    let Some(Present { id, .. }) = find(address)? else { return Ok(false) };
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
        for held in self.held.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(file) = &held.file {
                let _ = release(held.address, &held.path, file); // a later `remove_endpoint` says what is in the way
            }
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Works in a network namespace of its own, with a directory; says why where that cannot be.
    fn apart(test: &'static str, work: impl FnOnce(&Path) + Send + 'static) {
        let directory = std::env::temp_dir().join(format!("pathcast-{test}-{}", std::process::id()));
        let inside = directory.clone();
        let thread = thread::spawn(move || {
            // SAFETY: a plain number; of this thread alone
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 || present().is_err() {
                return println!("SKIPPED: {test}: needs root, MPTCP and `ip` for endpoints in a network namespace");
            }
            work(&inside);
        });
        let done = thread.join();
        let _ = fs::remove_dir_all(&directory);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }

    fn there() -> Vec<IpAddr> {
        present().unwrap().into_iter().map(|e| e.address).collect()
    }

    #[test]
    fn the_limit_holds_for_the_addresses_of_a_family() {
        apart("limit", |_| {
            let addresses = ["10.8.1.1", "10.8.1.2", "10.8.1.3", "10.8.1.4", "fd00:8::1", "fd00:8::2", "fd00:8::3"];
            for address in addresses {
                let done = Command::new("ip").args(["addr", "add", address, "dev", "lo"]).output().unwrap();
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            }
            ip(&["mptcp", "limits", "set", "subflows", "2"]).unwrap();
            let paths: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            let without_one = [&paths[..3], &paths[4..]].concat();
            assert!(check(&without_one).is_ok(), "no connection is of both families");
            assert!(matches!(check(&paths), Err(LaunchError::Limits { need: 3, have: 2 })));
        });
    }

    #[test]
    fn what_another_run_uses_stays_until_that_ends() {
        apart("shared-endpoint", |directory| {
            let [one, two]: [IpAddr; 2] = [[10, 8, 1, 1].into(), [10, 8, 2, 1].into()];
            let make = || Endpoints::add(&[one, two], directory).unwrap();
            let (ours, theirs) = (make(), make());
            let shared = Stay { shared: vec![two], ..Stay::default() };
            for _ in 0..2 {
                assert_eq!((ours.keep(&[one]).unwrap(), there()), (shared.clone(), vec![one, two]));
            }
            // whoever drops it last removes it, and whoever wants it again makes it
            assert_eq!((theirs.keep(&[one]).unwrap(), there()), (Stay::default(), vec![one]));
            assert_eq!((ours.keep(&[one, two]).unwrap(), there()), (Stay::default(), vec![one, two]));
            assert_eq!((theirs.keep(&[one]).unwrap(), there()), (shared.clone(), vec![one, two]));
            assert_eq!(theirs.keep(&[one, two]).unwrap(), Stay::default());
            assert_eq!(ours.keep(&[one]).unwrap(), shared);
            drop(theirs);
            assert_eq!((ours.keep(&[one]).unwrap(), there()), (Stay::default(), vec![one]));
            drop(ours);
            assert_eq!((there(), fs::read_dir(directory).unwrap().count()), (vec![], 0));
        });
    }

    #[test]
    fn of_the_users_it_is_a_backup_only_for_a_run_that_is_alone() {
        apart("foreign-endpoint", |directory| {
            let address: IpAddr = [10, 8, 2, 1].into();
            add(address).unwrap();
            let backup = || String::from_utf8(ip(&["mptcp", "endpoint", "show"]).unwrap()).unwrap().contains("backup");
            let make = || Endpoints::add(&[address], directory).unwrap();
            let (ours, theirs) = (make(), make());
            assert_eq!(ours.keep(&[]).unwrap(), Stay { shared: vec![address], ..Stay::default() });
            assert!(!backup());
            assert_eq!(theirs.keep(&[]).unwrap(), Stay { backups: vec![address], ..Stay::default() });
            assert!(backup());
            drop(ours);
            assert!(backup());
            drop(theirs);
            assert_eq!((there(), backup()), (vec![address], false));
        });
    }

    #[test]
    fn a_new_address_gets_one_while_the_kernel_has_room() {
        apart("new-endpoint", |directory| {
            let of = |n: u8| IpAddr::from([10, 8, n, 1]);
            let ours = Endpoints::add(&[of(1)], directory).unwrap();
            ours.keep(&[of(2)]).unwrap();
            assert_eq!(there(), [of(2)]);
            for n in 3..10 {
                add(of(n)).unwrap();
            }
            ours.keep(&[of(2), of(10)]).unwrap();
            assert_eq!(there().len(), MOST);
            assert!(add(of(10)).is_err());
            drop(ours);
            assert_eq!((there().len(), fs::read_dir(directory).unwrap().count()), (MOST - 1, 0));
        });
    }

    #[test]
    fn what_the_user_has_made_a_backup_stays_one() {
        apart("backup-endpoint", |directory| {
            let address: IpAddr = [10, 8, 2, 1].into();
            ip(&["mptcp", "endpoint", "add", "10.8.2.1", "subflow", "backup"]).unwrap();
            let backup = || String::from_utf8(ip(&["mptcp", "endpoint", "show"]).unwrap()).unwrap().contains("backup");
            let ours = Endpoints::add(&[address], directory).unwrap();
            for wanted in [vec![], vec![], vec![address], vec![]] {
                let backups = if wanted.is_empty() { vec![address] } else { vec![] };
                assert_eq!(ours.keep(&wanted).unwrap(), Stay { backups, ..Stay::default() });
                assert!(backup());
            }
            drop(ours);
            assert_eq!((there(), backup()), (vec![address], true));
        });
    }
}
