//! Whether two paths share a bottleneck, by joint probing: one is filled steadily, the other one at once in pulses by a code
//! ([`pulses`]), then the other way round. Where both go through one bottleneck, what comes out of the first one falls short
//! of what was sent when the *other* one's pulses pass.
//!
//! RFC 8382 compares what passively seen delays look like (skew, variability, oscillation), and needs others' traffic and
//! minutes. Pulses need neither, and hold for any queue: in a common one the delay grows, in a fair one the share shrinks,
//! behind a policer and in a full queue packets are lost.
//!
//! Both series are looked at by when their packets came, not by when they were sent: a queue, be it one that each flow has
//! for itself, says then what its bottleneck does. For every lag that the ways behind it allow, the shortfall is regressed on
//! the other's rate. How much of a slope is chance follows from codes that nobody sent. The lag is not known, and how strong
//! the effect is neither: the likelihood is the mean over both.

pub mod pulses;

use pathcast_base::{Nanos, Stream};

pub use pulses::{Bin, Pulses, Response};
use pulses::{PARTS, PHASE};

/// Codes that nobody sent.
const NULLS: usize = 150;
/// Shortfall [share of what was sent] for each share of the capacity that the other path sends: what may come of a shared
/// bottleneck. Of one direction nothing, as where its own share of a fair queue is enough for it.
const EFFECTS: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8];
/// Slopes of the null spread so many times as much as those of drawn codes, which know nothing of a rate that changes with
/// the delay; and by this at least.
const WIDER: f64 = 1.25;
const FLOOR: f64 = 0.01;
/// Where pulses differ by less than this share of what their code says, since a slot has few packets and even an empty one some,
/// codes that nobody sent are drawn from what was sent.
const AS_SAID: f64 = 0.7;
/// How often shared bottlenecks show nothing, for they are not filled.
const UNFILLED: f64 = 0.1;
/// A queue empties no faster than this [s in a second]; a shortfall of more than all, or a gain of as much, is none.
const EMPTIES: f64 = -0.9;
const SHORTFALL: f64 = 1.0;
/// Fewer bins of a phase tell nothing.
const LEAST: usize = 30;
/// Steps of the lag in a bin, and at most so many to either side.
const STEPS: f64 = 2.0;
const REACH: f64 = 400.0;
/// Logarithm of the greatest likelihood ratio that is told.
const MOST: f64 = 60.0;

/// How many times as probable what came of it is where the two paths share their bottleneck. None: too few probes came.
///
/// responses: of the path that was filled steadily first, and of the other one. capacity: of both [bit/s]. lag: the ways
/// behind the bottleneck differ by at most this.
pub fn likelihood_ratio(responses: [&Response; 2], capacity: [f64; 2], lag: Nanos) -> Option<f64> {
    let [one, other] = responses.map(Series::of);
    let (one, other) = (one?, other?);
    let tests = [Test::of(&one, &other, 0, capacity[0]), Test::of(&other, &one, 1, capacity[1])];
    let step = one.bin.min(other.bin) / STEPS;
    let reach = (lag.as_secs_f64() / step).ceil().min(REACH) as i64;
    let (mut odds, mut lags) = (0.0, 0.0);
    for k in -reach..=reach {
        let late = k as f64 * step;
        let (mut log, mut cases) = (0.0, 1.0);
        for (test, late) in tests.iter().zip([late, -late]) {
            if let Some(of) = test.as_ref().and_then(|test| test.log_ratio(late)) {
                log += of;
                cases *= EFFECTS.len() as f64;
            }
        }
        if cases > 1.0 {
            // of all combinations that of no effect at all is the other hypothesis
            odds += ((f64::exp(log.min(MOST)) * cases - 1.0) / (cases - 1.0)).max(0.0);
            lags += 1.0;
        }
    }
    (lags > 0.0).then(|| UNFILLED + (1.0 - UNFILLED) * odds / lags)
}

