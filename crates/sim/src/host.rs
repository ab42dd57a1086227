//! An end host: how packets are handed over to it, and its clock.

use pathcast_scenario::Scenario;

use crate::clock::Clock;
use crate::packet::Packet;

/// An end host's network interface. With interrupt coalescing packets that come within some time of the first are handed
/// over together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// How long a packet may wait for others [ns], and how many are a full batch.
    wait: u64,
    most: usize,
    held: Vec<Packet>,
    pub clock: Clock,
}

impl Host {
    /// Client and server.
    pub(crate) fn pair(scenario: &Scenario) -> [Host; 2] {
        [&scenario.hosts.client, &scenario.hosts.server].map(|host| Host {
            wait: host.receive_batch.0,
            most: host.receive_batch_packets as usize,
            held: Vec::new(),
            clock: Clock::from(host),
        })
    }

    #[inline]
    pub(crate) fn batches(&self) -> bool {
        self.wait > 0
    }

    /// Keeps a packet; when the batch is to be handed over, if this packet decides it [ns].
    pub(crate) fn hold(&mut self, now: u64, packet: Packet) -> Option<u64> {
        self.held.push(packet);
        match self.held.len() {
            n if n >= self.most => Some(now),
            1 => Some(now + self.wait),
            _ => None,
        }
    }

    /// The batch. Its room is to be given back.
    pub(crate) fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.held)
    }

    /// Packets that wait for others.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn give_back(&mut self, room: Vec<Packet>) {
        debug_assert!(room.is_empty());
        if self.held.is_empty() {
            self.held = room;
        }
    }
}
