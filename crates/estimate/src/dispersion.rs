//! The capacity that trains sent back to back show, filtered so that pairs which waited for others do not count; see
//! `capacity.rs`, which sends the trains.

use super::series::NOTHING;
use super::stat::median;
use super::{FASTEST, LARGE, TrainSeen, stretch};

/// One train's gap at one position.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Sum of the two packets' delays [ns], offset of the clocks included.
    delays: i64,
    /// Between the two arrivals [ns].
    dispersion: i64,
    /// IP bytes of the second packet; of batches, see [`Mark::gap`].
    bytes: f64,
    /// Both batches are as large.
    even: bool,
    /// No packet was lost in between.
    whole: bool,
    /// The second packet's place.
    to: usize,
    /// Of which train.
    train: usize,
}

impl Gap {
    /// What it says of C [bit/s]; none where its stamps contradict each other, or any line.
    fn rate(&self) -> Option<f64> {
        let rate = self.bytes * 8e9 / self.dispersion as f64;
        Some(rate).filter(|rate| self.dispersion > 0 && (0.0..=FASTEST).contains(rate))
    }
}

/// A packet whose stamp is right.
#[derive(Clone, Copy, Debug)]
struct Mark {
    place: usize,
    delay: i64,
    at: i64,
    /// Of the train up to it, without those that the queue had no room for.
    bytes: u64,
    /// Packets lost up to it.
    lost: usize,
    /// Of its batch.
    batch: u64,
    /// Of which train.
    train: usize,
}

impl Mark {
    /// A batch is handed over so long after its first packet, or soon after its last one: a gap is the first batch's line time or the
    /// second's.
    fn gap(self, to: Mark) -> Gap {
        Gap {
            delays: self.delay + to.delay,
            dispersion: to.at - self.at,
            bytes: (to.bytes - self.bytes) as f64 + (self.batch as f64 - to.batch as f64) / 2.0,
            even: self.batch == to.batch,
            whole: self.lost == to.lost,
            to: to.place,
            train: to.train,
        }
    }
}

/// Where L/C is so short [s] that the stamps' noise shows, three gaps count as one; where it is shorter than the second one
/// gap says nothing.
const SHORT: (f64, f64) = (0.5e-3, 40e-6);

/// Three gaps that say less than this share of what one says had others between them.
const INTRUDED: f64 = 0.93;
const WIDE: usize = 3;

/// C from what was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// By position; the first gap is not kept.
    positions: Vec<Vec<Gap>>,
    /// The same over three gaps.
    wide: Vec<Vec<Gap>>,
    /// The smallest delay of each place in a train [ns].
    least: Vec<i64>,
    trains: usize,
}

/// How much longer than L/C the best pair may have waited to count as having waited for nobody.
const SETTLED: f64 = 0.1;

/// Positions that differ by more than this have not all met an idle link, where the stamps' noise is less.
const AGREE: f64 = 1.1;

impl Filter {
    /// Adds a train that was sent back to back.
    pub fn add(&mut self, train: &TrainSeen) {
        if self.least.len() < train.packets.len() {
            self.least.resize(train.packets.len(), i64::MAX);
        }
        let missing = train.packets.iter().filter(|p| p.lost()).count();
        // a full queue's losses did not use the line, a wire's did
        let full = missing > 2 && missing as f64 > OVERFLOW * train.packets.len() as f64;
        let end = whole_batches(train).min(until_stall(train));
        // of the packets of one batch only the last stamp is right: a gap is from one such packet to the next
        let mut marks: Vec<Mark> = Vec::new();
        let (mut bytes, mut lost, mut batch) = (0, 0, 0);
        for (k, packet) in train.packets[..end].iter().enumerate() {
            let (Some(delay), Some(at)) = (packet.delay(), packet.received) else {
                bytes += if full { 0 } else { u64::from(packet.size) };
                lost += 1;
                continue;
            };
            bytes += u64::from(packet.size);
            batch = if packet.batch.index == 0 { 0 } else { batch } + u64::from(packet.size);
            self.least[k] = self.least[k].min(delay);
            if !packet.batch.is_last() {
                continue;
            }
            let mark = Mark { place: k, delay, at: at.0 as i64, bytes, lost, batch, train: self.trains };
            for (positions, stride) in [(&mut self.positions, 1), (&mut self.wide, WIDE)] {
                let first = marks.len().checked_sub(stride).map(|i| marks[i]).filter(|first| first.place > 0);
                if let Some(first) = first {
                    if positions.len() < first.place {
                        positions.resize(first.place, Vec::new());
                    }
                    positions[first.place - 1].push(first.gap(mark));
                }
            }
            marks.push(mark);
        }
        self.trains += 1;
    }

