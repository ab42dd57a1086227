//! Segmentation offload: which new segments leave together, as one super-packet that the device cuts.
//!
//! Linux 6.18. A super-packet has what the pacing rate lets go in a millisecond (`tcp_tso_autosize`), at most half of the
//! window (`tcp_cwnd_test`). What an ACK frees is less: while the last packet left within a millisecond and the next ACK is
//! due within one, TCP waits for more room, until there is a whole super-packet, a third of the window, or all of the
//! buffer at the head of its queue (`tcp_tso_should_defer`). So at rates of more than some packets a millisecond what
//! leaves is bunched, and a short queue drops more of it. Segments sent again are not held back.

use pathcast_congestion::State;

use super::buffers::super_packet;
use super::config::Config;
use super::sender::Sender;

/// Longest that the last packet may be back, and that the next ACK may be ahead [ns].
const RECENT: u64 = 1_000_000;
/// Segments of a buffer that a program has filled (64 KiB).
pub(crate) const BUFFER: u64 = 45;
/// Share of the window that is sent at once (`tcp_tso_win_divisor`).
const SHARE: u32 = 3;

/// The super-packet that is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offload {
    /// Most segments that the host hands to a device at once; 1: no offload.
    pub most: u32,
    /// Segments of it that have not left yet, and payload of those that have [byte].
    left: u32,
    bytes: u32,
    /// The window had room that was left for more of it.
    pub deferred: bool,
    /// Super-packets that are not acknowledged to their ends.
    pub packets: u32,
    /// Most segments in flight that a controller allows until the next ACK.
    pub allowed: u32,
}

impl Default for Offload {
    fn default() -> Self {
        Offload { most: 1, left: 0, bytes: 0, deferred: false, packets: 0, allowed: u32::MAX }
    }
}

impl Sender {
    /// The host hands at most so many segments to a device at once.
    pub(crate) fn offload(&mut self, most: u32) {
        self.offload.most = most;
    }

    /// The host hands segments over by themselves.
    #[inline]
    pub(super) fn sends_single(&self) -> bool {
        self.offload.most == 1
    }

    /// The controller's burst bounds the window until the next ACK, where segments leave together.
    pub(super) fn limit_burst(&mut self) {
        if !self.sends_single() {
            let burst = self.flow.burst;
            self.offload.allowed = if burst > 0 { self.in_flight() + burst } else { u32::MAX };
        }
    }

    /// There is room for a new segment, and `waiting` of them are there: whether it leaves now.
    #[inline]
    pub(crate) fn lets_go(&mut self, now: u64, waiting: u64, config: &Config) -> bool {
        self.sends_single() || self.offload.left > 0 || self.begin_burst(now, waiting, config)
    }

    fn begin_burst(&mut self, now: u64, waiting: u64, config: &Config) -> bool {
        let room = self.room(config);
        let mss = u64::from(self.flow.mss);
        let least = if self.asks_send && self.flow.burst > 0 { self.flow.burst } else { 2 };
        let whole = super_packet(self.pacing_rate(), self.rtt.min_us, mss, u64::from(least))
            .min(self.offload.most.into()) as u32;
        let quota = room.min((self.flow.cwnd / 2).max(1)).min(whole);
        let buffer = (BUFFER - self.nxt % BUFFER).max(quota.into()).min(waiting);
        if buffer > 1 && self.defers(now, room, whole, buffer, buffer < waiting) {
            self.offload.deferred |= u64::from(room) <= buffer;
            return false;
        }
        self.offload.left = u64::from(quota).min(buffer) as u32;
        true
    }

    /// Whether room for `room` segments is not used yet.
    fn defers(&self, now: u64, room: u32, whole: u32, buffer: u64, more: bool) -> bool {
        if matches!(self.state, State::Recovery | State::Loss) || now > self.last_sent.max(self.paced_until()) + RECENT
        {
            return false;
        }
        if room >= whole || (more && u64::from(room) >= buffer) || room >= self.window() / SHARE || self.out() == 0 {
            return false;
        }
        let srtt = u64::from(self.rtt.srtt_us()) * 1000;
        self.board.get(self.una).sent + srtt <= now + RECENT.min(srtt / 2)
    }

    /// A segment has left; the payload after which the pace is kept, if it was the last of what leaves at once [byte].
    #[inline]
    pub(super) fn burst_sent(&mut self, bytes: u32) -> Option<u32> {
        self.offload.bytes += bytes;
        self.offload.left = self.offload.left.saturating_sub(1);
        (self.offload.left == 0).then(|| std::mem::take(&mut self.offload.bytes))
    }

