//! What the subflows of one connection may be given, by the rule of `pathcast_session::steer`: it is told to the kernel by backup
//! flags (RFC 8684, section 3.3.8), and what no subflow has use for yet is held back in this program.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pathcast_base::Nanos;
use pathcast_session::steer::{Held, Steer, SubflowSeen, Task, UNSENT, Verdict, is_coupled};
use socket2::Socket;

use crate::info::{self, MptcpInfo, SubflowInfo};
use crate::joins::Joins;
use crate::maker::SocketMaker;
use crate::places::Places;

/// Between two looks.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// Looks in a row at which the kernel may refuse what it is told: it may lack memory for a moment.
const REFUSALS: u32 = 10;
/// Largest send buffer of a TCP connection where the system does not say [byte].
const LARGEST: u64 = 4 << 20;
/// What the far end's buffer is taken to hold as long as its window has not shown more [byte].
const FAR_ROOM: u64 = 7 << 20;

/// A subflow, and what was done with it.
struct Line {
    /// Its number in the connection: one that is made again may have the same ends.
    id: u32,
    local: SocketAddr,
    remote: SocketAddr,
    /// It is a backup since then, and why.
    held: Option<(Instant, Held)>,
    was_held: Duration,
    /// Closed by this program.
    closed: Option<(Instant, Held)>,
}

/// Where subflows are told what they are.
pub(crate) trait Backups {
    /// As [`Joins::begin_as_backup`].
    fn begin_as_backup(&mut self, backup: bool);
    /// As [`Joins::set_backup`].
    fn set_backup(&mut self, local: SocketAddr, remote: SocketAddr, backup: bool) -> io::Result<()>;
    /// As [`Joins::leave`].
    fn leave(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        why: &str,
        again: bool,
        places: &Places,
    ) -> io::Result<()>;
}

impl Backups for Joins {
    fn begin_as_backup(&mut self, backup: bool) {
        self.begin_as_backup(backup);
    }
    fn set_backup(&mut self, local: SocketAddr, remote: SocketAddr, backup: bool) -> io::Result<()> {
        self.set_backup(local, remote, backup)
    }
    fn leave(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        why: &str,
        again: bool,
        places: &Places,
    ) -> io::Result<()> {
        self.leave(local, remote, why, again, places)
    }
}

/// The rule, on its way.
pub(crate) struct Steering {
    rule: Steer,
    began: Instant,
    next: Instant,
    /// How far the stream may be given to the kernel.
    may_give: u64,
    /// What both ends' buffers hold, and the largest window that the far end had [byte].
    room: u64,
    window: u64,
    coupled: bool,
    lines: Vec<Line>,
    /// Looks in a row at which the kernel refused something.
    refusals: u32,
    /// It refuses for good: it is told nothing more.
    refused: Option<String>,
}

impl Steering {
    /// Of a connection over so many paths that is not made yet.
    pub fn new(socket: &Socket, paths: usize, maker: &dyn SocketMaker, joins: &mut impl Backups) -> Steering {
        joins.begin_as_backup(true);
        // neither is needed for the rest to work; an older kernel may refuse the first
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
        let _ = widen(socket, largest(maker.sysctl("ipv4/tcp_wmem").ok().as_deref()).saturating_mul(paths as u64));
        let coupled = info::control(socket).is_ok_and(|name| is_coupled(&name));
        let (rule, began) = (Steer::default(), Instant::now());
        let may_give = rule.ahead();
        let lines = Vec::new();
        let room = FAR_ROOM;
        Steering { rule, began, next: began, may_give, room, window: 0, coupled, lines, refusals: 0, refused: None }
    }

