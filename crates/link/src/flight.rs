//! What is between its admission and the far end of a link: loss, delay, and the packets that others overtake.
//!
//! Packets keep their order until they would arrive; one that others may overtake then waits `distance` longer, in a line
//! of its own. So a change of the link finds what is on the wire in the order of its departures.

use std::collections::VecDeque;

use pathcast_base::{Nanos, Stream};

use crate::jitter::Wander;
use crate::loss::Losses;
use crate::{Counters, Params, Released, Reorder};

/// A packet between its admission and the far end.
#[derive(Clone, Debug)]
pub(crate) struct Inside<T> {
    pub(crate) due: u64,
    pub(crate) bytes: u32,
    pub(crate) lost: bool,
    pub(crate) marked: bool,
    /// When it is due, others begin to overtake it.
    pub(crate) late: bool,
    pub(crate) packet: T,
}

/// Packets that others overtake.
#[derive(Clone, Debug)]
struct Late<T> {
    reorder: Reorder,
    stream: Stream,
    /// In due order.
    held: VecDeque<Inside<T>>,
    last_due: u64,
}

/// All that is on the way.
#[derive(Clone, Debug)]
pub(crate) struct Flight<T> {
    delay: u64,
    wander: Option<Wander>,
    loss: Losses,
    ordered: VecDeque<Inside<T>>,
    late: Option<Box<Late<T>>>,
    /// Due times of the packets in order that came in last and went out last.
    last_due: u64,
    last_out: u64,
}

fn stream(seed: u64, name: &str, purpose: &str) -> Stream {
    Stream::new(seed, &format!("{name}/{purpose}"))
}

impl<T> Flight<T> {
    pub(crate) fn new(params: &Params, seed: u64, name: &str) -> Self {
        let loss = Losses::new(params.loss, stream(seed, name, "loss"));
        let ordered = VecDeque::new();
        let mut flight = Flight { delay: 0, wander: None, loss, ordered, late: None, last_due: 0, last_out: 0 };
        flight.aim(params, seed, name);
        flight
    }

    /// Delay, jitter and reordering of what departs from now on.
    fn aim(&mut self, params: &Params, seed: u64, name: &str) {
        self.delay = params.delay.0;
        match (&mut self.wander, params.jitter) {
            (Some(wander), Some(jitter)) => wander.change(jitter),
            (wander, jitter) => *wander = jitter.map(|jitter| Wander::new(stream(seed, name, "jitter"), jitter)),
        }
        match (&mut self.late, params.reorder) {
            (Some(late), reorder) => late.reorder = reorder.unwrap_or(Reorder { share: 0.0, ..late.reorder }),
            (none, reorder) => {
                *none = reorder.map(|reorder| {
                    let stream = stream(seed, name, "reorder");
                    Box::new(Late { reorder, stream, held: VecDeque::new(), last_due: 0 })
                });
            }
        }
    }

    /// The same, and loss, in place of what was. What has departed keeps its time.
    pub(crate) fn change(&mut self, params: &Params, seed: u64, name: &str) {
        self.loss.change(params.loss);
        self.aim(params, seed, name);
    }

    /// Random numbers from `now` on depend on `seed` too; the jitter's present knots stay.
    pub(crate) fn reseed(&mut self, now: u64, seed: u64) {
        self.loss.reseed(seed);
        if let Some(wander) = &mut self.wander {
            wander.reseed(now, seed);
        }
        if let Some(late) = &mut self.late {
            late.stream.reseed(seed);
        }
    }

    /// When what departs then reaches the far end.
    #[inline]
    fn arrival(&mut self, departure: u64) -> u64 {
        let extra = self.wander.as_mut().map_or(0, |wander| wander.at(departure));
        departure.saturating_add(self.delay).saturating_add(extra)
    }

    /// Whether the wire will lose the packet that is admitted now, and whether others will overtake it.
    #[inline]
    pub(crate) fn fate(&mut self) -> (bool, bool) {
        let lost = self.loss.strikes();
        let late = match &mut self.late {
            None => false,
            Some(late) => late.stream.chance(late.reorder.share) && !lost,
        };
        (lost, late)
    }

