//! The ride beside a fluid, and its parts in closed form.

use super::super::FASTEST;
use super::super::testing::{self, Fluid, Gathering, train};
use super::*;

fn budget(kb: u64, time: Nanos) -> Budget {
    Budget { bytes: Bytes(kb * 1000), time }
}

#[test]
fn a_fluid_is_met_at_every_load_and_the_budget_is_kept() {
    for cross in [0.0, 0.5e6, 1.5e6, 3e6, 4.5e6] {
        let budget = budget(350, Nanos::millis(1500));
        let (estimate, end) = Fluid::new(5e6, cross, 0.02).run(&mut Ride::new(budget, 1));
        let value = estimate.value_bps.unwrap();
        // a fluid shows no packet that is waited for: as long as the queue is empty it looks like no traffic
        assert!((value - (5e6 - cross)).abs() < 0.015 * 5e6, "{cross}: {estimate:?}");
        assert!((estimate.low_bps..=estimate.high_bps).contains(&(5e6 - cross)), "{cross}: {estimate:?}");
        assert!(estimate.bytes <= budget.bytes && end <= Nanos::millis(2700), "{cross}: {estimate:?} {end:?}");
    }
}

#[test]
fn slow_and_fast() {
    for (capacity, delay, kb, time) in
        [(100e3, 0.01, 150, Nanos::secs(20)), (100e6, 0.01, 4000, Nanos::secs(1)), (1e9, 0.001, 10_000, Nanos::secs(1))]
    {
        let (estimate, _) = Fluid::new(capacity, 0.3 * capacity, delay).run(&mut Ride::new(budget(kb, time), 1));
        let value = estimate.value_bps.unwrap();
        assert!((value / capacity - 0.7).abs() < 0.02, "{capacity} {delay}: {estimate:?}");
    }
}

/// 1.3 s of round trip: the first train is waited for, and the last report.
#[test]
fn where_reports_take_long_it_rides_before_they_come() {
    for cross in [0.0, 0.1e6, 0.3e6] {
        let mut ride = Ride::sparing(budget(20_000, Nanos::secs(30)), 1);
        let (estimate, end) = Fluid::new(0.67e6, cross, 0.65).run(&mut ride);
        let value = estimate.value_bps.unwrap();
        assert!((value - 0.67e6 + cross).abs() < 0.03 * 0.67e6, "{cross}: {estimate:?}");
        assert!(end < Nanos::millis(1000 + 8000) && estimate.bytes < Bytes(350_000), "{cross}: {estimate:?} {end:?}");
    }
}

/// A ride that takes the capacity for `c` [bit/s] and learns from one train: 1400 bytes every `apart` [ns], which come a packet's
/// time at 4 Mbit/s apart; `room`: so many fit the queue.
fn learnt(c: f64, apart: u64, room: u64) -> Ride {
    let service = 2_800_000;
    let (mut sent, mut received, mut free) = (Vec::new(), Vec::new(), 0);
    for k in 0..201 {
        let at = k * apart;
        let place = free <= at + room * service;
        free = if place { free.max(at) + service } else { free };
        sent.push(at);
        received.push(place.then_some(free + 10_000_000));
    }
    let train = train(0, LARGE, &sent, &received);
    let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
    (ride.c, ride.target) = (c, 20.0 * PACKET);
    ride.trains.insert(0, train.clone());
    ride.learn(&train);
    ride
}

#[test]
fn what_the_path_carries_proves_more_than_the_trains_showed_by_one_in_a_hundred() {
    for (less, proven) in [(1.005, 0.0), (1.02, 4e6)] {
        let ride = learnt(4e6 / less, 2_800_000, 50);
        assert!((ride.proven - proven).abs() < 1.0, "{less}: {}", ride.proven);
        // all of 0.56 s was the probes', before it half of C for eight packets' time
        let (seen, known) = (200.0 * 2.8e-3, 8.0 * PACKET / ride.c);
        let a = (4e6 * seen + 0.5 * ride.c * known) / (seen + known);
        assert!((ride.a / a - 1.0).abs() < 1e-6, "{less}: {} {a}", ride.a);
    }
}

