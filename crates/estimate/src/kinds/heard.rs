//! What the reports of a thorough measurement have said so far: how long large packets wait, and what became of those that were
//! more than the line carries. The sending half of it, [`probing`](super::probing), goes by this.

use crate::stat::median;
use crate::{LARGE, Seen, TrainSeen};

/// Bits of a large packet.
const PACKET: f64 = LARGE as f64 * 8.0;

/// Losses beyond this share, at waits below so many packets: a policer.
const POLICED: f64 = 0.05;
const POLICED_WAIT: f64 = 3.0;
/// So many packets under overload say how fast they pass.
const PASSED: f64 = 20.0;
/// Where more than this share of so many packets is lost the capacity was none.
const ABSURD: f64 = 0.6;
const ABSURD_PACKETS: f64 = 60.0;
const ABSURD_CAME: f64 = 8.0;
/// A host that sends less than this share of what it is told is too slow for it.
const SHORT: f64 = 0.93;

/// See the [module](self). Waits and times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// The smallest delay of a large packet [ns].
    floor: Option<i64>,
    /// The last wait, and when its packet left.
    pub wait: Option<(f64, f64)>,
    /// The longest under overload.
    pub longest: f64,
    /// Under overload: when the first loss left, and how many there were.
    pub first_loss: Option<f64>,
    pub losses: usize,
    /// Since then: large packets sent and received; when the first and the last of these arrived, by the other clock; waits at losses.
    sent: f64,
    came: f64,
    span: (f64, f64),
    lost_at: Vec<f64>,
    /// How fast the trains of one rate really left [bit/s].
    left: Vec<f64>,
}

