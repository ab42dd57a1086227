//! What an ACK does, in Linux's order: marks and RTT, the controller's `ack`, loss detection, the reduction or the
//! controller's `grow`.

use pathcast_congestion::{Ack, Connection, State};

use super::board::{EVER, LOST, RETRANS};
use super::config::Config;
use super::sender::Sender;
use crate::packet::{DUPLICATE, Packet, Range};

/// What one ACK told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
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
    /// Lost segments before the ACK.
    pub lost_before: u32,
    /// A block told of something new; what it moved past had been sent again, and no block had told of it.
    pub told: bool,
    pub again_acked: bool,
    /// In flight before a duplicate was counted or a new head marked, where duplicates are flagged.
    pub in_flight: u32,
}

impl Heard {
    /// No ACK at all, while `lost` segments are thought to be lost.
    pub(super) fn nothing(lost: u32) -> Self {
        Heard { lost_before: lost, ..Heard::default() }
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
        blocks: &[Range],
        config: &Config,
        mut group: Option<&mut Connection>,
    ) {
        if ack.seq < self.una || ack.seq > self.nxt || self.out() == 0 {
            return;
        }
        let mut heard = Heard {
            moved: ack.seq > self.una,
            duplicate: ack.flags & DUPLICATE != 0,
            echo: ack.stamp,
            lost_before: self.lost,
            ..Heard::default()
        };
        if !blocks.is_empty() && config.sack {
            self.take_blocks(now, ack.seq, blocks, config, &mut heard);
            heard.told = heard.delivered > 0;
        }
        if heard.moved {
            self.take_cumulative(now, ack.seq, config, &mut heard);
        } else if !config.sack && config.flagged_duplicates {
            heard.in_flight = self.in_flight();
            if self.state != State::Loss {
                self.flag_duplicate();
            }
        } else if !config.sack && self.sacked + self.lost < self.out() {
            self.sacked += 1; // a duplicate ACK: something has left the network
            heard.delivered += 1;
        }
        if heard.duplicate {
            self.undo.duplicate();
        }

        let rtt_us = self.measure(now, &heard, config);
        self.refresh(now, config);
        let mut ack = Ack::new(heard.acked, rtt_us);
        if config.usec_timestamps {
            ack = ack.with_one_way_delay((heard.echo / 1000) as u32);
        }
        self.control.ack(&mut self.flow, &ack);

        if heard.moved {
            self.progress(now, config);
        }
        self.end_probe(now, &heard, config, group.as_deref_mut());
        self.detect(now, config);
        let lost = self.state == State::Loss;
        self.respond(now, &heard, config, group.as_deref_mut());
        if heard.moved && config.rack {
            self.watch_tail(now, config); // also where nothing more is to be sent
        }

        if self.state == State::Recovery {
            self.reduce(&heard, config);
        } else if config.counted_duplicates && (self.state == State::Disorder || (lost && self.una == self.high_seq)) {
            // ns-3 grows the window neither in disorder nor for what had been sent before the timeout
        } else if heard.delivered > 0 && (heard.moved || self.rack.reordered) {
            self.refresh(now, config);
            let acked = Ack::new(heard.delivered.min(config.abc_limit), rtt_us);
            match group {
                Some(group) if self.grouped => {
                    group.meet(&mut self.flow, true);
                    self.control.grow(&mut self.flow, &acked);
                    group.deliver(&self.flow);
                }
                _ if self.counts_bytes(config) => self.grow_bytes(heard.delivered),
                _ => self.control.grow(&mut self.flow, &acked),
            }
        }
    }

    /// Whether `cwnd_cnt` is the part of a segment in the window [byte].
    pub(super) fn counts_bytes(&self, config: &Config) -> bool {
        config.window_bytes && self.control.info().name == "reno"
    }

    /// NewReno as ns-3 has it, with the part of a segment in `cwnd_cnt` [byte].
    fn grow_bytes(&mut self, acked: u32) {
        let slow = self.flow.cwnd < self.flow.ssthresh;
        self.flow.cwnd += u32::from(slow);
        if self.flow.cwnd >= self.flow.ssthresh && acked > u32::from(slow) {
            let mss = u64::from(self.flow.mss);
            let part = u64::from(self.flow.cwnd_cnt);
            let part = part + (mss * mss / (u64::from(self.flow.cwnd) * mss + part)).max(1);
            self.flow.cwnd += u32::from(part >= mss);
            self.flow.cwnd_cnt = (part % mss) as u32;
        }
    }

