//! Delays that wander though nobody waits: jitter of the way itself, as radio links have it.
//!
//! It looks like a queue: nearly every probe that is alone comes later than the fastest one. But who meets a queue meets those that
//! make it, also in the middle of the opening train, where a packet between two others sets them apart by its own time. Where delays
//! wander and trains stay together nobody waits. The ride then keeps a queue that is longer than delays wander; and as each train is
//! stretched or compressed by the way, C is the median of whole trains.
//!
//! Beside traffic trains do not stay together. There the queue itself tells: of who is alone as many come late as the line is busy, and
//! on a line so busy it would grow under the first probes of the ride, which leave without a report. Radio that sends at fixed
//! moments alone looks the same. And where trains are stretched (`stretch.rs`) delays do wander, whoever is there.

use super::super::stat::{median, median90, quantile};
use super::super::{FASTEST, Seen, TrainSeen, series};
use super::balance::CROSS;
use super::{PACKET, Ride};

/// Gaps above so many times the usual one have somebody between them; it is usual that this share has none, of so many at least.
const BETWEEN: f64 = 1.4;
const NOBODY: f64 = 0.97;
/// If probes waited for others so many of their packets would have come in between.
const MISSED: f64 = 5.0;
/// So many of the probes that are alone come later than the fastest one, by this share of L/C at least; of so many. Where nobody can
/// have come between, it is enough that some do; unless some are later by this factor than usual: a queue that drains.
const LATE: f64 = 0.6;
const SOME: f64 = 0.25;
const UNEVEN: f64 = 8.0;
/// No more packets of the trains are lost than so many, and this share.
const LOST: (f64, f64) = (1.0, 0.06);
const LATE_LEAST: f64 = 0.1;
const ALONE: usize = 8;
/// Probes near each other say as much as one of so many.
const ALIKE: f64 = 2.0;
/// More are late than the queue's growth explains, by so many standard deviations. Growth is told by so many probes at least, between the
/// medians of so many at each end.
const DOUBT: f64 = 2.5;
const GROWS: usize = 9;
const ENDS: usize = 3;
/// No share is known better than one of this size.
const LEAST: f64 = 0.05;
/// What was seen of it is not yet all.
const MORE: f64 = 1.2;
/// Delays that fall so fast from one small packet to the next are a queue's that drains [s/s], where so many of them do.
const DRAINS: f64 = 0.5;
const FALL: f64 = 0.9;
/// Nor do they rise so fast under the first probes of the ride: others fill the queue, who share a fast link before it with the probes,
/// between whose packets they do not come there.
const STEEP: f64 = 0.5;
/// Longer ones are queues [s].
const MOST: f64 = 100e-3;
/// And usually shorter than this where somebody may send, who may have given way [s].
const MOST_BESIDE: f64 = 4e-3;
/// So much is taken for wandering where somebody may send and trains are stretched: with more the ride crowds TCP out [s].
const MOST_STRETCHED: f64 = 6e-3;

/// Whether nobody came between the packets of trains that left at the rate C or faster, who would have if the line were busy.
fn together<'a>(trains: impl Iterator<Item = &'a TrainSeen>, c: f64, load: f64) -> bool {
    let (mut of, mut near, mut time) = (0, 0, 0.0);
    for train in trains {
        if let [first, .., last] = &train.packets[..] {
            time += last.sent.saturating_sub(first.sent).as_secs_f64();
        }
        let mut gaps = Vec::new();
        for pair in train.packets.windows(2).skip(1) {
            let single = pair.iter().all(|p| p.batch.of <= 1);
            if let (true, Some(a), Some(b)) = (single, pair[0].received, pair[1].received) {
                gaps.push(b.0.saturating_sub(a.0) as f64);
            }
        }
        // each is stretched in its own way
        let Some(usual) = median(&gaps).filter(|&usual| usual > 0.0) else { continue };
        of += gaps.len();
        near += gaps.iter().filter(|&&gap| gap <= BETWEEN * usual).count();
    }
    load * c * time / CROSS >= MISSED && near as f64 >= NOBODY * of as f64
}

/// At what rate a whole train came, without its first gap [bit/s].
pub(super) fn whole(train: &TrainSeen) -> Option<f64> {
    let rest = train.packets.get(1..).filter(|rest| rest.len() > 2 && rest.iter().all(|p| p.received.is_some()))?;
    let (first, last) = (rest.first()?.received?, rest.last()?.received?);
    (last > first)
        .then(|| (rest.len() - 1) as f64 * PACKET * 1e9 / (last.0 - first.0) as f64)
        .filter(|&rate| rate <= FASTEST)
}