    /// Each position's capacity [bit/s]; only of those that are settled, if any is, and that nobody came between.
    pub fn by_position(&self) -> Vec<f64> {
        undivided(self.all_positions())
    }

    fn all_positions(&self) -> Vec<f64> {
        self.of(if self.is_wide() { &self.wide } else { &self.positions })
    }

    /// Whether three gaps count as one.
    fn is_wide(&self) -> bool {
        let Some(c) = median(&self.of(&self.positions)) else { return false };
        let service = f64::from(LARGE) * 8.0 / c;
        // less than one gap says: others came in between, each time
        let says = || median(&self.of(&self.wide)).is_some_and(|three| service < SHORT.1 || three > INTRUDED * c);
        service <= SHORT.0 && says()
    }

    /// Each train's gaps [s/bit].
    fn gaps(&self, positions: &[Vec<Gap>]) -> Vec<Vec<f64>> {
        let mut trains = vec![Vec::new(); self.trains];
        for gap in positions.iter().flatten().filter(|gap| gap.whole && gap.bytes > 0.0 && gap.rate().is_some()) {
            trains[gap.train].push(gap.dispersion as f64 / (gap.bytes * 8e9));
        }
        trains
    }

    /// What all long trains agree on [bit/s], where the positions say less; see [`stretch::agreed`].
    pub fn agreed(&self) -> Option<f64> {
        stretch::agreed(&self.gaps(&self.positions), median(&self.by_position())?)
    }

    /// C and half of its 90 % interval [bit/s], where they do not agree, as the way stretches and compresses them; see [`stretch`].
    pub fn stretched(&self) -> Option<(f64, f64)> {
        if self.agreed().is_some() {
            return None;
        }
        let usual = median(&self.by_position())?;
        let wide = f64::from(LARGE) * 8.0 / usual < SHORT.1;
        let trains = self.gaps(if wide { &self.wide } else { &self.positions });
        let noise = NOTHING / (f64::from(LARGE) * 8.0) / if wide { WIDE as f64 } else { 1.0 };
        stretch::capacity(&trains, usual, noise, !wide)
    }

    fn of(&self, positions: &[Vec<Gap>]) -> Vec<f64> {
        let best: Vec<(usize, &Gap)> =
            positions.iter().enumerate().filter_map(|(k, gaps)| Some((k, least(gaps)?))).collect();
        let any = best.iter().any(|(_, gap)| gap.whole);
        let usable = best.into_iter().filter(|(_, gap)| gap.whole || !any);
        let rate = |(from, gap): (usize, &Gap)| Some((gap.rate()?, self.undisturbed(from, gap)));
        let rates: Vec<(f64, bool)> = usable.filter_map(rate).collect();
        let any = rates.iter().any(|&(_, settled)| settled);
        rates.into_iter().filter(|&(_, settled)| settled || !any).map(|(rate, _)| rate).collect()
    }

    /// Whether the pair has waited no longer than the best packets of its two places did, each on its own.
    fn undisturbed(&self, position: usize, gap: &Gap) -> bool {
        let least = |place: usize| self.least.get(place).copied().unwrap_or(i64::MAX);
        let extra = gap.delays.saturating_sub(least(position + 1)).saturating_sub(least(gap.to));
        (extra as f64) < SETTLED * gap.dispersion as f64
    }

    /// The median of the positions [bit/s], or what trains agree on, or their median where they are stretched.
    pub fn capacity(&self) -> Option<f64> {
        let stretched = || self.stretched().map(|(c, _)| c);
        self.agreed().or_else(stretched).or_else(|| median(&self.by_position()))
    }

    /// Whether the positions agree, as far as stamps can tell.
    pub fn agrees(&self) -> bool {
        let rates = self.by_position();
        let (low, high) = rates.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &r| (low.min(r), high.max(r)));
        f64::from(LARGE) * 8.0 / high <= SHORT.0 || high <= AGREE * low
    }

    /// Whether in most positions the best pair is undisturbed (CapProbe's check).
    pub fn settled(&self) -> bool {
        let vote = |(from, gaps): (usize, &Vec<Gap>)| Some(self.undisturbed(from, least(gaps)?));
        let votes: Vec<bool> = self.positions.iter().enumerate().filter_map(vote).collect();
        2 * votes.iter().filter(|&&vote| vote).count() > votes.len()
    }
}

