//! The addresses under which a far end says that it can be reached: as it was told, or those on which it listens, which on
//! every address of the host are what the host has at the time.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::interfaces::InterfaceAddress;

/// The host's addresses are looked at again so often at most: lines come up late, and their addresses change.
const FRESH: Duration = Duration::from_secs(2);

pub(super) struct Announced {
    told: Vec<IpAddr>,
    listening: Vec<IpAddr>,
    looked: Mutex<Instant>,
}

impl Announced {
    /// told: the addresses to announce; none: those `listening`.
    pub fn new(told: Vec<IpAddr>, listening: &[SocketAddr]) -> Announced {
        let listening = listening.iter().map(SocketAddr::ip).collect();
        Announced { told, listening, looked: Mutex::new(Instant::now()) }
    }

    /// Those that there are where the host has its `own`.
    pub fn among(&self, own: &[InterfaceAddress]) -> Vec<IpAddr> {
        if !self.told.is_empty() {
            return self.told.clone();
        }
        let mut addresses = Vec::new();
        for &listening in &self.listening {
            if !listening.is_unspecified() {
                addresses.push(listening);
                continue;
            }
            let same = own.iter().filter(|i| i.address.is_ipv4() == listening.is_ipv4() && i.usable(false));
            addresses.extend(same.map(|i| i.address));
        }
        addresses
    }

    /// Whether it is time to look at the host's addresses again, which then is not said again for a while.
    pub fn is_due(&self) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let changing = self.told.is_empty() && self.listening.iter().any(IpAddr::is_unspecified);
        let due = changing && looked.elapsed() >= FRESH;
        if due {
            *looked = Instant::now();
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(told: &[&str], listening: &[&str]) -> Announced {
        let listening: Vec<_> = ips(listening).into_iter().map(|ip| SocketAddr::new(ip, 5275)).collect();
        Announced::new(ips(told), &listening)
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_was_told_comes_before_what_is_there_and_a_wildcard_is_every_address_that_is_up() {
        let interface = |address: &str| InterfaceAddress {
            name: "eth0".into(),
            index: 2,
            address: address.parse().unwrap(),
            up: address != "10.0.0.2",
            loopback: address.starts_with("127."),
        };
        let own = ["127.0.0.1", "10.0.0.1", "10.0.0.2", "2001:db8::1"].map(interface);
        let found = |told: &[&str], listening: &[&str]| announced(told, listening).among(&own);
        assert_eq!(found(&[], &["0.0.0.0", "::"]), ips(&["10.0.0.1", "2001:db8::1"]));
        assert_eq!(found(&[], &["127.0.0.1", "0.0.0.0"]), ips(&["127.0.0.1", "10.0.0.1"]));
        assert_eq!(found(&["192.0.2.1"], &["0.0.0.0"]), ips(&["192.0.2.1"]));
    }

    #[test]
    fn it_is_looked_again_only_where_addresses_may_have_changed_and_not_at_once() {
        let aged = |told: &[&str], listening: &[&str]| {
            let announced = announced(told, listening);
            assert!(!announced.is_due());
            *announced.looked.lock().unwrap() -= FRESH;
            announced
        };
        assert!(!aged(&[], &["10.0.0.1"]).is_due() && !aged(&["10.0.0.1"], &["0.0.0.0"]).is_due());
        let announced = aged(&[], &["10.0.0.1", "::"]);
        assert!(announced.is_due() && !announced.is_due());
    }
}
