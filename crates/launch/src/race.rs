//! A connection of the program's that waits for an answer: the socket maker has begun it over the line of its route and, where
//! nothing answers in a moment, asks the far end from the run's other addresses, side by side (RFC 8305); the first subflow
//! then leaves from the address that was answered. Nothing here waits: see `waiting`. Only system calls, no allocation, as in
//! `forked`.

use std::mem::zeroed;
use std::os::fd::RawFd;

use crate::address::{Address, bind, connect, name};
use crate::lines::{Lines, MOST, Verdict};

/// How long the line of the route is alone [ms] (RFC 8305, section 5) …
const ALONE_MS: u64 = 250;
/// … and how long all together may take before the program goes on waiting by itself.
const TOGETHER_MS: u64 = 1500;
/// TCP_USER_TIMEOUT of a connection that only asks [ms]: by it the eBPF program knows that it is none of the program's.
const ASKS: libc::c_int = 0x6173_6b73;

/// Of whom an answer is awaited: the program's own connection is at place `MOST`.
const NOBODY: libc::pollfd = libc::pollfd { fd: -1, events: libc::POLLOUT, revents: 0 };
pub(crate) const ENTRANTS: usize = MOST + 1;

/// How a call of connect(2) goes on.
#[allow(clippy::large_enum_variant)] // there is no allocation
pub(crate) enum Begun {
    Now(Verdict),
    Waits(Race),
    /// Another one is finding out about the same far end.
    Behind,
}

pub(crate) struct Race {
    /// The program's socket; whoever has the race closes it.
    pub fd: RawFd,
    to: Address,
    plain: Address,
    begun: u64,
    polls: [libc::pollfd; ENTRANTS],
    /// None: the route has no say.
    route: Option<Route>,
}

/// The program's own connection, begun over the line of its route.
struct Route {
    /// The descriptor's, before it was made one that does not block.
    flags: libc::c_int,
    source: [u8; 16],
    /// The error number with which it has ended.
    failed: i32,
    alone: bool,
}

