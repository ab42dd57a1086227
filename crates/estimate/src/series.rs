//! What a stream of probes says of the cross traffic: the balance of a busy queue.
//!
//! Symbols: C = capacity, L = size of a probe, t_i = departure from the sender, r_i = arrival at the receiver, d_i = r_i - t_i,
//! base = the smallest d. A probe that arrives at the bottleneck before the one before it has left (t_i + base - L/C <=
//! r_{i-1}) is *joined* to it: the line was busy from the one's departure to the other's, so that what it carried besides
//! the probe was cross traffic, and that had come in between the two probes:
//!
//! x_i = C (r_i - r_{i-1}) - L, during t_i - t_{i-1}.
//!
//! This is exact for any first-come-first-served queue and any traffic; nothing is assumed of its pattern. Summed over
//! joined probes, A = C - X/T. If the queue is as long at the end as at the beginning, C cancels out: A is then what the
//! probes themselves got, and holds even where the tight link is not the narrow one.
//!
//! A probe that is not joined bounds its cross traffic only: at least what it waited for itself, C (d_i - base), at most what
//! the line could have carried.

use pathcast_base::Nanos;

use super::TrainSeen;
use super::clock::{self, Floor};

/// Between two probes whose stamps are right; times [s], amounts [bit].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// From the first one's departure from the sender [s], by its clock.
    pub from: f64,
    /// To the second one's [s].
    pub time: f64,
    /// Cross traffic that came in between: the least.
    pub low: f64,
    /// And the most. The same as `low` if joined.
    pub high: f64,
    /// Whether the line was busy all the time.
    pub joined: bool,
    /// For how long it was perhaps idle [s].
    pub hidden: f64,
    /// The second probe's time in the queue before its own service [s].
    pub wait: f64,
    /// The first one's [s].
    pub before: f64,
    /// Probes received in it: the second one, and those of its batch [bit].
    pub bits: f64,
    /// Packets lost in between.
    pub lost: u32,
    /// A wait shorter than this may be none [s].
    pub unsure: f64,
}

/// How many probes about one that is not joined say how often the line was busy.
const NEAR: usize = 6;

/// The cross traffic of each segment [bit]. Where probes are not joined each samples the line for itself: the share that had
/// to wait is the load of the cross traffic nearby, as Poisson arrivals would see it. `blur` [s] is what a stamp may be
/// late; if it hides the wait behind a packet, the mean rate stands in.
pub fn filled(segments: &[Segment], capacity: f64, mean: f64, blur: f64) -> Vec<f64> {
    let open: Vec<usize> = (0..segments.len()).filter(|&i| !segments[i].joined).collect();
    let service = f64::from(super::LARGE) * 8.0 / capacity;
    let busy: Vec<bool> = open.iter().map(|&i| segments[i].wait > segments[i].unsure + 0.003 * service).collect();
    let mut bits: Vec<f64> = segments.iter().map(|s| s.low).collect();
    for (k, &i) in open.iter().enumerate() {
        let s = &segments[i];
        let near = k.saturating_sub(NEAR)..(k + NEAR + 1).min(open.len());
        let share = busy[near.clone()].iter().filter(|&&busy| busy).count() as f64 / near.len() as f64;
        let rate = if blur > service { mean } else { share * capacity };
        let low = (s.low - capacity * s.unsure).max(0.0);
        bits[i] = (rate * s.time).clamp(low, s.high.max(low));
    }
    bits
}

/// A wait shorter than this is the stamps' noise [s].
pub const NOTHING: f64 = 20e-6;

/// How late stamps may be because the receiving host gathers packets [s]: the line time of the largest usual batch.
pub fn blur<'a>(trains: impl Iterator<Item = &'a TrainSeen>, capacity: f64) -> f64 {
    let packets = trains.flat_map(|train| &train.packets).filter(|p| p.received.is_some());
    let batches: Vec<f64> = packets.map(|p| f64::from(p.batch.of)).collect();
    match super::stat::quantile(&batches, 0.9) {
        Some(of) if of > 1.0 => of * f64::from(super::LARGE) * 8.0 / capacity,
        _ => 0.0,
    }
}

