//! Available bandwidth as a range, by self-loading periodic streams: M. Jain and C. Dovrolis, "Pathload: a measurement tool for
//! end-to-end available bandwidth", PAM 2002, with the constants of its version 1.3.2.
//!
//! Symbols: K = packets of a stream, N = streams of a fleet, L = packet size, T = period, R = L/T; D_k = median delays of
//! groups of sqrt(K) packets; PCT = share of rises among them, PDT = (D_n - D_1) / sum |D_k - D_(k-1)|; Rmin, Rmax = the range
//! so far, Gmin, Gmax = the grey part of it; ADR = what arrived of a first train at full speed.

use pathcast_base::Nanos;

use super::stat::median;
use super::turns::{InTurn, Turns, rates};
use super::{Budget, Estimate, LARGE, Seen, Step, TrainSeen, WhyNot};

const K: usize = 100;
const N: usize = 12;
/// The shortest period [s].
const PERIOD: f64 = 80e-6;
/// The smallest packet [IP bytes].
const SMALLEST: u16 = 200;
/// Fewer packets left make no stream.
const LEAST: usize = 36;
/// A stream that loses more ends its fleet; one that loses more than the second is lossy, and half of the streams so are too many.
const LOSSES: (f64, f64) = (0.15, 0.03);
/// PCT and PDT above the first rise, below the second do not.
const PCT: (f64, f64) = (1.1 * 0.55, 0.9 * 0.55);
const PDT: (f64, f64) = (1.1 * 0.4, 0.9 * 0.4);
/// This share of streams decides a fleet.
const DECIDES: f64 = 0.6;
/// A stream that leaves at less than this share of its rate says nothing of it.
const SENT: f64 = 0.9;
/// The search ends at this share of the ADR, or when both grey borders are within the second (at most 12 Mbit/s).
const RESOLUTION: (f64, f64) = (0.02, 0.05);

/// The most that two clocks' rates differ.
const SKEW: f64 = 1e-4;

/// What a stream, or a fleet, shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// Delays rise: the rate is above A.
    Rises,
    /// They do not: it is below.
    Flat,
    /// Neither.
    Unclear,
}

/// (PCT, PDT) of delays [s]; none with fewer than two groups. Steps smaller than `least` [s] are none: the clocks' skew alone
/// makes them.
pub fn metrics(delays: &[f64], least: f64) -> Option<(f64, f64)> {
    let size = (delays.len() as f64).sqrt() as usize;
    let groups: Vec<f64> = delays.chunks_exact(size.max(1)).filter_map(median).collect();
    let step = |w: &[f64]| Some(w[1] - w[0]).filter(|step| step.abs() >= least).unwrap_or(0.0);
    let steps: Vec<f64> = groups.windows(2).map(step).collect();
    let rises = steps.iter().filter(|&&step| step > 0.0).count();
    let way: f64 = steps.iter().map(|step| step.abs()).sum();
    let net: f64 = steps.iter().sum();
    (!steps.is_empty()).then(|| (rises as f64 / steps.len() as f64, if way > 0.0 { net / way } else { 0.0 }))
}

/// The trend that both metrics allow.
pub fn trend(delays: &[f64], least: f64) -> Trend {
    let judge = |value: f64, (above, below): (f64, f64)| match value {
        v if v > above => Trend::Rises,
        v if v < below => Trend::Flat,
        _ => Trend::Unclear,
    };
    let Some((pct, pdt)) = metrics(delays, least) else { return Trend::Unclear };
    match (judge(pct, PCT), judge(pdt, PDT)) {
        (a, b) if a == b => a,
        (a, Trend::Unclear) => a,
        (Trend::Unclear, b) => b,
        _ => Trend::Unclear,
    }
}

