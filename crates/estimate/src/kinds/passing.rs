//! Losses of the wire, and how deep a queue is, as a measurement of the rates meets them in passing. Nobody has filled the queue to
//! see how long it gets, nor looked whether it is managed: losses are a queue's where probes before and after them waited longest, of a
//! wire that loses at random they come after short waits as often as probes do.

use super::counting::share;
use super::loss::Counted;
use super::quiet;
use super::trail::{Point, Trail};
use crate::stat::quantile;
use crate::{LARGE, TrainSeen, Value, WhyNot};

/// Waits up to this share of the longest are far from a full queue; the longest but for a few, which hosts were late with.
const ROOM: f64 = 0.5;
const LONGEST: f64 = 0.99;
/// A full queue's losses that look as if it had room.
const LEAK: f64 = 0.05;
/// By chance losses would come at so long waits less often than this: then they are a full queue's.
const CHANCE: f64 = 0.05;
/// Waits at which a queue that merely overflows loses are alike: the shorter ones are this share of the longer ones at least, of so many.
const ALIKE: f64 = 0.7;
const OVERFLOWS: usize = 3;
/// What is before a loss and behind it did not wait as long as the packet that found no room.
const ROUGH: (f64, f64) = (0.9, 1.15);
/// No managed queue drops where waits are shorter [s], nor who waits for one packet only (RFC 8289, section 4.4).
const SHORT: f64 = 4e-3;
const ONE: f64 = 1.1 * LARGE as f64 * 8.0;
/// A queue that empties is met empty again and again: of the waits up to twice as long as the short ones so many are short.
const OFTEN: f64 = 0.6;
/// Fewer packets say nothing.
const ENOUGH: f64 = 20.0;
/// Somebody who polices may lose so much.
const MUCH: f64 = 0.1;
/// Whether losses know of each other is looked at in groups of so many packets, of so many at least. What is counted may be so many
/// standard deviations off, which are at least this share of it and at most that.
const GROUP: usize = 32;
const GROUPS: f64 = 5.0;
const DEVIATIONS: f64 = 3.0;
const ROUGHLY: f64 = 0.07;
const MOST: f64 = 0.25;

/// What is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passing {
    /// The share of the packets that the wire lost, with its interval.
    pub random: Value,
    /// How many of these in a row.
    pub row: Option<f64>,
    /// The longest wait in the queue [s]; where it did not overflow, or drops before, the longest that was seen, as the lower bound.
    pub depth_s: Value,
    /// Somebody drops much though the queue has room, and not by chance.
    pub policed: bool,
}

/// Of these trains. `c`: the capacity [bit/s]; `every`: from one opportunity to send to the next, where the link has them, for which
/// packets wait besides [s].
pub fn find<'a>(trains: impl Iterator<Item = &'a TrainSeen> + Clone, c: f64, every: f64) -> Passing {
    found(&Trail::of(trains.map(|train| (train, None, false, 0.0)), c, quiet(c)), SHORT.max(ONE / c) + every)
}

/// `short` waits [s]: no managed queue drops there.
fn found(trail: &Trail, short: f64) -> Passing {
    let mut waits: Vec<f64> = trail.points.iter().filter(|p| !p.lost && p.wait.is_finite()).map(|p| p.wait).collect();
    waits.sort_unstable_by(f64::total_cmp);
    let full = by_chance(trail, &waits) < CHANCE;
    let (random, row) = of(trail, &waits, full, short);
    let policed = random.value.is_none() && row.is_some();
    let depth_s = if policed { Value::none(WhyNot::NotSeen) } else { depth(trail, &waits, full, short) };
    Passing { random, row, depth_s, policed }
}

/// How probable it is that as many rows of losses as there are come at so long waits where waits do not matter, by Fisher's way to
/// combine them: the sum of -ln(1 - rank) is a gamma variate.
fn by_chance(trail: &Trail, waits: &[f64]) -> f64 {
    let (mut sum, mut rows, mut before) = (0.0, 0, false);
    for p in &trail.points {
        if p.lost && !before && p.wait.is_finite() && !waits.is_empty() {
            let (shorter, no_longer) =
                (waits.partition_point(|&w| w < p.wait), waits.partition_point(|&w| w <= p.wait));
            let longer = waits.len() as f64 - (shorter + no_longer) as f64 / 2.0;
            sum -= (longer.max(0.5) / waits.len() as f64).ln();
            rows += 1;
        }
        before = p.lost;
    }
    let (mut term, mut tail) = ((-sum).exp(), 0.0);
    for k in 1..=rows {
        tail += term;
        term *= sum / f64::from(k);
    }
    // so many rows that the first term is nothing: their mean is normal
    if rows > 0 && sum > 700.0 {
        return if sum > f64::from(rows) + 1.6449 * f64::from(rows).sqrt() { 0.0 } else { 1.0 };
    }
    if rows == 0 { 1.0 } else { tail }
}

