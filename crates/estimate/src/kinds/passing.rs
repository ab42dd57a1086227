//! Losses of the wire as a measurement of the rates meets them in passing. Nobody has filled the queue to see how long it gets, nor
//! looked whether it is managed: a loss is the wire's where probes before and after it waited much less than others did.

use super::counting::share;
use super::loss::Counted;
use super::quiet;
use super::trail::{Point, Trail};
use crate::stat::quantile;
use crate::{TrainSeen, Value, WhyNot};

/// Waits up to this share of the longest are far from a full queue; the longest but for a few, which hosts were late with.
const ROOM: f64 = 0.5;
const LONGEST: f64 = 0.99;
/// A full queue's losses that look as if it had room.
const LEAK: f64 = 0.05;
/// Losses are no more for so many standard deviations.
const ALIKE: f64 = 1.65;
/// No managed queue drops where waits are shorter [s].
const SHORT: f64 = 4e-3;
/// Fewer packets say nothing.
const ENOUGH: f64 = 20.0;
/// No wire loses more: that drops somebody who polices.
const MOST: f64 = 0.1;

/// The share of the packets of these trains that the wire lost, with its interval, and how many in a row. `c`: the capacity
/// [bit/s].
pub fn find<'a>(trains: impl Iterator<Item = &'a TrainSeen> + Clone, c: f64) -> (Value, Option<f64>) {
    of(&Trail::of(trains.map(|train| (train, None, false, 0.0)), c, quiet(c)))
}

fn of(trail: &Trail) -> (Value, Option<f64>) {
    let waits: Vec<f64> = trail.points.iter().filter(|p| !p.lost && p.wait.is_finite()).map(|p| p.wait).collect();
    let longest = quantile(&waits, LONGEST).unwrap_or(0.0);
    let count = |counts: &dyn Fn(&Point) -> bool| Counted::of(trail.points.iter(), counts);
    let room = count(&|p| p.wait <= ROOM * longest);
    if room.packets < ENOUGH {
        return (Value::none(WhyNot::TooFew), None);
    }
    let full = count(&|p| p.wait > ROOM * longest);
    let alike = room.lost / room.packets * full.packets;
    // where no more is lost by long waits than by short ones no queue was full, and all say the same
    let (room, leaks) = match full.lost <= alike + ALIKE * alike.sqrt() {
        true => (count(&|p| p.wait.is_finite()), 0.0),
        false => (room, LEAK * full.lost),
    };
    let found = counted(&room, leaks);
    let row = room.row();
    if room.lost > MOST * room.packets {
        return (Value { value: None, low: 0.0, why: Some(WhyNot::Ambiguous), ..found }, row);
    }
    let short = count(&|p| p.wait < SHORT);
    let calm = counted(&short, 0.0);
    if short.packets < ENOUGH || room.lost == 0.0 {
        // a managed queue may have dropped all of them
        let low = if short.packets < ENOUGH { 0.0 } else { found.low };
        return (Value { low, ..found }, row);
    }
    // waits that are longer lose more: both may be so
    let more = found.value.is_some_and(|value| value > calm.high);
    (if more { Value { value: calm.value, low: calm.low, ..found } } else { found }, row)
}

/// The share of what was counted, `leaks` of which may be none [packets].
fn counted(of: &Counted, leaks: f64) -> Value {
    let (many, lost) = (of.inflation(), (of.lost - leaks).max(0.0));
    let low = share((lost - leaks).max(0.0) / many, of.packets / many).0;
    let high = share(of.lost / many, of.packets / many).1;
    Value::of(lost / of.packets.max(1.0), low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point in a millisecond, every tenth of which found a longer wait.
    fn trail(wait: impl Fn(usize) -> f64, lost: impl Fn(usize) -> bool) -> Trail {
        let point = |k| Point { lost: lost(k), wait: wait(k), ..Point::default() };
        Trail { points: (0..2000).map(point).collect(), ..Trail::default() }
    }

    fn rises(k: usize) -> f64 {
        (k % 100) as f64 * 1e-4
    }

    #[test]
    fn those_of_a_full_queue_are_not_the_wires() {
        let (full, row) = of(&trail(rises, |k| k % 100 >= 97));
        assert_eq!(row, None);
        assert_eq!((full.value, full.low, full.why), (Some(0.0), 0.0, None));
        assert!(full.high < 4e-3, "{full:?}");
        let (wire, row) = of(&trail(rises, |k| k % 50 == 20));
        assert_eq!(row, Some(1.0));
        assert_eq!(of(&trail(rises, |k| (20..24).contains(&(k % 100)))).1, Some(4.0));
        assert!(wire.low > 0.014 && wire.value == Some(0.02) && wire.high < 0.028, "{wire:?}");
    }

    #[test]
    fn where_the_queue_waits_long_it_may_have_dropped_them() {
        let (managed, _) = of(&trail(rises, |k| k % 100 >= 42 && k % 3 == 0));
        assert!(managed.value == Some(0.0) && managed.low == 0.0 && managed.high > 0.02, "{managed:?}");
        let (slow, _) = of(&trail(|k| 0.01 + 10.0 * rises(k), |k| k % 50 == 20));
        assert!(slow.value > Some(0.01) && slow.low == 0.0, "{slow:?}");
    }

    #[test]
    fn who_drops_much_polices() {
        let (policed, _) = of(&trail(|_| 0.0, |k| k % 4 == 0));
        assert_eq!((policed.value, policed.low, policed.why), (None, 0.0, Some(WhyNot::Ambiguous)));
        assert!(policed.high > 0.2);
    }

    #[test]
    fn few_packets_say_nothing() {
        let few = Trail { points: vec![Point::default(); 19], ..Trail::default() };
        assert_eq!(of(&few), (Value::none(WhyNot::TooFew), None));
    }
}
