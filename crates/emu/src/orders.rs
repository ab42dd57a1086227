//! What a group of links is made of, and what is asked of its thread.

use std::collections::HashMap;
use std::sync::mpsc::Sender;

use pathcast_base::Nanos;
use pathcast_link::{Cross, LinkId, Params, RouteId};

use crate::ledger::GroupLedger;
use crate::packet::Pair;
use crate::tun::Tun;

/// Parameters of a directional link, its name (`wan1/ab`), and its cross traffic.
pub type LinkPlan = (Params, String, Vec<CrossPlan>);

/// What a group is made of.
pub struct Plan {
    /// Directional links.
    pub links: Vec<LinkPlan>,
    /// Directional routes: the links in order, and the device that packets leave by.
    pub routes: Vec<(Vec<LinkId>, usize)>,
    /// The route of each address pair, where the device does not tell.
    pub lookup: HashMap<Pair, RouteId>,
    /// Of each device the route of all that comes by it, if it tells.
    pub ingress: Vec<Option<RouteId>>,
    /// The devices.
    pub devices: Vec<Tun>,
    /// Changes with their time since the start, in that order.
    pub changes: Vec<(Nanos, LinkId, Change)>,
    /// Seed of every random decision.
    pub seed: u64,
}

/// Cross traffic on one directional link.
pub struct CrossPlan {
    /// Its name in the scenario.
    pub name: String,
    /// What it sends.
    pub cross: Cross,
    /// Since the start of the network.
    pub start: Nanos,
    /// Since the start of the network; none: for ever.
    pub stop: Option<Nanos>,
}

/// A change that the scenario itself makes.
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Change {
    /// The link's parameters.
    Params(Params),
    /// Cross traffic, by its name.
    Cross(String, Cross),
}

/// What a group is asked for.
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Order {
    /// Change a link from now on.
    Set {
        /// Which.
        link: LinkId,
        /// What it has now.
        params: Params,
        /// What it comes to with each of the scenario's own changes of it that are still to come, in their order.
        later: Vec<Params>,
    },
    /// Begin the scenario's time anew.
    Restart(Restart),
    /// Report; `reset` starts the release errors afresh.
    Ledger { reset: bool, reply: Sender<GroupLedger> },
    /// End.
    Stop,
}

/// The scenario's time, begun anew.
pub struct Restart {
    /// Its zero.
    pub at: Nanos,
    /// The links as [`Plan::links`] has them.
    pub links: Vec<LinkPlan>,
    /// Changes with their time since `at`, in that order.
    pub changes: Vec<(Nanos, LinkId, Change)>,
}
