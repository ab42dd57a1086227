//! Buffers that begin small and grow with what passes through them, as Linux's do (6.18).
//!
//! - A packet takes more memory than its bytes (`truesize`): a power of two that holds payload, headers' room (192 B) and the
//!   table of its fragments (320 B), and the buffer's head (256 B).
//! - Send buffer (`tcp_sndbuf_expand`): twice the window, of ten packets and more, in such packets, at most `tcp_wmem`. A program
//!   that found it full is woken when a third of it is free (`sk_stream_is_writeable`).
//! - Receive buffer (`tcp_rcv_space_adjust`, dynamic right-sizing): once an RTT what was read in it is compared with the largest of
//!   before; if it is more, the window becomes twice that, and twice the growth beyond (a sender in slow start). What is
//!   offered follows by two segments for each that arrives (`tcp_grow_window`), so that the buffer is not promised ahead of its use.

use super::config::Config;

/// Memory of a receive buffer before the first measure (`tcp_rmem`) [byte].
const FIRST: u64 = 131_072;
/// Memory of a new send buffer (`tcp_wmem`) [byte].
pub(crate) const FIRST_SEND: u64 = 65_536;
/// Packets that a new connection has room for.
const INITIAL: u64 = 10;
/// What a super-packet in a send buffer takes beside its payload [byte].
const HEAD: u64 = 832;
/// Most bytes of a super-packet.
const SUPER: u64 = 65_536;

/// Memory that a full packet takes [byte].
pub(crate) fn truesize(mss: u32) -> u64 {
    (u64::from(mss) + 12 + 192 + 320).next_power_of_two() + 256
}

/// The send buffer for a window [byte].
pub(crate) fn send_buffer(cwnd: u32, mss: u32, config: &Config) -> u64 {
    (2 * u64::from(cwnd).max(INITIAL) * truesize(mss)).min(config.send_buffer)
}

/// Memory that segments in a send buffer take: sent ones in so many super-packets, the others in the largest and what is left of
/// one [byte].
pub(crate) fn taken(sent: u64, packets: u64, waiting: u64, mss: u64) -> u64 {
    let uncut = waiting.div_ceil(SUPER / mss.max(1)) + u64::from(waiting > 0);
    (sent + waiting) * mss + (packets + uncut) * HEAD
}

/// Segments of a super-packet: what the pacing rate lets go in a millisecond, more where the RTT is short, at least `least`
/// (`tcp_tso_autosize`).
pub(crate) fn super_packet(rate: u64, min_rtt_us: u32, mss: u64, least: u64) -> u64 {
    let short = min_rtt_us >> 9;
    let bytes = (rate >> 10) + if short < 32 { SUPER >> short } else { 0 };
    (bytes.min(SUPER) / mss.max(1)).max(least)
}

/// The receive buffer of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiveBuffer {
    /// Its memory, at most so much, and what a full packet of so much payload takes of it [byte].
    memory: u64,
    most: u64,
    packet: u64,
    mss: u64,
    /// Payload in 256 bytes of memory.
    ratio: u64,
    /// Read within the largest measure so far, within this one [byte]; when this one began [ns].
    space: u64,
    copied: u64,
    since: u64,
}

impl ReceiveBuffer {
    pub(crate) fn new(now: u64, mss: u32, config: &Config) -> Self {
        let memory = FIRST.min(config.receive_buffer);
        let (mss, packet) = (u64::from(mss), truesize(mss));
        let mut buffer =
            ReceiveBuffer { memory, most: config.receive_buffer, packet, mss, ratio: 128, ..ReceiveBuffer::default() };
        buffer.space = buffer.first().min(INITIAL * mss);
        buffer.since = now;
        buffer
    }

    /// The window that a subflow begins with [byte].
    pub(crate) fn first(&self) -> u64 {
        self.payload(FIRST.min(self.most)).min(65_535)
    }

    /// A receiver that asks for so much payload at once is given a buffer for it, at most half of the largest
    /// (`tcp_set_rcvlowat`); the measures go on.
    pub(crate) fn ask(&mut self) {
        self.memory = self.memory.max((self.most / 2 * self.packet / self.mss).min(self.most));
    }

    fn payload(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> 8
    }

