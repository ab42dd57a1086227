//! What the trains before the ride say of the bottleneck once A is known: how it queues, and C again.

use super::super::dispersion::whole_batches;
use super::super::stat::{median, quantile};
use super::super::{Discipline, Estimate, FASTEST, LARGE, Seen, TrainSeen, WhyNot, series};
use super::grains::{Turns, is_fast};
use super::{PACKET, Ride, SMALL_SIZE};

/// What a packet takes alone, as a share of what it takes in a row: below the first each flow has a queue of its own and others
/// wait, above the second all have one queue.
const ALONE_FAIR: f64 = 0.7;
const ALONE_SHARED: f64 = 0.85;

/// L/C must be so many times what stamps can tell apart.
const TOLD_APART: f64 = 5.0;

/// A train's first two packets are faster than C by this factor: a token bucket, or a queue in which others came between.
const FIRST_FASTER: f64 = 1.2;
/// Usually is: of so many of the trains.
const FIRST_USUAL: f64 = 0.8;

/// The receiver gathers packets where stamps may be late by so many L/C; C is then refined from trains of so many packets at least
/// that left without a pause of this length [ns], and were sent faster than they were received by this factor.
const GATHERS: f64 = 2.0;
const REFINED_PACKETS: usize = 20;
const REFINED_PAUSE: u64 = 300_000;
const REFINED_FASTER: f64 = 1.2;

/// So many small packets must have waited as little as the one that waited least. Where what was sent before them still drains beside
/// cross traffic each waits, and the least of them looks as if small packets gained little: a queue of its own's mark.
const ALIKE: usize = 3;

/// How the bottleneck queues. `slope` [s a bit]: what a bit of a packet costs that is alone; `first` [bit/s]: the rate of a
/// train's first two packets, usually; `least` [s]: what stamps can tell apart. In a common queue back-to-back packets leave back to
/// back, each after L/C. In a fair one the others' packets come between, every time, and L/C cannot be seen but alone. A token
/// bucket does the same from the second packet on; there the first gap is short.
fn discipline(c: f64, slope: f64, first: f64, least: f64) -> Discipline {
    if slope * PACKET < TOLD_APART * least || first > FIRST_FASTER * c {
        return Discipline::Unknown;
    }
    match slope * c {
        share if share < ALONE_FAIR => Discipline::Fair,
        share if share > ALONE_SHARED => Discipline::Shared,
        _ => Discipline::Unknown,
    }
}

impl Ride {
    /// C again, where the receiver gathers packets or delays wander: from whole trains, now that A is known.
    pub(super) fn refine(&mut self) {
        (self.wander, self.late) = self.wanders();
        if let (true, Some((c, _))) = (self.wander > 0.0, self.wandering_capacity()) {
            self.c = c.max(self.proven);
        }
        if self.blur() <= GATHERS * PACKET / self.c {
            return;
        }
        let trains = self.trains.range(..self.first);
        let whole: Vec<f64> = trains.filter_map(|(_, train)| self.whole(train)).collect();
        if let Some(c) = median(&whole).filter(|_| whole.len() > 2) {
            self.c = c.max(self.proven);
        }
    }

    /// What a whole train, sent at u and received at r, says of C when A is known: r = u C / (u + C - A).
    pub(super) fn whole(&self, train: &TrainSeen) -> Option<f64> {
        let usable = &train.packets[..whole_batches(train)];
        let own = |p: &Seen| p.own_delay().is_some();
        let (from, to) = (usable.iter().position(own)?, usable.iter().rposition(own)?);
        let (first, last) = (&usable[from], &usable[to]);
        let spoilt = train.packets.windows(2).any(|w| w[1].sent.saturating_sub(w[0].sent).0 > REFINED_PAUSE);
        let lost = train.packets.iter().any(|p| p.received.is_none());
        // not by their stamps, which may all be the same
        let count = to - from;
        let bits = count as f64 * PACKET;
        // packets may have overtaken each other
        let received = last.received?.0.checked_sub(first.received?.0)?;
        let sent = last.sent.saturating_sub(first.sent).0;
        if spoilt || lost || count < REFINED_PACKETS || received == 0 {
            return None;
        }
        let (u, r) = (bits * 1e9 / sent.max(1) as f64, bits * 1e9 / received as f64);
        Some(if u > REFINED_FASTER * r { r * (u - self.a) / (u - r) } else { r }).filter(|&c| 0.0 < c && c <= FASTEST)
    }