/// The same of several attempts, of which each has its ratio.
pub fn probability(ratios: &[f64]) -> f64 {
    let odds = ratios.iter().product::<f64>();
    if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
}

/// A response by when its packets came.
struct Series {
    /// Of the bins: when the middle one of the packets came [s], the rate that was sent [bit/s], and what share of it fell
    /// short; none where nothing was sent.
    came: Vec<f64>,
    rate: Vec<f64>,
    short: Vec<Option<f64>>,
    bin: f64,
}

impl Series {
    fn of(response: &Response) -> Option<Series> {
        let (bin, bins) = (response.bin.as_secs_f64(), &response.bins);
        let delays = delays(bins)?;
        let rate = |of: &Bin| f64::from(of.sent) * f64::from(response.size) * 8.0 / bin;
        let mut came: Vec<f64> = Vec::with_capacity(bins.len());
        let mut short = Vec::with_capacity(bins.len());
        for (k, of) in bins.iter().enumerate() {
            let at = response.start.as_secs_f64() + (k as f64 + 0.5) * bin + delays[k];
            came.push(came.last().map_or(at, |&last| at.max(last)));
            let (before, behind) = (k.saturating_sub(1), (k + 1).min(bins.len() - 1));
            let grown = (delays[behind] - delays[before]) / ((behind - before).max(1) as f64 * bin);
            short.push((of.sent > 0).then(|| {
                let lost = f64::from(of.lost) / f64::from(of.sent);
                (1.0 - (1.0 - lost) / (1.0 + grown.max(EMPTIES))).clamp(-SHORTFALL, SHORTFALL)
            }));
        }
        Some(Series { came, rate: bins.iter().map(rate).collect(), short, bin })
    }

    /// What was sent in the slots of the phase from this bin on [bit/s, by bin], those with the least first.
    fn slots(&self, from: usize) -> Slots {
        let rate = |bin: usize| self.rate.get(bin).copied().unwrap_or(0.0);
        let mut slots: Slots = std::array::from_fn(|k| std::array::from_fn(|part| rate(from + k * PARTS + part)));
        slots.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum()));
        slots
    }

    /// The bin of what came nearest to this time.
    fn at(&self, at: f64) -> usize {
        let next = self.came.partition_point(|&came| came < at).min(self.came.len() - 1);
        let last = next.saturating_sub(1);
        if at - self.came[last] < self.came[next] - at { last } else { next }
    }
}

type Slots = [[f64; PARTS]; PHASE];

/// By how much more was sent in the middle one of the slots with a pulse than in that of the others [bit/s].
fn differ(sent: &Slots) -> f64 {
    let rate = |slot: usize| sent[slot].iter().sum::<f64>() / PARTS as f64;
    rate(PHASE / 4 * 3) - rate(PHASE / 4)
}

/// The same slots in the order of another code.
fn by_code(sent: &Slots, code: &[bool; PHASE]) -> Slots {
    let (mut low, mut high) = (0..PHASE / 2, PHASE / 2..PHASE);
    code.map(|pulse| sent[if pulse { high.next() } else { low.next() }.expect("as many with a pulse as without")])
}

/// Delays of the bins [s], between those of others where none is known.
fn delays(bins: &[Bin]) -> Option<Vec<f64>> {
    let known: Vec<(usize, f64)> =
        (0..bins.len()).filter(|&k| bins[k].sent > bins[k].lost).map(|k| (k, bins[k].delay_us as f64 / 1e6)).collect();
    let (first, last) = (*known.first()?, *known.last()?);
    let mut found = vec![first.1; first.0];
    for pair in known.windows(2) {
        let ((from, low), (to, high)) = (pair[0], pair[1]);
        found.extend((from..to).map(|k| low + (high - low) * (k - from) as f64 / (to - from) as f64));
    }
    found.resize(bins.len(), last.1);
    Some(found)
}

