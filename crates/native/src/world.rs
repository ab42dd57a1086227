//! `World`: a simulated network, and transfers in it. Its verbs take and give what those of `Client` do.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pathcast_base::{Nanos, PathAddr, Protocol};
use pathcast_measure::{ClockState, FarEnd, FarEndMachine, MeasureLimits};
use pathcast_scenario::{End, Template, addresses};
use pathcast_session::{Key, KeyRing};
use pathcast_sim::{NET, Options, Order, processors};
use pyo3::prelude::*;
use serde_json::json;

use crate::client::Job;
use crate::error::{Failed, json as text, read};
use crate::network::direction;
use crate::{NAME, many, measure};

/// A measurement may take so much simulated time.
const LONGEST: Nanos = Nanos::secs(3600);
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
        protocol: Protocol,
        plain: bool,
    ) -> Result<String, Failed> {
        let order = Order { pairs, bytes, control, protocol, every: None, plain };
        let report = open(&mut self.turn())?.carry(&order, |delivered| {
            job.acked.store(delivered, Ordering::Relaxed);
            !job.cancelled.load(Ordering::Relaxed)
        });
        report.map(|report| text(&report)).map_err(Failed::new)
    }
}

fn open(turn: &mut Option<pathcast_sim::World>) -> Result<&mut pathcast_sim::World, Failed> {
    turn.as_mut().ok_or_else(|| Failed::runtime("closed", "the network is closed".into()))
}

#[pymethods]
impl World {
    #[new]
    #[pyo3(signature = (text, sets=Vec::new(), base=None, name=NAME))]
    fn new(
        py: Python<'_>,
        text: String,
        sets: Vec<(String, String)>,
        base: Option<PathBuf>,
        name: &str,
    ) -> PyResult<Self> {
        py.detach(|| {
            let template = Template::named(&text, name, base.as_deref()).map_err(Failed::new)?;
            pathcast_sim::World::of(template, &sets).map_err(|e| Failed::of(&*e))
        })
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
        py.detach(|| self.transfer(job, &[read(&path)?], bytes, control.as_deref(), Protocol::Tcp, true))
            .map_err(|e| e.into_py(py))
    }

    /// An MPTCP transfer over several paths, the first subflow on the first.
    #[pyo3(signature = (job, paths, bytes, control=None, plain=false))]
    fn mptcp(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        paths: String,
        bytes: u64,
        control: Option<String>,
        plain: bool,
    ) -> PyResult<String> {
        let job = job.get();
        py.detach(|| self.transfer(job, &read::<Vec<_>>(&paths)?, bytes, control.as_deref(), Protocol::Mptcp, plain))
            .map_err(|e| e.into_py(py))
    }

    /// A measurement, by the same machines that real hosts carry.
    fn measure(&self, py: Python<'_>, job: Py<Job>, request: String) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let request: measure::Request = read(&request)?;
            let mut turn = self.turn();
            let world = open(&mut turn)?;
            let paths = world.indices(&request.paths).map_err(Failed::new)?;
            // hosts whose clocks are right know it, as processes of one host do
            let one = world.clock(End::Client) == world.clock(End::Server);
            let clock = ClockState { host: one.then_some([1; 32]), ..ClockState::default() };
            let key = Key::new("sim", [0; 32]).map_err(|e| Failed::usage(e.to_string()))?;
            let keys = KeyRing::new([key.clone()]);
            let far_end = FarEnd::new(keys, MeasureLimits::default(), clock, request.drawn("measure/server"));
            let client = request.machine(key, clock, request.drawn("measure/client"))?;
            let stop = Arc::clone(&job.cancelled);
            let options = Options { time: LONGEST, events: world.limited(), stop, ..Options::default() };
            let far_end = Box::new(FarEndMachine::new(far_end));
            let found = world.session(Box::new(client), far_end, &paths, &options, |progress| {
                measure::tell(job, progress);
            });
            measure::document(&found.map_err(Failed::new)?.result, Vec::new())
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Changes a link from now on; the change in the form of `sets`.
    fn set(
        &self,
        py: Python<'_>,
        link: String,
        direction: Option<String>,
        changes: Vec<(String, String)>,
    ) -> PyResult<Vec<(String, String)>> {
        py.detach(|| {
            let direction = self::direction(direction.as_deref())?;
            let mut turn = self.turn();
            let (_, sets) = open(&mut turn)?.amend(&link, direction, &changes).map_err(|e| Failed::of(&*e))?;
            Ok(sets)
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Lets simulated time pass [s].
    fn wait(&self, py: Python<'_>, job: Py<Job>, time_s: f64) -> PyResult<()> {
        let job = job.get();
        py.detach(|| {
            let time = Duration::try_from_secs_f64(time_s).ok().and_then(|time| time.as_nanos().try_into().ok());
            let time = time.ok_or_else(|| Failed::usage(format!("cannot wait for {time_s} s")))?;
            open(&mut self.turn())?.pass(Nanos(time), &job.cancelled).map_err(Failed::new)
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// The simulated time since the network stands [s].
    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        py.detach(|| Ok(open(&mut self.turn())?.now().as_secs_f64())).map_err(|e: Failed| e.into_py(py))
    }

    /// The most events of each transfer, measurement or wait from now on.
    fn limit(&self, py: Python<'_>, events: u64) -> PyResult<()> {
        py.detach(|| {
            open(&mut self.turn())?.limit(events);
            Ok(())
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// The same network as it stands, which goes on by itself; with a seed, by other random numbers from now on.
    #[pyo3(signature = (seed=None))]
    fn copy(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<World> {
        py.detach(|| {
            let mut copy = open(&mut self.turn())?.copy().map_err(Failed::new)?;
            if let Some(seed) = seed {
                copy.reseed(seed);
            }
            Ok(World(Mutex::new(Some(copy))))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// Transfers, each in a copy of this network as it stands, by so many threads or as many as there are processors: the
    /// outcome of each, in their order.
    #[pyo3(signature = (job, transfers, threads=None))]
    fn continuations(
        &self,
        py: Python<'_>,
        job: Py<Job>,
        transfers: String,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let job = job.get();
        py.detach(|| {
            let wanted = many::continuations(read(&transfers)?);
            let mut turn = self.turn();
            let found = open(&mut turn)?.continuations(&wanted, threads.unwrap_or_else(processors), &job.cancelled);
            Ok(text(&many::outcomes(found)))
        })
        .map_err(|e: Failed| e.into_py(py))
    }

    /// What the links have done so far.
    fn ledger(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(text(&open(&mut self.turn())?.ledger()))).map_err(|e: Failed| e.into_py(py))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.turn().take()));
    }
}
