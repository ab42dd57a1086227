//! Rates from a file: departures equal those of Mahimahi's own loop, written down here again, and of plain arithmetic.

use std::collections::VecDeque;
use std::sync::Arc;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Aggregation, Cause, DeferredLink, Fair, Format, Link, Params, Queue, Red, Schedule, Trace};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn traced(schedule: Schedule) -> Trace {
    Trace::new("f".into(), String::new(), Format::Csv, Arc::new(schedule))
}

fn opportunities(times: &[u32]) -> Trace {
    traced(Schedule::opportunities(times.iter().copied()).unwrap())
}

fn rates(all: &[(u64, u64)]) -> Trace {
    traced(Schedule::rates(all.iter().map(|&(ms, rate)| (Nanos::millis(ms), Rate(rate))).collect()).unwrap())
}

fn params(trace: Trace, queue: u32) -> Params {
    let params = Params { trace: Some(trace), queue: Queue::Packets(queue), ..Params::default() };
    assert_eq!(params.check(), Ok(()));
    params
}

/// `LinkQueue` of Mahimahi's src/packet/link_queue.cc with a drop-tail queue of packets: `rationalize` before every
/// packet that is read. Times in ms; packets are their numbers and bytes.
struct Mahimahi {
    schedule: Vec<u64>,
    next: usize,
    base: u64,
    queue: VecDeque<(u32, u64)>,
    limit: usize,
    transit: Option<(u32, u64)>,
    out: Vec<(u64, u32)>,
}

impl Mahimahi {
    fn rationalize(&mut self, now: u64) {
        while self.schedule[self.next] + self.base <= now {
            let at = self.schedule[self.next] + self.base;
            self.next = (self.next + 1) % self.schedule.len();
            if self.next == 0 {
                self.base += self.schedule.last().unwrap();
            }
            let mut left = 1500;
            while left > 0 {
                let Some((packet, rest)) = self.transit.take().or_else(|| self.queue.pop_front()) else { break };
                let sent = rest.min(left);
                left -= sent;
                if rest == sent { self.out.push((at, packet)) } else { self.transit = Some((packet, rest - sent)) }
            }
        }
    }

    fn offer(&mut self, now: u64, packet: u32, bytes: u64) -> bool {
        self.rationalize(now);
        let fits = self.queue.len() < self.limit;
        if fits {
            self.queue.push_back((packet, bytes));
        }
        fits
    }
}

fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![4 => Just(0u64), 4 => 0u64..4, 1 => 0u64..60, 1 => 0u64..2000];
    prop::collection::vec((gap, prop_oneof![3 => Just(1500u64), 1 => 1u64..1500]), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn opportunities_are_mahimahis(gaps in prop::collection::vec(prop_oneof![3 => 0u32..2, 1 => 0u32..30], 1..60),
                                   script in steps(), limit in 1usize..40) {
        let mut times: Vec<u32> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        *times.last_mut().unwrap() += 1;
        let mut link = Link::new(params(opportunities(&times), limit as u32), 1, "l");
        let mut model = Mahimahi {
            schedule: times.iter().map(|&t| u64::from(t)).collect(), next: 0, base: 0, queue: VecDeque::new(), limit,
            transit: None, out: Vec::new(),
        };
        let mut now = 0;
        let mut out = Vec::new();
        for (id, (gap, bytes)) in script.into_iter().enumerate() {
            now += gap;
            let taken = link.offer(Nanos(now * MS), bytes as u32, id as u32);
            prop_assert_eq!(taken.is_ok(), model.offer(now, id as u32, bytes));
            prop_assert!(taken.err().is_none_or(|refused| refused.cause == Cause::Queue));
            prop_assert!(link.counters().busy.0 <= now * MS);
        }
        while let Some(due) = link.next_due() {
            let released = link.pop(due.max(Nanos(now * MS))).unwrap();
            out.push((released.at.0 / MS, released.packet));
            prop_assert_eq!(released.at.0 % MS, 0);
            prop_assert!(link.counters().busy.0 <= due.0.max(now * MS));
        }
        model.rationalize(out.last().map_or(now, |last| last.0));
        prop_assert_eq!(out, model.out);
    }

    /// With one rate throughout it is the plain link, to the nanosecond.
    #[test]
    fn a_constant_trace_is_a_constant_rate(rate in 100_000u64..1_000_000_000, script in steps(), limit in 0u32..40) {
        let mut plain = Link::new(Params { rate: Some(Rate(rate)), ..params(rates(&[(0, rate), (7, rate)]), limit) }, 1, "l");
        let without = Params { trace: None, ..plain.params().clone() };
        plain.set(Nanos(0), without);
        let mut link = Link::new(params(rates(&[(0, rate), (7, rate)]), limit), 1, "l");
        let mut now = 0;
        for (id, (gap, bytes)) in script.into_iter().enumerate() {
            now += gap * 77_777;
            let (a, b) = (plain.offer(Nanos(now), bytes as u32, id), link.offer(Nanos(now), bytes as u32, id));
            prop_assert_eq!(a, b);
            if id % 7 == 3 {
                link.set(Nanos(now), link.params().clone());
            }
            prop_assert_eq!(plain.backlog(Nanos(now)), link.backlog(Nanos(now)));
        }
        // a packet over the edge of a period is rounded up once, as on the plain link
        let dues = |link: &Link<usize>| link.upcoming().map(|(due, _)| due.0).collect::<Vec<_>>();
        prop_assert_eq!(dues(&plain), dues(&link));
        prop_assert_eq!(plain.counters(), link.counters());
    }

    /// Random early detection reckons by the mean of a trace what could have left while the line was idle.
    #[test]
    fn red_over_a_constant_trace_is_red_over_its_rate(gaps in prop::collection::vec(
        prop_oneof![8 => 100_000u64..800_000, 1 => 3_000_001u64..9_000_000], 50..300)) {
        let rate = 12_000_000;
        let queue = Queue::Red(Red { min: 2.0, max: 6.0, limit: 40, probability: 0.5, weight: 0.3, ecn: false });
        let with = |trace, rate| Params { queue: queue.clone(), trace, rate, ..Params::default() };
        let mut plain = Link::new(with(None, Some(Rate(rate))), 1, "l");
        let mut link = Link::new(with(Some(rates(&[(0, rate), (7, rate)])), None), 1, "l");
        let mut now = 0;
        for (id, gap) in gaps.into_iter().enumerate() {
            now += gap;
            prop_assert_eq!(plain.offer(Nanos(now), 1500, id), link.offer(Nanos(now), 1500, id));
        }
    }

    /// What one begins at an offset, another begins there by its own time; and setting the same changes nothing.
    #[test]
    fn an_offset_is_a_shift(times in prop::collection::vec(0u32..200, 2..40), offset in 0u64..500, zero in 0u64..5000,
                            script in steps(), set in any::<bool>()) {
        let mut times = times;
        times.sort_unstable();
        *times.last_mut().unwrap() += 1;
        let trace = opportunities(&times);
        let period = trace.schedule.period().0 / MS;
        let shifted = Trace { offset: Nanos::millis(offset), ..trace.clone() };
        let mut link = Link::new(params(shifted, 20), 1, "l");
        link.begin(Nanos::millis(zero));
        let mut plain = Link::new(params(trace, 20), 1, "l");
        let mut now = zero;
        // where the plain link is at the same place of the file
        let later = (offset + 10 * period) * MS;
        let mut last = (None, None);
        for (id, (gap, bytes)) in script.into_iter().enumerate() {
            now += gap;
            let there = Nanos((now - zero) * MS + later);
            let (a, b) = (link.offer(Nanos(now * MS), bytes as u32, id), plain.offer(there, bytes as u32, id));
            prop_assert_eq!(a.is_ok(), b.is_ok());
            if set {
                link.set(Nanos(now * MS), link.params().clone());
            }
            last = (link.upcoming().next_back().map(|p| p.0.0), plain.upcoming().next_back().map(|p| p.0.0));
            prop_assert_eq!(last.0.map(|due| due - zero * MS), last.1.map(|due| due - later));
        }
        prop_assert!(last.0.is_some());
    }
}

#[test]
fn exact_departures_over_changing_rates() {
    // 12 Mbit/s is a packet a ms; 3 ms of that, 2 ms of nothing, 5 ms of 24 Mbit/s, again
    let mut link = Link::new(params(rates(&[(0, 12_000_000), (3, 0), (5, 24_000_000)]), 1000), 1, "l");
    for i in 0..20 {
        link.offer(Nanos(500_000), 1500, i).unwrap();
    }
    let dues: Vec<u64> = link.upcoming().map(|(due, _)| due.0 / 1000).collect();
    // the third has half of itself left when nothing goes any more; the last rate holds as long as the one before: 2 ms
    assert_eq!(dues[..7], [1500, 2500, 5250, 5750, 6250, 6750, 7500]);
    assert_eq!(dues[7..10], [8500, 9500, 12_250]);
}

