//! Which devices, addresses and routes a scenario needs on its two hosts, and which links belong to one thread. Pure.

use std::collections::HashMap;
use std::net::IpAddr;

use pathcast_link::{LinkId, RouteId};
use pathcast_scenario::{Direction, End, Hop, PathAddresses, Scenario};

use crate::packet::Pair;
use crate::switched;
use crate::tun::Layer;

/// Where a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// On a host.
    Host(End),
    /// Where the switches are.
    Switches,
}

impl Site {
    /// As ledgers call it.
    pub fn name(self) -> &'static str {
        match self {
            Site::Host(End::Client) => "client",
            Site::Host(End::Server) => "server",
            Site::Switches => "switch",
        }
    }
}

/// A device to make.
#[derive(Debug, Clone)]
pub struct Device {
    /// Where.
    pub site: Site,
    /// Its name there.
    pub name: String,
    /// Paths whose packets use it.
    pub paths: Vec<usize>,
}

impl Device {
    fn is_on(&self, host: End) -> bool {
        self.site == Site::Host(host)
    }
}

/// What one thread looks after.
#[derive(Debug, Default)]
pub struct GroupLayout {
    /// Directional links, as indices and direction in the scenario.
    pub links: Vec<(usize, Direction)>,
    /// Directional routes: links of this group, and the device (index in `devices`) that packets leave by.
    pub routes: Vec<(Vec<LinkId>, usize)>,
    /// Route of each address pair.
    pub lookup: HashMap<Pair, RouteId>,
    /// Of each device the route of all that comes by it, where that tells.
    pub ingress: Vec<Option<RouteId>>,
    /// Devices, as indices into the layout's.
    pub devices: Vec<usize>,
}

/// Devices and groups of a scenario.
#[derive(Debug)]
pub struct Layout {
    /// On both hosts.
    pub devices: Vec<Device>,
    /// One for each thread; the last one's are the links that no path crosses, if there are any.
    pub groups: Vec<GroupLayout>,
    /// Addresses of each path.
    pub addresses: Vec<PathAddresses>,
}

impl Layout {
    /// Of a checked scenario with its paths' addresses.
    pub fn new(scenario: &Scenario, addresses: Vec<PathAddresses>) -> Layout {
        if !scenario.switches.is_empty() {
            let (devices, groups) = switched::layout(scenario);
            return Layout { devices, groups, addresses };
        }
        let devices = devices(scenario);
        let of_paths = split(scenario, &devices).into_iter().map(|paths| group(scenario, &addresses, &devices, &paths));
        let mut groups: Vec<GroupLayout> = of_paths.collect();
        let crossed = |link: &(usize, Direction)| groups.iter().any(|group| group.links.contains(link));
        let all = (0..scenario.links.len()).flat_map(|link| Direction::BOTH.map(|direction| (link, direction)));
        // they have counters and change, too
        let links: Vec<_> = all.filter(|link| !crossed(link)).collect();
        if !links.is_empty() {
            groups.push(GroupLayout { links, ..GroupLayout::default() });
        }
        Layout { devices, groups, addresses }
    }

    /// Whether there are switches between the hosts.
    pub fn is_switched(&self) -> bool {
        self.devices.iter().any(|device| device.site == Site::Switches)
    }

    /// What the frames of a device begin with.
    pub fn layer(&self, device: &Device) -> Layer {
        match device.site {
            Site::Switches => Layer::Switch,
            Site::Host(_) if self.is_switched() => Layer::Ethernet,
            Site::Host(_) => Layer::Ip,
        }
    }

    /// Where a directional link is looked after: its group and its index there.
    pub fn find(&self, link: usize, direction: Direction) -> Option<(usize, LinkId)> {
        self.groups.iter().enumerate().find_map(|(g, group)| {
            let at = group.links.iter().position(|l| *l == (link, direction))?;
            Some((g, LinkId(at as u32)))
        })
    }

    /// Commands for `ip -4 -batch` and `ip -6 -batch` on one host, after its devices were made.
    pub fn commands(&self, scenario: &Scenario, host: End) -> [Vec<String>; 2] {
        if self.is_switched() {
            return switched::commands(scenario, self, host);
        }
        let mut by_version = [Vec::new(), Vec::new()];
        for (n, device) in self.devices.iter().filter(|d| d.is_on(host)).enumerate() {
            let (dev, table) = (&device.name, 100 + n);
            let own = self.own_addresses(host, device);
            let source = own[0].0;
            let commands = &mut by_version[usize::from(source.is_ipv6())];
            commands.push(format!("link set {dev} up mtu 1500 txqueuelen 20000"));
            if let Some(segments) = scenario.hosts.get(host).send_segments {
                commands.push(format!("link set {dev} gso_max_segs {segments}"));
            }
            for (address, prefix) in &own {
                let nodad = if address.is_ipv6() { " nodad" } else { "" };
                commands.push(format!("address add {address}/{prefix} dev {dev}{nodad}"));
                commands.push(format!("rule add from {address} lookup {table}"));
            }
            for &p in &device.paths {
                for far in self.far_addresses(host, p) {
                    commands.push(format!("route add {far} dev {dev} table {table}"));
                    // programs that bind no address take the first path
                    commands.push(format!("route add {far} dev {dev} src {source} metric {}", 10 + n));
                }
            }
            // an address pair that is no path fails at once, not after a time-out
            let any = if source.is_ipv6() { "::/0" } else { "0.0.0.0/0" };
            commands.push(format!("route add unreachable {any} table {table} metric 4096"));
        }
        by_version
    }

