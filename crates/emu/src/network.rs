//! An emulated network: made from a scenario, changed while it runs, removed when dropped.

use std::fs;
use std::net::IpAddr;

use pathcast_base::{Fault, Nanos};
use pathcast_link::{LinkId, Params};
use pathcast_scenario::{Amendment, Changed, Direction, End, Scenario, Source, Template, Traffic, addresses};
use serde::Serialize;

use crate::error::EmuError;
use crate::fit::fits;
use crate::group::Group;
use crate::layout::{GroupLayout, Layout, Site};
use crate::ledger::{DeviceLedger, Ledger};
use crate::namespace::{Namespace, inside, ip};
use crate::orders::{Change, CrossPlan, LinkPlan, Plan, Restart};
use crate::switched;
use crate::time::clock;
use crate::tun::Tun;

/// Second octet of generated addresses; namespaces keep networks apart, so that all may use the same.
const NET: u8 = 77;

/// Settings of both namespaces: key, value, whether a kernel may lack it.
const SETTINGS: [(&str, &str, bool); 10] = [
    // two times the sum of the bandwidth-delay products of two 1 Gbit/s paths and what is out of order
    ("net.ipv4.tcp_rmem", "4096 131072 134217728", false),
    ("net.ipv4.tcp_wmem", "4096 65536 134217728", false),
    ("net.ipv4.tcp_no_metrics_save", "1", false),
    ("net.ipv4.tcp_slow_start_after_idle", "0", false),
    ("net.ipv4.conf.all.rp_filter", "0", false),
    ("net.ipv4.conf.default.rp_filter", "0", false),
    ("net.ipv6.conf.default.accept_ra", "0", true),
    ("net.ipv6.conf.default.addr_gen_mode", "1", true), // no link-local addresses, no router solicitations
    ("net.mptcp.enabled", "1", true),
    // an MPTCP handshake that a dead path swallowed must not switch MPTCP off for an hour
    ("net.mptcp.blackhole_timeout", "0", true),
];

/// A running emulated network.
pub struct Network {
    // the threads, and with them the devices, go before the namespaces
    groups: Vec<Group>,
    client: Namespace,
    server: Namespace,
    /// Of the switches, if there are any.
    switches: Option<Namespace>,
    layout: Layout,
    scenario: Scenario,
    template: Template,
    /// What was set over it, at the beginning and since.
    sets: Vec<(String, String)>,
    start: Nanos,
}

/// What a network is made of.
#[derive(Debug, Serialize)]
pub struct Description {
    /// The scenario's name.
    pub scenario: String,
    /// Namespaces of the two hosts.
    pub client: String,
    /// As above.
    pub server: String,
    /// Namespace of the switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The paths.
    pub paths: Vec<PathDescription>,
}

/// One path.
#[derive(Debug, Serialize)]
pub struct PathDescription {
    /// Its name.
    pub name: String,
    /// The client's addresses on it: its own, then those of further subflows.
    pub local: Vec<IpAddr>,
    /// The server's.
    pub remote: IpAddr,
    /// Names of its links, from client to server.
    pub links: Vec<String>,
}

impl Network {
    /// Builds what the scenario `text` (with `sets` over it) describes, between namespaces `pc-ID-client` and
    /// `pc-ID-server`, which must not exist; the ports of its switches are devices in `pc-ID-switch`, called
    /// `sw1p1` for port 1 of the first.
    ///
    /// # Errors
    /// A scenario error or what only the simulator can do (usage), a missing privilege or device (missing), or what the
    /// set-up met.
    pub fn up(text: &str, sets: &[(String, String)], id: &str) -> Result<Network, Box<dyn Fault + Send + Sync>> {
        Network::of(Template::parse_in(text, None).map_err(boxed)?, sets, id)
    }

    /// The same of a text that was read already.
    ///
    /// # Errors
    /// As [`Network::up`].
    pub fn of(
        template: Template,
        sets: &[(String, String)],
        id: &str,
    ) -> Result<Network, Box<dyn Fault + Send + Sync>> {
        let scenario = template.scenario(sets).map_err(boxed)?;
        fits(&scenario).map_err(boxed)?;
        let layout = Layout::new(&scenario, addresses(&scenario, NET));
        let client = Namespace::create(&format!("pc-{id}-client")).map_err(boxed)?;
        let server = Namespace::create(&format!("pc-{id}-server")).map_err(boxed)?;
        let switches = (!scenario.switches.is_empty()).then(|| Namespace::create(&format!("pc-{id}-switch")));
        let switches = switches.transpose().map_err(boxed)?;
        let groups = build(&scenario, &layout, &client, &server, switches.as_ref()).map_err(boxed)?;
        let (sets, start) = (sets.to_vec(), clock());
        Ok(Network { groups, client, server, switches, layout, scenario, template, sets, start })
    }