#[test]
fn a_third_of_the_bytes_and_half_of_the_time_are_the_capacitys() {
    for (kb, trains) in [(1000, 7), (200, 5), (100, 4), (140, 4), (175, 5), (245, 7), (244, 6)] {
        let (share, count) = Ride::share(budget(kb, Nanos::secs(3)), false);
        assert_eq!((share, count), (Budget { bytes: Bytes(kb * 1000 / 3), time: Nanos::millis(1500) }, trains), "{kb}");
    }
}

#[test]
fn where_bytes_are_few_the_capacity_has_three_trains_and_most_of_them_on_a_fast_line() {
    let of = |kb, scant| Ride::share(budget(kb, Nanos::secs(3)), scant).0.bytes.0;
    assert_eq!([of(63, false), of(47, false), of(42, false), of(40, false)], [21_000, 21_000, 21_000, 20_000]);
    assert_eq!(of(47, true), 37_600);
    let scant = |kb, c: f64| {
        let mut ride = Ride::new(budget(kb, Nanos::secs(3)), 1);
        let gap = (PACKET / c * 1e9) as u64;
        ride.capacity.observe(Nanos::millis(9), &train(0, 1400, &[0; 5], &[1, 2, 3, 4, 5].map(|k| Some(k * gap))));
        ride.is_scant()
    };
    // a hundredth of what is sensible: 40 and 100 kB
    assert_eq!([scant(41, 100e6), scant(39, 100e6), scant(101, 1e9), scant(99, 1e9)], [false, true, false, true]);
}

/// By half of what is sensible each time, up to three times as much, and no more than is allowed.
#[test]
fn a_rough_estimate_is_worth_more() {
    let extended = |kb, time| {
        let most = budget(kb, Nanos::millis(time));
        let mut ride = Ride::sparing(most, 1);
        ride.c = 5e6; // sensible: 930 kB and 2.4 s; nothing is known yet, which is rough
        ride.budget = most.min(Budget::sensible(5e6, Nanos::ZERO));
        let times = (0..20).take_while(|_| ride.extend()).count();
        (times, (ride.budget.bytes.0 + 500) / 1000, (ride.budget.time.0 + 500_000) / 1_000_000)
    };
    assert_eq!(extended(20_000, 30_000), (4, 2790, 7200));
    assert_eq!(extended(1_500, 30_000), (2, 1500, 4800));
    assert_eq!(extended(20_000, 3_000), (1, 1395, 3000));
    let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
    ride.c = 5e6;
    assert!(!ride.extend());
}

/// A queue that grows for all of the ride leaves an interval of that; rough is one of more than a twentieth of C.
#[test]
fn an_interval_of_a_twentieth_is_not_rough() {
    for (apart, rough) in [(2_700_000, false), (2_650_000, true)] {
        let mut ride = learnt(4e6, apart, 100);
        (ride.most, ride.budget) = (Some(budget(20_000, Nanos::secs(30))), Budget::sensible(4e6, Nanos::ZERO));
        let estimate = ride.estimate();
        let width = (estimate.high_bps - estimate.low_bps) / ride.c;
        assert!((0.03..0.08).contains(&width) && (width > 0.05) == rough, "{apart}: {width}");
        assert_eq!(ride.extend(), rough, "{apart}: {width}");
    }
}

/// What a ride is at work with, to ask it what it does next: 5 Mbit/s of which 3 are free, and reports that take 20 ms.
fn riding(phase: Phase) -> Ride {
    let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
    (ride.c, ride.a, ride.phase) = (5e6, 3e6, phase);
    (ride.started, ride.lag) = (Some(Nanos::ZERO), Nanos::millis(20));
    ride.target = 6.0 * PACKET;
    ride
}

