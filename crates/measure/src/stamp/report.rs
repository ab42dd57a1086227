//! What a sender has found.

use serde::Serialize;

/// Durations of many packets [s].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub minimum: f64,
    /// The middle one.
    pub median: f64,
    /// The one that 95 % do not exceed.
    pub p95: f64,
}

impl Spread {
    /// Of durations [ns]; none of none.
    pub(super) fn of(mut all: Vec<i64>) -> Option<Spread> {
        all.sort_unstable();
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize] as f64 / 1e9;
        (!all.is_empty()).then(|| Spread { minimum: at(0.0), median: at(0.5), p95: at(0.95) })
    }
}

/// Delay in one direction [s].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OneWay {
    /// Whether both hosts say that their clocks are kept right. If not, only differences of delays mean something.
    pub synchronised: bool,
    /// The least delay; none if the clocks are not synchronised.
    pub minimum: Option<f64>,
    /// The largest error of it that the two hosts admit; none if the clocks are not synchronised.
    pub error: Option<f64>,
    /// How much above the least the median is.
    pub median_above_minimum: f64,
    /// How much above the least 95 % stay.
    pub p95_above_minimum: f64,
}

/// What is wrong with what a reflector told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// Answers left before their questions came, or stayed there for longer than the whole round trip took: they are in no
    /// delay.
    Stamps,
    /// Its clock was set meanwhile, or is none: there are no delays by direction.
    Clock,
    /// It calls its clock synchronised, and a delay is beyond the round trip and the errors that both hosts admit, or that error
    /// is beyond 16 s, the largest of a synchronised clock: delays are relative.
    Claim,
    /// Its numbers do not count packets: where packets were lost is not known.
    Numbers,
}

/// What a sender has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StampReport {
    /// Packets that left.
    pub sent: u64,
    /// Packets that this host could not send.
    pub unsent: u64,
    /// Packets whose answer came.
    pub received: u64,
    /// Packets without an answer.
    pub lost: u64,
    /// Of these, those that did not come to the reflector; none where it does not count, or the last ones were lost.
    pub lost_out: Option<u64>,
    /// Of these, those whose answer was lost; none likewise.
    pub lost_in: Option<u64>,
    /// Answers that came once more.
    pub duplicates: u64,
    /// Answers that came after one of a later packet.
    pub reordered: u64,
    /// What is wrong with what the reflector told; in order, each once.
    pub warnings: Vec<Warning>,
    /// There and back, less the reflector's own time [s].
    pub round_trip_s: Option<Spread>,
    /// From here to the reflector.
    pub out_s: Option<OneWay>,
    /// From the reflector to here.
    pub in_s: Option<OneWay>,
    /// Time to live or hop limit with which the last answered packet came to the reflector; none without an answer.
    pub ttl_out: Option<u8>,
    /// Code point with which the last answer came; none without one.
    pub dscp_in: Option<u8>,
}
