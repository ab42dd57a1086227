//! What the ride has seen of the cross traffic, in sum, and how far that may be off.

use super::super::series::{self, Losses, Segment};
use super::super::stat::deviation;
use super::PACKET;

/// Cross traffic over all segments.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    pub(super) available: f64,
    /// Covered time [s].
    pub(super) time: f64,
    /// What probes took of the line in it [bit].
    pub(super) own: f64,
    /// Of it the line was perhaps idle [s].
    pub(super) open: f64,
    /// How much longer the queue is at the end [s of service].
    pub(super) grown: f64,
    /// What became of lost packets.
    pub(super) losses: Losses,
    /// Stretches of covered time.
    pub(super) runs: usize,
    /// What stamps may be late [s].
    pub(super) late: f64,
    /// Cross traffic that would have come in, had the probes not taken its place in the queue [bit/s].
    pub(super) displaced: f64,
    /// Segments and the cross traffic in them [bit].
    pub(super) covered: Vec<(Segment, f64)>,
}

/// A segment that is not joined and longer than this many packets at the mean rate is a pause (of the sending host, of the
/// method), not a part of the ride.
const PAUSE: f64 = 4.0;
/// And so many times what stamps may be late.
const PAUSE_BLURS: f64 = 3.0;

/// The mean rate that pauses are told by: at most this share of C; nothing known, this share.
const ROUGH_MOST: f64 = 0.98;
const ROUGH_UNKNOWN: f64 = 0.5;

/// Bits of a packet of cross traffic, as far as it matters: one more or less at the ends of a stretch.
pub(super) const CROSS: f64 = 12_000.0;

/// The standard deviation of a sum that is one packet more or less by the place of its ends.
pub(super) const ENDS: f64 = 0.41;

/// Segments over which losses are counted together.
const NEAR: usize = 10;

/// How far the ends of the ride may be cut off to have the queue as long at the end as at the beginning.
const TRIM: f64 = 0.2;
/// What a second cut off costs, in seconds of growth: a cut that gains less is not made.
const TRIM_PRICE: f64 = 0.05;
/// So many places are tried at each end.
const TRIM_PLACES: usize = 200;

/// Numbers of blocks in which the covered time is looked at: longer ones see what is correlated over longer.
const BLOCKS: [usize; 3] = [5, 10, 20];
/// A block is full at this share of its time: sums of floats fall short of the whole.
const BLOCK_FULL: f64 = 0.999;
/// The deviation between blocks where it cannot be told: C over this.
const SPREAD_UNKNOWN: f64 = 3.0;

/// The parts of the interval that add up in squares: fitted to random paths (experiment `measuring`, seeds 20001 to 23000), judged by
/// others (there).
const WEIGHTS: [f64; 8] = [
    1.4,  // cross traffic in the time not covered: from the spread between blocks of the covered time
    0.8,  // the same if it is as correlated as to be one block
    2.5,  // that it changed from the first half to the second
    3.0,  // whole packets at the ends of each stretch that was counted
    0.95, // the time in which the line was perhaps idle
    0.6,  // what the queue has grown, which depends on the rate that drains it
    1.05, // packets that found the queue full: they push others out
    10.0, // stamps, at both ends and, through C, in between
];

impl Balance {
    pub(super) fn of(segments: &[Segment], losses: Losses, c: f64, blur: f64) -> Option<Balance> {
        let total: f64 = segments.iter().map(|s| s.time).sum();
        let joined: f64 = segments.iter().filter(|s| s.joined).map(|s| s.time).sum();
        let exact: f64 = segments.iter().filter(|s| s.joined).map(|s| s.low).sum();
        if total <= 0.0 {
            return None;
        }
        let rough = if joined > 0.0 { (exact / joined).clamp(0.0, ROUGH_MOST * c) } else { ROUGH_UNKNOWN * c };
        let pause = PAUSE * PACKET / (c - rough) + PAUSE_BLURS * blur;
        let kept = |s: &Segment| s.joined || s.time < pause;
        let bits = series::filled(segments, c, rough, blur);
        let covered: Vec<(Segment, f64)> = segments.iter().copied().zip(bits).filter(|(s, _)| kept(s)).collect();
        let covered = trimmed(&covered);
        let time: f64 = covered.iter().map(|(s, _)| s.time).sum();
        if time <= 0.0 {
            return None;
        }
        let cross: f64 = covered.iter().map(|(_, bits)| bits).sum();
        let open = covered.iter().filter(|(s, _)| !s.joined).map(|(s, _)| s.hidden).sum();
        let grown = covered.iter().map(|(s, _)| s.wait - s.before).sum();
        let runs = 1 + segments.iter().filter(|s| !kept(s)).count();
        let displaced = displaced(&covered, losses) / time;
        let available = c - cross / time;
        let own = covered.iter().map(|(s, _)| s.bits).sum();
        Some(Balance { available, time, own, open, grown, losses, runs, late: blur, displaced, covered })
    }

