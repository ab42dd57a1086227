//! The client's end: what leaves, when, and that everything is told once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pathcast_base::{Exit, Fault, Nanos};
use pathcast_measure::machine::{Action, Event, Machine, Progress, Train};
use pathcast_net::NetError;
use pathcast_net::udp::{DriveOptions, drive};

use super::common::tried;
use super::machines::{Echo, Script, Seen};
use super::{answer, echoes, host, introduce, path, plain, port, run, serve};

#[test]
fn a_paced_train_is_never_early_and_each_packet_is_told_once() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let paths = [path("127.0.0.1", "127.0.0.1")];
    introduce(&*host(), &paths, port(&server));
    let gap = Nanos::micros(300);
    let mut script = Script::new(vec![echoes(0, 50, gap, 400)], 50);
    let driven = run(&*host(), &paths, port(&server), &mut script);
    assert_eq!(driven.result, b"enough", "{:?}", script.seen);
    let sent = script.sent(0);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    for (i, &(_, left)) in sent.iter().enumerate() {
        assert!(left >= script.started + Nanos::millis(1) + gap * i as u64, "packet {i} left before its time");
    }
    let received = script.received(0);
    for &(payload, size, _, came, _) in &received {
        let (seq, there) = answer(payload);
        let (_, left) = sent[seq as usize];
        assert_eq!((size, payload.len()), (400, 372));
        // one host, and clocks that were started at two times: they differ by less than a reading takes
        assert!(left <= there + Nanos::micros(50) && there <= came + Nanos::micros(50), "{left:?} {there:?} {came:?}");
    }
    let tally = driven.tally;
    assert_eq!((tally.sent, tally.received, tally.unsent), (50, 50, 0));
    assert_eq!((tally.sent_bytes, tally.received_bytes), (20_000, 20_000));
    assert!(tally.sent_stamped > 40 && tally.received_stamped > 40, "the kernel stamps here: {tally:?}");
}

#[test]
fn trains_of_two_paths_go_at_once_over_ipv4_and_ipv6() {
    let server = serve(&*host(), &["127.0.0.1:0", "[::1]:0"], Echo::default());
    let trains = (0..2).map(|p| echoes(p, 20, Nanos::millis(1), 200)).collect();
    let mut script = Script::new(trains, 40);
    let paths = [path("127.0.0.1", "127.0.0.1"), path("::1", "::1")];
    run(&*host(), &paths, port(&server), &mut script);
    let [first, second] = [0, 1].map(|p| script.sent(p));
    assert_eq!((first.len(), second.len()), (20, 20));
    assert!(first[1].1 < second[19].1 && second[1].1 < first[19].1, "neither waits for the other's end");
    for p in [0, 1] {
        let received = script.received(p);
        assert_eq!(received.len(), 20);
        let header = [28, 48][p];
        assert!(received.iter().all(|r| r.0.len() + header == 200 && r.1 == 200));
    }
}

#[test]
fn code_points_both_ways_over_ipv4_and_ipv6() {
    for address in ["127.0.0.1", "::1"] {
        let listen = if address == "::1" { "[::1]:0" } else { "127.0.0.1:0" };
        let server = serve(&*host(), &[listen], Echo::default());
        let mut trains = Vec::new();
        for (i, dscp) in [0, 8, 46, 63].into_iter().enumerate() {
            let train = echoes(0, 1, Nanos::ZERO, 100).marked(dscp);
            trains.push(Train { seq: i as u64, ..train });
        }
        let mut script = Script::new(trains, 4);
        run(&*host(), &[path(address, address)], port(&server), &mut script);
        let mut there: Vec<u8> = server.with(|echo| echo.seen.iter().map(|s| s.1).collect());
        let mut here: Vec<u8> = script.received(0).iter().map(|r| r.2).collect();
        there.sort_unstable();
        here.sort_unstable();
        assert_eq!((there, here), (vec![0, 8, 46, 63], vec![0, 8, 46, 63]), "{address}");
    }
}