/// The share of gaps that are closer than the scatter; and C is known so far.
const CLOSER: f64 = 0.9;
const EXACT: f64 = 0.98;

/// By how much packets came closer than they can have left the bottleneck [s]: whatever traffic there is, they leave it L/C apart
/// at least, so that of two that arrive closer the first was late.
pub fn scatter<'a>(trains: impl Iterator<Item = &'a TrainSeen>, capacity: f64) -> f64 {
    let mut closer = Vec::new();
    for train in trains {
        for pair in train.packets.windows(2) {
            let alone = pair.iter().all(|p| p.batch.of <= 1);
            if let (true, Some(before), Some(received)) = (alone, pair[0].received, pair[1].received) {
                let gap = (received.0 as f64 - before.0 as f64) / 1e9;
                closer.push(EXACT * f64::from(pair[1].size) * 8.0 / capacity - gap);
            }
        }
    }
    super::stat::quantile(&closer, CLOSER).unwrap_or(0.0).max(0.0)
}

/// The delays that the scatter stands for: of a gap two delays differ, and the floor is the least of thousands.
const SCATTER: f64 = 3.5;
/// Hosts are no noisier, unless they are stopped [s]; what a queue behind the bottleneck gathers on slow lines is.
pub const NOISIEST: f64 = 0.5e-3;

/// So long a packet that met nobody may be late, by what trains scatter that left at the rate C or faster [s].
pub fn late<'a>(trains: impl Iterator<Item = &'a TrainSeen>, capacity: f64) -> f64 {
    (SCATTER * scatter(trains, capacity)).min(NOISIEST)
}

/// Two clocks differ by no more [s/s].
const SKEW: f64 = 1e-4;

/// So many packets must lie on the floor near the beginning and near the end for its slope to be the clocks'.
const SUPPORT: usize = 4;

/// What a packet's delay is without a queue, and how far that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// The delay.
    pub floor: Floor,
    /// By how much it may drift away [s/s].
    pub drift: f64,
    /// What a stamp may be late [s].
    pub late: f64,
}

impl Base {
    /// A wait shorter than this at a time of the sender's clock [ns] may be none [s].
    pub fn unsure(&self, sent: u64) -> f64 {
        NOTHING + self.late + self.drift * self.floor.at.abs_diff(sent) as f64 / 1e9
    }
}

/// From packets whose stamps are their own: the smallest delay; and with the clocks' skew where packets met an idle path early
/// and late.
pub fn base<'a>(trains: impl Iterator<Item = &'a TrainSeen>) -> Option<Base> {
    let mut points: Vec<(u64, i64)> =
        trains.flat_map(|train| &train.packets).filter_map(|p| Some((p.sent.0, p.own_delay()?))).collect();
    points.sort_by_key(|p| p.0);
    let &(at, delay) = points.iter().min_by_key(|p| p.1)?;
    let level = Floor { at, delay: delay as f64, skew: 0.0 };
    let skewed = clock::floor(&points).filter(|floor| floor.skew.abs() < SKEW);
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let edge = last.saturating_sub(first) / 3;
    let support = |floor: &Floor, from: u64, to: u64| {
        let on = |p: &&(u64, i64)| (from..=to).contains(&p.0) && p.1 as f64 - floor.delay_at(p.0) < NOTHING * 1e9;
        points.iter().filter(on).count() >= SUPPORT
    };
    let both = |floor: &Floor| support(floor, first, first + edge) && support(floor, last - edge, last);
    let known = skewed.filter(both).map(|floor| Base { floor, drift: 0.0, late: 0.0 });
    Some(known.unwrap_or(Base { floor: level, drift: SKEW, late: 0.0 }))
}

/// Waits up to this share of the longest ones are short: a loss there is the wire's.
const SHORT: f64 = 0.5;

/// The loss of a wire is at most so much, and is known from so many packets [packets].
const WIRE: (f64, f64) = (0.06, 20.0);

/// What the losses among probes say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Packets.
    pub lost: u32,
    /// So many of them, as far as can be told, found the queue full and did not use the line; the others were lost on the wire.
    pub overflow: f64,
    /// How long the wait is that the queue has room for [s]; none: it did not overflow.
    pub room: Option<f64>,
}

