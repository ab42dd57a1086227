//! pathcast's rule for what a subflow is given (`pathcast_session::steer`), looked at as often as over real sockets.

use pathcast_base::Nanos;
use pathcast_session::steer::{SubflowSeen, Task, Verdict, is_coupled};

use crate::conn::{ANY, ENDLESS};
use crate::observe::Observer;
use crate::sim::{Plan, Sim};
use crate::tcp::MAX_RETRIES;

/// Between two looks [ns].
pub(crate) const TICK: u64 = 10_000_000;

impl<O: Observer> Sim<O> {
    /// The subflows of a connection are looked at.
    pub(crate) fn steer(&mut self, index: u32, generation: u16) {
        let Sim { conns, subs, senders, config, now, .. } = self;
        let conn = &mut conns[index as usize];
        if !conn.live || conn.generation != generation {
            return;
        }
        let open: Vec<u32> = conn.subs().iter().copied().filter(|&flow| subs[flow as usize].open).collect();
        let mss = u64::from(conn.send.mss);
        let seen: Vec<SubflowSeen> = open
            .iter()
            .map(|&flow| {
                let sender = &senders[flow as usize];
                SubflowSeen {
                    id: flow,
                    srtt: Nanos(u64::from(sender.rtt.srtt_us()) * 1000),
                    min_rtt: Nanos(u64::from(sender.rtt.min_us) * 1000),
                    window: u64::from(sender.flow.cwnd) * mss,
                    pace: sender.pacing_rate(),
                    unsent: sender.queue.len() as u64 * mss,
                    out: u64::from(sender.out()) * mss,
                    acked: sender.una * mss,
                    again: sender.stats.retransmits,
                    timeouts: sender.backoff(),
                }
            })
            .collect();
        let left = if conn.send.end == ENDLESS { u64::MAX / 4 } else { (conn.send.end - conn.send.next) * mss };
        let room = (config.receive_buffer / 4).min(config.steered_room());
        let open_bytes = (conn.send.next - conn.send.una.min(conn.send.next)) * mss;
        let coupled = open.first().is_some_and(|&flow| is_coupled(senders[flow as usize].control.info().name));
        let waits = conn.send.written.min(conn.send.end).saturating_sub(conn.send.next) * mss;
        let verdicts = conn.steer.look(Nanos(*now), Task { left, waits, open: open_bytes, room, coupled }, &seen);
        conn.trial = conn.steer.trial().map_or(u64::MAX, |bytes| conn.send.next + bytes / mss);
        let mut close = Vec::new();
        for (&flow, verdict) in open.iter().zip(&verdicts) {
            senders[flow as usize].held = *verdict != Verdict::Free;
            if let Verdict::Close(_) = verdict {
                close.push(flow);
            }
        }
        let at = *now + TICK;
        for flow in close {
            self.leave(index, flow);
        }
        self.plan(at, Plan::Steer(index, generation));
        self.push(index);
    }

    /// A subflow is closed: all that is not acknowledged is given out anew (`__mptcp_retransmit_pending_data`).
    fn leave(&mut self, index: u32, flow: u32) {
        let conn = &mut self.conns[index as usize];
        self.senders[flow as usize].give_away(|_, _| {});
        self.subs[flow as usize].open = false;
        self.subs[flow as usize].tries = MAX_RETRIES + 1;
        self.senders[flow as usize].release(Some(&mut conn.group));
        self.senders[flow as usize].grouped = false;
        conn.send.again.clear();
        conn.send.again.extend((conn.send.una..conn.send.next).map(|dsn| (dsn, ANY)));
    }
}