/// Milliseconds of line time that so many packets a millisecond have used in a second, of either kind of link.
fn used(trace: Trace, bytes: u32, each: impl Fn(u64) -> u32) -> [u64; 2] {
    let mut link = Link::new(params(trace.clone(), 10), 1, "l");
    let queue = Queue::Fair(Fair { packets: 10, quantum: Bytes(1500) });
    let mut fair = DeferredLink::new(Params { queue, ..params(trace, 10) }, 1, "l");
    for ms in 0..1000 {
        for _ in 0..each(ms) {
            let at = Nanos(ms * MS + MS / 2);
            let _ = link.offer(at, bytes, ms);
            let _ = fair.offer(at, bytes, 0, ms);
        }
        // the same again changes nothing
        if ms % 7 == 3 {
            link.set(Nanos(ms * MS + MS / 2), link.params().clone());
            fair.set(Nanos(ms * MS + MS / 2), fair.params().clone());
        }
    }
    link.advance(Nanos::secs(1));
    fair.advance(Nanos::secs(1));
    [link.counters().busy, fair.counters().busy].map(|busy| (busy.0 + MS / 2) / MS)
}

#[test]
fn the_line_time_of_opportunities_is_the_share_of_them_that_is_used() {
    let every: Vec<u32> = (0..1000).collect();
    for trace in [opportunities(&every), opportunities(&[1]), opportunities(&[0, 0, 4]), opportunities(&[19, 19, 20])] {
        assert_eq!(used(trace, 1500, |_| 3), [1000; 2]);
    }
    assert_eq!(used(opportunities(&every), 750, |_| 1), [500; 2]);
    assert_eq!(used(opportunities(&every), 1500, |ms| u32::from(ms % 4 == 0)), [250; 2]);
    // two at the end of a period and one at the begin of the next are three at one time
    assert_eq!(used(opportunities(&[0, 4, 4]), 1500, |ms| 2 * u32::from(ms % 4 == 0)), [667; 2]);
    assert_eq!(used(Trace { scale: 2.0, ..opportunities(&every) }, 1500, |_| 1), [500; 2]);
    assert_eq!(used(rates(&[(0, 12_000_000), (3, 24_000_000)]), 750, |_| 1), [375; 2]);
}

/// What an opportunity offers is no time before the trace began, and no time for which the serialiser was held.
#[test]
fn no_more_line_time_than_there_is() {
    let late = Trace { offset: Nanos::millis(90), ..opportunities(&[100]) };
    let mut link = Link::new(params(late, 10), 1, "l");
    link.offer(Nanos(0), 1500, 0).unwrap();
    link.advance(Nanos::millis(10));
    assert_eq!(link.counters().busy, Nanos::millis(10));
    // half of a packet's time at a rate, then the opportunity at 4 ms, then anew at a rate
    let plain = Params { rate: Some(Rate(12_000_000)), ..Params::default() };
    let mut link = Link::new(plain.clone(), 1, "l");
    (0..2).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    let mut busy = |ms: u64, params: Params| {
        link.set(Nanos(ms * MS + MS / 2), params);
        link.counters().busy.0 / 1000
    };
    assert_eq!(busy(0, params(opportunities(&[4]), 10)), 500);
    assert_eq!(busy(3, params(opportunities(&[4]), 10)), 500);
    assert_eq!([busy(4, plain.clone()), busy(4, plain.clone()), busy(9, plain)], [2250, 2250, 3250]);
    // ten opportunities until packets leave together, two at a time
    let aggregation = Some(Aggregation { every: Nanos::millis(10), bytes: Bytes(3000) });
    let mut link = Link::new(Params { aggregation, ..params(opportunities(&[1]), 100) }, 1, "l");
    (0..100).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    for ms in 1..400 {
        link.advance(Nanos::millis(ms));
        assert!(link.counters().busy <= Nanos::millis(ms));
    }
    assert!(link.counters().busy >= Nanos::millis(390));
}