    /// MPTCP limits and endpoints for programs that leave the choice of subflows to the kernel.
    pub fn mptcp_commands(&self, scenario: &Scenario, host: End) -> Vec<String> {
        let mut commands = vec!["mptcp limits set subflows 8 add_addr_accepted 8".to_owned()];
        // to an address that is announced the kernel takes one line, unless it is told to take all
        let several = scenario.paths.iter().enumerate().any(|(p, path)| ![0, p].contains(&path.server));
        for (n, device) in self.devices.iter().filter(|d| d.is_on(host)).enumerate().skip(1) {
            let first = device.paths[0];
            match host {
                End::Server => {
                    let address = self.addresses[first].remote;
                    commands.push(format!("mptcp endpoint add {address} dev {} id {} signal", device.name, n + 1));
                }
                // a server that has no second address to announce: the client offers its own
                End::Client if scenario.paths[first].server == scenario.paths[0].server => {
                    let address = self.addresses[first].local[0];
                    commands.push(format!("mptcp endpoint add {address} dev {} id {} subflow", device.name, n + 1));
                }
                // bound to no device: to another server's address it fails at once, and is none of the eight
                End::Client if several => {
                    let address = self.addresses[first].local[0];
                    commands.push(format!("mptcp endpoint add {address} id {} subflow fullmesh", n + 1));
                }
                End::Client => {}
            }
        }
        commands
    }

    fn own_addresses(&self, host: End, device: &Device) -> Vec<(IpAddr, u8)> {
        let first = &self.addresses[device.paths[0]];
        match host {
            End::Client => first.local.iter().map(|a| (*a, first.prefix)).collect(),
            End::Server => vec![(first.remote, first.prefix)],
        }
    }

    fn far_addresses(&self, host: End, path: usize) -> Vec<IpAddr> {
        let path = &self.addresses[path];
        match host {
            End::Client => vec![path.remote],
            End::Server => path.local.clone(),
        }
    }
}

/// One device a path on the client, one a server address on the server.
fn devices(scenario: &Scenario) -> Vec<Device> {
    let mut devices: Vec<Device> = (0..scenario.paths.len())
        .map(|p| Device { site: Site::Host(End::Client), name: format!("p{}", p + 1), paths: vec![p] })
        .collect();
    for (p, path) in scenario.paths.iter().enumerate() {
        match devices.iter_mut().find(|d| d.is_on(End::Server) && d.paths[0] == path.server) {
            Some(device) => device.paths.push(p),
            None => {
                devices.push(Device { site: Site::Host(End::Server), name: format!("p{}", p + 1), paths: vec![p] });
            }
        }
    }
    devices
}

/// Paths that share a link or a device belong to one thread.
fn split(scenario: &Scenario, devices: &[Device]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for p in 0..scenario.paths.len() {
        let shares = |q: &usize| {
            let links = scenario.paths[*q].hops.iter().any(|a| scenario.paths[p].hops.iter().any(|b| a.link == b.link));
            links || devices.iter().any(|d| d.paths.contains(q) && d.paths.contains(&p))
        };
        let (joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.iter().any(shares));
        groups = apart;
        let mut one: Vec<usize> = joined.into_iter().flatten().collect();
        one.push(p);
        one.sort_unstable();
        groups.push(one);
    }
    groups.sort();
    groups
}

fn group(scenario: &Scenario, addresses: &[PathAddresses], devices: &[Device], paths: &[usize]) -> GroupLayout {
    let own: Vec<usize> = (0..devices.len()).filter(|d| devices[*d].paths.iter().any(|p| paths.contains(p))).collect();
    let ingress = vec![None; own.len()];
    let mut layout = GroupLayout { devices: own, ingress, ..GroupLayout::default() };
    for &p in paths {
        for to in [End::Server, End::Client] {
            let links = scenario.paths[p].hops_to(to).iter().map(|hop| link_id(&mut layout.links, hop)).collect();
            let out = layout
                .devices
                .iter()
                .position(|d| devices[*d].is_on(to) && devices[*d].paths.contains(&p))
                .expect("every path has a device on both hosts");
            let route = RouteId(layout.routes.len() as u32);
            layout.routes.push((links, out));
            for &local in &addresses[p].local {
                let remote = addresses[p].remote;
                let pair = if to == End::Server { (local, remote) } else { (remote, local) };
                layout.lookup.insert(pair, route);
            }
        }
    }
    layout
}

fn link_id(links: &mut Vec<(usize, Direction)>, hop: &Hop) -> LinkId {
    let key = (hop.link, hop.direction);
    let at = links.iter().position(|l| *l == key).unwrap_or_else(|| {
        links.push(key);
        links.len() - 1
    });
    LinkId(at as u32)
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::addresses;

    use super::*;

    #[test]
    fn a_link_that_no_path_crosses_has_its_place() {
        let link = |name| format!("[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\n");
        let path = "[[path]]\nname = \"p\"\nlinks = [\"wan\"]\n";
        let layout = |text: &str| {
            let scenario = Scenario::parse(text, &[]).unwrap();
            let addresses = addresses(&scenario, 77);
            Layout::new(&scenario, addresses)
        };
        let spare = layout(&(link("spare") + &link("wan") + path));
        assert_eq!(Direction::BOTH.map(|of| spare.find(1, of)), [Some((0, LinkId(0))), Some((0, LinkId(1)))]);
        assert_eq!(Direction::BOTH.map(|of| spare.find(0, of)), [Some((1, LinkId(0))), Some((1, LinkId(1)))]);
        assert!(spare.groups[1].routes.is_empty() && spare.groups[1].devices.is_empty());
        assert_eq!(layout(&(link("wan") + path)).groups.len(), 1);
    }
}
