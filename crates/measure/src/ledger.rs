//! What a light measurement has cost each path so far, both ends' bytes, and what it may still cost.
//!
//! What the far end sends is counted when it is asked for where its size is known, and when it comes where it is not; reports
//! that are lost on their way are a part of the margin. What would exceed the bound is not said.

use pathcast_estimate::Effort;

use super::wire::Kind;

/// The answer to a message that has one, such as Opened [IP byte].
const ANSWER: u64 = 140;
/// For each direction: the comparison of the clocks after it, and its outcome [IP byte].
const CLOSING: u64 = 8 * 2 * 120 + 1200;
/// For reports that are lost or asked for again, and the goodbye [IP byte].
const MARGIN: u64 = 5_000;
/// Reports and questions for them, by bytes of probes.
const REPORTS: f64 = 0.12;

/// See the [module](self).
pub(super) struct Ledger {
    light: bool,
    spent: Vec<u64>,
}

impl Ledger {
    pub fn new(effort: Effort) -> Ledger {
        Ledger { light: effort == Effort::Light, spent: Vec::new() }
    }

    fn of(&mut self, path: usize) -> &mut u64 {
        if self.spent.len() <= path {
            self.spent.resize(path + 1, 0);
        }
        &mut self.spent[path]
    }

    /// Whether a message of so many IP bytes may be said; it is counted then, and its answer.
    pub fn say(&mut self, path: u8, bytes: u64, message: &[u8]) -> bool {
        let kind = Kind::in_head(message);
        let answer = match kind {
            Some(Kind::Time) => bytes,
            Some(Kind::Hello | Kind::Open | Kind::Poll | Kind::PathHello | Kind::PathJoin | Kind::Bye) => ANSWER,
            _ => 0,
        };
        let light = self.light;
        let spent = self.of(path.into());
        if light && *spent + bytes + answer > Effort::LIGHT_BYTES {
            return false;
        }
        *spent += bytes + answer;
        true
    }

    /// So many bytes of probes will go over the path, whoever sends them.
    pub fn expect(&mut self, path: u8, bytes: u64) {
        *self.of(path.into()) += bytes;
    }

    /// Something has come that was not counted when it was asked for.
    pub fn heard(&mut self, path: usize, size: u16, message: &[u8]) {
        if let Some(Kind::Report | Kind::Ask | Kind::Outcome | Kind::Queued | Kind::Denied) = Kind::in_head(message) {
            *self.of(path) += u64::from(size);
        }
    }

    /// What the probes of one of the `left` directions may take.
    pub fn share(&mut self, path: u8, left: u64) -> u64 {
        let kept = *self.of(path.into()) + CLOSING * left + MARGIN;
        (Effort::LIGHT_BYTES.saturating_sub(kept) as f64 / left.max(1) as f64 / (1.0 + REPORTS)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Kind) -> Vec<u8> {
        vec![b'P', b'M', super::super::wire::VERSION, kind as u8]
    }

    #[test]
    fn nothing_is_said_beyond_the_bound_and_each_path_has_its_own() {
        let mut ledger = Ledger::new(Effort::Light);
        let mut said = 0;
        while ledger.say(1, 500, &message(Kind::Time)) {
            said += 1000;
        }
        assert!(said <= Effort::LIGHT_BYTES && said + 1000 > Effort::LIGHT_BYTES, "{said}");
        assert!(ledger.say(0, 500, &message(Kind::Time)));
        assert!((0..1000).all(|_| Ledger::new(Effort::Usual).say(0, 60_000, &message(Kind::Time))));
    }

    #[test]
    fn directions_share_what_is_left() {
        let mut ledger = Ledger::new(Effort::Light);
        let first = ledger.share(0, 2);
        ledger.expect(0, first);
        let second = ledger.share(0, 1);
        // the first one's reports have not come: what was kept for them and its closing is there for the second
        assert!(second >= first && first > 45_000, "{first} {second}");
        ledger.expect(0, second);
        ledger.heard(0, 1000, &message(Kind::Report));
        assert!(ledger.share(0, 1) < 2 * 5000);
    }
}
