//! The rule on lines of known rates, and at its edges.

use super::*;

const MS: u64 = 1_000_000;

/// A line of so many byte/s and ms whose window fills it, with `unsent` bytes before it.
fn line(id: u32, rate: u64, rtt_ms: u64, unsent: u64) -> SubflowSeen {
    let (window, srtt) = (rate * rtt_ms / 1000, Nanos(rtt_ms * MS));
    SubflowSeen { id, srtt, min_rtt: srtt, window, pace: rate * 6 / 5, unsent, out: window, ..SubflowSeen::default() }
}

fn task(left: u64) -> Task {
    Task { left, waits: 0, open: 0, room: 8 << 20, coupled: false }
}

/// The verdicts once the lines have delivered at their rates for ten seconds.
fn settled(lines: &[SubflowSeen], task: Task) -> (Steer, Vec<Verdict>) {
    let (mut steer, mut verdicts) = (Steer::default(), Vec::new());
    for n in 0..1000u64 {
        let seen: Vec<_> =
            lines.iter().map(|one| SubflowSeen { acked: one.window * n * 10 * MS / one.srtt.0, ..*one }).collect();
        verdicts = steer.look(Nanos(n * 10 * MS), task, &seen);
    }
    (steer, verdicts)
}

#[test]
fn a_slow_line_shares_what_it_can_deliver_before_the_others_are_done() {
    let lines = [line(0, 6_250_000, 40, 200_000), line(1, 250_000, 200, 0)];
    // a piece takes it 0.26 s and two round trips: 0.83 s with the quarter of one that is held, 5.2 MB of the other
    assert_eq!(settled(&lines, task(6_000_000)).1, [Verdict::Free, Verdict::Free]);
    assert_eq!(settled(&lines, task(3_000_000)).1, [Verdict::Free, Verdict::Hold(Held::Late)]);
    let waits = [lines[0], line(1, 250_000, 200, 400_000)];
    assert_eq!(settled(&waits, task(6_000_000)).1, [Verdict::Free, Verdict::Hold(Held::Late)]);
}

#[test]
fn buffers_bound_what_waits_for_a_slow_line() {
    let lines = [line(0, 6_250_000, 40, 0), line(1, 250_000, 200, 0)];
    let small = Task { room: 2 << 20, ..task(100_000_000) };
    assert_eq!(settled(&lines, small).1, [Verdict::Free, Verdict::Hold(Held::Room)]);
}

#[test]
fn like_lines_are_both_free_and_hold_a_round_trip() {
    let lines = [line(0, 1_000_000, 50, 0), line(1, 1_250_000, 60, 0)];
    let (steer, verdicts) = settled(&lines, task(10_000_000));
    assert_eq!(verdicts, [Verdict::Free, Verdict::Free]);
    assert_eq!(steer.ahead(), LEAST + 2_250_000 * 80 / 1000);
}

#[test]
fn a_line_that_joins_is_not_believed_before_it_has_delivered() {
    let lines = [line(0, 2_000_000, 30, 0), line(1, 1_000_000, 30, 0)];
    let mut steer = Steer::default();
    assert_eq!(steer.look(Nanos(0), task(400_000), &lines)[1], Verdict::Hold(Held::Late));
    assert_eq!(settled(&lines, task(400_000)).1[1], Verdict::Free);
}

