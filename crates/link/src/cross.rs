//! Sources of virtual cross traffic: when the next packet arrives.

use pathcast_base::{Bytes, Nanos, Rate, Stream};

use crate::Cross;

/// A source of cross traffic on one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrossId(pub(crate) u32);

/// Later than every event.
const NEVER: u64 = u64::MAX;

/// The time of one packet at a rate, with the part of a nanosecond carried on, so that the rate is exact.
#[derive(Clone, Debug)]
struct Gap {
    whole: u64,
    part: u64,
    rate: u64,
    carry: u64,
}

impl Gap {
    fn new(packet: Bytes, rate: Rate) -> Self {
        let bits = packet.0 * 8_000_000_000;
        Gap { whole: bits / rate.0, part: bits % rate.0, rate: rate.0, carry: 0 }
    }

    fn next(&mut self) -> u64 {
        // both are below the rate, whose sum may not fit
        if self.carry >= self.rate - self.part {
            self.carry -= self.rate - self.part;
            self.whole + 1
        } else {
            self.carry += self.part;
            self.whole
        }
    }
}

#[derive(Clone, Debug)]
enum Pattern {
    Constant(Gap),
    Poisson {
        mean: f64,
        /// Part of a nanosecond not yet waited.
        carry: f64,
    },
    /// Packets come every gap of on time, whatever off times lie between; so the mean rate is exact.
    Onoff {
        gap: Gap,
        shape: f64,
        mean_on: f64,
        mean_off: f64,
        on_left: u64,
        until_next: u64,
    },
}

impl Pattern {
    fn new(cross: &Cross, stream: &mut Stream) -> Self {
        match *cross {
            Cross::Constant { rate, packet } => Pattern::Constant(Gap::new(packet, rate)),
            Cross::Poisson { rate, packet } => {
                Pattern::Poisson { mean: packet.0 as f64 * 8e9 / rate.0 as f64, carry: 0.0 }
            }
            Cross::ParetoOnoff { rate, peak, on, shape, packet } => {
                let share = rate.0 as f64 / peak.0 as f64;
                let mean_on = on.0 as f64;
                let on_left = if stream.chance(share) { stream.pareto(shape, mean_on) as u64 } else { 0 };
                let gap = Gap::new(packet, peak);
                let until_next = 1 + (stream.uniform() * gap.whole as f64) as u64;
                Pattern::Onoff { gap, shape, mean_on, mean_off: mean_on * (1.0 / share - 1.0), on_left, until_next }
            }
        }
    }

    /// The first arrival of a source that starts at `start`.
    fn first(&mut self, start: u64, stream: &mut Stream) -> u64 {
        match self {
            Pattern::Constant(_) => start,
            _ => self.after(start, stream),
        }
    }

