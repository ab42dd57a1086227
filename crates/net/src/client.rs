//! A session with a far end, kept open between transfers and opened again where it was lost.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pathcast_base::{PathAddr, Protocol, TransferReport};
use pathcast_session::{ClientLook, ClientTransfer, Denial, Key, Rejection, SessionKeys, Welcome};

use crate::connect::check;
use crate::control::{Control, greet};
use crate::error::NetError;
use crate::maker::{Family, SocketMaker};
use crate::paths::{self, PathSurvey};
use crate::race::{self, Race};
use crate::transfer::{self, TransferOptions, check_control};

/// How long the session's own connection may be silent before the far end is asked over other lines too …
const SILENT: Duration = Duration::from_secs(1);
/// … and is given up.
const GONE: Duration = Duration::from_secs(10);
/// How long a path may take to answer, at least: two attempts of TCP, and a round trip of half a second.
const REACH: Duration = Duration::from_millis(1500);
const TICK: Duration = Duration::from_millis(20);

/// A client with an open session. Its methods may be called from several threads at once.
pub struct Client {
    maker: Arc<dyn SocketMaker>,
    /// The far end's addresses as given, the one that answered first.
    servers: Vec<SocketAddr>,
    key: Key,
    control: Mutex<Link>,
    /// Far addresses at which somebody has proved that he holds the key.
    proven: Mutex<BTreeSet<IpAddr>>,
    next_transfer: AtomicU64,
}

impl Client {
    /// Opens a session with the far end at `server`, over whichever line of this host answers first.
    ///
    /// # Errors
    /// Runtime when it cannot be reached, Refused when it does not accept the key or a limit is reached.
    pub fn connect(maker: Arc<dyn SocketMaker>, server: SocketAddr, key: Key) -> Result<Client, NetError> {
        Client::connect_any(maker, &[server], key)
    }

    /// The same with a far end of several addresses, the best first: over whichever of them and of this host's lines
    /// answers first (RFC 8305).
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_any(maker: Arc<dyn SocketMaker>, servers: &[SocketAddr], key: Key) -> Result<Client, NetError> {
        let mut race = Race::start(maker.clone(), key.clone(), race::ways(&*maker, servers));
        let (server, control) = open(&mut race)?;
        // names of paths hang on the first address, be it that another one was quicker today
        let best = servers.iter().copied().find(|s| s.is_ipv4() == server.is_ipv4()).unwrap_or(server);
        let mut ordered = vec![best];
        ordered.extend(servers.iter().copied().filter(|&s| s != best));
        let control = Mutex::new(Link { server, control });
        let proven = Mutex::new(BTreeSet::from([server.ip()]));
        Ok(Client { maker, servers: ordered, key, control, proven, next_transfer: AtomicU64::new(1) })
    }

    /// The first of the addresses that were given, of the IP version by which the far end was reached.
    pub fn server(&self) -> SocketAddr {
        self.servers[0]
    }

    /// What the far end told when the session was opened: its addresses and limits, and the keys of the session.
    pub fn session(&self) -> (Welcome, SessionKeys) {
        let link = locked(&self.control);
        let (welcome, keys) = link.control.machine.session().expect("a session is opened before a client exists");
        (welcome.clone(), keys.clone())
    }

    /// The addresses under which the far end says that it can be reached, the best first.
    pub fn server_addresses(&self) -> Vec<IpAddr> {
        self.session().0.addresses
    }

    /// This host's addresses paired with the far end's: which pairs can be paths, and why the others cannot.
    ///
    /// A pair is usable when the kernel has a route for it that leaves by the interface of its local address.
    ///
    /// # Errors
    /// The system's.
    pub fn survey(&self) -> Result<PathSurvey, NetError> {
        paths::survey(&*self.maker, self.server(), &self.server_addresses())
    }

