//! Which interface a packet between two addresses would leave by (RTM_GETROUTE, as `ip route get`).

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use crate::maker::SocketMaker;
use crate::netlink::{self, Request};

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

/// The kernel's choice for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Interface index; 0 when not told.
    pub interface: u32,
    /// The source address that the kernel prefers on it.
    pub source: Option<IpAddr>,
}

/// The route to `remote`, from `local` if given.
///
/// # Errors
/// NetworkUnreachable and the like when there is none.
pub(crate) fn find(maker: &dyn SocketMaker, local: Option<IpAddr>, remote: IpAddr) -> io::Result<Route> {
    let fd = maker.netlink_route()?;
    let (family, bits) = if remote.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let source_bits = if local.is_some() { bits } else { 0 };
    // struct rtmsg: family, lengths of destination and source, tos, table, protocol, scope, type, flags
    let head = [family as u8, bits, source_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut request = Request::new(libc::RTM_GETROUTE, libc::NLM_F_ACK, &head);
    request.attribute(RTA_DST, &netlink::octets(remote));
    if let Some(local) = local {
        request.attribute(RTA_SRC, &netlink::octets(local));
    }
    let answer = netlink::ask(fd.as_fd(), request, 1)?;
    let mut route = Route { interface: 0, source: None };
    for (kind, value) in netlink::attributes(answer.get(head.len()..).unwrap_or_default()) {
        match kind {
            RTA_OIF => route.interface = value.try_into().map_or(0, u32::from_ne_bytes),
            RTA_PREFSRC => route.source = netlink::address(value),
            _ => {}
        }
    }
    Ok(route)
}
