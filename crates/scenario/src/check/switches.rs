//! `[[switch]]`: names, ports and controllers; where links end at them.

use super::params;
use super::place::{self, Spot};
use crate::error::Problem;
use crate::model::{Link, Switch};
use crate::raw;

/// Switches are named as bridges in Linux are.
const LONGEST: usize = 15;
const MOST_PORTS: u16 = 64;
const HOSTS: [&str; 2] = ["client", "server"];

pub(super) fn switches(spot: &Spot, raw: &[raw::Switch]) -> Result<Vec<Switch>, Problem> {
    let one = |(i, raw): (usize, &raw::Switch)| {
        let (spot, at) = (spot.index(i), spot.index(i).key("name"));
        let name = place::name(&at, &raw.name)?;
        if name.len() > LONGEST || HOSTS.contains(&name.as_str()) {
            let allowed = format!("1 to {LONGEST} characters, but not `client` and `server`");
            return Err(at.refuse("not a switch's name").allowed(allowed));
        }
        let at = spot.key("ports");
        params::within(&at, raw.ports.into(), 1, MOST_PORTS.into(), "")?;
        let ports = u16::try_from(raw.ports).map_err(|_| at.refuse("too many ports"))?;
        let controller = raw.controller.as_deref().filter(|given| *given != "pathcast");
        if let Some(given) = controller
            && !reachable(given)
        {
            let problem = spot.key("controller").refuse("a switch without a controller");
            return Err(problem.allowed("pathcast, tcp:ADDRESS:PORT, unix:/PATH"));
        }
        Ok(Switch { name, ports, controller: controller.map(str::to_owned) })
    };
    let found = raw.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
    place::distinct(spot, "switch", &found.iter().map(|switch| switch.name.as_str()).collect::<Vec<_>>())?;
    Ok(found)
}

fn reachable(controller: &str) -> bool {
    match controller.split_once(':') {
        Some(("tcp", place)) => place.parse::<std::net::SocketAddr>().is_ok_and(|to| to.port() != 0),
        Some(("unix", path)) => path.starts_with('/') && !path.contains(char::is_whitespace),
        _ => false,
    }
}

/// The node, and the port of a switch, that a link's end names.
pub(super) fn end(spot: &Spot, text: &str, switches: &[Switch]) -> Result<(String, Option<u16>), Problem> {
    let names = || switches.iter().map(|switch| switch.name.as_str()).collect::<Vec<_>>();
    let ports = |of: &Switch| format!("{0}:1 to {0}:{1}", of.name, of.ports);
    if let Some((name, port)) = text.split_once(':') {
        let switch = &switches[place::find(spot, "switch", name, &names())?];
        return match port.parse() {
            Ok(port) if (1..=switch.ports).contains(&port) => Ok((name.to_owned(), Some(port))),
            _ => Err(spot.refuse(format!("switch `{name}` has no port `{port}`")).allowed(ports(switch))),
        };
    }
    let name = place::name(spot, text)?;
    match switches.iter().find(|switch| switch.name == name) {
        Some(switch) => Err(spot.refuse(format!("a port of switch `{name}` is missing")).allowed(ports(switch))),
        None if switches.is_empty() || HOSTS.contains(&name.as_str()) => Ok((name, None)),
        None => {
            let known: Vec<&str> = HOSTS.into_iter().chain(names()).collect();
            let problem = spot.refuse(format!("`{name}` is no switch: with switches, all between the hosts is one"));
            Err(problem.choices(&name, &known))
        }
    }
}

/// No two links end at the same port, or with switches at the same host.
pub(super) fn apart(spot: &Spot, switches: &[Switch], links: &[Link]) -> Result<(), Problem> {
    if switches.is_empty() {
        return Ok(());
    }
    let ends = links.iter().enumerate().flat_map(|(i, l)| [(i, "a", &l.a, l.a_port), (i, "b", &l.b, l.b_port)]);
    let mut seen: Vec<(usize, &str, &String, Option<u16>)> = Vec::new();
    for end in ends {
        let (i, key, node, port) = end;
        if let Some(other) = seen.iter().find(|other| (other.2, other.3) == (node, port)) {
            let text = format!("link `{}` ends there already", links[other.0].name);
            return Err(spot.index(i).key(key).refuse(text).allowed("a port, or a host, without a link"));
        }
        seen.push(end);
    }
    Ok(())
}
