//! Whether others take turns with the probes, and C if so: by a train of small packets behind the ride.
//!
//! Where every flow has its own queue and others' never run empty a row of large packets leaves at the probes' share, as on a slower
//! line: nothing that rides there sees who takes the rest. A turn is a number of bytes (a quantum: Shreedhar and Varghese 1995;
//! RFC 8290), in which several small packets leave in a row, at C; then comes the others' turn, and then a row again. Behind a token
//! bucket and in one queue for all they come evenly. The train follows the ride's last packet, so that a bucket has saved nothing.
//!
//! It is sent where something speaks for it alone: a packet that is alone takes less than one of a row or, where that is not known,
//! meets others more often than the ride says that there are.

use pathcast_base::Nanos;

use super::super::stat::{deviation, quantile, student90};
use super::super::{Plan, Seen, Step, TrainSeen, series};
use super::balance::Balance;
use super::unseen::met;
use super::{LOST_MOST, PACKET, Phase, Ride, SCANT};

/// Packets, and their size [IP bytes]: several in a quantum of 1514 bytes, and too large to count for the delay.
const GRAINS: usize = 60;
/// They come so many times as fast as a row leaves: enough of them wait when it is their turn, and not too many for a short queue.
const FASTER: f64 = 2.0;
/// So many gaps say something.
const GAPS: usize = 9;
pub(super) const GRAIN: u16 = 210;

/// A packet alone takes less than L/c in a row by this share, and by more than so long [s] and what stamps are late.
const LESS: (f64, f64) = (0.15, 4e-6);
/// And it is doubtful what a row got where it takes such a share; who seems to take less has met a queue that stood.
const DOUBT: (f64, f64) = (1e-3, 0.8);
/// So late a host sends or stamps a packet [s]: on an idle 100 Mbit/s that looked like others' turns. Where a packet of a row takes more
/// than so many times as long no pause is shorter; where it takes less, only stamps that are exact tell of turns.
const LATE: f64 = 1e-4;
const SLOW: f64 = 5.0;
/// There a packet alone takes less by this share, and by so many times what separates small ones that waited least; and not so much less
/// that it has met another queue than the small ones.
const LESS_FAST: f64 = 0.25;
const APART: f64 = 1.5;
const LEAST_ALONE: f64 = -0.5;
/// And C by its turns is at most so many times what packets alone say, who wait for one of the others' at the most.
const AGREES: f64 = 3.0;
/// Others are met more often than the ride says, by so much; by so many probes.
const OFTEN: f64 = 0.3;
const FEW: usize = 4;

/// Gaps in a row are usual: one of these quantiles of all, and so many of them are as long, but for this share or what stamps scatter [s].
const USUAL: [f64; 2] = [0.25, 0.5];
const MANY: f64 = 0.4;
const SAME: f64 = 0.15;
const EXACT: f64 = 0.3e-6;
/// In a longer one by this factor others had a turn: a full-sized packet takes seven times a grain.
const TURN: f64 = 4.0;
/// So many rows, and most gaps are one or the other.
const ROWS: usize = 2;
const EITHER: f64 = 0.6;
/// C is so many times what a row got, at least and at the most.
const MORE: (f64, f64) = (1.2, 40.0);
/// Known no better, and if not better than the last it is not known; where delays wander no better than this.
const LEAST: f64 = 5e-3;
const WANDERS: f64 = 0.05;
const UNSURE: f64 = 0.1;
/// The longest gaps at rows' ends are at this share of them.
const LONGEST: f64 = 0.8;

/// What the train says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Turns {
    /// Others take turns with the probes: C, and half of its 90 % interval [bit/s].
    Others { c: f64, half: f64 },
    /// It came as a row of large packets does.
    Nobody,
    /// Neither, or nothing.
    Unknown,
}

/// Whether hosts are late by as long as a packet takes in a row, at `c` [bit/s].
pub(super) fn is_fast(c: f64) -> bool {
    PACKET / c < SLOW * LATE
}

