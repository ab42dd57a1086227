//! Transfers in a network that stands, one after another. What one has come to is the record that a transfer over real sockets
//! has.

mod error;
mod samples;

use pathcast_base::{Nanos, PathAddr, PathManagerKind, Protocol, SubflowReport, TransferReport, TransferSample};
use pathcast_scenario::{Changed, End, MAX_SUBFLOWS, addresses};

use crate::conn::Owner;
use crate::error::SimError;
use crate::handshake::Wanted;
use crate::network::wire;
use crate::observe::Nobody;
use crate::report::{self, FlowReport};
use crate::run::{SLICE, World};
use crate::sim::{Sim, Stopped};
pub use error::{TransferError, Unfinished};
use samples::Samples;

/// A transfer may take an hour of simulated time, or so many times what its bytes need on the slowest link.
const PATIENCE: Nanos = Nanos::secs(3600);
const PATIENCE_TIMES: u64 = 10;

/// Second octet of generated addresses; emulated networks have another.
pub const NET: u8 = 78;

/// A transfer that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// One subflow each, the first on the first; their names choose.
    pub pairs: &'a [PathAddr],
    /// Application bytes.
    pub bytes: u64,
    /// None: cubic.
    pub control: Option<&'a str>,
    /// TCP takes one pair.
    pub protocol: Protocol,
    /// A sample so often; at most 2000 of them, after which they are taken half as often.
    pub every: Option<Nanos>,
    /// The kernel's scheduler alone decides what each subflow is given.
    pub plain: bool,
}

/// Why the engine stopped at a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Over,
    /// Nothing is left that could happen.
    Stuck,
    Late,
    Events,
    Interrupted,
}

impl World {
    /// The address pairs of these paths; one that is named again gets its next client address. Nobody can reach them.
    ///
    /// # Errors
    /// None or too many names, one that there is not, or one that is named more often than it has addresses.
    pub fn pairs(&self, names: &[String]) -> Result<Vec<PathAddr>, TransferError> {
        if names.is_empty() || names.len() > MAX_SUBFLOWS as usize {
            return Err(TransferError::Paths(names.len()));
        }
        let all = addresses(self.scenario(), NET);
        let pair = |(at, name): (usize, &String)| {
            let of = &all[self.index(name)?];
            let n = names[..at].iter().filter(|other| *other == name).count();
            let too_often = || TransferError::TooOften { name: name.clone(), has: of.local.len(), asked: n + 1 };
            Ok(PathAddr::new(name.clone(), *of.local.get(n).ok_or_else(too_often)?, of.remote))
        };
        names.iter().enumerate().map(pair).collect()
    }

