//! The addresses of this host, by interface (getifaddrs).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Is the interface up and running?
    pub up: bool,
    /// Is it the loopback interface?
    pub loopback: bool,
}

impl InterfaceAddress {
    /// Can packets leave with this address for another host (or, with `loopback`, for this one)?
    pub(crate) fn usable(&self, loopback: bool) -> bool {
        self.up && !self.link_local() && (loopback || !(self.loopback || self.address.is_loopback()))
    }

    /// Could packets leave with this address for `remote`, were the interface up and the route there?
    pub(crate) fn serves(&self, remote: IpAddr) -> bool {
        let loopback = self.loopback || self.address.is_loopback();
        !self.link_local()
            && self.address.is_ipv4() == remote.is_ipv4()
            && self.address.is_loopback() == remote.is_loopback()
            && (remote.is_loopback() || !loopback)
    }

    fn link_local(&self) -> bool {
        match self.address {
            IpAddr::V4(a) => a.is_link_local(),
            IpAddr::V6(a) => a.is_unicast_link_local(),
        }
    }
}

/// Every IP address of the calling thread's network stack.
pub(crate) fn list() -> io::Result<Vec<InterfaceAddress>> {
    let mut head: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `head` is a valid place for the pointer
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = head;
    while !next.is_null() {
        // SAFETY: the list is valid until freeifaddrs
        let entry = unsafe { &*next };
        next = entry.ifa_next;
        // SAFETY: null or a valid socket address of its family
        let Some(address) = (unsafe { ip_of(entry.ifa_addr) }) else { continue };
        // SAFETY: a string with a final zero
        let text = unsafe { CStr::from_ptr(entry.ifa_name) };
        let name = text.to_string_lossy().into_owned();
        // SAFETY: as above
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        let flag = |f: i32| entry.ifa_flags & f as u32 != 0;
        let up = flag(libc::IFF_UP) && flag(libc::IFF_RUNNING);
        found.push(InterfaceAddress { name, index, address, up, loopback: flag(libc::IFF_LOOPBACK) });
    }
    // SAFETY: comes from getifaddrs and is freed once
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

/// # Safety
/// Null, or a socket address that is as long as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the contract
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = ptr::read_unaligned(address.cast::<libc::sockaddr_in6>());
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_is_there() {
        assert!(super::list().unwrap().iter().any(|i| i.loopback && i.address.is_loopback()));
    }
}
