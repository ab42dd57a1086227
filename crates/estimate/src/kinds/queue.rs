//! The queue in front of the bottleneck: whose it is, whether it is managed, and how long it gets.
//!
//! - **Fair.** While the large probes wait, do the sparse ones, a flow of their own, wait with them?
//! - **Managed.** A queue that merely overflows loses nothing beyond the wire's share while it has room. CoDel (RFC 8289) drops
//!   as soon as waits have been long for a while, PIE (RFC 8033) and RED (Floyd and Jacobson 1993) at random before it is full.

use super::counting::{ln_count, logistic};
use super::loss::Counted;
use super::probing::Phase;
use super::trail::{OTHERS, Point, Trail};
use crate::stat::{median, quantile};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A queue of fewer packets says nothing of whose it is, nor one of so many times what hosts are late.
const SOME: f64 = 3.0;
const SOME_LATE: f64 = 3.0;
/// Where more than this share of the large ones was overtaken nothing is said.
const OVERTOOK: f64 = 0.02;
/// Sparse probes count while the large ones wait at least this share of the longest wait.
const WAITING: f64 = 0.4;
/// Half-way between waiting with the others and not at all; how fast the probability turns there; probes that are enough.
const TOGETHER: f64 = 0.5;
const TURNS: f64 = 14.0;
const ENOUGH: usize = 4;
/// And of all in the loaded phases so many: a host that sends in bursts makes a queue for a moment, which is no queue's whose it is.
const STOOD: f64 = 0.1;

/// How probable it is that every flow has a queue of its own; none: hardly any pair stood in a queue.
pub fn fair(trail: &Trail, c: f64) -> Option<f64> {
    let pairs = trail.beside();
    if trail.overtook() > OVERTOOK {
        return None;
    }
    let longest = pairs.iter().filter_map(|pair| pair.1).fold(0.0, f64::max);
    let some = (SOME * PACKET / c).max(SOME_LATE * trail.late);
    let stood: Vec<(f64, f64)> =
        pairs.iter().filter_map(|&(sparse, large)| Some((sparse, large?))).filter(|pair| pair.1 > some).collect();
    let ratios: Vec<f64> =
        stood.iter().filter(|pair| pair.1 >= WAITING * longest).map(|(sparse, large)| sparse / large).collect();
    if ratios.len() < ENOUGH || (stood.len() as f64) < STOOD * pairs.len() as f64 {
        return None;
    }
    Some(logistic(TURNS * (TOGETHER - median(&ratios)?)))
}

/// How long the queue is when it overflows, as far as it did: near the longest at which probes were lost, else the longest.
pub fn ceiling(trail: &Trail, length: impl Fn(&Point) -> f64) -> f64 {
    let of = |lost: bool| -> Vec<f64> {
        trail.loaded().filter(|p| p.lost == lost).map(&length).filter(|x| x.is_finite()).collect()
    };
    let (lost, all) = (of(true), of(false));
    let most = quantile(&all, 0.98).unwrap_or(0.0);
    if lost.len() < 5 { most } else { quantile(&lost, 0.9).unwrap_or(most).min(most.max(1e-9) * 1.2) }
}

/// Below this share of the ceiling a queue has room, whatever sizes wait in it; where flows have queues of their own that share
/// their room below this one.
const ROOM: f64 = 0.7;
const ROOM_FAIR: f64 = 0.57;
const ROOM_WIDE: f64 = 0.45;
const ROOM_SOME: f64 = 0.8;
/// While the queue is held, where others fill it at times.
const ROOM_FILLED: f64 = 0.57;
/// A queue of fewer packets cannot be held so far from its ends.
const HELD: f64 = 20.0;
/// A queue that grows so fast [s/s] has room too, and below this share of the ceiling it is not just full.
const GROWS: f64 = 0.12;
const GROWS_ROOM: f64 = 0.85;
/// The wire's losses before anything was seen: packets, losses.
const WIRE: (f64, f64) = (40.0, 0.3);
/// So many of those lost in a full queue may look as if it had room, or had much, or shared it, or grew.
const LEAK: f64 = 0.05;
const LEAK_WIDE: f64 = 0.01;
const LEAK_FAIR: f64 = 0.1;
const LEAK_SOME: f64 = 0.15;
const LEAK_GROWS: f64 = 0.1;
/// Shares that a managed queue may drop there, and how many times as probable as the others each is.
const DROPS: [(f64, f64); 10] = [
    (0.0005, 0.3),
    (0.001, 0.3),
    (0.002, 1.0),
    (0.005, 1.0),
    (0.01, 1.0),
    (0.02, 1.0),
    (0.05, 1.0),
    (0.1, 1.0),
    (0.2, 1.0),
    (0.4, 1.0),
];

