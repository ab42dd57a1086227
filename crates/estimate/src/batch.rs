//! Interrupt coalescing: which packets a host handed over together.

/// Packets of one path that a host handed over in one wake-up: interrupt coalescing makes several of them look as if they
/// had come at once, and only the last one's stamp is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its place, from 0.
    pub index: u32,
    /// How many there are, at least 1.
    pub of: u32,
}

impl Batch {
    /// A packet that came alone.
    pub const SINGLE: Batch = Batch { index: 0, of: 1 };

    /// Whether it is the last of its wake-up.
    pub fn is_last(self) -> bool {
        self.index + 1 == self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_batch() {
        assert!(Batch::SINGLE.is_last());
        assert!(!Batch { index: 0, of: 2 }.is_last());
    }
}
