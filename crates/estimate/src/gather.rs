//! Links that let packets gather and leave together, as Wi-Fi frames, LTE grants and DOCSIS request cycles do: what comes at one
//! opportunity comes at the rate of what is behind the link, or at once, which is nobody's capacity.
//!
//! Only the last packet of an opportunity has a stamp that says when the link was done with it. Trains are therefore made to look as
//! those that a receiving host gathers ([`crate::Batch`]), and C is what whole opportunities carried, over their time.

use pathcast_base::Nanos;

use super::dispersion::whole_batches;
use super::stat::{median, quantile, student90};
use super::{Batch, FASTEST, LARGE, Seen, TrainSeen};

/// Of two packets that are closer than this share of their train's mean gap the second came with the first.
const TOGETHER: f64 = 1.0 / 8.0;

/// And so it did on any line if it came within this [ns]: what a packet takes at 50 Gbit/s.
const AT_ONCE: Nanos = Nanos(200);
/// This share of a train's packets is most of them.
const MOSTLY: f64 = 0.6;

/// Opportunities are so far apart at least [s]: what hosts gather is shorter, and has its batches already.
const APART: f64 = 0.8e-3;

/// A pause that the sender made for more than this share is none of the link's.
const SENDERS: f64 = 0.5;

/// A link gathers if it paused so many times, and so large a share of the packets came with the one before.
const PAUSES: usize = 3;
const SHARE: f64 = 0.3;
/// Nor need so many have, where little more than one comes at each opportunity: in so many trains some did, and nearly all other gaps are
/// multiples of the same one, up to so many, within this share of it.
const SOME: usize = 2;
const MULTIPLES: f64 = 4.0;
const EVEN: (f64, f64) = (0.9, 0.04);
/// So many trains tell whether two that came together after a pause were a hint of that.
const HINTED: usize = 4;
/// Where more than this share overtook others what came together says nothing.
const OVERTOOK: f64 = 0.02;

/// A train that is to tell C lasts so many opportunities: the first and the last are not whole.
const SPAN: f64 = 4.0;

/// Nor is it shorter than so many packets, of which one more or less at an opportunity is little.
const LENGTH: usize = 20;

/// C by so many packets in whole opportunities at least, and so many trains; else by so many of all trains together.
const WHOLE: usize = 4;
pub(super) const TRAINS: usize = 3;
const POOLED: f64 = 8.0;

/// What trains that were sent back to back say of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gather {
    /// From opportunity to opportunity [s].
    apart: Vec<f64>,
    /// The most bits that came at once.
    most: f64,
    /// Gaps, how many of them were none, and how many packets came before the one that left before them.
    gaps: usize,
    together: usize,
    overtook: usize,
    /// Trains in which some came with the one before, all gaps in which none did [s], and whether any did after a pause.
    clumps: usize,
    alone: Vec<f64>,
    hinted: bool,
    trains: Vec<TrainSeen>,
}

impl Gather {
    pub fn add(&mut self, train: &TrainSeen) {
        self.trains.push(train.clone());
        let came = arrivals(train);
        let (Some(first), Some(last)) = (came.first(), came.last()) else { return };
        let mean = (last.1 - first.1) / (came.len() - 1).max(1) as f64;
        let (mut opens, mut paused, before) = (0, false, self.together);
        for (k, pair) in came.windows(2).enumerate() {
            let gap = pair[1].1 - pair[0].1;
            self.gaps += 1;
            self.together += usize::from((0.0..TOGETHER * mean).contains(&gap));
            self.overtook += usize::from(gap < 0.0);
            if gap >= TOGETHER * mean {
                self.alone.push(gap);
                paused |= gap > APART;
            } else {
                self.hinted |= paused && gap >= 0.0;
            }
            if gap > APART && gap > mean && pair[1].0 - pair[0].0 < SENDERS * gap {
                self.most = self.most.max((k + 1 - opens) as f64 * f64::from(LARGE) * 8.0);
                self.apart.push(gap);
                opens = k + 1;
            }
        }
        self.clumps += usize::from(self.together > before);
    }