/// ln of how many times as probable a managed queue is before anything was seen: what overflows is the simpler one.
const PRIOR: f64 = -0.4;

/// How probable it is that it drops before it is full. `wire`: what was counted where the queue was empty. Full is where it
/// is longest: in time, or where its rate changes in packets. `shared`: others' queues have a part of its room.
///
/// A push loses so much of a fast line's packets in the full queue that the few among them that were not would hide what is dropped
/// while the queue is held, which is therefore looked at by itself. `filled`: others' traffic fills it then, too.
/// `c`: the capacity [bit/s].
pub fn managed(trail: &Trail, c: f64, wire: &Counted, shared: bool, filled: bool) -> f64 {
    let long = ceiling(trail, |p| p.wait) * c > HELD * PACKET;
    let by = |length: fn(&Point) -> f64| {
        let ceiling = ceiling(trail, length);
        let below = |room: f64, leak| early(trail, None, wire, leak, |p| length(p) < room * ceiling);
        let room = if filled { ROOM_FILLED } else { ROOM_SOME };
        let held = early(trail, Some(Phase::Hold), wire, LEAK, |p| long && length(p) < room * ceiling);
        let grows = |p: &Point| length(p) < GROWS_ROOM * ceiling && p.grows.is_some_and(|grows| grows > GROWS);
        let rooms = match shared {
            true => below(ROOM_FAIR, LEAK_FAIR),
            false => below(ROOM_SOME, LEAK_SOME).max(below(ROOM, LEAK)).max(below(ROOM_WIDE, LEAK_WIDE)),
        };
        rooms.max(held).max(early(trail, None, wire, LEAK_GROWS, grows))
    };
    by(|p| p.wait).min(by(|p| p.ahead + 1.0))
}

/// The same of losses where there was room, of one phase or of all that load the line. Many in a row are one: whoever manages a queue
/// drops packets one by one, and a busy host all that it has no room for.
fn early(trail: &Trail, phase: Option<Phase>, wire: &Counted, leaks: f64, room: impl Fn(&Point) -> bool) -> f64 {
    let (mut n, mut k, mut full, mut before) = (0.0, 0.0, 0.0, false);
    let counts = |p: &&Point| p.wait.is_finite() && phase.is_none_or(|phase| p.phase == Some(phase));
    for p in trail.loaded().filter(counts) {
        let lost = f64::from(u8::from(p.lost));
        let again = std::mem::replace(&mut before, p.lost);
        if room(p) {
            n += 1.0;
            k += if again { 0.0 } else { lost };
        } else {
            full += lost;
        }
    }
    let (of, lost) = (wire.packets + WIRE.0, wire.lost + WIRE.1);
    let times = n / of;
    let leak = leaks * full;
    let alone = times * lost * (1.0 + times);
    let (mean, variance) = (times * lost + leak, alone * wire.inflation() + leak * (1.0 + leak));
    let plain = ln_count(k, mean, variance);
    let drops = |&(drop, weight): &(f64, f64)| {
        ln_count(k, mean + drop * n, variance + drop * n * (1.0 + 0.2 * drop * n)) + f64::ln(weight)
    };
    let each: Vec<f64> = DROPS.iter().map(drops).collect();
    let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let all: f64 = DROPS.iter().map(|drop| drop.1).sum();
    let managed = most + (each.iter().map(|ln| (ln - most).exp()).sum::<f64>() / all).ln();
    // fewer than a queue that merely overflows loses are no sign of another
    let more = if k > mean { managed - plain } else { (managed - plain).min(0.0) };
    logistic((more + PRIOR).clamp(-30.0, 30.0))
}

/// So many losses beyond the wire's near its longest say that it was full.
const FULL: f64 = 5.0;

/// Full: at least this share of what it holds at the most.
const NEARLY: f64 = 0.9;
/// A queue that counts bytes has no room for a small packet so much seldomer than for a large one.
const SMALL_LOST: f64 = 0.1;
/// Queues that count packets, for each that counts bytes, before anything was seen.
const COUNT_PACKETS: f64 = 3.0;
/// Delays that wander are waits of no queue: the first quantile of them stands for those of lost probes, whose waits
/// are one of the same, and above this share of the depth that is not to be trusted.
const WANDERS: (f64, f64) = (0.9, 0.3);
const ENOUGH_IDLE: usize = 8;
/// A flow of CUBIC stands at so much of the length at which it loses, on average.
const SAWTOOTH: f64 = 0.87;
/// From this probability on it is taken for certain.
const SURE_OF: f64 = 0.9;

