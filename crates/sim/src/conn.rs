//! A connection: its stream in segments, shared out over its subflows, and put together again at the receiver.

use std::collections::VecDeque;

use pathcast_congestion::Connection as Group;
use pathcast_scenario::{MAX_SUBFLOWS, Scheduler};
use pathcast_session::steer::Steer;

use crate::again::DataTimer;
use crate::tcp::ReceiveBuffer;

/// Stands for a stream without an end.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// Stands for no subflow: what had only been queued may be sent by any.
pub(crate) const ANY: u32 = u32::MAX;

/// The subflows and the stream of one connection. Of plain TCP, which has one subflow, the stream is the subflow's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conn {
    /// Which report it belongs to.
    pub owner: Owner,
    pub multipath: bool,
    /// Which sizes of the configuration hold.
    pub kind: usize,
    subs: [u32; MAX_SUBFLOWS as usize],
    len: u8,
    pub generation: u16,
    pub live: bool,
    /// When it connected [ns].
    pub started: u64,
    /// The joins have begun.
    pub joined: bool,
    /// Its stream is acknowledged; it waits for its subflows' ends.
    pub closing: bool,
    pub group: Group,
    /// Index of the controller with its parameters.
    pub control: usize,
    pub timer: DataTimer,
    pub steered: bool,
    pub steer: Steer,
    /// How far the program may write while a subflow is tried.
    pub trial: u64,
    pub send: Outgoing,
    pub receive: Incoming,
}

/// Whose connection it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    #[default]
    Nobody,
    /// A flow, by index.
    Flow(u32),
    /// A page of a web client, by index.
    Page(u32),
    /// A connection of a traffic source, by index.
    Traffic(u32),
}

/// The sender's side of the stream. Numbers are segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    /// Next to be sent for the first time, and where the stream ends.
    pub next: u64,
    pub end: u64,
    /// Payload of all but the last segment, and of the last [byte].
    pub mss: u16,
    pub last: u16,
    /// Acknowledged at the level of the connection.
    pub una: u64,
    /// Where the receiver's room ends, and what the program has written so far.
    pub edge: u64,
    pub written: u64,
    /// To be sent again over another subflow than the one named.
    pub again: VecDeque<(u64, u32)>,
    /// The subflow that had its turn last.
    turn: usize,
}

impl Outgoing {
    /// The next segment for `sub`: its place in the stream, and whether it is sent again over another subflow.
    #[inline]
    pub(crate) fn peek(&mut self, sub: u32) -> Option<(u64, bool)> {
        while let Some(&(dsn, of)) = self.again.front() {
            if dsn < self.una {
                self.again.pop_front();
            } else if of != sub {
                return Some((dsn, true));
            } else {
                break;
            }
        }
        self.has_new().then_some((self.next, false))
    }

    /// There is something to be sent for the first time, and room for it at both ends.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.next < self.end.min(self.edge).min(self.written)
    }

    /// Segments that are there to be sent for the first time.
    #[inline]
    pub(crate) fn waiting(&self) -> u64 {
        self.end.min(self.edge).min(self.written).saturating_sub(self.next)
    }

    /// The program writes on once a third of a send buffer of `room` bytes is free, `step` segments at a time, until it is full. A
    /// segment takes `each` bytes of it.
    #[inline]
    pub(crate) fn write(&mut self, room: u64, each: u64, step: u64) {
        let queued = (self.written - self.una.min(self.written)) * each;
        if queued + queued / 2 <= room {
            self.written += room.saturating_sub(queued).div_ceil(step * each) * step;
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, (dsn, again): (u64, bool)) -> (u64, u16) {
        if again {
            self.again.pop_front();
        } else {
            self.next += 1;
        }
        (dsn, self.bytes(dsn))
    }

    #[inline]
    pub(crate) fn bytes(&self, dsn: u64) -> u16 {
        if dsn + 1 == self.end { self.last } else { self.mss }
    }

    /// Payload bytes of the first `segments` of the stream.
    pub(crate) fn bytes_until(&self, segments: u64) -> u64 {
        let whole = segments * u64::from(self.mss);
        if segments == self.end && segments > 0 { whole - u64::from(self.mss) + u64::from(self.last) } else { whole }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.una >= self.end
    }

    /// Nothing more is begun.
    pub(crate) fn stop(&mut self) {
        if self.end > self.next {
            self.end = self.next;
            self.last = self.mss;
        }
    }
}