/// How long the queue gets: `full`, whether it did. Where hardly any wait is `short` [s] it may never have been empty, and what
/// always waited is missing.
fn depth(trail: &Trail, waits: &[f64], full: bool, short: f64) -> Value {
    let held = quantile(waits, LONGEST).unwrap_or(0.0);
    let lost: Vec<f64> = trail.points.iter().filter(|p| p.lost && p.wait.is_finite()).map(|p| p.wait).collect();
    let at = |share| quantile(&lost, share).unwrap_or(0.0);
    let (low, high) = (at(0.25), at(0.9));
    // delays may wander by as much without a queue
    let alone = |p: &&Point| !p.lost && p.ahead == 0.0 && p.wait.is_finite();
    let alone: Vec<f64> = trail.points.iter().filter(alone).map(|p| p.wait).collect();
    let wanders = quantile(&alone, LONGEST).filter(|_| alone.len() as f64 >= ENOUGH).unwrap_or(0.0);
    // who drops packets that waited for nobody has no queue
    if full && lost.len() >= OVERFLOWS && low > 0.0 && low >= ALIKE * high {
        let [once, twice] = [1.0, 2.0].map(|times| waits.partition_point(|&wait| wait <= times * short) as f64);
        let emptied = once >= ENOUGH && once >= OFTEN * twice;
        let why = (!emptied).then_some(WhyNot::Ambiguous);
        return Value { why, ..Value::of(at(0.75), (ROUGH.0 * low - wanders).max(0.0), ROUGH.1 * high.max(held)) };
    }
    Value::at_least((held - wanders).max(0.0), WhyNot::NotSeen)
}

fn of(trail: &Trail, waits: &[f64], overflows: bool, short: f64) -> (Value, Option<f64>) {
    let longest = quantile(waits, LONGEST).unwrap_or(0.0);
    let count = |counts: &dyn Fn(&Point) -> bool| Counted::of(trail.points.iter(), counts);
    let room = count(&|p| p.wait <= ROOM * longest);
    if room.packets < ENOUGH {
        return (Value::none(WhyNot::TooFew), None);
    }
    let full = count(&|p| p.wait > ROOM * longest);
    // of few losses that all come at long waits a queue may have dropped each
    let open = room.lost == 0.0;
    let (room, leaks) = match overflows {
        false => (count(&|p| p.wait.is_finite()), 0.0),
        true => (room, LEAK * full.lost),
    };
    let found = counted(&room, leaks);
    let found = Value { low: if open { 0.0 } else { found.low }, ..found };
    let row = room.row();
    if room.lost > MUCH * room.packets && !by_themselves(&trail.points) {
        return (Value { value: None, low: 0.0, why: Some(WhyNot::Ambiguous), ..found }, row);
    }
    let short = count(&|p| p.wait < short);
    let calm = counted(&short, 0.0);
    if short.packets < ENOUGH || room.lost == 0.0 {
        // a managed queue may have dropped all of them
        let low = if short.packets < ENOUGH { 0.0 } else { found.low };
        return (Value { low, ..found }, row);
    }
    // waits that are longer lose more, or may: a managed queue may have dropped what short ones do not show
    let more = found.value.is_some_and(|value| value > calm.high);
    let value = if more { calm.value } else { found.value };
    (Value { value, low: found.low.min(calm.low), ..found }, row)
}

