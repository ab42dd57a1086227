//! What others send, and whether it gives way.
//!
//! Under load a first-come-first-served queue balances: C = capacity, X = what others send, u = what is sent, p = the share of it
//! that passes, w' = the growth of the wait [s/s]: C (1 + w') = p (u + X), so X = C (1 + w') / p - u. TCP has given way when X
//! is far below what it was; what a schedule sends has not. Where every flow has its queue nothing has to give way: there it is
//! told by the line's being busy when nobody probes, since TCP fills what it is given. After Nimbus (Goyal et al.,
//! SIGCOMM 2022), which pulses its rate and looks for the answer.

use super::counting::logistic;
use super::probing::Phase;
use super::trail::{Point, Trail};
use crate::knowledge::{Cross, Knowledge};
use crate::stat::{deviation, line, median, quantile};
use crate::{LARGE, Value, WhyNot};

const PACKET: f64 = LARGE as f64 * 8.0;

/// A sparse probe that waited longer than this share of a packet's time and this long [s] found the line busy.
const BUSY: (f64, f64) = (0.02, 30e-6);
/// A packet that comes alone wakes its hosts, and is so late [s] where those of trains are not; up to this share of a packet's time
/// such waits do not count, and the others count above this quantile of all.
const LONE: (f64, f64, f64) = (100e-6, 0.5, 0.1);
/// That is no more than so many times what those of trains are late.
const WAKES: f64 = 5.0;
/// Where that hides so much of a packet's time, and packets of trains are late by this share of it, a line that is busy for so small
/// a share of the time is idle.
const HIDES: (f64, f64) = (0.3, 0.05);
const IDLE: f64 = 0.35;
/// Fewer sparse probes say nothing.
const FEW: usize = 8;
/// The part of a loaded phase that counts: its end, when others have had the time to answer.
const END: f64 = 0.5;
/// Below this share of the capacity nobody else sends.
const NOBODY: f64 = 0.04;
/// The shortest wait of so long [s] is no jitter's, with so many probes at the least.
const BLOCK: (f64, usize) = (0.1, 3);
/// Such waits [packets] count in logarithms, between these.
const STANDING: (f64, f64) = (0.1, 30.0);

/// In one queue for all: ln of the odds, for what has given way of what they sent (as a share of it, of a load of this at the least; 0.5
/// says nothing; without a blast what the push says, and where that says nothing), the logarithm of the packets that always
/// stand in the queue, the share of the time in which the line is busy and that without which it says nothing, what they
/// take of the line likewise, and by how much less busy it is after the measurement has filled it. A logistic regression on
/// 96 lines of `experiments/lines`, seeds 1001 to 1024.
const GAVE: (f64, f64, f64) = (1.7, 0.5, 0.15);
const GAVE_PUSH: (f64, f64) = (0.4, 0.3);
const STANDS: f64 = 1.0;
const FILLS: (f64, f64) = (1.4, 0.7);
const TAKES: (f64, f64) = (1.8, 0.5);
const FALLS: f64 = 2.0;
/// Who fills the line takes more than this share of it, beside the probes too.
const LITTLE: f64 = 0.15;

/// In a queue for every flow: TCP keeps the line busy, whoever needs no more than his share does not. The share of the time that is
/// neither, and how fast it turns there.
const FULL: (f64, f64) = (0.6, 12.0);
/// Where fewer of the waits are told from hosts that are late, the share that others have says it: each of those who are greedy
/// has as much as the probes. Half-way between a half and what the capacity may be off.
const SEEN: f64 = 0.3;
const GREEDY: f64 = 0.45;
/// Waits of which one is so much like the next (von Neumann's ratio, Annals of Mathematical Statistics 1941, over 2) wander by
/// themselves: then the line is full where the share that the probes had is all that was seen of it, to so much.
const WANDERS: f64 = 0.36;
const ALL: f64 = 0.07;
const ALL_SAYS: (f64, f64) = (1.5, -2.0);

/// What a packet that came alone may be late besides [s].
fn lone(c: f64) -> f64 {
    LONE.0.min(LONE.1 * PACKET / c)
}

fn long(trail: &Trail, c: f64) -> f64 {
    BUSY.1.max(BUSY.0 * PACKET / c).max(trail.late).max(lone(c))
}