    /// The segment that was sent for the first time ends a super-packet.
    #[inline]
    pub(super) fn ends_packet(&self) -> bool {
        self.offload.left <= 1
    }

    /// Nothing more is there to be sent.
    pub(crate) fn end_burst(&mut self, now: u64, config: &Config) {
        if std::mem::take(&mut self.offload.left) > 0 {
            let bytes = std::mem::take(&mut self.offload.bytes);
            self.pace_after(now, bytes, config);
        }
    }
}

#[cfg(test)]
mod tests {
    use pathcast_congestion::{Params, controller};
    use pathcast_scenario::Tcp;

    use super::*;

    const MS: u64 = 1_000_000;

    /// In congestion avoidance over an RTT of 40 ms, `out` segments out, the oldest `age` ago and the last just now.
    fn sender(cwnd: u32, out: u64, age: u64, config: &Config) -> Sender {
        let mut sender = Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 0, 40_000, config, None);
        sender.offload(u32::MAX);
        (sender.flow.cwnd, sender.flow.ssthresh) = (cwnd, cwnd / 2);
        sender.send_new(100 * MS - age, 0, 1448, config);
        for dsn in 1..out {
            sender.send_new(100 * MS, dsn, 1448, config);
        }
        sender
    }

    /// What leaves at `now` of many that wait.
    fn leaves(sender: &mut Sender, now: u64, config: &Config) -> u32 {
        let before = sender.nxt;
        while sender.room(config) > 0 && sender.lets_go(now, 1000, config) {
            sender.send_new(now, sender.nxt, 1448, config);
        }
        sender.end_burst(now, config);
        (sender.nxt - before) as u32
    }

    /// 240 segments an RTT of 40 ms are 8.7 MB/s, 1.2 times of which are seven segments a millisecond.
    #[test]
    fn room_for_less_than_a_super_packet_waits_for_more() {
        let config = Config::new(&Tcp::default());
        for (room, expected) in [(1, 0), (2, 0), (6, 0), (7, 7), (9, 7), (15, 14)] {
            let mut sender = sender(240, 240 - room, 40 * MS, &config);
            assert_eq!(u64::from(leaves(&mut sender, 100 * MS, &config)), expected, "room for {room}");
            sender.after_sending(100 * MS, expected > 0, false, &config);
            assert!(
                sender.flow.cwnd == 240 && sender.is_limited(&config),
                "the window, not the program, was the bound"
            );
        }
    }

    #[test]
    fn nothing_waits_after_a_pause_or_for_a_late_ack_or_in_a_repair_or_one_by_one() {
        let config = Config::new(&Tcp::default());
        let two = |change: fn(&mut Sender), now: u64, age: u64| {
            let mut sender = sender(240, 238, age, &config);
            change(&mut sender);
            leaves(&mut sender, now, &config)
        };
        assert_eq!(two(|_| (), 100 * MS, 40 * MS), 0);
        assert_eq!(two(|_| (), 101 * MS, 40 * MS), 0);
        assert_eq!(two(|_| (), 101 * MS + 1, 40 * MS), 2, "the last left more than a millisecond ago");
        assert_eq!(two(|_| (), 100 * MS, 39 * MS), 0);
        assert_eq!(two(|_| (), 100 * MS, 39 * MS - 1), 2, "the next ACK is more than a millisecond ahead");
        assert_eq!(two(|s| s.state = State::Recovery, 100 * MS, 40 * MS), 2);
        assert_eq!(two(|s| s.state = State::Cwr, 100 * MS, 40 * MS), 0);
        assert_eq!(two(|s| s.offload(1), 100 * MS, 40 * MS), 2);
        assert_eq!(two(|s| s.offload(2), 100 * MS, 40 * MS), 2, "that is a whole one there");
    }

    /// A third of a small window goes at once; the rest of a buffer too, as it gets no longer.
    #[test]
    fn a_third_of_the_window_or_the_rest_of_a_buffer_goes() {
        let config = Config::new(&Tcp::default());
        for (out, expected) in [(15, 0), (14, 0), (12, 6)] {
            let mut sender = sender(18, out, 40 * MS, &config);
            sender.flow.pace_bytes_per_s = 100_000_000; // a super-packet of 45
            assert_eq!(leaves(&mut sender, 100 * MS, &config), expected, "{out}");
        }
        let mut sender = sender(240, 223, 40 * MS, &config); // two short of five buffers
        sender.flow.cwnd = 226;
        sender.flow.pace_bytes_per_s = 100_000_000;
        assert_eq!(leaves(&mut sender, 100 * MS, &config), 3);
    }
}