    /// Names and addresses.
    pub fn describe(&self) -> Description {
        let paths = self.scenario.paths.iter().zip(&self.layout.addresses);
        Description {
            scenario: self.scenario.name.clone(),
            client: self.client.name().into(),
            server: self.server.name().into(),
            switch: self.switches.as_ref().map(|namespace| namespace.name().into()),
            paths: paths
                .map(|(path, addresses)| PathDescription {
                    name: path.name.clone(),
                    local: addresses.local.clone(),
                    remote: addresses.remote,
                    links: path.hops.iter().map(|h| self.scenario.links[h.link].name.clone()).collect(),
                })
                .collect(),
        }
    }

    /// Changes keys of a link from now on, in one direction or in both; the values are written as in the scenario, and
    /// meet the same checks. Returns the link's new parameters by direction.
    ///
    /// # Errors
    /// Usage: an unknown link or key, a value out of range or a queue of another kind. Nothing is changed then.
    pub fn set(
        &mut self,
        link: &str,
        direction: Option<Direction>,
        changes: &[(String, String)],
    ) -> Result<Vec<(Direction, Params)>, Box<dyn Fault + Send + Sync>> {
        let amendment = Amendment::read(&self.template, &self.sets, link, direction, changes).map_err(boxed)?;
        fits(amendment.wanted()).map_err(boxed)?;
        self.catch_up();
        let index = amendment.link();
        let new = amendment.over(&self.scenario.links[index]).map_err(boxed)?;
        amendment.over_later(&new, &mut self.scenario.changes).map_err(boxed)?;
        for (direction, params) in &new {
            if let Some((group, id)) = self.layout.find(index, *direction) {
                let later = self.scenario.changes.iter().filter_map(|change| match &change.what {
                    Changed::Link { link, direction: of, params, .. } if (*link, of) == (index, direction) => {
                        Some(params)
                    }
                    _ => None,
                });
                self.groups[group].set(id, params.clone(), later.cloned().collect()).map_err(boxed)?;
            }
            *self.params(index, *direction) = params.clone();
        }
        self.sets.extend_from_slice(amendment.sets());
        Ok(new)
    }

    /// Begins the scenario's time anew `lead` from now: its changes come again, cross traffic starts and stops again, and
    /// what was `set` holds from the beginning. Packets on their way go on. Returns the new zero on this machine's
    /// monotonic clock.
    ///
    /// # Errors
    /// A thread that has ended.
    pub fn restart(&mut self, lead: Nanos) -> Result<Nanos, Box<dyn Fault + Send + Sync>> {
        let scenario = self.template.scenario(&self.sets).map_err(boxed)?;
        let at = Nanos(clock().0.saturating_add(lead.0));
        for (group, layout) in self.groups.iter().zip(&self.layout.groups) {
            let (links, changes) = (plan_links(&scenario, layout), plan_changes(&scenario, layout));
            group.restart(Restart { at, links, changes }).map_err(boxed)?;
        }
        (self.scenario, self.start) = (scenario, at);
        Ok(at)
    }

    /// Brings our copy of the links to where the scenario's own changes have brought them.
    fn catch_up(&mut self) {
        let age = clock().saturating_sub(self.start);
        let due = self.scenario.changes.iter().take_while(|c| c.at <= age).count();
        for change in self.scenario.changes.drain(..due).collect::<Vec<_>>() {
            if let Changed::Link { link, direction, params, .. } = change.what {
                *self.params(link, direction) = params;
            }
        }
    }

    fn params(&mut self, link: usize, direction: Direction) -> &mut Params {
        match direction {
            Direction::Ab => &mut self.scenario.links[link].ab,
            Direction::Ba => &mut self.scenario.links[link].ba,
        }
    }

    /// What every link carried and dropped, and how late packets left; `reset` starts the release errors afresh.
    ///
    /// # Errors
    /// A thread that has ended.
    pub fn ledger(&self, reset: bool) -> Result<Ledger, EmuError> {
        let groups = self.groups.iter().map(|g| g.ledger(reset)).collect::<Result<_, _>>()?;
        let mut devices = Vec::new();
        let hosts = [(Site::Host(End::Client), &self.client), (Site::Host(End::Server), &self.server)];
        for (site, namespace) in hosts.into_iter().chain(self.switches.as_ref().map(|of| (Site::Switches, of))) {
            let counted = inside(namespace.name(), || fs::read_to_string("/proc/thread-self/net/dev"))
                .and_then(|r| r)
                .map_err(|e| EmuError::Setup { what: "reading the devices' counters".into(), why: e.to_string() })?;
            for device in self.layout.devices.iter().filter(|d| d.site == site) {
                devices.push(DeviceLedger {
                    host: site.name().into(),
                    dropped: transmit_drops(&counted, &device.name),
                    name: device.name.clone(),
                });
            }
        }
        Ok(Ledger { groups, devices })
    }
}

/// Packets that a device could not hand to the emulator, from the text of `/proc/net/dev`.
fn transmit_drops(text: &str, device: &str) -> u64 {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(device)?.strip_prefix(':'));
    // eight columns received, then transmitted: bytes, packets, errors, drops
    line.and_then(|l| l.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

fn boxed<E: Fault + Send + Sync + 'static>(error: E) -> Box<dyn Fault + Send + Sync> {
    Box::new(error)
}