/// Takes what the lost probes used of the line from each segment's cross traffic. A packet that found no place did not use the
/// line, one lost elsewhere did: where the waits are short losses are the wire's, which loses as many at any wait.
pub fn settle_losses(segments: &mut [Segment]) -> Losses {
    let size = f64::from(super::LARGE) * 8.0;
    let longer = |s: &Segment| s.wait.max(s.before);
    let longest = super::stat::quantile(&segments.iter().map(longer).collect::<Vec<f64>>(), 0.98).unwrap_or(0.0);
    let is_short = |s: &Segment| longer(s) < SHORT * longest;
    // packets and losses at short and at long waits
    let (mut packets, mut lost) = ([0.0; 2], [0.0; 2]);
    for s in segments.iter() {
        let k = usize::from(!is_short(s));
        packets[k] += s.bits / size + f64::from(s.lost);
        lost[k] += f64::from(s.lost);
    }
    let known = packets[0] >= WIRE.1;
    let wire = if known { (lost[0] / packets[0]).min(WIRE.0) } else { 0.0 };
    let carried = [0, 1].map(|k| if lost[k] > 0.0 { (wire * packets[k] / lost[k]).min(1.0) } else { 0.0 });
    let mut waits = Vec::new();
    for s in segments.iter_mut().filter(|s| s.lost > 0) {
        let k = usize::from(!is_short(s));
        let bits = f64::from(s.lost) * size * carried[k];
        s.high = (s.high - bits).max(if s.joined { f64::NEG_INFINITY } else { 0.0 });
        s.low = if s.joined { s.high } else { s.low.min(s.high) };
        if k == 1 {
            waits.push(longer(s));
        }
    }
    let overflow: f64 = (0..2).map(|k| lost[k] * (1.0 - carried[k])).sum();
    let all = lost[0] + lost[1];
    // a few more than expected are chance
    let full = overflow > 1.0 + all.sqrt();
    Losses { lost: all as u32, overflow, room: super::stat::median(&waits).filter(|_| full) }
}

/// The segments of trains in the order of their numbers; none spans a train that was not reported. What lost probes used of
/// the line counts as cross traffic until [`settle_losses`]. `capacity` in bit/s,
/// `base` as by [`base`].
pub fn segments<'a>(trains: impl Iterator<Item = &'a TrainSeen> + Clone, capacity: f64, base: Base) -> Vec<Segment> {
    // above the floor [s]
    let above = |sent: Nanos, delay: i64| (delay as f64 - base.floor.delay_at(sent.0)) / 1e9;
    let origin = trains.clone().next().and_then(|train| train.packets.first()).map_or(0, |p| p.sent.0);
    let mut segments = Vec::new();
    let mut walk: Option<Walk> = None;
    let mut next_id = None;
    for train in trains {
        if next_id.is_some_and(|id| id != train.id) {
            walk = None;
        }
        next_id = Some(train.id + 1);
        for packet in &train.packets {
            let bits = f64::from(packet.size) * 8.0;
            let service = bits / capacity;
            // both clocks' times less the floor: a packet that waits for nobody arrives when it is sent
            let sent = (packet.sent.0 as i64 - origin as i64) as f64 / 1e9;
            let received = packet.delay().map(|delay| sent + above(packet.sent, delay));
            let arrives = sent - service;
            if let Some(walk) = &mut walk {
                if packet.lost() {
                    walk.lost += 1;
                    continue;
                }
                // a twentieth of a service time that was perhaps idle is less than the stamps' own error
                let hidden = arrives - walk.busy_until;
                if hidden > 0.05 * service {
                    walk.joined = false;
                    walk.hidden += hidden;
                } else if hidden > 0.0 {
                    // nobody fits into it, but of thousands the sum counts
                    walk.idle += hidden;
                }
                walk.bits += bits;
                let Some(received) = received.filter(|_| packet.batch.is_last()) else {
                    // it used the line, and nobody knows when it came
                    walk.busy_until = walk.busy_until.max(arrives) + service;
                    continue;
                };
                let wait = (received - arrives - service).max(0.0);
                let most = (capacity * (received - walk.received) - walk.bits).max(0.0);
                let exact = capacity * (received - walk.received - walk.idle) - walk.bits;
                let low = if walk.joined { exact } else { (capacity * wait).min(most) };
                segments.push(Segment {
                    from: walk.from,
                    time: sent - walk.sent,
                    low,
                    high: if walk.joined { exact } else { most },
                    joined: walk.joined,
                    hidden: walk.hidden,
                    wait,
                    before: walk.wait,
                    bits: walk.bits,
                    lost: walk.lost,
                    unsure: base.unsure(packet.sent.0),
                });
            }
            if let (Some(received), true) = (received, packet.batch.is_last()) {
                let wait = (received - arrives - service).max(0.0);
                walk = Some(Walk {
                    from: packet.sent.as_secs_f64(),
                    sent,
                    received,
                    // what may be the stamps' noise is no proof of a queue
                    busy_until: if wait > base.unsure(packet.sent.0) { received } else { received.min(sent) },
                    wait,
                    bits: 0.0,
                    lost: 0,
                    joined: true,
                    hidden: 0.0,
                    idle: 0.0,
                });
            }
        }
    }
    segments
}

