//! Open, Disorder, Recovery, Loss: when a reduction begins and ends, how the window moves in it (PRR, RFC 6937, or
//! ssthresh at once), and when it is undone (Eifel, RFC 4015; DSACK, RFC 3708; after a timeout: `frto.rs`).

use pathcast_congestion::{Connection, Event, State};

use super::ack::AckSummary;
use super::board::{EVER, LOST, RETRANS};
use super::config::Config;
use super::sender::Sender;

/// Duplicate ACKs that mean a loss without SACK.
pub(super) const DUP_THRESH: u32 = 3;

/// Proportional rate reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    pub active: bool,
    pub prior_cwnd: u32,
    /// The threshold to half a segment [byte]; of ns-3.
    pub ssthresh_bytes: u32,
    pub delivered: u32,
    pub sent: u32,
    /// A partial ACK has come.
    pub partial: bool,
}

/// What undoing the last reduction needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// A reduction may be undone.
    pub armed: bool,
    prior_ssthresh: u32,
    /// When the first segment was sent again [ns]; 0: none was.
    first_resent: u64,
    /// Retransmissions that may still be in flight or were sent since, less those that the receiver called duplicates.
    outstanding: u64,
    /// There was one of these.
    counted: bool,
}

impl Undo {
    pub(super) fn resent(&mut self, now: u64) {
        if self.first_resent == 0 {
            self.first_resent = now;
        }
        self.outstanding += 1;
        self.counted = true;
    }

    pub(super) fn duplicate(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// The reduction stays whatever is learnt of it.
    pub(super) fn forget(&mut self) {
        self.armed = false;
    }

    fn all_duplicates(&self) -> bool {
        self.counted && self.outstanding == 0
    }

    /// The ACK echoes a stamp from before the first retransmission.
    pub(super) fn was_delayed(&self, echo: u64) -> bool {
        self.first_resent > 0 && echo > 0 && echo < self.first_resent
    }
}

impl Sender {
    /// Moves between the states by what an ACK told.
    #[inline]
    pub(super) fn respond(
        &mut self,
        now: u64,
        summary: &AckSummary,
        config: &Config,
        mut group: Option<&mut Connection>,
    ) {
        if config.ns3_duplicates() {
            return self.respond_to_duplicates(now, summary, config, group);
        }
        match self.state {
            State::Open if self.sacked == 0 && self.lost == 0 => return,
            State::Recovery => {
                if self.una >= self.high_seq {
                    self.end_recovery(now, summary, config, group.as_deref_mut());
                } else {
                    self.partial(summary, config);
                    return;
                }
            }
            State::Loss => {
                self.in_loss(summary, config);
                if self.state == State::Loss && !self.lost_again {
                    return;
                }
            }
            _ => {}
        }
        if !config.sack && summary.moved {
            self.sacked = 0;
        }
        let lost = self.state == State::Loss;
        if config.undo && !lost && self.undo.armed && summary.duplicate && self.undo.all_duplicates() {
            self.rack.duplicates();
            self.take_back(config);
        }
        if self.must_recover(config) {
            self.enter_recovery(now, config, group);
        } else if self.state != State::Cwr {
            self.state = if self.sacked > 0 { State::Disorder } else { State::Open };
        }
    }

    fn must_recover(&self, config: &Config) -> bool {
        if config.sack {
            return self.lost > 0;
        }
        self.sacked >= DUP_THRESH && self.recover.is_none_or(|recover| self.una > recover)
    }

    /// The controller's new threshold for a reduction that begins now.
    fn ask_ssthresh(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) -> u32 {
        self.refresh(now, config);
        if let (true, Some(group)) = (self.grouped, group) {
            group.meet(&mut self.flow, false);
        }
        let cwnd = self.flow.cwnd;
        if config.reduce_flight {
            let most = if config.ns3 { u32::MAX } else { cwnd };
            self.flow.cwnd = self.flow.in_flight.min(most).max(1);
        }
        let ssthresh = self.control.ssthresh(&mut self.flow);
        self.flow.cwnd = cwnd;
        ssthresh.max(1)
    }

