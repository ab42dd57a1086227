//! The socket maker's own side: what runs in its process. Only system calls.

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use pathcast_base::lock;

use crate::beginnings;
use crate::ending;
use crate::lines::{Lines, Verdict, settle};
use crate::listener::take_over;
use crate::places::Told;
use crate::task::Path;
use crate::waiting::{POLLS, Waiting, answer, waits};

/// Sockets asked for: made with Multipath TCP, and left to the kernel because that failed.
pub(crate) struct Counts {
    pub made: AtomicU64,
    pub left: AtomicU64,
    /// See `Lines::silent`.
    pub silent: AtomicU64,
    /// The run's addresses, and which of them connections may begin from; set by the other side.
    pub places: Told,
}

/// Everything that it needs, made before the fork. Absent descriptors are -1; the others are above 2.
pub(crate) struct Forked {
    /// Where the listener comes from.
    pub channel: RawFd,
    /// Takes the error number of the start; closed by our end.
    pub life: RawFd,
    /// The cgroup's list of processes.
    pub processes: RawFd,
    /// Kills the cgroup by a `1`.
    pub killer: RawFd,
    /// The network namespace that we are in.
    pub network: RawFd,
    /// Who hears of connections before they begin.
    pub beginnings: RawFd,
    /// Controller for the sockets; empty: none.
    pub control: CString,
    /// Who makes the subflows of its sockets, if it is not the kernel.
    pub manager: Option<Manager>,
    pub lines: Lines,
    pub counts: *const Counts,
}

/// The setting that says who makes the subflows of a socket at its creation, changed for that moment.
#[derive(Clone)]
pub(crate) struct Manager {
    setting: CString,
    user: &'static str,
    /// Held meanwhile; -1: nobody else changes it.
    lock: RawFd,
}

impl Manager {
    /// That of this kernel, and what keeps its lock open.
    ///
    /// # Errors
    /// A kernel without the choice; the system's.
    pub fn find() -> io::Result<(Manager, Option<OwnedFd>)> {
        let Some((file, user)) = pathcast_net::user_setting() else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has no user-space path manager"));
        };
        // a number from 3 on
        let lock = lock::open(&pathcast_net::setting_lock()).and_then(|f| OwnedFd::from(f).try_clone()).ok();
        let setting = CString::new(file.into_os_string().into_encoded_bytes())?;
        let found = Manager { setting, user, lock: lock.as_ref().map_or(-1, AsRawFd::as_raw_fd) };
        Ok((found, lock))
    }

    /// `make` while the setting names user space; without it where the setting cannot be changed.
    unsafe fn around(&self, make: impl FnOnce() -> RawFd) -> RawFd {
        // SAFETY: system calls on our own descriptors and buffers
        unsafe {
            libc::flock(self.lock, libc::LOCK_EX);
            let file = libc::open(self.setting.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            let mut old = [0u8; 32];
            let length = libc::pread(file, old.as_mut_ptr().cast(), old.len(), 0);
            let changed = length > 0 && libc::pwrite(file, self.user.as_ptr().cast(), self.user.len(), 0) > 0;
            let made = make();
            if changed {
                libc::pwrite(file, old.as_ptr().cast(), length as usize, 0);
            }
            libc::close(file);
            libc::flock(self.lock, libc::LOCK_UN);
            made
        }
    }
}

