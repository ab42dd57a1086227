//! What a run gives: one document, the same for the same scenario but for the times that the machine took.

use pathcast_base::Nanos;
use pathcast_congestion::INFINITE;
use pathcast_link::Counters;
use pathcast_scenario::Direction;
use serde::Serialize;

use crate::apps::{Flow, Pages, Source};
use crate::carried::{Carried, SubReport, merge};
use crate::conn::Owner;
use crate::network::Step;
use crate::observe::Observer;
use crate::sim::{Sim, Stopped};

/// What the first key of a report says.
pub const JSON_SCHEMA: &str = "pathcast.sim/1";

/// A whole run. Times in seconds of the simulation unless the name says otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`JSON_SCHEMA`].
    pub schema: &'static str,
    /// The scenario's name.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The scenario's flows, in their order.
    pub flows: Vec<FlowReport>,
    /// Real connections beside them.
    pub traffic: Vec<TrafficReport>,
    /// Both directions of every link, in their order.
    pub links: Vec<LinkReport>,
    /// What became of all packets: sent = delivered + dropped + in flight.
    pub packets: PacketReport,
    /// Simulated time.
    pub simulated_s: f64,
    /// Packets carried over one link, summed over links.
    pub packets_forwarded: u64,
    /// Events of the engine.
    pub events: u64,
    /// Why the run ended before its end: `event-limit`, `time-limit`, `interrupted`.
    pub stopped: Option<&'static str>,
    /// Time of the processor.
    pub cpu_s: f64,
    /// Time on the wall.
    pub wall_s: f64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Its controller.
    pub control: &'static str,
    /// Application bytes that arrived, in order.
    pub bytes: u64,
    /// When it connected.
    pub start_s: f64,
    /// From connecting until the sender knew that everything had arrived; null: it had not.
    pub completion_s: Option<f64>,
    /// From connecting until the last byte arrived.
    pub delivered_s: Option<f64>,
    /// Application bits over the completion time; without one, over the time that the flow ran.
    pub goodput_bps: f64,
    /// Segments sent again, of all subflows.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that a loss was repaired without a timeout.
    pub recoveries: u64,
    /// Reductions that were undone as spurious.
    pub undos: u64,
    /// Segments of the stream that came twice over different subflows.
    pub duplicates: u64,
    /// Most segments that have waited at the receiver for one before them in the stream.
    pub reordered_most: u64,
    /// No path answered, and the connection was given up.
    pub failed: bool,
    /// Its subflows, in the order of its paths.
    pub subflows: Vec<SubflowReport>,
    /// Of a flow that is a series of pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageReport>,
}

/// One subflow.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowReport {
    /// Its path.
    pub path: String,
    /// Payload bytes acknowledged.
    pub bytes: u64,
    /// Its segments that links dropped.
    pub drops: u64,
    /// Segments sent, again ones included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Their payload bytes.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses repaired without a timeout; the flow's are in the document.
    #[serde(skip)]
    pub recoveries: u64,
    /// Smoothed RTT at the end.
    pub srtt_s: Option<f64>,
    /// Least RTT.
    pub min_rtt_s: Option<f64>,
    /// Window at the end.
    pub cwnd_packets: u32,
    /// From the flow's connecting until the subflow could carry data; null: it never could.
    pub joined_s: Option<f64>,
    /// Whether it could at the end.
    pub alive: bool,
}

/// Pages.
#[derive(Clone, Debug, Serialize)]
pub struct PageReport {
    /// Pages that arrived.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean time from asking to the last byte.
    pub mean_s: Option<f64>,
    /// Median of it.
    pub median_s: Option<f64>,
    /// 95th percentile of it.
    pub p95_s: Option<f64>,
}

/// Real connections that are not flows.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficReport {
    /// Its name.
    pub name: String,
    /// Its controller.
    pub control: &'static str,
    /// Connections opened.
    pub connections: u64,
    /// Application bytes that arrived.
    pub bytes: u64,
    /// Application bits over the time from its start to its stop or the end.
    pub goodput_bps: f64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Of web clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageReport>,
}

/// One direction of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// `ab` or `ba`.
    pub direction: &'static str,
    /// Packets that reached its far end.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Packets that did not, for whatever cause.
    pub drops: u64,
    /// When the first of them was dropped.
    pub first_drop_s: Option<f64>,
    /// Share of the time that the line was busy, cross traffic included.
    pub utilisation: f64,
    /// Most packets that have waited at once, cross traffic included.
    pub queue_max_packets: u64,
    /// Virtual packets that entered, and that were dropped.
    pub cross_packets: u64,
    /// Virtual packets that were dropped.
    pub cross_drops: u64,
    /// The file that its rate follows at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<pathcast_link::Trace>,
    /// Of a queue of kind codel, fq_codel or pie, or red that marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedReport>,
}

