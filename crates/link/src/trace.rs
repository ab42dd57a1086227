//! Rates that change as a file says, repeated at its end.
//!
//! Two kinds. *Opportunities* are Mahimahi's (Netravali et al., USENIX ATC 2015, `link_queue.cc`): at each of them 1500
//! bytes may leave; a packet's rest waits for the next one, what no packet uses is lost, and a packet that comes at the
//! very time of one has missed it. Opportunities of the same millisecond are one with their sum. *Rates* hold from one
//! time to the next.
//!
//! A position only ever moves forward with the packets, so that no packet costs a search.

use std::fmt;
use std::sync::Arc;

use pathcast_base::{Nanos, Rate};
use serde::{Deserialize, Serialize};

const MS: u64 = 1_000_000;
/// A time that does not come [ns], far enough from the end of the clock to reckon with: 292 years.
const NEVER: u64 = 1 << 63;
/// What an opportunity lets pass.
const OPPORTUNITY: u64 = 1500;
/// A step of an idle link over so many entries is a search.
const NEAR: usize = 16;

/// How a file of rates is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A line for each opportunity: its milliseconds from the start.
    Mahimahi,
    /// Lines of seconds and a rate.
    Csv,
}

/// A rate that follows a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The file, as it was opened.
    pub file: String,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
    /// How it is written.
    pub format: Format,
    /// Mean rate over a period, unscaled [bit/s].
    pub mean_bps: f64,
    /// Where in the file the link's time begins; a file repeats.
    pub offset: Nanos,
    /// What all rates are multiplied by.
    pub scale: f64,
    /// What it says.
    #[serde(skip)]
    pub schedule: Arc<Schedule>,
}

impl Trace {
    /// The trace of a schedule from its beginning.
    pub fn new(file: String, sha256: String, format: Format, schedule: Arc<Schedule>) -> Trace {
        Trace { file, sha256, format, mean_bps: schedule.mean(), offset: Nanos::ZERO, scale: 1.0, schedule }
    }

    /// Mean rate over a period, scaled [bit/s].
    pub fn mean(&self) -> f64 {
        self.mean_bps * self.scale
    }
}

/// What a file of rates says, unscaled.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    kind: Kind,
    /// After which it repeats [ns].
    period: u64,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// Milliseconds, and how many opportunities there are then.
    Opportunities(Vec<(u32, u32)>),
    /// Since when [ns], and bits per second.
    Rates(Vec<(u64, u64)>),
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Rates(Vec::new())
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, entries) = match &self.kind {
            Kind::Opportunities(all) => ("opportunities", all.len()),
            Kind::Rates(all) => ("rates", all.len()),
        };
        write!(f, "{entries} {what} in {}", Nanos(self.period))
    }
}

impl Schedule {
    /// Opportunities by their milliseconds, which do not descend; the last one is the period. None if that is zero.
    pub fn opportunities(times: impl IntoIterator<Item = u32>) -> Option<Schedule> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for time in times {
            match all.last_mut() {
                Some((last, count)) if *last == time => *count += 1,
                last => {
                    debug_assert!(last.is_none_or(|last| last.0 < time));
                    all.push((time, 1));
                }
            }
        }
        let period = u64::from(all.last()?.0) * MS;
        all.shrink_to_fit();
        (period > 0).then_some(Schedule { kind: Kind::Opportunities(all), period })
    }

    /// Rates by the times from which they hold, which ascend; the first is the zero of the file, and the last rate holds
    /// as long as the one before it. None if all are zero.
    pub fn rates(mut all: Vec<(Nanos, Rate)>) -> Option<Schedule> {
        let zero = all.first()?.0.0;
        let last = match all[..] {
            [.., (before, _), (last, _)] => last.0 + (last.0 - before.0),
            _ => zero + 1_000_000_000,
        };
        debug_assert!(all.is_sorted_by(|a, b| a.0 < b.0));
        all.shrink_to_fit();
        let entries: Vec<_> = all.into_iter().map(|(at, rate)| (at.0 - zero, rate.0)).collect();
        let any = entries.iter().any(|(_, rate)| *rate > 0);
        any.then_some(Schedule { kind: Kind::Rates(entries), period: last - zero })
    }

    /// How long it lasts.
    pub fn period(&self) -> Nanos {
        Nanos(self.period)
    }

    /// Mean rate over a period [bit/s].
    fn mean(&self) -> f64 {
        let bits: f64 = match &self.kind {
            Kind::Opportunities(all) => all.iter().map(|(_, count)| f64::from(*count) * (OPPORTUNITY * 8) as f64).sum(),
            Kind::Rates(all) => {
                let ends = all.iter().skip(1).map(|(at, _)| *at).chain([self.period]);
                all.iter().zip(ends).map(|((at, rate), end)| *rate as f64 * (end - at) as f64 / 1e9).sum()
            }
        };
        bits / (self.period.max(1) as f64 / 1e9)
    }
}

