//! The managed queues written again from the words of their documents, slowly and with another structure: plain lists, an
//! event at a time, every decision where the document has it. What becomes of each packet must be the same to the
//! nanosecond. Only the random numbers and the hash of flows, which no document fixes, are the link's own.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{Codel, FqCodel, Params, Pie, Queue, Red, Tag, Wire};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Pk {
    id: u32,
    flow: u32,
    bytes: u32,
    ect: bool,
    marked: bool,
    at: u64,
}

/// What a law does with a packet that comes and finds the line taken, and which one it gives when the line is free.
trait Law {
    /// Those that go no further.
    fn arrive(&mut self, now: u64, idle: bool, packet: Pk) -> Vec<u32>;
    /// The next, and those that went no further before it.
    fn leave(&mut self, now: u64) -> (Option<Pk>, Vec<u32>);
}

/// When it arrived or went no further, whether it did not arrive, whether it was marked.
type Fates = BTreeMap<u32, (u64, bool, bool)>;

const RATE: Rate = Rate(12_000_000);
const DELAY: u64 = 4_000_000;
const OVERHEAD: u64 = 38;

fn slow(mut law: impl Law, packets: &[(u64, u32, u32, bool)]) -> Fates {
    let (mut fates, mut free_at, mut now) = (Fates::new(), 0, 0);
    let serve = |law: &mut dyn Law, fates: &mut Fates, now: u64, free_at: &mut u64| {
        while *free_at <= now {
            let (next, gone) = law.leave(*free_at);
            fates.extend(gone.iter().map(|id| (*id, (*free_at, true, false))));
            let Some(packet) = next else { return };
            *free_at += RATE.time_for(u64::from(packet.bytes) + OVERHEAD).0;
            fates.insert(packet.id, (*free_at + DELAY, false, packet.marked));
        }
    };
    for (id, &(gap, bytes, flow, ect)) in packets.iter().enumerate() {
        now += gap;
        serve(&mut law, &mut fates, now, &mut free_at);
        let idle = free_at <= now;
        let packet = Pk { id: id as u32, flow, bytes, ect, marked: false, at: now };
        fates.extend(law.arrive(now, idle, packet).iter().map(|id| (*id, (now, true, false))));
        if idle {
            free_at = now;
            serve(&mut law, &mut fates, now, &mut free_at);
        }
    }
    serve(&mut law, &mut fates, u64::MAX / 2, &mut free_at);
    fates
}

fn fast(queue: Queue, packets: &[(u64, u32, u32, bool)]) -> Fates {
    let overhead = Bytes(OVERHEAD);
    let params = Params { rate: Some(RATE), delay: Nanos(DELAY), overhead, queue, ..Params::default() };
    assert_eq!(params.check(), Ok(()));
    let (mut wire, mut fates, mut now) = (Wire::new(params, 5, "l"), Fates::new(), 0);
    let drain = |wire: &mut Wire<u32>, until: u64, fates: &mut Fates| {
        while let Some(due) = wire.next_due().filter(|due| due.0 <= until) {
            fates.extend(wire.pop(due).map(|r| (r.packet, (r.at.0, r.lost, r.marked && !r.lost))));
        }
    };
    for (id, &(gap, bytes, flow, ect)) in packets.iter().enumerate() {
        now += gap;
        drain(&mut wire, now, &mut fates);
        if wire.offer_tagged(Nanos(now), bytes, Tag { flow, ect }, id as u32).is_err() {
            fates.insert(id as u32, (now, true, false));
        }
    }
    drain(&mut wire, u64::MAX / 2, &mut fates);
    fates
}

/// RFC 8289: "the minimum sojourn time has been above TARGET for at least INTERVAL" starts a dropping state, in which the
/// n-th drop is INTERVAL / sqrt(n) after the one before (section 4.3); a state that begins soon after the last (16 intervals,
/// appendix) goes on with the count that the last one had gained.
#[derive(Clone, Debug, Default)]
struct Sojourn {
    queue: Vec<Pk>,
    /// Since when all waits have been above the target.
    above_since: Option<u64>,
    /// Drops so far in the state of dropping, if it is in one.
    dropping: Option<u32>,
    /// When the next drop is, or would have been.
    next_drop: u64,
    /// Drops of the last state, and with how many it began.
    last: (u32, u32),
    largest: u32,
}

