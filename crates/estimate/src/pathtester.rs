//! PathTester as its paper improved it (Kataoka, Mori, Goto, "Improvement and evaluation of a tool estimating one-way delay,
//! available bandwidth and bottleneck capacity"): the wait from fifty round trips, then about ten trains, each at the rate
//! that the last one says.
//!
//! Symbols: waittime = the gap between packets, S = MbpsS, R = MbpsR = send and receive rate, Timeout = ave + 3 sta.
//! What the paper leaves open (its figure 3 is missing from our copy) is chosen thus:
//! - rates leave one packet out (N - 1 gaps); seven packets of 1400 octets are the "10k octets";
//! - R < 0.95 S: the next train goes at R; else half-way back to the last gap that was too short (half the gap, if none was);
//! - "extremely off" samples are those outside three standard deviations, in one pass; the standard deviation is n - 1;
//! - the interval (1) mean +- 3 s is theirs, not a 90 % one.
//!
//! It is here to be compared: it averages the way down to A with A itself, and reads too high where C - A is large.

use pathcast_base::Nanos;

use super::stat::{deviation, mean};
use super::turns::{InTurn, Turns, rates};
use super::{Budget, Estimate, LARGE, Step, TrainSeen, WhyNot};

/// Packets of a train.
pub const TRAIN: usize = 7;
/// Trains.
pub const TRAINS: usize = 10;
/// Round trips of the first stage.
const ROUND_TRIPS: usize = 50;
/// The shortest gap [s].
const SHORTEST: f64 = 10e-6;
/// S and R agree within this share.
const AGREE: f64 = 0.05;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct PathTester {
    turns: Turns,
    round_trips: Vec<f64>,
    /// Round trips asked for.
    asked: usize,
    waittime: f64,
    /// The last gap at which R was below S.
    congested: Option<f64>,
    received: Vec<f64>,
    trains: usize,
}

impl PathTester {
    /// Within the budget: both stages take 168 kB.
    pub fn new(budget: Budget) -> Self {
        PathTester {
            turns: Turns::new(budget),
            round_trips: Vec::new(),
            asked: 0,
            waittime: SHORTEST,
            congested: None,
            received: Vec::new(),
            trains: 0,
        }
    }

    /// Equation (2) for probes of 1400 octets; one second before there is a round trip.
    pub fn timeout(&self) -> Nanos {
        match (mean(&self.round_trips), deviation(&self.round_trips)) {
            (Some(average), Some(deviation)) => Nanos::from_secs_f64(average + 3.0 * deviation),
            _ => Nanos::secs(1),
        }
    }

    /// The gap of the next train after one with these rates.
    fn learn(&mut self, (sent, received): (f64, f64)) {
        self.received.push(received);
        if received < (1.0 - AGREE) * sent {
            self.congested = Some(self.waittime);
            self.waittime = f64::from(LARGE) * 8.0 / received;
        } else {
            self.waittime = self.congested.map_or(self.waittime / 2.0, |gap| (self.waittime + gap) / 2.0);
        }
        self.waittime = self.waittime.max(SHORTEST);
    }
}

/// Equation (1): mean and standard deviation of what lies within three standard deviations.
fn normal(samples: &[f64]) -> Option<(f64, f64)> {
    let (m, s) = (mean(samples)?, deviation(samples).unwrap_or(0.0));
    let kept: Vec<f64> = samples.iter().copied().filter(|x| (x - m).abs() <= 3.0 * s).collect();
    Some((mean(&kept)?, deviation(&kept).unwrap_or(0.0)))
}

impl InTurn for PathTester {
    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    fn took(&mut self, answer: Option<&TrainSeen>) {
        match answer {
            Some(train) if train.packets.len() == 1 => {
                self.round_trips.extend(self.turns.lag().map(Nanos::as_secs_f64));
            }
            Some(train) => {
                if let Some(rates) = rates(train) {
                    self.learn(rates);
                }
            }
            None => {}
        }
    }

