//! What a standing network's links have carried and dropped so far: the same document as an emulated network's, without
//! what only real time has.

use pathcast_base::Nanos;
use pathcast_link::LinkLedger;
use pathcast_scenario::Direction;
use serde::Serialize;

use crate::run::World;

/// All links.
#[derive(Clone, Debug, Serialize)]
pub struct GroupLedger {
    /// Every direction of every link.
    pub links: Vec<LinkLedger>,
    /// Age of the network [s].
    pub since_start_s: f64,
}

/// A whole network; one group, since nothing here has threads.
#[derive(Clone, Debug, Serialize)]
pub struct Ledger {
    /// The links.
    pub groups: Vec<GroupLedger>,
}

impl World {
    /// What the links have done up to now, virtual cross traffic up to this instant included.
    pub fn ledger(&mut self) -> Ledger {
        let sim = &mut self.sim;
        let now = Nanos(sim.now);
        let links = (0..sim.network.wires.len()).map(|index| {
            let (link, direction) = (&sim.scenario.links[index / 2], Direction::BOTH[index % 2]);
            LinkLedger {
                name: format!("{}/{}", link.name, direction.name()),
                params: link.params(direction).clone(),
                counters: sim.network.counters(sim.now, index),
                backlog: sim.network.wires[index].backlog(now),
            }
        });
        Ledger { groups: vec![GroupLedger { links: links.collect(), since_start_s: now.as_secs_f64() }] }
    }
}