    /// Whether some came together after a pause, as of no queue, and longer trains are to say whether the link sends so.
    pub fn is_hinted(&self) -> bool {
        self.hinted && self.trains.len() < HINTED && self.every().is_none()
    }

    /// Whether it ever was, whatever became of it.
    pub fn was_hinted(&self) -> bool {
        self.hinted
    }

    /// Whether some came with the one before, and all others at times that are as far apart as opportunities are.
    fn is_even(&self) -> bool {
        let Some(period) = quantile(&self.alone, 0.25).filter(|&period| period > APART) else { return false };
        let even = |gap: f64| {
            let times = (gap / period).round();
            (1.0..=MULTIPLES).contains(&times) && (gap - times * period).abs() <= EVEN.1 * period
        };
        let evens = self.alone.iter().filter(|&&gap| even(gap)).count();
        self.clumps >= SOME && evens as f64 >= EVEN.0 * self.alone.len() as f64
    }

    /// Whether many packets came with the one before.
    pub fn is_clumped(&self) -> bool {
        self.together as f64 > SHARE * self.gaps as f64
    }

    /// From one opportunity to the next [s], if the link has them.
    pub fn every(&self) -> Option<f64> {
        let gathers = self.apart.len() >= PAUSES && (self.is_clumped() || self.is_even());
        let gathers = gathers && self.overtook as f64 <= OVERTOOK * self.gaps as f64;
        quantile(&self.apart, 0.25).filter(|_| gathers)
    }

    /// What whole opportunities carried [bit/s], a train each.
    pub fn rates(&self) -> Vec<f64> {
        let slopes = self.slopes();
        // a short train in which none came together is slow by that
        let whole = if self.is_clumped() { WHOLE } else { LENGTH / 2 };
        slopes.iter().filter(|slope| slope.packets >= whole).map(|slope| slope.bits / slope.time).collect()
    }

    fn slopes(&self) -> Vec<Slope> {
        let Some(every) = self.every() else { return Vec::new() };
        self.trains.iter().filter_map(|train| slope(&joined(train, every))).collect()
    }

    /// C by all trains together, where they are too short to tell it one by one, and half of its 90 % interval [bit/s].
    pub fn pooled(&self) -> Option<(f64, f64)> {
        let slopes = self.slopes();
        let (n, bits, time) = (slopes.len(), sum(&slopes, |s| s.bits), sum(&slopes, |s| s.time));
        if n < TRAINS || bits < POOLED * f64::from(LARGE) * 8.0 {
            return None;
        }
        let c = bits / time;
        // of a ratio of sums
        let spread = (sum(&slopes, |s| (s.bits - c * s.time).powi(2)) * n as f64 / (n - 1) as f64).sqrt();
        Some((c, student90(n - 1) * spread / time))
    }

    /// C [bit/s].
    pub fn capacity(&self) -> Option<f64> {
        let rates = self.rates();
        median(&rates).filter(|_| rates.len() >= TRAINS).or_else(|| self.pooled().map(|(c, _)| c))
    }

    /// So many packets tell C, as far as it is known.
    pub fn train_length(&self) -> Option<usize> {
        let every = self.every()?;
        let bits = median(&self.rates()).map_or(self.most, |c| c * every);
        Some(((SPAN * bits / (f64::from(LARGE) * 8.0)) as usize + 1).max(LENGTH))
    }
}

/// Departure and arrival of those that came [s].
fn arrivals(train: &TrainSeen) -> Vec<(f64, f64)> {
    let Some(first) = train.packets.iter().find_map(|p| p.received) else { return Vec::new() };
    let at = |p: &Seen| Some((p.sent.as_secs_f64(), (p.received?.0 as f64 - first.0 as f64) / 1e9));
    train.packets.iter().filter_map(at).collect()
}

