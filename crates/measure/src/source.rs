//! The sending half of one direction: it carries a method, puts signed heads on its trains, joins the stamps of the departures
//! with the reports of the arrivals, and asks again for reports that do not come.
//!
//! It ends when the method does; when feedback is owed and has not come for a second beyond the usual time (the first: five), or on
//! long paths for twice that time; or where the granted bytes, rate or time end.

use std::collections::BTreeMap;

use pathcast_base::{Bytes, Nanos};
use pathcast_estimate::delay::Waits;
use pathcast_estimate::{Budget, Effort, LARGE, Method, Plan, Seen, Step, TrainSeen};

use super::bucket::Grant;
use super::client_path::QUESTIONS;
use super::messages::{ASKED, encode_ask};
use super::method::MeasureMethod;
use super::outcome::{MAX_DELAY_SAMPLES, Outcome, Reason};
use super::report::{Fate, Packed, Piece};
use super::request::MethodName;
use super::room::{Holding, Share};
use super::wire::{BESIDE, PROBE, ProbeHead, Signer};
use crate::machine::Train;

/// Feedback may be so late beyond what is usual.
const DEAF: Nanos = Nanos::secs(1);
/// The first: the path has just answered, and what goes wrong in rows may take a question after the other.
const DEAF_FIRST: Nanos = Nanos::secs(5);
/// A stamp of a departure that has not come so long after the report is not waited for.
const STAMP: Nanos = Nanos::millis(50);
/// A host that was to send something so long ago and has not is given no more to send.
const BEHIND: Nanos = Nanos::millis(60);
/// And is looked at again after this, if nothing happens.
const LOOK: Nanos = Nanos::millis(5);
/// What a later report hints at is asked for after this.
const SOON: Nanos = Nanos::millis(10);
/// A train is asked for so often.
const ASKS: u32 = 5;
/// And so often for a proof that its end is lost.
const PROOFS: u32 = 2;
/// The probes of a part are numbered from the part times this.
const NUMBERS: u32 = 40;

/// What one direction is to be measured with.
#[derive(Clone)]
pub(super) struct Spec {
    pub session: u64,
    pub path: u8,
    pub part: u8,
    pub signer: Signer,
    pub method: MethodName,
    pub budget: Budget,
    /// Whether it takes no more of it than it needs, where the method knows that.
    pub sparing: bool,
    pub effort: Effort,
    pub seed: u64,
    pub dscp: u8,
    /// How long a large packet's answer takes at most, as far as is known.
    pub wait: Nanos,
}

/// What a source wants done.
pub(super) enum SourceAction {
    Train(Train),
    /// The body of an Ask.
    Ask(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// Not told yet.
    Planned,
    Left,
    Never,
}

/// When a packet left, and when it was handed over where it waited in the host's own queue; else the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub at: Nanos,
    pub handed: Nanos,
}

/// Little, since many are on their way on fast paths.
struct Packet {
    /// When it left, or is due.
    at: Nanos,
    fate: Packed,
    departure: Departure,
    /// So long it waited in the host's own queue [ns].
    waited: u32,
    /// What became of it is known.
    told: bool,
}

impl Packet {
    /// When it left; if nobody said so, when it was due, but not before the one in front, which left at `front`.
    fn sent(&self, front: Nanos) -> Nanos {
        if self.departure == Departure::Planned { self.at.max(front) } else { self.at }
    }

    /// When it was handed over, of one that left at `sent`: the host's own queue is one of the path's, others may be in it, and it may
    /// be the narrowest.
    fn handed(&self, sent: Nanos) -> Nanos {
        sent - Nanos(self.waited.into())
    }
}

/// What a packet takes while it is on its way, with its head and its gap at whoever sends it, and what a method keeps of it [byte].
const FLYING: usize = size_of::<Packet>() + size_of::<Nanos>() + PROBE;
const SEEN: usize = size_of::<Seen>() + size_of::<Nanos>();

