//! A link against what queueing theory and arithmetic say of it.

use pathcast_base::{Bytes, Nanos, Rate, Stream};
use pathcast_link::{Bucket, Cause, Counters, Cross, Jitter, Link, Params, Queue, Red};

const MBIT: u64 = 1_000_000;

fn line(mbit: u64, queue: Queue) -> Params {
    Params { rate: Some(Rate(mbit * MBIT)), queue, ..Params::default() }
}

fn due_times(link: &Link<u32>) -> Vec<u64> {
    link.upcoming().map(|(due, _)| due.0).collect()
}

/// Everything that is inside, with the number of the packet and whether it was lost.
fn drain(link: &mut Link<u32>) -> Vec<(u64, u32, bool)> {
    let mut all = Vec::new();
    while let Some(due) = link.next_due() {
        let released = link.pop(due).unwrap();
        all.push((released.at.0, released.packet, released.lost));
    }
    all
}

#[test]
fn a_burst_fills_the_queue_and_one_place_in_service() {
    for limit in [0, 1, 50] {
        let mut link = Link::new(line(12, Queue::Packets(limit)), 1, "l");
        let taken = (0..100).filter(|&i| link.offer(Nanos(0), 1500, i).is_ok()).count();
        assert_eq!(taken as u32, limit + 1);
        assert_eq!(link.backlog(Nanos(0)).packets, u64::from(limit));
        let expected: Vec<u64> = (1..=u64::from(limit) + 1).map(|k| k * 1_000_000).collect();
        assert_eq!(due_times(&link), expected);
    }
}

#[test]
fn a_byte_queue_counts_what_waits() {
    let mut link = Link::new(line(12, Queue::Bytes(Bytes(3100))), 1, "l");
    let taken: Vec<bool> = [1500, 1500, 1500, 101, 100].map(|b| link.offer(Nanos(0), b, 0).is_ok()).into();
    assert_eq!(taken, [true, true, true, false, true]);
    assert_eq!(link.backlog(Nanos(0)).bytes, 3100);
    assert_eq!(link.counters().queue_max.bytes, 3100);
}

#[test]
fn memory_is_bounded_however_small_the_packets() {
    let params = line(1, Queue::Bytes(Bytes(3_000_000_000)));
    assert_eq!(params.check(), Ok(()));
    let mut link = Link::new(params, 1, "l");
    let taken = (0..2_000_100).filter(|&i| link.offer(Nanos(0), 1, i).is_ok()).count();
    assert_eq!(taken, 2_000_001, "so many wait, and one is in service");
}

#[test]
fn a_departure_comes_before_an_arrival_of_the_same_instant() {
    let mut link = Link::new(line(12, Queue::Packets(1)), 1, "l");
    assert!(link.offer(Nanos(0), 1500, 0).is_ok() && link.offer(Nanos(0), 1500, 1).is_ok());
    assert!(link.clone().offer(Nanos(999_999), 1500, 2).is_err());
    assert!(link.offer(Nanos(1_000_000), 1500, 2).is_ok());
}

#[test]
fn constant_traffic_below_the_rate_never_waits() {
    let params = Params { delay: Nanos::millis(5), overhead: Bytes(100), ..line(100, Queue::Packets(0)) };
    let mut link = Link::new(params, 1, "l");
    for i in 0..1000u32 {
        let now = u64::from(i) * 130_000;
        link.offer(Nanos(now), 1500, i).unwrap();
        assert_eq!(link.upcoming().next_back(), Some((Nanos(now + 5_128_000), &i)));
    }
    assert_eq!(drain(&mut link).len(), 1000);
    assert_eq!(link.counters().busy, Nanos(1000 * 128_000));
}

