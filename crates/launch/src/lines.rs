//! A program's connect(2) when the line of its route may be dead: the socket maker begins it, and where nothing answers
//! in a moment asks the far end from the run's other addresses, side by side (RFC 8305); the first subflow then leaves
//! from the address that was answered. Only system calls, no allocation, as in `forked`.

use std::mem::zeroed;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::RawFd;

use crate::task::take;

/// How long the line of the route is alone [ms] (RFC 8305, section 5) …
const ALONE_MS: i32 = 250;
/// … and how long all together may take before the program goes on waiting by itself.
const TOGETHER_MS: i32 = 1500;
/// How long what was found holds for further connections to the same address [ms].
const HOLDS_MS: u64 = 5000;
/// MPTCP in Linux has no more subflows.
pub(crate) const MOST: usize = 9;
const KNOWN: usize = 16;
/// TCP_USER_TIMEOUT of a connection that only asks [ms]: by it the eBPF program knows that it is none of the program's.
const ASKS: libc::c_int = 0x6173_6b73;

/// An address with its length, as the kernel takes it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Address {
    fn empty() -> Address {
        // SAFETY: zeros are valid
        Address { storage: unsafe { zeroed() }, length: size_of::<libc::sockaddr_storage>() as _ }
    }

    /// With port 0.
    fn of(ip: IpAddr) -> Address {
        let mut made = Address::empty();
        // SAFETY: the storage has room for every kind of address, and is aligned for it
        unsafe {
            match ip {
                IpAddr::V4(v4) => {
                    let to = &mut *(&raw mut made.storage).cast::<libc::sockaddr_in>();
                    to.sin_family = libc::AF_INET as _;
                    to.sin_addr.s_addr = u32::from_ne_bytes(v4.octets());
                    made.length = size_of::<libc::sockaddr_in>() as _;
                }
                IpAddr::V6(v6) => {
                    let to = &mut *(&raw mut made.storage).cast::<libc::sockaddr_in6>();
                    to.sin6_family = libc::AF_INET6 as _;
                    to.sin6_addr.s6_addr = v6.octets();
                    made.length = size_of::<libc::sockaddr_in6>() as _;
                }
            }
        }
        made
    }

    fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// The IP address, IPv4 as an IPv6 one that stands for it; of other families zeros.
    fn octets(&self) -> [u8; 16] {
        // SAFETY: the family says what is in the storage
        unsafe {
            match self.family() {
                libc::AF_INET => {
                    let of = &*(&raw const self.storage).cast::<libc::sockaddr_in>();
                    let [a, b, c, d] = of.sin_addr.s_addr.to_ne_bytes();
                    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
                }
                libc::AF_INET6 => (*(&raw const self.storage).cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr,
                _ => [0; 16],
            }
        }
    }

    fn port(&self) -> u16 {
        // SAFETY: the family says what is in the storage
        u16::from_be(unsafe {
            match self.family() {
                libc::AF_INET => (*(&raw const self.storage).cast::<libc::sockaddr_in>()).sin_port,
                libc::AF_INET6 => (*(&raw const self.storage).cast::<libc::sockaddr_in6>()).sin6_port,
                _ => 0,
            }
        })
    }

    fn set_port(&mut self, port: u16) {
        // SAFETY: the family says what is in the storage, which is aligned for both
        unsafe {
            match self.family() {
                libc::AF_INET => (*(&raw mut self.storage).cast::<libc::sockaddr_in>()).sin_port = port.to_be(),
                libc::AF_INET6 => (*(&raw mut self.storage).cast::<libc::sockaddr_in6>()).sin6_port = port.to_be(),
                _ => {}
            }
        }
    }

    /// IPv4 also where it is written as the IPv6 address that stands for it.
    fn plain(&self) -> Address {
        match Ipv6Addr::from(self.octets()).to_canonical() {
            v4 @ IpAddr::V4(_) => Address::of(v4).at(self.port()),
            IpAddr::V6(_) => *self, // with its scope
        }
    }

    /// As a socket of this family takes it.
    fn of_family(&self, family: libc::c_int) -> Address {
        match (self.family(), family) {
            (libc::AF_INET, libc::AF_INET6) => Address::of(IpAddr::V6(self.octets().into())).at(self.port()),
            _ => *self,
        }
    }

    fn at(mut self, port: u16) -> Address {
        self.set_port(port);
        self
    }

    fn is_unspecified(&self) -> bool {
        let octets = self.octets();
        octets == [0; 16] || octets == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
    }

    fn is_loopback(&self) -> bool {
        let octets = self.octets();
        octets[..13] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127]
            || octets == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    }
}