#[test]
fn a_line_that_joins_is_tried_with_a_window_of_its_own_and_not_again_before_that_came_back() {
    let busy = line(0, 2_000_000, 30, 100_000);
    let fresh = SubflowSeen { window: 14_480, out: 0, ..line(1, 482_000, 30, 0) };
    // whose window has come to its end
    let grown = || {
        let mut steer = Steer::default();
        steer.look(Nanos(0), task(2_000_000), &[busy]);
        steer.look(Nanos(100 * MS), task(1_800_000), &[busy]);
        steer
    };
    let (at, mut steer) = (Nanos(100 * MS), grown());
    // 50 times its window takes the other 0.36 s, what is left 0.55 s
    assert_eq!(steer.look(at, task(1_000_000), &[busy, fresh])[1], Verdict::Free);
    assert_eq!((steer.trial(), steer.ahead()), (Some(14_480), 100_000 + 14_480));
    let tried = SubflowSeen { out: 14_480, ..fresh };
    assert_eq!(steer.look(Nanos(110 * MS), task(900_000), &[busy, tried])[1], Verdict::Hold(Held::Late));
    assert_eq!(steer.trial(), None);
    // all came back within 40 ms, and its window has doubled: what it delivers is known, and it is tried with that
    let back = SubflowSeen { acked: 14_480, window: 28_960, ..fresh };
    assert_eq!(steer.look(Nanos(140 * MS), task(200_000), &[busy, back])[1], Verdict::Free);
    assert_eq!(steer.trial(), Some(28_960));
    // the others must not run dry meanwhile, a transfer that ends before it has no use for it, and one that loses is none
    let dry = SubflowSeen { unsent: 20_000, ..busy };
    let lossy = SubflowSeen { again: 1, ..fresh };
    for (left, busy, fresh) in [(1_000_000, dry, fresh), (300_000, busy, fresh), (1_000_000, busy, lossy)] {
        assert_eq!(grown().look(at, task(left), &[busy, fresh])[1], Verdict::Hold(Held::Late));
    }
}

#[test]
fn the_better_line_takes_over_though_it_joined_later() {
    let lines = [line(0, 250_000, 20, 200_000), line(1, 6_250_000, 40, 0)];
    assert_eq!(settled(&lines, task(2_000_000)).1, [Verdict::Hold(Held::Late), Verdict::Free]);
}

#[test]
fn what_the_others_would_send_again_sooner_is_closed_at_the_end_alone() {
    let slow = line(1, 100_000, 100, 300_000);
    let idle = SubflowSeen { out: 0, ..line(0, 6_250_000, 40, 0) };
    let (mut steer, _) = settled(&[line(0, 6_250_000, 40, 0), slow], task(0));
    let at = Nanos(10_000 * MS);
    let task = Task { open: 400_000, ..task(0) };
    assert_eq!(steer.clone().look(at, task, &[idle, slow])[1], Verdict::Close(Held::Late));
    assert_eq!(steer.clone().look(at, task, &[line(0, 6_250_000, 40, 9_000), slow])[1], Verdict::Hold(Held::Late));
    assert_eq!(steer.look(at, Task { left: 1, ..task }, &[idle, slow])[1], Verdict::Hold(Held::Late));
}

#[test]
fn a_silent_line_is_held_and_another_takes_its_place() {
    let dead = SubflowSeen { timeouts: 1, ..line(0, 6_250_000, 40, 50_000) };
    let (_, verdicts) = settled(&[dead, line(1, 250_000, 200, 0)], task(1_000_000));
    assert_eq!(verdicts, [Verdict::Hold(Held::Silent), Verdict::Free]);
    let (_, alone) = settled(&[dead], task(1_000_000));
    assert_eq!(alone, [Verdict::Free]);
    assert_eq!(Steer::default().look(Nanos(0), task(1), &[]), []);
}

/// The same for ten seconds, of which the first may lose a packet every half a second, and the second has lost some.
fn coupled(best: SubflowSeen, other: SubflowSeen, loses: bool, left: u64) -> Verdict {
    let (mut steer, mut verdict) = (Steer::default(), Verdict::Free);
    for n in 0..1000u64 {
        let acked = |one: &SubflowSeen| one.window * n * 10 * MS / one.srtt.0;
        let again = best.again + if loses { n / 50 } else { 0 };
        let seen = [SubflowSeen { acked: acked(&best), again, ..best }, SubflowSeen { acked: acked(&other), ..other }];
        verdict = steer.look(Nanos(n * 10 * MS), Task { coupled: true, ..task(left) }, &seen)[1];
    }
    verdict
}