/// The share of the time in which the line is busy while nobody but the sparse flow probes.
pub fn busy(trail: &Trail, phase: Phase, c: f64) -> Option<f64> {
    let waits: Vec<f64> = trail.alone(phase).into_iter().map(|wait| wait.1).collect();
    // where trains are not late either, what all of them wait is others' packets
    let usual = quantile(&waits, LONE.2)?.min(lone(c)).min(WAKES * trail.late);
    let busy = waits.iter().filter(|&wait| wait - usual > long(trail, c)).count() as f64;
    (waits.len() >= FEW).then(|| busy / waits.len() as f64)
}

/// The share of the waits behind one packet that are told from hosts that are late.
fn seen(trail: &Trail, c: f64) -> f64 {
    (1.0 - long(trail, c) * c / PACKET).max(SEEN)
}

/// What always stands in the queue while nobody but the sparse flow probes [s].
fn standing(trail: &Trail, phase: Phase) -> f64 {
    let waits = trail.alone(phase);
    let block = |wait: &(f64, f64)| ((wait.0 - waits[0].0) / BLOCK.0) as u64;
    let blocks = waits.chunk_by(|one, other| block(one) == block(other)).filter(|of| of.len() >= BLOCK.1);
    let least: Vec<f64> = blocks.map(|of| of.iter().map(|wait| wait.1).fold(f64::INFINITY, f64::min)).collect();
    median(&least).unwrap_or(0.0)
}

/// So many packets, and this long [s], always stand in a queue that TCP keeps from running empty.
const STANDS_ALWAYS: (f64, f64) = (3.0, 6e-3);

/// Whether the queue was never seen to run empty in a phase in which nobody but the sparse flow probed.
fn stood(trail: &Trail, phase: Phase, c: f64) -> bool {
    standing(trail, phase) > STANDS_ALWAYS.1.max(STANDS_ALWAYS.0 * PACKET / c)
}

/// Nor in the other one.
pub fn stands(trail: &Trail, c: f64) -> bool {
    [Phase::Listen, Phase::Pause].into_iter().all(|phase| stood(trail, phase, c))
}

/// Or not even in one: what waits wander or scatter by may be the way's.
fn stood_ever(trail: &Trail, c: f64) -> bool {
    [Phase::Listen, Phase::Pause].into_iter().any(|phase| stood(trail, phase, c))
}

/// Whether waits wander slowly while nobody but the sparse flow probes: by others' queue, or by themselves.
pub fn wanders(trail: &Trail) -> bool {
    is_alike(&trail.alone(Phase::Listen))
}

fn is_alike(waits: &[(f64, f64)]) -> bool {
    let Some(deviation) = deviation(&waits.iter().map(|wait| wait.1).collect::<Vec<f64>>()) else { return false };
    let steps = waits.windows(2).map(|w| (w[1].1 - w[0].1).powi(2)).sum::<f64>() / (waits.len() - 1) as f64;
    steps < WANDERS * 2.0 * deviation.powi(2)
}

/// What others sent at the end of a loaded phase [bit/s].
fn under(trail: &Trail, phase: Phase, c: f64) -> Option<f64> {
    let all: Vec<&Point> = trail.large(phase).collect();
    let (first, last) = (**all.first()?, **all.last()?);
    let from = last.left - END * (last.left - first.left);
    let part: Vec<&Point> = all.into_iter().filter(|p| p.left >= from).collect();
    let came: Vec<(f64, f64)> =
        part.iter().filter(|p| !p.lost && p.wait.is_finite()).map(|p| (p.left, p.wait)).collect();
    if came.len() < 2 * FEW {
        return None;
    }
    let passes = came.len() as f64 / part.len() as f64;
    let sent = (part.len() - 1) as f64 * PACKET / (last.left - part[0].left);
    let grows = line(&came)?.1;
    Some((c * (1.0 + grows) / passes - sent).max(0.0))
}

/// What share of it gives way, 0 to 1; none: nobody sends enough to tell. `a`: what is available [bit/s].
pub fn elastic(trail: &Trail, c: f64, a: f64, fair: bool) -> Value {
    let Some(busy) = busy(trail, Phase::Listen, c) else { return Value::none(WhyNot::TooFew) };
    let load = (1.0 - a / c).max(0.0);
    // who gives way in one queue for all fills it
    let nobody = || hosts(trail, c, busy) || (!fair && !stood_ever(trail, c));
    if load.max(busy) < NOBODY || (load < NOBODY && nobody()) {
        return Value::none(WhyNot::Absent);
    }
    Value::bare(logistic(if fair { apart(trail, c, load, busy) } else { together(trail, c, load, busy) }))
}