/// One packet of each burst of three or more shares a right stamp; context switches of the sender split a stream, of which
/// the longest part counts. Delays [s], and the rate at which it left [bit/s]; none of a packet.
fn usable(train: &TrainSeen, period: f64) -> (Vec<f64>, Option<f64>) {
    let limit = (2.0 * period).max(period + 1e-3);
    let stays = |a: &Seen, b: &Seen| b.sent.saturating_sub(a.sent).as_secs_f64() <= limit;
    let delays = |part: &[Seen]| -> Vec<f64> {
        part.iter().filter_map(Seen::own_delay).map(|delay| delay as f64 / 1e9).collect()
    };
    let parts = train.packets.chunk_by(stays).map(|part| (delays(part), part));
    let Some((delays, part)) = parts.max_by_key(|part| part.0.len()) else { return (Vec::new(), None) };
    let time = part[part.len() - 1].sent.saturating_sub(part[0].sent).as_secs_f64();
    let bits: f64 = part[1..].iter().map(|p| f64::from(p.size) * 8.0).sum();
    (delays, (time > 0.0).then(|| bits / time))
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Slops {
    turns: Turns,
    /// Full-speed trains tried.
    tried: usize,
    adr: Option<f64>,
    rate: f64,
    period: f64,
    min: f64,
    max: Option<f64>,
    grey: Option<(f64, f64)>,
    /// Of this fleet.
    trends: Vec<Trend>,
    lossy: usize,
    /// Of those that left at less than the rate: at which [bit/s].
    slow: Vec<f64>,
    free_at: Nanos,
    fleets: usize,
    ended: bool,
    /// The host sends no faster than `max`.
    too_slow: bool,
}

impl Slops {
    /// As many fleets as the budget has room for; one takes 240 kB to 1.7 MB.
    pub fn new(budget: Budget) -> Self {
        Slops {
            turns: Turns::new(budget),
            tried: 0,
            adr: None,
            rate: 0.0,
            period: PERIOD,
            min: 0.0,
            max: None,
            grey: None,
            trends: Vec::new(),
            lossy: 0,
            slow: Vec::new(),
            free_at: Nanos::ZERO,
            fleets: 0,
            ended: false,
            too_slow: false,
        }
    }

    /// L and T of the rate: L grows first.
    fn shape(&self) -> (u16, f64) {
        let size = (self.rate * PERIOD / 8.0).clamp(f64::from(SMALLEST), f64::from(LARGE)) as u16;
        (size, f64::from(size) * 8.0 / self.rate)
    }

    fn stream(&mut self, train: Option<&TrainSeen>) {
        let Some(train) = train else { return self.trends.push(Trend::Unclear) };
        let lost = train.packets.iter().filter(|p| p.lost()).count() as f64 / train.packets.len() as f64;
        self.lossy += usize::from(lost > LOSSES.1);
        if lost > LOSSES.0 || self.lossy * 2 >= N {
            return self.decide(Trend::Rises);
        }
        let (delays, sent) = usable(train, self.period);
        let least = SKEW * self.period * (delays.len() as f64).sqrt();
        let slow = sent.filter(|&sent| sent < SENT * self.rate && delays.len() >= LEAST);
        self.slow.extend(slow);
        let says = delays.len() >= LEAST && slow.is_none();
        self.trends.push(if says { trend(&delays, least) } else { Trend::Unclear });
        if self.trends.len() == N {
            if self.slow.len() as f64 >= DECIDES * N as f64 {
                return self.give_up();
            }
            let share = |trend: Trend| self.trends.iter().filter(|&&t| t == trend).count() as f64 / N as f64;
            let fleet = [Trend::Rises, Trend::Flat].into_iter().find(|&t| share(t) >= DECIDES);
            self.decide(fleet.unwrap_or(Trend::Unclear));
        }
    }

    /// No faster stream will leave than those of this fleet: what is above them is not known.
    fn give_up(&mut self) {
        let sent = median(&self.slow).unwrap_or(self.rate);
        self.max = Some(self.max.map_or(sent, |max| max.min(sent)).max(self.min));
        (self.ended, self.too_slow) = (true, true);
        self.fleets += 1;
    }

    fn decide(&mut self, fleet: Trend) {
        (self.trends, self.lossy, self.slow) = (Vec::new(), 0, Vec::new());
        self.fleets += 1;
        match fleet {
            Trend::Rises => self.max = Some(self.rate),
            Trend::Flat => self.min = self.rate,
            Trend::Unclear => {
                let (low, high) = self.grey.unwrap_or((self.rate, self.rate));
                self.grey = Some((low.min(self.rate), high.max(self.rate)));
            }
        }
        let adr = self.adr.unwrap_or(self.rate);
        self.grey = self.grey.filter(|g| g.1 > self.min && self.max.is_none_or(|max| g.0 < max));
        let near = (RESOLUTION.1 * adr).min(12e6);
        self.rate = match (self.max, self.grey) {
            (None, None) => 2.0 * self.rate,
            (None, Some((_, high))) => 2.0 * high,
            (Some(max), None) => {
                self.ended = max - self.min <= RESOLUTION.0 * adr;
                (self.min + max) / 2.0
            }
            (Some(max), Some((low, high))) => {
                self.ended = max - high <= near && low - self.min <= near;
                if max - high > near { (max + high) / 2.0 } else { (self.min + low) / 2.0 }
            }
        };
    }
}

impl InTurn for Slops {
    fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    fn took(&mut self, answer: Option<&TrainSeen>) {
        if self.adr.is_some() {
            self.stream(answer);
        } else if let Some((_, rate)) = answer.and_then(rates) {
            (self.adr, self.rate) = (Some(rate), rate);
        }
    }

    fn step(&mut self, now: Nanos) -> Step {
        let patience = self.turns.patience();
        if self.adr.is_none() {
            // shorter after losses
            let count = 50 - 15 * self.tried;
            if self.tried == 3 || !self.turns.affords(now, count as u64 * u64::from(LARGE)) {
                return Step::Done;
            }
            self.tried += 1;
            return self.turns.send(now, count, 0.0, LARGE, patience);
        }
        let (size, period) = self.shape();
        if self.ended || !self.turns.affords(now, K as u64 * u64::from(size)) {
            return Step::Done;
        }
        if now < self.free_at {
            return Step::Wait(self.free_at);
        }
        let stream = period * K as f64;
        let lag = self.turns.lag().map_or(0.0, Nanos::as_secs_f64);
        self.free_at = now + Nanos::from_secs_f64(stream + (9.0 * stream).max(lag));
        self.period = period;
        self.turns.send(now, K, period, size, patience)
    }

    /// The range that A was found in, not an error of it, so not 90 %; it is never narrower than the resolution. The value is the
    /// middle of the range, or of its grey part once the search has come to its end.
    fn result(&self) -> Estimate {
        let Some(adr) = self.adr else {
            return Estimate::none(WhyNot::NoAnswer, self.turns.bytes());
        };
        if self.fleets == 0 {
            return Estimate::none(WhyNot::TooFew, self.turns.bytes());
        }
        let high = self.max.unwrap_or(adr.max(self.min));
        let middle = match self.grey {
            Some((grey_low, grey_high)) if self.ended => (grey_low + grey_high) / 2.0,
            _ => (self.min + high) / 2.0,
        };
        let half = RESOLUTION.0 * adr / 2.0;
        let (low, high) = (self.min.min(middle - half), high.max(middle + half));
        let mut estimate = Estimate::of(middle, low, high, self.turns.bytes());
        estimate.why_not = match (self.too_slow, self.ended) {
            (true, _) => Some(WhyNot::HostTooSlow),
            (false, ended) => (!ended).then_some(WhyNot::TooFew),
        };
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::super::Method;
    use super::super::testing::Fluid;
    use super::*;
    use pathcast_base::Bytes;

    #[test]
    fn metrics_of_simple_series() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(metrics(&rising, 0.5), Some((1.0, 1.0)));
        assert_eq!(trend(&rising, 0.5), Trend::Rises);
        assert_eq!(trend(&[1.0; 100], 0.0), Trend::Flat);
        // a skewed clock over an idle path
        let skewed: Vec<f64> = (0..100).map(|k| f64::from(k) * 50e-9).collect();
        assert_eq!(trend(&skewed, 1e-6), Trend::Flat);
        // up and down by turns, as far up as down
        let waves: Vec<f64> = (0..100).map(|k| f64::from(k / 10 % 2)).collect();
        assert_eq!(metrics(&waves, 0.5), Some((5.0 / 9.0, 1.0 / 9.0)));
        assert_eq!(trend(&waves, 0.5), Trend::Flat);
        assert_eq!(metrics(&[1.0], 0.0), None);
        // five steps of nine lead upwards, and two fifths of the way: neither says anything
        let steps = [1.4, -0.75, 1.4, -0.75, 1.4, -0.75, 1.4, -0.75, 1.4];
        let heights: Vec<f64> = (0..10).map(|k| steps[..k].iter().sum()).collect();
        let between: Vec<f64> = heights.iter().flat_map(|&height| [height; 10]).collect();
        assert_eq!(trend(&between, 0.0), Trend::Unclear);
    }

    #[test]
    fn a_context_switch_splits_a_stream() {
        let sent: Vec<u64> = (0..50).map(|k| k * 100_000 + u64::from(k >= 10) * 5_000_000).collect();
        let received: Vec<_> = sent.iter().map(|&t| Some(t + 7)).collect();
        let seen = super::super::testing::train(0, 200, &sent, &received);
        assert_eq!(usable(&seen, 1e-4).0.len(), 40);
    }

    /// A host that sends a packet in 160 us, whatever it is told: at 70 Mbit/s, which pass without a queue.
    #[test]
    fn a_host_that_is_too_slow_ends_the_search_where_it_can_send_no_faster() {
        let sent: Vec<u64> = (0..100).map(|k| k * 160_000).collect();
        let came: Vec<_> = sent.iter().map(|&at| Some(at + 7)).collect();
        let stream = super::super::testing::train(0, 1400, &sent, &came);
        let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
        (slops.adr, slops.rate, slops.period, slops.min) = (Some(70e6), 70e6, 160e-6, 0.0);
        for _ in 0..N {
            slops.stream(Some(&stream));
        }
        assert_eq!((slops.min, slops.rate, slops.ended), (70e6, 140e6, false));
        slops.period = 80e-6;
        for _ in 0..N {
            slops.stream(Some(&stream));
        }
        let found = slops.result();
        assert!(slops.ended && slops.min == 70e6 && found.why_not == Some(WhyNot::HostTooSlow), "{found:?}");
        assert!((found.value_bps.unwrap() / 70e6 - 1.0).abs() < 0.01, "{found:?}");
    }

    /// A stream that loses more than 15 of 100, or the sixth that loses more than 3, ends its fleet as one that rises; a stream without
    /// an answer, or of fewer than 36 packets, is unclear.
    #[test]
    fn losses_end_a_fleet() {
        let stream = |lost: u64| {
            let sent: Vec<u64> = (0..100).map(|k| k * 80_000).collect();
            let received: Vec<_> = (0..100).map(|k| (k >= lost).then_some(k * 80_000 + 7)).collect();
            super::super::testing::train(0, 1400, &sent, &received)
        };
        for (lost, streams) in [(16, Some(1)), (15, Some(6)), (4, Some(6)), (3, None), (0, None)] {
            let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
            (slops.adr, slops.rate) = (Some(140e6), 140e6);
            let ends = (1..12).find(|_| {
                slops.stream(Some(&stream(lost)));
                slops.fleets > 0
            });
            assert_eq!((ends, slops.max), (streams, streams.map(|_| 140e6)), "{lost} lost");
            if ends.is_none() {
                slops.stream(Some(&stream(lost))); // the twelfth: none has risen
                assert_eq!((slops.fleets, slops.min, slops.max), (1, 140e6, None));
            }
        }
        let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
        slops.period = 80e-6;
        slops.stream(None);
        let cut = |count: usize| {
            let whole = stream(0);
            TrainSeen { id: 0, packets: whole.packets[..count].to_vec() }
        };
        slops.stream(Some(&cut(35)));
        slops.stream(Some(&cut(36)));
        assert_eq!(slops.trends, [Trend::Unclear, Trend::Unclear, Trend::Flat]);
    }

    /// Beside a grey part the search goes on in the wider of what is left above and below it, until both are narrow; rates in Mbit/s.
    #[test]
    fn the_search_goes_on_beside_the_grey_part() {
        let next = |min: f64, max: Option<f64>, grey: Option<(f64, f64)>, rate: f64, fleet: Trend| {
            let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
            (slops.adr, slops.min, slops.rate) = (Some(5e6), min * 1e6, rate * 1e6);
            (slops.max, slops.grey) = (max.map(|m| m * 1e6), grey.map(|(low, high)| (low * 1e6, high * 1e6)));
            slops.decide(fleet);
            ((slops.rate / 1e3).round() / 1e3, slops.ended)
        };
        assert_eq!(next(1.0, Some(5.0), Some((2.0, 3.0)), 2.5, Trend::Unclear), (4.0, false));
        assert_eq!(next(1.0, Some(3.2), Some((2.0, 3.0)), 2.5, Trend::Unclear), (1.5, false));
        assert_eq!(next(1.8, Some(3.2), Some((2.0, 3.0)), 2.5, Trend::Unclear), (1.9, true));
        assert_eq!(next(1.0, Some(5.0), None, 3.0, Trend::Unclear), (4.0, false));
        assert_eq!(next(1.0, None, Some((2.0, 3.0)), 3.5, Trend::Unclear), (7.0, false));
        assert_eq!(next(1.0, None, None, 3.0, Trend::Flat), (6.0, false));
        assert_eq!(next(1.0, None, None, 3.0, Trend::Rises), (2.0, false));
        assert_eq!(next(2.95, Some(3.05), None, 3.0, Trend::Flat), (3.025, true));
        assert_eq!(next(2.85, Some(3.15), None, 2.9, Trend::Flat), (3.025, false));
    }

    /// One grey rate is no range: the truth is beside it, as far as the search went.
    #[test]
    fn the_range_is_what_neither_rises_nor_is_flat() {
        let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
        (slops.adr, slops.rate) = (Some(10e6), 10e6);
        for fleet in [Trend::Rises, Trend::Flat, Trend::Rises, Trend::Unclear] {
            slops.decide(fleet);
        }
        assert_eq!(slops.grey, Some((6.25e6, 6.25e6)));
        while !slops.ended {
            slops.decide(if slops.rate > 6.25e6 { Trend::Rises } else { Trend::Flat });
        }
        let found = slops.result();
        assert_eq!((found.value_bps, found.low_bps, found.high_bps), (Some(6.25e6), slops.min, slops.max.unwrap()));
        assert!(found.low_bps <= 6e6 && found.high_bps >= 6.5e6, "{found:?}");
    }

    #[test]
    fn the_range_is_as_wide_as_the_resolution() {
        let mut slops = Slops::new(Budget { bytes: Bytes(1), time: Nanos::secs(1) });
        (slops.adr, slops.min, slops.max, slops.fleets, slops.ended) = (Some(10e6), 6e6, Some(6.1e6), 9, true);
        let found = slops.result();
        assert!((found.low_bps - 5.95e6).abs() < 1.0 && (found.high_bps - 6.15e6).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn the_first_train_is_shorter_after_each_that_is_not_answered() {
        let mut slops = Slops::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(60) });
        let (mut now, mut counts) = (Nanos(0), Vec::new());
        loop {
            match slops.next(now) {
                Step::Send(plan) | Step::Beside(plan) => counts.push(plan.gaps.len() + 1),
                Step::Wait(until) => now = until,
                Step::Done => break,
            }
        }
        assert_eq!(counts, [50, 35, 20]);
        assert_eq!(slops.estimate().why_not, Some(WhyNot::NoAnswer));
    }

    #[test]
    fn no_first_train_is_begun_that_cannot_be_paid_for() {
        for (bytes, begins) in [(50 * u64::from(LARGE) - 1, false), (50 * u64::from(LARGE), true)] {
            let mut slops = Slops::new(Budget { bytes: Bytes(bytes), time: Nanos::secs(60) });
            assert_eq!(matches!(slops.next(Nanos(0)), Step::Send(_)), begins, "{bytes}");
        }
    }

    #[test]
    fn a_fluid_is_bisected_to_the_resolution() {
        let budget = Budget { bytes: Bytes(30_000_000), time: Nanos::secs(600) };
        let (estimate, time) = Fluid::new(5e6, 1.5e6, 0.01).run(&mut Slops::new(budget));
        assert!(estimate.low_bps <= 3.5e6 && estimate.high_bps >= 3.5e6, "{estimate:?}");
        assert!(estimate.high_bps - estimate.low_bps <= 0.12 * 5e6 && estimate.why_not.is_none(), "{estimate:?}");
        assert!(time > Nanos::secs(10), "it pauses: {time:?}");
    }
}