impl Race {
    /// Over the line of the route first.
    pub fn by_route(fd: RawFd, to: &Address, lines: &mut Lines) -> Begun {
        // SAFETY: plain numbers
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        let route = Route { flags, source: [0; 16], failed: 0, alone: true };
        let mut race = Race::of(fd, to, Some(route));
        // SAFETY: plain numbers
        unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) };
        let error = connect(fd, to);
        let own = name(fd);
        let source = own.octets();
        let verdict = match error {
            0 => lines.found(to, MOST, Verdict::Done(0)),
            libc::EALREADY | libc::EISCONN => Verdict::Continue,
            libc::EINPROGRESS | libc::ENETUNREACH | libc::EHOSTUNREACH => {
                let failed = if error == libc::EINPROGRESS { 0 } else { error };
                race.polls[MOST].fd = if failed == 0 { fd } else { -1 };
                race.route = Some(Route { flags, source, failed, alone: true });
                if lines.others(&race.plain, &source).next().is_some() {
                    return Begun::Waits(race);
                }
                race.unanswered() // there is nobody to ask
            }
            error => Verdict::Done(error),
        };
        race.release();
        Begun::Now(verdict)
    }

    /// From each of the allowed addresses at once.
    pub fn within(fd: RawFd, to: &Address, lines: &Lines, socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Race {
        let mut race = Race::of(fd, to, None);
        race.ask(lines, &[0; 16], socket);
        race
    }

    fn of(fd: RawFd, to: &Address, route: Option<Route>) -> Race {
        Race { fd, to: *to, plain: to.plain(), begun: now_ms(), polls: [NOBODY; ENTRANTS], route }
    }

    /// Whose answers are awaited.
    pub fn polls(&self) -> impl Iterator<Item = libc::pollfd> {
        self.polls.iter().copied().filter(|poll| poll.fd >= 0)
    }

    /// How long nothing is to be done unless somebody answers [ms].
    pub fn left_ms(&self) -> u64 {
        let alone = self.route.as_ref().is_some_and(|route| route.alone);
        (self.begun + if alone { ALONE_MS } else { TOGETHER_MS }).saturating_sub(now_ms())
    }

    /// Takes the answers that are there; what is done with the call, once that is known.
    pub fn go_on(&mut self, lines: &mut Lines, socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Option<Verdict> {
        // SAFETY: the array is valid for its length; negative descriptors are left out
        unsafe { libc::poll(self.polls.as_mut_ptr(), self.polls.len() as _, 0) };
        for place in (0..ENTRANTS).rev() {
            if self.polls[place].fd >= 0
                && self.polls[place].revents != 0
                && let Some(verdict) = self.answered(place, lines)
            {
                return Some(verdict);
            }
        }
        let due = self.left_ms() == 0;
        let own = self.polls[MOST].fd >= 0;
        if let Some(route) = self.route.as_mut().filter(|route| route.alone && (due || !own)) {
            route.alone = false;
            let source = route.source;
            if self.left_ms() > 0 {
                self.ask(lines, &source, socket);
            }
        }
        (self.left_ms() == 0 || self.polls().next().is_none()).then(|| self.give_up(lines))
    }

    fn ask(&mut self, lines: &Lines, except: &[u8; 16], socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) {
        for (place, own) in lines.others(&self.plain, except) {
            self.polls[place].fd = ask(own, &self.plain, &socket);
        }
    }

    fn answered(&mut self, place: usize, lines: &mut Lines) -> Option<Verdict> {
        let fd = self.polls[place].fd;
        let error = connect(fd, if place == MOST { &self.to } else { &self.plain }); // says how it went
        match &mut self.route {
            Some(route) if place == MOST => {
                self.polls[MOST].fd = -1;
                return match error {
                    libc::ETIMEDOUT | libc::ENETUNREACH | libc::EHOSTUNREACH => {
                        route.failed = error;
                        None
                    }
                    libc::EISCONN => Some(lines.found(&self.to, MOST, Verdict::Done(0))),
                    error => Some(lines.found(&self.to, MOST, Verdict::Done(error))),
                };
            }
            _ if !matches!(error, 0 | libc::EISCONN | libc::ECONNREFUSED) => {}
            Some(route) => {
                // the host answers from here: the connection begins anew, from this address
                connect(self.fd, &Address::none());
                lines.bind(self.fd, place);
                lines.was_silent(&route.source);
                return Some(lines.found(&self.to, place, Verdict::Continue));
            }
            None if lines.may(place, &self.plain) && lines.bind(self.fd, place) => {
                return Some(lines.found(&self.to, place, Verdict::Continue));
            }
            None => {}
        }
        // SAFETY: ours
        unsafe { libc::close(fd) };
        self.polls[place].fd = -1;
        None
    }

    /// Nobody has answered in time, or there was no room to wait.
    pub fn give_up(&self, lines: &mut Lines) -> Verdict {
        if self.route.is_some() {
            return lines.found(&self.to, MOST, self.unanswered()); // or all others would wait for each that tries again
        }
        // an address may have gone with its line
        match lines.first(self.fd, &self.plain) {
            Some(place) => lines.found(&self.to, place, Verdict::Continue),
            None => Verdict::Done(libc::ENETUNREACH),
        }
    }

    fn unanswered(&self) -> Verdict {
        match &self.route {
            Some(route) if route.failed != 0 => Verdict::Done(route.failed),
            Some(route) if route.flags & libc::O_NONBLOCK != 0 => Verdict::Done(libc::EINPROGRESS),
            _ => Verdict::Continue, // the kernel goes on waiting for the same connection
        }
    }

    /// Leaves the program's socket as it is; before the call is answered.
    pub fn release(&mut self) {
        for poll in &mut self.polls[..MOST] {
            if poll.fd >= 0 {
                // SAFETY: ours
                unsafe { libc::close(poll.fd) };
            }
            poll.fd = -1;
        }
        if let Some(route) = &self.route {
            // SAFETY: plain numbers
            unsafe { libc::fcntl(self.fd, libc::F_SETFL, route.flags) };
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    // SAFETY: a place for the answer
    unsafe {
        let mut now: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }
}

/// A connection that only asks whether the host is there; -2 where it cannot be begun. The far end's program does not
/// hear of it, since it might take this one for the only one that it takes: the last ACK of the handshake is put off, as
/// if data came with it, and the end comes before.
fn ask(own: &Address, to: &Address, socket: &impl Fn(libc::c_int, libc::c_int) -> RawFd) -> RawFd {
    let fd = socket(to.family(), libc::SOCK_STREAM);
    if fd < 0 {
        return -2;
    }
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of_val(&at_once) as libc::socklen_t;
    let (one, asks): (libc::c_int, libc::c_int) = (1, ASKS);
    // SAFETY: values of these sizes
    unsafe {
        let name = libc::TCP_USER_TIMEOUT;
        libc::setsockopt(fd, libc::IPPROTO_TCP, name, (&raw const asks).cast(), size_of_val(&asks) as _);
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const at_once).cast(), size);
        libc::setsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const one).cast(),
            size_of_val(&one) as _,
        );
    }
    match bind(fd, own).then(|| connect(fd, to)) {
        Some(0 | libc::EINPROGRESS) => fd,
        _ => {
            // SAFETY: ours
            unsafe { libc::close(fd) };
            -2
        }
    }
}
