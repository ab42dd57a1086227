//! Probes that come in pulses, which a path is filled with while another one is: the sending half of [`shared`](super).

use pathcast_base::{Bytes, Nanos, Stream};

use crate::{Budget, Estimate, LARGE, Method, Plan, Step, TrainSeen, WhyNot};

/// Slots of a phase. In one phase a path is filled steadily and the other one in pulses, in half of the slots by a code that
/// is drawn and resembles no traffic; then the other way round.
pub const PHASE: usize = 60;
/// Of both phases.
pub const SLOTS: usize = 2 * PHASE;
/// Of what is filled, the steady share: a queue of its own shows when the share that a fair queue gives it shrinks.
pub(super) const STEADY: f64 = 1.0;
/// And that of a pulse: hardly more than a half, for what it leaves in a fair queue makes the next slot one of a pulse too.
pub(super) const PULSE: f64 = 0.6;
/// Bins of a slot.
pub const PARTS: usize = 2;
/// A slot has at least so many packets at the mean rate, if need be smaller ones than [`LARGE`], but none below this size.
const PACKETS: f64 = 12.0;
const SIZE_LEAST: u16 = 300;
/// A train is planned so long before it is due, in slots.
const AHEAD: f64 = 0.5;

/// What became of the packets that left in a time of `Response::bin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Packets.
    pub sent: u32,
    /// Of these.
    pub lost: u32,
    /// Mean of arrival less departure [us], the clocks' offset included; without meaning where all were lost.
    pub delay_us: i64,
}

/// What became of pulses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// When the first bin begins, by the sender's clock.
    pub start: Nanos,
    /// How long each lasts.
    pub bin: Nanos,
    /// IP bytes of a packet.
    pub size: u16,
    /// From the first to the last.
    pub bins: Vec<Bin>,
}

/// See the [module](self). All of the budget is used: the mean rate is that of its bytes over its time.
#[derive(Clone, Debug)]
pub struct Pulses {
    slot: f64,
    size: u16,
    /// Bit/s, by slot.
    rates: [f64; SLOTS],
    start: Option<Nanos>,
    planned: usize,
    seen: usize,
    bytes: u64,
    /// Packets sent and lost, and the sum of the others' delays [ns], by bin.
    sums: Vec<(u32, u32, i128)>,
}

impl Pulses {
    /// Pulses of a code that follows from the seed; `first`: this is the path that is filled steadily at first.
    pub fn new(budget: Budget, seed: u64, first: bool) -> Pulses {
        let time = budget.time.as_secs_f64().max(1e-3);
        let (slot, mean) = (time / SLOTS as f64, budget.bytes.0 as f64 * 8.0 / time);
        let size = (mean * slot / 8.0 / PACKETS).clamp(SIZE_LEAST.into(), LARGE.into()) as u16;
        let fills = mean / mean_share();
        let mut stream = Stream::new(seed, "estimate/pulses");
        let pulses = code(&mut stream).map(|high| if high { PULSE } else { 0.0 });
        let steady = [STEADY; PHASE];
        let shares = if first { [steady, pulses] } else { [pulses, steady] };
        let rates = std::array::from_fn(|k| fills * shares[k / PHASE][k % PHASE]);
        let sums = vec![(0, 0, 0); SLOTS * PARTS];
        Pulses { slot, size, rates, start: None, planned: 0, seen: 0, bytes: 0, sums }
    }

    fn at(&self, slot: usize) -> Nanos {
        self.start.unwrap_or_default() + Nanos::from_secs_f64(slot as f64 * self.slot)
    }

    /// What became of them so far; none before the first.
    pub fn response(&self) -> Option<Response> {
        let bins = self.sums.iter().map(|&(sent, lost, delays)| {
            let came = i128::from(sent - lost);
            Bin { sent, lost, delay_us: if came > 0 { (delays / came / 1000) as i64 } else { 0 } }
        });
        let bin = Nanos::from_secs_f64(self.slot / PARTS as f64);
        (self.seen > 0).then(|| Response {
            start: self.start.unwrap_or_default(),
            bin,
            size: self.size,
            bins: bins.collect(),
        })
    }
}

impl Method for Pulses {
    fn next(&mut self, now: Nanos) -> Step {
        self.start.get_or_insert(now);
        if self.planned == SLOTS {
            // what is not reported is cut off by who carries this
            return if self.seen == SLOTS { Step::Done } else { Step::Wait(self.at(SLOTS * 2)) };
        }
        let at = self.at(self.planned);
        let due = at.saturating_sub(Nanos::from_secs_f64(AHEAD * self.slot));
        if now < due {
            return Step::Wait(due);
        }
        let rate = self.rates[self.planned];
        let bits = f64::from(self.size) * 8.0;
        let count = (rate * self.slot / bits).round().max(2.0);
        let plan = Plan::even(self.planned as u64, at, count as usize, self.slot / count, self.size);
        self.planned += 1;
        self.bytes += plan.bytes();
        Step::Send(plan)
    }

    fn observe(&mut self, _now: Nanos, train: &TrainSeen) {
        let start = self.start.unwrap_or_default();
        // what the receiving host had no room for says nothing of the path
        for packet in train.packets.iter().filter(|packet| !packet.missed) {
            let since = packet.sent.saturating_sub(start).as_secs_f64();
            let bin = (since / self.slot * PARTS as f64) as usize;
            let Some((sent, lost, delays)) = self.sums.get_mut(bin) else { continue };
            *sent += 1;
            match packet.delay() {
                Some(delay) => *delays += i128::from(delay),
                None => *lost += 1,
            }
        }
        self.seen += 1;
    }

    /// It estimates nothing by itself.
    fn estimate(&self) -> Estimate {
        Estimate::none(WhyNot::NotLookedFor, self.bytes)
    }
}

/// A code: as many slots with a pulse as without one.
pub(super) fn code(stream: &mut Stream) -> [bool; PHASE] {
    let mut code = std::array::from_fn(|k| k % 2 == 0);
    for k in (1..PHASE).rev() {
        code.swap(k, stream.between(0.0, (k + 1) as f64) as usize % (k + 1)); // Fisher and Yates
    }
    code
}

/// The mean rate over what is filled.
fn mean_share() -> f64 {
    (STEADY + PULSE / 2.0) / 2.0
}

/// What it costs to fill `rate` [bit/s] so.
pub fn budget(rate: f64, time: Nanos) -> Budget {
    Budget { bytes: Bytes((mean_share() * rate * time.as_secs_f64() / 8.0) as u64), time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::train;

    #[test]
    fn what_a_host_had_no_room_for_is_not_lost_on_the_path() {
        let mut pulses = Pulses::new(budget(10e6, Nanos::secs(6)), 1, true);
        pulses.next(Nanos::ZERO);
        let mut seen = train(0, LARGE, &[0; 4], &[Some(5_000), Some(7_000), None, None]);
        seen.packets[3].missed = true;
        pulses.observe(Nanos::ZERO, &seen);
        assert_eq!(pulses.response().unwrap().bins[0], Bin { sent: 3, lost: 1, delay_us: 6 });
    }
}