    pub(super) fn begin(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) {
        // Linux remembers three quarters of the window at least (tcp_current_ssthresh)
        let prior_ssthresh = self.flow.ssthresh.max(self.flow.cwnd / 2 + self.flow.cwnd / 4);
        let ssthresh = self.ask_ssthresh(now, config, group);
        self.flow.prior_cwnd = self.flow.cwnd;
        // what was sent again before, a probe of the tail among it, may be called a duplicate yet (tcp_init_undo)
        let outstanding = u64::from(self.retrans);
        // what is still out of it may answer with its own stamp (tcp_retrans_stamp_cleanup)
        let any = outstanding > 0 || (self.una < self.nxt && self.board.get(self.una).flags & EVER != 0);
        let first_resent = if any { self.undo.first_resent } else { 0 };
        self.undo = Undo { armed: true, prior_ssthresh, first_resent, outstanding, counted: outstanding > 0 };
        self.flow.ssthresh = ssthresh;
        self.high_seq = self.nxt;
        self.answers_mark = config.ecn;
    }

    pub(super) fn start_reduction(&mut self, config: &Config) {
        self.flow.cwnd_cnt = 0;
        self.reduction = Reduction { active: true, prior_cwnd: self.flow.cwnd, ..Reduction::default() };
        if !config.prr {
            self.flow.cwnd = self.flow.ssthresh;
        }
    }

    pub(super) fn enter_recovery(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) {
        let flight = self.in_flight();
        let reduces = self.state == State::Cwr; // for the same window already
        if !reduces {
            self.begin(now, config, group);
        }
        self.stats.recoveries += 1;
        self.state = State::Recovery;
        if !config.sack || config.ns3_duplicates() {
            self.mark_head(config);
        }
        self.high_resent = self.una;
        self.rescued = false;
        self.forced |= config.ns3_duplicates(); // whatever the window says
        if !reduces {
            self.start_reduction(config);
        }
        if config.ns3 {
            self.begin_bytes(flight);
        }
    }

    fn mark_head(&mut self, config: &Config) {
        let but = if config.ns3_flags() { 0 } else { LOST | RETRANS };
        if self.una < self.nxt && self.board.get(self.una).flags & but == 0 {
            self.mark_lost(self.una);
            if !config.sack && !config.ns3 {
                // what is lost has not arrived, however many duplicate ACKs there were
                self.sacked = self.sacked.min(self.out() - self.lost);
            }
        }
    }

    /// The window during recovery.
    pub(super) fn reduce(&mut self, summary: &AckSummary, config: &Config) {
        if !config.prr {
            return;
        }
        if config.ns3 {
            return self.reduce_bytes(summary, config);
        }
        let r = &mut self.reduction;
        r.delivered += summary.delivered;
        if summary.delivered == 0 && r.sent > 0 && !summary.moved {
            return;
        }
        let in_flight = self.out() + self.retrans - self.sacked - self.lost;
        let r = &self.reduction;
        let ssthresh = self.flow.ssthresh;
        let mut send = if in_flight > ssthresh {
            let due = u64::from(ssthresh) * u64::from(r.delivered) + u64::from(r.prior_cwnd.max(1)) - 1;
            ((due / u64::from(r.prior_cwnd.max(1))) as u32).saturating_sub(r.sent)
        } else {
            let mut send = r.delivered.saturating_sub(r.sent).max(summary.delivered);
            let grows = summary.moved && self.all_lost == summary.lost_before;
            send += u32::from(grows); // no new loss: slow start towards ssthresh
            send.min(ssthresh - in_flight)
        };
        send = send.max(u32::from(r.sent == 0)); // the first retransmission always leaves
        self.flow.cwnd = (in_flight + send).max(1);
    }

    pub(super) fn end_recovery(
        &mut self,
        now: u64,
        summary: &AckSummary,
        config: &Config,
        group: Option<&mut Connection>,
    ) {
        self.recover = Some(self.high_seq);
        self.reduction.active = false;
        self.state = State::Open;
        if self.may_undo(summary, config) {
            self.take_back(config);
        } else {
            self.rack.recovered();
            self.flow.cwnd = self.flow.ssthresh.max(1);
            if config.ns3 {
                self.end_bytes(config);
            }
        }
        self.refresh(now, config);
        self.control.event(&mut self.flow, Event::Recovered);
        if let (true, Some(group)) = (self.grouped, group) {
            group.meet(&mut self.flow, false);
        }
    }

    fn may_undo(&self, summary: &AckSummary, config: &Config) -> bool {
        config.undo && self.undo.armed && (self.undo.was_delayed(summary.echo) || self.undo.all_duplicates())
    }

