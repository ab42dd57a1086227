//! Losses of the wire, counted where the queue has room.

use super::counting::share;
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::Value;
use crate::WhyNot;

/// Waits up to this share of the longest are far from a full queue.
const ROOM: f64 = 0.6;
/// Where it polices only those behind which no queue was for so long [s], and where it is managed for so long: the
/// probability with which PIE and RED drop outlives the queue.
const CALM: f64 = 0.25;
const CALMER: f64 = 0.8;
/// Where no queue ever goes, the shortest waits, this share of them, show the wire's share best.
const SHORTEST: f64 = 0.3;
/// Fewer packets say little; where no queue was, where it is managed.
const ENOUGH: f64 = 60.0;
const CALM_PACKETS: f64 = 50.0;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Where {
    /// Probes that waited less than this share of the longest wait, in all phases.
    Room,
    /// Only where less than what is free was sent, and no queue was for a while.
    Empty,
    /// The same without what the measurement before sent.
    After,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Packets.
    pub packets: f64,
    /// Of these.
    pub lost: f64,
    /// Rows of losses without a packet between them that came.
    pub rows: f64,
}

impl Counted {
    /// Of the points that count; rows also by those that do not.
    pub fn of<'a>(points: impl Iterator<Item = &'a Point>, counts: impl Fn(&Point) -> bool) -> Counted {
        let (mut found, mut before) = (Counted::default(), false);
        for p in points {
            if counts(p) {
                found.packets += 1.0;
                found.lost += f64::from(u8::from(p.lost));
                found.rows += f64::from(u8::from(p.lost && !before));
            }
            before = p.lost;
        }
        found
    }

    /// How many times as much the count varies as that of losses that know nothing of each other: of a two-state loss (Gilbert,
    /// Bell System Technical Journal 1960) with so many in a row on average (1 + rho) / (1 - rho), with rho = 1 - p - r.
    pub fn inflation(&self) -> f64 {
        if self.rows < 1.0 || self.lost >= self.packets {
            return 1.0;
        }
        let (p, r) = (self.rows / (self.packets - self.lost), self.rows / self.lost);
        ((2.0 - p - r) / (p + r)).max(1.0)
    }

    /// How many are lost in a row, on average.
    pub fn row(&self) -> Option<f64> {
        (self.rows > 0.0).then(|| self.lost / self.rows)
    }

    /// The share with its interval.
    fn share(&self) -> Value {
        if self.packets < 1.0 {
            return Value::none(WhyNot::NotSeen);
        }
        let as_many = self.inflation();
        let (low, high) = share(self.lost / as_many, self.packets / as_many);
        Value::of(self.lost / self.packets, low, high)
    }
}

/// Packets and losses that are the wire's. `longest`: the queue's wait where it is full [s].
pub fn count(trail: &Trail, longest: f64, place: Where) -> Counted {
    Counted::of(trail.points.iter(), |p| {
        let share = p.wait / longest.max(1e-9);
        match place {
            Where::Room => share < ROOM,
            Where::Empty => p.calm >= CALMER && matches!(p.phase, None | Some(Phase::Listen | Phase::Count)),
            Where::After => p.calm >= CALM && matches!(p.phase, Some(Phase::Listen | Phase::Count)),
        }
    })
}

/// What is taken for the wire's before anything else is known: where no queue was, or at the shortest waits.
pub fn baseline(trail: &Trail) -> Counted {
    let calm = count(trail, 0.0, Where::After);
    if calm.packets >= ENOUGH {
        return calm;
    }
    let of = |p: &Point| matches!(p.phase, None | Some(Phase::Listen | Phase::Count)) && p.wait.is_finite();
    let waits: Vec<f64> = trail.points.iter().filter(|p| of(p)).map(|p| p.wait).collect();
    let most = crate::stat::quantile(&waits, SHORTEST).unwrap_or(0.0);
    Counted::of(trail.points.iter(), |p| of(p) && p.wait <= most)
}

/// A property of this probability and more, and less, is perhaps there.
const PERHAPS: f64 = 0.1;

/// Where losses are the wire's.
pub fn place(managed: f64, policed: f64) -> Where {
    match (managed > 0.5, policed > 0.5) {
        (_, true) => Where::After,
        (true, false) => Where::Empty,
        _ => Where::Room,
    }
}

/// What the wire loses, as far as what the queue and a policer lose can be told from it. `longest`: the queue's wait where it is
/// full [s]; the others: how probable it is that it drops before, and that there is a policer.
pub fn find(trail: &Trail, longest: f64, managed: f64, policed: f64) -> Value {
    let (room, empty) = (Where::Room, Where::Empty);
    let of = |place| count(trail, longest, place);
    let place = place(managed, policed);
    let counted = of(place);
    let found = counted.share();
    // a policer's tokens may be used up by others, and where the queue is never empty its losses are everywhere: no more than all
    if (policed > 0.5 && counted.lost > 0.0) || (place == empty && counted.packets < CALM_PACKETS) {
        let all = if counted.packets < CALM_PACKETS { of(room).share() } else { found };
        return Value { value: None, low: 0.0, high: all.high.min(1.0), why: Some(WhyNot::Ambiguous) };
    }
    if (PERHAPS..1.0 - PERHAPS).contains(&managed) && policed < 0.5 {
        // what the queue may have dropped shows where both contradict each other
        let other = of(if place == empty { room } else { empty }).share();
        if other.value.is_none() || found.value.is_some_and(|value| other.low <= value && value <= other.high) {
            return found;
        }
        return Value { low: found.low.min(other.low), high: found.high.max(other.high.min(1.0)), ..found };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(lost: impl Fn(usize) -> bool) -> Trail {
        let point = |k| Point { phase: Some(Phase::Count), calm: 1.0, lost: lost(k), ..Point::default() };
        Trail { points: (0..1000).map(point).collect(), ..Trail::default() }
    }

    #[test]
    fn losses_in_rows_say_less() {
        let alone = count(&trail(|k| k % 50 == 0), 1.0, Where::After);
        let rows = count(&trail(|k| k % 250 < 5), 1.0, Where::After);
        assert_eq!((alone.lost, alone.rows, alone.inflation()), (20.0, 20.0, 1.0));
        assert_eq!((rows.lost, rows.rows), (20.0, 4.0));
        // p = 4 / 980, r = 4 / 20
        let (p, r) = (4.0 / 980.0, 0.2);
        assert!((rows.inflation() - (2.0 - p - r) / (p + r)).abs() < 1e-12);
        let width = |counted: Counted| counted.share().high - counted.share().low;
        assert!(width(rows) > 2.0 * width(alone));
        assert_eq!(rows.share().value, Some(0.02));
    }

    #[test]
    fn behind_a_policer_they_are_a_bound() {
        let lossy = trail(|k| k % 50 == 0);
        let found = find(&lossy, 1.0, 0.0, 0.9);
        assert_eq!((found.value, found.low, found.why), (None, 0.0, Some(WhyNot::Ambiguous)));
        assert!((0.02..0.04).contains(&found.high));
        assert_eq!(find(&lossy, 1.0, 0.0, 0.0).value, Some(0.02));
        assert_eq!(find(&trail(|_| false), 1.0, 0.0, 0.9).value, Some(0.0));
    }
}