#[test]
fn reports_are_waited_for_twice_as_long_as_they_took() {
    let mut ride = riding(Phase::Drain);
    ride.pending.insert(7, vec![1.0]);
    ride.last_end = Nanos::millis(1000);
    let until = Nanos::millis(1000 + 2 * 20 + 30);
    assert_eq!((ride.next(Nanos::millis(1001)), ride.next(until)), (Step::Wait(until), Step::Done));
    // not beyond the budget's end, but as long as one takes
    let mut ride = riding(Phase::Drain);
    ride.pending.insert(7, vec![1.0]);
    ride.last_end = Nanos::millis(2990);
    assert_eq!(ride.next(Nanos::millis(2991)), Step::Wait(Nanos::millis(3010)));
    ride.pending.clear();
    assert_eq!(ride.next(Nanos::millis(2992)), Step::Done);
    // the opening's three times
    let mut ride = riding(Phase::Opening);
    (ride.a, ride.last_end) = (0.0, Nanos::millis(1000));
    let until = Nanos::millis(1000 + 3 * 20 + 50);
    assert_eq!(ride.next(Nanos::millis(1001)), Step::Wait(until));
    assert!(matches!(ride.next(until), Step::Send(_)));
    assert_eq!((ride.a, ride.phase), (2.5e6, Phase::Ride));
}

/// What came last waited 20 ms, so that 100 kbit and itself are there; then two more leave, and A drains the queue.
#[test]
fn what_waits_follows_from_the_last_report_and_what_was_sent_since() {
    let mut ride = riding(Phase::Ride);
    ride.base.floor.delay = 10e6;
    ride.trains.insert(0, train(0, LARGE, &[1_000_000_000], &[Some(1_030_000_000)]));
    let there = 100e3 + PACKET;
    assert!((ride.backlog(1.0) - there).abs() < 1e-6);
    assert!((ride.backlog(1.01) - (there - 30e3)).abs() < 1e-3);
    ride.pending.insert(1, vec![0.999, 1.004, 1.008, 1.5]);
    assert!((ride.backlog(1.01) - (there - 30e3 + 2.0 * PACKET)).abs() < 1e-3);
    assert_eq!(ride.backlog(1.4), 0.0);
    // the next train adds what is missing in a hurry
    assert_eq!(riding(Phase::Ride).backlog(1.0), 0.0);
}

/// 67 kbit are missing; each packet 0.8 L/C behind the one before adds itself less what drains in between.
#[test]
fn what_is_missing_comes_first_and_in_a_hurry() {
    let mut ride = riding(Phase::Ride);
    ride.covered = 10.0; // A is well known: the surplus over it is 738 bit/s
    let Step::Send(plan) = ride.next(Nanos::secs(1)) else { panic!("no train") };
    let missing = 6.0 * PACKET + 738.0 * 0.02;
    let hurried = (missing / (PACKET * (1.0 - 0.8 * 0.6))) as usize;
    assert_eq!((hurried, plan.gaps.len()), (11, 11 + 12 - 1));
    for (k, gap) in plan.gaps.iter().enumerate() {
        let exact = if k < hurried { 0.8 * PACKET / 5e6 } else { PACKET / (3e6 + 738.0) };
        assert!((gap.as_secs_f64() / exact - 1.0).abs() < 1e-5, "{k}: {gap:?} {exact}");
    }
}

#[test]
fn a_train_is_twelve_packets_at_the_rate_that_is_free() {
    let mut ride = riding(Phase::Ride);
    let packet = |rate: f64| PACKET / rate;
    assert!((ride.known() - 50.0 * packet(5e6)).abs() < 1e-12);
    ride.covered = 1.0;
    let time = |ride: &mut Ride, a: f64| {
        ride.a = a;
        ride.train_time()
    };
    assert!((time(&mut ride, 3e6) - 12.0 * packet(3e6)).abs() < 1e-12);
    assert!((time(&mut ride, 0.5e6) - 60.0 * packet(5e6)).abs() < 1e-12, "60 at the rate C at the most");
    assert!((time(&mut ride, 0.2e6) - 4.0 * packet(0.2e6)).abs() < 1e-12, "four at the least");
    ride.lag = Nanos::millis(200);
    assert!((time(&mut ride, 3e6) - 0.1).abs() < 1e-12, "half of a report's time");
    ride.covered = 0.0;
    assert!((time(&mut ride, 3e6) - 40.0 * packet(5e6)).abs() < 1e-12, "as long as little is known");
    (ride.c, ride.lag) = (1e9, Nanos::ZERO);
    assert!((time(&mut ride, 0.9e9) - 4e-3).abs() < 1e-12);
}