/// The gaps between packets that came next to each other, and left so [s]; none where some overtook others.
fn gaps(train: &TrainSeen) -> Option<Vec<f64>> {
    let pairs = train.packets.windows(2).filter(|pair| pair.iter().all(|p| p.batch.of <= 1));
    let gap = |pair: &[Seen]| Some((pair[0].received?, pair[1].received?));
    let all: Vec<(Nanos, Nanos)> = pairs.filter_map(gap).collect();
    let ordered = all.iter().all(|(first, second)| first <= second);
    ordered.then(|| all.iter().map(|(first, second)| second.saturating_sub(*first).as_secs_f64()).collect())
}

/// Whether others took turns with these small packets; `c`: what a row got [bit/s].
fn turns(train: &TrainSeen, c: f64) -> Turns {
    let Some(gaps) = gaps(train).filter(|gaps| gaps.len() >= GAPS) else { return Turns::Unknown };
    let usual = |share| quantile(&gaps, share).filter(|&usual| usual > 0.0);
    if let Some(turns) = USUAL.into_iter().filter_map(usual).find_map(|usual| rows(&gaps, usual, c)) {
        return turns;
    }
    let bits = f64::from(GRAIN) * 8.0;
    let Some(usual) = usual(USUAL[0]) else { return Turns::Unknown };
    let rates = [bits / usual, bits * gaps.len() as f64 / gaps.iter().sum::<f64>()];
    if rates.iter().all(|&rate| rate < MORE.0 * c) { Turns::Nobody } else { Turns::Unknown }
}

/// C by rows in which packets leave so long after each other, `usual` [s], if there are others' turns between.
fn rows(gaps: &[f64], usual: f64, c: f64) -> Option<Turns> {
    let (bits, all) = (f64::from(GRAIN) * 8.0, gaps.len() as f64);
    let near = |late: f64| gaps.iter().filter(|&&gap| (gap - usual).abs() <= (SAME * usual).max(late)).count() as f64;
    // stamps that scatter make pauses, too
    let late = if near(EXACT) >= MANY * all { EXACT } else { series::NOTHING };
    if is_fast(c) && late > EXACT {
        return None;
    }
    let turn = (TURN * usual + late).max(if is_fast(c) { 0.0 } else { LATE });
    let (same, pauses) = (near(late), gaps.iter().filter(|&&gap| gap > turn).count());
    let rows: Vec<&[f64]> = gaps.split(|&gap| gap > turn).filter(|row| !row.is_empty()).collect();
    if same < MANY * all || same + (pauses as f64) < EITHER * all || pauses == 0 || rows.len() < ROWS {
        return None;
    }
    // those behind a full-sized packet catch it up on a faster line behind the bottleneck: the ends of long rows are apart again
    let long = (2 * rows.iter().map(|row| row.len()).max()?).div_ceil(3);
    let ends: Vec<&[f64]> = rows.iter().filter(|row| row.len() >= long).map(|row| &row[row.len() / 2..]).collect();
    let (count, time) = ends.iter().fold((0, 0.0), |(n, s), row| (n + row.len(), s + row.iter().sum::<f64>()));
    let found = bits * count as f64 / time;
    let each: Vec<f64> = ends.iter().map(|row| row.iter().sum::<f64>() * found / row.len() as f64 / bits).collect();
    let half = student90(each.len() - 1) * deviation(&each).unwrap_or(0.0) / (each.len() as f64).sqrt();
    // where the last of a row have not yet fallen apart again C is less
    let longest = if is_fast(c) { quantile(&ends.concat(), LONGEST)? } else { 0.0 };
    let half = half.max(if longest > 0.0 { 1.0 - bits / longest / found } else { 0.0 });
    let many = (MORE.0 * c..=MORE.1 * c).contains(&found) && half < UNSURE;
    many.then_some(Turns::Others { c: found, half: half.max(LEAST) * found })
}

