//! The receiving half of one direction: it keeps the stamps of a train's packets and reports them when all have come, when
//! packets of later trains have passed those that are missing, after a wait, or when it is asked.
//!
//! What this host had no room for, as its socket tells, is no loss: where packets are missing before one that came, as many of
//! them are told as missed.
//!
//! A packet is taken once; the reports of the last trains are kept to be told again. Memory is bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pathcast_base::Nanos;

use super::report::{self, Arrival, TrainArrivals};
use super::room::{Holding, Share};
use super::wire::{BESIDE, BODY, ProbeHead};
use crate::machine::Batch;

/// So many packets of later trains say that what is missing will not come (RFC 5681's duplicate ACKs).
const PASSED: u32 = 3;
/// While packets come something is said at least so often.
const WORD: Nanos = Nanos::millis(500);
/// From packet to packet, before there were two.
const PACE: Nanos = Nanos::secs(1);
/// What is missing is waited for at least so long.
const PATIENCE: Nanos = Nanos::millis(20);
/// Trains open at once, trains kept, and packets kept of either; fewer where the session's share of the memory ends.
const OPEN: usize = 64;
const KEPT: usize = 512;
const PACKETS: usize = 150_000;
/// A train is told so often: a source asks for it five times.
const TELLINGS: u32 = 8;

struct Incoming {
    came: TrainArrivals,
    /// Index and stamp of the first packet, and the last stamp.
    first: (u16, Nanos),
    last: Nanos,
    passed: u32,
    due: Nanos,
}

/// Which flow a train is of: the path's, or the one beside it.
fn flow(train: u32) -> usize {
    usize::from(train & BESIDE != 0)
}

/// What a packet takes of a train that is open or not, and a train besides [byte]: lists grow by doubling.
const PACKET_BYTES: usize = 32;
const TRAIN_BYTES: usize = 160;
/// A train of no more packets is always kept while it comes in.
const LEAST: usize = 256;

/// See the [module](self).
pub(super) struct Sink {
    holding: Holding,
    open: BTreeMap<u32, Incoming>,
    /// With how often they were told.
    closed: BTreeMap<u32, (TrainArrivals, u32)>,
    /// Packets of both that came.
    packets: usize,
    /// Nothing is known any more of trains below: of the path's flow, of the one beside it.
    forgotten: [u32; 2],
    /// From packet to packet, lately.
    pace: Option<Nanos>,
    last_word: Option<Nanos>,
    /// This host had no room for so many packets before the next one of either flow, and which flows' came since.
    missed: u32,
    since: [bool; 2],
    /// The last packet of each flow: train, place and packets of its train.
    last: [Option<(u32, u16, u16)>; 2],
    /// Trains of which nothing came, perhaps for lack of room.
    blank: BTreeSet<u32>,
    out: VecDeque<Vec<u8>>,
}

impl Sink {
    /// What it keeps is a part of `share`.
    pub fn new(share: &Share) -> Sink {
        Sink {
            holding: share.holding(),
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            packets: 0,
            forgotten: [0; 2],
            pace: None,
            last_word: None,
            missed: 0,
            since: [false; 2],
            last: [None; 2],
            blank: BTreeSet::new(),
            out: VecDeque::new(),
        }
    }

    /// This host had no room for so many packets.
    pub fn missed(&mut self, packets: u32) {
        // what was left for a flow that says nothing is none of the next one's
        let before = if self.since == [false; 2] { self.missed } else { 0 };
        (self.missed, self.since) = (before.saturating_add(packets), [false; 2]);
    }