/// Fewer packets in a row prove no rate [packets]; nor do they in less than so many times what stamps may be late, so
/// that it is known to this share.
const PROOF: f64 = 24.0;
const PROOF_BLURS: f64 = 50.0;
pub(super) const CARRIED: f64 = 1.0 / PROOF_BLURS;

/// Packets that come with less than this share of a packet's time between them were handed over at once, behind one that was late.
const AT_ONCE: f64 = 0.25;

/// What the path has carried over the last segments at the most [bit/s], over rows of packets of which the last did not wait less
/// than the first: what a queue behind the narrow link gathers and lets go at once does not count, nor what the receiving host
/// does while the queue of probes grows, nor that it is perhaps so late [s] for the first of a row and not for the last. `capacity`
/// [bit/s] as far as it is known. None: no row is long enough for stamps that may be `blur` [s] late.
pub fn carried(segments: &[Segment], capacity: f64, blur: f64, host: f64) -> Option<f64> {
    let (mut bits, mut time, mut grown) = (0.0, 0.0, 0.0);
    // how late the first of those was that came at once: now, and at the most [s]
    let (mut late, mut latest) = (0.0, host);
    let mut most: Option<f64> = None;
    for s in segments.iter().rev() {
        bits += s.bits;
        time += s.time;
        grown += s.wait - s.before;
        let (due, gap) = (s.bits / capacity, s.time + s.wait - s.before);
        late = if gap < AT_ONCE * due { late + due - gap } else { 0.0 };
        latest = latest.max(late);
        let known = bits >= PROOF * f64::from(super::LARGE) * 8.0 && time > PROOF_BLURS * (blur + NOTHING);
        if known && grown >= 0.0 {
            most = Some(most.unwrap_or(0.0).max(bits / (time + grown + latest)));
        }
    }
    most
}

/// Since the last probe whose stamp is right.
struct Walk {
    from: f64,
    sent: f64,
    received: f64,
    /// Until when the line is busy at least, on the receiver's clock [s].
    busy_until: f64,
    wait: f64,
    /// Received since.
    bits: f64,
    lost: u32,
    joined: bool,
    hidden: f64,
    /// For how long the line was certainly idle, in pauses too short for anybody's packet [s].
    idle: f64,
}

#[cfg(test)]
mod tests {
    use super::super::testing::train;
    use super::*;

    /// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
    #[test]
    fn who_comes_too_close_was_late() {
        let of = |received: &[Option<u64>]| {
            let sent: Vec<u64> = (0..received.len() as u64).collect();
            scatter([train(0, 1000, &sent, received)].iter(), 8e6)
        };
        let us = |us: u64| Some(us * 1000);
        assert_eq!(of(&[us(1000), us(2000), us(5000), None, us(6000)]), 0.0, "others came between, one was lost");
        // 0.3 ms late, which the next one's gap tells; C may be 2 % off
        let late: Vec<Option<u64>> = (1..=9).map(|i| us(i * 1000 + if i % 2 == 0 { 300 } else { 0 })).collect();
        assert!((of(&late) - 0.28e-3).abs() < 1e-9, "{}", of(&late));
    }
    use crate::Batch;

