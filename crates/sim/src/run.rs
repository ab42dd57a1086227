//! Running: a scenario to its end, or a world that stands and does one transfer after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pathcast_base::{Exit, Fault, Nanos};
use pathcast_link::Params;
use pathcast_scenario::{Direction, Scenario, Template};

use crate::error::{LIMIT_HINT, SimError};
use crate::network::wire;
use crate::observe::{Nobody, Observer};
use crate::report::Report;
use crate::series::Series;
use crate::setup::stands;
use crate::sim::{Sim, Stopped};
use crate::trace::Trace;

/// Events between two looks at the caller's wish to stop.
pub(crate) const SLICE: u64 = 1 << 16;

/// Most events if nobody says otherwise: some hours of work.
pub(crate) const EVENTS: u64 = 100_000_000_000;

/// How a simulation runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Most events; default 100 thousand million, some hours of work.
    pub events: u64,
    /// Most simulated time; default 1000 h. A scenario's own `end` may come before.
    pub time: Nanos,
    /// Traces rows at most so often; zero: at every ACK. None: no trace.
    pub trace: Option<Nanos>,
    /// Set by the caller to end the run early.
    pub stop: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            events: EVENTS,
            time: Nanos(3_600_000_000_000_000),
            trace: None,
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results.
    pub report: Report,
    /// If one was asked for.
    pub trace: Option<Trace>,
}

/// Runs a scenario. A run that meets a limit gives its results so far and says so in the report.
///
/// # Errors
/// A scenario that only the simulator can refuse: an unknown controller or parameter, nothing that ends.
pub fn simulate(scenario: Scenario, options: &Options) -> Result<Outcome, SimError> {
    match options.trace {
        None => Ok(Outcome { report: finish(scenario, options, Nobody)?.0, trace: None }),
        Some(every) => {
            let (report, trace) = finish(scenario, options, Trace::new(every))?;
            Ok(Outcome { report, trace: Some(trace) })
        }
    }
}

/// Runs a scenario as [`simulate`] does, and samples its flows `every` so often, which must be above zero.
///
/// # Errors
/// As [`simulate`].
pub fn sampled(scenario: Scenario, options: &Options, every: Nanos) -> Result<(Report, Series), SimError> {
    finish(scenario, options, Series::new(every.max(Nanos(1))))
}

/// CPU time of this thread [s].
fn cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn finish<O: Observer>(scenario: Scenario, options: &Options, observer: O) -> Result<(Report, O), SimError> {
    let end = scenario.end.map(|end| end.0);
    let mut sim = Sim::new(scenario, observer)?;
    sim.make_flows();
    if end.is_none() && sim.unfinished == 0 {
        return Err(SimError::Endless);
    }
    let until = end.unwrap_or(u64::MAX - 1).min(options.time.0);
    let (wall, work) = (Instant::now(), cpu());
    let mut stopped;
    loop {
        let left = options.events.saturating_sub(sim.events);
        stopped = sim.run(until, left.min(SLICE), |sim| end.is_none() && sim.unfinished == 0);
        if stopped != Stopped::Events {
            break;
        }
        if options.stop.load(Ordering::Relaxed) {
            stopped = Stopped::Interrupted;
            break;
        }
        if left <= SLICE {
            break;
        }
    }
    if end.is_some() && stopped == Stopped::Complete {
        sim.now = sim.now.max(until); // also where nothing happens any more
    }
    let complete = match end {
        Some(end) => end <= options.time.0,
        None => sim.unfinished == 0,
    };
    if stopped == Stopped::Complete && !complete {
        stopped = Stopped::Time;
    }
    sim.observe();
    let (cpu_s, wall_s) = (cpu() - work, wall.elapsed().as_secs_f64());
    let report = sim.report(stopped, cpu_s, wall_s);
    sim.check().map_err(SimError::Unbalanced)?;
    Ok((report, sim.observer))
}

/// A network that stands: its cross traffic goes on from one transfer to the next. The scenario's own flows are not run.
pub struct World {
    pub(crate) sim: Sim<Nobody>,
    /// Most events of one transfer, or of one pause.
    pub(crate) events: u64,
    /// If it was made by [`World::open`].
    pub(crate) source: Option<Source>,
}

/// Why a network cannot be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a network cannot be copied while a measurement goes on in it")]
pub struct Busy;

