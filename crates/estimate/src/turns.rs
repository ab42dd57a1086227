//! One train after the other, each answered or given up: the bookkeeping of the methods that work so.

use pathcast_base::{Bytes, Nanos};

use super::{Budget, Estimate, Method, Plan, Step, TrainSeen};

/// A method that waits for every train's report before it decides on the next one.
pub(super) trait InTurn {
    /// Its trains.
    fn turns(&mut self) -> &mut Turns;

    /// The train in flight has been answered, or given up.
    fn took(&mut self, answer: Option<&TrainSeen>);

    /// What to do while no train is in flight.
    fn step(&mut self, now: Nanos) -> Step;

    /// What is known so far.
    fn result(&self) -> Estimate;
}

impl<T: InTurn> Method for T {
    fn next(&mut self, now: Nanos) -> Step {
        match self.turns().answer(now) {
            Answer::Wait(until) => return Step::Wait(until),
            Answer::Took(answer) => self.took(answer.as_ref()),
            Answer::Idle => {}
        }
        self.step(now)
    }

    fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        self.turns().observe(now, train);
    }

    fn estimate(&self) -> Estimate {
        self.result()
    }
}

/// What became of the train in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is none.
    Idle,
    /// Its report is still waited for.
    Wait(Nanos),
    /// Its report; none: given up.
    Took(Option<TrainSeen>),
}

/// Trains in turn, within a budget.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    budget: Budget,
    started: Option<Nanos>,
    next_id: u64,
    bytes: u64,
    /// The train in flight: its number, and how long its report is waited for.
    open: Option<(u64, Nanos)>,
    report: Option<TrainSeen>,
    /// From a train's last packet to its report [ns], the latest.
    lag: Option<Nanos>,
    answered: usize,
}

impl Turns {
    pub(super) fn new(budget: Budget) -> Self {
        Turns { budget, started: None, next_id: 0, bytes: 0, open: None, report: None, lag: None, answered: 0 }
    }

    /// IP bytes sent.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Trains that were answered.
    pub(super) fn answered(&self) -> usize {
        self.answered
    }

    /// From a train's last packet to its report, the latest [ns].
    pub(super) fn lag(&self) -> Option<Nanos> {
        self.lag
    }

    /// Whether a train of so many bytes can still be paid for.
    pub(super) fn affords(&self, now: Nanos, bytes: u64) -> bool {
        let started = self.started.unwrap_or(now);
        Bytes(self.bytes + bytes) <= self.budget.bytes && now < started + self.budget.time
    }

    /// Sends `count` packets, `gap` [s] apart, not before `at`; its report is waited for `patience` after its end.
    pub(super) fn send(&mut self, at: Nanos, count: usize, gap: f64, size: u16, patience: Nanos) -> Step {
        self.started.get_or_insert(at);
        let plan = Plan::even(self.next_id, at, count, gap, size);
        self.next_id += 1;
        self.bytes += plan.bytes();
        self.open = Some((plan.id, at + plan.duration() + patience));
        self.report = None;
        Step::Send(plan)
    }

    /// What became of the train in flight, once.
    pub(super) fn answer(&mut self, now: Nanos) -> Answer {
        match self.open {
            None => Answer::Idle,
            Some((_, until)) if self.report.is_none() && now < until => Answer::Wait(until),
            Some(_) => {
                self.open = None;
                Answer::Took(self.report.take())
            }
        }
    }

    /// Takes a report, if it is not too late.
    pub(super) fn observe(&mut self, now: Nanos, train: &TrainSeen) {
        if self.open.is_some_and(|(id, _)| id == train.id) && !train.packets.is_empty() {
            let last = train.packets.last().map_or(now, |packet| packet.sent);
            self.lag = Some(now.saturating_sub(last));
            self.answered += 1;
            self.report = Some(train.clone());
        }
    }

    /// How long to wait for a report: twice the last lag and a little, or long where there was none.
    pub(super) fn patience(&self) -> Nanos {
        self.lag.map_or(Nanos::secs(2), |lag| Nanos(2 * lag.0) + Nanos::millis(200))
    }
}

/// A train's rates at the sender and at the receiver [bit/s]: one packet less than came, over the time between the first and
/// the last one that came; all at once is infinitely fast. None with fewer than two.
pub(super) fn rates(train: &TrainSeen) -> Option<(f64, f64)> {
    let own = |p: &&super::Seen| p.own_delay().is_some();
    let first = train.packets.iter().position(|p| own(&p))?;
    let last = train.packets.iter().rposition(|p| own(&p))?;
    let (from, to) = (train.packets[first], train.packets[last]);
    let bits = |p: &super::Seen| f64::from(p.size) * 8e9;
    let offered: f64 = train.packets[first + 1..=last].iter().map(bits).sum();
    let came: f64 = train.packets[first + 1..=last].iter().filter(|p| p.received.is_some()).map(bits).sum();
    let sent = to.sent.0.checked_sub(from.sent.0)?;
    let received = to.received?.0.checked_sub(from.received?.0).filter(|&t| t > 0)?;
    Some((offered / sent as f64, came / received as f64))
}

#[cfg(test)]
mod tests {
    use super::super::testing::train;
    use super::*;

    #[test]
    fn rates_leave_the_first_packet_out() {
        let seen = train(0, 1000, &[0, 1_000_000, 2_000_000], &[Some(50), Some(2_000_050), Some(4_000_050)]);
        assert_eq!(rates(&seen), Some((8e6, 4e6)));
        let lost = train(0, 1000, &[0, 1_000_000, 2_000_000], &[Some(50), None, Some(4_000_050)]);
        assert_eq!(rates(&lost), Some((8e6, 2e6)));
        assert_eq!(rates(&train(0, 1000, &[0, 1], &[Some(50), None])), None);
    }

    #[test]
    fn a_report_is_waited_for_from_a_trains_end() {
        let mut turns = Turns::new(Budget { bytes: Bytes(10_000), time: Nanos::secs(1) });
        turns.send(Nanos::millis(5), 3, 0.002, 1000, Nanos::millis(10));
        assert_eq!(turns.answer(Nanos::millis(6)), Answer::Wait(Nanos::millis(5 + 2 * 2 + 10)));
        assert_eq!(turns.patience(), Nanos::secs(2));
        turns.observe(Nanos::millis(49), &train(0, 1000, &[5, 7, 9].map(|ms| ms * 1_000_000), &[None; 3]));
        assert_eq!(turns.patience(), Nanos::millis(2 * 40 + 200));
    }

    #[test]
    fn a_late_report_is_not_taken() {
        let budget = Budget { bytes: Bytes(10_000), time: Nanos::secs(1) };
        let mut turns = Turns::new(budget);
        turns.send(Nanos(0), 2, 0.0, 1000, Nanos::millis(10));
        assert_eq!(turns.answer(Nanos::millis(1)), Answer::Wait(Nanos::millis(10)));
        assert_eq!(turns.answer(Nanos::millis(10)), Answer::Took(None));
        turns.observe(Nanos::millis(11), &train(0, 1000, &[0, 1], &[Some(5), Some(6)]));
        assert_eq!((turns.answered(), turns.answer(Nanos::millis(12))), (0, Answer::Idle));
        assert!(turns.affords(Nanos::millis(12), 8000) && !turns.affords(Nanos::millis(12), 8001));
    }
}
