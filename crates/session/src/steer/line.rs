//! One subflow by its numbers: what it delivers, how soon, and what it costs the others.

use pathcast_base::Nanos;

use super::{FAR, LOOK, PIECE, SubflowSeen, Task, room};

const SECOND: u128 = 1_000_000_000;
/// What a window grows by in a round trip [byte].
const MSS: u64 = 1448;
/// A line that nothing is known of is taken to be slower than the others by no more than this.
const UNPROVEN: u64 = 50;
/// But of what it is given first the buffers must bear more: that it is slower by so much, though not below [byte/s].
const FARTHEST: u64 = 200;
const SLOWEST: u64 = 62_500;
/// Least time until TCP sends again what was not answered [ns]; it doubles each time.
const RTO: u64 = 200_000_000;

/// What follows from a subflow's numbers.
#[derive(Clone, Copy)]
pub(super) struct Line {
    pub seen: SubflowSeen,
    pub rate: u64,
    /// The rate that speaks against it.
    pub least: u64,
    /// It has delivered something.
    pub proven: bool,
    pub full: bool,
    /// It loses packets of which none waits in a queue.
    pub random: bool,
    /// It has lost packets, and no queue has come since for long.
    pub grows: bool,
    /// The most that it delivered while packets waited; 0: none ever did [byte/s].
    pub top: u64,
    /// What it delivered when it last did [byte/s].
    pub delivers: u64,
    /// What it delivered in the mean so far [byte/s].
    pub mean: u64,
    pub met: bool,
    /// It has not answered for longer than a round trip.
    pub quiet: bool,
    pub held: bool,
}

pub(super) fn time(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * SECOND / u128::from(rate.max(1))).min(u128::from(u64::MAX / 8)) as u64
}

pub(super) fn per_second(bytes: u64, took: Nanos) -> u64 {
    (u128::from(bytes) * SECOND / u128::from(took.0.max(1))) as u64
}

pub(super) fn bytes(rate: u64, time: u64) -> u64 {
    (u128::from(rate) * u128::from(time) / SECOND).min(u128::from(u64::MAX / 8)) as u64
}

impl Line {
    /// Until something given now, behind `more` bytes, is acknowledged, while these others send [ns].
    pub fn delay(&self, more: u64, others: &[Line]) -> u64 {
        let given = self.seen.unsent + more;
        let took = if self.proven { time(given, self.least) } else { done(others, UNPROVEN.saturating_mul(given)) };
        // a loss costs another round trip
        took + 2 * self.seen.srtt.0
    }

    /// What its window takes at once [byte], if it has nothing to send and shows no sign of being full.
    pub fn trial(&self) -> Option<u64> {
        let seen = &self.seen;
        let clear = seen.unsent == 0 && seen.again == 0 && seen.srtt.0 <= seen.min_rtt.0 + seen.min_rtt.0 / 4;
        let fits =
            if self.proven { seen.window.saturating_sub(seen.out) } else { seen.window * u64::from(seen.out == 0) };
        // less is not worth the word to the far end
        (clear && fits >= seen.window / 2).then_some(fits.min(PIECE))
    }

    /// Whether so much can wait there while these others send, even if nothing is known of it.
    pub fn is_bearable(&self, given: u64, others: &[Line], task: Task) -> bool {
        let rate: u64 = others.iter().map(|line| line.rate).sum();
        let least = if self.proven { self.least } else { SLOWEST.max(rate / FARTHEST) };
        // a rate that still grows says little of what they send meanwhile
        others.iter().all(|line| line.full) && bytes(rate, time(given, least)) <= room(self, others, task)
    }

    /// Until so much, which its window takes at once, is acknowledged, while these others send [ns].
    pub fn tried(&self, bytes: u64, others: &[Line]) -> u64 {
        // a window has doubled at most since all of it came back unqueued
        let shown = if self.proven { time(bytes, self.least.max(self.rate / 2)) } else { u64::MAX };
        shown.min(self.delay(bytes, others).saturating_sub(2 * self.seen.srtt.0)) + 2 * self.seen.srtt.0
    }

    /// What one whose pace may promise too much is given at a time [byte].
    pub fn piece(&self) -> u64 {
        PIECE.max(bytes(self.least, LOOK))
    }