#[test]
fn a_coupled_controller_over_random_loss_keeps_to_the_best() {
    let [best, other] = [line(0, 1_000_000, 50, 0), line(1, 800_000, 50, 0)].map(|one| SubflowSeen { again: 3, ..one });
    // too little is left to grow in
    assert_eq!(coupled(best, other, true, 2_000_000), Verdict::Close(Held::Coupled));
    assert_eq!(coupled(best, other, false, 2_000_000), Verdict::Free);
    // what the other carries is not known yet
    assert_eq!(coupled(best, SubflowSeen { again: 0, ..other }, true, 50_000_000), Verdict::Free);
    // its window over its squared round trip is the larger one, and sets the increase of both
    assert_eq!(coupled(best, SubflowSeen { again: 3, ..line(1, 800_000, 35, 0) }, true, 50_000_000), Verdict::Free);
    // packets wait: its losses are those of a queue
    let queued = SubflowSeen { min_rtt: Nanos(30 * MS), ..best };
    assert_eq!(coupled(queued, other, true, 50_000_000), Verdict::Free);
    assert!(is_coupled("pc_lia") && is_coupled("olia") && is_coupled("pc_adaptive_2") && !is_coupled("pc_bbr3"));
}

/// A queue of a few packets: the start overshot it, and the window grows by a packet in a round trip.
#[test]
fn a_coupled_controller_lets_the_best_grow_where_that_is_worth_more_than_the_other() {
    let best = SubflowSeen { again: 30, ..line(0, 10_000_000, 10, 0) };
    let other = |rate| SubflowSeen { again: 3, ..line(1, rate, 40, 0) };
    // it grows by 14.5 MB/s in a second, of which the other takes 1 - (10 / 11)^2: in the mean of the 20 s of 200 MB 25 MB/s
    assert_eq!(coupled(best, other(1_000_000), false, 200_000_000), Verdict::Close(Held::Coupled));
    assert_ne!(coupled(best, other(1_000_000), false, 5_000_000), Verdict::Close(Held::Coupled));
}

/// Until a second ago packets waited while it delivered this: it grows no farther.
#[test]
fn a_line_that_was_full_has_little_to_grow() {
    let mut lines = [
        SubflowSeen { again: 30, ..line(0, 10_000_000, 10, 0) },
        SubflowSeen { again: 3, ..line(1, 1_000_000, 40, 0) },
    ];
    let (mut steer, mut verdict) = (Steer::default(), Verdict::Free);
    for n in 0..1000u64 {
        lines[0].min_rtt = Nanos(if n < 900 { 7 } else { 10 } * MS);
        let seen = lines.map(|one| SubflowSeen { acked: one.window * n * 10 * MS / one.srtt.0, ..one });
        verdict = steer.look(Nanos(n * 10 * MS), Task { coupled: true, ..task(200_000_000) }, &seen)[1];
    }
    assert_ne!(verdict, Verdict::Close(Held::Coupled));
}

/// A young line whose pace is that of its start: what it was given would wait for it long after the others are done.
#[test]
fn a_line_whose_pace_is_far_above_what_it_delivers_gets_a_piece_at_a_time() {
    let busy = line(0, 750_000, 20, 100_000);
    let young = SubflowSeen { pace: 3_000_000, ..line(1, 60_000, 20, 0) };
    let (steer, verdicts) = settled(&[busy, young], task(5_000_000));
    assert_eq!((verdicts[1], steer.trial()), (Verdict::Free, Some(PIECE)));
    // which is still there
    let given = SubflowSeen { unsent: PIECE, ..young };
    assert_eq!(settled(&[busy, given], task(5_000_000)).1[1], Verdict::Hold(Held::Piece));
    // the others would run dry
    let dry = SubflowSeen { unsent: 1000, ..busy };
    assert_eq!(settled(&[dry, young], task(5_000_000)).1[1], Verdict::Hold(Held::Piece));
    // a pace that doubles a round trip is an honest one
    let honest = SubflowSeen { pace: 400_000, ..line(1, 100_000, 20, 0) };
    let (steer, verdicts) = settled(&[busy, honest], task(5_000_000));
    assert_eq!((verdicts[1], steer.trial()), (Verdict::Free, None));
}

