//! What the ride has seen of the cross traffic, in sum, and how far that may be off.

use super::super::series::{self, Segment};
use super::super::stat::{deviation, student90};
use super::PACKET;

/// Cross traffic over all segments.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    pub(super) available: f64,
    /// Covered time [s].
    pub(super) time: f64,
    /// Of it the line was perhaps idle [s].
    pub(super) open: f64,
    /// How much longer the queue is at the end [s of service].
    pub(super) grown: f64,
    /// Packets lost.
    pub(super) lost: u32,
    /// Stretches of covered time.
    pub(super) runs: usize,
    /// Segments and the cross traffic in them [bit].
    pub(super) covered: Vec<(Segment, f64)>,
}

/// A segment that is not joined and longer than this many packets at the mean rate is a pause (of the sending host, of the
/// method), not a part of the ride.
const PAUSE: f64 = 4.0;

/// Bits of a packet of cross traffic, as far as it matters: one more or less at the ends of a stretch.
pub(super) const CROSS: f64 = 12_000.0;

/// The standard deviation of a sum that is one packet more or less by the place of its ends.
pub(super) const ENDS: f64 = 0.41;

/// How far the ends of the ride may be cut off to have the queue as long at the end as at the beginning.
const TRIM: f64 = 0.2;

impl Balance {
    pub(super) fn of(segments: &[Segment], c: f64, blur: f64) -> Option<Balance> {
        let total: f64 = segments.iter().map(|s| s.time).sum();
        let joined: f64 = segments.iter().filter(|s| s.joined).map(|s| s.time).sum();
        let exact: f64 = segments.iter().filter(|s| s.joined).map(|s| s.low).sum();
        if total <= 0.0 {
            return None;
        }
        let rough = if joined > 0.0 { (exact / joined).clamp(0.0, 0.98 * c) } else { 0.5 * c };
        let pause = PAUSE * PACKET / (c - rough);
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
        let lost = covered.iter().map(|(s, _)| s.lost).sum();
        let grown = covered.iter().map(|(s, _)| s.wait - s.before).sum();
        let runs = 1 + segments.iter().filter(|s| !kept(s)).count();
        Some(Balance { available: c - cross / time, time, open, grown, lost, runs, covered })
    }

    /// Half of the 90 % interval [bit/s]; `whole` is how long the measurement took [s].
    pub(super) fn half_width(&self, c: f64, whole: f64) -> f64 {
        let rate = c - self.available;
        let each = self.time / 10.0;
        let mut rates = Vec::new();
        let (mut time, mut bits) = (0.0, 0.0);
        for (s, cross) in &self.covered {
            time += s.time;
            bits += cross;
            if time >= each {
                rates.push(bits / time);
                (time, bits) = (0.0, 0.0);
            }
        }
        let packets = ENDS * CROSS.min(rate * self.time);
        let spread = deviation(&rates).unwrap_or(rate).powi(2) - (packets / each).powi(2);
        let unseen = (whole / self.time - 1.0).max(0.0);
        let parts = [
            (spread.max(0.0) * unseen / rates.len().max(1) as f64).sqrt(),
            packets * (self.runs as f64).sqrt() / self.time,
            0.4 * c * self.open / self.time,
            (0.1 * c + 0.7 * rate) * self.grown / self.time,
            0.4 * PACKET * f64::from(self.lost).sqrt() / self.time,
            0.0006 * c,
        ];
        let all: f64 = parts.iter().map(|part| part * part).sum();
        student90(rates.len().saturating_sub(1)) * all.sqrt()
    }
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
    let step = covered.len() / 200 + 1;
    let mut best = (f64::INFINITY, 0, covered.len());
    for from in (0..marks.len()).step_by(step).take_while(|&i| marks[i].0 <= TRIM * total) {
        for to in (0..marks.len()).rev().step_by(step).take_while(|&i| marks[i].0 >= (1.0 - TRIM) * total) {
            let cost = 0.3 * (marks[to].1 - marks[from].1).abs() + 0.05 * (total - marks[to].0 + marks[from].0);
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

    #[test]
    fn the_ends_are_cut_where_the_queue_is_as_long() {
        let segment = Segment {
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
        // the first five of a hundred fill the queue, then it stays
        let wait = |k: usize| k.min(5) as f64 * 10e-3;
        let filling = |k: usize| Segment { before: wait(k), wait: wait(k + 1), ..segment };
        let covered: Vec<(Segment, f64)> = (0..100).map(|k| (filling(k), 0.0)).collect();
        let left = trimmed(&covered);
        assert_eq!(left.len(), 95);
        assert_eq!(left[0].0.before, wait(5));
    }
}
