//! One timer a sender: retransmission timeout (RFC 6298), tail loss probe or reordering wait (RFC 8985). A deadline that
//! moves later is not taken off the agenda: whoever is woken looks again.

use pathcast_congestion::{Connection, State};

use super::ack::AckSummary;
use super::config::Config;
use super::sender::Sender;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    #[default]
    Idle,
    Rto,
    Probe,
    Reordering,
}

/// The timer and what belongs to it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer {
    purpose: Purpose,
    at: u64,
    /// Timeouts in a row.
    backoff: u32,
    /// A tail loss probe is out: the segment next to be sent then, and whether it was a retransmission.
    probe: Option<(u64, bool)>,
}

impl Timer {
    pub(super) fn is_idle(&self) -> bool {
        self.purpose == Purpose::Idle
    }

    /// An ACK of all that was sent answers a duplicate: both copies of the probe's segment have arrived.
    pub(super) fn both_arrived(&mut self) {
        self.probe = None;
    }
}

/// What a timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing: its deadline has moved.
    No,
    /// Lost segments are to be sent again.
    Lost,
    /// After a retransmission timeout, the n-th in a row.
    Timeout(u32),
    /// A probe of the tail is to be sent.
    Probe,
}

impl Sender {
    /// Timeouts in a row.
    pub(crate) fn backoff(&self) -> u32 {
        self.timer.backoff
    }

    /// When the timer runs out [ns].
    #[inline]
    pub(crate) fn deadline(&self) -> u64 {
        if self.timer.is_idle() { u64::MAX } else { self.timer.at }
    }

    fn timeout(&self, config: &Config) -> u64 {
        let rto = self.rtt.rto(config);
        rto.saturating_mul(1 << self.timer.backoff.min(20)).min(config.max_rto.max(rto))
    }

    pub(super) fn arm_rto(&mut self, now: u64, config: &Config) {
        self.timer.purpose = Purpose::Rto;
        self.timer.at = now + self.timeout(config);
    }

    /// `una` has moved: the timeout starts anew.
    #[inline]
    pub(super) fn progress(&mut self, now: u64, config: &Config) {
        self.timer.backoff = 0;
        if self.out() == 0 {
            self.timer.purpose = Purpose::Idle;
        } else if config.impatient && self.state == State::Recovery && self.una < self.high_seq {
            if !std::mem::replace(&mut self.reduction.partial, true) {
                self.arm_rto(now, config);
            }
        } else {
            self.arm_rto(now, config);
        }
    }

    /// The first segment that is missing was sent again: its timeout starts anew (tcp_xmit_retransmit_queue).
    pub(super) fn head_resent(&mut self, now: u64, config: &Config) {
        if self.timer.purpose != Purpose::Reordering {
            self.arm_rto(now, config);
        }
    }

    /// Some segments wait to be judged by time.
    pub(super) fn arm_reordering(&mut self, now: u64, wait: u64, config: &Config) {
        let at = now + wait;
        if self.timer.purpose != Purpose::Rto || at < self.timer.at {
            self.timer.purpose = Purpose::Reordering;
            self.timer.at = at.min(now + self.timeout(config));
        }
    }

    /// Arms the probe of the tail in place of the timeout: everything was sent once, and nothing is known to be missing.
    #[inline]
    pub(super) fn watch_tail(&mut self, now: u64, config: &Config) {
        if self.timer.purpose == Purpose::Reordering {
            return;
        }
        if !matches!(self.state, State::Open | State::Cwr)
            || self.sacked > 0
            || self.out() == 0
            || self.timer.probe.is_some()
        {
            return;
        }
        let srtt = u64::from(self.rtt.srtt_us()) * 1000;
        if srtt == 0 {
            return;
        }
        // a lone segment's ACK may be held back
        let wait = 2 * srtt + if self.out() == 1 { config.min_rto } else { 2_000_000 };
        let wait = wait.min(self.timeout(config));
        self.timer.purpose = Purpose::Probe;
        self.timer.at = now + wait;
    }

