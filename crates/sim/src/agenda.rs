//! When each of a fixed set of things happens next: a tournament tree, one leaf a slot.
//!
//! Every slot has at most one pending time, which may move both ways; equal times come out in the order of the slots.
//! A key is `time << 64 | slot`, one comparison a level. Against a heap of the same keys it needs no stale entries and
//! no second sift for a slot that is set again at once, which is what a link does with every packet.

const NEVER: u64 = u64::MAX;

/// A tournament tree over slots.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// `tree[1]` is the earliest of all; leaf of slot `i` is `tree[leaves + i]`.
    tree: Vec<u128>,
    leaves: usize,
}

fn key(at: u64, slot: usize) -> u128 {
    u128::from(at) << 64 | slot as u128
}

impl Agenda {
    pub(crate) fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        let mut agenda = Agenda { tree: vec![key(NEVER, 0); 2 * leaves], leaves };
        for slot in 0..leaves {
            agenda.tree[leaves + slot] = key(NEVER, slot);
        }
        agenda.rebuild();
        agenda
    }

    fn rebuild(&mut self) {
        for i in (1..self.leaves).rev() {
            self.tree[i] = self.tree[2 * i].min(self.tree[2 * i + 1]);
        }
    }

    /// Makes room for slots up to `slots`.
    pub(crate) fn grow(&mut self, slots: usize) {
        if slots <= self.leaves {
            return;
        }
        let mut larger = Agenda::new(slots);
        for slot in 0..self.leaves {
            larger.tree[larger.leaves + slot] = self.tree[self.leaves + slot];
        }
        larger.rebuild();
        *self = larger;
    }

    /// The earliest time and its slot; the end of time if nothing is pending.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let first = self.tree[1];
        ((first >> 64) as u64, first as u64 as usize)
    }

    /// The time of a slot.
    #[inline]
    pub(crate) fn at(&self, slot: usize) -> u64 {
        (self.tree[self.leaves + slot] >> 64) as u64
    }

    /// Sets the time of a slot; the end of time takes it off.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, at: u64) {
        let mut i = self.leaves + slot;
        self.tree[i] = key(at, slot);
        while i > 1 {
            i >>= 1;
            let winner = self.tree[2 * i].min(self.tree[2 * i + 1]);
            if self.tree[i] == winner {
                return;
            }
            self.tree[i] = winner;
        }
    }

    /// Brings a slot forward to `at`; a later time changes nothing, so that whoever is woken must look again.
    #[inline]
    pub(crate) fn by(&mut self, slot: usize, at: u64) {
        if at < self.at(slot) {
            self.set(slot, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_plain_list(slots in 1usize..70, sets in prop::collection::vec((0usize..70, 0u64..50), 0..300)) {
            let mut agenda = Agenda::new(1);
            agenda.grow(slots);
            let mut plain = vec![NEVER; slots];
            for (slot, at) in sets {
                let (slot, at) = (slot % slots, if at > 45 { NEVER } else { at });
                agenda.set(slot, at);
                plain[slot] = at;
                let earliest = *plain.iter().min().unwrap();
                prop_assert_eq!(agenda.first().0, earliest);
                if earliest != NEVER {
                    prop_assert_eq!(agenda.first().1, plain.iter().position(|&t| t == earliest).unwrap());
                }
            }
        }
    }

    #[test]
    fn brought_forward_only() {
        let mut agenda = Agenda::new(3);
        agenda.by(2, 10);
        agenda.by(2, 20);
        assert_eq!(agenda.first(), (10, 2));
        agenda.by(1, 10);
        assert_eq!(agenda.first(), (10, 1));
    }
}
