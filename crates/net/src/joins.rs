//! The further subflows of one MPTCP connection: asked for when the kernel is ready, and watched.
//!
//! A subflow whose path has died is left alone: the kernel sends its data over the others within seconds, and uses it
//! again should the path come back. One that is closed since it was silent, or that could not be made, is asked for again.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use pathcast_base::PathAddr;
use pathcast_session::address::is_one_host;

use crate::error::NetError;
use crate::events::{Event, EventKind, UNEXPLAINED};
use crate::info::{SubflowInfo, TCP_CLOSE};
use crate::maker::SocketMaker;
use crate::path_manager::{Commands, Events};
use crate::places::Places;
use crate::subflows::Subflows;

/// Older kernels refuse address id 0, that of the first subflow's address; then it goes by this one.
const SPARE_ID: u8 = 250;
/// Time until a subflow is asked for again; doubles each time that it ends before it was up for the longest, up to …
const PAUSE: Duration = Duration::from_secs(5);
/// … this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The first such time where it is not known whether the connection can take further subflows yet.
const UNHEARD: Duration = Duration::from_millis(100);
/// A port that somebody else has taken meanwhile is chosen anew so often.
const PORTS: usize = 3;

#[derive(Clone, Debug, PartialEq)]
enum State {
    Waiting,
    Asked,
    Failed(String),
    /// Closed by this program.
    Left(String),
}

struct Join {
    /// Which of the paths.
    path: usize,
    id: u8,
    state: State,
    /// When it failed, and how long it is left alone then; none: it is not asked for again.
    failed: Option<Instant>,
    pause: Duration,
    /// When it was established.
    up: Option<Instant>,
}

impl Join {
    fn ask(&mut self, commands: &mut Commands, token: u32, backup: bool, places: &mut Places) {
        let mut why = String::new();
        for _ in 0..PORTS {
            if !places.is_told(self.path)
                && let Err(e) = places.begin(self.path)
            {
                return self.fail(e.to_string());
            }
            let (local, remote) = (places.local(self.path), places.remote(self.path));
            let mut done = commands.create(token, self.id, local, remote, backup);
            if self.id == 0 && done.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL)) {
                self.id = SPARE_ID;
                done = commands.create(token, self.id, local, remote, backup);
            }
            let Err(e) = done else { return self.state = State::Asked };
            why = format!("could not be created: {}", explain(&e, local));
            if e.raw_os_error() != Some(libc::EADDRINUSE) {
                break;
            }
            places.end(self.path);
        }
        self.fail(why);
    }

    fn fail(&mut self, why: String) {
        self.state = State::Failed(why);
        self.rest(Instant::now());
    }

    /// It is asked for again after its pause.
    fn rest(&mut self, now: Instant) {
        if self.up.take().is_some_and(|up| now.duration_since(up) >= LONGEST_PAUSE) {
            self.pause = PAUSE;
        }
        self.failed = Some(now);
    }
}

/// The user-space path manager of one connection.
pub(crate) struct Joins {
    commands: Commands,
    events: Events,
    token: u32,
    established: bool,
    /// Events were lost, perhaps that of our connection's being established.
    lost: bool,
    /// Events were lost since the subflows were looked at, perhaps that of the end of one.
    unheard: bool,
    /// Further subflows begin as backups, until it is known what they are to be given.
    backup: bool,
    /// One for every path; that of the first is never asked for.
    joins: Vec<Join>,
}

impl Joins {
    /// To be called before connect(), so that no event is missed.
    ///
    /// # Errors
    /// PermissionDenied without CAP_NET_ADMIN.
    pub fn new(maker: &dyn SocketMaker, paths: &[PathAddr]) -> io::Result<Joins> {
        let commands = Commands::open(maker)?;
        let events = commands.subscribe(maker)?;
        let joins = paths
            .iter()
            .enumerate()
            .map(|(i, path)| Join {
                path: i,
                id: address_id(paths, path.local),
                state: State::Waiting,
                failed: None,
                pause: PAUSE,
                up: None,
            })
            .collect();
        Ok(Joins { commands, events, token: 0, established: false, lost: false, unheard: false, backup: false, joins })
    }