    fn free(&self, held: u64) -> u64 {
        self.payload(self.memory.saturating_sub(held * self.packet))
    }

    /// A segment has arrived over a subflow that offers so many bytes; `held` segments of its own wait for others before them. The
    /// first subflow's memory is the connection's, a later one's the least. What it offers now [byte].
    pub(crate) fn arrive(&mut self, offered: u64, held: u64, first: bool) -> u64 {
        self.ratio = (self.mss << 8) / self.packet;
        let memory = if first { self.memory } else { FIRST.min(self.most) };
        let room = self.payload(memory.saturating_sub(held * self.packet)).saturating_sub(offered);
        offered + room.min(2 * self.mss)
    }

    /// The program has read so many segments in order; `beyond`: those from the next expected to the last that arrived. `rtt_us`
    /// is the longest of the connection's RTTs, 0 while there is none.
    pub(crate) fn read(&mut self, now: u64, segments: u64, beyond: u64, rtt_us: u32) {
        self.copied += segments * self.mss;
        let rtt = u64::from(rtt_us) * 1000;
        if rtt == 0 || now - self.since < rtt {
            return;
        }
        if self.copied > self.space {
            self.grow(beyond * self.mss);
        }
        (self.copied, self.since) = (0, now);
    }

    fn grow(&mut self, beyond: u64) {
        let (new, old) = (self.copied, self.space.max(1));
        self.space = new;
        let twice = 2 * new;
        let window = twice + 2 * (twice * (new - old) / old) + beyond;
        self.memory = self.memory.max(((window << 8) / self.ratio).min(self.most));
    }

