//! What only some links have at their serialiser: a rate that follows a trace, and packets that gather. Its state is kept
//! both after the packets that have started and after those that only will, as a token bucket's is.

use std::collections::VecDeque;

use pathcast_base::Rate;

use crate::Params;
use crate::gather::{Fill, Gather};
use crate::trace::{Player, Position};

/// What the packets so far have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    position: Position,
    fill: Fill,
    /// Line time of the last of them, if that is not its time at the serialiser.
    used: Option<u64>,
}

/// When a packet starts, when the serialiser is free again, and when the packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) departure: u64,
    pub(crate) leaves: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Special {
    trace: Option<Player>,
    gather: Option<Gather>,
    scheduled: State,
    started: State,
    /// After each packet that waits, where time alone does not say it.
    waiting: VecDeque<State>,
    remembers: bool,
    /// Bytes of the packet in service.
    serving: u64,
}

impl Special {
    /// None if the parameters have nothing of it. `zero`: where the link's time begins.
    pub(crate) fn new(params: &Params, zero: u64) -> Option<Box<Special>> {
        let trace = params.trace.as_ref().map(|trace| Player::new(trace, zero));
        let gather = params.aggregation.map(|aggregation| Gather::new(aggregation, zero));
        if trace.is_none() && gather.is_none() {
            return None;
        }
        let begin = State { position: Position::new(zero), ..State::default() };
        let (scheduled, started) = (begin, begin);
        let remembers = gather.is_some() || trace.as_ref().is_some_and(Player::remembers);
        let waiting = VecDeque::new();
        Some(Box::new(Special { trace, gather, scheduled, started, waiting, remembers, serving: 0 }))
    }

    /// The times of a packet that comes at `now`, may start at `from` and takes `line_time` where there is no trace; and
    /// the state that [`Special::take`] or [`Special::start`] has to be given if it is admitted.
    #[inline]
    pub(crate) fn plan(&mut self, now: u64, from: u64, bytes: u64, line_time: u64) -> (Times, State) {
        let mut state = self.scheduled;
        let (start, sent, used) = match &mut self.trace {
            Some(trace) => trace.serve(&mut state.position, now, from, bytes),
            None => (from, from.saturating_add(line_time), None),
        };
        let (departure, leaves) = match &self.gather {
            Some(gather) => gather.pass(&mut state.fill, sent, bytes),
            None => (sent, sent),
        };
        state.used = used.map(|used| used + (departure - sent));
        if departure > sent {
            state.position.since = departure;
        }
        (Times { start, departure, leaves }, state)
    }

    /// An admitted packet waits.
    #[inline]
    pub(crate) fn take(&mut self, state: State) {
        self.scheduled = state;
        if self.remembers {
            self.waiting.push_back(state);
        }
    }

    /// An admitted packet starts at once.
    #[inline]
    pub(crate) fn start(&mut self, state: State, bytes: u64) {
        (self.scheduled, self.started, self.serving) = (state, state, bytes);
    }

    /// The packet that has waited longest starts.
    #[inline]
    pub(crate) fn depart(&mut self, bytes: u64) {
        self.serving = bytes;
        if self.remembers
            && let Some(state) = self.waiting.pop_front()
        {
            self.started = state;
        }
    }

    /// Line time of the packet that has started last, if that is not its time at the serialiser: what it has used of the
    /// opportunities of a trace. It counts when it is free again.
    #[inline]
    pub(crate) fn used(&self) -> Option<u64> {
        self.started.used
    }

    /// The rate at which the packet that was planned last has departed, if a trace alone says it, and until when it holds.
    pub(crate) fn step(&self) -> Option<(Rate, u64)> {
        if self.remembers { None } else { self.trace.as_ref()?.holding(&self.scheduled.position) }
    }

    /// Whether a packet that has started keeps its opportunity whatever changes.
    pub(crate) fn gathers(&self) -> bool {
        self.gather.is_some()
    }

