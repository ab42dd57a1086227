//! A run from its beginning to its end.

use std::ffi::OsString;
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pathcast_net::{Family, HostSockets, Protocol, SocketMaker};

use crate::account::{self, Account};
use crate::cgroup::{self, Cgroup};
use crate::control;
use crate::endpoints::{self, Endpoints};
use crate::error::LaunchError;
use crate::filter;
use crate::live::{Live, Parts};
use crate::maker::{self, Maker};
use crate::program::{self, Program};
use crate::report::Report;
use crate::signals::Passing;
use crate::spawn::spawn;
use crate::steered::{self, Keeping, Steered};
use crate::terminal::Terminal;
use crate::wait::wait;

/// How long a program's last bytes may go on being acknowledged after its end before the report is written …
const LAST_BYTES: Duration = Duration::from_secs(2);
/// … while so long does not pass without any.
const SILENCE: Duration = Duration::from_secs(1);
/// How long the socket maker has to see that nobody needs it any more.
const PATIENCE: Duration = Duration::from_millis(500);

/// A program, and how its TCP is to be run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Names the run, and its cgroup `pathcast-<id>`: lower-case letters, digits and `-`, at most 24.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// A controller as the kernel calls it; none: the system's.
    pub control: Option<String>,
    /// Multipath TCP in the place of TCP.
    pub mptcp: bool,
    /// Local addresses for further subflows. Needs `mptcp`.
    pub paths: Vec<IpAddr>,
    /// A name or a number; none: who called sudo, else who we are.
    pub user: Option<String>,
    /// What [`Live::allow`] leaves of `paths`, or of what [`Live::renew`] has put in their place, holds for first subflows, too: connect(2) waits for us whatever they are.
    /// The program, and all that it has started, ends with the run, and where the calling thread is killed: nobody would
    /// keep it from what is over.
    pub steered: bool,
    /// A network whose paths join one pair of addresses: a subflow for each. Needs `mptcp`, and no `paths`.
    pub network: Option<Steered>,
    /// For those who look at it, and change it, while it lasts.
    pub live: Live,
    /// Where it is written which endpoints pathcast has made: pathcast's run directory.
    pub directory: PathBuf,
}

/// What a run makes on this host: the `made` of a state record, to be written before the run begins.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Made {
    /// For [`crate::remove`].
    pub cgroups: Vec<String>,
    /// For [`crate::remove_endpoint`].
    pub endpoints: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The program's exit status, 128 + n after signal n.
    pub status: i32,
    /// What its TCP did.
    pub report: Report,
}