#[test]
fn what_cannot_be_sent_is_told_once_and_the_rest_is_still_stamped() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let mut trains = Vec::new();
    for i in 0..20 {
        let mut train = echoes(0, 1, Nanos::ZERO, 100);
        (train.seq, train.at) = (i, Nanos::millis(1) * (i + 1));
        if i % 4 == 1 {
            train.heads.resize(65_508, 0); // one more than UDP can carry
        }
        trains.push(train);
    }
    let mut script = Script::new(trains, 15);
    let driven = run(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut script);
    assert_eq!(script.unsent(0), [1, 5, 9, 13, 17]);
    let sent = script.sent(0);
    assert_eq!(sent.len(), 15);
    assert_eq!((driven.tally.sent, driven.tally.unsent), (15, 5));
    assert!(driven.tally.sent_stamped > 10, "{:?}", driven.tally);
}

#[test]
fn a_closed_port_is_an_error_of_the_tally_and_of_nothing_else() {
    // nobody gets its port, and it takes nothing from us: it is connected to itself
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    closed.connect(("127.0.0.1", port)).unwrap();
    let mut script = Script::new(vec![echoes(0, 30, Nanos::micros(500), 100)], 0);
    let driven = run(&*host(), &[path("127.0.0.1", "127.0.0.1")], port, &mut script);
    assert_eq!(script.sent(0).len() + script.unsent(0).len(), 30);
    assert!(script.sent(0).len() >= 25, "{:?}", driven.tally);
    assert_eq!(driven.tally.last_error, Some(libc::ECONNREFUSED), "{:?}", driven.tally);
}

#[test]
fn batches_are_of_stamps_that_follow_closely() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let trains =
        (0..5).map(|i| Train { seq: 100 * i, at: Nanos::millis(2 * i + 1), ..echoes(0, 20, Nanos::ZERO, 100) });
    let mut script = Script::new(trains.collect(), 100);
    run(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut script);
    let received = script.received(0);
    assert_eq!(received.len(), 100);
    let mut next = (0, 0);
    let mut last = Nanos::ZERO;
    for (_, _, _, at, batch) in received {
        if next.0 == next.1 {
            next = (0, batch.of);
        }
        assert_eq!((batch.index, batch.of), next, "places of a batch follow each other");
        assert!(batch.index == 0 || at.0.abs_diff(last.0) <= 4_000, "{batch:?} {at:?} after {last:?}");
        (next.0, last) = (next.0 + 1, at);
    }
    assert_eq!(next.0, next.1);
}

#[test]
fn cancelled_politely_and_not() {
    let started = Instant::now();
    for (polite, outcome) in [(true, Ok(b"stopped".to_vec())), (false, Err("interrupted"))] {
        let cancel = AtomicBool::new(false);
        let mut script = Script::endless(polite);
        let driven = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                cancel.store(true, Ordering::Relaxed);
            });
            let options = DriveOptions { cancel: Some(&cancel), ..plain() };
            drive(&*host(), &[path("127.0.0.1", "127.0.0.1")], 9, &mut script, options)
        });
        assert_eq!(driven.map(|d| d.result).map_err(|e| e.code()), outcome);
        assert_eq!(script.seen, [Seen::Stop]);
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// Wants what it is given.
struct Wants(Vec<Action>);

impl Machine for Wants {
    fn handle(&mut self, _now: Nanos, _event: Event<'_>) {}
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        if self.0.len() > 1 { self.0.pop() } else { self.0.first().cloned() }
    }
}