    fn after(&mut self, last: u64, stream: &mut Stream) -> u64 {
        match self {
            Pattern::Constant(gap) => last.saturating_add(gap.next()),
            Pattern::Poisson { mean, carry } => {
                let exact = stream.exponential(*mean) + *carry;
                *carry = exact - exact.floor();
                last.saturating_add(exact as u64)
            }
            Pattern::Onoff { gap, shape, mean_on, mean_off, on_left, until_next } => {
                let mut at = last;
                while *until_next > *on_left {
                    *until_next -= *on_left;
                    let off = stream.pareto(*shape, *mean_off) as u64;
                    at = at.saturating_add(*on_left).saturating_add(off);
                    *on_left = stream.pareto(*shape, *mean_on) as u64;
                }
                *on_left -= *until_next;
                at = at.saturating_add(*until_next);
                *until_next = gap.next();
                at
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Source {
    pattern: Pattern,
    stream: Stream,
    bytes: u32,
    start: u64,
    stop: u64,
    next: u64,
}

impl Source {
    fn begin(&mut self, cross: &Cross, start: u64) {
        let (Cross::Constant { packet, .. } | Cross::Poisson { packet, .. } | Cross::ParetoOnoff { packet, .. }) =
            cross;
        self.bytes = packet.0 as u32;
        self.start = start;
        self.pattern = Pattern::new(cross, &mut self.stream);
        let first = self.pattern.first(start, &mut self.stream);
        self.wait(first);
    }

    fn wait(&mut self, next: u64) {
        self.next = if next < self.stop { next } else { NEVER };
    }
}

/// All sources of one link, merged; at equal times in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    list: Vec<Option<Source>>,
    /// Next arrival of any source [ns] and its index; `NEVER` without one.
    head: Option<(u64, usize)>,
}

impl Sources {
    /// When the next virtual packet arrives [ns]; the end of time if none will.
    pub(crate) fn next(&self) -> u64 {
        self.head.map_or(NEVER, |(at, _)| at)
    }

    /// Takes the next virtual packet: its arrival [ns] and its bytes.
    pub(crate) fn pop(&mut self) -> Option<(u64, u32)> {
        self.pop_from().map(|(at, bytes, _)| (at, bytes))
    }

    /// The same, with its source.
    pub(crate) fn pop_from(&mut self) -> Option<(u64, u32, CrossId)> {
        let (at, index) = self.head?;
        let source = self.list[index].as_mut()?;
        let next = source.pattern.after(at, &mut source.stream);
        source.wait(next);
        let bytes = source.bytes;
        self.find_head();
        Some((at, bytes, CrossId(index as u32)))
    }

    pub(crate) fn add(&mut self, stream: Stream, cross: &Cross, start: u64, stop: Option<Nanos>) -> CrossId {
        let pattern = Pattern::Poisson { mean: 0.0, carry: 0.0 };
        let stop = stop.map_or(NEVER, |t| t.0);
        let mut source = Source { pattern, stream, bytes: 0, start, stop, next: NEVER };
        source.begin(cross, start);
        self.list.push(Some(source));
        self.find_head();
        CrossId(self.list.len() as u32 - 1)
    }

    pub(crate) fn set(&mut self, now: u64, id: CrossId, cross: &Cross) {
        if let Some(source) = self.list.get_mut(id.0 as usize).and_then(Option::as_mut) {
            source.begin(cross, now.max(source.start));
            self.find_head();
        }
    }

    /// From each source's next packet on, whose time stands already.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.list.iter_mut().flatten().for_each(|source| source.stream.reseed(seed));
    }

    pub(crate) fn remove(&mut self, id: CrossId) {
        if let Some(slot) = self.list.get_mut(id.0 as usize) {
            *slot = None;
            self.find_head();
        }
    }

    fn find_head(&mut self) {
        let arrivals = self.list.iter().enumerate().filter_map(|(i, s)| Some((s.as_ref()?.next, i)));
        self.head = arrivals.min().filter(|&(at, _)| at != NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(cross: Cross, seconds: u64) -> Vec<u64> {
        let mut sources = Sources::default();
        assert_eq!(cross.check(), Ok(()));
        sources.add(Stream::new(3, "test/cross"), &cross, 1000, Some(Nanos::secs(seconds)));
        std::iter::from_fn(|| sources.pop().map(|(at, _)| at)).collect()
    }

    fn bits(arrivals: &[u64]) -> f64 {
        arrivals.len() as f64 * 12_000.0
    }

    /// Variance over mean of the arrivals in windows of 100 ms: 1 for Poisson.
    fn dispersion(arrivals: &[u64], seconds: u64) -> f64 {
        let mut counts = vec![0.0; seconds as usize * 10];
        for at in arrivals {
            counts[(at / 100_000_000) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / counts.len() as f64 / mean
    }

    #[test]
    fn constant_is_exact_without_drift() {
        let rate = 7_000_000;
        let at = arrivals(Cross::Constant { rate: Rate(rate), packet: Bytes(1500) }, 60);
        assert!(at.iter().zip(0u64..).all(|(&at, k)| at == 1000 + k * 12_000_000_000_000 / rate));
        assert_eq!(at.len(), 35_000);
    }

    #[test]
    fn poisson_has_its_mean_and_dispersion() {
        let at = arrivals(Cross::Poisson { rate: Rate(12_000_000), packet: Bytes(1500) }, 200);
        assert!((bits(&at) / 200.0 / 12e6 - 1.0).abs() < 0.01);
        assert!((dispersion(&at, 200) - 1.0).abs() < 0.1);
    }

    #[test]
    fn pareto_onoff_has_its_mean_and_is_bursty() {
        let (rate, peak) = (Rate(4_000_000), Rate(12_000_000));
        let on = Nanos::millis(50);
        let at = arrivals(Cross::ParetoOnoff { rate, peak, on, shape: 1.9, packet: Bytes(1500) }, 2000);
        assert!((bits(&at) / 2000.0 / 4e6 - 1.0).abs() < 0.05, "{}", bits(&at) / 2000.0);
        assert!(dispersion(&at, 2000) > 10.0);
        // at the peak rate while on
        let at_peak = at.windows(2).filter(|w| w[1] - w[0] == 1_000_000).count();
        assert!(at_peak as f64 > 0.9 * at.len() as f64);
    }

    #[test]
    fn equal_times_go_by_the_order_of_adding() {
        let mut sources = Sources::default();
        let cross = |bytes: u64| Cross::Constant { rate: Rate(bytes * 8000), packet: Bytes(bytes) };
        let first = sources.add(Stream::new(1, "a"), &cross(100), 0, None);
        sources.add(Stream::new(1, "b"), &cross(200), 0, None);
        let taken: Vec<_> = (0..4).map(|_| sources.pop().unwrap()).collect();
        assert_eq!(taken, [(0, 100), (0, 200), (1_000_000, 100), (1_000_000, 200)]);
        sources.remove(first);
        assert_eq!(sources.pop(), Some((2_000_000, 200)));
    }
}