/// Whether hosts that are late are all that made a line look so busy.
fn hosts(trail: &Trail, c: f64, busy: f64) -> bool {
    lone(c) > HIDES.0 * PACKET / c && trail.late > HIDES.1 * PACKET / c && busy < IDLE * seen(trail, c)
}

/// ln of the odds in a queue for every flow.
fn apart(trail: &Trail, c: f64, load: f64, busy: f64) -> f64 {
    if wanders(trail) {
        return if load < ALL { ALL_SAYS.0 } else { ALL_SAYS.1 };
    }
    // a wait behind one packet is as long as any up to its time
    if trail.late > (1.0 - SEEN) * PACKET / c {
        return FULL.1 * (load - GREEDY);
    }
    FULL.1 * ((busy / seen(trail, c)).min(1.0) - FULL.0)
}

/// And in one for all.
fn together(trail: &Trail, c: f64, load: f64, busy: f64) -> f64 {
    let gave = |sends: f64| ((load - sends / c) / load.max(GAVE.2)).clamp(-0.5, 1.0);
    let gives = match (under(trail, Phase::Blast, c), under(trail, Phase::Push, c)) {
        (Some(sends), _) => GAVE.0 * (gave(sends) - GAVE.1),
        (None, Some(sends)) => GAVE_PUSH.0 * (gave(sends) - GAVE_PUSH.1),
        (None, None) => 0.0,
    };
    let stands = (standing(trail, Phase::Listen) * c / PACKET).clamp(STANDING.0, STANDING.1).log10();
    let after = self::busy(trail, Phase::Pause, c).unwrap_or(busy);
    // a delay that wanders looks like a queue
    let queued = STANDS * stands + FILLS.0 * (busy - FILLS.1);
    let queued = if load < LITTLE && wanders(trail) && !stood_ever(trail, c) { queued.min(0.0) } else { queued };
    gives + queued + TAKES.0 * (load - TAKES.1) + FALLS * (busy - after).clamp(-0.3, 0.6)
}

/// Where TCP fills the line already, others are this many flows, between these.
const FLOWS: (f64, f64, f64) = (3.0, 1.0, 5.0);
/// TCP's segments [bit], and with the losses of the wire it gets no more than so many times what the formula says, and less.
const SEGMENT: f64 = 1448.0 * 8.0;
const OFF: f64 = 2.0;
/// They are known where the lower end of their interval is more than this share of them.
const KNOWN: f64 = 0.4;
/// It fills what it may have but for this share.
const LEAVES: f64 = 0.1;

/// CUBIC's mean window [segments] at a share of losses that know nothing of each other (RFC 9438, section 5.1 and figure 4; Reno's where
/// that is larger).
fn window(loss: f64, round_trip: f64) -> f64 {
    let cubic = 1.054 * (round_trip / loss).powf(0.75);
    cubic.max((1.5 / loss).sqrt())
}

/// What a new TCP flow would get [bit/s]: of a queue for every flow what the probes got, which took what they could; else what
/// is free, or beside others who give way a share of what they have too; and no more than losses allow. `c`: the capacity;
/// `round_trip` [s].
pub fn tcp(known: &Knowledge, c: f64, round_trip: f64) -> Value {
    let is = |value: &Value| value.value.is_some_and(|p| p > 0.5);
    let free = known.available_bps;
    let Some(a) = free.value else { return Value::none(free.why.unwrap_or(WhyNot::Ambiguous)) };
    // what a policer drops is perhaps nobody's
    let why = free.why.or(is(&known.policer.probability).then_some(WhyNot::Ambiguous));
    let gives = known.cross.elastic.value.unwrap_or(0.0);
    let (low, high) = (free.low.max(0.0), free.high.max(a).min(ABOVE * c));
    let among = |flows: f64| c / (1.0 + flows);
    let gets = match (is(&known.queue.fair), gives > 0.5) {
        (false, true) => Value::of(among(FLOWS.0).max(a / 2.0), among(FLOWS.2), among(FLOWS.1).max(a)),
        (false, false) if gives > PERHAPS => {
            Value::of((1.0 - LEAVES) * a, among(FLOWS.2).min(low), high.max(among(FLOWS.1)))
        }
        _ => Value::of((1.0 - LEAVES / 2.0) * a, (1.0 - LEAVES) * low, ABOVE * high),
    };
    let most = |loss: f64| window(loss.max(1e-9), round_trip) * SEGMENT / round_trip;
    let loss = known.loss.random;
    // a few losses may be a queue's
    let Some(lost) = loss.value.filter(|&lost| lost > 0.0 && loss.low > KNOWN * lost) else {
        return Value { low: gets.low.min(most(loss.high.min(1.0)) / OFF), ..gets }.but(why);
    };
    let value = gets.value.map_or(0.0, |value| value.min(most(lost)));
    Value::of(value, gets.low.min(most(loss.high) / OFF), gets.high.min(OFF * most(loss.low))).but(why)
}