/// Two lines that are 25 times apart: the slow one has lost packets, so that its rate is known.
#[test]
fn a_line_that_is_known_to_be_far_slower_needs_wider_margins() {
    let slow = SubflowSeen { again: 1, ..line(1, 250_000, 200, 0) };
    let lines = [line(0, 6_250_000, 40, 200_000), slow];
    // 0.66 s for a piece, twice that since it is held: 8.2 MB of the other
    assert_eq!(settled(&lines, task(8_500_000)).1, [Verdict::Free, Verdict::Free]);
    assert_eq!(settled(&lines, task(7_500_000)).1, [Verdict::Free, Verdict::Hold(Held::Late)]);
    // a piece and a round trip are 2.9 MB of the other
    let room = |bytes| Task { room: bytes, ..task(100_000_000) };
    assert_eq!(settled(&lines, room(6_000_000)).1[1], Verdict::Free);
    assert_eq!(settled(&lines, room(5_500_000)).1[1], Verdict::Hold(Held::Room));
    // under a coupled controller also of one that is not: what it loses it wins back slowly
    let like = [line(0, 6_250_000, 40, 0), line(1, 1_250_000, 200, 0)];
    let coupled = |bytes| Task { coupled: true, ..room(bytes) };
    assert_eq!(settled(&like, room(1_800_000)).1[1], Verdict::Free);
    assert_eq!(settled(&like, coupled(1_800_000)).1[1], Verdict::Hold(Held::Room));
    assert_eq!(settled(&like, coupled(3_600_000)).1[1], Verdict::Free);
}

/// Five packets were lost and are repaired: 57 kB are acknowledged at once, of which 50 had arrived long before.
#[test]
fn a_hole_that_is_filled_is_no_speed() {
    let lossy = SubflowSeen { again: 5, ..line(1, 50_000, 100, 0) };
    let (mut steer, _) = settled(&[line(0, 2_500_000, 40, 0), lossy], task(50_000_000));
    let acked = lossy.window * 9_990 * MS / lossy.srtt.0;
    let busy = SubflowSeen { acked: 25_000_000, ..line(0, 2_500_000, 40, 0) };
    let repaired = SubflowSeen { acked: acked + 57_000, ..lossy };
    // at 570 kB/s a piece would take 0.3 s of the second that the other needs
    assert_eq!(steer.look(Nanos(10_100 * MS), task(2_500_000), &[busy, repaired])[1], Verdict::Hold(Held::Late));
}

/// A tail is lost on the best line: a timeout, and a line that is 100 times slower is the only one that answers.
#[test]
fn a_line_that_was_fast_is_not_closed_for_a_timeout() {
    let (mut steer, _) = settled(&[line(0, 2_500_000, 100, 0), line(1, 25_000, 40, 0)], task(0));
    let acked = |one: &SubflowSeen| one.window * 9_990 * MS / one.srtt.0;
    let (fast, slow) = (line(0, 2_500_000, 100, 0), line(1, 25_000, 40, 0));
    let lost = SubflowSeen { acked: acked(&fast), timeouts: 1, out: 250_000, ..fast };
    let idle = SubflowSeen { acked: acked(&slow), out: 0, ..slow };
    let task = Task { open: 400_000, ..task(0) };
    // all again takes the slow one 16 s; the other, which is at half of its speed, 0.6 s
    for n in 0..50 {
        let verdicts = steer.look(Nanos((10_000 + 10 * n) * MS), task, &[lost, idle]);
        assert!(!matches!(verdicts[0], Verdict::Close(_)), "{n}: {verdicts:?}");
    }
    // it has gone: the sixth timeout comes after more than that
    let gone = SubflowSeen { timeouts: 8, ..lost };
    assert_eq!(steer.look(Nanos(60_000 * MS), task, &[gone, idle])[0], Verdict::Close(Held::Late));
}