#[test]
fn progress_is_passed_on_and_the_last_word_leaves() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let progress = Progress { phase: "test", done: 1, of: 2 };
    let mut told = Vec::new();
    let word = Action::SendTrain(echoes(0, 1, Nanos::ZERO, 100));
    let Action::SendTrain(word) = word else { unreachable!() };
    let word = Action::SendTrain(Train { at: Nanos::ZERO, ..word });
    let mut machine = Wants(vec![Action::Done(b"x".to_vec()), word, Action::Progress(progress)]);
    let mut listen = |p| told.push(p);
    let options = DriveOptions { on_progress: Some(&mut listen), ..plain() };
    let driven = drive(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut machine, options).unwrap();
    assert_eq!((driven.result.as_slice(), driven.tally.sent), (b"x".as_slice(), 1));
    assert_eq!(told, [progress]);
}

#[test]
fn bugs_of_a_machine_and_wrong_addresses_are_errors() {
    let fails = |mut machine: Wants, local: &str| -> NetError {
        drive(&*host(), &[path(local, "127.0.0.1")], 9, &mut machine, plain()).unwrap_err()
    };
    let lo = "127.0.0.1";
    for (train, word) in [
        (echoes(1, 1, Nanos::ZERO, 100), "path 1 of 1"),
        (echoes(0, 1, Nanos::ZERO, 100).marked(64), "code point 64"),
        (Train { heads: vec![0; 7], ..echoes(0, 2, Nanos::ZERO, 100) }, "2 packets with heads of 7 bytes"),
    ] {
        let error = fails(Wants(vec![Action::SendTrain(train)]), lo);
        assert!(error.to_string().contains(word) && error.exit() == Exit::Runtime, "{error}");
    }
    let error = fails(Wants(vec![Action::WakeAt(Nanos::ZERO)]), lo);
    assert_eq!(error.code(), "prober-misuse", "{error}");
    assert_eq!(fails(Wants(vec![Action::Done(Vec::new())]), "192.0.2.77").code(), "not-local");
}

#[test]
fn urgency_stays_in_the_measuring_thread() {
    // SAFETY: no arguments besides this thread
    let policy = || unsafe { libc::sched_getscheduler(0) };
    let before = policy();
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    let mut script = Script::new(vec![echoes(0, 3, Nanos::micros(200), 100)], 3);
    let options = DriveOptions { urgent: true, ..plain() };
    drive(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut script, options).unwrap();
    assert_eq!((script.received(0).len(), policy()), (3, before));
}

/// Is busy while an answer comes and its timer's time passes.
#[derive(Default)]
struct Busy {
    wake: Nanos,
    told: Vec<(&'static str, Nanos)>,
    wants: Vec<Action>,
}

impl Machine for Busy {
    fn handle(&mut self, now: Nanos, event: Event<'_>) {
        match event {
            Event::Started => {
                self.wake = now + Nanos::millis(15);
                self.wants = vec![Action::SendTrain(echoes(0, 1, Nanos::ZERO, 100)), Action::WakeAt(self.wake)];
            }
            Event::Sent { .. } => std::thread::sleep(Duration::from_millis(40)),
            Event::Received { at, .. } => self.told.push(("answer", at)),
            Event::Timer => self.told.push(("timer", self.wake)),
            _ => {}
        }
        if self.told.len() == 2 {
            self.wants.push(Action::Done(Vec::new()));
        }
    }
    fn next(&mut self, _now: Nanos) -> Option<Action> {
        self.wants.pop()
    }
}

#[test]
fn a_timer_does_not_overtake_what_came_before_it() {
    let server = serve(&*host(), &["127.0.0.1:0"], Echo::default());
    tried(|| {
        let mut busy = Busy::default();
        drive(&*host(), &[path("127.0.0.1", "127.0.0.1")], port(&server), &mut busy, plain()).unwrap();
        let answer = busy.told.iter().find(|told| told.0 == "answer").unwrap().1;
        // one that came after it, from a busy machine, may be told in its place or before
        if answer > busy.wake {
            return Err(format!("it never came in time: {:?}", busy.told));
        }
        assert!(busy.told.is_sorted_by_key(|told| told.1), "{:?}", busy.told);
        Ok(())
    });
}
