//! A path manager for connections that other programs make, over a fabric of switches: each gets a further subflow for
//! every path after the first, between the same addresses, whose port the fabric is told before its SYN leaves; as it is of
//! the first, where somebody knows that in time ([`Keeper::begins`]).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::diag::{self, Found};
use crate::events::{Event, EventKind, UNEXPLAINED};
use crate::maker::SocketMaker;
use crate::path_manager::{Commands, Events};
use crate::places::{Fabric, FlowEnds, Transport, free_port};
use crate::poll::readable;

/// Older kernels refuse address id 0, that of the first subflow's address; then it goes by this one.
const SPARE_ID: u8 = 250;
/// A port that somebody else has taken meanwhile is chosen anew so often.
const PORTS: usize = 3;
/// Until a subflow that has ended is asked for again, while its connection lives.
const PAUSE: Duration = Duration::from_secs(5);
/// Whether a connection that was to begin is there is looked at so often.
const BEGINS: Duration = Duration::from_secs(5);

/// Of one path, over all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The path.
    pub path: String,
    /// Subflows that were established over it.
    pub subflows: u64,
    /// Why the last one that failed did.
    pub failed: Option<String>,
}

struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
    /// By path: what the fabric was told of.
    told: Vec<Option<SocketAddr>>,
    /// By path: what is to be done where its subflow has ended.
    again: Vec<Option<Again>>,
}

/// A path is asked for again, unless its connection has ended meanwhile.
#[derive(Clone)]
struct Again {
    at: Instant,
    /// Why the subflow ended, to be told then: it may have ended with its connection.
    why: Option<String>,
}

/// The path manager of the connections of a run.
pub struct Keeper {
    maker: Arc<dyn SocketMaker>,
    fabric: Arc<dyn Fabric>,
    commands: Commands,
    events: Events,
    connections: HashMap<u32, Connection>,
    /// Connections that the fabric was told of before they began, of which the kernel's MPTCP has said nothing yet, and when it
    /// is looked whether they are there: some never begin, others are TCP's.
    begun: HashMap<(SocketAddr, SocketAddr), Instant>,
    kept: Vec<Kept>,
}

impl Keeper {
    /// paths: their names, the first subflow's first. To be called before the first connection begins.
    ///
    /// # Errors
    /// PermissionDenied without CAP_NET_ADMIN; NotFound without MPTCP's path manager.
    pub fn new(maker: Arc<dyn SocketMaker>, fabric: Arc<dyn Fabric>, paths: &[String]) -> io::Result<Keeper> {
        let commands = Commands::open(&*maker)?;
        let events = commands.subscribe(&*maker)?;
        let kept = paths.iter().map(|path| Kept { path: path.clone(), ..Kept::default() }).collect();
        Ok(Keeper { maker, fabric, commands, events, connections: HashMap::new(), begun: HashMap::new(), kept })
    }

    /// A connection of the program's begins between these ends, over the first path: the fabric is told before its first
    /// packet leaves. One that says no is asked again when the connection stands, and that counts.
    pub fn begins(&mut self, local: SocketAddr, remote: SocketAddr) {
        if self.tell(local, remote, 0).is_ok() {
            self.begun.insert((local, remote), Instant::now() + BEGINS);
        }
    }

    /// Waits for what happens, at most until `deadline`, and does what is to be done. ours: whether the connection between
    /// these ends is one to be kept, also where it only waits for an answer yet.
    ///
    /// # Errors
    /// The system's.
    pub fn look(&mut self, deadline: Instant, ours: impl Fn(SocketAddr, SocketAddr) -> bool) -> io::Result<()> {
        readable(self.events.as_fd(), deadline)?;
        let (events, lost) = self.events.take();
        for event in events {
            self.happened(&event, &ours);
        }
        if lost {
            self.compare()?;
        }
        let now = Instant::now();
        let is_due = |again: &Option<Again>| again.as_ref().is_some_and(|again| again.at <= now);
        let due = |c: &Connection| (0..c.again.len()).filter(|&i| is_due(&c.again[i])).collect();
        let again: Vec<(u32, Vec<usize>)> = self.connections.iter().map(|(token, c)| (*token, due(c))).collect();
        for (token, paths) in again {
            paths.into_iter().for_each(|path| self.ask_again(token, path));
        }
        let fabric = &self.fabric;
        self.begun.retain(|&(local, remote), look| {
            if *look > now {
                return true;
            }
            *look = now + BEGINS;
            let there = ours(local, remote);
            if !there {
                fabric.end(FlowEnds { transport: Transport::Tcp, local, remote });
            }
            there
        });
        Ok(())
    }

    /// Of every path, what became of its subflows.
    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    fn happened(&mut self, event: &Event, ours: &impl Fn(SocketAddr, SocketAddr) -> bool) {
        let ends = event.local.zip(event.remote);
        match (event.kind, ends) {
            (EventKind::Established, Some(ends)) if !event.serves => {
                let told = self.begun.remove(&ends).is_some();
                if told || ours(ends.0, ends.1) {
                    self.established(event.token, ends, told);
                }
            }
            (EventKind::SubflowEstablished, Some((local, _))) => {
                if let Some(path) = self.path_of(event.token, local) {
                    self.kept[path].subflows += 1;
                }
            }
            (EventKind::SubflowClosed, Some((local, _))) => {
                if let Some(path) = self.path_of(event.token, local) {
                    self.forget(event.token, path);
                    match event.why() {
                        Some(why) => self.fail(event.token, path, &why),
                        None => self.ended(event.token, path, UNEXPLAINED),
                    }
                }
            }
            (EventKind::Closed, _) => self.closed(event.token),
            _ => {}
        }
    }

