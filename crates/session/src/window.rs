//! Which transfer numbers of a session have been used: a number is good once.

/// How far behind the highest number a new one may be.
const WIDTH: u64 = 64;

/// A sliding window over numbers that grow, but may arrive out of order (as in RFC 4303, section 3.4.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayWindow {
    highest: u64,
    /// Bit `i` is set when `highest - i` was seen.
    seen: u64,
}

impl ReplayWindow {
    /// True the first time that `number` comes; false for a repetition, for 0, and for what is too old to tell.
    pub fn accept(&mut self, number: u64) -> bool {
        if number > self.highest {
            let step = number - self.highest;
            self.seen = if step < WIDTH { self.seen << step | 1 } else { 1 };
            self.highest = number;
            return true;
        }
        let age = self.highest - number;
        if number == 0 || age >= WIDTH || self.seen >> age & 1 == 1 {
            return false;
        }
        self.seen |= 1 << age;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_may_change_but_nothing_comes_twice() {
        let mut w = ReplayWindow::default();
        assert!(!w.accept(0));
        assert!(w.accept(3) && w.accept(1) && w.accept(2));
        assert!(!w.accept(1) && !w.accept(2) && !w.accept(3));
        assert!(w.accept(100) && w.accept(37) && !w.accept(36), "36 is 64 behind");
        assert!(w.accept(u64::MAX) && !w.accept(u64::MAX));
    }

    proptest! {
        #[test]
        fn no_number_is_accepted_twice(numbers in proptest::collection::vec(0u64..200, 0..400)) {
            let mut window = ReplayWindow::default();
            let mut seen = std::collections::HashSet::new();
            for n in numbers {
                if window.accept(n) {
                    prop_assert!(seen.insert(n));
                }
            }
        }
    }
}
