//! What an ACK does, in Linux's order: marks and RTT, the controller's `ack`, loss detection, the reduction or the
//! controller's `grow`.

use pathcast_congestion::{Ack, Connection, State};

use super::board::{END, EVER, LOST, RETRANS};
use super::config::Config;
use super::sender::Sender;
use crate::packet::{Blocks, DUPLICATE, ECE, Packet, Range};

/// What one ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// Newly acknowledged in order, and in any order.
    pub acked: u32,
    pub delivered: u32,
    /// It moved `una`; it answers a duplicate.
    pub moved: bool,
    pub duplicate: bool,
    /// The stamp that it echoes [ns].
    pub echo: u64,
    /// Delivered, though sent once only and before the timeout that is being repaired.
    pub original: bool,
    /// Among the acknowledged were segments sent again.
    pub again: bool,
    /// Send times of segments sent once: the oldest acknowledged, the newest, the oldest of the blocks [ns].
    oldest: Option<u64>,
    newest: Option<u64>,
    oldest_sacked: Option<u64>,
    /// Segments ever thought to be lost, before the ACK; behind the highest that blocks had told of by then.
    pub lost_before: u64,
    fack: u64,
    /// A block told of something new; what it moved past had been sent again, and no block had told of it.
    pub told: bool,
    pub again_acked: bool,
    /// In flight before a duplicate was counted or a new head marked, where duplicates are flagged.
    pub in_flight: u32,
}

impl AckSummary {
    /// No ACK at all, before which `lost` segments were ever thought to be lost.
    pub(super) fn nothing(lost: u64) -> Self {
        AckSummary { lost_before: lost, ..AckSummary::default() }
    }

    fn once(&mut self, sent: u64) {
        self.newest = Some(self.newest.map_or(sent, |newest| newest.max(sent)));
    }
}

impl Sender {
    /// An ACK has come.
    pub(crate) fn acknowledge(
        &mut self,
        now: u64,
        ack: &Packet,
        blocks: &Blocks,
        config: &Config,
        mut group: Option<&mut Connection>,
    ) {
        self.heard = now;
        self.answered = true;
        self.offload.allowed = u32::MAX;
        if ack.seq == self.una && self.out() == 0 && ack.flags & DUPLICATE != 0 {
            self.timer.both_arrived();
        }
        if ack.seq < self.una || ack.seq > self.nxt || self.out() == 0 {
            return;
        }
        let marked = ack.flags & ECE != 0;
        let mut summary = AckSummary {
            moved: ack.seq > self.una,
            duplicate: ack.flags & DUPLICATE != 0,
            echo: ack.stamp,
            lost_before: self.all_lost,
            fack: self.high_sacked,
            ..AckSummary::default()
        };
        let reordered = self.rack.reordered;
        if blocks.len > 0 && config.sack {
            self.take_blocks(now, ack.seq, blocks.as_slice(), config, &mut summary);
            summary.told = summary.delivered > 0;
        }
        if summary.moved {
            self.take_cumulative(now, ack.seq, config, &mut summary);
        } else if config.ns3_flags() {
            summary.in_flight = self.in_flight();
            if self.state != State::Loss {
                self.flag_duplicate();
            }
        } else if !config.sack && self.sacked + self.lost < self.out() {
            self.sacked += 1; // a duplicate ACK: something has left the network
            summary.delivered += 1;
        }
        if summary.duplicate {
            self.undo.duplicate();
            // else it was not RACK's haste (tcp_dsack_seen)
            if reordered && !self.answers_probe() {
                self.rack.widen(now);
            }
        }

        self.all_delivered += u64::from(summary.delivered);
        let rtt_us = self.measure(now, &summary, config);
        self.refresh(now, config);
        let mut ack = Ack::new(summary.acked, rtt_us);
        if config.usec_timestamps && rtt_us > 0 {
            // of the newest packet: the stamp that is echoed is of the oldest, which may have waited for it
            ack = ack.with_one_way_delay(blocks.sent_us.wrapping_sub((now / 1000) as u32 - rtt_us));
        }
        self.control.ack(&mut self.flow, &ack);
        if self.all_delivered > self.starved_until {
            self.starved_until = 0;
        }

        if summary.moved {
            self.progress(now, config);
        }
        self.end_probe(now, &summary, config, group.as_deref_mut());
        self.lost_again = false;
        self.detect(now, config);
        if marked {
            self.undo.forget();
        }
        if self.state == State::Cwr && self.una > self.high_seq {
            self.end_reduction(now, config, group.as_deref_mut());
        }
        let lost = self.state == State::Loss;
        self.respond(now, &summary, config, group.as_deref_mut());
        if marked && matches!(self.state, State::Open | State::Disorder) {
            self.enter_cwr(now, config, group.as_deref_mut());
        }
        if summary.moved && config.rack {
            self.watch_tail(now, config); // also where nothing more is to be sent
        }

        if matches!(self.state, State::Recovery | State::Cwr) {
            self.reduce(&summary, config);
        } else if config.ns3_duplicates() && (self.state == State::Disorder || (lost && self.una == self.high_seq)) {
            // ns-3 grows the window neither in disorder nor for what had been sent before the timeout
        } else if summary.delivered > 0 && (summary.moved || self.rack.reordered) {
            self.refresh(now, config);
            let acked = Ack::new(summary.delivered.min(config.abc_limit), rtt_us);
            match group {
                Some(group) if self.grouped => {
                    group.meet(&mut self.flow, true);
                    self.control.grow(&mut self.flow, &acked);
                    group.deliver(&self.flow);
                }
                _ if self.counts_bytes(config) => self.grow_bytes(summary.delivered),
                _ => self.control.grow(&mut self.flow, &acked),
            }
        }
    }

