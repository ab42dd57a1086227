//! The file as it is written: what serde reads and what the JSON schema is drawn from. Nothing here is checked yet.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Aggregation, Bucket, Jitter, Policer, Reorder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::forms::{Each, LossForm, Offset, QueueForm, RateForm};
use crate::host::End;
use crate::model::{Direction, Value};
use crate::tcp::Tcp;
use crate::whole::{needed, whole};

/// A network, what else runs in it, and the transfers over it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Scenario")]
pub(crate) struct File {
    /// What the scenario is called; default: the file's name.
    pub name: Option<String>,
    /// Seed of every random stream; default 1.
    pub seed: Option<u64>,
    /// When the run ends; default: when the last flow is done.
    pub end: Option<Nanos>,
    /// Full-duplex links between two nodes.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Address pairs, each over a chain of links from `client` to `server`.
    #[serde(default)]
    pub path: Vec<Path>,
    /// OpenFlow switches that the links join.
    #[serde(default)]
    pub switch: Vec<Switch>,
    /// Cross traffic and competing transfers.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    /// The transfers that the scenario is about.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// How TCP behaves in the simulator.
    #[serde(default)]
    pub tcp: Tcp,
    /// The end hosts in the simulator.
    #[serde(default)]
    pub host: Hosts,
    /// Parameters of congestion controllers, one table a controller.
    #[serde(default)]
    pub control: BTreeMap<String, BTreeMap<String, Value>>,
    /// What changes during the run.
    #[serde(default)]
    pub change: Vec<Change>,
}

/// An OpenFlow switch: it sends each flow over the path that its controller says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switch {
    /// What links call the switch.
    pub name: String,
    /// Number of its ports; links end at `NAME:1`, `NAME:2` and so on.
    #[serde(deserialize_with = "needed::<1, 64, _>")]
    pub ports: u32,
    /// Who controls it: `pathcast`, or another controller's `tcp:ADDRESS:PORT` or `unix:PATH`; default pathcast.
    pub controller: Option<String>,
}

/// A full-duplex link. Values are for both directions or `{ ab = …, ba = … }`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    /// What other tables call the link.
    pub name: String,
    /// The node at one end, of a switch with its port; `client` and `server` are the end hosts.
    pub a: String,
    /// The node at the other end.
    pub b: String,
    /// Rate in IP bits per second; default: infinitely fast.
    pub rate: Option<Each<RateForm>>,
    /// Propagation delay, one way; default 0.
    pub delay: Option<Each<Nanos>>,
    /// Where packets wait; default "1000 packets".
    pub queue: Option<Each<QueueForm>>,
    /// Token bucket that drops and never queues, in front of the queue; default: none.
    pub policer: Option<Each<Policer>>,
    /// Loss on the wire; default 0.
    pub loss: Option<Each<LossForm>>,
    /// Bytes of line time added to every IP packet; default 0.
    pub overhead: Option<Each<Bytes>>,
    /// Delay that varies in time; default: none.
    pub jitter: Option<Each<Jitter>>,
    /// Packets that others overtake; default: none.
    pub reorder: Option<Each<Reorder>>,
    /// Packets gather until the link's next opportunity to leave; default: none.
    pub aggregation: Option<Each<Aggregation>>,
    /// Token bucket in front of the serialiser; default: none.
    pub bucket: Option<Each<Bucket>>,
    /// Line time that leaves at once in the emulator; default 48us.
    pub chunk: Option<Each<Nanos>>,
}

/// An address pair: one subflow can run over it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Path {
    /// What other tables call the path.
    pub name: String,
    /// Names of links, in order from `client` to `server`.
    pub links: Vec<String>,
    /// IP version of generated addresses, 4 or 6; default 4.
    pub ip: Option<u8>,
    /// The client's IP address; default: generated.
    pub local: Option<String>,
    /// The server's IP address, or the name of the path whose server address this one shares; default: generated.
    pub remote: Option<String>,
}

/// Traffic beside the flows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub(crate) enum Traffic {
    /// Virtual packets at equal gaps.
    Constant(Steady),
    /// Virtual packets at exponential gaps.
    Poisson(Steady),
    /// Virtual packets in Pareto on and off times.
    ParetoOnoff(OnOff),
    /// Greedy TCP connections.
    Tcp(Greedy),
    /// Clients that fetch pages and think.
    Web(Pages),
}

/// Virtual packets on one direction of one link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steady {
    /// What changes and `--set` call it; default `traffic1`, `traffic2`, … in the order of the file.
    pub name: Option<String>,
    /// The link.
    pub link: String,
    /// The direction on the link.
    pub direction: Direction,
    /// Mean rate.
    pub rate: Rate,
    /// IP bytes of every packet; default 1500B.
    pub packet: Option<Bytes>,
    /// When it starts; default 0s.
    pub start: Option<Nanos>,
    /// When it stops; default: never.
    pub stop: Option<Nanos>,
}

/// Virtual packets on one direction of one link, in bursts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnOff {
    /// What changes and `--set` call it; default `traffic1`, `traffic2`, … in the order of the file.
    pub name: Option<String>,
    /// The link.
    pub link: String,
    /// The direction on the link.
    pub direction: Direction,
    /// Mean rate over on and off times.
    pub rate: Rate,
    /// Rate while on, above `rate`.
    pub peak: Rate,
    /// Mean on time.
    pub on: Nanos,
    /// Shape of both Pareto distributions, above 1; default 1.5.
    pub shape: Option<f64>,
    /// IP bytes of every packet; default 1500B.
    pub packet: Option<Bytes>,
    /// When it starts; default 0s.
    pub start: Option<Nanos>,
    /// When it stops; default: never.
    pub stop: Option<Nanos>,
}

