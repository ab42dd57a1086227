//! The subflows of one connection as they come, send and go; the last values of those that are gone are kept.

use std::net::SocketAddr;

use pathcast_base::{PathAddr, SubflowReport};

use crate::info::{SubflowInfo, TCP_CLOSE};
use crate::places::Places;

/// A subflow counts as dead when for so long nothing came back on it although data is out [ms] …
const SILENT_MS: u32 = 2_000;
/// … and its retransmission timer has expired so often in a row.
const SILENT_TIMEOUTS: u8 = 2;

/// State of struct tcp_info.
const TCP_SYN_SENT: u8 = 2;

struct Track {
    /// The kernel's number of the subflow in its connection.
    id: u32,
    /// Why the kernel closed it.
    closed: Option<String>,
    /// Which of the paths it takes.
    path: Option<usize>,
    report: SubflowReport,
}

impl Track {
    fn is_between(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let SubflowReport { local: near, local_port, remote: far, remote_port, .. } = self.report;
        (near, local_port, far, remote_port) == (local.ip(), local.port(), remote.ip(), remote.port())
    }

    /// TCP's one flow has no number, also where it was a subflow before a fallback.
    fn is(&self, info: &SubflowInfo) -> bool {
        if info.id == 0 { self.is_between(info.local, info.remote) } else { self.id == info.id }
    }
}

/// The subflows of one connection.
#[derive(Default)]
pub(crate) struct Subflows {
    tracks: Vec<Track>,
    reports: Vec<SubflowReport>,
}

impl Subflows {
    /// Takes in a sample, `at_s` seconds after connect().
    pub fn update(&mut self, at_s: f64, seen: &[SubflowInfo], places: &Places) {
        for track in &mut self.tracks {
            track.report.alive = false;
        }
        for info in seen.iter().filter(|i| i.tcp.state != TCP_SYN_SENT) {
            let index = self.tracks.iter().position(|t| t.is(info)).unwrap_or_else(|| {
                let path = places.find(info.local, info.remote.ip());
                let named = path.map(|path| &places.paths()[path]);
                let report = SubflowReport { joined_s: Some(at_s), ..empty(named, info.local, info.remote) };
                self.tracks.push(Track { id: info.id, closed: None, path, report });
                self.tracks.len() - 1
            });
            fill(&mut self.tracks[index].report, info);
        }
    }

    /// The subflow between these ends is gone, and why. False when it was never seen.
    pub fn closed(&mut self, local: SocketAddr, remote: SocketAddr, why: &str) -> bool {
        // an earlier one may have had the same ends
        let open = |t: &&mut Track| t.closed.is_none() && t.is_between(local, remote);
        let Some(track) = self.tracks.iter_mut().find(open) else { return false };
        track.report.alive = false;
        track.closed = Some(why.into());
        true
    }

    /// Has a subflow been established over path number `path`?
    pub fn has(&self, path: usize) -> bool {
        self.tracks.iter().any(|t| t.path == Some(path))
    }

    /// The reports; of a path without a subflow too, with the reason that `why` gives.
    pub fn reports(&mut self, places: &Places, why: impl Fn(usize) -> String) -> &[SubflowReport] {
        self.reports.clear();
        for track in &self.tracks {
            let mut report = track.report.clone();
            if !report.alive && report.note.is_none() {
                report.note = Some(track.closed.clone().unwrap_or_else(|| "closed before the end".into()));
            }
            self.reports.push(report);
        }
        for (i, path) in places.paths().iter().enumerate() {
            if self.has(i) {
                continue;
            }
            let ends = (SocketAddr::new(path.local, 0), places.remote(i));
            self.reports.push(SubflowReport { note: Some(why(i)), ..empty(Some(path), ends.0, ends.1) });
        }
        &self.reports
    }
}

fn empty(path: Option<&PathAddr>, local: SocketAddr, remote: SocketAddr) -> SubflowReport {
    SubflowReport {
        path: path.map(|p| p.name.clone()),
        local: local.ip(),
        local_port: local.port(),
        remote: remote.ip(),
        remote_port: remote.port(),
        bytes_sent: 0,
        bytes_acked: 0,
        bytes_retransmitted: 0,
        retransmits: 0,
        timeouts: None,
        recoveries: None,
        rtt_s: None,
        min_rtt_s: None,
        cwnd_packets: 0,
        mss_bytes: 0,
        joined_s: None,
        alive: false,
        note: None,
    }
}

