//! Further subflows of a program's connections over a network that is steered: one address pair, several paths.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_net::{Fabric, HostSockets, Keeper, Kept};

use crate::error::LaunchError;
use crate::program::Program;

/// Between two looks at whether the run has ended.
const LOOK: Duration = Duration::from_millis(100);

/// A network that carries each flow over the path that it is told, and the paths' names, that of first subflows first.
#[derive(Clone)]
pub struct Steered {
    /// Who is told.
    pub fabric: Arc<dyn Fabric>,
    /// One subflow each.
    pub paths: Vec<String>,
}

impl fmt::Debug for Steered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Steered({:?})", self.paths)
    }
}

/// The thread that makes the subflows.
pub(crate) struct Keeping {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Kept>>,
}

impl Keeping {
    /// Before the program begins.
    ///
    /// # Errors
    /// `Missing` without the privilege; the system's.
    pub fn start(network: &Steered, program: Arc<Program>) -> Result<Keeping, LaunchError> {
        let keeper = Keeper::new(Arc::new(HostSockets), Arc::clone(&network.fabric), &network.paths);
        let mut keeper = keeper.map_err(LaunchError::system("listening to the kernel's MPTCP events"))?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let work = move || {
            let ours = |local: SocketAddr, remote: SocketAddr| {
                program.flows().iter().any(|flow| {
                    (flow.key.local, flow.key.remote) == (local.ip(), remote.ip())
                        && flow.ports == (local.port(), remote.port())
                })
            };
            while !ended.load(Ordering::Relaxed) {
                if keeper.look(Instant::now() + LOOK, ours).is_err() {
                    thread::sleep(LOOK);
                }
            }
            keeper.kept().to_vec()
        };
        let thread = thread::Builder::new().name("pathcast-subflows".into()).spawn(work);
        Ok(Keeping { over, thread: thread.map_err(LaunchError::system("starting a thread"))? })
    }

    /// What became of the subflows of each path.
    pub fn end(self) -> Vec<Kept> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What its reader should know of them.
pub(crate) fn notes(kept: &[Kept]) -> impl Iterator<Item = String> {
    let told = |path: &Kept| Some(format!("a subflow over {} failed: {}", path.path, path.failed.as_ref()?));
    kept.iter().filter_map(told).collect::<Vec<_>>().into_iter()
}