/// What is done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The kernel carries it out.
    Continue,
    /// It has been carried out, with this error number or 0.
    Done(i32),
}

#[derive(Clone, Copy)]
struct Known {
    to: [u8; 16],
    /// The address to leave from, by its place; `MOST`: that of the route.
    from: usize,
    until: u64,
}

/// The run's addresses, and what is known of far ends.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    own: [Address; MOST],
    count: usize,
    known: [Known; KNOWN],
    next: usize,
    /// A bit for each of the run's addresses from which a far end did not answer while it did from another.
    pub silent: u64,
    /// A bit for each of the run's addresses that connections may begin from now.
    pub allowed: u64,
}

fn errno() -> i32 {
    // SAFETY: errno of this thread
    unsafe { *libc::__errno_location() }
}

fn now_ms() -> u64 {
    // SAFETY: a place for the answer
    unsafe {
        let mut now: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }
}

impl Lines {
    pub fn new(addresses: &[IpAddr]) -> Lines {
        let nothing = Known { to: [0; 16], from: MOST, until: 0 };
        let mut lines = Lines {
            own: [Address::empty(); MOST],
            count: addresses.len().min(MOST),
            known: [nothing; KNOWN],
            next: 0,
            silent: 0,
            allowed: u64::MAX,
        };
        for (to, from) in lines.own.iter_mut().zip(addresses) {
            *to = Address::of(*from);
        }
        lines
    }

    /// The run has these addresses now, by place, IPv4 as IPv6 ones that stand for it; 0: none.
    pub fn renew(&mut self, own: &[u128; MOST]) {
        for (place, (to, &from)) in self.own.iter_mut().zip(own).enumerate() {
            let ip = Ipv6Addr::from(from);
            if to.octets() != ip.octets() {
                *to = if from == 0 { Address::empty() } else { Address::of(ip.to_canonical()) };
                self.known.iter_mut().filter(|k| k.from == place).for_each(|k| k.until = 0);
                self.silent &= !(1 << place);
            }
        }
        self.count = own.iter().rposition(|&one| one != 0).map_or(0, |last| last + 1);
    }

    /// Is there a choice?
    pub fn several(&self) -> bool {
        self.count > 1
    }

    /// Of a connect(2) of task `pid`; `valid` says whether it still waits, `socket` makes a socket of a family and a type
    /// where it is.
    ///
    /// # Safety
    /// To be called with the arguments of such a call, in a process that may look into the caller.
    pub unsafe fn connect(
        &mut self,
        pid: u32,
        arguments: &[u64; 6],
        valid: impl Fn() -> bool,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Verdict {
        let Some((fd, to)) = wanted(pid, arguments) else { return Verdict::Continue };
        let verdict = if valid() && free_stream(fd) { self.begin(fd, &to, socket) } else { Verdict::Continue };
        // SAFETY: ours
        unsafe { libc::close(fd) };
        verdict
    }

    fn begin(&mut self, fd: RawFd, to: &Address, socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Verdict {
        let now = now_ms();
        if self.bounded() {
            return self.begin_within(fd, to, now, socket);
        }
        if let Some(known) = self.known.iter().find(|k| k.until > now && k.to == to.octets()) {
            if let Some(own) = self.own.get(known.from) {
                bind(fd, own); // where it fails the route chooses, as without us
            }
            return Verdict::Continue;
        }
        // SAFETY: plain numbers
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        // SAFETY: plain numbers
        unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) };
        let verdict = self.race(fd, to, flags & libc::O_NONBLOCK != 0, socket);
        // SAFETY: plain numbers
        unsafe { libc::fcntl(fd, libc::F_SETFL, flags) };
        verdict
    }

    /// Is the line of the route, whichever it is, perhaps not to be used?
    fn bounded(&self) -> bool {
        (0..self.count).any(|place| self.allowed >> place & 1 == 0)
    }