    const C: f64 = 8e6; // a byte a microsecond: 1000 bytes take 1 ms
    const MS: u64 = 1_000_000;
    const FLOOR: Base = Base { floor: Floor { at: 0, delay: 1e6, skew: 0.0 }, drift: 0.0, late: 0.0 };

    fn of(sent: &[u64], received: &[Option<u64>]) -> Vec<Segment> {
        let train = train(0, 1000, sent, received);
        segments([&train].into_iter(), C, FLOOR)
    }

    #[test]
    fn between_joined_probes_all_else_is_cross_traffic() {
        // sent every 0.5 ms; behind the first come 1000 bytes of others, then none
        let s = of(&[0, MS / 2, MS], &[Some(MS), Some(3 * MS), Some(4 * MS)]);
        assert!(s.iter().all(|s| s.joined));
        assert!((s[0].low - 8000.0).abs() < 1e-6 && s[1].low.abs() < 1e-6);
        assert!((s[1].wait - 2e-3).abs() < 1e-12);
    }

    /// The receiver's host had no room for the one between: it used the line as if it had been told.
    #[test]
    fn what_came_and_was_not_read_is_neither_lost_nor_others() {
        let mut seen = train(0, 1000, &[0, MS / 2, MS], &[Some(MS), None, Some(3 * MS)]);
        let of = |seen: &TrainSeen| segments([seen].into_iter(), C, FLOOR)[0];
        assert_eq!((of(&seen).lost, of(&seen).low), (1, 8000.0));
        seen.packets[1].missed = true;
        assert_eq!((of(&seen).lost, of(&seen).low, of(&seen).bits), (0, 0.0, 16_000.0));
    }

    /// 4 % slower than the line carries them: nobody fits in between, and over a thousand of them the sum is no load.
    #[test]
    fn pauses_too_short_for_anybody_are_no_load() {
        let sent: Vec<u64> = (0..1000).map(|k| k * MS * 104 / 100).collect();
        let received: Vec<_> = sent.iter().map(|&at| Some(at + MS)).collect();
        let s = of(&sent, &received);
        let bits: f64 = filled(&s, C, 0.0, 0.0).iter().sum();
        assert!(s.iter().all(|s| s.joined) && bits.abs() < 1.0, "{bits}");
    }

    #[test]
    fn apart_they_give_bounds() {
        // the second arrives 2 ms after the first has left and waits 0.25 ms
        let s = of(&[0, 3 * MS], &[Some(MS), Some(4 * MS + MS / 4)])[0];
        assert!(!s.joined);
        assert!((s.low - 2000.0).abs() < 1e-6 && (s.high - 18_000.0).abs() < 1e-6, "{s:?}");
        assert!((s.hidden - 2e-3).abs() < 1e-12);
    }

    /// Segments of probes of 1400 bytes on a busy line: each with its wait [ms] and whether a probe before it was lost.
    fn waits(waits: impl Iterator<Item = (f64, bool)>) -> Vec<Segment> {
        let segment = |(wait, lost): (f64, bool)| Segment {
            from: 0.0,
            time: 2.8e-3,
            low: if lost { 11_200.0 } else { 0.0 },
            high: if lost { 11_200.0 } else { 0.0 },
            joined: true,
            hidden: 0.0,
            wait: wait * 1e-3,
            before: wait * 1e-3,
            bits: 11_200.0,
            lost: u32::from(lost),
            unsure: 0.0,
        };
        waits.map(segment).collect()
    }

    #[test]
    fn a_packet_that_found_no_place_did_not_use_the_line_and_one_lost_on_the_wire_did() {
        let left = |segments: &[Segment]| segments.iter().map(|s| s.low).sum::<f64>() / 11_200.0;
        // one in twenty, whatever the wait: all of them have used the line
        let mut wire = waits((0..300).map(|k| (f64::from(k % 30), k % 20 == k / 30)));
        let losses = settle_losses(&mut wire);
        assert!(losses.overflow < 3.0 && losses.room.is_none() && left(&wire).abs() < 3.0, "{losses:?}");
        // one in three at the longest waits alone: none of them has
        let mut full = waits((0..300).map(|k| (f64::from(k % 30), k % 30 > 19 && k % 3 == 0)));
        let losses = settle_losses(&mut full);
        assert!((losses.overflow - f64::from(losses.lost)).abs() < 1e-9 && left(&full) > 29.0, "{losses:?}");
        assert!((0.02..0.03).contains(&losses.room.unwrap()));
    }