/// What a method may send where so much can be kept [IP byte]: an eighth of that is for packets on their way, and of eight packets one
/// is small.
fn affordable(room: usize) -> Bytes {
    let packets = (room / 8 * 7 / SEEN / 8 * 7) as u64;
    Bytes(packets.saturating_mul(LARGE.into()))
}

/// A train without its whole report.
struct Flight {
    plan: u64,
    size: u16,
    seq: u64,
    packets: Vec<Packet>,
    /// Packets whose departure, and whose arrival, is not known.
    undecided: usize,
    untold: usize,
    begins: Nanos,
    /// When the last packet leaves.
    ends: Nanos,
    ask_at: Nanos,
    asked: u32,
    /// When it was first asked for after all of it had left.
    fence: Option<Nanos>,
    /// All that is not told was reported as lost, and it was asked for so often since, to prove that.
    claimed: Option<u32>,
    /// When it is taken as it is: the report is whole, stamps of departures are missing.
    settle_at: Nanos,
}

/// See the [module](self).
pub(super) struct Source {
    spec: Spec,
    method: MeasureMethod,
    started: Nanos,
    flights: BTreeMap<u32, Flight>,
    /// The next train's number, and that of the flow beside.
    next_train: [u32; 2],
    next_seq: u64,
    waits: Waits,
    /// Since when feedback is owed.
    owed: Option<Nanos>,
    /// The longest gap of the last train.
    gap: Nanos,
    /// When the method wants to be asked again.
    wake: Nanos,
    end: Option<Option<Reason>>,
    trains: u64,
    reported: u64,
    probes: u64,
    lost: u64,
    reordered: u64,
    bytes: u64,
    /// Whether departures are told.
    tells: bool,
    /// Whether there is no way for a flow beside the path's.
    lone: bool,
    /// What this host said beside its probes, which they take for cross traffic [IP bytes].
    beside: u64,
    /// When the last probe was to leave.
    last: Nanos,
    small: Vec<(u64, i64)>,
    /// What all of it takes: packets on their way, and those that the method has seen.
    holding: Holding,
    flying: usize,
    seen: usize,
    /// There is room for no more.
    full: bool,
}

impl Source {
    /// What it keeps of packets is a part of `share`, for which the method plans; where others have taken that meanwhile, it ends with
    /// what it has.
    pub fn new(now: Nanos, spec: Spec, share: &Share) -> Source {
        let holding = share.holding();
        let budget = Budget { bytes: spec.budget.bytes.min(affordable(holding.left())), ..spec.budget };
        Source {
            method: MeasureMethod::new(spec.method, spec.effort, budget, spec.sparing, spec.seed),
            started: now,
            flights: BTreeMap::new(),
            next_train: [0, BESIDE],
            next_seq: u64::from(spec.part) << NUMBERS,
            waits: Waits::default(),
            owed: None,
            gap: Nanos::ZERO,
            wake: now,
            end: None,
            trains: 0,
            reported: 0,
            probes: 0,
            lost: 0,
            reordered: 0,
            bytes: 0,
            tells: false,
            lone: false,
            beside: 0,
            last: now,
            small: Vec::new(),
            holding,
            flying: 0,
            seen: 0,
            full: false,
            spec,
        }
    }

    pub fn part(&self) -> u8 {
        self.spec.part
    }

    /// How long a report usually takes after a train's end, and some more.
    fn wait(&self) -> Nanos {
        if self.reported == 0 { self.spec.wait } else { self.waits.wait(LARGE) }
    }

    fn gives_up_at(&self) -> Nanos {
        // long enough for a question that is lost, and one that is not
        let wait = self.wait();
        let deaf = if self.reported == 0 { DEAF_FIRST } else { DEAF };
        self.owed.map_or(Nanos::MAX, |since| since + wait + self.gap + deaf.max(wait * 2))
    }