impl Forked {
    /// Lives here until nothing is under the filter any more.
    pub fn run(&self) -> ! {
        // SAFETY: system calls on descriptors that are ours alone since the fork
        unsafe {
            libc::setsid(); // no terminal's signals; all others were blocked before the fork
            libc::prctl(libc::PR_SET_NAME, c"pathcast-mptcp".as_ptr(), 0, 0, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, -5); // somebody always waits for it; as root
            let null_device = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            for stream in 0..3 {
                libc::dup2(null_device, stream); // the program's pipes must not stay open because of us
            }
            self.close_others();
            let mut room: libc::rlimit = zeroed(); // who waits takes some for each line
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut room);
            room.rlim_cur = room.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &room);
            libc::chdir(c"/".as_ptr());
            let mut error = 0;
            if self.processes >= 0 && libc::write(self.processes, c"0".as_ptr().cast(), 1) != 1 {
                error = *libc::__errno_location();
            }
            libc::send(self.life, (&raw const error).cast(), size_of_val(&error), libc::MSG_NOSIGNAL);
            if error != 0 {
                libc::_exit(1);
            }
            libc::close(self.processes);
            let listener = take_over(self.channel);
            libc::close(self.channel);
            if listener >= 0 {
                self.serve(listener);
            }
            libc::_exit(0)
        }
    }

    /// Closes every descriptor from 3 on that is not in `self`.
    fn close_others(&self) {
        let mut from = 3;
        loop {
            let lock = self.manager.as_ref().map_or(-1, |manager| manager.lock);
            let kept = [self.channel, self.life, self.processes, self.killer, self.network, self.beginnings, lock];
            let next = kept.iter().copied().filter(|&fd| fd >= from).min();
            let last = next.map_or(libc::c_uint::MAX, |fd| fd as libc::c_uint - 1);
            if last >= from as libc::c_uint {
                // SAFETY: nothing in this process uses them
                unsafe { libc::syscall(libc::SYS_close_range, from as libc::c_uint, last, 0) };
            }
            match next {
                Some(fd) => from = fd + 1,
                None => return,
            }
        }
    }

    fn serve(&self, listener: RawFd) {
        // wakes us where the caller runs, which waits anyway (Linux 6.6, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
        // SAFETY: a plain number
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, 1u64) };
        let mut waiting = Waiting::new(listener, self.lines);
        loop {
            // SAFETY: all pointers are to locals of the types that the calls want; the descriptors are ours
            unsafe {
                let idle = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
                let mut polls = [idle; 2 + POLLS];
                polls[0].fd = listener;
                polls[1].fd = if self.killer < 0 { -1 } else { self.life };
                let count = 2 + waiting.polls(&mut polls[2..]);
                if libc::poll(polls.as_mut_ptr(), count as _, waiting.left()) < 0
                    && *libc::__errno_location() != libc::EINTR
                {
                    return;
                }
                let [poll, life, ..] = polls;
                if life.revents & libc::POLLHUP != 0 {
                    // who steers it has died; the program itself has had a SIGTERM (spawn.rs)
                    libc::poll(std::ptr::null_mut(), 0, ending::GRACE.as_millis() as libc::c_int);
                    libc::write(self.killer, c"1".as_ptr().cast(), 1);
                    return;
                }
                let mut came = poll.revents & libc::POLLIN != 0;
                if !came && poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                    return; // nobody is under the filter any more
                }
                let mut call: libc::seccomp_notif = zeroed();
                if came && libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &mut call) != 0 {
                    match *libc::__errno_location() {
                        libc::EINTR | libc::ENOENT => came = false, // the caller died meanwhile
                        _ => return,
                    }
                }
                self.go_on(listener, &mut waiting, came.then_some(&call));
            }
        }
    }

    /// With those that wait, and with one that has just come.
    unsafe fn go_on(&self, listener: RawFd, waiting: &mut Waiting, call: Option<&libc::seccomp_notif>) {
        // SAFETY: as in `serve`
        unsafe {
            let counts = &*self.counts;
            let socket = |task, domain, kind| self.socket(task, domain, kind | libc::SOCK_NONBLOCK, 0);
            if let Some((own, barred)) = counts.places.read() {
                waiting.lines.renew(&own);
                waiting.lines.allowed = !barred;
            }
            // first: the one that has come may be one of them, interrupted
            waiting.go_on(socket);
            match call {
                Some(call) if i64::from(call.data.nr) != libc::SYS_connect => self.serve_socket(listener, call),
                Some(call) if self.beginnings >= 0 => self.tell(listener, call),
                Some(call) => waiting.begin(call, socket),
                None => {}
            }
            counts.silent.store(waiting.lines.silent, Ordering::Relaxed);
        }
    }

    unsafe fn serve_socket(&self, listener: RawFd, call: &libc::seccomp_notif) {
        // SAFETY: as in `serve`
        unsafe {
            if self.answer(listener, call) {
                (*self.counts).made.fetch_add(1, Ordering::Relaxed);
                return;
            }
            (*self.counts).left.fetch_add(1, Ordering::Relaxed);
        }
        answer(listener, call, Verdict::Continue);
    }

    /// Has it known where the caller's connection will begin.
    unsafe fn tell(&self, listener: RawFd, call: &libc::seccomp_notif) {
        // SAFETY: as in `serve`
        unsafe {
            let socket = |domain, kind| self.socket(call.pid, domain, kind | libc::SOCK_NONBLOCK, 0);
            if let Some(ends) = settle(call.pid, &call.data.args, || waits(listener, call), socket) {
                beginnings::tell(self.beginnings, call.id, ends);
            }
        }
        answer(listener, call, Verdict::Continue);
    }

    /// Gives the caller a socket; false when the kernel shall do what was asked for itself.
    unsafe fn answer(&self, listener: RawFd, call: &libc::seccomp_notif) -> bool {
        let kind = call.data.args[1] as libc::c_int;
        // SAFETY: as in `serve`
        unsafe {
            let fd = self.socket(call.pid, call.data.args[0] as libc::c_int, kind, libc::IPPROTO_MPTCP);
            if fd < 0 {
                return false;
            }
            let mut add: libc::seccomp_notif_addfd = zeroed();
            add.id = call.id;
            add.flags = libc::SECCOMP_ADDFD_FLAG_SEND as _;
            add.srcfd = fd as _;
            add.newfd_flags = (kind & libc::SOCK_CLOEXEC) as _; // the same bit as O_CLOEXEC
            let done = libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &mut add);
            let gone = done < 0 && *libc::__errno_location() == libc::ENOENT;
            libc::close(fd);
            // a caller without room for descriptors gets the kernel's own error from the kernel
            done >= 0 || gone
        }
    }

    /// The socket, in the network namespace of the task and owned by its user.
    unsafe fn socket(&self, task: u32, domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> RawFd {
        let there = Path::of(task).below(b"/ns/net");
        // SAFETY: as in `serve`; a thread of a process that has no other
        unsafe {
            let mut away = false;
            let mut here: libc::stat = zeroed();
            if self.network >= 0 && libc::fstat(self.network, &mut here) == 0 {
                let Some(theirs) = there.stat() else { return -1 };
                if (theirs.st_dev, theirs.st_ino) != (here.st_dev, here.st_ino) {
                    let namespace = libc::open(there.bytes.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
                    away = namespace >= 0 && libc::setns(namespace, libc::CLONE_NEWNET) == 0;
                    libc::close(namespace);
                    if !away {
                        return -1;
                    }
                }
            }
            if let Some(owner) = Path::of(task).stat() {
                libc::syscall(libc::SYS_setfsgid, owner.st_gid);
                libc::syscall(libc::SYS_setfsuid, owner.st_uid);
            }
            let make = || libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol);
            let fd = match &self.manager {
                Some(manager) if protocol == libc::IPPROTO_MPTCP && !away => manager.around(make),
                _ => make(),
            };
            libc::syscall(libc::SYS_setfsuid, libc::geteuid());
            libc::syscall(libc::SYS_setfsgid, libc::getegid());
            if away && libc::setns(self.network, libc::CLONE_NEWNET) != 0 {
                libc::_exit(1); // never to make a socket in the wrong place
            }
            let name = self.control.as_bytes();
            if fd >= 0 && !name.is_empty() {
                let value = name.as_ptr().cast();
                // the cgroup's program sets it on every subflow; this makes it the connection's own too
                libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, name.len() as _);
            }
            fd
        }
    }
}
