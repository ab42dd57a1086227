//! A program's connections over a network that is steered, one address pair, several paths: it is told of each before it
//! begins, and the further subflows are made here.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_net::{Fabric, HostSockets, Keeper, Kept};

use crate::beginnings;
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

/// The thread that makes the subflows. It ends with this, also where the program never begins.
pub(crate) struct Keeping {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Kept>>>,
}

impl Keeping {
    /// Before the program begins; `beginnings`: where the socket maker tells of its connections.
    ///
    /// # Errors
    /// `Missing` without the privilege; the system's.
    pub fn start(network: &Steered, program: Arc<Program>, beginnings: OwnedFd) -> Result<Keeping, LaunchError> {
        let keeper = Keeper::new(Arc::new(HostSockets), Arc::clone(&network.fabric), &network.paths);
        let mut keeper = keeper.map_err(LaunchError::system("listening to the kernel's MPTCP events"))?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let work = move || {
            let ours = |local: SocketAddr, remote: SocketAddr| {
                program.entries().iter().any(|flow| {
                    (flow.key.local, flow.key.remote) == (local.ip(), remote.ip())
                        && flow.ports == (local.port(), remote.port())
                })
            };
            let mut channel = Some(beginnings);
            while !ended.load(Ordering::Relaxed) {
                let heard = wait(&keeper, channel.as_ref());
                while let Some(beginnings) = &channel {
                    match beginnings::next(beginnings) {
                        Ok(Some(beginning)) => {
                            keeper.begins(beginning.local, beginning.remote);
                            beginnings::answer(beginnings, &beginning);
                        }
                        Ok(None) => channel = None, // the maker has ended
                        Err(_) => break,
                    }
                }
                if heard.and_then(|()| keeper.look(Instant::now(), ours)).is_err() {
                    thread::sleep(LOOK);
                }
            }
            keeper.kept().to_vec()
        };
        let thread = thread::Builder::new().name("pathcast-subflows".into()).spawn(work);
        Ok(Keeping { over, thread: Some(thread.map_err(LaunchError::system("starting a thread"))?) })
    }

    /// What became of the subflows of each path.
    pub fn end(mut self) -> Vec<Kept> {
        let ended = self.stop().expect("nobody has ended it before");
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn stop(&mut self) -> Option<thread::Result<Vec<Kept>>> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Waits until one of both has something to say, or `LOOK` has passed.
fn wait(keeper: &Keeper, channel: Option<&OwnedFd>) -> io::Result<()> {
    let fds = [keeper.as_fd().as_raw_fd(), channel.map_or(-1, AsRawFd::as_raw_fd)];
    let mut polls = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the array is valid for its length
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as _, LOOK.as_millis() as libc::c_int) };
    let error = io::Error::last_os_error();
    if ready < 0 && error.kind() != io::ErrorKind::Interrupted { Err(error) } else { Ok(()) }
}

/// What its reader should know of them.
pub(crate) fn notes(kept: &[Kept]) -> impl Iterator<Item = String> {
    let told = |path: &Kept| Some(format!("a subflow over {} failed: {}", path.path, path.failed.as_ref()?));
    kept.iter().filter_map(told).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_ends_where_the_program_never_begins() {
        let (over, fabric) = (Arc::new(AtomicBool::new(false)), Arc::new(()));
        let (ended, held) = (Arc::clone(&over), Arc::clone(&fabric));
        let work = move || {
            let _held = held;
            while !ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            Vec::new()
        };
        drop(Keeping { over, thread: Some(thread::spawn(work)) });
        assert_eq!(Arc::strong_count(&fabric), 1);
    }
}