/// Pollaczek and Khinchine for M/D/1: mean wait = rho * service / (2 (1 - rho)). Tiny probes see it, because Poisson
/// arrivals see time averages.
#[test]
fn poisson_cross_traffic_makes_the_wait_of_m_d_1() {
    for (percent, within) in [(50, 0.03), (80, 0.05)] {
        let mut link = Link::new(line(12, Queue::Packets(100_000)), 5, "l");
        let cross = Cross::Poisson { rate: Rate(12 * MBIT * percent / 100), packet: Bytes(1500) };
        link.add_cross("load", &cross, Nanos(0), None);
        let mut probes = Stream::new(5, "probes");
        let (mut now, mut wait) = (0.0, 0.0);
        let n = 150_000;
        for i in 0..n {
            now += probes.exponential(3e6);
            let at = Nanos(now as u64);
            link.offer(at, 1, i).unwrap();
            let due = link.upcoming().next_back().unwrap().0;
            wait += (due - at).0 as f64 - 667.0;
            while link.pop(at).is_some() {}
        }
        let (rho, mean) = (percent as f64 / 100.0, wait / f64::from(n));
        let theory = rho * 1e6 / (2.0 * (1.0 - rho));
        assert!((mean / theory - 1.0).abs() < within, "at {percent} %: {mean} against {theory}");
        let used = link.counters().busy.0 as f64 / now;
        assert!((used - rho).abs() < 0.01, "{used}");
    }
}

#[test]
fn a_bucket_passes_its_burst_at_line_rate_and_then_its_own() {
    let bucket = Some(Bucket { rate: Rate(12 * MBIT), burst: Bytes(15_000) });
    let mut link = Link::new(Params { bucket, ..line(120, Queue::Packets(1000)) }, 1, "l");
    for i in 0..100 {
        link.offer(Nanos(0), 1500, i).unwrap();
    }
    // 100 us a packet on the line, 1 ms a packet from the bucket; the burst is 10 packets
    let expected = (0..100u64).map(|k| if k < 10 { (k + 1) * 100_000 } else { (k - 9) * 1_000_000 + 100_000 });
    // tokens come while the burst leaves, so the eleventh goes at 1 ms
    assert_eq!(due_times(&link), expected.collect::<Vec<_>>());
    // after a rest the burst is there again, no more of it
    drain(&mut link);
    for i in 0..12 {
        link.offer(Nanos::secs(1), 1500, i).unwrap();
    }
    assert_eq!(due_times(&link)[9..12], [1_001_000_000, 1_001_100_000, 1_002_100_000]);
}

#[test]
fn a_bucket_on_an_infinitely_fast_link_polices_or_shapes() {
    let bucket = Some(Bucket { rate: Rate(12 * MBIT), burst: Bytes(3000) });
    let mut policer = Link::new(Params { bucket, queue: Queue::Packets(0), ..Params::default() }, 1, "l");
    assert_eq!((0..9).filter(|&i| policer.offer(Nanos(0), 1500, i).is_ok()).count(), 2);
    let mut shaper = Link::new(Params { bucket, ..Params::default() }, 1, "l");
    for i in 0..5 {
        shaper.offer(Nanos(0), 1500, i).unwrap();
    }
    assert_eq!(due_times(&shaper), [0, 0, 1_000_000, 2_000_000, 3_000_000]);
    assert_eq!(shaper.backlog(Nanos(0)).packets, 3);
}

#[test]
fn an_infinitely_fast_link_has_no_queue() {
    let mut link = Link::new(Params { delay: Nanos::millis(3), queue: Queue::Packets(0), ..Params::default() }, 1, "l");
    assert!((0..100).all(|i| link.offer(Nanos(7), 1500, i).is_ok()));
    assert!(due_times(&link).iter().all(|&due| due == 3_000_007));
}

#[test]
fn a_new_rate_reaches_all_that_waits_and_the_rest_of_what_is_in_service() {
    let wire = Params { delay: Nanos::millis(10), ..line(12, Queue::Packets(10)) };
    let mut link = Link::new(wire.clone(), 1, "l");
    for i in 0..4 {
        link.offer(Nanos(0), 1500, i).unwrap();
    }
    // 1 on the wire, 2 in service to 40 %, 3 and 4 waiting; then half the rate
    link.set(Nanos(1_400_000), Params { rate: Some(Rate(6 * MBIT)), ..wire.clone() });
    assert_eq!(due_times(&link), [11_000_000, 12_600_000, 14_600_000, 16_600_000]);
    // a shorter delay overtakes nothing on the wire
    let short = Params { rate: None, delay: Nanos(0), ..wire.clone() };
    link.set(Nanos(3_000_000), short);
    assert_eq!(due_times(&link), [11_000_000, 12_600_000, 12_600_000, 12_600_000]);
    assert_eq!(link.counters().busy, Nanos(3_000_000));
    // and back: what comes now is served at the rate again
    link.set(Nanos(20_000_000), wire);
    assert_eq!(drain(&mut link).len(), 4);
    link.offer(Nanos(20_000_000), 1500, 9).unwrap();
    assert_eq!(due_times(&link), [31_000_000]);
}