    #[cold]
    fn take_blocks(&mut self, now: u64, cumulative: u64, blocks: &[Range], config: &Config, summary: &mut AckSummary) {
        let (floor, nxt) = (cumulative.max(self.una), self.nxt);
        let (fack, high_seq) = (summary.fack, self.high_seq);
        let min_rtt = u64::from(self.rtt.min_us) * 1000;
        let off = if config.ns3_duplicates() { LOST } else { LOST | RETRANS };
        for &(start, end) in blocks {
            let Sender { board, lost, retrans, to_resend, sacked, rack, high_sacked, .. } = self;
            board.sack_range((start.max(floor), end.min(nxt)), |segment, seq| {
                summary.delivered += 1;
                *sacked += 1;
                if segment.flags & LOST != 0 {
                    *lost -= 1;
                    *to_resend -= u32::from(segment.flags & RETRANS == 0);
                }
                *retrans -= u32::from(segment.flags & RETRANS & off != 0);
                let again = segment.flags & EVER != 0;
                if !again {
                    summary.once(segment.sent);
                    let oldest = summary.oldest_sacked.unwrap_or(u64::MAX);
                    summary.oldest_sacked = Some(oldest.min(segment.sent));
                    summary.original |= seq < high_seq;
                    rack.reordered |= seq < fack;
                }
                segment.flags &= !off;
                rack.delivered(now, seq, segment.sent, again, min_rtt);
                *high_sacked = (*high_sacked).max(seq + 1);
            });
        }
    }

    #[inline]
    fn take_cumulative(&mut self, now: u64, to: u64, config: &Config, summary: &mut AckSummary) {
        let (mut bytes, mut newest) = (0, None);
        let min_rtt = u64::from(self.rtt.min_us) * 1000;
        for seq in self.una..to {
            let segment = *self.board.get(seq);
            bytes += u64::from(segment.bytes);
            let again = segment.flags & EVER != 0;
            summary.again |= again;
            self.offload.packets -= u32::from(segment.flags & END != 0);
            if self.board.is_sacked(seq) {
                self.board.unsack(seq);
                self.sacked -= 1;
                self.retrans -= u32::from(segment.flags & RETRANS != 0);
                if !again {
                    summary.oldest = summary.oldest.or(Some(segment.sent));
                }
                continue;
            }
            summary.delivered += 1;
            summary.again_acked |= segment.flags & RETRANS != 0;
            if segment.flags & LOST != 0 {
                self.lost -= 1;
                self.to_resend -= u32::from(segment.flags & RETRANS == 0);
            }
            self.retrans -= u32::from(segment.flags & RETRANS != 0);
            if !again {
                summary.oldest = summary.oldest.or(Some(segment.sent));
                newest = newest.max(Some(segment.sent));
                summary.original |= seq < self.high_seq;
                self.rack.reordered |= config.sack && seq < summary.fack;
            }
            if config.rack {
                self.rack.delivered(now, seq, segment.sent, again, min_rtt);
            }
        }
        if let Some(sent) = newest.filter(|_| !summary.again) {
            summary.once(sent); // else it may have waited behind a hole (Karn; so does Linux)
        }
        summary.acked = (to - self.una) as u32;
        self.una = to;
        self.una_bytes += bytes;
        self.stats.acked_bytes += bytes;
        if config.ns3_flags() {
            summary.delivered = summary.acked;
            if self.una < self.nxt && self.board.is_sacked(self.una) {
                // the flag was a guess: it moves on, and the new head counts as lost
                self.board.unsack(self.una);
                self.sacked -= 1;
                self.flag_duplicate();
                self.mark_lost(self.una);
            }
            summary.in_flight = self.in_flight();
        } else if !config.sack {
            // duplicate ACKs stood for segments that this one covers, all but the hole itself
            summary.delivered = (summary.acked - summary.acked.min(self.sacked)).max(1);
            self.sacked -= self.sacked.min(summary.acked - 1);
            self.sacked = self.sacked.min(self.out() - self.lost.min(self.out()));
        }
    }