    #[test]
    fn of_a_batch_the_last_stamp_counts_and_all_its_bytes() {
        let mut seen = train(0, 1000, &[0, 1, 2, 3], &[Some(MS), Some(4 * MS), Some(4 * MS), Some(4 * MS)]);
        for (index, packet) in (0..3).zip(&mut seen.packets[1..]) {
            packet.batch = Batch { index, of: 3 };
        }
        let s = segments([&seen].into_iter(), C, FLOOR);
        assert_eq!((s.len(), s[0].joined, s[0].bits), (1, true, 24_000.0));
        assert!(s[0].low.abs() < 0.1);
        assert!((blur([&seen].into_iter(), C) - 3.0 * 11_200.0 / C).abs() < 1e-12);
    }

    #[test]
    fn noise_is_no_queue() {
        // twice the service time apart; the first one's stamp is 15 us late
        let apart = [0, 50_000];
        let train = train(0, 25, &apart, &[Some(MS + 15_000), Some(MS + 50_000)]);
        let fast = segments([&train].into_iter(), C, FLOOR)[0];
        assert!(!fast.joined && filled(&[fast], C, 0.0, 0.0)[0] < 0.1, "{fast:?}");
        // nor is what two clocks may drift apart within 10 s
        let late = [10_000 * MS, 10_003 * MS].map(|t| (t, Some(t + MS + MS / 2)));
        let train = super::super::testing::train(0, 1000, &late.map(|l| l.0), &late.map(|l| l.1));
        let of = |drift| segments([&train].into_iter(), C, Base { drift, ..FLOOR });
        let bits = |drift| filled(&of(drift), C, 0.0, 0.0)[0];
        assert!(bits(0.0) > 10_000.0 && bits(SKEW) < 0.1);
    }

    #[test]
    fn a_train_without_report_breaks_the_series() {
        let trains = [0, 2].map(|id| train(id, 1000, &[id * 9 * MS, id * 9 * MS + 1], &[Some(MS), Some(2 * MS)]));
        assert_eq!(segments(trains.iter(), C, FLOOR).len(), 2);
    }

    #[test]
    fn the_base_follows_a_skewed_clock_only_if_the_path_was_idle_early_and_late() {
        let sent: Vec<u64> = (0..100).map(|k| k * 50 * MS).collect();
        let skewed = |queue: u64| -> Vec<Option<u64>> {
            sent.iter()
                .zip(0u64..)
                .map(|(&t, k)| Some(t + MS + t / 20_000 + if k > 20 { queue * (k % 7 + 1) } else { 0 }))
                .collect()
        };
        let idle = base([&train(0, 1000, &sent, &skewed(0))].into_iter()).unwrap();
        assert!((idle.floor.skew - 50e-6).abs() < 1e-9 && idle.drift == 0.0, "{idle:?}");
        let busy = base([&train(0, 1000, &sent, &skewed(MS))].into_iter()).unwrap();
        assert_eq!((busy.floor.skew, busy.floor.delay, busy.drift), (0.0, 1e6, SKEW));
        // one late packet that met nobody is no proof
        let mut once = skewed(MS);
        once[99] = skewed(0)[99];
        let once = base([&train(0, 1000, &sent, &once)].into_iter()).unwrap();
        assert_eq!((once.floor.skew, once.floor.delay, once.drift), (0.0, 1e6, SKEW));
    }

    /// Reports may come in any order, and flows are told one after the other.
    #[test]
    fn the_base_is_the_same_for_trains_in_any_order() {
        let trains: Vec<TrainSeen> = (0..100)
            .map(|k| {
                let sent: Vec<u64> = (0..10).map(|i| k * 100 * MS + i * MS).collect();
                let came: Vec<_> = sent.iter().map(|&t| Some(t + MS + t / 20_000 + k % 7 * MS / 9)).collect();
                train(k, 1000, &sent, &came)
            })
            .collect();
        let right = base(trains.iter()).unwrap();
        assert!((right.floor.skew - 50e-6).abs() < 1e-8 && right.drift == 0.0, "{right:?}");
        let mut stream = pathcast_base::Stream::new(1, "order");
        for _ in 0..20 {
            let mut order: Vec<(u64, &TrainSeen)> = trains.iter().map(|train| (stream.bits(), train)).collect();
            order.sort_unstable_by_key(|(place, _)| *place);
            assert_eq!(base(order.iter().map(|(_, train)| *train)), Some(right));
        }
    }