    #[cold]
    fn take_blocks(&mut self, now: u64, cumulative: u64, blocks: &[Range], config: &Config, heard: &mut Heard) {
        let (floor, nxt) = (cumulative.max(self.una), self.nxt);
        let (fack, high_seq) = (self.high_sacked, self.high_seq);
        let min_rtt = u64::from(self.rtt.min_us) * 1000;
        let off = if config.again_stays { LOST } else { LOST | RETRANS };
        for &(start, end) in blocks {
            let Sender { board, lost, retrans, to_resend, sacked, rack, high_sacked, .. } = self;
            board.sack_range((start.max(floor), end.min(nxt)), |segment, seq| {
                heard.delivered += 1;
                *sacked += 1;
                if segment.flags & LOST != 0 {
                    *lost -= 1;
                    *to_resend -= u32::from(segment.flags & RETRANS == 0);
                }
                *retrans -= u32::from(segment.flags & RETRANS & off != 0);
                let again = segment.flags & EVER != 0;
                if !again {
                    heard.once(segment.sent);
                    let oldest = heard.oldest_sacked.unwrap_or(u64::MAX);
                    heard.oldest_sacked = Some(oldest.min(segment.sent));
                    heard.original |= seq < high_seq;
                    rack.reordered |= seq < fack;
                }
                segment.flags &= !off;
                rack.delivered(now, seq, segment.sent, again, min_rtt);
                *high_sacked = (*high_sacked).max(seq + 1);
            });
        }
    }

    #[inline]
    fn take_cumulative(&mut self, now: u64, to: u64, config: &Config, heard: &mut Heard) {
        let (mut bytes, mut newest) = (0, None);
        let min_rtt = u64::from(self.rtt.min_us) * 1000;
        for seq in self.una..to {
            let segment = *self.board.get(seq);
            bytes += u64::from(segment.bytes);
            let again = segment.flags & EVER != 0;
            heard.again |= again;
            if self.board.is_sacked(seq) {
                self.board.unsack(seq);
                self.sacked -= 1;
                self.retrans -= u32::from(segment.flags & RETRANS != 0);
                if !again {
                    heard.oldest = heard.oldest.or(Some(segment.sent));
                }
                continue;
            }
            heard.delivered += 1;
            heard.again_acked |= segment.flags & RETRANS != 0;
            if segment.flags & LOST != 0 {
                self.lost -= 1;
                self.to_resend -= u32::from(segment.flags & RETRANS == 0);
            }
            self.retrans -= u32::from(segment.flags & RETRANS != 0);
            if !again {
                heard.oldest = heard.oldest.or(Some(segment.sent));
                newest = newest.max(Some(segment.sent));
                heard.original |= seq < self.high_seq;
                self.rack.reordered |= config.sack && seq < self.high_sacked;
            }
            if config.rack {
                self.rack.delivered(now, seq, segment.sent, again, min_rtt);
            }
        }
        if let Some(sent) = newest.filter(|_| !heard.again) {
            heard.once(sent); // else it may have waited behind a hole (Karn; so does Linux)
        }
        heard.acked = (to - self.una) as u32;
        self.una = to;
        self.una_bytes += bytes;
        self.stats.acked_bytes += bytes;
        if !config.sack && config.flagged_duplicates {
            heard.delivered = heard.acked;
            if self.una < self.nxt && self.board.is_sacked(self.una) {
                // the flag was a guess: it moves on, and the new head counts as lost
                self.board.unsack(self.una);
                self.sacked -= 1;
                self.flag_duplicate();
                self.mark_lost(self.una);
            }
            heard.in_flight = self.in_flight();
        } else if !config.sack {
            // duplicate ACKs stood for segments that this one covers, all but the hole itself
            heard.delivered = (heard.acked - heard.acked.min(self.sacked)).max(1);
            self.sacked -= self.sacked.min(heard.acked - 1);
            self.sacked = self.sacked.min(self.out() - self.lost.min(self.out()));
        }
    }

    /// A duplicate ACK stands for the first segment behind the head that none stands for yet.
    #[cold]
    fn flag_duplicate(&mut self) {
        let behind = (self.una + 1..self.nxt).find(|&seq| !self.board.is_sacked(seq));
        if let Some(seq) = behind.filter(|&seq| self.board.get(seq).flags & LOST == 0) {
            self.board.sack_range((seq, seq + 1), |_, _| {});
            self.sacked += 1;
        }
    }

    /// Feeds the RTT; returns the sample for the controller, of the newest segment delivered [us], 0 if there is none.
    fn measure(&mut self, now: u64, heard: &Heard, config: &Config) -> u32 {
        let us = |sent: u64| ((now - sent) / 1000).max(1) as u32;
        let oldest = if heard.again { None } else { heard.oldest };
        let smoothed = oldest.or(heard.oldest_sacked).map(us).or_else(|| {
            // all were sent again: the echoed stamp tells which copy it was
            (heard.moved && heard.echo > 0).then(|| us(heard.echo))
        });
        if let Some(rtt_us) = smoothed {
            self.rtt.sample(rtt_us, self.una, self.nxt, config);
        }
        heard.newest.map_or(0, us)
    }
}