/// Whether small packets met a queue that drained: each waited less than the one before, by as much as an idle line's queue loses.
fn drains(small: &TrainSeen) -> bool {
    let seen: Vec<(f64, f64)> =
        small.packets.iter().filter_map(|p| Some((p.sent.as_secs_f64(), p.own_delay()? as f64 / 1e9))).collect();
    let falls: Vec<f64> = seen.windows(2).map(|w| (w[0].1 - w[1].1) / (w[1].0 - w[0].0).max(1e-9)).collect();
    let falling = falls.iter().filter(|&&fall| fall > 0.0).count();
    seen.len() >= ALONE
        && falling as f64 >= FALL * falls.len() as f64
        && median(&falls).is_some_and(|usual| usual > DRAINS)
}

/// What others sent, as a share of C, if the line was busy under probes that left and waited so [s], and how long they took [s].
fn load_if_busy(waits: &[(f64, f64)], c: f64) -> Option<(f64, f64)> {
    if waits.len() < GROWS {
        return None;
    }
    let middle = |of: &[(f64, f64)]| median(&of.iter().map(|w| w.1).collect::<Vec<_>>()).unwrap_or(0.0);
    let grown = middle(&waits[waits.len() - ENDS..]) - middle(&waits[..ENDS]);
    // from the middle of one end to that of the other
    let time = waits[waits.len() - 1 - ENDS / 2].0 - waits[ENDS / 2].0;
    let own = (waits.len() - ENDS) as f64 * PACKET / c;
    (time > 0.0).then(|| (((grown + time - own) / time).clamp(0.0, 1.0), time))
}

impl Ride {
    /// By how much those probes came late that followed no other: small ones, and the firsts of trains before the ride [s].
    pub(super) fn alone(&self) -> Vec<f64> {
        let small = self.small.iter().flat_map(|train| &train.packets);
        let late = series::base(self.small.iter()).map(|base| {
            let floor = base.floor;
            // the least of the small ones is late too if it took as long as a large one
            let stood = (floor.delay - self.base.floor.delay_at(floor.at)).max(0.0);
            move |p: &Seen| Some((p.own_delay()? as f64 - floor.delay_at(p.sent.0) + stood) / 1e9)
        });
        let firsts = self.trains.range(..self.first).filter_map(|(_, train)| {
            let first = train.packets.first()?;
            Some((first.own_delay()? as f64 - self.base.floor.delay_at(first.sent.0)) / 1e9)
        });
        let small = small.filter_map(|p| late.as_ref().and_then(|late| late(p)));
        small.chain(firsts).collect()
    }

    /// Whether these came so late that the line may let packets gather for longer than the longest train shows.
    pub(super) fn may_gather(&self) -> bool {
        let longest = self.trains.range(..self.first).map(|(_, train)| train.packets.len()).max().unwrap_or(0);
        let shown = longest as f64 * PACKET / self.c + series::NOTHING;
        self.every == 0.0 && quantile(&self.alone(), 1.0).is_some_and(|most| most > shown)
    }

    /// By how much delays wander without a queue [s]: what the ride holds in the queue for it, and what they may in
    /// truth, where that would be too much beside others. Zero: no more than stamps do, or it cannot be told from a
    /// queue.
    pub(super) fn wanders(&self) -> (f64, f64) {
        if self.small.as_ref().is_none_or(drains) {
            return (0.0, 0.0);
        }
        let alone = self.alone();
        let least = series::NOTHING + self.blur() + LATE_LEAST * PACKET / self.c;
        let behind = alone.iter().filter(|&&late| late > least).count();
        let load = behind as f64 / alone.len() as f64;
        // who loses many has met a full queue, and others give way then
        let packets = || self.trains.range(..=self.first).flat_map(|(_, train)| &train.packets);
        let lost = packets().filter(|p| p.lost()).count();
        if alone.len() < ALONE || load < SOME || lost as f64 > LOST.0 + LOST.1 * packets().count() as f64 {
            return (0.0, 0.0);
        }
        let (most, usual) = (quantile(&alone, 1.0).unwrap_or(0.0), median(&alone).unwrap_or(0.0));
        let even = load < LATE || most < UNEVEN * usual;
        let grows = self.under_ride().is_some_and(|(load, _)| load > STEEP);
        let stays = load >= LATE && self.stays(load, alone.len());
        let wanders = (even && !grows && self.is_together(load)) || (usual <= MOST_BESIDE && stays);
        if wanders && MORE * most <= MOST {
            return (MORE * most, MORE * most);
        }
        // whoever came late where trains are stretched may have met nobody
        let stretched = self.capacity.stretched().is_some();
        let hold = if stretched && usual <= MOST_BESIDE { MORE * most.min(MOST_STRETCHED) } else { 0.0 };
        // nor whoever is late for longer than the line is busy, where others come closer than C allows
        let late = stretched || (stays && !self.is_exact());
        (hold, if late { MORE * most } else { 0.0 })
    }

    /// Whether delays wander by more than the ride may hold in the queue: who waits is not told from who is late then.
    pub(super) fn is_lost(&self) -> bool {
        self.late > self.wander
    }

    /// Whether nobody came between the packets of the trains before the ride, and of its first where a report came before the next.
    fn is_together(&self, load: f64) -> bool {
        together(self.trains.range(..=self.first).map(|(_, train)| train), self.c, load)
    }