/// A place in a schedule that repeats for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// When this repetition began.
    base: u64,
    index: u32,
    /// Bytes of the opportunity that no packet has used.
    left: u64,
    /// Time before this one is no opportunity's [ns, the link's].
    pub(crate) since: u64,
}

impl Position {
    /// That of a trace that begins at `zero`.
    pub(crate) fn new(zero: u64) -> Self {
        Position { base: 0, index: 0, left: 0, since: zero }
    }
}

/// A trace on a link's clock.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    schedule: Arc<Schedule>,
    scale: f64,
    /// Time of the schedule less that of the link.
    shift: u64,
    /// Bytes of an opportunity, scaled.
    unit: u64,
    /// Mean rate, scaled [bit/s].
    mean: f64,
    /// What a period of rates brings: bits times 1e9, or as much as a number holds.
    whole: u64,
    /// Size, rate and line time of the last packet: most in a row are alike, and a division is dear.
    memo: (u64, u64, u64),
}

impl Player {
    /// `zero`: the time of the link at which the trace is at its offset.
    pub(crate) fn new(trace: &Trace, zero: u64) -> Self {
        let period = trace.schedule.period.max(1);
        let shift = trace.offset.0 % period + (period - zero % period);
        let unit = ((OPPORTUNITY as f64 * trace.scale).round() as u64).max(1);
        let mut player = Player {
            schedule: trace.schedule.clone(),
            scale: trace.scale,
            shift,
            unit,
            mean: trace.mean(),
            whole: 0,
            memo: (0, 0, 0),
        };
        if let Kind::Rates(all) = &trace.schedule.kind {
            let ends = all.iter().skip(1).map(|(at, _)| *at).chain([period]);
            let brings =
                |((at, rate), end): (&(u64, u64), u64)| u128::from(player.scaled(*rate)) * u128::from(end - at);
            player.whole = u64::try_from(all.iter().zip(ends).map(brings).sum::<u128>()).unwrap_or(u64::MAX);
        }
        player
    }

    /// Whether both say the same at every time.
    pub(crate) fn same(&self, other: &Player) -> bool {
        (self.shift, self.scale) == (other.shift, other.scale) && self.schedule == other.schedule
    }

    /// Whether a position is more than a time.
    pub(crate) fn remembers(&self) -> bool {
        matches!(self.schedule.kind, Kind::Opportunities(_))
    }

    /// Mean time of a packet [ns].
    pub(crate) fn typical(&self, bytes: u64) -> u64 {
        (bytes as f64 * 8e9 / self.mean.max(1.0)) as u64
    }

    /// When a packet could start that finds the serialiser free at `from`, where the opportunities up to `passed` are not
    /// for it.
    #[inline]
    pub(crate) fn ready(&self, position: &mut Position, passed: u64, from: u64) -> u64 {
        match &self.schedule.kind {
            Kind::Opportunities(all) => self.next_opportunity(all, position, passed.max(from.saturating_sub(1))),
            Kind::Rates(_) => from,
        }
    }