fn build(
    scenario: &Scenario,
    layout: &Layout,
    client: &Namespace,
    server: &Namespace,
    switches: Option<&Namespace>,
) -> Result<Vec<Group>, EmuError> {
    let mptcp = fs::exists("/proc/sys/net/mptcp").unwrap_or(false);
    let mut tuns: Vec<Option<Tun>> = Vec::new();
    for device in &layout.devices {
        let namespace = match device.site {
            Site::Host(End::Client) => client,
            Site::Host(End::Server) => server,
            Site::Switches => switches.expect("made where there are switches"),
        };
        let made = inside(namespace.name(), || Tun::create(&device.name, layout.layer(device)))
            .and_then(|t| t)
            .map_err(tun_error)?;
        tuns.push(Some(made));
    }
    for (host, namespace) in [(End::Client, client), (End::Server, server)] {
        namespace.sysctl(&SETTINGS)?;
        for (version, commands) in ["-4", "-6"].into_iter().zip(layout.commands(scenario, host)) {
            ip(namespace.name(), version, &commands)?;
        }
        namespace.settle()?;
        if mptcp {
            ip(namespace.name(), "-0", &layout.mptcp_commands(scenario, host))?;
        }
    }
    if let Some(switches) = switches {
        // a port is the switch's: the kernel must not speak by it
        switches.sysctl(&[
            ("net.ipv6.conf.all.disable_ipv6", "1", true),
            ("net.ipv6.conf.default.disable_ipv6", "1", true),
        ])?;
        ip(switches.name(), "-0", &switched::switch_commands(layout))?;
    }
    let start = |group: &GroupLayout| {
        Group::start(Plan {
            links: plan_links(scenario, group),
            routes: group.routes.clone(),
            lookup: group.lookup.clone(),
            ingress: group.ingress.clone(),
            devices: group.devices.iter().map(|d| tuns[*d].take().expect("each belongs to one group")).collect(),
            changes: plan_changes(scenario, group),
            seed: scenario.seed,
        })
    };
    layout.groups.iter().map(start).collect()
}

fn plan_links(scenario: &Scenario, group: &GroupLayout) -> Vec<LinkPlan> {
    group.links.iter().map(|(link, direction)| plan_link(scenario, *link, *direction)).collect()
}

/// The scenario's own changes of links of `group` and of cross traffic on them.
fn plan_changes(scenario: &Scenario, group: &GroupLayout) -> Vec<(Nanos, LinkId, Change)> {
    let of_group = |link: usize, direction| {
        let at = group.links.iter().position(|l| *l == (link, direction))?;
        Some(LinkId(at as u32))
    };
    let of_change = |change: &pathcast_scenario::Change| match &change.what {
        Changed::Link { link, direction, params, .. } => {
            Some((change.at, of_group(*link, *direction)?, Change::Params(params.clone())))
        }
        Changed::Traffic { traffic, cross } => {
            let Traffic { name, source: Source::Virtual { link, direction, .. }, .. } = &scenario.traffic[*traffic]
            else {
                return None; // the scenario lets only virtual traffic change
            };
            Some((change.at, of_group(*link, *direction)?, Change::Cross(name.clone(), cross.clone())))
        }
    };
    scenario.changes.iter().filter_map(of_change).collect()
}

fn plan_link(scenario: &Scenario, link: usize, direction: Direction) -> LinkPlan {
    let end = if direction == Direction::Ab { "ab" } else { "ba" };
    let crosses = scenario
        .traffic
        .iter()
        .filter_map(|traffic| match &traffic.source {
            Source::Virtual { link: l, direction: d, cross } if (*l, *d) == (link, direction) => Some(CrossPlan {
                name: traffic.name.clone(),
                cross: cross.clone(),
                start: traffic.start,
                stop: traffic.stop,
            }),
            _ => None,
        })
        .collect();
    let of = &scenario.links[link];
    (of.params(direction).clone(), format!("{}/{end}", of.name), crosses)
}

fn tun_error(error: std::io::Error) -> EmuError {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match error.kind() {
        // a node without its driver says ENODEV or ENXIO
        _ if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => tun_error(NotFound.into()),
        NotFound => EmuError::Missing {
            what: "/dev/net/tun".into(),
            mend: "load the module: modprobe tun; in a container, pass the device in".into(),
        },
        PermissionDenied => EmuError::Missing {
            what: format!("the privilege to make TUN devices ({error})"),
            mend: "run as root; the simulator needs none (`pathcast sim`, `--world sim`)".into(),
        },
        _ => EmuError::Setup { what: "a TUN device".into(), why: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_device() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n   p1: 0 0 0 0 0 0 0 0 9 9 9 42 0 0 0 0\n";
        assert_eq!(transmit_drops(text, "p1"), 42);
        assert_eq!(transmit_drops(text, "p2"), 0);
    }
}
