//! What the subflows of a connection know of each other: reports, snapshots and mail, as the kernel's map has them.

use crate::flow::{Flow, Group, PEERS, Peer};

/// The group of a connection. A driver calls [`join`](Connection::join) before a subflow's `init`,
/// [`meet`](Connection::meet) after it and at the start of each `grow` and `ssthresh`, at `Recovered` and `Timeout`,
/// and [`deliver`](Connection::deliver) after `init` and `grow`.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    group: Group,
}

impl Connection {
    /// A connection without subflows.
    pub fn new() -> Self {
        Self::default()
    }
    /// Takes the lowest free slot for `flow` and shows it the group. `None`: all slots are taken, the flow is a group of
    /// its own and must not be given to the other functions.
    pub fn join(&mut self, flow: &mut Flow) -> Option<u32> {
        let Some(slot) = self.group.peer.iter().position(|peer| peer.used == 0) else {
            flow.alone();
            return None;
        };
        self.group.n += 1;
        self.group.joins += 1;
        self.group.peer[slot] = flow.report(self.group.joins, 0);
        flow.slot = slot as u32;
        flow.mail = 0;
        flow.group = self.group;
        Some(flow.slot)
    }
    /// Reports `flow` to its siblings and shows it the group; with `take`, as in `grow`, its mail is handed over.
    pub fn meet(&mut self, flow: &mut Flow, take: bool) {
        let own = &mut self.group.peer[flow.slot as usize % PEERS];
        let mail = if take { std::mem::take(&mut own.mail) } else { 0 };
        *own = flow.report(own.id, own.mail);
        flow.mail = mail;
        flow.group = self.group;
    }
    /// Puts what `flow` asks of a sibling into that sibling's mail.
    pub fn deliver(&mut self, flow: &Flow) {
        if let Some(peer) = self.group.peer.get_mut(flow.post_to as usize).filter(|peer| peer.used != 0) {
            peer.mail = peer.mail.saturating_add(flow.post);
        }
    }
    /// Frees the slot of `flow`.
    pub fn leave(&mut self, flow: &Flow) {
        let own = &mut self.group.peer[flow.slot as usize % PEERS];
        if own.used != 0 {
            *own = Peer::default();
            self.group.n -= 1;
        }
    }
    /// The group as it stands.
    pub fn group(&self) -> &Group {
        &self.group
    }
}