    /// A method that does not keep its time by so much is cut off.
    fn deadline(&self) -> Nanos {
        self.started + Nanos(self.spec.budget.time.0 / 4 * 5) + self.wait()
    }

    /// What is to be done next, within the granted rate; none: nothing until something is told or [`Source::wake`].
    pub fn next(&mut self, now: Nanos, granted: &mut Grant) -> Option<SourceAction> {
        if self.end.is_some() {
            return None;
        }
        let due: Vec<u32> = self.flights.iter().filter(|(_, f)| f.settle_at <= now).map(|(&train, _)| train).collect();
        due.into_iter().for_each(|train| self.settle(now, train));
        if now >= self.gives_up_at() {
            let why = if self.reported == 0 { Reason::NoAnswer } else { Reason::FeedbackLost };
            self.end = Some(Some(why));
            return None;
        }
        if now >= self.deadline() {
            self.end = Some(self.full.then_some(Reason::BeyondLimit));
            return None;
        }
        if let Some(ask) = self.ask(now) {
            return Some(SourceAction::Ask(ask));
        }
        if self.full {
            self.wake = Nanos::MAX;
            // what is on its way counts
            self.end = self.flights.is_empty().then_some(Some(Reason::BeyondLimit));
            return None;
        }
        if now < self.wake {
            return None;
        }
        if self.is_behind(now) {
            self.wake = now + LOOK;
            return None;
        }
        match self.method.next(now) {
            Step::Send(plan) => self.send(now, plan, false, granted),
            // on the path's own way it would show a queue that all flows share
            Step::Beside(_) if self.lone => {
                self.wake = now + Nanos(1000);
                None
            }
            Step::Beside(plan) => self.send(now, plan, true, granted),
            Step::Wait(until) => {
                self.wake = until.max(now + Nanos(1000));
                None
            }
            Step::Done => {
                self.end = Some(None);
                None
            }
        }
    }

    /// Whether this host has not sent what it was to send. What is planned on top of it would leave long after its time, and a
    /// method that goes by the clock would be through with it before.
    fn is_behind(&self, now: Nanos) -> bool {
        let due = |packet: &Packet| (packet.departure == Departure::Planned).then_some(packet.at);
        let waits = self.flights.values().filter(|flight| flight.undecided > 0);
        // of a train the first that has not left is due first
        self.tells && waits.filter_map(|flight| flight.packets.iter().find_map(due)).any(|due| due + BEHIND < now)
    }

    /// When [`Source::next`] is to be asked again at the latest.
    pub fn wake(&self) -> Nanos {
        if self.end.is_some() {
            return Nanos::MAX;
        }
        let flights = self
            .flights
            .values()
            .map(|f| if f.untold > 0 { f.ask_at } else { f.settle_at })
            .min()
            .unwrap_or(Nanos::MAX);
        self.wake.min(self.gives_up_at()).min(self.deadline()).min(flights)
    }

