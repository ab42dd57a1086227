//! The probes of a thorough measurement as one trail: when each left, how long it waited, and where it was lost how long it
//! would have waited there.

use super::probing::{Phase, SPARSE};
use crate::{LARGE, TrainSeen, series};

/// A probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// None: of the measurement before.
    pub phase: Option<Phase>,
    /// Of the sparse flow.
    pub sparse: bool,
    /// When it left [s].
    pub left: f64,
    /// Its delay above the least of its size, if it came; else that of the large probes, or where there were none of the sparse
    /// ones, before and after it [s].
    pub wait: f64,
    /// Large probes before it that were still on their way through the queue.
    pub ahead: f64,
    /// Packets before it that were, others' too, taken for full-sized.
    pub packets: f64,
    /// How fast the wait of large ones grew there [s/s]; none where too few are near.
    pub grows: Option<f64>,
    /// For how long before it no large wait was seen [s].
    pub calm: f64,
    /// It did not come.
    pub lost: bool,
    /// It came, but with others, or nobody knows when: its wait is theirs.
    pub guessed: bool,
    /// The rate of its train [bit/s].
    pub rate: f64,
}

/// All probes in the order in which they left.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// See [`Point`].
    pub points: Vec<Point>,
    /// When the push began again, if it did [s].
    pub again: f64,
    /// So long a probe that met nobody may seem to have waited: hosts that are late [s].
    pub late: f64,
}

/// Further apart than so long [s], or so many packets' time, neighbours say nothing of a probe's wait.
const NEAR: (f64, f64) = (0.1, 3.0);

/// Growth is looked at over so long a time to both sides [s], or so many packets' time.
const AROUND: (f64, f64) = (50e-3, 6.0);

/// Waits by the time of departure, and how far apart neighbours may be [s].
struct Line {
    waits: Vec<(f64, f64)>,
    near: f64,
}

impl Line {
    /// Between the neighbours; none if neither is near.
    fn at(&self, left: f64) -> Option<f64> {
        self.between(self.waits.partition_point(|p| p.0 < left), left)
    }

    /// The same where the first `k` left before: of packets that left at one and the same time their order tells.
    fn between(&self, k: usize, left: f64) -> Option<f64> {
        let near = |p: &&(f64, f64)| (p.0 - left).abs() <= self.near;
        let before = k.checked_sub(1).and_then(|k| self.waits.get(k)).filter(near);
        match (before, self.waits.get(k).filter(near)) {
            (Some(a), Some(b)) if b.0 > a.0 => Some(a.1 + (b.1 - a.1) * (left - a.0) / (b.0 - a.0)),
            (Some(only), _) | (None, Some(only)) => Some(only.1),
            (None, None) => None,
        }
    }

    /// From so long before to so long after, in a second.
    fn growth(&self, left: f64, around: f64) -> Option<f64> {
        Some((self.at(left + around)? - self.at(left - around)?) / (2.0 * around))
    }
}

/// Bits of others' packets, as far as it is not known.
pub const OTHERS: f64 = 12_000.0;

/// What is before each. `c`: the capacity [bit/s].
fn look_back(points: &mut [Point], c: f64, quiet: f64) {
    let mut on_way = [std::collections::VecDeque::new(), std::collections::VecDeque::new()];
    let mut restless = f64::NEG_INFINITY;
    for p in points {
        for queue in &mut on_way {
            while queue.front().is_some_and(|&through| through <= p.left) {
                queue.pop_front();
            }
        }
        let [large, sparse] = [0, 1].map(|k| on_way[k].len() as f64);
        p.ahead = large;
        let others = p.wait * c - 8.0 * (large * f64::from(LARGE) + sparse * f64::from(SPARSE));
        p.packets = large + sparse + (others / OTHERS).max(0.0);
        p.calm = p.left - restless;
        if p.wait > quiet {
            restless = p.left + p.wait;
        }
        if !p.lost && p.wait.is_finite() {
            on_way[usize::from(p.sparse)].push_back(p.left + p.wait);
        }
    }
}

/// What comes by no more than this before one that left earlier came with it [s].
const WITH: f64 = 1e-6;