fn sooner(interval: Nanos, count: u32) -> u64 {
    (interval.0 as f64 / f64::from(count).sqrt()) as u64
}

impl Sojourn {
    fn bytes(&self) -> u64 {
        self.queue.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    /// Takes the head and sees whether it has been above for long enough.
    fn head(&mut self, law: &Codel, now: u64) -> Option<(Pk, bool)> {
        if self.queue.is_empty() {
            self.above_since = None;
            return None;
        }
        let head = self.queue.remove(0);
        self.largest = self.largest.max(head.bytes).max(1500);
        let above = now - head.at >= law.target.0 && self.bytes() > u64::from(self.largest);
        let long = above && self.above_since.is_some_and(|since| now >= since + law.interval.0);
        self.above_since = if above { Some(self.above_since.unwrap_or(now)) } else { None };
        Some((head, long))
    }

    fn take(&mut self, law: &Codel, now: u64, gone: &mut Vec<u32>) -> Option<Pk> {
        let taken = self.head(law, now);
        let long = taken.is_some_and(|(_, long)| long);
        match (self.dropping, long) {
            (Some(count), false) => {
                self.last.0 = count;
                self.dropping = None;
                taken.map(|(head, _)| head)
            }
            (None, false) => taken.map(|(head, _)| head),
            (None, true) => {
                let gained = self.last.0 - self.last.1;
                let soon = now.saturating_sub(self.next_drop) < 16 * law.interval.0;
                let count = if gained > 1 && soon { gained } else { 1 };
                (self.dropping, self.last.1) = (Some(count), count);
                self.next_drop = now + sooner(law.interval, count);
                self.signal(law, taken?.0, gone).or_else(|| self.head(law, now).map(|(head, _)| head))
            }
            (Some(mut count), true) => {
                let mut head = taken?.0;
                while now >= self.next_drop {
                    count += 1;
                    self.dropping = Some(count);
                    if let Some(marked) = self.signal(law, head, gone) {
                        self.next_drop += sooner(law.interval, count);
                        return Some(marked);
                    }
                    let following = self.head(law, now);
                    if !following.is_some_and(|(_, long)| long) {
                        self.last.0 = count;
                        self.dropping = None;
                        return following.map(|(head, _)| head);
                    }
                    head = following?.0;
                    self.next_drop += sooner(law.interval, count);
                }
                Some(head)
            }
        }
    }

    /// Drops it, or marks it and gives it back.
    fn signal(&self, law: &Codel, packet: Pk, gone: &mut Vec<u32>) -> Option<Pk> {
        if law.ecn && packet.ect {
            return Some(Pk { marked: true, ..packet });
        }
        gone.push(packet.id);
        None
    }

    /// Drops that were no decision of this law count as well.
    fn add(&mut self, drops: u32) {
        match &mut self.dropping {
            Some(count) => *count += drops,
            None => self.last.0 += drops,
        }
    }
}

struct SlowCodel(Codel, Sojourn);

impl Law for SlowCodel {
    fn arrive(&mut self, _: u64, idle: bool, packet: Pk) -> Vec<u32> {
        if !idle && self.1.queue.len() >= self.0.limit as usize {
            return vec![packet.id];
        }
        self.1.queue.push(packet);
        Vec::new()
    }
    fn leave(&mut self, now: u64) -> (Option<Pk>, Vec<u32>) {
        let mut gone = Vec::new();
        (self.1.take(&self.0, now, &mut gone), gone)
    }
}

/// RFC 8290, section 4: queues by hash, a list of new ones and one of old ones, a quantum of bytes a turn.
struct SlowFq {
    law: FqCodel,
    key: u64,
    queues: BTreeMap<u32, Sojourn>,
    credits: BTreeMap<u32, i64>,
    new: Vec<u32>,
    old: Vec<u32>,
}

impl SlowFq {
    fn new(law: FqCodel) -> Self {
        let key = Stream::new(5, "l/fq_codel").bits();
        let (queues, credits) = (BTreeMap::new(), BTreeMap::new());
        SlowFq { law, key, queues, credits, new: Vec::new(), old: Vec::new() }
    }

    /// The link's own hash (splitmix64).
    fn hash(&self, flow: u32) -> u32 {
        let mut z = self.key ^ u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(self.law.flows)) >> 64) as u32
    }

    fn codel(&self) -> Codel {
        Codel { limit: self.law.limit, target: self.law.target, interval: self.law.interval, ecn: self.law.ecn }
    }
}