    /// Looks at what both ends' buffers hold; to be called before [`Steering::look`].
    pub fn look_at_room(&mut self, socket: &Socket, info: &MptcpInfo) {
        let told = info.subflows.iter().map(|one| u64::from(one.tcp.window)).max().unwrap_or(0);
        self.window = self.window.max(told);
        if let Ok(own) = socket.send_buffer_size() {
            self.room = room(own as u64, self.window);
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// How far the stream may be given to the kernel [byte].
    pub fn may_give(&self) -> u64 {
        self.may_give
    }

    /// Looks at the connection, of which `sent` bytes were given to the kernel and `left` were not.
    pub fn look(
        &mut self,
        now: Instant,
        info: &MptcpInfo,
        sent: u64,
        left: u64,
        joins: &mut impl Backups,
        places: &Places,
    ) {
        self.next = now + TICK;
        let open = |one: &&SubflowInfo| one.tcp.state == info::TCP_ESTABLISHED;
        let subflows: Vec<&SubflowInfo> = info.subflows.iter().filter(open).collect();
        let seen: Vec<SubflowSeen> = subflows.iter().map(|one| see(one)).collect();
        // both are told wherever there is a steering (`info::tells_subflows`)
        let (acked, taken) = (info.bytes_acked.unwrap_or(sent), info.bytes_sent.map_or(sent, |taken| taken.min(sent)));
        let (waits, open) = (sent - taken, taken.saturating_sub(acked));
        let task = Task { left: left + waits, waits, open, room: self.room, coupled: self.coupled };
        let at = Nanos(now.duration_since(self.began).as_nanos() as u64);
        let verdicts = self.rule.look(at, task, &seen);
        // what waits in one that is held must not keep the others from theirs
        let free = seen.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Free);
        let unsent: u64 = free.map(|(one, _)| one.unsent).sum();
        self.may_give = taken + self.rule.ahead().saturating_sub(unsent);
        if self.refused.is_some() {
            let known = self.lines.len();
            for one in &subflows {
                self.line_of(now, one);
            }
            return self.let_go(now, known, joins);
        }
        let mut refused = None;
        for (one, verdict) in subflows.iter().zip(verdicts) {
            if let Err(error) = self.apply(now, one, verdict, joins, places)
                && !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
            {
                // those two say that the kernel has no such subflow, yet or any more (`mptcp_pm_mp_prio_send_ack`)
                refused = Some(error);
            }
        }
        self.refusals = refused.as_ref().map_or(0, |_| self.refusals + 1);
        if let Some(error) = refused.filter(|_| self.refusals >= REFUSALS) {
            // the kernel chooses from now on, among subflows of which none is a backup
            self.refused = Some(error.to_string());
            joins.begin_as_backup(false);
            self.let_go(now, 0, joins);
        }
    }

    /// Of the lines from number `from` on none is to stay a backup: each is tried once.
    fn let_go(&mut self, now: Instant, from: usize, joins: &mut impl Backups) {
        for line in self.lines[from..].iter_mut().filter(|line| line.closed.is_none()) {
            if let Some((since, _)) = line.held
                && joins.set_backup(line.local, line.remote, false).is_ok()
            {
                line.held = None;
                line.was_held += now.duration_since(since);
            }
        }
    }

    fn apply(
        &mut self,
        now: Instant,
        one: &SubflowInfo,
        verdict: Verdict,
        joins: &mut impl Backups,
        places: &Places,
    ) -> io::Result<()> {
        let (local, remote) = (one.local, one.remote);
        let line = self.line_of(now, one);
        match (verdict, line.held) {
            (Verdict::Close(why), _) if line.closed.is_none() => {
                joins.leave(local, remote, told(why), why == Held::Silent, places)?;
                line.closed = Some((now, why));
            }
            (Verdict::Hold(why), None) => {
                joins.set_backup(local, remote, true)?;
                line.held = Some((now, why));
            }
            (Verdict::Hold(why), Some((since, _))) => line.held = Some((since, why)),
            (Verdict::Free, Some((since, _))) => {
                joins.set_backup(local, remote, false)?;
                line.held = None;
                line.was_held += now.duration_since(since);
            }
            _ => {}
        }
        Ok(())
    }

    fn line_of(&mut self, now: Instant, one: &SubflowInfo) -> &mut Line {
        let at = self.lines.iter().position(|l| l.id == one.id).unwrap_or_else(|| {
            let (id, local, remote) = (one.id, one.local, one.remote);
            let held = (!self.lines.is_empty()).then_some((now, Held::Late)); // later ones begin as backups
            self.lines.push(Line { id, local, remote, held, was_held: Duration::ZERO, closed: None });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }

    /// What the report says of it: which subflows were backups most of the time, or closed, and why.
    pub fn notes(&self, end: Instant, places: &Places) -> Vec<String> {
        let mut notes = Vec::new();
        let seconds = |time: Duration| time.as_secs_f64();
        let whole = end.saturating_duration_since(self.began);
        let mut left: Vec<(String, u32, f64, Held)> = Vec::new();
        for line in &self.lines {
            let path = places.find(line.local, line.remote.ip());
            let name = path.map_or_else(|| line.local.ip().to_string(), |path| places.paths()[path].name.clone());
            let held =
                line.was_held + line.held.map_or(Duration::ZERO, |(since, _)| end.saturating_duration_since(since));
            if let Some((at, why)) = line.closed {
                let at = seconds(at.duration_since(self.began));
                match left.iter_mut().find(|(known, ..)| *known == name) {
                    Some((_, times, last, reason)) => (*times, *last, *reason) = (*times + 1, at, why),
                    None => left.push((name, 1, at, why)),
                }
            } else if let Some((_, why)) = line.held
                && 2 * held > whole
            {
                notes.push(format!(
                    "{name} was a backup for {:.1} of {:.1} s: {}",
                    seconds(held),
                    seconds(whole),
                    told(why)
                ));
            }
        }
        notes.extend(left.into_iter().map(|(name, times, at, why)| match times {
            1 => format!("{name} was left at {at:.1} s: {}", told(why)),
            _ => format!("{name} was left {times} times, last at {at:.1} s: {}", told(why)),
        }));
        notes.extend(
            self.refused.as_ref().map(|why| format!("which subflows are backups is the kernel's choice: {why}")),
        );
        notes
    }
}

/// Gives a connection the send buffer that the kernel's own tuning would come to, from the start: what waits for a slow subflow
/// needs it before that. No less, since the tuning has its end by this. Plain SO_SNDBUF is bounded by `net.core.wmem_max`,
/// mostly far below `tcp_wmem`.
///
/// # Errors
/// PermissionDenied without CAP_NET_ADMIN in the first user namespace: the tuning goes on.
fn widen(socket: &Socket, bytes: u64) -> io::Result<()> {
    let half = (bytes / 2).min(i32::MAX as u64 / 2) as libc::c_int; // the kernel doubles it
    // SAFETY: the option reads one int, which outlives the call
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            (&raw const half).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The largest send buffer of one TCP connection by `tcp_wmem` [byte].
fn largest(tcp_wmem: Option<&str>) -> u64 {
    tcp_wmem.and_then(|text| text.split_whitespace().nth(2)?.parse().ok()).unwrap_or(LARGEST)
}

/// What both ends' buffers hold: our own of so many bytes, and the far end's, of which its window, which grows with what it
/// receives, tells the least [byte].
fn room(own: u64, window: u64) -> u64 {
    // an eighth is the memory of the packets around it
    window.max(FAR_ROOM).min(own / 8 * 7)
}

fn see(one: &SubflowInfo) -> SubflowSeen {
    let (tcp, mss) = (&one.tcp, u64::from(one.tcp.mss));
    let micros = |us: u32| Nanos(u64::from(us) * 1000);
    SubflowSeen {
        id: one.id,
        srtt: micros(tcp.rtt_us),
        min_rtt: micros(tcp.min_rtt_us.unwrap_or(0)),
        window: u64::from(tcp.cwnd) * mss,
        pace: tcp.pacing_rate,
        unsent: u64::from(tcp.unsent),
        out: u64::from(tcp.unacked) * mss,
        acked: tcp.bytes_acked,
        again: u64::from(tcp.retransmits),
        timeouts: u32::from(tcp.timeouts),
    }
}

fn told(why: Held) -> &'static str {
    match why {
        Held::Late => "what it was given would have arrived after all else",
        Held::Piece => "its pace was far above what it delivered, so it got a piece at a time",
        Held::Room => "what waited for it would have filled the buffers",
        Held::Silent => "it did not answer",
        Held::Coupled => {
            "packet losses keep the best path's window small, and this controller takes of it what it gives another"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pathcast_base::{PathAddr, Protocol};

    use super::*;
    use crate::info::TcpInfo;
    use crate::maker::{Family, HostSockets, SocketMaker};

    /// A kernel that has no memory for the first so many commands.
    struct Kernel {
        refuses: usize,
        begin_as_backup: bool,
        told: Vec<(SocketAddr, bool)>,
        /// Which were closed, and whether they are to be asked for again.
        left: Vec<(SocketAddr, bool)>,
    }

    impl Kernel {
        fn answer(&mut self) -> io::Result<()> {
            if self.refuses == 0 {
                return Ok(());
            }
            self.refuses -= 1;
            Err(io::Error::from_raw_os_error(libc::ENOBUFS))
        }
    }

    impl Backups for Kernel {
        fn begin_as_backup(&mut self, backup: bool) {
            self.begin_as_backup = backup;
        }
        fn set_backup(&mut self, local: SocketAddr, _: SocketAddr, backup: bool) -> io::Result<()> {
            self.told.push((local, backup));
            self.answer()
        }
        fn leave(&mut self, local: SocketAddr, _: SocketAddr, _: &str, again: bool, _: &Places) -> io::Result<()> {
            self.left.push((local, again));
            self.answer()
        }
    }

    fn subflow(n: u8, look: u64) -> SubflowInfo {
        let tcp = TcpInfo {
            state: info::TCP_ESTABLISHED,
            mss: 1448,
            cwnd: 100,
            rtt_us: 20_000,
            min_rtt_us: Some(20_000),
            unsent: 1 << 20,
            bytes_acked: look * 72_400,
            ..TcpInfo::default()
        };
        let at = |net: u8, port| SocketAddr::new([10, 0, net, n].into(), port);
        SubflowInfo { id: n.into(), local: at(0, 7), remote: at(1, 5270), tcp }
    }

    /// What a kernel has heard of the second of two equal subflows after so many looks, and the notes.
    fn steered(kernel: &mut Kernel, looks: u64) -> Vec<String> {
        let paths = [1, 2].map(|n| PathAddr::new(format!("p{n}"), [10, 0, 0, n].into(), [10, 0, 1, n].into()));
        let places = Places::new(&paths, 5270, Arc::new(HostSockets), None);
        let socket = HostSockets.tcp(Family::V4, Protocol::Tcp).unwrap();
        let mut steering = Steering::new(&socket, 2, &HostSockets, kernel);
        assert!(kernel.begin_as_backup);
        let mut now = steering.began;
        for look in 1..=looks {
            now += TICK;
            let info = MptcpInfo {
                token: 1,
                fallback: false,
                bytes_acked: Some(look * 144_800),
                bytes_sent: Some(look * 144_800),
                unacked: 0,
                subflows: vec![subflow(1, look), subflow(2, look)],
            };
            steering.look(now, &info, look * 144_800, 1 << 40, kernel, &places);
        }
        steering.notes(now, &places)
    }

    /// By its own tuning the kernel comes to the largest of `tcp_wmem` for each subflow.
    #[test]
    fn the_send_buffer_is_no_smaller_than_the_kernel_would_make_it() {
        let mut kernel = Kernel { refuses: 0, begin_as_backup: false, told: Vec::new(), left: Vec::new() };
        let Ok(socket) = HostSockets.tcp(Family::V4, Protocol::Mptcp) else {
            println!("SKIPPED: the_send_buffer_is_no_smaller_than_the_kernel_would_make_it: needs MPTCP");
            return;
        };
        let tuned = socket.send_buffer_size().unwrap() as u64;
        let most = 9 * largest(HostSockets.sysctl("ipv4/tcp_wmem").ok().as_deref());
        Steering::new(&socket, 9, &HostSockets, &mut kernel);
        let got = socket.send_buffer_size().unwrap() as u64;
        // where it may not be forced the tuning goes on
        let forced = widen(&socket, most).is_ok();
        assert_eq!(got, if forced { most } else { tuned });
    }

    #[test]
    fn the_room_is_that_of_the_smaller_buffer() {
        assert_eq!(
            [largest(Some("4096\t16384\t33554432")), largest(Some("no")), largest(None)],
            [32 << 20, LARGEST, LARGEST]
        );
        assert_eq!([room(8 << 20, 65_535), room(256 << 20, 65_535)], [7 << 20, FAR_ROOM]);
        assert_eq!([room(256 << 20, 48 << 20), room(16 << 20, 48 << 20)], [48 << 20, 14 << 20]);
    }

    #[test]
    fn what_the_kernel_refuses_once_is_told_again() {
        let second = subflow(2, 0).local;
        let mut kernel = Kernel { refuses: 1, begin_as_backup: false, told: Vec::new(), left: Vec::new() };
        let notes = steered(&mut kernel, 100);
        assert_eq!((&kernel.told[..2], notes.len()), (&[(second, false); 2][..], 0), "{notes:?}");
        assert!(kernel.begin_as_backup);
    }

    /// What it holds has filled the buffers, and its timeouts follow one another.
    #[test]
    fn one_that_is_closed_for_its_silence_is_to_be_asked_for_again_and_is_another_then() {
        let mut kernel = Kernel { refuses: 0, begin_as_backup: false, told: Vec::new(), left: Vec::new() };
        let paths = [1, 2].map(|n| PathAddr::new(format!("p{n}"), [10, 0, 0, n].into(), [10, 0, 1, n].into()));
        let places = Places::new(&paths, 5270, Arc::new(HostSockets), None);
        let socket = HostSockets.tcp(Family::V4, Protocol::Tcp).unwrap();
        let mut steering = Steering::new(&socket, 2, &HostSockets, &mut kernel);
        let second = subflow(2, 0).local;
        let mut look = |at: u64, subflows: Vec<SubflowInfo>, kernel: &mut Kernel| {
            let acked = at.min(100) * 144_800;
            let (bytes_acked, bytes_sent) = (Some(acked), Some(acked + FAR_ROOM));
            let info = MptcpInfo { token: 1, fallback: false, bytes_acked, bytes_sent, unacked: 0, subflows };
            steering.look(steering.began + TICK * at as u32, &info, acked + FAR_ROOM, 1 << 40, kernel, &places);
            steering.notes(steering.began + TICK * at as u32, &places)
        };
        (1..=100).for_each(|at| drop(look(at, vec![subflow(1, at), subflow(2, at)], &mut kernel)));
        let (mut idle, mut silent) = (subflow(1, 100), subflow(2, 100));
        idle.tcp.unsent = 0;
        (silent.tcp.unacked, silent.tcp.timeouts) = (100, 4);
        let notes = look(101, vec![idle, silent], &mut kernel);
        assert_eq!(kernel.left, [(second, true)], "{notes:?}");
        assert!(notes[0].starts_with("p2 was left at") && notes[0].ends_with("it did not answer"), "{notes:?}");
        // from the same port
        kernel.told.clear();
        let mut back = SubflowInfo { id: 3, ..silent };
        (back.tcp.unacked, back.tcp.timeouts) = (0, 0);
        (back.tcp.unsent, back.tcp.bytes_acked) = (0, 0);
        let busy = |at| vec![subflow(1, at), back];
        (102..150).for_each(|at| drop(look(at, busy(at), &mut kernel)));
        assert!(kernel.told.contains(&(second, false)), "{:?}", kernel.told);
    }

    #[test]
    fn where_the_kernel_refuses_for_good_none_stays_a_backup() {
        let second = subflow(2, 0).local;
        let mut kernel =
            Kernel { refuses: REFUSALS as usize, begin_as_backup: false, told: Vec::new(), left: Vec::new() };
        let notes = steered(&mut kernel, 100);
        assert_eq!(kernel.told, [(second, false); REFUSALS as usize + 1]);
        assert!(!kernel.begin_as_backup);
        assert!(notes.len() == 1 && notes[0].contains("is the kernel's choice"), "{notes:?}");
    }
}
