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
/// Of so many packets the wire loses no more than it lost before of those that hardly waited, so many at least: no
/// managed queue drops where waits are so short [s], nor who waits for one packet only. But for so many losses and so
/// many standard deviations; and no larger a share than what a policer drops.
const WIRE_PACKETS: f64 = 60.0;
const BRIEF: (f64, f64) = (4e-3, 1.1);
const WIRE_SEEN: usize = 50;
const WIRE_LOST: f64 = 0.5;
const WIRE_MORE: f64 = 2.0;
/// A host that sends less than this share of what it is told is too slow for it.
const SHORT: f64 = 0.93;

/// See the [module](self). Waits and times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// The smallest delay of a large packet [ns].
    floor: Option<i64>,
    /// A wait up to this one is short [s].
    short: f64,
    /// Large packets of the measurement before: their delay, or where they were lost that of the nearest one [ns];
    /// whether they were.
    before: Vec<(i64, bool)>,
    /// The last wait, and when its packet left.
    pub wait: Option<(f64, f64)>,
    /// The longest under overload.
    pub longest: f64,
    /// Under overload: when the first loss left that may be no wire's, and how many there were since.
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
            short: BRIEF.0,
            before: Vec::new(),
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
    /// On a line of this capacity [bit/s].
    pub fn new(c: f64) -> Heard {
        Heard { short: BRIEF.0.max(BRIEF.1 * PACKET / c), ..Heard::default() }
    }

    /// Large packets of any train show how short their delay can be.
    pub fn lower(&mut self, train: &TrainSeen) {
        let large = train.packets.iter().filter(|p| p.size == LARGE);
        let least = large.filter_map(Seen::own_delay).min();
        self.floor = self.floor.into_iter().chain(least).min();
    }

    /// A train of the measurement before: it shows what the wire loses.
    pub fn before(&mut self, train: &TrainSeen) {
        self.lower(train);
        let large: Vec<&Seen> = train.packets.iter().filter(|p| p.size == LARGE && !p.missed).collect();
        let came: Vec<(usize, i64)> = (0..large.len()).filter_map(|k| Some((k, large[k].own_delay()?))).collect();
        for (k, p) in large.into_iter().enumerate() {
            let near = came.iter().min_by_key(|(other, _)| other.abs_diff(k));
            self.before.extend(near.map(|near| (near.1, p.lost())));
        }
    }

    /// Of a train's packets that came: when each left, and how long it waited.
    pub fn waits(&self, train: &TrainSeen) -> Vec<(f64, f64)> {
        let floor = self.floor.unwrap_or_default();
        let wait = |p: &Seen| Some((p.sent.as_secs_f64(), (p.own_delay()? - floor) as f64 / 1e9));
        train.packets.iter().filter_map(wait).collect()
    }

    /// A train of more than what is free, with its waits.
    pub fn overload(&mut self, train: &TrainSeen, waits: &[(f64, f64)]) {
        if self.sent >= WIRE_PACKETS && self.is_the_wires() {
            // what was lost first was no overflow
            (self.first_loss, self.losses, self.sent, self.came) = (None, 0, 0.0, 0.0);
            self.span = Heard::default().span;
            self.lost_at.clear();
        }
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
            // what a busy host had no room for counts as neither
            self.sent += train.packets.iter().filter(|p| !p.missed).count() as f64;
            self.came += train.packets.iter().filter(|p| p.received.is_some()).count() as f64;
            for at in train.packets.iter().filter_map(|p| p.received) {
                self.span = (self.span.0.min(at.as_secs_f64()), self.span.1.max(at.as_secs_f64()));
            }
        }
    }

    /// Whether what was lost since the first loss is no more than the wire lost before.
    fn is_the_wires(&self) -> bool {
        let floor = self.floor.unwrap_or_default();
        let short = |delay: i64| (delay - floor) as f64 <= self.short * 1e9;
        let before: Vec<bool> = self.before.iter().filter(|p| short(p.0)).map(|p| p.1).collect();
        if before.len() < WIRE_SEEN {
            return false;
        }
        let lost = before.iter().filter(|&&lost| lost).count() as f64;
        let mean = self.sent * ((lost + WIRE_LOST) / before.len() as f64).min(POLICED);
        self.sent - self.came <= mean + WIRE_MORE * mean.sqrt()
    }

    /// By how many times as much more is to be planned for it to leave at this rate [bit/s]: a busy host sends less than it is told.
    /// From here on trains of another rate are sent.
    pub fn falls_short(&mut self, rate: f64) -> f64 {
        let left = std::mem::take(&mut self.left);
        median(&left).filter(|&left| left < SHORT * rate).map_or(1.0, |left| rate / left)
    }

    /// Forgets the overload.
    pub fn begin_again(&mut self) {
        let before = std::mem::take(&mut self.before);
        *self = Heard { floor: self.floor, short: self.short, before, wait: self.wait, ..Heard::default() };
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

    /// A receiver that hands over five packets at once, each batch at its last one's stamp: 100 Mbit/s, one packet
    /// lost.
    #[test]
    fn of_a_batch_every_packet_came() {
        let takes = (PACKET * 10.0) as u64;
        let mut heard = Heard::default();
        for id in 0..10 {
            let sent: Vec<u64> = (0..10).map(|k| (10 * id + k) * takes).collect();
            let came = |k: usize| (id > 0 || k > 0).then_some(MS + sent[k / 5 * 5 + 4]);
            let came: Vec<Option<u64>> = (0..10).map(came).collect();
            let mut train = train(id, LARGE, &sent, &came);
            for (k, p) in train.packets.iter_mut().enumerate() {
                p.batch = crate::Batch { index: k as u32 % 5, of: 5 };
            }
            let waits = heard.waits(&train);
            heard.overload(&train, &waits);
        }
        assert!(heard.share().unwrap() >= 0.9 && !heard.is_lossy(), "{:?}", heard.share());
        assert_eq!(heard.refutes(), None);
        let passes = heard.passes().unwrap();
        assert!((passes / 100e6 - 1.0).abs() < 0.06, "{passes}");
    }

    #[test]
    fn what_a_host_had_no_room_for_was_neither_sent_nor_lost() {
        let mut heard = heard(0);
        let mut missed = train(9, LARGE, &[0; 10], &[None; 10]);
        missed.packets.iter_mut().for_each(|p| p.missed = true);
        let (before, lossy) = (heard.share(), heard.is_lossy());
        heard.overload(&missed, &[]);
        assert_eq!((heard.share(), heard.is_lossy()), (before, lossy));
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

    /// A wire that loses one of a hundred, all the time: until the queue overflows its losses say nothing, nor without
    /// one.
    #[test]
    fn what_the_wire_loses_is_no_overflow() {
        let trains = |wire: usize, overflows: u64| {
            let mut heard = Heard::default();
            let one = |id: u64| {
                let sent: Vec<u64> = (0..20).map(|k| (20 * id + k) * MS).collect();
                let full = |k: usize| id >= overflows && k.is_multiple_of(4);
                let lost = |k: usize| (20 * id as usize + k) % wire == 7 || full(k);
                let came: Vec<_> =
                    (0..20).map(|k| (!lost(k)).then(|| sent[k] + (5 + id.min(overflows)) * MS)).collect();
                train(id, LARGE, &sent, &came)
            };
            (0..40).for_each(|id| heard.before(&one(id)));
            for id in 0..60 {
                let train = one(id);
                let waits = heard.waits(&train);
                heard.overload(&train, &waits);
            }
            heard
        };
        let wire = trains(100, 1000);
        assert!(wire.losses < 3 && !wire.is_lossy(), "{wire:?}");
        let full = trains(100, 30);
        let first = full.first_loss.unwrap();
        assert!((0.5..0.62).contains(&first) && full.losses > 140, "{first} {}", full.losses);
        // one that was lost long before
        assert_eq!(trains(100_000, 30).first_loss, Some(0.6));
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
