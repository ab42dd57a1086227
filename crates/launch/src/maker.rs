//! The socket maker: a process that answers a program's calls of socket(2) with sockets of Multipath TCP.
//!
//! It is a process, not a thread, for two reasons. A socket belongs to the cgroup of whoever makes it, so the maker must
//! live in the cgroup of the run. And what the program leaves running in the background needs an answer for as long as
//! it runs, also when pathcast has ended: a filter cannot be taken off, and without a listener socket(2) would fail. The
//! maker ends by itself with the last process that is under the filter.
//!
//! It is forked from a process that may have threads, and never executes anything: after the fork there are only system
//! calls, no allocation, no lock, no panic.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::forked::{Counts, Forked, Manager};
use crate::lines::Lines;
use crate::places::Places;

/// A page that the maker shares with us.
struct Shared(*mut Counts);

// SAFETY: the page holds atomics only
unsafe impl Send for Shared {}
// SAFETY: as above
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and no reference outlives `self`
        unsafe { libc::munmap(self.0.cast(), size_of::<Counts>()) };
    }
}

/// Our handle on it.
pub(crate) struct Maker {
    /// For the program's listener; goes to [`hand_over`](crate::listener::hand_over).
    pub channel: OwnedFd,
    /// Whether connect(2) shall wait for it too.
    pub connects: bool,
    /// Ends when the maker does.
    alive: OwnedFd,
    counts: Shared,
    places: Mutex<Places>,
}

/// Two connected ends, closed on exec. The numbers are above those of the standard streams, also where these are closed.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, belong to nobody else
    let ends = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let [a, b] = ends.each_ref().map(OwnedFd::try_clone); // which takes numbers from 3 on
    Ok((a?, b?))
}

impl Maker {
    /// Starts it, in the cgroup of which `processes` is the list, if there is one. `control` is set on its sockets.
    /// `paths` are the addresses that the program's connections may have; `steered`: which of them may change. `killer`:
    /// what kills the cgroup, where that is not to outlive us. `beginnings`: who hears of connections before they begin, where
    /// its sockets' subflows are ours to make.
    ///
    /// # Errors
    /// The system's.
    pub fn start(
        control: &str,
        processes: Option<&File>,
        paths: &[IpAddr],
        steered: bool,
        killer: Option<&File>,
        beginnings: Option<&OwnedFd>,
    ) -> io::Result<Maker> {
        let (channel, theirs) = pair()?;
        let (alive, life) = pair()?;
        let size = size_of::<Counts>();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping; its zeros are valid counts
        let page = unsafe { libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let counts = Shared(page.cast());
        let own = |file: Option<&File>| file.map(File::try_clone).transpose(); // a number from 3 on
        let (processes, killer) = (own(processes)?, own(killer)?);
        let network = File::open("/proc/thread-self/ns/net").and_then(|f| OwnedFd::from(f).try_clone()).ok();
        let lines = Lines::new(paths, steered);
        let manager = beginnings.map(|_| Manager::find()).transpose()?;
        let forked = Forked {
            manager: manager.as_ref().map(|(manager, _)| manager.clone()),
            lines,
            channel: theirs.as_raw_fd(),
            life: life.as_raw_fd(),
            processes: processes.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            killer: killer.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            network: network.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            beginnings: beginnings.map_or(-1, AsRawFd::as_raw_fd),
            control: CString::new(control)?,
            counts: counts.0,
        };
        fork(&forked)?;
        drop((theirs, life));
        match stands(&alive)? {
            Some(0) => {
                let connects = steered || lines.several() || beginnings.is_some();
                Ok(Maker { channel, connects, alive, counts, places: Mutex::new(Places::of(paths)) })
            }
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Err(io::Error::other("the socket maker ended at its start")),
        }
    }

    /// Whether it ends within `patience`, as it does when nothing is under the filter any more.
    pub fn ends_within(&self, patience: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.alive.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd
        unsafe { libc::poll(&mut poll, 1, patience.as_millis() as libc::c_int) == 1 }
    }

    /// Those of the addresses from which a far end did not answer while it did from another.
    pub fn silent(&self) -> Vec<IpAddr> {
        self.places().silent(self.silent_places())
    }

    fn silent_places(&self) -> u64 {
        // SAFETY: as below
        unsafe { &*self.counts.0 }.silent.load(Ordering::Relaxed)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These are the program's addresses in the place of `paths`, from the next [`Maker::allow`] on.
    pub fn renew(&self, all: &[IpAddr]) {
        self.places().renew(all, self.silent_places());
    }

    /// Connections begin from these of the addresses from now on.
    pub fn allow(&self, addresses: &[IpAddr]) {
        let places = self.places();
        // SAFETY: as below
        unsafe { &*self.counts.0 }.places.tell(&places, addresses);
    }

    /// Sockets made, and left to the kernel.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: mapped for as long as `self` lives
        let counts = unsafe { &*self.counts.0 };
        (counts.made.load(Ordering::Relaxed), counts.left.load(Ordering::Relaxed))
    }
}

/// The error number that the maker sends when it stands; none: it has ended before. Signals of ours do not matter.
fn stands(alive: &OwnedFd) -> io::Result<Option<i32>> {
    let mut ready = 0i32;
    loop {
        // SAFETY: room for the number
        let n = unsafe { libc::recv(alive.as_raw_fd(), (&raw mut ready).cast(), size_of_val(&ready), 0) };
        match n {
            4 => return Ok(Some(ready)),
            0.. => return Ok(None),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Twice, so that it is nobody's child that would have to wait for it. No signal gets in between.
fn fork(forked: &Forked) -> io::Result<()> {
    // SAFETY: the sets are valid places; the children only make system calls
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let child = libc::fork();
        if child == 0 {
            if libc::fork() == 0 {
                forked.run();
            }
            libc::_exit(0);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if child < 0 {
            return Err(error);
        }
        while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt;
    use std::thread;

    use super::*;

    #[test]
    fn a_signal_does_not_end_the_start() {
        extern "C" fn nothing(_: libc::c_int) {}
        let signal = libc::SIGRTMIN() + 7; // nobody else's in these tests
        // SAFETY: zeros are a valid action; without SA_RESTART, as Python's handlers are
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
        let (alive, life) = pair().unwrap();
        let waits = thread::spawn(move || (stands(&alive), stands(&alive)));
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(5));
            // SAFETY: the thread is not joined yet
            unsafe { libc::pthread_kill(waits.as_pthread_t(), signal) };
        }
        let error = libc::EPERM;
        // SAFETY: four bytes of ours
        unsafe { libc::send(life.as_raw_fd(), (&raw const error).cast(), size_of_val(&error), libc::MSG_NOSIGNAL) };
        drop(life);
        let (first, then) = waits.join().unwrap();
        assert_eq!((first.unwrap(), then.unwrap()), (Some(libc::EPERM), None));
    }
}
