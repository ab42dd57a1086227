//! Transfers in a network that stands, one after another. What one has come to is the record that a transfer over real sockets
//! has.

use std::sync::atomic::{AtomicBool, Ordering};

use pathcast_base::{Exit, Fault, Nanos, PathAddr, PathManagerKind, Protocol, SubflowReport, TransferReport};
use pathcast_scenario::{End, MAX_SUBFLOWS};

use crate::conn::Owner;
use crate::error::SimError;
use crate::handshake::Wanted;
use crate::observe::Nobody;
use crate::report::{self, FlowReport};
use crate::run::{SLICE, World};
use crate::sim::{Sim, Stopped};

/// A transfer may take an hour of simulated time, or so many times what its bytes need on the slowest link.
const PATIENCE: Nanos = Nanos::secs(3600);
const PATIENCE_TIMES: u64 = 10;

/// How far a transfer has come that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// The paths' names.
    pub paths: String,
    /// Application bytes that had arrived.
    pub arrived: u64,
    /// Application bytes that were asked for.
    pub bytes: u64,
    /// Simulated time that it took [s].
    pub after_s: f64,
}

/// Why a transfer has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransferError {
    /// Too few or too many paths.
    #[error("{0} paths: allowed are 1 to {MAX_SUBFLOWS}")]
    Paths(usize),
    /// A path that the scenario does not have.
    #[error("there is no path `{name}`; allowed: {allowed}")]
    NoPath {
        /// Its name.
        name: String,
        /// Those that there are.
        allowed: String,
    },
    /// Nothing to send.
    #[error("a transfer of 0 bytes measures nothing")]
    Empty,
    /// An unknown controller.
    #[error(transparent)]
    Refused(#[from] SimError),
    /// The caller's wish.
    #[error("interrupted")]
    Interrupted,
    /// No path answers.
    #[error(
        "the transfer over {} was given up after {:.0} s of simulated time, since no path answered any more: {} of {} bytes \
         had arrived", .0.paths, .0.after_s, .0.arrived, .0.bytes
    )]
    GivenUp(Unfinished),
    /// Too much simulated time.
    #[error(
        "the transfer over {} had not ended after {:.0} s of simulated time, the limit: {} of {} bytes had arrived",
        .0.paths, .0.after_s, .0.arrived, .0.bytes
    )]
    Late(Unfinished),
}

impl Fault for TransferError {
    fn code(&self) -> &'static str {
        match self {
            TransferError::Paths(_) | TransferError::NoPath { .. } | TransferError::Empty => "usage",
            TransferError::Refused(error) => error.code(),
            TransferError::Interrupted => "interrupted",
            TransferError::GivenUp(_) => "given-up",
            TransferError::Late(_) => "stalled",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            TransferError::Refused(error) => error.hint(),
            TransferError::GivenUp(_) | TransferError::Late(_) => {
                Some("look at the rates and losses of these paths' links".into())
            }
            _ => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            TransferError::Paths(_) | TransferError::NoPath { .. } | TransferError::Empty => Exit::Usage,
            TransferError::Refused(error) => error.exit(),
            TransferError::Interrupted => Exit::Interrupted,
            TransferError::GivenUp(_) | TransferError::Late(_) => Exit::Runtime,
        }
    }
}

