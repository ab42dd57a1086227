//! The addresses that a program's connections may begin from: which one a connect(2) takes, by what is known of the far end or
//! by a `race`. Only system calls, no allocation, as in `forked`.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::RawFd;

use crate::address::{Address, bind, name, option, route};
use crate::near::{Place, place};
use crate::race::{Begun, Race, now_ms};
use crate::task::take;

/// How long what was found holds for further connections to the same address [ms].
const HOLDS_MS: u64 = 5000;
/// MPTCP in Linux has no more subflows.
pub(crate) const MOST: usize = 9;
const KNOWN: usize = 16;

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
    /// Connections begin from the run's addresses only, whatever the route says.
    steered: bool,
    /// A bit for each of the run's addresses from which a far end did not answer while it did from another.
    pub silent: u64,
    /// A bit for each of the run's addresses that connections may begin from now.
    pub allowed: u64,
}

impl Lines {
    pub fn new(addresses: &[IpAddr], steered: bool) -> Lines {
        let nothing = Known { to: [0; 16], from: MOST, until: 0 };
        let mut lines = Lines {
            own: [Address::empty(); MOST],
            count: addresses.len().min(MOST),
            known: [nothing; KNOWN],
            next: 0,
            steered,
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

    /// Of a connect(2) of task `pid`; `valid` says whether it still waits, `busy` whether another one waits for what it finds of
    /// that address, `socket` makes a socket of a family and a type where it is.
    ///
    /// # Safety
    /// To be called with the arguments of such a call, in a process that may look into the caller.
    pub unsafe fn connect(
        &mut self,
        pid: u32,
        arguments: &[u64; 6],
        valid: impl Fn() -> bool,
        busy: impl Fn(&[u8; 16]) -> bool,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> (Begun, [u8; 16]) {
        let Some((fd, to)) = wanted(pid, arguments) else { return (Begun::Now(Verdict::Continue), [0; 16]) };
        let begun = if valid() && free_stream(fd) && !(self.bounded() && self.elsewhere(&to, &socket)) {
            self.begin(fd, &to, busy(&to.octets()), socket)
        } else {
            Begun::Now(Verdict::Continue)
        };
        if !matches!(begun, Begun::Waits(_)) {
            // SAFETY: ours
            unsafe { libc::close(fd) };
        }
        (begun, to.octets())
    }

    fn begin(
        &mut self,
        fd: RawFd,
        to: &Address,
        busy: bool,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Begun {
        if self.bounded() {
            return self.begin_within(fd, to, busy, socket);
        }
        if let Some(from) = self.known(to) {
            if let Some(own) = self.own.get(from) {
                bind(fd, own); // where it fails the route chooses, as without us
            }
            return Begun::Now(Verdict::Continue);
        }
        if self.others(&to.plain(), &[0; 16]).next().is_none() {
            return Begun::Now(Verdict::Continue); // there is nobody to ask
        }
        if busy { Begun::Behind } else { Race::by_route(fd, to, self) }
    }

    /// Is the line of the route, whichever it is, perhaps not to be used? It may be none of the run's.
    fn bounded(&self) -> bool {
        self.steered && self.count > 0 || (0..self.count).any(|place| self.allowed >> place & 1 == 0)
    }

    /// This host, or a local network that none of the run's addresses is in.
    fn elsewhere(&self, to: &Address, socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) -> bool {
        match place(to, &socket) {
            Place::Host => true,
            Place::Network => {
                let own = route(&to.plain(), &socket).map_or([0; 16], |own| own.octets());
                self.own[..self.count].iter().all(|address| address.octets() != own)
            }
            Place::Far => false,
        }
    }

    /// From the first of the allowed addresses from which the far end answers; the route has no say. Where none of them
    /// can be, the host is not reachable.
    fn begin_within(
        &mut self,
        fd: RawFd,
        to: &Address,
        busy: bool,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Begun {
        let plain = to.plain();
        if name(fd).port() != 0 {
            // the program has bound it to a port, and cannot have it bound anew: its route counts
            let own = route(&plain, &socket).map_or([0; 16], |own| own.octets());
            let ours = self.others(&plain, &[0; 16]).any(|(_, address)| address.octets() == own);
            return Begun::Now(if ours { Verdict::Continue } else { Verdict::Done(libc::ENETUNREACH) });
        }
        if self.known(to).is_some_and(|place| self.may(place, &plain) && self.bind(fd, place)) {
            return Begun::Now(Verdict::Continue);
        }
        if self.others(&plain, &[0; 16]).count() > 1 {
            return if busy { Begun::Behind } else { Begun::Waits(Race::within(fd, to, self, socket)) };
        }
        let bound = self.first(fd, &plain).is_some();
        Begun::Now(if bound { Verdict::Continue } else { Verdict::Done(libc::ENETUNREACH) })
    }

    /// The address at this place may go there.
    pub fn may(&self, place: usize, plain: &Address) -> bool {
        place < self.count && self.allowed >> place & 1 == 1 && self.own[place].family() == plain.family()
    }

    /// Those that may go there, except one, with their places.
    pub fn others(&self, plain: &Address, except: &[u8; 16]) -> impl Iterator<Item = (usize, &Address)> {
        let may = |&(place, own): &(usize, &Address)| self.may(place, plain) && own.octets() != *except;
        self.own.iter().enumerate().filter(may)
    }

    /// Binds it to the first of them that can be had.
    pub fn first(&self, fd: RawFd, plain: &Address) -> Option<usize> {
        (0..self.count).find(|&place| self.may(place, plain) && self.bind(fd, place))
    }

    pub fn bind(&self, fd: RawFd, place: usize) -> bool {
        bind(fd, &self.own[place])
    }

    /// A far end answered from another address.
    pub fn was_silent(&mut self, source: &[u8; 16]) {
        let place = self.own[..self.count].iter().position(|own| own.octets() == *source);
        self.silent |= place.map_or(0, |place| 1 << place);
    }

    fn known(&self, to: &Address) -> Option<usize> {
        let (now, to) = (now_ms(), to.octets());
        self.known.iter().find(|k| k.until > now && k.to == to).map(|k| k.from)
    }

    pub fn found(&mut self, to: &Address, from: usize, verdict: Verdict) -> Verdict {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{SocketAddr, TcpStream};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::thread::sleep;
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::address::connect;

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
        Lines { allowed, ..Lines::new(&own, false) }
    }

    /// The end of what is begun.
    fn decided(
        lines: &mut Lines,
        fd: RawFd,
        to: &Address,
        socket: impl Fn(libc::c_int, libc::c_int) -> RawFd,
    ) -> Verdict {
        let mut race = match lines.begin(fd, to, false, &socket) {
            Begun::Now(verdict) => return verdict,
            Begun::Waits(race) => race,
            Begun::Behind => unreachable!("nobody is ahead"),
        };
        loop {
            if let Some(verdict) = race.go_on(lines, &socket) {
                race.release();
                return verdict;
            }
            sleep(Duration::from_millis(5));
        }
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
                assert_eq!(decided(&mut lines, fd.as_raw_fd(), &to, make), Verdict::Done(libc::ENETUNREACH), "{own:?}");
                assert!(name(fd.as_raw_fd()).is_unspecified());
                lines.known[0].until = 0;
            }
        }
        // what is left of them is taken
        let (mut lines, fd) = (lines(&["203.0.113.1", "127.0.0.2", "127.0.0.3"], 0b011), stream());
        assert_eq!(decided(&mut lines, fd.as_raw_fd(), &to, make), Verdict::Continue);
        assert_eq!(name(fd.as_raw_fd()).octets(), lines.own[1].octets());
    }

    /// It is by no route of the run's that the others would get there.
    #[test]
    fn what_no_line_of_a_steered_run_reaches_is_not_reached() {
        let to = Address::of("2001:db8::9".parse().unwrap()).at(5275);
        let steered = Lines::new(&["127.0.0.2".parse().unwrap()], true);
        assert_eq!(decided(&mut { steered }, stream().as_raw_fd(), &to, make), Verdict::Done(libc::ENETUNREACH));
        let (fd, to) = (stream(), Address::of("127.0.0.9".parse().unwrap()).at(5275));
        assert_eq!(decided(&mut { steered }, fd.as_raw_fd(), &to, make), Verdict::Continue);
        assert_eq!(name(fd.as_raw_fd()).octets(), steered.own[0].octets());
    }

    #[test]
    fn a_socket_with_a_port_of_its_own_goes_by_its_route_where_that_is_allowed() {
        let to = Address::of("127.0.0.9".parse().unwrap()).at(5275);
        for (allowed, verdict) in [(0b01, Verdict::Continue), (0b10, Verdict::Done(libc::ENETUNREACH))] {
            let fd = stream();
            let any = Address::of("0.0.0.0".parse().unwrap());
            // SAFETY: a valid address
            assert_eq!(unsafe { libc::bind(fd.as_raw_fd(), any.as_ptr(), any.length) }, 0);
            assert_eq!(decided(&mut lines(&["127.0.0.1", "127.0.0.3"], allowed), fd.as_raw_fd(), &to, make), verdict);
        }
    }

    /// A host that does not answer: it has room for one connection only.
    fn silent() -> ((Socket, TcpStream), Address) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&"127.0.0.9:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        listener.listen(0).unwrap();
        let at = listener.local_addr().unwrap().as_socket().unwrap();
        let fills = TcpStream::connect(at).unwrap();
        ((listener, fills), Address::of(at.ip()).at(at.port()))
    }

    #[test]
    fn a_silent_host_is_asked_once_for_a_while() {
        let (_silent, to) = silent();
        for allowed in [u64::MAX, 0b011] {
            let mut lines = lines(&["127.0.0.2", "127.0.0.3", "127.0.0.4"], allowed);
            let asked = Cell::new(0);
            let counted = |domain, kind| {
                asked.set(asked.get() + 1);
                make(domain, kind)
            };
            assert_eq!(decided(&mut lines, stream().as_raw_fd(), &to, counted), Verdict::Continue);
            let before = asked.get();
            assert!(before > 1);
            lines.known.iter_mut().filter(|k| k.to == to.octets()).for_each(|k| k.until = u64::MAX);
            assert_eq!(decided(&mut lines, stream().as_raw_fd(), &to, counted), Verdict::Continue);
            assert_eq!(asked.get(), before, "{allowed}");
        }
    }

    #[test]
    fn where_nobody_else_can_be_asked_nothing_waits() {
        let (_silent, to) = silent();
        for (own, blocks, verdict) in [
            (["127.0.0.1"].as_slice(), true, Verdict::Continue), // that of the route
            (&["127.0.0.1", "::1"], true, Verdict::Continue),
            (&["127.0.0.1", "::1"], false, Verdict::Done(libc::EINPROGRESS)),
            (&["::1", "fd00::1"], false, Verdict::Continue), // the kernel has it all
        ] {
            let fd = stream();
            // SAFETY: plain numbers
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, if blocks { 0 } else { libc::O_NONBLOCK }) };
            match lines(own, u64::MAX).begin(fd.as_raw_fd(), &to, false, make) {
                Begun::Now(found) => assert_eq!(found, verdict, "{own:?}"),
                _ => panic!("{own:?} waits"),
            }
            // SAFETY: plain numbers
            let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) };
            assert_eq!(flags & libc::O_NONBLOCK == 0, blocks);
        }
    }

    #[test]
    fn whoever_comes_while_a_far_end_is_asked_waits_for_what_is_found() {
        let (_silent, to) = silent();
        for allowed in [u64::MAX, 0b011] {
            let mut lines = lines(&["127.0.0.2", "127.0.0.3", "127.0.0.4"], allowed);
            assert!(matches!(lines.begin(stream().as_raw_fd(), &to, true, make), Begun::Behind));
            lines.found(&to, 1, Verdict::Continue);
            assert!(matches!(lines.begin(stream().as_raw_fd(), &to, true, make), Begun::Now(Verdict::Continue)));
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
                assert_eq!(decided(&mut lines, fd, &to, make), Verdict::Continue);
                assert_eq!(connect(fd, &to), 0);
                assert!(from.contains(&name(fd).octets()), "{own:?} {:?}", name(fd).octets());
                // SAFETY: ours
                unsafe { libc::close(fd) };
            }
        }
    }
}