    fn send(&mut self, now: Nanos, mut plan: Plan, beside: bool, granted: &mut Grant) -> Option<SourceAction> {
        plan.gaps.truncate(usize::from(u16::MAX) - 1);
        // a method that plans a little more is let go on, but where bytes are dear
        let more = if self.spec.effort == Effort::Light { 0 } else { self.spec.budget.bytes.0 / 4 };
        let most = self.spec.budget.bytes.0 + more;
        if self.bytes + plan.bytes() > most {
            self.end = Some(None);
            return None;
        }
        if !self.holding.fits(plan.count() * (FLYING + SEEN)) {
            (self.full, self.wake) = (true, now);
            return None;
        }
        let at = plan.at.max(now);
        let left = self.deadline().saturating_sub(at);
        let mut lasts = Nanos::ZERO;
        let within = plan.gaps.iter().take_while(|&&gap| {
            lasts += gap;
            lasts <= left
        });
        plan.gaps.truncate(within.count());
        if !granted.take_over(at, plan.bytes(), plan.duration()) {
            self.end = Some(Some(Reason::RateLimit));
            return None;
        }
        let count = plan.count();
        let mut start = at;
        let mut packets = Vec::with_capacity(count);
        for gap in plan.gaps.iter().copied().map(Some).chain([None]) {
            packets.push(Packet {
                at: start,
                departure: Departure::Planned,
                waited: 0,
                told: false,
                fate: Packed::LOST,
            });
            start += gap.unwrap_or_default();
        }
        let ends = start;
        self.last = self.last.max(ends);
        let (train, seq) = (self.next_train[usize::from(beside)], self.next_seq);
        let Spec { session, path, part, .. } = self.spec;
        let mut train_out = Train::new(path.into(), seq, at, plan.gaps, plan.size).marked(self.spec.dscp);
        train_out.beside = beside;
        let mut left = train_out.gaps.iter().rev().fold(vec![Nanos::ZERO], |mut left, &gap| {
            left.push(left[left.len() - 1] + gap);
            left
        });
        let signer = &self.spec.signer;
        train_out = train_out.with_heads(PROBE, |number, out| {
            let rest = u32::try_from(left.pop().unwrap_or_default().0 / 1000).unwrap_or(u32::MAX);
            let head = ProbeHead { train, index: (number - seq) as u16, count: count as u16, rest };
            signer.probe(path, part, session, head, out);
        });
        self.gap = train_out.gaps.iter().copied().max().unwrap_or_default();
        self.bytes += count as u64 * u64::from(plan.size);
        self.trains += 1;
        self.next_train[usize::from(beside)] += 1;
        self.next_seq += count as u64;
        self.owed.get_or_insert(at);
        let ask_at = ends + self.wait();
        let flight = Flight {
            plan: plan.id,
            size: plan.size,
            seq,
            packets,
            undecided: count,
            untold: count,
            begins: at,
            ends,
            ask_at,
            asked: 0,
            fence: None,
            claimed: None,
            settle_at: Nanos::MAX,
        };
        self.flights.insert(train, flight);
        self.flying += count;
        self.hold();
        Some(SourceAction::Train(train_out))
    }

    fn hold(&mut self) {
        self.holding.set(self.flying * FLYING + self.seen * SEEN);
    }

    fn packet(&mut self, seq: u64) -> Option<(u32, &mut Flight, usize)> {
        let found = self.flights.iter_mut().filter(|(_, f)| f.seq <= seq).max_by_key(|(_, f)| f.seq)?;
        let index = (seq - found.1.seq) as usize;
        (index < found.1.packets.len()).then_some((*found.0, found.1, index))
    }

    /// A probe has left; or never will.
    pub fn left(&mut self, now: Nanos, seq: u64, left: Option<Left>) {
        let at = left.map(|left| left.at);
        self.tells = true;
        let wait = self.wait();
        let Some((train, flight, index)) = self.packet(seq) else { return };
        let packet = &mut flight.packets[index];
        if packet.departure != Departure::Planned {
            return;
        }
        packet.departure = if at.is_some() { Departure::Left } else { Departure::Never };
        packet.at = at.unwrap_or(packet.at);
        let waited = left.map_or(Nanos::ZERO, |left| left.at.saturating_sub(left.handed));
        packet.waited = u32::try_from(waited.0).unwrap_or(u32::MAX);
        flight.undecided -= 1;
        flight.ends = flight.ends.max(at.unwrap_or_default());
        if flight.undecided > 0 {
            return;
        }
        if flight.untold == 0 {
            self.settle(now, train);
        } else if flight.asked == 0 {
            flight.ask_at = flight.ask_at.max(flight.ends + wait);
        }
    }

    /// A report has come, `at` this time; this host may have been too busy to look at it until `now`.
    pub fn report(&mut self, now: Nanos, at: Nanos, pieces: &[Piece]) {
        for piece in pieces {
            self.learn(now, at, piece);
        }
        if pieces.is_empty() {
            // a sign of life in the middle of a train
            let later = now + self.wait();
            self.flights.values_mut().filter(|f| f.asked == 0).for_each(|f| f.ask_at = f.ask_at.max(later));
        }
        let begins = self.flights.values().map(|flight| flight.begins).min();
        self.owed = begins.map(|begins| begins.max(now));
    }

