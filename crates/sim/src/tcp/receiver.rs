//! The receiving half of a subflow: what has arrived, when an ACK is due, and which blocks it tells.

use super::config::Config;
use crate::packet::{Blocks, CE, CWR, LAST, Range};

/// What an arriving segment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// An ACK at once.
    Now,
    /// An ACK at once, which tells that the segment had been received before.
    Duplicate,
    /// An ACK when the timer says so.
    Later,
}

/// The receiving half of a subflow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// Next segment expected.
    pub nxt: u64,
    /// Runs received beyond it, in order.
    runs: Vec<Range>,
    /// Those that changed last, the newest first: the blocks of the next ACK.
    recent: Blocks,
    /// Segments received in order and not yet acknowledged.
    pending: u32,
    /// The stamp to echo (RFC 7323): of the oldest segment that the next ACK covers.
    pub echo: u64,
    quick: u32,
    /// Window that it offers while there is memory, where buffers grow [byte].
    pub offered: u64,
    /// When the held ACK is due [ns]; 0: none is held.
    pub due: u64,
    /// ACKs tell of a mark until the sender says that it has reduced its window.
    pub echoes: bool,
    /// Segments that arrived, and those that were here before.
    pub arrived: u64,
    pub duplicates: u64,
}

impl Receiver {
    /// Begins anew and keeps its room.
    pub(crate) fn reset(&mut self, config: &Config) {
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        *self = Receiver { runs, quick: config.quick_acks, ..Receiver::default() };
    }

    /// A larger window is told at once (`tcp_grow_window`): while it grows, each segment has its own ACK.
    pub(crate) fn offer(&mut self, bytes: u64, config: &Config) {
        self.quick |= u32::from(bytes > self.offered && config.quick_acks > 0);
        self.offered = bytes;
    }

    /// Segment `seq`, sent at `stamp`, has arrived, with the packet's flags.
    #[inline]
    pub(crate) fn receive(&mut self, now: u64, seq: u64, stamp: u64, flags: u8, config: &Config) -> Answer {
        self.arrived += 1;
        let told = flags & (CE | CWR) != 0 && self.mark(flags);
        if seq == self.nxt {
            if self.pending == 0 {
                self.echo = stamp;
            }
            self.nxt += 1;
            if !self.runs.is_empty() {
                self.fill();
                return Answer::Now;
            }
            self.pending += 1;
            if self.pending >= config.delayed_ack || told || flags & LAST != 0 {
                return Answer::Now;
            }
            if self.quick > 0 {
                self.quick -= 1;
                return Answer::Now;
            }
            if self.due == 0 {
                self.due = now + config.delayed_ack_timeout;
            }
            return Answer::Later;
        }
        self.out_of_order(seq, config)
    }

    /// A mark, or the answer to one (Linux: `tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`); true: an ACK is due at once, since the
    /// sender's window may be small now.
    #[cold]
    fn mark(&mut self, flags: u8) -> bool {
        if flags & CWR != 0 {
            self.echoes = false;
        }
        if flags & CE != 0 && !self.echoes {
            self.echoes = true;
            self.quick = self.quick.max(2);
        }
        flags & CWR != 0
    }

    fn fill(&mut self) {
        if self.runs[0].0 == self.nxt {
            self.nxt = self.runs.remove(0).1;
        }
        let nxt = self.nxt;
        let mut kept = Blocks::default();
        for &range in self.recent.as_slice().iter().filter(|range| range.0 >= nxt) {
            kept.range[kept.len as usize] = range;
            kept.len += 1;
        }
        // those that had been told too long ago
        for &run in &self.runs {
            if kept.len as usize == kept.range.len() {
                break;
            }
            if !kept.as_slice().contains(&run) {
                kept.range[kept.len as usize] = run;
                kept.len += 1;
            }
        }
        self.recent = kept;
    }

    #[cold]
    fn out_of_order(&mut self, seq: u64, config: &Config) -> Answer {
        self.quick = if config.quick_again { config.quick_acks } else { 0 };
        if seq < self.nxt {
            self.duplicates += 1;
            return Answer::Duplicate;
        }
        // the first run that ends at or behind seq
        let at = self.runs.partition_point(|run| run.1 < seq);
        let run = match self.runs.get(at).copied() {
            Some((start, end)) if start <= seq && seq < end => {
                self.duplicates += 1;
                self.tell((start, end));
                return Answer::Duplicate;
            }
            Some((start, end)) if end == seq => {
                let joins = self.runs.get(at + 1).filter(|next| next.0 == seq + 1).map(|next| next.1);
                if joins.is_some() {
                    self.runs.remove(at + 1);
                }
                (start, joins.unwrap_or(seq + 1))
            }
            Some((start, end)) if start == seq + 1 => (seq, end),
            _ => {
                self.runs.insert(at, (seq, seq + 1));
                (seq, seq + 1)
            }
        };
        self.runs[at] = run;
        self.tell(run);
        Answer::Now
    }

    /// Puts a run in front of the blocks, in place of those that it covers.
    fn tell(&mut self, run: Range) {
        let mut told = Blocks { range: [run, (0, 0), (0, 0), (0, 0)], len: 1, sent_us: 0 };
        for &range in self.recent.as_slice() {
            if !(run.0 <= range.0 && range.1 <= run.1) && (told.len as usize) < told.range.len() {
                told.range[told.len as usize] = range;
                told.len += 1;
            }
        }
        self.recent = told;
    }