    /// The place of a path in the scenario.
    fn index(&self, name: &str) -> Result<usize, TransferError> {
        let scenario = self.scenario();
        let names = || scenario.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", ");
        scenario.path(name).ok_or_else(|| TransferError::NoPath { name: name.into(), allowed: names() })
    }

    /// The places of these paths in the scenario, by their names.
    ///
    /// # Errors
    /// None, more than a connection has, or one that there is not.
    pub fn indices(&self, pairs: &[PathAddr]) -> Result<Vec<usize>, TransferError> {
        if pairs.is_empty() || pairs.len() > MAX_SUBFLOWS as usize {
            return Err(TransferError::Paths(pairs.len()));
        }
        pairs.iter().map(|pair| self.index(&pair.name)).collect()
    }

    /// Sends `bytes` from the client to the server, one subflow a pair, and waits until the sender knows that everything has
    /// arrived. Addresses are the record's only: the pairs' names choose. None for `control`: cubic. `progress` is called
    /// with the bytes that have arrived, and tells whether to go on.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub fn transfer(
        &mut self,
        pairs: &[PathAddr],
        bytes: u64,
        control: Option<&str>,
        protocol: Protocol,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<TransferReport, TransferError> {
        self.carry(&Order { pairs, bytes, control, protocol, every: None, plain: false }, progress)
    }

    /// The same, of an order that may ask for samples.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub fn carry(
        &mut self,
        order: &Order<'_>,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<TransferReport, TransferError> {
        let &Order { pairs, bytes, control, protocol, every, plain } = order;
        let paths = self.indices(pairs)?;
        if bytes == 0 {
            return Err(TransferError::Empty);
        }
        if !progress(0) {
            return Err(TransferError::Interrupted);
        }
        let multipath = protocol == Protocol::Mptcp;
        let flow = self.begin(paths.clone(), bytes, control, multipath, !plain)?;
        let (start, time) = (self.now(), self.patience(&paths, bytes));
        let mut samples = Samples::new(start.0, every);
        let until = start.0.saturating_add(time.0);
        let ended = self.run_flow(flow, until, &mut samples, &mut progress);
        let names = || pairs.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>().join(", ");
        let after_s = self.now().saturating_sub(start).as_secs_f64();
        let far = |arrived| Unfinished { paths: names(), arrived, bytes, after_s };
        let arrived = self.sim.delivered(flow);
        let report = self.sim.flow_report(&self.sim.flows[flow as usize]);
        if ended != Ended::Over
            && let Some(conn) = self.sim.flows[flow as usize].conn.take()
        {
            self.sim.close(conn);
        }
        match ended {
            Ended::Over if report.completion_s.is_some() => {
                Ok(self.record(&report, pairs, &paths, protocol, samples.taken))
            }
            Ended::Over => Err(TransferError::GivenUp(far(report.bytes))),
            Ended::Stuck => Err(TransferError::GivenUp(far(arrived))),
            Ended::Interrupted => Err(TransferError::Interrupted),
            Ended::Late => Err(TransferError::Late(far(arrived))),
            Ended::Events => Err(TransferError::Events { far: far(arrived), limit: self.events }),
        }
    }

    /// How long a transfer may take: long enough for any that makes its way, whatever the scenario changes meanwhile.
    fn patience(&self, paths: &[usize], bytes: u64) -> Nanos {
        let Sim { scenario, network, now, .. } = &self.sim;
        let hops = paths.iter().flat_map(|&path| &scenario.paths[path].hops);
        let wires: Vec<_> = hops.map(|hop| wire(hop.link, hop.direction)).collect();
        let to_come = scenario.changes.iter().filter(|change| change.at.0 >= *now);
        let to_come = to_come.filter_map(|change| match &change.what {
            Changed::Link { link, direction, params, .. } => wires.contains(&wire(*link, *direction)).then_some(params),
            Changed::Traffic { .. } => None,
        });
        let in_force = wires.iter().map(|&wire| network.wires[wire].params());
        let slowest = in_force.chain(to_come).filter_map(|params| params.mean_rate()).min();
        let needed = slowest.map_or(Nanos::ZERO, |rate| rate.time_for(bytes));
        PATIENCE.max(Nanos(needed.0.saturating_mul(PATIENCE_TIMES)))
    }

    /// Plans a flow that connects now; its number.
    fn begin(
        &mut self,
        paths: Vec<usize>,
        bytes: u64,
        control: Option<&str>,
        multipath: bool,
        steered: bool,
    ) -> Result<u32, SimError> {
        let Sim { setup, scenario, .. } = &mut self.sim;
        let control = setup.control(scenario, control.unwrap_or("cubic"), "control")?;
        let wanted =
            Wanted { owner: Owner::Nobody, paths, multipath, to: End::Server, control, bytes: Some(bytes), steered };
        let now = self.sim.now;
        Ok(self.sim.add_flow("transfer".into(), wanted, None, now, None))
    }

    /// Runs until a flow is over, or something else ends it.
    fn run_flow(
        &mut self,
        flow: u32,
        until: u64,
        samples: &mut Samples,
        progress: &mut impl FnMut(u64) -> bool,
    ) -> Ended {
        let over = |sim: &Sim<Nobody>| {
            let flow = &sim.flows[flow as usize];
            flow.completed.is_some() || flow.failed
        };
        let last = self.sim.events.saturating_add(self.events);
        loop {
            let to = until.min(samples.next);
            let stopped = self.sim.run(to, SLICE.min(last - self.sim.events), over);
            let go_on = progress(self.sim.delivered(flow));
            if over(&self.sim) {
                return Ended::Over;
            }
            if !go_on {
                return Ended::Interrupted;
            }
            if stopped == Stopped::Complete && self.sim.now == samples.next && samples.next < until {
                let subs = self.sim.standing(flow as usize).map_or_else(Vec::new, |(_, subs)| subs);
                samples.take(self.sim.delivered(flow), &subs);
            } else if stopped == Stopped::Complete {
                return if self.sim.now < until { Ended::Stuck } else { Ended::Late };
            } else if self.sim.events >= last {
                return Ended::Events;
            }
        }
    }

    /// The record of a flow that is complete. What simulated hosts do not have is absent, or 0 for ports.
    fn record(
        &self,
        flow: &FlowReport,
        pairs: &[PathAddr],
        paths: &[usize],
        protocol: Protocol,
        samples: Vec<TransferSample>,
    ) -> TransferReport {
        let multipath = protocol == Protocol::Mptcp;
        let mss = self.mss(paths[0], multipath);
        let subflow = |(subflow, pair): (&report::SubflowReport, &PathAddr)| {
            // the connection may be done before a subflow hears of its last segments; the stream's very last may be short
            let new = (subflow.sent - subflow.retransmits) * u64::from(mss);
            let first = if new < subflow.bytes + u64::from(mss) { subflow.bytes } else { new };
            let never = subflow.joined_s.is_none();
            SubflowReport {
                path: Some(subflow.path.clone()),
                local: pair.local,
                local_port: 0,
                remote: pair.remote,
                remote_port: 0,
                bytes_sent: first + subflow.retransmitted_bytes,
                bytes_acked: subflow.bytes,
                bytes_retransmitted: subflow.retransmitted_bytes,
                retransmits: subflow.retransmits as u32,
                timeouts: Some(subflow.timeouts as u32),
                recoveries: Some(subflow.recoveries as u32),
                rtt_s: subflow.srtt_s,
                min_rtt_s: subflow.min_rtt_s,
                cwnd_packets: subflow.cwnd_packets,
                mss_bytes: mss,
                joined_s: subflow.joined_s,
                alive: subflow.alive,
                note: never.then(|| "the far end did not answer the join in time".into()),
            }
        };
        let elapsed_s = flow.completion_s.unwrap_or(f64::NAN);
        TransferReport {
            bytes: flow.bytes,
            stopped: false,
            waited_s: 0.0,
            elapsed_s,
            throughput_bps: flow.bytes as f64 * 8.0 / elapsed_s,
            // the connection stands when its first subflow does
            connect_s: flow.subflows.iter().filter_map(|subflow| subflow.joined_s).fold(f64::INFINITY, f64::min),
            receiver_s: None,
            control: flow.control.into(),
            protocol,
            fallback: false,
            fallback_reason: None,
            path_manager: multipath.then_some(PathManagerKind::Userspace),
            notes: Vec::new(),
            subflows: flow.subflows.iter().zip(pairs).map(subflow).collect(),
            samples,
        }
    }
}