    pub(super) fn discipline(&self) -> Option<Discipline> {
        let by_size = || self.by_size();
        match self.turns() {
            Turns::Others { .. } => Some(Discipline::Fair),
            Turns::Nobody => by_size().filter(|&found| found != Discipline::Fair),
            Turns::Unknown => by_size(),
        }
    }

    /// The same by what packets of two sizes take.
    fn by_size(&self) -> Option<Discipline> {
        let small = series::base(self.small.iter())?.floor;
        if let Some(train) = &self.small {
            let above = |p: &Seen| Some(p.own_delay()? as f64 - small.delay_at(p.sent.0));
            let close = train.packets.iter().filter_map(above).filter(|&above| above < series::NOTHING * 1e9);
            if close.count() < ALIKE {
                return Some(Discipline::Unknown);
            }
        }
        Some(discipline(self.c, self.slope()?, self.first()?, self.blur() + series::NOTHING))
    }

    /// What a bit of a packet costs that is alone [s]. On fast lines by packets that were alone: those of a train find hosts awake, which
    /// saves as long as the line takes.
    pub(super) fn slope(&self) -> Option<f64> {
        let small = series::base(self.small.iter())?.floor;
        let large = match is_fast(self.c) {
            true => self.first_alone(small.at)?,
            false => self.base.floor.delay_at(small.at),
        };
        Some((large - small.delay) / 1e9 / (f64::from(LARGE - SMALL_SIZE) * 8.0))
    }

    /// The least delay of the first packet of a train that told C, as it were at the time `at` of the sender's clock [ns].
    fn first_alone(&self, at: u64) -> Option<f64> {
        let trains = self.trains.range(..self.first).filter_map(|(_, train)| train.packets.first());
        let drift = |p: &Seen| self.base.floor.delay_at(at) - self.base.floor.delay_at(p.sent.0);
        trains.filter_map(|p| Some(p.own_delay()? as f64 + drift(p))).min_by(f64::total_cmp)
    }

    /// What lies between the small packets that waited least [s].
    pub(super) fn least_apart(&self) -> f64 {
        let mut delays: Vec<i64> = self.small.iter().flat_map(|t| &t.packets).filter_map(Seen::own_delay).collect();
        delays.sort_unstable();
        delays.get(ALIKE - 1).map_or(0.0, |third| (third - delays[0]) as f64 / 1e9)
    }

    /// The rate of a train's first two packets, usually [bit/s].
    fn first(&self) -> Option<f64> {
        let trains = self.trains.range(..self.first).map(|(_, train)| &train.packets);
        let gaps = trains.filter_map(|p| Some(p.get(1)?.received?.saturating_sub(p[0].received?).as_secs_f64()));
        // on a bucket's line nearly all of them, in a fair queue those that nobody came between
        Some(PACKET / quantile(&gaps.collect::<Vec<f64>>(), FIRST_USUAL)?.max(1e-9))
    }