    /// A packet departs at `departure`; its due time is made here.
    #[inline]
    pub(crate) fn push(&mut self, departure: u64, mut inside: Inside<T>) {
        inside.due = self.arrival(departure).max(self.last_due);
        self.last_due = inside.due;
        self.ordered.push_back(inside);
    }

    /// Gives the last `unsent` packets new departures, in their order.
    pub(crate) fn reschedule(&mut self, unsent: usize) -> impl FnMut(u64) {
        let first = self.ordered.len() - unsent;
        self.last_due = first.checked_sub(1).map_or(self.last_out, |last| self.ordered[last].due);
        let mut next = first;
        move |departure| {
            self.last_due = self.arrival(departure).max(self.last_due);
            self.ordered[next].due = self.last_due;
            next += 1;
        }
    }

    /// When [`Flight::pop`] has something to do next [ns].
    #[inline]
    pub(crate) fn next_due(&self) -> Option<u64> {
        let ahead = self.ordered.front().map(|head| head.due);
        match self.next_late() {
            None => ahead,
            late => ahead.into_iter().chain(late).min(),
        }
    }

    /// When the next packet that was overtaken arrives [ns].
    #[inline]
    pub(crate) fn next_late(&self) -> Option<u64> {
        self.late.as_ref()?.held.front().map(|head| head.due)
    }

    /// Takes the next packet that is due by `clock`; none if others only begin to overtake one.
    #[inline]
    pub(crate) fn pop(&mut self, clock: u64, counters: &mut Counters) -> Option<Released<T>> {
        if self.late.is_some() {
            return self.pop_either(clock, counters);
        }
        if self.ordered.front()?.due > clock {
            return None;
        }
        self.take(counters)
    }

    /// The same where packets overtake others; at equal times what is late goes first.
    #[cold]
    fn pop_either(&mut self, clock: u64, counters: &mut Counters) -> Option<Released<T>> {
        loop {
            let late = self.late.as_mut()?;
            let held = late.held.front().map(|head| head.due);
            match self.ordered.front() {
                Some(head) if head.due <= clock && held.is_none_or(|held| head.due < held) => {
                    if !head.late {
                        return self.take(counters);
                    }
                    let inside = self.ordered.pop_front()?;
                    self.last_out = inside.due;
                    late.last_due = late.last_due.max(inside.due.saturating_add(late.reorder.distance.0));
                    late.held.push_back(Inside { due: late.last_due, ..inside });
                }
                _ if held? <= clock => return late.held.pop_front().map(|inside| released(inside, counters)),
                _ => return None,
            }
        }
    }

    /// Takes the next packet in order, if it is due by `latest` and will not be overtaken.
    pub(crate) fn pop_early(&mut self, latest: u64, counters: &mut Counters) -> Option<Released<T>> {
        let head = self.ordered.front()?;
        if head.due > latest || head.late || self.next_late().is_some_and(|late| late <= head.due) {
            return None;
        }
        self.take(counters)
    }

    fn take(&mut self, counters: &mut Counters) -> Option<Released<T>> {
        let inside = self.ordered.pop_front()?;
        self.last_out = inside.due;
        Some(released(inside, counters))
    }

    /// The packets that are not overtaken yet, in due order.
    pub(crate) fn ordered(&self) -> &VecDeque<Inside<T>> {
        &self.ordered
    }

    /// All packets.
    pub(crate) fn len(&self) -> usize {
        self.ordered.len() + self.late.as_ref().map_or(0, |late| late.held.len())
    }
}

fn released<T>(inside: Inside<T>, counters: &mut Counters) -> Released<T> {
    let Inside { due, bytes, lost, marked, packet, .. } = inside;
    if lost {
        counters.dropped.loss.add(bytes);
    } else {
        counters.carried.add(bytes);
    }
    Released { at: Nanos(due), bytes, lost, marked, packet }
}