#[test]
fn scale_is_of_rates_and_of_opportunities() {
    let at = |trace: Trace| {
        let mut link = Link::new(params(trace, 1000), 1, "l");
        (0..6).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
        link.upcoming().map(|(due, _)| due.0 / 1000).collect::<Vec<_>>()
    };
    assert_eq!(at(Trace { scale: 2.0, ..rates(&[(0, 12_000_000)]) }), [500, 1000, 1500, 2000, 2500, 3000]);
    assert_eq!(at(Trace { scale: 2.0, ..opportunities(&[1, 3]) }), [1000, 1000, 3000, 3000, 4000, 4000]);
    assert_eq!(at(Trace { scale: 0.5, ..opportunities(&[1]) }), [2000, 4000, 6000, 8000, 10_000, 12_000]);
}

#[test]
fn the_slowest_rates_bring_a_packet_through_at_last() {
    let due = |all: &[(u64, u64)]| {
        let mut link = Link::new(params(Trace { scale: 0.01, ..rates(all) }, 1000), 1, "l");
        (0..2).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
        link.upcoming().map(|(due, _)| due.0 / MS).collect::<Vec<_>>()
    };
    // a bit a second, every other second or millisecond
    assert_eq!(due(&[(0, 40), (1000, 0)]), [23_999_000, 47_999_000]);
    assert_eq!(due(&[(0, 40), (1, 0)]), [23_999_999, 47_999_999]);
    assert_eq!(due(&[(0, 40)]), [12_000_000, 24_000_000]);
    // a millisecond of it in 1000 hours: not within the clock's years
    assert!(due(&[(0, 40), (1, 0), (1_800_000_000, 0)]).iter().all(|ms| *ms > 1 << 43));
}

#[test]
fn the_mean_rate_goes_through_and_overhead_takes_its_part() {
    let trace = opportunities(&[0, 0, 3, 7, 10]);
    assert_eq!(trace.mean(), 5.0 * 12_000.0 / 0.01);
    let overhead = Params { overhead: Bytes(500), ..params(trace, 1_000_000) };
    let mut link = Link::new(overhead, 1, "l");
    (0..30_000).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    let last = link.upcoming().next_back().unwrap().0.0 as f64;
    assert!((30_000.0 * 2000.0 * 8.0 / (last / 1e9) / 6e6 - 1.0).abs() < 1e-3, "{last}");
}

/// Opportunities of another trace with the same offset and scale are others.
#[test]
fn from_a_trace_to_another() {
    let mut link = Link::new(params(opportunities(&[1, 2, 3, 4, 5]), 100), 1, "l");
    (0..6).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    link.set(Nanos(3_500_000), params(opportunities(&[4, 20, 30, 40, 50]), 100));
    let dues = |link: &Link<u32>| link.upcoming().map(|(due, _)| due.0 / MS).collect::<Vec<_>>();
    assert_eq!(dues(&link), [1, 2, 3, 4, 20, 30]);
}

#[test]
fn from_a_rate_to_a_trace_and_back() {
    let mut link = Link::new(Params { rate: Some(Rate(12_000_000)), ..Params::default() }, 1, "l");
    (0..3).for_each(|i| link.offer(Nanos(0), 1500, i).unwrap());
    let dues = |link: &Link<u32>| link.upcoming().map(|(due, _)| due.0 / 1000).collect::<Vec<_>>();
    let at = Nanos(400_000);
    // 60 % of the first are left, which an opportunity of 1500 bytes takes, and 600 bytes of the second
    link.set(at, params(opportunities(&[2, 4]), 100));
    assert_eq!(dues(&link), [2000, 4000, 6000]);
    // in transmission anew at 3 ms, at the rate
    link.set(Nanos(3_000_000), Params { rate: Some(Rate(12_000_000)), ..Params::default() });
    assert_eq!(dues(&link), [2000, 4000, 5000]);
}

#[test]
fn a_long_rest_costs_no_walk() {
    let times: Vec<u32> = (1..=1_000_000).collect();
    let mut link = Link::new(params(opportunities(&times), 10), 1, "l");
    for day in 1..2000u64 {
        link.offer(Nanos::secs(86_400 * day), 1500, day).unwrap();
        assert_eq!(link.next_due(), Some(Nanos(86_400 * day * 1_000_000_000 + MS)));
        while link.pop(Nanos::secs(86_400 * day + 1)).is_some() {}
    }
}
