//! What is asked in a round, and the search for the largest packet that passes.

use std::collections::{BTreeSet, VecDeque};

use pathcast_base::Nanos;

use super::super::request::Direction;

/// Sizes that are tried at once.
const WAYS: u32 = 3;

/// A kind of packet, and what came of those that were sent.
pub(super) struct Question {
    pub way: Direction,
    pub size: u16,
    pub class: u8,
    pub asked: u32,
    /// How often at most, and when last.
    pub tries: u32,
    pub last: Option<Nanos>,
    /// Answers that are enough.
    pub wanted: usize,
    /// Sizes and classes as they came.
    pub came: VecDeque<(u16, u8)>,
}

impl Question {
    pub fn new(way: Direction, size: u16, class: u8, wanted: usize, tries: u32) -> Question {
        Question { way, size, class, asked: 0, tries, last: None, wanted, came: VecDeque::new() }
    }

    pub fn is_content(&self) -> bool {
        self.came.len() >= self.wanted
    }
}

/// Where the largest packet that passes is searched for.
#[derive(Default)]
pub(super) struct Search {
    pub largest: u16,
    pub passes: Option<u16>,
    failed: BTreeSet<u16>,
}

impl Search {
    pub fn up_to(largest: u16) -> Search {
        Search { largest, ..Search::default() }
    }

    /// The smallest that fails beyond what passes: a smaller one that did was lost by chance.
    fn fails(&self, passes: u16) -> Option<u16> {
        self.failed.range(passes + 1..).next().copied()
    }

    /// The sizes to be tried next; none: it is over, or nothing passes.
    pub fn next(&self) -> Vec<u16> {
        let Some(passes) = self.passes.filter(|&passes| passes < self.largest) else { return Vec::new() };
        let Some(fails) = self.fails(passes) else { return Vec::new() };
        let part = |i| passes + (u32::from(fails - passes) * i / (WAYS + 1)) as u16;
        let mut sizes: Vec<u16> = (1..=WAYS).map(part).filter(|&size| size > passes).collect();
        sizes.dedup();
        sizes
    }

    pub fn learn(&mut self, size: u16, passed: bool) {
        match passed {
            true => self.passes = self.passes.max(Some(size)),
            false => drop(self.failed.insert(size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_passes_is_found_to_the_byte() {
        for largest in [129, 130, 576, 1500, 9000, 65_535] {
            for truth in
                [128, 129, largest / 2, largest - 1, largest].into_iter().filter(|t| (128..=largest).contains(t))
            {
                let mut search = Search::up_to(largest);
                search.learn(128, true);
                search.learn(largest, largest <= truth);
                let mut rounds = 0;
                loop {
                    let sizes = search.next();
                    if sizes.is_empty() {
                        break;
                    }
                    rounds += 1;
                    sizes.into_iter().for_each(|size| search.learn(size, size <= truth));
                }
                assert_eq!(search.passes, Some(truth), "of {largest}");
                assert!(rounds <= 9, "{rounds} rounds for {truth} of {largest}");
            }
        }
    }

    #[test]
    fn one_that_is_lost_by_chance_does_not_hide_a_larger_one() {
        let mut search = Search::up_to(1500);
        for (size, passed) in [(128, true), (1500, false), (800, false), (1200, true)] {
            search.learn(size, passed);
        }
        assert!(search.next().into_iter().all(|size| (1201..1500).contains(&size)), "{:?}", search.next());
    }
}
