//! PathTester before its paper improved it: every gap from the smallest to the largest, one train each, and the largest send
//! rate at which what was sent and what was received agree (section 1 of the paper, after Yoshida's thesis).
//!
//! Symbols: iunit = exponent of the gap, 2^iunit us. Phase 2 scans all gaps, phase 3 scans them again. What the paper leaves
//! open is chosen thus: a fixed wait of 1 s for a train in phase 2 and of 2 s in phase 3, which gives table 1's times; rates
//! agree within 5 %; seven packets. Packets that come after the wait are lost, whatever the path: above 2^15 us no gap is
//! tried, so at and below 500 kbit/s there is no answer.

use pathcast_base::Nanos;

use super::turns::{InTurn, Turns, rates};
use super::{Budget, Estimate, LARGE, Step, TrainSeen, WhyNot};

/// Packets of a train.
const TRAIN: usize = 7;
/// Fixed waits, by phase.
const WAITS: [Nanos; 2] = [Nanos::secs(1), Nanos::secs(2)];
/// S and R agree within this share.
const AGREE: f64 = 0.05;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct OldPathTester {
    turns: Turns,
    /// The largest exponent: 15 in the old tool; table 1 tries more.
    last: u32,
    sent: u32,
    /// The fixed wait's end: it is waited for even when all has come.
    until: Nanos,
    /// Each phase's largest send rate that was received.
    agreed: [Option<f64>; 2],
}

impl OldPathTester {
    /// iunit from 0 to `last` (at most 30).
    pub fn new(budget: Budget, last: u32) -> Self {
        OldPathTester { turns: Turns::new(budget), last: last.min(30), sent: 0, until: Nanos::ZERO, agreed: [None; 2] }
    }

    fn phase(&self, train: u32) -> usize {
        (train > self.last).into()
    }
}

impl InTurn for OldPathTester {
    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    fn took(&mut self, answer: Option<&TrainSeen>) {
        let best = &mut self.agreed[usize::from(self.sent - 1 > self.last)];
        if let Some((sent, received)) = answer.and_then(rates)
            && received >= (1.0 - AGREE) * sent
        {
            *best = Some(best.map_or(sent, |best| best.max(sent)));
        }
    }

    fn step(&mut self, now: Nanos) -> Step {
        if now < self.until {
            return Step::Wait(self.until);
        }
        if self.sent > 2 * self.last + 1 || !self.turns.affords(now, TRAIN as u64 * u64::from(LARGE)) {
            return Step::Done;
        }
        let wait = WAITS[self.phase(self.sent)];
        let gap = f64::from(1u32 << (self.sent % (self.last + 1))) * 1e-6;
        self.sent += 1;
        self.until = now + Nanos::from_secs_f64(gap * (TRAIN - 1) as f64) + wait;
        self.turns.send(now, TRAIN, gap, LARGE, wait)
    }

    /// Phase 3's value, else phase 2's. The tool gave no interval: the next gap on either side is one.
    fn result(&self) -> Estimate {
        match self.agreed[1].or(self.agreed[0]) {
            Some(value) => Estimate::of(value, value / 2.0, value * 2.0, self.turns.bytes()),
            None if self.turns.answered() == 0 => Estimate::none(WhyNot::NoAnswer, self.turns.bytes()),
            None => Estimate::none(WhyNot::Inconsistent, self.turns.bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fluid;
    use super::*;
    use pathcast_base::Bytes;

    #[test]
    fn the_largest_power_of_two_that_passes() {
        let budget = Budget { bytes: Bytes(10_000_000), time: Nanos::secs(200) };
        let (estimate, end) = Fluid::new(5e6, 0.0, 0.01).run(&mut OldPathTester::new(budget, 15));
        // 1400 bytes every 4096 us are 2.73 Mbit/s, every 2048 us more than the link has
        assert!((estimate.value_bps.unwrap() - 11_200.0 / 4096e-6).abs() < 1e3, "{estimate:?}");
        assert_eq!(estimate.bytes, Bytes(2 * 16 * 7 * 1400));
        // 16 s and 32 s of waits, as table 1 has 16 s and 36 s, whatever the path
        assert!((48.0..51.0).contains(&(end - Nanos::secs(1)).as_secs_f64()), "{end:?}");
    }

    #[test]
    fn no_train_is_begun_that_cannot_be_paid_for() {
        for (bytes, sent) in [(9_799, 0), (9_800, 9_800), (19_599, 9_800), (19_600, 19_600)] {
            let budget = Budget { bytes: Bytes(bytes), time: Nanos::secs(200) };
            let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut OldPathTester::new(budget, 15));
            assert_eq!(estimate.bytes, Bytes(sent), "of {bytes}");
        }
    }

    /// 1400 bytes every 2^15 us are 342 kbit/s, the slowest that is tried.
    #[test]
    fn the_largest_gap_is_tried_too() {
        let budget = Budget { bytes: Bytes(10_000_000), time: Nanos::secs(200) };
        let (estimate, _) = Fluid::new(400e3, 0.0, 0.01).run(&mut OldPathTester::new(budget, 15));
        assert!((estimate.value_bps.unwrap() - 11_200.0 / 32_768e-6).abs() < 1e3, "{estimate:?}");
    }

    #[test]
    fn slow_links_have_no_answer() {
        let budget = Budget { bytes: Bytes(10_000_000), time: Nanos::secs(200) };
        let (estimate, _) = Fluid::new(300e3, 0.0, 0.01).run(&mut OldPathTester::new(budget, 15));
        assert_eq!((estimate.value_bps, estimate.why_not), (None, Some(WhyNot::Inconsistent)));
    }
}