    /// The timer was looked at, at or after its deadline or before.
    pub(crate) fn expire(&mut self, now: u64, config: &Config, group: Option<&mut Connection>) -> Expired {
        if self.timer.is_idle() || now < self.timer.at {
            return Expired::No;
        }
        if self.out() == 0 {
            self.timer.purpose = Purpose::Idle;
            return Expired::No;
        }
        self.offload.allowed = u32::MAX;
        match self.timer.purpose {
            Purpose::Probe => Expired::Probe,
            Purpose::Reordering => {
                self.arm_rto(now, config);
                let before = self.all_lost;
                self.detect_by_time(now, config);
                self.lost_again = self.all_lost > before; // or sent once: whatever it finds (tcp_rack_reo_timeout)
                let summary = AckSummary::nothing(self.all_lost);
                if self.state != State::Loss || self.lost_again {
                    self.respond(now, &summary, config, group);
                }
                if self.state == State::Recovery {
                    self.reduce(&summary, config);
                }
                Expired::Lost
            }
            _ => {
                self.enter_loss(now, config, group);
                self.timer.probe = None;
                self.timer.backoff += 1;
                self.arm_rto(now, config);
                Expired::Timeout(self.timer.backoff)
            }
        }
    }

    /// A probe was sent, or could not be: the timeout is next.
    pub(crate) fn probed(&mut self, now: u64, again: bool, sent: bool, config: &Config) {
        if sent {
            self.timer.probe = Some((self.nxt, again));
        }
        self.arm_rto(now, config);
    }

    /// A duplicate that an ACK tells of may be the probe's: its segment has arrived.
    pub(super) fn answers_probe(&self) -> bool {
        self.timer.probe.is_some_and(|(until, again)| again && (self.una >= until || self.is_sacked(until - 1)))
    }