/// What others send now, as far as it is known what is `free` [bit/s].
pub fn load(c: f64, free: Value) -> Value {
    let left = |of: f64| (c - of).max(0.0);
    let value = free.value.map(left);
    Value { value, low: left(free.high), high: left(free.low).max(value.unwrap_or(0.0)), why: free.why }
}

/// Where TCP fills the line it goes on to, but for so much of it, at the most.
const TCP_LEAVES: (f64, f64) = (0.03, 0.4);
/// So much more than the capacity as that may be off; from this probability on others who give way are reckoned with.
const ABOVE: f64 = 1.03;
const PERHAPS: f64 = 0.2;
/// What was seen is shorter than what comes: so many times as wide, and by this share of the capacity.
const LATER: (f64, f64) = (2.0, 0.02);

/// The mean of what others send over the next minutes [bit/s]: who gives way fills the line when the probes are gone; others as
/// much as now, as far as that is known, and as it has changed since `before`. `c`: the capacity.
pub fn later(known: &Knowledge, c: f64, before: f64) -> Value {
    let Cross { load_bps: now, elastic, .. } = known.cross;
    let most = ABOVE * c;
    let Some(load) = now.value else { return Value { low: 0.0, high: most, ..now } };
    let gives = elastic.value.unwrap_or(0.0);
    let half = LATER.0 * 0.5 * (now.high - now.low) + (load - before).abs() + LATER.1 * c;
    let (low, high) = ((load - half).max(0.0), if gives > PERHAPS { most } else { (load + half).min(most) });
    if gives <= 0.5 {
        return Value::of(load, low, high).but(now.why);
    }
    let fills = (1.0 - TCP_LEAVES.0) * c;
    if known.queue.fair.value.is_some_and(|fair| fair > 0.5) {
        // what the probes got of it looks like all of the line
        return Value::of(fills.max(load), low, f64::INFINITY).but(now.why);
    }
    let sure = gives > 1.0 - PERHAPS;
    Value::of(fills, if sure { low.max((1.0 - TCP_LEAVES.1) * c) } else { low }, most).but(now.why)
}

/// So busy is a line beside traffic that is not greedy, where that is to be told from none.
const HIDDEN: (f64, f64) = (0.08, 0.6);