/// The train as if a host had handed over together what came at one opportunity of a link that has them every so often [s]; zero:
/// what came at once did.
pub(super) fn joined(train: &TrainSeen, every: f64) -> TrainSeen {
    let mut joined = train.clone();
    let came: Vec<usize> = (0..train.packets.len()).filter(|&k| train.packets[k].received.is_some()).collect();
    let at = |k: usize| train.packets[k].received.unwrap_or_default();
    let close = Nanos::from_secs_f64(TOGETHER * every).max(AT_ONCE);
    let together = |&a: &usize, &b: &usize| train.packets[b].batch.index > 0 || at(b).saturating_sub(at(a)) < close;
    for group in came.chunk_by(together) {
        let stamp = group.iter().map(|&k| at(k)).max();
        for (index, &k) in group.iter().enumerate() {
            joined.packets[k].received = stamp;
            joined.packets[k].batch = Batch { index: index as u32, of: group.len() as u32 };
        }
    }
    joined
}

/// The train with what came at once as one batch, where that is most of it: a host that is late now and then hands over two at once.
pub(super) fn at_once(train: &TrainSeen) -> TrainSeen {
    let came: Vec<u64> = train.packets.iter().filter_map(|p| Some(p.received?.0)).collect();
    let close = came.windows(2).filter(|w| (w[0]..w[0] + AT_ONCE.0).contains(&w[1])).count();
    if close as f64 > MOSTLY * came.len() as f64 { joined(train, 0.0) } else { train.clone() }
}

/// What whole opportunities carried of a train, and their time [s]; `packets`: so many came after the first of them.
struct Slope {
    packets: usize,
    bits: f64,
    time: f64,
}

fn sum(slopes: &[Slope], of: impl Fn(&Slope) -> f64) -> f64 {
    slopes.iter().map(of).sum()
}

fn slope(train: &TrainSeen) -> Option<Slope> {
    let usable = &train.packets[..whole_batches(train)];
    let marks: Vec<usize> = (0..usable.len()).filter(|&k| usable[k].own_delay().is_some()).collect();
    let (&first, &last) = (marks.first()?, marks.last()?);
    let bits: u64 =
        usable[first + 1..=last].iter().filter(|p| p.received.is_some()).map(|p| u64::from(p.size) * 8).sum();
    let time = usable[last].received?.saturating_sub(usable[first].received?).as_secs_f64();
    (time > 0.0 && bits as f64 <= FASTEST * time).then(|| Slope { packets: last - first, bits: bits as f64, time })
}

#[cfg(test)]
mod tests {
    use super::super::testing::train;
    use super::*;

    const US: u64 = 1000;
    const MS: u64 = 1000 * US;

    /// 40 packets back to back through 28 Mbit/s (0.4 ms each), which let them go every 2.5 ms, behind it 10 Gbit/s.
    fn gathered(id: u64, count: u64, phase: u64) -> TrainSeen {
        let mut last = 0;
        let received = (1..=count).map(|k| {
            let done = phase + k * 400 * US;
            last = (done.div_ceil(2500 * US) * 2500 * US).max(last + 1120);
            Some(last)
        });
        train(id, 1400, &vec![0; count as usize], &received.collect::<Vec<_>>())
    }

    #[test]
    fn a_link_that_gathers_is_told_by_its_pauses_and_its_rate_by_whole_opportunities() {
        let mut gather = Gather::default();
        for (id, phase) in [(0, 0), (1, 700 * US), (2, 1600 * US), (3, 2100 * US)] {
            gather.add(&gathered(id, 40, phase));
        }
        assert!((gather.every().unwrap() / 2.5e-3 - 1.0).abs() < 0.01, "{:?}", gather.every());
        assert!((gather.capacity().unwrap() / 28e6 - 1.0).abs() < 0.03, "{:?}", gather.rates());
        // four opportunities of six packets
        assert!((24..=28).contains(&gather.train_length().unwrap()), "{:?}", gather.train_length());
    }

    /// Packets back to back through a slow link that lets them go every 4 ms: little more than one each time.
    fn granted(id: u64, count: u64, rate: f64, phase: u64) -> TrainSeen {
        let service = (f64::from(LARGE) * 8.0 / rate * 1e9) as u64;
        let at = (1..=count).map(|k| Some((phase + k * service).div_ceil(4 * MS) * 4 * MS + k * US));
        train(id, 1400, &vec![0; count as usize], &at.collect::<Vec<_>>())
    }