impl Law for SlowFq {
    fn arrive(&mut self, _: u64, idle: bool, packet: Pk) -> Vec<u32> {
        let hash = self.hash(packet.flow);
        self.queues.entry(hash).or_default().queue.push(packet);
        if !self.new.contains(&hash) && !self.old.contains(&hash) {
            self.new.push(hash);
            self.credits.insert(hash, self.law.quantum.0 as i64);
        }
        let mut gone = Vec::new();
        loop {
            let packets: usize = self.queues.values().map(|q| q.queue.len()).sum();
            let bytes: u64 = self.queues.values().map(Sojourn::bytes).sum();
            // on an idle line it does not wait
            if idle || packets <= self.law.limit as usize && bytes <= self.law.memory.0 {
                return gone;
            }
            let most = self.queues.values().map(Sojourn::bytes).max().expect("there is a queue");
            let fattest = self.queues.values_mut().find(|q| q.bytes() == most).expect("it is one of them");
            let (mut packets, mut bytes) = (0, 0);
            while packets == 0 || packets < 64 && bytes < most / 2 && !fattest.queue.is_empty() {
                let head = fattest.queue.remove(0);
                (packets, bytes) = (packets + 1, bytes + u64::from(head.bytes));
                gone.push(head.id);
            }
            fattest.add(packets);
        }
    }

    fn leave(&mut self, now: u64) -> (Option<Pk>, Vec<u32>) {
        let (codel, mut gone) = (self.codel(), Vec::new());
        loop {
            let is_new = !self.new.is_empty();
            let Some(&hash) = self.new.first().or(self.old.first()) else { return (None, gone) };
            if is_new {
                self.new.remove(0)
            } else {
                self.old.remove(0)
            };
            let credits = self.credits.get_mut(&hash).expect("a queue of a list has credits");
            if *credits <= 0 {
                *credits += self.law.quantum.0 as i64;
                self.old.push(hash);
                continue;
            }
            match self.queues.get_mut(&hash).expect("and is one").take(&codel, now, &mut gone) {
                Some(packet) => {
                    *credits -= i64::from(packet.bytes) + OVERHEAD as i64;
                    if is_new {
                        self.new.insert(0, hash)
                    } else {
                        self.old.insert(0, hash)
                    };
                    return (Some(packet), gone);
                }
                // an old queue that is empty leaves its list, a new one becomes old
                None if is_new => self.old.push(hash),
                None => {}
            }
        }
    }
}

/// RFC 8033, sections 4, 5.1 (marks), 5.2 (waits by stamps), 5.4 (de-randomised) and 5.5 (no step above 0.02).
struct SlowPie {
    law: Pie,
    queue: Vec<Pk>,
    probability: f64,
    accumulated: f64,
    delay: u64,
    delay_before: u64,
    burst_left: u64,
    updates: u64,
    random: Stream,
}

impl SlowPie {
    fn new(law: Pie) -> Self {
        let burst_left = law.max_burst.0;
        let (queue, random) = (Vec::new(), Stream::new(5, "l/pie"));
        let (probability, accumulated, delay, delay_before, updates) = (0.0, 0.0, 0, 0, 0);
        SlowPie { law, queue, probability, accumulated, delay, delay_before, burst_left, updates, random }
    }

    /// Every T_UPDATE, one after the other, however long nothing has happened.
    fn tick(&mut self, now: u64) {
        while (self.updates + 1) * self.law.t_update.0 <= now {
            self.updates += 1;
            let (delay, before) = (self.delay as f64, self.delay_before as f64);
            let mut step =
                (self.law.alpha * (delay - self.law.target.0 as f64) + self.law.beta * (delay - before)) / 1e9;
            // the table of section 4.2: 1/2048 below 0.000001, and so on up to 1/2 below 0.1
            let table = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
            step /= table.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, divisor)| *divisor);
            if self.probability >= 0.1 {
                step = step.min(0.02);
            }
            self.probability += step;
            if self.delay == 0 && self.delay_before == 0 {
                self.probability *= 0.98;
            }
            self.probability = self.probability.clamp(0.0, 1.0);
            self.burst_left = self.burst_left.saturating_sub(self.law.t_update.0);
            if self.probability == 0.0 && self.delay.max(self.delay_before) < self.law.target.0 / 2 {
                self.burst_left = self.law.max_burst.0;
            }
            self.delay_before = self.delay;
        }
    }

    fn drops(&mut self) -> bool {
        let bytes: u64 = self.queue.iter().map(|packet| u64::from(packet.bytes)).sum();
        let light = self.delay_before < self.law.target.0 / 2 && self.probability < 0.2;
        if self.burst_left > 0 || light || bytes <= 3000 {
            return false;
        }
        self.accumulated = if self.probability == 0.0 { 0.0 } else { self.accumulated + self.probability };
        let certain = self.accumulated >= 8.5;
        let drop = self.accumulated >= 0.85 && (certain || self.random.chance(self.probability));
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }
}