/// What others send now, and whether it gives way. `free`: what is known to be available, `a`: what is taken for it [bit/s].
pub fn find(trail: &Trail, c: f64, free: Value, a: f64, fair: bool) -> Cross {
    let mut found = Cross { load_bps: self::load(c, free), elastic: elastic(trail, c, a, fair), ..Cross::default() };
    let listened = trail.alone(Phase::Listen);
    if fair && c - a < ALL * c && !is_alike(&listened) {
        // steady traffic in a queue of its own is no part of what was taken for the capacity; it shows in how busy the line is
        let n = listened.len() as f64;
        let taken = |busy: f64| c * busy / (1.0 - busy);
        if let Some(busy) =
            busy(trail, Phase::Listen, c).filter(|&busy| (HIDDEN.0..HIDDEN.1).contains(&busy) && !hosts(trail, c, busy))
        {
            let (low, high) = super::counting::share(busy * n, n);
            found.load_bps = Value::of(taken(busy), taken(low), taken(high.min(HIDDEN.1)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::probing::SPARSE;
    use super::*;
    use crate::TrainSeen;

    fn known(available: f64, elastic: f64, fair: f64, loss: f64) -> Knowledge {
        let mut known = Knowledge {
            available_bps: Value::of(available, 0.9 * available, 1.1 * available),
            cross: Cross {
                load_bps: load(10e6, Value::of(available, 0.9 * available, 1.1 * available)),
                ..Cross::default()
            },
            ..Knowledge::default()
        };
        known.cross.elastic = Value::bare(elastic);
        known.queue.fair = Value::bare(fair);
        known.loss.random = Value::of(loss, loss / 2.0, loss * 2.0);
        known
    }

    #[test]
    fn who_gives_way_comes_back_and_shares() {
        let (tcp, others) = (known(6e6, 0.9, 0.0, 0.0), known(6e6, 0.1, 0.0, 0.0));
        assert_eq!(later(&tcp, 10e6, 4e6), Value::of(9.7e6, 6e6, 10.3e6));
        let mean = later(&others, 10e6, 4e6);
        assert!(mean.value == Some(4e6) && mean.low < 3e6 && mean.high > 5e6, "{mean:?}");
        // what was more before may be more again
        assert!(later(&others, 10e6, 6e6).high > mean.high + 1e6);
        let gets = |known: &Knowledge| super::tcp(known, 10e6, 0.05).value.unwrap();
        assert!(gets(&tcp) < 0.4 * 10e6 && (gets(&others) / 5.7e6 - 1.0).abs() < 1e-9);
        // of a fair queue what the probes got
        assert!(gets(&known(5e6, 0.9, 1.0, 0.0)) > 4.5e6);
    }

    /// RFC 9438, figure 4: a round trip of 0.1 s, 1 % lost: 1.054 (0.1 / 0.01)^(3/4) are fewer than Reno's 12 segments.
    #[test]
    fn losses_bound_what_tcp_gets() {
        assert!((window(0.01, 0.1) - 150f64.sqrt()).abs() < 1e-9);
        assert!((window(1e-4, 0.1) - 1.054 * 1000f64.powf(0.75)).abs() < 1e-9);
        let lossy = super::tcp(&known(6e6, 0.1, 0.0, 0.01), 10e6, 0.1);
        assert!((lossy.value.unwrap() / (150f64.sqrt() * SEGMENT / 0.1) - 1.0).abs() < 1e-9, "{lossy:?}");
    }

    fn listening(wait: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
        (0..300).map(|k| (k as f64 * 2e-3, wait(k))).collect()
    }

    #[test]
    fn a_queue_stands_where_no_probe_finds_it_empty_for_long() {
        let both = |pause: f64| {
            let point = |phase, left, wait| Point { phase: Some(phase), sparse: true, left, wait, ..Point::default() };
            let probes =
                |phase, wait: f64| (0..200).map(move |k| point(phase, k as f64 * 5e-3, wait + k as f64 * 1e-5));
            Trail {
                points: probes(Phase::Listen, 0.05).chain(probes(Phase::Pause, pause)).collect(),
                ..Trail::default()
            }
        };
        assert!(stands(&both(0.03), 10e6) && !stands(&both(0.0), 10e6));
    }

    #[test]
    fn what_wanders_is_like_the_next() {
        assert!(is_alike(&listening(|k| 1e-3 * (k as f64 / 10.0).sin())));
        assert!(!is_alike(&listening(|k| 1e-3 * (k * 7919 % 13) as f64)));
        assert!(!is_alike(&listening(|_| 0.0)));
    }

    /// Up to 10 ms, in 50 ms from one knot to the next.
    #[test]
    fn a_delay_that_wanders_on_an_idle_line_gives_way_to_nobody() {
        for seed in 0..10 {
            let mut noise = pathcast_base::Stream::new(seed, "knots");
            let knots: Vec<f64> = (0..100).map(|_| noise.between(0.0, 10e-3)).collect();
            let wait = |at: f64| {
                let (k, share) = ((at / 50e-3) as usize, (at / 50e-3).fract());
                knots[k] + (knots[k + 1] - knots[k]) * share
            };
            let probes = |phase, from: f64| {
                let at = move |k| from + f64::from(k) * 2.5e-3;
                (0..280)
                    .map(move |k| Point {
                        phase: Some(phase),
                        sparse: true,
                        left: at(k),
                        wait: wait(at(k)),
                        ..Point::default()
                    })
                    .collect::<Vec<_>>()
            };
            let points = [probes(Phase::Listen, 0.0), probes(Phase::Pause, 3.0)].concat();
            let trail = Trail { points, ..Trail::default() };
            let of = |a: f64| elastic(&trail, 20e6, a, false);
            assert_eq!(of(20e6).why, Some(WhyNot::Absent));
            assert!(of(0.94 * 20e6).value.unwrap() < 0.4, "{:?}", of(0.94 * 20e6));
        }
    }

    /// What a host that wakes late makes of an idle line: packets `late` [s] on average, in the order in which they left.
    /// `queued`: what the sparse flow waits besides [s].
    fn by_a_late_host(late: f64, c: f64, queued: impl Fn(f64) -> f64) -> Trail {
        by_hosts(late, |_| 0.0, c, queued)
    }

    /// And those that come alone as much more [s], by their number, but for one in fifty.
    fn by_hosts(late: f64, alone: impl Fn(usize) -> f64, c: f64, queued: impl Fn(f64) -> f64) -> Trail {
        let mut noise = pathcast_base::Stream::new(7, "a late host");
        let mut train = |id: u64, size: u16, at: f64, gap: f64, wait: f64| {
            let ns = |s: f64| (s * 1e9) as u64;
            let sent: Vec<f64> = (0..40).map(|k| at + f64::from(k) * gap).collect();
            let (mut free, mut last) = (0.0f64, 0.0f64);
            let came: Vec<Option<u64>> = sent
                .iter()
                .map(|sent| {
                    free = free.max(sent + wait) + f64::from(size) * 8.0 / c;
                    last = last.max(free + 5e-3 - late * noise.between(1e-9, 1.0).ln());
                    Some(ns(last))
                })
                .collect();
            crate::testing::train(id, size, &sent.iter().map(|&s| ns(s)).collect::<Vec<u64>>(), &came)
        };
        let mut trains: Vec<(TrainSeen, Option<Phase>, bool)> =
            (0..8).map(|k| (train(k, LARGE, k as f64 * 0.02, 0.0, 0.0), None, false)).collect();
        for (k, phase) in (0..20).map(|k| (k, if k < 10 { Phase::Listen } else { Phase::Pause })) {
            let at = 1.0 + f64::from(k) * 0.1;
            let mut sparse = train(100 + k as u64, SPARSE, at, 2.5e-3, queued(at));
            for (k, p) in sparse.packets.iter_mut().enumerate().filter(|(k, _)| k % 50 != 7) {
                p.received = p.received.map(|at| at + pathcast_base::Nanos::from_secs_f64(alone(k)));
            }
            trains.push((sparse, Some(phase), true));
        }
        Trail::of(trains.iter().map(|(train, phase, sparse)| (train, *phase, *sparse, 0.0)), c, 1e-3)
    }

    /// An emulated line on a busy machine: it is idle, though every probe is later than the fastest one.
    #[test]
    fn a_late_host_is_nobody_who_gives_way() {
        for late in [0.1e-3, 0.2e-3, 0.4e-3] {
            for c in [5e6, 20e6, 100e6, 400e6] {
                let said = |trail: &Trail, a: f64, fair| elastic(trail, c, a, fair).value.unwrap_or(0.0);
                let idle = by_a_late_host(late, c, |_| 0.0);
                for (a, fair) in [(0.95 * c, true), (0.95 * c, false), (c, true), (c, false)] {
                    assert!(said(&idle, a, fair) < 0.5, "{late} {c} {a} {fair}: {}", said(&idle, a, fair));
                }
                // TCP that lets a queue for all never run empty; and that has a half of a fair one, as the probes have
                let full = by_a_late_host(late, c, |at| 20e-3 + 5e-3 * (7.0 * at).sin());
                assert!(said(&full, 0.3 * c, false) > 0.5, "{late} {c}");
                if late > PACKET / c {
                    assert!(said(&idle, 0.5 * c, true) > 0.5, "{late} {c}");
                }
            }
        }
    }

    /// As recorded over idle emulated lines of 100 Mbit/s: trains scatter by 10 us, sparse probes wait 30 to 70 us longer than the
    /// fastest one, and a packet takes 112 us.
    #[test]
    fn packets_that_come_alone_wake_their_hosts() {
        for (late, alone) in [(5e-6, 40e-6), (10e-6, 40e-6), (20e-6, 60e-6)] {
            for c in [20e6, 50e6, 100e6, 200e6] {
                let idle = by_hosts(late, |_| alone, c, |_| 0.0);
                for (a, fair) in [(0.98 * c, true), (0.98 * c, false), (c, true), (c, false)] {
                    let value = elastic(&idle, c, a, fair);
                    let nobody = value.why == Some(WhyNot::Absent) || value.value.is_some_and(|p| p < 0.1);
                    assert!(nobody, "{late} {c} {a} {fair} {value:?}");
                }
            }
            // greedy traffic in a queue for every flow: somebody's packet is always on the line
            let c = 100e6;
            if late > 10e-6 {
                continue; // a packet's time is no more than what trains scatter
            }
            let full = by_hosts(late, |k| alone + (k * 7 % 10) as f64 / 10.0 * PACKET / c, c, |_| 0.0);
            assert!(elastic(&full, c, c, true).value.is_some_and(|p| p > 0.5), "{late}");
        }
    }
}