#[test]
fn the_queue_is_two_packets_or_what_a_host_gathers_at_least() {
    let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
    for (c, bits) in [(5e6, 2.0 * PACKET), (1e9, 300e3)] {
        ride.c = c;
        assert!((ride.floor() / bits - 1.0).abs() < 1e-9, "{c}");
    }
}

#[test]
fn it_takes_half_of_the_room_that_it_has_seen() {
    let ride = learnt(4e6, 2_000_000, 10);
    let room = ride.limit / PACKET;
    assert!((9.0..=11.0).contains(&room), "{room}");
    assert!((ride.target / ride.limit - 0.5).abs() < 1e-9, "{} {}", ride.target, ride.limit);
    // two packets at least
    let ride = learnt(4e6, 2_000_000, 3);
    assert!((ride.target / PACKET - 2.0).abs() < 1e-9, "{} {}", ride.target / PACKET, ride.limit / PACKET);
    assert!(learnt(4e6, 2_800_000, 50).limit.is_infinite());
}

#[test]
fn without_an_answer_it_says_so() {
    let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
    let mut now = Nanos(0);
    loop {
        match ride.next(now) {
            Step::Send(_) | Step::Beside(_) => {}
            Step::Wait(until) => now = until,
            Step::Done => break,
        }
    }
    assert_eq!((ride.estimate().value_bps, ride.estimate().why_not), (None, Some(WhyNot::NoAnswer)));
}

/// Nothing behind them sets packets apart: all of an opportunity have one stamp.
#[test]
fn on_a_line_that_gathers_whole_opportunities_count() {
    for (capacity, every) in [(300e6, 4e-3), (100e6, 2.5e-3), (30e6, 8e-3)] {
        let mut ride = Ride::sparing(budget(50_000, Nanos::secs(10)), 1);
        let (estimate, _) = Gathering::new(capacity, every, 0.01, None).run(&mut ride);
        let (c, a) = (ride.capacity().value_bps.unwrap(), estimate.value_bps.unwrap());
        assert!((c / capacity - 1.0).abs() < 0.01 && (a / capacity - 1.0).abs() < 0.02, "{every}: {c} {estimate:?}");
        assert!((estimate.low_bps..estimate.high_bps).contains(&capacity), "{every}: {estimate:?}");
    }
}

/// LTE: less than a packet at each of its moments, so that nothing is seen to gather; who is alone waits for the next one.
#[test]
fn who_waits_for_the_links_next_moment_has_met_nobody() {
    for (capacity, every, delay) in
        [(2.3e6, 4e-3, 0.084), (3.1e6, 4e-3, 0.084), (8.3e6, 1e-3, 0.084), (8.3e6, 1e-3, 0.02)]
    {
        let mut ride = Ride::sparing(budget(20_000, Nanos::secs(30)), 1);
        let (estimate, _) = Gathering::new(capacity, every, delay, None).run(&mut ride);
        let value = estimate.value_bps.unwrap();
        assert!((value / capacity - 1.0).abs() < 0.12, "{capacity} {every} {delay}: {estimate:?}");
        assert!((estimate.low_bps..=estimate.high_bps).contains(&capacity), "{capacity} {every} {delay}: {estimate:?}");
    }
}

/// 20 Mbit/s and 625 kB at once of 100: what is dropped shows that the line's rate is nobody's, and what is not how much passes.
#[test]
fn what_a_policer_lets_pass_at_once_is_no_capacity() {
    let mut ride = Ride::sparing(budget(50_000, Nanos::secs(10)), 1);
    let (estimate, _) = Gathering::new(100e6, 0.0, 0.01, Some((20e6, 5e6))).run(&mut ride);
    assert_eq!((estimate.low_bps, estimate.why_not), (0.0, Some(WhyNot::Inconsistent)));
    assert!((estimate.value_bps.unwrap() / 20e6 - 1.0).abs() < 0.01 && estimate.high_bps > 20e6, "{estimate:?}");
    assert_eq!((ride.capacity().value_bps, ride.capacity().why_not), (None, Some(WhyNot::Inconsistent)));
}