/// How probable it is that the queue counts packets and not bytes: small ones find no room in it as often as large ones.
fn counts_packets(trail: &Trail, ceiling: f64) -> f64 {
    let full = |sparse: bool| {
        let counts = |p: &&Point| {
            p.sparse == sparse && matches!(p.phase, Some(Phase::Push | Phase::Blast)) && p.wait >= NEARLY * ceiling
        };
        let lost = trail.points.iter().filter(counts).filter(|p| p.lost).count() as f64;
        (trail.points.iter().filter(counts).count() as f64, lost)
    };
    let ((large, lost), (small, small_lost)) = (full(false), full(true));
    let share = (lost + 0.5) / (large + 1.0);
    let bytes = SMALL_LOST * share;
    let ln = small_lost * (share / bytes).ln() + (small - small_lost) * ((1.0 - share) / (1.0 - bytes)).ln();
    logistic(ln + COUNT_PACKETS.ln())
}

/// Whose waits those are that probes have while nobody else probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The way's own: nobody else sends.
    Ways,
    /// The way's own or others' queue.
    Either,
    /// Others' queue.
    Others,
}

/// The wait of a flow that fills the queue [s] with an interval: where it overflows; where it is managed what it stands at. What
/// never overflowed is longer. A queue that counts packets has no room for more of them because some are small: its wait is that
/// behind full-sized ones. `c`: the capacity [bit/s]; `wire`: the share that the wire loses. What delays wander by
/// without a queue is none of it.
pub fn depth(trail: &Trail, ceiling: f64, (fair, managed): (bool, bool), c: f64, wire: f64, idle: Idle) -> Value {
    // what only one of them saw was others' queue
    let phases = [Phase::Listen, Phase::Pause].map(|phase| trail.idle(phase));
    let seen = || phases.iter().filter(|waits| waits.len() >= ENOUGH_IDLE);
    let least = |share| seen().filter_map(|waits| quantile(waits, share)).reduce(f64::min);
    let wanders = |share| least(share).filter(|_| idle != Idle::Others).unwrap_or(0.0);
    let (most, usual) = (wanders(WANDERS.0), wanders(0.5));
    let by_way = |found: Value, off: f64| {
        let less = |value: f64, off: f64| (value - off).max(0.0);
        let value = if idle == Idle::Ways { found.value.map(|value| less(value, off)) } else { found.value };
        let doubtful = value.is_some_and(|value| most > WANDERS.1 * value);
        let why = found.why.or(doubtful.then_some(WhyNot::Ambiguous));
        Value { value, low: less(found.low, most), why, ..found }
    };
    let found = of_waits(trail, ceiling, (fair, managed), c, wire);
    by_way(found, if managed { usual } else { most })
}

