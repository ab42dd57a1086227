//! What is sent again: lost segments, doubtful ones, the last; and what a subflow gives away to the others.

use pathcast_congestion::State;

use super::board::{EVER, LOST, REINJECTED, RETRANS};
use super::config::Config;
use super::sender::Sender;

impl Sender {
    /// The next lost segment leaves again; its number.
    pub(crate) fn resend(&mut self, now: u64, config: &Config) -> Option<u64> {
        if self.to_resend == 0 {
            return None;
        }
        let mut seq = self.resend_from.max(self.una);
        while seq < self.nxt {
            let flags = self.board.get(seq).flags;
            if flags & LOST != 0 && flags & RETRANS == 0 && !self.is_sacked(seq) {
                self.to_resend -= 1;
                self.resend_from = seq + 1;
                self.resend_segment(now, seq, config);
                if config.rack && seq == self.una {
                    self.head_resent(now, config);
                }
                return Some(seq);
            }
            seq += 1;
        }
        debug_assert!(false, "{} to resend, none found", self.to_resend);
        self.to_resend = 0;
        None
    }

    /// With nothing lost and nothing new to send, recovery goes on with what may be lost (RFC 6675, section 4, NextSeg
    /// rule 3: holes below the highest block), and once with the last segment (rule 4). Its number.
    #[cold]
    pub(crate) fn resend_doubtful(&mut self, now: u64, config: &Config) -> Option<u64> {
        if self.state != State::Recovery || !config.sack || config.rack {
            return None;
        }
        let doubtful =
            |sender: &Sender, seq: u64| !sender.is_sacked(seq) && sender.board.get(seq).flags & (LOST | RETRANS) == 0;
        if self.forced && doubtful(self, self.una) {
            self.resend_segment(now, self.una, config);
            return Some(self.una);
        }
        self.forced = false;
        let holes = if config.ns3 { self.una..self.nxt } else { self.una.max(self.high_resent)..self.high_sacked };
        let mut found = holes.into_iter().find(|&seq| doubtful(self, seq));
        if found.is_none() && config.rescue && !self.rescued {
            self.rescued = true;
            found = self.nxt.checked_sub(1).filter(|&seq| seq >= self.una && doubtful(self, seq));
        }
        let seq = found?;
        self.resend_segment(now, seq, config);
        Some(seq)
    }

    /// A tail loss probe: the last segment leaves again whatever the window says; its number.
    pub(crate) fn resend_last(&mut self, now: u64, config: &Config) -> Option<u64> {
        let seq = self.nxt.checked_sub(1).filter(|&seq| seq >= self.una)?;
        let flags = self.board.get(seq).flags;
        if self.is_sacked(seq) || flags & RETRANS != 0 {
            return None;
        }
        if flags & LOST != 0 {
            self.to_resend -= 1;
        }
        self.resend_segment(now, seq, config);
        Some(seq)
    }

    fn resend_segment(&mut self, now: u64, seq: u64, config: &Config) {
        self.start(now, config);
        let segment = self.board.get_mut(seq);
        segment.sent = now;
        segment.flags |= RETRANS | EVER;
        let bytes = segment.bytes;
        self.retrans += 1;
        self.high_resent = self.high_resent.max(seq + 1);
        self.undo.resent(now);
        if config.rack {
            self.rack.resent(seq, now);
        }
        self.stats.retransmits += 1;
        self.stats.again_bytes += u64::from(bytes);
        self.sent(now, bytes, config);
    }

    /// Hands out the places in the stream of all that is not acknowledged, each once in the sender's life, and of what is
    /// only queued; `to` is told whether it was sent.
    pub(crate) fn give_away(&mut self, mut to: impl FnMut(u64, bool)) {
        for seq in self.una..self.nxt {
            let segment = self.board.get_mut(seq);
            if segment.flags & REINJECTED == 0 {
                segment.flags |= REINJECTED;
                to(segment.dsn, true);
            }
        }
        while let Some(dsn) = self.queue.pop_front() {
            to(dsn, false);
        }
    }

    /// What was given away is its own again, and may be given away once more.
    pub(crate) fn keep(&mut self) {
        for seq in self.una..self.nxt {
            self.board.get_mut(seq).flags &= !REINJECTED;
        }
    }
}
