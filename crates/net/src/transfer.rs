//! One transfer, from connect() to the receiver's receipt or to the time at which it is to stop, over TCP or MPTCP.

use std::io::{self, IoSlice, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use pathcast_base::{PathAddr, PathManagerKind, Protocol, SubflowReport, TransferReport};
use pathcast_session::{ClientTransfer, Receipt, SessionError, TransferStatus};
use socket2::Socket;

use crate::client::Client;
use crate::connect::{TICK, check, connect};
use crate::error::NetError;
use crate::info::{self, SubflowInfo};
use crate::joins::{Joins, check_paths};
use crate::maker::{Family, SocketMaker};
use crate::payload;
use crate::places::{Fabric, Places};
use crate::poll;
use crate::progress::Progress;
use crate::steering::{self, Steering};
use crate::subflows::Subflows;
use crate::switch;

/// How long the first path may take to answer where a connection has others.
const FIRST: Duration = Duration::from_millis(1200);
/// How long nothing may be acknowledged unless the caller says otherwise.
const STALL: Duration = Duration::from_secs(45);

/// What a transfer may be told beside its paths and its size.
#[derive(Default)]
pub struct TransferOptions<'a> {
    /// The congestion controller by the kernel's name; the system's own when absent.
    pub control: Option<&'a str>,
    /// Called at every sample, and at the end.
    pub on_sample: Option<&'a mut dyn FnMut(&Progress<'_>)>,
    /// Time between two samples; 100 ms when absent.
    pub every: Option<Duration>,
    /// Not to connect before; at once when absent. The session is made sure of before that.
    pub start: Option<Instant>,
    /// When to break off: what is still in this host's buffers is thrown away, and the report says what was acknowledged.
    pub until: Option<Instant>,
    /// Looked at every 100 ms at least; when raised, the transfer is broken off.
    pub cancel: Option<&'a AtomicBool>,
    /// How long nothing may be acknowledged before the transfer counts as stalled; when absent 45 s, or any time where
    /// `until` is an end.
    pub patience: Option<Duration>,
    /// The kernel alone decides what each subflow is given; else never slower than over the best path (`pathcast_session::steer`).
    pub plain: bool,
    /// The first subflow goes over the first path; else over the best, by what this client knows of them.
    pub first: bool,
    /// Who is told which path each flow is to take, before its first packet; paths may then be the same address pair.
    pub fabric: Option<Arc<dyn Fabric>>,
}

pub(crate) fn run(
    client: &Client,
    paths: &[PathAddr],
    bytes: u64,
    protocol: Protocol,
    options: &mut TransferOptions<'_>,
) -> Result<TransferReport, NetError> {
    check_paths(paths, options.fabric.is_some())?;
    if bytes == 0 {
        return Err(NetError::Argument("a transfer of 0 bytes measures nothing".into()));
    }
    let called = Instant::now();
    let (session, far_end_mptcp) = client.next_transfer(bytes, options)?;
    let port = client.server().port();
    let mut order = paths.to_vec();
    let (mut silent, mut gone) = (Vec::new(), Vec::new());
    let mut flow = loop {
        // a dead line must not keep a connection from the others; when none answers the first has all the time
        let spare = protocol == Protocol::Mptcp && paths.len() > 1 && silent.len() < paths.len();
        let within = spare.then_some(FIRST);
        // of further paths the kernel makes sure: who joins a connection must know its keys (RFC 8684 section 3.2)
        let begun = client.prove(&order[0], options.cancel, within).and_then(|()| {
            let places = Places::new(&order, port, client.shared_maker(), options.fabric.clone());
            Flow::open(client.maker(), places, protocol, options, within)
        });
        match begun {
            Ok(flow) => break flow,
            Err(e) if spare && e.is_silence() => {
                silent.push(format!("{} was silent at the beginning: {}", order[0].name, e.reason()));
                order.rotate_left(1);
            }
            // the address of a line that is down may be gone: its others are no less alive
            Err(e @ NetError::LocalAddress(_)) if spare => {
                silent.push(format!("{} was left out at the beginning: {e}", order[0].name));
                gone.push(order[0].local);
                order.rotate_left(1);
            }
            Err(e) => return Err(e),
        }
        if silent.len() == paths.len()
            && let Some(at) = order.iter().position(|path| !gone.contains(&path.local))
        {
            order.rotate_left(at); // one whose address is gone answers no sooner with more time
        }
    };
    flow.notes.append(&mut silent);
    flow.bytes = bytes;
    flow.preface = session.attach().len() as u64;
    let end = flow.carry(session, client.server(), options);
    if !matches!(end, Ok(End::Received(_))) {
        // or the kernel would go on sending what is in its buffer
        flow.abort();
    }
    let waited_s = flow.started.duration_since(called).as_secs_f64();
    flow.report(end?, waited_s, far_end_mptcp)
}