/// A queue that grows for all of the ride leaves A open where it grows by as much as the line carries, and sooner where no train
/// has shown C.
#[test]
fn an_interval_of_all_of_the_capacity_is_no_estimate() {
    for (apart, known, told) in
        [(2_400_000, false, true), (1_700_000, false, false), (1_700_000, true, true), (1_000_000, true, false)]
    {
        let mut ride = learnt(4e6, apart, 1000);
        let back_to_back: Vec<_> = (0..5).map(|k| Some(10_000_000 + 2_800_000 * k)).collect();
        for id in 0..if known { 3 } else { 0 } {
            ride.capacity.observe(Nanos::millis(20), &train(id, LARGE, &[0; 5], &back_to_back));
        }
        let why = (!told).then_some(WhyNot::Inconsistent);
        assert_eq!(ride.estimate().why_not, why, "{apart} {known} {:?}", ride.estimate());
        assert_eq!(ride.estimate().value_bps.is_some(), told, "{apart} {known}");
    }
}

/// What a gentle measurement may send in a direction takes 4 ms at 100 Mbit/s and 0.2 s at 2: of the first nobody knows whether a
/// policer lets as much through for longer.
#[test]
fn a_burst_is_not_what_is_available_for_longer() {
    let of = |capacity: f64, police: Option<(f64, f64)>| {
        let mut ride = Ride::sparing(budget(50, Nanos::secs(5)), 1);
        let (estimate, _) = Gathering::new(capacity, 0.0, 0.02, police).run(&mut ride);
        (ride.capacity(), estimate)
    };
    for police in [None, Some((20e6, 5e6))] {
        let (capacity, estimate) = of(100e6, police);
        assert_eq!((capacity.why_not, estimate.why_not), (None, Some(WhyNot::TooShort)), "{capacity:?} {estimate:?}");
        assert!((estimate.value_bps.unwrap() / 100e6 - 1.0).abs() < 0.02, "{estimate:?}");
    }
    assert_eq!(of(2e6, None).1.why_not, None);
}

/// 4.2 Mbit/s in grants every 4 ms: 1400 bytes take 2.7 ms, so that most gaps are 4 ms and some none.
#[test]
fn few_trains_through_grants_do_not_tell_the_capacity_as_exactly_as_their_gaps_look() {
    for capacity in [4.2e6, 5e6] {
        let mut ride = Ride::sparing(budget(50, Nanos::secs(5)), 1);
        Gathering::new(capacity, 4e-3, 0.05, None).run(&mut ride);
        let found = ride.capacity();
        let holds = found.value_bps.is_none() || (found.low_bps..=found.high_bps).contains(&capacity);
        assert!(holds || found.why_not.is_some(), "{capacity}: {found:?}");
    }
}

/// Reports of a far end that lies: packets come closer than through any line, or claim to be one of a huge batch.
#[test]
fn whatever_is_reported_no_train_is_longer_than_the_budget_has_bytes() {
    for (apart, of) in
        [([1, 1, 1, 200, 200], 1), ([1, 1, 1, 1, 1], 1), ([0, 1, 0, 1, 0], 1), ([1, 1, 1, 200, 200], u32::MAX)]
    {
        let mut ride = Ride::new(budget(1000, Nanos::secs(3)), 1);
        let mut now = Nanos::secs(1);
        let mut sent: Vec<(Nanos, Plan)> = Vec::new();
        for _ in 0..20_000 {
            match ride.next(now) {
                Step::Send(plan) => {
                    assert!(plan.gaps.capacity() <= 2 * 1_000_000 / usize::from(LARGE), "{}", plan.gaps.capacity());
                    sent.push((plan.at.max(now) + plan.duration() + Nanos::millis(250), plan));
                }
                Step::Wait(until) if sent.first().is_some_and(|(at, _)| *at <= until) => {
                    let (at, plan) = sent.remove(0);
                    now = now.max(at);
                    let left: Vec<u64> = (0..=plan.gaps.len())
                        .map(|k| plan.at.0 + plan.gaps[..k].iter().map(|g| g.0).sum::<u64>())
                        .collect();
                    let mut came = left[0] + 1_000_000;
                    let marks = (0..left.len()).map(|k| {
                        came += apart[k % 5];
                        Some(came)
                    });
                    let mut seen = train(plan.id, plan.size, &left, &marks.collect::<Vec<_>>());
                    seen.packets.iter_mut().for_each(|p| p.batch = crate::Batch { index: of - 1, of });
                    ride.observe(now, &seen);
                }
                Step::Wait(until) => now = now.max(until),
                Step::Beside(_) | Step::Done => break,
            }
        }
        assert!(ride.capacity().value_bps.is_none_or(|c| c <= FASTEST), "{apart:?}: {:?}", ride.capacity());
    }
}