/// Of so many positions some tell what most have not met: where this share of all, and no fewer than so many, agree within so much and
/// exceed the median by more than so much.
const MANY: usize = 12;
const CLEAN: f64 = 0.1;
const CLEAN_LEAST: usize = 5;
const SAME: f64 = 0.01;
const DIVIDED: f64 = 0.1;

/// The fastest of which many agree. In long trains beside even traffic somebody comes between the packets of most positions, in every
/// train alike: nobody makes them come closer than L/C together.
fn undivided(mut rates: Vec<f64>) -> Vec<f64> {
    let Some(usual) = median(&rates).filter(|_| rates.len() >= MANY) else { return rates };
    rates.sort_unstable_by(f64::total_cmp);
    let agree = ((CLEAN * rates.len() as f64).ceil() as usize).max(CLEAN_LEAST);
    let fastest = rates.windows(agree).rev().find(|w| w[agree - 1] <= w[0] * (1.0 + SAME));
    match fastest.map(|w| w[0]).filter(|&least| least > usual * (1.0 + DIVIDED)) {
        Some(least) => rates.into_iter().filter(|&rate| (least..=least * (1.0 + 2.0 * SAME)).contains(&rate)).collect(),
        None => rates,
    }
}

/// The gap that waited least, if possible one without losses and between batches as large.
fn least(gaps: &[Gap]) -> Option<&Gap> {
    gaps.iter().min_by_key(|gap| (!gap.whole, !gap.even, gap.delays))
}

/// Above this share of a train its losses are the queue's.
const OVERFLOW: f64 = 0.1;

/// So many packets of a train have stamps of use. Where the receiving host gathers packets, the train's last batch is not: it
/// waited for a packet that did not come, or was handed over early.
pub(super) fn whole_batches(train: &TrainSeen) -> usize {
    let packets = &train.packets;
    if packets.iter().all(|p| p.received.is_none() || p.batch.of == 1) {
        return packets.len();
    }
    let arrived = |p: &super::Seen| p.received.is_some();
    let last = packets.iter().rposition(arrived).unwrap_or(0);
    let before = |p: &super::Seen| arrived(p) && p.received < packets[last].received;
    packets.iter().rposition(before).map_or(0, |k| k + 1)
}

/// The sending host was held up [ns].
const STALL: u64 = 300_000;