    /// The connection's token is known now.
    pub fn set_token(&mut self, token: u32) {
        self.token = token;
    }

    /// Whether further subflows are to begin as backups.
    pub fn begin_as_backup(&mut self, backup: bool) {
        self.backup = backup;
    }

    /// Makes a subflow a backup, or takes that back.
    ///
    /// # Errors
    /// The system's; `NotFound` where it is gone.
    pub fn set_backup(&mut self, local: SocketAddr, remote: SocketAddr, backup: bool) -> io::Result<()> {
        self.commands.set_backup(self.token, local, remote, backup)
    }

    /// Closes a subflow, and why: for good, or to be asked for `again` later.
    ///
    /// # Errors
    /// The system's; `NotFound` where it is gone.
    pub fn leave(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        why: &str,
        again: bool,
        places: &Places,
    ) -> io::Result<()> {
        self.commands.destroy(self.token, local, remote)?;
        if let Some(path) = places.find(local, remote.ip()) {
            let join = &mut self.joins[path];
            (join.state, join.failed) = (State::Left(why.into()), None);
            if again {
                join.rest(Instant::now());
            }
        }
        Ok(())
    }

    /// Chooses the ports of the further subflows, and tells the network of them: before the connection begins, so that none of
    /// them waits for it. What is refused is asked for again as other subflows are.
    pub fn begin(&mut self, places: &mut Places) {
        for join in self.joins.iter_mut().skip(1) {
            if let Err(e) = places.begin(join.path) {
                join.fail(e.to_string());
            }
        }
    }

    /// Where events come from, to be waited for.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Forgets what the kernel has told of others before the connection begins: what was lost of it is not ours.
    pub fn skip(&self) {
        let _ = self.events.take();
    }

    /// Takes in what the kernel has told. True when subflows have come or gone.
    pub fn handle(&mut self, subflows: &mut Subflows, places: &mut Places) -> bool {
        let mut changed = false;
        let (events, lost) = self.events.take();
        self.lost |= lost;
        self.unheard |= lost;
        for event in events {
            if event.token != self.token || self.token == 0 {
                continue; // another connection on this host
            }
            match event.kind {
                EventKind::Established if !self.established => {
                    self.established = true;
                    self.ask(places);
                }
                EventKind::SubflowEstablished => {
                    changed = true;
                    if let (Some(local), Some(remote)) = (event.local, event.remote)
                        && let Some(path) = places.find(local, remote.ip())
                    {
                        self.joins[path].up = Some(Instant::now());
                    }
                }
                EventKind::SubflowClosed => {
                    changed = true;
                    self.closed(&event, subflows, places);
                }
                _ => {}
            }
        }
        changed
    }

    fn ask(&mut self, places: &mut Places) {
        for join in self.joins.iter_mut().skip(1).filter(|join| join.state == State::Waiting) {
            join.ask(&mut self.commands, self.token, self.backup, places);
        }
    }

    /// Asks again for what failed a while ago: its line may be back. And for the first time where the event that says when was
    /// perhaps lost: it may be too early, so soon again.
    pub fn ask_again(&mut self, now: Instant, places: &mut Places) {
        if self.lost && !self.established && self.token != 0 {
            self.established = true;
            self.joins.iter_mut().for_each(|join| join.pause = UNHEARD);
            self.ask(places);
        }
        for join in &mut self.joins {
            if join.failed.is_some_and(|failed| now >= failed + join.pause) {
                join.failed = None;
                join.pause = LONGEST_PAUSE.min(2 * join.pause);
                // a port that was in use lingers
                places.end(join.path);
                join.ask(&mut self.commands, self.token, self.backup, places);
            }
        }
    }