/// The last packet of a trial is lost, and nothing follows it that would tell: only a timer would send it again.
#[test]
fn a_piece_that_is_not_answered_is_sent_over_the_others_before_its_timer_ends() {
    let fast = line(0, 6_250_000, 20, 0);
    let tried = SubflowSeen { out: 5_700, ..line(1, 160_000, 40, 0) };
    let (mut steer, _) = settled(&[fast, line(1, 160_000, 40, 0)], task(10_000_000));
    let at = |n: u64| Nanos((10_000 + 10 * n) * MS);
    let acked = |one: &SubflowSeen| one.window * 9_990 * MS / one.srtt.0;
    let idle = SubflowSeen { acked: acked(&fast), out: 0, ..fast };
    let tried = SubflowSeen { acked: acked(&tried), ..tried };
    let task = Task { open: 3_000_000, ..task(0) };
    let closed = (0..20).find(|&n| steer.look(at(n), task, &[idle, tried])[1] == Verdict::Close(Held::Late));
    // one and a half round trips, and two looks
    assert!(closed.is_some_and(|n| (5..=12).contains(&n)), "{closed:?}");
}

/// Its window has collapsed since it was given what the buffers now wait for.
#[test]
fn a_line_that_all_others_stand_still_for_is_closed() {
    let fast = line(0, 6_250_000, 40, 0);
    let slow = line(1, 100_000, 100, 500_000);
    let (mut steer, _) = settled(&[fast, slow], task(50_000_000));
    let idle = SubflowSeen { out: 0, ..fast };
    let task = |open| Task { open, ..task(10_000_000) };
    let at = Nanos(10_000 * MS);
    assert_eq!(steer.clone().look(at, task(4_000_000), &[idle, slow])[1], Verdict::Hold(Held::Late));
    assert_eq!(steer.clone().look(at, task(8_000_000), &[fast, slow])[1], Verdict::Hold(Held::Late));
    assert_eq!(steer.look(at, task(8_000_000), &[idle, slow])[1], Verdict::Close(Held::Room));
}

/// A close is for good: what the line would have carried of the rest is lost with it.
#[test]
fn a_line_that_is_missed_for_longer_than_it_is_waited_for_stays() {
    let (fast, other) = (line(0, 6_250_000, 40, 0), line(1, 3_000_000, 100, 0));
    let (steer, _) = settled(&[fast, other], task(500_000_000));
    let idle = SubflowSeen { out: 0, ..fast };
    // its window has collapsed: 2.9 s until it has delivered what it holds, 1.4 s until the other has sent all again
    let small = SubflowSeen { window: 20_000, out: 0, unsent: 4_000_000, acked: 29_970_000, ..other };
    let verdict = |left, timeouts| {
        let task = Task { open: 8_000_000, ..task(left) };
        steer.clone().look(Nanos(10_000 * MS), task, &[idle, SubflowSeen { timeouts, ..small }])[1]
    };
    assert_eq!(verdict(10_000_000, 0), Verdict::Close(Held::Room));
    assert!(matches!(verdict(500_000_000, 0), Verdict::Hold(_)));
    assert_eq!(verdict(500_000_000, 2), Verdict::Close(Held::Silent), "it may be dead, for now");
}

/// All is given out, and the fast line repairs a hole: nothing more of it is acknowledged meanwhile.
#[test]
fn at_the_end_the_best_line_is_still_the_fastest_not_the_shortest() {
    let (fast, slow) = (line(0, 20_000_000, 60, 0), line(1, 2_000_000, 25, 0));
    let (mut steer, _) = settled(&[fast, slow], task(100_000_000));
    let acked = |one: &SubflowSeen| one.window * 9_990 * MS / one.srtt.0;
    let hole = SubflowSeen { acked: acked(&fast), again: 50, out: 5_000_000, ..fast };
    let idle = SubflowSeen { acked: acked(&slow), out: 0, ..slow };
    for n in 0..30 {
        let verdicts = steer.look(Nanos((10_000 + 10 * n) * MS), Task { open: 5_100_000, ..task(0) }, &[hole, idle]);
        assert_eq!(verdicts[0], Verdict::Free, "{n}");
    }
}