    fn step(&mut self, now: Nanos) -> Step {
        let first = self.asked < ROUND_TRIPS;
        let count = if first { 1 } else { TRAIN };
        if self.trains == TRAINS || !self.turns.affords(now, count as u64 * u64::from(LARGE)) {
            return Step::Done;
        }
        if first {
            self.asked += 1;
            return self.turns.send(now, 1, 0.0, LARGE, Nanos::secs(1));
        }
        self.trains += 1;
        // the wait is for the first packet; the others follow within their stretch, which nobody knows: as long again
        let stretch = Nanos::from_secs_f64(self.waittime * TRAIN as f64);
        let patience = self.timeout() * TRAIN as u64 + stretch;
        self.turns.send(now, TRAIN, self.waittime, LARGE, patience)
    }

    fn result(&self) -> Estimate {
        let Some((value, s)) = normal(&self.received) else {
            let why = if self.turns.answered() == 0 { WhyNot::NoAnswer } else { WhyNot::TooFew };
            return Estimate::none(why, self.turns.bytes());
        };
        Estimate::of(value, (value - 3.0 * s).max(0.0), value + 3.0 * s, self.turns.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fluid;
    use super::*;
    use pathcast_base::Bytes;

    #[test]
    fn the_gap_jumps_to_the_receive_rate_and_back_half_way() {
        let mut tester = PathTester::new(Budget { bytes: Bytes(1), time: Nanos(1) });
        tester.learn((100e6, 4e6));
        assert_eq!((tester.waittime, tester.congested), (11_200.0 / 4e6, Some(SHORTEST)));
        tester.learn((4e6, 3.9e6));
        assert_eq!(tester.waittime, (11_200.0 / 4e6 + SHORTEST) / 2.0);
        tester.congested = None;
        tester.waittime = SHORTEST;
        tester.learn((4e6, 4e6));
        assert_eq!(tester.waittime, SHORTEST);
    }

    /// Equation (2): mean and three standard deviations of the round trips, a second before there are two.
    #[test]
    fn the_timeout_is_equation_two() {
        let mut tester = PathTester::new(Budget { bytes: Bytes(1), time: Nanos(1) });
        assert_eq!(tester.timeout(), Nanos::secs(1));
        tester.round_trips = vec![0.09, 0.11];
        let exact = 0.1 + 3.0 * 2f64.sqrt() * 0.01;
        assert!((tester.timeout().as_secs_f64() - exact).abs() < 1e-8);
    }

    #[test]
    fn no_train_is_begun_that_cannot_be_paid_for() {
        let all = 50 * 1400;
        for (bytes, sent) in [(1399, 0), (1400, 1400), (all + 9_799, all), (all + 9_800, all + 9_800)] {
            let budget = Budget { bytes: Bytes(bytes), time: Nanos::secs(200) };
            let (estimate, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut PathTester::new(budget));
            assert_eq!(estimate.bytes, Bytes(sent), "of {bytes}");
        }
    }

    #[test]
    fn equation_one_drops_what_is_extremely_off() {
        let mut samples = vec![5.0; 20];
        samples.push(100.0);
        assert_eq!(normal(&samples), Some((5.0, 0.0)));
    }

    /// The paper's defect: in a fluid R = S C / (S + X), so the mean holds the way down.
    #[test]
    fn it_reads_the_idle_link_and_too_high_beside_cross_traffic() {
        let budget = Budget { bytes: Bytes(1_000_000), time: Nanos::secs(20) };
        let (idle, _) = Fluid::new(5e6, 0.0, 0.01).run(&mut PathTester::new(budget));
        assert!((idle.value_bps.unwrap() / 5e6 - 1.0).abs() < 0.02, "{idle:?}");
        assert_eq!(idle.bytes, Bytes(((ROUND_TRIPS + TRAINS * TRAIN) * 1400) as u64));
        let (busy, _) = Fluid::new(5e6, 3e6, 0.01).run(&mut PathTester::new(budget));
        assert!(busy.value_bps.unwrap() > 2.2e6, "{busy:?}");
    }
}
