//! Addresses: which one host can have, and which limits count as one source.

use std::net::{IpAddr, Ipv6Addr};

/// Whether one host can have this address: not unspecified, multicast or broadcast, and not of 0.0.0.0/8.
pub fn is_one_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let nobody = match address {
        IpAddr::V4(address) => address.is_broadcast() || address.octets()[0] == 0,
        IpAddr::V6(address) => address.is_unspecified(),
    };
    !nobody && !address.is_multicast()
}

/// What limits count an address by: itself; of IPv6 its /64, since whoever has one address of that has all of them.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_nobody_and_of_many() {
        for nobody in ["0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.255.255.250", "::", "ff02::1"] {
            assert!(!is_one_host(ip(nobody)), "{nobody}");
        }
        assert!(!is_one_host(ip("::ffff:224.0.0.1")) && !is_one_host(ip("::ffff:0.0.0.0")), "mapped");
        for one in ["127.0.0.1", "192.0.2.255", "::1", "fe80::1", "2001:db8::1", "::ffff:192.0.2.1"] {
            assert!(is_one_host(ip(one)), "{one}");
        }
    }

    #[test]
    fn a_source_is_an_address_or_a_network_of_64_bits() {
        assert_eq!(source(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
        assert_eq!(source(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_ne!(source(ip("192.0.2.1")), source(ip("192.0.2.2")));
    }
}
