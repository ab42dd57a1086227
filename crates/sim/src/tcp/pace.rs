//! Pacing as in Linux: a controller's rate, or twice (in slow start) and 1.2 times the window per RTT if all are paced.

use super::config::Config;
use super::sender::Sender;

/// Packets at the start of a connection that are never paced.
const UNPACED: u64 = 10;

/// When the next packet may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    next: u64,
}

impl Sender {
    fn rate(&self, config: &Config) -> u64 {
        if config.pacing || self.flow.pace_bytes_per_s > 0 { self.pacing_rate() } else { 0 }
    }

    /// What Linux keeps as `sk_pacing_rate`, paced or not [byte/s]; 0 before the first RTT.
    pub(crate) fn pacing_rate(&self) -> u64 {
        if self.flow.pace_bytes_per_s > 0 { self.flow.pace_bytes_per_s } else { self.own_rate() }
    }

    /// The rate that the scheduler of Multipath TCP finds there: an ACK sets TCP's own (`tcp_update_pacing_rate`), which it sees,
    /// since it is called before the subflow sends again; the controller's comes with the next look at what is queued.
    pub(crate) fn scheduled_rate(&self) -> u64 {
        if self.answered { self.own_rate() } else { self.pacing_rate() }
    }

    fn own_rate(&self) -> u64 {
        let srtt = u64::from(self.rtt.srtt_us());
        if srtt == 0 {
            return 0;
        }
        let window = u64::from(self.flow.cwnd.max(self.out())) * u64::from(self.flow.mss) * 1_000_000 / srtt;
        if self.flow.cwnd < self.flow.ssthresh / 2 { window * 2 } else { window + window / 5 }
    }

    /// When a packet may leave, as far as pacing goes [ns].
    #[inline]
    pub(crate) fn paced_until(&self) -> u64 {
        self.pace.next
    }

    /// A packet of `bytes` payload has left: with a rate the next one waits for its share of time, whatever burst the
    /// controller allows; being late shortens that by up to a half.
    #[inline]
    pub(super) fn pace_after(&mut self, now: u64, bytes: u32, config: &Config) {
        if !self.asks_send && !config.pacing {
            return;
        }
        let rate = self.rate(config);
        if rate == 0 || self.stats.sent <= UNPACED {
            self.pace.next = 0;
            return;
        }
        let time = u64::from(bytes) * 1_000_000_000 / rate;
        let late = if self.pace.next > 0 { now.saturating_sub(self.pace.next) } else { 0 };
        self.pace.next = now + time - late.min(time / 2);
    }
}
