//! Routes on which TCP counts timestamps in microseconds, which give one-way delays.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use pathcast_emu::{Network, inside};

/// The emulator's routing table of the first path.
const TABLE: u8 = 100;
/// RTAX_FEATURE_TCP_USEC_TS.
const FEATURE: u32 = 1 << 4;

/// An attribute of netlink: length, kind, content of a multiple of four bytes.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = 4 + content.len() as u16;
    [&length.to_ne_bytes(), &kind.to_ne_bytes(), content].concat()
}

/// Replaces the route of the calling thread's namespace to `to` over the device of that number by one with the feature.
fn route_in_microseconds(to: Ipv4Addr, device: u32) {
    let features = attribute(12, &FEATURE.to_ne_bytes()); // RTAX_FEATURES
    let attributes =
        [attribute(1, &to.octets()), attribute(4, &device.to_ne_bytes()), attribute(8, &features)].concat();
    // struct rtmsg: AF_INET, a host route, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST
    let route = [2, 32, 0, 0, TABLE, 4, 253, 1, 0, 0, 0, 0];
    let length = (16 + route.len() + attributes.len()) as u32;
    // RTM_NEWROUTE; NLM_F_REQUEST, ACK, REPLACE, CREATE
    let (kind, flags) = (24u16, 1u16 | 4 | 0x100 | 0x400);
    let mut message = Vec::from(length.to_ne_bytes());
    message.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    message.extend([0; 8]); // sequence and port
    message.extend(route);
    message.extend(attributes);
    let mut answer = [0u8; 512];
    // SAFETY: a socket of our own, buffers with their lengths
    let n = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        assert!(libc::send(socket, message.as_ptr().cast(), message.len(), 0) > 0);
        let n = libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0);
        libc::close(socket);
        n
    };
    assert!(n >= 20, "an answer");
    let error = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    assert_eq!(error, 0, "{}", io::Error::from_raw_os_error(-error));
}

/// Both ends of the first path count so from now on, in connections to come.
pub fn both_ends_count(network: &Network) {
    let d = network.describe();
    let v4 = |address: IpAddr| match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("{address}"),
    };
    for (host, to) in [(&d.client, d.paths[0].remote), (&d.server, d.paths[0].local[0])] {
        inside(host, || {
            // SAFETY: a valid C string
            let number = unsafe { libc::if_nametoindex(c"p1".as_ptr()) };
            assert!(number > 0, "the first path's device");
            route_in_microseconds(v4(to), number);
        })
        .unwrap();
    }
}

/// Whether this kernel can count timestamps in microseconds: from 6.7 on.
pub fn known() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}