    /// From the first of the allowed addresses from which the far end answers; the route has no say. Where none of them
    /// can be, the host is not reachable.
    fn begin_within(
        &mut self,
        fd: RawFd,
        to: &Address,
        now: u64,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Verdict {
        let (allowed, plain) = (self.allowed, to.plain());
        let may = |place: usize| allowed >> place & 1 == 1 && self.own[place].family() == plain.family();
        if name(fd).port() != 0 {
            // the program has bound it to a port, and cannot have it bound anew: its route counts
            let own = route(&plain, &socket).map_or([0; 16], |own| own.octets());
            let ours = (0..self.count).any(|place| may(place) && self.own[place].octets() == own);
            return if ours { Verdict::Continue } else { Verdict::Done(libc::ENETUNREACH) };
        }
        let known = self.known.iter().find(|k| k.until > now && k.to == to.octets());
        if let Some(place) = known.map(|k| k.from).filter(|&from| from < self.count && may(from))
            && bind(fd, &self.own[place])
        {
            return Verdict::Continue;
        }
        let mut polls = [libc::pollfd { fd: -2, events: libc::POLLOUT, revents: 0 }; MOST + 1];
        let several = (0..self.count).filter(|&place| may(place)).count() > 1;
        if several {
            for place in (0..self.count).filter(|&place| may(place)) {
                polls[place].fd = ask(&self.own[place], &plain, &socket);
            }
        }
        while polls.iter().any(|p| p.fd >= 0) {
            let left = TOGETHER_MS - (now_ms() - now) as i32;
            // SAFETY: the array is valid for its length; negative descriptors are left out
            if left <= 0 || unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as _, left) } == 0 {
                break;
            }
            for place in 0..MOST {
                if polls[place].fd < 0 || polls[place].revents == 0 {
                    continue;
                }
                if matches!(connect(polls[place].fd, &plain), 0 | libc::EISCONN | libc::ECONNREFUSED)
                    && bind(fd, &self.own[place])
                {
                    close_all(&mut polls);
                    return self.found(to, place, Verdict::Continue);
                }
                // SAFETY: ours
                unsafe { libc::close(polls[place].fd) };
                polls[place].fd = -2;
            }
        }
        close_all(&mut polls);
        // an address may have gone with its line
        match (0..self.count).find(|&place| may(place) && bind(fd, &self.own[place])) {
            Some(place) if several => self.found(to, place, Verdict::Continue),
            Some(_) => Verdict::Continue,
            None => Verdict::Done(libc::ENETUNREACH),
        }
    }

    fn race(
        &mut self,
        fd: RawFd,
        to: &Address,
        at_once: bool,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Verdict {
        let begun = now_ms();
        let mut polls = [libc::pollfd { fd: -1, events: libc::POLLOUT, revents: 0 }; MOST + 1];
        let mut failed = 0;
        // place MOST is the program's own
        match connect(fd, to) {
            0 => return self.found(to, MOST, Verdict::Done(0)),
            libc::EINPROGRESS => polls[MOST].fd = fd,
            error @ (libc::ENETUNREACH | libc::EHOSTUNREACH) => failed = error,
            libc::EALREADY | libc::EISCONN => return Verdict::Continue,
            error => return Verdict::Done(error),
        }
        let mut alone = polls[MOST].fd >= 0;
        let (source, plain) = (name(fd), to.plain());
        loop {
            let passed = (now_ms() - begun) as i32;
            alone &= passed < ALONE_MS && polls[MOST].fd >= 0;
            if !alone && polls[..MOST].iter().all(|p| p.fd == -1) && passed < TOGETHER_MS {
                for (poll, own) in polls.iter_mut().zip(&self.own[..self.count]) {
                    if own.family() == plain.family() && own.octets() != source.octets() {
                        poll.fd = ask(own, &plain, &socket);
                    }
                }
            }
            let left = if alone { ALONE_MS } else { TOGETHER_MS } - passed;
            let waiting = polls.iter().any(|p| p.fd >= 0);
            if left > 0 && waiting {
                // SAFETY: the array is valid for its length; negative descriptors are left out
                unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as _, left) };
            } else if !alone {
                close_all(&mut polls);
                let verdict = match failed {
                    0 if at_once => Verdict::Done(libc::EINPROGRESS),
                    0 => Verdict::Continue, // the kernel goes on waiting for the same connection
                    error => Verdict::Done(error),
                };
                return self.found(to, MOST, verdict); // or all others would wait for each that tries again
            }
            for place in (0..=MOST).rev() {
                if polls[place].fd < 0 || polls[place].revents == 0 {
                    continue;
                }
                polls[place].revents = 0;
                let error = connect(polls[place].fd, if place == MOST { to } else { &plain }); // says how it went
                if place == MOST {
                    match error {
                        libc::ETIMEDOUT | libc::ENETUNREACH | libc::EHOSTUNREACH => {
                            (failed, polls[MOST].fd) = (error, -1);
                        }
                        error => {
                            polls[MOST].fd = -1;
                            close_all(&mut polls);
                            let error = if error == libc::EISCONN { 0 } else { error };
                            return self.found(to, MOST, Verdict::Done(error));
                        }
                    }
                } else if matches!(error, 0 | libc::EISCONN | libc::ECONNREFUSED) {
                    // the host answers from here: the connection begins anew, from this address
                    polls[MOST].fd = -1;
                    close_all(&mut polls);
                    let mut none = Address::empty();
                    none.storage.ss_family = libc::AF_UNSPEC as _;
                    connect(fd, &none);
                    bind(fd, &self.own[place]);
                    let route = self.own[..self.count].iter().position(|own| own.octets() == source.octets());
                    self.silent |= route.map_or(0, |place| 1 << place);
                    return self.found(to, place, Verdict::Continue);
                } else {
                    // SAFETY: ours
                    unsafe { libc::close(polls[place].fd) };
                    polls[place].fd = -2; // not to be asked again
                }
            }
        }
    }

    fn found(&mut self, to: &Address, from: usize, verdict: Verdict) -> Verdict {
        let found = Known { to: to.octets(), from, until: now_ms() + HOLDS_MS };
        if let Some(known) = self.known.iter_mut().find(|k| k.to == found.to) {
            *known = found;
        } else {
            self.known[self.next] = found;
            self.next = (self.next + 1) % KNOWN;
        }
        verdict
    }
}