    /// An ACK within recovery.
    pub(super) fn partial(&mut self, summary: &AckSummary, config: &Config) {
        if !summary.moved {
            return;
        }
        let late = config.undo && self.undo.armed && self.undo.was_delayed(summary.echo);
        self.rack.reordered |= late && config.sack; // its original came (tcp_try_undo_partial)
        if late && self.retrans == 0 {
            self.reduction.active = false;
            self.unmark();
            self.take_back(config);
            self.state = State::Open;
        } else {
            if !config.sack {
                self.mark_head(config); // the next hole (RFC 6582)
            }
            let head_again = self.board.get(self.una).flags & RETRANS != 0;
            self.forced = (config.ns3 || (config.partial_resend && !config.sack)) && !head_again;
        }
    }

    /// The reduction was for nothing.
    pub(super) fn take_back(&mut self, config: &Config) {
        debug_assert!(config.undo);
        let cwnd = self.control.undo(&mut self.flow);
        self.flow.cwnd = cwnd.max(1);
        self.flow.ssthresh = self.flow.ssthresh.max(self.undo.prior_ssthresh);
        self.undo = Undo::default();
        self.stats.undos += 1;
    }

    /// The retransmission timer has run out.
    pub(super) fn enter_loss(&mut self, now: u64, config: &Config, mut group: Option<&mut Connection>) {
        self.stats.timeouts += 1;
        self.duplicates = 0;
        let flight = self.in_flight();
        if !config.reduce_flight {
            self.mark_all_lost(config);
        }
        let reduces = match self.state {
            State::Loss => self.una > self.loss_una || config.ns3_duplicates(),
            // Linux has reduced the window for these losses already
            State::Recovery | State::Cwr => config.reduce_flight || self.una >= self.high_seq,
            _ => true,
        };
        // in a recovery what was sent once may well arrive behind what is lost (RFC 5682, section 3.1, step 1)
        self.frto = (self.state as u32) < State::Recovery as u32 || self.backoff() > 0;
        self.tries_new = false;
        self.loss_una = self.una;
        if reduces {
            self.begin(now, config, group.as_deref_mut());
            self.flow.ssthresh += u32::from(config.ns3 && 2 * self.flow.ssthresh + 1 == flight);
            self.refresh(now, config);
            self.control.event(&mut self.flow, Event::Timeout);
        }
        self.reduction.active = false;
        if config.reduce_flight {
            self.mark_all_lost(config);
        }
        self.flow.cwnd = self.in_flight() + 1;
        self.flow.cwnd_cnt = 0;
        // where the path is dead nothing else tells the siblings
        if let (true, true, Some(group)) = (reduces, self.grouped, group) {
            group.meet(&mut self.flow, false);
        }
        self.state = State::Loss;
        self.high_seq = self.nxt;
    }

    /// A tail loss probe repaired a loss: one reduction, at once (RFC 8985, section 7.4).
    pub(super) fn reduce_once(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) {
        self.begin(now, config, group);
        self.flow.cwnd = self.flow.ssthresh;
        self.flow.cwnd_cnt = 0;
        self.refresh(now, config);
        self.control.event(&mut self.flow, Event::Recovered);
    }
}

#[cfg(test)]
mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::{Preset, Tcp};