/// One path's shortfall while it is filled steadily, and the other one in pulses.
struct Test<'a> {
    other: &'a Series,
    /// When packets came [s], and the shortfall.
    seen: Vec<(f64, f64)>,
    /// The first bin of the phase.
    from: usize,
    capacity: f64,
    /// Of slopes over codes that nobody sent.
    spread: f64,
}

impl<'a> Test<'a> {
    fn of(own: &Series, other: &'a Series, phase: usize, capacity: f64) -> Option<Test<'a>> {
        let from = phase * PHASE * PARTS;
        // without the first and the last one, whose neighbours are of the other phase
        let bins = from + 1..(from + PHASE * PARTS - 1).min(own.short.len());
        let seen = bins.filter_map(|k| Some((own.came[k], own.short[k]?))).collect();
        let mut test = Test { other, seen, from, capacity, spread: 0.0 };
        let high = other.rate.iter().fold(0.0, |most: f64, &rate| most.max(rate)) * pulses::PULSE / pulses::STEADY;
        let sent = Some(other.slots(from)).filter(|sent| differ(sent) < AS_SAID * high);
        // a code is what was sent, and so goes through the other path's delays too
        let (seen, slots) = test.beside(0.0)?;
        let mut stream = Stream::new(1, "estimate/shared");
        let (mut squares, mut codes) = (0.0, 0.0);
        for _ in 0..NULLS {
            let code = pulses::code(&mut stream);
            let said = code.map(|pulse| [if pulse { high } else { 0.0 }; PARTS]);
            let sent = sent.as_ref().map_or(said, |sent| by_code(sent, &code));
            let rates: Vec<f64> = slots.iter().map(|&k| sent[(k - from) / PARTS][(k - from) % PARTS]).collect();
            if let Some(slope) = slope(&seen, &rates, capacity) {
                squares += slope * slope;
                codes += 1.0;
            }
        }
        test.spread = WIDER * f64::sqrt(squares / codes);
        (codes > 0.0).then_some(test)
    }

    /// The shortfall, and the other path's bin that came so much later [s], where that is one of the phase.
    fn beside(&self, late: f64) -> Option<(Vec<f64>, Vec<usize>)> {
        let phase = self.from..self.from + PHASE * PARTS;
        let pairs = self.seen.iter().map(|&(at, short)| (short, self.other.at(at + late)));
        let (seen, bins): (Vec<_>, Vec<_>) = pairs.filter(|(_, bin)| phase.contains(bin)).unzip();
        (seen.len() >= LEAST).then_some((seen, bins))
    }

    /// Logarithm of how much better some effect, or none, explains what was found than none, where the other's pulses come
    /// so much later [s].
    fn log_ratio(&self, late: f64) -> Option<f64> {
        let (seen, bins) = self.beside(late)?;
        let rates: Vec<f64> = bins.iter().map(|&bin| self.other.rate[bin]).collect();
        let slope = slope(&seen, &rates, self.capacity)?;
        let variance = self.spread * self.spread + FLOOR * FLOOR;
        let logs = EFFECTS.map(|effect| (slope * effect - effect * effect / 2.0) / variance);
        let most = logs.iter().fold(0.0, |most: f64, &log| most.max(log));
        Some(most + (logs.iter().map(|log| (log - most).exp()).sum::<f64>() / EFFECTS.len() as f64).ln())
    }
}

/// Slope of the shortfall over rates [bit/s], as shares of the capacity.
fn slope(seen: &[f64], rates: &[f64], capacity: f64) -> Option<f64> {
    let n = rates.len() as f64;
    let (mean, short) = (rates.iter().sum::<f64>() / n, seen.iter().sum::<f64>() / n);
    let (mut products, mut squares) = (0.0, 0.0);
    for (&y, &rate) in seen.iter().zip(rates) {
        let x = (rate - mean) / capacity;
        products += x * (y - short);
        squares += x * x;
    }
    (squares > 1e-9 * n).then(|| products / squares)
}

#[cfg(test)]
mod tests;