/// The socket of a connect(2) of task `pid`, here too, and where to; none where that is nowhere else, or cannot be had.
fn wanted(pid: u32, arguments: &[u64; 6]) -> Option<(RawFd, Address)> {
    let mut to = Address::empty();
    let wanted = (arguments[2] as usize).min(size_of::<libc::sockaddr_storage>());
    let here = libc::iovec { iov_base: (&raw mut to.storage).cast(), iov_len: wanted };
    let there = libc::iovec { iov_base: arguments[1] as *mut libc::c_void, iov_len: wanted };
    // SAFETY: `here` is ours and as long as it says; the kernel checks the other one
    let read = unsafe { libc::process_vm_readv(pid as _, &here, 1, &there, 1, 0) };
    let whole = match to.family() {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    if read < whole as isize || to.is_loopback() || to.is_unspecified() {
        return None;
    }
    to.length = whole as _;
    Some(take(pid, arguments[0] as RawFd)).filter(|&fd| fd >= 0).map(|fd| (fd, to))
}

/// Both ends of the connection that a connect(2) of task `pid` begins, as IPv6 addresses with ports: of a socket of Multipath
/// TCP that has no address yet, which gets that of the route and a port. `valid` says whether it still waits, `socket` makes a
/// socket of a family and a type where it is.
///
/// # Safety
/// As [`Lines::connect`].
pub(crate) unsafe fn settle(
    pid: u32,
    arguments: &[u64; 6],
    valid: impl Fn() -> bool,
    socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
) -> Option<[([u8; 16], u16); 2]> {
    let (fd, to) = wanted(pid, arguments)?;
    let found = || {
        if !valid() || !free_stream(fd) || option(fd, libc::SO_PROTOCOL) != libc::IPPROTO_MPTCP || name(fd).port() != 0
        {
            return None;
        }
        let mut own = route(&to, &socket)?;
        own.set_port(0);
        // SAFETY: a valid address
        let bound = unsafe { libc::bind(fd, own.as_ptr(), own.length) } == 0;
        let ends = [name(fd), to].map(|end| (end.octets(), end.port()));
        (bound && ends.iter().all(|end| end.1 != 0)).then_some(ends)
    };
    let found = found();
    // SAFETY: ours
    unsafe { libc::close(fd) };
    found
}

/// Is it a stream of TCP or Multipath TCP with no address of its own yet?
fn free_stream(fd: RawFd) -> bool {
    let protocol = option(fd, libc::SO_PROTOCOL);
    let own = name(fd);
    option(fd, libc::SO_TYPE) == libc::SOCK_STREAM
        && matches!(protocol, libc::IPPROTO_TCP | libc::IPPROTO_MPTCP)
        && matches!(own.family(), libc::AF_INET | libc::AF_INET6)
        && own.is_unspecified()
}

fn option(fd: RawFd, name: libc::c_int) -> libc::c_int {
    let (mut value, mut size) = (-1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: a place of that size
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut size) };
    value
}

