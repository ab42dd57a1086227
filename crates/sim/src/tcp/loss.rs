//! Which segments are lost: by the blocks above them (RFC 6675), or by time (RACK, RFC 8985).

use std::collections::VecDeque;

use super::board::{EVER, LOST, RETRANS};
use super::config::Config;
use super::sender::Sender;

/// Segments that must be selectively acknowledged above a hole.
const DUP_THRESH: u32 = 3;

/// Steps of the reordering window at most, and recoveries until it is small again.
const STEPS_MOST: u32 = 254;
const RECOVERIES: u32 = 16;

/// What RACK knows: the segment sent last of those delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    sent: u64,
    seq: u64,
    rtt: u64,
    advanced: bool,
    /// A segment was overtaken and still arrived.
    pub reordered: bool,
    /// The reordering window, beyond one quarter of the least RTT [quarters]; when it grew last [ns]; so many recoveries
    /// that nothing belies, and it is one quarter again (section 6.2, step 4).
    steps: u32,
    grew: u64,
    persists: u32,
    /// Segments below, sent once, have been judged by time.
    front: u64,
    /// Retransmissions in the order of their sending, with their time.
    resent: VecDeque<(u64, u64)>,
}

impl Rack {
    pub(super) fn clear(&mut self) {
        let mut resent = std::mem::take(&mut self.resent);
        resent.clear();
        *self = Rack { resent, ..Rack::default() };
    }

    pub(super) fn resent(&mut self, seq: u64, now: u64) {
        self.resent.push_back((seq, now));
    }

    /// Something was sent again in vain: the reordering window grows, once a round trip (tcp_rack_update_reo_wnd).
    pub(super) fn widen(&mut self, now: u64) {
        if self.sent >= self.grew {
            self.steps = (self.steps + 1).min(STEPS_MOST);
            self.grew = now;
            self.persists = RECOVERIES;
        }
    }

    /// A recovery is over that was none for nothing.
    pub(super) fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.steps = 0;
        }
    }

    /// All that a recovery sent again was told to be duplicates.
    pub(super) fn duplicates(&mut self) {
        self.persists = (self.persists + 1).min(RECOVERIES);
    }

    /// A segment sent at `sent` was delivered; `min_rtt` in ns.
    #[inline]
    pub(super) fn delivered(&mut self, now: u64, seq: u64, sent: u64, again: bool, min_rtt: u64) {
        let rtt = now - sent;
        if again && rtt < min_rtt {
            return; // it was the first copy that arrived
        }
        self.advanced = true;
        self.rtt = rtt;
        if (sent, seq) > (self.sent, self.seq) {
            (self.sent, self.seq) = (sent, seq);
        }
    }
}

impl Sender {
    /// Marks segments as lost by what the last ACK told.
    pub(super) fn detect(&mut self, now: u64, config: &Config) {
        if config.rack {
            if self.sacked > 0 || self.lost > 0 || self.retrans > 0 {
                self.detect_by_time(now, config);
            }
            self.rack.advanced = false;
        } else if config.sack {
            self.detect_by_blocks(config);
        }
    }

    fn detect_by_blocks(&mut self, config: &Config) {
        if self.sacked < DUP_THRESH {
            return;
        }
        if let Some(third) = self.board.nth_highest_sacked(self.una, self.high_sacked, DUP_THRESH) {
            for seq in self.judged.max(self.una)..third {
                if self.is_sacked(seq) {
                    continue;
                }
                let flags = self.board.get(seq).flags;
                if flags & EVER == 0 {
                    self.mark_lost(seq);
                } else if config.ns3 && flags & (LOST | RETRANS) == RETRANS {
                    self.board.get_mut(seq).flags |= LOST;
                    self.lost += 1;
                }
            }
            self.judged = self.judged.max(third);
        }
    }

    /// How long a segment may come behind one sent after it [ns].
    fn reordering_window(&self, recovering: bool) -> u64 {
        if !self.rack.reordered && (recovering || self.sacked >= DUP_THRESH) {
            return 0;
        }
        let window = u64::from(self.rtt.min_us / 4) * u64::from(self.rack.steps + 1);
        window.min(u64::from(self.rtt.srtt_us())) * 1000
    }

    /// RACK. A segment that is not yet judged arms the timer for when it will be.
    pub(super) fn detect_by_time(&mut self, now: u64, config: &Config) {
        if self.rack.sent == 0 {
            return;
        }
        let recovering = self.state as u32 >= pathcast_congestion::State::Recovery as u32;
        let allowance = self.rack.rtt + self.reordering_window(recovering);
        let mut wait = None;
        let mut seq = self.rack.front.max(self.una);
        while seq < self.nxt {
            let segment = *self.board.get(seq);
            if segment.flags & (LOST | EVER) == 0 && !self.is_sacked(seq) {
                if (self.rack.sent, self.rack.seq) <= (segment.sent, seq) {
                    break;
                }
                if segment.sent + allowance > now {
                    wait = Some(segment.sent + allowance - now);
                    break;
                }
                self.mark_lost(seq);
            }
            seq += 1;
        }
        self.rack.front = seq;
        while let Some(&(seq, sent)) = self.rack.resent.front() {
            let alive = seq >= self.una && !self.is_sacked(seq) && {
                let segment = self.board.get(seq);
                segment.sent == sent && segment.flags & RETRANS != 0
            };
            if alive {
                if (self.rack.sent, self.rack.seq) <= (sent, seq) {
                    break;
                }
                if sent + allowance > now {
                    let left = sent + allowance - now;
                    wait = Some(wait.map_or(left, |wait| wait.min(left)));
                    break;
                }
                self.mark_lost(seq);
            }
            self.rack.resent.pop_front();
        }
        if let Some(wait) = wait {
            self.arm_reordering(now, wait, config);
        }
    }

