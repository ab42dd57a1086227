//! The serialiser and the queue in front of it, fused: a packet's start and departure are known when it is admitted
//! (first come, first served), so that a hop needs one event and not two.
//!
//! departure = max(arrival, departure of the packet before, tokens there) + (bytes + overhead) * 8 / rate, rounded up
//! to the nanosecond and chained in virtual time: a late caller does not make a packet late.

use std::collections::VecDeque;

use pathcast_base::{Nanos, Rate, Stream};

use crate::bucket::Tokens;
use crate::check::MOST_WAITING;
use crate::counters::Cause;
use crate::red::Early;
use crate::special::{Special, Times};
use crate::{Counters, Params, Queue};

/// A packet that waits for the serialiser.
#[derive(Clone, Debug)]
struct Waiting {
    arrived: u64,
    start: u64,
    departure: u64,
    bytes: u32,
    real: bool,
}

/// The serialiser and its queue; times in ns.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    rate: Option<Rate>,
    overhead: u64,
    queue: Queue,
    tokens: Option<Tokens>,
    early: Early,
    special: Option<Box<Special>>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// Departure of the packet that started last, and whether it is a real one.
    serving_until: u64,
    serving_real: bool,
    /// Departure of the packet admitted last.
    busy_until: u64,
    /// Line time of all packets that have started.
    started: u64,
    /// That of the packet that started last, if it counts when the packet has left and not as time goes by.
    whole: Option<u64>,
    /// Time that the real ones among them have waited.
    waited: u64,
    /// The last size and its line time: most packets in a row are equally long, and a division is dear.
    memo: (u64, u64),
    /// The rate that line times are of, and of a trace's step the time before which it holds.
    pace: Option<Rate>,
    holds_until: u64,
}

impl Line {
    pub(crate) fn new(params: &Params, red: Stream) -> Self {
        Line {
            rate: params.rate,
            overhead: params.overhead.0,
            queue: params.queue.clone(),
            tokens: params.bucket.map(Tokens::new),
            early: Early::new(red),
            special: Special::new(params, 0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            serving_until: 0,
            serving_real: false,
            busy_until: 0,
            started: 0,
            whole: None,
            waited: 0,
            memo: (0, 0),
            pace: params.rate,
            holds_until: 0,
        }
    }

    /// RED's random numbers.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.early.reseed(seed);
    }