    /// What is missing between the packet before and this one, from here back, as far as this host had no room.
    fn excuse(&mut self, train: u32, index: u16, count: u16) {
        let (this, mut left) = (flow(train), self.missed);
        let last = self.last[this].replace((train, index, count));
        if left == 0 || std::mem::replace(&mut self.since[this], true) {
            return;
        }
        let begin = last.filter(|last| last.0 == train).map_or(0, |last| last.1.saturating_add(1));
        left -= self.miss(train, count, begin..index, left);
        // of these nobody knows how many packets they had
        let next = last.map_or(train & BESIDE, |last| last.0.saturating_add(1));
        let between = (next..train).rev().take(KEPT.min(left as usize));
        self.blank.extend(between);
        while self.blank.len() > KEPT {
            self.blank.pop_first();
        }
        if let Some((before, place, whole)) = last.filter(|last| last.0 < train) {
            left -= self.miss(before, whole, place.saturating_add(1)..whole, left);
        }
        // the others were the other flow's, which the next packet of that shows
        self.missed = if self.since == [true; 2] { 0 } else { left };
    }

    /// The last ones of these places, at most so many, are missed; how many that were.
    fn miss(&mut self, train: u32, count: u16, places: std::ops::Range<u16>, most: u32) -> u32 {
        let came = match (self.open.get_mut(&train), self.closed.get_mut(&train)) {
            (Some(incoming), _) => &mut incoming.came,
            (None, Some((came, _))) => came,
            (None, None) => return 0,
        };
        if came.count != count {
            return 0;
        }
        let missed = places.rev().take(most as usize).filter(|&place| came.miss(place)).count();
        self.packets += missed;
        missed as u32
    }

    /// A probe has come; false if it had come before, or too late.
    pub fn probe(&mut self, now: Nanos, head: ProbeHead, at: Nanos, batch: Batch) -> bool {
        let ProbeHead { train, index, count, rest } = head;
        if self.is_forgotten(train) {
            return false;
        }
        if let Some((came, _)) = self.closed.get_mut(&train) {
            // given up too early, as of a sender that was held up: it is told when the source asks again
            if came.count == 0 && !came.missed {
                *came = TrainArrivals::of(count);
            }
            let known = came.packets();
            let news = came.count == count && came.add(index, Arrival { at, batch });
            self.packets += came.packets() - known;
            self.bound(now);
            return news;
        }
        let incoming = self.open.entry(train).or_insert_with(|| Incoming {
            came: TrainArrivals::of(count),
            first: (index, at),
            last: at,
            passed: 0,
            due: Nanos::MAX,
        });
        let known = incoming.came.packets();
        if incoming.came.count != count || !incoming.came.add(index, Arrival { at, batch }) {
            return false;
        }
        self.packets += incoming.came.packets() - known;
        self.excuse(train, index, count);
        let Some(incoming) = self.open.get_mut(&train) else { return true };
        incoming.last = incoming.last.max(at);
        let (from, since) = incoming.first;
        let apart = u64::from(index.saturating_sub(from));
        let pace = match at.saturating_sub(since).0.checked_div(apart) {
            Some(mean) => Nanos(mean),
            None => self.pace.unwrap_or(PACE),
        };
        let stretch = Nanos(pace.0 * 5 / 4 * u64::from(count - 1 - index));
        incoming.due = now + stretch.max(Nanos::micros(rest.into())) + (pace * 2).max(PATIENCE);
        let whole = incoming.came.packets() == usize::from(count);
        let earlier: Vec<u32> = self
            .open
            .range_mut(train & BESIDE..train)
            .filter_map(|(&train, incoming)| {
                incoming.passed += 1;
                (incoming.passed >= PASSED).then_some(train)
            })
            .collect();
        earlier.into_iter().for_each(|train| self.close(now, train));
        if whole {
            self.close(now, train);
        }
        self.bound(now);
        if self.last_word.is_none_or(|last| now >= last + WORD) {
            self.say(now, Vec::new());
        }
        true
    }

    /// The source wants to know of trains. Each is told once, and short pieces together.
    pub fn ask(&mut self, now: Nanos, trains: &[u32]) {
        let told = self.out.len();
        for &train in trains.iter().collect::<BTreeSet<_>>() {
            if self.open.contains_key(&train) {
                self.close(now, train);
            } else if !self.is_forgotten(train) {
                // it came before the question, or what comes behind it is told when it is asked for again
                let blank = self.blank.remove(&train);
                let (came, told) = self.closed.entry(train).or_default();
                came.missed |= blank && came.count == 0;
                if *told < TELLINGS {
                    *told += 1;
                    report::encode(train, came).into_iter().for_each(|body| self.say(now, body));
                }
            }
        }
        let mut joined: Vec<Vec<u8>> = Vec::new();
        for body in self.out.drain(told..) {
            match joined.last_mut().filter(|last| last.len() + body.len() <= BODY) {
                Some(last) => last.extend(body),
                None => joined.push(body),
            }
        }
        self.out.extend(joined);
        self.bound(now);
    }