    #[test]
    fn what_was_carried_is_proof_unless_a_queue_let_it_go_at_once() {
        let spread = |wait: fn(u32) -> f64| -> Vec<Segment> {
            let one =
                |k| Segment { wait: wait(k + 1), before: wait(k), lost: 0, ..waits([(0.0, false)].into_iter())[0] };
            (0..40).map(one).collect()
        };
        // 1400 bytes every 2.8 ms
        for shown in [2.5e6, 3.5e6, 4e6] {
            assert!((carried(&spread(|_| 0.0), shown, 0.0, 0.0).unwrap() / 4e6 - 1.0).abs() < 1e-9);
        }
        assert_eq!(carried(&spread(|_| 0.0)[..20], 4e6, 0.0, 0.0), None);
        assert_eq!(carried(&spread(|k| 0.1 - f64::from(k) * 1e-3), 4e6, 0.0, 0.0), None);
        let longer = carried(&spread(|k| f64::from(k) * 1e-3), 11_200.0 / 3.8e-3, 0.0, 0.0).unwrap();
        assert!((longer / (11_200.0 / 3.8e-3) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn packets_that_were_handed_over_late_and_at_once_prove_no_rate() {
        // sent every 0.9 ms, a millisecond each; the sixth to ninth come 4 ms after the sixth should
        let sent: Vec<u64> = (0..60).map(|k| k * MS * 9 / 10).collect();
        let received: Vec<_> = (1..=60).map(|k| Some(if k > 5 { k.max(10) } else { k } * MS)).collect();
        let most = carried(&of(&sent, &received), C, 0.0, 0.0).unwrap();
        assert!(most < 1.001 * C, "{most}");
        // nor where they hide among others
        assert!(carried(&of(&sent[4..], &received[4..]), C, 0.0, 0.0).unwrap() < 1.001 * C);
    }

    /// The first of a row, sent at 1.1 C, is 4.5 ms late, the next ones less: the queue that the row makes does not show.
    #[test]
    fn a_host_that_was_late_for_the_first_proves_no_rate() {
        let sent: Vec<u64> = (0..90).map(|k: u64| k * MS - k.saturating_sub(40) * MS / 10).collect();
        let late =
            |k: u64| [45, 38, 31, 24, 17, 10, 3].get(k.wrapping_sub(40) as usize).map_or(0, |tenths| tenths * MS / 10);
        let received: Vec<_> = (0..90).map(|k| Some((k + 1) * MS + late(k))).collect();
        let seen = of(&sent, &received);
        let most = |host: f64| carried(&seen, C, 0.0, host).unwrap() / C;
        assert!(most(0.0) > 1.05 && most(4.5e-3) < 1.001, "{} {}", most(0.0), most(2.5e-3));
    }

    #[test]
    fn apart_the_share_of_probes_that_wait_is_the_load() {
        // every fourth finds the line busy, for 0.2 ms
        let sent: Vec<u64> = (0..41).map(|k| k * 5 * MS).collect();
        let received: Vec<_> = (0..41).map(|k| Some(k * 5 * MS + MS + u64::from(k % 4 == 1) * MS / 5)).collect();
        let s = of(&sent, &received);
        // three thousandths of a large packet's own time are no wait
        let blip = |wait: f64| filled(&[Segment { wait, unsure: 0.0, ..s[1] }], C, 0.0, 0.0)[0];
        assert!(blip(4.1e-6) == 0.0 && blip(4.3e-6) > 0.0);
        let bits = filled(&s, C, 0.0, 0.0);
        let rate = bits.iter().sum::<f64>() / 0.2;
        assert!((rate / C - 0.25).abs() < 0.02, "{rate}");
    }
}