    /// Where events were lost: what was there or asked for and is not among these has ended, and is asked for again.
    pub fn compare(&mut self, there: &[SubflowInfo], places: &Places) {
        if !std::mem::take(&mut self.unheard) {
            return;
        }
        let open: Vec<Option<usize>> = there
            .iter()
            .filter(|one| one.tcp.state != TCP_CLOSE)
            .map(|one| places.find(one.local, one.remote.ip()))
            .collect();
        for join in &mut self.joins {
            // connect() has made that of the first path
            let begun = join.state == State::Asked || (join.path == 0 && join.state == State::Waiting);
            if begun && join.failed.is_none() && !open.contains(&Some(join.path)) {
                join.fail("it ended; why was lost".into());
            }
        }
    }

    fn closed(&mut self, event: &Event, subflows: &mut Subflows, places: &Places) {
        let (Some(local), Some(remote)) = (event.local, event.remote) else { return };
        let why = event.why().unwrap_or_else(|| UNEXPLAINED.to_owned());
        let path = places.find(local, remote.ip());
        let join = path.map(|path| &mut self.joins[path]);
        if let Some(Join { state: State::Left(why), .. }) = &join {
            subflows.closed(local, remote, why);
            return;
        }
        let carried = subflows.closed(local, remote, &why);
        if let Some(join) = join.filter(|join| join.failed.is_none()) {
            join.fail(if carried { why } else { format!("join failed: {why}") });
        }
    }

    /// Why the path number `i` has no subflow.
    pub fn why_missing(&self, i: usize) -> String {
        match self.joins.get(i).map(|j| &j.state) {
            Some(State::Failed(why) | State::Left(why)) => why.clone(),
            Some(State::Asked) => "the far end did not answer the join in time".into(),
            _ if self.established => "not asked for".into(),
            _ => "the transfer ended before the connection could take further subflows".into(),
        }
    }
}

/// One id for each local address; the first subflow's address has 0.
fn address_id(paths: &[PathAddr], local: IpAddr) -> u8 {
    let mut distinct: Vec<IpAddr> = Vec::new();
    for path in paths {
        if !distinct.contains(&path.local) {
            distinct.push(path.local);
        }
    }
    distinct.iter().position(|&a| a == local).map_or(0, |i| if i == 0 { 0 } else { i as u8 + 1 })
}

fn explain(error: &io::Error, local: SocketAddr) -> String {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => format!("{} is not an address of this host", local.ip()),
        _ => error.to_string(),
    }
}