    /// Feeds the RTT; returns the sample for the controller, of the newest segment delivered [us], 0 if there is none.
    fn measure(&mut self, now: u64, summary: &AckSummary, config: &Config) -> u32 {
        let us = |sent: u64| ((now - sent) / 1000).max(1) as u32;
        let oldest = if summary.again { None } else { summary.oldest };
        let smoothed = oldest.or(summary.oldest_sacked).map(us).or_else(|| {
            // all were sent again: the echoed stamp tells which copy it was
            (summary.moved && summary.echo > 0).then(|| us(summary.echo))
        });
        if let Some(rtt_us) = smoothed {
            self.rtt.sample(rtt_us, self.una, self.nxt, config);
        }
        summary.newest.map_or(0, us)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::{Preset, Tcp};

    use super::*;
    use crate::packet::{Kind, NONE};

    const MS: u64 = 1_000_000;

    /// An ACK comes, with its blocks and flags.
    pub(in crate::tcp) fn comes(sender: &mut Sender, now: u64, seq: u64, blocks: &[Range], flags: u8, config: &Config) {
        let packet = Packet {
            seq,
            dsn: 0,
            stamp: 0,
            hop: 0,
            flow: 0,
            extra: NONE,
            window: 1000,
            bytes: 52,
            generation: 0,
            kind: Kind::Ack,
            flags,
        };
        let mut told = Blocks { len: blocks.len() as u8, ..Blocks::default() };
        told.range[..blocks.len()].copy_from_slice(blocks);
        sender.acknowledge(now, &packet, &told, config, None);
    }

    /// A sender whose ten first segments left at the start, the first four of which were acknowledged after an RTT of so many ms.
    fn four_of_ten(rtt_ms: u32) -> (Sender, Config) {
        let config = Config::new(&Tcp { preset: Preset::Linux, ..Tcp::default() });
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 0, &config, None);
        sender.rtt.sample(rtt_ms * 1000, 0, 0, &config);
        for dsn in 0..10 {
            sender.send_new(1, dsn, 1448, &config);
        }
        comes(&mut sender, u64::from(rtt_ms) * MS, 4, &[], 0, &config);
        (sender, config)
    }

    /// The same with segment 4 lost: recovery began a quarter of an RTT after the last that came in order, and it was sent
    /// again; when.
    pub(in crate::tcp) fn recovering(rtt_ms: u32) -> (Sender, Config, u64) {
        let rtt = u64::from(rtt_ms) * MS;
        let (mut sender, config) = four_of_ten(rtt_ms);
        let told = rtt + rtt / 4; // since the timeout was armed
        comes(&mut sender, told, 4, &[(5, 8)], 0, &config);
        assert_eq!(sender.state, State::Recovery);
        assert_eq!(sender.resend(told, &config), Some(4));
        (sender, config, told)
    }

    /// What an ACK tells of beside the segments that it acknowledges has not overtaken them (tcp_ack: prior_fack).
    #[test]
    fn the_blocks_of_an_ack_overtake_nothing_that_it_acknowledges() {
        let (mut sender, config) = four_of_ten(100);
        comes(&mut sender, 101 * MS, 5, &[(6, 9)], 0, &config);
        assert!(!sender.rack.reordered);
        assert_eq!((sender.state, sender.resend(101 * MS, &config)), (State::Recovery, Some(5)), "at once");

        let (mut sender, config) = four_of_ten(100);
        comes(&mut sender, 101 * MS, 4, &[(6, 7)], 0, &config);
        comes(&mut sender, 102 * MS, 5, &[(6, 7)], 0, &config);
        assert!(sender.rack.reordered, "those of the ACK before");
    }
}