    /// An ACK is leaving: what it tells beside `nxt`. At most `most` blocks fit, one less if it answers a duplicate
    /// (RFC 2018, RFC 2883).
    #[inline]
    pub(crate) fn acknowledge(&mut self, duplicate: bool, most: u8) -> Option<Blocks> {
        self.pending = 0;
        self.due = 0;
        let mut blocks = self.recent;
        blocks.len = blocks.len.min(most - u8::from(duplicate));
        (blocks.len > 0).then_some(blocks)
    }

    /// Segments received beyond a hole.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        self.runs.iter().map(|run| run.1 - run.0).sum()
    }

    /// Whether something is held that an ACK should cover.
    pub(crate) fn is_holding(&self) -> bool {
        self.pending > 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pathcast_scenario::{Preset, Tcp};
    use proptest::prelude::*;

    use super::*;

    fn config() -> Config {
        Config::new(&Tcp { preset: Preset::Rfc, ..Tcp::default() })
    }

    #[test]
    fn every_second_segment_at_once() {
        let (config, mut receiver) = (config(), Receiver::default());
        receiver.reset(&config);
        assert_eq!(receiver.receive(5, 0, 1, 0, &config), Answer::Later);
        assert_eq!(receiver.due, 200_000_005);
        assert_eq!(receiver.receive(6, 1, 2, 0, &config), Answer::Now);
        assert_eq!(receiver.echo, 1, "of the oldest");
        assert_eq!(receiver.acknowledge(false, 3), None);
        assert_eq!(receiver.receive(7, 2, 3, LAST, &config), Answer::Now, "the last one");
    }

    #[test]
    fn quick_acks_at_the_start_and_after_disorder() {
        let config = Config::new(&Tcp::default());
        let mut receiver = Receiver::default();
        receiver.reset(&config);
        for seq in 0..16 {
            assert_eq!(receiver.receive(0, seq, 0, 0, &config), Answer::Now);
            receiver.acknowledge(false, 3);
        }
        assert_eq!(receiver.receive(0, 16, 0, 0, &config), Answer::Later);
        assert_eq!(receiver.receive(0, 18, 0, 0, &config), Answer::Now);
        assert_eq!(receiver.receive(0, 17, 0, 0, &config), Answer::Now, "fills the hole");
        receiver.acknowledge(false, 3);
        assert_eq!(receiver.receive(0, 19, 0, 0, &config), Answer::Now);
    }

    #[test]
    fn the_newest_block_comes_first() {
        let (config, mut receiver) = (config(), Receiver::default());
        receiver.reset(&config);
        for seq in [2, 5, 8, 11, 3] {
            receiver.receive(0, seq, 0, 0, &config);
        }
        assert_eq!(receiver.acknowledge(false, 3).unwrap().as_slice(), [(2, 4), (11, 12), (8, 9)]);
        assert_eq!(receiver.acknowledge(false, 1).unwrap().as_slice(), [(2, 4)], "of Multipath TCP");
        assert_eq!(receiver.receive(0, 5, 0, 0, &config), Answer::Duplicate);
        assert_eq!(receiver.acknowledge(true, 3).unwrap().as_slice(), [(5, 6), (2, 4)]);
        assert_eq!(receiver.acknowledge(true, 1), None, "the duplicate takes the only place");
    }

    /// RFC 3168, section 6.1.3: every ACK echoes until CWR comes; Linux acknowledges two at once after the first, and CWR.
    #[test]
    fn a_mark_is_echoed_until_the_sender_answers() {
        let (config, mut receiver) = (config(), Receiver::default());
        receiver.reset(&config);
        for (seq, flags, answer, echoes) in [
            (0, 0, Answer::Later, false),
            (1, CE, Answer::Now, true),
            (2, CE, Answer::Now, true),
            (3, 0, Answer::Now, true),
            (4, 0, Answer::Later, true),
            (5, 0, Answer::Now, true),
            (6, CWR, Answer::Now, false),
            (7, CWR | CE, Answer::Now, true),
        ] {
            assert_eq!(receiver.receive(0, seq, 0, flags, &config), answer, "{seq}");
            assert_eq!(receiver.echoes, echoes, "{seq}");
            if answer == Answer::Now {
                receiver.acknowledge(false, 3);
            }
        }
    }

    proptest! {
        #[test]
        fn takes_any_order_once(order in Just((0..60u64).collect::<Vec<_>>()).prop_shuffle(), again in 0u64..60) {
            let (config, mut receiver) = (config(), Receiver::default());
            receiver.reset(&config);
            let mut seen = BTreeSet::new();
            for seq in order {
                receiver.receive(0, seq, 0, 0, &config);
                seen.insert(seq);
                let expected = (0..).find(|seq| !seen.contains(seq)).unwrap();
                prop_assert_eq!(receiver.nxt, expected);
                if let Some(blocks) = receiver.acknowledge(false, 3) {
                    for &(start, end) in blocks.as_slice() {
                        prop_assert!(start > expected && (start..end).all(|seq| seen.contains(&seq)));
                        prop_assert!(!seen.contains(&end) && !seen.contains(&(start - 1)));
                    }
                } else {
                    prop_assert!(seen.len() as u64 == expected);
                }
            }
            prop_assert_eq!(receiver.receive(0, again, 0, 0, &config), Answer::Duplicate);
            prop_assert_eq!((receiver.arrived, receiver.duplicates), (61, 1));
        }
    }
}
