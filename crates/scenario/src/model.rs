//! The checked scenario: names are resolved to indices, defaults are filled in, every value is in its range.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pathcast_base::{Bytes, Nanos};
use pathcast_link::{Cross, Params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host::{End, Hosts};
use crate::tcp::Tcp;

/// A whole scenario. Indices (`link`, `path`, `traffic`) point into its lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// When the run ends; none: when every flow is done, and every flow has an end of its own.
    pub end: Option<Nanos>,
    /// The switches; with any, every node but the end hosts is one, and all paths are the same address pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switch>,
    /// The links.
    pub links: Vec<Link>,
    /// The paths, at most [`MAX_PATHS`](crate::MAX_PATHS).
    pub paths: Vec<Path>,
    /// Traffic beside the flows.
    pub traffic: Vec<Traffic>,
    /// The transfers.
    pub flows: Vec<Flow>,
    /// How TCP behaves in the simulator.
    pub tcp: Tcp,
    /// The end hosts in the simulator.
    #[serde(default)]
    pub hosts: Hosts,
    /// Parameters by controller and name. The controllers' register knows which exist and their ranges.
    pub control: BTreeMap<String, BTreeMap<String, Value>>,
    /// What changes, in order of time.
    pub changes: Vec<Change>,
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the link's node `a` to its node `b`.
    Ab,
    /// From `b` to `a`.
    Ba,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Ab, Direction::Ba];

    /// As it is written: `ab` or `ba`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Ab => "ab",
            Direction::Ba => "ba",
        }
    }

    /// The other direction.
    pub fn opposite(self) -> Direction {
        match self {
            Direction::Ab => Direction::Ba,
            Direction::Ba => Direction::Ab,
        }
    }
}

/// An OpenFlow switch. Its datapath id is its place in the scenario's list, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Its name, which is that of a node.
    pub name: String,
    /// Number of its ports, which are counted from 1.
    pub ports: u16,
    /// Where its controller is, if that is not pathcast's: `tcp:ADDRESS:PORT` or `unix:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
}

/// A full-duplex link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The node at one end.
    pub a: String,
    /// The node at the other end.
    pub b: String,
    /// The port at `a`, where that is a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_port: Option<u16>,
    /// The port at `b`, where that is a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b_port: Option<u16>,
    /// From `a` to `b`.
    pub ab: Params,
    /// From `b` to `a`.
    pub ba: Params,
}

impl Link {
    /// The parameters of one direction.
    pub fn params(&self, direction: Direction) -> &Params {
        match direction {
            Direction::Ab => &self.ab,
            Direction::Ba => &self.ba,
        }
    }

    pub(crate) fn params_mut(&mut self, direction: Direction) -> &mut Params {
        match direction {
            Direction::Ab => &mut self.ab,
            Direction::Ba => &mut self.ba,
        }
    }

    /// The nodes that a packet leaves and reaches in this direction.
    pub fn nodes(&self, direction: Direction) -> (&str, &str) {
        match direction {
            Direction::Ab => (&self.a, &self.b),
            Direction::Ba => (&self.b, &self.a),
        }
    }
}

/// One link of a path, and how it is crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// The direction of packets from client to server.
    pub direction: Direction,
}

/// An address pair over a chain of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// From client to server.
    pub hops: Vec<Hop>,
    /// IP version, 4 or 6.
    pub ip: u8,
    /// The client's address if the file gives one; see [`addresses`](crate::addresses).
    pub local: Option<IpAddr>,
    /// The server's address if the file gives one.
    pub remote: Option<IpAddr>,
    /// Index of the first path with the same server address: this path itself unless it shares.
    pub server: usize,
}

impl Path {
    /// The hops that a packet to `to` takes, in its order and directions.
    pub fn hops_to(&self, to: End) -> Vec<Hop> {
        match to {
            End::Server => self.hops.clone(),
            End::Client => {
                let back = |hop: &Hop| Hop { link: hop.link, direction: hop.direction.opposite() };
                self.hops.iter().rev().map(back).collect()
            }
        }
    }
}

/// Traffic beside the flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Its name, given or `trafficN`.
    pub name: String,
    /// When it starts.
    pub start: Nanos,
    /// When it stops; none: never.
    pub stop: Option<Nanos>,
    /// What it is.
    pub source: Source,
}

/// Where traffic comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Packets that only take queue places and line time.
    Virtual {
        /// Index of the link.
        link: usize,
        /// Direction on the link.
        direction: Direction,
        /// How they arrive.
        cross: Cross,
    },
    /// Greedy TCP connections.
    Tcp {
        /// Index of the path.
        path: usize,
        /// The host that the data goes to.
        to: End,
        /// Number of connections.
        flows: u32,
        /// Time between the starts of two connections.
        stagger: Nanos,
        /// Congestion controller.
        control: String,
    },
    /// Web clients, each fetching page after page, every page on a new connection.
    Web {
        /// Index of the path.
        path: usize,
        /// The host that the pages go to.
        to: End,
        /// Number of clients.
        clients: u32,
        /// Congestion controller.
        control: String,
        /// Sizes and think times.
        web: Web,
    },
}

/// Pages and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    /// Mean page size (Pareto).
    pub page: Bytes,
    /// Shape of that distribution, above 1.
    pub shape: f64,
    /// Mean think time (exponential).
    pub think: Nanos,
}

/// A transfer from client to server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Indices of its paths, each once.
    pub paths: Vec<usize>,
    /// Number of subflows.
    pub subflows: u32,
    /// Congestion controller.
    pub control: String,
    /// What it sends.
    pub workload: Workload,
    /// When it connects.
    pub start: Nanos,
    /// When it stops; none: when all is sent, or at the end of the run.
    pub stop: Option<Nanos>,
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// As much as goes until it is stopped.
    Greedy,
    /// So many application bytes.
    Bytes(Bytes),
    /// Pages with think times.
    Web(Web),
}

impl Flow {
    /// The path of every subflow: the paths repeated in turn. Only the first paths if there are fewer subflows.
    pub fn subflow_paths(&self) -> impl Iterator<Item = usize> + '_ {
        self.paths.iter().copied().cycle().take(self.subflows as usize)
    }

    /// Whether this is MPTCP: more than one path or more than one subflow.
    pub fn is_multipath(&self) -> bool {
        self.paths.len() > 1 || self.subflows > 1
    }
}

/// New parameters from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// What changes, and everything that holds from then on.
    pub what: Changed,
}

/// What changes. The values are whole: what earlier changes set is in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Changed {
    /// One direction of a link.
    Link {
        /// Index of the link.
        link: usize,
        /// The direction.
        direction: Direction,
        /// Its parameters from then on.
        params: Params,
        /// The keys that the change itself names.
        #[serde(default)]
        keys: Vec<String>,
    },
    /// Virtual traffic.
    Traffic {
        /// Index of the traffic.
        traffic: usize,
        /// How its packets arrive from then on.
        cross: Cross,
    },
}

/// A controller's parameter as written; its type is the register's business.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text, for example a quantity such as `150ms`.
    Text(String),
}