fn wait_for(start: Option<Instant>, cancel: Option<&AtomicBool>) -> Result<(), NetError> {
    loop {
        check(cancel)?;
        let left = start.map_or(Duration::ZERO, |start| start.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(TICK));
    }
}

/// How a transfer came to its end.
enum End {
    Received(Receipt),
    Stopped,
}

/// One connection on its way.
struct Flow {
    socket: Socket,
    protocol: Protocol,
    joins: Option<Joins>,
    steering: Option<Steering>,
    subflows: Subflows,
    notes: Vec<String>,
    started: Instant,
    connect_s: f64,
    finished: Instant,
    fallback: bool,
    bytes: u64,
    /// Bytes on the stream before the payload.
    preface: u64,
    /// Bytes of the stream that were given to the socket …
    sent: u64,
    /// … and those that were acknowledged.
    acked: u64,
    last_progress: Instant,
    /// After the socket: the network is told of the end when that is closed.
    places: Places,
}

impl Flow {
    /// Makes the socket and, when it is time, connects it over the first path.
    fn open(
        maker: &dyn SocketMaker,
        mut places: Places,
        protocol: Protocol,
        options: &TransferOptions<'_>,
        within: Option<Duration>,
    ) -> Result<Flow, NetError> {
        let paths = places.paths();
        let first = &paths[0];
        let family = Family::of(first.local);
        let mut notes = Vec::new();
        let (socket, mut joins) = match protocol {
            Protocol::Tcp => (maker.tcp(family, protocol).map_err(NetError::system("making a TCP socket"))?, None),
            Protocol::Mptcp => mptcp_socket(maker, paths, &mut notes)?,
        };
        if let Some(name) = options.control {
            if protocol == Protocol::Mptcp {
                // MPTCP takes any name before connect() and forgets those that it does not find: TCP refuses them
                check_control(maker, family, name)?;
            }
            info::set_control(&socket, name).map_err(|e| control_error(maker, name, e))?;
        }
        // the last segment must not wait for an acknowledgement (Nagle)
        socket.set_tcp_nodelay(true).map_err(NetError::system("setting TCP_NODELAY"))?;
        let mut steered = !options.plain && paths.len() > 1;
        if steered && joins.is_some() && !info::tells_subflows(&socket) {
            // the rule has nothing to go by, and what it holds back would stay a backup
            steered = false;
            notes.push(
                "which subflows are backups is the kernel's choice: Linux before 6.5 tells nothing of each".into(),
            );
        }
        let steering =
            joins.as_mut().filter(|_| steered).map(|joins| Steering::new(&socket, paths.len(), maker, joins));
        places.begin(0)?;
        if let Some(joins) = &mut joins {
            joins.begin(&mut places);
        }
        wait_for(options.start, options.cancel)?;
        if let Some(joins) = &joins {
            joins.skip();
        }
        let started = Instant::now();
        let until = within.map(|within| options.until.map_or(started + within, |until| until.min(started + within)));
        connect(&socket, Some(places.local(0)), places.remote(0), options.cancel, until.or(options.until))?;
        let connected = Instant::now();
        let mut fallback = false;
        if protocol == Protocol::Mptcp {
            match info::mptcp(&socket).map_err(NetError::system("reading MPTCP_INFO"))? {
                Some(info) if !info.fallback => joins.iter_mut().for_each(|j| j.set_token(info.token)),
                _ => fallback = true,
            }
        }
        Ok(Flow {
            socket,
            protocol,
            joins,
            steering: steering.filter(|_| !fallback),
            subflows: Subflows::default(),
            notes,
            started,
            connect_s: connected.duration_since(started).as_secs_f64(),
            finished: connected,
            fallback,
            bytes: 0,
            preface: 0,
            sent: 0,
            acked: 0,
            last_progress: connected,
            places,
        })
    }

