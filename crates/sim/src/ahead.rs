//! The kernel's packet scheduler: bursts of the stream are queued at the subflow whose queue drains first, as long as that
//! one's send buffer has room, ahead of what its window lets go. So a subflow that joins late finds that the others have
//! taken what they could hold.
//!
//! Linux 6.18, `mptcp_subflow_get_send`: least `sk_wmem_queued / pacing rate`, 64 KiB at a time in fragments of 32 KiB. The rate
//! is a mean over what was queued at the subflow. The program writes into a buffer that is the sum of the subflows'
//! (`__mptcp_sync_sndbuf`): what a slow one holds back keeps it full, and the others idle.

use pathcast_session::steer::UNSENT;

use crate::observe::Observer;
use crate::sim::{Sim, Sub};
use crate::tcp::{Config, Sender};

/// Bytes that go to one subflow before the next is chosen, and how often its buffer is looked at meanwhile.
const BURST: u64 = 65_428;
pub(crate) const FRAGMENT: u64 = 32_728;
/// Least send buffer of a connection, before its subflows' (`tcp_wmem`) [byte].
const LEAST: u64 = 4096;

/// The rate that a subflow drains at [byte/s], or, where buffers do not grow, in proportion to its window alone.
fn pace(sender: &Sender, config: &Config) -> u64 {
    if config.autotuning {
        return sender.scheduled_rate().max(1);
    }
    let gain = if sender.flow.cwnd < sender.flow.ssthresh / 2 { 10 } else { 6 };
    (((gain * u64::from(sender.flow.cwnd)) << 20) / u64::from(sender.rtt.srtt_us().max(1))).max(1)
}

impl<O: Observer> Sim<O> {
    /// The program writes into the connection's buffer.
    pub(crate) fn write(&mut self, index: u32) {
        let Sim { conns, subs, senders, config, .. } = self;
        if config.autotuning {
            let conn = &mut conns[index as usize];
            if conn.steered {
                let open = conn.subs().iter().filter(|&&flow| subs[flow as usize].open && !senders[flow as usize].held);
                let queued = open.map(|&flow| senders[flow as usize].queue.len() as u64).sum::<u64>();
                conn.steered_write(queued, config.steered_room());
                return;
            }
            // one that joins counts as soon as its first packet is answered
            let counts = |sub: &Sub| sub.open || (sub.answered && sub.opened == 0);
            let counted = conn.subs().iter().filter(|&&flow| counts(&subs[flow as usize]));
            let room = counted.map(|&flow| senders[flow as usize].send_buffer(config)).sum::<u64>();
            let mss = u64::from(conn.send.mss);
            conn.send.write(LEAST + room, mss, FRAGMENT.div_ceil(mss));
        }
    }

    /// What the subflows had no room for was not written, beyond a little that waits for the next with room.
    pub(crate) fn unwrite(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        if self.config.autotuning && conn.steered {
            let send = &mut conn.send;
            send.written = send.written.min(send.next + u64::from(UNSENT) / u64::from(send.mss));
        }
    }

    /// Shares out the stream.
    pub(crate) fn queue_ahead(&mut self, index: u32) {
        let Sim { conns, subs, senders, config, .. } = self;
        let conn = &mut conns[index as usize];
        let mss = u64::from(conn.send.mss);
        loop {
            while conn.send.again.front().is_some_and(|&(dsn, _)| dsn < conn.send.una) {
                conn.send.again.pop_front();
            }
            let stream = conn.send.has_new();
            let again = conn.send.again.front().map(|&(_, of)| of);
            let mut best: Option<(u64, u32)> = None;
            let free = |&flow: &u32| {
                let sender = &mut senders[flow as usize];
                subs[flow as usize].open && !sender.held && sender.is_active()
            };
            let spare = !conn.subs().iter().any(free);
            for &flow in conn.subs() {
                if !subs[flow as usize].open || !(stream || again.is_some_and(|of| of != flow)) {
                    continue;
                }
                let sender = &mut senders[flow as usize];
                if !sender.is_active() || (sender.held && !spare) {
                    continue;
                }
                if sender.mean_rate == 0 || !config.autotuning {
                    sender.mean_rate = pace(sender, config);
                }
                let linger = (sender.queued(mss, config) << 32) / sender.mean_rate;
                if best.is_none_or(|(least, _)| linger < least) {
                    best = Some((linger, flow));
                }
            }
            let Some((_, flow)) = best else { return };
            let sender = &mut senders[flow as usize];
            let (room, queued) = (sender.send_buffer(config), sender.queued(mss, config));
            if queued >= room {
                return; // the best one's buffer is full: the kernel waits
            }
            let now = pace(sender, config);
            sender.mean_rate = ((sender.mean_rate * queued + now * BURST) / (BURST + queued)).max(1);
            let mut burst = BURST.div_ceil(mss);
            let fragment = if config.autotuning { FRAGMENT.div_ceil(mss) } else { 1 };
            while burst > 0 && sender.queued(mss, config) < room {
                // the rest of a fragment goes with it, whatever room there is
                for _ in 0..fragment - conn.send.next % fragment {
                    let Some(next) = conn.send.peek(flow) else { return };
                    let (dsn, _) = conn.send.take(next);
                    sender.queue.push_back(dsn);
                    burst = burst.saturating_sub(1);
                }
            }
            if burst > 0 && !config.autotuning {
                return;
            }
        }
    }

    /// Sends what is queued, as far as windows go.
    pub(crate) fn push_queues(&mut self, index: u32, sent: &mut [bool]) {
        let now = self.now;
        for (i, sent) in sent[..self.conns[index as usize].subs().len()].iter_mut().enumerate() {
            let flow = self.conns[index as usize].subs()[i];
            if !self.subs[flow as usize].open {
                continue;
            }
            loop {
                let sender = &mut self.senders[flow as usize];
                if sender.must_resend() || sender.paced_until() > now || sender.room(&self.config) == 0 {
                    break;
                }
                let send = &self.conns[index as usize].send;
                let waiting = sender.queue.len() as u64;
                if waiting > 0 && !sender.lets_go(now, waiting, &self.config) {
                    break;
                }
                let Some(dsn) = sender.queue.pop_front() else { break };
                if dsn < send.una {
                    continue; // it has arrived over another subflow
                }
                let bytes = send.bytes(dsn);
                let seq = sender.send_new(now, dsn, bytes, &self.config);
                self.send_segment(index, flow, seq, 0);
                *sent = true;
                self.senders[flow as usize].ask_again(now, &self.config);
            }
            let sender = &mut self.senders[flow as usize];
            sender.answered &= sender.queue.is_empty() && !*sent && !sender.must_resend();
            sender.end_burst(now, &self.config);
        }
    }
}
