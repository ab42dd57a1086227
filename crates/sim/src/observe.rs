//! What may be watched of a run. An observer is a type parameter of the engine: one that does nothing costs nothing.

use pathcast_base::Nanos;
use pathcast_link::{Counters, Tally};

use crate::carried::SubReport;
use crate::tcp::Sender;

/// Whoever watches.
pub(crate) trait Observer {
    /// Whether `acked` is to be called at all.
    const ON: bool;
    /// Whether `flow` is to be called.
    const FLOWS: bool = false;
    /// How often `link` and `flow` are called.
    fn interval(&self) -> Option<Nanos> {
        None
    }
    /// A subflow may carry data: the n-th of a flow, if it belongs to one of the scenario's.
    fn opened(&mut self, _now: Nanos, _sub: u32, _of: Option<(u32, u32)>) {}
    /// The sender of a subflow took an ACK in.
    fn acked(&mut self, _now: Nanos, _sub: u32, _sender: &Sender) {}
    /// A link dropped a packet.
    fn dropped(&mut self, _now: Nanos, _wire: usize, _sub: u32) {}
    /// Where a flow stands: what was acknowledged at the level of its connection, and its subflows.
    fn flow(&mut self, _now: Nanos, _index: usize, _bytes_acked: u64, _subs: &[SubReport]) {}
    /// Where a direction of a link stands.
    fn link(&mut self, _now: Nanos, _wire: usize, _backlog: Tally, _counters: &Counters) {}
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nobody;

impl Observer for Nobody {
    const ON: bool = false;
}