/// So many packets of a train left without the sending host being held up: those behind have met an emptier queue.
pub(super) fn until_stall(train: &TrainSeen) -> usize {
    let gaps: Vec<u64> = train.packets.windows(2).map(|w| w[1].sent.0.saturating_sub(w[0].sent.0)).collect();
    let usual = median(&gaps.iter().map(|&gap| gap as f64).collect::<Vec<f64>>()).unwrap_or(0.0);
    gaps.iter().position(|&gap| gap > STALL && gap as f64 > 5.0 * usual).map_or(train.packets.len(), |k| k + 1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::train;
    use super::*;
    use pathcast_base::Nanos;

    const GAP: u64 = 2_240_000; // 1400 bytes at 5 Mbit/s

    #[test]
    fn of_each_position_the_pair_that_waited_least_counts() {
        let mut filter = Filter::default();
        let at = |late: [u64; 5]| (0..5).map(|k| Some(1_000_000 + k * GAP + late[k as usize])).collect::<Vec<_>>();
        // cross traffic before the fifth, third, second packet; and a little before the first
        for late in [[0, 0, 0, 0, 9], [0, 0, 9, 9, 9], [0, 9, 9, 9, 9], [1, 1, 1, 1, 1]] {
            filter.add(&train(0, 1400, &[0; 5], &at(late.map(|l| l * 100_000))));
        }
        assert_eq!(filter.by_position(), [5e6; 3]);
    }

    #[test]
    fn the_fastest_of_many_positions_count_if_they_agree() {
        let mixed = |share: usize, fast: fn(usize) -> f64| -> f64 {
            median(&undivided((0..100).map(|k| if k < share { fast(k) } else { 73.7e6 }).collect())).unwrap()
        };
        assert_eq!(mixed(10, |_| 100e6), 100e6);
        assert_eq!(mixed(9, |_| 100e6), 73.7e6, "too few");
        assert_eq!(mixed(30, |k| 100e6 * (1.0 + k as f64 * 2e-3)), 73.7e6, "stamps that scatter");
        assert_eq!(mixed(30, |_| 80e6), 73.7e6, "no whole packet's difference");
        let few: Vec<f64> = (0..12).map(|k| if k < 4 { 2.0 } else { 1.0 }).collect();
        assert_eq!(undivided(few).len(), 12, "four of a dozen are no sign");
    }

    #[test]
    fn unsettled_while_no_pair_has_met_an_idle_link() {
        let mut filter = Filter::default();
        // each position's first and second packet are undisturbed, but in different trains
        for late in [[0, 9, 0, 9, 0], [9, 0, 9, 0, 9]] {
            let at: Vec<_> = (0..5).map(|k| Some(1_000_000 + k * GAP + late[k as usize] * 100_000)).collect();
            filter.add(&train(0, 1400, &[0; 5], &at));
        }
        assert!(!filter.settled());
    }

    /// CapProbe's condition: the best pair's delays, less the least of its two packets each on its own, are below a tenth of its
    /// dispersion. With one packet of each pair E late, in turn the first or the second, a pair's dispersion is GAP - E or
    /// GAP + E, and E is what it has waited: settled where E < GAP / 11, or GAP / 9.
    #[test]
    fn settled_while_the_best_pair_waited_less_than_a_tenth_of_its_dispersion() {
        for (late, rates, settled) in [
            (0, &[0, 0, 0][..], true),
            (GAP / 11, &[-1, 1, -1], true), // GAP has no factor 11: just below
            (GAP / 11 + 1, &[1], false),
            (GAP / 9, &[1], false),             // nor 9
            (GAP / 9 + 1, &[-1, 1, -1], false), // where no position is settled all count
        ] {
            let mut filter = Filter::default();
            for odd in [0, 1] {
                let at = (0..5).map(|k| Some(1_000_000 + k * GAP + if k % 2 == odd { 0 } else { late }));
                filter.add(&train(0, 1400, &[0; 5], &at.collect::<Vec<_>>()));
            }
            let rate = |&sign: &i64| 1400.0 * 8e9 / (GAP as i64 + sign * late as i64) as f64;
            assert_eq!(filter.by_position(), rates.iter().map(rate).collect::<Vec<_>>(), "{late}");
            assert_eq!(filter.settled(), settled, "{late}");
        }
    }

    #[test]
    fn positions_that_differ_do_not_agree() {
        let mut filter = Filter::default();
        filter.add(&train(0, 1400, &[0; 5], &[0, GAP, 2 * GAP, 3 * GAP, 5 * GAP].map(Some)));
        assert!(filter.settled() && !filter.agrees());
        filter.add(&train(1, 1400, &[0; 5], &[0, GAP, 2 * GAP, 3 * GAP, 4 * GAP].map(Some)));
        assert!(filter.settled() && filter.agrees());
    }

    #[test]
    fn the_first_gap_of_a_bucket_is_not_looked_at() {
        let mut filter = Filter::default();
        let at = [Some(0), Some(100), Some(100 + GAP), Some(100 + 2 * GAP), Some(100 + 3 * GAP)];
        filter.add(&train(0, 1400, &[0; 5], &at));
        assert_eq!(filter.capacity(), Some(5e6));
    }

    #[test]
    fn losses_and_batches_leave_the_other_gaps() {
        let mut filter = Filter::default();
        let mut seen = train(0, 1400, &[0; 5], &[Some(0), Some(GAP), None, Some(3 * GAP), Some(4 * GAP)]);
        filter.add(&seen);
        assert_eq!(filter.by_position(), [5e6]);
        // the second, third and fourth of a train in one batch, whose stamp is the fourth's
        seen = train(0, 1400, &[0; 7], &[0, 3, 3, 3, 4, 5, 6].map(|k| Some(k * GAP)));
        for (k, index) in [(1, 0), (2, 1), (3, 2)] {
            seen.packets[k].batch = crate::Batch { index, of: 3 };
        }
        let mut filter = Filter::default();
        filter.add(&seen);
        // the gap between a batch and a packet alone is the one's line time or the other's
        assert_eq!(filter.by_position(), [1e7, 5e6]);
    }

    #[test]
    fn what_follows_a_stall_of_the_sender_is_not_looked_at() {
        // the third packet leaves 6 ms late, when the queue is empty again
        let mut filter = Filter::default();
        let late = [0, 0, 6_000_000, 6_000_000, 6_000_000];
        filter.add(&train(0, 1400, &late, &[1, 2, 6, 7, 8].map(|k| Some(k * GAP))));
        filter.add(&train(1, 1400, &[0; 5], &[1, 2, 3, 4, 5].map(|k| Some(k * GAP))));
        assert_eq!(filter.by_position(), [5e6; 3]);
    }

    /// Three lost packets of six found no place and did not use the line; two of five are a wire's, and did.
    #[test]
    fn many_losses_are_a_queues() {
        for (lost, carried) in [(3, 1.0), (2, 3.0), (4, 1.0)] {
            let at: Vec<_> = [Some(0), Some(GAP)].into_iter().chain(vec![None; lost]).chain([Some(2 * GAP)]).collect();
            let mut filter = Filter::default();
            filter.add(&train(0, 1400, &vec![0; at.len()], &at));
            assert_eq!(filter.by_position(), [carried * 5e6], "{lost} lost");
        }
    }

    #[test]
    fn a_stall_is_long_and_longer_than_usual() {
        let until = |usual: u64, odd: u64| {
            let sent: Vec<u64> = (0..10).map(|k| k * usual + if k < 4 { 0 } else { odd - usual }).collect();
            until_stall(&train(0, 1400, &sent, &[None; 10]))
        };
        assert_eq!(until(10_000, 300_001), 4);
        assert_eq!(until(10_000, 300_000), 10);
        assert_eq!(until(10_000, 200_000), 10, "20 times as long, but short");
        assert_eq!(until(100_000, 500_000), 10, "five times as long");
        assert_eq!(until(100_000, 500_001), 4);
    }

    /// Where a gap is short three count as one, so that the stamps' noise is a third; where it is shorter still whatever they say.
    #[test]
    fn three_short_gaps_count_as_one() {
        let of = |gap: u64, extra: fn(u64) -> u64| {
            let at: Vec<u64> = (0..10).map(|k| k * gap + extra(k)).collect();
            let mut filter = Filter::default();
            filter.add(&train(0, 1400, &[0; 10], &at.iter().map(|&at| Some(1_000_000 + at)).collect::<Vec<_>>()));
            let rates = |stride: usize| -> Vec<f64> {
                (1..10 - stride).map(|k| stride as f64 * 1400.0 * 8e9 / (at[k + stride] - at[k]) as f64).collect()
            };
            (filter.by_position(), rates(1), rates(3))
        };
        let noise = |k: u64| k % 2 * 8000;
        let (found, _, three) = of(200_000, noise);
        assert_eq!(found, three, "56 Mbit/s");
        let (found, one, _) = of(600_000, noise);
        assert_eq!(found, one, "19 Mbit/s");
        // one foreign packet in every three gaps: 1 Gbit/s
        let (found, _, three) = of(11_200, |k| k / 3 * 11_200);
        assert_eq!(found, three);
    }

    #[test]
    fn a_trains_last_batch_is_not_looked_at() {
        // handed over every ten packets' time; the last batch has three
        let mut seen = train(0, 1400, &[0; 23], &[Some(0); 23]);
        for (k, packet) in (0u64..).zip(&mut seen.packets) {
            let of = if k < 20 { 10 } else { 3 };
            packet.received = Some(Nanos((k / 10 + 1) * 10 * GAP));
            packet.batch = crate::Batch { index: (k % 10) as u32, of };
        }
        let mut filter = Filter::default();
        filter.add(&seen);
        assert_eq!(filter.by_position(), [5e6]);
    }

    #[test]
    fn a_train_that_overflows_a_queue_still_has_gaps() {
        // behind the eighth packet every third one is dropped, and what comes shares batches of four
        let mut seen = train(0, 1400, &[0; 40], &[None; 40]);
        let kept = seen.packets.iter_mut().enumerate().filter(|(k, _)| *k < 8 || k % 3 != 0);
        for ((_, packet), came) in kept.zip(0u32..) {
            packet.received = Some(Nanos((u64::from(came) / 4 + 1) * 4 * GAP));
            packet.batch = crate::Batch { index: came % 4, of: 4 };
        }
        let mut filter = Filter::default();
        filter.add(&seen);
        assert_eq!(filter.capacity(), Some(5e6));
    }

    #[test]
    fn three_gaps_with_others_between_do_not_count() {
        // 56 Mbit/s; each train has one foreign packet in the middle of every three gaps, at another place each time
        let mut filter = Filter::default();
        for id in 0..3u64 {
            let at = (0..10).map(|k| Some(1_000_000 + k * 200_000 + (k + id) / 3 * 200_000));
            filter.add(&train(id, 1400, &[0; 10], &at.collect::<Vec<_>>()));
        }
        assert!((filter.capacity().unwrap() / 56e6 - 1.0).abs() < 1e-9);
    }
}
