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
        if self.state != State::Open || self.sacked > 0 || self.out() == 0 || self.timer.probe.is_some() {
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
        match self.timer.purpose {
            Purpose::Probe => Expired::Probe,
            Purpose::Reordering => {
                self.arm_rto(now, config);
                self.detect_by_time(now, config);
                let summary = AckSummary::nothing(self.lost);
                self.respond(now, &summary, config, group);
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
        } else if self.una >= until {
            self.timer.probe = None;
            if self.state == State::Open {
                self.reduce_once(now, config, group); // the probe repaired a loss
            }
        }
    }
}