    /// Mean time of a packet [ns], if the link's rate does not say it.
    pub(crate) fn typical(&self, bytes: u64) -> u64 {
        match (&self.trace, &self.gather) {
            (Some(trace), _) => trace.typical(bytes),
            (None, Some(gather)) => gather.typical(bytes),
            (None, None) => 0,
        }
    }

    /// When a packet could start that finds the serialiser free at `from`, where the opportunities of a trace up to `passed`
    /// are not for it; of a link that decides late.
    pub(crate) fn ready(&mut self, passed: u64, from: u64) -> u64 {
        let Some(trace) = &self.trace else { return from };
        let start = trace.ready(&mut self.started.position, passed, from);
        self.scheduled = self.started;
        start
    }

    /// Makes that of new parameters at `now` out of that of the old ones, which had the rate `old`. A packet is in service
    /// until `until`; returns until when it now is. `zero`: where the link's time begins.
    pub(crate) fn change(
        was: Option<Box<Special>>,
        params: &Params,
        zero: u64,
        now: u64,
        until: u64,
        old: Option<Rate>,
    ) -> (Option<Box<Special>>, u64) {
        let mut new = Special::new(params, zero);
        let left = until.saturating_sub(now);
        if left == 0 {
            if let Some(new) = &mut new {
                new.follow(was.as_deref(), now, now, 0);
            }
            return (new, until);
        }
        let traced = |special: &Option<Box<Special>>| special.as_ref().is_some_and(|special| special.trace.is_some());
        let until = match (&was, traced(&was), traced(&new)) {
            // what gathers or has gathered may have no rate that says how long it holds the serialiser
            (_, false, false) if old == params.rate => until,
            (_, false, false) => now.saturating_add(rescaled(left, old, params.rate)),
            // from a trace to a rate it begins anew
            (Some(was), true, false) => now.saturating_add(params.rate.map_or(0, |rate| rate.time_for(was.serving).0)),
            _ => until,
        };
        let rest = old.map_or(0, |old| sent_in(left, old));
        let until = new.as_mut().map_or(until, |new| new.follow(was.as_deref(), now, until, rest));
        (new, until)
    }

    /// Goes on from `old`, another one, at `now`: as far as they are the same with what the packets that have started have
    /// used. The serialiser is free at `until`, and was to be then at `rest` bytes if no trace says it; it now is at the
    /// time that is returned.
    fn follow(&mut self, old: Option<&Special>, now: u64, until: u64, rest: u64) -> u64 {
        self.serving = old.map_or(rest, |old| old.serving);
        let mut free = until;
        if let Some(trace) = &mut self.trace {
            match old.and_then(|old| old.trace.as_ref().map(|player| (old, player))) {
                Some((old, player)) if player.same(trace) => {
                    (self.started.position, self.started.used) = (old.started.position, old.started.used);
                }
                _ => {
                    let position = &mut self.started.position;
                    position.since = position.since.max(now);
                    if until > now {
                        (_, free, self.started.used) = trace.serve(position, now, now, self.serving);
                    }
                }
            }
        }
        if let (Some(old), true) = (old, old.is_some_and(|old| old.gather == self.gather)) {
            self.started.fill = old.started.fill;
        }
        self.scheduled = self.started;
        free
    }
}

/// What takes `left` ns at the old rate takes so long at the new one, rounded up.
fn rescaled(left: u64, old: Option<Rate>, new: Option<Rate>) -> u64 {
    match (old, new) {
        (Some(old), Some(new)) => {
            let time = (u128::from(left) * u128::from(old.0)).div_ceil(u128::from(new.0));
            u64::try_from(time).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}

/// Bytes that a rate sends in a time [ns], rounded up.
fn sent_in(time: u64, rate: Rate) -> u64 {
    u64::try_from((u128::from(time) * u128::from(rate.0)).div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
}
