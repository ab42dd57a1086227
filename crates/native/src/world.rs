//! `World`: a simulated network, and transfers in it. Its verbs take and give what those of `Client` do.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pathcast_base::{Exit, Fault, Nanos};
use pathcast_measure::{ClockState, FarEnd, Lone, MeasureLimits};
use pathcast_net::{Key, PathAddr};
use pathcast_scenario::{End, MAX_SUBFLOWS, addresses};
use pathcast_session::KeyRing;
use pathcast_sim::{FlowReport, Options};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::client::Job;
use crate::error::{Failed, json as text, read};
use crate::measure;
use crate::network::{direction, of_direction};

/// Second octet of generated addresses, which nobody can reach; emulated networks have another.
const NET: u8 = 78;
/// A transfer may take an hour of simulated time, or so many times what its bytes need on the slowest link.
const PATIENCE: Nanos = Nanos::secs(3600);
const PATIENCE_TIMES: u64 = 10;

/// Why a transfer has no result.
#[derive(Debug)]
enum Ended {
    /// The caller's wish.
    Interrupted,
    /// Paths, bytes delivered, bytes asked for, and the time that it took [s].
    GivenUp(String, u64, u64, f64),
    /// The same at the limit of simulated time.
    Late(String, u64, u64, f64),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Interrupted => f.write_str("interrupted"),
            Ended::GivenUp(paths, done, bytes, after) => write!(
                f,
                "the transfer over {paths} was given up after {after:.0} s of simulated time, since no path answered any \
                 more: {done} of {bytes} bytes had arrived"
            ),
            Ended::Late(paths, done, bytes, after) => write!(
                f,
                "the transfer over {paths} had not ended after {after:.0} s of simulated time, the limit: {done} of \
                 {bytes} bytes had arrived"
            ),
        }
    }
}

impl std::error::Error for Ended {}

impl Fault for Ended {
    fn code(&self) -> &'static str {
        match self {
            Ended::Interrupted => "interrupted",
            Ended::GivenUp(..) => "given-up",
            Ended::Late(..) => "stalled",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Ended::Interrupted => None,
            _ => Some("look at the rates and losses of these paths' links".into()),
        }
    }
    fn exit(&self) -> Exit {
        if matches!(self, Ended::Interrupted) { Exit::Interrupted } else { Exit::Runtime }
    }
}

/// A simulated network that stands until `close`. Threads may share it: they take turns, a transfer at a time.
#[pyclass(frozen)]
pub struct World(Mutex<Option<pathcast_sim::World>>);

