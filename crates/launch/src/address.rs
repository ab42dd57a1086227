//! Addresses as the kernel takes them, and what a socket does with them. Only system calls, no allocation, as in `forked`.

use std::mem::zeroed;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::RawFd;

/// An address with its length, as the kernel takes it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub storage: libc::sockaddr_storage,
    pub length: libc::socklen_t,
}

impl Address {
    pub fn empty() -> Address {
        // SAFETY: zeros are valid
        Address { storage: unsafe { zeroed() }, length: size_of::<libc::sockaddr_storage>() as _ }
    }

    /// What ends a socket's connection where it is connected to.
    pub fn none() -> Address {
        let mut none = Address::empty();
        none.storage.ss_family = libc::AF_UNSPEC as _;
        none
    }

    /// With port 0.
    pub fn of(ip: IpAddr) -> Address {
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

    pub fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    pub fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// The IP address, IPv4 as an IPv6 one that stands for it; of other families zeros.
    pub fn octets(&self) -> [u8; 16] {
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

    pub fn port(&self) -> u16 {
        // SAFETY: the family says what is in the storage
        u16::from_be(unsafe {
            match self.family() {
                libc::AF_INET => (*(&raw const self.storage).cast::<libc::sockaddr_in>()).sin_port,
                libc::AF_INET6 => (*(&raw const self.storage).cast::<libc::sockaddr_in6>()).sin6_port,
                _ => 0,
            }
        })
    }

    pub fn set_port(&mut self, port: u16) {
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
    pub fn plain(&self) -> Address {
        match Ipv6Addr::from(self.octets()).to_canonical() {
            v4 @ IpAddr::V4(_) => Address::of(v4).at(self.port()),
            IpAddr::V6(_) => *self, // with its scope
        }
    }

    /// As a socket of this family takes it.
    pub fn of_family(&self, family: libc::c_int) -> Address {
        match (self.family(), family) {
            (libc::AF_INET, libc::AF_INET6) => Address::of(IpAddr::V6(self.octets().into())).at(self.port()),
            _ => *self,
        }
    }

    pub fn at(mut self, port: u16) -> Address {
        self.set_port(port);
        self
    }

    pub fn is_unspecified(&self) -> bool {
        let octets = self.octets();
        octets == [0; 16] || octets == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]
    }

    pub fn is_loopback(&self) -> bool {
        let octets = self.octets();
        octets[..13] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127]
            || octets == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    }
}

fn errno() -> i32 {
    // SAFETY: errno of this thread
    unsafe { *libc::__errno_location() }
}

pub(crate) fn option(fd: RawFd, name: libc::c_int) -> libc::c_int {
    let (mut value, mut size) = (-1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: a place of that size
    unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut size) };
    value
}

pub(crate) fn name(fd: RawFd) -> Address {
    let mut own = Address::empty();
    // SAFETY: a place of that size
    unsafe { libc::getsockname(fd, (&raw mut own.storage).cast(), &mut own.length) };
    own
}

/// The address that the route to there gives.
pub(crate) fn route(to: &Address, socket: &impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Option<Address> {
    let fd = socket(to.family(), libc::SOCK_DGRAM);
    let own = (fd >= 0 && connect(fd, to) == 0).then(|| name(fd));
    // SAFETY: ours, or a number that is none
    unsafe { libc::close(fd) };
    own
}

/// Says whether it is bound.
pub(crate) fn bind(fd: RawFd, own: &Address) -> bool {
    let own = own.of_family(name(fd).family());
    let one: libc::c_int = 1;
    // SAFETY: valid addresses
    unsafe {
        let size = size_of_val(&one) as libc::socklen_t;
        libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, (&raw const one).cast(), size);
        libc::bind(fd, own.as_ptr(), own.length) == 0
    }
}

pub(crate) fn connect(fd: RawFd, to: &Address) -> i32 {
    // SAFETY: a valid address
    if unsafe { libc::connect(fd, to.as_ptr(), to.length) } == 0 { 0 } else { errno() }
}

#[cfg(test)]
mod tests {
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
}