impl Ride {
    /// Bytes of the train, where it is to be sent.
    pub(super) fn grains_bytes(&self) -> u64 {
        if self.grains.is_none() && self.suspects() { GRAINS as u64 * u64::from(GRAIN) } else { 0 }
    }

    /// The train, behind the ride's last packet; if it is to be sent.
    pub(super) fn grains(&mut self, now: Nanos) -> Option<Step> {
        let bytes = self.grains_bytes();
        if bytes == 0 || self.bytes + bytes > self.budget.bytes.0 {
            return None;
        }
        let at = Nanos::from_secs_f64(self.follow).max(now);
        let plan = Plan::even(self.next_id, at, GRAINS, f64::from(GRAIN) * 8.0 / self.c / FASTER, GRAIN);
        self.grains = Some(plan.id);
        self.next_id += 1;
        self.bytes += bytes;
        self.pending.insert(plan.id, Vec::new());
        // behind what the ride has in the queue
        self.last_grain = at + Nanos::from_secs_f64((bytes as f64 * 8.0 + self.target) / self.c);
        Some(Step::Send(plan))
    }

    /// Whether a packet alone takes less than one of a row.
    pub(super) fn less_alone(&self) -> bool {
        let row = PACKET / self.c;
        let Some(less) = self.less() else { return false };
        if is_fast(self.c) {
            let least = (LESS_FAST * row).max(LESS.1 + self.blur()).max(APART * self.least_apart());
            return (least..(1.0 - LEAST_ALONE) * row).contains(&less);
        }
        less > (LESS.0 * row).max(LESS.1 + self.blur())
    }

    /// How much less it takes [s].
    fn less(&self) -> Option<f64> {
        Some(PACKET / self.c - self.slope()? * PACKET)
    }

    /// Whether something speaks for others who take turns with the probes.
    fn suspects(&self) -> bool {
        if self.c <= 0.0 || self.every > 0.0 || self.phase == Phase::Capacity {
            return false;
        }
        // two links, one behind the other, take more of one packet alone than the narrower of them does in a row
        if self.slope().is_some() {
            return self.less_alone();
        }
        let before = self.trains.range(..self.first).map(|(_, train)| train);
        let met = met(before, self.small.as_ref(), self.base, self.c);
        let busy = met.iter().filter(|&&busy| busy).count() as f64 / met.len().max(1) as f64;
        let (segments, losses) = self.segments();
        let load = |balance: &Balance| (1.0 - balance.available / self.c).clamp(0.0, 1.0);
        let load = self.balance(&segments, losses).map_or(1.0, |balance| load(&balance));
        met.len() >= FEW && busy > load + OFTEN
    }

    /// Whether the train that was sent leaves it open, or there were too few bytes for one.
    pub(super) fn is_doubtful(&self) -> bool {
        if is_fast(self.c) {
            return self.less_alone();
        }
        let few = self.budget.bytes.0 < SCANT;
        if few && self.small.is_none() {
            return self.overflows();
        }
        (self.grains.is_some() || few)
            && self.less_alone()
            && self.less().is_some_and(|less| less > LATE)
            && self.slope().is_some_and(|slope| (DOUBT.0..DOUBT.1).contains(&(slope * self.c)))
    }

    /// Whether of the trains that told C so much was lost that what came may have been a share of it.
    fn overflows(&self) -> bool {
        let packets = || self.trains.range(..self.first).flat_map(|(_, train)| &train.packets);
        packets().filter(|p| p.lost()).count() as f64 > LOST_MOST * packets().count() as f64
    }