impl Law for SlowPie {
    fn arrive(&mut self, now: u64, idle: bool, mut packet: Pk) -> Vec<u32> {
        self.tick(now);
        if !idle {
            if self.queue.len() >= self.law.limit as usize {
                self.accumulated = 0.0;
                return vec![packet.id];
            }
            if self.drops() {
                packet.marked = self.law.ecn && packet.ect && self.probability <= 0.1;
                if !packet.marked {
                    return vec![packet.id];
                }
            }
        }
        self.queue.push(packet);
        Vec::new()
    }

    fn leave(&mut self, now: u64) -> (Option<Pk>, Vec<u32>) {
        self.tick(now.min(1 << 50));
        if self.queue.is_empty() {
            return (None, Vec::new());
        }
        let head = self.queue.remove(0);
        self.delay = if self.queue.is_empty() { 0 } else { now - head.at };
        (Some(head), Vec::new())
    }
}

/// Floyd and Jacobson 1993, figure 2, with the ramp from `max` to twice `max` of 2000.
struct SlowRed {
    law: Red,
    queue: Vec<Pk>,
    average: f64,
    /// Packets since the last drop while the average was above `min`.
    since: Option<u32>,
    idle_since: u64,
    random: Stream,
}

impl Law for SlowRed {
    fn arrive(&mut self, now: u64, idle: bool, mut packet: Pk) -> Vec<u32> {
        if idle {
            let typical = RATE.time_for(1500 + OVERHEAD).0;
            let m = (now - self.idle_since) as f64 / typical as f64;
            self.average *= (1.0 - self.law.weight).powf(m);
            self.idle_since = now;
        } else {
            self.average += self.law.weight * (self.queue.len() as f64 - self.average);
        }
        let Red { min, max, probability, .. } = self.law;
        if self.average < min {
            self.since = None;
        } else {
            let count = self.since.map_or(0, |since| since + 1);
            self.since = Some(count);
            let p_b = if self.average < max {
                probability * (self.average - min) / (max - min)
            } else {
                probability + (1.0 - probability) * (self.average - max) / max
            };
            let beyond = self.average >= 2.0 * max;
            let rest = 1.0 - f64::from(count) * p_b;
            if beyond || rest <= 0.0 || self.random.chance(p_b / rest) {
                self.since = Some(0);
                packet.marked = !beyond && self.law.ecn && packet.ect;
                if !packet.marked {
                    return vec![packet.id];
                }
            }
        }
        if self.queue.len() >= self.law.limit as usize {
            self.since = Some(0);
            if !idle {
                return vec![packet.id];
            }
        }
        self.queue.push(packet);
        Vec::new()
    }

    fn leave(&mut self, now: u64) -> (Option<Pk>, Vec<u32>) {
        if self.queue.is_empty() {
            return (None, Vec::new());
        }
        let head = self.queue.remove(0);
        self.idle_since = now + RATE.time_for(u64::from(head.bytes) + OVERHEAD).0;
        (Some(head), Vec::new())
    }
}

/// Gaps, bytes, flows, and whether a packet can be marked: calm and overloaded stretches, and long rests.
fn packets() -> impl Strategy<Value = Vec<(u64, u32, u32, bool)>> {
    let bytes = || prop_oneof![3 => Just(1500u32), 1 => 40u32..1500];
    let stretch = (prop_oneof![Just(300_000u64), Just(900_000), Just(1_100_000)], 1usize..120, any::<bool>(), 1u32..5)
        .prop_flat_map(move |(mean, length, ect, flows)| {
            let rest = prop_oneof![20 => Just(0u64), 1 => 0u64..400_000_000];
            let packet = (0..2 * mean, rest, bytes(), 0..flows, prop::bool::weighted(0.9));
            let packet = packet.prop_map(move |(gap, rest, bytes, flow, most)| (gap + rest, bytes, flow, ect && most));
            prop::collection::vec(packet, length)
        });
    prop::collection::vec(stretch, 1..6).prop_map(|stretches| stretches.concat())
}

