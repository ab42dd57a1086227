//! What ns-3.37's TCP does otherwise than the RFCs, for preset `ns3`: found by comparing traces (docs/evidence/ns3.md).
//!
//! - Reno's window, ssthresh (of the flight alone) and PRR (from all that is out) count bytes, not packets.
//! - A recovery begins at a third duplicate or at one behind a known loss, never as another ends; a segment sent again
//!   counts as such until `una` has passed it, though a block tells of it. Both not with RACK.
//! - Without SACK a duplicate flags the first segment behind the head, and none in the loss state.
//! - With SACK too a partial ACK lets one segment go again whatever the window says.
//! - Rule 3 of NextSeg (RFC 6675) takes whatever was sent once, also above the highest block.
//!
//! Where these meet the other presets' code stands `config.ns3`.

use pathcast_congestion::{Connection, State};

use super::ack::AckSummary;
use super::board::LOST;
use super::config::Config;
use super::recovery::DUP_THRESH;
use super::sender::Sender;

impl Config {
    /// Losses are found by counting duplicates; RACK finds them otherwise.
    pub(super) fn ns3_duplicates(&self) -> bool {
        self.ns3 && !self.rack
    }

    /// Without SACK duplicates flag segments.
    pub(super) fn ns3_flags(&self) -> bool {
        self.ns3 && !self.sack
    }
}

impl Sender {
    /// Whether `cwnd_cnt` is the part of a segment in the window [byte].
    pub(super) fn counts_bytes(&self, config: &Config) -> bool {
        config.ns3 && self.control.info().name == "reno"
    }

    /// NewReno, with the part of a segment in `cwnd_cnt` [byte].
    pub(super) fn grow_bytes(&mut self, acked: u32) {
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

    /// A duplicate stands for the first segment behind the head that none stands for yet.
    #[cold]
    pub(super) fn flag_duplicate(&mut self) {
        let behind = (self.una + 1..self.nxt).find(|&seq| !self.board.is_sacked(seq));
        if let Some(seq) = behind.filter(|&seq| self.board.get(seq).flags & LOST == 0) {
            self.board.sack_range((seq, seq + 1), |_, _| {});
            self.sacked += 1;
        }
    }

    /// As [`Sender::respond`], but a recovery needs a duplicate ACK: the third, or one behind a known loss.
    pub(super) fn respond_to_duplicates(
        &mut self,
        now: u64,
        summary: &AckSummary,
        config: &Config,
        group: Option<&mut Connection>,
    ) {
        match self.state {
            State::Recovery if self.una < self.high_seq => self.partial(summary, config),
            State::Recovery => {
                self.duplicates = 0;
                self.end_recovery(now, summary, config, group);
            }
            State::Loss => self.in_loss(summary, config),
            _ if if config.sack { summary.told } else { !summary.moved } => {
                self.duplicates += 1;
                if self.state != State::Cwr {
                    self.state = State::Disorder;
                }
                let mut behind = self.una + 1..self.nxt.min(self.high_sacked.max(self.una + 2) - 1);
                let known = |seq| self.is_sacked(seq) || self.board.get(seq).flags & LOST != 0;
                if self.duplicates == DUP_THRESH
                    || behind.find(|&seq| known(seq)).is_some_and(|seq| !self.is_sacked(seq))
                {
                    self.enter_recovery(now, config, group);
                }
            }
            _ if summary.moved => {
                self.duplicates = 0;
                if self.state != State::Cwr {
                    self.state = State::Open;
                }
            }
            _ => {}
        }
    }

    /// As [`Sender::reduce`], in bytes and in 32 bits. An ACK that moves on and tells of a block counts twice, a part of a segment waits,
    /// and what was sent beyond what is delivered takes from the segment of slow start.
    pub(super) fn reduce_bytes(&mut self, summary: &AckSummary, config: &Config) {
        if config.sack && summary.delivered == 0 && !summary.moved {
            return;
        }
        let first = self.reduction.sent == 0;
        let in_flight = if first || config.sack { self.in_flight() } else { summary.in_flight };
        let r = &mut self.reduction;
        r.delivered += summary.delivered * (1 + u32::from(summary.moved && summary.told));
        let mss = i64::from(self.flow.mss);
        let bytes = |segments: u32| i64::from(segments) * mss;
        let (delivered, told) = (bytes(r.delivered), bytes(summary.delivered));
        let (left, room) = (delivered - bytes(r.sent), i64::from(r.ssthresh_bytes) - bytes(in_flight));
        let send = if room < 0 {
            let due = (delivered as u32).wrapping_mul(r.ssthresh_bytes);
            u64::from(due).div_ceil(bytes(r.prior_cwnd.max(1)) as u64) as i64 - bytes(r.sent)
        } else if summary.again_acked {
            room.min(mss + if left < 0 { left } else { left.max(told) })
        } else {
            room.min(told)
        };
        let send = send.max(if first { mss } else { 0 });
        self.flow.cwnd = (in_flight + (send / mss) as u32).max(1);
        self.flow.cwnd_cnt = if self.counts_bytes(config) { (send % mss) as u32 } else { 0 };
    }

    /// A recovery begins, with `flight` segments out: its threshold, to half a segment.
    pub(super) fn begin_bytes(&mut self, flight: u32) {
        self.reduction.prior_cwnd = self.out();
        let odd = u32::from(2 * self.flow.ssthresh + 1 == flight);
        self.reduction.ssthresh_bytes = (2 * self.flow.ssthresh + odd) * self.flow.mss / 2;
    }

    /// A recovery ends at the threshold: the part of a segment in it.
    pub(super) fn end_bytes(&mut self, config: &Config) {
        let part = self.reduction.ssthresh_bytes % self.flow.mss;
        self.flow.cwnd_cnt = if self.counts_bytes(config) { part } else { 0 };
    }
}
