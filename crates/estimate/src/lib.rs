//! Estimators of a path: one-way delay, available bandwidth A and bottleneck capacity C. Pure: stamps in, plans and
//! estimates out; no clock, no socket, no wire format.
//!
//! A [`Method`] is asked what to do next, and told what became of its trains when the far end's report has come. Whoever
//! carries it (a session's machine, the bench in `tests/estimate`) sends the trains, and joins the sender's stamps with the
//! receiver's. The two clocks need not agree in origin, and may run at different speeds.
//!
//! | file | estimates | source |
//! |---|---|---|
//! | [`clock`] | offset and skew of two clocks | NTP's four stamps; Zhang, Liu and Xia, INFOCOM 2002 |
//! | [`delay`] | one-way delay, RTT over size, the wait for an answer | PathTester, its open problem 2 |
//! | [`capacity`] | C from short trains | CapProbe, Kapoor et al., SIGCOMM 2004 |
//! | [`handover`] | whether C is the sending host's own rate | this project |
//! | [`clusters`] | C from pairs of several sizes | PathTester, section 2 |
//! | [`ride`] | A by keeping a short queue in front of the bottleneck; the default | this project |
//! | [`replay`] | A by replaying a FIFO queue under each train | this project |
//! | [`pathtester`], [`pathtester_old`] | A, as the paper improved it, and as it was before | PathTester |
//! | [`shared`] | whether two paths share a bottleneck | this project |
//! | [`slops`] | A as a range, by fleets of streams | Jain and Dovrolis, Pathload, PAM 2002 |
//!
//! All that is known of a direction is one record, [`knowledge`].

mod batch;
pub mod capacity;
pub mod clock;
pub mod clusters;
pub mod delay;
mod dispersion;
mod effort;
mod gather;
pub mod handover;
pub mod kinds;
pub mod knowledge;
pub mod pathtester;
pub mod pathtester_old;
pub mod replay;
pub mod ride;
pub mod series;
pub mod shared;
pub mod slops;
pub mod stat;
mod stretch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod turns;

pub use batch::Batch;
pub use effort::Effort;
pub use knowledge::{Knowledge, Value, WhyNot};
use pathcast_base::{Bytes, Nanos};

/// IP bytes of a probe that is to be large, and passes tunnels unfragmented: the paper's 1400 octets.
pub const LARGE: u16 = 1400;

/// No line is faster [bit/s]: stamps that say so are wrong.
pub(crate) const FASTEST: f64 = 1e12;

/// What became of one packet of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// IP bytes.
    pub size: u16,
    /// When it left, by the sender's clock [ns]; where it waited in the host's own queue when it was handed over.
    pub sent: Nanos,
    /// When it arrived, by the receiver's clock [ns]; none: lost, or missed.
    pub received: Option<Nanos>,
    /// Its place among the packets that the receiving host handed over together.
    pub batch: Batch,
    /// It arrived, but the receiving host had no room for it: nobody knows when.
    pub missed: bool,
}

impl Seen {
    /// The network lost it.
    pub fn lost(&self) -> bool {
        self.received.is_none() && !self.missed
    }

    /// Arrival less departure [ns], the offset of the clocks included: only differences mean something.
    pub fn delay(&self) -> Option<i64> {
        self.received.map(|at| at.0 as i64 - self.sent.0 as i64)
    }

    /// The same if the stamp of the arrival is this packet's own: in a batch only the last one's is.
    pub fn own_delay(&self) -> Option<i64> {
        self.delay().filter(|_| self.batch.is_last())
    }
}

/// What became of a train: all of its packets that left, in the order in which they left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainSeen {
    /// The plan's number.
    pub id: u64,
    /// At least one packet.
    pub packets: Vec<Seen>,
}

/// A train to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its number, from 0.
    pub id: u64,
    /// Not before this time of the sender's clock [ns].
    pub at: Nanos,
    /// From the start of each packet to the start of the next one [ns]; zero: back to back. One less than packets.
    pub gaps: Vec<Nanos>,
    /// IP bytes of each packet.
    pub size: u16,
}

