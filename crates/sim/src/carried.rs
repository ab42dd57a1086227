//! What connections and their subflows have carried, while they stand and after it.

use crate::observe::Observer;
use crate::sim::Sim;

/// What a connection, or a series of them, has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Carried {
    /// Application bytes at the receiver, in order.
    pub delivered: u64,
    pub sent: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub undos: u64,
    /// Segments of the stream that came twice, and the most that waited for others before them.
    pub duplicates: u64,
    pub reordered_most: u64,
}

/// What a subflow has carried.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SubReport {
    pub path: usize,
    pub bytes: u64,
    pub sent: u64,
    pub again_bytes: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub drops: u64,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub cwnd: u32,
    /// When it could carry data, from the connection's start [ns]; none: it never could.
    pub opened: Option<u64>,
    pub alive: bool,
}

impl Carried {
    pub(crate) fn add(&mut self, other: &Carried) {
        self.delivered += other.delivered;
        self.sent += other.sent;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.undos += other.undos;
        self.duplicates += other.duplicates;
        self.reordered_most = self.reordered_most.max(other.reordered_most);
    }
}

/// Adds up the subflows of one page after another, in their order.
pub(crate) fn merge(into: &mut Vec<SubReport>, subs: Vec<SubReport>) {
    if into.is_empty() {
        *into = subs;
        return;
    }
    for (to, from) in into.iter_mut().zip(subs) {
        to.bytes += from.bytes;
        to.sent += from.sent;
        to.again_bytes += from.again_bytes;
        to.retransmits += from.retransmits;
        to.timeouts += from.timeouts;
        to.recoveries += from.recoveries;
        to.drops += from.drops;
        (to.srtt_us, to.cwnd, to.alive) = (from.srtt_us, from.cwnd, from.alive);
        to.min_rtt_us = if to.min_rtt_us == 0 { from.min_rtt_us } else { to.min_rtt_us.min(from.min_rtt_us.max(1)) };
    }
}

impl<O: Observer> Sim<O> {
    /// What a live connection has carried so far.
    pub(crate) fn gather(&self, index: u32) -> (Carried, Vec<SubReport>) {
        let conn = &self.conns[index as usize];
        let mut carried = Carried {
            delivered: conn.send.bytes_until(conn.receive.nxt),
            duplicates: conn.receive.duplicates,
            reordered_most: conn.receive.held_most,
            ..Carried::default()
        };
        let mut subs = Vec::with_capacity(conn.subs().len());
        for &index in conn.subs() {
            let (sub, sender) = (&self.subs[index as usize], &self.senders[index as usize]);
            let stats = sender.total();
            carried.sent += stats.sent;
            carried.retransmits += stats.retransmits;
            carried.timeouts += stats.timeouts;
            carried.recoveries += stats.recoveries;
            carried.undos += stats.undos;
            subs.push(SubReport {
                path: sub.path as usize,
                bytes: stats.acked_bytes,
                sent: stats.sent,
                again_bytes: stats.again_bytes,
                retransmits: stats.retransmits,
                timeouts: stats.timeouts,
                recoveries: stats.recoveries,
                drops: stats.drops,
                srtt_us: sender.rtt.srtt_us(),
                min_rtt_us: sender.rtt.min_us,
                cwnd: sender.flow.cwnd,
                opened: (sub.joined > 0).then(|| sub.joined - conn.started),
                alive: sub.open,
            });
        }
        (carried, subs)
    }

    /// What a flow has had acknowledged, of pages what has arrived, and its subflows; none when it has no connection now,
    /// or was stopped and only waits for what is on its way.
    pub(crate) fn standing(&self, index: usize) -> Option<(u64, Vec<SubReport>)> {
        let flow = &self.flows[index];
        if flow.stopped.is_some() || flow.start > self.now {
            return None;
        }
        if flow.web.is_some() {
            let (carried, subs) = self.carried_by(flow);
            return Some((carried.delivered, subs));
        }
        let conn = flow.conn?;
        let send = &self.conns[conn as usize].send;
        Some((send.bytes_until(send.una), self.gather(conn).1))
    }
}