fn name(fd: RawFd) -> Address {
    let mut own = Address::empty();
    // SAFETY: a place of that size
    unsafe { libc::getsockname(fd, (&raw mut own.storage).cast(), &mut own.length) };
    own
}

/// The address that the route to there gives.
fn route(to: &Address, socket: &impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Option<Address> {
    let fd = socket(to.family(), libc::SOCK_DGRAM);
    let own = (fd >= 0 && connect(fd, to) == 0).then(|| name(fd));
    // SAFETY: ours, or a number that is none
    unsafe { libc::close(fd) };
    own
}

/// Says whether it is bound.
fn bind(fd: RawFd, own: &Address) -> bool {
    let own = own.of_family(name(fd).family());
    let one: libc::c_int = 1;
    // SAFETY: valid addresses
    unsafe {
        let size = size_of_val(&one) as libc::socklen_t;
        libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, (&raw const one).cast(), size);
        libc::bind(fd, own.as_ptr(), own.length) == 0
    }
}

fn connect(fd: RawFd, to: &Address) -> i32 {
    // SAFETY: a valid address
    if unsafe { libc::connect(fd, to.as_ptr(), to.length) } == 0 { 0 } else { errno() }
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

/// Those that asked; the program's own is not among them.
fn close_all(polls: &mut [libc::pollfd; MOST + 1]) {
    for poll in &mut polls[..MOST] {
        if poll.fd >= 0 {
            // SAFETY: ours
            unsafe { libc::close(poll.fd) };
        }
        poll.fd = -2;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{SocketAddr, TcpStream};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let of = |text: &str| Address::of(text.parse().unwrap());
        assert!(of("127.0.0.1").is_loopback() && of("::1").is_loopback() && !of("10.0.0.127").is_loopback());
        assert!(of("0.0.0.0").is_unspecified() && of("::").is_unspecified());
        assert!(!of("10.0.0.0").is_unspecified() && !of("fd00::").is_unspecified());
        assert_eq!(of("10.1.2.3").octets(), of("::ffff:10.1.2.3").octets());
        for text in ["10.1.2.3", "fd00::1"] {
            let mut address = of(text);
            address.set_port(5275);
            assert_eq!((address.port(), address.octets()), (5275, of(text).octets()));
        }
        assert!(!Lines::new(&["10.0.0.1".parse().unwrap()]).several());
    }

    #[test]
    fn addresses_are_written_as_a_socket_takes_them() {
        let of = |text: &str| Address::of(text.parse().unwrap()).at(5275);
        let same = |a: Address, b: Address| (a.family(), a.octets(), a.port()) == (b.family(), b.octets(), b.port());
        for (plain, mapped) in [("10.1.2.3", "::ffff:10.1.2.3"), ("fd00::1", "fd00::1")] {
            assert!(same(of(mapped).plain(), of(plain)) && same(of(plain).plain(), of(plain)));
            assert!(same(of(plain).of_family(libc::AF_INET6), of(mapped)));
            assert!(same(of(plain).of_family(of(plain).family()), of(plain)));
        }
    }

    /// A socket of TCP over IPv4; closed with what is returned.
    fn stream() -> OwnedFd {
        // SAFETY: plain numbers; a descriptor that is nobody else's
        unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0)) }
    }

    fn make(domain: libc::c_int, kind: libc::c_int) -> RawFd {
        // SAFETY: plain numbers
        unsafe { libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) }
    }

    fn lines(own: &[&str], allowed: u64) -> Lines {
        let own: Vec<IpAddr> = own.iter().map(|a| a.parse().unwrap()).collect();
        Lines { allowed, ..Lines::new(&own) }
    }

    #[test]
    fn where_the_allowed_addresses_are_gone_no_barred_one_carries_the_connection() {
        let to = Address::of("127.0.0.9".parse().unwrap()).at(5275);
        // the first two are none of this host's; with one that is allowed nobody is asked, with two both are
        for (own, allowed) in
            [(["203.0.113.1", "127.0.0.3"].as_slice(), 0b01), (&["203.0.113.1", "203.0.113.2", "127.0.0.3"], 0b011)]
        {
            let mut lines = lines(own, allowed);
            lines.known[0] = Known { to: to.octets(), from: 0, until: u64::MAX };
            for _ in 0..2 {
                let fd = stream();
                assert_eq!(lines.begin(fd.as_raw_fd(), &to, make), Verdict::Done(libc::ENETUNREACH), "{own:?}");
                assert!(name(fd.as_raw_fd()).is_unspecified());
                lines.known[0].until = 0;
            }
        }
        // what is left of them is taken
        let (mut lines, fd) = (lines(&["203.0.113.1", "127.0.0.2", "127.0.0.3"], 0b011), stream());
        assert_eq!(lines.begin(fd.as_raw_fd(), &to, make), Verdict::Continue);
        assert_eq!(name(fd.as_raw_fd()).octets(), lines.own[1].octets());
    }

    #[test]
    fn a_socket_with_a_port_of_its_own_goes_by_its_route_where_that_is_allowed() {
        let to = Address::of("127.0.0.9".parse().unwrap()).at(5275);
        for (allowed, verdict) in [(0b01, Verdict::Continue), (0b10, Verdict::Done(libc::ENETUNREACH))] {
            let fd = stream();
            let any = Address::of("0.0.0.0".parse().unwrap());
            // SAFETY: a valid address
            assert_eq!(unsafe { libc::bind(fd.as_raw_fd(), any.as_ptr(), any.length) }, 0);
            assert_eq!(lines(&["127.0.0.1", "127.0.0.3"], allowed).begin(fd.as_raw_fd(), &to, make), verdict);
        }
    }

    #[test]
    fn a_silent_host_is_asked_once_for_a_while() {
        // it has room for one connection only
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&"127.0.0.9:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        listener.listen(0).unwrap();
        let at = listener.local_addr().unwrap().as_socket().unwrap();
        let _fills = TcpStream::connect(at).unwrap();
        let to = Address::of(at.ip()).at(at.port());
        for allowed in [u64::MAX, 0b011] {
            let mut lines = lines(&["127.0.0.2", "127.0.0.3", "127.0.0.4"], allowed);
            let asked = Cell::new(0);
            let counted = |domain, kind| {
                asked.set(asked.get() + 1);
                make(domain, kind)
            };
            assert_eq!(lines.begin(stream().as_raw_fd(), &to, counted), Verdict::Continue);
            let before = asked.get();
            assert!(before > 1);
            lines.known.iter_mut().filter(|k| k.to == to.octets()).for_each(|k| k.until = u64::MAX);
            assert_eq!(lines.begin(stream().as_raw_fd(), &to, counted), Verdict::Continue);
            assert_eq!(asked.get(), before, "{allowed}");
        }
    }

    #[test]
    fn the_last_that_was_found_of_a_host_holds() {
        let to = Address::of("198.51.100.1".parse().unwrap());
        let mut lines = lines(&["127.0.0.2", "127.0.0.3"], 0b11);
        for from in [MOST, 1, 0] {
            lines.found(&to, from, Verdict::Continue);
            let known: Vec<_> = lines.known.iter().filter(|k| k.to == to.octets()).map(|k| k.from).collect();
            assert_eq!(known, [from]);
        }
    }

    /// As the sockets of Java are: of IPv6, also to a host of IPv4.
    #[test]
    fn an_ipv6_socket_to_an_ipv4_host_begins_from_the_allowed_address() {
        let listener = std::net::TcpListener::bind("127.0.0.9:0").unwrap();
        let to = Address::of("::ffff:127.0.0.9".parse().unwrap()).at(listener.local_addr().unwrap().port());
        for (own, allowed, from) in [
            (["127.0.0.2", "127.0.0.3"].as_slice(), 0b10, ["127.0.0.3"].as_slice()),
            (&["::1", "127.0.0.3"], 0b10, &["127.0.0.3"]),
            // both are asked
            (&["127.0.0.2", "127.0.0.3", "127.0.0.4"], 0b110, &["127.0.0.3", "127.0.0.4"]),
        ] {
            let from: Vec<_> = from.iter().map(|a| Address::of(a.parse().unwrap()).octets()).collect();
            let mut lines = lines(own, allowed);
            // first as nobody knows of the far end, then as it is known
            for _ in 0..2 {
                // SAFETY: plain numbers
                let fd = unsafe { libc::socket(libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
                if fd < 0 {
                    return println!("SKIPPED: an IPv6 socket to an IPv4 host: no IPv6 here");
                }
                assert_eq!(lines.begin(fd, &to, make), Verdict::Continue);
                assert_eq!(connect(fd, &to), 0);
                assert!(from.contains(&name(fd).octets()), "{own:?} {:?}", name(fd).octets());
                // SAFETY: ours
                unsafe { libc::close(fd) };
            }
        }
    }
}
