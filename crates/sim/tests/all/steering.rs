//! pathcast's rule for what a subflow is given: never slower than over the best path alone, where the kernel by itself is.

use pathcast_base::{Nanos, Protocol, TransferReport};
use pathcast_congestion::controllers;
use pathcast_scenario::Scenario;
use pathcast_session::steer::is_coupled;
use pathcast_sim::{Order, World};

/// Two lines: Mbit/s, RTT in ms, packets of queue, loss.
type Line = (f64, u64, u32, f64);

fn text(lines: [Line; 2], steering: bool) -> String {
    let mut text = format!("seed = 1\n[tcp]\nsteering = {steering}\n");
    for (name, (rate, rtt_ms, packets, loss)) in ["best", "other"].iter().zip(lines) {
        text += &format!(
            "[[link]]\nname = \"{name}\"\na = \"client\"\nb = \"server\"\nrate = \"{rate}Mbit\"\ndelay = \"{}us\"\n\
             queue = {{ ab = \"{packets} packets\", ba = \"1000 packets\" }}\nloss = {{ ab = {loss:?}, ba = 0.0 }}\n\
             [[path]]\nname = \"{name}\"\nlinks = [\"{name}\"]\n",
            500 * rtt_ms
        );
    }
    text
}

fn world(lines: [Line; 2], steering: bool) -> World {
    World::new(Scenario::parse(&text(lines, steering), &[]).unwrap()).unwrap()
}

fn transfer(lines: [Line; 2], steering: bool, paths: &[&str], bytes: u64, control: &str) -> TransferReport {
    let mut world = world(lines, steering);
    let pairs = world.pairs(&paths.iter().map(|&name| name.into()).collect::<Vec<_>>()).unwrap();
    let protocol = if paths.len() > 1 { Protocol::Mptcp } else { Protocol::Tcp };
    world.transfer(&pairs, bytes, Some(control), protocol, |_| true).unwrap()
}

/// Both over the best alone: by the kernel's rule, and by ours.
fn shares(lines: [Line; 2], bytes: u64, control: &str) -> [f64; 2] {
    let alone = transfer(lines, false, &["best"], bytes, control).throughput_bps;
    [false, true].map(|on| transfer(lines, on, &["best", "other"], bytes, control).throughput_bps / alone)
}

#[test]
fn a_far_slower_line_does_not_hold_up_the_better_one() {
    // what it holds fills the buffers; the end waits for it; it is not worth a round trip
    for (lines, bytes, control) in [
        ([(13.1, 27, 15, 2e-5), (0.5, 49, 4, 1e-4)], 10_000_000, "cubic"),
        ([(50.0, 40, 200, 0.0), (2.0, 200, 100, 0.0)], 16_000_000, "cubic"),
        ([(8.4, 48, 9, 2e-5), (2.5, 183, 11, 5e-4)], 10_000_000, "lia"),
        ([(22.3, 30, 44, 3e-5), (1.1, 46, 4, 0.0)], 3_300_000, "cubic"),
    ] {
        let [kernels, ours] = shares(lines, bytes, control);
        assert!(kernels < 0.93 && ours >= 0.95, "{lines:?}, {control}: {kernels:.3} and {ours:.3}");
    }
}

#[test]
fn a_fast_short_line_is_not_held_up_by_what_a_slow_one_was_tried_with() {
    // what waited beside the trial went to it too: the buffers filled, and when it was closed all was sent again
    for (lines, bytes, control) in [
        ([(260.0, 1, 6000, 0.0), (3.0, 4, 50, 0.0)], 35_000_000, "olia"),
        ([(370.0, 18, 1600, 0.0), (3.0, 4, 1000, 0.0)], 10_000_000, "balia"),
    ] {
        let [kernels, ours] = shares(lines, bytes, control);
        assert!(kernels < 0.75 && ours >= 0.95, "{lines:?}, {control}: {kernels:.3} and {ours:.3}");
    }
}

#[test]
fn like_lines_are_both_used() {
    let [_, ours] = shares([(20.0, 40, 66, 0.0), (10.0, 60, 50, 0.0)], 20_000_000, "cubic");
    assert!(ours > 0.9 * 1.5, "{ours:.3}");
}

#[test]
fn a_line_that_dies_at_the_start_leaves_the_rest_to_the_other() {
    let done = transfer([(20.0, 40, 66, 1.0), (10.0, 60, 50, 0.0)], true, &["other", "best"], 2_000_000, "cubic");
    assert_eq!(done.bytes, 2_000_000);
}

/// What the second line has carried at each second of a transfer in which it is down from 3 s on for so long [byte].
fn flap(down_s: u32, mb: u64) -> Vec<u64> {
    let mut text = text([(100.0, 40, 330, 0.0), (20.0, 10, 20, 0.0)], true);
    for (at, loss) in [(3, 1.0), (3 + down_s, 0.0)] {
        text += &format!("[[change]]\nat = \"{at}s\"\nlink = \"other\"\nloss = {loss:?}\n");
    }
    let mut world = World::new(Scenario::parse(&text, &[]).unwrap()).unwrap();
    let pairs = world.pairs(&["best".into(), "other".into()]).unwrap();
    let (bytes, every, protocol) = (mb * 1_000_000, Some(Nanos::secs(1)), Protocol::Mptcp);
    let order = Order { pairs: &pairs, bytes, control: None, protocol, every, plain: false };
    let done = world.carry(&order, |_| true).unwrap();
    assert_eq!(done.bytes, bytes);
    done.samples.iter().map(|sample| sample.subflows[1].bytes_acked).collect()
}

#[test]
fn a_line_that_is_closed_for_its_silence_is_asked_for_again() {
    let acked = flap(3, 200);
    assert_eq!(acked[4], acked[7], "closed");
    assert!(acked.last() > Some(&(acked[7] + 10_000_000)), "{acked:?}");
}

#[test]
fn the_kernels_scheduler_sees_tcps_own_rate_of_a_paced_subflow() {
    // 46.1 Mbit/s in the real kernel (2 runs of 100 MB); by the controller's own rate the slow line's buffer would hold up all
    let [kernels, _] = shares([(51.8, 160, 475, 0.0), (2.2, 23, 43, 0.0)], 30_000_000, "adaptive_start");
    assert!(kernels > 0.9, "{kernels:.3}");
}

#[test]
fn a_controller_is_steered_alike_by_the_headers_name_and_by_the_kernels() {
    for info in controllers() {
        for copy in ["", "_2", "_3", "_17", "_99"] {
            let in_kernel = format!("{}{copy}", info.kernel_name);
            assert_eq!(is_coupled(&in_kernel), is_coupled(info.name), "{in_kernel}");
        }
    }
}
