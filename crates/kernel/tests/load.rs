//! Privileged: every controller passes the kernel's verifier, and cheaply.

mod live;

use std::time::Instant;

use live::able;
use pathcast_congestion::Params;
use pathcast_kernel::{Loaded, controllers_in_kernel};

/// The most steps that a program may cost the verifier, so that other kernels take it too; the kernel's limit is a million.
const STEPS: u32 = 20_000;

#[test]
fn every_controller_passes_the_verifier() {
    if !able("controllers in the kernel") {
        return;
    }
    let mut above = Vec::new();
    for (i, info) in controllers_in_kernel().enumerate() {
        let name = format!("pct{}_{i}", std::process::id());
        let start = Instant::now();
        let loaded = match Loaded::load(&name, &Params::new(info), None) {
            Ok(loaded) => loaded,
            Err(error) => {
                above.push(format!("{}: {error}", info.name));
                continue;
            }
        };
        println!("{} loaded in {} ms", info.name, start.elapsed().as_millis());
        // `init`, `cong_avoid`, `ssthresh`, `undo_cwnd`, `cwnd_event`, `release`: every controller has these
        assert!(loaded.costs().len() >= 6, "{}: the kernel tells of {:?}", info.name, loaded.costs());
        for cost in loaded.costs() {
            println!(
                "  {:<12} {:>7} steps {:>5} instructions {:>6} bytes",
                cost.name, cost.steps, cost.instructions, cost.machine_bytes
            );
            if cost.steps >= STEPS {
                above.push(format!("{}.{}: {} steps", info.name, cost.name, cost.steps));
            }
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