/// The kernel gives what waits to the one that is tried: 14 kB were meant, and 64 more came.
#[test]
fn what_waits_goes_to_the_others_before_a_line_is_tried() {
    let busy = line(0, 2_000_000, 30, 100_000);
    let fresh = SubflowSeen { window: 14_480, out: 0, ..line(1, 482_000, 30, 0) };
    let look = |waits| {
        let mut steer = Steer::default();
        steer.look(Nanos(0), task(2_000_000), &[busy]);
        steer.look(Nanos(100 * MS), task(1_800_000), &[busy]);
        let verdict = steer.look(Nanos(100 * MS), Task { waits, ..task(1_000_000) }, &[busy, fresh])[1];
        (verdict, steer.trial(), steer.ahead())
    };
    assert_eq!(look(14_480), (Verdict::Free, Some(14_480), 100_000 + 14_480));
    // nothing is written meanwhile
    assert_eq!(look(65_536), (Verdict::Hold(Held::Late), Some(0), 100_000));
}

/// A line of which nothing is known may be slower than any other by more than was thought of.
#[test]
fn a_line_that_is_hasty_and_unknown_gets_what_its_window_takes_and_no_piece() {
    let busy = line(0, 30_000_000, 10, 1_000_000);
    let fresh = SubflowSeen { window: 14_480, out: 0, pace: 6_000_000, ..line(1, 3_000_000, 4, 0) };
    let mut steer = Steer::default();
    for n in 0..100 {
        steer.look(Nanos(n * 10 * MS), task(50_000_000), &[SubflowSeen { acked: n * 300_000, ..busy }]);
    }
    let busy = SubflowSeen { acked: 30_000_000, ..busy };
    assert_eq!(steer.look(Nanos(1000 * MS), task(50_000_000), &[busy, fresh])[1], Verdict::Free);
    assert_eq!(steer.trial(), Some(14_480));
    let tried = SubflowSeen { out: 14_480, ..fresh };
    assert_eq!(steer.look(Nanos(1010 * MS), task(49_000_000), &[busy, tried])[1], Verdict::Hold(Held::Piece));
}

/// Its recovery ends: the next ACK makes its window, and its pace, many times what they are.
#[test]
fn a_far_slower_line_gets_a_piece_at_a_time_whatever_its_pace() {
    let busy = line(0, 60_000_000, 13, 2_000_000);
    let (steer, verdicts) = settled(&[busy, line(1, 2_300_000, 20, 0)], task(500_000_000));
    assert_eq!((verdicts[1], steer.trial()), (Verdict::Free, Some(PIECE)));
    // of a faster one a piece is what it delivers between two looks, and a look more
    let busy = line(0, 240_000_000, 3, 6_000_000);
    let (steer, verdicts) = settled(&[busy, line(1, 23_000_000, 2, 0)], task(500_000_000));
    assert_eq!((verdicts[1], steer.trial()), (Verdict::Free, Some(460_000)));
}

/// A close sends all again that is open, not only what the closed one held, and behind what is out.
#[test]
fn a_line_is_waited_for_while_all_again_would_take_longer() {
    let fast = line(0, 30_000_000, 20, 0);
    let slow = line(1, 375_000, 100, 0);
    let (mut steer, _) = settled(&[fast, slow], task(50_000_000));
    let at = Nanos(10_000 * MS);
    let idle = |out| SubflowSeen { out, window: 12_000_000, ..fast };
    let open = |left| Task { open: 7_300_000, ..task(left) };
    // 56 kB take it 0.2 s, all again the other 0.24
    let few = SubflowSeen { out: 56_000, ..slow };
    assert!(matches!(steer.clone().look(at, open(10_000_000), &[idle(0), few])[1], Verdict::Hold(_)));
    // at the end that piece is all that is missing
    assert_eq!(steer.clone().look(at, open(0), &[idle(0), few])[1], Verdict::Close(Held::Late));
    // 240 kB take it 0.7 s: more than all again, and less than that behind what is out
    let much = SubflowSeen { out: 240_000, ..slow };
    assert_eq!(steer.clone().look(at, open(10_000_000), &[idle(0), much])[1], Verdict::Close(Held::Room));
    assert!(matches!(steer.look(at, open(10_000_000), &[idle(5_900_000), much])[1], Verdict::Hold(_)));
}

