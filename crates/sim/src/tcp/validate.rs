//! Whether a window is used, and what becomes of one that is not (RFC 2861, RFC 7661; Linux: `tcp_cwnd_validate`).

use pathcast_congestion::{Event, State};

use super::config::Config;
use super::sender::Sender;

/// How much of the window was used lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    /// The window held the sender back in this window of data; most segments in flight in it; where it ends.
    limited: bool,
    most_out: u32,
    until: u64,
    /// When the window was last seen in use [ns], and most segments out since.
    at: u64,
    used: u32,
}

impl Use {
    /// It is in use from `now` on.
    pub(super) fn new(now: u64) -> Self {
        Use { at: now, ..Use::default() }
    }
}

impl Sender {
    /// Whether the window, not the application, holds the sender back (Linux: `tcp_is_cwnd_limited`).
    #[inline]
    pub(super) fn is_limited(&self, config: &Config) -> bool {
        !config.window_validation
            || self.usage.limited
            || (self.flow.cwnd < self.flow.ssthresh && self.flow.cwnd < 2 * self.usage.most_out)
    }

    /// A round of sending is over: notes whether the window ended it, and watches the tail. The program has more and waits for room,
    /// or not.
    #[inline]
    pub(crate) fn after_sending(&mut self, now: u64, sent: bool, waits: bool, config: &Config) {
        let full = self.in_flight() >= self.window() || std::mem::take(&mut self.offload.deferred);
        if sent || full {
            self.validate(now, full, waits, config);
        }
        if sent && config.rack {
            self.watch_tail(now, config);
        }
    }

    /// Linux: `tcp_cwnd_validate`.
    fn validate(&mut self, now: u64, full: bool, waits: bool, config: &Config) {
        let out = self.out();
        if self.una >= self.usage.until || full || (!self.usage.limited && out > self.usage.most_out) {
            self.usage.limited = full;
            self.usage.most_out = out;
            self.usage.until = self.nxt;
        }
        if config.window_validation {
            if self.is_limited(config) {
                (self.usage.at, self.usage.used) = (now, 0);
                return;
            }
            self.usage.used = self.usage.used.max(out);
            if config.idle_restart && now - self.usage.at >= self.rtt.rto(config) {
                if self.state == State::Open && !waits {
                    self.shrink_unused(config);
                }
                self.usage.at = now;
            }
        }
    }

    /// There is nothing more to send (Linux: `tcp_rate_check_app_limited`).
    #[inline]
    pub(crate) fn starve(&mut self) {
        if self.to_resend == 0 && self.in_flight() < self.flow.cwnd {
            self.starved_until = (self.all_delivered + u64::from(self.in_flight())).max(1);
        }
    }

    /// A window that has not been used for an RTO falls half way to what is used (RFC 2861).
    #[cold]
    fn shrink_unused(&mut self, config: &Config) {
        let used = self.usage.used.max(config.initial_window);
        if used < self.flow.cwnd {
            self.flow.ssthresh = self.flow.ssthresh.max(self.flow.cwnd / 2 + self.flow.cwnd / 4);
            self.flow.cwnd = (self.flow.cwnd + used) / 2;
        }
        self.usage.used = 0;
    }

    /// Nothing was in flight: after an RTO of silence the window is halved once for each (RFC 2861).
    pub(super) fn restart_after_idle(&mut self, now: u64, config: &Config) {
        let rto = self.rtt.rto(config);
        let idle = now.saturating_sub(self.last_sent);
        if config.window_validation && config.idle_restart && self.nxt > 0 && idle > rto {
            self.refresh(now, config);
            self.control.event(&mut self.flow, Event::Idle);
            let restart = config.initial_window.min(self.flow.cwnd);
            self.flow.ssthresh = self.flow.ssthresh.max(self.flow.cwnd / 2 + self.flow.cwnd / 4);
            let halvings = (idle / rto).min(31) as u32;
            self.flow.cwnd = (self.flow.cwnd >> halvings).max(restart);
            (self.usage.at, self.usage.used) = (now, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::Tcp;

    use super::*;

    const MS: u64 = 1_000_000;

    /// A window of 400 in congestion avoidance, of which `used` are out and then acknowledged, over an RTT of 100 ms: as sending goes on
    /// with one segment every 100 ms for a second, or as nothing is sent.
    fn unused(used: u64, sends: bool, waits: bool) -> u32 {
        let config = Config::new(&Tcp::default());
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 100_000, &config, None);
        (sender.flow.cwnd, sender.flow.ssthresh) = (400, 200);
        for n in 0..used + if sends { 10 } else { 0 } {
            let now = 100 * MS * n.saturating_sub(used);
            sender.send_new(now, n, 1448, &config);
            sender.after_sending(now, true, waits, &config);
            if n >= used {
                (sender.una, sender.una_bytes) = (n, n * 1448);
            }
        }
        (sender.una, sender.una_bytes) = (sender.nxt, sender.nxt_bytes);
        (10..20).for_each(|n| sender.after_sending(100 * MS * n, false, waits, &config));
        sender.flow.cwnd
    }

    /// Silence is for what is sent after it to judge (tcp_cwnd_restart), not for pushes that send nothing.
    #[test]
    fn a_window_is_judged_only_where_something_is_sent() {
        assert_eq!(unused(40, false, false), 400);
    }

    /// It falls half way to the most that was out since it was full, every timeout of 300 ms, but not while the program waits for room.
    #[test]
    fn an_unused_window_falls_half_way_to_the_most_that_was_used() {
        assert_eq!(unused(40, true, false), [41, 10, 10].iter().fold(400, |window, used| (window + used) / 2));
        assert_eq!(unused(40, true, true), 400);
    }

    /// A second of silence, five timeouts of 200 ms: five halvings, and three quarters of the window as the threshold; or none.
    #[test]
    fn a_window_of_before_a_silence_is_halved_for_each_timeout_or_kept() {
        for (restarts, window, threshold) in [(true, 12, 300), (false, 400, 200)] {
            let config = Config::new(&Tcp { idle_restart: Some(restarts), ..Tcp::default() });
            let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
            sender.establish(0, 0, 1, &config, None);
            sender.send_new(0, 0, 1448, &config);
            (sender.una, sender.una_bytes) = (1, 1448);
            (sender.flow.cwnd, sender.flow.ssthresh) = (400, 200);
            sender.send_new(1_010_000_000, 1, 1448, &config);
            assert_eq!((sender.flow.cwnd, sender.flow.ssthresh), (window, threshold), "{restarts}");
        }
    }
}
