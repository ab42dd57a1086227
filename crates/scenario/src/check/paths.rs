//! `[[path]]`: a chain of links from `client` to `server`, and its addresses.

use std::net::IpAddr;

use super::place::{self, Spot};
use crate::addresses::{self, MAX_PATHS};
use crate::error::Problem;
use crate::model::{Direction, Hop, Link, Path, Scenario};
use crate::raw;

/// `switched`: switches tell the paths apart, whose addresses are the same.
pub(super) fn paths(spot: &Spot, raw: &[raw::Path], links: &[Link], switched: bool) -> Result<Vec<Path>, Problem> {
    if raw.is_empty() {
        return Err(spot.refuse("there is no [[path]]").allowed("at least one"));
    }
    if raw.len() > MAX_PATHS {
        let text = format!("{} paths are too many", raw.len());
        return Err(spot.index(MAX_PATHS).refuse(text).allowed(format!("1 to {MAX_PATHS} paths")));
    }
    let names: Vec<&str> = raw.iter().map(|path| path.name.as_str()).collect();
    for (i, name) in names.iter().enumerate() {
        place::name(&spot.index(i).key("name"), name)?;
    }
    place::distinct(spot, "path", &names)?;
    let mut paths: Vec<Path> = Vec::new();
    for (i, path) in raw.iter().enumerate() {
        let spot = spot.index(i);
        let hops = chain(&spot.key("links"), &path.links, links)?;
        if path.ip.is_some_and(|ip| ip != 4 && ip != 6) {
            return Err(spot.key("ip").refuse("not an IP version").allowed("4, 6"));
        }
        let local = literal(&spot.key("local"), path.local.as_deref())?;
        let remote = match &path.remote {
            Some(name) if names.contains(&name.as_str()) => None,
            other => literal(&spot.key("remote"), other.as_deref()).map_err(|problem| {
                problem.allowed(format!("an IPv4 or IPv6 address, or a path: {}", names.join(", ")))
            })?,
        };
        let ip = path.ip.unwrap_or(if local.or(remote).is_some_and(|ip| ip.is_ipv6()) { 6 } else { 4 });
        paths.push(Path { name: path.name.clone(), hops, ip, local, remote, server: i });
    }
    if switched {
        one_pair(spot, raw, &mut paths)?;
        return Ok(paths);
    }
    for i in 0..paths.len() {
        share(&spot.index(i), i, raw, &mut paths)?;
    }
    families(spot, raw, &paths)?;
    apart(spot, &paths)?;
    Ok(paths)
}

fn chain(spot: &Spot, names: &[String], links: &[Link]) -> Result<Vec<Hop>, Problem> {
    let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let mut hops: Vec<Hop> = Vec::new();
    let mut visited = vec!["client"];
    for (j, name) in names.iter().enumerate() {
        let spot = spot.index(j);
        let index = place::find(&spot, "link", name, &known)?;
        let (link, node) = (&links[index], *visited.last().expect("starts with the client"));
        if hops.iter().any(|hop| hop.link == index) {
            return Err(spot.refuse(format!("link `{name}` is in the path already")).allowed("every link once"));
        }
        if node == "server" {
            return Err(spot.refuse("the path has reached `server` before this link").allowed("no further link"));
        }
        let Some(direction) = Direction::BOTH.into_iter().find(|&direction| link.nodes(direction).0 == node) else {
            let ends = |link: &&Link| link.a == node || link.b == node;
            let here: Vec<&str> = links.iter().filter(ends).map(|link| link.name.as_str()).collect();
            let text = format!("link `{name}` joins `{}` and `{}`, but the path has come to `{node}`", link.a, link.b);
            return Err(spot.refuse(text).allowed(here.join(", ")));
        };
        let next = link.nodes(direction).1;
        if visited.contains(&next) {
            return Err(spot.refuse(format!("the path comes back to `{next}`: a cycle")).allowed("every node once"));
        }
        visited.push(next);
        hops.push(Hop { link: index, direction });
    }
    match visited.last() {
        Some(&"server") => Ok(hops),
        node => {
            let text = format!("the path ends at `{}`", node.copied().unwrap_or_default());
            Err(spot.refuse(text).allowed("a chain of links from `client` to `server`"))
        }
    }
}

fn literal(spot: &Spot, text: Option<&str>) -> Result<Option<IpAddr>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let allowed = "an IPv4 or IPv6 address of one host";
    let ip: IpAddr = text.parse().map_err(|_| spot.refuse("not an IP address").allowed(allowed))?;
    let special = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        // these mean nothing without an interface, or are IPv4 in disguise
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.to_ipv4_mapped().is_some(),
    };
    if special || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
        return Err(spot.refuse("not an address that a host can be reached at").allowed(allowed));
    }
    Ok(Some(ip))
}