/// Are these paths that one connection can have? `apart`: ports tell paths of one address pair apart.
///
/// # Errors
/// `Argument`, naming the path.
pub(crate) fn check_paths(paths: &[PathAddr], apart: bool) -> Result<(), NetError> {
    let wrong = |text: String| Err(NetError::Argument(text));
    let Some(first) = paths.first() else { return wrong("no path given".into()) };
    if paths.len() > 9 {
        return wrong(format!("{} paths: MPTCP in Linux takes 9 subflows at most", paths.len()));
    }
    for (i, path) in paths.iter().enumerate() {
        if path.local.is_ipv4() != path.remote.is_ipv4() {
            return wrong(format!("path `{}` goes from {} to {}: two IP versions", path.name, path.local, path.remote));
        }
        if path.local.is_ipv4() != first.local.is_ipv4() {
            return wrong(format!("paths `{}` and `{}` are of different IP versions", first.name, path.name));
        }
        if !is_one_host(path.remote) {
            return wrong(format!("path `{}` goes to {}, which no single host has", path.name, path.remote));
        }
        for twin in paths[..i].iter().filter(|p| (p.local, p.remote) == (path.local, path.remote)) {
            let both = |what: &str| wrong(format!("paths `{}` and `{}` are {what}", twin.name, path.name));
            match (twin.local_port, path.local_port) {
                (Some(one), Some(other)) if one == other => return both("the same pair of addresses and ports"),
                (Some(_), Some(_)) => {}
                _ if apart => {}
                _ => return both("the same pair of addresses: a second subflow needs another local address"),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::info::{TCP_ESTABLISHED, TcpInfo};
    use crate::maker::HostSockets;

    fn path(l: u8, r: u8) -> PathAddr {
        PathAddr::new(format!("{l}-{r}"), [10, 0, 0, l].into(), [10, 9, 0, r].into())
    }

    #[test]
    fn an_address_has_one_id() {
        let paths = [path(1, 1), path(2, 1), path(1, 2), path(3, 1)];
        assert_eq!(paths.each_ref().map(|p| address_id(&paths, p.local)), [0, 2, 0, 3]);
    }

    #[test]
    fn a_subflow_whose_end_was_lost_is_asked_for_again() {
        let (paths, maker) = ([path(1, 1), path(2, 1), path(3, 1)], Arc::new(HostSockets));
        let Ok(mut joins) = Joins::new(&*maker, &paths) else {
            println!("SKIPPED: a_subflow_whose_end_was_lost_is_asked_for_again: needs MPTCP and CAP_NET_ADMIN");
            return;
        };
        let places = Places::new(&paths, 5270, maker, None);
        joins.joins.iter_mut().skip(1).for_each(|join| join.state = State::Asked);
        let tcp = TcpInfo { state: TCP_ESTABLISHED, ..TcpInfo::default() };
        let there = [1, 2].map(|l| SubflowInfo {
            id: 0,
            local: ([10, 0, 0, l], 7).into(),
            remote: ([10, 9, 0, 1], 5270).into(),
            tcp,
        });
        let failed = |joins: &Joins| joins.joins.iter().map(|join| join.failed.is_some()).collect::<Vec<_>>();
        joins.compare(&there, &places);
        assert_eq!(failed(&joins), [false; 3], "its event may be on its way");
        joins.unheard = true;
        joins.compare(&there, &places);
        assert_eq!(failed(&joins), [false, false, true]);
        assert!(joins.why_missing(2).contains("it ended"));
        joins.unheard = true;
        joins.compare(&there[1..], &places);
        assert_eq!(failed(&joins), [true, false, true], "that of connect()");
    }

    #[test]
    fn one_that_was_up_for_long_is_soon_asked_for_again() {
        let now = Instant::now();
        let pause = |up: Option<Duration>| {
            let state = State::Asked;
            let mut join = Join { path: 1, id: 2, state, failed: None, pause: LONGEST_PAUSE, up: up.map(|_| now) };
            join.rest(now + up.unwrap_or_default());
            join.pause
        };
        let short = LONGEST_PAUSE - Duration::from_secs(1);
        assert_eq!([None, Some(short), Some(LONGEST_PAUSE)].map(pause), [LONGEST_PAUSE, LONGEST_PAUSE, PAUSE]);
    }

    #[test]
    fn impossible_paths_are_named() {
        assert!(check_paths(&[], false).is_err());
        assert!(check_paths(&[path(1, 1), path(1, 2), path(2, 1)], false).is_ok());
        let twice = check_paths(&[path(1, 1), path(1, 1)], false).unwrap_err().to_string();
        assert!(twice.contains("`1-1`"), "{twice}");
        assert!(check_paths(&[path(1, 1), path(1, 1)], true).is_ok());
        let at = |port| PathAddr { local_port: Some(port), ..path(1, 1) };
        assert!(check_paths(&[at(7), at(8)], false).is_ok());
        assert!(check_paths(&[at(7), at(7)], true).unwrap_err().to_string().contains("addresses and ports"));
        let mixed = PathAddr::new("x", "::1".parse().unwrap(), [10, 0, 0, 1].into());
        assert!(check_paths(&[mixed], false).unwrap_err().to_string().contains("two IP versions"));
    }
}