    fn say(&mut self, now: Nanos, body: Vec<u8>) {
        self.last_word = Some(now);
        self.out.push_back(body);
    }

    fn close(&mut self, now: Nanos, train: u32) {
        let Some(mut incoming) = self.open.remove(&train) else { return };
        incoming.came.close();
        let gaps = incoming.came.packets().saturating_sub(1) as u64;
        if let Some(mean) = incoming.last.saturating_sub(incoming.first.1).0.checked_div(gaps) {
            self.pace = Some(Nanos(mean.max(self.pace.unwrap_or_default().0 / 2)));
        }
        report::encode(train, &incoming.came).into_iter().for_each(|body| self.say(now, body));
        self.closed.insert(train, (incoming.came, 1));
    }

    /// Forgets the oldest where there is too much.
    fn bound(&mut self, now: Nanos) {
        while self.open.len() > OPEN || (self.packets > 2 * PACKETS && !self.open.is_empty()) {
            let oldest = self.open.keys().next().copied().unwrap_or_default();
            self.close(now, oldest);
            self.forget();
        }
        while self.closed.len() > KEPT || (self.packets > PACKETS && !self.closed.is_empty()) {
            self.forget();
        }
        while !self.hold() && !self.closed.is_empty() {
            self.forget();
        }
        // of those that are open, all but the one that is coming in
        while self.open.len() > 1 && !self.hold() {
            let oldest = self.open.keys().next().copied().unwrap_or_default();
            self.close(now, oldest);
            self.forget();
        }
        if self.hold() {
            return;
        }
        if let Some((&train, _)) = self.open.first_key_value().filter(|(_, only)| only.came.packets() >= LEAST) {
            self.close(now, train);
            self.forget();
            self.hold();
        }
    }

    /// Tells what it takes; whether that is within the share.
    fn hold(&mut self) -> bool {
        let trains = self.open.len() + self.closed.len();
        self.holding.set(self.packets * PACKET_BYTES + trains * TRAIN_BYTES);
        self.holding.fits(0)
    }

    fn forget(&mut self) {
        if let Some((train, (came, _))) = self.closed.pop_first() {
            self.packets -= came.packets();
            let forgotten = &mut self.forgotten[flow(train)];
            *forgotten = (*forgotten).max(train.saturating_add(1));
        }
    }

    fn is_forgotten(&self, train: u32) -> bool {
        train < self.forgotten[flow(train)]
    }

    /// All that came before `until` is told: what is missing of the trains that were due then does not come.
    pub fn timer(&mut self, now: Nanos, until: Nanos) {
        let due: Vec<u32> = self.open.iter().filter(|(_, i)| i.due <= until).map(|(&train, _)| train).collect();
        due.into_iter().for_each(|train| self.close(now, train));
    }

    /// The body of a report that is to be sent.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Trains that are told, for those who wait.
    pub fn trains(&self) -> u64 {
        u64::from(self.forgotten[0]) + self.closed.len() as u64
    }

