//! Many runs at once on all processors: each by itself, their results in the order in which they were asked for.
//!
//! A run is a whole simulation of its own, so that it gives the same alone and among others, in one thread or in many.
//! Memory is that of as many networks as there are threads, whatever the number of runs.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pathcast_base::{Fault, Nanos, Protocol, TransferReport};
use pathcast_scenario::Template;

use crate::amend::boxed;
use crate::run::World;
use crate::transfer::{Order, TransferError};

/// Processors that this process may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What `run` gives for every item, in their order, by so many threads at most.
pub fn each<T: Sync, R: Send>(items: &[T], threads: usize, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            found.push((at, run(item)));
        }
        found
    };
    let mut found: Vec<(usize, R)> = thread::scope(|scope| {
        let more: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = more.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
        own.into_iter().chain(others.flatten()).collect()
    });
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

/// A transfer in a copy of a network, and the seed by which the copy goes on; none: by the network's own numbers.
#[derive(Clone, Debug)]
pub struct Continuation {
    /// Names of paths, one subflow each, the first on the first; one that is named again has a further client address.
    pub paths: Vec<String>,
    /// TCP takes one path.
    pub protocol: Protocol,
    /// Application bytes.
    pub bytes: u64,
    /// None: cubic.
    pub control: Option<String>,
    /// As of [`Order`].
    pub every: Option<Nanos>,
    /// As of [`Order`].
    pub plain: bool,
    /// Of the random numbers from the copy on.
    pub seed: Option<u64>,
}

/// A network of a template, which stands for some time before transfers begin, each in a copy of its own.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Keys and values over the template's.
    pub sets: Vec<(String, String)>,
    /// How long only its cross traffic runs.
    pub wait: Nanos,
    /// What then happens.
    pub then: Vec<Continuation>,
}

/// What became of each continuation of a draw.
pub type Continued = Vec<Result<TransferReport, TransferError>>;

impl World {
    /// Carries out each in a copy of this network as it stands now; nothing happens in this one. `stop`: the caller's wish
    /// to end them all.
    ///
    /// # Panics
    /// While a session of machines goes on, as [`World::copy`] says.
    pub fn continuations(&self, all: &[Continuation], threads: usize, stop: &AtomicBool) -> Continued {
        each(all, threads, |one| {
            if stop.load(Ordering::Relaxed) {
                return Err(TransferError::Interrupted);
            }
            let mut copy = self.copy().expect("no measurement goes on");
            if let Some(seed) = one.seed {
                copy.reseed(seed);
            }
            let (pairs, control) = (copy.pairs(&one.paths)?, one.control.as_deref());
            let order = Order {
                pairs: &pairs,
                bytes: one.bytes,
                control,
                protocol: one.protocol,
                every: one.every,
                plain: one.plain,
            };
            copy.carry(&order, |_| !stop.load(Ordering::Relaxed))
        })
    }
}

/// Every draw's continuations, the draws shared out over the threads. `events`: the most of one transfer, or one wait.
///
/// # Errors
/// Of a draw: what its scenario's checks or the simulator refuse, or a limit that its wait met.
pub fn draws(
    template: &Template,
    all: &[Draw],
    events: u64,
    threads: usize,
    stop: &AtomicBool,
) -> Vec<Result<Continued, Box<dyn Fault + Send + Sync>>> {
    each(all, threads, |draw| {
        let scenario = template.scenario(&draw.sets).map_err(boxed)?;
        let mut world = World::new(scenario).map_err(boxed)?;
        world.limit(events);
        world.pass(draw.wait, stop).map_err(boxed)?;
        Ok(world.continuations(&draw.then, 1, stop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 2, 7, 200] {
            let found = each(&items, threads, |n| {
                thread::sleep(std::time::Duration::from_micros(100 - n));
                n * n
            });
            assert!(found.iter().zip(&items).all(|(square, n)| *square == n * n) && found.len() == 100);
        }
        assert!(each(&[] as &[u64], 4, |n| *n).is_empty());
    }

    #[test]
    #[should_panic(expected = "seventh")]
    fn a_panic_is_the_callers() {
        let items: Vec<u64> = (0..20).collect();
        each(&items, 3, |&n| assert!(n != 7, "the seventh"));
    }
}
