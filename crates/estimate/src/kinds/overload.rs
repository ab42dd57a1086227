//! What a thorough measurement took for itself: while it overloads one queue for all, others have what its own packets leave, and
//! what was available on the whole is more than before it.

use super::probing::Phase;
use crate::{TrainSeen, Value};

/// So many packets say how much passed.
const FEW: usize = 40;
/// What passed is off by so much of the capacity, and what others do behind it by so much of what they gave up.
const OFF: f64 = 0.05;
const BACK: f64 = 0.5;

/// What of the whole measurement's time was overload, what behind it [shares]; what passed meanwhile [bit/s].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    share: f64,
    behind: f64,
    passed: f64,
}

/// Bits and packets that came, first and last departure, and those arrivals [s].
#[derive(Clone, Copy)]
struct Part {
    bits: f64,
    came: usize,
    span: (f64, f64),
    arrived: (f64, f64),
}

/// From nothing to nothing.
const NEVER: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

fn within((first, last): (f64, f64), at: f64) -> (f64, f64) {
    (first.min(at), last.max(at))
}

impl Part {
    const NONE: Part = Part { bits: 0.0, came: 0, span: NEVER, arrived: NEVER };

    fn add(&mut self, train: &TrainSeen) {
        for p in &train.packets {
            self.span = within(self.span, p.sent.as_secs_f64());
            if let Some(at) = p.received {
                self.arrived = within(self.arrived, at.as_secs_f64());
                self.bits += f64::from(p.size) * 8.0;
                self.came += 1;
            }
        }
    }

    fn seconds(&self) -> f64 {
        (self.span.1 - self.span.0).max(0.0)
    }

    /// How long they came, which is longer where a queue grows meanwhile [s].
    fn arriving(&self) -> f64 {
        (self.arrived.1 - self.arrived.0).max(0.0)
    }
}

impl Overload {
    /// Of all trains, each with its phase, none before the thorough part. `since`: from when on what overloads takes
    /// from others [s], which it never does (infinity) where no queue overflows; if it does from the beginning on
    /// (negative infinity) the hold does, too. `lost`: by the wire [share].
    pub fn of<'a>(
        trains: impl Iterator<Item = (&'a TrainSeen, Option<Phase>)>,
        since: f64,
        gives_way: bool,
        lost: f64,
    ) -> Option<Overload> {
        let (mut all, mut over, mut last) = (Part::NONE, [Part::NONE; 3], f64::NEG_INFINITY);
        for (train, phase) in trains {
            let Some(left) = train.packets.first().map(|p| p.sent.as_secs_f64()) else { continue };
            all.add(train);
            let kind = match phase {
                Some(Phase::Push) if left >= since => 0,
                Some(Phase::Blast) if left >= since => 1,
                Some(Phase::Hold) if since == f64::NEG_INFINITY => 2,
                _ => continue,
            };
            over[kind].add(train);
            last = last.max(over[kind].span.1);
        }
        let time: f64 = over.iter().map(Part::seconds).sum();
        let arriving: f64 = over.iter().map(Part::arriving).sum();
        let came: usize = over.iter().map(|part| part.came).sum();
        let whole = all.seconds();
        (came >= FEW && arriving > 0.0 && whole > 0.0).then(|| Overload {
            share: (arriving / whole).min(1.0),
            // what still stands in the queue then is no time of theirs
            behind: if gives_way { (all.span.1 - last - (arriving - time)).max(0.0) / whole } else { 0.0 },
            passed: over.iter().map(|part| part.bits).sum::<f64>() / arriving / (1.0 - lost.clamp(0.0, 0.5)),
        })
    }

