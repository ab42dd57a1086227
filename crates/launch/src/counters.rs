//! What the eBPF program counts, read from the bytes of its maps (the structs of `launch.bpf.c`).

use std::net::{IpAddr, Ipv6Addr};

const KEY_BYTES: usize = 52;
const USE_BYTES: usize = 56;
const FLOW_BYTES: usize = 144;
/// TCP_CLOSE of the kernel's states.
const CLOSED: u32 = 7;
pub(crate) const FAULT_BYTES: usize = 16;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// What connections have in common that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub local: IpAddr,
    pub remote: IpAddr,
    pub mptcp: bool,
    pub control: String,
}

impl Key {
    /// To another host, as far as its ends tell?
    pub fn leaves(&self) -> bool {
        !self.local.is_loopback() && self.local != self.remote
    }

    pub fn read(bytes: &[u8]) -> Option<Key> {
        let bytes = bytes.get(..KEY_BYTES)?;
        let address = |at: usize| {
            let octets: [u8; 16] = bytes[at..at + 16].try_into().ok()?;
            Some(Ipv6Addr::from(octets).to_canonical())
        };
        let control = bytes[36..].split(|&b| b == 0).next().unwrap_or_default();
        Some(Key {
            local: address(0)?,
            remote: address(16)?,
            mptcp: bytes[32] != 0 || bytes[35] != 0,
            control: String::from_utf8_lossy(control).into_owned(),
        })
    }
}

/// Sums, in bytes but for the first two and the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub flows: u64,
    /// Of `flows`, those that joined a connection of Multipath TCP as a further subflow.
    pub joins: u64,
    pub acked: u64,
    pub received: u64,
    pub sent: u64,
    pub resent: u64,
    /// Retransmission timeouts (RFC 6298).
    pub timeouts: u64,
}

impl Use {
    pub fn read(bytes: &[u8]) -> Option<Use> {
        let at = |i: usize| word(bytes.get(..USE_BYTES)?, 8 * i);
        Some(Use {
            flows: at(0)?,
            joins: at(1)?,
            acked: at(2)?,
            received: at(3)?,
            sent: at(4)?,
            resent: at(5)?,
            timeouts: at(6)?,
        })
    }

    pub fn add(&mut self, other: &Use) {
        self.flows += other.flows;
        self.joins += other.joins;
        self.acked += other.acked;
        self.received += other.received;
        self.sent += other.sent;
        self.resent += other.resent;
        self.timeouts += other.timeouts;
    }
}

/// An open connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flow {
    pub key: Key,
    /// It has just closed: its counts are being added to those of its path.
    pub closing: bool,
    /// At this end and at the other.
    pub ports: (u16, u16),
    /// Written by the program, not yet acknowledged [byte].
    pub pending: u64,
    pub counts: Use,
}

impl Flow {
    pub fn read(bytes: &[u8]) -> Option<Flow> {
        let bytes = bytes.get(..FLOW_BYTES)?;
        let ports = u32::from_ne_bytes(bytes[132..136].try_into().ok()?);
        Some(Flow {
            key: Key::read(bytes)?,
            closing: u32::from_ne_bytes(bytes[52..56].try_into().ok()?) == CLOSED,
            ports: ((ports >> 16) as u16, ports as u16),
            pending: word(bytes, 64)?,
            counts: Use::read(&bytes[72..])?,
        })
    }
}

/// Connections that could not be controlled, or not be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub uncontrolled: u64,
    pub uncounted: u64,
}

impl Faults {
    pub fn read(bytes: &[u8]) -> Option<Faults> {
        Some(Faults { uncontrolled: word(bytes, 0)?, uncounted: word(bytes, 8)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_where_the_program_puts_them() {
        let mut bytes = [0u8; FLOW_BYTES];
        bytes[10..16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        bytes[16..32].copy_from_slice(&"fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        bytes[32..36].copy_from_slice(&1u32.to_ne_bytes());
        bytes[36..40].copy_from_slice(b"reno");
        bytes[64..72].copy_from_slice(&7u64.to_ne_bytes());
        for i in 0..7u64 {
            bytes[72 + 8 * i as usize..][..8].copy_from_slice(&(i + 1).to_ne_bytes());
        }
        bytes[132..136].copy_from_slice(&(40001u32 << 16 | 5275).to_ne_bytes());
        let flow = Flow::read(&bytes).unwrap();
        let ends = ("10.0.0.1".parse().unwrap(), "fd00::2".parse().unwrap());
        assert_eq!((flow.key.local, flow.key.remote, flow.key.mptcp, flow.pending), (ends.0, ends.1, true, 7));
        assert_eq!((flow.key.control.as_str(), flow.ports), ("reno", (40001, 5275)));
        assert_eq!(flow.counts, Use { flows: 1, joins: 2, acked: 3, received: 4, sent: 5, resent: 6, timeouts: 7 });
        assert!(Flow::read(&bytes[1..]).is_none() && !flow.closing);
        bytes[52..56].copy_from_slice(&CLOSED.to_ne_bytes());
        assert!(Flow::read(&bytes).unwrap().closing);
    }
}
