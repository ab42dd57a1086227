//! What a run says at its end.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pathcast_net::Kept;
use serde::Serialize;

use crate::counters::{Faults, Key, Use};

/// What a program's TCP did while `run` watched: `--report FILE`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `pathcast.run/1`.
    pub schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whom it ran as.
    pub user: String,
    /// The controller asked for, as the kernel calls it.
    pub control: Option<String>,
    /// Was Multipath TCP asked for?
    pub mptcp: bool,
    /// Its exit status, 128 + n after signal n.
    pub status: i32,
    /// From its start to its end [s].
    pub elapsed_s: f64,
    /// Until the last of `bytes_sent` was acknowledged [s]: a program may end while the kernel still sends for it.
    pub acked_s: f64,
    /// Were connections counted? If not, all that follows is zero.
    pub counted: bool,
    /// TCP connections that were established, in either direction; one of Multipath TCP counts once.
    pub connections: u64,
    /// Of those, the ones over Multipath TCP.
    pub mptcp_connections: u64,
    /// Still open when this was written: in the background, or sending their last bytes.
    pub open: u64,
    /// Acknowledged by the other ends [byte]. Over Multipath TCP, bytes sent on two subflows count twice.
    pub bytes_sent: u64,
    /// From the other ends [byte]. Over Multipath TCP it may be a byte less for a connection.
    pub bytes_received: u64,
    /// `bytes_sent` over `acked_s` [bit/s].
    pub sent_bps: f64,
    /// `bytes_received` over `elapsed_s` [bit/s].
    pub received_bps: f64,
    /// By pair of addresses and controller, those that sent most first.
    pub paths: Vec<PathUse>,
    /// Established under another controller than asked for.
    pub uncontrolled: u64,
    /// Connections that are missing above, since the kernel's maps were full.
    pub uncounted: u64,
    /// Sockets of Multipath TCP given to the program.
    pub mptcp_sockets: u64,
    /// Sockets of plain TCP, since none of Multipath TCP could be made for them.
    pub plain_sockets: u64,
    /// Of every path of a steered network what became of its subflows; none elsewhere.
    pub steered: Option<Vec<Kept>>,
    /// What its reader should know, in sentences.
    pub notes: Vec<String>,
}

/// The connections, or subflows, between two addresses under one controller.
#[derive(Clone, Debug, Serialize)]
pub struct PathUse {
    /// This end.
    pub local: IpAddr,
    /// The other end.
    pub remote: IpAddr,
    /// The controller in force, as read back from the kernel at the end of each connection.
    pub control: String,
    /// Over Multipath TCP?
    pub mptcp: bool,
    /// Connections of TCP, or subflows.
    pub flows: u64,
    /// Acknowledged by the other end [byte].
    pub bytes_sent: u64,
    /// From the other end [byte].
    pub bytes_received: u64,
    /// Sent again, of what was sent [byte].
    pub bytes_retransmitted: u64,
    /// Retransmission timeouts (RFC 6298).
    pub timeouts: u64,
    /// Part of all bytes sent, 0 to 1; of all bytes received if none were sent.
    pub share: f64,
}

fn total<'a>(sums: impl IntoIterator<Item = &'a Use>) -> Use {
    sums.into_iter().fold(Use::default(), |mut total, one| {
        total.add(one);
        total
    })
}

/// Those that sent most first.
pub(crate) fn uses(sums: &BTreeMap<Key, Use>) -> Vec<PathUse> {
    let total = total(sums.values());
    let part = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let path = |(key, one): (&Key, &Use)| PathUse {
        local: key.local,
        remote: key.remote,
        control: key.control.clone(),
        mptcp: key.mptcp,
        flows: one.flows,
        bytes_sent: one.acked,
        bytes_received: one.received,
        bytes_retransmitted: one.resent,
        timeouts: one.timeouts,
        share: if total.acked > 0 { part(one.acked, total.acked) } else { part(one.received, total.received) },
    };
    let mut paths: Vec<PathUse> = sums.iter().map(path).collect();
    paths.sort_by_key(|p| std::cmp::Reverse((p.bytes_sent, p.bytes_received)));
    paths
}

impl Report {
    pub(crate) fn fill(&mut self, sums: &BTreeMap<Key, Use>, open: u64, faults: Faults) {
        self.counted = true;
        self.open = open;
        (self.uncontrolled, self.uncounted) = (faults.uncontrolled, faults.uncounted);
        let total = total(sums.values());
        (self.bytes_sent, self.bytes_received) = (total.acked, total.received);
        self.connections = total.flows - total.joins.min(total.flows);
        self.mptcp_connections = sums.iter().filter(|(k, _)| k.mptcp).map(|(_, u)| u.flows - u.joins).sum();
        let rate = |bytes: u64, seconds: f64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        (self.sent_bps, self.received_bps) = (rate(total.acked, self.acked_s), rate(total.received, self.elapsed_s));
        self.paths = uses(sums);
        self.explain(sums);
    }

    fn explain(&mut self, sums: &BTreeMap<Key, Use>) {
        // what stays on this host has no far end
        let Use { received, acked, .. } = total(sums.iter().filter(|(key, _)| key.leaves()).map(|(_, one)| one));
        if received > acked && self.control.is_some() {
            let (received, sent) = (size(received), size(acked));
            self.notes.push(format!("received {received}, sent {sent}: the far end decides; run it there"));
        }
        if self.connections == 0 && self.control.is_some() {
            let silent: Vec<_> = self.paths.iter().filter(|p| p.timeouts > 0).map(|p| p.remote.to_string()).collect();
            self.notes.push(match silent[..] {
                [] => "it made no TCP connection".into(),
                _ => format!("it made no TCP connection: no answer from {}", silent.join(", ")),
            });
        }
        if let Some(name) = self.control.as_ref().filter(|_| self.uncontrolled > 0) {
            self.notes.push(format!("{} connections were not under `{name}`", self.uncontrolled));
        }
        if self.uncounted > 0 {
            self.notes.push(format!("{} connections were controlled but not counted", self.uncounted));
        }
        if self.mptcp && self.connections > self.mptcp_connections {
            let plain = self.connections - self.mptcp_connections;
            self.notes.push(format!("{plain} of {} connections fell back to plain TCP", self.connections));
        }
    }
}

/// A size for reading: three digits or so.
fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, unit)| bytes as f64 >= *unit) {
        Some((name, unit)) if bytes as f64 / unit < 10.0 => format!("{:.1} {name}", bytes as f64 / unit),
        Some((name, unit)) => format!("{:.0} {name}", bytes as f64 / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!([0, 999, 3_000_000, 1_200_000_000, 12_345].map(size), ["0 B", "999 B", "3.0 MB", "1.2 GB", "12 kB"]);
    }
}