    use super::super::ack::tests::{comes, recovering};
    use super::super::timer::Expired;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A sender of so many segments over an RTT of 100 ms, after its timeout without an ACK; and when that was.
    fn timed_out(out: u64) -> (Sender, Config, u64) {
        let config = Config::new(&Tcp { preset: Preset::Linux, ..Tcp::default() });
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 0, &config, None);
        sender.rtt.sample(100_000, 0, 0, &config);
        for dsn in 0..out {
            sender.send_new(1 + dsn, dsn, 1448, &config);
        }
        let at = sender.deadline();
        assert!(matches!(sender.expire(at, &config, None), Expired::Timeout(1)));
        (sender, config, at)
    }

    /// The timeout runs from when the first missing segment was sent again, else the repetition of it that time finds lost
    /// comes behind the timeout wherever the RTT is long.
    #[test]
    fn the_timeout_starts_anew_with_the_first_missing_segment() {
        for rtt in [100, 600, 1500] {
            let (sender, config, began) = recovering(rtt);
            assert_eq!(sender.deadline(), began + sender.rtt.rto(&config), "RTT {rtt} ms");
        }
    }

    /// Where a path is dead no other report follows.
    #[test]
    fn siblings_hear_of_the_window_that_a_timeout_leaves() {
        let config = Config::new(&Tcp { preset: Preset::Linux, ..Tcp::default() });
        let mut group = Connection::new();
        let mut subflows = [0, 1].map(|_| {
            let mut sender = Sender::new(&Params::new(controller("lia").unwrap()));
            sender.establish(0, 0, 0, &config, Some(&mut group));
            sender.rtt.sample(100_000, 0, 0, &config);
            sender
        });
        for dsn in 0..10 {
            subflows[0].send_new(1, dsn, 1448, &config);
        }
        subflows[0].enter_loss(300 * MS, &config, Some(&mut group));
        group.meet(&mut subflows[1].flow, false);
        assert_eq!(subflows[1].flow.group.peer[0].cwnd, 1);
    }

    /// What was sent again after a timeout and is lost again reduces the window it was sent in (tcp_fastretrans_alert: FLAG_LOST_RETRANS).
    #[test]
    fn what_is_lost_again_after_a_timeout_begins_a_recovery() {
        for lost in [false, true] {
            let (mut sender, config, at) = timed_out(20);
            assert_eq!(sender.resend(at, &config), Some(0));
            comes(&mut sender, at + 100 * MS, 1, &[], 0, &config);
            assert!(sender.tried(), "nothing new was there");
            (sender.flow.cwnd, sender.flow.ssthresh) = (8, 16);
            (1..9).for_each(|seq| assert_eq!(sender.resend(at + 100 * MS, &config), Some(seq)));
            if lost {
                comes(&mut sender, at + 200 * MS, 1, &[(2, 9)], 0, &config);
                let seen = (sender.state, sender.high_seq, sender.flow.ssthresh, sender.stats.recoveries);
                assert_eq!(seen, (State::Recovery, 20, 4, 1));
                assert!(sender.flow.cwnd < 8 && !sender.undo.was_delayed(at + 1), "an echo of the first repetition");
            } else {
                comes(&mut sender, at + 200 * MS, 9, &[], 0, &config);
                assert_eq!((sender.state, sender.flow.ssthresh), (State::Loss, 16));
            }
        }
    }

    /// A timeout within a recovery is not belied by what was sent once before it (RFC 5682, section 3.1, step 1); one that
    /// came without any recovery is.
    #[test]
    fn a_timeout_in_a_recovery_stays() {
        let (mut sender, config, _) = recovering(600);
        let at = sender.deadline();
        assert!(matches!(sender.expire(at, &config, None), Expired::Timeout(1)));
        comes(&mut sender, at + 1, 4, &[(5, 10)], 0, &config); // segments 8 and 9, sent once
        assert_eq!((sender.state, sender.stats.undos), (State::Loss, 0));

        let (mut late, config, at) = timed_out(10);
        assert_eq!(late.resend(at, &config), Some(0));
        comes(&mut late, at + 1, 5, &[], 0, &config);
        assert_eq!((late.state, late.stats.undos), (State::Open, 1));
    }

    /// A duplicate of what was sent again before the reduction began says nothing of the reduction.
    #[test]
    fn a_duplicate_from_before_takes_no_reduction_back() {
        let (mut sender, config, began) = recovering(100);
        let mut armed = sender.clone();
        armed.undo.duplicate();
        assert!(armed.undo.all_duplicates(), "its only retransmission was for nothing");
        sender.begin(began + 2, &config, None); // while that is still out
        sender.undo.resent(began + 2);
        sender.undo.duplicate();
        assert!(!sender.undo.all_duplicates());
        sender.undo.duplicate();
        assert!(sender.undo.all_duplicates());
    }

    /// An ACK that delivers one lost segment, while another is found lost, does not speed up the recovery (RFC 6937).
    #[test]
    fn a_new_loss_is_one_whatever_was_repaired() {
        let (mut sender, config, _) = recovering(100);
        let mut summary = AckSummary::nothing(sender.all_lost);
        (summary.moved, summary.delivered) = (true, 1);
        sender.mark_lost(8);
        let mut again = summary;
        again.lost_before = sender.all_lost;
        sender.flow.ssthresh = 20;
        let mut calm = sender.clone();
        sender.reduce(&summary, &config);
        calm.reduce(&again, &config);
        assert_eq!(sender.flow.cwnd + 1, calm.flow.cwnd);
    }
}