impl Plan {
    /// `count` packets (at least one), `gap` seconds apart, each at its own time rounded to the nanosecond.
    pub fn even(id: u64, at: Nanos, count: usize, gap: f64, size: u16) -> Plan {
        let start = |i: usize| Nanos::from_secs_f64(gap * i as f64);
        Plan { id, at, gaps: (1..count).map(|i| start(i) - start(i - 1)).collect(), size }
    }

    /// Packets.
    pub fn count(&self) -> usize {
        self.gaps.len() + 1
    }

    /// From the first packet's start to the last one's [ns].
    pub fn duration(&self) -> Nanos {
        Nanos(self.gaps.iter().map(|gap| gap.0).sum())
    }

    /// IP bytes of all packets.
    pub fn bytes(&self) -> u64 {
        self.count() as u64 * u64::from(self.size)
    }
}

/// What a method wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this; then ask again at once.
    Send(Plan),
    /// The same as a flow of its own, which a queue for every flow serves beside the other. Only methods that say so do it.
    Beside(Plan),
    /// Ask again when a report has come, or at this time, whichever is first.
    Wait(Nanos),
    /// It has ended; the estimate is final.
    Done,
}

/// What a method may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// IP bytes of all trains.
    pub bytes: Bytes,
    /// From the first question to the last report; a report that is late is not waited for.
    pub time: Nanos,
}

/// What measuring a path of some capacity should cost: capacity [bit/s], bytes, time [s]. Between them both go evenly in
/// logarithms.
pub const SENSIBLE: [(f64, f64, f64); 4] =
    [(100e3, 135e3, 17.0), (5e6, 930e3, 2.4), (100e6, 4e6, 0.6), (1e9, 10e6, 0.6)];

/// And it lasts at least so many times as long as a report takes, up to [`FAR`].
const REPORTS: u64 = 8;

/// Where a report takes so long and so many packets' time (of a train that leaves at once), what no probe sees weighs more than what more of them would tell: bytes for
/// so long a time of the line [s], or so many, if that is more; so many reports' times to begin and to end, and so long between
/// them [s].
const FAR: Nanos = Nanos::millis(100);
const FAR_PACKETS: f64 = 8.0;
/// What the line carries in so many reports' times must not be more than is usual.
const FAR_BLIND: f64 = 1.5;
const FAR_LINE: f64 = 0.75;
const FAR_BYTES: f64 = 350e3;
const FAR_REPORTS: f64 = 2.5;
const FAR_TIME: f64 = 4.0;

/// Whether reports take long by the way, and not by the line [bit/s] alone; and not so long that most is sent before they come.
pub(crate) fn is_far(capacity: f64, lag: Nanos) -> bool {
    let long = lag >= FAR + Nanos::from_secs_f64(FAR_PACKETS * f64::from(LARGE) * 8.0 / capacity);
    long && FAR_BLIND * lag.as_secs_f64() * capacity / 8.0 <= usual(capacity).0
}

/// Bytes and time [s] for a path of this capacity [bit/s] whose reports take no time.
fn usual(capacity: f64) -> (f64, f64) {
    let last = SENSIBLE.len() - 1;
    let at = capacity.clamp(SENSIBLE[0].0, SENSIBLE[last].0);
    let k = SENSIBLE[1..last].partition_point(|row| row.0 < at);
    let (low, high) = (SENSIBLE[k], SENSIBLE[k + 1]);
    let share = (at / low.0).ln() / (high.0 / low.0).ln();
    let between = |a: f64, b: f64| a * (b / a).powf(share);
    (between(low.1, high.1), between(low.2, high.2))
}

impl Budget {
    /// No more of either than `other` has.
    pub fn min(self, other: Budget) -> Budget {
        Budget { bytes: self.bytes.min(other.bytes), time: self.time.min(other.time) }
    }