    /// The window that a subflow tells which offers so many bytes, while `held` segments of the stream wait [segments]. An empty
    /// buffer takes one, however small it is.
    pub(crate) fn window(&self, offered: u64, held: u64) -> u32 {
        let bytes = offered.min(self.free(held));
        ((bytes / self.mss).max(u64::from(held == 0))).min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use pathcast_scenario::Tcp;

    use super::*;

    const MS: u64 = 1_000_000;

    fn linux() -> Config {
        Config::new(&Tcp::default())
    }

    /// Seen with `ss -tm`: 2304 bytes for a packet of 1500 in a receive buffer, and a send buffer of 4608 for each of the window.
    #[test]
    fn memory_of_a_packet() {
        assert_eq!([1448, 1424, 1000, 500].map(truesize), [2304, 2304, 2304, 1280]);
        assert_eq!(truesize(8948), 16_640);
        let config = linux();
        assert_eq!(
            [1, 10, 139, 375].map(|cwnd| send_buffer(cwnd, 1424, &config)),
            [46_080, 46_080, 640_512, 1_728_000]
        );
        assert_eq!(send_buffer(2000, 1424, &config), 4_194_304, "tcp_wmem");
    }

    /// Seen with `ss -tm` over Multipath TCP: 10 segments sent in pairs and 24 waiting took 53,408 B; 16 one by one and 7 waiting 46,896 B.
    #[test]
    fn memory_of_what_waits_to_be_sent() {
        for (sent, packets, waiting, seen) in [(10, 5, 24, 53_408u64), (16, 16, 7, 46_896)] {
            let bytes = taken(sent, packets, waiting, 1424);
            assert!(bytes.abs_diff(seen) <= HEAD, "{bytes} {seen}");
        }
        assert_eq!([100_000, 7_500_000, 1 << 30].map(|rate| super_packet(rate, 40_000, 1448, 2)), [2, 5, 45]);
        assert_eq!(super_packet(0, 1_000, 1448, 2), 22, "a short RTT lets 32 KiB go");
    }

    /// Slow start from ten segments: the first RTT reads what was expected, then every one twice what the one before did, and the
    /// window is six times what was read (2 + 2 * 2 * (2 - 1)), as far as two segments for each arrival have brought it.
    #[test]
    fn the_window_keeps_ahead_of_a_slow_start() {
        let config = Config { receive_buffer: 1 << 30, ..linux() };
        let mut buffer = ReceiveBuffer::new(0, 1448, &config);
        assert_eq!((buffer.memory, buffer.first(), buffer.space), (131_072, 65_535, 14_480));
        let (mut offers, mut offered) = (buffer.first(), 65_535);
        for (round, read) in [(1u64, 10u64), (2, 20), (3, 40), (4, 80), (5, 160)] {
            for n in 0..read {
                offers = buffer.arrive(offers, 0, true);
                buffer.read(round * 100 * MS + n, 1, 0, 100_000);
            }
            // a round's first segment ends the measure of the round before, which read twice as much as the one before it
            if round > 2 {
                assert_eq!(buffer.memory, ((6 * (read / 2) * 1448) << 8) / 160, "round {round}");
            }
            offered = (offered + read * 2 * 1448).min(buffer.payload(buffer.memory));
            assert!(offers.abs_diff(offered) <= 2 * 1448, "round {round}: {offers} {offered}");
            assert!(u64::from(buffer.window(offers, 0)) >= 2 * read, "round {round}");
        }
    }

    /// A steady rate: twice what an RTT reads, and no more; what waits behind a hole takes its place.
    #[test]
    fn a_steady_rate_has_twice_its_pipe() {
        let config = linux();
        let mut buffer = ReceiveBuffer::new(0, 1448, &config);
        buffer.space = 1000 * 1448;
        let mut offers = buffer.first();
        for n in 0..20_000u64 {
            offers = buffer.arrive(offers, 0, true);
            buffer.read(n * 100_000, 1, 0, 110_000); // 1100 segments an RTT
        }
        let window = u64::from(buffer.window(offers, 0));
        assert!((2_200..=2_700).contains(&window), "{window}");
        assert_eq!(u64::from(buffer.window(offers, 500)), (buffer.memory - 500 * 2304) * 160 / 256 / 1448);
        assert_eq!(buffer.window(offers, buffer.memory / 2304 + 1), 0);
    }

    #[test]
    fn it_never_passes_its_largest_size() {
        let config = Config { receive_buffer: 300_000, ..linux() };
        let mut buffer = ReceiveBuffer::new(0, 1448, &config);
        let mut offers = buffer.first();
        for n in 0..20_000u64 {
            offers = buffer.arrive(offers, 0, true);
            buffer.read(n * 1000, 1, 0, 10_000);
        }
        assert_eq!(u64::from(buffer.window(offers, 0)), 300_000 * 160 / 256 / 1448);
        let tiny = ReceiveBuffer::new(0, 1448, &Config { receive_buffer: 1448, ..linux() });
        assert_eq!(tiny.window(tiny.first(), 0), 1);
    }

    /// Seen with `ss -ti`: after 260 segments over the first subflow, the slow one, of a connection whose program had asked for a low-water
    /// mark, both told a window of 574 to 581; the other's 2,300 had added nothing.
    #[test]
    fn what_comes_over_a_later_subflow_widens_the_window_little() {
        let config = Config { receive_buffer: 64 << 20, ..linux() };
        let mut buffer = ReceiveBuffer::new(0, 1424, &config);
        buffer.ask();
        let first = (0..260).fold(buffer.first(), |offers, _| buffer.arrive(offers, 0, true));
        let later = (0..2300).fold(buffer.first(), |offers, _| buffer.arrive(offers, 0, false));
        assert!((560..=590).contains(&buffer.window(first, 0)), "{}", buffer.window(first, 0));
        assert_eq!(later, buffer.payload(131_072));
        assert_eq!(buffer.window(later, 0), 56);
    }

    /// Seen with `ss -tm`: a send buffer stays where it was while the window is full, and follows once the subflow has run dry.
    #[test]
    fn a_full_window_does_not_widen_the_send_buffer() {
        use pathcast_congestion::{Params, controller};
        let config = linux();
        let mut sender = super::super::Sender::new(&Params::new(controller("reno").unwrap()));
        sender.establish(0, 1, 0, &config, None);
        sender.flow.cwnd = 40;
        for dsn in 0..40 {
            sender.send_new(0, dsn, 1424, &config);
        }
        sender.expand_buffer(&config);
        assert_eq!(sender.send_buffer(&config), 65_536);
        sender.flow.cwnd = 41;
        sender.expand_buffer(&config);
        assert_eq!(sender.send_buffer(&config), 41 * 2 * 2304);
    }
}