/// Whether a large one that left later came before each of these.
fn overtaken(came: &[&Point]) -> Vec<bool> {
    let (mut least, mut found) = (f64::INFINITY, vec![false; came.len()]);
    for (p, found) in came.iter().zip(&mut found).rev().filter(|(p, _)| !p.sparse && !p.guessed) {
        let at = p.left + p.wait;
        *found = at > least + WITH;
        least = least.min(at);
    }
    found
}

impl Trail {
    /// The share of the large probes of the loaded phases that were overtaken.
    pub fn overtook(&self) -> f64 {
        let came: Vec<&Point> = self.loaded().filter(|p| p.wait.is_finite() && !p.lost && !p.guessed).collect();
        overtaken(&came).into_iter().filter(|&overtaken| overtaken).count() as f64 / came.len().max(1) as f64
    }

    /// Of trains, each with its phase, if any, whether it was of the sparse flow, and its rate. `c`: the capacity [bit/s];
    /// `quiet`: a longer wait [s] is a queue's.
    pub fn of<'a>(
        trains: impl Iterator<Item = (&'a TrainSeen, Option<Phase>, bool, f64)> + Clone,
        c: f64,
        quiet: f64,
    ) -> Trail {
        let floor = |size: u16| {
            let of = trains.clone().map(|t| t.0).filter(|t| t.packets.first().is_some_and(|p| p.size == size));
            series::base(of).map(|base| base.floor)
        };
        let mut floors = [LARGE, SPARSE].map(|size| (size, floor(size)));
        // a large packet takes longer by its own bits at least: its floor, where none met an empty queue
        if let [(_, Some(large)), (_, Some(sparse))] = &mut floors {
            let more = f64::from(LARGE - SPARSE) * 8e9 / c;
            let least = sparse.delay_at(large.at) + more;
            if large.delay > least + 2.0 * more {
                large.delay = least;
            }
        }
        let fast = |&(_, phase, sparse, rate): &(&TrainSeen, Option<Phase>, bool, f64)| {
            !sparse && (phase.is_none() || rate >= c)
        };
        let late = series::late(trains.clone().filter(fast).map(|t| t.0), c);
        let mut points = Vec::new();
        let packet = 8.0 * f64::from(LARGE) / c;
        let near = NEAR.0.max(NEAR.1 * packet);
        let mut known = [0, 1].map(|_| Line { waits: Vec::new(), near });
        for (train, phase, sparse, rate) in trains {
            for p in &train.packets {
                let Some(floor) = floors.iter().find(|f| f.0 == p.size).and_then(|f| f.1) else { continue };
                let left = p.sent.as_secs_f64();
                let wait = p.own_delay().map(|delay| (delay as f64 - floor.delay_at(p.sent.0)).max(0.0) / 1e9);
                known[usize::from(sparse)].waits.extend(wait.map(|wait| (left, wait)));
                let lost = p.lost();
                points.push(Point {
                    phase,
                    sparse,
                    left,
                    wait: wait.unwrap_or(f64::NAN),
                    ahead: 0.0,
                    packets: 0.0,
                    grows: None,
                    calm: 0.0,
                    lost,
                    guessed: wait.is_none() && !lost,
                    rate,
                });
            }
        }
        points.sort_by(|a, b| a.left.total_cmp(&b.left));
        known.iter_mut().for_each(|line| line.waits.sort_by(|a, b| a.0.total_cmp(&b.0)));
        let [large, sparse] = &known;
        let mut before = [0, 0];
        for p in &mut points {
            if p.wait.is_nan() {
                let wait = large.between(before[0], p.left).or_else(|| sparse.between(before[1], p.left));
                p.wait = wait.unwrap_or(f64::NAN);
            } else {
                before[usize::from(p.sparse)] += 1;
            }
        }
        let around = AROUND.0.max(AROUND.1 * packet);
        for p in points.iter_mut().filter(|p| !p.sparse && p.phase.is_some()) {
            p.grows = large.growth(p.left, around);
        }
        look_back(&mut points, c, quiet);
        Trail { points, again: 0.0, late }
    }