impl World {
    fn turn(&self) -> MutexGuard<'_, Option<pathcast_sim::World>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transfer(
        &self,
        job: &Job,
        pairs: &[PathAddr],
        bytes: u64,
        control: Option<&str>,
        multipath: bool,
    ) -> Result<String, Failed> {
        let mut turn = self.turn();
        let world = open(&mut turn)?;
        if job.cancelled.load(Ordering::Relaxed) {
            return Err(Failed::new(Ended::Interrupted));
        }
        let paths = indices(world, pairs)?;
        if bytes == 0 {
            return Err(Failed::usage("a transfer of 0 bytes measures nothing".into()));
        }
        let options = Options { time: patience(world, &paths, bytes), ..Options::default() };
        let (start, mut done) = (world.now(), 0);
        let found = world.transfer(&paths, bytes, control, multipath, &options, |delivered| {
            done = delivered;
            job.acked.store(delivered, Ordering::Relaxed);
            options.stop.store(job.cancelled.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        let over = || pairs.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>().join(", ");
        let took = world.now().saturating_sub(start).as_secs_f64();
        match found.map_err(Failed::new)? {
            Some(report) if report.completion_s.is_some() => Ok(text(&document(world, &report, pairs, multipath))),
            Some(report) => Err(Failed::new(Ended::GivenUp(over(), report.bytes, bytes, took))),
            None if options.stop.load(Ordering::Relaxed) => Err(Failed::new(Ended::Interrupted)),
            // before the limit: nothing was left that could happen
            None if took < options.time.as_secs_f64() => Err(Failed::new(Ended::GivenUp(over(), done, bytes, took))),
            None => Err(Failed::new(Ended::Late(over(), done, bytes, took))),
        }
    }
}

fn open(turn: &mut Option<pathcast_sim::World>) -> Result<&mut pathcast_sim::World, Failed> {
    turn.as_mut().ok_or_else(|| Failed::runtime("closed", "the network is closed".into()))
}

fn indices(world: &pathcast_sim::World, pairs: &[PathAddr]) -> Result<Vec<usize>, Failed> {
    if pairs.is_empty() || pairs.len() > MAX_SUBFLOWS as usize {
        return Err(Failed::usage(format!("{} paths: allowed are 1 to {MAX_SUBFLOWS}", pairs.len())));
    }
    let scenario = world.scenario();
    let index = |pair: &PathAddr| {
        let names = || scenario.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", ");
        let unknown = || Failed::usage(format!("there is no path `{}`; allowed: {}", pair.name, names()));
        scenario.path(&pair.name).ok_or_else(unknown)
    };
    pairs.iter().map(index).collect()
}

/// How long a transfer may take: long enough for any that makes its way.
fn patience(world: &pathcast_sim::World, paths: &[usize], bytes: u64) -> Nanos {
    let scenario = world.scenario();
    let hops = paths.iter().flat_map(|&path| &scenario.paths[path].hops);
    let slowest = hops.filter_map(|hop| scenario.links[hop.link].params(hop.direction).rate).min();
    let needed = slowest.map_or(Nanos::ZERO, |rate| rate.time_for(bytes));
    PATIENCE.max(Nanos(needed.0.saturating_mul(PATIENCE_TIMES)))
}

/// The document that a transfer over real sockets has. What a simulated one does not have is null, or 0 for ports.
fn document(world: &pathcast_sim::World, report: &FlowReport, pairs: &[PathAddr], multipath: bool) -> Value {
    let elapsed_s = report.completion_s.unwrap_or(f64::NAN);
    let mss = world.scenario().path(&pairs[0].name).map_or(0, |path| world.mss(path, multipath));
    let subflow = |(subflow, pair): (&pathcast_sim::SubflowReport, &PathAddr)| {
        // the connection may be done before a subflow hears of its last segments; the stream's very last may be short
        let new = (subflow.sent - subflow.retransmits) * u64::from(mss);
        let first = if new < subflow.bytes + u64::from(mss) { subflow.bytes } else { new };
        json!({
            "path": subflow.path,
            "local": pair.local,
            "local_port": 0,
            "remote": pair.remote,
            "remote_port": 0,
            "bytes_sent": first + subflow.retransmitted_bytes,
            "bytes_acked": subflow.bytes,
            "bytes_retransmitted": subflow.retransmitted_bytes,
            "retransmits": subflow.retransmits,
            "rtt_s": subflow.srtt_s,
            "min_rtt_s": subflow.min_rtt_s,
            "cwnd_packets": subflow.cwnd_packets,
            "mss_bytes": mss,
            "joined_s": subflow.joined_s,
            "alive": subflow.alive,
            "note": subflow.joined_s.is_none().then_some("the far end did not answer the join in time"),
        })
    };
    json!({
        "bytes": report.bytes,
        "elapsed_s": elapsed_s,
        "throughput_bps": report.bytes as f64 * 8.0 / elapsed_s,
        // the connection stands when its first subflow does
        "connect_s": report.subflows.iter().filter_map(|subflow| subflow.joined_s).reduce(f64::min),
        "receiver_s": null,
        "control": report.control,
        "protocol": if multipath { "mptcp" } else { "tcp" },
        "fallback": false,
        "fallback_reason": null,
        "path_manager": multipath.then_some("userspace"),
        "notes": [],
        "subflows": report.subflows.iter().zip(pairs).map(subflow).collect::<Vec<_>>(),
    })
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (text, sets=Vec::new()))]
    fn new(py: Python<'_>, text: String, sets: Vec<(String, String)>) -> PyResult<Self> {
        py.detach(|| pathcast_sim::World::open(&text, &sets).map_err(|e| Failed::of(&*e)))
            .map(|world| World(Mutex::new(Some(world))))
            .map_err(|e| e.into_py(py))
    }

    /// The paths: names, the client's addresses (further ones for repeated subflows), the server's.
    fn paths(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut turn = self.turn();
            let scenario = open(&mut turn)?.scenario();
            let about = scenario.paths.iter().zip(addresses(scenario, NET)).map(
                |(path, addresses)| json!({ "name": path.name, "local": addresses.local, "remote": addresses.remote }),
            );
            Ok(text(&about.collect::<Vec<_>>()))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// A TCP transfer over one path.
    #[pyo3(signature = (job, path, bytes, control=None))]
    fn tcp(&self, py: Python<'_>, job: Py<Job>, path: String, bytes: u64, control: Option<String>) -> PyResult<String> {
        let job = job.get();
        py.detach(|| self.transfer(job, &[read(&path)?], bytes, control.as_deref(), false)).map_err(|e| e.into_py(py))
    }

    /// An MPTCP transfer over several paths, the first subflow on the first.
    #[pyo3(signature = (job, paths, bytes, control=None))]
    fn mptcp(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        paths: String,
        bytes: u64,
        control: Option<String>,
    ) -> PyResult<String> {
        let job = job.get();
        py.detach(|| self.transfer(job, &read::<Vec<_>>(&paths)?, bytes, control.as_deref(), true))
            .map_err(|e| e.into_py(py))
    }

    /// A measurement, by the same machines that real hosts carry.
    fn measure(&self, py: Python<'_>, job: Py<Job>, request: String) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let request: measure::Request = read(&request)?;
            let mut turn = self.turn();
            let world = open(&mut turn)?;
            let paths = indices(world, &request.paths)?;
            // hosts whose clocks are right know it, as processes of one host do
            let one = world.clock(End::Client) == world.clock(End::Server);
            let clock = ClockState { host: one.then_some([1; 32]), ..ClockState::default() };
            let key = Key::new("sim", [0; 32]).map_err(|e| Failed::usage(e.to_string()))?;
            let keys = KeyRing::new([key.clone()]);
            let far_end = FarEnd::new(keys, MeasureLimits::default(), clock, request.drawn("measure/server"));
            let client = request.machine(key, clock, request.drawn("measure/client"))?;
            let options = Options { time: PATIENCE, ..Options::default() };
            let found = world.session(Box::new(client), Box::new(Lone::new(far_end)), &paths, &options, |progress| {
                measure::tell(job, progress);
                options.stop.store(job.cancelled.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            measure::document(&found.map_err(Failed::new)?.result, Vec::new())
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// New parameters by direction.
    fn set(
        &self,
        py: Python<'_>,
        link: String,
        direction: Option<String>,
        changes: Vec<(String, String)>,
    ) -> PyResult<String> {
        py.detach(|| {
            let direction = self::direction(direction.as_deref())?;
            let mut turn = self.turn();
            let new = open(&mut turn)?.amend(&link, direction, &changes).map_err(|e| Failed::of(&*e))?;
            Ok(of_direction(&link, new))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Lets simulated time pass [s].
    fn wait(&self, py: Python<'_>, time_s: f64) -> PyResult<()> {
        py.detach(|| {
            let time = Duration::try_from_secs_f64(time_s).ok().and_then(|time| time.as_nanos().try_into().ok());
            let time = time.ok_or_else(|| Failed::usage(format!("cannot wait for {time_s} s")))?;
            open(&mut self.turn())?.wait(Nanos(time));
            Ok(())
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// The simulated time since the network stands [s].
    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| Ok(open(&mut self.turn())?.now().as_secs_f64())).map_err(|e: Failed| e.into_py(py))
    }

    /// What the links have done so far.
    fn ledger(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(text(&open(&mut self.turn())?.ledger()))).map_err(|e: Failed| e.into_py(py))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.turn().take()));
    }
}
