//! Whom the program runs as: not as root merely because pathcast needs root.

use std::ffi::{CStr, CString};
use std::io;
use std::ptr;
use std::thread;

use crate::error::LaunchError;

/// A user of this host.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
    /// All groups of the user.
    pub groups: Vec<libc::gid_t>,
    /// Login name, or the number of a user without one.
    pub name: String,
    /// HOME, USER, LOGNAME, SHELL.
    pub environment: Vec<(&'static str, String)>,
    /// Is it another user than this process is?
    pub changes: bool,
}

impl Account {
    /// The calling thread becomes this user, for good. Only system calls, for use between fork and exec.
    ///
    /// # Errors
    /// The system's.
    pub fn assume(&self) -> io::Result<()> {
        let check = |result: libc::c_long| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        let (uid, gid) = (self.uid, self.gid);
        // the bare system calls are of one thread; the library's would change all of a process
        // SAFETY: the list is as long as is said
        unsafe {
            check(libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()))?;
            check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
            check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))
        }
    }

    /// Does `work` with the rights of this user and no others, on a thread of its own.
    ///
    /// # Errors
    /// The system's, and those of `work`.
    pub fn act<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if !self.changes {
            return work();
        }
        thread::scope(|scope| {
            let actor = scope.spawn(|| self.assume().and_then(|()| work()));
            actor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The user asked for; else the one who called sudo; else the one that we are.
///
/// # Errors
/// An unknown user; another user than ours without root.
pub(crate) fn choose(user: Option<&str>) -> Result<Account, LaunchError> {
    // SAFETY: no arguments
    let ours = unsafe { libc::geteuid() };
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u32>().ok());
    let account = match user {
        Some(name) => by_name(name)?,
        None => match number("SUDO_UID").filter(|&uid| ours == 0 && uid != 0) {
            Some(uid) => {
                let mut account = by_number(uid);
                if let Some(gid) = number("SUDO_GID").filter(|_| account.groups.is_empty()) {
                    account.gid = gid; // of a user that this host has no entry for
                }
                account
            }
            None => by_number(ours),
        },
    };
    if account.uid != ours && ours != 0 {
        let what = format!("the privilege to run a program as `{}`", account.name);
        return Err(LaunchError::missing(what, "run as root, or without --user"));
    }
    Ok(Account { changes: account.uid != ours, ..account })
}

fn by_name(name: &str) -> Result<Account, LaunchError> {
    let unknown = || LaunchError::UnknownUser(name.into());
    let text = CString::new(name).map_err(|_| unknown())?;
    // SAFETY: a string with a final zero; the other arguments come from `entry`
    let found = entry(|p, b, n, r| unsafe { libc::getpwnam_r(text.as_ptr(), p, b, n, r) });
    found.or_else(|| name.parse().ok().map(by_number)).ok_or_else(unknown)
}

/// A number without an entry is a user too, in no group but 65534 (nogroup).
fn by_number(uid: libc::uid_t) -> Account {
    // SAFETY: the arguments come from `entry`
    let found = entry(|p, b, n, r| unsafe { libc::getpwuid_r(uid, p, b, n, r) });
    found.unwrap_or_else(|| Account {
        uid,
        gid: 65534,
        groups: Vec::new(),
        name: uid.to_string(),
        environment: Vec::new(),
        changes: false,
    })
}

type Lookup<'a> = &'a dyn Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32;

fn entry(ask: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> i32) -> Option<Account> {
    let ask: Lookup<'_> = &ask;
    let mut buffer = vec![0; 4096];
    loop {
        // SAFETY: a zeroed passwd is a valid place for the answer
        let mut place: libc::passwd = unsafe { std::mem::zeroed() };
        let mut result = ptr::null_mut();
        match ask(&mut place, buffer.as_mut_ptr(), buffer.len(), &mut result) {
            libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 2, 0),
            0 if !result.is_null() => return Some(account(&place)),
            _ => return None,
        }
    }
}

fn account(entry: &libc::passwd) -> Account {
    let text = |p: *const libc::c_char| {
        if p.is_null() {
            return String::new();
        }
        // SAFETY: a string with a final zero, in a buffer that outlives this call
        unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
    };
    let name = text(entry.pw_name);
    let environment = [("HOME", entry.pw_dir), ("SHELL", entry.pw_shell)].map(|(key, value)| (key, text(value)));
    let mut environment: Vec<_> = environment.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    environment.extend([("USER", name.clone()), ("LOGNAME", name.clone())]);
    let mut groups = vec![0; 64];
    loop {
        let mut n = groups.len() as libc::c_int;
        // SAFETY: the name has a final zero, and `groups` is as long as is said
        let done = unsafe { libc::getgrouplist(entry.pw_name, entry.pw_gid, groups.as_mut_ptr(), &mut n) };
        let wanted = n.max(0) as usize;
        if done >= 0 {
            groups.truncate(wanted);
            break;
        }
        groups.resize(wanted.max(groups.len() * 2), 0);
    }
    Account { uid: entry.pw_uid, gid: entry.pw_gid, groups, name, environment, changes: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let root = by_name("root").unwrap();
        assert_eq!((root.uid, root.gid, root.name.as_str()), (0, 0, "root"));
        assert!(root.groups.contains(&0));
        assert!(root.environment.iter().any(|(k, v)| *k == "USER" && v == "root"));
        assert_eq!(by_name("0").unwrap().name, "root");
        let nobody_knows = by_name("3999999999").unwrap();
        assert_eq!((nobody_knows.uid, nobody_knows.groups.len()), (3_999_999_999, 0));
        assert!(matches!(by_name("no such user"), Err(LaunchError::UnknownUser(_))));
    }
}
