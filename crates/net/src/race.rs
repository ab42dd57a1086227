//! A far end asked over several pairs of addresses side by side, so that a dead line costs no more than a moment (Happy
//! Eyeballs, RFC 8305).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pathcast_session::Key;

use crate::control::{Control, greet};
use crate::error::{NetError, Untold};
use crate::maker::SocketMaker;
use crate::paths;

/// Time between two attempts (RFC 8305, section 5) …
const DELAY: Duration = Duration::from_millis(250);
/// … but all are on their way after so long, however many there are.
const ALL: Duration = Duration::from_millis(1500);
/// How long the others still have when one was told no: by a line that lives, of a far end that does not want us.
const GRACE: Duration = Duration::from_secs(1);

/// One way to ask: from an address, or from where the routes send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub from: Option<IpAddr>,
    pub to: SocketAddr,
}

/// The ways to `servers`: the routes' own choice for each, then the other lines of this host; by turns of the address, so
/// that neither a dead line nor an address without an answer holds up the rest.
pub(crate) fn ways(maker: &dyn SocketMaker, servers: &[SocketAddr]) -> Vec<Pair> {
    let interfaces = maker.interfaces().unwrap_or_default();
    let mut lists: Vec<VecDeque<Pair>> = Vec::new();
    for &to in servers {
        let chosen = paths::source(maker, to);
        let own = interfaces.iter().filter(|i| i.serves(to.ip()) && Some(i.address) != chosen);
        let others = own.filter(|i| paths::check(maker, i, to, &interfaces).is_ok());
        let first = Pair { from: None, to };
        lists.push([first].into_iter().chain(others.map(|i| Pair { from: Some(i.address), to })).collect());
    }
    let mut ways = Vec::new();
    while lists.iter().any(|list| !list.is_empty()) {
        ways.extend(lists.iter_mut().filter_map(VecDeque::pop_front));
    }
    ways
}

/// Attempts under way. The rest is called off when it is dropped.
pub(crate) struct Race {
    maker: Arc<dyn SocketMaker>,
    key: Key,
    waiting: VecDeque<Pair>,
    delay: Duration,
    next_at: Instant,
    running: usize,
    told: (Sender<Told>, Receiver<Told>),
    stop: Arc<AtomicBool>,
    failures: Vec<(Pair, NetError)>,
    last: Option<Instant>,
}

type Told = (Pair, Result<Control, NetError>);

impl Race {
    pub fn start(maker: Arc<dyn SocketMaker>, key: Key, ways: Vec<Pair>) -> Race {
        let delay = DELAY.min(ALL / ways.len().max(1) as u32);
        Race {
            maker,
            key,
            waiting: ways.into(),
            delay,
            next_at: Instant::now(),
            running: 0,
            told: channel(),
            stop: Arc::default(),
            failures: Vec::new(),
            last: None,
        }
    }

    /// The first that answers with the key, or, when none does, why; nothing before `until`. May be asked again for the
    /// next one.
    pub fn wait(&mut self, until: Instant) -> Option<Result<(Pair, Control), NetError>> {
        loop {
            let now = Instant::now();
            let due = now >= self.next_at || self.running == 0;
            if let Some(pair) = due.then(|| self.waiting.pop_front()).flatten() {
                self.next_at = now + self.delay;
                self.attempt(pair);
                continue;
            }
            let over = self.last.is_some_and(|last| now >= last);
            if over || (self.running == 0 && self.waiting.is_empty()) {
                return Some(Err(self.reason()));
            }
            if now >= until {
                return None;
            }
            let next = if self.waiting.is_empty() { until } else { until.min(self.next_at) };
            let wake = self.last.map_or(next, |last| next.min(last));
            match self.told.1.recv_timeout(wake.saturating_duration_since(now)) {
                Ok((pair, Ok(control))) => {
                    self.running -= 1;
                    return Some(Ok((pair, control)));
                }
                Ok((pair, Err(error))) => {
                    self.running -= 1;
                    self.next_at = now; // RFC 8305: a failure does not make the next one wait
                    if error.is_answer() {
                        self.last.get_or_insert(now + GRACE);
                    }
                    self.failures.push((pair, error));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// The way that had answered was lost after all.
    pub fn lost(&mut self, pair: Pair, error: NetError) {
        self.failures.push((pair, error));
    }

    fn attempt(&mut self, pair: Pair) {
        let (maker, key, stop, told) = (self.maker.clone(), self.key.clone(), self.stop.clone(), self.told.0.clone());
        let work = move || {
            let result = greet(&*maker, pair.from, pair.to, &key, Some(&stop), None);
            let _ = told.send((pair, result)); // whoever asked may have what he wants already
        };
        match thread::Builder::new().name("pathcast-connect".into()).spawn(work) {
            Ok(_) => self.running += 1,
            Err(e) => self.failures.push((pair, NetError::System { what: "starting a thread", source: e })),
        }
    }

    /// What a far end said counts most; then what every way ran into.
    fn reason(&mut self) -> NetError {
        if let Some(at) = self.failures.iter().position(|(_, e)| e.is_answer()) {
            return self.failures.swap_remove(at).1;
        }
        let silent = |e: &NetError| matches!(e, NetError::Connect { .. } | NetError::Control { .. });
        if self.failures.len() < 2 || !self.failures.iter().all(|(_, e)| silent(e)) {
            if self.failures.is_empty() {
                return NetError::Argument("no address of the far end is known".into());
            }
            let loud = self.failures.iter().position(|(_, e)| !silent(e)).unwrap_or(0);
            return self.failures.swap_remove(loud).1;
        }
        let tried = self.failures.drain(..).map(|(pair, error)| {
            let from = pair.from.or_else(|| paths::source(&*self.maker, pair.to));
            Untold { from, to: pair.to, reason: error.reason() }
        });
        NetError::NoWay { tried: tried.collect() }
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
