//! The far end: listens, gives every connection a thread of its own, keeps everyone within limits.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_base::{Nanos, Protocol};
use pathcast_session::{Admission, Announcement, Counters, Entropy, Key, KeyRing, Limits, Note, Service};
use socket2::Socket;

use crate::error::NetError;
use crate::forward::{Forward, Translators};
use crate::maker::{Family, SocketMaker};
use crate::path_manager;
use crate::payload;
use crate::poll;

mod announced;
mod connection;

use announced::Announced;

/// How soon a listener notices that the server is to stop.
const TICK: Duration = Duration::from_millis(100);
/// How long a connection waits where there are as many as there may be.
const BUSY: Duration = Duration::from_millis(1);
/// Further subflows that a server should allow.
const WANTED_SUBFLOWS: u32 = 8;

/// Something for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// Of the protocol.
    Session(Note),
    /// Of the system: it works, but not as well as it could.
    Warning(String),
}

/// Hears what a server does.
pub type EventCallback = Arc<dyn Fn(&ServerEvent) + Send + Sync>;

/// How a far end is to run.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where to listen. Port 0: the system chooses one, the same for all addresses. A join may come to any announced
    /// address, so the wildcard addresses are the usual choice.
    pub listen: Vec<SocketAddr>,
    /// Who may use it. None: nobody.
    pub keys: Vec<Key>,
    /// What they get.
    pub limits: Limits,
    /// Places of sessions that others share; none: as many as the limits say.
    pub admission: Option<Admission>,
    /// The addresses to tell them; empty: those listened on, or all of this host's for a wildcard.
    pub announce: Vec<IpAddr>,
    /// Where this host answers STAMP, for who asks; 0: nowhere.
    pub stamp_port: u16,
    /// Called from the server's threads; must not block.
    pub on_event: Option<EventCallback>,
}

/// A running far end; stops when dropped.
pub struct Server {
    local: Vec<SocketAddr>,
    mptcp: bool,
    forward: Option<Forward>,
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
}

struct Shared {
    service: Mutex<Service>,
    open: Mutex<HashMap<u64, Arc<Socket>>>,
    /// Connections that have a thread: what was evicted has one for a moment more.
    threads: AtomicUsize,
    most_threads: usize,
    stop: AtomicBool,
    started: Instant,
    /// The largest low-water mark that the kernel grants [byte].
    room: u64,
    /// Asked what it would agree upon when somebody looks.
    maker: Arc<dyn SocketMaker>,
    mptcp: bool,
    announced: Announced,
    stamp_port: u16,
    translators: Mutex<Translators>,
    on_event: Option<EventCallback>,
}

impl Server {
    /// Listens on all addresses of `config`, with MPTCP where the kernel has it.
    ///
    /// # Errors
    /// Runtime when an address cannot be listened on, Usage without an address.
    pub fn start(maker: Arc<dyn SocketMaker>, config: ServerConfig) -> Result<Server, NetError> {
        if config.listen.is_empty() {
            return Err(NetError::Argument("no address to listen on".into()));
        }
        let mut warnings = Vec::new();
        let mut sockets = Vec::new();
        let mut local: Vec<SocketAddr> = Vec::new();
        let mut mptcp = true;
        for &address in &config.listen {
            let port = if address.port() == 0 { local.first().map_or(0, |a| a.port()) } else { address.port() };
            let address = SocketAddr::new(address.ip(), port);
            let (socket, missing) = listen(&*maker, address)?;
            if let Some(e) = missing {
                mptcp = false;
                warnings
                    .push(format!("listening on {address} with plain TCP: this kernel makes no MPTCP sockets ({e})"));
            }
            let bound = socket.local_addr().map_err(|source| NetError::Listen { address, source })?;
            local.extend(bound.as_socket());
            sockets.push(socket);
        }
        let allowed = path_manager::limits(&*maker).map_or(WANTED_SUBFLOWS, |l| l.subflows);
        if mptcp && allowed < WANTED_SUBFLOWS {
            warnings.push(format!(
                "this kernel accepts {allowed} further subflows a connection; more: `ip mptcp limits set subflows {WANTED_SUBFLOWS}`"
            ));
        }
        let own = maker.interfaces().map_err(NetError::system("listing the addresses of this host"))?;
        let forward = Forward::find(&own, &local, &config.announce, config.stamp_port);
        warnings.extend(forward.as_ref().map(Forward::to_string));
        let announced = Announced::new(config.announce.clone(), &local);
        let addresses = announced.among(&own);
        let most_threads = most_threads(&config);
        let mut service = Service::new(KeyRing::new(config.keys), config.limits, Announcement { addresses, mptcp });
        if let Some(admission) = config.admission {
            service = service.admitting(admission);
        }
        let shared = Arc::new(Shared {
            service: Mutex::new(service),
            open: Mutex::new(HashMap::new()),
            threads: AtomicUsize::new(0),
            most_threads,
            stop: AtomicBool::new(false),
            started: Instant::now(),
            room: connection::room(maker.sysctl("ipv4/tcp_rmem").ok().as_deref()),
            maker,
            mptcp,
            announced,
            stamp_port: config.stamp_port,
            translators: Mutex::default(),
            on_event: config.on_event,
        });
        warnings.into_iter().for_each(|w| shared.tell(&ServerEvent::Warning(w)));
        let mut server = Server { local, mptcp, forward, shared, listeners: Vec::new() };
        for socket in sockets {
            let shared = server.shared.clone();
            let thread = thread::Builder::new().name("pathcast-listen".into()).spawn(move || shared.accept(&socket));
            server.listeners.push(thread.map_err(NetError::system("starting a thread"))?);
        }
        Ok(server)
    }