    /// How long the others then send on before it, if nothing is lost [ns].
    pub fn wait(&self) -> u64 {
        let given = self.seen.unsent + PIECE;
        if self.proven && (self.full || self.met) {
            return time(given, self.least) + self.seen.srtt.0;
        }
        let (mut window, mut rest, mut rounds) = (self.seen.window.max(1), given, 1);
        while rest > window && rounds < 20 {
            (rest, window, rounds) = (rest - window, window * 2, rounds + 1);
        }
        rounds * self.seen.srtt.0
    }

    /// It is known to be much slower than these others.
    pub fn is_far(&self, others: &[Line]) -> bool {
        self.met && self.least.saturating_mul(FAR) < others.iter().map(|line| line.rate).sum::<u64>()
    }

    /// Until it has delivered what it holds [ns].
    pub fn rest(&self) -> u64 {
        let holds = self.holds();
        // a timer wakes it, and then it begins anew: at half of what it had delivered, say
        let anew = time(holds, self.delivers / 2) + (RTO << self.seen.timeouts.min(8));
        if self.quiet || self.seen.timeouts > 0 {
            return anew;
        }
        // which it has done already if its window is of a few packets
        (time(holds, self.least) + self.seen.srtt.0 / 2).min(anew)
    }

    /// How much longer others of this rate take without it for what is left, if it goes on as it did until now [ns].
    pub fn worth(&self, left: u64, rate: u64) -> u64 {
        if self.may_be_dead() { 0 } else { time(left, rate) - time(left, rate + self.mean) }
    }

    /// A coupled controller takes more of it than `other` brings, in `left` bytes. LIA's sum is then that of this one alone: its
    /// window is that of random losses and gives way to the other's, or has yet to grow, and does so by the square of its part.
    /// Not where the other one leads, since by that the increase of both is more, nor before it is known what that delivers.
    pub fn is_slowed(&self, other: &Line, left: u64) -> bool {
        if !other.met || other.leads(self) {
            return false;
        }
        let part = self.rate as f64 / (self.rate + other.rate) as f64;
        let trips = time(left, self.rate) as f64 / self.seen.srtt.0.max(1) as f64;
        let grows = (1.0 - part * part) * trips / 2.0 * per_second(MSS, self.seen.srtt) as f64;
        // no farther than to what it carried when a queue told that its line was full
        let room = if self.top > 0 { self.top.saturating_sub(self.rate) as f64 } else { f64::INFINITY };
        self.random || (self.grows && grows.min(room) > other.least as f64)
    }

    /// It is the one by which LIA's increase is set: by window over squared round trip (RFC 6356, section 3).
    pub fn leads(&self, other: &Line) -> bool {
        let of = |line: &Line| line.rate as f64 / line.seen.srtt.0.max(1) as f64;
        of(self) > of(other)
    }

    /// Given to it and not acknowledged [byte].
    pub fn holds(&self) -> u64 {
        self.seen.unsent + self.seen.out
    }

    /// What it is given is soon acknowledged.
    pub fn answers(&self) -> bool {
        self.proven && !self.quiet && !self.is_silent()
    }

    /// From several timeouts in a row few come back.
    pub fn may_be_dead(&self) -> bool {
        self.seen.timeouts > 1
    }

    pub fn is_silent(&self) -> bool {
        self.seen.timeouts > 0 || self.seen.srtt.0 == 0
    }
}

/// What a subflow's window lets go [byte/s].
pub(super) fn rate(seen: &SubflowSeen) -> u64 {
    let window = (u128::from(seen.window) * SECOND / u128::from(seen.srtt.0.max(1))) as u64;
    if seen.pace > 0 { window.min(seen.pace) } else { window }.max(1)
}

/// Until these have sent and heard of `left` bytes beside what they hold [ns].
pub(super) fn done(lines: &[Line], left: u64) -> u64 {
    let rate: u64 = lines.iter().map(|line| line.rate).sum();
    let held: u64 = lines.iter().map(|line| line.seen.unsent).sum();
    let srtt = lines.iter().map(|line| line.seen.srtt.0).min().unwrap_or(0);
    let steady = time(left.saturating_add(held), rate);
    if lines.iter().all(|line| line.full) {
        return steady + srtt;
    }
    let mut window: u64 = lines.iter().map(|line| line.seen.window).sum::<u64>().max(1);
    let (mut rest, mut rounds) = (left.saturating_add(held), 0);
    while rest > window {
        (rest, window, rounds) = (rest - window, window.saturating_mul(2), rounds + 1);
    }
    steady.min(rounds * srtt) + srtt
}
