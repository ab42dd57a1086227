//! Devices and groups of a network of switches: a TAP device at each end of every link, and each link by itself. Pure.
//!
//! The switches are Open vSwitch's, which somebody else makes of the devices; here they are only what links end at.

use pathcast_link::{LinkId, RouteId};
use pathcast_scenario::{Direction, End, Scenario};

use crate::layout::{Device, GroupLayout, Layout, Site};

/// The device at a switch's port; switches are counted from 1, as ports are.
pub fn port_name(switch: usize, port: u16) -> String {
    format!("sw{switch}p{port}")
}

/// All devices, and a group for each link.
pub fn layout(scenario: &Scenario) -> (Vec<Device>, Vec<GroupLayout>) {
    let (mut devices, mut groups) = (Vec::new(), Vec::new());
    for (i, link) in scenario.links.iter().enumerate() {
        let first = devices.len();
        for (node, port) in [(&link.a, link.a_port), (&link.b, link.b_port)] {
            let switch = scenario.switches.iter().position(|switch| switch.name == *node);
            let (site, name) = match (switch, port) {
                (Some(switch), Some(port)) => (Site::Switches, port_name(switch + 1, port)),
                _ if node == "client" => (Site::Host(End::Client), "p1".into()),
                _ => (Site::Host(End::Server), "p1".into()),
            };
            let uses = |p: &usize| scenario.paths[*p].hops.iter().any(|hop| hop.link == i);
            devices.push(Device { site, name, paths: (0..scenario.paths.len()).filter(uses).collect() });
        }
        groups.push(GroupLayout {
            links: Direction::BOTH.map(|direction| (i, direction)).into(),
            // what comes in at one end leaves by the other
            routes: vec![(vec![LinkId(0)], 1), (vec![LinkId(1)], 0)],
            ingress: vec![Some(RouteId(0)), Some(RouteId(1))],
            devices: vec![first, first + 1],
            ..GroupLayout::default()
        });
    }
    (devices, groups)
}

/// The Ethernet address of a host.
fn station(host: End) -> &'static str {
    match host {
        End::Client => "02:70:63:00:00:02",
        End::Server => "02:70:63:00:00:01",
    }
}

/// Commands for `ip -4 -batch` and `ip -6 -batch` on one host. Neighbours are known: none waits for ARP.
pub fn commands(scenario: &Scenario, layout: &Layout, host: End) -> [Vec<String>; 2] {
    let pair = &layout.addresses[0];
    let (own, far) = if host == End::Client { (pair.local[0], pair.remote) } else { (pair.remote, pair.local[0]) };
    let to = station(if host == End::Client { End::Server } else { End::Client });
    let mut commands = vec![format!("link set p1 address {} mtu 1500 txqueuelen 20000 up", station(host))];
    if let Some(segments) = scenario.hosts.get(host).send_segments {
        commands.push(format!("link set p1 gso_max_segs {segments}"));
    }
    let nodad = if own.is_ipv6() { " nodad" } else { "" };
    commands.push(format!("address add {own}/{} dev p1{nodad}", pair.prefix));
    commands.push(format!("neighbour replace {far} lladdr {to} dev p1 nud permanent"));
    let mut by_version = [Vec::new(), Vec::new()];
    by_version[usize::from(own.is_ipv6())] = commands;
    by_version
}

/// Commands for `ip -batch` where the switches are.
pub fn switch_commands(layout: &Layout) -> Vec<String> {
    let at_switches = layout.devices.iter().filter(|device| device.site == Site::Switches);
    at_switches.map(|device| format!("link set {} mtu 1500 txqueuelen 20000 up", device.name)).collect()
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::addresses;

    use super::*;

    const TEXT: &str = r#"
[[switch]]
name = "left"
ports = 3
[[switch]]
name = "right"
ports = 4
[[link]]
name = "in"
a = "client"
b = "left:1"
[[link]]
name = "one"
a = "left:2"
b = "right:2"
[[link]]
name = "two"
a = "right:4"
b = "left:3"
[[link]]
name = "out"
a = "right:1"
b = "server"
[[path]]
name = "path1"
links = ["in", "one", "out"]
[[path]]
name = "path2"
links = ["in", "two", "out"]
"#;

    #[test]
    fn every_link_is_a_group_between_two_devices() {
        let scenario = Scenario::parse(TEXT, &[]).unwrap();
        let layout = Layout::new(&scenario, addresses(&scenario, 77));
        let names: Vec<(&str, &str)> = layout.devices.iter().map(|d| (d.site.name(), d.name.as_str())).collect();
        assert_eq!(names[..4], [("client", "p1"), ("switch", "sw1p1"), ("switch", "sw1p2"), ("switch", "sw2p2")]);
        assert_eq!(names[4..], [("switch", "sw2p4"), ("switch", "sw1p3"), ("switch", "sw2p1"), ("server", "p1")]);
        assert_eq!(layout.groups.len(), 4);
        assert_eq!(layout.find(2, Direction::Ba), Some((2, LinkId(1))));
        for (host, own, far) in [(End::Client, "10.77.1.2", "10.77.1.1"), (End::Server, "10.77.1.1", "10.77.1.2")] {
            let [commands, v6] = layout.commands(&scenario, host);
            assert!(v6.is_empty() && commands.iter().any(|c| c.contains(&format!("add {own}/24"))), "{commands:?}");
            assert!(commands.iter().any(|c| c.contains(&format!("replace {far} lladdr"))), "{commands:?}");
        }
        assert_eq!(switch_commands(&layout).len(), 6);
    }
}
