//! The kernel's packet scheduler: bursts of the stream are queued at the subflow whose queue drains first, as long as that
//! one's send buffer has room, ahead of what its window lets go. So a subflow that joins late finds that the others have
//! taken what they could hold.
//!
//! Linux 6.18, `mptcp_subflow_get_send`: least `sk_wmem_queued / pacing rate`, 64 KiB at a time. The buffer is twice the
//! window in packets (`tcp_sndbuf_expand`), each counted with the room that the kernel takes for it, and at most
//! `[tcp] send_buffer` (`tcp_wmem`).

use crate::observe::Observer;
use crate::sim::Sim;

/// Bytes that go to one subflow before the next is chosen.
const BURST: u64 = 65_536;
/// What the kernel counts for a full packet when it sizes the buffer [byte].
const PER_PACKET: u64 = 4096 + 256;

impl<O: Observer> Sim<O> {
    /// Shares out the stream.
    pub(crate) fn queue_ahead(&mut self, index: u32) {
        let Sim { conns, subs, senders, config, .. } = self;
        let conn = &mut conns[index as usize];
        let mss = u64::from(conn.send.mss);
        loop {
            let mut best: Option<(u64, u32)> = None;
            let stream = conn.send.next < conn.send.end && conn.send.next < conn.send.una + conn.send.window;
            while conn.send.again.front().is_some_and(|&(dsn, _)| dsn < conn.send.una) {
                conn.send.again.pop_front();
            }
            let again = conn.send.again.front().map(|&(_, of)| of);
            for &flow in conn.subs() {
                if !subs[flow as usize].open || !(stream || again.is_some_and(|of| of != flow)) {
                    continue;
                }
                let sender = &mut senders[flow as usize];
                let window = u64::from(sender.flow.cwnd.max(10));
                let room = (2 * window * PER_PACKET).min(config.send_buffer) / mss;
                sender.queue_most = sender.queue_most.max(room as u32);
                let queued = u64::from(sender.out()) + sender.queue.len() as u64;
                // of pacing rates only the ratio counts; the kernel's 200 % and 120 % of the window
                let gain = if sender.flow.cwnd < sender.flow.ssthresh / 2 { 10 } else { 6 };
                let rate = ((gain * u64::from(sender.flow.cwnd)) << 20) / u64::from(sender.rtt.srtt_us().max(1));
                let linger = (queued << 32) / rate.max(1);
                if best.is_none_or(|(least, _)| linger < least) {
                    best = Some((linger, flow));
                }
            }
            let Some((_, flow)) = best else { return };
            let sender = &mut senders[flow as usize];
            let mut burst = BURST.div_ceil(mss);
            while burst > 0 && sender.out() + (sender.queue.len() as u32) < sender.queue_most {
                let Some(next) = conn.send.peek(flow) else { return };
                let (dsn, _) = conn.send.take(next);
                sender.queue.push_back(dsn);
                burst -= 1;
            }
            if burst > 0 {
                return; // the best one's buffer is full: the kernel waits
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
                let Some(dsn) = sender.queue.pop_front() else { break };
                let send = &self.conns[index as usize].send;
                if dsn < send.una {
                    continue; // it has arrived over another subflow
                }
                let bytes = send.bytes(dsn);
                let seq = sender.send_new(now, dsn, bytes, &self.config);
                self.send_segment(index, flow, seq, 0);
                *sent = true;
                self.senders[flow as usize].ask_send(now, &self.config);
            }
        }
    }
}