    /// Packets waiting.
    pub(crate) fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }

    /// IP bytes waiting.
    pub(crate) fn bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Line time used up to `now`.
    pub(crate) fn busy(&self, now: u64) -> u64 {
        self.started - unserved(self.whole, self.serving_until, now)
    }

    /// Time that real packets have waited until they started.
    pub(crate) fn waited(&self) -> u64 {
        self.waited
    }

    fn line_time(&mut self, bytes: u64) -> u64 {
        if self.memo.0 != bytes {
            self.memo = (bytes, self.pace.map_or(0, |rate| rate.time_for(bytes).0));
        }
        self.memo.1
    }

    /// Makes all starts up to `now`, `now` included: departures come before arrivals of the same instant.
    #[inline]
    pub(crate) fn depart(&mut self, now: u64) {
        while let Some(head) = self.waiting.front() {
            if head.start > now {
                break;
            }
            self.waiting_bytes -= u64::from(head.bytes);
            if let Some(tokens) = &mut self.tokens {
                tokens.start(head.start, u64::from(head.bytes) + self.overhead);
            }
            let mut took = head.departure - head.start;
            if let Some(special) = &mut self.special {
                special.depart(u64::from(head.bytes) + self.overhead);
                self.whole = special.used();
                took = self.whole.unwrap_or(took);
            }
            self.serving_until = head.departure;
            self.serving_real = head.real;
            if head.real {
                self.waited = self.waited.saturating_add(head.start - head.arrived);
            }
            self.started += took;
            self.waiting.pop_front();
        }
    }

    /// Admits a packet that arrives at `now`, or says why not; returns when it leaves and whether it is to be marked.
    /// `ect`: it can be. `depart(now)` came before.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        now: u64,
        bytes: u32,
        (real, ect): (bool, bool),
        counters: &mut Counters,
    ) -> Result<(u64, bool), Cause> {
        let size = u64::from(bytes) + self.overhead;
        let mut start = now.max(self.busy_until);
        if self.special.is_some() && start.saturating_add(self.line_time(size)) >= self.holds_until {
            return self.admit_special(now, bytes, (real, ect), counters);
        }
        if let Some(tokens) = &self.tokens {
            start = tokens.earliest(start, size);
        }
        let mark = self.pass_queue(now, start, bytes, ect)?;
        if let Some(tokens) = &mut self.tokens {
            tokens.schedule(start, size);
        }
        let departure = start.saturating_add(self.line_time(size));
        self.busy_until = departure;
        if start > now {
            self.wait(Waiting { arrived: now, start, departure, bytes, real }, counters);
        } else {
            if let Some(tokens) = &mut self.tokens {
                tokens.start(start, size);
            }
            if let Some(special) = &mut self.special {
                special.depart(size);
            }
            self.serving_until = departure;
            self.serving_real = real;
            self.started += departure - start;
        }
        Ok((departure, mark))
    }

    #[inline]
    fn wait(&mut self, waiting: Waiting, counters: &mut Counters) {
        self.waiting_bytes += u64::from(waiting.bytes);
        self.waiting.push_back(waiting);
        counters.queue_max.packets = counters.queue_max.packets.max(self.waiting.len() as u64);
        counters.queue_max.bytes = counters.queue_max.bytes.max(self.waiting_bytes);
    }

    /// The same where there is a trace or packets gather. There are no tokens then.
    fn admit_special(
        &mut self,
        now: u64,
        bytes: u32,
        (real, ect): (bool, bool),
        counters: &mut Counters,
    ) -> Result<(u64, bool), Cause> {
        let size = u64::from(bytes) + self.overhead;
        let from = now.max(self.busy_until);
        let line_time = self.rate.map_or(0, |_| self.line_time(size));
        let Some(special) = &mut self.special else { unreachable!("the caller looked") };
        let (times, state) = special.plan(now, from, size, line_time);
        let mark = self.pass_queue(now, times.start, bytes, ect)?;
        let Some(special) = &mut self.special else { unreachable!("the caller looked") };
        let Times { start, departure, leaves } = times;
        self.busy_until = departure;
        if start > now {
            special.take(state);
            self.wait(Waiting { arrived: now, start, departure, bytes, real }, counters);
        } else {
            special.start(state, size);
            self.whole = special.used();
            self.serving_until = departure;
            self.serving_real = real;
            self.started += self.whole.unwrap_or(departure - start);
        }
        // until the step ends, packets take their time as at a rate
        let step = self.special.as_ref().and_then(|special| special.step());
        if let Some((rate, until)) = step {
            if self.pace != Some(rate) {
                (self.pace, self.memo) = (Some(rate), (0, 0));
            }
            self.holds_until = until;
        }
        Ok((leaves, mark))
    }

    #[inline]
    fn pass_queue(&mut self, now: u64, start: u64, bytes: u32, ect: bool) -> Result<bool, Cause> {
        let mut mark = false;
        let full = match &self.queue {
            Queue::Packets(limit) => self.waiting.len() as u64 >= u64::from(*limit),
            Queue::Bytes(limit) => {
                self.waiting_bytes + u64::from(bytes) > limit.0 || self.waiting.len() >= MOST_WAITING as usize
            }
            Queue::Red(red) => {
                let red = *red;
                match self.early_drop(&red, now) {
                    Some(false) if ect && red.ecn => mark = true,
                    Some(_) => return Err(Cause::Aqm),
                    None => {}
                }
                let full = self.packets() >= red.limit;
                if full {
                    self.early.overflowed();
                }
                full
            }
            // `Link` does not let it in
            Queue::Fair(_) | Queue::Codel(_) | Queue::FqCodel(_) | Queue::Pie(_) => false,
        };
        // a packet that need not wait needs no place
        if full && start > now { Err(Cause::Queue) } else { Ok(mark) }
    }

    fn early_drop(&mut self, red: &crate::Red, now: u64) -> Option<bool> {
        let typical = 1500 + self.overhead;
        // of what limits the link the slowest; without any it is infinitely fast, and there is no queue
        let limits = [
            self.rate.map(|rate| rate.time_for(typical)),
            self.tokens.as_ref().map(|tokens| tokens.time_for(typical)),
            self.special.as_ref().map(|special| Nanos(special.typical(typical))),
        ];
        let typical = limits.into_iter().flatten().max()?;
        let idle_since = (self.busy_until <= now).then_some(self.busy_until);
        self.early.drops(red, now, self.packets(), idle_since, typical.0)
    }

    /// Real packets that have not departed at `now` and do not gather.
    pub(crate) fn unsent(&self, now: u64) -> usize {
        let gathers = self.special.as_ref().is_some_and(|special| special.gathers());
        let serving = self.serving_real && self.serving_until > now && !gathers;
        self.waiting.iter().filter(|w| w.real).count() + usize::from(serving)
    }

    /// Changes the parameters at `now` and reschedules all that has not departed: the packet in service keeps the share
    /// already served, the others start anew in their order. Hands out the new departures of the real ones. Packets
    /// beyond a smaller queue stay. `zero`: where the link's time begins.
    pub(crate) fn change(&mut self, now: u64, params: &Params, zero: u64, mut departs: impl FnMut(u64)) {
        let was = self.special.take();
        let gathered = was.as_ref().is_some_and(|special| special.gathers());
        let old = std::mem::replace(&mut self.rate, params.rate);
        self.overhead = params.overhead.0;
        self.queue = params.queue.clone();
        (self.memo, self.pace, self.holds_until) = ((0, 0), params.rate, 0);
        match (&mut self.tokens, params.bucket) {
            (Some(tokens), Some(bucket)) => tokens.change(now, bucket),
            (tokens, bucket) => *tokens = bucket.map(Tokens::new),
        }
        let left = self.serving_until.saturating_sub(now);
        self.started = self.busy(now);
        (self.special, self.serving_until) = Special::change(was, params, zero, now, self.serving_until, old);
        self.whole = self.special.as_ref().and_then(|special| special.used());
        if left > 0 {
            self.started += self.whole.unwrap_or(self.serving_until - now);
            // what gathers has its time, and perhaps has gone before the serialiser is free
            self.serving_real &= !gathered;
            if self.serving_real {
                departs(self.serving_until);
            }
        }
        self.busy_until = self.serving_until;
        for i in 0..self.waiting.len() {
            let size = u64::from(self.waiting[i].bytes) + self.overhead;
            let mut start = now.max(self.busy_until);
            if let Some(tokens) = &mut self.tokens {
                start = tokens.schedule(start, size);
            }
            let line_time = self.line_time(size);
            let (mut departure, mut leaves) = (start.saturating_add(line_time), None);
            if let Some(special) = &mut self.special {
                let (times, state) = special.plan(now, start, size, line_time);
                special.take(state);
                (start, departure, leaves) = (times.start, times.departure, Some(times.leaves));
            }
            self.busy_until = departure;
            let waiting = &mut self.waiting[i];
            (waiting.start, waiting.departure) = (start, departure);
            if waiting.real {
                departs(leaves.unwrap_or(departure));
            }
        }
        self.depart(now);
    }
}