impl Fault for Busy {
    fn code(&self) -> &'static str {
        "busy"
    }
    fn hint(&self) -> Option<String> {
        Some("copy it before the measurement or after it".into())
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Why time did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PauseError {
    /// Too many events.
    #[error("{time} of simulated time had not passed after {limit} events of the simulator, the limit")]
    Events {
        /// What was to pass.
        time: Nanos,
        /// The limit.
        limit: u64,
    },
    /// The caller's wish.
    #[error("interrupted")]
    Interrupted,
}

impl Fault for PauseError {
    fn code(&self) -> &'static str {
        match self {
            PauseError::Events { .. } => "event-limit",
            PauseError::Interrupted => "interrupted",
        }
    }
    fn hint(&self) -> Option<String> {
        matches!(self, PauseError::Events { .. }).then(|| LIMIT_HINT.into())
    }
    fn exit(&self) -> Exit {
        match self {
            PauseError::Events { .. } => Exit::Runtime,
            PauseError::Interrupted => Exit::Interrupted,
        }
    }
}

/// The text that a world was made from, with what was set over it, at its beginning and since.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub template: Arc<Template>,
    pub sets: Vec<(String, String)>,
    /// Changes of the scenario that our copy of the links has seen.
    pub seen: usize,
}

impl World {
    /// The network of a scenario at time zero.
    ///
    /// # Errors
    /// As [`simulate`].
    pub fn new(scenario: Scenario) -> Result<World, SimError> {
        let sim = Sim::new(scenario, Nobody)?;
        stands(&sim.scenario, 0, &sim.scenario.changes)?;
        Ok(World { sim, events: EVENTS, source: None })
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.sim.scenario
    }

    /// Its clock.
    pub fn now(&self) -> Nanos {
        Nanos(self.sim.now)
    }

    /// Payload bytes of a full segment of TCP, or of Multipath TCP, over a path by its index.
    pub fn mss(&self, path: usize, multipath: bool) -> u32 {
        let v6 = self.sim.scenario.paths[path].ip == 6;
        self.sim.config.mss[usize::from(multipath) + 2 * usize::from(v6)]
    }

    /// The same network as it stands now: packets, queues, connections, plans and random streams. What happens in the one
    /// does not happen in the other, and the same in both is the same to the last bit.
    ///
    /// # Errors
    /// A session of machines that was not concluded.
    pub fn copy(&self) -> Result<World, Busy> {
        if self.sim.machines.busy() {
            return Err(Busy);
        }
        Ok(World { sim: self.sim.clone(), events: self.events, source: self.source.clone() })
    }

    /// Random numbers from now on depend on `seed` too; what is drawn already stays, as the next packet of cross traffic.
    pub fn reseed(&mut self, seed: u64) {
        self.sim.reseed(seed);
    }

    /// The most events of a transfer or a pause that begins from now on; default 100 thousand million.
    pub fn limit(&mut self, events: u64) {
        self.events = events;
    }

    /// That limit.
    pub fn limited(&self) -> u64 {
        self.events
    }

    /// Lets time pass, within the limit of events, until `stop` is set.
    ///
    /// # Errors
    /// One of these two.
    pub fn pass(&mut self, time: Nanos, stop: &AtomicBool) -> Result<(), PauseError> {
        let until = self.sim.now.saturating_add(time.0);
        let last = self.sim.events.saturating_add(self.events);
        while self.sim.run(until, SLICE.min(last - self.sim.events), |_| false) == Stopped::Events {
            if stop.load(Ordering::Relaxed) {
                return Err(PauseError::Interrupted);
            }
            if self.sim.events >= last {
                return Err(PauseError::Events { time, limit: self.events });
            }
        }
        self.sim.now = until; // also where nothing happens any more
        Ok(())
    }

    /// Lets time pass, however much happens meanwhile.
    pub fn wait(&mut self, time: Nanos) {
        let until = self.sim.now.saturating_add(time.0);
        self.sim.run(until, u64::MAX, |_| false);
        self.sim.now = until; // also where nothing happens any more
    }

    /// New parameters of one direction of a link from now on; they must have passed the scenario's checks.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn set(&mut self, link: usize, direction: Direction, params: Params) {
        let l = &mut self.sim.scenario.links[link];
        *(if direction == Direction::Ab { &mut l.ab } else { &mut l.ba }) = params.clone();
        self.sim.network.set(self.sim.now, wire(link, direction), params);
    }

    /// Checks that no packet was made or lost by the engine itself.
    ///
    /// # Errors
    /// What does not add up.
    pub fn check(&mut self) -> Result<(), SimError> {
        self.sim.check().and_then(|()| self.sim.check_payloads()).map_err(SimError::Unbalanced)
    }
}