/// The same where all that probes wait is the queue's.
fn of_waits(trail: &Trail, ceiling: f64, (fair, managed): (bool, bool), c: f64, wire: f64) -> Value {
    if !managed {
        let near: Vec<&Point> = trail.loaded().filter(|p| p.wait >= ROOM * ceiling).collect();
        let lost = near.iter().filter(|p| p.lost).count() as f64;
        if lost < FULL + 2.0 * wire * near.len() as f64 {
            return Value::at_least(ceiling, WhyNot::BeyondLimit);
        }
        let packets = self::ceiling(trail, |p| p.packets) * OTHERS / c;
        let counts = counts_packets(trail, ceiling);
        let bounds = if counts > SURE_OF { (packets, packets) } else { (ceiling.min(packets), ceiling.max(packets)) };
        if fair {
            return Value::of(SAWTOOTH * ceiling, 0.5 * ceiling, 1.1 * bounds.1);
        }
        return Value::of(if counts > 0.5 { packets } else { ceiling }, 0.9 * bounds.0, 1.1 * bounds.1);
    }
    let waits: Vec<f64> = trail
        .large(Phase::Hold)
        .chain(trail.large(Phase::Push))
        .filter(|p| !p.lost && p.wait.is_finite())
        .map(|p| p.wait)
        .collect();
    let at = |p| quantile(&waits, p).unwrap_or(0.0);
    Value::of(median(&waits).unwrap_or(0.0), at(0.05), at(0.95))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that fills within a second; `lost`: by how far it is full, and the number of the probe.
    fn filled(lost: impl Fn(f64, usize) -> bool) -> Trail {
        let point = |k: usize| {
            let full = (k as f64 / 1000.0).min(1.0);
            let grows = Some(if full < 1.0 { 0.3 } else { 0.0 });
            let (wait, ahead) = (0.3 * full, 300.0 * full);
            let lost = lost(full, k);
            Point {
                phase: Some(Phase::Push),
                left: k as f64 * 1e-3,
                wait,
                ahead,
                packets: ahead,
                grows,
                lost,
                ..Point::default()
            }
        };
        Trail { points: (0..2000).map(point).collect(), ..Trail::default() }
    }

    /// Probes of a second, a large one every 0.1 ms while they wait `large` [s] by their time, a sparse one every 2 ms.
    fn both(large: impl Fn(f64) -> Option<f64>, sparse: impl Fn(f64) -> f64) -> Trail {
        let push = Point { phase: Some(Phase::Push), ..Point::default() };
        let mut points = Vec::new();
        for k in 0..10_000 {
            let left = f64::from(k) * 1e-4;
            points.extend(large(left).map(|wait| Point { left, wait, ..push }));
            if k % 20 == 0 {
                points.push(Point { sparse: true, left, wait: sparse(left), ..push });
            }
        }
        Trail { points, ..Trail::default() }
    }

    #[test]
    fn who_waits_with_the_others_shares_their_queue() {
        let grows = |at: f64| Some(0.05 * at);
        let of = |trail: &Trail| fair(trail, 100e6);
        assert!(of(&both(grows, |at| 0.05 * at)).is_some_and(|p| p < 0.01));
        assert!(of(&both(grows, |_| 1e-4)).is_some_and(|p| p > 0.99));
    }

    /// Recorded on an idle line whose sender let the flows wait for each other: large probes for 0.1 s, then sparse ones.
    #[test]
    fn who_came_when_the_others_had_left_says_nothing_of_their_queue() {
        let turns = |at: f64| (at % 0.2 < 0.1).then_some(8e-3 * (at % 0.2) / 0.1);
        let alone = |at: f64| if at % 0.2 < 0.1 { 8e-3 * (at % 0.2) / 0.1 } else { 5e-5 };
        let mut trail = both(turns, alone);
        trail.points.retain(|p| !p.sparse || p.left % 0.2 >= 0.1);
        assert_eq!(fair(&trail, 100e6), None);
        // nor do a few in a moment's queue, nor what hosts that are late make of none
        let burst = |at: f64| Some(if at < 0.05 { 5e-3 } else { 0.0 });
        assert_eq!(fair(&both(burst, |_| 5e-5), 100e6), None);
        let late = Trail { late: 0.4e-3, ..both(|_| Some(1e-3), |_| 5e-5) };
        assert_eq!(fair(&late, 100e6), None);
    }

    #[test]
    fn large_ones_that_come_late_are_no_longer_queue() {
        let late = |every: usize, guessed: bool| {
            let mut trail = both(|_| Some(2e-3), |_| 2e-3);
            for p in trail.points.iter_mut().filter(|p| !p.sparse).step_by(every) {
                (p.wait, p.guessed) = (p.wait + 20e-3, guessed);
            }
            fair(&trail, 100e6)
        };
        // too many overtook others; some did; of those without a stamp of their own nobody knows
        assert_eq!(late(20, false), None);
        assert!(late(100, false).is_some_and(|p| p < 0.1), "{:?}", late(100, false));
        assert!(late(20, true).is_some());
    }

    /// Also where flows have queues of their own, of which others' may take room.
    #[test]
    fn what_drops_while_the_queue_grows_is_managed() {
        let wire = Counted { packets: 500.0, ..Counted::default() };
        for shared in [false, true] {
            let managed = |trail: &Trail| self::managed(trail, 12e6, &wire, shared, false);
            let found = managed(&filled(|full, k| full > 0.1 && k % 20 == 0));
            assert!(found > 0.7, "{shared}: {found}");
            assert!(managed(&filled(|full, k| full == 1.0 && k % 4 == 0)) < 0.5);
            assert!(managed(&filled(|_, _| false)) < 0.5);
        }
    }

    /// A fast line: what the push lost would hide what is dropped while the queue is held.
    #[test]
    fn what_drops_while_the_queue_is_held_is_managed() {
        let wire = Counted { packets: 20_000.0, ..Counted::default() };
        let held = |lost: fn(f64, usize) -> bool| {
            // half-way to the ceiling and back
            let hold = (0..20_000).map(|k| {
                let full = 0.65 + 0.3 * (k as f64 / 3000.0).sin().powi(9);
                let (phase, left, wait) = (Some(Phase::Hold), 3.0 + k as f64 * 1e-4, 0.3 * full);
                Point { phase, left, wait, ahead: 3000.0 * full, lost: lost(full, k), ..Point::default() }
            });
            let push = (0..30_000).map(|k| {
                let full = (k as f64 / 10_000.0).min(1.0);
                let (phase, left, wait) = (Some(Phase::Push), k as f64 * 1e-4, 0.3 * full);
                Point { phase, left, wait, ahead: 3000.0 * full, lost: full == 1.0 && k % 3 == 0, ..Point::default() }
            });
            managed(&Trail { points: push.chain(hold).collect(), ..Trail::default() }, 100e6, &wire, false, false)
        };
        let (aqm, overflows, nobody) =
            (held(|_, k| k % 200 == 0), held(|full, k| full > 0.93 && k % 9 == 0), held(|_, _| false));
        assert!(aqm > 0.7 && overflows < 0.5 && nobody < 0.5, "{aqm} {overflows} {nobody}");
    }

    /// Recorded on a busy machine: four times some tens of packets in a row, on 6,000 that held a short queue.
    #[test]
    fn what_a_busy_host_has_no_room_for_is_no_drop_of_a_managed_queue() {
        let wire = Counted { packets: 8_000.0, lost: 10.0, rows: 2.0 };
        let hold = |lost: fn(usize) -> bool| {
            let point = |k: usize| {
                let (phase, wait) = (Some(Phase::Hold), if k % 1000 < 100 { 9e-3 } else { 2e-3 });
                Point { phase, left: k as f64 * 1e-4, wait, ahead: wait * 9e3, lost: lost(k), ..Point::default() }
            };
            let points = (0..6000).map(point).collect();
            managed(&Trail { points, ..Trail::default() }, 100e6, &wire, false, false)
        };
        let (host, aqm) = (hold(|k| k % 1500 < 25), hold(|k| k % 60 == 7));
        assert!(host < 0.5 && aqm > 0.7, "{host} {aqm}");
    }

    /// A line of 20 Mbit/s whose queue of 20 ms overflows for half of 2 s, and whose delay wanders by up to 10 ms in 50
    /// ms.
    #[test]
    fn what_delays_wander_by_is_no_depth() {
        let mut doubtful = 0;
        for seed in 0..20 {
            let mut noise = pathcast_base::Stream::new(seed, "knots");
            let knots: Vec<f64> = (0..200).map(|_| noise.between(0.0, 10e-3)).collect();
            let late = |at: f64| {
                let (k, share) = ((at / 50e-3) as usize, (at / 50e-3).fract());
                knots[k] + (knots[k + 1] - knots[k]) * share
            };
            let push = filled(|full, k| full == 1.0 && k % 4 == 0).points.into_iter().map(|p| {
                let wait = p.wait / 15.0 + late(p.left);
                Point { wait, packets: wait * 20e6 / OTHERS, ..p }
            });
            let pause = (0..300).map(|k| {
                let left = 3.0 + f64::from(k) * 2e-3;
                Point { phase: Some(Phase::Pause), sparse: true, left, wait: late(left), ..Point::default() }
            });
            let trail = Trail { points: push.chain(pause).collect(), ..Trail::default() };
            let of = |idle| depth(&trail, ceiling(&trail, |p| p.wait), (false, false), 20e6, 0.0, idle);
            let found = of(Idle::Ways);
            assert!(found.low <= 20e-3 && 20e-3 <= found.high, "{found:?}");
            assert!((found.value.unwrap() / 20e-3 - 1.0).abs() < 0.2, "{found:?}");
            doubtful += usize::from(found.why == Some(WhyNot::Ambiguous));
            assert!(of(Idle::Either).low <= 20e-3, "{:?}", of(Idle::Either));
            assert!(of(Idle::Others).value.unwrap() > 25e-3, "{:?}", of(Idle::Others));
        }
        assert!(doubtful > 15, "{doubtful}");
    }

    #[test]
    fn small_packets_find_room_where_bytes_are_counted() {
        let both = |small_lost: bool| {
            let mut trail = filled(|full, k| full == 1.0 && k % 4 == 0);
            let small = |p: &Point| Point { sparse: true, lost: p.lost && small_lost, ..*p };
            let more: Vec<Point> = trail.points.iter().step_by(3).map(small).collect();
            trail.points.extend(more);
            counts_packets(&trail, 0.3)
        };
        assert!(both(true) > 0.9 && both(false) < 0.1, "{} {}", both(true), both(false));
    }
}
