//! Two paths over queues of fluid: one that they share, or two.

use super::*;
use crate::testing::train;
use crate::{Method, Step};

/// A first-come-first-served queue with room for so long a wait [s].
struct Queue {
    capacity: f64,
    room: f64,
    backlog: f64,
    time: f64,
    /// Others' rate, by time.
    others: fn(f64) -> f64,
}

impl Queue {
    fn new(capacity: f64, room: f64, others: fn(f64) -> f64) -> Queue {
        Queue { capacity, room, backlog: 0.0, time: 0.0, others }
    }

    /// The wait of a packet of so many bits that comes at this time [s]; none: there is no room.
    fn wait(&mut self, at: f64, bits: f64) -> Option<f64> {
        let left = self.capacity - (self.others)(at) * self.capacity;
        self.backlog = (self.backlog - left * (at - self.time)).max(0.0);
        self.time = at;
        let wait = self.backlog / self.capacity;
        (wait <= self.room).then(|| {
            self.backlog += bits;
            wait
        })
    }
}

/// What two paths see of their queues; the second one is the first's if it is shared. `ways`: to the queue [s].
fn responses(queues: Vec<Queue>, rates: [f64; 2], ways: [f64; 2], seed: u64) -> [Response; 2] {
    lasting(Nanos::secs(2), queues, rates, ways, seed)
}

fn lasting(time: Nanos, mut queues: Vec<Queue>, rates: [f64; 2], ways: [f64; 2], seed: u64) -> [Response; 2] {
    let mut methods = rates.map(|rate| Pulses::new(pulses::budget(rate, time), 0, true));
    let mut packets = Vec::new();
    for (path, method) in methods.iter_mut().enumerate() {
        *method = Pulses::new(pulses::budget(rates[path], time), seed * 2 + path as u64, path == 0);
        let (mut now, mut wait) = (Nanos::secs(5), 0);
        while wait < 200 {
            match method.next(now) {
                Step::Send(plan) | Step::Beside(plan) => {
                    let mut at = plan.at.0;
                    for (k, gap) in plan.gaps.iter().map(|gap| gap.0).chain([0]).enumerate() {
                        packets.push((at as f64 / 1e9 + ways[path], path, plan.id, k, at, plan.size));
                        at += gap;
                    }
                }
                Step::Wait(until) => (now, wait) = (until, wait + 1),
                Step::Done => break,
            }
        }
    }
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut trains = std::collections::BTreeMap::<(usize, u64), (Vec<u64>, Vec<Option<u64>>)>::new();
    let last = queues.len() - 1;
    for (at, path, id, _, sent, size) in packets {
        let came = queues[path.min(last)].wait(at, f64::from(size) * 8.0).map(|wait| ((at + wait + 1.0) * 1e9) as u64);
        let (left, arrived) = trains.entry((path, id)).or_default();
        left.push(sent);
        arrived.push(came);
    }
    for ((path, id), (sent, came)) in &trains {
        let size = methods[*path].response().map_or(1400, |response| response.size);
        methods[*path].observe(Nanos::ZERO, &train(*id, size, sent, came));
    }
    methods.map(|method| method.response().unwrap())
}

type Queues = fn() -> Vec<Queue>;

/// What three attempts say.
fn told(queues: Queues, rate: f64, seed: u64) -> f64 {
    let ratios = [0, 1, 2].map(|attempt| {
        let [one, other] = responses(queues(), [rate; 2], [0.01, 0.045], 3 * seed + attempt);
        likelihood_ratio([&one, &other], [C; 2], Nanos::millis(80)).unwrap()
    });
    probability(&ratios)
}

const C: f64 = 20e6;

fn idle(_: f64) -> f64 {
    0.0
}

/// Bursts of others, to 60 % of the capacity.
fn bursts(at: f64) -> f64 {
    if (at * 3.7).sin() + (at * 11.3).sin() > 0.0 { 0.6 } else { 0.2 }
}