    /// What others sent under the first probes of the ride if the line was busy, as a share of C, and how long those took [s]; none: too
    /// few, or some did not come.
    fn under_ride(&self) -> Option<(f64, f64)> {
        let from = self.trains.get(&self.first)?.packets.first()?.sent;
        let blind = |train: &&TrainSeen| {
            train.id == self.first || (self.is_far() && train.packets.iter().all(|p| p.sent < from + self.lag))
        };
        let packets = self.trains.range(self.first..).map(|(_, t)| t).take_while(blind).flat_map(|t| &t.packets);
        let mut waits = Vec::new();
        for p in packets {
            p.received?;
            if let Some(delay) = p.own_delay() {
                waits.push((p.sent.as_secs_f64(), (delay as f64 - self.base.floor.delay_at(p.sent.0)) / 1e9));
            }
        }
        load_if_busy(&waits, self.c)
    }

    /// Whether the queue grew less under the first probes of the ride than on a line on which this share of `count` probes alone comes
    /// late because it is busy.
    fn stays(&self, late: f64, count: usize) -> bool {
        let Some((load, time)) = self.under_ride() else { return false };
        let chance =
            (late * (1.0 - late)).max(LEAST) * ALIKE / count as f64 + load.max(LEAST) * CROSS / (self.c * time);
        late - load > DOUBT * chance.sqrt()
    }

    /// C where delays wander and nobody else sends, and half of its 90 % interval [bit/s].
    pub(super) fn wandering_capacity(&self) -> Option<(f64, f64)> {
        if !self.is_together(LATE) {
            return None;
        }
        let rates: Vec<f64> = self.trains.range(..self.first).filter_map(|(_, train)| whole(train)).collect();
        median90(&rates)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::train;
    use super::*;

    #[test]
    fn trains_stay_together_where_nobody_comes_between() {
        // 1.4 ms a packet at 8 Mbit/s, stretched by a fifth in the second half; a packet of others takes as long again
        let of = |others: u64, apart: u64| {
            let sent: Vec<u64> = (0..13).map(|k| k * apart).collect();
            let at = (0..13u64)
                .map(|k| Some(k * 1_400_000 + k.saturating_sub(6) * 280_000 + if k > 3 { others } else { 0 }));
            together([train(0, 1400, &sent, &at.collect::<Vec<_>>())].iter(), 8e6, LATE)
        };
        assert!(of(0, 1_400_000) && !of(1_500_000, 1_400_000));
        assert!(!of(0, 100_000), "in so short a time nobody need come");
    }

    /// At 8 Mbit/s a packet takes 1.4 ms.
    #[test]
    fn under_probes_the_queue_grows_by_what_others_send() {
        let of = |apart: f64, grows: f64| {
            let waits: Vec<(f64, f64)> = (0..40).map(|k| (f64::from(k) * apart, f64::from(k) * grows)).collect();
            load_if_busy(&waits, 8e6).unwrap()
        };
        // at the rate C, alone and where others send three quarters of C; at the half of C beside nobody, who is not told from a half
        let ms = 1e-3;
        assert!(of(1.4 * ms, 0.0).0 < 1e-9 && (of(1.4 * ms, 0.75 * 1.4 * ms).0 - 0.75).abs() < 1e-9);
        let (load, time) = of(2.8 * ms, 0.0);
        assert!((load - 0.5).abs() < 1e-9 && (time - 37.0 * 2.8 * ms).abs() < 1e-9);
        assert_eq!(load_if_busy(&[(0.0, 0.0); 8], 8e6), None);
    }

    /// Ten small packets, 0.1 ms apart.
    #[test]
    fn a_queue_that_drains_is_no_wandering_delay() {
        let of = |delay: &dyn Fn(u64) -> u64| {
            let sent: Vec<u64> = (0..10).map(|k| k * 100_000).collect();
            let came: Vec<_> = (0..10).map(|k| Some(sent[k as usize] + delay(k) * 1000)).collect();
            drains(&train(0, 120, &sent, &came))
        };
        assert!(of(&|k| 4800 - 60 * k) && !of(&|k| 4800 - 40 * k), "jitter changes more slowly");
        assert!(!of(&|k| 4800 + 60 * k) && !of(&|_| 4800));
        assert!(!of(&|k| if k % 2 == 0 { 4800 - 100 * k } else { 3000 }), "up and down");
    }

    #[test]
    fn a_whole_train_counts_from_its_second_packet() {
        let came = |at: &[u64]| at.iter().map(|&at| Some(at)).collect::<Vec<_>>();
        let seen = train(0, 1400, &[0; 4], &came(&[0, 500_000, 1_900_000, 3_300_000]));
        assert!((whole(&seen).unwrap() / 8e6 - 1.0).abs() < 1e-9);
        let mut lost = seen;
        lost.packets[2].received = None;
        assert_eq!(whole(&lost), None);
    }
}