    /// Where events were lost: connections that were to begin are asked for, and subflows that are not there any more have ended.
    fn compare(&mut self) -> io::Result<()> {
        let begun: Vec<_> = self.begun.keys().copied().collect();
        for ends in begun {
            if let Some(Found { established: true, token: Some(token) }) = diag::find(&*self.maker, ends.0, ends.1)? {
                self.begun.remove(&ends);
                self.established(token, ends, true);
            }
        }
        let tokens: Vec<u32> = self.connections.keys().copied().collect();
        for token in tokens {
            let Connection { local, remote, told, .. } = &self.connections[&token];
            let (remote, told) = (*remote, told.clone());
            // also where the fabric has refused the first one
            let mut lives = diag::find(&*self.maker, *local, remote)?.is_some();
            let mut missing = Vec::new();
            for (path, local) in told.into_iter().enumerate().filter_map(|(path, local)| Some((path, local?))) {
                if diag::find(&*self.maker, local, remote)?.is_some() {
                    lives = true;
                } else {
                    missing.push(path);
                }
            }
            if !lives {
                self.closed(token);
                continue;
            }
            for path in missing {
                self.forget(token, path);
                self.ended(token, path, "it ended; why was lost");
            }
        }
        Ok(())
    }

    fn established(&mut self, token: u32, (local, remote): (SocketAddr, SocketAddr), told: bool) {
        self.closed(token); // of an earlier one whose end was not heard
        let paths = self.kept.len();
        let new = Connection { local, remote, told: vec![None; paths], again: vec![None; paths] };
        self.connections.insert(token, new);
        // who was not told before finds it under way, over the first path that stands
        match if told { Ok(()) } else { self.tell(local, remote, 0) } {
            Ok(()) => {
                self.kept[0].subflows += 1;
                self.connections.get_mut(&token).expect("just inserted").told[0] = Some(local);
            }
            Err(why) => self.kept[0].failed = Some(why),
        }
        (1..paths).for_each(|path| self.ask(token, path));
    }

    fn ask_again(&mut self, token: u32, path: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Some(why) = connection.again[path].take().and_then(|again| again.why) {
            self.kept[path].failed = Some(why);
        }
        // a connection's first subflow is the program's
        if path > 0 {
            self.ask(token, path);
        }
    }

    fn ask(&mut self, token: u32, path: usize) {
        let Some(connection) = self.connections.get(&token) else { return };
        let (mut local, remote) = (connection.local, connection.remote);
        let mut why = String::new();
        for _ in 0..PORTS {
            match free_port(&*self.maker, local.ip(), &[]) {
                Ok(port) => local.set_port(port),
                Err(e) => return self.fail(token, path, &e.to_string()),
            }
            if let Err(why) = self.tell(local, remote, path) {
                return self.fail(token, path, &why);
            }
            let mut done = self.commands.create(token, 0, local, remote, false);
            if done.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL)) {
                done = self.commands.create(token, SPARE_ID, local, remote, false);
            }
            let Err(e) = done else {
                self.connections.get_mut(&token).expect("it was there").told[path] = Some(local);
                return;
            };
            self.fabric.end(FlowEnds { transport: Transport::Tcp, local, remote });
            why = e.to_string();
            if e.raw_os_error() != Some(libc::EADDRINUSE) {
                break;
            }
        }
        self.fail(token, path, &why);
    }

    fn tell(&self, local: SocketAddr, remote: SocketAddr, path: usize) -> Result<(), String> {
        self.fabric.begin(FlowEnds { transport: Transport::Tcp, local, remote }, &self.kept[path].path)
    }

    fn fail(&mut self, token: u32, path: usize, why: &str) {
        self.kept[path].failed = Some(why.to_owned());
        self.pause(token, path, None);
    }

    /// Perhaps because its connection did, which is heard soon.
    fn ended(&mut self, token: u32, path: usize, why: &str) {
        self.pause(token, path, Some(why.to_owned()));
    }

    fn pause(&mut self, token: u32, path: usize, why: Option<String>) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.again[path] = Some(Again { at: Instant::now() + PAUSE, why });
        }
    }

    fn path_of(&self, token: u32, local: SocketAddr) -> Option<usize> {
        self.connections.get(&token)?.told.iter().position(|told| *told == Some(local))
    }

    fn forget(&mut self, token: u32, path: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if let Some(local) = connection.told[path].take() {
            self.fabric.end(FlowEnds { transport: Transport::Tcp, local, remote: connection.remote });
        }
    }

    fn closed(&mut self, token: u32) {
        (0..self.kept.len()).for_each(|path| self.forget(token, path));
        self.connections.remove(&token);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let tokens: Vec<u32> = self.connections.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.closed(token));
        let end = |(local, remote)| self.fabric.end(FlowEnds { transport: Transport::Tcp, local, remote });
        self.begun.drain().map(|(ends, _)| ends).for_each(end);
    }
}

/// Readable when something has happened.
impl AsFd for Keeper {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}