/// A radio link that is twice as fast from the ride on: at the rate that the trains showed no probe waits, nor is it
/// apart from the one before.
#[test]
fn a_line_that_gathers_and_got_faster_is_found_out() {
    for (slow, fast, every) in [(100e6, 200e6, 2.5e-3), (4e6, 8e6, 4e-3)] {
        let mut ride = Ride::sparing(budget(20_000, Nanos::secs(30)), 1);
        let mut link = Gathering::new(slow, every, 0.015, None);
        let carry = |plan: &Plan| {
            if plan.size == SMALL_SIZE {
                link.capacity = fast;
            }
            link.carry(plan)
        };
        let (estimate, _) = testing::run(carry, Nanos::millis(15), &mut ride);
        assert!((estimate.value_bps.unwrap() / fast - 1.0).abs() < 0.05, "{fast}: {estimate:?}");
        assert!((estimate.low_bps..=estimate.high_bps).contains(&fast), "{fast}: {estimate:?}");
    }
}

/// What the ride was seen to carry does not settle what trains left open.
#[test]
fn a_doubtful_capacity_stays_doubtful_though_more_was_carried() {
    let mut ride = learnt(4e6 / 1.02, 2_800_000, 50);
    assert!((ride.proven / 4e6 - 1.0).abs() < 1e-6);
    let came: Vec<_> = (0..5).map(|k| Some(10_000_000 + 2_856_000 * k)).collect();
    for id in 0..2 {
        assert!(matches!(ride.capacity.next(Nanos::secs(id)), Step::Send(_)));
        ride.capacity.observe(Nanos::secs(id), &train(id, LARGE, &[0; 5], &came));
    }
    let found = ride.capacity();
    assert_eq!(found.why_not, Some(WhyNot::TooFew), "of two trains");
    assert!(
        (found.value_bps.unwrap() / 4e6 - 1.0).abs() < 1e-6 && (found.low_bps / 4e6 - 0.98).abs() < 1e-3,
        "{found:?}"
    );
}

/// No more waits than that and a train of five, which is the shortest, and the one that has just come.
#[test]
fn a_bound_on_the_queue_binds_the_ride() {
    for (capacity, every, bound) in [(1e6, 0.0, 20), (1e6, 0.0, 5), (5e6, 4e-3, 10), (100e6, 0.0, 5), (1e6, 0.0, 500)] {
        let queue = Nanos::millis(bound);
        let mut ride = Ride::sparing(budget(20_000, Nanos::secs(30)), 1).limited(queue);
        let mut link = Gathering::new(capacity, every, 0.02, None);
        let mut most = 0.0f64;
        let carry = |plan: &Plan| {
            let seen = link.carry(plan);
            let waits = |p: &crate::Seen| p.delay().unwrap_or(0) as f64 / 1e9 - 1e3 - 0.02;
            most = seen.packets.iter().map(waits).fold(most, f64::max);
            seen
        };
        let (estimate, _) = testing::run(carry, Nanos::millis(20), &mut ride);
        let allowed = queue.as_secs_f64() + 6.0 * PACKET / capacity + every;
        assert!(most <= allowed + 1e-6, "{capacity} {bound}: {most} {allowed}");
        let value = estimate.value_bps.unwrap();
        assert!((value / capacity - 1.0).abs() < 0.15, "{capacity} {bound}: {estimate:?}");
    }
}