    /// Marks one segment, sent once or again, as lost.
    pub(super) fn mark_lost(&mut self, seq: u64) {
        let segment = self.board.get_mut(seq);
        self.lost_again |= segment.flags & RETRANS != 0;
        if segment.flags & LOST == 0 {
            segment.flags |= LOST;
            self.lost += 1;
            self.all_lost += 1;
            if segment.flags & RETRANS != 0 {
                segment.flags &= !RETRANS;
                self.retrans -= 1;
            }
            self.to_resend += 1;
        } else if segment.flags & RETRANS != 0 {
            segment.flags &= !RETRANS;
            self.retrans -= 1;
            self.to_resend += 1;
            self.all_lost += 1;
        }
        self.resend_from = self.resend_from.min(seq);
    }

    /// After a timeout everything not selectively acknowledged is lost.
    pub(super) fn mark_all_lost(&mut self, config: &Config) {
        for seq in self.una..self.nxt {
            if config.ns3_flags() {
                self.board.unsack(seq);
            }
            if !self.is_sacked(seq) {
                self.mark_lost(seq);
            } else if config.ns3_duplicates() && self.board.get(seq).flags & RETRANS != 0 {
                self.board.get_mut(seq).flags &= !RETRANS;
                self.retrans -= 1;
            }
        }
        if !config.sack {
            self.sacked = 0;
        }
        self.rack.front = self.nxt;
        self.judged = self.nxt;
    }

    /// Takes all marks of loss off again: nothing was lost.
    pub(super) fn unmark(&mut self) {
        for seq in self.una..self.nxt {
            let segment = self.board.get_mut(seq);
            if segment.flags & LOST != 0 && segment.flags & RETRANS == 0 {
                self.to_resend -= 1;
            }
            segment.flags &= !LOST;
        }
        self.lost = 0;
        self.resend_from = self.una;
        self.rack.front = self.una;
        self.judged = self.una;
        debug_assert_eq!(self.to_resend, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ack::AckSummary;
    use super::super::ack::tests::{comes, recovering};
    use super::*;
    use crate::packet::DUPLICATE;

    /// The window for reordering grows by a quarter of the least RTT for each round trip in which something was sent again
    /// in vain, and is small again after sixteen recoveries that were none (RFC 8985, section 6.2, step 4).
    #[test]
    fn the_reordering_window_learns() {
        let mut rack = Rack { sent: 10, ..Rack::default() };
        rack.widen(20);
        rack.widen(25); // of what had left before: nothing new
        assert_eq!(rack.steps, 1);
        rack.sent = 30;
        rack.widen(40);
        assert_eq!(rack.steps, 2);
        (1..RECOVERIES).for_each(|_| rack.recovered());
        assert_eq!(rack.steps, 2);
        rack.recovered();
        assert_eq!(rack.steps, 0);
    }

    /// A duplicate widens the window only where reordering was seen before and where it is not a probe's, which a timer had
    /// sent (tcp_dsack_seen).
    #[test]
    fn the_reordering_window_learns_of_reordering_alone() {
        for (reordered, probe, una, blocks, steps) in [
            (false, false, 8, &[][..], 0),
            (true, false, 8, &[], 1),
            (true, true, 8, &[], 1), // the probe's segment, the last, is still missing
            (true, true, 8, &[(9, 10)], 0),
            (true, true, 10, &[], 0),
            (false, false, 4, &[(5, 9)], 0),
        ] {
            let (mut sender, config, began) = recovering(100);
            sender.rack.reordered = reordered;
            if probe {
                sender.probed(began, true, true, &config);
            }
            comes(&mut sender, began + 1, una, blocks, DUPLICATE, &config);
            assert_eq!(sender.rack.steps, steps, "reordered {reordered}, probe {probe}, {una} {blocks:?}");
        }
    }

    /// What was sent again, and whose late original comes within the recovery, had been overtaken (tcp_try_undo_partial).
    #[test]
    fn a_late_original_was_overtaken() {
        for (before, reordered) in [(1, true), (0, false)] {
            let (mut sender, config, began) = recovering(100);
            let mut summary = AckSummary::nothing(sender.all_lost);
            (summary.moved, summary.echo) = (true, began - before);
            sender.partial(&summary, &config);
            assert_eq!(sender.rack.reordered, reordered);
        }
    }
}