/// What active queue management did to real packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ManagedReport {
    /// Dropped by it, full queues not counted.
    pub drops: u64,
    /// Marked.
    pub marks: u64,
    /// Mean waiting time of those that went on the line; without one, none.
    pub sojourn_s: Option<f64>,
}

/// All packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PacketReport {
    /// Given to a first link.
    pub sent: u64,
    /// Arrived at a host.
    pub delivered: u64,
    /// Dropped or lost.
    pub dropped: u64,
    /// Still on their way.
    pub in_flight: u64,
}

fn seconds(ns: u64) -> f64 {
    Nanos(ns).as_secs_f64()
}

fn rate(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

fn pages(pages: &Pages) -> PageReport {
    let mut times = pages.times.clone();
    times.sort_unstable();
    let at = |share: f64| {
        let index = (share * times.len() as f64).ceil() as usize;
        times.get(index.saturating_sub(1)).map(|&ns| seconds(ns))
    };
    let sum: u128 = times.iter().map(|&ns| u128::from(ns)).sum();
    PageReport {
        pages: times.len() as u64,
        bytes: pages.bytes,
        mean_s: (!times.is_empty()).then(|| sum as f64 / times.len() as f64 / 1e9),
        median_s: at(0.5),
        p95_s: at(0.95),
    }
}

impl<O: Observer> Sim<O> {
    /// Where a flow stands.
    pub(crate) fn flow_report(&self, flow: &Flow) -> FlowReport {
        let (carried, subs) = self.carried_by(flow);
        let (bytes, until) = match (flow.stopped, flow.completed) {
            (Some((at, delivered)), _) => (delivered, at),
            (None, Some(at)) => (carried.delivered, at),
            (None, None) => (carried.delivered, self.now),
        };
        let since = |at: u64| seconds(at - flow.start);
        FlowReport {
            name: flow.name.clone(),
            control: self.setup.controls[flow.wanted.control].info().name,
            bytes,
            start_s: seconds(flow.start),
            completion_s: flow.completed.map(since),
            delivered_s: flow.delivered_at.filter(|_| flow.wanted.bytes.is_some()).map(since),
            goodput_bps: rate(bytes, until.saturating_sub(flow.start)),
            retransmits: carried.retransmits,
            timeouts: carried.timeouts,
            recoveries: carried.recoveries,
            undos: carried.undos,
            duplicates: carried.duplicates,
            reordered_most: carried.reordered_most,
            failed: flow.failed,
            subflows: subs.iter().map(|sub| self.sub_report(sub)).collect(),
            pages: flow.web.map(|_| pages(&flow.pages)),
        }
    }

    /// What the connections of a flow have carried, those that stand now included, and its subflows.
    pub(crate) fn carried_by(&self, flow: &Flow) -> (Carried, Vec<SubReport>) {
        let (mut carried, mut subs) = (flow.carried, flow.subs.clone());
        for conn in self.live(|owner| self.is_of_flow(owner, flow)) {
            let (live, reports) = self.gather(conn);
            carried.add(&live);
            merge(&mut subs, reports);
        }
        (carried, subs)
    }

    /// Connections that stand now, by whose they are.
    fn live(&self, wanted: impl Fn(Owner) -> bool) -> impl Iterator<Item = u32> {
        let conns = self.conns.iter().enumerate();
        let live = conns.filter(|(_, conn)| conn.live && wanted(conn.owner)).map(|(index, _)| index as u32);
        live.collect::<Vec<_>>().into_iter()
    }

    fn is_of_flow(&self, owner: Owner, flow: &Flow) -> bool {
        let index = match owner {
            Owner::Flow(index) => Some(index),
            Owner::Page(client) => self.clients[client as usize].flow(),
            _ => None,
        };
        index.is_some_and(|index| std::ptr::eq(&self.flows[index as usize], flow))
    }

    fn is_of_source(&self, owner: Owner, source: &Source) -> bool {
        let index = match owner {
            Owner::Traffic(index) => Some(index),
            Owner::Page(client) => self.clients[client as usize].source(),
            _ => None,
        };
        index.is_some_and(|index| std::ptr::eq(&self.sources[index as usize], source))
    }

    fn sub_report(&self, sub: &SubReport) -> SubflowReport {
        let us = |us: u32| (us > 0).then(|| f64::from(us) / 1e6);
        SubflowReport {
            path: self.scenario.paths[sub.path].name.clone(),
            bytes: sub.bytes,
            drops: sub.drops,
            sent: sub.sent,
            retransmits: sub.retransmits,
            retransmitted_bytes: sub.again_bytes,
            timeouts: sub.timeouts,
            recoveries: sub.recoveries,
            srtt_s: us(sub.srtt_us),
            min_rtt_s: us(sub.min_rtt_us),
            cwnd_packets: sub.cwnd.min(INFINITE),
            joined_s: sub.opened.map(seconds),
            alive: sub.alive,
        }
    }

    pub(crate) fn report(&mut self, stopped: Stopped, cpu_s: f64, wall_s: f64) -> Report {
        let now = Nanos(self.now);
        for index in 0..self.network.wires.len() {
            self.network.wires[index].advance(now);
            // a fair queue may just have found that it must drop
            while self.network.wires[index].due(0) <= now.0 {
                if let Step::Dropped(wire, packet) = self.network.step(now.0, index) {
                    self.drop(wire, packet);
                }
            }
        }
        let mut traffic = Vec::new();
        for source in &self.sources {
            let mut carried = source.carried;
            for conn in self.live(|owner| self.is_of_source(owner, source)) {
                carried.add(&self.gather(conn).0);
            }
            let start = self.scenario.traffic.iter().find(|t| t.name == source.name).map_or(0, |t| t.start.0);
            let until = source.stop.map_or(self.now, |stop| stop.min(self.now));
            traffic.push(TrafficReport {
                name: source.name.clone(),
                control: self.setup.controls[source.wanted.control].info().name,
                connections: source.connections,
                bytes: carried.delivered,
                goodput_bps: rate(carried.delivered, until.saturating_sub(start)),
                retransmits: carried.retransmits,
                timeouts: carried.timeouts,
                pages: source.web.map(|_| pages(&source.pages)),
            });
        }
        let mut links = Vec::new();
        for (i, wire) in self.network.wires.iter().enumerate() {
            let c = wire.counters();
            links.push(LinkReport {
                name: self.scenario.links[i / 2].name.clone(),
                direction: Direction::BOTH[i % 2].name(),
                packets: c.carried.packets,
                bytes: c.carried.bytes,
                drops: c.dropped.all().packets,
                first_drop_s: self.first_drop[i].map(seconds),
                utilisation: if self.now == 0 { 0.0 } else { c.busy.as_secs_f64() / seconds(self.now) },
                queue_max_packets: c.queue_max.packets,
                cross_packets: c.cross.entered.packets,
                cross_drops: c.cross.dropped.packets,
                managed: wire.params().queue.is_managed().then(|| managed(c)),
                trace: wire.params().trace.clone(),
            });
        }
        let counts = self.network.counts;
        Report {
            schema: JSON_SCHEMA,
            name: self.scenario.name.clone(),
            seed: self.scenario.seed,
            flows: self.flows.iter().map(|flow| self.flow_report(flow)).collect(),
            traffic,
            links,
            packets: PacketReport {
                sent: counts.sent,
                delivered: counts.arrived,
                dropped: counts.dropped,
                in_flight: self.network.inside(),
            },
            simulated_s: seconds(self.now),
            packets_forwarded: counts.forwarded,
            events: self.events,
            stopped: match stopped {
                Stopped::Complete => None,
                Stopped::Events => Some("event-limit"),
                Stopped::Time => Some("time-limit"),
                Stopped::Interrupted => Some("interrupted"),
            },
            cpu_s,
            wall_s,
        }
    }

    /// Checks that no packet was made or lost by the engine itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let c = self.network.counts;
        let inside = self.network.inside();
        if c.sent != c.arrived + c.dropped + inside {
            return Err(format!(
                "sent {} packets, {} arrived, {} dropped, {inside} inside",
                c.sent, c.arrived, c.dropped
            ));
        }
        for (i, wire) in self.network.wires.iter().enumerate() {
            let c = wire.counters();
            let out = c.carried.packets + c.dropped.all().packets;
            if c.offered.packets != out + wire.len() as u64 {
                let name = &self.scenario.links[i / 2].name;
                return Err(format!("link {name}: offered {}, out {out}, inside {}", c.offered.packets, wire.len()));
            }
        }
        for flow in &self.flows {
            let (wanted, got) = (flow.wanted.bytes, flow.carried.delivered);
            if flow.completed.is_some() && flow.web.is_none() && wanted.is_some_and(|wanted| wanted != got) {
                return Err(format!("flow {}: {got} of {wanted:?} bytes were delivered", flow.name));
            }
        }
        Ok(())
    }
}

fn managed(c: &Counters) -> ManagedReport {
    // what is in transmission counts as soon as it is through
    let went = c.carried.packets + c.dropped.loss.packets;
    ManagedReport {
        drops: c.dropped.aqm.packets,
        marks: c.marked.packets,
        sojourn_s: (went > 0).then(|| c.waited.as_secs_f64() / went as f64),
    }
}
