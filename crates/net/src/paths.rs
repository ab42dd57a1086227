//! The address pairs that MPTCP could use towards a far end.

use std::net::{IpAddr, SocketAddr};

use pathcast_base::PathAddr;
use pathcast_session::address::is_one_host;
use serde::Serialize;

use crate::client::Client;
use crate::error::NetError;
use crate::interfaces::InterfaceAddress;
use crate::maker::{Family, SocketMaker, bind};
use crate::route;

/// An address pair that cannot serve, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// Address at this end.
    pub local: IpAddr,
    /// Address at the far end.
    pub remote: IpAddr,
    /// Why.
    pub reason: String,
}

/// All address pairs of a host and a far end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathSurvey {
    /// Called path1, path2, …: first the pair of the main route, then those that share no address with an earlier one.
    pub usable: Vec<PathAddr>,
    /// The rest.
    pub unusable: Vec<Unusable>,
}

/// The usable paths to `client`'s far end, the best first; see [`Client::survey`].
///
/// # Errors
/// The system's.
pub fn paths(client: &Client) -> Result<Vec<PathAddr>, NetError> {
    client.survey().map(|s| s.usable)
}

/// The address from which the routes send what goes to `to`.
pub(crate) fn source(maker: &dyn SocketMaker, to: SocketAddr) -> Option<IpAddr> {
    let socket = maker.udp(Family::of(to.ip())).ok()?;
    socket.connect(&to.into()).ok()?;
    socket.local_addr().ok()?.as_socket().map(|a| a.ip())
}

/// Pairs this host's addresses with `remotes` and the address `target`.
pub(crate) fn survey(maker: &dyn SocketMaker, target: SocketAddr, remotes: &[IpAddr]) -> Result<PathSurvey, NetError> {
    let interfaces = maker.interfaces().map_err(NetError::system("listing the addresses of this host"))?;
    let mut remotes = remotes.to_vec();
    if !remotes.contains(&target.ip()) {
        remotes.insert(0, target.ip()); // behind a translator, the far end does not know this one
    }
    remotes.retain(|r| target.ip().is_loopback() || !r.is_loopback());
    let mut found = PathSurvey::default();
    for &remote in &remotes {
        for interface in interfaces.iter().filter(|i| i.serves(remote)) {
            let local = interface.address;
            match check(maker, interface, SocketAddr::new(remote, target.port()), &interfaces) {
                Ok(()) => found
                    .usable
                    .push(PathAddr { interface: Some(interface.name.clone()), ..PathAddr::new("", local, remote) }),
                Err(reason) => found.unusable.push(Unusable { local, remote, reason }),
            }
        }
    }
    // which of them is the main one does not hang on what answers today: names shall last
    let main = source(maker, target).unwrap_or(target.ip());
    found.usable = order(found.usable, (main, target.ip()));
    Ok(found)
}

/// Can packets leave by the line of `interface` for `remote`? Says why not.
pub(crate) fn check(
    maker: &dyn SocketMaker,
    interface: &InterfaceAddress,
    remote: SocketAddr,
    own: &[InterfaceAddress],
) -> Result<(), String> {
    if !is_one_host(remote.ip()) {
        return Err("no single host has this address".into());
    }
    let local = interface.address;
    if !interface.up {
        return Err(format!("{} is down", interface.name));
    }
    maker
        .udp(Family::of(local))
        .and_then(|socket| {
            bind(&socket, SocketAddr::new(local, 0))?;
            socket.connect(&remote.into())
        })
        .map_err(|e| format!("no route: {e}"))?;
    let route = route::find(maker, Some(local), remote.ip()).map_err(|e| format!("no route: {e}"))?;
    let to_itself = own.iter().any(|i| i.address == remote.ip());
    if to_itself || route.interface == interface.index {
        return Ok(());
    }
    let other = own.iter().find(|i| i.index == route.interface).map_or("another interface", |i| &i.name);
    Err(format!(
        "packets from {local} would leave by {other}, not by {}: it needs a routing rule of its own (`ip rule add from {local} …`)",
        interface.name
    ))
}

/// The main pair, then pairs with two new addresses, then with one, then the rest; named by their place.
fn order(mut pairs: Vec<PathAddr>, main: (IpAddr, IpAddr)) -> Vec<PathAddr> {
    let mut ordered: Vec<PathAddr> = Vec::with_capacity(pairs.len());
    while !pairs.is_empty() {
        let shared = |p: &PathAddr| {
            let local = ordered.iter().any(|o| o.local == p.local);
            // two lines to one address are two paths; one line to two addresses usually is one
            let remote = ordered.iter().any(|o| o.remote == p.remote);
            u8::from((p.local, p.remote) != main) + 4 * u8::from(local) + 2 * u8::from(remote)
        };
        let best = (0..pairs.len()).min_by_key(|&i| (shared(&pairs[i]), i)).expect("not empty");
        let mut next = pairs.remove(best);
        next.name = format!("path{}", ordered.len() + 1);
        ordered.push(next);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(l: u8, r: u8) -> PathAddr {
        PathAddr::new("", [10, 0, 0, l].into(), [10, 9, 0, r].into())
    }

    #[test]
    fn the_main_pair_then_what_shares_least() {
        let all = vec![pair(1, 1), pair(2, 1), pair(1, 2), pair(2, 2)];
        let ends = |p: &PathAddr| (p.local, p.remote);
        let got: Vec<_> = order(all, ends(&pair(2, 1))).iter().map(ends).collect();
        assert_eq!(got, [pair(2, 1), pair(1, 2), pair(1, 1), pair(2, 2)].iter().map(ends).collect::<Vec<_>>());
        assert_eq!(order(vec![pair(1, 1)], ends(&pair(1, 1)))[0].name, "path1");
    }

    #[test]
    fn one_address_at_the_far_end() {
        let got = order(vec![pair(1, 1), pair(2, 1)], ([10, 0, 0, 1].into(), [10, 9, 0, 1].into()));
        assert_eq!(got.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["path1", "path2"]);
        assert_eq!(got[0].local, pair(1, 1).local);
    }
}