/// Whether losses know nothing of each other: as many in each group, and as many of them side by side, as by chance; where more are
/// lost than not, those that are not. A policer's are as regular as what is sent, and none while there are tokens.
fn by_themselves(points: &[Point]) -> bool {
    let lost = points.iter().filter(|p| p.lost).count() as f64 / points.len().max(1) as f64;
    let (rare, share) = (lost <= 0.5, lost.min(1.0 - lost));
    let (mut groups, mut varies, mut pairs, mut by_chance) = (0.0, 0.0, 0.0, 0.0);
    for group in points.chunks_exact(GROUP) {
        let of = group.iter().filter(|p| p.lost == rare).count() as f64;
        groups += 1.0;
        varies += (of - share * GROUP as f64).powi(2) / (share * (1.0 - share) * GROUP as f64);
        pairs += group.windows(2).filter(|pair| pair.iter().all(|p| p.lost == rare)).count() as f64;
        by_chance += of * (of - 1.0) / GROUP as f64;
    }
    let alike = |ratio: f64, deviation: f64| (ratio - 1.0).abs() <= DEVIATIONS * deviation.min(MOST);
    groups >= GROUPS
        && by_chance > 0.0
        && alike(varies / groups, (2.0 / groups).sqrt().max(ROUGHLY))
        && alike(pairs / by_chance, by_chance.sqrt().recip().max(ROUGHLY))
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

    /// A point in a millisecond, behind those that wait.
    fn trail(wait: impl Fn(usize) -> f64, lost: impl Fn(usize) -> bool) -> Trail {
        let point = |k| Point { lost: lost(k), wait: wait(k), ahead: (wait(k) / 1e-3).ceil(), ..Point::default() };
        Trail { points: (0..2000).map(point).collect(), ..Trail::default() }
    }

    fn of(trail: &Trail) -> (Value, Option<f64>) {
        let found = found(trail, SHORT);
        (found.random, found.row)
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

    /// A wire loses by itself, a policer every so manieth of what is sent evenly, and all of it once its tokens are gone.
    #[test]
    fn a_wire_that_loses_much_is_no_policer() {
        let mut state = 7_u64;
        let random = std::array::from_fn::<bool, 2000, _>(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33 < (0.15 * f64::from(1_u32 << 31)) as u64
        });
        for alike in [random, std::array::from_fn(|k| !random[k])] {
            let found = found(&trail(rises, |k| alike[k]), SHORT);
            let lost = alike.iter().filter(|&&lost| lost).count() as f64 / 2000.0;
            assert!(found.random.low < lost && lost < found.random.high && found.random.why.is_none(), "{found:?}");
            assert!(!found.policed);
        }
        assert!(found(&trail(|_| 0.0, |k| k % 7 == 0), SHORT).policed, "even ones");
        assert!(found(&trail(|_| 0.0, |k| k % 200 > 150), SHORT).policed, "tokens are gone");
    }

    /// CoDel drops where packets wait for two and more: on a slow line that is nearly always.
    #[test]
    fn where_hardly_any_wait_is_short_a_managed_queue_may_have_dropped_them() {
        let slow = |k: usize| if k.is_multiple_of(40) { 0.0 } else { 6e-3 + 0.05 * rises(k) };
        let (managed, _) = of(&trail(slow, |k| k % 50 == 21));
        assert!(managed.low == 0.0 && managed.value > Some(0.01), "{managed:?}");
    }

    /// Two of 2000 lost after waits longer than half of the longest, as three quarters of all were: they may be the wire's.
    #[test]
    fn a_few_losses_at_long_waits_may_be_the_wires() {
        let often_long = |k: usize| if k.is_multiple_of(4) { 0.0 } else { rises(k) + 5e-3 };
        let (few, row) = of(&trail(often_long, |k| (433..436).contains(&k) || (1277..1280).contains(&k)));
        assert_eq!((few.value, few.low, row), (Some(3e-3), 0.0, Some(3.0)));
        assert!(few.high > 5e-3, "{few:?}");
    }

    #[test]
    fn a_queue_that_overflows_shows_how_deep_it_is() {
        let overflows = found(&trail(rises, |k| k % 100 >= 97), SHORT).depth_s;
        assert!((9.5e-3..10.5e-3).contains(&overflows.value.unwrap()), "{overflows:?}");
        assert!(overflows.low < 9.7e-3 && overflows.high > 1e-2, "{overflows:?}");
        let room = found(&trail(rises, |k| k % 50 == 20), SHORT).depth_s;
        assert_eq!((room.value, room.why), (None, Some(WhyNot::NotSeen)));
        assert!((9e-3..1e-2).contains(&room.low));
        let early = found(&trail(rises, |k| k % 100 >= 42 && k % 3 == 0), SHORT).depth_s;
        assert_eq!(early.value, None, "a managed one");
        assert_eq!(found(&trail(|_| 0.0, |k| k % 4 == 0), SHORT).depth_s.value, None, "who polices");
    }

    /// A queue of 2 ms, whose delay wanders by up to 10 ms.
    #[test]
    fn what_delays_wander_by_is_no_depth() {
        let late = |k: usize| 5e-3 * (1.0 + (k as f64 / 40.0).sin());
        let queued = |k: usize| (k % 100) as f64 * 2e-5;
        let mut wanders = trail(|k| queued(k) + late(k), |k| k % 100 >= 97);
        for (k, p) in wanders.points.iter_mut().enumerate() {
            p.ahead = if k % 100 < 20 { 0.0 } else { 1.0 };
        }
        let found = found(&wanders, SHORT).depth_s;
        assert!(found.low <= 2e-3, "{found:?}");
    }

    /// TCP's windows may keep more in it than any probe meets.
    #[test]
    fn a_queue_that_is_never_met_empty_may_be_deeper() {
        let stands = |k: usize| if k == 7 { 0.0 } else { 3e-3 + 2.0 * rises(k) };
        let found = found(&trail(stands, |k| k % 100 >= 97), 2e-3).depth_s;
        assert!(found.value.is_some() && found.why == Some(WhyNot::Ambiguous), "{found:?}");
    }

    #[test]
    fn few_packets_say_nothing() {
        let few = Trail { points: vec![Point::default(); 19], ..Trail::default() };
        assert_eq!(of(&few), (Value::none(WhyNot::TooFew), None));
    }
}