    #[test]
    fn where_little_more_than_one_comes_at_a_time_all_gaps_are_multiples_of_one() {
        for rate in [3.2e6, 3.5e6, 3.8e6] {
            let mut gather = Gather::default();
            for id in 0..7 {
                gather.add(&granted(id, 5, rate, id * 700 * US));
            }
            assert!(!gather.is_clumped(), "{rate}");
            assert!((gather.every().unwrap() / 4e-3 - 1.0).abs() < 0.01, "{rate} {:?}", gather.every());
            // too short one by one
            assert!(gather.rates().len() < TRAINS);
            let (c, half) = gather.pooled().unwrap();
            assert!((c / rate - 1.0).abs() < 0.15 && half > 0.0, "{rate}: {c} {half}");
            let mut gather = Gather::default();
            (0..4).for_each(|id| gather.add(&granted(id, LENGTH as u64, rate, id * 700 * US)));
            assert!((gather.capacity().unwrap() / rate - 1.0).abs() < 0.06, "{rate} {:?}", gather.rates());
        }
    }

    #[test]
    fn the_first_that_come_together_after_a_pause_are_a_hint() {
        let of = |at: [u64; 5]| {
            let mut gather = Gather::default();
            gather.add(&train(0, 1400, &[0; 5], &at.map(|at| Some(at * US))));
            gather.is_hinted()
        };
        assert!(of([0, 4000, 8000, 8001, 12_000]) && of([0, 1, 4000, 8000, 8001]));
        // a shaper's burst; a steady queue; one with others between
        assert!(!of([0, 1, 4000, 8000, 12_000]) && !of([0, 4000, 8000, 12_000, 16_000]));
        assert!(!of([0, 4000, 12_000, 16_000, 20_000]));
        let mut gather = Gather::default();
        for id in 0..7 {
            // others' packets, as large, in every third gap
            let at = (0..5).map(|k| Some((k + k / 3) * 4 * MS));
            gather.add(&train(id, 1400, &[0; 5], &at.collect::<Vec<_>>()));
        }
        assert_eq!(gather.every(), None, "nobody came together");
    }

    #[test]
    fn a_queue_is_none_with_others_between_or_a_sender_that_was_held_up() {
        let mut gather = Gather::default();
        for id in 0..9 {
            // each fifth packet has met another one, which takes longer than what links gather
            let at = (0..40).map(|k| Some((k + k / 5) * 1000 * US));
            gather.add(&train(id, 1400, &[0; 40], &at.collect::<Vec<_>>()));
        }
        assert_eq!(gather.every(), None);
        let mut gather = Gather::default();
        for id in 0..9 {
            let sent: Vec<u64> = (0..40).map(|k| k / 10 * 5000 * US).collect();
            let at: Vec<_> = (0..40).map(|k| Some(sent[k as usize] + (k + 1) * 10 * US)).collect();
            gather.add(&train(id, 1400, &sent, &at));
        }
        assert_eq!(gather.every(), None);
    }

    #[test]
    fn what_comes_at_once_is_one_batch_and_batches_of_a_host_stay_whole() {
        let mut seen = train(0, 1400, &[0; 6], &[0, 0, 300, 5000, 5800, 6500].map(|at| Some(at + MS)));
        for (k, index) in [(3, 0), (4, 1)] {
            seen.packets[k].batch = Batch { index, of: 2 };
        }
        let of = |every: f64| -> Vec<(u32, u32, u64)> {
            let packets = joined(&seen, every).packets;
            packets.iter().map(|p| (p.batch.index, p.batch.of, p.received.unwrap().0 - MS)).collect()
        };
        assert_eq!(of(0.0), [(0, 2, 0), (1, 2, 0), (0, 1, 300), (0, 2, 5800), (1, 2, 5800), (0, 1, 6500)]);
        // every 8 us: an eighth of it
        assert_eq!(of(8e-6)[..3], [(0, 3, 300), (1, 3, 300), (2, 3, 300)]);
        assert_eq!(of(8e-6)[3..], [(0, 3, 6500), (1, 3, 6500), (2, 3, 6500)]);
    }
}