impl Launch {
    /// A run of `command` with everything as the system has it, under an id of its own.
    pub fn new(command: impl IntoIterator<Item = impl Into<OsString>>) -> Launch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Launch {
            id: format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)),
            command: command.into_iter().map(Into::into).collect(),
            control: None,
            mptcp: false,
            paths: Vec::new(),
            user: None,
            steered: false,
            network: None,
            live: Live::default(),
            directory: "/run/pathcast".into(),
        }
    }

    /// What [`Launch::run`] will make. Call it in the process, and on the thread, that calls that.
    pub fn made(&self) -> Made {
        let endpoints = self.paths.iter().map(IpAddr::to_string).collect();
        Made { cgroups: vec![cgroup::path_of(&self.id)], endpoints }
    }

    /// Runs the program and waits for its end; standard streams, environment, working directory and process group are
    /// ours. Signals that this process gets are passed on to it.
    ///
    /// Its end ends the run. What it leaves running in the background goes on: open connections keep controller and
    /// subflows, sockets are still of Multipath TCP, but new connections are under the system's controller, and
    /// endpoints that were added are gone. What a steered one leaves is ended.
    ///
    /// # Errors
    /// `Missing` privileges and features (exit 5); `Command` with status 127 or 126; wrong arguments (exit 2). What was
    /// made until then is removed.
    pub fn run(&self) -> Result<Outcome, LaunchError> {
        Ok(self.run_unless(|| false, |_| {})?.expect("it is not called off"))
    }

    /// The same; `called_off` is asked once, when signals are passed on already and the program is not yet started. If it
    /// says so, because of a signal that came before, the program is not started and there is no outcome. `ended` hears of
    /// the status as soon as the program has ended, before all that the report waits for.
    ///
    /// # Errors
    /// As [`Launch::run`].
    pub fn run_unless(
        &self,
        called_off: impl FnOnce() -> bool,
        ended: impl FnOnce(i32),
    ) -> Result<Option<Outcome>, LaunchError> {
        self.check()?;
        let account = account::choose(self.user.as_deref())?;
        if let Some((what, mend)) = filter::unknown_machine().filter(|_| account.changes) {
            return Err(LaunchError::missing(what, mend));
        }
        if let Some(name) = &self.control {
            program::ready()?;
            control::check(name)?;
        }
        let endpoints = self.endpoints()?.map(Arc::new);
        let mut notes = notes(&account);
        let place = match Place::make(self) {
            Ok(place) => Some(place),
            // without a controller to set, the run only counts less
            Err(error @ LaunchError::Missing { .. }) if self.control.is_none() => {
                notes.push(format!("connections are not counted: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        let processes = place.as_ref().map(|p| p.cgroup.processes()).transpose()?;
        let no_new_privs = (self.mptcp || account.changes) && !program::may_filter();
        if no_new_privs {
            notes.push(
                "without CAP_SYS_ADMIN, programs that it runs with more rights than its own (sudo) do not get them"
                    .into(),
            );
        }
        let killer = place.as_ref().filter(|_| self.steered).and_then(|place| place.cgroup.killer());
        let channel = self.network.as_ref().map(|_| maker::pair()).transpose();
        let channel = channel.map_err(LaunchError::system("making a channel to the socket maker"))?;
        let told = channel.as_ref().map(|(_, theirs)| theirs);
        let maker =
            self.mptcp.then(|| self.maker(processes.as_ref(), killer.as_ref(), told)).transpose()?.map(Arc::new);
        let keeping = match (channel, &self.network, &place) {
            (Some((beginnings, _)), Some(network), Some(place)) => {
                Some(Keeping::start(network, Arc::clone(&place.program), beginnings)?)
            }
            (_, Some(_), None) => program::ready().map(|()| None)?,
            _ => None,
        };
        let terminal = Terminal::remember();
        let passing = Passing::begin()
            .ok_or_else(|| LaunchError::Argument("64 programs are being run by this process already".into()))?;
        let _shown = self.show(place.as_ref(), maker.as_ref(), endpoints.as_ref());
        if called_off() {
            return Ok(None);
        }
        let start = Instant::now();
        let spawn = || spawn(&self.command, &account, processes, maker.as_deref(), no_new_privs, self.steered);
        let pid = self.live.start(spawn)?;
        passing.started(pid);
        let waited = wait(pid, &passing, &terminal, || self.live.ended());
        let elapsed_s = start.elapsed().as_secs_f64();
        let status = waited.map_err(LaunchError::system("waiting for the program"))?;
        ended(status);
        terminal.restore(status > 128);
        let mut report = self.report(account.name, status, elapsed_s, notes);
        if let Some(keeping) = keeping {
            let kept = keeping.end();
            report.notes.extend(steered::notes(&kept));
            report.steered = Some(kept);
        }
        self.finish(&mut report, start, place.as_ref(), maker.as_deref());
        Ok(Some(Outcome { status, report }))
    }

    fn check(&self) -> Result<(), LaunchError> {
        let wrong = |text: String| Err(LaunchError::Argument(text));
        let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        if self.id.is_empty() || self.id.len() > 24 || !self.id.bytes().all(allowed) {
            return wrong(format!("`{}` is not a name: lower-case letters, digits and `-`, at most 24", self.id));
        }
        if self.command.first().is_none_or(|c| c.is_empty()) {
            return wrong("no command given".into());
        }
        if !self.paths.is_empty() && !self.mptcp {
            return wrong("--paths needs --mptcp".into());
        }
        if self.network.as_ref().is_some_and(|network| network.paths.is_empty() || !self.paths.is_empty()) {
            return wrong("a steered network needs paths of its own, and no addresses".into());
        }
        if self.network.is_some() && !self.mptcp {
            return wrong("paths of a steered network need --mptcp".into());
        }
        if let Some((what, mend)) = filter::missing().filter(|_| self.mptcp) {
            return Err(LaunchError::missing(what, mend));
        }
        if self.mptcp
            && let Err(error) = HostSockets.tcp(Family::V4, Protocol::Mptcp)
        {
            let what = format!("Multipath TCP ({error})");
            return Err(LaunchError::missing(what, "a kernel with CONFIG_MPTCP, and `sysctl net.mptcp.enabled=1`"));
        }
        if self.paths.is_empty() { Ok(()) } else { endpoints::check(&self.paths) }
    }

    /// From now on the run is there for its `live`, until what is returned goes.
    fn show(&self, place: Option<&Place>, maker: Option<&Arc<Maker>>, endpoints: Option<&Arc<Endpoints>>) -> Shown<'_> {
        self.live.set(place.map(|place| Parts {
            cgroup: Arc::clone(&place.cgroup),
            program: Arc::clone(&place.program),
            maker: maker.cloned(),
            endpoints: endpoints.cloned(),
            pid: None,
        }));
        Shown(&self.live)
    }

    fn endpoints(&self) -> Result<Option<Endpoints>, LaunchError> {
        if self.paths.is_empty() {
            return Ok(None);
        }
        Endpoints::add(&self.paths, &self.directory).map(Some)
    }

    fn maker(
        &self,
        processes: Option<&File>,
        killer: Option<&File>,
        beginnings: Option<&OwnedFd>,
    ) -> Result<Maker, LaunchError> {
        let control = self.control.as_deref().unwrap_or_default();
        Maker::start(control, processes, &self.paths, self.steered, killer, beginnings)
            .map_err(LaunchError::system("starting the socket maker"))
    }

    fn report(&self, user: String, status: i32, elapsed_s: f64, notes: Vec<String>) -> Report {
        Report {
            schema: "pathcast.run/1",
            command: self.command.iter().map(|c| c.to_string_lossy().into_owned()).collect(),
            user,
            control: self.control.clone(),
            mptcp: self.mptcp,
            status,
            elapsed_s,
            acked_s: elapsed_s,
            counted: false,
            connections: 0,
            mptcp_connections: 0,
            open: 0,
            bytes_sent: 0,
            bytes_received: 0,
            sent_bps: 0.0,
            received_bps: 0.0,
            paths: Vec::new(),
            uncontrolled: 0,
            uncounted: 0,
            mptcp_sockets: 0,
            plain_sockets: 0,
            steered: None,
            notes,
        }
    }

    fn finish(&self, report: &mut Report, start: Instant, place: Option<&Place>, maker: Option<&Maker>) {
        if let Some(place) = place {
            if let Some(last) = place.last_bytes() {
                report.acked_s = last.duration_since(start).as_secs_f64();
            }
            let (sums, open) = place.program.sums();
            report.fill(&sums, open.len() as u64, place.program.faults());
        }
        let own = usize::from(maker.is_some());
        let mut background = place.map_or(0, |p| p.cgroup.left_behind(own));
        let ended = place.filter(|_| self.steered && background > own).is_some_and(|p| p.cgroup.end());
        if let Some(maker) = maker {
            // one that has ended says that nobody is left, though the cgroup may still list those that are just ending
            background = match maker.ends_within(if background > own { Duration::ZERO } else { PATIENCE }) {
                true => 0,
                false => background.saturating_sub(own), // without the maker itself
            };
            (report.mptcp_sockets, report.plain_sockets) = maker.counts(); // it counts after it has answered
            report.notes.extend(
                maker
                    .silent()
                    .iter()
                    .map(|address| format!("the line of {address} did not answer: connections began over another one")),
            );
        }
        if ended {
            report.notes.push("what it left in the background was ended: nothing would keep it within the plan".into());
        } else if background > 0 {
            let text = "processes that it left in the background go on; their new connections are not controlled";
            report.notes.push(format!("{background} {text}"));
        }
    }
}

fn notes(account: &Account) -> Vec<String> {
    let root = account.uid == 0;
    root.then(|| "it ran as root; with --user NAME it runs as somebody else".to_owned()).into_iter().collect()
}

/// A run that others can see.
struct Shown<'a>(&'a Live);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// The cgroup with its program.
struct Place {
    cgroup: Arc<Cgroup>,
    program: Arc<Program>,
}

impl Place {
    fn make(launch: &Launch) -> Result<Place, LaunchError> {
        program::ready()?;
        let cgroup = Cgroup::create(&cgroup::path_of(&launch.id))?;
        let program = Program::attach(launch.control.as_deref().unwrap_or_default(), &cgroup.open()?)?;
        Ok(Place { cgroup: Arc::new(cgroup), program: Arc::new(program) })
    }

    /// Waits while bytes that the program has written before its end are still being acknowledged: when the last of them
    /// were. None: there are none.
    fn last_bytes(&self) -> Option<Instant> {
        let start = Instant::now();
        let mut last: Option<(Instant, (usize, u64))> = None;
        loop {
            let flows = self.program.flows();
            let pending: u64 = flows.iter().map(|f| f.pending).sum();
            let seen = (flows.len(), flows.iter().map(|f| f.counts.acked).sum());
            if pending == 0 && last.is_none() {
                return None;
            }
            let moved = last.filter(|&(_, before)| before == seen).map_or_else(Instant::now, |(at, _)| at);
            if pending == 0 || start.elapsed() >= LAST_BYTES || moved.elapsed() >= SILENCE {
                return Some(moved);
            }
            last = Some((moved, seen));
            sleep(Duration::from_millis(10));
        }
    }
}