    fn learn(&mut self, now: Nanos, at: Nanos, piece: &Piece) {
        let (wait, round_trip) = (self.wait(), Nanos(self.waits.line(LARGE).unwrap_or(0.0) as u64));
        let Some(flight) = self.flights.get_mut(&piece.train) else { return };
        let packets = if piece.count == 0 {
            // nothing has come
            let fate = if piece.first == 0 { &Fate::Lost } else { &Fate::Missed };
            flight.packets.iter_mut().zip(std::iter::repeat(fate)).collect::<Vec<_>>()
        } else if usize::from(piece.count) == flight.packets.len() {
            flight.packets[piece.first.into()..].iter_mut().zip(&piece.fates).collect()
        } else {
            return;
        };
        // an answer to a question that was sent behind all of it
        let fenced = flight.fence.is_some_and(|asked| asked + Nanos(round_trip.0 / 2) < at);
        let (mut early, mut unproven) = (false, false);
        let followed = packets.iter().rposition(|(_, fate)| matches!(fate, Fate::Came(_))).unwrap_or(0);
        for (k, (packet, fate)) in packets.into_iter().enumerate() {
            if packet.told {
                continue;
            }
            // a report cannot know of what was on its way when it left: this host was held up, and its receiver waited no longer;
            // it knows of what others of the train have passed
            let known = match packet.departure {
                _ if *fate != Fate::Lost => true,
                Departure::Planned => false,
                Departure::Left if k < followed => packet.at + Nanos(round_trip.0 / 2) <= at,
                Departure::Left => packet.at + round_trip <= at,
                Departure::Never => true,
            };
            // the line may be held up, too, and bring it later: only what was sent behind it tells
            let proven = *fate != Fate::Lost || k < followed || packet.departure == Departure::Never || fenced;
            if known && proven {
                packet.told = true;
                packet.fate = (*fate).into();
                flight.untold -= 1;
            }
            early |= !known;
            unproven |= known && !proven;
        }
        if early {
            flight.ask_at = flight.ask_at.max(now + wait);
        } else if unproven {
            flight.claimed.get_or_insert(0);
            flight.ask_at = flight.ask_at.min(now + SOON);
        }
        if flight.untold > 0 {
            return;
        }
        if flight.undecided > 0 {
            flight.settle_at = flight.settle_at.min(now + STAMP);
        } else {
            self.settle(now, piece.train);
        }
        // reports come in the order of the trains of a flow: one that was passed is lost
        let soon = now + SOON;
        self.flights.range_mut(piece.train & BESIDE..piece.train).for_each(|(_, flight)| {
            if flight.asked == 0 {
                flight.ask_at = flight.ask_at.min(soon);
            }
        });
    }

    /// All is known of a train that can be.
    fn settle(&mut self, now: Nanos, train: u32) {
        let Some(flight) = self.flights.remove(&train) else { return };
        self.flying -= flight.packets.len();
        self.seen += flight.packets.len();
        self.hold();
        let mut packets = Vec::with_capacity(flight.packets.len());
        let (mut newest, mut front) = (Nanos::ZERO, Nanos::ZERO);
        for packet in &flight.packets {
            if packet.departure == Departure::Never {
                continue;
            }
            let sent = packet.sent(front);
            front = sent;
            let sent = packet.handed(sent);
            let (received, batch) = match Fate::from(packet.fate) {
                Fate::Came(arrival) => (Some(arrival.at), arrival.batch),
                Fate::Lost | Fate::Missed => (None, crate::machine::Batch::SINGLE),
            };
            let missed = packet.fate.is_missed();
            let seen = Seen { size: flight.size, sent, received, batch, missed };
            self.reordered += u64::from(received.is_some_and(|at| at < newest));
            newest = newest.max(received.unwrap_or_default());
            self.lost += u64::from(seen.lost());
            self.probes += u64::from(!missed);
            let says = flight.size == QUESTIONS.1 && !self.method.fills(sent);
            if says && self.small.len() < MAX_DELAY_SAMPLES {
                self.small.extend(seen.own_delay().map(|delay| (sent.0, delay)));
            }
            packets.push(seen);
        }
        self.reported += 1;
        self.waits.answered(LARGE, now.saturating_sub(flight.ends));
        if !packets.is_empty() {
            self.method.observe(now, &TrainSeen { id: flight.plan, packets });
        }
        self.wake = now;
    }