fn limits() -> impl Strategy<Value = u32> {
    prop_oneof![1 => 0u32..5, 2 => 10u32..60, 3 => Just(1000u32)]
}

fn same(slow: &Fates, fast: &Fates) -> Result<(), TestCaseError> {
    for (slow, fast) in slow.iter().zip(fast) {
        prop_assert_eq!(slow, fast);
    }
    prop_assert_eq!(slow.len(), fast.len());
    Ok(())
}

/// The decisions are many in every case; enough cases meet all of them.
fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(120) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn codel_is_rfc_8289(limit in limits(), ecn: bool, target in 1u64..8, packets in packets()) {
        let law = Codel { limit, target: Nanos::millis(target), interval: Nanos::millis(target * 5), ecn };
        same(&slow(SlowCodel(law, Sojourn::default()), &packets), &fast(Queue::Codel(law), &packets))?;
    }

    #[test]
    fn fq_codel_is_rfc_8290(limit in limits(), ecn: bool, flows in 1u32..9, quantum in 64u64..3000,
                            memory in prop_oneof![Just(1u64 << 25), 3000u64..60_000], packets in packets()) {
        let (target, interval) = (Nanos::millis(3), Nanos::millis(15));
        let law = FqCodel { limit, flows, quantum: Bytes(quantum), memory: Bytes(memory), target, interval, ecn };
        same(&slow(SlowFq::new(law), &packets), &fast(Queue::FqCodel(law), &packets))?;
    }

    #[test]
    fn pie_is_rfc_8033(limit in limits(), ecn: bool, target in 1u64..20, update in 1u64..20, burst in 0u64..40,
                       gain in prop_oneof![Just(1.0), 1.0..20.0], packets in packets()) {
        let law = Pie {
            limit,
            target: Nanos::millis(target),
            t_update: Nanos::millis(update),
            max_burst: Nanos::millis(burst),
            alpha: 0.125 * gain,
            beta: 1.25 * gain,
            ecn,
        };
        same(&slow(SlowPie::new(law), &packets), &fast(Queue::Pie(law), &packets))?;
    }

    /// What a long overload has raised falls while the line rests, and the next burst meets what is left of it.
    #[test]
    fn pie_forgets_as_rfc_8033(loads in prop::collection::vec((200_000u64..700_000, 200usize..600, 1u64..300), 2..4),
                               target in 1u64..20, update in 1u64..20, burst in prop_oneof![Just(0u64), 0u64..300],
                               gain in 1.0..20.0, packets in packets()) {
        let law = Pie {
            limit: 1000,
            target: Nanos::millis(target),
            t_update: Nanos::millis(update),
            max_burst: Nanos::millis(burst),
            alpha: 0.125 * gain,
            beta: 1.25 * gain,
            ecn: false,
        };
        let load = |&(gap, length, rest): &(u64, usize, u64)| {
            // PIE hears of an empty queue only from a packet that finds it so; pairs wait for a millisecond
            let rested = [(rest * 1_000_000, 1500, 0, false), (5_000_000, 1500, 0, false)];
            let pairs = (0..rest).map(|n| (2_100_000 * (n % 2), 1500, 0, false));
            (0..length).map(move |_| (gap, 1500, 0, false)).chain(rested).chain(pairs)
        };
        let mut all: Vec<_> = loads.iter().flat_map(load).collect();
        all.extend(packets);
        same(&slow(SlowPie::new(law), &all), &fast(Queue::Pie(law), &all))?;
    }

    #[test]
    fn red_is_that_of_its_paper(limit in 20u32..60, ecn: bool, min in 0.0..6.0, width in 0.5..14.0, probability in 0.01..1.0,
                                weight in prop_oneof![Just(0.002), 0.01..1.0], packets in packets()) {
        let law = Red { min, max: min + width, limit, probability, weight, ecn };
        let random = Stream::new(5, "l/red");
        let model = SlowRed { law, queue: Vec::new(), average: 0.0, since: None, idle_since: 0, random };
        same(&slow(model, &packets), &fast(Queue::Red(law), &packets))?;
    }
}