#[test]
fn wire_loss_has_its_probability_and_uses_line_time() {
    let mut link = Link::new(Params { loss: 0.02.into(), ..line(12, Queue::Packets(10)) }, 3, "l");
    let mut lost = 0;
    for i in 0..100_000 {
        let now = Nanos(u64::from(i) * 1_000_000);
        link.offer(now, 1500, i).unwrap();
        while let Some(released) = link.pop(now) {
            lost += u32::from(released.lost);
        }
    }
    assert!((1850..2150).contains(&lost), "{lost}");
    assert_eq!(link.counters().dropped.loss.packets, u64::from(lost));
    assert_eq!(link.counters().busy, Nanos(99_999 * 1_000_000));
    let now = Nanos::secs(101);
    link.set(now, Params { loss: 1.0.into(), ..link.params().clone() });
    link.offer(now, 1500, 0).unwrap();
    assert!(drain(&mut link).iter().any(|&(_, _, lost)| lost));
}

/// Offered 5 % above the rate, RED must drop about 1 in 21 and keep the average between its thresholds.
#[test]
fn red_holds_an_overload_between_its_thresholds() {
    let red = Red { min: 20.0, max: 60.0, limit: 200, probability: 0.1, weight: 0.002, ecn: false };
    let mut link = Link::new(line(12, Queue::Red(red)), 4, "l");
    let mut arrivals = Stream::new(4, "arrivals");
    let (mut now, mut waiting, n) = (0.0, 0.0, 100_000);
    for i in 0..n {
        now += arrivals.exponential(1e6 / 1.05);
        let at = Nanos(now as u64);
        while link.pop(at).is_some() {}
        waiting += link.backlog(at).packets as f64 / f64::from(n);
        if let Err(refused) = link.offer(at, 1500, i) {
            assert_eq!(refused.cause, Cause::Aqm);
        }
    }
    let Counters { offered, dropped, .. } = *link.counters();
    let share = dropped.aqm.packets as f64 / offered.packets as f64;
    assert!((share - 0.05 / 1.05).abs() < 0.005, "{share}");
    assert!((20.0..60.0).contains(&waiting), "{waiting}");
    assert!(link.counters().busy.0 as f64 / now > 0.995);
}

#[test]
fn a_full_red_queue_drops_the_tail() {
    let red = Red { min: 5.0, max: 10.0, limit: 10, probability: 0.1, weight: 0.0001, ecn: false };
    let mut link = Link::new(line(12, Queue::Red(red)), 4, "l");
    let causes: Vec<_> = (0..20).map(|i| link.offer(Nanos(0), 1500, i).err().map(|r| r.cause)).collect();
    assert!(causes[..11].iter().all(Option::is_none));
    assert!(causes[11..].iter().all(|&cause| cause == Some(Cause::Queue)));
}

/// Drawing per packet and keeping order would push the median to the maximum at high rates.
#[test]
fn jitter_is_bounded_and_unbiased_at_every_packet_rate() {
    let jitter = Some(Jitter { amplitude: Nanos::millis(5), step: Nanos::millis(20) });
    let median = |gap: u64| {
        let mut link = Link::new(Params { jitter, delay: Nanos::millis(10), ..Params::default() }, 2, "l");
        let mut extra = Vec::new();
        for now in (0..15_000_000_000 / gap).map(|k| k * gap) {
            link.offer(Nanos(now), 1500, now).unwrap();
            while let Some(released) = link.pop(Nanos(now)) {
                extra.push(released.at.0 - released.packet - 10_000_000);
            }
        }
        extra.sort_unstable();
        assert!(*extra.last().unwrap() <= 5_000_000);
        extra[extra.len() / 2] as f64 / 1e6
    };
    let (slow, fast) = (median(1_000_000), median(12_000));
    assert!((slow - fast).abs() < 0.02, "{slow} {fast}");
    assert!((fast - 2.5).abs() < 0.25, "{fast}");
}
