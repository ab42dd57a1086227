//! A simulation in its steady state does not allocate, neither for packets nor for losses.

#[allow(dead_code)] // it uses a part
#[path = "all/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Text, shows};
use pathcast_scenario::Scenario;
use pathcast_sim::{Options, simulate};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is handed on to the system's allocator
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Eight bulk flows over two bottlenecks that hold 75 packets each, with SACK, and losses of the queue and of the wire.
fn load(preset: &str, loss: f64, seconds: u32) -> Text {
    let link = format!("rate = \"20Mbit\"; delay = \"10ms\"; queue = \"40 packets\"; loss = {loss}");
    let mut text = Text::new(1, &format!("{seconds}s")).path("a", &link).path("b", &link);
    for i in 0..8 {
        let (paths, control): (&[&str], _) = [(&["a"][..], "reno"), (&["b"], "cubic"), (&["a", "b"], "lia")][i % 3];
        text = text.flow(&format!("f{i}"), paths, control, "");
    }
    text.table("[tcp]", &format!("preset = \"{preset}\""))
}

/// Allocations of a whole run: making the simulation, warming it up, running it, its report. And segments sent again.
fn allocations(preset: &str, loss: f64, seconds: u32) -> (u64, u64, u64) {
    let scenario = Scenario::parse(&load(preset, loss, seconds).0, &[]).unwrap();
    let before = COUNT.load(Ordering::Relaxed);
    let report = simulate(scenario, &Options::default()).unwrap().report;
    let count = COUNT.load(Ordering::Relaxed) - before;
    (count, report.flows.iter().map(|flow| flow.retransmits).sum(), report.packets_forwarded)
}

/// All that may be allocated are the rooms of boards, rings, runs and blocks, which double when a window, a queue or a
/// number of holes is larger than ever before: a handful of times in a hundred thousand packets, and less and less
/// often.
// one test: another thread would be counted
#[test]
fn twice_the_time_costs_a_handful_of_allocations_more() {
    allocations("linux", 0.0, 1); // what is made once in a process
    for (preset, loss) in [("linux", 0.0), ("rfc", 0.0), ("ns2", 0.0), ("linux", 0.0005), ("rfc", 0.0005)] {
        let (short, long) = (allocations(preset, loss, 40), allocations(preset, loss, 80));
        shows(
            &format!(
                "{preset}, loss {loss}, 8 bulk flows: allocations of 40 s, of 80 s; then, segments sent again, packets"
            ),
            format!("{} {}; {} {}", short.0, long.0, long.1 - short.1, long.2 - short.2),
        );
        assert!(long.1 > short.1 + 50, "losses go on");
        assert!(long.2 > short.2 + 100_000, "packets, too");
        assert!(long.0 - short.0 <= 20, "{preset}: {} after {}", long.0, short.0);
    }
}
