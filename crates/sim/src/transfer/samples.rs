//! A transfer's progress at regular times, of which there are never more than so many.

use pathcast_base::{Nanos, SubflowSample, TransferSample};

use crate::carried::SubReport;

/// When there would be more, every other one goes and the time between two doubles.
const MOST: usize = 2000;

/// Samples of one transfer.
pub(super) struct Samples {
    begin: u64,
    every: u64,
    /// When the next one is due [ns]; the end of time if none is wanted.
    pub(super) next: u64,
    pub(super) taken: Vec<TransferSample>,
}

impl Samples {
    /// One `every` so often from `begin` [ns] on.
    pub(super) fn new(begin: u64, every: Option<Nanos>) -> Samples {
        let every = every.map_or(u64::MAX, |every| every.0.max(1));
        Samples { begin, every, next: begin.saturating_add(every), taken: Vec::new() }
    }

    /// Takes the one that is due.
    pub(super) fn take(&mut self, bytes: u64, subs: &[SubReport]) {
        let at_s = Nanos(self.next - self.begin).as_secs_f64();
        let subflow = |sub: &SubReport| SubflowSample {
            bytes_acked: sub.bytes,
            cwnd_packets: sub.cwnd,
            srtt_s: (sub.srtt_us > 0).then(|| f64::from(sub.srtt_us) / 1e6),
        };
        self.taken.push(TransferSample { at_s, bytes, subflows: subs.iter().map(subflow).collect() });
        if self.taken.len() == MOST {
            let mut n = 0;
            self.taken.retain(|_| {
                n += 1;
                n % 2 == 0
            });
            self.every = self.every.saturating_mul(2);
        }
        self.next = self.next.saturating_add(self.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_stay_bounded_and_equally_far_apart() {
        let mut samples = Samples::new(5_000_000_000, Some(Nanos::millis(100)));
        for n in 0..20_000 {
            samples.take(n, &[]);
        }
        let times: Vec<f64> = samples.taken.iter().map(|sample| sample.at_s).collect();
        assert!((MOST / 2..MOST).contains(&times.len()), "{}", times.len());
        let step = times[0];
        assert!(times.iter().enumerate().all(|(n, at)| (at - (n + 1) as f64 * step).abs() < 1e-6), "{step} {times:?}");
        assert!(times.last() > Some(&2000.0), "{step}");
    }
}