/// Greedy TCP connections over one path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Greedy {
    /// What `--set` calls it; default `traffic1`, `traffic2`, … in the order of the file.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// The host that the data goes to; default server.
    pub to: Option<End>,
    /// Number of connections; default 1.
    #[serde(default, deserialize_with = "whole::<1, 10000, _>")]
    pub flows: Option<u32>,
    /// Time between the starts of two connections; default 0s.
    pub stagger: Option<Nanos>,
    /// Congestion controller; default cubic.
    pub control: Option<String>,
    /// When the first starts; default 0s.
    pub start: Option<Nanos>,
    /// When all stop; default: never.
    pub stop: Option<Nanos>,
}

/// Web clients over one path: each fetches a page on a new connection, thinks, and fetches the next.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pages {
    /// What `--set` calls it; default `traffic1`, `traffic2`, … in the order of the file.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// The host that the pages go to; default server.
    pub to: Option<End>,
    /// Number of clients; default 1.
    #[serde(default, deserialize_with = "whole::<1, 10000, _>")]
    pub clients: Option<u32>,
    /// Mean page size; default 60KB.
    pub page: Option<Bytes>,
    /// Shape of the pages' Pareto distribution, above 1; default 1.2.
    pub shape: Option<f64>,
    /// Mean of the exponential think time; default 15s.
    pub think: Option<Nanos>,
    /// Congestion controller; default cubic.
    pub control: Option<String>,
    /// When it starts; default 0s.
    pub start: Option<Nanos>,
    /// When no further page is begun; default: never.
    pub stop: Option<Nanos>,
}

/// A transfer from client to server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    /// What `--set` and results call it.
    pub name: String,
    /// Names of paths; more than one: MPTCP.
    pub paths: Vec<String>,
    /// Number of subflows, the paths repeated in turn; default: one a path.
    #[serde(default, deserialize_with = "whole::<1, 8, _>")]
    pub subflows: Option<u32>,
    /// Congestion controller; default cubic.
    pub control: Option<String>,
    /// Application bytes to send; default: as many as go until `stop` or `end`.
    pub bytes: Option<Bytes>,
    /// A series of pages in place of one transfer.
    pub web: Option<WebTable>,
    /// When it connects; default 0s.
    pub start: Option<Nanos>,
    /// When it stops; default: at `end`.
    pub stop: Option<Nanos>,
}

/// Pages of random size, with think times between them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebTable {
    /// Mean page size; default 60KB.
    pub page: Option<Bytes>,
    /// Shape of the pages' Pareto distribution, above 1; default 1.2.
    pub shape: Option<f64>,
    /// Mean of the exponential think time; default 15s.
    pub think: Option<Nanos>,
}

/// The end hosts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hosts {
    /// The node `client`.
    pub client: Host,
    /// The node `server`.
    pub server: Host,
}

/// Clock and network card of an end host.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// What its clock shows more than the true time at the start; default 0s.
    pub clock_offset: Option<Offset>,
    /// How much faster its clock goes, in millionths; default 0.
    pub clock_skew_ppm: Option<f64>,
    /// Packets that arrive within this time of the first are handed over together; default 0s: each at once.
    pub receive_batch: Option<Nanos>,
    /// A batch is handed over early when it has so many packets; default 64.
    #[serde(default, deserialize_with = "whole::<1, 65535, _>")]
    pub receive_batch_packets: Option<u32>,
    /// In the emulator: most segments that TCP hands to a device at once; default: as many as the kernel likes.
    #[serde(default, deserialize_with = "whole::<1, 65535, _>")]
    pub send_segments: Option<u32>,
}

/// New values for a link or for virtual traffic, from a time on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// When.
    pub at: Nanos,
    /// The link that changes; this or `traffic`.
    pub link: Option<String>,
    /// The virtual traffic that changes; this or `link`.
    pub traffic: Option<String>,
    /// The only direction of the link that changes; default: both.
    pub direction: Option<Direction>,
    /// New rate, of a link or of traffic.
    pub rate: Option<Each<RateForm>>,
    /// New propagation delay.
    pub delay: Option<Each<Nanos>>,
    /// New queue.
    pub queue: Option<Each<QueueForm>>,
    /// New policer.
    pub policer: Option<Each<Policer>>,
    /// New loss.
    pub loss: Option<Each<LossForm>>,
    /// New overhead.
    pub overhead: Option<Each<Bytes>>,
    /// New jitter.
    pub jitter: Option<Each<Jitter>>,
    /// New reordering.
    pub reorder: Option<Each<Reorder>>,
    /// New aggregation.
    pub aggregation: Option<Each<Aggregation>>,
    /// New token bucket.
    pub bucket: Option<Each<Bucket>>,
    /// New packet size of traffic.
    pub packet: Option<Bytes>,
    /// New peak rate of `pareto-onoff` traffic.
    pub peak: Option<Rate>,
    /// New mean on time of `pareto-onoff` traffic.
    pub on: Option<Nanos>,
    /// New shape of `pareto-onoff` traffic.
    pub shape: Option<f64>,
}