#[test]
fn a_shared_queue_is_told_from_two_of_the_same_kind() {
    // shared queues with how much room [s], and what is free of them
    let cases: [(Queues, f64); 4] = [
        (|| vec![Queue::new(C, 0.005, idle)], 1.0),
        (|| vec![Queue::new(C, 0.3, idle)], 1.0),
        (|| vec![Queue::new(C, 0.005, bursts)], 0.6),
        (|| vec![Queue::new(C, 0.3, bursts)], 0.6),
    ];
    let twins: [Queues; 4] = [
        || vec![Queue::new(C, 0.005, idle), Queue::new(C, 0.005, idle)],
        || vec![Queue::new(C, 0.3, idle), Queue::new(C, 0.3, idle)],
        || vec![Queue::new(C, 0.005, bursts), Queue::new(C, 0.005, bursts)],
        || vec![Queue::new(C, 0.3, bursts), Queue::new(C, 0.3, bursts)],
    ];
    for seed in 1..=3 {
        for (k, ((shared, free), twins)) in cases.into_iter().zip(twins).enumerate() {
            let (shared, twins) = (told(shared, free * C, seed), told(twins, free * C, seed));
            assert!(shared > 0.9, "seed {seed}, case {k}: {shared}");
            assert!(twins < 0.3, "seed {seed}, case {k}: {twins}");
        }
    }
}

#[test]
fn probes_that_are_all_lost_tell_nothing() {
    let [one, mut other] = responses(vec![Queue::new(1e7, 0.1, idle)], [1e7; 2], [0.0; 2], 1);
    other.bins.iter_mut().for_each(|bin| *bin = Bin::default());
    assert_eq!(likelihood_ratio([&one, &other], [1e7; 2], Nanos::millis(50)), None);
}

#[test]
fn a_path_is_filled_steadily_and_in_pulses_by_turns() {
    let sent = |seed| {
        responses(vec![Queue::new(1e7, 0.1, idle)], [1e7; 2], [0.0; 2], seed)
            .map(|response| response.bins.iter().map(|bin| bin.sent).collect::<Vec<_>>())
    };
    let [one, other] = sent(1);
    let most = *one.iter().max().unwrap();
    let steady = |bins: &[u32]| bins.iter().all(|&n| n > most * 3 / 4);
    let high = |bins: &[u32]| bins.iter().filter(|&&n| n > most / 2 - 2).count();
    let half = PHASE * PARTS;
    assert!(steady(&one[..half]) && steady(&other[half..]));
    assert_eq!((high(&one[half..]), high(&other[..half])), (half / 2, half / 2));
    assert_ne!(one[half..], sent(2)[0][half..]);
}

/// Packets of others now and then.
fn lumps(at: f64) -> f64 {
    let hash = ((at / 8e-3) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    if hash % 10 < 3 { 1.0 } else { 0.0 }
}

/// At 450 kbit/s a slot of 25 ms has five packets, three or two: what is sent in pulses differs less than their code says, and
/// slopes by chance are as much larger.
#[test]
fn chance_is_as_large_as_what_was_sent_makes_it() {
    const SLOW: f64 = 450e3;
    let apart = |seed| {
        let queues = vec![Queue::new(SLOW, 0.3, lumps), Queue::new(SLOW, 0.3, idle)];
        let [one, other] = lasting(Nanos::secs(3), queues, [SLOW; 2], [0.01, 0.045], seed);
        let [one, other] = [Series::of(&one).unwrap(), Series::of(&other).unwrap()];
        let test = Test::of(&one, &other, 0, SLOW).unwrap();
        let (seen, bins) = test.beside(0.0).unwrap();
        let rates: Vec<f64> = bins.iter().map(|&bin| other.rate[bin]).collect();
        slope(&seen, &rates, SLOW).unwrap() / test.spread
    };
    let squares: Vec<f64> = (1..=60).map(|seed| f64::powi(apart(seed), 2)).collect();
    let spreads = f64::sqrt(squares.iter().sum::<f64>() / squares.len() as f64) * WIDER;
    assert!((0.8..1.6).contains(&spreads), "{spreads}");
}