    /// Asks the far end over every one of `paths`, side by side: how long each took to answer, with the key, or why it
    /// did not. A path has 1.5 s, and longer where another one that lives takes long.
    pub fn reach(&self, paths: &[PathAddr]) -> Vec<Result<Duration, NetError>> {
        let begun = Instant::now();
        let (late, slowest) = (AtomicBool::new(false), AtomicU64::new(0));
        let ask = |path: &PathAddr| {
            let to = SocketAddr::new(path.remote, self.server().port());
            let answer = greet(&*self.maker, Some(path.local), to, &self.key, Some(&late), None);
            let took = begun.elapsed();
            match answer {
                Err(NetError::Interrupted) => {
                    let waited = format!("no answer within {:.1} s", took.as_secs_f64());
                    let source = std::io::Error::new(std::io::ErrorKind::TimedOut, waited);
                    Err(NetError::Connect { from: Some(path.local), to, source })
                }
                answer => {
                    slowest.fetch_max(took.as_millis() as u64, Ordering::Relaxed);
                    answer.map(|_| took)
                }
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = paths.iter().map(|path| scope.spawn(move || ask(path))).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                let patience = REACH.max(Duration::from_millis(3 * slowest.load(Ordering::Relaxed)));
                late.store(begun.elapsed() >= patience, Ordering::Relaxed);
                thread::sleep(TICK);
            }
            threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Sends `bytes` over one path by plain TCP; with few bytes, a probe.
    ///
    /// # Errors
    /// Usage for an unknown controller or a foreign address, Refused by a limit, Runtime when it breaks or stalls,
    /// Interrupted by the caller's flag.
    pub fn tcp_transfer(
        &self,
        path: &PathAddr,
        bytes: u64,
        options: &mut TransferOptions<'_>,
    ) -> Result<TransferReport, NetError> {
        transfer::run(self, std::slice::from_ref(path), bytes, Protocol::Tcp, options)
    }

    /// Sends `bytes` by MPTCP over all `paths`, the first of which carries the first subflow; with few bytes, a probe.
    ///
    /// # Errors
    /// As [`Client::tcp_transfer`]; Missing where the kernel makes no MPTCP sockets. A path that could not be joined is
    /// no error: the report says why.
    pub fn mptcp_transfer(
        &self,
        paths: &[PathAddr],
        bytes: u64,
        options: &mut TransferOptions<'_>,
    ) -> Result<TransferReport, NetError> {
        transfer::run(self, paths, bytes, Protocol::Mptcp, options)
    }

    /// Can a transfer have this congestion controller?
    ///
    /// # Errors
    /// Usage for one that the kernel does not have, Missing for one that this user may not choose.
    pub fn check_control(&self, name: &str) -> Result<(), NetError> {
        check_control(self.maker(), Family::of(self.server().ip()), name)
    }

    /// A number of this session's for a connection that looks, and its machine.
    pub(crate) fn next_look(&self) -> (ClientLook, u64) {
        let (welcome, keys) = self.session();
        (ClientLook::new(&welcome, &keys), self.look_number())
    }

    pub(crate) fn look_number(&self) -> u64 {
        self.next_transfer.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn shared_maker(&self) -> Arc<dyn SocketMaker> {
        self.maker.clone()
    }

    pub(crate) fn maker(&self) -> &dyn SocketMaker {
        &*self.maker
    }

    /// Makes sure that somebody at the far address of `path` holds the key. A far end can name any address, and payload for it
    /// would go to a host that has not asked for it.
    pub(crate) fn prove(
        &self,
        path: &PathAddr,
        cancel: Option<&AtomicBool>,
        within: Option<Duration>,
    ) -> Result<(), NetError> {
        if locked(&self.proven).contains(&path.remote) {
            return Ok(());
        }
        let to = SocketAddr::new(path.remote, self.server().port());
        // it is told no more than Hello: no session is opened
        greet(&*self.maker, Some(path.local), to, &self.key, cancel, within.map(|w| Instant::now() + w))?;
        locked(&self.proven).insert(path.remote);
        Ok(())
    }

    /// Makes sure that the session is open, and gives the next transfer in it.
    pub(crate) fn next_transfer(
        &self,
        bytes: u64,
        options: &TransferOptions<'_>,
    ) -> Result<(ClientTransfer, bool), NetError> {
        let mut link = locked(&self.control);
        if let Some(new) = self.another(&mut link, options.cancel)? {
            *link = new;
        }
        let (welcome, keys) = link.control.machine.session().expect("it has just been opened or has answered");
        if bytes > welcome.max_transfer_bytes {
            let rejection = Rejection::Denied(Denial::Size);
            return Err(NetError::Rejected { to: link.server, rejection });
        }
        let number = self.next_transfer.fetch_add(1, Ordering::Relaxed);
        let name = options.control.unwrap_or_default();
        Ok((ClientTransfer::new(welcome, keys, number, bytes, name), welcome.mptcp))
    }

    /// A new session in the place of one that is lost, or whose line is silent while another one answers.
    fn another(&self, link: &mut Link, cancel: Option<&AtomicBool>) -> Result<Option<Link>, NetError> {
        link.control.ping();
        let begun = Instant::now();
        let (mut race, mut lost, mut tried) = (None, false, false);
        loop {
            check(cancel)?;
            let asked = begun.elapsed();
            lost |= asked >= GONE;
            if race.is_none() && (lost || (asked >= SILENT && !tried)) {
                let ways = race::ways(&*self.maker, &self.servers);
                race = Some(Race::start(self.maker.clone(), self.key.clone(), ways));
            }
            if !lost {
                match link.control.answered(link.server, Instant::now() + TICK) {
                    Ok(true) => return Ok(None),
                    Ok(false) => {}
                    Err(_) => lost = true,
                }
            }
            let until = Instant::now() + TICK;
            let Some(under_way) = race.as_mut() else { continue };
            match under_way.wait(until) {
                None => {}
                Some(Err(error)) if lost => return Err(error),
                Some(Err(_)) => (race, tried) = (None, true), // the line itself may yet answer
                Some(Ok((pair, mut control))) => match control.open(pair.to) {
                    Ok(()) => return Ok(Some(Link { server: pair.to, control })),
                    Err(error) if error.is_answer() && lost => return Err(error),
                    // it may be this very session that has the last place
                    Err(error) if error.is_answer() => (race, tried) = (None, true),
                    Err(error) => under_way.lost(pair, error),
                },
            }
        }
    }
}

/// The session's connection, and which of the far end's addresses it leads to.
struct Link {
    server: SocketAddr,
    control: Control,
}

/// A session over the first way that carries one.
fn open(race: &mut Race) -> Result<(SocketAddr, Control), NetError> {
    loop {
        let Some(found) = race.wait(Instant::now() + GONE) else { continue };
        let (pair, mut control) = found?;
        match control.open(pair.to) {
            Ok(()) => return Ok((pair.to, control)),
            Err(error @ NetError::Control { .. }) => race.lost(pair, error), // its line died meanwhile
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let link = self.control.get_mut().unwrap_or_else(PoisonError::into_inner);
        link.control.machine.bye();
        // a courtesy: the far end notices the closed connection as well
        let _ = link.control.socket.write(&link.control.machine.output());
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