    /// When [`Sink::timer`] is due.
    pub fn wake(&self) -> Nanos {
        self.open.values().map(|incoming| incoming.due).min().unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Fate;
    use crate::room::Room;

    fn sink() -> Sink {
        Sink::new(&Room::boundless().share())
    }

    fn head(train: u32, index: u16, count: u16) -> ProbeHead {
        ProbeHead { train, index, count, rest: 0 }
    }

    fn put(sink: &mut Sink, ms: u64, head: ProbeHead) -> bool {
        sink.probe(Nanos::millis(ms), head, Nanos::millis(ms), Batch::SINGLE)
    }

    /// Trains reported until now, and of how many packets each says that they came.
    fn said(sink: &mut Sink) -> Vec<(u32, usize)> {
        std::iter::from_fn(|| sink.next())
            .flat_map(|body| report::decode(&body).unwrap())
            .map(|piece| (piece.train, piece.fates.iter().filter(|fate| matches!(fate, Fate::Came(_))).count()))
            .collect()
    }

    #[test]
    fn a_whole_train_is_told_at_once_and_again_when_asked() {
        let mut sink = sink();
        assert!(put(&mut sink, 1, head(0, 1, 2)));
        assert_eq!(sink.next(), Some(vec![]), "a sign of life");
        assert!(put(&mut sink, 2, head(0, 0, 2)) && !put(&mut sink, 3, head(0, 0, 2)));
        assert_eq!(said(&mut sink), [(0, 2)]);
        sink.ask(Nanos::millis(9), &[0, 1]);
        assert_eq!(said(&mut sink), [(0, 2), (1, 0)]);
        assert!(put(&mut sink, 10, head(1, 0, 2)));
        assert_eq!(said(&mut sink), []);
        sink.ask(Nanos::millis(11), &[1]);
        assert_eq!(said(&mut sink), [(1, 1)], "late, and told when asked");
    }

    #[test]
    fn what_is_missing_is_given_up_when_later_packets_come_or_nothing_does() {
        let mut sink = sink();
        put(&mut sink, 0, head(0, 0, 3));
        put(&mut sink, 2, head(0, 2, 3));
        for i in 0..3 {
            assert_eq!(said(&mut sink), []);
            put(&mut sink, 3, head(1, i, 9));
        }
        assert_eq!(said(&mut sink), [(0, 2)]);
        let due = sink.wake();
        assert!(due >= Nanos::millis(23) && due < Nanos::millis(60), "{due:?}");
        sink.timer(due + Nanos::secs(1), due - Nanos(1));
        assert_eq!(said(&mut sink), [], "what came before it may not have been told yet");
        sink.timer(due + Nanos::secs(1), due);
        assert_eq!(said(&mut sink), [(1, 3)]);
        assert_eq!(sink.wake(), Nanos::MAX);
    }

    /// Of each train that is told what became of its packets: came, lost, missed.
    fn fates(sink: &mut Sink) -> Vec<(u32, String)> {
        std::iter::from_fn(|| sink.next())
            .flat_map(|body| report::decode(&body).unwrap())
            .map(|piece| {
                let letter = |fate: &Fate| match fate {
                    Fate::Came(_) => 'c',
                    Fate::Lost => 'l',
                    Fate::Missed => 'm',
                };
                let told: String = piece.fates.iter().map(letter).collect();
                (piece.train, if piece.count == 0 && piece.first == 1 { "all missed".into() } else { told })
            })
            .collect()
    }

    #[test]
    fn what_this_host_had_no_room_for_is_no_loss() {
        let mut sink = sink();
        put(&mut sink, 0, head(0, 0, 9));
        sink.missed(2);
        put(&mut sink, 1, head(0, 4, 9)); // three are missing
        sink.missed(1);
        put(&mut sink, 2, head(0, 5, 9)); // somebody else's
        put(&mut sink, 3, head(0, 7, 9));
        sink.ask(Nanos::millis(4), &[0]);
        assert_eq!(fates(&mut sink), [(0, "clmmcclcl".into())]);
    }

    /// The first packet for which there was room again is of the other flow.
    #[test]
    fn no_room_for_either_flow() {
        let mut sink = sink();
        put(&mut sink, 0, head(0, 0, 9));
        put(&mut sink, 0, head(BESIDE, 0, 9));
        sink.missed(4);
        put(&mut sink, 1, head(BESIDE, 2, 9));
        put(&mut sink, 2, head(0, 4, 9));
        put(&mut sink, 3, head(BESIDE, 4, 9));
        put(&mut sink, 4, head(0, 6, 9));
        sink.ask(Nanos::millis(5), &[0, BESIDE]);
        let told: BTreeMap<u32, String> = fates(&mut sink).into_iter().collect();
        assert_eq!(told, [(0, "cmmmclcll".to_string()), (BESIDE, "cmclcllll".to_string())].into());
        // whole trains of it
        sink.missed(100);
        put(&mut sink, 6, head(BESIDE, 5, 9));
        put(&mut sink, 7, head(3, 0, 9));
        sink.ask(Nanos::millis(8), &[1, 2, BESIDE + 1]);
        let told: BTreeMap<u32, String> = fates(&mut sink).into_iter().collect();
        assert_eq!((told[&1].as_str(), told[&2].as_str()), ("all missed", "all missed"));
        assert_eq!(told[&(BESIDE + 1)], "");
    }

    #[test]
    fn no_room_for_whole_trains_and_the_ends_of_two() {
        let mut sink = sink();
        put(&mut sink, 0, head(3, 0, 3));
        sink.missed(1000);
        put(&mut sink, 1, head(6, 1, 2));
        sink.ask(Nanos::millis(4), &[3, 4, 5, 6, 7]);
        let all = || "all missed".to_string();
        let told: BTreeMap<u32, String> = fates(&mut sink).into_iter().collect();
        let expected = [(3, "cmm".to_string()), (4, all()), (5, all()), (6, "mc".into()), (7, String::new())];
        assert_eq!(told, expected.into());
        assert!(sink.probe(Nanos::millis(9), head(3, 1, 3), Nanos::millis(9), Batch::SINGLE), "it has come after all");
    }

    #[test]
    fn a_flow_beside_passes_nobody() {
        let mut sink = sink();
        put(&mut sink, 0, head(5, 0, 3));
        for train in BESIDE..BESIDE + 9 {
            assert!(put(&mut sink, 1, head(train, 0, 1)));
        }
        assert_eq!(said(&mut sink), (BESIDE..BESIDE + 9).map(|train| (train, 1)).collect::<Vec<_>>());
        assert!(put(&mut sink, 2, head(5, 1, 3)) && put(&mut sink, 2, head(5, 2, 3)));
        assert_eq!(said(&mut sink), [(5, 3)]);
    }

    #[test]
    fn what_was_given_up_and_comes_is_told_when_asked() {
        let mut sink = sink();
        put(&mut sink, 0, head(0, 0, 3));
        let due = sink.wake();
        sink.timer(due, due);
        assert_eq!(said(&mut sink), [(0, 1)]);
        assert!(put(&mut sink, 90, head(0, 1, 3)) && put(&mut sink, 91, head(0, 2, 3)));
        assert!(!put(&mut sink, 92, head(0, 2, 3)), "twice");
        assert_eq!(said(&mut sink), []);
        sink.ask(Nanos::millis(99), &[0]);
        assert_eq!((said(&mut sink), sink.packets), (vec![(0, 3)], 3));
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        let mut sink = sink();
        for train in 0..2000 {
            for index in (0..u16::MAX).step_by(if train % 100 == 0 { 3 } else { 30_000 }) {
                sink.missed(u32::from(index) % 7 * 20);
                put(&mut sink, train.into(), head(train, index, u16::MAX));
            }
            while sink.next().is_some() {}
            assert!(sink.packets <= 3 * PACKETS && sink.open.len() <= OPEN && sink.closed.len() <= KEPT);
        }
        let held: usize = sink.open.values().map(|incoming| incoming.came.packets()).sum::<usize>()
            + sink.closed.values().map(|(came, _)| came.packets()).sum::<usize>();
        assert_eq!(held, sink.packets);
        assert!(sink.packets > PACKETS / 2 && sink.forgotten[0] > 1000);
    }

    #[test]
    fn the_last_train_that_there_can_be() {
        let mut sink = sink();
        put(&mut sink, 0, head(u32::MAX, 0, 1));
        for train in 0..9 {
            for index in 0..u16::MAX - 1 {
                put(&mut sink, 0, head(train, index, u16::MAX));
            }
        }
        assert!(sink.packets <= 3 * PACKETS);
        sink.ask(Nanos::millis(9), &[u32::MAX]);
    }
}