    /// What the train says, once it is known.
    pub(super) fn turns(&self) -> Turns {
        match self.grain_train.as_ref().map_or(Turns::Unknown, |train| turns(train, self.c)) {
            Turns::Others { c, .. } if is_fast(self.c) && self.slope().is_none_or(|slope| slope * c > AGREES) => {
                Turns::Unknown
            }
            Turns::Others { c, half } if self.wander > 0.0 => Turns::Others { c, half: half.max(WANDERS * c) },
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::train;
    use super::*;

    /// Grains through 5 Mbit/s, 0.336 ms each; before the k-th one others have the line for so long [ms].
    fn seen(count: usize, others: impl Fn(usize) -> f64) -> TrainSeen {
        let mut at = 1e6;
        let came = (0..count).map(|k| {
            at += 0.336e6 + others(k) * 1e6;
            Some(at as u64)
        });
        train(0, GRAIN, &vec![0; count], &came.collect::<Vec<_>>())
    }

    /// Of three flows the probes get a third: after seven grains two full-sized packets have their turn.
    #[test]
    fn rows_with_pauses_between_are_turns_and_their_ends_tell_the_capacity() {
        let turn = |k: usize| if k.is_multiple_of(7) { 4.8 } else { 0.0 };
        let Turns::Others { c, half } = turns(&seen(GRAINS, turn), 1.67e6) else { panic!() };
        assert!((c / 5e6 - 1.0).abs() < 1e-3 && half < 0.01 * c, "{c} {half}");
        // the first of each row have caught up the packet before them on a faster line
        let compressed = |k: usize| match k % 7 {
            0 => 5.3,
            1 | 2 => -0.25,
            _ => 0.0,
        };
        let Turns::Others { c, .. } = turns(&seen(GRAINS, compressed), 1.67e6) else { panic!() };
        assert!((c / 5e6 - 1.0).abs() < 1e-3, "{c}");
        // in a short queue most are lost
        let Turns::Others { c, .. } = turns(&seen(12, turn), 1.67e6) else { panic!() };
        assert!((c / 5e6 - 1.0).abs() < 1e-3, "{c}");
    }

    /// A share of 84 of 181 Mbit/s: rows of seven grains, 9.3 us apart, and a full-sized packet's turn, by stamps that are off by so
    /// much [us].
    #[test]
    fn on_a_fast_line_only_exact_stamps_tell_of_turns() {
        let of = |off: f64, others: f64| {
            let mut at = 1e6;
            let came = (0..GRAINS).map(|k| {
                at += 9300.0 + if k % 7 == 0 { others * 1e3 } else { 0.0 };
                Some((at + off * 1e3 * (k as f64 * 2.4).sin()) as u64)
            });
            turns(&train(0, GRAIN, &[0; GRAINS], &came.collect::<Vec<_>>()), 84e6)
        };
        let Turns::Others { c, .. } = of(0.0, 66.9) else { panic!() };
        assert!((c / 180.6e6 - 1.0).abs() < 1e-2, "{c}");
        assert_eq!([of(3.0, 66.9), of(3.0, 200.0)], [Turns::Unknown; 2]);
    }

    #[test]
    fn where_nobody_has_a_turn_a_row_of_large_packets_got_all() {
        // evenly, as behind a token bucket, and in one queue with others now and then
        assert_eq!(turns(&seen(GRAINS, |_| 0.0), 5e6), Turns::Nobody);
        assert_eq!(turns(&seen(GRAINS, |k| if k % 14 == 5 { 2.4 } else { 0.0 }), 5e6), Turns::Nobody);
        // as fast as a row never is, and without a pause: others were away, or a bucket had saved something
        assert_eq!(turns(&seen(GRAINS, |_| 0.0), 1.67e6), Turns::Unknown);
        // too few, or in another order
        assert_eq!(turns(&seen(GAPS, |_| 0.0), 5e6), Turns::Unknown);
        let mut mixed = seen(GRAINS, |_| 0.0);
        mixed.packets[9].received = mixed.packets[7].received.map(|at| at.saturating_sub(Nanos(1)));
        assert_eq!(turns(&mixed, 5e6), Turns::Unknown);
    }
}
