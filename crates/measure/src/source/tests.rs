//! A source and what it is told: reports in time, late, of what is missing.

use super::*;
use crate::keys::SessionKeys;
use crate::machine::Batch;
use crate::report::Arrival;
use crate::room::Room;

const WAY: Nanos = Nanos::millis(25);

fn unqueued(at: Nanos) -> Left {
    Left { at, handed: at }
}

fn source() -> Source {
    source_in(&Room::boundless().share())
}

fn source_in(share: &Share) -> Source {
    let key = pathcast_session::Key::new("k", vec![1; 32]).unwrap();
    let keys = SessionKeys::new(&key, &[2; 32], &[3; 32]);
    let budget = Budget { bytes: pathcast_base::Bytes(1_000_000_000), time: Nanos::secs(10) };
    let spec = Spec {
        session: 1,
        path: 0,
        part: 1,
        signer: keys.client.clone(),
        method: MethodName::Ride,
        budget,
        sparing: true,
        effort: Effort::Usual,
        seed: 1,
        dscp: 0,
        wait: WAY * 3,
    };
    Source::new(Nanos::ZERO, spec, share)
}

fn train(source: &mut Source, now: Nanos) -> Train {
    let mut granted = Grant::new(pathcast_base::Rate(u64::MAX / 16));
    match source.next(now, &mut granted) {
        Some(SourceAction::Train(train)) => train,
        _ => panic!("no train at {now:?}"),
    }
}

/// Of a train of `count` packets: those below `came` have come, when they left and `WAY` later.
fn piece(train: u32, count: usize, came: usize, left: impl Fn(usize) -> Nanos) -> Piece {
    let fate = |k| match k < came {
        true => Fate::Came(Arrival { at: left(k) + WAY, batch: Batch::SINGLE }),
        false => Fate::Lost,
    };
    Piece { train, count: count as u16, first: 0, fates: (0..count).map(fate).collect() }
}

/// The first train is answered as a whole: the round trip is known then. Returns the second one and when that is sent.
fn known(source: &mut Source) -> (Train, Nanos) {
    let first = train(source, Nanos::ZERO);
    let left = |k: usize| Nanos::micros(10 * k as u64);
    (0..first.count()).for_each(|k| source.left(left(k), first.seq + k as u64, Some(unqueued(left(k)))));
    let at = left(first.count() - 1) + WAY * 2;
    source.report(at, at, &[piece(0, first.count(), first.count(), left)]);
    assert_eq!((source.reported, source.lost), (1, 0));
    (train(source, at), at)
}

/// A host that was held up in the middle of a train: the far end has given up the rest, which left before that was read here.
#[test]
fn what_was_on_its_way_when_the_report_left_is_not_lost() {
    let mut source = source();
    let (second, begins) = known(&mut source);
    let (count, half) = (second.count(), second.count() / 2);
    // the first half at once, the rest 40 ms later
    let left = |k: usize| begins + Nanos::micros(10 * k as u64) + Nanos::millis(if k < half { 0 } else { 40 });
    (0..count).for_each(|k| source.left(left(k), second.seq + k as u64, Some(unqueued(left(k)))));
    // the far end waits for 20 ms
    let told = left(half) + WAY + WAY;
    let busy = told + Nanos::millis(60);
    source.report(busy, told - Nanos::millis(15), &[piece(1, count, half, left)]);
    assert_eq!((source.reported, source.lost), (1, 0), "it is asked for again");
    source.report(busy + WAY * 2, busy + WAY * 2, &[piece(1, count, count, left)]);
    assert_eq!((source.reported, source.lost), (2, 0));
}

/// All of the second train leaves at once; when its last packet's report comes at the soonest.
fn leaves(source: &mut Source, second: &Train, begins: Nanos) -> (impl Fn(usize) -> Nanos + Copy + use<>, Nanos) {
    let left = move |k: usize| begins + Nanos::micros(10 * k as u64);
    (0..second.count()).for_each(|k| source.left(left(k), second.seq + k as u64, Some(unqueued(left(k)))));
    (left, left(second.count() - 1) + WAY * 2)
}

/// Of the second train the last two were reported as lost, at this time; with how many packets it had, and when they left.
fn cut() -> (Source, usize, impl Fn(usize) -> Nanos + Copy, Nanos) {
    let mut source = source();
    let (second, begins) = known(&mut source);
    let count = second.count();
    let (left, soonest) = leaves(&mut source, &second, begins);
    let told = soonest + Nanos::millis(20);
    source.report(told, told, &[piece(1, count, count - 2, left)]);
    assert_eq!((source.reported, source.lost), (1, 0), "nothing shows it");
    (source, count, left, told)
}

fn asks(source: &mut Source, now: Nanos) -> bool {
    source.wake() <= now && {
        let mut granted = Grant::new(pathcast_base::Rate(u64::MAX / 16));
        source.wake = Nanos::MAX; // no other train
        matches!(source.next(now, &mut granted), Some(SourceAction::Ask(_)))
    }
}

#[test]
fn what_is_missing_before_what_came_is_lost() {
    let mut source = source();
    let (second, begins) = known(&mut source);
    let count = second.count();
    let (left, told) = leaves(&mut source, &second, begins);
    let mut piece = piece(1, count, count, left);
    piece.fates[count - 3..count - 1].fill(Fate::Lost);
    source.report(told, told, &[piece]);
    assert_eq!((source.reported, source.lost), (2, 2));
}