    /// Of a line where others take turns with the probes: `share`, what was taken for the capacity, is what these got of it, at least.
    /// Small packets tell how much there is; where they do not, what one packet takes alone is a rough sign of it.
    pub fn of_line(&self, share: Estimate) -> Estimate {
        match self.turns() {
            Turns::Others { c, half } => return Estimate::of(c, c - half, c + half, share.bytes.0),
            Turns::Nobody => return share,
            Turns::Unknown => {}
        }
        let (Some(got), slope) = (share.value_bps, self.slope()) else { return share };
        let fair = self.discipline() == Some(Discipline::Fair);
        if !fair && !self.is_doubtful() {
            return share;
        }
        Estimate {
            value_bps: match slope {
                Some(slope) if fair && !is_fast(self.c) => Some((1.0 / slope.max(1e-12)).max(got)),
                _ => Some(got),
            },
            high_bps: f64::INFINITY,
            why_not: share.why_not.or(Some(WhyNot::Ambiguous)),
            ..share
        }
    }
}

#[cfg(test)]
mod tests {
    use pathcast_base::{Bytes, Nanos};

    use super::super::super::Budget;
    use super::super::super::Plan;
    use super::super::super::testing::{OFFSET, run, train};
    use super::*;

    /// Packets of 1400 bytes that left and came so far apart [ns], where 30 Mbit/s are free; `odd`: one that left later or was lost.
    fn whole(count: u64, sent: u64, received: u64, late: u64, lost: bool) -> Option<f64> {
        let mut ride = Ride::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) }, 1);
        ride.a = 30e6;
        let left: Vec<u64> = (0..count).map(|k| k * sent + if k > 5 { late } else { 0 }).collect();
        let came: Vec<_> = (0..count).map(|k| (k != 7 || !lost).then_some(1_000_000 + k * received)).collect();
        ride.whole(&train(0, 1400, &left, &came))
    }

    /// r = u C / (u + C - A): 112 Mbit/s become 56 on a link of 82 with 30 free.
    #[test]
    fn a_train_faster_than_what_is_free_tells_the_capacity() {
        assert!((whole(31, 100_000, 200_000, 0, false).unwrap() / 82e6 - 1.0).abs() < 1e-9);
        // not faster than received by a fifth: what it got
        assert!((whole(31, 180_000, 200_000, 0, false).unwrap() / 56e6 - 1.0).abs() < 1e-9);
        // 20 packets behind the first are enough, 19 not; nor does a train that was held up or lost a packet say anything
        assert!(whole(21, 100_000, 200_000, 0, false).is_some() && whole(20, 100_000, 200_000, 0, false).is_none());
        assert!(whole(31, 100_000, 200_000, 200_000, false).is_some(), "300 us apart");
        assert!(whole(31, 100_000, 200_000, 200_001, false).is_none(), "held up");
        assert!(whole(31, 100_000, 200_000, 0, true).is_none() && whole(31, 100_000, 0, 0, false).is_none());
    }

    #[test]
    fn packets_that_left_at_one_time_count_and_so_do_those_whose_stamps_are_out_of_order() {
        // all of a train by one stamp, as an idle host's kernel or a simulator gives it
        assert!((whole(31, 0, 200_000, 0, false).unwrap() / 56e6 - 1.0).abs() < 1e-5);
        let mut ride = Ride::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) }, 1);
        (ride.a, ride.c) = (30e6, 56e6);
        let came: Vec<_> = (0..31).map(|k| Some(9_000_000 + k * 200_000)).collect();
        let mut sent = [2_000_000; 31];
        (sent[0], sent[1]) = (2_200_000, 1_900_000);
        assert!(ride.whole(&train(0, 1400, &sent, &came)).is_some());
    }

    /// A receiver that hands over eight at a time behind 400 Mbit/s, and 800 once the ride has begun.
    #[test]
    fn what_was_carried_is_not_forgotten_for_what_trains_said() {
        let mut ride = Ride::sparing(Budget { bytes: Bytes(20_000_000), time: Nanos::secs(30) }, 1);
        let (mut rate, mut free) = (400e6, 0.0f64);
        let carry = |plan: &Plan| {
            if plan.size == SMALL_SIZE {
                rate = 800e6;
            }
            let mut at = plan.at.0;
            let mut sent = vec![at];
            for gap in &plan.gaps {
                at += gap.0.max(1000);
                sent.push(at);
            }
            let bits = f64::from(plan.size) * 8.0;
            let leaves: Vec<f64> = sent
                .iter()
                .map(|&at| {
                    free = free.max(at as f64 / 1e9) + bits / rate;
                    free
                })
                .collect();
            let handed = |k: usize| leaves[(k / 8 * 8 + 7).min(leaves.len() - 1)];
            let came: Vec<_> = (0..sent.len()).map(|k| Some(((handed(k) + 0.005) * 1e9) as u64 + OFFSET)).collect();
            let mut seen = train(plan.id, plan.size, &sent, &came);
            let count = seen.packets.len();
            for (k, packet) in seen.packets.iter_mut().enumerate() {
                let of = (count - k / 8 * 8).min(8) as u32;
                packet.batch = crate::Batch { index: (k % 8) as u32, of };
            }
            seen
        };
        let (estimate, _) = run(carry, Nanos::millis(5), &mut ride);
        assert!(ride.proven > 600e6 && ride.c >= ride.proven, "{} {}", ride.c, ride.proven);
        assert!(estimate.value_bps.unwrap() > 600e6, "{estimate:?}");
    }

    /// A ride over 5 Mbit/s that found `c`: trains whose packets come L/c apart, and 12 small packets that waited so long [s].
    fn found(c: f64, waits: impl Fn(u64) -> f64) -> Ride {
        let mut ride = Ride::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) }, 1);
        let ns = |s: f64| (s * 1e9) as u64;
        let (apart, alone) = (ns(PACKET / c), |size: u16| ns(f64::from(size) * 8.0 / 5e6));
        for id in 0..4 {
            let came: Vec<_> = (0..5).map(|k| Some(1_000_000 + alone(LARGE) + k * apart)).collect();
            ride.trains.insert(id, train(id, LARGE, &[0; 5], &came));
        }
        let sent: Vec<u64> = (0..12).map(|k| k * 7_000_000).collect();
        let came: Vec<_> =
            (0..12).map(|k| Some(1_000_000 + alone(SMALL_SIZE) + sent[k as usize] + ns(waits(k)))).collect();
        ride.small = Some(train(9, SMALL_SIZE, &sent, &came));
        (ride.c, ride.first) = (c, 4);
        ride.find_base();
        ride
    }

    #[test]
    fn of_a_line_that_others_take_turns_on_a_share_is_a_bound() {
        let share = Estimate::of(2.5e6, 2.4e6, 2.6e6, 1);
        let line = found(2.5e6, |_| 0.0).of_line(share);
        assert!((line.value_bps.unwrap() / 5e6 - 1.0).abs() < 0.01, "{line:?}");
        assert_eq!((line.low_bps, line.high_bps, line.why_not), (2.4e6, f64::INFINITY, Some(WhyNot::Ambiguous)));
        // in one queue, and where each waits for what drains (a token bucket does that, too), it is what it is
        for ride in [found(5e6, |_| 0.0), found(2.5e6, |k| (14 - k) as f64 * 0.2e-3)] {
            assert_eq!(ride.of_line(share), share);
        }
    }

    /// Each small packet met a part of somebody's, so that the queue is not told by them.
    #[test]
    fn where_bytes_are_few_a_doubtful_share_is_a_bound() {
        let share = Estimate::of(2.5e6, 2.4e6, 2.6e6, 1);
        let ride = |bytes: u64, waits: fn(u64) -> f64| {
            let mut ride = found(2.5e6, waits);
            ride.budget.bytes = Bytes(bytes);
            ride.of_line(share)
        };
        let met = |k: u64| (k * 5 % 12) as f64 * 0.1e-3;
        let told = ride(50_000, met);
        assert_eq!((told.value_bps, told.low_bps, told.high_bps), (Some(2.5e6), 2.4e6, f64::INFINITY));
        assert_eq!(told.why_not, Some(WhyNot::Ambiguous));
        assert_eq!(ride(1_000_000, met), share);
        // where none came at all what was lost of the trains speaks
        let blind = |lost: usize| {
            let mut ride = found(2.5e6, |_| 0.0);
            (ride.small, ride.budget.bytes) = (None, Bytes(50_000));
            ride.trains
                .values_mut()
                .for_each(|train| train.packets.iter_mut().take(lost).for_each(|p| p.received = None));
            ride.of_line(share).why_not
        };
        assert_eq!([blind(1), blind(2)], [None, Some(WhyNot::Ambiguous)]);
    }

    /// A ride that got `c` of 200 Mbit/s; packets that are alone wake hosts, which takes them so long [us], and packet k of small ones so
    /// much more.
    fn fast(c: f64, wakes: u64, waits: impl Fn(u64) -> u64) -> Ride {
        let mut ride = Ride::new(Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) }, 1);
        let (apart, alone) = ((PACKET / c * 1e9) as u64, |size: u16, line: f64| (f64::from(size) * 8e9 / line) as u64);
        // who is alone has the whole line, also where others have their share of it
        let line = if c < 150e6 { 200e6 } else { c };
        for id in 0..4 {
            let wake = |k: u64| if k == 0 { wakes * 1000 } else { 0 };
            let came: Vec<_> = (0..9).map(|k| Some(1_000_000 + alone(LARGE, line) + k * apart + wake(k))).collect();
            let sent: Vec<u64> = (0..9).map(|k| if k < 5 { 0 } else { k * apart }).collect();
            ride.trains.insert(id, train(id, LARGE, &sent, &came));
        }
        let sent: Vec<u64> = (0..12).map(|k| k * 7_000_000).collect();
        let small = alone(SMALL_SIZE, line) + wakes * 1000;
        let came: Vec<_> = (0..12).map(|k| Some(1_000_000 + small + sent[k as usize] + waits(k) * 1000)).collect();
        ride.small = Some(train(9, SMALL_SIZE, &sent, &came));
        (ride.c, ride.first) = (c, 4);
        ride.find_base();
        ride
    }

    #[test]
    fn hosts_that_have_to_wake_for_a_packet_alone_make_no_turns_of_a_fast_line() {
        let share = |c: f64| Estimate::of(c, 0.99 * c, 1.01 * c, 1);
        // half of 200 Mbit/s
        let half = fast(100e6, 0, |_| 0).of_line(share(100e6));
        let told = (half.value_bps, half.low_bps, half.high_bps, half.why_not);
        assert_eq!(told, (Some(100e6), 99e6, f64::INFINITY, Some(WhyNot::Ambiguous)));
        for wakes in [0, 60] {
            assert_eq!(fast(200e6, wakes, |_| 0).of_line(share(200e6)), share(200e6), "{wakes} us");
        }
        // small ones that are late by chance say nothing
        assert_eq!(fast(100e6, 0, |k| k * 40).of_line(share(100e6)), share(100e6));
    }

    #[test]
    fn a_packet_alone_tells_a_fair_queue_from_a_slow_link() {
        assert_eq!(discipline(5e6, 1.0 / 5e6, 5e6, 20e-6), Discipline::Shared);
        // two flows take turns on 5 Mbit/s
        assert_eq!(discipline(2.5e6, 1.0 / 5e6, 2.5e6, 20e-6), Discipline::Fair);
        // a bucket of 2.5 Mbit/s on a line of 100
        assert_eq!(discipline(2.5e6, 1.0 / 100e6, 100e6, 20e-6), Discipline::Unknown);
        // two links, one behind the other
        assert_eq!(discipline(3e6, 1.0 / 3e6 + 1.0 / 5e6, 3e6, 20e-6), Discipline::Shared);
        // 1 Gbit/s: 11 us are within the noise
        assert_eq!(discipline(1e9, 1e-9, 1e9, 20e-6), Discipline::Unknown);
    }
}