    /// What is enough for a path of this capacity [bit/s] whose reports take `lag`, and not a burden for it.
    pub fn sensible(capacity: f64, lag: Nanos) -> Budget {
        let (bytes, time) = usual(capacity);
        let (bytes, time) = if !is_far(capacity, lag) {
            (bytes, time.max((lag * REPORTS).as_secs_f64()))
        } else {
            let waits = FAR_REPORTS * lag.as_secs_f64();
            (bytes.min((FAR_LINE * capacity / 8.0).max(FAR_BYTES)), waits + time.min(FAR_TIME))
        };
        Budget { bytes: Bytes(bytes as u64), time: Nanos::from_secs_f64(time) }
    }
}

/// How the bottleneck treats the probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// No telling: too little cross traffic, or too few samples.
    #[default]
    Unknown,
    /// First come, first served: all traffic shares one queue.
    Shared,
    /// Every flow has a queue of its own. What is measured is then the probes' fair share, which can be more than what
    /// the other flows leave.
    Fair,
}

/// An estimate of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// IP bits per second; none: see `why_not`.
    pub value_bps: Option<f64>,
    /// Lower end of the 90 % interval [bit/s].
    pub low_bps: f64,
    /// Upper end of the 90 % interval [bit/s].
    pub high_bps: f64,
    /// Why the value is absent or not trustworthy.
    pub why_not: Option<WhyNot>,
    /// How the bottleneck queues, where the method can tell.
    pub discipline: Discipline,
    /// IP bytes sent.
    pub bytes: Bytes,
}

impl Estimate {
    /// No value.
    pub fn none(why_not: WhyNot, bytes: u64) -> Estimate {
        Estimate {
            value_bps: None,
            low_bps: 0.0,
            high_bps: f64::INFINITY,
            why_not: Some(why_not),
            discipline: Discipline::Unknown,
            bytes: Bytes(bytes),
        }
    }

    /// A value within its interval, of which nothing is less than no rate at all.
    pub fn of(value: f64, low: f64, high: f64, bytes: u64) -> Estimate {
        Estimate {
            value_bps: Some(value),
            low_bps: low.min(value).max(0.0),
            high_bps: high.max(value),
            why_not: None,
            discipline: Discipline::Unknown,
            bytes: Bytes(bytes),
        }
    }
}

/// A way to estimate. `now` and the stamps `sent` are the sender's clock; `now` never goes back.
pub trait Method {
    /// What to do next.
    fn next(&mut self, now: Nanos) -> Step;

    /// The report about a train has come. Reports may come late or in another order, or never.
    fn observe(&mut self, now: Nanos, train: &TrainSeen);

    /// What is known so far.
    fn estimate(&self) -> Estimate;

    /// Adds what it has found besides, of which rates, losses counted and what it did not look for are no part.
    fn tell(&self, _known: &mut Knowledge) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sensible_goes_evenly_in_logarithms() {
        let of = |capacity, lag| {
            let budget = Budget::sensible(capacity, Nanos::millis(lag));
            (budget.bytes.0 as f64, budget.time.as_secs_f64())
        };
        let near = |(bytes, time): (f64, f64), exact: (f64, f64)| {
            assert!(
                (bytes / exact.0 - 1.0).abs() < 1e-5 && (time / exact.1 - 1.0).abs() < 1e-6,
                "{bytes} {time} {exact:?}"
            );
        };
        near(of(5e6, 1), (930e3, 2.4));
        near(of(50e3, 1), (135e3, 17.0)); // as at 100 kbit/s
        near(of(5e9, 1), (10e6, 0.6));
        // half-way from 5 to 100 Mbit/s: the geometric means
        near(of(500e12f64.sqrt(), 1), ((930e3 * 4e6f64).sqrt(), (2.4 * 0.6f64).sqrt()));
        near(of(100e6, 90), (4e6, 0.72)); // eight reports
        // they take long: three quarters of a second of the line, and two and a half reports besides
        near(of(5e6, 400), (468_750.0, 3.4));
        assert_eq!(of(1e6, 1000).0, 350e3);
        // but not where all of it would be sent before the first
        near(of(200e6, 500), (of(200e6, 1).0, 4.0));
    }
}