    /// Sends everything and waits for the receipt, or until it is time to stop.
    fn carry(
        &mut self,
        mut session: ClientTransfer,
        server: SocketAddr,
        options: &mut TransferOptions<'_>,
    ) -> Result<End, NetError> {
        let patience = options.patience.unwrap_or(if options.until.is_some() { Duration::MAX } else { STALL });
        let every = options.every.unwrap_or(TICK);
        let attach = session.attach().to_vec();
        let mut next_sample = Instant::now();
        let mut buffer = [0; 4096];
        loop {
            check(options.cancel)?;
            let now = Instant::now();
            let over = options.until.is_some_and(|until| now >= until);
            if now >= next_sample || over {
                self.sample(now)?;
                self.show(now, options);
                if let Some(joins) = &mut self.joins {
                    joins.ask_again(now, &mut self.places);
                }
                next_sample += every;
                if next_sample <= now {
                    next_sample = now + every;
                }
                let waited = now.duration_since(self.last_progress);
                if waited >= patience {
                    return Err(self.stalled(waited));
                }
            }
            if over {
                self.finished = now;
                return Ok(End::Stopped);
            }
            let end = self.preface + self.bytes;
            self.steer(now)?;
            // not a chunk beyond it: all that is written goes to the subflow that is tried
            let until_next = self.steering.as_ref().map_or(end, |steering| steering.may_give().min(end));
            let more = self.sent < until_next;
            let events = if more { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
            let mut fds = vec![poll::want(self.socket.as_fd(), events)];
            fds.extend(self.joins.as_ref().map(|j| poll::want(j.events().as_fd(), libc::POLLIN)));
            let wake = next_sample.min(now + self.steering.as_ref().map_or(TICK, |_| steering::TICK));
            poll::wait(&mut fds, options.until.map_or(wake, |until| wake.min(until))).map_err(|e| self.broken(e))?;
            let ready = fds[0].revents;
            if fds.get(1).is_some_and(|f| f.revents != 0)
                && let Some(joins) = &mut self.joins
                && joins.handle(&mut self.subflows, &mut self.places)
            {
                next_sample = Instant::now(); // so that the times of joining are exact
            }
            if more && ready & libc::POLLOUT != 0 {
                match send(&self.socket, &attach, self.sent, until_next) {
                    Ok(n) => self.sent += n,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    // the far end's reason may be waiting to be read
                    Err(e) => {
                        let receipt = self.read(&mut session, &mut buffer, server)?.ok_or_else(|| self.broken(e))?;
                        return self.received(receipt, server, options);
                    }
                }
            }
            if ready & !libc::POLLOUT != 0
                && let Some(receipt) = self.read(&mut session, &mut buffer, server)?
            {
                return self.received(receipt, server, options);
            }
        }
    }

    /// Looks at what the subflows may be given, when it is time.
    fn steer(&mut self, now: Instant) -> Result<(), NetError> {
        let (Some(steering), Some(joins)) = (&mut self.steering, &mut self.joins) else { return Ok(()) };
        if !steering.is_due(now) {
            return Ok(());
        }
        match info::mptcp(&self.socket).map_err(NetError::system("reading the socket's statistics"))? {
            Some(info) if !info.fallback => {
                let left = self.preface + self.bytes - self.sent;
                steering.look_at_room(&self.socket, &info);
                steering.look(now, &info, self.sent, left, joins, &self.places);
            }
            _ => self.fall_back(now),
        }
        Ok(())
    }

    /// It is TCP from now on. Nothing is there to be steered, and nothing would ever be let go again.
    fn fall_back(&mut self, now: Instant) {
        self.fallback = true;
        if let Some(steering) = self.steering.take() {
            self.notes.extend(steering.notes(now, &self.places));
        }
    }

    /// The far end says that it has all; plain TCP knows what has come of the bytes that were given to the socket.
    fn received(
        &mut self,
        receipt: Receipt,
        server: SocketAddr,
        options: &mut TransferOptions<'_>,
    ) -> Result<End, NetError> {
        self.sample(self.finished)?;
        let came = if self.protocol == Protocol::Tcp { self.sent.min(self.acked) } else { self.sent };
        if came < self.preface + self.bytes {
            let error = SessionError::Miscounted { got: receipt.bytes, want: came.saturating_sub(self.preface) };
            return Err(NetError::session(server, error));
        }
        self.acked = self.preface + self.bytes; // the receipt says so, whatever the socket has heard of it
        self.show(self.finished, options);
        Ok(End::Received(receipt))
    }

    /// Ends the connection at once: what is in this host's buffers is not sent any more.
    fn abort(&self) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    fn read(
        &mut self,
        session: &mut ClientTransfer,
        buffer: &mut [u8],
        server: SocketAddr,
    ) -> Result<Option<Receipt>, NetError> {
        match self.socket.read(buffer) {
            Ok(0) => Err(self.broken(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the far end"))),
            Ok(n) => {
                self.finished = Instant::now();
                match session.receive(&buffer[..n]).map_err(|e| NetError::session(server, e))? {
                    TransferStatus::Done(receipt) => Ok(Some(receipt)),
                    TransferStatus::Pending => Ok(None),
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(self.broken(e)),
        }
    }

    /// Looks at the connection, and at every subflow of it.
    fn sample(&mut self, now: Instant) -> Result<(), NetError> {
        let reading = NetError::system("reading the socket's statistics");
        let at_s = now.duration_since(self.started).as_secs_f64();
        let info = if self.protocol == Protocol::Mptcp && !self.fallback {
            info::mptcp(&self.socket).map_err(reading)?
        } else {
            None
        };
        let acked = match info {
            Some(info) if !info.fallback => {
                self.subflows.update(at_s, &info.subflows, &self.places);
                if let Some(joins) = self.joins.as_mut().filter(|_| info.bytes_acked.is_some()) {
                    joins.compare(&info.subflows, &self.places);
                }
                info.bytes_acked.unwrap_or(self.sent.saturating_sub(info.unacked))
            }
            _ => {
                if self.protocol == Protocol::Mptcp {
                    self.fall_back(now);
                }
                let tcp = info::tcp(&self.socket).map_err(NetError::system("reading TCP_INFO"))?;
                // an ended socket has no addresses any more, but its last values are known
                if let Some((local, remote)) = ends(&self.socket) {
                    self.subflows.update(at_s, &[SubflowInfo { id: 0, local, remote, tcp }], &self.places);
                }
                tcp.bytes_acked
            }
        };
        if acked > self.acked {
            (self.acked, self.last_progress) = (acked, now);
        }
        Ok(())
    }

    fn payload_acked(&self) -> u64 {
        self.acked.saturating_sub(self.preface).min(self.bytes)
    }

    fn show(&mut self, now: Instant, options: &mut TransferOptions<'_>) {
        let bytes_acked = self.payload_acked();
        if let Some(on_sample) = &mut options.on_sample {
            let elapsed_s = now.duration_since(self.started).as_secs_f64();
            let subflows = self.subflows.reports(&self.places, |_| "not joined yet".into());
            on_sample(&Progress { elapsed_s, bytes_acked, bytes: self.bytes, subflows });
        }
    }

    fn report(mut self, end: End, waited_s: f64, far_end_mptcp: bool) -> Result<TransferReport, NetError> {
        let control = info::control(&self.socket).map_err(NetError::system("reading TCP_CONGESTION"))?;
        if let Some(joins) = &mut self.joins {
            joins.handle(&mut self.subflows, &mut self.places);
        }
        let fallback_reason = self.fallback.then(|| fallback_reason(far_end_mptcp));
        let path_manager = (self.protocol == Protocol::Mptcp).then_some(match self.joins {
            Some(_) => PathManagerKind::Userspace,
            None => PathManagerKind::Kernel,
        });
        if let Some(steering) = &self.steering {
            self.notes.extend(steering.notes(self.finished, &self.places));
        }
        let subflows = self.finish_subflows(fallback_reason.as_deref());
        let elapsed_s = self.finished.duration_since(self.started).as_secs_f64();
        let (bytes, receiver_s) = match end {
            End::Received(receipt) => (receipt.bytes, Some(receipt.duration_ns as f64 / 1e9)),
            End::Stopped => (self.payload_acked(), None),
        };
        Ok(TransferReport {
            bytes,
            stopped: receiver_s.is_none(),
            waited_s,
            elapsed_s,
            throughput_bps: bytes as f64 * 8.0 / elapsed_s,
            connect_s: self.connect_s,
            receiver_s,
            control,
            protocol: self.protocol,
            fallback: self.fallback,
            fallback_reason,
            path_manager,
            notes: self.notes,
            subflows,
            samples: Vec::new(),
        })
    }

    fn finish_subflows(&mut self, fallback: Option<&str>) -> Vec<SubflowReport> {
        let joins = &self.joins;
        let why = |i: usize| match (fallback, joins) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(joins)) => joins.why_missing(i),
            (None, None) => "the kernel's path manager did not make it: no endpoint is configured for it".into(),
        };
        self.subflows.reports(&self.places, why).to_vec()
    }

    fn names(&self) -> String {
        self.places.paths().iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn broken(&self, source: io::Error) -> NetError {
        NetError::Broken { paths: self.names(), bytes_acked: self.payload_acked(), source }
    }

    fn stalled(&self, waited: Duration) -> NetError {
        NetError::Stalled { paths: self.names(), bytes_acked: self.payload_acked(), waited_s: waited.as_secs() }
    }
}

fn ends(socket: &Socket) -> Option<(SocketAddr, SocketAddr)> {
    Some((socket.local_addr().ok()?.as_socket()?, socket.peer_addr().ok()?.as_socket()?))
}

fn mptcp_socket(
    maker: &dyn SocketMaker,
    paths: &[PathAddr],
    notes: &mut Vec<String>,
) -> Result<(Socket, Option<Joins>), NetError> {
    let joins = Joins::new(maker, paths);
    let family = Family::of(paths[0].local);
    let made = match &joins {
        Ok(_) => switch::make(maker, family),
        Err(_) => maker.tcp(family, Protocol::Mptcp).map(|socket| switch::Made { socket, kernel_managed: None }),
    }
    .map_err(NetError::NoMptcp)?;
    let why = match (&joins, made.kernel_managed) {
        (Err(e), _) => Some(format!("no access to MPTCP events: {e}")),
        (Ok(_), why) => why,
    };
    let Some(why) = why else { return Ok((made.socket, joins.ok())) };
    notes.push(format!(
        "the kernel chose the subflows, from `ip mptcp endpoint` ({why}); choosing them needs CAP_NET_ADMIN"
    ));
    Ok((made.socket, None))
}

/// Sends from place `from` of the stream: the preface, then filling up to `end`.
fn send(socket: &Socket, preface: &[u8], from: u64, end: u64) -> io::Result<u64> {
    let before = preface.get(from as usize..).unwrap_or_default();
    let filling = (end - from).saturating_sub(before.len() as u64).min(payload::CHUNK as u64) as usize;
    let parts = [IoSlice::new(before), IoSlice::new(&payload::chunk()[..filling])];
    socket.send_vectored_with_flags(&parts, libc::MSG_NOSIGNAL).map(|n| n as u64)
}

/// Tries a congestion controller on a TCP socket.
pub(crate) fn check_control(maker: &dyn SocketMaker, family: Family, name: &str) -> Result<(), NetError> {
    let trial = maker.tcp(family, Protocol::Tcp).map_err(NetError::system("making a TCP socket"))?;
    info::set_control(&trial, name).map_err(|e| control_error(maker, name, e))
}

fn control_error(maker: &dyn SocketMaker, name: &str, error: io::Error) -> NetError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => NetError::ControlNotPermitted { name: name.into() },
        Some(libc::ENOENT | libc::EINVAL) => {
            let available = maker.sysctl("ipv4/tcp_available_congestion_control").unwrap_or_default();
            NetError::UnknownControl { name: name.into(), available }
        }
        _ => NetError::System { what: "setting TCP_CONGESTION", source: error },
    }
}

fn fallback_reason(far_end_mptcp: bool) -> String {
    if far_end_mptcp {
        "the handshake came back without MPTCP: something on the way removes it, or a recent failure made this kernel \
         avoid it (net.mptcp.blackhole_timeout)"
    } else {
        "the far end has no MPTCP"
    }
    .into()
}