    /// Over all of the measurement, which took `whole` [s]: where there are no probes nothing is displaced [bit/s].
    pub(super) fn over(&self, whole: f64) -> f64 {
        self.available - self.displaced * (1.0 - self.time / whole).max(0.0)
    }

    /// What may be wrong with that, part by part [bit/s], as [`WEIGHTS`] has them.
    fn errors(&self, c: f64, whole: f64) -> [f64; 8] {
        let rate = (c - self.available).clamp(0.0, c);
        let unseen = (1.0 - self.time / whole).max(0.0);
        let ends = ENDS * CROSS.min(rate * self.time);
        let (mut mean, mut block) = (0.0f64, 0.0f64);
        for count in BLOCKS {
            let rates = self.blocks(count);
            let packets = (ends * count as f64 / self.time).powi(2);
            let spread = (deviation(&rates).unwrap_or(c / SPREAD_UNKNOWN).powi(2) - packets).max(0.0);
            mean = mean.max((spread / rates.len().max(1) as f64).sqrt());
            block = block.max(spread.sqrt());
        }
        let halves = self.blocks(2);
        let trend = if let [first, second] = halves[..] { (second - first).abs() } else { 0.0 };
        [
            mean * unseen.sqrt(),
            block * unseen,
            trend * unseen,
            ends * (self.runs as f64).sqrt() / self.time,
            c * self.open / self.time,
            c * self.grown.abs() / self.time,
            PACKET * self.losses.overflow / self.time,
            c * (self.late + series::NOTHING) / self.time,
        ]
    }

    /// The rate of cross traffic in so many blocks of equal time [bit/s].
    pub(super) fn blocks(&self, count: usize) -> Vec<f64> {
        let each = self.time / count as f64;
        let mut rates = Vec::new();
        let (mut time, mut bits) = (0.0, 0.0);
        for (s, cross) in &self.covered {
            time += s.time;
            bits += cross;
            if time >= each * BLOCK_FULL {
                rates.push(bits / time);
                (time, bits) = (0.0, 0.0);
            }
        }
        rates
    }

    /// Half of the 90 % interval [bit/s]; `whole` is how long the measurement took [s].
    pub(super) fn half_width(&self, c: f64, whole: f64) -> f64 {
        let parts = self.errors(c, whole);
        parts.iter().zip(WEIGHTS).map(|(error, weight)| (error * weight).powi(2)).sum::<f64>().sqrt()
    }
}

/// Cross traffic that found the queue full because of the probes [bit]: it loses as large a share as the probes do nearby.
fn displaced(covered: &[(Segment, f64)], losses: Losses) -> f64 {
    if losses.overflow <= 0.0 {
        return 0.0;
    }
    let full = losses.overflow / f64::from(losses.lost.max(1));
    let mut bits = 0.0;
    for near in covered.chunks(2 * NEAR) {
        let lost: f64 = near.iter().map(|(s, _)| f64::from(s.lost) * full).sum();
        let came: f64 = near.iter().map(|(s, _)| s.bits / PACKET).sum();
        let cross: f64 = near.iter().map(|(_, cross)| cross.max(0.0)).sum();
        // not more than the probes took from the line
        bits += (cross * lost / came.max(1.0)).min(came * PACKET);
    }
    bits
}