/// The end of a train did not come for as long as its receiver waits: the line may have been held up, an emulated one, say.
#[test]
fn an_end_that_is_missing_is_lost_where_a_question_came_behind_it() {
    for late in [false, true] {
        let (mut source, count, left, told) = cut();
        let asked = told + SOON;
        assert!(asks(&mut source, asked));
        // one more of those that the receiver says by itself, which was on its way then
        source.report(asked + Nanos::millis(12), asked + Nanos::millis(12), &[piece(1, count, count - 2, left)]);
        assert_eq!((source.reported, source.lost), (1, 0));
        let came = count - if late { 0 } else { 2 };
        source.report(asked + WAY * 2, asked + WAY * 2, &[piece(1, count, came, left)]);
        assert_eq!((source.reported, source.lost), (2, if late { 0 } else { 2 }));
    }
}

/// A queue that drops the questions, too.
#[test]
fn an_end_that_is_missing_is_lost_where_questions_are_not_answered() {
    let (mut source, _, _, told) = cut();
    let mut asked = Vec::new();
    for ms in 0..1000 {
        let now = told + Nanos::millis(ms);
        if asks(&mut source, now) {
            asked.push(ms);
        }
        if source.reported == 2 {
            assert!(asked.len() == 2 && ms < 500 && source.lost == 2, "{asked:?} {ms}");
            return;
        }
    }
    panic!("asked at {asked:?} and never told");
}

/// A host that was held up in the middle of a train does not ask for what it still has.
#[test]
fn what_has_not_left_is_not_asked_for() {
    let mut source = source();
    let (second, begins) = known(&mut source);
    let (count, late) = (second.count(), Nanos::millis(300));
    let left = |k: usize| begins + Nanos::micros(10 * k as u64) + if k < count / 2 { Nanos::ZERO } else { late };
    (0..count / 2).for_each(|k| source.left(left(k), second.seq + k as u64, Some(unqueued(left(k)))));
    for ms in (0..300).step_by(3) {
        let now = begins + Nanos::millis(ms);
        assert!(!asks(&mut source, now) && source.wake() > now, "{ms}");
    }
    (count / 2..count).for_each(|k| source.left(left(k), second.seq + k as u64, Some(unqueued(left(k)))));
    assert!(!asks(&mut source, left(count) + WAY) && asks(&mut source, left(count) + WAY * 6));
}

/// What it was to send has not left: nothing is planned on top of it.
#[test]
fn a_host_that_is_behind_is_given_no_more_to_send() {
    let mut source = source();
    let (second, begins) = known(&mut source);
    let mut granted = Grant::new(pathcast_base::Rate(u64::MAX / 16));
    let late = begins + second.duration() + BEHIND + Nanos::millis(1);
    assert!(!source.is_behind(begins) && source.is_behind(late));
    source.wake = late;
    assert!(source.next(late, &mut granted).is_none() && source.wake() <= late + LOOK);
    (0..second.count()).for_each(|k| source.left(late, second.seq + k as u64, Some(unqueued(late))));
    assert!(!source.is_behind(late + BEHIND * 2));
}

/// A host that was held up before it sent the first of three, and told of that one alone.
#[test]
fn who_is_not_known_to_have_left_did_not_overtake_the_one_in_front() {
    let packet = |ms, departure| Packet { at: Nanos::millis(ms), departure, waited: 0, told: true, fate: Packed::LOST };
    let mut front = Nanos::ZERO;
    let sent = [(5, Departure::Left), (1, Departure::Planned), (7, Departure::Planned), (6, Departure::Left)].map(
        |(at, how)| {
            front = packet(at, how).sent(front);
            front
        },
    );
    assert_eq!(sent, [5, 5, 7, 6].map(Nanos::millis));
}

/// Another session has taken the room between two trains.
#[test]
fn who_has_no_room_for_more_waits_for_what_is_on_its_way_and_says_why_it_ends() {
    let room = Room::new(400_000, 64);
    let mut source = source_in(&room.share());
    let (second, begins) = known(&mut source);
    let (left, told) = leaves(&mut source, &second, begins);
    let mut granted = Grant::new(pathcast_base::Rate(u64::MAX / 16));
    let (mut other, mut now) = (room.share().holding(), begins);
    other.set(400_000);
    while !source.full && now < told {
        assert!(source.next(now, &mut granted).is_none());
        now = source.wake().max(now);
    }
    assert!(source.next(now, &mut granted).is_none() && source.outcome().is_none());
    assert!(source.full && source.wake() > now, "it does not ask at once again");
    source.report(told, told, &[piece(1, second.count(), second.count(), left)]);
    assert!(source.next(told, &mut granted).is_none());
    let outcome = source.outcome().unwrap();
    assert_eq!((outcome.reported, outcome.known.capacity_bps.why), (2, Some(Reason::BeyondLimit)));
}

/// Of the packets of a train each waited for the one before in the host's own queue, and for somebody else's: that is the path's wait.
#[test]
fn what_waits_in_the_hosts_own_queue_was_sent_when_it_was_handed_over() {
    let mut source = source();
    let first = train(&mut source, Nanos::ZERO);
    let count = first.count();
    let left = |k: usize| Nanos::millis(2 * k as u64);
    (0..count).for_each(|k| {
        source.left(left(k), first.seq + k as u64, Some(Left { at: left(k), handed: Nanos::micros(k as u64) }));
    });
    let flight = &source.flights[&0];
    let sent: Vec<_> = (0..count).map(|k| flight.packets[k].handed(flight.packets[k].at)).collect();
    assert_eq!(sent, (0..count as u64).map(Nanos::micros).collect::<Vec<_>>());
    assert_eq!(flight.ends, left(count - 1), "a report is waited for from when it left");
    assert_eq!(size_of::<Packet>(), 32);
}
