//! What an event queue costs: the engine's tournament tree against a heap of the same packed keys, in the engine's own
//! pattern, which sets the slot that was first again a little later. Prints ns per event, the least of seven.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

#[allow(dead_code)]
#[path = "../src/agenda.rs"]
mod agenda;

const EVENTS: u64 = 2_000_000;

fn least(mut run: impl FnMut() -> u64) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..7 {
        let begun = Instant::now();
        black_box(run());
        least = least.min(begun.elapsed().as_secs_f64() * 1e9 / EVENTS as f64);
    }
    least
}

/// The next gap [ns], up to 20 ms.
fn gap(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % 20_000_000
}

fn main() {
    println!("{:>8} {:>12} {:>12}", "pending", "tournament", "heap, u128");
    for slots in [6, 16, 34, 64, 256, 1024, 8192, 65536] {
        let tree = least(|| {
            let mut state = 88_172_645_463_325_252;
            let mut agenda = agenda::Agenda::new(slots);
            for slot in 0..slots {
                agenda.set(slot, gap(&mut state));
            }
            for _ in 0..EVENTS {
                let (at, slot) = agenda.first();
                agenda.set(slot, at + gap(&mut state));
            }
            agenda.first().0
        });
        let heap = least(|| {
            let mut state = 88_172_645_463_325_252;
            let mut heap: BinaryHeap<Reverse<u128>> = BinaryHeap::new();
            for slot in 0..slots {
                heap.push(Reverse(u128::from(gap(&mut state)) << 64 | slot as u128));
            }
            for _ in 0..EVENTS {
                let Reverse(key) = heap.pop().unwrap_or(Reverse(0));
                let at = (key >> 64) as u64 + gap(&mut state);
                heap.push(Reverse(u128::from(at) << 64 | (key & u128::from(u64::MAX))));
            }
            heap.len() as u64
        });
        println!("{slots:>8} {tree:>12.1} {heap:>12.1}");
    }
}