/// The last packet of all is on the best line, and lost: only its timer would tell.
#[test]
fn the_best_line_is_left_if_it_does_not_answer_and_another_would_be_done_sooner() {
    let (best, other) = (line(0, 6_250_000, 4, 0), line(1, 6_000_000, 15, 0));
    let (mut steer, _) = settled(&[best, other], task(10_000_000));
    let acked = |one: &SubflowSeen| one.window * 9_990 * MS / one.srtt.0;
    let lost = SubflowSeen { acked: acked(&best), out: 1_400, ..best };
    let idle = SubflowSeen { acked: acked(&other), out: 0, ..other };
    let at = |n: u64| Nanos((10_000 + 10 * n) * MS);
    let task = Task { open: 300_000, ..task(0) };
    let closed = (0..20).find(|&n| steer.look(at(n), task, &[lost, idle])[0] == Verdict::Close(Held::Late));
    assert!(closed.is_some_and(|n| (2..=6).contains(&n)), "{closed:?}");
    // a packet is what any line is good for
    let fresh = SubflowSeen { window: 14_480, out: 0, ..line(2, 1_000_000, 5, 0) };
    let (mut steer, _) = settled(&[best], Task { left: 10_000_000, ..task });
    let closed = (0..20).find(|&n| steer.look(at(n), task, &[lost, fresh])[0] == Verdict::Close(Held::Late));
    assert!(closed.is_some_and(|n| (2..=6).contains(&n)), "{closed:?}");
}

/// Each piece comes back before the next look: what it delivers is what it was given, and more can be asked of it.
#[test]
fn a_line_whose_pieces_come_back_at_once_is_soon_free() {
    let busy = line(0, 40_000_000, 8, 2_000_000);
    let (mut steer, verdicts) = settled(&[busy, line(1, 1_000_000, 4, 0)], task(500_000_000));
    assert_eq!((verdicts[1], steer.trial()), (Verdict::Free, Some(PIECE)));
    let (mut acked, mut verdict) = (9_990_000, Verdict::Hold(Held::Piece));
    for n in 0..4 {
        acked += steer.trial().unwrap_or(200_000);
        let busy = SubflowSeen { acked: 399_600_000 + n * 400_000, ..busy };
        let idle = SubflowSeen { acked, window: 128_000, out: 0, pace: 57_000_000, ..line(1, 24_000_000, 4, 0) };
        verdict = steer.look(Nanos((10_000 + n * 10) * MS), task(400_000_000), &[busy, idle])[1];
    }
    assert_eq!((verdict, steer.trial()), (Verdict::Free, None));
}

#[test]
fn a_line_that_is_unknown_is_tried_before_another_gets_its_next_piece() {
    let busy = line(0, 40_000_000, 8, 2_000_000);
    let known = line(1, 1_000_000, 4, 0);
    let (mut steer, _) = settled(&[busy, known], task(500_000_000));
    let at = |one: &SubflowSeen| SubflowSeen { acked: one.window * 10_000 * MS / one.srtt.0, ..*one };
    let fresh = SubflowSeen { window: 14_480, out: 0, pace: 1_500_000, ..line(2, 750_000, 19, 0) };
    let verdicts = steer.look(Nanos(10_000 * MS), task(400_000_000), &[at(&busy), at(&known), fresh]);
    assert_eq!(verdicts, [Verdict::Free, Verdict::Hold(Held::Piece), Verdict::Free]);
    assert_eq!(steer.trial(), Some(14_480));
}