impl World {
    /// The places of these paths in the scenario, by their names.
    ///
    /// # Errors
    /// None, more than a connection has, or one that there is not.
    pub fn indices(&self, pairs: &[PathAddr]) -> Result<Vec<usize>, TransferError> {
        if pairs.is_empty() || pairs.len() > MAX_SUBFLOWS as usize {
            return Err(TransferError::Paths(pairs.len()));
        }
        let scenario = self.scenario();
        let index = |pair: &PathAddr| {
            let names = || scenario.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", ");
            let unknown = || TransferError::NoPath { name: pair.name.clone(), allowed: names() };
            scenario.path(&pair.name).ok_or_else(unknown)
        };
        pairs.iter().map(index).collect()
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
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<TransferReport, TransferError> {
        let paths = self.indices(pairs)?;
        if bytes == 0 {
            return Err(TransferError::Empty);
        }
        if !progress(0) {
            return Err(TransferError::Interrupted);
        }
        let (start, time) = (self.now(), self.patience(&paths, bytes));
        let (mut arrived, stop) = (0, AtomicBool::new(false));
        let flow = self.flow(&paths, bytes, control, protocol == Protocol::Mptcp, time, &stop, |delivered| {
            arrived = delivered;
            stop.store(!progress(delivered), Ordering::Relaxed);
        })?;
        let took = self.now().saturating_sub(start);
        let names = || pairs.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>().join(", ");
        let unfinished = |arrived| Unfinished { paths: names(), arrived, bytes, after_s: took.as_secs_f64() };
        match flow {
            Some(flow) if flow.completion_s.is_some() => Ok(self.record(&flow, pairs, &paths, protocol)),
            Some(flow) => Err(TransferError::GivenUp(unfinished(flow.bytes))),
            None if stop.into_inner() => Err(TransferError::Interrupted),
            // before the limit: nothing was left that could happen
            None if took < time => Err(TransferError::GivenUp(unfinished(arrived))),
            None => Err(TransferError::Late(unfinished(arrived))),
        }
    }

    /// How long a transfer may take: long enough for any that makes its way.
    fn patience(&self, paths: &[usize], bytes: u64) -> Nanos {
        let scenario = self.scenario();
        let hops = paths.iter().flat_map(|&path| &scenario.paths[path].hops);
        let slowest = hops.filter_map(|hop| scenario.links[hop.link].params(hop.direction).mean_rate()).min();
        let needed = slowest.map_or(Nanos::ZERO, |rate| rate.time_for(bytes));
        PATIENCE.max(Nanos(needed.0.saturating_mul(PATIENCE_TIMES)))
    }

    /// A flow over paths by their indices, to its end; none if `stop` was set, or `time` ran out.
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn flow(
        &mut self,
        paths: &[usize],
        bytes: u64,
        control: Option<&str>,
        multipath: bool,
        time: Nanos,
        stop: &AtomicBool,
        mut progress: impl FnMut(u64),
    ) -> Result<Option<FlowReport>, SimError> {
        let scenario = self.sim.scenario.clone();
        let control = self.sim.setup.control(&scenario, control.unwrap_or("cubic"), "control")?;
        let wanted = Wanted {
            owner: Owner::Nobody,
            paths: paths.to_vec(),
            multipath,
            to: End::Server,
            control,
            bytes: Some(bytes),
        };
        let now = self.sim.now;
        let flow = self.sim.add_flow("transfer".into(), wanted, None, now, None);
        let over = |sim: &Sim<Nobody>| {
            let flow = &sim.flows[flow as usize];
            flow.completed.is_some() || flow.failed
        };
        let until = now.saturating_add(time.0);
        while !over(&self.sim) {
            let stopped = self.sim.run(until, SLICE, over);
            progress(self.sim.delivered(flow));
            if stop.load(Ordering::Relaxed) || (stopped == Stopped::Complete && !over(&self.sim)) {
                break;
            }
        }
        let report = self.sim.flow_report(&self.sim.flows[flow as usize]);
        if !over(&self.sim) {
            if let Some(conn) = self.sim.flows[flow as usize].conn {
                self.sim.close(conn);
                self.sim.flows[flow as usize].conn = None;
            }
            return Ok(None);
        }
        Ok(Some(report))
    }

    /// The record of a flow that is complete. What simulated hosts do not have is absent, or 0 for ports.
    fn record(&self, flow: &FlowReport, pairs: &[PathAddr], paths: &[usize], protocol: Protocol) -> TransferReport {
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
        }
    }
}