    fn ask(&mut self, now: Nanos) -> Option<Vec<u8>> {
        self.flights.retain(|_, flight| flight.ask_at > now || flight.asked < ASKS || flight.untold == 0);
        self.flying = self.flights.values().map(|flight| flight.packets.len()).sum();
        self.hold();
        let wait = self.wait();
        // a question that overtakes what has not left yet here gets an answer that says nothing
        for flight in self.flights.values_mut().filter(|f| f.ask_at <= now && f.undecided > 0 && now < f.ends + DEAF) {
            flight.ask_at = now + LOOK;
        }
        // where queues drop questions as well the report stands
        let stands = |f: &Flight| f.ask_at <= now && f.untold > 0 && f.claimed.is_some_and(|asked| asked >= PROOFS);
        let stand: Vec<u32> = self.flights.iter().filter(|(_, f)| stands(f)).map(|(&train, _)| train).collect();
        stand.into_iter().for_each(|train| self.settle(now, train));
        let due = self.flights.iter_mut().filter(|(_, f)| f.ask_at <= now && f.untold > 0).take(ASKED);
        let trains: Vec<u32> = due
            .map(|(&train, flight)| {
                flight.ask_at = now + Nanos(wait.0 << flight.claimed.map_or(flight.asked, |_| 0));
                flight.asked += 1;
                flight.claimed.iter_mut().for_each(|asked| *asked += 1);
                if flight.undecided == 0 && flight.ends <= now {
                    flight.fence.get_or_insert(now);
                }
                train
            })
            .collect();
        (!trains.is_empty()).then(|| encode_ask(&trains))
    }

    /// Whether the flow beside the path's has a way of its own; it has, unless it is said.
    pub fn has_beside(&mut self, has: bool) {
        self.lone = !has;
    }

    /// This host has said so much that goes the same way as the probes [IP bytes].
    pub fn beside(&mut self, bytes: u64) {
        self.beside += bytes;
    }

    /// What of the available bandwidth this host itself took [bit/s].
    fn own(&self) -> f64 {
        self.beside as f64 * 8.0 / self.last.saturating_sub(self.started).as_secs_f64().max(1e-3)
    }

    /// Ends it now, if it has not ended.
    pub fn stop(&mut self, why: Reason) {
        self.end.get_or_insert(Some(why));
    }

    /// What has come of it, once it has ended.
    pub fn outcome(&self) -> Option<Outcome> {
        let why = self.end?;
        let mut known = self.method.knowledge();
        for value in known.values_mut().into_iter().filter(|value| value.why != Some(Reason::NotLookedFor)) {
            *value = value.but(why);
        }
        known.available_bps = known.available_bps.shifted(self.own());
        (known.loss.packets, known.loss.lost) = (self.probes, self.lost);
        Some(Outcome {
            known,
            trains: self.trains,
            reported: self.reported,
            reordered: self.reordered,
            bytes: self.bytes,
            response: self.method.response(),
            small: self.small.clone(),
        })
    }

    /// Trains whose reports have come, for those who wait.
    pub fn reported(&self) -> u64 {
        self.reported
    }
}

#[cfg(test)]
mod tests;
