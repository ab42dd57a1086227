//! The IP addresses of paths: those that the file gives, or generated ones.
//!
//! Generated, with `net` telling one network on a machine from another and path p counted from 1:
//! IPv4 `10.net.p.0/24`, IPv6 `fd70:6174:68NN:p::/64` (`NN` is `net`; the rest is "path" in ASCII): the server is 1,
//! the client 2, further client addresses of a repeated path follow. A server address that several paths share lies in
//! a subnet of its own, 100 above that of the path that owns it; the clients keep their own subnets. With switches all
//! paths, and all repetitions, are the first path's pair: ports tell their flows apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::{Path, Scenario};

/// Most paths of a scenario.
pub const MAX_PATHS: usize = 8;
/// Most subflows of a flow: the kernel's limit for one connection.
pub const MAX_SUBFLOWS: u32 = 8;

/// The addresses of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// The client's: the path's own first, then one for every repetition of the path in a flow; with switches the same.
    pub local: Vec<IpAddr>,
    /// The server's.
    pub remote: IpAddr,
    /// Prefix length of the subnets of both: 24 for IPv4, 64 for IPv6.
    pub prefix: u8,
    /// Whether both lie in the same subnet; if not, the client needs a route to `remote` and the server one back.
    pub on_link: bool,
}

/// The addresses of every path, in their order. `net` numbers the networks of one machine.
pub fn addresses(scenario: &Scenario, net: u8) -> Vec<PathAddresses> {
    let switched = !scenario.switches.is_empty();
    let shared = |path: &Path| scenario.paths.iter().filter(|other| other.server == path.server).count() > 1;
    let address = |(i, (path, count)): (usize, (&Path, u32))| {
        let own = if switched { 0 } else { i };
        let first = path.local.unwrap_or_else(|| generated(path.ip, net, own + 1, 2));
        let subnet = path.server + 1 + if shared(path) && !switched { 100 } else { 0 };
        let remote = path.remote.unwrap_or_else(|| generated(path.ip, net, subnet, 1));
        PathAddresses {
            local: (0..count).filter_map(|n| count_up(first, if switched { 0 } else { n })).collect(),
            remote,
            prefix: prefix(first),
            on_link: same_subnet(first, remote),
        }
    };
    scenario.paths.iter().zip(repetitions(scenario)).enumerate().map(address).collect()
}

fn generated(ip: u8, net: u8, subnet: usize, host: u8) -> IpAddr {
    // at most MAX_PATHS + 100
    let subnet = subnet as u8;
    if ip == 6 {
        let global = 0x6800 | u16::from(net);
        Ipv6Addr::new(0xfd70, 0x6174, global, u16::from(subnet), 0, 0, 0, u16::from(host)).into()
    } else {
        Ipv4Addr::new(10, net, subnet, host).into()
    }
}

/// How often each path is used by the flow that uses it most, at least once.
pub(crate) fn repetitions(scenario: &Scenario) -> Vec<u32> {
    let mut most = vec![1; scenario.paths.len()];
    for flow in &scenario.flows {
        for path in &flow.paths {
            let count = flow.subflow_paths().filter(|used| used == path).count() as u32;
            most[*path] = count.max(most[*path]);
        }
    }
    most
}

/// The address `n` above `ip`, if that is still a host of the same subnet.
pub(crate) fn count_up(ip: IpAddr, n: u32) -> Option<IpAddr> {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            let host = u32::from(d) + n;
            (n == 0 || host < 255).then(|| Ipv4Addr::new(a, b, c, host as u8).into())
        }
        IpAddr::V6(v6) => {
            let next: IpAddr = Ipv6Addr::from(u128::from(v6).checked_add(u128::from(n))?).into();
            same_subnet(ip, next).then_some(next)
        }
    }
}

pub(crate) fn prefix(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 24 } else { 64 }
}

pub(crate) fn same_subnet(a: IpAddr, b: IpAddr) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => a.octets()[..3] == b.octets()[..3],
        (IpAddr::V6(a), IpAddr::V6(b)) => a.octets()[..8] == b.octets()[..8],
        _ => false,
    }
}