/// Cuts the ends so that what the queue has grown, which alone of all depends on C, is least.
fn trimmed(covered: &[(Segment, f64)]) -> Vec<(Segment, f64)> {
    let total: f64 = covered.iter().map(|(s, _)| s.time).sum();
    let mut marks = vec![(0.0, 0.0)]; // time and growth [s] up to each segment
    for (s, _) in covered {
        let &(time, grown) = marks.last().expect("one at least");
        marks.push((time + s.time, grown + s.wait - s.before));
    }
    // one in so many places is tried
    let step = covered.len() / TRIM_PLACES + 1;
    let mut best = (f64::INFINITY, 0, covered.len());
    for from in (0..marks.len()).step_by(step).take_while(|&i| marks[i].0 <= TRIM * total) {
        for to in (0..marks.len()).rev().step_by(step).take_while(|&i| marks[i].0 >= (1.0 - TRIM) * total) {
            let cost = (marks[to].1 - marks[from].1).abs() + TRIM_PRICE * (total - marks[to].0 + marks[from].0);
            if cost < best.0 && from < to {
                best = (cost, from, to);
            }
        }
    }
    covered[best.1..best.2].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: Segment = Segment {
        from: 0.0,
        time: 1e-3,
        low: 0.0,
        high: 0.0,
        joined: true,
        hidden: 0.0,
        wait: 0.0,
        before: 0.0,
        bits: 8000.0,
        lost: 0,
        unsure: 0.0,
    };

    /// 5 Mbit/s, of whose 4 s half were seen, with 1 Mbit/s of others in the first second and 3 in the second: each error by its
    /// formula, with the blocks' deviation by hand.
    #[test]
    fn each_error_is_what_its_formula_says() {
        let segment = |k: usize| (Segment { time: 0.1, ..SEGMENT }, if k < 10 { 1e5 } else { 3e5 });
        let balance = Balance {
            available: 3e6,
            time: 2.0,
            own: 1e6,
            open: 0.01,
            grown: -0.02,
            losses: Losses { lost: 9, overflow: 7.0, ..Losses::default() },
            runs: 4,
            late: 30e-6,
            displaced: 0.4e6,
            covered: (0..20).map(segment).collect(),
        };
        // one packet more or less in two seconds; in each of n blocks n times as much
        let ends = 0.41f64 * 12_000.0 / 2.0;
        // five blocks 1, 1, 2, 3, 3; ten: five of each
        let (five, ten): (f64, f64) = (1e12 - (5.0 * ends).powi(2), 1e12 * 10.0 / 9.0 - (10.0 * ends).powi(2));
        let exact = [
            (five / 5.0 * 0.5).sqrt(),
            0.5 * ten.sqrt(),
            0.5 * 2e6,
            ends * 2.0,
            5e6 * 0.005,
            5e6 * 0.01,
            1400.0 * 8.0 * 3.5,
            5e6 * 50e-6 / 2.0,
        ];
        let errors = balance.errors(5e6, 4.0);
        for k in 0..8 {
            assert!((errors[k] / exact[k] - 1.0).abs() < 1e-9, "{k}: {errors:?} {exact:?}");
        }
        let sum: f64 = errors.iter().zip(WEIGHTS).map(|(error, weight)| (error * weight).powi(2)).sum();
        assert!((balance.half_width(5e6, 4.0) / sum.sqrt() - 1.0).abs() < 1e-12);
        // where no probes were nothing was displaced
        assert_eq!([balance.over(4.0), balance.over(2.0), balance.over(1.0)], [2.8e6, 3e6, 3e6]);
    }

    #[test]
    fn the_line_was_perhaps_idle_where_probes_are_apart() {
        let segment = |k: usize| match k {
            50 => Segment { joined: false, hidden: 0.4e-3, high: 5000.0, ..SEGMENT },
            // so long that the host must have paused
            51 => Segment { joined: false, hidden: 0.9, time: 1.0, high: 5e6, ..SEGMENT },
            _ => SEGMENT,
        };
        let segments: Vec<Segment> = (0..100).map(segment).collect();
        let balance = Balance::of(&segments, Losses::default(), 5e6, 0.0).unwrap();
        assert!((balance.open - 0.4e-3).abs() < 1e-12 && (balance.time - 99e-3).abs() < 1e-9, "{balance:?}");
        assert_eq!(balance.runs, 2);
    }

    /// Half of what was lost found the queue full: others lose the same share nearby.
    #[test]
    fn others_lose_as_large_a_share_as_the_probes() {
        let segment = |k: usize| Segment { bits: PACKET, lost: u32::from(k < 4), ..SEGMENT };
        let covered: Vec<_> = (0..40).map(|k| (segment(k), if k == 0 { -1000.0 } else { 10_000.0 })).collect();
        // four lost, so that two of twenty found no place; and none in the second twenty
        let losses = Losses { lost: 4, overflow: 2.0, ..Losses::default() };
        assert!((displaced(&covered, losses) - 19.0 * 10_000.0 * 2.0 / 20.0).abs() < 1e-6);
        assert_eq!(displaced(&covered, Losses { lost: 4, ..Losses::default() }), 0.0);
        // where next to none of the probes came they have displaced no more than those carried
        let few: Vec<_> = (0..10).map(|_| (Segment { bits: PACKET, lost: 50, ..SEGMENT }, 50.0 * PACKET)).collect();
        let losses = Losses { lost: 500, overflow: 500.0, ..Losses::default() };
        assert!((displaced(&few, losses) - 10.0 * PACKET).abs() < 1e-6);
    }

    #[test]
    fn the_ends_are_cut_where_the_queue_is_as_long() {
        // the first five of a hundred fill the queue, then it stays
        let wait = |k: usize| k.min(5) as f64 * 10e-3;
        let filling = |k: usize| Segment { before: wait(k), wait: wait(k + 1), ..SEGMENT };
        let covered: Vec<(Segment, f64)> = (0..100).map(|k| (filling(k), 0.0)).collect();
        let left = trimmed(&covered);
        assert_eq!(left.len(), 95);
        assert_eq!(left[0].0.before, wait(5));
    }
}
