//! Parameters of the queues that manage themselves. Defaults are those of Linux (tc-codel(8), tc-fq_codel(8),
//! tc-pie(8)), which are those of the RFCs.

use std::fmt;

use pathcast_base::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use crate::check::{MOST_FLOWS, MOST_WAITING};

/// Controlled delay (RFC 8289): drops at the head, the faster the longer packets have waited longer than `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Codel {
    /// Most packets that wait.
    #[serde(deserialize_with = "packets")]
    #[schemars(with = "Limit")]
    pub limit: u32,
    /// Waiting time that may stand, above 0 and below `interval`.
    pub target: Nanos,
    /// For so long waiting times must be above `target` before anything is dropped, at most 10 s.
    pub interval: Nanos,
    /// Mark packets that can be marked instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Codel { limit: 1000, target: Nanos::millis(5), interval: Nanos::millis(100), ecn: false }
    }
}

/// Flow queueing with controlled delay (RFC 8290).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodel {
    /// Most packets that wait, of all flows together; beyond it the flow with the most bytes loses half of them, up to
    /// 64 packets, from its head.
    #[serde(deserialize_with = "packets")]
    #[schemars(with = "Limit")]
    pub limit: u32,
    /// Queues that flows are hashed to, 1 to 65536.
    #[serde(deserialize_with = "hashed")]
    pub flows: u32,
    /// Bytes, overhead included, that a flow may send in a round, 64 to 65535.
    pub quantum: Bytes,
    /// As of [`Codel`].
    pub target: Nanos,
    /// As of [`Codel`].
    pub interval: Nanos,
    /// As of [`Codel`].
    pub ecn: bool,
    /// Most IP bytes that wait, up to 3 GB.
    pub memory: Bytes,
}

impl Default for FqCodel {
    fn default() -> Self {
        let Codel { target, interval, .. } = Codel::default();
        let (quantum, memory) = (Bytes(1514), Bytes(32 << 20));
        FqCodel { limit: 10_240, flows: 1024, quantum, target, interval, ecn: true, memory }
    }
}

impl FqCodel {
    pub(crate) fn codel(&self) -> Codel {
        Codel { limit: self.limit, target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

/// Proportional integral controller, enhanced (RFC 8033): drops at the tail with a probability that follows the waiting
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pie {
    /// Most packets that wait.
    #[serde(deserialize_with = "packets")]
    #[schemars(with = "Limit")]
    pub limit: u32,
    /// Waiting time aimed at (QDELAY_REF), above 0 and at most 10 s.
    pub target: Nanos,
    /// Time between two updates of the probability, 1 ms to 10 s.
    pub t_update: Nanos,
    /// Weight of the distance from `target` [1/s], 0 to 32.
    pub alpha: f64,
    /// Weight of the change of the waiting time [1/s], 0 to 32.
    pub beta: f64,
    /// A burst of this length passes an idle queue, at most 10 s.
    pub max_burst: Nanos,
    /// Mark packets that can be marked instead of dropping them, while the probability is at most 0.1.
    pub ecn: bool,
}

impl Default for Pie {
    fn default() -> Self {
        let (target, t_update, max_burst) = (Nanos::millis(15), Nanos::millis(15), Nanos::millis(150));
        Pie { limit: 1000, target, t_update, alpha: 0.125, beta: 1.25, max_burst, ecn: false }
    }
}

/// `1000` or `"1000 packets"`, for the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
enum Limit {
    Number(u32),
    Packets(#[schemars(regex(pattern = r"^\d+ ?packets?$"))] String),
}

fn packets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    struct Form;
    impl Visitor<'_> for Form {
        type Value = u32;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "packets, such as \"1000 packets\" or 1000, at most {MOST_WAITING}")
        }
        fn visit_u64<E: de::Error>(self, n: u64) -> Result<u32, E> {
            u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
        }
        fn visit_i64<E: de::Error>(self, n: i64) -> Result<u32, E> {
            u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<u32, E> {
            let text = text.trim();
            let count = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
            let count = count.and_then(|count| count.trim().parse().ok());
            count.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Form)
}

fn hashed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(Whole { least: 1, most: MOST_FLOWS })
}

/// A number of packets that wait, where `"9 packets"` is not a form of it.
pub(crate) fn waiting<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserializer.deserialize_u32(Whole { least: 0, most: MOST_WAITING })
}

/// What is no `u32` is refused with the range that the check has, not the type's.
struct Whole {
    least: u32,
    most: u32,
}

impl Visitor<'_> for Whole {
    type Value = u32;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole { least: 0, most } => write!(f, "a whole number, at most {most}"),
            Whole { least, most } => write!(f, "a whole number, {least} to {most}"),
        }
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<u32, E> {
        u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<u32, E> {
        u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Signed(n), &self))
    }
}