/// Resolves `remote = "other path"` and equal literals to the first path with that server address.
fn share(spot: &Spot, i: usize, raw: &[raw::Path], paths: &mut [Path]) -> Result<(), Problem> {
    let named = raw[i].remote.as_ref().and_then(|name| raw.iter().position(|path| path.name == *name));
    if let Some(owner) = named {
        let spot = spot.key("remote");
        let own = |path: &&raw::Path| path.remote.as_ref().is_none_or(|r| raw.iter().all(|other| other.name != *r));
        let owners: Vec<&str> = raw.iter().filter(own).map(|path| path.name.as_str()).collect();
        if owner == i || !owners.contains(&raw[owner].name.as_str()) {
            let text = format!("`{}` has no server address of its own to share", raw[owner].name);
            return Err(spot.refuse(text).allowed(format!("an address, or a path: {}", owners.join(", "))));
        }
        paths[i].remote = paths[owner].remote;
        paths[i].server = owner;
    }
    if let Some(remote) = paths[i].remote {
        let first = paths.iter().position(|path| path.remote == Some(remote));
        paths[i].server = first.unwrap_or(i);
    }
    Ok(())
}

/// All paths have the addresses of the first, which are in one subnet.
fn one_pair(spot: &Spot, raw: &[raw::Path], paths: &mut [Path]) -> Result<(), Problem> {
    for (i, path) in raw.iter().enumerate().skip(1) {
        let given = [("ip", path.ip.is_some()), ("local", path.local.is_some()), ("remote", path.remote.is_some())];
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
            let problem = spot.index(i).key(key).refuse("with switches all paths have the addresses of the first");
            return Err(problem.allowed(format!("`{key}` in the first path only")));
        }
    }
    if raw[0].remote.is_some() && paths[0].remote.is_none() {
        return Err(spot.index(0).key("remote").refuse("not an IP address").allowed("an IPv4 or IPv6 address"));
    }
    families(spot, raw, &paths[..1])?;
    if let (Some(local), Some(remote)) = (paths[0].local, paths[0].remote)
        && (local == remote || !addresses::same_subnet(local, remote))
    {
        let problem =
            spot.index(0).key("remote").refuse("not a neighbour of the client, though only switches are between");
        return Err(problem.allowed(format!("another address in the client's /{}", addresses::prefix(local))));
    }
    let first = paths[0].clone();
    for path in paths {
        (path.ip, path.local, path.remote, path.server) = (first.ip, first.local, first.remote, 0);
    }
    Ok(())
}

fn families(spot: &Spot, raw: &[raw::Path], paths: &[Path]) -> Result<(), Problem> {
    let literal = paths.iter().any(|path| path.local.is_some() || path.remote.is_some());
    for (i, path) in paths.iter().enumerate() {
        let spot = spot.index(i);
        if literal && (path.local.is_none() || path.remote.is_none()) {
            let key = if path.local.is_none() { "local" } else { "remote" };
            let text = format!("the key `{key}` is missing: given and generated addresses do not mix");
            return Err(spot.refuse(text).allowed("`local` and `remote` in every path or in none"));
        }
        for (key, ip) in [("local", path.local), ("remote", path.remote)] {
            if ip.is_some_and(|ip| ip.is_ipv6() != (path.ip == 6)) {
                let problem =
                    spot.key(key).refuse(format!("not an IPv{} address, as the path's other values", path.ip));
                return Err(problem.allowed(format!("an IPv{} address", path.ip)));
            }
        }
        if path.ip != paths[path.server].ip {
            let key = if raw[i].ip.is_some() { "ip" } else { "remote" };
            let owner = &paths[path.server];
            let text = format!("`{}`, whose server address this path shares, is IPv{}", owner.name, owner.ip);
            return Err(spot.key(key).refuse(text).allowed(format!("ip = {}", owner.ip)));
        }
    }
    Ok(())
}

/// Given client addresses lie in subnets of their own, so that a source address decides the path.
fn apart(spot: &Spot, paths: &[Path]) -> Result<(), Problem> {
    for (i, path) in paths.iter().enumerate() {
        let Some(local) = path.local else { continue };
        let clash = |other: &&Path| other.local.is_some_and(|ip| addresses::same_subnet(ip, local));
        if let Some(other) = paths[..i].iter().find(clash) {
            let text = format!("in the same subnet as the client address of `{}`", other.name);
            let allowed = format!("a /{} of its own for every path", addresses::prefix(local));
            return Err(spot.index(i).key("local").refuse(text).allowed(allowed));
        }
        if paths.iter().any(|other| other.remote == Some(local)) {
            let problem = spot.index(i).key("local").refuse("this is a server address too");
            return Err(problem.allowed("an address that no `remote` has"));
        }
    }
    Ok(())
}

/// The further client addresses of repeated paths count up from `local`: they must exist and be free.
pub(super) fn repetitions_fit(spot: &Spot, scenario: &Scenario) -> Result<(), Problem> {
    if !scenario.switches.is_empty() {
        return Ok(());
    }
    for (i, (path, count)) in scenario.paths.iter().zip(addresses::repetitions(scenario)).enumerate() {
        let Some(local) = path.local else { continue };
        let fits = (1..count).all(|n| {
            addresses::count_up(local, n).is_some_and(|ip| scenario.paths.iter().all(|other| other.remote != Some(ip)))
        });
        if !fits {
            let text = format!("{count} subflows over this path need {count} free client addresses from here on");
            let problem = spot.index(i).key("local").refuse(text);
            return Err(problem.allowed(format!("an address with {} free ones behind it in its subnet", count - 1)));
        }
    }
    Ok(())
}
