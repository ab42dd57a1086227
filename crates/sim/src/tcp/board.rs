//! What the sender knows of each segment between `una` and `nxt`: a ring, with a bitmap of those selectively
//! acknowledged, so that a block that is told again costs a look at its words and not at its segments.

use crate::packet::Range;

/// Thought to be lost.
pub(crate) const LOST: u8 = 1;
/// Sent again, and that copy is not thought to be lost.
pub(crate) const RETRANS: u8 = 2;
/// Was sent more than once.
pub(crate) const EVER: u8 = 4;
/// Given to another subflow of the connection too.
pub(crate) const REINJECTED: u8 = 8;
/// Ends a super-packet.
pub(crate) const END: u8 = 16;

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    /// When it was sent last [ns].
    pub sent: u64,
    /// Its place in the connection's stream [segment].
    pub dsn: u64,
    /// Payload bytes.
    pub bytes: u16,
    pub flags: u8,
}

/// The segments from `una` to `nxt`.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    ring: Vec<Segment>,
    sacked: Vec<u64>,
    mask: u64,
}

impl Board {
    pub(crate) fn new() -> Self {
        Board { ring: vec![Segment::default(); 64], sacked: vec![0; 1], mask: 63 }
    }

    /// Empties it for another connection and keeps its room.
    pub(crate) fn clear(&mut self) {
        self.sacked.fill(0);
    }

    #[inline]
    pub(crate) fn get(&self, seq: u64) -> &Segment {
        &self.ring[(seq & self.mask) as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u64) -> &mut Segment {
        &mut self.ring[(seq & self.mask) as usize]
    }

    /// Puts in segment `seq`, the next one, while those from `una` on are kept.
    #[inline]
    pub(crate) fn push(&mut self, una: u64, seq: u64, segment: Segment) {
        if seq - una > self.mask {
            self.enlarge(una, seq);
        }
        *self.get_mut(seq) = segment;
    }

    #[cold]
    fn enlarge(&mut self, una: u64, nxt: u64) {
        let room = self.ring.len() * 2;
        let mut larger =
            Board { ring: vec![Segment::default(); room], sacked: vec![0; room / 64], mask: room as u64 - 1 };
        for seq in una..nxt {
            *larger.get_mut(seq) = *self.get(seq);
            if self.is_sacked(seq) {
                larger.sack(seq);
            }
        }
        *self = larger;
    }

    #[inline]
    fn word(&self, seq: u64) -> (usize, u32) {
        let at = seq & self.mask;
        ((at >> 6) as usize, (at & 63) as u32)
    }

    #[inline]
    pub(crate) fn is_sacked(&self, seq: u64) -> bool {
        let (word, bit) = self.word(seq);
        self.sacked[word] >> bit & 1 != 0
    }

    fn sack(&mut self, seq: u64) {
        let (word, bit) = self.word(seq);
        self.sacked[word] |= 1 << bit;
    }

    #[inline]
    pub(crate) fn unsack(&mut self, seq: u64) {
        let (word, bit) = self.word(seq);
        self.sacked[word] &= !(1 << bit);
    }

    /// Marks a run as selectively acknowledged and hands out, in order, those that were not before.
    pub(crate) fn sack_range(&mut self, (start, end): Range, mut new: impl FnMut(&mut Segment, u64)) {
        let mut seq = start;
        while seq < end {
            let (word, bit) = self.word(seq);
            let count = (64 - u64::from(bit)).min(end - seq);
            let run = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
            let mut fresh = run & !self.sacked[word];
            self.sacked[word] |= run;
            while fresh != 0 {
                let at = seq + u64::from(fresh.trailing_zeros() - bit);
                let segment = &mut self.ring[(at & self.mask) as usize];
                new(segment, at);
                fresh &= fresh - 1;
            }
            seq += count;
        }
    }

    /// The `n`-th highest of the acknowledged in `una..below`, if there are so many.
    pub(crate) fn nth_highest_sacked(&self, una: u64, below: u64, mut n: u32) -> Option<u64> {
        let mut end = below;
        while end > una {
            let (word, bit) = self.word(end - 1);
            let count = (u64::from(bit) + 1).min(end - una);
            let run = if count == 64 { u64::MAX } else { ((1 << count) - 1) << (u64::from(bit) + 1 - count) };
            let mut here = self.sacked[word] & run;
            if here.count_ones() < n {
                n -= here.count_ones();
                end -= count;
                continue;
            }
            for _ in 1..n {
                here ^= 1 << (63 - here.leading_zeros());
            }
            let highest = 63 - here.leading_zeros();
            return Some(end - 1 - u64::from(bit - highest));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_plain_set(
            una in 0u64..500,
            window in 1u64..300,
            blocks in prop::collection::vec((0u64..300, 1u64..200), 0..12),
            n in 1u32..9,
        ) {
            let (mut board, mut plain) = (Board::new(), BTreeSet::new());
            for seq in una..una + window {
                board.push(una, seq, Segment { dsn: seq, ..Segment::default() });
            }
            for (start, len) in blocks {
                let start = una + start.min(window);
                let end = (start + len).min(una + window);
                let mut news = Vec::new();
                board.sack_range((start, end), |segment, seq| {
                    assert_eq!(segment.dsn, seq);
                    news.push(seq);
                });
                let expected: Vec<u64> = (start..end).filter(|&seq| plain.insert(seq)).collect();
                prop_assert_eq!(news, expected);
            }
            for seq in una..una + window {
                prop_assert_eq!(board.is_sacked(seq), plain.contains(&seq));
                prop_assert_eq!(board.get(seq).dsn, seq);
            }
            let highest = plain.iter().rev().nth(n as usize - 1).copied();
            prop_assert_eq!(board.nth_highest_sacked(una, una + window, n), highest);
        }
    }
}