    /// Start and departure of a packet as of [`Player::ready`], and its line time if that is not the time between them.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        position: &mut Position,
        passed: u64,
        from: u64,
        bytes: u64,
    ) -> (u64, u64, Option<u64>) {
        let start = self.ready(position, passed, from);
        match &self.schedule.kind {
            Kind::Opportunities(all) => {
                let (departure, used) = self.use_opportunities(all, position, bytes);
                (start, departure, Some(used))
            }
            Kind::Rates(_) => (start, self.send(position, start, bytes), None),
        }
    }

    /// Goes to the next opportunity that something is left of; all up to `passed` have passed.
    fn next_opportunity(&self, all: &[(u32, u32)], position: &mut Position, passed: u64) -> u64 {
        let passed = passed.saturating_add(self.shift);
        if self.time(all, position) <= passed {
            // what was left of it is lost
            self.pass_periods(position, passed);
            let base = position.base;
            position.index = skip(all, position.index, |entry| base + u64::from(entry.0) * MS <= passed);
            if position.index as usize == all.len() {
                (position.index, position.base) = (0, base + self.schedule.period);
                // the first of a period may lie on the last of the one before
                if self.time(all, position) <= passed {
                    position.index = skip(all, 0, |entry| position.base + u64::from(entry.0) * MS <= passed);
                }
            }
            position.left = self.credit(all, position);
        } else if position.left == 0 {
            self.step(all, position);
        }
        self.time(all, position) - self.shift
    }

    /// When the packet has been sent that starts at `position`, and its line time.
    fn use_opportunities(&self, all: &[(u32, u32)], position: &mut Position, bytes: u64) -> (u64, u64) {
        let (mut need, mut used) = (bytes, 0);
        while need > position.left {
            used += self.line_time(all, position, position.left);
            need -= position.left;
            self.step(all, position);
        }
        used += self.line_time(all, position, need);
        position.left -= need;
        (self.time(all, position) - self.shift, used)
    }

    /// Of the time since the opportunity before, the share that these bytes have of what may leave at this one.
    fn line_time(&self, all: &[(u32, u32)], at: &Position, bytes: u64) -> u64 {
        let (index, last) = (at.index as usize, all.len() - 1);
        let (mut since, mut credit) = (if index == 0 { 0 } else { all[index - 1].0 }, self.credit(all, at));
        let mut time = all[index].0;
        // the first of a period that lies on the last of the one before is one with it
        if all[0].0 == 0 && (index == 0 || index == last) {
            (since, time) = (all[last - 1].0, all[last].0);
            credit = u64::from(all[0].1 + all[last].1) * self.unit;
        }
        let gap = (u64::from(time - since) * MS).min((self.time(all, at) - self.shift).saturating_sub(at.since));
        if bytes == credit { gap } else { (u128::from(gap) * u128::from(bytes) / u128::from(credit)) as u64 }
    }

    fn time(&self, all: &[(u32, u32)], at: &Position) -> u64 {
        at.base + u64::from(all[at.index as usize].0) * MS
    }

    fn credit(&self, all: &[(u32, u32)], at: &Position) -> u64 {
        u64::from(all[at.index as usize].1) * self.unit
    }

    fn step(&self, all: &[(u32, u32)], at: &mut Position) {
        at.index += 1;
        if at.index as usize == all.len() {
            (at.index, at.base) = (0, at.base + self.schedule.period);
        }
        at.left = self.credit(all, at);
    }

    #[inline]
    fn send(&mut self, position: &mut Position, from: u64, bytes: u64) -> u64 {
        let Kind::Rates(all) = &self.schedule.kind else { unreachable!("the caller looked") };
        let mut at = from.saturating_add(self.shift);
        if at >= NEVER {
            return NEVER;
        }
        let end = |position: &Position| {
            let end = all.get(position.index as usize + 1).map_or(self.schedule.period, |next| next.0);
            position.base + end
        };
        if end(position) <= at {
            self.pass_periods(position, at);
            let base = position.base;
            let index = skip(all, position.index, |entry| base + entry.0 <= at);
            position.index = index.saturating_sub(1);
        }
        // bits times 1e9, of which a rate brings as many in a nanosecond as it has bits a second
        let mut work = bytes * 8_000_000_000;
        loop {
            let rate = self.scaled(all[position.index as usize].1);
            let end = end(position);
            if rate > 0 {
                let need = if self.memo.0 == work && self.memo.1 == rate { self.memo.2 } else { work.div_ceil(rate) };
                if need <= end - at {
                    self.memo = (work, rate, need);
                    return at + need - self.shift;
                }
                work -= rate * (end - at);
            }
            at = end;
            position.index += 1;
            if position.index as usize == all.len() {
                (position.index, position.base) = (0, position.base + self.schedule.period);
                // a slow one may take many periods, each of which brings the same
                let periods = (work - 1) / self.whole;
                if periods > 0 {
                    let time =
                        periods.checked_mul(self.schedule.period).filter(|time| *time < NEVER.saturating_sub(at));
                    let Some(time) = time else { return NEVER };
                    (position.base, at, work) = (position.base + time, at + time, work - periods * self.whole);
                }
            }
        }
    }

    /// The rate at a position and the time until which it holds.
    pub(crate) fn holding(&self, position: &Position) -> Option<(Rate, u64)> {
        let Kind::Rates(all) = &self.schedule.kind else { return None };
        let index = position.index as usize;
        let end = position.base + all.get(index + 1).map_or(self.schedule.period, |next| next.0);
        Some((Rate(self.scaled(all[index].1)), end.saturating_sub(self.shift)))
    }

    /// No rate but zero becomes zero: a packet would wait for ever where all are small.
    fn scaled(&self, rate: u64) -> u64 {
        let scaled = || ((rate as f64 * self.scale).round() as u64).max(u64::from(rate > 0));
        if self.scale == 1.0 { rate } else { scaled() }
    }

    /// Goes to the period in which `at` lies.
    fn pass_periods(&self, position: &mut Position, at: u64) {
        let passed = (at - position.base) / self.schedule.period;
        if passed > 0 {
            (position.base, position.index) = (position.base + passed * self.schedule.period, 0);
        }
    }
}

/// The first entry from `index` on that has not passed.
fn skip<T>(all: &[T], index: u32, passed: impl Fn(&T) -> bool) -> u32 {
    let rest = &all[index as usize..];
    let near = rest.iter().take(NEAR).take_while(|entry| passed(entry)).count();
    let more = if near == NEAR { rest[NEAR..].partition_point(|entry| passed(entry)) } else { 0 };
    index + (near + more) as u32
}