impl Default for Heard {
    fn default() -> Heard {
        Heard {
            floor: None,
            wait: None,
            longest: 0.0,
            first_loss: None,
            losses: 0,
            sent: 0.0,
            came: 0.0,
            span: (f64::INFINITY, 0.0),
            lost_at: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl Heard {
    /// Large packets of any train show how short their delay can be.
    pub fn lower(&mut self, train: &TrainSeen) {
        let large = train.packets.iter().filter(|p| p.size == LARGE);
        let least = large.filter_map(Seen::own_delay).min();
        self.floor = self.floor.into_iter().chain(least).min();
    }

    /// Of a train's packets that came: when each left, and how long it waited.
    pub fn waits(&self, train: &TrainSeen) -> Vec<(f64, f64)> {
        let floor = self.floor.unwrap_or_default();
        let wait = |p: &Seen| Some((p.sent.as_secs_f64(), (p.own_delay()? - floor) as f64 / 1e9));
        train.packets.iter().filter_map(wait).collect()
    }

    /// A train of more than what is free, with its waits.
    pub fn overload(&mut self, train: &TrainSeen, waits: &[(f64, f64)]) {
        self.longest = waits.iter().map(|w| w.1).fold(self.longest, f64::max);
        if let [first, .., last] = train.packets.as_slice() {
            let time = last.sent.saturating_sub(first.sent).as_secs_f64();
            self.left.push((train.packets.len() - 1) as f64 * PACKET / time.max(1e-9));
        }
        for p in train.packets.iter().filter(|p| p.lost()) {
            let left = p.sent.as_secs_f64();
            self.losses += 1;
            self.first_loss.get_or_insert(left);
            let near = waits.iter().min_by(|a, b| (a.0 - left).abs().total_cmp(&(b.0 - left).abs()));
            self.lost_at.extend(near.map(|w| w.1).or(self.wait.map(|w| w.0)));
        }
        if self.first_loss.is_some() {
            self.sent += train.packets.len() as f64;
            self.came += waits.len() as f64;
            for at in train.packets.iter().filter_map(|p| p.received) {
                self.span = (self.span.0.min(at.as_secs_f64()), self.span.1.max(at.as_secs_f64()));
            }
        }
    }

    /// By how many times as much more is to be planned for it to leave at this rate [bit/s]: a busy host sends less than it is told.
    /// From here on trains of another rate are sent.
    pub fn falls_short(&mut self, rate: f64) -> f64 {
        let left = std::mem::take(&mut self.left);
        median(&left).filter(|&left| left < SHORT * rate).map_or(1.0, |left| rate / left)
    }

    /// Forgets the overload.
    pub fn begin_again(&mut self) {
        *self = Heard { floor: self.floor, wait: self.wait, ..Heard::default() };
    }

    /// What came through since the first loss [bit/s].
    pub fn passes(&self) -> Option<f64> {
        let time = self.span.1 - self.span.0;
        (self.came >= PASSED && time > 0.0).then(|| self.came * PACKET / time)
    }

    /// The share that came since the first loss.
    pub fn share(&self) -> Option<f64> {
        (self.sent > 0.0).then(|| self.came / self.sent)
    }

    /// Whether so much is lost that the line never carried what it was taken for; then what it carries [bit/s].
    pub fn refutes(&self) -> Option<f64> {
        let absurd = self.sent >= ABSURD_PACKETS && self.came <= (1.0 - ABSURD) * self.sent;
        let time = self.span.1 - self.span.0;
        (absurd && self.came >= ABSURD_CAME && time > 0.0).then(|| self.came * PACKET / time)
    }

    /// Whether more than a wire loses was lost.
    pub fn is_lossy(&self) -> bool {
        self.sent - self.came > 1.0 + POLICED * self.sent
    }

    /// Whether what was lost found no queue. `c`: the capacity [bit/s].
    pub fn is_policed(&self, c: f64) -> bool {
        let short = median(&self.lost_at).is_some_and(|wait| wait < POLICED_WAIT * PACKET / c);
        short && self.share().is_some_and(|came| 1.0 - came > POLICED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::train;

    const MS: u64 = 1_000_000;

    /// Trains of ten, 1 ms apart, whose last five are lost from the second on.
    fn heard(lost_wait: u64) -> Heard {
        let mut heard = Heard::default();
        let sent: Vec<u64> = (0..10).map(|k| k * MS).collect();
        let came = |lost: usize, wait: u64| -> Vec<Option<u64>> {
            (0..10).map(|k| (k < 10 - lost).then(|| (k as u64 + 5 + wait) * MS)).collect()
        };
        for (lost, wait) in [(0, 0), (5, lost_wait), (5, lost_wait), (5, lost_wait), (5, lost_wait)] {
            let train = train(0, LARGE, &sent, &came(lost, wait));
            heard.lower(&train);
            let waits = heard.waits(&train);
            heard.overload(&train, &waits);
        }
        heard
    }

    #[test]
    fn losses_without_a_queue_are_a_policers() {
        let (queued, policed) = (heard(40), heard(0));
        assert_eq!((queued.losses, queued.share(), queued.first_loss), (20, Some(0.5), Some(5e-3)));
        assert!((queued.longest - 0.04).abs() < 1e-9 && queued.is_lossy());
        assert!(policed.is_policed(10e6) && !queued.is_policed(10e6));
    }

    #[test]
    fn a_host_that_is_too_slow_is_told_more() {
        let mut heard = heard(0);
        // ten in 10 ms less one
        let left = PACKET / 1e-3;
        assert_eq!(heard.falls_short(left), 1.0);
        assert_eq!(heard.falls_short(2.0 * left), 1.0, "nothing since");
        let train = train(0, LARGE, &[0, MS, 2 * MS], &[None, None, None]);
        heard.overload(&train, &[]);
        assert!((heard.falls_short(1.5 * left) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn what_passes_and_what_is_absurd() {
        let mut heard = heard(0);
        // 20 in the 4 ms from the first to the last, for all of the trains left at once
        assert!((heard.passes().unwrap() / (20.0 * PACKET / 4e-3) - 1.0).abs() < 1e-9);
        assert_eq!(heard.refutes(), None);
        heard.begin_again();
        assert_eq!((heard.passes(), heard.losses, heard.first_loss), (None, 0, None));
    }
}
