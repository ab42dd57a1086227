//! What is asked of a measurement.

use std::fmt;
use std::str::FromStr;

use pathcast_base::{Bytes, Nanos};

use pathcast_estimate::{Budget, Effort};
use pathcast_session::Key;

/// Which way probes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the far end.
    Out,
    /// From the far end to the client.
    In,
}

impl Direction {
    /// As results call it.
    pub fn word(self) -> &'static str {
        match self {
            Direction::Out => "out",
            Direction::In => "in",
        }
    }
}

/// How the available bandwidth is estimated; see [`pathcast_estimate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MethodName {
    /// A short queue kept in front of the bottleneck.
    #[default]
    Ride,
    /// The FIFO replay fit.
    Replay,
    /// PathTester as its paper improved it.
    PathTester,
    /// PathTester before.
    PathTesterOld(Iunit),
    /// Self-loading periodic streams, as Pathload sends them.
    Slops,
    /// Pulses on two paths at once, which show what these share; nobody asks for them by a word.
    Pulses,
}

/// The largest exponent of the old PathTester's gaps: 15 as the tool was, up to 20 in its paper's table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iunit(u8);

impl Iunit {
    /// As the tool was.
    pub const TOOL: Iunit = Iunit(15);

    /// Of table 1's wider ranges.
    fn wider(last: u8) -> Option<Iunit> {
        (16..=20).contains(&last).then_some(Iunit(last))
    }

    /// Gaps go from 2^0 to 2^this us.
    pub fn last(self) -> u32 {
        self.0.into()
    }
}

/// No method is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no method `{0}`: take ride, replay, pathtester, pathtester-old (-16 to -20: with wider gaps) or slops")]
pub struct NoSuchMethod(String);

/// The word of the old PathTester; `-16` to `-20` after it are table 1's ranges.
const OLD: &str = "pathtester-old";

impl MethodName {
    /// All of them, the default first; the old PathTester as it was.
    pub const ALL: [MethodName; 5] = [
        MethodName::Ride,
        MethodName::Replay,
        MethodName::PathTester,
        MethodName::PathTesterOld(Iunit::TOOL),
        MethodName::Slops,
    ];

    /// On the wire: 1 to 5 in the order of [`MethodName::ALL`], 6 of pulses, a wider range of the old PathTester its exponent.
    pub(super) fn code(self) -> u8 {
        match self {
            MethodName::Ride => 1,
            MethodName::Replay => 2,
            MethodName::PathTester => 3,
            MethodName::PathTesterOld(Iunit::TOOL) => 4,
            MethodName::PathTesterOld(Iunit(last)) => last,
            MethodName::Slops => 5,
            MethodName::Pulses => 6,
        }
    }

    pub(super) fn of(code: u8) -> Option<MethodName> {
        let known = Self::ALL.into_iter().find(|method| method.code() == code);
        let pulses = (code == MethodName::Pulses.code()).then_some(MethodName::Pulses);
        known.or(pulses).or_else(|| Iunit::wider(code).map(MethodName::PathTesterOld))
    }
}

impl FromStr for MethodName {
    type Err = NoSuchMethod;

    fn from_str(word: &str) -> Result<Self, NoSuchMethod> {
        let wider = || Iunit::wider(word.strip_prefix(OLD)?.strip_prefix('-')?.parse().ok()?);
        let known = Self::ALL.into_iter().find(|method| method.to_string() == word);
        known.or_else(|| wider().map(MethodName::PathTesterOld)).ok_or_else(|| NoSuchMethod(word.into()))
    }
}

/// As commands and results call it.
impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MethodName::Ride => f.write_str("ride"),
            MethodName::Replay => f.write_str("replay"),
            MethodName::PathTester => f.write_str("pathtester"),
            MethodName::PathTesterOld(Iunit::TOOL) => f.write_str(OLD),
            MethodName::PathTesterOld(Iunit(last)) => write!(f, "{OLD}-{last}"),
            MethodName::Slops => f.write_str("slops"),
            MethodName::Pulses => f.write_str("pulses"),
        }
    }
}

/// What a host knows of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// A digest of what only processes on the same kernel and clock know, such as the boot's id; equal at both ends: one
    /// clock. It is told only as a digest under the session's key.
    pub host: Option<[u8; 32]>,
    /// Whether the kernel says that the clock is disciplined (adjtimex).
    pub synchronised: bool,
    /// How far it is from the truth at most, as the kernel says [ns].
    pub max_error: Nanos,
}

/// What a client wants measured.
#[derive(Clone, Debug)]
pub struct Request {
    /// The secret that the far end knows too.
    pub key: Key,
    /// How many paths, 1 to 64.
    pub paths: usize,
    /// Which ways, in this order; none twice.
    pub directions: Vec<Direction>,
    /// How.
    pub method: MethodName,
    /// For each path and direction, all that it takes included.
    pub budget: Budget,
    /// Whether the default method takes no more of it than the capacity that it finds asks for
    /// ([`Budget::sensible`](pathcast_estimate::Budget::sensible)).
    pub sparing: bool,
    /// What is looked for, and what it may cost besides.
    pub effort: Effort,
    /// Differentiated services code point of all packets, both ways: 0 to 63.
    pub dscp: u8,
    /// All paths at once instead of one after the other.
    pub at_once: bool,
    /// Of this host.
    pub clock: ClockState,
    /// For the random parts of trains.
    pub seed: u64,
}

/// Of more paths not every two are held against each other.
const PAIRED: usize = 4;

impl Request {
    /// Paths of which it is asked what they share.
    pub(super) fn paired(&self) -> usize {
        let thorough = matches!(self.effort, Effort::Thorough { .. }) && self.method == MethodName::Ride;
        if thorough { self.paths.min(PAIRED) } else { 0 }
    }

    /// How many times the budget all of it may take.
    pub(super) fn parts(&self) -> u64 {
        let pairs = self.paired() * self.paired().saturating_sub(1) / 2;
        // pulses last no longer than a direction, and their attempts together hardly as long
        ((self.paths + pairs * 2) * self.directions.len()) as u64
    }

    /// Both directions of one path with the default method, 1 MB and 3 s each.
    pub fn new(key: Key) -> Request {
        Request {
            key,
            paths: 1,
            directions: vec![Direction::Out, Direction::In],
            method: MethodName::default(),
            budget: Budget { bytes: Bytes(1_000_000), time: Nanos::secs(3) },
            sparing: false,
            effort: Effort::default(),
            dscp: 0,
            at_once: false,
            clock: ClockState::default(),
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_are_those_of_one_method_each() {
        let wider = (16..=20).map(|last| MethodName::PathTesterOld(Iunit(last)));
        let mut codes = Vec::new();
        for method in MethodName::ALL.into_iter().chain(wider) {
            assert_eq!((method.to_string().parse(), MethodName::of(method.code())), (Ok(method), Some(method)));
            codes.push(method.code());
        }
        assert_eq!(codes, [1, 2, 3, 4, 5, 16, 17, 18, 19, 20]);
        for word in [
            "",
            "old",
            "pulses",
            "pathtester-old-15",
            "pathtester-old-21",
            "pathtester-old-",
            "pathtester-old16",
            "slops-16",
        ] {
            assert!(word.parse::<MethodName>().is_err(), "{word}");
        }
        assert!([0, 7, 15, 21, 255].iter().all(|&code| MethodName::of(code).is_none()));
        assert_eq!(MethodName::of(6), Some(MethodName::Pulses));
    }
}