    /// What was available over the whole of it, where that was `before` while nothing was overloaded. `c`: the capacity [bit/s].
    pub fn over_all(&self, before: Value, c: f64) -> Value {
        let Some(a) = before.value else { return before };
        let passed = self.passed.min(c);
        let (off, given) = (OFF * c, (passed - a).max(0.0));
        let quiet = 1.0 - self.share - self.behind;
        // who gave way comes back, at once or never as far as this goes
        let all = |a: f64, passed: f64, behind: f64| a * quiet + passed * self.share + behind * self.behind;
        Value {
            value: Some(all(a, passed, a + BACK * given)),
            low: all(before.low, passed - off, before.low).max(0.0),
            high: all(before.high, passed + off, before.high.max(passed) + BACK * given).min(before.high.max(c)),
            ..before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LARGE;
    use crate::testing::train;

    /// From 0 to 10 s, of which from 4 to 5 s a push is sent, 20 Mbit/s; 6 Mbit/s pass.
    fn trains() -> Vec<(TrainSeen, Option<Phase>)> {
        let ns = |s: f64| (s * 1e9) as u64;
        let gap = f64::from(LARGE) * 8.0 / 20e6;
        let sent: Vec<u64> = (0..=(1.0 / gap) as u32).map(|k| ns(4.0 + f64::from(k) * gap)).collect();
        let came: Vec<_> = sent.iter().enumerate().map(|(k, at)| (k % 10 < 3).then_some(at + ns(0.02))).collect();
        let lone = |id, at: f64| train(id, LARGE, &[ns(at)], &[Some(ns(at + 0.01))]);
        vec![
            (lone(0, 0.0), None),
            (train(1, LARGE, &sent, &came), Some(Phase::Push)),
            (lone(2, 10.0), Some(Phase::Count)),
        ]
    }

    fn over(since: f64, gives_way: bool, lost: f64) -> Option<Value> {
        let trains = trains();
        let overload = Overload::of(trains.iter().map(|(train, phase)| (train, *phase)), since, gives_way, lost);
        overload.map(|overload| overload.over_all(Value::of(2e6, 1.5e6, 2.5e6), 10e6))
    }

    #[test]
    fn what_the_push_took_counts_for_its_time() {
        let steady = over(4.0, false, 0.0).unwrap();
        assert!((steady.value.unwrap() - (0.9 * 2e6 + 0.1 * 6e6)).abs() < 0.02e6, "{steady:?}");
        assert!((steady.low - (0.9 * 1.5e6 + 0.1 * 5.5e6)).abs() < 0.02e6, "{steady:?}");
        let wire = over(4.0, false, 0.25).unwrap();
        assert!((wire.value.unwrap() - (0.9 * 2e6 + 0.1 * 8e6)).abs() < 0.02e6, "{wire:?}");
    }

    #[test]
    fn who_gave_way_may_come_back_or_not() {
        let elastic = over(f64::NEG_INFINITY, true, 0.0).unwrap();
        assert!((elastic.value.unwrap() - (0.4 * 2e6 + 0.1 * 6e6 + 0.5 * 4e6)).abs() < 0.03e6, "{elastic:?}");
        assert!(elastic.low < 0.9 * 1.5e6 + 0.6e6 && elastic.high > 0.4 * 2.5e6 + 0.6 * 6e6, "{elastic:?}");
    }

    /// 20 Mbit/s for a second, of which 10 Mbit/s pass, at the end a second later.
    #[test]
    fn what_a_queue_still_holds_has_not_passed() {
        let ns = |s: f64| (s * 1e9) as u64;
        let gap = f64::from(LARGE) * 8.0 / 20e6;
        let sent: Vec<f64> = (0..=(1.0 / gap) as u32).map(|k| 4.0 + f64::from(k) * gap).collect();
        let came: Vec<_> = sent.iter().map(|at| Some(ns(at + (at - 4.0) + 0.02))).collect();
        let push = train(1, LARGE, &sent.iter().map(|&at| ns(at)).collect::<Vec<u64>>(), &came);
        let lone = |id, at: f64| train(id, LARGE, &[ns(at)], &[Some(ns(at + 0.01))]);
        let (first, last) = (lone(0, 0.0), lone(2, 10.0));
        let of = |phase, since| {
            let trains = [(&first, None), (&push, Some(phase)), (&last, Some(Phase::Count))];
            Overload::of(trains.into_iter(), since, true, 0.0)
        };
        let passed = of(Phase::Push, f64::NEG_INFINITY).unwrap().passed;
        assert!((passed / 10e6 - 1.0).abs() < 0.01, "{passed}");
        assert_eq!(of(Phase::Blast, f64::INFINITY), None, "nothing overflowed");
        assert!(of(Phase::Blast, 4.0).is_some());
    }

    #[test]
    fn nothing_is_said_of_what_never_overflowed() {
        assert_eq!(over(f64::INFINITY, false, 0.0), None);
    }
}