fn fill(report: &mut SubflowReport, info: &SubflowInfo) {
    let tcp = &info.tcp;
    let seconds = |us: u32| f64::from(us) / 1e6;
    report.bytes_sent = tcp.bytes_sent;
    report.bytes_acked = tcp.bytes_acked;
    report.bytes_retransmitted = tcp.bytes_retransmitted;
    report.retransmits = tcp.retransmits;
    report.timeouts = tcp.all_timeouts;
    report.rtt_s = (tcp.rtt_us > 0).then(|| seconds(tcp.rtt_us));
    report.min_rtt_s = tcp.min_rtt_us.map(seconds);
    report.cwnd_packets = tcp.cwnd;
    report.mss_bytes = tcp.mss;
    let silent = tcp.unacked > 0 && tcp.timeouts >= SILENT_TIMEOUTS && tcp.last_ack_ms >= SILENT_MS;
    report.alive = tcp.state != TCP_CLOSE && !silent;
    report.note = silent.then(|| format!("nothing acknowledged for {:.1} s", f64::from(tcp.last_ack_ms) / 1e3));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::info::TcpInfo;
    use crate::maker::HostSockets;

    fn places(paths: &[PathAddr]) -> Places {
        Places::new(paths, 5270, Arc::new(HostSockets), None)
    }

    fn info(id: u32, local: &str, state: u8, bytes_sent: u64) -> SubflowInfo {
        let tcp = TcpInfo { state, bytes_sent, ..TcpInfo::default() };
        SubflowInfo { id, local: local.parse().unwrap(), remote: "10.0.9.1:5270".parse().unwrap(), tcp }
    }

    #[test]
    fn what_vanished_keeps_its_last_values_and_what_never_came_is_named() {
        let paths: Vec<PathAddr> =
            (1..4).map(|i| PathAddr::new(format!("p{i}"), [10, 0, i, 1].into(), [10, 0, 9, 1].into())).collect();
        let (mut s, places) = (Subflows::default(), places(&paths));
        s.update(0.1, &[info(1, "10.0.1.1:1000", 1, 10), info(2, "10.0.2.1:1001", TCP_SYN_SENT, 0)], &places);
        assert!(s.has(0) && !s.has(1));
        s.update(0.2, &[info(1, "10.0.1.1:1000", 1, 20), info(2, "10.0.2.1:1001", 1, 5)], &places);
        assert!(s.closed("10.0.1.1:1000".parse().unwrap(), "10.0.9.1:5270".parse().unwrap(), "timeout"));
        s.update(0.3, &[info(2, "10.0.2.1:1001", 1, 9)], &places);
        let reports = s.reports(&places, |i| format!("path {i} refused"));
        let of = |i: usize| (reports[i].path.as_deref().unwrap(), reports[i].bytes_sent, reports[i].alive);
        assert_eq!([of(0), of(1), of(2)], [("p1", 20, false), ("p2", 9, true), ("p3", 0, false)]);
        assert_eq!((reports[0].note.as_deref(), reports[1].note.as_deref()), (Some("timeout"), None));
        assert_eq!((reports[1].joined_s, reports[2].joined_s), (Some(0.2), None));
        assert_eq!(reports[2].note.as_deref(), Some("path 2 refused"));
    }

    #[test]
    fn the_second_with_the_same_ends_has_an_end_of_its_own() {
        let paths = [PathAddr::new("p", [10, 0, 1, 1].into(), [10, 0, 9, 1].into())];
        let (mut s, places) = (Subflows::default(), places(&paths));
        let ends = ("10.0.1.1:1000".parse().unwrap(), "10.0.9.1:5270".parse().unwrap());
        for (id, why) in [(2, "a"), (3, "b")] {
            s.update(0.1, &[info(id, "10.0.1.1:1000", 1, 10)], &places);
            assert!(s.closed(ends.0, ends.1, why));
        }
        s.update(0.2, &[], &places);
        let notes = s.reports(&places, |_| unreachable!()).iter().map(|report| report.note.as_deref());
        assert_eq!(notes.collect::<Vec<_>>(), [Some("a"), Some("b")]);
        // a third that has never been seen
        assert!(!s.closed(ends.0, ends.1, "c"));
    }

    #[test]
    fn after_a_fallback_the_first_subflow_is_the_one_that_it_was() {
        let paths = [PathAddr::new("p", [10, 0, 1, 1].into(), [10, 0, 9, 1].into())];
        let (mut s, places) = (Subflows::default(), places(&paths));
        s.update(0.1, &[info(1, "10.0.1.1:1000", 1, 10)], &places);
        s.update(0.2, &[info(0, "10.0.1.1:1000", 1, 20)], &places);
        let reports = s.reports(&places, |_| unreachable!());
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].bytes_sent, reports[0].alive, reports[0].joined_s), (20, true, Some(0.1)));
    }

    #[test]
    fn a_silent_subflow_is_not_alive_until_it_speaks_again() {
        let paths = [PathAddr::new("p", [10, 0, 1, 1].into(), [10, 0, 9, 1].into())];
        let (mut s, places) = (Subflows::default(), places(&paths));
        let mut dead = info(1, "10.0.1.1:1000", 1, 10);
        dead.tcp = TcpInfo { unacked: 3, timeouts: 2, last_ack_ms: 2_500, ..dead.tcp };
        s.update(0.1, &[dead], &places);
        let report = s.reports(&places, |_| unreachable!())[0].clone();
        assert_eq!((report.alive, report.note.as_deref()), (false, Some("nothing acknowledged for 2.5 s")));
        dead.tcp.last_ack_ms = 3;
        s.update(0.2, &[dead], &places);
        let report = s.reports(&places, |_| unreachable!())[0].clone();
        assert_eq!((report.alive, report.note), (true, None));
    }
}