    /// What an ACK says of a probe that is out.
    pub(super) fn end_probe(
        &mut self,
        now: u64,
        summary: &AckSummary,
        config: &Config,
        group: Option<&mut Connection>,
    ) {
        let Some((until, again)) = self.timer.probe else { return };
        if !again || summary.duplicate {
            if self.una >= until || summary.duplicate {
                self.timer.probe = None;
            }
        } else if self.una > until {
            // what was sent behind the probe is acknowledged, and no copy was called a duplicate
            self.timer.probe = None;
            if self.state == State::Open {
                self.reduce_once(now, config, group); // the probe repaired a loss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::{Preset, Tcp};

    use super::*;

    const MS: u64 = 1_000_000;

    fn linux() -> Config {
        Config::new(&Tcp { preset: Preset::Linux, ..Tcp::default() })
    }

    /// A sender with so many segments out, sent at time zero, of those RTTs [ms].
    fn sender(out: u64, rtts: &[u32], config: &Config) -> Sender {
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 0, config, None);
        for dsn in 0..out {
            sender.send_new(0, dsn, 1448, config);
        }
        rtts.iter().for_each(|ms| sender.rtt.sample(ms * 1000, 0, 0, config));
        sender
    }

    fn watched(mut sender: Sender, now: u64, config: &Config) -> (Purpose, u64) {
        sender.watch_tail(now, config);
        (sender.timer.purpose, sender.deadline())
    }

    /// RFC 8985, section 7.2, with Linux's 2 ms: two smoothed RTTs and 2 ms, of a lone segment the least timeout in their
    /// place, and no later than the timeout.
    #[test]
    fn the_probes_time() {
        let config = linux();
        for (out, rtts, wait) in [
            (2, &[100][..], 202 * MS),
            (10, &[100], 202 * MS),
            (1, &[100], 300 * MS),   // the timeout: 100 + 200
            (2, &[1000], 2002 * MS), // the timeout: 1000 + 2000
            (1, &[1000], 2200 * MS),
            (1, &[100, 900], 600 * MS), // 2 * 200 + 200; the timeout: 200 + 950
            (10, &[100, 900], 402 * MS),
        ] {
            let expected = (Purpose::Probe, 7 * MS + wait);
            assert_eq!(watched(sender(out, rtts, &config), 7 * MS, &config), expected, "{out} out, {rtts:?}");
        }
        let slow = Config { min_rto: 50 * MS, ..config };
        assert_eq!(watched(sender(1, &[100, 900], &slow), 0, &slow), (Purpose::Probe, 450 * MS));
    }

    /// Without a sample, with something missing, or with a probe out, the timeout stays.
    #[test]
    fn no_probe_where_something_else_is_known() {
        let config = linux();
        let rto = (Purpose::Rto, 1000 * MS); // armed before the first sample
        assert_eq!(watched(sender(2, &[], &config), 0, &config), rto);
        let with = |change: fn(&mut Sender)| {
            let mut sender = sender(2, &[100], &config);
            change(&mut sender);
            watched(sender, 0, &config)
        };
        assert_eq!(with(|_| ()), (Purpose::Probe, 202 * MS));
        assert_eq!(with(|s| s.state = State::Disorder), rto);
        assert_eq!(with(|s| s.state = State::Recovery), rto);
        assert_eq!(with(|s| s.sacked = 1), rto);
        assert_eq!(with(|s| s.timer.probe = Some((2, true))), rto);
        assert_eq!(with(|s| (s.una, s.una_bytes) = (2, 2896)), rto, "nothing is out");
        let reordering = with(|s| (s.timer.purpose, s.timer.at) = (Purpose::Reordering, 30 * MS));
        assert_eq!(reordering, (Purpose::Reordering, 30 * MS));
    }

    /// The probe takes the timeout's place once: behind it the timeout runs from the probe's time on.
    #[test]
    fn the_timeout_follows_a_probe() {
        let config = linux();
        let mut sender = sender(2, &[100], &config);
        sender.watch_tail(0, &config);
        assert_eq!(sender.expire(202 * MS - 1, &config, None), Expired::No);
        assert_eq!(sender.expire(202 * MS, &config, None), Expired::Probe);
        assert_eq!(sender.resend_last(202 * MS, &config), Some(1));
        sender.probed(202 * MS, true, true, &config);
        assert_eq!((sender.timer.probe, sender.deadline()), (Some((2, true)), 502 * MS));
        sender.watch_tail(300 * MS, &config);
        assert_eq!(sender.deadline(), 502 * MS);
        for (n, at, next) in [(1, 502, 600), (2, 1102, 1200)] {
            assert_eq!(sender.expire(at * MS, &config, None), Expired::Timeout(n));
            assert_eq!((sender.timer.probe, sender.deadline()), (None, (at + next) * MS));
        }
    }

    /// An ACK of all that was out when the probe left may be of the late original: only what goes beyond it, without a
    /// duplicate, tells of a loss (RFC 8985, section 7.4.2).
    #[test]
    fn a_probe_repairs_nothing_while_its_original_may_come() {
        let config = linux();
        let probed = |until: u64, una: u64, duplicate: bool| {
            let mut sender = sender(4, &[100], &config);
            (sender.una, sender.una_bytes) = (una, una * 1448);
            sender.timer.probe = Some((until, true));
            let cwnd = sender.flow.cwnd;
            let mut summary = AckSummary::nothing(0);
            summary.duplicate = duplicate;
            sender.end_probe(202 * MS, &summary, &config, None);
            (sender.timer.probe.is_some(), sender.flow.cwnd < cwnd)
        };
        assert_eq!(probed(2, 2, false), (true, false));
        assert_eq!(probed(2, 2, true), (false, false));
        assert_eq!(probed(2, 3, false), (false, true));
    }

    /// RACK's wait comes before whatever is later, and never after the timeout.
    #[test]
    fn the_reordering_wait_moves_no_timeout_back() {
        let config = linux();
        let armed = |purpose, at, wait| {
            let mut sender = sender(2, &[100], &config);
            (sender.timer.purpose, sender.timer.at) = (purpose, at);
            sender.arm_reordering(10 * MS, wait, &config);
            (sender.timer.purpose, sender.timer.at)
        };
        assert_eq!(armed(Purpose::Rto, 300 * MS, 25 * MS), (Purpose::Reordering, 35 * MS));
        assert_eq!(armed(Purpose::Rto, 30 * MS, 25 * MS), (Purpose::Rto, 30 * MS));
        assert_eq!(armed(Purpose::Rto, 35 * MS, 25 * MS), (Purpose::Rto, 35 * MS));
        assert_eq!(armed(Purpose::Probe, 30 * MS, 25 * MS), (Purpose::Reordering, 35 * MS));
        assert_eq!(armed(Purpose::Probe, 30 * MS, 900 * MS), (Purpose::Reordering, 310 * MS));
    }
}