/// Of the line time of a packet that is in service until `until` what it has not used at `now`. `whole`: its line time, if
/// that counts when it has left and not as time goes by.
pub(crate) fn unserved(whole: Option<u64>, until: u64, now: u64) -> u64 {
    match whole {
        None => until.saturating_sub(now),
        Some(all) if until > now => all,
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use pathcast_base::Bytes;

    use super::*;
    use crate::{Aggregation, Bucket, Red};

    /// RED's average of 16 packets when one comes after 50 ms of rest.
    fn rested(change: impl Fn(&mut Params)) -> f64 {
        let red = Red { min: 5.0, max: 15.0, limit: 60, probability: 0.1, weight: 0.002, ecn: false };
        let mut params = Params { queue: Queue::Red(red), ..Params::default() };
        change(&mut params);
        let mut line = Line::new(&params, Stream::new(1, "test/red"));
        *line.early.average() = 16.0;
        let _ = line.admit(50_000_000, 1500, (true, false), &mut Counters::default());
        *line.early.average()
    }

    #[test]
    fn red_ages_with_what_limits_the_link() {
        let rate = rested(|params| params.rate = Some(Rate(10_000_000)));
        let tokens = Bucket { rate: Rate(10_000_000), burst: Bytes(15_000) };
        let gathers = Aggregation { every: Nanos::micros(1200), bytes: Bytes(1500) };
        let fast = Some(Rate(1_000_000_000));
        for limited in [
            rested(|params| (params.rate, params.bucket) = (fast, Some(tokens))),
            rested(|params| params.bucket = Some(tokens)),
            rested(|params| (params.rate, params.aggregation) = (fast, Some(gathers))),
        ] {
            assert!((limited / rate - 1.0).abs() < 0.05, "{limited} and {rate}");
        }
    }
}
