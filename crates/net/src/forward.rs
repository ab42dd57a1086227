//! What a translator (NAT) before a far end has to forward to it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use crate::interfaces::InterfaceAddress;

/// Ports of a far end that nobody reaches from outside unless a translator forwards them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forward {
    /// Where they lead.
    pub addresses: Vec<IpAddr>,
    /// Of TCP.
    pub tcp: Vec<u16>,
    /// Of UDP.
    pub udp: Vec<u16>,
}

impl Forward {
    /// Of a far end that listens at `listening`, on a host with these addresses. None: it has an IPv4 address that is not
    /// private, none at all, or announces such a one, so that somebody has thought of it.
    pub(crate) fn find(
        own: &[InterfaceAddress],
        listening: &[SocketAddr],
        announced: &[IpAddr],
        stamp_port: u16,
    ) -> Option<Forward> {
        let port = listening.iter().find(|a| a.is_ipv4())?.port();
        let is_v4 = |address: &IpAddr| address.is_ipv4();
        let everywhere = listening.iter().any(|a| is_v4(&a.ip()) && a.ip().is_unspecified());
        let mut addresses: Vec<IpAddr> = match everywhere {
            true => own.iter().filter(|i| i.usable(false)).map(|i| i.address).filter(is_v4).collect(),
            false => listening.iter().map(SocketAddr::ip).filter(|a| is_v4(a) && !a.is_loopback()).collect(),
        };
        addresses.dedup();
        let outside = announced.iter().chain(&addresses).any(|address| !is_private(*address));
        let udp = [port, stamp_port].into_iter().filter(|&port| port != 0).collect();
        (!outside && !addresses.is_empty()).then_some(Forward { addresses, tcp: vec![port], udp })
    }
}

/// Is it an address that no router outside of a site, or of a provider, leads to (RFC 1918, RFC 6598, RFC 3927)?
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(a) => a.is_private() || a.is_link_local() || (a.octets()[0] == 100 && a.octets()[1] & 0xc0 == 64),
        IpAddr::V6(a) => a.is_unique_local() || a.is_unicast_link_local(),
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |all: Vec<String>, word: &str| all.join(word);
        let ports = |ports: &[u16]| list(ports.iter().map(u16::to_string).collect(), " and ");
        let addresses = list(self.addresses.iter().map(IpAddr::to_string).collect(), " or ");
        let (tcp, udp) = (ports(&self.tcp), ports(&self.udp));
        write!(
            f,
            "only private IPv4 addresses here: for clients beyond a translator (NAT) let it forward TCP {tcp} and UDP {udp} \
             to {addresses}, and name its outer address with --announce"
        )
    }
}

/// Where clients say that a translator has led them. By which address they came is their word alone, so that of each
/// address here, and of all, no more than a few are kept.
#[derive(Default)]
pub(crate) struct Translators(Vec<(SocketAddr, SocketAddr)>);

impl Translators {
    const OF_ONE: usize = 4;
    const OF_ALL: usize = 32;

    /// Is it to be said that a translator has led a client from `outer` to `inner`?
    pub fn take(&mut self, outer: SocketAddr, inner: SocketAddr) -> bool {
        if self.0.contains(&(outer, inner)) {
            return true;
        }
        let of_one = self.0.iter().filter(|known| known.1.ip() == inner.ip()).count();
        let room = of_one < Translators::OF_ONE && self.0.len() < Translators::OF_ALL;
        if room {
            self.0.push((outer, inner));
        }
        room
    }
}

/// What is to be said where a client has come to `outer`, and a translator has led it to `inner`.
pub(crate) fn translated(outer: SocketAddr, inner: SocketAddr, stamp_port: u16) -> String {
    let stamp = if stamp_port == 0 { String::new() } else { format!(", and UDP {stamp_port} to that port") };
    format!(
        "a client has come by {outer}, which a translator (NAT) leads to {inner}: let it forward TCP and UDP of that port, \
         under the same number{stamp}, and name {} with --announce",
        outer.ip()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(own: &[&str], listening: &[&str], announced: &[&str], stamp_port: u16) -> Option<Forward> {
        let interface = |text: &&str| InterfaceAddress {
            name: "eth0".into(),
            index: 2,
            address: text.parse().unwrap(),
            up: true,
            loopback: text.starts_with("127."),
        };
        let own: Vec<_> = own.iter().map(interface).collect();
        let listening: Vec<_> = listening.iter().map(|text| text.parse().unwrap()).collect();
        let announced: Vec<_> = announced.iter().map(|text| text.parse().unwrap()).collect();
        Forward::find(&own, &listening, &announced, stamp_port)
    }

    #[test]
    fn clients_have_a_few_translators_said_whatever_they_claim() {
        let (mut translators, warnings) = (Translators::default(), crate::Warnings::default());
        let mut said = 0;
        for inner in ["192.168.1.7:5275", "[2001:db8::7]:5275"].map(|text| text.parse::<SocketAddr>().unwrap()) {
            for port in 0..1000 {
                let outer = SocketAddr::new([203, 0, 113, 5].into(), port);
                if translators.take(outer, inner) {
                    warnings.add(&translated(outer, inner, 0));
                }
                said += warnings.due().len();
            }
            // what is true comes again and again
            assert!(translators.take(SocketAddr::new([203, 0, 113, 5].into(), 0), inner));
        }
        assert_eq!((said, warnings.all().len()), (8, 8));
        let many = (0..1000u16).filter(|&n| {
            let inner = SocketAddr::new(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 1, n).into(), 5275);
            translators.take(SocketAddr::new([203, 0, 113, 6].into(), 1), inner)
        });
        assert_eq!(many.count(), Translators::OF_ALL - 8);
    }

    #[test]
    fn it_is_said_where_all_addresses_are_private_and_not_else() {
        let everywhere = ["0.0.0.0:5275", "[::]:5275"];
        let home = found(&["127.0.0.1", "192.168.1.7", "2001:db8::7"], &everywhere, &[], 862).unwrap();
        let wanted = Forward { addresses: vec!["192.168.1.7".parse().unwrap()], tcp: vec![5275], udp: vec![5275, 862] };
        assert_eq!(home, wanted);
        assert!(home.to_string().contains("forward TCP 5275 and UDP 5275 and 862 to 192.168.1.7,"), "{home}");
        for own in ["10.0.0.1", "172.31.255.1", "100.64.0.9"] {
            assert_eq!(found(&[own], &everywhere, &[], 0).unwrap().udp, [5275], "{own}");
        }
        for own in [&["100.128.0.1"][..], &["172.32.0.1"], &["192.168.1.7", "203.0.113.5"], &["127.0.0.1"], &[]] {
            assert_eq!(found(own, &everywhere, &[], 0), None, "{own:?}");
        }
        assert_eq!(found(&["192.168.1.7"], &everywhere, &["203.0.113.5"], 0), None, "it is announced");
        assert!(found(&["192.168.1.7"], &everywhere, &["192.168.1.7"], 0).is_some());
        assert_eq!(found(&["192.168.1.7"], &["127.0.0.1:5275"], &[], 0), None, "this host only");
        assert_eq!(found(&["192.168.1.7"], &["[::]:5275"], &[], 0), None, "IPv6 is not translated");
        let bound = found(&["192.168.1.7", "203.0.113.5"], &["192.168.1.7:80"], &[], 0);
        assert_eq!(bound.unwrap().tcp, [80]);
    }
}