    /// Where it listens, the chosen port included.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Does it listen with MPTCP everywhere?
    pub fn mptcp(&self) -> bool {
        self.mptcp
    }

    /// What a translator before it would have to forward; none: it needs none, as far as it knows.
    pub fn forward(&self) -> Option<&Forward> {
        self.forward.as_ref()
    }

    /// What it has done.
    pub fn counters(&self) -> Counters {
        self.shared.service().counters()
    }

    /// Connections that have a thread.
    pub fn connections(&self) -> usize {
        self.shared.threads.load(Ordering::Relaxed)
    }

    /// Sessions that are open.
    pub fn sessions(&self) -> usize {
        self.shared.service().sessions()
    }

    /// Closes all connections and stops listening.
    pub fn stop(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.listeners.drain(..) {
            let _ = thread.join();
        }
        for socket in self.shared.open().values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let deadline = Instant::now() + Duration::from_secs(2);
        while !self.shared.open().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

impl Shared {
    fn service(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Socket>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn translators(&self) -> MutexGuard<'_, Translators> {
        self.translators.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }
    fn tell(&self, event: &ServerEvent) {
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }
    /// Passes on what has happened; without the lock, since the callback is not ours.
    fn tell_notes(&self) {
        let notes = self.service().take_notes();
        notes.into_iter().for_each(|n| self.tell(&ServerEvent::Session(n)));
    }

    fn accept(self: Arc<Self>, listener: &Socket) {
        while !self.stop.load(Ordering::Relaxed) {
            if !poll::readable(listener.as_fd(), Instant::now() + TICK).unwrap_or(false) {
                continue;
            }
            if self.threads.load(Ordering::Relaxed) >= self.most_threads {
                thread::sleep(BUSY); // those that were evicted are about to end
                continue;
            }
            match listener.accept() {
                Ok((socket, from)) => {
                    let from = from.as_socket().map_or(IpAddr::from([0; 4]), |a| a.ip().to_canonical());
                    if let Err(e) = self.clone().welcome(socket, from) {
                        self.tell(&ServerEvent::Warning(format!("a connection was dropped: {e}")));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => {
                    self.tell(&ServerEvent::Warning(format!("a connection could not be accepted: {e}")));
                    thread::sleep(TICK); // out of descriptors: let others finish
                }
            }
        }
    }

    fn welcome(self: Arc<Self>, socket: Socket, from: IpAddr) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        // where they cannot be had, those that were there are as good as any
        if self.announced.is_due()
            && let Ok(own) = self.maker.interfaces()
        {
            self.service().announce(self.announced.among(&own));
        }
        let entropy = Entropy { nonce: payload::random()?, session: payload::random()? };
        let (connection, evicted) = self.service().accept(self.now(), from, entropy);
        for other in evicted.into_iter().filter_map(|id| self.open().remove(&id)) {
            let _ = other.shutdown(Shutdown::Both);
        }
        let (id, socket) = (connection.id(), Arc::new(socket));
        self.open().insert(id, socket.clone());
        let shared = self.clone();
        let counted = Counted::new(shared.clone());
        let work = move || {
            connection::serve(&shared, &socket, connection);
            drop(counted);
        };
        let started = thread::Builder::new().name("pathcast-serve".into()).stack_size(256 << 10).spawn(work);
        if started.is_err() {
            self.open().remove(&id);
        }
        started.map(drop)
    }
}

/// Connections at once: sessions, transfers and what can make room are as many by their limits. Those that were told to go are
/// as many as what can make room.
fn most_threads(config: &ServerConfig) -> usize {
    let Limits { sessions, transfers, max_expendable, .. } = config.limits;
    let sessions = config.admission.as_ref().map_or(sessions, Admission::quota);
    let each = [sessions.in_all, transfers.in_all, max_expendable, max_expendable];
    each.into_iter().fold(0, usize::saturating_add)
}

/// A connection's thread, as long as it lives.
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: Arc<Shared>) -> Counted {
        shared.threads.fetch_add(1, Ordering::Relaxed);
        Counted(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listener, and why it is plain TCP if it is.
fn listen(maker: &dyn SocketMaker, address: SocketAddr) -> Result<(Socket, Option<io::Error>), NetError> {
    let failed = |source| NetError::Listen { address, source };
    let family = Family::of(address.ip());
    let (socket, missing) = match maker.tcp(family, Protocol::Mptcp) {
        Ok(socket) => (socket, None),
        Err(e) => (maker.tcp(family, Protocol::Tcp).map_err(failed)?, Some(e)),
    };
    socket.set_reuse_address(true).map_err(failed)?;
    if family == Family::V6 {
        socket.set_only_v6(true).map_err(failed)?; // beside a listener on 0.0.0.0
    }
    socket.bind(&address.into()).map_err(failed)?;
    socket.listen(128).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok((socket, missing))
}
