//! Which far ends are no line's business: this host, and its local networks. Only system calls, no allocation, as in `forked`.

use std::mem::zeroed;
use std::os::fd::RawFd;

use crate::address::Address;

/// The route's own entry, not what it says of one destination.
const RTM_F_FIB_MATCH: u32 = 0x2000;
/// From the kernel itself, which makes those of addresses and of their networks.
const RTPROT_KERNEL: u8 = 2;
/// Length of a header, and of a route's, before its attributes.
const HEADERS: usize = 16 + 12;
const REQUEST: usize = HEADERS + 4 + 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// One with broadcasts of which the host is one, or link-local. A tunnel's packets leave by a line.
    Network,
    Far,
}

/// Where it is. `socket` makes a socket where the program is.
pub(crate) fn place(to: &Address, socket: impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Place {
    let octets = to.octets();
    if octets[..2] == [0xfe, 0x80] || octets[..14] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 169, 254] {
        return Place::Network;
    }
    let netlink = socket(libc::AF_NETLINK, libc::SOCK_RAW); // of protocol 0, NETLINK_ROUTE
    let place = if netlink < 0 { Place::Far } else { by_route(netlink, &to.plain(), &socket) };
    // SAFETY: ours, or a number that is none
    unsafe { libc::close(netlink) };
    place
}

fn by_route(netlink: RawFd, to: &Address, socket: &impl Fn(libc::c_int, libc::c_int) -> RawFd) -> Place {
    let octets = to.octets();
    let address = if to.family() == libc::AF_INET { &octets[12..] } else { &octets[..] };
    let mut request = [0u8; REQUEST];
    let length = HEADERS + 4 + address.len();
    request[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETROUTE.to_ne_bytes());
    request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request[16] = to.family() as u8;
    request[17] = 8 * address.len() as u8;
    request[24..28].copy_from_slice(&RTM_F_FIB_MATCH.to_ne_bytes());
    request[28..30].copy_from_slice(&(4 + address.len() as u16).to_ne_bytes());
    request[30..32].copy_from_slice(&libc::RTA_DST.to_ne_bytes());
    request[32..length].copy_from_slice(address);
    let mut answer = [0u8; 1024];
    // SAFETY: buffers of ours with their lengths; the answer is there when the request has been taken
    let read = unsafe {
        libc::send(netlink, request.as_ptr().cast(), length, 0);
        libc::recv(netlink, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT).max(0) as usize
    };
    let answer = &answer[..read];
    if read < HEADERS || answer[4..6] != libc::RTM_NEWROUTE.to_ne_bytes() || answer[21] != RTPROT_KERNEL {
        return Place::Far;
    }
    match answer[23] {
        libc::RTN_LOCAL => Place::Host,
        libc::RTN_UNICAST if device(&answer[HEADERS..]).is_some_and(|index| has_broadcasts(index, socket)) => {
            Place::Network
        }
        _ => Place::Far,
    }
}

/// The device that a route's attributes name.
fn device(mut attributes: &[u8]) -> Option<libc::c_int> {
    loop {
        let (length, kind) = (attributes.get(..2)?, attributes.get(2..4)?);
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        if kind == libc::RTA_OIF.to_ne_bytes() {
            let index = attributes.get(4..8)?;
            return Some(libc::c_int::from_ne_bytes([index[0], index[1], index[2], index[3]]));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn has_broadcasts(index: libc::c_int, socket: &impl Fn(libc::c_int, libc::c_int) -> RawFd) -> bool {
    let any = socket(libc::AF_INET, libc::SOCK_DGRAM);
    // SAFETY: zeros are a valid request, and the calls read and write what is set
    unsafe {
        let mut request: libc::ifreq = zeroed();
        request.ifr_ifru.ifru_ifindex = index;
        let found = libc::ioctl(any, libc::SIOCGIFNAME as _, &mut request) == 0
            && libc::ioctl(any, libc::SIOCGIFFLAGS as _, &mut request) == 0
            && libc::c_int::from(request.ifr_ifru.ifru_flags) & libc::IFF_BROADCAST != 0;
        libc::close(any);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(domain: libc::c_int, kind: libc::c_int) -> RawFd {
        // SAFETY: plain numbers
        unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0) }
    }

    #[test]
    fn this_host_and_links_are_near_and_the_world_is_not() {
        for (text, is) in [
            ("127.0.0.9", Place::Host),
            ("::ffff:127.0.0.9", Place::Host),
            ("fe80::1", Place::Network),
            ("169.254.169.254", Place::Network),
            ("198.51.100.1", Place::Far),
            ("2001:db8::1", Place::Far),
        ] {
            assert_eq!(place(&Address::of(text.parse().unwrap()), make), is, "{text}");
        }
    }

    #[test]
    fn the_device_is_found_among_the_attributes() {
        let table = [8u8, 0, 15, 0, 254, 0, 0, 0].as_slice();
        let odd = [5u8, 0, 20, 0, 1, 0, 0, 0].as_slice();
        let oif = [8u8, 0, 4, 0, 7, 0, 0, 0].as_slice();
        if cfg!(target_endian = "little") {
            assert_eq!(device(&[table, odd, oif].concat()), Some(7));
            assert_eq!((device(&[table, odd].concat()), device(&oif[..6])), (None, None));
            assert_eq!(device(&[0; 64]), None);
        }
    }
}