    /// Large probes of a phase.
    pub fn large(&self, phase: Phase) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |p| p.phase == Some(phase) && !p.sparse)
    }

    /// Large probes of the phases in which more was sent than is free, or all of it.
    pub fn loaded(&self) -> impl Iterator<Item = &Point> {
        let loaded = |p: &&Point| p.phase.is_some_and(|phase| phase.is_loaded()) && !p.sparse;
        self.points.iter().filter(loaded)
    }

    /// Sparse probes of a phase.
    pub fn sparse(&self, phase: Phase) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |p| p.phase == Some(phase) && p.sparse)
    }

    /// What sparse probes of a phase that came waited [s], without those that waited for what was sent before, and when
    /// each left.
    pub fn alone(&self, phase: Phase) -> Vec<(f64, f64)> {
        let counts = |p: &&Point| !p.lost && p.wait.is_finite() && p.ahead == 0.0;
        self.sparse(phase).filter(counts).map(|p| (p.left, p.wait)).collect()
    }

    /// The same without the times.
    pub fn idle(&self, phase: Phase) -> Vec<f64> {
        self.alone(phase).into_iter().map(|wait| wait.1).collect()
    }

    /// For each sparse probe of the loaded phases that came: its wait, and what it waits in one queue for all at least [s]: until the
    /// large probe before it has left the queue. None: that had left it already, and the queue may have been empty.
    /// Behind a large one that others overtook there is no pair: it was late elsewhere.
    pub fn beside(&self) -> Vec<(f64, Option<f64>)> {
        let came: Vec<&Point> = self.points.iter().filter(|p| p.wait.is_finite() && !p.lost).collect();
        let (mut pairs, mut before, overtaken) = (Vec::new(), None, overtaken(&came));
        for (p, overtaken) in came.into_iter().zip(overtaken) {
            if !p.sparse {
                before = Some(if overtaken { f64::INFINITY } else { p.left + p.wait });
            } else if before != Some(f64::INFINITY) && p.phase.is_some_and(|phase| phase.is_loaded()) {
                pairs.push((p.wait, before.map(|leaves: f64| leaves - p.left).filter(|&least| least > 0.0)));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::train;

    /// Ten packets leave at one and the same time, a queue has room for six of them: the others found it full, not as long
    /// as it was for the first.
    #[test]
    fn of_what_left_together_the_order_tells_what_was_lost_where() {
        const TAKES: u64 = 80_000;
        let burst = |id: u64, at: u64| {
            let came = |k: u64| (k < 6).then_some(at + 500_000 + (k + 1) * TAKES);
            train(id, LARGE, &[at; 10], &std::array::from_fn::<_, 10, _>(|k| came(k as u64)))
        };
        let trains = [burst(0, 0), burst(1, 10_000_000), burst(2, 20_000_000)];
        let c = f64::from(LARGE) * 8e9 / TAKES as f64;
        let trail = Trail::of(trains.iter().map(|train| (train, None, false, 0.0)), c, 1e-3);
        let waits: Vec<f64> = trail.points.iter().filter(|p| p.lost).map(|p| p.wait).collect();
        assert_eq!(waits.len(), 12);
        assert!(waits.iter().all(|wait| (wait - 5.0 * TAKES as f64 / 1e9).abs() < 1e-6), "{waits:?}");
    }

    /// A line of 100 kbit/s: a large packet every 0.112 s, sparse ones beside it in a queue of their own.
    #[test]
    fn on_a_slow_line_the_neighbours_of_a_large_one_are_far() {
        let ms = |at: f64| (at * 1e6) as u64;
        let large: Vec<u64> = (0..20).map(|k| ms(1000.0 + 112.0 * f64::from(k))).collect();
        let came: Vec<Option<u64>> = large.iter().enumerate().map(|(k, at)| (k != 9).then(|| at + ms(500.0))).collect();
        let sparse: Vec<u64> = (0..80).map(|k| ms(1000.0 + 28.0 * f64::from(k))).collect();
        let quick: Vec<Option<u64>> = sparse.iter().map(|at| Some(at + ms(20.0))).collect();
        let alone = train(0, LARGE, &[0], &[Some(ms(200.0))]);
        let (large, sparse) = (train(1, LARGE, &large, &came), train(2, SPARSE, &sparse, &quick));
        let push = Some(Phase::Push);
        let trains = [(&alone, None, false, 0.0), (&large, push, false, 100e3), (&sparse, push, true, 0.0)];
        let trail = Trail::of(trains.into_iter(), 100e3, 1e-3);
        let lost: Vec<f64> = trail.points.iter().filter(|p| p.lost).map(|p| p.wait).collect();
        assert!(lost.len() == 1 && (lost[0] - 0.3).abs() < 0.02, "{lost:?}");
    }
}