/// The receiver's side of the stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    /// Next segment of the stream expected.
    pub nxt: u64,
    /// Arrived beyond it: a ring of bits.
    held: Vec<u64>,
    pub held_count: u64,
    pub held_most: u64,
    /// Arrived twice.
    pub duplicates: u64,
    pub buffer: ReceiveBuffer,
    /// Where the window ends that any subflow has told.
    edge: u64,
    /// Behind the last segment that has arrived.
    pub last: u64,
}

impl Incoming {
    fn reset(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        held.fill(0);
        *self = Incoming { held, ..Incoming::default() };
    }

    /// The window for an ACK over a subflow that offers so many bytes by itself: what any has told holds for all
    /// (`mptcp_set_rwin`) [segments].
    pub(crate) fn share(&mut self, offered: u64) -> u32 {
        let own = self.nxt + u64::from(self.buffer.window(offered, self.held_count));
        self.edge = self.edge.max(own);
        (self.edge - self.nxt) as u32
    }

    fn place(&self, dsn: u64) -> (usize, u64) {
        let at = dsn & (self.held.len() as u64 * 64 - 1);
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// A segment of the stream has arrived, in whatever order.
    #[inline]
    pub(crate) fn accept(&mut self, dsn: u64) {
        if dsn == self.nxt && self.held_count == 0 {
            self.nxt += 1;
        } else {
            self.accept_early(dsn);
        }
    }

    fn accept_early(&mut self, dsn: u64) {
        if dsn < self.nxt {
            self.duplicates += 1;
            return;
        }
        while dsn - self.nxt >= self.held.len() as u64 * 64 {
            self.enlarge();
        }
        let (word, bit) = self.place(dsn);
        if self.held[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.held[word] |= bit;
        self.held_count += 1;
        self.held_most = self.held_most.max(self.held_count);
        while self.held_count > 0 {
            let (word, bit) = self.place(self.nxt);
            if self.held[word] & bit == 0 {
                break;
            }
            self.held[word] &= !bit;
            self.held_count -= 1;
            self.nxt += 1;
        }
    }

    #[cold]
    fn enlarge(&mut self) {
        let words = (self.held.len() * 2).max(4);
        let mut larger = Incoming { held: vec![0; words], ..Incoming::default() };
        for dsn in self.nxt..self.nxt + self.held.len() as u64 * 64 {
            let (word, bit) = self.place(dsn);
            if self.held[word] & bit != 0 {
                let (word, bit) = larger.place(dsn);
                larger.held[word] |= bit;
            }
        }
        self.held = larger.held;
    }
}

impl Conn {
    /// pathcast's program holds back what its subflows have no use for yet: `queued` segments wait in them, `room` bytes is the buffer.
    pub(crate) fn steered_write(&mut self, queued: u64, room: u64) {
        let (mss, send) = (u64::from(self.send.mss), &mut self.send);
        let wanted = (self.steer.ahead() / mss).saturating_sub(queued);
        let room = (room / mss).saturating_sub(send.next - send.una.min(send.next));
        send.written = send.written.max((send.next + wanted.min(room)).min(self.trial));
    }

    /// Begins anew in the same room.
    pub(crate) fn reset(&mut self, owner: Owner, multipath: bool, kind: usize, now: u64) {
        self.owner = owner;
        self.multipath = multipath;
        self.kind = kind;
        self.len = 0;
        self.live = true;
        self.started = now;
        self.joined = false;
        self.closing = false;
        self.timer = DataTimer::default();
        self.steered = false;
        self.steer = Steer::default();
        self.trial = u64::MAX;
        if multipath {
            self.group = Group::new();
        }
        let mut again = std::mem::take(&mut self.send.again);
        again.clear();
        self.send = Outgoing { again, ..Outgoing::default() };
        self.receive.reset();
    }

    pub(crate) fn add(&mut self, sub: u32) {
        self.subs[self.len as usize] = sub;
        self.len += 1;
    }

    pub(crate) fn subs(&self) -> &[u32] {
        &self.subs[..self.len as usize]
    }

    /// Chooses among the subflows that could send: `ready` gives the smoothed RTT of such a one.
    #[inline]
    pub(crate) fn choose(&mut self, scheduler: Scheduler, mut ready: impl FnMut(u32) -> Option<u32>) -> Option<u32> {
        let n = self.len as usize;
        match scheduler {
            Scheduler::MinRtt => {
                let mut best = None;
                for &sub in &self.subs[..n] {
                    if let Some(rtt) = ready(sub).filter(|&rtt| best.is_none_or(|(least, _)| rtt < least)) {
                        best = Some((rtt, sub));
                    }
                }
                best.map(|(_, sub)| sub)
            }
            // what is queued ahead is decided elsewhere
            Scheduler::Linux => None,
            Scheduler::RoundRobin => {
                for i in 1..=n {
                    let at = (self.send.turn + i) % n;
                    if ready(self.subs[at]).is_some() {
                        self.send.turn = at;
                        return Some(self.subs[at]);
                    }
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_stream_comes_out_once_and_in_order(
            order in Just((0..400u64).collect::<Vec<_>>()).prop_shuffle(),
            again in prop::collection::vec(0u64..400, 0..50),
        ) {
            let mut incoming = Incoming::default();
            let mut seen = vec![false; 401];
            let mut twice = 0;
            for dsn in order.iter().chain(&again) {
                twice += u64::from(seen[*dsn as usize]);
                seen[*dsn as usize] = true;
                incoming.accept(*dsn);
                prop_assert_eq!(incoming.nxt, seen.iter().position(|seen| !seen).unwrap() as u64);
                let held = seen.iter().skip(incoming.nxt as usize).filter(|seen| **seen).count();
                prop_assert_eq!(incoming.held_count, held as u64);
            }
            prop_assert_eq!(incoming.nxt, 400);
            prop_assert_eq!(incoming.duplicates, twice);
        }
    }

    #[test]
    fn round_robin_takes_turns() {
        let mut conn = Conn::default();
        (5..8).for_each(|sub| conn.add(sub));
        let turns: Vec<_> = (0..4).filter_map(|_| conn.choose(Scheduler::RoundRobin, |_| Some(1))).collect();
        assert_eq!(turns, [6, 7, 5, 6]);
        assert_eq!(conn.choose(Scheduler::RoundRobin, |sub| (sub == 5).then_some(1)), Some(5));
        assert_eq!(conn.choose(Scheduler::MinRtt, |sub| Some(10 - sub)), Some(7));
        assert_eq!(conn.choose(Scheduler::MinRtt, |_| None), None);
    }

    #[test]
    fn a_subflow_does_not_send_again_what_is_its_own() {
        let mut out = Outgoing { end: 10, edge: 3, written: 20, mss: 1000, last: 1, ..Outgoing::default() };
        out.next = 3;
        assert_eq!(out.peek(0), None, "the window is full");
        out.again.push_back((1, 0));
        assert_eq!(out.peek(0), None);
        assert_eq!(out.peek(1), Some((1, true)));
        (out.una, out.edge) = (2, 5);
        assert_eq!(out.peek(1), Some((3, false)), "it has arrived meanwhile");
        out.next = 9;
        out.una = 9;
        assert_eq!(out.take((9, false)), (9, 1));
        assert_eq!(out.bytes_until(10), 9001);
    }
}
