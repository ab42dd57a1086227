//! A run while it lasts: what it has sent until now, and what may be changed of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cgroup::Cgroup;
use crate::endpoints::{Endpoints, Stay};
use crate::error::LaunchError;
use crate::maker::Maker;
use crate::orders::Orders;
use crate::program::Program;
use crate::report::{PathUse, uses};

/// The parts of a run that others may use until it ends.
pub(crate) struct Parts {
    pub cgroup: Arc<Cgroup>,
    pub program: Arc<Program>,
    pub maker: Option<Arc<Maker>>,
    pub endpoints: Option<Arc<Endpoints>>,
    pub pid: Option<libc::pid_t>,
}

/// A handle on a run, to be shared between threads. Before its begin and after its end nothing can be had of it.
#[derive(Clone, Default)]
pub struct Live {
    parts: Arc<Mutex<Option<Parts>>>,
    orders: Arc<AtomicU32>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

impl Live {
    pub(crate) fn set(&self, parts: Option<Parts>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// Starts the program. Whoever wants something of it meanwhile waits: it runs before its number is known here.
    pub(crate) fn start<E>(&self, spawn: impl FnOnce() -> Result<libc::pid_t, E>) -> Result<libc::pid_t, E> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = spawn()?;
        if let Some(parts) = parts.as_mut() {
            parts.pid = Some(pid);
        }
        Ok(pid)
    }

    /// The program is waited for: its number may be another one's soon.
    pub(crate) fn ended(&self) {
        self.with(|parts| parts.pid = None);
    }

    fn with<T>(&self, work: impl FnOnce(&mut Parts) -> T) -> Option<T> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// What has passed until now, by pair of addresses, and how many connections to other hosts are open, by address of
    /// this one; none where it does not run.
    pub fn seen(&self) -> Option<(Vec<PathUse>, BTreeMap<IpAddr, u64>)> {
        self.with(|parts| {
            let (sums, flows) = parts.program.sums();
            let mut open = BTreeMap::new();
            for flow in flows.iter().filter(|flow| flow.key.leaves()) {
                *open.entry(flow.key.local).or_default() += 1;
            }
            (uses(&sums), open)
        })
    }

    /// From now on connections are under this controller (as the kernel calls it; empty: each keeps its own) and each of
    /// them sends at most `pace` bytes a second; those that are established hear of it at their next ACK. Says whether
    /// the run was there.
    ///
    /// # Errors
    /// A name that the kernel has not; the system's.
    pub fn order(&self, control: &str, pace: Option<u32>) -> Result<bool, LaunchError> {
        if !control.is_empty() {
            crate::control::check(control)?;
        }
        let number = self.orders.fetch_add(1, Ordering::Relaxed) + 1;
        let done = self.with(|parts| parts.program.order(Orders { control, pace, number }));
        done.transpose().map(|done| done.is_some()).map_err(LaunchError::system("changing the orders of a run"))
    }

    /// The addresses of its lines are these now; for the next [`Live::allow`].
    pub fn renew(&self, all: &[IpAddr]) {
        self.with(|parts| {
            if let Some(maker) = &parts.maker {
                maker.renew(all);
            }
        });
    }

    /// Connections begin from these addresses only, and have subflows over them only, of those of the run; what others
    /// were sending goes on over them. Says which of the dropped ones have endpoints that stay.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn allow(&self, addresses: &[IpAddr]) -> Result<Stay, LaunchError> {
        self.with(|parts| {
            if let Some(maker) = &parts.maker {
                maker.allow(addresses);
            }
            parts.endpoints.as_ref().map_or(Ok(Stay::default()), |endpoints| endpoints.keep(addresses))
        })
        .unwrap_or_else(|| Ok(Stay::default()))
    }

    /// Tells the program, and all that it has started, to end (SIGTERM); says whether it was there.
    pub fn end(&self) -> bool {
        self.stop(libc::SIGTERM, Cgroup::tell)
    }

    /// Kills the program and all that it has started; says whether it was there.
    pub fn kill(&self) -> bool {
        self.stop(libc::SIGKILL, |cgroup, _, _| cgroup.kill())
    }

    fn stop(&self, signal: i32, others: impl Fn(&Cgroup, i32, libc::pid_t)) -> bool {
        self.with(|parts| {
            parts.pid.is_some_and(|pid| {
                // SAFETY: plain numbers; the process is not waited for before `ended`
                let there = unsafe { libc::kill(pid, signal) } == 0;
                others(&parts.cgroup, signal, pid);
                there
            })
        })
        .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The program may be under way, and have told of itself, before its number is known.
    #[test]
    fn whoever_wants_its_end_while_it_is_being_started_waits_for_that() {
        let (live, started) = (&Live::default(), &AtomicBool::new(false));
        thread::scope(|scope| {
            let mut ends = None;
            let (wants, wanted) = mpsc::channel();
            let spawn = || {
                ends = Some(scope.spawn(move || {
                    wants.send(()).unwrap();
                    live.end();
                    started.load(Ordering::SeqCst)
                }));
                wanted.recv().unwrap();
                thread::sleep(Duration::from_millis(50));
                started.store(true, Ordering::SeqCst);
                Ok::<_, ()>(7)
            };
            assert_eq!(live.start(spawn), Ok(7));
            assert!(ends.unwrap().join().unwrap());
        });
    }
}
